"""Every code block of README.md and docs/ is run, in order, in one empty folder per page.

- ``python``: run in one namespace per page. What it prints must be the ``text`` block after it.
- ``console``: lines that begin with ``$ `` are run by bash; the lines below are what they print.
- ``sql``: questions, divided by ``;``, that the page's ``session`` must accept and explain.
- ``toml``, ``json``, ``csv``: must be well formed. ``<!-- file: NAME -->`` before it saves it.

A comment before a block says more of it: ``<!-- output varies -->`` compares the output with all
numbers masked, because noise changes them and must not change anything else;
``<!-- not run: REASON -->`` leaves a block out; ``<!-- setup: CODE -->`` runs code unseen.
A page that begins with ``<!-- needs: LIBRARY -->`` is skipped where that is not installed.
``python tests/docs/refresh.py PAGE ...`` writes what is printed now into a page.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PIECE = re.compile(
    r"^<!-- *(?P<note>setup|file|output varies|not run)(?:: *(?P<said>.*?))? *-->$"
    r"|^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
NEEDED = re.compile(r"<!-- needs: (\w+) -->$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)|<img[^>]* src=\"([^\"]+)\"")


@dataclass(frozen=True)
class Block:
    """A fenced block, or hidden setup code, with what the comments before it say."""

    line: int
    language: str
    body: str
    notes: dict[str, str]


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a page in order."""
    notes: dict[str, str] = {}
    for piece in PIECE.finditer(text):
        line = text.count("\n", 0, piece.start()) + 2
        if piece["note"] == "setup":
            yield Block(line, "python", piece["said"], {})
        elif piece["note"]:
            notes[piece["note"]] = piece["said"] or ""
        else:
            yield Block(line, piece["language"], piece["body"], notes)
            notes = {}


def masked(text: str) -> list[str]:
    """The words of an output without its numbers and the widths that follow from them."""
    text = re.sub(r"-?\b[0-9a-f]{8,}\b|[-−+]?\d(?:[\d,._]*\d)?(?:e[-+]?\d+)?", "0", text)
    text = re.sub(r"0 \[0, 0\]", "0 ± 0", text)  # an interval is written either way
    text = text.replace("< 0 %", "0 %")  # and so is a share that rounds to nothing
    return re.sub(r"[─━═┈╌█░-]{2,}", "-", text).split()


def check(printed: str, expected: str, block: Block) -> None:
    """What was printed is what the page says."""
    if "output varies" in block.notes:
        assert masked(printed) == masked(expected)
    else:
        assert [x.rstrip() for x in printed.strip().splitlines()] == [
            x.rstrip() for x in expected.strip().splitlines()
        ]


Compare = Callable[[str, str, Block], None]


def run_console(block: Block, compare: Compare) -> None:
    """Run each command of a console block and compare what it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"}
    for part in re.split(r"^\$ ", block.body, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        done = subprocess.run(
            ["bash", "-c", command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        fails = "Error" in expected
        assert (done.returncode != 0) == fails, done.stdout
        compare(done.stdout, expected, block)


@contextlib.contextmanager
def as_before() -> Iterator[None]:
    """Modules that a page hides or replaces, and variables that it sets, are as they were."""
    modules, variables = dict(sys.modules), dict(os.environ)
    try:
        yield
    finally:
        for name in [name for name, module in sys.modules.items() if module is None]:
            del sys.modules[name]
        sys.modules.update(modules)
        os.environ.clear()
        os.environ.update(variables)


def run_page(text: str, page: str, compare: Compare = check) -> None:
    """Run every block of a page; the current folder is the page's own, and nothing else is kept."""
    with as_before():
        _run_page(text, page, compare)


def _run_page(text: str, page: str, compare: Compare) -> None:
    space: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    for block in blocks(text):
        try:
            if "not run" in block.notes:
                assert block.notes["not run"], "say why it is not run"
            elif block.language == "python":
                code = compile("\n" * (block.line - 1) + block.body, page, "exec")
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(code, space)
                printed = out.getvalue()
            elif block.language == "text":
                compare(printed, block.body, block)
            elif block.language == "sql":
                for question in filter(str.strip, block.body.split(";")):
                    str(space["session"].sql(question).explain())
            elif block.language == "console":
                run_console(block, compare)
            elif block.language in {"toml", "json", "csv"}:
                {"toml": tomllib.loads, "json": json.loads, "csv": str}[block.language](block.body)
            else:
                raise AssertionError(f"a block in {block.language or 'no language'!r}")
        except BaseException as error:
            error.add_note(f"in the block at {page}:{block.line}")
            raise
        if "file" in block.notes:
            Path(block.notes["file"]).write_text(block.body)


def _marked(page: Path) -> Any:
    marks = [pytest.mark.spark] if "skip_without_spark" in page.read_text() else []
    return pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=marks)


@pytest.mark.parametrize("page", [_marked(page) for page in PAGES])
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every block of the page runs and prints what the page says."""
    text = page.read_text()
    if needed := NEEDED.match(text):
        pytest.importorskip(needed[1], reason=f"{needed[1]} is not installed")
    monkeypatch.chdir(tmp_path)
    run_page(text, page.relative_to(ROOT).as_posix())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_page_links(page: Path) -> None:
    """What the page links to or shows, exists."""
    targets = [a or b for a, b in LINK.findall(page.read_text())]
    assert [t for t in targets if not (page.parent / t).exists()] == []


@pytest.mark.parametrize(
    "text",
    [
        "```python\n1 / 0\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint('a 1')\n```\n<!-- output varies -->\n```text\nb 2\n```\n",
        "```console\n$ echo 1\n2\n```\n",
        "```console\n$ false\n```\n",
        "```toml\na = = 1\n```\n",
        "```js\n1\n```\n",
        "<!-- not run: -->\n```python\n```\n",
    ],
)
def test_runner_fails(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block that is wrong is seen to be wrong."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ZeroDivisionError, ValueError)):
        run_page(text, "page.md")


@pytest.mark.parametrize("ends", ["", "1 / 0\n"])
def test_a_page_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str) -> None:
    """Libraries that it hides are there for whoever comes next, and no variable of it is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "this", raising=False)
    monkeypatch.setenv("OF_TESTS", "kept")
    page = f"""
<!-- setup:
import os, sys
sys.modules["json"] = sys.modules["this"] = None
os.environ["OF_TESTS"] = os.environ["OF_A_PAGE"] = "set"
-->
```python
try:
    import json
except ImportError:
    print("hidden")
{ends}```
```text
hidden
```
"""
    with pytest.raises(ZeroDivisionError) if ends else contextlib.nullcontext():
        run_page(page, "page.md")
    assert sys.modules["json"] is json
    assert "this" not in sys.modules
    assert os.environ["OF_TESTS"] == "kept"
    assert "OF_A_PAGE" not in os.environ


def test_runner_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State, files, hidden setup and masked numbers work together."""
    monkeypatch.chdir(tmp_path)
    page = """
<!-- setup: x = 1 -->
<!-- file: a.toml -->
```toml
b = 2
```
```python
print(x, "b = 2", "in", -3.25)
```
<!-- output varies -->
```text
1 b = 7   in 12,000
```
```console
$ cat a.toml
b = 2
$ test -f a.toml
```
"""
    run_page(page, "page.md")
