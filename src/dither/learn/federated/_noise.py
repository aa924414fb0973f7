"""The noise of a sum that many clients add together, and what it loses.

Each client adds a share of discrete Gaussian or Skellam noise to its vector of integers, and the
sum is taken modulo 2^bits. The modulus is post-processing of the sum over the integers: it costs
accuracy where a sum wraps, never privacy. More shares than are counted on are post-processing, too.

Skellam. Let p be the law of variance μ, L(z) = log p(z-1)/p(z), and k a shift. As
I_(z-1) - I_(z+1) = (2z/μ)·I_z, the mean G(z) of L(z) and L(z+1), and half their difference, d(z),
which is at least 0 by Turán's inequality, obey ::

    sinh G(z) = e^d(z)·z/μ,    e^(-2d(z)) = r·(2z/μ + r),   r = I_(z+1)/I_z.

Amos (1974) has r >= μ/(z + 1/2 + R), R = √(μ² + (z + 3/2)²), z >= 0. With A = z + 1/2 + R this
gives e^(-2d) >= 1 - (A + 2(z+1))/A². With w = z + 1 and y = w/μ, A >= μ·(y + √(1+y²)) - 1/2; with
u = √(1+y²) - y <= 1, A >= (μ/u)·(1 - 1/(2μ)), and 2y = 1/u - u, so that ::

    2d(z) <= κ = -log(1 - max(2u - u³)/(μ·(1 - 1/(2μ))²)),   max(2u - u³) = (4/3)·√(2/3) < 1.08867.

L is odd about 1/2 and rises by at most κ a step: L(z+j) <= G(z) + κ(j - 1/2), so
log p(z)/p(z+k) <= k·G(z) + κk²/2. Let H(z) = asinh(az), a = e^(κ/2)/μ; |G| <= |H|, both odd. Let
ψ(t) = E cosh(tH(Z)) >= E e^(tG(Z)). By |H| <= sinh|H| and E[Z·f(Z)] = (μ/2)·E[f(Z+1) - f(Z-1)],
which is the recurrence again, ::

    ψ'(t) = E[H·sinh(tH)] <= a·E[Z·sinh(tH(Z))] = (aμ/2)·E[sinh(tH(Z+1)) - sinh(tH(Z-1))]
          <= e^(κ/2)·sinh(th)·ψ(t),    h = asinh(a),

since H is odd, and concave above 0: its mean over two sides is at most |H|, its step at most h. So
log ψ(t) <= e^(κ/2)·(cosh(th) - 1)/h, and for every order α > 1, with s = α - 1, ::

    D_α(Z + k, Z) <= κk²/2 + e^(κ/2)·(cosh(skh) - 1)/(sh).

For vectors these add. The right side over k² rises in |k|; so with Σk_i² <= S and |k_i| <= K it is
at most S/K² times that at K. It tends to αS/(2μ), as for Gaussian noise. The law and its shift are
swapped by a reflection, so that of a Poisson sample the direction of the mixture is the larger one
(Mironov, Talwar and Zhang 2019, theorem 5), and that is a binomial sum of these.

Discrete Gaussian. The sum of parameters a and b at x is proportional to e^(-x²/(2(a+b))) times a
sum of e^(-(y-c)²/(2v)) over the integers y, v = ab/(a+b). By Poisson summation that differs between
shifts c by a factor within (1+h)/(1-h), h = 2q/(1-q³), q = e^(-2π²v). So with n shares of σ² the
sum's law is within e^(±T) of the discrete Gaussian of nσ², T = Σ_k log((1+h_k)/(1-h_k)),
v_k = σ²k/(k+1), k < n; a last part that fills up to a total adds one term, v >= σ²/2. With τ = T
times the coordinates, every law P' here is (1-η)·P + η·R with η = 1 - e^(-τ) and P the mechanism's
own: whatever P and Q lose, P' and Q' lose besides what is (0, η)-DP.

Sources. Agarwal, Kairouz and Liu, "The Skellam mechanism for differentially private federated
learning", NeurIPS 2021, and Kairouz, Liu and Steinke, "The distributed discrete Gaussian mechanism
for federated learning with secure aggregation", ICML 2021, whose bounds these replace: they hold at
all orders, need no L1 norm, and are proved above.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither import noise, privacy
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.learn.federated._encoding import UpdateEncoding
from dither.mechanisms import DiscreteGaussian
from dither.noise import skellam, skellam_tail
from dither.numeric import Words, exp_upper, secure_words
from dither.numeric._balls import precision, up
from dither.privacy import Loss, Neighbours

__all__ = ["DistributedNoise", "NoiseShare", "fewest_bits", "gaussian_excess", "skellam_divergence"]

Integers = npt.NDArray[np.int64]

LAWS = ("skellam", "discrete gaussian")
# Cut: pi is 3.14159265358979323...
_PI_BELOW = Fraction(3_141_592_653_589_793, 10**15)
_EXCESS_SHARES = 64
_ORDERS = (*range(2, 33), *range(36, 65, 4), *range(72, 129, 8))
_BITS = 192
"""Of balls, whose ends are rounded up to doubles: far more than any cancels."""
# The proof divides by 1 - 1/(2μ), which is 1/2 at least from here on.
_LEAST_VARIANCE = 1


@dataclass(frozen=True, slots=True)
class DistributedNoise:
    """How clients make the noise of a round together, and who is trusted to.

    Parameters
    ----------
    law : {"skellam", "discrete gaussian"}
        Skellam noise is closed under sums, so shares may be as small as one likes. Sums of discrete
        Gaussian shares nearly have that law where each has a variance of 3 or more, which takes a
        finer lattice and so more bits; it composes more tightly over sampled rounds.
    survivors : int
        The fewest clients whose vectors a round's sum must hold. A round with fewer is refused
        before its sum is opened.
    honest : number
        The share of these that add their noise; in (0, 1]. The noise of the others is not counted.
    most : int, optional
        Shares in what is published: what the survivors did not add, the server adds. Left out, so
        many that more clients are hardly ever sampled.
    units : int, optional
        Of the lattice, in a length of the clip. Left out, so many that rounding adds little.
    wrap : float
        The chance of a round that any coordinate of its sum wraps around, at most; it decides on
        the bits of the modulus.
    """

    law: str = "skellam"
    survivors: int = 2
    honest: Number = 1
    most: int | None = None
    units: int | None = None
    wrap: float = 1e-6

    def __post_init__(self) -> None:
        check.choice("law", self.law, LAWS)
        check.count("survivors", self.survivors, 1)
        share = check.exact("honest", self.honest, above=0, most=1)
        object.__setattr__(self, "honest", share)
        if self.most is not None:
            check.count("most", self.most, self.survivors)
        if self.units is not None:
            check.count("units", self.units, 1, 1 << 30)
        check.number("wrap", self.wrap, above=0, below=1)
        if self.counted(self.survivors) < 1:
            raise ArgumentError("survivors times honest must be at least 1: no noise is left else")

    def counted(self, shares: int) -> int:
        """How many of some shares are surely noise."""
        return math.floor(Fraction(self.honest) * shares)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        for law in LAWS:
            share, encoding = NoiseShare(law, Fraction(60)), UpdateEncoding(1, 12, rotated=True)
            square = encoding.l2_squared
            claimed = share.loss(3, l2_squared=square, coordinates=1)
            signs, words = np.ones(1, np.int64), secure_words()

            def run(
                update: float,
                size: int,
                share: NoiseShare = share,
                encoding: UpdateEncoding = encoding,
                signs: Integers = signs,
                words: Words = words,
            ) -> Integers:
                # As many sums of one coordinate as are asked for, modulo 2^8.
                vectors = encoding.encode(np.full((size, 1), update), 1.0, signs, words)
                return (vectors[:, 0] + sum(share.draw((size,)) for _ in range(3))) & 255

            delta = Fraction(claimed.delta(2.0).upper)
            yield Subject(f"sum of {law} shares", run, 0.0, 1.0, 2, delta)


@dataclass(frozen=True, slots=True)
class NoiseShare:
    """The noise that one client adds to each coordinate, and sums of it.

    Parameters
    ----------
    law : str
    variance : Fraction
        Of one share; of discrete Gaussian noise its parameter σ².
    """

    law: str
    variance: Fraction

    def draw(self, shape: tuple[int, ...], words: Words | None = None) -> Integers:
        """One share for each coordinate."""
        size = math.prod(shape)
        if self.law == "skellam":
            return skellam(self.variance, size, words=words).reshape(shape)
        return noise.discrete_gaussian(self.variance, size, words=words).reshape(shape)

    def times(self, shares: int) -> NoiseShare:
        """As many shares in one draw: exactly (Skellam), or as nearly as is charged."""
        return NoiseShare(self.law, self.variance * shares)

    def loss(
        self,
        shares: int,
        *,
        l2_squared: int,
        coordinates: int,
        rate: float = 1.0,
        filled: bool = False,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What the sum of so many shares loses of a vector of integers of bounded length.

        Parameters
        ----------
        shares : int
        l2_squared, coordinates : int
        rate : float
            With which a client is sampled, Poisson; 1 where it is known to be in the sum.
        filled : bool
            Whether the last shares were drawn as one.
        neighbours : Neighbours
            Of a client that is replaced two vectors change: twice the length, and where it is
            sampled what a group of two loses.
        """
        replaced = neighbours is Neighbours.REPLACE
        if self.law == "skellam":
            if replaced and rate < 1:
                raise ArgumentError(
                    "Skellam noise of sampled clients is accounted for clients added or removed: "
                    "take law='discrete gaussian', a rate of 1, or neighbours='add_remove'"
                )
            # Two vectors in place of one: twice the length.
            square = 4 * l2_squared if replaced else l2_squared
            orders = skellam_orders(self.variance * shares, square, rate)
            return privacy.renyi(orders, neighbours=neighbours)
        loss = gaussian_loss(self.variance * shares, l2_squared, coordinates, rate, neighbours)
        changed = (2 if replaced else 1) * coordinates
        return self.nearly(loss, shares, changed, filled=filled)

    def nearly(self, loss: Loss, shares: int, changed: int, *, filled: bool = False) -> Loss:
        """A loss of discrete Gaussian noise, with what its sum of shares differs from that law.

        Parameters
        ----------
        loss : Loss
        shares : int
        changed : int
            Coordinates that differ between neighbours, at most.
        filled : bool
            As of `loss`.
        """
        excess = gaussian_excess(self.variance, shares, filled=filled) * changed
        if not excess:
            return loss
        # 1 - e^(-τ) <= τ.
        if excess >= 1:
            raise ArgumentError(
                "the shares of discrete Gaussian noise are too small for their sum to be nearly of "
                "that law: take a finer lattice (units), or law='skellam'"
            )
        return loss + privacy.approximate(0, excess, neighbours=loss.neighbours)

    def reach(self, shares: int, unlikely: float) -> float:
        """How far from 0 a sum of shares is at most, but for a chance of about e^-unlikely."""
        total = float(self.variance * shares)
        noisy = math.sqrt(2 * unlikely * total) + 1
        while self.law == "skellam" and skellam_tail(total, noisy) > -unlikely:
            noisy *= 1.1
        return noisy


