"""Containers and tensors, as they are at one time: compared with later, and put back.

A container is compared by the identity of what is in it; numbers and texts also by what they are,
and tensors that were made anew by their numbers. Tensors that stay are compared with a copy, bit by
bit, not by their version, which ``tensor.data`` and views of numpy pass by. Those of more than
`_LARGE` numbers have a keyed checksum instead, and are set to 0 where it differs.
"""

from __future__ import annotations

import functools
import types
from operator import is_
from typing import Any

import numpy as np
import torch

from dither.numeric import secure_words

__all__ = [
    "PLAIN",
    "Holder",
    "InArray",
    "InCell",
    "InClass",
    "InDictionary",
    "InGlobals",
    "InSequence",
    "InSet",
    "InSlots",
    "IteratorState",
    "TensorState",
    "counts",
]

_LARGE = 1 << 24
_CHUNK = 1 << 16
PLAIN = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None), type(...), range, slice),
        *(torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format),
    }
)
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_EMPTY: Any = object()


class Holder:
    """One container, and what was in it."""

    def __init__(self, name: str, held: Any, copy: Any) -> None:
        self.name, self.held, self.copy = name, held, copy

    def same(self) -> bool:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def said(self) -> str:
        """A name of what is not the same."""
        return self.name


class InDictionary(Holder):
    """What a dictionary holds, in its order."""

    def __init__(self, name: str, held: dict[Any, Any]) -> None:
        super().__init__(name, held, dict(held))

    def same(self) -> bool:
        now, then = self.held, self.copy
        if not then:
            return not now
        return (
            len(now) == len(then)
            and all(map(is_, now, then))
            and (
                all(map(is_, now.values(), then.values()))
                or all(map(_alike, now.values(), then.values()))
            )
        )

    def restore(self) -> None:
        self.held.clear()
        self.held.update(self.copy)

    def said(self) -> str:
        keys = [*self.held, *self.copy]
        other = (k for k in keys if not _alike(self.held.get(k, _EMPTY), self.copy.get(k, _EMPTY)))
        key = next(other, None)
        return f"{self.name}.{key}" if isinstance(key, str) else self.name


class InSequence(Holder):
    """What a list or a queue holds."""

    def __init__(self, name: str, held: Any) -> None:
        super().__init__(name, held, list(held))

    def same(self) -> bool:
        now, then = self.held, self.copy
        return len(now) == len(then) and (all(map(is_, now, then)) or all(map(_alike, now, then)))

    def restore(self) -> None:
        self.held.clear()
        self.held.extend(self.copy)


class InSet(Holder):
    """What a set holds."""

    def __init__(self, name: str, held: Any) -> None:
        super().__init__(name, held, set(held))

    def same(self) -> bool:
        return bool(self.held == self.copy)

    def restore(self) -> None:
        self.held.clear()
        self.held.update(self.copy)


class InArray(Holder):
    """The numbers of an array of numpy."""

    def __init__(self, name: str, held: Any) -> None:
        super().__init__(name, held, held.copy())

    def same(self) -> bool:
        now, then = self.held, self.copy
        if now.shape != then.shape or now.dtype != then.dtype:
            return False
        if now.dtype == object:
            return all(map(is_, now.flat, then.flat))
        return bool(now.tobytes() == then.tobytes())

    def restore(self) -> None:
        self.held.setflags(write=True)
        self.held[...] = self.copy


class IteratorState(Holder):
    """Where an iterator is: it cannot be put back, and only what has a place is compared."""

    def __init__(self, name: str, held: Any) -> None:
        super().__init__(name, held, self._now(held))

    @staticmethod
    def _now(held: Any) -> Any:
        if isinstance(held, types.GeneratorType):
            frame = held.gi_frame
            if frame is None:
                return None
            local = frame.f_locals.items()
            return frame.f_lasti, [(k, v) for k, v in local if type(v) in PLAIN]
        if counts(held):
            return repr(held)
        return held.__length_hint__()

    def same(self) -> bool:
        return bool(self._now(self.held) == self.copy)

    def restore(self) -> None:
        """Nothing: what it told by its place is how often it was asked."""


class InCell(Holder):
    """What a closure holds."""

    def __init__(self, name: str, held: Any) -> None:
        super().__init__(name, held, self.content(held))

    @staticmethod
    def content(held: Any) -> Any:
        try:
            return held.cell_contents
        except ValueError:
            return _EMPTY

    def same(self) -> bool:
        return _alike(self.content(self.held), self.copy)

    def restore(self) -> None:
        if self.copy is _EMPTY:
            del self.held.cell_contents
        else:
            self.held.cell_contents = self.copy


class _InAttributes(Holder):
    """Some attributes of an object."""

    def same(self) -> bool:
        return all(_alike(getattr(self.held, k, _EMPTY), v) for k, v in self.copy.items())

    def restore(self) -> None:
        for name, value in self.copy.items():
            if value is _EMPTY:
                if hasattr(self.held, name):
                    object.__delattr__(self.held, name)
            else:
                object.__setattr__(self.held, name, value)


