"""Exact uniform integers, exact weighted choice and exact random order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dither._checks import whole
from dither.noise._cells import WeightedOutcomes
from dither.numeric import Words, secure_words

__all__ = ["below", "choose", "permutation"]


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
    n = whole("n", n, 1, 1 << 63)
    words = words or secure_words()
    out = np.zeros(whole("size", size), dtype=np.int64)
    bits = (n - 1).bit_length()
    if bits == 0:
        return out
    # Several draws from one word where they are short: each word's bits are used once.
    unit = next(u for u in (8, 16, 32, 64) if bits <= u)
    dtype = np.dtype(f"u{unit // 8}")
    mask = dtype.type((1 << bits) - 1)
    pending = np.arange(out.size)
    while pending.size:
        drawn = words.words(-(-pending.size * unit // 64)).view(dtype)[: pending.size] & mask
        out[pending] = drawn
        # Drawn again, and not reduced: all n values stay equally likely.
        pending = pending[drawn > dtype.type(n - 1)]
    return out


def choose(
    weights: Sequence[int], size: int, *, words: Words | None = None
) -> npt.NDArray[np.int64]:
    """Draw indices with probabilities proportional to integer weights, exactly.

    Parameters
    ----------
    weights : sequence of int
        Each at least 0, of any size, with a sum above 0.
    size : int
        How many indices, drawn independently; at least 0.
    words : Words, optional
        Another source of randomness, for simulation only.

    Returns
    -------
    array of int64, shape (size,)
        Indices into `weights`.

    Raises
    ------
    ArgumentError
        If a weight is below 0 or not an integer, or all are 0.

    Notes
    -----
    By inversion with as many random bits as it takes, in integers: the distance to the law is 0
    (see `dither.noise._cells.WeightedOutcomes`).

    Examples
    --------
    >>> choose([0, 7, 0], 3).tolist()
    [1, 1, 1]
    """
    given = list(weights)
    # Python's own are whole as they are; that none is below 0 the cells see to.
    plain = set(map(type, given)) == {int}
    cells = WeightedOutcomes(given if plain else [whole("weights", w) for w in given])
    return cells.draw(whole("size", size), words or secure_words())


def permutation(n: int, *, words: Words | None = None) -> npt.NDArray[np.int64]:
    """Draw an order of 0..n−1, each of the n! with the same probability, exactly.

    Parameters
    ----------
    n : int
        At least 0.
    words : Words, optional
        Another source of randomness, for simulation only.

    Returns
    -------
    array of int64, shape (n,)

    Raises
    ------
    ArgumentError
        If n is below 0.

    Notes
    -----
    The order that sorts n independent words. Given that they are distinct every order is equally
    likely, by symmetry; if two agree (probability below n²/2**65) all are drawn again, which
    treats every order alike.

    Examples
    --------
    >>> sorted(permutation(4).tolist())
    [0, 1, 2, 3]
    """
    n = whole("n", n)
    words = words or secure_words()
    while True:
        keys = words.words(n)
        order = np.argsort(keys)
        ranked = keys[order]
        if not np.any(ranked[1:] == ranked[:-1]):
            return order
