"""Exact weighted choice and exact random order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dither.noise.cells import Cells
from dither.noise.check import source, whole
from dither.numeric import Words

__all__ = ["choose", "permutation"]


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
    (see `dither.noise.cells.Cells`).

    Examples
    --------
    >>> choose([0, 7, 0], 3).tolist()
    [1, 1, 1]
    """
    return Cells([whole(w, "weights") for w in weights]).draw(whole(size, "size"), source(words))


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
    n = whole(n, "n")
    words = source(words)
    while True:
        keys = words.words(n)
        order = np.argsort(keys)
        ranked = keys[order]
        if not np.any(ranked[1:] == ranked[:-1]):
            return order
