"""The kinds of value a column or an expression can have."""

from __future__ import annotations

import datetime as dt
from enum import Enum
from fractions import Fraction

__all__ = ["Kind", "Value", "kind_of_value", "with_kind"]

Value = int | Fraction | str | bool | dt.date | dt.datetime
"""What a literal or a declared public value may be; reals are exact rationals."""


class Kind(Enum):
    """The kind of a value; NULL is possible in every kind."""

    INTEGER = "integer"
    REAL = "real"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIMESTAMP = "timestamp"

    @property
    def numeric(self) -> bool:
        """Whether arithmetic is defined."""
        return self in (Kind.INTEGER, Kind.REAL)

    @property
    def temporal(self) -> bool:
        """Whether date parts and truncation are defined."""
        return self in (Kind.DATE, Kind.TIMESTAMP)


def kind_of_value(value: Value) -> Kind:
    """The kind of a public value.

    Examples
    --------
    >>> kind_of_value(3), kind_of_value("north")
    (<Kind.INTEGER: 'integer'>, <Kind.TEXT: 'text'>)
    """
    match value:
        case bool():
            return Kind.BOOLEAN
        case int():
            return Kind.INTEGER
        case Fraction():
            return Kind.REAL
        case str():
            return Kind.TEXT
        case dt.datetime():
            return Kind.TIMESTAMP
        case dt.date():
            return Kind.DATE


def with_kind(value: Value | None) -> tuple[Kind | None, Value | None]:
    """A constant beside its kind: what two constants are compared by.

    Python takes 1, 1.0 and true for equal, and an engine gives each a type of its own.

    Examples
    --------
    >>> with_kind(1) == with_kind(True), with_kind(1) == with_kind(1)
    (False, True)
    """
    return (None if value is None else kind_of_value(value)), value
