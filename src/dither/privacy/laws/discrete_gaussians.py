"""Many discrete Gaussians at once, on a line Re t = c, each by a few waves.

Tilted by c, noise x of v = sigma² has masses in proportion to e^{-(x + a)²/(2v)}, a = cs for a
shift s, and the loss (s² - 2sx)/(2v). With theta = us/v, of which theta' in [-pi, pi] is what is
left of whole turns, Poisson summation gives ::

    M(c + iu)/M(c) = e^{i·theta·s/2 + i·theta'·a - v·theta'²/2}·S(theta')/S(0)
    S(x) = Σ_m e^{-2·pi·v·m·(x + pi·m) + 2·pi·i·m·a}

of whose summands those of |m| <= 3 are taken. All others together are below 2.1·e^{-24·pi²·v}. And
M(c) is the Gaussian's e^{c(c+1)s²/(2v)} times S(0) over what it is at a = 0.

Where v >= 1 the modulus is at most e^{-v·theta'²/4}·(1 + 10^-7): at v = 1 half of the exponent
outweighs the summands of m = 1 and m = -1 by themselves, and as v grows they fall and it grows. So
where a few kinds have faded nothing else is asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dither.privacy.laws.discrete_gaussian import DiscreteGaussianLaw
from dither.privacy.laws.term import EPS, FADED, UNKNOWN, Array, Complex, Term

__all__ = ["LEAST_V", "DiscreteGaussiansTerm"]


LEAST_V = 0.25
"""The least sigma² that so few waves are enough for."""

_WAVES = np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])

_SOME = 16
"""Kinds whose modulus is bounded at once: as a rule so many have faded together."""

_HELD = 1 << 16
"""Numbers that are held at once."""

_OFF = 2 * EPS
"""What sigma² is off by, of itself: twice a decimal's half unit, and a product."""


