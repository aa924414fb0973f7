# ruff: noqa: A001 - the names are SQL's, and are used as dt.sum, dt.min and dt.max
"""Aggregates and keys that wait for a table: ``dt.count()``, ``dt.mean("cost")``, ``dt.bins``.

They are small values: an operand is text in SQL's expression language, read when ``agg`` or
``group_by`` meets the table's columns, and arithmetic on them is arithmetic on what is released.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, overload

from dither import _checks as check
from dither.errors import ArgumentError
from dither.plan import aggregates as ag
from dither.plan.expressions import Expression
from dither.plan.lowering.expanded import filtered
from dither.plan.released import Constant, apply

__all__ = [
    "AggregateRequest",
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
class AggregateRequest:
    """An aggregate that waits for its table. ``weight`` is its share of the budget.

    What is calculated from several, as ``100 * dt.mean("x")`` or ``dt.sum("x") - dt.sum("y")``, is
    calculated from the released values, and costs nothing beside them.

    Examples
    --------
    >>> share = 100 * count("x") / count()
    >>> share.weight
    Fraction(1, 1)
    """

    make: Callable[[Read], ag.AggregateFunction]
    weight: Fraction
    said: tuple[str, ...] = field(default=(), compare=False)
    """Of a plain function: its name, its operand or ``""``, and the condition of ``where``."""

    def where(self, condition: str) -> AggregateRequest:
        """Of the rows alone for which a condition is true: ``FILTER (WHERE condition)``.

        Parameters
        ----------
        condition : str
            In SQL's expression language.
        """
        said = (*self.said, condition) if len(self.said) == 2 else ()
        return replace(
            self, make=lambda read: filtered(self.make(read), read(condition)), said=said
        )

    def __add__(self, other: Any) -> AggregateRequest:
        return _calculated("+", self, other)

    def __radd__(self, other: Any) -> AggregateRequest:
        return _calculated("+", other, self)

    def __sub__(self, other: Any) -> AggregateRequest:
        return _calculated("-", self, other)

    def __rsub__(self, other: Any) -> AggregateRequest:
        return _calculated("-", other, self)

    def __mul__(self, other: Any) -> AggregateRequest:
        return _calculated("*", self, other)

    def __rmul__(self, other: Any) -> AggregateRequest:
        return _calculated("*", other, self)

    def __truediv__(self, other: Any) -> AggregateRequest:
        return _calculated("/", self, other)

    def __rtruediv__(self, other: Any) -> AggregateRequest:
        return _calculated("/", other, self)

    def __neg__(self) -> AggregateRequest:
        return _calculated("*", -1, self)

    def __abs__(self) -> AggregateRequest:
        return _calculated("ABS", self)

    def __round__(self, digits: int = 0) -> AggregateRequest:
        return _calculated("ROUND", self, check.whole("digits", digits, None))


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
    return Bins(x, tuple(check.exact("edges", e) for e in edges))


def count(x: str | None = None, *, weight: Any = 1) -> AggregateRequest:
    """Rows, or rows in which ``x`` is not NULL: ``COUNT(*)`` and ``COUNT(x)``."""
    if x is None:
        return _asked(lambda _: ag.Count(), weight, "count", "")
    return _asked(lambda read: ag.CountValues(read(x)), weight, "count", x)


def count_units(*, weight: Any = 1) -> AggregateRequest:
    """Distinct protected units: ``COUNT(DISTINCT unit)``; rows where a row is a person."""
    return _asked(lambda _: ag.CountUnits(), weight)


def sum(x: str, *, weight: Any = 1) -> AggregateRequest:
    """The sum of a number with known bounds."""
    return _asked(lambda read: ag.Sum(read(x)), weight, "sum", x)


def mean(x: str, *, weight: Any = 1) -> AggregateRequest:
    """The mean of a number with known bounds."""
    return _asked(lambda read: ag.Mean(read(x)), weight, "mean", x)


def var(x: str, *, sample: bool = True, weight: Any = 1) -> AggregateRequest:
    """The variance of a number with known bounds (n - 1 in the denominator where ``sample``)."""
    return _asked(lambda read: ag.Variance(read(x), sample), weight)


def std(x: str, *, sample: bool = True, weight: Any = 1) -> AggregateRequest:
    """The standard deviation of a number with known bounds."""
    return _asked(lambda read: ag.Variance(read(x), sample, root=True), weight)


def median(x: str, *, weight: Any = 1) -> AggregateRequest:
    """The median of a number with known bounds."""
    return _asked(lambda read: ag.Quantile(read(x), Fraction(1, 2), "median"), weight)


@overload
def quantile(
    x: str, q: Sequence[Any], *, discrete: bool = False, weight: Any = 1
) -> list[AggregateRequest]: ...
@overload
def quantile(x: str, q: Any, *, discrete: bool = False, weight: Any = 1) -> AggregateRequest: ...
def quantile(
    x: str, q: Any, *, discrete: bool = False, weight: Any = 1
) -> AggregateRequest | list[AggregateRequest]:
    """The value below which the share ``q`` (0 to 1) of the rows lies.

    Of a list of shares, one output each, named after its per cent; all share one tree and the
    weight of one output. ``discrete``: a value that can occur, as ``QUANTILE_DISC`` gives.
    """
    if isinstance(q, list | tuple):
        if not q:
            raise ArgumentError("q must hold one share at least")
        each = check.positive("weight", weight) / len(q)
        return [_quantile(x, one, discrete, each) for one in q]
    return _quantile(x, q, discrete, weight)


def _quantile(x: str, q: Any, discrete: bool, weight: Any) -> AggregateRequest:
    share = check.exact("q", q)
    if not 0 <= share <= 1:
        raise ArgumentError("q must lie in [0, 1]")
    label = "disc" if discrete else "quantile"
    return _asked(lambda read: ag.Quantile(read(x), share, label), weight)


def min(x: str, *, weight: Any = 1) -> AggregateRequest:
    """The 0.5 % quantile: the true minimum is one person's value and cannot be answered."""
    return _asked(lambda read: ag.Quantile(read(x), EXTREME, "min"), weight, "min", x)


