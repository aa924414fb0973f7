"""What this process has seen of each ledger, which the ledger must still hold.

A chain shows what was changed in it, and not that an older copy of it was put in its place, or one
that went on otherwise. Whoever charged it knows: each `Ledger` keeps the number and the hash of
the last entry that it saw, a process those of every ledger that it used, and a forked process what
its parent knew. An entry's hash covers all before it. So one look into the running transaction, for
that number and that hash, says whether everything that was seen is there still.

What is known is copied before a transaction that reads begins: what other threads wrote later need
not be in the state that it sees. A transaction that writes sees everything that was ever committed,
so it is asked for what is known once it has the lock.
"""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, select

from dither.errors import LedgerCorruptError
from dither.ledger._chain import Head
from dither.ledger.stores._store import entries

__all__ = ["SeenBefore", "Witness"]

_HASH = select(entries.c["hash"]).where(entries.c["number"] == bindparam("number"))


@dataclass(frozen=True, slots=True)
class LastEntry:
    """The last entry that was seen of a ledger, and where."""

    ledger: str
    number: int
    hash: str
    place: Hashable


@dataclass(frozen=True, slots=True)
class SeenBefore:
    """What must be in a ledger: what its object saw, and what the process saw, by identity."""

    own: LastEntry | None = None
    process: Mapping[str, LastEntry] = field(default_factory=dict)


_process: dict[str, LastEntry] = {}
"""By the identity of the ledger."""

_lock = threading.Lock()


def _unlocked() -> None:
    # A thread that held it is not there in a fork.
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlocked)


class Witness:
    """What one `Ledger` has seen.

    Parameters
    ----------
    place : hashable
        Where the ledger is: the same for all objects that open it there.
    name : str
        What messages call it.
    """

    def __init__(self, place: Hashable, name: str) -> None:
        self._place, self._name = place, name
        self._own: LastEntry | None = None

    def known(self) -> SeenBefore:
        """What has been seen so far."""
        own = self._own
        if own is None:
            with _lock:
                return SeenBefore(None, dict(_process))
        found = _process.get(own.ledger)
        return SeenBefore(own, {} if found is None else {own.ledger: found})

    def check(
        self,
        connection: Connection,
        at: Head,
        known: SeenBefore,
        identity: Callable[[Connection], str],
        *,
        writes: bool,
    ) -> None:
        """See that what was known is in the running transaction, and remember its head.

        A copy at another place may be read where it lacks what the original holds. Nobody writes to
        it in a process that knows the original: that would spend one budget twice.

        Raises
        ------
        LedgerCorruptError
            It is not: an older copy of the ledger stands in its place, another branch of it, or
            another ledger.
        """
        own = known.own
        if own is not None and not _holds(connection, at, own):
            raise self._lacks(own)
        ledger = identity(connection) if own is None else own.ledger
        if own is None and self._another(ledger, known):
            warnings.warn(
                f"{self._name} is another ledger than the one that this process used there: what "
                "that one had spent is not counted in it",
                stacklevel=6,
            )
        process = known.process.get(ledger)
        if process is not None and process != own and not _holds(connection, at, process):
            if writes or process.place == self._place:
                raise self._lacks(process)
            self._keep(ledger, at, everywhere=False)
            return
        self._keep(ledger, at)

    def _another(self, ledger: str, known: SeenBefore) -> bool:
        here = {name for name, seen in known.process.items() if seen.place == self._place}
        return bool(here) and ledger not in here

    def saw(self, at: Head) -> None:
        """Remember what was written, once it is committed."""
        if self._own is not None:
            self._keep(self._own.ledger, at)

    def _keep(self, ledger: str, at: Head, *, everywhere: bool = True) -> None:
        seen = LastEntry(ledger, at.count - 1, at.hash, self._place)
        with _lock:
            if self._own is None or self._own.number < seen.number:
                self._own = seen
            found = _process.get(ledger)
            if everywhere and (found is None or found.number < seen.number):
                _process[ledger] = seen

    def _lacks(self, seen: LastEntry) -> LedgerCorruptError:
        return LedgerCorruptError(
            f"{self._name} is not the ledger that it was: entry {seen.number}, which this process "
            "has seen in it, is gone or is another. An older copy of it was put in its place, or "
            "one that went on by itself, and what was spent since is forgotten there; nothing was "
            "charged. Put the newest copy back. Where that is lost, lower the caps by what it had "
            "spent (`dither ledger amend`), then open it in a new process"
        )


def _holds(connection: Connection, at: Head, seen: LastEntry) -> bool:
    if seen.number == at.count - 1:
        return seen.hash == at.hash
    if seen.number >= at.count:
        return False
    found = connection.execute(_HASH, {"number": seen.number}).scalar_one_or_none()
    return bool(found == seen.hash)
