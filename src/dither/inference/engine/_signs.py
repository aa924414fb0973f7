"""Rows of ±1: Gaussian rows as signs, sums of signs, and the literature's tests of their square.

Release. Rows of ±1 are tested by T = ‖S‖² - nd, n being public.

* *lipschitz*: an extension of T from the tables whose sums are at most c in every coordinate, in
  the form of McShane that can be computed for every table. With ‖S - S'‖₁, of which a row moves at
  most 2d, as the distance of tables, T is 2c-Lipschitz there, and its extension

      min over |S'_j| <= c of ‖S'‖² + 2c·‖S - S'‖₁ - nd  =  Σ_j h(S_j) - nd,

  h(s) = s² up to c and 2c|s| - c² beyond, is so on all tables: it leaves with noise for 4cd. c is
  √(2n·ln(20d)), which fair coins rarely pass; where that is n or more, T itself leaves with noise
  for 4(n - 1)d: replacing a row x by x' moves T by 2⟨R, x' - x⟩, R being the sum of the others. The
  algorithms 9.3.1 and 9.3.2 extend T from rows that lean little on S, which nobody can compute.
* *efficient*: `dither.inference.hypothesis._efficient`.

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
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Floats, Target, target
from dither.inference.engine._release import Noise, NoisyStatistic, fixed_noise, seen_at_best
from dither.inference.engine._simulation import batches
from dither.privacy import Loss

__all__ = [
    "BATCH",
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
    """Layer 1: T = ‖S‖² - nd of rows of ±1, extended from sums of at most a cap.

    Parameters
    ----------
    rows, dimension : int
        Both public.
    asked : Target
        Of neighbours that replace a row.
    cap : int, optional
        c; by default what fair coins rarely pass, and none (0) where that is n or more.
    """

    rows: int
    dimension: int
    asked: Target
    cap: int | None = None
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        cap = self.cap
        if cap is None:
            # By Hoeffding all d sums of fair coins stay within it but for a chance of a tenth.
            cap = math.ceil(math.sqrt(2 * self.rows * math.log(20 * self.dimension)))
        if cap >= self.rows:
            cap = 0
        # What is missing, a 0, moves a square by 2(n - 1) + 1 at most, and so by no more than a
        # sign does.
        furthest = cap or max(1, self.rows - 1)
        noise, loss = fixed_noise(
            asked=self.asked, dimension=1, l1=Fraction(4 * furthest * self.dimension)
        )
        for name, value in (("cap", cap), ("noise", noise), ("loss", loss)):
            object.__setattr__(self, name, value)

    def extended(self, sums: Floats) -> Floats:
        """The statistic of simulated sums, shape (size, d)."""
        high = np.abs(sums)
        cap = float(self.cap or self.rows)
        each = np.where(high <= cap, high**2, 2 * cap * high - cap**2)
        return np.asarray(each.sum(axis=1) - self.rows * self.dimension)

    def statistic(self, rows: Signs) -> tuple[Fraction]:
        """The statistic, exactly. What is missing counts as no sign."""
        cap = self.cap or self.rows
        # As Python's integers: the square of a sum of many rows may not fit 64 bits.
        high = [abs(int(v)) for v in rows.sum(axis=0, dtype=np.int64)]
        each = (v * v if v <= cap else 2 * cap * v - cap * cap for v in high)
        return (Fraction(sum(each) - self.rows * self.dimension),)

    def release(self, rows: Signs) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(rows)), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that turns from with the others to against them."""
        rows = np.ones((5, 3), dtype=np.int8)
        turned = rows.copy()
        turned[0] = -1
        for cap, name in ((None, "identity by squares"), (2, "identity by squares, extended")):
            design = cls(5, 3, target(1, 0, "replace"), cap)
            yield Subject(name, seen_at_best(design, rows, turned), rows, turned)


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
        # What numpy says of a difference beyond doubles would tell of a row.
        with np.errstate(over="ignore", invalid="ignore"):
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
