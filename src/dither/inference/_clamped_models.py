"""Layer 2 of tests through sums of clamped values: one mean, two, and several; `_clamped_sums`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dither.inference._clamped import ClampedNormal, deviations_of, sums_of
from dither.inference._clamped_sums import LEAST, ContrastRelease, GroupMomentsRelease, possible
from dither.inference._groups import Whole
from dither.inference._inputs import Floats
from dither.inference._mean import MeanRelease
from dither.inference._release import spread_of

__all__ = ["GroupMeans", "OneMean", "TwoMeans"]


@dataclass(frozen=True)
class OneMean:
    """Of one mean: releases of clamped normal values, and the statistic of each.

    Parameters
    ----------
    design : MeanRelease
        Without the numbers of values beyond the bounds.
    rows : int
        n where it is public, or as measured.
    """

    design: MeanRelease
    rows: int

    @property
    def weights(self) -> Floats:
        """Of each number that is released."""
        all_three = (1.0, float(self.design.square), float(self.design.count))
        return np.array(all_three[: self.design.dimension])

    @property
    def deviation(self) -> float:
        """Of the noise of the sum."""
        return spread_of(self.design.noise).deviation

    def noise(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise of Σ t, Σ (t² - ½) and, where it is measured, n."""
        drawn = spread_of(self.design.noise).draw(rng, (size, self.weights.size))
        return np.asarray(drawn / self.weights)

    def draw(
        self, rng: np.random.Generator, mean: float, deviations: Floats, sizes: Whole
    ) -> Floats:
        """Simulated releases of normal values."""
        sums = sums_of(mean, deviations, sizes, rng)
        columns = np.column_stack([sums[:, 0], sums[:, 1] - sizes / 2, sizes])
        return np.asarray(columns[:, : self.weights.size] + self.noise(rng, sizes.size))

    def possible(
        self, rng: np.random.Generator, found: Floats, mean: float, size: int
    ) -> tuple[Floats, Whole]:
        """Deviations and numbers of rows that may have been those of a release."""
        left = found - self.noise(rng, 4 * size)
        rows = np.full(len(left), float(self.rows)) if left.shape[1] == 2 else left[:, 2]
        n = np.maximum(rows, 2.0)
        variance = left[:, 1] / n + 0.5 - np.clip(left[:, 0] / n, -1, 1) ** 2
        held = possible((rows >= 2.0) & (variance > LEAST) & (variance < 1.0), size)
        deviations = deviations_of(mean, np.clip(variance[held], LEAST, 1.0))
        return deviations, np.rint(n[held]).astype(np.int64)

    def statistic(self, sums: Floats, centre: float) -> Floats:
        """How far Σ t is from n values' of which each is expected at the centre, studentised."""
        measured = sums.shape[1] == 3
        total = np.maximum(sums[:, 2], 2.0) if measured else float(self.rows)
        mean = np.clip(sums[:, 0] / total, -1, 1)
        variance = np.maximum(sums[:, 1] / total + 0.5 - mean**2, LEAST)
        counted = (self.deviation * centre / float(self.design.count)) ** 2 if measured else 0.0
        spread = total * variance + self.deviation**2 + counted
        return np.asarray((sums[:, 0] - total * centre) / np.sqrt(spread))


