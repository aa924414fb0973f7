"""The fields of a policy, read one by one, and what they declare of a column.

Errors name the field.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from dataclasses import field as made_by
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Any, overload

from dither import _checks as check
from dither.errors import ArgumentError, PolicyError, QueryError, nearest
from dither.plan.schema import ColumnFacts, Kind, Value
from dither.policy._readings import read_reading, reading_of
from dither.sql.dates import read_date, read_timestamp

__all__ = [
    "LARGEST_EPSILON",
    "LEARNED",
    "DeclaredColumn",
    "Reader",
    "read_column",
    "resolve",
]


class Reader:
    """Takes fields out of one section of a policy; ``finish`` refuses what nobody took."""

    def __init__(self, body: Any, where: str) -> None:
        if not isinstance(body, Mapping):
            raise PolicyError(f"{where} must be a table of fields, [{where}]")
        if not all(isinstance(field, str) for field in body):
            raise PolicyError(f"{where}: the names of fields must be texts")
        self.where = where
        self._body = dict(body)
        self._known: list[str] = []

    def take(self, field: str) -> Any:
        """The raw value of a field, or ``None``."""
        self._known.append(field)
        return self._body.get(field)

    def name(self, field: str) -> str:
        """The field's full name, for messages."""
        return field if self.where == "the policy" else f"{self.where}.{field}"

    def section(self, field: str, *, required: bool = False) -> Mapping[str, Any]:
        """A section below this one."""
        body = self.take(field)
        if body is None:
            if required:
                raise PolicyError(f"the policy has no [{self.name(field)}]")
            return {}
        if not isinstance(body, Mapping):
            raise PolicyError(f"{self.name(field)} must be a section, [{self.name(field)}]")
        return body

    def required_text(self, field: str) -> str:
        """A text that must be there."""
        value = self.text(field)
        if value is None:
            raise PolicyError(f"{self.name(field)} is missing")
        return value

    def text(self, field: str) -> str | None:
        """A text that is not empty."""
        value = self.take(field)
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise PolicyError(f"{self.name(field)} must be a text that is not empty")
        return value

    def choice(self, field: str, options: Sequence[str], default: str) -> str:
        """One of a few words."""
        value = self.text(field) or default
        if value not in options:
            raise PolicyError(
                f"{self.name(field)} has no option {value!r}" + nearest(value, options)
            )
        return value

    def flag(self, field: str, default: bool) -> bool:
        """True or false."""
        value = self.take(field)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise PolicyError(f"{self.name(field)} must be true or false")
        return value

    def whole(self, field: str, most: int = 2**31) -> int | None:
        """A whole number from 1 to ``most``."""
        value = self.take(field)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            shown = "2^31" if most == 2**31 else str(most)
            raise PolicyError(f"{self.name(field)} must be a whole number from 1 to {shown}")
        return value

    @overload
    def number(self, field: str, default: Fraction) -> Fraction: ...
    @overload
    def number(self, field: str, default: None = None) -> Fraction | None: ...
    def number(self, field: str, default: Fraction | None = None) -> Fraction | None:
        """A finite number, exact."""
        value = self.take(field)
        if value is None:
            return default
        return self.exact(value, field)

    def exact(self, value: Any, field: str) -> Fraction:
        """Turn a declared number into a rational."""
        try:
            return check.exact(self.name(field), value)
        except ArgumentError:
            raise PolicyError(f"{self.name(field)} must be a finite number") from None

    def names(self, field: str) -> tuple[str, ...]:
        """A list of texts, none twice."""
        return tuple(self.listed(field, str) or ())

    def keys(self, field: str) -> tuple[str | tuple[str, ...], ...]:
        """A list of texts, and of lists of texts that belong together; none twice."""
        value = self.take(field)
        if value is None:
            return ()
        if not isinstance(value, list | tuple) or not value:
            raise PolicyError(f"{self.name(field)} must be a list that is not empty")
        found: list[str | tuple[str, ...]] = []
        for one in value:
            several = isinstance(one, list | tuple) and one
            if not all(isinstance(v, str) for v in (one if several else (one,))):
                raise PolicyError(
                    f"{self.name(field)} must be a list of texts, or of lists of texts"
                )
            names = tuple(one) if several else (one,)
            if len({*names}) < len(names):
                raise PolicyError(f"{self.name(field)} names a value twice")
            found.append(names if names[1:] else names[0])
        if len({frozenset((key,) if isinstance(key, str) else key) for key in found}) < len(found):
            raise PolicyError(f"{self.name(field)} names a value twice")
        return tuple(found)

    def listed(self, field: str, kind: type | None = None) -> list[Any] | None:
        """A list that is not empty, no element twice."""
        value = self.take(field)
        if value is None:
            return None
        if not isinstance(value, list | tuple) or not value:
            raise PolicyError(f"{self.name(field)} must be a list that is not empty")
        if kind is not None and not all(isinstance(v, kind) for v in value):
            raise PolicyError(f"{self.name(field)} must be a list of texts")
        if any(isinstance(v, list | tuple | Mapping) for v in value):
            raise PolicyError(
                f"{self.name(field)} must be a list of plain values, none in it a list"
            )
        # True equals 1 in Python, so kinds are compared too.
        places: dict[tuple[type, Any], int] = {}
        for place, one in enumerate(value, 1):
            first = places.setdefault((type(one), one), place)
            if first < place:
                raise PolicyError(
                    f"{self.name(field)} names a value twice: its elements {first} and {place} are "
                    "equal; leave one out"
                )
        return list(value)

    def left(self) -> list[str]:
        """The fields that nobody took so far."""
        return [field for field in self._body if field not in self._known]

    def finish(self) -> None:
        """Refuse fields that mean nothing here.

        Raises
        ------
        PolicyError
            Naming the first one and the nearest field that exists.
        """
        for field in self.left():
            raise PolicyError(
                f"{self.where} has an unknown field {field!r}" + nearest(field, self._known)
            )


