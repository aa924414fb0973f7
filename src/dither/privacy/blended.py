"""Gaussians and Laplaces that share one sample: one pessimistic law of all of them.

Each loss's law is discretised as a grid does it, both P's and Q's mass kept, so that the discrete
pair dominates; sums of independent losses are then exact on the common lattice. A sample of a pair
that dominates dominates the sample. Nothing is told of how near that is, so only an upper end is.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dither.errors import ArgumentError
from dither.numeric import float_up
from dither.privacy.parts import GaussianNoise, LaplaceNoise, ListedLaw
from dither.privacy.profile.grid import pessimistic_law
from dither.privacy.side import Counted
from dither.privacy.terms import GaussianTerm, LaplaceTerm, Term
from dither.privacy.terms.base import EPS

__all__ = ["blended"]

_POINTS = 8192
_TAIL = 1e-26
"""Mass left beyond the lattice by each law; it is charged as infinite loss."""

_REPEATS = 400

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
    if sum(count for _, count in laws) > _REPEATS:
        raise ArgumentError(
            f"at most {_REPEATS} Laplace mechanisms share one sample with others; sample each by "
            "itself"
        )
    # Q's losses are minus P's: both must lie on the lattice, or a sample would miss Q's mass.
    ends = [(-high, high) for _, high in (term.ends(_TAIL) for term, _ in laws)]
    width = sum(k * (high - low) for (_, k), (low, high) in zip(laws, ends, strict=True))
    if not width <= _WIDEST:
        raise ArgumentError("the noise is too small for a sample of several mechanisms")
    h = width / _POINTS
    first, masses, kept, relative = 0, np.ones(1), 1.0, 16 * EPS
    for (term, count), (low, high) in zip(laws, ends, strict=True):
        start, law, above, rough = pessimistic_law(term, low, high, h)
        for _ in range(count):
            first, masses = first + start, np.convolve(masses, law)
            kept *= 1 - above
            # Products and short sums of positive numbers.
            relative += rough + EPS * (4 + min(len(law), len(masses)))
    infinite = min(1.0, (1 - kept) * (1 + 1e-9) + 1e-22)
    # Tails that a product of many laws leaves to rounding: they are charged, not kept.
    tiny = masses < 1e-300
    infinite += float(masses[tiny].sum())
    masses[tiny] = 0.0
    return ListedLaw(words, first * h, h, tuple(masses.tolist()), infinite, relative)
