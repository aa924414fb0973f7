"""Reports that are whole numbers: read, with what is impossible dropped and counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dither.local._domain import column


def codes_within(reports: Any, m: int) -> tuple[npt.NDArray[np.int64], int]:
    """The reports that are whole numbers from 0 to m - 1, and how many are not.

    Parameters
    ----------
    reports : a column of anything
    """
    given = column(reports)
    if given.dtype.kind == "b":
        return np.zeros(0, dtype=np.int64), given.size
    if given.dtype.kind not in "iuf":
        given = np.fromiter((_code(v, m) for v in given.tolist()), np.int64, given.size)
    good = (given >= 0) & (given < m)
    if given.dtype.kind == "f":
        good &= given == np.floor(given)
    bad = int(given.size - np.count_nonzero(good))
    kept = given if bad == 0 else given[good]
    return kept.astype(np.int64, copy=False), bad


def _code(value: Any, m: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        return -1
    return int(value) if 0 <= value < m else -1


def rows_within(reports: Any, limits: tuple[int, ...]) -> tuple[npt.NDArray[np.int64], int]:
    """The rows whose i-th number is whole and from 0 to limits[i] - 1, and how many are not.

    `reports` is an array of shape (n, len(limits)), or a sequence of anything.
    """
    c = len(limits)
    if not isinstance(reports, np.ndarray):
        reports = _listed(reports, c)
    if reports.ndim != 2 or reports.shape[1] != c or reports.dtype.kind not in "iuf":
        if reports.ndim == 0 or reports.dtype.kind not in "O":
            return np.zeros((0, c), dtype=np.int64), len(np.atleast_1d(reports))
        reports = _listed(reports.tolist(), c)
    good = np.ones(reports.shape[0], dtype=np.bool_)
    for numbers, limit in zip(reports.T, limits, strict=True):
        good &= (numbers >= 0) & (numbers < limit)
        if reports.dtype.kind == "f":
            good &= numbers == np.floor(numbers)
    bad = int(good.size - np.count_nonzero(good))
    kept = reports if bad == 0 else reports[good]
    return kept.astype(np.int64, copy=False), bad


def _listed(reports: Any, c: int) -> npt.NDArray[np.int64]:
    """Rows of a sequence; -1 throughout where one is not a row of whole numbers of 63 bits."""
    impossible = (-1,) * c
    found = [tuple(row) if _whole(row, c) else impossible for row in reports]
    return np.array(found, dtype=np.int64).reshape(len(found), c)


def _whole(row: Any, c: int) -> bool:
    try:
        return (
            not isinstance(row, str | bytes)
            and len(row) == c
            and all(
                isinstance(v, int | np.integer) and not isinstance(v, bool) and 0 <= v < 1 << 63
                for v in row
            )
        )
    except TypeError:
        return False
