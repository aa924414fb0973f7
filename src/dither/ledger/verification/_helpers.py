"""Other processes that walk along later parts of a long chain, while its first part is walked.

Each begins in the state that the chain claims there (`seam`), and says how it ended. That counts
only if the walk of all before comes to the same state; else its part is walked again, so that what
is found is always what one walk from the first entry to the last would have found. The same holds
where no process can be started, or where one ends early.

Each reads for itself, batch by batch, as one walk would: entries are only added, so what is added
meanwhile comes after the last that is looked at.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import select

from dither.errors import LedgerCorruptError
from dither.ledger.stores._store import Store, touches
from dither.ledger.verification._batches import onward
from dither.ledger.verification._seams import seam
from dither.ledger.verification._standing import Bad
from dither.ledger.verification._walk import Walk

__all__ = ["ChainPart", "Helper", "Helpers", "Reply", "begun", "parts", "serve", "walked"]

LEAST = 50_000
"""Chains with fewer entries are walked faster than a process starts."""
_MOST = 4
"""So many processes walk at most, this one included."""
_PATIENCE = 0.2
"""Seconds between two looks at how far another process is."""


@dataclass(frozen=True, slots=True)
class ChainPart:
    """What another process is to walk.

    Parameters
    ----------
    place : Path or LedgerSchema
        Where the ledger is.
    timeout : float
        Seconds to wait for another process that holds it.
    start, stop : int
        Numbers of its first entry, and of the first after it.
    batch : int
        So many entries are read in one transaction.
    """

    place: Any
    timeout: float
    start: int
    stop: int
    batch: int


@dataclass(frozen=True, slots=True)
class Reply:
    """How the walk along a part ended.

    Parameters
    ----------
    seam : tuple
        The state that it began in, as `Standing.compared` gives it.
    walk : Walk
        How far it came.
    bad : tuple of (int or None, str), or None
        The number of the entry that is not what it must be, and what is wrong with it.
    unreadable : bool
        The ledger could not be read on.
    """

    seam: tuple[Any, ...]
    walk: Walk
    bad: tuple[int | None, str] | None = None
    unreadable: bool = False

    def hold(self) -> None:
        """Raise what the walk raised.

        Raises
        ------
        Bad, LedgerCorruptError
            As in the other process.
        """
        if self.bad is not None:
            raise Bad(*self.bad)
        if self.unreadable:
            raise LedgerCorruptError("the ledger cannot be read here")


def walked(store: Store, part: ChainPart, told: Callable[[int], None]) -> Reply | None:
    """Walk along one part; ``None`` where the state before it is not found without walking."""
    try:
        walk = seam(store, part.start)
    except Exception:
        # Whatever is wrong there is found, and named, by the walk of what is before.
        return None
    begun_in = walk.compared()
    bad, unreadable = None, False
    try:
        with store.read() as connection:
            accounts = list(connection.execute(select(touches.c["account"]).distinct()).scalars())
        onward(walk, store, accounts, part.stop, part.batch, told)
    except Bad as found:
        bad = found.number, found.problem
    except LedgerCorruptError:
        unreadable = True
    walk.forget()
    return Reply(begun_in, walk, bad, unreadable)


def parts(count: int, batch: int, processes: int) -> list[tuple[int, int]]:
    """Where each process but the first begins and stops; whole batches, in order.

    The first has less to walk, since it checks the tables too.
    """
    if processes < 2 or count < LEAST:
        return []
    whole = 5 * processes - 1
    starts = sorted(
        {count * (5 * place - 1) // whole // batch * batch for place in range(1, processes)} - {0}
    )
    return list(zip(starts, [*starts[1:], count], strict=True))


class Helper:
    """A part, and the process that walks along it.

    Parameters
    ----------
    start, stop : int
        Numbers of its first entry, and of the first after it.
    process : subprocess.Popen
        What writes numbers of entries, and at last its `Reply`.
    """

    def __init__(self, start: int, stop: int, process: subprocess.Popen[bytes]) -> None:
        self.start, self.stop = start, stop
        self._process = process
        self._done = start
        self._reply: Reply | None = None
        assert process.stdout is not None
        self._thread = threading.Thread(target=self._listen, args=(process.stdout,), daemon=True)
        self._thread.start()

    def _listen(self, pipe: IO[bytes]) -> None:
        # One that ends early, or says something else, has said nothing.
        with suppress(Exception):
            while isinstance(said := pickle.load(pipe), int):
                self._done = said
            self._reply = said

    def reply(self, told: Callable[[int], None]) -> Reply | None:
        """How the walk ended, once it has; ``None`` where it did not end as it should."""
        done = self.start
        while self._thread.is_alive():
            self._thread.join(_PATIENCE)
            if self._done > done:
                done = self._done
                told(done)
        return self._reply

    def end(self) -> None:
        """End the process, whatever it is at."""
        self._process.kill()
        self._process.wait()
        self._thread.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


_CODE = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from dither.ledger.verification._helpers import serve; serve()"
)


def begun(store: Store, part: ChainPart) -> Helper | None:
    """A process that walks along a part; ``None`` where none can be started.

    It is an interpreter of its own, and no fork: a fork would take over what other threads hold.
    """
    # Within another program the interpreter may be that program.
    if getattr(sys, "frozen", False) or not Path(sys.executable or "").name.startswith("python"):
        return None
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-c", _CODE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **store.environment},
        )
    except (OSError, ValueError):
        return None
    helper = Helper(part.start, part.stop, process)
    assert process.stdin is not None
    # One that has ended already has no reply.
    with suppress(OSError):
        process.stdin.write(pickle.dumps(sys.path) + pickle.dumps(part))
        process.stdin.close()
    return helper


def serve() -> None:
    """Walk along the part that is read from the standard input; what a helper runs."""
    part = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as answers:
        # Nothing that a library prints gets between the answers.
        os.dup2(2, 1)
        from dither.ledger.stores._opening import opened_store

        def told(done: int) -> None:
            pickle.dump(done, answers)
            answers.flush()

        pickle.dump(walked(opened_store(part.place, False, part.timeout), part, told), answers)


class Helpers:
    """The processes that help with one verification; they end with it."""

    def __init__(self) -> None:
        self.running: list[Helper] = []

    def __enter__(self) -> Helpers:
        return self

    def __exit__(self, *_: object) -> None:
        for helper in self.running:
            helper.end()

    def begin(self, store: Store, count: int, batch: int) -> None:
        """Start them, where a chain of this many entries is worth it."""
        for start, stop in parts(count, batch, min(_processors(), _MOST)):
            helper = begun(store, ChainPart(store.place, store.timeout, start, stop, batch))
            if helper is not None:
                self.running.append(helper)


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
