"""A process that has loaded what questions need, and is forked for each that is to run them.

To load it takes one to two seconds of a processor, for which whoever asks first would wait. It is
run as a program, reads no policy and no data, and draws no noise: what it forks has nothing of
another process but libraries.

Its server sends ``fork`` with a socket and a file that the new process holds, or ``end NUMBER`` of
a process to kill, whose number is nobody else's until then; it answers with the number. It ends
when its server does.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from contextlib import suppress

from dither.service.work import _run
from dither.service.work._loading import load_what_most_ask_for
from dither.service.work._processes import FORK

__all__ = ["main"]

PATIENCE = 2.0
"""Seconds that others wait at most for the end of a process that was killed."""

MODULES = (
    "dither.engines.duckdb.engine",
    "cryptography.hazmat.primitives.ciphers",
    "sqlalchemy.dialects.sqlite.pysqlite",
)
"""Loaded beside what every service loads, but not polars: it starts threads, which a fork lacks."""


def forked(server: socket.socket) -> bool:
    """Fork for whoever asks, until nobody can ask any more.

    Parameters
    ----------
    server : socket
        Of messages.

    Returns
    -------
    bool
        True in a process that was forked: its first two files are the socket that it was sent.
        False in this one, when its server has gone.
    """
    late = set[int]()
    while True:
        message, files, *_ = socket.recv_fds(server, 64, 2)
        if not message:
            return False
        what, _, number = message.decode().partition(" ")
        if what != FORK:
            if not _killed(int(number)):
                late.add(int(number))
        elif (child := os.fork()) == 0:
            server.close()
            os.setsid()
            for place in (0, 1):
                os.dup2(files[0], place)
            os.close(files[0])
            # The other file stays open: whoever sees it locked knows that this process lives.
            return True
        else:
            number = str(child)
        for one in files:
            os.close(one)
        late = {one for one in late if not os.waitpid(one, os.WNOHANG)[0]}
        server.send(number.encode())


def _killed(child: int) -> bool:
    """Kill a process and its group; whether it has ended. One that waits for a disk may not yet."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while not os.waitpid(child, os.WNOHANG)[0]:
        if time.monotonic() > until:
            return False
        time.sleep(0.001)
    return True


def main() -> None:
    """Load, and fork; what is forked runs questions."""
    with socket.socket(fileno=int(sys.argv[1])) as server:
        load_what_most_ask_for(*MODULES)
        # What is there now stays: no search for garbage makes a copy of its pages.
        gc.collect()
        gc.freeze()
        child = forked(server)
    if child:
        _run.main()


if __name__ == "__main__":
    main()
