"""What an object holds: its values, and what else it carries, such as names, types and metadata.

An object is given as its form, which is hashable and counts as it is, and its parts, which are
looked into in their turn.
"""

from __future__ import annotations

import copyreg
import dataclasses
import re
import sys
import types
from collections.abc import Callable, Hashable, ItemsView, KeysView, Mapping, ValuesView
from functools import lru_cache
from typing import Any

import numpy as np

from dither._columns import is_masked
from dither.lab._calls import attempted

__all__ = ["OpaqueContents", "held", "inside", "sealed", "written"]

Found = tuple[Hashable, list[Any]]


@dataclasses.dataclass(frozen=True, slots=True)
class OpaqueContents:
    """Stands for what an object of this type holds besides, which cannot be looked into."""

    kind: str


_READERS = ("to_pydict", "to_dict", "to_list", "tolist")
"""Methods of frames and series of common libraries that give what they hold."""

_FORMS = ("dtype", "dtypes", "schema", "typecode")
"""Attributes of theirs that give its types."""

_HEAP = 1 << 9
"""The flag of classes that a program makes."""


def masked(text: str) -> str:
    """A text without addresses in memory, which differ from call to call."""
    return re.sub(r"\b0x[0-9a-fA-F]+", "0x", text)


def written(value: Any, write: Callable[[Any], str] = repr) -> str:
    """How a value is written; its type's name where it cannot be."""
    text, error = attempted(write, value)
    return masked(text) if error is None else type(value).__name__


def held(value: Any) -> dict[str, Any]:
    """The attributes of an object: of its dictionary, its slots, and members of its C types."""
    own, _ = attempted(getattr, value, "__dict__", None)
    found = dict(own) if isinstance(own, dict) else {}
    for name, member in _members(type(value)):  # type: ignore[arg-type]
        one, error = attempted(member.__get__, value)
        if error is None:
            found[name] = one
    return found


@lru_cache(1024)
def _members(kind: type) -> tuple[tuple[str, Any], ...]:
    """Slots and members of a class, those that it inherits too."""
    return tuple(
        (name, member)
        for base in kind.__mro__
        for name, member in vars(base).items()
        if isinstance(member, types.MemberDescriptorType) and not name.startswith("__")
    )


def sealed(value: Any) -> bool:
    """Whether an object has no hash of what it holds, and so is another each time."""
    kept: object = type(value).__hash__
    return kept is None or kept is object.__hash__


def inside(value: Any) -> Found | None:
    """The form of an object and its parts in a fixed order; None where nothing is to be seen."""
    reader = _LIBRARIES.get(_library(type(value)))  # type: ignore[arg-type]
    if reader is not None:
        found, _ = attempted(reader, value)
        if found is not None:
            return found  # type: ignore[no-any-return]
    if isinstance(value, type):
        return _class(value)
    if isinstance(value, types.ModuleType):
        return value.__name__, []
    if isinstance(value, types.CodeType):
        return value, []
    if isinstance(value, types.FunctionType):
        return _function(value)
    if isinstance(value, types.MethodType):
        return None, [value.__self__, value.__func__]
    if isinstance(value, KeysView | ValuesView | ItemsView):
        return None, list(value)
    return _any_object(value)


def _class(kind: type) -> Found:
    """A class by its name; with its attributes, where it cannot be found by that name."""
    name = (kind.__module__, kind.__qualname__)
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    if found is kind or not kind.__flags__ & _HEAP:
        return name, []
    own = {
        name: v
        for name, v in vars(kind).items()
        if not name.startswith("__") and not isinstance(v, types.MemberDescriptorType)
    }
    return name, [own]


def _function(value: types.FunctionType) -> Found:
    cells = [attempted(getattr, cell, "cell_contents")[0] for cell in value.__closure__ or ()]
    given = [value.__defaults__, value.__kwdefaults__, value.__doc__, vars(value)]
    return (value.__name__, value.__qualname__, value.__code__), [*given, *cells]


def _any_object(value: Any) -> Found | None:
    """Any other object, by a common method or by its attributes."""
    own, kind = held(value), _class(type(value))
    fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
    names = [*(n for n in fields if n in own), *sorted(own.keys() - set(fields), key=str)]
    parts = [*(own[name] for name in names), *kind[1]]
    listed = _listed(value)
    form: Hashable = None
    if listed is not None:
        parts = [listed, *parts]
    elif not parts or _compiled(type(value)):
        found = _reduced(value)
        if found is not None:
            form, parts = found[0], [*parts, *found[1]]
        elif not parts:
            return None
        else:
            parts.append(OpaqueContents(type(value).__name__))
    values = [attempted(getattr, value, name, None)[0] for name in _FORMS]
    forms = [None if f is None or callable(f) else written(f, str) for f in values]
    return (form, *forms, *map(str, names), kind[0]), parts


