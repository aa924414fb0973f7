"""What losses and accounting refuse by name: what is out of range, and what is not a number."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dither import accounting, privacy
from dither.accounting import Move, PureFilter, RenyiFilter, game, loss_from_expression, theorems
from dither.errors import ArgumentError, DitherError
from dither.privacy import (
    Charge,
    Promise,
    approximate,
    discrete_gaussian,
    discrete_laplace,
    gaussian,
    gdp,
    laplace,
    noisy_votes,
    pair,
    pure,
    randomized_response,
    repeat_and_select,
    zcdp,
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: privacy.gaussian(np.bool_(True)), "noise_multiplier must be"),
        (lambda: np.bool_(True) * privacy.pure(1.0), "repetitions must be"),
        (lambda: 10**400 * privacy.pure(1.0), "repetitions must be at most"),
        (lambda: privacy.gaussian(1.0).group(10**400), "size must be at most"),
        (lambda: privacy.randomized_response(1.0, 10**400), "k must be at most"),
        (lambda: privacy.gaussian(1e-300), "noise_multiplier must be"),
        (lambda: privacy.gaussian(1e300), "noise_multiplier must be"),
        (lambda: privacy.zcdp(1e300), "rho must be"),
        (lambda: privacy.renyi({2.0: 0.1}).renyi(3.0), "order 3 is known"),
        (lambda: accounting.calibrate(lambda x: 3, epsilon=1, delta=1e-6), "must return a loss"),
    ],
)
def test_odd_numbers_are_refused(make, message):
    """Truth values of numpy, integers beyond doubles, scales whose squares overflow, no order."""
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: theorems.parallel(3.0), "parallel takes losses"),
        (lambda: accounting.by_every_theorem(3.0, 1e-6), "loss must be a Loss"),
        (lambda: accounting.calibrate(3.0, epsilon=1, delta=1e-6), "make must be a function"),
        (lambda: accounting.split(3.0, epsilon=1, delta=1e-6), "makes must be a sequence"),
        (lambda: accounting.split([3.0], epsilon=1, delta=1e-6), "must be functions"),
        (lambda: accounting.divide_by_every_theorem([3], epsilon=1, delta=1e-6), "nothing else"),
        (lambda: accounting.loss_from_expression(3), "must be text"),
        (lambda: accounting.loss_from_toml(3), "must be text"),
        (lambda: Move.response(-1), "epsilon must be above 0"),
        (lambda: Move.response("one"), "epsilon must be a finite number"),
        (lambda: Move((0.5, 0.5), (0.5, 0.5), Fraction(1)), "Fractions in"),
        (lambda: game(3, lambda view: None, 2), "account must be a filter"),
        (lambda: game(PureFilter(Fraction(1)), 3, 2), "adversary must be"),
        (
            lambda: RenyiFilter(Fraction(1)).epsilon(Fraction(2)),
            "delta must be above 0 and below 1",
        ),
        (lambda: accounting.shares_by_every_theorem(1, 10, 1e-6, each_delta=1e-6), "each_delta"),
        (lambda: accounting.shares_by_every_theorem(1e9, 10, 1e-6), "epsilon must be"),
    ],
)
def test_things_that_are_no_mechanisms(make, message):
    """A number where a loss, a function or a filter belongs, and amounts that are not exact."""
    with pytest.raises(ArgumentError, match=message):
        make()


def test_a_game_without_moves_ends():
    """However many rounds are allowed, an adversary who stops has played."""
    played = game(PureFilter(Fraction(1)), lambda view: None, 10**18)
    assert played.views == (((), Fraction(1), Fraction(1)),)


def unlike():
    """A pair that one direction can refute, beside a noise on a sample of fixed size."""
    rough = pair([0, 0.5, 0.5], [0.4, 0.3, 0.3], neighbours="replace")
    return 2 * rough + 2 * laplace(0.7, neighbours="replace").without_replacement(1, 10)


WRONG = [
    lambda: zcdp(1e-310),
    lambda: pure(1e-310).group(5),
    lambda: approximate("1e-400", 0.1),
    lambda: Charge.pure("x"),
    lambda: Charge.pure(None),
    lambda: Charge.approximate(math.inf, Fraction(0)),
    lambda: Charge.approximate(Fraction(1), "-1"),
    lambda: Charge.concentrated(None),
    lambda: Charge.concentrated(""),
    lambda: Charge.bounded_range(True),
    lambda: Charge.response(math.nan),
    lambda: Charge.response(Fraction(-1)),
    lambda: Charge.pure(Fraction(1)).sampled(1.5),
    lambda: Charge.pure(Fraction(1)).sampled(Fraction(2)),
    lambda: Charge.pure(Fraction(1)).grouped(0),
    lambda: Charge.pure(Fraction(1)).grouped(1.5),
    lambda: Charge.pure(Fraction(1)).moved(-0.1),
    lambda: Charge.pure(Fraction(1)).rounded_up(Fraction(0)),
    lambda: Charge.pure(Fraction(1)).promising("patient"),
    lambda: Charge.pure(Fraction(1), Promise("patient")).to_group("ward", "3"),
    lambda: loss_from_expression("{[]:1}"),
    lambda: loss_from_expression("renyi({'2': 1})"),
    lambda: loss_from_expression("renyi({**{2: 1}})"),
    lambda: gaussian(1).profile(3),
    lambda: gaussian(1).profile(None),
    lambda: gaussian(1).profile(["x"]),
    lambda: noisy_votes(1, votes=3),
    lambda: discrete_gaussian(1, sensitivity=10**19),
    lambda: discrete_gaussian(1, sensitivity=10**9).group(10**10),
]


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments_are_named(wrong):
    """An ArgumentError, and no error of Python's."""
    with pytest.raises(ArgumentError):
        wrong()


