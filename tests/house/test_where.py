"""The map in CONTRIBUTING.md tells the truth: its files are there, and have these names in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "CONTRIBUTING.md").read_text()
ROWS = re.findall(
    r"^\| (.*?) \| (.*) \|$", GUIDE.partition("## Where is")[2].partition("\n## ")[0], re.MULTILINE
)[1:]


def _wrong(answer: str) -> list[str]:
    """What an answer names that is not there: files, and names that none of its files defines."""
    named = re.findall(r"`([^`]+)`", answer)
    files = [name for name in named if name.endswith((".py", "/"))]
    wrong = [name for name in files if not (ROOT / "src" / "dither" / name).exists()]
    paths = [ROOT / "src" / "dither" / name for name in files if name.endswith(".py")]
    text = "\n".join(path.read_text() for path in paths if path.exists())
    for name in named:
        parts = [] if name in files else name.split(".")
        if not all(re.search(rf"^ *(?:def|class) {part}\b", text, re.MULTILINE) for part in parts):
            wrong.append(name)
    return wrong


@pytest.mark.parametrize(("question", "answer"), ROWS, ids=[question for question, _ in ROWS])
def test_what_the_map_names_is_there(question: str, answer: str) -> None:
    """A file or a function that moved would send a newcomer astray."""
    assert _wrong(answer) == []
    assert re.search(r"`|\]\(#", answer)


def test_the_map_is_read() -> None:
    """Its rows are found, and a wrong name in one is seen."""
    assert len(ROWS) >= 8
    assert _wrong("`query/_noise.py`, `add_noise`") == []
    assert _wrong("`query/_gone.py`, `add_noise`") == ["query/_gone.py", "add_noise"]
    assert _wrong("`query/_noise.py`, `no_such_name`") == ["no_such_name"]
