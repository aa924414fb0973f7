"""What most entries of a chain say word for word, compared as text and without reading it.

Most entries are charges and answers. Many that follow one another are compared at once, column by
column. Whatever differs from what is expected in one letter is looked at by itself and in full, by
`Walk`, which accepts all that is accepted here.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dither.blocks._sets import BlockSet
from dither.errors import DitherError
from dither.ledger._block_budget import BlockBudget, limits, within
from dither.ledger._entries import FIRST, FORMAT, UNREADABLE, digest
from dither.ledger._states import BlockState, Units
from dither.ledger.quotas._caps import (
    QuestionQuota,
    UnlockedQuota,
    by_clock,
    current,
    is_own_rule,
)
from dither.ledger.quotas._reserved import Held, is_reservation, room
from dither.ledger.verification._rolling import RollingState
from dither.ledger.verification._rows import (
    AMOUNTS_AT,
    BLOCKS,
    BUDGET,
    HASH,
    KIND,
    NOTE,
    NUMBER,
    PREVIOUS,
    PROMISE,
    SIGNATURE,
    TABLES,
    TIME,
    TOTALS,
    AccountIndex,
    hashed_together,
    units_of,
)
from dither.ledger.verification._standing import AccountStanding, Standing
from dither.ledger.verification._sums import RunningSums
from dither.privacy.accounts._budget import BudgetFilter

__all__ = ["Expectation"]

Change = tuple[AccountStanding, int, Units, BlockState | None]
"""Of an account: its newest charge, and what it and its blocks have spent then."""

Columns = Sequence[Sequence[Any]]
"""The columns of some rows: `COLUMNS`."""

_REMEMBERED = 1 << 14
"""So many sets of blocks that were read before, and accounts charged together, are kept."""
_SHORT = 200
"""Of characters: longer texts of sets are read each time, since many of them would not fit."""


class ExpectedGroup:
    """Accounts that are charged together, and what is alike for all such charges of one hour."""

    __slots__ = ("accounts", "counted", "hashes", "held", "promise")

    def __init__(self, accounts: list[AccountStanding], promise: str, now: str) -> None:
        self.accounts = accounts
        self.promise = promise
        self.held: list[tuple[AccountStanding, list[Held]]] = []
        """What open reservations hold of them."""
        self.counted: list[tuple[AccountStanding, BlockSet | None]] = []
        """Those with blocks, and the window that is charged where it is not what is read."""
        for account in accounts:
            caps = account.caps
            if account.state is not None and isinstance(caps, BlockBudget):
                self.counted.append((account, current(caps, now) if by_clock(caps) else None))
        said = ",".join([f'{account.name}:"{FIRST}"' for account, _ in self.counted])
        self.hashes = len(f'"states":{{{said}}}}}')
        """So many characters say what blocks have spent, at the end of the column ``blocks``."""


class Expectation(Standing):
    """A state that knows what the next charges and answers say."""

    def __init__(self, form: int) -> None:
        super().__init__(form)
        self._read: dict[str, BlockSet] = {}
        self._groups: dict[tuple[str, ...], ExpectedGroup] = {}
        """Accounts that are charged together, as long as no entry of another kind comes."""
        self._rolling: dict[AccountStanding, tuple[BlockState, RollingState]] = {}
        """By account: its state, and the same with its text."""

    def forget(self) -> None:
        """Drop what is only remembered for speed."""
        for remembered in (self._read, self._groups, self._rolling):
            remembered.clear()

    def _alike(self, rows: Sequence[Sequence[Any]]) -> int:
        """How many of some rows, from the first on, can be looked at together."""
        if self.count == 0:
            return 0
        tables, hour = self.tables_text, self.time if self.at == FORMAT else None
        number = 0
        for row in rows:
            if row[TABLES] != tables or row[SIGNATURE] is not None or row[BUDGET] is not None:
                break
            if row[KIND] == "charge":
                if hour is not None and row[TIME] != hour:
                    break
            elif row[KIND] != "answer":
                break
            number += 1
        return number

    def _expected(self, rows: Sequence[Sequence[Any]], index: AccountIndex) -> bool:
        """Whether `_alike` rows are word for word what was expected; then they are counted.

        Where one of them is not, nothing has changed.
        """
        columns = list(zip(*rows, strict=True))
        count, first = len(rows), self.count
        if columns[NUMBER] != tuple(range(first, first + count)):
            return False
        if columns[PREVIOUS] != (self.hash, *columns[HASH][:-1]):
            return False
        charges: Columns = columns
        numbers: Sequence[int] = columns[NUMBER]
        if columns[KIND].count("charge") < count:
            chosen = []
            for number, row in enumerate(rows, first):
                if row[KIND] == "charge":
                    chosen.append(row)
                elif not _plain(row) or number in index.names:
                    return False
            charges = list(zip(*chosen, strict=True))
            numbers = charges[NUMBER] if chosen else ()
        if not all(map(_readable, set(columns[NOTE]))):
            return False
        changes = self._charged(charges, numbers, index) if numbers else []
        if changes is None or not hashed_together(columns, self.at):
            # What was rolled on was not what the chain says.
            self._rolling.clear()
            return False
        for account, number, spent, state in changes:
            account.spent = spent
            account.charged = number
            if state is not None:
                account.state = state
                account.written = number
        self.count += count
        self.hash = columns[HASH][-1]
        return True

    def _charged(
        self, columns: Columns, numbers: Sequence[int], index: AccountIndex
    ) -> list[Change] | None:
        """What charges make of the accounts, if all is as expected but what their hashes cover."""
        groups = self._groups_of(numbers, index)
        if groups is None or columns[PROMISE] != tuple([group.promise for group in groups]):
            return None
        try:
            charges = _amounts(columns)
        except (TypeError, ValueError):
            return None
        newest: dict[AccountStanding, int] = {}
        sums: dict[AccountStanding, RunningSums]
        if len(set(groups)) == 1:
            newest = dict.fromkeys(groups[0].accounts, numbers[-1])
            sums = dict.fromkeys(newest, RunningSums(charges))
        else:
            by_account: dict[AccountStanding, list[Units]] = {}
            for number, group, charge in zip(numbers, groups, charges, strict=True):
                for account in group.accounts:
                    by_account.setdefault(account, []).append(charge)
                    newest[account] = number
            sums = {account: RunningSums(held) for account, held in by_account.items()}
        spent: dict[AccountStanding, Units] = {}
        said: dict[AccountStanding, list[str]] = {}
        for account, held in sums.items():
            spent[account], said[account] = held.after(account)
        if columns[TOTALS] != tuple(_totals(groups, said)):
            return None
        states, read = self._rolled(columns[BLOCKS], groups, charges)
        if states is None:
            return None
        if not all(
            self._bears(account, held.charges, spent[account], states.get(account), read)
            for account, held in sums.items()
        ):
            return None
        for group in set(groups):
            for account, open_ones in group.held:
                caps, state = account.caps, states.get(account)
                if caps is None or not room(
                    caps,
                    spent[account],
                    state,
                    read.get(account),
                    open_ones,
                    account.opened,
                    self.time,
                ):
                    return None
        return [
            (account, newest[account], units, states.get(account))
            for account, units in spent.items()
        ]

    def _groups_of(self, numbers: Sequence[int], index: AccountIndex) -> list[ExpectedGroup] | None:
        """The accounts that the index has for each charge, if no charge of them is unusual."""
        if index.sets and not index.sets.keys().isdisjoint(numbers):
            return None
        found = []
        for names in map(index.names.get, numbers):
            if names is None:
                return None
            group = self._groups.get(names)
            if group is None and (group := self._grouped(names)) is None:
                return None
            found.append(group)
        return found

    def _grouped(self, names: tuple[str, ...]) -> ExpectedGroup | None:
        """Accounts that are charged together, where all are open and none is a reservation."""
        if not self.accounts.keys() >= set(names) or any(map(is_reservation, names)):
            return None
        ordered = sorted(names)
        accounts = [self.accounts[name] for name in ordered]
        if any(account.budget is None for account in accounts):
            return None
        promise = accounts[0].promise_text
        if promise is None or any(account.promise_text != promise for account in accounts):
            return None
        if self.at != FORMAT and (
            self.reservations or not all(isinstance(a.caps, BudgetFilter) for a in accounts)
        ):
            # Earlier formats have no such caps.
            return None
        if len(self._groups) >= _REMEMBERED:
            self._groups.clear()
        group = self._groups[names] = ExpectedGroup(accounts, promise, self.time)
        for name, account in zip(ordered, accounts, strict=True):
            if held := self._held(name, self.time):
                group.held.append((account, held))
        return group

    def _bears(
        self,
        account: AccountStanding,
        charges: Sequence[Units],
        spent: Units,
        state: BlockState | None,
        read: Mapping[AccountStanding, BlockSet],
    ) -> bool:
        """Whether caps that are not for all charges together bear charges of the newest hour.

        Sums only grow, and caps that bear a sum bear every smaller one: so the last sums, of all
        blocks that were charged, say that all before them were borne.
        """
        caps = account.caps
        if isinstance(caps, BlockBudget):
            each = account.each
            return (
                state is not None
                and each is not None
                and all(within(each, units) for _, units in state.within(read[account]))
            )
        if isinstance(caps, QuestionQuota):
            return account.each is not None and all(
                within(account.each, charge) for charge in set(charges)
            )
        if isinstance(caps, UnlockedQuota):
            return within(limits(caps.at(account.opened, self.time)), spent)
        return not is_own_rule(caps)

    def _rolled(
        self,
        column: Sequence[str | None],
        groups: Sequence[ExpectedGroup],
        charges: Sequence[Units],
    ) -> tuple[dict[AccountStanding, BlockState] | None, dict[AccountStanding, BlockSet]]:
        """What blocks have spent after some charges, if their column ``blocks`` is as expected.

        And by account the blocks that were charged.
        """
        rolling: dict[AccountStanding, RollingState] = {}
        sets: dict[AccountStanding, dict[int, BlockSet]] = {}
        for blocks, group, charge in zip(column, groups, charges, strict=True):
            counted = group.counted
            if blocks is None and not counted:
                continue
            if blocks is None or not counted:
                return None, {}
            # As written by `blocks_json`: hashes come last, and each is as long.
            begins = blocks[: -group.hashes]
            read = self._reading(begins)
            hashes = []
            for account, window in counted:
                charged = read if window is None else window
                if charged is None:
                    return None, {}
                state = rolling.get(account)
                if state is None:
                    state = rolling[account] = self._rolling_of(account)
                    sets[account] = {}
                state.charge(charged, charge)
                sets[account][id(charged)] = charged
                hashes.append(f'{account.name}:"{digest(state.text())}"')
            if blocks != f'{begins}"states":{{{",".join(hashes)}}}}}':
                return None, {}
        states = {account: state.state() for account, state in rolling.items()}
        for account, state in rolling.items():
            self._rolling[account] = states[account], state
        return states, {account: _together(held.values()) for account, held in sets.items()}

    def _rolling_of(self, account: AccountStanding) -> RollingState:
        """What its blocks have spent, with the text that was kept if it is still of that."""
        assert account.state is not None
        state, rolling = self._rolling.get(account, (None, None))
        if rolling is None or state is not account.state:
            return RollingState(account.state)
        return rolling

    def _reading(self, begins: str) -> BlockSet | None:
        """Which blocks the column ``blocks`` says are read, from what stands before its hashes."""
        read = self._read.get(begins)
        if read is None and begins.endswith(","):
            try:
                read = BlockSet.from_dict(json.loads(begins[:-1] + "}")["read"])
            except (DitherError, *UNREADABLE):
                return None
            if len(begins) <= _SHORT:
                # What is read is seldom read once alone.
                if len(self._read) >= _REMEMBERED:
                    self._read.clear()
                self._read[begins] = read
        return read


def _plain(row: Sequence[Any]) -> bool:
    """Whether an answer charges nothing and promises nothing."""
    return row[TOTALS] == "{}" and row[BLOCKS] is None and row[PROMISE] is None


def _readable(note: Any) -> bool:
    try:
        json.loads(note)
    except UNREADABLE:
        return False
    return True


def _amounts(columns: Columns) -> list[Units]:
    """What each row charges.

    Raises
    ------
    TypeError, ValueError
        Its columns hold something that the ledger never writes.
    """
    said = list(zip(*[columns[place] for place in AMOUNTS_AT], strict=True))
    if said.count(said[0]) == len(said):
        return [units_of(said[0])] * len(said)
    units = {amounts: units_of(amounts) for amounts in set(said)}
    return [units[amounts] for amounts in said]


def _totals(
    groups: Sequence[ExpectedGroup], said: Mapping[AccountStanding, Sequence[str]]
) -> Iterator[str]:
    """The column ``totals``, from the parts of accounts in the order in which they are charged."""
    if len(set(groups)) == 1:
        for parts in zip(*said.values(), strict=True):
            yield f"{{{','.join(parts)}}}"
        return
    parts_of = {account: iter(parts) for account, parts in said.items()}
    for group in groups:
        yield f"{{{','.join([next(parts_of[account]) for account in group.accounts])}}}"


def _together(sets: Collection[BlockSet]) -> BlockSet:
    """All blocks of some sets."""
    ranges = tuple([held for blocks in sets for held in blocks.ranges])
    return BlockSet(ranges, frozenset().union(*[blocks.named for blocks in sets]))
