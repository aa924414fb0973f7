"""The page of sources: calls in its tables run, links lead somewhere, counts are true.

What is evaluated: each call in the column *here*, after the page's own block, in an empty folder;
a value after ``=`` to the digits that are shown. What is not: calls with ``...``, which train,
synthesise, play long attacks, take much data or load PyTorch. A page that the row links to must
make the same call, with the same arguments, in a block that `test_code_blocks` runs. Commands are
resolved with their options, and not run.
"""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import pytest

from dither.cli import main
from dither.errors import MissingLibraryError
from docs.test_code_blocks import blocks
from docs.test_glossary import _anchors

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "sources.md").read_text()
STATUSES = ("works", "corrected", "explained", "out of scope")
LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)")
CALL = re.compile(r"`([^`]+)`(?: = ([\d.e-]+|True|False))?")


@dataclass(frozen=True)
class Row:
    """One item of one text."""

    text: str
    item: str
    here: str
    note: str
    status: str

    @property
    def calls(self) -> list[tuple[str, str]]:
        """What is called, and the value that is stated of it, if any."""
        return [(code, value) for code, value in CALL.findall(self.here)]

    @property
    def python(self) -> list[tuple[str, str]]:
        """The calls that are not commands."""
        return [(code, value) for code, value in self.calls if not code.startswith("dither ")]


def _cells(line: str) -> list[str]:
    return [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _rows() -> Iterator[Row]:
    text = ""
    for line in TEXT.splitlines():
        if line.startswith("## "):
            text = line[3:]
        elif text and line.startswith("| ") and not line.startswith("| item"):
            yield Row(text, *_cells(line))


ROWS = list(_rows())


def test_counts_of_the_head_are_those_of_the_tables() -> None:
    """Items, and items of each kind, of every text and of all."""
    head = TEXT[: TEXT.index("\n## ")]
    said = {}
    for line in head.splitlines():
        if line.startswith("| ") and not line.startswith("| text"):
            text, *numbers = _cells(line)
            said[re.sub(r"\[(.*?)\]\(.*?\)", r"\1", text)] = [int(n) for n in numbers]
    texts = dict.fromkeys(row.text for row in ROWS)
    found = {}
    for text in [*texts, "all"]:
        kinds = Counter(row.status for row in ROWS if text in (row.text, "all"))
        found[text] = [kinds.total(), *(kinds[status] for status in STATUSES)]
    assert said == found
    assert len(texts) == 5
    assert found["all"][0] >= 173


def test_a_row_says_what_its_status_needs() -> None:
    """A call where something works, what was put right, a page that explains, or the reason."""
    wrong = []
    for row in ROWS:
        fine = {
            "works": bool(row.calls),
            "corrected": bool(row.note) and (bool(row.calls) or bool(LINK.search(row.note))),
            "explained": not row.calls and bool(LINK.search(row.note)),
            "out of scope": not row.calls and len(row.note) > 60,
        }
        if not fine.get(row.status):
            wrong.append(f"{row.text}: {row.item}: {row.status}")
    assert wrong == []
    assert len({(row.text, row.item) for row in ROWS}) == len(ROWS)


def test_links_lead_to_pages_and_headings() -> None:
    """Anchors too, which no other test of the sources of pages holds."""
    dead = []
    for page, anchor in LINK.findall(TEXT):
        target = DOCS / page if page else DOCS / "sources.md"
        if not target.is_file() or (anchor and anchor not in _anchors(target)):
            dead.append(f"{page}#{anchor}")
    assert dead == []


def _elided(code: str) -> list[ast.Call]:
    """The calls in an expression in which something was left out."""
    found = []
    for node in ast.walk(ast.parse(code, mode="eval")):
        if isinstance(node, ast.Call):
            given = [*node.args, *(k.value for k in node.keywords)]
            if any(isinstance(x, ast.Constant) and x.value is ... for x in given):
                found.append(node)
    return found


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


@cache
def _made(page: Path) -> list[tuple[str, frozenset[str]]]:
    """The calls that the tests of a page make, with the names of their arguments."""
    made: list[tuple[str, frozenset[str]]] = []
    for block in blocks(page.read_text()):
        if block.language == "python" and "not run" not in block.notes:
            calls = (n for n in ast.walk(ast.parse(block.body)) if isinstance(n, ast.Call))
            made += [(_name(n), frozenset(k.arg or "" for k in n.keywords)) for n in calls]
    return made


def test_calls_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call that is quick is evaluated, and its value is the one that stands there."""
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for block in blocks(TEXT):
        if block.language == "python":
            exec(compile(block.body, "sources.md", "exec"), space)
    wrong, run = [], 0
    for row in ROWS:
        for code, stated in row.python:
            if _elided(code):
                continue
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    value = eval(code, space)
            except MissingLibraryError:
                continue  # an extra that is not installed: the page's own tests need them, too
            except Exception as error:
                wrong.append(f"{row.item}: {code}: {type(error).__name__}: {error}")
                continue
            run += 1
            if stated and not _shown_as(value, stated):
                wrong.append(f"{row.item}: {code} is {value}, not {stated}")
    space["session"].close()
    assert wrong == []
    assert run >= 150


def _shown_as(value: Any, stated: str) -> bool:
    """Whether a value is the stated one to its digits."""
    if stated in ("True", "False"):
        return str(value) == stated
    mantissa, _, exponent = stated.partition("e")
    digits = len(mantissa.partition(".")[2])
    return f"{float(value):.{digits}{'e' if exponent else 'f'}}" == stated


def test_calls_that_take_long_are_made_by_a_linked_page() -> None:
    """By the same name, with the arguments that are named."""
    wrong, seen = [], 0
    for row in ROWS:
        pages = {DOCS / page for page, _ in LINK.findall(row.note) if page}
        for code, stated in row.python:
            for call in _elided(code):
                seen += 1
                named = {k.arg or "" for k in call.keywords}
                made = [args for page in pages for name, args in _made(page) if name == _name(call)]
                if stated or not any(named <= args for args in made):
                    wrong.append(f"{row.item}: {code}: {sorted(named)} not among {made}")
    assert wrong == []
    assert seen >= 20


def test_commands_are_there() -> None:
    """Every command, and each option that is given to it."""
    named = {code for row in ROWS for code, _ in row.calls if code.startswith("dither ")}
    named |= set(re.findall(r"`(dither [^`]+)`", TEXT))
    wrong = []
    for line in sorted(named):
        command: click.Command = main
        words = shlex.split(line)[1:]
        context = click.Context(command)
        while words and isinstance(command, click.Group):
            found = command.get_command(context, words[0])
            if found is None:
                break
            command, words = found, words[1:]
        options = {name for one in command.params for name in (*one.opts, *one.secondary_opts)}
        missing = [word for word in words if word.startswith("--") and word not in options]
        if command is main or missing:
            wrong.append(f"{line}: {missing}")
    assert wrong == []
    assert len(named) >= 15


@pytest.mark.parametrize(
    ("value", "stated", "fine"),
    [
        (0.7837, "0.784", True),
        (0.7837, "0.785", False),
        (6, "6", True),
        (True, "False", False),
        (2.2651e-5, "2.27e-05", True),
        (2.2651e-5, "2.3e-06", False),
    ],
)
def test_values_are_compared(value: Any, stated: str, fine: bool) -> None:
    """A value that is another is seen to be another."""
    assert _shown_as(value, stated) == fine
