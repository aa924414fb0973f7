"""A plausible mistake in what each engine spells of its own, each seen by a plan.

A plan passes with the dialect as it is, gives other integers with the mistake, or fails over the
hostile rows.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from conformance.engines import by_group, expected
from conformance.plans import job, rows, schema
from conformance.postgres import PostgresBench
from conformance.spark import SparkBench
from dither.engines.postgres import dialect as postgres
from dither.engines.spark import dialect as spark
from dither.engines.writer.forms import binary, call
from dither.engines.writer.rows import RowSource
from dither.engines.writer.within import QuerySource
from dither.errors import EngineError, UnsupportedError
from dither.plan.relations import Derived
from dither.plan.schema import Kind
from spark_session import needs_spark

KEY = b"sixteen bytes..."
POSTGRES, SPARK = postgres.PostgresDialect, spark.SparkDialect

DERIVED = "rows of a query in a query"
REAL_DERIVED = QuerySource._derived


def _shuffled(source: QuerySource, relation: Derived, read: dict[str, str]) -> exp.Select:
    """Each column made of what the one before it is made of."""
    names, nodes = zip(*relation.columns, strict=True)
    columns = tuple(zip(names, (*nodes[1:], nodes[0]), strict=True))
    return REAL_DERIVED(source, replace(relation, columns=columns), read)


ON_POSTGRES = {
    # As the table's collation has it, and not by bytes.
    "text": (
        postgres,
        "_bytewise",
        lambda value: exp.Paren(
            this=exp.Collate(this=value, expression=exp.to_identifier("und-x-icu", quoted=True))
        ),
        "comparisons of text",
    ),
    # NaN lies above all numbers there, and is one that is clamped.
    "NaN": (POSTGRES, "without_nan", lambda self, value: value, "unknown truth"),
    # A cast that fails on what does not fit.
    "narrowed": (
        POSTGRES,
        "narrowed",
        lambda self, value: self.cast_to(value, "BIGINT"),
        "integers that may not fit",
    ),
    # Halves away from zero, as ROUND of a numeric has them.
    "nearest": (
        POSTGRES,
        "nearest_scaled",
        lambda self, value, op, factor, lower, upper: self.cast_to(
            call("FLOOR", binary(op, value, self.real(factor))), "BIGINT"
        ),
        "sums of squares",
    ),
    # As if any sum of 32-bit integers fitted 64 bits, and no number were larger.
    "small sums": (POSTGRES, "sums_in_64_bits", lambda self, size: True, "sums of squares"),
    # Monday as day 0.
    "day of week": (
        POSTGRES,
        "date_part",
        lambda self, part, value: self.cast_to(
            call("DATE_PART", exp.Literal.string("isodow"), self.cast_to(value, "TIMESTAMP")),
            "BIGINT",
        ),
        "parts of days",
    ),
    "upper": (POSTGRES, "upper", lambda self, value: self.lower(value), "text in parts"),
    "half away": (POSTGRES, "half_away", lambda self, v: call("TRUNC", v), "rounded numbers"),
    "starts with": (
        POSTGRES,
        "starts_with",
        lambda self, whole, part: self.ends_with(whole, part),
        "parts of texts",
    ),
    # To the nearest month's first day.
    "truncated": (
        POSTGRES,
        "date_truncate",
        lambda self, part, value: self.cast_to(value, "DATE"),
        "months as keys",
    ),
    "derived columns": (QuerySource, "_derived", lambda *given: _shuffled(*given), DERIVED),
    "joins": (
        RowSource,
        "_same",
        lambda self, left, right: exp.Not(
            this=exp.Is(this=self.emitter.value(right), expression=exp.Null())
        ),
        "a query beside a table",
    ),
}
"""By construct: where it stands, the mistake, and the plan that sees it."""

ON_SPARK = {
    # NaN is above all numbers, and not less than itself.
    "NaN": (
        SPARK,
        "is_number",
        lambda self, value: binary("=", value, value.copy()),
        "reals that may be none",
    ),
    # Halves away from zero.
    "nearest": (
        SPARK,
        "nearest",
        lambda self, value, name: self.tried(call("FLOOR", value), name),
        "sums of squares",
    ),
    # Sunday as day 1.
    "day of week": (
        SPARK,
        "date_part",
        lambda self, part, value: self.cast(call(part.upper(), value), Kind.INTEGER),
        "parts of days",
    ),
    "position": (
        SPARK,
        "position",
        lambda self, part, whole: self.cast(call("INSTR", part, whole), Kind.INTEGER),
        "lengths and places",
    ),
    "trimmed": (
        SPARK,
        "trimmed",
        lambda self, value, side, letters: exp.Trim(
            this=value, expression=self.text(letters), position="LEADING"
        ),
        "texts out of texts",
    ),
    # In the type of its operand, which sums may leave.
    "narrowed": (
        SPARK,
        "narrowed",
        lambda self, value: self.cast_to(value, "BIGINT"),
        "integers that may not fit",
    ),
    "starts with": (
        SPARK,
        "starts_with",
        lambda self, whole, part: self.ends_with(whole, part),
        "parts of texts",
    ),
}


def agrees(bench, plan: str) -> bool:
    """Whether an engine gives the reference's integers."""
    try:
        found = by_group(bench.run(job(plan), schema(plan), rows(), KEY))
    except (EngineError, UnsupportedError, OverflowError, ValueError):
        return False
    return found == expected(job(plan), schema(plan), rows())


@pytest.fixture(scope="module")
def server(request):
    """PostgreSQL over rows that are exchanged."""
    found = PostgresBench(request.getfixturevalue("postgres_server"))
    yield found
    found.close()


@pytest.fixture(scope="module")
def cluster():
    """The one Spark of the tests."""
    return SparkBench()


@pytest.mark.parametrize("construct", ON_POSTGRES)
def test_a_mistake_in_postgres_is_seen(construct, server, monkeypatch):
    """The plan agrees, and no longer does."""
    place, name, mistake, plan = ON_POSTGRES[construct]
    assert agrees(server, plan)
    monkeypatch.setattr(place, name, mistake)
    assert not agrees(server, plan)


@pytest.mark.parametrize("construct", [pytest.param(name, marks=needs_spark) for name in ON_SPARK])
def test_a_mistake_in_spark_is_seen(construct, cluster, monkeypatch):
    """The plan agrees, and no longer does."""
    place, name, mistake, plan = ON_SPARK[construct]
    assert agrees(cluster, plan)
    monkeypatch.setattr(place, name, mistake)
    assert not agrees(cluster, plan)
