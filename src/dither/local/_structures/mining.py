"""Frequent sets of items by rounds: likely items, how many people hold, and sets of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks
from dither._format import Printable
from dither.errors import ArgumentError
from dither.local._channel import DomainLike
from dither.local._domain import Domain, Value, bind, repr_of
from dither.local._estimates.results import Estimate
from dither.local._frequency.local_hash import OLH
from dither.local._guarantee import Guarantee
from dither.local._limits import checked_epsilon
from dither.local._structures.candidates import CandidateCount, CandidateSets
from dither.local._structures.item_sets import ItemSets, flattened
from dither.local._structures.parts import Maker, PartCounts, Structure
from dither.numeric import Words, secure_words

__all__ = ["FrequentItemSets", "FrequentSets", "MiningRound"]

SHARES = {
    "items": Fraction(1, 4),
    "item counts": Fraction(1, 20),
    "items again": Fraction(1, 5),
    "set counts": Fraction(1, 10),
    "sets": Fraction(2, 5),
}
"""Of the people, by round."""

_MOST = 256
_MOST_HELD = 64
_DAMPED = 0.9
"""Of the most frequent item, in the product that guesses a set's share."""

Sets = tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, init=False, repr=False)
class FrequentItemSets:
    """The most frequent sets of items among people's sets, in five rounds.

    Parameters
    ----------
    items : Domain, int or list
        All items there are.
    epsilon : number
        For a person's whole set; from 2**-32 to 40.
    k : int
        How many sets are looked for, from 1 to 256; sets of one item count, too.
    largest : int
        Items of the largest sets that are looked for, from 2 to 8.
    channel : callable
        Of the first round: makes a channel from its domain and epsilon.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    Each round asks other people. (1) Everybody of a quarter of them reports one of their items: the
    2k most reported stay. (2) One in twenty report how many of these they hold, at most 64: what
    nine in ten do not exceed pads the next round. (3) One in five report one of those that they
    hold: shares of items. Sets of two to `largest` of the k most frequent items are guessed as
    likely as the product of 0.9 times each item's share, over the largest share; the 2k likeliest
    are candidates. (4) One in ten report how many candidates they hold; (5) two in five report one
    of them.

    Guarantee. epsilon-local DP: neighbours are any two sets of one person. Everybody reports once,
    in one round, with the whole epsilon; what a round asks is made of other people's reports.

    Error. Standard errors are those of the last two reports' shares, given the candidates; that a
    frequent set is no candidate, or an item is lost in the first round, has no error bar.

    References
    ----------
    Wang, Li and Jha, "Locally differentially private frequent itemset mining", S&P 2018 (SVIM and
    SVSM).

    Examples
    --------
    >>> plan = FrequentItemSets(["bread", "milk", "wine", "tea"], epsilon=4, k=3)
    >>> found = plan.run([["bread", "milk"]] * 6000 + [["wine"]] * 3000)
    >>> sorted(name for name, _ in found.top(3))
    ['bread', 'bread + milk', 'milk']
    >>> plan.first.name, plan.first.share
    ('items', Fraction(1, 4))
    """

    items: Domain
    epsilon: Fraction
    k: int
    largest: int
    channel: Maker

    def __init__(
        self,
        items: DomainLike,
        epsilon: Any,
        *,
        k: int = 16,
        largest: int = 4,
        channel: Maker = OLH,
    ) -> None:
        bind(self, items=Domain(items), epsilon=checked_epsilon(epsilon))
        bind(self, k=_checks.whole("k", k, 1, _MOST), channel=channel)
        bind(self, largest=_checks.whole("largest", largest, 2, 8))
        _ = self.first  # a channel that promises less is refused before anybody reports

    def __repr__(self) -> str:
        return repr_of(self)

    @property
    def guarantee(self) -> Guarantee:
        """epsilon, of the one report that a person sends."""
        return Guarantee.uniform(self.epsilon)

    @property
    def first(self) -> MiningRound:
        """The round to begin with."""
        found = ItemSets(self.items, self.epsilon, padding=1, channel=self.channel)
        return MiningRound("items", found, self)

    def run(self, records: Any, words: Words | None = None) -> FrequentSets:
        """Play all rounds in this process, over people who are divided by lot.

        Parameters
        ----------
        records : sequence of sets of items
            Of at least 11 people, so that somebody is asked in every round.
        words : Words, optional
            Where chance comes from: the operating system unless it is a simulation.

        Returns
        -------
        FrequentSets

        Raises
        ------
        ArgumentError
            They are no sets of items, or too few.
        """
        flattened(records)  # refuses what are no sets
        people, chance = list(records), words or secure_words()
        if min(round(share * len(people)) for share in SHARES.values()) < 1:
            raise ArgumentError(
                f"records must be of more people: {len(people)} leave nobody to ask in a round"
            )
        order = np.argsort(chance.words(len(people)), kind="stable")
        at, step = 0, self.first
        while True:
            end = at + round(step.share * len(people))
            mine = order[at:end] if step.name != "sets" else order[at:]
            drawn = step.structure.draw([people[i] for i in mine.tolist()], chance)
            found = step.after(step.structure.aggregate(drawn))
            if isinstance(found, FrequentSets):
                return found
            at, step = end, found

    def _likely(self, items: Estimate, singles: Sets) -> Sets:
        """The 2k likeliest sets of two and more of the k most frequent items."""
        order = np.argsort(-items.shares, kind="stable")[: self.k]
        shares = np.maximum(items.shares[order], 1e-9)
        factors = (_DAMPED * shares / shares[0]).tolist()
        best: list[tuple[float, tuple[int, ...]]] = []

        def grow(chosen: tuple[int, ...], product: float) -> None:
            # Items stand by falling share: what is cut off here could only be less likely.
            for i in range(chosen[-1] + 1 if chosen else 0, len(factors)):
                likely = product * factors[i]
                if len(best) >= 2 * self.k and likely <= best[-1][0]:
                    return
                if chosen:
                    best.append((likely, (*chosen, i)))
                    best.sort(key=lambda one: (-one[0], one[1]))
                    del best[2 * self.k :]
                if len(chosen) + 1 < self.largest:
                    grow((*chosen, i), likely)

        grow((), 1.0)
        return tuple(tuple(singles[order[i]][0] for i in one) for _, one in best)


