"""Amplification by shuffling: n local reports, each epsilon_0-DP, whose order is forgotten.

*Any randomiser.* With p = e^{epsilon_0}, everybody's report is, with chance 2/(p + 1), a clone: one
of the two laws that a victim's two inputs are mixtures of, at even odds. Shuffled reports are
post-processing of how many look like either [1]_ ::

    C ~ Bin(n-1, 2/(p+1)),  A ~ Bin(C, 1/2)
    P: (A + 1, C - A) with chance p/(p+1), else (A, C - A + 1);   Q: the same with chances exchanged

*Randomised response among k answers*, D = k + p - 1. Everybody's report is, with chance 1/D for
each answer, that answer whatever they hold; tell the attacker who else told the truth, and what is
left of the others are M ~ Bin(n-1, k/D) uniform answers (the privacy blanket [2]_). With N = M + 1
uniform answers, of which a are the victim's first input and b the second, the histogram has under
the two inputs densities w(a) and w(b) against N uniform answers::

    w(a) = (k/N)·(N/D + a·(p - 1)/D),   delta(epsilon) = E (w(a) - e^epsilon w(b))+

Given s = a + b, which is Bin(N, 2/k), a is Bin(s, 1/2): a sum of binomial tails. The expectation is
that of a convex function of a mean of N independent terms, so it falls as N grows (Jensen, since
the mean of N + 1 exchangeable terms is the conditional mean of that of N); therefore M is taken in
classes, each at its least N above and at its greatest below. The smaller of this bound and that of
any randomiser is told.

*Graded response*: where only h of the k answers are everybody's, and the two inputs are among them
(two high values of SDGRR), tell the attacker also whether the victim's answer is one of the h. The
same formula holds with k replaced by h and D as it was, and without the bound of any randomiser.

*Two answers*, few reports: exactly, over all inputs of the others; see `counted`.

The variation-ratio reduction of [3]_, theorem 4.7, is not used for randomised response: counted
over all histograms, three answers and three reports exceed it (epsilon_0 = 1, epsilon = 0.9, others
all holding the first input: 0.0182 against 0.0025), as a report that is not a clone tells so.

*Closed forms*, for comparison: [4]_, theorem 3.1, and [1]_, theorem 3.2.

Neighbours replace one unit's input. The local randomisers are the same for all units.

References
----------
.. [1] Feldman, McMillan and Talwar, "Stronger privacy amplification by shuffling for Rényi and
   approximate differential privacy", SODA 2023.
.. [2] Balle, Bell, Gascón and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019.
.. [3] Wang et al., "Privacy amplification via shuffling: unified, simplified, and tightened",
   VLDB 2024.
.. [4] Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._stats import bisect
from dither.errors import ArgumentError, nearest
from dither.numeric import log_upper
from dither.privacy import Bound, Charge, Loss, Neighbours
from dither.privacy._exact_shuffles import LISTED, counted
from dither.privacy.laws.atoms import ListedLaw
from dither.privacy.laws.part import AtMost

__all__ = ["Shuffled", "shuffle", "shuffle_clones_2021", "shuffle_clones_2023"]


Array = npt.NDArray[Any]

_ROUNDING = 1e-8
"""Relative charge on delta: binomial masses err by under 1e-10, thresholds and sums by less."""

_ROUGH = 2
"""Classes of uniform answers while the search is far from its end."""

_SINGLE = 128
"""So few numbers of uniform answers are not divided at all."""

_KINDS = ("any", "grr")

_CELLS = 400
"""Steps of a profile that is to compose; its chords lie above it by their square."""

_LEAST = 1e-14
"""A delta below which a profile that is to compose is charged as it is, at every epsilon."""

_MOST_REPORTS = 10**11
"""Sums over some 10·sqrt(n) counts stay small."""


@dataclass(frozen=True, slots=True)
class Shuffled:
    """The pair of laws that shuffled reports are post-processing of.

    Parameters
    ----------
    n : int
        Reports, at least 1.
    p : float
        e^{epsilon_0}, the largest ratio, above 1.
    answers : int or None
        Of randomised response; None for any randomiser.
    hidden : int or None
        How many of the answers everybody gives now and then: all of them, unless graded.
    classes : int
        Into how many the number of uniform answers is divided; more make the bounds closer.
    """

    n: int
    p: float
    answers: int | None = None
    hidden: int | None = None
    classes: int = 12

    def delta(self, epsilon: float) -> Bound:
        """A delta of the reports at an epsilon, rounding and cut tails included.

        One-sided, as the pair tells an attacker more than the reports do; but of two answers and at
        most 1,000 reports it is the reports' own.
        """
        e = check.number("epsilon", epsilon, least=0)
        low, high = self._ends(e)
        return Bound(low if self.listed else 0.0, high, self.method, one_sided=not self.listed)

    @property
    def listed(self) -> bool:
        """Whether the reports' laws are computed, for all inputs of the others."""
        return self.answers == self.hidden == 2 and self.n <= LISTED

    @property
    def method(self) -> str:
        """How the bounds are computed."""
        if self.listed:
            return "all counts, exactly"
        return "clones, numeric" if self.answers is None else "privacy blanket, numeric"

    def epsilon(self, delta: float) -> Bound:
        """An epsilon of the reports at a delta in (0, 1); one-sided where `delta` is."""
        low, high = self._epsilon_ends(check.number("delta", delta, above=0, below=1))
        low = min(low, high) if self.listed else 0.0
        return Bound(low, high, self.method, one_sided=not self.listed)

    def loss(self) -> Loss:
        """A loss that composes with others: any reports shuffled in this way, in one round.

        Neighbours replace one unit. The profile is taken at some hundreds of epsilons and joined by
        lines in e^epsilon, above it by convexity; the pair with that profile dominates. Only an
        upper end is known. Its `charge` is that of one report, which holds for all of them.

        Examples
        --------
        >>> from dither import privacy
        >>> round_ = shuffle(10_000, 1.0).loss()
        >>> both = 4 * round_ + privacy.gaussian(5.0, neighbours="replace")
        >>> both.epsilon(1e-6) < 4 * shuffle(10_000, 1.0).epsilon(1e-7) + 1.1
        True
        """
        words = f"shuffle({self.n}, {math.log(self.p):g})"
        if self.answers is not None:
            words += f" of {self.answers} answers"
        loss = Loss(((AtMost(self._law(words), words), 1),), Neighbours.REPLACE)
        return loss.with_charge(Charge.pure(log_upper(Fraction(self.p))))

    def _law(self, words: str) -> ListedLaw:
        rough = replace(self, classes=_ROUGH)
        top = math.log(self.p)
        last = top
        if rough._ends(top / 2, _LEAST)[1] < _LEAST:
            # Where the profile has all but ended, the rest is charged as infinite.
            last = bisect(lambda e: rough._ends(e, _LEAST)[1] < _LEAST, 0.0, top / 2, steps=12)[1]
        h = last / _CELLS
        grid = h * np.arange(_CELLS + 1)
        high = np.array([self._ends(float(e), _LEAST)[1] for e in grid])
        high[-1] = high[-1] if last < top else 0.0
        # Both signs: delta(-e) = 1 - e^-e + e^-e·delta(e), as the pair is symmetric.
        y = np.exp(np.concatenate([-grid[:0:-1], grid]))
        left = -np.expm1(-grid[:0:-1]) + np.exp(-grid[:0:-1]) * high[:0:-1]
        profile = _convex(y, np.concatenate([left, high]))
        # Q's mass above each point is minus the slope; P's is e^loss times Q's.
        slopes = np.diff(profile) / np.diff(y)
        under_q = np.diff(np.concatenate([[-(1 - profile[0]) / y[0]], slopes, [0.0]]))
        masses = np.maximum(under_q, 0.0) * y
        # What rounding took from the profile is given back at infinity.
        losses = np.log(y)
        short = 0.0
        for i in range(len(y)):
            found = float((masses[i + 1 :] * -np.expm1(losses[i] - losses[i + 1 :])).sum())
            short = max(short, float(profile[i]) - float(high[-1]) - found)
        infinite = float(high[-1]) + max(short, 0.0) + 1e-18
        return ListedLaw(words, -_CELLS * h, h, tuple(masses.tolist()), infinite, 1e-13)

    def _epsilon_ends(self, target: float) -> tuple[float, float]:
        """The least epsilon of the pair itself."""
        rough = replace(self, classes=_ROUGH)
        if rough._ends(0.0, target)[1] <= target:
            return 0.0, 0.0
        top = math.log(self.p) * (1 + 1e-15)
        if self.answers is None or self.listed:
            high = self._root(target, 1, 0.0, top, 1e-11)
            return self._root(target, 0, high * (1 - 1e-6), high, 1e-9), high
        return self._refined(target, rough._root(target, 1, 0.0, top, 1e-2))

    def _refined(self, target: float, near: float) -> tuple[float, float]:
        """Both ends of epsilon from one close by: the secant of log delta, then checked.

        The classes leave a gap of some 1e-3 of epsilon, so a closer search gains nothing.
        """
        goal = math.log(target)
        steps: list[tuple[float, tuple[float, float]]] = []

        def logs(e: float) -> tuple[float, float]:
            low, high = self._ends(e, target)
            steps.append((e, (math.log(max(low, 1e-320)), math.log(max(high, 1e-320)))))
            return steps[-1][1]

        def moved(end: int) -> float:
            (e0, l0), (e1, l1) = steps[-2:]
            slope = (l1[end] - l0[end]) / (e1 - e0)
            return e1 + (goal - l1[end]) / slope if slope < 0 else e1

        logs(near)
        logs(near * 0.998)
        high = min(near, max(0.0, moved(1)) * (1 + 2e-5))
        while logs(high)[1] > goal:
            high *= 1 + 2e-4
        low = min(high, max(0.0, moved(0)) * (1 - 2e-5))
        while low > 0 and logs(low)[0] < goal:
            low *= 1 - 5e-4
        return low, min(high, math.log(self.p) * (1 + 1e-15))

    def _root(self, target: float, end: int, low: float, high: float, tolerance: float) -> float:
        """Where an end of delta meets the target: just above for the upper end, else just below.

        Illinois' rule. The bracket is widened downwards until its lower side lies over the target.
        """

        def over(e: float) -> float:
            return math.log(max(self._ends(e, target)[end], 1e-320)) - math.log(target)

        f_high, width = min(over(high), -1e-12), high - low
        f_low = over(low)
        while f_low <= 0:
            if low == 0:
                return 0.0
            high, f_high = low, f_low - 1e-12
            low, width = max(0.0, low - 4 * width), 4 * width
            f_low = over(low)
        side = 0
        for _ in range(60):
            if high - low <= tolerance * high:
                break
            e = high - f_high * (high - low) / (f_high - f_low)
            e = min(max(e, low + tolerance / 3 * high), high - tolerance / 3 * high)
            f = over(e)
            if f <= 0:
                high, f_high = e, f
                f_low = f_low / 2 if side == -1 else f_low
                side = -1
            else:
                low, f_low = e, f
                f_high = f_high / 2 if side == 1 else f_high
                side = 1
        return high if end else low

    def _ends(self, epsilon: float, target: float = 1e-12) -> tuple[float, float]:
        if epsilon >= math.log(self.p):
            return 0.0, 0.0
        if self.answers is None or self.hidden is None:
            return self._clones(epsilon, target)
        if self.listed:
            return counted(self.n, self.p, epsilon)
        found = [self._blanket(epsilon, target, self.answers, self.hidden)]
        if self.hidden == self.answers:
            found.append(self._clones(epsilon, target))
        return min(low for low, _ in found), min(high for _, high in found)

    def _clones(self, epsilon: float, target: float) -> tuple[float, float]:
        """The divergence for any randomiser: a sum over C of binomial tails."""
        p, e = self.p, math.exp(epsilon)
        first, last, cut = _window(self.n - 1, 2 / (p + 1), min(target, 0.1) * 1e-9)
        c = np.arange(first, last + 1, dtype=float)
        masses = _binomial(c, self.n - 1, 2 / (p + 1)) / (p + 1)
        # P - e·Q at a = A + 1 of c + 1 is in proportion to p·a + (c+1-a) - e·(a + p·(c+1-a)).
        k = np.floor((c + 1) * (e * p - 1) / ((p - 1) * (1 + e)))
        s0, here = _half_tails(c.astype(np.int64), k.astype(np.int64))
        s1 = s0 + here
        terms = masses * ((p - e) * s1 + (1 - e * p) * s0)
        # Rounding acts on each summand before they cancel.
        size = masses * ((p - e) * s1 + (e * p - 1) * s0)
        return _charged(terms, size, 2 * cut)

    def _blanket(self, epsilon: float, target: float, k: int, h: int) -> tuple[float, float]:
        """The divergence among h of k answers: classes of M, each at its ends."""
        truth_more, other = (self.p - 1) / (k + self.p - 1), 1 / (k + self.p - 1)
        rate = h * other
        first, last, cut = _window(self.n - 1, rate, min(target, 0.1) * 1e-9)
        m = np.arange(first, last + 1, dtype=float)
        masses = _binomial(m, self.n - 1, rate)
        mean = (self.n - 1) * rate
        starts = _classes(first, last, mean, mean * (1 - rate), self.classes)
        weights = np.add.reduceat(masses, starts - first)
        points = starts.tolist() if starts.size == m.size else [*starts.tolist(), last]
        each = [
            _uniform_blanket(int(point) + 1, h, truth_more, other, math.exp(epsilon), target)
            for point in points
        ]
        # A class of one number is its own greatest; else the next class's least is above it.
        high = float(weights @ [upper for _, upper in each[: starts.size]])
        low = float(weights @ [lower for lower, _ in each[-starts.size :]])
        rounding = 1e-9 * high
        return max(0.0, low - rounding), min(1.0, high + rounding + 2 * cut)


