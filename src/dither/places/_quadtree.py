"""Quadtrees whose squares are split where noisy counts say that it pays.

Mechanism. The counts of all squares of depth ``min_depth`` leave with noise; then, level by level,
those of the four quarters of every square whose noisy count exceeds a threshold, down to
``max_depth``. What is asked on a level follows from what left on those above, so the tree is public
as soon as it is there.

*Guarantee.* At the same earlier answers a unit, of which at most m rows count, moves the counts of
one level by a vector of L1 norm at most m, whichever squares were split: each row lies in at most
one square of a level. So all of them together, of l = max_depth - min_depth + 1 levels, are moved
by at most l·m in the L1, and by l·m² in the squared L2 norm; twice as much where a unit is replaced
(the squared length of a difference of two vectors that are nowhere negative). Noise of one law on
every count makes the sequence as private as one release of that sensitivity: of Laplace noise the
parts add up, and of Gaussian noise as for one Gaussian mechanism of all coordinates, adaptively too
(Dong, Roth and Su, "Gaussian differential privacy", 2022). One charge covers all levels, split or
not.

Estimate. Generalised least squares on the tree, in two passes (Hay, Rastogi, Miklau and Suciu,
VLDB 2010), for a tree that is not complete: with v the noise's variance and S the sum of the
children's variances s from below,

    up:    s_leaf = v,   s = v·S/(v + S),   z = (S·y + v·Σ children's z)/(v + S)
    down:  x_child = z + (s/S)(x_parent - Σ siblings' z),   Var = s - s²/S + (s/S)²·Var(parent)

Source. Cormode, Procopiuc, Srivastava, Shen and Yu, "Differentially private spatial
decompositions", ICDE 2012; splits by noisy counts as in Zhang, Xiao and Xie, "PrivTree", SIGMOD
2016, here with one noise a level in place of a decaying bias.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, cost_text, count_text, wrapped
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, Sensitivity
from dither.mechanisms.chooser import ChosenNoise, additive_noise
from dither.places._counts import promised, widths
from dither.places._paths import Floats, Integers, Paths, checked_paths, kept_rows
from dither.privacy import Loss, Neighbours
from dither.privacy._promise import as_table_neighbours

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["QuadtreeCounts", "QuadtreeDesign", "quadtree"]

_DEEPEST = 10
_SPLIT = 4.0
"""Deviations of the noise above which a square is split, where nothing else is asked."""


@dataclass(frozen=True)
class QuadtreeDesign:
    """A tree's noise and rule, fixed before any row is read.

    Parameters
    ----------
    first, depth : int
        Of the largest squares, and of the smallest.
    most : int
        Rows of a unit that count.
    epsilon, delta : Fraction
    neighbours : Neighbours
    split : float, optional
        A square is split where its noisy count is above it.

    Attributes
    ----------
    chosen : ChosenNoise
    threshold : float
    """

    first: int
    depth: int
    most: int
    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours
    split: float | None = None
    chosen: ChosenNoise = field(init=False)
    threshold: float = field(init=False)

    def __post_init__(self) -> None:
        known = self.sensitivity
        chosen = additive_noise(known, self.epsilon, self.delta)
        deviation = math.sqrt(chosen.mechanism.variance)
        object.__setattr__(self, "chosen", chosen)
        least = _SPLIT * deviation if self.split is None else self.split
        object.__setattr__(self, "threshold", least)

    @property
    def sensitivity(self) -> Sensitivity:
        """How far a unit moves all that leaves."""
        both = 2 if self.neighbours is Neighbours.REPLACE else 1
        levels = self.depth - self.first + 1
        return Sensitivity.of(l1=both * levels * self.most, l2_squared=both * levels * self.most**2)

    def release(self, leaves: Integers) -> list[tuple[Integers, Integers]]:
        """By level: codes of the squares that were counted, and their noisy counts.

        Parameters
        ----------
        leaves : array of int, shape (2**depth, 2**depth)
            Exact counts of the smallest squares, by row and column.
        """
        noise = self.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
        levels = [np.asarray(leaves, dtype=np.int64)]
        for _ in range(self.depth):
            size = len(levels[-1]) // 2
            levels.append(levels[-1].reshape(size, 2, size, 2).sum(axis=(1, 3)))
        asked, found = np.arange(4**self.first), []
        for level in range(self.first, self.depth + 1):
            exact = levels[self.depth - level].ravel()[asked]
            noisy = exact + noise.draw(asked.size)
            found.append((asked, noisy))
            row, column = np.divmod(asked[noisy > self.threshold], 1 << level)
            parts = [(2 * row + r) * (2 << level) + 2 * column + c for r in (0, 1) for c in (0, 1)]
            # Four quarters of each, one after the other.
            asked = np.stack(parts, axis=1).ravel()
            if level == self.depth or not asked.size:
                break
        return found

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        design = cls(0, 1, 1, Fraction(1), Fraction(0), Neighbours.ADD_REMOVE, split=0.5)

        noise = design.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace)

        def run(leaves: Integers, size: int) -> Integers:
            # As `release` does, of many trees at once: quarters of a root that is split.
            root = leaves.sum() + noise.draw((size, 1))
            quarters = leaves.ravel() + noise.draw((size, 4))
            return np.hstack([root, np.where(root > design.threshold, quarters, -(10**6))])

        here = np.array([[3, 0], [0, 0]])
        yield Subject("quadtree", run, here, here + np.array([[1, 0], [0, 0]]))


class QuadtreeCounts(Printable):
    """Squares of a tree with their counts: small ones where many were, large ones elsewhere.

    Estimates are unbiased for a tree as it is, add up at every level, and may be below 0.

    Made by `quadtree`. Whatever it answers costs nothing more.
    """

    def __init__(
        self,
        bounds: tuple[tuple[float, float], tuple[float, float]],
        design: QuadtreeDesign,
        released: list[tuple[Integers, Integers]],
        loss: Loss,
    ) -> None:
        self.bounds, self.design, self.loss = bounds, design, loss
        noise = design.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
        self.noise = noise
        self._codes = [codes for codes, _ in released]
        self._estimates, self._variances = _consistent(released, noise.variance, design.first)

    @property
    def depth(self) -> int:
        """Of the smallest squares that there are."""
        return self.design.first + len(self._codes) - 1

    @property
    def total(self) -> float:
        """All that counts, estimated."""
        return float(self._estimates[0].sum())

    def frame(self, confidence: float = 0.95, *, leaves: bool = True) -> pl.DataFrame:
        """A row for each square: its depth, its ends, ``estimate``, ``lower`` and ``upper``.

        Parameters
        ----------
        confidence : float
            Of each interval by itself; it is about the noise.
        leaves : bool
            Whether squares that were split are left out.
        """
        import polars as pl

        inside = check.confidence(confidence)
        parts: list[dict[str, Any]] = []
        (x0, x1), (y0, y1) = self.bounds
        for at, codes in enumerate(self._codes):
            level = self.design.first + at
            row, column = np.divmod(codes, 1 << level)
            wide, high = (x1 - x0) / (1 << level), (y1 - y0) / (1 << level)
            estimate = self._estimates[at]
            width = widths(self._variances[at], inside, self.noise)
            kept = np.ones(codes.size, dtype=np.bool_)
            if leaves and level < self.depth:
                kept = ~np.isin(codes, _parents(self._codes[at + 1], level + 1))
            found = {
                "depth": np.full(codes.size, level),
                "x0": x0 + column * wide,
                "x1": x0 + (column + 1) * wide,
                "y0": y0 + row * high,
                "y1": y0 + (row + 1) * high,
                "estimate": estimate,
                "lower": np.maximum(estimate - width, 0.0),
                "upper": np.maximum(estimate + width, 0.0),
            }
            parts.append({name: values[kept] for name, values in found.items()})
        return pl.concat([pl.DataFrame(part) for part in parts])

    def count(self, x0: float, x1: float, y0: float, y1: float) -> float:
        """About how many lie in a rectangle, as if each smallest square were filled evenly.

        Parameters
        ----------
        x0, x1, y0, y1 : number
            Its ends.

        Raises
        ------
        ArgumentError
            An end is no finite number.
        """
        ends = zip(("x0", "x1", "y0", "y1"), (x0, x1, y0, y1), strict=True)
        x0, x1, y0, y1 = (check.number(name, end) for name, end in ends)
        found = 0.0
        for row in self.frame().iter_rows(named=True):
            wide = min(x1, row["x1"]) - max(x0, row["x0"])
            high = min(y1, row["y1"]) - max(y0, row["y0"])
            if wide > 0 and high > 0:
                area = (row["x1"] - row["x0"]) * (row["y1"] - row["y0"])
                found += row["estimate"] * wide * high / area
        return found

    def summary(self) -> str:
        """A few lines for people."""
        leaves = self.frame()
        charge = self.loss.charge
        lines = wrapped(
            f"quadtree: {count_text(len(leaves), 'square')}, down to depth {self.depth} of "
            f"{self.design.depth}; {self.total:,.0f} in all"
        )
        lines += wrapped(
            f"A square was split above a noisy count of {self.design.threshold:.4g}. "
            f"Cost: {cost_text(charge.epsilon, charge.delta)}, whatever was split."
        )
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the squares, dark where many lie on little ground.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.tables._records import draw_quadtree

        return draw_quadtree(self, path)


def _parents(codes: Integers, level: int) -> Integers:
    """Codes, on the level above, of the squares that some lie in."""
    row, column = np.divmod(codes, 1 << level)
    return np.asarray((row // 2) * (1 << (level - 1)) + column // 2)


def _consistent(
    released: list[tuple[Integers, Integers]], variance: float, first: int
) -> tuple[list[Floats], list[Floats]]:
    """Estimates that add up, and their variances, by level: the module's two passes."""
    up: list[Floats] = [noisy.astype(np.float64) for _, noisy in released]
    below: list[Floats] = [np.full(noisy.size, variance) for _, noisy in released]
    where: list[Integers] = []
    for level in range(len(released) - 1, 0, -1):
        codes, above = released[level][0], released[level - 1][0]
        # The four quarters of a square lie together.
        order = np.argsort(above)
        at = order[np.searchsorted(above, _parents(codes[::4], first + level), sorter=order)]
        where.append(at)
        summed, spread = up[level].reshape(-1, 4).sum(1), below[level].reshape(-1, 4).sum(1)
        own = up[level - 1][at]
        up[level - 1][at] = (spread * own + variance * summed) / (variance + spread)
        below[level - 1][at] = variance * spread / (variance + spread)
    found, known = [up[0]], [below[0]]
    for level, at in zip(range(1, len(released)), where[::-1], strict=True):
        parts, s = up[level].reshape(-1, 4), below[level].reshape(-1, 4)
        share = s / s.sum(axis=1, keepdims=True)
        missing = found[-1][at] - parts.sum(axis=1)
        variances = s * (1 - share) + share**2 * known[-1][at][:, None]
        found.append((parts + share * missing[:, None]).ravel())
        known.append(variances.ravel())
    return found, known


