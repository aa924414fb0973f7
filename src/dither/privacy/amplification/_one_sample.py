"""Several mechanisms on one sample: the pair of the whole is mixed, not that of each.

Mechanisms with finite pairs are read as one with the product pair (`ProductPair`). Gaussians and
Laplaces become one pessimistic law (`blended`): each loss's law is discretised as a grid does it,
both P's and Q's mass kept, so that the discrete pair dominates; sums of independent losses are then
exact on the common lattice. A sample of a pair that dominates dominates the sample. How near that
is is not known, so only an upper end is quoted.

A sample that is cut to a size moves both laws by at most the chance of a cut (`excess`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dither.errors import ArgumentError
from dither.numeric import float_up, sqrt_lower
from dither.numeric._balls import precision, up
from dither.privacy._terms import Counted, merged
from dither.privacy.engines.closed import MERGED
from dither.privacy.engines.grid import pessimistic_law
from dither.privacy.laws.approximate import Approximate
from dither.privacy.laws.atoms import AtomTerm, ListedLaw
from dither.privacy.laws.gaussian import GaussianNoise, GaussianTerm
from dither.privacy.laws.laplace import LaplaceNoise, LaplaceTerm
from dither.privacy.laws.part import Dominated, Part
from dither.privacy.laws.rationals import Amount, Ends, printed, printing_at_least, root, total
from dither.privacy.laws.sampled.allocation import RandomAllocation
from dither.privacy.laws.sampled.mechanism import FixedSize, Poisson, pure
from dither.privacy.laws.sampled.replaced import ReplacedGaussian
from dither.privacy.laws.term import EPS, Term

__all__ = ["ProductPair", "blended", "described", "excess", "shared"]


_SAMPLES = (Poisson, FixedSize, ReplacedGaussian, RandomAllocation)

_MOST = 20_000
_REPEATS = 5_000


def described(parts: Counted) -> str:
    """The sum of parts as it would be written."""
    words = [
        part.describe() if count == 1 else f"{count} * {part.describe()}"
        for part, count in merged(parts)
    ]
    return " + ".join(words) or "nothing"


def shared(parts: Counted, what: str) -> Part:
    """What a sample of all these parts starts from: one part.

    Raises
    ------
    ArgumentError
        They are samples already, or no pair of the whole is known.
    """
    if any(isinstance(part, _SAMPLES) for part, _ in parts):
        raise ArgumentError(f"{what} of what is already a sample: sample once, with one rate")
    if parts and all(isinstance(part, GaussianNoise) for part, _ in parts):
        if len(parts) == 1 and parts[0][1] == 1:
            return parts[0][0]
        square = sum((count * part.tail() for part, count in parts), Fraction(0))
        # Rounded down: a little less noise than there is.
        return GaussianNoise.of(sqrt_lower(1 / square))
    if len(parts) != 1 or parts[0][1] != 1:
        return _joint(parts, what)
    part = parts[0][0].for_sampling()
    if part is None:
        raise ArgumentError(
            f"{what} needs a mechanism whose pair is known, not only {parts[0][0].describe()}"
        )
    return part


def _joint(parts: Counted, what: str) -> Part:
    starts = tuple((part.for_sampling(), count) for part, count in merged(parts))
    stronger = tuple((part and part.dominating(), count) for part, count in starts)
    known = tuple((part, count) for part, count in stronger if part is not None)
    smooth = tuple(pair for pair in known if isinstance(pair[0], GaussianNoise | LaplaceNoise))
    rest = tuple(pair for pair in known if pair not in smooth)
    finite = all(isinstance(part.term(True, 1), AtomTerm) for part, _ in rest)
    # Sampling takes the pair of the whole: one part without a pair leaves none.
    if not known or len(known) < len(stronger) or not finite:
        raise ArgumentError(
            f"{what} takes one mechanism, or several that are Gaussian, Laplace or have "
            "finitely many outcomes (randomized_response, discrete_laplace, pure, approximate, "
            "pair): only then is the pair of all that share the sample known. Where each "
            "mechanism draws a sample of its own, sample each by itself and add"
        )
    if smooth:
        words = f"({described(parts)})"
        law: Part = blended(smooth, words)
        if rest:
            law = ProductPair(((law, 1), *rest))
            law.term(True, 1)
        # The lattice dominates, and how closely is not known: an upper end alone.
        return Dominated(law, words)
    ProductPair(known).term(True, 1)
    return ProductPair(merged(parts))


@dataclass(frozen=True, slots=True)
class ProductPair(Part):
    """Independent mechanisms with finite pairs, read as one mechanism with the product pair.

    Every part's `term` is an `AtomTerm`. Losses that agree to 1e-14 of the largest are merged, and
    that is charged as a position.
    """

    parts: tuple[tuple[Part, int], ...]

    @property
    def symmetric(self) -> bool:
        """Where all are."""
        return all(part.symmetric for part, _ in self.parts)

    @property
    def either(self) -> bool:
        """Where all are."""
        return all(part.either for part, _ in self.parts)

    @property
    def exact(self) -> bool:
        """Where all are."""
        return all(part.exact for part, _ in self.parts)

    @property
    def one_sided(self) -> bool:
        """Where one is."""
        return any(part.one_sided for part, _ in self.parts)

    def instance(self) -> Part | None:
        """Of instances; parts without one are left out."""
        found = [(part.instance(), count) for part, count in self.parts]
        known = tuple((part, count) for part, count in found if part is not None)
        return ProductPair(known) if known else None

    def dominating(self) -> Part | None:
        """Of what dominates each."""
        found = [(part.dominating(), count) for part, count in self.parts]
        known = tuple((part, count) for part, count in found if part is not None)
        return ProductPair(known) if len(known) == len(found) else None

    def moment(self, removal: bool, count: int) -> Term | None:
        """Of what dominates."""
        known = self.dominating()
        return None if known is None else known.term(removal, count)

    def term(self, removal: bool, count: int) -> AtomTerm:
        """The product law."""
        losses, masses, others = np.zeros(1), np.ones(1), np.ones(1)
        relative = position = kept = lost = 0.0
        unbounded = False
        for part, times in self.parts:
            if times > _REPEATS:
                raise ArgumentError(
                    f"at most {_REPEATS:,} repetitions share one sample; sample each by itself"
                )
            one = part.term(removal, 1)
            assert isinstance(one, AtomTerm)
            for _ in range(times):
                if len(losses) * len(one.losses) > 50 * _MOST:
                    raise ArgumentError(
                        "too many outcomes share one sample; sample fewer mechanisms together"
                    )
                losses = (losses[:, None] + one.losses[None, :]).ravel()
                masses = (masses[:, None] * one.probabilities[None, :]).ravel()
                others = (others[:, None] * one.under_q()[None, :]).ravel()
                order = np.argsort(losses, kind="stable")
                losses, masses, others = losses[order], masses[order], others[order]
                # As many different sums would not fit; what moves by merging is charged as a
                # position.
                near = MERGED * max(1e-300, float(np.abs(losses).max()))
                key = np.floor(losses / near)
                starts = np.flatnonzero(np.concatenate([[True], np.diff(key) > 0]))
                losses = losses[starts]
                masses, others = (np.add.reduceat(part, starts) for part in (masses, others))
                relative += one.relative + EPS * (4 + len(one.losses))
                position += one.position + 4 * EPS * float(np.abs(losses).max()) + 2 * near
                # 1 - Π(1 - infinite): one infinite loss is enough for an infinite total.
                kept += math.log1p(-one.infinite) if one.infinite < 1 else -math.inf
                lost += one.lost
                unbounded = unbounded or one.unbounded
        if len(losses) > _MOST:
            raise ArgumentError(
                "too many outcomes share one sample; sample fewer mechanisms together"
            )
        # A logarithm and a sum each time; 1 - e^-x errs by no more of itself than x does.
        rounds = sum(times for _, times in self.parts)
        infinite = min(1.0, -math.expm1(kept) * (1 + EPS * (4 + rounds)))
        return AtomTerm(
            losses,
            masses,
            count,
            infinite,
            relative=relative,
            position=position,
            lost=lost,
            others=others,
            unbounded=unbounded,
        )

    def top(self, removal: bool) -> Ends | None:
        """The sum."""
        return total(((part.top(removal), count) for part, count in self.parts))

    def grouped(self, size: int) -> Part:
        """By the pure epsilon of the whole, where there is one."""
        known = self.dominating()
        assert isinstance(known, ProductPair)
        ends = [known.term(removal, 1) for removal in (True, False)]
        if not all(pure(end) for end in ends):
            raise ArgumentError("group of mechanisms on one sample needs pure mechanisms")
        tops = [known.top(removal) for removal in (True, False)]
        most = max((top[1] for top in tops if top is not None), default=Fraction(0))
        bound = Approximate(printing_at_least(most), 0.0).grouped(size)
        return Dominated(bound, f"{self.describe()}.group({size})")

    def gdp(self) -> Amount:
        """Squares add up."""
        return root(sum(count * part.gdp() ** 2 for part, count in self.parts))

    def rho(self) -> Amount:
        """Adds up."""
        return sum(count * part.rho() for part, count in self.parts)

    def tail(self) -> Fraction:
        """Adds up."""
        return sum((count * part.tail() for part, count in self.parts), Fraction(0))

    def describe(self) -> str:
        """As written."""
        words = [p.describe() if k == 1 else f"{k} * {p.describe()}" for p, k in self.parts]
        return "(" + " + ".join(words) + ")"


_POINTS = 8192
_TAIL = 1e-26
"""Mass left beyond the lattice by each law; it is charged as infinite loss."""

_LAPLACES = 400

_WIDEST = 1200.0
"""Losses on either side stay within 600, so that no law's mass leaves the range of doubles."""


