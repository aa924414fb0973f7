"""The split of (epsilon, delta, delta') among mechanisms that has the least total error.

A promise (epsilon, delta) is to be kept by k mechanisms together. Each has its own (epsilon_i,
delta_i), and the theorem that adds them up may need a slack delta'. The parts are not alike: each
error falls with epsilon_i and delta_i at its own rate. Which split is best? Nothing has to be
enumerated: it is a smooth minimum with one constraint, since every error falls as either grows, and
a theorem says what they cost together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._format import Printable, loss_text, remaining
from dither.errors import ArgumentError, nearest
from dither.numeric import float_down
from dither.privacy import approximate, compose
from dither.privacy.division._descent import (
    Array,
    BoundaryPoint,
    DivisionRequest,
    largest_factor,
    least,
    log_ratio,
)
from dither.privacy.division._saddle import PureSaddle
from dither.privacy.theorems import advanced_of_groups, basic_of_groups

__all__ = ["Division", "divide", "divide_groups"]


THEOREMS = ("basic", "advanced", "optimal")

_STEP = 1e-5
"""The difference in log-shares that slopes are taken over."""
_MOST = 499.0
"""The largest epsilon of one part."""

_GAIN = 1e-6
"""A theorem that gains less than this against a simpler one is not chosen."""

_LISTED = 20_000
"""Sums of losses that are listed in no time."""

Errors = Sequence[Callable[[float, float], float]]


@dataclass(frozen=True, slots=True)
class Division(Printable):
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

    def summary(self) -> str:
        """The division as a table."""
        slack = loss_text(self.slack, 3)
        lines = [f"by {self.theorem}: total error {self.error:.6g}, slack delta {slack}"]
        for i, (e, d) in enumerate(zip(self.epsilons, self.deltas, strict=True), 1):
            lines.append(f"  {i:>3}  epsilon {remaining(e, 6):<12} delta {remaining(d, 3)}")
        return "\n".join(lines)


def divide(errors: Errors, *, epsilon: float, delta: float, theorem: str | None = None) -> Division:
    """The (epsilon_i, delta_i) and the slack delta' of least total error.

    Parameters
    ----------
    errors : sequence of callable
        Each from (epsilon_i, delta_i) to an error (a variance, say) that is above 0, finite and
        does not grow with either. ``delta_i`` may be 0 for errors that do not depend on it. The
        same function listed twice gets the same part twice.
    epsilon, delta : float
        The promise for everything together: above 0 and below 500, and in [0, 1).
    theorem : {"basic", "advanced", "optimal"}, optional
        "basic": both add up, without slack; the only one at delta 0. "advanced": the square-root
        bounds of `advanced_heterogeneous`. "optimal": the exact composition of the worst mechanisms
        with these guarantees, which is never worse. By default, the simplest that none beats by
        1e-6.

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
    Log-epsilons and log-shares of delta, the slack's among them, descend together along the
    boundary of the promise (`_descent`); twenty different mechanisms take well under
    a second. For "basic" and "advanced" the minimum is met to about 1e-4 of the error. For
    "optimal" the search goes by a saddle point and only its result is exact: held against
    exhaustive scans it was within 1 %.

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
    functions = check.listed("errors", errors, "functions of (epsilon, delta)")
    if not all(callable(f) for f in functions):
        raise ArgumentError("errors must be functions of (epsilon, delta)")
    distinct = list({id(f): f for f in functions}.values())
    places = {id(f): i for i, f in enumerate(distinct)}
    group = [places[id(f)] for f in functions]
    counts = [group.count(i) for i in range(len(distinct))]
    found = divide_groups(distinct, counts, epsilon=epsilon, delta=delta, theorem=theorem)
    return Division(
        tuple(found.epsilons[i] for i in group),
        tuple(found.deltas[i] for i in group),
        found.slack,
        found.error,
        found.theorem,
    )


def divide_groups(
    errors: Errors,
    counts: Sequence[int],
    *,
    epsilon: float,
    delta: float,
    theorem: str | None = None,
) -> Division:
    """`divide` for ``counts[i]`` mechanisms of each error; the result has one part a group."""
    e = check.number("epsilon", epsilon, above=0, below=500, rounding="down")
    d = check.number("delta", delta, least=0, below=1, rounding="down")
    if theorem is not None and theorem not in THEOREMS:
        raise ArgumentError(
            "theorem must be 'basic', 'advanced' or 'optimal'" + nearest(str(theorem), THEOREMS)
        )
    if d == 0 and theorem not in (None, "basic"):
        raise ArgumentError("delta must be above 0 for a theorem with slack; 'basic' needs none")
    search = _Search(errors, np.array(counts, dtype=float), e, d)
    if theorem is not None:
        return search.by(theorem)
    chosen = search.by("basic")
    for name in THEOREMS[1:] if d > 0 else ():
        other = search.by(name)
        # A sharper theorem has to gain something, as the simpler promise is easier to explain.
        chosen = other if other.error < chosen.error * (1 - _GAIN) else chosen
    return chosen


