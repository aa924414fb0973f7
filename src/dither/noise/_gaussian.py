"""The discrete Gaussian law: exact draws with mass proportional to exp(−x²/(2σ²))."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither._checks import Number, exact, whole
from dither.errors import ArgumentError
from dither.noise._staircase import StaircaseSampler
from dither.numeric import Words, secure_words

__all__ = ["MAX_SIGMA2", "discrete_gaussian", "gaussian_sampler"]

MAX_SIGMA2 = Fraction(1 << 104)
"""The largest σ²: 2**104, so σ ≤ 2**52."""

_STEPS_A_SIGMA = 5  # a step is between 2**-5 and 2**-6 of sigma


@dataclass(frozen=True, slots=True)
class _Gaussian:
    sigma2: Fraction

    def exponent(self, magnitude: int) -> Fraction:
        return magnitude * magnitude / (2 * self.sigma2)

    def gap(
        self, step: npt.NDArray[np.float64], part: npt.NDArray[np.float64], width: int
    ) -> npt.NDArray[np.float64]:
        # (s+1)² − (s+p)² as a product: no cancellation.
        return (1.0 - part) * (2.0 * step + 1.0 + part) * float(width * width / (2 * self.sigma2))


def discrete_gaussian(
    sigma2: Number, size: int, *, words: Words | None = None
) -> npt.NDArray[np.int64]:
    """Draw discrete Gaussian noise: Pr[X = x] proportional to exp(−x²/(2σ²)) on the integers.

    Parameters
    ----------
    sigma2 : Fraction, int, float or str
        σ², above 0 and at most 2**104 (σ ≤ 2**52); a float is read as it prints. The variance is
        at most σ². An integer query of L2 sensitivity Δ is made (Δ²/(2σ²))-zCDP by adding it [1]_.
    size : int
        How many draws, at least 0.
    words : Words, optional
        Another source of randomness, for simulation only. Left out, this thread's secure words.

    Returns
    -------
    array of int64, shape (size,)
        Independent draws; |x| < 15·σ + 1.

    Raises
    ------
    ArgumentError
        If sigma2 is out of range or not a number, or size is below 0.

    Notes
    -----
    Relative to ideal words, each draw is within 2**-142 of the law in total variation: see
    `dither.noise._staircase.StaircaseSampler` for the proof.

    References
    ----------
    .. [1] Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy",
       NeurIPS 2020, theorem 4.

    Examples
    --------
    >>> draws = discrete_gaussian(Fraction(100), 5)
    >>> draws.shape, draws.dtype
    ((5,), dtype('int64'))
    """
    return gaussian_sampler(_sigma2(sigma2)).draw(whole("size", size), words or secure_words())


def _sigma2(sigma2: Number) -> Fraction:
    checked = exact("sigma2", sigma2, above=0)
    if checked > MAX_SIGMA2:
        raise ArgumentError("sigma2 must be at most 2**104; a coarser lattice makes it smaller")
    return checked


@lru_cache(maxsize=32)
def gaussian_sampler(sigma2: Fraction) -> StaircaseSampler:
    """Return the sampler of a sigma2, from a cache of 32."""
    # Narrow enough that a wedge is a small part of its step, so that few proposals are rejected.
    shift = max(0, math.isqrt(int(sigma2)).bit_length() - 1 - _STEPS_A_SIGMA)
    return StaircaseSampler(_Gaussian(sigma2), shift)
