"""Processes that charge one ledger at once; run as a script, what they are forked from.

An interpreter that has loaded the ledger, and done nothing else, is started once and forked:
eight that each load it take most of the time of what they are started for.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path


def raced(arguments: Sequence[Sequence[str]]) -> list[list[str]]:
    """The words that Python processes print, each of which says "ready" and then begins with all.

    ``arguments`` are those of the interpreter, one entry a process: a script or ``-c`` and a
    program, and what it reads in ``sys.argv``.
    """
    to, said = [os.pipe() for _ in arguments], [os.pipe() for _ in arguments]
    theirs = [(come[0], go[1]) for come, go in zip(to, said, strict=True)]
    ours = [(come[1], go[0]) for come, go in zip(to, said, strict=True)]
    with contextlib.ExitStack() as files:
        writers = [files.enter_context(os.fdopen(write, "w")) for write, _ in ours]
        readers = [files.enter_context(os.fdopen(read)) for _, read in ours]
        started = subprocess.Popen(
            [sys.executable, __file__, json.dumps([list(map(list, theirs)), list(arguments)])],
            pass_fds=[one for both in theirs for one in both],
            start_new_session=True,
        )
        try:
            for one in theirs:
                for end in one:
                    os.close(end)
            for reader in readers:
                assert reader.readline() == "ready\n"
            for writer in writers:
                writer.write("go\n")
                writer.flush()
            words = [reader.read().split() for reader in readers]
            assert started.wait(timeout=120) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(started.pid, 9)
            started.wait()
    return words


def _forked(theirs: Sequence[Sequence[int]], arguments: Sequence[Sequence[str]]) -> int:
    """Let each be a child of this process; how many of them failed."""
    children = []
    for (come, go), given in zip(theirs, arguments, strict=True):
        child = os.fork()
        if child == 0:
            os.dup2(come, 0)
            os.dup2(go, 1)
            # What others write ends when they do.
            for one in theirs:
                for end in one:
                    os.close(end)
            program = given[0] == "-c"
            sys.argv = ["-c", *given[2:]] if program else list(given)
            if program:
                exec(compile(given[1], "-c", "exec"), {"__name__": "__main__"})
            else:
                runpy.run_path(given[0], run_name="__main__")
            sys.exit(0)
        children.append(child)
    for both in theirs:
        for end in both:
            os.close(end)
    return sum(os.waitpid(child, 0)[1] != 0 for child in children)


if __name__ == "__main__":
    # As a script is run: what lies beside this file is not in its way.
    sys.path.remove(str(Path(__file__).parent))
    import dither.ledger
    import dither.ledger.stores._sqlite  # noqa: F401

    with contextlib.suppress(ImportError):
        import psycopg  # noqa: F401
        import sqlalchemy.dialects.postgresql.psycopg  # noqa: F401

    sys.exit(_forked(*json.loads(sys.argv[1])))
