"""Reconstruction from subset sums: who answers too many questions too well gives the table away.

n people have a secret bit each. A query is a set of people, its answer how many of them have a 1.

- Asked all 2ⁿ sets, errors of up to E leave at most 4E bits wrong (theorem 1 of Dinur and Nissim;
  tight against midpoints between two databases, which random noise never shows): any database that
  agrees with all answers to within E differs from the true d in at most 4E bits, as on the zeros of
  d, and on its ones, both are within E of the same answer, so within 2E of each other. Candidates
  are struck out by one query at a time: the one that the first survivor breaks worst. A survivor
  that breaks none is an answer; the true database always is one.
- Asked O(n) random sets, errors of o(√n) leave o(n) bits wrong (theorem 2), and a fit by least
  squares or least deviations finds them in a second.

Against a release that is private as a whole, more queries only thin the same budget.

Source. Dinur and Nissim, "Revealing information while preserving privacy", PODS 2003; Dwork,
McSherry and Talwar, "The price of privacy and the limits of LP decoding", STOC 2007.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dither._checks import choice, number, whole
from dither.errors import ArgumentError
from dither.lab.attack._game import Adversary, BlackBox, Experiment, Game
from dither.lab.attack.reconstruction._decoders import DECODERS, predicted_success
from dither.lab.attack.releases import exact

__all__ = ["agreeing", "all_queries", "subset_sums"]

MOST = 20
"""People of an exhaustive search."""

LARGEST = 400_000_000
"""Entries of the query matrix: 1.6 GB in single precision."""


def subset_sums(
    n: int,
    queries: int | None = None,
    noise: BlackBox | None = None,
    *,
    method: str | None = None,
) -> Experiment:
    """The attack of Dinur and Nissim on a release of subset sums.

    Parameters
    ----------
    n : int
        People, at least 2. Each has a secret bit, a fair coin.
    queries : int, optional
        Random sets to ask for. None asks for all 2ⁿ of them and searches exhaustively (n <= 20).
    noise : BlackBox, optional
        How answers are published: `exact` (the default), `bounded`, `gaussian`, `laplace`,
        `rounded`, `corrupted`, `midpoint` or `private` of `releases`. The exhaustive search needs
        one with a known error.
    method : {"l1", "least squares", "box"}, optional
        The decoder of random queries. By default the better one for the noise, which is not secret:
        least deviations ("l1") where some answers err far more than most, as under Laplace noise
        and corruption; else least squares in a box. The verdict names it.

    Returns
    -------
    Experiment
        ``.run(runs, seed=...)`` gives the `Verdict`.

    Raises
    ------
    ArgumentError
        An argument is out of range, or the matrix of queries would not fit into memory.

    Notes
    -----
    *Bound.* The bits are independent fair coins. Flipping one is one step between neighbours, so
    under a loss whose total variation is t nobody guesses a bit right with probability above
    (1 + t)/2; under pure ε that is e^ε/(1 + e^ε).

    Examples
    --------
    >>> from dither import attack
    >>> attack.subset_sums(60, 240, attack.releases.bounded(1)).run().success
    1.0
    """
    people = whole("n", n, 2)
    release = exact() if noise is None else noise
    if not isinstance(release, BlackBox):
        raise ArgumentError(
            "noise must be a BlackBox, such as attack.releases.bounded(3), "
            "attack.releases.gaussian(5) or attack.releases.private(publish, loss)"
        )
    if queries is None:
        return _exhaustive(people, release, method)
    asked = whole("queries", queries, 1)
    if people * asked > LARGEST:
        raise ArgumentError(
            f"queries is too large: {asked:,} queries of {people:,} people are "
            f"{people * asked:,} numbers; the most is {LARGEST:,}, so ask at most "
            f"{LARGEST // people:,} queries"
        )
    name = choice("method", method or ("l1" if release.outliers else "box"), DECODERS)
    decode = DECODERS[name]
    predicted = None
    if name == "least squares" and release.sigma is not None:
        predicted = predicted_success(people, asked, release.sigma)
    return Experiment(
        _game(people, asked),
        release,
        Adversary(_NAMES[name], lambda public, answers: decode(public, answers) > 0.5),
        exact(),
        predicted=predicted,
    )


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
        The length of answers is not a power of two up to 2**20.

    Examples
    --------
    >>> agreeing([0.5, 0.5, 0.5, 1.5], 0.5, most=9).tolist()
    [[1, 0], [0, 1], [1, 1]]
    """
    given = np.asarray(answers, dtype=np.float64)
    n = int(given.size).bit_length() - 1
    if given.ndim != 1 or given.size != 2**n or not 1 <= n <= MOST:
        raise ArgumentError(f"answers must be those to all 2**n subsets, n from 1 to {MOST}")
    found = _agreeing(given, number("error", error, least=0), whole("most", most, 1))
    return all_queries(n)[found]


def _agreeing(answers: npt.NDArray[np.float64], error: float, most: int) -> npt.NDArray[np.int64]:
    """The numbers of agreeing databases, ascending, at most so many of them."""
    subsets = np.arange(answers.size, dtype=np.uint32)
    # Answers of halves and quarters are exact in doubles; others may be off by a rounding.
    # Nothing is proved by how near is near enough.
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


_NAMES = {
    "l1": "least deviations",
    "least squares": "least squares",
    "box": "least squares in a box",
}


def _game(n: int, m: int | None) -> Game:
    fixed = all_queries(n) if m is None else np.empty((m, n), dtype=np.int8)

    def draw(rng: np.random.Generator) -> tuple[Any, Any]:
        secret = rng.integers(0, 2, n, dtype=np.int8)
        if m is None:
            return secret, fixed
        return secret, rng.integers(0, 2, fixed.shape, dtype=np.int8)

    return Game(
        name="subset sums",
        secret="one bit of each person",
        prior=0.5,
        neighbours="flipping a bit adds or removes one person of those who are counted",
        knows="who is in each query, how answers are made, and nothing of any bit",
        draw=draw,
        score=lambda secret, guess: (int(np.sum(np.asarray(guess) == secret)), n),
    )


def _exhaustive(n: int, release: BlackBox, method: str | None) -> Experiment:
    if method is not None:
        raise ArgumentError("method goes with a number of queries; all subsets are searched as is")
    if n > MOST:
        raise ArgumentError(
            f"n must be at most {MOST} for the exhaustive search, which weighs 2**n databases "
            "against 2**n answers; for more people give a number of queries, such as 4·n"
        )
    if release.error is None:
        raise ArgumentError(
            "noise must have a known largest error for the exhaustive search, as "
            "attack.releases.bounded, rounded and midpoint have; or give a number of queries"
        )
    error = release.error

    def guess(public: Any, answers: Any) -> Any:
        found = _agreeing(np.asarray(answers, dtype=np.float64), error, 1)
        # Answers that agree with nobody are not what was promised; then guess blindly.
        return public[found[0]] if found.size else public[0]

    return Experiment(
        _game(n, None),
        release,
        Adversary("exhaustive search", guess),
        BlackBox("exact answers", exact().publish, error=error),
        promised=max(0.0, 1.0 - 4.0 * error / n),
    )
