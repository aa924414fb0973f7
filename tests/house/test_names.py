"""What the package offers: few names at its root, each found at once, and packages beside them."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import dither
from house.parsed import parsed

PACKAGES = [
    "accounting",
    "anonymize",
    "attack",
    "errors",
    "graph",
    "inference",
    "learn",
    "ledger",
    "local",
    "mechanisms",
    "places",
    "privacy",
    "series",
    "synth",
]


def _faces(package: str) -> dict[str, list[str]]:
    """What each package lists, and what the packages in it do."""
    found = {}
    for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
        name = f"{package}.{module.name}"
        if module.ispkg and not module.name.startswith("_"):
            found[name] = list(getattr(importlib.import_module(name), "__all__", ()))
            found |= _faces(name) if module.name == "lab" else {}
    return found


FACES = _faces("dither")


def test_root_is_small() -> None:
    """At most 26 names, and no package among what a star imports."""
    assert len(dither.__all__) <= 26
    assert set(PACKAGES).isdisjoint(dither.__all__)
    assert set(dither.__all__) | set(PACKAGES) <= set(dir(dither))


def test_root_finds_by_itself() -> None:
    """``import dither as dt`` is enough to reach a package or a name, and loads nothing before."""
    lines = [
        "import sys, dither as dt",
        "assert [m for m in sys.modules if m.startswith('dither.')] == []",
        f"print(*[getattr(dt, name) for name in {[*PACKAGES, 'open', 'sum']}])",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_faces_are_small() -> None:
    """All packages together list at most 101 names; the rest of a package is for those who know it.

    Inference has one name a test or estimate, as statistics packages do, learning one a model,
    local privacy one a channel, and attacks one an attack: they are counted by themselves.
    """
    faces = {package: len(face) for package, face in FACES.items()}
    assert faces.pop("dither.inference") <= 50
    assert faces.pop("dither.learn") <= 25
    assert faces.pop("dither.lab.attack") <= 22
    assert faces.pop("dither.local") <= 50
    # The package of synthetic tables came when the others had taken what there is: it has a door to
    # what was saved, and what that gives, beside the methods of a table.
    assert faces.pop("dither.synth") <= 6
    # So did that of graphs: one name a statistic.
    assert faces.pop("dither.graph") <= 12
    # So did those of paths and of series, which have a name a release.
    assert faces.pop("dither.places") <= 10
    assert faces.pop("dither.series") <= 8
    assert sum(faces.values()) <= 101


OPEN = {
    "cli": "commands, found by their files",
    "engines": "the pieces that a new engine is made of",
    "examples": "shows, read as text",
    "mechanisms": "one file a mechanism, where its law and proof stand",
    "plan": "nodes and their facts, which sql, engines and query share",
    "sql": "the steps from text to plan, which query takes one by one",
}
"""Packages whose files may be imported by name, and why. Elsewhere a package's face is its door."""

DOORS = {"dither.lab.attack.releases", "dither.local.wire", "dither.privacy.theorems"}
"""Modules that people import by name."""


def test_files_behind_a_face_are_private() -> None:
    """Where a package has a face, its files begin with an underscore, or are doors themselves."""
    open_ = tuple(f"dither.{package}." for package in OPEN)
    found = {
        module.name
        for module in pkgutil.walk_packages(dither.__path__, "dither.")
        if not module.ispkg and module.name.count(".") == 2 + module.name.startswith("dither.lab.")
    }
    public = {name for name in found if not name.rpartition(".")[2].startswith("_")}
    assert {name for name in public if not name.startswith(open_)} == DOORS


def test_no_two_classes_share_a_name() -> None:
    """A class has one name, and a name one class, in all packages that people may import from."""
    found: dict[str, set[type]] = {}
    for package in FACES:
        for name, thing in vars(importlib.import_module(package)).items():
            if inspect.isclass(thing) and thing.__module__.startswith("dither."):
                found.setdefault(name, set()).add(thing)
    assert {name: kinds for name, kinds in found.items() if len(kinds) > 1} == {}


def test_no_two_modules_name_a_class_alike() -> None:
    """Nor do files behind the faces: who reads a name in a traceback knows which class it is."""
    root = Path(dither.__file__).parent
    found: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(path.relative_to(root).as_posix())
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_root_refuses_what_it_lacks() -> None:
    """An unknown name is an ordinary AttributeError."""
    with pytest.raises(AttributeError, match="no attribute 'opens'"):
        _ = dither.opens


def test_no_module_is_called_like_what_its_package_exports() -> None:
    """Else which of the two ``package.name`` gives hangs on who imported what first."""
    hidden = []
    for module in pkgutil.walk_packages(dither.__path__, "dither."):
        package, _, name = module.name.rpartition(".")
        exported = getattr(importlib.import_module(package), name, None)
        if not (exported is None or inspect.ismodule(exported)):
            hidden.append(module.name)
    assert hidden == []
