"""A policy that is served: over each kind of ledger, and once on loopback for many tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

from service.hospital import Served, served, written
from service.loopback import OnLoopback, serving, write

_schemas = itertools.count()


@pytest.fixture(params=["file", "postgres"])
def ledger(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a policy has its ledger, as TOML: a file, and a schema on a server."""
    if request.param == "file":
        return '"visits.ledger"'
    monkeypatch.setenv("LEDGER_DSN", request.getfixturevalue("postgres").owner)
    return f'{{ postgres = "env:LEDGER_DSN", schema = "ledger {next(_schemas)}" }}'


@pytest.fixture
def hospital(tmp_path: Path) -> Iterator[Served]:
    """A service with its ledger in a file."""
    with served(written(tmp_path)) as found:
        yield found


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The same for all tests of a file that change nothing: its processes are dear to start."""
    with served(written(tmp_path_factory.mktemp("unchanged"))) as found:
        yield found


@pytest.fixture
def on_each(tmp_path: Path, ledger: str) -> Iterator[Served]:
    """A service on each kind of ledger."""
    with served(written(tmp_path, ledger=ledger)) as found:
        yield found


@pytest.fixture(scope="session")
def loopback(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnLoopback]:
    """A service that listens on loopback, for all tests of a process: one is dear to start."""
    with serving(write(tmp_path_factory.mktemp("served"))) as found:
        yield found
