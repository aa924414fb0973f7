"""From zero-concentrated privacy to (epsilon, delta) and back, by the optimal conversion.

A release that is rho-zCDP has Rényi divergence at most ``alpha·rho`` at every order ``alpha > 1``.
By [1]_, proposition 12, it is then (epsilon, delta)-DP for every alpha with ::

    delta = exp((alpha - 1)·(alpha·rho - epsilon)) / (alpha - 1) · (1 - 1/alpha)^alpha

that is, with L(alpha) = log(alpha/(alpha - 1)) and M(alpha) = log(1/(alpha·delta))/(alpha - 1), ::

    epsilon = alpha·rho + M(alpha) - L(alpha)
    rho     = (epsilon - M(alpha) + L(alpha)) / alpha

The three functions below minimise or maximise over alpha in floating point, which needs no care:
*every* alpha gives a true statement. They then evaluate the statement at that one rational alpha
with directed rounding. So the float search decides how tight the answer is, never whether it holds.

Setting the derivative of epsilon to zero leaves rho·(alpha - 1)² = log(1/(alpha·delta)); its left
side rises and its right side falls, so the minimum is unique and bisection finds it.

References
----------
.. [1] Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from dither import _checks as check
from dither._checks import Number
from dither._search import bisect
from dither._stats import log_of
from dither.errors import ArgumentError
from dither.numeric import _directed as directed
from dither.numeric import shortened

__all__ = ["delta_of_rho", "epsilon_of_rho", "rho_of_epsilon"]


_BITS = 64
"""Significant bits kept of an epsilon or a delta."""

_RHO_BITS = 48
"""Significant bits kept of a rho: it becomes a sampler's parameter, and short ones draw faster."""


@lru_cache(maxsize=4096)
def epsilon_of_rho(rho: Number, delta: Number) -> Fraction:
    """An epsilon such that every rho-zCDP release is (epsilon, delta)-DP.

    Parameters
    ----------
    rho : Fraction
        At least 0.
    delta : Fraction
        In (0, 1).

    Returns
    -------
    Fraction
        A proven upper bound of the optimal conversion, at least 0.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    The neighbour relation is the one that rho was stated for.

    Examples
    --------
    >>> float(epsilon_of_rho(Fraction(1, 2), Fraction(1, 10**6)))
    5.2215344445...
    """
    rho, delta = check.exact("rho", rho, least=0), _delta(delta)
    if rho == 0:
        return Fraction(0)
    log_inverse_delta = -log_of(delta)
    # A rho below all doubles still needs a search that divides by it.
    r = float(rho) or 5e-324

    def rising(t: float) -> float:
        x = math.exp(t)
        return r * x * x + math.log1p(x) - log_inverse_delta

    alpha, x = _order(rising, log_inverse_delta)
    log_m = directed.log_upper(1 / (alpha * delta))
    # What is added is rounded up, what is taken off down: an upper bound at this very alpha.
    epsilon = alpha * rho + log_m / x - directed.log_lower(alpha / x)
    return max(Fraction(0), shortened(epsilon, _BITS, up=True))


@lru_cache(maxsize=4096)
def rho_of_epsilon(epsilon: Number, delta: Number) -> Fraction:
    """The largest rho (less a rounding) such that rho-zCDP implies (epsilon, delta)-DP.

    Parameters
    ----------
    epsilon : Fraction
        Above 0.
    delta : Fraction
        In (0, 1).

    Returns
    -------
    Fraction
        A proven lower bound of the optimum, above 0 and within about 2^-45 of it.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Examples
    --------
    >>> rho = rho_of_epsilon(Fraction(1), Fraction(1, 10**6))
    >>> float(rho), float(epsilon_of_rho(rho, Fraction(1, 10**6)))
    (0.024355..., 0.99999999...)
    """
    epsilon, delta = check.positive("epsilon", epsilon), _delta(delta)
    log_inverse_delta = -log_of(delta)
    e = float(epsilon) or 5e-324

    def rising(t: float) -> float:
        # Minus the sign of d(rho)/d(alpha): (epsilon - M + L) - alpha·log(1/(alpha·delta))/x².
        x = math.exp(t)
        m = log_inverse_delta - math.log1p(x)
        return e + math.log1p(1 / x) - m / x - (1 + x) * m / (x * x)

    alpha, x = _order(rising, log_inverse_delta)
    log_m = directed.log_upper(1 / (alpha * delta))
    # The other way round: rho may come out too small, and not too large.
    rho = (epsilon - log_m / x + directed.log_lower(alpha / x)) / alpha
    if rho <= 0:
        # Total variation is at most sqrt(rho/2) (Pinsker, since KL <= rho), so this always holds.
        rho = 2 * delta * delta
    return shortened(rho, _RHO_BITS, up=False)


@lru_cache(maxsize=4096)
def delta_of_rho(rho: Number, epsilon: Number) -> Fraction:
    """A delta such that every rho-zCDP release is (epsilon, delta)-DP.

    Parameters
    ----------
    rho, epsilon : Fraction
        At least 0.

    Returns
    -------
    Fraction
        A proven upper bound of the optimal conversion, in [0, 1].

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Examples
    --------
    >>> float(delta_of_rho(Fraction(1, 2), Fraction(5)))
    2.896...e-06
    """
    rho = check.exact("rho", rho, least=0)
    epsilon = check.exact("epsilon", epsilon, least=0)
    if rho == 0:
        return Fraction(0)
    r, e = float(rho) or 5e-324, float(epsilon)

    def rising(t: float) -> float:
        # d(log delta)/d(alpha) = (2·alpha - 1)·rho - epsilon + log(1 - 1/alpha)
        x = math.exp(t)
        return (2 * x + 1) * r - e - math.log1p(1 / x)

    alpha, x = _order(rising, e / r + 1 / r)
    power = directed.exp_upper(x * (alpha * rho - epsilon - directed.log_lower(alpha / x)))
    return min(Fraction(1), shortened(power / alpha, _BITS, up=True))


def _order(rising: Callable[[float], float], top: float) -> tuple[Fraction, Fraction]:
    """Bisect for the order where ``rising`` (a function of log(alpha - 1)) turns positive."""
    top = max(1.0, min(700.0, top + 5.0))
    low, high = bisect(lambda t: rising(t) > 0, -50.0, top, steps=60)
    # A short rational: any order above 1 gives a true statement, and exact ones are quick to reckon
    # with.
    x = shortened(Fraction(math.exp((low + high) / 2)), 32, up=True)
    return 1 + x, x


def _delta(delta: Number) -> Fraction:
    read = check.exact("delta", delta)
    if not 0 < read < 1:
        raise ArgumentError(
            "delta must be above 0 and below 1: zCDP gives no finite epsilon at delta = 0; "
            "ask for pure noise instead, or for a small delta such as 1e-6"
        )
    return read
