"""Tests of means through bounded moments: t, z, analysis of variance.

Release. A value is ψ in [-1, 1] on the lattice of its bounds; c is +1 in the first group and -1 in
the second. One vector of sums over rows leaves with Laplace noise at the l1 below. Labels are as
private as values: a row that is replaced may change both.

*Contrast* of two groups: u·c, c·ψ, v·ψ, w·(ψ² - ½), w·c·(ψ² - ½), with u = w = 1/4, v = 3/8. With
d = |ψ - ψ'| and s = |ψ + ψ'| <= 2 - d a row that is replaced moves it, where the group stays, by
(1 + v)·d + 2w·s·d <= 2(1 + v) = 11/4, as 1 + v >= 4w; where it changes, by at most

    2u + s + v·d + w·s·d + w·|(s² + d²)/2 - 1|,

which rises with s; at s = 2 - d it is 2u + 2 - (1 - v)·d + w·d·(2 - d) + w·(1 - d)², linear in d,
and at d = 0 equal to 2u + 2 + w = 11/4. The difference of the groups thus has noise for one sum,
rather than two. A row that is added moves it by u + 1 + v + w = 15/8, and 1/8 for n. Without the
squares (a known variance) v = u, and it is 2 + 2u = 5/2, and 3/2 + 1/8.

*Groups*: for each of k groups its u·n_g, Σψ, w·Σ(ψ² - ½), u = w = 1/4. A row that stays in its
group moves it by d + w·s·d <= 2, one that changes by at most 2u + 2 + w = 11/4, one that is added
by u + 1 + w/2 = 11/8.

One sample of known variance leaves as one number: `_t_tests`.

Model. Normal values, clamped (`ClampedNormal`), with the moments that were released, but equal
means as the null has it. Of one mean and of two, each simulated release has the variances and the
numbers of rows that one draw of the noise leaves possible: what was released, less fresh noise. At
the released moments alone a test would reject too much where noise made a variance small.

Infer. The statistic is studentised by the moments that were released with it, and so is each
simulated one, from its own noise: a parametric bootstrap, averaged over what is not known.

Source. Ferrando, Wang and Sheldon, AISTATS 2022, for the bootstrap; Swanberg, Globus-Harris,
Griffith, Ritz, Groce and Bray, "Improved differentially private analysis of variance", PoPETs 2019.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference._clamped import ClampedNormal
from dither.inference._errors import closest, monte_carlo
from dither.inference._groups import Whole
from dither.inference._inputs import Bounds, Floats, Target, target
from dither.inference._release import exact_sum, fixed_noise, seen_at_best, spread_of
from dither.inference._result import PrivateTest, share_of_noise, too_few_rows
from dither.mechanisms import Laplace
from dither.privacy import Loss

__all__ = [
    "LEAST",
    "ContrastRelease",
    "GroupMomentsRelease",
    "law_of",
    "points_of",
    "possible",
    "result_of_moments",
]

_QUARTER, _EIGHTH = Fraction(1, 4), Fraction(1, 8)

LEAST = 1e-4
"""Squared half-ranges: no variance is taken to be smaller."""


@dataclass(frozen=True)
class _MomentsRelease:
    """Layer 1 of all of them: weighted sums of lattice points, and Laplace noise at their l1."""

    asked: Target
    noise: Laplace = field(init=False)
    loss: Loss = field(init=False)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """Of each sum; that of n comes last where it is measured."""
        raise NotImplementedError

    @property
    def l1(self) -> Fraction:
        """How far a row moves the vector."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        noise, loss = fixed_noise(asked=self.asked, dimension=len(self.weights), l1=self.l1)
        assert isinstance(noise, Laplace)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    def sums(self, table: Any) -> list[Fraction]:
        """The sums without their weights, exactly."""
        raise NotImplementedError

    def statistic(self, table: Any) -> tuple[Fraction, ...]:
        """The weighted sums, exactly."""
        return tuple(w * v for w, v in zip(self.weights, self.sums(table), strict=True))

    def release(self, table: Any) -> Floats:
        """The sums with noise, weights taken off again: the one step that touches data."""
        found = self.noise.release(self.statistic(table))
        return np.array([float(v / w) for v, w in zip(found, self.weights, strict=True)])

    @property
    def deviations(self) -> Floats:
        """Of the noise of each sum."""
        return spread_of(self.noise).deviation / np.array([float(w) for w in self.weights])

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise of each sum, shape (size, number of sums)."""
        drawn = spread_of(self.noise).draw(rng, (size, len(self.weights)))
        return np.asarray(drawn / np.array([float(w) for w in self.weights]))


def _squares(points: Whole) -> Fraction:
    """Σ (ψ² - ½) of lattice points."""
    steps = Bounds.steps
    total = sum(int(np.dot(p, p)) for p in np.array_split(points, 1 + points.size // (1 << 21)))
    return Fraction(total, steps**2) - Fraction(points.size, 2)


def points_of(values: Floats, bounds: Bounds) -> Whole:
    """Values on the lattice of their bounds, what is missing in the middle."""
    return bounds.lattice(np.where(np.isnan(values), float(bounds.middle), values))


@dataclass(frozen=True)
class ContrastRelease(_MomentsRelease):
    """Layer 1: Σc, Σcψ, Σψ, and Σ(ψ² - ½), Σc(ψ² - ½) unless the variance is known.

    Parameters
    ----------
    asked : Target
    squares : bool
        Whether the variances are wanted.
    """

    squares: bool = True

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """As the module says."""
        one = Fraction(1)
        found: tuple[Fraction, ...] = (_QUARTER, one, Fraction(3, 8), _QUARTER, _QUARTER)
        if not self.squares:
            found = (_QUARTER, one, _QUARTER)
        return found if self.asked.replace else (*found, _EIGHTH)

    @property
    def l1(self) -> Fraction:
        """As the module says."""
        if self.asked.replace:
            return Fraction(11, 4) if self.squares else Fraction(5, 2)
        return (Fraction(15, 8) if self.squares else Fraction(3, 2)) + _EIGHTH

    def sums(self, table: tuple[Whole, Whole]) -> list[Fraction]:
        """Of lattice points and groups, 0 or 1."""
        points, places = table
        first, second = points[places == 0], points[places == 1]
        steps = Bounds.steps
        a, b = Fraction(exact_sum(first), steps), Fraction(exact_sum(second), steps)
        found = [Fraction(first.size - second.size), a - b, a + b]
        if self.squares:
            p, q = _squares(first), _squares(second)
            found += [p + q, p - q]
        return found if self.asked.replace else [*found, Fraction(points.size)]

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that changes its group at the bound, and a row added there."""
        top, steps = np.array([Bounds.steps] * 3), Bounds.steps
        first, second = (top, np.array([0, 0, 1])), (top, np.array([1, 0, 1]))
        known = cls(target(1, 0, "replace"))
        yield Subject("contrast of n rows", seen_at_best(known, first, second), first, second)
        more = (np.append(top, steps), np.array([0, 0, 1, 1]))
        unknown = cls(target(1, 0, "add-remove"))
        yield Subject("contrast of unknown n", seen_at_best(unknown, first, more), first, more)
        plain = cls(target(1, 0, "replace"), squares=False)
        yield Subject("contrast of means", seen_at_best(plain, first, second), first, second)


