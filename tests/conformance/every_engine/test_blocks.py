"""Every engine reads the blocks that a job names, and nothing of any other shows."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pytest

from conformance.engines import by_group, expected
from conformance.plans import WIDE, rows
from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, OTHERS, BlockSet
from dither.plan.job import Job
from dither.plan.lowering.lower import lower
from dither.plan.relations import Derived, Filter, Relation, Scan, UnitAggregate, UnitJoin
from dither.plan.schema import Schema
from dither.sql import parse_query
from engines.hostile import LARGEST
from engines.reference import clean

KEY = b"sixteen bytes..."

CALENDARS = {
    "d": [Calendar(every=every) for every in ("day", "week", "month", "quarter", "year")],
    "t": [Calendar(every="month"), Calendar(edges=(dt.date(1970, 1, 1), dt.date(2000, 1, 1)))],
    "i": [Calendar(edges=(Fraction(0), Fraction(3), Fraction(50))), Calendar(values=(0, 1, 110))],
    "x": [Calendar(edges=(Fraction(0), Fraction(0.1), Fraction(1000)))],
    "w": [Calendar(values=("a", "b", ""))],
    "g": [Calendar(values=("a", "b", "NULL", "o'b"))],
}

ASKED = (
    "SELECT g, COUNT(*) AS n, COUNT(DISTINCT u) AS us, SUM(i) AS s FROM visits GROUP BY g",
    "SELECT COUNT(DISTINCT w) AS a, MEDIAN(x) AS m, SUM(x) AS s FROM visits",
    "SELECT COUNT(*) AS n FROM (SELECT u, SUM(i) AS s, MAX(h) AS h FROM visits GROUP BY u) t "
    "WHERE s > 3 OR h IS NULL",
    "SELECT COUNT(*) AS n, SUM(l.z) AS s FROM visits v JOIN labs l ON v.u = l.u",
)


def cut(column: str, calendar: Calendar) -> Schema:
    """The tables, with one of them in blocks."""
    visits = replace(WIDE.table("visits"), block=(column, calendar))
    return replace(WIDE, tables={**WIDE.tables, "visits": visits})


def within(relation: Relation, blocks: BlockSet) -> Relation:
    """The same rows out of some blocks."""
    match relation:
        case Scan(table="visits"):
            return replace(relation, blocks=blocks)
        case Filter(source=below) | Derived(source=below) | UnitAggregate(source=below):
            return replace(relation, source=within(below, blocks))
        case UnitJoin(left=left, right=right):
            return replace(relation, left=within(left, blocks), right=within(right, blocks))
    return relation


def drawn(rng: random.Random, calendar: Calendar, held: set) -> BlockSet:
    """Some of the blocks that rows lie in, and some in which none does."""
    found = BlockSet()
    for block in held:
        if rng.random() < 0.4:
            one = {block} if isinstance(block, str) else set()
            ranges = () if one else ((block, block + rng.choice([0, 0, 3])),)
            found |= BlockSet(ranges, frozenset(one))
    if calendar.values is None and rng.random() < 0.3:
        found |= BlockSet.of_range(None, min(b for b in held if b not in (NULL, OTHERS)))
    return found


def planted(rng: random.Random, row: dict) -> dict:
    """A row of another block, with whatever could show: overflow, no number, no text, nobody."""
    odd = {
        "u": rng.choice([None, 1, LARGEST]),
        "i": rng.choice([LARGEST, -LARGEST - 1, None]),
        "h": rng.choice([LARGEST, None]),
        "x": rng.choice([float("inf"), float("nan"), -1e308, None]),
        "y": rng.choice([float("nan"), 1e308]),
        "w": rng.choice(["1e999", "\x01", "x" * 3000, None]),
        "g": rng.choice(["?", None]),
        "e": None,
        "b": None,
    }
    return row | odd


@pytest.mark.parametrize("column", CALENDARS)
def test_nothing_of_another_block_shows(engine, column: str) -> None:
    """The reference's integers over random blocks; the same with anything at all in the others."""
    rng = random.Random(f"blocks of {column}")
    tables = engine.holds(rows())
    for number in range(engine.examples(10)):
        calendar = rng.choice(CALENDARS[column])
        schema = cut(column, calendar)
        facts = schema.table("visits").column(column)

        def block(row: dict, calendar=calendar, facts=facts) -> int | str:
            return calendar.block_of(clean(row[column], facts))

        read = drawn(rng, calendar, {block(row) for row in tables["visits"]})
        plan = lower(parse_query(ASKED[number % len(ASKED)], schema), schema)
        job: Job = replace(plan.job, relation=within(plan.query.relation, read))
        right = expected(job, schema, tables)
        assert by_group(engine.run(job, schema, tables, KEY)) == right
        others = [
            planted(rng, row) | {column: row[column]}
            for row in tables["visits"]
            if block(row) not in read
            for _ in range(rng.choice([0, 1, 2]))
        ]
        own = [row for row in tables["visits"] if block(row) in read]
        mixed = engine.holds(tables | {"visits": [*own, *others]})
        assert by_group(engine.run(job, schema, mixed, KEY)) == right


