"""What inference reaches: coverage, errors and times, each beside what is naive, printed or public.

Run with ``python -m benchmarks.inference.estimates [ROW ...] [--runs N]``; without a name all rows
run. Each row is a function of the number of runs that gives lines and whether its goal is reached;
the goals are named in the lines. Samples and their truths come from a seeded generator; noise is
fresh.
"""

from __future__ import annotations

import argparse
import inspect
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

import dither as dt
from dither import inference
from dither._stats import clopper_pearson

Row = Callable[[int, np.random.Generator], Iterator[tuple[str, bool | None]]]
"""Of runs and a generator: lines, each with whether its goal is reached, or None."""

ROWS: dict[str, tuple[Row, int]] = {}
"""By name, the row and the runs that it has where nothing else is said."""

DELTA = 1e-6


def row(runs: int) -> Callable[[Row], Row]:
    """List a function as a row."""

    def listed(function: Row) -> Row:
        ROWS[function.__name__.replace("_", "-")] = (function, runs)
        return function

    return listed


def within(hits: int, runs: int, low: float, high: float) -> bool:
    """Whether a share of runs is in a range, or could be: its 99 % interval reaches into it."""
    ends = clopper_pearson(hits, runs, 0.99)
    return low <= hits / runs <= high or (ends[0] <= high and ends[1] >= low)


def level(name: str, hits: int, runs: int) -> tuple[str, bool]:
    """The level of a test as text with its Monte Carlo error, and whether it may be so.

    It may be .035-.06, or could be by the 95 % interval of so many runs; or less, where the
    docstring of the test says that it may be conservative.
    """
    share, (low, high) = hits / runs, clopper_pearson(hits, runs, 0.95)
    shown = f"type I {share:.3f} ± {(high - low) / 2:.3f}"
    words = inspect.getdoc(getattr(inference, name)) or ""
    if 0.035 <= share <= 0.06:
        return shown, True
    if share < 0.035 and "conservative" in words.lower():
        return f"{shown} (conservative, as it says)", True
    return (f"{shown} (within error)", True) if low <= 0.06 and high >= 0.035 else (shown, False)


