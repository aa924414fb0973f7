"""The loss object: its algebra, its views of known cases, what it refuses, and its picture."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.errors import ArgumentError, DitherError
from dither.privacy import Bound, Loss

N = NormalDist()


def inside(bound, truth, slack=1e-12):
    """Whether the interval holds the truth, up to the test's own rounding."""
    return bound.lower - slack <= truth <= bound.upper + slack


def test_bound_is_its_sound_end():
    """A float with provenance, frozen, that survives copying."""
    bound = Bound(0.25, 0.5, "by hand")
    assert bound == 0.5
    assert Bound(0.25, 0.5, "by hand", safe="lower") == 0.25
    for again in (copy.copy(bound), pickle.loads(pickle.dumps(bound))):
        assert (again.lower, again.upper, again.method) == (0.25, 0.5, "by hand")
    with pytest.raises(AttributeError):
        bound.upper = 1.0
    with pytest.raises(ArgumentError, match="lower"):
        Bound(1.0, 0.5, "upside down")


def test_losses_are_frozen_values():
    """Equal parts make equal losses; nothing can be changed."""
    assert privacy.pure(1.0) == privacy.pure(1.0)
    assert hash(privacy.gdp(1.0)) == hash(privacy.gdp(1.0))
    with pytest.raises(FrozenInstanceError):
        privacy.pure(1.0).parts = ()


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0.05, 1.0))
def test_repetition_is_addition(a, b, epsilon):
    """(a + b)·L is a·L + b·L."""
    one = privacy.pure(epsilon)
    assert ((a + b) * one).epsilon(1e-6) == (a * one + b * one).epsilon(1e-6)


def test_sum_and_compose_agree():
    """Two ways to write a total."""
    parts = [privacy.gaussian(s) for s in (3.0, 4.0, 5.0)]
    assert sum(parts, Loss()).epsilon(1e-6) == privacy.compose(*parts).epsilon(1e-6)
    assert privacy.compose() == Loss()
    assert (0 * parts[0]).epsilon(0.0) == 0
    assert Loss().describe() == "nothing"
    assert (2 * parts[0]).describe() == "2 * gaussian(3)"


@settings(deadline=None, max_examples=40)
@given(st.floats(0.2, 3.0), st.floats(0.001, 0.999))
def test_gaussian_trade_off(mu, fpr):
    """f(x) = Phi(Phi^{-1}(1 - x) - mu)."""
    truth = N.cdf(N.inv_cdf(1 - fpr) - mu)
    bound = privacy.gdp(mu).tradeoff(fpr)
    assert inside(bound, truth, 1e-9)
    assert bound == bound.lower
    assert bound.upper - bound.lower < 1e-5


@settings(deadline=None, max_examples=40)
@given(st.floats(0.1, 3.0), st.floats(0.01, 0.99))
def test_pure_trade_off_is_the_test_of_two_errors(epsilon, fpr):
    """e^ε·(misses) + (false alarms) >= 1, and the other way round; reached."""
    truth = max(0.0, 1 - math.exp(epsilon) * fpr, math.exp(-epsilon) * (1 - fpr))
    bound = privacy.pure(epsilon).tradeoff(fpr)
    assert inside(bound, truth, 1e-9)
    assert bound.lower > truth - 1e-4


def test_gaussian_views():
    """Every dialect of mu-GDP in closed form."""
    loss = privacy.gdp(1.0)
    assert inside(loss.advantage(), 2 * N.cdf(0.5) - 1)
    assert inside(loss.renyi(8.0), 4.0)
    assert inside(loss.zcdp(), 0.5)
    assert inside(loss.gdp(), 1.0)
    assert inside(loss.tpr(0.01), 1 - N.cdf(N.inv_cdf(0.99) - 1), 1e-9)
    assert inside(loss.bayes_risk(0.5), N.cdf(-0.5))
    assert inside(loss.reconstruction(0.001), 1 - N.cdf(N.inv_cdf(0.999) - 1), 1e-9)
    assert loss.mean() == pytest.approx(0.5)
    assert inside((4 * loss).gdp(), 2.0)


@settings(deadline=None, max_examples=25)
@given(st.floats(0.05, 0.95), st.lists(st.integers(1, 9), min_size=2, max_size=5))
def test_bayes_risk_of_a_pair(prior, masses):
    """The sum of the lesser joint masses, in the easier direction."""
    p = np.array(masses) / sum(masses)
    q = p[::-1]
    forward = np.minimum(prior * p, (1 - prior) * q).sum()
    backward = np.minimum(prior * q, (1 - prior) * p).sum()
    bound = privacy.pair(p.tolist(), q.tolist()).bayes_risk(prior)
    assert inside(bound, min(forward, backward), 1e-9)
    assert bound == bound.lower