def _listed(value: Any) -> Any:
    """What a method that is common to frames and series gives, or None."""
    for name in _READERS:
        reader, _ = attempted(getattr, value, name, None)
        found, _ = attempted(reader) if callable(reader) else (None, None)
        if isinstance(found, Mapping | list):
            return found
    return None


def _compiled(kind: type) -> bool:
    """Whether a class is, or extends, one that is not written in Python."""
    return any(
        not base.__flags__ & _HEAP
        or isinstance(vars(base).get("__new__"), types.BuiltinFunctionType)
        for base in kind.__mro__[:-1]
    )


def _reduced(value: Any) -> Found | None:
    """What is written of an object where it is copied or stored."""
    reduce = copyreg.dispatch_table.get(type(value))
    found, error = attempted(reduce, value) if reduce else attempted(value.__reduce_ex__, 2)
    if error is not None:
        return None
    if isinstance(found, str):
        return found, []
    make, given, *rest = found
    parts = [*given, *rest[:1]]
    for items in rest[1:3]:
        parts += attempted(list, items)[0] or [] if items is not None else []
    if all(part is None or part is type(value) or part is object for part in parts):
        return None
    return getattr(make, "__name__", ""), parts


@lru_cache(1024)
def _library(kind: type) -> str:
    """The library that a class, or one that it extends, is of."""
    for base in kind.__mro__:
        root = str(base.__module__).partition(".")[0]
        if root in _LIBRARIES:
            return root
    return ""


def _of_numpy(value: Any) -> Found | None:
    if isinstance(value, np.dtype):
        return (str(value), written(value.metadata)), []
    if not isinstance(value, np.ndarray):
        return None
    form = (str(value.dtype), written(value.dtype.metadata), value.strides, value.flags.writeable)
    listed = value.ravel().tolist()
    parts = [*value.shape, *listed] if value.ndim > 1 else listed
    if is_masked(value):
        # What is masked is still there.
        parts = [*parts, value.data, written(value.fill_value)]
    elif type(value) is not np.ndarray:
        parts = [*parts, held(value)]
    return form, parts


# Each of these libraries is loaded where it is called: the value is of it.


def _of_pandas(value: Any) -> Found | None:
    import pandas as pd
    from pandas.api.extensions import ExtensionArray, ExtensionDtype

    if isinstance(value, pd.DataFrame | pd.Series):
        own = {n: v for n, v in vars(value).items() if not n.startswith("_")}
        kind: Any = type(value)
        own |= {n: getattr(value, n, None) for n in kind._metadata if n != "_name"}
        rest = [value.index, value.attrs, own]
        form = value.flags.allows_duplicate_labels
        if isinstance(value, pd.Series):
            return form, [value.array, value.name, *rest]
        columns = [value.iloc[:, i].array for i in range(value.shape[1])]
        return form, [value.columns, *columns, *rest]
    if isinstance(value, pd.MultiIndex):
        return None, [value.tolist(), list(value.levels), list(value.names)]
    if isinstance(value, pd.Index):
        return str(getattr(value, "freq", None)), [value.array, list(value.names)]
    if isinstance(value, ExtensionArray):
        return None, [value.dtype, value.tolist()]
    if isinstance(value, pd.CategoricalDtype):
        return value.ordered, [value.categories]
    return ((str(value), repr(value)), []) if isinstance(value, ExtensionDtype) else None


def _of_polars(value: Any) -> Found | None:
    import polars as pl

    if isinstance(value, pl.DataFrame):
        return value.height, [dict(zip(value.columns, value.get_columns(), strict=True))]
    if isinstance(value, pl.Series):
        flags = tuple(sorted(value.flags.items()))
        return (str(value.dtype), flags), [value.to_list(), value.name]
    return (str(value), []) if isinstance(value, pl.DataType) else None


def _of_arrow(value: Any) -> Found | None:
    import pyarrow as pa

    if isinstance(value, pa.Table | pa.RecordBatch):
        return None, [*value.columns, value.schema]
    if isinstance(value, pa.ChunkedArray):
        words = [c.dictionary for c in value.chunks if hasattr(c, "dictionary")]
        return (str(value.type), *map(len, value.chunks)), [value.to_pylist(), *words]
    if isinstance(value, pa.Array):
        words = [value.dictionary] if hasattr(value, "dictionary") else []
        return str(value.type), [value.to_pylist(), *words]
    if isinstance(value, pa.Schema):
        return value.serialize().to_pybytes(), [value.names]
    if isinstance(value, pa.Scalar):
        return str(value.type), [value.as_py()]
    return (str(value), []) if isinstance(value, pa.DataType) else None


_LIBRARIES: dict[str, Callable[[Any], Found | None]] = {
    "numpy": _of_numpy,
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
}
