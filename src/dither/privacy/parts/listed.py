"""A symmetric pair that is given by the law of its loss, on a lattice."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dither.errors import ArgumentError
from dither.privacy.parts.part import Part
from dither.privacy.terms import AtomTerm, Term
from dither.privacy.terms.base import EPS

__all__ = ["ListedLaw"]


@dataclass(frozen=True, slots=True)
class ListedLaw(Part):
    """Masses under P at first + spacing·k, and the rest of P's mass at infinity.

    The swapped pair has the same law. ``relative`` bounds each mass's relative error.
    """

    words: str
    first: float
    spacing: float
    masses: tuple[float, ...] = field(repr=False)
    infinite: float
    relative: float = 16 * EPS

    def term(self, removal: bool, count: int) -> Term:
        """The law, in either direction."""
        masses = np.array(self.masses)
        losses = self.first + self.spacing * np.arange(len(masses))
        kept = masses > 0
        losses, masses = losses[kept], masses[kept]
        lattice = (float(losses[0]), self.spacing)
        return AtomTerm(losses, masses, count, self.infinite, lattice, relative=self.relative)

    def grouped(self, size: int) -> Part:
        """Not offered."""
        raise ArgumentError(f"no group bound of {self.words} is known")

    def describe(self) -> str:
        """As it was made."""
        return self.words
