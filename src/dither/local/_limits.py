"""What all channels read and refuse alike: epsilons, shares, and sizes too large for memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError

MOST = 1 << 62
"""The most people or reports that can be counted."""

_MAX_EPSILON = 40
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
    if found > _MAX_EPSILON:
        raise ArgumentError(
            f"{name} must be at most {_MAX_EPSILON}: beyond it nothing is protected"
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
