"""The rounds of expectation maximisation, plain or sped up, over a likelihood of several parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.local.means.bins import Linear

__all__ = ["Part", "Solved", "solve"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Reports of one channel, in bins: a factor of the likelihood.

    Parameters
    ----------
    linear : Linear
    counts : array of int64
        Of the bins of reports.
    """

    linear: Linear
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """Where the rounds ended.

    Parameters
    ----------
    shares : array of float, shape (bins,)
    iterations : int
    log_likelihood : float
        Per report, of these shares.
    converged : bool
        Whether the rule stopped it, and not the greatest number of rounds.
    gap : float, optional
        How much more, at most, any shares could have of log-likelihood per report, where that
        was certified.
    """

    shares: Array
    iterations: int
    log_likelihood: float
    converged: bool
    gap: float | None = None


def solve(
    parts: Sequence[Part],
    tolerance: float,
    max_iterations: int,
    smooth: bool = False,
    *,
    fast: bool = False,
) -> Solved:
    """Run the rounds from the uniform distribution; the parts share one distribution of inputs.

    Parameters
    ----------
    parts : sequence of Part
        All with as many bins of inputs.
    tolerance : float
        Stop where a round changes the log-likelihood per report by less.
    max_iterations : int
    smooth : bool
        Average each share with its neighbours after every round.
    fast : bool
        Leap along the path that two rounds show (SQUAREM), where that does not lower the
        likelihood. It meets the maximum in far fewer rounds, and is of no use where the stop
        comes early on purpose.

    References
    ----------
    Varadhan and Roland, Scandinavian Journal of Statistics 2008 (SQUAREM).
    """
    d, n = parts[0].linear.size, sum(int(part.counts.sum()) for part in parts)
    targets = [part.counts / n for part in parts]

    def step(f: Array) -> tuple[Array, float]:
        """One round, and the log-likelihood before it."""
        weights, likelihood = np.zeros(d), 0.0
        for part, target in zip(parts, targets, strict=True):
            chances = part.linear.forward(f)
            seen = target > 0
            likelihood += float(target[seen] @ np.log(chances[seen]))
            ratios = np.divide(target, chances, out=np.zeros_like(target), where=seen)
            weights += part.linear.back(ratios)
        found = f * weights
        found = _smoothed(found) if smooth else found
        return found / found.sum(), likelihood

    f = np.full(d, 1 / d)
    then, likelihood = step(f)
    rounds = 0
    while rounds < max_iterations:
        before, f = likelihood, then
        then, likelihood = step(f)
        rounds += 1
        if abs(likelihood - before) < tolerance:
            return Solved(f, rounds, likelihood, True)
        if fast and rounds < max_iterations:
            leap = _leap(f, then, step(then)[0])
            after, reached = step(leap)
            rounds += 2
            if reached > likelihood:
                f, then, likelihood = leap, after, reached
    return Solved(f, rounds, likelihood, False)


def _leap(f: Array, once: Array, twice: Array) -> Array:
    """SQUAREM's third step length, kept within the simplex."""
    r = once - f
    v = (twice - once) - r
    size = float(np.sqrt(v @ v))
    if size == 0:
        return twice
    length = max(1.0, float(np.sqrt(r @ r)) / size)
    if not math.isfinite(length):
        return twice
    found = np.maximum(f + 2 * length * r + length**2 * v, 1e-3 * twice)
    return np.asarray(found / found.sum())


def _smoothed(f: Array) -> Array:
    """(1, 2, 1)/4; at the ends (2, 1)/3."""
    found = 2 * f
    found[1:] += f[:-1]
    found[:-1] += f[1:]
    found[1:-1] /= 4
    found[[0, -1]] /= 3
    return found
