"""One outcome of any type as its numbers, and as hashable keys with and without them."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Raised", "flatten", "raised"]

_DEEPEST = 8
_READERS = ("to_pydict", "to_dict", "to_list", "tolist")
"""How frames and series of common libraries tell what they hold."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a call that failed: the exception's type, and its text, which is not shown.

    Whoever sees the exception may see its text, so it is looked at like any other output.
    """

    kind: str
    text: str = field(default="", repr=False)


def raised(error: BaseException) -> Raised:
    """An exception as an outcome; addresses in memory are left out of its text."""
    try:
        text = re.sub(r"\b0x[0-9a-fA-F]+", "0x", str(error))
    except Exception:  # an exception that cannot be written has no text to see
        text = ""
    return Raised(type(error).__name__, text)


def flatten(
    value: Any, parts: list[float], blind: set[str], depth: int = 0
) -> tuple[Hashable, Hashable]:
    """Put the numbers of a value into ``parts``; return it, and it without numbers, hashable.

    The types of what cannot be looked into are put into ``blind``.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bytes):
        parts.append(float(len(value)))
        return value, ("text", value)
    if isinstance(value, Raised):
        return value, ("raises", value.kind)
    if value is None or isinstance(value, type):
        return value, value
    if isinstance(value, numbers.Number):
        return _number(value, parts)
    name = type(value).__name__
    if depth < _DEEPEST:
        inner = _inside(value)
        if inner is not None:
            pairs = [flatten(v, parts, blind, depth + 1) for v in inner]
            return (name, *(a for a, _ in pairs)), (name, *(b for _, b in pairs))
    try:
        hash(value)
        opaque = _by_identity(value)
    except TypeError:
        opaque = True
    if opaque:
        # By identity every outcome would be its own, and say nothing.
        blind.add(name)
        return name, name
    return value, value


def _number(value: Any, parts: list[float]) -> tuple[Hashable, Hashable]:
    kind = type(value).__name__
    if isinstance(value, complex):
        parts += [value.real, value.imag]
        return (kind, repr(value)), kind
    try:
        parts.append(float(value))
    except (OverflowError, ValueError):
        parts.append(np.inf if value > 0 else -np.inf)
    # NaN is not itself, and the two zeros are equal: told apart by how they are written.
    key = repr(value) if isinstance(value, float) and (value != value or value == 0) else value
    return (kind, key), kind


def _inside(value: Any) -> Sequence[Any] | None:
    """The parts of a compound value in a fixed order; None for what has none."""
    if isinstance(value, np.ndarray):
        return [*value.shape, *value.ravel().tolist()] if value.ndim > 1 else list(value.tolist())
    if isinstance(value, Mapping):
        return [part for key in sorted(value, key=repr) for part in (key, value[key])]
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    if isinstance(value, list | tuple):
        return value
    if dataclasses.is_dataclass(value):
        return [getattr(value, f.name) for f in dataclasses.fields(value)]
    if isinstance(value, BaseException):
        return [*value.args]
    for name in _READERS:
        reader = getattr(value, name, None)
        if callable(reader):
            found = _told(reader)
            if found is not None:
                return found
    return _attributes(value) if _by_identity(value) else None


def _by_identity(value: Any) -> bool:
    """Whether an object has no hash of what it holds, and so is another each time."""
    kept: object = type(value).__hash__
    return kept is None or kept is object.__hash__


def _told(reader: Callable[[], Any]) -> Sequence[Any] | None:
    try:
        found = reader()
    except Exception:  # it wants arguments, or has nothing to tell
        return None
    return _inside(found) if isinstance(found, Mapping | list) else None


def _attributes(value: Any) -> Sequence[Any] | None:
    """What an object that compares by identity holds, or None where nothing is to be seen."""
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                held[name] = getattr(value, name)
    return [held[name] for name in sorted(held)] if held else None
