"""The mean of one number per row: clamping, unknown spread, unknown n, all counted.

Release. With t = (x - middle)/half clamped to [-1, 1] on a public lattice, of all rows at once

    Σ t,   k·Σ (t² - 1/2),   c·#{x < lower},   c·#{x > upper},   and under ADD_REMOVE c·n.

Sensitivity. Under ADD_REMOVE a row adds such a vector, for k <= 1 of norms at most

    l1 = 1 + k/2 + 2c,        l2² = 1 + k²/4 + 2c²        (c for n, c for one side),

both at |t| = 1 beyond a bound: with u = |t| the sums u + k·|u² - 1/2| and u² + k²·(u² - 1/2)² are
largest at u = 1 on [0, 1] (they are convex in u on [√½, 1], and at most k/2 + √½ < 1 + k/2 before).
Under REPLACE n is public. A change from t to t' moves the first two by |t - t'| and
k·|t - t'|·|t + t'|; with d = |t - t'| and |t + t'| <= 2 - d,

    d + k·d·(2 - d) <= 2  for k <= 1/2,     d²·(1 + k²·(2 - d)²) <= 4  for k <= 33/20,

since 2 - d·(1 + k·(2 - d)) = (2 - d)·(1 - k·d) >= 0, and (2 + d)/(d²·(2 - d)) >= 2.77 > k². So
the second moment costs nothing beside the first. The two sides add at most 2c, and 2c²:
l1 = 2 + 2c, l2² = 4 + 2c².

Model. Values are normal, N(μ, σ²), then clamped (`ClampedNormal`); n, where it is measured, is
taken as measured. Whether a side is cut at all is checked against the released numbers beyond the
bounds: where far fewer lie beyond than a normal law with these moments has there, the bound was a
natural end, and the values are taken as they are on that side.

Infer. (μ, σ) solve E[mechanism] = released, by least squares weighted by the noise, within a box
(whose ends cut the interval). Errors are those of the linearised solution, K·(released* - E
released*) with K the influence of what is released, simulated at (μ, σ).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import number_text
from dither._subjects import Subject
from dither.inference._clamped import ClampedNormal
from dither.inference._errors import SimulatedErrors, closest
from dither.inference._inputs import Bounds, Floats, Target, bounds_of, column, target
from dither.inference._release import (
    Noise,
    NoisyStatistic,
    exact_sum,
    exact_sum_of_squares,
    fixed_noise,
    gaussian_is_better,
    rows_of,
    seen_at_best,
    spread_of,
)
from dither.inference._result import PrivateEstimate, too_few_rows
from dither.inference._simulation import SimulatedNoise
from dither.privacy import Loss, Neighbours

__all__ = ["MeanModel", "MeanRelease", "mean"]

Shape = Literal["normal", "any"]

_SMALL = 0.01
"""Half-ranges: no deviation is taken to be smaller."""

_FEWER = 4.5
"""Deviations by which fewer values than expected must lie beyond a bound that cuts nothing:
Laplace noise is so far below its mean once in a thousand times."""

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
    sides : bool
        Whether the numbers of values beyond the bounds are released too.
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
    sides: bool = True
    gaussian: bool | None = None
    square: Fraction = field(init=False)
    count: Fraction = field(init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        asked, counts = self.asked, (2 if self.asked.replace else 1) * int(self.sides)
        gaussian = self.gaussian
        if gaussian is None:
            gaussian = gaussian_is_better(asked, l1=2.25, l2=2.1)
        if gaussian:
            k, c = (Fraction(33, 20) if asked.replace else Fraction(1)), Fraction(1, 2)
        else:
            k, c = Fraction(1, 2), Fraction(1, 8)
        if asked.replace:
            l1, l2_squared = 2 + counts * c, 4 + counts * c**2
        else:
            l1, l2_squared = 1 + k / 2 + (1 + counts) * c, 1 + k**2 / 4 + (1 + counts) * c**2
        noise, loss = fixed_noise(
            asked=asked,
            dimension=self.dimension,
            l1=None if gaussian else l1,
            l2_squared=l2_squared if gaussian else None,
        )
        found = {"gaussian": gaussian, "square": k, "count": c, "noise": noise, "loss": loss}
        for name, value in found.items():
            object.__setattr__(self, name, value)

    @property
    def dimension(self) -> int:
        """How many numbers are released."""
        return 2 + 2 * int(self.sides) + int(not self.asked.replace)

    def statistic(self, values: Floats) -> tuple[Fraction, ...]:
        """The exact vector; what is missing counts as the middle, or not at all (ADD_REMOVE)."""
        known = values[~np.isnan(values)]
        n = len(values) if self.asked.replace else len(known)
        points = self.bounds.lattice(known)
        steps = Bounds.steps
        scaled = self.bounds.scaled(known)
        found = [
            Fraction(exact_sum(points), steps),
            self.square * (Fraction(exact_sum_of_squares(points), steps**2) - Fraction(n, 2)),
        ]
        if self.sides:
            found += [self.count * int((scaled < -1).sum()), self.count * int((scaled > 1).sum())]
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

    @property
    def sides(self) -> bool:
        """Whether the numbers beyond the bounds were released."""
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
    shape : {"normal", "any"}

    Attributes
    ----------
    n : float
        Rows, at least 1.
    seen : array of float, shape (4,)
        Per row: t, t², the shares below and above; the shares are NaN where they were not released.
    law : ClampedNormal
        The solution.
    """

    design: MeanDesign
    released: Floats
    rows: int | None
    shape: Shape
    n: float = field(init=False)
    seen: Floats = field(init=False)
    law: ClampedNormal = field(init=False)

    def __post_init__(self) -> None:
        settle = partial(object.__setattr__, self)
        settle("n", rows_of(self.released, self.design.count, self.rows))
        settle("seen", self._per_row(self.released[None, :], np.array([self.n]))[0])
        cut = (True, True) if self.shape == "normal" else (False, False)
        law = self._solved(cut, counts=False)
        for _ in range(2):
            kept = self._cut_where(law)
            if kept == law.cut:
                break
            law = self._solved(kept, counts=False)
        settle("law", self._solved(law.cut, counts=True))

    @property
    def at(self) -> float:
        """The estimate, in the values' own units."""
        bounds = self.design.bounds
        return self.law.mean * float(bounds.half) + float(bounds.middle)

    def _per_row(self, released: Floats, rows: Floats) -> Floats:
        """Released vectors as means of a row, shape (size, 4)."""
        found = np.full((len(released), 4), np.nan)
        found[:, 0] = released[:, 0] / rows
        found[:, 1] = released[:, 1] / (float(self.design.square) * rows) + 0.5
        if self.design.sides:
            found[:, 2:] = released[:, 2:4] / (float(self.design.count) * rows[:, None])
        return found

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
        each = np.hypot([noise, noise / k, noise / c, noise / c], 0.3 / math.sqrt(self.n))
        return np.where(used, 1.0 / each, 0.0)

    def _used(self, cut: tuple[bool, bool], *, counts: bool) -> npt.NDArray[np.bool_]:
        sides = counts and self.design.sides
        return np.array([True, True, sides and cut[0], sides and cut[1]])

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
        if not self.design.sides:
            return law.cut
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
        half, middle = float(bounds.half), float(bounds.middle)
        noisy, alone = self.simulate(self.law, rng, size)
        reach = _FAR if any(self.law.cut) else 1.0
        row = self.influence
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
            np.array([self.at]),
            draws[:, None] * half,
            sampling[:, None] * half,
            np.array([[-reach, reach]]) * half + middle,
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
        base = found if any(self.law.cut) and found > 4 * _SMALL**2 else seen
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


