"""What each block of an account has spent: constant on stretches of blocks, exact, small.

A state is a function from the number of a block to what it has spent, written as the numbers at
which it changes, from minus infinity on; and what blocks have spent that go by a name. One function
has one text, so that the hash of the text is the hash of the function.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

from dither.blocks._sets import BlockSet, Range
from dither.ledger._entries import UNIT
from dither.privacy._charge import Charge
from dither.privacy._promise import Promise

__all__ = [
    "NOTHING",
    "NO_SPENDING",
    "BlockState",
    "Units",
    "charge_of",
    "grain",
    "share",
    "units_of",
]

Units = tuple[int | None, int, int | None, int]
"""Epsilon, delta, rho and the rho's delta in whole numbers of ``UNIT``; ``None`` is infinite."""

NOTHING: Units = (0, 0, 0, 0)


def units_of(charge: Charge) -> Units:
    """A charge in whole numbers of ``UNIT``, each rounded up."""
    up = charge.rounded_up(UNIT)
    return (
        None if up.epsilon is None else int(up.epsilon / UNIT),
        int(up.delta / UNIT),
        None if up.rho is None else int(up.rho / UNIT),
        int(up.rho_delta / UNIT),
    )


def charge_of(units: Units, promise: Promise | None = None) -> Charge:
    """The charge of whole numbers of ``UNIT``."""
    epsilon, delta, rho, rho_delta = units
    return Charge(
        None if epsilon is None else epsilon * UNIT,
        delta * UNIT,
        None if rho is None else rho * UNIT,
        rho_delta * UNIT,
        promise,
    )


def added(one: Units, two: Units) -> Units:
    """The sum of two amounts."""
    return (
        None if one[0] is None or two[0] is None else one[0] + two[0],
        one[1] + two[1],
        None if one[2] is None or two[2] is None else one[2] + two[2],
        one[3] + two[3],
    )


def grain(blocks: BlockSet | None) -> Fraction:
    """What a charge of a set of blocks is rounded up to: so many ``UNIT`` as it has steps."""
    return UNIT if blocks is None else UNIT * blocks.steps


