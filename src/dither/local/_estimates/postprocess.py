"""Estimates made to look like shares: what each rule does, and what it costs.

A raw estimate is unbiased and may be negative or sum to something else than 1. Every rule here is
post-processing: it needs no privacy and takes away the unbiasedness.

Source. Wang, Lopuhaä-Zwakenberg, Li, Skoric and Li, "Locally differentially private frequency
estimation with consistency", NDSS 2020; Duchi, Shalev-Shwartz, Singer and Chandra, ICML 2008
(projection).

`nonnegative` solves least squares over coefficients of at least 0, by the active-set method on
normal equations (Lawson and Hanson, "Solving least squares problems", 1974, chapter 23; Bro and de
Jong, Journal of Chemometrics 1997).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError

Array = npt.NDArray[np.float64]


def clip(shares: Array) -> Array:
    """Negative shares become 0 and those above 1 become 1; the sum is left as it falls."""
    return np.asarray(np.clip(shares, 0.0, 1.0))


def norm_sub(shares: Array) -> Array:
    """Zero the negative shares and take one amount off the others, so that they sum to 1.

    The amount delta solves sum of max(0, f_i - delta) = 1 over the positive shares. It is `project`
    wherever the positive shares sum to 1 or more; where they sum to less, shares of 0 stay 0.
    """
    kept = shares > 0
    if not kept.any():
        return np.full(shares.size, 1 / shares.size)
    found = np.zeros(shares.size)
    found[kept] = project(shares[kept])
    return found


def project(shares: Array, total: float = 1.0) -> Array:
    """The nearest point, in squared distance, of the simplex {f >= 0, sum f = total}.

    With f sorted downwards, delta = (sum of the first r - total)/r for the largest r at which
    the r-th share is above it.
    """
    ordered = np.sort(shares)[::-1]
    over = (np.cumsum(ordered) - total) / np.arange(1, shares.size + 1)
    r = int(np.flatnonzero(ordered > over)[-1])
    return np.asarray(np.maximum(shares - over[r], 0.0))


def base_cut(shares: Array, errors: Array, *, quantile: float = 2.0) -> Array:
    """Set to 0 what is within `quantile` standard errors of 0; the rest stays as it is."""
    return np.where(shares >= quantile * errors, shares, 0.0)


def isotonic(shares: Array, *, decreasing: bool = False) -> Array:
    """The nearest monotone sequence in squared distance, by pooling adjacent violators."""
    flipped = -shares if decreasing else shares
    means: list[float] = []
    sizes: list[int] = []
    for share in flipped.tolist():
        mean, size = share, 1
        while means and means[-1] >= mean:
            mean = (means[-1] * sizes[-1] + mean * size) / (sizes[-1] + size)
            size += sizes[-1]
            means.pop()
            sizes.pop()
        means.append(mean)
        sizes.append(size)
    found = np.repeat(means, sizes)
    return -found if decreasing else found


RULES: dict[str, Callable[[Array, Array], Array]] = {
    "none": lambda shares, errors: shares,
    "clip": lambda shares, errors: clip(shares),
    "norm_sub": lambda shares, errors: norm_sub(shares),
    "base_cut": base_cut,
    "project": lambda shares, errors: project(shares),
    "increasing": lambda shares, errors: isotonic(shares),
    "decreasing": lambda shares, errors: isotonic(shares, decreasing=True),
}


def no_rule(name: str, what: str) -> None:
    """Refuse a rule for shares where it makes no sense."""
    if _checks.choice("postprocess", name, RULES) != "none":
        raise ArgumentError(f"postprocess is not for {what}")


def postprocess(name: str, shares: Array, errors: Array) -> Array:
    """Apply a rule by name to raw estimates and their standard errors."""
    return RULES[_checks.choice("postprocess", name, RULES)](shares, errors)


def nonnegative(gram: Array, moments: Array, limit: int | None = None) -> Array:
    """The f >= 0 with the least f'Gf - 2f'm, for G = A'A, positive semi-definite, and m = A'y.

    Where f is 0 the gradient G f - m is at least 0, to rounding; elsewhere it is 0. Stops when
    `limit` coefficients are above 0: those that explained most were let in first.
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
        # Else by least squares: both read the same counts, and no guarantee rests on how.
        if np.abs(gram @ found - moments).max() <= 1e-9 * max(1.0, np.abs(moments).max()):
            return found
    except np.linalg.LinAlgError:
        pass
    return np.asarray(np.linalg.lstsq(gram, moments, rcond=None)[0])
