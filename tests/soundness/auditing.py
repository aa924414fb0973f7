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
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from dither.mechanisms import DiscreteLaplace
from dither.plan.answers import ExactAnswer, Histogram
from dither.plan.job import Leaves
from dither.query._noise import NoisePlan, _measured, add_noise, on_grid

LEVEL = 1e-7
AT_ONCE = 500
"""Draws that are made together."""
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


def released_parts(
    priced: NoisePlan, answer: ExactAnswer, draws: int
) -> list[npt.NDArray[np.int64]]:
    """Noisy draws, a row each, in the shape of ``exact_parts``.

    A public group is given its noise by itself, so that the groups of one release that has all of
    them many times are those of many releases.
    """
    job = priced.plan.job
    assert not priced.plan.discovered
    assert priced.plan.levels is None
    whole = add_noise(priced, answer, 0.95)
    grid = on_grid(whole.keys, answer, job.measurements)
    found = _measured(priced, {i: _repeated(v, draws) for i, v in grid.items()}, {}, 0.95)
    parts = []
    for i in range(len(job.measurements)):
        levels, once = (x if isinstance(x, list) else [x] for x in (found[i], whole.values[i]))
        rows = [np.asarray(level).astype(np.int64).reshape(draws, -1) for level in levels]
        assert [row.shape[1] for row in rows] == [np.size(level) for level in once]
        parts.append(np.concatenate(rows, axis=1))
    return parts


def _repeated(values: Any, times: int) -> Any:
    """The groups of a measurement, all of them so many times."""
    if not isinstance(values, Histogram):
        return np.tile(values, times)
    size = values.groups * values.bins
    places = (np.arange(times)[:, None] * size + values.places).ravel()
    counts = np.tile(values.counts, times)
    return Histogram(values.groups * times, values.bins, places, counts)


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
    found = np.zeros((draws, 2))
    for start in range(0, draws, AT_ONCE):
        here = found[start : start + AT_ONCE]
        for i, y in enumerate(released_parts(drawn, answer, len(here))):
            noise = claimed.noises[i]
            assert noise is not None
            if isinstance(noise, DiscreteLaplace):
                loss = (np.abs(y - zero[i]) - np.abs(y - one[i])) / float(noise.scale)
            else:
                loss = ((y - zero[i]) ** 2 - (y - one[i]) ** 2) / (2 * float(noise.sigma2))
            here[:, 0] += loss.sum(axis=1)
            if moved[i].size and still[i].size:
                here[:, 1] += y[:, moved[i][0]] - y[:, still[i][0]]
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
