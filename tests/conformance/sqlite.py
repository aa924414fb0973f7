"""SQLite as an engine: small, slow, and as unlike DuckDB as SQL allows.

It shows that the writer is neutral: it has no types but 64-bit integers, doubles and text, no wide
integers, no QUALIFY, no lists, no TRY_CAST, another division, dates as text. What it lacks it gets
as functions of Python. Its sums have 64 bits, so it takes 256 rows at most.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any, ClassVar

from sqlglot import exp

from dither.engines import FAILED
from dither.engines.sql_engine import Cursor, SQLEngine, all_rows
from dither.engines.writer import Dialect, Seeds, Stored
from dither.engines.writer.forms import call
from dither.errors import ArgumentError, EngineError, UnsupportedError
from dither.plan.functions.matchers import spelled
from dither.plan.functions.patterns import Pattern
from dither.plan.job import Job
from dither.plan.schema import Kind, Schema, Value
from engines.reference import _part, _truncate

AVAILABLE = sqlite3.sqlite_version_info >= (3, 39)
"""Before, HAVING needs a GROUP BY."""


class SQLiteDialect(Dialect):
    """What SQLite spells otherwise."""

    name = "sqlite"
    types: ClassVar[dict[Kind, str]] = {
        Kind.INTEGER: "INTEGER",
        Kind.REAL: "REAL",
        Kind.TEXT: "TEXT",
        Kind.BOOLEAN: "INTEGER",
        Kind.DATE: "TEXT",
        Kind.TIMESTAMP: "TEXT",
    }
    wide = "INTEGER"
    largest_sum = 2**62
    most_rows = 2**8
    repeats_number = 0

    def cast(self, value: exp.Expression, kind: Kind) -> exp.Expression:
        if isinstance(value, exp.Null):
            return value
        return call("midnight", value) if kind is Kind.TIMESTAMP else super().cast(value, kind)

    def narrowed(self, value: exp.Expression) -> exp.Expression:
        # Where an integer overflows, SQLite goes on with a double.
        return call("integer_or_null", value)

    def integer(self, value: int) -> exp.Expression:
        # As a number, the smallest one would be the negation of one that does not fit.
        return self.cast_to(exp.Literal.string(str(value)), "INTEGER")

    def wide_integer(self, value: int) -> exp.Expression:
        return self.integer(value)

    def real(self, value: float | Fraction) -> exp.Expression:
        return call("exact_double", exp.Literal.string(float(value).hex()))

    def day(self, value: dt.date, kind: Kind = Kind.DATE) -> exp.Expression:
        return self.text(_written(value, kind))

    def moment(self, value: dt.datetime) -> exp.Expression:
        return self.text(_written(value, Kind.TIMESTAMP))

    def arithmetic(self, op: str, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        if op == "//":
            return exp.Paren(this=exp.Div(this=left, expression=right, typed=True, safe=True))
        return super().arithmetic(op, left, right)

    def is_number(self, value: exp.Expression) -> exp.Expression:
        # SQLite itself has NULL for NaN.
        return exp.true()

    def nearest(self, value: exp.Expression, name: str) -> exp.Expression:
        return call("round_half_even", value)

    def floor(self, value: exp.Expression) -> exp.Expression:
        return call("floor_integer", value)

    def ceil(self, value: exp.Expression) -> exp.Expression:
        return call("ceil_integer", value)

    def absolute(self, value: exp.Expression) -> exp.Expression:
        # SQLite's own fails on the smallest integer.
        return call("absolute", value)

    def least(self, *values: exp.Expression) -> exp.Expression:
        return call("least_known", *values)

    def greatest(self, *values: exp.Expression) -> exp.Expression:
        return call("greatest_known", *values)

    def date_part(self, part: str, value: exp.Expression) -> exp.Expression:
        return call("date_part", exp.Literal.string(part), value)

    def date_truncate(self, part: str, value: exp.Expression) -> exp.Expression:
        return call("date_truncate", exp.Literal.string(part), value)

    def half_away(self, value: exp.Expression) -> exp.Expression:
        return call("half_away", value)

    def length(self, value: exp.Expression) -> exp.Expression:
        return call("length_of", value)

    def elementary(self, name: str, *values: exp.Expression) -> exp.Expression:
        return call(f"real_{name.lower()}", *values)

    def trimmed(self, value: exp.Expression, side: str, letters: str) -> exp.Expression:
        return call("trimmed", value, self.text(side), self.text(letters))

    def replaced(self, value: exp.Expression, old: str, new: str) -> exp.Expression:
        return call("replaced", value, self.text(old), self.text(new))

    def position(self, part: exp.Expression, whole: exp.Expression) -> exp.Expression:
        return call("position_of", part, whole)

    def starts_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        return call("starts_with", whole, part)

    def ends_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        return call("ends_with", whole, part)

    def matches(self, value: exp.Expression, pattern: Pattern) -> exp.Expression:
        shown = spelled(pattern, start=r"\A", end=r"\Z", point="\\U{:08x}", every=r"[\s\S]")
        return call("matches_pattern", value, self.text(shown))

    def day_number(self, value: exp.Expression) -> exp.Expression:
        return call("day_number", value)

    def shifted(self, value: exp.Expression, amount: int, unit: str, kind: Kind) -> exp.Expression:
        return call("shifted", value, self.integer(amount), self.text(unit))

    def time_truncate(self, part: str, value: exp.Expression) -> exp.Expression:
        return call("time_truncate", exp.Literal.string(part), value)

    def digits(self, value: exp.Expression, width: int = 0) -> exp.Expression:
        return call("digits", value, self.integer(width))

    def parsed(self, value: exp.Expression, kind: Kind) -> exp.Expression:
        return call("parsed", value, self.text(kind.value))

    def lower(self, value: exp.Expression) -> exp.Expression:
        return call("lower_case", value)

    def upper(self, value: exp.Expression) -> exp.Expression:
        return call("upper_case", value)

    def keyed_hash(self, seeds: Seeds, parts: Sequence[exp.Expression]) -> exp.Expression:
        key = exp.Literal.string(f"{seeds.first}-{seeds.second}")
        return call("keyed_hash", key, *(p.copy() for p in parts))

    def listed(self, values: Sequence[tuple[int, Value]], kind: Kind) -> exp.Select:
        rows = [exp.Tuple(expressions=[self.constant(v, kind), self.integer(i)]) for i, v in values]
        names = {"column1": "value", "column2": "position"}
        columns = [exp.alias_(exp.column(n), alias, quoted=True) for n, alias in names.items()]
        return exp.select(*columns).from_(exp.Values(expressions=rows))

    def value_of(self, found: Any, kind: Kind) -> Any:
        if found is None or kind not in (Kind.DATE, Kind.TIMESTAMP, Kind.BOOLEAN):
            return found
        return bool(found) if kind is Kind.BOOLEAN else _told(found)

    # --- columns are stored as their kind, and read as nothing else -------------------------------

    def kind_of_type(self, stored: str) -> Kind | None:
        return Kind(stored.lower())

    def readable(self, stored: str, kind: Kind) -> bool:
        return self.kind_of_type(stored) is kind

    def one_to_one(self, stored: str, kind: Kind) -> bool:
        return self.readable(stored, kind)

    def stored_alike(self, left: str, right: str) -> bool:
        return left == right

    def typed(self, raw: exp.Expression, stored: str, kind: Kind) -> exp.Expression:
        return raw

    def largest(self, stored: str, kind: Kind) -> Fraction | None:
        return Fraction(2**63) if kind is Kind.INTEGER else None


class SQLiteEngine(SQLEngine):
    """Runs jobs over rows that it is handed."""

    dialect = SQLiteDialect()

    def __init__(self, tables: Mapping[str, Sequence[Mapping[str, Any]]], schema: Schema) -> None:
        self._connection: sqlite3.Connection | None = sqlite3.connect(":memory:")
        for name, function in FUNCTIONS.items():
            self._connection.create_function(name, -1, function, deterministic=True)
        self._stored = {}
        for number, (name, rows) in enumerate(tables.items()):
            kinds = {n: f.kind for n, f in schema.table(name).columns.items()}
            types = {n: kind.value.upper() for n, kind in kinds.items()}
            fields = ", ".join(f'"{n}" {self.dialect.types[kind]}' for n, kind in kinds.items())
            for view in (f"source_{number}", f"empty_{number}"):
                self._connection.execute(f"CREATE TABLE {view} ({fields})")
            self._connection.executemany(
                f"INSERT INTO source_{number} VALUES ({', '.join('?' * len(kinds))})",
                [[_written(row[n], kind) for n, kind in kinds.items()] for row in rows],
            )
            self._stored[name] = Stored(f"source_{number}", types, empty=f"empty_{number}")

    def _check_open(self) -> None:
        if self._connection is None:
            raise ArgumentError("the engine is closed")

    def _stored_tables(self) -> Mapping[str, Stored]:
        return self._stored

    def _execute(self, sql: str, take: Callable[[Cursor], Any] = all_rows) -> Any:
        assert self._connection is not None
        try:
            return take(self._connection.execute(sql))
        except Exception:
            raise EngineError(FAILED) from None

    def _rehearse(self, sql: str) -> Sequence[str]:
        assert self._connection is not None
        try:
            self._connection.execute(sql).fetchall()
        except Exception:
            raise UnsupportedError("SQLite does not run this question") from None
        # Its columns have no types; its values do.
        return ()

    def _hold(self, job: Job, schema: Schema) -> None:
        """Its tables are its own, and nobody changes them."""

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None


# --- what SQLite lacks, as functions -----------------------------------------------------------


def _written(value: Any, kind: Kind) -> Any:
    """A value as it is stored: dates as text that sorts by time."""
    if value is None or kind not in (Kind.DATE, Kind.TIMESTAMP):
        return value
    day = f"{value.year:04d}-{value.month:02d}-{value.day:02d}"
    if kind is Kind.DATE:
        return day
    time = value.time() if isinstance(value, dt.datetime) else dt.time()
    return f"{day} {time.isoformat(timespec='microseconds')}"


def _told(text: str) -> dt.date | dt.datetime:
    return dt.datetime.fromisoformat(text) if " " in text else dt.date.fromisoformat(text)


def _total(function: Callable[..., Any]) -> Callable[..., Any]:
    """NULL for NULL."""
    return lambda *values: None if None in values else function(*values)


def _whole(turn: Callable[[float], int]) -> Callable[[float], int | None]:
    def turned(value: float) -> int | None:
        found = turn(value) if math.isfinite(value) else None
        return found if found is not None and -(2**63) <= found < 2**63 else None

    return _total(turned)


def _known(choose: Callable[[Any], Any]) -> Callable[..., Any]:
    def chosen(*values: Any) -> Any:
        known = [v for v in values if v is not None]
        return choose(known) if known else None

    return chosen


def _hash(key: str, *parts: Any) -> int:
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=7, key=key.encode()).digest()
    return int.from_bytes(digest, "big")


def _half_away(value: float) -> float:
    if not math.isfinite(value):
        return value
    size = math.floor(abs(Fraction(value)) + Fraction(1, 2))
    return math.copysign(size, value)


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "midnight": _total(lambda day: f"{day} 00:00:00.000000"),
    "integer_or_null": lambda value: value if isinstance(value, int) else None,
    "exact_double": float.fromhex,
    "round_half_even": _whole(round),
    "floor_integer": _whole(math.floor),
    "ceil_integer": _whole(math.ceil),
    "absolute": _total(lambda v: None if v == -(2**63) and isinstance(v, int) else abs(v)),
    "least_known": _known(min),
    "greatest_known": _known(max),
    "date_part": _total(lambda part, text: _part(_moment(text), part)),
    "date_truncate": _total(lambda part, text: _written(_truncate(_told(text), part), Kind.DATE)),
    "lower_case": _total(str.lower),
    "upper_case": _total(str.upper),
    "keyed_hash": _hash,
    "half_away": _total(_half_away),
    "real_sqrt": _total(math.sqrt),
    "real_ln": _total(math.log),
    "real_exp": _total(math.exp),
    "real_power": _total(math.pow),
    "length_of": _total(len),
    "trimmed": _total(lambda text, side, letters: _TRIMS[side](text, letters)),
    "replaced": _total(str.replace),
    "position_of": _total(lambda part, whole: whole.find(part) + 1),
    "starts_with": _total(str.startswith),
    "ends_with": _total(str.endswith),
    "matches_pattern": _total(lambda text, pattern: re.search(pattern, text) is not None),
    "day_number": _total(lambda text: _told(text).toordinal() - 1),
    "shifted": _total(lambda text, amount, unit: _shifted(_told(text), amount, unit)),
    "time_truncate": _total(
        lambda part, text: _written(_truncate(_told(text), part), Kind.TIMESTAMP)
    ),
    "digits": _total(lambda number, width: str(number).zfill(width)),
    "parsed": _total(lambda text, kind: _parsed(text, Kind(kind))),
}

_TRIMS = {"both": str.strip, "leading": str.lstrip, "trailing": str.rstrip}


def _shifted(value: dt.date, amount: int, unit: str) -> str:
    kind = Kind.TIMESTAMP if isinstance(value, dt.datetime) else Kind.DATE
    if unit != "month":
        return _written(value + dt.timedelta(**{f"{unit}s": amount}), kind)
    months = 12 * value.year + value.month - 1 + amount
    for day in range(value.day, 27, -1):
        with suppress(ValueError):
            return _written(value.replace(months // 12, months % 12 + 1, day), kind)
    return _written(value.replace(months // 12, months % 12 + 1), kind)


def _parsed(text: str, kind: Kind) -> Any:
    if kind is Kind.INTEGER:
        return int(text) if -(2**63) <= int(text) < 2**63 else None
    if kind is Kind.REAL:
        return float(text)
    return _written(dt.datetime.fromisoformat(text.replace("T", " ")), kind)


def _moment(text: str) -> dt.datetime:
    found = _told(text)
    return found if isinstance(found, dt.datetime) else dt.datetime.combine(found, dt.time())
