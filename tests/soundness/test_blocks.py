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
from soundness.tables import violations

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
                "columns": {
                    "cost": {"bounds": [0, 9]},
                    "day": {"bounds": [MONTHS[0], MONTHS[-1] + dt.timedelta(days=27)]},
                },
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
            if rng.random() < 0.3:
                key = "DATE_TRUNC('month', day)"
                text = text.replace("SELECT", f"SELECT {key} AS m,") + f" GROUP BY {key}"
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
            lost = sum((_lost(e, blocks) for e in entries), Fraction(0))
            assert lost <= min(len(blocks) * EACH, LIFETIME)
        assert refused
        assert session.ledger.verify().ok
    finally:
        for one in sessions.values():
            one.close()


def _lost(entry, blocks: tuple[int, ...]) -> Fraction:
    """What a question tells of somebody with rows in some blocks: of steps, those that read one."""
    read = [block for block in blocks if block in entry.blocks]
    if entry.blocks.parallel:
        return len(read) * entry.charge.epsilon / len(entry.blocks)
    return entry.charge.epsilon if read else Fraction(0)


def _exact(session, plan) -> dict:
    """What the engine hands over, which nobody but this test may see without noise."""
    return dict(session._engine.run(plan.job, plan.schema, b"one key for all.").values)


PARALLEL = (
    "SELECT DATE_TRUNC('month', day) AS m, region, COUNT(*) AS n, SUM(cost) AS s, AVG(cost) AS a, "
    "COUNT(DISTINCT cost) AS d, COUNT(DISTINCT patient) AS p, MEDIAN(cost) AS q, MODE(cost) AS o, "
    "VARIANCE(cost) AS v FROM visits GROUP BY 1, 2",
    "SELECT m, COUNT(*) AS n, SUM(cost) AS s FROM (SELECT patient, cost, DATE_TRUNC('month', day) "
    "AS m FROM visits WHERE cost > 2) t GROUP BY m",
)


def person(rng: random.Random) -> list[dict]:
    """Rows of one patient in several months and regions, more in some than may count."""
    return [
        {
            "patient": PERSON,
            "day": month + dt.timedelta(days=rng.randrange(28)),
            "region": rng.choice("abcd"),
            "cost": rng.randrange(10),
        }
        for month in MONTHS
        for _ in range(rng.choice([0, 1, 4, 12]))
    ]


@pytest.mark.parametrize("replace_one", [False, True])
@pytest.mark.parametrize("sql", PARALLEL)
def test_each_block_moves_no_further_than_is_claimed_of_one(
    tmp_path, sql: str, *, replace_one: bool
) -> None:
    """Neighbours in any months: in each the integers move within the bounds of one, and in a month
    where neither has a row they do not move. What one plants in other months changes nothing."""
    rng = random.Random(f"{sql} {replace_one}")
    asked = policy(tmp_path, "l")
    asked["budget"]["neighbours"] = "replace_one" if replace_one else "add_remove"
    columns = asked["tables"]["visits"]["columns"]
    columns["region"] = {"values": list("abcd"), "nullable": False}
    columns["cost"] |= {"type": "integer"}
    others = [
        {"patient": p, "day": m + dt.timedelta(days=p), "region": "ab"[p % 2], "cost": p % 10}
        for p in range(6)
        for m in MONTHS
    ]
    moved_most = 0
    for _ in range(8):
        mine, yours = person(rng), person(rng) if replace_one else []
        frames = [pl.DataFrame([*others, *rows]) for rows in (mine, yours)]
        answers = []
        for frame in frames:
            with dither.open(asked, sources={"visits": frame}) as session:
                plan = session.sql(sql)._plan
                assert plan.blocks.parallel
                answers.append(session._engine.run(plan.job, plan.schema, b"one key for all."))
        assert violations(plan, *answers) == []
        place = plan.job.block_key
        touched = {row["day"].replace(day=1) for row in (*mine, *yours)}
        still = [
            {key: n for key, n in _counts(one).items() if key[place] not in touched}
            for one in answers
        ]
        assert still[0] == still[1]
        first, second = map(_counts, answers)
        moved_most = max(
            moved_most,
            *(
                sum(
                    abs(first.get(k, 0) - second.get(k, 0))
                    for k in {*first, *second}
                    if k[place] == m
                )
                for m in MONTHS
            ),
        )
    # The bound is met: groups and rows of a month are cut, and no other month's are.
    assert moved_most >= plan.job.max_groups * 3


def _counts(answer) -> dict:
    return {key: int(n) for key, n in zip(answer.keys, answer.values[0], strict=True)}
