"""How a likelihood of several parts is made large: by rounds of EM, or to its certified maximum.

`solve` runs the rounds of expectation maximisation, plain or sped up. `maximum` takes Newton's
steps over few shares, and says how near it is for certain.

Maximum. With t the shares of all reports and R the stacked matrices, L(f) = sum of t·log(f @ R) is
concave. Its rows sum to what t does, so L(c·f) = L(f) + log c, and over all f >= 0 the function
L(f) - sum f has its maximum where L has it on the simplex: no sum needs to be held. With the
gradient g = R @ (t/(f @ R)) - 1 and the curvature H = R diag(t/(f @ R)²) R', shares at 0 that g < 0
keeps there are held, the others take a Newton step, and what falls below 0 is cut off; the step is
halved until L - sum f rises (Bertsekas' two-metric projection).

Certificate. L is concave, so on the simplex L(best) - L(f) <= g·(best - f) <= max over x of
(R @ (t/(f @ R)))_x - 1: the gap, which is 0 at the maximum alone (the conditions of Karush, Kuhn
and Tucker).

Source. Bertsekas, "Projected Newton methods for optimization problems with simple constraints",
SIAM Journal on Control and Optimization 1982.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.local._numbers.linear import BinnedLaw, DenseMatrix

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Factor:
    """Reports of one channel, in bins: a factor of the likelihood."""

    linear: BinnedLaw | DenseMatrix
    counts: npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """Where the rounds ended; `log_likelihood` is per report, of these shares.

    `converged` says whether the rule stopped it, and not the greatest number of rounds; `gap` how
    much more, at most, any shares could have of log-likelihood per report, where that was
    certified.
    """

    shares: Array
    iterations: int
    log_likelihood: float
    converged: bool
    gap: float | None = None


def solve(
    parts: Sequence[Factor],
    tolerance: float,
    max_iterations: int,
    smooth: bool = False,
    *,
    fast: bool = False,
) -> Solved:
    """Run the rounds from the uniform distribution; the parts share one distribution of inputs.

    Stops where a round changes the log-likelihood per report by less than `tolerance`. With
    `smooth` each share is averaged with its neighbours after every round. With `fast` it leaps
    along the path that two rounds show (SQUAREM: Varadhan and Roland, Scandinavian Journal of
    Statistics 2008), where that does not lower the likelihood: it meets the maximum in far fewer
    rounds, and is of no use where the stop comes early on purpose.
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
    # Above 0, from which no round of EM ever moves a share away.
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


LARGEST = 512
"""The most shares for which the curvature is built: its cost grows with their cube."""

_HALVINGS = 40
_RISE = 1e-4
"""The part of a slope's promise that a step must keep (Armijo)."""
_RIDGE = 1e-15
"""A part of its trace that makes a curvature definite. Both decide how soon a top is found."""


def gap_of(matrix: Array, targets: Array, f: Array) -> float:
    """How much more, at most, any other shares could have of log-likelihood per report.

    `targets` are the shares of the reports; `f`, shape (k,), is at least 0, with sum 1.
    """
    seen = targets > 0
    chances = f @ matrix[:, seen]
    if (chances <= 0).any():
        return float("inf")
    return max(0.0, float((matrix[:, seen] @ (targets[seen] / chances)).max()) - 1)


def maximum(
    matrix: Array, targets: Array, tolerance: float, max_iterations: int
) -> tuple[Array, int, float]:
    """The shares of the greatest likelihood, the steps they took, and the gap that is left.

    `matrix`, shape (k, reports), has the chances of the reports of all channels, each times its
    channel's share of the reports; `targets` are the shares of the reports, over all channels.
    Stops at a gap of at most `tolerance`.
    """
    seen = targets > 0
    r, t = matrix[:, seen], targets[seen]
    k = r.shape[0]

    def height(f: Array) -> float:
        chances = f @ r
        return float(t @ np.log(chances) - f.sum()) if (chances > 0).all() else -np.inf

    f, steps = np.full(k, 1 / k), 0
    best, gap = f, gap_of(r, t, f)
    while gap > tolerance and steps < max_iterations:
        chances = f @ r
        slope = r @ (t / chances) - 1
        # Which shares a step leaves at 0: it moves the road to the maximum, and not the maximum.
        near = min(1e-6, float(np.abs(f - np.maximum(f + slope, 0)).sum()))
        free = (f > near) | (slope > 0)
        part = r[free] * (np.sqrt(t) / chances)
        curvature = part @ part.T
        curvature[np.diag_indices_from(curvature)] += _RIDGE * np.trace(curvature)
        step = np.zeros(k)
        step[free] = np.linalg.solve(curvature, slope[free])
        # Held shares that are not quite 0 go there.
        step[~free] = -f[~free]
        # Where reports leave a direction open its curvature is 0; no step need leave the simplex.
        now, length = height(f), min(1.0, 2 / max(float(np.abs(step).max()), 1e-300))
        for _ in range(_HALVINGS):
            found = np.maximum(f + length * step, 0.0)
            if height(found) >= now + _RISE * float(slope @ (found - f)) - 1e-15:
                break
            length /= 2
        else:
            break
        f, steps = found, steps + 1
        on_simplex = f / f.sum()
        left = gap_of(r, t, on_simplex)
        if left < gap:
            best, gap = on_simplex, left
    return best, steps, gap
