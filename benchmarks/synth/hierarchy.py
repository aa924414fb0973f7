"""Counts of 3 levels that add up, and ranges of 1,024 values: time, memory and error.

    python -m benchmarks.synth.hierarchy

There is no peer that installs from a package index and makes counts of levels that add up, so the
first table stands by itself; the second has the histogram and the binary tree beside it.
"""

from __future__ import annotations

import resource
import tempfile
import time
from fractions import Fraction

import numpy as np
import polars as pl

import dither as dt
from dither.synth.ranges._tree import RangeTree

STATES, COUNTIES, AGES, PEOPLE = 50, 3_000, 100, 1_000_000


def hierarchy() -> None:
    """3,000 counties in 50 states by 200 cells, from a million rows to counts that add up."""
    rng = np.random.default_rng(1)
    places = pl.DataFrame(
        {
            "country": ["land"] * COUNTIES,
            "state": [f"s{i % STATES:02d}" for i in range(COUNTIES)],
            "county": [f"c{i:04d}" for i in range(COUNTIES)],
        }
    )
    lives = rng.choice(COUNTIES, PEOPLE, p=rng.dirichlet(np.full(COUNTIES, 0.7)))
    people = pl.DataFrame(
        {
            "county": places["county"].gather(lives),
            "age": np.clip(rng.gamma(4.2, 9.5, PEOPLE), 0, AGES - 1).astype(np.int64),
            "sex": rng.choice(["f", "m"], PEOPLE),
        }
    )
    columns = {
        "age": {"bounds": [0, AGES - 1], "nullable": False},
        "sex": {"values": ["f", "m"], "nullable": False},
    }
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "budget": {"epsilon": 10, "delta": "1e-6", "ledger": f"{folder}/p.ledger"},
            "tables": {
                "people": {"columns": columns},
                "places": {"public": True, "unique": ["county"]},
            },
        }
        with dt.open(policy, sources={"people": people, "places": places}) as session:
            start = time.perf_counter()
            asked = session.table("people").hierarchy(
                ["country", "state", "county"], ["age", "sex"], epsilon=1, cells=AGES
            )
            planned = time.perf_counter()
            found = asked.release()
            released = time.perf_counter()
            frames = {level: found.frame(level) for level in found.levels}
            shown = time.perf_counter()
    cells = ["age", "sex"]
    for above, below in (("country", "state"), ("state", "county")):
        keys = [*frames[above].columns[: found.levels.index(above) + 1], *cells]
        summed = frames[below].group_by(keys).agg(pl.col("count").sum())
        joined = frames[above].join(summed, on=keys)
        assert joined.height == frames[above].height
        assert (joined["count"] == joined["count_right"]).all()
    assert all((frame["count"] >= 0).all() for frame in frames.values())
    truth = people.group_by("county", *cells).len()
    print(f"{COUNTIES:,} places of 3 levels x {AGES * 2} cells, {PEOPLE:,} rows, epsilon 1")
    print(f"  plan       {planned - start:6.2f} s")
    print(f"  release    {released - planned:6.2f} s")
    print(f"  frames     {shown - released:6.2f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  peak       {peak:6.0f} MB")
    print(f"  adds up to the unit at every level; {len(truth):,} cells of counties hold somebody")


def ranges() -> None:
    """All ranges of 1,024 values: root mean squared errors at a budget of 1, by formula."""
    print("all ranges of 1,024 values: root mean squared error at epsilon 1, or in deviations")
    for name, layout in (("flat", (1024,)), ("binary, even", (2,) * 10), ("chosen", None)):
        row = []
        for family in ("laplace", "gaussian"):
            if layout is None:
                tree = RangeTree.choose(1024, family)
            else:
                each = (Fraction(1, len(layout)),) * len(layout)
                tree = RangeTree(1024, layout, each, family)
            row.append(f"{family} {tree.error:6.2f}")
        print(f"  {name:14}{'   '.join(row)}")


if __name__ == "__main__":
    ranges()
    hierarchy()
