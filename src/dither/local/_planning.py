"""Before anyone is asked: which channel to take, and what a survey by it would give.

`best` takes the channel of least error that fits the report's size and the server. Errors are the
channels' own (`Channel.noise_variance`), not a rule of thumb. The worst case
over populations is at a population that holds one value only, because every variance here is linear
in the shares. `simulate` draws the counts that a survey would give, exactly in distribution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import _checks
from dither._format import Printable, count_text
from dither.errors import ArgumentError
from dither.local._channel import Channel, DomainLike
from dither.local._domain import Domain
from dither.local._frequency.grr import GRR
from dither.local._frequency.hadamard import Hadamard
from dither.local._frequency.local_hash import FLH, OLH
from dither.local._frequency.subset import SubsetSelection
from dither.local._frequency.unary import OUE, SUE
from dither.local._guarantee import Guarantee
from dither.local._limits import MOST, checked_epsilon
from dither.local._personal import Personal
from dither.local._registry import checked_channel
from dither.local._reports.aggregate import Aggregate
from dither.local._structures.parts import PartCounts

_CLOSE = 1.05
_SECONDS: dict[str, Callable[[int, int, Any], float]] = {
    "grr": lambda n, k, c: 4e-9 * n + 1e-8 * k,
    "hadamard": lambda n, k, c: 4e-9 * n + 8e-8 * c.outputs,
    "flh": lambda n, k, c: 4e-9 * n + 1.5e-8 * c.seeds * k,
    "olh": lambda n, k, c: 7e-10 * n * k,
    "sue": lambda n, k, c: 2.5e-10 * n * k,
    "oue": lambda n, k, c: 2.5e-10 * n * k,
    "subset": lambda n, k, c: 5e-10 * n * k,
}
"""Seconds on one core for n reports over k values: a guide, good to a factor of about three."""


@dataclass(frozen=True, slots=True)
class ChannelCandidate:
    """One channel beside the others.

    Parameters
    ----------
    channel : Channel
    report_bytes : int
        Size of a report on the wire.
    server_seconds : float
        To count n reports and to estimate, on one core, within a factor of about three.
    worst, mean : float
        Standard error of a share: the largest of any value in any population, and the root of the
        mean variance where all values are alike; the collisions of fixed hash functions included.
    excluded : str
        Why it was not eligible; empty if it was.
    """

    channel: Channel
    report_bytes: int
    server_seconds: float
    worst: float
    mean: float
    excluded: str = ""


@dataclass(frozen=True, slots=True)
class ChosenChannel(Printable):
    """The chosen channel, why, and what it was compared with.

    Parameters
    ----------
    channel : Channel
    reason : str
        One or two sentences for people.
    candidates : tuple of ChannelCandidate
        All that were compared, least error first.

    Examples
    --------
    >>> from dither import local
    >>> choice = local.best(4, epsilon=1, n=10_000)
    >>> choice.channel.kind, choice.guarantee == choice.channel.guarantee
    ('grr', True)
    """

    channel: Channel
    reason: str
    candidates: tuple[ChannelCandidate, ...]

    @property
    def guarantee(self) -> Guarantee:
        """What a report of the chosen channel promises."""
        return self.channel.guarantee

    def summary(self) -> str:
        """The reason, and a table of all channels that were compared."""
        lines = [self.reason, ""]
        lines.append(f"{'':<2}{'channel':<17}{'bytes':>9}{'server s':>10}{'worst':>10}{'mean':>10}")
        for c in self.candidates:
            mark = "* " if c.channel is self.channel else "  "
            seconds = f"{c.server_seconds:.2g}"
            lines.append(
                f"{mark}{_name(c):<17}{c.report_bytes:>9,}{seconds:>10}"
                f"{c.worst:>10.3g}{c.mean:>10.3g}" + (f"  {c.excluded}" if c.excluded else "")
            )
        return "\n".join(lines)


def best(
    domain_size: DomainLike,
    epsilon: Any,
    n: int,
    *,
    bytes: int | None = None,  # noqa: A002
    seconds: float | None = None,
    error: str = "mean",
) -> ChosenChannel:
    """Choose the channel for the shares of a list of values.

    Among the channels that keep to the limits, those whose error is within 5 % of the least are
    alike; of these the one with the smallest report is taken, and then the simplest to count.
    Channels without valid intervals (`FLH`) are shown and not chosen.

    Parameters
    ----------
    domain_size : int, Domain or list
        How many values there are, or the values; the channel is made for them.
    epsilon : number
        From 2**-32 to 40.
    n : int
        Expected number of reports, at least 1.
    bytes : int, optional
        The largest report allowed.
    seconds : float, optional
        The longest that the server may take, on one core; the estimate is good to a factor of
        about three.
    error : {"mean", "worst"}
        Which error to keep small: the mean where all values are alike, or the largest of any value
        in any population.

    Returns
    -------
    ChosenChannel
        With `channel`, `reason` and `candidates`; it prints as a table.

    Raises
    ------
    ArgumentError
        An argument is out of range, or no channel keeps to the limits.

    Examples
    --------
    >>> best(4, epsilon=1, n=10_000).channel.kind
    'grr'
    >>> best(10_000, epsilon=1, n=1_000_000).channel.kind
    'olh'
    >>> best(10_000, epsilon=1, n=1_000_000, bytes=4).channel.kind
    'hadamard'
    """
    domain, checked = Domain(domain_size), checked_epsilon(epsilon)
    people = _checks.whole("n", n, 1, MOST)
    for name, limit in (("bytes", bytes), ("seconds", seconds)):
        if limit is not None and not (isinstance(limit, int | float) and limit > 0):
            raise ArgumentError(f"{name} must be a number above 0")
    _checks.choice("error", error, ("mean", "worst"))
    made: list[Channel] = [
        GRR(domain, checked),
        Hadamard(domain, checked),
        FLH(domain, checked),
        OLH(domain, checked),
        OUE(domain, checked),
        SUE(domain, checked),
    ]
    if len(domain) <= 1 << 14:
        made.append(SubsetSelection(domain, checked))
    found = [_candidate(channel, people, bytes, seconds) for channel in made]
    found.sort(key=lambda c: (bool(c.excluded), getattr(c, error)))
    fit = [c for c in found if not c.excluded]
    if not fit:
        smallest = min(c.report_bytes for c in found)
        fastest = min(c.server_seconds for c in found)
        raise ArgumentError(
            f"no channel keeps to these limits: reports take at least {_bytes(smallest)}, and "
            f"counting them takes {_time(fastest)}"
        )
    least = getattr(fit[0], error)
    alike = [c for c in fit if getattr(c, error) <= _CLOSE * least]
    chosen = min(alike, key=lambda c: (c.report_bytes, made.index(c.channel)))
    return ChosenChannel(chosen.channel, _reason(chosen, error, found, alike), tuple(found))


def _candidate(
    channel: Channel, n: int, most: int | None, seconds: float | None
) -> ChannelCandidate:
    k = len(channel.domain)
    alone, alike = np.zeros(k), np.full(k, 1 / k)
    alone[0] = 1.0
    worst, mean = channel.noise_variance(alone).max() / n, channel.noise_variance(alike).mean() / n
    if isinstance(channel, FLH):
        worst += channel.collision_error(alone) ** 2
        mean += channel.collision_error(alike) ** 2
    taken = _SECONDS[channel.kind](n, k, channel)
    excluded = ""
    if not channel.unbiased:
        excluded = "biased: no intervals"
    elif most is not None and channel.report_bytes > most:
        excluded = f"over {_bytes(most)}"
    elif seconds is not None and taken > seconds:
        excluded = f"over {seconds:g} s"
    return ChannelCandidate(
        channel,
        channel.report_bytes,
        float(taken),
        float(np.sqrt(worst)),
        float(np.sqrt(mean)),
        excluded,
    )


def _reason(
    chosen: ChannelCandidate,
    error: str,
    found: list[ChannelCandidate],
    alike: list[ChannelCandidate],
) -> str:
    fit = sum(1 for c in found if not c.excluded)
    unbiased = sum(1 for c in found if c.channel.unbiased)
    limits = (
        "" if fit == unbiased else f", of those that keep to the limits ({fit} of {unbiased} do)"
    )
    amount = f"{getattr(chosen, error):.2g}"
    larger = [_name(c) for c in alike if c.report_bytes > chosen.report_bytes]
    as_small = [
        _name(c) for c in alike if c is not chosen and c.report_bytes == chosen.report_bytes
    ]
    least = min(getattr(c, error) for c in alike)
    why = f"the least {error} error, {amount}{limits}"
    if getattr(chosen, error) > least:
        why = f"a {error} error of {amount}, within 5 % of the least{limits}"
    if larger:
        why += f", with a smaller report than {_listed(larger)}"
    if as_small:
        why += f", and simpler than {_listed(as_small)}, whose reports are as small"
    return (
        f"{_name(chosen)}: {why}; {_bytes(chosen.report_bytes)} a report, "
        f"{_time(chosen.server_seconds)} to count"
    )


def _listed(names: list[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} and {last}" if most else last


def _name(candidate: ChannelCandidate) -> str:
    """The name under which the channel is made: `local.OLH`."""
    return type(candidate.channel).__name__


def _bytes(size: int) -> str:
    return count_text(size, "byte")


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return "less than a millisecond"
    if seconds < 1:
        return f"about {1000 * seconds:.2g} ms"
    return f"about {seconds:.2g} s" if seconds < 10 else f"about {seconds:,.0f} s"


def simulate(channel: Channel | Personal, histogram: Any, rng: np.random.Generator) -> Any:
    """Draw the aggregate that a population would give.

    It has the law that privatising every person's value and counting the reports has, and protects
    nobody: the generator is seeded.

    Parameters
    ----------
    channel : Channel or Personal
    histogram : array of int, shape (k,); of an offer (channels, k)
        How many people hold each value of the channel's domain; of an offer, of those who choose
        each of its channels.
    rng : numpy.random.Generator

    Returns
    -------
    Aggregate, or PartCounts of an offer
        Of as many reports as the histogram holds people.

    Raises
    ------
    ArgumentError
        The histogram has another shape, is not of whole numbers, or is negative.

    Examples
    --------
    >>> from dither import local
    >>> drawn = simulate(local.GRR(2, epsilon=1), [900, 100], np.random.default_rng(1))
    >>> drawn.n, int(drawn.counts.sum())
    (1000, 1000)
    """
    offer = isinstance(channel, Personal)
    known = channel.channels if isinstance(channel, Personal) else (checked_channel(channel),)
    try:
        counts = np.asarray(histogram)
    except ValueError:
        raise ArgumentError("histogram must be a row of whole numbers") from None
    shape = (len(known), len(channel.domain)) if offer else (len(channel.domain),)
    if counts.shape != shape:
        rows = ", one row per channel" if offer else ""
        raise ArgumentError(
            f"histogram must have one count for each value of the channel's domain{rows}"
        )
    if counts.dtype.kind not in "iu" or (counts.size and int(counts.min()) < 0):
        raise ArgumentError("histogram must hold whole numbers of at least 0")
    _checks.generator("rng", rng)
    parts = [
        Aggregate(one, one.simulate(row.astype(np.int64), rng), int(row.sum()))
        for one, row in zip(known, np.atleast_2d(counts), strict=True)
    ]
    if isinstance(channel, Personal):
        return PartCounts(channel, dict(zip(channel.parts, parts, strict=True)))
    return parts[0]
