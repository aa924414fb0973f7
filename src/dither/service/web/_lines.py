"""What a service writes down of itself: a line of JSON for each thing that happens.

A line has no address, no query and no value. What this package says is written so, and is given
whole. What libraries say may hold anything: of uvicorn's messages the words are kept, and of what
fills their gaps the numbers (a port, a process); of every other's the place in its code alone. Of
an error its class is kept, and never its words.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from typing import IO, Any

__all__ = ["OWN", "JsonLines", "write_lines"]

OWN = "dither.service"

SERVER = "uvicorn"

GAP = re.compile(r"%(?:\(\w+\))?[#0\- +]*[\d*]*(?:\.[\d*]+)?[hlL]?([a-zA-Z%])")


class JsonLines(logging.Formatter):
    """A line of JSON for each thing that happens."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        body: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "from": record.name,
        }
        if record.name == OWN:
            body["message"] = record.getMessage()
            said = getattr(record, "said", None)
            if isinstance(said, dict):
                body |= said
        elif record.name.partition(".")[0] == SERVER:
            body["message"] = _words(record)
        else:
            body["message"] = "what a library says is not shown"
            body["where"] = f"{record.module}:{record.lineno}"
        if record.exc_info and record.exc_info[0] is not None:
            body["error"] = record.exc_info[0].__name__
        return json.dumps(body)


def _words(record: logging.LogRecord) -> str:
    """A message whose gaps hold numbers alone."""
    given = list(record.args) if isinstance(record.args, tuple) else []

    def filled(gap: re.Match[str]) -> str:
        if gap[1] == "%":
            return "%"
        value = given.pop(0) if given else None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return str(value) if number else "..."

    text = GAP.sub(filled, record.msg) if isinstance(record.msg, str) else "..."
    return text.partition("\n")[0].strip()


def write_lines(stream: IO[str] | None = None) -> None:
    """Let everything that happens in this process be written so, on standard error.

    Warnings, and errors that nothing caught in a thread, are no exception: they would be shown with
    what they are about.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    # Also those above: another server in this process may have given them handlers of their own.
    for name in (OWN, SERVER, f"{SERVER}.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [], True
        logger.setLevel(logging.INFO)
    logging.captureWarnings(True)
    threading.excepthook = lambda failed: logging.getLogger(OWN).error(
        "a thread ended", extra={"said": {"error": failed.exc_type.__name__}}
    )
