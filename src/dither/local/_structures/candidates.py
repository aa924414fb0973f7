"""Sets of two and more items: how many people hold each of some candidates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel, DomainLike
from dither.local._coins import exp_bounds
from dither.local._domain import Domain, Value, bind, collection
from dither.local._estimates.postprocess import no_rule
from dither.local._estimates.results import Estimate, checked_options, shares_of
from dither.local._frequency.grr import GRR
from dither.local._limits import checked_epsilon
from dither.local._structures.item_sets import (
    drawn_slots,
    item_codes,
    of_slots,
)
from dither.local._structures.parts import (
    Maker,
    PartCounts,
    Reports,
    Structure,
    given,
    made_part,
)
from dither.numeric import Words
from dither.numeric import _directed as directed

_MOST_SETS = 1 << 12
_MOST_EPSILON = 40
_CHUNK = 1 << 24


class _Candidates(Structure):
    """People's sets, seen through candidates: which of them a person holds whole."""

    items: Domain
    sets: tuple[tuple[Value, ...], ...]
    epsilon: Fraction

    def _bind(self, items: DomainLike, sets: Any, epsilon: Any) -> None:
        domain = Domain(items)
        bind(self, items=domain, sets=_checked(domain, sets), epsilon=checked_epsilon(epsilon))
        if len(set(self.names)) < len(self.sets):
            raise ArgumentError("sets must be told apart by the texts of their items")

    @property
    def names(self) -> tuple[str, ...]:
        """Of the candidates, as estimates name them: ``"bread + milk"``."""
        return tuple(" + ".join(map(str, one)) for one in self.sets)

    def held(self, records: Any) -> npt.NDArray[np.bool_]:
        """Whether each person holds each candidate whole, shape (n, candidates)."""
        codes, lengths = item_codes(self.items, records)
        places = [self.items.encode(list(one)) for one in self.sets]
        found = np.empty((lengths.size, len(self.sets)), dtype=bool)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        step = max(1, _CHUNK // len(self.items))
        for start in range(0, lengths.size, step):
            part = lengths[start : start + step]
            has = np.zeros((part.size, len(self.items)), dtype=bool)
            mine = codes[ends[start] : ends[start + part.size]]
            has[np.repeat(np.arange(part.size), part), mine] = True
            for place, one in enumerate(places):
                found[start : start + step, place] = has[:, one].all(axis=1)
        return found

    def settings(self) -> dict[str, Any]:
        """Items, candidates, slots or the most that is counted, and epsilon."""
        return {
            "items": self.items.to_dict(),
            "sets": [list(one) for one in self.sets],
            "epsilon": str(self.epsilon),
        }


def _checked(items: Domain, sets: Any) -> tuple[tuple[Value, ...], ...]:
    if isinstance(sets, Mapping) or not collection(sets):
        raise ArgumentError("sets must be a list of sets of items")
    found = []
    for one in sets:
        if not collection(one):
            raise ArgumentError("sets must be a list of sets of items, each a list")
        listed = list(one)
        codes = items.encode(listed) if listed else np.zeros(0, dtype=np.int64)
        if not codes.size or np.unique(codes).size < codes.size:
            raise ArgumentError("sets must each have at least one item, and none twice")
        found.append(tuple(items.values[code] for code in np.sort(codes).tolist()))
    if not 1 <= len(found) <= _MOST_SETS:
        raise ArgumentError(f"sets must be from 1 to {_MOST_SETS:,}")
    if len(set(found)) < len(found):
        raise ArgumentError("sets must all be different")
    return tuple(found)


@dataclass(frozen=True, init=False)
class CandidateSets(_Candidates):
    """How many people hold each of some sets of items.

    Parameters
    ----------
    items : Domain, int or list
        All items there are.
    sets : list of list of items
        The candidates, at most 4,096, each of one item or more: public, such as those that
        `FrequentItemSets` finds likely.
    epsilon : number
        For a person's whole set; from 2**-32 to 40.
    padding : int
        Slots, at least 1: about the number of candidates that nine people in ten do not exceed.

    Raises
    ------
    ArgumentError
        An argument is out of range, or a candidate has an item twice or one that there is not.

    Notes
    -----
    Of the candidates that a person holds whole, padded with different dummies to `padding` slots
    (or of all that they hold, if these are more), one is picked at random and reported by
    randomised response over all candidates and dummies.

    Guarantee. epsilon-local DP: neighbours are any two sets of one person, of whatever sizes. Every
    symbol is picked with a chance of at most 1/padding, whatever the set. So with q the least
    chance of a report, and p that of the symbol itself, every report has a chance from q to q +
    (p - q)/padding. Randomised response may then have the epsilon' for which e^epsilon' is
    padding·(e^epsilon - 1) + 1: more than epsilon, and e^epsilon is kept.

    Error. The share of people who hold a candidate is padding times that of its reports, unbiased
    where nobody holds more than `padding` candidates; those who do make every estimate too small,
    by at most the share of them: the result says so.

    References
    ----------
    Wang, Li and Jha, S&P 2018 (padding and sampling, SVIM and SVSM).

    Examples
    --------
    >>> pairs = CandidateSets(["bread", "milk", "wine"], [["bread", "milk"], ["milk", "wine"]],
    ...     epsilon=4, padding=2)
    >>> counts = pairs.aggregate(pairs.privatize([{"bread", "milk"}, {"wine"}] * 4000))
    >>> counts.estimate().top(1)[0][0]
    'bread + milk'
    """

    kind: ClassVar[str] = "candidate-sets"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"items": 3, "sets": [[0], [1, 2]], "epsilon": 1, "padding": 1}, {0}, {1, 2}),
    )

    padding: int
    channel: Channel

    def __init__(
        self, items: DomainLike, sets: Iterable[Sequence[Value]], epsilon: Any, *, padding: int
    ) -> None:
        self._bind(items, sets, epsilon)
        slots = _checks.whole("padding", padding, 1, _MOST_SETS)
        low, _ = exp_bounds(self.epsilon)
        more = directed.log_lower(slots * (low - 1) + 1)
        # Beyond what a channel may have, nothing more is gained.
        own = min(Fraction(_MOST_EPSILON), more) if slots > 1 else self.epsilon
        domain = Domain(len(self.sets) + slots)
        bind(self, padding=slots, channel=GRR(domain, own))

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel, over candidates and dummies."""
        return {"set": self.channel}

    def settings(self) -> dict[str, Any]:
        """Items, candidates, slots and epsilon."""
        return {**super().settings(), "padding": self.padding}

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure that `settings` describe; its part follows from them."""
        settings["items"] = Domain.from_dict(settings["items"])
        return cls(**settings)

    def draw(self, records: Any, words: Words) -> Reports:
        """One report per set, of a sequence of sets of items."""
        held = self.held(records)
        lengths = held.sum(axis=1)
        drawn = drawn_slots(lengths, self.padding, words)
        real = drawn < lengths
        chosen = len(self.sets) + drawn - lengths
        # The drawn-th candidate of those that a person holds.
        place = (np.cumsum(held, axis=1) <= drawn[:, None]).sum(axis=1)
        chosen[real] = place[real]
        return {"set": self.channel.draw(chosen, words)}

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Estimate:
        """Shares of people who hold each candidate."""
        checked_options(options, (), "sets of items")
        no_rule(rule, "sets of items, whose shares need not sum to 1")
        note = f"Shares are too small where people hold more than {self.padding} candidates."
        return of_slots(counts["set"], self.padding, self.names, self.kind, note, confidence)