BY_BLOCK = (
    "SELECT DATE_TRUNC('{part}', {column}) AS k, g, COUNT(*) AS n, COUNT(DISTINCT u) AS us, "
    "SUM(i) AS s, COUNT(DISTINCT w) AS ws, MEDIAN(i) AS m FROM visits GROUP BY 1, 2"
)


@pytest.mark.parametrize("part", ["month", "week"])
def test_blocks_in_parallel_are_limited_each_by_itself(engine, part: str) -> None:
    """With one group of a unit in each block, every integer of a block is that of its rows alone.

    The hash decides which group that is, so the same question is asked of each block by itself,
    under one key: what it gives there is what it gives beside all others.
    """
    held = dict(rows())
    held["visits"] = [
        row | {"d": dt.date(2023, 12, 20) + dt.timedelta(days=(7 * i + 31 * turn) % 90)}
        for turn in range(3)
        for i, row in enumerate(held["visits"])
    ]
    tables = engine.holds(held)
    calendar = Calendar(every=part)
    facts = WIDE.table("visits").column("d")
    lower_end, upper_end = dt.date(2023, 12, 1), dt.date(2024, 3, 31)
    day = replace(facts, lower=lower_end, upper=upper_end)
    visits = WIDE.table("visits")
    visits = replace(visits, columns={**visits.columns, "d": day}, block=("d", calendar))
    schema = replace(WIDE, tables={**WIDE.tables, "visits": visits})
    text = BY_BLOCK.format(part=part, column="d") + " OPTIONS (max_groups_contributed = 1)"
    plan = lower(parse_query(text, schema), schema)
    assert plan.blocks is not None
    assert plan.blocks.parallel
    assert plan.job.max_groups == 1
    whole = by_group(engine.run(plan.job, schema, tables, KEY))
    units: Counter[object] = Counter()
    for (block, _), integers in whole.items():
        units[block] += integers[1]
    starts = [_starts(calendar, clean(row["d"], day)) for row in tables["visits"]]
    blocks = plan.job.keys[0].values or ()
    tried = blocks[1:3]
    for block in blocks:
        own = [row for row, at in zip(tables["visits"], starts, strict=True) if at == block]
        # Everybody who is there counts, in each block, and once.
        assert units[block] == len({row["u"] for row in own if _counts(row)})
        if block in tried:
            alone = by_group(engine.run(plan.job, schema, tables | {"visits": own}, KEY))
            here = {key: found for key, found in whole.items() if key[0] == block}
            assert {key: found for key, found in alone.items() if key[0] == block} == here
    assert len([block for block in units if units[block]]) > 1


def _counts(row: dict) -> bool:
    """Whether a row is somebody's, and in a group of those that are listed."""
    facts = WIDE.table("visits").column("g")
    return row["u"] is not None and (facts.values is None or clean(row["g"], facts) in facts.values)


def _starts(calendar: Calendar, value: dt.date | None) -> object:
    found = None if value is None else calendar.block_of(value)
    return calendar.first(found) if isinstance(found, int) else None
