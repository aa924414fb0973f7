"""The mechanism of least error for an integer vector of known sensitivity, and why.

Candidates, each at exactly (epsilon, delta) for the whole vector:

* discrete Laplace noise of scale l1/epsilon, always;
* discrete Gaussian noise, if delta > 0, by the law's own delta (``_analytic``), exact for one
  coordinate and nearly so for vectors; on very coarse lattices the conversion from zCDP wins;
* staircase noise, for one number;
* noise by the largest norm, for a vector of known dimension;
* canonical (Tulap) noise, for one count that changes by at most 1, if delta > 0.

The least variance of a coordinate wins; at equal error, the earlier (the simpler promise).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from dither import _checks as check
from dither._checks import Number
from dither.accounting import rho_of_epsilon
from dither.mechanisms._composable import gaussian_pair
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.mechanisms.counts.max_norm import MaxNorm
from dither.mechanisms.counts.staircase import Staircase
from dither.mechanisms.counts.tulap import Tulap
from dither.mechanisms.sensitivity import Sensitivity
from dither.privacy import Charge, Loss, Neighbours

__all__ = ["ChosenNoise", "additive_noise", "choose"]

_Noise = DiscreteLaplace | DiscreteGaussian | MaxNorm | Staircase | Tulap


@dataclass(frozen=True, slots=True)
class ChosenNoise:
    """What was chosen.

    Parameters
    ----------
    mechanism : DiscreteLaplace, DiscreteGaussian, MaxNorm, Staircase or Tulap
        The noise: one draw a coordinate, or for MaxNorm one a vector.
    charge : Charge
        What the whole vector costs, as it was asked for.
    reason : str
        One sentence for people: all candidates' standard deviations.
    sensitivity : Sensitivity
        What it was chosen for, completed and tightened.
    """

    mechanism: _Noise
    charge: Charge
    reason: str
    sensitivity: Sensitivity

    def loss(self, *, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What the whole vector costs; its `Loss.charge` is the amounts that were asked for."""
        known, mechanism = self.sensitivity, self.mechanism
        if isinstance(mechanism, DiscreteLaplace):
            return mechanism.loss(l1=known.l1, neighbours=neighbours)
        if isinstance(mechanism, DiscreteGaussian):
            # Tightest at the epsilon that was chosen for.
            return gaussian_pair(
                mechanism.sigma2,
                known.l2_squared,
                known.changed,
                neighbours,
                near=self.charge.epsilon,
            ).with_charge(self.charge)
        if isinstance(mechanism, MaxNorm):
            return mechanism.loss(linf=known.linf, neighbours=neighbours)
        if isinstance(mechanism, Staircase):
            return mechanism.loss(sensitivity=known.linf, neighbours=neighbours)
        return mechanism.loss(neighbours=neighbours)


def choose(
    *,
    epsilon: Number,
    delta: Number = Fraction(0),
    l1: Number | None = None,
    l2_squared: Number | None = None,
    linf: Number | None = None,
    dimension: int | None = None,
) -> ChosenNoise:
    """Choose the noise of least variance for an integer vector.

    Parameters
    ----------
    epsilon : Fraction
        Above 0, for the whole vector.
    delta : Fraction
        In [0, 1); 0 asks for pure noise.
    l1, l2_squared, linf, dimension : optional
        What is known of the sensitivity, as in `Sensitivity.of`.

    Returns
    -------
    ChosenNoise
        Its neighbour relation is the one that the sensitivities were computed for.

    Raises
    ------
    ArgumentError
        A parameter is out of range, or too little is known.

    Examples
    --------
    >>> small = Fraction(1, 10**6)
    >>> choose(l1=1, dimension=1, epsilon=Fraction(1)).reason
    'discrete Laplace: standard deviation 1.357; staircase, 1.357'
    >>> choose(linf=1, dimension=50, epsilon=Fraction(1), delta=small).reason
    'largest norm: standard deviation 29.73; analytic Gaussian, 29.87; discrete Laplace, 70.71'
    >>> choose(l1=1000, dimension=1, epsilon=Fraction(5)).reason
    'staircase: standard deviation 172.4; discrete Laplace, 282.8'
    """
    epsilon = check.positive("epsilon", epsilon)
    delta = check.exact("delta", delta, least=0, below=1)
    known = Sensitivity.of(l1=l1, l2_squared=l2_squared, linf=linf, dimension=dimension)
    laplace = known.laplace(epsilon)
    found: list[tuple[str, _Noise, Charge]] = [
        ("discrete Laplace", laplace, laplace.loss(l1=known.l1).charge)
    ]
    if delta:
        gaussian = known.analytic_gaussian(epsilon, delta)
        rho = known.l2_squared / (2 * gaussian.sigma2)
        by_rho = known.gaussian(rho_of_epsilon(epsilon, delta))
        name = "analytic Gaussian" if gaussian.sigma2 < by_rho.sigma2 else "Gaussian by zCDP"
        found.append((name, gaussian, Charge(epsilon, delta, rho)))
    if known.dimension == 1:
        staircase = Staircase.for_loss(epsilon, sensitivity=known.linf)
        found.append(("staircase", staircase, staircase.loss(sensitivity=known.linf).charge))
        if delta and known.linf == 1:
            tulap = Tulap(epsilon, delta)
            found.append(("canonical (Tulap)", tulap, tulap.loss().charge))
    elif known.dimension is not None:
        cube = MaxNorm.for_loss(epsilon, linf=known.linf, dimension=known.dimension)
        found.append(("largest norm", cube, cube.loss(linf=known.linf).charge))
    # At equal error up to rounding the earlier candidate wins, as sorting keeps the order.
    found.sort(key=lambda c: float(f"{c[1].variance:.9g}"))
    name, mechanism, charge = found[0]
    texts = [f"{math.sqrt(c[1].variance):.4g}" for c in found]
    rest = "".join(f"; {c[0]}, {text}" for c, text in zip(found[1:], texts[1:], strict=True))
    return ChosenNoise(
        mechanism, charge.amounts, f"{name}: standard deviation {texts[0]}{rest}", known
    )


def additive_noise(known: Sensitivity, epsilon: Fraction, delta: Fraction) -> ChosenNoise:
    """Laplace or Gaussian noise, whichever has less variance: draws that add up by known rules.

    Parameters
    ----------
    known : Sensitivity
    epsilon, delta : Fraction
        For the whole vector; with delta 0 the noise is Laplace.

    Examples
    --------
    >>> chosen = additive_noise(Sensitivity.of(l1=1), Fraction(1), Fraction(0))
    >>> chosen.mechanism, chosen.charge.epsilon
    (DiscreteLaplace(scale=Fraction(1, 1)), Fraction(1, 1))
    """
    laplace = known.laplace(epsilon)
    text = f"discrete Laplace: standard deviation {math.sqrt(laplace.variance):.4g}"
    if delta:
        gaussian = known.analytic_gaussian(epsilon, delta)
        if gaussian.variance < laplace.variance:
            amounts = Charge(epsilon, delta, known.l2_squared / (2 * gaussian.sigma2))
            reason = f"analytic Gaussian: standard deviation {math.sqrt(gaussian.variance):.4g}"
            return ChosenNoise(gaussian, amounts, f"{reason}; {text}", known)
    return ChosenNoise(laplace, laplace.loss(l1=known.l1).charge.amounts, text, known)
