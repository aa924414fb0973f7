"""From released sums of a table to results: the models of this package over noise of their own.

A question of a table releases, for each group, a count and sums over its people of

    t,   t² - 1/2,   #{x < lower},   #{x > upper},

t being a value in half-ranges from the middle of its bounds (of a person with several rows, the
average of theirs), each with integer noise of its own, Laplace or Gaussian as the plan chose.
`FreeMeans` takes the sums as they are. `MeanModel`, for normal values, wants sums whose noise has
one deviation, which it has once each is multiplied by a weight; so k and c are read off the noise
instead of the noise off them.

Nothing here may fail, whatever the released numbers are: they are paid for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from dither.inference.engine._errors import Errors, SimulatedErrors, monte_carlo
from dither.inference.engine._inputs import Bounds, Floats
from dither.inference.engine._simulation import SimulatedDraws
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._mean import Shape, of_clamped, of_normal
from dither.inference.estimates._normal_mean import MeanModel
from dither.inference.estimates._proportion import KnownRows, MeasuredRows, as_measured, binomial
from dither.inference.hypothesis._contingency import independent, pearson
from dither.mechanisms import AdditiveNoise, DiscreteLaplace
from dither.query.tables._statistics import SumNoise

__all__ = ["CountNoise", "GroupMean", "drawn", "known_share", "measured_share", "table_test"]

_WIDE = 200.0
"""Deviations of integer noise from which its lattice no longer matters to a simulation."""


def drawn(law: SumNoise, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
    """Simulated noise of a sum; none where it is public.

    Examples
    --------
    >>> law = SumNoise(DiscreteLaplace(Fraction(3)), 0.5)
    >>> noise = drawn(law, SimulatedDraws.of(1), 4000)
    >>> bool(abs(noise.std() / law.deviation - 1) < 0.1), set((2 * noise) % 1) == {0.0}
    (True, True)
    """
    noise = law.noise
    if noise is None:
        return np.zeros(shape)
    deviation = noise.variance**0.5
    if isinstance(noise, DiscreteLaplace):
        if deviation > _WIDE:
            return np.asarray(rng.laplace(0.0, float(noise.scale) * law.step, shape))
        stop = -math.expm1(-1.0 / float(noise.scale))
        return np.asarray(law.step * (rng.geometric(stop, shape) - rng.geometric(stop, shape)))
    if deviation > _WIDE:
        return np.asarray(rng.normal(0.0, deviation * law.step, shape))
    # Simulated noise: what lies beyond is seen once in a thousand million draws.
    reach = noise.half_width(1 - 1e-9)
    tails = np.array([noise.survival(k) for k in range(-reach, reach + 2)])
    chances = np.maximum(tails[:-1] - tails[1:], 0.0)
    places = rng.choice(chances.size, shape, p=chances / chances.sum())
    return np.asarray(law.step * (places - float(reach)))


# --- means ------------------------------------------------------------------------------------


def _spread(law: SumNoise) -> float:
    """The deviation of a noise, above 0 even where epsilon leaves next to none."""
    return max(law.deviation, 1e-9)


@dataclass(frozen=True)
class _Noises:
    """Noise of (Σ t, k·Σ (t² - 1/2), c·below, c·above, c·n): one deviation, laws of their own."""

    laws: tuple[SumNoise, ...]
    weights: tuple[float, ...]

    @property
    def deviation(self) -> float:
        return _spread(self.laws[0])

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """A column a sum; a flat shape is of the second one's noise."""
        if isinstance(shape, int):
            return self.weights[1] * drawn(self.laws[1], rng, shape)
        rows = shape[0]
        columns = [
            w * drawn(law, rng, rows) for w, law in zip(self.weights, self.laws, strict=True)
        ]
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class _Design:
    bounds: Bounds
    noise: Any
    square: Fraction
    count: Fraction


class _Model(MeanModel):
    """`MeanModel` over sums each of which has a noise of its own."""

    @property
    def _noise(self) -> Any:
        return self.design.noise


@dataclass(frozen=True, eq=False)
class GroupMean:
    """The mean of one group, from its sums.

    Parameters
    ----------
    sums : mapping of str to float
        "n", "total", "square" and, where values are taken as normal, "below" and "above", in
        half-ranges.
    laws : mapping of str to Law
    ends : (Fraction, Fraction)
        The bounds.
    shape : {"any", "normal"}
    """

    sums: Mapping[str, float]
    laws: Mapping[str, SumNoise]
    ends: tuple[Fraction, Fraction]
    shape: Shape

    @cached_property
    def bounds(self) -> Bounds:
        """The bounds."""
        return Bounds(*self.ends)

    @cached_property
    def normal(self) -> MeanModel | None:
        """The model of normal values, where they are taken as that."""
        if self.shape != "normal":
            return None
        laws, sums = self.laws, self.sums
        total, square = _spread(laws["total"]), _spread(laws["total"]) / _spread(laws["square"])
        count = total / _spread(laws["below"])
        names = ("total", "square", "below", "above", "n")
        noise = _Noises(tuple(laws[name] for name in names), (1.0, square, count, count, count))
        design = _Design(self.bounds, noise, Fraction(square), Fraction(count))
        released = [sums["total"], square * sums["square"]]
        released += [count * sums["below"], count * sums["above"]]
        public = laws["n"].noise is None
        if not public:
            released.append(count * sums["n"])
        rows = max(1, round(sums["n"])) if public else None
        return _Model(design, np.array(released), rows)

    @cached_property
    def free(self) -> FreeMeans:
        """The model of values of whatever law."""
        n, total, square = (self.sums[name] for name in ("n", "total", "square"))
        return FreeMeans(np.array([[n, total, square + n / 2]]), self._noise)

    def _noise(self, rng: np.random.Generator, size: int) -> Floats:
        laws = [self.laws[name] for name in ("n", "total", "square")]
        counted, first, second = (drawn(law, rng, size) for law in laws)
        return np.stack([counted, first, second + counted / 2], axis=1)[:, None]

    @property
    def n(self) -> float:
        """People, at least 1, as far as it is known."""
        return float(self.free.n[0])

    @property
    def at(self) -> float:
        """The estimate."""
        if self.normal is not None:
            return self.normal.at
        bounds = self.bounds
        return float(self.free.clipped[0]) * float(bounds.half) + float(bounds.middle)

    @property
    def noise_of_mean(self) -> float:
        """The deviation of the noise in the mean, in half-ranges."""
        if self.normal is not None:
            return self.normal.noise_of_mean
        return float(self.free.noise_of_means[0])

    @property
    def read(self) -> str:
        """What is assumed of values."""
        return of_clamped(self.bounds) if self.normal is None else of_normal(self.normal)

    def errors(self, rng: np.random.Generator, size: int) -> SimulatedErrors:
        """Simulated errors of the mean."""
        if self.normal is not None:
            return self.normal.errors(rng, size)
        return self.free.errors(rng, size, self.bounds)


