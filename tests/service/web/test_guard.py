"""What every request passes first: sizes, times, names, and headers on every answer."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route

from dither.errors import LedgerError
from dither.service import _hall
from dither.service.web import _guard
from dither.service.web._guard import HEADERS, SECURE, RequestGuard
from service.hospital import Served, served, written


def asked(
    guard: RequestGuard, messages: list[Any], path: str = "/", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """What a guard answers to a request whose body comes in parts, each after its pause."""
    sent: list[Any] = []
    left = list(messages)

    async def receive() -> Any:
        if not left:
            await asyncio.sleep(3600)
        pause, message = left.pop(0)
        await asyncio.sleep(pause)
        return message

    async def send(message: Any) -> None:
        sent.append(message)

    named = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
    scope = {
        **{"type": "http", "method": "POST", "path": path, "query_string": b""},
        "raw_path": path.encode(),
        **{"headers": named, "asgi": {"spec_version": "2.3"}, "server": ("x", 1), "scheme": "http"},
    }
    asyncio.run(asyncio.wait_for(guard(scope, receive, send), 30))
    start = next(one for one in sent if one["type"] == "http.response.start")
    body = b"".join(one.get("body", b"") for one in sent if one["type"] == "http.response.body")
    return start["status"], {k.decode(): v.decode() for k, v in start["headers"]}, body


def part(data: bytes, more: bool, pause: float = 0) -> tuple[float, dict[str, Any]]:
    """A part of a body."""
    return pause, {"type": "http.request", "body": data, "more_body": more}


@pytest.fixture
def echo() -> Any:
    """An application that reads a body, below what a service has around it."""

    async def read(request: Request) -> JSONResponse:
        return JSONResponse({"read": len(await request.body())})

    async def streamed(_: Request) -> StreamingResponse:
        async def lines() -> Any:
            for _ in range(4):
                await asyncio.sleep(0.1)
                yield "line\n"

        return StreamingResponse(lines())

    return Starlette(routes=[Route("/", read, methods=["POST"]), Route("/s", streamed)])


def test_a_body_may_come_in_parts(echo: Any) -> None:
    """As long as it is within its size and its time."""
    parts = [part(b"x" * 10, True), part(b"x" * 10, False)]
    status, headers, body = asked(RequestGuard(echo, 20), parts)
    assert (status, json.loads(body)) == (200, {"read": 20})
    assert HEADERS.items() <= headers.items()
    assert "strict-transport-security" not in headers
    assert SECURE.items() <= asked(RequestGuard(echo, 20, secure=True), parts)[1].items()


@pytest.mark.parametrize("length", ["21", "-1", "1e3", "²", "9" * 5000, ""])
def test_what_says_that_it_is_too_large_is_not_read(echo: Any, length: str) -> None:
    """Or says something that is no length."""
    given = {"content_length": length} if length else {"content_length": "x"}
    status, headers, body = asked(RequestGuard(echo, 20), [], **given)
    assert status == 413
    assert json.loads(body)["error"]["kind"] == "TooLarge"
    assert HEADERS.items() <= headers.items()


def service_around(tmp_path: Path) -> Any:
    """The application of a service, with its policy's rules."""
    return served(written(tmp_path, service="body = 1000"))


