"""What a service writes down tells what happened, and nothing of what was asked or found."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from dither.service.web._lines import OWN, write_lines

SECRET = "4711 swordfish"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root, hook, shown = logging.getLogger(), threading.excepthook, warnings.showwarning
    named = [logging.getLogger(name) for name in (OWN, "uvicorn", "uvicorn.error")]
    kept = [(one, one.handlers, one.level, one.propagate) for one in (root, *named)]
    stream = io.StringIO()
    write_lines(stream)
    yield stream
    logging.captureWarnings(False)
    threading.excepthook, warnings.showwarning = hook, shown
    for one, handlers, level, propagate in kept:
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


def read(stream: io.StringIO) -> list[dict[str, Any]]:
    """Every line is JSON by itself, and none has the secret."""
    assert SECRET not in stream.getvalue()
    assert "swordfish" not in stream.getvalue()
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    for line in found:
        assert line.pop("time").endswith("Z")
    return found


def test_what_the_service_says_is_whole(lines: io.StringIO) -> None:
    """With what goes along as fields."""
    said = {"method": "GET", "path": "/jobs/{id}", "status": 404}
    logging.getLogger(OWN).info("answered", extra={"said": said})
    assert read(lines) == [{"level": "info", "from": OWN, "message": "answered", **said}]


def test_what_the_server_says_keeps_its_words_and_numbers(lines: io.StringIO) -> None:
    """A port and a process are told, an address and a query are not."""
    log = logging.getLogger("uvicorn.error")
    log.info("Started server process [%d]", 812)
    log.info("Uvicorn running on %s://%s:%d (Press CTRL+C to quit)", "http", SECRET, 8765)
    log.info('%s - "WebSocket %s" [accepted]', SECRET, "/?q=" + SECRET)
    log.warning("Invalid HTTP request received.")
    log.info("%5.1f %% of %s", 7.25, SECRET)
    assert [line["message"] for line in read(lines)] == [
        "Started server process [812]",
        "Uvicorn running on ...://...:8765 (Press CTRL+C to quit)",
        '... - "WebSocket ..." [accepted]',
        "Invalid HTTP request received.",
        "7.25 % of ...",
    ]


def test_an_error_is_its_class(lines: io.StringIO) -> None:
    """Its words and its trace may show data."""
    try:
        raise ValueError(SECRET)
    except ValueError:
        logging.getLogger("uvicorn.error").exception("Exception in ASGI application\n")
        logging.getLogger("some.library").exception(SECRET)
    server, library = read(lines)
    assert (server["message"], server["error"]) == ("Exception in ASGI application", "ValueError")
    assert library["error"] == "ValueError"
    assert library["where"].startswith("test_lines:")


def test_what_nobody_caught(lines: io.StringIO) -> None:
    """Warnings, threads and tasks that ended by themselves are lines, too."""

    def failing() -> None:
        raise RuntimeError(SECRET)

    async def task() -> None:
        failing()

    async def left() -> None:
        asyncio.ensure_future(task())  # noqa: RUF006
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        warnings.warn(SECRET, stacklevel=1)
    thread = threading.Thread(target=failing)
    thread.start()
    thread.join()
    asyncio.run(left())
    gc.collect()
    found = read(lines)
    assert {line["from"] for line in found} == {"py.warnings", OWN, "asyncio"}
    assert [line["error"] for line in found if line["from"] == OWN] == ["RuntimeError"]
