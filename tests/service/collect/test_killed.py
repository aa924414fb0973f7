"""Whoever is told that a report is counted may forget it, whatever becomes of the collector."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.collect import measure

from postgres_server import Database


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "per_token"), [("sqlite", 1), ("postgres", 5)])
def test_killed_at_random(
    kind: str,
    per_token: int,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SIGKILL to two processes under load, twice: each report is counted once in the end."""
    state: Any = str(tmp_path / "collect.db")
    if kind == "postgres":
        database: Database = request.getfixturevalue("postgres")
        monkeypatch.setenv("COLLECT_DSN", database.owner)
        state = "env:COLLECT_DSN"
    sent, exact = measure(tmp_path, state, tokens=600, per_token=per_token, posts=5, kills=2)
    assert sent.kills == 2
    assert exact
