"""The loss of discrete Gaussian noise on the integers: atoms, and moments of the whole law.

With v = sigma², noise x has mass e^{-x²/(2v)}/theta(0), theta(t) = Σ_x e^{-(x-t)²/(2v)}; a shift
by s gives the loss L(x) = (s² - 2·s·x)/(2v). Completing the square ::

    E[e^{cL}] = e^{c(c+1)s²/(2v)}·theta(cs)/theta(0)

which is the Gaussian's at integer c·s, and less elsewhere. Atoms of a mass below e^{-660} under
both laws are left out; they decide no delta that doubles can hold, but they do decide moments of
high order, and so those are summed around where they lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither.errors import ArgumentError
from dither.privacy._charge import Charge
from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.part import Part
from dither.privacy.laws.rationals import printed
from dither.privacy.laws.term import EPS, Array, Complex, Term

__all__ = ["FARTHEST", "DiscreteGaussianLaw", "DiscreteGaussianNoise", "LatticeGaussian"]


_EXPONENT = 660.0
"""Atoms lighter than its exponential are left out."""

_MOST = 1 << 22
"""Summands of one moment; beyond, the moment's closed bounds are given."""

FARTHEST = 10**18
"""The largest shift: beyond, arrays hold no such integers."""

_NEGLIGIBLE = 50.0
"""What is cut off a moment is e^{-50} of it."""


