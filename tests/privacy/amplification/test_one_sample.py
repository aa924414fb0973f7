"""One run on a sample, and attackers' rates, against closed forms at many digits."""

from __future__ import annotations

import random
from statistics import NormalDist
from typing import Any

import mpmath
import pytest

from dither import privacy
from dither.accounting import calibrate
from dither.errors import ArgumentError
from dither.privacy import Loss
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.line import SampledLineTerm


def laplace_truth(b: float, rate: float, epsilon: float) -> Any:
    """The larger of both directions' deltas of one Laplace release on a Poisson sample."""
    e0, g, e = 1 / mpmath.mpf(b), mpmath.mpf(rate), mpmath.mpf(epsilon)

    def base(x: Any) -> Any:
        return 1 - mpmath.e ** ((x - e0) / 2) if x < e0 else mpmath.mpf(0)

    removal = g * base(mpmath.log(1 + (mpmath.e**e - 1) / g))
    rest = (mpmath.e**-e - (1 - g)) / g
    addition = (1 - (1 - g) * mpmath.e**e) * base(-mpmath.log(rest)) if rest > 0 else mpmath.mpf(0)
    return max(removal, addition)


def test_one_laplace_on_a_sample_is_a_closed_form() -> None:
    """Random scales, rates and places, near the largest loss too; an interval a billionth wide."""
    draw = random.Random(7)
    with mpmath.workdps(40):
        for _ in range(400):
            b, rate = 10 ** draw.uniform(-2, 3), 10 ** draw.uniform(-6, -0.01)
            loss = privacy.laplace(b).poisson(rate)
            top = loss.epsilon(0).upper
            e = draw.choice([0.0, draw.random() * top, top * (1 - 10 ** draw.uniform(-3, -1))])
            truth = laplace_truth(b, rate, e)
            found = loss.delta(e)
            assert found.lower <= truth <= found.upper
            assert found.upper - found.lower <= 1e-9 * truth
            fixed = privacy.laplace(b, neighbours="replace").without_replacement(
                max(1, round(1000 * rate)), 1000
            )
            again = laplace_truth(b, max(1, round(1000 * rate)) / 1000, e)
            assert fixed.delta(e).lower <= again * (1 + 1e-9) + 1e-15


def test_epsilons_of_one_laplace_on_a_sample() -> None:
    """Where an upper end near the largest loss had no lower end."""
    found = privacy.laplace(10.0).poisson(0.01).epsilon(1e-6)
    assert found == pytest.approx(0.00104894861043, rel=1e-10)
    assert found.upper - found.lower <= 1e-10 * found


def test_one_laplace_on_a_sample_beyond_what_doubles_raise_e_to() -> None:
    """Losses of a thousand, asked at epsilons around them."""
    with mpmath.workdps(40):
        for e in (25.0, 31.0, 690.0, 720.0, 990.0, 1004.0):
            truth = laplace_truth(0.001, 1e-3, e)
            found = privacy.laplace(0.001).poisson(1e-3).delta(e)
            assert found.lower <= truth <= found.upper
            assert found.upper - found.lower <= 1e-9 * truth + 1e-300


def test_a_fixed_size_sample_of_one_gaussian() -> None:
    """The same profile as a Poisson sample's, at epsilons of at least 0."""
    fixed = privacy.gaussian(1.0, neighbours="replace").without_replacement(1, 100)
    poisson = privacy.gaussian(1.0).poisson(0.01)
    for e in (0.0, 0.05, 0.5, 1.5):
        assert fixed.delta(e).lower <= poisson.delta(e).upper
        assert fixed.delta(e) == pytest.approx(poisson.delta(e), rel=1e-9)


@pytest.mark.parametrize("fpr", [1e-6, 1e-3, 0.05, 0.4, 0.95])
@pytest.mark.parametrize("mu", [0.05, 1.0, 4.0])
def test_true_alarms_of_gaussians(mu: float, fpr: float) -> None:
    """Phi(mu + Phi^-1(fpr))."""
    normal = NormalDist()
    truth = normal.cdf(mu + normal.inv_cdf(fpr))
    found = privacy.gdp(mu).tpr(fpr)
    assert found.lower - 1e-12 <= truth <= found.upper + 1e-12
    assert found.upper - found.lower <= 1e-6 * truth


