"""Processes that charge one ledger at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence


def raced(arguments: Sequence[Sequence[str]]) -> list[list[str]]:
    """The words that Python processes print, each of which says "ready" and then begins with all.

    ``arguments`` are those of the interpreter, one entry a process.
    """
    workers = [
        subprocess.Popen(
            [sys.executable, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for given in arguments
    ]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.flush()
        said = [worker.communicate(timeout=120)[0].split() for worker in workers]
        assert [worker.returncode for worker in workers] == [0] * len(workers)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return said
