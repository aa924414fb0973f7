"""k-means: first centres from a coarse noisy map, then Lloyd's steps on noisy sums.

1. How many rows there are, their mean and their typical length about it leave as of one ball
   (`dither.learn.tabular._balls`). Where the mean's noise is large beside that length, it leaves
   once more with a larger weight; where that would take more than ``_MOST`` of what is left, all of
   it goes there, and the centres are those of a normal law with that mean and length.
2. In more than ``PLAIN`` dimensions the products of rows leave (`dither.learn.tabular._pca`), and
   what follows is seen along the principal axes that stand above noise, ``AXES`` at most; in fewer
   along the columns.
3. Noisy counts of cells give first centres (`dither.learn.tabular._cells`), on as many levels as
   noise lets be told apart.
4. In each of T steps or fewer the rows that are nearest to each centre leave as of k balls, one
   about each, whose radius is ``REACH`` times the typical distance, as what left before tells it: a
   row moves sums no further than that, so that noise is as small as the clusters are, not as the
   bounds. A centre moves to the noisy mean of its rows, less far where noise is large, along those
   axes and across them by a factor each. Fewer steps have larger weights: one where noise is large.

Sensitivity. In the plan, of which the second look at the mean is no part, the sum of those of the
parts, which each of them proves: a row belongs to one ball of a step, by its own values and what
left before. A run that departs from the plan takes no more
(`dither.learn.tabular._sensitivity_left`).

Guarantee. (epsilon, delta)-DP of all that leaves, as `dither.learn._noise` says. How centres, means
and axes are drawn together where noise is large is made of what left alone.

Source. Lloyd's steps with noise: Blum, Dwork, McSherry and Nissim, "Practical privacy: the SuLQ
framework", PODS 2005; first centres from a coarse map, and how many steps to take: Su, Cao, Li,
Bertino and Jin, "Differentially private k-means clustering", CODASPY 2016; sums about the last
centres, cut at a radius: Diaa, Humphries and Kerschbaum, "FastLloyd", USENIX Security 2025; means
drawn together: James and Stein, "Estimation with quadratic loss", 1961.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.learn._columns import FeatureColumn
from dither.learn._conventions import no_weights, score_weights
from dither.learn._estimator import Transformer
from dither.learn._noise import PrivacyParameters, RunNoise, TableSensitivity
from dither.learn._rows import Box, declared
from dither.learn.tabular._balls import Balls
from dither.learn.tabular._cells import HalvedCells, nearest, spread_out, weighted_centres
from dither.learn.tabular._pca import ProductSums, Spread, longest_of
from dither.learn.tabular._sensitivity_left import Remainder
from dither.mechanisms import DiscreteLaplace
from dither.privacy import Neighbours

__all__ = ["Clusters", "KMeans"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

REACH = 1.5
PLAIN, AXES = 3, 6
_LEVELS = 9
_FOR_SPREAD, _FOR_PRODUCTS, _FOR_CELLS = 0.05, 0.15, 0.2
_STEPS = 1 << 16
_EXTENT = 3.0
_NOISE, _MOST = 0.05, 0.5
"""What a mean's noise may be beside the spread of rows, and the largest share spent on that."""
_POINTS, _MOST_POINTS = 8, 512
"""Of how many points, for each of them and in all, first centres are made at least."""
_EASY = 0.1
"""What its noise may be beside the spread of a cluster, where more than one step is taken."""


