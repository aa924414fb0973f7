"""What keeps a ledger: tables, and transactions on them that nothing half-done comes out of.

There are two stores: a file of SQLite (``_sqlite``) and a schema of PostgreSQL (``_postgres``).
Both hold the same rows in the same tables, so that the chain, its hashes and all of its checks
are one, and both promise of ``write``: nobody else writes beside it; when it ends the rows are on
the disk; and what it raises where it does not end says whether they may be.
"""

from __future__ import annotations

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)
from sqlalchemy.schema import CreateIndex

from dither.errors import (
    DitherError,
    LedgerCorruptError,
    LedgerError,
    LedgerLockedError,
    LedgerVersionError,
)
from dither.ledger._entries import FORMAT, READABLE, UNREADABLE

__all__ = [
    "FORMAT",
    "REQUESTS",
    "Store",
    "asking_role",
    "check_version",
    "columns_of",
    "earlier_entries",
    "entries",
    "format_of",
    "head",
    "locked",
    "metadata",
    "states",
    "touches",
]

metadata = MetaData()

OF_OWNER = "kind = 'owner'"
"""Which entries the index of owners has."""

OF_REQUEST = "request IS NOT NULL"
"""Which entries the index of requests has."""

_WHOLE = Integer().with_variant(BigInteger, "postgresql")
# Compared byte by byte wherever it is, as SQLite does.
_TEXT = Text().with_variant(Text(collation="C"), "postgresql")


def _text(name: str, **options: Any) -> Column[Any]:
    return Column(name, _TEXT, **options)


entries = Table(
    "entries",
    metadata,
    Column("number", _WHOLE, primary_key=True, autoincrement=False),
    _text("time", nullable=False),
    _text("kind", nullable=False),
    _text("token", unique=True),
    _text("request"),
    # Amounts are whole numbers of UNIT as text: SQLite's own integers end at 64 bits.
    _text("epsilon"),
    _text("delta"),
    _text("rho"),
    _text("rho_delta"),
    _text("totals", nullable=False),
    _text("promise"),
    # All tables charged so far, carried from entry to entry: the newest entry has them all.
    _text("tables", nullable=False),
    _text("budget"),
    _text("note", nullable=False),
    Column("answers", _WHOLE, unique=True),
    _text("answer"),
    _text("answer_digest"),
    _text("previous", nullable=False),
    _text("hash", nullable=False),
    # Blocks that a charge reads, and the hashes of what each account's have spent.
    _text("blocks"),
    # The owner's: it stands outside of the hash, and covers what is hashed.
    _text("signature"),
    # Who the owner is is found in logarithmic time. `_postgres` says the same to a server: said
    # here, it would load SQLAlchemy's PostgreSQL for every ledger that is a file.
    Index("owners", "number", sqlite_where=text(OF_OWNER)),
    # So are the charges of one request. Ledgers that began without it are given it as they are
    # written to: it says nothing that the entries do not, which are looked at whatever it says.
    Index("requests", "request", sqlite_where=text(OF_REQUEST)),
)

(_REQUESTS,) = (index for index in entries.indexes if index.name == "requests")
REQUESTS = CreateIndex(_REQUESTS, if_not_exists=True)
"""Makes the index of requests where it is not there."""

earlier_entries = Table(
    "entries",
    MetaData(),
    *(
        Column(column.name, column.type)
        for column in entries.columns
        if column.name not in ("blocks", "signature")
    ),
)
"""The columns of format 2."""

# Which entries touch an account: found from here in logarithmic time, held against the chain
# by `verify`. The state of an account is in the entries themselves, so that it is hashed too.
touches = Table(
    "touches",
    metadata,
    _text("account", primary_key=True),
    Column("entry", _WHOLE, ForeignKey("entries.number"), primary_key=True),
    Column("sets_budget", Boolean, nullable=False),
    Index("budgets", "account", "sets_budget", "entry"),
    sqlite_with_rowid=False,
)

# What the blocks of an account have spent. Its hash is in the newest entry that touches it, so that
# a row by another hand, or an older one, is seen.
states = Table(
    "states",
    metadata,
    _text("account", primary_key=True),
    Column("entry", _WHOLE, nullable=False),
    _text("text", nullable=False),
    sqlite_with_rowid=False,
)

head = Table(
    "head",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("count", _WHOLE, nullable=False),
    _text("hash", nullable=False),
)


