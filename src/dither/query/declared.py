"""What a policy declares of one column, checked by itself and against its source."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from dither.errors import PolicyError, QueryError, nearest
from dither.plan.kinds import Kind, Value
from dither.plan.schema import ColumnFacts
from dither.plan.text import number
from dither.query.reading import Reader
from dither.sql.dates import read_date, read_timestamp

__all__ = ["LARGEST_EPSILON", "DeclaredColumn", "read_column", "resolve"]

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
    bounds = body.listed("bounds")
    if bounds is not None and len(bounds) != 2:
        raise PolicyError(f"{body.name('bounds')} must be [lower, upper], two different values")
    values, bins = body.listed("values"), body.listed("bins")
    if bounds is not None and values is not None:
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
    )
    body.finish()
    return column


def resolve(
    declared: DeclaredColumn,
    found: Mapping[str, Kind | None],
    where: str,
    unread: Mapping[str, str] = MappingProxyType({}),
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
        Why a column of the source is not read, where there is more to say than its type.

    Raises
    ------
    PolicyError
        Where the column is not in the source, its type is not read, or a declared fact is of
        another kind.
    """
    if declared.name not in found:
        raise PolicyError(f"{where}: the source has no such column" + nearest(declared.name, found))
    if declared.name in unread:
        raise PolicyError(f"{where} is not read: {unread[declared.name]}")
    kind = declared.kind or found[declared.name]
    if kind is None:
        raise PolicyError(
            f"{where}: its type in the source is not read; declare type = one of "
            + ", ".join(sorted({k.value for k in Kind}))
        )
    lower = upper = None
    if declared.bounds is not None:
        lower, upper = (_bound(b, kind, where) for b in declared.bounds)
        if lower >= upper:
            raise PolicyError(f"{where}.bounds: the lower bound must be below the upper one")
    values: tuple[Value, ...] | None = None
    if declared.values is not None:
        values = tuple(_value(v, kind, where) for v in declared.values)
    if declared.step is not None and kind is not Kind.REAL:
        raise PolicyError(
            f"{where}.step is for real columns; this one is {kind.value}{_hint(kind)}"
        )
    if declared.step is not None and lower is not None and declared.step > upper - lower:
        raise PolicyError(f"{where}.step is wider than the bounds")
    if declared.edges is not None:
        _check_bins(declared.edges, kind, lower, upper, where)
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


def _check_bins(
    edges: tuple[Fraction, ...],
    kind: Kind,
    lower: Fraction | None,
    upper: Fraction | None,
    where: str,
) -> None:
    if not kind.numeric:
        raise PolicyError(f"{where}.bins are for numbers; this column is {kind.value}{_hint(kind)}")
    if lower is not None and upper is not None and (edges[0] < lower or edges[-1] > upper):
        raise PolicyError(
            f"{where}.bins reach beyond its bounds, where no value can be; end them at "
            f"{number(lower)} and {number(upper)}, or widen the bounds"
        )


def _value(value: Any, kind: Kind, where: str) -> Value:
    wanted: dict[Kind, tuple[type, ...]] = {
        Kind.INTEGER: (int,),
        Kind.TEXT: (str,),
        Kind.BOOLEAN: (bool,),
        Kind.DATE: (dt.date,),
    }
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
