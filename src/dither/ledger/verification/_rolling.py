"""What blocks have spent, charge by charge, and its text: only what a charge moves is said anew.

Of an account with sixty blocks most charges move one amount of sixty. The state after each is
hashed as a text of all, so the other fifty-nine are kept as text, and numbered anew only where an
amount comes or goes that other blocks have too.
"""

from __future__ import annotations

import json
from bisect import bisect_left

from dither.blocks._sets import BlockSet, Range
from dither.ledger._states import (
    FEW,
    BlockState,
    Units,
    added,
    numbers,
    said_bounds,
    said_each,
    said_one,
    share,
)

__all__ = ["RollingState"]

_BYTE = 256
_BYTES = bytes(range(_BYTE))


class RollingState:
    """A `BlockState` that charges change in place.

    Parameters
    ----------
    state : BlockState
        What it begins as.
    """

    __slots__ = (
        "_amounts",
        "_bounds",
        "_coded",
        "_codes",
        "_found",
        "_free",
        "_named",
        "_order",
        "_said",
        "_said_named",
        "_spent",
        "_starts",
        "_which",
    )

    def __init__(self, state: BlockState) -> None:
        self._begin(state)

    def _begin(self, state: BlockState) -> None:
        self._bounds = list(state.bounds)
        self._starts = ""
        """They as text; empty where that is not known."""
        self._found: dict[Range, tuple[int, int]] = {}
        """By range that was charged: the first of its stretches, and the first after it."""
        self._named = {name: state.named[name] for name in sorted(state.named)}
        self._spent = list(state.spent)
        self._said_named = ""
        self._code([*(state.said or said_each(state.spent)), *said_each([*self._named.values()])])

    def _code(self, texts: list[str]) -> None:
        """Give each text of an amount a number that it keeps, whatever comes before it."""
        self._coded = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        self._said = list(self._coded)
        """By code: its text."""
        self._free: list[int] = []
        """Codes of texts that are gone."""
        codes = [self._coded[text] for text in texts]
        # Codes are looked for among themselves, which is quick in bytes.
        few = len(self._said) <= _BYTE
        self._codes: bytearray | list[int] = bytearray(codes) if few else codes
        """Of what each stretch has spent, and then each name."""
        self._ordered()

    def _ordered(self) -> None:
        order = dict.fromkeys(self._codes)
        few = isinstance(self._codes, bytearray)
        self._order: bytearray | list[int] = bytearray(order) if few else list(order)
        """The codes in the order in which blocks have them first."""
        self._amounts: list[str] = []
        """The same as texts; empty where that is not known."""
        self._which = ""
        """Which of them stretches have, as text; empty where that is not known."""

    def state(self) -> BlockState:
        """What it has become."""
        said = tuple([self._said[code] for code in self._codes[: len(self._spent)]])
        return BlockState(tuple(self._bounds), tuple(self._spent), dict(self._named), said)

    def charge(self, blocks: BlockSet, charge: Units) -> None:
        """Charge every block of a set, as `BlockState.plus` does."""
        if len(blocks.ranges) > FEW or blocks.named:
            self._begin(self.state().plus(blocks, charge)[0])
            return
        each = share(charge, blocks) if blocks.parallel else charge
        if each[0] is None or each[2] is None:
            # What is infinite may become alike within a range.
            self._begin(self.state().plus(BlockSet(blocks.ranges), each)[0])
            return
        for held in blocks.ranges:
            self._grow(held, each)

    def _grow(self, held: Range, charge: Units) -> None:
        """Charge a range: what lies beside it stays as it is."""
        place = self._found.get(held)
        if place is None:
            low, high = held
            first = 0 if low is None else self._cut(low)
            end = len(self._spent) if high is None else self._cut(high + 1)
            self._found[held] = first, end
        else:
            first, end = place
        spent = self._spent
        if end - first == 1:
            # Most common.
            units = spent[first] = added(spent[first], charge)
            self._move(first, said_one(units))
        else:
            grown = [added(units, charge) for units in spent[first:end]]
            spent[first:end] = grown
            texts = [self._said[code] for code in self._codes]
            texts[first:end] = said_each(grown)
            self._code(texts)
        if end < len(spent) and spent[end - 1] == spent[end]:
            self._join(end)
        if first and spent[first - 1] == spent[first]:
            self._join(first)

    def _cut(self, at: int) -> int:
        """Let a stretch begin at a block; its place."""
        place = bisect_left(self._bounds, at)
        if place == len(self._bounds) or self._bounds[place] != at:
            self._bounds.insert(place, at)
            self._spent.insert(place + 1, self._spent[place])
            self._codes.insert(place + 1, self._codes[place])
            self._reshaped()
        return place + 1

    def _join(self, place: int) -> None:
        """Let a stretch go on where the next has spent the same."""
        del self._bounds[place - 1], self._spent[place], self._codes[place]
        self._reshaped()

    def _reshaped(self) -> None:
        """Forget what is known of the places of stretches; the order of amounts is as it was."""
        self._found.clear()
        self._starts = self._which = ""

    def _move(self, at: int, text: str) -> None:
        """Let one stretch have spent another amount."""
        codes, coded, said = self._codes, self._coded, self._said
        before = codes[at]
        code = coded.get(text)
        if code is None and codes.count(before) == 1:
            # Nobody else had the old one, and nobody has the new one: it takes its place.
            del coded[said[before]]
            coded[text] = before
            said[before] = text
            if self._amounts:
                self._amounts[self._order.index(before)] = text
            return
        if code is None:
            if self._free:
                code = self._free.pop()
                said[code] = text
            else:
                code = len(said)
                said.append(text)
                if code == _BYTE:
                    self._codes = list(codes)
                    self._ordered()
            coded[text] = code
        self._set(at, code)
        if before not in self._codes:
            del coded[said[before]]
            self._free.append(before)

    def _set(self, at: int, code: int) -> None:
        """Let one stretch have another code, and keep the order as far as it stays."""
        codes, order = self._codes, self._order
        self._which = ""
        if isinstance(codes, list) or isinstance(order, list):
            codes[at] = code
            self._ordered()
            return
        first = codes.find
        before = codes[at]
        moved = [before] if first(before) == at else []
        codes[at] = code
        if code != before and first(code) == at:
            moved.append(code)
        for one in moved:
            if one in order:
                order.remove(one)
        for one in moved:
            if one in codes:
                order.insert(bisect_left(order, first(one), key=first), one)
            self._amounts = []

    def text(self) -> str:
        """The text of what it has become: `BlockState.text`."""
        if not self._which:
            self._number()
        if not self._starts:
            self._starts = said_bounds(tuple(self._bounds))
        if not self._amounts:
            said = self._said
            self._amounts = [said[code] for code in self._order]
        return (
            f'{{"amounts":[{",".join(self._amounts)}],"named":{{{self._said_named}}},'
            f'"starts":[{self._starts}],"which":[{self._which}]}}'
        )

    def _number(self) -> None:
        """Say which amounts blocks have, by their places in the order."""
        codes, order = self._codes, self._order
        known = numbers(len(order))
        if isinstance(codes, bytearray) and isinstance(order, bytearray):
            which = [
                known[place]
                for place in codes.translate(bytes.maketrans(order, _BYTES[: len(order)]))
            ]
        else:
            places = dict(zip(order, known, strict=True))
            which = [places[code] for code in codes]
        if self._named:
            stretches = len(self._spent)
            said = zip(self._named, which[stretches:], strict=True)
            self._said_named = ",".join([f"{json.dumps(name)}:{place}" for name, place in said])
            del which[stretches:]
        self._which = ",".join(which)
