"""One keyed hash that engines share, so that what is kept of a unit has one right answer too.

Each part becomes a text that all engines write alike: a real its floor or "far", truth 1 or 0. The
hash is the MD5 of the seeds and the parts; ties are broken by the parts, as with any other hash.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlglot import exp

from conformance.sqlite import SQLiteDialect, SQLiteEngine
from dither.engines.duckdb.dialect import DuckDBDialect
from dither.engines.postgres.dialect import PostgresDialect
from dither.engines.spark.dialect import SparkDialect
from dither.engines.writer import Seeds
from dither.engines.writer.forms import call
from dither.engines.writer.readings import MARK
from dither.engines.writer.rows import read_columns
from dither.plan import expressions as ex
from dither.plan.facts.scopes import scope_of
from dither.plan.job import Job
from dither.plan.relations import Filter, UnitJoin, base, scans
from dither.plan.schema import Kind, Schema
from engines import reference

TEXTS = {
    "duckdb": (
        "CASE WHEN TYPEOF({0}) = 'DOUBLE' THEN CASE WHEN ABS(TRY_CAST(CAST({0} AS VARCHAR) AS "
        "DOUBLE)) < 9e18 THEN CAST(TRY_CAST(FLOOR(TRY_CAST(CAST({0} AS VARCHAR) AS DOUBLE)) AS "
        "BIGINT) AS VARCHAR) WHEN NOT {0} IS NULL THEN 'far' END "
        "WHEN CAST({0} AS VARCHAR) = 'true' AND TYPEOF({0}) = 'BOOLEAN' THEN '1' "
        "WHEN TYPEOF({0}) = 'BOOLEAN' AND NOT {0} IS NULL THEN '0' "
        "ELSE CAST({0} AS VARCHAR) END"
    ),
    "postgres": (
        "CASE WHEN CAST(PG_TYPEOF({0}) AS TEXT) = 'double precision' THEN CASE WHEN "
        "ABS(CAST(CAST({0} AS TEXT) AS DOUBLE PRECISION)) < 9e18 THEN CAST(CAST(FLOOR(CAST(CAST("
        "{0} AS TEXT) AS DOUBLE PRECISION)) AS BIGINT) AS TEXT) WHEN NOT {0} IS NULL THEN 'far' "
        "END WHEN CAST(PG_TYPEOF({0}) AS "
        "TEXT) = 'boolean' THEN CASE CAST({0} AS TEXT) WHEN 'true' THEN '1' WHEN 'false' THEN '0' "
        "END ELSE CAST({0} AS TEXT) END"
    ),
    "databricks": (
        "CASE TYPEOF({0}) WHEN 'double' THEN CASE WHEN ABS(TRY_CAST(CAST({0} AS STRING) AS DOUBLE))"
        " < 9e18 THEN CAST(FLOOR(TRY_CAST(CAST({0} AS STRING) AS DOUBLE)) AS STRING) "
        "WHEN NOT {0} IS NULL THEN 'far' END "
        "WHEN 'boolean' THEN CASE CAST({0} AS STRING) WHEN 'true' THEN '1' WHEN 'false' THEN '0' "
        "END ELSE CAST({0} AS STRING) END"
    ),
}
"""A part as text, by the name of a grammar."""

HASHES = {
    "duckdb": "MD5({0})",
    "postgres": 'MD5({0}) COLLATE "C"',
    "databricks": "MD5(CAST({0} AS BINARY))",
}
"""The hash of a text, by the name of a grammar; its letters compare by their bytes."""


class _Portable:
    """Hashes as ``hashed`` does."""

    name: str

    def keyed_hash(self, seeds: Seeds, parts: Sequence[exp.Expression]) -> exp.Expression:
        texts = [TEXTS[self.name].format(part.sql(dialect=self.name)) for part in parts]
        shown = " || '|' || ".join(f"COALESCE('V' || {text}, 'N')" for text in texts)
        text = f"'{seeds.first}-{seeds.second}|' || {shown}"
        # Passed on as it is: each grammar spells it in its own way already.
        return exp.Var(this=HASHES[self.name].format(f"({text})"))


class PortableDuckDB(_Portable, DuckDBDialect):
    """DuckDB's dialect with the shared hash."""


class PortablePostgres(_Portable, PostgresDialect):
    """PostgreSQL's dialect with the shared hash."""


class PortableSpark(_Portable, SparkDialect):
    """Spark's dialect with the shared hash."""


class PortableSQLite(SQLiteDialect):
    """SQLite's dialect with the shared hash, as a function of Python."""

    def keyed_hash(self, seeds: Seeds, parts: Sequence[exp.Expression]) -> exp.Expression:
        numbers = (exp.Literal.string(str(seed)) for seed in (seeds.first, seeds.second))
        return call("portable_hash", *numbers, *(p.copy() for p in parts))


class PortableSQLiteEngine(SQLiteEngine):
    """SQLite with the shared hash."""

    dialect = PortableSQLite()

    def __init__(self, tables: Mapping[str, Any], schema: Schema) -> None:
        super().__init__(tables, schema)
        assert self._connection is not None
        self._connection.create_function("portable_hash", -1, _of_sqlite, deterministic=True)


