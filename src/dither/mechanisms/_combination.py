"""How far a weighted sum of noises strays: half-widths of |Σ c_i·Z_i|, and intervals from them.

Everything here happens after the noise was added (post-processing), so floating point is fine. The
half-width q at a confidence is a number with Pr[|Σ c_i·Z_i| <= q] >= confidence:

* one term: |c| times the exact half-width of the discrete law;
* Gaussian terms together: one normal of variance Σ c_i²·σ_i². With at most one Laplace term, or two
  Laplace terms alone, the quantile of the continuous law in closed form, by table over the ratio of
  the two scales;
* anything else: the quantile of one Laplace plus one normal of the same variance, the Laplace
  holding the share f = (Σ_Laplace v_i^(3/2))^(2/3) / Σ v_i of the variances v_i, or the normal
  quantile if larger, plus half a percent.

Why the continuous laws may stand for the discrete ones. A discrete Gaussian has variance at most σ²
and lighter tails than its normal. A discrete Laplace Z plus an independent symmetric U in (-1, 1)
is exactly a Laplace variable of the same scale (write Z as a difference of geometrics and a
geometric as the floor of an exponential, whose fraction is independent of its floor). Adding U to a
symmetric unimodal sum only spreads it, and the sum is unimodal if the term of the largest scale is
continuous. So only that term's own steps remain, for which half a step is added to q. The third
rule is not a theorem: the tests hold it, and the others, against numerical inversion of
characteristic functions and against exact discrete sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._search import bisect_arrays
from dither._stats import two_sided
from dither.errors import ArgumentError
from dither.mechanisms._base import AdditiveNoise
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace

__all__ = [
    "Floats",
    "Noise",
    "SummedNoise",
    "Term",
    "continuous_deviation",
    "half_width",
    "laplace_normal_factor",
    "linear_interval",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SummedNoise:
    """A weighted sum of many independent draws of one noise.

    ``weights``: each weight, and how many draws it multiplies.
    """

    noise: AdditiveNoise
    weights: tuple[tuple[float, int], ...]

    def half_width(self, confidence: float) -> float:
        """A number q with Pr[|Z| <= q] >= confidence."""
        return float(half_width([(1.0, self)], confidence))


Noise = AdditiveNoise | SummedNoise
Term = tuple[npt.ArrayLike, Noise]
"""A coefficient (number or array) and the noise it multiplies."""

ONCE = ((1.0, 1),)
_MARGIN = 1.005
"""The half a percent of the third rule above."""
_POINTS = 1025
"""Of tables in which quantiles are interpolated. They are convex between 0 and 1, so that a chord
lies above them: no theorem either, and held by tests against many digits."""
_TAILS = 1e-10
"""What the tails below may err by of themselves. Their exponents are below 91, so that each part
errs by less than 2e-14; up to r = 1 - 1/1024 a difference is a thousandth of its parts, 4e-11 in
all. A quantile that is so much too large also holds what interpolating it rounds by."""


def half_width(terms: Sequence[Term], confidence: float) -> Floats:
    """A number q with Pr[|Σ c_i·Z_i| <= q] >= confidence, for each set of coefficients.

    Parameters
    ----------
    terms : sequence of (coefficient, noise)
        Independent noises; coefficients are numbers or arrays that broadcast together.
    confidence : float
        In (0, 1).

    Returns
    -------
    array of float
        Of the coefficients' common shape.

    Raises
    ------
    ArgumentError
        There are no terms, or the confidence is out of range.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = DiscreteLaplace(Fraction(10))
    >>> half_width([(1, noise)], 0.95), half_width([([1, 2], noise), (-1, noise)], 0.95).round(2)
    (array(30.), array([41.63, 66.48]))
    """
    confidence = check.confidence(confidence)
    if not terms:
        raise ArgumentError("terms must hold at least one coefficient with its noise")
    coefficients = np.broadcast_arrays(*(np.abs(np.asarray(c, dtype=float)) for c, _ in terms))
    noises = [noise for _, noise in terms]
    # One noise has its own law, which nothing has to stand for.
    if len(terms) == 1 and isinstance(noises[0], AdditiveNoise):
        return np.asarray(coefficients[0] * noises[0].half_width(confidence), dtype=float)
    normal_variance = np.zeros(coefficients[0].shape)
    laplaces: list[tuple[Floats, int]] = []
    largest = np.zeros(coefficients[0].shape)
    step = np.zeros(coefficients[0].shape)
    for c, summed in zip(coefficients, noises, strict=True):
        noise, weights = (
            (summed.noise, summed.weights) if isinstance(summed, SummedNoise) else (summed, ONCE)
        )
        deviation = continuous_deviation(noise)
        most = c * max(abs(weight) for weight, _ in weights)
        # Only the steps of the term of largest scale remain, as the module shows.
        step = np.where(most * deviation > largest, most, step)
        largest = np.maximum(largest, most * deviation)
        for weight, number in weights:
            spread = c * (abs(weight) * deviation)
            if isinstance(noise, DiscreteLaplace):
                laplaces.append((spread, number))
            else:
                normal_variance = normal_variance + number * spread**2
    return np.asarray(_continuous(laplaces, normal_variance, confidence) + step / 2)


def linear_interval(
    estimate: npt.ArrayLike, terms: Sequence[Term], confidence: float
) -> tuple[Floats, Floats]:
    """The interval for a linear combination of measurements.

    Parameters
    ----------
    estimate : array
        Σ c_i·(true_i + Z_i).
    terms : sequence of (coefficient, noise)
        The same combination of the noises.
    confidence : float
        In (0, 1).

    Returns
    -------
    lower, upper : arrays of float
        They hold Σ c_i·true_i with at least the given probability.

    Examples
    --------
    >>> from fractions import Fraction
    >>> linear_interval(100, [(2, DiscreteLaplace(Fraction(10)))], 0.95)
    (array(40.), array(160.))
    """
    centre = np.asarray(estimate, dtype=float)
    width = half_width(terms, confidence)
    return np.asarray(centre - width), np.asarray(centre + width)


def laplace_normal_factor(share: Floats, confidence: float) -> Floats:
    """Quantile of |X| for X of variance 1, a Laplace holding ``share`` of it and a normal the rest.

    Never below the normal quantile; with the margin of the third rule above.
    """
    # Coordinates as in _laplace_normal: deviations sqrt(share), sqrt(1 - share), scaled to sum 1.
    one, two = np.sqrt(share), np.sqrt(np.maximum(0.0, 1.0 - share))
    table = _laplace_normal_table(confidence)
    found = _look_up(table, two / (one + two)) * (one + two)
    return np.asarray(np.maximum(found, _normal(confidence)) * _MARGIN)


def _continuous(
    laplaces: list[tuple[Floats, int]], normal_variance: Floats, confidence: float
) -> Floats:
    """The quantile of |Laplaces + normal|, given standard deviations and a variance.

    Of Laplaces there is a number with each deviation.
    """
    deviation = np.sqrt(normal_variance)
    if not laplaces:
        return np.asarray(_normal(confidence) * deviation)
    number = sum(n for _, n in laplaces)
    if number == 1:
        total = laplaces[0][0] + deviation
        ratio = np.divide(deviation, total, out=np.zeros_like(total), where=total > 0)
        return np.asarray(_look_up(_laplace_normal_table(confidence), ratio) * total)
    if number == 2 and not normal_variance.any():
        one, other = laplaces[0][0], laplaces[-1][0]
        top = np.maximum(one, other)
        ratio = np.divide(np.minimum(one, other), top, out=np.zeros_like(top), where=top > 0)
        return np.asarray(_look_up(_two_laplace_table(confidence), ratio) * top)
    variance = normal_variance + sum(n * s**2 for s, n in laplaces)
    cubes = np.asarray(sum(n * s**3 for s, n in laplaces))
    share = np.divide(cubes ** (2 / 3), variance, out=np.zeros_like(cubes), where=variance > 0)
    return laplace_normal_factor(np.minimum(share, 1.0), confidence) * np.sqrt(variance)


def continuous_deviation(noise: AdditiveNoise) -> float:
    """The standard deviation of the continuous law that stands for the noise."""
    if isinstance(noise, DiscreteLaplace):
        return math.sqrt(2) * float(noise.scale)
    if isinstance(noise, DiscreteGaussian):
        return math.sqrt(float(noise.sigma2))
    raise ArgumentError("terms must hold discrete Laplace or discrete Gaussian noise")


def _look_up(table: Floats, at: Floats) -> Floats:
    """Linear interpolation in a table over an even grid of [0, 1]."""
    place = at * (table.size - 1)
    # The last place is the end of the last cell, and no cell of its own.
    left = np.minimum(place.astype(np.intp), table.size - 2)
    return np.asarray(table[left] + (place - left) * np.diff(table)[left])


@lru_cache(maxsize=64)
def _two_laplace_table(confidence: float) -> Floats:
    """Quantiles of |X + Y|: Laplaces of deviation 1 and r, for r from 0 to 1."""
    # r = 1 is the limit of the closed form. A hair beyond keeps it finite and adds some 1e-7 of the
    # tail, more than the 1e-8 of it, at most, that a difference of nearly equal parts loses.
    a = np.full(_POINTS, math.sqrt(0.5))
    b = np.linspace(0.0, 1.0, _POINTS) * math.sqrt(0.5)
    b[-1] = a[-1] * (1 + 1e-6)

    def outside(t: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            small = np.where(b > 0, np.exp(-t / np.where(b > 0, b, 1.0)), 0.0)
        return np.asarray((a**2 * np.exp(-t / a) - b**2 * small) / (a**2 - b**2))

    return _solve(outside, 1 - confidence, _POINTS)


@lru_cache(maxsize=64)
def _laplace_normal_table(confidence: float) -> Floats:
    """Quantiles of |X + Y|: a Laplace of deviation 1 - u and a normal of deviation u."""
    u = np.linspace(0.0, 1.0, _POINTS)
    inner, sigma = u[1:-1], u[1:-1]
    a = (1 - inner) / math.sqrt(2)

    def outside(t: Floats) -> Floats:
        # Pr = erfc(t/σ√2) + (e^(σ²/2a² - t/a)·erfc(low) - e^(σ²/2a² + t/a)·erfc(high))/2 with
        # low, high = (σ/a ∓ t/σ)/√2; scaled erfc where the exponential would overflow.
        low, high = (sigma / a - t / sigma) / math.sqrt(2), (sigma / a + t / sigma) / math.sqrt(2)
        decay = np.exp(-((t / sigma) ** 2) / 2)
        exponent = np.minimum((sigma / a) ** 2 / 2 - t / a, 0.0)
        first = np.where(
            low > 0, decay * _erfcx(np.maximum(low, 0.0)), np.exp(exponent) * _erfc(low)
        )
        return np.asarray(_erfc(t / sigma / math.sqrt(2)) + (first - decay * _erfcx(high)) / 2)

    middle = _solve(outside, 1 - confidence, inner.size)
    laplace = (_TAILS - math.log(1 - confidence)) / math.sqrt(2)
    return np.concatenate(([laplace], middle, [_normal(confidence)]))


def _normal(confidence: float) -> float:
    """A number of at least the normal quantile, which errs by 1e-14 of itself."""
    return two_sided(confidence) * (1 + _TAILS)


def _solve(outside: Callable[[Floats], Floats], target: float, size: int) -> Floats:
    """Where a falling tail probability is surely below its target; the upper end is kept."""
    ends = np.zeros(size), np.full(size, 64.0)
    # The upper end, so that what is outside is surely less.
    return bisect_arrays(lambda t: outside(t) <= target * (1 - _TAILS), *ends)[1]


def _erfc(x: Floats) -> Floats:
    return np.asarray(_erfc_each(x), dtype=float)


def _erfcx(x: Floats) -> Floats:
    """exp(x²)·erfc(x) for x >= 0; Laplace's continued fraction from x = 5."""
    near = np.minimum(x, 5.0)
    far = np.maximum(x, 5.0)
    fraction = far
    for k in range(40, 0, -1):
        fraction = far + (k / 2) / fraction
    return np.where(x < 5, np.exp(near**2) * _erfc(near), 1 / (fraction * math.sqrt(math.pi)))


_erfc_each = np.frompyfunc(math.erfc, 1, 1)
