"""The end of a statement that takes too long: for engines that cannot be told of one.

How many rows a question makes of a unit's is public (``dither.plan.lowering.unnested``,
``max_join_rows``), so no row can make one run for ever. A deadline is the backstop behind that, and
says what every other failure says. Whether it is reached depends on the data all the same:
``docs/guarantee.md`` says what that may tell.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Self

__all__ = ["LONGEST", "TIMEOUT", "Deadline"]

TIMEOUT = 3600
"""Seconds that one statement may take where a policy says nothing."""

LONGEST = 7 * 24 * 3600
"""The most seconds that a policy may let one take."""


AGAIN = 0.2
"""Seconds until what still runs is ended once more."""


class Deadline:
    """While it is entered: after some seconds a function is called, from another thread.

    It is called again until the deadline is left: an engine that is still planning has nothing yet
    that could be ended.

    Parameters
    ----------
    seconds : float
    stop : callable
        Ends what runs, which then fails. It is not running any more once the deadline is left.

    Examples
    --------
    >>> from threading import Event
    >>> ended = Event()
    >>> with Deadline(0.001, ended.set):
    ...     ended.wait(60)
    True
    """

    def __init__(self, seconds: float, stop: Callable[[], Any]) -> None:
        self._thread = threading.Thread(target=self._wait, args=(seconds, stop), daemon=True)
        self._left = threading.Event()

    def _wait(self, seconds: float, stop: Callable[[], Any]) -> None:
        while not self._left.wait(seconds):
            with contextlib.suppress(Exception):
                stop()
            seconds = AGAIN

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._left.set()
        # What comes next must not be ended in this one's place.
        self._thread.join()
