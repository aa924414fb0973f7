"""The literature's efficient identity test, algorithm 9.3.3 in a form whose guarantee is proved.

Release. S is the sum of n rows of ±1 in d coordinates, and each step is (epsilon, delta) of its
own, a quarter and a fourteenth of what is asked for. With L = ln(1/delta):

1. stop (reject) where max|S_i| + Z1 > t, Z1 discrete Laplace noise of scale 2/epsilon;
2. S̃ = S + N, with N discrete Gaussian noise for the squared distance 4d, (epsilon, delta);
3. a row x is *far* where |⟨x, S̃⟩| > λ. Stop where their number + Z3 > L/epsilon, Z3 of scale
   1/epsilon;
4. X̂ is the table in which every far row is replaced by fair coins U;
5. T(X̂) = ‖Ŝ‖² - nd leaves with discrete Laplace noise of scale b.

Everything is an integer, so that who is far is the same function of the row and of S̃ whatever the
other rows are.

Guarantee. Let X and X' differ in row j, x and x', and use the same U in both. Let *close* mean that
given (S̃, U) the two T differ by at most b·epsilon. Steps 1, 3 and 5 (where close) are epsilon-DP
and step 2 is (epsilon, delta)-DP, so that the algorithm that gives up where it is not close is
(4·epsilon, delta)-DP by simple composition; it differs from the algorithm on X by the event that
steps 1 and 3 pass and it is not close. That has probability at most 5·delta:

* Z1 < -2L/epsilon: delta. Otherwise max|S_i| <= t + 2L/epsilon =: a.
* Z3 < -L/epsilon: delta. Otherwise at most m = 2L/epsilon rows are far.
* |⟨x, N⟩| or |⟨x', N⟩| > w = σ·√(2d·ln(2/delta)): delta each, as N is subgaussian.
* |⟨R, U_j⟩| > ‖R‖·√(2·ln(2/delta)) for the sum R of X̂ without row j, of which U_j is independent:
  delta (Hoeffding).

Otherwise, as R = S̃ - N - x - Σ(x_i - U_i) over the far rows i other than j, a row v of x and x'
that is not far has |⟨v, R⟩| <= λ + w + d + 2md =: k, and ‖R‖ <= √d·(a + 1 + 2m), so that |⟨U_j, R⟩|
is at most c := √(2d·ln(2/delta))·(a + 1 + 2m). With y and y' what stands in row j of X̂ and X̂',

    |T - T'| = |2⟨R, y - y'⟩ + ‖y‖² - ‖y'‖²| <= 2k + 2·max(k, c) + d,

where d is for missing signs. b is that over epsilon or the source's constant, whichever is larger:
the source's is larger by a few per cent, so that it suffices. The whole is (4·epsilon, 6·delta)-DP,
and is charged as (4·epsilon, 14·delta), the form that it is compared in.

Source. Canonne, Kamath, McMillan, Ullman and Zakynthinou, "Private identity testing for
high-dimensional distributions", NeurIPS 2020, for the algorithm and its thresholds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Floats, Target, target
from dither.inference.engine._signs import Signs
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.mechanisms._composable import approximate_class
from dither.noise import below
from dither.privacy import Loss

__all__ = ["EfficientRelease"]

_FAR = 1 << 30
"""Where noisy sums are cut: inner products then stay within 64 bits."""

_UP = 1 + 1e-9
"""More than doubles lose on the way to a bound: some forty roundings of positive numbers, and of L
as many halves of EPS as a logarithm of delta's terms is larger than it."""


