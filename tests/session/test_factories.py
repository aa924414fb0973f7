"""What a session and its rows are asked for: every factory loads, reached without imports."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import dither as dt
from dither.session._factories import FACTORIES, PARTS, factory

ROOT = Path(dt.__file__).parent
FACES = ("session/_session.py", "session/_recipe.py", "query/_builder.py")
ABOVE = ("service/work/_loading.py", "service/page/forms/_kinds.py")
ALL = FACTORIES | PARTS


@pytest.mark.parametrize("name", ALL)
def test_every_factory_loads(name: str) -> None:
    """Each is a class or function of the module that is named, in a package above the session."""
    if name == "infer":
        pytest.importorskip("scipy")
    module, _, made = ALL[name].partition(":")
    found = factory(name)
    assert callable(found)
    assert found is getattr(import_module(module), made)
    assert found.__module__ == module


def test_every_factory_is_asked_for_by_a_method_that_says_what_it_gives() -> None:
    """Each factory is asked for, none that is not there is, and each is documented."""
    asked: set[str] = set()
    for face in FACES:
        for node in ast.walk(ast.parse((ROOT / face).read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                names = set(re.findall(r"factory\('(\w+)'\)", ast.unparse(node)))
                asked |= names
                assert not names or ast.get_docstring(node) or node.name.startswith("_"), node.name
    assert asked == set(ALL)


def test_factories_are_asked_for_by_the_faces_alone() -> None:
    """Elsewhere a package imports what lies below it, where everybody sees it.

    The service is above all of them: it loads every kind once it answers, and reads the forms of
    its page off the classes.
    """
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if "factory(" in path.read_text(encoding="utf-8")
    }
    assert asking == {"session/_factories.py", *FACES, *ABOVE}
