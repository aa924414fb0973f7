"""The mean of the reports' values, with its error, and an interval that holds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from dither._format import level as level_text
from dither.errors import ArgumentError
from dither.local._arguments import checked_aggregate
from dither.local._numbers.interval import Interval
from dither.local._numbers.limits import least_error, limits
from dither.local._numbers.numeric import NumericChannel
from dither.numeric import check_confidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.local._aggregate import Aggregate


_SDPM = (
    "The mean of SDPM's reports is biased towards the middle: a low value x counts p'x; "
    "aggregate.distribution().mean is the estimate to prefer."
)


@dataclass(frozen=True, slots=True)
class MeanEstimate:
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
        `limits`.

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

    def __str__(self) -> str:
        return self.summary()

    @property
    def method(self) -> str:
        """How `interval` is made: "normal", or, of few reports, "exact" or "bounded"."""
        return "normal" if self.limits is None else self.limits[2]

    @property
    def interval(self) -> tuple[float, float]:
        """An interval of the mean of the people who reported.

        A normal one, which holds for the population as well, wherever enough reports decide; else
        one that holds for any values of the people and any number of reports, within the public
        bounds.

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
        z = NormalDist().inv_cdf((1 + self.confidence) / 2)
        return self.mean - z * self.standard_error, self.mean + z * self.standard_error

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
        dropped = f", {self.rejected:,} dropped as impossible" if self.rejected else ""
        lines = [f"{self.kind}: {self.n:,} reports{dropped}"]
        if self.biased:
            lines.append(f"mean  {self.mean:.6g}  (biased; no interval is valid)")
        else:
            lower, upper = self.interval
            half = (upper - lower) / 2
            # Two digits of the half-width, and the mean to the same place.
            places = max(0, 1 - math.floor(math.log10(half))) if half > 0 else 6
            give = f"± {half:,.{places}f}  " if self.method == "normal" else ""
            lines.append(
                f"mean  {self.mean:,.{places}f}  {give}"
                f"({lower:,.{places}f} to {upper:,.{places}f}, {level_text(self.confidence)})"
            )
            if self.method != "normal":
                lines.append(
                    "Too few reports decide it for a normal interval: this one holds for the "
                    "people who reported, whatever their values are."
                )
        return "\n".join([*lines, *self.notes])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the mean with its interval, within the bounds of the values.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.local import draw_means

        return draw_means([self], path)


def mean(aggregate: Aggregate, *, confidence: float = 0.95) -> MeanEstimate:
    """Average the values of the reports.

    Parameters
    ----------
    aggregate : Aggregate
        Of a channel for numbers.
    confidence : float
        Of the interval, strictly between 0 and 1.

    Returns
    -------
    MeanEstimate
        With `mean`, `standard_error` and, where it is unbiased, `interval`.

    Raises
    ------
    ArgumentError
        There are fewer than two reports, or the channel is not for numbers.

    Notes
    -----
    Post-processing of the reports: it costs no privacy.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import local
    >>> channel = local.PM(local.Interval(0, 100, steps=100), epsilon=2)
    >>> histogram = np.bincount([30, 40, 50], minlength=101) * 20_000
    >>> drawn = local.simulate(channel, histogram, np.random.default_rng(1))
    >>> found = mean(drawn)
    >>> found.interval[0] < 40 < found.interval[1]
    True
    """
    channel = checked_aggregate(aggregate).channel
    if not isinstance(channel, NumericChannel):
        raise ArgumentError(
            f"a mean needs a channel for numbers, which {channel.kind} is not; use estimate()"
        )
    level = check_confidence(confidence)
    n = aggregate.n
    if n < 2:
        raise ArgumentError("there must be at least two reports to estimate a mean and its error")
    positions, shares = channel.positions, aggregate.counts / n
    middle = float(channel.interval.low + channel.interval.high) / 2
    found = float(shares @ (positions - middle))
    spread = float(shares @ (positions - middle - found) ** 2) * n / (n - 1)
    error = max(math.sqrt(spread / n), least_error(channel, n))
    ends: tuple[float, float, str] | None = None
    if channel.unbiased:
        upper_ones = int(aggregate.counts[-1])
        ends = limits(channel, upper_ones, middle + found, error, n, level)
    return MeanEstimate(
        kind=channel.kind,
        interval_of_values=channel.interval,
        mean=middle + found,
        standard_error=error,
        n=n,
        rejected=aggregate.rejected,
        biased=not channel.unbiased,
        confidence=level,
        notes=() if channel.unbiased else (_SDPM,),
        limits=ends,
    )
