"""The engines that turn a loss into numbers, tried from the sharpest to the most general.

An engine is built for a target (a delta or an epsilon) and answers ``bounds(epsilon)``: a certified
interval of log(delta) of the finite part of the loss, sound at any epsilon and tight near the
target. `engine` chooses: closed form, binomial sum, lattice, contour in doubles or in balls,
enumeration, grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dither.privacy.engines.ball_binomial import BinomialProfile
from dither.privacy.engines.ball_closed import (
    GaussianProfile,
    LaplacesProfile,
    SampledGaussianProfile,
    SeparatedProfile,
)
from dither.privacy.engines.ball_contour import BallContour, laws_of
from dither.privacy.engines.ball_jumps import JumpContour
from dither.privacy.engines.ball_laws import Law
from dither.privacy.engines.ball_responses import ResponsesProfile
from dither.privacy.engines.closed import (
    Enumeration,
    LaplaceProfile,
    OnceSampled,
    WidenedProfile,
    lattice_of,
)
from dither.privacy.engines.contour import Contour
from dither.privacy.engines.grid import Grid
from dither.privacy.engines.search import best_tilt, invert, log_kappa
from dither.privacy.engines.vectors import VectorProfile
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.gaussian import GaussianTerm, WidenedGaussianTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.mixture import FixedSizeTerm
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.sampled_gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled_line import SampledLineTerm
from dither.privacy.laws.term import Array, Term

__all__ = ["Chernoff", "Engine", "Nothing", "engine", "invert", "settles"]


class Engine(Protocol):
    """A certified profile."""

    name: str
    start: float

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        ...


class Nothing:
    """The profile of a loss that is always 0: delta(epsilon) = (1 - e^epsilon)_+."""

    name = "closed form"
    start = 0.0

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        value = math.log(-math.expm1(epsilon)) if epsilon < 0 else -math.inf
        return value, value


class Chernoff:
    """An upper bound from a Rényi profile: every tilt proves one, and the best is taken."""

    name = "Rényi conversion"

    def __init__(
        self, moments: Sequence[Term], *, log_delta: float | None, epsilon: float | None
    ) -> None:
        self._terms = moments
        self._log_delta = log_delta
        atoms = [t for t in moments if isinstance(t, AtomTerm)]
        self._rough = sum(t.count * t.relative for t in atoms)
        self._placed = sum(t.count * t.position for t in atoms)
        reach = min((t.reach for t in moments), default=1e7)
        fine = not any(isinstance(t, SampledGaussianTerm) for t in moments)
        self.c, self.start = best_tilt(
            self.moment, log_delta=log_delta, epsilon=epsilon, reach=reach, fine=fine
        )
        if epsilon is not None:
            self.start = epsilon

    def moment(self, c: Array) -> Array:
        """The sum of the terms' log-moments."""
        total = np.zeros_like(c)
        for term in self._terms:
            total = total + term.log_moment(c)
        return total

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(-inf, log upper)."""
        c = np.array([self.c])
        k = float(self.moment(c)[0])
        k += 1e-13 * abs(k) + 2e-14 + sum(t.blur(self.c) for t in self._terms)
        k += self._rough + self.c * self._placed
        return -math.inf, min(0.0, k - self.c * epsilon + float(log_kappa(self.c)) + 1e-14)


def engine(
    terms: Sequence[Term], *, log_delta: float | None = None, epsilon: float | None = None
) -> Engine:
    """The sharpest engine that can certify these terms at this target."""
    kinds = {type(t) for t in terms}
    if not terms:
        return Nothing()
    if kinds == {GaussianTerm}:
        total = sum(t.mu_squared for t in terms if isinstance(t, GaussianTerm))
        _, start = best_tilt(
            lambda c: c * (c + 1) * (total / 2), log_delta=log_delta, epsilon=epsilon
        )
        return GaussianProfile(total, start if epsilon is None else epsilon)
    if len(terms) == 1 and isinstance(terms[0], WidenedGaussianTerm):
        wide = terms[0]
        _, start = best_tilt(wide.log_moment, log_delta=log_delta, epsilon=epsilon)
        start = start if epsilon is None else epsilon
        widened = WidenedProfile(
            GaussianProfile(wide.gauss.mu_squared, start), wide.shift, wide.lift, start
        )
        if wide.sigma < 1:
            return widened
        return VectorProfile(wide, widened, start, log_delta=log_delta, epsilon=epsilon)
    if len(terms) == 1 and isinstance(terms[0], LaplaceTerm):
        law = terms[0]
        if len(law.epsilons) == 1 and law.counts[0] == 1:
            return LaplaceProfile(float(law.epsilons[0]))
        if len(law.epsilons) == 1 and law.counts[0] <= LaplacesProfile.LARGEST:
            start = law.top() if epsilon is None else epsilon
            return LaplacesProfile(float(law.epsilons[0]), int(law.counts[0]), start)
    if len(terms) == 1 and isinstance(terms[0], SampledGaussianTerm):
        if terms[0].count == 1:
            return SampledGaussianProfile(terms[0])
        apart = _apart(terms[0], log_delta, epsilon)
        if apart is not None:
            return apart
    if len(terms) == 1 and isinstance(terms[0], SampledLineTerm) and terms[0].count == 1:
        return _once(terms[0], epsilon)
    if len(terms) == 1 and isinstance(terms[0], ResponseTerm) and BinomialProfile.fits(terms[0]):
        return BinomialProfile(terms[0], log_delta=log_delta, epsilon=epsilon)
    if ResponsesProfile.fits(terms):
        responses = ResponsesProfile(terms, log_delta=log_delta, epsilon=epsilon)
        if responses.certified:
            return responses
    atoms = [t for t in terms if isinstance(t, AtomTerm)]
    if len(atoms) == len(terms):
        lattice = lattice_of(atoms, log_delta=log_delta, epsilon=epsilon)
        if lattice is not None:
            return lattice
        sizes = sum(t.count * math.log(len(t.losses)) for t in atoms)
        if sizes < math.log(400_000) or sum(t.count for t in atoms) <= 400:
            top = sum(t.count * float(t.losses[-1]) for t in atoms)
            start = top if epsilon is None else epsilon
            listed = Enumeration(atoms, start)
            if listed.certified:
                return listed
    if all(t.smooth for t in terms):
        laws = laws_of(terms)
        found = _settled(terms, log_delta, epsilon, False, _CHEAP if laws else _DEAREST)
        if found is not None and found.sharp:
            return found.contour
        if laws:
            jumps = _jumped(terms, log_delta, epsilon, found)
            if jumps is not None:
                return jumps
            balls = _balled(laws, log_delta, epsilon, found)
            if balls is not None:
                return balls
        else:
            found = found or _settled(terms, log_delta, epsilon, True, _DEAREST)
        if found is not None:
            return found.contour
    return _refined(terms, log_delta, epsilon)


def _once(term: SampledLineTerm, epsilon: float | None) -> OnceSampled:
    """One sample's closed form, from its base's."""
    inner = term.inner
    one = inner.first if isinstance(inner, FixedSizeTerm) else inner
    removal = None if isinstance(inner, FixedSizeTerm) else one.removal
    base: GaussianProfile | LaplaceProfile
    if isinstance(term.base, GaussianTerm):
        base, start = GaussianProfile(term.base.mu_squared, 0.0), 1.0
    else:
        assert isinstance(term.base, LaplaceTerm)
        base, start = LaplaceProfile(float(term.base.epsilons[0])), one.top()
    return OnceSampled(base, one.rate, removal, start if epsilon is None else epsilon)


_NARROW = 2e-7
"""A width of log(delta) that is not worth another attempt."""

_SMOOTHED = 3e-6
"""The same, of a contour that takes a hundred times longer."""

_NOTHING = -800.0
"""A log(delta) that no double holds."""

_CHEAP, _DEAREST = 2e5, 6e6
"""What a contour in doubles may cost where there is one in balls, and where there is none."""

_ATTEMPTS = 4


_SHARP = 2e-10
"""A relative width of epsilon with which one is content."""

_FINE, _FEWER, _SEVERAL = 1e-13, 1e-10, 30
"""What a line in balls may lose of delta, where there are several repetitions or fewer."""

_ROUGH, _PROOFS = 1e-5, (1e-2, 1e-4, 1e-6)
"""The same where a line is to find a place, and where it is to prove a bound."""


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
        return self.high - self.low <= _SHARP * max(self.contour.c * self.at, 1.0)


def _apart(
    term: SampledGaussianTerm, log_delta: float | None, epsilon: float | None
) -> SeparatedProfile | None:
    """The closed form for large losses, where it is sharp."""
    if not SeparatedProfile.fits(term):
        return None
    found = SeparatedProfile(term, epsilon)
    at = epsilon
    if log_delta is not None:
        at = invert(_upper_of(found), log_delta, found.start, above=True, tiny=1e-12)
    if at is None or not math.isfinite(at):
        return found
    low, high = found.bounds(at)
    return found if high - low <= _SHARP or high <= _NOTHING else None


def _settled(
    terms: Sequence[Term],
    log_delta: float | None,
    epsilon: float | None,
    smoothed: bool,
    dearest: float,
) -> _Found | None:
    """A contour that is narrow where it will be asked, if there is one.

    The first is built for where Chernoff's bound puts the target. Under a heavy tail that is far
    off, and the next is built for where the first one puts it.
    """
    contour = Contour(
        terms, log_delta=log_delta, epsilon=epsilon, smoothed=smoothed, dearest=dearest
    )
    if not contour.certified:
        return None
    best, width = None, math.inf
    first, last = 0.0, math.inf
    # Balls do at once what more attempts in doubles may do.
    attempts = 1 if dearest == _CHEAP else _ATTEMPTS
    for attempt in range(attempts):
        low_end, high_end = _ends(contour, log_delta)
        first, last = max(first, low_end), min(last, high_end)
        at = (first + last) / 2
        low, high = contour.bounds(at)
        if best is None or high - low < 0.7 * width:
            best, width = _Found(contour, at, low, high), high - low
        elif width < 1e-3:
            break
        if high - low <= (_SMOOTHED if smoothed else _NARROW) or attempt == attempts - 1:
            break
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


def _jumped(
    terms: Sequence[Term], log_delta: float | None, epsilon: float | None, near: _Found | None
) -> JumpContour | None:
    """A contour of large losses alone, where they decide: Newton's steps from where one does."""
    term = terms[0]
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
        at = invert(_upper_of(one), float(log_delta or 0.0) - repeats, 1.0, above=True, tiny=1e-6)
    size = log_delta
    if size is None:
        known = near is not None and near.high - near.low < 3
        size = near.low if near is not None and known else min(one.bounds(at)[0] + repeats, 0.0)
    tolerance, found = _ROUGH, None
    for _ in range(_ATTEMPTS):
        if not (0 < at < math.inf and math.isfinite(size)):
            break
        found = JumpContour(term, epsilon=at, log_delta=size, tolerance=tolerance, near=found)
        if not found.certified:
            break
        low, high = found.bounds(at)
        if tolerance == _FINE and high - low <= _SHARP:
            return found
        if epsilon is not None:
            size = low if high - low < 3 else min(high, size) - 12
        elif high - low < 3:
            # The slope is at least that of the line, up to what one cannot tell.
            step = 1e-3 / found.c
            slope = max((high - found.bounds(at + step)[1]) / step, found.c / 2)
            move = (high - float(log_delta or 0.0)) / slope
            at = max(at + move, at / 4)
            if abs(move) * found.c > 0.3:
                continue
        if high - low < 3:
            tolerance = _FINE
    return None


