"""Auditing with one run: many canaries, each in or out by its own coin, and guesses about them.

Game. m units (canaries) are each included by an independent fair coin. The mechanism runs once.
From its output the auditor guesses some of the coins, r of them, and abstains on the others; v
guesses are right.

Theorem. Let the mechanism be (epsilon, delta)-DP for adding or removing one canary, and write
k0 = e^epsilon/(1 + e^epsilon), W for Binomial(r, k0), and ``b`` for Pr[W >= v]. For delta = 0,
whatever output decides on what to guess, Pr[v or more are right | r] <= b. For delta > 0 and a
number r of guesses that is fixed in advance ::

    Pr[v or more are right] <= b + m·delta·max over k in 1..v of b·Pr[W < k]/(k·Pr[W = k])

Proof. For delta = 0: given the output y and the coins before the i-th, the odds of the i-th are
Pr[y | in]/Pr[y | out], each averaged over the later coins, so between e^-epsilon and e^epsilon. So
each guess is right with probability at most k0, given those before, and W dominates their sum.

For delta > 0 the guesses may be taken for the output. Flipping coins and guesses together, and
permuting the canaries, changes neither the claim nor the number of right guesses; so average the
mechanism over these. Now a vector of r guesses of which k are right has a probability w_k that
depends on k alone, Σ C(r, k)·w_k = 1. Take the guesses one of which is on a given canary, a share
r/m of all. Against the neighbour without it, the claim gives, over the guesses that are right
about it, ::

    (r/m)·Σ_k C(r - 1, k - 1)·(w_k - e^epsilon·w_(k-1))₊ <= delta

(the others only add to the left side). So for any y_k in [0, 1] and A >= 0 ::

    Σ_{k>=v} C(r, k)·w_k <= b + A·(m/r)·delta    if for all k
    b + (A/r)·(k·y_k - (r - k)·e^epsilon·y_(k+1)) >= 1[k >= v].

This is Stein's equation of the binomial law. It is solved with equality by z_k = A·y_k/r =
Σ_{l>=k} Pr[W = l]·(1[l >= v] - b)/(k·Pr[W = k]), since k·Pr[W = k] = e^epsilon·(r - k + 1)·
Pr[W = k - 1]. For k <= v that is b·Pr[W < k]/(k·Pr[W = k]); for k >= v it falls with k, as the law
is log-concave. It is never below 0, so A = r·max z_k serves.

Source. The game and the first theorem: Steinke, Nasr and Jagielski, "Privacy auditing with one (1)
training run", NeurIPS 2023, whose bound for delta > 0 has another form. The second is proved above.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._checks import confidence as check_confidence
from dither._format import Printable, at_least, level
from dither._search import bisect
from dither._stats import EPS, binomial_tail, binomial_tail_above
from dither.errors import ArgumentError
from dither.lab._verdicts import Outcome
from dither.lab.audit._claims import Claim

__all__ = ["OneRunAudit", "audit_one_run", "chance_of_guesses", "guess_by_score"]

_STEP = 0.02
# No number of guesses that can be made shows that fewer than one in e^60 is wrong.
_MOST = 60.0
_OF_VERDICTS = 0.02
"""The share of the level at which a claim is refuted: of a thousand true ones none shall be."""

_UNFAIR = 5e-10
"""A chance below which coins are not taken for fair ones."""


@dataclass(frozen=True, slots=True)
class OneRunAudit(Printable):
    """The result of `audit_one_run`.

    Attributes
    ----------
    verdict : Outcome
        *violated* or *not refuted*.
    lower : float
        The certified lower bound of epsilon, at the claimed delta.
    claimed : Claim
    canaries, guesses, correct : int
        m, r and v; of scores, of the guesses that certify most.
    confidence : float
        The probability that the bound is not too high. A true claim is *violated* with probability
        at most a fiftieth of the rest.

    Examples
    --------
    >>> found = audit_one_run([True, False] * 50, [1, -1] * 50, epsilon=1)
    >>> print(found.verdict, found.correct, round(found.lower, 2))
    violated 100 3.05
    """

    verdict: Outcome
    lower: float
    claimed: Claim
    canaries: int
    guesses: int
    correct: int
    confidence: float

    def summary(self) -> str:
        """The result in two sentences, or three."""
        return (
            f"{self.verdict.upper()}: claimed {self.claimed}; certified ε >= "
            f"{at_least(self.lower)} at {level(self.confidence)} confidence.\n"
            f"{self.correct:,} of {self.guesses:,} guesses about {self.canaries:,} canaries were "
            "right, in one run."
        ) + (
            "\nWhat is certified is above the claim; a verdict is given at "
            f"{level(1 - _OF_VERDICTS * (1 - self.confidence))} confidence: plant more canaries."
            if self.verdict is Outcome.NOT_REFUTED and self.lower > self.claimed.epsilon
            else ""
        )


def audit_one_run(
    included: npt.ArrayLike,
    guesses: npt.ArrayLike | None = None,
    epsilon: float = 1.0,
    delta: float = 0.0,
    confidence: float = 0.99,
    *,
    scores: npt.ArrayLike | None = None,
) -> OneRunAudit:
    """Certify a lower bound of epsilon from guesses about canaries after one run.

    Parameters
    ----------
    included : array of bool, shape (m,)
        The coins: which canaries were in. They must be independent and fair.
    guesses : array, shape (m,)
        1 for "in", -1 for "out", 0 to abstain; see `guess_by_score`. If delta > 0, how many are
        not 0 must have been fixed in advance.
    epsilon, delta : float
        The claim, for adding or removing one canary.
    confidence : float
        In (0, 1): the probability that the bound is not too high. A verdict is surer.
    scores : array of float, shape (m,), optional
        In the place of guesses: one for each canary, higher where it seems to have been in. The
        canaries at either end and at both are guessed, from as few as could refute the claim to
        all of them, doubled each time, and the level is shared by all of these. A leak of a few
        canaries is seen so, and one that all have, and nobody has to say beforehand which it is.
        Scores may know nothing of the coins but what the run's result tells.

    Raises
    ------
    ArgumentError
        The arrays do not fit, an argument is out of range, or so few guesses could not refute the
        claim if all were right; says how many could.

    Notes
    -----
    Guarantee. If coins are fair and independent and the run satisfies the claim for adding or
    removing one canary, the bound is too high with probability at most 1 - confidence, and the
    verdict is *violated* with at most a fiftieth of that.

    Examples
    --------
    >>> import numpy as np
    >>> coins = np.arange(1000) % 2 == 0
    >>> found = audit_one_run(coins, np.where(coins, 1, -1) * (np.arange(1000) < 200))
    >>> found.verdict.value, round(found.lower, 2), found.correct
    ('violated', 3.76, 200)

    Of 20,000 canaries one in 200 is given away, where it was in:

    >>> rng = np.random.default_rng(1)
    >>> coins = rng.random(20_000) < 0.5
    >>> told = rng.normal(size=20_000) + np.where(coins & (rng.random(20_000) < 1 / 200), 9, 0)
    >>> found = audit_one_run(coins, scores=told, epsilon=1)
    >>> found.verdict.value, found.lower > 1.4, found.guesses
    ('violated', True, 39)
    """
    coins = np.asarray(included)
    if coins.ndim != 1 or coins.dtype != np.bool_:
        raise ArgumentError("included must be a flat array of bool, one for each canary")
    if (guesses is None) == (scores is None):
        raise ArgumentError("give guesses, or scores that they are made by: one of both")
    if not (0 <= epsilon < _MOST and 0 <= delta < 1):
        raise ArgumentError(f"epsilon must be in [0, {_MOST:g}) and delta in [0, 1)")
    confidence = check_confidence(confidence)
    m, level = coins.size, 1 - confidence
    heads = int(np.count_nonzero(coins))
    if binomial_tail(m, max(heads, m - heads), 0.5) < _UNFAIR:
        raise ArgumentError(
            f"included must be fair coins: {heads:,} of {m:,} heads come of fair ones less than "
            "once in a thousand million times"
        )
    if scores is None:
        answers = np.asarray(guesses)
        if answers.shape != coins.shape or not np.all(np.isin(answers, (-1, 0, 1))):
            raise ArgumentError("guesses must hold 1, -1 or 0 for each canary")
        every = [answers]
    else:
        known = np.asarray(scores, dtype=np.float64)
        if known.shape != coins.shape or np.isnan(known).any():
            raise ArgumentError("scores must hold one number for each canary")
        every = [guess_by_score(known, *ends) for ends in _ends(m, epsilon, delta, level)]
    level /= max(1, len(every))
    counts = [int(np.count_nonzero(answers)) for answers in every]
    strict = _OF_VERDICTS * level
    if all(chance_of_guesses(m, r, r, epsilon, delta) > strict for r in counts):
        # All r guesses are right with the chance (e^epsilon/(1 + e^epsilon))^r.
        least = _least_guesses(epsilon, strict)
        what = "guesses are" if scores is None else "canaries are"
        raise ArgumentError(
            f"{what} too few for any verdict: {max(counts, default=m):,} guesses, all of them "
            f"right, would not refute epsilon = {epsilon:g}; at least {least:,} are needed"
            + (", more with so large a delta and so many canaries" if delta else "")
            + (", or guesses, which share no level" if delta and scores is not None else "")
        )
    truth = np.where(coins, 1, -1)
    right = [int(np.count_nonzero(answers == truth)) for answers in every]
    lower = [
        _first_likely(m, r, v, delta, level) for r, v in zip(counts, right, strict=True)
    ]  # fmt: skip
    best = int(np.argmax(lower))
    violated = any(
        chance_of_guesses(m, r, v, epsilon, delta) <= strict
        for r, v in zip(counts, right, strict=True)
    )
    return OneRunAudit(
        Outcome.VIOLATED if violated else Outcome.NOT_REFUTED,
        lower[best],
        Claim(epsilon, delta),
        m,
        counts[best],
        right[best],
        confidence,
    )


def _least_guesses(epsilon: float, level: float) -> int:
    """How many guesses, all of them right, refute an epsilon at a level."""
    return math.ceil(-math.log(level) / math.log1p(math.exp(-epsilon)))


def _ends(m: int, epsilon: float, delta: float, level: float) -> list[tuple[int, int]]:
    """How many of the highest and of the lowest scores are guessed: fixed before they are seen.

    No level below delta refutes anything: so with delta it is shared by fewer.
    """
    # As many as refute where there are 30 such pairs, or two more than there are.
    count = _least_guesses(epsilon, _OF_VERDICTS * level / 30)
    found: list[tuple[int, int]] = []
    while count <= m:
        found += [(count, 0), (count - count // 2, count // 2)]
        found += [] if delta > 0 else [(0, count)]
        count *= 4 if delta > 0 else 2
    return found or [(m - m // 2, m // 2)]


def chance_of_guesses(m: int, r: int, v: int, epsilon: float, delta: float = 0.0) -> float:
    """The theorem's bound of Pr[v or more of r guesses about m canaries are right].

    Parameters
    ----------
    m, r, v : int
        0 <= v <= r <= m.
    epsilon, delta : float
        What the mechanism satisfies.

    Returns
    -------
    float
        At most 1.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    It holds for neighbours that add or remove one canary, each in by its own fair coin; the module
    proves it.

    Examples
    --------
    >>> round(chance_of_guesses(100, 10, 10, 0.0), 6), round(chance_of_guesses(9, 2, 2, 1.0), 4)
    (0.000977, 0.5344)
    """
    if not 0 <= v <= r <= m:
        raise ArgumentError("m, r and v must be counts with v <= r <= m: canaries, guesses, right")
    if not (epsilon >= 0 and 0 <= delta <= 1):
        raise ArgumentError("epsilon must be at least 0, and delta from 0 to 1")
    right = 1.0 / (1.0 + math.exp(-epsilon))
    if delta <= 0 or v == 0:
        return binomial_tail_above(r, v, right)
    # In logarithms, as both b and the law may be too small for doubles where their ratio is not.
    k = np.arange(r + 1, dtype=np.float64)
    law = _log_choices(r) + k * math.log(right) + (r - k) * (math.log(right) - epsilon)
    below = np.logaddexp.accumulate(law)[:v]
    b = float(np.logaddexp.reduce(law[v:]))
    most = float(np.max(b + below - law[1 : v + 1] - np.log(k[1 : v + 1])))
    # With S the law's largest size, each of its entries is off by r/2 + 4 times EPS·S: sums of
    # logarithms, and products. A running sum of exponentials adds EPS·S a step. There are three of
    # the former and two of the latter, and then exponentials of what was found.
    off = EPS * ((4 * r + 16) * (2 + float(np.abs(law).max())) + 8 + abs(most))
    return min(1.0, (math.exp(b) + m * delta * math.exp(min(most, 700.0))) * math.exp(off))


def _log_choices(r: int) -> npt.NDArray[np.float64]:
    """log C(r, k) for k in 0..r."""
    k = np.arange(r, dtype=np.float64)
    return np.concatenate([[0.0], np.cumsum(np.log((r - k) / (k + 1)))])


def _first_likely(m: int, r: int, v: int, delta: float, level: float) -> float:
    """The largest epsilon below which every claim is refuted, rounded down."""
    if chance_of_guesses(m, r, v, 0.0, delta) > level:
        return 0.0
    # For delta > 0 the bound is not known to rise with epsilon: so step by step from below.
    low, step = 0.0, _STEP if delta > 0 else _MOST
    while low + step < _MOST and chance_of_guesses(m, r, v, low + step, delta) <= level:
        low += step
    over = lambda epsilon: chance_of_guesses(m, r, v, epsilon, delta) > level  # noqa: E731
    return bisect(over, low, low + step, steps=40)[0]


def guess_by_score(scores: Any, top: int, bottom: int) -> npt.NDArray[np.int64]:
    """Guess "in" for the highest scores and "out" for the lowest.

    Parameters
    ----------
    scores : array of float, shape (m,)
        One for each canary, higher where it seems to have been in.
    top, bottom : int
        How many of each to guess; at most m together.

    Returns
    -------
    array of int64, shape (m,)
        1, -1, or 0 to abstain.

    Raises
    ------
    ArgumentError
        scores are not one row of numbers, or top and bottom are more than there are.

    Examples
    --------
    >>> guess_by_score([0.1, 3.0, -2.0, 0.5], 1, 1)
    array([ 0,  1, -1,  0])
    """
    known = np.asarray(scores, dtype=np.float64)
    if known.ndim != 1 or np.isnan(known).any():
        raise ArgumentError("scores must be a flat array of numbers, one for each canary")
    if min(top, bottom) < 0 or top + bottom > known.size:
        raise ArgumentError("top and bottom must be at least 0, and at most all canaries together")
    order = np.argsort(known, kind="stable")
    out = np.zeros(known.size, dtype=np.int64)
    out[order[:bottom]] = -1
    if top:
        out[order[-top:]] = 1
    return out
