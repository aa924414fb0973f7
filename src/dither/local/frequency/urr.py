"""URR: utility-optimised randomised response, which protects sensitive values only.

Law, for s sensitive values of k, e = e^epsilon::

    sensitive x:  x with e/(s + e - 1),  each other sensitive value with c2 = 1/(s + e - 1)
    other x:      each sensitive value with c2, else x itself with c3 = (e - 1)/(s + e - 1)

Guarantee (utility-optimised local DP). Two sensitive values are (epsilon, 0). A value that is not
sensitive may be reported outright, and then everyone knows it, and knows that it is not sensitive.

Error. Sensitive: (share - c2)/(c1 - c2). Other: share/c3, as nobody else reports it. In the
rationals drawn, c2 of a sensitive value and c2' of another differ by rounding, and wholly where
there is one sensitive value; with b = (c2 - c2')/c3 a sensitive value's estimate adds b for each
low report. Given the users' values, with F their total share of low values and g = c1 - c2::

    n·Var f̂_i = [f_i·c1(1-c1) + (1 - F - f_i)·c2(1-c2) + F·(c2' + b²c3 - (c2' + b·c3)²)]/g²
    n·Var f̂_j = f_j·(1 - c3)/c3                                          (j low)

Source. Murakami and Kawamoto, USENIX Security 2019, definition 3 and section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from dither.local.chances import pick
from dither.local.channel import Codes, Counts, Shares, checked_pairs
from dither.local.frequency.graded import GradedResponse
from dither.numeric import Words

__all__ = ["URR"]


@dataclass(frozen=True, slots=True, init=False)
class URR(GradedResponse):
    """Utility-optimised randomised response.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    high : collection of values
        The sensitive ones: at least one, and not all.
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range; or
        `high` is empty, all of the domain, or holds other values.

    Notes
    -----
    Guarantee (utility-optimised local DP), between two values of one person: (epsilon, 0) for
    two high ones. A low value may be reported as it is, and then it is known to everyone: no
    single epsilon is true of this channel.

    References
    ----------
    Murakami and Kawamoto, USENIX Security 2019.

    Examples
    --------
    >>> URR(["flu", "cold", "HIV"], high={"HIV"}, epsilon=1).matrix.round(3)
    array([[0.632, 0.   , 0.368],
           [0.   , 0.632, 0.368],
           [0.   , 0.   , 1.   ]])
    """

    kind: ClassVar[str] = "urr"

    @staticmethod
    def _truths(e: Fraction, k: int, h: int) -> tuple[Fraction, Fraction]:
        return e / (h + e - 1), (e - 1) / (h + e - 1)

    @property
    def _chances(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        s, (c1, c3) = sum(self.high), self._truth
        return c1, (1 - c1) / (s - 1) if s > 1 else Fraction(0), (1 - c3) / s, c3

    def exact(self, x: int, y: int) -> Fraction:
        """The law above, with the sampler's own rational chances."""
        c1, c2, c2_low, c3 = self._chances
        if self.high[x]:
            return c1 if x == y else c2 if self.high[y] else Fraction(0)
        return c3 if x == y else c2_low if self.high[y] else Fraction(0)

    @property
    def _onto_low(self) -> Fraction:
        return Fraction(0)

    @property
    def blanket(self) -> tuple[int, int]:
        """The high answers alone are noisy, and everybody gives them."""
        return sum(self.high), sum(self.high)

    def _elsewhere(self, codes: Codes, words: Words) -> Codes:
        mask = np.array(self.high)
        highs, place = np.flatnonzero(mask), np.cumsum(mask) - 1
        step = 1 + pick(max(1, highs.size - 1), codes.size, words)
        return np.asarray(highs[(place[codes] + step) % highs.size])

    @property
    def largest_step(self) -> Shares:
        """1/(c1 - c2) of high values, 1/c3 of low ones: by a report of the value itself."""
        c1, c2, _, c3 = (float(c) for c in self._chances)
        return np.where(self.high, 1 / (c1 - c2), 1 / c3)

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
        """The closed forms of the module's docstring, for one report."""
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, f, b = np.array(self.high), frequencies, (c2 - c2_low) / c3
        low = float(f[~mask].sum())
        high = f * c1 * (1 - c1) + (f[mask].sum() - f) * c2 * (1 - c2)
        high += low * (c2_low + b**2 * c3 - (c2_low + b * c3) ** 2)
        return np.where(mask, high / (c1 - c2) ** 2, f * (1 - c3) / c3)

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Two low values have none; the others by who sends which pair of reports."""
        checked_pairs(frequencies.size)
        c1, c2, c2_low, c3 = (float(c) for c in self._chances)
        mask, f, b = np.array(self.high), frequencies, (c2 - c2_low) / c3
        total, low = float(f[mask].sum()), float(f[~mask].sum())
        pairs = f[:, None] + f[None, :]
        both = -pairs * c1 * c2 - (total - pairs) * c2**2
        both += low * (b**2 * c3 - (c2_low + b * c3) ** 2)
        one = np.where(mask, 0.0, f) * (b - c2_low - b * c3) / (c1 - c2)
        found = np.where(
            mask[:, None] & mask[None, :],
            both / (c1 - c2) ** 2,
            np.where(mask[:, None], one[None, :], np.where(mask[None, :], one[:, None], 0.0)),
        )
        np.fill_diagonal(found, self.noise_variance(f))
        return found