def shuffle(
    n: int,
    epsilon_0: float,
    *,
    randomiser: str = "any",
    k: int | None = None,
    hidden: int | None = None,
) -> Shuffled:
    """Reports of n units, each epsilon_0-DP on its own, shuffled.

    Parameters
    ----------
    n : int
        Reports, at least 1.
    epsilon_0 : float
        In (0, 100].
    randomiser : {"any", "grr"}
        Any epsilon_0-DP randomiser, or k-ary randomised response.
    k : int, optional
        Answers of randomised response, at least 2.
    hidden : int, optional
        Of a graded response: how many of the k answers everybody gives with chance 1/(k + p - 1)
        or more, the two inputs among them; all k by default.

    Returns
    -------
    Shuffled
        With `epsilon(delta)` and `delta(epsilon)` of all reports together.

    Raises
    ------
    ArgumentError
        An argument is out of range, or k is missing or not wanted.

    Notes
    -----
    Guarantee: neighbours replace one unit's input; every unit has the same kind of randomiser, and
    nobody sees who sent what.

    References
    ----------
    Feldman, McMillan and Talwar, SODA 2023; Balle, Bell, Gascón and Nissim, CRYPTO 2019.

    Examples
    --------
    >>> round(shuffle(1_000_000, 4.0).epsilon(1e-6), 4)
    0.0343
    >>> round(shuffle(1_000_000, 4.0, randomiser="grr", k=18).epsilon(1e-6), 4)
    0.0299
    """
    n = check.count("n", n, 1, _MOST_REPORTS, instead="; a bound of fewer reports holds for more")
    exponent = check.number("epsilon_0", epsilon_0, above=0, most=100)
    # A unit in the exponential's last place, and one in its argument's, which stand for the number
    # that was printed.
    p = math.exp(exponent) * (1 + 1e-15 + 2**-52 * exponent)
    if randomiser not in _KINDS:
        raise ArgumentError("randomiser must be 'any' or 'grr'" + nearest(str(randomiser), _KINDS))
    if (randomiser == "grr") != (k is not None):
        raise ArgumentError("k belongs to randomiser='grr': the number of its answers")
    if k is None:
        if hidden is not None:
            raise ArgumentError("hidden belongs to randomiser='grr'")
        return Shuffled(n, p)
    answers = check.count("k", k, 2)
    shared = answers if hidden is None else check.count("hidden", hidden, 2)
    if shared > answers:
        raise ArgumentError("hidden must be at most k")
    return Shuffled(n, p, answers, shared)


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

    Notes
    -----
    Guarantee: neighbours replace one unit's input; every unit has the same kind of randomiser, and
    nobody sees who sent what.

    References
    ----------
    Feldman, McMillan and Talwar, "Hiding among the clones", FOCS 2021, theorem 3.1.

    Examples
    --------
    >>> shuffle_clones_2021(1_000_000, 1.0, 1e-6) < 0.05
    True
    """
    n, e0, d = _checked(n, epsilon_0, delta)
    if n <= 16 * math.log(4 / d) or e0 > math.log(n / (16 * math.log(4 / d))):
        raise ArgumentError("epsilon_0 is too large for this closed form; use shuffle(...)")
    e = math.exp(e0)
    inner = 8 * math.sqrt(e * math.log(4 / d) / n) + 8 * e / n
    return math.log1p((e - 1) / (e + 1) * inner) * (1 + 1e-14)


def shuffle_clones_2023(n: int, epsilon_0: float, delta: float) -> float:
    """Closed form of 2023: needs epsilon_0 <= log(n/(8·log(2/delta)) - 1).

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

    Notes
    -----
    Guarantee: neighbours replace one unit's input; every unit has the same kind of randomiser, and
    nobody sees who sent what.

    References
    ----------
    Feldman, McMillan and Talwar, SODA 2023, theorem 3.2.

    Examples
    --------
    >>> shuffle_clones_2023(1_000_000, 4.0, 1e-6) > shuffle(1_000_000, 4.0).epsilon(1e-6)
    True
    """
    n, e0, d = _checked(n, epsilon_0, delta)
    room = n / (8 * math.log(2 / d)) - 1
    if room <= 0 or e0 > math.log(room):
        raise ArgumentError("epsilon_0 is too large for this closed form; use shuffle(...)")
    e = math.exp(e0)
    inner = 4 * math.sqrt(2 * math.log(4 / d) / ((e + 1) * n)) + 4 / n
    return math.log1p((e - 1) * inner) * (1 + 1e-14)


def _checked(n: int, epsilon_0: float, delta: float) -> tuple[int, float, float]:
    return (
        check.count("n", n),
        check.number("epsilon_0", epsilon_0, above=0, most=100),
        check.number("delta", delta, above=0, below=1),
    )


def _charged(terms: Array, size: Array, cut: float) -> tuple[float, float]:
    """The ends of a sum whose summands err by 2e-10 of their size; what was cut is added."""
    total = float(np.clip(terms, 0, None).sum())
    error = _ROUNDING * total + 2e-10 * float(size.sum()) + 1e-300
    return max(0.0, total - error), min(1.0, total + error + cut)


def _convex(y: Array, values: Array) -> Array:
    """The greatest convex function below the points: above every convex one that is below them."""
    kept: list[int] = []
    for i in range(len(y)):
        while len(kept) > 1:
            a, b = kept[-2:]
            if (values[b] - values[a]) * (y[i] - y[a]) < (values[i] - values[a]) * (y[b] - y[a]):
                break
            kept.pop()
        kept.append(i)
    result: Array = np.interp(y, y[kept], values[kept])
    return result


def _classes(
    first: int, last: int, mean: float, variance: float, classes: int
) -> npt.NDArray[np.int64]:
    """Starts of classes of first..last: single numbers if few, else fine around the mean."""
    if last - first < _SINGLE:
        return np.arange(first, last + 1)
    inner = mean + math.sqrt(variance) * np.linspace(-3.5, 3.5, classes)
    inside = np.round(inner[(inner > first) & (inner <= last)]).astype(np.int64)
    return np.unique(np.append(inside, first))


def _uniform_blanket(
    n: int, h: int, more: float, other: float, e: float, target: float
) -> tuple[float, float]:
    """E (h/n)·(more·(a - e·b) - other·n·(e - 1))+ for a, b among n uniform of h answers."""
    first, last, cut = _window(n, 2 / h, min(target, 0.1) * 1e-7)
    s = np.arange(max(1, first), last + 1, dtype=float)
    masses = _binomial(s, n, 2 / h) * (h / n) / 2
    level = other * n * (e - 1)
    k = np.clip(np.floor((e * s + level / more) / (1 + e)), 0, s)
    s0, here = _half_tails((s - 1).astype(np.int64), k.astype(np.int64))
    s1 = s0 + here
    # E[a; a > k] = s/2·Pr[Bin(s-1) >= k], E[b; a > k] = s/2·Pr[Bin(s-1) > k].
    terms = masses * ((more * s - level) * s1 - (more * e * s + level) * s0)
    size = masses * ((more * s + level) * s1 + (more * e * s + level) * s0)
    return _charged(terms, size, 2 * cut * h * more)


def _window(n: int, rate: float, tail: float) -> tuple[int, int, float]:
    """Counts outside of which Bin(n, rate) has mass at most ``tail`` a side, by Chernoff."""
    if rate >= 1:
        return n, n, 0.0
    mean = n * rate

    def exponent(x: float) -> float:
        """n·KL(x/n, rate)."""
        a = x * math.log(x / mean) if x > 0 else 0.0
        b = (n - x) * math.log((n - x) / (n * (1 - rate))) if x < n else 0.0
        return a + b

    goal, ends = -math.log(tail), []
    for far in (0.0, float(n)):
        reach = far - mean
        if exponent(far) > goal:
            beyond = partial(_beyond, exponent, goal, mean, reach)
            reach *= bisect(beyond, 0.0, 1.0, steps=60)[1]
        ends.append(mean + reach)
    return max(0, math.floor(ends[0])), min(n, math.ceil(ends[1])), tail


def _beyond(
    exponent: Callable[[float], float], goal: float, mean: float, reach: float, share: float
) -> bool:
    return exponent(mean + share * reach) > goal


_TABLE = np.array(
    [0.0]
    + [
        math.lgamma(i + 1) - ((i + 0.5) * math.log(i) - i + 0.5 * math.log(2 * math.pi))
        for i in range(1, 16)
    ]
)


def _remainder(n: Array) -> Array:
    """log n! - Stirling's main part, n >= 1: a table, then the asymptotic series."""
    x = np.maximum(n, 15.0)
    y = 1 / (x * x)
    series = (1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y / 1188)))) / x
    if n.size and n.min() > 15:
        return np.asarray(series)
    small = _TABLE[np.clip(n, 0, 15).astype(np.int64)]
    return np.where(n <= 15, small, series)


