"""The tree speaks of the project alone: no path of a machine, no address of a package index."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXTS = [
    ROOT / "Makefile",
    ROOT / ".ci" / "run",
    *ROOT.glob("*.md"),
    *ROOT.glob("*.toml"),
    *(p for room in ("src", "tests", "docs", "benchmarks") for p in (ROOT / room).rglob("*.py")),
    *(ROOT / "docs").rglob("*.md"),
]
MACHINE = re.compile(r"(?<![\w.])/(?:work|root|home|Users|mnt)/\w")
INDEX = re.compile(r"--(?:extra-)?index-url|--find-links|PIP_INDEX|\[\[tool\.\w+\.index\]\]")


def test_no_machine_is_named() -> None:
    """Nothing depends on where it was written or where packages came from there."""
    found = {}
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        matches = [m.group() for m in MACHINE.finditer(text)]
        if path != Path(__file__):
            matches += [m.group() for m in INDEX.finditer(text)]
        if matches:
            found[path.relative_to(ROOT).as_posix()] = matches
    assert found == {}