@dataclass(frozen=True)
class GroupMomentsRelease(_MomentsRelease):
    """Layer 1: number of rows, Σψ and Σ(ψ² - ½) of each of k groups.

    Parameters
    ----------
    asked : Target
    groups : int
    """

    groups: int = 2

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """As the module says."""
        return (_QUARTER, Fraction(1), _QUARTER) * self.groups

    @property
    def l1(self) -> Fraction:
        """As the module says."""
        return Fraction(11, 4) if self.asked.replace else Fraction(11, 8)

    def sums(self, table: tuple[Whole, Whole]) -> list[Fraction]:
        """Of lattice points and groups from 0."""
        points, places = table
        found = []
        for g in range(self.groups):
            held = points[places == g]
            found += [Fraction(held.size), Fraction(exact_sum(held), Bounds.steps), _squares(held)]
        return found

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that changes its group at the bound, and a row added there."""
        top = np.array([Bounds.steps] * 3)
        first, second = (top, np.array([0, 1, 2])), (top, np.array([1, 1, 2]))
        known = cls(target(1, 0, "replace"), 3)
        yield Subject("moments of groups", seen_at_best(known, first, second), first, second)
        more = (np.append(top, Bounds.steps), np.array([0, 1, 2, 2]))
        unknown = cls(target(1, 0, "add-remove"), 3)
        seen = seen_at_best(unknown, first, more)
        yield Subject("moments of groups of unknown n", seen, first, more)


def law_of(mean: float, square: float) -> ClampedNormal:
    """The normal law that has these moments once it is clamped, as nearly as there is one."""
    variance = max(square - mean**2, LEAST)
    start = np.array([np.clip(mean, -0.9, 0.9), math.log(min(1.0, math.sqrt(variance)))])
    wanted = np.array([mean, mean**2 + variance])

    def off(point: Floats) -> Floats:
        law = ClampedNormal(float(point[0]), math.exp(float(point[1])))
        return np.asarray(np.array(law.moments(2)) - wanted)

    low, high = np.array([-2.0, math.log(0.01)]), np.array([2.0, math.log(4.0)])
    found = closest(off, start, low, high)
    return ClampedNormal(float(found[0]), math.exp(float(found[1])))


def possible(valid: npt.NDArray[np.bool_], size: int) -> npt.NDArray[np.int64]:
    """Places of so many draws, valid ones first.

    Examples
    --------
    >>> possible(np.array([False, True, False, True]), 3).tolist()
    [1, 3, 0]
    """
    return np.argsort(~valid, kind="stable")[:size]


def result_of_moments(
    title: str,
    null: str,
    design: Any,
    statistic: Callable[[Floats], Floats],
    released: Floats,
    simulated: Floats,
    chance: float,
    noise: float,
    rows: float,
    alternative: str,
    assumptions: tuple[str, ...],
) -> PrivateTest:
    """A test from released sums and those that the null gives, with their noise."""
    found, null_law = float(statistic(released[None])[0]), statistic(simulated)
    notes: tuple[str, ...] = ()
    if chance < noise:
        per_row = max(chance**2 / max(1.0, rows), 0.01)
        needed = max(noise**2 / per_row, rows + 1.0)
        notes = (too_few_rows("noise exceeds what chance gives", needed),)
    known = "n is public" if design.asked.replace else "n is as measured"
    return PrivateTest(
        title,
        design.loss,
        ("rows are an independent sample", *assumptions, known),
        notes,
        null,
        found,
        monte_carlo(found, null_law, alternative),
        null_law,
        noise_share=share_of_noise(noise, chance),
    )
