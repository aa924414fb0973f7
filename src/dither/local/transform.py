"""The Walsh-Hadamard transform, in whole numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

__all__ = ["hadamard", "parity"]


def hadamard(columns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Transform the last axis: out[..., i] = sum over j of (-1)^(bits of i & j)·columns[..., j].

    Parameters
    ----------
    columns : array of int64, shape (..., m)
        m a power of two.

    Returns
    -------
    array of int64, of the same shape

    Raises
    ------
    ArgumentError
        The last axis has another length.

    Notes
    -----
    log2(m) rounds of sums and differences, exact as long as the sum of magnitudes is below 2**63.

    Examples
    --------
    >>> hadamard(np.array([5, 1, 0, 0])).tolist()
    [6, 4, 6, 4]
    """
    m = columns.shape[-1]
    if m < 1 or m & (m - 1):
        raise ArgumentError("the last axis must have a power of two as its length")
    found, spare = np.array(columns, dtype=np.int64), np.empty(columns.shape, dtype=np.int64)
    half = 1
    while half < m:
        pairs = found.reshape(-1, m // (2 * half), 2, half)
        out = spare.reshape(pairs.shape)
        np.add(pairs[:, :, 0], pairs[:, :, 1], out=out[:, :, 0])
        np.subtract(pairs[:, :, 0], pairs[:, :, 1], out=out[:, :, 1])
        found, spare = spare, found
        half *= 2
    return found


def parity(x: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Whether each number, from 0 to 2**32 - 1, has an odd number of bits set: 0 or 1."""
    found = x.copy()
    for shift in (16, 8, 4, 2, 1):
        found ^= found >> shift
    return found & 1
