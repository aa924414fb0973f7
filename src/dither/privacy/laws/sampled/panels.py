"""Gauss's rule on panels for the loss of Gaussians on Poisson samples, with a proven error.

Far along a line Re t = c the integrand e^{-z²/2 + (c + iu)·l(z)} turns as fast as u·l' tells, which
is a·rate·u where most of the mass is, and a·u for large z. The trapezoidal rule's one step is that
of the fastest turn; panels are long where it is slow, and end where one likes.

On a panel of middle m and half-width w the rule of n points errs by at most (64/15)·w·F·r^{-2(n-1)}
/(1 - r^{-2}), F a bound of the integrand's modulus on the ellipse of foci m ± w whose half-axes are
A = w·(r + 1/r)/2 and B = w·(r - 1/r)/2 [1]_, theorem 19.3. There Re z is in [m - A, m + A], and
|Im z| <= B. With theta = a·B <= pi/2 and Y = a·(m + A) - a²/2, |e^l| is at most e^l at m + A, at
least (1 - g) + g·e^{Y'}·cos(theta) with Y' at m - A (its real part), and its argument is at most

    arctan(g·e^Y·sin(theta)/((1 - g) + g·e^Y·cos(theta)))

which grows with Y and with theta.

References
----------
.. [1] Trefethen, "Approximation Theory and Approximation Practice", SIAM 2013.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dither.numeric._balls import precision
from dither.privacy.laws.term import Array

__all__ = ["POINTS", "RULE_ERROR", "panel_edges", "panel_error", "panel_nodes"]


POINTS = 32

RULE_ERROR = 1e-15
"""More than a weight of the rule errs by of itself, or a point of a half-width."""

_ELLIPSES = (1.6, 2.2, 3.0, 4.0, 6.0, 9.0, 14.0)

_LONGEST, _TURNS, _AHEAD = 1.2, 13.0, 1.0
"""The longest half-width, and by about how much the integrand's logarithm may change on one. They
only decide how large the error is, which is charged."""

_FINE, _ASKED = 0.1, 4


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    """Points in [-1, 1] and their weights, rounded from balls."""
    with precision(100) as flint:
        pairs = [flint.arb.legendre_p_root(POINTS, k, weight=True) for k in range(POINTS)]
        found = np.array([[float(x.mid()), float(w.mid())] for x, w in pairs])
    found = found[np.argsort(found[:, 0])]
    return found[:, 0], found[:, 1]


def panel_edges(a: Array, g: Array, speed: float, low: float, high: float) -> Array:
    """Ends of panels from low to high, shorter where speed·l' is large for any of the kinds.

    Parameters
    ----------
    a, g : array, shape (n, 1)
        Of the kinds.
    speed : float
        How much an exponent changes with l.
    """
    # Some kinds stand for all: any panels are as sound, and the error is charged.
    some = np.linspace(0, len(a) - 1, min(len(a), _ASKED)).astype(int)
    a, g = a[some], g[some]
    z = np.linspace(low, high, 2 + math.ceil((high - low) / _FINE))
    # The slope is largest at a panel's far end, which depends on its length: two rounds are near.
    ahead = np.full_like(z, _LONGEST)
    for _ in range(2):
        # Where the panel's end, and the ellipse around it, will be.
        with np.errstate(over="ignore"):
            slope = (a / (1 + (1 - g) / g * np.exp(0.5 * a * a - a * (z + ahead)))).max(axis=0)
        half = 1 / (speed * slope / _TURNS + 1 / _LONGEST)
        ahead = _AHEAD * half
    density = 0.5 / half
    steps = 0.5 * (density[1:] + density[:-1]) * np.diff(z)
    along = np.concatenate([[0.0], np.cumsum(steps)])
    count = math.ceil(float(along[-1]))
    edges: Array = np.interp(np.linspace(0.0, float(along[-1]), count + 1), along, z)
    # The ends exactly, as what lies beyond them is charged.
    edges[0], edges[-1] = low, high
    return edges


def panel_nodes(edges: Array) -> tuple[Array, Array]:
    """All points, and the logarithms of their weights."""
    points, weights = _rule()
    half = 0.5 * np.diff(edges)
    middle = edges[:-1] + half
    z = (middle[:, None] + half[:, None] * points).ravel()
    return z, np.log(half[:, None] * weights).ravel()


def panel_error(
    a: Array, g: Array, c: float, u: float, removal: bool, edges: Array, log_moment: Array
) -> Array:
    """At least what the rule errs by on lines up to u, of each kind and in parts of M(c).

    ``log_moment``, of shape (n,), is log M(c) or less.
    """
    half = 0.5 * np.diff(edges)
    middle = edges[:-1] + half
    r = np.array(_ELLIPSES)[:, None, None]
    wide, tall = half * (r + 1 / r) / 2, half * (r - 1 / r) / 2
    left, right = middle - wide, middle + wide
    # e^{-z²/2} is largest on the ellipse where |Re z| is least.
    near = np.where(left * right > 0, np.minimum(left * left, right * right), 0.0)
    theta = a * tall
    grown = a * right - 0.5 * a * a
    large = g * np.exp(np.minimum(grown, 600.0))
    cosine = np.cos(theta)
    # The largest argument of e^l: at the right end, on top.
    turned = 0.0
    if u > 0:
        turned = u * np.arctan2(large * np.sin(theta), (1 - g) + large * cosine)
    if removal:
        size = np.log1p(large - g)
        if (grown >= 600.0).any():
            size = np.where(grown < 600.0, size, np.logaddexp(np.log1p(-g), np.log(g) + grown))
        size = (1 + c) * size
    else:
        small = g * np.exp(np.minimum(a * left - 0.5 * a * a, 600.0)) * cosine
        # At least (1 - g) + g·e^{Y'}·cos(theta), as its real part is.
        with np.errstate(invalid="ignore", divide="ignore"):
            size = -c * np.log1p(small - g)
    off = size - 0.5 * near + 0.5 * tall * tall + turned
    off = off + np.log(64 / 15 * half / (1 - r**-2)) - 2 * (POINTS - 1) * np.log(r)
    # Only ellipses below theta = pi/2, with room for its rounding.
    best = np.where(theta < 0.49 * math.pi, off, np.inf).min(axis=0)
    with np.errstate(over="ignore"):
        each = np.exp(best - log_moment[:, None] - 0.5 * math.log(2 * math.pi))
    # Exponents of up to 10^5 round by some 1e-10.
    result: Array = each.sum(axis=1) * 1.001
    return result