@dataclass(frozen=True, repr=False)
class MiningRound:
    """One round: whom to ask, by what, and what comes after.

    Parameters
    ----------
    name : str
        ``"items"``, ``"item counts"``, ``"items again"``, ``"set counts"`` or ``"sets"``.
    structure : Structure
        What the round's people report by.
    plan : FrequentItemSets
    sets : tuple
        The candidates.
    known : Estimate, optional
        The shares of items, once they are known.
    """

    name: str
    structure: Structure
    plan: FrequentItemSets
    sets: Sets = ()
    known: Estimate | None = field(default=None)

    def __repr__(self) -> str:
        return f"<round {self.name!r}: ask {float(self.share):.0%} of the people>"

    @property
    def share(self) -> Fraction:
        """How many of all the people to ask; none of another round."""
        return SHARES[self.name]

    def after(self, counts: PartCounts) -> MiningRound | FrequentSets:
        """The next round, or what was found.

        Parameters
        ----------
        counts : PartCounts
            Of this round's structure.

        Raises
        ------
        ArgumentError
            They are of another structure, or hold no report.
        """
        if not isinstance(counts, PartCounts) or counts.hash != self.structure.hash:
            raise ArgumentError(f"counts must be those of the structure of round {self.name!r}")
        plan = self.plan
        if self.name == "items":
            singles = tuple((item,) for item, _ in counts.estimate().top(2 * plan.k))
            return self._counting("item counts", singles)
        if isinstance(self.structure, CandidateCount):
            name = "items again" if self.name == "item counts" else "sets"
            slots = self.structure.padding(counts)
            made = CandidateSets(plan.items, self.sets, plan.epsilon, padding=slots)
            return MiningRound(name, made, plan, self.sets, self.known)
        found = counts.estimate()
        if self.name == "sets":
            assert self.known is not None
            return FrequentSets(plan.k, self.known, found)
        assert isinstance(self.structure, CandidateSets)
        likely = plan._likely(found, self.structure.sets)
        if not likely:
            return FrequentSets(plan.k, found, None)
        return self._counting("set counts", likely, found)

    def _counting(self, name: str, sets: Sets, known: Estimate | None = None) -> MiningRound:
        plan = self.plan
        most = min(len(sets), _MOST_HELD)
        made = CandidateCount(plan.items, sets, plan.epsilon, most=most)
        return MiningRound(name, made, plan, made.sets, known)


@dataclass(frozen=True, repr=False)
class FrequentSets(Printable):
    """The most frequent sets that were found, of one item and of more.

    Parameters
    ----------
    k : int
        How many were looked for.
    items : Estimate
        Shares of people who hold each likely item.
    sets : Estimate, optional
        Shares of people who hold each candidate of two and more; None where there was none.
    """

    k: int
    items: Estimate
    sets: Estimate | None

    def __repr__(self) -> str:
        return f"<frequent sets: {', '.join(name for name, _ in self.top(self.k))}>"

    def top(self, k: int) -> list[tuple[str, float]]:
        """The k most frequent sets, with the shares of the people who hold them."""
        most = _checks.whole("k", k, 0)
        found = [one for part in self._parts for one in part.top(len(part.values))]
        return sorted(found, key=lambda one: -one[1])[:most]

    @property
    def _parts(self) -> list[Estimate]:
        return [self.items] if self.sets is None else [self.items, self.sets]

    @property
    def frame(self) -> Any:
        """A Polars frame: value, share, standard_error, lower and upper, by falling share."""
        import polars as pl

        return pl.concat([part.frame for part in self._parts]).sort("share", descending=True)

    def summary(self) -> str:
        """The k most frequent sets, and what their errors leave out."""
        shown = self.frame.head(self.k).select("value", "share", "standard_error").iter_rows()
        lines = [f"{'set':<30}{'share':>8}{'± one s.e.':>13}"]
        lines += [f"{name:<30}{share:>8.3f}{error:>13.3f}" for name, share, error in shown]
        lines.append("errors are given the candidates: a set that was none has no error bar")
        return "\n".join(lines)
