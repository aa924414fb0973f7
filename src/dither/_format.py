"""Numbers and values as text: the one place that decides how a loss, an interval or a share is
written.

A sentence on a screen is a claim, so rounding goes in the direction in which the claim stays true:
a loss and a delta up, what remains of a budget down, the ends of an interval outwards, a half-width
up. Everything is rounded from exact rationals; a float stands for the number that it is, but for a
float that a person typed (``typed``), which is read as it prints.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from typing import Any

from dither._notebook import Shown

__all__ = [
    "Printable",
    "argument_text",
    "at_least",
    "at_most",
    "cost_text",
    "count_text",
    "display_text",
    "half_width",
    "interval",
    "level",
    "loss_text",
    "number_text",
    "odds",
    "percent",
    "remaining",
    "sentence",
    "wrapped",
]

Real = int | float | Fraction

INFINITY = "∞"

TIE = "\N{NO-BREAK SPACE}"

WIDTH = 79
"""Columns of a line for people."""

LONGEST = 60
"""Characters of a value on a screen."""


class Printable(Shown):
    """A result that shows its text wherever it is shown: by ``print``, at a prompt, in a notebook.

    Its fields would be pages of digits there, so no subclass gets the `repr` that a dataclass
    makes.
    """

    __slots__ = ()

    def summary(self) -> str:
        """A few lines for people."""
        raise NotImplementedError

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # A dataclass keeps the one that stands in the class itself.
        cls.__repr__ = Printable.__repr__  # type: ignore[method-assign]

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return self.summary()


def display_text(value: object, longest: int = LONGEST) -> str:
    """A value of a domain, or a key of a release, in one line that cannot steer a terminal.

    What people typed may hold line breaks, colours and other control codes. Frames hold it as it
    is; a screen or a picture shows their escapes. A cell of several values has a cross between.

    Examples
    --------
    >>> display_text(None), display_text("two\\nlines"), len(display_text("x" * 300))
    ('NULL', 'two\\\\nlines', 60)
    >>> display_text(("north", 3)), display_text("a long name", 7)
    ('north × 3', 'a long…')
    """
    if value is None:
        return "NULL"
    if isinstance(value, tuple):
        text = " × ".join(display_text(one) for one in value)
    else:
        text = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(value)
        )
    return text if len(text) <= longest else text[: longest - 1] + "…"


def sentence(text: str) -> str:
    """A remark with its capital and its full stop.

    Examples
    --------
    >>> sentence("intervals are about noise")
    'Intervals are about noise.'
    """
    return text[:1].upper() + text[1:].rstrip(".") + "."


def wrapped(text: str, indent: str = "", *, first: str | None = None) -> list[str]:
    """A text in lines of ``WIDTH``, all but the first behind ``indent``.

    Examples
    --------
    >>> wrapped("short")
    ['short']
    """
    head = indent if first is None else first
    # A number stays in one line with its sign: "< 0.1 %".
    tied = text.replace(" %", f"{TIE}%").replace("< ", f"<{TIE}").replace("> ", f">{TIE}")
    lines = textwrap.wrap(
        tied, WIDTH, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False
    )
    return [line.replace(TIE, " ") for line in lines] or [head]


def count_text(number: int, one: str, many: str = "") -> str:
    """How many there are of something, which is in the singular where it is one.

    Examples
    --------
    >>> count_text(1, "report"), count_text(2000, "report"), count_text(0, "person", "people")
    ('1 report', '2,000 reports', '0 people')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def loss_text(value: Real | None, digits: int = 4) -> str:
    """An epsilon, rho or delta that is claimed or charged: rounded up. ``None`` is not a bound.

    Examples
    --------
    >>> loss_text(Fraction(1, 3)), loss_text(0.5), loss_text(1e-20), loss_text(0), loss_text(None)
    ('0.3334', '0.5', '1e-20', '0', '∞')
    >>> loss_text(Fraction(1234567)), loss_text(Fraction(99999, 10))
    ('1,235,000', '10,000')
    """
    return _rounded(value, digits, ROUND_CEILING)


def argument_text(value: Real | None, digits: int = 6) -> str:
    """A loss as an argument or in a table: rounded up, in digits that a program reads as well.

    Examples
    --------
    >>> argument_text(1 / 3), argument_text(1234567.0), argument_text(1.0)
    ('0.333334', '1234570', '1')
    """
    return loss_text(value, digits).replace(",", "")


def remaining(value: Real | None, digits: int = 4) -> str:
    """What may still be spent, or a loss that is proved from below: rounded down.

    Examples
    --------
    >>> remaining(Fraction(2, 3)), remaining(Fraction(1, 2))
    ('0.6666', '0.5')
    """
    return _rounded(value, digits, ROUND_FLOOR)


def at_least(value: float, places: int = 3) -> str:
    """A bound from below, such as an audit's: rounded down to so many decimals.

    Examples
    --------
    >>> at_least(0.12399), at_least(1.0), at_least(math.inf)
    ('0.123', '1.000', '∞')
    """
    return _to_places(value, places, math.floor)


