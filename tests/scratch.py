"""Where tests write: in memory where there is room, since they sync thousands of small files.

A ledger's charge is on the disk before its engine runs. On a disk that is most of what its tests
take, all of it spent waiting; a process that is killed finds the same in memory as on a disk.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30
"""Bytes that are to be free: a whole run keeps a quarter of that, most of it an environment."""


def in_memory() -> str | None:
    """A folder in memory where there is room in one, and programs may be run."""
    if not (MEMORY.is_dir() and os.access(MEMORY, os.W_OK | os.X_OK)):
        return None
    if os.statvfs(MEMORY).f_flag & getattr(os, "ST_NOEXEC", 0):
        return None
    return str(MEMORY) if shutil.disk_usage(MEMORY).free > ROOM else None


def write_in_memory() -> None:
    """Temporary files of this process, and of those that it starts, unless TMPDIR says where."""
    if "TMPDIR" not in os.environ and (folder := in_memory()):
        os.environ["TMPDIR"] = folder
        tempfile.tempdir = None  # somebody may have asked before
