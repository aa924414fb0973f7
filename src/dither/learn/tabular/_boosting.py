"""Additive models by noisy boosting: one score for each cell of each column, summed over columns.

Statistics. First leave, for each of d columns, the numbers of rows in its cells. Cells of numbers
that lie side by side are then joined until each joined cell holds a fair share of the rows, far
more than the noise. Then, in each of T rounds, for one column after the other, leave the sums over
its joined cells of the residuals: of what the rows' labels are, less what the scores that are known
by then expect of them. Each sum is a step of its cell's score, divided by the curvature that its
count bounds, plus a ridge as large as the noise (larger where the noise of all columns together is
large beside the number of rows), and drawn to those of ranges of numbers beside it; since the
columns take turns, columns that say the same do not add up. The scores are the means of
those of the later half of the rounds.

Exactness. Counts are integers. A residual vector v, of length at most B, is cut towards 0 to
multiples of 1/``UNIT``, so that it is no longer; a score is looked up in a list of joined cells,
and added to the row's margin, column by column, by operations on single numbers; what is expected
at a margin is read from a table. So what a row adds to any sum depends on its own values, and on
noisy numbers that left before, wherever it stands and whatever the other rows are. Sums of such
integers are exact in doubles below 2^53, and noise is drawn from the exact discrete Gaussian law.

Sensitivity. Counts are multiplied by a whole number w, residuals by ``UNIT``. A row is in one cell
of each column. Added or removed, it moves all that leaves by at most

    d·w² + T·d·B²·UNIT²,   squared (L2).

Replaced, it leaves one cell and enters another, or changes within one: counts move by 2·d·w², and
sums by |v - v'|² <= 4·B² where the cell is the same, or |v|² + |v'|² <= 2·B². B is 1 for a number
or two classes, where |v| = |label - expected| <= 1, and √2 for more classes, where the vector of
indicators less that of probabilities, both of sum 1 and of at least 0, has squared length
(1 - p)² + Σ q² <= (1 - p)² + (Σ q)² = 2·(1 - p)².

Of a unit with up to m rows, what moves is a sum of m such vectors where the unit is added or
removed, or the difference of two such sums where it is replaced: sums of residuals move by at most
m times as much. Counts move by whole numbers of at least 0 that sum to at most m, or by two such
vectors, one added and one taken away: at most m²·w², or 2·m²·w². So all is m² times as much.

Guarantee. (epsilon, delta)-DP of all scores, edges and counts together. What is asked later depends
on what was answered, but its bound does not: the sequence is one Gaussian mechanism of that many
coordinates (Dong, Roth and Su, 2022, on the adaptive composition of Gaussian mechanisms;
`dither.mechanisms.DiscreteGaussian` on its lattice). Nothing else is read of the rows, not even how
many there are.

Source. The model, and its training under differential privacy: Nori, Caruana, Bu, Shen and
Kulkarni, "Accuracy, interpretability, and differential privacy via explainable boosting", ICML
2021. In place of their random splits each step fits all cells of a column, shrunk by the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.learn._columns import FeatureColumn
from dither.learn._noise import PrivacyParameters
from dither.mechanisms import DiscreteGaussian
from dither.privacy import Loss, Neighbours

__all__ = [
    "UNIT",
    "Boosting",
    "ColumnTerm",
    "FittedBoosting",
    "joined_cells",
    "residuals_of_classes",
    "residuals_of_numbers",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Residuals = Callable[[Floats], Integers]
"""From the margins of all rows, shape (n, m), to their residuals in units, of the same shape."""

# Sums over up to 2^43 rows are then exact in doubles.
UNIT = 1 << 10
_COUNTS = Fraction(3, 20)
"""The share of the squared sensitivity that counts have."""
_RIDGE, _TIE = 3.0, 6.0
_CLEAR = 2.0
"""Joined cells hold at least so many deviations of their noise."""
# Beyond, an exponential is below 1e-13, far less than a unit.
_REACH = 32


@dataclass(frozen=True, eq=False)
class ColumnTerm:
    """The part of one column.

    Parameters
    ----------
    column : FeatureColumn
    joined : array of int, shape (cells,)
        To which of its scores each cell of the column belongs.
    rows : array of float, shape (k,)
        Noisy counts, of at least 0.
    scores : array of float, shape (k, m)
    """

    column: FeatureColumn
    joined: Integers
    rows: Floats
    scores: Floats

    @property
    def importance(self) -> float:
        """The mean absolute score of a row, by the noisy counts."""
        weight = max(float(self.rows.sum()), 1.0)
        return float((np.abs(self.scores).max(axis=1) * self.rows).sum() / weight)

    def labels(self) -> list[str]:
        """What lies in each of the joined cells, in words."""
        joined = [np.flatnonzero(self.joined == k) for k in range(len(self.rows))]
        return [self.column.label(int(cells[0]), int(cells[-1])) for cells in joined]


@dataclass(frozen=True, eq=False)
class FittedBoosting:
    """What a run leaves.

    Parameters
    ----------
    terms : tuple of ColumnTerm
        Each with a mean score of 0, by its noisy counts.
    intercept : array of float, shape (m,)
    """

    terms: tuple[ColumnTerm, ...]
    intercept: Floats

    def margins(self, places: Sequence[Integers]) -> Floats:
        """The sums of scores of rows, shape (n, m)."""
        found = np.tile(self.intercept, (len(places[0]), 1))
        for term, cells in zip(self.terms, places, strict=True):
            found += term.scores[term.joined[cells]]
        return found


@dataclass(frozen=True, eq=False)
class Boosting:
    """A run with its noise, fixed before any row is read.

    Parameters
    ----------
    columns : tuple of FeatureColumn
    epsilon, delta : Fraction
    neighbours : Neighbours
    outputs : int
        m: 1 for a number or two classes, else the number of classes.
    curvature : float
        A bound of the second derivative of a row's loss in one score.
    bins : int
        Into how many joined cells a number's are joined, at most about.
    rounds : int
        T.
    of_unit : int
        m: so many rows may be one unit's, at most.

    Attributes
    ----------
    weight : int
        w, of the counts.
    noise : DiscreteGaussian
    loss : Loss
    """

    columns: tuple[FeatureColumn, ...]
    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours
    outputs: int
    curvature: float
    bins: int
    rounds: int
    of_unit: int = 1
    weight: int = field(init=False)
    noise: DiscreteGaussian = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        share = float(_COUNTS / (1 - _COUNTS)) * self.rounds * self._longest
        # d·w² is then `_COUNTS` of itself and T·d·B²·UNIT² together.
        object.__setattr__(self, "weight", max(1, round(UNIT * math.sqrt(share))))
        square, moved = self.l2_squared, self.coordinates
        asked = PrivacyParameters(self.epsilon, self.delta, self.neighbours)
        noise, loss = asked.gaussian(square, moved)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    @property
    def _longest(self) -> int:
        """The squared length of a row's residuals, in units of 1, at most."""
        return 1 if self.outputs == 1 else 2

    @property
    def l2_squared(self) -> int:
        """The squared L2 sensitivity of all that leaves, in multiples of 1/``UNIT``."""
        replaced = self.neighbours is Neighbours.REPLACE
        counts = (2 if replaced else 1) * self.weight**2
        sums = (4 if replaced else 1) * self._longest * UNIT**2
        return self.of_unit**2 * len(self.columns) * (counts + self.rounds * sums)

    @property
    def coordinates(self) -> int:
        """How many numbers a unit moves, at most."""
        each = self.of_unit * (2 if self.neighbours is Neighbours.REPLACE else 1)
        return each * len(self.columns) * (1 + self.rounds * self.outputs)

    @property
    def of_count(self) -> float:
        """The deviation of a count's noise, in rows."""
        return math.sqrt(self.noise.variance) / self.weight

    @property
    def of_sum(self) -> float:
        """The deviation of a sum's noise, in residuals."""
        return math.sqrt(self.noise.variance) / UNIT

    def counted(self, places: Integers, cells: int, kept: Integers) -> Floats:
        """The numbers of rows in cells, with their noise."""
        exact = np.bincount(places, kept, cells).astype(np.int64)
        return np.asarray((self.weight * exact + self.noise.draw(cells)) / self.weight)

    def summed(self, places: Integers, cells: int, residuals: Integers) -> Floats:
        """The sums of residuals over cells, with their noise, shape (cells, m)."""
        parts = [np.bincount(places, part, cells) for part in residuals.T.astype(np.float64)]
        exact = np.stack(parts, axis=1).astype(np.int64)
        return np.asarray((exact + self.noise.draw(exact.shape)) / UNIT)

    def _step(self, column: FeatureColumn, rows: Floats, sums: Floats) -> Floats:
        """What sums move scores by: less where noise is large, and alike in ranges side by side."""
        # The noise of all columns adds up in a row's margin: where that is large beside the rows,
        # each column says less.
        among = len(self.columns) * self.of_sum / max(float(rows.sum()), 1.0)
        firm = self.curvature * rows + _RIDGE * self.of_sum * (1 + among)
        if column.categories is not None or len(rows) < 3:
            return sums / firm[:, None]
        tie = _TIE * self.of_sum
        # The last is of what is missing, and lies beside none.
        ties = np.full(len(rows) - 1, tie)
        ties[-1] = 0.0
        return _tied(firm, ties, sums)

    def run(
        self,
        places: Sequence[Integers],
        kept: Integers,
        residuals: Residuals,
        seen: Callable[[int], None] | None = None,
    ) -> FittedBoosting:
        """The one step that touches rows.

        Parameters
        ----------
        places : sequence of array
            The cells of all rows, column by column.
        kept : array of int, shape (n,)
            How many rows each stands for: 1, or 0 for one that does not count since its label is
            missing.
        residuals : callable
        seen : callable, optional
            Told how many rounds are done.
        """
        counts = [
            self.counted(cells, column.cells, kept)
            for column, cells in zip(self.columns, places, strict=True)
        ]
        # Each column counts every row, so that all of them tell the same total.
        total = float(np.median([found.sum() for found in counts]))
        fair, clear = total / self.bins, _CLEAR * self.of_count
        joined = [
            joined_cells(column, found, fair, clear)
            for column, found in zip(self.columns, counts, strict=True)
        ]
        where = [groups[cells] for groups, cells in zip(joined, places, strict=True)]
        rows = [
            np.maximum(np.bincount(groups, found), 0.0)
            for groups, found in zip(joined, counts, strict=True)
        ]
        scores = [np.zeros((len(found), self.outputs)) for found in rows]
        means = [np.zeros_like(found) for found in scores]
        margins = np.zeros((len(kept), self.outputs))
        for round_ in range(self.rounds):
            for j, found in enumerate(rows):
                sums = self.summed(where[j], len(found), residuals(margins) * kept[:, None])
                step = self._step(self.columns[j], found, sums)
                # Beyond what tables of expectations tell apart, a score says no more.
                moved = np.clip(scores[j] + step, -_REACH, _REACH) - scores[j]
                scores[j] += moved
                margins += moved[where[j]]
            if 2 * round_ >= self.rounds - 1:
                for mean, found in zip(means, scores, strict=True):
                    mean += found / (self.rounds - math.ceil((self.rounds - 1) / 2))
            if seen is not None:
                seen(round_ + 1)
        return _centred(self.columns, joined, rows, means)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        column, delta = FeatureColumn("x", categories=("a",)), Fraction(1, 100)
        made = cls((column,), Fraction(1), delta, Neighbours.ADD_REMOVE, 1, 0.25, 32, 2)

        def run(rows: int, size: int) -> Floats:
            # As many cells as outputs; each number is seen as much as neighbours move it, and a
            # residual may be a whole one.
            places = np.repeat(np.arange(size), rows)
            ones = np.ones(len(places), np.int64)
            found = made.counted(places, size, ones) * made.weight**2
            for _ in range(made.rounds):
                found = found + made.summed(places, size, UNIT * ones[:, None])[:, 0] * UNIT**2
            return found

        yield Subject("boosting of an additive model", run, 1, 2, delta=delta)