def test_a_body_that_comes_slowly_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte now and then does not hold a place for ever; the refusal is JSON with its headers."""
    monkeypatch.setattr(_guard, "BODY_SECONDS", 0.3)
    with service_around(tmp_path) as found:
        drops = [part(b"x", True, 0.1) for _ in range(100)]
        guard, key = found.http.app, found.keys["ann"]
        portal = found.http.portal
        assert portal is not None
        sent: list[Any] = []
        left = list(drops)

        async def receive() -> Any:
            pause, message = left.pop(0)
            await asyncio.sleep(pause)
            return message

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            **{"type": "http", "method": "POST", "path": "/v1/visits/preview", "query_string": b""},
            **{"raw_path": b"/v1/visits/preview", "asgi": {"spec_version": "2.3"}},
            **{"server": ("x", 1), "client": ("y", 2), "scheme": "http"},
            "headers": [
                (b"authorization", f"Bearer {key}".encode()),
                (b"content-type", b"application/json"),
            ],
        }
        portal.call(guard, scope, receive, send)
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["error"]["kind"] == "TooSlow"
    assert {k.encode() for k in HEADERS} <= {k for k, _ in sent[0]["headers"]}
    assert left, "it was read to its end"


def test_an_answer_that_takes_longer_than_a_body_may_is_not_cut_off(
    echo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time is that of what comes in: whoever listens to events listens on."""
    monkeypatch.setattr(_guard, "BODY_SECONDS", 0.2)
    sent: list[Any] = []
    first = [part(b"", False)]

    async def receive() -> Any:
        if not first:
            await asyncio.sleep(3600)
        return first.pop()[1]

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        **{"type": "http", "method": "GET", "path": "/s", "raw_path": b"/s", "query_string": b""},
        **{"headers": [], "asgi": {"spec_version": "2.3"}, "server": ("x", 1), "scheme": "http"},
    }
    # Nothing is read of a body that nobody asks for, so the listener for an end begins it.
    asyncio.run(asyncio.wait_for(RequestGuard(echo, 20)(scope, receive, send), 30))
    assert b"".join(one.get("body", b"") for one in sent) == b"line\n" * 4


def test_names_by_which_it_may_be_called(echo: Any) -> None:
    """With its port or without, in any case; by another name nothing is asked of it."""
    guard = RequestGuard(echo, 20, hosts=["Data.example.org", "[::1]"])
    whole = [part(b"", False)]
    for host in ("data.example.org", "DATA.example.org:8765", "[::1]:8765"):
        assert asked(guard, list(whole), host=host)[0] == 200
    for host in ("evil.example", "data.example.org.evil.example", "", "data.example.org:x"):
        status, headers, body = asked(guard, [], host=host)
        assert status == 421
        assert json.loads(body)["error"]["kind"] == "MisdirectedRequest"
        assert HEADERS.items() <= headers.items()
    # What watches it at a machine's address asks for its health alone.
    for path, passed in (("/health", True), ("/healthy", False), ("/v1/visits/me", False)):
        status, *_ = asked(guard, list(whole), path, host="192.0.2.1:8765")
        assert (status != 421) is passed, path


def test_it_is_not_well_where_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that is full can be read: questions cannot be asked, and whoever watches is told."""
    monkeypatch.setattr(_hall, "BEAT", 0.05)

    def health(found: Served, wanted: int) -> None:
        until = time.monotonic() + 30
        while found.http.get("/health").status_code != wanted:
            assert time.monotonic() < until
            time.sleep(0.02)

    with served(written(tmp_path)) as found:
        health(found, 200)
        with monkeypatch.context() as full:

            def beat(*_: object) -> None:
                raise LedgerError("the disk is full")

            full.setattr(found.desk.jobs, "beat", beat)
            health(found, 503)
        health(found, 200)


def test_every_kind_of_answer_has_every_header(tmp_path: Path) -> None:
    """Answers, refusals, what is not there, health and metrics."""
    with served(written(tmp_path)) as found:
        for one in (
            found.get("ann", "/me"),
            found.get("ann", "/people"),
            found.get(None, "/me"),
            found.get("ann", "/nothing"),
            found.call("ann", "PATCH", "/me"),
            found.http.get("/health"),
            found.http.get("/metrics"),
            found.http.get("/openapi.json"),
        ):
            assert HEADERS.items() <= dict(one.headers).items(), one.url
            assert "html" not in one.headers["content-type"]
        for address in ("/", "/p/visits/sign-in", "/p/nowhere/sign-in", "/p/visits/nothing"):
            page = found.http.get(address)
            assert HEADERS.items() <= dict(page.headers).items(), address


def test_what_fails_says_so_as_json_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An error that nobody expected leaves its class in the log, and its words nowhere."""
    with served(written(tmp_path)) as found:

        def broken(*_: Any) -> Any:
            raise RuntimeError("a value of the data")

        monkeypatch.setattr(found.desk, "session_of", broken)
        answer = found.get("ann", "/balance")
    assert answer.status_code == 500
    assert answer.json()["error"] == {
        "kind": "InternalError",
        "message": "the service failed; nothing was shown",
    }
    assert "RuntimeError" in caplog.text
    assert "a value of the data" not in caplog.text
