"""A sign of life on the terminal for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["PATIENCE", "waiting"]

PATIENCE = 2.0
"""Seconds of silence."""


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a spinner and the time elapsed on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_spin, args=(what, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _spin(what: str, over: threading.Event) -> None:
    if over.wait(PATIENCE):
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        progress.add_task(what, total=None)
        (task,) = progress.tasks
        # The clock has run since before the spinner showed.
        task.start_time = (task.start_time or 0.0) - PATIENCE
        over.wait()
