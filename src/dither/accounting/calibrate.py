"""The least noise that keeps a promise: the inverse of a loss, certified.

The search uses floating point and any starting point; what is returned was checked with a
certified bound, so the search decides how tight the answer is and never whether it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dither.errors import ArgumentError
from dither.privacy import Bound, Loss
from dither.privacy.loss import number, promised
from dither.privacy.views import one_delta, sides

__all__ = ["calibrate"]

_TIGHT = 1e-11
_REACH = 80  # doublings and halvings of the first guess that are tried


def calibrate(
    make: Callable[[float], Loss], *, epsilon: float, delta: float, start: float = 1.0
) -> Bound:
    """Find the parameter at which a loss just meets (epsilon, delta).

    Parameters
    ----------
    make : callable
        From one positive parameter (a noise multiplier, an epsilon, a rate) to a loss; more of it
        must always cost less, or always cost more.
    epsilon, delta : float
        The promise: above 0, and in [0, 1).
    start : float
        Where the search begins, above 0.

    Returns
    -------
    Bound
        As a float the parameter that is proved to keep the promise; ``lower`` and ``upper``
        enclose the exact one.

    Raises
    ------
    ArgumentError
        An argument is out of range, or no parameter within 2**80 of the start meets the promise:
        the nearest one tried is named.

    Examples
    --------
    >>> from dither import privacy
    >>> sigma = calibrate(privacy.gaussian, epsilon=1.0, delta=1e-6)
    >>> round(sigma, 10), privacy.gaussian(sigma).delta(1.0) <= 1e-6
    (4.2246788893, True)
    """
    epsilon = promised("epsilon", epsilon, low=0, high=math.inf)
    delta = promised("delta", delta, low=0, high=1, closed="low")
    if not callable(make):
        raise ArgumentError("make must be a function from a parameter to a loss")
    x = number("start", start, low=0, high=math.inf)
    if not isinstance(make(x), Loss):
        raise ArgumentError("make must return a loss, such as privacy.gaussian(x)")
    promise = _Promise(make, epsilon, delta)
    x, here, there, step = _first_slope(promise, x)
    falls = (there < here) == (step > 1)
    good, bad = _bracket(promise, x, here, falls)
    good, bad = _narrowed(promise, good, bad)
    low, high = sorted((good, bad))
    return Bound(low, high, "certified search", safe="upper" if good >= bad else "lower")


class _Promise:
    """How far a parameter is from the promise: at most 0 where it is proved to be kept."""

    def __init__(self, make: Callable[[float], Loss], epsilon: float, delta: float) -> None:
        self.make, self.epsilon, self.delta = make, epsilon, delta
        self._worse: bool | None = None

    def excess(self, x: float, *, lower: bool = False, both: bool = True) -> float:
        loss = self.make(x)
        if self.delta == 0:
            bound = loss.epsilon(0.0)
            value = bound.lower if lower else bound.upper
            gap = math.log(max(value, 1e-300)) - math.log(self.epsilon)
            return _signed(gap, value <= self.epsilon)
        found = sides(loss)
        if not both and self._worse is not None and len(found) == 2:
            found = [s for s in found if s.removal == self._worse]
        ends = [one_delta(loss, s, self.epsilon)[:2] for s in found]
        values = [low if lower else high for low, high in ends]
        top = max(values)
        if len(found) == 2:
            self._worse = found[values.index(top)].removal
        # sqrt(-log delta) is close to linear in log(noise), which keeps the search short.
        target = math.sqrt(-math.log(self.delta))
        gap = target - math.sqrt(max(-math.log(max(top, 1e-300)), 0.0))
        return _signed(gap, top <= self.delta)


def _signed(gap: float, kept: bool) -> float:
    """The gap with the sign that the numbers themselves have: logarithms round it away."""
    return min(gap, 0.0) if kept else max(gap, 5e-324)


def _first_slope(promise: _Promise, x: float) -> tuple[float, float, float, float]:
    """Two neighbouring parameters whose losses differ: far off, delta is 0 or 1 on a plateau."""
    here = promise.excess(x)
    for power in range(1, 14):
        for step in (1.25**power, 8.0**power, 8.0**-power):
            try:
                there = promise.excess(x * step, both=False)
            except ArgumentError:
                continue
            if there != here:
                return x, here, there, step
    raise ArgumentError("make must depend on its parameter: every try cost the same")


def _bracket(promise: _Promise, x: float, here: float, falls: bool) -> tuple[float, float]:
    """(good, bad): parameters that keep and break the promise, neighbours by a factor."""
    kept = here <= 0
    # More is safer where the excess falls with the parameter.
    factor = (0.5 if falls else 2.0) if kept else (2.0 if falls else 0.5)
    at, value = x, here
    for _ in range(_REACH):
        following = at * factor
        try:
            after = promise.excess(following, both=False)
        except ArgumentError as error:
            raise ArgumentError(
                f"no parameter meets the promise before {following:.6g}, where the loss itself "
                f"refuses: {error}; the nearest tried is {at:.6g}"
            ) from error
        if (after <= 0) != kept:
            return (at, following) if kept else (following, at)
        at, value = following, after
    raise ArgumentError(
        f"no parameter meets epsilon and delta; the nearest reachable is {at:.6g}, where delta at "
        f"this epsilon is still {promise.make(at).delta(promise.epsilon).upper:.6g}"
        if value > 0
        else f"every parameter down to {at:.6g} meets epsilon and delta; nothing to calibrate"
    )


def _narrowed(promise: _Promise, good: float, bad: float) -> tuple[float, float]:
    """Close in from both sides by false position in log(parameter), each step certified."""
    a, b = math.log(good), math.log(bad)
    fa, fb = promise.excess(good, both=False), promise.excess(bad, both=False)
    side = 0
    for _ in range(60):
        if abs(b - a) <= _TIGHT:
            break
        if fa <= 0 < fb and math.isfinite(fa + fb):
            c = a - fa * (b - a) / (fb - fa)
            # A step that lands on the root to within the tolerance is pushed to its far side.
            margin = 0.3 * _TIGHT
            c += margin if (b > a) == (side > 0) else -margin
            c = min(max(c, min(a, b) + margin), max(a, b) - margin)
        else:
            c = (a + b) / 2
        fc = promise.excess(math.exp(c), both=False)
        if fc <= 0:
            if side == 1:
                fb /= 2
            a, fa, side = c, fc, 1
        else:
            if side == -1:
                fa /= 2
            b, fb, side = c, fc, -1
    good, bad = math.exp(a), math.exp(b)
    # Both directions at the end: the other one may be worse after all.
    for _ in range(60):
        if promise.excess(good) <= 0:
            break
        good *= 1 + (1 if a > b else -1) * 1e-10
    else:
        raise ArgumentError("make must be monotone in its parameter")
    # The far end must be proved to break the promise by a certified lower bound.
    for power in range(11, 1, -1):
        far = good * (1 - (1 if a > b else -1) * 10.0**-power)
        if promise.excess(far, lower=True) >= 0:
            return good, far
    return good, bad if promise.excess(bad, lower=True) >= 0 else (0.0 if a > b else math.inf)
