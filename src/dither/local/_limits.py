"""What all channels read and refuse alike: epsilons, shares, reports, huge sizes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._domain import column

MOST = 1 << 62
"""The most people or reports that can be counted."""

MOST_EPSILON = 40
_MIN_EPSILON = Fraction(1, 1 << 32)
_MAX_CELLS = 1 << 26


@contextmanager
def described(message: str) -> Iterator[None]:
    """Read a description that may say anything: whatever cannot be read is refused so.

    A refusal that says more, our own, is kept.
    """
    try:
        yield
    except ArgumentError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError):
        raise ArgumentError(message) from None


def checked_epsilon(epsilon: Any, name: str = "epsilon") -> Fraction:
    """Read an epsilon exactly: from 2**-32 to 40."""
    found = _checks.positive(name, epsilon)
    if found < _MIN_EPSILON:
        raise ArgumentError(
            f"{name} must be at least 2**-32: below it the coins of the largest domains cannot be "
            "distinguished from fair ones, and nothing can be estimated from any number of people"
        )
    if found > MOST_EPSILON:
        raise ArgumentError(
            f"{name} must be at most {MOST_EPSILON}: beyond it nothing is protected"
        )
    return found


def checked_shares(
    frequencies: Any, k: int | tuple[int, int], name: str = "frequencies"
) -> npt.NDArray[np.float64]:
    """Read a distribution over k values: finite, non-negative, summing to 1 within 1e-6."""
    shape = k if isinstance(k, tuple) else (k,)
    size = " × ".join(map(str, shape))
    try:
        f = np.asarray(frequencies, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"{name} must be numbers, one for each of the {size} values") from None
    if f.shape != shape:
        raise ArgumentError(f"{name} must have one share for each of the {size} values")
    # As people write shares, with six digits.
    if not np.all(np.isfinite(f)) or f.min() < 0 or abs(f.sum() - 1) > 1e-6:
        raise ArgumentError(f"{name} must be at least 0 and sum to 1")
    return f


def sums_to(counts: npt.NDArray[np.int64], total: int) -> bool:
    """Whether counts that are at least 0 add up to a number, however large they are."""
    if int(counts.max(initial=0)) > total:
        return False
    # Sixty-four bits hold the sum of so many numbers of at most 2**62 / their number.
    if total < (1 << 62) // max(1, counts.size):
        return int(counts.sum()) == total
    return sum(counts.ravel().tolist()) == total


def checked_cells(k: int, m: int, instead: str = "a smaller domain") -> None:
    """Refuse a matrix of k values and m reports that would fill the memory."""
    if k * m > _MAX_CELLS:
        raise ArgumentError(f"the matrix would have {k:,} × {m:,} cells; use {instead}")


def checked_pairs(k: int) -> None:
    """Refuse a covariance of so many values that its matrix would fill the memory."""
    if k * k > _MAX_CELLS:
        raise ArgumentError("the covariance of so many values is too large; use the variance")


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
