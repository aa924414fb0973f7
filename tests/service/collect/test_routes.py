"""The collector over HTTP: each refusal, and hostile bodies and clients."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import uvicorn

from dither.service.collect import Collector, app
from dither.service.collect._bodies import BINARY, JSON, write_body
from service.collect.conftest import Made, Surveyed

Ask = Callable[..., Any]


class Client:
    """Sends requests to an application in this process."""

    def __init__(self, served: Any) -> None:
        self._served = served

    def request(self, method: str, path: str, **named: Any) -> httpx.Response:
        """The answer to one request."""

        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self._served, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://collect") as client:
                return await client.request(method, path, **named)

        return asyncio.run(sent())

    def get(self, path: str, **named: Any) -> httpx.Response:
        """A GET."""
        return self.request("GET", path, **named)

    def post(self, path: str, **named: Any) -> httpx.Response:
        """A POST."""
        return self.request("POST", path, **named)

    def options(self, path: str, **named: Any) -> httpx.Response:
        """What a browser asks first."""
        return self.request("OPTIONS", path, **named)


@pytest.fixture
def ask(collector: Made) -> Ask:
    """A client of a collector, with settings of its own."""

    def made(**named: Any) -> Client:
        return Client(app(collector(**named)))

    return made


def _send(client: Client, body: Any, kind: str = BINARY, path: str = "/collect/flu") -> Any:
    return client.post(path, content=body, headers={"content-type": kind})


def _told(found: Any) -> tuple[int, str]:
    return found.status_code, found.json()["error"]["kind"]


def test_a_post_is_counted(survey: Surveyed, ask: Ask) -> None:
    """In bytes and in JSON: the answer says how many were, and how many were before."""
    client = ask()
    posts = survey.posts(0, 1, 2)
    body = write_body(survey.configuration, posts)
    assert _send(client, body).json() == {"counted": 3, "spent": 0}
    assert _send(client, body).json() == {"counted": 0, "spent": 3}
    (token, signature, records) = survey.posts(1)[0]
    written = {
        "configuration": survey.configuration.digest.hex(),
        "posts": [
            {
                "token": base64.b64encode(token + signature).decode(),
                "records": base64.b64encode(records).decode(),
            }
        ],
    }
    sent = _send(client, json.dumps(written), "application/json; charset=utf-8")
    assert sent.json() == {"counted": 1, "spent": 0}


def test_the_configuration_is_served(survey: Surveyed, ask: Ask) -> None:
    """As the owner signed it."""
    found = ask().get("/collect/flu/config").json()
    assert found == survey.configuration.to_dict()
    assert survey.owner.public.signed(
        "survey configuration", found["configuration"], found["signature"]
    )


def test_each_refusal(survey: Surveyed, ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    """With its kind; nothing is counted, nothing is echoed, nothing is logged."""
    caplog.set_level(logging.DEBUG, logger="dither")
    client = ask(body=4000)
    good = write_body(survey.configuration, survey.posts(0))
    other = bytearray(good)
    other[10] ^= 1
    forged = bytearray(good)
    forged[50 + 100] ^= 1
    version = bytearray(good)
    version[8] = 9
    marker = b"zebra"
    cases: list[tuple[Any, str, tuple[int, str]]] = [
        (bytes(other), BINARY, (409, "configuration")),
        (bytes(forged), BINARY, (403, "token")),
        (bytes(version), BINARY, (400, "body")),
        (good[:-1], BINARY, (400, "body")),
        (good + b"x", BINARY, (400, "body")),
        (marker, BINARY, (400, "body")),
        (b"", BINARY, (400, "body")),
        (write_body(survey.configuration, []), BINARY, (400, "body")),
        (write_body(survey.configuration, [(*survey.token(), b"")]), BINARY, (400, "body")),
        (write_body(survey.configuration, [(*survey.token(), b"ab")]), BINARY, (400, "body")),
        (good, "text/plain", (415, "type")),
        (good, "", (415, "type")),
        (b"x" * 4001, BINARY, (413, "size")),
        (marker, JSON, (400, "body")),
        (b'{"configuration": "zebra", "posts": []}', JSON, (409, "configuration")),
        (b'{"configuration": 5, "posts": []}', JSON, (400, "body")),
        (b"[" * 3999, JSON, (400, "body")),
        (b'{"a": 1e999999999}', JSON, (400, "body")),
        (b"9" * 3999, JSON, (400, "body")),
        (b"\xff\xfe", JSON, (400, "body")),
        (b"null", JSON, (400, "body")),
    ]
    for body, kind, told in cases:
        found = _send(client, body, kind)
        assert _told(found) == told, (body[:40], kind, found.text)
        assert "zebra" not in found.text
    assert _told(_send(client, good, path="/collect/other")) == (404, "survey")
    assert _told(client.get("/collect/flu/estimates")) == (404, "estimates")
    assert client.get("/collect/flu").status_code == 405
    assert _send(client, good).json()["counted"] == 1
    assert not [record for record in caplog.records if record.name.startswith("dither")]


def test_bombs_of_json(survey: Surveyed, ask: Ask) -> None:
    """A megabyte of brackets, of objects, and of digits is refused before it is built."""
    client = ask()
    for body in (b"[" * (1 << 20), b'{"a":' * 200_000, b"9" * (1 << 20), b"[[]," * 200_000):
        assert _told(_send(client, body, JSON)) == (400, "body")
        assert _told(_send(client, body, JSON, "/collect/flu/tokens")) == (400, "body")


def test_one_address_has_a_rate(survey: Surveyed, ask: Ask) -> None:
    """Beyond it, it is told when to come again."""
    client = ask(rate=2)
    for _ in range(2):
        assert client.get("/collect/flu/config").status_code == 200
    found = client.get("/collect/flu/config")
    assert _told(found) == (429, "rate")
    assert found.headers["retry-after"] == "60"


def test_pages_of_other_origins(survey: Surveyed, ask: Ask) -> None:
    """A browser is let in from the pages that the owner names, and from no other."""
    client = ask(origins=["https://app.example"])
    asked = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "content-type",
    }
    good = client.options("/collect/flu", headers={"origin": "https://app.example", **asked})
    assert good.status_code == 200
    assert good.headers["access-control-allow-origin"] == "https://app.example"
    bad = client.options("/collect/flu", headers={"origin": "https://evil.example", **asked})
    assert bad.status_code == 400
    assert "access-control-allow-origin" not in bad.headers
    assert "access-control-allow-origin" not in ask().get("/collect/flu/config").headers
    # What a browser is refused, it may read as well.
    sent = client.post("/collect/flu", content=b"", headers={"origin": "https://app.example"})
    assert sent.headers["access-control-allow-origin"] == "https://app.example"


def test_a_failure_tells_its_class(
    survey: Surveyed, collector: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that nothing was acknowledged."""
    found = collector()
    client = Client(app(found))

    def broken(*_: Any) -> None:
        raise OSError("/secret/path")

    monkeypatch.setattr(found.store, "add", broken)
    sent = _send(client, write_body(survey.configuration, survey.posts(0)))
    assert _told(sent) == (500, "OSError")
    assert "secret" not in sent.text


