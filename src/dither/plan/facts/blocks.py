"""Which blocks of its tables a question reads: from the text of the question alone.

A table may lie in blocks, stretches of one column (``dither.blocks``). A question is charged to the
blocks that it reads, and an engine leaves rows of all others out before it does anything else. So
two things must hold of the set S that is found here for each ``Scan``.

*Nothing that counts is lost.* A row outside of S is one that the question leaves out by itself, so
that its answer is the same over the rows of S. Conditions come down from above: a ``Filter`` keeps
a row where its predicate is true, and what it names is traced to the columns of the table.

- ``Filter``, ``KeyFilter``, ``PublicJoin``, ``Unnest``, ``Derived``: what is made of a row is made
  of it alone, by its own values. A condition that is never true of what is made of a row leaves all
  of that out, so the row may be missing.
- ``UnitAggregate``: a group is of rows with the same keys. A condition on keys alone that is not
  true of a row's keys is true for no row of its group, and leaves the whole group out. A condition
  on an aggregate is one on several rows, and so restricts nothing below.
- ``Union``: each part by itself, with the column that stands in its place.
- ``UnitJoin``: a pair has one row of either side. A condition that is never true beside a row of
  the right leaves out all pairs with it. Of a left join these pairs may be all that a row on the
  left has: it is then kept once more, the columns of the right NULL. Where the condition is never
  true of that either, nothing changes; else the right is not restricted. Which rows of a unit are
  cut to ``max_join_rows``, and how many lists of it are unnested, is decided among its rows in S:
  limits hold over all blocks that are read together.
- A ``GROUP BY`` whose keys are a public list is a condition: rows with other keys are left out.

*S follows from literals alone.* What is not understood may be true of any row.

Predicates are read in three-valued logic: of each two sets are kept, of the values for which it may
be true and for which it may be false, so that NOT exchanges them, and AND and OR combine them. What
is a predicate on the column of blocks alone is known exactly: it is true on the one set, false on
the other, NULL elsewhere. Values are kept as whole numbers in their order (days, microseconds,
doubles by their bits), so that these sets are ranges, and become blocks once, in the end.
"""

from __future__ import annotations

import datetime as dt
import operator
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeVar

from dither.blocks._calendar import Calendar
from dither.blocks._sets import NO_BLOCKS, NULL, OTHERS, BlockSet
from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.facts.contradictions import constant_of
from dither.plan.facts.units import column_names
from dither.plan.facts.values import Scope
from dither.plan.relations import (
    Derived,
    Filter,
    KeyFilter,
    PublicJoin,
    Relation,
    Scan,
    Union,
    UnitAggregate,
    UnitJoin,
    Unnest,
    scans,
    visible,
)
from dither.plan.schema import Kind, Schema, Table, Value

__all__ = ["in_blocks", "may_be_true", "read_blocks", "reading"]

Values = BlockSet
"""Values of a column as whole numbers in their order; ``NULL`` is one of them."""

EVERY = BlockSet.of_range(None, None)
"""All values but NULL."""

ANYTHING = EVERY | BlockSet.of_names(NULL)

ANY_CALENDAR = Calendar(every="day")
"""Tables without a column of blocks are named, and no calendar is asked."""

MOST_RANGES = 400
"""A set of more ranges is taken for what lies between its ends: it must be written as SQL."""

YEARS = range(1900, 2200)
"""Where a month without a year is told apart."""

UNKNOWN = ex.Column("\x00", "\x00")
"""Stands for whatever is not understood: no alias holds NUL."""

Part = ex.Expression
R = TypeVar("R", bound=Relation)


# --- through a relation ---------------------------------------------------------------------------


