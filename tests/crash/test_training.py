"""Training that is killed again and again ends as if nobody had."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX processes"),
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]
WORKER = Path(__file__).with_name("training_worker.py")


@pytest.mark.parametrize("how", ["sampled", "ordered"])
def test_a_run_that_is_killed_goes_on_exactly(tmp_path: Path, how: str) -> None:
    """SIGKILL at random instants: the model, bit for bit, of a run left alone; charged once."""
    done = subprocess.run(
        [sys.executable, str(WORKER), str(tmp_path), how],
        stdout=subprocess.PIPE, text=True, timeout=400, check=True,
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert "failed" not in found, found
    assert found["kills"] >= 3
    assert found["charges"] == ["2"]
    assert found["model"] == found["whole"]
