"""Contours that are made again for where the one before puts the target, until they are sharp.

Nothing here is proved, and nothing needs to be: a contour's interval holds at every epsilon, for
whichever it was made. The figures below say when one is content.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dither.privacy.engines.balls.capped import CappedContour
from dither.privacy.engines.balls.closed import SampledGaussianProfile
from dither.privacy.engines.balls.contour import BallContour
from dither.privacy.engines.balls.jumps import JumpContour
from dither.privacy.engines.balls.laws import Law, law_of
from dither.privacy.engines.contour import Contour
from dither.privacy.engines.search import best_tilt, invert
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.term import Array, Term

__all__ = ["CHEAP", "DEAREST", "SHARP", "TargetPlace", "balled", "jumped", "settled"]


_NARROW = 2e-7
"""A width of log(delta) that is not worth another attempt."""

_SMOOTHED = 3e-6
"""The same, of a contour that takes a hundred times longer."""

CHEAP, DEAREST = 2e5, 6e6
"""What a contour in doubles may cost where there is one in balls, and where there is none."""

_NEAR = 1e-3
"""Parts of epsilon by which a place may move without another smoothed contour being made for it."""

_NEAREST = 1e-100
"""Places nearer to 0 are left to other engines."""
_ATTEMPTS = 4

SHARP = 2e-10
"""A relative width of epsilon with which one is content."""

_FINE, _FEWER, _SEVERAL = 1e-13, 1e-10, 30
"""What a line in balls may lose of delta, where there are several repetitions or fewer."""

_ROUGH = 1e-5
"""The same where a line is to find a place."""


_QUICK, _RARE = 4e5, 3e6
"""What a contour of rare losses may cost where there may be another, and where there is none."""

_EASY = 1e5
"""What a contour of all losses in balls may cost, for none of rare losses to be tried."""

_SHARING = 1000
"""Runs that may share a large loss, where a place is guessed."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A contour, where it was asked, and log(delta) there."""

    contour: Contour
    at: float
    low: float
    high: float

    @property
    def sharp(self) -> bool:
        """Whether balls would not show in epsilon."""
        return self.high - self.low <= SHARP * max(self.contour.c * self.at, 1.0)


@dataclass(frozen=True, slots=True)
class TargetPlace:
    """About where a target is, and whether that is known or guessed."""

    at: float
    known: bool


def settled(
    terms: Sequence[Term],
    log_delta: float | None,
    epsilon: float | None,
    smoothed: bool,
    dearest: float,
    tilt: tuple[float, float] | None = None,
) -> _Found | None:
    """A contour that is narrow where it will be asked, if there is one.

    The first is built for where Chernoff's bound puts the target. Under a heavy tail that is far
    off, and the next is built for where the first one puts it.
    """
    contour = Contour(
        terms, log_delta=log_delta, epsilon=epsilon, smoothed=smoothed, dearest=dearest, tilt=tilt
    )
    if not contour.certified:
        return None
    best, width = None, math.inf
    first, last = 0.0, math.inf
    # Balls do at once what more attempts in doubles may do.
    attempts = 1 if dearest == CHEAP else _ATTEMPTS
    for attempt in range(attempts):
        low_end, high_end = _ends(contour, log_delta)
        # Each contour's ends hold: what is left is where all of them put the target.
        first, last = max(first, low_end), min(last, high_end)
        at = (first + last) / 2
        low, high = contour.bounds(at)
        if best is None or high - low < 0.7 * width:
            best, width = _Found(contour, at, low, high), high - low
        # Narrow already, and another attempt has not helped: nor would the next.
        elif width < 1e-3:
            break
        if high - low <= (_SMOOTHED if smoothed else _NARROW) or attempt == attempts - 1:
            break
        # It was made for this place already.
        if smoothed and attempt > 0 and abs(at - contour.start) <= _NEAR * at:
            break
        # A size that is known to e^3 is better than Chernoff's; a wilder one is not.
        size = low if high - low < 3 else None
        contour = Contour(
            terms,
            log_delta=None,
            epsilon=at,
            log_size=size,
            smoothed=smoothed,
            dearest=dearest,
        )
        if not contour.certified:
            break
    return best


