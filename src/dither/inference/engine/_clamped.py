"""Normal values that are clamped to [-1, 1]: their moments, and sums of many of them.

A value t = clamp(μ + σ·Z) has, with α, β the ends in standard units, mass Φ(α) on the lower end,
1 - Φ(β) on the upper one, and between them the moments

    M_0 = Φ(β) - Φ(α),   M_1 = φ(α) - φ(β),   M_k = α^(k-1)·φ(α) - β^(k-1)·φ(β) + (k - 1)·M_(k-2)

of Z (integration by parts). An end that is not cut lies at infinity.

Sums of n values: row by row where n is small; else the numbers on the two ends are multinomial, and
what lies between them is a sum of many independent values, drawn as normal with its exact mean and
covariance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.inference.engine._inputs import Floats
from dither.inference.engine._simulation import batches

__all__ = ["ClampedNormal", "deviations_of", "sums_of"]

_ROWS = 500
"""Numbers of rows below which rows are simulated one by one."""

_AT_ONCE = 1 << 20

_RARE = 1e-7
"""A share between the ends whose moments doubles would no longer give."""


@dataclass(frozen=True, slots=True)
class ClampedNormal:
    """The law of one value, in half-ranges from the middle of its bounds.

    Parameters
    ----------
    mean, deviation : float
        Of the normal population; the deviation above 0.
    cut : (bool, bool)
        Whether values below -1, and above 1, are clamped; else nothing is cut at that end.

    Examples
    --------
    >>> law = ClampedNormal(0.5, 0.5, (True, True))
    >>> [round(m, 6) for m in law.moments(2)], [round(p, 6) for p in law.outside]
    ([0.458533, 0.397417], [0.00135, 0.158655])
    """

    mean: float
    deviation: float
    cut: tuple[bool, bool] = (True, True)

    @property
    def outside(self) -> tuple[float, float]:
        """The shares below -1 and above 1, clamped or not."""
        return (
            _upper((1.0 + self.mean) / self.deviation),
            _upper((1.0 - self.mean) / self.deviation),
        )

    def moments(self, most: int) -> list[float]:
        """E t, E t², ... of the clamped value."""
        low, high = self._masses()
        inner = self._inside(most)
        return [inner[k] + low * (-1.0) ** k + high for k in range(1, most + 1)]

    def _masses(self) -> tuple[float, float]:
        low, high = self.outside
        return (low if self.cut[0] else 0.0), (high if self.cut[1] else 0.0)

    def _inside(self, most: int) -> list[float]:
        """E t^k where t lies between the ends, k from 0."""
        a = (-1.0 - self.mean) / self.deviation if self.cut[0] else -math.inf
        b = (1.0 - self.mean) / self.deviation if self.cut[1] else math.inf
        low, high = self._masses()
        standard = [1.0 - low - high, _edge(a, 0) - _edge(b, 0)]
        for k in range(2, most + 1):
            standard.append(_edge(a, k - 1) - _edge(b, k - 1) + (k - 1) * standard[k - 2])
        m, s = self.mean, self.deviation
        return [
            sum(math.comb(k, j) * m ** (k - j) * s**j * standard[j] for j in range(k + 1))
            for k in range(most + 1)
        ]

    def sums(self, n: int, size: int, rng: np.random.Generator) -> Floats:
        """Simulated (Σ t, Σ t², number below, number above) of n values, shape (size, 4)."""
        draw = self._rows if n < _ROWS else self._many
        at_once = max(1, _AT_ONCE // max(1, min(n, _ROWS)))
        parts = [draw(n, now, rng) for now in batches(size, at_once, "simulated tables")]
        return np.concatenate(parts)

    def _rows(self, n: int, size: int, rng: np.random.Generator) -> Floats:
        values = rng.standard_normal((size, n)) * self.deviation + self.mean
        below, above = (values < -1.0).sum(1), (values > 1.0).sum(1)
        if any(self.cut):
            low, high = (-1.0 if self.cut[0] else None), (1.0 if self.cut[1] else None)
            values = np.clip(values, low, high)
        return np.stack(
            [values.sum(1), np.einsum("ij,ij->i", values, values), below, above], axis=1
        )

    def _many(self, n: int, size: int, rng: np.random.Generator) -> Floats:
        low, high = self.outside
        counts = rng.multinomial(n, [low, high, max(0.0, 1.0 - low - high)], size).astype(float)
        below, above = counts[:, 0], counts[:, 1]
        held_low = below if self.cut[0] else np.zeros(size)
        held_high = above if self.cut[1] else np.zeros(size)
        between = n - held_low - held_high
        total = self._inside(4)
        # Next to nothing between the ends lies next to one of them.
        end = math.copysign(1.0, self.mean)
        rare = total[0] < _RARE
        first, second, third, fourth = (
            (end, 1.0, end, 1.0) if rare else tuple(m / total[0] for m in total[1:])
        )
        spread = np.array(
            [
                [second - first**2, third - first * second],
                [third - first * second, fourth - second**2],
            ]
        )
        normal = rng.standard_normal((size, 2)) @ _root(spread).T
        inner = between[:, None] * [first, second] + np.sqrt(between)[:, None] * normal
        ends = np.stack([held_high - held_low, held_high + held_low], axis=1)
        return np.concatenate([inner + ends, counts[:, :2]], axis=1)


_DEVIATIONS = np.geomspace(0.01, 4.0, 64)
"""Half-ranges: where moments are tabulated."""


def deviations_of(mean: float, variances: Floats) -> Floats:
    """The deviations with which values of this mean have these variances once they are clamped.

    Examples
    --------
    >>> law = ClampedNormal(0.2, 0.5)
    >>> variance = law.moments(2)[1] - law.moments(1)[0] ** 2
    >>> deviations_of(0.2, np.array([variance])).round(3)
    array([0.5])
    """
    moments = [ClampedNormal(mean, float(d)).moments(2) for d in _DEVIATIONS]
    # Rising, as interpolation needs it, whatever roundings are.
    found = np.maximum.accumulate([second - first**2 for first, second in moments])
    return np.asarray(np.exp(np.interp(variances, found, np.log(_DEVIATIONS))))


def sums_of(
    mean: float, deviations: Floats, sizes: npt.NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Simulated (Σ t, Σ t²), each of its own number of values with its own deviation.

    Parameters
    ----------
    mean : float
    deviations, sizes : array, shape (size,)
    rng : numpy.random.Generator

    Returns
    -------
    array of float, shape (size, 2)
    """
    most = int(sizes.max(initial=1))
    if most < _ROWS:
        parts, start = [], 0
        for some in batches(sizes.size, max(1, _AT_ONCE // most), "simulated tables"):
            held = slice(start, start + some)
            values = rng.standard_normal((some, most)) * deviations[held, None] + mean
            values = np.clip(values, -1.0, 1.0) * (np.arange(most) < sizes[held, None])
            parts.append(np.stack([values.sum(1), np.einsum("ij,ij->i", values, values)], axis=1))
            start += some
        return np.concatenate(parts)
    # Sums of many are normal, with the moments that values of each deviation have.
    some_deviations = np.linspace(float(deviations.min()), float(deviations.max()), 33)
    table = np.array([ClampedNormal(mean, float(d)).moments(4) for d in some_deviations])
    m = [np.interp(deviations, some_deviations, table[:, k]) for k in range(4)]
    first, cross, second = m[1] - m[0] ** 2, m[2] - m[0] * m[1], m[3] - m[1] ** 2
    z = rng.standard_normal((2, sizes.size))
    # Cholesky's factor of the covariance of both sums, of each draw its own.
    slope = cross / np.maximum(first, 1e-300)
    one = np.sqrt(np.maximum(first, 0.0)) * z[0]
    two = slope * one + np.sqrt(np.maximum(second - slope * cross, 0.0)) * z[1]
    root = np.sqrt(sizes)
    return np.stack([sizes * m[0] + root * one, sizes * m[1] + root * two], axis=1)


def _upper(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2.0))


def _edge(z: float, power: int) -> float:
    """z^power·φ(z), which is 0 at infinity."""
    # φ is below 1e-313 there, and at infinity the product would be NaN.
    if abs(z) > 38.0:
        return 0.0
    return z**power * math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


def _root(covariance: Floats) -> Floats:
    """A square root of a covariance that rounding may have made slightly indefinite."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
