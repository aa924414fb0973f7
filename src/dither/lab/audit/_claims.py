"""What a mechanism is said to satisfy, what an event refutes of it, and how many samples it takes.

An event of probability at least p on one dataset and at most q on its neighbour is possible under
(epsilon, delta) only if p <= e^epsilon·q + delta, and under mu-GDP only if Φ⁻¹(p) - Φ⁻¹(q) <= mu.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dither._checks import confidence as check_confidence
from dither._checks import number
from dither._format import loss_text
from dither._search import least_integer
from dither._stats import binomial_tail, lower_bound, quantiles_apart, upper_bound
from dither.errors import ArgumentError
from dither.lab.audit._coins import odds_of, trials_of

__all__ = [
    "CERTIFYING",
    "CERTIFYING_GIVEN",
    "EVENTS",
    "Claim",
    "SharedLevels",
    "certifying",
    "check_samples",
    "epsilon_of",
    "mu_of",
    "samples_needed",
]

EVENTS = 6
"""How many events are certified: few, as each costs the others some of the confidence."""

CERTIFYING = 0.5
"""The share of the samples that certifies; the others choose."""

CERTIFYING_GIVEN = 0.8
"""The same where the score is given, and only thresholds are chosen."""

_LEAST, _MOST = 200, 10**10

_OF_ODDS, _OF_FIRST = 0.01, 0.6
"""The share of the level that bounds of odds have; and of that, the first event's.

The bound of odds errs as often as it may where an event meets a claim, and of a thousand true
claims none shall be accused: so it has a hundredth.
"""

_OF_VERDICTS = 0.01
"""The share of the level at which two probabilities refute a claim.

Both bounds must err for that, but where one probability is far rarer than the other, as under a
large epsilon, its bound errs alone, and a claim would be refuted as often as it may.
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """What a mechanism is said to satisfy: (epsilon, delta), or mu-GDP where ``mu`` is given.

    Parameters
    ----------
    epsilon, delta : float
        At least 0, and in [0, 1); `audit` checks both.
    mu : float, optional
        Of Gaussian differential privacy, in the place of both.
    """

    epsilon: float
    delta: float = 0.0
    mu: float | None = None

    @staticmethod
    def of(epsilon: Any, delta: Any, mu: Any = None) -> Claim:
        """A claim in doubles, rounded up, so that no true claim is refuted by it.

        Raises
        ------
        ArgumentError
            Where an argument is not a number in its range.
        """
        e = number("epsilon", epsilon, least=0, rounding="up")
        d = number("delta", delta, least=0, below=1, rounding="up")
        if mu is None:
            return Claim(e, d)
        return Claim(e, 0.0, number("mu", mu, least=0, rounding="up"))

    def apart(self, distance: int) -> Claim:
        """What it says of datasets that are so many neighbours apart, rounded up.

        At delta = 0 the group's epsilon is the sum of its steps', and so is its mu (Dong, Roth and
        Su, 2022, theorem 2.14).

        Raises
        ------
        ArgumentError
            The claim has a delta, of which a group's depends on the epsilon that is sought.
        """
        if distance == 1:
            return self
        if self.delta > 0:
            raise ArgumentError("distance above 1 goes with delta = 0, or with mu")
        mu = None if self.mu is None else math.nextafter(self.mu * distance, math.inf)
        return Claim(math.nextafter(self.epsilon * distance, math.inf), 0.0, mu)

    def refuted_by(self, p: float, q: float) -> bool:
        """Whether an event of these probabilities, at least and at most, contradicts it."""
        if self.mu is not None:
            return mu_of(p, q) > self.mu
        return epsilon_of(p, q, self.delta) > self.epsilon

    def __str__(self) -> str:
        if self.mu is not None:
            return f"μ = {loss_text(self.mu, 6)} (Gaussian)"
        return f"ε = {loss_text(self.epsilon, 6)}" + (
            f", δ = {loss_text(self.delta, 6)}" if self.delta else ""
        )


@dataclass(frozen=True, slots=True)
class SharedLevels:
    """How the probability that any bound fails is shared out among `EVENTS` events.

    Parameters
    ----------
    total : float
        1 - confidence.
    claim : Claim
        With mu, nothing is spent on odds: they bound epsilon alone.
    """

    total: float
    claim: Claim

    @property
    def share(self) -> float:
        """Of all, what bounds of odds have."""
        if self.claim.mu is not None:
            return 0.0
        return _OF_ODDS

    @property
    def each(self) -> float:
        """Of each of an event's two probabilities."""
        return self.total * (1.0 - self.share) / (2 * EVENTS)

    @property
    def refuting(self) -> float:
        """The same, where both refute a claim: a verdict shall be surer than what is certified."""
        return self.total * _OF_VERDICTS / (2 * EVENTS)

    @property
    def verdict(self) -> float:
        """The probability of a true claim to be refuted, at most: a fiftieth, or less."""
        return self.total * (self.share + _OF_VERDICTS)

    def odds(self, place: int) -> float:
        """Of an event's odds, by its place among those chosen: the first is hoped for most."""
        first = self.total * self.share * _OF_FIRST
        return first if place == 0 else first * (1 / _OF_FIRST - 1) / (EVENTS - 1)


