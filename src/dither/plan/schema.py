"""What is public about the tables: kinds of value, and the facts that bounds and keys follow from.

No privacy rests on their being true. What a fact says of a value is enforced on that value where
it matters (clamped where it is summed, NULL or left out where it is unlisted), or the fact only
chooses between forms that are all safe.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING

from dither.blocks._calendar import Calendar
from dither.errors import PolicyError, UnknownNameError, nearest

if TYPE_CHECKING:
    from dither.plan.readings import TextReading

__all__ = ["ColumnFacts", "Kind", "Schema", "Table", "Value", "kind_of_value", "with_kind"]

MOST_UNNESTED = 10_000
"""Rows that the lists of one unit give where nobody says how many."""

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


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """The public facts of one column.

    Parameters
    ----------
    name : str
        Its name in the source.
    kind : Kind
        What its values are read as; a value that cannot be read so counts as NULL.
    lower, upper : Fraction or date or datetime, optional
        Aggregates move values outside to the nearest bound. Filters and keys see every value as it
        is, and a key outside belongs to no public group.
    step : Fraction, optional
        The lattice of a real column: values are rounded to multiples of it before they are summed.
    values : tuple, optional
        The public list of values. Any other value counts as NULL.
    edges : tuple of Fraction, optional
        The bins into which ``GROUP BY`` cuts the column; what lies in none belongs to no group.
    nullable : bool
        Whether NULL occurs. Where it is declared not to, all means share one count, and a NULL
        found all the same counts as the middle of the bounds.
    unit : str, optional
        The unit of measurement, for tables and axes.
    max_items : int, optional
        Of a list: so many of its elements count, its first ones.
    assumed : bool
        Of a column that a query makes: nobody declared its bounds, which suppose that no unit has
        more than ``max_rows`` rows. ``CLAMP`` may reach beyond them.
    reading : TextReading, optional
        How its values are written, where they are stored as text.
    """

    name: str
    kind: Kind
    lower: Fraction | dt.date | dt.datetime | None = None
    upper: Fraction | dt.date | dt.datetime | None = None
    step: Fraction | None = None
    values: tuple[Value, ...] | None = None
    edges: tuple[Fraction, ...] | None = None
    nullable: bool = True
    unit: str | None = None
    assumed: bool = False
    max_items: int | None = None
    reading: TextReading | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """The public facts of one table.

    Parameters
    ----------
    name : str
        Its name in queries.
    columns : mapping of str to ColumnFacts
        Every column that may be named in a query.
    private : bool
        False for a public table: its rows protect nobody and may be read freely.
    unit : str, optional
        The column that says who is protected; ``None`` where a row is a person.
    max_groups, max_rows : int
        How many groups of a ``GROUP BY`` one unit may count in, and how many rows per group.
        Both are 1 where a row is a person.
    unique : frozenset of str or tuple of str
        Public tables: columns in which no value occurs twice, and several columns of which no
        values occur together twice, so that a join on them cannot fan out.
    max_join_rows : int, optional
        Private tables: rows kept per unit before a join on the unit's key.
    max_unnest_rows : int
        Private tables: rows that ``UNNEST`` makes of one unit's rows, all its lists together.
    unit_name : str, optional
        Who is protected, by name. Tables with one name hold the same units; others do not.
    unit_rows : int
        Rows of the table that one unit may have, where no column says whose they are.
    max_groups_cap, max_rows_cap : int, optional
        The largest limits that one question may ask for.
    unread : mapping of str to str
        Columns that the source has and no query may name, each with the reason.
    lists : mapping of str to ColumnFacts
        Columns that hold lists, and what is public of their elements: ``UNNEST`` alone reads them.
    complete : bool
        Every row of the source is read, whatever it holds. Only then is the number of rows that are
        read public where the size of the table is.
    learned : frozenset of str
        Columns whose bounds were learned, although nothing here has them: for messages.
    block : tuple of (str, Calendar), optional
        Private tables under a budget for each block: the column that says in which block a row is,
        and how.
    one_block : bool
        The table has no such column, and others of its unit have: it is one block, as a whole.
    """

    name: str
    columns: Mapping[str, ColumnFacts]
    private: bool = True
    unit: str | None = None
    max_groups: int = 1
    max_rows: int = 1
    unique: frozenset[str | tuple[str, ...]] = frozenset()
    max_join_rows: int | None = None
    max_unnest_rows: int = MOST_UNNESTED
    complete: bool = True
    unit_name: str | None = None
    unit_rows: int = 1
    max_groups_cap: int | None = None
    max_rows_cap: int | None = None
    unread: Mapping[str, str] = field(default_factory=dict)
    lists: Mapping[str, ColumnFacts] = field(default_factory=dict)
    learned: frozenset[str] = frozenset()
    block: tuple[str, Calendar] | None = None
    one_block: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", MappingProxyType(dict(self.columns)))
        if self.unit is not None and self.unit not in self.columns:
            raise PolicyError(
                f"table {self.name!r}: unit {self.unit!r} is not a column of it"
                + nearest(self.unit, self.columns)
            )

    @property
    def unique_keys(self) -> list[tuple[str, ...]]:
        """What is declared unique, each as the columns that are so together, in order."""
        return sorted((key,) if isinstance(key, str) else key for key in self.unique)

    def column(self, name: str) -> ColumnFacts:
        """The facts of a column.

        Raises
        ------
        UnknownNameError
            Where there is none of that name; the nearest is offered.
        """
        try:
            return self.columns[name]
        except KeyError:
            if name in self.lists:
                raise UnknownNameError(
                    f"column {name!r} of table {self.name!r} is a list; for a row of each of its "
                    f"elements write FROM {self.name}, UNNEST({name}) AS t(x)"
                ) from None
            if name in self.unread:
                raise UnknownNameError(
                    f"column {name!r} of table {self.name!r} is not read: {self.unread[name]}"
                ) from None
            raise UnknownNameError(
                f"unknown column {name!r} in table {self.name!r}" + nearest(name, self.columns)
            ) from None


@dataclass(frozen=True, slots=True)
class Schema:
    """All tables that queries may name, and the neighbours that protect them."""

    tables: Mapping[str, Table]
    replace_one: bool = False
    """Neighbours replace one unit (public size) instead of adding or removing one."""
    today: dt.date | None = None
    """The day on which a question is made: of blocks of time it reads those that have begun."""
    promised: Mapping[str, str] = field(default_factory=dict)
    """By unit whose rows lie in blocks: what is promised of them, in words."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tables", MappingProxyType(dict(self.tables)))

    def table(self, name: str) -> Table:
        """The facts of a table.

        Raises
        ------
        UnknownNameError
            Where there is none of that name; the nearest is offered.
        """
        try:
            return self.tables[name]
        except KeyError:
            raise UnknownNameError(f"unknown table {name!r}" + nearest(name, self.tables)) from None