@dataclass(frozen=True, init=False)
class CandidateCount(_Candidates):
    """How many candidates people hold: what `padding` has to be.

    Parameters
    ----------
    items, sets, epsilon
        As of `CandidateSets`.
    most : int
        Larger numbers count as this one; from 1 to 4,096.
    channel : callable
        Makes the channel from its domain and epsilon: GRR, OUE, OLH, ...

    Notes
    -----
    Guarantee. epsilon-local DP: neighbours are any two sets of one person. One number is reported,
    by a frequency channel.

    References
    ----------
    Wang, Li and Jha, S&P 2018.

    Examples
    --------
    >>> held = CandidateCount(["bread", "milk"], [["bread"], ["milk"]], epsilon=4, most=2)
    >>> counts = held.aggregate(held.privatize([{"bread", "milk"}] * 900 + [{"milk"}] * 100))
    >>> held.padding(counts)
    2
    """

    kind: ClassVar[str] = "candidate-count"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"items": 2, "sets": [[0], [1]], "epsilon": 1, "most": 2}, {0}, {0, 1}),
    )

    most: int
    channel: Channel

    def __init__(
        self,
        items: DomainLike,
        sets: Iterable[Sequence[Value]],
        epsilon: Any,
        *,
        most: int,
        channel: Maker = GRR,
    ) -> None:
        self._bind(items, sets, epsilon)
        bind(self, most=_checks.whole("most", most, 1, _MOST_SETS))
        bind(self, channel=made_part(channel, Domain(self.most + 1), self.epsilon))

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel, over 0 to `most`."""
        return {"count": self.channel}

    def settings(self) -> dict[str, Any]:
        """Items, candidates, the most that is counted, and epsilon."""
        return {**super().settings(), "most": self.most}

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure that `settings` and `parts` describe."""
        settings["items"] = Domain.from_dict(settings["items"])
        return cls(channel=given(parts), **settings)

    def draw(self, records: Any, words: Words) -> Reports:
        """One report per set, of a sequence of sets of items."""
        numbers = np.minimum(self.held(records).sum(axis=1), self.most)
        return {"count": self.channel.draw(numbers, words)}

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Estimate:
        """Shares of people who hold each number of candidates."""
        checked_options(options, (), "numbers of candidates")
        return shares_of(counts["count"], rule, confidence)

    def padding(self, counts: PartCounts, share: float = 0.9) -> int:
        """The least number of candidates, at least 1, that a share of the people do not exceed.

        Parameters
        ----------
        counts : PartCounts
        share : float
            Of the people who hold any; above 0 and at most 1.
        """
        wanted = float(_checks.exact("share", share, above=0, most=1))
        found = counts.estimate("project").shares[1:]
        total = found.sum()
        if total <= 0:
            return 1
        # All of them stay within all, whatever their sum was rounded to.
        return int(np.searchsorted(np.cumsum(found) / total, wanted - 1e-12) + 1)
