"""Which heavy tests a commit chooses, and what stands in for the others."""

from __future__ import annotations

import ast
import subprocess
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from turns import OF_EXAMPLES, RECENT, TURNS, changed, examples_of, few_examples, function, in_turn

TREE = Path(__file__).parents[2]
ROOMS = ("ledger", "query", "local", "synth")
NAMES = [
    f"tests/{room}/test_{i}.py::test_x[{j}]" for room in ROOMS for i in range(6) for j in range(20)
]


def test_each_has_its_turn_before_long() -> None:
    """One in 24 of each commit, whichever; by 400 commits all of them, more or less alike."""
    always = [function(name) for name in NAMES]
    chosen = [in_turn(NAMES, always, f"commit {i}", []) for i in range(400)]
    assert {len(one) for one in chosen} == {len(NAMES) // TURNS}
    times = Counter(name for one in chosen for name in one)
    # Binomial(400, 1/24): fewer than 3 or more than 36 of one of 480 has a chance of 7e-3.
    assert all(3 <= times[name] <= 36 for name in NAMES)


def test_the_order_of_tests_does_not_matter() -> None:
    """Nor that of files: processes that share the tests choose the same."""
    found = in_turn(NAMES, [], "abc", ["src/dither/query/_a.py", "docs/sql.md"])
    assert found == in_turn(NAMES[::-1], [], "abc", ["docs/sql.md", "src/dither/query/_a.py"])


def test_rooms_that_changed_come_first() -> None:
    """They have half of the turns, and their part of the rest; so many as before in all."""
    always = [function(name) for name in NAMES]
    found = in_turn(NAMES, always, "abc", ["src/dither/synth/model/_plans.py", "CHANGELOG.md"])
    own = [name for name in found if name.startswith("tests/synth/")]
    assert len(found) == len(NAMES) // TURNS
    assert len(found) // 2 <= len(own) < len(found)


def test_pages_that_changed_are_run() -> None:
    """All of them, and no other page for it."""
    pages = [f"tests/docs/test_code_blocks.py::test_page_runs[docs/{i}.md]" for i in range(12)]
    found = in_turn(pages, pages, "abc", [f"docs/{i}.md" for i in range(5)])
    assert found == set(pages[:5])


def test_of_each_function_a_case_is_run() -> None:
    """Where none of its cases is quick, one of them at least, and not the same each time."""
    ran = [in_turn(NAMES, [], f"commit {i}", []) for i in range(20)]
    for one in ran:
        assert {function(name) for name in one} == {function(name) for name in NAMES}
    assert set().union(*ran) > ran[0]


def test_what_changed_is_what_git_says(tmp_path: Path) -> None:
    """Of the last commits alone; nothing where there are too few, or no such commit."""

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e"]
        command = ["git", *identity, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q")
    for i in range(RECENT + 1):
        (tmp_path / f"file{i}.py").write_text(str(i))
        assert changed("HEAD", tmp_path) == set()
        git("add", ".")
        git("commit", "-q", "-m", "m")
    assert changed(git("rev-parse", "HEAD"), tmp_path) == {
        f"file{i}.py" for i in range(1, RECENT + 1)
    }
    assert changed("no such commit", tmp_path) == set()


@settings(max_examples=12)
@given(st.integers())
def drawn(n: int) -> None:
    """A test of Hypothesis."""
    assert isinstance(n, int)
    drawn.count = getattr(drawn, "count", 0) + 1  # type: ignore[attr-defined]


def test_few_examples_are_the_first_of_all() -> None:
    """So many fewer, then as many as before; Hypothesis reads them where they are written."""
    item: Any = SimpleNamespace(function=drawn)
    for few in (False, True, False):
        drawn.count = 0  # type: ignore[attr-defined]
        if few:
            with few_examples(item):
                drawn()
        else:
            drawn()
        assert drawn.count == 12 // (OF_EXAMPLES if few else 1)  # type: ignore[attr-defined]
    assert examples_of(item).max_examples == 12


def marked(path: Path) -> list[tuple[str, str]]:
    """Each function that is marked heavy, and what the mark says."""
    tree = ast.parse(path.read_text())
    return [
        (node.name, ast.literal_eval(mark.args[0]))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for mark in node.decorator_list
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.heavy"
    ]


def test_what_stands_in_is_there() -> None:
    """A test of the same file that waits for no turn; or a reason, in words."""
    seen = 0
    for path in sorted((TREE / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "pytest.mark.heavy" not in text or path == Path(__file__):
            continue
        heavy = marked(path)
        for name, beside in heavy:
            seen += 1
            if " " in beside:
                continue
            assert f"def {beside}(" in text, f"{name} of {path}: there is no {beside}"
            assert beside not in dict(heavy), f"{name} of {path}: {beside} waits as well"
    assert seen
