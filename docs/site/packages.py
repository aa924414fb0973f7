"""What the reference shows: every public name of every package, each once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import dither
from dither.errors import MissingLibraryError

LACKING: dict[str, list[str]] = {}
"""Names that are left out of the reference, by the library that they need."""

NESTED = ("lab",)
"""Packages that hold packages."""


@dataclass(frozen=True, eq=False)
class Public:
    """One public object, under the name that the reference gives it."""

    package: str
    name: str
    object: Any

    @property
    def full(self) -> str:
        """As it is imported, such as `dither.local.GRR`."""
        return f"{self.package}.{self.name}"

    @property
    def page(self) -> str:
        """Its page, without a suffix."""
        return f"reference/{self.package}/{self.name}"

    @property
    def kind(self) -> str:
        """What it is to Python: `class`, `exception`, `function` or `data`."""
        if inspect.isclass(self.object):
            return "exception" if issubclass(self.object, BaseException) else "class"
        return "function" if callable(self.object) else "data"

    @property
    def summary(self) -> str:
        """The first line of its docstring; nothing for a constant."""
        text = "" if self.kind == "data" else inspect.getdoc(self.object) or ""
        return " ".join(text.split("\n\n")[0].split())

    def members(self) -> tuple[list[str], dict[Public, list[str]]]:
        """What a class has of its own, and what it has from each public class above it.

        What it has from a private class counts as its own, since there is no other page for it.
        """
        if self.kind not in ("class", "exception"):
            return [], {}
        own: list[str] = []
        above: dict[Public, list[str]] = {}
        seen: set[str] = set()
        for cls in self.object.__mro__:
            if not cls.__module__.startswith("dither"):
                continue
            base = None if cls is self.object else of(cls)
            for name in [*vars(cls), *getattr(cls, "__annotations__", ())]:
                if name.startswith("_") or name in seen:
                    continue
                seen.add(name)
                if base is None:
                    own.append(name)
                else:
                    above.setdefault(base, []).append(name)
        return own, above


def listed(package: ModuleType) -> list[str]:
    """What a package lists, but for names that need a library which is not installed."""
    return [name for name in package.__all__ if _loads(package, name)]


def _loads(package: ModuleType, name: str) -> bool:
    try:
        getattr(package, name)
    except MissingLibraryError as error:
        LACKING.setdefault(str(error.name), []).append(f"{package.__name__}.{name}")
        return False
    return True


def packages() -> Iterator[ModuleType]:
    """The package, and every package that offers something."""
    yield dither
    yield from _packages(dither)


def _packages(parent: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(parent.__path__, f"{parent.__name__}."):
        last = found.name.rpartition(".")[2]
        if last.startswith("_") or not (found.ispkg or found.name == "dither.errors"):
            continue
        package = importlib.import_module(found.name)
        if getattr(package, "__all__", ()):
            yield package
            parts = (getattr(package, name) for name in listed(package))
            yield from (part for part in parts if isinstance(part, ModuleType))
        if last in NESTED:
            yield from _packages(package)


def others(package: ModuleType) -> list[str]:
    """What a package holds beside its list: types of arguments and results, and rarer functions."""
    if not hasattr(package, "__path__"):
        return []  # what a plain module imports is not its own
    return sorted(
        name
        for name, thing in vars(package).items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and not name.startswith("_")
        and name not in package.__all__
        and thing.__module__.startswith("dither.")
        and thing.__module__ not in (package.__name__, "dither.errors")
    )


def _published() -> list[Public]:
    """Every public object, at home where its module is, else where it is offered first."""
    homes: dict[int, list[Public]] = {}
    for package in packages():
        for name in [*listed(package), *others(package)]:
            thing = getattr(package, name)
            if not isinstance(thing, ModuleType):
                homes.setdefault(id(thing), []).append(Public(package.__name__, name, thing))

    def home(places: list[Public]) -> Public:
        module = getattr(places[0].object, "__module__", "")
        listed = [p for p in places if p.name in sys.modules[p.package].__all__] or places
        return max(
            listed, key=lambda p: f"{module}.".startswith(f"{p.package}.") and len(p.package)
        )

    return sorted((home(places) for places in homes.values()), key=lambda p: p.full)


PUBLIC = _published()
_BY_OBJECT = {id(p.object): p for p in PUBLIC}


def of(thing: Any) -> Public | None:
    """The public name of an object, if it has one."""
    return _BY_OBJECT.get(id(thing))
