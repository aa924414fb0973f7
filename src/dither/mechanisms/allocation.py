"""Sharing one release's budget among its measurements, with the mechanism of least error for each.

Every measurement is an integer vector (all groups together) with sensitivities l1 and l2_squared,
and a weight w (the weights are scaled to sum to 1). A set G of measurements gets discrete Gaussian
noise, the others discrete Laplace noise:

* Laplace: epsilon_i = w_i·epsilon, scale_i = l1/epsilon_i.
* Gaussian, together: epsilon_G = Σ_G w_i·epsilon, rho_G = ``rho_of_epsilon(epsilon_G, delta_c)``;
  each rho_i = rho_G·w_i/Σ_G w_j and sigma2_i = l2_squared/(2·rho_i).

A choice among candidates in each group takes the exponential mechanism instead of noise, with l1
and l2_squared those of the ranges by which utilities change, and K = l1²/l2_squared groups: beside
Laplace noise its rate is epsilon_i/l1, for K losses of epsilon_i/K; in G it is at most
sqrt(8·rho_i/l2_squared), since a loss of range r is r²/8-zCDP.

Cost. The Gaussian measurements are rho_G-zCDP together, hence (epsilon_G, delta_c)-DP; with the
Laplace ones (epsilon, delta_c)-DP by basic composition. A threshold on keys adds delta_k (see
``key_threshold``). In the other currency: rho = Σ epsilon_i²/2 + rho_G, and rho_delta = delta_k.
delta_c + delta_k is the delta asked for; with both in use each gets half.

Choice of G. Exchanging i's Laplace for Gaussian noise gains in proportion to
l1²/(l2_squared·w_i), of a choice twice that, whatever else is in G. So G is a prefix of the
measurements in that order; each prefix is tried and the least Σ w_i·log(Var_i) wins. With delta =
0, G is empty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither import _checks as check
from dither._checks import Number
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError, nearest
from dither.mechanisms._composable import bounded_class
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.mechanisms.selection.exponential import Exponential
from dither.mechanisms.selection.key_threshold import KeyThreshold
from dither.numeric import _directed as directed
from dither.privacy import Charge, Loss, Neighbours, compose

__all__ = [
    "Allocation",
    "Allotment",
    "KeyDiscovery",
    "NoiseRequest",
    "allocate",
]


@dataclass(frozen=True, slots=True)
class NoiseRequest:
    """One measurement that wants noise.

    Parameters
    ----------
    name : str
        Unique within the release.
    l1, l2_squared : Fraction
        Sensitivities of the integer vector over all groups, in lattice units; above 0.
    weight : Fraction
        Its share of the budget relative to the others; above 0.
    choice : bool
        In each group one of several candidates is chosen, and no number is released.
        Sensitivities are then of the ranges, largest less smallest, by which utilities change in
        a group, of groups with one range at the worst.
    """

    name: str
    l1: Fraction
    l2_squared: Fraction
    weight: Fraction = Fraction(1)
    choice: bool = False

    def __post_init__(self) -> None:
        for field in ("l1", "l2_squared", "weight"):
            object.__setattr__(self, field, check.positive(field, getattr(self, field)))
        if self.choice and self.groups.denominator != 1:
            raise ArgumentError("l1 and l2_squared of a choice are those of ranges of one size")

    @property
    def groups(self) -> Fraction:
        """Of a choice: how many groups change at the worst."""
        return self.l1**2 / self.l2_squared

    @property
    def range(self) -> Fraction:
        """Of a choice: the range by which utilities change in each of these."""
        return self.l2_squared / self.l1


@dataclass(frozen=True, slots=True)
class KeyDiscovery:
    """Ask for a threshold on keys: ``need`` names the count of distinct units."""

    need: str
    max_groups: int


@dataclass(frozen=True, slots=True)
class Allotment:
    """What one measurement gets.

    Parameters
    ----------
    need : NoiseRequest
        What was asked.
    mechanism : DiscreteLaplace, DiscreteGaussian or Exponential
        The noise, or the choice, bound to its exact parameter.
    charge : Charge
        What this measurement costs by itself, computed from the mechanism's own parameter. A
        Gaussian share claims a rho and no epsilon of its own.
    epsilon : Fraction
        w_i·epsilon: its share of the epsilon asked for (for Gaussian shares, of epsilon_G).
    reason : str
        One sentence for people.
    """

    need: NoiseRequest
    mechanism: DiscreteLaplace | DiscreteGaussian | Exponential
    charge: Charge
    epsilon: Fraction
    reason: str

    def loss(self, *, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What this measurement costs by itself."""
        if isinstance(self.mechanism, DiscreteGaussian):
            return self.mechanism.loss(l2_squared=self.need.l2_squared, neighbours=neighbours)
        if isinstance(self.mechanism, Exponential):
            each = bounded_class(self.mechanism.rate * self.need.range, neighbours)
            return each * int(self.need.groups)
        return self.mechanism.loss(l1=self.need.l1, neighbours=neighbours)


