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

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local.chances import ONE, coins, exp_bounds, pick, threshold
from dither.local.channel import Channel, Codes, Counts, DomainLike, Shares, checked_epsilon
from dither.local.domain import Domain, Value
from dither.local.finite import FiniteChannel, worst_pair
from dither.local.guarantee import Guarantee
from dither.numeric import Words

__all__ = ["SDGRR", "graded_guarantee", "high_mask"]


@dataclass(frozen=True, slots=True, init=False)
class SDGRR(FiniteChannel):
    """Sensitivity-graded randomised response.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    high : collection of values
        The highly sensitive ones: at least one, and not all.
    epsilon : number
        Above 0, at most 40; read exactly.

    Examples
    --------
    >>> channel = SDGRR(["flu", "cold", "asthma", "HIV"], high={"HIV"}, epsilon=0.5)
    >>> print(channel.guarantee)
    delta at epsilon = 0.5, of a value of the row against one of the column
                         high                low
    high                    0     0.43 (pure: ∞)
    low     0.43 (pure: 1.29)    0.785 (pure: ∞)
    """

    kind: ClassVar[str] = "sdgrr"

    domain: Domain
    epsilon: Fraction
    high: tuple[bool, ...]
    truth_high: int
    """Out of 2**64: how often a high value reports itself."""
    truth_low: int
    """Out of 2**64: how often a low value reports itself."""

    def __init__(self, domain: DomainLike, high: Iterable[Value], epsilon: Any) -> None:
        object.__setattr__(self, "domain", Domain(domain))
        object.__setattr__(self, "epsilon", checked_epsilon(epsilon))
        mask = high_mask(self.domain, high)
        object.__setattr__(self, "high", tuple(mask.tolist()))
        k, m = len(self.domain), int((~mask).sum())
        e, _ = exp_bounds(self.epsilon)
        # Both rounded down: then no high value is likelier than e times any other's chance of it.
        object.__setattr__(self, "truth_high", threshold(e / (k + e - 1)))
        object.__setattr__(self, "truth_low", threshold((m + e - 1) / (k + e - 1)))

    def settings(self) -> dict[str, Any]:
        """Domain, epsilon, and the high values in the domain's order."""
        chosen = [v for v, h in zip(self.domain.values, self.high, strict=True) if h]
        return {**Channel.settings(self), "high": chosen}

    @property
    def outputs(self) -> int:
        """A report is the code of a value."""
        return len(self.domain)

    @property
    def _chances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """(c1, c2 of a high value, c2 of a low value, c3), exactly as drawn."""
        c1, c3 = Fraction(self.truth_high, ONE), Fraction(self.truth_low, ONE)
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
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, k)."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask = np.array(self.high)
        found = np.where(mask[:, None], c2, np.where(mask[None, :], c2_low, 0.0))
        np.fill_diagonal(found, np.where(mask, c1, c3))
        return found

    @property
    def guarantee(self) -> Guarantee:
        """The class matrix of high and low values."""
        return graded_guarantee(self, np.array(self.high))

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """The code itself, or another: any for a high value, a high one for a low value."""
        k, mask = len(self.domain), np.array(self.high)
        highs = np.flatnonzero(mask)
        # Every person draws both, so that the time taken says nothing of the value.
        others = codes + 1 + pick(k - 1, codes.size, words)
        others -= k * (others >= k)
        to_high = highs[pick(highs.size, codes.size, words)]
        kept_high = coins(self.truth_high, codes.size, words)
        kept_low = coins(self.truth_low, codes.size, words)
        is_high = mask[codes]
        moved = np.where(is_high, others, to_high)
        return np.where(np.where(is_high, kept_high, kept_low), codes, moved)

    def decode(self, counts: Counts, n: int) -> Shares:
        """High: (share - c2)/(c1 - c2); low: (share - c2·F̂)/c3, F̂ the sum over high values."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, h, shares = np.array(self.high), sum(self.high), counts / n
        total = (shares[mask].sum() - h * c2_low) / (c1 + (h - 1) * c2 - h * c2_low)
        found = np.empty(len(self.high))
        found[mask] = (shares[mask] - c2 * total - c2_low * (1 - total)) / (c1 - c2)
        found[~mask] = (shares[~mask] - c2 * total) / c3
        return found

    def noise_variance(self, frequencies: Shares) -> Shares:
        """The closed forms of the module's docstring, less f(1-f), for one report."""
        c1, c2, _, c3 = (float(c) for c in self._chances)
        mask, f = np.array(self.high), frequencies
        q = f @ self.matrix
        total = q[mask].sum()
        a = c2 / (c1 - c2)
        high = (f * c1 * (1 - c1) + (1 - f) * c2 * (1 - c2)) / (c1 - c2) ** 2
        low = (q * (1 - q) + a**2 * total * (1 - total) + 2 * a * q * total) / c3**2 - f * (1 - f)
        return np.where(mask, high, low)


def high_mask(domain: Domain, high: Iterable[Value]) -> npt.NDArray[np.bool_]:
    """Which codes are highly sensitive: at least one, and not all."""
    mask = domain.subset(high, "high")
    if not mask.any() or mask.all():
        raise ArgumentError(
            "high must hold at least one value of the domain and not all of them; "
            "where all are sensitive, use GRR"
        )
    return mask


def graded_guarantee(channel: FiniteChannel, mask: npt.NDArray[np.bool_]) -> Guarantee:
    """The class matrix of a channel that treats all high values alike, and all low ones.

    By that symmetry one pair of codes stands for each pair of classes.
    """
    codes = {"high": np.flatnonzero(mask)[:2], "low": np.flatnonzero(~mask)[:2]}
    pairs = {
        (a, b): worst_pair(channel, codes[a][:2], codes[b][:2], channel.epsilon)
        for a in codes
        for b in codes
    }
    return Guarantee(channel.epsilon, ("high", "low"), pairs)