@row(1000)
def coverage(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Nominal 95 % intervals of a mean, N(1.5, 1) clamped to [-1, 3]: active on one side."""
    yield "goal: .93-.97 in every cell; 'naive' forgets noise and clamping, 'Wald' clamping", None
    yield "neighbours      n   eps   ours  width  naive   Wald   type I", None
    for neighbours in ("replace", "add-remove"):
        for n in (200, 500, 1000, 2000, 5000):
            for epsilon in (0.25, 0.5, 1.0):
                found = np.array([_one_mean(n, epsilon, neighbours, rng) for _ in range(runs)])
                held, width, naive, wald, rejected = found.mean(axis=0)
                good = 0.93 <= held <= 0.97
                shown = f"{neighbours:<10} {n:6,} {epsilon:5} {held:6.3f} {width:6.3f}"
                yield f"{shown} {naive:6.3f} {wald:6.3f} {rejected:8.3f}", good


def _one_mean(n: int, epsilon: float, neighbours: Any, rng: np.random.Generator) -> list[float]:
    x = rng.normal(1.5, 1.0, n)
    found = inference.mean(
        x, bounds=(-1, 3), epsilon=epsilon, delta=DELTA, neighbours=neighbours, shape="normal"
    ).simulated(draws=2000)
    lower, upper = found.interval(0.95)
    model = found.simulate.__self__  # type: ignore[attr-defined]
    middle = 1.0 + 2.0 * model.seen[0]
    variance = max(4.0 * (model.seen[1] - model.seen[0] ** 2), 1e-4) / n
    naive = 1.96 * math.sqrt(variance)
    wald = 1.96 * math.sqrt(variance + (2.0 * model.noise_of_mean) ** 2)
    return [
        lower <= 1.5 <= upper,
        upper - lower,
        abs(middle - 1.5) <= naive,
        abs(middle - 1.5) <= wald,
        found.test(1.5) <= 0.05,
    ]


def _five_points(rng: np.random.Generator, n: int) -> Any:
    return rng.choice(np.arange(1.0, 6.0), n, p=_ANSWERS)


_ANSWERS = np.array([0.02, 0.04, 0.1, 0.22, 0.62])

_SHAPES: dict[str, tuple[tuple[float, float], float, Callable[[np.random.Generator, int], Any]]] = {
    "exponential": ((0, 20), 1.0, lambda rng, n: rng.exponential(1.0, n)),
    "lognormal": ((0, 50), 1.6480, lambda rng, n: rng.lognormal(0.0, 1.0, n)),
    "five points": ((1, 5), 4.38, _five_points),
    "rare counts": ((0, 10), 0.1, lambda rng, n: rng.poisson(0.1, n).astype(float)),
    "off the middle": ((0, 10), 1.5, lambda rng, n: rng.uniform(0.0, 3.0, n)),
}
"""By name: bounds that hold nearly everybody, the mean of clamped values, and draws."""


def _interval(hits: int, runs: int) -> str:
    """A share of runs with its 95 % interval."""
    low, high = clopper_pearson(hits, runs, 0.95)
    return f"{hits / runs:.3f} [{low:.3f}, {high:.3f}]"


@row(600)
def shapes(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Skewed values, five points and rare counts: nominal 95 % intervals of a mean, and t-tests."""
    yield (
        "goal: coverage at least .93, or could be by its 95 % interval; level at most .06, or "
        "no more than scipy's, or could be",
        None,
    )
    yield "brackets: 95 % over runs; 'open' is scipy's test of the same rows without noise", None
    for name, (ends, truth, draw) in _SHAPES.items():
        for side in ("replace", "add-remove"):
            for n, epsilon in ((30, 1.0), (300, 0.3), (300, 1.0), (3000, 1.0)):
                held = wrong = alone = 0
                for _ in range(runs):
                    x = draw(rng, n)
                    found = inference.mean(
                        x,
                        bounds=ends,
                        epsilon=epsilon,
                        neighbours=side,  # type: ignore[arg-type]
                    ).simulated(draws=500, seed=rng)
                    low, high = found.interval()
                    held += low <= truth <= high
                    wrong += found.test(truth) <= 0.05
                    alone += stats.ttest_1samp(x, truth).pvalue <= 0.05
                shown = f"{name:<14} {side:<10} n {n:5,} eps {epsilon:3}: coverage "
                shown += f"{_interval(held, runs)}, type I {_interval(wrong, runs)}"
                most = max(0.06, alone / runs)
                good = clopper_pearson(held, runs, 0.95)[1] >= 0.93
                good = good and clopper_pearson(wrong, runs, 0.95)[0] <= most
                yield f"{shown} (open {alone / runs:.3f})", good


@row(600)
def unequal_groups(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Differences of 270 and 30 rows of one law, off the middle of their bounds."""
    yield "goal: coverage at least .93, or could be by its 95 % interval over runs", None
    for name, (ends, _, draw) in _SHAPES.items():
        for side, private in (("replace", True), ("replace", False), ("add-remove", True)):
            held = 0
            for _ in range(runs):
                found = inference.difference(
                    draw(rng, 270),
                    draw(rng, 30),
                    bounds=ends,
                    epsilon=1,
                    neighbours=side,  # type: ignore[arg-type]
                    private_groups=private,
                ).simulated(draws=500, seed=rng)
                low, high = found.interval()
                held += low <= 0 <= high
            good = clopper_pearson(held, runs, 0.95)[1] >= 0.93
            labels = "private" if private else "public"
            yield f"{name:<14} {side:<10} {labels:<7} labels: {_interval(held, runs)}", good


@row(600)
def ties(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Tests of ranks on five points: levels, and how often they see a mean that is .4 lower."""
    yield "goal: level .02-.06, or could be by its 95 % interval over runs", None
    yield "'open' is scipy's test of the same rows without noise", None
    shifted = _ANSWERS + np.array([0.06, 0.05, 0.02, -0.03, -0.1])

    def drawn(n: int, moved: bool) -> Any:
        return rng.choice(np.arange(1.0, 6.0), n, p=shifted if moved else _ANSWERS)

    def once(name: str, n: int, moved: bool, asked: dict[str, Any]) -> tuple[float, float]:
        if name == "kruskal":
            table = drawn(n // 3, False), drawn(n // 3, False), drawn(n // 3, moved)
        elif name == "kendalltau":
            x, y = drawn(n, False), drawn(n, False)
            table = x, np.where(rng.random(n) < (0.15 if moved else 0.0), x, y)
        elif name == "mannwhitneyu":
            table = drawn(n // 2, False), drawn(n // 2, moved)
        else:
            table = drawn(n, False), drawn(n, moved)
        found = getattr(inference, name)(*table, draws=400, **asked).pvalue
        return found, getattr(stats, name)(*table).pvalue

    for name in ("kruskal", "mannwhitneyu", "kendalltau", "wilcoxon"):
        for side in ("replace", "add-remove"):
            for n in (150, 300, 1000):
                asked = {"epsilon": 1.0, "neighbours": side}
                tries = max(1, runs // 4)
                wrong, right = (
                    np.sum(
                        [
                            [p <= 0.05 for p in once(name, n, moved, asked)]
                            for _ in range(tries if moved else runs)
                        ],
                        axis=0,
                    )
                    for moved in (False, True)
                )
                low, high = clopper_pearson(int(wrong[0]), runs, 0.95)
                shown = f"{name:<12} {side:<10} n {n:5,}: type I {_interval(int(wrong[0]), runs)} "
                shown += f"(open {wrong[1] / runs:.3f}), power {right[0] / tries:.2f} "
                yield f"{shown}(open {right[1] / tries:.2f})", bool(low <= 0.06 and high >= 0.02)


@row(2000)
def proportion(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Type-I error at .05 and coverage of 95 % intervals of a proportion."""
    yield "goal: type I .035-.06, coverage .93-.97", None
    for neighbours in ("replace", "add-remove"):
        for n, share, epsilon in ((50, 0.1, 0.5), (200, 0.5, 0.25), (1000, 0.03, 1.0)):
            rejected = held = 0
            for _ in range(runs):
                x = rng.random(n) < share
                found = inference.proportion(x, epsilon=epsilon, neighbours=neighbours)  # type: ignore[arg-type]
                found = found.simulated(draws=2000)
                lower, upper = found.interval(0.95)
                held += lower <= share <= upper
                rejected += found.test(share) <= 0.05
            good = within(rejected, runs, 0.035, 0.06) and within(held, runs, 0.93, 0.97)
            shown = f"{neighbours:<10} n {n:5,} p {share:.2f} eps {epsilon:4}"
            yield f"{shown}: type I {rejected / runs:.3f}, coverage {held / runs:.3f}", good


@row(1000)
def correlation(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Nominal 95 % intervals of the correlation of normal pairs."""
    yield "goal: .93-.97 in every cell, or could be by the 99 % interval of so many runs", None
    for neighbours in ("replace", "add-remove"):
        for n, rho, epsilon in (
            (150, 0.3, 1.0),
            (150, 0.9, 1.0),
            (500, 0.0, 0.25),
            (2000, -0.6, 0.5),
        ):
            held, width = 0, 0.0
            for _ in range(runs):
                x = rng.normal(0.0, 1.0, n)
                y = rho * x + math.sqrt(1 - rho**2) * rng.normal(0.0, 1.0, n)
                found = inference.pearsonr(
                    x,
                    y,
                    epsilon=epsilon,
                    neighbours=neighbours,
                    draws=1000,  # type: ignore[arg-type]
                )
                lower, upper = found.interval()
                held, width = held + (lower <= rho <= upper), width + upper - lower
            good = within(held, runs, 0.93, 0.97)
            shown = f"{neighbours:<10} n {n:5,} correlation {rho:4} eps {epsilon:4}"
            yield f"{shown}: coverage {held / runs:.3f}, width {width / runs:.3f}", good


def _means(d: int, goal: float, runs: int, rng: np.random.Generator) -> Iterator[Any]:
    n, errors = 10_000, {}
    ways: dict[str, Callable[[Any], Any]] = {
        "shrinking ball": lambda x: inference.means(
            x, radius=math.sqrt(d), spread=1, epsilon=1, delta=DELTA
        ),
        "ball": lambda x: inference.means(x, radius=2 * math.sqrt(d) + 2, epsilon=1, delta=DELTA),
        "as printed": lambda x: inference.truncated_mean_as_printed(
            x, radius=2 * math.sqrt(math.log(n)), epsilon=1, delta=DELTA
        ),
        "without privacy": lambda x: x.mean(axis=0),
    }
    for _ in range(runs):
        truth = rng.uniform(-1, 1, d)
        x = rng.normal(truth, 1.0, (n, d))
        for name, way in ways.items():
            made = way(x)
            off = getattr(made, "estimate", made) - truth
            errors.setdefault(name, []).append(float(off @ off))
    yield f"goal: squared error of {d} means, n {n:,}, eps 1, at most {goal:g}", None
    for name, found in errors.items():
        mean, error = np.mean(found), np.std(found) / math.sqrt(runs)
        good = bool(mean <= goal) if name == "shrinking ball" else None
        yield f"{name:<16} {mean:.2e} ± {error:.0e}", good


@row(60)
def means_10(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Ten means of ten thousand rows."""
    yield from _means(10, 1.7e-3, runs, rng)


@row(12)
def means_100(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """A hundred means of ten thousand rows."""
    yield from _means(100, 0.036, runs, rng)


@row(5)
def sparse(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Fifty of ten thousand means, ±0.5, of ten thousand rows."""
    d, s, n = 10_000, 50, 10_000
    yield "goal: recall at least .92 and squared error at most 1.0, at eps 1", None
    found: dict[str, list[list[float]]] = {}
    for _ in range(runs):
        truth = np.zeros(d)
        truth[:s] = 0.5 * rng.choice([-1, 1], s)
        x = rng.standard_normal((n, d), dtype=np.float32)
        x += truth.astype(np.float32)
        for method in ("one-shot", "peeling"):
            start = time.perf_counter()
            made = inference.sparse_mean(
                x,
                radius=2 * math.sqrt(math.log(n)),
                s=s,
                epsilon=1,
                delta=DELTA,
                method=method,  # type: ignore[arg-type]
            )
            seconds = time.perf_counter() - start
            off = made.vector - truth
            numbers = [float(np.mean(made.chosen < s)), float(off @ off), seconds]
            found.setdefault(method, []).append([*numbers, float(made.loss.charge.epsilon or 0)])
    for method, each in found.items():
        recall, error, seconds, epsilon = np.mean(each, axis=0)
        good = bool(recall >= 0.92 and error <= 1.0) if method == "one-shot" else None
        shown = f"recall {recall:.3f}, squared error {error:.2f}, {seconds:.1f} s"
        yield f"{method:<9} {shown}, truly eps {epsilon:.3f}", good


@row(5)
def seconds(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """One bootstrap with B = 2,000, and one mean of a million rows in memory."""
    yield "goal: a bootstrap of 2,000 below a second", None
    for n in (200, 5_000, 1_000_000):
        x = rng.normal(4.0, 2.0, n)
        release, bootstrap = [], []
        for _ in range(runs):
            start = time.perf_counter()
            found = inference.mean(x, bounds=(0, 9), epsilon=1, delta=DELTA)
            middle = time.perf_counter()
            found.simulated(draws=2000).interval()
            bootstrap.append(time.perf_counter() - middle)
            release.append(middle - start)
        shown = f"n {n:9,}: release {min(release) * 1e3:.0f} ms"
        yield f"{shown}, bootstrap {min(bootstrap) * 1e3:.0f} ms", min(bootstrap) < 1.0


@row(9)
def seconds_in_the_engine(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """One mean with its interval of a million rows in the engine, beside the plain release."""
    yield "goal: within 50 ms of the plain release", None
    with tempfile.TemporaryDirectory() as folder:
        pl.DataFrame({"cost": rng.normal(4.0, 2.0, 1_000_000)}).write_parquet(f"{folder}/v.parquet")
        policy = {
            "budget": {"epsilon": 10**6, "ledger": f"{folder}/v.ledger"},
            "tables": {
                "visits": {
                    "source": f"{folder}/v.parquet",
                    "columns": {"cost": {"bounds": [0, 9]}},
                }
            },
        }
        with dt.open(policy) as session:
            plain, whole = [], []
            for _ in range(runs):
                start = time.perf_counter()
                session.sql("SELECT AVG(cost) AS cost FROM visits").release(1)
                middle = time.perf_counter()
                session.table("visits").infer(epsilon=1).mean("cost").release().interval()
                whole.append(time.perf_counter() - middle)
                plain.append(middle - start)
    more = min(whole) - min(plain)
    shown = f"plain {min(plain) * 1e3:.0f} ms, with interval {min(whole) * 1e3:.0f} ms"
    yield f"{shown}: {more * 1e3:.0f} ms more", more < 0.05


@row(2000)
def levels(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """How often each test by simulation rejects a true null at .05."""
    yield "goal: .035-.06, or less where the docstring says conservative (± is 95 % of runs)", None
    yield "'naive' takes the noisy table for an exact one", None
    for name, (function, test) in _TESTS.items():
        for epsilon in (0.5, 1.0):
            for neighbours in ("replace", "add-remove"):
                asked = {"epsilon": epsilon, "neighbours": neighbours}
                rejected = sum(test(rng, asked) <= 0.05 for _ in range(runs))
                told, good = level(function, rejected, runs)
                shown = f"{name:<20} {neighbours:<10} eps {epsilon:4}: {told}"
                yield shown, None if "naive" in name else good


def _three_colours(rng: np.random.Generator) -> Any:
    return rng.choice(3, 200, p=[0.5, 0.3, 0.2])


def _naive(rng: np.random.Generator, asked: dict[str, Any]) -> float:
    """Pearson's test of a noisy table taken as exact."""
    x, y = _three_colours(rng), rng.integers(0, 2, 200)
    table = np.bincount(2 * x + y, minlength=6).reshape(3, 2)
    noise = np.round(rng.laplace(0, 2 / asked["epsilon"], table.shape))
    return float(stats.chi2_contingency(np.maximum(table + noise, 1), correction=False).pvalue)


def _signs(rng: np.random.Generator, asked: dict[str, Any], method: str) -> float:
    delta = DELTA if method == "efficient" else 0
    known = asked | {"neighbours": "replace", "delta": delta}
    return inference.identity_test(
        rng.choice([-1, 1], (60, 10)), draws=400, method=method, **known
    ).pvalue


_TESTS: dict[str, tuple[str, Callable[[np.random.Generator, dict[str, Any]], float]]] = {
    "identity, lipschitz": ("identity_test", lambda rng, asked: _signs(rng, asked, "lipschitz")),
    "identity, efficient": ("identity_test", lambda rng, asked: _signs(rng, asked, "efficient")),
    "identity": (
        "identity_test",
        lambda rng, asked: (
            inference.identity_test(rng.choice([-1, 1], (60, 10)), draws=400, **asked).pvalue
        ),
    ),
    "uniformity": (
        "uniformity_test",
        lambda rng, asked: (
            inference.uniformity_test(
                rng.integers(0, 6, 200), categories=range(6), draws=400, **asked
            ).pvalue
        ),
    ),
    "goodness of fit": (
        "goodness_of_fit",
        lambda rng, asked: (
            inference.goodness_of_fit(
                _three_colours(rng),
                categories=range(3),
                probabilities=[0.5, 0.3, 0.2],
                draws=400,
                **asked,
            ).pvalue
        ),
    ),
    "independence": (
        "independence_test",
        lambda rng, asked: (
            inference.independence_test(
                _three_colours(rng),
                rng.integers(0, 2, 200),
                x_categories=range(3),
                y_categories=range(2),
                draws=400,
                **asked,
            ).pvalue
        ),
    ),
    "independence, naive": ("independence_test", _naive),
}


@row(2000)
def hypotheses(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Tests of means, groups, ranks and correlation at eps 1: levels at .05, and power."""
    yield (
        "goal: type I .035-.06, or less where the docstring says conservative (± is 95 % of runs); "
        "power: wilcoxon at least .88 at n 75, .5 deviations",
        None,
    )
    yield (
        "'naive' takes a noisy mean, variance or U for exact; 'open' is the test without noise",
        None,
    )
    for name, (sample, test, alone, shift) in _HYPOTHESES.items():
        for neighbours in ("replace", "add-remove"):
            if "naive" in name and neighbours != "replace":
                continue
            asked = {"epsilon": 1.0, "neighbours": neighbours}
            wrong = sum(test(sample(rng, 0.0), asked) <= 0.05 for _ in range(runs))
            tries = max(1, runs // 4)
            right = sum(test(sample(rng, shift), asked) <= 0.05 for _ in range(tries)) / tries
            best = sum(alone(*sample(rng, shift)).pvalue <= 0.05 for _ in range(tries)) / tries
            told, good = level(_function(name), wrong, runs)
            if name == "wilcoxon":
                good = good and right >= 0.88
            shown = f"{name:<22} {neighbours:<10} power {right:.3f} (open {best:.3f}), {told}"
            yield shown, None if "naive" in name else good


def _function(name: str) -> str:
    """The test that a line is of."""
    first = name.split(",")[0].split(" ")[0]
    return {"t-test": "ttest_1samp", "Mann-Whitney": "mannwhitneyu"}.get(first, first)


def _one(rng: np.random.Generator, shift: float) -> tuple[Any, ...]:
    return (rng.normal(shift, 1.0, 75),)


def _two(rng: np.random.Generator, shift: float) -> tuple[Any, ...]:
    labels, x = rng.random(150) < 0.5, rng.normal(0.0, 1.0, 150)
    return x[labels] + shift, x[~labels]


def _unequal(rng: np.random.Generator, shift: float) -> tuple[Any, ...]:
    labels, x = rng.random(400) < 0.25, rng.normal(0.0, 1.0, 400)
    return x[labels] + shift, x[~labels]


def _spread(rng: np.random.Generator, shift: float) -> tuple[Any, ...]:
    return rng.normal(shift, 0.5, 100), rng.normal(0.0, 1.0, 200)


def _three(rng: np.random.Generator, shift: float) -> tuple[Any, ...]:
    return tuple(rng.normal(shift * g, 1.0, 70) for g in range(3))


def _columns(rng: np.random.Generator, shift: float) -> tuple[Any, ...]:
    x = rng.normal(0.0, 1.0, 150)
    return x, shift * x + math.sqrt(1 - shift**2) * rng.normal(0.0, 1.0, 150)


def _by(name: str, **given: Any) -> Callable[[tuple[Any, ...], dict[str, Any]], float]:
    fixed = given if name in ("test_of_tests",) else {"draws": 400} | given
    return lambda table, asked: getattr(inference, name)(*table, **fixed, **asked).pvalue


def _of_tests(table: tuple[Any, ...], asked: dict[str, Any]) -> float:
    return inference.test_of_tests(
        lambda block: stats.ttest_1samp(block, 0), table[0], blocks=10, **asked
    ).pvalue


def _naive_mean(table: tuple[Any, ...], asked: dict[str, Any]) -> float:
    """A t-test of a noisy mean and a noisy variance taken as exact."""
    rng = np.random.default_rng()
    (x,) = table
    n, half = x.size, np.clip(x, -2, 3)
    mean = half.mean() + rng.laplace(0, 5 / n / (asked["epsilon"] / 2))
    variance = max(half.var(ddof=1) + rng.laplace(0, 25 / n / (asked["epsilon"] / 2)), 1e-3)
    return float(2 * stats.t.sf(abs(mean) / math.sqrt(variance / n), n - 1))


def _naive_ranks(table: tuple[Any, ...], asked: dict[str, Any]) -> float:
    """A Mann-Whitney test of a noisy U taken as exact."""
    rng = np.random.default_rng()
    n, m = (len(x) for x in table)
    noisy = stats.mannwhitneyu(*table).statistic + rng.laplace(0, max(n, m) / asked["epsilon"])
    return float(2 * stats.norm.sf(abs(noisy - n * m / 2) / math.sqrt(n * m * (n + m + 1) / 12)))


_ENDS = {"bounds": (-2, 3)}

_HYPOTHESES: dict[str, tuple[Any, Any, Any, float]] = {
    "sign_test": (_one, _by("sign_test"), lambda x: stats.ttest_1samp(x, 0), 0.5),
    "wilcoxon": (_one, _by("wilcoxon"), stats.wilcoxon, 0.5),
    "ztest": (_one, _by("ztest", sigma=1), lambda x: stats.ttest_1samp(x, 0), 0.5),
    "ttest_1samp": (
        _one,
        lambda t, a: inference.ttest_1samp(*t, 0, draws=400, **_ENDS, **a).pvalue,
        lambda x: stats.ttest_1samp(x, 0),
        0.5,
    ),
    "t-test, naive": (_one, _naive_mean, lambda x: stats.ttest_1samp(x, 0), 0.5),
    "test_of_tests": (_one, _of_tests, lambda x: stats.ttest_1samp(x, 0), 0.5),
    "ks_1samp": (
        _one,
        lambda t, a: inference.ks_1samp(*t, "norm", draws=400, **a).pvalue,
        lambda x: stats.kstest(x, "norm"),
        0.5,
    ),
    "ks_1samp, tree": (
        _one,
        lambda t, a: inference.ks_1samp(*t, "norm", method="tree", draws=400, **a).pvalue,
        lambda x: stats.kstest(x, "norm"),
        0.5,
    ),
    "mannwhitneyu": (_two, _by("mannwhitneyu"), stats.mannwhitneyu, 0.5),
    "mannwhitneyu, 1 in 4": (_unequal, _by("mannwhitneyu"), stats.mannwhitneyu, 0.5),
    "Mann-Whitney, naive": (_two, _naive_ranks, stats.mannwhitneyu, 0.5),
    "ks_2samp": (_two, _by("ks_2samp"), stats.ks_2samp, 0.5),
    "ks_2samp, tree": (
        _two,
        _by("ks_2samp", method="tree", bounds=(-3, 4)),
        stats.ks_2samp,
        0.5,
    ),
    "ttest_ind": (_two, _by("ttest_ind", **_ENDS), stats.ttest_ind, 0.5),
    "ttest_ind, unequal": (
        _spread,
        _by("ttest_ind", **_ENDS),
        lambda x, y: stats.ttest_ind(x, y, equal_var=False),
        0.5,
    ),
    "ztest of two": (_two, _by("ztest", sigma=1, **_ENDS), stats.ttest_ind, 0.5),
    "kruskal": (_three, _by("kruskal"), stats.kruskal, 0.3),
    "f_oneway": (_three, _by("f_oneway", **_ENDS), stats.f_oneway, 0.3),
    "f_oneway, Welch": (
        _three,
        _by("f_oneway", equal_var=False, **_ENDS),
        stats.f_oneway,
        0.3,
    ),
    "kendalltau": (_columns, _by("kendalltau"), stats.kendalltau, 0.3),
    "pearsonr": (_columns, _by("pearsonr"), stats.pearsonr, 0.3),
}
"""By name: samples of a shift, the test, the same without noise, and the shift of its power."""


@row(10_000)
def rows_needed(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """The least n with size at most 1/3 and power at least 2/3 at eps 1, by so many simulations."""
    yield "goal: 140 for 100 signs at distance .5; in brackets, an independent simulation", None
    for (d, distance), elsewhere in _ELSEWHERE.items():
        for method, n in elsewhere.items():
            found = inference.samples_needed(
                "identity",
                epsilon=1,
                delta=DELTA if method == "efficient" else 0,
                dimension=d,
                distance=distance,
                method=method,
                size=1 / 3,
                power=2 / 3,
                draws=runs,
            )
            good = found <= 140 if (d, method) == (100, "norm") else None
            yield f"d {d:3}, distance {distance}, {method:<11}: {found:6,} ({n:,})", good


_ELSEWHERE = {
    (20, 0.5): {"efficient": 3901, "norm": 56, "non-private": 25},
    (100, 0.5): {"efficient": 7024, "norm": 134, "non-private": 55},
    (500, 1.0): {"efficient": 5983, "norm": 148, "non-private": 26},
}


def main() -> int:
    """Run the rows that are named, or all; 1 where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=", ".join(ROWS))
    parser.add_argument("--runs", type=int, help="in the place of each row's own")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    unknown = set(options.rows) - set(ROWS)
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}: there are {', '.join(ROWS)}")
    missed = 0
    for name in options.rows or ROWS:
        function, runs = ROWS[name]
        start = time.perf_counter()
        print(f"\n{name}: {function.__doc__}", flush=True)
        for line, good in function(options.runs or runs, np.random.default_rng(options.seed)):
            mark = "" if good is None else "  reached" if good else "  MISSED"
            print(f"  {line}{mark}", flush=True)
            missed += good is False
        print(f"  ({time.perf_counter() - start:.0f} s)")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
