"""What is asked of each group: aggregates, and the query that holds them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

from dither.errors import QueryError, UnsupportedError
from dither.plan.expressions import Expression
from dither.plan.relations import Relation
from dither.plan.schema import Value, with_kind
from dither.plan.text import Words, number, unwritable

__all__ = [
    "PAIRED",
    "AggregateFunction",
    "Count",
    "CountDistinct",
    "CountUnits",
    "CountValues",
    "Key",
    "Magnitudes",
    "Mean",
    "Mode",
    "Output",
    "Paired",
    "Quantile",
    "Query",
    "QueryOfUnits",
    "Ranks",
    "Ratio",
    "Released",
    "Sum",
    "UnitProduct",
    "UnitSizes",
    "Variance",
    "contains",
    "cube",
    "leaves",
    "rollup",
    "sql_of",
]

MOST_OUTPUTS = 200
MOST_SETS = 64
"""Sets of keys that one question groups by."""
ONE_SET = (
    "GROUPING tells sets of keys apart, and there is one set; leave it out, or write GROUP BY "
    "ROLLUP(...)"
)
MOST_CONTRIBUTED = 2**31
"""Groups of one unit, and rows of it in one, that a question may let count."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """The root of all aggregates."""


@dataclass(frozen=True, slots=True)
class Released(AggregateFunction):
    """The root of what is calculated from released values; see ``dither.plan.released``."""

    @property
    def inside(self) -> tuple[AggregateFunction, ...]:
        """What it is calculated from; nothing for a constant or a key."""
        return ()

    def sql(
        self, inner: Callable[[AggregateFunction], str], show: Callable[[Expression], str]
    ) -> str:
        """As SQL: ``inner`` writes aggregates, ``show`` the expressions of keys."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Count(AggregateFunction):
    """``COUNT(*)``: rows."""


