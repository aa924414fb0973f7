"""Whoever waits for an answer holds a connection, and nobody holds all that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from dither.service import _hall
from dither.service.work._jobs import MOST_OPEN
from service.hospital import COUNT, Served, served, written


def asked(found: Served, who: str) -> str:
    """The path of a question that waits for an owner, and so has no end by itself."""
    body = {"sql": COUNT, "epsilon": "0.5", "token": who}
    return f"/jobs/{found.post(who, '/releases', body).json()['id']}"


def test_nobody_waits_on_all_connections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A person has so many, more than questions; others wait on, and so do they on fewer."""
    assert _hall.MOST_HEARD > MOST_OPEN
    monkeypatch.setattr(_hall, "MOST_HEARD", 2)
    with served(written(tmp_path, service="approve_above = { epsilon = 0.1 }")) as found:
        hall, ann, bob = found.http.app.app.state.hall, asked(found, "ann"), asked(found, "bob")  # type: ignore[attr-defined]
        with hall.heard(found.desk, "ann"):
            assert found.get("ann", ann, wait=1).status_code == 200
            with hall.heard(found.desk, "ann"):
                for refused in (found.get("ann", f"{ann}/events"), found.get("ann", ann, wait=1)):
                    assert refused.status_code == 429
                    assert "you wait on 2 connections already" in refused.text
                assert found.get("ann", ann).json()["state"] == "waiting"
                assert found.get("bob", bob, wait=1).status_code == 200
        assert hall._heard == {}
        found.call("ann", "DELETE", ann)
        told = found.get("ann", f"{ann}/events")
        assert "cancelled" in told.text
        assert hall._heard == {}
