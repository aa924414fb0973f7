"""The rows of a job as SQL: scans, filters and joins over columns read as declared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from sqlglot import exp

from dither.engines.duckdb import types as leaves
from dither.engines.writer import forms
from dither.engines.writer.expressions import Emitter
from dither.errors import PolicyError
from dither.plan import expressions as ex
from dither.plan.facts import Scope
from dither.plan.job import Job, Leaves, Total, Values
from dither.plan.kinds import Kind
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin, base, scans
from dither.plan.schema import ColumnFacts, Schema

__all__ = ["RowSource", "Seeds", "Stored", "read_columns", "without_negative_zero"]


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a table's rows lie: a view of the engine, its columns' types, and an empty twin."""

    view: str
    types: Mapping[str, str | None]
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Seeds:
    """The secret key of one run, as two 64-bit numbers, and the hash that is keyed with it.

    The engine's own hash is no cryptographic one. Privacy does not need it to be: what is kept of
    a unit is a function of that unit's rows and the key, whatever the function. The key is for
    fairness, so that nobody can choose an identifier that is always kept. The hash is applied
    twice, because its combination of values is close to linear and would favour some groups.
    """

    first: int
    second: int

    def hash(self, *parts: exp.Expression) -> exp.Expression:
        """A keyed hash of the parts; ties must be broken by the parts themselves."""
        inner = forms.call("HASH", forms.integer(self.first, "UBIGINT"), *(p.copy() for p in parts))
        mixed = forms.call("XOR", inner, forms.integer(self.second, "UBIGINT"))
        return forms.call("HASH", mixed)


def without_negative_zero(value: exp.Expression, kind: Kind | None) -> exp.Expression:
    """Zero without its sign: the engine groups both zeros, and would show either."""
    if kind is not Kind.REAL:
        return value
    zero = forms.real(0.0)
    return forms.case((exp.EQ(this=value.copy(), expression=zero), zero.copy()), otherwise=value)


def read_columns(job: Job) -> tuple[ex.Column, ...]:
    """Every column that a job reads, each once."""
    found: list[ex.Column] = [] if job.unit is None else [job.unit]
    for key in job.keys:
        found.extend(ex.columns(key.expression))
    for measurement in job.measurements:
        if isinstance(measurement, Values | Total | Leaves):
            found.extend(ex.columns(measurement.operand))
    found.extend(_columns_of(job.relation))
    return tuple(dict.fromkeys(found))


def _columns_of(relation: Relation) -> list[ex.Column]:
    match relation:
        case Filter(source=source, predicate=predicate):
            return [*_columns_of(source), *ex.columns(predicate)]
        case PublicJoin(source=source, on=on):
            return [
                *_columns_of(source),
                *(c for left, right in on for c in (*ex.columns(left), right)),
            ]
        case UnitJoin(left=left, left_unit=left_unit, right_unit=right_unit):
            return [*_columns_of(left), left_unit, right_unit]
    return []


