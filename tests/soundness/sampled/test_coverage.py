"""Intervals hold what they say: coverage by simulation, with the real noise.

Each output's exact value follows from the exact measurements; noise is drawn ``DRAWS`` times, and
the share of intervals that hold the exact value is compared with the nominal one. For true coverage
of at least ``CONFIDENCE`` the test fails with probability at most 1e-7 for each output and group
(binomial tail).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.stats import binom

from dither.plan.answers import ExactAnswer
from dither.plan.lowering.recipes import (
    Linear,
    MeanRecipe,
    QuantileRecipe,
    RatioRecipe,
    VarianceRecipe,
)
from dither.query._noise import NoisePlan, add_noise, on_grid, plan_noise
from dither.query.estimates._values import Measured, estimate
from engines.hostile import Bench, frame
from soundness.sessions import opened
from soundness.tables import MEASURED, Row, planned, schema_of

DRAWS = 250
CONFIDENCE = 0.9
FEWEST = int(binom.ppf(1e-7, DRAWS, CONFIDENCE))


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all tests here."""
    made = Bench(schema_of())
    yield made
    made.close()


def people() -> list[Row]:
    """Groups of 0, 1, 30 and 900 rows: é, c, b and a."""
    plain = dict.fromkeys((c.name for c in MEASURED), None)
    source = np.random.default_rng(7)
    found = []
    for group, size in (("a", 900), ("b", 30), ("c", 1)):
        for _ in range(size):
            x = float(np.round(source.normal(300, 120), 2))
            row = {"g": group, "w": group, "x": x, "i": int(source.integers(0, 111))}
            found.append({**plain, **row, "z": float(np.round(source.uniform(1, 5), 1))})
    return found


def truth(recipe: Any, parts: dict[int, Any]) -> np.ndarray:
    """The exact value of an output in each group; NaN where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        match recipe:
            case Linear(terms=terms, constant=constant):
                start = float(constant)
                return sum((float(c) * parts[i].astype(float) for i, c in terms), start=start)
            case MeanRecipe(total=t, count=n, step=step, centre=centre):
                return float(centre) + float(step) * (
                    parts[t].astype(float) / parts[n].astype(float)
                )
            case RatioRecipe(numerator=top, denominator=bottom):
                return truth(top, parts) / truth(bottom, parts)
            case VarianceRecipe(total=t, square=s, count=n):
                count = parts[n].astype(float)
                square = parts[s].astype(float) / count + recipe.square_centre
                found = float(recipe.step) ** 2 * (square - (parts[t].astype(float) / count) ** 2)
                found = found * count / (count - 1) if recipe.sample else found
                return np.sqrt(found) if recipe.root else found
    raise TypeError(type(recipe).__name__)


def held(recipe: Any, found: Any, parts: dict[int, Any]) -> np.ndarray:
    """Whether each group's interval holds the exact value; true where there is none."""
    if isinstance(recipe, QuantileRecipe):
        leaves = parts[recipe.leaves].dense()
        below = np.concatenate([np.zeros((len(leaves), 1)), np.cumsum(leaves, axis=1)], axis=1)
        rank = float(recipe.q) * below[:, -1:]
        # Bin j holds a q-quantile iff F(j) <= q n <= F(j + 1); the interval must meet one of them.
        bins = (below[:, :-1] <= rank) & (rank <= below[:, 1:])
        starts = float(recipe.lower) + float(recipe.width) * np.arange(leaves.shape[1])
        ends = np.minimum(starts + float(recipe.width), float(recipe.upper))
        near = (ends >= found.lower[:, None] - 1e-9) & (starts <= found.upper[:, None] + 1e-9)
        return (bins & near).any(axis=1)
    exact = truth(recipe, parts)
    slack = 1e-9 * (1 + np.abs(exact))
    inside = (found.lower <= exact + slack) & (exact - slack <= found.upper)
    return inside | ~np.isfinite(exact)


OUTPUTS = (
    "COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m, COUNT(x) AS c, "
    "VARIANCE(z) AS v, STDDEV_POP(z) AS d, MEDIAN(i) AS q, QUANTILE(i, 0.9) AS p, "
    "SUM(x) / SUM(z) AS r"
)


class Ends(NamedTuple):
    """Of one release the intervals of each group."""

    lower: np.ndarray
    upper: np.ndarray


def joined(draws: list[dict[int, Any]]) -> dict[int, Any]:
    """The groups of many releases as those of one: a group is read by itself."""
    return {
        place: [np.concatenate(level) for level in zip(*(d[place] for d in draws), strict=True)]
        if isinstance(first, list)
        else np.concatenate([draw[place] for draw in draws])
        for place, first in draws[0].items()
    }


def priced_and_exact(bench: Bench, sql: str, delta: F) -> tuple[NoisePlan, ExactAnswer]:
    plan = planned(sql, schema_of())
    answer = bench.run(plan.job, bench.schema, {"people": people()})
    return plan_noise(plan, F(8), delta), answer


