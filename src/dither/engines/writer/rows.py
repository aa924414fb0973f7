"""The rows of a job as SQL: scans, filters and joins over columns read as declared.

Queries in the FROM stand in ``within``, whose source of rows an engine takes. It is long because
every relation over tables reads its columns through one source, which names, types and cleans them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import Any

from sqlglot import exp

from dither.engines.writer.blocks import lies_in
from dither.engines.writer.dialect import Dialect, Seeds
from dither.engines.writer.expressions import Emitter
from dither.engines.writer.forms import (
    all_of,
    call,
    case,
    identifier,
    is_not_null,
    named,
    named_table,
    selected,
    subquery,
)
from dither.engines.writer.readings import MARK, marked
from dither.errors import PolicyError
from dither.plan import expressions as ex
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.units import join_rows, traced, unnested_rows
from dither.plan.job import (
    Distinct,
    GroupKey,
    Job,
    Leaves,
    Rows,
    Total,
    UnitSizeHistogram,
    Values,
    read_by,
)
from dither.plan.lowering.unnested import conditions_first, items
from dither.plan.relations import (
    Elements,
    Filter,
    KeyFilter,
    PublicJoin,
    Relation,
    Scan,
    UnitJoin,
    Unnest,
    base,
    visible,
)
from dither.plan.schema import ColumnFacts, Kind, Schema

__all__ = ["RowSource", "Stored", "without_negative_zero"]


@dataclass(frozen=True, slots=True)
class Stored:
    """What a table's source turned out to be.

    Parameters
    ----------
    view : str
        Where its rows lie: a table or view of the engine.
    types : mapping of str to str or None
        Its columns and their types, in the engine's words; ``None`` is a type that cannot be read.
    unread : mapping of str to str
        Why a column cannot be read, where there is more to say than its type.
    computed : frozenset of str
        Columns that do not hold what is stored, but what was made of it: none can be the unit.
    complete : bool
        Whether every row is read, whatever it holds.
    layout : tuple
        The names and types as the source has them, to see whether it still has them later.
    seal : tuple
        What shows at little cost that the layout is as it was; empty where nothing does.
    route : object, optional
        How the engine reaches the rows, where it must make that anew before each run.
    empty : str
        A table of the engine with the same columns and no rows, to try a query on; the view's own
        name where queries are tried on a connection on which it stands for such a table.
    labels : mapping of str to tuple of str
        By column whose type lists its own values: these.
    by_file : tuple of str, optional
        A view of the same rows that also says which file each is of, and the column that does.
    base : str, optional
        The table that the rows lie in, where the source holds several; of a view, that below it.
    nobody : str
        Which people's rows are nobody's for how the source is read, and what would help.
    parted_by : str, optional
        The column of blocks, where the names of folders give it: files of blocks that a job does
        not read are not opened.
    """

    view: str
    types: Mapping[str, str | None]
    unread: Mapping[str, str] = field(default_factory=dict)
    computed: frozenset[str] = frozenset()
    complete: bool = True
    layout: tuple[Any, ...] = ()
    seal: tuple[bytes, ...] = field(default=(), compare=False)
    route: Any = field(default=None, compare=False)
    empty: str = ""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_file: tuple[str, str] | None = None
    base: str | None = None
    nobody: str = ""
    parted_by: str | None = None


def without_negative_zero(
    dialect: Dialect, value: exp.Expression, kind: Kind | None
) -> exp.Expression:
    """Zero without its sign: the engine groups both zeros, and would show either."""
    if kind is not Kind.REAL:
        return value
    zero = dialect.real(0.0)
    return case((exp.EQ(this=value.copy(), expression=zero), zero.copy()), otherwise=value)


class RowSource:
    """Writes the rows of a job's relation, and expressions over them.

    Parameters
    ----------
    dialect : Dialect
    job : Job
    schema : Schema
    stored : mapping of str to Stored
        By table.
    seeds : Seeds
    """

    def __init__(
        self,
        dialect: Dialect,
        job: Job,
        schema: Schema,
        stored: Mapping[str, Stored],
        seeds: Seeds,
    ) -> None:
        self.dialect = dialect
        self.schema = schema
        self._stored = stored
        self._seeds = seeds
        self.scope = scope_of(job.relation, schema)
        self._names = {column: f"c{i}" for i, column in enumerate(read_columns(job))}
        self._tables = {s.alias: s.table for s in visible(job.relation) if isinstance(s, Scan)}
        self._aliases = [named.alias for named in visible(job.relation)]
        self._lists = {column: f"l{i}" for i, column in enumerate(_lists_of(job.relation))}
        self._items = items(job.relation, schema)
        self._job = job
        read = read_by(job.measurements)
        self._summed = {m.operand for m in read if isinstance(m, Total | Leaves)}
        self._cleaned = cleaned_columns(job, schema)
        self.emitter = Emitter(
            dialect,
            self.scope,
            lambda column: identifier(self._names[column]),
            self._largest,
            lambda column: self.unchecked(column) if self._is_raw_real(column) else None,
        )

    def unchecked(self, column: ex.Column) -> exp.Expression:
        """A column before it is cleaned: of declared values, or a real that is summed as it is."""
        return identifier("r" + self._names[column])

    def reads_unchecked(self, key: GroupKey) -> bool:
        """Whether a key is read with ``unchecked``."""
        return reads_unchecked(key, self._job, self.schema)

    def _is_unchecked(self, column: ex.Column) -> bool:
        if column.table not in self._tables:
            return False
        return self._facts(column).values is not None or self._is_raw_real(column)

    def _is_raw_real(self, column: ex.Column) -> bool:
        return column in self._summed and is_raw_real(column, self._job, self.schema)

    def select(self, relation: Relation) -> exp.Select:
        """The rows of a relation, with every column that the job reads of it."""
        relation = conditions_first(relation)
        match relation:
            case Scan():
                return self._scan(relation)
            case Filter(source=source, predicate=predicate):
                found = selected([exp.Star()], subquery(self.select(source), "f"))
                return found.where(self.emitter.value(predicate, Kind.BOOLEAN), copy=False)
            case Unnest():
                return self._unnested(relation)
            case KeyFilter():
                return self._among(relation)
            case PublicJoin():
                return self._public_join(relation)
            case UnitJoin():
                return self._unit_join(relation)
        raise TypeError(type(relation).__name__)

    def _read_of(self, alias: str) -> dict[str, str]:
        """What the job reads behind an alias: columns, and the names that they have here."""
        return {column.name: self._names[column] for column in self._own(alias)}

    def _placeholder(self, alias: str) -> exp.Expression:
        """A column to count rows by, where none is read; its name must not meet another's."""
        return named(exp.true(), f"n{self._aliases.index(alias)}")

    def _facts(self, column: ex.Column) -> ColumnFacts:
        if column.name.startswith(MARK):
            return ColumnFacts(column.name, Kind.BOOLEAN)
        return self.schema.table(self._tables[column.table]).column(column.name)

    def _largest(self, column: ex.Column) -> Fraction | None:
        if column.table not in self._tables:
            return None
        kind = self._stored[self._tables[column.table]].types.get(column.name)
        return self.dialect.largest_read(kind or "", self._facts(column))

    def _own(self, alias: str) -> list[ex.Column]:
        return [column for column in self._names if column.table == alias]

    def _scan(self, scan: Scan) -> exp.Select:
        stored = self._stored[scan.table]
        raw: list[exp.Expression] = []
        read: list[exp.Expression] = []
        for column in self._own(scan.alias):
            suspect, source = column.name.startswith(MARK), column.name.removeprefix(MARK)
            facts, name = self._facts(ex.Column(scan.alias, source)), self._names[column]
            kind = stored.types.get(source)
            if kind is None or not self.dialect.readable(kind, facts.kind):
                raise PolicyError(
                    f"column {source!r} of table {scan.table!r} cannot be read as "
                    f"{facts.kind.value}"
                )
            if column == self._job.unit and column.name in stored.computed:
                raise PolicyError(
                    f"the unit {column.name!r} of table {scan.table!r} is not read as it is stored"
                )
            typed = self.dialect.read(identifier(source), kind, facts)
            if suspect:
                raw.append(named(self.dialect.held(identifier(source), kind, facts), "h" + name))
                raw.append(named(typed, name))
                lost = exp.Is(
                    this=self.dialect.cleaned(identifier(name), facts), expression=exp.Null()
                )
                read.append(named(case((identifier("h" + name), exp.Paren(this=lost))), name))
                continue
            raw.append(named(typed, name))
            value = identifier(name)
            if column in self._cleaned:
                read.append(named(self.dialect.cleaned(value.copy(), facts), name))
            if self._is_unchecked(column):
                read.append(named(value, "r" + name))
        for column, name in self._lists.items():
            if column.table == scan.alias:
                raw.append(named(identifier(column.name), name))
                read.append(identifier(name))
        table = self._in_blocks(scan, stored)
        if not raw:
            return table.select(self._placeholder(scan.alias), copy=False)
        return selected(read, subquery(table.select(*raw, copy=False), "s"))

    def _in_blocks(self, scan: Scan, stored: Stored) -> exp.Select:
        """The rows of a table, those of other blocks left out: nothing is selected of them yet."""
        block = self.schema.table(scan.table).block
        rows = exp.Select().from_(named_table(stored.view), copy=False)
        if scan.blocks is None or block is None:
            return rows
        name, calendar = block
        facts, kind = self.schema.table(scan.table).column(name), stored.types.get(name)
        if kind is None or not self.dialect.readable(kind, facts.kind):
            raise PolicyError(
                f"column {name!r} of table {scan.table!r} cannot be read as {facts.kind.value}"
            )
        value = self.dialect.read(identifier(name), kind, facts)
        if not isinstance(value, exp.Identifier | exp.Column):
            # Made once, however many stretches of blocks it is compared with.
            own = name
            while own.casefold() in {known.casefold() for known in stored.types}:
                own += "_"
            read = selected([exp.Star(), named(value, own)], named_table(stored.view))
            rows, value = exp.Select().from_(subquery(read, "b"), copy=False), identifier(own)
        found = lies_in(self.dialect, value, facts, calendar, scan.blocks)
        return rows if found is None else rows.where(found, copy=False)

    def _unnested(self, relation: Unnest) -> exp.Select:
        """Three steps: a row for each element; the elements as values of their kind; cleaned."""
        elements = relation.elements
        listed = self._lists[ex.Column(elements.table, elements.column)]
        one = f"e{self._aliases.index(elements.alias)}"
        below = self.select(relation.source)
        if not any(isinstance(named, Elements) for named in visible(relation.source)):
            below = self._capped(relation.source, below)
        held = self.dialect.first_items(identifier(listed), self._items[elements.alias])
        rows = selected([exp.Star(), named(self.dialect.unnested(held), one)], subquery(below, "f"))
        column = ex.Column(elements.alias, elements.name)
        if column not in self._names:
            return rows
        scan = self._tables[elements.table]
        stored = self._stored[scan].types.get(elements.column) or ""
        element, facts = self.dialect.element_of(stored), self.scope.column(column)
        if element is None or not self.dialect.readable(element, facts.kind):
            raise PolicyError(
                f"column {elements.column!r} of table {scan!r} does not hold lists whose elements "
                f"can be read as {facts.kind.value}"
            )
        typed = self.dialect.read(identifier(one), element, facts)
        values = selected([exp.Star(), named(typed, f"t{one}")], subquery(rows, "e"))
        value = self.dialect.cleaned(identifier(f"t{one}"), facts)
        return selected([exp.Star(), named(value, self._names[column])], subquery(values, "t"))

    def _capped(self, relation: Relation, rows: exp.Select) -> exp.Select:
        """Of each unit's rows those that come first by a keyed hash of their content, as far as
        their lists give no more than ``max_unnest_rows``: before anything is made of a list.
        """
        unit = self._job.unit
        if unit is None:
            return rows
        lists = list(self._lists.values())
        elements = [one for one in visible(self._job.relation) if isinstance(one, Elements)]
        sizes = []
        for one in elements:
            zero, held = self.dialect.integer(0), self._lists[ex.Column(one.table, one.column)]
            length = call("COALESCE", self.dialect.number_of_items(identifier(held)), zero.copy())
            # No more than counts of each list: so the product of all is at most max_unnest_rows,
            # and no list however long can make it, or the sum, overflow.
            counted = self.dialect.integer(self._items[one.alias])
            sizes.append(self.dialect.least(self.dialect.greatest(length, zero), counted))
        size = reduce(lambda a, b: self.dialect.arithmetic("*", a, b), sizes)
        known = is_not_null(self.emitter.value(unit))
        counted = selected([exp.Star(), named(size, "given")], subquery(rows, "u")).where(known)
        # Almost nobody has more. To number everybody's rows took seven times as long.
        most, own = unnested_rows(relation, self.schema), self.emitter.value(unit)
        beyond = selected([named(own, "much")], subquery(counted.copy(), "a")).group_by(own.copy())
        total, limit = self.dialect.summed(identifier("given")), self.dialect.integer(most)
        beyond = beyond.having(exp.GT(this=total, expression=limit), copy=False)
        same = exp.EQ(this=own.copy(), expression=identifier("much", "b"))
        kept = self._kept(relation, lists)
        few = selected(kept, subquery(counted.copy(), "c")).join(
            subquery(beyond.copy(), "b"), on=same, join_type="LEFT", copy=False
        )
        few = few.where(exp.Is(this=identifier("much", "b"), expression=exp.Null()), copy=False)
        many = selected([exp.Star()], subquery(counted, "c")).join(
            subquery(beyond, "b"), on=same.copy(), join_type="INNER", copy=False
        )
        together = exp.Window(
            this=self.dialect.summed(identifier("given")),
            spec=exp.WindowSpec(
                kind="ROWS", start="UNBOUNDED", start_side="PRECEDING", end="CURRENT ROW"
            ),
        )
        first = self._first_of_unit(relation, many, unit, together, most, lists)
        both = exp.Union(this=few, expression=first, distinct=False)
        return selected([exp.Star()], subquery(both, "h"))

    def _kept(self, relation: Relation, lists: Sequence[str] = ()) -> list[exp.Expression]:
        """Every column that the job reads of a relation, and lists."""
        columns = [c for named in visible(relation) for c in self._own(named.alias)]
        names = [self._names[c] for c in columns]
        unchecked = [self.unchecked(c) for c in columns if self._is_unchecked(c)]
        return [*(identifier(name) for name in (*names, *lists)), *unchecked]

    def _among(self, among: KeyFilter) -> exp.Select:
        """Rows whose operand is in the list of a public table, by the engine's own ``IN``."""
        kind = self.emitter.facts(among.operand).kind
        assert kind is not None
        key = GroupKey("key", among.column, kind, None)
        job = Job(among.keys, None, (key,), (Rows(),), 1, 1)
        inner = RowSource(self.dialect, job, self.schema, self._stored, self._seeds)
        listed = selected(
            [named(inner.emitter.value(among.column, kind), "key")],
            subquery(inner.select(among.keys), "s"),
        )
        found: exp.Expression = exp.In(
            this=self.emitter.value(among.operand, kind), query=exp.Subquery(this=listed)
        )
        if among.negated:
            found = exp.Not(this=found)
        rows = selected([exp.Star()], subquery(self.select(among.source), "f"))
        return rows.where(found, copy=False)

    def _public_join(self, join: PublicJoin) -> exp.Select:
        keys: list[exp.Expression] = []
        conditions: list[exp.Expression] = []
        for i, (left, right) in enumerate(join.on):
            name = f"j{i}{join.public.alias}"
            kinds = {self.emitter.facts(left).kind, self.emitter.facts(right).kind}
            kind = _common_kind(kinds)
            keys.append(named(self.emitter.value(right, kind), name))
            conditions.append(
                exp.EQ(this=self.emitter.value(left, kind), expression=identifier(name, "p"))
            )
        own = [identifier(self._names[c]) for c in self._own(join.public.alias)]
        public = selected([exp.Star(), *keys], subquery(self._scan(join.public), "s"))
        # One row per key, whatever the public table holds: a join must not fan out.
        first = exp.Window(
            this=exp.RowNumber(),
            partition_by=[identifier(f"j{i}{join.public.alias}") for i in range(len(keys))],
            order=exp.Order(expressions=own),
        )
        once = self.dialect.ranked(
            [exp.Star()], subquery(public, "q"), first, 1, f"first_{join.public.alias}"
        )
        return selected([exp.Star()], subquery(self.select(join.source), "f")).join(
            subquery(once, "p"),
            on=all_of("AND", conditions),
            join_type="LEFT" if join.keep_all else "INNER",
            copy=False,
        )

    def _unit_join(self, join: UnitJoin) -> exp.Select:
        left = self._cut(join.left, self.select(join.left), join.left_unit)
        right = self._cut(join.right, self.select(join.right), join.right_unit)
        self._check_alike(join)
        return selected([exp.Star()], subquery(left, "l")).join(
            subquery(right, "g"),
            on=all_of("AND", [self._same(a, b) for a, b in join.equal]),
            join_type="LEFT" if join.keep_all else "INNER",
            copy=False,
        )

    def _same(self, left: ex.Expression, right: ex.Expression) -> exp.Expression:
        kind = _common_kind({self.emitter.facts(left).kind, self.emitter.facts(right).kind})
        return exp.EQ(
            this=self.emitter.value(left, kind), expression=self.emitter.value(right, kind)
        )

    def _check_alike(self, join: UnitJoin) -> None:
        """One person's rows meet another's where units of two types are compared as a third."""
        self._check_units(
            self._stored_unit(join.left_unit, join.left),
            self._stored_unit(join.right_unit, join.right),
        )

    def _stored_unit(self, unit: ex.Column, relation: Relation) -> tuple[str, str]:
        """The name of a unit's column in its table, and the type that it is stored as."""
        found = traced(unit, relation, self.schema)
        assert found is not None
        scan, name = found
        return name, self._stored[scan.table].types.get(name) or ""

    def _check_units(self, left: tuple[str, str], right: tuple[str, str]) -> None:
        """Refuse units of which two different ones could be taken for one."""
        if not self.dialect.stored_alike(left[1], right[1]):
            raise PolicyError(
                f"the units {left[0]!r} and {right[0]!r} are stored as "
                f"{left[1]} and {right[1]}, and units are compared as they are stored; store both "
                "in one type"
            )

    def _cut(self, relation: Relation, rows: exp.Select, unit: ex.Column) -> exp.Select:
        """At most ``max_join_rows`` rows of each unit, by a keyed hash of their content."""
        most = join_rows(relation, self.schema)
        if most is None:
            table = base(relation).table
            raise PolicyError(
                f"table {table!r}: declare max_join_rows, the rows of a unit that a join uses"
            )
        return self._first_of_unit(relation, rows, unit, exp.Window(this=exp.RowNumber()), most)

    def _first_of_unit(
        self,
        relation: Relation,
        rows: exp.Select,
        unit: ex.Column,
        window: exp.Window,
        most: int,
        lists: Sequence[str] = (),
    ) -> exp.Select:
        """The rows of each unit, in the order of a keyed hash of their content, of which a window
        function says no more than ``most``.

        Equal rows are distinguished by a number; as they are alike, it does not matter which has
        which.
        """
        columns = [c for named in visible(relation) for c in self._own(named.alias)]
        read = [identifier(name) for name in (*(self._names[c] for c in columns), *lists)]
        # Copies of a row are numbered, so that no two places of the order are alike.
        place = self.dialect.row_number([c.copy() for c in read])
        numbered = selected([exp.Star(), named(place, "occurrence")], subquery(rows, "w"))
        numbered = numbered.where(is_not_null(self.emitter.value(unit)), copy=False)
        content = [*read, identifier("occurrence")]
        hashed = self.dialect.keyed_hash(self._seeds, content)
        window.set("partition_by", [self.emitter.value(unit)])
        window.set("order", exp.Order(expressions=[hashed, *(c.copy() for c in content)]))
        kept = self._kept(relation, lists)
        return self.dialect.ranked(kept, subquery(numbered, "o"), window, most, "rank")


