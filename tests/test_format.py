"""Numbers as text: rounding goes where the sentence stays true."""

import math
import re
from decimal import Decimal
from fractions import Fraction as F

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dither import _format as fmt


def read(text: str) -> F:
    """A printed number, exact."""
    return F(Decimal(text.replace(",", "")))


positive = st.fractions(F(1, 10**30), 10**12)


@settings(deadline=None)
@given(positive, st.integers(2, 8))
def test_losses_are_rounded_up_and_what_remains_down(value, digits):
    """Never below, never above the exact number; off by less than one in the last digit."""
    up, down = fmt.loss_text(value, digits), fmt.remaining(value, digits)
    assert read(down) <= value <= read(up)
    assert read(up) - read(down) <= value * F(10) ** (1 - digits) * F(101, 100)


def test_a_third_is_told_alike_everywhere():
    """The summary, the terminal and the picture share one copy of the rule."""
    from dither.plots._canvas import foot_line

    assert fmt.cost_text(F(1, 3), F(1, 3 * 10**7)) == "ε = 0.3334, δ = 3.334e-8"
    assert foot_line(F(1, 3), 0, None, "") == "ε = 0.3334"


finite = st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-6)


@settings(deadline=None)
@given(st.tuples(finite, finite, finite), st.booleans())
@example((3.0, 203.0, 2.5), False)
def test_what_is_shown_of_an_interval_holds_it(numbers, whole):
    """Ends go outwards, the value lies inside, and no half-width is below the true one."""
    low, value, high = sorted(round(n) if whole else n for n in numbers)
    text = fmt.interval(value, low, high)
    exact = [F(n) for n in (low, value, high)]
    slack = F(1, 10**11)
    if "±" in text:
        at, half = (read(part) for part in text.split(" ± "))
        assert at - half <= exact[0] + slack
        assert exact[2] - slack <= at + half
        assert half > 0 or exact[2] - exact[0] <= slack
    else:
        found = re.fullmatch(r"(\S+) \[(\S+), (\S+)\]", text)
        at, bottom, top = map(read, found.groups())
        wide = (exact[2] - exact[0]) * F(1, 10) + slack
        assert bottom - slack <= at <= top + slack
        assert exact[0] - wide <= bottom <= exact[0] + slack
        assert exact[2] - slack <= top <= exact[2] + wide
    assert "nan" not in text
    assert "-0 " not in f"{text} "


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ((-35, 0, 864), "0 [0, 864]"),
        ((1.31, 0.6, 1.0), "1.00 [0.60, 1.00]"),
        ((-0.02, 0.0, 0.5), "0.00 [0.00, 0.50]"),
        ((22.5, 22.5, 22.5), "22.5 ± 0"),
        ((math.nan, -math.inf, math.inf), "unknown"),
        ((3.0, -math.inf, math.inf), "3 [-∞, ∞]"),
        ((10**6, 10**6 - 3, 10**6 + 3), "1,000,000 ± 3"),
        ((0.1249, 0.0, 0.25), "0.12 [0.00, 0.25]"),
        ((-0.1249, -0.25, 0.0), "-0.12 [-0.25, 0.00]"),
        ((0.5, 0.0, 1.0), "0.50 ± 0.50"),
    ],
)
def test_impossible_numbers_are_not_shown(found, text):
    """A value is moved into its interval; what is not known says so."""
    assert fmt.interval(*found) == text


@pytest.mark.parametrize("share", [0.9999999, 1 - 1e-15, 0.99951])
def test_what_is_not_certain_is_not_told_so(share):
    """No share below one is told as all of it."""
    assert fmt.percent(share) == "> 99.9 %"
    assert fmt.odds(share) == "nearly always"
