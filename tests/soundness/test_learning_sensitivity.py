"""What is learned, as an adversary sees it: distances of neighbours, realised odds, mutants."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dither.engines.writer.grouped import HistogramQuery
from dither.mechanisms.quantiles.quantile_tree import QuantileTree
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.job import Leaves, Sides, UnitSizeHistogram
from dither.plan.lowering.lower import Plan, lower
from dither.plan.relations import Scan
from dither.plan.schema import Schema
from dither.query._noise import plan_noise
from dither.query.learning._learning import learning_query
from engines.hostile import Bench
from engines.lists import ELEMENTS
from engines.lists import SCHEMA as LISTS
from soundness.auditing import audit, narrower, with_noise
from soundness.tables import TARGET, drawn_pair, moved, schema_of, violations

SETTINGS = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)

NUMBERS = ("n", "i", "j", "x", "y", "r", "z")
EDGES = st.lists(
    st.sampled_from([F(v) for v in (-(10**12), -7, 0, 1, 3, 10**12)]), min_size=2, max_size=2,
    unique=True,
).map(sorted)  # fmt: skip


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all examples."""
    made = Bench(schema_of())
    yield made
    made.close()


def gridded(table: str, schema: Schema, *outputs: ag.AggregateFunction) -> Plan:
    """The plan of what is learned of a table."""
    kind = ag.Query if schema.table(table).unit is None else ag.QueryOfUnits
    named = tuple(ag.Output(f"n{i}", a) for i, a in enumerate(outputs))
    return lower(kind(Scan(table, table), (), named), schema)


def with_edges(plan: Plan, edges: list[F]) -> Plan:
    """The plan with ends in the place of those that would be found as it runs."""
    made = tuple(
        m.between(*(edges if isinstance(m.of, Leaves) else [F(4)])) if isinstance(m, Sides) else m
        for m in plan.job.measurements
    )
    return replace(plan, job=replace(plan.job, measurements=made))


@SETTINGS
@given(
    number=st.sampled_from(NUMBERS),
    table=st.sampled_from(("visits", "people")),
    edges=EDGES,
    replace_one=st.booleans(),
    seed=st.integers(0, 2**32),
    most=st.sampled_from((1, 4, 60, 3000)),
)
def test_no_unit_moves_a_grid_of_values_further_than_claimed(
    bench, number, table, edges, replace_one, seed, most
):
    """Nor the counts outside and inside of any ends whatever."""
    schema = schema_of(replace_one=replace_one)
    plan = with_edges(gridded(table, schema, ag.Magnitudes(ex.Column(table, number))), edges)
    pair = drawn_pair(seed, replace_one=replace_one, most=most)
    first, second = bench.both(plan.job, schema, pair.first, pair.second)
    assert violations(plan, first, second) == []


@SETTINGS
@given(
    by=st.lists(st.sampled_from(("g", "w", "i", "r", "b", "d", "t")), max_size=3, unique=True),
    replace_one=st.booleans(),
    seed=st.integers(0, 2**32),
    most=st.sampled_from((1, 4, 60, 3000)),
)
def test_no_unit_moves_a_grid_of_sizes_further_than_claimed(bench, by, replace_one, seed, most):
    """However many rows or groups it has, it is in one cell."""
    schema = schema_of(replace_one=replace_one)
    keys = tuple(ex.Column("visits", name) for name in by)
    outputs = [ag.UnitSizes(keys, groups=False), ag.UnitSizes(keys, groups=True)]
    plan = with_edges(gridded("visits", schema, *outputs), [])
    pair = drawn_pair(seed, replace_one=replace_one, most=most)
    first, second = bench.both(plan.job, schema, pair.first, pair.second)
    assert violations(plan, first, second) == []


DAYS = ("d", "e", "t")
DAY_EDGES = st.lists(
    st.sampled_from([F(v) for v in (-800_000, -365, 0, 1, 31, 7000, 3_000_000)]), min_size=2,
    max_size=2, unique=True,
).map(sorted)  # fmt: skip
ORIGINS = st.dates(dt.date(1000, 1, 1), dt.date(8999, 12, 31))


