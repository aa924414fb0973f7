"""Counts of places: from where to where, and who was seen in which cell at which hour.

*Guarantee.* Every cell's count leaves with independent discrete noise of one law. Of a unit at most
``max`` rows count, at most ``each`` of them in one cell (`kept_rows`), so that its vector c of
contributions has Σc <= max and c <= each. Then ::

    l1 = max,    l2² = (max // each)·each² + (max mod each)²,    linf = each

for a unit that is added or removed: among such vectors the squared length is largest at a corner of
the polytope (convexity), which fills cells one after the other. Where a unit is replaced l1 and l2²
double, since the difference of two vectors that are nowhere negative has no cross term above 0, and
linf stays. So the release costs what `DiscreteLaplace` or `DiscreteGaussian` costs at these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, cost_text, count_text, level, sentence, wrapped
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, Sensitivity
from dither.mechanisms.chooser import ChosenNoise, additive_noise
from dither.places._paths import (
    Floats,
    Integers,
    Paths,
    PlaceGrid,
    checked_gap,
    checked_grid,
    checked_paths,
    kept_rows,
    places_in,
)
from dither.privacy import Loss, Neighbours, Promise
from dither.privacy._promise import as_table_neighbours

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["PlaceCounts", "PlaceDesign", "origin_destination", "promised", "visits"]

HOURS = 24
_MOST_COUNTS = 1 << 22
_SHOWN = 5


@dataclass(frozen=True)
class PlaceDesign:
    """A release of counts, fixed before any row is read.

    Parameters
    ----------
    cells : int
        How many counts there are.
    most, each : int
        Rows of a unit that count, and of them in one cell.
    epsilon, delta : Fraction
    neighbours : Neighbours
    """

    cells: int
    most: int
    each: int
    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours

    @property
    def sensitivity(self) -> Sensitivity:
        """How far a unit moves the counts, as the module's text derives it."""
        both = 2 if self.neighbours is Neighbours.REPLACE else 1
        whole, rest = divmod(self.most, self.each)
        return Sensitivity.of(
            l1=both * self.most,
            l2_squared=both * (whole * self.each**2 + rest**2),
            linf=self.each,
            dimension=self.cells,
        )

    @property
    def said(self) -> tuple[object, ...]:
        """What makes the design, in numbers and a relation's name."""
        return self.most, self.each, self.epsilon, self.delta, self.neighbours.value

    @property
    def chosen(self) -> ChosenNoise:
        """The noise."""
        return additive_noise(self.sensitivity, self.epsilon, self.delta)

    def exact(self, unit: Integers, key: Integers) -> Integers:
        """Counts of what is kept, without noise."""
        kept = kept_rows(unit, key, self.most, self.each)
        return np.bincount(key[kept], minlength=self.cells)

    def release(self, unit: Integers, key: Integers) -> Integers:
        """The one step that reads rows: counts with their noise."""
        noise = self.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
        return self.exact(unit, key) + noise.draw(self.cells)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        design = cls(4, 2, 1, Fraction(1), Fraction(0), Neighbours.ADD_REMOVE)
        noise, both = design.chosen.mechanism, np.array([0, 1])
        assert isinstance(noise, DiscreteLaplace)
        moved = design.exact(np.zeros_like(both), both)

        def run(keys: Integers, size: int) -> Floats:
            # A unit of two visits or none; the likelihood ratio sees all that counts tell.
            exact = design.exact(np.zeros_like(keys), keys)
            seen = exact + noise.draw((size, exact.size))
            return np.asarray((np.abs(seen) - np.abs(seen - moved)).sum(axis=1))

        yield Subject("counts of places", run, both[:0], both)


