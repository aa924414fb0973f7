"""Least squares over non-negative coefficients, by the active-set method on normal equations.

Source. Lawson and Hanson, "Solving least squares problems", 1974, chapter 23; Bro and de Jong,
Journal of Chemometrics 1997 (on the Gram matrix).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["nonnegative"]

Array = npt.NDArray[np.float64]


def nonnegative(gram: Array, moments: Array, limit: int | None = None) -> Array:
    """The f >= 0 with the least f'Gf - 2f'm, for G = A'A and m = A'y.

    Parameters
    ----------
    gram : array of float, shape (k, k)
        Positive semi-definite.
    moments : array of float, shape (k,)
    limit : int, optional
        Stop when so many coefficients are above 0: those that explained most were let in first.

    Returns
    -------
    array of float, shape (k,)
        Where it is 0 the gradient G f - m is at least 0, to rounding; elsewhere it is 0.
    """
    k = moments.size
    f, free = np.zeros(k), np.zeros(k, dtype=np.bool_)
    tolerance = 1e-10 * max(1.0, float(np.abs(moments).max(initial=0.0)))
    for _ in range(3 * k + 10):
        slope = np.where(free, -np.inf, moments - gram @ f)
        entering = int(slope.argmax())
        if slope[entering] <= tolerance or (limit is not None and free.sum() >= limit):
            break
        free[entering] = True
        while True:
            chosen = np.flatnonzero(free)
            solved = _solved(gram[np.ix_(chosen, chosen)], moments[chosen])
            if solved.min() > 0:
                f[:] = 0
                f[chosen] = solved
                break
            now = f[chosen]
            falling = solved <= 0
            # As far as the first coefficient that reaches 0; the newcomer at 0 may not stop it.
            steps = now[falling] / np.maximum(now[falling] - solved[falling], 1e-300)
            now = now + steps.min() * (solved - now)
            now[now <= 1e-15] = 0
            now[np.flatnonzero(falling)[steps.argmin()]] = 0
            f[chosen] = now
            free &= f > 0
            if not free.any():
                break
    return f


def _solved(gram: Array, moments: Array) -> Array:
    try:
        found = np.asarray(np.linalg.solve(gram, moments))
        if np.abs(gram @ found - moments).max() <= 1e-9 * max(1.0, np.abs(moments).max()):
            return found
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(gram, moments, rcond=None)[0])
