"""How often the numbers of a paper's tables hold: descriptions, weights, Welch's test, Holm's.

Run with ``python -m benchmarks.inference.paper [ROW ...] [--runs N]``. The cells were chosen before
any was run: four laws of values (lognormal, zero-inflated, five points, heavy tails), each with 30,
300, 5,000 and 50,000 rows, epsilons of .1 to 3 and both relations in turn. Coverage is to be
.93-.97 and size .035-.06; a cell is missed where its 99 % Monte Carlo interval does not reach that.
Beside them stand peers: OpenDP's and diffprivlib's noisy means with the textbook's interval, which
knows no noise, and the same interval of the sample itself, which is not private.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.inference.estimates import within
from dither import inference

Generator = np.random.Generator
Draw = Callable[[Generator, int], Any]

LAWS: Mapping[str, tuple[Draw, tuple[float, float]]] = {
    "lognormal": (lambda rng, n: rng.lognormal(1, 0.8, n), (0, 20)),
    "zero-inflated": (lambda rng, n: rng.gamma(2, 3, n) * (rng.random(n) < 0.4), (0, 20)),
    "five-point": (lambda rng, n: rng.choice(5, n, p=[0.5, 0.2, 0.15, 0.1, 0.05]) + 0.0, (0, 4)),
    "heavy-tailed": (lambda rng, n: 10 + 2 * rng.standard_t(2, n), (-10, 30)),
}

SIZES, EPSILONS, SIDES = (30, 300, 5000, 50_000), (0.1, 1, 3), ("replace", "add-remove")

CELLS = [
    (law, n, EPSILONS[(i + j) % 3], SIDES[(i + j // 2) % 2])
    for i, law in enumerate(LAWS)
    for j, n in enumerate(SIZES)
]


def truths(law: str) -> dict[str, float]:
    """Of the clamped law, from two million draws."""
    draw, ends = LAWS[law]
    x = np.clip(draw(np.random.default_rng(7), 2_000_000), *ends)
    weights = weight_of(np.random.default_rng(8), x, ends)
    return {
        "mean": float(x.mean()),
        "sd": float(x.std()),
        "median": float(np.median(x)),
        "weighted": float((x * weights).sum() / weights.sum()),
        "share": 0.3,
        "difference": 0.0,
    }


def weight_of(rng: Generator, x: Any, ends: tuple[float, float]) -> Any:
    """A weight that depends on the value, from 0.5 to 3."""
    return np.where(x > sum(ends) / 4, 1.0, 2.0) * rng.uniform(0.5, 1.5, len(x))


def coverage(runs: int) -> Iterator[str]:
    """Of the intervals of a description, each by itself and all at once, and of a weighted mean."""
    names = ("mean", "sd", "median", "share", "difference", "weighted", "all")
    yield f"{'cell':46}" + "".join(f"{name:>11}" for name in names)
    misses = 0
    for law, n, epsilon, side in CELLS:
        truth, hits = truths(law), dict.fromkeys(names, 0)
        for run in range(runs):
            for name, held in _one(law, n, epsilon, side, run, truth):
                hits[name] += held
        cells = []
        for name in names:
            # Simultaneous intervals promise no less: more is no miss.
            low, high = (0.93, 1.0) if name == "all" else (0.93, 0.97)
            kept = within(hits[name], runs, low, high)
            misses += not kept
            mark = "" if kept else ("<" if hits[name] / runs < low else ">")
            cells.append(f"{hits[name] / runs:.3f}{mark}".rjust(11))
        yield f"{law}, n = {n:,}, ε = {epsilon}, {side}".ljust(46) + "".join(cells)
    yield f"missed: {misses} of {len(CELLS) * len(names)} (< below, > above what was aimed at)"


def _one(
    law: str, n: int, epsilon: float, side: str, run: int, truth: dict[str, float]
) -> Iterator[tuple[str, bool]]:
    rng = np.random.default_rng([run, n])
    draw, ends = LAWS[law]
    rows = n if side == "replace" else int(rng.poisson(n))
    x = draw(rng, rows)
    frame = {"x": x, "arm": rng.integers(0, 2, rows), "ill": rng.random(rows) < 0.3}
    found = inference.describe(
        frame,
        by="arm",
        bounds={"x": ends},
        levels={"arm": [0, 1], "ill": [False, True]},
        epsilon=epsilon,
        neighbours=side,
        bins=64,
    )
    for name in ("mean", "sd", "median", "difference"):
        _, low, high = found.number("x", name, group="1")
        yield name, low <= truth[name] <= high
    _, low, high = found.number("ill", "share", level="true", group="1")
    yield "share", low <= truth["share"] <= high
    held = True
    for column, level, measure, *_, low, high in found.intervals(simultaneous=True).iter_rows():
        known = truth.get(measure)
        if measure == "share":
            known = 0.3 if level == "true" else 0.7
        held &= known is None or low <= known <= high or (column == "n")
    yield "all", held
    weights = weight_of(rng, np.clip(x, *ends), ends)
    weighted = inference.weighted_mean(
        x, weights, bounds=ends, most=3, epsilon=epsilon, neighbours=side
    ).simulated(draws=1000)
    low, high = weighted.interval()
    yield "weighted", low <= truth["weighted"] <= high


def size(runs: int) -> Iterator[str]:
    """Of Welch's analysis of variance, and the chance of any false rejection of Holm's five."""
    yield f"{'cell':46}{'Welch':>11}{'pooled':>11}{'Holm':>11}{'unadjusted':>11}"
    for law, n, epsilon, side in CELLS:
        draw, ends = LAWS[law]
        hits = dict.fromkeys(("welch", "pooled", "holm", "plain"), 0)
        for run in range(runs):
            rng = np.random.default_rng([run, n, 1])
            parts = [draw(rng, max(2, int(n * share))) for share in (0.5, 0.3, 0.2)]
            for name, equal in (("welch", False), ("pooled", True)):
                found = inference.f_oneway(
                    *parts,
                    bounds=ends,
                    epsilon=epsilon,
                    neighbours=side,
                    equal_var=equal,
                    draws=800,
                )
                hits[name] += found.rejects()
            tests = [
                inference.sign_test(
                    rng.normal(0, 1, n), epsilon=epsilon, neighbours=side, draws=400
                )
                for _ in range(5)
            ]
            hits["holm"] += any(inference.adjust_pvalues(tests).rejects().values())
            hits["plain"] += any(test.rejects() for test in tests)
        shares = "".join(f"{h / runs:.3f}".rjust(11) for h in hits.values())
        yield f"{law}, n = {n:,}, ε = {epsilon}, {side}".ljust(46) + shares
    yield "Welch's and the pooled may be conservative where the noise hides variances"


def peers(runs: int) -> Iterator[str]:
    """Coverage of the mean: ours beside textbook intervals of what others release."""
    found = {"dither": _ours, "plug-in": _plugged, "OpenDP": _opendp, "diffprivlib": _diffprivlib}
    found["sample, not private"] = _sample
    yield f"{'cell (n public)':46}" + "".join(f"{name:>21}" for name in found)
    for law, n, epsilon, _ in CELLS:
        draw, ends = LAWS[law]
        truth = truths(law)["mean"]
        cells = []
        for interval in found.values():
            hits, widths = 0, []
            try:
                for run in range(runs):
                    x = np.clip(draw(np.random.default_rng([run, n, 2]), n), *ends)
                    low, high = interval(x, ends, epsilon)
                    hits += low <= truth <= high
                    widths.append(high - low)
            except ImportError:
                cells.append("not installed".rjust(21))
                continue
            cells.append(f"{hits / runs:.3f} (±{np.mean(widths) / 2:.3g})".rjust(21))
        yield f"{law}, n = {n:,}, ε = {epsilon}".ljust(46) + "".join(cells)


def _ours(x: Any, ends: tuple[float, float], epsilon: float) -> tuple[float, float]:
    found = inference.mean(x, bounds=ends, epsilon=epsilon).simulated(draws=1000)
    return found.interval()  # type: ignore[no-any-return]


def _textbook(mean: float, variance: float, n: int) -> tuple[float, float]:
    half = 1.96 * math.sqrt(max(variance, 0.0) / n)
    return mean - half, mean + half


def _sample(x: Any, ends: tuple[float, float], epsilon: float) -> tuple[float, float]:
    return _textbook(float(x.mean()), float(x.var(ddof=1)), len(x))


def _plugged(x: Any, ends: tuple[float, float], epsilon: float) -> tuple[float, float]:
    """Half of epsilon for the mean and half for the variance, read as if there were no noise."""
    rng, reach = np.random.default_rng(), ends[1] - ends[0]
    n = len(x)
    mean = x.mean() + rng.laplace(0, 2 * reach / n / epsilon)
    variance = x.var(ddof=1) + rng.laplace(0, 2 * reach**2 / n / epsilon)
    return _textbook(mean, variance, n)


def _opendp(x: Any, ends: tuple[float, float], epsilon: float) -> tuple[float, float]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    bounds = float(ends[0]), float(ends[1])
    n = len(x)
    space = (
        dp.vector_domain(dp.atom_domain(bounds=bounds, nan=False), size=n),
        dp.symmetric_distance(),
    )
    told = []
    for made in (dp.t.make_mean(*space), dp.t.make_variance(*space)):
        # A row that is replaced is two apart in the symmetric distance; half of epsilon for each.
        noisy = dp.binary_search_chain(partial(_with_noise, made), 2, epsilon / 2)
        told.append(noisy(x.tolist()))
    return _textbook(told[0], told[1], n)


def _with_noise(made: Any, scale: float) -> Any:
    import opendp.prelude as dp

    return made >> dp.m.then_laplace(scale)


def _diffprivlib(x: Any, ends: tuple[float, float], epsilon: float) -> tuple[float, float]:
    from diffprivlib import tools  # type: ignore[import-not-found]

    half = epsilon / 2
    mean, variance = (f(x, epsilon=half, bounds=ends) for f in (tools.mean, tools.var))
    return _textbook(float(mean), float(variance), len(x))


ROWS: Mapping[str, tuple[Callable[[int], Iterator[str]], int]] = {
    "coverage": (coverage, 150),
    "size": (size, 200),
    "peers": (peers, 200),
}


def main() -> int:
    """Print the rows that were named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", choices=[*ROWS, []], help="which rows")
    parser.add_argument("--runs", type=int, help="runs of each cell")
    given = parser.parse_args()
    for name in given.rows or ROWS:
        row, runs = ROWS[name]
        print(f"{name}, {given.runs or runs} runs a cell", flush=True)
        for line in row(given.runs or runs):
            print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
