"""Unary encoding: one noisy bit for each value of the domain."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._channel import Codes, Counts, DomainLike, Shares, Tally
from dither.local._coins import ONE, coins, exp_bounds, threshold
from dither.local._guessing import bit_class_laws, bit_guesses
from dither.local._oracles import PureChannel
from dither.local._reports.bits import (
    count_columns,
    packed_coins,
    packed_rows,
    row_bytes,
    set_column,
)
from dither.numeric import Words


class UnaryChannel(PureChannel):
    """A channel of independent bits, one for each value.

    A subclass states `ones`, how often each bit is 1 for holders of its value and for others; or
    `law`, `chances` and `draw`, where it takes more than one coin per bit. A report is a row of
    packed bits; the counts are those of the ones in each column.

    The support of a value is its own bit (`PureChannel`). Two values of one person change the law
    of two bits only, and the largest ratio, of a report with the first bit 1 and the second 0, is
    p(1-q)/(q(1-p)).
    """

    @property
    def ones(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Out of 2**64, for each value: how often its bit is 1 if it is held, and if not."""
        raise NotImplementedError

    @property
    def law(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """p and q of each bit, exactly as drawn."""
        held, other = self.ones
        known = {t: Fraction(t, ONE) for t in {*held, *other}}
        return tuple(known[t] for t in held), tuple(known[t] for t in other)

    @property
    def chances(self) -> tuple[Shares, Shares]:
        """p and q of each bit in floating point, two arrays of shape (k,)."""
        held, other = self.ones
        return np.array(held, dtype=np.float64) / ONE, np.array(other, dtype=np.float64) / ONE

    @property
    def support(self) -> tuple[Shares, Shares]:
        """p and q of each bit."""
        return self.chances

    def exact(self, x: int, bits: tuple[int, ...]) -> Fraction:
        """Pr[report of these bits | code x], exactly as drawn."""
        held, other = self.law
        found = Fraction(1)
        for j, bit in enumerate(bits):
            p = held[j] if j == x else other[j]
            found *= p if bit else 1 - p
        return found

    def reports(self) -> Iterator[tuple[int, ...]]:
        """Every possible report, as a tuple of k bits; for small domains."""
        return itertools.product((0, 1), repeat=len(self.domain))

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.uint8]:
        """All bits as if nothing were held, then the holder's own bit afresh."""
        held, other = self.ones
        rows = packed_coins(other, codes.size, len(self.domain), words)
        on = np.zeros(codes.size, dtype=np.bool_)
        # Every person tosses every kind of own coin, so that the time says nothing of the value.
        kinds = sorted(set(held))
        for t in kinds:
            tossed = coins(t, codes.size, words)
            alike = len(kinds) == 1
            on |= tossed if alike else tossed & np.array([h == t for h in held])[codes]
        set_column(rows, codes, on)
        return rows

    @property
    def features(self) -> int:
        """How often each bit was 1."""
        return len(self.domain)

    def tally(self, reports: Any) -> Tally:
        """How often each bit was 1."""
        rows, bad = packed_rows(reports, len(self.domain))
        return count_columns(rows, len(self.domain)), rows.shape[0], bad

    def possible(self, counts: Counts, n: int) -> bool:
        """A bit is 1 in each report at most once."""
        return int(counts.max()) <= n

    def likelihoods(self, reports: npt.NDArray[np.uint8]) -> Shares:
        """p(1-q)/(q(1-p)) where the value's bit is 1, else 1; both times (1-p)/(1-q)."""
        p, q = self.chances
        bits = np.unpackbits(reports, axis=1)[:, : len(self.domain)]
        odds = np.divide(p, q, out=np.full(p.size, 1e300), where=q > 0)
        return np.where(bits, odds, (1 - p) / (1 - q))

    def guessed(self, prior: Shares | None) -> Shares:
        """In closed form, as bits are independent."""
        p, q = self.chances
        return bit_guesses(np.column_stack([1 - p, p]), q, prior)

    def class_laws(self, h: int) -> tuple[Shares, Shares] | None:
        """How many bits of each class are 1, where all bits are alike."""
        p, q = self.chances
        if np.ptp(p) > 0 or np.ptp(q) > 0:
            return None
        return bit_class_laws(np.array([1 - p[0], p[0]]), float(q[0]), h, p.size)

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """Two binomial draws for each value: the ones of its holders, and of the others."""
        (p, q), n = self.chances, int(histogram.sum())
        return np.asarray(rng.binomial(histogram, p) + rng.binomial(n - histogram, q))

    @property
    def report_bytes(self) -> int:
        """The size of one report."""
        return row_bytes(len(self.domain))