# --- proportions ------------------------------------------------------------------------------


@dataclass(frozen=True)
class CountNoise:
    """Integer noise of a count, as the models of proportions want it."""

    law: AdditiveNoise

    @property
    def variance(self) -> float:
        """Of the noise."""
        return self.law.variance

    def at_least(self, gap: Floats) -> Floats:
        """Pr[N >= gap], of whole numbers."""
        return np.array([self.law.survival(int(g)) for g in gap])

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Simulated noise."""
        return drawn(SumNoise(self.law, 1.0), rng, shape)


class _KnownShare(KnownRows):
    """Tests that count the whole probability of what was released, on either side."""

    def _one_sided(self, p: float, *, above: bool) -> float:
        x, law = binomial(self.n, p)
        gap = np.round(self.yes) - x
        tail = self.noise.at_least(gap) if above else 1.0 - self.noise.at_least(gap + 1)  # type: ignore[attr-defined]
        return float(min(1.0, np.sum(law * tail)))


def known_share(law: SumNoise, yes: float, n: int) -> KnownRows:
    """A share of n people, n being public, whose number of yes was released."""
    assert law.noise is not None
    return _KnownShare(CountNoise(law.noise), yes, n)  # type: ignore[arg-type]


def measured_share(
    law: SumNoise, yes: float, no: float
) -> tuple[MeasuredRows, Callable[[np.random.Generator, int], Errors]]:
    """A share from noisy numbers of yes and of no, and its simulated errors."""
    assert law.noise is not None
    noise: Any = CountNoise(law.noise)

    start = MeasuredRows(noise, yes, no, np.zeros((0, 2)))
    return start, partial(as_measured, noise, (yes, no))


# --- tables -----------------------------------------------------------------------------------


def tables_drawn(
    law: SumNoise, chances: Floats, rows: int, size: int, rng: np.random.Generator
) -> Floats:
    """Simulated noisy tables of so many people, shape (size, *shape)."""
    flat = chances.ravel() / chances.sum()
    found = rng.multinomial(rows, flat, size).astype(float)
    return (found + drawn(law, rng, (size, flat.size))).reshape(size, *chances.shape)


def table_test(
    table: Floats, law: SumNoise, chances: Floats | None, draws: int
) -> tuple[float, float, Floats]:
    """Statistic, p-value and the statistics of the null; fitted margins where no null is given."""
    statistic = pearson(chances)
    null = independent(table) if chances is None else chances
    rows = max(0, round(float(table.sum())))
    rng = SimulatedDraws.of_released(table)
    simulated = statistic(tables_drawn(law, null, rows, draws, rng))
    found = float(statistic(table[None])[0])
    return found, monte_carlo(found, simulated), simulated


def smallest_effect(
    law: SumNoise, shape: Sequence[int], chances: Floats | None, rows: int, draws: int = 1000
) -> float:
    """Cohen's w that a test at 0.05 sees four times in five, by simulation; inf where none is."""
    statistic, rng = pearson(chances), SimulatedDraws.of(None)
    null = np.full(shape, 1.0 / math.prod(shape)) if chances is None else chances
    cut = np.quantile(statistic(tables_drawn(law, null, rows, draws, rng)), 0.95)
    away = _contrast(null) if chances is not None else np.outer(*map(_even_contrast, shape))
    low, high = 0.0, float(min(1.0, 1.0 / np.abs(away).max()))

    def seen(w: float) -> bool:
        tables = tables_drawn(law, null * np.maximum(1.0 + w * away, 0.0), rows, draws, rng)
        return float(np.mean(statistic(tables) > cut)) >= 0.8

    if not seen(high):
        return math.inf
    for _ in range(7):
        middle = (low + high) / 2.0
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high


def _contrast(chances: Floats) -> Floats:
    """Signs that alternate, with mean 0 and mean square 1 under the chances."""
    signs = np.where(np.arange(chances.size) % 2, -1.0, 1.0)
    signs = signs - float(signs @ chances)
    return np.asarray(signs / math.sqrt(float(signs**2 @ chances)))


def _even_contrast(levels: int) -> Floats:
    return _contrast(np.full(levels, 1.0 / levels))