def in_blocks(
    relation: Relation, schema: Schema, conditions: Sequence[Part] = ()
) -> tuple[Relation, BlockSet | None]:
    """The same rows out of the blocks that they can lie in, and these blocks.

    Parameters
    ----------
    relation : Relation
    schema : Schema
        Its ``today`` says which blocks of time have begun: no others are read.
    conditions : sequence of Expression
        On the columns that may be named above; rows for which one is not true are left out there.

    Returns
    -------
    Relation
        Each of its tables with ``Scan.blocks``.
    BlockSet or None
        What is read of all tables together; ``None`` where none of them lies in blocks.

    Raises
    ------
    QueryError
        Where it can read no row.
    """
    found = _restricted(relation, schema, tuple(conditions))
    read = read_blocks(found, schema)
    if read is not None and not read:
        raise QueryError(
            "WHERE keeps no row of a block that has begun: without rows the answer is known, and "
            "costs nothing"
        )
    return found, read


def read_blocks(relation: Relation, schema: Schema) -> BlockSet | None:
    """The blocks that a relation reads; ``None`` where no table of it lies in blocks."""
    found = None
    for scan in scans(relation):
        own = blocks_of(scan, schema)
        if own is not None:
            found = own if found is None else found | own
    return found


def blocks_of(scan: Scan, schema: Schema) -> BlockSet | None:
    """The blocks that are read of one table; ``None`` of one that does not lie in blocks."""
    table = schema.table(scan.table)
    if table.one_block:
        return BlockSet.of_table(table.name)
    if table.block is None:
        return None
    return table.block[1].all if scan.blocks is None else scan.blocks


def reading(relation: Relation, blocks: BlockSet, schema: Schema) -> str:
    """What is read of a relation, in words."""
    calendars = (schema.table(scan.table).block for scan in scans(relation))
    calendar = next((block[1] for block in calendars if block is not None), ANY_CALENDAR)
    return calendar.reading(blocks)


def _restricted(relation: R, schema: Schema, above: tuple[Part, ...]) -> R:
    found: Relation
    match relation:
        case Scan():
            found = _scan(relation, schema, above)
        case Filter(source=source, predicate=predicate):
            found = replace(relation, source=_restricted(source, schema, (*above, predicate)))
        case KeyFilter(source=source) | PublicJoin(source=source) | Unnest(source=source):
            found = replace(relation, source=_restricted(source, schema, above))
        case UnitJoin(left=left, right=right):
            kept = above if _never_padded(relation, above) else ()
            found = replace(
                relation,
                left=_restricted(left, schema, above),
                right=_restricted(right, schema, kept),
            )
        case Derived(source=source, alias=alias, columns=made):
            below = _renamed(above, alias, dict(made))
            found = replace(relation, source=_restricted(source, schema, below))
        case UnitAggregate(source=source, alias=alias, keys=made):
            below = _renamed(above, alias, dict(made))
            found = replace(relation, source=_restricted(source, schema, below))
        case Union():
            found = _united(relation, schema, above)
        case _:
            found = relation
    return found  # type: ignore[return-value]


def _united(union: Union, schema: Schema, above: tuple[Part, ...]) -> Union:
    names = column_names(union, schema)
    parts = []
    for part in union.parts:
        (own,) = visible(part)
        placed = zip(names, column_names(own, schema), strict=True)
        made: dict[str, Part] = {name: ex.Column(own.alias, its) for name, its in placed}
        parts.append(_restricted(part, schema, _renamed(above, union.alias, made)))
    return replace(union, parts=tuple(parts))


def _never_padded(join: UnitJoin, above: tuple[Part, ...]) -> bool:
    """Whether no row of the left that is kept without a match passes the conditions above."""
    if not join.keep_all:
        return True
    alias = join.right.alias
    padded = _mapped(ex.And(above), lambda c: ex.Literal(None) if c.table == alias else UNKNOWN)
    return not _Truth().of(padded)[0]


def _renamed(above: Iterable[Part], alias: str, made: Mapping[str, Part]) -> tuple[Part, ...]:
    """Conditions on what a query makes as those on what it is made of."""

    def below(column: ex.Column) -> Part:
        return made.get(column.name, UNKNOWN) if column.table == alias else UNKNOWN

    return tuple(_mapped(condition, below) for condition in above)


