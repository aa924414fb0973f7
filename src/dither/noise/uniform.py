"""Exact uniform integers below a bound."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.noise.check import source, whole
from dither.numeric import Words

__all__ = ["below"]


def below(n: int, size: int, *, words: Words | None = None) -> npt.NDArray[np.int64]:
    """Draw uniform integers in [0, n), exactly.

    Parameters
    ----------
    n : int
        From 1 to 2**63.
    size : int
        How many, at least 0.
    words : Words, optional
        Another source of randomness, for simulation only.

    Returns
    -------
    array of int64, shape (size,)

    Raises
    ------
    ArgumentError
        If n or size is out of range.

    Notes
    -----
    The fewest bits that hold n − 1 are drawn, again until they are below n: each value has
    probability 1/n, exactly.

    Examples
    --------
    >>> below(1, 3).tolist()
    [0, 0, 0]
    """
    n = whole(n, "n", 1)
    if n > 1 << 63:
        raise ArgumentError("n must be at most 2**63")
    words = source(words)
    out = np.zeros(whole(size, "size"), dtype=np.int64)
    bits = (n - 1).bit_length()
    if bits == 0:
        return out
    unit = next(u for u in (8, 16, 32, 64) if bits <= u)
    dtype = np.dtype(f"u{unit // 8}")
    mask = dtype.type((1 << bits) - 1)
    pending = np.arange(out.size)
    while pending.size:
        drawn = words.words(-(-pending.size * unit // 64)).view(dtype)[: pending.size] & mask
        out[pending] = drawn
        pending = pending[drawn > dtype.type(n - 1)]
    return out
