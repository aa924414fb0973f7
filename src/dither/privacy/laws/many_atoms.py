"""Many losses of few values each at once: sums over kinds in arrays, and bounds where they fade.

A schedule of discrete noise makes thousands of kinds that run once each. On a line Re t = c a kind
of tilted chances w_j at losses L_j has M(c + iu)/M(c) = Σ w_j·e^{iu·L_j}. The logarithm of the
modulus of all together is at most a sum of cosines (`term.paired`), which all nodes share in two
levels. Where that is below -46 nothing else is asked, and only what is left, next to u = 0 and
where many kinds come round at once, is summed kind by kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.discrete_gaussian import LatticeGaussian
from dither.privacy.laws.discrete_gaussians import LEAST_V, DiscreteGaussiansTerm
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.response import ResponseTerm
from dither.privacy.laws.sampled.laplaces import LARGEST, SampledLaplacesTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.sampled.many_losses import LIGHTEST, MOST, ManyLossesTerm
from dither.privacy.laws.sampled.mixture import SampledTerm
from dither.privacy.laws.term import EPS, FADED, UNKNOWN, Array, Complex, Term, paired

__all__ = ["ManyAtomsTerm", "joined"]


_KINDS = 8
"""Kinds from which they are taken together."""

_VALUES = 64
"""Losses of one kind up to which it is."""

_LEAST = -600.0
"""Logarithms of products of numbers of at most 1 that are doubles with all of their digits."""

_HELD = 1 << 16
"""Numbers that are held at once."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Kinds of as many values: losses and log-masses, a row a kind, and what they err by."""

    losses: Array
    logs: Array
    counts: Array
    relative: Array
    position: Array

    @classmethod
    def of(cls, terms: Sequence[AtomTerm]) -> _Block:
        """Of terms with as many atoms each."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.array([term.probabilities for term in terms]))
        return cls(
            np.array([term.losses for term in terms]),
            logs,
            np.array([float(term.count) for term in terms]),
            np.array([term.relative for term in terms]),
            np.array([term.position for term in terms]),
        )

    def tilted(self, c: float) -> tuple[Array, Array, Array, Array]:
        """The exponents, the largest of each kind, the logarithms of the sums, and the chances."""
        z = self.logs + c * self.losses
        top = z.max(axis=1)
        weight = np.exp(z - top[:, None])
        whole = weight.sum(axis=1)
        return z, top, np.log(whole), weight / whole[:, None]


class ManyAtomsTerm(Term):
    """Losses of few values each, of many kinds.

    Parameters
    ----------
    terms : sequence of AtomTerm
        Nothing of their laws is left out.
    """

    def __init__(self, terms: Sequence[AtomTerm]) -> None:
        by_size: dict[int, list[AtomTerm]] = {}
        for term in terms:
            by_size.setdefault(len(term.losses), []).append(term)
        self._blocks = [_Block.of(some) for some in by_size.values()]
        self._kinds = len(terms)
        self._values = sum(len(term.losses) for term in terms)

    def log_moment(self, c: Array) -> Array:
        """The sum over kinds."""
        total = np.zeros_like(c)
        for block in self._blocks:
            rows = max(1, _HELD // block.losses.size)
            for first in range(0, len(c), rows):
                at = c[first : first + rows, None, None]
                z = block.logs + at * block.losses
                top = z.max(axis=2)
                each = top + np.log(np.exp(z - top[:, :, None]).sum(axis=2))
                total[first : first + rows] += (each * block.counts).sum(axis=1)
        return total

    def blur(self, c: float) -> float:
        """What each kind errs by (`AtomTerm.moment_error`), and the sums: in pairs of blocks."""
        off = 0.0
        for block in self._blocks:
            _, top, rest, _ = block.tilted(c)
            value = block.counts * np.abs(top + rest)
            largest = np.abs(block.losses).max(axis=1)
            each = 24 + 4 * math.log(block.losses.shape[1]) + 4 * c * largest
            slack = EPS * (_roundings(self._kinds) * value + block.counts * each)
            off += float((slack + block.counts * (block.relative + c * block.position)).sum())
        # Sums of positive numbers: a billionth is 10^6 times what they round by.
        return off * (1 + 1e-9)

    def moment_ends(self, c: float) -> tuple[float, float]:
        """The sum, with its error on either side."""
        value, off = float(self.log_moment(np.array([c]))[0]), self.blur(c)
        return value - off, value + off

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """The sums at c + iu over those at c; a bound of the modulus alone where that is tiny."""
        tilted = [block.tilted(c) for block in self._blocks]
        base = math.fsum(
            x
            for block, (_, top, rest, _) in zip(self._blocks, tilted, strict=True)
            for x in (block.counts * (top + rest)).tolist()
        )
        value, slack = np.zeros(len(u), dtype=complex), np.full(len(u), UNKNOWN)
        bound = self._bound(c, tilted, u)
        value.real[:] = bound
        asked = np.flatnonzero(bound > FADED)
        rows = max(1, _HELD // self._values)
        for first in range(0, len(asked), rows):
            some = asked[first : first + rows]
            found, off = self._asked(c, u[some], tilted)
            # A product that leaves the doubles says less than the bound.
            known = found.real > _LEAST
            value[some[known]], slack[some[known]] = found[known], off[known]
        return base, value, slack

    def _asked(
        self, c: float, u: Array, tilted: Sequence[tuple[Array, Array, Array, Array]]
    ) -> tuple[Complex, Array]:
        """Kind by kind, as e^{iu·L} of its largest loss and a factor.

        Those of one run are multiplied: less than 4·EPS each. The rest of the slack is that of
        `AtomTerm.along`, and of sums over kinds.
        """
        value, slack = np.zeros(len(u), dtype=complex), np.zeros(len(u))
        for block, (z, top, _, weight) in zip(self._blocks, tilted, strict=True):
            far = block.losses[:, -1]
            ratio = np.zeros((len(u), len(weight)), dtype=complex)
            ratio += weight[:, -1]
            for j in range(weight.shape[1] - 1):
                # Turned back by the largest loss, whose phase all share and which is added once at
                # the end.
                angle = u[:, None] * (block.losses[:, j] - far)
                ratio += weight[:, j] * np.exp(1j * angle)
            kept = weight > 0
            size = (weight * np.where(kept, np.abs(np.where(kept, z, 0.0)) + 8, 0.0)).sum(axis=1)
            slope = (weight * np.abs(block.losses)).sum(axis=1) + np.abs(far)
            fixed = EPS * (16 + 2 * weight.shape[1] + 4 * size + 2 * np.abs(top))
            fixed = fixed + 2 * block.relative + 2 * block.position * c
            # log(1 + x) <= x.
            part = block.counts / np.maximum(np.abs(ratio), 1e-300)
            slack += (part @ fixed + u * (part @ (6 * EPS * slope + 2 * block.position))) * 1.000001
            # Kinds of one run are multiplied first: one logarithm for all of them.
            once = block.counts == 1
            product = ratio[:, once].prod(axis=1)
            logs = np.log(np.where(np.abs(product) > 0, product, 1e-320))
            slack += 4 * EPS * len(weight)
            if not once.all():
                more = ratio[:, ~once]
                each = np.log(np.where(more == 0, 1e-300, more)) * block.counts[~once]
                logs += each.sum(axis=1)
                slack += _roundings(self._kinds) * EPS * np.abs(each).sum(axis=1) * 1.000001
            lead = block.counts * far
            value += logs + 1j * (u * math.fsum(lead.tolist()))
            slack += EPS * (8 * np.abs(logs) + 4 * u * float(np.abs(lead).sum()))
        return value, slack

    def _pairs(self, weights: Sequence[Array]) -> Iterator[tuple[Array, Array, Array]]:
        """Of each kind's two likeliest losses: n·w_a·w_b, how far they are apart, and its error.

        That is in parts of n·w_a·w_b, beside what grows with u.
        """
        for block, weight in zip(self._blocks, weights, strict=True):
            if weight.shape[1] < 2:
                continue
            # Any two losses bound the modulus, the likeliest two best.
            two = np.argpartition(weight, -2, axis=1)[:, -2:]
            w = np.take_along_axis(weight, two, axis=1)
            at = np.take_along_axis(block.losses, two, axis=1)
            gap = np.abs(at[:, 1] - at[:, 0])
            yield block.counts * w[:, 0] * w[:, 1], gap, 4 * block.position + 8 * EPS * gap

    def _bound(
        self, c: float, tilted: Sequence[tuple[Array, Array, Array, Array]], u: Array
    ) -> Array:
        """At least the logarithm of the modulus of all together.

        A tilted chance errs by what its mass and its exponent err by, and by that of their sum:
        below a billionth where this is used, and of all sums and products here no more is lost.
        Cosines are off by u times what the losses are.
        """
        nothing = np.zeros(len(u))
        rough = [
            float((b.relative + c * b.position).max()) + 4 * EPS * float(np.abs(top).max())
            for b, (_, top, _, _) in zip(self._blocks, tilted, strict=True)
        ]
        # Chances are off by four times the first, twice in a product; the second is what
        # `UNKNOWN` allows for.
        if max(rough) > 1e-10 or self.blur(c) > 1e-3:
            return nothing
        found = list(self._pairs([weight for _, _, _, weight in tilted]))
        if not found:
            return nothing
        pairs, gaps, off = (np.concatenate(column) for column in zip(*found, strict=True))
        return paired(pairs, gaps, off, u)

    def cost(self, c: float, u: float) -> float:
        """A product of matrices, and each kind where a sum of cosines is seldom so large."""
        found = [pairs for pairs, _, _ in self._pairs([b.tilted(c)[3] for b in self._blocks])]
        pairs = np.concatenate([*found, np.zeros(1)])
        away = float(pairs.sum()) + FADED
        deviation = math.sqrt(float((pairs**2).sum()) / 2)
        share = math.erfc(away / (deviation * math.sqrt(2))) / 2 if away > 0 else 1.0
        return 1 + self._kinds / 25 + share * self._values


def _roundings(summands: int) -> float:
    """Roundings of a sum in pairs of blocks of 128, twice, and of some operations."""
    return 40 + 4 * math.log2(summands)


def joined(terms: Sequence[Term]) -> list[Term]:
    """The terms, of which those of few losses, or of one law, are one where they are many."""
    return list(_joined(tuple(terms)))


# Several contours of the same terms are made one after the other, and terms keep what they know.
@lru_cache(maxsize=4)
def _joined(given: tuple[Term, ...]) -> tuple[Term, ...]:
    terms = list(given)
    few = [t for t in terms if type(t) in {AtomTerm, ResponseTerm} and isinstance(t, AtomTerm)]
    # Laws that leave mass out have moments of their own, which a sum of atoms would miss.
    few = [t for t in few if len(t.losses) <= _VALUES and t.lost == 0 and t.moment is None]
    lattices = [t for t in terms if isinstance(t, LatticeGaussian) and t.law.v >= LEAST_V]
    several = {id(t) for some in (few, lattices) if len(some) >= _KINDS for t in some}
    others = [t for t in terms if isinstance(t, AtomTerm) and id(t) not in several]
    others = [t for t in others if float(t.probabilities.max()) > LIGHTEST]
    if sum(len(t.losses) for t in others) > MOST:
        others = []
    makers: list[tuple[Sequence[Term], Callable[[], Term]]] = [
        (few, lambda: ManyAtomsTerm(few)),
        (
            lattices,
            lambda: DiscreteGaussiansTerm([t.law for t in lattices], [t.count for t in lattices]),
        ),
        (others, lambda: ManyLossesTerm(others)),
        *((some, partial(_laplaces, some, way)) for way, some in _sampled_laplaces(terms)),
    ]
    for some, make in makers:
        if len(some) >= _KINDS:
            taken = {id(t) for t in some}
            terms = [*(t for t in terms if id(t) not in taken), make()]
    return tuple(terms)


def _sampled_laplaces(terms: Sequence[Term]) -> list[tuple[bool, list[SampledLineTerm]]]:
    """Those on Poisson samples, of units removed and of units added."""
    found: dict[bool, list[SampledLineTerm]] = {True: [], False: []}
    for term in terms:
        if isinstance(term, SampledLineTerm) and isinstance(term.inner, SampledTerm):
            base = term.base
            if isinstance(base, LaplaceTerm) and float(base.epsilons[0]) <= LARGEST:
                found[term.inner.removal].append(term)
    return list(found.items())


def _laplaces(terms: Sequence[SampledLineTerm], removal: bool) -> SampledLaplacesTerm:
    bases = [term.base for term in terms]
    epsilons = [float(base.epsilons[0]) for base in bases if isinstance(base, LaplaceTerm)]
    rates, counts = [t.rate for t in terms], [float(t.count) for t in terms]
    return SampledLaplacesTerm(np.array(epsilons), np.array(rates), np.array(counts), removal)
