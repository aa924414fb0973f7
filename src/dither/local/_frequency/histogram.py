"""Histogram encoding: noise on each bin of a one-person histogram, summed or cut at a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.local._channel import Channel, Codes, Counts, DomainLike, Shares, Tally
from dither.local._coins import ONE, threshold
from dither.local._domain import Domain, bind
from dither.local._frequency.unary import UnaryChannel, check_telling
from dither.local._guarantee import Guarantee
from dither.local._limits import checked_epsilon, checked_pairs
from dither.noise import discrete_laplace
from dither.numeric import Words
from dither.numeric import _directed as directed

_MAX_CLAMP = 1 << 20
_CHUNK = 1 << 22
_STEPS = 1024


@dataclass(frozen=True, init=False)
class SHE(Channel):
    """Summation with histogram encoding: one noisy integer for each value.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilon : number
        From 2**-32 to 40; read exactly.
    clamp : int, optional
        C: reports are clamped to [-C, C+1], from 1 to 2**20. By default so large that a bin is
        clamped once in about 2**40 times.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range, or
        `clamp` is.

    Notes
    -----
    Law. The histogram is 1 at the person's value and 0 elsewhere; two values are 2 apart in L1. To
    each bin integer noise Z is added, Pr[Z = z] = (1-a)/(1+a)·a**|z| with a = e^(-epsilon/2), and
    the sum is clamped to [-C, C+1], a public range that is symmetric about 1/2. With m =
    a**(C+1)/(1+a)::

        E[report bin] = m for others, 1 - m for the holder
        E[bin²] = sum over j = 1..C+1 of (2j-1)·a**j/(1+a), plus that over j = 1..C   (not held)

    Guarantee. epsilon-local DP: neighbours are any two values of one person; clamping is
    post-processing. It rests on the sampler of `dither.noise`, which is within 2**-142 of its law
    for each bin.

    Error. f̂ = (mean - m)/(1 - 2m), of variance Var[bin]/(n(1-2m)²), about 8/(n·epsilon²) for small
    epsilon.

    References
    ----------
    Dwork, McSherry, Nissim and Smith, TCC 2006; Wang, Blocki, Li and Jha, USENIX Security 2017.

    Examples
    --------
    >>> channel = SHE(4, epsilon=1)
    >>> channel.clamp, channel.privatize([2, 2]).shape
    (56, (2, 4))
    """

    kind: ClassVar[str] = "she"

    clamp: int

    def __init__(self, domain: DomainLike, epsilon: Any, *, clamp: int | None = None) -> None:
        checked = checked_epsilon(epsilon)
        if clamp is None:
            # exp(-epsilon·C/2) is 2^-40 there: so rare a clamp moves no estimate.
            clamp = min(_MAX_CLAMP, math.ceil(80 * math.log(2) / float(checked)))
        most = _checks.whole("clamp", clamp, 1, _MAX_CLAMP)
        bind(self, domain=Domain(domain), epsilon=checked, clamp=most)

    def bin_law(self, bit: int) -> tuple[Counts, Shares]:
        """What a bin of that bit reports: the values -C, ..., C+1, and their chances."""
        a, values = math.exp(-float(self.epsilon) / 2), np.arange(-self.clamp, self.clamp + 2)
        chances = (1 - a) / (1 + a) * a ** np.abs(values - bit).astype(np.float64)
        chances[0] = a ** (self.clamp + bit) / (1 + a)
        chances[-1] = a ** (self.clamp + 1 - bit) / (1 + a)
        return values, chances

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int32]:
        """One noisy histogram per person, shape (n, k)."""
        k = len(self.domain)
        out = np.empty((codes.size, k), dtype=np.int32)
        step = max(1, _CHUNK // k)
        for start in range(0, codes.size, step):
            part = codes[start : start + step]
            noise = discrete_laplace(2 / self.epsilon, part.size * k, words=words)
            noise = noise.reshape(part.size, k)
            noise[np.arange(part.size), part] += 1
            np.clip(noise, -self.clamp, self.clamp + 1, out=noise)
            out[start : start + step] = noise
        return out

    @property
    def bin_bytes(self) -> int:
        """The fewest bytes that hold a bin's value plus C, which is from 0 to 2C + 1."""
        return -(-(2 * self.clamp + 1).bit_length() // 8)

    @property
    def report_bytes(self) -> int:
        """A number for each value."""
        return len(self.domain) * self.bin_bytes

    @property
    def features(self) -> int:
        """The sum of each bin, C added to every report so that no sum is negative."""
        return len(self.domain)

    def tally(self, reports: Any) -> Tally:
        """Sums of the bins plus C."""
        rows, bad = _integer_rows(reports, len(self.domain))
        good = np.ones(rows.shape[0], dtype=np.bool_)
        if rows.size:
            good = (rows.min(axis=1) >= -self.clamp) & (rows.max(axis=1) <= self.clamp + 1)
        kept = rows if good.all() else rows[good]
        sums = kept.sum(axis=0, dtype=np.int64) + kept.shape[0] * self.clamp
        return sums, kept.shape[0], bad + rows.shape[0] - kept.shape[0]

    def possible(self, counts: Counts, n: int) -> bool:
        """Every report adds 0 to 2C + 1 to each sum."""
        return int(counts.max()) <= n * (2 * self.clamp + 1)

    def decode(self, counts: Counts, n: int) -> Shares:
        """(mean - m)/(1 - 2m)."""
        m = self._mean
        return np.asarray((counts / n - self.clamp - m) / (1 - 2 * m))

    def noise_variance(self, frequencies: Shares) -> Shares:
        """Var[bin]/(1-2m)², the same for every value whatever the shares."""
        a, j, m = math.exp(-float(self.epsilon) / 2), np.arange(1.0, self.clamp + 2), self._mean
        terms = (2 * j - 1) * a**j / (1 + a)
        variance = 2 * terms.sum() - terms[-1] - m**2
        return np.full(frequencies.size, variance / (1 - 2 * m) ** 2)

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Diagonal: the bins' noises are independent."""
        checked_pairs(frequencies.size)
        return np.diag(self.noise_variance(frequencies))

    def likelihoods(self, reports: npt.NDArray[Any]) -> Shares:
        """Pr[bin | 1]/Pr[bin | 0] of each value's bin."""
        ratio = self.bin_law(1)[1] / self.bin_law(0)[1]
        return np.asarray(ratio[np.asarray(reports) + self.clamp])

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """Two multinomial draws for each bin, over the values it may report."""
        n, found = int(histogram.sum()), np.zeros(len(self.domain), dtype=np.int64)
        for bit, people in ((1, histogram), (0, n - histogram)):
            values, chances = self.bin_law(bit)
            law = chances / chances.sum()
            for j, holders in enumerate(people.tolist()):
                found[j] += rng.multinomial(holders, law) @ (values + self.clamp)
        return found

    @property
    def _mean(self) -> float:
        a = math.exp(-float(self.epsilon) / 2)
        return a ** (self.clamp + 1) / (1 + a)


@dataclass(frozen=True, init=False)
class THE(UnaryChannel):
    """Thresholding with histogram encoding.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilon : number
        Of the noise; from 2**-32 to 40; read exactly.
    threshold : number, optional
        t, from 1/2 to 1; by default the best one.

    Raises
    ------
    ArgumentError
        `domain` has fewer than two values or repeats one, or `epsilon` is out of range, or
        `threshold` is.

    Notes
    -----
    Law. Of real Laplace noise of scale 2/epsilon on each bin only whether it exceeds the threshold
    t is kept, which is a coin for each bin: unary encoding with::

        p = 1 - e^(-epsilon(1-t)/2)/2,   q = e^(-epsilon·t/2)/2

    Guarantee. Local DP between any two values of one person, at the epsilon of `guarantee`: log of
    p(1-q)/(q(1-p)), rounded up, with p rounded down and q up. It is less than the `epsilon` of the
    noise: thresholding throws privacy away that `OUE` spends.

    Error. That of unary encoding (see `SUE`), least for rare values at the default threshold.

    References
    ----------
    Wang, Blocki, Li and Jha, USENIX Security 2017, where the guarantee is the epsilon of the noise.

    Examples
    --------
    >>> channel = THE(100, epsilon=2)
    >>> float(channel.threshold), round(float(channel.guarantee.epsilon), 3)
    (0.7099609375, 1.636)
    """

    kind: ClassVar[str] = "the"

    threshold: Fraction

    def __init__(self, domain: DomainLike, epsilon: Any, *, threshold: Any = None) -> None:
        checked = checked_epsilon(epsilon)
        t = best_threshold(checked) if threshold is None else threshold
        cut = _checks.exact("threshold", t, least=Fraction(1, 2), most=1)
        bind(self, domain=Domain(domain), epsilon=checked, threshold=cut)
        check_telling(self)

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Out of 2**64: how often the bin of the held value exceeds the threshold, and another."""
        return _chances(self.epsilon, self.threshold)

    @property
    def ones(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """p and q."""
        k, (true, false) = len(self.domain), self.thresholds
        return (true,) * k, (false,) * k

    @property
    def guarantee(self) -> Guarantee:
        """The epsilon that p and q spend, which is below the noise's."""
        p, q = (Fraction(t, ONE) for t in self.thresholds)
        return Guarantee.uniform(directed.log_upper(p * (1 - q) / (q * (1 - p))))


def best_threshold(epsilon: Fraction) -> Fraction:
    """The threshold of least variance of a rare value, q(1-q)/(p-q)², in steps of 1/1024."""
    t = np.arange(_STEPS // 2, _STEPS + 1) / _STEPS
    p = 1 - np.exp(-float(epsilon) * (1 - t) / 2) / 2
    q = np.exp(-float(epsilon) * t / 2) / 2
    return Fraction(_STEPS // 2 + int(np.argmin(q * (1 - q) / (p - q) ** 2)), _STEPS)


def _chances(epsilon: Fraction, t: Fraction) -> tuple[int, int]:
    missed = directed.exp_upper(-epsilon * (1 - t) / 2, 192) / 2
    other = directed.exp_upper(-epsilon * t / 2, 192) / 2
    # p is rounded down and q up, which brings both laws together.
    return threshold(1 - missed), ONE - threshold(1 - other)


def _integer_rows(reports: Any, k: int) -> tuple[npt.NDArray[Any], int]:
    """The reports that are rows of k whole numbers, and how many are not."""
    if isinstance(reports, np.ndarray) and reports.dtype.kind in "iu" and reports.ndim == 2:
        if reports.shape[1] != k:
            return np.zeros((0, k), dtype=np.int64), reports.shape[0]
        return reports, 0
    rows = [_integer_row(row, k) for row in reports]
    kept = [row for row in rows if row is not None]
    return np.array(kept, dtype=np.int64).reshape(-1, k), len(rows) - len(kept)


def _integer_row(row: Any, k: int) -> list[int] | None:
    try:
        if isinstance(row, str | bytes) or len(row) != k:
            return None
        found = list(row)
    except TypeError:
        return None
    whole = all(isinstance(v, int | np.integer) and not isinstance(v, bool) for v in found)
    return found if whole and all(abs(int(v)) <= 2 * _MAX_CLAMP for v in found) else None
