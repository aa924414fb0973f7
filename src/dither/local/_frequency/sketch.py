"""Sketches for domains that nobody lists: the count-mean sketch and its Hadamard form."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel, Codes, Counts, DomainLike, Shares, Tally
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._domain import bind, column
from dither.local._estimates.results import Result, checked_options, estimated, reported
from dither.local._frequency.hadamard import hadamard, parity
from dither.local._limits import checked_cells, checked_pairs, sums_to
from dither.local._oracles import FiniteChannel
from dither.local._reports.bits import packed_rows
from dither.local._reports.hashing import again, bucket, hash64, text_bytes
from dither.numeric import Words, secure_words

if TYPE_CHECKING:
    from dither.local._reports.aggregate import Aggregate


Digests = npt.NDArray[np.uint64]

_CELLS = 1 << 24


@dataclass(frozen=True, init=False)
class _Sketch(Channel):
    """What CMS and HCMS share: buckets of values, and estimates from readings of buckets.

    A report's debiased reading of bucket b has expectation 1 where the value's bucket is b and 0
    elsewhere; with S the sum of the readings at the buckets of v, f̂ = (S/n - 1/m)·m/(m-1).
    """

    unbiased: ClassVar[bool] = False

    hashes: int
    buckets: int

    spent: ClassVar[Fraction]
    """Of epsilon on each bit or sign: two values may differ in as many as use it up."""
    fewest: ClassVar[int]
    """The least number of buckets."""

    def __init__(
        self, domain: DomainLike, epsilon: Any, *, hashes: int = 1024, buckets: int = 1024
    ) -> None:
        _checks.whole("hashes", hashes, 1, 1 << 16)
        if _checks.whole("buckets", buckets, self.fewest, 1 << 16) & (buckets - 1):
            raise ArgumentError(f"buckets must be a power of two, at least {self.fewest}")
        if hashes * buckets > _CELLS:
            raise ArgumentError("hashes × buckets must be at most 2**24")
        super().__init__(domain, epsilon)
        bind(self, hashes=int(hashes), buckets=int(buckets))

    @cached_property
    def truth(self) -> int:
        """Out of 2**64: how often a bit or sign is kept."""
        low, _ = exp_bounds(self.epsilon * self.spent)
        # Of a lower bound of the exponential, and rounded down: the odds never exceed it.
        return threshold(low / (1 + low))

    def privatize(self, values: Any) -> Any:
        """Randomise any texts and integers, of the domain or not; see `Channel.privatize`.

        A domain that declares an `other` value maps unlisted values to it. Without one they are
        hashed as they are, and an estimate can ask for them as `candidates` later.
        """
        single = isinstance(values, str | int | np.generic)
        given = [values] if single else values
        if self.domain.other is None:
            reports = self._randomise(_digests(_texts(given)), secure_words())
        else:
            reports = self.draw(self.domain.encode(given), secure_words())
        if not single:
            return reports
        return reports[0].item() if reports.ndim == 1 else reports[0]

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[Any]:
        """Reports of the domain's values, by their codes."""
        distinct, inverse = np.unique(codes, return_inverse=True)
        known = _digests([text_bytes(self.domain.values[c]) for c in distinct.tolist()])
        return self._randomise(known[inverse], words)

    @abstractmethod
    def _randomise(self, digests: Digests, words: Words) -> npt.NDArray[Any]:
        """Reports of hashed values."""

    @abstractmethod
    def _readings(self, counts: Counts) -> Shares:
        """Debiased counts of every function's buckets, shape (hashes, buckets)."""

    def decode(self, counts: Counts, n: int) -> Shares:
        """The domain's values as candidates."""
        return self._estimated(counts, n, [text_bytes(v) for v in self.domain.values])

    def read(
        self,
        counted: Aggregate,
        rule: str,
        method: str | None,
        confidence: float,
        options: dict[str, Any],
    ) -> Result:
        """The shares of the domain's values, or of any `candidates`; see `Aggregate.estimate`.

        The errors are the protocol's own; `collision_error` comes on top.
        """
        candidates = options.pop("candidates", None)
        if candidates is None or method is not None:
            return super().read(counted, rule, method, confidence, options)
        checked_options(options, ("candidates",), "a sketch")
        n, values = reported(counted.n), tuple(column(candidates).tolist())
        texts = _texts(list(values))
        if not texts:
            raise ArgumentError("candidates must hold at least one value")
        if len(set(texts)) < len(texts):
            raise ArgumentError("candidates must not hold a value twice")
        raw = self._estimated(counted.counts, n, texts)
        plausible = np.clip(raw, 0.0, 1.0)
        errors = np.sqrt(self.noise_variance(plausible) / n)
        more = {"plausible": plausible, "unbiased": False}
        title = f"{self.kind}, of candidates"
        return estimated(counted, title, values, raw, errors, confidence, rule, **more)

    def _estimated(self, counts: Counts, n: int, texts: list[bytes]) -> Shares:
        readings, digests = self._readings(counts), _digests(texts)
        sums = np.zeros(digests.size)
        for j, row in enumerate(readings):
            sums += row[bucket(again(digests, [j]), self.buckets)]
        m = self.buckets
        return np.asarray((sums / n - 1 / m) * m / (m - 1))

    def collision_error(self, frequencies: Any) -> float:
        """The standard error that the fixed hash functions add, over choices of them.

        Parameters
        ----------
        frequencies : array of float
            The shares of all values that occur; their squares alone matter.
        """
        f = np.asarray(frequencies, dtype=np.float64)
        return float(np.sqrt((f**2).sum() / ((self.buckets - 1) * self.hashes)))

    def _filled(self, variance: Shares, others: Shares) -> Shares:
        """The covariance with these variances and, where the two values differ, these others."""
        np.fill_diagonal(others, variance)
        return others

    def _pairs(self, frequencies: Shares) -> Shares:
        checked_pairs(frequencies.size)
        return np.asarray(frequencies[:, None] + frequencies[None, :])


