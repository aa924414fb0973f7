"""What a session's policy says of the columns that a model is made of, and of its target.

Cells follow from public facts alone: declared values are categories, declared bins are cells, the
bounds of a number are cut into equal parts, those of a date into periods.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError, BoundsError
from dither.learn._columns import FINE, FeatureColumn, days
from dither.query.tables._domain import Attribute, CellDomain, columns_in, domain_of, middles

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = [
    "PredictedColumn",
    "asked_columns",
    "column_from",
    "column_of",
    "known_by",
    "read_formula",
    "read_value",
    "stored",
    "stored_value",
]

_EXAMPLE = "'readmitted ~ age + cost + region'"
_TARGET_PARTS = 1024
"""Equal parts of the bounds of a number that is predicted."""

_MOST_CLASSES = 1000


def read_formula(formula: Any) -> tuple[str, list[str] | None]:
    """The target, and the names of the columns; None for all others.

    Examples
    --------
    >>> read_formula("readmitted ~ age + `length of stay`")
    ('readmitted', ['age', 'length of stay'])
    >>> read_formula("readmitted ~ .")
    ('readmitted', None)
    """
    if not isinstance(formula, str):
        raise ArgumentError(f"formula must be a text such as {_EXAMPLE}")
    parts = _apart(formula, "~")
    names = [_name(part) for part in _apart(parts[-1], "+")]
    target = _name(parts[0])
    if len(parts) != 2 or not target or not all(names):
        raise ArgumentError(f"formula must be one column, ~, and columns with +, as {_EXAMPLE}")
    if names == ["."]:
        return target, None
    if len(set(names)) != len(names):
        raise ArgumentError("formula names a column twice")
    if target in names:
        raise ArgumentError(f"formula: {target} cannot be told from itself")
    return target, names


def _apart(text: str, sign: str) -> list[str]:
    parts, quote = [""], ""
    for letter in text:
        if letter in '`"' and quote in ("", letter):
            quote = "" if quote else letter
        if letter == sign and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _name(part: str) -> str:
    text = part.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in '`"':
        return text[1:-1]
    if any(sign in text for sign in "*:()^|"):
        raise ArgumentError(
            f"formula: {text!r} is not the name of a column; this model takes columns by name, as "
            f"{_EXAMPLE}: what is derived, name with select(...) first. A column whose name has "
            "signs stands in backquotes"
        )
    return text


@dataclass(frozen=True)
class PredictedColumn:
    """What is predicted.

    Parameters
    ----------
    name : str
    classes : tuple, optional
    bounds : (float, float), optional
        Of a number, instead of classes.
    values : array of float
        Of a number: what stands for each of its cells.
    """

    name: str
    classes: tuple[Hashable, ...] | None
    bounds: tuple[float, float] | None
    values: npt.NDArray[np.float64]

    @classmethod
    def of(cls, attribute: Attribute) -> PredictedColumn:
        """From what is declared.

        Raises
        ------
        ArgumentError
            It is neither a number with bounds nor a column of several declared values.
        """
        name, none = attribute.name, np.zeros(0)
        listed = attribute.values is not None and attribute.period is None
        if listed and (not attribute.clamped or attribute.values == (0, 1)):
            classes = tuple(_plain(v) for v in attribute.values or ())
            if not 2 <= len(classes) <= _MOST_CLASSES:
                raise ArgumentError(
                    f"{name} has {len(classes):,} declared values; a class is predicted of two to "
                    f"{_MOST_CLASSES:,}"
                )
            return cls(name, classes, None, none)
        if attribute.kind.numeric and attribute.clamped and attribute.bounds is not None:
            low, high = (float(end) for end in attribute.bounds)
            return cls(name, None, (low, high), middles(attribute))
        raise ArgumentError(
            f"{name} cannot be predicted: declare values of it in the policy, for classes, or "
            "bounds of a number"
        )


def asked_columns(
    rows: TableQuery, target: str, names: Sequence[str] | None, cells: int = FINE
) -> CellDomain:
    """The cells of the columns, with those of the target last.

    Raises
    ------
    ArgumentError, BoundsError
        A column is not there, or has no public domain.
    """
    if names is None:
        names = [name for name in columns_in(rows) if name != target]
        if not names:
            raise ArgumentError(f"formula: there is no column beside {target}")
    most = dict.fromkeys(names, cells) | {target: _TARGET_PARTS}
    try:
        return domain_of(rows, [*names, target], most)
    except ArgumentError as error:
        if isinstance(error, BoundsError):
            raise
        raise type(error)(str(error).replace("columns: ", "formula: ", 1)) from None


def column_of(attribute: Attribute) -> FeatureColumn:
    """The column whose places are an attribute's cells, the last for what lies in none."""
    name = attribute.name
    if attribute.period is not None:
        listed, bounds = attribute.values or (), attribute.bounds
        assert bounds is not None
        starts = days(list(listed)).tolist()
        last = float(np.floor(days([bounds[1]])[0])) + 1
        return FeatureColumn(
            name, ends=(*starts, max(last, starts[-1] + 1)), outside=True, dates=True
        )
    if attribute.edges is not None:
        ends = tuple(float(e) for e in attribute.edges)
        return FeatureColumn(name, ends=ends, outside=not attribute.clamped)
    values = tuple(_plain(v) for v in attribute.values or ())
    if attribute.clamped:
        return FeatureColumn(name, ends=tuple(float(v) for v in (*values, values[-1] + 1)))
    return FeatureColumn(name, categories=values)


def known_by(attributes: Sequence[Attribute]) -> list[str]:
    """By what a model knows a row, where that is less than its value: a note for each way."""
    ways: dict[str, list[str]] = {}
    for attribute in attributes:
        if attribute.period is not None:
            part = attribute.period
        elif attribute.edges is not None:
            part = "part of the bounds" if attribute.clamped else "bin"
        else:
            continue
        ways.setdefault(part, []).append(attribute.name)
    return [
        f"of {', '.join(names)} a row is known by the {part} that its value lies in"
        for part, names in ways.items()
    ]


def _plain(value: Any) -> Any:
    """A declared value as people's tables hold it."""
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value


def stored(column: FeatureColumn) -> dict[str, Any]:
    """A column as plain data, for `column_from`."""
    listed = column.categories
    return {
        "name": column.name,
        "bounds": None if column.bounds is None else list(column.bounds),
        "categories": None if listed is None else [stored_value(v) for v in listed],
        "ends": None if column.ends is None else list(column.ends),
        "outside": column.outside,
        "dates": column.dates,
    }


def column_from(found: Mapping[str, Any]) -> FeatureColumn:
    """What ``stored`` gave."""
    bounds, listed, ends = found["bounds"], found["categories"], found["ends"]
    return FeatureColumn(
        str(found["name"]),
        None if bounds is None else (float(bounds[0]), float(bounds[1])),
        None if listed is None else tuple(map(read_value, listed)),
        None if ends is None else tuple(map(float, ends)),
        bool(found["outside"]),
        bool(found["dates"]),
    )


def stored_value(value: Any) -> Any:
    """A declared value as plain data."""
    return {"day": value.isoformat()} if isinstance(value, dt.date) else value


def read_value(found: Any) -> Any:
    """What ``stored_value`` gave."""
    if isinstance(found, Mapping):
        moment = dt.datetime.fromisoformat(found["day"])
        return moment if "T" in found["day"] else moment.date()
    if not isinstance(found, bool | int | float | str):
        raise TypeError("not a declared value")
    return found