@dataclass(frozen=True)
class EfficientRelease:
    """Layer 1: algorithm 9.3.3, each step at (epsilon/4, delta/14).

    Parameters
    ----------
    rows, dimension : int
        Both public.
    asked : Target
        Of neighbours that replace a row, with a delta above 0.

    Attributes
    ----------
    steepest : float
        The largest coordinate that goes on, t.
    leaning : float
        How far a row may lean on the noisy sum, λ.
    many : float
        The noisy number of far rows that goes on, L/epsilon.
    scale : int
        Of the noise of T, b.
    loss : Loss
    """

    rows: int
    dimension: int
    asked: Target
    blur: DiscreteGaussian = field(init=False)
    steepest: float = field(init=False)
    leaning: float = field(init=False)
    many: float = field(init=False)
    scale: int = field(init=False)
    loss: Loss = field(init=False)

    parts: ClassVar[tuple[int, int]] = (4, 14)

    def __post_init__(self) -> None:
        if self.asked.delta <= 0 or not self.asked.replace:
            raise ArgumentError(
                "method 'efficient' needs delta above 0 and neighbours 'replace'; "
                "method 'norm' needs neither"
            )
        n, d, part = max(2, self.rows), self.dimension, self.part
        e, small = float(part.epsilon), self._small
        per_row, per_axis = math.log(n) + small, math.log(d) + small
        bound = 16.0 * (
            d * per_axis
            + d / (n * e * e) * small**2
            + math.sqrt(n * d * per_axis * per_row)
            + math.sqrt(d) / e * small * math.sqrt(per_row)
        )
        reach = d / e * math.sqrt((math.log(1.25) + small) * per_row)
        found = {
            "blur": DiscreteGaussian.for_epsilon(
                part.epsilon, part.delta, l2_squared=4 * d, coordinates=d
            ),
            "steepest": math.sqrt(2.0 * n * per_axis) + 2.0 / e * small,
            "leaning": bound + 4.0 * reach,
            "many": small / e,
            "loss": approximate_class(self.asked.epsilon, self.asked.delta, self.asked.neighbours),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)
        printed = 4.0 * bound + 48.0 * reach
        object.__setattr__(self, "scale", math.ceil(max(printed, self.furthest) / e * _UP))

    @property
    def part(self) -> Target:
        """What each of its steps may cost."""
        epsilon, delta = self.parts
        asked = self.asked
        return Target(asked.epsilon / epsilon, asked.delta / delta, asked.neighbours)

    @property
    def _small(self) -> float:
        """L: a difference of exact integers' logarithms, as delta may be below doubles."""
        delta = self.part.delta
        return math.log(delta.denominator) - math.log(delta.numerator)

    @property
    def furthest(self) -> float:
        """How far T moves at most where it is close, for these thresholds: the proof's bound."""
        d, two = self.dimension, math.sqrt(2.0 * (math.log(2.0) + self._small))
        far = 2.0 * self.many
        lean = two * math.sqrt(float(self.blur.sigma2) * d)
        kept = self.leaning + lean + d + 2.0 * far * d
        highest = self.steepest + 2.0 * self._small / float(self.part.epsilon)
        coins = two * math.sqrt(d) * (highest + 1.0 + 2.0 * far)
        return (2.0 * kept + 2.0 * max(kept, coins) + d) * _UP

    def statistic(self, rows: Signs, far: npt.NDArray[np.bool_], coins: Signs) -> int:
        """T of the table whose far rows are replaced by coins, row by row."""
        kept = np.where(far[:, None], coins, rows).sum(axis=0, dtype=np.int64)
        return sum(int(v) ** 2 for v in kept) - self.rows * self.dimension

    def far(self, rows: Signs, blurred: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which rows lean too far on a noisy sum."""
        return np.asarray(np.abs(rows.astype(np.int64) @ blurred) > self.leaning)

    def release(self, rows: Signs) -> float:
        """T of what is left with noise, or infinity where it stopped: all that touches data."""
        epsilon = self.part.epsilon
        total = rows.sum(axis=0, dtype=np.int64)
        first = DiscreteLaplace.for_loss(epsilon, l1=2)
        if int(np.abs(total).max(initial=0)) + int(first.draw(1)[0]) > self.steepest:
            return math.inf
        noise = np.asarray(self.blur.draw(self.dimension))
        blurred = np.clip(total + noise, -_FAR, _FAR).astype(np.int64)
        far = self.far(rows, blurred)
        counted = DiscreteLaplace.for_loss(epsilon, l1=1)
        if int(far.sum()) + int(counted.draw(1)[0]) > self.many:
            return math.inf
        coins = np.zeros_like(rows)
        drawn = np.asarray(below(2, int(far.sum()) * self.dimension), dtype=np.int8)
        coins[far] = (2 * drawn - 1).reshape(-1, self.dimension)
        last = DiscreteLaplace(Fraction(self.scale))
        return float(self.statistic(rows, far, coins) + int(last.draw(1)[0]))

    def simulate(self, rng: np.random.Generator, totals: Floats) -> Floats:
        """What it would release of so many sums, in which no row leans too far."""
        size, e = len(totals), float(self.part.epsilon)
        stopped = np.abs(totals).max(axis=1) + rng.laplace(0, 2 / e, size) > self.steepest
        stopped |= rng.laplace(0, 1 / e, size) > self.many
        found = (totals**2).sum(axis=1) - self.rows * self.dimension
        return np.where(stopped, np.inf, found + rng.laplace(0, self.scale, size))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that turns from with all others to against them.

        What leaves is one number whose noise is for the worst that thresholds let through, so that
        no pair of tables uses the claim.
        """
        rows = np.ones((12, 2), dtype=np.int8)
        turned = rows.copy()
        turned[0] = -1
        design = cls(12, 2, target(1, Fraction(1, 100), "replace"))
        yield Subject("identity, efficient", design.release, rows, turned, delta=design.asked.delta)