def quadtree(
    paths: Paths,
    *,
    bounds: tuple[tuple[Number, Number], tuple[Number, Number]],
    max_depth: int,
    min_depth: int = 0,
    max_visits: int = 1,
    epsilon: Number,
    delta: Number = 0,
    split: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: str = "person",
) -> QuadtreeCounts:
    """Counts of squares that are small where many were, and large where few were.

    Parameters
    ----------
    paths : Paths
        Of which each row counts where it lies.
    bounds : ((number, number), (number, number))
        Public ends of x and of y. Rows beyond count nowhere.
    max_depth : int
        How often squares are split at most, from 1 to 10.
    min_depth : int
        Of the squares that all are counted, at most max_depth. Levels above it cost nothing; where
        something is known of how fine counts can be, fewer levels are less noise.
    max_visits : int
        How many rows of a unit count; which ones is drawn at random where it has more.
    epsilon, delta : number
        What all levels together may cost.
    split : number, optional
        Noisy counts above it are split; four deviations of the noise where left out. It is public.
    neighbours : {"add-remove", "replace"}
    unit : str

    Returns
    -------
    QuadtreeCounts

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.
    BudgetError, PromiseError
        The account of the paths cannot bear it; nothing was charged or read.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for all rows of one unit, for the tree's shape and its counts
    together.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import places
    >>> rng = np.random.default_rng(1)
    >>> paths = places.Paths(np.arange(4000), np.zeros(4000), *rng.normal(0.3, 0.05, (2, 4000)))
    >>> tree = places.quadtree(paths, bounds=((0, 1), (0, 1)), max_depth=6, epsilon=1)
    >>> tree.depth > 2, abs(tree.total - 4000) < 200, tree.loss.charge.epsilon
    (True, True, Fraction(1, 1))
    """
    ends = _rectangle(bounds)
    least = None if split is None else float(check.exact("split", split))
    deepest = check.whole("max_depth", max_depth, 1, _DEEPEST)
    design = QuadtreeDesign(
        check.whole("min_depth", min_depth, 0, deepest),
        deepest,
        check.whole("max_visits", max_visits, 1, 1 << 20),
        check.positive("epsilon", epsilon),
        check.exact("delta", delta, least=0, below=1),
        as_table_neighbours(neighbours),
        least,
    )
    loss = promised(design.chosen, design.neighbours, unit)
    said = (design.first, deepest, design.most, design.epsilon, design.delta, split, *ends)
    checked_paths(paths).charge(loss, "quadtree", design.neighbours.value, *said)
    who, *place = paths.points
    side = 1 << design.depth
    steps = []
    with np.errstate(all="ignore"):
        for values, (low, high) in zip(place, ends, strict=True):
            steps.append(np.floor((values - low) / (high - low) * side))
    inside = np.logical_and.reduce([(step >= 0) & (step < side) for step in steps])
    column, row = (step[inside].astype(np.int64) for step in steps)
    key = row * side + column
    kept = kept_rows(who[inside], key, design.most, design.most)
    leaves = np.bincount(key[kept], minlength=side * side).reshape(side, side)
    return QuadtreeCounts(ends, design, design.release(leaves), loss)


def _rectangle(bounds: Any) -> tuple[tuple[float, float], tuple[float, float]]:
    try:
        (x0, x1), (y0, y1) = bounds
    except (TypeError, ValueError):
        raise ArgumentError("bounds must be ((x0, x1), (y0, y1))") from None
    ends = [
        check.number(f"bounds{i}", v)
        for i, v in zip(("[0][0]", "[0][1]", "[1][0]", "[1][1]"), (x0, x1, y0, y1), strict=True)
    ]
    for low, high in (ends[:2], ends[2:]):
        if not (low < high and math.isfinite(high - low)):
            raise ArgumentError("bounds must be ((x0, x1), (y0, y1)) with the lower end first")
    return (ends[0], ends[1]), (ends[2], ends[3])
