"""Synthetic paths: a Markov model over cells whose ends and lengths are measured by themselves.

A trip is a sequence of cells, of which one that follows itself counts once; a longer one than
``max_length`` is thinned evenly, both ends kept. Of each trip three integer vectors leave, stacked,
with noise of one law: where it begins and ends (weight a), which steps from cell to cell it takes,
each once (weight b), and how many cells it has (weight c).

*Guarantee.* A trip adds a to one coordinate, b to at most L - 1 others and c to one more, where L
is ``max_length``; so it moves the stack by at most a + b(L - 1) + c in the L1, and
a² + b²(L - 1) + c² in the squared L2 norm. A unit of at most m trips moves it by m and m² times
that (the triangle inequality), twice as much where it is replaced. The weights are public: they
share what noise costs. Everything after is made of what left.

Model. With T the noisy steps as a chain, R_l[s, e] = (T^(l-1))[s, e] is the chance to be in e after
l cells from s, and trips have the law J[l, s, e] = u[l]·v[s, e]·R_l[s, e] whose ends and lengths
are those that were measured, as nearly as R allows (iterative proportional fitting: of all such
laws the one nearest to the chain). A path is drawn from J and then step by step, from the chain
that is bound to arrive.

Source. Ends, lengths and steps apart as in Gursoy, Liu, Truex, Yu and Wei, "Utility-aware synthesis
of differentially private and attack-resilient location traces" (AdaTrace), CCS 2018; a chain over
cells as in He, Cormode, Machanavajjhala, Procopiuc and Srivastava, "DPT", VLDB 2015, and Wang et
al., "PrivTrace", USENIX Security 2023. There noise is of floats; here it is of integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, cost_text, count_text, percent, wrapped
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, Sensitivity
from dither.mechanisms.chooser import ChosenNoise, additive_noise
from dither.places._counts import promised
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
from dither.privacy import Loss, Neighbours
from dither.privacy._promise import as_table_neighbours

__all__ = ["PathDesign", "PathErrors", "PathModel", "compare_paths", "path_model"]

_MOST_CELLS, _LONGEST = 256, 64
_SHARES = (0.7, 0.25, 0.05)
"""Of what noise costs: ends, of which there are most, steps, lengths."""
_STEP = 8
"""The weight of a step, in which the other two are rounded."""
_FLOOR = 1e-3
"""The share of every cell's steps that goes anywhere, so that each end can be reached."""
_ROUNDS = 40


@dataclass(frozen=True)
class PathDesign:
    """What leaves of trips, fixed before any row is read.

    Parameters
    ----------
    cells, longest : int
        Of the grid, and of a trip.
    trips : int
        Of a unit that count.
    epsilon, delta : Fraction
    neighbours : Neighbours

    Attributes
    ----------
    weights : tuple of int
        Of ends, steps and lengths.
    chosen : ChosenNoise
    """

    cells: int
    longest: int
    trips: int
    epsilon: Fraction
    delta: Fraction
    neighbours: Neighbours
    weights: tuple[int, int, int] = field(init=False)
    chosen: ChosenNoise = field(init=False)

    def __post_init__(self) -> None:
        steps = max(1, self.longest - 1)
        cost = [_STEP * steps * share / _SHARES[1] for share in _SHARES]
        by_square = [_STEP * math.sqrt(steps * share / _SHARES[1]) for share in _SHARES]
        plans = []
        for delta, (ends, _, length) in ((Fraction(0), cost), (self.delta, by_square)):
            weights = max(1, round(ends)), _STEP, max(1, round(length))
            chosen = additive_noise(self.moved(weights), self.epsilon, delta)
            plans.append((chosen.mechanism.variance / weights[1] ** 2, weights, chosen))
        _, weights, chosen = min(plans, key=lambda plan: plan[0])
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "chosen", chosen)

    def moved(self, weights: tuple[int, int, int]) -> Sensitivity:
        """How far a unit moves the stack."""
        both = 2 if self.neighbours is Neighbours.REPLACE else 1
        ends, step, length = weights
        l1 = ends + step * (self.longest - 1) + length
        square = ends**2 + step**2 * (self.longest - 1) + length**2
        return Sensitivity.of(
            l1=both * self.trips * l1,
            l2_squared=both * self.trips**2 * square,
            dimension=2 * self.cells**2 + self.longest,
        )

    def exact(self, trip: Integers, cells: Integers) -> Integers:
        """The stack without noise, of trips that lie together."""
        k, (ends, step, length) = self.cells, self.weights
        trip, cells = _short(trip, cells, self.longest)
        place = places_in(trip)
        first = np.flatnonzero(place == 0)
        last = np.append(first[1:], trip.size)[: first.size] - 1
        begun = np.bincount(cells[first] * k + cells[last], minlength=k * k)
        inner = place[1:] > 0
        keys = np.stack([trip[1:][inner], cells[:-1][inner] * k + cells[1:][inner]])
        taken = np.bincount(np.unique(keys, axis=1)[1], minlength=k * k)
        long = np.bincount(place[last], minlength=self.longest)
        return np.concatenate([ends * begun, step * taken, length * long])

    def release(self, trip: Integers, cells: Integers) -> tuple[Floats, Floats, Floats]:
        """The one step that reads trips: noisy ends, steps and lengths, in trips."""
        exact, noise = self.exact(trip, cells), self.chosen.mechanism
        assert isinstance(noise, DiscreteLaplace | DiscreteGaussian)
        noisy = (exact + noise.draw(exact.size)).astype(np.float64)
        k = self.cells
        parts = np.split(noisy, [k * k, 2 * k * k])
        ends, steps, lengths = (p / w for p, w in zip(parts, self.weights, strict=True))
        return ends.reshape(k, k), steps.reshape(k, k), lengths

    @property
    def deviations(self) -> tuple[float, float, float]:
        """Of the noise in a count of ends, of steps and of lengths, in trips."""
        deviation = math.sqrt(self.chosen.mechanism.variance)
        ends, step, length = (deviation / weight for weight in self.weights)
        return ends, step, length

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        design = cls(2, 2, 1, Fraction(1), Fraction(0), Neighbours.ADD_REMOVE)
        noise, both = design.chosen.mechanism, design.exact(np.array([0, 0]), np.array([0, 1]))
        assert isinstance(noise, DiscreteLaplace)

        def run(exact: Integers, size: int) -> Floats:
            # The likelihood ratio of the two, which sees all that the stack tells.
            seen = exact + noise.draw((size, exact.size))
            return np.asarray((np.abs(seen) - np.abs(seen - both)).sum(axis=1))

        yield Subject("paths", run, np.zeros_like(both), both)


