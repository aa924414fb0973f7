"""An adaptive game against budgets of blocks, played through: what its transcript tells of anyone.

The analyst chooses each question by the answers before it. Each answer is epsilon-DP for one
person's rows in the blocks that it was charged for, and does not depend on any other row: that is
held here on the exact integers. So the whole transcript tells of somebody with rows in blocks B at
most the sum of the epsilons of those questions whose blocks meet B, and that must stay within
min(m r, R), m blocks of r each and R in all, for every B.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain, combinations

import polars as pl
import pytest

import dither
from dither.blocks._calendar import Calendar
from dither.errors import BudgetError

MONTHS = [dt.date(2024, month, 1) for month in range(1, 6)]
BLOCK = Calendar(every="month").block_of
EACH, LIFETIME = Fraction(1, 2), Fraction(6, 5)
PERSON = 7


def visits(without: int | None = None) -> pl.DataFrame:
    """Everybody's visits; of one person all but those of one month, where it is named."""
    made = [
        {"patient": p, "day": month + dt.timedelta(days=(3 * p) % 28), "cost": (p + i) % 10}
        for i, month in enumerate(MONTHS)
        for p in range(12)
        for _ in range(1 + (p == PERSON))
        if not (p == PERSON and i == without)
    ]
    return pl.DataFrame(made)


def policy(folder, name: str) -> dict:
    return {
        "budget": {
            "epsilon": float(EACH),
            "per": "block",
            "lifetime": {"epsilon": float(LIFETIME)},
            "ledger": str(folder / name),
        },
        "tables": {
            "visits": {
                "unit": "patient",
                "max_groups": 3,
                "max_rows": 4,
                "block": {"column": "day", "every": "month"},
                "columns": {"cost": {"bounds": [0, 9]}},
            }
        },
    }


def conditions(rng: random.Random) -> str:
    """Some months, in one of the ways that they can be asked for."""
    first, last = sorted(rng.sample(range(len(MONTHS)), 2))
    return rng.choice(
        [
            f"day >= '{MONTHS[first]}' AND day < '{MONTHS[last]}'",
            f"DATE_TRUNC('month', day) IN ('{MONTHS[first]}', '{MONTHS[last]}')",
            f"YEAR(day) = 2024 AND MONTH(day) = {first + 1}",
            f"NOT (day < '{MONTHS[first]}' OR day >= '{MONTHS[last]}') AND cost > 2",
            f"day = '{MONTHS[first] + dt.timedelta(days=21)}'",
        ]
    )


def subsets(blocks: list[int]) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(blocks, n) for n in range(1, len(blocks) + 1))


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 2, 3))])
def test_a_transcript_tells_no_more_than_is_promised(tmp_path, seed: int) -> None:
    rng = random.Random(seed)
    sources = {None: visits(), **{i: visits(i) for i in range(len(MONTHS))}}
    sessions = {
        without: dither.open(policy(tmp_path, f"{without}.ledger"), sources={"visits": frame})
        for without, frame in sources.items()
    }
    session = sessions[None]
    refused, told = 0, 0
    try:
        for _ in range(16):
            where = conditions(rng)
            text = f"SELECT COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE {where}"
            # What is asked for next follows from what was answered.
            epsilon = Fraction(1 + told % 3, 10)
            question = session.sql(text)
            try:
                found = question.release(epsilon)
            except BudgetError:
                refused += 1
                continue
            told += round(found.frame["n"][0])
            plan = question._plan
            read = plan.blocks
            exact = [
                {k: list(v) for k, v in _exact(one, plan).items()} for one in sessions.values()
            ]
            for month, other in zip(MONTHS, exact[1:], strict=True):
                # One person's month that was not charged moves no integer.
                assert BLOCK(month) in read or other == exact[0]
        entries = [e for e in session.ledger.entries() if e.kind == "charge"]
        for blocks in subsets([BLOCK(month) for month in MONTHS]):
            lost = sum(
                (e.charge.epsilon for e in entries if any(b in e.blocks for b in blocks)),
                Fraction(0),
            )
            assert lost <= min(len(blocks) * EACH, LIFETIME)
        assert refused
        assert session.ledger.verify().ok
    finally:
        for one in sessions.values():
            one.close()


def _exact(session, plan) -> dict:
    """What the engine hands over, which nobody but this test may see without noise."""
    return dict(session._engine.run(plan.job, plan.schema, b"one key for all.").values)
