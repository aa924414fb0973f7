"""One law for both directions: where a unit is replaced, each mechanism may be run either way.

Whoever replaces a by b meets the pair (P, Q) in one mechanism and (Q, P) in the next, and may
choose which by what came out before. With H_a(P, Q) = Σ (P - a·Q)+ of a pair, the larger of
H_a(P, Q) and H_a(Q, P) at every a > 0 is the profile F(a) of a pair of its own: it is convex,
falls, is at least (1 - a)+ and 1 at a = 0 (Zhu, Dong and Wang, 2022, proposition 7). That pair
dominates both directions, and what is composed of pairs that dominate dominates every adaptive
composition of what they dominate (theorem 10 there): given all answers so far, the next direction
is fixed, and the inner expectation is at most that of F. So all 2^k choices of k directions are
covered, and choices that depend on earlier answers too.

Of one run F is the truth. Of several it is an upper end, and the lower one is that of the same
direction everywhere, which is one of the choices.

Where units are added or removed nothing of this is needed: a table that lacks the unit lacks it in
every mechanism, so that (P, Q) is met everywhere or (Q, P) everywhere.

*Finite pairs.* F is the larger of two convex functions with rational knots, and so is known
exactly: its knots are theirs, and where they cross.

*Other pairs.* Both directions are laid on one lattice by laws that dominate them, and the larger of
their profiles is taken at its points; chords lie above a convex function.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np

from dither.errors import ArgumentError
from dither.numeric import log_lower
from dither.privacy._charge import Charge
from dither.privacy.engines.grid import pessimistic_law
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.pair import PmfPair
from dither.privacy.laws.part import Part
from dither.privacy.laws.rationals import Amount, Ends, printed
from dither.privacy.laws.term import EPS, Array, Term

__all__ = ["EitherPair", "EitherWay", "either_way", "law_of_profile", "listed"]


_CELLS = 2048
"""Cells of the lattice on either side of 0."""

_TAIL = 1e-20
"""Mass beyond the lattice, which is charged as infinite loss."""

_WIDEST = 600.0
"""Losses whose exponentials are doubles."""

_LEAST = 1e-290
"""Masses below it are charged as infinite loss, as doubles hold few of their digits."""


def either_way(part: Part) -> Part:
    """The part where a unit is replaced: itself, if its bounds hold in both directions."""
    return part if part.either else EitherWay(part)


@dataclass(frozen=True, slots=True)
class _Either(Part):
    """What is said of a part in either direction is what the part says of both."""

    part: Part

    def top(self, removal: bool) -> Ends | None:
        """The larger of both."""
        tops = [self.part.top(way) for way in (True, False)]
        known = [top for top in tops if top is not None]
        # One direction without an end is enough for none.
        if len(known) < len(tops):
            return None
        return max(low for low, _ in known), max(high for _, high in known)

    def grouped(self, size: int) -> Part:
        """What the part says of groups, if it says it of both directions."""
        found = self.part.grouped(size)
        if not found.either:
            raise ArgumentError(
                f"no group bound of {self.describe()} is known where units are replaced; take the "
                "group where they are added or removed, and convert it (to_replace)"
            )
        return found

    def gdp(self) -> Amount:
        """The part's, which is that of both directions."""
        return self.part.gdp()

    def rho(self) -> Amount:
        """The part's."""
        return self.part.rho()

    def charge(self) -> Charge:
        """The part's."""
        return self.part.charge()

    def describe(self) -> str:
        """As the part is written."""
        return self.part.describe()


@dataclass(frozen=True, slots=True)
class EitherWay(_Either):
    """A part that is met in either direction, each time anew.

    Parameters
    ----------
    part : Part
        Whose pair and swapped pair differ.
    """

    @property
    def symmetric(self) -> bool:
        """Its lower ends are those of one direction."""
        return False

    @property
    def either(self) -> bool:
        """Its upper ends are not."""
        return True

    @property
    def exact(self) -> bool:
        """Several runs may lose less."""
        return False

    @property
    def one_sided(self) -> bool:
        """As the part."""
        return self.part.one_sided

    def term(self, removal: bool, count: int) -> Term:
        """The law that dominates both."""
        return EitherPair(self.part).term(removal, count)

    def instance(self) -> Part | None:
        """The same direction everywhere."""
        return self.part.instance()

    def instance_for(self, removal: bool) -> Part | None:
        """The part's."""
        return self.part.instance_for(removal)

    @property
    def unlike(self) -> bool:
        """As the part."""
        return self.part.unlike

    def dominating(self) -> Part | None:
        """The pair of both directions."""
        known = self.part.dominating()
        if known is None or known.either:
            return known
        return EitherPair(known)

    def moment(self, removal: bool, count: int) -> Term | None:
        """The larger of both, order by order; None where a moment is infinite or not known."""
        both = [self.part.moment(way, count) for way in (True, False)]
        found = [
            term
            for term in both
            if term is not None
            and term.infinite + term.lost == 0
            and type(term).log_moment is not Term.log_moment
        ]
        # The larger of two is known only where both are.
        return EitherMoment(found) if len(found) == len(both) else None

    def tail(self) -> Fraction:
        """The part's."""
        return self.part.tail()


