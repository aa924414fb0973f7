"""Plan expressions as DuckDB SQL: total on every value of every type; facts hold where they may."""

from __future__ import annotations

import datetime as dt
import math
import struct
from fractions import Fraction
from functools import cache

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither.engines.duckdb.dialect import DUCKDB
from dither.engines.writer.expressions import Emitter
from dither.engines.writer.forms import identifier
from dither.errors import BoundsError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.facts.values import infer
from dither.plan.schema import Kind
from engines.hostile import SCOPE, admitted, days, numbers, texts, truths

VALUES = {
    "BIGINT": ["0", "-1", "7", "9223372036854775807", "-9223372036854775808"],
    "UBIGINT": ["18446744073709551615", "3"],
    "HUGEINT": ["170141183460469231731687303715884105727", "-5"],
    "DECIMAL(38, 4)": ["9999999999999999999999999999999999.9999", "-0.0001"],
    "DOUBLE": [
        "'nan'", "'-nan'", "'inf'", "'-inf'", "5e-324", "-0.0", "1.7976931348623157e308", "2.675",
    ],
    "BOOLEAN": ["true", "false"],
    "DATE": [
        "'infinity'", "'-infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'", "'2020-02-29'",
    ],
    "TIMESTAMP": [
        "'infinity'", "'-infinity'", "'290309-12-22 (BC)'", "'294247-01-10'", "'2020-02-29'",
    ],
    "TIMESTAMPTZ": [
        "'infinity'", "'-infinity'", "'290309-12-22 (BC) 00:00:00+00'", "'2020-02-29'",
    ],
    "VARCHAR": [
        "''", "'nan'", "'1e400'", "'-9223372036854775809'", "'infinity'", "'2020-02-30'", "' 7 '",
        "'0x7f'", "'ẞßİıǅﬀ'", "'e' || chr(769)", "chr(0)", "'👩‍👩‍👧'",
        "'2020-01-01 00:00:00 Mars/North'",
        "'294247-01-10 04:00:54.775807+00'", "repeat('é', 10000)",
    ],
}  # fmt: skip


@cache
def connection() -> duckdb.DuckDBPyConnection:
    """DuckDB as it comes, in UTC: totality must not rest on its settings."""
    opened = duckdb.connect(config={"threads": "1"})
    opened.execute("SET TimeZone = 'UTC'")
    return opened


@cache
def table_of(kind: str) -> str:
    """A table that holds every hostile value of a type, and NULL."""
    name = "t_" + "".join(c for c in kind if c.isalnum())
    values = ", ".join(f"(CAST({v} AS {kind}))" for v in [*VALUES[kind], "NULL"])
    connection().execute(f"CREATE TABLE {name} AS SELECT v FROM (VALUES {values}) AS t(v)")
    return name


def source_of(kind: Kind) -> tuple[str, ...]:
    """The types that a column of a kind can be read from."""
    return tuple(name for name in VALUES if DUCKDB.readable(name, kind))


@st.composite
def readings(draw, node: ex.Expression):
    """SQL that evaluates a node over every combination of some hostile sources of its columns."""
    parts, names = [], {}
    for i, column in enumerate(ex.columns(node)[:4]):
        facts = SCOPE.column(column)
        kind = draw(st.sampled_from(source_of(facts.kind)))
        typed = DUCKDB.typed(identifier("v"), kind, facts.kind)
        value = DUCKDB.cleaned(typed, facts).sql(dialect="duckdb")
        names[column] = f"c{i}"
        parts.append(f"(SELECT {value} AS c{i} FROM {table_of(kind)})")
    emitter = Emitter(DUCKDB, SCOPE, lambda column: identifier(names.get(column, "c0")))
    sql = emitter.value(node).sql(dialect="duckdb")
    columns = "".join(f", {name}" for name in names.values())
    return f"SELECT {sql}{columns} FROM {', '.join(parts) or '(SELECT 1)'}"


def keeps_to(value: object, column: ex.Column) -> bool:
    """Whether a column's value is one of those that are declared."""
    facts = SCOPE.column(column)
    if value is None or facts.lower is None:
        return True
    return facts.lower <= value <= facts.upper


