"""Estimates of numbers: their mean with an interval that holds, and their distribution."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._format import at_least, at_most, count_text, display_text
from dither._format import level as level_text
from dither._stats import two_sided
from dither.errors import ArgumentError
from dither.local._domain import Value
from dither.local._estimates.results import Result, as_text, heading, place_of
from dither.local._numbers.interval import Interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MeanEstimate(Result):
    """The mean of the people who reported.

    Parameters
    ----------
    kind : str
        The channel's.
    interval_of_values : Interval
    mean : float
        In the interval's unit. It may lie outside the bounds, as noise may.
    standard_error : float
        From the reports' own spread: of the mean of the population from which the people were
        drawn. Given the people's values it is an upper bound. It is never below what the channel's
        noise alone gives, however alike the reports are.
    n, rejected : int
        Reports counted and dropped.
    biased : bool
        Whether the channel's reports do not have the value as their expectation.
    confidence : float
        Of `interval`.
    notes : tuple of str
    limits : tuple of (float, float, str), optional
        The interval's ends and how it was made, where it is not simply normal; see
        `dither.local._numbers.mean`.
    assuming : str
        What such an interval assumes of the people; empty where it assumes nothing.

    Examples
    --------
    >>> from dither import local
    >>> found = MeanEstimate("pm", local.Interval(0, 10), 4.0, 0.5, 100, 0, False, 0.95)
    >>> print(found)
    pm: 100 reports
    mean  4.00  ± 0.98  (3.02 to 4.98, 95 %)
    """

    kind: str
    interval_of_values: Interval
    mean: float
    standard_error: float
    n: int
    rejected: int
    biased: bool
    confidence: float
    notes: tuple[str, ...] = ()
    limits: tuple[float, float, str] | None = None
    assuming: str = ""

    @property
    def method(self) -> str:
        """How `interval` is made: "normal", or, of few reports, "exact" or "bounded"."""
        return "normal" if self.limits is None else self.limits[2]

    @property
    def interval(self) -> tuple[float, float]:
        """An interval of the mean of the people who reported.

        A normal one, which holds for the population as well, wherever enough reports decide; else
        one that holds for any values of the people and any number of reports, within the public
        bounds, given what `assuming` says.

        Raises
        ------
        ArgumentError
            The estimate is biased, so that no such interval is valid.
        """
        if self.biased:
            raise ArgumentError(
                "an interval is not valid for a biased mean; use PM, Duchi or Hybrid for one"
            )
        if self.limits is not None:
            return self.limits[:2]
        half = two_sided(self.confidence) * self.standard_error
        return self.mean - half, self.mean + half

    @property
    def possible_mean(self) -> float:
        """The value of the interval that is nearest to `mean`, which noise may have put outside."""
        if self.biased:
            return self.mean
        lower, upper = self.interval
        return min(max(self.mean, lower), upper)

    @property
    def frame(self) -> Any:
        """A Polars frame of one row: mean, standard_error, n and, where valid, lower and upper."""
        import polars as pl

        row: dict[str, Any] = {
            "mean": [self.mean],
            "standard_error": [self.standard_error],
            "n": [self.n],
        }
        if not self.biased:
            row["lower"], row["upper"] = ([end] for end in self.interval)
        return pl.DataFrame(row)

    def summary(self) -> str:
        """A few lines for people."""
        lines, remarks = [heading(self.kind, self.n, self.rejected)], []
        if self.biased:
            lines.append(f"mean  {self.mean:.6g}  (biased; no interval is valid)")
        else:
            lower, upper = self.interval
            half = (upper - lower) / 2
            # Two digits of the half-width, and the mean to the same place.
            places = max(0, 1 - math.floor(math.log10(half))) if half > 0 else 6
            even = math.isclose(self.possible_mean - lower, upper - self.possible_mean)
            normal = self.method == "normal" and even
            give = f"± {at_most(half, places)}  " if normal else ""
            lines.append(
                f"mean  {self.possible_mean:,.{places}f}  {give}"
                f"({at_least(lower, places)} to {at_most(upper, places)}, "
                f"{level_text(self.confidence)})"
            )
            if self.possible_mean != self.mean:
                remarks.append(
                    f"The mean of the reports is {self.mean:,.{places}f}, outside the interval; "
                    "the nearest value in it is shown."
                )
            if self.method != "normal":
                given = f", {self.assuming}" if self.assuming else ""
                remarks.append(
                    "Too few reports decide it for a normal interval: this one holds for the "
                    f"people who reported, whatever their values are{given}."
                )
        return as_text(lines, [*remarks, *self.notes])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the mean with its interval, within the bounds of the values; see `Result.plot`."""
        from dither.plots._local import draw_means

        return draw_means([self], path)


@dataclass(frozen=True, eq=False)
class Distribution(Result):
    """Shares of bins of numbers, or of the values of a list, that make the reports likely.

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
        for lists of values only.
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
    def biased(self) -> bool:
        """Always: shares are kept at 0 or more, and the rounds stop early."""
        return True

    @property
    def intervals(self) -> Array:
        """Refused: no interval is valid for a biased estimate."""
        raise ArgumentError("intervals are not valid for a likelihood; use weights, or no method")

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
            `at` is not between 0 and 1, or the values are not numbers.
        """
        edges = self.edges
        if not (isinstance(at, int | float) and 0 <= at <= 1):
            raise ArgumentError("at must be a number from 0 to 1")
        return float(np.interp(at, np.append(0.0, np.cumsum(self.shares)), edges))

    def __getitem__(self, value: Value) -> float:
        """The estimated share of one value of a list."""
        return float(self.shares[place_of(value, self.values)])

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

    def summary(self) -> str:
        """A few lines for people: what was found, and on what it depends."""
        lines = [heading(" + ".join(self.kinds), self.n, self.rejected)]
        if self.interval is None:
            order = np.argsort(-self.shares, kind="stable")[:12].tolist()
            lines += [
                f"{display_text(self.values[i], 19):<20}{self.shares[i]:>9.4f}" for i in order
            ]
        else:
            quartiles = "   ".join(f"{self.quantile(at):.6g}" for at in (0.25, 0.5, 0.75))
            lines += [f"mean       {self.mean:.6g}", f"quartiles  {quartiles}"]
        return as_text(lines, [self._how, self.caution, *self.notes])

    @property
    def _how(self) -> str:
        """What found the shares, and where it stopped."""
        if self.gap is not None:
            return (
                f"maximum likelihood: {count_text(self.bins, 'value')}, "
                f"{count_text(self.iterations, 'Newton step')}, within "
                f"{self.gap * self.n:.1g} of the maximum's log-likelihood"
            )
        stopped = (
            f"stopped at a gain below {self.tolerance:.2g} per report"
            if self.converged
            else "stopped at the greatest number of rounds"
        )
        how = "EMS" if self.smooth else "EM"
        rounds = count_text(self.iterations, "round")
        return f"{how}: {count_text(self.bins, 'bin')}, {rounds}, {stopped}"

    def plot(self, path: str | Path | None = None, *, truth: Any = None) -> Figure:
        """Draw the shares.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        truth : array of float, shape (bins,), optional
            True shares, where a simulation knows them.
        """
        from dither.plots._local import draw_distribution

        return draw_distribution(self, path, truth=truth)

    def _numbers(self) -> tuple[Interval, npt.NDArray[np.int64]]:
        if self.interval is None or self.starts is None:
            raise ArgumentError(
                "this distribution is of a list of values, not of numbers; read its shares"
            )
        return self.interval, self.starts
