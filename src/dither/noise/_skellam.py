"""The Skellam law: the difference of two Poisson numbers, closed under sums of any number of parts.

Masses. With variance μ, Pr[Z = z] = e^(−μ)·I_z(μ), I the modified Bessel function of the first
kind. The table is made from its far end inwards, by I_{z−1} = I_{z+1} + (2z/μ)·I_z: all terms are
positive, so that nothing cancels, and balls hold what is rounded.

Tails. E e^(tZ) = exp(μ·(cosh t − 1)), so by Chernoff's bound at sinh t = y, y = z/μ ::

    Pr[|Z| >= z] <= 2·exp(−μ·(y·asinh(y) − √(1 + y²) + 1)).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither._checks import Number, exact, whole
from dither.errors import ArgumentError
from dither.noise._cells import WeightedOutcomes
from dither.numeric import Words, secure_words
from dither.numeric._balls import precision

__all__ = ["MAX_VARIANCE", "skellam", "skellam_tail"]

MAX_VARIANCE = Fraction(1 << 24)
"""The largest variance: 2**24, whose table has some 120,000 cells."""

_CUT = 146 * math.log(2)
"""What is cut of both tails is below 2**-145; a double's rounding of this is far below the rest."""
_BITS = 208
"""Masses are multiples of 2**-208: of all cells together less than 2**-190 is rounded away."""


def skellam(variance: Number, size: int, *, words: Words | None = None) -> npt.NDArray[np.int64]:
    """Draw Skellam noise: Pr[X = x] = e^(−μ)·I_x(μ) on the integers, μ the variance.

    Parameters
    ----------
    variance : Fraction, int, float or str
        μ, above 0 and at most 2**24; a float is read as it prints. The sum of independent draws of
        variances μ and μ' has this law at μ + μ', exactly.
    size : int
        How many draws, at least 0.
    words : Words, optional
        Another source of randomness, for simulation only. Left out, this thread's secure words.

    Returns
    -------
    array of int64, shape (size,)

    Raises
    ------
    ArgumentError
        If the variance is out of range or not a number, or size is below 0.

    Notes
    -----
    Relative to ideal words, each draw is within 2**-142 of the law in total variation: a table of
    masses is cut where 2**-145 is left, rounded, and drawn from exactly (`dither.noise._cells`).

    Examples
    --------
    >>> draws = skellam("0.01", 5)
    >>> draws.shape, draws.dtype
    ((5,), dtype('int64'))
    """
    mu = exact("variance", variance, above=0)
    if mu > MAX_VARIANCE:
        raise ArgumentError("variance must be at most 2**24; a coarser lattice makes it smaller")
    table = _table(mu)
    return table.draw(whole("size", size), words or secure_words()) - table.count // 2


def skellam_tail(variance: float, z: float) -> float:
    """The logarithm of a bound of Pr[|Z| >= z], z of at least 0: Chernoff's, in doubles."""
    y = z / variance
    # √(1 + y²) − 1, where y is small, loses nothing in this form.
    less = y * y / (1 + math.sqrt(1 + y * y))
    return math.log(2) - variance * (y * math.asinh(y) - less)


def _reach(mu: float) -> int:
    """A z beyond which both tails together hold less than 2**-145."""
    low, high = 1, 2
    # The bound falls with z, so that doubling and halving find where it is small enough.
    while skellam_tail(mu, high) > -_CUT:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if skellam_tail(mu, middle) > -_CUT else (low, middle)
    return high


@lru_cache(maxsize=8)
def _table(mu: Fraction) -> WeightedOutcomes:
    # A guess in doubles, with room: the cut is 2**-145 where 2**-142 is claimed.
    reach = _reach(float(mu))
    # The numbers of steps cost as many ulps, hence the bits beyond those that are kept.
    with precision(_BITS + 2 * reach.bit_length() + 64) as flint:
        one = flint.arb(mu.numerator) / mu.denominator
        scale = (-one).exp() * flint.arb(2) ** _BITS
        beyond = one.bessel_i(flint.arb(reach + 1)) * scale
        here = one.bessel_i(flint.arb(reach)) * scale
        half = [here]
        # Inwards all summands are positive; outwards the recurrence would cancel.
        for z in range(reach, 0, -1):
            beyond, here = here, beyond + here * (2 * z) / one
            half.append(here)
        masses = [int(mass.mid().floor().unique_fmpz()) for mass in half]
    return WeightedOutcomes([*masses, *masses[-2::-1]])
