"""The moments of a regression: counts, sums and products of regressors and response, released once.

Rows. A row has regressors u = (1, z), z with S terms, and a response t in [-1, 1], all on a public
lattice. A term is one number in [-1, 1], or, where factors take part, several of which at most one
is not 0, and that in [-1, 1]. So each term's part of z has norm and sum of absolute values at most
1, and ‖u‖² <= S + 1. A row weighs w = min(1, q/‖u‖²) for a public q: with x = √w·u and τ = √w·t,
‖x‖² <= q. Weights depend on regressors alone, so that least squares with them estimates the same
coefficients; long rows count less, and less noise is needed. What leaves is

    c·Σ x_0²,  a·Σ x_0·z_i,  Σ z_i·z_j for i < j,  k·Σ z_i²   (z now being part of x),
    b·Σ x_0·τ,  b·Σ z_i·τ,  e·Σ (τ² - x_0²/2)

with k = c = 7/10 <= √½ and a = 1. Where q >= S + 1 every row weighs 1, x_0 = 1 and Σ x_0² = n,
which leaves under ADD_REMOVE only; where rows weigh less and are replaced, the last is e·Σ τ².
Products that are 0 in every row (two levels of one factor) are known and left out. One vector
serves every coefficient, the residual scale, R² and every prediction.

Sensitivity, L2. Under ADD_REMOVE the products of regressors are at most ‖x‖⁴/2 together, squared,
and no other number exceeds its value at ‖x‖² = q, |τ| = 1, so that

    l2² = q²/2 + b²·q + e²/4,        and with k and c themselves where every row weighs 1.

Under REPLACE let f be the vector of a row with √½ for k and c, which moves no less. Then ‖f(x) -
f(x')‖² = K(x, x) + K(x', x') - 2·K(x, x') for the kernel K = s²/2 + b²·s·r + e²·r², where s =
<x, x'> and r = τ·τ'. Rows with ‖x‖² below q, or |τ| below 1, become rows of just that norm by a
further coordinate of their own: this changes no s or r of the two with each other, and makes
K(x, x) larger. So the most is, over |s| <= q and |r| <= 1,

    l2² = max 2·((q² - s²)/2 + b²·(q - s·r) + e²·(1 - r²)),

a quadratic on a rectangle, whose maximum is at one of its corners, the best points of its sides, or
where both slopes vanish. Where every row weighs 1, s = 1 + <z, z'> >= 1 - S.

Sensitivity, L1, where every row weighs 1. Under ADD_REMOVE the sum of the same numbers. Under
REPLACE let A terms be numbers and K have factors. All but the squares are linear in each
coordinate, so that the change is convex in each and largest at signs: a pair of numbers of which f
change sign moves by 2 where one of the two does, and any pair with a factor by at most 2. With
g = 1 where t changes sign, else 0,

    2·max_{f, g} [a·(f + K) + f·(A - f) + K·A + K·(K - 1)/2 + b·g + b·(K + f·(1 - g) + (A - f)·g)],

and squares add at most k·(A + 2K) + e. Where rows weigh less, (Σ|x_i|)² <= (S + 1)·‖x‖², so that
one row adds at most S·q/2 + k·q + b·√((S + 1)·q) + e/2; a replaced one moves all but the last by no
more than twice that, and the last by e.

A row that misses something counts as z = 0, t = 0 where rows are replaced and each weighs 1, and
not at all elsewhere.

The functional mechanism (Zhang et al., 2012) adds Laplace noise of one scale to each coefficient of
the polynomial Σ (t - (1,z)·β)² of β: n, 2·Σ z_i, 2·Σ z_i·z_j, Σ z_i², -2·Σ t, -2·Σ z_i·t, Σ t².
Halved, and but for signs, these are the numbers above with w = 1, a = b = 1 and c = k = e = 1/2, so
that the same formulas give their l1. Where a row is replaced it is less than (1 + D)², D = S + 1,
to which the paper's bound comes when halved: what is known does not move, and the others cannot
all move from one end to the other at once. Where a row is added or removed it is less than half
of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    best_noise,
    exact_products,
    fixed_noise,
    seen_at_best,
    spread_of,
    squared_lengths,
)
from dither.inference.regression._formula import MISSING
from dither.numeric import sqrt_upper
from dither.privacy import Loss, Neighbours

__all__ = ["Moments", "MomentsRelease", "NoisyMoments"]


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
        coefficients of the sum of squared residuals. All rows weigh 1 then.
    longest : Fraction, optional
        q; without it every row weighs 1.

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
    longest: Fraction | None = None
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
            # Slopes need products with the response more than any one product of regressors: where
            # noise is large, those of one row as long as its products of regressors.
            power = 0.5 if self.weighing else 0.375
            weight = Fraction(round(8 * float(self.square_norm) ** power), 8)
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
    def square_norm(self) -> Fraction:
        """The largest ‖x‖²."""
        most = Fraction(self.terms + 1)
        return most if self.longest is None or self.functional else min(self.longest, most)

    @property
    def weighing(self) -> bool:
        """Whether a row may weigh less than 1."""
        return self.square_norm < self.terms + 1

    @property
    def counted(self) -> bool:
        """Whether Σ x_0² is released: else it is the public n."""
        return self.weighing or not self.asked.replace

    @property
    def about_half(self) -> bool:
        """Whether squares of the response are released about half of Σ x_0²."""
        return not (self.weighing and self.asked.replace)

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return len(self.pairs) + 2 * self.size + 2 + int(self.counted)

    @cached_property
    def pairs(self) -> tuple[tuple[int, int], ...]:
        """Columns i <= j whose products are released, in order."""
        d = self.size
        return tuple((i, j) for i in range(d) for j in range(i, d) if (i, j) not in self.zero)

    @property
    def l2_squared(self) -> Fraction:
        """A bound of how far one row moves the vector, squared; see the module."""
        a2, b2, e2, k2 = self.first**2, self.answer**2, self.second**2, self.square**2
        s, q = Fraction(self.terms), self.square_norm
        if not self.asked.replace:
            if self.weighing:
                return q * q / 2 + b2 * q + e2 / 4
            products = s * (s - 1) / 2 + k2 * s
            return self.count**2 + a2 * s + products + b2 * (1 + s) + e2 / 4

        least = -q if self.weighing else 1 - s

        def moved(x: Fraction, r: Fraction) -> Fraction:
            return 2 * ((q * q - x * x) / 2 + b2 * (q - x * r) + e2 * (1 - r * r))

        def within(value: Fraction, low: Fraction, high: Fraction) -> Fraction:
            return min(max(value, low), high)

        one = Fraction(1)
        points = [(x, r) for x in (least, q) for r in (-one, one)]
        points += [(within(-b2 * r, least, q), r) for r in (-one, one)]
        points += [(x, within(-b2 * x / (2 * e2), -one, one)) for x in (least, q)]
        if least <= 0:
            # Both slopes vanish: x + b²·r = 0 and b²·x + 2·e²·r = 0.
            points.append((Fraction(0), Fraction(0)))
        return max(moved(x, r) for x, r in points)

    @property
    def l1(self) -> Fraction:
        """A bound of how far one row moves the vector in absolute value; see the module."""
        a, b, e, k, s = self.first, self.answer, self.second, self.square, self.terms
        if self.weighing:
            q = self.square_norm
            once = s * q / 2 + k * q + b * sqrt_upper((s + 1) * q)
            return 2 * once + e if self.asked.replace else once + e / 2
        if not self.asked.replace:
            return self.count + a * s + Fraction(s * (s - 1), 2) + k * s + b * (1 + s) + e / 2
        n, f = self.numbers, self.factors
        most = max(
            a * (flips + f) + flips * (n - flips) + b * (g + f + (n - flips if g else flips))
            for flips in range(n + 1)
            for g in (0, 1)
        )
        return 2 * (most + f * n + Fraction(f * (f - 1), 2)) + k * (n + 2 * f) + e

    def weighed(self, points: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Rows (x, τ) on the lattice, shape (n, size + 2)."""
        gone = points[:, -1] == MISSING
        rows = np.column_stack([np.full(len(points), Bounds.steps), points])
        if not self.weighing:
            rows[gone, 1:] = 0
            return rows if self.asked.replace else rows[~gone]
        rows = rows[~gone]
        square = squared_lengths(rows[:, : self.size + 1])
        # Short of q by more than doubles can be off: a square of d + 1 columns errs by d + 1 halves
        # of EPS, the bound by 3, its root by half of both, and a product and its square by 4; what
        # is cut to the lattice is shorter. That is enough for d to 4,000.
        most = float(self.square_norm) * Bounds.steps**2 * (1 - 1e-12)
        root = np.sqrt(np.minimum(1.0, most / square))
        return np.asarray(np.trunc(rows * root[:, None]), dtype=np.int64)

    def statistic(self, points: npt.NDArray[np.int64]) -> tuple[Fraction, ...]:
        """The exact vector of rows on the lattice, shape (n, size + 1): the response comes last."""
        points, d, two = self.weighed(points), self.size, Bounds.steps**2
        exact = [[Fraction(v, two) for v in row] for row in exact_products(points)]
        first, answers = exact[0], exact[-1]
        found = [self.count * first[0]] if self.counted else []
        found += [self.first * v for v in first[1 : d + 1]]
        found += [(self.square if i == j else 1) * exact[i + 1][j + 1] for i, j in self.pairs]
        found += [self.answer * v for v in answers[: d + 1]]
        found.append(self.second * (answers[-1] - (first[0] / 2 if self.about_half else 0)))
        return tuple(found)

    def release(self, points: npt.NDArray[np.int64]) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(points)), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta, no = Fraction(1, 100), frozenset[tuple[int, int]]()
        pure, some = Fraction(0), Fraction(1, 100)

        def of(size: int, delta: Fraction, neighbours: Neighbours, **more: Any) -> MomentsRelease:
            return cls(size, size, 0, no, Target(Fraction(1), delta, neighbours), **more)

        low, high = (np.full((1, 2), x * Bounds.steps) for x in (-1, 1))
        design = of(0, pure, Neighbours.REPLACE)
        # All in one number, where a test sees the most: 0.8 of l1, since no square moves with it.
        first, second = low[:, 1:], high[:, 1:]
        yield Subject("moments of n rows", seen_at_best(design, first, second), first, second)
        more = np.concatenate([high, low])
        design = of(0, pure, Neighbours.ADD_REMOVE)
        fewer = high[:, 1:], more[:, 1:]
        yield Subject("moments of unknown n", seen_at_best(design, *fewer), *fewer)
        design = of(1, some, Neighbours.ADD_REMOVE)
        seen = seen_at_best(design, high, more)
        yield Subject("moments with Gaussian noise", seen, high, more, delta=delta)
        seen = seen_at_best(of(0, pure, Neighbours.ADD_REMOVE, functional=True), *fewer)
        yield Subject("moments of the functional mechanism", seen, *fewer)
        design = of(4, some, Neighbours.REPLACE, longest=Fraction(5, 2))
        first, second = (np.array([[1, 1, 0, 0, y]]) * Bounds.steps for y in (-1, 1))
        seen = seen_at_best(design, first, second)
        yield Subject("moments of rows with weights", seen, first, second, delta=delta)


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
        """Rows, as measured: what they weigh together."""
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
        if design.counted:
            gram[..., 0, 0] = released[..., 0] / float(design.count)
            at = 1
        else:
            gram[..., 0, 0] = self.rows or 0
        gram[..., 0, 1:] = released[..., at : at + d] / float(design.first)
        gram[..., 1:, 0] = gram[..., 0, 1:]
        at += d
        for place, (i, j) in enumerate(design.pairs, at):
            value = released[..., place] / (float(design.square) if i == j else 1.0)
            gram[..., i + 1, j + 1] = gram[..., j + 1, i + 1] = value
        at += len(design.pairs)
        cross = released[..., at : at + d + 1] / float(design.answer)
        square = released[..., -1] / float(design.second)
        if design.about_half:
            square = square + gram[..., 0, 0] / 2
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
        if design.counted:
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
        if not self.design.counted:
            found.gram[:, 0, 0] = 0.0
            found.square[...] -= (self.rows or 0) / 2
        return found