def epsilon_of(p_lower: float, q_upper: float, delta: float) -> float:
    """The epsilon that an event refutes: log((p - delta)/q), or -inf where it says nothing.

    Examples
    --------
    >>> round(epsilon_of(0.5, 0.1, 0.0), 4), epsilon_of(0.01, 0.1, 0.02)
    (1.6094, -inf)
    """
    if p_lower <= delta or q_upper <= 0.0:
        return -math.inf
    # Logarithms are at most 745, and err by a unit in their last places, 2e-13; the differences by
    # no more than half of that.
    return math.log(p_lower - delta) - math.log(q_upper) - 1e-12


def mu_of(p_lower: float, q_upper: float) -> float:
    """The mu of Gaussian differential privacy that an event refutes, or -inf.

    Who accuses on the event has a false-alarm rate of at most q and misses at most 1 - p; under
    mu-GDP, Φ⁻¹(p) - Φ⁻¹(q) <= mu (Dong, Roth and Su, 2022).

    Examples
    --------
    >>> round(mu_of(0.8413447, 0.5), 4)
    1.0
    """
    if not (0.0 < p_lower < 1.0 and 0.0 < q_upper < 1.0):
        return -math.inf
    return quantiles_apart(p_lower, q_upper)


def certifying(samples: int, share: float = CERTIFYING) -> int:
    """How many of the samples certify."""
    return samples - round((1 - share) * samples)


def check_samples(samples: int, claim: Claim, confidence: float, share: float = CERTIFYING) -> None:
    """Refuse so few samples that no event could refute the claim.

    Raises
    ------
    ArgumentError
        Saying how many could.
    """
    levels = SharedLevels(1 - confidence, claim)

    def suffices(samples: int) -> bool:
        # At best every trial ends in a right guess.
        n = certifying(samples, share)
        most = max(n, trials_of(n))
        p, q = lower_bound(most, most, levels.refuting), upper_bound(0, most, levels.refuting)
        return claim.refuted_by(p, q) or (
            levels.share > 0
            and odds_of(most, 0, most, levels.odds(0), claim.delta, both=True) > claim.epsilon
        )

    if samples >= _LEAST and suffices(samples):
        return
    least = least_integer(suffices, _LEAST, step=_LEAST, most=10**12)
    if least is None:
        raise ArgumentError("no number of samples can refute so weak a claim")
    raise ArgumentError(
        f"{samples:,} samples are too few for any verdict: not even an output that gives the "
        f"dataset away would refute the claim {claim}. The least is {least:,} of each dataset; "
        "samples_needed() says how many catch a given excess"
    )


def samples_needed(
    epsilon: float,
    true_epsilon: float,
    *,
    delta: float = 0.0,
    confidence: float = 0.99,
    power: float = 0.9,
    mass: float = 0.5,
) -> int:
    """How many samples catch a mechanism that claims epsilon and truly has a larger one.

    Parameters
    ----------
    epsilon : float
        Claimed, at least 0.
    true_epsilon : float
        What its worst event shows: log((p - delta)/q). Above epsilon.
    delta : float
        Claimed, in [0, 1).
    confidence : float
        Of the audit, in (0, 1).
    power : float
        The probability to catch it, in (0, 1).
    mass : float
        p: how likely the worst event is where it is likelier, in (delta, 1). A half, as for Laplace
        noise and a threshold; rarer events need more samples, about as 1/p.

    Returns
    -------
    int
        Samples of each dataset, for `audit`. They suffice where the auditor finds the worst event,
        and hopes for it most; half of them certify it. Where there is one on each side, as with
        Laplace noise, about half of them do.

    Raises
    ------
    ArgumentError
        An argument is out of range, or ten billion samples do not suffice.

    Examples
    --------
    >>> samples_needed(1, 2), samples_needed(1, 1.1)
    (1004, 55985)
    """
    if not 0 <= epsilon < true_epsilon < math.inf:
        raise ArgumentError("true_epsilon must be above epsilon, which is at least 0")
    confidence = check_confidence(confidence)
    power = number("power", power, above=0, below=1)
    if not 0 <= delta < mass < 1:
        raise ArgumentError("mass must be in (0, 1), and above delta, or the event shows nothing")
    rate = (mass - delta) * math.exp(-true_epsilon)
    levels = SharedLevels(1 - confidence, Claim(epsilon, delta))
    miss = (1 - power) / 2

    def by_odds(n: int) -> bool:
        trials = trials_of(n)
        right = _quantile(trials, mass / 2, miss)
        wrong = trials - _quantile(trials, 1 - rate / 2, miss)
        return odds_of(right, wrong, trials, levels.odds(0), delta) > epsilon

    def by_both(n: int) -> bool:
        least, most = _quantile(n, mass, miss), n - _quantile(n, 1 - rate, miss)
        p, q = lower_bound(least, n, levels.refuting), upper_bound(most, n, levels.refuting)
        return epsilon_of(p, q, delta) > epsilon

    def suffices(samples: int) -> bool:
        n = certifying(samples)
        return by_odds(n) or by_both(n)

    # Counts are whole, so that a few samples more may do a little worse.
    least = least_integer(suffices, _LEAST // 2, step=_LEAST // 2, most=_MOST)
    if least is None:
        raise ArgumentError("too many samples are needed: allow a larger excess, or less power")
    return least


def _quantile(n: int, p: float, miss: float) -> int:
    """The largest k with Pr[Binomial(n, p) < k] <= miss."""
    beyond = least_integer(lambda k: 1 - binomial_tail(n, k, p) > miss, 1, step=max(1, n // 16))
    return n if beyond is None else beyond - 1
