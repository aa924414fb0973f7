"""What is asked of each group: aggregates, and the query that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither.plan.expressions import Expression
from dither.plan.kinds import Value
from dither.plan.relations import Relation

__all__ = [
    "Aggregate",
    "Count",
    "CountUnits",
    "CountValues",
    "Key",
    "Mean",
    "Output",
    "Quantile",
    "Query",
    "Ratio",
    "Sum",
    "Variance",
]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """The root of all aggregates."""


@dataclass(frozen=True, slots=True)
class Count(Aggregate):
    """``COUNT(*)``: rows."""


@dataclass(frozen=True, slots=True)
class CountValues(Aggregate):
    """``COUNT(x)``: rows in which the operand is not NULL."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class CountUnits(Aggregate):
    """``COUNT(DISTINCT unit)``: protected units."""


@dataclass(frozen=True, slots=True)
class Sum(Aggregate):
    """``SUM(x)``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Mean(Aggregate):
    """``AVG(x)``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Variance(Aggregate):
    """``VAR_SAMP/VAR_POP(x)``, or the standard deviation where ``root``."""

    operand: Expression
    sample: bool = True
    root: bool = False


@dataclass(frozen=True, slots=True)
class Quantile(Aggregate):
    """The value below which the share ``q`` of the rows lies; ``label`` says what was asked for.

    ``MIN`` and ``MAX`` are the extreme quantiles 0.005 and 0.995: the true extreme is one person's
    value and cannot be answered privately.
    """

    operand: Expression
    q: Fraction
    label: str = "quantile"


@dataclass(frozen=True, slots=True)
class Ratio(Aggregate):
    """One aggregate over another; both are counts, sums or units."""

    numerator: Aggregate
    denominator: Aggregate


@dataclass(frozen=True, slots=True)
class Output:
    """An aggregate under the name it is released by, with its weight in the budget."""

    name: str
    aggregate: Aggregate
    weight: Fraction = Fraction(1)


@dataclass(frozen=True, slots=True)
class Key:
    """A grouping expression under the name it is released by.

    ``values`` are the public keys where they are declared for this query alone; otherwise they
    follow from the public facts of the expression, or are discovered.
    """

    name: str
    expression: Expression
    values: tuple[Value, ...] | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A whole question: rows, keys and outputs, and how the released frame is ordered.

    ``order`` (names, and whether descending) and ``limit`` act on released values only
    (post-processing, free). ``discover`` asks
    for keys to be discovered even where public facts would list them.
    """

    relation: Relation
    keys: tuple[Key, ...]
    outputs: tuple[Output, ...]
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    discover: bool = False
