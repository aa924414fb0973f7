"""The least rho of a bounded loss: the supremum of D_a/a over all orders, certified.

With K(c) = log E[e^{cL}] of a direction, D_{1+c}/(1+c) = K(c)/(c(c+1)). K is convex and K(0) = 0,
so on [a, b] it is below its chord, and by Hoeffding's lemma K(c) <= c·E[L] + c²·R/8 with R the sum
of squares of the ranges of the losses that are added. Both are taken between neighbouring points of
a fine grid; beyond its end K(c) <= c·top. Where K takes a quadrature Hoeffding's bound is told.

For randomised response K(c) = h(c + 1/2) - h(1/2), h(t) = log cosh(t·epsilon), and h is concave in
t²; since c(c + 1) = t² - 1/4, the supremum is at c = 0 and is epsilon·tanh(epsilon/2). Any
epsilon-DP mechanism is a random map of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dither.privacy.side import Side
from dither.privacy.terms import AtomTerm, LaplaceTerm, Term
from dither.privacy.terms.base import Array

__all__ = ["concentration", "quick"]

_FIRST, _LAST, _POINTS = 1e-7, 1e5, 12_000


def concentration(this: Side) -> float | None:
    """An upper bound of sup D_a/a in one direction; None where the losses are not bounded."""
    terms = this.upper_terms
    if not this.exact or terms is None or not terms or this.fails:
        return None
    if any(isinstance(t, AtomTerm) and (t.unbounded or t.lost > 0) for t in terms):
        return None
    singles = [single for term in terms for single in term.singles()]
    ends = [(term.ends(1e-300), count) for term, count in singles]
    if not all(math.isfinite(term.top()) for term in terms):
        return None
    spread = sum(count * (high - low) ** 2 for (low, high), count in ends) * (1 + 1e-12)
    mean = sum(t.mean() for t in terms) * (1 + 1e-13)
    if not quick(terms):
        return max(mean, spread / 8)
    c = np.geomspace(_FIRST, _LAST, _POINTS)
    k = sum((_moment(t, c) for t in terms), np.zeros_like(c))
    left, right = c[:-1], c[1:]
    slope = (k[1:] - k[:-1]) / (right - left)
    # (k + slope·(c - left))/(c(c + 1)) is largest at an end, or where its derivative is 0.
    rest = k[:-1] - slope * left
    borders = np.maximum(k[:-1] / (left * (left + 1)), k[1:] / (right * (right + 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        # slope·c² + 2·rest·c + rest = 0
        root = (-rest + np.sqrt(np.maximum(rest * rest - slope * rest, 0.0))) / slope
    root = np.clip(np.nan_to_num(root, nan=_FIRST), left, right)
    chord = np.maximum(borders, (rest + slope * root) / (root * (root + 1)))
    # (mean + c·R/8)/(1 + c) moves from the mean towards R/8.
    near = np.maximum(
        (mean + left * spread / 8) / (1 + left), (mean + right * spread / 8) / (1 + right)
    )
    first = max(mean, (mean + _FIRST * spread / 8) / (1 + _FIRST))
    last = sum(t.top() for t in terms) / (1 + _LAST)
    return max(first, float(np.minimum(chord, near).max()), last) * (1 + 1e-12)


def quick(terms: Sequence[Term]) -> bool:
    """Whether moments cost little: finite laws, and Laplaces."""
    return all(isinstance(t, AtomTerm | LaplaceTerm) for t in terms)


def _moment(term: Term, c: Array) -> Array:
    value = term.log_moment(c)
    slack = 1e-12 * np.abs(value) + 2e-14 * (1 + term.count)
    if isinstance(term, AtomTerm):
        slack = slack + term.count * (term.relative + c * term.position)
    result: Array = value + slack
    return result
