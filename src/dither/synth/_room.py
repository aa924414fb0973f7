"""How many cells a model may have: what a caller allows, of what this machine has."""

from __future__ import annotations

import os
import resource

from dither import _checks as check

__all__ = ["CELL", "room"]

CELL = 8
"""Bytes of a cell."""


def room(max_bytes: int) -> int:
    """Read ``max_bytes``, before anything is charged that would fail for want of memory.

    Raises
    ------
    ArgumentError
        It is no whole number, or more memory than this process may ever have.

    Examples
    --------
    >>> room(2**20)
    1048576
    >>> room(2**70)
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: max_bytes must be at most ...
    """
    most = memory()
    less = f", about 2**{most.bit_length() - 1}: no more memory may be taken here"
    return check.whole("max_bytes", max_bytes, CELL, most, instead=less)


def memory() -> int:
    """Bytes that this process may take at most."""
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return whole if limit == resource.RLIM_INFINITY else min(whole, limit)