class PlaceCounts(Printable):
    """Counts of places with noise, as they were released.

    Each is unbiased for what was kept of people, and may be below 0; an interval holds the true
    one at its confidence, over the noise, for each count by itself.

    Made by `visits` and `origin_destination`. Whatever it answers costs nothing more.
    """

    def __init__(
        self,
        what: str,
        grid: PlaceGrid,
        axes: tuple[str, ...],
        counts: Integers,
        design: PlaceDesign,
        loss: Loss,
    ) -> None:
        noise = design.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
        self.what, self.grid, self.axes = what, grid, axes
        self.counts, self.noise, self.loss, self.design = counts, noise, loss, design

    def half_width(self, confidence: float = 0.95) -> int:
        """How far noise may have moved a count."""
        return self.noise.half_width(confidence)

    def interval(self, confidence: float = 0.95) -> tuple[Integers, Integers]:
        """Lower and upper ends, in the shape of the counts, cut at 0."""
        width = self.half_width(confidence)
        return np.maximum(self.counts - width, 0), np.maximum(self.counts + width, 0)

    def frame(self, confidence: float = 0.95) -> pl.DataFrame:
        """A Polars frame with a row for each count: where, ``count``, ``lower``, ``upper``."""
        import polars as pl

        at = np.unravel_index(np.arange(self.counts.size), self.counts.shape)
        lower, upper = self.interval(confidence)
        found: dict[str, Any] = dict(zip(self.axes, at, strict=True))
        found |= {"count": self.counts.ravel(), "lower": lower.ravel(), "upper": upper.ravel()}
        return pl.DataFrame(found)

    def summary(self) -> str:
        """A few lines for people: the largest counts, the cost, what counts of each unit."""
        design, width = self.design, self.half_width()
        lines = wrapped(f"{self.what} on {self.grid}: {count_text(self.counts.size, 'count')}")
        order = np.argsort(-self.counts, axis=None, kind="stable")[:_SHOWN]
        for at in zip(*np.unravel_index(order, self.counts.shape), strict=True):
            where = ", ".join(f"{a} {int(i)}" for a, i in zip(self.axes, at, strict=True))
            lines += wrapped(f"{where}: {int(self.counts[at]):,} ± {width:,}", "  ", first="  ")
        kept = f"of each unit at most {count_text(design.most, 'row')} count"
        kept += f", at most {design.each} in one cell; intervals at {level(0.95)} are about noise"
        lines += wrapped(sentence(kept))
        charge = self.loss.charge
        lines += wrapped(f"Cost: {cost_text(charge.epsilon, charge.delta)}, {_whom(self.loss)}.")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw cells by their counts, of all hours together; or origins by destinations.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.tables._records import draw_places

        return draw_places(self, path)


def visits(
    paths: Paths,
    grid: PlaceGrid,
    *,
    max_visits: int,
    epsilon: Number,
    delta: Number = 0,
    by_hour: bool = True,
    per_cell: int = 1,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: str = "person",
) -> PlaceCounts:
    """How many were seen in each cell of a public grid, by hour of the day.

    Parameters
    ----------
    paths : Paths
    grid : PlaceGrid
        At most 2**22 counts in all.
    max_visits : int
        How many rows of a unit count; which ones is drawn at random where it has more.
    epsilon, delta : number
        What the release may cost. Of Laplace and Gaussian noise the better one is used.
    by_hour : bool
        Whether cells are counted for each of the 24 hours, by seconds modulo a day.
    per_cell : int
        How often a unit counts in one cell and hour: once, where people are counted.
    neighbours : {"add-remove", "replace"}
        What may become of all rows of one unit.
    unit : str
        Who is protected, as a noun.

    Returns
    -------
    PlaceCounts

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.
    BudgetError, PromiseError
        The account of the paths cannot bear it; nothing was charged or read.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for all rows of one unit. Where a unit has more rows than
    count, counts are of what is kept, and lie below the truth.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import places
    >>> who = np.repeat(np.arange(1000), 3)
    >>> paths = places.Paths(who, np.tile([0, 3600, 7200], 1000), np.tile([0.5, 1.5, 0.5], 1000),
    ...     np.full(3000, 0.5))
    >>> found = places.visits(paths, places.PlaceGrid(1, 2, cell=1), max_visits=3, epsilon=1)
    >>> found.counts.shape, found.half_width(0.95), found.loss.charge.epsilon
    ((2, 24), 9, Fraction(1, 1))
    """
    hours = HOURS if check.flag("by_hour", by_hour) else 1
    cells = checked_grid(grid).cells * hours
    design = _design(cells, "max_visits", max_visits, per_cell, epsilon, delta, neighbours)
    loss = promised(design.chosen, design.neighbours, unit)
    checked_paths(paths).charge(loss, "visits", hours, *design.said, *grid.said)
    who, time, where = paths.located(grid)
    # Times are finite; far ones have no hour that could be told, and some hour all the same.
    hour = np.floor_divide(time, 3600.0) % hours
    counts = design.release(who, where * hours + np.nan_to_num(hour).astype(np.int64))
    axes = ("cell", "hour") if by_hour else ("cell",)
    shape = (grid.cells, hours) if by_hour else (grid.cells,)
    return PlaceCounts("visits", grid, axes, counts.reshape(shape), design, loss)