@dataclass(frozen=True, slots=True)
class DiscreteGaussianLaw:
    """Discrete Gaussian noise of parameter sigma against itself moved by ``shift``."""

    sigma: float
    shift: int

    @property
    def v(self) -> float:
        """sigma²."""
        return self.sigma**2

    def places(self) -> tuple[Array, Array]:
        """Integers whose mass under P or Q is kept, in order of growing loss, and their losses."""
        half, s = math.floor(math.sqrt(2 * self.v * _EXPONENT)), self.shift
        # Two laws that meet have one run of integers; else only those around each centre have any
        # mass.
        if s <= 2 * half:
            x = np.arange(s + half, -half - 1, -1.0)
        else:
            x = np.concatenate(
                [np.arange(s + half, s - half - 1, -1.0), np.arange(half, -half - 1, -1.0)]
            )
        return x, (s * s - 2 * s * x) / (2 * self.v)

    def masses(self, x: Array) -> tuple[Array, Array]:
        """P's and Q's masses, and their sum over all integers is 1."""
        whole = self.theta(0.0)
        p = np.exp(-x * x / (2 * self.v)) / whole
        # Q by itself, as p·e^-L would lose it to underflow.
        q = np.exp(-((x - self.shift) ** 2) / (2 * self.v)) / whole
        # Doubles below this carry no relative precision; they are charged as lost.
        tiny = math.exp(-_EXPONENT - 20)
        return np.where(p > tiny, p, 0.0), np.where(q > tiny, q, 0.0)

    def lost(self) -> float:
        """At least the mass that `places` and `masses` leave out, under either law."""
        first = math.floor(math.sqrt(2 * self.v * _EXPONENT)) + 1
        # Beyond, each mass is at most e^{-first/v} of the one before.
        tail = math.exp(-first * first / (2 * self.v)) / -math.expm1(-first / self.v)
        kept = 2 * first * math.exp(-_EXPONENT - 20)
        return 2.01 * tail + kept + 1e-300

    def theta(self, t: float) -> float:
        """Σ over the integers x of e^{-(x-t)²/(2v)}."""
        if self.v > 4:
            # Poisson summation: the next summand is below 1e-130.
            wave = math.exp(-2 * math.pi**2 * self.v) * math.cos(2 * math.pi * t)
            return math.sqrt(2 * math.pi * self.v) * (1 + 2 * wave)
        # theta has the period 1; for v <= 4 the summands beyond 120 are below e^-1700.
        x = np.arange(-120.0, 121.0) - (t - math.floor(t))
        return math.fsum(np.exp(-x * x / (2 * self.v)).tolist())

    def _log_ratio(self, t: float) -> tuple[float, float]:
        """log(theta(t)/theta(0)), at most 0, and a bound of its error."""
        v, part = self.v, t - math.floor(t)
        # theta is even and has the period 1.
        part = min(part, 1 - part)
        if v > 4:
            wave = 2 * math.exp(-2 * math.pi**2 * v)
            value = math.log1p(wave * (math.cos(2 * math.pi * part) - 1) / (1 + wave))
        else:
            x = np.arange(-120.0, 121.0)
            z = -(x * x - 2 * part * x) / (2 * v)
            top = float(z.max())
            total = math.fsum(np.exp(z - top).tolist())
            value = top + math.log(total) - math.log(self.theta(0.0)) - part * part / (2 * v)
        # t itself is a rounded product; its slope is at most one step over v.
        return min(value, 0.0), EPS * (64 + 2 * (abs(t) + 1) / v + 4 / v)

    def moment(self, c: float) -> tuple[float, float]:
        """Ends of log E[e^{cL}]."""
        main = c * (c + 1) * self.shift**2 / (2 * self.v)
        ratio, error = self._log_ratio(c * self.shift)
        slack = error + 8 * EPS * (main + 1)
        # theta(t) <= theta(0): the moment is at most the Gaussian's, whatever the ratio rounds to.
        return main + ratio - slack, min(main * (1 + 8 * EPS), main + ratio + slack)

    def sampled(self, c: float, rate: float, removal: bool) -> tuple[float, float]:
        """Ends of log E[e^{cL}] on a Poisson sample."""
        plain = self.moment(c)
        spare = (1 + c) * -math.log(rate) if removal else c * -math.log1p(-rate)
        # What a tail weighs at most, over the sum itself; of an addition it bounds the moment too.
        far = min(plain[1], spare)
        found = self._summed(c, rate, far, (1,) if removal else (-1,), 0.0)
        if found is not None:
            return found
        # A logarithm, which errs by EPS of itself, a sum and a product, and a difference.
        if removal:
            # w >= g·e^L, so that a removal's moment is at least g^{1+c} of the base's; none is
            # below 1.
            return max(0.0, (plain[0] - spare * (1 + 4 * EPS)) * (1 - EPS)), plain[1]
        return 0.0, far * (1 + 4 * EPS)

    def fixed(self, c: float, rate: float) -> tuple[float, float]:
        """Ends of log E[e^{cL}] on a sample of fixed size: see `laws.sampled`."""
        plain = self.moment(c)
        x, losses = self.places()
        p, q = self.masses(x)
        up = losses > 0
        still = (1 - rate) * math.fsum((p - q)[up].tolist()) + float(p[losses == 0].sum())
        far = min(plain[1], (1 + c) * -math.log(rate))
        found = self._summed(c, rate, far, (1, -1), max(still, 0.0))
        return found if found is not None else (0.0, plain[1])

    def _summed(
        self, c: float, rate: float, far: float, signs: tuple[int, ...], still: float
    ) -> tuple[float, float] | None:
        """log of Σ q·w^{1+c} over x (sign 1), Σ p·w^{-c} (sign -1), or their halves together.

        w = 1 - g + g·p/q, or with q/p. As w^{1+c} is at most 1 + (p/q)^{1+c} and w^{-c} at most
        (1 - g)^{-c}, what lies beyond the two centres by the half width is e^{-50} of the sum.
        """
        s, v = self.shift, self.v
        half = math.ceil(math.sqrt(2 * v * (_NEGLIGIBLE + far))) + 2
        if (1 + c) * s + 2 * half > _MOST:
            return None
        x = np.arange(s + half, -math.ceil(c * s) - half - 1, -1.0)
        loss = (s * s - 2 * s * x) / (2 * v)
        log_p = -x * x / (2 * v)
        log_q = -((x - s) ** 2) / (2 * v)
        each, sizes = [], []
        for sign in signs:
            w = np.logaddexp(math.log1p(-rate), math.log(rate) + sign * loss)
            # Near 0 log w keeps its digits by expm1 alone.
            near = np.abs(loss) < 1
            w[near] = np.log1p(rate * np.expm1(sign * loss[near]))
            value = log_q + (1 + c) * w if sign > 0 else log_p - c * w
            if len(signs) == 2:
                # On a sample of fixed size each form holds on its own side of 0.
                value = value[loss > 0] if sign > 0 else value[loss < 0]
            each.append(value)
            top = float(value.max())
            sizes.append(4 * abs(top) + (1 + c) * float(np.abs(w).max()) + far + _NEGLIGIBLE)
        value = np.concatenate(each)
        top = max(float(value.max()), 0.0)
        total = float(np.exp(value - top).sum()) / self.theta(0.0)
        total += still * math.exp(-top)
        found = top + math.log(total)
        # An exponent rounds by 4 halves of EPS of its parts, a sum of n numbers in pairs by less
        # than sqrt(n); 1e-14 is for the two logarithms and theta, 90 halves of EPS. Last, e^-50.
        slack = EPS * (64 + 4 * max(sizes) + math.sqrt(len(value))) + 1e-14
        return max(0.0, found - slack), found + slack + 1e-18

    def term(self, count: int) -> AtomTerm:
        """The pair as atoms on a lattice."""
        x, losses = self.places()
        p, q = self.masses(x)
        return LatticeGaussian(
            self,
            losses,
            p,
            count,
            lattice=(float(losses[p > 0][0]), self.shift / self.v),
            # An exponent of up to 20 more than that of the atoms kept rounds by a square and a
            # quotient, an exponential by 4 units in its last place, theta by 45.
            relative=EPS * (_EXPONENT + 80),
            lost=self.lost(),
            others=q,
            moment=self.moment,
            unbounded=True,
        )