def gaussian_loss(
    sigma2: Fraction, l2_squared: int, coordinates: int, rate: float, neighbours: Neighbours
) -> Loss:
    """Discrete Gaussian noise on vectors of bounded length, of sampled clients where rate < 1."""
    made, replaced = DiscreteGaussian(sigma2), neighbours is Neighbours.REPLACE
    if rate == 1:
        square, moved = (4 * l2_squared, 2 * coordinates) if replaced else (l2_squared, coordinates)
        return made.loss(l2_squared=square, coordinates=moved, neighbours=neighbours)
    alone = made.loss(l2_squared=l2_squared, coordinates=coordinates)
    return alone.poisson(rate, neighbours=neighbours)


@lru_cache(maxsize=4096)
def gaussian_excess(sigma2: Fraction, shares: int, *, filled: bool = False) -> Fraction:
    """T: by how much the logarithm of a sum's law differs from the discrete Gaussian's, at most.

    A number of at least 1 where nothing is known.
    """
    total = _spread(sigma2 / 2) if filled else Fraction(0)
    for k in range(1, min(shares, _EXCESS_SHARES)):
        total += _spread(sigma2 * Fraction(k, k + 1))
    # Terms fall in k.
    further = max(0, shares - _EXCESS_SHARES)
    last = _spread(sigma2 * Fraction(_EXCESS_SHARES, _EXCESS_SHARES + 1)) if further else 0
    return total + further * last


