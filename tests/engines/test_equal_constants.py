"""Constants that Python takes for equal, 1 and 1.0: each its own node, and its own type in SQL."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dither.engines.duckdb.dialect import DuckDBDialect
from dither.engines.writer import Seeds
from dither.engines.writer.expressions import Emitter
from dither.plan import expressions as ex
from dither.plan.aggregates import Key
from dither.plan.facts.values import Scope
from engines.hostile import Bench
from soundness.tables import MEASURED, planned, schema_of, violations

KNOWN = schema_of()
CENTRE = 2**61 + 256
"""Here doubles lie 512 apart: a sum of them, off by a unit, is off by a million."""
OPERAND = f"CLAMP(ABS(j) * 4194303{{}} + {CENTRE}, {CENTRE - 1}, {CENTRE + 1})"
WHOLE, REAL = OPERAND.format(""), OPERAND.format(".0")
OUTPUTS = (
    f"AVG({REAL}) AS a, AVG({WHOLE}) AS c",
    f"AVG({WHOLE}) AS a, AVG({REAL}) AS c",
    f"SUM({REAL}) AS a, SUM({WHOLE}) AS c",
    "VARIANCE(CLAMP(n * 3.0, -9, 9)) AS a, VARIANCE(CLAMP(n * 3, -9, 9)) AS c",
    f"COUNT({REAL}) AS a, AVG({WHOLE}) AS c",
)
PAIRS = ((1, Fraction(1)), (1, True), (0, False), (Fraction(1), True))


@pytest.fixture(scope="module")
def bench():
    """One engine for all."""
    made = Bench(KNOWN)
    yield made
    made.close()


@pytest.mark.parametrize("table", ["visits", "people"])
@pytest.mark.parametrize("outputs", OUTPUTS)
def test_an_operand_of_integers_beside_one_of_reals(bench, table, outputs):
    """Two operands that differ in a constant's kind alone: neighbours differ by the claim."""
    plan = planned(f"SELECT {outputs} FROM {table}", KNOWN)
    nothing = {column.name: None for column in MEASURED}
    one, other = ({"u": u} if table == "visits" else {} for u in (1, 0))
    here = [nothing | one | {"j": 0}, nothing | other | {"j": 2**41}]
    answers = [bench.run(plan.job, KNOWN, {table: rows}) for rows in (here, here[:1])]
    assert violations(plan, *answers) == []


@pytest.mark.parametrize("table", ["visits", "people"])
@pytest.mark.parametrize("outputs", OUTPUTS)
def test_every_sum_has_an_integer_type(bench, table, outputs):
    """Over the rehearsed query, as the engine itself types it: addition of integers is exact."""
    plan = planned(f"SELECT {outputs} FROM {table}", KNOWN)
    _, sums, _ = bench.engine._written(plan.job, KNOWN, Seeds(1, 2))
    found = bench.engine._open().execute(f"DESCRIBE {sums}").fetchall()
    assert len(found) == len(plan.job.measurements)
    assert {kind for _, kind, *_ in found} <= {"BIGINT", "HUGEINT"}


def test_columns_stay_apart_where_nodes_do_not(bench, monkeypatch):
    """The planted fault: constants are compared as Python compares them."""

    def alike(one: ex.Literal, other: object) -> bool:
        return isinstance(other, ex.Literal) and one.value == other.value

    monkeypatch.setattr(ex.Literal, "__eq__", alike)
    monkeypatch.setattr(ex.Literal, "__hash__", lambda one: hash(one.value))
    test_every_sum_has_an_integer_type(bench, "visits", OUTPUTS[0])
    test_every_sum_has_an_integer_type(bench, "people", OUTPUTS[2])


def test_a_lattice_takes_no_column_of_another_type():
    """A shared column of doubles is no stand-in for the integers of an operand, nor the reverse."""
    emitter = Emitter(DuckDBDialect(), Scope({}), lambda _: pytest.fail("no column"))
    whole, real = ex.Literal(1), ex.Literal(Fraction(1))
    for node, other in ((whole, real), (real, whole)):
        shared = emitter.shared(other, Fraction(1), "o", [(0, 9)])
        with pytest.raises(TypeError, match="is not of the type of its operand"):
            emitter.lattice(node, Fraction(1), 0, 9, shared)


@pytest.mark.parametrize("pair", PAIRS)
def test_constants_of_different_kinds_are_different_nodes(pair):
    """And so is all that holds them; constants of one kind stay equal, and hash alike."""
    one, other = pair
    made = (
        ex.Literal,
        lambda v: ex.InList(ex.Column("t", "x"), (v,)),
        lambda v: Key("k", ex.Column("t", "x"), (v,)),
        lambda v: ex.Arithmetic("*", ex.Column("t", "x"), ex.Literal(v)),
    )
    for make in made:
        assert make(one) != make(other)
        assert make(one) == make(one)
        assert len({make(one), make(one), make(other)}) == 2