@pytest.mark.parametrize("delta", [F(0), F(1, 1000)], ids=["pure", "approximate"])
def test_intervals_of_public_groups_hold_what_they_say(bench, delta):
    """Large, small, single and empty groups; every kind of output; either family of noise."""
    sql = f"SELECT g AS k, {OUTPUTS} FROM people GROUP BY g"
    priced, answer = priced_and_exact(bench, sql, delta)
    keys = [(k,) for k in ("a", "b", "c", "é")]
    parts = on_grid(keys, answer, priced.plan.job.measurements)
    hits = np.zeros((len(priced.plan.recipes), 4), dtype=int)
    draws = []
    for _ in range(DRAWS):
        noisy = add_noise(priced, answer, CONFIDENCE)
        assert noisy.keys == keys
        draws.append(noisy.values)
    measured = Measured(joined(draws), priced.noises, priced.trees)
    for at, recipe in enumerate(priced.plan.recipes):
        found = estimate(recipe, measured, CONFIDENCE)
        for draw in range(DRAWS):
            rows = slice(4 * draw, 4 * draw + 4)
            hits[at] += held(recipe, Ends(found.lower[rows], found.upper[rows]), parts)
    assert (hits >= FEWEST).all(), hits


def test_groups_are_read_each_by_itself(bench):
    """What is read of many releases at once, as above, is what is read of each."""
    sql = f"SELECT g AS k, {OUTPUTS} FROM people GROUP BY g"
    for delta in (F(0), F(1, 1000)):
        priced, answer = priced_and_exact(bench, sql, delta)
        draws = [add_noise(priced, answer, CONFIDENCE).values for _ in range(5)]
        whole = Measured(joined(draws), priced.noises, priced.trees)
        for recipe in priced.plan.recipes:
            found = estimate(recipe, whole, CONFIDENCE)
            each = [
                estimate(recipe, Measured(draw, priced.noises, priced.trees), CONFIDENCE)
                for draw in draws
            ]
            for end in ("lower", "upper"):
                want = np.concatenate([getattr(one, end) for one in each])
                np.testing.assert_allclose(getattr(found, end), want, rtol=1e-9)


def test_intervals_of_discovered_groups_hold_for_those_shown(bench):
    """Given that a key is shown, its other outputs' intervals hold; its own count is told apart."""
    sql = "SELECT w AS k, SUM(x) AS s, AVG(x) AS m FROM people GROUP BY w"
    priced, answer = priced_and_exact(bench, sql, F(1, 100))
    at = {key: i for i, key in enumerate(answer.keys)}
    hits, shown = np.zeros((2, 2), dtype=int), np.zeros(2, dtype=int)
    for _ in range(DRAWS):
        noisy = add_noise(priced, answer, CONFIDENCE)
        measured = Measured(noisy.values, priced.noises, priced.trees)
        order = [at[key] for key in noisy.keys]
        parts = {i: v[order] for i, v in answer.values.items()}
        for row, recipe in enumerate(priced.plan.recipes):
            good = held(recipe, estimate(recipe, measured, CONFIDENCE), parts)
            for key, ok in zip(noisy.keys, good, strict=True):
                if key in (("a",), ("b",)):
                    hits[row, key == ("b",)] += ok
        for key in noisy.keys:
            if key in (("a",), ("b",)):
                shown[int(key == ("b",))] += 1
    assert shown[0] == DRAWS
    assert shown[1] > DRAWS / 2
    assert (hits >= binom.ppf(1e-7, shown, CONFIDENCE)).all(), (hits, shown)


def test_the_count_that_decides_holds_for_groups_well_above_the_threshold(bench):
    """Given that it is shown, a group of twice the threshold has its count's interval held."""
    sql = "SELECT w AS k, COUNT(*) AS n FROM people GROUP BY w"
    plan = planned(sql, schema_of())
    priced = plan_noise(plan, F(1), F(1, 100))
    assert priced.allocation is not None
    assert priced.allocation.keys is not None
    size = 2 * priced.allocation.keys.tau
    rows = [row for row in people() if row["w"] == "a"][:size]
    answer = bench.run(plan.job, bench.schema, {"people": rows})
    found = []
    for _ in range(DRAWS):
        noisy = add_noise(priced, answer, CONFIDENCE)
        if noisy.keys:
            measured = Measured(noisy.values, priced.noises, priced.trees)
            interval = estimate(plan.recipes[0], measured, CONFIDENCE)
            found.append(interval.lower[0] <= size <= interval.upper[0])
    assert sum(found) >= binom.ppf(1e-7, len(found), CONFIDENCE)


def test_a_release_says_that_its_groups_were_chosen_by_their_counts(tmp_path):
    """Small groups that are shown err upwards: no interval corrects it, so the text says it."""
    rows = frame(schema_of(), "people", people())
    with opened(tmp_path, {"people": rows}) as session:
        text = session.sql("SELECT w, COUNT(*) AS n FROM people GROUP BY w").release(1).summary()
    assert "tend to be too high" in " ".join(text.split())


def test_narrower_intervals_are_caught(bench):
    """The same comparison refutes intervals of a third of their width, all but surely."""
    sql = f"SELECT g AS k, {OUTPUTS} FROM people GROUP BY g"
    priced, answer = priced_and_exact(bench, sql, F(0))
    recipe = priced.plan.recipes[1]
    parts = on_grid([(k,) for k in ("a", "b", "c", "é")], answer, priced.plan.job.measurements)
    hits = 0
    for _ in range(DRAWS):
        noisy = add_noise(priced, answer, CONFIDENCE)
        measured = Measured(noisy.values, priced.noises, priced.trees)
        found = estimate(recipe, measured, CONFIDENCE)
        half = (found.upper - found.value) / 3
        hits += int((np.abs(found.value - truth(recipe, parts)) <= half)[0])
    assert hits < FEWEST
