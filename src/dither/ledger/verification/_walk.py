"""One walk along a chain: what each entry means is worked out again from those before it.

Most entries are charges and answers, and say what was expected word for word. Those are compared as
text, without reading it: `_Walk._expected`. Whatever differs in one letter is read and looked at in
full: `_Walk._meaning`, which accepts all that the first accepts.

It is long because one walk holds the state that all of its checks read.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from json.encoder import encode_basestring_ascii
from operator import itemgetter
from typing import Any

from dither.blocks._sets import BlockSet
from dither.errors import ArgumentError, DitherError
from dither.ledger._accounts import AccountState, read_budget
from dither.ledger._block_budget import BlockBudget, Budget, Limits, limits, within
from dither.ledger._changes import carried
from dither.ledger._entries import (
    FIRST,
    FORMAT,
    HASHED,
    MORE,
    PURPOSE,
    READABLE,
    TEMPLATES,
    UNREADABLE,
    Amounts,
    BoundTable,
    Record,
    digest,
    hash_of,
    hour_of,
    promise_of,
    tables_of,
    written,
)
from dither.ledger._owner import SIGNED, LedgerOwner, after_owner_entry, may_set
from dither.ledger._states import NO_SPENDING, NOTHING, BlockState, Units, added, charge_of
from dither.ledger.quotas._caps import (
    QuestionQuota,
    ReservedQuota,
    UnlockedQuota,
    WindowQuota,
    by_clock,
    current,
    holds,
    is_own_rule,
)
from dither.ledger.quotas._reserved import PREFIX, Held, is_reservation, room
from dither.ledger.quotas._reserving import unfit
from dither.privacy._promise import Promise
from dither.privacy.accounts._budget import BudgetFilter

__all__ = ["COLUMNS", "Bad", "Walk"]

COLUMNS = (*HASHED[FORMAT], "hash", "answer", "signature")
"""The columns of a row as `Walk.step` takes them: those that are hashed first."""

KINDS = ("genesis", "account", "amend", "charge", "answer", "owner", "upgrade", "reserve")
_REMEMBERED = 1 << 14
"""So many sets of blocks that were read before, and accounts charged together, are kept."""
_SHORT = 200
"""Of characters: longer texts of sets are read each time, since many of them would not fit."""

_AT = {name: place for place, name in enumerate(COLUMNS)}
_HASHED = len(HASHED[FORMAT])
_BLOCKS = _AT["blocks"]


class Bad(Exception):
    """The first entry that is not what it must be."""

    def __init__(self, number: int | None, problem: str) -> None:
        super().__init__(problem)
        self.number, self.problem = number, problem


class _Account:
    """An account between two entries."""

    __slots__ = (
        "budget",
        "caps",
        "charged",
        "each",
        "name",
        "opened",
        "promise",
        "promise_text",
        "spent",
        "state",
        "written",
    )

    def __init__(self, name: str) -> None:
        self.name = encode_basestring_ascii(name)
        self.budget: str | None = None
        self.caps: Budget | None = None
        self.promise: Promise | None = None
        self.promise_text: str | None = None
        self.spent: Units = NOTHING
        self.state: BlockState | None = None
        self.opened = ""
        """When it was."""
        self.each: Limits | None = None
        """What a block of it, or one charge, may spend."""
        self.charged: int | None = None
        """The last charge that was not held against caps yet."""
        self.written: int | None = None
        """The last entry that says what its blocks have spent."""

    def text(self, spent: Units) -> str:
        """Its part of the column ``totals``."""
        epsilon = "infinite" if spent[0] is None else spent[0]
        rho = "infinite" if spent[2] is None else spent[2]
        return (
            f'{self.name}:{{"delta":"{spent[1]}","epsilon":"{epsilon}","rho":"{rho}",'
            f'"rho_delta":"{spent[3]}"}}'
        )


class _Group:
    """Accounts that are charged together, and what is alike for all such charges."""

    __slots__ = ("accounts", "blocks", "held", "own", "promise")

    def __init__(self, accounts: list[_Account], held: list[list[Held]]) -> None:
        self.accounts = accounts
        self.held = held
        """By account: what open reservations hold of it."""
        promises = {account.promise_text for account in accounts}
        self.promise = promises.pop() if len(promises) == 1 else None
        self.own = any(is_own_rule(account.caps) for account in accounts)
        self.blocks = any(account.state is not None for account in accounts)


class Walk:
    """The state of a verification between two entries.

    Parameters
    ----------
    form : int
        The format of the ledger.
    """

    def __init__(self, form: int) -> None:
        self.form = form
        self.at = form
        """The format that the next entry is in."""
        self.count = 0
        self.hash = FIRST
        self.accounts: dict[str, _Account] = {}
        self.tables: dict[str, BoundTable] = {}
        self.tables_text = "{}"
        self.owner: LedgerOwner | None = None
        self.notes: list[str] = []
        self.time = ""
        """The newest hour of an entry that is no answer; it never goes back."""
        self.reservations: dict[str, ReservedQuota] = {}
        """Those that have not lapsed, by their accounts."""
        self._read: dict[str, BlockSet] = {}
        self._groups: dict[tuple[str, ...], _Group] = {}
        """Accounts that are charged together, as long as no entry of another kind comes."""
        self._windows: dict[str, BlockSet] = {}
        self._unlocked: dict[str, Limits] = {}
        """Of the hour of the newest entry: windows of time, and what is unlocked by account."""

    def step(
        self, row: Sequence[Any], index: Mapping[str, bool], diagnosis: Callable[[Record], str]
    ) -> None:
        """Check the next entry.

        Parameters
        ----------
        row : sequence
            Its ``COLUMNS``.
        index : mapping of str to bool
            The accounts that the index has for it, and whether it sets their caps.
        diagnosis : callable
            What became of an entry that does not agree with its own hash.

        Raises
        ------
        Bad
            It is not what it must be.
        """
        number = row[_NUMBER]
        if number != self.count:
            raise Bad(self.count, "removed")
        if number == 0 or row[_KIND] == "upgrade":
            self._find_format(row)
        if not self._hashed(row):
            raise Bad(self.count, diagnosis(record_of(row)))
        if row[_PREVIOUS] != self.hash:
            # It is as it was written, and it vouches for another entry before it.
            raise Bad(max(self.count - 1, 0), "changed, and its hash made anew")
        if not self._expected(row, index):
            self._look(record_of(row), index)
        self.count += 1
        self.hash = row[_HASH]

    def _find_format(self, row: Sequence[Any]) -> None:
        """Of the first entry, in which format it is; of an upgrade, that it is in the newest."""
        if row[_KIND] == "upgrade":
            if self.at == FORMAT:
                raise Bad(self.count, "out of place")
            self.at = FORMAT
        else:
            record = record_of(row)
            self.at = next((form for form in READABLE if record.sound(form)), self.form)

    def _hashed(self, row: Sequence[Any]) -> bool:
        """Whether a row agrees with its own hash, the answer's text included."""
        try:
            if row[_KIND] == "charge" and self.at == FORMAT:
                text = _charge_text(row)
                if text is not None:
                    return bool(hash_of(text) == row[_HASH])
            columns = [
                encode_basestring_ascii(held)
                if held.__class__ is str
                else "null"
                if held is None
                else written(held)
                for held in row[:_HASHED]
            ]
            if self.at != FORMAT:
                if row[_BLOCKS] is not None or row[_SIGNATURE] is not None:
                    return False
                del columns[_BLOCKS]
            answer = row[_ANSWER]
            return hash_of(TEMPLATES[self.at] % tuple(columns), self.at) == row[_HASH] and (
                row[_DIGEST] is None if answer is None else digest(answer) == row[_DIGEST]
            )
        except (ArgumentError, AttributeError, TypeError, UnicodeEncodeError):
            return False

    def _expected(self, row: Sequence[Any], index: Mapping[str, bool]) -> bool:
        """Whether a charge or an answer is word for word what was expected; then it is counted."""
        kind = row[_KIND]
        if row[_TABLES] != self.tables_text or row[_SIGNATURE] is not None or self.count == 0:
            return False
        if kind == "answer":
            return bool(row[_TOTALS] == "{}" and not index and row[_BUDGET] is None)
        time = row[_TIME]
        if (
            kind != "charge"
            or row[_BUDGET] is not None
            or (time != self.time and self.at == FORMAT)
        ):
            return False
        group = self._groups.get(names := tuple(index))
        if group is None and (group := self._grouped(names)) is None:
            return False
        if row[_PROMISE] != group.promise or group.promise is None or True in index.values():
            return False
        try:
            charge = _units(row)
        except (TypeError, ValueError):
            return False
        accounts = group.accounts
        spent = [added(account.spent, charge) for account in accounts]
        texts = [account.text(units) for account, units in zip(accounts, spent, strict=True)]
        if row[_TOTALS] != f"{{{','.join(texts)}}}":
            return False
        if group.own and not self._hold(accounts, charge, spent):
            return False
        blocks = row[_BLOCKS]
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

    def _grouped(self, names: tuple[str, ...]) -> _Group | None:
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
        group = self._groups[names] = _Group(accounts, held)
        return group

    def _hold(self, accounts: Sequence[_Account], charge: Units, spent: Sequence[Units]) -> bool:
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
        account: _Account,
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
        self, blocks: str | None, accounts: Sequence[_Account], charge: Units
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

    def _look(self, record: Record, index: Mapping[str, bool]) -> None:
        """Read an entry, and see that it means what may come here."""
        self._groups.clear()
        try:
            self._dated(record)
            self._meaning(record)
            totals = record.totals_after()
        except (DitherError, *UNREADABLE) as error:
            raise Bad(self.count, "its columns cannot be read") from error
        if index != dict.fromkeys(totals, record.budget is not None):
            raise Bad(self.count, "the index of accounts does not agree with it")

    def _dated(self, record: Record) -> None:
        """See that time does not go back, and let lapse what was reserved until now.

        An answer has the hour of its charge. Before format 3 nothing followed from an hour.
        """
        if record.kind == "answer" or self.at != FORMAT or record.time == self.time:
            return
        if hour_of(dt.datetime.fromisoformat(record.time)) != record.time:
            raise Bad(self.count, "it is not dated by the hour")
        if record.time < self.time:
            raise Bad(self.count, "it is dated before an entry that stands before it")
        self.time = record.time
        self._windows.clear()
        self._unlocked.clear()
        lapsed = [name for name, caps in self.reservations.items() if caps.until <= record.time]
        for name in lapsed:
            del self.reservations[name]

    def _meaning(self, record: Record) -> None:
        kind = record.kind
        if kind not in KINDS:
            raise Bad(self.count, "of a kind that there is not")
        note = json.loads(record.note)
        if kind in ("genesis", "upgrade") and note["format"] != self.at:
            raise Bad(self.count, "of another format than what keeps it")
        if (kind == "genesis") != (self.count == 0):
            raise Bad(self.count, "out of place")
        if (record.budget is not None) != (kind in ("account", "amend", "reserve")):
            raise Bad(self.count, "it sets caps, or sets none, as no entry of its kind does")
        self._signed(record)
        if kind == "upgrade":
            self._carried(note)
        amounts = record.amounts()
        promise = promise_of(record.promise)
        self._bound(record, promise)
        charge = None if amounts is None else _of_amounts(amounts)
        states = record.states()
        for name, total in record.totals_after().items():
            account = self.accounts.setdefault(name, _Account(name))
            if record.budget is not None:
                self._caps(account, name, record, promise, note)
            if promise is None or account.promise not in (None, promise):
                raise Bad(
                    self.count, f"it promises something else than account {name!r} was bound to"
                )
            account.promise, account.promise_text = promise, record.promise
            if charge is not None:
                account.spent = added(account.spent, charge)
                account.charged = record.number
            if account.budget is None or _of_amounts(total) != account.spent:
                raise Bad(
                    self.count, f"the total of account {name!r} is not the sum of its charges"
                )
            if charge is not None and account.state is not None:
                self._blocks(account, name, record, charge)
            caps = account.caps
            if (
                charge is not None
                and is_own_rule(caps)
                and not holds(caps, charge, account.spent, account.opened, record.time)
            ):
                raise Bad(self.count, f"it charges more to account {name!r} than its caps bear")
            if account.state is None:
                continue
            account.written = self.count
            if states.pop(name, None) != digest(account.state.text()):
                raise Bad(
                    self.count,
                    f"what the blocks of account {name!r} have spent is not the sum of its charges",
                )
        if charge is not None:
            self._reserved(record, charge)
        if states:
            raise Bad(self.count, "it says what blocks have spent of an account that has none")

    def _carried(self, note: Mapping[str, Any]) -> None:
        """See that an upgrade keeps the caps and the spending of every account."""
        kept = {
            name: {"caps": json.loads(account.budget or "{}"), "spent": _dict_of(account.spent)}
            for name, account in self.accounts.items()
        }
        if note["accounts"] != kept:
            raise Bad(self.count, "it does not keep what accounts may spend and have spent")

    def _signed(self, record: Record) -> None:
        """See that whoever changes a ledger may."""
        if record.kind == "owner":
            owner = after_owner_entry(record, self.owner)
            if owner is None:
                raise Bad(self.count, "it names an owner, and whoever signed it may not")
            self.owner = owner
            if owner.before is not None:
                self.notes.append(f"entry {self.count}: {owner.describe()}")
            return
        needed = self.owner is not None and record.kind in SIGNED
        if needed and record.signature is None:
            raise Bad(self.count, "it changes a ledger that has an owner, and is not signed")
        if record.signature is None:
            return
        if not needed or self.owner is None:
            raise Bad(self.count, "it is signed, and nobody's signature belongs there")
        if not self.owner.key.signed(PURPOSE, record.covered(), record.signature):
            raise Bad(self.count, "its signature is not the owner's")

    def _caps(
        self,
        account: _Account,
        name: str,
        record: Record,
        promise: Promise | None,
        note: Mapping[str, Any],
    ) -> None:
        """Take over the caps that an entry sets."""
        assert record.budget is not None
        self.within_caps(name)
        if refused := may_set(self.owner, name, record.budget, account.budget):
            raise Bad(self.count, refused)
        opens = record.kind in ("account", "reserve")
        if opens != (account.budget is None):
            raise Bad(self.count, f"it opens account {name!r} anew, or changes none")
        caps, before = read_budget(record.budget), account.caps
        state = None
        if isinstance(caps, BlockBudget):
            state = account.state
            same = (
                isinstance(before, BlockBudget)
                and before.calendar.to_dict() == caps.calendar.to_dict()
            )
            if opens:
                state = NO_SPENDING
            elif not same or state is None:
                assert promise is not None
                held = AccountState(name, record.budget, promise, charge_of(account.spent))
                until = dt.date.fromisoformat(note["read_until"])
                state = carried(held, caps.calendar, until, self.tables)
        account.budget, account.caps, account.state = record.budget, caps, state
        account.each = limits(caps.each) if isinstance(caps, BlockBudget | QuestionQuota) else None
        self._unlocked.pop(account.name, None)
        if opens:
            account.opened = record.time
        if (record.kind == "reserve") != isinstance(caps, ReservedQuota):
            raise Bad(self.count, "it reserves something, or nothing, as no entry of its kind does")
        if isinstance(caps, ReservedQuota):
            self._reserve(name, caps, record)

    def _reserve(self, name: str, caps: ReservedQuota, record: Record) -> None:
        """See that what is reserved could be, and keep it in mind."""
        if name != f"{PREFIX}{caps.until}:{record.number}" or caps.until <= record.time:
            raise Bad(self.count, "it makes a reservation under another name, or none that holds")
        for of in caps.accounts:
            account = self.accounts.get(of)
            if account is None or account.budget is None or account.promise_text != record.promise:
                raise Bad(self.count, "it reserves of an account that there is not")
            if (
                isinstance(account.caps, BlockBudget)
                and not by_clock(account.caps)
                and caps.read is None
            ):
                raise Bad(self.count, "it does not say of which blocks it reserves")
            held = [*self._held(of, record.time), (caps.amount, caps.read)]
            self._within(of, held, caps.read, record.time)
        self.reservations[name] = caps

    def _reserved(self, record: Record, charge: Units) -> None:
        """See that a charge leaves what is reserved for others, and uses only what it may."""
        totals = record.totals_after()
        used = [name for name in totals if is_reservation(name)]
        read = record.read_blocks()
        if len(used) > 1 or any(unfit(self.reservations[name], totals, read) for name in used):
            raise Bad(self.count, "it uses a reservation that is for something else")
        for name in totals:
            held = [] if is_reservation(name) else self._held(name, record.time)
            if held:
                self._within(name, held, read, record.time)

    def _held(self, name: str, now: str) -> list[Held]:
        """What open reservations hold of an account."""
        return [
            (caps.left(self.accounts[at].spent), caps.read)
            for at, caps in self.reservations.items()
            if name in caps.accounts and caps.until > now
        ]

    def _within(self, name: str, held: list[Held], read: BlockSet | None, now: str) -> None:
        account = self.accounts[name]
        assert account.caps is not None
        if not room(account.caps, account.spent, account.state, read, held, account.opened, now):
            raise Bad(self.count, f"it takes of account {name!r} what others have reserved")

    def _blocks(self, account: _Account, name: str, record: Record, charge: Units) -> None:
        """Charge the blocks that an entry reads, and hold them against their caps."""
        caps = account.caps
        read = current(caps, record.time) if by_clock(caps) else record.read_blocks()
        if read is None or account.state is None or not isinstance(caps, BlockBudget):
            raise Bad(self.count, f"it does not say which blocks of account {name!r} it reads")
        account.state, after = account.state.plus(read, charge)
        if not all(within(limits(caps.each), total) for total in after):
            raise Bad(
                self.count, f"it charges more to a block of account {name!r} than its caps bear"
            )

    def _bound(self, record: Record, promise: Promise | None) -> None:
        """Tables and their sources are only added, by a charge and under its promise."""
        tables = tables_of(record.tables)
        for name, held in tables.items():
            before = self.tables.get(name, BoundTable(held.promise, held.by))
            if name not in self.tables and (record.kind != "charge" or held.promise != promise):
                raise Bad(self.count, "it moves a table to another promise")
            if (before.promise, before.by) != (held.promise, held.by):
                raise Bad(self.count, "it moves a table to another promise")
            if before.sources != held.sources and record.kind != "charge":
                raise Bad(self.count, "it names other sources of a table, and reads none")
            if not before.sources.keys() <= held.sources.keys() and MORE not in held.sources:
                raise Bad(self.count, "it forgets a source of a table")
        if not self.tables.keys() <= tables.keys():
            raise Bad(self.count, "it moves a table out of the ledger")
        self.tables = tables
        self.tables_text = record.tables

    def within_caps(self, name: str) -> None:
        """See that the last charge to an account left it within its caps.

        Totals only grow, and a filter that admits a total admits every smaller one: so a last total
        within the caps says that all before it were. With blocks it is the lifetime's caps: those
        of each block are held against every charge.
        """
        account = self.accounts[name]
        number, account.charged = account.charged, None
        caps = account.caps
        if number is None or caps is None or is_own_rule(caps):
            # What has a rule of its own is held against every charge.
            return
        whole = caps.lifetime if isinstance(caps, BlockBudget) else caps
        assert whole is None or isinstance(whole, BudgetFilter)
        if whole is not None and not within(limits(whole), account.spent):
            raise Bad(number, f"it charges more to account {name!r} than its caps bear")


