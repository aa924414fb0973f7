"""The answers of a release as arrays, row by row and level by level."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dither.errors import ArgumentError, nearest
from dither.plots.levels import Levels
from dither.plots.panels import Floats, Series

__all__ = ["all_rows", "columns_of", "largest", "over_levels"]


def columns_of(frame: Any, keys: Sequence[str], outputs: Sequence[str]) -> dict[str, list[Any]]:
    """The columns that a picture needs, as lists.

    Raises
    ------
    ArgumentError
        Where one is missing.
    """
    wanted = [*keys, *(n + end for n in outputs for end in ("", "_lower", "_upper"))]
    there = list(frame) if isinstance(frame, Mapping) else list(frame.columns)
    for name in wanted:
        if name not in there:
            raise ArgumentError(f"frame has no column {name!r}" + nearest(name, there))
    return {name: list(frame[name]) for name in wanted}


def all_rows(columns: Mapping[str, list[Any]], name: str) -> Series:
    """The answers of one output in the order of the rows.

    A noisy count may lie below 0, where its interval does not: it is drawn where its interval
    allows, and told apart.
    """
    value, lower, upper = (_floats(columns[name + end]) for end in ("", "_lower", "_upper"))
    shown = np.fmin(np.fmax(value, lower), upper)
    shown = np.where(np.isnan(value), np.nan, shown)
    return Series(name, shown, lower, upper, (shown != value) & ~np.isnan(value))


def over_levels(
    every: Series, label: str, main: Levels, rows: Sequence[Any], kept: Sequence[bool]
) -> Series:
    """The answers of the kept rows, placed by the level of the main key; NaN elsewhere."""
    place = {value: i for i, value in enumerate(main.values)}
    value, lower, upper = (np.full(len(main), np.nan) for _ in range(3))
    moved = np.zeros(len(main), dtype=np.bool_)
    for row, level in enumerate(rows):
        if kept[row] and level in place:
            at = place[level]
            value[at], lower[at], upper[at] = every.value[row], every.lower[row], every.upper[row]
            moved[at] = every.moved[row]
    return Series(label, value, lower, upper, moved)


def largest(main: Levels, rows: Sequence[Any], values: Floats, most: int) -> list[int]:
    """Where the levels with the largest values stand, largest first."""
    best = dict.fromkeys(main.values, -math.inf)
    for level, value in zip(rows, values, strict=True):
        if not math.isnan(value):
            best[level] = max(best[level], abs(float(value)))
    return sorted(range(len(main)), key=lambda i: -best[main.values[i]])[:most]


def _floats(column: Sequence[Any]) -> Floats:
    return np.array([math.nan if x is None else float(x) for x in column], dtype=np.float64)
