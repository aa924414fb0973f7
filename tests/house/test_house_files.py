"""Files tell what they hold: a docstring each, public names explained, none too long to read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dither

ROOT = Path(dither.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
LONGEST = 400
REASON = re.compile(r"\b(long|one file|one place|together) because\b", re.IGNORECASE)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _unexplained(tree: ast.Module) -> Iterator[str]:
    """Public functions and classes of a module, and public methods of those, without docstring."""
    waiting: list[tuple[str, ast.AST]] = [("", node) for node in tree.body]
    while waiting:
        prefix, node = waiting.pop()
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_"):
            continue
        decorators = {ast.unparse(d).split(".")[-1] for d in node.decorator_list}
        if not ast.get_docstring(node) and not decorators & {
            "override",
            "overload",
            "setter",
            "property",
        }:
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            waiting.extend((f"{prefix}{node.name}.", child) for child in node.body)


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_file_says_what_it_holds(path: Path) -> None:
    """Every module begins with a docstring, and a long one says there why it is long."""
    text = path.read_text()
    purpose = ast.get_docstring(ast.parse(text))
    assert purpose, "give the module a docstring"
    lines = len(text.splitlines())
    assert lines <= LONGEST or REASON.search(purpose), (
        f"{lines} lines: split it, or say in its docstring that it is 'long because ...'"
    )


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_public_names_are_explained(path: Path) -> None:
    """Every public function, class and method has a docstring."""
    assert sorted(_unexplained(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("path", sorted(ROOT.glob("*/__init__.py")), ids=_name)
def test_room_names_its_doors(path: Path) -> None:
    """A room lists what it offers in ``__all__``, unless it only holds modules to import from."""
    tree = ast.parse(path.read_text())
    offers = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    offers = [n for n in offers if getattr(n, "module", "") != "__future__"]
    named = any(
        isinstance(n, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(n) for n in tree.body
    )
    assert named or not offers