def _closed(counts: Array) -> Callable[[Array, float], float]:
    """`advanced_heterogeneous` in plain doubles, for the search alone."""

    def total(epsilons: Array, slack: float) -> float:
        square = float((counts * epsilons**2).sum())
        drift = float((counts * epsilons * np.tanh(epsilons / 2)).sum())
        log = min(math.log(1 / slack), math.log(math.e + math.sqrt(square) / slack))
        return drift + math.sqrt(2 * square * log)

    return total


def _on_lattice(levels: Array, counts: Array) -> Array:
    """Levels as multiples of a 32nd of the least, where their sums are too many to list.

    Moving levels by a per cent costs a ten-thousandth of the error, near its minimum, and makes
    the exact composition a matter of milliseconds.
    """
    if float(np.log1p(counts).sum()) < math.log(_LISTED):
        return levels
    unit = float(levels.min()) / 32
    result: Array = np.rint(levels / unit) * unit
    return result


class _Search:
    """One promise and its errors, searched by any theorem."""

    def __init__(self, errors: Errors, counts: Array, epsilon: float, delta: float) -> None:
        self.errors, self.counts, self.epsilon, self.delta = errors, counts, epsilon, delta
        each = epsilon / float(counts.sum())
        self.uses = np.zeros(len(counts), dtype=bool)
        if delta > 0:
            self.uses = np.array(
                [float(f(each, delta / 2)) != float(f(each, delta / 8)) for f in errors]
            )
        self.known: dict[str, BoundaryPoint] = {}
        self.saddle = PureSaddle(counts, epsilon, delta or 0.5)

    def wanted(self, theorem: str) -> DivisionRequest:
        """The search's problem by a theorem."""
        counts = self.counts
        totals: dict[str, tuple[Callable[[Array, float], float], float]] = {
            "basic": (lambda x, _: float((counts * x).sum()), _STEP),
            "advanced": (_closed(counts), _STEP),
            "optimal": (self.saddle.total, 10 * _STEP),
        }
        total, step = totals[theorem]
        slack = theorem != "basic"
        return DivisionRequest(
            self.errors, counts, total, self.epsilon, self.delta, self.uses, slack, step=step
        )

    def found(self, theorem: str) -> BoundaryPoint:
        """The best levels by a theorem, before they are checked."""
        if theorem not in self.known:
            m, weights = len(self.counts), None
            levels = np.full(m, self.epsilon / float(self.counts.sum()))
            if theorem == "optimal":
                # The better of the closed theorems is near, and its slack is a start.
                near = min((self.found("basic"), self.found("advanced")), key=lambda f: f.error)
                levels = near.levels
                left = near.slack or 0.05 * self.delta
                weights = np.log(np.where(self.uses, near.deltas, left) / left)
            self.known[theorem] = least(self.wanted(theorem), levels, weights)
        return self.known[theorem]

    def by(self, theorem: str) -> Division:
        """The best parts, moved inwards until the theorem itself says that they fit."""
        if theorem == "optimal":
            # What adds up to the promise keeps it by the exact composition all the more.
            plain = replace(self.by("basic"), theorem="optimal")
            return min(self._optimal(), plain, key=lambda division: division.error)
        # The first step inwards; each next one is longer, until the theorem says that they fit.
        found, inwards = self.found(theorem), 1e-15
        while True:
            epsilons = found.levels * (1 - inwards)
            if self._keeps(theorem, epsilons, found):
                break
            inwards *= 2
        return self._division(theorem, epsilons, found.deltas, found.slack)

    def _division(self, theorem: str, epsilons: Array, deltas: Array, slack: float) -> Division:
        total = self.wanted("basic").error(epsilons, deltas)
        return Division(tuple(epsilons.tolist()), tuple(deltas.tolist()), slack, total, theorem)

    def _groups(self, epsilons: Array, deltas: Array) -> list[tuple[float, float, int]]:
        counts: list[Any] = self.counts.astype(int).tolist()
        return list(zip(epsilons.tolist(), deltas.tolist(), counts, strict=True))

    def _keeps(self, theorem: str, epsilons: Array, found: BoundaryPoint) -> bool:
        groups = self._groups(epsilons, found.deltas)
        total, spent = basic_of_groups(groups)
        # In rationals, as the sum is what is promised.
        if spent + Fraction(found.slack) > Fraction(self.delta):
            raise ArgumentError("delta is too small to be divided in doubles")
        if theorem == "basic":
            return total <= Fraction(self.epsilon)
        return advanced_of_groups(groups, found.slack).upper <= self.epsilon

    def _optimal(self) -> Division:
        """The levels scaled until the exact composition, deltas included, meets the promise."""
        found = self.found("optimal")
        levels = _on_lattice(found.levels, self.counts)
        groups = self._groups(levels, found.deltas)

        def over(t: float) -> float:
            parts = (n * approximate(min(t * x, _MOST), d) for x, d, n in groups)
            return log_ratio(compose(*parts).delta(self.epsilon).upper, self.delta)

        scale = largest_factor(over)
        left = Fraction(self.delta) - basic_of_groups(groups)[1]
        # Shares that rounding has made too large cannot be mended by levels.
        if left < 0:
            raise ArgumentError("delta is too small to be divided in doubles")
        most = np.minimum(levels * scale, _MOST)
        return self._division("optimal", most, found.deltas, float_down(left))