def _mapped(node: Part, made: Callable[[ex.Column], Part]) -> Part:
    """An expression with others in the place of its columns."""
    if isinstance(node, ex.Column):
        return made(node)
    if isinstance(node, ex.Unreadable):
        # It is asked of a table's own column, which what stands in its place may not be.
        return UNKNOWN
    changed = {}
    for field in fields(node):
        value = getattr(node, field.name)
        other = _mapped_in(value, made)
        if other is not value:
            changed[field.name] = other
    return replace(node, **changed) if changed else node  # type: ignore[arg-type]


def _mapped_in(value: Any, made: Callable[[ex.Column], Part]) -> Any:
    if isinstance(value, ex.Expression):
        return _mapped(value, made)
    if isinstance(value, tuple) and any(isinstance(part, ex.Expression | tuple) for part in value):
        return tuple(_mapped_in(part, made) for part in value)
    return value


def _scan(scan: Scan, schema: Schema, above: tuple[Part, ...]) -> Scan:
    table = schema.table(scan.table)
    if table.block is None:
        return scan
    name, calendar = table.block
    begun = calendar.all if schema.today is None else calendar.begun(schema.today)
    found = may_be_true(ex.And(above), ex.Column(scan.alias, name), table) & begun
    return replace(scan, blocks=found)


def may_be_true(predicate: Part, column: ex.Column, table: Table) -> BlockSet:
    """The blocks in which a row may lie for which a predicate is true.

    Parameters
    ----------
    predicate : Expression
    column : Column
        The column of blocks, as the predicate names it.
    table : Table
        Has it.

    Examples
    --------
    >>> from dither.plan.schema import ColumnFacts
    >>> day, months = ColumnFacts("day", Kind.DATE), Calendar(every="month")
    >>> visits = Table("visits", {"day": day}, block=("day", months))
    >>> column = ex.Column("v", "day")
    >>> since = ex.Compare(">=", column, ex.Literal(dt.date(2024, 3, 9)))
    >>> months.describe(may_be_true(since, column, table=visits))
    '2024-03 and later'
    >>> months.describe(may_be_true(ex.Not(since), column, table=visits))
    'all up to 2024-03'
    """
    assert table.block is not None
    name, calendar = table.block
    points = Points(table.column(name).kind, calendar)
    true, _ = _Truth(column, points).of(predicate)
    found = points.blocks(true)
    if len(found.ranges) > MOST_RANGES:
        found |= BlockSet.of_range(found.ranges[0][0], found.ranges[-1][1])
    return found


# --- predicates -----------------------------------------------------------------------------------

Truths = tuple[Values, Values]
"""Where a predicate may be true, and where it may be false."""

UNSURE: Truths = ANYTHING, ANYTHING

