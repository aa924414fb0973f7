"""SDGRR: randomised response graded by sensitivity, the discrete mechanism of SDLDP.

Law, for k values of which h are high and m = k - h low, e = e^epsilon, D = k + e - 1::

    high x:  x with c1 = e/D,            each other value with c2 = 1/D
    low x:   x with c3 = (m + e - 1)/D,  each high value with c2,  never another low value

Guarantee, by classes (hockey-stick delta at the same epsilon): two high values (epsilon, 0); a high
and a low value delta = (m-1)/D, and a low report excludes every other low value, so the pure ratio
from high to low is infinite where m > 1; two low values delta = (m + e - 1)/D: a low value that
reports itself shows itself. No single epsilon is true of this channel.

Error. With a = 1/(e-1), q_i = Pr[y = i], Q = Pr[y high]: a high value's estimate is that of GRR; a
low one's is f̂_i = (share_i - c2·F̂)/c3, where F̂ is the estimated total share of high values, and

    n·Var f̂_i = [q_i(1-q_i) + a²Q(1-Q) + 2a·q_i·Q]/c3²

over users and coins; given the users' values it is f_i(1-f_i) less.

Source. Chen, Ye, Zhang and Shu, "SDLDP", Journal of Cyber Security 2025, section 4.2. Put right
here: its definition 3 lacks Pr[F(x_H) = y] > 0 on low outputs, without which the non-private URR
satisfies it; its constants print "e" for e^epsilon; its theorem 2 takes the total F̂ as known, which
understates the variance more than a thousandfold at small epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dither.local.chances import pick
from dither.local.channel import Codes, Counts, Shares
from dither.local.frequency.graded import GradedResponse
from dither.numeric import Words

__all__ = ["SDGRR"]


@dataclass(frozen=True, slots=True, init=False)
class SDGRR(GradedResponse):
    """Sensitivity-graded randomised response.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    high : collection of values
        The highly sensitive ones: at least one, and not all.
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range; or
        `high` is empty, all of the domain, or holds other values.

    Notes
    -----
    Guarantee, between two values of one person: (epsilon, 0) for two high ones; for other pairs
    the deltas that `guarantee` tells, which are far from negligible. A low report excludes
    every other low value. No single epsilon is true of this channel.

    References
    ----------
    Chen, Ye, Zhang and Shu, "SDLDP", Journal of Cyber Security 2025, section 4.2; the module
    tells what is put right.

    Examples
    --------
    >>> channel = SDGRR(["flu", "cold", "asthma", "HIV"], high={"HIV"}, epsilon=0.5)
    >>> print(channel.guarantee)
    delta at epsilon = 0.5, of a value of the row against one of the column
                         high                low
    high                    0    0.431 (pure: ∞)
    low     0.431 (pure: 1.3)    0.785 (pure: ∞)
    """

    kind: ClassVar[str] = "sdgrr"

    @staticmethod
    def _truths(e: Fraction, k: int, h: int) -> tuple[Fraction, Fraction]:
        return e / (k + e - 1), (k - h + e - 1) / (k + e - 1)

    @property
    def _chances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        c1, c3 = self._truth
        return c1, (1 - c1) / (len(self.high) - 1), (1 - c3) / sum(self.high), c3

    def exact(self, x: int, y: int) -> Fraction:
        """The law above, with the sampler's own rational chances."""
        c1, c2, c2_low, c3 = self._chances
        if self.high[x]:
            return c1 if x == y else c2
        if x == y:
            return c3
        return c2_low if self.high[y] else Fraction(0)

    @property
    def _onto_low(self) -> Fraction:
        return self._chances[1]

    @property
    def blanket(self) -> tuple[int, int]:
        """Everybody gives the high answers."""
        return len(self.domain), sum(self.high)

    def _elsewhere(self, codes: Codes, words: Words) -> Codes:
        k = len(self.domain)
        others = codes + 1 + pick(k - 1, codes.size, words)
        return np.asarray(others - k * (others >= k))

    def decode(self, counts: Counts, n: int) -> Shares:
        """High: (share - c2)/(c1 - c2); low: (share - c2·F̂)/c3, F̂ the sum over high values."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, h, shares = np.array(self.high), sum(self.high), counts / n
        total = (shares[mask].sum() - h * c2_low) / (c1 + (h - 1) * c2 - h * c2_low)
        found = np.empty(len(self.high))
        found[mask] = (shares[mask] - c2 * total - c2_low * (1 - total)) / (c1 - c2)
        found[~mask] = (shares[~mask] - c2 * total) / c3
        return found

    @property
    def largest_step(self) -> Shares:
        """1/(c1 - c2) of high values; of low ones (1 + a)/c3, as a high report takes away a/c3."""
        c1, c2, _, c3 = (float(c) for c in self._chances)
        return np.where(self.high, 1 / (c1 - c2), (1 + c2 / (c1 - c2)) / c3)

    def noise_variance(self, frequencies: Shares) -> Shares:
        """The closed forms of the module's docstring, less f(1-f), for one report."""
        c1, c2, _, c3 = (float(c) for c in self._chances)
        mask, f = np.array(self.high), frequencies
        q = self.forward(f)
        total = q[mask].sum()
        a = c2 / (c1 - c2)
        high = (f * c1 * (1 - c1) + (1 - f) * c2 * (1 - c2)) / (c1 - c2) ** 2
        low = (q * (1 - q) + a**2 * total * (1 - total) + 2 * a * q * total) / c3**2 - f * (1 - f)
        return np.where(mask, high, low)