def jumped(
    terms: Sequence[Term], log_delta: float | None, epsilon: float | None, near: _Found | None
) -> CappedContour | JumpContour | TargetPlace | None:
    """A contour that knows rare large losses, where they decide: Newton's steps to the target.

    Or else where the target lies, as far as that was found on the way.
    """
    term = terms[0]
    # The split into body, jump and far losses is derived for this law in this direction alone.
    if len(terms) > 1 or not isinstance(term, SampledGaussianTerm) or not term.removal:
        return None
    one = SampledGaussianProfile(
        SampledGaussianTerm(term.noise_multiplier, term.rate, True, 1, term.k)
    )
    repeats = math.log(term.count)
    if epsilon is not None:
        at = epsilon
    elif near is not None:
        at = near.at
    else:
        at = invert(
            lambda e: one.bounds(e)[1],
            float(log_delta or 0.0) - repeats,
            1.0,
            above=True,
            tiny=1e-6,
        )
        # A total may be reached by several equal runs sooner than by one large one.
        at = _shared(term, at)
    size = log_delta
    if size is None:
        known = near is not None and near.high - near.low < 3
        size = near.low if near is not None and known else min(one.bounds(at)[0] + repeats, 0.0)
    # Where the place is given, several runs are seldom far from so many times one.
    if term.count >= _SEVERAL and _easy(term, at, size):
        return TargetPlace(at, False)
    tolerance, jumps = _ROUGH if epsilon is None else _FINE, None
    for _ in range(_ATTEMPTS):
        # Tilts are some multiples of 1/at, and their squares must stay within the doubles; nearer
        # to 0 it is as if epsilon were 0, for which other engines are.
        if not (_NEAREST < at < math.inf and math.isfinite(size)):
            return None
        found = _rare(term, at, size, tolerance, jumps)
        if not found.certified:
            break
        # Its widths are about right for the next place, which spares a search.
        jumps = found if isinstance(found, JumpContour) else None
        low, high = found.bounds(at)
        if epsilon is not None:
            if high - low <= SHARP:
                return found
            # Where little is known of delta, ask for e^12 less: cut too little, not too much.
            size = low if high - low < 3 else min(high, size) - 12
            continue
        if high - low >= 3:
            continue
        at, moved = _moved(found, at, float(log_delta or 0.0))
        low, high = found.bounds(at)
        if high - low <= SHARP:
            # Who looks for the target from elsewhere may step over where the bounds are sharp.
            found.start = at
            return found
        if moved <= 0.05 and (tolerance == _FINE or isinstance(found, CappedContour)):
            # As sharp as it gets.
            break
        if moved <= 0.3:
            tolerance = _FINE
    if epsilon is not None or not 0 < at < math.inf:
        return None
    return TargetPlace(at, tolerance == _FINE)


def _easy(term: SampledGaussianTerm, epsilon: float, size: float) -> bool:
    """Whether so many repetitions fade so fast that rare losses do no harm."""
    if not (0 < epsilon < math.inf and math.isfinite(size)):
        return False
    tilt, _ = best_tilt(term.log_moment, log_delta=None, epsilon=epsilon, reach=term.reach)
    law = law_of(term)
    assert law is not None
    ask = {"epsilon": epsilon, "log_delta": size, "tilt": tilt, "tolerance": _FINE}
    return BallContour([law], **ask, dearest=0.0).work <= _EASY


def _rare(
    term: SampledGaussianTerm,
    epsilon: float,
    size: float,
    tolerance: float,
    near: JumpContour | None,
) -> CappedContour | JumpContour:
    """The quicker one of two, of which the first costs about the same at any tolerance."""
    ask = {"epsilon": epsilon, "log_delta": size}
    capped = CappedContour(term, **ask, tolerance=_FINE, dearest=_QUICK)
    if capped.certified:
        return capped
    dearest = min(capped.work, _RARE)
    # What finds the place is only worth its while where the last step can be paid.
    payable = tolerance == _FINE or near is not None
    if payable or JumpContour.affordable(term, epsilon, size, _FINE, dearest):
        jumps = JumpContour(term, **ask, tolerance=tolerance, near=near, dearest=dearest)
        if jumps.certified or capped.work > _RARE:
            return jumps
    capped.pay(_RARE)
    return capped


def _moved(found: CappedContour | JumpContour, at: float, log_delta: float) -> tuple[float, float]:
    """Newton's steps to where the upper end meets the target, and how far that is in nats."""
    start = at
    for _ in range(_ATTEMPTS):
        # The slope is at least that of the line, up to what one cannot tell.
        step, high = 1e-3 / found.c, found.bounds(at)[1]
        slope = max((high - found.bounds(at + step)[1]) / step, found.c / 2)
        move = (high - log_delta) / slope
        # A step that would leave the positive numbers is cut.
        at = max(at + move, at / 4)
        # A millionth of a nat: the ends are proved where this was called.
        if abs(move) * found.c <= 1e-6:
            break
    return at, abs(at - start) * found.c


