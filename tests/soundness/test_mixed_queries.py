"""Constructs inside one another, run on neighbours and against the reference."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from conformance.engines import by_group
from dither.errors import DitherError
from engines.hostile import Bench
from engines.reference import answer
from soundness.mixed import mixed, neighbours, schema
from soundness.tables import TARGET, moved, planned, violations
from soundness.test_sensitivity import EXAMPLES, SETTINGS, bounds, target_rows

WIDE = schema(max_groups=1000, max_rows=1000, max_join_rows=1000)
SEEDS = st.integers(0, 2**32)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all examples."""
    made = Bench(schema())
    yield made
    made.close()


@settings(SETTINGS, max_examples=max(EXAMPLES // 4, 1))
@given(
    form=SEEDS,
    limits=bounds,
    discover=st.integers(0, 5).map(lambda n: n == 0),
    seed=SEEDS,
    most=st.sampled_from((1, 4, 15, 60)),
)
def test_no_unit_moves_an_answer_further_than_claimed(bench, form, limits, discover, seed, most):
    """Joins, unions, groups within a unit, lists and limits, in any order, under sets of keys."""
    sql, known = mixed(random.Random(form)), schema(**limits)
    try:
        plan = planned(sql, known, discover=discover)
    except DitherError:
        assume(False)
    both = neighbours(seed, replace_one=known.replace_one, most=most)
    assert violations(plan, *bench.both(plan.job, known, *both)) == [], sql


@settings(
    max_examples=max(EXAMPLES // 8, 1),
    deadline=None,
    derandomize=SETTINGS.derandomize,
    suppress_health_check=list(HealthCheck),
)
@given(form=SEEDS, seed=SEEDS)
def test_answers_are_those_of_the_reference(bench, form, seed):
    """Where nothing has to be chosen by hash, every integer is the reference's."""
    sql = mixed(random.Random(form)).partition(" OPTIONS")[0]
    try:
        plan = planned(sql, WIDE)
    except DitherError:
        assume(False)
    # Limits that follow from the form of a query are no limits here.
    job = replace(plan.job, max_groups=1000, max_rows=1000)
    rows = neighbours(seed, replace_one=False, most=4)[0]
    assert by_group(bench.run(job, WIDE, rows)) == answer(job, WIDE, rows), sql


LISTS_BELOW_VISITS = (
    "SELECT {} FROM (SELECT u, e AS k FROM baskets, UNNEST(kinds) AS t(e) "
    "UNION ALL SELECT u, g AS k FROM visits) AS q"
)


@pytest.mark.parametrize(
    ("sql", "claimed"),
    [
        (LISTS_BELOW_VISITS.format("COUNT(*) AS n"), 4),
        (
            "SELECT COUNT(*) AS n FROM (SELECT u, COUNT(*) AS c FROM ("
            + LISTS_BELOW_VISITS.format("u, k")
            + ") AS r GROUP BY u) AS s",
            1,
        ),
        (
            "SELECT COUNT(*) AS n FROM (SELECT visits.u, e.c AS c FROM visits JOIN (SELECT u, "
            "COUNT(*) AS c FROM baskets, UNNEST(kinds) AS t(k) GROUP BY u) AS e ON visits.u = e.u "
            "UNION ALL SELECT u, v FROM labs) AS r",
            4,
        ),
    ],
)
def test_a_unit_reaches_what_is_claimed_and_half_of_it_is_refuted(bench, sql, claimed):
    """Limits of the tables of a union add up, lists and joins within it cost nothing more."""
    known = schema(max_groups=1, max_rows=2)
    plan = planned(sql, known)
    (claim,) = plan.sensitivities
    assert claim.l1 == claimed
    lists = {"u": TARGET, "g": "a", "x": 1.0, "kinds": ["a", "b"] * 9}
    own = {
        "visits": target_rows("ab", per_group=9),
        "labs": [{"u": TARGET, "v": 1}] * 9,
        "baskets": [dict.fromkeys((*known.table("baskets").lists,)) | lists] * 3,
    }
    answers = [bench.run(plan.job, known, rows) for rows in (own, {name: [] for name in own})]
    assert violations(plan, *answers) == []
    ((l1, _),) = moved(plan.job, *answers)
    assert l1 == claimed
    halved = replace(claim, l1=claim.l1 / 2, l2_squared=claim.l2_squared / 4)
    assert violations(replace(plan, sensitivities=(halved,)), *answers)