class EitherMoment(Term):
    """The larger of both directions' moments: exp(c·L - Σ log M) is a supermartingale of either."""

    smooth = False

    def __init__(self, terms: list[Term]) -> None:
        self._terms = terms
        self.count = terms[0].count
        self.reach = min(term.reach for term in terms)

    def log_moment(self, c: Array) -> Array:
        """The larger one."""
        return np.maximum(*(term.log_moment(c) for term in self._terms))

    def moment_ends(self, c: float) -> tuple[float, float]:
        """The larger one's ends."""
        ends = [term.moment_ends(c) for term in self._terms]
        return max(low for low, _ in ends), max(high for _, high in ends)

    def blur(self, c: float) -> float:
        """The larger one."""
        return max(term.blur(c) for term in self._terms)


@dataclass(frozen=True, slots=True)
class EitherPair(_Either):
    """The pair whose profile is the larger one of a pair's and the swapped pair's."""

    def term(self, removal: bool, count: int) -> AtomTerm:
        """Its law, which is that of the swapped pair too."""
        law = _law(self.part)
        losses, p, q = (np.array(x) for x in (law.losses, law.p, law.q))
        if not len(losses):
            # A law has an atom; next to an infinite loss this one is nothing.
            losses, p, q = np.zeros(1), np.full(1, 1e-300), np.full(1, 1e-300)
        return AtomTerm(
            losses,
            p,
            count,
            law.infinite,
            (float(losses[0]), law.spacing) if law.spacing > 0 else None,
            relative=law.relative,
            position=law.position,
            others=q,
        )


@dataclass(frozen=True, slots=True)
class _Law:
    losses: tuple[float, ...]
    p: tuple[float, ...]
    q: tuple[float, ...]
    infinite: float
    relative: float
    position: float
    spacing: float = 0.0


@lru_cache(maxsize=256)
def _law(part: Part) -> _Law:
    return _exact(part) if isinstance(part, PmfPair) else _laid(part)


def listed(p: list[Fraction], q: list[Fraction]) -> tuple[list[tuple[Fraction, ...]], Fraction]:
    """Atoms (e^loss, mass under P, mass under Q) of the pair of both directions, and P's rest.

    F is made of pieces x - a·y, of which P's and Q's masses beyond a are x and y.
    """
    pieces: list[tuple[Fraction, Fraction, Fraction]] = []
    for piece in _pieces(p, q):
        if not pieces or pieces[-1][1:] != piece[1:]:
            pieces.append(piece)
    atoms = [(b[0], a[1] - b[1], a[2] - b[2]) for a, b in pairwise(pieces)]
    return [atom for atom in atoms if atom[1] > 0], pieces[-1][1]


def _pieces(p: list[Fraction], q: list[Fraction]) -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    """Where each piece of F begins, and its x and y."""
    ways = [(p, q), (q, p)]
    zero = Fraction(0)
    sums = [
        [sum(a, zero), sum((y for x, y in zip(a, b, strict=True) if x > 0), zero)] for a, b in ways
    ]
    knots = [
        (x / y, way, x, y)
        for way, (a, b) in enumerate(ways)
        for x, y in zip(a, b, strict=True)
        if x > 0 and y > 0
    ]
    # Rationals throughout, so that knots that coincide are one and crossings are exact.
    knots.sort(key=lambda knot: knot[0])
    low = zero
    for at, group in groupby(knots, key=lambda knot: knot[0]):
        yield from _larger(sums, low, at)
        for _, way, x, y in group:
            sums[way][0] -= x
            sums[way][1] -= y
        low = at
    # Beyond the last knot both are constant.
    yield low, max(x for x, _ in sums), zero


def _larger(
    sums: list[list[Fraction]], low: Fraction, high: Fraction
) -> Iterator[tuple[Fraction, Fraction, Fraction]]:
    """The larger one of two lines on an interval, or first the one and then the other."""
    (x, y), (u, v) = sums
    at_low, at_high = (x - u) - low * (y - v), (x - u) - high * (y - v)
    first = (low, x, y) if at_low > 0 or (at_low == 0 and at_high >= 0) else (low, u, v)
    yield first
    if at_low * at_high < 0:
        # Where the lines cross inside the interval F has a knot of its own.
        yield (x - u) / (y - v), *((x, y) if at_high > 0 else (u, v))


