"""How one tree grows whose splits are chosen with noise, level by level.

Candidates are cuts of some columns that are drawn by chance, without regard to rows. Which node a
row is in depends on its own values, and on what left before: it is in one node of a level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
import numpy.typing as npt

from dither import noise as randomness
from dither.learn._noise import Noise
from dither.learn.tabular.trees._plans import ForestPlan
from dither.learn.tabular.trees._scores import Scores, moved_centre
from dither.learn.tabular.trees._tree import Ends, Tree, cuts_of, halved

__all__ = ["Growth", "NoisyTables"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SHARE = 3
"""One column in so many is tried for a split, where that is more than asked for."""


class NoisyTables(Protocol):
    """What leaves of the rows, with its noise: `dither.learn.tabular.trees._trees.Trees`."""

    def table(self, noise: Noise, places: Integers, cells: int, targets: Integers) -> Floats:
        """Sums of targets over cells."""
        ...

    def deviation(self, noise: Noise) -> float:
        """Of one of these sums."""
        ...

    def choose(self, level: Fraction, span: int, utilities: Integers) -> int:
        """One candidate of a node."""
        ...


@dataclass(frozen=True, eq=False)
class Growth:
    """Trees of one run, on the same rows.

    Parameters
    ----------
    leaving : NoisyTables
    plan : ForestPlan
    codes : array of int, shape (n, d)
        Rows as trees read them.
    targets : array of int, shape (n, m)
    scores : Scores
    most : array of int, shape (d,)
        The largest code of each column.
    tries : int
        How many columns are tried for a split, at least.
    """

    leaving: NoisyTables
    plan: ForestPlan
    codes: Integers
    targets: Integers
    scores: Scores
    most: Integers
    tries: int

    def tree(self) -> Tree:
        """One tree."""
        tree = Tree()
        ends: dict[int, Ends] = {0: (np.zeros_like(self.most), self.most)}
        rows = {0: np.arange(len(self.codes))}
        centres = {0: self.scores.centre}
        for level in range(self.plan.depth):
            if level and self.scores.centre is not None:
                centres = self._centres(rows, centres)
            below: dict[int, Ends] = {}
            held: dict[int, Integers] = {}
            above: dict[int, int | None] = {}
            for node, (low, high) in ends.items():
                free = np.flatnonzero(high > low)
                if not len(free):
                    continue
                tried = free[randomness.permutation(len(free))[: self._tries]].tolist()
                mine = rows[node]
                column, code = self._split(mine, centres[node], tried, ends[node])
                new = halved(tree, node, ends[node], column, code)
                right = self.codes[mine, column] > code
                held |= dict(zip(new, (mine[~right], mine[right]), strict=True))
                above |= dict.fromkeys(new, centres[node])
                below |= new
            ends, rows, centres = below, held, above
        return tree

    @property
    def _tries(self) -> int:
        columns = len(self.most)
        if self.plan.trees * self.plan.depth == 1:
            return columns
        return max(self.tries, math.ceil(columns / _SHARE))

    def _centres(
        self, rows: dict[int, Integers], above: dict[int, int | None]
    ) -> dict[int, int | None]:
        """Of each node of a level, by one table: a row is in one of them, or in none."""
        if not rows:
            return {}
        which = np.concatenate(list(rows.values()))
        places = np.repeat(np.arange(len(rows)), [len(held) for held in rows.values()])
        noise = self.plan.centres
        sums = self.leaving.table(noise, places, len(rows), self.targets[which])
        off = self.leaving.deviation(noise)
        pairs = zip(above.items(), sums, strict=True)
        return {
            node: None if centre is None else moved_centre(centre, found, off)
            for (node, centre), found in pairs
        }

    def _split(
        self, rows: Integers, centre: int | None, tried: Sequence[int], ends: Ends
    ) -> tuple[int, int]:
        """A column and a code of a node, one of the candidates."""
        scores = self.scores.of(rows, centre)
        asked: list[tuple[int, int]] = []
        utilities = []
        for column in tried:
            low, high = int(ends[0][column]), int(ends[1][column])
            cuts = cuts_of(low, high)
            code, size = self.codes[rows, column], high + 1
            sums = np.array([np.bincount(code, part, size) for part in scores]).astype(np.int64)
            rising = np.cumsum(sums, axis=1)
            lefts, rights = rising[:, cuts], rising[:, -1:] - rising[:, cuts]
            utilities.append(self.scores.utility(lefts) + self.scores.utility(rights))
            asked += [(column, int(cut)) for cut in cuts]
        found = np.concatenate(utilities)
        return asked[self.leaving.choose(self.plan.level, self.scores.span, found)]
