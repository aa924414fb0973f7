"""What accounting refuses, provoked through the public doors: each names the argument."""

from fractions import Fraction

import numpy as np
import pytest

from dither import accounting, privacy
from dither.accounting import Move, PureFilter, RenyiFilter, game, theorems
from dither.errors import ArgumentError


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
