"""Whole releases as black boxes: neighbours' noisy outputs never refute what is charged.

Every audit has a false alarm with probability at most 1e-7 (``soundness.auditing``), and each is
shown to catch mutants. The noise is the real one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction as F

import numpy as np
import pytest
from scipy.stats import beta

from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, KeyThreshold
from dither.plan.answers import ExactAnswer
from dither.plan.lowering.lower import Plan
from dither.plan.schema import Schema
from dither.query._noise import NoisePlan, add_noise, plan_noise
from engines.hostile import Bench
from soundness.auditing import audit, narrower, with_noise
from soundness.tables import (
    DOCTOR_ROWS,
    MEASURED,
    TARGET,
    Row,
    planned,
    planned_once,
    planned_ranks,
    schema_of,
)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all audits."""
    made = Bench(schema_of())
    yield made
    made.close()


def rows_of(unit: int, groups: str, *, copies: int = 5, **values: object) -> list[Row]:
    """Rows of one unit at the extremes of the bounds."""
    plain: Row = dict.fromkeys((c.name for c in MEASURED), None)
    plain |= {"x": 1000.0, "i": 110, "z": 5.0, "w": None, **values}
    return [{**plain, "u": unit, "g": g} for g in groups for _ in range(copies)]


def neighbours(
    bench: Bench, sql: str, epsilon: F, delta: F, *, groups: str = "ab", **limits: object
) -> tuple[NoisePlan, tuple[ExactAnswer, ExactAnswer]]:
    """A priced plan, and its exact answers with and without a unit that moves them furthest."""
    schema = schema_of(**limits)  # type: ignore[arg-type]
    plan = planned(sql, schema)
    others = [row for unit in range(3) for row in rows_of(unit, "abcé", copies=1, i=10, z=2.0)]
    first, second = (
        bench.run(plan.job, schema, {"visits": rows, "doctors": DOCTOR_ROWS})
        for rows in ([*others, *rows_of(TARGET, groups)], others)
    )
    return plan_noise(plan, epsilon, delta), (first, second)


CASES = {
    "laplace count": ("SELECT COUNT(*) AS n FROM visits", F(1), F(0)),
    "laplace groups": ("SELECT g AS k, COUNT(*) AS n FROM visits GROUP BY g", F(1), F(0)),
    "mean": ("SELECT AVG(z) AS m FROM visits", F(1), F(0)),
    "variance and units": (
        "SELECT VARIANCE(z) AS v, COUNT(DISTINCT u) AS us FROM visits",
        F(1),
        F(0),
    ),
    "quantile tree": (
        "SELECT MEDIAN(BIN(i, 0, 9, 20, 40, 60, 80, 110)) AS q FROM visits",
        F(1),
        F(0),
    ),
}


ONCE_PER_UNIT: dict[str, tuple[Callable[[Schema], Plan], dict[str, object]]] = {
    "what inference releases of people with many rows": (
        lambda schema: planned_once("SELECT COUNT(*) AS n, SUM(z - 3) AS s FROM visits", schema),
        {"z": 3.0},
    ),
    "what quantiles of people are read from": (
        lambda schema: planned_ranks("SELECT SUM(i) AS s FROM visits", 8, schema, once=True),
        {"i": 50},
    ),
}


@pytest.mark.parametrize("name", ONCE_PER_UNIT)
def test_units_that_count_once_are_hidden_as_charged(name, bench):
    """Half the scale is refuted."""
    asked, of_others = ONCE_PER_UNIT[name]
    schema = schema_of(max_groups=2, max_rows=3)
    plan = asked(schema)
    others = [row for unit in range(3) for row in rows_of(unit, "ab", copies=1, **of_others)]
    first, second = (
        bench.run(plan.job, schema, {"visits": rows})
        for rows in ([*others, *rows_of(TARGET, "abc")], others)
    )
    priced = plan_noise(plan, F(1), F(0))
    assert priced.charge.epsilon == 1
    assert not audit(priced, priced, (first, second))
    assert audit(priced, with_noise(priced, narrower), (first, second))


@pytest.mark.parametrize("case", CASES)
def test_pure_noise_keeps_its_word(bench, case):
    """The charge is never refuted; half the scale is."""
    priced, pair = neighbours(bench, *CASES[case], max_groups=2, max_rows=3)
    assert all(isinstance(n, DiscreteLaplace) for n in priced.noises.values())
    assert priced.charge.epsilon == 1
    assert not audit(priced, priced, pair)
    assert audit(priced, with_noise(priced, narrower), pair)


