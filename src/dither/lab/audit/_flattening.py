"""One outcome of any type as its numbers, and as hashable keys with and without them."""

from __future__ import annotations

import datetime as dt
import enum
import numbers
import re
import struct
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from dither.lab._calls import attempted
from dither.lab.audit._contents import OpaqueContents, held, inside, sealed, written

__all__ = ["Parts", "Raised", "flatten", "raised", "read"]

_DEEPEST = 8
_OBJECTS = 2_000
"""Objects of an outcome that are looked into; those beyond are named as not seen."""

_PACKED = 64
"""Bytes that are read one by one, and as packed numbers."""

_PACKINGS = ("<f8", ">f8", "<i8", ">i8", "<f4", "<i4")
_NUMERAL = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_NUMERALS, _READ = 256, 16_384
"""Numbers that are read in a text, and characters."""
_CAUSES = 4
_CALLS = 16
"""Of a trace, the innermost calls that are looked at."""

_BUILT_IN = (str, bytes, bytearray, list, tuple, set, frozenset, dict, numbers.Number)
_PLAIN = frozenset(
    {str, bytes, bytearray, list, tuple, set, frozenset, dict, int, float, bool, complex}
    | {Decimal, Fraction}
)
"""Types that hold nothing besides their value; what extends them may."""


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
    above : list of int
        The identities of the objects that are being looked into.
    objects : int
        How many were.
    """

    numbers: list[float] = field(default_factory=list)
    orders: list[Hashable] = field(default_factory=list)
    blind: set[str] = field(default_factory=set)
    above: list[int] = field(default_factory=list)
    objects: int = 0


@dataclass(frozen=True, slots=True)
class Raised:
    """The outcome of a call that failed: the exception's type, and what it holds.

    Only the type is shown. Anyone who sees the exception may see its text, its trace, its
    attributes and its cause, so they are looked at like any other output.
    """

    kind: str
    text: str = field(default="", repr=False)
    held: tuple[Any, ...] = field(default=(), repr=False)
    trace: tuple[tuple[str, int], ...] = field(default=(), repr=False)


def raised(error: BaseException, depth: int = 0) -> Raised:
    """An exception as an outcome; addresses in memory are left out of its text."""
    text = written(error, str)
    found: list[Any] = [a for a in _own(error, "args") if not (type(a) is str and a in text)]
    attributes = {k: v for k, v in held(error).items() if not isinstance(v, BaseException)}
    if attributes:
        found.append(attributes)
    cause = _own(error, "__cause__") or _own(error, "__context__")
    if cause is not None and depth < _CAUSES:
        found.append(raised(cause, depth + 1))
    return Raised(type(error).__name__, text, tuple(found), _trace(error))


def _own(error: BaseException, name: str) -> Any:
    """What an exception has by that name, whatever its type says."""
    return vars(BaseException)[name].__get__(error)


def _trace(error: BaseException) -> tuple[tuple[str, int], ...]:
    """Where it was raised, by names and lines."""
    calls, step = [], _own(error, "__traceback__")
    while step is not None:
        calls.append((step.tb_frame.f_code.co_name, step.tb_lineno))
        step = step.tb_next
    return tuple(calls[-_CALLS:])


def read(value: Any) -> tuple[Hashable, Hashable, Parts]:
    """Both keys of an outcome and its parts; of one that cannot be read at all, its type."""
    parts = Parts()
    found, error = attempted(flatten, value, parts)
    if error is None:
        return (*found, parts)
    name = type(value).__name__
    return name, name, Parts(blind={name})


def flatten(value: Any, parts: Parts, depth: int = 0) -> tuple[Hashable, Hashable]:
    """Put the numbers of a value into ``parts``; return it, and it without numbers, hashable."""
    if value is None or value is Ellipsis or value is NotImplemented:
        return (type(value).__name__,) * 2
    if isinstance(value, np.generic):
        return _scalar(value, parts, depth)
    if isinstance(value, BaseException):
        value = raised(value)
    if isinstance(value, Raised):
        key, frame = _text(value.text, parts), ("raises", value.kind, value.trace)
        pairs = [flatten(v, parts, depth + 1) for v in value.held] if depth < _DEEPEST else []
        return (frame, key[0], *(a for a, _ in pairs)), (frame, key[1], *(b for _, b in pairs))
    if isinstance(value, OpaqueContents):
        parts.blind.add(value.kind)
        return value.kind, value.kind
    if isinstance(value, enum.Enum):
        named = ("enum", type(value).__name__, value.name)
        known = flatten(value.value, parts, depth + 1)
        return (named, known[0]), (named, known[1])
    kind = type(value)
    if kind in _PLAIN:
        return _plain(value, parts, depth)
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return _with_attributes(_moment(value, parts), value, parts, depth)
    if isinstance(value, memoryview):
        found = _bytes(value.tobytes(), parts)
        form = (kind.__name__, value.format, value.shape, value.readonly)
        return (form, found[0]), (form, found[1])
    if isinstance(value, _BUILT_IN):
        return _with_attributes(_plain(value, parts, depth), value, parts, depth)
    return _object(value, parts, depth)


def _plain(value: Any, parts: Parts, depth: int) -> tuple[Hashable, Hashable]:
    """A value of a built-in type, or of one that extends it."""
    name = type(value).__name__
    if isinstance(value, str):
        return _text(str.__str__(value), parts)
    if isinstance(value, bytes | bytearray):
        kept = bytes.__add__(value, b"") if isinstance(value, bytes) else bytearray.copy(value)
        found = _bytes(bytes(kept), parts)
        return (name, found[0]), (name, found[1])
    if isinstance(value, numbers.Number):
        return _number(value, parts)
    if isinstance(value, dict):
        items, error = attempted(_items, value, parts)
        if error is not None:  # of its own making
            items = _items(dict(dict.items(value)), parts)
        return _compound(value, name, items, parts, depth)
    inner = _members(value)
    if isinstance(value, set | frozenset):
        inner = _ordered(inner, parts)
    return _compound(value, name, inner, parts, depth)


def _members(value: Any) -> list[Any]:
    """What a list, tuple or set holds; and what it gives, where it does so in a way of its own."""
    kind = next(k for k in (list, tuple, set, frozenset) if isinstance(value, k))
    inner = list(kind.__iter__(value))
    if type(value).__iter__ is not kind.__iter__:
        given, _ = attempted(lambda: list(islice(value, _OBJECTS)))
        inner += given or []
    return inner


def _with_attributes(
    found: tuple[Hashable, Hashable], value: Any, parts: Parts, depth: int
) -> tuple[Hashable, Hashable]:
    """A value of a type that extends a built-in one, with the attributes it may have."""
    name = type(value).__name__
    own = held(value)
    if not own:
        return (name, found[0]), (name, found[1])
    key, frame = _compound(own, name, [own[n] for n in sorted(own)], parts, depth)
    return (found[0], tuple(sorted(own)), key), (found[1], tuple(sorted(own)), frame)


def _object(value: Any, parts: Parts, depth: int) -> tuple[Hashable, Hashable]:
    """Any other object: what it holds, or its own hash."""
    name = type(value).__name__
    if id(value) in parts.above:
        return (name, "itself"), (name, "itself")
    parts.objects += 1
    if depth < _DEEPEST and parts.objects <= _OBJECTS:
        items, _ = attempted(_items, value, parts) if isinstance(value, Mapping) else (None, None)
        found = inside(value) if items is None else (None, items)
        if found is not None:
            return _compound(value, (name, found[0]), found[1], parts, depth)
    known, error = attempted(hash, value)
    if error is not None or sealed(value):
        # By identity every outcome would be its own, and say nothing.
        parts.blind.add(name)
        return name, name
    leaf = (name, known, written(value))
    return leaf, leaf


def _compound(
    value: Any, form: Hashable, inner: Sequence[Any], parts: Parts, depth: int
) -> tuple[Hashable, Hashable]:
    if depth >= _DEEPEST or id(value) in parts.above:
        if inner:
            parts.blind.add(type(value).__name__)
        return form, form
    parts.above.append(id(value))
    pairs = [flatten(v, parts, depth + 1) for v in inner]
    parts.above.pop()
    return (form, *(a for a, _ in pairs)), (form, *(b for _, b in pairs))


def _text(value: str, parts: Parts) -> tuple[Hashable, Hashable]:
    """A text by its length, itself, and the numbers that are written in it."""
    parts.numbers.append(float(len(value)))
    found = _NUMERAL.findall(value[:_READ])[:_NUMERALS]
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
    if isinstance(value, dt.datetime):
        span, error = attempted(lambda: value.replace(tzinfo=None) - dt.datetime(1970, 1, 1))
        parts.numbers.append(span / dt.timedelta(microseconds=1) if error is None else np.nan)
    elif isinstance(value, dt.date):
        parts.numbers.append(float(value.toordinal()))
    elif isinstance(value, dt.time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        parts.numbers.append(seconds * 1e6 + value.microsecond)
    else:
        parts.numbers.append(value / dt.timedelta(microseconds=1))
    zone = getattr(value, "tzinfo", None)
    # A zone may have the name of another.
    offset = attempted(value.utcoffset)[0] if zone is not None else None
    form = (type(zone).__name__, written(zone, str), offset, getattr(value, "fold", 0))
    kind = (type(value).__name__, *form, getattr(value, "unit", None))
    return (kind, written(value)), kind


def _scalar(value: np.generic, parts: Parts, depth: int) -> tuple[Hashable, Hashable]:
    """A scalar of NumPy, of which a long double is not one of Python."""
    kind = str(value.dtype)
    item: Any = value.item()
    if isinstance(item, np.generic):
        pieces: list[Any] = [item.real, item.imag] if item.dtype.kind == "c" else [item]
        for part in pieces:
            number = float(part)
            rest = float(part - type(part)(number)) if np.isfinite(part) else 0.0
            parts.numbers += [number, rest]
        return (kind, repr(item)), kind
    both = flatten(item, parts, depth)
    return (kind, both[0]), (kind, both[1])


def _number(value: Any, parts: Parts) -> tuple[Hashable, Hashable]:
    kind = type(value).__name__
    if isinstance(value, complex):
        sides: list[Any] = [complex.real, complex.imag]  # whatever a type that extends it says
        pair = [_number(side.__get__(value), parts) for side in sides]
        return (kind, pair[0][0], pair[1][0]), (kind, pair[0][1], pair[1][1])
    if isinstance(value, float):
        number = float.__float__(value)
        parts.numbers.append(number)
        # NaN is not itself and has 2^52 forms; the two zeros are equal.
        bits = struct.pack("<d", number)
        return (kind, bits), (kind, bits) if number != number else kind
    number, error = attempted(float, value)
    if error is not None:
        over, _ = attempted(lambda: value > 0)
        number = np.nan if over is None else np.inf if over else -np.inf
    parts.numbers.append(number)
    if isinstance(value, Decimal):
        # 1.0 and 1.00 are equal.
        exact = Decimal.__str__(value)
        return (kind, exact), (kind, Decimal.as_tuple(value).exponent)
    if isinstance(value, int):
        # Equality and hash of a type that extends it are its own.
        return (kind, int.__add__(value, 0)), kind
    return (kind, value if type(value) is Fraction else written(value)), kind


def _items(value: Mapping[Any, Any], parts: Parts) -> list[Any]:
    return [part for key in _ordered(list(value), parts) for part in (key, value[key])]


def _ordered(given: list[Any], parts: Parts) -> list[Any]:
    """Keys in a fixed order; in which one they were given is an outcome too."""
    plain = all(type(key) is str for key in given)  # which are quick to compare
    order: Any = given.__getitem__ if plain else lambda i: written(given[i])
    places = sorted(range(len(given)), key=order)
    parts.orders.append(tuple(places))
    return [given[i] for i in places]
