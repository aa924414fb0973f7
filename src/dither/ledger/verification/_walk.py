"""One walk along a chain: what each entry means is worked out again from those before it.

Most entries say what was expected word for word: `Expectation`. All others are read and looked at
in full: `Walk._meaning`, which accepts all that the first accepts.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dither.blocks._sets import BlockSet
from dither.errors import DitherError
from dither.ledger._accounts import AccountState, read_budget
from dither.ledger._block_budget import BlockBudget, limits, within
from dither.ledger._changes import carried
from dither.ledger._entries import (
    FORMAT,
    MORE,
    PURPOSE,
    READABLE,
    UNREADABLE,
    BoundTable,
    Record,
    digest,
    hour_of,
    promise_of,
    tables_of,
)
from dither.ledger._owner import SIGNED, after_owner_entry, may_set
from dither.ledger._states import NO_SPENDING, Units, added, charge_of
from dither.ledger.quotas._caps import (
    QuestionQuota,
    ReservedQuota,
    by_clock,
    current,
    holds,
    is_own_rule,
)
from dither.ledger.quotas._reserved import PREFIX, Held, is_reservation, room
from dither.ledger.quotas._reserving import unfit
from dither.privacy._promise import Promise
from dither.privacy.accounts._budget import BudgetFilter

__all__ = ["Walk"]

from dither.ledger.verification._expected import Expectation
from dither.ledger.verification._rows import (
    HASH,
    KIND,
    NUMBER,
    PREVIOUS,
    AccountIndex,
    dict_of,
    hashed,
    of_amounts,
    record_of,
)
from dither.ledger.verification._standing import AccountStanding, Bad

__all__ = ["Walk"]

KINDS = ("genesis", "account", "amend", "charge", "answer", "owner", "upgrade", "reserve")


_MOST = 512
"""So many entries are compared at once."""


class Walk(Expectation):
    """The state of a verification between two entries.

    Parameters
    ----------
    form : int
        The format of the ledger.
    """

    def along(
        self,
        rows: Sequence[Sequence[Any]],
        index: AccountIndex,
        diagnosis: Callable[[Record], str],
    ) -> None:
        """Check the next entries: many at once, and one by one where they are not as expected.

        Parameters
        ----------
        rows : sequence of sequence
            The ``COLUMNS`` of each.
        index : AccountIndex
            What it has for them.
        diagnosis : callable
            What became of an entry that does not agree with its own hash.

        Raises
        ------
        Bad
            One is not what it must be; all before it are good.
        """
        at, most = 0, _MOST
        while at < len(rows):
            together = rows[at : at + most]
            alike = self._alike(together)
            if alike and self._expected(together[:alike], index):
                at += alike
                most = min(2 * most, _MOST)
            elif alike > 1:
                # Half as many, until what is not as expected stands alone.
                most = alike // 2
            else:
                self._step(rows[at], index.of(self.count), diagnosis)
                at += 1

    def _step(
        self, row: Sequence[Any], index: Mapping[str, bool], diagnosis: Callable[[Record], str]
    ) -> None:
        """Check the next entry by itself and in full."""
        number = row[NUMBER]
        if number != self.count:
            raise Bad(self.count, "removed")
        if number == 0 or row[KIND] == "upgrade":
            self._find_format(row)
        if not hashed(row, self.at):
            raise Bad(self.count, diagnosis(record_of(row)))
        if row[PREVIOUS] != self.hash:
            # It is as it was written, and it vouches for another entry before it.
            raise Bad(max(self.count - 1, 0), "changed, and its hash made anew")
        self._look(record_of(row), index)
        self.count += 1
        self.hash = row[HASH]

    def _find_format(self, row: Sequence[Any]) -> None:
        """Of the first entry, in which format it is; of an upgrade, that it is in the newest."""
        if row[KIND] == "upgrade":
            if self.at == FORMAT:
                raise Bad(self.count, "out of place")
            self.at = FORMAT
        else:
            record = record_of(row)
            self.at = next((form for form in READABLE if record.sound(form)), self.form)

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
        charge = None if amounts is None else of_amounts(amounts)
        states = record.states()
        for name, total in record.totals_after().items():
            account = self.accounts.setdefault(name, AccountStanding(name))
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
            if account.budget is None or of_amounts(total) != account.spent:
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
            name: {"caps": json.loads(account.budget or "{}"), "spent": dict_of(account.spent)}
            for name, account in self.accounts.items()
        }
        if note["accounts"] != kept:
            raise Bad(self.count, "it does not keep what accounts may spend and have spent")

    def _signed(self, record: Record) -> None:
        """See that whoever changes a ledger may."""
        if record.kind == "owner":
            self.name_owner(record)
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

    def name_owner(self, record: Record) -> None:
        """Take over the owner that an entry names, and note a recovery."""
        owner = after_owner_entry(record, self.owner)
        if owner is None:
            raise Bad(record.number, "it names an owner, and whoever signed it may not")
        self.owner = owner
        if owner.before is not None:
            self.notes.append(f"entry {record.number}: {owner.describe()}")

    def _caps(
        self,
        account: AccountStanding,
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
        if state is None:
            account.written = None
        account.each = limits(caps.each) if isinstance(caps, BlockBudget | QuestionQuota) else None
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

    def _within(self, name: str, held: list[Held], read: BlockSet | None, now: str) -> None:
        account = self.accounts[name]
        assert account.caps is not None
        if not room(account.caps, account.spent, account.state, read, held, account.opened, now):
            raise Bad(self.count, f"it takes of account {name!r} what others have reserved")

    def _blocks(self, account: AccountStanding, name: str, record: Record, charge: Units) -> None:
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
