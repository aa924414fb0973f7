"""The suite itself: what keeps many processes from standing in one another's way."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import scratch


def test_matrices_are_multiplied_on_one_thread() -> None:
    """In this process and in those that it starts: the setting came before numpy did."""
    threadpoolctl = pytest.importorskip("threadpoolctl")
    assert np.ones((2, 2)).sum() == 4
    pools = [p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]
    if "OMP_NUM_THREADS" in os.environ and os.environ["OMP_NUM_THREADS"] != "1":
        pytest.skip("the caller has chosen another number of threads")
    if not pools:
        pytest.skip("numpy multiplies with a library that has no threads to count")
    assert {p["num_threads"] for p in pools} == {1}
    asked = [sys.executable, "-c", "import os; print(os.environ['OMP_NUM_THREADS'])"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_files_are_written_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is room and the caller names no place; programs that are started write there."""
    asked = [sys.executable, "-c", "import tempfile; print(tempfile.gettempdir())"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == tempfile.gettempdir()
    monkeypatch.setattr(scratch, "MEMORY", tmp_path)
    monkeypatch.setattr(scratch, "ROOM", 0)
    monkeypatch.setattr(tempfile, "tempdir", tempfile.gettempdir())
    monkeypatch.setenv("TMPDIR", str(tmp_path / "mine"))
    scratch.write_in_memory()
    assert os.environ["TMPDIR"] == str(tmp_path / "mine")
    monkeypatch.delenv("TMPDIR")
    scratch.write_in_memory()
    assert tempfile.gettempdir() == str(tmp_path)
    monkeypatch.setattr(scratch, "ROOM", 2**80)
    assert scratch.in_memory() is None
    monkeypatch.setattr(scratch, "MEMORY", tmp_path / "nowhere")
    assert scratch.in_memory() is None


def test_tests_on_spark_stand_together_before_all_others(request: pytest.FixtureRequest) -> None:
    """So that of several processes one runs them, with one Java."""
    marked = [item.get_closest_marker("spark") is not None for item in request.session.items]
    assert marked == sorted(marked, reverse=True)
    pairs = zip(request.session.items, marked, strict=True)
    starting = [item.nodeid for item, own in pairs if not own and "[spark" in item.name]
    assert not starting, "mark what starts Spark: `needs_spark` does"
