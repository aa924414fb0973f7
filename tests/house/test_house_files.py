"""Files tell what they hold: a docstring each, public names explained, none too long to read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import dither

ROOT = Path(dither.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
LONGEST = 400
REASON = re.compile(r"\b(long|one file|one place|together) because\b", re.IGNORECASE)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


TREES = {_name(path): ast.parse(path.read_text()) for path in MODULES}


def _promised(tree: ast.Module) -> list[str] | None:
    """The names in ``__all__``, or ``None`` where there is none."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return [e.value for e in ast.walk(node.value) if isinstance(e, ast.Constant)]
    return None


def _unexplained(tree: ast.Module) -> Iterator[str]:
    """Functions and classes that a module offers, and public methods of those, unexplained."""
    offered = _promised(tree)
    waiting: list[tuple[str, ast.AST]] = [
        ("", node)
        for node in tree.body
        if offered is None or getattr(node, "name", None) in offered
    ]
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


def test_files_say_what_they_hold() -> None:
    """Every module begins with a docstring."""
    assert [name for name, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_long_files_say_why() -> None:
    """A file beyond the longest says in its docstring that it is 'long because ...'."""
    lines = {_name(path): len(path.read_text().splitlines()) for path in MODULES}
    long = {name: n for name, n in lines.items() if n > LONGEST}
    assert {n: c for n, c in long.items() if not REASON.search(_purpose(n))} == {}


def test_public_names_are_explained() -> None:
    """Every public function, class and method has a docstring."""
    found = {name: sorted(_unexplained(tree)) for name, tree in TREES.items()}
    assert {name: names for name, names in found.items() if names} == {}


def test_rooms_name_their_doors() -> None:
    """A room lists what it offers in ``__all__``, unless it only holds modules to import from."""
    doors = {n: t for n, t in TREES.items() if n.endswith("__init__.py") and n.count("/") == 1}
    assert [name for name, tree in doors.items() if _offers(tree) and _promised(tree) is None] == []


def _purpose(name: str) -> str:
    return ast.get_docstring(TREES[name]) or ""


def _offers(tree: ast.Module) -> bool:
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return any(getattr(n, "module", "") != "__future__" for n in imports)
