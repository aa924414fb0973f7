"""Doubles in PostgreSQL, which raises where IEEE 754 has an infinity or a zero: ours never do."""

from __future__ import annotations

import itertools
import math

import pytest
from sqlglot import exp

from dither._environment import Secret
from dither.engines.postgres import PostgresEngine
from dither.engines.postgres.dialect import POSTGRES
from dither.engines.postgres.reals import scaled_to
from dither.engines.writer.forms import call, identifier, named, named_table
from dither.plan.schema import Kind
from postgres_server import Server

EDGES = [
    *(0.0, 1.0, 0.5, 2.0, 0.1, 3.0, 100.0, 1e-150, 1e150, 2.0**-500, 2.0**500, 2.0**512, 2.0**-512),
    *(5e-324, 1e-323, 2.2250738585072014e-308, 2.225073858507201e-308, 2.0**-537, 2.0**-538),
    *(
        1.7976931348623157e308,
        8.98846567431158e307,
        2.0**1023,
        2.0**969,
        2.0**970,
        2.0**-50,
        2.0**-51,
    ),
    *(math.inf, math.nextafter(1.0, 0.0), math.nextafter(2.0**512, 0.0), 6.703903964971298e153),
]
VALUES = [None, math.nan, *EDGES, *(-edge for edge in EDGES)]


def python(op: str, x: float | None, y: float | None) -> float | None:
    """What IEEE 754 says."""
    if x is None or y is None:
        return None
    return {"+": lambda: x + y, "-": lambda: x - y, "*": lambda: x * y, "/": lambda: x / y}[op]()


def same(x: float | None, y: float | None) -> bool:
    """Equal, NaN and NULL included; the sign of 0 is shown to nobody."""
    if x is None or y is None:
        return x is y
    return x == y or (math.isnan(x) and math.isnan(y))


@pytest.fixture(scope="module")
def engine(postgres_server: Server):
    """An engine over all pairs of the values."""
    database = postgres_server.database()
    database.execute("CREATE TABLE pairs (x double precision, y double precision)")
    with postgres_server.connect(database.name, "owner") as owner, owner.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO pairs VALUES (%s, %s)", list(itertools.product(VALUES, VALUES))
        )
    with PostgresEngine(Secret(database.reader, "the server"), {"pairs": "pairs"}) as engine:
        yield engine


@pytest.mark.parametrize("op", "+-*/")
def test_two_columns(engine, op):
    """Every pair of edges."""
    formula = POSTGRES.real_arithmetic(op, identifier("x"), identifier("y"))
    keys = [named(identifier(n), n) for n in "xy"]
    rows = exp.select(*keys, named(formula, "f")).from_(named_table("source_0"))
    asked = rows.where("NOT y = 0 OR y IS NULL") if op == "/" else rows
    found = engine._execute(POSTGRES.sql(asked))
    assert len(found) >= len(VALUES) ** 2 - 2 * len(VALUES)
    wrong = [(x, y, f) for x, y, f in found if not same(f, python(op, x, y))]
    assert wrong == []


@pytest.mark.parametrize("constant_first", [False, True])
@pytest.mark.parametrize("op", "+-*/")
def test_a_column_and_a_constant(engine, op, constant_first):
    """Every edge on either side, all constants in one query."""
    given = [v for v in VALUES if v is not None and not math.isnan(v)]
    if op == "/":
        given = [v for v in given if v != 0]
    formulas = []
    for number, value in enumerate(given):
        sides = [identifier("x"), POSTGRES.real(value)]
        if op == "/" and constant_first:
            # The writer never divides by 0.
            sides[0] = call("NULLIF", sides[0], POSTGRES.real(0.0))
        pair = sides[::-1] if constant_first else sides
        formulas.append(named(POSTGRES.real_arithmetic(op, *pair), f"f{number}"))
    rows = exp.select(named(identifier("x"), "x"), *formulas).distinct()
    for x, *found in engine._execute(POSTGRES.sql(rows.from_(named_table("source_0")))):
        for value, f in zip(given, found, strict=True):
            divisor = None if op == "/" and constant_first and x == 0 else x
            expected = (value, divisor) if constant_first else (x, value)
            assert same(f, python(op, *expected)), (op, expected)


