"""Finite loss laws: any two probability mass functions on a common support."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from dither.errors import ArgumentError
from dither.privacy.laws.part import Part
from dither.privacy.laws.term import EPS, SHORT, Array, Complex, LawCells, Term, transform

__all__ = ["AtomTerm", "ListedLaw", "shifted_noise"]


class AtomTerm(Term):
    """Atoms of the loss with their probabilities under P.

    Parameters
    ----------
    losses, probabilities : array, shape (n,)
        Finite losses, increasing, and their masses under P (which sum to 1 - infinite).
    count : int
        Repetitions.
    infinite : float
        P's mass where Q has none.
    lattice : tuple (offset, spacing) or None
        Where the losses are offset + spacing·integer exactly, by construction.
    relative : float
        Bound of each mass's relative error.
    position : float or None
        Bound of each loss's absolute error; four roundings of the largest by default.
    lost : float
        A bound of the mass at finite losses that is left out, under P and under Q each. Upper ends
        count it as infinite loss, lower ends do without.
    others : array, shape (n,), or None
        Masses under Q, where p·e^{-L} would lose them to underflow.
    moment : callable or None
        c -> ends of log E[e^{cL}; L < infinity] of one repetition of the whole law; needed where
        mass is left out, since what is rare decides a moment of high order.
    unbounded : bool
        Whether losses beyond the last atom are left out.
    """

    def __init__(
        self,
        losses: Array,
        probabilities: Array,
        count: int,
        infinite: float = 0.0,
        lattice: tuple[float, float] | None = None,
        *,
        relative: float = 16 * EPS,
        position: float | None = None,
        lost: float = 0.0,
        others: Array | None = None,
        moment: Callable[[float], tuple[float, float]] | None = None,
        unbounded: bool = False,
    ) -> None:
        self.relative = relative
        # A quotient, a product and a sum or two make a loss, as a rule.
        self.position = 4 * EPS * float(np.abs(losses).max()) if position is None else position
        self.losses, self.probabilities = losses, probabilities
        self.count, self.infinite, self.lattice = count, infinite, lattice
        self.lost, self.others, self.moment, self.unbounded = lost, others, moment, unbounded
        self.mixture: tuple[float, float, bool] | None = None
        """Where it is a randomised response of two answers on a Poisson sample: its epsilon, the
        rate, and whether a unit is removed."""
        # One loss, or two, always lie on a lattice.
        if lattice is None and len(losses) == 1:
            self.lattice = (float(losses[0]), 0.0)
        elif lattice is None and len(losses) == 2:
            self.lattice = (float(losses[0]), float(losses[1] - losses[0]))

    def log_moment(self, c: Array) -> Array:
        """log Σ p·e^{cL}, shifted by its largest exponent."""
        with np.errstate(divide="ignore"):
            z = np.log(self.probabilities)[None, :] + c[:, None] * self.losses[None, :]
        top = z.max(axis=1)
        result: Array = self.count * (top + np.log(np.exp(z - top[:, None]).sum(axis=1)))
        return result

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """The sum at c + iu over the sum at c."""
        with np.errstate(divide="ignore"):
            z = np.log(self.probabilities) + c * self.losses
        weight = np.exp(z - z.max())
        whole = float(weight.sum())
        weight /= whole
        base = self.count * (float(z.max()) + math.log(whole))
        ratio = transform(self.losses, weight, u)
        kept = weight > 0
        # Under the tilted masses: what errs much has little weight.
        size = float((weight * np.where(kept, np.abs(np.where(kept, z, 0)) + 8, 0)).sum())
        slope = float((weight * np.abs(self.losses)).sum())
        short = min(len(weight), SHORT) + len(weight) // SHORT
        # Two factors a phase, each off by its angle's rounding.
        error = EPS * (16 + 2 * short + 4 * size + 6 * slope * u + 2 * abs(float(z.max())))
        error = error + 2 * self.relative + 2 * self.position * (c + u)
        # Where the sum cancels to nothing its error is all there is: the slack is the larger.
        modulus = np.maximum(np.abs(ratio), 1e-300)
        value = self.count * np.log(np.where(ratio == 0, 1e-300, ratio))
        return base, value, self.count * np.log1p(error / modulus)

    def cost(self, c: float, u: float) -> float:
        """Most of the work is one matrix product."""
        return 1.0 + len(self.losses) / 25

    def singles(self) -> list[tuple[Term, int]]:
        """Itself."""
        return [(self, self.count)]

    def ends(self, tail: float) -> tuple[float, float]:
        """The outermost atoms."""
        return float(self.losses[0]), float(self.losses[-1])

    def under_q(self) -> Array:
        """Q's masses at the atoms."""
        if self.others is not None:
            return self.others
        with np.errstate(divide="ignore"):
            # q = p·e^-L, in logarithms as e^-L may overflow; and no mass is above 1.
            result: Array = np.exp(np.minimum(np.log(self.probabilities) - self.losses, 0.0))
        return result

    def moment_ends(self, c: float) -> tuple[float, float]:
        """Ends of log E[e^{cL}; L < infinity] of all repetitions, what is left out included."""
        if self.moment is not None:
            low, high = self.moment(c)
            return self.count * low, self.count * high
        at = np.array([c])
        value = self.log_moment(at)
        slack = float(self.moment_error(at, value)[0])
        found = float(value[0])
        return found - slack, math.inf if self.lost > 0 else found + slack

    def moment_error(self, c: Array, value: Array) -> Array:
        """How far `log_moment` may be off at each c, where it is ``value``.

        With w the tilted masses and u = EPS/2, the exponent log p + cL errs by 2u·|log p| +
        u·|cL| + u·|log p + cL|, and the logarithm of their sum by the mean of that under w. As
        log p + cL = log w + value/count and Σ w·|log w| <= log n, it is at most
        (3·|value|/count + 3·log n + 3·c·max|L|)·u. Taking the largest exponent away adds
        log n·u, exponentials and the logarithm 4u and log n·u, the sum of n numbers, which numpy
        adds in pairs of blocks of 128, (19 + 1.5·log n)·u, and the last sum and product
        2·|value|·u. What is charged is more than these together.
        """
        n, largest = len(self.losses), float(np.abs(self.losses).max())
        each = 24 + 4 * math.log(n) + 4 * c * largest
        slack = EPS * (4 * np.abs(value) + self.count * each)
        result: Array = slack + self.count * (self.relative + c * self.position)
        return result

    def top(self) -> float:
        """The last atom, each time; where ``unbounded``, of what is not left out."""
        return self.count * float(self.losses[-1])

    def least(self) -> float:
        """The first atom."""
        return float(self.losses[0]) - self.position

    def anchors(self) -> tuple[float, float]:
        """The two likeliest atoms."""
        if len(self.losses) < 2:
            return float(self.losses[0]), 0.0
        a, b = sorted(np.argpartition(self.probabilities, -2)[-2:].tolist())
        return float(self.losses[a]), float(self.losses[b] - self.losses[a])

    def cells(self, edges: Array) -> LawCells:
        """Sums of atoms."""
        n = len(edges) - 1
        # Cells hold their upper edge and not their lower one.
        place = np.searchsorted(edges, self.losses, side="left") - 1
        inside = (place >= 0) & (place < n)
        p = np.bincount(place[inside], self.probabilities[inside], n)
        q = np.bincount(place[inside], self.under_q()[inside], n)
        largest = float(np.abs(self.losses).max())
        rounding = self.relative + EPS * (8 + 3 * largest + len(self.losses))
        below = float(self.probabilities[place < 0].sum())
        above = float(self.probabilities[place >= n].sum())
        return LawCells(p, q, p * rounding, q * rounding, below, above)

    def mean(self) -> float:
        """Σ p·L; infinite where Q misses a point of P."""
        if self.infinite > 0:
            return math.inf
        return self.count * float((self.probabilities * self.losses).sum())