@contextmanager
def served(collector: Collector) -> Iterator[int]:
    """A server on loopback; its port."""
    config = uvicorn.Config(
        app(collector),
        port=0,
        ws="none",
        log_level="critical",
        access_log=False,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def test_large_and_slow_bodies(survey: Surveyed, collector: Made) -> None:
    """100 MB are refused by what they say, or once they are too many; a slow one by its time."""
    found = collector(patience=1, body=100_000)
    head = b"POST /collect/flu HTTP/1.1\r\nhost: x\r\ncontent-type: " + BINARY.encode() + b"\r\n"
    with served(found) as port:
        for said, sent, status in (
            (b"content-length: 104857600\r\n\r\n", b"", b"413"),
            (b"transfer-encoding: chunked\r\n\r\n", b"1000\r\n" + b"x" * 4096 + b"\r\n", b"413"),
            (b"content-length: 1000\r\n\r\nabc", b"", b"408"),
        ):
            with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
                connection.sendall(head + said)
                written = 0
                answer = b""
                connection.settimeout(0.01 if sent else 20)
                while sent and written < 104_857_600 and not answer:
                    try:
                        connection.sendall(sent)
                        written += len(sent)
                        answer = connection.recv(100)
                    except TimeoutError:
                        continue
                    except OSError:
                        break
                answer = answer or connection.recv(100)
                assert answer.split()[1] == status
                assert written < 4_000_000
        # Others are served meanwhile and after.
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(b"GET /collect/flu/config HTTP/1.1\r\nhost: x\r\n\r\n")
            assert connection.recv(100).split()[1] == b"200"
