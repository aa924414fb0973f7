"""Audits of whole releases: samples of two neighbours' noisy measurements against a claim.

An audit is told two exact answers of neighbours and the priced plan, and sees what ``add_noise``
gives. Its events are fixed in advance: cuts of the log-likelihood ratio of the two answers under
the claimed noise, which tell most, and cuts of the differences between coordinates, in which noise
that is used twice vanishes. The bounds of each probability are Clopper and Pearson's, at a joint
level of 1e-7 an audit; so a true claim is refuted with probability at most 1e-7.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from dither.mechanisms import DiscreteLaplace
from dither.plan.answers import ExactAnswer
from dither.plan.job import Leaves
from dither.query._noise import NoisePlan, add_noise, on_grid

LEVEL = 1e-7
Samples = npt.NDArray[np.float64]


def exact_parts(priced: NoisePlan, answer: ExactAnswer) -> list[npt.NDArray[np.int64]]:
    """What each measurement would release without noise, over the public groups, flat."""
    from itertools import product

    keys = list(product(*(key.values or () for key in priced.plan.job.keys)))
    grid = on_grid(keys, answer, priced.plan.job.measurements)
    return [
        np.concatenate([level.ravel() for level in priced.trees[i].counts(grid[i].dense())])
        if isinstance(measurement, Leaves)
        else grid[i].astype(np.int64).ravel()
        for i, measurement in enumerate(priced.plan.job.measurements)
    ]


def released_parts(priced: NoisePlan, answer: ExactAnswer) -> list[npt.NDArray[np.int64]]:
    """One noisy draw, in the shape of ``exact_parts``."""
    noisy = add_noise(priced, answer, 0.95).values
    return [
        np.concatenate([level.ravel() for level in noisy[i]])
        if isinstance(noisy[i], list)
        else np.asarray(noisy[i]).astype(np.int64).ravel()
        for i in range(len(priced.plan.job.measurements))
    ]


def statistics(
    claimed: NoisePlan,
    drawn: NoisePlan,
    answer: ExactAnswer,
    pair: tuple[ExactAnswer, ExactAnswer],
    draws: int,
) -> Samples:
    """Of each draw: the log-likelihood ratio of the pair, and differences of coordinates.

    ``drawn`` makes the noise, ``claimed`` is what its law is said to be.
    """
    zero, one = (exact_parts(claimed, a) for a in pair)
    moved = [np.flatnonzero(a != b) for a, b in zip(zero, one, strict=True)]
    still = [np.flatnonzero(a == b) for a, b in zip(zero, one, strict=True)]
    found = np.empty((draws, 2))
    for n in range(draws):
        parts = released_parts(drawn, answer)
        ratio = gap = 0.0
        for i, y in enumerate(parts):
            noise = claimed.noises[i]
            assert noise is not None
            if isinstance(noise, DiscreteLaplace):
                loss = (np.abs(y - zero[i]) - np.abs(y - one[i])) / float(noise.scale)
            else:
                loss = ((y - zero[i]) ** 2 - (y - one[i]) ** 2) / (2 * float(noise.sigma2))
            ratio += float(loss.sum())
            if moved[i].size and still[i].size:
                gap += float(y[moved[i][0]] - y[still[i][0]])
        found[n] = ratio, gap
    return found


def refuted(here: Samples, there: Samples, epsilon: float, delta: float) -> bool:
    """Whether samples of statistics on two neighbours refute (epsilon, delta)."""
    cuts = [np.quantile(both, np.linspace(0.01, 0.99, 25)) for both in _columns(here, there)]
    # The cuts come from the first samples and are judged on the others.
    level = LEVEL / (8 * sum(len(c) for c in cuts))
    one, two = (s[_choosing(s) :] for s in (here, there))
    for column, edges in enumerate(cuts):
        for edge in edges:
            a, b = one[:, column] >= edge, two[:, column] >= edge
            for p, q in ((a, b), (b, a), (~a, ~b), (~b, ~a)):
                if _lower(p, level) > math.exp(epsilon) * _upper(q, level) + delta:
                    return True
    return False


def _columns(here: Samples, there: Samples) -> list[Samples]:
    first = here[: _choosing(here)], there[: _choosing(there)]
    return [np.concatenate([part[:, c] for part in first]) for c in range(here.shape[1])]


def _choosing(samples: Samples) -> int:
    """How many of the samples choose the cuts."""
    return len(samples) // 6


def _lower(event: npt.NDArray[np.bool_], level: float) -> float:
    hits = int(event.sum())
    return float(beta.ppf(level, hits, event.size - hits + 1)) if hits else 0.0


def _upper(event: npt.NDArray[np.bool_], level: float) -> float:
    hits = int(event.sum())
    return float(beta.ppf(1 - level, hits + 1, event.size - hits)) if hits < event.size else 1.0


def audit(
    claimed: NoisePlan, drawn: NoisePlan, pair: tuple[ExactAnswer, ExactAnswer], draws: int = 4_000
) -> bool:
    """Whether what ``drawn`` releases on two neighbours refutes what ``claimed`` costs."""
    here, there = (statistics(claimed, drawn, a, pair, draws) for a in pair)
    charge = claimed.charge
    assert charge.epsilon is not None
    return refuted(here, there, float(charge.epsilon), float(charge.delta))


def with_noise(priced: NoisePlan, change) -> NoisePlan:  # type: ignore[no-untyped-def]
    """The plan with each of its noises exchanged."""
    return replace(priced, noises={i: n and change(n) for i, n in priced.noises.items()})


def narrower(noise, factor: Fraction = Fraction(1, 2)):  # type: ignore[no-untyped-def]
    """The same law at a fraction of its scale."""
    if isinstance(noise, DiscreteLaplace):
        return DiscreteLaplace(noise.scale * factor)
    return type(noise)(noise.sigma2 * factor * factor)