class LatticeGaussian(AtomTerm):
    """The atoms, with the Gaussian's generating function where theta tells nothing.

    By Poisson summation theta(ts)/theta(0) is (1 + 2·Σ_k e^{-2·pi²·v·k²}·cos(2·pi·k·ts)) over its
    value at 0. For v > 4 and |Im t| <= pi·v/(2s) the sum is at most e^{-pi²·v} < 1e-17, and at
    real t it is at most e^{-2·pi²·v} < 1e-34, so that the quotient is 1 but for 1e-16.
    """

    def __init__(self, law: DiscreteGaussianLaw, *atoms: Any, **known: Any) -> None:
        super().__init__(*atoms, **known)
        self.law = law
        self._rate = law.shift**2 / (2 * law.v)
        self._plain = math.pi * law.v / (2 * law.shift) if law.v > 4 and law.shift > 0 else -1.0

    def log_moment(self, c: Array) -> Array:
        """c(c + 1)·s²/(2v) a repetition, where it is that."""
        if self._plain < 0:
            return super().log_moment(c)
        result: Array = self.count * self._rate * c * (c + 1)
        return result

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """The same at c + iu, off by some roundings of s²/(2v) and of each product."""
        if float(u.max()) > self._plain:
            return super().along(c, u)
        rate = self.count * self._rate
        value: Complex = rate * (1j * u * (2 * c + 1) - u * u)
        base = rate * c * (c + 1)
        return base, value, EPS * (8 * (base + np.abs(value)) + self.count)

    def cost(self, c: float, u: float) -> float:
        """Nothing but a product where it is the Gaussian's."""
        return 1.0 if u <= self._plain else super().cost(c, u)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise(Part):
    """Discrete Gaussian of parameter sigma on the integers, at an integer sensitivity."""

    sigma: float
    sensitivity: int

    def term(self, removal: bool, count: int) -> Term:
        """L = (s² - 2·s·x)/(2·sigma²) at noise x: a lattice of spacing s/sigma²."""
        return self.law().term(count)

    def law(self) -> DiscreteGaussianLaw:
        """The pair, with moments that no tail is cut from."""
        return DiscreteGaussianLaw(self.sigma, self.sensitivity)

    def grouped(self, size: int) -> Part:
        """The shift grows."""
        if self.sensitivity * size > FARTHEST:
            raise ArgumentError(
                f"size must be at most {FARTHEST // self.sensitivity:,}: no noise that doubles "
                "hold hides a larger group"
            )
        return replace(self, sensitivity=self.sensitivity * size)

    def rho(self) -> Fraction:
        """s²/(2·sigma²), by Canonne, Kamath and Steinke (2020), theorem 4."""
        return self.tail() / 2

    def charge(self) -> Charge:
        """rho."""
        return Charge.concentrated(self.rho())

    def tail(self) -> Fraction:
        """s²/sigma²: the losses are s·x/sigma², and x falls as exp(-x²/(2·sigma²))."""
        return self.sensitivity**2 / printed(self.sigma) ** 2

    def describe(self) -> str:
        """As written."""
        extra = f", sensitivity={self.sensitivity}" if self.sensitivity != 1 else ""
        return f"discrete_gaussian({self.sigma:g}{extra})"