def _exact(part: PmfPair) -> _Law:
    atoms, rest = listed([printed(x) for x in part.p], [printed(x) for x in part.q])
    tiny = [atom for atom in atoms if min(atom[1], atom[2]) < _LEAST]
    atoms = [atom for atom in atoms if min(atom[1], atom[2]) >= _LEAST]
    # Mass that is moved to infinity only raises delta.
    rest += sum(atom[1] for atom in tiny)
    # The logarithm is right to far more digits than a double has: one rounding.
    losses = np.array([float(log_lower(ratio)) for ratio, _, _ in atoms])
    values, place = np.unique(losses, return_inverse=True)
    masses = [np.bincount(place, [float(a[k]) for a in atoms], len(values)) for k in (1, 2)]
    most = int(np.bincount(place).max(initial=1))
    return _Law(
        tuple(values.tolist()),
        tuple(masses[0].tolist()),
        tuple(masses[1].tolist()),
        float(rest) * (1 + EPS),
        EPS * (4 + most),
        2 * EPS * float(np.abs(values).max(initial=0.0)),
    )


def _laid(part: Part) -> _Law:
    """Both directions on one lattice."""
    terms = [part.term(way, 1) for way in (True, False)]
    ends = [term.ends(_TAIL) for term in terms]
    reach = min(max(abs(x) for pair in ends for x in pair) * (1 + 1e-9) + 1e-12, _WIDEST)
    h = reach / _CELLS
    n = _CELLS + 4
    losses = h * np.arange(-n, n + 1)
    profiles, rough = [], 0.0
    for term in terms:
        first, masses, above, relative, off = pessimistic_law(term, -reach, reach, h)
        whole = np.zeros(len(losses))
        # Both directions on one lattice, so that their profiles are compared point by point.
        whole[first + n : first + n + len(masses)] = masses
        # A loss that is off by so little moves delta by no more.
        off += term.position if isinstance(term, AtomTerm) else 0.0
        # A sum of products of positive numbers, with as many roundings as it has summands.
        away = _beyond(whole, h) * (1 + EPS * len(losses))
        rest = term.infinite + term.lost + above + off
        profiles.append((away + rest) * (1 + 4 * EPS))
        rough = max(rough, relative)
    # The larger one is above both; a profile is at most 1.
    high = np.minimum(np.maximum(*profiles) * (1 + rough), 1.0)
    masses, infinite = law_of_profile(losses, high, h)
    return _Law(
        tuple(losses.tolist()),
        tuple(masses.tolist()),
        tuple((masses * np.exp(-losses)).tolist()),
        infinite,
        32 * EPS,
        4 * EPS * reach,
        h,
    )


def _beyond(masses: Array, h: float) -> Array:
    """Σ_{i > j} masses_i·(1 - e^{-(i - j)·h}) at every j."""
    n = len(masses)
    falls = -np.expm1(-h * np.arange(n))
    # Direct sums of positive numbers: a transform would leave its rounding on the small ones.
    return np.convolve(masses[::-1], falls)[:n][::-1]


def law_of_profile(losses: Array, high: Array, h: float) -> tuple[Array, float]:
    """Masses on a lattice, and one at infinity, whose profile is at least ``high`` at its points.

    Parameters
    ----------
    losses : array, shape (n,)
        h apart.
    high : array, shape (n,)
        At least delta there, of a convex function of e^loss that is 1 at 0.

    Notes
    -----
    The greatest convex function below the points is above every convex one that is below them, and
    its chords are too. Lines are drawn over e^loss, less 1 where losses are small, so that its
    digits are kept.
    """
    y = np.exp(losses)
    profile = _convex(np.expm1(losses) if abs(losses).max() < 1 else y, high)
    # Q's mass above each point is minus the slope; P's is e^loss times Q's.
    slopes = np.diff(profile) / (y[:-1] * math.expm1(h))
    under_q = np.diff(np.concatenate([[-(1 - profile[0]) / y[0]], slopes, [0.0]]))
    # A convex profile has slopes that rise; what rounding makes fall is cut.
    masses = np.maximum(under_q, 0.0) * y
    # What rounding took from the profile is given back at infinity. What the masses make of it is a
    # sum of products in pairs, below 20 roundings; profile and difference have 6 more.
    short = 0.0
    for i in range(len(y)):
        found = float((masses[i + 1 :] * -np.expm1(losses[i] - losses[i + 1 :])).sum())
        short = max(short, float(profile[i]) - float(high[-1]) - found)
    return masses, (float(high[-1]) + max(short, 0.0)) * (1 + 4 * EPS)


def _convex(y: Array, values: Array) -> Array:
    """The greatest convex function below the points: above every convex one that is below them."""
    kept: list[int] = []
    for i in range(len(y)):
        while len(kept) > 1:
            a, b = kept[-2:]
            # Below the chord of its neighbours it is a corner; on it or above it goes.
            if (values[b] - values[a]) * (y[i] - y[a]) < (values[i] - values[a]) * (y[b] - y[a]):
                break
            kept.pop()
        kept.append(i)
    result: Array = np.interp(y, y[kept], values[kept])
    return result