class Store(ABC):
    """Transactions on one existing ledger.

    Parameters
    ----------
    name : str
        What messages call the ledger.
    timeout : float
        Seconds to wait for another process or thread that holds it.
    """

    def __init__(self, name: str, timeout: float) -> None:
        self.name = name
        self.timeout = timeout
        self.gate = threading.Lock()
        self.closed = False
        self.indexed = False
        """Whether this object has seen that requests have their index."""
        _open_stores.add(self)

    def close(self) -> None:
        """Refuse every later call."""
        with self._held():
            self.closed = True

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one state of the ledger and writes nothing."""
        with self._held(), _readable(self.name), self._transaction(writes=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that nobody else writes beside; committed to the disk when it ends."""
        with self._held(), _readable(self.name), self._transaction(writes=True) as connection:
            yield connection

    @property
    @abstractmethod
    def place(self) -> Any:
        """Where it is, as ``Ledger.open`` takes it."""

    @property
    @abstractmethod
    def spot(self) -> Hashable:
        """The same for all stores of this process that keep one ledger; never written down."""

    @property
    def environment(self) -> dict[str, str]:
        """What the environment of another process lacks that opens the same place."""
        return {}

    @abstractmethod
    def fault(self, connection: Connection) -> str | None:
        """What is wrong with the tables themselves and with what guards them; ``None`` if nothing.

        Parameters
        ----------
        connection : Connection
            Of a transaction that reads.
        """

    def upgrade(self, fill: Callable[[Connection], None]) -> bool:
        """Bring the ledger to the newest format, all or nothing.

        Parameters
        ----------
        fill : callable
            Writes the entry that says so, in the transaction that changes the tables.

        Returns
        -------
        bool
            False where it was in that format already.
        """
        with self._held(), _readable(self.name):
            return self._upgraded(fill)

    @abstractmethod
    def _upgraded(self, fill: Callable[[Connection], None]) -> bool:
        """As ``upgrade`` says."""

    @abstractmethod
    def _transaction(self, *, writes: bool) -> AbstractContextManager[Connection]:
        """As ``read`` and ``write`` say; what the database says is turned into our errors."""

    def _forked(self) -> None:
        """Called in a new process that has this object from its parent."""
        return

    @contextmanager
    def _held(self) -> Iterator[None]:
        if not self.gate.acquire(timeout=self.timeout):
            raise LedgerLockedError(locked(self.name))
        try:
            if self.closed:
                raise LedgerError("this ledger is closed; open it again with Ledger.open")
            yield
        finally:
            self.gate.release()


def check_version(version: int, name: str, *, writes: bool) -> None:
    """Refuse a ledger of another format, which may be read where it is the one before.

    Raises
    ------
    LedgerVersionError
        It is older, or newer than this version of dither.
    """
    if version > FORMAT:
        raise LedgerVersionError(
            f"{name} is written in format {version}, and this version of dither knows "
            f"up to {FORMAT}: upgrade dither"
        )
    if version not in READABLE:
        raise LedgerVersionError(
            f"{name} is written in format {version}, whose accounts do not say which unit "
            "and which neighbours they protect, so nothing can be added to them: keep it, "
            "and begin a new ledger with caps that are lower by what this one has spent"
        )
    if writes and version != FORMAT:
        raise LedgerVersionError(
            f"{name} is written in format {version}, which is read and no longer written; nothing "
            f"was charged: bring it to format {FORMAT} with `dither ledger upgrade LEDGER`, which "
            "keeps its caps, its spending and its answers"
        )


def format_of(connection: Connection) -> int:
    """The format of the ledger that a transaction of a store is on."""
    return int(connection.get_execution_options().get("ledger_format", FORMAT))


def asking_role(connection: Connection) -> str | None:
    """The role that a transaction which writes asks as: one that may charge, and nothing else.

    ``None`` in a file, and for whoever owns the tables.
    """
    found: str | None = connection.get_execution_options().get("ledger_role")
    return found


def columns_of(connection: Connection) -> Table:
    """The table ``entries`` with the columns that the ledger's format has."""
    return entries if format_of(connection) == FORMAT else earlier_entries


def locked(name: str) -> str:
    """What is said of a ledger that somebody else holds."""
    return (
        f"{name} is held by another process; nothing was written: "
        "try again, or open it with a longer timeout"
    )


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn what a damaged cell makes of its reader into one of our errors."""
    try:
        yield
    except DitherError:
        raise
    except UNREADABLE as error:
        raise LedgerCorruptError(
            f"{name} holds something that dither never writes: see `dither ledger verify`, "
            "and restore it from a copy"
        ) from error


# A fork in the middle of another thread's transaction would leave the child with half of it, and
# with locks in memory that nobody ever gives back. So a fork waits until no call is under way.
_open_stores: weakref.WeakSet[Store] = weakref.WeakSet()
_forking: list[Any] = []


def _before_fork() -> None:
    for store in list(_open_stores):
        store.gate.acquire()
        _forking.append(store)


def _after_fork() -> None:
    while _forking:
        _forking.pop().gate.release()


def _in_child() -> None:
    for store in _forking:
        store._forked()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)
