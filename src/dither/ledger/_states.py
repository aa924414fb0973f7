"""What each block of an account has spent: constant on stretches of blocks, exact, small.

A state is a function from the number of a block to what it has spent, written as the numbers at
which it changes, from minus infinity on; and what blocks have spent that go by a name. One function
has one text, so that the hash of the text is the hash of the function.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from dither.blocks._sets import BlockSet, Range
from dither.ledger._entries import UNIT
from dither.privacy._charge import Charge
from dither.privacy._promise import Promise

__all__ = ["NOTHING", "NO_SPENDING", "BlockState", "Units", "charge_of", "units_of"]

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


@dataclass(frozen=True, slots=True)
class BlockState:
    """What each block has spent.

    Parameters
    ----------
    amounts : tuple of Units
        Each once, in the order in which stretches and then names have them first.
    starts : tuple of (int or None)
        Where each stretch of blocks begins; the first at minus infinity, ``None``. Each ends before
        the next one, and has spent something else than that one.
    which : tuple of int
        By stretch: the place of its amount in ``amounts``.
    named : mapping of str to int
        The same of blocks that go by a name; one that is not there has spent nothing.
    """

    amounts: tuple[Units, ...] = (NOTHING,)
    starts: tuple[int | None, ...] = (None,)
    which: tuple[int, ...] = (0,)
    named: Mapping[str, int] = field(default_factory=dict)

    def plus(self, blocks: BlockSet, charge: Units) -> tuple[BlockState, set[Units]]:
        """The state after every block of a set was charged, and what these have spent then."""
        amounts: list[Units] = []
        places: dict[Units, int] = {}

        def place(units: Units) -> int:
            found = places.setdefault(units, len(amounts))
            if found == len(amounts):
                amounts.append(units)
            return found

        # By place in the old amounts: the place in the new ones, charged or not.
        kept, charged = [-1] * len(self.amounts), [-1] * len(self.amounts)
        # Where the inside of each range begins, and where it has ended.
        cuts = []
        for low, high in blocks.ranges:
            if low is not None:
                cuts.append(low)
            if high is not None:
                cuts.append(high + 1)
        bounds = list(self.starts[1:])
        beyond = max(cuts[-1:] + bounds[-1:], default=0) + 1
        cuts.append(beyond)
        bounds.append(beyond)
        inside = bool(blocks.ranges) and blocks.ranges[0][0] is None
        starts: list[int | None] = []
        which: list[int] = []
        at: int | None = None
        piece = cut = 0
        last = -1
        while at != beyond:
            old = self.which[piece]
            if inside:
                new = charged[old]
                if new < 0:
                    new = charged[old] = place(added(self.amounts[old], charge))
            else:
                new = kept[old]
                if new < 0:
                    new = kept[old] = place(self.amounts[old])
            if new != last:
                starts.append(at)
                which.append(new)
                last = new
            bound, end = bounds[piece], cuts[cut]
            at = bound if bound < end else end
            if at == bound:
                piece += 1
            if at == end:
                cut += 1
                inside = not inside
        # What lies beyond the last cut goes on as it was there: ranges alone are charged.
        totals = {amounts[new] for new in charged if new >= 0}
        named: dict[str, int] = {}
        for name in sorted({*self.named, *blocks.named}):
            units = self.of(name)
            if name in blocks.named:
                units = added(units, charge)
                totals.add(units)
            if units != NOTHING:
                named[name] = place(units)
        return BlockState(tuple(amounts), tuple(starts), tuple(which), named), totals

    def of(self, block: int | str) -> Units:
        """What one block has spent."""
        if isinstance(block, str):
            return self.amounts[self.named[block]] if block in self.named else NOTHING
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            start = self.starts[middle]
            if start is None or start <= block:
                low = middle
            else:
                high = middle
        return self.amounts[self.which[low]]

    def stretches(self) -> Iterator[tuple[Range, Units]]:
        """Every stretch with what each of its blocks has spent, from the first to the last."""
        ends = [*(start - 1 for start in self.starts[1:] if start is not None), None]
        for start, end, place in zip(self.starts, ends, self.which, strict=True):
            yield (start, end), self.amounts[place]

    def within(self, blocks: BlockSet) -> Iterator[tuple[Range | str, Units]]:
        """The same of a set of blocks alone, and then those of it that go by a name."""
        held = list(self.stretches())
        piece = 0
        for low, high in blocks.ranges:
            while True:
                (start, end), units = held[piece]
                if low is not None and end is not None and end < low:
                    piece += 1
                    continue
                first = low if start is None or (low is not None and low > start) else start
                if end is None or (high is not None and high <= end):
                    yield (first, high), units
                    break
                yield (first, end), units
                piece += 1
        for name in sorted(blocks.named):
            yield name, self.of(name)

    def text(self) -> str:
        """The one text of this state."""
        return json.dumps(
            {
                "amounts": self.amounts,
                "named": dict(self.named),
                "starts": self.starts,
                "which": self.which,
            },
            sort_keys=True,
            separators=(",", ":"),
        )

    @classmethod
    def from_text(cls, text: str) -> BlockState:
        """Read back what `text` wrote; its hash says whether it is that.

        Raises
        ------
        ValueError, KeyError, TypeError
            It is something else.
        """
        held = json.loads(text)
        return cls(
            tuple((e, d, r, rd) for e, d, r, rd in held["amounts"]),
            tuple(held["starts"]),
            tuple(held["which"]),
            dict(held["named"]),
        )


NO_SPENDING = BlockState()
"""Of an account that was not charged yet."""
