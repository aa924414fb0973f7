"""Profiles in closed form, and by direct summation over finitely many losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dither.privacy.engines.lattice import LatticeEngine, LatticeLaw
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.term import EPS, Array

__all__ = [
    "MERGED",
    "Enumeration",
    "LaplaceProfile",
    "OnceSampled",
    "WidenedProfile",
    "common_lattice",
    "context",
]


MERGED = 1e-14
"""Losses that agree to this part of the largest are one; whoever merges charges it as a move."""

_DIGITS = 40
# Beyond these a grid takes less time.
_ATOMS = 400_000
_PLACES = 1 << 23


def context() -> Any:
    """An arithmetic of 40 digits of its own, so that no other thread's precision changes it."""
    import mpmath

    fresh = mpmath.MPContext()
    fresh.dps = _DIGITS
    return fresh


class Profile(Protocol):
    """A release's profile."""

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        ...


class WidenedProfile:
    """A Gaussian's profile at epsilon less a shift, raised by a factor: an upper bound."""

    name = "closed form (Gaussian), rounded to integers"
    certified = True

    def __init__(self, base: Profile, shift: float, lift: float, start: float) -> None:
        self._base, self._shift, self._lift, self.start = base, shift, lift, start

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(-inf, log upper) of delta(epsilon)."""
        # delta falls with epsilon, so that its place is rounded down for an upper bound.
        at = epsilon - self._shift - 4 * EPS * (abs(epsilon) + self._shift)
        return -math.inf, self._base.bounds(at)[1] + self._lift * (1 + 4 * EPS)


class LaplaceProfile:
    """One Laplace release: delta = 1 - e^{(epsilon - epsilon_0)/2} below epsilon_0, 0 above."""

    name = "closed form (Laplace)"
    certified = True

    def __init__(self, epsilon_0: float) -> None:
        self._e = epsilon_0
        self.start = epsilon_0

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        # Below every loss delta is 1 - e^epsilon, as Q's mass is 1.
        if epsilon < -self._e:
            value = math.log(-math.expm1(epsilon))
            return value - 8 * EPS, value + 8 * EPS
        gap = self._e - epsilon
        # Near epsilon_0 the difference loses all its digits: its error is charged as a move.
        shift = 4 * EPS * (abs(self._e) + abs(epsilon))
        ends = [
            math.log(-math.expm1(-g / 2)) if g > 0 else -math.inf
            for g in (gap - shift, gap + shift)
        ]
        return ends[0] - 8 * EPS * (1 + abs(gap)), ends[1] + 8 * EPS * (1 + abs(gap))


class OnceSampled:
    """One run on a sample, from the profile of the run without it.

    With x = log(1 + (e^epsilon - 1)/g) and y = -log(1 + (e^-epsilon - 1)/g) ::

        removal:   delta(epsilon) = g·base(x)
        addition:  delta(epsilon) = (1 - (1 - g)·e^epsilon)·base(y)

    and on a sample of fixed size the first holds above 0, the second below; see `laws.sampled`.
    Below the least loss delta is 1 - e^epsilon, and above the largest 0.
    """

    name = "closed form (sampled)"
    certified = True

    def __init__(
        self,
        base: Profile,
        rate: float,
        removal: bool | None,
        start: float,
    ) -> None:
        self._base, self._g, self._removal = base, rate, removal
        self.start = start

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        # On a sample of fixed size the removal's form holds above 0, the addition's below.
        removal = epsilon >= 0 if self._removal is None else self._removal
        at, g = epsilon if removal else -epsilon, self._g
        if at > 30:
            # Where e^epsilon would leave the doubles.
            place = at - math.log(g) + math.log1p(-(1 - g) * math.exp(-at))
            wrong = 4 * EPS * (abs(at) + abs(math.log(g)))
        else:
            ratio = math.expm1(at) / g
            # epsilon beyond the end log(1 - g) of the loss, or -log(1 - g): past its least or its
            # largest.
            if ratio <= -1:
                if not removal:
                    return self._past_largest(epsilon)
                value = math.log(-math.expm1(epsilon))
                return value - 8 * EPS, value + 8 * EPS
            place = math.log1p(ratio)
            # A quotient's three roundings, in proportion; near -1 they weigh more.
            wrong = 4 * EPS * (abs(ratio) / (1 + ratio) + abs(place))
        place = place if removal else -place
        low, high = self._base.bounds(place + wrong)[0], self._base.bounds(place - wrong)[1]
        if removal:
            lead, rough = math.log(self._g), 4 * EPS
        else:
            # 1 - (1 - g)·e^epsilon, without a difference of numbers near 1 where epsilon is small.
            part = self._g + (1 - self._g) * -math.expm1(epsilon)
            if part <= 0:
                return self._past_largest(epsilon)
            lead = math.log(part)
            rough = 8 * EPS * (1 + (self._g + abs(math.expm1(epsilon))) / part)
        return low + lead - rough - EPS * abs(lead), high + lead + rough + EPS * abs(lead)

    def _past_largest(self, epsilon: float) -> tuple[float, float]:
        """Beyond the largest loss of addition, or within a rounding of it on either side."""
        grown = abs(math.expm1(epsilon))
        # The factor 1 - (1 - g)·e^epsilon may be above 0 by what doubles lose of it.
        most = self._g - (1 - self._g) * math.expm1(epsilon) + 8 * EPS * (self._g + grown)
        return -math.inf, math.log(most) if most > 0 else -math.inf


def common_lattice(terms: Sequence[AtomTerm]) -> tuple[list[LatticeLaw], float] | None:
    """All laws on one lattice, where their spacings are small multiples of one number."""
    spacings = []
    for term in terms:
        if term.lattice is None:
            return None
        if term.lattice[1] > 0:
            spacings.append(term.lattice[1])
    unit = min(spacings, default=1.0)
    # Spacings in small ratios have a common unit; a finer one would take a longer lattice.
    for part in range(1, 33):
        h = unit / part
        ratios = [s / h for s in spacings]
        if all(abs(r - round(r)) <= 8 * EPS * r for r in ratios):
            break
    else:
        return None
    laws = []
    for term in terms:
        offset = term.lattice[0] if term.lattice else 0.0
        kept = term.probabilities > 0
        place = np.rint((term.losses[kept] - offset) / h)
        if not kept.any() or place.max() > _PLACES or place.min() < 0:
            return None
        masses = np.bincount(place.astype(int), term.probabilities[kept])
        laws.append(LatticeLaw(offset, masses, term.count, term.relative, term.position))
    return laws, h


class Enumeration:
    """The finite part's profile by a sum over every value that the total loss can take."""

    name = "enumeration"

    def __init__(self, terms: Sequence[AtomTerm], start: float) -> None:
        self.start = start
        self.certified = False
        losses, masses, rounds = np.zeros(1), np.ones(1), 0.0
        for term in terms:
            for _ in range(term.count):
                # Checked before it is formed: the product alone may not fit into memory.
                if len(losses) * len(term.losses) > _ATOMS or rounds > 4000:
                    return
                losses = (losses[:, None] + term.losses[None, :]).ravel()
                masses = (masses[:, None] * term.probabilities[None, :]).ravel()
                rounds += 1
                losses, masses = _merged(losses, masses)
        self._losses, self._masses = losses, masses
        largest = float(np.abs(losses).max()) + sum(
            t.count * float(np.abs(t.losses).max()) for t in terms
        )
        # Once a round a merge moves a loss, and a sum rounds it. Quotients of up to 1/MERGED round
        # by 0.012, so a group is that much wider at either end: 2.4 %, in all within 4·EPS.
        self._shift = rounds * (4 * EPS + MERGED) * largest
        self._shift += sum(t.count * t.position for t in terms)
        self._relative = EPS * (32 * rounds + len(losses) / 8 + 40)
        self._relative += sum(t.count * t.relative for t in terms)
        self.certified = True

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of the finite part's delta(epsilon)."""
        return (
            # delta falls with epsilon: losses that are off by the shift move the place, not the
            # sum.
            self._sum(epsilon + self._shift) - self._relative,
            self._sum(epsilon - self._shift) + self._relative,
        )

    def _sum(self, epsilon: float) -> float:
        gap = self._losses - epsilon
        held = gap > 0
        # Only summands above 0, each with the digits that 1 - e^-gap has: nothing cancels.
        total = float((self._masses[held] * -np.expm1(-gap[held])).sum())
        return math.log(total) if total > 0 else -math.inf


def _merged(losses: Array, masses: Array) -> tuple[Array, Array]:
    order = np.argsort(losses, kind="stable")
    losses, masses = losses[order], masses[order]
    near = MERGED * max(1e-300, float(np.abs(losses).max()))
    # Equal after rounding to the tolerance, so that no group is wider than it.
    key = np.floor(losses / near)
    starts = np.flatnonzero(np.concatenate([[True], np.diff(key) > 0]))
    return losses[starts], np.add.reduceat(masses, starts)


def lattice_of(
    terms: Sequence[AtomTerm], *, log_delta: float | None, epsilon: float | None
) -> LatticeEngine | None:
    """The lattice engine where it applies."""
    found = common_lattice(terms)
    if found is None or found[1] <= 0:
        return None
    engine = LatticeEngine(found[0], found[1], log_delta=log_delta, epsilon=epsilon)
    return engine if engine.certified else None
