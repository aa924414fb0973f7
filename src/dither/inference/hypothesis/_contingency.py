"""Tests through a noisy table: counts of public cells leave once, and the null is simulated.

Release. Cells are a public grid, categories or bins, of groups and of values; each row is in one
cell, or in none where what it holds is missing or undeclared. Every count leaves with the integer
noise of `dither.mechanisms.DiscreteLaplace`. A row that is added or removed changes one count by
1; a row that is replaced changes two. That holds whatever of a row changes, so that the label of
the group is as private as the value: one person who moves leaves one group and joins another.

Model. A table drawn under the null, multinomial with as many rows as the noisy table holds (n,
where it is public), with fresh noise. Where the null leaves something open (the margins of
independence) it is fitted to the noisy table. What falls into no cell is not modelled.

Infer. Any statistic of the noisy table, with p = (1 + #)/(B + 1): the noise is in the statistic
and in the null alike, so that the level holds where naive tests of noisy counts reject up to two
true nulls in three. Exact where the null is given, a parametric bootstrap where it is fitted.

Source. Gaboardi, Lim, Rogers and Vadhan, "Differentially private chi-squared hypothesis testing",
ICML 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS
from dither.inference.engine._inputs import Floats, Target, target
from dither.inference.engine._result import (
    PrivateTest,
    share_of_noise,
    simulated_test,
    too_few_rows,
)
from dither.inference.engine._simulation import Seed, SimulatedDraws
from dither.mechanisms import DiscreteLaplace
from dither.privacy import Loss, Neighbours

__all__ = [
    "TableRelease",
    "codes",
    "goodness_of_fit",
    "independence_test",
    "levels_of",
    "pearson",
    "result_of_table",
]

Codes = npt.NDArray[np.int64]


def levels_of(name: str, given: Any) -> list[Any]:
    """Read declared categories: at least two, all different.

    Examples
    --------
    >>> levels_of("categories", ("a", "b"))
    ['a', 'b']
    """
    try:
        levels = [] if isinstance(given, str | bytes) else list(given)
        distinct = len(set(levels))
    except TypeError:
        raise ArgumentError(f"{name} must be a sequence of texts or numbers") from None
    if len(levels) < 2 or distinct < len(levels):
        raise ArgumentError(f"{name} must be at least two categories, each named once")
    return levels


def codes(name: str, values: Any, levels: Sequence[Any]) -> Codes:
    """The place of each value among the levels, -1 for what is missing or not declared.

    Examples
    --------
    >>> codes("x", ["b", None, "a", ["odd"]], ["a", "b"])
    array([ 1, -1,  0, -1])
    """
    if isinstance(values, str | bytes) or not hasattr(values, "__iter__"):
        raise ArgumentError(f"{name} must be a flat sequence of categories")
    listed = getattr(values, "to_pylist", None) or getattr(values, "tolist", None)
    items = listed() if listed else list(values)
    known = {level: place for place, level in enumerate(levels)}

    def place(value: Any) -> int:
        try:
            return known.get(value, -1)
        except Exception:
            # Whatever a type of somebody's own raises must not tell the caller about one row.
            return -1

    return np.array([place(value) for value in items], dtype=np.int64)


@dataclass(frozen=True)
class TableRelease:
    """Layer 1: the counts of a public grid of cells.

    Parameters
    ----------
    shape : tuple of int
        Of the grid.
    asked : Target
    """

    shape: tuple[int, ...]
    asked: Target
    noise: DiscreteLaplace = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        moved = 2 if self.asked.replace else 1
        noise = DiscreteLaplace.for_loss(self.asked.epsilon, l1=moved)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", noise.loss(l1=moved, neighbours=self.asked.neighbours))

    def statistic(self, places: Sequence[Codes]) -> npt.NDArray[np.int64]:
        """The table; a row with a place below 0 is in no cell."""
        held = np.all([place >= 0 for place in places], axis=0)
        flat = np.ravel_multi_index([place[held] for place in places], self.shape)
        return np.bincount(flat, minlength=math.prod(self.shape)).reshape(self.shape)

    def release(self, places: Sequence[Codes]) -> Floats:
        """The table with noise: the one step that touches data."""
        noise = np.asarray(self.noise.draw(math.prod(self.shape)), dtype=np.int64)
        return np.asarray(self.statistic(places) + noise.reshape(self.shape), dtype=float)

    def simulate(self, rng: np.random.Generator, rows: int, chances: Floats, size: int) -> Floats:
        """Layer 2: noisy tables of so many rows, in the shape ``(size, *shape)``."""
        cells = math.prod(self.shape)
        drawn = rng.multinomial(rows, chances.ravel() / chances.sum(), size).astype(float)
        return (drawn + self.drawn(rng, (size, cells))).reshape(size, *self.shape)

    def drawn(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Simulated noise of counts."""
        stop = -math.expm1(-float(self.asked.epsilon) / (2 if self.asked.replace else 1))
        # The difference of two geometric numbers has the discrete Laplace law.
        return np.asarray(rng.geometric(stop, shape) - rng.geometric(stop, shape), dtype=float)

    def _seen(self, first: Sequence[Codes], second: Sequence[Codes]) -> Callable[[Any, int], Any]:
        """Releases along the difference of two tables, for audits."""
        gap = (self.statistic(second) - self.statistic(first)).ravel()

        def run(places: Sequence[Codes], size: int) -> npt.NDArray[np.int64]:
            noise = np.asarray(self.noise.draw((size, gap.size)), dtype=np.int64)
            return np.asarray((self.statistic(places).ravel() + noise) @ gap, dtype=np.int64)

        return run

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that leaves one cell and joins another."""
        for neighbours in Neighbours.of_tables():
            design = cls((2, 2), Target(Fraction(1), Fraction(0), neighbours))
            first = np.array([0, 1]), np.array([0, 1])
            second = np.array([1, 1]), np.array([0, 1])
            if not design.asked.replace:
                second = np.array([0, 1, 1]), np.array([0, 1, 0])
            seen = design._seen(first, second)
            yield Subject(f"noisy table, {neighbours.value}", seen, first, second)


def result_of_table(
    title: str,
    null: str,
    design: TableRelease,
    places: Sequence[Codes],
    fitted: Callable[[Floats], Floats],
    statistic: Callable[[Floats], Floats],
    draws: int,
    seed: Seed,
) -> PrivateTest:
    """Release a table and test it.

    Parameters
    ----------
    fitted : callable
        Of a noisy table: the probabilities of its cells under the null.
    statistic : callable
        Of noisy tables, shape (size, ...): one number each, large where the null is wrong.
    """
    if len({len(place) for place in places}) > 1:
        raise ArgumentError("columns of one table must have equally many rows")
    released = design.release(places)
    rows = len(places[0]) if design.asked.replace else max(0, round(float(released.sum())))
    rng = SimulatedDraws.fresh(seed)
    chances = fitted(released)
    simulated = statistic(design.simulate(rng, rows, chances, draws))
    found = float(statistic(released[None])[0])
    notes = []
    needed = 20 * math.prod(design.shape) * math.sqrt(design.noise.variance)
    if rows < needed / 4:
        notes.append(too_few_rows("the noise of a cell is much of its count", needed))
    known = "n is public" if design.asked.replace else "n is as measured"
    return simulated_test(
        title,
        design.loss,
        ("rows are an independent sample", "every row is in one of the cells", known),
        tuple(notes),
        null,
        found,
        simulated,
        share_in_counts(math.sqrt(design.noise.variance), rows, chances),
    )


def share_in_counts(noise: float, rows: float, chances: Floats) -> float:
    """The share of the variance of all counts together that noise of this deviation makes.

    Examples
    --------
    >>> round(share_in_counts(5.0, 100, np.array([0.5, 0.5])), 6)
    0.5
    """
    shares = chances / chances.sum()
    sampling = rows * float(np.sum(shares * (1.0 - shares)))
    return share_of_noise(noise * math.sqrt(chances.size), math.sqrt(max(0.0, sampling)))


def pearson(chances: Floats | None) -> Callable[[Floats], Floats]:
    """Pearson's χ² of noisy tables: against probabilities, or against independence."""

    def against(tables: Floats) -> Floats:
        wanted = np.maximum(tables.sum(axis=1, keepdims=True), 1.0) * chances
        return np.asarray(((tables - wanted) ** 2 / wanted).sum(axis=1))

    def between(tables: Floats) -> Floats:
        first = np.maximum(tables.sum(axis=2, keepdims=True), 0.5)
        second = np.maximum(tables.sum(axis=1, keepdims=True), 0.5)
        wanted = first * second / np.maximum(tables.sum(axis=(1, 2), keepdims=True), 1.0)
        return np.asarray(((tables - wanted) ** 2 / np.maximum(wanted, 0.5)).sum(axis=(1, 2)))

    return between if chances is None else against


