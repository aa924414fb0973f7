"""How long a scheduled question may run: as long as any other that a service is asked.

It runs among others in one process, which goes on with the next one. So it is ended from within, by
a signal; what takes no notice of that, in the code of a library, ends with the process.
"""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from dither.errors import EngineError

__all__ = ["time_limit"]

AGAIN = 10.0
"""Seconds until it is told once more: where it was told first, something may have caught it."""

GRACE = 60.0
"""Seconds until the process is ended in its place."""

TOO_LONG = (
    "it took longer than [service] timeout gives an owner's question, and was ended; what was "
    "charged stays charged, and is run again under its charge"
)


class _Over(BaseException):
    """Raised where a question is. What takes errors for answers does not catch it."""


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """End what runs within, after some seconds.

    Parameters
    ----------
    seconds : float, optional
        None for no limit. It holds in the main thread of a process alone, which has the signals.

    Raises
    ------
    EngineError
        It was ended.
    """
    if seconds is None:
        yield
        return
    over = left = False

    def ended(_: int, __: FrameType | None) -> None:
        nonlocal over
        if not left:
            over = True
            raise _Over

    before = signal.signal(signal.SIGALRM, ended)
    with Path("/dev/null").open("w") as nowhere:
        try:
            try:
                # What it would print on the way says which line was at work on which data.
                faulthandler.dump_traceback_later(seconds + GRACE, exit=True, file=nowhere)
                signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
                yield
            finally:
                left = True
        except (Exception, _Over):
            if not over:
                raise
            # What was caught on the way may say something else, or a value.
            raise EngineError(TOO_LONG) from None
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
            faulthandler.cancel_dump_traceback_later()