@dataclass(frozen=True, slots=True)
class Allocation:
    """One release's noise and its whole cost.

    Parameters
    ----------
    shares : tuple of Allotment
        In the order of the needs.
    keys : KeyThreshold or None
        The rule for discovered keys.
    charge : Charge
        The cost of everything together, exact, in both currencies.
    delta_conversion, delta_keys : Fraction
        How delta is used; they sum to ``charge.delta``.
    """

    shares: tuple[Allotment, ...]
    keys: KeyThreshold | None
    charge: Charge
    delta_conversion: Fraction
    delta_keys: Fraction

    def loss(self, *, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What everything costs together, for the neighbours of the sensitivities.

        Its `Loss.charge` is the amounts that were shared out, in which the Gaussian measurements
        have an epsilon together that none has by itself.
        """
        parts = [share.loss(neighbours=neighbours) for share in self.shares]
        if self.keys is not None:
            parts.append(self.keys.loss(neighbours=neighbours))
        return compose(*parts).with_charge(self.charge)

    def __getitem__(self, name: str) -> Allotment:
        for share in self.shares:
            if share.need.name == name:
                return share
        raise KeyError(name)


def allocate(
    needs: Sequence[NoiseRequest],
    epsilon: Number,
    delta: Number,
    *,
    keys: KeyDiscovery | None = None,
) -> Allocation:
    """Choose mechanisms and split (epsilon, delta) among them.

    Parameters
    ----------
    needs : sequence of NoiseRequest
        At least one, with distinct names.
    epsilon : Fraction
        Above 0.
    delta : Fraction
        In [0, 1); 0 asks for a pure release.
    keys : KeyDiscovery, optional
        The keys are not public: show only groups whose noisy count passes a threshold.

    Returns
    -------
    Allocation
        Its charge has epsilon exactly as asked and delta at most as asked. The neighbour relation
        is the one that the sensitivities were computed for.

    Raises
    ------
    ArgumentError
        A parameter is out of range, or keys are to be discovered with delta = 0.

    Examples
    --------
    >>> count = NoiseRequest("n", l1=Fraction(3), l2_squared=Fraction(3))
    >>> total = NoiseRequest("cost", l1=Fraction(1500), l2_squared=Fraction(750_000))
    >>> plan = allocate([count, total], Fraction(1), Fraction(0))
    >>> plan["n"].mechanism, plan.charge.epsilon
    (DiscreteLaplace(scale=Fraction(6, 1)), Fraction(1, 1))
    >>> [type(s.mechanism).__name__ for s in
    ...  allocate([NoiseRequest("histogram", Fraction(40), Fraction(40))], Fraction(1),
    ...           Fraction(1, 10**6)).shares]
    ['DiscreteGaussian']
    """
    epsilon = check.positive("epsilon", epsilon)
    delta = check.exact("delta", delta, least=0, below=1)
    _check_needs(needs, delta, keys)
    whole = sum((n.weight for n in needs), Fraction(0))
    weights = [n.weight / whole for n in needs]
    order = sorted(
        range(len(needs)),
        key=lambda i: (1 + needs[i].choice) * needs[i].l1 ** 2 / (needs[i].l2_squared * weights[i]),
        reverse=True,
    )
    split = _Split(tuple(needs), tuple(weights), epsilon, delta, keys)
    pure = [_log_variance(_variance(split.pure(i))) for i in range(len(needs))]
    prefixes = [frozenset(order[:size]) for size in range(len(needs) + 1 if delta else 1)]
    # At equal error the smaller prefix wins: the pure mechanism is the simpler promise.
    return split.allocation(min(prefixes, key=lambda prefix: split.error(prefix, pure)))


@dataclass(frozen=True, slots=True)
class _Split:
    """The budget and its claimants, before it is known who gets Gaussian noise."""

    needs: tuple[NoiseRequest, ...]
    weights: tuple[Fraction, ...]
    epsilon: Fraction
    delta: Fraction
    keys: KeyDiscovery | None

    def deltas(self, gaussians: frozenset[int]) -> tuple[Fraction, Fraction]:
        """(delta_conversion, delta_keys)."""
        if not gaussians:
            return Fraction(0), self.delta if self.keys else Fraction(0)
        # Any split is sound; half each costs neither more than a logarithm of 2.
        return (self.delta / 2, self.delta / 2) if self.keys else (self.delta, Fraction(0))

    def gaussian_weight(self, gaussians: frozenset[int]) -> Fraction:
        return sum((self.weights[i] for i in gaussians), Fraction(0))

    def rho(self, gaussians: frozenset[int]) -> Fraction:
        """What one unit of weight may cost a Gaussian measurement."""
        weight = self.gaussian_weight(gaussians)
        return rho_of_epsilon(weight * self.epsilon, self.deltas(gaussians)[0]) / weight

    def pure(self, i: int) -> DiscreteLaplace | Exponential:
        epsilon, need = self.weights[i] * self.epsilon, self.needs[i]
        if need.choice:
            return Exponential(epsilon / need.l1)
        return DiscreteLaplace.for_loss(epsilon, l1=need.l1)

    def concentrated(self, i: int, rho: Fraction) -> DiscreteGaussian | Exponential:
        need = self.needs[i]
        if need.choice:
            return Exponential(
                # Downwards: rho is what its square costs.
                directed.sqrt_lower(8 * rho * self.weights[i] / need.l2_squared, bits=64)
            )
        return DiscreteGaussian.for_loss(rho * self.weights[i], l2_squared=need.l2_squared)

    def error(self, gaussians: frozenset[int], pure: Sequence[float]) -> float:
        """Σ w_i·log(Var_i); ``pure`` holds each log(Var_i) under Laplace noise.

        In floating point, since it only chooses: sigma² stands for a discrete Gaussian's variance
        from 4 on, where they differ by less than 1e-30 of it.
        """
        rho = self.rho(gaussians) if gaussians else Fraction(0)
        per_weight = float(rho)
        error = 0.0
        for i, weight in enumerate(self.weights):
            if i not in gaussians:
                error += float(weight) * pure[i]
                continue
            variance = float(self.needs[i].l2_squared) / (2 * per_weight * float(weight))
            if self.needs[i].choice or variance < 4:
                variance = _variance(self.concentrated(i, rho))
            error += float(weight) * _log_variance(variance)
        return error

    def share(self, i: int, gaussians: frozenset[int], rho: Fraction) -> Allotment:
        need = self.needs[i]
        mechanism: DiscreteLaplace | DiscreteGaussian | Exponential
        if i in gaussians:
            mechanism = self.concentrated(i, rho)
            charge = Charge.concentrated(rho * self.weights[i])
        else:
            mechanism = self.pure(i)
            charge = Charge.pure(self.weights[i] * self.epsilon)
            if isinstance(mechanism, Exponential):
                charge = Charge.bounded_range(mechanism.rate * need.range) * int(need.groups)
        rejected = "Laplace" if i in gaussians else "Gaussian"
        if need.choice:
            reason = "chooses among public values, and releases no count"
        elif not self.delta:
            reason = "δ is 0, so only pure noise will do"
        elif len(self.needs) == 1:
            reason = f"discrete {rejected} noise of the same cost would be wider"
        else:
            reason = "least error over all measurements together"
        return Allotment(need, mechanism, charge, self.weights[i] * self.epsilon, reason)

    def allocation(self, gaussians: frozenset[int]) -> Allocation:
        rho = self.rho(gaussians) if gaussians else Fraction(0)
        shares = tuple(self.share(i, gaussians, rho) for i in range(len(self.needs)))
        delta_conversion, delta_keys = self.deltas(gaussians)
        weight = self.gaussian_weight(gaussians)
        charge = Charge(delta=delta_keys, rho_delta=delta_keys)
        for i, share in enumerate(shares):
            if i not in gaussians:
                charge += share.charge
        if gaussians:
            spent = sum((shares[i].charge.rho or Fraction(0) for i in gaussians), Fraction(0))
            # Together they have this epsilon at delta_conversion, which none of them has by itself.
            charge += Charge(epsilon=weight * self.epsilon, delta=delta_conversion, rho=spent)
        rule = None
        if self.keys is not None:
            counted = next(s.mechanism for s in shares if s.need.name == self.keys.need)
            assert not isinstance(counted, Exponential)
            rule = KeyThreshold(counted, self.keys.max_groups, delta_keys)
        return Allocation(shares, rule, charge, delta_conversion, delta_keys)


def _variance(mechanism: DiscreteLaplace | DiscreteGaussian | Exponential) -> float:
    """Of a choice that of the Gumbel noise which chooses alike."""
    if isinstance(mechanism, Exponential):
        return math.pi**2 / (6 * float(mechanism.rate) ** 2)
    return mechanism.variance


def _log_variance(variance: float) -> float:
    """log Var Z; noise of a variance below 1e-260 counts as none."""
    return math.log(variance) if variance > 1e-260 else -600.0


def _check_needs(needs: Sequence[NoiseRequest], delta: Fraction, keys: KeyDiscovery | None) -> None:
    names = [n.name for n in needs]
    if not names or len(set(names)) < len(names):
        raise ArgumentError("needs must hold at least one measurement, each with a name of its own")
    if keys is None:
        return
    if any(n.choice for n in needs if n.name == keys.need):
        raise ArgumentError("keys must name a count, not a choice")
    if keys.need not in names:
        raise ArgumentError(f"keys must name one of the needs{nearest(keys.need, names)}")
    if delta == 0:
        raise ArgumentError(
            "delta must be above 0 to discover keys: give the release a delta such as 1e-6, "
            "or declare the keys public in the policy"
        )