def joined_cells(column: FeatureColumn, counts: Floats, fair: float, clear: float) -> Integers:
    """To which range each cell belongs: of numbers runs that hold enough, in one pass upwards.

    That is a fair share of the rows, and ``clear`` times the root of the cells in the run, which is
    how their noise grows.
    """
    if column.categories is not None:
        return np.arange(column.cells)
    found, group, start, held = np.zeros(column.cells, np.int64), 0, 0, 0.0
    for i, count in enumerate(counts[:-1].tolist()):
        found[i] = group
        held += count
        # The noise of a run grows as the root of its number of cells.
        if held >= max(fair, clear * math.sqrt(i + 1 - start)):
            group, start, held = group + 1, i + 1, 0.0
    # What is left at the end belongs to the last that held enough.
    last = max(group - 1, 0)
    found = np.minimum(found, last)
    found[-1] = last + 1
    return found


def _centred(
    columns: Sequence[FeatureColumn],
    joined: Sequence[Integers],
    rows: Sequence[Floats],
    scores: Sequence[Floats],
) -> FittedBoosting:
    terms, intercept = [], np.zeros(scores[0].shape[1])
    for column, groups, found, made in zip(columns, joined, rows, scores, strict=True):
        mean = (made * found[:, None]).sum(axis=0) / max(float(found.sum()), 1.0)
        intercept += mean
        terms.append(ColumnTerm(column, groups, found, made - mean))
    return FittedBoosting(tuple(terms), intercept)


