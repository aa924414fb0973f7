"""Hierarchies made by rule: widths of intervals, calendar units, prefixes, nothing but ``*``."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import polars as pl

from dither._checks import choice, exact
from dither.errors import ArgumentError
from dither.lab._frames import texts
from dither.lab.anonymize._hierarchy import ANY, LevelRule

__all__ = ["dates", "intervals", "of_numbers_or_dates", "prefixes", "suppression"]


@dataclass(frozen=True, slots=True)
class _Intervals:
    widths: tuple[Fraction, ...]
    start: Fraction

    def levels_of(self, name: str, values: pl.Series) -> pl.DataFrame:
        if not values.dtype.is_numeric() and values.dtype != pl.Null:
            raise ArgumentError(f"hierarchies[{name!r}]: intervals are for columns of numbers")
        levels: list[list[str | None]] = [[] for _ in self.widths]
        for value in values.to_list():
            number = _finite(value)
            for width, level in zip(self.widths, levels, strict=True):
                if number is None:
                    level.append(None if value is None else str(value))
                else:
                    low = self.start + (number - self.start) // width * width
                    level.append(f"[{_end_text(low)}, {_end_text(low + width)})")
        return _as_table(values, levels)


def intervals(
    widths: Sequence[int | float | Fraction], *, start: float | Fraction = 0
) -> LevelRule:
    """Numbers in half-open intervals of growing width, then ``*``.

    Parameters
    ----------
    widths : sequence of number
        In the column's unit, above 0; each a whole multiple of the one before.
    start : number
        Where one interval begins.

    Returns
    -------
    LevelRule
        For ``hierarchies=``. NULL, NaN and infinities stay as they are up to ``*``.

    Raises
    ------
    ArgumentError
        For a width that is not above 0, or not a multiple of the one before.

    Examples
    --------
    >>> intervals([5, 10, 20]).levels_of("age", pl.Series([34, 61])).row(0)
    ('34', '[30, 35)', '[30, 40)', '[20, 40)', '*')
    """
    steps = tuple(exact("widths", width) for width in widths)
    if not steps or any(step <= 0 for step in steps):
        raise ArgumentError("widths must be numbers above 0, at least one")
    for low, high in itertools.pairwise(steps):
        if (high / low).denominator != 1 or high == low:
            raise ArgumentError("widths must each be a whole multiple of the one before")
    return _Intervals(steps, exact("start", start))


_UNITS: dict[str, Callable[[dt.date], str]] = {
    "day": lambda d: f"{d.year:04}-{d.month:02}-{d.day:02}",
    "month": lambda d: f"{d.year:04}-{d.month:02}",
    "quarter": lambda d: f"{d.year:04}-Q{(d.month + 2) // 3}",
    "year": lambda d: f"{d.year:04}",
    "decade": lambda d: f"{d.year // 10 * 10:04}s",
}


@dataclass(frozen=True, slots=True)
class _Dates:
    units: tuple[str, ...]

    def levels_of(self, name: str, values: pl.Series) -> pl.DataFrame:
        if values.dtype != pl.Date and values.dtype != pl.Datetime and values.dtype != pl.Null:
            raise ArgumentError(
                f"hierarchies[{name!r}]: dates() is for columns of dates; parse the texts first"
            )
        # Years beyond Python's calendar stay as the day that Polars writes.
        days = values.cast(pl.Date) if values.dtype != pl.Null else values
        years = days.dt.year().to_list() if values.dtype != pl.Null else [None] * len(values)
        levels: list[list[str | None]] = [[] for _ in self.units]
        said = texts(days).to_list()
        for i, year in enumerate(years):
            day = days[i] if year is not None and 1 <= year <= 9999 else None
            for unit, level in zip(self.units, levels, strict=True):
                level.append(said[i] if day is None else _UNITS[unit](day))
        return _as_table(values, levels)


def dates(units: Sequence[str] = ("month", "quarter", "year", "decade")) -> LevelRule:
    """Dates by calendar units of growing length, then ``*``.

    Parameters
    ----------
    units : sequence of str
        Of ``"day"``, ``"month"``, ``"quarter"``, ``"year"``, ``"decade"``, fine to coarse.

    Returns
    -------
    LevelRule
        For `hierarchies` of `generalize`.

    Raises
    ------
    ArgumentError
        For an unknown unit or another order.

    Examples
    --------
    >>> dates(["month", "year"]).levels_of("born", pl.Series([dt.date(1984, 5, 17)])).row(0)
    ('1984-05-17', '1984-05', '1984', '*')
    """
    order = [list(_UNITS).index(choice("units", unit, _UNITS)) for unit in units]
    if not order or order != sorted(set(order)):
        raise ArgumentError(f"units must go from fine to coarse, of {', '.join(_UNITS)}")
    return _Dates(tuple(units))


@dataclass(frozen=True, slots=True)
class _Prefixes:
    keep: tuple[int, ...]

    def levels_of(self, name: str, values: pl.Series) -> pl.DataFrame:
        levels: list[list[str | None]] = [[] for _ in self.keep]
        for text in texts(values).to_list():
            for keep, level in zip(self.keep, levels, strict=True):
                short = text is None or len(text) <= keep
                level.append(text if short else f"{text[:keep]}{ANY}")
        return _as_table(values, levels)


def prefixes(keep: Sequence[int]) -> LevelRule:
    """The first characters of codes such as postcodes, ever fewer, then ``*``.

    Parameters
    ----------
    keep : sequence of int
        Characters that each level keeps, falling, at least 1. A text that is not longer stays.

    Returns
    -------
    LevelRule
        For `hierarchies` of `generalize`.

    Raises
    ------
    ArgumentError
        Where the numbers do not fall.

    Examples
    --------
    >>> prefixes([3, 1]).levels_of("zip", pl.Series(["02139"])).row(0)
    ('02139', '021*', '0*', '*')
    """
    found = tuple(keep)
    whole = all(isinstance(n, int) and n >= 1 for n in found)
    if not found or not whole or list(found) != sorted(set(found), reverse=True):
        raise ArgumentError("keep must be whole numbers of at least 1 that fall, such as [3, 2, 1]")
    return _Prefixes(found)


@dataclass(frozen=True, slots=True)
class _Suppression:
    def levels_of(self, name: str, values: pl.Series) -> pl.DataFrame:
        return _as_table(values, [])


def suppression() -> LevelRule:
    """Either the value or ``*``, for a column that has no natural hierarchy.

    Returns
    -------
    LevelRule
        For `hierarchies` of `generalize`.

    Examples
    --------
    >>> suppression().levels_of("race", pl.Series(["a"])).row(0)
    ('a', '*')
    """
    return _Suppression()


def of_numbers_or_dates(source: object) -> bool:
    """Whether a hierarchy is made of what values mean, not of how they are written."""
    return isinstance(source, _Intervals | _Dates)


def _finite(value: object) -> Fraction | None:
    if isinstance(value, int):
        return Fraction(value)
    if isinstance(value, Decimal) and value.is_finite():
        return Fraction(value)
    if isinstance(value, float) and math.isfinite(value):
        return exact("value", value)
    return None


def _end_text(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else repr(float(number))


def _as_table(values: pl.Series, levels: Sequence[Sequence[str | None]]) -> pl.DataFrame:
    """Values and levels, with texts made distinct where two values are written alike."""
    columns = [pl.Series("0", _distinct(texts(values)), dtype=pl.String)]
    columns += [
        pl.Series(str(i), level, dtype=pl.String) for i, level in enumerate(levels, start=1)
    ]
    top = pl.Series(str(len(columns)), [ANY] * len(values), dtype=pl.String)
    return pl.DataFrame([*columns, top])


def _distinct(written: pl.Series) -> pl.Series:
    if written.n_unique() == len(written):
        return written
    return pl.Series(f"{i}: {text}" for i, text in enumerate(written.to_list()))
