"""Modes: the law of what is chosen, on every small table and its neighbours, against the charge.

The law is computed from the engine's integers by the formula of the exponential mechanism, with 60
digits, and the draws are held against it. So the loss is what a release has, whatever the plan says
of sensitivities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction as F
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from dither.mechanisms import Exponential
from dither.plan import job as jb
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.query._noise import NoisePlan, add_noise, on_grid, plan_noise
from engines.hostile import Bench
from soundness.tables import planned

KEYS, VALUES = ("a", "b"), ("x", "y", "z")
QUESTIONS = (
    "SELECT MODE(v) AS m FROM t",
    "SELECT g, MODE(v) AS m FROM t GROUP BY g",
    "SELECT g, MODE(v) AS m, MODE(v = 'x') AS n FROM t GROUP BY g",
)


def schema_of(*, unit: bool, groups: int, rows: int, replaced: bool) -> Schema:
    """One table of units or people, with a key and a value."""
    facts = [
        ColumnFacts("u", Kind.INTEGER),
        ColumnFacts("g", Kind.TEXT, values=KEYS),
        ColumnFacts("v", Kind.TEXT, values=VALUES),
    ]
    limits = {"unit": "u", "max_groups": groups, "max_rows": rows} if unit else {}
    columns = {f.name: f for f in facts}
    return Schema({"t": Table("t", columns, **limits)}, replace_one=replaced)  # type: ignore[arg-type]


def tables(*, unit: bool) -> list[tuple[tuple[str, str], ...]]:
    """What one unit can bring: up to three rows, or one where a row is a person."""
    cells = list(product(KEYS, VALUES[:2]))
    sizes = range(4) if unit else range(2)
    return [rows for n in sizes for rows in combinations_with_replacement(cells, n)]


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    """One engine for all tables."""
    made = Bench(schema_of(unit=True, groups=1, rows=1, replaced=False))
    yield made
    made.close()


def counts(bench: Bench, priced: NoisePlan, rows: list[dict[str, Any]]) -> list[list[list[int]]]:
    """By mode and public group: the votes for each candidate."""
    job = priced.plan.job
    answer = bench.run(job, priced.plan.schema, {"t": rows})
    keys = list(product(*(key.values or () for key in job.keys)))
    grid = on_grid(keys, answer, job.measurements)
    return [
        grid[i].tolist() for i, m in enumerate(job.measurements) if isinstance(m, jb.VoteHistogram)
    ]


def chances(votes: list[int], rate: F) -> list[Decimal]:
    """The law of one choice: in proportion to exp(rate * votes)."""
    most = max(votes)
    exponents = [rate * (v - most) for v in votes]
    weights = [(Decimal(e.numerator) / Decimal(e.denominator)).exp() for e in exponents]
    return [w / sum(weights) for w in weights]


def worst(one: list[list[list[int]]], other: list[list[list[int]]], rates: list[F]) -> Decimal:
    """The largest logarithm of a ratio of probabilities of what two tables release.

    Choices are independent given the table, so that the worst of all is the sum of the worst.
    """
    total = Decimal(0)
    for mine, theirs, rate in zip(one, other, rates, strict=True):
        for votes, others in zip(mine, theirs, strict=True):
            pairs = zip(chances(votes, rate), chances(others, rate), strict=True)
            total += max((p / q).ln() for p, q in pairs)
    return total


def realised(bench: Bench, priced: NoisePlan, *, unit: bool, replaced: bool) -> Decimal:
    """The largest loss over all tables of one unit beside another's rows, and their neighbours."""
    rates = [priced.choices[i].rate for i in sorted(priced.choices)]
    # Where most rows have another value, a choice of the unit's own is as rare as it can be.
    rest = [{"u": 2 + i, "g": KEYS[i % 2], "v": "y"} for i in range(400)]
    known = [
        counts(bench, priced, rest + [{"u": 1, "g": g, "v": v} for g, v in rows])
        for rows in tables(unit=unit)
    ]
    with localcontext() as context:
        context.prec = 60
        absent = known[0]
        pairs = [(a, b) for a in known for b in known] if replaced else []
        pairs = pairs or [p for a in known for p in ((a, absent), (absent, a))]
        unique = {(str(a), str(b)): (a, b) for a, b in pairs}
        return max(worst(a, b, rates) for a, b in unique.values())


CASES = [
    (sql, *limits, replaced)
    for sql, limits in (
        (QUESTIONS[0], (True, 2, 3)),
        (QUESTIONS[0], (False, 1, 1)),
        (QUESTIONS[1], (True, 1, 2)),
        (QUESTIONS[1], (True, 2, 1)),
        (QUESTIONS[2], (True, 2, 1)),
    )
    for replaced in (False, True)
]


