"""What is calculated from released values holds its level: by simulation, with the real noise.

The exact result of every calculation follows from the exact answers by the plain reference of
``tests/query/estimates/test_operations.py``. A test fails by chance as rarely as those of
``test_coverage``.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction as F
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from dither.plan.lowering.recipes import Applied, KeyRead, Known, Ranked
from dither.query._noise import add_noise, on_grid
from dither.query.estimates._calculated import Calculation
from dither.query.estimates._values import Measured, estimate
from engines.hostile import Bench
from query.estimates.test_operations import reference
from soundness.sampled.test_coverage import (
    CONFIDENCE,
    priced_and_exact,
    truth,
)
from soundness.sessions import opened
from soundness.tables import schema_of

DRAWS = 120
FEWEST = int(binom.ppf(1e-7, DRAWS, CONFIDENCE))
KEYS = ["a", "b", "c", "é"]
OUTPUTS = (
    *("100 * AVG(x)", "ROUND(AVG(x), -1)", "AVG(x) - AVG(z)", "AVG(x) / AVG(z)", "AVG(x) * AVG(z)"),
    *("COUNT(*) - COUNT(x)", "3 * COUNT(*) + 2 * SUM(x) - 5", "SUM(x) / (COUNT(*) + COUNT(x))"),
    # Divisors near 0, on either side of it, and 0 itself.
    *(
        "1 / SUM(x - 300)",
        "SUM(z) / SUM(x - 300)",
        "1 / (COUNT(*) - 30)",
        "AVG(z) / (AVG(x) - 300)",
    ),
    *("SUM(x - 300) / COUNT(*)", "COUNT(*) / (COUNT(*) - COUNT(x))", "SUM(z) / SUM(-1 * x)"),
    *("SQRT(COUNT(*))", "LN(COUNT(*))", "SQRT(VARIANCE(x)) / AVG(x)", "POWER(AVG(x), 2)"),
    *("ABS(AVG(x) - 300)", "LEAST(AVG(x), 300)", "GREATEST(AVG(x), AVG(z) * 100)"),
    *("COALESCE(AVG(x), 0)", "CASE WHEN COUNT(*) > 30 THEN AVG(x) ELSE AVG(z) END"),
    *("COUNT(*) > 30", "AVG(x) > 300 AND NOT COUNT(*) > 100", "NULLIF(COUNT(*), 30)"),
    *("CASE WHEN g = 'a' THEN AVG(x) ELSE COUNT(*) END", "EXP(AVG(x) / 100)", "FLOOR(AVG(x))"),
    *("RANK() OVER (ORDER BY AVG(x) DESC)", "DENSE_RANK() OVER (ORDER BY COUNT(*))"),
    *("COVAR_POP(x, i)", "COVAR_SAMP(x, i)", "CORR(x, i)", "CORR(x, x)", "CORR(x, -1 * z)"),
    *("REGR_SLOPE(x, i)", "REGR_INTERCEPT(x, i)", "REGR_R2(x, z)", "REGR_SLOPE(x, 2 * x + 1)"),
    *("REGR_AVGX(x, i)", "REGR_COUNT(x, i)", "COUNT(DISTINCT i)", "AVG(x > 300)", "SUM(x > 300)"),
    "2 * RANK() OVER (ORDER BY COUNT(*)) + COUNT(*)",
)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all tests here."""
    made = Bench(schema_of())
    yield made
    made.close()


def exact(recipe: Any, parts: dict[int, Any], row: int) -> Any:
    """The true result in one group; None is NULL."""
    if isinstance(recipe, Known):
        value = recipe.constant.value
        return float(value) if isinstance(value, F) else value
    if isinstance(recipe, KeyRead):
        return KEYS[row]
    if isinstance(recipe, Applied):
        return reference(recipe.op, [exact(x, parts, row) for x in recipe.operands])
    if isinstance(recipe, Ranked):
        ((by, falls),) = recipe.order
        values = [exact(by, parts, i) for i in range(len(KEYS))]
        if values[row] is None:
            return None
        sign = -1 if falls else 1
        above = [v for v in values if v is not None and sign * v < sign * values[row]]
        return 1 + (len(set(above)) if recipe.word == "DENSE_RANK" else len(above))
    value = float(truth(recipe, parts)[row])
    return value if np.isfinite(value) else None


def holds(true: Any, post: Any, row: int) -> bool:
    """Whether an interval holds the true result; where there is none it cannot fail to."""
    if true is None:
        return True
    slack = 1e-9 * (1 + abs(float(true)))
    return bool(post.lower[row] - slack <= float(true) <= post.upper[row] + slack)


@pytest.mark.parametrize("delta", [F(0), F(1, 1000)], ids=["pure", "approximate"])
def test_intervals_of_calculations_hold_what_they_say(bench, delta):
    """Large, small, single and empty groups; divisors near 0; ranks; either family of noise."""
    chosen = ", ".join(f"{text} AS o{i}" for i, text in enumerate(OUTPUTS))
    priced, answer = priced_and_exact(bench, f"SELECT g, {chosen} FROM people GROUP BY g", delta)
    parts = on_grid([(k,) for k in KEYS], answer, priced.plan.job.measurements)
    recipes = priced.plan.recipes
    true = [[exact(r, parts, i) for i in range(len(KEYS))] for r in recipes]
    hits = np.zeros((len(recipes), len(KEYS)), dtype=int)
    draws = [add_noise(priced, answer, 0.5).values for _ in range(DRAWS)]
    # Ranks are counted among the groups of one release; of all else a group is read by itself, and
    # those of all releases at once.
    ranked = {at for at, recipe in enumerate(recipes) if "Ranked(" in repr(recipe)}
    assert len(ranked) == 3
    whole = {place: np.concatenate([draw[place] for draw in draws]) for place in draws[0]}
    for values in (whole, *draws):
        measured = Measured(values, priced.noises, priced.trees)
        releases = DRAWS if values is whole else 1
        groups = len(KEYS) * releases
        calculated = Calculation(
            groups,
            [KEYS * releases],
            lambda r, each, m=measured: estimate(r, m, each),
            np.arange(groups),
        )
        for at, recipe in enumerate(recipes):
            if (at in ranked) == (values is not whole):
                post = calculated(recipe, CONFIDENCE)
                for row in range(groups):
                    group = row % len(KEYS)
                    hits[at, group] += holds(true[at][group], post, row)
    short = [(OUTPUTS[i], row) for i, row in enumerate(hits.tolist()) if min(row) < FEWEST]
    assert not short, short


def test_nothing_that_is_calculated_is_charged(tmp_path):
    """The same measurements, noise and price with and without, however often they are used."""
    with opened(tmp_path, {}) as session:
        plain = session.sql("SELECT g, COUNT(*) AS n, AVG(x) AS m FROM visits GROUP BY g")
        more = session.sql(
            "SELECT g, COUNT(*) AS n, AVG(x) AS m, n / 2 AS h, 100 * AVG(x) AS c, "
            "RANK() OVER (ORDER BY n) AS r, ROUND(m) AS w FROM visits GROUP BY g "
            "HAVING n > 10 AND AVG(x) < 900 ORDER BY n * m LIMIT 2 OFFSET 1"
        )
        told = []
        for question in (plain, more):
            plan, priced = question._plan, question._noise_plan(1, None)
            told.append((plan.job.measurements, plan.weights, priced.noises, priced.charge))
        assert told[0] == told[1]
