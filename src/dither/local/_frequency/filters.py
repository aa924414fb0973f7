"""Bloom filters of values, and the regression of `BloomRAPPOR` that reads them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._reports.bits import row_bytes, set_column
from dither.local._reports.hashing import bucket, hash64

Array = npt.NDArray[np.float64]

_MAX_CELLS = 1 << 26
_DETERMINED = 1e-7
"""The least curvature, beside the largest, at which shares are said to be determined."""


def set_bits(
    items: Sequence[bytes], cohorts: npt.NDArray[np.int64], bits: int, hashes: int, seed: int
) -> npt.NDArray[np.uint8]:
    """The packed filter of each item in the cohort at its place, shape (n, ceil(bits/8))."""
    rows = np.zeros((len(items), row_bytes(bits)), dtype=np.uint8)
    on = np.ones(len(items), dtype=np.bool_)
    for c in np.unique(cohorts).tolist():
        places = np.flatnonzero(cohorts == c)
        seeds = [(seed << 32) + c * hashes + i for i in range(hashes)]
        found = hash64([items[i] for i in places.tolist()], seeds)
        own = rows[places]
        for hashed in found:
            set_column(own, bucket((hashed >> np.uint64(32)).astype(np.uint32), bits), on[places])
        rows[places] = own
    return rows


class Regression:
    """Least squares of the bits of some cohorts on some candidates.

    With A = X - d stacked over cohorts, the solution is M(y - d), M = (A'A)^-1 A'. Given the users'
    values, with cohorts drawn at random and means taken within each cohort, n times its covariance
    is

        C·sum over c of M_c S_c M_c' - (diag f - f f'),
        S_c = diag(mu_c q*(1-q*) + (1-mu_c) p*(1-p*))/(q*-p*)² + Cov_f(X_c),  mu_c = sum of f_v·X_cv

    to the first order in 1/n: the coins, and which of the users are in the cohort. Shares that sum
    to less than 1 leave the rest to unlisted values, whose bits are independent and set with chance
    d.

    `filters` has the shape (cohorts present, k, bits); `full` is d, `high` and `low` are q* and p*.
    """

    def __init__(
        self,
        filters: npt.NDArray[np.bool_],
        present: npt.NDArray[np.bool_],
        full: float,
        high: float,
        low: float,
    ) -> None:
        if filters.size > _MAX_CELLS or filters.shape[1] ** 2 > _MAX_CELLS:
            raise ArgumentError("too many candidates for one regression; ask for fewer at a time")
        self.filters, self.present, self.full = filters, present, full
        self.high, self.low = high, low
        cohorts, k, bits = filters.shape
        centred = filters.transpose(0, 2, 1).astype(np.float64) - full
        self.design = centred.reshape(cohorts * bits, k)
        self.gram = self.design.T @ self.design

    @property
    def determined(self) -> bool:
        """Whether the bits distinguish all the candidates."""
        rows, k = self.design.shape
        if k > rows or k == 0:
            return False
        values = np.linalg.eigvalsh(self.gram)
        return bool(values[0] > _DETERMINED * values[-1])

    def responses(self, table: npt.NDArray[np.int64]) -> Array:
        """y - d, from the counts of all cohorts, shape (cohorts present · bits,)."""
        own = table[self.present]
        shares = own[:, :-1] / own[:, -1:]
        return np.asarray(((shares - self.low) / (self.high - self.low) - self.full).ravel())

    def moments(self, table: npt.NDArray[np.int64]) -> Array:
        """A'(y - d)."""
        return np.asarray(self.design.T @ self.responses(table))

    def solve(self, table: npt.NDArray[np.int64]) -> Array:
        """The least-squares shares, shape (k,)."""
        self._check()
        return np.asarray(np.linalg.solve(self.gram, self.moments(table)))

    def covariance(self, f: Array) -> Array:
        """n times the covariance of `solve`, shape (k, k)."""
        self._check()
        cohorts, k, bits = self.filters.shape
        m = np.linalg.solve(self.gram, self.design.T).reshape(k, cohorts, bits)
        rest, d = max(0.0, 1 - float(f.sum())), self.full
        spread = self.high - self.low
        found = np.zeros((k, k))
        for c in range(cohorts):
            x = self.filters[c].astype(np.float64)
            mu = f @ x + rest * d
            coins = mu * self.high * (1 - self.high) + (1 - mu) * self.low * (1 - self.low)
            own = m[:, c]
            through = own @ x.T
            found += (own * (coins / spread**2 + rest * d * (1 - d))) @ own.T
            found += (through * f) @ through.T
            bare = own.sum(axis=1) * d
            found += rest * np.outer(bare, bare) - np.outer(own @ mu, own @ mu)
        return np.asarray(cohorts * found - (np.diag(f) - np.outer(f, f)))

    def _check(self) -> None:
        if not self.determined:
            raise ArgumentError(
                "the bits cannot distinguish so many candidates: use method='selection', fewer "
                "candidates, or a channel with more bits or cohorts"
            )
