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

*How.* Bit by bit, as `_places` says. The walk is done once, and again where somebody changed the
model between two steps.
"""

from __future__ import annotations

import dis
import functools
import sys
import sysconfig
import types
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from dither.learn.deep.state._places import (
    PLAIN,
    Holder,
    InArray,
    InCell,
    InClass,
    InDictionary,
    InGlobals,
    InSequence,
    InSet,
    InSlots,
    IteratorState,
    TensorState,
    counts,
)

__all__ = ["WatchedObjects", "is_generator", "quiet"]

_PASSED = (types.ModuleType, types.CodeType, types.BuiltinFunctionType, types.MappingProxyType)
_ITERATORS: tuple[type, ...] = (
    type(iter([])),
    type(iter(())),
    type(iter(range(0))),
    type(iter({})),
    type(reversed([])),
    types.GeneratorType,
)


class WatchedObjects:
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
        self._holders: list[Holder] = []
        self._tensors: list[TensorState] = []
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
        found = [holder.said() for holder in holders if not holder.same()]
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
            if type(one) in PLAIN or isinstance(one, _PASSED) or id(one) in met:
                continue
            met.add(id(one))
            alive.append(one)
            waiting.extend(self._met(name, one))
        self._walked = True

    def _met(self, name: str, one: Any) -> Iterator[tuple[str, Any]]:
        """Note one thing; what can be reached from it at once, by name."""
        if isinstance(one, torch.Tensor):
            self._tensors.append(TensorState(name, one))
            yield name, getattr(one, "_backward_hooks", None)
            if getattr(one, "__dict__", None):
                yield name, one.__dict__
        elif isinstance(one, np.ndarray):
            self._holders.append(InArray(name, one))
            if one.dtype == object:
                yield from ((name, item) for item in one.flat)
        elif is_generator(one):
            self.generators.append(one)
        elif isinstance(one, dict):
            self._holders.append(InDictionary(name, one))
            for key, value in list(one.items()):
                yield (f"{name}.{key}" if isinstance(key, str) else name), value
                yield name, key
        elif isinstance(one, list | deque | bytearray):
            self._holders.append(InSequence(name, one))
            yield from ((name, item) for item in list(one) if type(item) not in PLAIN)
        elif isinstance(one, set):
            self._holders.append(InSet(name, one))
            yield from ((name, item) for item in list(one))
        elif isinstance(one, tuple | frozenset):
            yield from ((name, item) for item in one)
        elif isinstance(one, _ITERATORS) or counts(one):
            self._holders.append(IteratorState(name, one))
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
            self._holders.append(InCell(name, one))
            yield name, InCell.content(one)
        elif isinstance(one, type):
            if _own(one.__module__):
                held = {k: v for k, v in vars(one).items() if not k.startswith("__")}
                self._holders.append(InClass(name, one, held))
                yield from ((f"{name}.{k}", v) for k, v in held.items())
                yield from ((name, base) for base in one.__bases__)
        else:
            yield from self._object(name, one)

    def _object(self, name: str, one: Any) -> Iterator[tuple[str, Any]]:
        kind = type(one)
        if not isinstance(one, nn.Module) and (
            _passed(kind.__module__) or _compiling(kind.__module__)
        ):
            return
        if isinstance(one, nn.Module):
            # Those of compiled modules are in no dictionary.
            yield name, [*one.parameters(), *one.buffers()]
            for hook in one._forward_pre_hooks.values():
                if type(hook).__module__.startswith("torch.nn.utils."):
                    made = getattr(hook, "name", None) or getattr(hook, "_tensor_name", None)
                    if isinstance(made, str):
                        self._derived.append((one.__dict__, made))
            if isinstance(one, nn.RNNBase):
                # Lists of its parameters, which it makes anew where they were exchanged.
                own = ("_flat_weights", "_flat_weight_refs")
                self._derived += [(one.__dict__, made) for made in own]
        try:
            held = vars(one)
        except TypeError:
            held = {}
        yield name, held
        slots = [s for k in kind.__mro__ for s in _names(vars(k).get("__slots__", ()))]
        if slots:
            self._holders.append(InSlots(name, one, slots))
            yield from ((f"{name}.{s}", getattr(one, s)) for s in slots if hasattr(one, s))
        yield name, kind

    def _function(self, name: str, one: types.FunctionType) -> Iterator[tuple[str, Any]]:
        if _compiling(one.__module__):
            return
        yield name, one.__closure__
        yield name, one.__defaults__
        yield name, one.__kwdefaults__
        if one.__dict__:
            yield name, one.__dict__
        if _own(one.__module__):
            known = one.__globals__
            read = {n: known[n] for n in _read(one.__code__) if n in known}
            self._holders.append(InGlobals(name, known, read))
            yield from read.items()


@contextmanager
def quiet() -> Iterator[None]:
    """No warning of a model: some row may lead to it, and end a run where warnings raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def is_generator(one: Any) -> bool:
    """Whether it is a source of chance: torch's, numpy's, or of Python's own module."""
    kinds = type(one).__mro__
    return isinstance(one, torch.Generator) or any(
        kind.__module__ == "random" or kind.__module__.startswith("numpy.random") for kind in kinds
    )


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


def _compiling(module: str | None) -> bool:
    """Whether it is of torch's compiler, which notes what it compiled, and not what it saw."""
    return (module or "").startswith(("torch._dynamo", "torch._inductor"))


@functools.cache
def _passed(module: str) -> bool:
    """Whether objects of a module's classes are passed over: the machine's, not a model's."""
    top = module.partition(".")[0]
    return top == "dither" or (
        (top in sys.stdlib_module_names and top not in _LOOKED_INTO) and (top != "__main__")
    )
