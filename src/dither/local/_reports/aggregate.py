"""Counts of reports: integers that add up, wherever and in whatever order they were counted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._extras import extra_library
from dither.errors import ArgumentError
from dither.local._domain import bind, brief
from dither.local._limits import MOST, described
from dither.local._registry import channel_from_dict, check_digest, checked_channel

if TYPE_CHECKING:
    from dither.local._channel import Channel

_OTHER_HASH = "the aggregate's hash is not that of its channel"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Aggregate:
    """What a server keeps of the reports of one channel.

    Parameters
    ----------
    channel : Channel
    counts : array of int64, shape (channel.features,)
        How often each feature was reported.
    n : int
        Reports counted.
    rejected : int
        Reports dropped because the channel could not have produced them.

    Raises
    ------
    ArgumentError
        The counts cannot be those of n reports of the channel.

    Examples
    --------
    >>> from dither import local
    >>> channel = local.GRR(3, epsilon=1)
    >>> a, b = channel.aggregate([0, 1, 1]), channel.aggregate([2, 7])
    >>> (a + b).counts.tolist(), (a + b).n, (a + b).rejected
    ([1, 2, 1], 4, 1)
    """

    channel: Channel
    counts: npt.NDArray[np.int64]
    n: int
    rejected: int = 0

    def __repr__(self) -> str:
        rejected = f", rejected={self.rejected}" if self.rejected else ""
        return f"Aggregate({self.channel!r}, n={self.n}{rejected}, counts={brief(self.counts)})"

    def __post_init__(self) -> None:
        checked_channel(self.channel)
        try:
            given = np.asarray(self.counts)
        except (ValueError, OverflowError):  # rows of several lengths
            raise ArgumentError("counts must be a row of whole numbers") from None
        if given.dtype.kind not in "iu" or not all(map(_whole, (self.n, self.rejected))):
            raise ArgumentError("counts, n and rejected must be whole numbers")
        counts = given.astype(np.int64)
        if counts.shape != (self.channel.features,):
            raise ArgumentError(
                f"counts must be one-dimensional, of length {self.channel.features}"
            )
        if (counts.size and int(counts.min()) < 0) or self.n < 0 or self.rejected < 0:
            raise ArgumentError("counts, n and rejected must be at least 0")
        if self.n > MOST or self.rejected > MOST:
            raise ArgumentError("n and rejected must be at most 2**62")
        if not self.channel.possible(counts, int(self.n)):
            raise ArgumentError("counts must be such as n reports of the channel can have")
        counts.setflags(write=False)
        bind(self, counts=counts, n=int(self.n), rejected=int(self.rejected))

    def __add__(self, other: Aggregate) -> Aggregate:
        """Merge two aggregates of the same channel; order and grouping make no difference."""
        if not isinstance(other, Aggregate):
            return NotImplemented
        if not self._of_channel(other.channel):
            raise ArgumentError(
                "aggregates must be of the same channel to be added: "
                f"{self.channel.kind} {self.channel.hash[:8]} and "
                f"{other.channel.kind} {other.channel.hash[:8]} differ"
            )
        return Aggregate(
            self.channel,
            self.counts + other.counts,
            self.n + other.n,
            self.rejected + other.rejected,
        )

    def _of_channel(self, channel: Channel) -> bool:
        """Whether these counts are of this channel, by its hash where it is another object."""
        return self.channel is channel or self.channel.hash == channel.hash

    def __radd__(self, other: object) -> Aggregate:
        """Let ``sum`` begin from its 0."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Aggregate):
            return NotImplemented
        return (
            self._of_channel(other.channel)
            and (self.n, self.rejected) == (other.n, other.rejected)
            and bool(np.array_equal(self.counts, other.counts))
        )

    __hash__ = None  # type: ignore[assignment]

    def estimate(
        self,
        postprocess: str = "none",
        *,
        method: str | None = None,
        confidence: float = 0.95,
        **options: Any,
    ) -> Any:
        """Read the counts: shares of the domain's values, or the mean of numbers.

        Parameters
        ----------
        postprocess : str
            Of shares: none (unbiased), clip, norm_sub, base_cut, project, increasing or decreasing.
        method : {"likelihood", "selection"}, optional
            Left out: shares by the channel's own decoder; of a channel for numbers, the mean.
            "likelihood": the distribution that makes the reports likely, by expectation
            maximisation, of any channel with a matrix. "selection": which candidates of a
            `BloomRAPPOR` are there.
        confidence : float
            Of the intervals, strictly between 0 and 1.
        **options
            Of sketches and `BloomRAPPOR`: `candidates`, values to look up in place of the domain's.
            Of a selection: `alpha`, at most the chance that any candidate is found that nobody
            holds. Of a likelihood:

            - bins: of numbers; 1,024, or as many as there are points.
            - outputs: bins of reports: as fine as the law is; or so many even ones; or, for
              SDPM, "aligned": as wide as those of the values.
            - tolerance: stop where a round gains less log-likelihood per report; e^epsilon/1000 in
              total for numbers; for a list of values the maximum, to a gap of 1e-6 in total.
            - max_iterations: the most rounds; 10,000.
            - smooth: average each share with its neighbours (1, 2, 1) after every round; for the
              square wave only.

        Returns
        -------
        Estimate, MeanEstimate (of numbers) or Distribution (of a likelihood)
            Each has `frame`, `summary` and `plot`.

        Raises
        ------
        ArgumentError
            There are no reports, or an argument is unknown or out of range.

        Notes
        -----
        Post-processing of the reports: it costs no privacy.

        Examples
        --------
        >>> import numpy as np
        >>> from dither import local
        >>> rng = np.random.default_rng(1)
        >>> channel = local.PM(local.Interval(0, 100, steps=100), epsilon=2)
        >>> people = np.bincount([30, 40, 50], minlength=101) * 20_000
        >>> found = local.simulate(channel, people, rng).estimate()
        >>> found.interval[0] < 40 < found.interval[1]
        True
        >>> channel = local.SW(local.Interval(0, 1, steps=64), epsilon=2)
        >>> people = np.bincount(np.arange(20, 30).repeat(1000), minlength=65)
        >>> found = local.simulate(channel, people, rng).estimate(method="likelihood", bins=32)
        >>> abs(found.mean - 24.5 / 64) < 0.02
        True
        """
        level = _checks.confidence(confidence)
        return self.channel.read(self, postprocess, method, level, options)

    def to_dict(self) -> dict[str, Any]:
        """The aggregate with its channel and the channel's hash, in a form that JSON holds."""
        return {
            "channel": self.channel.to_dict(),
            "hash": self.channel.hash,
            "counts": self.counts.tolist(),
            "n": self.n,
            "rejected": self.rejected,
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Aggregate:
        """The aggregate that `to_dict` wrote.

        Raises
        ------
        ArgumentError
            A part is missing, or the hash is not the channel's.
        """
        if not isinstance(found, Mapping):
            raise ArgumentError("the aggregate must be a dictionary, as to_dict writes it")
        with described("the aggregate is truncated or was not written by to_dict"):
            hashed, counts = found["hash"], np.array(found["counts"])
            n, rejected = found["n"], found["rejected"]
            check_digest(found["channel"], hashed, _OTHER_HASH)
            channel = channel_from_dict(found["channel"])
        if hashed != channel.hash:
            raise ArgumentError(_OTHER_HASH)
        return cls(channel, counts, n, rejected)

    def to_arrow(self) -> Any:
        """The counts as an Arrow table (feature, count), with the rest in its metadata.

        Raises
        ------
        MissingLibraryError
            pyarrow is not installed; the extra ``arrow`` brings it.
        """
        pa = extra_library("pyarrow", "arrow", "counts as an Arrow table need")
        about = {k: v for k, v in self.to_dict().items() if k != "counts"}
        table = pa.table({"feature": np.arange(self.counts.size), "count": self.counts})
        return table.replace_schema_metadata({"dither.local": json.dumps(about)})

    @classmethod
    def from_arrow(cls, table: Any) -> Aggregate:
        """The aggregate that `to_arrow` wrote; the table's rows may come in any order.

        Raises
        ------
        ArgumentError
            The metadata is missing, a feature is missing or twice, or the hash does not match.
        """
        with described("table must be one that Aggregate.to_arrow wrote"):
            found = json.loads((table.schema.metadata or {})[b"dither.local"])
            features, counts = table["feature"].to_numpy(), table["count"].to_numpy()
        if not isinstance(found, dict):
            raise ArgumentError("table must be one that Aggregate.to_arrow wrote")
        order = np.argsort(features, kind="stable")
        if not np.array_equal(features[order], np.arange(features.size)):
            raise ArgumentError("table must hold each feature once")
        return cls.from_dict({**found, "counts": counts[order].tolist()})


def _whole(number: Any) -> bool:
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