def _common_kind(kinds: set[Kind | None]) -> Kind | None:
    found = kinds - {None}
    if len(found) > 1:
        return Kind.REAL if Kind.REAL in found else Kind.TIMESTAMP
    return next(iter(found), None)


# --- which columns a job reads, and which as they are before they are cleaned ------------------


def read_in(node: ex.Expression) -> tuple[ex.Column, ...]:
    """The columns that an expression reads, those among them that say what cannot be read."""
    suspect = (marked(part) for part in ex.walk(node) if isinstance(part, ex.Unreadable))
    return tuple(dict.fromkeys([*ex.columns(node), *suspect]))


def read_columns(job: Job) -> tuple[ex.Column, ...]:
    """Every column that a job reads, each once."""
    found: list[ex.Column] = [] if job.unit is None else [job.unit]
    for key in job.keys:
        found.extend(read_in(key.expression))
    if job.history is not None:
        for node in (*job.history.within, job.history.order):
            found.extend(read_in(node))
    for measurement in read_by(job.measurements):
        if isinstance(measurement, Values | Total | Leaves):
            found.extend(read_in(measurement.operand))
        if isinstance(measurement, Distinct):
            found.extend(c for part in measurement.operands for c in read_in(part))
        if isinstance(measurement, UnitSizeHistogram):
            found.extend(c for key in measurement.by for c in read_in(key))
    found.extend(_columns_of(job.relation))
    return tuple(dict.fromkeys(found))


