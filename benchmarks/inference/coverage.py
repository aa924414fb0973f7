"""How often nominal 95 % intervals hold the truth: two groups, quantiles, and tables.

Run with ``python -m benchmarks.inference.coverage [ROW ...] [--runs N]``. Truths are those of the
laws that rows are sampled from; samples come from a seeded generator, noise is fresh.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

import dither as dt
from benchmarks.inference.estimates import ROWS, main, row
from dither import inference

ROWS.clear()  # the rows of this file alone

GOAL = "goal: .93-.97 in every cell"
DELTA = 1e-6
SIZES, EPSILONS = (200, 500, 1000, 2000, 5000), (0.25, 0.5, 1.0)
SIDES = ("replace", "add-remove")


def _cells(
    ask: Callable[..., Any],
    truth: Any,
    runs: int,
    rng: np.random.Generator,
    *,
    most: float = 0.97,
    sides: tuple[str, ...] = SIDES,
) -> Iterator[tuple[str, bool | None]]:
    """Coverage and median width, and how often the interval says nothing, of a method's cells."""
    for side in sides:
        for n in SIZES:
            for epsilon in EPSILONS:
                held, width = [], []
                for _ in range(runs):
                    found = ask(rng, n, epsilon, side).simulated(draws=1000, seed=rng)
                    ends = np.atleast_2d(found.interval(0.95))
                    held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
                    width.append(ends[:, 1] - ends[:, 0])
                shares = np.mean(held, axis=0)
                told = "  ".join(f"{s:.3f}" for s in shares)
                wide = "  ".join(f"{w:.3g}" for w in np.median(width, axis=0))
                good = bool(((shares >= 0.93) & (shares <= most)).all())
                yield f"{side:<10} n {n:5,} eps {epsilon:4}: {told}   median width {wide}", good


@row(1000)
def difference(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Two means, N(1.5, 1) less N(1, 1), clamped to [-1, 3]: n in both groups together."""

    def ask(rng: np.random.Generator, n: int, epsilon: float, side: Any) -> Any:
        x, y = rng.normal(1.5, 1.0, n // 2), rng.normal(1.0, 1.0, n - n // 2)
        return inference.difference(
            x, y, bounds=(-1, 3), epsilon=epsilon, delta=DELTA, neighbours=side, shape="normal"
        )

    yield GOAL, None
    yield from _cells(ask, 0.5, runs, rng)


def _answers(rng: np.random.Generator, n: int) -> tuple[Any, Any]:
    return rng.random(n // 2) < 0.4, rng.random(n - n // 2) < 0.25


@row(1000)
def two_proportions(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Shares of .4 and .25: their difference."""

    def ask(rng: np.random.Generator, n: int, epsilon: float, side: Any) -> Any:
        x, y = _answers(rng, n)
        return inference.two_proportions(x, y, epsilon=epsilon, delta=DELTA, neighbours=side)

    yield GOAL, None
    yield from _cells(ask, 0.4 - 0.25, runs, rng)


@row(1000)
def odds_ratio(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Shares of .4 and .25: the ratio of their odds, 2."""

    def ask(rng: np.random.Generator, n: int, epsilon: float, side: Any) -> Any:
        x, y = _answers(rng, n)
        return inference.odds_ratio(x, y, epsilon=epsilon, delta=DELTA, neighbours=side)

    yield GOAL, None
    yield from _cells(ask, 2.0, runs, rng)


SHARES = np.array([0.25, 0.5, 0.9])


@row(1000)
def quantiles(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Three quantiles of an exponential law at once, in 512 bins of [0, 20]."""

    def ask(rng: np.random.Generator, n: int, epsilon: float, side: Any) -> Any:
        x = rng.exponential(2, n)
        return inference.quantiles(
            x, SHARES, bounds=(0, 20), epsilon=epsilon, delta=DELTA, neighbours=side
        )

    yield "goal: .93 or more, and no interval of no use", None
    yield from _cells(ask, -2 * np.log1p(-SHARES), runs, rng, most=1.0)


@row(100)
def tables(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """The same questions of protected tables; of people, each has 1 to 5 rows that are alike."""
    questions: dict[str, tuple[Callable[[Any], Any], float]] = {
        "mean": (lambda asked: asked.mean("cost"), 40.0),
        "proportion": (lambda asked: asked.proportion("cost > 40"), 0.5),
        "difference": (lambda asked: asked.difference("cost", by="smokes"), 6.0),
        "median": (lambda asked: asked.median("cost"), 40.0),
    }
    yield "goal: what .95 gives in so many runs", None
    for unit in (False, True):
        for n, epsilon in ((500, 0.5), (2000, 1.0)):
            held = dict.fromkeys(questions, 0)
            for _ in range(runs):
                frame = _visits(n, unit, rng)
                for name, found in _released(frame, unit, questions, epsilon).items():
                    lower, upper = found.simulated(draws=1000, seed=rng).interval(0.95)
                    held[name] += lower <= questions[name][1] <= upper
            for name, hits in held.items():
                who = "people" if unit else "rows"
                shown = f"{n:5,} {who:<6} eps {epsilon:3} {name:<10} {hits / runs:.3f}"
                yield shown, hits / runs >= 0.95 - 3 * (0.95 * 0.05 / runs) ** 0.5


def _visits(n: int, unit: bool, rng: np.random.Generator) -> pl.DataFrame:
    smokes = rng.random(n) < 0.5
    level = 40 + np.where(smokes, 3.0, -3.0) + rng.normal(0, 12, n)
    who = np.repeat(np.arange(n), rng.integers(1, 6, n) if unit else 1)
    cost = level[who] + (rng.normal(0, 3, who.size) if unit else 0.0)
    return pl.DataFrame({"pid": who, "cost": cost, "smokes": smokes[who]})


def _released(frame: pl.DataFrame, unit: bool, questions: Any, epsilon: float) -> dict[str, Any]:
    table: dict[str, Any] = {"columns": {"cost": {"bounds": [-60, 140]}}}
    if unit:
        table |= {"unit": "pid", "max_rows": 5, "max_groups": 1}
    with tempfile.TemporaryDirectory() as folder:
        policy = {
            "budget": {"epsilon": 100, "delta": "1e-3", "ledger": f"{folder}/v.ledger"},
            "tables": {"visits": table},
        }
        with dt.open(policy, sources={"visits": frame}) as session:
            asked = session.table("visits").infer(epsilon=epsilon, delta=0)
            return {name: ask(asked).release() for name, (ask, _) in questions.items()}


if __name__ == "__main__":
    raise SystemExit(main())
