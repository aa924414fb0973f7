"""Rows of ±1: Gaussian rows as signs, sums of signs, and the literature's tests of their square.

Release. Rows of ±1 are tested by T = ‖S‖² - nd, n being public.

* *lipschitz*: T + Lap(4(n - 1)d/epsilon). Replacing a row x by x' moves T by 2⟨R, x' - x⟩, R being
  the sum of the others, hence by at most 4(n - 1)d. It is the McShane extension of algorithms 9.3.1
  and 9.3.2 wherever their set holds every table, which it does below n = 3e6 at d = 100.
* *efficient*: algorithm 9.3.3 in its corrected form at (epsilon/4, delta/14): stop at a large
  coordinate, replace the rows that lean too far on the noisy sum by fair coins, and release T of
  what is left.

A Gaussian with a known covariance is brought to signs by whitening: where Σ = LLᵀ, the signs of
L⁻¹(x - centre) are fair coins under the null, and under a mean that is off by u (in whitened
units, so that ‖u‖ is the Mahalanobis distance) their expectation is erf(u/√2).

Source. Canonne, Kamath, McMillan, Ullman and Zakynthinou, "Private identity testing for
high-dimensional distributions", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference._inputs import Floats, Target, target
from dither.inference._release import Noise, Released, fixed_noise, seen_at_best
from dither.inference._simulation import batches
from dither.mechanisms import DiscreteLaplace, Gaussian, Laplace
from dither.mechanisms._composable import approximate_class
from dither.noise import below
from dither.numeric import sqrt_upper
from dither.privacy import Loss

__all__ = [
    "BATCH",
    "EfficientRelease",
    "SquareRelease",
    "lengths_of_signs",
    "signs",
    "square_of",
]

Signs = npt.NDArray[np.int8]

BATCH = 1 << 21
"""Simulated numbers that are held at once."""


@dataclass(frozen=True)
class SquareRelease:
    """Layer 1: T = ‖S‖² - nd of rows of ±1, with noise for its largest change 4(n - 1)d.

    Parameters
    ----------
    rows, dimension : int
        Both public.
    asked : Target
        Of neighbours that replace a row.
    """

    rows: int
    dimension: int
    asked: Target
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        moved = Fraction(4 * max(1, self.rows - 1) * self.dimension)
        noise, loss = fixed_noise(asked=self.asked, dimension=1, l1=moved)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    def statistic(self, rows: Signs) -> tuple[Fraction]:
        """T, exactly. What is missing counts as no sign."""
        return (Fraction(square_of(rows) - self.rows * self.dimension),)

    def release(self, rows: Signs) -> Released:
        """T with noise: the one step that touches data."""
        return Released(self.noise.release(self.statistic(rows)), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that turns from with the others to against them."""
        rows = np.ones((5, 3), dtype=np.int8)
        turned = rows.copy()
        turned[0] = -1
        design = cls(5, 3, target(1, 0, "replace"))
        yield Subject("identity by squares", seen_at_best(design, rows, turned), rows, turned)


