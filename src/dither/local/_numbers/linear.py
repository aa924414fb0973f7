"""A law as a linear map between bins of points and bins of reports.

A matrix that is held as such, or products of a law that make none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError

if TYPE_CHECKING:
    from dither.local._channel import Codes
    from dither.local._numbers.numeric import NumericChannel

Array = npt.NDArray[np.float64]


class LawProducts(Protocol):
    """The two products of a law with shares and weights, reports in bins; no matrix is made."""

    def forward(self, f: Array) -> Array:
        """Shares of the bins of reports, where shares of the points are f."""

    def back(self, weights: Array) -> Array:
        """E[weights[bin of the report] | point], for every point."""


_BINS = 1024


class DenseMatrix:
    """A matrix, shape (bins, report bins), that is held as such.

    `edges` are where the bins of reports begin, of `reports` different ones; without, each report
    is a bin.
    """

    def __init__(
        self, matrix: Array, edges: Codes | None = None, reports: int | None = None
    ) -> None:
        self.matrix = matrix
        self.edges, self.reports = edges, reports

    @property
    def size(self) -> int:
        """How many bins of inputs."""
        return int(self.matrix.shape[0])

    def forward(self, f: Array) -> Array:
        """f @ matrix."""
        return np.asarray(f @ self.matrix)

    def back(self, weights: Array) -> Array:
        """matrix @ weights."""
        return np.asarray(self.matrix @ weights)

    def group(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Counts in bins of reports."""
        return counts if self.edges is None else np.add.reduceat(counts, self.edges)


class BinnedLaw:
    """A law that has fast products, between bins.

    `products` are of the law, with reports in fine bins that begin at `fine`; bins of points begin
    at `starts`, and bins of reports at `edges`, which are among the fine ones.
    """

    def __init__(
        self, products: LawProducts, starts: Codes, points: int, fine: Codes, edges: Codes
    ) -> None:
        self.products, self.starts, self.fine = products, starts, fine
        self.sizes = np.diff(np.append(starts, points))
        self.single_points, self.single_reports = starts.size == points, edges.size == fine.size
        self.edges = np.searchsorted(fine, edges)
        self.widths = np.diff(np.append(self.edges, fine.size))

    @property
    def size(self) -> int:
        """How many bins of points."""
        return int(self.starts.size)

    def forward(self, f: Array) -> Array:
        """Shares of the bins of reports."""
        each = f if self.single_points else np.repeat(f / self.sizes, self.sizes)
        found = self.products.forward(each)
        return found if self.single_reports else np.add.reduceat(found, self.edges)

    def back(self, weights: Array) -> Array:
        """E[weights[bin of the report] | bin of the point]."""
        each = weights if self.single_reports else np.repeat(weights, self.widths)
        found = self.products.back(each)
        if self.single_points:
            return found
        return np.asarray(np.add.reduceat(found, self.starts) / self.sizes)

    def group(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Counts in bins of reports."""
        return np.add.reduceat(np.add.reduceat(counts, self.fine), self.edges)


def binned(channel: NumericChannel, bins: int | None, outputs: int | str | None) -> BinnedLaw:
    """The law of a channel between bins; see `Aggregate.estimate` for the arguments.

    People in a bin of points are taken to be spread evenly over it, so a bin's row is the mean of
    its points' rows; a bin that straddles the end of SDPM's low range is thereby averaged over both
    laws. A bin of reports adds up its positions. Positions between two breaks, which no row
    distinguishes, are always one bin: their sum is sufficient, so that costs nothing.
    """
    law = channel.law
    starts, breaks = point_bins(channel, bins), law.breaks()
    edges = breaks if outputs is None else report_bins(channel, outputs, starts)
    fine = np.union1d(breaks, edges)
    return BinnedLaw(law.compiled(fine), starts, channel.interval.steps + 1, fine, edges)


def point_bins(channel: NumericChannel, bins: int | None) -> Codes:
    """Where the bins of points begin: as even as whole points allow."""
    points = channel.interval.steps + 1
    d = min(_BINS, points) if bins is None else bins
    return _even(_checks.whole("bins", d, 2, points, instead=", the points"), points)


def report_bins(channel: NumericChannel, outputs: int | str, starts: Codes) -> Codes:
    """Where the bins of reports begin: so many even ones, or aligned with those of the points."""
    m = channel.outputs
    if isinstance(outputs, str) and outputs == "aligned":
        offset = getattr(channel.law, "offset", None)
        if offset is None:
            raise ArgumentError(
                "outputs='aligned' is for SDPM, whose reports are points of the interval; "
                "give a number of bins, or None for every position"
            )
        # Bin b of points begins at ceil(b·points/bins); this goes on beyond both ends.
        places = (np.arange(m) - offset) * starts.size // (channel.interval.steps + 1)
        return np.concatenate(([0], np.flatnonzero(np.diff(places)) + 1))
    return _even(_checks.whole("outputs", outputs, 2, m, instead=", the positions"), m)


def _even(bins: int, places: int) -> Codes:
    return -(-np.arange(bins, dtype=np.int64) * places // bins)