@dataclass(frozen=True)
class Clusters:
    """A run with its noise, fixed before any row is read.

    Parameters
    ----------
    box : Box
    clusters : int
    rounds : int
        T.
    asked : PrivacyParameters

    Attributes
    ----------
    spread, balls : Balls
        Of all rows, and of the rows nearest to each centre.
    products : ProductSums or None
    cells : HalvedCells
    noisy : RunNoise
    absolute : bool
        Whether noise is for what moves in absolute value, and not squared.
    """

    box: Box
    clusters: int
    rounds: int
    asked: PrivacyParameters
    spread: Balls = field(init=False)
    products: ProductSums | None = field(init=False)
    cells: HalvedCells = field(init=False)
    balls: Balls = field(init=False)
    noisy: RunNoise = field(init=False)
    absolute: bool = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.box.columns)
        wide = size > PLAIN
        left = 1 - _FOR_SPREAD - _FOR_CELLS - (_FOR_PRODUCTS if wide else 0)
        # Each part gets its share of what is squared, as far as integers allow.
        unit = 6 * self.rounds * _STEPS**2 / left
        # Of lengths S the parts move 6·S² (balls), 50·S⁴ (products) and, of cells, w² a level.
        products = ProductSums(size, round((_FOR_PRODUCTS * unit / 50) ** 0.25)) if wide else None
        found = {
            "spread": Balls(size, round(math.sqrt(_FOR_SPREAD * unit / 6))),
            "products": products,
            "cells": HalvedCells(round(math.sqrt(_FOR_CELLS * unit / _LEVELS)), _LEVELS),
            "balls": Balls(size, _STEPS),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "noisy", RunNoise(*self.asked.best(self.moved)))
        absolute = isinstance(self.noisy.noise, DiscreteLaplace)
        object.__setattr__(self, "absolute", absolute)

    @property
    def moved(self) -> TableSensitivity:
        """How far a row moves all that leaves: the plan, which no other way exceeds."""
        replace = self.asked.replace
        found = self.spread.moved(replace) + self.cells.moved(replace)
        if self.products is not None:
            found = found + self.products.moved(replace)
        found = found + self.balls.moved(replace) * self.rounds
        # A second look at the mean has numbers of its own.
        return found + TableSensitivity(0, 0, self.spread.moved(replace).coordinates)

    def release(self, points: Floats) -> tuple[Floats, Floats, float]:
        """The one step that touches rows: centres, noisy sizes, noisy inertia."""
        left = Remainder(self.moved, self.absolute)
        left.take(self.spread.moved(self.asked.replace))
        spread = Spread.leave(self.box, self.spread, self.noisy, points)
        share = self._looks_again(spread)
        if share:
            balls = self._of_all(left, Fraction(1) if share > _MOST else share)
            left.take(balls.moved(self.asked.replace))
            spread = Spread.leave(self.box, balls, self.noisy, points)
        if share > _MOST:
            return self._of_law(spread)
        return self._improved(points, spread, *self._first(points, spread, left), left)

    def _of_law(self, spread: Spread) -> tuple[Floats, Floats, float]:
        """Centres, sizes and inertia of a normal law with that mean and length, within the box."""
        size = len(spread.mean)
        deviations = np.full(size, spread.length / math.sqrt(size))
        reach = np.minimum(self.box.reach + np.abs(spread.mean), _EXTENT * deviations)
        none = np.zeros((0, size))
        points, weights = self._points(none, none, np.zeros(0), reach, deviations)
        points = self.box.clipped(spread.mean + points)
        centres, _ = weighted_centres(points, weights, self.clusters)
        places, away = nearest(points, centres)
        sizes = np.bincount(places, weights, self.clusters) * spread.rows / weights.sum()
        # Of a few points for the law; it has more spread than they, by what lies between them.
        saved = float(weights @ ((points - spread.mean) ** 2).sum(axis=1) - weights @ away)
        inertia = max(spread.length**2 - max(saved, 0.0) / float(weights.sum()), 0.0)
        return centres, sizes, spread.rows * inertia

    def _points(
        self, low: Floats, high: Floats, weights: Floats, reach: Floats, deviations: Floats
    ) -> tuple[Floats, Floats]:
        most = min(_POINTS * self.clusters, _MOST_POINTS)
        return spread_out(low, high, weights, reach, deviations, most)

    def _looks_again(self, spread: Spread) -> float:
        """The share of what is left that makes the mean's noise small; 0 where it is already."""
        noise = len(spread.mean) * spread.off**2 / spread.length**2
        return 0.0 if noise <= _NOISE else _FOR_SPREAD / (1 - _FOR_SPREAD) * noise / _NOISE

    def _of_all(self, left: Remainder, share: float | Fraction) -> Balls:
        """Balls of so much of what is left."""
        size, replace = len(self.box.columns), self.asked.replace
        return Balls(size, left.weight(share, lambda s: Balls(size, s).moved(replace)))

    def _improved(
        self,
        points: Floats,
        spread: Spread,
        centres: Floats,
        square: float,
        parts: list[Floats],
        left: Remainder,
    ) -> tuple[Floats, Floats, float]:
        """Centres after the steps, noisy sizes and inertia."""
        sizes, inertia = np.zeros(len(centres)), 0.0
        longest = 2 * longest_of(self.box)
        rounds, balls = self._steps(spread, square, left)
        for _ in range(rounds):
            left.take(balls.moved(self.asked.replace))
            radius = min(REACH * math.sqrt(max(square, (1e-3 * spread.length) ** 2)), longest)
            places, _away = nearest(points, centres)
            seen = balls.leave(self.noisy, points, places, centres, radius)
            clear = 2 * balls.of_count(self.noisy)
            rows = np.maximum(seen.rows, clear)
            moves, off = seen.sums / rows[:, None], balls.of_sum(self.noisy, radius) / rows
            moves = sum((_drawn(moves @ part.T, off) @ part for part in parts), 0.0 * moves)
            centres = self.box.clipped(centres + np.where(seen.rows[:, None] > clear, moves, 0.0))
            inertia = max(float(seen.squares.sum()), 0.0)
            sizes = np.maximum(seen.rows, 0.0)
            # Rows at the radius may lie beyond it: then the next is larger.
            square = max(inertia / max(float(sizes.sum()), 1.0), 1e-12)
        return centres, sizes, inertia

    def _steps(self, spread: Spread, square: float, left: Remainder) -> tuple[int, Balls]:
        """As many steps as leave noise of a mean small beside its cluster, and their balls."""
        for rounds in range(self.rounds, 0, -1):
            balls = self._of_all(left, Fraction(1, rounds))
            off = balls.of_sum(self.noisy, REACH * math.sqrt(square))
            # As if all clusters had as many rows.
            noise = len(spread.mean) * (off * self.clusters / spread.rows) ** 2
            if noise <= _EASY * square:
                break
        return rounds, balls

    def _first(
        self, points: Floats, spread: Spread, left: Remainder
    ) -> tuple[Floats, float, list[Floats]]:
        """First centres, the mean squared distance from them, and ways in which they may move."""
        size, replace = points.shape[1], self.asked.replace
        if self.products is None:
            ways, rest = np.eye(size), 0.0
            reach = np.minimum(self.box.reach + np.abs(spread.mean), _EXTENT * spread.length)
            deviations, parts = np.full(size, spread.length), [ways]
        else:
            share = _FOR_PRODUCTS / (1 - _FOR_SPREAD)
            steps = left.weight(share, lambda s: ProductSums(size, s).moved(replace))
            products = ProductSums(size, steps)
            left.take(products.moved(replace))
            axes = products.leave(self.noisy, points, spread)
            kept = min(AXES, max(1, self.clusters - 1), max(1, axes.clear))
            ways, variances = axes.vectors[:kept], axes.variances[:kept]
            rest = max(spread.length**2 - float(variances.sum()), 0.0)
            deviations = np.maximum(np.sqrt(variances), 1e-3 * spread.length)
            reach, parts = _EXTENT * deviations, [ways, axes.vectors[kept:]]
        cells = self._cells(spread, left)
        left.take(cells.moved(replace))
        about = points - spread.mean
        seen = np.stack([_along(about, way) for way in ways], axis=1)
        low, high, counts = cells.leave(self.noisy, seen, reach, deviations)
        middles, weights = self._points(low, high, counts, reach, deviations)
        found, square = weighted_centres(middles, weights, self.clusters)
        return self.box.clipped(spread.mean + found @ ways), square + rest, parts

    def _cells(self, spread: Spread, left: Remainder) -> HalvedCells:
        """Of as many levels as noise lets be told apart, and one more."""
        share = _FOR_CELLS / (1 - _FOR_SPREAD - (0 if self.products is None else _FOR_PRODUCTS))
        for levels in range(1, _LEVELS + 1):
            weight = left.weight(share, partial(self._counts, levels))
            made = HalvedCells(weight, levels)
            # The last level halves cells that noise alone could be, if rows lay evenly.
            if spread.rows <= 2 ** (levels - 2) * made.least(self.noisy):
                break
        return made

    def _counts(self, levels: int, weight: int) -> TableSensitivity:
        return HalvedCells(weight, levels).moved(self.asked.replace)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        box, delta = Box((FeatureColumn("x", bounds=(-1.0, 1.0)),)), Fraction(1, 100)
        made = cls(box, 1, 2, PrivacyParameters(Fraction(1), delta, Neighbours.ADD_REMOVE))
        middle, long = np.zeros((1, 1)), longest_of(box)

        def exact(rows: int) -> Integers:
            points, places = np.ones((rows, 1)), np.zeros(rows, np.int64)
            one = made.spread.statistic(points, places, middle, long)
            # As if centres that left were 0, with a radius of 1, and a count a level.
            later = made.balls.statistic(points, places, middle, 1.0)
            counts = np.full(made.cells.levels, made.cells.weight * rows)
            return np.concatenate([one.ravel(), *[later.ravel()] * made.rounds, counts])

        def run(rows: int, size: int) -> Floats:
            change = (exact(1) - exact(0)).astype(float)
            seen = made.noisy.leave(np.broadcast_to(exact(rows), (size, len(change))))
            return np.asarray(seen @ change)

        yield Subject("cells and sums of clusters", run, 0, 1, delta=delta)


