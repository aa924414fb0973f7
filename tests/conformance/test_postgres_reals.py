"""Doubles in PostgreSQL, which raises where IEEE 754 has an infinity or a zero: ours never do."""

from __future__ import annotations

import itertools
import math

import pytest
from sqlglot import exp

from dither._environment import Secret
from dither.engines.postgres import PostgresEngine
from dither.engines.postgres.dialect import POSTGRES
from dither.engines.writer.forms import call, identifier, named, named_table
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
