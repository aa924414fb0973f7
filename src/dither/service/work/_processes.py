"""Processes that are told lines and say lines, each with a folder of its own.

On Linux they are forked from one that has loaded the libraries (`_fork_server`). Elsewhere not all
libraries bear to be forked, so each process loads them for itself.
"""

from __future__ import annotations

import asyncio
import atexit
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

__all__ = [
    "END",
    "FORK",
    "PREFIX",
    "IdleProcesses",
    "WorkProcess",
    "load_libraries",
    "start_process",
    "sweep",
]

FORKS = sys.platform == "linux"
"""Whether processes are forked from one that has loaded the libraries."""

FORK, END = "fork", "end"
"""What the process that forks is told."""

PREFIX = "dither-work-"
"""Of the folders of processes, where temporary files are."""


@dataclass(eq=False)
class WorkProcess:
    """A process that works out what it is told, line by line.

    Parameters
    ----------
    pid : int
        It leads a group of that number.
    said : asyncio.StreamReader
        Ends as the process does.
    told : asyncio.StreamWriter
    folder : str
        Where its temporary files are; it goes with the process.
    kill : callable
        Ends it and its group, whatever it does, and may be called again. Nobody else has its number
        before.
    """

    pid: int
    said: asyncio.StreamReader
    told: asyncio.StreamWriter
    folder: str
    kill: Callable[[], object]
    used: float = field(default_factory=time.monotonic)

    @property
    def has_ended(self) -> bool:
        """Whether it has, by itself or not."""
        # One that had not read what it was told leaves an error, and not an end.
        return self.said.at_eof() or self.said.exception() is not None

    async def tell(self, line: bytes) -> None:
        """Tell it a line.

        Raises
        ------
        OSError
            It has ended.
        """
        self.told.write(line)
        await self.told.drain()

    async def end(self) -> None:
        """End it, whatever it does, and what it left on the disk; whoever waits may leave."""
        await asyncio.shield(self._end())

    async def _end(self) -> None:
        await asyncio.to_thread(self.kill)
        self.told.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class IdleProcesses:
    """Processes that have nothing to do, until somebody has."""

    def __init__(self) -> None:
        self._kept: list[WorkProcess] = []

    def __iter__(self) -> Iterator[WorkProcess]:
        return iter(self._kept)

    def keep(self, process: WorkProcess) -> None:
        """Take one back that has done what it was told."""
        process.used = time.monotonic()
        self._kept.append(process)

    async def take(self) -> WorkProcess | None:
        """The last that was kept and still lives; None where there is none."""
        while self._kept:
            found = self._kept.pop()
            if not found.has_ended:
                return found
            await found.end()
        return None

    async def end(self, idle: float = 0.0) -> None:
        """End those that have had nothing to do for so many seconds."""
        now = time.monotonic()
        old = [one for one in self._kept if now - one.used >= idle]
        self._kept = [one for one in self._kept if one not in old]
        for one in old:
            await one.end()


async def start_process(memory: int | None, *, limit: int = 2**16, seconds: int = 0) -> WorkProcess:
    """Start a process that waits for lines (`dither.service.work._run`).

    Parameters
    ----------
    memory : int or None
        Bytes of address space that it may take.
    limit : int
        Bytes of a line that it says.
    seconds : int
        Of a processor's time that each draft may take; 0 of a process that runs what is paid for.
        Others go before one that works out drafts.
    """
    folder = tempfile.mkdtemp(prefix=PREFIX)  # for this user alone
    held = os.open(folder, os.O_RDONLY)
    # For as long as the process lives, whoever started it.
    fcntl.flock(held, fcntl.LOCK_EX)
    ours, theirs = socket.socketpair()
    beginning = _Beginning(theirs, held)
    try:
        pid, kill = await asyncio.to_thread(beginning.begin)
        said, told = await asyncio.open_connection(sock=ours, limit=limit)
    except BaseException:
        beginning.leave()
        ours.close()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    process = WorkProcess(pid, said, told, folder, kill)
    begin = {
        "environment": {**os.environ, "TMPDIR": folder},
        "folder": _here(),
        "memory": memory or 0,
        "seconds": seconds,
    }
    with suppress(OSError):  # that it has ended is seen by whoever tells it more
        await process.tell(json.dumps(begin).encode() + b"\n")
    return process


