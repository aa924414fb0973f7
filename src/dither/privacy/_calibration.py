"""The least noise that keeps a promise: the inverse of a loss, certified.

The search uses floating point and any starting point; what is returned was checked with a
certified bound, so the search decides how tight the answer is and never whether it holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dither import _checks as check
from dither.errors import ArgumentError
from dither.privacy import Bound, Loss
from dither.privacy._side import one_delta, sides
from dither.privacy.laws.term import EPS

__all__ = ["calibrate"]


_TIGHT = 1e-11
"""A width of log(parameter) at which the search ends; what it found is then proved by itself."""

_STEPS = (1, 2, 4, 8, 16, 32, 64, 80)
"""Doublings and halvings of the start that are tried."""

_FAR = 10.0
"""Nats by which bounds of moments seldom exceed a delta that is asked for in practice."""

_TARGETS = ("epsilon and delta", "advantage", "fpr and tpr", "prior and bayes_risk")


def calibrate(
    make: Callable[[float], Loss],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    advantage: float | None = None,
    fpr: float | None = None,
    tpr: float | None = None,
    prior: float | None = None,
    bayes_risk: float | None = None,
    start: float = 1.0,
) -> Bound:
    """Find the parameter at which a loss just keeps a promise.

    Parameters
    ----------
    make : callable
        From one positive parameter (a noise multiplier, an epsilon, a rate) to a loss; more of it
        must always cost less, or always cost more.
    epsilon, delta : float
        The promise of (epsilon, delta): above 0, and in [0, 1).
    advantage : float
        Or: no attacker's true alarms exceed their false alarms by more; in (0, 1).
    fpr, tpr : float
        Or: no attacker with false alarms at most ``fpr`` has more true alarms than ``tpr``;
        0 <= fpr < tpr < 1.
    prior, bayes_risk : float
        Or: every attacker with this prior errs at least so often; 0 < bayes_risk <
        min(prior, 1 - prior).
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
        An argument is out of range, not exactly one promise is named, or within 2**80 of the start
        all parameters break it, or all keep it: the nearest one tried is named.

    Examples
    --------
    >>> from dither import privacy
    >>> sigma = calibrate(privacy.gaussian, epsilon=1.0, delta=1e-6)
    >>> round(sigma, 10), privacy.gaussian(sigma).delta(1.0) <= 1e-6
    (4.2246788893, True)
    >>> sigma = calibrate(privacy.gaussian, advantage=0.1)
    >>> round(sigma, 6), privacy.gaussian(sigma).advantage() <= 0.1
    (3.978948, True)
    >>> round(calibrate(privacy.gaussian, fpr=0.01, tpr=0.05), 6)
    1.467364
    """
    promise = _promise(make, epsilon, delta, advantage, fpr, tpr, prior, bayes_risk)
    if not callable(make):
        raise ArgumentError("make must be a function from a parameter to a loss")
    x = check.number("start", start, above=0)
    if not isinstance(make(x), Loss):
        raise ArgumentError("make must return a loss, such as privacy.gaussian(x)")
    good, bad = _searched(promise, x)
    low, high = sorted((good, bad))
    return Bound(low, high, "certified search", safe="upper" if good >= bad else "lower")


def _promise(
    make: Callable[[float], Loss],
    epsilon: float | None,
    delta: float | None,
    advantage: float | None,
    fpr: float | None,
    tpr: float | None,
    prior: float | None,
    bayes_risk: float | None,
) -> _Promise:
    pairs = [(epsilon, delta), (advantage, advantage), (fpr, tpr), (prior, bayes_risk)]
    named = [any(value is not None for value in pair) for pair in pairs]
    if sum(named) != 1 or any((a is None) != (b is None) for a, b in pairs):
        raise ArgumentError(f"name one promise: {', or '.join(_TARGETS)}")
    if named[0]:
        e = check.number("epsilon", epsilon, above=0, rounding="down")
        return _Promise(make, e, check.number("delta", delta, least=0, below=1, rounding="down"))
    if named[1]:
        most = check.number("advantage", advantage, above=0, below=1, rounding="down")
        return _Asked(make, Loss.advantage, most, rises=True)
    if named[2]:
        level = check.number("fpr", fpr, least=0, below=1)
        most = check.number("tpr", tpr, above=level, below=1, rounding="down")
        starts: dict[bool, float] = {}
        return _Asked(make, lambda loss: loss._tpr(level, starts), most, rises=True)
    pi = check.number("prior", prior, above=0, below=1)
    least = check.number("bayes_risk", bayes_risk, above=0, below=min(pi, 1 - pi))
    return _Asked(make, lambda loss: loss.bayes_risk(pi), least, rises=False)


def _searched(promise: _Promise, x: float) -> tuple[float, float]:
    """(good, bad), close together; without bounds of moments where these have misled."""
    # With bounds of moments first, as these are quick; where they misled the search begins anew.
    if promise.trusting:
        try:
            return _narrowed(promise, *_bracket(promise, x))
        except (_MisledError, ArgumentError):
            promise.trusting = False
    return _narrowed(promise, *_bracket(promise, x))


class _MisledError(Exception):
    """A parameter that a bound of moments took to break the promise keeps it."""


class _Promise:
    """How far a parameter is from (epsilon, delta): at most 0 where it is proved to be kept."""

    trusting = True
    """Whether a bound of moments that is far above the promise is taken to break it. It need not:
    at a tiny epsilon these bounds say nothing of how small delta is."""

    def __init__(self, make: Callable[[float], Loss], epsilon: float, delta: float) -> None:
        self.make, self.epsilon, self.delta = make, epsilon, delta
        self._worse: bool | None = None

    def rough(self, x: float) -> float:
        """As `excess`, by a bound of moments where that leaves no doubt.

        It keeps the promise if the bound does. That a bound which is so far above breaks it is no
        proof: what is found is held against the loss itself, and searched anew where it is wrong.
        """
        if not self.trusting or self.delta == 0:
            return self.excess(x)
        loss = self.make(x)
        found = [this.sketch(self.epsilon) for this in sides(loss)] if loss.slack == 0 else [None]
        known = [log for log in found if log is not None]
        if len(known) == len(found):
            target, most = math.log(self.delta), max(known)
            # Beyond the last places of a logarithm.
            if most <= target - 1e-9 or most >= target + _FAR:
                target, most = (math.sqrt(max(-log, 0.0)) for log in (target, most))
                return target - most
        return self.excess(x)

    def excess(self, x: float, *, lower: bool = False, both: bool = True) -> float:
        loss = self.make(x)
        if self.delta == 0:
            try:
                bound = loss.epsilon(0.0)
            except ArgumentError:
                # Some outcome has an infinite loss: no epsilon is kept.
                return math.inf
            value = bound.lower if lower else bound.upper
            gap = math.log(max(value, 1e-300)) - math.log(self.epsilon)
            return _signed(gap, value <= self.epsilon)
        found = sides(loss)
        if not both and self._worse is not None and len(found) == 2:
            found = [s for s in found if s.removal == self._worse]
        # The direction that was worse at the last parameter is asked first: often the other can be
        # skipped.
        if len(found) == 2 and self._worse is False:
            found.reverse()
        values, least = [], 0.0
        for this in found:
            # Of a direction that is easily seen to be the better one no more need be known.
            if least > 0 and loss.slack == 0 and this.below(self.epsilon, math.log(least)):
                values.append(0.0)
                continue
            low, high = one_delta(loss, this, self.epsilon)[:2]
            # What the logarithm of it is off by, beyond that, `Side.below` allows for.
            least = low * (1 - 4 * EPS)
            values.append(low if lower else high)
            if values[-1] > self.delta:
                # Whatever the other direction says, the promise is broken, or not proved.
                break
        top = max(values)
        if len(values) == 2:
            self._worse = found[values.index(top)].removal
        # sqrt(-log delta) is close to linear in log(noise), which keeps the search short.
        target = math.sqrt(-math.log(self.delta))
        gap = target - math.sqrt(max(-math.log(max(top, 1e-300)), 0.0))
        return _signed(gap, top <= self.delta)

    def text(self, x: float) -> str:
        """What a parameter reaches."""
        if self.delta == 0:
            return "no finite epsilon" if self.excess(x) == math.inf else "a larger epsilon"
        return f"delta {self.make(x).delta(self.epsilon).upper:.6g} at this epsilon"


def _signed(gap: float, kept: bool) -> float:
    """The gap with the sign that the numbers themselves have: logarithms round it away."""
    return min(gap, 0.0) if kept else max(gap, 5e-324)


class _Asked(_Promise):
    """How far one number of a loss is from its target."""

    trusting = False

    def __init__(
        self,
        make: Callable[[float], Loss],
        ask: Callable[[Loss], Bound],
        target: float,
        *,
        rises: bool,
    ) -> None:
        self.make, self._ask, self._target, self._rises = make, ask, target, rises
        self._found: dict[float, Bound] = {}

    def _at(self, x: float) -> Bound:
        if x not in self._found:
            self._found[x] = self._ask(self.make(x))
        return self._found[x]

    def excess(self, x: float, *, lower: bool = False, both: bool = True) -> float:
        found = self._at(x)
        value = found.lower if lower == self._rises else found.upper
        gap = _logit(value) - _logit(self._target)
        if self._rises:
            return _signed(gap, value <= self._target)
        return _signed(-gap, value >= self._target)

    def text(self, x: float) -> str:
        """What a parameter reaches."""
        return f"{float(self._at(x)):.6g}"


def _logit(p: float) -> float:
    # Chances whose logits are doubles: a search's scale, and no bound.
    p = min(max(p, 1e-300), 1 - 1e-16)
    return math.log(p) - math.log1p(-p)


def _bracket(promise: _Promise, x: float) -> tuple[float, float]:
    """(good, bad): one that keeps the promise and one that breaks it, found in growing steps."""
    here = promise.rough(x)
    seen = {x: here}
    last = {1: x, -1: x}
    refusal: ArgumentError | None = None
    open_ways = {1, -1}
    for step in _STEPS:
        for way in (1, -1):
            if way not in open_ways:
                continue
            tried = [x * 2.0 ** (way * step)]
            for _ in range(8):
                at = tried[-1]
                try:
                    if not 0 < at < math.inf:
                        raise ArgumentError("it is beyond what doubles hold")
                    seen[at] = promise.rough(at)
                except ArgumentError as error:
                    # The loss itself ends there: come closer to where it still answered.
                    refusal = error
                    open_ways.discard(way)
                    tried.append(math.sqrt(at) * math.sqrt(last[way]) if at > 0 else last[way] / 2)
                    continue
                if (seen[at] <= 0) != (here <= 0):
                    return (at, last[way]) if seen[at] <= 0 else (last[way], at)
                last[way] = at
                break
    tried = sorted(seen)
    span = f"from {tried[0]:.6g} to {tried[-1]:.6g}"
    if here <= 0:
        raise ArgumentError(f"every parameter tried, {span}, keeps the promise: none is the least")
    # What a bound of moments told apart from the promise it need not tell from one another.
    exact = {at: promise.excess(at) for at in {tried[0], x, tried[-1]}}
    if len(set(exact.values())) == 1 and refusal is None:
        raise ArgumentError("make must depend on its parameter: every try cost the same")
    best = min(exact, key=lambda at: exact[at])
    raise ArgumentError(
        f"no parameter tried, {span}, keeps the promise; the nearest is {best:.6g}, which reaches "
        f"{promise.text(best)}" + (f"; beyond, {refusal}" if refusal is not None else "")
    )


def _narrowed(promise: _Promise, good: float, bad: float) -> tuple[float, float]:
    """Close in from both sides by interpolation in log(parameter), each step certified."""
    # In logarithms, where delta's root is nearly linear in noise.
    a, b = math.log(good), math.log(bad)
    while abs(b - a) > math.log(2):
        c = (a + b) / 2
        a, b = (c, b) if promise.rough(math.exp(c)) <= 0 else (a, c)
    fa, fb = (promise.excess(math.exp(end), both=False) for end in (a, b))
    # What was taken to break the promise keeps it: the bracket was wrong.
    if fb <= 0 and promise.trusting:
        raise _MisledError
    side = slow = 0
    third: tuple[float, float] | None = None
    for _ in range(60):
        width = abs(b - a)
        if width <= _TIGHT:
            break
        c = (a + b) / 2
        # Where interpolation has gained little thrice, the middle is taken.
        if fa <= 0 < fb and math.isfinite(fa + fb) and slow < 3:
            c = _crossing((a, fa), (b, fb), third)
            # A step that lands on the root to within the tolerance is pushed to its far side.
            margin = 0.3 * _TIGHT
            c += margin if (b > a) == (side > 0) else -margin
            c = min(max(c, min(a, b) + margin), max(a, b) - margin)
        fc = promise.excess(math.exp(c), both=False)
        if fc <= 0:
            third, a, fa, side = (a, fa), c, fc, 1
        else:
            third, b, fb, side = (b, fb), c, fc, -1
        slow = slow + 1 if abs(b - a) > width / 2 else 0
    good, bad = math.exp(a), math.exp(b)
    # Both directions at the end: the other one may be worse after all.
    for _ in range(60):
        if promise.excess(good) <= 0:
            break
        # A small step to the safe side, as often as it takes to be proved.
        good *= 1 + (1 if a > b else -1) * 1e-10
    else:
        raise ArgumentError("make must be monotone in its parameter")
    # The far end must be proved to break the promise by a certified lower bound.
    if abs(good - bad) <= 2 * _TIGHT * good and promise.excess(bad, lower=True) >= 0:
        return good, bad
    for power in range(11, 1, -1):
        far = good * (1 - (1 if a > b else -1) * 10.0**-power)
        if promise.excess(far, lower=True) >= 0:
            return good, far
    # The bracket's own end, if it is proved to break the promise; else nothing is known there.
    return good, bad if promise.excess(bad, lower=True) >= 0 else (0.0 if a > b else math.inf)


def _crossing(
    a: tuple[float, float], b: tuple[float, float], third: tuple[float, float] | None
) -> float:
    """Where a function is 0, between a and b, by interpolation of its inverse."""
    (x, f), (y, g) = a, b
    line = x - f * (y - x) / (g - f)
    if third is None or third[1] in (f, g) or not math.isfinite(third[1]):
        return line
    z, h = third
    curve = x * g * h / ((f - g) * (f - h)) + y * f * h / ((g - f) * (g - h))
    curve += z * f * g / ((h - f) * (h - g))
    return curve if min(x, y) < curve < max(x, y) else line