def cleaned_columns(job: Job, schema: Schema) -> frozenset[ex.Column]:
    """The columns that a job reads as ``Dialect.cleaned`` gives them; others it reads raw alone.

    What nobody asks for is not written, since an engine may compute it all the same. Joins read
    all of a table's columns, to distinguish its rows.
    """
    every = read_columns(job)
    if not isinstance(_without_filters(job.relation), Scan):
        return frozenset(every)
    totals = {m.operand for m in read_by(job.measurements) if isinstance(m, Total)}
    found = [] if job.unit is None else [job.unit]
    found.extend(_columns_of(job.relation))
    if job.history is not None:
        for node in (*job.history.within, job.history.order):
            found.extend(read_in(node))
    for key in job.keys:
        if not reads_unchecked(key, job, schema):
            found.extend(read_in(key.expression))
    for measurement in read_by(job.measurements):
        match measurement:
            case Values(operand=operand) if operand not in totals:
                found.extend(read_in(operand))
            case UnitSizeHistogram(by=by):
                found.extend(c for key in by for c in read_in(key))
            case Distinct(operands=parts):
                found.extend(c for part in parts for c in read_in(part))
            case Total(operand=operand) | Leaves(operand=operand):
                if not (isinstance(operand, ex.Column) and is_raw_real(operand, job, schema)):
                    found.extend(read_in(operand))
    return frozenset(found)