class InSlots(_InAttributes):
    """The attributes of an object without a dictionary."""

    def __init__(self, name: str, held: Any, slots: list[str]) -> None:
        super().__init__(name, held, {s: getattr(held, s, _EMPTY) for s in slots})


class InClass(Holder):
    """The attributes of a class."""

    def same(self) -> bool:
        now = {k: v for k, v in vars(self.held).items() if not k.startswith("__")}
        return now.keys() == self.copy.keys() and all(
            _alike(v, self.copy[k]) for k, v in now.items()
        )

    def restore(self) -> None:
        for name in [k for k in vars(self.held) if not k.startswith("__")]:
            if name not in self.copy:
                delattr(self.held, name)
        for name, value in self.copy.items():
            if vars(self.held).get(name, _EMPTY) is not value:
                setattr(self.held, name, value)


class InGlobals(Holder):
    """The global names that a function reads."""

    def __init__(self, name: str, held: dict[str, Any], copy: dict[str, Any]) -> None:
        super().__init__(name, held, copy)

    def same(self) -> bool:
        now = self.held
        return all(_alike(now.get(k, _EMPTY), v) for k, v in self.copy.items())

    def restore(self) -> None:
        self.held.update(self.copy)


class TensorState:
    """One tensor, and its numbers."""

    __slots__ = ("alias", "copy", "held", "name", "seal")

    def __init__(self, name: str, held: torch.Tensor) -> None:
        self.name, self.held = name, held
        self.alias: torch.Tensor = held
        self.copy: torch.Tensor | None = None
        self.seal = 0

    def take(self) -> None:
        now = self.held.detach()
        self.alias = now
        if now.is_meta:
            return
        if now.numel() > _LARGE:
            self.copy, self.seal = None, _seal(now)
        elif self.copy is None or self.copy.shape != now.shape or self.copy.dtype != now.dtype:
            self.copy = now.clone()
        else:
            self.copy.copy_(now)

    def same(self) -> bool:
        now, then = self.held, self.alias
        if now.is_meta:
            return True
        try:
            if now.shape != then.shape or now.dtype != then.dtype:
                return False
            if now.layout is torch.strided and now.data_ptr() != then.data_ptr():
                return False
            now = now.detach()
            return _seal(now) == self.seal if self.copy is None else _equal(now, self.copy)
        except RuntimeError:
            return False

    def restore(self) -> None:
        if self.copy is None:
            self.alias.zero_()
            self.held.data = self.alias
            return
        try:
            self.alias.copy_(self.copy)
            self.held.data = self.alias
        except RuntimeError:
            # Its storage was taken from it.
            self.held.data = self.copy.clone()


def _alike(one: Any, other: Any) -> bool:
    """Whether it is the same object, an equal number or text, or a tensor of the same numbers."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) in PLAIN:
        return bool(one == other) or (one != one and other != other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, types.MethodType):
        return one.__self__ is other.__self__ and one.__func__ is other.__func__
    if isinstance(one, torch.Tensor):
        try:
            return (
                one.shape == other.shape
                and one.dtype == other.dtype
                and _equal(one.detach(), other.detach())
            )
        except RuntimeError:
            # One of a row that was run beside others: it is out of use, and never alike.
            return False
    return False


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Bit by bit, so that a number that is none equals itself."""
    if one.layout is not torch.strided or one.is_quantized:
        return bool(torch.equal(one, other))
    return bool(torch.equal(_bits(one), _bits(other)))


def _bits(one: torch.Tensor) -> torch.Tensor:
    if one.is_complex():
        one = torch.view_as_real(one)
    return one.view(_INTEGERS[one.element_size()])


@functools.cache
def _weights() -> torch.Tensor:
    return torch.from_numpy(secure_words().words(_CHUNK).view(np.int64).copy() | 1)


def _seal(one: torch.Tensor) -> int:
    """A checksum of 64 bits under a key of this process."""
    flat = _bits(one).reshape(-1)
    weights = _weights().to(flat.device)
    found = 0
    for start in range(0, len(flat), 16 * _CHUNK):
        part = flat[start : start + 16 * _CHUNK].to(torch.int64)
        whole = len(part) // _CHUNK * _CHUNK
        rows = (part[:whole].view(-1, _CHUNK) * weights).sum(1)
        rest = (part[whole:] * weights[: len(part) - whole]).sum()
        for value in [*rows.tolist(), int(rest)]:
            found = (found * 0x9E3779B97F4A7C15 + value) % (1 << 64)
    return found


def counts(one: Any) -> bool:
    """Whether it is a counter of itertools, whose place its text says."""
    return type(one).__module__ == "itertools" and type(one).__name__ == "count"
