"""Files tell what they hold, none is too long to read, and none names a machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dither
from house.parsed import parsed

ROOT = Path(dither.__file__).parent
TREE = Path(__file__).parents[2]
MODULES = sorted(ROOT.rglob("*.py"))
LONGEST = 350
"""Lines of code: blank lines, comments and docstrings are not counted, since they help to read."""
REASON = re.compile(r"\b(long|one file|one place|together) because\b", re.IGNORECASE)

TEXTS = [
    TREE / "Makefile",
    TREE / ".ci" / "run",
    *TREE.glob("*.md"),
    *TREE.glob("*.toml"),
    *(
        p
        for package in ("src", "tests", "docs", "benchmarks")
        for p in (TREE / package).rglob("*.py")
    ),
    *(TREE / "docs").rglob("*.md"),
]
MACHINE = re.compile(r"(?<![\w.])/(?:work|root|home|Users|mnt)/\w")
INDEX = re.compile(r"--(?:extra-)?index-url|--find-links|PIP_INDEX|\[\[tool\.\w+\.index\]\]")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _trees() -> dict[str, ast.Module]:
    return {_name(path): parsed(path) for path in MODULES}


def _promised(tree: ast.Module) -> list[str] | None:
    """The names in ``__all__``, or ``None`` where there is none."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign | ast.Assign) and node.value is not None:
            name = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if ast.unparse(name) == "__all__":
                return [e.value for e in ast.walk(node.value) if isinstance(e, ast.Constant)]
    return None


def _doors() -> dict[str, ast.Module]:
    packages = re.compile(r"((lab/)?\w+/)?__init__\.py")
    return {name: tree for name, tree in _trees().items() if packages.fullmatch(name)}


@cache
def _offered() -> set[str]:
    return {name for tree in _doors().values() for name in _promised(tree) or ()}


def _unexplained(tree: ast.Module) -> Iterator[str]:
    """Functions and classes of a module, and methods of what packages offer, unexplained."""
    promised = _promised(tree)
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if node.name.startswith("_") or (promised is not None and node.name not in promised):
            continue
        if any(ast.unparse(d).split(".")[-1] == "overload" for d in node.decorator_list):
            continue
        if not ast.get_docstring(node):
            yield node.name
        if not isinstance(node, ast.ClassDef) or node.name not in _offered():
            continue
        for method in node.body:
            if not isinstance(method, ast.FunctionDef) or method.name.startswith("_"):
                continue
            marks = {ast.unparse(d).split(".")[-1] for d in method.decorator_list}
            if not marks & {"overload", "property", "setter"} and not ast.get_docstring(method):
                yield f"{node.name}.{method.name}"


def test_files_say_what_they_hold() -> None:
    """Every module begins with a docstring."""
    assert [name for name, tree in _trees().items() if not ast.get_docstring(tree)] == []


def test_long_files_say_why() -> None:
    """A file beyond the longest says in its docstring that it is 'long because ...'."""
    long = {name for name in _trees() if _lines_of_code(name) > LONGEST}
    assert [n for n in long if not REASON.search(ast.get_docstring(_trees()[n]) or "")] == []


def test_public_names_are_explained() -> None:
    """Whatever a module offers has a docstring; so have the methods of what a package offers."""
    found = {name: sorted(_unexplained(tree)) for name, tree in _trees().items()}
    assert {name: names for name, names in found.items() if names} == {}


def test_packages_list_what_they_offer() -> None:
    """A package lists what it offers in ``__all__``, unless it holds modules to import from."""
    offering = {name: tree for name, tree in _doors().items() if _offers(tree)}
    assert [name for name, tree in offering.items() if _promised(tree) is None] == []


def test_no_machine_is_named() -> None:
    """Nothing depends on where it was written or where packages came from there."""
    found = {}
    for path in TEXTS:
        text = path.read_text(encoding="utf-8")
        matches = [m.group() for m in MACHINE.finditer(text)]
        if path != Path(__file__):
            matches += [m.group() for m in INDEX.finditer(text)]
        if matches:
            found[path.relative_to(TREE).as_posix()] = matches
    assert found == {}


def _lines_of_code(name: str) -> int:
    told: set[int] = set()
    for node in ast.walk(_trees()[name]):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            told.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate((ROOT / name).read_text().splitlines(), start=1)
    return sum(1 for i, x in lines if i not in told and x.strip() and not x.strip().startswith("#"))


def _offers(tree: ast.Module) -> bool:
    imports = [n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
    return any(getattr(n, "module", "") != "__future__" for n in imports)


CROWDED = 16
"""Files of a folder that somebody can take in at one look."""


def _folders() -> Iterator[tuple[str, list[str]]]:
    """Each folder with the names of its files, without the marks of a kind."""
    for base in (ROOT, TREE / "tests", TREE / "benchmarks"):
        for folder in (base, *(p for p in base.rglob("*") if p.is_dir())):
            names = [p.stem for p in folder.glob("*.py")]
            if names:
                shown = folder.relative_to(base.parent).as_posix()
                yield shown, [name.removeprefix("test_").lstrip("_") for name in names]


def test_no_folder_is_crowded() -> None:
    """A folder can be taken in at one look: what would be more is a folder within it."""
    assert {folder: len(names) for folder, names in _folders() if len(names) > CROWDED} == {}


def test_a_word_that_begins_three_names_is_a_folder() -> None:
    """Files are told apart by where they stand, and not by a word that all of them begin with."""
    counted = {
        (folder, word): sum(name.partition("_")[0] == word for name in names)
        for folder, names in _folders()
        for word in {name.partition("_")[0] for name in names}
    }
    assert {place: number for place, number in counted.items() if number > 2} == {}
