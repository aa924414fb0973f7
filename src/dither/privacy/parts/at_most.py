"""A loss that is only bounded from above: nothing is claimed to come near it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dither.privacy.charge import Charge
from dither.privacy.parts.ends import Amount, Ends
from dither.privacy.parts.part import Part
from dither.privacy.terms import Term

__all__ = ["AtMost"]


@dataclass(frozen=True, slots=True)
class AtMost(Part):
    """What ``bound`` dominates, and no member of which is known to reach it.

    Parameters
    ----------
    bound : Part
        A part with a known pair.
    words : str
        As it was written.
    """

    bound: Part
    words: str

    @property
    def symmetric(self) -> bool:
        """As the bound."""
        return self.bound.symmetric

    @property
    def exact(self) -> bool:
        """A class."""
        return False

    @property
    def one_sided(self) -> bool:
        """By construction."""
        return True

    def instance(self) -> Part | None:
        """Nothing may be lost."""
        return None

    def dominating(self) -> Part | None:
        """The bound."""
        return self.bound.dominating()

    def moment(self, removal: bool, count: int) -> Term | None:
        """The bound's."""
        return self.bound.moment(removal, count)

    def top(self, removal: bool) -> Ends | None:
        """The bound's, from above."""
        found = self.bound.top(removal)
        return None if found is None else (Fraction(0), found[1])

    def grouped(self, size: int) -> Part:
        """The bound's, as a bound."""
        return AtMost(self.bound.grouped(size), f"{self.words}.group({size})")

    def gdp(self) -> Amount:
        """The bound's."""
        return self.bound.gdp()

    def rho(self) -> Amount:
        """The bound's."""
        return self.bound.rho()

    def charge(self) -> Charge:
        """The bound's."""
        return self.bound.charge()

    def describe(self) -> str:
        """As written."""
        return self.words
