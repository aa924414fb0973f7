"""What every part of a loss answers.

For each direction of the neighbour relation a part gives the law of its loss, or, where only a
class of mechanisms is known, a Rényi profile and one member of the class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dither.privacy.terms import Term

__all__ = ["Part", "gdp_of_pure", "rho_of_pure"]


@dataclass(frozen=True, slots=True)
class Part:
    """One mechanism's loss."""

    @property
    def symmetric(self) -> bool:
        """Whether the pair and the swapped pair have the same loss law."""
        return True

    @property
    def exact(self) -> bool:
        """Whether the pair is known, and not only a bound on a class."""
        return True

    @property
    def one_sided(self) -> bool:
        """Whether nothing is known to come near what the part charges."""
        return False

    def term(self, removal: bool, count: int) -> Term:
        """The law of ``count`` repetitions."""
        raise NotImplementedError

    def instance(self) -> Part | None:
        """A member of the class that the part bounds; None for the trivial one."""
        return self

    def dominating(self) -> Part | None:
        """A part with a known pair that is at least as lossy, where there is one."""
        return self

    def for_sampling(self) -> Part | None:
        """What a sample of it starts from; None where no pair is known."""
        return None if self.dominating() is None else self

    def moment(self, removal: bool, count: int) -> Term | None:
        """What bounds E[e^{cL}]; None where nothing does."""
        return self.term(removal, count)

    def grouped(self, size: int) -> Part:
        """The loss against groups of ``size`` units."""
        raise NotImplementedError

    def group(self, size: int) -> tuple[Part, int]:
        """The same as a part and how often it runs."""
        return self.grouped(size), 1

    def gdp(self) -> float:
        """A mu such that the part is mu-GDP; infinity where there is none."""
        return math.inf

    def rho(self) -> float:
        """A rho such that the part is rho-zCDP; infinity where there is none."""
        return math.inf

    def tail(self) -> float:
        """A mu² such that Pr[L > s] falls no faster than exp(-s²/(2·mu²)); 0 where none is known.

        What sampling scales by a rate to a fixed power falls as fast as before, so a sample has the
        tail of its base.
        """
        return 0.0

    def describe(self) -> str:
        """The part as it is written."""
        raise NotImplementedError


def rho_of_pure(epsilon: float) -> float:
    """The least rho of every epsilon-DP mechanism: see `concentration`."""
    return epsilon * math.tanh(epsilon / 2) * (1 + 1e-14)


def gdp_of_pure(epsilon: float) -> float:
    """The least mu such that every epsilon-DP mechanism is mu-GDP: Phi(mu/2) = e^ε/(1 + e^ε)."""
    from statistics import NormalDist

    q = 1 / (1 + math.exp(epsilon)) if epsilon < 700 else 0.0
    if q < 1e-300:
        return math.inf
    return -2 * NormalDist().inv_cdf(q) * (1 + 1e-8)