def test_directions_stay_apart():
    """A one-sided pair is not symmetrised before the end."""
    p, q = [0.5, 0.5], [1.0, 0.0]
    assert inside(privacy.pair(p, q).delta(2.0), 0.5)
    assert inside((2 * privacy.pair(p, q)).delta(1.0), 0.75)


def test_rounded_conversions():
    """Known values of the optimal conversion, and of Gaussian calibration by hand."""
    assert privacy.zcdp(0.5).epsilon(1e-6) == pytest.approx(5.221534444530169, abs=1e-8)
    assert privacy.zcdp(0.5).epsilon(1e-6) >= 5.221534444530169 * (1 - 1e-15)
    for sigma, epsilon, delta in (
        (36.304690426195785, 0.1, 1e-6),
        (3.7306316348159418, 1.0, 1e-5),
        (4.2246788893268353, 1.0, 1e-6),
        (0.49988861970900851, 10.0, 1e-5),
    ):
        assert privacy.gaussian(sigma).delta(epsilon) == pytest.approx(delta, rel=1e-9)
    assert privacy.gaussian(0.48448052626053894).delta(10.0) == pytest.approx(2.27e-5, abs=5e-8)


def test_classes_hold_their_members():
    """A class's bound is at least the loss of a mechanism in it."""
    assert privacy.zcdp(0.5).delta(3.0) >= privacy.gdp(1.0).delta(3.0).lower
    many = 50 * privacy.exponential(0.2)
    assert many.epsilon(1e-6) >= (50 * privacy.randomized_response(0.1)).epsilon(1e-6).lower
    assert many.epsilon(1e-6) <= (50 * privacy.pure(0.2)).epsilon(1e-6)
    profile = privacy.renyi({a: a / 2 for a in (1.5, 2.0, 4.0, 8.0, 16.0, 64.0)})
    assert profile.epsilon(1e-6) >= privacy.gdp(1.0).epsilon(1e-6).lower


def test_groups():
    """Sensitivities grow with the group, and samples become binomial."""
    assert privacy.pure(0.5).group(3).epsilon(0.0) == pytest.approx(1.5)
    assert inside(privacy.gdp(0.5).group(4).gdp(), 2.0)
    assert privacy.laplace(2.0).group(4).epsilon(0.0) == pytest.approx(2.0)
    step = privacy.gaussian(2.0).poisson(0.1)
    assert step.group(2).epsilon(1e-6) > step.epsilon(1e-6)
    assert step.group(2).epsilon(1e-6) < privacy.gaussian(1.0).epsilon(1e-6)
    assert privacy.zcdp(0.1).group(3).zcdp() == pytest.approx(0.9)
    approx = privacy.approximate(0.5, 1e-8).group(2)
    assert approx.delta(1.0) == pytest.approx(1e-8 * (1 + math.exp(0.5)))


