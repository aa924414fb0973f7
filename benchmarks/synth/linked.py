"""Persons with histories: seconds and errors of linked tables, and of tables made independently.

Run with ``python -m benchmarks.synth.linked [--persons N] [--epsilon E] [--runs R]``. Simulated
persons have stays in hospital, more of them with age; the time to the next stay and its ward follow
from the ward before; each stay has treatments, whose number and kind follow from the ward. All of
it is released at one epsilon, delta = 1e-7, that protects a person with all of their rows: once the
two tables of persons and stays, once all three.

Beside it stands what an office does without: each table is synthesised by itself, at an equal share
of the same epsilon, and its rows get a parent at random. Errors are total variations between real
and synthetic: of how many rows a parent has, of that by age, of the days between two stays by ward,
and of what is joined: age by ward, ward by the ward before, kind of treatment by age and by ward.
"Drawn again" are as many other persons of the same simulation, without any noise.
"""

from __future__ import annotations

import argparse
import datetime as dt
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import dither

Tables = dict[str, pl.DataFrame]
FIRST, DAYS, AGES = dt.date(2024, 1, 1), 366, 9
MOST_STAYS, MOST_TREATMENTS = 6, 4
COUNTED = {"persons": 1, "stays": 4, "treatments": 8}
"""Rows of one person that count, by table."""
DELTA = "1e-7"