def residuals_of_classes(labels: Integers, classes: int) -> Residuals:
    """Indicators of the rows' classes less the probabilities that margins give.

    With two classes the margin is that of the second, and its part alone is given.
    """
    two = classes == 2
    wanted = [(labels == k).astype(np.float64) for k in range(classes)]

    def found(margins: Floats) -> Integers:
        parts = [np.zeros(len(margins)), margins[:, 0]] if two else list(margins.T)
        most = parts[0]
        for part in parts[1:]:
            most = np.maximum(most, part)
        shares = [_exponentials()[_lattice(most - part)] for part in parts]
        total = shares[0]
        for share in shares[1:]:
            total = total + share
        given = (
            zip(wanted[1:], shares[1:], strict=True) if two else zip(wanted, shares, strict=True)
        )
        return np.stack([_cut(indicator - share / total) for indicator, share in given], axis=1)

    return found


def residuals_of_numbers(targets: Floats) -> Residuals:
    """Targets in [-1, 1] less the margins, cut to that length."""

    def found(margins: Floats) -> Integers:
        return _cut(np.clip(targets[:, None] - margins, -1.0, 1.0))

    return found


def _tied(own: Floats, ties: Floats, sums: Floats) -> Floats:
    """x, shape (n, q), with ``own_i·x_i + Σ ties·(x_i - its neighbours) = sums_i``.

    By Cholesky's factors of the matrix, of which only the diagonal and what lies beside it is not
    0. It is positive where ``own`` is, so nothing is exchanged.

    Parameters
    ----------
    own : array of float, shape (n,)
        Above 0.
    ties : array of float, shape (n - 1,)
        Between each and the next, at least 0.
    sums : array of float, shape (n, q)

    Examples
    --------
    >>> _tied(np.array([1.0, 1.0]), np.array([1.0]), np.array([[3.0], [0.0]])).ravel().tolist()
    [2.0, 1.0]
    """
    # Eliminated without pivots: on the diagonal stands more than beside it, as each `own` is above
    # 0.
    diagonal = (own + np.append(ties, 0.0) + np.append(0.0, ties)).tolist()
    shares = []
    for i, tie in enumerate(ties.tolist()):
        share = tie / diagonal[i]
        shares.append(share)
        diagonal[i + 1] -= share * tie
    solved = []
    for column in sums.T.tolist():
        for i, share in enumerate(shares):
            column[i + 1] += share * column[i]
        column = [x / by for x, by in zip(column, diagonal, strict=True)]
        for i in reversed(range(len(shares))):
            column[i] += shares[i] * column[i + 1]
        solved.append(column)
    return np.array(solved).T


def _cut(values: Floats) -> Integers:
    return np.trunc(np.clip(values, -1.0, 1.0) * UNIT).astype(np.int64)


def _lattice(depths: Floats) -> Integers:
    return np.rint(np.clip(depths, 0, _REACH) * UNIT).astype(np.int64)


@cache
def _exponentials() -> Floats:
    """exp(-x) at the multiples of 1/UNIT up to REACH."""
    return np.array([math.exp(-k / UNIT) for k in range(_REACH * UNIT + 1)])