@dataclass(frozen=True, slots=True)
class ListedLaw(Part):
    """Masses under P at first + spacing·k, and the rest of P's mass at infinity.

    The swapped pair has the same law. ``relative`` bounds each mass's relative error.
    """

    words: str
    first: float
    spacing: float
    masses: tuple[float, ...] = field(repr=False)
    infinite: float
    relative: float = 16 * EPS

    def term(self, removal: bool, count: int) -> Term:
        """The law, in either direction."""
        masses = np.array(self.masses)
        losses = self.first + self.spacing * np.arange(len(masses))
        kept = masses > 0
        losses, masses = losses[kept], masses[kept]
        lattice = (float(losses[0]), self.spacing)
        return AtomTerm(losses, masses, count, self.infinite, lattice, relative=self.relative)

    def grouped(self, size: int) -> Part:
        """Not offered."""
        raise ArgumentError(f"no group bound of {self.words} is known")

    def describe(self) -> str:
        """As it was made."""
        return self.words


def shifted_noise(scale: float, shift: int, count: int) -> AtomTerm:
    """Discrete Laplace noise against itself moved by d: L = (|x - d| - |x|)/s.

    The loss is ±d/s at the outside, in steps of 2/s between.
    """
    s, d = scale, shift
    r = math.exp(-1 / s)
    x = np.arange(d, -1, -1.0)
    whole = -math.expm1(-1 / s) / (1 + r)
    mass = whole * np.exp(-x / s)
    # All outcomes from d on have the least loss, all below 0 the largest: two geometric sums.
    mass[0] = math.exp(-d / s) / (1 + r)
    mass[-1] = 1 / (1 + r)
    rough = EPS * (16 + 4 * d / s + 4 * s)
    losses, lattice = (d - 2 * x) / s, (-d / s, 2 / s)
    # Moved noise has the same masses in the opposite order.
    other = mass[::-1].copy()
    return AtomTerm(losses, mass, count, 0.0, lattice, relative=rough, others=other)
