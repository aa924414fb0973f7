"""What the package offers: few names at its root, each found at once, and rooms beside them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import dither

ROOMS = ["accounting", "anonymize", "attack", "errors", "ledger", "local", "mechanisms", "privacy"]


def test_root_is_small() -> None:
    """At most 25 names, and no room among what a star imports."""
    assert len(dither.__all__) <= 25
    assert set(ROOMS).isdisjoint(dither.__all__)
    assert set(dither.__all__) | set(ROOMS) <= set(dir(dither))


def test_root_finds_by_itself() -> None:
    """``import dither as dt`` is enough to reach a room or a name, and loads nothing before."""
    lines = [
        "import sys, dither as dt",
        "assert [m for m in sys.modules if m.startswith('dither.')] == []",
        f"print(*[getattr(dt, name) for name in {[*ROOMS, 'open', 'sum']}])",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_root_refuses_what_it_lacks() -> None:
    """An unknown name is an ordinary AttributeError."""
    with pytest.raises(AttributeError, match="no attribute 'opens'"):
        _ = dither.opens
