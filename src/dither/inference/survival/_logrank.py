"""The log-rank test: whether hazards of several arms are the same, from noisy counts.

With d of an arm's events in a bin, w those it had at risk through it (`SurvivalCounts.watched`),
and D, W those of all arms, U = Σ (d - D·w/W) of each arm but the first. Under the null releases are
simulated at the hazards of all arms together and each arm's own censoring, with fresh noise; the
statistic is U'V⁻¹U with V the covariance of the simulated U, and the p-value its place among them.
Bins in which all arms together cannot be told from none do not count.

Source. Mantel, "Evaluation of survival data and two new rank order statistics", Cancer Chemotherapy
Reports 1966; Peto and Peto, JRSS A 1972.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dither.inference.engine._errors import monte_carlo
from dither.inference.engine._inputs import Floats
from dither.inference.engine._result import PrivateTest, share_of_noise, too_few_rows
from dither.inference.survival._counts import SurvivalCounts
from dither.privacy import Loss

__all__ = ["logrank_of", "scores_of", "smallest_ratio"]


def scores_of(counts: SurvivalCounts, tables: Floats, used: Any) -> Floats:
    """U of each arm but the first, for tables of shape (..., arms, 2, K)."""
    # Fewer than one at risk are none: their part of the whole is next to nothing.
    watched = np.maximum(counts.watched(tables), 1e-9)
    whole = watched.sum(axis=-2, keepdims=True)
    events = tables[..., 1, :-1]
    expected = events.sum(axis=-2, keepdims=True) * watched / whole
    return np.asarray(((events - expected) * used).sum(axis=-1)[..., 1:])


def logrank_of(
    counts: SurvivalCounts,
    loss: Loss,
    assumptions: tuple[str, ...],
    title: str,
    rng: np.random.Generator,
    draws: int,
) -> PrivateTest:
    """The test, of counts of rows in memory or of a table's."""
    fitted = counts.fitted
    used = np.arange(counts.bins) < max(1, int(np.max(counts.reached)))
    watched = counts.watched(fitted)
    pooled = fitted[:, 1, :-1].sum(axis=0)
    # As many events as were released in all, where those of bins were cut at 0.
    pooled = pooled * min(
        1.0, max(1.0, float(counts.released[:, 1, :-1].sum())) / max(1.0, pooled.sum())
    )
    hazard = np.broadcast_to(pooled / watched.sum(axis=0), watched.shape)
    noise = counts.drawn(rng, draws)
    sizes = fitted.sum(axis=(1, 2))
    sampled = counts.sampled(rng, draws, sizes, hazard, counts.loss_hazards(fitted))
    alone = scores_of(counts, sampled, used)
    drawn = scores_of(counts, sampled + noise, used)
    middle = drawn.mean(axis=0)
    spread = np.atleast_2d(np.cov(drawn, rowvar=False))
    inverse = np.linalg.pinv(spread, hermitian=True)

    def statistic(scores: Floats) -> Floats:
        off = scores - middle
        return np.asarray(np.einsum("...i,ij,...j->...", off, inverse, off))

    found = float(statistic(scores_of(counts, counts.released, used)))
    simulated = statistic(drawn)
    whole, part = (float(np.sqrt(np.var(v, axis=0).sum())) for v in (drawn, alone))
    share = share_of_noise(max(whole**2 - part**2, 0.0) ** 0.5, min(part, whole))
    notes: Sequence[str] = ()
    if share > 0.8:
        rows = max(1.0, float(counts.released.sum()))
        # A guess of rows for a note: it promises nothing.
        needed = rows * share / max(1e-9, 1.0 - share)
        notes = (too_few_rows("the noise is most of what the arms differ by", needed),)
    return PrivateTest(
        title,
        loss,
        assumptions,
        tuple(notes),
        "the hazards of all arms are the same",
        found,
        monte_carlo(found, simulated),
        simulated,
        noise_share=share,
    )


def smallest_ratio(counts: SurvivalCounts, rng: np.random.Generator, draws: int = 1000) -> float:
    """The ratio of hazards that a test at 0.05 sees four times in five; infinite where none is.

    U has the middle log(ratio) times its variance of sampling, for ratios near 1.
    """
    fitted = counts.fitted
    watched = counts.watched(fitted)
    hazard = np.broadcast_to(fitted[:, 1, :-1].sum(axis=0) / watched.sum(axis=0), watched.shape)
    sizes, lost = fitted.sum(axis=(1, 2)), counts.loss_hazards(fitted)
    sampled = counts.sampled(rng, draws, sizes, hazard, lost)
    used = np.ones(counts.bins)
    alone = float(scores_of(counts, sampled, used)[:, 0].var())
    whole = float(scores_of(counts, sampled + counts.drawn(rng, draws), used)[:, 0].std())
    # What passes 1.96 deviations with the power 0.8 lies 0.84 further.
    off = (1.959964 + 0.841621) * whole / alone if alone > 0 else math.inf
    return math.exp(off) if off < 50 else math.inf