def mean(
    x: Any,
    *,
    bounds: Any = None,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    shape: Shape = "normal",
    null: float = 0.0,
) -> PrivateEstimate:
    """The mean of one number per row, with an interval that counts sampling, noise and clamping.

    Parameters
    ----------
    x : sequence of float
        One value a row; a row is who is protected.
    bounds : (number, number)
        Public ends; values beyond are clamped. They must not come from the data.
    epsilon, delta : number
        What the release may cost. Of Laplace and Gaussian noise the better one is used, so that a
        delta may go unspent.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected and bought with noise.
    shape : {"normal", "any"}
        "normal": values are normal before they are clamped, and what clamping takes from the mean
        is given back, unless the released numbers beyond the bounds contradict. "any": nothing is
        assumed of the shape, and the mean is that of the clamped values.
    null : float
        What ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate

    Raises
    ------
    ArgumentError
        Bounds are missing or the wrong way round, or an argument is out of range. No value of the
        data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. Missing values count
    as the middle of the bounds where rows are replaced, and are left out where they are added or
    removed.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> cost = np.random.default_rng(1).normal(4, 2, 2000)
    >>> found = inference.mean(cost, bounds=(0, 9), epsilon=1)
    >>> lower, upper = found.interval(0.999999)
    >>> lower < 4 < upper, found.loss.charge.epsilon
    (True, Fraction(1, 1))
    """
    ends, asked = bounds_of("bounds", bounds), target(epsilon, delta, neighbours)
    check.choice("shape", shape, ("normal", "any"))
    against = check.number("null", null)
    values = column("x", x)
    design = MeanRelease(ends, asked, sides=shape == "normal")
    released = design.release(values)
    rows = len(values) if asked.replace else None
    return _result(MeanModel(design, released.values, rows, shape), released.loss, against)


def _result(model: MeanModel, loss: Loss, null: float) -> PrivateEstimate:
    bounds, law = model.design.bounds, model.law
    ends = (number_text(bounds.lower), number_text(bounds.upper))
    assumptions = ["rows are an independent sample"]
    if any(law.cut):
        sides = {(True, True): f"{ends[0]} and {ends[1]}", (True, False): ends[0]}
        assumptions.append(
            f"values are normal before they are clamped at {sides.get(law.cut, ends[1])}"
        )
    else:
        assumptions.append(f"the mean is that of values clamped to [{ends[0]}, {ends[1]}]")
    if model.rows is None:
        assumptions.append("n is as measured")
    else:
        assumptions.append("no value is missing (one that is counts as the middle of the bounds)")
    notes = []
    if model.shape == "normal" and law.cut != (True, True):
        natural = " and ".join(end for end, held in zip(ends, law.cut, strict=True) if not held)
        notes.append(
            f"far fewer values lie beyond {natural} than a normal law would have there: "
            "nothing is taken to be cut off on that side."
        )
    if model.noise_of_mean > 0.25:
        times = model.noise_of_mean / 0.05
        spans = "the noise spans much of the bounds"
        notes.append(too_few_rows(spans, model.n * times, times))
    elif model.influence is None:
        notes.append(
            "nearly all values lie beyond a bound: what was released does not say where the mean "
            "is. Choose wider bounds."
        )
    return PrivateEstimate(
        "mean",
        loss,
        tuple(assumptions),
        tuple(notes),
        None,
        np.array([model.at]),
        round(model.n) if model.rows is None else model.rows,
        model.errors,
        null,
    )
