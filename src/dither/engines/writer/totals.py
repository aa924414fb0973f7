"""Sums of rows and of units as SQL integers, and the proof that none leaves 128 bits."""

from __future__ import annotations

from sqlglot import exp

from dither.engines.writer import forms
from dither.engines.writer.forms import binary, call, identifier
from dither.errors import BoundsError
from dither.plan.job import Leaves, Measurement, Total

__all__ = ["MOST_ROWS", "centred", "check_overflow", "count_of", "sum_name", "sum_of", "times"]

MOST_ROWS = 2**40
"""No table is assumed to have more rows than this; the proofs against overflow use it."""


def count_of(name: str) -> exp.Expression:
    """How many values a column has."""
    return exp.Count(this=identifier(name))


def sum_name(total: Total, name: str) -> str:
    """The name of a raw sum, the same for equal ones."""
    return f"square_{name}_{total.centre}" if total.square else f"sum_{name}"


def sum_of(total: Total, name: str) -> exp.Expression:
    """The raw sum: of the lattice's integers, or of their squared distances to the centre."""
    value = identifier(name)
    if not total.square:
        return call("SUM", value)
    distance = binary("-", value, forms.integer(total.centre))
    if max(abs(total.lower - total.centre), abs(total.upper - total.centre)) > 2**31:
        distance = forms.cast(distance, "HUGEINT")
    return call("SUM", binary("*", distance, distance.copy()))


def centred(total: Total, summed: exp.Expression, count: exp.Expression) -> exp.Expression:
    """The sum of the rows' integers: each row's centre is taken off here, once for all."""
    whole = call("COALESCE", summed, forms.integer(0, "HUGEINT"))
    centre = total.square_centre if total.square else total.centre
    if centre == 0:
        return whole
    return binary(
        "-", whole, binary("*", forms.cast(count, "HUGEINT"), forms.integer(centre, "HUGEINT"))
    )


def times(whole: exp.Expression, parts: int) -> exp.Expression:
    """A whole number counted in parts."""
    return whole if parts == 1 else binary("*", whole, forms.integer(parts, "HUGEINT"))


def check_overflow(measurement: Measurement, max_rows: int) -> None:
    """Refuse what could leave the engine's 128-bit integers, from public facts alone."""
    if isinstance(measurement, Leaves):
        cells = measurement.upper - measurement.lower + 1
        if measurement.width < 1 or measurement.bins * measurement.width < cells:
            raise BoundsError("the leaves of a histogram do not cover its bounds")
        if measurement.parts * MOST_ROWS * max_rows >= 2**126:
            raise BoundsError("max_rows is too large for the engine's 128-bit integers; lower it")
    if not isinstance(measurement, Total):
        return
    ends = (measurement.lower, measurement.upper, measurement.centre)
    centre = measurement.square_centre
    largest = max(*(abs(e) for e in ends), 1) ** (2 if measurement.square else 1) * 4 + abs(centre)
    largest = max(largest, measurement.magnitude)
    if largest * MOST_ROWS * max(max_rows, 1) >= 2**126 or max(abs(e) for e in ends) > 2**62:
        raise BoundsError(
            "a sum could leave the engine's 128-bit integers; declare narrower bounds or a larger "
            "step"
        )