class DiscreteGaussiansTerm(Term):
    """Discrete Gaussians of many kinds.

    Parameters
    ----------
    laws : sequence of DiscreteGaussianLaw
        Of sigma² from `LEAST_V` on.
    counts : sequence of int
        Repetitions of each.
    """

    def __init__(self, laws: Sequence[DiscreteGaussianLaw], counts: Sequence[int]) -> None:
        # Those of most noise first: they have faded where others may have come round.
        order = np.argsort([-law.v for law in laws], kind="stable")
        self._v = np.array([law.v for law in laws])[order]
        self._s = np.array([float(law.shift) for law in laws])[order]
        self._counts = np.array([float(count) for count in counts])[order]
        self._rate = self._s**2 / (2 * self._v)
        self._cut = 2.1 * np.exp(-24 * math.pi**2 * self._v)

    def _whole(self, a: Array) -> tuple[Array, Array]:
        """S(0) and a bound of its error, for a of shape (..., kinds)."""
        total, off = np.ones_like(a), self._cut + np.zeros_like(a)
        for m in (1, 2, 3):
            size = 2 * np.exp(-2 * math.pi**2 * m * m * self._v)
            total += size * np.cos(2 * math.pi * m * a)
            off += size * EPS * (32 + 80 * m * m * self._v + 8 * m * (np.abs(a) + 2))
        return total, off + 4 * EPS

    def _moments(self, c: Array) -> tuple[Array, Array]:
        """log M(c) of each kind, once, and a bound of its error: of shape (len(c), kinds)."""
        main = (c * (c + 1))[:, None] * self._rate
        total, off = self._whole(c[:, None] * self._s)
        plain, error = self._whole(np.zeros_like(self._v))
        # S is above .98. A rate is off as sigma² is, and has a square and a quotient.
        wrong = (off + error) / 0.95 + (_OFF + 6 * EPS) * main + 8 * EPS
        return main + np.log(total / plain), wrong

    def log_moment(self, c: Array) -> Array:
        """The sum over kinds."""
        result: Array = (self._moments(c)[0] * self._counts).sum(axis=1)
        return result

    def blur(self, c: float) -> float:
        """What each kind errs by, and the sum, in pairs of blocks."""
        value, wrong = self._moments(np.array([c]))
        each = wrong + EPS * (40 + 4 * math.log2(len(self._v))) * np.abs(value)
        return float((each * self._counts).sum()) * (1 + 1e-9)

    def moment_ends(self, c: float) -> tuple[float, float]:
        """The sum, with its error on either side."""
        value, off = float(self.log_moment(np.array([c]))[0]), self.blur(c)
        return value - off, value + off

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """Kind by kind where a few have not faded; a bound of the modulus alone elsewhere."""
        base = float(self.log_moment(np.array([c]))[0])
        value, slack = np.zeros(len(u), dtype=complex), np.full(len(u), UNKNOWN)
        asked = np.arange(len(u))
        if self.blur(c) < 1e-3:
            value.real, asked = self._faded(u)
        rows = max(1, _HELD // len(self._v))
        for first in range(0, len(asked), rows):
            some = asked[first : first + rows]
            value[some], slack[some] = self._asked(c, u[some])
        return base, value, slack

    def _turned(self, u: Array, kinds: slice) -> tuple[Array, Array]:
        """theta and theta'. Both are off by at most 6·EPS·theta.

        With 2·EPS of sigma², and a product and a quotient; and whole turns, which round twice.
        """
        theta = u[:, None] * (self._s[kinds] / self._v[kinds])
        return theta, theta - 2 * math.pi * np.rint(theta / (2 * math.pi))

    def _faded(self, u: Array) -> tuple[Array, Array]:
        """A bound of the logarithm of the modulus of the first kinds, and where it is not tiny."""
        found, asked = np.zeros(len(u)), np.arange(len(u))
        for first in range(0, len(self._v), _SOME):
            kinds = slice(first, first + _SOME)
            # Each is below 1 + 10^-7, and is bounded by nothing else where sigma² is below 1.
            weight = np.where(self._v[kinds] >= 1, self._v[kinds] * self._counts[kinds], 0.0) / 4
            theta, rest = self._turned(u[asked], kinds)
            rest = np.maximum(np.abs(rest) - 8 * EPS * theta, 0.0)
            found[asked] += 1e-7 * float(self._counts[kinds].sum()) - rest**2 @ weight
            asked = asked[found[asked] > FADED]
            if not asked.size:
                break
        # A kind that was not asked is at most 1.
        return np.clip(found, -700.0, 0.0), asked

    def _asked(self, c: float, u: Array) -> tuple[Complex, Array]:
        v, s, a = self._v, self._s, c * self._s
        theta, rest = self._turned(u, slice(None))
        off, size = 6 * EPS * theta, np.abs(rest)
        total = np.ones(theta.shape, dtype=complex)
        wrong = self._cut + 4 * EPS + np.zeros(theta.shape)
        for m in _WAVES.tolist():
            power = 2 * math.pi * m * (rest + math.pi * m) * v
            # At a half turn, theta' rounds to either side of it.
            weight = np.exp(np.minimum(-power, 1.0))
            total += weight * np.exp(2j * math.pi * m * a)
            each = EPS * (10 * np.abs(power) + 8 * abs(m) * (np.abs(a) + 2) + 16)
            wrong += weight * np.expm1(np.minimum(each + 6.3 * abs(m) * v * off, 700.0))
        plain, error = self._whole(a)
        modulus = np.maximum(np.abs(total), 1e-300)
        logs = np.log(modulus) - rest * rest * v / 2 - np.log(plain)
        angle = theta * (s / 2) + rest * a + np.arctan2(total.imag, total.real)
        slack = wrong / modulus + error / 0.95 + v * size * (off + 6 * EPS * size)
        slack += (off + 4 * EPS * theta) * (s / 2) + (off + 4 * EPS * size) * np.abs(a)
        # Sums over kinds add roundings of what is added.
        slack += EPS * (40 + 4 * math.log2(len(v))) * (np.abs(logs) + np.abs(angle) + 1)
        result: Complex = logs @ self._counts + 1j * (angle @ self._counts)
        return result, (slack @ self._counts) * (1 + 1e-9)

    def cost(self, c: float, u: float) -> float:
        """A few kinds everywhere, and all of them where these have not faded."""
        few = self._counts[:_SOME] * self._v[:_SOME]
        # v·theta'²/4 is pi²·v/12 in the mean.
        share = 0.05 if float(few.sum()) * math.pi**2 / 12 > -2 * FADED else 1.0
        return 3 + share * 8 * len(self._v)

    @property
    def most_mean(self) -> float:
        """The Gaussian's mean loss."""
        return float((self._counts * self._rate).sum())
