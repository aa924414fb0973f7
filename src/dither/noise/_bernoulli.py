"""Exact coins: of a rational probability, and of probability exp(−gamma)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither._checks import Number, exact, whole
from dither.numeric import Words, secure_words

__all__ = ["bernoulli", "bernoulli_exp"]


def bernoulli(p: Number, size: int, *, words: Words | None = None) -> npt.NDArray[np.bool_]:
    """Draw coins that are true with probability p, exactly.

    Parameters
    ----------
    p : Fraction, int, float or str
        In [0, 1]; a float is read as it prints.
    size : int
        How many coins, at least 0.
    words : Words, optional
        Another source of randomness, for simulation only.

    Returns
    -------
    array of bool, shape (size,)

    Raises
    ------
    ArgumentError
        If p is outside [0, 1] or not a number, or size is below 0.

    Notes
    -----
    With 2**64·p = c + r, c whole and 0 ≤ r < 1, a uniform 64-bit word u is below c with
    probability c/2**64 and equal to it with probability 2**-64; then a coin of probability r
    decides. The sum is p: the distance to the law is 0.

    Examples
    --------
    >>> bernoulli(Fraction(1), 3).tolist()
    [True, True, True]
    """
    words = words or secure_words()
    size = whole("size", size)
    # In rationals: p itself decides, not a double near it.
    whole_part, rest = divmod(exact("p", p, least=0, most=1) * 2**64, 1)
    # p is 1, and 2**64 is no word that another could be below.
    if whole_part == 1 << 64:
        return np.ones(size, dtype=np.bool_)
    u = words.words(size)
    coins: npt.NDArray[np.bool_] = u < np.uint64(whole_part)
    if rest:
        for i in np.flatnonzero(u == np.uint64(whole_part)):
            coins[i] = _coin(rest, words)
    return coins


def bernoulli_exp(gamma: Number, *, words: Words | None = None) -> bool:
    """Draw one coin that is true with probability exp(−gamma), exactly.

    Parameters
    ----------
    gamma : Fraction, int, float or str
        At least 0; a float is read as it prints.
    words : Words, optional
        Another source of randomness, for simulation only.

    Returns
    -------
    bool

    Raises
    ------
    ArgumentError
        If gamma is below 0 or not a number.

    Notes
    -----
    For gamma ≤ 1, coins of probability gamma/k, k = 1, 2, …, are drawn until one fails, at K:
    Pr[K > k] = gamma**k/k!, so K is odd with probability 1 − gamma + gamma²/2! − … [1]_. A larger
    gamma is a product of such coins. Integers only: the distance to the law is 0.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy",
       NeurIPS 2020, algorithm 1.

    Examples
    --------
    >>> bernoulli_exp(Fraction(0))
    True
    """
    left = exact("gamma", gamma, least=0)
    words = words or secure_words()
    one = Fraction(1)
    # e^-gamma = e^-1·...·e^-rest: the series of coins is for at most 1.
    while left > 1:
        if not _series(one, words):
            return False
        left -= 1
    return _series(left, words)


def _series(gamma: Fraction, words: Words) -> bool:
    k = 1
    # A coin of probability gamma/k, in integers.
    while words.below(gamma.denominator * k) < gamma.numerator:
        k += 1
    return k % 2 == 1


def _coin(p: Fraction, words: Words) -> bool:
    return words.below(p.denominator) < p.numerator
