"""The least rho of a bounded loss: the supremum of D_a/a over all orders, certified.

With K(c) = log E[e^{cL}] of a direction, D_{1+c}/(1+c) = f(c) = K(c)/(c(c+1)). K is convex and
K(0) = 0. So on [0, b] f is at most K(b)/b; on [a, b] K is below its chord, and by Hoeffding's lemma
K(c) <= c·E[L] + c²·R/8 with R the sum of squares of the ranges of the losses that are added, where
E[L] <= K(b)/b for every b. A tilted loss has a third moment of at most its longest range r times
its variance, so log K'' changes by at most r·|c - c'|, and the chord may be lowered by what K'' is
at least. Beyond any c f is at most top/(1 + c). Intervals are halved where these bounds stand above
the largest f that was found.

For randomised response K(c) = h(c + 1/2) - h(1/2), h(t) = log cosh(t·epsilon), and h is concave in
t²; since c(c + 1) = t² - 1/4, the supremum is at c = 0 and is epsilon·tanh(epsilon/2). Any
epsilon-DP mechanism is a random map of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dither.privacy._side import PARAMETERS, Side
from dither.privacy.engines.balls.laws import line_moment
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.term import EPS, Array, Term

__all__ = ["concentration"]


_FIRST, _POINTS = 1e-8, 40
"""The first order, and points of a first round; the mean bounds what lies before."""

_ENOUGH = 1e-8
"""A relative width with which one is content."""

_MOST, _MOST_BALLS = 20_000, 400
"""Points: of sums, and of integrals."""

_SMALL = 0.5
"""The largest exponent whose e^x - 1 is summed as such."""


def concentration(this: Side) -> tuple[float, float] | None:
    """Ends of sup D_a/a in one direction; None where the losses are not bounded."""
    terms = this.upper_terms
    if not this.exact or not terms or this.fails or not 0 < this.top < math.inf:
        return None
    # Left-out mass may lie anywhere, and no bounded range holds it.
    if any(isinstance(t, AtomTerm) and (t.unbounded or t.lost > 0) for t in terms):
        return None
    if not all(isinstance(t, AtomTerm | LaplaceTerm | SampledLineTerm) for t in terms):
        return None
    singles = [single for term in terms for single in term.singles()]
    ranges = [(_range(term), count) for term, count in singles]
    # A square, a product and a sum for each kind of loss.
    short = EPS * (4 + len(ranges))
    hoeffding = sum(count * length**2 for length, count in ranges) / 8 * (1 + short)
    longest = max(length for length, _ in ranges)
    balls = any(isinstance(t, SampledLineTerm) for t in terms)
    c = np.array([_FIRST])
    low, high = _moments(terms, c)
    # K is convex and K(0) = 0, so that K(b)/b bounds the mean loss, and f on all of (0, b].
    mean = float(high[0]) / _FIRST
    best = max(0.0, float(low[0]) / (_FIRST * (1 + _FIRST)))
    # No scale to refine to: (mean + c·R/8)/(1 + c) lies between the mean and R/8 at every c.
    if best <= 0:
        return 0.0, max(mean, hoeffding)
    # Beyond the last point f is below what was found at the first.
    last = max(this.top / best, 2 * _FIRST)
    more = np.geomspace(_FIRST, last, _POINTS)[1:]
    while more.size and len(c) + len(more) <= (_MOST_BALLS if balls else _MOST):
        c = np.concatenate([c, more])
        found = _moments(terms, more)
        low, high = np.concatenate([low, found[0]]), np.concatenate([high, found[1]])
        order = np.argsort(c)
        c, low, high = c[order], low[order], high[order]
        # Every point gives a lower end of the supremum; its product and quotient round down.
        best = max(best, float((low / (c * (c + 1))).max()) * (1 - 4 * EPS))
        above = _chords(c, low, high, longest)
        # A chord to a moment that left the doubles says nothing.
        above = np.minimum(np.nan_to_num(above, nan=np.inf), _hoeffding(c, mean, hoeffding))
        wide = np.flatnonzero((above > best * (1 + _ENOUGH)) & (c[1:] > c[:-1] * (1 + 1e-9)))
        # Halved in log c, as orders span many powers of ten.
        more = np.sqrt(c[wide] * c[wide + 1])
    top = max(mean, float(above.max()), this.top / (1 + last))
    # Which is more than chords lose: their summands are at most 4·K, and round ten times.
    return best * (1 - PARAMETERS), max(best, top) * (1 + PARAMETERS)


def _range(term: Term) -> float:
    """A length that the losses of one repetition stay within: all of them are bounded.

    An end of a sample is mapped with some 6 roundings of itself, and 0 lies between the ends.
    """
    low, high = term.ends(1e-300)
    off = term.position if isinstance(term, AtomTerm) else 0.0
    return (high - low + 2 * off) * (1 + 8 * EPS)


def _hoeffding(c: Array, mean: float, eighth: float) -> Array:
    """(mean + c·R/8)/(1 + c) moves from the mean towards R/8: its larger end on each interval."""
    value = (mean + c * eighth) / (1 + c)
    result: Array = np.maximum(value[:-1], value[1:])
    return result


def _chords(c: Array, low: Array, high: Array, longest: float) -> Array:
    """The largest (chord - bend·(c - a)(b - c)/2)/(c(c + 1)) on each interval.

    That is (A + B·c + C·c²)/(c(c + 1)) with C = bend/2: largest at an end, or where its derivative
    is 0, at (B - C)·c² + 2·A·c + A = 0.
    """
    left, right, k = c[:-1], c[1:], high
    slope = (k[1:] - k[:-1]) / (right - left)
    bend = _bends(c, low, high, longest) / 2
    constant = k[:-1] - slope * left + bend * left * right
    linear = slope - bend * (left + right)
    borders = np.maximum(k[:-1] / (left * (left + 1)), k[1:] / (right * (right + 1)))
    lead = linear - bend
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.sqrt(np.maximum(constant * constant - lead * constant, 0.0))
        roots = [(-constant + sign * turn) / lead for sign in (1.0, -1.0)]
    for root in roots:
        # Any place between is a value of the function: a root that is none, or outside, does no
        # harm.
        at = np.clip(np.nan_to_num(root, nan=_FIRST), left, right)
        value = (constant + linear * at + bend * at * at) / (at * (at + 1))
        borders = np.maximum(borders, value * (1 + 8 * EPS))
    result: Array = borders
    return result


def _bends(c: Array, low: Array, high: Array, longest: float) -> Array:
    """Lower bounds of K'' on each interval, from the second differences at its ends."""
    a, m, b = c[:-2], c[1:-1], c[2:]
    with np.errstate(over="ignore", invalid="ignore"):
        rise = (low[2:] - high[1:-1]) / (b - m) - (high[1:-1] - low[:-2]) / (m - a)
    # Where a moment leaves the doubles nothing is known of K'' but that it is at least 0.
    rise = np.where(np.isfinite(rise), rise, 0.0)
    # Neighbours are 1e-9 of themselves apart, so that a rise could lose 9 digits; but it is one of
    # the moments' ends, which are apart by more than what it rounds by.
    # A second difference is K'' somewhere in [a, b], and K'' elsewhere at least e^{-r·(b - a)} of
    # it.
    found = np.maximum(2 * rise / (b - a) * np.exp(-longest * (b - a)), 0.0) * (1 - 1e-9)
    # Each interval lies in the spans of two differences, but for the outer ones: the better holds.
    result: Array = np.maximum(np.append(0.0, found), np.append(found, 0.0))
    return result


def _moments(terms: Sequence[Term], c: Array) -> tuple[Array, Array]:
    """Ends of K."""
    low, high = np.zeros_like(c), np.zeros_like(c)
    for term in terms:
        if isinstance(term, ResponseTerm):
            ends = np.array([term.moment_ends(x) for x in c.tolist()]).T
        elif isinstance(term, SampledLineTerm):
            ends = np.array([line_moment(term, x) for x in c.tolist()]).T
        elif isinstance(term, AtomTerm):
            ends = _of_atoms(term, c)
        else:
            assert isinstance(term, LaplaceTerm)
            value, off = term.log_moment(c), term.moment_error(c)
            ends = np.stack([value - off, value + off])
        low, high = low + ends[0], high + ends[1]
    return low, high


def _of_atoms(term: AtomTerm, c: Array) -> Array:
    """Where exponents are small 1 + Σ p·(e^{cL} - 1), whose error is one of Σ p·|e^{cL} - 1|."""
    losses, p = term.losses, term.probabilities
    # The masses of a law sum to 1; what was stated otherwise is charged.
    gap = abs(math.fsum(p.tolist()) - 1)
    gap = 0.0 if gap <= term.relative + len(p) * EPS else gap
    value = term.log_moment(c)
    slack = term.moment_error(c, value) + term.count * gap
    small = c * float(np.abs(losses).max()) < _SMALL
    rise = np.expm1(c[small][:, None] * losses)
    total = (p * rise).sum(axis=1)
    size = (p * np.abs(rise)).sum(axis=1)
    off = size * (term.relative + EPS * (8 + len(p))) + 2 * c[small] * term.position + gap
    # log1p of a sum of expm1: the masses' sum, 1, and its rounding never enter.
    value[small] = term.count * np.log1p(total)
    # A logarithm's slope at 1 + total, which is above 1/2.
    slack[small] = term.count * (2 * off + 4 * EPS * np.abs(total))
    return np.stack([value - slack, value + slack])