OPPOSITE = {"<>": "=", "<": ">=", "<=": ">"}
TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class _Truth:
    """Reads predicates on one column; without a column all that is known are constants."""

    def __init__(self, column: ex.Column | None = None, points: Points | None = None) -> None:
        self._column, self._points = column, points

    def of(self, node: Part) -> Truths:
        """The values for which a predicate may be true, and for which it may be false."""
        match node:
            case ex.Literal(value=value):
                return _if(value is True), _if(value is False)
            case ex.Not(operand=operand):
                true, false = self.of(operand)
                return false, true
            case ex.And(operands=operands):
                return _all([self.of(one) for one in operands])
            case ex.Or(operands=operands):
                # NOT (NOT a AND NOT b), which is so of NULL too.
                false, true = _all([self.of(one)[::-1] for one in operands])
                return true, false
            case ex.Between(operand=operand, low=low, high=high):
                ends = ex.Compare(">=", operand, low), ex.Compare("<=", operand, high)
                return self.of(ex.And(ends))
            case ex.IsNull(operand=operand):
                return self._is_null(operand)
            case ex.InList(operand=operand, values=values):
                return self._among(operand, values)
            case ex.Compare(op=op, left=left, right=right):
                if _is_nothing(left) or _is_nothing(right):
                    return NO_BLOCKS, NO_BLOCKS
                value = _constant(right)
                if value is None:
                    op, left, value = TURNED[op], right, _constant(left)
                if value is not None:
                    return self._compared(op, left, value)
        return UNSURE

    def _is_null(self, operand: Part) -> Truths:
        if _is_nothing(operand):
            return ANYTHING, NO_BLOCKS
        if self._column is not None and operand == self._column:
            return BlockSet.of_names(NULL), EVERY
        return UNSURE

    def _among(self, operand: Part, values: Sequence[Value]) -> Truths:
        if _is_nothing(operand):
            return NO_BLOCKS, NO_BLOCKS
        each = [self._compared("=", operand, value) for value in values]
        ranges = tuple(held for true, _ in each for held in true.ranges)
        true = BlockSet(ranges, frozenset().union(*(true.named for true, _ in each)))
        if all(not meet(*one) for one in each):
            return true, complement(true)
        false = ANYTHING
        for _, other in each:
            false = meet(false, other)
        return true, false

    def _compared(self, op: str, operand: Part, value: Value) -> Truths:
        """A comparison with a constant, of the column or of what follows from it."""
        points = self._points
        if points is None:
            return UNSURE
        if isinstance(operand, ex.DatePart) and operand.operand == self._column:
            found = points.in_months(op, operand.part, value)
            if found is not None:
                return found
        if op in OPPOSITE:
            true, false = self._compared(OPPOSITE[op], operand, value)
            return false, true
        at, beyond = (self._from(operand, value, strict=strict) for strict in (False, True))
        if at is None or beyond is None:
            same = points.same(value) if op == "=" and operand == self._column else None
            return UNSURE if same is None else same
        true = {">=": at, ">": beyond, "=": meet(at, complement(beyond))}[op]
        return true, complement(true)

    def _from(self, operand: Part, value: Value, *, strict: bool) -> Values | None:
        """Where an expression is at least a value, or above it; ``None`` if it is not understood.

        What is truncated, and a year, never fall as the column rises. So they are at least a value
        where their operand is at least the start of some period.
        """
        assert self._points is not None
        if operand == self._column:
            return self._points.beginning(value, strict=strict)
        match operand:
            case ex.DateTruncate(part=part, operand=inner) if part not in ex.TIMES:
                start = _start(value, part, strict=strict)
            case ex.Call(function="cast", operands=(inner,), options=("date",)):
                start = _start(value, "day", strict=strict)
            case ex.DatePart(part="year", operand=inner):
                start = _first_of_year(value, strict=strict)
            case _:
                return None
        if start is None or not self._points.kind.temporal:
            return None
        return NO_BLOCKS if start is NEVER else self._from(inner, start, strict=False)


def _if(known: bool) -> Values:
    return ANYTHING if known else NO_BLOCKS


def _all(each: Iterable[Truths]) -> Truths:
    """AND: true where all are, false where any is."""
    true, false = ANYTHING, NO_BLOCKS
    for one, other in each:
        true, false = meet(true, one), false | other
    return true, false


def _constant(node: Part) -> Value | None:
    """What is written as a constant, or one that every engine computes alike."""
    if isinstance(node, ex.Literal):
        return node.value
    if any(True for _ in ex.columns(node)):
        return None
    found = constant_of(node, Scope({}))
    return None if isinstance(found, Fraction) and found.denominator != 1 else found


def _is_nothing(node: Part) -> bool:
    """Whether an expression is NULL whatever the row holds."""
    match node:
        case ex.Literal(value=value):
            return value is None
        case ex.DateTruncate(operand=operand) | ex.DatePart(operand=operand):
            return _is_nothing(operand)
        case ex.Call(function="cast", operands=(operand,)):
            return _is_nothing(operand)
        case ex.Arithmetic(left=left, right=right):
            return _is_nothing(left) or _is_nothing(right)
    return False


