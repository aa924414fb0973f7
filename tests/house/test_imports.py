"""What import contracts cannot say: randomness by attribute, late pictures, a light front door."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

import dither
from dither.errors import MissingLibraryError
from house.parsed import parsed

ROOT = Path(dither.__file__).parent
MODULES = sorted(ROOT.rglob("*.py"))
HEAVY = {
    "cryptography",
    "duckdb",
    "matplotlib",
    "mpmath",
    "numpy",
    "pandas",
    "polars",
    "psycopg",
    "pyarrow",
    "pyspark",
    "sqlalchemy",
    "sqlglot",
}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _imports(node: ast.AST) -> Iterator[str]:
    """The dotted names that an import statement brings in."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _library_randomness(tree: ast.AST) -> list[int]:
    """Lines that reach ``random`` or ``numpy.random``, except in ``Simulated...`` classes."""
    lines = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.ClassDef) and node.name.startswith("Simulated"):
            continue
        # A caller's own generator may be named as a type: what simulates asks for one.
        typed = isinstance(node, ast.Attribute) and node.attr == "Generator"
        if typed and ast.unparse(node) == "np.random.Generator":
            continue
        waiting.extend(ast.iter_child_nodes(node))
        names = list(_imports(node))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names = [f"{node.value.id}.{node.attr}".replace("np.", "numpy.", 1)]
        if any(n == "random" or n.startswith(("random.", "numpy.random")) for n in names):
            lines.append(getattr(node, "lineno", 0))
    return lines


@cache
def _imported(path: Path) -> tuple[frozenset[str], frozenset[str]]:
    """Names imported when the module loads and when a function runs, not for type checkers."""
    found: tuple[set[str], set[str]] = (set(), set())
    waiting: list[tuple[ast.AST, bool]] = [(parsed(path), False)]
    while waiting:
        node, late = waiting.pop()
        found[late].update(_imports(node))
        checked = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for field in ("orelse",) if checked else ("body", "orelse", "handlers", "finalbody"):
            waiting.extend((child, late) for child in getattr(node, field, ()))
    return frozenset(found[0]), frozenset(found[1])


def test_no_library_randomness() -> None:
    """Noise comes from ``dither.numeric`` alone; what simulates has a type that says so."""
    # What reaches it names it.
    naming = [p for p in MODULES if "random" in p.read_text(encoding="utf-8")]
    found = {_name(p): _library_randomness(parsed(p)) for p in naming}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import random",
        "from random import choice",
        "import numpy.random",
        "from numpy import random",
        "from numpy.random import default_rng",
        "import numpy as np\nnp.random.default_rng(1)",
        "def f():\n    import random",
        "class Sampler:\n    r = np.random.PCG64",
        "def f(rng: np.random.Generator):\n    return np.random.default_rng(rng)",
    ],
)
def test_library_randomness_is_found(source: str) -> None:
    """The finder above finds every way of writing it."""
    assert _library_randomness(ast.parse(source))


def test_pictures_are_imported_late() -> None:
    """Matplotlib and ``dither.plots`` load when a picture is asked for, never before."""
    early = {
        (_name(path), name)
        for path in MODULES
        if "plots" not in path.parts
        for name in _imported(path)[0]
        if name.split(".")[0] in {"matplotlib", "seaborn"} or name.startswith("dither.plots")
    }
    assert early == set()


def _reached(start: str, arrows: Mapping[str, Set[str]]) -> set[str]:
    """Every module that an import of one brings in."""
    found, waiting = set[str](), [start]
    while waiting:
        new = arrows[waiting.pop()] - found
        found |= new
        waiting.extend(new)
    return found


def test_no_circle_of_imports() -> None:
    """No module needs itself to load, nor brings back what imported it when a function runs."""
    paths = {
        ".".join(("dither", *p.relative_to(ROOT).with_suffix("").parts)): p
        for p in MODULES
        if p.name != "__init__.py" and "plots" not in p.parts
    }
    early = {name: _imported(path)[0] & paths.keys() for name, path in paths.items()}
    assert [name for name in paths if name in _reached(name, early)] == []
    late = {name: _imported(path)[1] & paths.keys() for name, path in paths.items()}
    both = {name: early[name] | late[name] for name in paths}
    reached = {name: _reached(name, both) for name in paths}
    circles = {
        (f"{name.removeprefix('dither.').replace('.', '/')}.py", other)
        for name in paths
        for other in late[name]
        if name in reached[other]
    }
    assert circles == set()


