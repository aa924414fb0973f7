"""Code of others in a process of its own, so that the exit code is never theirs.

A function that is handed the data may end its process by `os._exit`, `os.exec` or a call of C,
which nothing inside of the process can refuse or see. It would choose the exit code, and a gate
that asks for 0 would be green. So a gate runs it in a child, which leaves a mark on its way out.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import click

from dither.cli._terminal import INCONCLUSIVE

__all__ = ["guarded"]


def guarded(work: Callable[[], None], what: str) -> None:
    """Do the work in a child process, and leave as it does, where it comes to its end.

    Where the system has no `fork`, or output is captured inside of this process, the work is done
    here, and what ends the process ends it.

    Raises
    ------
    click.ClickException
        The child was ended from inside; says so, with the exit code for what was not judged.
    """
    if not hasattr(os, "fork") or sys.stdout is not sys.__stdout__:
        work()
        return
    mark, marks = os.pipe()
    life, alive = os.pipe()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
    child = os.fork()
    if not child:
        os.close(mark)
        os.close(alive)
        _begin(marks, life)
        work()
        return
    os.close(marks)
    os.close(life)
    code = os.waitstatus_to_exitcode(_wait(child))
    os.set_blocking(mark, False)
    ended = b""
    with suppress(BlockingIOError):
        ended = os.read(mark, 1)
    if ended and code >= 0:
        click.get_current_context().exit(code)
    raise _Cut(what, code)


class _Cut(click.ClickException):
    """Work whose process was ended."""

    exit_code = INCONCLUSIVE

    def __init__(self, what: str, code: int) -> None:
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        super().__init__(
            f"{what} ended the process {how}, so that nothing was judged. Let it return an answer "
            "or raise an exception"
        )


def _begin(marks: int, life: int) -> None:
    """Be a child: out of reach of the keyboard, which the parent hands on, and gone with it."""
    os.setpgid(0, 0)
    home = os.getpid()

    def leave() -> None:
        if os.getpid() == home:
            os.write(marks, b".")

    def follow() -> None:
        os.read(life, 1)
        os.kill(home, signal.SIGKILL)

    atexit.register(leave)
    threading.Thread(target=follow, daemon=True).start()


def _wait(child: int) -> int:
    """How the child ended; what interrupts this process is handed on to it."""

    def hand_on(number: int, _: Any) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, hand_on)
    return os.waitpid(child, 0)[1]