@SETTINGS
@given(
    day=st.sampled_from(DAYS),
    table=st.sampled_from(("visits", "people")),
    origin=ORIGINS,
    edges=DAY_EDGES,
    replace_one=st.booleans(),
    seed=st.integers(0, 2**32),
    most=st.sampled_from((1, 4, 60, 3000)),
)
def test_no_unit_moves_a_grid_of_days_further_than_claimed(
    bench, day, table, origin, edges, replace_one, seed, most
):
    """About any day, of dates and of timestamps."""
    schema = schema_of(replace_one=replace_one)
    made = gridded(table, schema, ag.Magnitudes(ex.Column(table, day), origin))
    plan = with_edges(made, edges)
    pair = drawn_pair(seed, replace_one=replace_one, most=most)
    first, second = bench.both(plan.job, schema, pair.first, pair.second)
    assert violations(plan, first, second) == []


def baskets(seed: int, most: int) -> tuple[list[dict], list[dict]]:
    """Rows of others, and rows with long lists of one unit."""
    source = random.Random(seed)

    def row(unit: int) -> dict:
        lists = {
            name: source.choice((None, source.choices(values, k=source.randrange(most + 1))))
            for name, values in ELEMENTS.items()
        }
        return {"u": unit, "g": "a", "x": 1.0} | lists

    return [row(u) for u in range(5)], [row(TARGET) for _ in range(source.randrange(1, 5))]


@pytest.fixture(scope="module")
def listed() -> Iterator[Bench]:
    """An engine of tables with lists."""
    made = Bench(LISTS)
    yield made
    made.close()


def of_elements(table: str, column: str, edges: list[F]) -> Plan:
    """The plan by which bounds of elements are learned."""
    return with_edges(lower(learning_query(LISTS, table, "bounds", column), LISTS), edges)


@SETTINGS
@given(
    column=st.sampled_from(("whole", "reals", "days")),
    edges=DAY_EDGES,
    seed=st.integers(0, 2**32),
    most=st.sampled_from((1, 3, 40)),
)
def test_no_unit_moves_a_grid_of_elements_further_than_claimed(listed, column, edges, seed, most):
    """However many lists it has, however long: its elements share one vote."""
    others, own = baskets(seed, most)
    plan = of_elements("baskets", column, edges)
    first, second = (
        listed.run(plan.job, LISTS, {"baskets": rows}) for rows in ([*others, *own], others)
    )
    assert violations(plan, first, second) == []


@SETTINGS
@given(
    column=st.sampled_from(("whole", "reals", "days")),
    edges=DAY_EDGES,
    seed=st.integers(0, 2**32),
)
def test_a_row_that_is_a_person_moves_a_grid_by_as_many_elements_as_count(
    listed, column, edges, seed
):
    """Two of each list: so far the plan's price for a group of so many rows goes."""
    others, own = baskets(seed, 40)
    plan = of_elements("crates", column, edges)
    assert plan.unit_rows == 2
    first, second = (
        listed.run(plan.job, LISTS, {"crates": rows}) for rows in ([*others, own[0]], others)
    )
    moves = [F(l1) for l1, _ in moved(plan.job, first, second)]
    claims = [2 * claim.l1 for claim in plan.sensitivities]
    assert all(move <= claim for move, claim in zip(moves, claims, strict=True))


def far_apart(replace_one: bool) -> tuple[list[dict], list[dict]]:
    """Rows of one unit that lie in two cells, and what it is replaced by, or nothing."""
    plain = dict.fromkeys(schema_of().table("visits").columns)
    one = [plain | {"u": TARGET, "g": g, "x": x} for g in "abc" for x in (5.0, 900.0)]
    other = [plain | {"u": TARGET, "g": "a", "x": -5.0}]
    return one, other if replace_one else []


