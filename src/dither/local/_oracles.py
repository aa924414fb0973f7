"""What is derived from a channel's law: from its matrix, or from two chances that say it all.

`FiniteChannel` has a matrix of chances; decoding, errors and attacks follow from it. `PureChannel`
counts how many reports support each value, p of its holders' and q of the others'; decoding and
errors have closed forms. A channel may be both, and then takes the closed forms.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.local._channel import Channel, Codes, Counts, Shares, Tally
from dither.local._coins import exp_bounds
from dither.local._domain import column
from dither.local._guarantee import ClassPair
from dither.local._guessing import best_guesses
from dither.local._limits import checked_cells, checked_pairs, codes_within, sums_to
from dither.numeric import _directed as directed

Array = npt.NDArray[np.float64]

_CHUNK = 1 << 22
# A matrix of so many doubles takes 128 MiB.
_DENSE = 1 << 24


class FiniteChannel(Channel):
    """A channel with a matrix: ``matrix[x, y] = Pr[report y | value x]``.

    A subclass states `exact(x, y)`, the rational probability that its sampler realises, and may
    state closed forms of what is derived here from the matrix.
    """

    finite = True

    @property
    @abstractmethod
    def outputs(self) -> int:
        """How many different reports there are."""

    @abstractmethod
    def exact(self, x: int, y: int) -> Fraction:
        """Pr[report y | code x], exactly as drawn."""

    @property
    def matrix(self) -> Array:
        """Pr[report y | value x] in floating point, shape (k, outputs); rows sum to 1."""
        k, m = len(self.domain), self.outputs
        checked_cells(k, m)
        return np.array([[float(self.exact(x, y)) for y in range(m)] for x in range(k)])

    @property
    def report_bytes(self) -> int:
        """The fewest bytes that hold the code of any report."""
        return max(1, -(-(self.outputs - 1).bit_length() // 8))

    @property
    def features(self) -> int:
        """One count for each report."""
        return self.outputs

    def tally(self, reports: Any) -> Tally:
        """How often each report occurred."""
        given = column(reports)
        counts = np.zeros(self.outputs, dtype=np.int64)
        bad = 0
        # In parts, so that narrow reports are never all widened at once.
        step = max(_CHUNK, self.outputs)
        for start in range(0, given.size, step):
            codes, impossible = codes_within(given[start : start + step], self.outputs)
            counts += np.bincount(codes, minlength=self.outputs)
            bad += impossible
        return counts, given.size - bad, bad

    def possible(self, counts: Counts, n: int) -> bool:
        """Every report counts once."""
        return sums_to(counts, n)

    @property
    def decoder(self) -> Array:
        """W of shape (k, outputs) with W @ matrix.T = identity: shares are W @ counts/n."""
        return np.asarray(np.linalg.pinv(self.matrix).T)

    def decode(self, counts: Counts, n: int) -> Shares:
        """W @ counts/n: unbiased."""
        return np.asarray(self.decoder @ (counts / n))

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """W diag(q) W' - diag(f), where q = f @ matrix are the reports' shares.

        Given the users' values it is sum_x f_x·W (diag(R_x) - R_x R_x') W', and W R_x is the x-th
        unit vector.
        """
        w, q = self.decoder, frequencies @ self.matrix
        return np.asarray((w * q) @ w.T - np.diag(frequencies))

    def likelihoods(self, reports: npt.NDArray[Any]) -> Shares:
        """Columns of the matrix."""
        return np.asarray(self.matrix.T[reports])

    def forward(self, frequencies: Shares) -> Shares:
        """Shares of the reports, where the values have these."""
        return np.asarray(frequencies @ self.matrix)

    def guessed(self, prior: Shares | None) -> Shares:
        """Success of the best guess, by the matrix."""
        matrix = self.matrix
        best = best_guesses(matrix if prior is None else matrix * prior[:, None])
        return np.asarray((matrix * (best / np.maximum(best.sum(axis=0), 1))).sum(axis=1))

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """One multinomial draw per value that is held, or single reports where these are fewer."""
        held, cells = int(np.count_nonzero(histogram)), len(self.domain) * self.outputs
        if cells > _DENSE or int(histogram.sum()) < held * self.outputs:
            return Channel.simulate(self, histogram, rng)
        rows = self.matrix
        counts = np.zeros(self.outputs, dtype=np.int64)
        for x in np.flatnonzero(histogram):
            row = rows[x] / rows[x].sum()
            counts += rng.multinomial(int(histogram[x]), row)
        return counts


def worst_pair(
    channel: FiniteChannel,
    xs: Codes,
    others: Codes,
    epsilon: Fraction,
    reports: Mapping[int, int] | None = None,
) -> ClassPair:
    """The worst delta and log-ratio of any code of one class against any other of another.

    Parameters
    ----------
    reports : mapping of int to int, optional
        Reports that stand for all, each with how many it stands for: those have the same chances,
        whichever of the codes was held. Without it, every report stands for itself.
    """
    counted = dict.fromkeys(range(channel.outputs), 1) if reports is None else reports
    # A lower bound of e^epsilon takes less from p, so that delta is never too small.
    low, _ = exp_bounds(epsilon)
    delta, ratio = Fraction(0), 0.0
    rows = {x: [channel.exact(x, y) for y in counted] for x in {*xs.tolist(), *others.tolist()}}
    for x, other in product(xs.tolist(), others.tolist()):
        if x != other:
            each = list(zip(rows[x], rows[other], counted.values(), strict=True))
            # The hockey-stick divergence: the sum over the reports of (p - e^epsilon·q)+.
            found = sum((n * max(Fraction(0), p - low * q) for p, q, n in each), Fraction(0))
            delta = max(delta, found)
            # Many reports have the same pair of chances, and one logarithm.
            ratio = max(ratio, *(log_ratio(p, q) for p, q in {(p, q) for p, q, _ in each if p > 0}))
    return ClassPair(directed.float_up(delta), ratio)


def log_ratio(p: Fraction, q: Fraction) -> float:
    """log(p/q) rounded up; infinite where q is 0."""
    return math.inf if q == 0 else directed.float_up(directed.log_upper(p / q))


class PureChannel(Channel):
    """A report supports its holder's value with chance p and any other with chance q.

    With s the share of reports that support a value, f̂ = (s - q)/(p - q) is unbiased; given the
    users' values its variance is (f·p(1-p) + (1-f)·q(1-q))/(n (p-q)²).

    Source. Wang, Blocki, Li and Jha, USENIX Security 2017 ("pure" protocols).
    """

    @property
    @abstractmethod
    def support(self) -> tuple[float, float] | tuple[Shares, Shares]:
        """p and q: of every value alike, or of each value, shape (k,)."""

    @property
    def largest_step(self) -> Shares:
        """1/(p - q)."""
        p, q = self.support
        return np.full(len(self.domain), 1 / (p - q))

    def decode(self, counts: Counts, n: int) -> Shares:
        """(share of supports - q)/(p - q)."""
        p, q = self.support
        return np.asarray((counts / n - q) / (p - q))

    @property
    def ties(self) -> tuple[float, float]:
        """Covariance of one report's supports of two values: of a holder of either, of others.

        None where supports are independent, as bits are.
        """
        return 0.0, 0.0

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """((f_i + f_j)·one + (1 - f_i - f_j)·neither)/(p-q)² off the diagonal."""
        checked_pairs(frequencies.size)
        variance, (one, neither) = self.noise_variance(frequencies), self.ties
        if not (one or neither):
            return np.diag(variance)
        (p, q), pairs = self.support, frequencies[:, None] + frequencies[None, :]
        found = (pairs * one + (1 - pairs) * neither) / (p - q) ** 2
        np.fill_diagonal(found, variance)
        return np.asarray(found)

    def noise_variance(self, frequencies: Shares) -> Shares:
        """(f·p(1-p) + (1-f)·q(1-q))/(p-q)², for one report."""
        (p, q), f = self.support, frequencies
        return np.asarray((f * p * (1 - p) + (1 - f) * q * (1 - q)) / (p - q) ** 2)
