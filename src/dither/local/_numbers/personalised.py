"""Personalised SDLDP: people choose among public channels, and say which; the server combines.

Each class is a channel of its own, over the same values: SDGRR or SDPM with another split into high
and low, say. A report carries its class, as a place in the classes' joint list of reports.

Guarantee. A person's report keeps the promise of the channel that was chosen, between any two
values that the person may hold. The choice itself is not protected: it must not depend on the
value. Somebody who calls flu "high" because they have it tells so by the choice, and no coin takes
that back; and then the classes' shares differ too, and both ways of combining them are wrong.

Combining. `weighted` gives every class's estimate the weight n_i/σ_i², σ_i² the variance of one
report's contribution (equation (19) of SDLDP leaves out n_i). `pooled` maximises one likelihood of
all the reports, by EM on the stacked matrices: it uses every class where it tells most, value by
value, and keeps shares at least 0.

Source. Chen, Ye, Zhang and Shu, "SDLDP", Journal of Cyber Security 2025, section 4.5.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError, nearest
from dither.local._channel import (
    Channel,
    Codes,
    Counts,
    Shares,
    Tally,
    channel_from_dict,
    codes_within,
    sums_to,
)
from dither.local._domain import Domain, column
from dither.local._guarantee import ClassPair, Guarantee
from dither.local._numbers.numeric import NumericChannel
from dither.local._oracles import FiniteChannel
from dither.local._results import Distribution
from dither.numeric import Words, secure_words

if TYPE_CHECKING:
    from dither.local._aggregate import Aggregate
    from dither.local._numbers.weighted import Weighted


ASSUMES = "each person's choice of class does not depend on the value; reports show the choice"


@dataclass(frozen=True, slots=True, init=False)
class Personalised(Channel):
    """Channels among which people choose.

    Parameters
    ----------
    classes : mapping of str to channel
        At least one channel with a matrix by name, all over the same values.

    Raises
    ------
    ArgumentError
        `classes` is empty, or its channels have no matrix or differ in their values.

    Notes
    -----
    Guarantee. A report keeps the promise of the channel that was chosen, between any two values of
    one person. The choice is not protected, so it must not depend on the value. `Personal` does
    the same for channels of any kind, chosen by their place in a list; here they have names, and
    one likelihood can pool them.

    References
    ----------
    Chen, Ye, Zhang and Shu, "SDLDP", Journal of Cyber Security 2025, section 4.5.

    Examples
    --------
    >>> from dither import local
    >>> channel = Personalised({
    ...     "all rare": local.SDGRR(4, high={2, 3}, epsilon=1),
    ...     "one rare": local.SDGRR(4, high={3}, epsilon=1),
    ... })
    >>> reports = channel.privatize([0, 0, 3], ["all rare", "one rare", "one rare"])
    >>> channel.aggregate(reports).n
    3
    """

    kind: ClassVar[str] = "personalised"
    unbiased: ClassVar[bool] = False

    domain: Domain
    """Codes class·k + code, of the class and the value's code within it."""
    epsilon: Fraction
    names: tuple[str, ...]
    channels: tuple[FiniteChannel, ...]

    def __init__(self, classes: Mapping[str, FiniteChannel]) -> None:
        if not isinstance(classes, Mapping) or not classes:
            raise ArgumentError("classes must be a mapping of at least one name to a channel")
        names, channels = tuple(classes), tuple(classes.values())
        if not all(isinstance(name, str) and name for name in names):
            raise ArgumentError("classes must have texts as names")
        if not all(isinstance(c, FiniteChannel) for c in channels):
            raise ArgumentError("classes must be channels with a matrix, such as SDGRR or SDPM")
        first = channels[0]
        if any(c.domain != first.domain or _interval(c) != _interval(first) for c in channels):
            raise ArgumentError("classes must be channels over the same values")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "channels", channels)
        object.__setattr__(self, "epsilon", max(c.guarantee.epsilon for c in channels))
        object.__setattr__(self, "domain", Domain(len(names) * len(first.domain)))

    def settings(self) -> dict[str, Any]:
        """Names and channels, in order."""
        pairs = zip(self.names, self.channels, strict=True)
        return {"classes": [[name, channel.to_dict()] for name, channel in pairs]}

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Channel:
        """The channel that `settings` describes."""
        found = {name: channel_from_dict(made) for name, made in settings["classes"]}
        return cls(found)  # type: ignore[arg-type]  # checked by the class

    @property
    def guarantee(self) -> Guarantee:
        """All classes' promises in one matrix; between two choices nothing is promised."""
        pairs: dict[tuple[str, str], ClassPair] = {}
        parts = []
        for name, channel in zip(self.names, self.channels, strict=True):
            # A delta at a class's own epsilon bounds that at the greatest, which is shown.
            found = channel.guarantee
            parts += [(name, c, found) for c in found.classes]
        labels = tuple(f"{name}: {c}" for name, c, _ in parts)
        for label, (name, c, found) in zip(labels, parts, strict=True):
            for other, (their_name, their_c, _) in zip(labels, parts, strict=True):
                same = name == their_name
                pairs[label, other] = (
                    found.pairs[c, their_c] if same else ClassPair(1.0, float("inf"))
                )
        return Guarantee(self.epsilon, labels, pairs, ASSUMES)

    def privatize(self, values: Any, choices: Any = None) -> Any:
        """Randomise on the device by the class that the person chose.

        Parameters
        ----------
        values : one value, or a column, shape (n,)
        choices : the name of a class, or a column of names, shape (n,)
            One name holds for all values.

        Raises
        ------
        ArgumentError
            A value is missing or outside the domain, a name is unknown, or there are not as many
            choices as values.
        """
        if choices is None:
            raise ArgumentError("choices must say which class each person chose")
        single = isinstance(values, str) or np.isscalar(values) or not hasattr(values, "__len__")
        given = [values] if single else values
        codes = self.encode(given, choices, secure_words())
        reports = self.draw(codes, secure_words())
        return int(reports[0]) if single else reports

    def encode(self, values: Any, choices: Any, words: Words) -> Codes:
        """Codes of values and chosen classes; numbers are rounded as the class asks."""
        given = column(values)
        if not isinstance(choices, Iterable):
            raise ArgumentError("choices must be the name of a class, or a column of names")
        names = [choices] * given.size if isinstance(choices, str) else list(choices)
        if not all(isinstance(name, str) for name in names):
            raise ArgumentError("choices must be names of classes, which are texts")
        if len(names) != given.size:
            raise ArgumentError("choices must be as many as values")
        place = {name: i for i, name in enumerate(self.names)}
        for name in set(names):
            if name not in place:
                raise ArgumentError(f"unknown class{nearest(str(name), self.names)}")
        chosen = np.fromiter((place[name] for name in names), np.int64, given.size)
        codes = np.zeros(given.size, dtype=np.int64)
        for i, channel in enumerate(self.channels):
            mine = np.flatnonzero(chosen == i)
            if isinstance(channel, NumericChannel):
                found = channel.interval.round(given[mine], words, apart=channel.apart)
            else:
                found = channel.domain.encode(given[mine])
            codes[mine] = found + i * len(channel.domain)
        return codes

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """Reports of codes, each class by its own channel."""
        k, reports = len(self.channels[0].domain), np.zeros(codes.size, dtype=np.int64)
        for i, (channel, begin) in enumerate(zip(self.channels, self._begins, strict=False)):
            mine = np.flatnonzero(codes // k == i)
            reports[mine] = begin + channel.draw(codes[mine] % k, words)
        return reports

    @property
    def _begins(self) -> list[int]:
        """Where each class's reports begin, and where the last's end."""
        return [0, *np.cumsum([c.outputs for c in self.channels]).tolist()]

    @property
    def report_bytes(self) -> int:
        """The fewest bytes that hold the number of any class's report."""
        return max(1, -(-(self.features - 1).bit_length() // 8))

    @property
    def features(self) -> int:
        """One count for each report of each class."""
        return self._begins[-1]

    def tally(self, reports: Any) -> Tally:
        """How often each report occurred."""
        codes, bad = codes_within(reports, self.features)
        return np.bincount(codes, minlength=self.features).astype(np.int64), codes.size, bad

    def possible(self, counts: Counts, n: int) -> bool:
        """Every report counts once."""
        return sums_to(counts, n)

    def split(self, aggregate: Aggregate) -> dict[str, Aggregate]:
        """An aggregate of each class, by name."""
        from dither.local._aggregate import Aggregate

        if aggregate.channel.hash != self.hash:
            raise ArgumentError("aggregate must be of this channel")
        begins = self._begins
        parts = [aggregate.counts[a:b] for a, b in pairwise(begins)]
        return {
            name: Aggregate(channel, part, int(part.sum()))
            for name, channel, part in zip(self.names, self.channels, parts, strict=True)
        }

    def pooled(self, aggregate: Aggregate, **options: Any) -> Distribution:
        """One distribution that makes all reports likely: the better estimate.

        Parameters
        ----------
        aggregate : Aggregate
        **options
            As for `dither.local.em`.
        """
        from dither.local._numbers.em import pooled_em

        parts = list(self.split(aggregate).values())
        return pooled_em(parts, notes=(f"Assumes: {ASSUMES}.",), **options)

    def weighted(self, aggregate: Aggregate, **options: Any) -> Weighted:
        """The classes' estimates by weights n_i/σ_i², as the paper meant.

        Parameters
        ----------
        aggregate : Aggregate
        **options
            As for `dither.local.em`, which estimates each class's mean; not for lists of values.
        """
        from dither.local._numbers.weighted import weighted

        return weighted(self, aggregate, **options)

    def decode(self, counts: Counts, n: int) -> Shares:
        """Refused: use `pooled` or `weighted`."""
        raise ArgumentError(
            "classes are combined by channel.pooled(aggregate) or channel.weighted(aggregate)"
        )

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Refused; see `decode`."""
        return self.decode(np.zeros(0, dtype=np.int64), 0)

    def likelihoods(self, reports: npt.NDArray[Any]) -> Shares:
        """Of the values of the report's class; those of another class have none."""
        k, found = len(self.channels[0].domain), np.zeros((reports.size, len(self.domain)))
        for i, (channel, (first, last)) in enumerate(
            zip(self.channels, pairwise(self._begins), strict=True)
        ):
            mine = np.flatnonzero((reports >= first) & (reports < last))
            found[mine, i * k : (i + 1) * k] = channel.likelihoods(reports[mine] - first)
        return found

    def guessed(self, prior: Shares | None) -> Shares:
        """Class by class: the report shows the class."""
        parts = [None] * len(self.channels) if prior is None else np.split(prior, len(self.names))
        found = []
        for channel, part in zip(self.channels, parts, strict=True):
            whole = None if part is None or not part.sum() else part / part.sum()
            found.append(channel.attack(whole).per_value)
        return np.concatenate(found)

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """Each class's counts by its own channel."""
        parts = np.split(histogram, len(self.channels))
        pairs = zip(self.channels, parts, strict=True)
        return np.concatenate([channel.simulate(part, rng) for channel, part in pairs])


def _interval(channel: FiniteChannel) -> str:
    if not isinstance(channel, NumericChannel):
        return ""
    return json.dumps(channel.interval.to_dict())
