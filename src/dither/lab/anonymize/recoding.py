"""``recode``: columns at levels of your choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from dither.errors import ArgumentError
from dither.lab.anonymize.asking import hierarchies_of
from dither.lab.anonymize.frames import Coded, as_given, encode, names, read
from dither.lab.anonymize.hierarchy import Fitted, fit

__all__ = ["as_it_is", "fitted", "raised", "recode"]


def recode(frame: object, hierarchies: Mapping[str, object], levels: Mapping[str, int]) -> Any:
    """Generalise columns to levels of your choice.

    Parameters
    ----------
    frame : Polars or pandas DataFrame, or pyarrow Table
    hierarchies : mapping of str
        As in `generalize`.
    levels : mapping of str to int
        0 leaves the values as they are.

    Returns
    -------
    frame of the same kind
        To bring a population table to the levels of a release, for `measure`.

    Raises
    ------
    ArgumentError
        For an unknown column or a level that its hierarchy does not have.

    Examples
    --------
    >>> from dither.lab.anonymize import intervals
    >>> recode(pl.DataFrame({"age": [31]}), {"age": intervals([5, 10])}, {"age": 2}).item()
    '[30, 40)'
    """
    table = read(frame)
    asked = names("levels", list(levels), table)
    sources = hierarchies_of(hierarchies, table, asked, all_of=True)
    new = []
    for name in asked:
        one = encode(table[name])
        tree = fitted(name, sources[name], one)
        level = levels[name]
        if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= tree.height:
            raise ArgumentError(f"levels[{name!r}] must be from 0 to {tree.height}")
        new.append(raised(table[name], tree, level, one))
    return as_given(table.with_columns(new), frame)


def fitted(name: str, source: object, coded: Coded) -> Fitted:
    """A hierarchy over a column's values."""
    weight = np.bincount(coded.codes, minlength=coded.size)
    return fit(name, source, coded.values, weight)


def as_it_is(column: pl.Series, coded: Coded) -> pl.Series:
    """The column, with one way to write equal values: a sign would tell 0.0 from -0.0."""
    if column.dtype.is_float() or column.dtype.is_nested():
        return coded.values.gather(coded.codes).alias(column.name)
    return column


def raised(column: pl.Series, tree: Fitted, level: int, coded: Coded) -> pl.Series:
    """The column at a level."""
    if level == 0:
        return as_it_is(column, coded)
    return tree.labels[level].gather(tree.maps[level][coded.codes]).alias(column.name)