@pytest.mark.parametrize("replace_one", [False, True])
def test_the_claims_are_reached(bench, replace_one):
    """And so are no larger than they must be."""
    schema = schema_of(replace_one=replace_one)
    keys = (ex.Column("visits", "g"),)
    for outputs in (
        (ag.Magnitudes(ex.Column("visits", "x")),),
        (ag.UnitSizes(keys, groups=False), ag.UnitSizes(keys, groups=True)),
    ):
        plan = with_edges(gridded("visits", schema, *outputs), [F(-2), F(100)])
        answers = [bench.run(plan.job, schema, {"visits": rows}) for rows in far_apart(replace_one)]
        reached = [F(l1) for l1, _ in moved(plan.job, *answers)]
        claimed = [claim.l1 for claim in plan.sensitivities]
        # Up to 4 rows and above is all that the second histogram of sizes distinguishes.
        for l1, claim, measurement in zip(reached, claimed, plan.job.measurements, strict=True):
            two = isinstance(measurement, UnitSizeHistogram) and measurement.bins == 2
            assert l1 == claim or two


def test_the_odds_that_are_realised_are_those_that_are_charged(bench):
    """Two people, or three: of every outcome, the ratio of probabilities is at most e^epsilon.

    Noise is independent from cell to cell, with odds of exp(1/scale) for each step that a count
    moves. So the largest ratio over all outcomes of both steps is exp of the sum of |moves|/scale:
    computed, exactly, for every pair of small tables and any ends.
    """
    schema, values = schema_of(), (None, -3.0, 0.0, 40.0)
    edges = [F(-1), F(100)]
    plan = with_edges(gridded("visits", schema, ag.Magnitudes(ex.Column("visits", "x"))), edges)
    priced = plan_noise(plan, F(1, 3), F(0))
    plain = dict.fromkeys(schema.table("visits").columns)
    rest = [plain | {"u": 1, "x": 40.0}]
    source, largest = random.Random(4), F(0)
    for _ in range(12):
        own = [plain | {"u": 2, "x": source.choice(values)} for _ in range(source.randrange(1, 6))]
        answers = [bench.run(plan.job, schema, {"visits": r}) for r in ([*rest, *own], rest)]
        loss = F(0)
        for (l1, _), noise in zip(moved(plan.job, *answers), priced.noises.values(), strict=True):
            loss += F(l1) / noise.scale
        largest = max(largest, loss)
        assert loss <= priced.charge.epsilon == F(1, 3)
    assert largest == F(1, 3)


def test_a_grid_is_hidden_as_charged(bench):
    """As a black box with its real noise; a quarter of the scale is refuted."""
    schema = schema_of()
    edges = [F(0), F(100)]
    plan = with_edges(gridded("visits", schema, ag.Magnitudes(ex.Column("visits", "x"))), edges)
    plain = dict.fromkeys(schema.table("visits").columns)
    others = [plain | {"u": unit, "x": 3.0} for unit in range(3)]
    own = [plain | {"u": TARGET, "x": 900.0}]
    pair = tuple(bench.run(plan.job, schema, {"visits": r}) for r in ([*others, *own], others))
    priced = plan_noise(plan, F(1), F(0))
    assert priced.charge.epsilon == 1
    assert not audit(priced, priced, pair)
    assert audit(priced, with_noise(priced, lambda noise: narrower(noise, F(1, 4))), pair)


# --- mutants --------------------------------------------------------------------------------------


def _rows_weigh(monkeypatch):
    """A unit's rows all count, in as many cells as they lie in."""

    def weighed(query, leaves):
        return query._dialect.integer(leaves.parts)

    monkeypatch.setattr(HistogramQuery, "_weight", weighed)


def _groups_count(monkeypatch):
    """Each group of a unit stands for a unit."""
    made = HistogramQuery._sizes

    def ungrouped(query, measurement):
        tree = made(query, measurement)
        units = next(s for s in tree.find_all(exp.Subquery) if s.alias == "units").this
        units.set("group", None)
        size = exp.column("c", quoted=True)
        units.set("expressions", [exp.alias_(size, "size", quoted=True)])
        return tree

    monkeypatch.setattr(HistogramQuery, "_sizes", ungrouped)


