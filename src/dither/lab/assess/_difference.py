"""Intervals of two shares of hits, and of their difference, that hold for few people and many.

Of n people who were in the table a are hit, of as many who were not b, and both are binomial, with
chances p and q. Of each *share* it is Clopper and Pearson's, at half of the level: of both together
the ends are wrong with probability at most the level.

An end of the *difference* is Newcombe's where that lies on its own side of 0, and else the farther
one of Newcombe's and of an exact end. Newcombe adds the squares of how far both shares reach, here
with Clopper and Pearson's ends in place of Wilson's. This is right where the law of a share is
nearly normal. Where p is near 1 and q near 0 both may be at their far ends at once, and his upper
end was too low up to ninety times as often as it may be. Its lower end errs so only where q is much
the larger.

The *exact end* combines both tails by Fisher. With F = Pr[A <= a | p] and G = Pr[B >= b | q], each
of them is at most u with probability at most u, and both are independent, so -log F - log G lies
above x with probability at most (1 + x)·e^-x, as a sum of two exponential ones would. The upper end
is the largest p - q where it does not, with (1 + x)·e^-x at half of the level. Let x be divided: p
has s of it, q has x - s. The end of p rises with s and is concave in it, the end of q rises with s
and is convex, as the logarithms of F and G are concave in p and q (they are beta laws of
log-concave density). So their difference is concave in s, and what lies between points that were
tried is bounded by the lines through them.

Source. Newcombe, "Interval estimation for the difference between independent proportions", 1998,
method 10; Fisher, "Statistical methods for research workers", 1932, section 21.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from dither._search import bisect
from dither._stats import clopper_pearson, lower_bound, upper_bound

__all__ = ["Ends", "difference", "share_ends"]

Ends = tuple[float, float]

_EDGE = 0.05
"""The share of x below which one of both is taken to have none."""
_ROUNDS = 12
_CLOSE = 5e-4
"""How much farther than the exact end what is given may be."""


def share_ends(hits: int, control_hits: int, people: int, level: float) -> tuple[Ends, Ends]:
    """Intervals of both shares; together they are wrong with probability at most ``level``."""
    return _ends(hits, people, level / 2.0), _ends(control_hits, people, level / 2.0)


@lru_cache(maxsize=4096)
def _ends(hits: int, people: int, level: float) -> Ends:
    """Kept, as many attacks hit nobody or everybody."""
    return clopper_pearson(hits, people, 1.0 - level)


def difference(hits: int, control_hits: int, people: int, level: float) -> Ends:
    """The interval of the difference of the shares, which is wrong with that probability at most.

    Examples
    --------
    >>> [round(x, 3) for x in difference(50, 50, 100, 0.05)]
    [-0.163, 0.163]
    >>> difference(10, 0, 10, 0.05)[1]
    1.0
    """
    upper = _upper(hits, control_hits, people, level)
    return -_upper(control_hits, hits, people, level), upper


@lru_cache(maxsize=4096)
def _upper(hits: int, control_hits: int, people: int, level: float) -> float:
    p, q = hits / people, control_hits / people
    near = _ends(hits, people, level)[1] - p, q - _ends(control_hits, people, level)[0]
    end = min(1.0, p - q + math.hypot(*near))
    return end if end < 0.0 else max(end, _exact(hits, control_hits, people, _budget(level)))


@lru_cache(maxsize=64)
def _budget(level: float) -> float:
    """x, where (1 + x)·e^-x is at most half of the level."""
    half = math.log(level / 2.0)
    return bisect(lambda x: math.log1p(x) - x <= half, 0.0, 2.0 - 2.0 * half, 1e-9)[1]


def _exact(hits: int, control_hits: int, people: int, x: float) -> float:
    """The largest p - q that is left, or a little more."""

    def high(s: float) -> float:
        return upper_bound(hits, people, math.exp(-s))

    def low(s: float) -> float:
        return lower_bound(control_hits, people, math.exp(-s))

    if hits == people:
        return 1.0 - low(x)
    if control_hits == 0:
        return high(x)
    # Where one has nearly nothing of x, the other has at most all of it.
    edges = max(high(_EDGE * x) - low(x), high(x) - low(_EDGE * x))
    inside = _largest(lambda s: high(s) - low(x - s), _EDGE * x, (1.0 - _EDGE) * x)
    return min(1.0, max(edges, inside))


def _largest(of: Callable[[float], float], left: float, right: float) -> float:
    """An upper bound of a concave function between two points."""
    at = [left, (left + right) / 2.0, right]
    value = [of(s) for s in at]
    bound = math.inf
    for _ in range(_ROUNDS):
        best = max(range(len(at)), key=value.__getitem__)
        bound = min(bound, value[best] + _above(at, value))
        if bound - value[best] <= _CLOSE:
            break
        # The longer side of the best point is halved.
        sides = [i for i in (best - 1, best) if 0 <= i < len(at) - 1]
        side = max(sides, key=lambda i: at[i + 1] - at[i])
        middle = (at[side] + at[side + 1]) / 2.0
        at.insert(side + 1, middle)
        value.insert(side + 1, of(middle))
    return bound


def _above(at: list[float], value: list[float]) -> float:
    """How far the function may lie above its largest value that is known."""
    best = max(value)
    far = 0.0
    for i in range(len(at) - 1):
        tops = []
        wide = at[i + 1] - at[i]
        # The line through the two points before lies above, and so does that of the two after.
        if i > 0:
            slope = (value[i] - value[i - 1]) / (at[i] - at[i - 1])
            tops.append(value[i] + max(0.0, slope) * wide)
        if i + 2 < len(at):
            slope = (value[i + 1] - value[i + 2]) / (at[i + 2] - at[i + 1])
            tops.append(value[i + 1] + max(0.0, slope) * wide)
        far = max(far, min(tops) - best)
    return far
