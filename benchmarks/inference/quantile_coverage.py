"""How often the interval of a user-level median holds what it is about.

Run with ``python -m benchmarks.inference.quantile_coverage [--repeat N]``. Each user has 40 rows,
of which 2 count; the median is about all rows, each user's with equal weight. Every release draws
noise, and whatever else it draws, afresh; the data stays. A 95 % interval should hold at least 95
in 100. Where rows are left out by chance, the noise can be far smaller than what the choice does.

The last column is the mean half-width, in the unit of the column.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import dither as dt

USERS, ROWS, COUNTED = 150, 40, 2
EPSILONS = (1, 5, 20, 100)


def table() -> pl.DataFrame:
    """Users who differ from each other, and whose rows differ too."""
    rng = np.random.default_rng(7)
    centres = rng.normal(50, 10, USERS)
    values = rng.normal(centres[:, None], 15, (USERS, ROWS)).round().clip(0, 100)
    users = np.repeat(np.arange(USERS), ROWS)
    return pl.DataFrame({"user": users, "x": values.ravel().astype(int)})


def coverage(repeat: int) -> list[tuple[int, float, float]]:
    """For each epsilon: the share of intervals that hold the median, and their half-width."""
    rows = table()
    truth = float(rows["x"].median())  # type: ignore[arg-type]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "budget": {"epsilon": 10**9, "ledger": str(Path(folder) / "coverage.ledger")},
            "tables": {
                "t": {
                    "source": "t.parquet",
                    "unit": "user",
                    "max_groups": 1,
                    "max_rows": COUNTED,
                    "columns": {"x": {"type": "integer", "bounds": [0, 100]}},
                }
            },
        }
        with dt.open(policy, sources={"t": rows}) as session:
            question = session.sql("SELECT MEDIAN(x) AS m FROM t")
            for epsilon in EPSILONS:
                frames = [question.release(epsilon).frame for _ in range(repeat)]
                released = pl.concat(frames)
                inside = released["m_lower"].le(truth) & released["m_upper"].ge(truth)
                half = (released["m_upper"] - released["m_lower"]).mean() / 2  # type: ignore[operator]
                found.append((epsilon, float(inside.mean()), float(half)))  # type: ignore[arg-type]
    return found


def main() -> None:
    """Print the figures."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    options.add_argument("--repeat", type=int, default=200)
    repeat = options.parse_args().repeat
    print(f"median of {USERS} users with {ROWS} rows each, of which {COUNTED} count; {repeat} runs")
    print("epsilon  held by 95 % intervals  half-width")
    for epsilon, held, half in coverage(repeat):
        print(f"{epsilon:7}  {held:22.1%}  {half:10.2f}")


if __name__ == "__main__":
    main()
