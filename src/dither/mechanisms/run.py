"""A run that holds a secret and may go on only once, in one place.

Noise that is drawn once and compared or added many times must not be used by two runs: what was
charged covers one. So such a run cannot be copied, pickled, or continued in a forked process.
"""

from __future__ import annotations

import copy
import os
import threading
from typing import NoReturn

from dither.errors import ArgumentError

__all__ = ["Run"]


class Run:
    """The base of stateful mechanisms: one process, one lock, no copies."""

    __slots__ = ("_lock", "_pid")

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise ArgumentError("this run belongs to another process: start one here")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise copy.Error("a run holds a secret noise and cannot be copied or pickled")
