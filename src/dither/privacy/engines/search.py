"""Choosing a tilt, the Chernoff bound that it proves, and inverting a certified profile.

For c > 0 and y real, (1 - e^{-y})_+ <= kappa(c)·e^{cy} with kappa(c) = c^c/(1+c)^{1+c}, reached
at e^{-y} = c/(1+c). So ::

    delta(epsilon) <= kappa(c)·M(c)·e^{-c·epsilon},   M(c) = E[e^{cL}]

which is the optimal conversion from Rényi divergence of order 1 + c [1]_, proposition 12.

References
----------
.. [1] Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dither._search import false_position
from dither.privacy.laws.term import Array

__all__ = ["LOOSE", "best_tilt", "invert", "log_kappa"]

_CLOSEST = 1e-12
"""Steps of a search for an end may grow from this share of where it starts."""


LOOSE = 1e-9
"""Relative slack on a log-moment wherever its last digits do not matter.

What a term's own moment errs by is its `blur`; this is for sums, tilts and log kappa, some tens of
roundings of numbers that are at most as large as log-moments and 20."""


def log_kappa(c: Array | float) -> Array:
    """log of c^c/(1+c)^{1+c}, stable for small and large c."""
    x = np.asarray(c, dtype=float)
    result: Array = -x * np.log1p(1 / x) - np.log1p(x)
    return result


def best_tilt(
    log_moment: Callable[[Array], Array],
    *,
    log_delta: float | None,
    epsilon: float | None,
    reach: float = 1e7,
    fine: bool = False,
) -> tuple[float, float]:
    """The tilt of least Chernoff bound, and that bound: an epsilon, or a log(delta).

    Where ``log_delta`` is given, epsilon is minimised; otherwise log(delta) at ``epsilon``. Any
    tilt gives a true statement, so the search needs no care.
    """

    def bound(c: Array) -> Array:
        moment = log_moment(c)
        with np.errstate(invalid="ignore", over="ignore"):
            # Upwards, so that the bound is one whatever the moment's last digits are.
            moment = moment + LOOSE * (1e-3 + np.abs(moment))
            if log_delta is not None:
                value = (moment - log_delta + log_kappa(c)) / c
            else:
                value = moment - c * float(epsilon or 0.0) + log_kappa(c)
        return np.where(np.isfinite(value), value, np.inf)

    # The smallest tilt is a choice: smaller ones are seldom best, and none has to be.
    low, high = math.log(1e-4), math.log(reach)
    c = np.exp(np.linspace(low, high, 24))
    value = bound(c)
    # Each round looks between the neighbours of the best: the bound has one valley as a rule.
    for width in (9, 7, 7, 9, 9, 9, 9, 9) if fine else (9, 7, 7):
        i = int(np.argmin(value))
        a, b = math.log(c[max(i - 1, 0)]), math.log(c[min(i + 1, len(c) - 1)])
        c = np.exp(np.linspace(a, b, width))
        value = bound(c)
    i = int(np.argmin(value))
    return float(c[i]), float(value[i])


def invert(
    log_bound: Callable[[float], float], target: float, start: float, *, above: bool, tiny: float
) -> float:
    """The end of an epsilon interval from one certified, non-increasing bound of log(delta).

    Parameters
    ----------
    log_bound : callable
        epsilon -> log of an upper bound (above=True) or a lower bound of delta.
    target : float
        log(delta).
    start : float
        A guess.
    above : bool
        Return an epsilon where the upper bound is at most the target, or one where the lower
        bound is at least the target (0 where there is none above 0).
    tiny : float
        Width at which the search stops.
    """

    def over(e: float) -> float:
        return log_bound(e) - target

    # A bracket [low, high] with low failing and high passing. A bound may only be tight near the
    # end that is sought, so it is looked for in growing steps from ``start``, or in one to a little
    # beyond where the line through two places meets the target: downwards, where the line of a
    # profile that falls the more steeply the further out is too short, as far as that is.
    low = high = max(start, 0.0)
    f_low = f_high = over(high)
    # The steps only decide how soon it is found.
    step, growth = _CLOSEST * max(1.0, high), 8
    if above:
        step, growth = (max(1e-15, 1e-4 * high), 4) if high > 0 else (1e-3, 2)
    # However roughly the end is asked for, the bound may be tight in a narrow place alone.
    least = 0.2 * min(tiny, _CLOSEST) * max(1.0, high)
    # Not `f_high > 0`: a nan has proved nothing, and must count as failing.
    while not f_high <= 0:
        low, f_low, high = high, f_high, high + step
        # Given up: no finite epsilon is claimed.
        if high > 1e7 + 100 * start:
            return math.inf
        f_high = over(high)
        step = max(min(_beyond(f_high, f_low, step), step * growth), least)
    while low > 0 and f_low <= 0:
        high, f_high, low = low, f_low, max(0.0, low - step)
        f_low = over(low)
        left = _beyond(-f_low, -f_high, step)
        step = max(left if left < math.inf else step * growth, least)
    # Down at 0, and still within the target.
    if f_low <= 0:
        return low

    found = false_position(over, low, high, (f_low, f_high), relative=tiny, absolute=tiny)
    # Of the last bracket the end that is on the safe side of the target, however wide it is.
    return found[1] if above else found[0]


def _beyond(value: float, before: float, step: float) -> float:
    """What is left of a way on which a value falls to 0, and a twentieth; infinity if unknown."""
    fell = before - value
    return 1.05 * step * value / fell if value > 0 and 0 < fell < math.inf else math.inf
