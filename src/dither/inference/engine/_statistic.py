"""One number of a whole table leaves, and a p-value follows from what the null would give.

Release. Where one row moves a statistic by at most m (a Fraction), it is rounded down to a lattice
of 2^-20, and leaves with m times canonical noise N: integer noise of `dither.mechanisms.Tulap`, or
of `DiscreteLaplace` where delta is 0, plus a uniform fraction. With m taken as K points (one more
than m has, for the rounding), l the statistic in points and u uniform on 0..K-1, what is released
is Z·K + l + u. Given u that is floor((l + u)/K) + Z, of a count that a row moves by at most 1, and
a remainder that is uniform whatever l is: it costs what the integer noise costs.

Under ADD_REMOVE c·n leaves beside the statistic, both with Laplace noise at l1 = m + c.

Model. The statistic under the null, from n and a generator, with the noise. Where n is measured,
each simulated table has one of the n that its noise leaves possible, as likely as the noise is that
would have made of it what was measured: at the measured n alone, which may be half of the true one
where rows are few, the null would be too narrow, and a test reject too often. Infer. Monte Carlo
p-values (1 + #)/(B + 1), exact where the null's law is public and n is.

Source. Awan and Slavković, "Differentially private uniformly most powerful tests for binomial
data", NeurIPS 2018, for the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dither._subjects import Subject
from dither.inference.engine._errors import monte_carlo
from dither.inference.engine._inputs import Floats, Target, target
from dither.inference.engine._release import fixed_noise, rows_of, seen_at_best, spread_of
from dither.inference.engine._result import PrivateTest, share_of_noise, too_few_rows
from dither.inference.engine._simulation import Seed, SimulatedDraws
from dither.inference.estimates._proportion import CanonicalNoise
from dither.mechanisms import Laplace
from dither.noise import below
from dither.privacy import Loss

__all__ = [
    "LATTICE",
    "ReleasedStatistic",
    "Statistic",
    "StatisticRelease",
    "StatisticWithRowsRelease",
    "result_of",
    "root",
]

LATTICE = 1 << 20

_PARTS = 64
"""Numbers of rows that a null is simulated at, where n is measured."""

Statistic = Callable[[np.random.Generator, int, int], Floats]
"""Of a generator, n and a size: so many statistics under the null, without noise."""


def root(square: Fraction) -> Fraction:
    """The root of a number, rounded down to the lattice.

    Examples
    --------
    >>> root(Fraction(9, 4))
    Fraction(3, 2)
    """
    return Fraction(math.isqrt(square.numerator * LATTICE**2 // square.denominator), LATTICE)


@dataclass(frozen=True)
class StatisticRelease:
    """Layer 1: a statistic that one row moves by at most so much, where n is public.

    Parameters
    ----------
    moved : Fraction
        Above 0.
    asked : Target

    Attributes
    ----------
    reach : int
        The same in points of the lattice, rounding included.
    noise : CanonicalNoise
        In units of the reach.
    """

    moved: Fraction
    asked: Target
    reach: int = field(init=False)
    noise: CanonicalNoise = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reach", math.ceil(self.moved * LATTICE) + 1)
        object.__setattr__(self, "noise", CanonicalNoise(self.asked))

    @property
    def loss(self) -> Loss:
        """That of the integer noise of a count that one row moves by at most 1."""
        return self.noise.loss

    @property
    def deviation(self) -> float:
        """Of the noise."""
        return self.reach / LATTICE * math.sqrt(self.noise.variance)

    def release(self, exact: Fraction, size: int = 1) -> Floats:
        """The statistic with noise, ``size`` times over: the one step that touches data."""
        points, whole = math.floor(exact * LATTICE), self.noise.law.draw(size)
        fractions = below(self.reach, size)
        return np.array(
            [
                # u lies in 0 .. K - 1: less half of K, the noise is centred to half a point.
                float(Fraction(points + int(z) * self.reach + int(u) - self.reach // 2, LATTICE))
                for z, u in zip(whole, fractions, strict=True)
            ]
        )

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise."""
        return self.reach / LATTICE * self.noise.draw(rng, size)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: statistics that are as far apart as a row moves them."""
        for delta in (Fraction(0), Fraction(1, 100)):
            design = cls(Fraction(7, 2), target(1, delta, "replace"))
            name = "statistic of n rows" + (", with delta" if delta else "")
            yield Subject(name, design.release, Fraction(1), Fraction(9, 2), delta=delta)


@dataclass(frozen=True)
class StatisticWithRowsRelease:
    """Layer 1: a statistic that a row that is added moves by at most so much, and n.

    Parameters
    ----------
    moved : Fraction
        Above 0.
    asked : Target

    Attributes
    ----------
    count : Fraction
        The weight of n, about a seventh of what a row moves.
    noise : Laplace
        Of both.
    loss : Loss
    """

    moved: Fraction
    asked: Target
    count: Fraction = field(init=False)
    noise: Laplace = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        # About a seventh of the statistic's own, so that n takes an eighth of what both cost.
        count = Fraction(max(1, round(self.moved * 64 / 7)), 64)
        noise, loss = fixed_noise(asked=self.asked, dimension=2, l1=self.moved + count)
        assert isinstance(noise, Laplace)
        for name, value in (("count", count), ("noise", noise), ("loss", loss)):
            object.__setattr__(self, name, value)

    @property
    def deviation(self) -> float:
        """Of the noise of the statistic."""
        return spread_of(self.noise).deviation

    def statistic(self, table: tuple[Fraction, int]) -> tuple[Fraction, Fraction]:
        """The statistic and the weighted number of rows."""
        return table[0], self.count * table[1]

    def release(self, table: tuple[Fraction, int]) -> tuple[float, int]:
        """The statistic with noise, and n as measured: the one step that touches data."""
        found = np.array([float(v) for v in self.noise.release(self.statistic(table))])
        return float(found[0]), max(1, round(rows_of(found, self.count, None)))

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise of the statistic."""
        return spread_of(self.noise).draw(rng, size)

    def possible(self, rng: np.random.Generator, rows: int, size: int) -> Iterator[tuple[int, int]]:
        """Numbers of rows from 1 that may have been measured as so many, and how often each.

        Of a Laplace law around what was measured, cut at 1: one in each of `_PARTS` parts that are
        as likely. What was measured below 1 leaves the same law as 1 does.
        """
        scale = float(self.noise.scale) / float(self.count)
        parts = min(_PARTS, size)
        under = 0.5 * math.exp((0.5 - rows) / scale)
        share = under + (1.0 - under) * (np.arange(parts) + rng.random(parts)) / parts
        side = np.where(share < 0.5, 2.0 * share, 2.0 * (1.0 - share))
        # 0 has no logarithm.
        off = -np.log(np.maximum(side, 1e-300)) * scale
        # The inverse of Laplace's distribution, at one point of each of the parts.
        found = np.rint(np.where(share < 0.5, rows - off, rows + off))
        each = np.diff(np.rint(np.linspace(0, size, parts + 1))).astype(np.int64)
        for n in np.unique(found):
            yield max(1, int(n)), int(each[found == n].sum())

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that comes and moves both as far as it can."""
        design = cls(Fraction(2), target(1, 0, "add-remove"))
        first, second = (Fraction(4), 3), (Fraction(6), 4)
        yield Subject("statistic and n", seen_at_best(design, first, second), first, second)


@dataclass(frozen=True)
class ReleasedStatistic:
    """A released statistic: what the layers above it need.

    Parameters
    ----------
    value : float
    rows : int
        Public, or as measured; at least 1.
    design : StatisticRelease or StatisticWithRowsRelease
    """

    value: float
    rows: int
    design: StatisticRelease | StatisticWithRowsRelease

    @classmethod
    def of(cls, exact: Fraction, rows: int, *, moved: Fraction, asked: Target) -> ReleasedStatistic:
        """Release a statistic, with n where it is not public."""
        if asked.replace:
            known = StatisticRelease(moved, asked)
            return cls(float(known.release(exact)[0]), max(1, rows), known)
        measured = StatisticWithRowsRelease(moved, asked)
        return cls(*measured.release((exact, rows)), measured)


def result_of(
    title: str,
    null: str,
    released: ReleasedStatistic,
    simulate: Statistic,
    *,
    alternative: str = "greater",
    draws: int,
    seed: Seed,
    assumptions: tuple[str, ...] = ("rows are an independent sample",),
    loss: Loss | None = None,
    notes: tuple[str, ...] = (),
    chance: float | None = None,
    per_row: float = 0.01,
    sampling: float | None = None,
) -> PrivateTest:
    """Layers 2 and 3 of a released statistic.

    Parameters
    ----------
    simulate : callable
        Of a generator, n and a size.
    alternative : {"greater", "less", "two-sided"}
        Which statistics speak against the null.
    loss : Loss, optional
        All that it cost, where more than the statistic was released.
    chance : float, optional
        What the noise is compared with: by default the deviation that the null gives.
    per_row : float
        The least variance that a row gives the statistic: where few rows, or one group, show none.
    sampling : float, optional
        The statistic's deviation without any noise, where ``simulate`` has that of n in it.
    """
    design, rng = released.design, SimulatedDraws.fresh(seed)
    alone = np.asarray(simulate(rng, released.rows, draws), dtype=np.float64)
    sampling = float(np.std(alone)) if sampling is None else sampling
    if isinstance(design, StatisticWithRowsRelease):
        several = design.possible(rng, released.rows, draws)
        alone = np.concatenate([np.asarray(simulate(rng, n, k), float) for n, k in several])
    simulated = alone + design.draw(rng, draws)
    chance = sampling if chance is None else chance
    if chance < design.deviation:
        least = max(chance**2 / released.rows, per_row)
        needed = max(design.deviation**2 / least, released.rows + 1.0)
        notes += (too_few_rows("noise exceeds what chance gives", needed),)
    public = isinstance(design, StatisticRelease)
    return PrivateTest(
        title,
        design.loss if loss is None else loss,
        (*assumptions, "n is public" if public else "n is as measured"),
        notes,
        null,
        released.value,
        monte_carlo(released.value, simulated, alternative),
        simulated,
        noise_share=share_of_noise(design.deviation, sampling),
    )
