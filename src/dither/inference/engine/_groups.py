"""Samples of several groups as one table, and how many rows each group has, which is private.

Release. Numbers of rows of the groups are needed for the null's spread, and leave beside, for a
tenth of epsilon, as `TableRelease`. The null is taken at those, drawn towards groups alike by one
and a half deviations of their noise: it is then too wide rather than too narrow.

Model. Groups are dealt at random among rows: all permutations are equally likely under the null.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.inference.engine._inputs import Floats, Target, column
from dither.inference.hypothesis._contingency import TableRelease
from dither.privacy import Loss

__all__ = [
    "GroupSizes",
    "Whole",
    "dealt",
    "pooled",
]

Whole = npt.NDArray[np.int64]

_SIZES = Fraction(1, 10)
"""The share of epsilon that the numbers of rows of groups cost."""

_TOWARDS = 1.5
"""Deviations of its noise by which a measured group is taken to be nearer to the others."""


def pooled(names: Sequence[str], samples: Sequence[Any], asked: Target) -> tuple[Floats, Whole]:
    """All samples as one table of values and groups, under ADD_REMOVE of what is not missing."""
    found = [column(name, sample) for name, sample in zip(names, samples, strict=True)]
    values = np.concatenate(found)
    places = np.repeat(np.arange(len(found)), [len(s) for s in found])
    if not asked.replace:
        known = ~np.isnan(values)
        values, places = values[known], places[known]
    return values, places


@dataclass(frozen=True)
class GroupSizes:
    """Shares of groups for the null of a test: measured, and drawn towards groups alike.

    Parameters
    ----------
    shares : array of float, shape (k,)
    loss : Loss
    """

    shares: Floats
    loss: Loss

    @classmethod
    def release(cls, places: Whole, k: int, asked: Target) -> GroupSizes:
        """Measure the numbers of rows of groups for a tenth of epsilon."""
        pure = Target(asked.epsilon * _SIZES, Fraction(0), asked.neighbours)
        design = TableRelease((k,), pure)
        counts = design.release([places])
        n = float(places.size) if asked.replace else max(1.0, float(counts.sum()))
        off = counts - counts.mean()
        # Of one of k noises less their mean.
        deviation = math.sqrt(design.noise.variance * (1 - 1 / k))
        near = np.sign(off) * np.maximum(0.0, np.abs(off) - _TOWARDS * deviation)
        # Half a row at least: a group of none would have no place in the null.
        shares = np.maximum(1.0 / k + near / max(1.0, n), 0.5 / max(1.0, n))
        return cls(shares / shares.sum(), design.loss)

    @staticmethod
    def rest(asked: Target) -> Target:
        """What is left for the statistic."""
        return Target(asked.epsilon * (1 - _SIZES), asked.delta, asked.neighbours)


def dealt(shares: Floats, n: int) -> npt.NDArray[np.int64]:
    """Places of n rows in groups of these shares."""
    # Ends are rounded and not sizes, so that these add up to n.
    ends = np.rint(np.cumsum(shares) * n).astype(np.int64)
    return np.asarray(np.searchsorted(ends, np.arange(n), side="right"), dtype=np.int64)
