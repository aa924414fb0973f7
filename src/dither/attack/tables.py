"""Tables that an attacker holds: frames in, rows to classes, and which label covers which value.

A release may hold labels where a public table holds values: ``[20, 30)``, ``<30``, ``130**``,
``{north, south}``, ``*``. Nothing here comes from the room that makes such labels; a release of
`dither.anonymize` is known by its attributes ``frame``, ``quasi`` and ``sensitive``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dither.errors import ArgumentError, nearest

__all__ = ["codes", "columns", "coverage", "grouped", "opened"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_INTERVAL = re.compile(r"^([\[(])\s*([^,\[\]()]+?)\s*,\s*([^,\[\]()]+?)\s*([\])])$")
_ORDER = re.compile(r"^(<=|>=|<|>|≤|≥)\s*(\S+)$")


def opened(table: object, argument: str) -> pl.DataFrame:
    """A table as a Polars frame: Polars, pandas, Arrow, or a release that has a ``frame``.

    Raises
    ------
    ArgumentError
        Where it is none of these, or has no row.
    """
    held: Any = getattr(table, "frame", table)
    pandas, arrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    if isinstance(held, pl.DataFrame):
        found = held
    elif pandas is not None and isinstance(held, pandas.DataFrame):
        try:
            found = pl.from_pandas(held, nan_to_null=False)
        except Exception as error:  # pyarrow's messages quote cells
            raise ArgumentError(
                f"{argument} has a column of mixed types: give every column one type"
            ) from error
    elif arrow is not None and isinstance(held, arrow.Table):
        found = pl.DataFrame(held)
    else:
        raise ArgumentError(
            f"{argument} must be a Polars or pandas DataFrame, a pyarrow Table, or a release with "
            f"a frame, not {type(table).__name__}"
        )
    if not found.height or not found.width:
        raise ArgumentError(f"{argument} is empty: it needs at least one row and one column")
    return found


def columns(
    asked: str | Sequence[str] | None, argument: str, frame: pl.DataFrame, release: object = None
) -> list[str]:
    """The columns that an argument names, or those that the release says, checked.

    Raises
    ------
    ArgumentError
        For an unknown or repeated name, or none.
    """
    if asked is None:
        asked = getattr(release, "sensitive" if argument == "sensitive" else "quasi", None)
        if asked is None:
            raise ArgumentError(f"{argument} must name columns: the table does not say them itself")
    named = [asked] if isinstance(asked, str) else list(asked)
    for name in named:
        if not isinstance(name, str) or name not in frame.columns:
            raise ArgumentError(
                f"{argument} has an unknown column {name!r}{nearest(str(name), frame.columns)}"
            )
    if not named or len(set(named)) < len(named):
        raise ArgumentError(f"{argument} must name at least one column, each once")
    return named


def codes(column: pl.Series) -> tuple[Ints, list[Any]]:
    """A column as integers, and the value of each; all NULLs are one value, so are all NaNs.

    Examples
    --------
    >>> codes(pl.Series(["b", None, "b"]))
    (array([1, 0, 1]), [None, 'b'])
    """
    if column.dtype.is_nested() or column.dtype == pl.Object:
        column = pl.Series(column.name, [None if v is None else str(v) for v in column.to_list()])
    elif column.dtype == pl.Categorical or isinstance(column.dtype, pl.Enum):
        column = column.cast(pl.String)
    values = column.unique().sort(nulls_last=False)
    number = pl.DataFrame({"value": values}).with_row_index("code")
    # A join sees NaN as equal to NaN, as grouping does.
    found = pl.DataFrame({"value": column}).join(
        number, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return found["code"].to_numpy().astype(np.int64), values.to_list()


def grouped(parts: Iterable[Ints]) -> Ints:
    """The class of each row: equal where all parts are, numbered from 0.

    Examples
    --------
    >>> grouped([np.array([5, 5, 7]), np.array([1, 2, 1])])
    array([0, 1, 2])
    """
    found: Ints | None = None
    for part in parts:
        size = int(part.max(initial=0)) + 1
        mixed = part if found is None else found * size + part
        found = np.unique(mixed, return_inverse=True)[1].astype(np.int64)
    if found is None:
        raise ArgumentError("a class needs at least one column")
    return found


def coverage(
    labels: Sequence[Any], values: Sequence[Any], covers: Mapping[Any, Iterable[Any]] | None = None
) -> Mask:
    """Which label covers which value.

    Parameters
    ----------
    labels, values : sequences
        Distinct values of a release's column, and of the public one.
    covers : mapping, optional
        The values under a label, where its text does not say them.

    Returns
    -------
    array of bool, shape (labels, values)

    Examples
    --------
    >>> coverage(["[20, 30)", "<30", "3*", "*"], [20, 30]).astype(int).tolist()
    [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> coverage(["little"], [1, 2, 3], {"little": [1, 2]}).tolist()
    [[True, True, False]]
    """
    words = [_text(v) for v in values]
    numbers = np.array([_number(v) for v in values], dtype=np.float64)
    found = np.zeros((len(labels), len(values)), dtype=bool)
    for i, label in enumerate(labels):
        if covers is not None and label in covers:
            under = {_text(v) for v in covers[label]}
            found[i] = [w in under for w in words]
        else:
            found[i] = _covered(label, words, numbers)
    return found


def _covered(label: Any, words: list[str | None], numbers: npt.NDArray[np.float64]) -> Mask:
    text = _text(label)
    same = np.array([w == text for w in words], dtype=bool)
    if text is None or not isinstance(label, str):
        return same
    if text == "*":
        return np.ones(len(words), dtype=bool)
    within = _INTERVAL.match(text)
    if within:
        low, high = _number(within[2]), _number(within[3])
        after = numbers >= low if within[1] == "[" else numbers > low
        before = numbers <= high if within[4] == "]" else numbers < high
        return np.asarray(same | (after & before))
    beyond = _ORDER.match(text)
    if beyond and not np.isnan(edge := _number(beyond[2])):
        compare = {"<": np.less, ">": np.greater, "≤": np.less_equal, "≥": np.greater_equal}
        sign = beyond[1].replace("<=", "≤").replace(">=", "≥")
        return np.asarray(same | compare[sign](numbers, edge))
    if text.startswith("{") and text.endswith("}"):
        members = {_text(part.strip()) for part in text[1:-1].split(",")}
        return np.asarray(same | np.array([w in members for w in words], dtype=bool))
    if text.endswith("*"):
        start = text.rstrip("*")
        begin = np.array([w is not None and w.startswith(start) for w in words], dtype=bool)
        return np.asarray(same | begin)
    return same


def _text(value: Any) -> str | None:
    """A value as text in which 9, 9.0 and "9.0" are one."""
    if value is None:
        return None
    number = _number(value)
    return str(value) if np.isnan(number) else f"{number:.12g}"


def _number(value: Any) -> float:
    if isinstance(value, bool):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError):
        return float("nan")