def check_telling(channel: UnaryChannel) -> None:
    """Refuse an epsilon so small that rounding to 2**-64 leaves no difference between p and q."""
    p, q = channel.chances
    if not np.all(p > q):
        raise ArgumentError(
            "epsilon must be larger: its coins cannot be distinguished from fair ones"
        )


@dataclass(frozen=True, init=False)
class SUE(UnaryChannel):
    """Symmetric unary encoding (one-time basic RAPPOR): each bit is flipped by one probability.

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
    Law. The bits are independent: that of the held value is 1 with probability p = s/(s + 1), s =
    e^(epsilon/2), every other with q = 1 - p.

    Guarantee. epsilon-local DP: neighbours are any two values of one person, which change the law
    of two bits only. p is rounded down to a multiple of 2**-64, so that p(1-q)/(q(1-p)) <=
    e^epsilon.

    Error. f̂ = (share of ones - q)/(p - q) is unbiased; given the users' values its variance is
    (f·p(1-p) + (1-f)·q(1-q))/(n (p-q)²), and two values' estimates are uncorrelated.

    References
    ----------
    Erlingsson, Pihur and Korolova, CCS 2014; Wang, Blocki, Li and Jha, USENIX Security 2017.

    Examples
    --------
    >>> channel = SUE(["no", "yes", "refused"], epsilon=2)
    >>> [round(float(p[0]), 3) for p in channel.chances]
    [0.731, 0.269]
    >>> channel.privatize(["yes", "no"]).shape
    (2, 1)
    """

    kind: ClassVar[str] = "sue"

    def __init__(self, domain: DomainLike, epsilon: Any) -> None:
        super().__init__(domain, epsilon)
        check_telling(self)

    @cached_property
    def truth(self) -> int:
        """Out of 2**64: how often a bit stays as it is."""
        s, _ = exp_bounds(self.epsilon / 2)
        # Two values differ in two bits, each of which has half of epsilon, rounded down.
        return threshold(s / (s + 1))

    @property
    def ones(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """p and 1 - p."""
        k = len(self.domain)
        return (self.truth,) * k, (ONE - self.truth,) * k


@dataclass(frozen=True, init=False)
class OUE(UnaryChannel):
    """Optimised unary encoding: a held bit is a fair coin, the others are rarely 1.

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
    Law. The bits are independent: that of the held value is a fair coin, every other is 1 with
    probability q = 1/(e^epsilon + 1).

    Guarantee. epsilon-local DP: neighbours are any two values of one person, which change the law
    of two bits only. q is rounded up to a multiple of 2**-64, so that (1-q)/q <= e^epsilon.

    Error. As for `SUE`, with p = 1/2. This q makes the variance of rare values least: 4e/(n
    (e-1)²), e = e^epsilon.

    References
    ----------
    Wang, Blocki, Li and Jha, USENIX Security 2017.

    Examples
    --------
    >>> channel = OUE(100, epsilon=1)
    >>> reports = channel.privatize([3] * 1000)
    >>> reports.shape, channel.aggregate(reports).n
    ((1000, 13), 1000)
    """

    kind: ClassVar[str] = "oue"

    def __init__(self, domain: DomainLike, epsilon: Any) -> None:
        super().__init__(domain, epsilon)
        check_telling(self)

    @cached_property
    def false(self) -> int:
        """Out of 2**64: how often the bit of a value that is not held is 1."""
        e, _ = exp_bounds(self.epsilon)
        # Rounded up, by rounding its complement down.
        return ONE - threshold(e / (e + 1))

    @property
    def ones(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A half and q."""
        k = len(self.domain)
        return (ONE // 2,) * k, (self.false,) * k
