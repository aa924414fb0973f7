"""What the reference shows: every public name of every room, each once."""

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
"""Rooms that hold rooms."""


@dataclass(frozen=True, eq=False)
class Public:
    """One public object, under the name that the reference gives it."""

    room: str
    name: str
    object: Any

    @property
    def full(self) -> str:
        """As it is imported, such as `dither.local.GRR`."""
        return f"{self.room}.{self.name}"

    @property
    def page(self) -> str:
        """Its page, without a suffix."""
        return f"reference/{self.room}/{self.name}"

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


def listed(room: ModuleType) -> list[str]:
    """What a room lists, but for names that need a library which is not installed."""
    return [name for name in room.__all__ if _loads(room, name)]


def _loads(room: ModuleType, name: str) -> bool:
    try:
        getattr(room, name)
    except MissingLibraryError as error:
        LACKING.setdefault(str(error.name), []).append(f"{room.__name__}.{name}")
        return False
    return True


def rooms() -> Iterator[ModuleType]:
    """The package, and every room that offers something."""
    yield dither
    yield from _rooms(dither)


def _rooms(parent: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(parent.__path__, f"{parent.__name__}."):
        last = found.name.rpartition(".")[2]
        if last.startswith("_") or not (found.ispkg or found.name == "dither.errors"):
            continue
        room = importlib.import_module(found.name)
        if getattr(room, "__all__", ()):
            yield room
            parts = (getattr(room, name) for name in listed(room))
            yield from (part for part in parts if isinstance(part, ModuleType))
        if last in NESTED:
            yield from _rooms(room)


def others(room: ModuleType) -> list[str]:
    """What a room holds beside its list: types of arguments and results, and rarer functions."""
    if not hasattr(room, "__path__"):
        return []  # what a plain module imports is not its own
    return sorted(
        name
        for name, thing in vars(room).items()
        if (inspect.isclass(thing) or inspect.isfunction(thing))
        and not name.startswith("_")
        and name not in room.__all__
        and thing.__module__.startswith("dither.")
        and thing.__module__ not in (room.__name__, "dither.errors")
    )


def _published() -> list[Public]:
    """Every public object, at home where its module is, else where it is offered first."""
    homes: dict[int, list[Public]] = {}
    for room in rooms():
        for name in [*listed(room), *others(room)]:
            thing = getattr(room, name)
            if not isinstance(thing, ModuleType):
                homes.setdefault(id(thing), []).append(Public(room.__name__, name, thing))

    def home(places: list[Public]) -> Public:
        module = getattr(places[0].object, "__module__", "")
        listed = [p for p in places if p.name in sys.modules[p.room].__all__] or places
        return max(listed, key=lambda p: f"{module}.".startswith(f"{p.room}.") and len(p.room))

    return sorted((home(places) for places in homes.values()), key=lambda p: p.full)


PUBLIC = _published()
_BY_OBJECT = {id(p.object): p for p in PUBLIC}


def of(thing: Any) -> Public | None:
    """The public name of an object, if it has one."""
    return _BY_OBJECT.get(id(thing))
