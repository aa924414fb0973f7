"""Columns as people hand them in: arrays, series, tensors, masks and lists, read in one way.

A value of the data never decides whether something is refused, and never stands in a message: what
cannot be read as asked is missing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

__all__ = [
    "array_of",
    "check_numeric",
    "doubles",
    "is_masked",
    "is_text",
    "number",
    "numbers",
    "numeric",
]

WHOLE = (int, np.integer)
TRUTH = (bool, np.bool_)


def is_masked(values: Any) -> TypeGuard[np.ma.MaskedArray[Any, Any]]:
    """Whether an array has a mask; what lies under it is nobody's value."""
    return isinstance(values, np.ma.MaskedArray)


def array_of(values: Any) -> npt.NDArray[Any]:
    """An array of what holds values.

    Parameters
    ----------
    values : array, tensor, iterable, or series of Polars, pandas or Arrow

    Returns
    -------
    array
        What is masked is None in it. Of an iterable whole numbers, truth values or doubles where
        all of its items are such; else the items themselves, so that numbers beside words stay
        numbers.

    Raises
    ------
    TypeError
        It holds no values: a text, or nothing that can be iterated over.

    Examples
    --------
    >>> array_of([1, "two", None])
    array([1, 'two', None], dtype=object)
    >>> array_of(np.ma.masked_array([1, 2], mask=[False, True]))
    array([1, None], dtype=object)
    >>> array_of([1, np.int64(2)])
    array([1, 2])
    """
    if is_masked(values):
        # Operations on masked arrays skip what lies under the mask, so that it would be neither
        # moved to bounds nor cut.
        found = np.array(values.data, object)
        found[np.ma.getmaskarray(values)] = None
        return found
    if isinstance(values, np.ndarray):
        return values
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        # A tensor that is part of a graph, or lies on an accelerator, has no array otherwise.
        return np.asarray(values.detach().cpu())
    if hasattr(values, "__array__"):
        found = np.asarray(values)
        # NumPy's texts of one width end before the last NUL: of a column of texts two would be one.
        return _objects(list(values)) if found.dtype.kind in "US" and found.ndim == 1 else found
    if hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError("not a column")
    return _of_items(list(values))


def is_text(values: Any) -> bool:
    """Whether a column holds texts by its declared type, whatever its values are.

    A list, or a column of objects, declares nothing.

    Examples
    --------
    >>> is_text(np.array(["a"])), is_text(["a"]), is_text(np.array([1.5]))
    (True, False, False)
    """
    if hasattr(values, "columns"):
        return False  # a frame, whose attributes may be its columns
    declared = getattr(values, "dtype", None)
    if isinstance(declared, np.dtype):
        return declared.kind in "UST"
    held = getattr(getattr(declared, "categories", None), "dtype", None)
    if isinstance(held, np.dtype):
        # Those of pandas may be numbers; it says "object" where it had texts to tell.
        return held.kind in "USTO"
    name = str(getattr(values, "type", "") if declared is None else declared).lower()
    return name.removeprefix("dictionary<values=").startswith(_TEXTS)


_TEXTS = ("str", "large_string", "utf8", "categorical", "enum", "category")


def numbers(name: str, values: Any) -> npt.NDArray[np.float64]:
    """What people hand in as numbers, as doubles of the same shape, what is missing as NaN.

    Only what a column declares is checked. Of a list, or a column of objects, every item that is no
    number is missing, whatever the others are: else one row would decide whether this is refused.

    Parameters
    ----------
    name : str
        The argument's, for messages.
    values : array, tensor, iterable, or series of Polars, pandas or Arrow

    Raises
    ------
    ArgumentError
        It holds no values, or by its type no numbers.

    Examples
    --------
    >>> numbers("x", [1, None, 2.5, float("inf"), "n/a"])
    array([1. , nan, 2.5, inf, nan])
    >>> numbers("x", np.array([b"1"]))
    Traceback (most recent call last):
    ...
    dither.errors.ArgumentError: x must hold numbers, and is a column of texts: read them first
    """
    return doubles(numeric(name, values))


def check_numeric(name: str, values: Any) -> None:
    """Refuse a column, or a frame with one, that holds texts by its declared type."""
    frame = hasattr(values, "columns") and hasattr(values, "to_numpy")
    columns = [values[n] for n in values.columns] if frame else [values]
    if any(map(is_text, columns)):
        raise ArgumentError(f"{name} must hold numbers, and is a column of texts: read them first")


def numeric(name: str, values: Any) -> npt.NDArray[Any]:
    """As `numbers`, before it is known of each item of a list whether it is one."""
    check_numeric(name, values)
    try:
        if isinstance(values, Mapping | bytearray | memoryview):
            raise TypeError("not a column")
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = array_of(values)
    except TypeError:
        raise ArgumentError(
            f"{name} must be a sequence of numbers, such as a list or an array"
        ) from None
    kind = values.dtype if is_masked(values) else found.dtype
    if kind.kind not in "biufO":
        # A type's name may have the width of the longest value in it.
        raise ArgumentError(f"{name} must hold numbers; its type is {kind.type.__name__}")
    return found


def _of_items(items: list[Any]) -> npt.NDArray[Any]:
    kinds = {type(v) for v in items}
    if kinds and all(issubclass(kind, TRUTH) for kind in kinds):
        return np.array(items, dtype=np.bool_)
    if kinds and all(issubclass(kind, WHOLE) and kind is not bool for kind in kinds):
        plain = items if kinds == {int} else [int(v) for v in items]
        if all(-(2**63) <= v < 2**63 for v in plain):
            return np.array(plain, dtype=np.int64)
    if kinds and all(issubclass(kind, float) for kind in kinds):
        return np.array(items, dtype=np.float64)
    return _objects(items)


def _objects(items: list[Any]) -> npt.NDArray[Any]:
    """An array of the items themselves; NumPy's numbers and texts as those of Python."""
    kinds = np.str_ | np.bool_ | np.integer
    plain = (v.item() if isinstance(v, kinds) else v for v in items)
    return np.fromiter(plain, dtype=object, count=len(items))


def doubles(array: npt.NDArray[Any], *, texts: bool = False) -> npt.NDArray[np.float64]:
    """An array as doubles of the same shape, NaN for whatever is not a number.

    Parameters
    ----------
    array : array
    texts : bool
        Whether a text that writes a number is one.

    Examples
    --------
    >>> doubles(np.array([1, None, 10**400, "2"], dtype=object))
    array([ 1., nan, inf, nan])
    """
    with np.errstate(all="ignore"), warnings.catch_warnings():
        # What NumPy says of one value on the way would tell of it.
        warnings.simplefilter("ignore")
        if array.dtype.kind in "fiub":
            return array.astype(np.float64)
        flat = [number(v, texts=texts) for v in array.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(array.shape)


def number(value: Any, *, texts: bool = False) -> float:
    """A value as a double, NaN where it is not a number, infinite where no double is as large."""
    if value is None or (isinstance(value, str | bytes) and not texts):
        return math.nan
    try:
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    except Exception:
        # Whatever a type of somebody's own raises must tell nothing of a row.
        return math.nan
