"""Tables that soundness tests ask about: hostile values, neighbours, and how far answers lie apart.

Rows are drawn by a seeded ``random.Random``: they are the data of a test, no noise.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from dither.plan import aggregates as ag
from dither.plan.answers import CellsInUse, ExactAnswer, Histogram
from dither.plan.job import Job, Units, VoteHistogram
from dither.plan.lowering.lower import Plan, lower
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.sql import parse_query
from engines.hostile import DOCTORS, LARGEST

F = Fraction

WARDS = Table(
    "wards",
    {
        "place": ColumnFacts("place", Kind.INTEGER),
        "kind": ColumnFacts("kind", Kind.TEXT, values=("a", "b")),
        "beds": ColumnFacts("beds", Kind.INTEGER, F(0), F(9)),
    },
    private=False,
    unique=frozenset({("kind", "place")}),
)
"""In public, and of which no place nor kind is alone."""

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]

MEASURED = (
    ColumnFacts("g", Kind.TEXT, values=("a", "b", "c", "é")),
    ColumnFacts("w", Kind.TEXT),
    ColumnFacts("n", Kind.INTEGER),
    ColumnFacts("i", Kind.INTEGER, F(0), F(110)),
    ColumnFacts("j", Kind.INTEGER, F(-(2**40)), F(2**41)),
    ColumnFacts("x", Kind.REAL, F(-10), F(1000), F(1, 100)),
    ColumnFacts("y", Kind.REAL, F(-1), F(1)),
    ColumnFacts("r", Kind.REAL),
    ColumnFacts("z", Kind.REAL, F(1), F(5), F(1, 10), nullable=False),
    ColumnFacts("b", Kind.BOOLEAN),
    ColumnFacts("d", Kind.DATE),
    ColumnFacts("e", Kind.DATE, dt.date(2019, 12, 30), dt.date(2020, 2, 2)),
    ColumnFacts("t", Kind.TIMESTAMP),
)


def schema_of(
    *,
    max_groups: int = 2,
    max_rows: int = 3,
    max_join_rows: int = 2,
    replace_one: bool = False,
    unit_kind: Kind = Kind.INTEGER,
) -> Schema:
    """``visits`` and ``labs`` of units ``u``, ``people`` of rows, ``doctors`` in public."""
    columns = {c.name: c for c in MEASURED}
    unit = {"u": ColumnFacts("u", unit_kind)}
    visits = Table(
        "visits",
        unit | columns,
        unit="u",
        unit_name="person",
        max_groups=max_groups,
        max_rows=max_rows,
        max_join_rows=max_join_rows,
    )
    labs = Table(
        "labs",
        unit | {"v": ColumnFacts("v", Kind.INTEGER, F(-5), F(5))},
        unit="u",
        unit_name="person",
        max_groups=max_groups,
        max_rows=max_rows,
        max_join_rows=max_join_rows,
    )
    people = Table("people", columns)
    tables = {t.name: t for t in (visits, labs, people, DOCTORS, WARDS)}
    return Schema(tables, replace_one=replace_one)


# --- hostile values ---------------------------------------------------------------------------

_NAN, _INF = float("nan"), float("inf")
HOSTILE: Mapping[str, Sequence[Any]] = {
    "g": ("a", "b", "c", "é", "e\u0301", "A", "", "a ", "ab", None),
    "w": ("", " ", "a", "A", "\x00", "a\x00", "ß", "SS", "İ", "😀", "'; --", "x" * 5000, "1", None),
    "n": (0, 1, -1, 7, LARGEST, -LARGEST - 1, 2**53 + 1, 2**31, None),
    "i": (0, 110, 1, 55, -1, 111, LARGEST, -LARGEST - 1, None),
    "j": (0, 2**41, -(2**40), LARGEST, -LARGEST - 1, 1, None),
    "x": (-10.0, 1000.0, 0.0, -0.0, 0.005, 5e-324, 1e308, -1e308, _NAN, _INF, -_INF, 999.995, None),
    "y": (-1.0, 1.0, 0.0, -0.0, 5e-324, -5e-324, 1e-320, 1e308, _NAN, _INF, -_INF, 0.5, None),
    "r": (0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, _NAN, _INF, -_INF, 1.0, -1.0, None),
    "z": (1.0, 5.0, 3.0, -7.0, 1e308, _NAN, _INF, -_INF, None),
    "b": (True, False, None),
    "d": (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2020, 2, 29), dt.date(1970, 1, 1), None),
    "e": (dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2020, 1, 1), dt.date(2020, 2, 2), None),
    "t": (
        dt.datetime(1, 1, 1),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2020, 2, 29, 12),
        dt.datetime(1969, 12, 31, 23, 59, 59),
        None,
    ),
    "v": (-5, 5, 0, LARGEST, -LARGEST - 1, None),
    "u": (0, 1, 2, 3, LARGEST, -LARGEST - 1),
}
DOCTOR_ROWS: list[Row] = [
    {"code": 0, "label": "x", "weight": 5.0},
    {"code": 1, "label": "y", "weight": 0.5},
    {"code": 55, "label": "?", "weight": _NAN},
    {"code": LARGEST, "label": "x", "weight": _INF},
    {"code": None, "label": "y", "weight": 1.0},
]


WARD_ROWS: list[Row] = [
    {"place": place, "kind": kind, "beds": 9 - number}
    for number, (place, kind) in enumerate(product((0, 110, 1, None), ("a", "b", None)))
]
PUBLIC: Mapping[str, list[Row]] = {"doctors": DOCTOR_ROWS, "wards": WARD_ROWS}


def drawn_row(table: str, unit: int | None, source: random.Random) -> Row:
    """One row of hostile values: half the time each column is one of its first two, the extremes
    or the commonest keys."""
    names = ["v"] if table == "labs" else [c.name for c in MEASURED]
    row = {
        name: HOSTILE[name][source.randrange(2)]
        if source.random() < 0.5
        else source.choice(HOSTILE[name])
        for name in names
    }
    return row if table == "people" else {"u": unit, **row}


@dataclass(frozen=True)
class Pair:
    """Two neighbouring databases."""

    first: Rows
    second: Rows


TARGET = 77
"""The unit in which two neighbours differ."""


def drawn_pair(seed: int, *, replace_one: bool, most: int) -> Pair:
    """Neighbours that differ in unit ``TARGET`` of visits and labs, and in one row of people.

    ``most``: up to so many rows of that unit, in each table. The rows of both are shuffled, so that
    an answer that follows their order differs.
    """
    source = random.Random(seed)
    others: dict[str, list[Row]] = {}
    for table in ("visits", "labs"):
        units = (*HOSTILE["u"], None)
        others[table] = [
            drawn_row(table, source.choice(units), source) for _ in range(source.randrange(25))
        ]
    others["people"] = [drawn_row("people", None, source) for _ in range(source.randrange(10))]

    def version(present: bool) -> dict[str, list[Row]]:
        made: dict[str, list[Row]] = dict(PUBLIC)
        for table, rows in others.items():
            count = 1 if table == "people" else 1 + source.randrange(most)
            # Rows of one unit are often alike, so that they meet in one group at one extreme.
            few = [drawn_row(table, TARGET, source) for _ in range(min(count, 40))]
            own = few + [source.choice(few) for _ in range(count - len(few))]
            made[table] = [*rows, *(own if present else [])]
            source.shuffle(made[table])
        return made

    return Pair(version(True), version(replace_one))


# --- plans and their answers ------------------------------------------------------------------


def planned(sql: str, schema: Schema, *, discover: bool = False) -> Plan:
    """SQL as a plan; with ``discover``, its keys are discovered even where they are public."""
    query = parse_query(sql, schema)
    return lower(replace(query, discover=True) if discover else query, schema)


def planned_once(sql: str, schema: Schema) -> Plan:
    """The same with units that count once, and the products of all that it sums."""
    query = parse_query(sql, schema)
    summed = [o.aggregate.operand for o in query.outputs if isinstance(o.aggregate, ag.Sum)]
    pairs = [(a, b) for i, a in enumerate(summed) for b in summed[i:]]
    products = [ag.Output(f"p{i}", ag.UnitProduct(*pair)) for i, pair in enumerate(pairs)]
    return lower(ag.QueryOfUnits(query.relation, query.keys, (*query.outputs, *products)), schema)


def planned_ranks(sql: str, bins: int, schema: Schema, *, once: bool) -> Plan:
    """What the one sum of a query is of, as numbers of rows, or of units, below edges."""
    query = parse_query(sql, schema)
    (summed,) = (o.aggregate.operand for o in query.outputs if isinstance(o.aggregate, ag.Sum))
    kind = ag.QueryOfUnits if once else ag.Query
    return lower(kind(query.relation, (), (ag.Output("below", ag.Ranks(summed, bins)),)), schema)


# --- distance ---------------------------------------------------------------------------------


def moved(job: Job, first: ExactAnswer, second: ExactAnswer) -> list[tuple[int, int]]:
    """By measurement: the L1 distance of two answers, and the square of the L2 distance.

    A group that is absent counts as zero. Of votes it is the distance of ranges: in a group, how
    far the largest change lies above the smallest.
    """
    found = []
    for place, measurement in enumerate(job.measurements):
        ones, others = (_cells(a, place) for a in (first, second))
        changes = {cell: ones.get(cell, 0) - others.get(cell, 0) for cell in {*ones, *others}}
        gaps = list(changes.values())
        if isinstance(measurement, VoteHistogram):
            ranges: dict[Any, list[int]] = {}
            for (key, _), gap in changes.items():
                ranges.setdefault(key, [0]).append(gap)
            gaps = [max(several) - min(several) for several in ranges.values()]
        found.append((sum(map(abs, gaps)), sum(gap * gap for gap in gaps)))
    return found


def _cells(answer: ExactAnswer, place: int) -> dict[Any, int]:
    """By group and leaf: the integers of one measurement, those that are not 0 among them."""
    assert len(set(answer.keys)) == len(answer.keys), "a group is told twice"
    values = answer.values[place]
    if isinstance(values, CellsInUse):
        assert len({cell for cell, _ in values.tolist()}) == len(values.counts)
        return {((), cell): count for cell, count in values.tolist()}
    if isinstance(values, Histogram):
        groups, leaves = np.divmod(values.places, values.bins)
        cells = zip(groups.tolist(), leaves.tolist(), values.counts.tolist(), strict=True)
        return {(answer.keys[group], leaf): count for group, leaf, count in cells}
    return {(key, 0): int(v) for key, v in zip(answer.keys, values.tolist(), strict=True)}


def summed(plan: Plan, answer: ExactAnswer) -> ExactAnswer:
    """The sums of a table over each of the sets of keys that are to add up."""
    groups: dict[Any, dict[int, int]] = {}
    for row, key in enumerate(answer.keys):
        for at, one in enumerate(plan.query.sets):
            group = (*(v if i in one else None for i, v in enumerate(key)), at)
            sums = groups.setdefault(group, dict.fromkeys(answer.values, 0))
            for place, values in answer.values.items():
                sums[place] += int(values[row])
    values = {
        place: np.array([sums[place] for sums in groups.values()], dtype=object)
        for place in answer.values
    }
    return ExactAnswer(list(groups), values)


def violations(plan: Plan, first: ExactAnswer, second: ExactAnswer) -> list[str]:
    """Where two neighbours' answers differ by more than the plan claims; empty if nowhere.

    What reads blocks in parallel claims it of each of them.
    """
    key = plan.job.block_key
    if key is not None:
        blocks = {group[key] for group in (*first.keys, *second.keys)}
        return [
            f"{block}: {one}"
            for block in blocks
            for one in _violations(plan, *(_of_block(a, key, block) for a in (first, second)))
        ]
    return _violations(plan, first, second)


def _of_block(answer: ExactAnswer, place: int, block: Any) -> ExactAnswer:
    """The groups of one block alone."""
    rows = [i for i, group in enumerate(answer.keys) if group[place] == block]

    def part(values: Any) -> Any:
        if not isinstance(values, Histogram):
            return values[rows]
        groups, leaves = np.divmod(values.places, values.bins)
        kept = np.isin(groups, rows)
        at = np.searchsorted(rows, groups[kept])
        places = at * values.bins + leaves[kept]
        return replace(values, groups=len(rows), places=places, counts=values.counts[kept])

    return ExactAnswer(
        [answer.keys[i] for i in rows], {p: part(v) for p, v in answer.values.items()}
    )


def _violations(plan: Plan, first: ExactAnswer, second: ExactAnswer) -> list[str]:
    found = []
    # What is claimed is of a row, where no column says whose the rows of a unit are.
    several = plan.unit_rows
    levels = [(one if plan.levels is None else summed(plan, one)) for one in (first, second)]
    distances = moved(plan.job, *levels)
    for place, (l1, l2_squared) in enumerate(distances):
        claim = plan.sensitivities[place]
        name = type(plan.job.measurements[place]).__name__
        free = plan.weights[place] == 0
        if l1 > (0 if free else several * claim.l1):
            found.append(f"{name}: L1 {l1} > {claim.l1}")
        if l2_squared > (0 if free else several**2 * claim.l2_squared):
            found.append(f"{name}: L2² {l2_squared} > {claim.l2_squared}")
    # Keys that are public all appear in a release: one is new where somebody counts in it.
    listed = all(key.values is not None for key in plan.job.keys)
    for here, there in ((first, second), (second, first)):
        fresh = set(here.keys) - set(there.keys)
        if listed:
            places = range(len(plan.job.measurements))
            fresh &= {key for p in places for (key, _), n in _cells(here, p).items() if n}
        if len(fresh) > several * plan.job.max_groups:
            found.append(f"{len(fresh)} new groups > {plan.job.max_groups}")
        for place, measurement in enumerate(plan.job.measurements):
            if isinstance(measurement, Units) and plan.job.unit is not None:
                counts = _cells(here, place)
                if any(counts[key, 0] != 1 for key in fresh):
                    found.append("a new group does not have one unit")
    return found
