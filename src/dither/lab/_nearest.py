"""How near rows lie to the nearest row of a table: Gower's distance.

Each column counts alike: 0 or 1 where its values are equal or not, and for numbers and times by how
far they lie apart, as a share of all that is seen. So 0 is a copy, and 1 is other in everything.

Source. Gower, "A general coefficient of similarity and some of its properties", 1971.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from dither.lab._grouping import Ints

__all__ = ["nearest_place", "nearest_rows"]

Floats = npt.NDArray[np.float64]
Columns = Sequence[tuple[Ints, npt.NDArray[np.float64] | None]]
"""A column each: codes, and places in [0, 1] of all rows (NaN for what has none), or None, or the
distance of each code of ``rows`` to each of ``among``, in two dimensions."""

_BLOCK = 1 << 21
"""Pairs of rows at a time."""


def nearest_rows(columns: Columns, rows: Ints, among: Ints, *, but_itself: bool = False) -> Floats:
    """The distance of each row to the nearest of others.

    Parameters
    ----------
    columns : sequence of (codes, places)
        Of all rows of all tables, one under the other.
    rows, among : array of int64
        Which of them.
    but_itself : bool
        Whether ``rows`` and ``among`` are the same and a row is not its own neighbour.

    Returns
    -------
    array of float64, shape (rows,)
        In [0, 1].

    Examples
    --------
    >>> sex, age = np.array([0, 1, 0]), np.array([0.0, 0.5, 1.0])
    >>> table = [(sex, None), (np.array([0, 1, 2]), age)]
    >>> nearest_rows(table, np.array([0, 1]), np.array([2])).tolist()
    [0.5, 0.75]
    """
    found = np.empty(len(rows))
    for start, total in _blocks(columns, rows, among, but_itself):
        found[start : start + len(total)] = total.min(axis=1)
    return found / len(columns)


def nearest_place(columns: Columns, rows: Ints, among: Ints) -> tuple[Ints, Floats]:
    """Where in ``among`` the nearest to each row stands, the first of several, and its distance.

    Examples
    --------
    >>> age = np.array([0.0, 0.5, 1.0])
    >>> place, far = nearest_place([(np.arange(3), age)], np.array([0]), np.array([2, 1]))
    >>> place.tolist(), far.tolist()
    ([1], [0.5])
    """
    place, far = np.zeros(len(rows), dtype=np.int64), np.empty(len(rows))
    for start, total in _blocks(columns, rows, among, False):
        these = slice(start, start + len(total))
        place[these] = total.argmin(axis=1)
        far[these] = total.min(axis=1)
    return place, far / len(columns)


def _blocks(
    columns: Columns, rows: Ints, among: Ints, but_itself: bool
) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """Some rows at a time: the first of them, and their summed distances to all others."""
    small = [
        (codes.astype(np.uint16 if codes.max(initial=0) < 1 << 16 else np.uint32),
         None if places is None else places.astype(np.float32))
        for codes, places in columns
    ]  # fmt: skip
    step = max(1, _BLOCK // max(1, len(among)))
    for start in range(0, len(rows), step):
        these = rows[start : start + step]
        total = np.zeros((len(these), len(among)), dtype=np.float32)
        for codes, places in small:
            if places is None:
                total += codes[these, None] != codes[among]
                continue
            if places.ndim == 2:
                total += places[codes[these]][:, codes[among]]
                continue
            apart = np.abs(places[these, None] - places[among])
            if np.isnan(places[these]).any() or np.isnan(places[among]).any():
                apart = np.where(np.isnan(apart), codes[these, None] != codes[among], apart)
            total += apart
        if but_itself:
            total[np.arange(len(these)), start + np.arange(len(these))] = np.inf
        yield start, total
