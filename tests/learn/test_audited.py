"""Every public name of ``dither.learn`` has something that an audit calls."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from dither import inference, learn
from dither._subjects import declared, declaring
from dither.lab.audit import Outcome, audit

pytestmark = pytest.mark.extras

PACKAGES = ("dither.learn", "dither.inference")

READS_NOTHING = {"load", "secure_sum", "shared_sum"}
"""Names that see no protected row, but what was released; and sums that are exact, which claim no
epsilon."""


def _known(module: str) -> Iterator[str]:
    """The modules of these packages that a module imports, itself included, however deep."""
    seen, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name in seen or not name.startswith(PACKAGES) or name in PACKAGES:
            continue
        found = None
        with suppress(ModuleNotFoundError):  # a name in a module
            found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            continue
        seen.add(name)
        yield name
        for node in ast.walk(ast.parse(Path(found.origin).read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{part.name}" for part in node.names)]


def _standing(name: str, value: Any) -> set[str]:
    """The modules in which a public name and all that it rests on stand."""
    home = value.__name__ if inspect.ismodule(value) else value.__module__
    return set(_known(home))


def _undeclared(names: dict[str, Any], audited: set[str]) -> list[str]:
    """Public names with no audited class in any module that they rest on."""
    return [name for name, value in names.items() if not _standing(name, value) & audited]


def _public() -> dict[str, Any]:
    found = {}
    for name in learn.__all__:
        with suppress(ImportError):  # of an extra that is not installed
            found[name] = getattr(learn, name)
    return {name: value for name, value in found.items() if name not in READS_NOTHING}


def _audited() -> set[str]:
    return {made.__module__ for package in (learn, inference) for made in declaring(package)}


def test_every_public_estimator_declares_what_to_audit() -> None:
    """Each stands on a class with ``audit_subjects`` that ``dither audit --all`` reads."""
    assert _undeclared(_public(), _audited()) == []


def test_an_estimator_that_declares_nothing_is_found(tmp_path, monkeypatch) -> None:
    """A module of its own with noise that nobody audits."""
    made = ModuleType("dither.learn._toy")
    (tmp_path / "_toy.py").write_text("from dither.mechanisms import DiscreteGaussian\n")
    made.__spec__ = importlib.util.spec_from_file_location(made.__name__, tmp_path / "_toy.py")
    monkeypatch.setitem(sys.modules, made.__name__, made)
    toy = type("Toy", (), {"__module__": made.__name__})
    assert _undeclared(_public() | {"Toy": toy}, _audited()) == ["Toy"]


def test_what_needs_another_library_is_audited_where_that_is_installed(
    tmp_path, monkeypatch
) -> None:
    """``AUDITED`` may name a class by its module; a module of ours that is not there raises."""
    (tmp_path / "needing.py").write_text("import no_such_library_at_all\n")
    monkeypatch.syspath_prepend(tmp_path)

    def found(*audited: str) -> list[str]:
        package: Any = SimpleNamespace(__all__=(), AUDITED=audited)
        return [made.__name__ for made in declaring(package)]

    assert found("dither.learn.tabular._boosting:Boosting", "needing:Step") == ["Boosting"]
    with pytest.raises(ImportError):
        found("dither.learn._nowhere:Step")


SUBJECTS = list(declared(learn))


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda subject: subject.name)
def test_no_claim_is_refuted(subject) -> None:
    """A thousand outputs of each, at 99.9 %: one false alarm in a thousand runs of each."""
    found = audit(
        subject.mechanism,
        subject.d0,
        subject.d1,
        epsilon=subject.epsilon,
        delta=Fraction(subject.delta),
        samples=1000,
        confidence=0.999,
    )
    # Not inconclusive, either: then nothing would have been audited.
    assert found.verdict is Outcome.NOT_REFUTED, found.summary()