@dataclass(frozen=True, init=False)
class CMS(_Sketch):
    """Count-mean sketch; a report is 2 bytes of function number and buckets/8 bytes of bits.

    Parameters
    ----------
    domain : Domain, int or list
        Values to be estimated by default; people may hold any text or integer.
    epsilon : number
        From 2**-32 to 40; read exactly.
    hashes : int
        Public hash functions, from 1 to 65,536.
    buckets : int
        A power of two, from 8 to 65,536.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range, or
        `hashes` or `buckets` is.

    Notes
    -----
    Law. A person draws a public function j uniformly. m bits, on at the value's bucket alone, are
    each kept with probability p = sqrt(e)/(sqrt(e) + 1), e = e^epsilon, else flipped; the report is
    j and the bits.

    Guarantee. epsilon-local DP: neighbours are any two values of one person, listed or not,
    whatever the hash is. They differ in two bits at most, each with log-ratio epsilon/2; p is
    rounded down.

    Error. Over hash functions the shares are unbiased. The functions are fixed and public, however,
    so every estimate carries other values' collisions: `collision_error`, which no number of
    reports makes smaller.

    References
    ----------
    Differential Privacy Team, Apple, "Learning with privacy at scale", 2017.

    Examples
    --------
    >>> channel = CMS(["example.org", "example.com"], epsilon=2, hashes=64, buckets=256)
    >>> channel.privatize("a page that nobody listed").shape
    (34,)
    """

    kind: ClassVar[str] = "cms"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 4, "epsilon": 1, "hashes": 2, "buckets": 16}),
    )
    audit_view: ClassVar[str] = "likelihoods"
    spent: ClassVar[Fraction] = Fraction(1, 2)
    fewest: ClassVar[int] = 8

    def exact(self, b: int, ones: frozenset[int]) -> Fraction:
        """Pr[the bits at `ones` are on | bucket b], exactly as drawn."""
        p, found = Fraction(self.truth, ONE), Fraction(1)
        for place in range(self.buckets):
            found *= p if (place in ones) == (place == b) else 1 - p
        return found

    def _randomise(self, digests: Digests, words: Words) -> npt.NDArray[np.uint8]:
        n, m = digests.size, self.buckets
        j = pick(self.hashes, n, words)
        b = bucket(again(digests, j), m)
        out = np.empty((n, 2 + m // 8), dtype=np.uint8)
        out[:, 0], out[:, 1] = j & 255, j >> 8
        step = max(1, _CELLS // m)
        for start in range(0, n, step):
            part = b[start : start + step]
            bits = ~coins(self.truth, part.size * m, words).reshape(part.size, m)
            rows = np.arange(part.size)
            bits[rows, part] ^= True
            out[start : start + step, 2:] = np.packbits(bits, axis=1)
        return out

    def likelihoods(self, reports: npt.NDArray[np.uint8]) -> Shares:
        """p/(1-p) where the bit of the value's bucket is on, (1-p)/p where it is off."""
        digests = _digests([text_bytes(v) for v in self.domain.values])
        j = reports[:, :2].astype(np.int64) @ np.array([1, 256])
        b = bucket(again(digests[None, :], j[:, None]), self.buckets)
        bits = np.take_along_axis(np.unpackbits(reports[:, 2:], axis=1), b, axis=1)
        p = Fraction(self.truth, ONE)
        return np.where(bits, float(p / (1 - p)), float((1 - p) / p))

    @property
    def report_bytes(self) -> int:
        """2 bytes of function number, and one bit for each bucket."""
        return 2 + self.buckets // 8

    @property
    def features(self) -> int:
        """Bits that are on, for each function and bucket, then the reports of each function."""
        return self.hashes * (self.buckets + 1)

    def tally(self, reports: Any) -> Tally:
        """Sums of the bits, by function, and how many reports each function has."""
        m = self.buckets
        rows, bad = packed_rows(reports, 16 + m)
        j = rows[:, :2].astype(np.int64) @ np.array([1, 256])
        good = j < self.hashes
        rows, j = rows[good], j[good]
        order = np.argsort(j, kind="stable")
        sums = np.zeros((self.hashes, m), dtype=np.int64)
        step = max(1, _CELLS // m)
        for start in range(0, j.size, step):
            part = order[start : start + step]
            bits = np.unpackbits(rows[part, 2:], axis=1)
            which, first = np.unique(j[part], return_index=True)
            sums[which] += np.add.reduceat(bits, first, axis=0, dtype=np.int64)
        each = np.bincount(j, minlength=self.hashes)
        return np.concatenate([sums.ravel(), each]), j.size, bad + int((~good).sum())

    def possible(self, counts: Counts, n: int) -> bool:
        """Every report is of one function, and each of its bits is on at most once."""
        h, m = self.hashes, self.buckets
        sums, each = counts[: h * m].reshape(h, m), counts[h * m :]
        return sums_to(each, n) and bool((sums.max(axis=1) <= each).all())

    def _readings(self, counts: Counts) -> Shares:
        h, m, p = self.hashes, self.buckets, float(Fraction(self.truth, ONE))
        sums, each = counts[: h * m].reshape(h, m), counts[h * m :]
        return np.asarray((sums - (1 - p) * each[:, None]) / (2 * p - 1))

    @property
    def _coin(self) -> float:
        p = Fraction(self.truth, ONE)
        return float(p * (1 - p) / (2 * p - 1) ** 2)

    def noise_variance(self, frequencies: Shares) -> Shares:
        """(m/(m-1))²·(p(1-p)/(2p-1)² + (1-f)·(1/m)(1-1/m)), for one report."""
        m = self.buckets
        spread = (1 - frequencies) * (1 - 1 / m) / m
        return np.asarray((self._coin + spread) * (m / (m - 1)) ** 2)

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Two values share a bit, and its coin, under one function in m."""
        m = self.buckets
        others = np.full_like(self._pairs(frequencies), self._coin / m * (m / (m - 1)) ** 2)
        return self._filled(self.noise_variance(frequencies), others)


@dataclass(frozen=True, init=False)
class HCMS(_Sketch, FiniteChannel):
    """Hadamard count-mean sketch; a report is (function·m + index)·2, plus 1 where the sign is -.

    Parameters
    ----------
    domain : Domain, int or list
        Values to be estimated by default; people may hold any text or integer.
    epsilon : number
        From 2**-32 to 40; read exactly.
    hashes : int
        Public hash functions, from 1 to 65,536.
    buckets : int
        A power of two, from 2 to 65,536.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range, or
        `hashes` or `buckets` is.

    Notes
    -----
    Law. A person draws a public function j and an index l uniformly, of m. With b the value's
    bucket, the sign (-1)^(bits of l & b) is kept with probability p = e/(e + 1), e = e^epsilon,
    else flipped; the report is j, l and the sign.

    Guarantee. epsilon-local DP: neighbours are any two values of one person, listed or not,
    whatever the hash is. They differ in one sign; p is rounded down.

    Error. As for `CMS`: unbiased over hash functions, with `collision_error` on top.

    References
    ----------
    Differential Privacy Team, Apple, "Learning with privacy at scale", 2017.

    Examples
    --------
    >>> HCMS(["example.org", "example.com"], epsilon=2, hashes=64, buckets=256).outputs
    32768
    """

    kind: ClassVar[str] = "hcms"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 4, "epsilon": 1, "hashes": 2, "buckets": 16}),
    )
    audit_view: ClassVar[str] = "odds"
    spent: ClassVar[Fraction] = Fraction(1)
    fewest: ClassVar[int] = 2

    @property
    def outputs(self) -> int:
        """Functions × indices × signs."""
        return 2 * self.hashes * self.buckets

    def exact(self, x: int, y: int) -> Fraction:
        """Pr[report y | code x], exactly as drawn."""
        (j, index), minus = divmod(y // 2, self.buckets), y % 2
        digest = _digests([text_bytes(self.domain.values[x])])
        b = int(bucket(again(digest, [j]), self.buckets)[0])
        p = Fraction(self.truth, ONE)
        kept = (index & b).bit_count() % 2 == minus
        return (p if kept else 1 - p) / (self.hashes * self.buckets)

    @property
    def matrix(self) -> Shares:
        """The law in floating point, shape (k, outputs)."""
        k, h, m = len(self.domain), self.hashes, self.buckets
        checked_cells(k, self.outputs, "a smaller domain or sketch")
        digests = _digests([text_bytes(v) for v in self.domain.values])
        b = bucket(again(digests[:, None], np.arange(h)[None, :]), m)
        minus = parity(b[:, :, None] & np.arange(m))
        p = float(Fraction(self.truth, ONE))
        found = np.where(minus[..., None] == np.arange(2), p, 1 - p) / (h * m)
        return np.asarray(found.reshape(k, self.outputs))

    def likelihoods(self, reports: npt.NDArray[Any]) -> Shares:
        """p where the sign is that of the value's bucket, 1-p where it is the other."""
        p = float(Fraction(self.truth, ONE))
        digests = _digests([text_bytes(v) for v in self.domain.values])
        j, index = np.divmod(reports // 2, self.buckets)
        known, which = np.unique(j, return_inverse=True)
        places = np.stack([bucket(again(digests, [f]), self.buckets) for f in known.tolist()])
        right = parity(index[:, None] & places[which.ravel()]) == (reports % 2)[:, None]
        return np.where(right, p, 1 - p)

    def _randomise(self, digests: Digests, words: Words) -> npt.NDArray[np.int64]:
        j = pick(self.hashes, digests.size, words)
        index = pick(self.buckets, digests.size, words)
        minus = parity(index & bucket(again(digests, j), self.buckets))
        flipped = ~coins(self.truth, digests.size, words)
        return np.asarray((j * self.buckets + index) * 2 + (minus ^ flipped))

    def _readings(self, counts: Counts) -> Shares:
        signed = counts.reshape(self.hashes, self.buckets, 2)
        p = float(Fraction(self.truth, ONE))
        return np.asarray(hadamard(signed[:, :, 0] - signed[:, :, 1]) / (2 * p - 1))

    @property
    def _gain(self) -> float:
        """(1/(2p - 1))², the square of every reading."""
        return float(1 / (2 * Fraction(self.truth, ONE) - 1) ** 2)

    def noise_variance(self, frequencies: Shares) -> Shares:
        """(m/(m-1))²·(1/(2p-1)² - f - (1-f)/m²), for one report."""
        m, f = self.buckets, frequencies
        return np.asarray((self._gain - f - (1 - f) / m**2) * (m / (m - 1)) ** 2)

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Two values read the same sign alike under one function in m."""
        m, pairs = self.buckets, self._pairs(frequencies)
        others = (self._gain - pairs - (1 - pairs) / m) / m * (m / (m - 1)) ** 2
        return self._filled(self.noise_variance(frequencies), others)


def _digests(texts: list[bytes]) -> Digests:
    return np.asarray(hash64(texts, [0])[0])


def _texts(values: Any) -> list[bytes]:
    given = column(values).tolist()
    if not all(isinstance(v, str | int) for v in given):
        raise ArgumentError("values must be texts or integers, none missing")
    return [text_bytes(v) for v in given]
