"""Folders that the user who runs it may not enter: a service's user is seldom the one who tries."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dither
from dither._files import looked_at
from dither.engines import backend
from dither.errors import ArgumentError, DitherError, LedgerError, PolicyError
from dither.policy._policy import PolicyText

POLICY = """
[budget]
epsilon = 1
ledger = "{ledger}"
[tables.visits]
source = "{source}"
"""

Close = Callable[[Path], None]


@pytest.fixture
def close(monkeypatch: pytest.MonkeyPatch) -> Close:
    """Closes a folder to this user, which is root where tests run as root, who may do all."""
    closed: list[str] = []
    real = os.stat

    def stat(path: Any, *rest: Any, **named: Any) -> os.stat_result:
        if isinstance(path, str | Path) and any(
            os.path.abspath(path).startswith(f"{one}{os.sep}")  # noqa: PTH100
            for one in closed
        ):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, *rest, **named)

    monkeypatch.setattr(os, "stat", stat)
    return lambda folder: closed.append(str(folder))


@pytest.mark.parametrize(
    ("what", "error"), [("ledger", LedgerError), ("source", PolicyError), ("policy", PolicyError)]
)
def test_a_folder_that_nobody_may_enter_is_told(
    tmp_path: Path, close: Close, what: str, error: type[DitherError]
) -> None:
    """By its name and not as a failure of the program, whichever file lies in it."""
    (tmp_path / "within").mkdir()
    (tmp_path / "visits.csv").write_text("age\n30\n")
    (tmp_path / "within" / "visits.csv").write_text("age\n30\n")
    places = {"ledger": "visits.ledger", "source": "visits.csv"}
    policy = tmp_path / ("within" if what == "policy" else "") / "dither.toml"
    if what in places:
        places[what] = f"within/{places[what]}"
    policy.write_text(POLICY.format(**places))
    close(tmp_path / "within")
    with pytest.raises(error, match="cannot be looked at: the user that runs this may not enter"):
        dither.open(policy)


def test_what_is_on_a_server_is_not_looked_for_here(
    tmp_path: Path, close: Close, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell of root hands its folder to whoever it becomes, who may not look into it."""
    monkeypatch.chdir(tmp_path)
    close(tmp_path)
    assert backend("postgres").format_of("env:HOSPITAL_DSN", None, "tables.visits") == "postgres"


def test_other_failures_are_not_told_as_this_one(tmp_path: Path) -> None:
    """Its class is whoever asks' to say."""
    with pytest.raises(PolicyError, match="no policy at"):
        PolicyText.read(tmp_path / "none.toml")
    with pytest.raises(FileNotFoundError), looked_at(tmp_path):
        raise FileNotFoundError
    with pytest.raises(ArgumentError), looked_at(tmp_path):
        raise PermissionError
