"""The maximum of a likelihood over few shares, by Newton's steps, and how near it is for certain.

With t the shares of all reports and R the stacked matrices, L(f) = sum of t·log(f @ R) is concave.
Its rows sum to what t does, so L(c·f) = L(f) + log c, and over all f >= 0 the function L(f) - sum f
has its maximum where L has it on the simplex: no sum needs to be held. With the gradient
g = R @ (t/(f @ R)) - 1 and the curvature H = R diag(t/(f @ R)²) R', shares at 0 that g < 0 keeps
there are held, the others take a Newton step, and what falls below 0 is cut off; the step is
halved until L - sum f rises (Bertsekas' two-metric projection).

Certificate. L is concave, so on the simplex L(best) - L(f) <= g·(best - f) <= max over x of
(R @ (t/(f @ R)))_x - 1: the gap, which is 0 at the maximum alone (the conditions of Karush, Kuhn
and Tucker).

Source. Bertsekas, "Projected Newton methods for optimization problems with simple constraints",
SIAM Journal on Control and Optimization 1982.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["LARGEST", "gap_of", "maximum"]

Array = npt.NDArray[np.float64]

LARGEST = 512
"""The most shares for which the curvature is built: its cost grows with their cube."""

_HALVINGS = 40
_RISE = 1e-4
_RIDGE = 1e-15


def gap_of(matrix: Array, targets: Array, f: Array) -> float:
    """How much more, at most, any other shares could have of log-likelihood per report.

    Parameters
    ----------
    matrix : array of float, shape (k, reports)
    targets : array of float, shape (reports,)
        Shares of the reports.
    f : array of float, shape (k,)
        At least 0, with sum 1.
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

    Parameters
    ----------
    matrix : array of float, shape (k, reports)
        Chances of the reports of all channels, each times its channel's share of the reports.
    targets : array of float, shape (reports,)
        Shares of the reports, over all channels.
    tolerance : float
        Stop at a gap of at most this.
    max_iterations : int
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
