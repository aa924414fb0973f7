"""The z-test of two means through sums of clamped values, with private labels.

Release. A value is ψ in [-1, 1] on the lattice of its bounds; c is +1 in the first group and -1 in
the second. Over rows u·Σ c, Σ c·ψ, u·Σ ψ, with u = 1/4, leave as one vector with Laplace noise at
the l1 below. Labels are as private as values: a row that is replaced may change both.

Sensitivity. With d = |ψ - ψ'| and s = |ψ + ψ'| <= 2 - d a row that is replaced moves the vector,
where the group stays, by (1 + u)·d <= 2 + 2u; where it changes, by 2u + s + u·d <= 2 + 2u. A row
that is added moves it by 2u + 1, and 1/8 for n. The difference of the groups thus has noise for
one sum, rather than two.

Model. Normal values of the known deviation, clamped (`ClampedNormal`), around the mean of all, as
the null has it. Each simulated release has the numbers of rows that one draw of the noise leaves
possible: what was released, less fresh noise.

Infer. The statistic is studentised by the noise of the sums that were released with it, and so is
each simulated one, from its own noise: a parametric bootstrap, averaged over what is not known.

Source. Ferrando, Wang and Sheldon, AISTATS 2022, for the bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._errors import monte_carlo
from dither.inference.engine._groups import Whole
from dither.inference.engine._inputs import Bounds, Floats, Target, target
from dither.inference.engine._release import exact_sum, fixed_noise, seen_at_best, spread_of
from dither.inference.engine._result import PrivateTest, share_of_noise, too_few_rows
from dither.mechanisms import Laplace
from dither.privacy import Loss

__all__ = [
    "LEAST",
    "ContrastRelease",
    "points_of",
    "possible",
    "result_of_moments",
]

_QUARTER, _EIGHTH = Fraction(1, 4), Fraction(1, 8)

LEAST = 1e-4
"""Squared half-ranges: no variance is taken to be smaller."""


def points_of(values: Floats, bounds: Bounds) -> Whole:
    """Values on the lattice of their bounds, what is missing in the middle."""
    return bounds.lattice(np.where(np.isnan(values), float(bounds.middle), values))


@dataclass(frozen=True)
class ContrastRelease:
    """Layer 1: Σ c, Σ c·ψ and Σ ψ of two groups, and n where it is not public.

    Parameters
    ----------
    asked : Target

    Attributes
    ----------
    noise : Laplace
        Of every weighted sum.
    loss : Loss
    """

    asked: Target
    noise: Laplace = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        noise, loss = fixed_noise(asked=self.asked, dimension=len(self.weights), l1=self.l1)
        assert isinstance(noise, Laplace)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    @property
    def weights(self) -> tuple[Fraction, ...]:
        """Of each sum; that of n comes last where it is measured."""
        found = (_QUARTER, Fraction(1), _QUARTER)
        return found if self.asked.replace else (*found, _EIGHTH)

    @property
    def l1(self) -> Fraction:
        """How far a row moves the vector, as the module says."""
        # 2 + 2·u, or 1 + 2·u and 1/8 for n, at u = 1/4.
        return Fraction(5, 2) if self.asked.replace else Fraction(3, 2) + _EIGHTH

    def statistic(self, table: tuple[Whole, Whole]) -> tuple[Fraction, ...]:
        """The weighted sums of lattice points and groups, 0 or 1, exactly."""
        points, places = table
        first, second = points[places == 0], points[places == 1]
        a, b = (Fraction(exact_sum(part), Bounds.steps) for part in (first, second))
        found = [Fraction(first.size - second.size), a - b, a + b, Fraction(points.size)]
        return tuple(w * v for w, v in zip(self.weights, found, strict=False))

    def release(self, table: tuple[Whole, Whole]) -> Floats:
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