def blended(parts: Counted, words: str) -> ListedLaw:
    """One law that dominates the sum of Gaussians and Laplaces."""
    tails = [k * part.tail() for part, k in parts if isinstance(part, GaussianNoise)]
    square = float_up(sum(tails, Fraction(0)))
    laws: list[tuple[Term, int]] = [(GaussianTerm(square), 1)] if square > 0 else []
    for part, count in parts:
        if isinstance(part, LaplaceNoise):
            laws.append((LaplaceTerm(np.array([float_up(part.epsilon)]), np.ones(1)), count))
    if sum(count for _, count in laws) > _LAPLACES:
        raise ArgumentError(
            f"at most {_LAPLACES} Laplace mechanisms share one sample with others; sample each by "
            "itself"
        )
    # Q's losses are minus P's: both must lie on the lattice, or a sample would miss Q's mass.
    ends = [(-high, high) for _, high in (term.ends(_TAIL) for term, _ in laws)]
    width = sum(k * (high - low) for (_, k), (low, high) in zip(laws, ends, strict=True))
    if not width <= _WIDEST:
        raise ArgumentError("the noise is too small for a sample of several mechanisms")
    h = width / _POINTS
    first, masses, lost, relative = 0, np.ones(1), 0.0, 16 * EPS
    for (term, count), (low, high) in zip(laws, ends, strict=True):
        start, law, above, rough, off = pessimistic_law(term, low, high, h)
        for _ in range(count):
            # Direct sums of positive numbers: a transform would leave its rounding on small masses.
            first, masses = first + start, np.convolve(masses, law)
            lost += math.log1p(-above) if above < 1 else -math.inf
            # Products and short sums of positive numbers.
            relative += rough + EPS * (4 + min(len(law), len(masses)))
            # A loss that is off by so little moves delta by no more.
            lost -= off
    infinite = min(1.0, -math.expm1(lost) * (1 + EPS * (4 + sum(count for _, count in laws))))
    # Tails that a product of many laws leaves to rounding: they are charged, not kept.
    tiny = masses < 1e-300
    infinite += float(masses[tiny].sum())
    masses[tiny] = 0.0
    return ListedLaw(words, first * h, h, tuple(masses.tolist()), infinite, relative)


def excess(population: int, rate: float, most: int) -> float:
    """An upper bound of Pr[Bin(population, rate) > most]: its first term, and a geometric series.

    In balls: the logarithms of a large population's factorials agree in more digits than a double
    has.
    """
    if most >= population:
        return 0.0
    first, g = most + 1, max(printed(rate), Fraction(rate))
    if g >= 1:
        return 1.0
    # Later terms fall at least as fast as this ratio.
    ratio = (population - first) * g / ((first + 1) * (1 - g))
    # Without a series that falls nothing but 1 is known.
    if ratio >= 1:
        return 1.0
    with precision(128 + 2 * population.bit_length()) as flint:
        n, k, x, y = (
            flint.arb(flint.fmpq(part.numerator, part.denominator))
            for part in (Fraction(population), Fraction(first), g, 1 / (1 - ratio))
        )
        log_one = (n + 1).lgamma() - (k + 1).lgamma() - (n - k + 1).lgamma()
        log_one += k * x.log() + (n - k) * (1 - x).log()
        return min(1.0, up(log_one.exp() * y))
