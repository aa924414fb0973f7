"""Which questions read their blocks in parallel: those by a key that says in which a row lies."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction

import pytest

from dither.blocks._calendar import Calendar
from dither.plan.lowering.lower import Plan, lower
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.session._charged import reads_within
from dither.sql import parse_query

DAY = ColumnFacts("day", Kind.DATE, dt.date(2024, 1, 1), dt.date(2024, 4, 30), nullable=False)
VISITS = Table(
    "visits",
    {
        "day": DAY,
        "u": ColumnFacts("u", Kind.INTEGER),
        "cost": ColumnFacts("cost", Kind.INTEGER, Fraction(0), Fraction(9)),
        "region": ColumnFacts("region", Kind.TEXT, values=("a", "b", "c"), nullable=False),
    },
    unit="u",
    max_groups=2,
    max_rows=3,
    max_join_rows=5,
    block=("day", Calendar(every="month")),
    unit_name="u",
)
LABS = replace(VISITS, name="labs")
REGIONS = Table(
    "regions",
    {
        "region": ColumnFacts("region", Kind.TEXT, values=("a", "b", "c"), nullable=False),
        "size": ColumnFacts("size", Kind.INTEGER, values=(1, 2), nullable=False),
    },
    private=False,
    unique=(("region",),),
)
SCHEMA = Schema({"visits": VISITS, "labs": LABS, "regions": REGIONS}, today=dt.date(2025, 1, 1))
MONTH = "DATE_TRUNC('month', day)"


def planned(sql: str, schema: Schema = SCHEMA) -> Plan:
    return lower(parse_query(sql, schema), schema)


PARALLEL = {
    f"SELECT {MONTH} AS m, COUNT(*) AS n FROM visits GROUP BY 1": 1,
    f"SELECT region, {MONTH} AS m, SUM(cost) AS s FROM visits GROUP BY 1, 2": 2,
    f"SELECT {MONTH} AS m, COUNT(*) AS n FROM visits WHERE cost > 3 AND day < '2024-03-09' "
    "GROUP BY 1": 1,
    "SELECT m, COUNT(*) AS n FROM (SELECT u, DATE_TRUNC('month', d) AS m FROM "
    "(SELECT u, day AS d FROM visits) t) s GROUP BY m": 1,
    f"SELECT {MONTH} AS m, r.size, COUNT(*) AS n FROM visits v JOIN regions r "
    "ON v.region = r.region GROUP BY 1, 2": 2,
    f"SELECT {MONTH} AS m, MEDIAN(cost) AS c, COUNT(DISTINCT region) AS d FROM visits "
    "GROUP BY 1": 1,
}  # fmt: skip
"""With the groups of one block that a unit counts in."""

TOGETHER = (
    f"SELECT COUNT(*) AS n FROM visits WHERE {MONTH} = '2024-02-01'",
    f"SELECT {MONTH} AS m, COUNT(*) AS n FROM visits WHERE {MONTH} = '2024-02-01' GROUP BY 1",
    "SELECT DATE_TRUNC('quarter', day) AS q, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT DATE_TRUNC('week', day) AS w, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT DATE_TRUNC('month', day + INTERVAL 3 DAY) AS m, COUNT(*) AS n FROM visits GROUP BY 1",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY 1",
    f"SELECT {MONTH} AS m, region, COUNT(*) AS n FROM visits GROUP BY ROLLUP (1, 2)",
    f"SELECT {MONTH} AS m, COUNT(*) AS n FROM visits GROUP BY 1 OPTIONS (by_block = FALSE)",
    "SELECT DATE_TRUNC('month', v.day) AS m, COUNT(*) AS n FROM visits v JOIN labs l ON v.u = l.u "
    "GROUP BY 1",
    "SELECT m, COUNT(*) AS n FROM (SELECT u, DATE_TRUNC('month', day) AS m, SUM(cost) AS c "
    "FROM visits GROUP BY u, m) t GROUP BY m",
    "SELECT m, COUNT(*) AS n FROM (SELECT u, DATE_TRUNC('month', day) AS m FROM visits UNION ALL "
    "SELECT u, DATE_TRUNC('month', day) AS m FROM labs) t GROUP BY m",
)  # fmt: skip


@pytest.mark.parametrize("sql", PARALLEL)
def test_a_key_that_is_the_block_reads_blocks_in_parallel(sql: str) -> None:
    """The unit is limited in each block, and noise is that of one."""
    plan = planned(sql)
    assert plan.blocks is not None
    assert plan.blocks.parallel
    assert plan.job.block_key is not None
    assert plan.job.max_groups == PARALLEL[sql]
    assert {bound.groups for bound in plan.sensitivities} == {PARALLEL[sql]}
    together = planned(f"{sql} OPTIONS (by_block = FALSE)")
    assert together.job.block_key is None
    assert replace(plan.blocks, parallel=False) == together.blocks


@pytest.mark.parametrize("sql", TOGETHER)
def test_other_questions_read_them_together(sql: str) -> None:
    """Where a row of one block can matter in another, there is one block, or keys are coarser."""
    plan = planned(sql)
    assert plan.blocks is not None
    assert not plan.blocks.parallel
    assert plan.job.block_key is None


def test_what_limits_a_unit_in_each_block_is_charged_so() -> None:
    """A job by block is refused under a charge for all together; whoever made both."""
    plan = planned(next(iter(PARALLEL)))
    assert plan.blocks is not None
    assert reads_within(plan.job, SCHEMA, plan.blocks)
    assert not reads_within(plan.job, SCHEMA, replace(plan.blocks, parallel=False))
    assert not reads_within(plan.job, SCHEMA, None)
    # A key that is none: its groups are of several blocks.
    region = planned(f"SELECT region, {MONTH} AS m, COUNT(*) AS n FROM visits GROUP BY 1, 2")
    assert not reads_within(replace(region.job, block_key=0), SCHEMA, region.blocks)
    # What is limited more strictly may be charged for more.
    together = planned(f"{next(iter(PARALLEL))} OPTIONS (by_block = FALSE)")
    assert reads_within(together.job, SCHEMA, plan.blocks)


def test_values_that_share_a_block_are_no_key_of_it() -> None:
    """All cohorts that are not declared are one block, in which a unit would count twice."""
    cohort = ColumnFacts("region", Kind.TEXT, values=("a", "b", "c", "d"), nullable=False)
    sql = "SELECT region, COUNT(*) AS n FROM visits GROUP BY 1"
    for values, parallel in (
        (("a", "b", "c", "d"), True),
        (("a", "b", "c"), True),
        (("a",), False),
    ):
        table = replace(
            VISITS,
            columns={**VISITS.columns, "region": cohort},
            block=("region", Calendar(values=values)),
        )
        plan = planned(sql, replace(SCHEMA, tables={"visits": table}))
        assert plan.blocks is not None
        assert plan.blocks.parallel is parallel


def test_a_row_that_is_the_unit_is_in_one_block_anyway() -> None:
    """Its lifetime need not bear a question more than once."""
    rows = replace(VISITS, unit=None, max_groups=1, max_rows=1, max_join_rows=None)
    plan = planned(next(iter(PARALLEL)), replace(SCHEMA, tables={"visits": rows}))
    assert plan.blocks is not None
    assert not plan.blocks.parallel


def test_replaced_units_may_change_their_month() -> None:
    """One out of a block and another into it: of one group in each, a count moves by one unit."""
    schema = replace(SCHEMA, replace_one=True)
    plan = planned(next(iter(PARALLEL)), schema)
    assert [(b.l1, b.l2_squared) for b in plan.sensitivities] == [(3, 9)]
    both = planned(next(sql for sql, groups in PARALLEL.items() if groups == 2), schema)
    assert {b.groups for b in both.sensitivities} == {2}
