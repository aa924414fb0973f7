"""Total variation between all small tables of counts of two tables, and what chance alone gives.

With a rows of n in a cell of the real table and b of m in that of the synthetic one, the distance
is ``1/2 · sum |a/n - b/m|``, here the exact integer ``sum |a·m - b·n|`` over ``2·n·m``.

A sample of m rows, drawn anew from the real table itself, has a distance too. Its mean is

    1/2 · sum E|B - m·p| / m,    B binomial of m and p = a/n,

and de Moivre's E|B - m·p| = 2·k·C(m, k)·p^k·(1-p)^(m-k+1), with k the whole part of m·p + 1. No
generator that has not copied rows need be nearer than that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither.lab._cells import CodedColumn
from dither.lab._grouping import Ints, combine, label

__all__ = ["ComparedTables", "Distance", "distances", "many"]

_DENSE = 16
"""Cells a row, up to which counts are a table of all cells; beyond, rows are sorted."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far apart two tables of counts are.

    Attributes
    ----------
    columns : tuple of int
    cells : int
        All that there can be.
    value : float
        Total variation, in [0, 1].
    chance : float
        The mean of that of as many rows drawn from the real table.
    """

    columns: tuple[int, ...]
    cells: int
    value: float
    chance: float


@dataclass(frozen=True, slots=True, eq=False)
class ComparedTables:
    """Both tables: columns whose first ``real`` rows are the real ones."""

    columns: tuple[CodedColumn, ...]
    real: int
    synthetic: int


def many(columns: int, order: int) -> int:
    """How many tables of so many columns there are."""
    return math.comb(columns, order)


def distances(
    tables: ComparedTables, order: int, most: int, generator: np.random.Generator
) -> list[Distance]:
    """The distance of every table of so many columns; of ``most`` drawn ones where there are more.

    Parameters
    ----------
    tables : ComparedTables
    order : int
        Columns of a table, at least 1.
    most : int
    generator : numpy.random.Generator
        Draws which tables.
    """
    n, m = tables.real, tables.synthetic
    deviations = _deviations(n, m)
    found = []
    for chosen, key, size in _keys(tables, _chosen(len(tables.columns), order, most, generator)):
        a, b = _counts(key, size, n)
        apart = np.abs(a * m - b * n).sum() if n != m else np.abs(a - b).sum() * n
        cells = math.prod(tables.columns[i].size for i in chosen)
        chance = float(deviations[a[a > 0]].sum()) / (2 * m)
        found.append(Distance(chosen, cells, int(apart) / (2 * n * m), chance))
    return found


def _chosen(
    columns: int, order: int, most: int, generator: np.random.Generator
) -> Iterator[tuple[int, ...]]:
    """Sets of columns, in order; a sample without repetition where there are too many."""
    if many(columns, order) <= most:
        yield from itertools.combinations(range(columns), order)
        return
    seen: set[tuple[int, ...]] = set()
    while len(seen) < most:
        drawn = generator.choice(columns, order, replace=False)
        seen.add(tuple(sorted(map(int, drawn))))
    yield from sorted(seen)


def _keys(
    tables: ComparedTables, chosen: Iterator[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, ...], Ints, int]]:
    """One key a row for each set of columns; what two sets in turn begin with is made once."""
    rows = tables.real + tables.synthetic
    begun: tuple[int, ...] = ()
    shared: tuple[Ints, int] = (np.zeros(0, dtype=np.int64), 1)
    for columns in chosen:
        *first, last = columns
        if tuple(first) != begun or not first:
            begun = tuple(first)
            parts = [(tables.columns[i].codes, tables.columns[i].size) for i in begun]
            shared = combine(parts, rows)
        one = tables.columns[last]
        both = [shared, (one.codes, one.size)] if begun else [(one.codes, one.size)]
        yield columns, *combine(both, rows)


def _counts(key: Ints, size: int, real: int) -> tuple[Ints, Ints]:
    """Rows of each key in both tables."""
    if size > _DENSE * len(key) + 1024:
        classes = label(key, size)
        key, size = classes.of, len(classes.first)
    return np.bincount(key[:real], minlength=size), np.bincount(key[real:], minlength=size)


def _log_factorials(k: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.array([math.lgamma(one + 1.0) if one >= 0 else math.inf for one in k.tolist()])


def _deviations(n: int, m: int) -> npt.NDArray[np.float64]:
    """E|B - m·p| of m draws, by the rows of n in the cell: 0 to n."""
    a = np.arange(n + 1, dtype=np.float64)
    k = np.floor(np.arange(n + 1) * m // n + 1.0)
    found = np.zeros(n + 1)
    inner = slice(1, n)
    p, k = a[inner] / n, k[inner]
    logs = math.lgamma(m + 1.0) - _log_factorials(k) - _log_factorials(m - k)
    logs += k * np.log(p) + (m - k + 1.0) * np.log1p(-p)
    found[inner] = 2.0 * k * np.exp(logs)
    return found