def few(node: ex.Expression) -> bool:
    """Admitted, and of so few columns that all combinations are tried.

    Whether a value can be read is asked of what is stored, not of a value that was read.
    """
    stored = any(isinstance(part, ex.Unreadable) for part in ex.walk(node))
    return admitted(node, SCOPE) and not stored and len(ex.columns(node)) <= 2


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_no_expression_fails_on_any_value(data):
    """Every admitted expression has a value or NULL on every combination, and never NaN.

    It lies inside its facts where every column keeps to what is declared.
    """
    node = data.draw(st.one_of(numbers(), truths(), texts(), days()).filter(few))
    facts, used = infer(node, SCOPE), ex.columns(node)
    for value, *row in connection().execute(data.draw(readings(node))).fetchall():
        if isinstance(value, float):
            assert not math.isnan(value)
        if isinstance(value, int):
            assert -(2**63) <= value < 2**63
        declared = all(map(keeps_to, row, used))
        if value is None or facts.range is None or not declared:
            continue
        low, high = facts.range
        if facts.kind is Kind.INTEGER:
            assert low <= value <= high
        else:
            slack = Fraction(1, 2**40) * max(abs(low), abs(high))
            assert low - slack <= Fraction(value) <= high + slack


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lattice_integers_stay_between_their_bounds(data):
    """Whatever the value, the integer lies in [lower, upper], and is NULL where the value is."""
    node = data.draw(numbers(1).filter(few))
    edge = st.one_of(st.integers(-5000, 5000), st.integers(-(2**62), 2**62))
    lower, upper = sorted((data.draw(edge), data.draw(edge)))
    step = data.draw(st.sampled_from(["1", "1/100", "3/7", "1024", "1/1000000007"]).map(Fraction))
    read = data.draw(readings(node))
    names = {column: f"c{i}" for i, column in enumerate(ex.columns(node))}
    emitter = Emitter(DUCKDB, SCOPE, lambda column: identifier(names[column]))
    lattice = emitter.lattice(node, step, lower, upper).sql(dialect="duckdb")
    head = f"SELECT {emitter.value(node).sql(dialect='duckdb')}"
    assert read.startswith(head)
    asked = f"{head}, {lattice}{read[len(head) :]}"
    for value, number, *_ in connection().execute(asked).fetchall():
        assert (value is None) == (number is None)
        assert number is None or lower <= number <= upper


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=300, deadline=None)
def test_doubles_are_written_exactly(value):
    """A constant arrives in the engine bit for bit."""
    sql = DUCKDB.real(value).sql(dialect="duckdb")
    ((found,),) = connection().execute(f"SELECT {sql}").fetchall()
    assert struct.pack("d", found) == struct.pack("d", value)


@given(
    st.one_of(
        st.text(max_size=6),
        st.text(st.sampled_from("'\\\"\0\n\r%_$;-{}"), max_size=6),
        st.integers(-(2**63) + 1, 2**63 - 1),
        st.booleans(),
        st.dates(),
        st.datetimes(),
    )
)
@settings(max_examples=300, deadline=None)
def test_constants_are_written_exactly(value):
    """Text of any characters, integers, dates and timestamps arrive as they are."""
    sql = DUCKDB.constant(value).sql(dialect="duckdb")
    ((found,),) = connection().execute(f"SELECT {sql}").fetchall()
    assert found == value
    assert type(found) is type(value)


def test_a_zoned_bound_is_its_instant_in_utc():
    """A declared timestamp with a zone stands for the time in UTC."""
    zoned = dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    assert "2019-12-31 23:00:00" in DUCKDB.constant(zoned).sql(dialect="duckdb")


def test_halves_round_to_even():
    """The lattice rounds halves to even, as its docstring says."""
    emitter = Emitter(DUCKDB, SCOPE, lambda column: identifier("x"))
    sql = emitter.lattice(ex.Column("v", "x"), Fraction(2), -5, 500).sql(dialect="duckdb")
    found = connection().execute(f"SELECT {sql} FROM (VALUES (1.0), (3.0), (5.0)) AS t(x)")
    assert [row[0] for row in found.fetchall()] == [0, 2, 2]


def test_what_would_grow_without_bound_is_refused():
    """Deeply nested guards, steps no double holds, and bounds beyond 2^62 are refused."""
    node: ex.Expression = ex.Column("v", "x")
    for i in range(14):
        node = ex.Clamp(node, Fraction(0), Fraction(900 - i))
    emitter = Emitter(DUCKDB, SCOPE, lambda column: identifier("x"))
    with pytest.raises(UnsupportedError, match="too deeply"):
        emitter.value(node)
    with pytest.raises(UnsupportedError, match="step"):
        emitter.lattice(ex.Column("v", "x"), Fraction(3, 10**400), 0, 1)
    with pytest.raises(BoundsError, match="larger step"):
        emitter.lattice(ex.Column("v", "x"), Fraction(1), 0, 2**62 + 1)
