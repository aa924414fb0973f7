"""What a model and its loss can reach, watched while they run: nothing of it may change.

A model that is trained is published with all that it holds. What its ``forward`` writes down of the
rows it saw (a buffer, a frozen parameter, a list in an attribute) would leave without noise; and
what it carries from one row to the next would let a row move the gradients of others, too. So all
that can be reached from model and loss is remembered before they run, compared afterwards bit by
bit, and put back where it differs.

*What is reached.* Attributes, lists, dictionaries, sets, arrays and tensors, at any depth;
closures, defaults, hooks and bound methods; of functions and classes that are not from an installed
package also the global names that they read, and class attributes. What only C code knows of is not
seen, nor what a function reaches by looking it up while it runs.

*How.* Containers are compared by the identity of what is in them. Tensors are compared with a copy,
not by their version, which ``tensor.data`` and views of numpy pass by; those of more than `_LARGE`
numbers with a keyed checksum, and are set to 0 where it differs. The walk is done once, and again
where somebody changed the model between two steps.
"""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
import types
from collections import deque
from collections.abc import Iterator
from operator import is_
from typing import Any

import numpy as np
import torch
from torch import nn

from dither.numeric import secure_words

__all__ = ["Watched", "is_generator"]

_LARGE = 1 << 24
_CHUNK = 1 << 16
_PLAIN = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None), type(...), range, slice),
        *(torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format),
    }
)
_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_PASSED = (types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.MappingProxyType)
_ITERATORS = (
    *(type(iter(one)) for one in ([], (), range(0), {})),
    type(reversed([])),
    types.GeneratorType,
)


