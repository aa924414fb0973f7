"""Room for recursion, wherever the caller stands in its own stack.

Questions are trees of bounded depth, and are read, planned and written by recursion, some ten
frames a level. Python ends a program's recursion at 1,000 frames, of which a notebook or a web
server has used many before anything is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

__all__ = ["deep"]

FRAMES = 10_000
"""Enough for the deepest question that is read, behind any caller within the usual limit."""

_lock = Lock()
_inside = 0
_limit = 0


@contextmanager
def deep() -> Iterator[None]:
    """Let what runs inside recurse some thousands of frames; also a decorator of functions.

    The limit is the whole program's. It is raised when the first thread comes in, and is as it was
    when the last one has left.

    Examples
    --------
    >>> import sys
    >>> before = sys.getrecursionlimit()
    >>> with deep():
    ...     sys.getrecursionlimit() >= 10_000
    True
    >>> sys.getrecursionlimit() == before
    True
    """
    global _inside, _limit
    with _lock:
        if not _inside:
            _limit = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_limit, FRAMES))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_limit)