ENDS = [
    *[(0, 10_000_000), (-250, 250), (-5_000_000, 0), (7, 7), (-(2**31), 2**31 - 1)],
    *[(0, 2**31), (-(2**53), 2**53), (-(2**62), 2**62)],
]
SCALES = [
    ("*", 1.0),
    ("*", 100.0),
    ("*", 2.0**20),
    ("*", 1e15),
    ("/", 0.3),
    ("/", 1e-300),
    ("/", 10.0),
]


def clamped(x: float | None, lower: int, upper: int) -> int | None:
    """What a lattice makes of a number in steps."""
    if x is None or math.isnan(x):
        return None
    return upper if x == math.inf else lower if x == -math.inf else max(lower, min(upper, round(x)))


def over(form: exp.Expression, values: list[float | None]) -> str:
    """A query of the form over the values, each with its place."""
    constants = (POSTGRES.null(Kind.REAL) if v is None else POSTGRES.real(v) for v in values)
    listed = ", ".join(f"({POSTGRES.sql(value)}, {i})" for i, value in enumerate(constants))
    shown = POSTGRES.sql(form)
    return f'SELECT "position", {shown} FROM (VALUES {listed}) AS "listed"("value", "position")'


def near(op: str, factor: float, lower: int, upper: int) -> list[float]:
    """Doubles about the ends, and about the halves beside them."""
    found = []
    for end in (lower, upper):
        for step in (-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5):
            x = (end + step) / factor if op == "*" else (end + step) * factor
            found += [x, math.nextafter(x, -math.inf), math.nextafter(x, math.inf)]
    return found


@pytest.mark.parametrize("ends", ENDS, ids=str)
def test_a_number_that_is_clamped_before_it_is_scaled(engine, ends):
    """Every edge, and what lies next to an end, becomes what scaling it first would make of it."""
    for op, factor in SCALES:
        form = POSTGRES.nearest_scaled(identifier("value"), op, factor, *ends)
        if factor == 1:
            form = POSTGRES.nearest_within(identifier("value"), *ends)
        if (factor >= 1) is not (op == "*") or max(map(abs, ends)) > 2**53:
            assert form is None
            continue
        if form is None:
            # No double becomes this end; the longer form serves.
            assert None in (scaled_to(op, factor, ends[0]), scaled_to(op, factor, ends[1]))
            continue
        values = [*VALUES, *near(op, factor, *ends)]
        for place, f in engine._execute(over(form, values)):
            x = values[place]
            expected = clamped(python(op, x, factor), *ends)
            assert f == expected, (op, factor, x)


@pytest.mark.parametrize("size", [2**31 - 1, 2**31])
def test_the_nearest_integer_of_each_type(engine, size):
    """What a type does not hold is NULL, and nothing fails."""
    name = POSTGRES.whole_type(size)
    ends = (-(2**31), 2**31 - 1) if name == "INTEGER" else (-(2**63), 2**63 - 1)
    values = [*VALUES, *near("*", 1.0, *ends)]
    form = POSTGRES.nearest(identifier("value"), name)
    for place, f in engine._execute(over(form, values)):
        x = values[place]
        known = x is not None and math.isfinite(x) and ends[0] <= x and round(x) <= ends[1]
        assert f == (round(x) if known else None), x


def test_sums_have_64_bits_where_these_are_proved_to_hold_them(engine):
    """The server's sum of 32-bit integers has 64 bits: it is asked for where no table overflows."""
    held = POSTGRES.summed_of_size(identifier("x"), 2**23 - 1)
    assert POSTGRES.sql(held) == 'SUM(CAST("x" AS INT))'
    wide = POSTGRES.summed_of_size(identifier("x"), 2**23)
    assert POSTGRES.sql(wide) == 'SUM(CAST("x" AS BIGINT))'
    assert (2**23 - 1) * POSTGRES.most_rows < 2**63 <= 2**23 * POSTGRES.most_rows
    found = engine._execute(
        f"SELECT CAST(PG_TYPEOF({POSTGRES.sql(held)}) AS text), "
        f'CAST(PG_TYPEOF({POSTGRES.sql(wide)}) AS text) FROM "source_0" WHERE false'
    )
    assert found == [("bigint", "numeric")]
