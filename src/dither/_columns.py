"""Columns as people hand them in: arrays, series, tensors, masks and lists, read in one way.

A value of the data never decides whether something is refused, and never stands in a message: what
cannot be read as asked is missing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

__all__ = ["array_of", "doubles", "is_masked", "is_text", "number"]

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
    declared = getattr(values, "dtype", None)
    if isinstance(declared, np.dtype):
        return declared.kind in "UST"
    name = str(getattr(values, "type", "") if declared is None else declared).lower()
    return name.startswith(("str", "large_string", "utf8", "categorical", "enum", "category"))


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
