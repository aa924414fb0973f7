"""Copies of a service's ledger and database, taken while it runs, and put back.

The database is copied first, with what schedules keep and what surveys counted, and the ledger
after it. So whatever the copy of the database says of a question, its charge and its answer are in
the copy of the ledger: a copy never knows an answer without its charge. What the ledger has beyond
that is found by its token when it is asked again.

An older ledger has forgotten what was spent since, and cannot say so itself. A checkpoint of the
owner's can (`dither.ledger.Checkpoint`): put back is only what holds the policy's.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dither.errors import ArgumentError, LedgerCorruptError, LedgerError
from dither.ledger import Ledger
from dither.ledger._checkpoint import Checkpoint
from dither.policy._policy import Policy
from dither.service._settings import read_settings
from dither.service.collect._settings import state_of
from dither.service.schedule._state import BESIDE

__all__ = ["back_up", "put_back"]

LOGS = ("-wal", "-journal", "-shm")
"""Files that SQLite leaves beside one whose process was killed, and takes for the log of whatever
stands under that name when it is opened next: a copy that is put there would be written over."""

ELSEWHERE = (
    "the ledger is on a server, which copies it with all that stands beside it in one snapshot: "
    "pg_dump of its database, whose schema {ledger} it is (see the page on deploying)"
)


def back_up(policy: Policy, folder: Path) -> int:
    """Copy the ledger and the service's database, while both are used.

    Parameters
    ----------
    policy : Policy
    folder : Path
        Of the copies; it is made, and has all of them or is not there.

    Returns
    -------
    int
        The number of the last entry that the copy of the ledger has.

    Raises
    ------
    ArgumentError
        The folder is there already, or the ledger is on a server.
    LedgerError
        A file cannot be read or written, or the copy of the ledger is not whole.
    """
    ledger, *others = _files(policy)
    if folder.exists():
        raise ArgumentError("folder: it is there already; a back-up never writes over another")
    with _told():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        try:
            # The ledger last: it must know at least what the database knows.
            for path in (*others, ledger):
                if path.exists() or path == ledger:
                    _copy(path, draft / path.name)
            last = _whole(draft / ledger.name)
            _synced(draft)
            draft.rename(folder)
            _synced(folder.parent)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return last


def put_back(policy: Policy, folder: Path) -> int:
    """Put the copies of a folder where the policy has its ledger and its database.

    Parameters
    ----------
    policy : Policy
    folder : Path
        As `back_up` made it.

    Returns
    -------
    int
        The number of the last entry of the ledger.

    Raises
    ------
    ArgumentError
        A file stands where one would be put, or a log of SQLite beside that place, or the ledger is
        on a server.
    LedgerError
        There is no such copy, it is not whole, or a file cannot be written.
    CheckpointError
        The copy is older than the policy's checkpoint; nothing was put back.
    """
    files = ledger, *_ = _files(policy)
    for path in files:
        for there in (path, *(path.with_name(path.name + end) for end in LOGS)):
            if there.exists():
                raise ArgumentError(
                    f"{there.name} is there: stop the service, and move all files that begin with "
                    f"{path.name} away first, together. Keep them: the newest ledger is the one "
                    "that holds"
                )
    with _told():
        source = folder / ledger.name
        if not source.is_file():
            raise ArgumentError(f"folder: it has no {ledger.name}, the ledger of this policy")
        last, owner = _whole(source), policy.owner
        if owner.checkpoint is not None and owner.public is not None:
            seen = Checkpoint.read(owner.checkpoint, owner.public)
            Ledger.open(source, create=False, checkpoint=seen).close()
        # The ledger first: a service that started between the two would begin a new one.
        for path in files:
            if (folder / path.name).is_file():
                draft = path.with_name(f".{path.name}.new")
                draft.unlink(missing_ok=True)
                _copy(folder / path.name, draft)
                draft.rename(path)
                _synced(path.parent)
    return last


def _files(policy: Policy) -> tuple[Path, ...]:
    """The ledger, the service's database, what schedules keep, and what surveys counted."""
    ledger, database = policy.ledger, read_settings(policy).database
    if not isinstance(ledger, Path) or not isinstance(database, Path):
        raise ArgumentError(ELSEWHERE.format(ledger=getattr(ledger, "schema", "")))
    found = [ledger, database, ledger.with_name(f"{ledger.name}{BESIDE}")]
    counted = state_of(policy.around.get("collect", {}), policy.folder)
    if isinstance(counted, Path):
        found.append(counted)
    if len({path.name for path in found}) < len(found):
        raise ArgumentError(
            "service.database and collect.state must have other names than the ledger's files"
        )
    return tuple(found)


def _copy(path: Path, to: Path) -> None:
    """One file, as SQLite has it at one moment, for this user alone."""
    os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    source = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
    with closing(source), closing(sqlite3.connect(to)) as copy:
        source.backup(copy)
        # One file, without a log beside it that would have to come along.
        copy.execute("PRAGMA journal_mode = DELETE")
    with to.open("rb") as written:
        os.fsync(written.fileno())


def _whole(ledger: Path) -> int:
    with Ledger.open(ledger, create=False) as book:
        found, (last,) = book.verify(), book.entries(limit=1)
    if not found.ok:
        raise LedgerCorruptError(f"the copy of the ledger is not whole: {found.problem}")
    return last.number


def _synced(folder: Path) -> None:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except (OSError, sqlite3.Error):
        raise LedgerError(
            "the files cannot be copied: see that they are there, that you may read them and write "
            "beside the copies, and that the disk has room"
        ) from None
