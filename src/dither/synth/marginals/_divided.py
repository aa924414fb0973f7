"""A budget divided over several tables of counts: the noise of each, and the loss of all.

Every table changes with one unit by an integer vector of ‖·‖₁ <= l1 and ‖·‖₂² <= l2_squared, and
gets independent noise, so the losses compose. With discrete Laplace noise of scale b_t for table t,
epsilon = Σ l1/b_t exactly; with discrete Gaussian noise of σ_t², rho = Σ l2_squared/(2σ_t²)
exactly.

Parameters are fixed before anything is read, so what (epsilon, delta) is follows from the
composition of the laws themselves, whose delta is rounded upwards, and not only from rho. Noise is
the least found, to some 0.5 % of its variance, whose delta is at most the one asked for; never more
than what zCDP alone would take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache, partial

from dither._stats import log_of
from dither.accounting import rho_of_epsilon
from dither.errors import BoundsError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.numeric import _directed as directed
from dither.privacy import Charge, Loss, Neighbours, compose

__all__ = ["LARGEST_FACTOR", "Noise", "loss_of", "noises_of", "parameter_of"]

Noise = DiscreteLaplace | DiscreteGaussian

WIDEST = 2.0**49
"""Noise of a larger deviation is refused: samplers are proven up to 2^50."""

_STEPS = 7
"""Of the search for the least Gaussian noise."""

LARGEST_FACTOR = Fraction(3, 2)
"""By how much more than zCDP's conversion allows, composed laws may be found to allow."""

_COMPOSED = Fraction(1, 10**4), Fraction(300)
"""Epsilons between which laws are composed; beyond them zCDP alone decides."""


def noises_of(
    shares: Sequence[Fraction],
    family: str,
    epsilon: Fraction,
    delta: Fraction,
    bounds: tuple[int, int],
    neighbours: Neighbours,
) -> tuple[tuple[Noise, ...], Loss]:
    """The noise of several tables with these shares of a budget, and what they lose together.

    Parameters
    ----------
    shares : sequence of Fraction
        Above 0, adding up to 1.
    family : {"laplace", "gaussian"}
    epsilon, delta : Fraction
        Delta above 0 for Gaussian noise.
    bounds : (l1, l2_squared)
        Of any one table.
    neighbours : Neighbours

    Raises
    ------
    BoundsError
        The noise would be too wide to draw.
    """
    wide = "epsilon is too small: the noise would be too wide to draw exactly; raise it"
    l1, square = bounds
    least = min(shares)
    if family == "laplace":
        if l1 / (least * epsilon) > WIDEST:
            raise BoundsError(wide)
        laplace = tuple(DiscreteLaplace.for_loss(epsilon * s, l1=l1) for s in shares)
        return laplace, compose(*(n.loss(l1=l1, neighbours=neighbours) for n in laplace))
    if square / (2 * least * rho_of_epsilon(epsilon, delta)) > WIDEST**2:
        raise BoundsError(wide)
    return _gaussian(tuple(shares), epsilon, delta, l1, square, neighbours)


@lru_cache(maxsize=64)
def _gaussian(
    shares: tuple[Fraction, ...],
    epsilon: Fraction,
    delta: Fraction,
    l1: int,
    square: int,
    neighbours: Neighbours,
) -> tuple[tuple[Noise, ...], Loss]:
    """Gaussian noise in these proportions, and its loss, whose charge is (epsilon, delta)."""
    rho = rho_of_epsilon(epsilon, delta)
    at = directed.float_down(epsilon)

    def made(factor: Fraction) -> tuple[tuple[DiscreteGaussian, ...], Loss]:
        noises = tuple(
            DiscreteGaussian.for_loss(rho * factor * s, l2_squared=square) for s in shares
        )
        loss = partial(
            DiscreteGaussian.loss, l2_squared=square, coordinates=l1, neighbours=neighbours
        )
        return noises, compose(*(loss(n) for n in noises))

    # zCDP's own conversion proves factor 1; laws composed say more.
    best, (noises, loss) = Fraction(1), made(Fraction(1))
    # Only what was found to hold is ever taken: the search decides how near, and not whether.
    low, high = (1.0, -math.inf), (float(LARGEST_FACTOR), math.inf)
    for _ in range(_STEPS if _COMPOSED[0] <= epsilon <= _COMPOSED[1] else 0):
        # The logarithm of delta grows almost evenly with the factor.
        even = math.isfinite(low[1]) and math.isfinite(high[1])
        part = low[1] / (low[1] - high[1]) if even else 0.25
        factor = Fraction(
            round((low[0] + min(max(part, 0.02), 0.98) * (high[0] - low[0])) * 2048), 2048
        )
        tried = made(factor)
        found = Fraction(tried[1].delta(at).upper)
        excess = log_of(found) - log_of(delta) if found > 0 else -700.0
        if found > delta:
            high = float(factor), excess
        else:
            low = float(factor), excess
            if factor > best:
                best, (noises, loss) = factor, tried
        if high[0] - low[0] < 0.004 or -0.02 < excess <= 0:
            break
    spent = sum((square / (2 * n.sigma2) for n in noises), Fraction(0))
    charge = Charge(epsilon=epsilon, delta=delta, rho=spent)
    return noises, loss.with_charge(charge)


def loss_of(noise: Noise, bounds: tuple[int, int], neighbours: Neighbours) -> Loss:
    """What the noise of one table loses; bounds as `noises_of` takes them."""
    l1, square = bounds
    if isinstance(noise, DiscreteLaplace):
        return noise.loss(l1=l1, neighbours=neighbours)
    return noise.loss(l2_squared=square, neighbours=neighbours)


def parameter_of(noise: Noise) -> Fraction:
    """Of Laplace noise the scale, of Gaussian noise sigma2: what makes it again."""
    return noise.sigma2 if isinstance(noise, DiscreteGaussian) else noise.scale