def _shared(term: SampledGaussianTerm, epsilon: float) -> float:
    """About where several runs reach what one run reaches at epsilon.

    Outcomes z_1, ..., z_m are as likely as one of their length; the worst m equal ones are taken.
    """
    if not 0 < epsilon < math.inf:
        return epsilon
    z = float(term.place(np.array([epsilon]))[0])
    runs = np.arange(1, min(term.count, _SHARING) + 1)
    losses = term.log_ratio(z / np.sqrt(runs))[0]
    return max(epsilon, float((runs * losses).max()))


def balled(
    laws: Sequence[Law],
    log_delta: float | None,
    epsilon: float | None,
    near: _Found | None,
    place: TargetPlace | None = None,
) -> BallContour | None:
    """A contour in balls, made for where the one before puts the target, until that is there."""
    terms = [law.term for law in laws]

    def moment(c: Array) -> Array:
        total = np.zeros_like(c)
        for term in terms:
            total = total + term.log_moment(c)
        return total

    reach = min(term.reach for term in terms)
    tilt, value = best_tilt(moment, log_delta=log_delta, epsilon=epsilon, reach=reach)
    at = epsilon if epsilon is not None else near.at if near else place.at if place else value
    size = log_delta
    known = near is not None and near.high - near.low < 3
    if size is None:
        size = near.low if near is not None and known else min(value, 0.0) - 3
    # Somebody looked for the place already, and knows whether it was found.
    if near is None and place is not None:
        known = place.known
    # Few repetitions fade slowly: there a line costs what its tolerance is.
    fine = _FINE if sum(term.count for term in terms) >= _SEVERAL else _FEWER
    best = None
    for attempt in range(_ATTEMPTS):
        if not (math.isfinite(at) and math.isfinite(size)):
            break
        tilt, _ = best_tilt(moment, log_delta=None, epsilon=at, reach=reach)
        # The first ones are only to learn where the target is, or how large delta is.
        tolerance = fine if known else _ROUGH
        found = BallContour(laws, epsilon=at, log_delta=size, tilt=tilt, tolerance=tolerance)
        if not found.certified:
            break
        best, made_for = found if tolerance == fine else best, at
        if log_delta is not None:
            above = invert(_end(found, 1), log_delta, at, above=True, tiny=1e-9)
            if not math.isfinite(above):
                break
            below = invert(_end(found, 0), log_delta, above, above=False, tiny=1e-9)
            at = (below + above) / 2
            if above - below <= 200 * fine * above:
                break
        low, high = found.bounds(at)
        if high - low <= max(SHARP, 20 * fine):
            break
        if tolerance == _ROUGH:
            known = high - low < 3 or attempt == _ATTEMPTS - 2
        if epsilon is not None:
            # Each run alone has less: to leave the others out is post-processing.
            size = low if high - low < 3 else max(min(high, size) - 12, _least(terms, at))
        if tolerance == fine and high - low < 1e-3 and abs(at - made_for) <= 0.05 / found.c:
            # It was made for here, and is as sharp as it was meant to be.
            break
    return best


def _least(terms: Sequence[Term], epsilon: float) -> float:
    """A lower bound of log(delta): the most that one run has by itself."""
    found = -math.inf
    for term in terms:
        if isinstance(term, SampledGaussianTerm):
            found = max(found, SampledGaussianProfile(term).bounds(epsilon)[0])
    return found


def _ends(contour: Contour, log_delta: float | None) -> tuple[float, float]:
    """About where the contour puts the target, from above and from below."""
    at = contour.start
    if log_delta is None:
        return at, at
    low, high = contour.bounds(at)
    for _ in range(2):
        at = max(0.0, at + (high - log_delta) / contour.c)
        low, high = contour.bounds(at)
    if high - low <= _NARROW and abs(high - log_delta) <= 0.1:
        return at, at
    above = invert(lambda e: contour.bounds(e)[1], log_delta, at, above=True, tiny=1e-4)
    # The upper end never falls to the target: this line is of no use for it.
    if not math.isfinite(above):
        return at, at
    below = invert(lambda e: contour.bounds(e)[0], log_delta, above, above=False, tiny=1e-4)
    return min(below, above), above


def _end(contour: BallContour, which: int) -> Callable[[float], float]:
    """One end of its bounds."""
    return lambda e: contour.bounds(e)[which]
