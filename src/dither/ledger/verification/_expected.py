"""What most entries of a chain say word for word, compared as text and without reading it.

Most entries are charges and answers. Whatever differs from what is expected of one in one letter is
read and looked at in full, by `Walk`, which accepts all that is accepted here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dither.blocks._sets import BlockSet
from dither.errors import DitherError
from dither.ledger._block_budget import BlockBudget, Limits, limits, within
from dither.ledger._entries import FORMAT, UNREADABLE, digest
from dither.ledger._states import BlockState, Units, added
from dither.ledger.quotas._caps import (
    QuestionQuota,
    UnlockedQuota,
    WindowQuota,
    by_clock,
    current,
    is_own_rule,
)
from dither.ledger.quotas._reserved import Held, is_reservation, room
from dither.ledger.verification._rows import (
    BLOCKS,
    BUDGET,
    KIND,
    PROMISE,
    SIGNATURE,
    TABLES,
    TIME,
    TOTALS,
    charged,
)
from dither.ledger.verification._standing import AccountStanding, Standing
from dither.privacy.accounts._budget import BudgetFilter

__all__ = ["Expectation"]

_REMEMBERED = 1 << 14
"""So many sets of blocks that were read before, and accounts charged together, are kept."""
_SHORT = 200
"""Of characters: longer texts of sets are read each time, since many of them would not fit."""


class ExpectedGroup:
    """Accounts that are charged together, and what is alike for all such charges."""

    __slots__ = ("accounts", "blocks", "held", "own", "promise")

    def __init__(self, accounts: list[AccountStanding], held: list[list[Held]]) -> None:
        self.accounts = accounts
        self.held = held
        """By account: what open reservations hold of it."""
        promises = {account.promise_text for account in accounts}
        self.promise = promises.pop() if len(promises) == 1 else None
        self.own = any(is_own_rule(account.caps) for account in accounts)
        self.blocks = any(account.state is not None for account in accounts)


class Expectation(Standing):
    """A state that knows what the next charge or answer says."""

    def __init__(self, form: int) -> None:
        super().__init__(form)
        self._read: dict[str, BlockSet] = {}
        self._groups: dict[tuple[str, ...], ExpectedGroup] = {}
        """Accounts that are charged together, as long as no entry of another kind comes."""
        self._windows: dict[str, BlockSet] = {}
        self._unlocked: dict[str, Limits] = {}
        """Of the hour of the newest entry: windows of time, and what is unlocked by account."""

    def forget(self) -> None:
        """Drop what is only remembered for speed."""
        for remembered in (self._read, self._groups, self._windows, self._unlocked):
            remembered.clear()

    def _expected(self, row: Sequence[Any], index: Mapping[str, bool]) -> bool:
        """Whether a charge or an answer is word for word what was expected; then it is counted."""
        kind = row[KIND]
        if row[TABLES] != self.tables_text or row[SIGNATURE] is not None or self.count == 0:
            return False
        if kind == "answer":
            said = row[BUDGET] is None and row[BLOCKS] is None
            return bool(said and row[TOTALS] == "{}" and not index)
        time = row[TIME]
        if kind != "charge" or row[BUDGET] is not None or (time != self.time and self.at == FORMAT):
            return False
        group = self._groups.get(names := tuple(index))
        if group is None and (group := self._grouped(names)) is None:
            return False
        if row[PROMISE] != group.promise or group.promise is None or True in index.values():
            return False
        try:
            charge = charged(row)
        except (TypeError, ValueError):
            return False
        accounts = group.accounts
        spent = [added(account.spent, charge) for account in accounts]
        texts = [account.text(units) for account, units in zip(accounts, spent, strict=True)]
        if row[TOTALS] != f"{{{','.join(texts)}}}":
            return False
        if group.own and not self._hold(accounts, charge, spent):
            return False
        blocks = row[BLOCKS]
        states: Sequence[BlockState | None] | None = None
        read = None
        if group.blocks or blocks is not None:
            read, states = self._expected_blocks(blocks, accounts, charge)
            if states is None:
                return False
        for place, held in enumerate(group.held):
            state = None if states is None else states[place]
            if held and not self._leaves(accounts[place], spent[place], state, held, read):
                return False
        for place, account in enumerate(accounts):
            account.spent = spent[place]
            account.charged = self.count
            if states is not None and (state := states[place]) is not None:
                account.state = state
                account.written = self.count
        return True

    def _grouped(self, names: tuple[str, ...]) -> ExpectedGroup | None:
        """Accounts that are charged together, where all are open and none is a reservation."""
        ordered = sorted(names)
        accounts = [account for name in ordered if (account := self.accounts.get(name))]
        if not accounts or len(accounts) != len(names) or any(map(is_reservation, names)):
            return None
        if any(account.budget is None for account in accounts):
            return None
        if self.at != FORMAT and (
            self.reservations or not all(isinstance(a.caps, BudgetFilter) for a in accounts)
        ):
            # Earlier formats have no such caps.
            return None
        if len(self._groups) >= _REMEMBERED:
            self._groups.clear()
        held = [self._held(name, self.time) for name in ordered]
        group = self._groups[names] = ExpectedGroup(accounts, held)
        return group

    def _hold(
        self, accounts: Sequence[AccountStanding], charge: Units, spent: Sequence[Units]
    ) -> bool:
        """Whether caps that have a rule of their own bear a charge of the newest hour: `holds`."""
        for account, total in zip(accounts, spent, strict=True):
            caps = account.caps
            if isinstance(caps, QuestionQuota):
                bears = account.each is not None and within(account.each, charge)
            elif isinstance(caps, UnlockedQuota):
                most = self._unlocked.get(account.name)
                if most is None:
                    most = limits(caps.at(account.opened, self.time))
                    self._unlocked[account.name] = most
                bears = within(most, total)
            else:
                bears = not is_own_rule(caps)
            if not bears:
                return False
        return True

    def _leaves(
        self,
        account: AccountStanding,
        spent: Units,
        state: BlockState | None,
        held: list[Held],
        read: BlockSet | None,
    ) -> bool:
        """Whether a charge of the newest hour leaves an account what is reserved of it."""
        caps = account.caps
        return caps is not None and room(caps, spent, state, read, held, account.opened, self.time)

    def _window(self, caps: WindowQuota) -> BlockSet:
        """The window of the newest hour: `current`."""
        every = str(caps.calendar.every)
        found = self._windows.get(every)
        if found is None:
            found = self._windows[every] = current(caps, self.time)
        return found

    def _expected_blocks(
        self, blocks: str | None, accounts: Sequence[AccountStanding], charge: Units
    ) -> tuple[BlockSet | None, list[BlockState | None] | None]:
        """What is read, and what the blocks of each account have spent, if it is as expected."""
        if blocks is None:
            return None, None
        # As written by `blocks_json`; what is read is seldom read once alone.
        said, _, _ = blocks.partition(',"states":')
        read = self._read.get(said)
        if blocks.startswith('{"states":'):
            # Windows of time alone.
            said = ""
        elif read is None:
            try:
                read = BlockSet.from_dict(json.loads(said + "}")["read"])
            except (DitherError, *UNREADABLE):
                return None, None
            if len(said) <= _SHORT:
                if len(self._read) >= _REMEMBERED:
                    self._read.clear()
                self._read[said] = read
        states: list[BlockState | None] = []
        hashes = []
        for account in accounts:
            caps, each = account.caps, account.each
            if account.state is None or not isinstance(caps, BlockBudget):
                states.append(None)
                continue
            charged = self._window(caps) if by_clock(caps) else read
            if charged is None or each is None:
                return None, None
            state, after = account.state.plus(charged, charge)
            for total in after:
                if not within(each, total):
                    return None, None
            states.append(state)
            hashes.append(f'{account.name}:"{digest(state.text())}"')
        begins = f"{said}," if said else "{"
        expected = f'{begins}"states":{{{",".join(hashes)}}}}}'
        return (read, states) if blocks == expected and hashes else (None, None)
