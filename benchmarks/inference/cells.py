"""Survival, rates, strata and logistic slopes in cells that were written down before any was run.

Run with ``python -m benchmarks.inference.cells [ROW ...] [--runs N]``. The cells are those of
`benchmarks.inference.paper`: four shapes (lognormal, zero-inflated, five-point, heavy-tailed), each
with 30, 300, 5,000 and 50,000 rows, epsilons of .1, 1 and 3 and both relations in turn. A shape is
that of times to an event, of how unlike people's rates are, of how people are spread over strata,
or of the column of a slope. Coverage is to be .93-.97 and size .035-.06; brackets are 99 % Monte
Carlo intervals, and a cell is missed where its own does not reach that. "open" is the share of
intervals of which an end tells nothing (0, 1 or infinite): nothing shorter holds where the noise
leaves all open, and more is no miss there.

Beside each stands what the same noisy numbers give to formulas that take them for exact
("plug-in"), as in `benchmarks.inference.survival`. No peer that installs (OpenDP, diffprivlib) has
any of these methods; they stand beside means in ``python -m benchmarks.inference.paper peers``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import dither as dt
from benchmarks.inference.estimates import ROWS, main, row, within
from benchmarks.inference.paper import CELLS
from benchmarks.inference.survival import (
    _counts,
    _greenwood,
    _mantel,
    _model,
    _poisson_ends,
    _ratio_ends,
    _robins,
)
from dither import inference
from dither._stats import clopper_pearson
from dither.query.tables._domain import middles

ROWS.clear()  # the rows of this file alone

Generator = np.random.Generator
Lines = Iterator[tuple[str, bool | None]]

DRAWS = 400
LIKE: dict[str, Callable[[Generator, int], Any]] = {
    "lognormal": lambda rng, n: rng.lognormal(-0.32, 0.8, n),
    "zero-inflated": lambda rng, n: rng.gamma(2, 1.25, n) * (rng.random(n) < 0.4),
    "five-point": lambda rng, n: (
        rng.choice([0, 0.5, 1, 2, 4], n, p=[0.3, 0.2, 0.2, 0.2, 0.1]) / 1.1
    ),
    "heavy-tailed": lambda rng, n: np.abs(rng.standard_t(2, n)) / 1.414,
}
"""How much more than others a person's rate is: about 1 in the middle."""

SPREAD: dict[str, list[float]] = {
    "lognormal": [0.36, 0.22, 0.16, 0.12, 0.09, 0.05],
    "zero-inflated": [0.4, 0.3, 0.3, 0.0, 0.0, 0.0],
    "five-point": [0.5, 0.2, 0.15, 0.1, 0.05],
    "heavy-tailed": [0.68, 0.17, 0.07, 0.04, 0.025, 0.015],
}
"""Shares of people in each stratum; some have nobody."""


def _told(name: str, hits: int, runs: int, low: float, high: float) -> tuple[str, bool]:
    ends = clopper_pearson(hits, runs, 0.99)
    shown = f"{name} {hits / runs:.3f} [{ends[0]:.3f}, {ends[1]:.3f}]"
    return shown, within(hits, runs, low, high)


def _held(hits: int, runs: int, open_: float, plug: int) -> tuple[str, bool]:
    shown, good = _told("held", hits, runs, 0.93, 0.97)
    good = good or (open_ / runs > 0.5 and hits / runs >= 0.93)
    return f"{shown}  open {open_ / runs:.2f}  plug-in {plug / runs:.3f}", good


def _cell(law: str, n: int, epsilon: float, side: str) -> str:
    return f"{law:<14} n {n:6,} eps {epsilon:<3} {side:<10}"


# --- times ----------------------------------------------------------------------------------------


