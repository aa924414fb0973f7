"""The ledger: accounts with caps, charges that commit before any answer leaves, and a chain.

Charge first: `Ledger.charge` checks every account and writes the entry in one transaction that
is on the disk when it returns. Nothing is ever refunded. See `dither.ledger.stores` for how a
commit is made durable, and `dither.ledger.verification` for what a chain shows and what not.

It is long because every check of a charge is made in the one transaction that writes it.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import ColumnElement, Connection, Table, bindparam, func, select

from dither.blocks._sets import BlockSet
from dither.errors import (
    ArgumentError,
    BudgetError,
    LedgerCorruptError,
    LedgerError,
    PromiseError,
    TokenError,
    nearest,
)
from dither.ledger import _chain as chain
from dither.ledger._accounts import (
    AccountState,
    Balance,
    Charged,
    check_promise,
    check_text,
    checked_accounts,
    other_promise,
    same_caps,
)
from dither.ledger._bindings import ReadTables, Source, doubt, same_text
from dither.ledger._block_budget import BlockBudget, limits, within
from dither.ledger._changes import caps_json, check_blocks
from dither.ledger._entries import (
    FORMAT,
    Amounts,
    Entry,
    Record,
    Tables,
    canonical,
    dated,
    digest,
    reading,
)
from dither.ledger._place import LedgerSchema
from dither.ledger._states import BlockState, grain, units_of
from dither.ledger._witness import Witness
from dither.ledger.quotas._caps import by_clock, current, holds, is_own_rule
from dither.ledger.quotas._reserved import (
    Held,
    held_on,
    is_reservation,
    room,
    without_reservations,
)
from dither.ledger.quotas._reserving import (
    ReservingLedger,
    check_use,
    holder_account,
    opened_reservations,
)
from dither.ledger.stores._opening import opened_store
from dither.ledger.stores._store import (
    Store,
    columns_of,
    entries,
    format_of,
    touches,
)
from dither.ledger.verification._verify import Verification, verify
from dither.privacy._charge import Charge
from dither.privacy._loss import Loss, as_charge
from dither.privacy._promise import Promise
from dither.privacy.accounts._budget import BudgetFilter

if TYPE_CHECKING:
    from dither.ledger._block_budget import Budget
    from dither.ledger._checkpoint import Checkpoint

__all__ = ["Ledger"]

_BY_TOKEN = select(entries.c["number"]).where(entries.c["token"] == bindparam("token"))
# What touches an account and sets no caps is a charge.
_FIRST_CHARGE = select(func.min(touches.c["entry"])).where(
    touches.c["account"] == bindparam("account"), touches.c["sets_budget"].is_(False)
)
_ANSWER_TO = select(entries.c["number"]).where(entries.c["answers"] == bindparam("number"))


class Ledger(ReservingLedger):
    """A ledger; open it with `Ledger.open`.

    One object may be used by many threads and after a fork. Many processes may open one file, and
    many machines one schema of a PostgreSQL database.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from tempfile import mkdtemp
    >>> from dither import privacy
    >>> from dither.accounting import BudgetFilter
    >>> ledger = Ledger.open(Path(mkdtemp()) / "visits.ledger")
    >>> patient = Promise("patient")
    >>> ledger.ensure_account("visits", BudgetFilter(Fraction(1), Fraction(0)), patient)
    >>> half = privacy.pure(0.5).promising(patient)
    >>> ledger.charge(["visits"], half, token="monday", request="ab" * 32, note={}).entry
    2
    >>> ledger.balance("visits").spent.epsilon
    Fraction(1, 2)
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._witness = Witness(store.spot, store.name)
        self._doubted: set[tuple[str, str]] = set()

    @classmethod
    def open(
        cls,
        place: str | Path | LedgerSchema | Mapping[str, str],
        *,
        create: bool = True,
        timeout: float = 30.0,
        checkpoint: Checkpoint | None = None,
    ) -> Ledger:
        """Open a ledger, or begin one.

        Parameters
        ----------
        place : path, or mapping
            A file, or a schema of a PostgreSQL database that many machines share:
            ``{"postgres": "env:LEDGER_DSN", "schema": "visits"}``, for which
            ``"env:LEDGER_DSN#visits"`` is short. Where no schema is named it is ``dither``.
        create : bool
            Begin a new ledger where there is none.
        timeout : float
            Seconds to wait for another process that holds it, and for a server.
        checkpoint : Checkpoint, optional
            What the ledger must hold, signed by its owner. Then none is begun.

        Raises
        ------
        LedgerError
            There is no such file, directory or server, or it may not be read; or a server runs
            without fsync.
        PolicyError
            The environment has no variable of that name.
        LedgerVersionError
            It was written by a newer version of dither.
        LedgerCorruptError
            It is empty, truncated, damaged or not a ledger. Whether the newest entries agree is
            checked with every charge, and the whole chain by `verify`.
        LedgerLockedError
            Another process holds it for longer than ``timeout``.
        CheckpointError
            It is another ledger than the checkpoint's, older than that, or forks from it.
        """
        if not timeout > 0:
            raise ArgumentError("timeout must be above 0 seconds")
        found = cls(opened_store(place, create and checkpoint is None, timeout))
        if checkpoint is not None:
            try:
                checkpoint.check(found)
            except BaseException:
                found.close()
                raise
        return found

    @property
    def place(self) -> Path | LedgerSchema:
        """Where it is: what `open` takes to open it again."""
        where: Path | LedgerSchema = self._store.place
        return where

    @property
    def path(self) -> Path:
        """The file.

        Raises
        ------
        LedgerError
            It is not in a file.
        """
        if not isinstance(self.place, Path):
            raise LedgerError(f"the ledger {self.name} is on a server, and not in a file")
        return self.place

    @property
    def name(self) -> str:
        """What messages call it: the file's name, or what names the server's address."""
        return self._store.name

    @property
    def id(self) -> str:
        """The random identity that the first entry holds."""
        with self._reading() as (connection, _):
            return _identity(connection)

    def close(self) -> None:
        """Close it; using it afterwards is an error. No file stays open in between calls."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def charge(
        self,
        accounts: Sequence[str] | Mapping[str, Budget],
        charge: Loss | Charge,
        *,
        token: str,
        request: str,
        note: Mapping[str, Any],
        blocks: BlockSet | None = None,
        tables: Mapping[str, str] | None = None,
        sources: Mapping[str, Mapping[str, str]] | None = None,
        same: Callable[[Source, Source], bool | None] = same_text,
        reservation: str | None = None,
        policy: str | None = None,
    ) -> Charged:
        """Charge every account or none, on the disk when this returns; then look at the data.

        Parameters
        ----------
        accounts : sequence of str, or mapping of str to BudgetFilter or BlockBudget
            Whom to charge, each the whole charge. A mapping holds caps: an account that is not
            there is opened with them in the same transaction, so a refused charge opens none. In a
            ledger that has an owner, the owner opens accounts beforehand.
        charge : Loss or Charge
            What a release costs, with its promise. Of a loss the exact amounts are charged,
            ``loss.charge``; all are rounded up to `dither.ledger.UNIT`.
        token : str
            The caller's name of this request. Asking again with it is free.
        request : str
            Digest of everything that the answer depends on, in hexadecimal.
        note : mapping
            What to note beside it: text, whole numbers, fractions; no float.
        blocks : BlockSet, optional
            The blocks that are read, by the numbers of the account's own calendar. Needed where an
            account has a budget for each block, and refused elsewhere. Each of them bears the whole
            charge, all or none; where they are read in parallel (``BlockSet.parallel``), its part,
            and the charge is that of as many steps together.
        tables : mapping of str to str, optional
            The private tables that are read, each with what says which unit a row belongs to:
            ``{"visits": "column patient_id"}``. Within a ledger a table stays with the promise
            and the rule that it was first charged under, so that no account misses a release.
        sources : mapping of str to mapping, optional
            By table: what its rows are known by, whatever the table is called, each with a mark
            that tells more and may change: ``{"visits": {"file:///data/visits.csv": "1:7"}}``. None
            where that cannot be told. Rows that one account was charged for are not read for
            another under a second name.
        same : callable, optional
            From two sources, each with its mark, to whether they have rows in common; ``None``
            where that cannot be told. By default those that have one text.
        reservation : str, optional
            The id of a reservation, which the charge uses: it counts down by as much.
        policy : str, optional
            The digest of the policy that the caps are of: where the newest amendment of an account
            names it, the ledger's caps hold in their place.

        Returns
        -------
        Charged
            The receipt, or the stored answer of the same request under the same token.

        Raises
        ------
        BudgetError
            An account cannot bear it; nothing was charged to any.
        PromiseError
            The charge, an account and the tables do not agree on one unit and one neighbour
            relation, or rows were charged to another account before; nothing was charged.
        TokenError
            The token was used for something else, or its answer was never stored.
        LedgerLockedError, LedgerCorruptError, LedgerError
            Nothing was charged, unless the disk failed during the commit.

        Warns
        -----
        UserWarning
            A table is charged for the first time that may hold the rows of another account's.
        """
        names = checked_accounts(accounts)
        texts = caps_json(accounts)
        check_blocks(blocks)
        check_text("token", token)
        if not re.fullmatch(r"[0-9a-f]{16,128}", request):
            raise ArgumentError("request must be a digest in lower-case hexadecimal")
        cost = as_charge(charge)
        promise = cost.promise
        if promise is None:
            raise PromiseError(
                "this charge does not say whom it protects, so it cannot be added to an account: "
                "state its unit and neighbours, as in loss.promising(Promise('patient'))"
            )
        cost = cost.rounded_up(grain(blocks))
        canonical(note)
        read = ReadTables(tables or {}, sources, same)
        doubts: list[str] = []
        with self._writing() as writing:
            connection = writing.connection
            earlier = connection.execute(_BY_TOKEN, {"token": token}).scalar_one_or_none()
            if earlier is not None:
                return _replay(connection, chain.read_record(connection, earlier), names, request)
            known = writing.at.tables
            bound = read.bound(known, promise)
            doubts += self._doubts(read, known, promise)
            self._open_missing(writing, texts, promise, policy)
            # One hour for the check and for the entry: `verify` reads it there.
            now = dated(writing.at.time)
            used = [] if reservation is None else [holder_account(connection, reservation, now)]
            totals, spending = self._bear(connection, [*used, *names], cost, blocks, now)
            record = writing.append(
                "charge",
                time=now,
                totals=totals,
                promise=promise,
                tables=bound,
                note=note,
                charge=cost,
                blocks=blocks,
                spending=spending,
                token=token,
                request=request,
                reservation=reservation,
            )
            identity = _identity(connection)
        for said in doubts:
            warnings.warn(said, stacklevel=3)
        return Charged(record.number, record.hash, False, None, identity)

    def replay(self, accounts: Sequence[str], *, token: str, request: str) -> Charged | None:
        """What an earlier charge under this token was answered; ``None`` where there was none.

        Parameters
        ----------
        accounts, token, request
            As for `charge`, which does the same before it charges. Here nothing is ever charged.

        Raises
        ------
        TokenError
            The token was used for something else, or its answer was never stored.
        """
        names = checked_accounts(accounts)
        check_text("token", token)
        with self._reading() as (connection, _):
            earlier = connection.execute(_BY_TOKEN, {"token": token}).scalar_one_or_none()
            if earlier is None:
                return None
            return _replay(connection, chain.read_record(connection, earlier), names, request)

    def charged(self, token: str) -> Entry | None:
        """The charge under a token, seen to agree with its own hash; ``None`` where there is none.

        Raises
        ------
        LedgerCorruptError
            It was changed.
        """
        check_text("token", token)
        with self._reading() as (connection, _):
            number = connection.execute(_BY_TOKEN, {"token": token}).scalar_one_or_none()
            return None if number is None else chain.read_record(connection, number).entry()

    def store_answer(self, entry: int, answer: str) -> None:
        """Keep the answer of a charge, so that asking again replays it. Once for each charge.

        Raises
        ------
        LedgerError
            The entry is not a charge, or has its answer.
        """
        try:
            sum_of_answer = digest(answer)
        except (AttributeError, UnicodeEncodeError) as error:
            raise ArgumentError("answer must be text that UTF-8 can write") from error
        with self._writing() as writing:
            connection, count = writing.connection, writing.at.count
            if not 0 <= entry < count:
                raise LedgerError(f"there is no entry {entry}; the last is {count - 1}")
            charged = chain.read_record(connection, entry)
            if charged.kind != "charge":
                raise LedgerError(f"entry {entry} is not a charge, so it has no answer")
            if connection.execute(_ANSWER_TO, {"number": entry}).first() is not None:
                raise LedgerError(f"entry {entry} has its answer already, and it cannot change")
            # No time of its own: how long after the charge it came may depend on the data.
            writing.append(
                "answer",
                time=charged.time,
                totals={},
                note={},
                answers=entry,
                answer=answer,
                answer_digest=sum_of_answer,
            )

    def balance(self, name: str, *, reservation: str | None = None) -> Balance:
        """Caps, spending, reservations and remainder of an account.

        Parameters
        ----------
        name : str
        reservation : str, optional
            The id of a reservation: the remainder is then that of its holder, for whom it is kept.
        """
        with self._reading() as (connection, at):
            account = self._account(connection, name)
            now = dated(at.time)
            own = None if reservation is None else holder_account(connection, reservation, now)
            held = held_on(name, opened_reservations(connection, now, without=own))
            first = connection.execute(_FIRST_CHARGE, {"account": name}).scalar_one()
            paced = None if first is None else (chain.read_record(connection, first).time, now)
        return replace(account.balance_at(now, held), paced=paced)

    def check(
        self,
        promise: Promise,
        *,
        accounts: Mapping[str, Budget] | None = None,
        tables: Mapping[str, str] | None = None,
        sources: Mapping[str, Mapping[str, str]] | None = None,
        same: Callable[[Source, Source], bool | None] = same_text,
        policy: str | None = None,
    ) -> None:
        """See that a policy agrees with what is written down; every `charge` checks it again.

        Parameters
        ----------
        promise : Promise
            Whom the releases of these accounts and tables protect.
        accounts : mapping of str to BudgetFilter or BlockBudget, optional
            Their caps. One that is not there agrees.
        tables, sources, same, policy : optional
            As for `charge`.

        Raises
        ------
        PromiseError
            An account is bound to another promise, or a table was charged for another unit, other
            neighbours, or by another rule, or has rows that were charged to another account.
        LedgerError
            An account has other caps.
        """
        check_promise(promise)
        texts = caps_json(accounts or {})
        read = ReadTables(tables or {}, sources, same)
        with self._reading() as (connection, at):
            for name, text in texts.items():
                same_caps(chain.read_account(connection, name), text, promise, policy)
            read.bound(at.tables, promise)
            doubts = self._doubts(read, at.tables, promise)
        for said in doubts:
            warnings.warn(said, stacklevel=3)

    def tables(self) -> dict[str, tuple[Promise, str]]:
        """The tables charged so far: the promise of each, and what says whose a row is."""
        with self._reading() as (_, at):
            return {name: (held.promise, held.by) for name, held in at.tables.items()}

    def sources(self) -> dict[str, dict[str, str]]:
        """By table charged so far: what its rows are known by, each with its mark."""
        with self._reading() as (_, at):
            return {name: dict(held.sources) for name, held in at.tables.items()}

    def accounts(self) -> list[str]:
        """The names of all accounts, in alphabetical order."""
        with self._reading() as (connection, _):
            return _names(connection)

    def entries(
        self,
        account: str | None = None,
        limit: int | None = None,
        *,
        kind: str | None = None,
        before: int | None = None,
        after: int | None = None,
    ) -> list[Entry]:
        """The newest entries, oldest of them first.

        Parameters
        ----------
        account : str, optional
            Only those that touch this account, and the answers to them.
        limit : int, optional
            At most so many.
        kind : str, optional
            Only those of this kind.
        before, after : int, optional
            Only those whose number is below, or above. So a long ledger is read in parts.
        """
        if limit is not None and limit < 0:
            raise ArgumentError("limit must be at least 0")
        with self._reading() as (connection, _):
            held = columns_of(connection)
            query = select(held).order_by(held.c["number"].desc()).limit(limit)
            if kind is not None:
                query = query.where(held.c["kind"] == kind)
            if before is not None:
                query = query.where(held.c["number"] < before)
            if after is not None:
                query = query.where(held.c["number"] > after)
            if account is not None:
                self._account(connection, account)
                mine = select(touches.c["entry"]).where(touches.c["account"] == account)
                query = query.where(held.c["number"].in_(mine) | held.c["answers"].in_(mine))
            records = [chain.checked(row) for row in connection.execute(query)]
            return [record.entry() for record in reversed(records)]

    def answered(self, noted: str) -> list[tuple[Entry, str]]:
        """The charges whose note begins with a field of this name, each with its answer.

        Oldest first; those whose answer was never stored are left out. Fields of a note are in
        alphabetical order. Each entry is seen to agree with its own hash.
        """
        begins = canonical({noted: 0}).removesuffix("0}")
        return self._answered(lambda held: held.c["note"].startswith(begins, autoescape=True))

    def answers_to(self, request: str) -> list[tuple[Entry, str]]:
        """The charges of one request, under whatever token and for whomever, each with its answer.

        Oldest first; those whose answer was never stored are left out. Each entry is seen to agree
        with its own hash. Costs the same however long the ledger is.
        """
        # An index that was made to lie may hide an answer, and never gives another's: a row that it
        # takes for another request's does not agree with its hash.
        return self._answered(lambda held: held.c["request"] == request)

    def _answered(self, of: Callable[[Table], ColumnElement[bool]]) -> list[tuple[Entry, str]]:
        found = []
        with self._reading() as (connection, _):
            held = columns_of(connection)
            charges = select(held).where(of(held))
            charges = charges.where(held.c["kind"] == "charge").order_by(held.c["number"])
            for row in connection.execute(charges).all():
                record = chain.checked(row)
                answer = _answer(connection, record.number)
                if answer is not None:
                    found.append((record.entry(), answer))
        return found

    def answer(self, number: int) -> tuple[Entry, str] | None:
        """One charge with its answer, each seen to agree with its own hash; ``None`` where there is
        no such entry, or none was stored for it. Costs the same however long the ledger is."""
        with self._reading() as (connection, at):
            if not 0 <= number < at.count:
                return None
            answer = _answer(connection, number)
            if answer is None:
                return None
            return chain.read_record(connection, number).entry(), answer

    def entry(self, number: int) -> Entry:
        """One entry, seen to agree with its own hash.

        Raises
        ------
        LedgerError
            There is no such entry.
        LedgerCorruptError
            It was changed.
        """
        with self._reading() as (connection, at):
            count = at.count
            if not 0 <= number < count:
                raise LedgerError(f"there is no entry {number}; the last is {count - 1}")
            return chain.read_record(connection, number).entry()

    def verify(self, progress: Callable[[int, int], None] | None = None) -> Verification:
        """Check every hash, total and cap; others may go on charging meanwhile. Costs O(n).

        Parameters
        ----------
        progress : callable, optional
            Called from time to time with how many entries are checked, and how many there are.
        """
        found = verify(self._store, progress)
        if found.ok:
            try:
                with self._reading():
                    pass
            except LedgerCorruptError:
                problem = "it lacks an entry that this process has seen: an older copy of it, or "
                problem += "one that went on by itself, stands in its place"
                return replace(found, ok=False, problem=problem)
        return found

    def upgrade(self) -> bool:
        """Bring it to the newest format on the record, all or nothing.

        The chain goes on as it is: entries keep their numbers and hashes, so that tokens replay and
        certificates hold; an entry of the kind ``upgrade`` says again what each account may spend
        and has spent. A file of the earlier format is kept beside, as ``NAME.format-2``; never put
        it back in use.

        Returns
        -------
        bool
            False where it is in that format already.

        Raises
        ------
        LedgerCorruptError
            It does not verify, and stays as it is.
        LedgerError
            It cannot be written.
        """
        found = self.verify()
        if not found.ok:
            raise LedgerCorruptError(
                f"{self.name} is not brought to another format, since it does not hold: "
                f"{found.describe()}"
            )

        def fill(connection: Connection) -> None:
            at = chain.read_head(connection)
            accounts = {}
            for name in _names(connection):
                account = self._account(connection, name)
                spent = asdict(Amounts.of(account.spent))
                accounts[name] = {"caps": json.loads(account.budget_text), "spent": spent}
            note = {"format": FORMAT, "from": found_format, "accounts": accounts}
            chain.append(connection, at, "upgrade", totals={}, note=note)

        with self._store.read() as connection:
            found_format = format_of(connection)
        return self._store.upgrade(fill)

    def _doubts(self, read: ReadTables, known: Tables, promise: Promise) -> list[str]:
        """What is to be said of tables that may hold another account's rows; once each."""
        found = []
        for name, other in read.doubts(known, promise):
            if (name, other) not in self._doubted:
                self._doubted.add((name, other))
                found.append(doubt(name, other, known[other].promise))
        return found

    @contextmanager
    def _reading(self) -> Iterator[tuple[Connection, chain.Head]]:
        """A transaction that reads a ledger which holds all that was seen of it."""
        known = self._witness.known()
        with self._store.read() as connection:
            at = chain.read_head(connection)
            self._witness.check(connection, at, known, _identity, writes=False)
            yield connection, at

    @contextmanager
    def _writing(self) -> Iterator[chain.Writing]:
        """A transaction that writes to one; what it wrote has been seen once it is committed."""
        with self._store.write() as connection:
            at = chain.read_head(connection)
            known = self._witness.known()
            self._witness.check(connection, at, known, _identity, writes=True)
            writing = chain.Writing(connection, at)
            yield writing
        self._witness.saw(writing.at)

    def _account(self, connection: Connection, name: str) -> AccountState:
        account = chain.read_account(connection, name)
        if account is None:
            raise LedgerError(f"no account {name!r}{nearest(name, _names(connection))}")
        return account

    def _bear(
        self,
        connection: Connection,
        names: Sequence[str],
        charge: Charge,
        blocks: BlockSet | None,
        now: str,
    ) -> tuple[dict[str, Charge], dict[str, BlockState]]:
        """What each account, and each block, has spent with this charge, if they can bear it."""
        totals, spending = {}, {}
        units = None
        read = False
        reservations = opened_reservations(connection, now)
        used = next((name for name in names if is_reservation(name)), None)
        if used is not None:
            check_use(self._account(connection, used), names, blocks)
        for name in names:
            account = self._account(connection, name)
            if account.promise != charge.promise:
                raise other_promise(account, charge.promise)
            totals[name] = account.spent + charge
            caps = account.budget
            whole: BudgetFilter | None
            if is_own_rule(caps):
                total = units_of(totals[name])
                bears = holds(caps, units_of(charge), total, account.opened, now)
                whole = None
            elif isinstance(caps, BlockBudget):
                charged = current(caps, now) if by_clock(caps) else blocks
                read = read or not by_clock(caps)
                if charged is None:
                    raise ArgumentError(
                        f"blocks must be given: {account.shown} has a budget for each {caps.noun}"
                    )
                units = units or units_of(charge)
                assert account.state is not None
                spending[name], after = account.state.plus(charged, units)
                each = limits(caps.each)
                bears = all(within(each, total) for total in after)
                whole = caps.lifetime
            else:
                assert isinstance(caps, BudgetFilter)
                bears, whole = True, caps
            if not bears or (whole is not None and not whole.admits(totals[name])):
                raise _refused(account, charge, blocks, now)
            held = held_on(name, reservations, used, units_of(charge))
            if held and not room(
                caps,
                units_of(totals[name]),
                spending.get(name),
                blocks,
                held,
                account.opened or now,
                now,
            ):
                others = held_on(name, [r for r in reservations if r.name != used])
                raise _refused(account, charge, blocks, now, others)
        if blocks is not None and not read:
            raise ArgumentError("blocks must be left out: no account has a budget for each block")
        return totals, spending