def at_most(value: float, places: int = 3) -> str:
    """A bound from above, such as the upper end of an interval: rounded up to so many decimals.

    Examples
    --------
    >>> at_most(0.12301), at_most(1.0), at_most(-0.5, 0)
    ('0.124', '1.000', '0')
    """
    return _to_places(value, places, math.ceil)


def _to_places(value: float, places: int, turn: Callable[[Fraction], int]) -> str:
    if not math.isfinite(value):
        return number_text(value)
    quantum = Fraction(1, 10**places)
    return _fixed(turn(Fraction(repr(float(value))) / quantum) * quantum, quantum)


def number_text(value: Real | None, digits: int = 4) -> str:
    """A number that claims nothing about privacy: rounded to the nearest.

    Examples
    --------
    >>> number_text(Fraction(2, 3)), number_text(1234.56), number_text(-0.0), number_text(3.2e17)
    ('0.6667', '1,235', '0', '3.2e17')
    """
    return _rounded(value, digits, ROUND_HALF_EVEN)


def cost_text(epsilon: Real | None, delta: Real | None = None) -> str:
    """A charge in a few words, rounded up; a delta of 0 goes without saying.

    Examples
    --------
    >>> cost_text(Fraction(1, 3)), cost_text(Fraction(1, 2), Fraction(1, 10**20)), cost_text(None)
    ('ε = 0.3334', 'ε = 0.5, δ = 1e-20', 'ε = ∞')
    """
    return f"ε = {loss_text(epsilon)}" + (f", δ = {loss_text(delta)}" if delta else "")


def percent(share: Real, places: int = 1, turn: Callable[[Fraction], int] = round) -> str:
    """A share as a percentage, to the nearest; what is not quite all or nothing never says so.

    With ``turn`` it is a bound: `math.ceil` of what is not exceeded, `math.floor` of what is
    reached.

    Examples
    --------
    >>> percent(Fraction(2, 3)), percent(0.25), percent(1), percent(0.0)
    ('66.7 %', '25.0 %', '100 %', '0 %')
    >>> percent(0.999999), percent(1e-9)
    ('> 99.9 %', '< 0.1 %')
    >>> percent(0.7311, turn=math.ceil), percent(0.7311, turn=math.floor)
    ('73.2 %', '73.1 %')
    """
    hundred = 100 * _exact(share)
    if hundred in (0, 100):
        return f"{hundred} %"
    quantum = Fraction(1, 10**places)
    rounded = turn(hundred / quantum) * quantum
    if turn is not round:
        return f"{_fixed(rounded, quantum)} %"
    if rounded == 0 and hundred > 0:
        return f"< {_fixed(quantum, quantum)} %"
    if rounded == 100 and hundred < 100:
        return f"> {_fixed(100 - quantum, quantum)} %"
    return f"{_fixed(rounded, quantum)} %"


def level(confidence: float) -> str:
    """A confidence as it was asked for: its digits are never rounded away.

    Examples
    --------
    >>> level(0.95), level(0.999), level(0.9999999)
    ('95 %', '99.9 %', '99.99999 %')
    """
    return f"{_plain(Decimal(repr(confidence)) * 100)} %"


def odds(probability: float) -> str:
    """A probability in two digits; only what is certain to the last digit is ``never``.

    Examples
    --------
    >>> odds(0.0), odds(0.123), odds(0.999), odds(1e-12)
    ('never', '0.12', 'nearly always', 'nearly never')
    """
    if probability <= 0:
        return "never"
    if probability >= 1:
        return "always"
    if probability < 1e-9:
        return "nearly never"
    return number_text(probability, 2) if probability < 0.995 else "nearly always"


def half_width(value: float) -> str:
    """How far an interval reaches to either side: three digits, rounded up.

    Examples
    --------
    >>> half_width(0.2341), half_width(1234.5), half_width(9.0), half_width(math.inf)
    ('0.235', '1,235', '9', '∞')
    """
    return _rounded(value, max(3, _exponent(value) + 1 if value >= 1 else 3), ROUND_CEILING)