@dataclass(frozen=True)
class EfficientRelease:
    """Layer 1: algorithm 9.3.3 in its corrected form, each part at (epsilon/4, delta/14).

    Parameters
    ----------
    rows, dimension : int
        Both public.
    asked : Target
        Of neighbours that replace a row, with a delta above 0.

    Attributes
    ----------
    steepest : float
        The largest coordinate that goes on.
    leaning : float
        How far a row may lean on the noisy sum.
    scale : float
        Of the noise of T.
    """

    rows: int
    dimension: int
    asked: Target
    steepest: float = field(init=False)
    leaning: float = field(init=False)
    scale: float = field(init=False)
    loss: Loss = field(init=False)

    parts: ClassVar[tuple[int, int]] = (4, 14)

    def __post_init__(self) -> None:
        if self.asked.delta <= 0 or not self.asked.replace:
            raise ArgumentError(
                "method 'efficient' needs delta above 0 and neighbours 'replace'; "
                "method 'norm' needs neither"
            )
        n, d, part = max(2, self.rows), self.dimension, self.part
        e, log = float(part.epsilon), math.log
        # ln(1/delta) as a difference of exact integers' logarithms: delta may be below doubles.
        small = log(part.delta.denominator) - log(part.delta.numerator)
        per_row, per_axis = log(n) + small, log(d) + small
        bound = 16.0 * (
            d * per_axis
            + d / (n * e * e) * small**2
            + math.sqrt(n * d * per_axis * per_row)
            + math.sqrt(d) / e * small * math.sqrt(per_row)
        )
        reach = d / e * math.sqrt((log(1.25) + small) * per_row)
        found = {
            "steepest": math.sqrt(2.0 * n * per_axis) + 2.0 / e * small,
            "leaning": bound + 4.0 * reach,
            "scale": (4.0 * bound + 48.0 * reach) / e * (1 + 1e-12),  # rounded up
            "loss": approximate_class(self.asked.epsilon, self.asked.delta, self.asked.neighbours),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def part(self) -> Target:
        """What each of its steps may cost."""
        epsilon, delta = self.parts
        asked = self.asked
        return Target(asked.epsilon / epsilon, asked.delta / delta, asked.neighbours)

    @property
    def many(self) -> float:
        """The noisy number of replaced rows at which it stops."""
        part = self.part
        return (math.log(part.delta.denominator) - math.log(part.delta.numerator)) / float(
            part.epsilon
        )

    def release(self, rows: Signs) -> float:
        """T of what is left with noise, or infinity where it stopped."""
        part = self.part
        total = rows.sum(axis=0, dtype=np.int64)
        top = Laplace.for_loss(part.epsilon, l1=2)
        (highest,) = top.release((int(np.abs(total).max(initial=0)),))
        if highest > self.steepest:
            return math.inf
        blur = Gaussian.for_loss(
            part.epsilon,
            part.delta,
            l2=sqrt_upper(Fraction(4 * self.dimension)),
            dimension=self.dimension,
        )
        centre = np.array([float(v) for v in blur.release(tuple(int(v) for v in total))])
        # Coordinate by coordinate, so that what one row gives never depends on how many there are.
        lean = np.zeros(len(rows))
        for j, value in enumerate(centre):
            lean += rows[:, j] * value
        far = np.abs(lean) > self.leaning
        counted = DiscreteLaplace.for_loss(part.epsilon, l1=1)
        if int(far.sum()) + int(counted.draw(1)[0]) > self.many:
            return math.inf
        kept = rows.astype(np.int64)
        coins = 2 * np.asarray(below(2, int(far.sum()) * self.dimension), dtype=np.int64) - 1
        kept[far] = coins.reshape(-1, self.dimension)
        last = Laplace.for_loss(part.epsilon, l1=Fraction(self.scale) * part.epsilon)
        square = sum(int(v) ** 2 for v in kept.sum(axis=0))
        return float(last.release((square - self.rows * self.dimension,))[0])

    def simulate(self, rng: np.random.Generator, totals: Floats) -> Floats:
        """What it would release of so many sums, in which no row leans too far."""
        size, e = len(totals), float(self.part.epsilon)
        stopped = np.abs(totals).max(axis=1) + rng.laplace(0, 2 / e, size) > self.steepest
        stopped |= rng.laplace(0, 1 / e, size) > self.many
        found = (totals**2).sum(axis=1) - self.rows * self.dimension
        return np.where(stopped, np.inf, found + rng.laplace(0, self.scale, size))


def signs(rows: Floats, covariance: Any = None, centre: Any = None) -> Signs:
    """Rows as ±1, and 0 for what is missing: by whitening where a covariance is given.

    Parameters
    ----------
    rows : array of float, shape (n, d)
    covariance : array of float, shape (d, d), optional
    centre : array of float, shape (d,), optional

    Examples
    --------
    >>> signs(np.array([[2.0, -1.0], [float("nan"), 3.0]])).tolist()
    [[1, -1], [0, 1]]
    """
    d = rows.shape[1]
    if centre is not None:
        middle = np.asarray(centre, dtype=float)
        if middle.shape != (d,) or not np.isfinite(middle).all():
            raise ArgumentError("centre must be one finite number for each column of rows")
        rows = rows - middle
    if covariance is not None:
        rows = _whitened(rows, covariance)
    return np.where(np.isnan(rows), 0, np.where(rows >= 0, 1, -1)).astype(np.int8)


def _whitened(rows: Floats, covariance: Any) -> Floats:
    d = rows.shape[1]
    try:
        given = np.asarray(covariance, dtype=float)
        if given.shape != (d, d) or not np.allclose(given, given.T):
            raise ValueError
        back = np.linalg.inv(np.linalg.cholesky(given))
    except (TypeError, ValueError, np.linalg.LinAlgError):
        raise ArgumentError(
            "covariance must be a symmetric, positive definite matrix with a row and a column "
            "for each column of rows"
        ) from None
    found = np.zeros_like(rows)
    with np.errstate(over="ignore", invalid="ignore"):
        # Elementwise: a matrix product may round one row by how many others there are.
        for j in range(d):
            for k in range(j + 1):
                found[:, j] += rows[:, k] * back[j, k]
    return found


def lengths_of_signs(
    rng: np.random.Generator, rows: int, chances: Floats, size: int
) -> Iterator[Floats]:
    """Simulated sums of rows of ±1, in batches of shape (some, d), ``size`` altogether.

    Parameters
    ----------
    rng : numpy.random.Generator
    rows : int
    chances : array of float, shape (d,)
        Of a +1.
    size : int
    """
    each = max(1, BATCH // max(1, chances.size))
    for some in batches(size, each, "simulations"):
        sums = 2.0 * rng.binomial(rows, chances, (some, chances.size)) - rows
        yield np.asarray(sums, dtype=np.float64)


def square_of(rows: Signs) -> int:
    """‖S‖² of the sum S of rows, exactly."""
    return sum(int(v) ** 2 for v in rows.sum(axis=0, dtype=np.int64))