def _refused(
    account: AccountState,
    charge: Charge,
    blocks: BlockSet | None,
    now: str,
    held: Sequence[Held] = (),
) -> BudgetError:
    balance = account.balance_at(now, held)
    said = f"{account.shown} cannot bear this charge; nothing was spent. "
    if held:
        said += "Others have reserved some of it. "
    if is_own_rule(balance.caps) or by_clock(balance.caps):
        said += f"It is for {balance.caps.describe()}. "
    if by_clock(balance.caps) and balance.window is not None:
        when = balance.caps.calendar.describe(balance.window)
        return BudgetError(f"{said}What remains in {when}: {balance.remaining.describe()}")
    if balance.blocks is None or blocks is None:
        return BudgetError(f"{said}What remains: {balance.remaining.describe()}")
    return BudgetError(said + balance.blocks.refusal(charge, blocks))


def _answer(connection: Connection, charged: int) -> str | None:
    """The answer to a charge, if it was stored."""
    number = connection.execute(_ANSWER_TO, {"number": charged}).scalar_one_or_none()
    return None if number is None else str(chain.read_record(connection, number).answer)


def _replay(connection: Connection, record: Record, names: Sequence[str], request: str) -> Charged:
    charged = without_reservations(record.totals_after())
    if record.request != request or charged != set(names):
        raise TokenError(
            f"this token was used for another request (entry {record.number}): take a new one"
        )
    number = connection.execute(_ANSWER_TO, {"number": record.number}).scalar_one_or_none()
    if number is None:
        raise TokenError(
            f"this request was charged before (entry {record.number}), and its answer was never "
            "stored: data may have been touched, so it stays charged; ask anew with a new token"
        )
    answer = chain.read_record(connection, number).answer
    return Charged(record.number, record.hash, True, answer, _identity(connection))


def _identity(connection: Connection) -> str:
    with reading("entry 0"):
        return str(chain.read_record(connection, 0).entry().note["ledger"])


def _names(connection: Connection) -> list[str]:
    query = select(func.distinct(touches.c["account"])).order_by(touches.c["account"])
    return [row[0] for row in connection.execute(query)]