def interval(
    value: float | None,
    lower: float | None,
    upper: float | None,
    possible: Sequence[float] | None = None,
    *,
    ends: bool = False,
) -> str:
    """A value with its interval, in the digits that the interval leaves meaningful.

    The value is moved into the interval, whose ends know what is impossible. Its ends are rounded
    outwards, and a half-width up, so that what is shown holds all that was found. Rounded so, a
    half-width may reach beyond what is ``possible``: then the ends are shown. With ``ends`` they
    always are, as in a table where intervals stand one below the other.

    Examples
    --------
    >>> interval(1234, 1225, 1243), interval(2.64, 0.0, 5.8123), interval(None, None, None)
    ('1,234 ± 9', '2.6 [0.0, 5.9]', 'unknown')
    >>> interval(-35, 0, 864), interval(1599.2, 0.0, 1e6), interval(0.7, 0.2, math.inf)
    ('0 [0, 864]', '0 [0, 1,000,000]', '0.7 [0.2, ∞]')
    >>> interval(22.5, 22.25, 22.75), interval(1000.0, 50.0, 1950.0), interval(0.125, 0.0, 0.25)
    ('22.50 ± 0.25', '1,000 ± 950', '0.12 [0.00, 0.25]')
    >>> interval(37.6, 15.0, 60.0), interval(37.6, 15.0, 60.0, (15, 60))
    ('38 ± 23', '38 [15, 60]')
    >>> interval(39.87654, 38.6, 41.2512, ends=True), interval(5, 4, 6, ends=True)
    ('39.9 [38.6, 41.3]', '5 [4, 6]')
    >>> interval(83.0, 83.0, 83.0, ends=True), interval(0.5, -math.inf, 2.0, ends=True)
    ('83 [83, 83]', '0.5 [-∞, 2]')
    """
    if value is None or lower is None or upper is None or math.isnan(value):
        return "unknown"
    if isinstance(value, int) and isinstance(lower, int) and isinstance(upper, int):
        shown = min(max(value, lower), upper)
        if shown - lower == upper - shown and not ends:
            return f"{shown:,} ± {upper - shown:,}"
        return f"{shown:,} [{lower:,}, {upper:,}]"
    if not (math.isfinite(lower) and math.isfinite(upper)):
        first, last = remaining(lower, 2), loss_text(upper, 2)
        return f"{number_text(min(max(value, lower), upper), 2)} [{first}, {last}]"
    low, high = _exact(lower), _exact(upper)
    at = min(max(_exact(value), low), high)
    half = (high - low) / 2
    if not half:
        alone = _plain(_decimal(at, 12))
        return f"{alone} [{alone}, {alone}]" if ends else f"{alone} ± 0"
    quantum = Fraction(10) ** (_exponent(half) - 1)
    shown_at = min(max(round(at / quantum) * quantum, low), high)
    # Where the interval cuts the rounded value off, it is shown as it is cut.
    rounded = round(at / quantum) * quantum
    reach = math.ceil(max(rounded - low, high - rounded) / quantum) * quantum
    # An interval on one side of 0, as of a variance, is not shown to reach across it.
    across = rounded - reach < 0 <= low or high <= 0 < rounded + reach
    if possible is not None:
        across |= rounded - reach < possible[0] or rounded + reach > possible[1]
    if not ends and not across and abs((high - at) - (at - low)) <= Fraction(2, 100) * (high - low):
        return f"{_fixed(rounded, quantum)} ± {_fixed(reach, quantum)}"
    bottom, top = _end(low, quantum, math.floor), _end(high, quantum, math.ceil)
    # A value that an end cuts off may lose more digits than that end: then it is shown as the end.
    inside = max(bottom, min(top, (round(shown_at, _places(quantum)), quantum)))
    return f"{_fixed(*inside)} [{_fixed(*bottom)}, {_fixed(*top)}]"


def _end(
    value: Fraction, quantum: Fraction, turn: Callable[[Fraction], int]
) -> tuple[Fraction, Fraction]:
    """An end, rounded outwards, or as it is where two digits more are all that it has; its step."""
    for finer in (quantum, quantum / 10, quantum / 100):
        near = round(value / finer) * finer
        if abs(near - value) <= abs(value) * Fraction(1, 10**12):
            return near, finer
    return turn(value / quantum) * quantum, quantum


def _places(quantum: Fraction) -> int:
    return min(12, max(0, -_exponent(quantum)))


def _fixed(value: Fraction, quantum: Fraction) -> str:
    places = _places(quantum)
    if abs(value) >= 10**15:
        return number_text(value)
    text = f"{_decimal(value, places):,.{places}f}"
    return text[1:] if text.startswith("-") and not value else text


def _decimal(value: Fraction, places: int) -> Decimal:
    whole = round(value * 10**places)
    return Decimal(whole).scaleb(-places)


def _exact(value: Real) -> Fraction:
    return Fraction(value)


def _exponent(value: Real) -> int:
    """The power of ten of the first digit."""
    if isinstance(value, float) and not math.isfinite(value):
        return 0
    exact = abs(_exact(value))
    if not exact:
        return 0
    guess = len(str(exact.numerator)) - len(str(exact.denominator))
    return guess if exact >= Fraction(10) ** guess else guess - 1


def _rounded(value: Real | None, digits: int, rounding: str) -> str:
    if value is None or (isinstance(value, float) and math.isinf(value)):
        return "-" + INFINITY if value is not None and value < 0 else INFINITY
    if isinstance(value, float) and math.isnan(value):
        return "unknown"
    # A float reads as it prints where it is what somebody typed; that is at most half a unit in
    # the last of its 17 digits away, so it is exact values that losses are kept in.
    exact = Fraction(repr(float(value))) if isinstance(value, float) else Fraction(value)
    context = Context(prec=digits, rounding=rounding)
    return _plain(context.divide(Decimal(exact.numerator), Decimal(exact.denominator)))


def _plain(value: Decimal) -> str:
    """Without trailing zeros; as a power of ten where that is shorter."""
    value = value.normalize()
    if not value:
        return "0"
    if -5 <= value.adjusted() < 15:
        return f"{value:,f}"
    return f"{value:e}".replace("e+", "e")
