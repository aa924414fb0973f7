"""Dividing one promise (epsilon, delta) among mechanisms, and a slack, for the least total error.

`splitting` asks for noise scales and composes the losses themselves; here each mechanism is only
known as (epsilon_i, delta_i)-DP with an error that falls as either grows, and a theorem says what
they cost together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither.accounting.calibrate import calibrate
from dither.accounting.theorems import advanced_heterogeneous, heterogeneous
from dither.errors import ArgumentError, nearest
from dither.privacy import approximate, compose
from dither.privacy.loss import number

__all__ = ["Division", "divide"]

THEOREMS = ("basic", "advanced", "optimal")

_ROUNDS = 12
_STEPS = 14

Errors = Sequence[Callable[[float, float], float]]


@dataclass(frozen=True, slots=True)
class Division:
    """Each mechanism's part of a promise.

    Parameters
    ----------
    epsilons, deltas : tuple of float
        One a mechanism; a delta is 0 where the error does not depend on it.
    slack : float
        delta', what the theorem itself spends. For "optimal" it is what the deltas leave.
    error : float
        The sum of the errors.
    theorem : str
        The one by which the parts keep the promise.
    """

    epsilons: tuple[float, ...]
    deltas: tuple[float, ...]
    slack: float
    error: float
    theorem: str


def divide(errors: Errors, *, epsilon: float, delta: float, theorem: str | None = None) -> Division:
    """The (epsilon_i, delta_i) and the slack delta' of least total error.

    Parameters
    ----------
    errors : sequence of callable
        Each from (epsilon_i, delta_i) to an error (a variance, say) that is above 0, finite and
        does not grow with either. ``delta_i`` may be 0 for errors that do not depend on it.
    epsilon, delta : float
        The promise for everything together: above 0, and in (0, 1).
    theorem : {"basic", "advanced", "optimal"}, optional
        "basic": both add up, without slack. "advanced": `advanced_heterogeneous`. "optimal": the
        exact composition of the worst mechanisms with these guarantees. Unless told, the better
        of the first two.

    Returns
    -------
    Division
        That the parts keep the promise was checked by the theorem itself, rounded upwards. That
        they are the best rests on the search.

    Raises
    ------
    ArgumentError
        An argument is out of range, or an error is not a number above 0.

    Notes
    -----
    For given ratios between the epsilons the common factor is the largest that keeps the promise.
    The ratios and the shares of delta (the slack's among them) are moved in turn by golden
    sections; for the two closed theorems and errors that are convex in the logarithms this settles
    within about 1e-3 of the least error. "optimal" keeps the ratios and the shares that "advanced"
    found, and searches only how much of delta the mechanisms have and how much is left over.

    Examples
    --------
    >>> def laplace(e, d):
    ...     return 2 / e**2
    >>> def gaussian(e, d):
    ...     return 2 * math.log(1.25 / d) / e**2
    >>> parts = divide([laplace, gaussian], epsilon=1.0, delta=1e-6)
    >>> parts.theorem, parts.deltas[0], parts.epsilons[1] > parts.epsilons[0]
    ('basic', 0.0, True)
    """
    e = number("epsilon", epsilon, low=0, high=500)
    d = number("delta", delta, low=0, high=1)
    if not errors:
        raise ArgumentError("errors must hold at least one function of (epsilon, delta)")
    if theorem is not None and theorem not in THEOREMS:
        raise ArgumentError(
            "theorem must be 'basic', 'advanced' or 'optimal'" + nearest(str(theorem), THEOREMS)
        )
    if theorem is None:
        found = [_Search(errors, e, d, name).best() for name in ("basic", "advanced")]
        return min(found, key=lambda division: division.error)
    if theorem == "optimal":
        return _optimal(errors, e, d)
    return _Search(errors, e, d, theorem).best()


def _total_error(errors: Errors, epsilons: Sequence[float], deltas: Sequence[float]) -> float:
    values = [float(f(e, d)) for f, e, d in zip(errors, epsilons, deltas, strict=True)]
    if not all(math.isfinite(v) and v > 0 for v in values):
        raise ArgumentError("errors must give finite numbers above 0 for every part of the promise")
    return math.fsum(values)


def _advanced(epsilons: Sequence[float], slack: float) -> float:
    """`advanced_heterogeneous` in plain doubles, for the search alone."""
    square = math.fsum(x * x for x in epsilons)
    drift = math.fsum(x * math.tanh(x / 2) for x in epsilons)
    log = min(math.log(1 / slack), math.log(math.e + math.sqrt(square) / slack))
    return min(math.fsum(epsilons), drift + math.sqrt(2 * square * log))


class _Search:
    """Golden sections over log-ratios of the epsilons and log-shares of delta."""

    def __init__(self, errors: Errors, epsilon: float, delta: float, theorem: str) -> None:
        self.errors, self.epsilon, self.theorem = errors, epsilon, theorem
        # Room for the rounding of the shares' sum; `_keeps` decides.
        self.delta = delta
        k = len(errors)
        half = epsilon / k
        self.uses = [float(f(half, delta / 2)) != float(f(half, delta / 8)) for f in errors]
        # One coordinate a ratio (the first epsilon's is 0), then one a share of delta.
        self.at = [0.0] * (2 * k)

    def parts(self, at: Sequence[float]) -> tuple[list[float], list[float], float]:
        """Ratios of the epsilons, deltas and slack at some coordinates."""
        k = len(self.errors)
        weights = [math.exp(x) if use else 0.0 for x, use in zip(at[k:], self.uses, strict=True)]
        free = 1.0 if self.theorem == "advanced" else 0.0
        whole = math.fsum(weights) + free
        unit = self.delta * (1 - 1e-14) / whole if whole else 0.0
        return [math.exp(x) for x in at[:k]], [w * unit for w in weights], free * unit

    def scale(self, ratios: Sequence[float], slack: float) -> float:
        """The common factor of the epsilons at which the theorem gives the promise."""
        low, high = 0.0, self.epsilon / max(ratios)
        if self.theorem == "basic":
            return self.epsilon / math.fsum(ratios)
        for _ in range(60):
            middle = (low + high) / 2
            if _advanced([middle * r for r in ratios], slack) <= self.epsilon:
                low = middle
            else:
                high = middle
        return low

    def error(self, at: Sequence[float]) -> float:
        """The total error at some coordinates."""
        ratios, deltas, slack = self.parts(at)
        t = self.scale(ratios, slack)
        return _total_error(self.errors, [t * r for r in ratios], deltas)

    def run(self) -> None:
        """Passes over the coordinates, narrower where a pass no longer moves much."""
        k = len(self.errors)
        free = list(range(1, k)) + [k + i for i in range(k) if self.uses[i]]
        if self.theorem == "basic" and sum(self.uses) < 2:
            free = [i for i in free if i < k]
        best, width = self.error(self.at), 2.0
        for _ in range(_ROUNDS):
            before = best
            for i in free:
                best = self._golden(i, width, best)
            if best > before * (1 - 1e-3):
                width /= 3
            if width < 1e-4:
                break

    def _golden(self, i: int, width: float, best: float) -> float:
        part, middle = (math.sqrt(5) - 1) / 2, self.at[i]
        low, high, kept = middle - width, middle + width, middle

        def value(x: float) -> float:
            nonlocal best, kept
            found = self.error([*self.at[:i], x, *self.at[i + 1 :]])
            if found < best:
                best, kept = found, x
            return found

        x, y = high - part * (high - low), low + part * (high - low)
        at_x, at_y = value(x), value(y)
        for _ in range(_STEPS):
            if at_x <= at_y:
                high, y, at_y = y, x, at_x
                x = high - part * (high - low)
                at_x = value(x)
            else:
                low, x, at_x = x, y, at_y
                y = low + part * (high - low)
                at_y = value(y)
        self.at[i] = kept
        return best

    def best(self) -> Division:
        """The best parts, moved inwards until the theorem itself says that they fit."""
        self.run()
        ratios, deltas, slack = self.parts(self.at)
        t, inwards = self.scale(ratios, slack), 1e-15
        while True:
            epsilons = [t * (1 - inwards) * r for r in ratios]
            if self._keeps(epsilons, deltas, slack):
                break
            inwards *= 2
        total = _total_error(self.errors, epsilons, deltas)
        return Division(tuple(epsilons), tuple(deltas), slack, total, self.theorem)

    def _keeps(self, epsilons: Sequence[float], deltas: Sequence[float], slack: float) -> bool:
        pairs = list(zip(epsilons, deltas, strict=True))
        spent = sum((Fraction(x) for x in deltas), Fraction(slack))
        if spent > Fraction(self.delta):
            raise ArgumentError("delta is too small to be divided in doubles")
        if self.theorem == "basic":
            return heterogeneous(pairs)[0] <= self.epsilon
        return advanced_heterogeneous(pairs, slack).upper <= self.epsilon


def _optimal(errors: Errors, epsilon: float, delta: float) -> Division:
    """The exact composition: the closed theorem's ratios, with a searched share for the deltas."""
    search = _Search(errors, epsilon, delta, "advanced")
    search.run()
    ratios, deltas, slack = search.parts(search.at)
    held = math.fsum(deltas)
    start = search.scale(ratios, slack)

    def tried(share: float) -> Division:
        nonlocal start
        given = [x * (share * delta / held) for x in deltas] if held else deltas
        start = float(
            calibrate(
                lambda t: compose(
                    *(approximate(t * r, x) for r, x in zip(ratios, given, strict=True))
                ),
                epsilon=epsilon,
                delta=delta,
                start=start,
            )
        )
        epsilons = [start * r for r in ratios]
        total = _total_error(errors, epsilons, given)
        left = max(0.0, delta - math.fsum(given))
        return Division(tuple(epsilons), tuple(given), left, total, "optimal")

    if not held:
        return tried(0.0)
    shares = sorted({0.2, 0.4, 0.6, 0.8, 0.95, held / delta})
    return min((tried(share) for share in shares), key=lambda division: division.error)