def test_days_and_elements_that_all_count_are_caught(bench, listed, monkeypatch):
    """A unit with two days far apart, and one whose list has two numbers far apart."""
    schema, plain = schema_of(), dict.fromkeys(schema_of().table("visits").columns)
    days = [plain | {"u": TARGET, "d": dt.date(year, 1, 1)} for year in (1950, 2020)]
    edges = [F(-20_000), F(10_000)]
    of_days = with_edges(gridded("visits", schema, ag.Magnitudes(ex.Column("visits", "d"))), edges)
    lists = {"u": TARGET, "g": "a", "x": 1.0} | dict.fromkeys(ELEMENTS) | {"whole": [3, 10**9]}
    cases = [
        (bench, of_days, schema, "visits", days),
        (listed, of_elements("baskets", "whole", edges), LISTS, "baskets", [lists]),
    ]
    for engine, plan, known, table, rows in cases:
        pair = [engine.run(plan.job, known, {table: some}) for some in (rows, [])]
        assert violations(plan, *pair) == []
    _rows_weigh(monkeypatch)
    for engine, plan, known, table, rows in cases:
        pair = [engine.run(plan.job, known, {table: some}) for some in (rows, [])]
        assert violations(plan, *pair)


@pytest.mark.parametrize("mutant", [_rows_weigh, _groups_count])
def test_a_unit_that_counts_in_many_cells_is_caught(bench, monkeypatch, mutant):
    """The comparison that all plans pass refutes it at once."""
    schema = schema_of()
    keys = (ex.Column("visits", "g"),)
    one, _ = far_apart(False)
    outputs = [ag.Magnitudes(ex.Column("visits", "x"))]
    if mutant is _groups_count:
        outputs = [ag.UnitSizes(keys, groups=False)]
    plan = with_edges(gridded("visits", schema, *outputs), [F(-2), F(100)])
    answers = [bench.run(plan.job, schema, {"visits": rows}) for rows in (one, [])]
    assert violations(plan, *answers) == []
    mutant(monkeypatch)
    answers = [bench.run(plan.job, schema, {"visits": rows}) for rows in (one, [])]
    assert violations(plan, *answers)


def test_noise_that_is_left_out_on_one_side_is_caught(bench, monkeypatch):
    """A cell without noise gives a neighbour away: the auditor sees it."""
    schema = schema_of()
    plan = with_edges(gridded("visits", schema, ag.Magnitudes(ex.Column("visits", "x"))),
                      [F(0), F(100)])  # fmt: skip
    own, _ = far_apart(False)
    pair = tuple(bench.run(plan.job, schema, {"visits": r}) for r in (own, []))
    priced = plan_noise(plan, F(1), F(0))
    measure = QuantileTree.measure

    def careless(tree, leaves, noise):
        (noisy,) = measure(tree, leaves, noise)
        noisy[:, -2] = np.asarray(leaves)[:, -2]
        return [noisy]

    monkeypatch.setattr(QuantileTree, "measure", careless)
    assert audit(priced, priced, pair)


def test_the_first_step_asks_the_same_of_every_table(tmp_path, monkeypatch):
    """A grid that followed the data would be another job for another table."""
    import polars as pl

    import dither as dt
    from dither.engines.duckdb import DuckDBEngine

    asked, run = [], DuckDBEngine.run

    def watched(engine, job, schema, key):
        asked.append(job)
        return run(engine, job, schema, key)

    monkeypatch.setattr(DuckDBEngine, "run", watched)
    for name, values in (("a", [1.0, 2.0]), ("b", [-1e9, 1e9])):
        policy = {
            "budget": {"epsilon": 1, "ledger": str(tmp_path / name)},
            "tables": {"t": {}},
        }
        with dt.open(policy, sources={"t": pl.DataFrame({"x": values})}) as session:
            session.learn("t", "x", epsilon=1)
    assert asked[0] == asked[2]