class RowSource:
    """Writes the rows of a job's relation, and expressions over them.

    Parameters
    ----------
    job : Job
    schema : Schema
    stored : mapping of str to Stored
        By table.
    seeds : Seeds
    """

    def __init__(
        self, job: Job, schema: Schema, stored: Mapping[str, Stored], seeds: Seeds
    ) -> None:
        self._schema = schema
        self._stored = stored
        self._seeds = seeds
        self.scope = Scope.of(job.relation, schema)
        self._names = {column: f"c{i}" for i, column in enumerate(read_columns(job))}
        self._tables = {scan.alias: scan.table for scan in scans(job.relation)}
        self.emitter = Emitter(
            self.scope, lambda column: forms.identifier(self._names[column]), self._largest
        )

    def unchecked(self, column: ex.Column) -> exp.Expression:
        """A column with declared values, read without holding it against them."""
        return forms.identifier("r" + self._names[column])

    def select(self, relation: Relation) -> exp.Select:
        """The rows of a relation, with every column that the job reads of it."""
        match relation:
            case Scan():
                return self._scan(relation)
            case Filter(source=source, predicate=predicate):
                found = exp.select("*").from_(self.select(source).subquery("f", copy=False))
                return found.where(self.emitter.value(predicate, Kind.BOOLEAN), copy=False)
            case PublicJoin():
                return self._public_join(relation)
            case UnitJoin():
                return self._unit_join(relation)
        raise TypeError(type(relation).__name__)

    def _facts(self, column: ex.Column) -> ColumnFacts:
        return self._schema.table(self._tables[column.table]).column(column.name)

    def _largest(self, column: ex.Column) -> Fraction | None:
        kind = self._stored[self._tables[column.table]].types.get(column.name)
        return leaves.largest(kind or "", self._facts(column))

    def _own(self, alias: str) -> list[ex.Column]:
        return [column for column in self._names if column.table == alias]

    def _scan(self, scan: Scan) -> exp.Select:
        stored = self._stored[scan.table]
        raw: list[exp.Expression] = []
        read: list[exp.Expression] = []
        for column in self._own(scan.alias):
            facts, name = self._facts(column), self._names[column]
            kind = stored.types.get(column.name)
            if kind is None or not leaves.readable(kind, facts.kind):
                raise PolicyError(
                    f"column {column.name!r} of table {scan.table!r} cannot be read as "
                    f"{facts.kind.value}"
                )
            typed = leaves.typed(forms.identifier(column.name), kind, facts.kind)
            raw.append(forms.named(typed, name))
            value = forms.identifier(name)
            read.append(forms.named(leaves.cleaned(value.copy(), facts), name))
            if facts.values is not None:
                read.append(forms.named(value, "r" + name))
        table = exp.to_table(stored.view)
        table.this.set("quoted", True)
        if not raw:
            # Counting rows needs a column all the same; its name must not meet another's.
            number = list(self._tables).index(scan.alias)
            return exp.select(forms.named(exp.true(), f"n{number}")).from_(table)
        return exp.select(*read).from_(exp.select(*raw).from_(table).subquery("s", copy=False))

    def _public_join(self, join: PublicJoin) -> exp.Select:
        keys: list[exp.Expression] = []
        conditions: list[exp.Expression] = []
        for i, (left, right) in enumerate(join.on):
            name = f"j{i}{join.public.alias}"
            kinds = {self.emitter.facts(left).kind, self.emitter.facts(right).kind}
            kind = _common_kind(kinds)
            keys.append(forms.named(self.emitter.value(right, kind), name))
            conditions.append(
                exp.EQ(this=self.emitter.value(left, kind), expression=forms.identifier(name, "p"))
            )
        own = [forms.identifier(self._names[c]) for c in self._own(join.public.alias)]
        public = exp.select(exp.Star(), *keys).from_(
            self._scan(join.public).subquery("s", copy=False)
        )
        # One row per key, whatever the public table holds: a join must not fan out.
        first = exp.Window(
            this=exp.RowNumber(),
            partition_by=[forms.identifier(f"j{i}{join.public.alias}") for i in range(len(keys))],
            order=exp.Order(expressions=own),
        )
        once = exp.select("*").from_(public.subquery("q", copy=False))
        once.set("qualify", exp.Qualify(this=exp.EQ(this=first, expression=forms.integer(1))))
        return (
            exp.select("*")
            .from_(self.select(join.source).subquery("f", copy=False))
            .join(
                once.subquery("p", copy=False),
                on=forms.all_of("AND", conditions),
                join_type="LEFT" if join.keep_all else "INNER",
                copy=False,
            )
        )

    def _unit_join(self, join: UnitJoin) -> exp.Select:
        left = self._cut(join.left, self.select(join.left), join.left_unit)
        right = self._cut(join.right, self._scan(join.right), join.right_unit)
        kind = _common_kind(
            {self.emitter.facts(join.left_unit).kind, self.emitter.facts(join.right_unit).kind}
        )
        self._check_alike(join)
        same = exp.EQ(
            this=self.emitter.value(join.left_unit, kind),
            expression=self.emitter.value(join.right_unit, kind),
        )
        return (
            exp.select("*")
            .from_(left.subquery("l", copy=False))
            .join(right.subquery("g", copy=False), on=same, copy=False)
        )

    def _check_alike(self, join: UnitJoin) -> None:
        """One person's rows meet another's where units of two types are compared as a third."""
        ours, theirs = (
            self._stored[self._tables[unit.table]].types.get(unit.name) or ""
            for unit in (join.left_unit, join.right_unit)
        )
        if not leaves.stored_alike(ours, theirs):
            raise PolicyError(
                f"the units {join.left_unit.name!r} and {join.right_unit.name!r} are stored as "
                f"{ours} and {theirs}, and units are compared as they are stored; store both in "
                "one type"
            )

    def _cut(self, relation: Relation, rows: exp.Select, unit: ex.Column) -> exp.Select:
        """At most ``max_join_rows`` rows of each unit, by a keyed hash of their content.

        Rows alike are told apart by a number; as they are alike, it does not matter which has
        which.
        """
        table = self._schema.table(base(relation).table)
        if table.max_join_rows is None:
            raise PolicyError(
                f"table {table.name!r}: declare max_join_rows, the rows of a unit that a join uses"
            )
        aliases = {scan.alias for scan in scans(relation)}
        columns = [forms.identifier(name) for c, name in self._names.items() if c.table in aliases]
        numbered = exp.select(
            exp.Star(),
            forms.named(
                exp.Window(this=exp.RowNumber(), partition_by=[c.copy() for c in columns]),
                "occurrence",
            ),
        ).from_(rows.subquery("w", copy=False))
        present = exp.Not(this=exp.Is(this=self.emitter.value(unit), expression=exp.Null()))
        numbered = numbered.where(present, copy=False)
        content = [*columns, forms.identifier("occurrence")]
        rank = exp.Window(
            this=exp.RowNumber(),
            partition_by=[self.emitter.value(unit)],
            order=exp.Order(expressions=[self._seeds.hash(*content), *(c.copy() for c in content)]),
        )
        kept = exp.select(exp.Star(**{"except_": [exp.to_identifier("occurrence", quoted=True)]}))
        kept = kept.from_(numbered.subquery("o", copy=False))
        limit = forms.integer(table.max_join_rows)
        kept.set("qualify", exp.Qualify(this=exp.LTE(this=rank, expression=limit)))
        return kept


def _common_kind(kinds: set[Kind | None]) -> Kind | None:
    found = kinds - {None}
    if len(found) > 1:
        return Kind.REAL if Kind.REAL in found else Kind.TIMESTAMP
    return next(iter(found), None)