def complement(values: Values) -> Values:
    """All other values but NULL."""
    found: list[tuple[int | None, int | None]] = []
    start: int | None = None
    for low, high in values.ranges:
        if low is not None:
            found.append((start, low - 1))
        if high is None:
            return BlockSet(tuple(found))
        start = high + 1
    return BlockSet((*found, (start, None)))


def meet(one: Values, other: Values) -> Values:
    """What is in both; in one pass, since a set may have very many ranges."""
    found: list[tuple[int | None, int | None]] = []
    i = j = 0
    while i < len(one.ranges) and j < len(other.ranges):
        (low, high), (first, last) = one.ranges[i], other.ranges[j]
        start = first if low is None else low if first is None else max(low, first)
        end = last if high is None else high if last is None else min(high, last)
        if start is None or end is None or start <= end:
            found.append((start, end))
        if high is None or (last is not None and last <= high):
            j += 1
        else:
            i += 1
    return BlockSet(tuple(found), one.named & other.named)


# --- values as whole numbers ----------------------------------------------------------------------

NEVER: Any = object()
"""The start of a period that no date is in."""

EPOCH = dt.datetime(1, 1, 1)
MICROSECOND = dt.timedelta(microseconds=1)
A_DAY = 86_400 * 10**6

LARGEST_EXACT = 2**53
"""Engines compare an integer and a real as doubles, which hold all integers up to here."""

PERIODS = {"month": 1, "quarter": 3}
MONTHS = 12


