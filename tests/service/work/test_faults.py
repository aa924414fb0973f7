"""Servers, their processes and their databases, killed at any moment while several people ask.

Real processes over loopback: `dither serve` and clients. What is held afterwards: every charge that
somebody was told of is in the ledger, nothing is overspent, every answer has a charge, no request
was charged twice, and no question is left in between.
"""

from __future__ import annotations

import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pytest

from dither.ledger import Ledger
from dither.policy._policy import read_policy
from dither.service._database import Database
from dither.service._settings import read_settings
from dither.service._tables import SERVICE
from dither.service.access._people import People
from dither.service.access._roles import Role
from dither.service.work._jobs import Jobs, State
from dither.service.work._processes import PREFIX
from postgres_server import Server
from service.hospital import written

ENDED = {State.DONE.value, State.FAILED.value, State.GIVEN_UP.value, State.ENDED.value}

BUDGET = 4
"""Less than what is asked for, so that questions are refused, too."""

EPSILON = "0.25"


def port() -> int:
    """One that nobody has."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Service:
    """`dither serve` in a process of its own, begun anew whenever it is killed."""

    def __init__(self, policy: Path, temporary: Path) -> None:
        self.policy, self.port, self.temporary = policy, port(), temporary
        self.address = f"http://127.0.0.1:{self.port}/v1/visits"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "dither.cli", "serve", str(self.policy), f"--port={self.port}"],
            stderr=subprocess.DEVNULL,
            env=os.environ | {"TMPDIR": str(self.temporary)},
        )
        with httpx.Client() as http:
            for _ in range(1200):
                with suppress(httpx.TransportError):
                    if http.get(f"http://127.0.0.1:{self.port}/health").status_code:
                        return
                assert self.process.poll() is None, "the server does not start"
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    def kill(self) -> None:
        """As a machine that loses its power."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def workers(self) -> list[int]:
        """Its processes that run questions, or that an earlier one left."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):
                    held = [str(one.readlink()) for one in (folder / "fd").iterdir()]
                    if any(one.startswith(f"{self.temporary}/{PREFIX}") for one in held):
                        found.append(int(folder.name))
        return found


class Client(threading.Thread):
    """Somebody who asks one question after the other, and asks again where no answer came."""

    def __init__(self, service: Service, name: str, key: str, stop: threading.Event) -> None:
        super().__init__()
        self.service, self.who, self.key, self.stopped = service, name, key, stop
        self.told: dict[str, dict[str, Any]] = {}
        """By token: the last that it was told of its question."""
        self.answers: dict[str, Any] = {}

    def run(self) -> None:
        """Ask until it is stopped."""
        headers = {"authorization": f"Bearer {self.key}"}
        with httpx.Client(headers=headers, timeout=20) as http:
            for i in range(1000):
                if self.stopped.is_set():
                    return
                with suppress(httpx.TransportError):
                    self.asked(http, f"{self.who}-{i // 2}")

    def asked(self, http: httpx.Client, token: str) -> None:
        """Ask under a token, every one twice, and wait a while for the answer."""
        body = {"sql": "SELECT COUNT(*) AS n FROM visits", "epsilon": EPSILON, "token": token}
        found = http.post(f"{self.service.address}/releases", json=body)
        assert found.status_code in (202, 503), found.text
        if found.status_code == 503:
            time.sleep(0.1)
            return
        job = found.json()
        while not self.stopped.is_set():
            self.told[token] = job
            if job["state"] in ENDED:
                break
            found = http.get(f"{self.service.address}/jobs/{job['id']}", params={"wait": 5})
            if found.status_code == 200:
                job = found.json()
            else:
                assert found.status_code == 503, found.text
                time.sleep(0.1)
        if "answer" in job and job["answer"] is not None:
            kept = self.answers.setdefault(token, job["answer"]["content"])
            assert kept == job["answer"]["content"], "two answers to one question"


@contextmanager
def asked_by_several(service: Service, policy: Path) -> Iterator[list[Client]]:
    """Four people who ask all the time."""
    database = Database(read_settings(read_policy(policy)).database, SERVICE)
    people, stop = People(database), threading.Event()
    clients = []
    for name in ("ann", "bob", "eve", "zoe"):
        people.add(name, Role.ANALYST)
        clients.append(Client(service, name, people.new_key(name).key, stop))
    database.close()
    for one in clients:
        one.start()
    try:
        yield clients
    finally:
        stop.set()
        for one in clients:
            one.join()


def held(policy: Path, service: Service, clients: list[Client]) -> Counter[str]:
    """Wait until nothing runs, and hold what was told against the ledger."""
    read = read_policy(policy)
    database = Database(read_settings(read).database, SERVICE)
    jobs = Jobs(database)
    for _ in range(1200):
        if set(jobs.counted()) <= ENDED:
            break
        time.sleep(0.05)
    rows = jobs.listed(last=10_000)
    assert {one.state.value for one in rows} <= ENDED, "a question is neither answered nor given up"
    with Ledger.open(read.ledger) as ledger:
        assert ledger.verify().ok
        entries = {one.number: one for one in ledger.entries(None, 100_000)}
        charges = {n: one for n, one in entries.items() if one.kind == "charge"}
        spent = sum((Fraction(one.charge.epsilon) for one in charges.values()), Fraction(0))  # type: ignore[union-attr,arg-type]
        assert spent <= BUDGET, "overspent"
        for balance in map(ledger.balance, ledger.accounts()):
            assert balance.spent.epsilon == spent
        answers = [one.answers for one in entries.values() if one.kind == "answer"]
        assert set(answers) <= set(charges), "an answer without a charge"
        assert max(Counter(answers).values(), default=1) == 1, "a charge with two answers"
    done = [one for one in rows if one.state is State.DONE]
    assert len({one.entry for one in done}) == len(done), "two questions share a charge"
    charged = {one.entry for one in rows if one.entry is not None}
    assert charged <= set(charges), "an acknowledged charge is lost"
    # Each charge is of one question: none was charged twice. One that was cut off between its
    # charge and the word of it has none on its row, and at most one such is left by each kill.
    by_token = {one.token: one for one in rows}
    for client in clients:
        for token, job in client.told.items():
            assert token in by_token, "a question that was taken is lost"
            if job["entry"] is not None:
                assert by_token[token].entry == job["entry"], "what was told does not hold"
        for token in client.answers:
            assert by_token[token].state is State.DONE
    lost = [one for one in rows if one.entry is None and one.state is not State.FAILED]
    assert len(charges) <= len(charged) + len(lost), "a request was charged twice"
    database.close()
    return Counter(one.state.value for one in rows)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["file", "postgres"])
def test_kills_under_load(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server, its processes and, where there is one, the database's, at random instants."""
    rng = random.Random(7)
    with Server() if store == "postgres" else nullcontext() as server:
        place = '"visits.ledger"'
        if isinstance(server, Server):
            monkeypatch.setenv("LEDGER_DSN", server.database().owner)
            place = '{ postgres = "env:LEDGER_DSN", schema = "visits" }'
        policy = written(tmp_path, ledger=place, epsilon=BUDGET, service="rate = 1000000")
        temporary = tmp_path / "tmp"
        temporary.mkdir()
        service = Service(policy, temporary)
        service.start()
        try:
            with asked_by_several(service, policy) as clients:
                victims = ["worker", "server", "database", "worker"]
                for victim in victims:
                    # Else nothing would ever come to its end on a slow machine.
                    before = sum(len(one.answers) for one in clients)
                    for _ in range(400):
                        if sum(len(one.answers) for one in clients) > before:
                            break
                        time.sleep(0.05)
                    time.sleep(rng.uniform(0, 1))
                    if victim == "database" and isinstance(server, Server):
                        server.kill()
                        time.sleep(rng.uniform(0, 0.5))
                        server.start()
                    elif victim == "worker":
                        for pid in service.workers():
                            with suppress(ProcessLookupError):
                                os.kill(pid, signal.SIGKILL)
                    else:
                        service.kill()
                        service.start()
                time.sleep(2)
            found = held(policy, service, clients)
            assert found["done"] >= 3, found
            assert service.process is not None
            service.process.send_signal(signal.SIGTERM)
            assert service.process.wait(60) in (0, -signal.SIGTERM)
        finally:
            service.kill()
        for _ in range(200):
            if not service.workers():
                break
            time.sleep(0.05)
        assert not service.workers(), "processes outlive their server"


def test_what_is_told_holds_in_the_picture_of_states() -> None:
    """The quick one beside it: every state is one that a question is in, or has ended in."""
    from dither.service.work._jobs import OPEN

    assert {one.value for one in State} == ENDED | set(OPEN) | {"declined", "cancelled"}
    assert re.fullmatch(r"[\d./]+", EPSILON)
