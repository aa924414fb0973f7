"""What is left out is counted: the slow, the skipped by reason, and what passed before."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from turns import OF_EXAMPLES, TURNS

HERE = Path(__file__).parents[1]
CONFTEST = "import selected; selected.NEEDED['examples.py'] = 'no_such_library'"
EXAMPLES = '"""\n>>> 1\n2\n"""\nimport no_such_library'
TESTS = """
import pytest

@pytest.mark.slow
def test_slow(): pass

@pytest.mark.parametrize("i", range(3))
def test_skipped(i): pytest.importorskip("no_such_library.part")

def test_another(): pytest.skip("it rains")

def test_good(): pass

@pytest.mark.extras
def test_extras(): pass

def test_bad(): assert 0
"""
CONFIG = "[pytest]\nmarkers =\n    slow: s\n    extras: e\n    heavy(beside): h\n    spark: s\n"
NEVER = "skipped: no_such_library is not installed: 3 tests, 1 files of examples\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small suite."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "examples.py").write_text(EXAMPLES)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text(CONFIG)
    return tmp_path


def said(folder: Path, *arguments: str) -> str:
    """What pytest prints of it."""
    path = os.pathsep.join([str(HERE), *sys.path])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "xdist", "-p", "selected"]
    environment = os.environ | {"PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [*command, "--doctest-modules", *arguments], cwd=folder, env=environment,
        stdout=subprocess.PIPE, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_is_not_run_is_counted(folder: Path, processes: str) -> None:
    """One line a reason, also where several processes share tests; what passed is not run again.

    What failed, was skipped or looks at what is installed is.
    """
    found = said(folder, "-n", processes, "--note-passed", "passed.json")
    assert NEVER in found
    assert "skipped: it rains: 1 tests\n" in found
    assert "left out: marked slow; `make test-all` runs them: 1 tests\n" in found
    assert found.count("no_such_library") == 1
    assert "1 failed, 2 passed, 4 skipped" in found
    noted = json.loads((folder / "passed.json").read_text())
    assert noted == {"tests": ["test_it.py::test_extras", "test_it.py::test_good"], "files": {}}
    found = said(folder, "-n", processes, "--slow", "--not-again", "passed.json")
    assert "left out: passed already with the same packages: 1 tests\n" in found
    assert "1 failed, 2 passed, 4 skipped" in found


FILES = {
    "good": "def test_good(): pass\ndef test_too(): pass\n",
    "slow": "import pytest\ndef test_good(): pass\n@pytest.mark.slow\ndef test_slow(): pass\n",
    "bad": "def test_good(): pass\ndef test_bad(): assert 0\n",
    "odd": "import pytest\ndef test_good(): pass\ndef test_odd(): pytest.skip('it rains')\n",
    "late": "import pytest\n@pytest.fixture\ndef f():\n    yield\n    assert 0\n"
    "def test_late(f): pass\n",
    "extras": "import pytest\n@pytest.mark.extras\ndef test_extras(): pass\n",
}
"""Files of tests, and one of which nothing has to be run again."""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_file_that_passed_whole_is_not_read_again(folder: Path, processes: str) -> None:
    """Any other is: what is slow, skipped, fails (or its end does), or looks at what is there."""
    (folder / "examples.py").unlink()
    (folder / "test_it.py").unlink()
    for name, text in FILES.items():
        (folder / f"test_{name}.py").write_text(text)
    said(folder, "-n", processes, "--note-passed", "passed.json")
    assert json.loads((folder / "passed.json").read_text())["files"] == {"test_good.py": 2}
    (folder / "test_good.py").write_text("raise RuntimeError")
    found = said(folder, "-n", processes, "--slow", "--not-again", "passed.json")
    # Two of the file that is not read, and the good ones of three that are.
    assert "left out: passed already with the same packages: 5 tests\n" in found
    assert re.search(r"1 failed, 3 passed, 1 skipped, .*1 error", found)


def test_what_is_slow_is_run_where_it_is_asked_for(folder: Path) -> None:
    """By its mark or by its name; another mark asks for nothing slow."""
    assert "1 passed" in said(folder, "-n", "0", "-m", "slow")
    assert "1 passed" in said(folder, "-n", "0", "test_it.py::test_slow")
    assert "marked slow" in said(folder, "-n", "0", "-m", "not extras")


def test_slow_tests_are_noted_and_stay_out(folder: Path) -> None:
    """By the seconds of a processor that they take; of a function's tests the quickest stays."""
    (folder / "examples.py").unlink()
    (folder / "test_it.py").write_text(
        "import time, pytest\n"
        "@pytest.mark.parametrize('long', [0.3, 0.4])\n"
        "def test_busy(long):\n"
        "    end = time.process_time() + long\n"
        "    while time.process_time() < end: pass\n"
        "def test_idle(): time.sleep(0.4)\n"
    )
    listed = folder / "listed.txt"
    (folder / "conftest.py").write_text(
        "import pathlib, selected\n"
        f"selected.ONE_OF_SEVERAL, selected.LISTED = 0.2, pathlib.Path({str(listed)!r})\n"
    )
    assert "3 passed" in said(folder, "--note-slow", str(listed))
    assert listed.read_text() == "test_it.py::test_busy[0.4]\n"
    told = said(folder)
    assert "2 passed" in told
    assert "marked slow; `make test-all` runs them: 1 tests" in told
    assert "3 passed" in said(folder, "--slow")