def _short(trip: Integers, cells: Integers, longest: int) -> tuple[Integers, Integers]:
    """Trips without stays, thinned evenly to at most so many cells, both ends kept."""
    moved = np.ones(trip.size, dtype=np.bool_)
    moved[1:] = (trip[1:] != trip[:-1]) | (cells[1:] != cells[:-1])
    trip, cells = trip[moved], cells[moved]
    place = places_in(trip)
    first = np.flatnonzero(place == 0)
    sizes = np.diff(np.append(first, trip.size))
    if not sizes.size or sizes.max() <= longest:
        return trip, cells
    size = np.repeat(sizes, sizes)
    # Of n rows those are kept at which floor(i·(L-1)/(n-1)) is new: L of them, the last one too.
    step = np.where(size > longest, place * (longest - 1) // np.maximum(size - 1, 1), place)
    kept = np.ones(trip.size, dtype=np.bool_)
    kept[1:] = (place[1:] == 0) | (step[1:] != step[:-1])
    trip, cells = trip[kept], cells[kept]
    moved = np.ones(trip.size, dtype=np.bool_)
    moved[1:] = (trip[1:] != trip[:-1]) | (cells[1:] != cells[:-1])
    return trip[moved], cells[moved]


class PathModel(Printable):
    """A law of paths over the cells of a public grid, made of what left with noise.

    Made by `path_model`. Whatever it answers costs nothing more.

    Attributes
    ----------
    ends : array of float, shape (cells, cells)
        Shares of trips by first and last cell.
    steps : array of float, shape (cells, cells)
        The chain: chances of the next cell.
    lengths : array of float, shape (max_length,)
        Shares of trips of 1, 2, ... cells.
    """

    def __init__(
        self,
        grid: PlaceGrid,
        design: PathDesign,
        released: tuple[Floats, Floats, Floats],
        loss: Loss,
    ) -> None:
        self.grid, self.design, self.loss = grid, design, loss
        ends, steps, lengths = released
        self.total = max(1.0, float(lengths.sum()))
        self.lengths = _shares(lengths, self.total)
        self.ends = _shares(ends.ravel(), self.total).reshape(ends.shape)
        self.steps = _chain(steps, grid, design.deviations[1])
        self._powers = [np.eye(grid.cells)]
        for _ in range(design.longest - 1):
            self._powers.append(self._powers[-1] @ self.steps)
        self._law = _fitted(np.stack(self._powers), self.ends, self.lengths)

    def sample(self, n: int, rng: np.random.Generator) -> list[Integers]:
        """Draw paths.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator
            What is drawn follows from what was released, and costs nothing.

        Returns
        -------
        list of array of int
            The cells of each path, in order; `PlaceGrid.centres` says where they are.
        """
        n, rng = check.whole("n", n, 0, 10**8), check.generator("rng", rng)
        k = self.grid.cells
        drawn = rng.choice(self._law.size, size=n, p=self._law.ravel())
        length, rest = np.divmod(drawn, k * k)
        start, end = np.divmod(rest, k)
        found = np.empty((n, self.design.longest), dtype=np.int64)
        found[:, 0] = start
        for place in range(1, self.design.longest):
            going = np.flatnonzero(length >= place)
            if not going.size:
                break
            for left in np.unique(length[going] - place):
                some = going[length[going] - place == left]
                chance = self.steps[found[some, place - 1]] * self._powers[left][:, end[some]].T
                below = np.cumsum(chance, axis=1)
                at = rng.random((some.size, 1)) * below[:, -1:]
                found[some, place] = np.minimum((below <= at).sum(axis=1), k - 1)
        return [path[: size + 1] for path, size in zip(found, length, strict=True)]

    def summary(self) -> str:
        """A few lines for people: how many trips, how much noise, what it cost."""
        ends, steps, lengths = self.design.deviations
        charge = self.loss.charge
        lines = wrapped(
            f"paths over {self.grid}, of at most {count_text(self.design.longest, 'cell')}; "
            f"about {self.total:,.0f} trips"
        )
        lines += wrapped(
            f"Deviation of the noise, in trips: {ends:.3g} of one origin with one destination, "
            f"{steps:.3g} of a step from cell to cell, {lengths:.3g} of a length."
        )
        lines += wrapped(f"Cost: {cost_text(charge.epsilon, charge.delta)}.")
        return "\n".join(lines)


def _shares(counts: Floats, total: float) -> Floats:
    """The nearest counts of at least 0 that add up to a total, as shares of it."""
    ordered = np.sort(counts)[::-1]
    over = np.cumsum(ordered) - total
    at = np.flatnonzero(ordered > over / np.arange(1, ordered.size + 1))
    shift = over[at[-1]] / (at[-1] + 1) if at.size else 0.0
    found = np.maximum(counts - shift, 0.0)
    return (
        np.asarray(found / found.sum())
        if found.sum() > 0
        else np.full(counts.size, 1 / counts.size)
    )


def _chain(steps: Floats, grid: PlaceGrid, deviation: float) -> Floats:
    """Chances of the next cell; where noise hides all steps, those to the cells around."""
    row, column = np.divmod(np.arange(grid.cells), grid.columns)
    apart = np.maximum(np.abs(row[:, None] - row), np.abs(column[:, None] - column))
    near = (apart == 1).astype(np.float64)
    # Steps to the cells around are expected; of all others, of which there are many more than
    # steps, what lies below five deviations is mostly noise.
    found = np.where(steps > np.where(near > 0, 1, 5) * deviation, steps, 0.0)
    np.fill_diagonal(found, 0.0)
    found += near * max(deviation, 0.5) / 8
    summed = found.sum(axis=1, keepdims=True)
    found = np.divide(found, summed, out=np.full_like(found, 1 / grid.cells), where=summed > 0)
    return np.asarray((1 - _FLOOR) * found + _FLOOR / grid.cells)


def _fitted(reach: Floats, ends: Floats, lengths: Floats) -> Floats:
    """The law of lengths and ends that is nearest to the chain, with both as they were measured."""
    found = reach * lengths[:, None, None]
    for _ in range(_ROUNDS):
        summed = found.sum(axis=0)
        found = found * np.divide(ends, summed, out=np.zeros_like(ends), where=summed > 0)
        summed = found.sum(axis=(1, 2))
        factor = np.divide(lengths, summed, out=np.zeros_like(lengths), where=summed > 0)
        found = found * factor[:, None, None]
    # Ends are kept before lengths.
    summed = found.sum(axis=0)
    found = found * np.divide(ends, summed, out=np.zeros_like(ends), where=summed > 0)
    total = found.sum()
    if not total > 0:
        # Of a single length that reaches none of the ends: the ends as they were measured.
        found = np.zeros_like(reach)
        found[-1] = ends
        total = found.sum()
    return np.asarray(found / total)


def path_model(
    paths: Paths,
    grid: PlaceGrid,
    *,
    max_length: int,
    epsilon: Number,
    delta: Number = 0,
    max_trips: int = 1,
    gap: Number | None = None,
    neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    unit: str = "person",
) -> PathModel:
    """A model of trips, of which paths may be drawn that are nobody's.

    Parameters
    ----------
    paths : Paths
    grid : PlaceGrid
        At most 256 cells.
    max_length : int
        Cells of a trip, from 2 to 64; a longer one is thinned, its ends kept.
    epsilon, delta : number
        What the release may cost.
    max_trips : int
        How many trips of a unit count; which ones is drawn at random where it has more.
    gap : number, optional
        Seconds without a row after which another trip begins; without it a path is one trip.
    neighbours : {"add-remove", "replace"}
    unit : str

    Returns
    -------
    PathModel

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
    >>> who, x = np.repeat(np.arange(2000), 3), np.tile([0.5, 1.5, 2.5], 2000)
    >>> paths = places.Paths(who, np.tile([0, 60, 120], 2000), x, np.full(6000, 0.5))
    >>> model = places.path_model(paths, places.PlaceGrid(1, 3, cell=1), max_length=4, epsilon=2)
    >>> drawn = model.sample(100, np.random.default_rng(1))
    >>> sum(path.tolist() == [0, 1, 2] for path in drawn) > 60
    True
    """
    if checked_grid(grid).cells > _MOST_CELLS or grid.cells < 2:
        raise ArgumentError(f"grid must have from 2 to {_MOST_CELLS} cells for a model of paths")
    design = PathDesign(
        grid.cells,
        check.whole("max_length", max_length, 2, _LONGEST),
        check.whole("max_trips", max_trips, 1, 1 << 10),
        check.positive("epsilon", epsilon),
        check.exact("delta", delta, least=0, below=1),
        as_table_neighbours(neighbours),
    )
    loss, pause = promised(design.chosen, design.neighbours, unit), checked_gap(gap)
    said = (design.longest, design.trips, design.epsilon, design.delta, design.neighbours.value)
    checked_paths(paths).charge(loss, "path model", gap, *said, *grid.said)
    who, trip, cells = paths.trips(grid, pause)
    first = np.flatnonzero(places_in(trip) == 0)
    kept = kept_rows(who[first], trip[first], design.trips, 1)
    inside = np.isin(trip, trip[first[kept]])
    return PathModel(grid, design, design.release(trip[inside], cells[inside]), loss)


@dataclass(frozen=True)
class PathErrors(Printable):
    """How far paths are from real ones: total variation distances, from 0 to 1.

    Parameters
    ----------
    ends, lengths, visits : float
        Of first and last cells together, of numbers of cells, and of cells that are passed.
    """

    ends: float
    lengths: float
    visits: float

    def summary(self) -> str:
        """One line, which is about people's data: measured without noise, not to be published."""
        parts = ("ends", "lengths", "visits")
        found = ", ".join(f"{part} {percent(Fraction(getattr(self, part)))}" for part in parts)
        return f"total variation: {found}; without noise, not to be published"


def compare_paths(
    real: Paths,
    drawn: Sequence[Any],
    grid: PlaceGrid,
    *,
    max_length: int,
    gap: Number | None = None,
) -> PathErrors:
    """Hold paths against real ones, without noise: for whoever holds the data, not to be published.

    Parameters
    ----------
    real : Paths
    drawn : sequence of array of int
        Cells of each path, as `PathModel.sample` gives them.
    grid : PlaceGrid
    max_length : int
    gap : number, optional
        As for `path_model`.

    Examples
    --------
    >>> from dither import places
    >>> paths = places.Paths([1, 1], [0, 1], [0.5, 1.5], [0.5, 0.5])
    >>> print(places.compare_paths(paths, [[0, 1]], places.PlaceGrid(1, 2, cell=1), max_length=2))
    total variation: ends 0 %, lengths 0 %, visits 0 %; without noise, not to be published
    """
    longest = check.whole("max_length", max_length, 2, _LONGEST)
    _, trip, cells = checked_paths(real).trips(checked_grid(grid), checked_gap(gap))
    here = _short(trip, cells, longest)
    try:
        parts = [grid.codes_of("drawn", path).ravel() for path in drawn]
    except TypeError:
        raise ArgumentError("drawn must be sequences of the grid's cells") from None
    sizes = [part.size for part in parts]
    codes = np.concatenate([*parts, np.zeros(0, np.int64)])
    there = _short(np.repeat(np.arange(len(sizes)), sizes), codes, longest)
    apart = []
    for one, other in zip(
        _laws(*here, grid.cells, longest), _laws(*there, grid.cells, longest), strict=True
    ):
        apart.append(float(np.abs(one - other).sum() / 2))
    return PathErrors(*apart)


def _laws(trip: Integers, cells: Integers, k: int, longest: int) -> tuple[Floats, Floats, Floats]:
    place = places_in(trip)
    first = np.flatnonzero(place == 0)
    last = np.append(first[1:], trip.size)[: first.size] - 1
    found = (
        np.bincount(cells[first] * k + cells[last], minlength=k * k),
        np.bincount(place[last], minlength=longest),
        np.bincount(cells, minlength=k),
    )
    ends, lengths, seen = (counts / max(1, counts.sum()) for counts in found)
    return ends, lengths, seen