def _spread(variance: Fraction) -> Fraction:
    """log((1+h)/(1-h)) of sums over shifted integers, rounded up; 1 where h is not small.

    It is 2·Σ h^(2k+1)/(2k+1) over k >= 0, which from k = 1 on is at most 2·h³/(3·(1 - h²)).
    """
    # A smaller pi, and an exponential rounded up: q is never too small.
    q = exp_upper(-2 * _PI_BELOW**2 * variance)
    h = 2 * q / (1 - q**3) if q < 1 else Fraction(1)
    # Whoever adds up to 1 or more is refused, so that no larger number is needed.
    if h >= Fraction(1, 3):
        return Fraction(1)
    # 2·(h + h³/3 + h⁵/5 + ...), whose tail is below a geometric series from h³/3 on.
    found = 2 * h + 2 * h**3 / (3 * (1 - h * h))
    return Fraction(math.ceil(found * 2**200), 2**200)


@lru_cache(maxsize=1024)
def skellam_orders(variance: Fraction, l2_squared: int, rate: float) -> dict[float, float]:
    """Rényi divergences of a vector with Skellam noise, at whole orders; of a sample's mixture."""
    if variance < _LEAST_VARIANCE:
        raise ArgumentError("Skellam noise must have a variance of at least 1 in all")
    largest = math.isqrt(l2_squared)
    asked = _ORDERS if rate == 1 else range(2, _ORDERS[-1] + 1)
    every = {a: skellam_divergence(a, variance, l2_squared, largest) for a in asked}
    # They rise, and beyond doubles nothing is said.
    every = {float(a): value for a, value in every.items() if math.isfinite(value)}
    if not every:
        raise ArgumentError(
            "noise_multiplier must be larger: of so little Skellam noise no bound is finite"
        )
    if rate == 1:
        return every
    with precision(_BITS) as flint:
        q = flint.arb(Fraction(repr(rate)).numerator) / Fraction(repr(rate)).denominator
        found = {}
        for a in (order for order in _ORDERS if order in every):
            # E of (1 - q + q·P/Q)^a under Q.
            # The powers 0 and 1 of P/Q have the mean 1.
            total = (1 - q) ** a + a * q * (1 - q) ** (a - 1)
            for j in range(2, a + 1):
                moment = ((j - 1) * flint.arb(every[j])).exp()
                total += math.comb(a, j) * (1 - q) ** (a - j) * q**j * moment
            found[float(a)] = up(total.log() / (a - 1))
    return found


