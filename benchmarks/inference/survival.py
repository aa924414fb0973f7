"""How often intervals of survival, rates and strata hold the truth, and tests reject a true null.

Run with ``python -m benchmarks.inference.survival [ROW ...] [--runs N]``. Beside each stands what
the same noisy numbers give to formulas that take them for exact ("plug-in"): Greenwood's, the
hypergeometric variance of the log-rank test, those of Poisson events, and that of Robins, Breslow
and Greenland. The cells were chosen before they were run: n from 30 to 50,000, ε from 0.1 to 3,
both relations; exponential and Weibull times, heavy censoring, few events; events that are
Poisson's, gamma-mixed, mostly zero, or few.

The goal is .93-.97 for intervals and .035-.06 for tests, within what so many runs tell; more is
counted as reached where an end of most intervals is open (0, infinity), since nothing shorter holds
there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.inference.estimates import ROWS, main, row, within
from dither import inference
from dither.inference.rates._mantel_haenszel import StrataModel
from dither.inference.survival._counts import SurvivalCounts

ROWS.clear()  # the rows of this file alone

LOW, HIGH = 0.93, 0.97
BOTH = ("replace", "add-remove")
DRAWS = 800

TIMES = [
    (30, 3.0, "exponential"),
    (300, 1.0, "exponential"),
    (300, 0.3, "weibull"),
    (2_000, 0.1, "exponential"),
    (2_000, 1.0, "weibull"),
    (5_000, 0.5, "heavy censoring"),
    (20_000, 1.0, "few events"),
    (50_000, 1.0, "heavy censoring"),
]
EVENTS = [
    (30, 3.0, "poisson", 0.3),
    (500, 1.0, "poisson", 0.05),
    (2_000, 0.3, "poisson", 0.05),
    (5_000, 0.1, "poisson", 0.05),
    (50_000, 1.0, "few events", 0.0005),
    (2_000, 1.0, "gamma-mixed", 0.1),
    (20_000, 0.5, "mostly zero", 0.1),
]


def _times(rng: np.random.Generator, n: int, kind: str) -> tuple[Any, Any, Any, Any]:
    """Times, events, arms that are alike, and the true survival."""
    scale, shape, left = 4.0, 1.0, rng.uniform(0, 15, n)
    if kind == "weibull":
        scale, shape = 5.0, 2.0
    if kind == "heavy censoring":
        scale, left = 8.0, rng.exponential(3, n)
    if kind == "few events":
        scale, left = 4_000.0, rng.uniform(0, 20, n)
    death, end = scale * rng.weibull(shape, n), np.minimum(left, 10)
    arm = rng.random(n) < 0.4
    return (
        np.minimum(death, end),
        death <= end,
        arm,
        lambda t: np.exp(-((t / scale) ** shape)),
    )


def _counts(found: Any) -> SurvivalCounts:
    """What a curve was read from."""
    kept = [cell.cell_contents for cell in found.simulate.__closure__]
    (counts,) = (one for one in kept if isinstance(one, SurvivalCounts))
    return counts


def _greenwood(counts: SurvivalCounts) -> tuple[Any, Any]:
    """Ends by the usual formula, of noisy counts that are taken for exact."""
    table = np.maximum(counts.released, 0)
    n, d = counts.watched(table), table[:, 1, :-1]
    hazard = np.cumsum(d / n, axis=1)
    reach = 1.96 * np.sqrt(np.cumsum(d / n**2, axis=1))
    return np.exp(-hazard - reach).ravel(), np.exp(-hazard + reach).ravel()


def _mantel(counts: SurvivalCounts) -> bool:
    """Whether the usual log-rank test rejects, of such counts."""
    table = np.maximum(counts.released, 0)
    n, d = counts.at_risk(table), table[:, 1, :-1]
    both, events = n.sum(axis=0), d.sum(axis=0)
    part = n[1] / both
    score = float((d[1] - events * part).sum())
    return score**2 > 3.8415 * max(1e-9, float((events * part * (1 - part)).sum()))


def _told(name: str, hits: int, runs: int, low: float, high: float, open_: float = 0.0) -> Any:
    good = within(hits, runs, low, high) or (open_ > 0.5 and hits / runs >= low)
    return f"{name} {hits / runs:.3f}", good


@row(400)
def curves(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Kaplan-Meier: pointwise at five times, of two arms together, bands; 20 bins to 10."""
    at = np.array([1, 4, 9, 14, 19])
    for cell, (n, epsilon, kind) in enumerate(TIMES):
        side = BOTH[cell % 2]
        point, plug, band, empty = 0, 0, 0, 0.0
        for _ in range(runs):
            time, event, arm, truth_at = _times(rng, n, kind)
            found: Any = inference.kaplan_meier(
                time,
                event,
                by=arm,
                levels=[False, True],
                bounds=(0, 10),
                epsilon=epsilon,
                neighbours=side,
                draws=DRAWS,
                seed=rng,
            )
            truth = np.tile(truth_at(found.edges[1:]), 2)
            ends, wide = found.interval(0.95), found.band(0.95).reshape(-1, 2)
            held = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
            low, high = _greenwood(_counts(found))
            naive = (low <= truth) & (truth <= high)
            # One arm and time a run, in turn, so that runs are independent.
            place = int(at[rng.integers(5)]) + 20 * int(rng.integers(2))
            point, plug = point + int(held[place]), plug + int(naive[place])
            band += bool(np.all((wide[:, 0] <= truth) & (truth <= wide[:, 1])))
            empty += float(np.mean(ends[:, 0] == 0)) / runs
        pointwise, good = _told("pointwise", point, runs, LOW, HIGH, 2 * empty)
        simultaneous, held_ = _told("band", band, runs, LOW, HIGH, 2 * empty)
        yield (
            f"{side:<10} n {n:6,} eps {epsilon:3} {kind:<16} {pointwise}  {simultaneous}  "
            f"plug-in {plug / runs:.3f}  open {empty:.2f}",
            good and held_,
        )


