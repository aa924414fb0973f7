"""Estimates: one family, each with a frame, a summary for people and a picture; and shares.

A share's normal interval is given only where it may be trusted: where so many reports decide the
share that the most any one of them can add is small beside its error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._format import Printable, at_least, at_most, count_text, display_text, sentence, wrapped
from dither._format import level as level_text
from dither._stats import two_sided
from dither.errors import ArgumentError
from dither.local._estimates.postprocess import postprocess as apply_rule
from dither.local._estimates.postprocess import project

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.local._channel import Channel
    from dither.local._reports.aggregate import Aggregate
    from dither.local._structures.parts import PartCounts

Array = npt.NDArray[np.float64]

MANY = 3.0
"""For a normal interval: how many times the most that one report can add the error must be."""

SHOWN = 12
_UNBIASED = ("none", "consistent")


class Result(Printable, ABC):
    """An estimate: `frame` for machines, `summary` for people, `plot` for both."""

    @property
    @abstractmethod
    def frame(self) -> Any:
        """A Polars frame of what was estimated."""

    @abstractmethod
    def summary(self) -> str:
        """A few lines for people: what was estimated, how well, and what it rests on."""

    @abstractmethod
    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the estimate.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """


@dataclass(frozen=True, eq=False)
class Estimate(Result):
    """Shares of some values among the users who reported.

    Parameters
    ----------
    title : str
        What they were estimated from: the channel's kind, say.
    values : tuple
        The values, in order.
    shares : array of float, shape (k,)
        Estimated shares after `postprocess`.
    standard_errors : array of float, shape (k,)
        Of the raw estimates; NaN where none is known.
    n, rejected : int
        Reports counted and dropped.
    confidence : float
        Of `intervals`.
    raw : array of float, shape (k,)
        Estimated shares before `postprocess`.
    plausible : array of float, shape (k,)
        The raw shares projected onto the simplex, at which errors are computed.
    steps : array of float, shape (k,)
        The most that one report can add to each raw share; see `trusted`.
    unbiased : bool
        Whether the raw shares are.
    postprocess : str
        The rule that was applied.
    notes : tuple of str
        What the estimate rests on, and what speaks against it.
    channel : Channel, optional
        Where all reports are of one.
    parts : dict from name to Estimate
        Of each class of people, where classes are combined.
    weights : array of float, shape (classes, k), optional
        Of the classes, where they are combined by weights.
    found : tuple, optional
        Where candidates were tested: those whose share is above 0 beyond chance.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import local
    >>> counts = local.simulate(local.GRR(2, epsilon=2), [700, 300], np.random.default_rng(1))
    >>> found = counts.estimate()
    >>> bool(found.intervals[1, 0] < 0.3 < found.intervals[1, 1]), found.biased
    (True, False)
    """

    title: str
    values: tuple[Any, ...]
    shares: Array
    standard_errors: Array
    n: int
    rejected: int
    confidence: float
    raw: Array = field(repr=False)
    plausible: Array = field(repr=False)
    steps: Array = field(repr=False)
    unbiased: bool = True
    postprocess: str = "none"
    notes: tuple[str, ...] = ()
    channel: Channel | None = field(default=None, repr=False)
    parts: Mapping[str, Estimate] = field(default_factory=dict, repr=False)
    weights: Array | None = field(default=None, repr=False)
    found: tuple[Any, ...] | None = None

    @property
    def biased(self) -> bool:
        """Whether the channel, the method or the rule takes unbiasedness away."""
        return not self.unbiased or self.postprocess not in _UNBIASED

    @property
    def counts(self) -> Array:
        """Estimated numbers of users, shape (k,)."""
        return np.asarray(self.shares * self.n)

    @property
    def covariance(self) -> Array:
        """Covariance of the raw estimates given the users' values, shape (k, k)."""
        if self.channel is None:
            raise ArgumentError("a covariance is known where all reports are of one channel only")
        return np.asarray(self.channel.noise_covariance(self.plausible) / self.n)

    @property
    def trusted(self) -> npt.NDArray[np.bool_]:
        """For which values the interval may be trusted, shape (k,).

        A share is the mean of what single reports add to it. Where its standard error is below
        three times the most that one report can add, as if fewer than some ten reports decided, the
        sum is far from normal: a value that no report names would seem to be known without error.
        """
        return np.asarray(self._decided & self.unbiased)

    @property
    def _decided(self) -> npt.NDArray[np.bool_]:
        """For which values the error is small beside what any one report adds."""
        return np.asarray(self.standard_errors >= MANY * self.steps)

    @property
    def intervals(self) -> Array:
        """Normal intervals of the raw shares, shape (k, 2); NaN where they are not `trusted`.

        They lie within [0, 1], about the possible share that is nearest to the raw one.

        Raises
        ------
        ArgumentError
            The estimate is biased, so that no such interval is valid.
        """
        if not self.unbiased:
            instead = "weights" if self.parts else "those of an unbiased channel"
            raise ArgumentError(f"intervals are not valid for a biased estimate; use {instead}")
        half, centre = self._half_widths, np.clip(self.raw, 0, 1)
        return np.clip(np.stack([centre - half, centre + half], axis=1), 0, 1)

    @property
    def _half_widths(self) -> Array:
        return np.where(self._decided, two_sided(self.confidence) * self.standard_errors, np.nan)

    @property
    def possible(self) -> Array:
        """The possible shares that are nearest to `shares`, as they are shown: within [0, 1]."""
        return np.clip(self.shares, 0, 1)

    def _interval_text(self, place: int, places: int) -> str:
        """What an interval adds to a share on the screen: a half-width, or ends that 0 or 1 cut."""
        half, (lower, upper) = self._half_widths[place], self.intervals[place]
        if not np.isfinite(half):
            return "unknown"
        if self.raw[place] - half >= 0 and self.raw[place] + half <= 1:
            return f"± {at_most(half, places)}"
        return f"[{at_least(lower, places)}, {at_most(upper, places)}]"

    def __getitem__(self, value: Any) -> float:
        """The estimated share of one value."""
        return float(self.shares[place_of(value, self.values)])

    def top(self, k: int) -> list[tuple[Any, float]]:
        """The k most frequent values with their shares."""
        most = _checks.whole("k", k, 0)
        order = np.argsort(-self.shares, kind="stable")[:most]
        return [(self.values[i], float(self.shares[i])) for i in order.tolist()]

    @property
    def frame(self) -> Any:
        """A Polars frame: value, share, standard_error and, where valid, lower and upper."""
        import polars as pl

        columns: dict[str, Any] = {
            "value": [label(v) for v in self.values],
            "share": self.shares,
            "standard_error": self.standard_errors,
        }
        if self.unbiased:
            columns["lower"], columns["upper"] = self.intervals.T
        return pl.DataFrame(columns, nan_to_null=True)

    def summary(self) -> str:
        """A few lines for people: what was estimated, how well, and what may be trusted."""
        sizes = " + ".join(f"{part.n:,}" for part in self.parts.values())
        lines = [heading(self.title, self.n, self.rejected, sizes)]
        order = np.argsort(-self.shares, kind="stable")[:SHOWN].tolist()
        places = _places(self._half_widths) if self.unbiased else 4
        wide = places + 5
        found = [self._interval_text(i, places) for i in order] if self.unbiased else []
        column = max(map(len, found), default=0) + 3
        level = f"{level_text(self.confidence):>{column}}" if self.unbiased else ""
        lines.append(f"{'value':<20}{'share':>{wide}}{level}")
        for row, i in enumerate(order):
            share = rounded(self.possible[i], places)
            ends = f"{found[row]:>{column}}" if self.unbiased else ""
            lines.append(f"{display_text(self.values[i], 19):<20}{share:>{wide}}{ends}")
        if len(self.values) > SHOWN:
            lines.append(f"... and {count_text(len(self.values) - SHOWN, 'more value')}")
        remarks = [*(self._left_out() if self.unbiased else ()), *self.bias]
        if (self.possible[order] != self.shares[order]).any():
            remarks.append("A share that noise put outside 0 to 1 is shown at the nearer of them.")
        if self.unbiased and self.postprocess != "none":
            remarks.append("Intervals are those of the raw shares.")
        if self.found is not None:
            named = ", ".join(map(display_text, self.found))
            remarks.append(f"Found beyond chance: {named or 'nothing'}.")
        return as_text(lines, [*remarks, *self.notes])

    @property
    def bias(self) -> tuple[str, ...]:
        """What makes the shares biased, in sentences; empty where nothing does."""
        found = []
        if not self.unbiased:
            if self.channel is not None:
                cause = "their channel"
            elif any(not part.unbiased for part in self.parts.values()):
                cause = "the channels of some choices"
            else:
                cause = "the method that they are estimated by"
            found.append(f"Shares are biased by {cause}: no interval is valid.")
        if self.postprocess not in _UNBIASED:
            found.append(f"Shares are biased (postprocess: {self.postprocess}).")
        return tuple(found)

    def _left_out(self) -> Iterator[str]:
        """Why some intervals are left out."""
        known = np.isfinite(self.standard_errors)
        few, unknown = int((known & ~self._decided).sum()), int((~known).sum())
        if few:
            yield (
                f"No interval for {count_text(few, 'value')}: too few reports decide the share "
                "for a normal one."
            )
        if unknown:
            yield f"No interval for {count_text(unknown, 'value')}: the error is not known."

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the shares with their intervals, the most frequent first; see `Result.plot`."""
        from dither.plots._local import draw_shares

        return draw_shares([self], path)


def as_text(lines: Sequence[str], remarks: Iterable[str]) -> str:
    """Lines as they are, and below them remarks, each a sentence, wrapped."""
    return "\n".join([*lines, *(part for text in remarks for part in wrapped(sentence(text)))])


def heading(title: str, n: int, rejected: int, sizes: str = "") -> str:
    """The first line of a summary: what, of how many reports, how many dropped."""
    dropped = f", {rejected:,} dropped as impossible" if rejected else ""
    return f"{title}: {count_text(n, 'report')}{f' ({sizes})' if sizes else ''}{dropped}"


def _places(halves: Array) -> int:
    """Decimals that show two digits of the least half-width, at least 4."""
    shown = halves[np.isfinite(halves) & (halves > 0)]
    return 4 if shown.size == 0 else max(4, 1 - math.floor(math.log10(float(shown.min()))))


def rounded(share: float, places: int) -> str:
    """A share as text, without the sign of a zero."""
    return f"{round(float(share), places) + 0.0:.{places}f}"


def label(value: Any) -> str:
    """A value, or a cell of several, as text."""
    return " × ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def place_of(value: Any, values: Sequence[Any]) -> int:
    """Where a value is among those that were estimated."""
    if not isinstance(value, str | int | bool | tuple) or value not in values:
        raise ArgumentError("value must be in the channel's domain")
    return values.index(value)


def reported(n: int, of: str = "") -> int:
    """How many reports, or classes that reported: at least one."""
    if n == 0:
        raise ArgumentError(f"there are no reports{of and f' of {of!r}'} to estimate from")
    return n


def estimated(
    counted: Aggregate | PartCounts,
    title: str,
    values: tuple[Any, ...],
    raw: Array,
    errors: Array,
    confidence: float,
    rule: str = "none",
    **more: Any,
) -> Estimate:
    """An estimate from raw shares and their errors, with a rule applied."""
    given = {
        "shares": apply_rule(rule, raw, errors),
        "plausible": raw,
        "steps": np.zeros(raw.size),
        "postprocess": rule,
        **more,
    }
    return Estimate(
        title=title,
        values=values,
        standard_errors=errors,
        n=counted.n,
        rejected=counted.rejected,
        confidence=confidence,
        raw=raw,
        **given,
    )


def shares_of(counted: Aggregate, rule: str, confidence: float) -> Estimate:
    """The shares that a channel's own decoder reads from its counts."""
    n, channel = reported(counted.n), counted.channel
    raw = channel.decode(counted.counts, n)
    plausible = project(raw)
    variances = channel.variance_from(counted.counts, n, plausible)
    return estimated(
        counted,
        channel.kind,
        channel.domain.values,
        raw,
        np.sqrt(np.maximum(variances, 0.0) / n),
        confidence,
        rule,
        plausible=plausible,
        steps=channel.largest_step / n,
        unbiased=channel.unbiased,
        channel=channel,
    )


def sampled(found: Estimate) -> Estimate:
    """An estimate from people who were sampled: their own variance f(1-f)/n is added."""
    f = found.plausible
    errors = np.sqrt(found.standard_errors**2 + f * (1 - f) / found.n)
    return replace(found, standard_errors=errors)


def checked_options(options: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    """Refuse arguments of `estimate` that what is read does not have."""
    unknown = sorted(set(options) - set(known))
    if unknown:
        can = f"; it takes {', '.join(known)}" if known else ""
        raise ArgumentError(f"{', '.join(unknown)} cannot be asked for of {what}{can}")
