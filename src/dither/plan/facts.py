"""Which values an expression can have, from the public facts alone.

``infer`` walks an expression and gives its kind, its bounds by interval arithmetic, its list of
values where that is short, the lattice its exact values lie on, and whether it can be NULL. It is
also the type checker: what makes no sense is refused here, by name.

All of it holds for values that keep to what is declared of them, and none of it is believed of any
value. Bounds give the sensitivity of sums, which the engine makes true by an integer clamp of every
value that enters a sum. So a fact that is false of the data costs accuracy and never privacy. An
expression without bounds can be filtered and grouped by; only an aggregate needs bounds, and
``why_unbounded`` says which part has none.

The module is long because a scope takes the facts of a query's columns from the expressions that
make them, and expressions take theirs from a scope: neither can be told without the other.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from dither.errors import BoundsError, QueryError, UnknownNameError, UnsupportedError, nearest
from dither.plan import expressions as ex
from dither.plan._ranges import (
    LARGEST_INTEGER,
    LARGEST_REAL,
    LARGEST_WORD,
    LONGEST_LIST,
    SMALLEST_WORD,
    Facts,
    arithmetic,
    clamped,
    common_step,
    extreme,
    listed_values,
    reshaped,
    within_limits,
)
from dither.plan.expressions import Column
from dither.plan.functions import mapped, part_of
from dither.plan.relations import (
    UNIT,
    Derived,
    Elements,
    Named,
    Relation,
    Scan,
    Union,
    UnitAggregate,
    UnitValue,
    visible,
)
from dither.plan.schema import ColumnFacts, Kind, Schema, Table, Value, kind_of_value
from dither.plan.text import Words, show
from dither.plan.units import declared_limits, padded, unit_of

__all__ = [
    "LARGEST_INTEGER",
    "LARGEST_REAL",
    "LONGEST_LIST",
    "Facts",
    "Scope",
    "infer",
    "is_assumed",
    "listed_values",
    "tables_of",
    "value_facts",
    "why_unbounded",
]


class Scope:
    """The columns that the expressions over a relation may name.

    Parameters
    ----------
    tables : mapping of str to (Table, bool)
        By alias: the table, and whether a left join pads it with NULL.
    words : callable, optional
        How expressions were written, for messages.
    """

    def __init__(
        self, tables: Mapping[str, tuple[Table, bool]], words: Words | None = None
    ) -> None:
        self._tables = dict(tables)
        self._words = words
        self._below: tuple[Relation, Schema] | None = None

    @classmethod
    def of(cls, relation: Relation, schema: Schema, words: Words | None = None) -> Scope:
        """The scope of a relation: its tables by alias, and whether a left join pads them."""
        loose = padded(relation)
        tables = tables_of(relation, schema)
        found = cls({alias: (table, alias in loose) for alias, table in tables.items()}, words)
        found._below = relation, schema
        return found

    def column(self, column: Column) -> ColumnFacts:
        """The public facts of a column; NULL is possible in one that a left join pads.

        Raises
        ------
        UnknownNameError
            Where there is no such table or column; the nearest is offered.
        """
        if column.table not in self._tables:
            raise UnknownNameError(
                f"unknown table {column.table!r}" + nearest(column.table, self._tables)
            )
        table, padded = self._tables[column.table]
        if column.name == UNIT:
            return replace(self._unit(column.table), name=UNIT)
        facts = table.column(column.name)
        return replace(facts, nullable=True) if padded else facts

    def learn(self, alias: str, name: str) -> str:
        """How bounds of a column can be learned, for a message; nothing for a public table."""
        table = self._tables[alias][0]
        if self._below is not None:
            named, schema = self._named(alias)
            if isinstance(named, Elements):
                name = named.column
                named, schema = self._named(named.table)
            if not isinstance(named, Scan):
                return ""
            table = schema.table(named.table)
        if not table.private:
            return ""
        asked = f"session.learn({table.name!r}, {name!r}, epsilon=0.1)"
        return f"learn them for epsilon 0.1 with {asked}, "

    def declared(self, column: Column) -> str:
        """The name of a column in the policy: elements stand there under that of their lists."""
        if self._below is not None:
            named, _ = self._named(column.table)
            if isinstance(named, Elements):
                return named.column
        return column.name

    def _named(self, alias: str) -> tuple[Named, Schema]:
        assert self._below is not None
        relation, schema = self._below
        (found,) = (named for named in visible(relation) if named.alias == alias)
        return found, schema

    def _unit(self, alias: str) -> ColumnFacts:
        """What is declared of the unit of a query in the FROM."""
        named, schema = self._named(alias)
        match named:
            case Derived(source=source) | UnitAggregate(source=source):
                below = source
            case Union(parts=parts):
                below = parts[0]
            case Scan(table=table):
                raise UnknownNameError(f"table {table!r} has its unit under its own name")
        unit = unit_of(below, schema)
        assert unit is not None
        return Scope.of(below, schema).column(unit)

    def why_unbounded(self, column: Column) -> str | None:
        """Why a column that a query in the FROM makes has no bounds."""
        if self._below is None:
            return None
        named, schema = self._named(column.table)
        match named:
            case Derived(source=source, columns=columns):
                return why_unbounded(dict(columns)[column.name], Scope.of(source, schema))
            case UnitAggregate(source=source, keys=keys, values=values):
                value = dict(values).get(column.name)
                made = dict(keys).get(column.name) if value is None else value.operand
                scope = Scope.of(source, schema)
                if made is not None and infer(made, scope).range is None:
                    return why_unbounded(made, scope)
                return f"{column.name} can reach beyond 2^62; declare narrower bounds, or"
            case Union():
                return f"in some part of the UNION ALL {column.name} has no bounds;"
        return None

    def show(self, node: ex.Expression) -> str:
        """An expression for a message: as it was written, where that is known."""
        written = None if self._words is None else self._words(node)
        return show(node) if written is None else written


def tables_of(relation: Relation, schema: Schema) -> dict[str, Table]:
    """By alias: what may be named above a relation, with what is public of it."""
    named = visible(relation)
    scans = {scan.alias: schema.table(scan.table) for scan in named if isinstance(scan, Scan)}
    return {
        one.alias: _unnested(one, scans[one.table])
        if isinstance(one, Elements)
        else _table(one, schema)
        for one in named
    }


def _unnested(elements: Elements, table: Table) -> Table:
    """What is declared of the elements of a list."""
    facts = replace(table.lists[elements.column], name=elements.name, nullable=True)
    return Table(elements.alias, {elements.name: facts})


def _table(named: Named, schema: Schema) -> Table:
    if isinstance(named, Scan):
        return schema.table(named.table)
    return Table(named.alias, {facts.name: facts for facts in _columns(named, schema)})


def _columns(named: Named, schema: Schema) -> list[ColumnFacts]:
    match named:
        case Derived(source=source, columns=columns):
            scope = Scope.of(source, schema)
            return [_made(name, node, scope) for name, node in columns]
        case UnitAggregate(source=source, keys=keys, values=values):
            scope = Scope.of(source, schema)
            most = declared_limits(source, schema)[1]
            found = [_made(name, node, scope) for name, node in keys]
            for name, value in values:
                made = _declaring(name, value_facts(value, scope, most), _measured(value, scope))
                found.append(replace(made, assumed=_assumed_value(value, scope)))
            return found
        case Union(parts=parts):
            each = [_columns(visible(part)[0], schema) for part in parts]
            return [_hull(options) for options in zip(*each, strict=True)]
    raise TypeError(type(named).__name__)


def _made(name: str, node: ex.Expression, scope: Scope) -> ColumnFacts:
    """A column passed on as it is keeps all that is declared of it; others, what follows."""
    if isinstance(node, Column):
        return replace(scope.column(node), name=name)
    return replace(_declaring(name, infer(node, scope)), assumed=is_assumed(node, scope))


def is_assumed(node: ex.Expression, scope: Scope) -> bool:
    """Whether the bounds of an expression rest on ones that nobody declared."""
    return not isinstance(node, ex.Clamp | ex.Bin) and _assumed(node, scope)


def _assumed(node: ex.Expression, scope: Scope) -> bool:
    """Whether the bounds of an expression rest on ones that nobody declared."""
    return any(scope.column(column).assumed for column in ex.columns(node))


def _assumed_value(value: UnitValue, scope: Scope) -> bool:
    if value.function in ("min", "max"):
        assert value.operand is not None
        return _assumed(value.operand, scope)
    return value.function != "mean"


def _declaring(name: str, facts: Facts, unit: str | None = None) -> ColumnFacts:
    if facts.kind is None:
        raise QueryError(f"{name} is NULL in every row; leave it out, or give it a value")
    known = facts.domain if not facts.kind.numeric or facts.range is not None else None
    return ColumnFacts(
        name,
        facts.kind,
        facts.lower,
        facts.upper,
        facts.step,
        known,
        nullable=facts.nullable,
        unit=unit,
    )


def _measured(value: UnitValue, scope: Scope) -> str | None:
    """The unit of measurement of what is taken of a column itself."""
    if value.function in ("count", "count distinct") or not isinstance(value.operand, Column):
        return None
    return scope.column(value.operand).unit


def _hull(options: Sequence[ColumnFacts]) -> ColumnFacts:
    """What any of the parts may hold, their union may."""
    first = options[0]
    if all(replace(o, name=first.name) == first for o in options):
        return first
    parts = [_column(o) for o in options]
    found = _declaring(first.name, _union(parts, Column("", first.name), Scope({})))
    same_unit = len({o.unit for o in options}) == 1
    assumed = any(o.assumed for o in options)
    return replace(found, unit=first.unit if same_unit else None, assumed=assumed)


def value_facts(value: UnitValue, scope: Scope, most: int) -> Facts:
    """What is public of an aggregate within a unit, where a unit has at most ``most`` rows.

    ``most`` is what is declared, and nothing enforces it here: a unit with more rows has a larger
    count or sum, which is clamped to these bounds where it enters an aggregate of the question.
    """
    rows = Fraction(most)
    if value.operand is None:
        return Facts(Kind.INTEGER, Fraction(1), rows, None, Fraction(1))
    facts = infer(value.operand, scope)
    if value.function in ("count", "count distinct"):
        least = Fraction(0) if facts.nullable else Fraction(1)
        return Facts(Kind.INTEGER, least, rows, None, Fraction(1))
    if value.function in ("min", "max"):
        return facts
    if value.lower is None or value.upper is None:
        kind = Kind.REAL if value.function == "mean" else Kind.INTEGER
        step = facts.step if kind is Kind.INTEGER else None
        return Facts(kind, step=step, nullable=True)
    low, high = value.lower * value.step, value.upper * value.step
    if value.function == "mean":
        return Facts(Kind.REAL, low, high, None, None, facts.nullable)
    ends = min(low, low * rows), max(high, high * rows)
    whole = facts.kind is Kind.INTEGER
    step = facts.step if whole else value.step
    found = Facts(Kind.INTEGER if whole else Kind.REAL, *ends, None, step, facts.nullable)
    return found if within_limits(found) else replace(found, lower=None, upper=None, nullable=True)


def infer(node: ex.Expression, scope: Scope) -> Facts:
    """The public facts of an expression's values.

    Parameters
    ----------
    node : Expression
    scope : Scope
        The columns it may name.

    Raises
    ------
    UnknownNameError
        For a table or column that does not exist.
    QueryError
        Where the kinds do not fit, or a literal is not one of a column's declared values.
    BoundsError
        For a constant, or the bounds of ``CLAMP``, beyond what numbers may be.

    Examples
    --------
    >>> from fractions import Fraction
    >>> facts = infer(ex.Arithmetic("*", ex.Literal(2), ex.Literal(Fraction(1, 4))), Scope({}))
    >>> facts.lower, facts.step
    (Fraction(1, 2), Fraction(1, 2))
    """
    match node:
        case ex.Column():
            return _column(scope.column(node))
        case ex.Literal():
            return _literal(node, scope)
        case ex.Compare(op=op, left=left, right=right):
            return _comparison(node, (left, right), scope, listed=op in ("=", "<>"))
        case ex.Between(operand=x, low=low, high=high):
            return _comparison(node, (x, low, high), scope, listed=False)
        case ex.InList(operand=x, values=values):
            return _comparison(node, (x, *map(ex.Literal, values)), scope, listed=True)
        case ex.And(operands=xs) | ex.Or(operands=xs):
            parts = [_condition(x, node, scope) for x in xs]
            return Facts(Kind.BOOLEAN, nullable=any(p.nullable for p in parts))
        case ex.Not(operand=x):
            return Facts(Kind.BOOLEAN, nullable=_condition(x, node, scope).nullable)
        case ex.IsNull(operand=x):
            infer(x, scope)
            return Facts(Kind.BOOLEAN)
        case ex.Case(branches=branches, otherwise=other):
            for test, _ in branches:
                _condition(test, node, scope)
            options = (*(value for _, value in branches), other)
            return _union([infer(value, scope) for value in options], node, scope)
        case ex.Coalesce(operands=xs):
            parts = [infer(x, scope) for x in xs]
            return replace(_union(parts, node, scope), nullable=all(p.nullable for p in parts))
        case ex.DatePart(operand=x):
            return _date_part(node, _temporal(x, node, scope), scope)
        case ex.DateTruncate(operand=x):
            return _date_truncate(node, _temporal(x, node, scope), scope)
        case ex.Substring(operand=x, start=start, length=length):
            first = start - 1
            return reshaped(_text(x, node, scope), lambda text: text[first : first + length])
        case ex.Call():
            return _call(node, scope)
        case ex.Function(operand=x):
            return node.facts((_text if node.takes == "text" else _number)(x, node, scope))
    return _numeric(node, scope)


def _call(node: ex.Call, scope: Scope) -> Facts:
    signature = node.signature
    kinds = {"number": _number, "real": _number, "text": _text, "date": _temporal, "any": _any}
    pairs = zip(node.operands, node.kinds, strict=True)
    parts = tuple(kinds[takes](x, node, scope) for x, takes in pairs)
    try:
        found = signature.facts(parts, *node.options)
    except QueryError as error:
        raise type(error)(f"{scope.show(node)}: {error}") from None
    return mapped(signature, parts, node.options, found)


def _numeric(node: ex.Expression, scope: Scope) -> Facts:
    match node:
        case ex.Arithmetic(op=op, left=left, right=right):
            sides = [_number(x, node, scope) for x in (left, right)]
            if op in ("//", "%") and any(s.kind is not Kind.INTEGER for s in sides):
                raise QueryError(f"{scope.show(node)}: {op} is of two integers; use FLOOR(x / y)")
            found = arithmetic(op, *sides, same=left == right)
            divides = op in ("/", "//", "%") and not _never_zero(right, sides[1])
            return replace(found, nullable=True) if divides else found
        case ex.Least(operands=xs) | ex.Greatest(operands=xs):
            parts = [_number(x, node, scope) for x in xs]
            kind = _one_kind(parts, node, scope)
            return extreme(parts, kind, largest=isinstance(node, ex.Greatest))
        case ex.Clamp(operand=x, lower=lower, upper=upper):
            facts = _number(x, node, scope)
            if facts.kind is Kind.INTEGER and (lower.denominator != 1 or upper.denominator != 1):
                raise BoundsError(f"{scope.show(node)}: an integer is clamped to whole bounds")
            if _assumed(x, scope):
                facts = replace(facts, lower=None, upper=None)
            return _held(clamped(facts, lower, upper), node, scope)
        case ex.Bin(operand=x, edges=edges):
            facts = _number(x, node, scope)
            # Only CLAMP moves a value: bounds that are declared do not keep it within the edges.
            proved = isinstance(x, ex.Clamp) and edges[0] <= x.lower and x.upper <= edges[-1]
            last = Fraction(len(edges) - 2)
            nullable = facts.nullable or not proved
            return Facts(Kind.INTEGER, Fraction(0), last, None, Fraction(1), nullable)
    raise UnsupportedError(f"{type(node).__name__} is not an expression of this version")


def _never_zero(divisor: ex.Expression, facts: Facts) -> bool:
    """Whether no value whatever makes it 0: bounds that are declared keep no value away from it."""
    proved = facts.domain is not None or isinstance(divisor, ex.Literal | ex.Clamp)
    low, high = facts.range or (Fraction(0), Fraction(0))
    return proved and not low <= 0 <= high


def _dateless(day: ex.Expression, scope: Scope) -> str:
    """What gives bounds to a number that is made of a date or time without any."""
    if not isinstance(day, Column):
        return f"declare bounds of {scope.show(day)} in the policy, or"
    made = scope.why_unbounded(day)
    learn = scope.learn(day.table, day.name)
    declare = f"declare bounds of {scope.declared(day)} in the policy{',' if learn else ''}"
    return made or f"{declare} {learn}or"


def why_unbounded(node: ex.Expression, scope: Scope) -> str:
    """Which part of a number without bounds has none, and what would give it some.

    The end of a message, up to the advice to write ``CLAMP``.
    """
    for part in ex.walk(node):
        facts = infer(part, scope)
        own = facts.kind is not None and facts.kind.numeric and facts.range is None
        match part:
            case ex.Column(table=alias, name=name) if own:
                made = scope.why_unbounded(part)
                declare = f"declare bounds = [lower, upper] of {scope.declared(part)} in the policy"
                return made or f"{declare}, {scope.learn(alias, name)}or"
            case ex.DatePart(operand=x) if own:
                return _dateless(x, scope)
            case ex.Call("date difference", operands=xs) if own and (
                days := [x for x in xs if isinstance(x, Column) and infer(x, scope).lower is None]
            ):
                return _dateless(days[0], scope)
            case ex.Call(operands=xs) if own and not all(_bounded(x, scope) for x in xs):
                return f"{scope.show(part)} has no bounds that are known;"
            case ex.Arithmetic(op="/", right=divisor) if own and _near_zero(divisor, scope):
                return f"the divisor {scope.show(divisor)} can be as near to 0 as it likes;"
            case _ if own:
                limit = "2^62" if facts.kind is Kind.INTEGER else "1e300"
                return (
                    f"{scope.show(part)} can reach beyond {limit}; declare narrower bounds of its "
                    "parts, or"
                )
    raise ValueError("the expression has bounds")


def _bounded(operand: ex.Expression, scope: Scope) -> bool:
    return infer(operand, scope).range is not None


def _near_zero(divisor: ex.Expression, scope: Scope) -> bool:
    low, high = infer(divisor, scope).range or (0, 0)
    return low <= 0 <= high


def _held(facts: Facts, node: ex.Expression, scope: Scope) -> Facts:
    """The facts of constants, refused where no number may be as large."""
    if within_limits(facts):
        return facts
    shown = "2^62" if facts.kind is Kind.INTEGER else "1e300"
    raise BoundsError(f"{scope.show(node)} reaches beyond ±{shown}, the widest bounds of a number")


def _column(facts: ColumnFacts) -> Facts:
    lower, upper = facts.lower, facts.upper
    if facts.values is not None and facts.kind.numeric:
        numbers = [Fraction(v) for v in facts.values if isinstance(v, int | Fraction)]
        lower, upper = min(numbers, default=None), max(numbers, default=None)
    # Only a column that a query makes has a step of whole numbers.
    step = facts.step or Fraction(1) if facts.kind is Kind.INTEGER else facts.step
    return Facts(facts.kind, lower, upper, facts.values, step, facts.nullable)


def _literal(node: ex.Literal, scope: Scope) -> Facts:
    """A constant: itself, on the lattice of its multiples."""
    value = node.value
    if value is None:
        return Facts(None, nullable=True)
    kind = kind_of_value(value)
    if isinstance(value, int | Fraction) and kind.numeric:
        exact = Fraction(value)
        if kind is Kind.REAL:
            return _held(Facts(kind, exact, exact, (value,), abs(exact)), node, scope)
        if not SMALLEST_WORD <= value <= LARGEST_WORD:
            raise BoundsError(
                f"{scope.show(node)} is not a whole number of 64 bits, as every integer is; write "
                "it with a decimal point to compare reals"
            )
        # Nothing is derived from an end beyond those that sums may have.
        found = Facts(kind, exact, exact, (value,), Fraction(1))
        return found if within_limits(found) else replace(found, lower=None, upper=None)
    if isinstance(value, dt.date):
        return Facts(kind, value, value, (value,))
    return Facts(kind, domain=(value,))


# --- operands that must be of some kind ---------------------------------------------------------


def _number(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    facts = infer(operand, scope)
    if facts.kind is None or not facts.kind.numeric:
        raise QueryError(f"{scope.show(node)}: {scope.show(operand)} is not a number")
    return facts


def _temporal(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    facts = infer(operand, scope)
    if facts.kind is None or not facts.kind.temporal:
        raise QueryError(f"{scope.show(node)}: {scope.show(operand)} is not a date or a timestamp")
    return facts


def _text(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    facts = infer(operand, scope)
    if facts.kind not in (Kind.TEXT, None):
        raise QueryError(f"{scope.show(node)}: {scope.show(operand)} is not text")
    return facts


def _any(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    return infer(operand, scope)


def _condition(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    facts = infer(operand, scope)
    if facts.kind not in (Kind.BOOLEAN, None):
        raise QueryError(f"{scope.show(node)}: {scope.show(operand)} is not a condition")
    return facts


def _one_kind(parts: Sequence[Facts], node: ex.Expression, scope: Scope) -> Kind | None:
    """The one kind that all operands are read as; NULL goes with any."""
    found = {p.kind for p in parts if p.kind is not None}
    if len(found) > 1 and all(k.numeric for k in found):
        return Kind.REAL
    if len(found) > 1 and all(k.temporal for k in found):
        return Kind.TIMESTAMP
    if len(found) > 1:
        names = " and ".join(sorted(k.value for k in found))
        raise QueryError(f"{scope.show(node)}: mixes {names}")
    return next(iter(found), None)


# --- conditions and choices ---------------------------------------------------------------------


def _comparison(
    node: ex.Expression, operands: tuple[ex.Expression, ...], scope: Scope, *, listed: bool
) -> Facts:
    parts = [infer(x, scope) for x in operands]
    _one_kind(parts, node, scope)
    if listed:
        for operand, facts in zip(operands, parts, strict=True):
            if isinstance(operand, ex.Column) and facts.domain is not None:
                _check_declared(operand, facts.domain, operands, node, scope)
    return Facts(Kind.BOOLEAN, nullable=any(p.nullable for p in parts))


def _check_declared(
    column: ex.Column,
    domain: tuple[Value, ...],
    operands: tuple[ex.Expression, ...],
    node: ex.Expression,
    scope: Scope,
) -> None:
    for operand in operands:
        if not isinstance(operand, ex.Literal) or operand.value is None:
            continue
        if operand.value not in domain:
            hint = nearest(str(operand.value), [str(v) for v in domain])
            raise QueryError(
                f"{scope.show(node)}: {show(operand)} is not a declared value of "
                f"{column.name!r}{hint}"
            )


def _union(parts: list[Facts], node: ex.Expression, scope: Scope) -> Facts:
    """Whatever one of the options can be, the choice can be."""
    kind = _one_kind(parts, node, scope)
    if kind is None:
        return Facts(None, nullable=True)
    valued = [p for p in parts if p.kind is not None]
    domain: tuple[Value, ...] | None = None
    if all(p.domain is not None for p in valued):
        domain = tuple(dict.fromkeys(_as(v, kind) for p in valued for v in p.domain or ()))
    lower: Fraction | dt.date | None = None
    upper: Fraction | dt.date | None = None
    if kind.numeric and all(p.range is not None for p in valued):
        ranges = [p.range for p in valued if p.range is not None]
        lower, upper = min(r[0] for r in ranges), max(r[1] for r in ranges)
    elif kind is Kind.DATE:
        firsts = [p.lower for p in valued if isinstance(p.lower, dt.date)]
        lasts = [p.upper for p in valued if isinstance(p.upper, dt.date)]
        if len(firsts) == len(lasts) == len(valued):
            lower, upper = min(firsts), max(lasts)
    step = common_step(p.step for p in valued) if kind.numeric else None
    return Facts(kind, lower, upper, domain, step, any(p.nullable for p in parts))


def _as(value: Value, kind: Kind) -> Value:
    """A value as the kind that unites the options reads it."""
    if kind is Kind.REAL and isinstance(value, int):
        return Fraction(value)
    if kind is Kind.TIMESTAMP and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value


# --- dates --------------------------------------------------------------------------------------


def _date_part(node: ex.DatePart, facts: Facts, scope: Scope) -> Facts:
    _check_time(node, facts, scope)
    ends = ex.PARTS[node.part]
    if ends is None and isinstance(facts.lower, dt.date) and isinstance(facts.upper, dt.date):
        ends = part_of(facts.lower, node.part), part_of(facts.upper, node.part)
    if ends is None:
        return Facts(Kind.INTEGER, step=Fraction(1), nullable=facts.nullable)
    low, high = (Fraction(end) for end in ends)
    return Facts(Kind.INTEGER, low, high, None, Fraction(1), facts.nullable)


def _check_time(node: ex.DatePart | ex.DateTruncate, facts: Facts, scope: Scope) -> None:
    if node.part in ex.TIMES and facts.kind is Kind.DATE:
        raise QueryError(f"{scope.show(node)}: a date has no {node.part}")


_REACH = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}
"""Days from the first day of a period that always lead into the next one, and not past it."""


def _date_truncate(node: ex.DateTruncate, facts: Facts, scope: Scope) -> Facts:
    _check_time(node, facts, scope)
    part = node.part
    if part in ex.TIMES:
        return _time_truncate(part, facts)
    if not isinstance(facts.lower, dt.date) or not isinstance(facts.upper, dt.date):
        return Facts(Kind.DATE, nullable=facts.nullable)
    first, last = _truncated(facts.lower, part), _truncated(facts.upper, part)
    days, day = [first], first
    while day < last and len(days) <= LONGEST_LIST:
        day = _truncated(day + dt.timedelta(days=_REACH[part]), part)
        days.append(day)
    domain = tuple(days) if day >= last else None
    return Facts(Kind.DATE, first, last, domain, None, facts.nullable)


def _time_truncate(part: str, facts: Facts) -> Facts:
    ends = facts.lower, facts.upper
    if not all(isinstance(end, dt.datetime) and end.tzinfo is None for end in ends):
        return Facts(Kind.TIMESTAMP, nullable=facts.nullable)
    first, last = (_first_moment(end, part) for end in ends)  # type: ignore[arg-type]
    unit = dt.timedelta(**{f"{part}s": 1})
    steps = (last - first) // unit
    domain = tuple(first + i * unit for i in range(steps + 1)) if steps < LONGEST_LIST else None
    return Facts(Kind.TIMESTAMP, first, last, domain, None, facts.nullable)


def _first_moment(value: dt.datetime, part: str) -> dt.datetime:
    finer = ex.TIMES[ex.TIMES.index(part) + 1 :]
    return value.replace(microsecond=0, **dict.fromkeys(finer, 0))  # type: ignore[arg-type]


def _truncated(value: dt.date, part: str) -> dt.date:
    day = value.date() if isinstance(value, dt.datetime) else value
    match part:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - dt.timedelta(days=day.weekday())
    return day
