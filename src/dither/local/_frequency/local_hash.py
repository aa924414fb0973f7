"""Local hashing: a random public hash shrinks the domain, randomised response hides the bucket."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from os import cpu_count
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.local._audited import AuditCase
from dither.local._channel import Codes, Counts, DomainLike, Shares, Tally
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._domain import Domain, bind
from dither.local._guessing import bit_class_laws, bit_guesses
from dither.local._limits import checked_cells, checked_epsilon, rows_within
from dither.local._oracles import FiniteChannel, PureChannel
from dither.local._reports.hashing import bucket, bucket_edges, cells, words_of
from dither.numeric import Words

_BITS = 16
_MAX_BUCKETS = 1 << 12
_SEEDS = 1 << 32
_USERS = 1 << 14
_TILE = 64
_TABLE = 1 << 22


def best_buckets(epsilon: Fraction) -> int:
    """The number of buckets, at most 4,096, with the least variance of a rare value.

    With equal buckets that variance is (e + g - 1)²/((g - 1)(e - 1)²), least at g = e + 1.
    """
    e = float(exp_bounds(epsilon)[0])
    near = {max(2, min(_MAX_BUCKETS, int(e) + step)) for step in (0, 1, 2)}
    return min(sorted(near), key=lambda g: (e + g - 1) ** 2 / (g - 1))


@dataclass(frozen=True, init=False)
class _Hashed(PureChannel):
    """What BLH, OLH and FLH share: the law of a bucket, and what a support is worth."""

    audit_view: ClassVar[str] = "odds"

    buckets: int

    def _settle(self, domain: DomainLike, epsilon: Any, buckets: int | None) -> None:
        checked = checked_epsilon(epsilon)
        g = best_buckets(checked) if buckets is None else buckets
        g = _checks.whole("buckets", g, 2, _MAX_BUCKETS)
        bind(self, domain=Domain(domain), epsilon=checked, buckets=g)

    @cached_property
    def truth(self) -> int:
        """Out of 2**64: how often the report is the bucket of the true value."""
        low, _ = exp_bounds(self.epsilon)
        # Of a lower bound of e^epsilon, and rounded down: p over q0 never exceeds e^epsilon.
        return threshold(low / (low + self.buckets - 1))

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        """p of the true bucket and q0 of each other, exactly as drawn."""
        p = Fraction(self.truth, ONE)
        return p, (1 - p) / (self.buckets - 1)

    @property
    def _sizes(self) -> Shares:
        """Shares of the hash's range that the buckets hold, shape (g,)."""
        return np.asarray(np.diff(bucket_edges(self.buckets, _BITS)) / (1 << _BITS))

    @property
    def support(self) -> tuple[float, float]:
        """How likely a report supports its holder's value (p), and another value (q)."""
        p, q0 = (float(c) for c in self._chances)
        return p, q0 + (p - q0) * float((self._sizes**2).sum())

    def _answers(self, right: Codes, words: Words) -> Codes:
        """Randomised response of buckets."""
        others = right + 1 + pick(self.buckets - 1, right.size, words)
        others -= self.buckets * (others >= self.buckets)
        return np.where(coins(self.truth, right.size, words), right, others)

    @property
    def ties(self) -> tuple[float, float]:
        """Supports of two values are all but uncorrelated: only unequal buckets tie them."""
        (p, q), w = self.support, self._sizes
        q0 = float(self._chances[1])
        return p * (float((w**2).sum()) - q), float(((q0 + (p - q0) * w) * w**2).sum()) - q**2