@dataclass(frozen=True)
class Points:
    """The values of a column as whole numbers in their order, and the blocks that they are in.

    A date is its number of days, a timestamp of microseconds, a double its bits with the sign that
    order wants. A text has the place of its value in the calendar's list; all others share one.
    """

    kind: Kind
    calendar: Calendar

    def beginning(self, value: Value, *, strict: bool) -> Values | None:
        """The values that are at least a constant, or above it; ``None`` if that is not known."""
        match self.kind:
            case Kind.DATE if isinstance(value, dt.date):
                day, midnight = _moment(value)
                first = day.toordinal() + (strict or not midnight)
            case Kind.TIMESTAMP if isinstance(value, dt.date):
                first = _microseconds(value) + strict
            case Kind.INTEGER if isinstance(value, int | Fraction) and not isinstance(value, bool):
                if isinstance(value, Fraction) and abs(value) > LARGEST_EXACT:
                    return None
                first = floor(value) + 1 if strict else ceil(value)
            case Kind.REAL if isinstance(value, int | Fraction) and not isinstance(value, bool):
                try:
                    first = _bits(float(value)) + strict
                except OverflowError:
                    return None
            case _:
                return None
        return BlockSet.of_range(first, None)

    def same(self, value: Value) -> Truths | None:
        """Where a column of texts equals a constant."""
        listed = self.calendar.values
        if self.kind is not Kind.TEXT or listed is None or not isinstance(value, str):
            return None
        if value in listed:
            place = listed.index(value)
            true = BlockSet.of_range(place, place)
            return true, complement(true)
        # Of the other values one is meant.
        return BlockSet.of_range(len(listed), len(listed)), EVERY

    def in_months(self, op: str, part: str, value: Value) -> Truths | None:
        """Where a month or quarter compares so with a number, without a year."""
        if part not in PERIODS or not self.kind.temporal or isinstance(value, bool):
            return None
        if not isinstance(value, int | Fraction):
            return None
        length = PERIODS[part]
        found = []
        for number in range(1, MONTHS // length + 1):
            if COMPARED[op](number, value):
                for year in YEARS:
                    first = dt.date(year, (number - 1) * length + 1, 1)
                    found.append((self._point(first), self._point(_next(first, part)) - 1))
        known = BlockSet(tuple(found))
        ends = self._point(dt.date(YEARS[0], 1, 1)), self._point(dt.date(YEARS[-1] + 1, 1, 1))
        return known | BlockSet(((None, ends[0] - 1), (ends[1], None))), complement(known)

    def _point(self, day: dt.date) -> int:
        return day.toordinal() if self.kind is Kind.DATE else _microseconds(day)

    def blocks(self, values: Values) -> BlockSet:
        """The blocks that values are in."""
        named = values.named & {NULL}
        calendar = self.calendar
        if calendar.values is not None:
            return self._listed(values, calendar.values) | BlockSet((), named)
        if calendar.edges is not None:
            edges = [self._edge(edge) for edge in calendar.edges]

            def block(point: int | None, last: int) -> int | None:
                return last if point is None else bisect_right(edges, point)

            ranges = [(block(a, 0), block(b, len(edges))) for a, b in values.ranges]
            return BlockSet(tuple(ranges), named)
        first, last = dt.date.min.toordinal(), dt.date.max.toordinal()
        found: list[tuple[int | None, int | None]] = []
        for low, high in values.ranges:
            start, end = self._day(low, first), self._day(high, last)
            if end >= first and start <= last:
                found.append(
                    (
                        None if start <= first else self._of_day(start),
                        None if end >= last else self._of_day(end),
                    )
                )
        return BlockSet(tuple(found), named)

    def _day(self, point: int | None, end: int) -> int:
        """The number of a day."""
        if point is None:
            return end
        return point if self.kind is Kind.DATE else point // A_DAY + 1

    def _of_day(self, number: int) -> int:
        block = self.calendar.block_of(dt.date.fromordinal(number))
        assert isinstance(block, int)
        return block

    def _edge(self, edge: Value) -> int:
        found = self.beginning(edge, strict=False)
        assert found is not None
        first = found.ranges[0][0]
        assert first is not None
        return first

    def _listed(self, values: Values, listed: Sequence[Value]) -> BlockSet:
        if self.kind is Kind.TEXT:
            places = range(len(listed))
            others = len(listed) in values
        else:
            places = [int(value) for value in listed]  # type: ignore[assignment,arg-type]
            inside = sum(place in values for place in places)
            size = sum(1 if None in held else held[1] - held[0] + 1 for held in values.ranges)  # type: ignore[operator]
            others = values.endless or size > inside
        found = BlockSet(tuple((i, i) for i, place in enumerate(places) if place in values))
        return found | BlockSet.of_names(OTHERS) if others else found


def _moment(value: dt.date) -> tuple[dt.date, bool]:
    """A day, and whether a moment is its first."""
    if not isinstance(value, dt.datetime):
        return value, True
    return value.date(), value.time() == dt.time()


def _microseconds(value: dt.date) -> int:
    if isinstance(value, dt.datetime):
        return (value.replace(tzinfo=None) - EPOCH) // MICROSECOND
    return (value.toordinal() - 1) * A_DAY


def _bits(value: float) -> int:
    """A double as a whole number in the order of doubles; both zeros are 0."""
    (bits,) = struct.unpack("<q", struct.pack("<d", value + 0.0))
    return int(bits) if bits >= 0 else -(int(bits) + 2**63)


def _start(value: Value, part: str, *, strict: bool) -> Any:
    """The first start of a period that is at least a constant, or above it."""
    if not isinstance(value, dt.date):
        return None
    day, midnight = _moment(value)
    match part:
        case "year":
            own = day.replace(month=1, day=1)
        case "quarter":
            own = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            own = day.replace(day=1)
        case "week":
            own = day - dt.timedelta(days=day.weekday())
        case _:
            own = day
    return own if own == day and midnight and not strict else _next(own, part)


def _next(start: dt.date, part: str) -> Any:
    """The start of the next period."""
    try:
        match part:
            case "year":
                return start.replace(year=start.year + 1)
            case "quarter" | "month":
                month = start.month - 1 + PERIODS[part]
                return dt.date(start.year + month // MONTHS, month % MONTHS + 1, 1)
        return start + dt.timedelta(days=7 if part == "week" else 1)
    except (ValueError, OverflowError):
        return NEVER


def _first_of_year(value: Value, *, strict: bool) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        return None
    year = floor(value) + 1 if strict else ceil(value)
    return NEVER if year > dt.MAXYEAR else dt.date(max(year, dt.MINYEAR), 1, 1)
