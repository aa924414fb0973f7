"""Layer 2 of the z-test of two means, through sums of clamped values; `_clamped_sums`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dither.inference.engine._clamped import sums_of
from dither.inference.engine._groups import Whole
from dither.inference.engine._inputs import Floats
from dither.inference.hypothesis._clamped_sums import ContrastRelease, possible

__all__ = ["TwoMeans"]


@dataclass(frozen=True)
class TwoMeans:
    """Of two means: releases of clamped normal values, and the statistic of each.

    Parameters
    ----------
    design : ContrastRelease
    rows : int
        n in all, where it is public, or as measured.
    variance : float
        Of the clamped values, which is known.
    """

    design: ContrastRelease
    rows: int
    variance: float

    def _total(self, sums: Floats) -> Floats:
        public = self.design.asked.replace
        return np.full(len(sums), float(self.rows)) if public else np.maximum(sums[:, -1], 4.0)

    def draw(
        self, rng: np.random.Generator, mean: float, deviation: float, sizes: Sequence[Whole]
    ) -> Floats:
        """Simulated releases of two groups of normal values."""
        a, b = (sums_of(mean, np.full(len(n), deviation), n, rng)[:, 0] for n in sizes)
        columns = [sizes[0] - sizes[1], a - b, a + b]
        if not self.design.asked.replace:
            columns.append(sizes[0] + sizes[1])
        return np.asarray(np.column_stack(columns) + self.design.draw(rng, len(a)))

    def possible(self, rng: np.random.Generator, found: Floats, size: int) -> list[Whole]:
        """Numbers of rows of both groups that may have been those of a release."""
        left = found - self.design.draw(rng, 8 * size)
        total = self._total(left)
        groups = [(total + sign * left[:, 0]) / 2 for sign in (1, -1)]
        held = possible((groups[0] >= 2.0) & (groups[1] >= 2.0), size)
        return [np.rint(np.maximum(n[held], 2.0)).astype(np.int64) for n in groups]

    def statistic(self, sums: Floats) -> Floats:
        """The difference of the groups, each value less the mean of all, studentised."""
        noise, total = self.design.deviations, self._total(sums)
        least = 4.0 / self.rows
        share = np.clip(sums[:, 0] / total, -1.0 + least, 1.0 - least)
        mean = np.clip(sums[:, 2] / total, -1, 1)
        contrast = sums[:, 1] - sums[:, 0] * sums[:, 2] / total
        spread = noise[1] ** 2 + (noise[2] * share) ** 2 + (noise[0] * mean) ** 2
        for sign in (1, -1):
            size = np.maximum(total * (1 + sign * share) / 2, 2.0)
            spread = spread + size * self.variance * (1 - sign * share) ** 2
        return np.asarray(contrast / np.sqrt(spread))