@documented
def goodness_of_fit(
    x: Any,
    *,
    categories: Sequence[Any],
    probabilities: Sequence[float] | None = None,
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Pearson's χ² test that categories have the probabilities that they are said to have.

    Parameters
    ----------
    x : sequence
        One category a row.
    categories : sequence
        All that there can be, known without looking at the data.
    probabilities : sequence of float, optional
        Above 0, one a category; they are scaled to add up to 1. By default all are equal.
    {pure_cost}
    neighbours : {"replace", "add-remove"}
        Whether n is public, or measured by the table.
    draws : int
        Simulated tables, 100 to 10**6.
    seed : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row being the unit. What is in no category is
    left out. With n public the p-value is exact.

    References
    ----------
    Gaboardi, Lim, Rogers and Vadhan, ICML 2016.

    Examples
    --------
    >>> from dither import inference
    >>> x = ["A"] * 500 + ["B"] * 300 + ["0"] * 200
    >>> found = inference.goodness_of_fit(
    ...     x, categories=["A", "B", "0"], probabilities=[0.4, 0.2, 0.4], epsilon=1)
    >>> found.pvalue < 0.001
    True
    """
    asked = target(epsilon, 0, neighbours)
    draws = check.draws(draws)
    levels = levels_of("categories", categories)
    chances = np.full(len(levels), 1.0)
    if probabilities is not None:
        given = [check.number("probabilities", p, above=0) for p in probabilities]
        if len(given) != len(levels):
            raise ArgumentError("probabilities must be one number for each of the categories")
        chances = np.array(given)
    chances = chances / chances.sum()

    return result_of_table(
        "goodness of fit",
        "the categories have these probabilities",
        TableRelease((len(levels),), asked),
        [codes("x", x, levels)],
        lambda _: chances,
        pearson(chances),
        draws,
        seed,
    )


def independent(table: Floats) -> Floats:
    """The cells' probabilities that a noisy table's margins give, each at least half a row's.

    Examples
    --------
    >>> independent(np.array([[2.0, 2.0], [3.0, 3.0]])).tolist()
    [[0.2, 0.2], [0.3, 0.3]]
    """
    first = np.maximum(table.sum(axis=1), 0.5)
    second = np.maximum(table.sum(axis=0), 0.5)
    return np.asarray(np.outer(first / first.sum(), second / second.sum()))


@documented
def independence_test(
    x: Any,
    y: Any,
    *,
    x_categories: Sequence[Any],
    y_categories: Sequence[Any],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Pearson's χ² test that two columns of categories have nothing to do with each other.

    Parameters
    ----------
    x, y : sequence
        One category a row, of each.
    x_categories, y_categories : sequence
        All that there can be, known without looking at the data.
    {pure_cost}
    neighbours : {"replace", "add-remove"}
        Whether n is public, or measured by the table.
    draws : int
        Simulated tables, 100 to 10**6.
    seed : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row being the unit, both of whose categories are
    protected. A row with an undeclared category is left out.

    *Level.* The margins are fitted to the noisy table, so that the p-value is that of a parametric
    bootstrap. It is conservative where the noise of a cell is much of its count: of true nulls with
    200 rows in 6 cells about 3 % are rejected at .05 with epsilon 0.5, and 4 % with epsilon 1.

    References
    ----------
    Gaboardi, Lim, Rogers and Vadhan, ICML 2016.

    Examples
    --------
    >>> from dither import inference
    >>> region = ["north"] * 500 + ["south"] * 500
    >>> ill = [True] * 300 + [False] * 200 + [True] * 150 + [False] * 350
    >>> found = inference.independence_test(
    ...     region, ill, x_categories=["north", "south"], y_categories=[False, True], epsilon=1)
    >>> found.pvalue < 0.001
    True
    """
    asked = target(epsilon, 0, neighbours)
    draws = check.draws(draws)
    first = levels_of("x_categories", x_categories)
    second = levels_of("y_categories", y_categories)
    return result_of_table(
        "test of independence",
        "the two columns are independent",
        TableRelease((len(first), len(second)), asked),
        [codes("x", x, first), codes("y", y, second)],
        independent,
        pearson(None),
        draws,
        seed,
    )
