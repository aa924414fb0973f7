"""The moments of a regression: counts, sums and products of regressors and response, released once.

Release. A row has regressors z with S terms and a response t in [-1, 1], all on a public lattice. A
term is one number in [-1, 1], or, where factors take part, several of which at most one is not 0,
and that in [-1, 1]. So each term's part of z has norm and sum of absolute values at most 1, and
‖z‖² <= S. What leaves is

    c·n (ADD_REMOVE only),  a·Σ z_i,  Σ z_i·z_j for i < j,  k·Σ z_i²,
    b·Σ t,  b·Σ z_i·t,  e·Σ (t² - 1/2)


with k = 7/10 <= √½. Products that are 0 in every row (two levels of one factor) are known and left
out. One vector serves every coefficient, the residual scale, R² and every prediction.

Sensitivity, L2. Under ADD_REMOVE no number exceeds its value at z = t = 1, so that

    l2² = c² + a²·S + S·(S - 1)/2 + k²·S + b² + b²·S + e²/4.

Under REPLACE let f be the vector of a row with √½ for k, which moves no less. Then ‖f(u) - f(u')‖²
= K(u, u) + K(u', u') - 2·K(u, u') for the kernel K = a²·s + s²/2 + b²·r + b²·s·r + e²·r², where s =
<z, z'> and r = t·t'. Rows of norm below √S, or |t| below 1, become rows of just that norm by a
further coordinate of their own: this changes no s or r of the two with each other, and makes
K(u, u) larger. So the most is, over |s| <= S and |r| <= 1,

    l2² = max 2·(a²·(S - s) + (S² - s²)/2 + b²·(1 - r) + b²·(S - s·r) + e²·(1 - r²)),

a quadratic on a rectangle, whose maximum is at one of nine points that are computed exactly.

Sensitivity, L1. Under ADD_REMOVE the sum of the same numbers. Under REPLACE let A terms be numbers
and K have factors. All but the squares are linear in each coordinate, so that the change is convex
in each and largest at signs: a pair of numbers of which f change sign moves by 2 where one of the
two does, and any pair with a factor by at most 2. With g = 1 where t changes sign, else 0,

    2·max_{f, g} [a·(f + K) + f·(A - f) + K·A + K·(K - 1)/2 + b·g + b·(K + f·(1 - g) + (A - f)·g)],

and squares add at most k·(A + 2K) + e.

A row that misses something counts as z = 0, t = 0 under REPLACE, and not at all under ADD_REMOVE.

The functional mechanism (Zhang et al., 2012) adds Laplace noise of one scale to each coefficient of
the polynomial Σ (t - (1,z)·β)² of β: n, 2·Σ z_i, 2·Σ z_i·z_j, Σ z_i², -2·Σ t, -2·Σ z_i·t, Σ t².
Halved, and but for signs, these are the numbers above with a = b = 1 and c = k = e = 1/2, so that
the same formulas give their l1. Where a row is replaced it is less than (1 + D)², D = S + 1, to
which the paper's bound comes when halved: what is known does not move, and the others cannot all
move from one end to the other at once. Where a row is added or removed it is less than half of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference._formula import MISSING
from dither.inference._inputs import Bounds, Floats, Target
from dither.inference._release import (
    Noise,
    Released,
    best_noise,
    fixed_noise,
    seen_at_best,
    spread_of,
)
from dither.privacy import Loss, Neighbours

__all__ = ["Moments", "MomentsRelease", "NoisyMoments"]

_PART = 1 << 20


@dataclass(frozen=True)
class MomentsRelease:
    """Layer 1: moments of regressors and a response, their weights, sensitivity and noise.

    Parameters
    ----------
    size : int
        Columns of the regressors, without the intercept.
    numbers, factors : int
        Terms that are numbers, and terms in which factors take part.
    zero : frozenset of (int, int)
        Columns i < j whose product is 0 in every row.
    asked : Target
    functional : bool
        Whether noise is that of the functional mechanism: Laplace, of one scale for the
        coefficients of the sum of squared residuals.

    Attributes
    ----------
    first, answer, square, count, second : Fraction
        The weights a of regressors, b of what the response takes part in, k, c and e.
    noise : Laplace or Gaussian
    loss : Loss
    """

    size: int
    numbers: int
    factors: int
    zero: frozenset[tuple[int, int]]
    asked: Target
    functional: bool = False
    first: Fraction = field(default=Fraction(1), init=False)
    answer: Fraction = field(init=False)
    square: Fraction = field(default=Fraction(7, 10), init=False)
    count: Fraction = field(default=Fraction(7, 10), init=False)
    second: Fraction = field(default=Fraction(1, 2), init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        if self.functional:
            object.__setattr__(self, "answer", Fraction(1))
            object.__setattr__(self, "square", Fraction(1, 2))
            object.__setattr__(self, "count", Fraction(1, 2))
            noise, loss = fixed_noise(asked=self.asked, dimension=self.dimension, l1=self.l1)
        else:
            # Slopes need the products with the response more than any one product of regressors.
            weight = Fraction(round(8 * (1 + self.terms) ** 0.375), 8)
            object.__setattr__(self, "answer", weight)
            noise, loss = best_noise(
                asked=self.asked, dimension=self.dimension, l1=self.l1, l2_squared=self.l2_squared
            )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    @property
    def terms(self) -> int:
        """S: the largest squared norm of the regressors."""
        return self.numbers + self.factors

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return len(self.pairs) + 2 * self.size + 2 + int(not self.asked.replace)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Columns i <= j whose products are released, in order."""
        d = self.size
        return tuple((i, j) for i in range(d) for j in range(i, d) if (i, j) not in self.zero)

    @property
    def l2_squared(self) -> Fraction:
        """A bound of how far one row moves the vector, squared; see the module."""
        a2, b2, e2, k2 = self.first**2, self.answer**2, self.second**2, self.square**2
        s = Fraction(self.terms)
        if not self.asked.replace:
            products = s * (s - 1) / 2 + k2 * s
            return self.count**2 + a2 * s + products + b2 * (1 + s) + e2 / 4

        def moved(x: Fraction, r: Fraction) -> Fraction:
            first, second = a2 * (s - x) + (s * s - x * x) / 2, b2 * (1 - r) + b2 * (s - x * r)
            return 2 * (first + second + e2 * (1 - r * r))

        def within(value: Fraction, end: Fraction) -> Fraction:
            return min(max(value, -end), end)

        ends = (Fraction(-1), Fraction(1))
        points = [(x * s, r) for x in ends for r in ends]
        points += [(within(-a2 - b2 * r, s), r) for r in ends]
        points += [(x * s, within(-b2 * (1 + x * s) / (2 * e2), ends[1])) for x in ends]
        # Where both slopes vanish: x + b²·r = -a² and b²·x + 2·e²·r = -b².
        if determinant := 2 * e2 - b2 * b2:
            x, r = (b2 * b2 - 2 * e2 * a2) / determinant, (a2 * b2 - b2) / determinant
            if abs(x) <= s and abs(r) <= 1:
                points.append((x, r))
        return max(moved(x, r) for x, r in points)

    @property
    def l1(self) -> Fraction:
        """A bound of how far one row moves the vector in absolute value; see the module."""
        a, b, e, k, s = self.first, self.answer, self.second, self.square, self.terms
        if not self.asked.replace:
            return self.count + a * s + Fraction(s * (s - 1), 2) + k * s + b * (1 + s) + e / 2
        n, f = self.numbers, self.factors
        most = max(
            a * (flips + f) + flips * (n - flips) + b * (g + f + (n - flips if g else flips))
            for flips in range(n + 1)
            for g in (0, 1)
        )
        return 2 * (most + f * n + Fraction(f * (f - 1), 2)) + k * (n + 2 * f) + e

    def statistic(self, points: npt.NDArray[np.int64]) -> tuple[Fraction, ...]:
        """The exact vector of rows on the lattice, shape (n, size + 1): the response comes last."""
        gone = points[:, -1] == MISSING
        n = len(points) if self.asked.replace else int(len(points) - gone.sum())
        points = points[~gone]
        total = [[0] * (self.size + 1) for _ in range(self.size + 1)]
        for i in range(0, len(points), _PART):
            part = points[i : i + _PART]
            for row, more in zip(total, (part.T @ part).tolist(), strict=True):
                row[:] = [x + y for x, y in zip(row, more, strict=True)]
        sums = points.sum(axis=0).tolist()
        return self.weighted(n, sums, total)

    def weighted(self, n: int, sums: list[int], products: list[list[int]]) -> tuple[Fraction, ...]:
        """The vector from exact integers on the lattice, the response last in each."""
        one, two, d = Bounds.steps, Bounds.steps**2, self.size
        found = [] if self.asked.replace else [self.count * n]
        found += [self.first * Fraction(s, one) for s in sums[:d]]
        found += [
            (self.square if i == j else 1) * Fraction(products[i][j], two) for i, j in self.pairs
        ]
        found.append(self.answer * Fraction(sums[d], one))
        found += [self.answer * Fraction(products[i][d], two) for i in range(d)]
        found.append(self.second * (Fraction(products[d][d], two) - Fraction(n, 2)))
        return tuple(found)

    def release(self, points: npt.NDArray[np.int64]) -> Released:
        """The statistic with noise: the one step that touches data."""
        return Released(self.noise.release(self.statistic(points)), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta, no = Fraction(1, 100), frozenset[tuple[int, int]]()
        low, high = (np.full((1, 2), x * Bounds.steps) for x in (-1, 1))
        design = cls(1, 1, 0, no, Target(Fraction(1), Fraction(0), Neighbours.REPLACE))
        first, second = np.array([[1, -1]]) * Bounds.steps, high
        yield Subject("moments of n rows", seen_at_best(design, first, second), first, second)
        more = np.concatenate([high, low])
        design = cls(0, 0, 0, no, Target(Fraction(1), Fraction(0), Neighbours.ADD_REMOVE))
        fewer = high[:, 1:], more[:, 1:]
        yield Subject("moments of unknown n", seen_at_best(design, *fewer), *fewer)
        design = cls(1, 1, 0, no, Target(Fraction(1), delta, Neighbours.ADD_REMOVE))
        seen = seen_at_best(design, high, more)
        yield Subject("moments with Gaussian noise", seen, high, more, delta=delta)
        asked = Target(Fraction(1), Fraction(0), Neighbours.ADD_REMOVE)
        seen = seen_at_best(cls(0, 0, 0, no, asked, functional=True), *fewer)
        yield Subject("moments of the functional mechanism", seen, *fewer)


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments as a model takes them, one set or a batch of B: regressors (1, z) are D.

    Parameters
    ----------
    gram : array of float, shape (..., D, D)
    cross : array of float, shape (..., D)
        Sums of products with the response.
    square : array of float, shape (...)
        Σ t².
    """

    gram: Floats
    cross: Floats
    square: Floats

    @property
    def n(self) -> Floats:
        """Rows, as measured."""
        return np.asarray(np.maximum(self.gram[..., 0, 0], 1.0))


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """Layer 2, the noise: what leaves is moments and independent noise of these deviations.

    Parameters
    ----------
    design : MomentsRelease
    rows : int or None
        The public n, or None where it is measured.
    """

    design: MomentsRelease
    rows: int | None

    def read(self, released: Floats) -> Moments:
        """Moments from released vectors, shape (..., dimension)."""
        design, d = self.design, self.design.size
        at, gram = 0, np.zeros((*released.shape[:-1], d + 1, d + 1))
        if self.rows is None:
            gram[..., 0, 0] = released[..., 0] / float(design.count)
            at = 1
        else:
            gram[..., 0, 0] = self.rows
        gram[..., 0, 1:] = released[..., at : at + d] / float(design.first)
        gram[..., 1:, 0] = gram[..., 0, 1:]
        at += d
        for place, (i, j) in enumerate(design.pairs, at):
            value = released[..., place] / (float(design.square) if i == j else 1.0)
            gram[..., i + 1, j + 1] = gram[..., j + 1, i + 1] = value
        at += len(design.pairs)
        cross = released[..., at : at + d + 1] / float(design.answer)
        square = released[..., -1] / float(design.second) + gram[..., 0, 0] / 2
        return Moments(gram, cross, square)

    @cached_property
    def deviation(self) -> float:
        """Of the noise of a product of two regressors."""
        return spread_of(self.design.noise).deviation

    @cached_property
    def of_gram(self) -> Floats:
        """Variances of the noise of the Gram matrix, shape (D, D); 0 for what is known."""
        design, d = self.design, self.design.size
        variance = self.deviation**2
        found = np.zeros((d + 1, d + 1))
        found[0, 1:] = found[1:, 0] = variance / float(design.first) ** 2
        for i, j in design.pairs:
            weight = float(design.square) if i == j else 1.0
            found[i + 1, j + 1] = found[j + 1, i + 1] = variance / weight**2
        if self.rows is None:
            found[0, 0] = variance / float(design.count) ** 2
        return found

    @property
    def of_cross(self) -> float:
        """The variance of the noise of each product with the response."""
        return self.deviation**2 / float(self.design.answer) ** 2

    @property
    def of_square(self) -> float:
        """The variance of the noise of Σ t², but for that of n/2."""
        return self.deviation**2 / float(self.design.second) ** 2

    def draw(self, rng: np.random.Generator, size: int) -> Moments:
        """Simulated noise, as moments."""
        noise = spread_of(self.design.noise).draw(rng, (size, self.design.dimension))
        found = self.read(noise)
        if self.rows is not None:
            found.gram[:, 0, 0] = 0.0
            found.square[...] -= self.rows / 2
        return found