@pytest.mark.parametrize("epsilon", [1.0, 60.0, 70.0, 300.0])
def test_without_false_alarms_only_what_is_infinite_tells(epsilon: float) -> None:
    """However large a finite loss is."""
    assert privacy.pure(epsilon).tpr(0.0) == 0.0
    assert privacy.laplace(1 / epsilon).tpr(0.0) == 0.0
    assert privacy.approximate(epsilon, 1e-3).tpr(0.0) == pytest.approx(1e-3, rel=1e-9)
    assert privacy.pure(epsilon).tradeoff(0.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("loss", "fpr"),
    [
        (privacy.discrete_gaussian(2.0), 0.01),
        (100 * privacy.gaussian(0.6).poisson(0.01), 0.001),
        (privacy.laplace(10.0).poisson(0.01), 0.01),
        (5 * privacy.randomized_response(0.5), 0.3),
    ],
)
def test_rates_are_narrow_at_kinks_and_in_tails(loss: Loss, fpr: float) -> None:
    """A millionth, and dual to delta at every epsilon that is asked."""
    found = loss.tpr(fpr)
    assert found.upper - found.lower <= 1e-6 * found.upper
    for e in (0.0, 0.1, 0.5, 1.0, 2.0):
        assert found.lower <= loss.delta(e).upper + 2.718281828459045**e * fpr * (1 + 1e-12)


def test_calibration_to_attackers() -> None:
    """The least noise that keeps an attacker's rates; a little less breaks them."""
    normal = NormalDist()
    found = calibrate(privacy.gaussian, advantage=0.1)
    truth = 1 / (2 * normal.inv_cdf(0.55))
    assert found.lower <= truth * (1 + 1e-12)
    assert found == pytest.approx(truth, rel=1e-9)
    found = calibrate(privacy.gaussian, fpr=0.01, tpr=0.05)
    assert found == pytest.approx(1 / (normal.inv_cdf(0.05) - normal.inv_cdf(0.01)), rel=1e-8)
    found = calibrate(privacy.gaussian, prior=0.5, bayes_risk=0.4)
    assert found == pytest.approx(1 / (2 * normal.inv_cdf(0.6)), rel=1e-9)
    assert privacy.gaussian(float(found)).bayes_risk(0.5) >= 0.4
    assert privacy.gaussian(float(found) * (1 - 1e-6)).bayes_risk(0.5).upper < 0.4
    found = calibrate(privacy.pure, advantage=0.2)
    assert found.safe == "lower"
    assert privacy.pure(float(found)).advantage() <= 0.2


@pytest.mark.parametrize(
    "promise",
    [
        {},
        {"epsilon": 1.0},
        {"epsilon": 1.0, "delta": 1e-6, "advantage": 0.1},
        {"fpr": 0.1},
        {"prior": 0.5},
        {"fpr": 0.1, "tpr": 0.05},
        {"prior": 0.5, "bayes_risk": 0.5},
        {"advantage": 1.0},
    ],
)
def test_one_promise_is_named_in_full(promise: dict[str, float]) -> None:
    """Halves, mixtures and impossible ones are refused."""
    with pytest.raises(ArgumentError):
        calibrate(privacy.gaussian, **promise)


def test_what_cannot_be_calibrated_says_which_way() -> None:
    """All keep, none keeps, none is finite; where the loss itself ends, the reason is told."""
    with pytest.raises(ArgumentError, match="every parameter tried"):
        calibrate(lambda s: privacy.gaussian(1 + s), epsilon=50.0, delta=1e-6)
    with pytest.raises(ArgumentError, match="every parameter tried"):
        calibrate(lambda q: privacy.gaussian(2.0).poisson(q), epsilon=100.0, delta=1e-6)
    with pytest.raises(ArgumentError, match=r"no parameter tried.*nearest"):
        calibrate(lambda s: privacy.gaussian(0.1) + privacy.gaussian(s), epsilon=1.0, delta=1e-6)
    with pytest.raises(ArgumentError, match="cost the same"):
        calibrate(privacy.gaussian, epsilon=1.0, delta=0.0)
    with pytest.raises(ArgumentError, match=r"no parameter tried.*beyond, rate"):
        calibrate(
            lambda q: privacy.gaussian(0.1) + privacy.gaussian(2.0).poisson(q),
            epsilon=1.0,
            delta=1e-6,
        )


def test_closed_forms_take_no_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run on a sample is answered without the integrals that its moments are."""

    def integral(*_: Any) -> Any:
        raise AssertionError("a moment was asked for")

    for law in (SampledLineTerm, SampledGaussianTerm):
        monkeypatch.setattr(law, "log_moment", integral)
    for base in (privacy.laplace(1.37), privacy.gaussian(1.37)):
        for e in (0.0, 0.05, 0.1):
            assert 0 < base.poisson(0.137).delta(e) < 1