@dataclass(frozen=True)
class TwoMeans:
    """Of two means: releases of clamped normal values, and the statistic of each.

    Parameters
    ----------
    design : ContrastRelease
    rows : int
        n in all, where it is public, or as measured.
    variance : float
        Of the clamped values, where it is known.
    """

    design: ContrastRelease
    rows: int
    variance: float = 0.0

    def _total(self, sums: Floats) -> Floats:
        public = self.design.asked.replace
        return np.full(len(sums), float(self.rows)) if public else np.maximum(sums[:, -1], 4.0)

    def moments(self, sums: Floats) -> list[tuple[Floats, Floats, Floats]]:
        """Number of rows, mean and mean square of each group, as the sums have them."""
        total, found = self._total(sums), []
        for sign in (1, -1):
            size = (total + sign * sums[:, 0]) / 2
            rows = np.maximum(size, 2.0)
            mean = np.clip((sums[:, 2] + sign * sums[:, 1]) / 2 / rows, -1, 1)
            square = np.full(len(sums), 0.5)
            if self.design.squares:
                square += (sums[:, 3] + sign * sums[:, 4]) / 2 / rows
            found.append((size, mean, square))
        return found

    def draw(
        self,
        rng: np.random.Generator,
        means: Sequence[float],
        deviations: Sequence[Floats],
        sizes: Sequence[Whole],
    ) -> Floats:
        """Simulated releases of two groups of normal values."""
        a, b = (sums_of(*each, rng) for each in zip(means, deviations, sizes, strict=True))
        for sums, size in zip((a, b), sizes, strict=True):
            sums[:, 1] -= size / 2
        columns = [sizes[0] - sizes[1], a[:, 0] - b[:, 0], a[:, 0] + b[:, 0]]
        if self.design.squares:
            columns += [a[:, 1] + b[:, 1], a[:, 1] - b[:, 1]]
        if not self.design.asked.replace:
            columns.append(sizes[0] + sizes[1])
        return np.asarray(np.column_stack(columns) + self.design.draw(rng, len(a)))

    def possible(
        self, rng: np.random.Generator, found: Floats, means: Sequence[float], size: int
    ) -> tuple[list[Floats], list[Whole]]:
        """Deviations and numbers of rows that may have been those of a release."""
        groups = self.moments(found - self.design.draw(rng, 8 * size))
        valid, variances = np.ones(8 * size, dtype=bool), []
        for rows, mean, square in groups:
            variance = square - mean**2 if self.design.squares else np.full(8 * size, self.variance)
            valid &= (rows >= 2.0) & (variance > LEAST) & (variance < 1.0)
            variances.append(np.clip(variance, LEAST, 1.0))
        held = possible(valid, size)
        sizes = [np.rint(np.maximum(rows[held], 2.0)).astype(np.int64) for rows, _, _ in groups]
        pairs = zip(means, variances, strict=True)
        return [deviations_of(m, variance[held]) for m, variance in pairs], sizes

    def statistic(self, sums: Floats) -> Floats:
        """The difference of the groups, each value less the mean of all, studentised."""
        noise, total = self.design.deviations, self._total(sums)
        least = 4.0 / self.rows
        share = np.clip(sums[:, 0] / total, -1.0 + least, 1.0 - least)
        mean = np.clip(sums[:, 2] / total, -1, 1)
        contrast = sums[:, 1] - sums[:, 0] * sums[:, 2] / total
        spread = noise[1] ** 2 + (noise[2] * share) ** 2 + (noise[0] * mean) ** 2
        for sign, (_, middle, square) in zip((1, -1), self.moments(sums), strict=True):
            size = np.maximum(total * (1 + sign * share) / 2, 2.0)
            known = np.full(len(sums), self.variance)
            variance = np.clip(square - middle**2, LEAST, 1.0) if self.design.squares else known
            spread = spread + size * variance * (1 - sign * share) ** 2
        return np.asarray(contrast / np.sqrt(spread))


@dataclass(frozen=True)
class GroupMeans:
    """Of several means: releases of clamped normal values, and the statistic of each.

    Parameters
    ----------
    design : GroupMomentsRelease
    """

    design: GroupMomentsRelease

    def draw(
        self,
        rng: np.random.Generator,
        laws: Sequence[ClampedNormal],
        sizes: Sequence[int],
        size: int,
    ) -> Floats:
        """Simulated releases of groups of these laws and numbers of rows."""
        columns = []
        for law, rows in zip(laws, sizes, strict=True):
            sums = law.sums(int(rows), size, rng)
            columns += [np.full(size, float(rows)), sums[:, 0], sums[:, 1] - rows / 2]
        return np.asarray(np.column_stack(columns) + self.design.draw(rng, size))

    def statistic(self, sums: Floats) -> Floats:
        """Squared differences from the mean of all, each studentised, added up."""
        noise, count = self.design.deviations, np.maximum(sums[:, 0::3], 2.0)
        total = count.sum(axis=1, keepdims=True)
        middle = np.clip(sums[:, 1::3].sum(axis=1, keepdims=True) / total, -1, 1)
        off = sums[:, 1::3] - sums[:, 0::3] * middle
        means = np.clip(sums[:, 1::3] / count, -1, 1)
        within = (sums[:, 2::3] + sums[:, 0::3] / 2 - count * means**2).sum(axis=1, keepdims=True)
        variance = np.clip(within / total, LEAST, 1.0)
        spread = count * variance + noise[1] ** 2 + (noise[0] * middle) ** 2
        return np.asarray((off**2 / spread).sum(axis=1))
