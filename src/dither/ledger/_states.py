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
    return UNIT if blocks is None or not blocks.parallel else UNIT * (len(blocks) or 1)


def share(charge: Units, blocks: BlockSet) -> Units:
    """What each of a set of blocks bears of a charge: all of it, or its part, rounded up.

    Blocks that are read in parallel are read by as many steps of one cost, and the charge is that
    of all of them together: its part, rounded up, is no less than what one step costs.
    """
    if not blocks.parallel:
        return charge
    epsilon, delta, rho, rho_delta = charge
    steps = len(blocks) or 1
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
    """

    bounds: tuple[int, ...] = ()
    spent: tuple[Units, ...] = (NOTHING,)
    named: Mapping[str, Units] = field(default_factory=dict)

    def plus(self, blocks: BlockSet, charge: Units) -> tuple[BlockState, set[Units]]:
        """The state after every block of a set was charged, and what these have spent then."""
        totals: set[Units] = set()
        charge = share(charge, blocks)
        # Two stretches that differ do so when both are charged, if by something finite.
        few = len(blocks.ranges) <= _FEW and charge[0] is not None and charge[2] is not None
        charged = self._spliced if few else self._swept
        bounds, spent = charged(blocks.ranges, charge, totals)
        named = self.named
        if blocks.named:
            named = dict(named)
            for name in blocks.named:
                units = added(self.of(name), charge)
                totals.add(units)
                if units != NOTHING:
                    named[name] = units
        return BlockState(tuple(bounds), tuple(spent), named), totals

    def _spliced(
        self, ranges: Sequence[Range], charge: Units, totals: set[Units]
    ) -> tuple[list[int], list[Units]]:
        """A few ranges: what lies beside them stays as it is."""
        bounds, spent = list(self.bounds), list(self.spent)

        def cut(at: int) -> int:
            """Let a stretch begin here; its place."""
            place = bisect_left(bounds, at)
            if place == len(bounds) or bounds[place] != at:
                bounds.insert(place, at)
                spent.insert(place + 1, spent[place])
            return place + 1

        def join(place: int) -> None:
            """Let a stretch go on where the next has spent the same."""
            if 0 < place < len(spent) and spent[place - 1] == spent[place]:
                del bounds[place - 1], spent[place]

        for low, high in ranges:
            first = 0 if low is None else cut(low)
            end = len(spent) if high is None else cut(high + 1)
            grown = [added(units, charge) for units in spent[first:end]]
            totals.update(grown)
            spent[first:end] = grown
            join(end)
            join(first)
        return bounds, spent

    def _swept(
        self, ranges: Sequence[Range], charge: Units, totals: set[Units]
    ) -> tuple[list[int], list[Units]]:
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
        return bounds, spent

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
        places: dict[Units, int] = {}
        place = places.setdefault
        # What a new amount gets is the number of those before it.
        which = str([place(units, len(places)) for units in self.spent])[1:-1].replace(" ", "")
        named = ",".join(
            [
                f"{json.dumps(name)}:{place(self.named[name], len(places))}"
                for name in sorted(self.named)
            ]
        )
        said = ",".join(map(_said, places))
        return (
            f'{{"amounts":[{said}],"named":{{{named}}},'
            f'"starts":[{_said_bounds(self.bounds)}],"which":[{which}]}}'
        )

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


_FEW = 16
"""From more ranges than these on, one pass over all of them is quicker."""


@lru_cache(maxsize=1 << 14)
def _said(units: Units) -> str:
    return json.dumps(units, separators=(",", ":"))


@lru_cache(maxsize=64)
def _said_bounds(bounds: tuple[int, ...]) -> str:
    return ",".join(["null", *map(str, bounds)])


NO_SPENDING = BlockState()
"""Of an account that was not charged yet."""