SUITE = """
import pytest
from hypothesis import given, settings, strategies as st

made = 0

@settings(max_examples=120, database=None, derandomize=True)
@given(st.integers())
@pytest.mark.slow
def test_drawn(n):
    global made
    made += 1

def test_how_many(): print("made", made)

@pytest.mark.slow
@pytest.mark.parametrize("n", range(60))
def test_cases(n): pass

@pytest.mark.slow
def test_alone(): pass

@pytest.mark.heavy("test_how_many")
def test_heavy(): pass

@pytest.fixture
def browser(): pass

@pytest.mark.parametrize("n", range(20))
def test_page(browser, n): pass

@pytest.mark.spark
@pytest.mark.parametrize("n", range(20))
def test_cluster(n): pass
"""
SEVERAL = {"cases": 60, "page": 20, "cluster": 20}
"""Functions of which a share of the cases is run, by how many each has."""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_heavy_tests_have_their_turn(folder: Path, processes: str) -> None:
    """A share that a commit chooses, the same each time; what nothing stands in for always runs."""
    (folder / "examples.py").unlink()
    (folder / "test_it.py").write_text(SUITE)
    options = ["-n", processes, "-rA", "--slow", "-p", "_hypothesis_pytestplugin"]
    found = {commit: said(folder, *options, f"--turn={commit}") for commit in ("a", "b", "c")}
    ran = {}
    for commit, text in found.items():
        ran[commit] = set(re.findall(r"^PASSED test_it.py::(\S+)", text, re.MULTILINE))
        assert {"test_alone", "test_drawn", "test_how_many"} <= ran[commit]
        # Of all cases and two more; of each function one at least.
        cases = [sum(name.startswith(f"test_{one}") for name in ran[commit]) for one in SEVERAL]
        turns = -(-(sum(SEVERAL.values()) + 2) // TURNS)
        assert min(cases) >= 1
        assert turns - 2 <= sum(cases) <= turns + len(cases) - 1
        late = sum(SEVERAL.values()) - sum(cases) + ("test_heavy" not in ran[commit])
        assert f"not their turn (one in {TURNS} has it by --turn={commit}): {late} tests" in text
        few = f"of examples all but one in {OF_EXAMPLES}, not their turn: 1 tests" in text
        if processes == "0":
            assert f"made {120 // OF_EXAMPLES if few else 120}\n" in text
    assert len(set(map(frozenset, ran.values()))) == 3
    again = said(folder, *options, "--turn=a")
    assert set(re.findall(r"^PASSED test_it.py::(\S+)", again, re.MULTILINE)) == ran["a"]
    assert "104 passed" in said(folder, "-n", processes, "--slow")
    assert "41 passed" in said(folder, "-n", processes), "nothing slow, heavy or not"


def test_listed_tests_are_there() -> None:
    """A name in the list is that of a function in its file, or of one whose example is run."""
    listed = HERE / "slow.txt"
    for name in listed.read_text().splitlines() if listed.exists() else ():
        path, _, function = name.partition("::")
        text = (HERE.parent / path).read_text()
        last = function.partition("[")[0].rpartition(".")[2]
        known = re.search(rf"(def|class) {last}\b", text) or Path(path).stem == last
        assert known, f"{name}: write the list anew"
