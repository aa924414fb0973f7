"""What a noisy residual costs: discrete Gaussian noise, of which only a projection is seen.

A table of the attributes A, of n_i values each and N cells in all, has a *residual*: H·c of its
counts c, where H takes along every axis the mean away. It holds what the table says beyond all
smaller ones. Released is H·(c + z) with z discrete Gaussian of sigma² in every cell, as integers
(`dither.synth.marginals._residuals`): a function of the class of c + z modulo the kernel K of H in
Z^N.

*The class's law.* Write y = H·y + y'. The class of y has a mass proportional to ::

    exp(-|H·y|²/(2·sigma²))·Θ(y),     Θ(y) = Σ_{k in K} exp(-|y' + k|²/(2·sigma²)).

Θ is nearly constant. K is the sum of the K_j, whole numbers that are constant along axis j: H is
the product of the H_j, and the kernel of a product of surjections of free groups is the sum of
theirs (the differences to the first entry are a surjection with K_j as kernel). Sum over K_1, then
over what K_2 adds, and so on. What K_j adds is its image under H_1···H_(j-1): a lattice Γ_j whose
dual consists of vectors of whole numbers over the root of n_j. By Poisson summation the sum over a
shift of Γ_j is a constant times 1 + (something of size at most d_j), with t = 2·Σ_m x^(m²) ::

    d_j <= (1 + t)^(N/n_j) - 1,     x = exp(-2·pi²·sigma²/n_j),

whatever the shift. So Θ lies between C·Π(1 - d_j) and C·Π(1 + d_j).

*zCDP.* Let neighbours differ by e, a vector of whole numbers. With alpha > 1 the class's Rényi
divergence is at most ::

    alpha·|H·e|²/(2·sigma²) + xi,     xi = Σ_j log((1 + d_j)/(1 - d_j)),

for of Θ(y)^alpha·Θ(y - e)^(1 - alpha) all but one factor is at most e^(xi·(alpha - 1)), and what is
left, after the squares are completed, is a Gaussian sum over Z^N shifted by (1 - alpha)·H·e, which
is orthogonal to K: as in Canonne, Kamath and Steinke it is largest at shift 0. As alpha > 1 it is
(|H·e|²/(2·sigma²) + xi)-zCDP. Where d_j is not small, axis j is left out of the projection that is
counted on: what is released is a function of that with fewer axes, whose rho is a little larger.

*Closely, in epsilon and delta.* Let G be the discrete Gaussian of sigma² on the lattice H·Z^N. The
class's law is within a factor of e^(±xi) of it. Continuous noise of sigma² - t² on the same space,
rounded to the lattice with weights exp(-|y - x|²/(2·t²)), is within e^(±xi') of G, where ::

    xi' = log((1 + θ)/(1 - θ)),     θ = Σ_{v not 0} exp(-2·pi²·t²·|v|²)

over the dual: whole numbers that add up to 0 along each counted axis, so that |v|² >= 2^(axes). A
law that is at least e^-a times another is a mixture that has the other with probability e^-a. So
all residuals together lose no more than continuous Gaussian noise of ::

    mu² = Σ |H_A·e|²/(sigma_A² - t_A²),

composed with what reveals everything with probability a, the sum of all xi and xi'. Here a is
2^-20 of delta.

Source. Xiao, He, Zhang and Kifer, "An optimal and scalable matrix mechanism for noisy marginals
under convex loss functions", NeurIPS 2023, for continuous noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import prod

from dither._stats import log_of
from dither.numeric import exp_upper, shortened

__all__ = ["Allowance", "cost"]

_TWO_PI_SQUARED = 2 * Fraction(314_159_265_358_979, 10**14) ** 2
"""2·pi², cut: pi is 3.14159265358979323..."""


@lru_cache(maxsize=4096)
def cost(sizes: tuple[int, ...], *, replace: bool) -> Fraction:
    """The largest |H·e|² of one row, over the axes that are counted on.

    A row that is added is a unit vector, and H keeps of it Π(1 - 1/n_i). One that is replaced is
    the difference of two; they differ least in overlap, Π(1 - 1/n_i) apart from -1/n_i once, where
    they have all values in common but one, on the shortest axis.

    Examples
    --------
    >>> cost((2, 3), replace=False), cost((2, 3), replace=True), cost((), replace=True)
    (Fraction(1, 3), Fraction(4, 3), Fraction(2, 1))
    """
    kept = sorted(sizes)
    if replace:
        # Furthest apart are rows that differ along one axis alone, the one of fewest values: 2
        # along it.
        return 2 * prod((Fraction(n - 1, n) for n in kept[1:]), start=Fraction(1))
    return prod((Fraction(n - 1, n) for n in kept), start=Fraction(1))


@dataclass(frozen=True, slots=True)
class Allowance:
    """How far a law may be from the Gaussian that stands for it, and what that takes.

    Parameters
    ----------
    each : Fraction
        The largest xi of one axis, and the largest xi' of one residual.
    """

    each: Fraction

    def wide_enough(self, sigma2: Fraction, size: int, cells: int) -> bool:
        """Whether noise of sigma² lets an axis be counted on, of a table of so many cells."""
        return _TWO_PI_SQUARED * sigma2 >= self._least_exponent(_rounded(cells // size), 0) * size

    def softening(self, cells: int, axes: int) -> Fraction:
        """A t² whose xi' is at most ``each``, where so many axes are counted on."""
        least = self._least_exponent(_rounded(cells), 2**axes)
        # Divided by less than 2·pi², and rounded up: more softening than need be.
        return shortened(least / _TWO_PI_SQUARED, 24, up=True)

    def _least_exponent(self, numbers: int, norm: int) -> Fraction:
        return _least_exponent(self.each, numbers, norm)


def _rounded(cells: int) -> int:
    """The next power of 2: few of them are asked about."""
    return 1 << (cells - 1).bit_length()


@lru_cache(maxsize=4096)
def _least_exponent(each: Fraction, numbers: int, norm: int) -> Fraction:
    """A c, in halves, with log((1 + d)/(1 - d)) <= each.

    d bounds Σ exp(-c·|v|²) over the vectors v of so many whole numbers but 0. Of those with
    |v|² >= ``norm``, half of the exponent is at least c·norm/2, and the other half is summed.
    """
    # Half of the exponent sums over all v; in the other half |v|² is at least the norm.
    half = Fraction(1, 2) if norm else Fraction(1)
    needed = -log_of(each) / (half + Fraction(norm, 2))
    c = Fraction(max(1, math.floor(2 * needed)), 2)
    while True:
        # 2·Σ x^(m²) <= 2x/(1 - x); (1 + t)^n - 1 <= nt/(1 - nt).
        x = exp_upper(-c * half)
        total = 2 * numbers * x / (1 - x)
        if total < Fraction(1, 4):
            d = total / (1 - total) * (exp_upper(-c * norm / 2) if norm else 1)
            # log((1 + d)/(1 - d)) <= 2d/(1 - d).
            if 2 * d / (1 - d) <= each:
                return c
        c += Fraction(1, 2)
