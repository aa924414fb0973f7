"""One policy that is asked questions of every kind, and places to publish to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dither
from service.publish.people import PEOPLE, PLACES, policy


@pytest.fixture
def session(tmp_path: Path) -> Any:
    """A session of that policy."""
    with dither.open(policy(tmp_path), sources={"people": PEOPLE, "places": PLACES}) as opened:
        yield opened


@pytest.fixture(params=["duckdb", "folder", "postgres"])
def place(request: Any, tmp_path: Path, monkeypatch: Any) -> Any:
    """Where to publish to: each kind of place."""
    if request.param == "duckdb":
        return tmp_path / "released.duckdb"
    if request.param == "folder":
        return tmp_path / "folder"
    monkeypatch.setenv("PUBLISH_DSN", request.getfixturevalue("postgres").owner)
    return {"postgres": "env:PUBLISH_DSN", "schema": "released"}
