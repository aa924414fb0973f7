"""How many samples an audit needs to catch a given excess."""

from __future__ import annotations

import math

from dither.errors import ArgumentError
from dither.lab.audit.audit import CERTIFYING
from dither.lab.audit.bounds import binomial_tail, epsilon_of, lower_bound, upper_bound
from dither.lab.audit.events import EVENTS

__all__ = ["samples_needed"]

_MOST = 10**10


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
        Samples of each dataset, for `audit`. They suffice where the auditor finds the worst event;
        half of them certify it.

    Raises
    ------
    ArgumentError
        An argument is out of range, or ten thousand million samples do not suffice.

    Examples
    --------
    >>> samples_needed(1, 2), samples_needed(1, 1.1)
    (834, 47600)
    """
    if not 0 <= epsilon < true_epsilon < math.inf:
        raise ArgumentError("true_epsilon must be above epsilon, which is at least 0")
    for name, value in (("confidence", confidence), ("power", power)):
        if not 0 < value < 1:
            raise ArgumentError(f"{name} must be in (0, 1)")
    if not 0 <= delta < mass < 1:
        raise ArgumentError("mass must be in (0, 1), and above delta, or the event shows nothing")
    rate = (mass - delta) * math.exp(-true_epsilon)
    level = (1 - confidence) / (2 * EVENTS)

    def suffices(samples: int) -> bool:
        n = samples - round((1 - CERTIFYING) * samples)
        miss = (1 - power) / 2
        least, most = _quantile(n, mass, miss), n - _quantile(n, 1 - rate, miss)
        p, q = lower_bound(least, n, level), upper_bound(most, n, level)
        return epsilon_of(p, q, delta) > epsilon

    low, high = 100, 200
    while not suffices(high):
        low, high = high, 2 * high
        if high > _MOST:
            raise ArgumentError("too many samples are needed: allow a larger excess, or less power")
    # Counts are whole, so that a little more may do a little worse; ends are within a percent.
    while high - low > max(1, high // 200):
        middle = (low + high) // 2
        if suffices(middle):
            high = middle
        else:
            low = middle
    return high


def _quantile(n: int, p: float, miss: float) -> int:
    """The largest k with Pr[Binomial(n, p) < k] <= miss."""
    low, high = 0, n + 1
    while high - low > 1:
        middle = (low + high) // 2
        if 1 - binomial_tail(n, middle, p) <= miss:
            low = middle
        else:
            high = middle
    return low
