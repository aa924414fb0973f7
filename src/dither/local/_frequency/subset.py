"""Subset selection: a report is a set of values, of fixed size, that favours the true one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._channel import Codes, Counts, DomainLike, Shares, Tally
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._domain import Domain, bind
from dither.local._guessing import subset_class_laws, subset_guesses
from dither.local._limits import checked_epsilon, sums_to
from dither.local._oracles import PureChannel
from dither.local._reports.bits import count_columns, packed_rows, row_bytes
from dither.numeric import Words

_CELLS = 1 << 24
_MAX_VALUES = 1 << 14


def best_size(k: int, epsilon: Fraction) -> int:
    """The set size with the least variance of a rare value: next to k/(e + 1)."""
    e = float(exp_bounds(epsilon)[0])
    near = {max(1, min(k - 1, int(k / (e + 1)) + step)) for step in (0, 1)}
    return min(sorted(near), key=lambda w: _rare(k, w, e))


def _rare(k: int, w: int, e: float) -> float:
    p = w * e / (w * e + k - w)
    q = (p * (w - 1) + (1 - p) * w) / (k - 1)
    return q * (1 - q) / (p - q) ** 2


@dataclass(frozen=True, init=False)
class SubsetSelection(PureChannel):
    """Subset selection; a report is a row of ceil(k/8) bytes, one bit per value (`numpy.packbits`).

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold, at most 16,384.
    epsilon : number
        From 2**-32 to 40; read exactly.
    size : int, optional
        How many values a report holds, from 1 to k - 1; by default the best number.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range, or
        `size` is.

    Notes
    -----
    Law, for k values, sets of w of them, and e = e^epsilon::

        Pr[Z | x] = p/C(k-1, w-1) if x in Z,  (1-p)/C(k-1, w) if not,   p = w·e/(w·e + k - w)

    Guarantee. epsilon-local DP: neighbours are any two values of one person. The ratio of the two
    chances is (p/(1-p))·(k-w)/w <= e, since the sampler's p is rounded down.

    Error. Another value is in Z with probability q = (p(w-1) + (1-p)w)/(k-1); f̂ = (share of the
    sets that hold it - q)/(p - q) is unbiased, with variance (f·p(1-p) + (1-f)·q(1-q))/(n (p-q)²)
    given the users' values. The best w is about k/(e+1). At the same epsilon no channel errs less,
    up to terms of lower order.

    References
    ----------
    Wang et al., "Mutual information optimally local private discrete distribution estimation",
    2016; Ye and Barg, IEEE Trans. Inf. Theory 2018.

    Examples
    --------
    >>> channel = SubsetSelection(100, epsilon=1)
    >>> channel.size, channel.privatize(17).shape
    (27, (13,))
    """

    kind: ClassVar[str] = "subset"

    size: int

    def __init__(self, domain: DomainLike, epsilon: Any, *, size: int | None = None) -> None:
        found, checked = Domain(domain), checked_epsilon(epsilon)
        k = len(found)
        if k > _MAX_VALUES:
            raise ArgumentError(
                f"domain must have at most {_MAX_VALUES:,} values for subset selection; "
                "use Hadamard or OLH for larger ones"
            )
        w = best_size(k, checked) if size is None else size
        w = _checks.whole("size", w, 1, k - 1, instead=", one below the domain's size")
        bind(self, domain=found, epsilon=checked, size=w)

    @cached_property
    def truth(self) -> int:
        """Out of 2**64: how often the set holds the true value."""
        (low, _), w = exp_bounds(self.epsilon), self.size
        # Of a lower bound of e^epsilon, and rounded down: no set is more than e^epsilon times as
        # likely.
        return threshold(w * low / (w * low + len(self.domain) - w))

    def exact(self, x: int, chosen: frozenset[int]) -> Fraction:
        """Pr[report the set of codes | code x], exactly as drawn."""
        k, p = len(self.domain), Fraction(self.truth, ONE)
        if len(chosen) != self.size:
            return Fraction(0)
        if x in chosen:
            return p / comb(k - 1, self.size - 1)
        return (1 - p) / comb(k - 1, self.size)

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.uint8]:
        """The sets as bits, shape (n, ceil(k/8)).

        The other members are w or w - 1 of the k - 1 other values, by Floyd's method: for j from
        the (k-w)-th on, take a uniform one of the first j, or the j-th itself if that is taken.
        """
        k, n = len(self.domain), codes.size
        out = np.empty((n, row_bytes(k)), dtype=np.uint8)
        step = max(1, _CELLS // k)
        for start in range(0, n, step):
            part = codes[start : start + step]
            rows = np.arange(part.size)
            held = coins(self.truth, part.size, words)
            bits = np.zeros((part.size, k), dtype=np.bool_)
            bits[rows, part] = held
            for last in range(k - 1 - self.size, k - 1):
                # Others are counted from the value on, which keeps them apart from it.
                taken = (part + 1 + pick(last + 1, part.size, words)) % k
                final = (part + 1 + last) % k
                chosen = np.where(bits[rows, taken], final, taken)
                # Who holds the value needs one member less, and so leaves out the first round.
                bits[rows, chosen] |= ~held if last == k - 1 - self.size else True
            out[start : start + step] = np.packbits(bits, axis=1)
        return out

    def likelihoods(self, reports: npt.NDArray[np.uint8]) -> Shares:
        """The ratio of the two chances of the law where the set holds the value, else 1."""
        k, w, p = len(self.domain), self.size, Fraction(self.truth, ONE)
        bits = np.unpackbits(reports, axis=1)[:, :k]
        return np.where(bits, float(p * (k - w) / ((1 - p) * w)), 1.0)

    @property
    def report_bytes(self) -> int:
        """One bit for each value."""
        return row_bytes(len(self.domain))

    @property
    def features(self) -> int:
        """How many sets hold each value."""
        return len(self.domain)

    def tally(self, reports: Any) -> Tally:
        """How many sets hold each value; a report with another number of bits set is dropped."""
        k = len(self.domain)
        rows, bad = packed_rows(reports, k)
        counts, good = np.zeros(k, dtype=np.int64), 0
        step = max(1, _CELLS // k)
        for start in range(0, rows.shape[0], step):
            part = rows[start : start + step]
            whole = np.bitwise_count(part).sum(axis=1, dtype=np.int64) == self.size
            counts += count_columns(part[whole], k)
            good += int(np.count_nonzero(whole))
        return counts, good, bad + rows.shape[0] - good

    def possible(self, counts: Counts, n: int) -> bool:
        """Every set holds `size` values, each at most once."""
        return int(counts.max()) <= n and sums_to(counts, n * self.size)

    @property
    def support(self) -> tuple[float, float]:
        """How likely a set holds its holder's value (p), and another value (q)."""
        k, w, p = len(self.domain), self.size, Fraction(self.truth, ONE)
        return float(p), float((p * (w - 1) + (1 - p) * w) / (k - 1))

    def guessed(self, prior: Shares | None) -> Shares:
        """In closed form, as the other members are drawn without replacement."""
        return subset_guesses(len(self.domain), self.size, self.support[0], prior)

    def class_laws(self, h: int) -> tuple[Shares, Shares] | None:
        """How many members of the set are of the first class."""
        return subset_class_laws(len(self.domain), self.size, self.support[0], h)

    @property
    def ties(self) -> tuple[float, float]:
        """From how often a set holds two values at once."""
        k, w, (p, q) = len(self.domain), self.size, self.support
        others = (p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)) / ((k - 1) * max(1, k - 2))
        return p * (w - 1) / (k - 1) - p * q, others - q * q