class Watched:
    """All that can be reached from some objects.

    Parameters
    ----------
    roots : dict of object
        By the names that are said of them.

    Attributes
    ----------
    generators : list
        Sources of chance that were reached: what they hold is not compared.
    """

    def __init__(self, **roots: Any) -> None:
        self._roots = roots
        self._holders: list[_Holder] = []
        self._tensors: list[_Kept] = []
        self._derived: list[tuple[Any, str]] = []
        self.generators: list[Any] = []
        self._walked = False

    def same(self) -> bool:
        """Whether nothing but the numbers in tensors is other than when it was remembered."""
        return self._walked and all(holder.same() for holder in self._holders)

    def remember(self, *, same: bool = False) -> None:
        """Take all as it is now for what it ought to be; ``same`` where that was seen just now."""
        if not (same or self.same()):
            self._walk()
        with torch.no_grad():
            for kept in self._tensors:
                kept.take()

    def changed(self, *, numbers: bool = False) -> list[str]:
        """Names of what is other than it was remembered; only of tensors, if ``numbers``."""
        self._put_derived_back()
        holders = [] if numbers else self._holders
        found = [holder.name for holder in holders if not holder.same()]
        with torch.no_grad():
            return found + [kept.name for kept in self._tensors if not kept.same()]

    def restore(self, *, numbers: bool = False) -> None:
        """Put all back as it was remembered, or only tensors."""
        for holder in [] if numbers else self._holders:
            if not holder.same():
                holder.restore()
        with torch.no_grad():
            for kept in self._tensors:
                if not kept.same():
                    kept.restore()

    def _put_derived_back(self) -> None:
        """Attributes that torch computes from parameters before each call are no state."""
        for holder in self._holders:
            for owner, name in self._derived:
                if holder.held is owner and name in holder.copy:
                    owner[name] = holder.copy[name]

    def _walk(self) -> None:
        self._holders, self._tensors, self.generators = [], [], []
        self._derived = []
        # What is made on the way is kept, so that no two things have one identity.
        alive: list[Any] = []
        met: set[int] = set()
        waiting = list(self._roots.items())
        while waiting:
            name, one = waiting.pop()
            if type(one) in _PLAIN or isinstance(one, _PASSED) or id(one) in met:
                continue
            met.add(id(one))
            alive.append(one)
            waiting.extend(self._met(name, one))
        self._walked = True

    def _met(self, name: str, one: Any) -> Iterator[tuple[str, Any]]:
        """Note one thing; what can be reached from it at once, by name."""
        if isinstance(one, torch.Tensor):
            self._tensors.append(_Kept(name, one))
            yield name, getattr(one, "_backward_hooks", None)
            if getattr(one, "__dict__", None):
                yield name, one.__dict__
        elif isinstance(one, np.ndarray):
            self._holders.append(_Array(name, one))
            if one.dtype == object:
                yield from ((name, item) for item in one.flat)
        elif is_generator(one):
            self.generators.append(one)
        elif isinstance(one, dict):
            self._holders.append(_Dictionary(name, one))
            for key, value in list(one.items()):
                yield (f"{name}.{key}" if isinstance(key, str) else name), value
                yield name, key
        elif isinstance(one, list | deque | bytearray):
            self._holders.append(_List(name, one))
            yield from ((name, item) for item in list(one) if type(item) not in _PLAIN)
        elif isinstance(one, set):
            self._holders.append(_Set(name, one))
            yield from ((name, item) for item in list(one))
        elif isinstance(one, tuple | frozenset):
            yield from ((name, item) for item in one)
        elif isinstance(one, _ITERATORS) or _counts(one):
            self._holders.append(_Place(name, one))
        elif isinstance(one, types.FunctionType):
            yield from self._function(name, one)
        elif isinstance(one, types.MethodType):
            yield from ((name, one.__self__), (name, one.__func__))
        elif isinstance(one, functools.partial):
            yield from ((name, part) for part in (one.func, one.args, one.keywords))
        elif isinstance(one, staticmethod | classmethod):
            yield name, one.__func__
        elif isinstance(one, property):
            yield from ((name, part) for part in (one.fget, one.fset))
        elif isinstance(one, types.CellType):
            self._holders.append(_Cell(name, one))
            yield name, _Cell.content(one)
        elif isinstance(one, type):
            if _own(one.__module__):
                held = {k: v for k, v in vars(one).items() if not k.startswith("__")}
                self._holders.append(_Class(name, one, held))
                yield from ((f"{name}.{k}", v) for k, v in held.items())
                yield from ((name, base) for base in one.__bases__)
        else:
            yield from self._object(name, one)

    def _object(self, name: str, one: Any) -> Iterator[tuple[str, Any]]:
        kind = type(one)
        if not isinstance(one, nn.Module) and _passed(kind.__module__):
            return
        if isinstance(one, nn.Module):
            # Those of compiled modules are in no dictionary.
            yield name, [*one.parameters(), *one.buffers()]
            for hook in one._forward_pre_hooks.values():
                if type(hook).__module__.startswith("torch.nn.utils."):
                    made = getattr(hook, "name", None) or getattr(hook, "_tensor_name", None)
                    if isinstance(made, str):
                        self._derived.append((one.__dict__, made))
        try:
            held = vars(one)
        except TypeError:
            held = {}
        yield name, held
        slots = [s for k in kind.__mro__ for s in _names(vars(k).get("__slots__", ()))]
        if slots:
            self._holders.append(_Slots(name, one, slots))
            yield from ((f"{name}.{s}", getattr(one, s)) for s in slots if hasattr(one, s))
        yield name, kind

    def _function(self, name: str, one: types.FunctionType) -> Iterator[tuple[str, Any]]:
        yield name, one.__closure__
        yield name, one.__defaults__
        yield name, one.__kwdefaults__
        if one.__dict__:
            yield name, one.__dict__
        if _own(one.__module__):
            known = one.__globals__
            read = {n: known[n] for n in _read(one.__code__) if n in known}
            self._holders.append(_Globals(name, known, read))
            yield from read.items()


class _Holder:
    """One container, and what was in it."""

    def __init__(self, name: str, held: Any, copy: Any) -> None:
        self.name, self.held, self.copy = name, held, copy

    def same(self) -> bool:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError


