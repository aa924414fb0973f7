"""URR: utility-optimised randomised response, which protects sensitive values only.

Law, for s sensitive values of k, e = e^epsilon::

    sensitive x:  x with e/(s + e - 1),  each other sensitive value with c2 = 1/(s + e - 1)
    other x:      each sensitive value with c2, else x itself with c3 = (e - 1)/(s + e - 1)

Guarantee (utility-optimised local DP). Two sensitive values are (epsilon, 0). A value that is not
sensitive may be reported outright, and then everyone knows it, and knows that it is not sensitive.

Error. Sensitive: (share - c2)/(c1 - c2). Other: share/c3, as nobody else reports it.

Source. Murakami and Kawamoto, USENIX Security 2019, definition 3 and section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither.local.chances import ONE, coins, exp_bounds, pick, threshold
from dither.local.channel import Channel, Codes, Counts, DomainLike, Shares, checked_epsilon
from dither.local.domain import Domain, Value
from dither.local.finite import FiniteChannel
from dither.local.frequency.sdgrr import graded_guarantee, high_mask
from dither.local.guarantee import Guarantee
from dither.numeric import Words

__all__ = ["URR"]


@dataclass(frozen=True, slots=True, init=False)
class URR(FiniteChannel):
    """Utility-optimised randomised response.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    high : collection of values
        The sensitive ones: at least one, and not all.
    epsilon : number
        Above 0, at most 40; read exactly.

    Examples
    --------
    >>> URR(["flu", "cold", "HIV"], high={"HIV"}, epsilon=1).matrix.round(3)
    array([[0.632, 0.   , 0.368],
           [0.   , 0.632, 0.368],
           [0.   , 0.   , 1.   ]])
    """

    kind: ClassVar[str] = "urr"

    domain: Domain
    epsilon: Fraction
    high: tuple[bool, ...]
    truth_high: int
    """Out of 2**64: how often a sensitive value reports itself."""
    truth_low: int
    """Out of 2**64: how often another value reports itself."""

    def __init__(self, domain: DomainLike, high: Iterable[Value], epsilon: Any) -> None:
        object.__setattr__(self, "domain", Domain(domain))
        object.__setattr__(self, "epsilon", checked_epsilon(epsilon))
        mask = high_mask(self.domain, high)
        object.__setattr__(self, "high", tuple(mask.tolist()))
        s = int(mask.sum())
        e, _ = exp_bounds(self.epsilon)
        # Both rounded down, which raises every chance of a report that is not one's own.
        object.__setattr__(self, "truth_high", threshold(e / (s + e - 1)))
        object.__setattr__(self, "truth_low", threshold((e - 1) / (s + e - 1)))

    def settings(self) -> dict[str, Any]:
        """Domain, epsilon, and the sensitive values in the domain's order."""
        chosen = [v for v, h in zip(self.domain.values, self.high, strict=True) if h]
        return {**Channel.settings(self), "high": chosen}

    @property
    def outputs(self) -> int:
        """A report is the code of a value."""
        return len(self.domain)

    @property
    def _chances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """(c1, c2 of a sensitive value, c2 of another, c3), exactly as drawn."""
        s, c1, c3 = sum(self.high), Fraction(self.truth_high, ONE), Fraction(self.truth_low, ONE)
        return c1, (1 - c1) / (s - 1) if s > 1 else Fraction(0), (1 - c3) / s, c3

    def exact(self, x: int, y: int) -> Fraction:
        """The law above, with the sampler's own rational chances."""
        c1, c2, c2_low, c3 = self._chances
        if self.high[x]:
            return c1 if x == y else c2 if self.high[y] else Fraction(0)
        return c3 if x == y else c2_low if self.high[y] else Fraction(0)

    @property
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, k)."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask = np.array(self.high)
        found = np.where(mask[None, :], np.where(mask[:, None], c2, c2_low), 0.0)
        np.fill_diagonal(found, np.where(mask, c1, c3))
        return found

    @property
    def guarantee(self) -> Guarantee:
        """The class matrix of sensitive ("high") and other ("low") values."""
        return graded_guarantee(self, np.array(self.high))

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """The code itself, or a sensitive one."""
        mask = np.array(self.high)
        highs = np.flatnonzero(mask)
        place = np.cumsum(mask) - 1
        is_high = mask[codes]
        # Every person draws both, so that the time taken says nothing of the value.
        step = 1 + pick(max(1, highs.size - 1), codes.size, words)
        others = highs[(place[codes] + step) % highs.size]
        to_high = highs[pick(highs.size, codes.size, words)]
        kept_high = coins(self.truth_high, codes.size, words)
        kept_low = coins(self.truth_low, codes.size, words)
        moved = np.where(is_high, others, to_high)
        return np.where(np.where(is_high, kept_high, kept_low), codes, moved)

    def decode(self, counts: Counts, n: int) -> Shares:
        """Sensitive: (share - c2)/(c1 - c2); other: share/c3."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, shares = np.array(self.high), counts / n
        found = np.empty(len(self.high))
        found[~mask] = shares[~mask] / c3
        rest = found[~mask].sum()
        found[mask] = (shares[mask] - c2 * (1 - rest) - c2_low * rest) / (c1 - c2)
        return found

    def noise_variance(self, frequencies: Shares) -> Shares:
        """From the matrix."""
        return np.diag(self.noise_covariance(frequencies)).copy()
