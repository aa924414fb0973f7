"""Figures 2, 5, 6 and 9: shares of values by GRR, URR, SDGRR and personalised SDGRR.

Errors by formula are given the users' values: the protocol's own noise, which repeated runs on one
data set have. Simulated errors are means over runs, as the paper's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from dither.examples.paper.figures import (
    EPSILONS,
    PaperCurve,
    PaperFigure,
    PaperPanel,
    exponent,
    runs_text,
    simulated,
)
from dither.local._frequency.graded import SDGRR, URR
from dither.local._frequency.grr import GRR
from dither.local._oracles import FiniteChannel
from dither.local._personal import Personal
from dither.local._planning import simulate

__all__ = [
    "HIGH",
    "MARGINALS",
    "USERS",
    "adversary_figure",
    "frequency_figures",
    "histogram_of",
    "shared_out",
    "variance_printed",
]

Array = npt.NDArray[np.float64]

USERS = 2_458_285
MARGINALS = {
    "EA": (44, 32, 17, 17, 70, 114, 39, 42, 40, 29, 225, 145, 26, 22, 92, 31, 10, 5),
    "MS": (215, 423, 17, 58, 65, 18, 204),
}
"""US census of 1990, per mille: years of school (18 values), marital status (7)."""

HIGH = {"EA": {25: 4, 50: 9, 75: 14}, "MS": {25: 2, 50: 4, 75: 5}}
"""How many values, the first of each list, are high at a quarter, a half and three quarters."""

PEOPLE = {25: 0.4, 50: 0.3, 75: 0.3}
"""Of the personalised mechanism: which people choose which share of high values."""


def histogram_of(name: str) -> npt.NDArray[np.int64]:
    """How many of the census's people hold each value."""
    weights = np.array(MARGINALS[name], dtype=np.float64)
    return np.asarray(np.floor(USERS * weights / weights.sum() + 0.5), dtype=np.int64)


def shared_out(histogram: npt.NDArray[np.int64]) -> dict[int, npt.NDArray[np.int64]]:
    """People of each value by what they choose; the choice does not depend on the value."""
    quarter = np.round(histogram * PEOPLE[25]).astype(np.int64)
    half = np.round(histogram * PEOPLE[50]).astype(np.int64)
    return {25: quarter, 50: half, 75: histogram - quarter - half}


def variance_printed(k: int, h: int, frequencies: Array, epsilon: float, n: int) -> Array:
    """Equation (12) of the paper: the variance of a low value's share, as printed."""
    e, m = math.exp(epsilon), k - h
    total = frequencies[:h].sum()
    return np.full(m, (k + e - 1 - total) * total / (n * (m + e - 1) ** 2))


def theory_figure() -> PaperFigure:
    """Figure 2: variances by formula, for even shares, k = 18."""
    k, n = 18, USERS
    even = np.full(k, 1 / k)
    curves = [PaperCurve("GRR", exponent([GRR(k, e).variance(even, n).mean() for e in EPSILONS]))]
    for share, h in HIGH["EA"].items():
        label = f"low values, {100 - share} % low"
        low = [SDGRR(k, range(h), e).variance(even, n)[h:].mean() for e in EPSILONS]
        printed = [variance_printed(k, h, even, float(e), n).mean() for e in EPSILONS]
        curves.append(PaperCurve(label, exponent(low)))
        curves.append(PaperCurve(label, exponent(printed), "printed"))
    return PaperFigure(
        2,
        "Variance of an estimated share, by formula",
        (PaperPanel("even shares, 18 values", "log10 variance", tuple(curves)),),
        "Dotted: equation (12) as printed takes the estimated total of high values as known.",
    )


def frequency_figures(runs: int, rng: np.random.Generator) -> list[PaperFigure]:
    """Figures 2, 5 and 6, with `runs` simulated surveys a point."""
    five, six = [], []
    for name in MARGINALS:
        histogram = histogram_of(name)
        k, high = histogram.size, HIGH[name]
        plain: dict[str, list[FiniteChannel]] = {
            "GRR": [GRR(k, e) for e in EPSILONS],
            "URR-25": [URR(k, range(high[25]), e) for e in EPSILONS],
            **{
                f"SDGRR-{share}": [SDGRR(k, range(h), e) for e in EPSILONS]
                for share, h in high.items()
            },
        }
        found = {label: _both(label, made, histogram, runs, rng) for label, made in plain.items()}
        mixed = _personalised(name, histogram, runs, rng)
        title = f"{name}, {k} values"
        five.append(
            PaperPanel(
                title,
                "log10 mean squared error",
                (*found["GRR"], *found["URR-25"], *found["SDGRR-25"], *mixed),
            )
        )
        rest = [found[label] for label in ("GRR", "SDGRR-25", "SDGRR-50", "SDGRR-75")]
        six.append(
            PaperPanel(title, "log10 mean squared error", tuple(c for pair in rest for c in pair))
        )
    return [
        theory_figure(),
        PaperFigure(
            5,
            "Error of estimated shares",
            tuple(five),
            f"Lines: by formula. Marks: simulated, {runs_text(runs)}. Personalised: weights n/σ², "
            "or one likelihood.",
        ),
        PaperFigure(
            6,
            "Error of estimated shares, by how many values are high",
            tuple(six),
            f"Lines: by formula. Marks: simulated, {runs_text(runs)}.",
        ),
    ]


