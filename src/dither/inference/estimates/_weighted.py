"""Survey weights with a declared bound: weighted means, shares and totals of noisy sums.

Release. With u = weight/W in [0, 1], W being the largest weight that is declared, t = (x -
middle)/half in [-1, 1], p = (1 + t)/2 and q = 1 - p, a row adds

    u·q,  u·p,    k·u²·q²,  k·2·u²·p·q,  k·u²·p²,    k = 1/2,

none of which is negative: from these A = Σ u, B = Σ u·t and the Σ of u², u²·t and u²·t².

Sensitivity. The first two add up to u, the others to k·u². A row that is added moves the vector by

    l1 = u + k·u² <= 1 + k,    l2² <= u²·(p² + q²) + k²·u⁴·(q⁴ + 4·p²·q² + p⁴) <= 1 + k²,

as p + q = 1. One that is replaced, weight and all, moves it by the difference of two such vectors:
l1 = 2·(1 + k), and l2² <= 2·(1 + k²), as their cross term is not positive. Weights beyond [0, W]
are moved there; nothing rests on what they are.

Infer. For the true ratio m, B - m·A = Σ u·(t - m) and noise, whose variance over samples is about
v = Σ u²·(t - m)² (of linearisation; the weights are as random as the values). So all tests of B
- m·A are inverted at once, as in `FreeMeans`, by draws of

    m* = (B - η* - √v*·T*)/(A - ν*),

T* of Student's law with Kish's effective number A²/Σ u² less 1 degrees of freedom, and v* of sums
from which fresh noise is taken, each brought where it may be.

A total is W·(upper·Σ u·p + lower·Σ u·q), linear in what was
released; its variance is that of Σ w·x over samples of n rows where n is public, and Σ (w·x)² where
people come and go.

Source. Kish, "Survey Sampling", 1965, for the effective number; Särndal, Swensson and Wretman,
"Model Assisted Survey Sampling", 1992, section 5.6, for ratios; Fieller 1954 as in `_free_means`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import number_text
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import SimulatedErrors
from dither.inference.engine._inputs import Bounds, Floats, Target, bounds_of, column, target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    gaussian_is_better,
    noise_of_either,
    seen_at_best,
    spread_of,
)
from dither.inference.engine._result import PrivateEstimate, too_few_rows
from dither.inference.engine._simulation import SimulatedDraws
from dither.inference.estimates._mean import of_clamped
from dither.privacy import Loss, Neighbours

__all__ = [
    "WeightedModel",
    "WeightedRelease",
    "weighted_mean",
    "weighted_proportion",
    "weighted_total",
]

_SQUARES = Fraction(1, 2)
_STEPS = 1 << 20

# Weights that stand for none at all: what is divided by it is cut at the bounds.
_NONE = 1e-9

_LEAST = 1e-4
"""Squared half-ranges: no variance is taken to be smaller, as in `FreeMeans`."""


@dataclass(frozen=True)
class WeightedRelease:
    """Layer 1: the five sums, their sensitivity and their noise.

    Parameters
    ----------
    bounds : Bounds
        Of values.
    most : Fraction
        The largest weight.
    asked : Target
    gaussian : bool, optional
        Which noise; by default the better one.
    """

    bounds: Bounds
    most: Fraction
    asked: Target
    gaussian: bool | None = None
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        times, k = (2 if self.asked.replace else 1), _SQUARES
        l1, l2_squared = times * (1 + k), times * (1 + k**2)
        gaussian = self.gaussian
        if gaussian is None:
            gaussian = gaussian_is_better(self.asked, l1=float(l1), l2=math.sqrt(l2_squared))
        noise, loss = noise_of_either(
            gaussian, asked=self.asked, dimension=5, l1=l1, l2_squared=l2_squared
        )
        for name, value in (("gaussian", gaussian), ("noise", noise), ("loss", loss)):
            object.__setattr__(self, name, value)

    def statistic(self, rows: tuple[Floats, Floats]) -> tuple[Fraction, ...]:
        """The exact vector of values and weights; rows in which one is missing are left out."""
        x, weights = rows
        known = ~(np.isnan(x) | np.isnan(weights))
        t = self.bounds.lattice(x[known])
        # A weight as a whole number of parts of the largest: those beyond are moved to the ends.
        u = (Bounds(Fraction(0), self.most).lattice(weights[known]) + Bounds.steps) >> 1
        sums = _sums(u, t)
        a, b, c, d, e = (
            Fraction(s, _STEPS ** (1 + (i > 1)) * Bounds.steps**j)
            for (i, j), s in zip(_DEGREES, sums, strict=True)
        )
        k = _SQUARES
        return (
            (a - b) / 2,
            (a + b) / 2,
            k * (c - 2 * d + e) / 4,
            k * (c - e) / 2,
            k * (c + 2 * d + e) / 4,
        )

    def release(self, rows: tuple[Floats, Floats]) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(rows)), self.noise, self.loss)

    def moments(self, released: Floats) -> Floats:
        """Σ u, Σ u·t, Σ u², Σ u²·t and Σ u²·t², shape (..., 5), of vectors of that shape."""
        return np.asarray(released @ _OF_SUMS.T)

    def drawn(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise of the moments, shape (size, 5)."""
        return self.moments(spread_of(self.noise).draw(rng, (size, 5)))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: the heaviest row at either bound, and added."""
        bounds, delta = bounds_of("bounds", (-1, 1)), Fraction(1, 100)
        low, high = (np.array([-9.0]), np.array([5.0])), (np.array([9.0]), np.array([5.0]))
        none = (np.zeros(0), np.zeros(0))
        design = cls(bounds, Fraction(2), target(1, 0, "replace"))
        yield Subject("weighted sums", seen_at_best(design, low, high), low, high)
        design = cls(bounds, Fraction(2), target(1, 0, "add-remove"))
        yield Subject("weighted sums of unknown n", seen_at_best(design, none, high), none, high)
        design = cls(bounds, Fraction(2), target(1, delta, "replace"), gaussian=True)
        seen = seen_at_best(design, low, high)
        yield Subject("weighted sums, Gaussian", seen, low, high, delta=delta)


_DEGREES = ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
"""Powers of u and of t in each sum."""

_OF_SUMS = np.array(
    [
        [1.0, 1.0, 0.0, 0.0, 0.0],
        [-1.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 2.0, 2.0, 2.0],
        [0.0, 0.0, -2.0, 0.0, 2.0],
        [0.0, 0.0, 2.0, -2.0, 2.0],
    ]
)
"""Divided by k = 1/2; (p + q)², (p + q)·(p - q) and (p - q)² in q², 2·p·q and p²."""


def _sums(u: npt.NDArray[np.int64], t: npt.NDArray[np.int64]) -> tuple[int, int, int, int, int]:
    """Σ u, Σ u·t, Σ u², Σ u²·t and Σ u²·t² of lattice points, exactly."""
    both = u * t
    high, low = both >> 20, both & (2**20 - 1)

    def whole(values: npt.NDArray[np.int64]) -> int:
        # 2^22 numbers of at most 2^40 add up to 2^62.
        return sum(int(values[i : i + (1 << 22)].sum()) for i in range(0, len(values), 1 << 22))

    across = (whole(u * high) << 20) + whole(u * low)
    square = (whole(high * high) << 40) + (whole(high * low) << 21) + whole(low * low)
    return whole(u), whole(both), whole(u * u), across, square


@dataclass(frozen=True, eq=False)
class WeightedModel:
    """Layers 2 and 3: a ratio or a total of noisy weighted sums.

    Parameters
    ----------
    sums : array of float, shape (5,)
        Σ u, Σ u·t, Σ u², Σ u²·t and Σ u²·t², as released.
    noise : callable
        Of a generator and a size, their noise, shape (size, 5).
    bounds : Bounds
    most : float
        The largest weight.
    """

    sums: Floats
    noise: Callable[[np.random.Generator, int], Floats]
    bounds: Bounds
    most: float

    @property
    def effective(self) -> float:
        """Kish's number of rows of one weight that would tell as much, at least 1."""
        a, c = max(float(self.sums[0]), _NONE), float(self.sums[2])
        # Weights are at most 1, so that Σ u² is at most Σ u.
        return max(1.0, a**2 / min(max(c, _NONE), a))

    @property
    def share(self) -> float:
        """The ratio, in half-ranges, within the bounds."""
        a, b = float(self.sums[0]), float(self.sums[1])
        if a <= 0:
            return 0.0
        return min(1.0, max(-1.0, b / a))

    @property
    def at(self) -> float:
        """The weighted mean."""
        return self.share * float(self.bounds.half) + float(self.bounds.middle)

    @property
    def total(self) -> float:
        """Σ weight·value."""
        half, middle = float(self.bounds.half), float(self.bounds.middle)
        return self.most * (half * float(self.sums[1]) + middle * float(self.sums[0]))

    def _possible(self, rng: np.random.Generator, size: int) -> Floats:
        """Sums from which fresh noise is taken, each brought where it may be, shape (size, 5)."""
        a, b, c, d, e = (self.sums - self.noise(rng, size)).T
        a = np.maximum(a, _NONE)
        c = np.clip(c, 0.0, a)
        e = np.clip(e, 0.0, c)
        d = np.clip(d, -np.sqrt(c * e), np.sqrt(c * e))
        return np.stack([a, np.clip(b, -a, a), c, d, e], axis=1)

    def _student(self, rng: np.random.Generator, size: int) -> Floats:
        free = max(self.effective - 1.0, 0.5)
        return np.asarray(rng.standard_normal(size) / np.sqrt(rng.chisquare(free, size) / free))

    def _corrected(self) -> float:
        return self.effective / max(self.effective - 1.0, 0.5)

    def mean_errors(self, rng: np.random.Generator, size: int) -> SimulatedErrors:
        """Errors of the weighted mean."""
        half, middle = float(self.bounds.half), float(self.bounds.middle)
        possible = self._possible(rng, size)
        unit = self._student(rng, size)
        scatter = np.sqrt(self._scatter(possible) * self._corrected())
        left = self.sums - self.noise(rng, size)
        drawn = (left[:, 1] - scatter * unit) / np.maximum(left[:, 0], _NONE)
        seen = self._scatter(self.sums[None])[0]
        seen = seen if seen > 0 else float(np.median(scatter**2))
        alone = math.sqrt(seen * self._corrected()) * unit / max(float(self.sums[0]), _NONE)
        at = self.share
        return SimulatedErrors(
            np.array([self.at]),
            (at - np.clip(drawn, -1.0, 1.0))[:, None] * half,
            np.clip(alone, -2.0, 2.0)[:, None] * half,
            np.array([[middle - half, middle + half]]),
        )

    def _scatter(self, sums: Floats) -> Floats:
        """Σ u²·(t - m)²."""
        a, b, c, d, e = sums.T
        m = np.clip(b / np.maximum(a, _NONE), -1.0, 1.0)
        return np.asarray(np.maximum(e - 2 * m * d + m**2 * c, _LEAST * np.maximum(c, 0.0)))

    def total_errors(
        self, rows: int | None, rng: np.random.Generator, size: int
    ) -> SimulatedErrors:
        """Errors of the total; ``rows`` where their number is public."""
        half, middle = float(self.bounds.half), float(self.bounds.middle)

        def scatter(sums: Floats) -> Floats:
            found = half**2 * sums[:, 4] + 2 * half * middle * sums[:, 3] + middle**2 * sums[:, 2]
            least = _LEAST * half**2 * np.maximum(sums[:, 2], 0.0)
            if rows is not None and rows > 1:
                total = half * sums[:, 1] + middle * sums[:, 0]
                found = (found - total**2 / rows) * rows / (rows - 1)
            return np.asarray(np.sqrt(np.maximum(found, least)))

        unit = self._student(rng, size)
        noise = self.noise(rng, size)
        off = half * noise[:, 1] + middle * noise[:, 0]
        off = off + scatter(self._possible(rng, size)) * unit
        alone = scatter(self.sums[None])[0] * unit
        return SimulatedErrors(
            np.array([self.total]), self.most * off[:, None], self.most * alone[:, None]
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether the noise spans much of the bounds."""
        noise = self.noise(SimulatedDraws.of(None), 2000)
        off = float(np.std(noise[:, 1] - self.share * noise[:, 0])) / max(
            float(self.sums[0]), _NONE
        )
        if off <= 0.25:
            return ()
        reason, times = "the noise spans much of the bounds", min(off / 0.05, 10.0**6)
        return (too_few_rows(reason, self.effective * times, times),)


@documented
def weighted_mean(
    x: Any,
    weights: Any,
    *,
    bounds: tuple[Number, Number] | None = None,
    most: Number,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 0.0,
) -> PrivateEstimate:
    """The weighted mean Σ w·x/Σ w, with an interval that counts sampling, weights and noise.

    Parameters
    ----------
    x : sequence of number
        One value a row; a row is who is protected.
    weights : sequence of number
        One weight a row, as private as the value.
    bounds : (number, number)
        What values are clamped to, known without looking at the data.
    most : number
        Above 0: what weights are clamped to, from 0, known without looking at the data, such as the
        survey's design gives.
    epsilon, delta : number
        What the release may cost.
    {neighbours}
    null : float
        What ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate
        Where n is not public, its ``rows`` are Kish's effective number.

    {raises}

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row with its weight being the unit;
    epsilon-DP where delta is 0. Rows in which the value or the weight is missing are left out. The
    sensitivity is proved in `dither.inference.estimates._weighted`.

    *Interval.* Rows are taken as an independent sample with these weights (clusters and strata of a
    design are not known here); by the inversion of tests of the ratio.

    References
    ----------
    Särndal, Swensson and Wretman, "Model Assisted Survey Sampling", 1992.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> x, w = rng.normal(40, 10, 4000), rng.uniform(1, 5, 4000)
    >>> found = inference.weighted_mean(x, w, bounds=(0, 100), most=5, epsilon=1)
    >>> lower, upper = found.interval(0.9999)
    >>> lower < 40 < upper
    True
    """
    model, released, rows, ends = _weighted(x, weights, bounds, most, epsilon, delta, neighbours)
    return _mean_of("weighted mean", model, released.loss, rows, ends, check.number("null", null))


@documented
def weighted_proportion(
    x: Any,
    weights: Any,
    *,
    most: Number,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 0.5,
) -> PrivateEstimate:
    """The weighted share of rows of which something is true.

    Parameters
    ----------
    x : sequence of bool, or of 0 and 1
        What lies between counts as the share that it is.
    weights : sequence of number
        One weight a row, as private as the value.
    most : number
        Above 0: what weights are clamped to, from 0.
    epsilon, delta : number
        What the release may cost.
    {neighbours}
    null : float
        In [0, 1]: what ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate

    {raises}

    Notes
    -----
    *Guarantee.* That of `weighted_mean`, whose bounds are 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> x, w = rng.random(4000) < 0.3, rng.uniform(1, 5, 4000)
    >>> found = inference.weighted_proportion(x, w, most=5, epsilon=1)
    >>> lower, upper = found.interval(0.9999)
    >>> lower < 0.3 < upper
    True
    """
    against = check.number("null", null, least=0, most=1)
    model, released, rows, ends = _weighted(x, weights, (0, 1), most, epsilon, delta, neighbours)
    return _mean_of("weighted proportion", model, released.loss, rows, ends, against)


@documented
def weighted_total(
    x: Any,
    weights: Any,
    *,
    bounds: tuple[Number, Number] | None = None,
    most: Number,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 0.0,
) -> PrivateEstimate:
    """The weighted total Σ w·x: of a population, where weights say how many a row stands for.

    Parameters
    ----------
    x : sequence of number
        One value a row; 1 for each gives the size of the population.
    weights : sequence of number
        One weight a row, as private as the value.
    bounds : (number, number)
        What values are clamped to.
    most : number
        Above 0: what weights are clamped to, from 0.
    epsilon, delta : number
        What the release may cost.
    {neighbours}
    null : float
        What ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate

    {raises}

    Notes
    -----
    *Guarantee.* That of `weighted_mean`.

    *Interval.* Where n is public, samples of n rows; else who is in the sample is as random as the
    number of them.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> x, w = rng.normal(40, 10, 4000), rng.uniform(1, 5, 4000)
    >>> found = inference.weighted_total(x, w, bounds=(0, 100), most=5, epsilon=1)
    >>> lower, upper = found.interval(0.9999)
    >>> lower < 4000 * 3 * 40 < upper
    True
    """
    model, released, rows, ends = _weighted(x, weights, bounds, most, epsilon, delta, neighbours)
    against = check.number("null", null)
    return _total_of(model, released.loss, rows, ends, against)


def _weighted(
    x: Any,
    weights: Any,
    bounds: Any,
    most: Number,
    epsilon: Number,
    delta: Number,
    neighbours: Neighbours | str,
) -> tuple[WeightedModel, NoisyStatistic, int | None, Bounds]:
    ends, asked = bounds_of("bounds", bounds), target(epsilon, delta, neighbours)
    top = check.positive("most", most)
    _ = bounds_of("most", (0, top))
    values, heavy = column("x", x), column("weights", weights)
    if len(values) != len(heavy):
        raise ArgumentError("weights must be as many as the values of x")
    design = WeightedRelease(ends, top, asked)
    released = design.release((values, heavy))
    model = WeightedModel(design.moments(released.values), design.drawn, ends, float(top))
    return model, released, len(values) if asked.replace else None, ends


def weighted_assumptions(bounds: Bounds, most: float, what: str) -> tuple[str, ...]:
    """What intervals of weighted sums rest on."""
    return (
        "rows are an independent sample with these weights",
        of_clamped(bounds, what),
        f"weights are those clamped to [0, {number_text(most)}]",
    )


def _mean_of(
    title: str, model: WeightedModel, loss: Loss, rows: int | None, ends: Bounds, null: float
) -> PrivateEstimate:
    return PrivateEstimate(
        title,
        loss,
        (*weighted_assumptions(ends, model.most, "the mean is that"), *_on_rows(rows)),
        model.notes,
        None,
        np.array([model.at]),
        round(model.effective) if rows is None else rows,
        model.mean_errors,
        null,
    )


def _total_of(
    model: WeightedModel, loss: Loss, rows: int | None, ends: Bounds, null: float
) -> PrivateEstimate:
    return PrivateEstimate(
        "weighted total",
        loss,
        (*weighted_assumptions(ends, model.most, "the total is that"), *_on_rows(rows)),
        model.notes,
        None,
        np.array([model.total]),
        round(model.effective) if rows is None else rows,
        partial(model.total_errors, rows),
        null,
    )


def _on_rows(rows: int | None) -> tuple[str, ...]:
    return () if rows is not None else ("n is Kish's effective number, of the released weights",)