def share(charge: Units, blocks: BlockSet) -> Units:
    """What each of a set of blocks bears of a charge: all of it, or its part, rounded up.

    Blocks that are read in parallel are read by as many steps of one cost, and the charge is that
    of all of them together: its part, rounded up, is no less than what one step costs.
    """
    if not blocks.parallel:
        return charge
    epsilon, delta, rho, rho_delta = charge
    steps = blocks.steps
    return (
        None if epsilon is None else -(-epsilon // steps),
        -(-delta // steps),
        None if rho is None else -(-rho // steps),
        -(-rho_delta // steps),
    )


@dataclass(frozen=True, slots=True)
class BlockState:
    """What each block has spent.

    Parameters
    ----------
    bounds : tuple of int
        Where a stretch of blocks begins that has spent something else than the one before, in
        ascending order. The first stretch comes from minus infinity, the last has no end.
    spent : tuple of Units
        What each block of a stretch has spent; one stretch more than there are bounds.
    named : mapping of str to Units
        The same of blocks that go by a name; one that is not there has spent nothing.
    said : tuple of str or None
        The text of what each stretch has spent, where it is known: a charge changes few of them.
    """

    bounds: tuple[int, ...] = ()
    spent: tuple[Units, ...] = (NOTHING,)
    named: Mapping[str, Units] = field(default_factory=dict)
    said: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    def plus(self, blocks: BlockSet, charge: Units) -> tuple[BlockState, set[Units]]:
        """The state after every block of a set was charged, and what these have spent then."""
        charge = share(charge, blocks)
        totals: set[Units] = set()
        # Two stretches that differ do so when both are charged, if by something finite.
        few = len(blocks.ranges) <= FEW and charge[0] is not None and charge[2] is not None
        if few and (one := self._one(blocks, charge)) is not None:
            return one
        charged = self._spliced if few else self._swept
        bounds, spent, said = charged(blocks.ranges, charge, totals)
        named = self.named
        if blocks.named:
            named = dict(named)
            for name in blocks.named:
                units = added(self.of(name), charge)
                totals.add(units)
                if units != NOTHING:
                    named[name] = units
        return BlockState(tuple(bounds), tuple(spent), named, said), totals

    def _one(self, blocks: BlockSet, charge: Units) -> tuple[BlockState, set[Units]] | None:
        """The same of a range that is a stretch and stays one, which is most common."""
        if len(blocks.ranges) != 1 or blocks.named:
            return None
        low, high = blocks.ranges[0]
        bounds, spent = self.bounds, self.spent
        if low is None or high is None:
            return None
        at = bisect_left(bounds, low) + 1
        if not at < len(bounds) or bounds[at - 1] != low or bounds[at] != high + 1:
            return None
        units = added(spent[at], charge)
        if units in (spent[at - 1], spent[at + 1]):
            return None
        said = self.said
        if said is None:
            said = tuple(said_each(spent))
        said = said[:at] + (said_one(units),) + said[at + 1 :]  # noqa: RUF005 - quicker
        after = spent[:at] + (units,) + spent[at + 1 :]  # noqa: RUF005
        return BlockState(bounds, after, self.named, said), {units}

    def _spliced(
        self, ranges: Sequence[Range], charge: Units, totals: set[Units]
    ) -> tuple[list[int], list[Units], tuple[str, ...]]:
        """A few ranges: what lies beside them stays as it is."""
        bounds, spent, said = list(self.bounds), list(self.spent), list(self._texts())

        def cut(at: int) -> int:
            """Let a stretch begin here; its place."""
            place = bisect_left(bounds, at)
            if place == len(bounds) or bounds[place] != at:
                bounds.insert(place, at)
                spent.insert(place + 1, spent[place])
                said.insert(place + 1, said[place])
            return place + 1

        def join(place: int) -> None:
            """Let a stretch go on where the next has spent the same."""
            if 0 < place < len(spent) and spent[place - 1] == spent[place]:
                del bounds[place - 1], spent[place], said[place]

        for low, high in ranges:
            first = 0 if low is None else cut(low)
            end = len(spent) if high is None else cut(high + 1)
            grown = [added(units, charge) for units in spent[first:end]]
            totals.update(grown)
            spent[first:end] = grown
            said[first:end] = said_each(grown)
            join(end)
            join(first)
        return bounds, spent, tuple(said)

    def _swept(
        self, ranges: Sequence[Range], charge: Units, totals: set[Units]
    ) -> tuple[list[int], list[Units], None]:
        """Many ranges: one pass over stretches and ranges together."""
        # Where the inside of each range begins, and where it has ended.
        cuts = []
        for low, high in ranges:
            if low is not None:
                cuts.append(low)
            if high is not None:
                cuts.append(high + 1)
        ends = list(self.bounds)
        beyond = max(cuts[-1:] + ends[-1:], default=0) + 1
        cuts.append(beyond)
        ends.append(beyond)
        inside = bool(ranges) and ranges[0][0] is None
        grown: dict[Units, Units] = {}
        bounds: list[int] = []
        spent: list[Units] = []
        at = beyond - 1
        stretch = cut = 0
        last = None
        while at != beyond:
            units = self.spent[stretch]
            if inside:
                more = grown.get(units)
                if more is None:
                    more = grown[units] = added(units, charge)
                units = more
            if units != last:
                if last is not None:
                    bounds.append(at)
                spent.append(units)
                last = units
            end, edge = ends[stretch], cuts[cut]
            at = end if end < edge else edge
            if at == end:
                stretch += 1
            if at == edge:
                cut += 1
                inside = not inside
        totals.update(grown.values())
        return bounds, spent, None

    def of(self, block: int | str) -> Units:
        """What one block has spent."""
        if isinstance(block, str):
            return self.named.get(block, NOTHING)
        return self.spent[bisect_right(self.bounds, block)]

    def stretches(self) -> Iterator[tuple[Range, Units]]:
        """Every stretch with what each of its blocks has spent, from the first to the last."""
        starts = (None, *self.bounds)
        ends = (*(bound - 1 for bound in self.bounds), None)
        yield from zip(zip(starts, ends, strict=True), self.spent, strict=True)

    def within(self, blocks: BlockSet) -> Iterator[tuple[Range | str, Units]]:
        """The same of a set of blocks alone, and then those of it that go by a name."""
        for low, high in blocks.ranges:
            first = 0 if low is None else bisect_right(self.bounds, low)
            last = len(self.bounds) if high is None else bisect_right(self.bounds, high)
            for place in range(first, last + 1):
                start = low if place == first else self.bounds[place - 1]
                end = high if place == last else self.bounds[place] - 1
                yield (start, end), self.spent[place]
        for name in sorted(blocks.named):
            yield name, self.of(name)

    def text(self) -> str:
        """The one text of this state: canonical JSON.

        ``starts`` has where each stretch begins, ``which`` what its blocks have spent, by its place
        in ``amounts``; there each amount stands once, in the order in which stretches, and then
        names in alphabetical order, have them first.
        """
        said = self._texts()
        # In the order in which they come first.
        amounts = dict.fromkeys(said)
        names = sorted(self.named)
        held = said_each([self.named[name] for name in names]) if names else []
        if names:
            amounts |= dict.fromkeys(held)
        places = dict(zip(amounts, numbers(len(amounts)), strict=True))
        which = ",".join(map(places.__getitem__, said))
        named = ",".join(
            [f"{json.dumps(name)}:{places[one]}" for name, one in zip(names, held, strict=True)]
        )
        return (
            f'{{"amounts":[{",".join(amounts)}],"named":{{{named}}},'
            f'"starts":[{said_bounds(self.bounds)}],"which":[{which}]}}'
        )

    def _texts(self) -> Sequence[str]:
        """The text of what each stretch has spent."""
        return said_each(self.spent) if self.said is None else self.said

    @classmethod
    def from_text(cls, text: str) -> BlockState:
        """Read back what `text` wrote; its hash says whether it is that.

        Raises
        ------
        ValueError, KeyError, TypeError, IndexError
            It is something else.
        """
        held = json.loads(text)
        amounts: list[Units] = [(e, d, r, rd) for e, d, r, rd in held["amounts"]]
        return cls(
            tuple(held["starts"][1:]),
            tuple([amounts[place] for place in held["which"]]),
            {name: amounts[place] for name, place in held["named"].items()},
        )


FEW = 16
"""From more ranges than these on, one pass over all of them is quicker."""


def said_each(spent: Sequence[Units]) -> list[str]:
    """Amounts in canonical JSON, each written once."""
    if len(spent) == 1:
        return [said_one(spent[0])]
    texts = {units: said_one(units) for units in dict.fromkeys(spent)}
    return [texts[units] for units in spent]


def said_one(units: Units) -> str:
    epsilon, delta, rho, rho_delta = units
    return (
        f"[{'null' if epsilon is None else epsilon},{delta},"
        f"{'null' if rho is None else rho},{rho_delta}]"
    )


@lru_cache(maxsize=64)
def numbers(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


@lru_cache(maxsize=64)
def said_bounds(bounds: tuple[int, ...]) -> str:
    return ",".join(["null", *map(str, bounds)])


NO_SPENDING = BlockState()
"""Of an account that was not charged yet."""