def test_sampling_amplifies():
    """A sample costs log(1 + q(e^ε - 1)) of a pure mechanism, and never more than the whole."""
    for rate in (0.01, 0.3, 1.0):
        bound = privacy.pure(1.0).poisson(rate).epsilon(0.0)
        assert inside(bound, math.log1p(rate * math.expm1(1.0)), 1e-11)
    sampled = 100 * privacy.laplace(2.0).poisson(0.05)
    assert sampled.epsilon(1e-6) < (100 * privacy.laplace(2.0)).epsilon(1e-6)
    cut = privacy.gaussian(1.0).poisson(0.01, truncate=250, population=10_000)
    free = privacy.gaussian(1.0).poisson(0.01)
    assert free.epsilon(1e-6) <= (100 * cut).epsilon(1e-6)
    assert 0 < cut.slack < 1e-20


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: privacy.gaussian(0.0), "noise_multiplier"),
        (lambda: privacy.gaussian(math.inf), "noise_multiplier"),
        (lambda: privacy.laplace(math.nan), "noise_multiplier"),
        (lambda: privacy.pure(-1.0), "epsilon"),
        (lambda: privacy.approximate(1.0, 1.0), "delta"),
        (lambda: privacy.zcdp(0.0), "rho"),
        (lambda: privacy.renyi({1.0: 0.1}), "order"),
        (lambda: privacy.renyi({}), "orders"),
        (lambda: privacy.randomized_response(1.0, k=1), "k must"),
        (lambda: privacy.pair([0.5, 0.4], [0.5, 0.5]), "p must sum"),
        (lambda: privacy.pair([1.0], [0.5, 0.5]), "same length"),
        (lambda: privacy.pure(1.0, neighbours="replaced"), "replace"),
        (lambda: privacy.gaussian(1.0).poisson(0.0), "rate"),
        (lambda: privacy.gaussian(1.0).poisson(1.5), "rate"),
        (lambda: privacy.gaussian(1.0).poisson(0.1).poisson(0.1), "already a sample"),
        (lambda: privacy.gaussian(1.0, neighbours="replace").poisson(0.1), "without_replacement"),
        (lambda: privacy.gaussian(1.0, neighbours="replace").poisson(0.1), "replace"),
        (
            lambda: privacy.pure(1.0, neighbours="replace").without_replacement(11, 10),
            "sample must",
        ),
        (lambda: privacy.pure(1.0) + privacy.pure(1.0, neighbours="replace"), "cannot be added"),
        (
            lambda: privacy.compose(privacy.pure(1.0), privacy.pure(1.0, neighbours="replace")),
            "cannot be added",
        ),
        (lambda: (privacy.pure(1.0) + privacy.zcdp(1.0)).poisson(0.1), "one mechanism"),
        (lambda: privacy.zcdp(1.0).poisson(0.1), "pair is known"),
        (lambda: privacy.gaussian(1.0).poisson(0.1, truncate=5), "together"),
        (lambda: 1.5 * privacy.pure(1.0), "integer"),
        (lambda: privacy.pure(1.0).group(0), "size"),
        (lambda: privacy.renyi({2.0: 1.0}).group(2), "group"),
        (lambda: privacy.pure(1.0).epsilon(1.0), "delta"),
        (lambda: privacy.pure(1.0).delta(-0.1), "epsilon"),
        (lambda: privacy.pure(1.0).renyi(1.0), "order"),
        (lambda: privacy.pure(1.0).tpr(1.1), "fpr"),
        (lambda: privacy.pure(1.0).bayes_risk(0.0), "prior"),
        (lambda: privacy.gaussian(1.0).epsilon(0.0), "delta is too small"),
        (lambda: privacy.approximate(1.0, 1e-5).epsilon(1e-6), "delta is too small"),
        (lambda: privacy.approximate(1.0, 1e-5).renyi(2.0), "infinite"),
        (lambda: privacy.renyi({2.0: 1.0}).mean(), "mean"),
        (lambda: privacy.renyi({2.0: 1.0}).zcdp(), "rho"),
        (lambda: privacy.gaussian("one"), "noise_multiplier"),
    ],
)
def test_refusals(make, name):
    """Each refusal names the argument or the fix."""
    with pytest.raises(DitherError, match=name):
        make()


def test_law_of_the_loss():
    """The points that are drawn have the mean of the law, and sum to 1."""
    points, masses = (100 * privacy.gaussian(10.0)).loss_distribution()
    assert masses.sum() == pytest.approx(1.0, abs=1e-6)
    assert (points * masses).sum() == pytest.approx(0.5, abs=1e-3)


def test_picture(tmp_path):
    """Three panels, saved where asked; a class without a law says so."""
    loss = 100 * privacy.gaussian(10.0) + privacy.laplace(5.0)
    figure = loss.plot(tmp_path / "loss.png")
    assert len(figure.axes) == 3
    assert (tmp_path / "loss.png").stat().st_size > 10_000
    figure = privacy.zcdp(0.1).plot()
    assert any("only bounded" in text.get_text() for text in figure.axes[2].texts)


@pytest.mark.parametrize(
    "loss",
    [
        privacy.gaussian(1.0),
        30 * privacy.gaussian(2.0).poisson(0.1),
        5 * privacy.pure(0.3) + privacy.laplace(2.0),
        privacy.zcdp(0.05),
        privacy.approximate(0.5, 1e-3),
        privacy.gaussian(1.0).poisson(0.1, truncate=200, population=1000),
        privacy.Loss(),
    ],
    ids=lambda loss: loss.describe(),
)
def test_a_profile_is_many_deltas(loss):
    """In the order asked, each interval overlapping that of `delta`, and never growing."""
    asked = [1.0, 0.0, 0.3, 2.6, 1.0]
    found = loss.profile(asked)
    for epsilon, bound in zip(asked, found, strict=True):
        one = loss.delta(epsilon)
        assert max(bound.lower, one.lower) <= min(bound.upper, one.upper)
        assert bound.upper <= one.upper * 1.01 + 1e-300
        assert bound.one_sided is loss.one_sided
    assert found[0] == found[-1]
    assert found[1].upper >= found[2].upper >= found[0].upper >= found[3].upper
    with pytest.raises(ArgumentError, match="epsilons"):
        loss.profile([0.1, -1.0])
    assert loss.profile([]) == ()