def max(x: str, *, weight: Any = 1) -> AggregateRequest:
    """The 99.5 % quantile: the true maximum is one person's value and cannot be answered."""
    return _asked(lambda read: ag.Quantile(read(x), 1 - EXTREME, "max"), weight, "max", x)


def ratio(top: AggregateRequest, bottom: AggregateRequest, *, weight: Any = 1) -> AggregateRequest:
    """One count or sum over another, with an interval for the ratio."""
    return _asked(lambda read: ag.Ratio(top.make(read), bottom.make(read)), weight)


def _calculated(op: str, *operands: Any) -> AggregateRequest:
    """An operation on what several aggregates release; a number stands for itself."""

    def part(operand: Any) -> AggregateRequest:
        if isinstance(operand, AggregateRequest):
            return operand
        value = check.exact("a number beside an aggregate", operand)
        constant = Constant(int(value) if isinstance(operand, int) else value)
        return AggregateRequest(lambda _: constant, Fraction(0))

    parts = [part(x) for x in operands]
    weight = builtins.max(p.weight for p in parts)
    return AggregateRequest(lambda read: apply(op, *(p.make(read) for p in parts)), weight)


def _asked(
    make: Callable[[Read], ag.AggregateFunction], weight: Any, *said: str
) -> AggregateRequest:
    return AggregateRequest(make, check.positive("weight", weight), said)


def said_again(said: Sequence[str]) -> AggregateRequest:
    """The aggregate that has this as its ``said``.

    Raises
    ------
    ValueError
        There is none.
    """
    plain = {"count": count, "sum": sum, "mean": mean, "min": min, "max": max}
    name, operand, *condition = said
    if not all(isinstance(text, str) for text in said) or len(condition) > 1:
        raise ValueError("an aggregate is its function's name, its operand and a condition")
    made = count() if (name, operand) == ("count", "") else plain[name](operand)
    return made.where(*condition) if condition else made