FAR = [
    lambda: discrete_laplace(1, sensitivity=10**6).group(10**18).epsilon(0),
    lambda: discrete_laplace("1/3", sensitivity=10**5).group(10**6).poisson(1e-17).renyi(2),
    lambda: unlike().delta(0.0),
    lambda: (gaussian(3.5).group(10**6) + approximate(0.001, 1e-9)).epsilon("1/7"),
    lambda: (1000 * laplace(1e-50)).group(10**9).bayes_risk(1e-9),
    lambda: noisy_votes(1e-17).group(10).poisson("1/7", neighbours="replace").profile([0, 1e-9]),
    lambda: (10**9 * approximate(3.5, 1 - 2**-53)).profile([0, 1e308]),
    lambda: (10**5 * repeat_and_select(pure(1), mean=3.5, shape=1e-200)).delta(1e50),
    lambda: discrete_gaussian(0.001, sensitivity=10**9).group(1000).advantage(),
    lambda: (discrete_gaussian(1e-17) + laplace(10)).profile([0, 1e-9]),
    lambda: (gdp("1/3") + gaussian(1e-50)).without_replacement(1000, 1000).loss_distribution(),
    lambda: gaussian(1e-9).poisson(1e-200).mean(),
    lambda: (randomized_response(499, 3) + zcdp(1e-200)).epsilon(1e-9),
]


@pytest.mark.parametrize("far", FAR)
@pytest.mark.filterwarnings("error")
def test_far_parameters_are_answered_or_refused(far):
    """No error of Python's or numpy's, and no interval upside down."""
    try:
        found = far()
    except DitherError:
        return
    ends = found if isinstance(found, tuple) else (found,)
    assert all(e.lower <= e.upper for e in ends if hasattr(e, "lower"))


def test_a_sample_joined_at_zero_keeps_zero_inside_its_grid():
    """The other parts rule out a total above 0, and the same direction twice has 0.64.

    The upper end is that of the pair for both directions.
    """
    found = unlike().delta(0.0)
    assert 0.6399999 < found.lower <= 0.64 <= found.upper < 0.67


def test_groups_beyond_all_lists_lose_what_a_pure_mechanism_does():
    """10**6 steps of scale 1, 10**18 times."""
    found = discrete_laplace(1, sensitivity=10**6).group(10**18).epsilon(0)
    assert found.upper == 1e24
    assert found.one_sided


def test_everything_above_the_largest_loss_is_exact():
    """There delta is the chance of an infinite loss, as it was stated."""
    found = (pure(1.0) + approximate(0.5, 1e-7)).delta(2.0)
    assert found.lower == found.upper == 1e-7


def test_searches_of_next_to_nothing_lose_next_to_nothing():
    """Roots of what is beyond the doubles; the pure bound says it best."""
    for mean in (1, 10):
        found = repeat_and_select(pure(1e-200), mean=mean)
        assert found.charge.epsilon == 3 * Fraction("1e-200")
        assert found.epsilon(0).upper <= 3.0000001e-200


@pytest.mark.parametrize("delta", [1e-291, 1e-300, 5e-324])
def test_discrete_noise_has_an_epsilon_at_every_delta(delta):
    """Beyond what a list of outcomes holds zCDP has one: with rho 1/200, about sqrt(4·rho·log)."""
    found = discrete_gaussian(10.0).epsilon(delta)
    continuous = gaussian(10.0).epsilon(delta).upper
    assert 0.99 * continuous < found.upper < 1.02 * continuous
    assert found.lower <= found.upper
    sampled = (3 * discrete_gaussian(10.0).poisson(0.5)).epsilon(delta)
    assert 0 <= sampled.lower <= sampled.upper