LARGEST_EPSILON = 10**9
"""The largest epsilon that a budget or a release may have."""

KINDS = {
    "integer": Kind.INTEGER,
    "int": Kind.INTEGER,
    "real": Kind.REAL,
    "float": Kind.REAL,
    "text": Kind.TEXT,
    "string": Kind.TEXT,
    "boolean": Kind.BOOLEAN,
    "bool": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """The fields of ``[tables.T.columns]`` before the source's own kinds are known."""

    name: str
    kind: Kind | None
    bounds: tuple[Any, Any] | None
    step: Fraction | None
    values: tuple[Any, ...] | None
    edges: tuple[Fraction, ...] | None
    nullable: bool
    unit: str | None
    learned: str | None = None
    """The field, ``bounds`` or ``values``, that the ledger's newest answer stands for."""
    max_items: int | None = None
    reading: Mapping[str, Any] = made_by(default_factory=dict)
    """What is said of how its values are written."""


LEARNED = "learned"
"""What a policy says in place of bounds, values or limits that are to be learned."""


def read_column(name: str, body: Reader) -> DeclaredColumn:
    """Read one column's fields.

    Raises
    ------
    PolicyError
        Where they contradict each other.
    """
    kind = body.text("type")
    if kind is not None and kind.lower() not in KINDS:
        raise PolicyError(f"{body.name('type')} has no option {kind!r}" + nearest(kind, KINDS))
    learned = [field for field in ("bounds", "values") if body.take(field) == LEARNED]
    if len(learned) > 1:
        raise PolicyError(f"{body.where} is to learn both bounds and values; keep one")
    bounds = None if "bounds" in learned else body.listed("bounds")
    if bounds is not None and len(bounds) != 2:
        raise PolicyError(f"{body.name('bounds')} must be [lower, upper], two different values")
    values = None if "values" in learned else body.listed("values")
    bins = body.listed("bins")
    if (bounds is not None or "bounds" in learned) and (values is not None or "values" in learned):
        raise PolicyError(f"{body.where} declares both bounds and values; keep one")
    if bins is not None and values is not None:
        raise PolicyError(f"{body.where} declares both bins and values; keep one")
    edges = tuple(body.exact(e, "bins") for e in bins) if bins is not None else None
    if edges is not None and (len(edges) < 2 or any(a >= b for a, b in pairwise(edges))):
        raise PolicyError(f"{body.name('bins')} must be at least two edges, each above the last")
    step = body.number("step")
    if step is not None and step <= 0:
        raise PolicyError(f"{body.name('step')} must be above 0")
    column = DeclaredColumn(
        name=name,
        kind=KINDS[kind.lower()] if kind else None,
        bounds=(bounds[0], bounds[1]) if bounds else None,
        step=step,
        values=tuple(values) if values else None,
        edges=edges,
        nullable=body.flag("nullable", True),
        unit=body.text("unit"),
        learned=learned[0] if learned else None,
        max_items=body.whole("max_items"),
        reading=read_reading(body),
    )
    body.finish()
    return column


def resolve(
    declared: DeclaredColumn,
    found: Mapping[str, Kind | None],
    where: str,
    unread: Mapping[str, str] = MappingProxyType({}),
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> ColumnFacts:
    """Join a declared column with the kind its source has.

    Parameters
    ----------
    declared : DeclaredColumn
    found : mapping of str to Kind or None
        The columns of the source.
    where : str
        How messages call the column.
    unread : mapping of str to str
        Why a column of the source is not read.
    reading : mapping of str to value
        What the table says of how values are written.

    Raises
    ------
    PolicyError
        Where the column is not in the source, its type is not read, or a declared fact is of
        another kind.
    """
    if declared.name not in found:
        known = [name for name in found if name not in unread]
        raise PolicyError(f"{where}: the source has no such column" + nearest(declared.name, known))
    if declared.name in unread:
        raise PolicyError(f"{where} is not read: {unread[declared.name]}")
    stored = found[declared.name]
    kind = declared.kind or stored
    if kind is None:
        raise PolicyError(f"{where} is not read: its type is not one that is")
    lower = upper = None
    if declared.bounds is not None:
        lower, upper = (_bound(b, kind, where) for b in declared.bounds)
        if lower >= upper:
            raise PolicyError(f"{where}.bounds: the lower bound must be below the upper one")
    values: tuple[Value, ...] | None = None
    if declared.values is not None:
        values = tuple(_value(v, kind, where) for v in declared.values)
        if kind is Kind.REAL and len({float(v) for v in values}) < len(values):  # type: ignore[arg-type]
            raise PolicyError(f"{where}.values lists a number twice, as doubles are read")
    if declared.step is not None and kind is not Kind.REAL:
        raise PolicyError(
            f"{where}.step is for real columns; this one is {kind.value}{_hint(kind)}"
        )
    if declared.step is not None and lower is not None and declared.step > upper - lower:
        raise PolicyError(f"{where}.step is wider than the bounds")
    if declared.edges is not None and not kind.numeric:
        raise PolicyError(f"{where}.bins are for numbers; this column is {kind.value}{_hint(kind)}")
    if declared.learned == "bounds" and not (kind.numeric or kind.temporal):
        raise PolicyError(
            f"{where}.bounds can be learned of numbers, dates and times; this column is "
            f"{kind.value}{_hint(kind)}"
        )
    if declared.learned == "values" and kind in (Kind.REAL, Kind.TIMESTAMP):
        raise PolicyError(f"{where}.values cannot list values of kind {kind.value}; use bounds")
    said = None
    if stored is Kind.TEXT:
        said = reading_of(reading, declared.reading, kind, where)
    elif declared.reading and stored is not None:
        raise PolicyError(
            f"{where}.{next(iter(declared.reading))} is for values that are stored as text; these "
            f"are stored as {stored.value}"
        )
    missing = () if said is None else said.null_values
    for value in values or ():
        if isinstance(value, str) and value in missing:
            raise PolicyError(
                f"{where}.values lists {value!r}, which null_values reads as NULL; leave it out of "
                "one of them"
            )
    return ColumnFacts(
        name=declared.name,
        kind=kind,
        lower=lower,
        upper=upper,
        step=declared.step,
        values=values,
        edges=declared.edges,
        nullable=declared.nullable,
        unit=declared.unit,
        max_items=declared.max_items,
        reading=said,
    )


def _bound(value: Any, kind: Kind, where: str) -> Any:
    if kind.numeric:
        exact = Reader({}, where).exact(value, "bounds")
        if kind is Kind.INTEGER and exact.denominator != 1:
            raise PolicyError(f"{where}.bounds of an integer column must be whole")
        if abs(exact) > (2**62 if kind is Kind.INTEGER else Fraction(10) ** 300):
            raise PolicyError(f"{where}.bounds lie too far out; stay within ±2^62 (reals: ±1e300)")
        return exact
    value = _day_or_moment(value, kind)
    if kind is Kind.DATE and type(value) is dt.date:
        return value
    if kind is Kind.TIMESTAMP and isinstance(value, dt.date):
        try:
            return _utc(value)
        except OverflowError:
            raise PolicyError(f"{where}.bounds lie outside the years 1 to 9999 in UTC") from None
    raise PolicyError(f"{where}.bounds do not fit a column of kind {kind.value}{_hint(kind)}")


def _day_or_moment(value: Any, kind: Kind) -> Any:
    """A date or time that is written as text, as in a dictionary or in JSON."""
    if isinstance(value, str) and kind.temporal:
        with suppress(QueryError):
            return read_date(value) if kind is Kind.DATE else read_timestamp(value, offset=True)
    return value


def _hint(kind: Kind) -> str:
    """What else the column may have been meant to be."""
    if kind is Kind.TEXT:
        return '; if its text holds numbers or dates, declare type = "integer", "real" or "date"'
    if kind is Kind.DATE:
        return "; write a date as 2024-01-31, in Python as datetime.date(2024, 1, 31)"
    if kind is Kind.TIMESTAMP:
        return "; write a time as '2024-01-31 12:00:00', in UTC or with its offset"
    return ""


def _value(value: Any, kind: Kind, where: str) -> Value:
    wanted: dict[Kind, tuple[type, ...]] = {
        Kind.INTEGER: (int,),
        Kind.TEXT: (str,),
        Kind.BOOLEAN: (bool,),
        Kind.DATE: (dt.date,),
    }
    if kind is Kind.REAL:
        if isinstance(value, str | bool):
            raise PolicyError(f"{where}.values must all be of kind real")
        # The double nearest to what is written is what equals it; within the bounds of bounds.
        return Reader({}, where).exact(_bound(value, kind, where), "values")
    if kind not in wanted:
        raise PolicyError(f"{where}.values cannot list values of kind {kind.value}; use bounds")
    value = _day_or_moment(value, kind)
    fits = isinstance(value, wanted[kind]) and not isinstance(value, dt.datetime)
    if not fits or (kind is Kind.INTEGER and isinstance(value, bool)):
        raise PolicyError(f"{where}.values must all be of kind {kind.value}{_hint(kind)}")
    result: Value = value
    return result


def _utc(value: dt.date) -> dt.datetime:
    """Timestamps are without a zone, in UTC."""
    if not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    if value.tzinfo is not None:
        value = value.replace(tzinfo=None) - (value.utcoffset() or dt.timedelta())
    return value