@dataclass(frozen=True, slots=True)
class CountValues(AggregateFunction):
    """``COUNT(x)``: rows in which the operand is not NULL."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class CountUnits(AggregateFunction):
    """``COUNT(DISTINCT unit)``: protected units; those with a row for which ``where`` is true."""

    where: Expression | None = None


@dataclass(frozen=True, slots=True)
class CountDistinct(AggregateFunction):
    """``COUNT(DISTINCT x)``: distinct values; of each unit at most ``max_rows`` in a group.

    With ``others``, as in ``COUNT(DISTINCT x, y)``: distinct rows of values, none of them NULL.
    """

    operand: Expression
    others: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Sum(AggregateFunction):
    """``SUM(x)``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Mean(AggregateFunction):
    """``AVG(x)``."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class Variance(AggregateFunction):
    """``VAR_SAMP/VAR_POP(x)``, or the standard deviation where ``root``."""

    operand: Expression
    sample: bool = True
    root: bool = False


@dataclass(frozen=True, slots=True)
class Mode(AggregateFunction):
    """``MODE(x)``: the value that most rows have, chosen among those that are public."""

    operand: Expression


@dataclass(frozen=True, slots=True)
class UnitProduct(AggregateFunction):
    """``SUM(AVG(x) * AVG(y))`` over units, each with the averages of its own rows.

    Where x is y, half of the largest square is taken from each, so that a unit moves it by less.
    """

    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Quantile(AggregateFunction):
    """The value below which the share ``q`` of the rows lies; ``label`` says what was asked for.

    Its label is ``quantile``, ``median``, ``disc`` (``QUANTILE_DISC``, a value that can occur),
    ``min`` or ``max``. The last two are the quantiles 0.005 and 0.995: the true extreme is one
    person's value and cannot be answered privately.
    """

    operand: Expression
    q: Fraction
    label: str = "quantile"

    def __post_init__(self) -> None:
        if not 0 <= self.q <= 1:
            raise QueryError(f"a quantile must lie in [0, 1], got {number(self.q)}")


@dataclass(frozen=True, slots=True)
class Ranks(AggregateFunction):
    """How many rows lie below each edge of a grid of at most so many equal bins between bounds.

    It is released alone and without keys, one row for each edge.
    """

    operand: Expression
    bins: int


@dataclass(frozen=True, slots=True)
class Magnitudes(AggregateFunction):
    """How many values lie in each cell of the public grid of ``dither.plan.lowering.magnitudes``.

    It is released without keys, one row for each cell. ``origin``: the day about which a grid of
    days is finest; ``None`` for numbers.
    """

    operand: Expression
    origin: dt.date | None = None


@dataclass(frozen=True, slots=True)
class UnitSizes(AggregateFunction):
    """How many units have so many rows, or groups: one row for each cell of a public grid.

    ``by`` divides a unit's rows into groups; ``groups`` counts those, else the rows in the largest.
    """

    by: tuple[Expression, ...]
    groups: bool


PAIRED = {
    "COVAR_POP": "covar",
    "COVAR_SAMP": "covar",
    "CORR": "corr",
    "REGR_SLOPE": "slope",
    "REGR_INTERCEPT": "intercept",
    "REGR_R2": "r2",
    "REGR_COUNT": "count",
    "REGR_AVGX": "avg_x",
    "REGR_AVGY": "avg_y",
}
"""Statistics of two numbers, and the names that their outputs get."""


@dataclass(frozen=True, slots=True)
class Paired(AggregateFunction):
    """``CORR(y, x)``, ``REGR_SLOPE(y, x)`` and the like: of the rows in which neither is NULL."""

    word: str
    y: Expression
    x: Expression


DIVISIBLE = (Count, CountValues, CountUnits, CountDistinct, Sum)


@dataclass(frozen=True, slots=True)
class Ratio(AggregateFunction):
    """One aggregate over another; both are counts, sums or units."""

    numerator: AggregateFunction
    denominator: AggregateFunction

    def __post_init__(self) -> None:
        if not all(isinstance(x, DIVISIBLE) for x in (self.numerator, self.denominator)):
            raise UnsupportedError(
                "a ratio is of counts and sums; write SUM(x) / COUNT(*) and the like"
            )


def leaves(node: AggregateFunction) -> tuple[AggregateFunction, ...]:
    """The aggregates that a released value is calculated from, each once.

    Examples
    --------
    >>> from dither.plan.released import Constant, apply
    >>> leaves(apply("+", Count(), apply("*", Constant(2), Count())))
    (Count(),)
    """
    if not isinstance(node, Released):
        return (node,)
    return tuple(dict.fromkeys(leaf for x in node.inside for leaf in leaves(x)))


def contains(node: AggregateFunction, kind: type[Released]) -> bool:
    """Whether something of a kind stands in a released value."""
    if not isinstance(node, Released):
        return False
    return isinstance(node, kind) or any(contains(x, kind) for x in node.inside)


def sql_of(
    aggregate: AggregateFunction,
    show: Callable[[Expression], str],
    units: str,
    quantile: Callable[[Quantile], str],
) -> str:
    """An aggregate as SQL: ``show`` writes operands, ``units`` is the count of protected units.

    ``quantile`` writes quantiles, which are not the same SQL everywhere.
    """
    match aggregate:
        case Count():
            return "COUNT(*)"
        case CountUnits(where=None):
            return units
        case CountUnits(where=condition) if condition is not None:
            return f"{units} FILTER (WHERE {show(condition)})"
        case CountDistinct(operand=x, others=others):
            return f"COUNT(DISTINCT {', '.join(map(show, (x, *others)))})"
        case Paired(word=word, y=y, x=x):
            return f"{word}({show(y)}, {show(x)})"
        case CountValues(operand=x):
            return f"COUNT({show(x)})"
        case Sum(operand=x):
            return f"SUM({show(x)})"
        case Mean(operand=x):
            return f"AVG({show(x)})"
        case Mode(operand=x):
            return f"MODE({show(x)})"
        case UnitProduct(left=x, right=y):
            return f"SUM(AVG({show(x)}) * AVG({show(y)}))"
        case Variance(operand=x, sample=sample, root=root):
            name = ("STDDEV" if root else "VAR") + ("_SAMP" if sample else "_POP")
            return f"{name}({show(x)})"
        case Quantile():
            return quantile(aggregate)
        case Ranks(operand=x, bins=bins):
            return f"RANKS({show(x)}, {bins})"
        case Magnitudes(operand=x, origin=origin):
            return f"MAGNITUDES({show(x)})" if origin is None else f"DAYS({show(x)}, '{origin}')"
        case UnitSizes(by=by, groups=groups):
            shown = ", ".join(map(show, by))
            return f"{'GROUPS' if groups else 'ROWS'}_OF_A_UNIT({shown})"
        case Ratio(numerator=top, denominator=bottom):
            sides = (sql_of(one, show, units, quantile) for one in (top, bottom))
            return " / ".join(sides)
        case Released():
            return aggregate.sql(lambda x: sql_of(x, show, units, quantile), show)
    raise TypeError(type(aggregate).__name__)


@dataclass(frozen=True, slots=True)
class Output:
    """An aggregate under the name it is released by, with its weight in the budget."""

    name: str
    aggregate: AggregateFunction
    weight: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        if self.weight <= 0:
            raise QueryError(f"the weight of {self.name!r} must be above 0")

    @property
    def columns(self) -> tuple[str, str, str]:
        """The columns of the release that it gives: the value, and the ends of its interval."""
        return self.name, f"{self.name}_lower", f"{self.name}_upper"


@dataclass(frozen=True, slots=True)
class Key:
    """A grouping expression under the name it is released by.

    ``values`` are the public keys where they are declared for this query alone; otherwise they
    follow from the public facts of the expression, or are discovered.
    """

    name: str
    expression: Expression
    values: tuple[Value, ...] | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Key):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[object, ...]:
        listed = None if self.values is None else tuple(map(with_kind, self.values))
        return self.name, self.expression, listed


def rollup(number: int) -> tuple[tuple[int, ...], ...]:
    """The sets of so many keys that ROLLUP means: all of them, all but the last, ..., none."""
    return tuple(tuple(range(end)) for end in range(number, -1, -1))


def cube(number: int) -> tuple[tuple[int, ...], ...]:
    """The sets of so many keys that CUBE means: every subset, the largest first."""
    if 2**number > MOST_SETS:
        raise QueryError(
            f"a CUBE of {number} keys has more than {MOST_SETS} sets; list those that are wanted, "
            "as GROUPING SETS ((a, b), (a), ())"
        )
    sizes = range(number, -1, -1)
    return tuple(some for size in sizes for some in combinations(range(number), size))


@dataclass(frozen=True, slots=True)
class Query:
    """A whole question: rows, keys and outputs, and how the released frame is ordered.

    ``having``, ``order`` (names or aggregates, and whether descending), ``offset`` and ``limit``
    act on released values only, in this order (post-processing, free). ``discover`` asks for keys
    to be discovered even where public facts would list them. ``max_groups`` and ``max_rows`` limit
    what one unit contributes to this question, in place of the table's.

    ``sets`` (GROUPING SETS) are the sets of keys, by their places, that rows are grouped by, one
    after another; a key that is not in a set is NULL in its groups. Without, all keys are one set.
    ``flags`` (GROUPING) are columns that say which keys are not in the set of a group: the bits of
    a whole number, the last key's the lowest. ``consistent`` asks for counts and sums of all sets
    that add up, as ``dither.plan.lowering.levels`` has it.

    ``by_block``: where a key alone says in which block of rows a group lies, each block is asked by
    itself, within the limits of a unit's rows there. Else one unit is limited over all of them.
    """

    relation: Relation
    keys: tuple[Key, ...]
    outputs: tuple[Output, ...]
    order: tuple[tuple[str | AggregateFunction, bool], ...] = ()
    limit: int | None = None
    discover: bool = False
    max_groups: int | None = None
    max_rows: int | None = None
    having: AggregateFunction | None = None
    offset: int = 0
    sets: tuple[tuple[int, ...], ...] = ()
    flags: tuple[tuple[str, tuple[int, ...]], ...] = ()
    consistent: bool = False
    by_block: bool = True
    words: Words | None = field(default=None, compare=False, repr=False)
    """How its expressions were written, for messages; no part of what is asked."""

    def __post_init__(self) -> None:
        """Every column of the release has a name of its own, and ORDER BY names one."""
        if not self.outputs:
            raise QueryError("the query releases nothing: add an aggregate, such as COUNT(*)")
        if len(self.outputs) > MOST_OUTPUTS:
            raise QueryError(
                f"the query releases {len(self.outputs):,} outputs, more than {MOST_OUTPUTS}; each "
                "takes its share of the budget, so ask for fewer at once"
            )
        gridded = [isinstance(o.aggregate, Ranks | Magnitudes | UnitSizes) for o in self.outputs]
        sizes = all(isinstance(o.aggregate, UnitSizes) for o in self.outputs)
        if any(gridded) and (self.keys or (len(self.outputs) > 1 and not sizes)):
            raise QueryError("what is counted along a grid is released alone and without keys")
        names = [k.name for k in self.keys] + [c for o in self.outputs for c in o.columns]
        names += [name for name, _ in self.flags]
        self._check_sets()
        for name in names:
            fault = unwritable(name) if name else "is empty; give it letters"
            if fault is not None:
                raise QueryError(f"the name {name!r} of a key or an output {fault}")
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            raise QueryError(
                f"two columns of the release would be named {twice[0]!r} (an output x also gives "
                "x_lower and x_upper); use AS to tell them apart"
            )
        for field_name in ("max_groups", "max_rows"):
            limit = getattr(self, field_name)
            if limit is not None and not 1 <= limit <= MOST_CONTRIBUTED:
                raise QueryError(f"{field_name} must be a whole number from 1 to 2^31")
        for by, _ in self.order:
            if isinstance(by, str) and by not in names:
                raise QueryError(f"ORDER BY {by}: the release has no such column")

    def _check_sets(self) -> None:
        if self.flags and not self.sets:
            raise QueryError(ONE_SET)
        if self.consistent and not self.sets:
            raise QueryError(
                "consistent makes the levels of a question add up, and there is one; leave it out, "
                "or write GROUP BY ROLLUP(...)"
            )
        if len(self.sets) > MOST_SETS:
            raise QueryError(
                f"GROUP BY has {len(self.sets)} sets of keys, more than {MOST_SETS}; they share "
                "one budget, so ask for fewer at once"
            )
        if self.sets and {i for one in self.sets for i in one} != set(range(len(self.keys))):
            raise QueryError("GROUPING SETS: each key stands in one of the sets at least")


@dataclass(frozen=True, slots=True)
class QueryOfUnits(Query):
    """A question in which each unit counts once: in one group, its rows with equal weight.

    Units are then an independent sample wherever people are, however many rows each has, and a unit
    moves a sum by no more than one row could. Of a unit's groups the one with the smallest keyed
    hash is kept.
    """
