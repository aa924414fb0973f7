"""All databases that agree with every answer to within an error: theorem 1, for n <= 20.

Ask all 2ⁿ subsets. If every answer errs by at most E, any database c that agrees with all of them
to within E differs from the true d in at most 4E bits: on the zeros of d, and on its ones, both are
within E of the same answer, so within 2E of each other.

Candidates are weeded by one query at a time: the one that the first survivor breaks worst. A
survivor that breaks none is an answer; the true database always is one.

Source. Dinur and Nissim, PODS 2003, theorem 1 of the exponential adversary.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.lab.attack.worlds import whole

__all__ = ["MOST", "agreeing", "all_queries", "weed"]

MOST = 20

Bits = npt.NDArray[np.int64]


def all_queries(n: int) -> npt.NDArray[np.int8]:
    """All subsets of n people; bit i of a row's number says whether person i is in it.

    Parameters
    ----------
    n : int
        From 1 to 20.

    Returns
    -------
    array of int8, shape (2**n, n)

    Examples
    --------
    >>> all_queries(2).tolist()
    [[0, 0], [1, 0], [0, 1], [1, 1]]
    """
    people = whole("n", n, 1, MOST)
    numbers = np.arange(2**people, dtype=np.uint32)
    return ((numbers[:, None] >> np.arange(people, dtype=np.uint32)) & 1).astype(np.int8)


def agreeing(answers: npt.ArrayLike, error: float, *, most: int = 1) -> npt.NDArray[np.int8]:
    """Databases that agree with the answers to all 2ⁿ subset sums.

    Parameters
    ----------
    answers : array, shape (2**n,)
        In the order of `all_queries`.
    error : float
        How far an answer may be off, at least 0.
    most : int
        Stop at so many.

    Returns
    -------
    array of int8, shape (found, n)
        In ascending order of their numbers; empty where none agrees.

    Raises
    ------
    ArgumentError
        The length of answers is no power of two up to 2**20.

    Examples
    --------
    >>> agreeing([0.5, 0.5, 0.5, 1.5], 0.5, most=9).tolist()
    [[1, 0], [0, 1], [1, 1]]
    """
    given = np.asarray(answers, dtype=np.float64)
    n = int(given.size).bit_length() - 1
    if given.ndim != 1 or given.size != 2**n or not 1 <= n <= MOST:
        raise ArgumentError(f"answers must be those to all 2**n subsets, n from 1 to {MOST}")
    found = weed(given, float(error), whole("most", most, 1))
    return all_queries(n)[found]


def weed(answers: npt.NDArray[np.float64], error: float, most: int) -> npt.NDArray[np.int64]:
    """The numbers of agreeing databases, ascending, at most so many of them."""
    subsets = np.arange(answers.size, dtype=np.uint32)
    # Answers of halves and quarters are exact in doubles; others may be off by a rounding.
    slack = error + 1e-9
    alive = subsets.copy()
    found: list[int] = []
    while alive.size and len(found) < most:
        first = alive[0]
        misses = np.abs(np.bitwise_count(subsets & first) - answers)
        worst = int(misses.argmax())
        if misses[worst] <= slack:
            found.append(int(first))
            alive = alive[1:]
        else:
            alive = alive[
                np.abs(np.bitwise_count(alive & subsets[worst]) - answers[worst]) <= slack
            ]
    return np.array(found, dtype=np.int64)
