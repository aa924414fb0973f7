"""Naive Bayes from one noisy vector: counts, sums and sums of squares of each class.

Statistics. A row of class k has, in the part of k, ``count`` once; of each number z, on a lattice
of ``STEPS`` from its middle to an end, ``first``·z and ``second``·q with q = 2·z²/STEPS - STEPS
rounded down; and ``cell`` in the cell of each of its categories. All are integers, and q lies in
[-STEPS, STEPS]. A row without a class that was declared adds nothing.

Sensitivity. What a row adds is zero but in its class's part, where its numbers do not depend on one
another. So, squared, a row that is added or removed moves at most

    count² + Σ max_z (first²·z² + second²·q²) + C·cell²        (C columns of categories),

and one that is replaced twice that where its class changes, and elsewhere

    Σ max_{z,z'} (first²·(z - z')² + second²·(q - q')²) + 2·C·cell²,

and in absolute value the same without squares. The largest are found by trying all z of the
lattice. The vector is a sum over rows, so that a unit with up to m of them moves it by m times as
much, and m² times where it is squared (`TableSensitivity.of_unit`).

Guarantee. (epsilon, delta)-DP of all that leaves, as `dither.learn._noise` says; pure where delta
is 0. All else is computed from it. Numbers of rows, means and variances of the classes are drawn to
those of all rows by what noise makes of their differences (James and Stein, 1961); how much they
differ without it is told by the column and by all columns together. What stays unknown of a mean
widens its class's law. So a column that noise drowns says nothing, and what is not known of many
columns does not add up to certainty.

Source. Vaidya, Shafiq, Basu and Hong, "Differentially private naive Bayes classification", WI 2013,
who add noise to each mean and deviation by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from dither._checks import Number
from dither._format import count_text, display_text, percent, wrapped
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.learn._columns import FeatureColumn, places_in
from dither.learn._conventions import no_weights
from dither.learn._estimator import (
    Classifier,
    bars,
    distinct,
    labels_of,
    probabilities,
    protected_row,
    summarised,
)
from dither.learn._noise import PrivacyParameters, RunNoise, TableSensitivity
from dither.learn._rows import Encoding, declared
from dither.privacy import Loss, Neighbours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STEPS", "BayesStatistics", "ClassSums", "GaussianNB"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

# The sensitivity is found by trying all pairs of points of the lattice: 513² of them.
STEPS = 1 << 8
_FIRST = 64
_SECOND = 40
_LEAST = 1e-4
_OF_WHOLE = 0.3
"""The share of a column's variance that lies between classes, at most, where noise is large."""
_FIRM = 3.0
_SHOWN = 12