def simulated(persons: int, seed: int = 1) -> Tables:
    """The real tables."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 90, persons)
    people = pl.DataFrame({
        "person": np.arange(1, persons + 1),
        "sex": rng.choice(["f", "m"], persons),
        "age": age,
    })  # fmt: skip
    left = np.minimum(rng.poisson(0.3 + age / 45), MOST_STAYS)
    day, ward = rng.integers(0, 250, persons), rng.integers(0, 3, persons)
    at, parts = np.arange(persons), []
    for k in range(MOST_STAYS):
        stay = (left[at] > k) & (day[at] < DAYS)
        at = at[stay]
        parts.append((at, day[at], ward[at]))
        day[at] += 1 + rng.geometric(np.array([0.2, 0.06, 0.02])[ward[at]])
        moves = rng.random(len(at)) < 0.4
        ward[at] = np.where(moves, rng.integers(0, 3, len(at)), ward[at])
    who, when, where = (np.concatenate([p[i] for p in parts]) for i in range(3))
    order = np.lexsort((when, who))
    who, when, where = who[order], when[order], where[order]
    stays = pl.DataFrame({
        "person": who + 1,
        "stay": np.arange(1, len(who) + 1),
        "came": np.datetime64(FIRST) + when,
        "ward": np.array(["A", "B", "C"])[where],
    })  # fmt: skip
    many = np.minimum(rng.poisson(np.array([0.5, 1.0, 2.0])[where]), MOST_TREATMENTS)
    of = np.repeat(np.arange(len(who)), many)
    kind = (where[of] + (rng.random(len(of)) < 0.3) * rng.integers(0, 3, len(of))) % 4
    treatments = pl.DataFrame({
        "person": who[of] + 1,
        "stay": of + 1,
        "kind": np.array(["drug", "scan", "cut", "talk"])[kind],
    })  # fmt: skip
    return {"persons": people, "stays": stays, "treatments": treatments}


def opened(real: Tables, folder: Path) -> dither.Session:
    """A session over the three tables."""
    columns: dict[str, Any] = {
        "persons": {
            "sex": {"values": ["f", "m"], "nullable": False},
            "age": {"bounds": [0, 90], "nullable": False},
        },
        "stays": {
            "came": {"bounds": ["2024-01-01", "2024-12-31"], "nullable": False},
            "ward": {"values": ["A", "B", "C"], "nullable": False},
        },
        "treatments": {
            "kind": {"values": ["drug", "scan", "cut", "talk"], "nullable": False},
        },
    }
    tables = {
        name: {
            "max_groups": 1,
            "max_rows": COUNTED[name],
            "max_join_rows": COUNTED[name],
            "columns": columns[name],
        }
        for name in real
    }
    sources = {}
    for name, frame in real.items():
        sources[name] = str(folder / f"{name}.parquet")
        frame.write_parquet(sources[name])
    budget = {"epsilon": 100, "delta": "1e-3", "release_delta": DELTA}
    policy = {
        "budget": budget | {"ledger": str(folder / "own.ledger")},
        "units": {"person": {"columns": dict.fromkeys(real, "person")}},
        "tables": tables,
    }
    return dither.open(policy, sources=sources)


def linked(session: dither.Session, epsilon: float, names: tuple[str, ...], n: int) -> Tables:
    """Linked tables of one release."""
    below: dict[str, Any] = {"most": MOST_STAYS, "order": "came", "columns": ["came", "ward"]}
    if "treatments" in names:
        below |= {
            "key": "stay",
            "children": {"treatments": {"most": MOST_TREATMENTS, "columns": ["kind"]}},
        }
    model = session.table("persons").synthesize_linked({"stays": below}, epsilon, cells=AGES)
    return dict(model.sample(n, seed=1))


def independent(session: dither.Session, epsilon: float, names: tuple[str, ...], n: int) -> Tables:
    """Each table by itself, at an equal share; keys at random."""
    rng = np.random.default_rng(1)
    made: Tables = {}
    for name in names:
        model = session.table(name).synthesize(
            epsilon / len(names), DELTA, columns=_TOLD[name], cells=AGES
        )
        rows = model.sample(n if name == "persons" else None, seed=1)
        made[name] = rows.with_columns(person=rng.integers(1, n + 1, rows.height))
    made["persons"] = made["persons"].with_columns(person=np.arange(1, n + 1))
    if "treatments" in names:
        stays = (
            made["stays"].sort("person", "came").with_columns(stay=pl.int_range(1, pl.len() + 1))
        )
        of = rng.integers(0, stays.height, made["treatments"].height)
        made["stays"] = stays
        made["treatments"] = made["treatments"].with_columns(
            person=stays["person"][of], stay=stays["stay"][of]
        )
    return made


_TOLD = {"persons": ["sex", "age"], "stays": ["came", "ward"], "treatments": ["kind"]}


def _cells(days: pl.Series) -> pl.Series:
    """The stretch of days that each gap lies in."""
    return pl.Series(np.searchsorted([0, 1, 3, 7, 14, 28, 56, 91], days.to_numpy()))


def far(real: pl.DataFrame, made: pl.DataFrame, by: list[str]) -> float:
    """Total variation of one table of counts, as shares."""
    both = [
        frame.group_by(by).len().with_columns(pl.col("len") / frame.height)
        for frame in (real, made)
    ]
    joined = both[0].join(both[1], on=by, how="full", coalesce=True).fill_null(0.0)
    return float((joined["len"] - joined["len_right"]).abs().sum()) / 2


def shown(tables: Tables) -> dict[str, pl.DataFrame]:
    """What is compared of linked tables: a frame and its columns for each figure."""
    persons = tables["persons"].with_columns(age=pl.col("age").cast(pl.Int64).clip(0, 89) // 10)
    counts = tables["stays"].group_by("person").len("stays")
    persons = persons.join(counts, on="person", how="left").fill_null(0)
    stays = tables["stays"].join(persons.select("person", "age", "sex"), on="person")
    stays = stays.sort("person", "came").with_columns(
        before=pl.col("ward").shift(1).over("person"),
        days=pl.col("came").diff().over("person").dt.total_days(),
    )
    later = stays.drop_nulls("before").with_columns(
        gap=pl.col("days").map_batches(_cells, return_dtype=pl.Int64)
    )
    found = {
        "stays of a person": persons.select("stays"),
        "the same by age": persons.select("age", "stays"),
        "gaps by ward before": later.select("before", "gap"),
        "age by ward": stays.select("age", "ward"),
        "ward by ward before": later.select("before", "ward"),
    }
    if "treatments" in tables:
        below = tables["treatments"].group_by("stay").len("treatments")
        of = stays.join(below, on="stay", how="left").with_columns(
            pl.col("treatments").fill_null(0)
        )
        joined = tables["treatments"].select("stay", "kind").join(stays, on="stay")
        found |= {
            "treatments by ward": of.select("ward", "treatments"),
            "kind by ward": joined.select("ward", "kind"),
            "kind by age": joined.select("age", "kind"),
        }
    return found


Maker = Callable[[dither.Session, float, tuple[str, ...], int], Tables]


def measured(real: Tables, maker: Maker, epsilon: float) -> tuple[float, float, dict[str, float]]:
    """Seconds by the clock and of the processor for a release with its rows, and errors."""
    with tempfile.TemporaryDirectory() as name, opened(real, Path(name)) as session:
        start, used = time.perf_counter(), time.process_time()
        made = maker(session, epsilon, tuple(real), real["persons"].height)
        took, spent = time.perf_counter() - start, time.process_time() - used
    theirs = shown(real)
    off = {k: far(theirs[k], frame, frame.columns) for k, frame in shown(made).items()}
    return took, spent, off


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=1)
    asked = parser.parse_args()
    whole, again = simulated(asked.persons), simulated(asked.persons, 2)
    for names in (("persons", "stays"), ("persons", "stays", "treatments")):
        real = {name: whole[name] for name in names}
        sizes = ", ".join(f"{frame.height:,} {name}" for name, frame in real.items())
        print(f"{sizes}; ε {asked.epsilon:g}", flush=True)
        kept: dict[str, dict[str, float]] = {}
        for maker in (linked, independent):
            runs = [measured(real, maker, asked.epsilon) for _ in range(asked.runs)]
            took, spent = (float(np.mean([run[i] for run in runs])) for i in (0, 1))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"  {maker.__name__:12} {took:6.1f} s, {spent:6.1f} s of processor, "
                f"at most {peak:,.0f} MB so far",
                flush=True,
            )
            kept[maker.__name__] = {k: float(np.mean([r[2][k] for r in runs])) for k in runs[0][2]}
        theirs, others = shown(real), shown({name: again[name] for name in names})
        for key, value in kept["linked"].items():
            chance = far(theirs[key], others[key], theirs[key].columns)
            print(
                f"  {key:22} linked {value:.4f}  independent {kept['independent'][key]:.4f}  "
                f"drawn again {chance:.4f}"
            )


if __name__ == "__main__":
    main()