def _times(rng: Generator, n: int, law: str) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Times, events, arms that are alike, and how they are asked for."""
    left = np.minimum(rng.uniform(0, 15, n), 10)
    asked: dict[str, Any] = {"bins": 20, "bounds": (0, 10)}
    if law == "lognormal":
        death = rng.lognormal(1.5, 0.8, n)
    elif law == "zero-inflated":
        death = rng.exponential(6, n) * (rng.random(n) < 0.9)
    elif law == "five-point":
        # Seen at five visits, where whoever has the event has it, and others may leave.
        death, left = 2 * np.ceil(rng.exponential(3, n)), 2 * np.ceil(left / 2)
        asked |= {"bins": 5, "censored": "end"}
    else:
        death = 3 * rng.pareto(1.2, n)
    return np.minimum(death, left), death <= left, rng.random(n) < 0.4, asked


def _survival(law: str, t: Any) -> Any:
    from scipy.special import ndtr

    if law == "lognormal":
        return ndtr((1.5 - np.log(t)) / 0.8)
    if law == "zero-inflated":
        return 0.9 * np.exp(-t / 6)
    return np.exp(-t / 6) if law == "five-point" else (1 + t / 3) ** -1.2


def _curve(rng: Generator, law: str, n: int, epsilon: float, side: str) -> tuple[Any, Any, Any]:
    rows = n if side == "replace" else int(rng.poisson(n))
    time, event, arm, asked = _times(rng, rows, law)
    asked |= {"by": arm, "levels": [False, True], "epsilon": epsilon, "neighbours": side}
    return (time, event), asked | {"draws": DRAWS, "seed": rng}, arm


@row(300)
def curves(runs: int, rng: Generator) -> Lines:
    """Kaplan-Meier of two arms: pointwise early (a fifth), halfway and late (the last but one)."""
    for law, n, epsilon, side in CELLS:
        hits, plug, open_, band = np.zeros(3, int), np.zeros(3, int), np.zeros(3), 0
        for _ in range(runs):
            rows, asked, _ = _curve(rng, law, n, epsilon, side)
            found: Any = inference.kaplan_meier(*rows, **asked)
            bins = len(found.edges) - 1
            truth = np.tile(_survival(law, found.edges[1:]), 2)
            ends, wide = found.interval(0.95), found.band(0.95).reshape(-1, 2)
            # One arm a run, so that what is counted is independent.
            at = np.array([bins // 5 - 1, bins // 2, bins - 2]) + bins * int(rng.integers(2))
            hits += (ends[at, 0] <= truth[at]) & (truth[at] <= ends[at, 1])
            open_ += (ends[at, 0] == 0) | (ends[at, 1] == 1)
            low, high = _greenwood(_counts(found))
            plug += (low[at] <= truth[at]) & (truth[at] <= high[at])
            band += bool(np.all((wide[:, 0] <= truth) & (truth <= wide[:, 1])))
        for name, h, o, p in zip(("early", "halfway", "late"), hits, open_, plug, strict=True):
            shown, good = _held(int(h), runs, float(o), int(p))
            yield f"{_cell(law, n, epsilon, side)} {name:<8} {shown}", good
        shown, good = _told("held", band, runs, 0.93, 1.0)
        yield f"{_cell(law, n, epsilon, side)} band     {shown} (all of both curves: no less)", good


@row(400)
def logrank(runs: int, rng: Generator) -> Lines:
    """The log-rank test of two arms that are alike, .4 and .6 of the people."""
    for law, n, epsilon, side in CELLS:
        wrong = naive = 0
        for _ in range(runs):
            rows, asked, arm = _curve(rng, law, n, epsilon, side)
            asked.pop("by")
            wrong += inference.logrank_test(*rows, arm, **asked).pvalue <= 0.05
            naive += _mantel(_counts(inference.kaplan_meier(*rows, by=arm, **asked)))
        shown, good = _told("size", wrong, runs, 0.035, 0.06)
        yield f"{_cell(law, n, epsilon, side)} {shown}  plug-in {naive / runs:.3f}", good


# --- rates ----------------------------------------------------------------------------------------

_MOST = 12


def _events(rng: Generator, n: int, law: str) -> tuple[Any, Any, Any, Any]:
    """Events, time, strata and groups of which the second has about twice the rate."""
    band, group, years = rng.integers(0, 4, n), rng.random(n) < 0.4, rng.uniform(0, 5, n)
    mean = 0.08 * (1 + band) / 2.5 * np.where(group, 2, 1) * LIKE[law](rng, n) * years
    return np.minimum(rng.poisson(mean), _MOST), years, band, group


@cache
def _true_rates(law: str) -> Any:
    """Of clamped events in each stratum and group, from four million rows, shape (4, 2)."""
    y, t, s, g = _events(np.random.default_rng(7), 4_000_000, law)
    place = 2 * s + g
    return (np.bincount(place, y) / np.bincount(place, t)).reshape(4, 2)


OLD = {0: 1, 1: 1, 2: 1, 3: 3}
_SHARES = np.array([1, 1, 1, 3]) / 6
_REFERENCE = {0: 0.03, 1: 0.05, 2: 0.07, 3: 0.1}

RATES: dict[str, tuple[Callable[[Any], float], Callable[..., Any], Callable[[Any], Any]]] = {
    "rate": (
        lambda true: float(true[:, 0].mean()),
        lambda y, t, s, g, **k: inference.rate(y[~g], t[~g], **k),
        _poisson_ends,
    ),
    "ratio": (
        lambda true: float(true[:, 1].mean() / true[:, 0].mean()),
        lambda y, t, s, g, **k: inference.rate_ratio(y, t, g, levels=[False, True], **k),
        _ratio_ends,
    ),
    "standardised": (
        lambda true: float(_SHARES @ true[:, 0]),
        lambda y, t, s, g, **k: inference.standardised_rate(y[~g], t[~g], s[~g], weights=OLD, **k),
        _poisson_ends,
    ),
    "of two": (
        lambda true: float(_SHARES @ true[:, 1] / (_SHARES @ true[:, 0])),
        lambda y, t, s, g, **k: inference.standardised_ratio(
            y, t, s, weights=OLD, by=g, levels=[False, True], **k
        ),
        _ratio_ends,
    ),
    "SMR": (
        lambda true: float(true[:, 0].mean() / np.mean(list(_REFERENCE.values()))),
        lambda y, t, s, g, **k: inference.standardised_ratio(
            y[~g], t[~g], s[~g], reference=_REFERENCE, **k
        ),
        _poisson_ends,
    ),
}


@row(300)
def rates(runs: int, rng: Generator) -> Lines:
    """Rates over person-time, by the variance that rows show; held is that a test does not reject.

    The plug-in takes events for Poisson's and its numbers for exact.
    """
    for law, n, epsilon, side in CELLS:
        true = _true_rates(law)
        asked: dict[str, Any] = {"family": "negative-binomial", "most_time": 5, "draws": DRAWS}
        asked |= {"most_events": _MOST, "epsilon": epsilon, "neighbours": side, "seed": rng}
        hits, plug, open_ = (dict.fromkeys(RATES, 0) for _ in range(3))
        for _ in range(runs):
            sample = _events(rng, n if side == "replace" else int(rng.poisson(n)), law)
            for name, (truth, ask, naive) in RATES.items():
                found = ask(*sample, **asked)
                hits[name] += found.test(truth(true)) > 0.05
                # Whether nothing at all is held against next to none, or against far more.
                open_[name] += found.test(1e-6) > 0.05 or found.test(1e6) > 0.05
                low, high = naive(found)
                plug[name] += low <= truth(true) <= high
        for name in RATES:
            shown, good = _held(hits[name], runs, open_[name], plug[name])
            yield f"{_cell(law, n, epsilon, side)} {name:<12} {shown}", good


# --- strata and slopes ----------------------------------------------------------------------------


@row(400)
def strata(runs: int, rng: Generator) -> Lines:
    """Mantel-Haenszel odds and risk ratios of 2, in turn, of strata that are unlike in size."""
    for i, (law, n, epsilon, side) in enumerate(CELLS):
        shares, measure = SPREAD[law], ("odds", "risk")[(i + i // 4) % 2]
        hits = plug = open_ = 0
        for _ in range(runs):
            rows = n if side == "replace" else int(rng.poisson(n))
            band = rng.choice(len(shares), rows, p=shares)
            exposed = rng.random(rows) < 0.3 + 0.4 * band / len(shares)
            base = 0.1 * (1 + band / len(shares)) * np.where(exposed, 2, 1)
            ill = rng.random(rows) < (base / (1 + base) if measure == "odds" else base)
            found = inference.mantel_haenszel(
                ill,
                exposed,
                band,
                categories=list(range(len(shares))),
                measure=measure,
                epsilon=epsilon,
                neighbours=side,
                draws=DRAWS,
                seed=rng,
            )
            hits += found.test(2.0) > 0.05
            open_ += found.test(1e-6) > 0.05 or found.test(1e6) > 0.05
            low, high = _robins(_model(found))
            plug += measure == "odds" and low <= 2.0 <= high
        shown, good = _held(hits, runs, open_, plug)
        if measure == "risk":
            shown = shown.rpartition("  plug-in")[0]
        yield f"{_cell(law, n, epsilon, side)} {measure:<5} {shown}", good


@row(400)
def slopes(runs: int, rng: Generator) -> Lines:
    """A logistic slope of a table; no plug-in is offered. "valid": of intervals that say they are.

    The question is a session's; the rows of each run are read into its cells here, as an engine
    does, and what is released and how it is read is the question's own. No file is written.
    """
    for law, n, epsilon, side in CELLS:
        question = _question(epsilon, side)
        held, valid, both, open_ = 0, 0, 0, 0
        for _ in range(runs):
            rows = n if side == "replace" else int(rng.poisson(n))
            x = np.minimum(LIKE[law](rng, rows), 4)
            ill = rng.random(rows) < 1 / (1 + np.exp(1 - 0.8 * x))
            scored = question._noisy.release(question._design.rows(_in_cells(question, x, ill)))
            found = question.read(scored, question._loss).simulated(draws=DRAWS, seed=rng)
            low, high = np.asarray(found.interval(0.95))[1]
            good, told = bool(low <= 0.8 <= high), bool(found.valid["x"])
            held, valid, both = held + good, valid + told, both + (good and told)
            open_ += not np.isfinite([low, high]).all()
        shown, within_goal = _held(held, runs, open_, 0)
        of_valid, _ = _told("held", both, valid, 0.93, 0.97) if valid else ("none", True)
        shown = f"{shown.rpartition('  plug-in')[0]}  valid {valid / runs:.2f}: {of_valid}"
        yield f"{_cell(law, n, epsilon, side)} {shown}", within_goal


def _question(epsilon: float, side: str) -> Any:
    """The logistic regression of a session, before any row of its table is read."""
    columns = {"x": {"bounds": [0, 4], "nullable": False}, "ill": {"nullable": False}}
    row_ = pl.DataFrame({"x": [1.0], "ill": [True]})
    with tempfile.TemporaryDirectory() as folder:
        policy: dict[str, Any] = {
            "budget": {"epsilon": 2 * epsilon, "delta": 1e-5, "ledger": f"{folder}/a.ledger"},
            "tables": {"people": {"columns": columns}},
        }
        policy["budget"]["neighbours"] = side.replace("-", "_").replace("replace", "replace_one")
        with dt.open(policy, sources={"people": row_}) as session:
            asked = session.table("people").infer(epsilon=epsilon, delta=1e-6)
            return asked.logistic_regression("ill ~ x")


def _in_cells(question: Any, x: Any, ill: Any) -> dict[str, Any]:
    """Rows as an engine gives them: each number as the middle of its cell."""
    attribute = question.domain.attributes[0]
    edges = np.array([float(edge) for edge in attribute.edges])
    places = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, attribute.inner - 1)
    return {"x": middles(attribute)[places], "ill": ill.astype(float)}


if __name__ == "__main__":
    raise SystemExit(main())