def _balled(
    laws: Sequence[Law], log_delta: float | None, epsilon: float | None, near: _Found | None
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
    at = epsilon if epsilon is not None else near.at if near else value
    size = log_delta
    known = near is not None and near.high - near.low < 3
    if size is None:
        size = near.low if near is not None and known else min(value, 0.0) - 3
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
            above = invert(_upper_of(found), log_delta, at, above=True, tiny=1e-9)
            if not math.isfinite(above):
                break
            below = invert(lambda e: found.bounds(e)[0], log_delta, above, above=False, tiny=1e-9)  # noqa: B023
            at = (below + above) / 2
            if above - below <= 200 * fine * above:
                break
        low, high = found.bounds(at)
        if high - low <= max(_SHARP, 20 * fine):
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


def settles(terms: Sequence[Term], *, epsilon: float, log_delta: float) -> bool:
    """Whether delta(epsilon) is easily shown to be below a target.

    By Chernoff's bound, by a contour in doubles, or by one in balls that is not sharp.
    """
    bound = Chernoff(terms, log_delta=None, epsilon=epsilon)
    if bound.bounds(epsilon)[1] <= log_delta:
        return True
    laws = laws_of(terms)
    if laws is None:
        return False
    plain = Contour(terms, log_delta=None, epsilon=epsilon, dearest=_CHEAP)
    if plain.certified and plain.bounds(epsilon)[1] <= log_delta:
        return True
    for tolerance in _PROOFS:
        rough = BallContour(
            laws, epsilon=epsilon, log_delta=log_delta, tilt=bound.c, tolerance=tolerance
        )
        if not rough.certified:
            return False
        low, high = rough.bounds(epsilon)
        if high <= log_delta or low > log_delta:
            return high <= log_delta
    return False


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
    if not math.isfinite(above):
        return at, at
    below = invert(lambda e: contour.bounds(e)[0], log_delta, above, above=False, tiny=1e-4)
    return min(below, above), above


def _refined(terms: Sequence[Term], log_delta: float | None, epsilon: float | None) -> Grid:
    """A finer grid until epsilon is known to a millionth, or the next would take too long."""
    repeats = sum(len(t.singles()) for t in terms)
    best: Grid | None = None
    cap, least = epsilon, math.inf
    for bits in (13, 15, 17):
        if best is not None and repeats << bits > 1 << 20:
            break
        grid = Grid(terms, log_delta=log_delta, epsilon=epsilon, points=1 << bits, cap=cap)
        best = grid if best is None else best
        if log_delta is not None:
            start = grid.start if cap is None else cap
            cap = invert(_upper_of(grid), log_delta, start, above=True, tiny=1e-6)
        if cap is None or not math.isfinite(cap):
            break
        low, high = grid.bounds(cap)
        # On too fine a grid the rounding of its masses outweighs what it gains.
        if high - low < least:
            best, least = grid, high - low
        elif bits > 13:
            break
        if least <= max(1e-7, 3e-7 * grid.upper.c * cap):
            break
        cap *= 1 + 1e-6
    assert best is not None
    return best


def _upper_of(grid: Engine) -> Callable[[float], float]:
    return lambda e: grid.bounds(e)[1]