class _Beginning:
    """A process that is begun in a thread, for somebody who may leave before it is.

    Parameters
    ----------
    theirs : socket
    held : int
        A file. The process holds both; here they are closed once it does.
    """

    def __init__(self, theirs: socket.socket, held: int) -> None:
        self._theirs, self._held = theirs, held
        self._lock = threading.Lock()
        self._begun, self._left = False, threading.Event()
        self._kill: Callable[[], object] | None = None

    def begin(self) -> tuple[int, Callable[[], object]]:
        """Begin it; its number, and what ends it. Where nobody waits any more, it is ended."""
        with self._lock:
            if self._left.is_set():
                raise ProcessLookupError("nobody waits for it")
            self._begun = True
        start = _forks.start if FORKS else _started
        try:
            pid, kill = start(self._theirs.fileno(), self._held)
        finally:
            self._close()
        with self._lock:
            self._kill, left = kill, self._left.is_set()
        if left:
            kill()
        return pid, kill

    def leave(self) -> None:
        """End it, now or once it has begun; where its thread has not, it never will."""
        with self._lock:
            self._left.set()
            kill = self._kill
        if not self._begun:
            self._close()
        if kill is not None:
            kill()

    def _close(self) -> None:
        self._theirs.close()
        os.close(self._held)


def load_libraries() -> None:
    """Have loaded, in the background, what the first process needs."""
    if FORKS:
        _forks.begin()


def _here() -> str | None:
    """The current folder, unless it is gone."""
    try:
        return str(Path.cwd())
    except OSError:
        return None


def _started(theirs: int, held: int) -> tuple[int, Callable[[], object]]:
    """A process that loads everything; its number, and what ends it."""
    started = subprocess.Popen(
        [sys.executable, "-m", "dither.service.work._run"],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        pass_fds=(held,),
    )
    lock = threading.Lock()

    def kill() -> None:
        with lock:
            if started.returncode is None:
                _kill(started.pid)
                started.wait()

    return started.pid, kill


def _kill(group: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


class _Forks:
    """The process that has loaded the libraries, begun anew if it has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._living = set[int]()
        """Numbers that it keeps, since they were not ended."""
        self._owner = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def begin(self) -> None:
        """Start it, where it is not there; it loads meanwhile."""
        with self._lock:
            self._begun()

    def start(self, theirs: int, held: int) -> tuple[int, Callable[[], object]]:
        """Fork a process that holds these two; its number, and what ends it."""
        with self._lock:
            # It may have been ended by somebody, or by the system for its memory.
            for attempt in (1, 2):
                by = self._begun()
                try:
                    pid = _asked(by, FORK, [theirs, held])
                    break
                except OSError:
                    self._ended()
                    if attempt == 2:
                        raise
            self._living.add(pid)
            return pid, partial(self._kill, by, pid)

    def _kill(self, by: socket.socket, pid: int) -> None:
        with self._lock:
            if pid not in self._living:
                return
            self._living.discard(pid)
            try:
                _asked(by, f"{END} {pid}", [])
            except OSError:
                _kill(pid)  # nobody keeps its number any more: it lives, or ended just now

    def _begun(self) -> socket.socket:
        if self._socket is not None and self._owner == os.getpid():
            return self._socket
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dither.service.work._fork_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
        self._socket, self._owner = ours, os.getpid()
        return ours

    def _ended(self) -> None:
        """End it; what it forked ends by itself, once it has answered."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None and self._owner == os.getpid():
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None

    def end(self) -> None:
        """The same, where this process ends."""
        with self._lock:
            self._ended()


_forks = _Forks()
atexit.register(_forks.end)


def _asked(by: socket.socket, what: str, files: list[int]) -> int:
    """Tell the process that forks, and return the number that it answers."""
    socket.send_fds(by, [what.encode()], files)
    answer = by.recv(64)
    if not answer:
        raise ConnectionResetError("the process that forks has ended")
    return int(answer)


def sweep(older: float = 60.0) -> None:
    """Remove the folders of processes that ended with their server, before it could.

    Parameters
    ----------
    older : float
        Seconds: another server may just be starting a process in a newer one.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            found = folder.lstat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < older:
                continue
            held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # its process lives
        finally:
            os.close(held)
