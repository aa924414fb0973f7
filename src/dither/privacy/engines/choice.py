"""The engines that turn a loss into numbers, tried from the sharpest to the most general.

An engine is built for a target (a delta or an epsilon) and answers ``bounds(epsilon)``: a certified
interval of log(delta) of the finite part of the loss, sound at any epsilon and tight near the
target. `engine` chooses: closed form, binomial sum, lattice, contour in doubles or in balls,
enumeration, grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Protocol

import numpy as np

from dither.privacy.engines.balls.binomial import BinomialProfile
from dither.privacy.engines.balls.closed import (
    GaussianProfile,
    LaplacesProfile,
    ReplacedProfile,
    SampledGaussianProfile,
    SeparatedLaplacesProfile,
    SeparatedProfile,
)
from dither.privacy.engines.balls.contour import BallContour, laws_of
from dither.privacy.engines.balls.responses import ResponsesProfile
from dither.privacy.engines.capped_kinds import capped_kinds
from dither.privacy.engines.closed import (
    Enumeration,
    LaplaceProfile,
    OnceSampled,
    WidenedProfile,
    lattice_of,
)
from dither.privacy.engines.contour import Contour
from dither.privacy.engines.grid import Grid
from dither.privacy.engines.narrowed import (
    CHEAP,
    DEAREST,
    SHARP,
    TargetPlace,
    balled,
    jumped,
    settled,
)
from dither.privacy.engines.search import best_tilt, invert, log_kappa
from dither.privacy.engines.vectors import VectorProfile
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.gaussian import GaussianTerm, WidenedGaussianTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.many_atoms import joined
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.gaussians import SampledGaussiansTerm
from dither.privacy.laws.sampled.laplaces import SampledLaplacesTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.sampled.mixture import FixedSizeTerm
from dither.privacy.laws.sampled.replaced import ReplacedGaussianTerm
from dither.privacy.laws.term import EPS, Array, Term

__all__ = [
    "NOTHING",
    "Chernoff",
    "ProfileEngine",
    "ZeroLoss",
    "distance",
    "engine",
    "invert",
    "settles",
]


class ProfileEngine(Protocol):
    """A certified profile."""

    name: str
    start: float

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        ...


class ZeroLoss:
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
        self._terms = joined(moments)
        # Atoms' masses and places err by what they were made with, beside their moment's rounding.
        atoms = [t for t in moments if isinstance(t, AtomTerm)]
        self._rough = sum(t.count * t.relative for t in atoms)
        self._placed = sum(t.count * t.position for t in atoms)
        reach = min((t.reach for t in moments), default=1e7)
        slow = SampledGaussianTerm | SampledGaussiansTerm | SampledLaplacesTerm
        # A finer search asks for more moments, which are dear where each is a quadrature.
        fine = not any(isinstance(t, slow) for t in self._terms)
        self.tilt = best_tilt(
            lambda c: sum((t.sketch(c) for t in self._terms), np.zeros_like(c)),
            log_delta=log_delta,
            epsilon=epsilon,
            reach=reach,
            fine=fine,
        )
        self.c, self.start = self.tilt
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
        kappa = float(log_kappa(self.c))
        # Each term says what its moment errs by, and a class 8 roundings of itself. log kappa is a
        # number below 1 with 4 roundings and one with 2. Sums add one a summand, the product one.
        rough = (20 + len(self._terms)) * abs(k) + 2 * abs(self.c * epsilon) + 2 * abs(kappa) + 4
        off = EPS * rough + sum(t.blur(self.c) for t in self._terms)
        # A mass that is off moves the logarithm by as much, a loss that is off by c times that.
        off += self._rough + self.c * self._placed
        return -math.inf, min(0.0, k - self.c * epsilon + kappa + off)


def engine(
    terms: Sequence[Term],
    *,
    log_delta: float | None = None,
    epsilon: float | None = None,
    tilt: tuple[float, float] | None = None,
) -> ProfileEngine:
    """The sharpest engine that can certify these terms at this target.

    ``tilt`` is what `best_tilt` says of it, where that is known.
    """
    kinds = {type(t) for t in terms}
    if not terms:
        return ZeroLoss()
    # Means and variances of Gaussian losses add up: they are one Gaussian.
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
        # The bounds of the lattice's waves are for a scale of 1 at least.
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
    if len(terms) == 1 and isinstance(terms[0], SampledGaussianTerm) and terms[0].count == 1:
        return SampledGaussianProfile(terms[0])
    if len(terms) == 1 and isinstance(terms[0], SampledLineTerm) and terms[0].count == 1:
        return _once(terms[0], epsilon)
    if len(terms) == 1 and isinstance(terms[0], ReplacedGaussianTerm) and terms[0].count == 1:
        return ReplacedProfile(terms[0])
    if len(terms) == 1 and (apart := _apart(terms[0], log_delta, epsilon)) is not None:
        return apart
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
        # The number of outcomes if none coincide; few runs may have fewer, as equal totals merge.
        sizes = sum(t.count * math.log(len(t.losses)) for t in atoms)
        if sizes < math.log(400_000) or sum(t.count for t in atoms) <= 400:
            # Delta is 0 from there on: a place to begin from.
            top = sum(t.count * float(t.losses[-1]) for t in atoms)
            start = top if epsilon is None else epsilon
            listed = Enumeration(atoms, start)
            if listed.certified:
                return listed
    if all(t.smooth for t in terms):
        kinds_of_one = terms[0] if len(terms) == 1 else None
        capped = None
        if isinstance(kinds_of_one, SampledGaussiansTerm) and kinds_of_one.sparse:
            capped = capped_kinds(kinds_of_one, log_delta, epsilon)
            if capped is not None and _width(capped, capped.start) <= _NARROW:
                return capped
        laws = laws_of(terms)
        # Doubles get little time where balls could follow.
        dearest = CHEAP if laws else DEAREST
        found = settled(terms, log_delta, epsilon, False, dearest, tilt)
        if found is not None and found.sharp:
            return found.contour
        if laws:
            place = jumped(terms, log_delta, epsilon, found)
            if place is not None and not isinstance(place, TargetPlace):
                return place
            balls = balled(laws, log_delta, epsilon, found, place)
            if balls is not None:
                return balls
        elif isinstance(kinds_of_one, SampledGaussiansTerm):
            # Sums of so many round by more than those of a few.
            if found is not None and found.high - found.low <= _NARROW:
                return found.contour
            capped = capped or capped_kinds(kinds_of_one, log_delta, epsilon)
            # The narrower of both, judged where the contour was asked.
            if capped is not None and not (
                found is not None and _width(capped, found.at) > found.high - found.low
            ):
                return capped
        else:
            # Losses that do not fade are smoothed: that is dear, and charged.
            found = found or settled(terms, log_delta, epsilon, True, DEAREST)
        if found is not None:
            return found.contour
    return _refined(terms, log_delta, epsilon)


def _width(of: ProfileEngine, epsilon: float) -> float:
    """What its bounds leave open there."""
    low, high = of.bounds(epsilon)
    return high - low


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


_PROOFS = (1e-2, 1e-4, 1e-6)
"""What a line in balls may lose of delta where it is to prove a bound."""

_NARROW = 1e-6
"""A width of log(delta) from which many kinds are asked in no other way."""

NOTHING = -800.0
"""A log(delta) that no double holds."""


def _apart(term: Term, log_delta: float | None, epsilon: float | None) -> SeparatedProfile | None:
    """The closed form for large losses, where it is sharp."""
    if isinstance(term, SampledGaussianTerm) and SeparatedProfile.fits(term):
        found = SeparatedProfile(term, epsilon)
    elif isinstance(term, SampledLineTerm) and SeparatedLaplacesProfile.fits(term):
        found = SeparatedLaplacesProfile(term, epsilon)
    else:
        return None
    at = epsilon
    if log_delta is not None:
        at = invert(_upper_of(found), log_delta, found.start, above=True, tiny=1e-12)
    if at is None or not math.isfinite(at):
        return found
    low, high = found.bounds(at)
    return found if high - low <= SHARP or high <= NOTHING else None


def distance(terms: Sequence[Term]) -> float:
    """An upper bound of the finite part's delta(0), where closed forms know one; else infinity.

    delta(0) is a distance in total variation, and those of a composition's parts add up to at
    least the whole's.
    """
    total = 0.0
    for term in terms:
        ones: list[tuple[ProfileEngine, float]] = []
        if isinstance(term, GaussianTerm):
            ones.append((GaussianProfile(term.mu_squared, 0.0), 1))
        elif isinstance(term, SampledGaussianTerm):
            ones.append((SampledGaussianProfile(term), term.count))
        elif isinstance(term, SampledLineTerm):
            ones.append((_once(term, 0.0), term.count))
        elif isinstance(term, LaplaceTerm | SampledGaussiansTerm):
            total += term.variation()
            total *= 1 + 4 * EPS
        elif isinstance(term, AtomTerm):
            once = copy(term)
            once.count = 1
            listed = Enumeration([once], 0.0)
            if not listed.certified:
                return math.inf
            ones.append((listed, term.count))
        else:
            return math.inf
        for one, count in ones:
            log_one = one.bounds(0.0)[1]
            size = math.exp(max(log_one, -700.0))
            # The exponential's unit and its logarithm's, and a product and a sum a summand.
            total += count * size * (1 + EPS * (8 + abs(log_one)))
            total *= 1 + 4 * EPS
    return total


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
    plain = Contour(terms, log_delta=None, epsilon=epsilon, dearest=CHEAP, tilt=bound.tilt)
    if plain.certified and plain.bounds(epsilon)[1] <= log_delta:
        return True
    for tolerance in _PROOFS:
        rough = BallContour(
            laws, epsilon=epsilon, log_delta=log_delta, tilt=bound.c, tolerance=tolerance
        )
        if not rough.certified:
            return False
        low, high = rough.bounds(epsilon)
        # Decided either way; else a sharper line is asked.
        if high <= log_delta or low > log_delta:
            return high <= log_delta
    return False


def _refined(terms: Sequence[Term], log_delta: float | None, epsilon: float | None) -> Grid:
    """A finer grid until epsilon is known to a millionth, or the next would take too long."""
    repeats = sum(len(t.singles()) for t in terms)
    best: Grid | None = None
    cap, least = epsilon, math.inf
    for bits in (13, 15, 17):
        # Points of all laws together, each a node of a transform.
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
        # Narrow enough; else the next grid is made for an epsilon a little beyond this one.
        if least <= max(1e-7, 3e-7 * grid.upper.c * cap):
            break
        cap *= 1 + 1e-6
    assert best is not None
    return best


def _upper_of(grid: ProfileEngine) -> Callable[[float], float]:
    return lambda e: grid.bounds(e)[1]
