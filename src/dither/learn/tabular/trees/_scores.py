"""What splits of trees are chosen by: scores of rows, and the range of what one row changes.

A row has scores, integers that follow from its target and from numbers that left before, and the
utility of a split is that of the scores on its left and that of those on its right. Where a row is
added to the node, it is on one side of each split: if that side's utility then rises by something
in an interval R long, the same for all splits, so do the utilities of all of them. Where it is
removed, the same with the sign turned.

- Classes, with few rows beside the noise: the largest of the sums of scores. A row has its
  ``WEIGHT``, less for a class with more rows, in the place of its class, and 0 elsewhere: the
  weight of the rows that a split puts right, each side taken for one class. It rises by something
  from 0 to WEIGHT, which is R.
- Classes, with many: S²/n, of the n rows and the sums S of their targets v, which are 1 in the
  place of the class. It is n less the squares about the mean S/n, so that with one more row v it
  rises by 1 - n/(n + 1)·|v - S/n|², and |v - S/n|² is at most 2: R. Multiplied by ``WEIGHT`` and
  rounded down, it rises by less than 1 more or less than that: whole numbers that lie less than
  2·WEIGHT + 2 apart, 2·WEIGHT + 1 at most.
- Numbers: |Σ s|, s being the target less the node's centre, but no further from 0 than ``FAR``. It
  rises by something from -|s| to |s|, so that R = 2·FAR. The centre is about the mean of the node,
  from what left: were it another, the sums of both sides might have one sign, and all splits would
  be as good. Squares as above would have an R of (2·UNIT)², beside which what a split gains is
  little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["FAR", "FIRM", "UNIT", "WEIGHT", "Scores", "moved_centre", "of_classes", "of_numbers"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

UNIT = 1 << 8
"""What the ends of a number's bounds are: targets go from -UNIT to UNIT."""
WEIGHT = 1 << 8
FAR = UNIT // 4
_MANY = 60
"""Rows times the epsilon of a level, from which on they are many."""
FIRM = 2.0
"""How firmly a node is drawn to the one above: as by so many deviations of its noise, in rows."""


@dataclass(frozen=True)
class Scores:
    """What splits are chosen by.

    Parameters
    ----------
    rows : array of int, shape (n, k)
        The scores of classes; of numbers how many rows each stands for, and the sum of its targets.
    span : int
        R.
    utility : callable
        Of sums of scores on one side, shape (k, splits), for each split.
    centre : int, optional
        Of numbers: that of all rows.
    """

    rows: Integers
    span: int
    utility: Callable[[Integers], Integers]
    centre: int | None = None

    def of(self, rows: Integers, centre: int | None) -> Floats:
        """The scores of a node's rows, shape (k, rows)."""
        held = self.rows[rows].T
        if centre is not None:
            counts, targets = held
            score = np.clip(targets - centre * counts, -FAR * counts, FAR * counts)
            held = np.stack([score, -score])
        return np.asarray(held.astype(np.float64))


def of_classes(targets: Integers, whole: Floats, off: float, clear: float) -> Scores:
    """Scores of classes.

    Parameters
    ----------
    targets : array of int, shape (n, classes)
    whole : array, shape (classes,)
        Noisy numbers of rows.
    off : float
        The deviation of their noise.
    clear : float
        About how many rows there are, times the epsilon of a level.
    """
    if clear > _MANY:
        return Scores(targets, 2 * WEIGHT + 1, _squares)
    # Where noise is large, as if classes had as many rows.
    held = np.maximum(whole, 0.0) + 2 * off
    weights = np.rint(WEIGHT * held.min() / held).astype(np.int64)
    return Scores(targets * weights, WEIGHT, _largest)


def of_numbers(targets: Integers, whole: Floats, off: float) -> Scores:
    """Scores of numbers.

    Parameters
    ----------
    targets : array of int, shape (n, 2)
        UNIT and the target of each row, times how many rows it stands for.
    whole : array, shape (2,)
        The noisy number of rows, and the noisy sum of their targets in ``UNIT``.
    off : float
        The deviation of their noise.
    """
    centre = round(UNIT * min(max(whole[1] / max(whole[0], off, 1.0), -1.0), 1.0))
    pair = np.column_stack([targets[:, 0] // UNIT, targets[:, 1]])
    return Scores(pair, 2 * FAR, _largest, centre)


def moved_centre(centre: int, sums: Floats, off: float) -> int:
    """The centre of a node, drawn to that of the node above as far as noise is large.

    Parameters
    ----------
    centre : int
        Of the node above.
    sums : array, shape (2,)
    off : float
        As in `of_numbers`.
    """
    rows = max(float(sums[0]), 0.0)
    mean = (UNIT * float(sums[1]) + centre * FIRM * off) / (rows + FIRM * off)
    return round(min(max(mean, -UNIT), UNIT))


def _largest(sums: Integers) -> Integers:
    return np.asarray(sums.max(axis=0))


def _squares(sums: Integers) -> Integers:
    # Whole numbers of any size, as squares outgrow 64 bits.
    exact = sums.astype(object)
    return np.asarray(WEIGHT * (exact**2).sum(axis=0) // np.maximum(sums.sum(axis=0), 1))