def origin_destination(
    paths: Paths,
    grid: PlaceGrid,
    *,
    max_trips: int,
    epsilon: Number,
    delta: Number = 0,
    gap: Number | None = None,
    per_cell: int = 1,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: str = "person",
) -> PlaceCounts:
    """How many trips begin in each cell of a public grid and end in each other.

    Parameters
    ----------
    paths : Paths
        A trip is what lies on the grid of a unit's path.
    grid : PlaceGrid
        At most 2048 cells.
    max_trips : int
        How many trips of a unit count; which ones is drawn at random where it has more.
    epsilon, delta : number
        What the release may cost.
    gap : number, optional
        Seconds without a row after which another trip begins; without it a path is one trip.
    per_cell : int
        How often a unit counts for one origin and destination: once, where people are counted.
    neighbours : {"add-remove", "replace"}
    unit : str
        Who is protected, as a noun.

    Returns
    -------
    PlaceCounts

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.
    BudgetError, PromiseError
        The account of the paths cannot bear it; nothing was charged or read.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for all trips of one unit.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import places
    >>> who = np.repeat(np.arange(500), 2)
    >>> paths = places.Paths(who, np.tile([0, 600], 500), np.tile([0.5, 1.5], 500),
    ...     np.full(1000, 0.5))
    >>> grid = places.PlaceGrid(1, 2, cell=1)
    >>> found = places.origin_destination(paths, grid, max_trips=1, epsilon=1)
    >>> bool(abs(found.counts[0, 1] - 500) < 40), found.half_width(0.95)
    (True, 3)
    """
    size = checked_grid(grid).cells
    design = _design(size**2, "max_trips", max_trips, per_cell, epsilon, delta, neighbours)
    loss, pause = promised(design.chosen, design.neighbours, unit), checked_gap(gap)
    checked_paths(paths).charge(loss, "trips", gap, *design.said, *grid.said)
    who, trip, where = paths.trips(grid, pause)
    first = np.flatnonzero(places_in(trip) == 0)
    last = np.append(first[1:], who.size)[: first.size] - 1
    counts = design.release(who[first], where[first] * size + where[last])
    axes = ("origin", "destination")
    return PlaceCounts("trips", grid, axes, counts.reshape(size, size), design, loss)


def _design(
    cells: int, name: str, most: Any, each: Any, epsilon: Any, delta: Any, neighbours: Any
) -> PlaceDesign:
    if cells > _MOST_COUNTS:
        raise ArgumentError(f"grid must have fewer cells: {cells:,} counts are too many")
    rows = check.whole(name, most, 1, 1 << 20)
    return PlaceDesign(
        cells,
        rows,
        min(rows, check.whole("per_cell", each, 1, 1 << 20)),
        check.positive("epsilon", epsilon),
        check.exact("delta", delta, least=0, below=1),
        as_table_neighbours(neighbours),
    )


def promised(chosen: ChosenNoise, neighbours: Neighbours, unit: str) -> Loss:
    """What a release costs, stated for a unit."""
    return chosen.loss(neighbours=neighbours).promising(Promise(unit, neighbours))


def _whom(loss: Loss) -> str:
    promise = loss.promise
    return "" if promise is None else promise.describe()


def widths(squares: Floats, confidence: float, noise: DiscreteLaplace | DiscreteGaussian) -> Floats:
    """How far sums of such noises stray, from their variances and weights of at most 1."""
    from dither._stats import two_sided
    from dither.mechanisms._combination import continuous_deviation, laplace_normal_factor

    square = np.asarray(squares, dtype=np.float64)
    if isinstance(noise, DiscreteGaussian):
        return np.asarray(two_sided(confidence) * np.sqrt(square) + 0.5)
    # Weights are at most 1, so that Σ|k·d|³ is at most d times Σ(k·d)².
    over = (continuous_deviation(noise) * square) ** (2 / 3)
    share = np.divide(over, square, out=np.ones_like(square), where=square > 0)
    found = laplace_normal_factor(np.minimum(share, 1.0), confidence) * np.sqrt(square)
    return np.asarray(found + 0.5)
