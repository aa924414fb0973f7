"""An estimated distribution, with everything that its estimate depended on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local.domain import Value
from dither.local.means.interval import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Distribution"]

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Shares of bins of numbers, or of the values of a list, as `dither.local.em` found them.

    Parameters
    ----------
    kinds : tuple of str
        The channels' kinds.
    interval : Interval, optional
        Of the numbers; None for a list of values.
    starts : array of int, optional
        The point with which each bin begins.
    values : tuple
        The list of values; empty for numbers.
    shares : array of float, shape (bins,)
        At least 0, with sum 1. Always biased.
    n, rejected : int
        Reports counted and dropped.
    outputs : tuple of int
        Bins of reports, for each channel.
    tolerance : float
        Gain of log-likelihood per report below which the rounds stopped.
    iterations : int
        Rounds used.
    converged : bool
        Whether the tolerance stopped them.
    smooth : bool
        Whether shares were averaged with their neighbours after every round.
    log_likelihood : float
        Per report.
    gap : float, optional
        How much more, at most, any other shares could have of it: a certificate of the maximum,
        told for lists of values only.
    notes : tuple of str
        What the estimate rests on.
    """

    kinds: tuple[str, ...]
    interval: Interval | None
    starts: npt.NDArray[np.int64] | None = field(repr=False)
    values: tuple[Value, ...]
    shares: Array = field(repr=False)
    n: int
    rejected: int
    outputs: tuple[int, ...]
    tolerance: float
    iterations: int
    converged: bool
    smooth: bool
    log_likelihood: float
    gap: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def bins(self) -> int:
        """How many bins, or values."""
        return int(self.shares.size)

    @property
    def edges(self) -> Array:
        """Where the bins of numbers begin and end, shape (bins + 1,): half-way between points."""
        interval, starts = self._numbers()
        return interval.at(np.clip(np.append(starts, interval.steps + 1) - 0.5, 0, interval.steps))

    @property
    def centres(self) -> Array:
        """The means of the bins' points, shape (bins,)."""
        interval, starts = self._numbers()
        ends = np.append(starts[1:], interval.steps + 1) - 1
        return interval.at((starts + ends) / 2)

    @property
    def mean(self) -> float:
        """The mean of the distribution; biased towards the middle of the interval."""
        return float(self.shares @ self.centres)

    @property
    def variance(self) -> float:
        """The variance of the distribution, about its own mean."""
        return float(self.shares @ (self.centres - self.mean) ** 2)

    def quantile(self, at: float) -> float:
        """The number below which a share `at` of people lies, even within a bin.

        Raises
        ------
        ArgumentError
            `at` is not between 0 and 1, or the values are no numbers.
        """
        edges = self.edges
        if not (isinstance(at, int | float) and 0 <= at <= 1):
            raise ArgumentError("at must be a number from 0 to 1")
        return float(np.interp(at, np.append(0.0, np.cumsum(self.shares)), edges))

    def __getitem__(self, value: Value) -> float:
        """The estimated share of one value of a list."""
        if value not in self.values:
            raise ArgumentError("value must be in the channel's domain")
        return float(self.shares[self.values.index(value)])

    @property
    def frame(self) -> Any:
        """A Polars frame: lower, upper and share of every bin, or value and share."""
        import polars as pl

        if self.interval is None:
            return pl.DataFrame({"value": [str(v) for v in self.values], "share": self.shares})
        edges = self.edges
        return pl.DataFrame({"lower": edges[:-1], "upper": edges[1:], "share": self.shares})

    @property
    def caution(self) -> str:
        """Why the shares are biased."""
        why = "shares are kept at 0 or more" if self.interval is None else "the rounds stop early"
        return f"Biased, as {why}; no interval is valid."

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """A few lines for people: what was found, and on what it depends."""
        lines = [
            f"{' + '.join(self.kinds)}: {self.n:,} reports"
            + (f", {self.rejected:,} dropped as impossible" if self.rejected else "")
        ]
        if self.interval is None:
            order = np.argsort(-self.shares, kind="stable")[:12].tolist()
            lines += [f"{str(self.values[i])[:19]:<20}{self.shares[i]:>9.4f}" for i in order]
        else:
            quartiles = "   ".join(f"{self.quantile(at):.6g}" for at in (0.25, 0.5, 0.75))
            lines += [f"mean       {self.mean:.6g}", f"quartiles  {quartiles}"]
        lines += [self._how, self.caution, *self.notes]
        return "\n".join(lines)

    @property
    def _how(self) -> str:
        """What found the shares, and where it stopped."""
        if self.gap is not None:
            return (
                f"maximum likelihood: {self.bins:,} values, {self.iterations} Newton steps, within "
                f"{self.gap * self.n:.1g} of the maximum's log-likelihood"
            )
        stopped = (
            f"stopped at a gain below {self.tolerance:.2g} per report"
            if self.converged
            else "stopped at the greatest number of rounds"
        )
        how = "EMS" if self.smooth else "EM"
        return f"{how}: {self.bins:,} bins, {self.iterations:,} rounds, {stopped}"

    def plot(self, path: str | Path | None = None, *, truth: Any = None) -> Figure:
        """Draw the shares.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        truth : array of float, shape (bins,), optional
            True shares, where a simulation knows them.
        """
        from dither.plots.local import draw_distribution

        return draw_distribution(self, path, truth=truth)

    def _numbers(self) -> tuple[Interval, npt.NDArray[np.int64]]:
        if self.interval is None or self.starts is None:
            raise ArgumentError(
                "this distribution is of a list of values, not of numbers; read its shares"
            )
        return self.interval, self.starts
