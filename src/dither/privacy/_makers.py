"""Makers of losses: the mechanisms and guarantees that a loss can be made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.privacy._charge import Charge
from dither.privacy._loss import Loss
from dither.privacy._promise import Neighbours, as_neighbours
from dither.privacy.laws.approximate import Approximate
from dither.privacy.laws.classes import BoundedRange, Concentrated, RenyiProfile
from dither.privacy.laws.discrete_gaussian import FARTHEST, DiscreteGaussianNoise
from dither.privacy.laws.gaussian import GaussianNoise
from dither.privacy.laws.laplace import FINEST, DiscreteLaplaceNoise, LaplaceNoise
from dither.privacy.laws.pair import PmfPair
from dither.privacy.laws.part import Part
from dither.privacy.laws.rationals import printed, printing_at_least, printing_at_most
from dither.privacy.laws.response import RandomResponse

__all__ = [
    "approximate",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential",
    "gaussian",
    "gdp",
    "laplace",
    "pair",
    "pure",
    "randomized_response",
    "renyi",
    "zcdp",
]


Relation = Neighbours | str


def _loss(part: Part, neighbours: Relation, charge: Charge | None = None) -> Loss:
    charges = None if charge is None else ((charge, 1),)
    return Loss(((part, 1),), as_neighbours(neighbours), charges=charges)


def _stated(make: Callable[..., Charge], *values: Any) -> Charge | None:
    """The exact charge of arguments that no double prints; otherwise the part gives its own."""
    exact = [check.exact("value", value) for value in values]
    if all(printed(float(x)) == x for x in exact):
        return None
    return make(*exact)


def _read(name: str, value: Any, most: float = 1e100) -> Fraction:
    """A parameter of noise, exactly, whose square and its inverse are doubles."""
    return check.exact(name, value, above=1e-100, below=most)


_SMALLEST = 1e-200
"""Losses below it, and what is derived of them, would leave the doubles."""


def _above(name: str, value: Any, most: float | None = None) -> float:
    """A loss as a double; one between two is rounded up, to one that it implies."""
    return printing_at_least(check.exact(name, value, least=_SMALLEST, below=most))


def _least(name: str, value: Any, most: float | None = None) -> float:
    """As `_above`, of a loss that may be 0."""
    exact = check.exact(name, value, least=0, below=most)
    return _above(name, exact, most) if exact else 0.0


def gaussian(noise_multiplier: Number, *, neighbours: Relation = Neighbours.ADD_REMOVE) -> Loss:
    """Gaussian noise of deviation noise_multiplier·(L2 sensitivity under these neighbours).

    Examples
    --------
    >>> e = gaussian(noise_multiplier=1.0).epsilon(delta=1e-6)
    >>> round(e, 10), e.method
    (4.8865541175, 'closed form (Gaussian)')
    """
    sigma = _read("noise_multiplier", noise_multiplier)
    return _loss(GaussianNoise.of(sigma), neighbours)


def laplace(noise_multiplier: Number, *, neighbours: Relation = Neighbours.ADD_REMOVE) -> Loss:
    """Laplace noise of scale noise_multiplier·(L1 sensitivity), the change on one coordinate.

    The one-dimensional pair dominates all changes of the same L1 norm: convexity in the shifts.

    Examples
    --------
    >>> laplace(noise_multiplier=2.0).epsilon(delta=0)
    0.5...
    """
    return _loss(LaplaceNoise.of(_read("noise_multiplier", noise_multiplier)), neighbours)


def discrete_gaussian(
    sigma: Number, *, sensitivity: int = 1, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Loss:
    """Discrete Gaussian noise of parameter sigma on the integers, one coordinate.

    Examples
    --------
    >>> discrete_gaussian(10.0).epsilon(delta=1e-6) < 0.5
    True
    """
    s = printing_at_most(_read("sigma", sigma, 1e5))
    d = check.count("sensitivity", sensitivity, 1, FARTHEST, instead="; use a coarser lattice")
    charge = _stated(lambda m: Charge.concentrated(d * d / (2 * m * m)), sigma)
    return _loss(DiscreteGaussianNoise(s, d), neighbours, charge)


def discrete_laplace(
    scale: Number, *, sensitivity: int = 1, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Loss:
    """Discrete Laplace (geometric) noise of a scale on the integers, one coordinate.

    Examples
    --------
    >>> discrete_laplace(2.0).epsilon(delta=0)
    0.5...
    """
    s = _read("scale", scale)
    most = "; pure(sensitivity / scale) covers any"
    d = check.count("sensitivity", sensitivity, 1, FINEST, instead=most)
    return _loss(DiscreteLaplaceNoise.of(s, d), neighbours)


def randomized_response(
    epsilon: Number, k: int = 2, *, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Loss:
    """The truth with probability e^epsilon/(e^epsilon + k - 1), else another of k answers.

    Examples
    --------
    >>> randomized_response(1.0, k=4).epsilon(delta=0)
    1.0...
    """
    e = _above("epsilon", epsilon, 500)
    part = RandomResponse(e, check.count("k", k, 2))
    return _loss(part, neighbours, _stated(Charge.response, epsilon))


def exponential(epsilon: Number, *, neighbours: Relation = Neighbours.ADD_REMOVE) -> Loss:
    """An exponential mechanism that is epsilon-DP: any mechanism of bounded range epsilon.

    Examples
    --------
    >>> many = 1000 * exponential(0.1)
    >>> many.epsilon(delta=1e-6) < (1000 * pure(0.1)).epsilon(delta=1e-6)
    True
    """
    part = BoundedRange(_above("epsilon", epsilon, 500))
    return _loss(part, neighbours, _stated(Charge.bounded_range, epsilon))


def pure(epsilon: Number, *, neighbours: Relation = Neighbours.ADD_REMOVE) -> Loss:
    """Any epsilon-DP mechanism.

    Examples
    --------
    >>> round((10_000 * pure(0.01)).epsilon(delta=1e-5), 9)
    4.376384509
    """
    return approximate(epsilon, 0.0, neighbours=neighbours)


def approximate(
    epsilon: Number, delta: Number, *, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Loss:
    """Any (epsilon, delta)-DP mechanism.

    Examples
    --------
    >>> approximate(1.0, 1e-6).delta(1.0)
    1e-06
    """
    e = _least("epsilon", epsilon, 500)
    d = printing_at_least(check.exact("delta", delta, least=0, below=1))
    return _loss(Approximate(e, d), neighbours, _stated(Charge.approximate, epsilon, delta))


def zcdp(rho: Number, *, neighbours: Relation = Neighbours.ADD_REMOVE) -> Loss:
    """Any rho-zCDP mechanism.

    Examples
    --------
    >>> round(zcdp(0.5).epsilon(delta=1e-6), 9)
    5.221534445
    """
    part = Concentrated(_above("rho", rho, 1e150))
    return _loss(part, neighbours, _stated(Charge.concentrated, rho))


def renyi(orders: Mapping[float, float], *, neighbours: Relation = Neighbours.ADD_REMOVE) -> Loss:
    """Any mechanism whose Rényi divergences are at most the given values at the given orders.

    Examples
    --------
    >>> renyi({2.0: 0.1, 8.0: 0.4, 32.0: 1.6}).epsilon(delta=1e-5) < 1.7
    True
    """
    if not isinstance(orders, Mapping) or not orders:
        raise ArgumentError("orders must map orders above 1 to divergences of at least 0")
    pairs = sorted(
        (
            check.number("order", a, above=1, below=1e6, rounding="down"),
            _least("value", v),
        )
        for a, v in orders.items()
    )
    return _loss(RenyiProfile(tuple(a for a, _ in pairs), tuple(v for _, v in pairs)), neighbours)


def gdp(mu: Number, *, neighbours: Relation = Neighbours.ADD_REMOVE) -> Loss:
    """Any mu-GDP mechanism: no easier to attack than N(0, 1) against N(mu, 1).

    Examples
    --------
    >>> round(gdp(1.0).advantage(), 6)
    0.382925
    """
    return _loss(GaussianNoise.of(1 / _read("mu", mu)), neighbours)


def pair(
    p: Sequence[float], q: Sequence[float], *, neighbours: Relation = Neighbours.ADD_REMOVE
) -> Loss:
    """Any two probability mass functions on a common support: with the unit, and without.

    Parameters
    ----------
    p, q : sequence of float
        Equally many masses of at least 0, each summing to 1 within 1e-9.

    Raises
    ------
    ArgumentError
        Lengths differ, a mass is below 0, or a sum is not 1.

    Examples
    --------
    >>> pair([0.5, 0.5], [0.25, 0.75]).delta(0.0)
    0.25...
    """
    rows: list[tuple[float, ...]] = []
    for name, masses in (("p", p), ("q", q)):
        row = tuple(
            check.number(name, x, least=0, most=1) for x in check.listed(name, masses, "masses")
        )
        # For masses that were typed or computed; they are taken as they are.
        if abs(math.fsum(row) - 1) > 1e-9:
            raise ArgumentError(f"{name} must sum to 1")
        rows.append(row)
    if len(rows[0]) != len(rows[1]):
        raise ArgumentError("p and q must have the same length, one mass a point of the support")
    return _loss(PmfPair(rows[0], rows[1]), neighbours)