class _Dictionary(_Holder):
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


class _List(_Holder):
    def __init__(self, name: str, held: Any) -> None:
        super().__init__(name, held, list(held))

    def same(self) -> bool:
        now, then = self.held, self.copy
        return len(now) == len(then) and (all(map(is_, now, then)) or all(map(_alike, now, then)))

    def restore(self) -> None:
        self.held.clear()
        self.held.extend(self.copy)


class _Set(_Holder):
    def __init__(self, name: str, held: Any) -> None:
        super().__init__(name, held, set(held))

    def same(self) -> bool:
        return bool(self.held == self.copy)

    def restore(self) -> None:
        self.held.clear()
        self.held.update(self.copy)


class _Array(_Holder):
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


class _Place(_Holder):
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
            return frame.f_lasti, [(k, v) for k, v in local if type(v) in _PLAIN]
        if _counts(held):
            return repr(held)
        return held.__length_hint__()

    def same(self) -> bool:
        return bool(self._now(self.held) == self.copy)

    def restore(self) -> None:
        """Nothing: what it told by its place is how often it was asked."""


class _Cell(_Holder):
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


class _Attributes(_Holder):
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


class _Slots(_Attributes):
    def __init__(self, name: str, held: Any, slots: list[str]) -> None:
        super().__init__(name, held, {s: getattr(held, s, _EMPTY) for s in slots})


class _Class(_Holder):
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


class _Globals(_Holder):
    def __init__(self, name: str, held: dict[str, Any], copy: dict[str, Any]) -> None:
        super().__init__(name, held, copy)

    def same(self) -> bool:
        now = self.held
        return all(_alike(now.get(k, _EMPTY), v) for k, v in self.copy.items())

    def restore(self) -> None:
        self.held.update(self.copy)


class _Kept:
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


_EMPTY: Any = object()


def is_generator(one: Any) -> bool:
    """Whether it is a source of chance: torch's, numpy's, or of Python's own module."""
    kinds = type(one).__mro__
    return isinstance(one, torch.Generator) or any(
        kind.__module__ == "random" or kind.__module__.startswith("numpy.random") for kind in kinds
    )


def _alike(one: Any, other: Any) -> bool:
    """Whether it is the same object, an equal number or text, or a tensor of the same numbers."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if type(one) in _PLAIN:
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


def _counts(one: Any) -> bool:
    return type(one).__module__ == "itertools" and type(one).__name__ == "count"


def _names(slots: Any) -> list[str]:
    named = [slots] if isinstance(slots, str) else list(slots)
    return [n for n in named if n not in ("__dict__", "__weakref__")]


@functools.lru_cache(maxsize=4096)
def _read(code: types.CodeType) -> frozenset[str]:
    """The global names that a function reads or writes, and functions in it."""
    found = {
        str(one.argval)
        for one in dis.get_instructions(code)
        if one.opname in ("LOAD_GLOBAL", "STORE_GLOBAL", "LOAD_NAME", "DELETE_GLOBAL")
    }
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            found |= _read(inner)
    return frozenset(found)


_LIBRARIES = tuple(
    path
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_paths().get(name))
)
_LOOKED_INTO = ("torch", "numpy", "collections", "functools", "types")


@functools.cache
def _own(module: str | None) -> bool:
    """Whether a module is somebody's own, and not of an installed package."""
    top = (module or "").partition(".")[0]
    if top in ("dither", "builtins", *_LOOKED_INTO, *sys.stdlib_module_names):
        return top == "__main__"
    file = getattr(sys.modules.get(module or ""), "__file__", None)
    if file is None:
        return True
    return "site-packages" not in file and not file.startswith(_LIBRARIES)


@functools.cache
def _passed(module: str) -> bool:
    """Whether objects of a module's classes are passed over: the machine's, not a model's."""
    top = module.partition(".")[0]
    return top == "dither" or (
        (top in sys.stdlib_module_names and top not in _LOOKED_INTO) and (top != "__main__")
    )