@pytest.mark.parametrize(("sql", "unit", "groups", "rows", "replaced"), CASES)
def test_what_is_chosen_loses_what_is_charged(bench, sql, unit, groups, rows, replaced):
    """No ratio of probabilities is beyond exp(epsilon), and one comes near to it."""
    schema = schema_of(unit=unit, groups=groups, rows=rows, replaced=replaced)
    priced = plan_noise(planned(sql, schema), F(1), F(0))
    assert priced.charge.epsilon == 1
    found = realised(bench, priced, unit=unit, replaced=replaced)
    assert found <= 1 + Decimal("1e-40")
    assert found > Decimal("0.9")


@pytest.mark.parametrize("replaced", [False, True])
def test_half_of_the_sensitivity_is_seen(bench, replaced):
    """The planted mistake: a rate for votes that move by half as much."""
    sql, unit = QUESTIONS[1], True
    schema = schema_of(unit=unit, groups=1, rows=3, replaced=replaced)
    plan = planned(sql, schema)
    halved = replace(
        plan,
        sensitivities=tuple(
            replace(s, l1=s.l1 / 2, l2_squared=s.l2_squared / 4) for s in plan.sensitivities
        ),
    )
    found = [
        realised(bench, plan_noise(p, F(1), F(0)), unit=unit, replaced=replaced)
        for p in (plan, halved)
    ]
    assert found[0] <= 1 + Decimal("1e-40") < found[1]


@pytest.mark.parametrize("delta", [F(0), F(1, 10**5)])
def test_many_groups_lose_what_the_ledger_is_told(delta):
    """rho is that of ranges, in both currencies, whichever noise the counts beside it take."""
    schema = schema_of(unit=True, groups=2, rows=4, replaced=True)
    priced = plan_noise(planned(f"{QUESTIONS[1]}".replace("AS m", "AS m, COUNT(*) AS n"), schema),
                        F(1), delta)  # fmt: skip
    (place,) = priced.choices
    claim, rate = priced.plan.sensitivities[place], priced.choices[place].rate
    assert priced.allocation is not None
    share = priced.allocation[str(place)]
    assert rate**2 * claim.l2_squared / 8 <= share.charge.rho
    own = share.loss(neighbours="replace")
    assert own.charge.rho == rate**2 * claim.l2_squared / 8
    assert own.charge.epsilon == rate * claim.l1
    # Four rows of either side move a vote by 4 parts each, in two groups of range 8.
    parts = priced.plan.job.measurements[place].parts
    assert (claim.l1, claim.l2_squared) == (16 * parts, 2 * (8 * parts) ** 2)
    assert priced.charge.delta <= delta


def test_the_draws_have_the_law(bench):
    """1,000 choices in each group against the formula: a chi-square below its 1 - 1e-9 point."""
    from scipy.stats import chi2

    schema = schema_of(unit=True, groups=2, rows=3, replaced=False)
    priced = plan_noise(planned(QUESTIONS[1], schema), F(4), F(0))
    rows = [{"u": i, "g": "a" if i % 3 else "b", "v": VALUES[i % 4 % 3]} for i in range(9)]
    answer = bench.run(priced.plan.job, schema, {"t": rows})
    votes = counts(bench, priced, rows)[0]
    (place,) = priced.choices
    found: list[Counter[int]] = [Counter(), Counter()]
    for _ in range(1000):
        for at, choice in enumerate(add_noise(priced, answer, 0.95).values[place].tolist()):
            found[at][choice] += 1
    for counted, cast in zip(found, votes, strict=True):
        law = [1000 * float(c) for c in chances(cast, priced.choices[place].rate)]
        statistic = sum((counted[i] - n) ** 2 / n for i, n in enumerate(law))
        assert statistic < chi2.ppf(1 - 1e-9, len(law) - 1)


def test_nothing_but_the_choice_leaves(bench):
    """What the noise hands on of votes is one place for each group."""
    schema = schema_of(unit=True, groups=2, rows=3, replaced=False)
    priced = plan_noise(planned(QUESTIONS[1], schema), F(1), F(0))
    answer = bench.run(priced.plan.job, schema, {"t": []})
    noisy = add_noise(priced, answer, 0.95)
    (place,) = priced.choices
    assert isinstance(priced.choices[place], Exponential)
    assert priced.noises[place] is None
    assert noisy.values[place].shape == (2,)
    assert set(noisy.values[place].tolist()) <= {0, 1, 2}
