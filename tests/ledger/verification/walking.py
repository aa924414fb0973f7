"""Ledgers as somebody has them who hides what they did, and walks along them in small parts."""

from __future__ import annotations

import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from dither.ledger import Ledger
from dither.ledger._entries import Record
from dither.ledger.stores._opening import opened_store
from dither.ledger.stores._sqlite import TRIGGERS
from dither.ledger.stores._store import Store
from dither.ledger.verification import _helpers as helpers
from dither.ledger.verification import _verify
from dither.ledger.verification._verify import Verification
from ledger.stores import COLUMNS

__all__ = ["InParts", "Inline", "Raw", "in_parts_of"]

InParts = Callable[..., Verification]


class Inline:
    """A part that is walked at once, in this process; what it says goes through a pickle."""

    replies: list[helpers.Reply | None]

    def __init__(self, _: Store, part: helpers.ChainPart) -> None:
        self.start, self.stop = part.start, part.stop
        # From its own store: the one that is verified is in a transaction.
        store = opened_store(part.place, False, part.timeout)
        said = helpers.walked(store, pickle.loads(pickle.dumps(part)), lambda done: None)
        self._reply: helpers.Reply | None = pickle.loads(pickle.dumps(said))
        self.replies.append(self._reply)

    def reply(self, told: Callable[[int], None]) -> helpers.Reply | None:
        """What it came to."""
        told(self.stop)
        return self._reply

    def end(self) -> None:
        """It has ended."""


def in_parts_of(batch: int) -> InParts:
    """Verify in parts of whole batches; the replies of the last are in ``Inline.replies``."""

    def verify(path: Path, processes: int = 4) -> Verification:
        Inline.replies = []
        with pytest.MonkeyPatch.context() as patch, Ledger.open(path) as book:
            patch.setattr(_verify, "BATCH", batch)
            patch.setattr(helpers, "LEAST", 0)
            patch.setattr(helpers, "_processors", lambda: processes)
            patch.setattr(helpers, "begun", Inline)
            return book.verify()

    return verify


class Raw:
    """The tables of a file without their triggers, as somebody has them who hides what they did."""

    def __init__(self, path: Path) -> None:
        self.to = sqlite3.connect(path, isolation_level=None)
        self.to.execute("PRAGMA synchronous = OFF")
        self.to.execute("BEGIN")
        for name in TRIGGERS:
            self.to.execute(f"DROP TRIGGER {name}")

    def record(self, number: int) -> Record:
        """An entry as it is stored."""
        query = f"SELECT {', '.join(COLUMNS)} FROM entries WHERE number = ?"
        return Record(*self.to.execute(query, (number,)).fetchone())

    def chained(self, first: int) -> None:
        """Make all hashes anew from an entry on, and the head."""
        (count,) = self.to.execute("SELECT count FROM head").fetchone()
        for number in range(first, count):
            if number:
                before = self.record(number - 1).hash
                values = (before, number)
                self.to.execute("UPDATE entries SET previous = ? WHERE number = ?", values)
            values = (self.record(number).computed_hash(), number)
            self.to.execute("UPDATE entries SET hash = ? WHERE number = ?", values)
        self.to.execute("UPDATE head SET hash = ?", (self.record(count - 1).hash,))

    def close(self) -> None:
        """Put the triggers back."""
        for text in TRIGGERS.values():
            self.to.execute(text)
        self.to.execute("COMMIT")
        self.to.close()
