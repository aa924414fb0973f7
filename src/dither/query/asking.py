"""Aggregates and keys as an analyst writes them in Python: ``dt.count()``, ``dt.mean("cost")``.

Each is a small value that waits for a table: the operand is text in SQL's expression language and
is read when ``.agg(...)`` or ``.group_by(...)`` meets the table's columns.
"""

# ruff: noqa: A001 - the names are SQL's, and are used as dt.sum, dt.min and dt.max
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dither.errors import ArgumentError
from dither.numeric.rational import exact, positive
from dither.plan import aggregates as ag
from dither.plan.expressions import Expression

__all__ = [
    "Asked",
    "Bins",
    "bins",
    "count",
    "count_units",
    "max",
    "mean",
    "median",
    "min",
    "quantile",
    "ratio",
    "std",
    "sum",
    "var",
]

EXTREME = Fraction(1, 200)
"""How far from the end the quantiles lie that stand for MIN and MAX."""

Read = Callable[[str], Expression]


@dataclass(frozen=True, slots=True)
class Asked:
    """An aggregate that waits for its table. ``weight`` is its share of the budget."""

    make: Callable[[Read], ag.Aggregate]
    weight: Fraction


@dataclass(frozen=True, slots=True)
class Bins:
    """A grouping key that cuts a number at ``edges``."""

    operand: str
    edges: tuple[Fraction, ...]


def bins(x: str, edges: Sequence[float | int | str | Fraction]) -> Bins:
    """A grouping key: the number cut into ranges ``[edges[i], edges[i+1])``, the last one closed.

    Parameters
    ----------
    x : str
        A numeric column or expression.
    edges : sequence of numbers
        At least two, rising; values outside count in the first or last range.

    Examples
    --------
    >>> bins("age", [0, 18, 65, 110]).edges[1]
    Fraction(18, 1)
    """
    if len(edges) < 2:
        raise ArgumentError("edges must be at least two numbers")
    return Bins(x, tuple(exact(e, "edges") for e in edges))


def count(x: str | None = None, *, weight: Any = 1) -> Asked:
    """Rows, or rows in which ``x`` is not NULL: ``COUNT(*)`` and ``COUNT(x)``."""
    if x is None:
        return _asked(lambda _: ag.Count(), weight)
    return _asked(lambda read: ag.CountValues(read(x)), weight)


def count_units(*, weight: Any = 1) -> Asked:
    """Distinct protected units: ``COUNT(DISTINCT unit)``; rows where a row is a person."""
    return _asked(lambda _: ag.CountUnits(), weight)


def sum(x: str, *, weight: Any = 1) -> Asked:
    """The sum of a number with known bounds."""
    return _asked(lambda read: ag.Sum(read(x)), weight)


def mean(x: str, *, weight: Any = 1) -> Asked:
    """The mean of a number with known bounds."""
    return _asked(lambda read: ag.Mean(read(x)), weight)


def var(x: str, *, sample: bool = True, weight: Any = 1) -> Asked:
    """The variance of a number with known bounds (n - 1 in the denominator where ``sample``)."""
    return _asked(lambda read: ag.Variance(read(x), sample), weight)


def std(x: str, *, sample: bool = True, weight: Any = 1) -> Asked:
    """The standard deviation of a number with known bounds."""
    return _asked(lambda read: ag.Variance(read(x), sample, root=True), weight)


def median(x: str, *, weight: Any = 1) -> Asked:
    """The median of a number with known bounds."""
    return _asked(lambda read: ag.Quantile(read(x), Fraction(1, 2), "median"), weight)


def quantile(x: str, q: Any, *, weight: Any = 1) -> Asked:
    """The value below which the share ``q`` (0 to 1) of the rows lies."""
    share = exact(q, "q")
    if not 0 <= share <= 1:
        raise ArgumentError("q must lie in [0, 1]")
    return _asked(lambda read: ag.Quantile(read(x), share), weight)


def min(x: str, *, weight: Any = 1) -> Asked:
    """The 0.5 % quantile: the true minimum is one person's value and cannot be answered."""
    return _asked(lambda read: ag.Quantile(read(x), EXTREME, "min"), weight)


def max(x: str, *, weight: Any = 1) -> Asked:
    """The 99.5 % quantile: the true maximum is one person's value and cannot be answered."""
    return _asked(lambda read: ag.Quantile(read(x), 1 - EXTREME, "max"), weight)


def ratio(top: Asked, bottom: Asked, *, weight: Any = 1) -> Asked:
    """One count or sum over another, with an interval for the ratio."""
    return _asked(lambda read: ag.Ratio(top.make(read), bottom.make(read)), weight)


def _asked(make: Callable[[Read], ag.Aggregate], weight: Any) -> Asked:
    return Asked(make, positive(weight, "weight"))
