"""The mean of normal values that are clamped: what clamping takes is given back.

Of values of whatever law the mean of the clamped ones is told, by `_group_sums` and `_free_means`.

Release. With t = (x - middle)/half clamped to [-1, 1] on a public lattice, of all rows at once

    Σ t,   k·Σ (t² - 1/2),   c·#{x < lower},   c·#{x > upper},   and under ADD_REMOVE c·n.

Sensitivity. Under ADD_REMOVE a row adds such a vector, for k <= 1 of norms at most

    l1 = 1 + k/2 + 2c,        l2² = 1 + k²/4 + 2c²        (c for n, c for one side),

both at |t| = 1 beyond a bound: with u = |t| the sums u + k·|u² - 1/2| and u² + k²·(u² - 1/2)² are
largest at u = 1 on [0, 1] (they are convex in u on [√½, 1], and at most k/2 + √½ < 1 + k/2 before).
Under REPLACE n is public. Σ t and k·Σ t² move by at most l1 = 2 and l2² = 4 for k <= 1/2 and
k <= 33/20 (`_group_sums`). The two sides add at most 2c, and 2c²: l1 = 2 + 2c, l2² = 4 + 2c².

Model. Values are normal, N(μ, σ²), then clamped (`ClampedNormal`); n, where it is measured, is
taken as measured. Whether a side is cut at all is checked against the released numbers beyond the
bounds: where far fewer lie beyond than a normal law with these moments has there, the bound was a
natural end, and the values are taken as they are on that side. Where neither side is cut, nothing
is left of the normal law, and the mean is that of clamped values of any.

Infer. (μ, σ) solve E[mechanism] = released, by least squares weighted by the noise, within a box
(whose ends cut the interval); beyond a bound that no values are seen to lie beyond the mean is not
looked for. Errors are those of the linearised solution, K·(released* - E released*) with K the
influence of what is released, simulated at (μ, σ).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._clamped import ClampedNormal
from dither.inference.engine._errors import SimulatedErrors, closest
from dither.inference.engine._inputs import Bounds, Floats, Target, bounds_of, target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    first_moments,
    gaussian_is_better,
    noise_of_either,
    rows_of,
    seen_at_best,
    spread_of,
)
from dither.inference.engine._simulation import SimulatedNoise
from dither.inference.estimates._free_means import FreeMeans
from dither.privacy import Loss, Neighbours

__all__ = ["MeanDesign", "MeanModel", "MeanRelease"]

_SMALL = 0.01
"""Half-ranges: no deviation is taken to be smaller."""

_FEWER = 3.0
"""Deviations by which fewer values than expected must lie beyond a bound that cuts nothing: Laplace
noise is so far off once in 140 times."""

_SEEN = 6.0
"""Deviations by which more than none must lie beyond a bound that the mean may pass: 1 in 10⁴."""

_AS_LIKELY = 3.84
"""By how much a sum of squares may be larger than the least: χ² of one degree at 95 %."""

_LARGE = 8.0
_FAR = 4.0
"""Half-ranges from the middle within which the mean is looked for."""


@dataclass(frozen=True)
class MeanRelease:
    """Layer 1: the statistic of a mean, its weights, its sensitivity and its noise.

    Parameters
    ----------
    bounds : Bounds
    asked : Target
    gaussian : bool, optional
        Which noise; by default the better one.

    Attributes
    ----------
    square, count : Fraction
        The weights k and c.
    noise : Laplace or Gaussian
        Of every coordinate.
    loss : Loss
    """

    bounds: Bounds
    asked: Target
    gaussian: bool | None = None
    square: Fraction = field(init=False)
    count: Fraction = field(init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        asked, counts = self.asked, 2 if self.asked.replace else 1
        gaussian = self.gaussian
        if gaussian is None:
            # The norms of what follows under REPLACE, 5/2 and √(9/2): they choose the noise alone.
            gaussian = gaussian_is_better(asked, l1=2.5, l2=2.1)
        if gaussian:
            k, c = (Fraction(33, 20) if asked.replace else Fraction(1)), Fraction(1, 2)
        else:
            k, c = Fraction(1, 2), Fraction(1, 4)
        if asked.replace:
            l1, l2_squared = 2 + counts * c, 4 + counts * c**2
        else:
            l1, l2_squared = 1 + k / 2 + (1 + counts) * c, 1 + k**2 / 4 + (1 + counts) * c**2
        noise, loss = noise_of_either(
            gaussian,
            asked=asked,
            dimension=self.dimension,
            l1=l1,
            l2_squared=l2_squared,
        )
        found = {"gaussian": gaussian, "square": k, "count": c, "noise": noise, "loss": loss}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return 4 + int(not self.asked.replace)

    def statistic(self, values: Floats) -> tuple[Fraction, ...]:
        """The exact vector; what is missing counts as the middle, or not at all (ADD_REMOVE)."""
        known = values[~np.isnan(values)]
        n = len(values) if self.asked.replace else len(known)
        scaled = self.bounds.scaled(known)
        found = [
            *first_moments(self.bounds.lattice(known), Bounds.steps, n, self.square),
            self.count * int((scaled < -1).sum()),
            self.count * int((scaled > 1).sum()),
        ]
        if not self.asked.replace:
            found.append(self.count * n)
        return tuple(found)

    def release(self, values: Floats) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(values)), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta, bounds = Fraction(1, 100), bounds_of("bounds", (-1, 1))
        far = np.array([-9.0, 0.5]), np.array([9.0, 0.5])
        design = cls(bounds, target(1, 0, "replace"))
        yield Subject("mean of n rows", seen_at_best(design, *far), *far)
        one = np.array([0.5]), np.array([0.5, 9.0])
        design = cls(bounds, target(1, 0, "add-remove"))
        yield Subject("mean of unknown n", seen_at_best(design, *one), *one)
        design = cls(bounds, Target(Fraction(1), delta, Neighbours.REPLACE), gaussian=True)
        yield Subject("mean with Gaussian noise", seen_at_best(design, *far), *far, delta=delta)


class MeanDesign(Protocol):
    """What a model of a mean must know of its release."""

    @property
    def bounds(self) -> Bounds:
        """The ends that values are clamped to."""
        ...

    @property
    def noise(self) -> Noise:
        """Of every coordinate."""
        ...

    @property
    def square(self) -> Fraction:
        """The weight k."""
        ...

    @property
    def count(self) -> Fraction:
        """The weight c."""
        ...


@dataclass(frozen=True, eq=False)
class MeanModel:
    """Layers 2 and 3 of a mean: from a release to (μ, σ), and back by simulation.

    Parameters
    ----------
    design : MeanDesign
    released : array of float
        What was released; n comes last, where it was measured.
    rows : int or None
        The public n, or None where it was measured.

    Attributes
    ----------
    n : float
        Rows, at least 1.
    seen : array of float, shape (4,)
        Per row: t, t², the shares below and above.
    law : ClampedNormal
        The solution.
    """

    design: MeanDesign
    released: Floats
    rows: int | None
    n: float = field(init=False)
    seen: Floats = field(init=False)
    law: ClampedNormal = field(init=False)

    def __post_init__(self) -> None:
        settle = partial(object.__setattr__, self)
        settle("n", rows_of(self.released, self.design.count, self.rows))
        settle("seen", self._per_row(self.released[None, :], np.array([self.n]))[0])
        law = self._solved((True, True), counts=False)
        for _ in range(2):
            kept = self._cut_where(law)
            if kept == law.cut:
                break
            law = self._solved(kept, counts=False)
        settle("law", self._solved(law.cut, counts=True))

    @property
    def at(self) -> float:
        """The estimate, in the values' own units."""
        bounds, (low, high) = self.design.bounds, self.reach
        return min(max(self.law.mean, low), high) * float(bounds.half) + float(bounds.middle)

    @cached_property
    def reach(self) -> tuple[float, float]:
        """Where the mean is looked for, in half-ranges: past a bound if values are seen there."""
        noise = _SEEN * self._noise.deviation / float(self.design.count)
        passed = [
            cut and self.n * seen > noise
            for cut, seen in zip(self.law.cut, self.seen[2:], strict=True)
        ]
        return (-_FAR if passed[0] else -1.0), (_FAR if passed[1] else 1.0)

    @property
    def unseen(self) -> bool:
        """Whether what is given back exceeds the noise, which hides how many lie beyond."""
        noise, law = self._noise.deviation, self.law
        given_back = self.n * abs(law.mean - law.moments(1)[0])
        beyond = self.n * max(share for share, cut in zip(law.outside, law.cut, strict=True) if cut)
        return given_back > noise and beyond < _FEWER * noise / float(self.design.count)

    @property
    def free(self) -> FreeMeans:
        """The same sums, of which nothing is assumed."""
        sums = np.array([[1.0, self.seen[0], self.seen[1]]]) * self.n
        return FreeMeans(sums, self._noise_of_sums)

    def _noise_of_sums(self, rng: np.random.Generator, size: int) -> Floats:
        k, c = float(self.design.square), float(self.design.count)
        drawn = self._noise.draw(rng, (size, 5))
        rows = np.zeros(size) if self.rows is not None else drawn[:, 4] / c
        return np.stack([rows, drawn[:, 0], drawn[:, 1] / k + rows / 2], axis=1)[:, None]

    def _per_row(self, released: Floats, rows: Floats) -> Floats:
        """Released vectors as means of a row, shape (size, 4)."""
        found = released[:, :4] / rows[:, None]
        found[:, 1] = found[:, 1] / float(self.design.square) + 0.5
        found[:, 2:] /= float(self.design.count)
        return np.asarray(found)

    @property
    def _noise(self) -> SimulatedNoise:
        return spread_of(self.design.noise)

    @property
    def noise_of_mean(self) -> float:
        """The deviation of the noise in Σ t/n, in half-ranges."""
        return self._noise.deviation / self.n

    def _weights(self, used: npt.NDArray[np.bool_]) -> Floats:
        """One over the deviations of what was released per row; 0 for what is not used."""
        noise = self._noise.deviation / self.n
        k, c = float(self.design.square), float(self.design.count)
        # Sampling has, roughly, a deviation of 0.3 a row: no released number is taken to be exact.
        each = np.hypot([noise, noise / k, noise / c, noise / c], 0.3 / math.sqrt(self.n))
        return np.where(used, 1.0 / each, 0.0)

    def _used(self, cut: tuple[bool, bool], *, counts: bool) -> npt.NDArray[np.bool_]:
        return np.array([True, True, counts and cut[0], counts and cut[1]])

    def _solved(self, cut: tuple[bool, bool], *, counts: bool) -> ClampedNormal:
        """Where what is expected is what was released, as nearly as the box allows."""
        spread = math.sqrt(max(self.seen[1] - self.seen[0] ** 2, _SMALL**2))
        if not any(cut):
            return ClampedNormal(float(np.clip(self.seen[0], -1.0, 1.0)), min(spread, 1.0), cut)
        used = self._used(cut, counts=counts)
        weights, wanted = self._weights(used), np.where(used, self.seen, 0.0)

        def off(point: Floats) -> Floats:
            law = ClampedNormal(float(point[0]), math.exp(float(point[1])), cut)
            return np.asarray((_expected(law) - wanted) * weights)

        start = np.array([np.clip(self.seen[0], -0.9, 0.9), math.log(min(spread, 1.0))])
        low = np.array([-_FAR, math.log(_SMALL)])
        found = closest(off, start, low, np.array([_FAR, math.log(_LARGE)]))
        return ClampedNormal(float(found[0]), math.exp(float(found[1])), cut)

    def _cut_where(self, law: ClampedNormal) -> tuple[bool, bool]:
        """The sides on which about as many values lie beyond as the law has there, or more."""
        noise = self._noise.deviation / float(self.design.count)
        kept = []
        for held, share, seen in zip(law.cut, law.outside, self.seen[2:], strict=True):
            off = math.hypot(noise, math.sqrt(self.n * share * (1 - share)))
            kept.append(held and self.n * seen > self.n * share - _FEWER * off - 1.0)
        return kept[0], kept[1]

    def simulate(
        self, law: ClampedNormal, rng: np.random.Generator, size: int
    ) -> tuple[Floats, Floats]:
        """Layer 2: what the mechanism would give per row, with its noise and without, (size, 4)."""
        n, k, c = max(1, round(self.n)), float(self.design.square), float(self.design.count)
        sums = law.sums(n, size, rng)
        exact = np.column_stack([sums[:, 0], k * (sums[:, 1] - n / 2), c * sums[:, 2:]])
        noise = self._noise.draw(rng, (size, 5))
        rows = np.full(size, float(n))
        alone = self._per_row(exact, rows)
        if self.rows is None:
            rows = np.maximum(1.0, n + noise[:, 4] / c)
        return self._per_row(exact + noise[:, :4], rows), alone

    def errors(self, rng: np.random.Generator, size: int) -> SimulatedErrors:
        """Layer 3: errors of the mean, linearised at the solution."""
        bounds = self.design.bounds
        if not any(self.law.cut):
            return self.free.errors(rng, size, bounds)
        half, middle = float(bounds.half), float(bounds.middle)
        noisy, alone = self.simulate(self.law, rng, size)
        reach, row = _FAR, self.influence
        if row is None:
            # Nothing that was released says where the mean is.
            draws, sampling = rng.uniform(-2 * reach, 2 * reach, size), np.full(size, np.nan)
        else:
            expected = np.where(row != 0, _expected(self.law), 0.0)
            sampling = (np.where(row != 0, alone, 0.0) - expected) @ row
            sampling = np.clip(sampling * self._student(rng, size), -2 * reach, 2 * reach)
            added = np.where(row != 0, noisy - alone, 0.0) @ row
            draws = sampling * self._spreads(rng, size) + added
            draws = np.clip(draws, -2 * reach, 2 * reach)
        return SimulatedErrors(
            np.array([self.law.mean * half + middle]),
            draws[:, None] * half,
            sampling[:, None] * half,
            np.array([self.reach]) * half + middle,
        )

    def _spreads(self, rng: np.random.Generator, size: int) -> Floats:
        """Deviations that the noisy second moment leaves possible, over the one that was found.

        The noise of the second moment may be larger than the variance; then the deviation that was
        found says little, and each simulated release has one of its own. Of few rows the sample
        says little either: n·found/possible² is χ² with n - 1 degrees of freedom, as in Student's
        interval; of one row nothing but the box is left.
        """
        found = self.law.deviation**2
        seen = float(self.seen[1] - self.seen[0] ** 2)
        base = found if found > 4 * _SMALL**2 else seen
        noise = self._noise.draw(rng, 4 * size) / (float(self.design.square) * self.n)
        possible = base - noise
        possible = possible[(possible > _SMALL**2) & (possible < _LARGE**2)]
        if possible.size < size // 4:
            possible = np.array([max(base, found, _SMALL**2)])
        return np.asarray(np.sqrt(rng.choice(possible, size) / found))

    def _student(self, rng: np.random.Generator, size: int) -> Floats:
        """Deviations that few rows leave possible, over theirs, as in Student's interval.

        n·found²/possible² is χ² with n - 1 degrees of freedom; of one row the box alone is left.
        """
        n = max(1, round(self.n))
        share = rng.chisquare(n - 1, size) / n if n > 1 else np.zeros(size)
        return np.asarray(1.0 / np.sqrt(np.maximum(share, (_SMALL / _LARGE) ** 2)))

    @cached_property
    def influence(self) -> Floats | None:
        """By how much what was released moves the solved mean; None where it moves nothing."""
        law = self.law
        if not any(law.cut):
            return np.array([1.0, 0.0, 0.0, 0.0])
        if self._all_beyond():
            return None
        step = 1e-4 * law.deviation
        m, s, cut = law.mean, law.deviation, law.cut
        ways = [
            (ClampedNormal(m + step, s, cut), ClampedNormal(m - step, s, cut)),
            (ClampedNormal(m, s + step, cut), ClampedNormal(m, s - step, cut)),
        ]
        slopes = [(_expected(up) - _expected(down)) / (2 * step) for up, down in ways]
        weights = self._weights(self._used(cut, counts=True))
        weighted = np.stack(slopes, axis=1) * weights[:, None]
        known = weighted.T @ weighted
        # A deviation is known to within the box without any data.
        known[1, 1] += 1.0 / _LARGE**2
        left = known[0, 0] - known[0, 1] ** 2 / known[1, 1]
        if left < 1.0 / _FAR**2:
            return None
        return np.asarray(np.linalg.solve(known, weighted.T * weights)[0])

    def _all_beyond(self) -> bool:
        """Whether it may as well be that all values lie beyond one bound, however far.

        Then the slopes at the solution say nothing of how far off it may be. The two are compared
        as likelihoods are: a truth with all values beyond is missed once in some 20 times at most.
        """
        law = self.law
        used = self._used(law.cut, counts=True)
        weights, seen = self._weights(used), np.where(used, self.seen, 0.0)

        def off(expected: Floats) -> float:
            return float(np.sum((weights * (expected - seen)) ** 2))

        ends = np.array([[-1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 1.0]])[np.array(law.cut)]
        return min(map(off, ends)) <= off(_expected(law)) + _AS_LIKELY


def _expected(law: ClampedNormal) -> Floats:
    return np.array([*law.moments(2), *law.outside])