def reads_unchecked(key: GroupKey, job: Job, schema: Schema) -> bool:
    """Whether a key is a column of declared values whose public list is all that is asked of it.

    The join with the list is the test against the declared values too.
    """
    node = key.expression
    if not isinstance(node, ex.Column) or key.values is None:
        return False
    facts = facts_of(node, job, schema)
    if facts is None or facts.values is None:
        return False
    return set(key.values) <= set(facts.values)


def is_raw_real(column: ex.Column, job: Job, schema: Schema) -> bool:
    """Whether sums and histograms may read the column itself, and test for NaN as they clamp."""
    facts = facts_of(column, job, schema)
    return facts is not None and facts.kind is Kind.REAL and facts.values is None


def facts_of(column: ex.Column, job: Job, schema: Schema) -> ColumnFacts | None:
    """The public facts of a table's column that a job reads; ``None`` of one that a query makes."""
    for named_ in visible(job.relation):
        if isinstance(named_, Scan) and named_.alias == column.table:
            return schema.table(named_.table).column(column.name)
    return None


def _without_filters(relation: Relation) -> Relation:
    return _without_filters(relation.source) if isinstance(relation, Filter) else relation


def _lists_of(relation: Relation) -> list[ex.Column]:
    """The columns of lists that are unnested, each once."""
    elements = [one for one in visible(relation) if isinstance(one, Elements)]
    return list(dict.fromkeys(ex.Column(one.table, one.column) for one in elements))


def _columns_of(relation: Relation) -> list[ex.Column]:
    match relation:
        case Unnest(source=source):
            return _columns_of(source)
        case Filter(source=source, predicate=predicate):
            return [*_columns_of(source), *read_in(predicate)]
        case KeyFilter(source=source, operand=operand):
            return [*_columns_of(source), *read_in(operand)]
        case PublicJoin(source=source, on=on):
            return [
                *_columns_of(source),
                *(c for left, right in on for c in (*read_in(left), right)),
            ]
        case UnitJoin(left=left, equal=equal):
            return [*_columns_of(left), *(c for pair in equal for x in pair for c in read_in(x))]
    return []