_TIME = _AT["time"]
_NUMBER, _KIND, _PREVIOUS, _HASH = (_AT[name] for name in ("number", "kind", "previous", "hash"))
_SIGNATURE, _TABLES, _TOTALS = (_AT[name] for name in ("signature", "tables", "totals"))
_BUDGET, _PROMISE, _ANSWER = (_AT[name] for name in ("budget", "promise", "answer"))
_DIGEST = _AT["answer_digest"]
_AMOUNTS = tuple(_AT[name] for name in ("epsilon", "delta", "rho", "rho_delta"))


# Of a charge it is known what is text, and what is empty.
_EMPTY = ("answer_digest", "answers", "budget")
_empty = itemgetter(*(_AT[name] for name in (*_EMPTY, "answer")))
_texts = itemgetter(
    *(_AT[name] for name in HASHED[FORMAT] if name not in (*_EMPTY, "blocks", "number"))
)
_CHARGE = (
    "{"
    + ",".join(f'"{name}":{"null" if name in _EMPTY else "%s"}' for name in HASHED[FORMAT])
    + "}"
)
_BEFORE_NUMBER = sum(name < "number" for name in HASHED[FORMAT]) - sum(
    name < "number" for name in (*_EMPTY, "blocks")
)


def _charge_text(row: Sequence[Any]) -> str | None:
    """What a charge's hash covers, as ``Record.covered`` says it; ``None`` of an unusual one."""
    number, blocks = row[_NUMBER], row[_BLOCKS]
    if _empty(row) != (None, None, None, None) or number.__class__ is not int:
        return None
    try:
        texts = [*map(encode_basestring_ascii, _texts(row))]
        said = "null" if blocks is None else encode_basestring_ascii(blocks)
    except TypeError:
        return None
    return _CHARGE % (said, *texts[:_BEFORE_NUMBER], number, *texts[_BEFORE_NUMBER:])


def record_of(row: Sequence[Any]) -> Record:
    """The record of a row."""
    return Record(**dict(zip(COLUMNS, row, strict=True)))


def _units(row: Sequence[Any]) -> Units:
    epsilon, delta, rho, rho_delta = (row[place] for place in _AMOUNTS)
    return (
        None if epsilon == "infinite" else int(epsilon),
        int(delta),
        None if rho == "infinite" else int(rho),
        int(rho_delta),
    )


def _dict_of(spent: Units) -> dict[str, str]:
    return asdict(Amounts.of(charge_of(spent)))


def _of_amounts(amounts: Amounts) -> Units:
    return (
        None if amounts.epsilon == "infinite" else int(amounts.epsilon),
        int(amounts.delta),
        None if amounts.rho == "infinite" else int(amounts.rho),
        int(amounts.rho_delta),
    )