def adversary_figure(runs: int, rng: np.random.Generator) -> PaperFigure:
    """Figure 9, guesses of high values; before it what it leaves out: of low ones, of the class."""
    rows: tuple[list[PaperPanel], ...] = ([], [], [])
    for name in MARGINALS:
        histogram = histogram_of(name)
        k, shares = histogram.size, histogram / histogram.sum()
        lows: list[PaperCurve] = []
        curves: list[PaperCurve] = []
        classes: list[PaperCurve] = []
        for label, h, make in _attacked(k, name):
            channels = [make(e) for e in EPSILONS]
            exact = [c.attack(shares, high=range(h)) for c in channels]
            blind = [_blind(c, shares, h) for c in channels]
            low, high = slice(h, k), slice(h)
            for curve, held, place in ((lows, low, 1), (curves, high, 0)):
                curve.append(PaperCurve(label, np.array([pair[place] for pair in blind])))
                curve.append(_guessed(label, channels, histogram, held, runs, rng))
            games = [attack.who_is_high for attack in exact]
            classes.append(PaperCurve(label, np.array([g.auc for g in games if g is not None])))
        rows[0].append(PaperPanel(f"{name}: a low value", "share guessed right", tuple(lows)))
        rows[1].append(PaperPanel(f"{name}: a high value", "share guessed right", tuple(curves)))
        area = "area under the ROC curve"
        rows[2].append(PaperPanel(f"{name}: is it a high one?", area, tuple(classes)))
    return PaperFigure(
        9,
        "What one report gives away",
        tuple(panel for row in rows for panel in row),
        "Values: no prior, as in the paper, which shows the high ones only; lines by formula, "
        f"marks simulated ({runs_text(runs)}). On high values SDGRR and GRR coincide. Class: who "
        "knows the shares guesses; 0.5 is blind.",
    )


def _attacked(k: int, name: str) -> Iterator[tuple[str, int, Callable[[str], FiniteChannel]]]:
    """Label, number of high values and maker of each attacked channel."""
    yield "GRR", HIGH[name][25], partial(GRR, k)
    for share, h in HIGH[name].items():
        yield f"SDGRR-{share}", h, partial(SDGRR, k, range(h))
        yield f"URR-{share}", h, partial(URR, k, range(h))


def _blind(channel: FiniteChannel, shares: Array, h: int) -> tuple[float, float]:
    """How often the guess without a prior is right on holders of high values, and of low ones."""
    right = channel.attack().per_value * shares
    return float(right[:h].sum() / shares[:h].sum()), float(right[h:].sum() / shares[h:].sum())


def _guessed(
    label: str,
    channels: Sequence[FiniteChannel],
    histogram: npt.NDArray[np.int64],
    held: slice,
    runs: int,
    rng: np.random.Generator,
) -> PaperCurve:
    """The share of holders of these values whose report is their value: the best blind guess."""
    holders = histogram[held]
    shares = []
    for channel in channels:
        truths = np.array([float(channel.exact(x, x)) for x in range(histogram.size)])[held]
        right = sum(int(rng.binomial(holders, truths).sum()) for _ in range(runs))
        shares.append(right / (runs * int(holders.sum())))
    found = np.array(shares)
    return PaperCurve(
        label, found, "simulated", np.sqrt(found * (1 - found) / (runs * int(holders.sum())))
    )


def _both(
    label: str,
    channels: list[FiniteChannel],
    histogram: npt.NDArray[np.int64],
    runs: int,
    rng: np.random.Generator,
) -> tuple[PaperCurve, PaperCurve]:
    n = int(histogram.sum())
    shares = histogram / n
    exact = [c.variance(shares, n).mean() for c in channels]
    seen = [
        [np.mean((_estimate(c, histogram, rng) - shares) ** 2) for _ in range(runs)]
        for c in channels
    ]
    return PaperCurve(label, exponent(exact)), simulated(label, seen)


def _estimate(
    channel: FiniteChannel, histogram: npt.NDArray[np.int64], rng: np.random.Generator
) -> Array:
    drawn = simulate(channel, histogram, rng)
    return channel.decode(drawn.counts, drawn.n)


def _personalised(
    name: str, histogram: npt.NDArray[np.int64], runs: int, rng: np.random.Generator
) -> list[PaperCurve]:
    """By formula with the best weights, and both ways of combining, simulated."""
    k, n = histogram.size, int(histogram.sum())
    shares, groups = histogram / n, shared_out(histogram)
    stacked = np.array(list(groups.values()))
    exact, weighted, pooled = [], [], []
    for e in EPSILONS:
        channels = {share: SDGRR(k, range(h), e) for share, h in HIGH[name].items()}
        each = [1 / channels[s].variance(shares, int(g.sum())) for s, g in groups.items()]
        precision = np.sum(each, axis=0)
        exact.append((1 / precision).mean())
        channel = Personal({f"{s} % high": c for s, c in channels.items()})
        drawn = [simulate(channel, stacked, rng) for _ in range(runs)]
        combined = [d.estimate(method="plugin").shares for d in drawn]
        weighted.append([np.mean((c - shares) ** 2) for c in combined])
        pooled.append(
            [np.mean((d.estimate(method="likelihood").shares - shares) ** 2) for d in drawn]
        )
    return [
        PaperCurve("SDGRR-Personalised", exponent(exact)),
        simulated("SDGRR-Personalised", weighted),
        simulated("one pooled likelihood", pooled),
    ]
