"""Where a certified bound of delta meets a target: the end is proved, and found in few steps."""

import math

import pytest

from dither.privacy.engines.search import invert

TINY = 1e-13


def smooth(e):
    """As log(delta) falls: the more steeply the further out."""
    return -(e**1.5) - 0.3 * e


def convex(e):
    """As under a heavy tail: less steeply."""
    return -3.0 * math.log1p(e)


def stepped(e):
    """In steps, of which one crosses any target."""
    return -0.25 * math.floor(4 * e)


def loose(e):
    """A bound that says nothing far from where it was made, and is no number beyond."""
    return smooth(e) if 1.0 <= e <= 3.0 else math.nan if e > 4.0 else 0.0


def rounded(e):
    """To a few digits, so that neighbours are equal: no line leads there."""
    return round(smooth(e), 9) - 1e-10


LAWS = [smooth, convex, stepped, rounded]


@pytest.mark.parametrize("start", [0.0, 1e-9, 0.7, 2.0, 2.1, 5.0, 40.0])
@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_both_ends_are_proved(law, start):
    """The upper end passes, the lower one does not fall below, and they are next to each other."""
    for target in (-0.3700000003, -2.6, -4.1000000003):
        above = invert(law, target, start, above=True, tiny=TINY)
        below = invert(law, target, start, above=False, tiny=TINY)
        assert law(above) <= target
        assert law(below) >= target or below == 0
        assert abs(above - below) <= 4 * TINY * max(1.0, above)


def test_what_passes_at_once():
    """A target that 0 passes is reached at 0, and one that nothing passes nowhere."""
    assert invert(smooth, 0.5, 2.0, above=True, tiny=TINY) == 0
    assert invert(lambda e: 1.0, 0.5, 2.0, above=True, tiny=TINY) == math.inf
    assert invert(lambda e: -math.inf, 0.5, 2.0, above=True, tiny=TINY) == 0


@pytest.mark.parametrize("start", [1.1, 2.0, 2.9])
def test_a_bound_that_is_tight_near_its_start(start):
    """The line through two places does not lead to where the bound says nothing."""
    for target in (-1.5, -3.0, -5.0):
        above = invert(loose, target, start, above=True, tiny=TINY)
        assert loose(above) <= target < loose(above - 1e-9)


@pytest.mark.parametrize("start", [1.9, 2.5, 9.0])
def test_few_values_are_asked(start):
    """An engine's value is dear: ten or so, from anywhere near."""
    asked = []

    def law(e):
        asked.append(e)
        return smooth(e)

    invert(law, -4.1, start, above=True, tiny=TINY)
    assert len(asked) <= 14


def test_a_rough_end_is_found_where_the_bound_is_tight_in_a_narrow_place_alone():
    """It says nothing a millionth further out, and a ten-thousandth is asked for."""

    def lower(epsilon: float) -> float:
        away = 3.4 - epsilon
        return -16.2 + 1e6 * away if away < 1e-6 else -math.inf

    found = invert(lower, -16.118, 3.4, above=False, tiny=1e-4)
    assert 3.4 - 1e-6 < found <= 3.4 - 8.1e-8
