"""Levels of a table that add up: the least squares of noisy sums over several sets of keys.

A table of counts or sums x has an axis for each key, with n_i values. Level S holds its sums over
the axes that are not in S: y_S = M_S x + Z_S, released for several S, with noise of one variance in
every cell of every level. The x that minimises Σ_S |y_S - M_S x|² gives levels M_S x that add up.

The solution in closed form. M_S is a product over the axes: the identity where i is in S, a sum
where it is not. So M_S' M_S is a product of identities and of matrices J of ones, which are
diagonal together: on the part T of x, which varies along the axes in T with mean 0 along each, and
is constant along the others, M_S' M_S is Π_{i not in S} n_i where T is within S, and 0 elsewhere.
With b = Σ_S M_S' y_S and λ_T = Σ_{S ⊇ T} Π_{i not in S} n_i ::

    M_S x = Σ_{T ⊆ S} Π_{i not in S} n_i · b_T / λ_T,

where b_T is the part of b: its mean over the axes outside T, less its means along each axis of T.
A part T that is within no level is in none of the sums, and needs no answer.

What is unbiased. The fit is linear, and where each y_S has the mean M_S x, so has the fit: it is
unbiased if the exact levels add up, which whoever calls sees to. Its variance in each cell is at
most that of y_S (Gauss and Markov), equal for all cells of a level, and known: each cell of level S
is the sum of each noise times a weight that depends on the level S' of the noise and on the axes
of S and S' along which both lie in one place, at the places E ::

    w = Π_{i in neither} n_i · Σ_{T ⊆ S ∩ S'} 1/λ_T · Π_{i in T} ([i in E] - 1/n_i)
                                                  · Π_{i in S ∩ S', not in T} 1/n_i.

So many noises have it: Π_{i in S', not in S} n_i · Π_{i in S ∩ S', not in E} (n_i - 1).

By how much one unit can change all levels. The limits are applied once, to the cells of the table,
which no level need have: a unit contributes a vector u of at most k entries that are not zero, each
at most m in size, and lying in an interval of length w that holds 0. A cell of level S holds c =
Π_{i not in S} n_i of the table's. With k_j of the entries in cell j of S, the sum there is at most
k_j m in size, where k_j <= c and Σ k_j <= k. So ‖M_S u‖₁ <= k m, and ‖M_S u‖₂² <= m² Σ k_j², which
is convex in the k_j and so largest where they are as unequal as can be: at most m² t, where
t = q c² + r² and k = q c + r, r < c. Over all levels these are added up.

Where a unit is replaced, by one that contributes v: ‖M_S (u - v)‖₁ <= 2 k m. In cell j the two sums
lie k_j a + k'_j b apart at most, or k'_j a + k_j b, where a = m and b = w - m are the ends of the
interval of which one is on each side of 0; by Cauchy and Schwarz its square is at most (a² + b²)
(k_j² + k'_j²), and in all 2 (a² + b²) t. Where c = 1 the bound of a single level is smaller, k
max(w², 2 m²), and where S has a single cell the difference is at most k w in size.

Source. Hay, Rastogi, Miklau & Suciu, "Boosting the accuracy of differentially private histograms
through consistency", VLDB 2010, for a tree; the parts are those of the analysis of variance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import QueryError
from dither.plan.job import GroupKey, Job, Measurement, Rows, Total, Units, Values
from dither.plan.lowering.sensitivity import MeasurementSensitivity, reach

__all__ = ["MOST_KEYS", "Levels", "check_sums", "levels_of", "sensitivity_of_levels"]

MOST_AXES = 6
"""The parts are as many as the axes have subsets."""

MOST_KEYS = 1_000_000
"""More public keys than this are refused: their product is the size of the release."""

Set = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Levels:
    """Sums of a table over several sets of its axes.

    Parameters
    ----------
    sizes : tuple of int
        How many values each axis has; at most ``MOST_AXES``.
    sets : tuple of tuple of int
        The axes that each level has, rising; its cells are in the order of its places, the last
        axis fastest.

    Examples
    --------
    >>> levels = Levels((2, 2), ((0, 1), (0,), ()))
    >>> exact = levels.sums(np.array([5, 1, 2, 4]))
    >>> exact.tolist()
    [5, 1, 2, 4, 6, 6, 12]
    >>> noisy = exact + np.array([1, 0, 0, 0, 0, 0, 0])
    >>> levels.fitted(noisy).round(2).tolist()
    [5.62, 0.62, 1.95, 3.95, 6.24, 5.9, 12.14]
    """

    sizes: tuple[int, ...]
    sets: tuple[Set, ...]

    def cells(self, one: Set) -> int:
        """How many cells a level has."""
        return prod(self.sizes[i] for i in one)

    def inside(self, one: Set) -> int:
        """How many cells of the whole table a cell of a level holds."""
        return prod(n for i, n in enumerate(self.sizes) if i not in one)

    @property
    def slices(self) -> list[slice]:
        """Where each level lies among the cells of all."""
        ends = np.cumsum([0, *(self.cells(one) for one in self.sets)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    def sums(self, table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The exact sums of every level, one level after another, of a table given cell by cell."""
        whole = np.asarray(table).reshape(self.sizes)
        axes = range(len(self.sizes))
        parts = [whole.sum(axis=tuple(i for i in axes if i not in one)) for one in self.sets]
        return np.concatenate([np.asarray(part, dtype=whole.dtype).ravel() for part in parts])

    def fitted(self, noisy: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The levels that add up and are nearest to what was released: arrays as ``sums`` gives."""
        values = np.asarray(noisy, dtype=np.float64)
        axes = range(len(self.sizes))
        back = np.zeros((1,) * len(self.sizes))
        for one, place in zip(self.sets, self.slices, strict=True):
            back = back + values[place].reshape([self.sizes[i] if i in one else 1 for i in axes])
        back = np.broadcast_to(back, self.sizes)
        found = []
        parts = self._parts(back)
        for one in self.sets:
            level = np.zeros([self.sizes[i] if i in one else 1 for i in axes])
            for part in _subsets(one):
                # λ is not 0: the part lies within this level, which is among those that see it.
                level = level + parts[part] * (self.inside(one) / self._weight(part))
            found.append(level.ravel())
        return np.concatenate(found)

    def weights(self, at: int) -> list[tuple[float, int]]:
        """How often each weight multiplies a noise in a cell of a level, those of 0 left out."""
        here = self.sets[at]
        seen = {part: self._weight(part) for part in _subsets(here)}
        found: dict[float, int] = {}
        for there in self.sets:
            both = tuple(i for i in here if i in there)
            rest = tuple(i for i in there if i not in here)
            outside = self.inside(tuple({*here, *there}))
            for same in _subsets(both):
                weight = outside * sum(
                    prod((i in same) - 1 / self.sizes[i] for i in part)
                    / (seen[part] * prod(self.sizes[i] for i in both if i not in part))
                    for part in _subsets(both)
                )
                number = self.cells(rest) * prod(self.sizes[i] - 1 for i in both if i not in same)
                if number and weight:
                    found[weight] = found.get(weight, 0) + number
        return list(found.items())

    def _weight(self, part: Set) -> int:
        """λ of the docstring: how often the levels see a part."""
        return sum(self.inside(one) for one in self.sets if {*part} <= {*one})

    def _parts(self, table: npt.NDArray[np.float64]) -> dict[Set, npt.NDArray[np.float64]]:
        """A table as the sum of its parts, each of the size that it varies in."""
        parts: dict[Set, npt.NDArray[np.float64]] = {(): table}
        for axis in range(len(self.sizes)):
            split = {}
            for part, values in parts.items():
                mean = values.mean(axis=axis, keepdims=True)
                split[part] = mean
                if any({*part, axis} <= {*one} for one in self.sets):
                    split[*part, axis] = values - mean
            parts = split
        return parts


def _subsets(of: Sequence[int]) -> Iterable[Set]:
    return (some for size in range(len(of) + 1) for some in combinations(of, size))


def sensitivity_of_levels(
    measurement: Measurement,
    levels: Levels,
    *,
    max_groups: int,
    max_rows: int,
    replace_one: bool,
) -> MeasurementSensitivity:
    """The sensitivity of a measurement's sums over all levels, as the docstring above proves it.

    Examples
    --------
    >>> from dither.plan.job import Rows
    >>> levels = Levels((4, 3), ((0, 1), (0,), ()))
    >>> sensitivity_of_levels(
    ...     Rows(), levels, max_groups=5, max_rows=1, replace_one=False).l2_squared
    Fraction(43, 1)
    """
    size, width = reach(measurement, max_rows)
    k = min(max_groups, prod(levels.sizes))
    other = width - size
    l1 = l2_squared = 0
    for one in levels.sets:
        inside = levels.inside(one)
        whole, rest = divmod(k, inside)
        # Convex in how the unit's entries are spread over cells: as many full cells as there can
        # be.
        squares = whole * inside * inside + rest * rest
        if not replace_one:
            l1, l2_squared = l1 + k * size, l2_squared + squares * size * size
        # Both units' sums meet in one cell, where they differ by the width of what each can add up
        # to.
        elif levels.cells(one) == 1:
            l1, l2_squared = l1 + k * width, l2_squared + (k * width) ** 2
        else:
            spread = 2 * squares * (size * size + other * other)
            if inside == 1:
                # A cell of the level is one of the table's: the bound of `sensitivity`, which is
                # smaller.
                spread = k * max(width * width, 2 * size * size)
            l1, l2_squared = l1 + 2 * k * size, l2_squared + spread
    largest = size * min(k, max(levels.inside(one) for one in levels.sets))
    return MeasurementSensitivity(largest, k, Fraction(l1), Fraction(l2_squared))


def levels_of(keys: Sequence[GroupKey], sets: tuple[tuple[int, ...], ...]) -> Levels:
    """The sums of a table of public keys that are to add up."""
    for key in keys:
        if key.values is None:
            raise QueryError(
                f"consistent: levels add up over public keys, and those of {key.name!r} would be "
                "discovered; declare its values or bins in the policy, learn its values for "
                'epsilon 0.1 with session.learn(table, column, kind="keys", epsilon=0.1), or leave '
                "consistent out"
            )
    if len(keys) > MOST_AXES:
        raise QueryError(f"consistent: levels of more than {MOST_AXES} keys; group by fewer")
    levels = Levels(tuple(len(key.values or ()) for key in keys), sets)
    if prod(levels.sizes) > MOST_KEYS:
        raise QueryError(
            f"consistent: the keys have {prod(levels.sizes):,} public combinations, more than "
            f"{MOST_KEYS:,}; group by fewer or coarser keys"
        )
    return levels


def check_sums(job: Job) -> None:
    """Refuse what is not a sum over the groups of a table."""
    for measurement in job.measurements:
        once = isinstance(measurement, Units) or getattr(measurement, "once", False)
        if isinstance(measurement, Rows | Total | Values) and not once:
            continue
        if once and job.max_groups == 1:
            continue
        raise QueryError(
            "consistent: only counts of rows, sums, and what follows from them add up over groups; "
            "distinct values, quantiles, and units that count in several groups do not. Leave them "
            "out, or leave consistent out"
            + (", or set max_groups = 1, where each unit counts in one group" if once else "")
        )