def skellam_divergence(order: Number, variance: Number, l2_squared: int, largest: int) -> float:
    """An upper bound of the Rényi divergence of a shifted Skellam vector, as the module proves.

    Parameters
    ----------
    order : number
        Above 1.
    variance : number
        Of each coordinate, at least 1.
    l2_squared, largest : int
        Of the shift: Σk_i², and the most that any |k_i| is.
    """
    a, mu = check.exact("order", order, above=1), check.exact("variance", variance, least=1)
    if l2_squared == 0:
        return 0.0
    with precision(_BITS) as flint:

        def ball(x: Fraction | int) -> Any:
            return flint.arb(Fraction(x).numerator) / Fraction(x).denominator

        m, s = ball(mu), ball(a - 1)
        steep = 1 - ball(Fraction(108_867, 100_000)) / (m * (1 - 1 / (2 * m)) ** 2)
        if not steep > 0:
            return math.inf
        kappa = -steep.log()
        grown = (kappa / 2).exp()
        h = (grown / m).asinh()
        moved = grown * ((s * largest * h).cosh() - 1) / (s * h)
        value: float = up(kappa * l2_squared / 2 + moved * l2_squared / largest**2)
    return value


def fewest_bits(
    share: NoiseShare,
    shares: int,
    *,
    vectors: int,
    units: int,
    width: int,
    weight: int,
    wrap: float,
) -> int:
    """Bits of a modulus that a round's sum hardly ever leaves.

    A rotated vector's coordinate is a sum of ``width`` numbers of random sign, sub-Gaussian of
    variance units²/width (Hoeffding), and so is one of the sum of ``vectors`` of them, of vectors²
    times that; rounding adds at most 1 a vector. This decides on accuracy alone.
    """
    unlikely = math.log(4 * (width + 1) / wrap)
    signal = min(units, units * math.sqrt(2 * unlikely / width)) + 1
    largest = vectors * max(signal, weight) + share.reach(shares, unlikely)
    return math.ceil(math.log2(2 * largest + 2))
