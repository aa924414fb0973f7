"""The columns that may be named above a relation, with what is public of each.

The facts of a table's columns are declared. Those of a query in the FROM follow from the
expressions that make its columns, by ``infer`` in the scope of what that query reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from dither.errors import QueryError, UnknownNameError
from dither.plan import expressions as ex
from dither.plan.expressions import Column
from dither.plan.facts.ranges import Facts, within_limits
from dither.plan.facts.units import declared_limits, padded, unit_of
from dither.plan.facts.valueless import valueless, why_valueless
from dither.plan.facts.values import (
    Scope,
    facts_of_choice,
    facts_of_column,
    infer,
    is_assumed,
    rests_on_assumed,
    why_unbounded,
)
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
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.plan.text import Words

__all__ = ["scope_of", "tables_of", "value_facts"]


def scope_of(relation: Relation, schema: Schema, words: Words | None = None) -> Scope:
    """The scope of a relation: its tables by alias, and whether a left join pads them.

    Parameters
    ----------
    relation : Relation
    schema : Schema
    words : callable, optional
        How expressions were written, for messages.
    """
    tables, loose = tables_of(relation, schema), padded(relation)
    named = {alias: (table, alias in loose) for alias, table in tables.items()}
    if all(isinstance(one, Scan) for one in visible(relation)):
        return Scope(named, words)
    return _ScopeOfQueries(named, words, relation, schema)


class _ScopeOfQueries(Scope):
    """The scope of a relation in which something is not a table of the policy."""

    def __init__(
        self,
        tables: dict[str, tuple[Table, bool]],
        words: Words | None,
        relation: Relation,
        schema: Schema,
    ) -> None:
        super().__init__(tables, words)
        self._relation, self._schema = relation, schema

    def column(self, column: Column) -> ColumnFacts:
        """The public facts of a column, those of a query's unit among them."""
        if column.name == UNIT and column.table in self._tables:
            return replace(self._unit(column.table), name=UNIT)
        return super().column(column)

    def learn(self, alias: str, name: str, kind: str = "bounds") -> str:
        """How they can be learned of a column: of a table's, or of a list's elements."""
        named = self._named(alias)
        if isinstance(named, Elements):
            return super().learn(named.table, named.column, kind)
        return super().learn(alias, name, kind) if isinstance(named, Scan) else ""

    def is_of_a_table(self, column: Column) -> bool:
        """Not where a query makes it: a list may follow from bounds, which move no value."""
        return isinstance(self._named(column.table), Scan)

    def declared(self, column: Column) -> str:
        """The name of a column in the policy: elements stand there under that of their lists."""
        named = self._named(column.table)
        return named.column if isinstance(named, Elements) else column.name

    def _named(self, alias: str) -> Named:
        (found,) = (named for named in visible(self._relation) if named.alias == alias)
        return found

    def _unit(self, alias: str) -> ColumnFacts:
        """What is declared of the unit of a query in the FROM."""
        match self._named(alias):
            case Derived(source=source) | UnitAggregate(source=source):
                below = source
            case Union(parts=parts):
                below = parts[0]
            case _:
                raise UnknownNameError(f"table {alias!r} has its unit under its own name")
        unit = unit_of(below, self._schema)
        assert unit is not None
        return scope_of(below, self._schema).column(unit)

    def why_unbounded(self, column: Column) -> str | None:
        """Why a column that a query in the FROM makes has no bounds."""
        schema = self._schema
        match self._named(column.table):
            case Derived(source=source, columns=columns):
                return why_unbounded(dict(columns)[column.name], scope_of(source, schema))
            case UnitAggregate(source=source, keys=keys, values=values):
                value = dict(values).get(column.name)
                made = dict(keys).get(column.name) if value is None else value.operand
                scope = scope_of(source, schema)
                if made is not None and infer(made, scope).range is None:
                    return why_unbounded(made, scope)
                return f"{column.name} can reach beyond 2^62; declare narrower bounds, or"
            case Union():
                return f"in some part of the UNION ALL {column.name} has no bounds;"
        return None


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
            scope = scope_of(source, schema)
            return [_made(name, node, scope) for name, node in columns]
        case UnitAggregate(source=source, keys=keys, values=values):
            scope = scope_of(source, schema)
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
    never = valueless(node, scope)
    if never not in (None, ex.Literal(None)):
        raise QueryError(f"{name}: {why_valueless(never, scope)}")
    return replace(_declaring(name, infer(node, scope)), assumed=is_assumed(node, scope))


def _assumed_value(value: UnitValue, scope: Scope) -> bool:
    if value.function in ("min", "max"):
        assert value.operand is not None
        return rests_on_assumed(value.operand, scope)
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
    parts = [facts_of_column(o) for o in options]
    found = _declaring(first.name, facts_of_choice(parts, Column("", first.name), Scope({})))
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
    # One row, or all of them: which reaches further depends on the sign.
    ends = min(low, low * rows), max(high, high * rows)
    whole = facts.kind is Kind.INTEGER
    step = facts.step if whole else value.step
    found = Facts(Kind.INTEGER if whole else Kind.REAL, *ends, None, step, facts.nullable)
    return found if within_limits(found) else replace(found, lower=None, upper=None, nullable=True)
