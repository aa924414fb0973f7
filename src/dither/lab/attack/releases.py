"""Releases of subset sums: exact, noisy, rounded, corrupted, cornered, or private.

All but the last draw simulated noise and promise nothing; `private` wraps a black box and the loss
that its owner states for all answers together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._checks import number
from dither._format import loss_text
from dither.errors import ArgumentError
from dither.lab.attack._game import BlackBox
from dither.privacy import Loss

__all__ = [
    "bounded",
    "corrupted",
    "exact",
    "gaussian",
    "laplace",
    "midpoint",
    "private",
    "rounded",
    "sums",
]

Floats = npt.NDArray[np.float64]


def sums(secret: Any, queries: Any) -> Floats:
    """The true answers, exact as doubles.

    Parameters
    ----------
    secret : array, shape (n,)
        Zeros and ones.
    queries : array, shape (m, n)
        Zeros and ones, one query a row.

    Returns
    -------
    array of float, shape (m,)

    Examples
    --------
    >>> sums([1, 0, 1, 0, 1], [[1, 1, 1, 0, 0]])
    array([2.])
    """
    # Whole numbers below 2**24 are exact in single precision.
    q = np.asarray(queries, dtype=np.float32)
    return np.asarray(q @ np.asarray(secret, dtype=np.float32), dtype=np.float64)


def exact() -> BlackBox:
    """The bare truth: the undefended control.

    Examples
    --------
    >>> exact().name
    'exact answers'
    """
    return BlackBox("exact answers", lambda d, q, _: sums(d, q), sigma=0.0, error=0.0)


def bounded(error: float) -> BlackBox:
    """Noise drawn evenly from [-error, error].

    Parameters
    ----------
    error : float
        At least 0.

    Raises
    ------
    ArgumentError
        For a negative or infinite error.

    Examples
    --------
    >>> bounded(3).error
    3.0
    """
    e = number("error", error, least=0)
    return BlackBox(
        f"answers within ±{e:g}",
        lambda d, q, rng: sums(d, q) + rng.uniform(-e, e, len(q)),
        sigma=e / math.sqrt(3.0),
        error=e,
    )


def gaussian(sigma: float) -> BlackBox:
    """Normal noise of a standard deviation; simulated, so no privacy is claimed of it.

    Examples
    --------
    >>> gaussian(5).name
    'Gaussian noise, σ = 5'
    """
    s = number("sigma", sigma, least=0)
    return BlackBox(
        f"Gaussian noise, σ = {s:g}",
        lambda d, q, rng: sums(d, q) + rng.normal(0.0, s, len(q)),
        sigma=s,
    )


def laplace(scale: float) -> BlackBox:
    """Laplace noise of a scale; simulated, so no privacy is claimed of it.

    Examples
    --------
    >>> round(laplace(10).sigma, 3)
    14.142
    """
    b = number("scale", scale, least=0)
    return BlackBox(
        f"Laplace noise, scale {b:g}",
        lambda d, q, rng: sums(d, q) + rng.laplace(0.0, b, len(q)),
        sigma=b * math.sqrt(2.0),
        outliers=True,
    )


def rounded(step: float) -> BlackBox:
    """Answers rounded to multiples of a step.

    No deviation is stated: the error follows from the answer, so it is not independent noise.

    Examples
    --------
    >>> rounded(10).error
    5.0
    """
    s = number("step", step, above=0)
    return BlackBox(
        f"rounded to multiples of {s:g}",
        lambda d, q, _: np.round(sums(d, q) / s) * s,
        error=s / 2.0,
    )


def corrupted(share: float, *, adversarial: bool = True) -> BlackBox:
    """A share of the answers is wrong by any amount; the others are exact.

    Parameters
    ----------
    share : float
        In [0, 1].
    adversarial : bool
        If so, the wrong answers are the true ones of the opposite database, where the two differ
        most: the hardest corruption for least deviations. Else random queries get random answers.

    Notes
    -----
    For random queries the answers of two opposite databases differ by nearly normal amounts g.
    Least deviations prefers the wrong database once the corrupted |g| outweigh the others, that is
    where E[|g|; |g| > t] = E[|g|]/2, so t = √(2 ln 2) and the share is 2(1 - Φ(t)) = 0.239: the
    constant of Dwork, McSherry and Talwar, for ever more queries a person (m/n to infinity). Few
    queries bear less: see the page on subset sums. Random corruption is far easier for the
    attacker.

    Examples
    --------
    >>> corrupted(0.2).name
    '20 % of answers corrupted adversarially'
    """
    rho = number("share", share, least=0, most=1)

    def publish(d: Any, q: Any, rng: np.random.Generator) -> Floats:
        answers = sums(d, q)
        wrong = round(rho * len(answers))
        if not adversarial:
            at = rng.permutation(len(answers))[:wrong]
            answers[at] = rng.integers(0, len(d) + 1, wrong)
            return answers
        opposite = sums(1 - np.asarray(d), q)
        at = np.argsort(-np.abs(opposite - answers), kind="stable")[:wrong]
        answers[at] = opposite[at]
        return answers

    kind = "adversarially" if adversarial else "at random"
    return BlackBox(f"{100 * rho:g} % of answers corrupted {kind}", publish, outliers=True)


def midpoint(error: float) -> BlackBox:
    """Answers half-way between two databases that differ in 4·error bits: the worst of theorem 1.

    Half of those bits are 1 in one database and half in the other, so every answer errs by at most
    ``error`` for both, and nobody can tell which of them was meant.

    Parameters
    ----------
    error : float
        A multiple of 1/2. A secret with fewer than 2·error ones, or zeros, gets an easier one.

    Raises
    ------
    ArgumentError
        For another error.

    Examples
    --------
    >>> import numpy as np
    >>> midpoint(0.5).publish(np.array([1, 0]), np.array([[1, 0], [1, 1]]), None)
    array([0.5, 1. ])
    """
    e = number("error", error, least=0)
    if 2 * e != round(2 * e):
        raise ArgumentError("error must be a multiple of 1/2, so that 4·error bits split in two")

    def publish(d: Any, q: Any, _: np.random.Generator) -> Floats:
        other, swap = np.array(d), round(2 * e)
        for bit in (0, 1):
            other[np.flatnonzero(np.asarray(d) == bit)[:swap]] = 1 - bit
        return (sums(d, q) + sums(other, q)) / 2.0

    return BlackBox(f"midpoints of two databases, error {e:g}", publish, error=e)


def private(
    publish: Callable[[npt.NDArray[np.int64]], Any],
    loss: Loss,
    *,
    name: str | None = None,
    sigma: float | None = None,
    outliers: bool = False,
) -> BlackBox:
    """A private release of all answers, as a black box.

    Parameters
    ----------
    publish : callable
        From the exact answers, an array of integers, shape (m,), to the released ones.
    loss : Loss
        What *all* answers together lose. Flipping a person's bit adds or removes a row of the table
        of those whose bit is 1, so each answer changes by at most 1.
    name : str, optional
    sigma : float, optional
        The standard deviation of an answer's noise, which is not secret.
    outliers : bool
        Whether its noise has far outliers, as Laplace noise has; not secret either.

    Examples
    --------
    >>> from dither import privacy
    >>> private(lambda answers: answers, privacy.pure(1.0)).name
    'private, ε = 1'
    """
    if not isinstance(loss, Loss):
        raise ArgumentError("loss must be a Loss, such as m * privacy.discrete_laplace(scale)")
    if not callable(publish):
        raise ArgumentError("publish must be a function from exact answers to released ones")
    release = BlackBox(
        "", lambda d, q, _: publish(np.rint(sums(d, q)).astype(np.int64)), loss, sigma
    )
    epsilon = release.epsilon
    said = (
        f"private, ε = {loss_text(epsilon)}"
        if epsilon is not None
        else f"private, {loss.describe()}"
    )
    return BlackBox(name or said, release.publish, loss, sigma, outliers=outliers)
