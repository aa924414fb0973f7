"""A sign of life: on a terminal, after a while, and never elsewhere."""

from __future__ import annotations

import io
import time

import pytest

from dither.cli import _terminal


class Terminal(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


def test_long_work_shows_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the patience is over, the work's name appears."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(_terminal, "PATIENCE", 0.0)
    with _terminal.waiting("counting sheep"):
        deadline = time.monotonic() + 30
        while "counting sheep" not in screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "counting sheep" in screen.getvalue()


def test_the_share_that_is_done_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest that was told stands behind the work's name."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(_terminal, "PATIENCE", 0.0)
    monkeypatch.setattr(_terminal, "REDRAWN", 0.01)
    with _terminal.waiting("counting sheep") as tell:
        assert tell is not None
        tell(0.2)
        tell(0.4)
        deadline = time.monotonic() + 30
        while "40%" not in screen.getvalue() and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "counting sheep, 40%" in screen.getvalue()


def test_short_work_and_pipes_stay_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work within the patience prints nothing, and a pipe never gets a spinner."""
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr(_terminal, "PATIENCE", 60.0)
    with _terminal.waiting("counting sheep"):
        pass
    assert screen.getvalue() == ""
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stderr", pipe)
    monkeypatch.setattr(_terminal, "PATIENCE", 0.0)
    with _terminal.waiting("counting sheep") as tell:
        assert tell is None
    assert pipe.getvalue() == ""
