"""A budget of zCDP that an adaptive mechanism spends: exact measurements and exact choices.

*Guarantee.* Whoever holds a `ZCDPBudget` sees the table through `ZCDPBudget.measure` and
`ZCDPBudget.choose` alone, and may call them in any order, with arguments that depend on all that
they gave before. Together they are rho-zCDP for the neighbours of the sensitivities:

- a measurement adds to every cell of a table independent discrete Gaussian noise of variance
  parameter sigma² = l2_squared / (2 r). Neighbours move the table by at most the root of
  ``l2_squared`` in Euclidean length, merged cells or not (below), so it is r-zCDP exactly
  (`DiscreteGaussian`);
- a choice is the exponential mechanism on integer scores (`Exponential`), whose loss has a range of
  at most epsilon = 2 · rate · sensitivity: (epsilon²/8)-zCDP. epsilon is a rational whose square
  is at most 8 r, and epsilon²/8 is what is counted;
- before each of them, what was spent and what it costs are compared with rho, as exact fractions;
  what would exceed it is refused. The costs may themselves depend on earlier answers: that the sum
  stays within a bound fixed beforehand is all that is needed (Feldman and Zrnic, "Individual
  privacy accounting via a Rényi filter", NeurIPS 2021; Whitehouse and others, "Fully-adaptive
  composition in differential privacy", ICML 2023).

*Merging.* Summing cells of a table, by maps that do not depend on the data, gives again a sum over
units of whole numbers of at least 0 whose total is at most ``max_rows`` for each unit. So the
sensitivities of `dither.plan.job.Cells` hold of it too.

*Scores.* The score of a table t with weight w, a public expectation m and a public offset b is ::

    w · ( Σ |L·t_i - round(L·m_i)| - round(L·b) ),     L = 64,

an integer. Neighbours move Σ |L·t_i - const_i| by at most L·‖t - t'‖₁ (the triangle inequality,
cell by cell), so a score by at most w · L · ``l1``; the largest weight of the candidates gives the
sensitivity. Where m comes from does not matter, so long as it follows from what was released; nor
does its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, Exponential
from dither.synth.model._graph import NoisyMarginal
from dither.synth.model._junction import Clique

__all__ = ["LATTICE", "Candidate", "MeasuredTable", "ZCDPBudget", "root_below"]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Counts = Callable[[Sequence[Clique]], dict[Clique, Integers]]

LATTICE = 64
"""Scores are counted in parts of a row."""


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """A table of counts with noise, as it was released.

    Parameters
    ----------
    clique : Clique
    values : array of int
    sigma2 : Fraction
        The parameter of the discrete Gaussian noise of each cell.
    """

    clique: Clique
    values: Integers
    sigma2: Fraction

    @property
    def deviation(self) -> float:
        """Of the noise of each cell."""
        return math.sqrt(self.sigma2)

    @property
    def marginal(self) -> NoisyMarginal:
        """As the graphical model takes it."""
        return NoisyMarginal(self.clique, self.values.astype(np.float64), self.deviation)


@dataclass(frozen=True, eq=False)
class Candidate:
    """One of the tables to choose from.

    Parameters
    ----------
    clique : Clique
    expected : array of float
        What is expected of its cells by what was released.
    weight : int
        At least 1.
    offset : float
        What is taken off its distance to the data, in rows.
    """

    clique: Clique
    expected: Floats
    weight: int = 1
    offset: float = 0.0


class ZCDPBudget:
    """See the module's text.

    Parameters
    ----------
    counts : callable
        The oracle of exact tables.
    rho : Fraction
        All that may be spent.
    l1, l2_squared : int
        By how much neighbours move any one table.
    """

    def __init__(self, counts: Counts, rho: Fraction, l1: int, l2_squared: int) -> None:
        self._counts = counts
        self.rho, self.l1, self.l2_squared = rho, l1, l2_squared
        self.spent = Fraction(0)
        self._held: dict[Clique, Integers] = {}
        self._maps: dict[int, Integers] = {}
        self._scored: dict[Clique, tuple[Floats, int]] = {}

    @property
    def left(self) -> Fraction:
        """What is left."""
        return self.rho - self.spent

    def _spend(self, rho: Fraction) -> None:
        if rho < 0 or self.spent + rho > self.rho:
            raise ArgumentError("rho: more than is left of the budget")
        self.spent += rho

    def merge(self, maps: Mapping[int, Integers]) -> None:
        """Sum cells from now on: cell i of an attribute is counted as cell ``maps[attribute][i]``.

        The maps must follow from what was released. Attributes without one stay as they are.
        """
        self._maps = dict(maps)
        self._held, self._scored = {}, {}

    def read(self, cliques: Sequence[Clique]) -> None:
        """Count tables, all in as few readings as the engine needs, and keep them for later."""
        new = [c for c in dict.fromkeys(cliques) if c not in self._held]
        if new:
            for clique, table in self._counts(new).items():
                self._held[clique] = self._merged(clique, table)

    def _merged(self, clique: Clique, table: Integers) -> Integers:
        for axis, attribute in enumerate(clique):
            if attribute in self._maps:
                to = self._maps[attribute]
                shape = list(table.shape)
                shape[axis] = int(to.max()) + 1
                found = np.zeros(shape, dtype=np.int64)
                np.add.at(np.moveaxis(found, axis, 0), to, np.moveaxis(table, axis, 0))
                table = found
        return table

    def measure(self, clique: Clique, rho: Fraction) -> MeasuredTable:
        """A table with noise; costs exactly rho."""
        self._spend(rho)
        self.read([clique])
        table = self._held[clique]
        noise = DiscreteGaussian.for_loss(rho, l2_squared=self.l2_squared)
        drawn = np.asarray(noise.draw(table.shape), dtype=np.int64)
        return MeasuredTable(clique, table + drawn, noise.sigma2)

    def choose(self, candidates: Sequence[Candidate], rho: Fraction) -> int:
        """One of the candidates, far from what is expected of it; costs at most rho."""
        epsilon = root_below(8 * rho)
        self._spend(epsilon * epsilon / 8)
        self.read([c.clique for c in candidates])
        scores = [self._score(c) for c in candidates]
        sensitivity = max(c.weight for c in candidates) * LATTICE * self.l1
        return Exponential.for_loss(epsilon, sensitivity=sensitivity).draw(scores)

    def _score(self, candidate: Candidate) -> int:
        return candidate.weight * (self._far(candidate) - round(LATTICE * candidate.offset))

    def _far(self, candidate: Candidate) -> int:
        """How far a table is from what is expected, which often is what it was the last time."""
        expected, far = self._scored.get(candidate.clique, (None, 0))
        if expected is not candidate.expected:
            near = np.rint(LATTICE * candidate.expected).astype(np.int64)
            far = int(np.abs(LATTICE * self._held[candidate.clique] - near).sum())
            self._scored[candidate.clique] = candidate.expected, far
        return far


def root_below(square: Any) -> Fraction:
    """A rational of 40 bits or so whose square is at most this one.

    Examples
    --------
    >>> root_below(Fraction(1, 4)), root_below(2) ** 2 < 2
    (Fraction(1, 2), True)
    """
    exact = Fraction(square)
    if exact <= 0:
        raise ArgumentError("square must be above 0")
    bits = max(0, 40 - (exact.numerator.bit_length() - exact.denominator.bit_length()) // 2)
    return Fraction(math.isqrt(exact.numerator * 4**bits // exact.denominator), 2**bits)
