"""What estimates are: shares with their errors, and a distribution with all that it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._format import level as level_text
from dither.errors import ArgumentError
from dither.local._channel import Channel
from dither.local._domain import Value
from dither.local._numbers.interval import Interval
from dither.local._postprocess import postprocess as apply_rule
from dither.local._postprocess import project
from dither.numeric import check_confidence

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.local._aggregate import Aggregate
if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]

MANY = 3.0
"""How many times the most that one report adds an error must be, for a normal interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Shares of the domain's values among the users who reported.

    Parameters
    ----------
    channel : Channel
    values : tuple
        The domain's values, in order.
    shares : array of float, shape (k,)
        Estimated shares after `postprocess`.
    standard_errors : array of float, shape (k,)
        Of the raw estimates, given the users' values, at the estimated shares.
    n, rejected : int
        Reports counted and dropped.
    postprocess : str
        The rule that was applied.
    biased : bool
        Whether the channel or the rule takes unbiasedness away.
    confidence : float
        Of `intervals`.
    plausible : array of float, shape (k,)
        The raw shares projected onto the simplex, at which errors are computed.
    raw : array of float, shape (k,)
        Estimated shares before `postprocess`.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import local
    >>> counts = local.simulate(local.GRR(2, epsilon=2), [700, 300], np.random.default_rng(1))
    >>> found = counts.estimate()
    >>> bool(found.intervals[1, 0] < 0.3 < found.intervals[1, 1]), found.biased
    (True, False)
    """

    channel: Channel
    values: tuple[Value, ...]
    shares: Array
    standard_errors: Array
    n: int
    rejected: int
    postprocess: str
    biased: bool
    confidence: float
    raw: Array = field(repr=False)
    plausible: Array = field(repr=False)

    def __str__(self) -> str:
        return self.summary()

    @property
    def counts(self) -> Array:
        """Estimated numbers of users, shape (k,)."""
        return np.asarray(self.shares * self.n)

    @property
    def covariance(self) -> Array:
        """Covariance of the raw estimates given the users' values, shape (k, k)."""
        return np.asarray(self.channel.noise_covariance(self.plausible) / self.n)

    @property
    def trusted(self) -> npt.NDArray[np.bool_]:
        """Of which values the interval may be trusted, shape (k,).

        A share is the mean of what single reports add to it. Where n·(standard error) is below
        three times the most that one report can add, as if fewer than some ten reports decided,
        the sum is far from normal: zero reports would seem to be no error at all.
        """
        if not self.channel.unbiased:
            return np.zeros(len(self.values), dtype=np.bool_)
        return np.asarray(self.standard_errors * self.n >= MANY * self.channel.largest_step)

    @property
    def intervals(self) -> Array:
        """Normal intervals of the raw shares, shape (k, 2); NaN where they are not `trusted`.

        Raises
        ------
        ArgumentError
            The channel's estimate is biased, so that no such interval is valid.
        """
        if not self.channel.unbiased:
            raise ArgumentError(
                "intervals are not valid for a biased estimate; use those of an unbiased channel"
            )
        z = NormalDist().inv_cdf((1 + self.confidence) / 2)
        half = np.where(self.trusted, z * self.standard_errors, np.nan)
        return np.stack([self.raw - half, self.raw + half], axis=1)

    def __getitem__(self, value: Value) -> float:
        """The estimated share of one value."""
        if not isinstance(value, Value) or value not in self.values:
            raise ArgumentError("value must be in the channel's domain")
        return float(self.shares[self.values.index(value)])

    @property
    def frame(self) -> Any:
        """A Polars frame: value, share, standard_error and, where valid, lower and upper."""
        import polars as pl

        columns: dict[str, Any] = {
            "value": [str(v) for v in self.values],
            "share": self.shares,
            "standard_error": self.standard_errors,
        }
        if self.channel.unbiased:
            columns["lower"], columns["upper"] = self.intervals.T
        return pl.DataFrame(columns, nan_to_null=True)

    def summary(self) -> str:
        """A few lines for people: what was estimated, how well, and what may be trusted."""
        percent = f"{level_text(self.confidence)}"
        lines = [
            f"{self.channel.kind}: {self.n:,} reports"
            + (f", {self.rejected:,} dropped as impossible" if self.rejected else ""),
            f"{'value':<20}{'share':>9}{'± ' + percent:>12}",
        ]
        z = NormalDist().inv_cdf((1 + self.confidence) / 2)
        order = np.argsort(-self.shares, kind="stable")[:12]
        trusted = self.trusted if self.channel.unbiased else np.ones(len(self.values), np.bool_)
        lines += [
            f"{str(self.values[i])[:19]:<20}{self.shares[i]:>9.4f}"
            + (f"{z * self.standard_errors[i]:>12.4f}" if trusted[i] else f"{'unknown':>12}")
            for i in order.tolist()
        ]
        if len(self.values) > 12:
            lines.append(f"... and {len(self.values) - 12:,} more values")
        if not trusted.all():
            lines.append(
                f"Intervals of {int((~trusted).sum()):,} values are left out: too few reports "
                "decide their shares for a normal interval."
            )
        if self.biased:
            lines.append(
                f"Shares are biased (postprocess: {self.postprocess}); "
                "the ± is that of the raw estimates."
            )
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the shares with their intervals, the most frequent first.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from dither.plots.local import draw_shares

        return draw_shares(self, path)


def estimate(counted: Aggregate, rule: str, confidence: float) -> Estimate:
    """Read an aggregate; see `Aggregate.estimate`."""
    level = check_confidence(confidence)
    if counted.n == 0:
        raise ArgumentError("there are no reports to estimate from")
    channel = counted.channel
    raw = channel.decode(counted.counts, counted.n)
    plausible = project(raw)
    errors = np.sqrt(
        np.maximum(channel.variance_from(counted.counts, counted.n, plausible), 0.0) / counted.n
    )
    shares = apply_rule(rule, raw, errors)
    return Estimate(
        channel=channel,
        values=channel.domain.values,
        shares=shares,
        standard_errors=errors,
        n=counted.n,
        rejected=counted.rejected,
        postprocess=rule,
        biased=rule != "none" or not channel.unbiased,
        confidence=level,
        raw=raw,
        plausible=plausible,
    )


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
