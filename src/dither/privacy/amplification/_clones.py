"""Divergences of shuffled reports: of clones, of the privacy blanket, of counts, and closed forms.

The pairs of laws, and the names, are those of `_shuffling`. Neighbours replace one unit's input;
every unit has the same kind of randomiser, and nobody sees who sent what.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither.errors import ArgumentError
from dither.privacy.amplification._binomials import half_tails, windowed

__all__ = [
    "LISTED",
    "blanket",
    "clones",
    "counted",
    "shuffle_clones_2021",
    "shuffle_clones_2023",
]


Array = npt.NDArray[Any]

LISTED = 1000
"""Reports of two answers whose counts are listed, for every j."""

_MASS = 2e-10
"""Relative charge on delta for binomial masses, which err by up to 2000·2^-53 of their exponents;
those are at most 745, or the mass is none. That is 1.7e-10; the rest is for sums and quotients."""

_SINGLE = 128
"""So few numbers of uniform answers are not divided at all."""

_EPS = 2.0**-52


def clones(n: int, p: float, epsilon: float, target: float) -> tuple[float, float]:
    """The divergence for any randomiser: a sum over C of binomial tails."""
    e = _at_most(epsilon)
    # What is cut is a billionth of delta, and charged; so below.
    c, chances, cut = windowed(n - 1, 2 / (p + 1), min(target, 0.1) * 1e-9)
    chances = chances / (p + 1)
    # P - e·Q at a = A + 1 of c + 1 is in proportion to p·a + (c+1-a) - e·(a + p·(c+1-a)), which is
    # above 0 beyond k; from above, as (e·p - 1)/((p - 1)(1 + e)) is 1 to all digits for large e.
    k = c + 1 - np.ceil((c + 1) * (p - e) / ((p - 1) * (1 + e)))
    s0, here, off = half_tails(c.astype(np.int64), k.astype(np.int64))
    s1 = s0 + here
    terms = chances * ((p - e) * s1 + (1 - e * p) * s0)
    # The coefficients are at most p and e·p, and e errs by as much as was taken from it; a product,
    # a difference and a sum round by half of EPS each. A k that rounding moved by one leaves out no
    # more than 3·EPS·(p - e) times the masses at k - 1 and k. Where k is c there is no s0.
    beside = here * (1 + k / (c + 1 - k))
    short = (6 + 2 * epsilon) * _EPS
    doubt = p * (off + short * s1) + (p - e) * short * beside
    doubt = chances * (doubt + p * e * (np.where(k < c, off, 0.0) + short * s0))
    return _charged(terms, doubt, _rough(n, 2 / (p + 1), len(c)), 2 * cut)


def _at_most(epsilon: float) -> float:
    """A number of at most e^epsilon, whose deltas are no smaller.

    The exponential errs by a unit, and by what its exponent differs from the number that was
    printed: half of EPS of it.
    """
    return math.exp(epsilon) * (1 - (2 + epsilon) * _EPS)


def blanket(
    n: int, p: float, epsilon: float, target: float, answers: tuple[int, int], classes: int
) -> tuple[float, float]:
    """The divergence among h of k answers, (k, h): M in some classes, each at its ends."""
    k, h = answers
    truth_more, other = (p - 1) / (k + p - 1), 1 / (k + p - 1)
    rate = h * other
    # What is cut is charged.
    m, chances, cut = windowed(n - 1, rate, min(target, 0.1) * 1e-9)
    first, last = int(m[0]), int(m[-1])
    mean = (n - 1) * rate
    starts = _classes(first, last, mean, mean * (1 - rate), classes)
    weights = np.add.reduceat(chances, starts - first)
    points = starts.tolist() if starts.size == m.size else [*starts.tolist(), last]
    each = [
        _uniform_blanket(int(point) + 1, h, truth_more, other, _at_most(epsilon), target)
        for point in points
    ]
    # A class of one number is its own greatest; else the next class's least is above it.
    # At a class's least N the divergence is largest, as it falls with N.
    high = float(weights @ [upper for _, upper in each[: starts.size]])
    low = float(weights @ [lower for lower, _ in each[-starts.size :]])
    rounding = _rough(n, rate, len(m)) * high
    return max(0.0, low - rounding), min(1.0, high + rounding + 2 * cut)


def _uniform_blanket(
    n: int, h: int, more: float, other: float, e: float, target: float
) -> tuple[float, float]:
    """E (h/n)·(more·(a - e·b) - other·n·(e - 1))+ for a, b among n uniform of h answers."""
    # What is cut is charged, in both sums.
    s, chances, cut = windowed(n, 2 / h, min(target, 0.1) * 1e-7)
    s, chances = s[s > 0], chances[s > 0] * (h / n) / 2
    level = other * n * (e - 1)
    # As in `clones`, from above.
    k = np.clip(s - np.ceil((s - level / more) / (1 + e)), 0, s)
    s0, here, off = half_tails((s - 1).astype(np.int64), k.astype(np.int64))
    s1 = s0 + here
    # E[a; a > k] = s/2·Pr[Bin(s-1) >= k], E[b; a > k] = s/2·Pr[Bin(s-1) > k].
    terms = chances * ((more * s - level) * s1 - (more * e * s + level) * s0)
    # As in `clones`, with coefficients of at most more·s + level and more·e·s + level; e - 1 errs
    # by as much of e, and what is made of n, other and more by 2·EPS of itself.
    short, rough = (6 + 2 * math.log(e)) * _EPS, other * n * e
    beside = here * (1 + k / np.maximum(s - k, 1.0))
    doubt = (more * s + level) * off + short * (more * s + rough) * (s1 + beside)
    doubt += (more * e * s + level) * np.where(k < s - 1, off, 0.0)
    doubt = chances * (doubt + short * (more * e * s + rough) * s0)
    return _charged(terms, doubt, _rough(n, 2 / h, len(s) + 1), 2 * cut * h * more)


def _rough(n: int, rate: float, length: int) -> float:
    """How far, in parts of itself, masses of Bin(n, rate) in a window may be off.

    A rate that errs by 2·EPS, of itself or of 1, moves log Pr[x] by 2·EPS·(x - n·rate)/(1 - rate).
    """
    return _MASS + 2 * _EPS * min(float(n), length / max(1 - rate, _EPS))


def _charged(terms: Array, doubt: Array, rough: float, cut: float) -> tuple[float, float]:
    """The ends of a sum whose summands err by ``doubt``, and by a part of themselves.

    What was cut is added; what underflows is below 1e-300.
    """
    total = float(np.clip(terms, 0, None).sum())
    error = rough * total + float(doubt.sum()) + 1e-300
    return max(0.0, total - error), min(1.0, total + error + cut)


def _classes(
    first: int, last: int, mean: float, variance: float, classes: int
) -> npt.NDArray[np.int64]:
    """Starts of classes of first..last: single numbers if few, else fine around the mean."""
    if last - first < _SINGLE:
        return np.arange(first, last + 1)
    inner = mean + math.sqrt(variance) * np.linspace(-3.5, 3.5, classes)
    inside = np.round(inner[(inner > first) & (inner <= last)]).astype(np.int64)
    return np.unique(np.append(inside, first))


def counted(n: int, p: float, epsilon: float) -> tuple[float, float]:
    """Ends of delta(epsilon): the largest over j, with every mass off by a known part of itself.

    p is rounded up from the e^epsilon_0 that it stands for, by up to (7 + 3/2·log p)·EPS of itself.
    A response at a smaller p is one at p, answered at random now and then, so that the upper end
    holds as it is; below, n coins' chances are off by as much. Where epsilon_0 is less than some
    1e-14·n that is more than delta itself, and the lower end is 0.
    """
    first, second, off = _counts(n, p)
    # p stands for a number that is a little less, which only the lower end has to mind.
    less = off + n * _EPS * (8 + 2 * math.log(p))
    # A unit of the exponential's, and what its exponent differs from the number that was printed.
    e, shaken = math.exp(epsilon), _EPS * (2 + epsilon)
    low = np.maximum(first * (1 - less) - e * (1 + shaken) * second * (1 + less), 0.0)
    high = np.maximum(first * (1 + off) - e * (1 - shaken) * second * (1 - off), 0.0)
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
    # The victim's own report: 1 with chance a for one input, and b for the other.
    return b * stay + a * move, a * stay + b * move, off


def shuffle_clones_2021(n: int, epsilon_0: float, delta: float) -> float:
    """Closed form of 2021: needs epsilon_0 <= log(n/(16·log(4/delta))).

    Parameters
    ----------
    n : int
        Reports, at least 1.
    epsilon_0 : float
        Of one report; above 0.
    delta : float
        In (0, 1).

    Returns
    -------
    float
        The central epsilon, rounded up.

    Raises
    ------
    ArgumentError
        An argument is out of range, or epsilon_0 above what the form is proved for.

    References
    ----------
    Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, theorem 3.1.

    Examples
    --------
    >>> shuffle_clones_2021(1_000_000, 1.0, 1e-6) < 0.05
    True
    """
    n, e0, d = _checked(n, epsilon_0, delta)
    room = n / (16 * math.log(4 / d))
    # Beyond it the theorem is not proved: nothing is claimed.
    if room <= 1 or e0 > math.log(room):
        raise ArgumentError("epsilon_0 is too large for this closed form; use shuffle(...)")
    e = math.exp(e0)
    inner = 8 * math.sqrt(e * math.log(4 / d) / n) + 8 * e / n
    return math.log1p(math.tanh(e0 / 2) * inner) * _above(e0)


def shuffle_clones_2023(n: int, epsilon_0: float, delta: float) -> float:
    """Closed form of 2023: needs epsilon_0 <= log(n/(8·log(2/delta)) - 1).

    Arguments, result and errors are as of `shuffle_clones_2021`.

    References
    ----------
    Feldman, McMillan and Talwar, SODA 2023, theorem 3.2.

    Examples
    --------
    >>> from dither.accounting import shuffle
    >>> shuffle_clones_2023(1_000_000, 4.0, 1e-6) > shuffle(1_000_000, 4.0).epsilon(1e-6)
    True
    """
    n, e0, d = _checked(n, epsilon_0, delta)
    room = n / (8 * math.log(2 / d)) - 1
    if room <= 0 or e0 > math.log(room):
        raise ArgumentError("epsilon_0 is too large for this closed form; use shuffle(...)")
    e = math.exp(e0)
    inner = 4 * math.sqrt(2 * math.log(4 / d) / ((e + 1) * n)) + 4 / n
    return math.log1p(math.expm1(e0) * inner) * _above(e0)


def _above(exponent: float) -> float:
    """A factor for a closed form's rounding, all of whose summands are positive.

    Some 12 operations, three functions with up to two units in their last places, and the exponent,
    which stands for the number that was printed and moves its exponentials by half of EPS of it.
    """
    return 1 + _EPS * (16 + exponent)


def _checked(n: int, epsilon_0: float, delta: float) -> tuple[int, float, float]:
    return (
        check.count("n", n),
        check.number("epsilon_0", epsilon_0, above=0, most=100),
        check.number("delta", delta, above=0, below=1),
    )