@row(600)
def logrank(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """The log-rank test of two arms that are alike, .4 and .6 of the people."""
    for cell, (n, epsilon, kind) in enumerate(TIMES):
        side = BOTH[cell % 2]
        wrong = naive = 0
        for _ in range(runs):
            time, event, arm, _ = _times(rng, n, kind)
            asked: dict[str, Any] = {"levels": [False, True], "bounds": (0, 10)}
            asked |= {"epsilon": epsilon, "neighbours": side, "draws": DRAWS, "seed": rng}
            wrong += inference.logrank_test(time, event, arm, **asked).pvalue <= 0.05
            naive += _mantel(_counts(inference.kaplan_meier(time, event, by=arm, **asked)))
        told, good = _told("size", wrong, runs, 0.035, 0.06)
        yield (
            f"{side:<10} n {n:6,} eps {epsilon:3} {kind:<16} {told}  plug-in {naive / runs:.3f}",
            good,
        )


def _events(rng: np.random.Generator, n: int, kind: str, rate: float) -> tuple[Any, Any, Any, Any]:
    """Events, time, strata and groups of which the second has twice the rate."""
    band, group = rng.integers(0, 4, n), rng.random(n) < 0.4
    years = rng.uniform(0, 5, n)
    mixed: Any = np.ones(n)
    if kind == "gamma-mixed":
        mixed = rng.gamma(1, 1, n)
    if kind == "mostly zero":
        mixed = 4.0 * (rng.random(n) < 0.25)
    mean = rate * (1 + band) / 2.5 * np.where(group, 2, 1) * mixed * years
    return np.minimum(rng.poisson(mean), 12), years, band, group


def _rate_cells(
    runs: int, rng: np.random.Generator, truth: Any, ask: Any, naive: Any
) -> Iterator[tuple[str, bool | None]]:
    for cell, (n, epsilon, kind, rate) in enumerate(EVENTS):
        side = BOTH[cell % 2]
        held = plug = open_ = wrong = 0
        kept: dict[str, Any] = {"epsilon": epsilon, "neighbours": side, "most_time": 5}
        kept |= {"most_events": 4 if kind in ("poisson", "few events") else 12}
        kept |= {"draws": DRAWS, "seed": rng}
        if kind in ("gamma-mixed", "mostly zero"):
            kept["family"] = "negative-binomial"
        for _ in range(runs):
            rows = _events(rng, n, kind, rate)
            found, at = ask(rows, kept), truth(rate)
            low, high = found.interval(0.95)
            held += low <= at <= high
            wrong += found.test(at) <= 0.05
            open_ += low == 0 or math.isinf(high)
            left, right = naive(found)
            plug += left <= at <= right
        told, good = _told("held", held, runs, LOW, HIGH, open_ / runs)
        yield (
            f"{side:<10} n {n:6,} eps {epsilon:3} {kind:<12} {told}  size {wrong / runs:.3f}  "
            f"plug-in {plug / runs:.3f}  open {open_ / runs:.2f}",
            good,
        )


def _poisson_ends(found: Any) -> tuple[float, float]:
    """Of a rate: by the logarithm, of noisy events that are taken for exact."""
    events = max(found.events, 0.5)
    reach = math.exp(1.96 / math.sqrt(events))
    return found.estimate / reach, found.estimate * reach


def _model(found: Any) -> Any:
    """What a rate was read from."""
    return found.simulate.__self__


def _ratio_ends(found: Any) -> tuple[float, float]:
    """Of a ratio of rates: 1/y + 1/y' of its noisy events."""
    events = np.maximum(_model(found)._events.sum(axis=0), 0.5)
    reach = math.exp(1.96 * math.sqrt(float((1 / events).sum())))
    return found.estimate / reach, found.estimate * reach


@row(400)
def rates(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """The rate of the first group."""

    def ask(rows: Any, kept: dict[str, Any]) -> Any:
        y, t, _, g = rows
        return inference.rate(y[~g], t[~g], **kept)

    yield from _rate_cells(runs, rng, lambda rate: rate, ask, _poisson_ends)


@row(400)
def rate_ratios(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """The second group's rate over the first's: 2."""

    def ask(rows: Any, kept: dict[str, Any]) -> Any:
        y, t, _, g = rows
        return inference.rate_ratio(y, t, g, levels=[False, True], **kept)

    yield from _rate_cells(runs, rng, lambda rate: 2.0, ask, _ratio_ends)


@row(400)
def standardised_rates(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Directly standardised to weights 1, 1, 1, 3 of four strata."""

    def ask(rows: Any, kept: dict[str, Any]) -> Any:
        y, t, s, g = rows
        old = {0: 1, 1: 1, 2: 1, 3: 3}
        return inference.standardised_rate(y[~g], t[~g], s[~g], weights=old, **kept)

    yield from _rate_cells(runs, rng, lambda rate: rate * 18 / 15, ask, _poisson_ends)


@row(400)
def standardised_ratios(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """Of two directly standardised rates: 2."""

    def ask(rows: Any, kept: dict[str, Any]) -> Any:
        y, t, s, g = rows
        two: dict[str, Any] = {"by": g, "levels": [False, True]}
        old = {0: 1, 1: 1, 2: 1, 3: 3}
        return inference.standardised_ratio(y, t, s, weights=old, **two, **kept)

    yield from _rate_cells(runs, rng, lambda rate: 2.0, ask, _ratio_ends)


def _robins(model: StrataModel) -> tuple[float, float]:
    """Robins, Breslow and Greenland's interval, of noisy counts that are taken for exact."""
    table = np.maximum(model.table, 0.5)
    d, c, b, a = table[:, 0, 0], table[:, 0, 1], table[:, 1, 0], table[:, 1, 1]
    n = table.sum(axis=(1, 2))
    upper, lower, agree = a * d / n, b * c / n, (a + d) / n
    top, bottom = upper.sum(), lower.sum()
    spread = (agree * upper).sum() / (2 * top**2)
    spread += (agree * lower + (1 - agree) * upper).sum() / (2 * top * bottom)
    spread += ((1 - agree) * lower).sum() / (2 * bottom**2)
    reach = math.exp(1.96 * math.sqrt(spread))
    return top / bottom / reach, top / bottom * reach


@row(600)
def mantel_haenszel(runs: int, rng: np.random.Generator) -> Iterator[tuple[str, bool | None]]:
    """The odds ratio over strata: 1 in even cells (whose test is of a true null), 2 in others."""
    cells = [
        (30, 3.0, 3, 0.3),
        (300, 0.5, 4, 0.3),
        (400, 3.0, 8, 0.2),
        (2_000, 1.0, 4, 0.2),
        (5_000, 0.1, 6, 0.05),
        (20_000, 0.3, 10, 0.05),
        (50_000, 1.0, 10, 0.01),
    ]
    for cell, (n, epsilon, strata, share) in enumerate(cells):
        side, truth = BOTH[cell % 2], 1.0 + cell % 2
        held = plug = wrong = open_ = 0
        for _ in range(runs):
            band = rng.integers(0, strata, n)
            exposed = rng.random(n) < 0.3 + 0.4 * band / strata
            odds = share / (1 - share) * (1 + band / strata) * np.where(exposed, truth, 1)
            ill = rng.random(n) < odds / (1 + odds)
            found = inference.mantel_haenszel(
                ill,
                exposed,
                band,
                categories=list(range(strata)),
                epsilon=epsilon,
                neighbours=side,
                null=truth,
                draws=DRAWS,
                seed=rng,
            )
            low, high = found.interval(0.95)
            held += low <= truth <= high
            wrong += found.pvalue <= 0.05
            open_ += low == 0 or math.isinf(high)
            left, right = _robins(_model(found))
            plug += left <= truth <= right
        told, good = _told("held", held, runs, LOW, HIGH, open_ / runs)
        yield (
            f"{side:<10} n {n:6,} eps {epsilon:3} {strata:2} strata, {share:4}: {told}  size "
            f"{wrong / runs:.3f}  plug-in {plug / runs:.3f}  open {open_ / runs:.2f}",
            good,
        )


if __name__ == "__main__":
    raise SystemExit(main())