def _binomial(x: Array, n: int, rate: float) -> Array:
    """Pr[Bin(n, rate) = x] by the saddle-point form of Loader; 0 outside 0..n."""
    if rate >= 1:
        return np.where(x == n, 1.0, 0.0)
    if n == 0:
        return np.where(x == 0, 1.0, 0.0)
    inside = (x >= 0) & (x <= n)
    y = np.clip(x, 0, n)
    a, b = np.maximum(y, 0.5), np.maximum(n - y, 0.5)
    deviance = _deviance(y, n * rate) + _deviance(n - y, n * (1 - rate))
    log_mass = _remainder(np.full_like(y, float(n))) - _remainder(y) - _remainder(n - y)
    log_mass = log_mass - deviance + 0.5 * np.log(n / (2 * math.pi * a * b))
    log_mass = np.where(y == 0, n * math.log1p(-rate), log_mass)
    log_mass = np.where(y == n, n * math.log(rate), log_mass)
    return np.where(inside, np.exp(log_mass), 0.0)


def _deviance(x: Array, mean: float) -> Array:
    """x·log(x/mean) + mean - x without cancellation near the mean."""
    gap = (x - mean) / mean
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = x * np.log(np.maximum(x, 1e-300) / mean) + mean - x
        near = mean * ((1 + gap) * np.log1p(gap) - gap)
        # Below 1e-3 a series: gap²/2 - gap³/6 + gap⁴/12 - gap⁵/20 + gap⁶/30.
        g = gap
        series = mean * g * g * (0.5 - g * (1 / 6 - g * (1 / 12 - g * (1 / 20 - g / 30))))
    return np.where(np.abs(gap) < 1e-3, series, np.where(np.abs(gap) < 0.1, near, plain))


