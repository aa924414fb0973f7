"""Marginals and rows of wide tables, where no graphical model fits: time and memory by size.

``python -m benchmarks.synth.wide --columns 100 --rows 20000`` releases all two-way tables of so
many columns of ten values through the engine, makes them non-negative, and makes rows.
``--picture FILE`` draws the time of each step against the number of columns, and against rows.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from typing import Any

import numpy as np
import polars as pl

import dither as dt

VALUES = 10


def frame_of(columns: int, rows: int) -> pl.DataFrame:
    """Columns of which each repeats the one before in half of the rows."""
    rng = np.random.default_rng(columns)
    found: list[np.ndarray] = []
    for j in range(columns):
        new = np.minimum(VALUES - 1, rng.geometric(0.35, rows) - 1)
        found.append(np.where(rng.random(rows) < 0.5, found[-1], new) if j else new)
    return pl.DataFrame({f"c{j}": values for j, values in enumerate(found)})


def measured(columns: int, rows: int, epsilon: float) -> dict[str, Any]:
    """Processor seconds of each step, and gigabytes at most."""
    data = frame_of(columns, rows)
    seen: dict[str, Any] = {"columns": columns, "size": rows}

    def step(name: str, start: float) -> float:
        seen[name] = time.process_time() - start
        return time.process_time()

    with tempfile.TemporaryDirectory() as folder:
        listed = {"values": list(range(VALUES)), "nullable": False}
        policy = {
            "budget": {"epsilon": 100, "delta": 1e-8, "ledger": folder + "/wide.ledger"},
            "tables": {"wide": {"columns": dict.fromkeys(data.columns, listed)}},
        }
        with dt.open(policy, sources={"wide": data}) as session:
            start = time.process_time()
            question = session.table("wide").marginals(2, epsilon=epsilon, delta=1e-9)
            start = step("plan", start)
            found = question.release()
            start = step("release", start)
            local = found.nonnegative()
            start = step("nonnegative", start)
            made = local.sample(rows, seed=1)
            step("rows", start)
            seen["error a cell"] = question.preview().rmse(2)
            seen["said"] = made.summary()
    seen["gigabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return seen


STEPS = ("plan", "release", "nonnegative", "rows")


def least(columns: int, rows: int, epsilon: float) -> dict[str, Any]:
    """The least of each step over some runs: of small tables one run is mostly the machine's."""
    runs = [measured(columns, rows, epsilon)]
    while len(runs) < 5 and sum(one[step] for one in runs for step in STEPS) < 4:
        runs.append(measured(columns, rows, epsilon))
    return runs[0] | {step: min(one[step] for one in runs) for step in STEPS}


def draw(path: str, epsilon: float) -> None:
    """Seconds against columns at 10,000 rows, and against rows at 20 columns."""
    from dither.plots._canvas import MARKERS, WIDTH, apart, finish, new_figure, tidy

    # What is imported when it is first used is not to be counted.
    measured(3, 100, epsilon)
    by_columns = [least(d, 10_000, epsilon) for d in (5, 10, 20, 40)]
    by_rows = [least(20, n, epsilon) for n in (1_000, 10_000, 100_000)]
    figure = new_figure(WIDTH, 3.6)
    panels = figure.subplots(1, 2, sharey=True)
    labels = {"rows": "making rows", "nonnegative": "no negative counts"}
    for axes, found, what in ((panels[0], by_columns, "columns"), (panels[1], by_rows, "size")):
        tidy(axes, values="y")
        x = [one[what] for one in found]
        for i, name in enumerate(STEPS):
            y = [one[name] for one in found]
            label = labels.get(name, name)
            axes.plot(x, y, color=apart(i), marker=MARKERS[i], label=label)
        axes.set(xscale="log", yscale="log", xlabel="rows" if what == "size" else what)
        axes.set_xticks(x, [f"{n:,}" for n in x])
        axes.minorticks_off()
    panels[0].set_ylabel("processor seconds")
    panels[0].legend(frameon=False, fontsize=9)
    foot = (
        "All pairs of columns of 10 values: 10,000 rows on the left, 20 columns on the right. "
        "The least of up to five runs."
    )
    finish(figure, title="What all pairs of a wide table cost", foot=foot, path=path)


def main() -> None:
    """Print what was measured, or draw it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--picture")
    given = parser.parse_args()
    if given.picture:
        draw(given.picture, given.epsilon)
        return
    for name, value in measured(given.columns, given.rows, given.epsilon).items():
        print(f"{name}: {value:.2f}" if isinstance(value, float) else f"{name}: {value}")


if __name__ == "__main__":
    main()
