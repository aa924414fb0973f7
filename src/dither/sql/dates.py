"""Dates in queries: literals, the names of their parts, and text that stands beside a date."""

from __future__ import annotations

import datetime as dt
import re

from dither.errors import QueryError, UnsupportedError, nearest
from dither.plan import expressions as ex
from dither.plan.expressions import PARTS, TRUNCATIONS
from dither.plan.schema import Kind, Value
from dither.plan.text import show
from dither.sql.names import Names

__all__ = ["date_part", "period", "read_date", "read_dates", "read_timestamp", "truncation"]

_SYNONYMS = {
    "years": "year",
    "yr": "year",
    "quarters": "quarter",
    "months": "month",
    "mon": "month",
    "weeks": "week",
    "days": "day",
    "dayofmonth": "day",
    "dow": "dayofweek",
    "weekday": "dayofweek",
    "hours": "hour",
    "minutes": "minute",
    "min": "minute",
    "mins": "minute",
    "seconds": "second",
    "sec": "second",
    "secs": "second",
    "doy": "dayofyear",
    "weekofyear": "week",
    "yearofweek": "isoyear",
}
_HINTS = {
    "millisecond": "; the finest part is second",
    "epoch": "; write DATE_DIFF('second', a, b)",
}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?)?", re.ASCII)
_OFFSET = re.compile(r"(Z|[+-]\d{2}(:\d{2})?)$", re.ASCII)


def period(name: str) -> str:
    """The part of a date that a written name means, in one spelling."""
    return _SYNONYMS.get(name.lower(), name.lower())


def date_part(name: str) -> str:
    """The part of a date that a written name means, a key of ``PARTS``.

    Examples
    --------
    >>> date_part("DOW")
    'dayofweek'
    """
    part = period(name)
    if part not in PARTS:
        hint = _HINTS.get(part) or nearest(name, PARTS)
        raise UnsupportedError(f"the date part {name.lower()!r} is not offered{hint}")
    return part


def truncation(name: str) -> str:
    """What a date is truncated to by a written name, one of ``TRUNCATIONS``."""
    part = period(name)
    if part not in TRUNCATIONS:
        raise UnsupportedError(
            f"DATE_TRUNC to {name.lower()!r} is not offered{nearest(name, TRUNCATIONS)}"
        )
    return part


def read_date(text: str) -> dt.date:
    """A date written as ``YYYY-MM-DD``.

    Examples
    --------
    >>> read_date("2020-02-29")
    datetime.date(2020, 2, 29)
    """
    try:
        if _DATE.fullmatch(text):
            return dt.date.fromisoformat(text)
    except ValueError:
        pass
    raise QueryError(f"{text!r} is not a date; write 'YYYY-MM-DD'")


def read_timestamp(text: str, *, offset: bool = False) -> dt.datetime:
    """A timestamp in UTC written as ``YYYY-MM-DD HH:MM:SS``; time and seconds may be left out.

    Where ``offset``, an offset such as ``+02:00`` may follow, and the result is in UTC.

    Examples
    --------
    >>> read_timestamp("2020-01-01 10:30")
    datetime.datetime(2020, 1, 1, 10, 30)
    """
    text = text.strip()
    suffix = _OFFSET.search(text) if offset and ":" in text else None
    local = text[: suffix.start()].rstrip() if suffix else text
    try:
        if _TIMESTAMP.fullmatch(local):
            value = dt.datetime.fromisoformat(local)
            if suffix and suffix[0] != "Z":
                hours, _, minutes = suffix[0][1:].partition(":")
                ahead = dt.timedelta(hours=int(hours), minutes=int(minutes or 0))
                value = value - ahead if suffix[0][0] == "+" else value + ahead
            return value
    except (ValueError, OverflowError):
        pass
    raise QueryError(f"{text!r} is not a timestamp in UTC; write 'YYYY-MM-DD HH:MM:SS'")


def read_dates(node: ex.Expression, names: Names) -> ex.Expression:
    """A condition in which text that is compared with a date or a timestamp is read as one.

    ``day >= '2020-01-01'`` means the date, as in every database. The same goes for ``BETWEEN`` and
    ``IN``.

    Raises
    ------
    QueryError
        Where such a text is not a date.
    """

    def temporal(operand: ex.Expression) -> Kind | None:
        kind = names.kind(operand)
        return kind if kind is not None and kind.temporal else None

    match node:
        case ex.Compare(op=op, left=left, right=ex.Literal(value=str(text))):
            if kind := temporal(left):
                return ex.Compare(op, left, _as(kind, text, left))
        case ex.Compare(op=op, left=ex.Literal(value=str(text)), right=right):
            if kind := temporal(right):
                return ex.Compare(op, _as(kind, text, right), right)
        case ex.Between(operand=x, low=low, high=high) if _text(low) or _text(high):
            if kind := temporal(x):
                return ex.Between(x, _end(kind, low, x), _end(kind, high, x))
        case ex.InList(operand=x, values=values) if any(isinstance(v, str) for v in values):
            if kind := temporal(x):
                return ex.InList(x, tuple(_value(kind, v, x) for v in values))
    return node


def _text(node: ex.Expression) -> bool:
    return isinstance(node, ex.Literal) and isinstance(node.value, str)


def _end(kind: Kind, node: ex.Expression, beside: ex.Expression) -> ex.Expression:
    match node:
        case ex.Literal(value=str(text)):
            return _as(kind, text, beside)
    return node


def _value(kind: Kind, value: Value, beside: ex.Expression) -> Value:
    return _read(kind, value, beside) if isinstance(value, str) else value


def _as(kind: Kind, text: str, beside: ex.Expression) -> ex.Literal:
    return ex.Literal(_read(kind, text, beside))


def _read(kind: Kind, text: str, beside: ex.Expression) -> dt.date | dt.datetime:
    try:
        return read_date(text) if kind is Kind.DATE else read_timestamp(text)
    except QueryError as error:
        raise QueryError(f"beside {show(beside)}, {error}") from None
