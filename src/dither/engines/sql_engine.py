"""An engine that is asked in SQL: what every one of them does alike.

An engine of this kind supplies a ``Dialect`` and a connection: the six methods at the end of
``SQLEngine``. From these come the checks of its sources against a schema, the SQL of a job, a trial
over empty tables before anything is charged, and the answer. It is long because these must read
columns, hold their sources and write a job in one way, and one class says how.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from math import ceil, floor
from operator import add
from typing import Any, ClassVar, Protocol

import numpy as np
from sqlglot import exp

from dither._depth import deep
from dither.engines import FAILED, Engine, Lost
from dither.engines.writer.cells import (
    ELSEWHERE,
    MOST_SETS,
    MOST_SETS_OF_UNITS,
    CellsQuery,
    axes_of,
)
from dither.engines.writer.dialect import Dialect, Seeds
from dither.engines.writer.forms import (
    all_of,
    binary,
    case,
    identifier,
    is_not_null,
    named,
    named_table,
    selected,
    subquery,
)
from dither.engines.writer.grouped import DistinctQuery, HistogramQuery
from dither.engines.writer.rows import Stored
from dither.engines.writer.sums import SumsQuery, check_overflow
from dither.engines.writer.within import QuerySource
from dither.errors import ArgumentError, EngineError, PolicyError, UnsupportedError, nearest
from dither.plan.answers import CellsInUse, ExactAnswer, Histogram, Integers
from dither.plan.job import (
    Cells,
    Distinct,
    Job,
    Leaves,
    ListedCells,
    Measurement,
    Total,
    UnitProducts,
    Units,
    UnitSizeHistogram,
)
from dither.plan.schema import ColumnFacts, Kind, Schema, Value

__all__ = ["Cursor", "SQLEngine", "all_rows"]

UNREAD = (
    "its type is not one that is read; store it as text, numbers of at most 64 bits, truth values, "
    "dates or timestamps"
)

AT_ONCE = 40
"""Columns whose losses are counted in one query."""

CHUNK = 100_000
"""Rows of a histogram that are Python objects at a time."""


class Cursor(Protocol):
    """The rows of a query, as the database interface of Python gives them."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        ...

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """The next rows; none where there are none."""
        ...


def all_rows(found: Cursor) -> list[tuple[Any, ...]]:
    """Every row of a query."""
    return found.fetchall()


class _Rows:
    """Rows that are there already, as the database interface of Python gives them."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self._rows, self._given = rows, 0

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.fetchmany(len(self._rows))

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        start, self._given = self._given, self._given + size
        return list(self._rows[start : self._given])


def _keys_and_sums(
    found: Cursor, width: int, kinds: Sequence[type[Any]]
) -> tuple[list[Any], list[Any]]:
    """The first columns of each row as one key, and the others as arrays of these types.

    So many rows at a time are Python's own objects; of the others their keys alone are.
    """
    keys: list[Any] = []
    parts: list[list[Any]] = [[np.zeros(0, dtype=kind)] for kind in kinds]
    while rows := found.fetchmany(CHUNK):
        keys += [row[:width] for row in rows]
        for place, (kind, column) in enumerate(zip(kinds, parts, strict=True), start=width):
            column.append(np.array([int(row[place]) for row in rows], dtype=kind))
    return keys, [np.concatenate(column) for column in parts]


def _counts(found: Cursor, places: Mapping[tuple[Any, ...], int], width: int) -> Integers:
    """A count for each group, 0 where there is none."""
    counts = np.zeros(len(places), dtype=np.int64)
    while rows := found.fetchmany(CHUNK):
        for row in rows:
            # Without keys a row is there even where nobody has one.
            if row[:width] in places:
                counts[places[row[:width]]] = int(row[width])
    return counts


def _whole_columns(found: Cursor, width: int) -> list[Integers]:
    """The columns of a query of whole numbers."""
    parts = [np.zeros((0, width), dtype=np.int64)]
    while rows := found.fetchmany(CHUNK):
        parts.append(np.array(rows, dtype=np.int64))
    return list(np.concatenate(parts).T)


def _rows_of_histogram(found: Cursor, places: Mapping[tuple[Any, ...], int]) -> list[Integers]:
    """Group, leaf and count, where keys are values of any kind."""
    parts = [np.zeros((0, 3), dtype=np.int64)]
    while rows := found.fetchmany(CHUNK):
        parts.append(np.array([(places[row[:-2]], *row[-2:]) for row in rows], dtype=np.int64))
    return list(np.concatenate(parts).T)


def _groups(keys: Sequence[Integers], places: Mapping[tuple[Any, ...], int], rows: int) -> Integers:
    """The place of each row's group, where keys are positions in public lists."""
    groups = np.array(list(places), dtype=np.int64).reshape(len(places), len(keys))
    codes, rising = np.zeros(len(places), dtype=np.int64), np.zeros(rows, dtype=np.int64)
    for number, key in enumerate(keys):
        # Positions of all keys together may not fit into 64 bits; ranks among the groups do.
        values = np.unique(groups[:, number])
        codes = codes * len(values) + np.searchsorted(values, groups[:, number])
        rising = rising * len(values) + np.searchsorted(values, key)
        ranks, codes = np.unique(codes, return_inverse=True)
        rising = np.searchsorted(ranks, rising)
    found: Integers = np.argsort(codes)[rising]
    if not all(np.array_equal(groups[found, i], key) for i, key in enumerate(keys)):
        raise ValueError("a group that the sums do not have")
    return found