def test_no_arrow_between_packages_points_upwards() -> None:
    """Packages stand in an order: what one imports, inside functions too, imports it by no way
    round.

    Types and pictures alone may point upwards; what a session or a table is asked for is found by
    its name (`dither.session._factories`). Commands run the examples and examples the commands, so
    that these two stand on one floor.
    """
    packages: dict[str, set[str]] = {}
    for path in MODULES:
        package = path.relative_to(ROOT).parts[0].removesuffix(".py")
        if package in {"plots", "__init__"} or not (ROOT / package).is_dir():
            continue
        named = {
            name.split(".")[1]
            for part in _imported(path)
            for name in part
            if "." in name and name.startswith("dither.")
        }
        packages.setdefault(package, set()).update(n for n in named if (ROOT / n).is_dir())
    packages["cli"] = (packages["cli"] | packages.pop("examples")) - {"examples"}
    arrows = {package: found - {package, "plots"} for package, found in packages.items()}
    assert not any("examples" in found for found in arrows.values())
    assert {package for package in arrows if package in _reached(package, arrows)} == set()


def test_front_door_is_light() -> None:
    """A bare ``import dither`` loads no heavy library, so that it takes no time worth naming."""
    code = "import sys, dither; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert HEAVY.isdisjoint(done.stdout.split())


LIBRARIES = {
    "flwr",
    "formulaic",
    "matplotlib",
    "ortools",
    "psycopg",
    "pyarrow",
    "pyspark",
    "scipy",
    "shamirs",
    "sklearn",
    "statsmodels",
    "tenseal",
    "torch",
}
"""What extras bring."""

DOORS: dict[str, str | None] = {
    "engines/duckdb/drift.py": "engines/duckdb/frames.py",
    "engines/postgres/": "_postgres.py",
    "engines/spark/parted.py": "engines/spark/sessions.py",
    "examples/training_audit.py": "learn/deep/__init__.py",
    "inference/": "inference/__init__.py",
    "lab/audit/_contents.py": None,  # values of a library, which is there
    "learn/_conventions.py": None,  # does without
    "learn/_estimator.py": None,  # scikit-learn calls it
    "learn/deep/": "learn/deep/__init__.py",
    "learn/federated/_torch.py": None,  # modules of torch, which is there
    "plots/": "plots/_canvas.py",
}
"""Modules that import libraries of extras as if they were there, and where that is asked before."""


def _bare(tree: ast.AST) -> bool:
    """Whether a library of an extra is imported, other than for types."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            waiting += node.orelse
            continue
        if any(name.partition(".")[0] in {*LIBRARIES, "pandas"} for name in _imports(node)):
            return True
        waiting += ast.iter_child_nodes(node)
    return False


def test_libraries_of_extras_are_asked_for_by_name() -> None:
    """Whoever lacks one is told which extra brings it, and never of a module alone."""
    asking = {_name(p) for p in MODULES if "from dither._extras import" in p.read_text()}
    assert {door for door in DOORS.values() if door} <= asking
    bare = {_name(p) for p in MODULES if _bare(parsed(p))} - asking
    assert {name for name in bare if not name.startswith(tuple(DOORS))} == set()
    assert [door for door in DOORS if not any(name.startswith(door) for name in bare)] == []


NAMES = ["dither", *(m.name for m in pkgutil.walk_packages([str(ROOT)], "dither."))]
WITHOUT = "names that need {} are not looked at, where it is not installed"


def _absent(error: ImportError) -> str:
    """The library of an extra that is not here; any other failure is raised."""
    name = (error.name or "").partition(".")[0]
    if name not in LIBRARIES or importlib.util.find_spec(name) is not None:
        raise error
    return name


@pytest.mark.extras
def test_every_public_name_exists() -> None:
    """Every module imports, and has everything that its ``__all__`` promises, once each.

    Where a library of an extra is not installed, what needs it says which extra brings it.
    """
    missing, absent = set(), set()
    for name in NAMES:
        if name.endswith("__main__"):
            continue  # it runs the command line
        try:
            module = importlib.import_module(name)
        except ImportError as error:
            absent.add(_absent(error))
            continue
        promised = list(getattr(module, "__all__", []))
        assert len(promised) == len(set(promised)), name
        for promise in promised:
            try:
                found = hasattr(module, promise)
            except MissingLibraryError as error:
                absent.add(_absent(error))
                found = "pip install 'dither[" in str(error)
            missing |= set() if found else {f"{name}.{promise}"}
    assert missing == set()
    if absent:
        pytest.skip(WITHOUT.format(", ".join(sorted(absent))))
