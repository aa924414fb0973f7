"""One outcome of any type as its numbers, and as hashable keys with and without them."""

from __future__ import annotations

import dataclasses
import datetime as dt
import numbers
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["Parts", "Raised", "flatten", "masked", "raised"]

_DEEPEST = 8
_READERS = ("to_pydict", "to_dict", "to_list", "tolist")
"""How frames and series of common libraries tell what they hold."""

_FORMS = ("dtype", "dtypes", "schema")
"""How they tell of which types it is."""

_PACKED = 64
"""Bytes that are read one by one, and as packed numbers."""

_PACKINGS = ("<f8", ">f8", "<i8", ">i8", "<f4", "<i4")
_NUMERAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NUMERALS = 16
_CAUSES = 4


@dataclass(slots=True)
class Parts:
    """What is found in an outcome besides its keys.

    Attributes
    ----------
    numbers : list of float
    orders : list
        In which order mappings, columns and sets give what they hold.
    blind : set of str
        The types of what cannot be looked into.
    """

    numbers: list[float] = field(default_factory=list)
    orders: list[Hashable] = field(default_factory=list)
    blind: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a call that failed: the exception's type, and what it holds.

    Only the type is shown. Anyone who sees the exception may see its text, attributes and cause, so
    they are looked at like any other output.
    """

    kind: str
    text: str = field(default="", repr=False)
    held: tuple[Any, ...] = field(default=(), repr=False)


def raised(error: BaseException, depth: int = 0) -> Raised:
    """An exception as an outcome; addresses in memory are left out of its text."""
    try:
        text = masked(str(error))
    except Exception:  # an exception that cannot be written has no text to see
        text = ""
    held: list[Any] = [a for a in error.args if not isinstance(a, str)]
    attributes = {k: v for k, v in _held(error).items() if not isinstance(v, BaseException)}
    if attributes:
        held.append(attributes)
    cause = error.__cause__ or error.__context__
    if cause is not None and depth < _CAUSES:
        held.append(raised(cause, depth + 1))
    return Raised(type(error).__name__, text, tuple(held))


def masked(text: str) -> str:
    """A text without addresses in memory, which differ from call to call."""
    return re.sub(r"\b0x[0-9a-fA-F]+", "0x", text)


def flatten(value: Any, parts: Parts, depth: int = 0) -> tuple[Hashable, Hashable]:
    """Put the numbers of a value into ``parts``; return it, and it without numbers, hashable."""
    if isinstance(value, np.generic):
        kind = value.dtype.str
        both = flatten(value.item(), parts, depth)
        return (kind, both[0]), (kind, both[1])
    if isinstance(value, str):
        return _text(value, parts)
    if isinstance(value, bytes | bytearray):
        return _bytes(bytes(value), parts)
    if isinstance(value, BaseException):
        value = raised(value)
    if isinstance(value, Raised):
        key, frame = _text(value.text, parts), ("raises", value.kind)
        held = [flatten(v, parts, depth + 1) for v in value.held] if depth < _DEEPEST else []
        return (frame, key[0], *(a for a, _ in held)), (frame, *(b for _, b in held))
    if value is None or isinstance(value, type):
        return value, value
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return _moment(value, parts)
    if isinstance(value, numbers.Number):
        return _number(value, parts)
    name: Hashable = type(value).__name__
    if depth < _DEEPEST:
        inner = _inside(value, parts)
        if inner is not None:
            pairs = [flatten(v, parts, depth + 1) for v in inner]
            name = (name, _form(value))
            return (name, *(a for a, _ in pairs)), (name, *(b for _, b in pairs))
    try:
        hash(value)
        opaque = _by_identity(value)
    except TypeError:
        opaque = True
    if opaque:
        # By identity every outcome would be its own, and say nothing.
        parts.blind.add(str(name))
        return name, name
    return value, value


def _text(value: str, parts: Parts) -> tuple[Hashable, Hashable]:
    """A text by its length, itself, and the numbers that are written in it."""
    parts.numbers.append(float(len(value)))
    found = _NUMERAL.findall(value[:4096])[:_NUMERALS]
    parts.numbers += [float(numeral) for numeral in found]
    return value, ("text", _NUMERAL.sub("0", value) if found else value)


def _bytes(value: bytes, parts: Parts) -> tuple[Hashable, Hashable]:
    """Bytes by their length, one by one, and as the numbers that may be packed in them."""
    parts.numbers.append(float(len(value)))
    if len(value) <= _PACKED:
        parts.numbers += [float(byte) for byte in value]
        for packing in _PACKINGS:
            if value and len(value) % np.dtype(packing).itemsize == 0:
                with np.errstate(all="ignore"):  # what is not a number makes an odd one
                    packed = np.frombuffer(value, packing).astype(np.float64)
                parts.numbers += packed.tolist()
    return value, ("bytes", len(value))


def _moment(value: Any, parts: Parts) -> tuple[Hashable, Hashable]:
    """A date, a time or a span as a number of days or microseconds."""
    zone = str(getattr(value, "tzinfo", None))
    if isinstance(value, dt.datetime):
        span = value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)
        parts.numbers.append(span / dt.timedelta(microseconds=1))
    elif isinstance(value, dt.date):
        parts.numbers.append(float(value.toordinal()))
    elif isinstance(value, dt.time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        parts.numbers.append(seconds * 1e6 + value.microsecond)
    else:
        parts.numbers.append(value / dt.timedelta(microseconds=1))
    kind = (type(value).__name__, zone)
    return (kind, repr(value)), kind


def _number(value: Any, parts: Parts) -> tuple[Hashable, Hashable]:
    kind = type(value).__name__
    if isinstance(value, complex):
        parts.numbers += [value.real, value.imag]
        return (kind, repr(value)), kind
    try:
        parts.numbers.append(float(value))
    except (OverflowError, ValueError):
        parts.numbers.append(np.inf if value > 0 else -np.inf)
    # NaN is not itself, and the two zeros are equal: told apart by how they are written.
    key = repr(value) if isinstance(value, float) and (value != value or value == 0) else value
    return (kind, key), kind


def _inside(value: Any, parts: Parts) -> Sequence[Any] | None:
    """The parts of a compound value in a fixed order; None for what has none."""
    if isinstance(value, np.ndarray):
        return [*value.shape, *value.ravel().tolist()] if value.ndim > 1 else list(value.tolist())
    if isinstance(value, Mapping):
        given = list(value)
        return [part for key in _ordered(given, parts) for part in (key, value[key])]
    if isinstance(value, set | frozenset):
        return _ordered(list(value), parts)
    if isinstance(value, list | tuple):
        return value
    if dataclasses.is_dataclass(value):
        return [getattr(value, f.name) for f in dataclasses.fields(value)]
    for name in _READERS:
        reader = getattr(value, name, None)
        if callable(reader):
            found = _told(reader, parts)
            if found is not None:
                return found
    return _attributes(value) if _by_identity(value) else None


def _ordered(given: list[Any], parts: Parts) -> list[Any]:
    """Keys in a fixed order; in which one they were given is an outcome too."""
    places = sorted(range(len(given)), key=lambda i: _written(given[i]))
    parts.orders.append(tuple(places))
    return [given[i] for i in places]


def _written(value: Any) -> str:
    try:
        return masked(repr(value))
    except Exception:  # what cannot be written stays where its type is
        return type(value).__name__


def _form(value: Any) -> Hashable:
    """The types of what an array or frame holds, where it tells them."""
    for name in _FORMS:
        form = getattr(value, name, None)
        if form is not None and not callable(form):
            return str(form.to_dict() if hasattr(form, "to_dict") else form)
    return None


def _by_identity(value: Any) -> bool:
    """Whether an object has no hash of what it holds, and so is another each time."""
    kept: object = type(value).__hash__
    return kept is None or kept is object.__hash__


def _told(reader: Callable[[], Any], parts: Parts) -> Sequence[Any] | None:
    try:
        found = reader()
    except Exception:  # it wants arguments, or has nothing to tell
        return None
    return _inside(found, parts) if isinstance(found, Mapping | list) else None


def _attributes(value: Any) -> Sequence[Any] | None:
    """What an object that compares by identity holds, or None where nothing is to be seen."""
    held = _held(value)
    return [held[name] for name in sorted(held)] if held else None


def _held(value: Any) -> dict[str, Any]:
    """The attributes of an object, in its dictionary or in slots."""
    held = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                held[name] = getattr(value, name)
    return held
