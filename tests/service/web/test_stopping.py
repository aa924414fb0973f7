"""A service that is told to end ends with 0, and what it left is taken up by the next one."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("starlette")

import httpx
from cryptography import x509

from dither.ledger import Ledger
from dither.service._desk import Desk
from dither.service._hall import Hall
from dither.service.access._people import Identity
from dither.service.access._roles import Role
from dither.service.work import _pool, _processes
from dither.service.work._jobs import State
from service.web.test_tls import certified

POLICY = """
[budget]
epsilon = 10
ledger = "visits.ledger"
[tables.visits]
source = "visits.parquet"
[service]
name = "visits"
"""

OLGA = Identity("olga", Role.OWNER)
ASKED = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": 1, "token": "t"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pl.DataFrame({"p": [1, 2, 3]}).write_parquet(tmp_path / "visits.parquet")
    (tmp_path / "dither.toml").write_text(POLICY)
    return tmp_path / "dither.toml"


def charges(place: Path) -> int:
    with Ledger.open(place.with_name("visits.ledger"), create=False) as ledger:
        return sum(entry.charge is not None for entry in ledger.entries())


async def ended(desk: Desk) -> list[State]:
    """How all jobs ended, at a service that was started for them."""
    hall = Hall([desk], 1)
    await hall.start()
    while desk.jobs.listed(state=State.QUEUED) or desk.jobs.listed(state=State.RUNNING):
        await asyncio.sleep(0.02)
    found = [job.state for job in desk.jobs.listed()]
    await hall.stop()
    return found


def cut_off(place: Path, monkeypatch: pytest.MonkeyPatch) -> int | None:
    """Two questions are left, one of them in the middle; how the process ended that ran it."""

    started: list[subprocess.Popen[bytes]] = []

    async def never(*_: Any) -> _processes.WorkProcess:
        ours, theirs = socket.socketpair()
        with theirs:
            started.append(subprocess.Popen(["sleep", "600"], stdin=theirs, stdout=theirs))
        said, told = await asyncio.open_connection(sock=ours)

        def kill() -> None:
            started[0].kill()
            started[0].wait()

        folder = str(place.with_name("of its own"))
        return _processes.WorkProcess(started[0].pid, said, told, folder, kill)

    async def stopped(desk: Desk) -> int | None:
        hall = Hall([desk], 1)
        monkeypatch.setattr(_pool.Pool, "_process", never)
        await hall.start()
        for token in ("t", "u"):
            desk.ask(OLGA, ASKED | {"epsilon": "1", "token": token})
        hall.announce()
        async with asyncio.timeout(60):
            while not hall.pool._running:
                await asyncio.sleep(0.01)
        await hall.stop(0)
        return started[0].returncode

    code = asyncio.run(stopped(Desk(place)))
    monkeypatch.undo()
    return code


def test_what_is_cut_off_is_queued_again(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A question that runs as the service ends counts as never begun: no process died of it."""
    assert cut_off(place, monkeypatch) == -signal.SIGKILL
    desk = Desk(place)
    assert [(job.state, job.attempts) for job in desk.jobs.listed()] == [(State.QUEUED, 0)] * 2
    desk.close()


@pytest.mark.slow
def test_what_is_cut_off_is_taken_up(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next start, and each is charged once."""
    cut_off(place, monkeypatch)
    assert asyncio.run(ended(Desk(place))) == [State.DONE, State.DONE]
    assert charges(place) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.slow
def test_a_signal_ends_it(place: Path, number: signal.Signals) -> None:
    """With 0, in the middle of a question, which is answered before or after, and charged once."""
    desk = Desk(place)
    desk.people.add("olga", Role.OWNER)
    key = desk.people.new_key("olga").key
    desk.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = place.with_name("lines")
    with log.open("w") as lines:
        server = subprocess.Popen(
            [sys.executable, "-m", "dither.cli", "serve", str(place), "--port", str(port)],
            stderr=lines,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
    at = f"http://127.0.0.1:{port}"
    try:
        while server.poll() is None:
            try:
                if httpx.get(f"{at}/health").status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.05)
        asked = httpx.post(
            f"{at}/v1/visits/releases", json=ASKED, headers={"authorization": f"Bearer {key}"}
        )
        assert asked.is_success, asked.text
        httpx.get(f"{at}/v1/visits/people/swordfish?x=swordfish")
        server.send_signal(number)
        assert server.wait(120) == 0
    finally:
        server.kill()
        server.wait()
    said = log.read_text().splitlines()
    read = [json.loads(line) for line in said if line.startswith("{")]
    assert "swordfish" not in log.read_text()
    assert [line["message"] for line in read][-1] == "ended"
    desk = Desk(place)
    job = desk.jobs.get(asked.json()["id"])
    assert job is not None
    assert job.state in (State.QUEUED, State.DONE)
    assert asyncio.run(ended(desk)) == [State.DONE]
    assert charges(place) == 1


@pytest.mark.slow
def test_a_hang_up_ends_no_service_and_has_it_show_a_new_certificate(place: Path) -> None:
    """One whose key is broken is said in the log, and the one before goes on being shown."""
    crt, key = certified(place.parent, "first")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = place.with_name("lines")
    given = ("serve", place, "--port", port, "--tls-certificate", crt, "--tls-key", key)
    with log.open("w") as lines:
        server = subprocess.Popen(
            [sys.executable, "-m", "dither.cli", *map(str, given)],
            stdin=subprocess.DEVNULL,
            stderr=lines,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def showing(name: str) -> bool:
        try:
            text = ssl.get_server_certificate(("127.0.0.1", port))
        except OSError:
            return False
        (found,) = x509.load_pem_x509_certificate(text.encode()).subject
        return found.value == name

    def wait_for(what: Callable[[], bool]) -> None:
        until = time.monotonic() + 60
        while not what():
            assert server.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)

    try:
        wait_for(lambda: showing("first"))
        for name in ("second", "third"):
            certified(place.parent, name)
            if name == "third":
                key.write_text("rubbish")
            before = log.read_text().count("certificate: ")
            server.send_signal(signal.SIGHUP)
            wait_for(lambda n=before: log.read_text().count("certificate: ") > n)  # type: ignore[misc]
            assert showing("second")
        assert "certificate: ArgumentError; what was there before is served on" in log.read_text()
        server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0
    finally:
        server.kill()
        server.wait()
