"""Principal components of rows about their noisy mean, from a noisy matrix of second moments.

Statistics. First leave the number of rows, their sum, and the sum of their squared lengths, as of
one ball that holds all that the bounds allow (`dither.learn.tabular._balls`). They tell a mean and
a typical length r about it. Then each row, seen from that mean and shortened to ``REACH``·r, is a
vector v of integers at most S long (`dither.learn._rows.cut`), and the sums of 10·v_i·v_j for i < j
and of 7·v_i² leave.

Sensitivity, squared. Of the first as `Balls` says. Of the second, a row that is added or removed
moves at most 100·Σ_{i<j} v_i²·v_j² + 49·Σ v_i⁴ <= 50·‖v‖⁴ <= 50·S⁴. Weighed with √50 for 7 on the
diagonal, two rows differ by 50·‖v·vᵀ - v'·v'ᵀ‖² = 50·(‖v‖⁴ + ‖v'‖⁴ - 2·(v·v')²) <= 100·S⁴. In
absolute value a vector of m numbers, r long, is at most √m·r.

Axes. Those whose noisy variance stands above the edge of the noise's own spectrum are kept, their
variances freed of what noise adds. Across them the matrix is drawn, as far as it may be noise, to
one in which all columns are alike (one variance, one covariance, each the mean of what was seen),
so that where nothing stands above noise the first axis is what columns have in common.

Guarantee. (epsilon, delta)-DP of all that leaves, as `dither.learn._noise` says: the mean and the
length that the second part uses have left before.

Source. Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014, for noise of the matrix;
what an eigenvalue is without the noise: Benaych-Georges and Nadakuditi, 2011; a covariance drawn to
one where columns are alike: Ledoit and Wolf, "Honey, I shrunk the sample covariance matrix", 2004.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.learn._columns import FeatureColumn
from dither.learn._conventions import no_weights
from dither.learn._estimator import Transformer
from dither.learn._noise import PrivacyParameters, RunNoise, TableSensitivity
from dither.learn._rows import Box, cut, declared
from dither.learn.tabular._balls import Balls
from dither.privacy import Neighbours

__all__ = ["PCA", "Axes", "ProductSums", "Spread"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

REACH = 1.4
_FOR_SPREAD = 0.1
_PART = 1 << 16


@dataclass(frozen=True, eq=False)
class Spread:
    """Where rows lie.

    Parameters
    ----------
    rows : float
        How many there are, at least 1.
    mean : array of float, shape (d,)
    length : float
        The root mean square of their distances from it, above 0.
    off : float
        The deviation of the noise of one number of the mean.
    """

    rows: float
    mean: Floats
    length: float
    off: float

    @classmethod
    def leave(cls, box: Box, balls: Balls, noisy: RunNoise, points: Floats) -> Spread:
        """From all rows in one ball."""
        middle, longest = np.zeros((1, points.shape[1])), longest_of(box)
        places = np.zeros(len(points), np.int64)
        seen = balls.leave(noisy, points, places, middle, longest)
        # Fewer than noise alone could be would throw the mean far away.
        rows = max(float(seen.rows[0]), 2 * balls.of_count(noisy), 1.0)
        off = balls.of_sum(noisy, longest) / rows
        mean = box.clipped(shrunk(seen.sums[0] / rows, off))
        square = float(seen.squares[0]) / rows - float(mean @ mean)
        length = math.sqrt(min(max(square, longest**2 * 1e-4), longest**2))
        return cls(rows, mean, length, off)


def shrunk(seen: Floats, off: float) -> Floats:
    """A vector drawn to 0 as far as noise of that deviation is large in it (James and Stein)."""
    noise = max(len(seen) - 2, 1) * off**2
    return np.asarray(seen * max(0.0, 1 - noise / max(float(seen @ seen), 1e-300)))


def longest_of(box: Box) -> float:
    """How far from the middle of a box its corners are, and a little more."""
    return math.sqrt(float((box.reach**2).sum())) * (1 + 1e-9)


@dataclass(frozen=True)
class ProductSums:
    """The sums of products of rows.

    Parameters
    ----------
    size : int
        d.
    steps : int
        S.
    """

    size: int
    steps: int

    def moved(self, replace: bool) -> TableSensitivity:
        """How far a row moves them; see the module."""
        s4, pairs = self.steps**4, self.size * (self.size + 1) // 2
        square = (100 if replace else 50) * s4
        # The root, rounded up.
        l1 = (2 if replace else 1) * (math.isqrt(pairs * 50 * s4 - 1) + 1)
        return TableSensitivity(l1, square, pairs)

    def statistic(self, rows: Integers) -> Integers:
        """The exact integers of rows at most S long, on and above the diagonal."""
        total = np.zeros((self.size, self.size), np.int64)
        for i in range(0, len(rows), _PART):
            part = rows[i : i + _PART].astype(np.float64)
            # Exact in doubles, however it is summed: all partial sums are integers below 2^53.
            total += (part.T @ part).astype(np.int64)
        weights = np.where(np.eye(self.size) > 0, 7, 10)
        return np.asarray((weights * total)[np.triu_indices(self.size)])

    def leave(self, noisy: RunNoise, points: Floats, spread: Spread) -> Axes:
        """The one step that touches rows."""
        radius = REACH * spread.length
        seen = noisy.leave(self.statistic(cut(points - spread.mean, radius, self.steps)))
        found = np.zeros((self.size, self.size))
        found[np.triu_indices(self.size)] = seen
        found = (found + np.triu(found, 1).T) / np.where(np.eye(self.size) > 0, 7, 10)
        share = (radius / self.steps) ** 2 / spread.rows
        off = noisy.deviation / 10 * share
        return Axes.of(spread, found * share, off)


@dataclass(frozen=True, eq=False)
class Axes:
    """Principal components of rows about a mean.

    Parameters
    ----------
    spread : Spread
    vectors : array of float, shape (d, d)
        One a row, by falling variance.
    variances : array of float, shape (d,)
        At least 0.
    clear : int
        How many of them stand above what noise alone gives.
    """

    spread: Spread
    vectors: Floats
    variances: Floats
    clear: int

    @classmethod
    def of(cls, spread: Spread, seen: Floats, off: float) -> Axes:
        """From a noisy matrix.

        Parameters
        ----------
        spread : Spread
        seen : array of float, shape (d, d)
        off : float
            The deviation of its noise beside the diagonal; on it 10/7 as much.
        """
        size = len(seen)
        values, vectors = (a[..., ::-1] for a in np.linalg.eigh(seen))
        # Where Wigner's semicircle, the spectrum of such noise alone, ends.
        edge = 2 * off * math.sqrt(size)
        clear = int((values > edge).sum())
        # Noise takes a variance v to v + edge²/(4·v): this is the way back.
        freed = (values[:clear] + np.sqrt(values[:clear] ** 2 - edge**2)) / 2
        vectors, values = vectors.T, np.append(freed, np.zeros(size - clear))
        if clear < size:
            others = _drawn(vectors[clear:], seen, off)
            values[clear:] = np.clip(others[0], 0.0, freed.min(initial=np.inf))
            vectors = np.concatenate([vectors[:clear], others[1]])
        # The sign that makes the largest number of each positive.
        largest = np.abs(vectors).argmax(axis=1)
        return cls(
            spread, vectors * np.sign(vectors[np.arange(size), largest])[:, None], values, clear
        )


def _drawn(ways: Floats, seen: Floats, off: float) -> tuple[Floats, Floats]:
    """Axes across these ways, of a matrix drawn to one where all columns are alike.

    There variances are one number and covariances another, each the mean of what was seen.
    """
    size, kept = len(seen), len(ways)
    level = float(np.trace(seen)) / size
    common = (float(seen.sum()) - size * level) / max(size * (size - 1), 1)
    alike = np.where(np.eye(size) > 0, level, common)
    apart = ways @ (seen - alike) @ ways.T
    # Squares leave with the weight 7 where products have 10: their noise is 10/7 as wide.
    noise = off**2 * (kept * (kept - 1) + kept * 100 / 49)
    share = max(0.0, 1 - noise / max(float((apart**2).sum()), 1e-300))
    values, turns = (a[..., ::-1] for a in np.linalg.eigh(ways @ alike @ ways.T + share * apart))
    return values, turns.T @ ways


@dataclass(frozen=True)
class AxesRun:
    """A run with its noise, fixed before any row is read.

    Parameters
    ----------
    box : Box
    asked : PrivacyParameters

    Attributes
    ----------
    balls : Balls
    products : ProductSums
    noisy : RunNoise
    """

    box: Box
    asked: PrivacyParameters
    balls: Balls = field(init=False)
    products: ProductSums = field(init=False)
    noisy: RunNoise = field(init=False)

    def __post_init__(self) -> None:
        size = len(self.box.columns)
        products = ProductSums(size, 1 << 10)
        share = math.sqrt(_FOR_SPREAD / (1 - _FOR_SPREAD) * 50 / 6)
        # 6·s² of the balls is then `_FOR_SPREAD` of that and 50·S⁴ together.
        balls = Balls(size, round(share * products.steps**2))
        object.__setattr__(self, "products", products)
        object.__setattr__(self, "balls", balls)
        object.__setattr__(self, "noisy", RunNoise(*self.asked.best(self.moved)))

    @property
    def moved(self) -> TableSensitivity:
        """How far a row moves all that leaves."""
        replace = self.asked.replace
        return self.balls.moved(replace) + self.products.moved(replace)

    def release(self, points: Floats) -> Axes:
        """The one step that touches rows."""
        spread = Spread.leave(self.box, self.balls, self.noisy, points)
        return self.products.leave(self.noisy, points, spread)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        box, delta = Box((FeatureColumn("x", bounds=(-1.0, 1.0)),)), Fraction(1, 100)
        made = cls(box, PrivacyParameters(Fraction(1), delta, Neighbours.ADD_REMOVE))
        long = longest_of(box)

        def exact(rows: int) -> Integers:
            points = np.ones((rows, 1))
            one = made.balls.statistic(points, np.zeros(rows, np.int64), np.zeros((1, 1)), long)
            # As if the mean that left were 0, and the length 1.
            two = made.products.statistic(cut(points, 1.0, made.products.steps))
            return np.concatenate([one.ravel(), two])

        def run(rows: int, size: int) -> Floats:
            change = (exact(1) - exact(0)).astype(float)
            seen = made.noisy.leave(np.broadcast_to(exact(rows), (size, len(change))))
            return np.asarray(seen @ change)

        yield Subject("mean and second moments of rows", run, 0, 1, delta=delta)


class PCA(Transformer):
    """Principal components: the directions in which rows differ most.

    Parameters
    ----------
    n_components : int, optional
        How many; without it, all.
    epsilon, delta : number
        What fitting costs; without a delta the guarantee is pure.
    bounds : pair of (float or array of float)
        The least and the largest possible value of each column; others are moved there, and what is
        missing counts as the middle. Columns are taken in their own units, as they are.
    neighbours : Neighbours or str
        ``"add-remove"``, or ``"replace"`` where the number of rows is public.

    Attributes
    ----------
    loss_ : Loss
        What fitting cost.
    components_ : array, shape (n_components, d)
        Orthonormal, by falling variance; of each the largest number is positive.
    explained_variance_ : array, shape (n_components,)
        Less what the noise adds; rows far from the mean count as less far.
    explained_variance_ratio_ : array, shape (n_components,)
    mean_ : array, shape (d,)

    Raises
    ------
    ArgumentError
        By ``fit``, before any row is read. What values the rows have raises nothing.

    Notes
    -----
    *Guarantee.* Each ``fit`` is (epsilon, delta)-DP for one row, of the neighbours named.
    *Proof*, method and source: `dither.learn.tabular._pca`. What ``transform`` gives are exact
    numbers about the rows it is given, and protects nobody in them.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import learn
    >>> t = np.linspace(0, 1, 5000)
    >>> model = learn.PCA(n_components=1, epsilon=1, delta=1e-6, bounds=(0, 1))
    >>> model.fit(np.column_stack([t, t])).components_.round(1)
    array([[0.7, 0.7]])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Number,
        delta: Number = 0,
        bounds: Any = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> None:
        self.n_components, self.epsilon, self.delta = n_components, epsilon, delta
        self.bounds, self.neighbours = bounds, neighbours

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
        PCA
            This one.
        """
        no_weights(sample_weight)
        asked = PrivacyParameters.of(self.epsilon, self.delta, self.neighbours)
        run = AxesRun(Box(declared(X, self.bounds)), asked)
        size = len(run.box.columns)
        kept = self.n_components
        kept = size if kept is None else check.whole("n_components", kept, 1, most=size)
        axes, unit = run.release(run.box.points(X)), run.box.unit
        self.components_ = axes.vectors[:kept]
        self.explained_variance_ = axes.variances[:kept] * unit**2
        whole = max(float(axes.variances.sum()), 1e-300)
        self.explained_variance_ratio_ = axes.variances[:kept] / whole
        self.mean_ = run.box.restored(axes.spread.mean)
        self._box = run.box
        return self._fitted_on(run.box.columns, run.noisy.loss)

    def _columns_out(self) -> int:
        return len(self.components_)

    def _transformed(self, X: Any) -> Floats:
        """The components of rows, shape (n, n_components)."""
        about = self._box.restored(self._box.points(X)) - self.mean_
        return np.asarray(about @ self.components_.T)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows from their components, shape (n, d)."""
        self._check_fitted()
        return np.asarray(np.asarray(X, dtype=float) @ self.components_ + self.mean_)
