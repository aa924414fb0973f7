"""Shuffled randomised response of two answers: the counts' own laws, over all inputs of the others.

The count of ones is all that the shuffled reports are, and delta is convex in the law of each other
report, so the worst are others of fixed inputs, j of them holding 1. With a = p/(p + 1) and S_j the
law of Bin(j, a) + Bin(n-1-j, 1-a), the reports are S_j + Ber(a) against S_j + Ber(1-a), and delta
is the largest over j. j and n-1-j are the two directions of one another. The worst j is not 0 or
n-1 in general: it moves with epsilon.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["LISTED", "counted"]


Array = npt.NDArray[Any]

LISTED = 1000
"""Reports whose counts are listed, for every j."""

_EPS = 2.0**-52


def counted(n: int, p: float, epsilon: float) -> tuple[float, float]:
    """Ends of delta(epsilon): the largest over j, with every mass off by a known part of itself."""
    first, second, off = _counts(n, p)
    e = math.exp(epsilon)
    low = np.maximum(first * (1 - off) - e * (1 + 2 * _EPS) * second * (1 + off), 0.0)
    high = np.maximum(first * (1 + off) - e * (1 - 2 * _EPS) * second * (1 - off), 0.0)
    # Sums of at most n + 1 positive numbers; what underflows is below 1e-300 each.
    rough = (n + 2) * _EPS
    most = float(high.sum(axis=1).max()) * (1 + rough) + 1e-290
    return float(low.sum(axis=1).max()) * (1 - rough), min(1.0, most)


@lru_cache(maxsize=2)
def _counts(n: int, p: float) -> tuple[Array, Array, float]:
    """For every j, the laws of the count of ones under the victim's two inputs.

    All are sums of products of positive numbers. A binomial law is made a trial at a time, with two
    products and a sum each; two of them are joined by sums of at most n products; and a and 1 - a
    err by five roundings each, n times.
    """
    a, b = p / (p + 1), 1 / (p + 1)
    laws = [np.ones(1)]
    for _ in range(n - 1):
        last = laws[-1]
        laws.append(np.append(last * b, 0.0) + np.append(0.0, last * a))
    whole = np.array([np.convolve(laws[j], laws[n - 1 - j][::-1]) for j in range(n)])
    empty = np.zeros((n, 1))
    stay, move = np.hstack([whole, empty]), np.hstack([empty, whole])
    off = _EPS * (3 * n + n + 5 * n + 16)
    return b * stay + a * move, a * stay + b * move, off
