"""People who choose among public channels: an epsilon of their own, or what they call sensitive."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._subjects import Subject
from dither.errors import ArgumentError, nearest
from dither.local._attack import Attack
from dither.local._audited import Coins, one_report
from dither.local._channel import PART_BYTES, Channel, DomainLike
from dither.local._domain import Domain, bind, collection, column
from dither.local._estimates.combining import (
    EM,
    INDEPENDENT,
    METHODS,
    combined_mean,
    combined_shares,
)
from dither.local._estimates.postprocess import no_rule
from dither.local._estimates.results import Result, checked_options, reported
from dither.local._frequency.graded import SDGRR
from dither.local._guarantee import ClassPair, Guarantee
from dither.local._limits import checked_shares, described
from dither.local._numbers.em import em
from dither.local._numbers.numeric import NumericChannel
from dither.local._oracles import FiniteChannel
from dither.local._registry import channel_from_dict
from dither.local._reports.aggregate import Aggregate
from dither.local._structures.parts import PartCounts, Structure
from dither.numeric import Words, secure_words

_ASSUMES = "the choice, which is public, does not depend on the value"


@dataclass(frozen=True, init=False)
class Personal(Structure):
    """A public offer of channels over the same values, of which every person chooses one.

    Parameters
    ----------
    channels : sequence of Channel, or mapping of str to Channel
        At least one. A person's choice is a place in the sequence, or a name.

    Raises
    ------
    ArgumentError
        There is no channel, a name is not a text, or the channels differ in their values.

    Notes
    -----
    Guarantee. A report carries the choice, which is public, and keeps the promise of the channel
    that was chosen, between any two values of one person (`promise`). So the choice itself must not
    depend on the value: anyone who chooses a small epsilon because of what they have to hide has
    said so, and biases the estimate as well.

    Estimate. ``estimate(method=...)`` combines the classes of people who chose alike. With n_c
    reports of class c, f̂_c its unbiased estimate and s_c²/n_c its variance:

    - weights: f̂ = sum of w_c·f̂_c, w_c proportional to n_c/s_c² for each value. s_c² is that of
      uniform shares, so that the weights do not depend on the reports and f̂ stays unbiased;
    - plugin: the same with s_c² at the shares that all the reports suggest, equation (19) of SDLDP
      with the n_c that it leaves out: nearer, at the price of a bias of lower order;
    - population: w_c = n_c/n. The only one that is right for all users where the classes differ;
    - likelihood: the shares that make all reports together likeliest. Channels with a matrix are
      pooled in one expectation maximisation, which uses every class where it is most precise;
      others through the normal law of their estimates, minimising the sum of n_c·(f̂_c - f)' S_c^-1
      (f̂_c - f) over the simplex. Biased, but nearer.

    References
    ----------
    Chen, Ye, Zhang and Shu, "SDLDP", Journal of Cyber Security 2025, section 4.5; Nie et al., IEEE
    TKDE 2019; Shen, Xia and Yu, IEEE TIFS 2021.

    Examples
    --------
    >>> from dither import local
    >>> offer = Personal.of(local.OUE, ["no", "yes"], epsilons=[0.5, 2])
    >>> reports = offer.privatize(["yes"] * 900 + ["no"] * 100, choices=[0, 1] * 500)
    >>> found = offer.aggregate(reports).estimate()
    >>> found.n, abs(found["yes"] - 0.9) < 0.5
    (1000, True)
    >>> offer = Personal({
    ...     "all rare": local.SDGRR(4, high={2, 3}, epsilon=1),
    ...     "one rare": local.SDGRR(4, high={3}, epsilon=1),
    ... })
    >>> reports = offer.privatize([0, 0, 3], ["all rare", "one rare", "one rare"])
    >>> {name: len(mine) for name, mine in reports.items()}
    {'all rare': 1, 'one rare': 2}
    """

    kind: ClassVar[str] = "personal"

    names: tuple[str, ...] | None
    channels: tuple[Channel, ...]

    def __init__(self, channels: Mapping[str, Channel] | Iterable[Channel]) -> None:
        named = isinstance(channels, Mapping)
        listed = collection(channels)
        found = tuple(
            channels.values() if isinstance(channels, Mapping) else channels if listed else ()
        )
        if not found or not all(isinstance(c, Channel) for c in found):
            raise ArgumentError("channels must be a list, or a mapping, of at least one channel")
        names = tuple(channels) if named else None
        if names is not None and not all(isinstance(name, str) and name for name in names):
            raise ArgumentError("channels must have texts as names")
        if any(_values(c) != _values(found[0]) for c in found):
            raise ArgumentError("channels must all be over the same values, of one domain")
        bind(self, names=names, channels=found, epsilon=max(c.epsilon for c in found))

    @classmethod
    def of(
        cls,
        make: Callable[..., Channel],
        domain: DomainLike,
        epsilons: Sequence[Any],
        **options: Any,
    ) -> Personal:
        """One kind of channel at each epsilon of a public list.

        Parameters
        ----------
        make : callable
            A channel's class, such as `GRR` or `OUE`.
        domain : Domain, int or list; or Interval
        epsilons : sequence of numbers
        **options
            Further arguments of the channel.
        """
        if not callable(make):
            raise ArgumentError("make must be a channel's class, such as GRR or OUE")
        if not collection(epsilons):
            raise ArgumentError("epsilons must be a list of numbers")
        try:
            return cls([make(domain, epsilon=e, **options) for e in epsilons])
        except TypeError:
            raise ArgumentError(
                "make must make a channel from a domain, epsilon=... and the other options"
            ) from None

    @property
    def parts(self) -> dict[Any, Channel]:
        """The channels by choice: their names, or their places."""
        return dict(zip(self.names or range(len(self.channels)), self.channels, strict=True))

    @property
    def domain(self) -> Domain:
        """Of every channel."""
        return self.channels[0].domain

    # On the wire

    @property
    def joint(self) -> bool:
        """Whether a report is one number, in the joint list of all named classes' reports."""
        return self.names is not None and all(isinstance(c, FiniteChannel) for c in self.channels)

    @property
    def begins(self) -> list[int]:
        """Where each class's reports begin in the joint list, and where the last's end."""
        sizes = [c.outputs for c in self.channels if isinstance(c, FiniteChannel)]
        return [0, *np.cumsum(sizes).tolist()]

    @property
    def report_bytes(self) -> int:
        """Of the joint number; else two bytes of the choice, and the widest report."""
        if self.joint:
            return max(1, -(-(self.begins[-1] - 1).bit_length() // 8))
        return PART_BYTES + max(channel.report_bytes for channel in self.channels)

    def to_dict(self) -> dict[str, Any]:
        """The offer as a dictionary that JSON holds; `structure_from_dict` reads it."""
        made = [channel.to_dict() for channel in self.channels]
        if self.joint:
            pairs = [list(pair) for pair in zip(self.names or (), made, strict=True)]
            return {"channel": "personalised", "version": 1, "classes": pairs}
        named = {} if self.names is None else {"names": list(self.names)}
        return {"offer": self.kind, "version": 1, "channels": made, **named}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Personal:
        """The offer that `to_dict` wrote.

        Raises
        ------
        ArgumentError
            It is not an offer, is incomplete, or of a newer version.
        """
        marks = tuple(found.get(name) for name in ("offer", "channel", "version"))
        plain = all(v is None or type(v) in (str, int) for v in marks)
        if not plain or marks not in (("personal", None, 1), (None, "personalised", 1)):
            raise ArgumentError("an offer must be of version 1, which this dither knows")
        with described("the channels of the offer are incomplete or unknown"):
            if "classes" in found:
                return cls({name: channel_from_dict(made) for name, made in found["classes"]})
            channels, names = [channel_from_dict(c) for c in found["channels"]], found.get("names")
            return cls(channels if names is None else dict(zip(names, channels, strict=True)))

    def counts_to_dict(self, counts: PartCounts) -> dict[str, Any]:
        """The counts of the classes and what was offered, in a form that JSON holds."""
        about = {"hash": self.hash}
        if self.joint:
            joined = [c for part in counts.parts.values() for c in part.counts.tolist()]
            counted = {"n": counts.n, "rejected": counts.rejected}
            return {"channel": self.to_dict(), **about, "counts": joined, **counted}
        parts = [part.to_dict() for part in counts.parts.values()]
        return {"personal": self.to_dict(), **about, "parts": parts, "lost": counts.lost}

    def counts_from_dict(self, found: Mapping[str, Any]) -> PartCounts:
        """The counts that `counts_to_dict` wrote."""
        if not self.joint:
            parts = [Aggregate.from_dict(part) for part in found["parts"]]
            return PartCounts(self, dict(zip(self.parts, parts, strict=True)), found["lost"])
        split = self.split(np.array(found["counts"]))
        if sum(part.n for part in split.values()) != found["n"]:
            raise ArgumentError("counts must be such as n reports of the offer can have")
        return PartCounts(self, split, found["rejected"])

    def split(self, counts: npt.NDArray[Any]) -> dict[Any, Aggregate]:
        """An aggregate of each class, from counts of the joint list of reports."""
        begins = self.begins
        if counts.shape != (begins[-1],) or counts.dtype.kind not in "iu":
            raise ArgumentError(f"counts must be whole numbers, {begins[-1]:,} of them")
        cut = np.split(counts, begins[1:-1])
        return {
            name: Aggregate(channel, mine, sum(map(int, mine)))
            for (name, channel), mine in zip(self.parts.items(), cut, strict=True)
        }

    # What it promises

    def promise(self, choice: Any) -> Guarantee:
        """What a report with this choice promises."""
        chosen = int(self._choices([choice], 1)[0])
        found: Guarantee = self.channels[chosen].guarantee
        return replace(found, assumes="; ".join(filter(None, (found.assumes, _ASSUMES))))

    @property
    def guarantee(self) -> Guarantee:
        """All choices' promises in one matrix; between two choices nothing is promised."""
        cells = [
            (f"{choice}: {name}", choice, name, channel.guarantee)
            for choice, channel in self.parts.items()
            for name in channel.guarantee.classes
        ]
        pairs = {
            # A delta at a class's own epsilon bounds that at the greatest, which is shown.
            (label, other): mine.pairs[name, their_name]
            if choice == theirs
            else ClassPair(1.0, math.inf)
            for label, choice, name, mine in cells
            for other, theirs, their_name, _ in cells
        }
        epsilon = max(channel.guarantee.epsilon for channel in self.channels)
        return Guarantee(epsilon, tuple(cell[0] for cell in cells), pairs, _ASSUMES)

    def attack(self, prior: Any = None) -> Attack:
        """Success of the Bayesian adversary, to whom a report shows its choice.

        Parameters
        ----------
        prior : array of float, shape (channels, k), optional
            What the adversary knows of the shares of choices and values together. Without, the
            guess is the value that makes the report likeliest; success is given for uniform shares.
        """
        shape = (len(self.channels), len(self.domain))
        pi = np.full(shape, 1 / (shape[0] * shape[1]))
        if prior is not None:
            pi = checked_shares(prior, shape, "prior")
        rows = []
        for channel, row in zip(self.channels, pi, strict=True):
            known = None if prior is None or not row.sum() else row / row.sum()
            rows.append(channel.attack(known).per_value)
        per_value = np.array(rows)
        return Attack(
            success=float((pi * per_value).sum()),
            # The choice is seen, whatever the report says.
            baseline=float(pi.max(axis=1).sum()),
            per_value=per_value,
            per_class={},
            who_is_high=None,
            with_prior=prior is not None,
        )

    # On the device

    def privatize(self, values: Any, choices: Any = None) -> dict[Any, npt.NDArray[Any]]:
        """Randomise each value by the channel that its holder chose.

        Parameters
        ----------
        values : one value, or a column, shape (n,)
        choices : one choice for all, or a column of them, shape (n,)
            Places in `channels`, or their names.

        Returns
        -------
        dict from choice to reports

        Raises
        ------
        ArgumentError
            A value is missing or outside the domain, a choice is not offered, or there are not as
            many choices as values.
        """
        if choices is None:
            raise ArgumentError("choices must say which channel each person chose")
        single = isinstance(values, str) or np.isscalar(values) or not hasattr(values, "__len__")
        return self.draw(([values] if single else values, choices), secure_words())

    def draw(self, records: Any, words: Words) -> dict[Any, npt.NDArray[Any]]:
        """Reports by choice, of a pair (values, choices)."""
        values, choices = records
        given = column(values)
        chosen = self._choices(choices, given.size)
        # All values are read, and a bad one refused, before anything is drawn.
        codes = [_codes(c, given[chosen == i], words) for i, c in enumerate(self.channels)]
        return {
            name: channel.draw(mine, words)
            for (name, channel), mine in zip(self.parts.items(), codes, strict=True)
            if mine.size
        }

    def _choices(self, choices: Any, n: int) -> npt.NDArray[np.int64]:
        """Places in `channels` of n choices."""
        one = isinstance(choices, str | int | np.integer)
        if not one and not isinstance(choices, Iterable):
            raise ArgumentError("choices must be one choice, or a column of them")
        given = column([choices] * n if one else choices)
        if given.size != n:
            raise ArgumentError("choices must be as many as values")
        if self.names is not None:
            if not all(isinstance(name, str) for name in given.tolist()):
                raise ArgumentError("choices must be names of channels, which are texts")
            place = {name: i for i, name in enumerate(self.names)}
            for name in set(given.tolist()):
                if name not in place:
                    raise ArgumentError(f"choices: unknown class{nearest(name, self.names)}")
            return np.array([place[name] for name in given.tolist()], dtype=np.int64)
        if given.dtype.kind not in "iu" and given.size:
            raise ArgumentError("choices must be whole numbers, places in channels")
        if given.size and not (given.min() >= 0 and given.max() < len(self.channels)):
            raise ArgumentError(f"choices must be from 0 to {len(self.channels) - 1}")
        return given.astype(np.int64)

    # On the server

    def aggregate(self, reports: Mapping[Any, Any], *, strict: bool = False) -> PartCounts:
        """Count the reports of each choice; those of a choice that is not offered are dropped."""
        if not isinstance(reports, Mapping):
            raise ArgumentError("reports must be a dictionary from choice to a column of reports")
        known = self.parts
        parts = {c: made.aggregate(reports.get(c, []), strict=strict) for c, made in known.items()}
        unknown = [c for c in reports if isinstance(c, bool) or c not in known]
        lost = sum(len(reports[c]) if hasattr(reports[c], "__len__") else 1 for c in unknown)
        if strict and lost:
            raise ArgumentError(f"reports must be of a choice that is offered: {lost} are not")
        if self.joint:
            lost += sum(part.rejected for part in parts.values())
            parts = {c: replace(part, rejected=0) for c, part in parts.items()}
        return PartCounts(self, parts, lost)

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Result:
        """Shares, or the mean of numbers, from all classes together."""
        method = _checks.choice("method", options.pop("method", "weights"), METHODS)
        full = {choice: part for choice, part in counts.parts.items() if part.n}
        reported(len(full))
        title = f"personal, by {method}"
        pooled = all(isinstance(channel, FiniteChannel) for channel in self.channels)
        if method == "likelihood" and pooled:
            no_rule(rule, "a likelihood, whose shares are at least 0 and sum to 1")
            checked_options(options, EM, "a likelihood")
            return em(list(full.values()), notes=(INDEPENDENT,), **options)
        if isinstance(self.channels[0], NumericChannel):
            no_rule(rule, "numbers")
            return combined_mean(title, counts, full, method, confidence, options)
        checked_options(options, (), "shares by weights")
        return combined_shares(title, counts, full, method, rule, confidence)

    @classmethod
    def audit_subjects(cls, words: Words | None = None) -> Iterator[Subject]:
        """Two high values of a person who chose the second channel."""
        offer = cls([SDGRR(4, {0}, 3), SDGRR(4, {0, 1}, 1)])
        yield one_report("local personal", offer.parts[1], 0, 1, 1, Coins(words))


def _values(channel: Channel) -> Any:
    return channel.interval if isinstance(channel, NumericChannel) else channel.domain


def _codes(channel: Channel, values: Any, words: Words) -> npt.NDArray[np.int64]:
    if isinstance(channel, NumericChannel):
        return channel.interval.round(values, words, apart=channel.apart)
    return channel.domain.encode(values)
