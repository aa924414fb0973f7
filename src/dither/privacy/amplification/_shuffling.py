"""Amplification by shuffling: n local reports, each epsilon_0-DP, whose order is forgotten.

*Any randomiser.* With p = e^{epsilon_0}, everybody's report is, with chance 2/(p + 1), a clone: one
of the two laws that a victim's two inputs are mixtures of, at even odds. Shuffled reports are
post-processing of how many look like either [1]_ ::

    C ~ Bin(n-1, 2/(p+1)),  A ~ Bin(C, 1/2)
    P: (A + 1, C - A) with chance p/(p+1), else (A, C - A + 1);   Q: the same with chances exchanged

*Randomised response among k answers*, D = k + p - 1. Everybody's report is, with chance 1/D for
each answer, that answer whatever they hold; let the attacker know who else told the truth, and what
is left of the others are M ~ Bin(n-1, k/D) uniform answers (the privacy blanket [2]_). With N = M +
1 uniform answers, of which a are the victim's first input and b the second, the histogram has under
the two inputs densities w(a) and w(b) against N uniform answers::

    w(a) = (k/N)·(N/D + a·(p - 1)/D),   delta(epsilon) = E (w(a) - e^epsilon w(b))+

Given s = a + b, which is Bin(N, 2/k), a is Bin(s, 1/2): a sum of binomial tails. The expectation is
that of a convex function of a mean of N independent terms, so it falls as N grows (Jensen, since
the mean of N + 1 exchangeable terms is the conditional mean of that of N); therefore M is taken in
classes, each at its least N above and at its greatest below. The smaller of this bound and that of
any randomiser is given.

*Graded response*: where only h of the k answers are everybody's, and the two inputs are among them
(two high values of SDGRR), let the attacker also know whether the victim's answer is one of the h.
The same formula holds with k replaced by h and D as it was, and without the bound of any
randomiser.

*Two answers*. The count of ones is all that the shuffled reports are, and delta is convex in the
law of each other report, so the worst are others of fixed inputs, j of them holding 1. With a =
p/(p + 1) and S_j the law of Bin(j, a) + Bin(n-1-j, 1-a), the reports are S_j + Ber(a) against S_j +
Ber(1-a), and delta is the largest over j; j and n-1-j are the two directions of one another. The
worst j is not 0 or n-1 in general: it moves with epsilon. Of few reports all laws are listed; of
more the largest is searched for (`_two_answers`).

The variation-ratio reduction of [3]_, theorem 4.7, is not used for randomised response: counted
over all histograms, three answers and three reports exceed it (epsilon_0 = 1, epsilon = 0.9, others
all holding the first input: 0.0182 against 0.0025), since a report that is not a clone shows it.

Neighbours replace one unit's input. The local randomisers are the same for all units.

References
----------
.. [1] Feldman, McMillan and Talwar, "Stronger privacy amplification by shuffling for Rényi and
   approximate differential privacy", SODA 2023.
.. [2] Balle, Bell, Gascón and Nissim, "The privacy blanket of the shuffle model", CRYPTO 2019.
.. [3] Wang et al., "Privacy amplification via shuffling: unified, simplified, and tightened",
   VLDB 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._search import bisect, false_position
from dither.errors import ArgumentError, nearest
from dither.numeric import log_upper
from dither.privacy import Bound, Charge, Loss, Neighbours
from dither.privacy.amplification._clones import LISTED, blanket, clones, counted
from dither.privacy.amplification._two_answers import LOGS, TwoAnswers
from dither.privacy.laws.atoms import ListedLaw
from dither.privacy.laws.either import law_of_profile
from dither.privacy.laws.part import Dominated
from dither.privacy.laws.term import EPS

__all__ = ["Shuffled", "shuffle"]


Array = npt.NDArray[Any]

_ROUGH = 2
"""Classes of uniform answers while the search is far from its end."""

_KINDS = ("any", "grr")

_COUNTED = 10**7
"""Reports of two answers whose worst inputs are searched for."""

_FEWER = 64
"""Blocks of inputs that are told apart where a profile is taken at hundreds of places."""

_CELLS = 256
"""Steps of a profile that is to compose; its chords lie above it by their square."""

_LEAST = 1e-14
"""A delta below which a profile that is to compose is charged as it is, at every epsilon."""

_CLOSEST = 1e-12
"""Counts are left out as for this delta or a smaller one, so that `delta` and `epsilon` agree."""

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
        most ten million reports it is the reports' own.
        """
        e = check.number("epsilon", epsilon, least=0)
        low, high = self._ends(e)
        if self.counted and self.n > LISTED and e < math.log(self.p):
            # What is cut is to be small beside the answer: again, where that was much smaller.
            for _ in range(3):
                target = high
                low, high = TwoAnswers(self.n, self.p, max(target, 1e-280)).ends(e)
                if high > 1e-6 * target:  # not much
                    break
        return Bound(low if self.counted else 0.0, high, self.method, one_sided=not self.counted)

    @property
    def counted(self) -> bool:
        """Whether the reports' own laws are computed, for all inputs of the others."""
        return self.answers == self.hidden == 2 and self.n <= _COUNTED

    @property
    def method(self) -> str:
        """How the bounds are computed."""
        if self.counted:
            return "all counts, exactly"
        return "clones, numeric" if self.answers is None else "privacy blanket, numeric"

    def epsilon(self, delta: float) -> Bound:
        """An epsilon of the reports at a delta in (0, 1); one-sided where `delta` is."""
        target = check.number("delta", delta, above=0, below=1)
        if self.counted and self.n > LISTED:
            low, high = TwoAnswers(self.n, self.p, target).epsilon(target)
            # log(p) is above epsilon_0 (see `shuffle`), and four halves of EPS hold its rounding.
            high = min(high, math.log(self.p) * (1 + 1e-15))
        else:
            low, high = self._epsilon_ends(target)
        low = min(low, high) if self.counted else 0.0
        return Bound(low, high, self.method, one_sided=not self.counted)

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
        loss = Loss(((Dominated(self._law(words), words), 1),), Neighbours.REPLACE)
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
        # At epsilon_0 the profile has ended.
        high[-1] = high[-1] if last < top else 0.0
        # Both signs: delta(-e) = 1 - e^-e + e^-e·delta(e), as the pair is symmetric.
        losses = h * np.arange(-_CELLS, _CELLS + 1)
        left = -np.expm1(-grid[:0:-1]) + np.exp(-grid[:0:-1]) * high[:0:-1]
        masses, infinite = law_of_profile(losses, np.concatenate([left, high]), h)
        return ListedLaw(words, -_CELLS * h, h, tuple(masses.tolist()), infinite, 32 * EPS)

    def _epsilon_ends(self, target: float) -> tuple[float, float]:
        """The least epsilon of the pair itself."""
        rough = replace(self, classes=_ROUGH)
        # Shown at epsilon 0 already.
        if rough._ends(0.0, target)[1] <= target:
            return 0.0, 0.0
        # Above log(p), where delta is 0; the rest are widths of searches whose ends are proved.
        top = math.log(self.p) * (1 + 1e-15)
        if self.answers is None or self.counted:
            high = self._root(target, 1, 0.0, top, 1e-11)
            # The bracket begins a millionth wide, and grows until it holds the lower end.
            return self._root(target, 0, high * (1 - 1e-6), high, 1e-9), high
        return self._refined(target, rough._root(target, 1, 0.0, top, 1e-2))

    def _refined(self, target: float, near: float) -> tuple[float, float]:
        """Both ends of epsilon from one close by: the secant of log delta, then checked.

        The classes leave a gap of some 1e-3 of epsilon, so a closer search gains nothing.
        """
        goals = math.log(target) + LOGS, math.log(target) - LOGS
        steps: list[tuple[float, tuple[float, float]]] = []

        def logs(e: float) -> tuple[float, float]:
            low, high = self._ends(e, target)
            steps.append((e, (math.log(max(low, 1e-320)), math.log(max(high, 1e-320)))))
            return steps[-1][1]

        def moved(end: int) -> float:
            (e0, l0), (e1, l1) = steps[-2:]
            slope = (l1[end] - l0[end]) / (e1 - e0)
            return e1 + (goals[end] - l1[end]) / slope if slope < 0 else e1

        logs(near)
        logs(near * 0.998)
        high = min(near, max(0.0, moved(1)) * (1 + 2e-5))
        # The secant is a guess: the end that is returned was asked.
        while logs(high)[1] > goals[1]:
            high *= 1 + 2e-4
        low = min(high, max(0.0, moved(0)) * (1 - 2e-5))
        while low > 0 and logs(low)[0] < goals[0]:
            low *= 1 - 5e-4
        # Or log(p), with its rounding.
        return low, min(high, math.log(self.p) * (1 + 1e-15))

    def _root(self, target: float, end: int, low: float, high: float, tolerance: float) -> float:
        """Where an end of delta meets the target: just above for the upper end, else just below.

        The bracket is widened downwards until its lower side lies over the target. At ``high`` an
        end of delta is known not to: there it is 0, or the other end's search has ended there.
        """

        def over(e: float) -> float:
            return math.log(max(self._ends(e, target)[end], 1e-320)) - goal

        goal = math.log(target) + (-LOGS if end else LOGS)
        # A value at ``high`` that says so, for the rule; any other would only make it slower.
        f_high, width = min(over(high), -1e-12), high - low
        f_low = over(low)
        while f_low <= 0:
            if low == 0:
                return 0.0
            high, f_high = low, f_low - 1e-12  # below 0, for the rule
            low, width = max(0.0, low - 4 * width), 4 * width
            f_low = over(low)
        low, high = false_position(over, low, high, (f_low, f_high), relative=tolerance, steps=60)
        return high if end else low

    def _ends(self, epsilon: float, target: float = _CLOSEST) -> tuple[float, float]:
        target = min(target, _CLOSEST)
        # No report's ratio is larger; and log(p), rounded, is not below epsilon_0.
        if epsilon >= math.log(self.p):
            return 0.0, 0.0
        if self.answers is None or self.hidden is None:
            return clones(self.n, self.p, epsilon, target)
        if self.counted and self.n <= LISTED:
            return counted(self.n, self.p, epsilon)
        if self.counted:
            return TwoAnswers(self.n, self.p, target, _FEWER).ends(epsilon)
        answers = self.answers, self.hidden
        found = [blanket(self.n, self.p, epsilon, target, answers, self.classes)]
        if self.hidden == self.answers:
            found.append(clones(self.n, self.p, epsilon, target))
        # The smaller of two pairs' deltas is given: its ends are the smaller ones.
        return min(low for low, _ in found), min(high for _, high in found)


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
    # A unit in the exponential's last place, one in its argument's, which stand for the number that
    # was printed, and half a unit each of three operations. So log(p), rounded, is not below it.
    p = math.exp(exponent) * (1 + 4 * EPS + EPS * exponent)
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
