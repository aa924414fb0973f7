"""Generalised randomised response: the true value, or by chance any other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dither.local._channel import Codes, Shares
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._guessing import guessed_from
from dither.local._oracles import FiniteChannel, PureChannel
from dither.numeric import Words

_PART = 1 << 16
"""As many as stay in the cache."""


@dataclass(frozen=True, init=False)
class GRR(PureChannel, FiniteChannel):
    """Generalised (k-ary) randomised response.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range.

    Notes
    -----
    Law, for k values and e = e^epsilon::

        Pr[y | x] = p = e/(e + k - 1) if y = x,   q = 1/(e + k - 1) for each other y

    Guarantee. epsilon-local DP: neighbours are any two values of one person. The sampler's p is
    rounded down to a multiple of 2**-64, which raises q, so that p/q <= e.

    Error. f̂ = (share of reports - q)/(p - q) is unbiased; given the users' values its variance is
    (f·p(1-p) + (1-f)·q(1-q))/(n (p-q)²). It is the best of the classic channels where k < 3e + 2.

    References
    ----------
    Warner, JASA 1965; Kairouz, Bonawitz and Ramage, ICML 2016; Wang, Blocki, Li and Jha, USENIX
    Security 2017 (comparison).

    Examples
    --------
    >>> channel = GRR(["no", "yes"], epsilon=1)
    >>> print(channel.guarantee)
    epsilon = 1 between any two values
    >>> channel.matrix.round(3).tolist()
    [[0.731, 0.269], [0.269, 0.731]]
    """

    kind: ClassVar[str] = "grr"

    @cached_property
    def truth(self) -> int:
        """Out of 2**64: how often the report is the true value."""
        low, _ = exp_bounds(self.epsilon)
        # Of a lower bound of e^epsilon, and rounded down: p over q never exceeds e^epsilon.
        return threshold(low / (low + len(self.domain) - 1))

    @property
    def outputs(self) -> int:
        """A report is the code of a value."""
        return len(self.domain)

    def exact(self, x: int, y: int) -> Fraction:
        """p on the diagonal, q off it."""
        return self._p if x == y else self._q

    @property
    def matrix(self) -> Shares:
        """p on the diagonal, q off it, shape (k, k)."""
        k = len(self.domain)
        found = np.full((k, k), float(self._q))
        np.fill_diagonal(found, float(self._p))
        return found

    @property
    def blanket(self) -> tuple[int, int]:
        """Everybody gives every answer."""
        return len(self.domain), len(self.domain)

    @property
    def ties(self) -> tuple[float, float]:
        """A report supports one value only."""
        p, q = self.support
        return -p * q, -q * q

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """The code itself, or another at equal chances."""
        k = len(self.domain)
        out = np.empty(codes.size, dtype=np.int64)
        for start in range(0, codes.size, _PART):
            part = out[start : start + _PART]
            # Others are counted from the code on; where the coin is true the step is none.
            np.add(pick(k - 1, part.size, words), 1, out=part)
            part *= ~coins(self.truth, part.size, words)
            part += codes[start : start + _PART]
            part -= k * (part >= k)
        return out

    def forward(self, frequencies: Shares) -> Shares:
        """q of everybody, and p - q more of the holders."""
        p, q = self.support
        return np.asarray(q * frequencies.sum() + (p - q) * frequencies)

    def guessed(self, prior: Shares | None) -> Shares:
        """In closed form: the reported value, or the one that is likeliest whatever is reported."""
        p, q = self.support
        pi = np.ones(len(self.domain)) if prior is None else prior
        return guessed_from(np.ones(pi.size, dtype=np.bool_), p, np.full(pi.size, q), pi)

    @property
    def support(self) -> tuple[float, float]:
        """p and q."""
        return float(self._p), float(self._q)

    @property
    def _p(self) -> Fraction:
        return Fraction(self.truth, ONE)

    @property
    def _q(self) -> Fraction:
        return (1 - self._p) / (len(self.domain) - 1)
