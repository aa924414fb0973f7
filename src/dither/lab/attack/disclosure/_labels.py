"""What the labels of a release stand for: which label covers which value of a public table.

A release may hold labels where a public table holds values: ``[20, 30)``, ``[20, 30[``, ``20-29``,
``<30``, ``130**``, ``{north, "Salem, east", NULL}``, ``{38 … 46: 9}`` (from 38 to 46 in order, nine
values), ``*``; of dates also ``1984-05``, ``1984-Q2``, ``1984``, ``1980s``. No code is
shared with `dither.lab.anonymize`, which makes such labels.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Mask", "coverage"]

Mask = npt.NDArray[np.bool_]

_INTERVAL = re.compile(r"^([\[(\]])\s*([^,\[\]()]+?)\s*,\s*([^,\[\]()]+?)\s*([\])\[])$")
_SPAN = re.compile(r"^(-?\d+(?:\.\d+)?)\s*[-–]\s*(-?\d+(?:\.\d+)?)$")
_RANGE = re.compile(r"^\{(.*) … (.*): (\d+)\}$", re.DOTALL)
_CALENDAR = re.compile(r"^(\d{4})(?:-(\d{2})|-Q([1-4])|(s))?$")
_DAY = re.compile(r"^\d{4}-\d{2}-\d{2}(?:[T ]|$)")
_ORDER = re.compile(r"^(<=|>=|<|>|≤|≥)\s*(\S+)$")


def coverage(
    labels: Sequence[Any], values: Sequence[Any], covers: Mapping[Any, Iterable[Any]] | None = None
) -> Mask:
    """Which label covers which value, as an array of shape (labels, values).

    ``covers`` gives the values under a label whose text does not say them.

    Examples
    --------
    >>> coverage(["[20, 30)", "<30", "3*", "*"], [20, 30]).astype(int).tolist()
    [[1, 0], [1, 0], [0, 1], [1, 1]]
    >>> coverage(["little"], [1, 2, 3], {"little": [1, 2]}).tolist()
    [[True, True, False]]
    """
    words = [_text(v) for v in values]
    places = np.array([_place(v) for v in values], dtype=np.float64)
    days = [_day(v) for v in values]
    where: dict[str | None, list[int]] = {}
    for i, word in enumerate(words):
        where.setdefault(word, []).append(i)
    found = np.zeros((len(labels), len(values)), dtype=bool)
    for i, label in enumerate(labels):
        found[i, where.get(_text(label), [])] = True
        if isinstance(label, str):
            found[i] |= _covered(label, words, places, days)
        if covers is not None and label in covers:
            under = {_text(v) for v in covers[label]}
            found[i] = [w in under for w in words]
    return found


Words = list[str | None]


def _covered(
    text: str, words: Words, places: npt.NDArray[np.float64], days: list[dt.date | None]
) -> Mask | bool:
    """What a label covers besides the value that it is."""
    if text == "*":
        return True
    if text == "NULL":
        return _among([None], words)
    for read in (_interval, _beyond, _span, _ranged, _listed, _cut):
        read_as = read(text.strip(), words, places)
        if read_as is not None:
            return read_as
    if any(day is not None for day in days):
        read_as = _calendar(text.strip(), days)
        if read_as is not None:
            return read_as
    return False


def _among(members: Iterable[Any], words: Words) -> Mask:
    under = {_text(member) for member in members}
    return np.array([w in under for w in words], dtype=bool)


def _interval(text: str, words: Words, places: npt.NDArray[np.float64]) -> Mask | None:
    """``[20, 30)``, or with an end turned outwards, ``[20, 30[``."""
    within = _INTERVAL.match(text)
    if not within:
        return None
    low, high = _place(within[2]), _place(within[3])
    after = places >= low if within[1] == "[" else places > low
    before = places <= high if within[4] == "]" else places < high
    return np.asarray(after & before)


def _beyond(text: str, words: Words, places: npt.NDArray[np.float64]) -> Mask | None:
    """``<30``, ``>= 2020-01-01``."""
    beyond = _ORDER.match(text)
    if not beyond or np.isnan(edge := _place(beyond[2])):
        return None
    compare = {"<": np.less, ">": np.greater, "≤": np.less_equal, "≥": np.greater_equal}
    sign = beyond[1].replace("<=", "≤").replace(">=", "≥")
    return np.asarray(compare[sign](places, edge))


def _span(text: str, words: Words, places: npt.NDArray[np.float64]) -> Mask | None:
    """``10-19``, with both ends."""
    span = _SPAN.match(text)
    if not span or float(span[1]) > float(span[2]):
        return None
    # A value that is written like this, such as a postcode of nine digits, stands for itself.
    if text in words:
        return None
    return np.asarray((places >= float(span[1])) & (places <= float(span[2])))


def _ranged(text: str, words: Words, places: npt.NDArray[np.float64]) -> Mask | None:
    """``{38 … 46: 9}``: from one to the other in order; NULL comes last."""
    found = _RANGE.match(text)
    if not found:
        return None
    first, last = _members(found[1])[0], _members(found[2])[0]
    null = np.array([w is None for w in words], dtype=bool)
    ends = [_place(end) for end in (first, last)]
    # Numerals that are texts, such as codes, are in the order of texts.
    if not np.isnan(ends[0]) and (last is None or ends[0] <= ends[1]):
        within = places >= ends[0]
        within &= True if last is None else places <= ends[1]
    else:
        within = np.array(
            [w is not None and (first or "") <= w and (last is None or w <= last) for w in words],
            dtype=bool,
        )
    return np.asarray(within | null if last is None else within)


def _listed(text: str, words: Words, places: npt.NDArray[np.float64]) -> Mask | None:
    """``{a, b}``; what holds a comma is in quotes, and NULL without them is none."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    return _among(_members(text[1:-1]), words)


def _members(text: str) -> list[str | None]:
    """What is listed, as a line of CSV; a quoted NULL is the text."""
    line = text.replace('"NULL"', "\0")
    try:
        cells = next(csv.reader([line], skipinitialspace=True, strict=True), [""])
    except csv.Error:
        cells = text.split(",")
    read_as: list[str | None] = []
    for cell in cells:
        bare = cell.strip() if '"' not in text else cell
        read_as.append(None if bare == "NULL" else bare.replace("\0", "NULL"))
    return read_as or [""]


def _cut(text: str, words: Words, places: npt.NDArray[np.float64]) -> Mask | None:
    """``130**`` and ``*1234``."""
    if text.endswith("*"):
        start = text.rstrip("*")
        return np.array([w is not None and w.startswith(start) for w in words], dtype=bool)
    if text.startswith("*"):
        end = text.lstrip("*")
        return np.array([w is not None and w.endswith(end) for w in words], dtype=bool)
    return None


def _calendar(text: str, days: list[dt.date | None]) -> Mask | None:
    """``1984-05``, ``1984-Q2``, ``1984``, ``1980s``, where the values are dates."""
    found = _CALENDAR.match(text)
    if not found:
        return None
    year = int(found[1])

    def within(day: dt.date | None) -> bool:
        if day is None:
            return False
        if found[4]:
            return year <= day.year < year + 10
        if found[2]:
            return (day.year, day.month) == (year, int(found[2]))
        if found[3]:
            return (day.year, (day.month + 2) // 3) == (year, int(found[3]))
        return day.year == year

    return np.array([within(day) for day in days], dtype=bool)


def _text(value: Any) -> str | None:
    """A value as text in which 9, 9.0 and "9.0" are one, and so are a date and its ISO text."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str) and re.match(r"^0\d", value):
        return value  # a code, not a number
    moment = _moment(value)
    if moment is not None:
        return moment.isoformat()
    number = _number(value)
    if np.isnan(number):
        return "NaN" if isinstance(value, float) else str(value)
    return f"{number:.12g}"


def _place(value: Any) -> float:
    """Where a number or a date stands in order; NaN for all else."""
    moment = _moment(value)
    if moment is not None:
        return (moment - dt.datetime(1970, 1, 1)) / dt.timedelta(microseconds=1)
    return _number(value)


def _day(value: Any) -> dt.date | None:
    moment = _moment(value)
    return None if moment is None else moment.date()


def _moment(value: Any) -> dt.datetime | None:
    """A date or time of day on it, whether as such or as ISO text; without its zone."""
    if isinstance(value, dt.datetime):
        return value.replace(tzinfo=None)
    if isinstance(value, dt.date):
        return dt.datetime(value.year, value.month, value.day)
    if isinstance(value, str) and _DAY.match(value):
        try:
            return dt.datetime.fromisoformat(value).replace(tzinfo=None)
        except ValueError:
            return None
    return None


def _number(value: Any) -> float:
    if isinstance(value, bool):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