class SQLEngine(Engine):
    """Writes jobs in a dialect, runs them, and reads their answers."""

    dialect: ClassVar[Dialect]

    _tried: tuple[Job, Schema, tuple[SumsQuery, str, dict[int, str]]] | None = None
    """The job that was prepared last, as it will run; where its text is the same for every key."""

    # --- what is known of the sources -------------------------------------------------------------

    def describe(self, table: str) -> Mapping[str, Kind | None]:
        """The columns of a table and their kinds, from its schema and never from its values.

        ``None``: a type that is not read.
        """
        types = self._table(table).types
        return {n: self.dialect.kind_of_type(kind) if kind else None for n, kind in types.items()}

    def lists(self, table: str) -> Mapping[str, Kind]:
        """The columns of a table that hold lists, and the kinds of their elements."""
        found = {}
        for name, stored in self._table(table).types.items():
            element = self.dialect.element_of(stored) if stored else None
            kind = self.dialect.kind_of_type(element) if element else None
            if kind is not None:
                found[name] = kind
        return found

    def zoned(self, table: str) -> frozenset[str]:
        """The columns of a table that hold moments with a time zone."""
        types = self._table(table).types.items()
        return frozenset(name for name, kind in types if kind and self.dialect.zoned(kind))

    def labels(self, table: str) -> Mapping[str, tuple[str, ...]]:
        """The columns of a table whose type lists its own values, and these."""
        return self._table(table).labels

    def complete(self, table: str) -> bool:
        """Whether every row is read, whatever it holds."""
        return self._table(table).complete

    def unread(self, table: str) -> Mapping[str, str]:
        """Why columns cannot be read."""
        known, lists = self.describe(table).items(), self.lists(table)
        other = (n for n, kind in known if kind is None and n not in lists)
        return dict.fromkeys(other, UNREAD) | dict(self._table(table).unread)

    def nobody(self, table: str) -> str:
        """Which people's rows are nobody's for how the source is read."""
        return self._table(table).nobody

    def _table(self, name: str) -> Stored:
        self._check_open()
        stored = self._stored_tables()
        if name not in stored:
            raise PolicyError(f"no source for table {name!r}" + nearest(name, stored))
        return stored[name]

    def _check_readable(self, table: str, facts: ColumnFacts) -> str:
        """The stored type of a column; refuses one that cannot be read as declared."""
        stored = self._table(table)
        kind = stored.types.get(facts.name)
        if kind is None or not self.dialect.readable(kind, facts.kind):
            why = self.unread(table).get(facts.name)
            hint = "" if facts.name in stored.types else nearest(facts.name, stored.types)
            raise PolicyError(
                f"column {facts.name!r} of table {table!r} cannot be read as {facts.kind.value}"
                + (f": {why}" if why else hint)
            )
        return kind

    def _read(self, table: str, *columns: ColumnFacts) -> exp.Select:
        """Columns as a query reads them, named ``v0``, ``v1``, ..."""
        stored, names = self._table(table), [f"v{i}" for i in range(len(columns))]
        typed, cleaned = [], []
        for name, facts in zip(names, columns, strict=True):
            kind = self._check_readable(table, facts)
            value = self.dialect.read(identifier(facts.name), kind, facts)
            typed.append(named(value, name))
            cleaned.append(named(self.dialect.cleaned(identifier(name), facts), name))
        rows = subquery(exp.select(*typed).from_(named_table(stored.view)), "s")
        return exp.select(*cleaned).from_(rows)

    def public_rows(
        self, table: str, columns: Sequence[ColumnFacts]
    ) -> list[tuple[Value | None, ...]]:
        found = self._execute(self.dialect.sql(self._read(table, *columns)))
        kinds = [facts.kind for facts in columns]
        return [tuple(map(self.dialect.value_of, row, kinds)) for row in found]

    def lost(self, table: str, columns: Sequence[ColumnFacts]) -> list[Lost]:
        return [
            found
            for first in range(0, len(columns), AT_ONCE)
            for found in self._lost(table, columns[first : first + AT_ONCE])
        ]

    def _lost(self, table: str, columns: Sequence[ColumnFacts]) -> list[Lost]:
        stored = self._table(table)
        view, file = stored.by_file or (stored.view, None)
        places = [] if file is None else [named(identifier(file), "file")]
        read, counted = [*places], [identifier("file")] if places else []
        for i, facts in enumerate(columns):
            kind = self._check_readable(table, facts)
            raw = identifier(facts.name)
            read.append(named(self.dialect.held(raw.copy(), kind, facts), f"h{i}"))
            read.append(named(self.dialect.read(raw, kind, facts), f"v{i}"))
            counted += [
                named(exp.Count(this=case((test, self.dialect.integer(1)))), f"n{i}{name}")
                for name, test in self._losses(facts, f"h{i}", f"v{i}").items()
            ]
        asked = selected(counted, subquery(selected(read, named_table(view)), "s"))
        if places:
            asked = asked.group_by(identifier("file"), copy=False)
        found = []
        for row in self._execute(self.dialect.sql(asked)):
            of, numbers = (row[0], row[1:]) if places else (None, row)
            for i, facts in enumerate(columns):
                found.append(Lost(facts.name, of, *map(int, numbers[3 * i : 3 * i + 3])))
        return found

    def _losses(self, facts: ColumnFacts, held: str, value: str) -> dict[str, exp.Expression]:
        """Conditions: something is said; it cannot be read; it can, and is none of the keys."""
        known = self.dialect.cleaned(identifier(value), replace(facts, values=None))
        unread = exp.Paren(this=exp.Is(this=known.copy(), expression=exp.Null()))
        if facts.values is not None:
            kept: exp.Expression = self.dialect.cleaned(identifier(value), facts)
        elif facts.edges is not None:
            ends = facts.edges[0], facts.edges[-1]
            low, high = (self._end(end, facts.kind, up=i == 0) for i, end in enumerate(ends))
            within = exp.Between(this=known.copy(), low=low, high=high)
            kept = case((within, known.copy()))
        else:
            kept = known
        lost = exp.Paren(this=exp.Is(this=kept.copy(), expression=exp.Null()))
        return {
            "s": identifier(held),
            "u": binary("AND", identifier(held), unread),
            "k": all_of(
                "AND", [identifier(held), exp.Paren(this=exp.Not(this=unread.copy())), lost]
            ),
        }

    def _end(self, end: Fraction, kind: Kind, *, up: bool) -> exp.Expression:
        """The first or the last value that a bin holds."""
        if kind is Kind.INTEGER:
            return self.dialect.nearest_integer(ceil(end) if up else floor(end))
        return self.dialect.real(end)

    def check(self, schema: Schema) -> None:
        """Hold the sources against the schema: kinds that can be read, public keys unique.

        Reads no value of a private table.

        Raises
        ------
        PolicyError
            Where a declared column is missing or cannot be read as its kind, or a public column
            declared unique is not.
        """
        for table in schema.tables.values():
            stored = self._table(table.name)
            for facts in table.columns.values():
                if facts.name not in stored.types:
                    raise PolicyError(
                        f"table {table.name!r} has no column {facts.name!r}"
                        + nearest(facts.name, stored.types)
                    )
                self._check_readable(table.name, facts)
                if facts.name == table.unit:
                    self._check_unit(table.name, facts)
            for facts in table.lists.values():
                self._check_elements(table.name, facts)
            if not table.private:
                for key in table.unique_keys:
                    self._check_unique(table.name, [table.column(name) for name in key])

    def _check_elements(self, table: str, facts: ColumnFacts) -> None:
        stored = self._table(table).types.get(facts.name) or ""
        element = self.dialect.element_of(stored)
        if element is None or not self.dialect.readable(element, facts.kind):
            raise PolicyError(
                f"column {facts.name!r} of table {table!r} does not hold lists whose elements can "
                f"be read as {facts.kind.value}"
            )

    def _check_unit(self, table: str, facts: ColumnFacts) -> None:
        """A unit is compared as it is stored, so that nobody is taken for another, or for two."""
        dialect, stored = self.dialect, self._table(table)
        if facts.name in stored.computed:
            raise PolicyError(
                f"table {table!r}: its unit {facts.name!r} is not read as it is stored, and two "
                "people could become one; name a column that is"
            )
        kind = stored.types[facts.name] or ""
        if not dialect.one_to_one(kind, facts.kind):
            own = dialect.kind_of_type(kind)
            fits = [k.value for k in {own, Kind.TEXT} if k and dialect.one_to_one(kind, k)]
            fix = (
                f"declare type = {' or '.join(map(repr, sorted(fits)))}"
                if fits
                else "store it as whole numbers or text"
            )
            raise PolicyError(
                f"table {table!r}: its unit {facts.name!r} is stored as {kind}, and read as "
                f"{facts.kind.value} two people could become one, one two, or some nobody; {fix}"
            )

    def _check_unique(self, table: str, key: Sequence[ColumnFacts]) -> None:
        """Refuse a key that rows share; one of which a part is NULL is met by no row."""
        names = [f"v{i}" for i in range(len(key))]
        shared = exp.select(*map(identifier, names)).from_(subquery(self._read(table, *key), "c"))
        shared = shared.where(*(is_not_null(identifier(name)) for name in names))
        shared = shared.group_by(*map(identifier, names))
        twice = exp.GT(this=exp.Count(this=exp.Star()), expression=self.dialect.integer(1))
        asked = exp.select(exp.Count(this=exp.Star())).from_(subquery(shared.having(twice), "d"))
        ((number,),) = self._execute(self.dialect.sql(asked))
        if number:
            called = " and ".join(repr(facts.name) for facts in key)
            columns = f"columns {called} are" if key[1:] else f"column {called} is"
            raise PolicyError(
                f"table {table!r}: {columns} declared unique{' together' if key[1:] else ''} and "
                f"{'are' if key[1:] else 'is'} not; a join on {'them' if key[1:] else 'it'} could "
                "fan out"
            )

    # --- jobs -------------------------------------------------------------------------------------

    @deep()
    def prepare(self, job: Job, schema: Schema) -> None:
        """Refuse a job that could not run, from public facts alone: before anything is charged.

        Raises
        ------
        PolicyError, BoundsError, UnsupportedError
            For a column that cannot be read as declared, a sum that could overflow, an expression
            too deep, a source that is gone or whose columns are not those it had, and for what the
            engine does not run over empty tables, or would not compute in whole numbers.
        """
        self._check_open()
        self._hold(job, schema)
        twins = {name: replace(s, view=s.empty) for name, s in self._stored_tables().items()}
        if _of_tables(job):
            parts = self._written_tables(job, schema, Seeds(0, 0), twins)
            queries, width = [sql for _, sql in parts], 0
        else:
            query, sums, others = written = self._written(job, schema, Seeds(0, 0), twins)
            queries, width = [sums, *others.values()], query.width
            # Only of units is anything chosen by a key.
            same = job.unit is None and twins == self._stored_of(job, schema)
            self._tried = (job, schema, written) if same else None
        for sql in queries:
            counted = self._rehearse(sql)[width:]
            if not all(map(self.dialect.is_whole, counted)):
                # A sum of doubles would depend on the order of its rows, and be rounded.
                raise UnsupportedError(
                    "the engine would not compute this question in whole numbers; nothing was "
                    "charged. Please report the question"
                )

    @deep()
    def run(self, job: Job, schema: Schema, key: bytes) -> ExactAnswer:
        """The exact answer to a job, with contributions bounded by a hash keyed with ``key``.

        No table is assumed to have more rows than ``dialect.most_rows``, which is 2⁴⁰ or less.

        Parameters
        ----------
        job : Job
        schema : Schema
        key : bytes
            At least 16, secret and drawn afresh for each run.

        Raises
        ------
        EngineError
            Always with the same message, whatever went wrong on the data.
        ArgumentError, PolicyError, BoundsError
            Before any data is touched: a short key, a column that cannot be read as declared, a
            sum that could overflow.
        """
        self._check_open()
        if len(key) < 16:
            raise ArgumentError("key: at least 16 secret bytes are needed")
        digest = hashlib.blake2b(key, digest_size=16, person=b"dither.bounding").digest()
        seeds = Seeds(int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big"))
        run: Callable[[], ExactAnswer]
        if _of_tables(job):
            run = partial(self._tables, self._written_tables(job, schema, seeds))
        else:
            tried = self._tried
            if tried is not None and tried[0] is job and tried[1] is schema:
                written = tried[2]
            else:
                written = self._written(job, schema, seeds)
            run = partial(self._answer, job, *written, partial(self._parts, job, schema, seeds))
        try:
            # Also around the run itself, since the charge has taken a while.
            self._hold(job, schema)
            answer = run()
            self._hold(job, schema)
        except Exception:
            raise EngineError(FAILED) from None
        return answer

    def _tables(self, parts: Sequence[tuple[dict[int, Cells], str]]) -> ExactAnswer:
        """The tables of counts of some queries, each by its place in the job."""
        values: dict[int, Any] = {}
        for tables, sql in parts:
            axes = axes_of(list(tables.values()))
            take = partial(self._whole_columns, width=len(axes) + 1)
            *places, counts = self._execute(sql, take)
            # Which keys a row has a place in says of which table it is.
            found = np.array(places, dtype=np.int64).reshape(len(axes), len(counts))
            had = found != ELSEWHERE
            for at, table in tables.items():
                own = np.array([axis in table.axes for axis in axes], dtype=bool)
                rows = np.flatnonzero((had == own[:, None]).all(axis=0))
                if isinstance(table, ListedCells):
                    values[at] = CellsInUse(found[own][:, rows].T, counts[rows])
                    continue
                cells = np.zeros(len(rows), dtype=np.int64)
                for place, size in zip(found[own][:, rows], table.shape, strict=True):
                    cells = cells * size + place
                group = np.zeros(len(rows), dtype=np.int64)
                values[at] = Histogram.of(1, table.bins, group, cells, counts[rows])
        return ExactAnswer([()], values)

    def _written_tables(
        self,
        job: Job,
        schema: Schema,
        seeds: Seeds,
        stored: Mapping[str, Stored] | None = None,
    ) -> list[tuple[dict[int, Cells], str]]:
        """A job of tables as SQL: the tables of each query by their places, and the query."""
        tables = stored or self._stored_of(job, schema)
        source = QuerySource(self.dialect, job, schema, tables, seeds)
        first: dict[tuple[int, ...], tuple[int, Cells]] = {}
        for at, table in enumerate(job.measurements):
            if not isinstance(table, Cells):
                raise TypeError("a job of tables holds nothing else")
            if table.axes in first:
                raise ValueError("a table stands twice in a job")
            first[table.axes] = at, table
        listed = list(first.values())
        most = MOST_SETS if job.unit is None else MOST_SETS_OF_UNITS
        parts = [dict(listed[i : i + most]) for i in range(0, len(listed), most)]
        query = CellsQuery(job, source, seeds)
        return [
            (tables, self.dialect.sql(query.query(list(tables.values())), copy=False))
            for tables in parts
        ]

    def _answer(
        self,
        job: Job,
        query: SumsQuery,
        sums: str,
        others: Mapping[int, str],
        parts: Callable[[], Sequence[str]],
    ) -> ExactAnswer:
        width = query.width
        summed = {
            place: self._dtype(job, measurement)
            for place, measurement in enumerate(job.measurements)
            if not isinstance(measurement, Distinct | Leaves | UnitSizeHistogram)
        }
        take = partial(_keys_and_sums, width=width, kinds=list(summed.values()))
        # What is asked beside the sums reads everybody at once in any case.
        queries = () if others else parts()
        if queries:
            each = (self._execute_part(q, i, len(queries)) for i, q in enumerate(queries))
            keys, columns = take(_Rows(_added(each, width)))
        else:
            keys, columns = self._execute(sums, take)
        values: dict[int, Any] = dict(zip(summed, columns, strict=True))
        places = {key: i for i, key in enumerate(keys)} if others else {}
        for place, measurement in enumerate(job.measurements):
            if isinstance(measurement, Distinct):
                counted = partial(_counts, places=places, width=width)
                values[place] = self._execute(others[place], counted)
            elif place in others:
                assert isinstance(measurement, Leaves | UnitSizeHistogram)
                found = self._histogram(others[place], places, query.keys_are_listed)
                values[place] = Histogram.of(len(places), measurement.bins, *found)
        for place, fine in _summed(job).items():
            leaves = job.measurements[fine]
            assert isinstance(leaves, Leaves)
            values[place] = values[fine].coarser(leaves.within)
        for i, key in enumerate(keys):
            # Each in the other's place: of many groups no two lists are held.
            keys[i] = query.key_of(key)
        return ExactAnswer(keys, values)

    def _parts(self, job: Job, schema: Schema, seeds: Seeds) -> Sequence[str]:
        """The queries of a job's sums by parts of the units; none where all are asked for at once.

        A unit is in one part with all of its rows, so what it contributes there is what it would
        contribute among all, and the sums of the parts add up to the answer.
        """
        stored = self._stored_of(job, schema)
        number = 1 if job.unit is None else self._number_of_parts(job, stored)
        if number == 1:
            return ()
        source = QuerySource(self.dialect, job, schema, stored, seeds)
        queries = [SumsQuery(job, source, seeds, (i, number)) for i in range(number)]
        return [self.dialect.sql(query.query(), copy=False) for query in queries]

    def _stored_of(self, job: Job, schema: Schema) -> Mapping[str, Stored]:
        """What a job reads: of a table whose files are parted by blocks, those of the job's."""
        return self._stored_tables()

    def _execute_part(self, sql: str, number: int, parts: int) -> Any:
        """As ``_execute``, of one query of several whose progress is told as one."""
        return self._execute(sql)

    def _number_of_parts(self, job: Job, stored: Mapping[str, Stored]) -> int:
        """In how many parts of its units a job is run, so that each fits in memory."""
        return 1

    def _histogram(
        self, sql: str, places: Mapping[tuple[Any, ...], int], listed: bool
    ) -> Sequence[Integers]:
        """Group, leaf and count of each row of a histogram."""
        if not listed:
            rows: Sequence[Integers] = self._execute(
                sql, partial(_rows_of_histogram, places=places)
            )
            return rows
        width = len(next(iter(places), ())) + 2
        *keys, leaf, count = self._execute(sql, partial(self._whole_columns, width=width))
        return _groups(keys, places, len(leaf)), leaf, count

    def _whole_columns(self, found: Cursor, width: int) -> list[Integers]:
        """The columns of a query of whole numbers of 64 bits, none of them NULL."""
        return _whole_columns(found, width)

    def _written(
        self,
        job: Job,
        schema: Schema,
        seeds: Seeds,
        stored: Mapping[str, Stored] | None = None,
    ) -> tuple[SumsQuery, str, dict[int, str]]:
        """A job as SQL: sums over units in one query, and each of the others in its own."""
        tables = stored or self._stored_of(job, schema)
        for measurement in job.measurements:
            check_overflow(self.dialect, measurement, job.max_rows)
        source = QuerySource(self.dialect, job, schema, tables, seeds)
        query = SumsQuery(job, source, seeds)
        others = {
            place: self.dialect.sql(HistogramQuery(job, source, seeds).query(m), copy=False)
            for place, m in enumerate(job.measurements)
            if isinstance(m, Leaves | UnitSizeHistogram) and place not in _summed(job)
        }
        others |= {
            place: self.dialect.sql(DistinctQuery(job, source, seeds).query(m), copy=False)
            for place, m in enumerate(job.measurements)
            if isinstance(m, Distinct)
        }
        return query, self.dialect.sql(query.query(), copy=False), others

    def _dtype(self, job: Job, measurement: Measurement) -> type[np.int64] | type[np.object_]:
        """int64 where the public facts prove that every sum fits, else Python integers."""
        if isinstance(measurement, UnitProducts):
            return np.object_
        size = measurement.magnitude if isinstance(measurement, Total) else 1
        rows = 1 if job.unit is None or isinstance(measurement, Units) else job.max_rows
        return np.int64 if size * rows * self.dialect.most_rows < 2**63 else np.object_

    # --- what an engine supplies ------------------------------------------------------------------

    @abstractmethod
    def _check_open(self) -> None:
        """Raise ``ArgumentError`` where the engine is closed."""

    @abstractmethod
    def _stored_tables(self) -> Mapping[str, Stored]:
        """What each table's source turned out to be."""

    @abstractmethod
    def _execute(self, sql: str, take: Callable[[Cursor], Any] = all_rows) -> Any:
        """Run a query and take its rows; any failure becomes the one error that says nothing."""

    @abstractmethod
    def _rehearse(self, sql: str) -> Sequence[str]:
        """Run a query over empty tables: the types of its columns, in the engine's words.

        None where the engine does not give types.

        Raises
        ------
        UnsupportedError
            Where it fails.
        """

    @abstractmethod
    def _hold(self, job: Job, schema: Schema) -> None:
        """Hold the sources that a job reads against what they were when they were opened.

        Raises
        ------
        PolicyError
            Where one is gone or has other columns.
        """


def _added(parts: Iterable[Sequence[tuple[Any, ...]]], width: int) -> list[tuple[Any, ...]]:
    """The rows of several answers as one: those of one group are added."""
    found: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for rows in parts:
        for row in rows:
            key, sums = row[:width], tuple(map(int, row[width:]))
            before = found.get(key)
            found[key] = tuple(map(add, before, sums)) if before else sums
    return [key + sums for key, sums in found.items()]


def _of_tables(job: Job) -> bool:
    """Whether a job is of tables of counts."""
    return any(isinstance(m, Cells) for m in job.measurements)


def _summed(job: Job) -> dict[int, int]:
    """Histograms that need no query, each with the finer one that it is a sum of."""
    fine = {
        m.above: place
        for place, m in enumerate(job.measurements)
        if isinstance(m, Leaves) and m.within
    }
    return {place: fine[m] for place, m in enumerate(job.measurements) if m in fine}