def _drawn(moves: Floats, off: Floats) -> Floats:
    """Moves as far as they are longer than noise of these deviations would make them."""
    noise = moves.shape[1] * off**2
    lengths = np.maximum((moves**2).sum(axis=1), 1e-300)
    return np.asarray(moves * np.maximum(0.0, 1 - noise / lengths)[:, None])


def _along(points: Floats, way: Floats) -> Floats:
    """The products of rows with a vector, column by column: the same wherever a row stands."""
    found = np.zeros(len(points))
    for column, share in zip(points.T, way.tolist(), strict=True):
        found = found + column * share
    return found


class KMeans(Transformer):
    """k-means: centres such that rows are near to one of them.

    Parameters
    ----------
    n_clusters : int
    epsilon, delta : number
        What fitting costs; without a delta the guarantee is pure.
    bounds : pair of (float or array of float)
        The least and the largest possible value of each column; others are moved there, and what is
        missing counts as the middle. Columns are taken in their own units, as they are.
    neighbours : Neighbours or str
        ``"add-remove"``, or ``"replace"`` where the number of rows is public.
    max_iter : int
        How many steps improve the first centres, at most. Where noise is large beside the clusters
        fewer are taken, each with more of the budget; all of it is spent in any case.

    Attributes
    ----------
    loss_ : Loss
        What fitting cost.
    cluster_centers_ : array, shape (n_clusters, d)
        Where the budget tells no more than the mean and the spread of the rows, those of a normal
        law that has them.
    cluster_sizes_ : array, shape (n_clusters,)
        Noisy numbers of rows, at the last step.
    inertia_ : float
        A noisy sum of squared distances from the centres before the last step, where rows far away
        count as less far: for comparison, it is not what the rows of ``fit`` would give.

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read. What values the rows have raises nothing.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row, of the neighbours named; it costs
    the same whatever the rows are. *Proof*, method and source: `dither.learn.tabular._kmeans`.
    There are no ``labels_``: ``predict`` tells the cluster of a row, and protects nobody in it.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> x = np.concatenate([np.linspace(0, 1, 3000), np.linspace(5, 6, 3000)])[:, None]
    >>> model = learn.KMeans(2, epsilon=1, delta=1e-6, bounds=(0, 10)).fit(x)
    >>> sorted(model.cluster_centers_.round().ravel().tolist()) in ([0, 5], [0, 6], [1, 5], [1, 6])
    True
    """

    kind = "clusterer"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        max_iter: int = 4,
    ) -> None:
        self.n_clusters, self.epsilon, self.delta = n_clusters, epsilon, delta
        self.bounds, self.neighbours, self.max_iter = bounds, neighbours, max_iter

    def fit(self, X: Any, y: Any = None, sample_weight: None = None) -> Self:
        """Fit, once, at the cost of epsilon and delta.

        Parameters
        ----------
        X : array or data frame, shape (n, d)
        y : ignored
        sample_weight : None
            Not taken: a row counts once.

        Returns
        -------
        KMeans
            This one.
        """
        no_weights(sample_weight)
        asked = PrivacyParameters.of(self.epsilon, self.delta, self.neighbours)
        clusters = check.whole("n_clusters", self.n_clusters, 1, most=1000)
        rounds = check.whole("max_iter", self.max_iter, 1, most=100)
        run = Clusters(Box(declared(X, self.bounds)), clusters, rounds, asked)
        centres, sizes, inertia = run.release(run.box.points(X))
        self._box, self._centres = run.box, centres
        self.cluster_centers_ = run.box.restored(centres)
        self.cluster_sizes_, self.inertia_ = sizes, inertia * run.box.unit**2
        return self._fitted_on(run.box.columns, run.noisy.loss)

    def predict(self, X: Any) -> Integers:
        """The cluster of each row, shape (n,); exact, it protects nobody in them."""
        self._check_fitted()
        return nearest(self._box.points(X), self._centres)[0]

    def fit_predict(self, X: Any, y: Any = None, sample_weight: None = None) -> Integers:
        """``fit(X).predict(X)``: the second part gives rows away."""
        return self.fit(X, y, sample_weight).predict(X)

    def _columns_out(self) -> int:
        return len(self._centres)

    def _transformed(self, X: Any) -> Floats:
        """Distances of rows from the centres, shape (n, n_clusters)."""
        points = self._box.points(X)
        away = [np.sqrt(nearest(points, centre[None])[1]) for centre in self._centres]
        return np.stack(away, axis=1) * self._box.unit

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Less the sum of squared distances of rows: exact, so it protects nobody in them."""
        self._check_fitted()
        squares = nearest(self._box.points(X), self._centres)[1]
        weights = score_weights(sample_weight, len(squares))
        total = squares.sum() if weights is None else weights @ squares
        return -float(total) * self._box.unit**2