@dataclass(frozen=True, init=False)
class OLH(_Hashed):
    """Optimal local hashing; a report is a seed and a bucket.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilon : number
        From 2**-32 to 40; read exactly.
    buckets : int, optional
        From 2 to 4,096; by default the best number.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range, or
        `buckets` is.

    Notes
    -----
    Law, for g buckets and e = e^epsilon: a seed s, uniform over 2**32, and with b = h_s(x)::

        Pr[y | s, x] = p = e/(e + g - 1) if y = b,   (1 - p)/(g - 1) for each other bucket y

    Guarantee. epsilon-local DP: neighbours are any two values of one person, whatever the hash is.
    The seed says nothing of the value, and given the seed the report is generalised randomised
    response; the sampler's p is rounded down.

    Error. A report (s, y) supports every v with h_s(v) = y. With an ideal hash, of bucket sizes w_b
    (they sum to 1), a value is supported by p of its holders' reports and by q of the others', q =
    q0 + (p - q0)·sum of w_b², q0 = (1-p)/(g-1); so f̂ = (supports/n - q)/(p - q) is unbiased, with
    variance (f·p(1-p) + (1-f)·q(1-q))/(n (p-q)²) given the users' values. This rests on the hash;
    the privacy does not.

    References
    ----------
    Wang, Blocki, Li and Jha, USENIX Security 2017.

    Examples
    --------
    >>> channel = OLH(10_000, epsilon=1)
    >>> channel.buckets, channel.privatize(17).shape
    (4, (2,))
    >>> channel.aggregate([[7, 3], [7, 4]]).rejected
    1
    """

    kind: ClassVar[str] = "olh"

    def __init__(self, domain: DomainLike, epsilon: Any, *, buckets: int | None = None) -> None:
        self._settle(domain, epsilon, buckets)

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.uint32]:
        """A seed and the noisy bucket of the code under it, shape (n, 2)."""
        seeds = words.words(-(-codes.size // 2)).view(np.uint32)[: codes.size]
        right = bucket(words_of(seeds, codes), self.buckets)
        return np.stack([seeds, self._answers(right, words).astype(np.uint32)], axis=1)

    def exact(self, x: int, seed: int, y: int) -> Fraction:
        """Pr[report (seed, y) | code x], exactly as drawn."""
        right = int(bucket(words_of([seed], [x]), self.buckets)[0])
        p, q0 = self._chances
        return (p if y == right else q0) / _SEEDS

    def likelihoods(self, reports: npt.NDArray[Any]) -> Shares:
        """p where the report supports the value, q0 elsewhere."""
        k, g = len(self.domain), self.buckets
        right = bucket_table(reports[:, 0], k, g) == reports[:, 1][None, :]
        p, q0 = (float(c) for c in self._chances)
        return np.where(right.T, p, q0)

    @property
    def report_bytes(self) -> int:
        """4 bytes of seed, and one or two of bucket."""
        return 5 if self.buckets <= 256 else 6

    @property
    def features(self) -> int:
        """How many reports support each value."""
        return len(self.domain)

    def tally(self, reports: Any) -> Tally:
        """How many reports support each value."""
        rows, bad = rows_within(reports, (_SEEDS, self.buckets))
        return support_counts(rows, self.buckets, len(self.domain)), rows.shape[0], bad

    def possible(self, counts: Counts, n: int) -> bool:
        """A report supports a value at most once."""
        return int(counts.max()) <= n

    def guessed(self, prior: Shares | None) -> Shares:
        """Under an ideal hash."""
        p, q0 = (float(c) for c in self._chances)
        k, (sizes, many) = len(self.domain), np.unique(self._sizes, return_counts=True)
        found = np.zeros(k)
        for w, times in zip(sizes.tolist(), many.tolist(), strict=True):
            own = np.tile([(1 - w) * q0, w * p], (k, 1))
            found += times * bit_guesses(own, np.full(k, w), prior)
        return found

    def class_laws(self, h: int) -> tuple[Shares, Shares] | None:
        """Under an ideal hash: how many values of each class the report supports."""
        p, q0 = (float(c) for c in self._chances)
        sizes, many = np.unique(self._sizes, return_counts=True)
        parts = [
            bit_class_laws(np.array([(1 - w) * q0, w * p]) * times, w, h, len(self.domain))
            for w, times in zip(sizes.tolist(), many.tolist(), strict=True)
        ]
        high, low = zip(*parts, strict=True)
        return np.concatenate(high), np.concatenate(low)

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """Counts under an ideal hash: buckets of the reports first, then who else they support."""
        p, q0 = (float(c) for c in self._chances)
        w, g = self._sizes, self.buckets
        # A holder's report says y and supports the value, or says y and does not.
        law = np.concatenate([p * w, q0 * (1 - w)])
        supports = np.zeros(len(self.domain), dtype=np.int64)
        said = np.zeros(g, dtype=np.int64)
        step = max(1, (1 << 20) // g)
        parts = [slice(i, i + step) for i in range(0, supports.size, step)]
        own = []
        for part in parts:
            drawn = rng.multinomial(histogram[part], law / law.sum())
            supports[part] = drawn[:, :g].sum(axis=1)
            own.append(drawn[:, :g] + drawn[:, g:])
            said += own[-1].sum(axis=0)
        for part, drawn in zip(parts, own, strict=True):
            supports[part] += rng.binomial(said - drawn, w).sum(axis=1)
        return supports


@dataclass(frozen=True, init=False)
class BLH(OLH):
    """Binary local hashing: OLH with two buckets, so that a report is a seed and one bit.

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
    Guarantee. epsilon-local DP: neighbours are any two values of one person. Law and error are
    those of `OLH` with g = 2.

    References
    ----------
    Bassily and Smith, STOC 2015.

    Examples
    --------
    >>> BLH(10_000, epsilon=1).buckets
    2
    """

    kind: ClassVar[str] = "blh"

    def __init__(self, domain: DomainLike, epsilon: Any) -> None:
        self._settle(domain, epsilon, 2)


@dataclass(frozen=True, init=False)
class FLH(_Hashed, FiniteChannel):
    """Fast local hashing: the seeds are 0, ..., seeds - 1; a report is seed·g + bucket.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilon : number
        From 2**-32 to 40; read exactly.
    seeds : int
        How many hash functions the public list has, from 1 to 65,536. The server's work is
        seeds × k whatever the number of reports.
    buckets : int, optional
        From 2 to 4,096; by default the best number.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range, or
        `seeds` or `buckets` is.

    Notes
    -----
    The seed is drawn from a short public list, so that a report is one small number and the server
    hashes the list once. Law and error are otherwise those of `OLH`.

    Guarantee. epsilon-local DP: neighbours are any two values of one person, whatever the hash is.
    The estimate carries the collisions of the fixed list of hash functions (`collision_error`), so
    it has no valid intervals.

    References
    ----------
    Cormode, Maddock and Maple, VLDB 2021.

    Examples
    --------
    >>> channel = FLH(10_000, epsilon=1, seeds=1000)
    >>> channel.outputs
    4000
    >>> import numpy as np
    >>> bool(channel.collision_error(np.full(10_000, 1e-4)) < 2e-4)
    True
    """

    kind: ClassVar[str] = "flh"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 4, "epsilon": 1, "seeds": 16}),
    )
    unbiased: ClassVar[bool] = False

    seeds: int

    def __init__(
        self, domain: DomainLike, epsilon: Any, *, seeds: int = 1024, buckets: int | None = None
    ) -> None:
        bind(self, seeds=_checks.whole("seeds", seeds, 1, 1 << 16))
        self._settle(domain, epsilon, buckets)

    @property
    def outputs(self) -> int:
        """A report is seed·g + bucket."""
        return self.seeds * self.buckets

    def exact(self, x: int, y: int) -> Fraction:
        """Pr[report y | code x], exactly as drawn."""
        seed, found = divmod(y, self.buckets)
        right = int(bucket(words_of([seed], [x]), self.buckets)[0])
        p, q0 = self._chances
        return (p if found == right else q0) / self.seeds

    @property
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, seeds × g)."""
        k, g = len(self.domain), self.buckets
        checked_cells(k, self.outputs, "a smaller domain or fewer seeds")
        p, q0 = (float(c) / self.seeds for c in self._chances)
        right = bucket_table(np.arange(self.seeds), k, g)
        found = np.where(right[:, :, None] == np.arange(g), p, q0)
        return np.asarray(found.reshape(k, self.outputs))

    def likelihoods(self, reports: npt.NDArray[Any]) -> Shares:
        """p where the value's bucket is the reported one, q0 elsewhere."""
        p, q0 = (float(c) for c in self._chances)
        k, n = len(self.domain), reports.size
        seeds, said = np.divmod(reports, self.buckets)
        right = bucket(words_of(np.repeat(seeds, k), np.tile(np.arange(k), n)), self.buckets)
        return np.where(right.reshape(n, k) == said[:, None], p, q0)

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """A seed of the list and the noisy bucket of the code under it, as one number."""
        seeds = pick(self.seeds, codes.size, words)
        right = bucket(words_of(seeds, codes), self.buckets)
        return np.asarray(seeds * self.buckets + self._answers(right, words))

    def decode(self, counts: Counts, n: int) -> Shares:
        """(supports/n - q)/(p - q), from the table of counts per seed and bucket."""
        table = counts.reshape(self.seeds, self.buckets)
        supports = np.zeros(len(self.domain), dtype=np.int64)
        step = max(1, _TABLE // supports.size)
        for first in range(0, self.seeds, step):
            part = table[first : first + step]
            right = bucket_table(first + np.arange(part.shape[0]), supports.size, self.buckets)
            supports += np.take_along_axis(part, right.T, axis=1).sum(axis=0)
        return PureChannel.decode(self, supports, n)

    def collision_error(self, frequencies: Any) -> float:
        """The standard error that the fixed list of hash functions adds, whatever n is.

        Given the list, a value's estimate is off by other values' shares times how far their
        collisions with it are from 1/g; over lists this has mean 0 and the standard deviation
        given here.

        Parameters
        ----------
        frequencies : array of float, shape (k,)
            The shares.
        """
        f = np.asarray(frequencies, dtype=np.float64)
        return float(np.sqrt((f**2).sum() / ((self.buckets - 1) * self.seeds)))


def bucket_table(seeds: npt.NDArray[Any], k: int, g: int) -> npt.NDArray[np.int64]:
    """The bucket of every code under every seed, shape (k, seeds)."""
    codes = np.arange(k)
    low = cells(seeds, codes[:256])
    high = cells(seeds, 256 + np.arange(-(-k // 256)))
    return bucket(low[codes & 255] + high[codes >> 8], g)


def support_counts(rows: npt.NDArray[np.int64], g: int, k: int) -> Counts:
    """How many of the reports (seed, bucket) support each code: n·k hashes, by their tables.

    A code's hash is the sum of two cells of the seed's table, less the start of the bucket: it
    supports the code where this is below the bucket's size. So one addition, one comparison and
    one count are left for each user and code, over columns that stay in the cache.
    """
    edges = np.array(bucket_edges(g, _BITS))
    starts, sizes = edges[:-1].astype(np.uint16), (edges[1:] - edges[:-1]).astype(np.uint16)
    parts = [rows[i : i + _USERS] for i in range(0, rows.shape[0], _USERS)]

    def counted(part: npt.NDArray[np.int64]) -> Counts:
        found = np.zeros(k, dtype=np.int64)
        low = cells(part[:, 0], np.arange(min(256, k)))
        start, size = starts[part[:, 1]], sizes[part[:, 1]]
        word = np.empty(part.shape[0], dtype=np.uint16)
        hit = np.empty(part.shape[0], dtype=np.bool_)
        tops = -(-k // 256)
        for first in range(0, tops, _TILE):
            high = cells(part[:, 0], 256 + np.arange(first, min(first + _TILE, tops))) - start
            for i, row in enumerate(low):
                for j, top in enumerate(high, start=first):
                    code = 256 * j + i
                    if code < k:
                        np.add(row, top, out=word)
                        np.less(word, size, out=hit)
                        found[code] = np.count_nonzero(hit)
        return found

    with ThreadPoolExecutor(min(cpu_count() or 1, 4)) as pool:
        return np.asarray(sum(pool.map(counted, parts), np.zeros(k, dtype=np.int64)))