WIDE = "SELECT i AS k, COUNT(*) AS n, SUM(z) AS s FROM visits GROUP BY i"


def test_gaussian_groups_keep_their_word(bench):
    """Forty groups of one unit, in Gaussian noise; a quarter of its sigma is refuted."""
    schema = schema_of(max_groups=40, max_rows=1)
    plan = planned(WIDE, schema)
    own = [row for i in range(40) for row in rows_of(TARGET, "a", copies=1, i=i)]
    others = rows_of(1, "a", i=3)
    pair = tuple(bench.run(plan.job, schema, {"visits": r}) for r in ([*own, *others], others))
    priced = plan_noise(plan, F(1), F(1, 1000))
    assert all(isinstance(n, DiscreteGaussian) for n in priced.noises.values())
    assert not audit(priced, priced, pair, 2_500)
    mutant = with_noise(priced, lambda noise: narrower(noise, F(1, 4)))
    assert audit(priced, mutant, pair, 2_500)


def test_a_replaced_unit_is_hidden_as_charged(bench):
    """Under replace-one both units' groups move; a quarter of the scale is refuted."""
    schema = schema_of(max_groups=2, max_rows=3, replace_one=True)
    plan = planned("SELECT g AS k, COUNT(*) AS n FROM visits GROUP BY g", schema)
    pair = tuple(
        bench.run(plan.job, schema, {"visits": rows_of(TARGET, groups)}) for groups in ("ab", "cé")
    )
    priced = plan_noise(plan, F(1), F(0))
    assert not audit(priced, priced, pair)
    assert audit(priced, with_noise(priced, lambda noise: narrower(noise, F(1, 4))), pair)


@dataclass(frozen=True)
class Reused:
    """A mutant: one draw serves all groups."""

    noise: DiscreteLaplace

    def draw(self, size):
        return np.full(size, self.noise.draw(1)[0])


def test_noise_used_twice_is_caught(bench):
    """One draw for all groups: the difference of two groups tells."""
    case = CASES["laplace groups"]
    priced, pair = neighbours(bench, *case, max_groups=2, max_rows=3)
    assert audit(priced, with_noise(priced, Reused), pair)


# --- keys that are discovered ------------------------------------------------------------------


def shown_by_one(
    bench: Bench, *, max_groups: int, epsilon: F, delta: F
) -> tuple[NoisePlan, ExactAnswer]:
    """A table in which every key is one unit's."""
    schema = schema_of(max_groups=max_groups, max_rows=1)
    plan = planned("SELECT w AS k, COUNT(DISTINCT u) AS n FROM visits GROUP BY w", schema)
    own = [row for w in "pqrst" for row in rows_of(TARGET, "a", copies=2, w=w)]
    answer = bench.run(plan.job, schema, {"visits": own})
    assert len(answer.keys) == max_groups
    return plan_noise(plan, epsilon, delta), answer


def odds_bounds(hits: int, draws: int) -> tuple[float, float]:
    """Clopper-Pearson at 1e-7 to either side."""
    low = beta.ppf(1e-7, hits, draws - hits + 1) if hits else 0.0
    return float(low), float(beta.ppf(1 - 1e-7, hits + 1, draws - hits))


@pytest.mark.parametrize("max_groups", [1, 3])
def test_keys_of_one_unit_are_shown_within_delta(bench, max_groups):
    """Any key that only one unit has: shown with at most delta, and as often as the law says."""
    delta = F(1, 20)
    priced, answer = shown_by_one(bench, max_groups=max_groups, epsilon=F(1), delta=delta)
    assert priced.allocation is not None
    rule = priced.allocation.keys
    assert rule is not None
    draws = 8_000

    def shown(drawn: NoisePlan) -> int:
        return sum(bool(add_noise(drawn, answer, 0.95).keys) for _ in range(draws))

    low, high = odds_bounds(shown(priced), draws)
    exact = 1 - (1 - rule.noise.survival(rule.tau - 1)) ** max_groups
    assert low <= exact <= high
    assert exact <= float(delta)
    careless = KeyThreshold(rule.noise, max_groups, F(1, 2))
    mutant = replace(priced, allocation=replace(priced.allocation, keys=careless))
    assert odds_bounds(shown(mutant), draws)[0] > delta


def test_a_key_of_one_unit_hardly_ever_shows(bench):
    """At delta = 1e-9, in three thousand releases, no key that one unit alone has is printed."""
    priced, answer = shown_by_one(bench, max_groups=3, epsilon=F(2), delta=F(1, 10**9))
    assert not any(add_noise(priced, answer, 0.95).keys for _ in range(3_000))