def _log_half(m: Array, k: Array) -> Array:
    """log Pr[Bin(m, 1/2) = k]; -inf outside 0..m."""
    inside = (k >= 0) & (k <= m)
    y = np.clip(k, 0, m)
    a, b = np.maximum(y, 0.5), np.maximum(m - y, 0.5)
    half = np.maximum(m, 1.0) / 2
    d = (y - half) / half
    with np.errstate(divide="ignore", invalid="ignore"):
        deviance = half * (
            np.where(d > -1, (1 + d) * np.log1p(np.maximum(d, -1 + 1e-17)), 0.0)
            + np.where(d < 1, (1 - d) * np.log1p(np.maximum(-d, -1 + 1e-17)), 0.0)
        )
    value = _remainder(m) - _remainder(y) - _remainder(m - y) - deviance
    value = value + 0.5 * np.log(np.maximum(m, 1.0) / (2 * math.pi * a * b))
    edge = (y == 0) | (y == m)
    value = np.where(edge, -m * math.log(2), value)
    return np.where(inside, value, -np.inf)


def _half_tails(m: Array, k: Array) -> tuple[Array, Array]:
    """Pr[Bin(m, 1/2) > k] and Pr[Bin(m, 1/2) = k], where m grows by 1 and k moves by little.

    Pr[Bin(m+1) > k] = Pr[Bin(m) > k] + Pr[Bin(m) = k]/2; and moving k by one adds or takes one
    mass. The path starts from a direct sum; its errors are those of a running sum.
    """
    # Beyond 20·sqrt(m) from the middle lies less than exp(-800), by Hoeffding.
    far = max(int(k[0]), int(m[0]) // 2) + 2 + math.ceil(20 * math.sqrt(int(m[0])))
    start = np.arange(int(k[0]) + 1, min(int(m[0]), far) + 1, dtype=float)
    first = float(np.exp(_log_half(np.full_like(start, float(m[0])), start)).sum())
    here = np.exp(_log_half(m.astype(float), k.astype(float)))
    change = np.where(m[1:] > m[:-1], 0.5 * here[:-1], 0.0)
    move = k[1:] - k[:-1]
    for j in range(1, int(move.max(initial=0)) + 1):
        up = np.exp(_log_half(m[1:].astype(float), (k[:-1] + j).astype(float)))
        change = change - np.where(move >= j, up, 0.0)
    for j in range(1, int(-move.min(initial=0)) + 1):
        down = np.exp(_log_half(m[1:].astype(float), (k[:-1] - j + 1).astype(float)))
        change = change + np.where(move <= -j, down, 0.0)
    tails: Array = np.concatenate([[first], first + np.cumsum(change)])
    return np.clip(tails, 0.0, 1.0), here
