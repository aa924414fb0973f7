"""Layer 1, release: the only place that touches data. Exact statistics leave with exact noise.

A *statistic* is a vector of exact rationals q(x) = Σ f(row), with bounds l1 and l2² of how far one
row moves it in the L1 and the squared L2 norm, for the neighbours that are asked for. It leaves
once, with the noise that has the least variance: Laplace at l1 (pure), or Gaussian at l2 (where a
delta is allowed). Whatever is computed from it later is post-processing and costs nothing.

Guarantee. (epsilon, delta)-DP for those neighbours, exactly: that of `dither.mechanisms.Laplace`
and `Gaussian`, whose rounding to a lattice is charged. The loss is the mechanism's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dither._search import bisect
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.engine._simulation import SimulatedNoise
from dither.mechanisms import Gaussian, Laplace
from dither.mechanisms._reals import check_step, steps_l2_squared
from dither.numeric import sqrt_upper
from dither.privacy import Loss, Neighbours

__all__ = [
    "Design",
    "Noise",
    "NoisyStatistic",
    "best_noise",
    "exact_products",
    "exact_sum",
    "exact_sum_of_squares",
    "first_moments",
    "fixed_noise",
    "gaussian_is_better",
    "noise_of_either",
    "noise_of_rho",
    "release",
    "rows_of",
    "seen_at_best",
    "spread_of",
    "squared_lengths",
]

Noise = Laplace | Gaussian

_ROOT2 = math.sqrt(2.0)


@dataclass(frozen=True)
class NoisyStatistic:
    """A statistic with noise: what every later number is computed from.

    Parameters
    ----------
    exact : tuple of Fraction
        The released vector.
    noise : Laplace or Gaussian
        One draw a coordinate.
    loss : Loss
        What it cost.
    """

    exact: tuple[Fraction, ...]
    noise: Noise = field(repr=False)
    loss: Loss = field(repr=False)

    @property
    def values(self) -> Floats:
        """The released vector as doubles."""
        return np.array([float(v) for v in self.exact])

    @property
    def spread(self) -> SimulatedNoise:
        """The law of the noise, for simulation."""
        return spread_of(self.noise)


def spread_of(noise: Noise) -> SimulatedNoise:
    """The law of a noise of real answers, for simulation: its lattice is too fine to matter."""
    if isinstance(noise, Laplace):
        return SimulatedNoise("laplace", float(noise.scale))
    return SimulatedNoise("normal", noise.sigma)


def gaussian_is_better(asked: Target, *, l1: float, l2: float) -> bool:
    """Whether Gaussian noise at l2 has less variance than Laplace noise at l1, to a few per cent.

    Examples
    --------
    >>> from dither.inference.engine._inputs import target
    >>> [gaussian_is_better(target(1, 1e-6, "replace"), l1=d, l2=d**0.5) for d in (1, 100)]
    [False, True]
    """
    epsilon, delta = float(asked.epsilon), float(asked.delta)
    if delta <= 0:
        return False

    def lost(sigma: float) -> float:
        a, b = 0.5 / sigma - epsilon * sigma, -0.5 / sigma - epsilon * sigma
        second = math.erfc(-b / _ROOT2) / 2
        first = math.erfc(-a / _ROOT2) / 2
        return first - (math.exp(min(epsilon, 700.0)) * second if second > 0 else 0.0)

    # The exact delta of continuous Gaussian noise, in doubles: it chooses a noise and promises
    # nothing.
    sigma = bisect(lambda s: lost(s) <= delta, 1e-4, 1e4 / min(1.0, epsilon), steps=60)[1]
    return sigma * l2 < _ROOT2 * l1 / epsilon


def fixed_noise(
    *,
    asked: Target,
    dimension: int,
    l1: Fraction | None = None,
    l2_squared: Fraction | None = None,
) -> tuple[Noise, Loss]:
    """Laplace noise at l1, or Gaussian noise at the root of ``l2_squared``, and what it costs.

    Parameters
    ----------
    asked : Target
        What it may cost: Laplace spends epsilon and no delta.
    dimension : int
        How many coordinates the statistic has.
    l1, l2_squared : Fraction
        A bound of how far one row moves it: exactly one of them.

    Examples
    --------
    >>> from dither.inference.engine._inputs import target
    >>> noise, loss = fixed_noise(
    ...     asked=target(1, 1e-6, "replace"), dimension=2, l2_squared=Fraction(4))
    >>> round(noise.sigma, 3), loss.charge.epsilon, round(float(loss.charge.delta), 12)
    (8.449, Fraction(1, 1), 1e-06)
    """
    if l1 is not None:
        laplace = Laplace.for_loss(asked.epsilon, l1=l1, dimension=dimension)
        return laplace, laplace.loss(l1=l1, dimension=dimension, neighbours=asked.neighbours)
    if l2_squared is None or asked.delta <= 0:
        raise ArgumentError("delta must be above 0 here: this release has Gaussian noise")
    l2 = _root(l2_squared)
    # The root is rounded up: a larger sensitivity asks for more noise.
    gaussian = Gaussian.for_loss(asked.epsilon, asked.delta, l2=l2, dimension=dimension)
    return gaussian, gaussian.loss(
        l2=l2, dimension=dimension, epsilon=asked.epsilon, neighbours=asked.neighbours
    )


def noise_of_either(
    gaussian: bool, *, asked: Target, dimension: int, l1: Fraction, l2_squared: Fraction
) -> tuple[Noise, Loss]:
    """The noise that was chosen, of a statistic of which both norms are bounded: `fixed_noise`."""
    if gaussian:
        return fixed_noise(asked=asked, dimension=dimension, l2_squared=l2_squared)
    return fixed_noise(asked=asked, dimension=dimension, l1=l1)


def noise_of_rho(
    rho: Fraction, l2_squared: Fraction, *, dimension: int, neighbours: Neighbours
) -> tuple[Gaussian, Loss]:
    """Gaussian noise of a statistic that costs at most rho in zCDP, rounding included.

    Examples
    --------
    >>> noise, loss = noise_of_rho(
    ...     Fraction(1, 50), Fraction(4), dimension=2, neighbours=Neighbours.REPLACE)
    >>> loss.charge.rho <= Fraction(1, 50), round(noise.sigma, 4)
    (True, 10.0)
    """
    l2 = _root(l2_squared)
    step = check_step(None, l2, dimension)
    sigma2 = steps_l2_squared(l2, step, dimension) * step**2 / (2 * rho)
    # Short parameters draw faster; rounded up they cost less.
    noise = Gaussian(Fraction(math.ceil(sigma2 / step), 1) * step, step)
    return noise, noise.loss(l2=l2, dimension=dimension, neighbours=neighbours)


def best_noise(
    *, asked: Target, dimension: int, l1: Fraction, l2_squared: Fraction
) -> tuple[Noise, Loss]:
    """The one of the two that has less variance a coordinate; arguments as of `fixed_noise`.

    Examples
    --------
    >>> from dither.inference.engine._inputs import target
    >>> noise, loss = best_noise(
    ...     asked=target(1, 1e-6, "replace"), dimension=2, l1=Fraction(2), l2_squared=Fraction(4))
    >>> type(noise).__name__, loss.charge.epsilon, loss.charge.delta
    ('Laplace', Fraction(1, 1), Fraction(0, 1))
    """
    gaussian = gaussian_is_better(asked, l1=float(l1), l2=math.sqrt(l2_squared))
    return noise_of_either(gaussian, asked=asked, dimension=dimension, l1=l1, l2_squared=l2_squared)


def release(
    statistic: Sequence[Fraction], *, asked: Target, l1: Fraction, l2_squared: Fraction
) -> NoisyStatistic:
    """Release a statistic once, with the noise of less variance; arguments as of `best_noise`."""
    noise, loss = best_noise(asked=asked, dimension=len(statistic), l1=l1, l2_squared=l2_squared)
    return NoisyStatistic(noise.release(tuple(statistic)), noise, loss)


def rows_of(released: Floats, weight: Fraction, rows: int | None) -> float:
    """The public n, or the one that was measured, released last in units of a weight; at least 1.

    Examples
    --------
    >>> rows_of(np.array([0.3, 50.0]), Fraction(1, 2), None)
    100.0
    """
    return max(1.0, float(released[-1]) / float(weight) if rows is None else float(rows))


class Design(Protocol):
    """A release: an exact statistic of tables of some kind, and its noise."""

    @property
    def noise(self) -> Noise:
        """One draw a coordinate."""
        ...

    def statistic(self, values: Any, /) -> Sequence[Fraction]:
        """The exact vector."""
        ...


def seen_at_best(design: Design, first: Any, second: Any) -> Callable[[Any, int], Floats]:
    """A release as the best test of two tables sees it: one number a run, for audits.

    Parameters
    ----------
    design : Design
    first, second : table
        Neighbours.

    Returns
    -------
    callable
        Of a table and a ``size``: the log-likelihood ratio of the two, of so many releases.
    """
    a, b = (np.array([float(v) for v in design.statistic(x)]) for x in (first, second))
    law, step = spread_of(design.noise), float(design.noise.step)

    def run(values: Any, size: int) -> Floats:
        # On the lattice, as `release` puts them: what lies between its points would tell all.
        exact = np.array([step * round(v / design.noise.step) for v in design.statistic(values)])
        drawn = np.asarray(design.noise.draw((size, exact.size)), dtype=float)
        seen = exact + step * drawn
        if law.law == "normal":
            return np.asarray(seen @ (b - a))
        return np.asarray((np.abs(seen - a) - np.abs(seen - b)).sum(1))

    return run


def exact_sum(points: npt.NDArray[np.int64]) -> int:
    """Σ t of lattice points, exactly."""
    return sum(int(part.sum()) for part in _parts(points))


def exact_sum_of_squares(points: npt.NDArray[np.int64]) -> int:
    """Σ t² of lattice points, exactly: each part stays within 64 bits."""
    return sum(int(np.dot(part, part)) for part in _parts(points))


def first_moments(
    points: npt.NDArray[np.int64], steps: int, n: int, square: Fraction
) -> tuple[Fraction, Fraction]:
    """Σ t and square·Σ (t² - 1/2) over n rows; those that are known are at points/steps."""
    second = Fraction(exact_sum_of_squares(points), steps**2) - Fraction(n, 2)
    return Fraction(exact_sum(points), steps), square * second


def exact_products(points: npt.NDArray[np.int64]) -> list[list[int]]:
    """Σ t·tᵀ of rows of lattice points, exactly.

    Examples
    --------
    >>> exact_products(np.array([[1, 2], [3, -1]]))
    [[10, -1], [-1, 5]]
    """
    d = points.shape[1]
    total = [[0] * d for _ in range(d)]
    for part in _parts(points):
        # In halves of ten bits and what is above them: sums of their products are integers below
        # 2^53, exact in doubles however they are added.
        upper = part >> _HALF
        high, low = upper.astype(np.float64), (part - (upper << _HALF)).astype(np.float64)
        across = high.T @ low
        parts = (high.T @ high, across + across.T, low.T @ low)
        whole = [p.astype(np.int64).tolist() for p in parts]
        for i, row in enumerate(total):
            row[:] = [
                x + (a << (2 * _HALF)) + (b << _HALF) + c
                for x, a, b, c in zip(row, *(p[i] for p in whole), strict=True)
            ]
    return total


def squared_lengths(points: npt.NDArray[np.int64] | Floats) -> Floats:
    """‖t‖² of each row in doubles, column by column: what others hold does not change it."""
    found = np.zeros(len(points))
    for column in points.T:
        found = found + column.astype(np.float64) ** 2
    return found


def _parts(points: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    assert Bounds.steps**2 * _PART < 2**63
    return [points[i : i + _PART] for i in range(0, len(points), _PART)]


# 2^21 squares of at most 2^40 add up to 2^61, within 64 bits.
_PART = 1 << 21
_HALF = 10


def _root(square: Fraction) -> Fraction:
    """The root, rounded up; exact where it is rational."""
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    return root if root**2 == square else sqrt_upper(square)