@dataclass(frozen=True)
class ClassSums:
    """A run with its noise, fixed before any row is read.

    Parameters
    ----------
    encoding : Encoding
    classes : int
    asked : PrivacyParameters
    of_unit : int
        m: so many rows may be one unit's, at most.

    Attributes
    ----------
    count, first, second, cell : int
        The weights.
    noisy : RunNoise
    """

    encoding: Encoding
    classes: int
    asked: PrivacyParameters
    of_unit: int = 1
    count: int = field(init=False)
    cell: int = field(default=_FIRST * STEPS, init=False)
    first: int = field(default=_FIRST, init=False)
    second: int = field(default=_SECOND, init=False)
    noisy: RunNoise = field(init=False)

    def __post_init__(self) -> None:
        # Every estimate rests on the counts: they get about a fifth of what is squared.
        weight = round(0.5 * _FIRST * STEPS * math.sqrt(len(self.encoding.columns)))
        object.__setattr__(self, "count", weight)
        object.__setattr__(self, "noisy", RunNoise(*self.asked.best(self.moved)))

    @property
    def lists(self) -> int:
        """C."""
        return len(self.encoding.columns) - self.encoding.numbers

    @property
    def moved(self) -> TableSensitivity:
        """How far a unit moves what leaves; see the module."""
        return self._of_row.of_unit(self.of_unit)

    @property
    def _of_row(self) -> TableSensitivity:
        z = np.arange(-STEPS, STEPS + 1)
        ways = np.stack([self.first * z, self.second * _squared(z)])
        numbers, lists = self.encoding.numbers, self.lists

        def most(parts: Integers) -> tuple[int, int]:
            return int(np.abs(parts).sum(axis=0).max()), int((parts**2).sum(axis=0).max())

        one, square = most(ways)
        l1 = self.count + numbers * one + lists * self.cell
        l2 = self.count**2 + numbers * square + lists * self.cell**2
        coordinates = 1 + 2 * numbers + lists
        if not self.asked.replace:
            return TableSensitivity(l1, l2, coordinates)
        one, square = most(ways[:, :, None] - ways[:, None, :])
        l1 = max(2 * l1, numbers * one + 2 * lists * self.cell)
        l2 = max(2 * l2, numbers * square + 2 * lists * self.cell**2)
        return TableSensitivity(l1, l2, 2 * coordinates)

    def statistic(
        self, points: Integers, labels: Integers, stands: Integers | None = None
    ) -> Integers:
        """The exact vector, shape (classes, 1 + 2·features).

        Parameters
        ----------
        points : array of int, shape (n, features)
            Of `Encoding.points` with ``STEPS``.
        labels : array of int, shape (n,)
            The places of classes; the one after the last for a row that adds nothing.
        stands : array of int, shape (n,), optional
            How many rows each stands for; 1 where left out.
        """
        each = np.ones(len(labels), np.int64) if stands is None else stands
        numbers = self.encoding.of_numbers
        first = np.where(numbers, self.first, self.cell // STEPS)
        parts = np.column_stack([points * first, np.where(numbers, _squared(points), 0)])
        parts[:, points.shape[1] :] *= self.second
        found = np.zeros((self.classes, 1 + parts.shape[1]), np.int64)
        for k in range(self.classes):
            mine = labels == k
            found[k, 0] = self.count * int(each[mine].sum())
            found[k, 1:] = each[mine] @ parts[mine]
        return found

    def release(
        self, points: Integers, labels: Integers, stands: Integers | None = None
    ) -> BayesStatistics:
        """The one step that touches rows; parameters as of `statistic`."""
        seen = self.noisy.leave(self.statistic(points, labels, stands))
        size, numbers, noise = points.shape[1], self.encoding.of_numbers, self.noisy.deviation
        rows = _sizes(seen[:, 0] / self.count, noise / self.count)
        first = seen[:, 1 : 1 + size] / (self.first * STEPS)
        second = (seen[:, 1 + size :] / (self.second * STEPS) + rows[:, None]) / 2
        mean = np.clip(first / rows[:, None], -1.0, 1.0)
        of_rows = mean * noise / self.count
        off = np.hypot(noise / (self.first * STEPS), of_rows) / rows[:, None]
        shares = rows[:, None] / rows.sum()
        whole = second.sum(axis=0) / rows.sum() - (shares * mean).sum(axis=0) ** 2
        most = _OF_WHOLE * np.clip(whole, _LEAST, 1.0)
        mean, left = _drawn(mean, off**2, shares, numbers, 1.0, most)
        spread = np.clip(second / rows[:, None] - mean**2, 0.0, 1.0)
        off2 = (noise / (2 * self.second * STEPS) / rows[:, None]) ** 2 + (2 * mean * off) ** 2
        spread, _ = _drawn(spread, off2, shares, numbers, _FIRM, np.ones_like(most))
        # A value lies about a mean that is itself known so far.
        spread = np.clip(spread + left, _LEAST, 1.0)
        cells = self._shares(first * self.first * STEPS / self.cell)
        return BayesStatistics(self.encoding, numbers, rows, mean, spread, cells)

    def _shares(self, cells: Floats) -> Floats:
        """Logarithms of the shares of categories in each class, drawn to those of all rows."""
        found, ridge = np.zeros_like(cells), 1.0 + 2 * self.noisy.deviation / self.cell
        starts = self.encoding.starts
        for column, start, end in zip(self.encoding.columns, starts, starts[1:], strict=False):
            if not column.listed:
                continue
            held = np.maximum(cells[:, start:end], 0.0)
            # What is not listed counts as a category that holds as much as the ridge.
            among = (held.sum(axis=0) + ridge) / (held.sum() + ridge * (end - start))
            drawn = held + ridge * (end - start) * among
            found[:, start:end] = np.log(drawn / drawn.sum(axis=1, keepdims=True))
        return found

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        columns = (FeatureColumn("x", bounds=(-1.0, 1.0)),)
        for delta, of_unit, name in (
            (Fraction(0), 1, "pure"),
            (Fraction(1, 100), 1, "Gaussian"),
            (Fraction(1, 100), 2, "Gaussian, units of 2"),
        ):
            asked = PrivacyParameters(Fraction(1), delta, Neighbours.ADD_REMOVE)
            made = cls(Encoding(columns), 2, asked, of_unit)
            points = np.array([[STEPS]])
            one = made.statistic(points, np.zeros(1, np.int64)).astype(float)

            def run(
                rows: int, size: int, made: ClassSums = made, change: Floats = one * of_unit
            ) -> Floats:
                some = np.full((rows, 1), STEPS), np.zeros(rows, np.int64)
                exact = np.broadcast_to(made.statistic(*some), (size, *change.shape))
                seen = made.noisy.leave(exact)
                if made.asked.delta:
                    return np.asarray((seen * change).sum(axis=(1, 2)))
                return np.asarray((np.abs(seen) - np.abs(seen - change)).sum(axis=(1, 2)))

            yield Subject(f"sums of classes, {name}", run, 0, of_unit, delta=delta)


def _squared(points: Integers) -> Integers:
    return 2 * points**2 // STEPS - STEPS


def _sizes(seen: Floats, off: float) -> Floats:
    """Numbers of rows of classes, drawn to one size as far as noise of that deviation differs."""
    even = max(float(seen.sum()), off * math.sqrt(len(seen)), len(seen)) / len(seen)
    gaps = seen - seen.mean()
    apart, noise = float(gaps @ gaps), (len(seen) - 1) * off**2
    return np.asarray(np.maximum(even + gaps * apart / (apart + noise), max(min(off, even / 2), 1)))


def _drawn(
    values: Floats,
    off: Floats,
    shares: Floats,
    numbers: npt.NDArray[np.bool_],
    firm: float,
    most: Floats,
) -> tuple[Floats, Floats]:
    """Numbers of the classes, drawn to their mean as far as noise makes them differ.

    By how much they differ without it each column tells, and all columns together.

    Parameters
    ----------
    values, off : array of float, shape (classes, features)
        And the variance of their noise.
    shares : array of float, shape (classes, 1)
        Of rows.
    numbers : array of bool, shape (features,)
        Those features that are.
    firm : float
        How many times as much as by noise alone a column must differ to speak for itself.
    most : array of float, shape (features,)
        What the variance of the classes' numbers is at most.

    Returns
    -------
    values, left : array of float, shape (classes, features)
        And the variance of what is still not known of them.
    """
    mean = (shares * values).sum(axis=0)
    apart, noise = (shares * (values - mean) ** 2).sum(axis=0), (shares * off).sum(axis=0)
    common = float((apart - noise)[numbers].sum()) / max(int(numbers.sum()), 1)
    known = np.clip(np.maximum(apart - firm * noise, common), 0.0, most)
    kept = known / np.maximum(known + off, 1e-300)
    return np.asarray(mean + (values - mean) * kept), np.asarray(kept * off)


@dataclass(frozen=True, eq=False)
class BayesStatistics:
    """What a run leaves: of each class how many rows it has, and the laws of its columns.

    Parameters
    ----------
    encoding : Encoding
    numbers : array of bool, shape (features,)
    rows : array of float, shape (classes,)
    mean, variance : array of float, shape (classes, features)
        Of numbers, from -1 to 1.
    shares : array of float, shape (classes, features)
        Logarithms, of categories.
    """

    encoding: Encoding
    numbers: npt.NDArray[np.bool_]
    rows: Floats
    mean: Floats
    variance: Floats
    shares: Floats

    def scores(self, table: Any) -> Floats:
        """The logarithm of each class's share of rows like these, but for a constant."""
        return self.scores_of(self.encoding.points(table, STEPS))

    def scores_of(self, lattice: Integers) -> Floats:
        """The same of rows as their features on the lattice, shape (n, features)."""
        points = lattice / STEPS
        found = np.tile(np.log(self.rows / self.rows.sum()), (len(points), 1))
        for k in range(len(self.rows)):
            law = (points - self.mean[k]) ** 2 / self.variance[k] + np.log(self.variance[k])
            found[:, k] += np.where(self.numbers, -law / 2, points * self.shares[k]).sum(axis=1)
        return found

    def distances(self) -> dict[str, float]:
        """By column: Hellinger's distance of the two classes that differ most in it."""
        found, starts = {}, self.encoding.starts
        for column, start, end in zip(self.encoding.columns, starts, starts[1:], strict=False):
            if column.listed:
                half = np.exp(self.shares[:, start:end] / 2)
                alike = half @ half.T
            else:
                mean, variance = self.mean[:, start], self.variance[:, start]
                both = variance[:, None] + variance
                alike = np.sqrt(2 * np.sqrt(np.outer(variance, variance)) / both)
                alike = alike * np.exp(-((mean[:, None] - mean) ** 2) / both / 4)
            found[column.name] = math.sqrt(max(0.0, 1.0 - float(alike.min())))
        return found


class GaussianNB(Classifier):
    """Naive Bayes: each class has a normal law of each number, and shares of each category.

    Parameters
    ----------
    epsilon, delta : number
        What fitting costs; without a delta the guarantee is pure, with noise of Laplace's law.
    bounds : pair of (float or array of float)
        The least and the largest possible value of each column of numbers; others are moved there,
        and what is missing counts as the middle.
    classes : sequence
        The labels that are possible. A row with another does not count.
    categories : mapping, optional
        Of columns of categories, by name or position: the values that are possible.
    neighbours : Neighbours or str
        ``"add-remove"``, or ``"replace"`` where the number of rows is public.

    Attributes
    ----------
    loss_ : Loss
        What fitting cost.
    classes_ : array
    class_prior_ : array, shape (classes,)
    theta_, var_ : array, shape (classes, features)
        Means and variances of the numbers, in their own units; NaN for categories.

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read. What values the rows have raises nothing.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row, of the neighbours named. *Proof*,
    method and source: `dither.learn.tabular._bayes`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> size = np.tile(np.linspace(0, 1, 100), 20)
    >>> X, y = np.concatenate([size, size + 2])[:, None], np.repeat(["small", "large"], 2000)
    >>> model = learn.GaussianNB(epsilon=1, bounds=(0, 3), classes=["small", "large"]).fit(X, y)
    >>> model.predict([[0.4], [2.4]]).tolist(), model.loss_.charge.delta
    (['small', 'large'], Fraction(0, 1))
    """

    def __init__(
        self,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        classes: Sequence[Any],
        categories: Mapping[Any, Sequence[Any]] | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        self.epsilon, self.delta, self.bounds, self.classes = epsilon, delta, bounds, classes
        self.categories, self.neighbours = categories, neighbours

    def fit(self, X: Any, y: Any, sample_weight: None = None) -> Self:
        """Fit, once, at the cost of epsilon and delta.

        Parameters
        ----------
        X : array or data frame, shape (n, d)
        y : array, shape (n,)
        sample_weight : None
            Not taken: a row counts once.

        Returns
        -------
        GaussianNB
            This one.
        """
        no_weights(sample_weight)
        asked = PrivacyParameters.of(self.epsilon, self.delta, self.neighbours)
        classes = distinct(self.classes)
        run = ClassSums(Encoding(declared(X, self.bounds, self.categories)), len(classes), asked)
        points, labels = run.encoding.points(X, STEPS), places_in(classes, y)
        if len(points) != len(labels):
            raise ArgumentError("y must have one value for each row of X")
        how = protected_row(asked.neighbours)
        return self._hold(run.release(points, labels), classes, run.noisy.loss, how)

    def _hold(
        self, fitted: BayesStatistics, classes: Sequence[Any], loss: Loss, protects: str
    ) -> Self:
        """What fitting found, and whom its loss protects."""
        self.fitted_, self._protects = fitted, protects
        self.classes_ = labels_of(classes)
        return self._fitted_on(fitted.encoding.columns, loss)

    @property
    def class_prior_(self) -> Floats:
        """The classes' shares of the rows."""
        self._check_fitted()
        return np.asarray(self.fitted_.rows / self.fitted_.rows.sum())

    @property
    def theta_(self) -> Floats:
        """Means of the numbers in each class."""
        middle, half = self._units()
        return middle + self.fitted_.mean * half

    @property
    def var_(self) -> Floats:
        """Variances of the numbers in each class."""
        return self.fitted_.variance * self._units()[1] ** 2

    def _units(self) -> tuple[Floats, Floats]:
        self._check_fitted()
        encoding = self.fitted_.encoding
        middle = np.full(encoding.starts[-1], np.nan)
        half = middle.copy()
        for column, start in zip(encoding.columns, encoding.starts, strict=False):
            if column.bounds is not None:
                low, high = column.bounds
                middle[start], half[start] = low / 2 + high / 2, high / 2 - low / 2
        return middle, half

    @property
    def distances_(self) -> dict[str, float]:
        """By column: how far the laws of the two classes that differ most lie apart.

        As Hellinger's distance, from 0 to 1: of normal laws for numbers, of shares for categories.
        """
        self._check_fitted()
        return self.fitted_.distances()

    def summary(self) -> str:
        """The model in words: what it cost, whom it protects, and what tells the classes apart.

        Returns
        -------
        str
        """
        distances = self.distances_
        labels, rows = map(display_text, self.classes_.tolist()), float(self.fitted_.rows.sum())
        shares = [
            f"{label} {percent(share)}"
            for label, share in zip(labels, self.class_prior_.tolist(), strict=True)
        ]
        more = [f"and {len(shares) - _SHOWN} more"] if len(shares) > _SHOWN else []
        found = [
            *wrapped(f"classes: {', '.join(shares[:_SHOWN] + more)}"),
            "how far each column's laws of two classes lie apart at most, 0 to 1:",
            *bars(distances),
        ]
        of = f"GaussianNB: {count_text(len(distances), 'column')}"
        return summarised(of, rows, self.loss_, self._protects, found)

    def plot(self, path: str | Path | None = None) -> Figure:
        """What each class holds of the columns that tell most.

        Parameters
        ----------
        path : str or Path, optional
            Where to write the picture.

        Returns
        -------
        Figure
        """
        from dither.plots.learn._learn import draw_laws

        self._check_fitted()
        return draw_laws(self, path)

    def predict_proba(self, X: Any) -> Floats:
        """The probabilities of the classes, shape (n, classes)."""
        self._check_fitted()
        return probabilities(np.atleast_2d(self.fitted_.scores(X)))
