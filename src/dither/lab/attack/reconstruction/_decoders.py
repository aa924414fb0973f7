"""Decoders: from noisy answers to subset sums back to the bits.

Q is the 0/1 matrix of m queries over n people, a their answers, and x in [0, 1]^n what is guessed,
to be rounded at 1/2:

- *least squares*, min ‖Qx - a‖²: one Cholesky factor of QᵀQ. Its error has the covariance
  σ²(QᵀQ)⁻¹, so its success is known in advance (`predicted_success`).
- *box*, the same with 0 <= x <= 1: ADMM on the Gram matrix alone, with one more factor. The best of
  the three for exact, rounded, bounded and Gaussian answers.
- *l1*, min ‖Qx - a‖₁ with 0 <= x <= 1: the decoder of Dwork, McSherry and Talwar, which shrugs off
  answers that are wrong by any amount, and is better for Laplace noise. ADMM: ::

      x <- argmin of ‖Qx - a - z + u‖² + g‖x - w + v‖²,  z <- shrink(Qx - a + u),  w <- clip(x + v)

  whose first step is always the same linear system, so one factor serves all rounds.

Sums of bits are exact in single precision up to 2²⁴, so the Gram matrix, half of the work, is
computed there; its factor is in doubles.

Source. Dinur and Nissim, PODS 2003; Dwork, McSherry and Talwar, STOC 2007; Boyd et al.,
"Distributed optimization via ADMM", 2011.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.lab._simulation import library

__all__ = ["DECODERS", "box", "l1", "l1_oracle", "least_squares", "predicted_success"]

Floats = npt.NDArray[np.float64]

# Beyond, sums of bits are not exact in single precision.
_MOST = 2**24
# ADMM converges for any factor in (0, 2); from 1.5 to 1.8 it takes the fewest rounds.
_RELAXED = 1.7


@dataclass(frozen=True, slots=True)
class _Problem:
    """The queries in single precision, the centred answers, and the Gram matrix.

    Answers are centred at x = 1/2, so that unknowns are small and symmetric.
    """

    queries: npt.NDArray[np.float32]
    answers: Floats
    gram: Floats


def _problem(queries: npt.ArrayLike, answers: npt.ArrayLike) -> _Problem:
    given = np.asarray(queries)
    if given.ndim != 2 or 0 in given.shape or max(given.shape) > _MOST:
        raise ArgumentError("queries must be a matrix of zeros and ones, one query a row")
    a = np.asarray(answers, dtype=np.float64)
    if a.shape != given.shape[:1] or not np.isfinite(a).all():
        raise ArgumentError("answers must be finite numbers, one for each row of queries")
    q = np.asarray(given, dtype=np.float32)
    sizes = q.sum(axis=1, dtype=np.float64)
    gram = np.asarray(q.T @ q, dtype=np.float64)
    # Fewer queries than people leave directions open; there the guess stays at 1/2.
    gram.flat[:: gram.shape[0] + 1] += 1e-9 * given.shape[0]
    return _Problem(q, a - sizes / 2.0, gram)


def _factor(gram: Floats) -> Callable[[Floats], Floats]:
    linalg = library("scipy.linalg", "decoding")
    factor = linalg.cho_factor(gram, lower=True, check_finite=False)

    def solve(right: Floats) -> Floats:
        found: Floats = linalg.cho_solve(factor, right, check_finite=False)
        return found

    return solve


def least_squares(queries: npt.ArrayLike, answers: npt.ArrayLike) -> Floats:
    """The unconstrained fit of x, to be rounded at 1/2, to ``answers`` = ``queries``·x + noise.

    Raises
    ------
    ArgumentError
        Shapes do not fit, or an answer is not finite.
    MissingLibraryError
        SciPy is not installed.

    Examples
    --------
    >>> least_squares([[1, 0], [1, 1], [0, 1]], [0.9, 1.1, 0.2]).round(2)
    array([0.9, 0.2])
    """
    p = _problem(queries, answers)
    return 0.5 + _factor(p.gram)(_back(p, p.answers))


def box(
    queries: npt.ArrayLike, answers: npt.ArrayLike, *, rounds: int = 200, tolerance: float = 2e-3
) -> Floats:
    """Least squares with 0 <= x <= 1.

    It ends after ``rounds``, or where x misses its constraints and moves by less than
    ``tolerance``.

    Examples
    --------
    >>> box([[1, 0], [1, 1], [0, 1]], [1.3, 1.1, 0.2]).round(2)
    array([1.  , 0.15])
    """
    p = _problem(queries, answers)
    n = p.gram.shape[0]
    right = _back(p, p.answers)
    w = np.clip(_factor(p.gram)(right), -0.5, 0.5)
    step = 0.4 * float(np.trace(p.gram)) / n
    solve = _factor(p.gram + step * np.eye(n))
    v = np.zeros(n)
    for _ in range(rounds):
        x = solve(right + step * (w - v))
        relaxed = _RELAXED * x + (1.0 - _RELAXED) * w
        last, w = w, np.clip(relaxed + v, -0.5, 0.5)
        v += relaxed - w
        if max(np.abs(x - w).max(), np.abs(w - last).max()) < tolerance:
            break
    return 0.5 + w


def l1(
    queries: npt.ArrayLike, answers: npt.ArrayLike, *, rounds: int = 200, tolerance: float = 0.01
) -> Floats:
    """Least absolute deviations with 0 <= x <= 1.

    It ends after ``rounds``, or once the residuals move, and differ from their copies, by less than
    ``tolerance`` of their median size. At the default the sum of deviations is within 1 % of the
    least one.

    Examples
    --------
    >>> l1([[1, 0], [1, 1], [0, 1], [1, 1]], [1, 1, 0, 40]).round(2)
    array([1., 0.])
    """
    p = _problem(queries, answers)
    n = p.gram.shape[0]
    w = np.clip(_factor(p.gram)(_back(p, p.answers)), -0.5, 0.5)
    weight = 0.3 * float(np.trace(p.gram)) / n
    solve = _factor(p.gram + weight * np.eye(n))
    fitted = _forth(p, w) - p.answers
    # Any step converges; one of the size of the noise does so in tens of rounds.
    scale = float(np.median(np.abs(fitted))) + 0.01
    z = fitted - np.clip(fitted, -scale, scale)
    u, v = np.zeros_like(z), np.zeros(n)
    for _ in range(rounds):
        x = solve(_back(p, p.answers + z - u) + weight * (w - v))
        fitted = _forth(p, x) - p.answers
        u += _RELAXED * fitted + (1.0 - _RELAXED) * z
        last, z = z, u - np.clip(u, -scale, scale)
        u -= z
        relaxed = _RELAXED * x + (1.0 - _RELAXED) * w
        w = np.clip(relaxed + v, -0.5, 0.5)
        v += relaxed - w
        if max(_size(fitted - z), _size(z - last)) < tolerance * scale:
            break
    return 0.5 + w


def l1_oracle(queries: npt.ArrayLike, answers: npt.ArrayLike) -> Floats:
    """`l1` as a linear program that HiGHS solves to optimality: slow, to check against.

    Examples
    --------
    >>> l1_oracle([[1, 0], [1, 1], [0, 1], [1, 1]], [1, 1, 0, 40]).round(2)
    array([1., 0.])
    """
    optimize, sparse = library("scipy.optimize", "HiGHS"), library("scipy.sparse", "HiGHS")
    q, a = np.asarray(queries, dtype=np.float64), np.asarray(answers, dtype=np.float64)
    m, n = q.shape
    eye = sparse.eye_array(m)
    found: Any = optimize.linprog(
        np.concatenate([np.zeros(n), np.ones(2 * m)]),
        A_eq=sparse.hstack([sparse.csr_array(q), eye, -eye]),
        b_eq=a,
        bounds=[(0, 1)] * n + [(0, None)] * (2 * m),
        method="highs",
    )
    fitted: Floats = found.x[:n]
    return fitted


def predicted_success(n: int, m: int, sigma: float) -> float:
    """How many bits least squares gets right: Φ(1/(2σ_x)), with σ_x what is left of the noise.

    Of n people and m random queries with noise of deviation ``sigma``; 1/2 where m is too small for
    a unique fit. A query takes each person with probability 1/2, so a column has variance 1/4
    around what the others explain, and σ_x² = 4σ²/(m - n - 1), the mean of an inverse Wishart law's
    diagonal.

    Examples
    --------
    >>> round(predicted_success(500, 2000, 10.0), 4)
    0.8335
    """
    if m <= n + 1:
        return 0.5
    if sigma <= 0:
        return 1.0
    # Centred queries are ±1/2, so that (QᵀQ)⁻¹ has about 4/(m - n - 1) on its diagonal.
    return NormalDist().cdf(math.sqrt(m - n - 1) / (4.0 * sigma))


def _size(values: Floats) -> float:
    return math.sqrt(float(np.mean(values * values)))


def _forth(p: _Problem, x: Floats) -> Floats:
    return np.asarray(p.queries @ x.astype(np.float32), dtype=np.float64)


def _back(p: _Problem, y: Floats) -> Floats:
    return np.asarray(y.astype(np.float32) @ p.queries, dtype=np.float64)


DECODERS: dict[str, Callable[[npt.ArrayLike, npt.ArrayLike], Floats]] = {
    "least squares": least_squares,
    "box": box,
    "l1": l1,
}
