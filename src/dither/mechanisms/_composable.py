"""Noise as losses that compose: pairs of laws that dominate every change within a sensitivity.

A pair (P, Q) *dominates* another if it can be turned into the other by post-processing; then no
attacker and no composition does better against the other. Parameters are rounded to doubles on the
side of more loss. Beside its pair each loss carries the exact charge of the mechanism's own
parameter.

Discrete Laplace noise, L1 norm. One coordinate moved by m dominates every integer vector v with
Σ|v_i| <= m. Proof: let T_a be the trade-off curve of Z against Z + a. Go from 0 to v one coordinate
after another; along a path of two steps the errors of any test obey T >= T_b(1 - T_a) (a test's
power in the first step is its level in the second). The law is log-concave, so the same threshold
tests are best for every shift, and T_{a+b} = T_b(1 - T_a) exactly. Hence T_v >= T_{Σ|v_i|}.

Fine lattices. Z of scale s is g·Z' + V with Z' of scale s/g and V independent of it: write Z as the
difference of two geometric numbers, and each as g times its quotient by g plus its remainder, which
are independent. So a shift by m <= g·m' at scale s is dominated by a shift by m' at scale s/g: the
pair's support is kept short.

Discrete Gaussian noise, L2 norm. One coordinate: the pair itself, while its support is short.
Otherwise, by the rounding of ``_analytic``, the likelihood ratio is within a factor of that of
continuous Gaussian noise of a little less sigma2, and so composes: the factors multiply. Its zCDP
is held beside, and where nothing else composes with it the sharper comparison of
`privacy.engines.vectors`. A sample starts from a softening of 96, by which continuous Gaussian
noise of sigma2 - 96 dominates but for a distance in total variation of less than 1e-820 a
coordinate; even times e^epsilon, epsilon <= 709, that is below every double, and the bounds' own
widening covers it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from dither import privacy
from dither.mechanisms.counts._analytic import softened
from dither.numeric import _directed as directed
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._compound import ORDERS
from dither.privacy._promise import as_neighbours
from dither.privacy.laws.approximate import Approximate
from dither.privacy.laws.classes import ApproximateProfile, Concentrated
from dither.privacy.laws.discrete_gaussian import DiscreteGaussianNoise
from dither.privacy.laws.gaussian_vector import DiscreteGaussianVector
from dither.privacy.laws.pair import PmfPair
from dither.privacy.laws.part import Dominated, Part
from dither.privacy.laws.rationals import printing_at_least

__all__ = [
    "approximate_class",
    "approximate_profile",
    "bounded_class",
    "gaussian_pair",
    "laplace_pair",
    "pure_class",
    "response_class",
]

_ATOMS = 4096
_SHORT_SIGMA2 = 250_000
_LARGEST = 499
"""Epsilons that the makers of `dither.privacy` take: they are below 500."""

_SOFT = 96
_COARSE = 16 * _SOFT


def pure_class(epsilon: Fraction, neighbours: Neighbours | str) -> Loss:
    """Any epsilon-DP mechanism."""
    if epsilon == 0:
        return Loss((), as_neighbours(neighbours))
    if epsilon <= _LARGEST:
        return privacy.pure(epsilon, neighbours=neighbours)
    # Beyond what doubles can weigh everything counts as lost; the charge says what is true.
    part = Dominated(PmfPair((1.0, 0.0), (0.0, 1.0)), "everything")
    return Loss(((part, 1),), as_neighbours(neighbours)).with_charge(Charge.pure(epsilon))


def approximate_class(epsilon: Fraction, delta: Fraction, neighbours: Neighbours | str) -> Loss:
    """Any (epsilon, delta)-DP mechanism.

    A double delta stands for the decimal that it is written as, here and wherever one is asked for:
    10**-6 is what 1e-6 means, although that double lies a little below it. Else the loss would
    refuse its own delta.
    """
    if epsilon <= _LARGEST:
        return privacy.approximate(epsilon, delta, neighbours=neighbours)
    return pure_class(epsilon, neighbours).with_charge(Charge.approximate(epsilon, delta))


def approximate_profile(
    epsilon: Fraction,
    delta: Fraction,
    divergence: Callable[[Fraction], Fraction],
    rho: Fraction,
    neighbours: Neighbours | str,
) -> Loss:
    """Any (epsilon, delta)-DP, rho-zCDP mechanism of at most that Rényi divergence of an order."""
    whole = approximate_class(epsilon, delta, neighbours)
    ((part, _),) = whole.parts
    if not isinstance(part, Approximate):
        return whole
    values = (printing_at_least(divergence(Fraction(a))) for a in ORDERS.tolist())
    made = ApproximateProfile(tuple(ORDERS.tolist()), tuple(values), part, printing_at_least(rho))
    return replace(whole, parts=((made, 1),)).with_charge(Charge(epsilon, delta, rho))


def bounded_class(epsilon: Fraction, neighbours: Neighbours | str) -> Loss:
    """Any mechanism of bounded range epsilon."""
    if 0 < epsilon <= _LARGEST:
        return privacy.exponential(epsilon, neighbours=neighbours)
    return pure_class(epsilon, neighbours).with_charge(Charge.bounded_range(epsilon))


def response_class(epsilon: Fraction, answers: int, neighbours: Neighbours | str) -> Loss:
    """Randomised response among ``answers``."""
    if epsilon <= _LARGEST:
        return privacy.randomized_response(epsilon, answers, neighbours=neighbours)
    return pure_class(epsilon, neighbours).with_charge(Charge.response(epsilon))


def laplace_pair(scale: Fraction, l1: Fraction | int, neighbours: Neighbours | str) -> Loss:
    """Discrete Laplace noise of a scale at an L1 sensitivity, any number of coordinates."""
    charge = Charge.pure(Fraction(l1) / scale)
    # Integers change by integers: the L1 norm is one, too.
    shift = math.floor(l1)
    if shift == 0:
        return Loss((), as_neighbours(neighbours)).with_charge(charge)
    group = 1
    if shift > _ATOMS:
        # Of the group sizes that are short enough, one that wastes least of the shift.
        first = -(-shift // _ATOMS)
        group = min(range(first, first + 500), key=lambda g: -(-shift // g) * g)
    # A chain of shift/g steps, each g/scale-DP, has no worse pair; rounded up, to cover the shift.
    loss = privacy.discrete_laplace(
        scale / group, sensitivity=-(-shift // group), neighbours=neighbours
    )
    return loss.with_charge(charge)


def gaussian_pair(
    sigma2: Fraction,
    l2_squared: Fraction | int,
    coordinates: int,
    neighbours: Neighbours | str,
    *,
    near: Fraction | None = None,
) -> Loss:
    """Discrete Gaussian noise on at most ``coordinates`` changing coordinates.

    ``near`` is an epsilon where it will be asked, and where the bound is to be tightest.
    """
    part = _gaussian_part(sigma2, math.floor(l2_squared), coordinates, near)
    loss = Loss(() if part is None else ((part, 1),), as_neighbours(neighbours))
    return loss.with_charge(Charge.concentrated(Fraction(l2_squared) / (2 * sigma2)))


def _gaussian_part(
    sigma2: Fraction, l2_squared: int, coordinates: int, near: Fraction | None
) -> Part | None:
    # Below 1 no integer changes: nothing is lost.
    if l2_squared == 0:
        return None
    shift = math.isqrt(l2_squared)
    if min(coordinates, l2_squared) == 1 and sigma2 <= _SHORT_SIGMA2 and shift <= _ATOMS:
        # A little less noise than there is.
        return DiscreteGaussianNoise(directed.float_down(directed.sqrt_lower(sigma2)), shift)
    moved = min(coordinates, l2_squared)
    sampled = None
    if sigma2 >= _COARSE:
        ratio = directed.sqrt_lower((sigma2 - _SOFT) / l2_squared)
        sampled = directed.float_down(ratio)
    # Without a word, some five deviations of the loss.
    mu = math.sqrt(l2_squared / float(sigma2))
    soft, lost, factor = softened(near or Fraction(5 * mu), sigma2, l2_squared, moved)
    # Every figure is rounded to the side that charges more.
    rho = directed.float_up(l2_squared / (2 * sigma2))
    # On so coarse a lattice zCDP is all that is proved.
    if soft is None:
        return Concentrated(rho)
    return DiscreteGaussianVector(
        directed.float_up(directed.sqrt_upper(sigma2)),
        shift,
        shift**2 if moved == 1 else l2_squared,
        moved,
        rho,
        directed.float_up(l2_squared / (sigma2 - soft)),
        directed.float_up(lost),
        directed.float_up(directed.log_upper(factor)),
        sampled,
    )
