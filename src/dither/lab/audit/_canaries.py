"""Auditing training: what canaries' scores certify, with and without knowing the kind of noise.

A *canary* is a made-up example whose part in the training a fair coin decides. Where canaries'
gradients are orthogonal and everything that leaves a step is seen, each is a play of its own: one
run gives thousands of independent ones, to the strongest adversary there is.

*Without assumptions.* With p and q the rates of alarms of members and of others above a threshold,
a loss of (epsilon, delta) has ``p <= e^epsilon·q + delta`` and ``1 - q <= e^epsilon·(1 - p) +
delta``. Few plays see no small q, so this stays far below what is true. Thresholds are events of
one number, and are chosen and certified as `audit` does, with the odds of guesses: a run that gives
one canary in a few hundred away is seen so.

*Within a family.* Where the mechanism is known to be of a family with one unknown amount of noise,
such as so many steps of the sampled Gaussian, every member's trade-off curve bounds p by q. The
least amount of noise that the plays refute bounds the true one from above, and its epsilon is a
lower bound of the true epsilon, wherever on the curve the threshold lies.

Thresholds are chosen on one half of the plays, and Clopper and Pearson's bounds are of the other:
each bound holds with its share of the confidence, and no claim that is true is said to be violated
with more than a fiftieth of ``1 - confidence``.

Source. Nasr, Hayes, Steinke, Balle, Tramèr, Jagielski, Carlini and Terzis, "Tight auditing of
differentially private machine learning", 2023; Jagielski, Ullman and Oprea, 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither._checks import confidence as check_confidence
from dither._checks import number
from dither._format import Printable, at_least, at_most, count_text, level
from dither._search import bisect
from dither._stats import lower_bound, upper_bound
from dither.errors import ArgumentError
from dither.lab._verdicts import Outcome
from dither.lab.audit._claims import Claim
from dither.lab.audit._coins import flip_coins, own_words
from dither.lab.audit._events import certify, choose_events
from dither.lab.audit._scores import EventScore
from dither.numeric import SimulatedWords
from dither.privacy import Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["CanaryAudit", "audit_canaries", "within_family"]

Floats = npt.NDArray[np.float64]

_TRIED = 60
_LEAST_NOISE, _MOST_NOISE = 0.25, 8.0
_OF_VERDICTS = 0.02
"""The share of the level at which a claim is refuted."""


@dataclass(frozen=True, slots=True)
class CanaryAudit(Printable):
    """The result of `audit_canaries`.

    Attributes
    ----------
    verdict : Outcome
        *violated* or *not refuted*.
    lower : float
        The certified epsilon, whatever the mechanism is.
    within : float or None
        The certified epsilon, if the mechanism is of the family.
    claimed : float
        The epsilon of the claim.
    delta : float
        At which all three are.
    plays : int
        Of members and others together.
    confidence : float
        The probability that no bound is wrong. A true claim is *violated* with probability at most
        a fiftieth of the rest.
    """

    verdict: Outcome
    lower: float
    within: float | None
    claimed: float
    delta: float
    plays: int
    confidence: float

    def summary(self) -> str:
        """The result in two sentences, or three."""
        above = max(self.lower, self.within or 0.0) > self.claimed
        more = (
            "\nWhat is certified is above the claim; a verdict is given at "
            f"{level(1 - _OF_VERDICTS * (1 - self.confidence))} confidence: play more."
            if above and self.verdict is Outcome.NOT_REFUTED
            else ""
        )
        family = "" if self.within is None else f", ε >= {at_least(self.within)} within the family"
        return (
            f"{self.verdict.upper()}: claimed ε = {at_most(self.claimed)} at δ = {self.delta:g}; "
            f"certified ε >= {at_least(self.lower)}{family}, at {level(self.confidence)} "
            f"confidence.\n{count_text(self.plays, 'play')} of canaries.{more}"
        )

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw what is certified against what was claimed.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._alarms import draw_canaries

        return draw_canaries([self], path)


def audit_canaries(
    members: npt.ArrayLike,
    others: npt.ArrayLike,
    loss: Loss,
    *,
    family: Callable[[Fraction], Loss] | None = None,
    delta: float = 1e-5,
    confidence: float = 0.99,
) -> CanaryAudit:
    """Certify what canaries that were in, and others that were not, prove to be lost.

    Parameters
    ----------
    members, others : array of float
        Scores of independent plays, higher where the canary seems to have been in; at least 100 of
        each.
    loss : Loss
        What is claimed, for adding or removing one canary.
    family : callable, optional
        ``family(noise)`` gives the loss with so many times the noise; ``family(1)`` is the claim.
    delta : float
        Above 0.
    confidence : float
        In (0, 1): the probability that no bound is wrong. A verdict is surer.

    Raises
    ------
    ArgumentError
        For arguments out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import privacy
    >>> rng = np.random.default_rng(1)
    >>> found = audit_canaries(
    ...     rng.normal(1, 1, 4000), rng.normal(0, 1, 4000), privacy.gaussian(1),
    ...     family=lambda noise: privacy.gaussian(noise))
    >>> found.verdict.value, found.lower < found.within < found.claimed
    ('not refuted', True)
    """
    inside, outside = _scores("members", members), _scores("others", others)
    if not isinstance(loss, Loss):
        raise ArgumentError("loss must be a Loss, such as privacy.gaussian(1.0)")
    delta = number("delta", delta, above=0, below=1)
    confidence = check_confidence(confidence)
    claimed = float(loss.epsilon(delta).upper)
    # A half of the level is of events of epsilon, the other of points of the curve: thresholds are
    # chosen twice there, for alarms and for their absence, each with two bounds.
    half = (1.0 - confidence) / 2
    lower, refuted_once = _by_events(inside, outside, Claim(claimed, delta), half)
    rates = _Rates(inside, outside)
    normal = NormalDist()
    apart = lambda p, q: normal.inv_cdf(p) - normal.inv_cdf(q) if p > 0 and q < 1 else 0.0  # noqa: E731
    pairs, strict = (
        rates.at(apart, half / 4, level) for level in (half / 4, _OF_VERDICTS * half / 4)
    )

    def refuted(of: Loss, by: list[tuple[float, float]]) -> bool:
        return any(p > q and p > float(of.tpr(q).upper) for p, q in by)

    violated = refuted_once or refuted(loss, strict)
    within = None
    if family is not None:
        within = within_family(family, lambda of: refuted(of, pairs), delta)
    return CanaryAudit(
        Outcome.VIOLATED if violated else Outcome.NOT_REFUTED, lower, within, claimed, delta,
        len(inside) + len(outside), confidence,
    )  # fmt: skip


def _by_events(inside: Floats, outside: Floats, claim: Claim, level: float) -> tuple[float, bool]:
    """The epsilon that thresholds certify, and whether one refutes the claim."""
    words = own_words(SimulatedWords(0))
    second = np.repeat([False, True], [len(outside), len(inside)])
    choosing = np.zeros(second.size, dtype=np.bool_)
    for side in (False, True):
        rows = np.flatnonzero(second == side)
        order = np.argsort(words.words(rows.size), kind="stable")
        choosing[rows[order[: rows.size // 2]]] = True
    score = EventScore("the score", "column", np.concatenate([outside, inside]))
    parts = np.zeros(second.size, dtype=np.bool_), choosing, ~choosing
    coins = flip_coins(min(int((~choosing & (second == side)).sum()) for side in (0, 1)), words)
    chosen = choose_events([score], second, parts, claim=claim, level=level)
    events = certify(chosen, second, ~choosing, claim=claim, level=level, coins=coins)
    return max((e.epsilon for e in events), default=0.0), any(e.refutes for e in events)


def within_family(
    family: Callable[[Fraction], Loss], refuted: Callable[[Loss], bool], delta: float
) -> float:
    """The epsilon of the least noise that is refuted: there is less than that; 0 where none is."""

    def falls(log: float) -> bool:
        return refuted(family(_ratio(log)))

    least, most = math.log(_LEAST_NOISE), math.log(_MOST_NOISE)
    if not falls(most):
        return 0.0
    high = least if falls(least) else bisect(falls, least, most, steps=7)[1]
    return float(family(_ratio(high)).epsilon(delta).lower)


def _ratio(log: float) -> Fraction:
    return Fraction(f"{math.exp(log):.4g}")


class _Rates:
    """Bounds of the rates of alarms at thresholds that the other half of the plays chose."""

    def __init__(self, inside: Floats, outside: Floats) -> None:
        self.chosen = inside[::2], outside[::2]
        self.held = inside[1::2], outside[1::2]
        both = np.concatenate(self.chosen)
        # Dense at both ends, where what is rare is. Scores of both signs: whoever is not accused
        # is cleared, by the same threshold.
        tail = np.geomspace(min(0.004, 5.0 / both.size), 0.004, _TRIED // 5)
        shares = np.concatenate([tail, np.linspace(0.005, 0.995, _TRIED), 1.0 - tail])
        self.cuts = np.unique(np.quantile(both, shares))

    def at(
        self, worth: Callable[[float, float], float], chosen_at: float, level: float
    ) -> list[tuple[float, float]]:
        """Of members at least p and of others at most q, for alarms and for their absence.

        Thresholds are chosen by bounds at one level, and bounded at another each.
        """
        found = []
        for cleared in (False, True):
            best = max(
                self.cuts,
                key=lambda cut: worth(*self._bounds(self.chosen, cut, cleared, chosen_at)),
            )
            found.append(self._bounds(self.held, float(best), cleared, level))
        return found

    def _bounds(
        self, of: tuple[Floats, Floats], cut: float, cleared: bool, level: float
    ) -> tuple[float, float]:
        ins, outs = int((of[0] >= cut).sum()), int((of[1] >= cut).sum())
        n, m = len(of[0]), len(of[1])
        if cleared:
            ins, outs, n, m = m - outs, n - ins, m, n
        return lower_bound(ins, n, level), upper_bound(outs, m, level)


def _scores(name: str, given: npt.ArrayLike) -> Floats:
    found = np.asarray(given, dtype=np.float64)
    if found.ndim != 1 or len(found) < 100 or not np.isfinite(found).all():
        raise ArgumentError(f"{name} must be a flat array of at least 100 finite scores")
    return found