def _of_sqlite(first: str, second: str, *parts: Any) -> str:
    """Its values are whole numbers, doubles and texts, moments with all of their digits."""
    plain = [
        re.sub(r"\.?0+$", "", part) if isinstance(part, str) and MOMENT.fullmatch(part) else part
        for part in parts
    ]
    return hashed(Seeds(int(first), int(second)), plain)


MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")


def seeds_of(key: bytes) -> Seeds:
    """What an engine makes of a run's key."""
    digest = hashlib.blake2b(key, digest_size=16, person=b"dither.bounding").digest()
    return Seeds(int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big"))


def _text(part: Any) -> str | None:
    match part:
        case None:
            return None
        case bool():
            return str(int(part))
        case float():
            return str(math.floor(part)) if abs(part) < 9e18 else "far"
        case dt.datetime():
            day = f"{part.year:04d}-{part.month:02d}-{part.day:02d}"
            time = part.time().isoformat(timespec="microseconds").rstrip("0")
            return f"{day} {time.rstrip('.') if time.endswith('.') else time}"
        case dt.date():
            return f"{part.year:04d}-{part.month:02d}-{part.day:02d}"
    return str(part)


def hashed(seeds: Seeds, parts: Sequence[Any]) -> str:
    """The shared hash in Python."""
    shown = "|".join("N" if (t := _text(p)) is None else f"V{t}" for p in parts)
    return hashlib.md5(f"{seeds.first}-{seeds.second}|{shown}".encode()).hexdigest()


def _order(seeds: Seeds, parts: Sequence[Any]) -> tuple[Any, ...]:
    # Only reals of one floor tie, or far ones, and of those none is NULL.
    return hashed(seeds, parts), *((p is None, 0 if p is None else p) for p in parts)


def _told(column: ex.Column) -> ex.Column | ex.Unreadable:
    """Where the reference's rows hold a column; what engines mark as unreadable it asks for."""
    if column.name.startswith(MARK):
        return ex.Unreadable(ex.Column(column.table, column.name.removeprefix(MARK)))
    return column


def _rows(relation: Any, job: Job, schema: Schema, tables: Any, evaluate: Any, seeds: Seeds) -> Any:
    """The rows of a relation, of which a join of two private tables takes some of each unit."""
    if isinstance(relation, Filter):
        rows = _rows(relation.source, job, schema, tables, evaluate, seeds)
        return [row for row in rows if evaluate(relation.predicate, row) is True]
    if not isinstance(relation, UnitJoin):
        return reference.rows_of(relation, schema, tables, evaluate)
    sides = []
    for side, unit in ((relation.left, relation.left_unit), (relation.right, relation.right_unit)):
        rows = _rows(side, job, schema, tables, evaluate, seeds)
        aliases = [scan.alias for scan in scans(side)]
        read = [c for alias in aliases for c in read_columns(job) if c.table == alias]
        most = schema.table(base(side).table).max_join_rows
        seen: dict[Any, int] = defaultdict(int)
        units: dict[Any, list[Any]] = defaultdict(list)
        for row in rows:
            content = [row[_told(c)] for c in read]
            place = tuple((type(v).__name__, v) for v in content)
            seen[place] += 1
            if row[unit] is not None:
                units[row[unit]].append((_order(seeds, [*content, seen[place]]), row))
        sides.append(
            [row for held in units.values() for _, row in sorted(held, key=lambda p: p[0])[:most]]
        )
    return [
        {**a, **b}
        for a in sides[0]
        for b in sides[1]
        if a[relation.left_unit] == b[relation.right_unit]
    ]


def chosen(job: Job, schema: Schema, tables: Mapping[str, Any], key: bytes) -> dict[Any, Any]:
    """The answer by group, as ``reference.answer``, with each unit's groups chosen by the hash."""
    seeds = seeds_of(key)
    evaluate = reference.Evaluator(scope_of(job.relation, schema))
    units: dict[Any, dict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(_rows(job.relation, job, schema, tables, evaluate, seeds)):
        group, parts = [], []
        for k in job.keys:
            value = evaluate(k.expression, row, k.kind)
            group.append(value)
            if k.values is None:
                parts.append(0.0 if value == 0 and k.kind is Kind.REAL else value)
                continue
            listed = [float(v) if k.kind is Kind.REAL else v for v in k.values]
            parts.append(listed.index(value) if value in listed else -1)
        unit = number if job.unit is None else row[job.unit]
        if unit is not None and -1 not in [
            p for p, k in zip(parts, job.keys, strict=True) if k.values is not None
        ]:
            units[unit][tuple(group), tuple(parts)].append(row)
    shares: dict[Any, list[Any]] = defaultdict(list)
    for unit, groups in units.items():
        kept = sorted(groups, key=lambda g: _order(seeds, [unit, *g[1]]))
        for place in kept if job.unit is None else kept[: job.max_groups]:
            own = groups[place]
            shares[place[0]].append(
                [reference._share(m, own, job.max_rows, evaluate) for m in job.measurements]
            )
    return {
        group: [reference._combined(list(column)) for column in zip(*made, strict=True)]
        for group, made in shares.items()
    }
