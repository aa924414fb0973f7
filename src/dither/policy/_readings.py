"""How a policy says that values are written: for a whole table, and for single columns.

``null_values``, ``thousands``, ``decimal``, ``date_format``, ``trim`` and ``parentheses`` may stand
in ``[tables.T]`` and in a column; what a column says goes before what its table says. All of it is
of columns that are stored as text, which numbers and dates of a CSV file are too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dither.errors import PolicyError, nearest
from dither.plan.readings import DIRECTIVES, SEPARATORS, TextReading, directives
from dither.plan.schema import Kind
from dither.plan.text import unwritable

if TYPE_CHECKING:
    from dither.policy._fields import Reader

__all__ = ["of_unit", "read_reading", "reading_of"]

OF_NUMBERS = ("thousands", "decimal", "parentheses")

FORBIDDEN = set("0123456789+-.,()[]\\^'\"\u2212\u2019")
"""What ``trim`` may not take away: it belongs to numbers, or to a pattern of them."""


def read_reading(body: Reader) -> dict[str, Any]:
    """The fields that a table or a column has, each checked by itself.

    Raises
    ------
    PolicyError
        Naming the field.
    """
    found: dict[str, Any] = {}
    values = body.take("null_values")
    if values is not None:
        found["null_values"] = _null_values(body, values)
    for field, options in (("thousands", tuple(SEPARATORS)), ("decimal", (".", ","))):
        value = body.take(field)
        if value is not None:
            if not isinstance(value, str) or value not in options:
                shown = ", ".join(map(repr, options[:-1])) + f" or {options[-1]!r}"
                raise PolicyError(f"{body.name(field)} must be {shown}")
            found[field] = value
    written = body.text("date_format")
    if written is not None:
        _check_format(body, written)
        found["date_format"] = written
    trim = body.take("trim")
    if trim is not None:
        found["trim"] = _trim(body, trim)
    if body.take("parentheses") is not None:
        found["parentheses"] = body.flag("parentheses", False)
    return found


def reading_of(
    whole: Mapping[str, Any], own: Mapping[str, Any], kind: Kind, where: str
) -> TextReading | None:
    """What is said of one column that is stored as text; ``None`` where that is nothing.

    Raises
    ------
    PolicyError
        Where a field of the column itself is of another kind than it, or two contradict each other.
    """
    for field in own:
        if field in OF_NUMBERS and not kind.numeric:
            raise PolicyError(
                f"{where}.{field} is for numbers, and the column is read as {kind.value}; declare "
                'type = "real" or "integer"'
            )
        if field == "date_format" and not kind.temporal:
            raise PolicyError(
                f"{where}.date_format is for dates and times, and the column is read as "
                f'{kind.value}; declare type = "date" or "timestamp"'
            )
    said = {**whole, **own}
    if kind.numeric and said.get("thousands") == (said.get("decimal") or "."):
        raise PolicyError(
            f"{where}: thousands and decimal are both {said['thousands']!r}; the decimal is '.' "
            'where it is left out, so say decimal = "," too'
        )
    if not kind.numeric:
        said = {field: value for field, value in said.items() if field not in OF_NUMBERS}
    if not kind.temporal:
        said.pop("date_format", None)
    found = TextReading(**said)
    return None if found == TextReading() else found


def of_unit(
    whole: Mapping[str, Any], own: Mapping[str, Any], where: str
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """What is said of the column that says who is protected, which is compared as it is stored.

    Only ``null_values``: rows with one of them are nobody's, and nobody becomes somebody else.

    Raises
    ------
    PolicyError
        Where the column itself says more.
    """
    other = [field for field in own if field != "null_values"]
    if other:
        raise PolicyError(
            f"{where}.{other[0]}: the column says who is protected and is compared as it is "
            "stored, since two people could become one; leave the field out"
        )
    return {f: v for f, v in whole.items() if f == "null_values"}, own


def _null_values(body: Reader, values: Any) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(
        isinstance(v, str | int) and not isinstance(v, bool) for v in values
    ):
        raise PolicyError(
            f'{body.name("null_values")} must be a list of texts, such as ["NA", "-99"]'
        )
    texts = tuple(str(value) for value in values)
    if len({*texts}) < len(texts):
        raise PolicyError(f"{body.name('null_values')} names a value twice")
    return texts


def _trim(body: Reader, trim: Any) -> str | None:
    if isinstance(trim, bool):
        return "" if trim else None
    where = body.name("trim")
    if not isinstance(trim, str) or not trim:
        raise PolicyError(
            f"{where} must be true, for white space, or the characters to take away besides, such "
            'as "$€%"'
        )
    odd = next((c for c in trim if c in FORBIDDEN), None)
    if odd is not None or unwritable(trim) is not None:
        raise PolicyError(
            f"{where} must not hold {odd!r}, which numbers are made of; numbers in parentheses are "
            "read with parentheses = true, and separators with thousands and decimal"
        )
    return "".join(dict.fromkeys(trim))


def _check_format(body: Reader, written: str) -> None:
    where = body.name("date_format")
    offered = ", ".join(f"%{letter}" for letter in DIRECTIVES)
    letters = []
    for piece, is_directive in directives(written):
        if not is_directive:
            if piece in "[]\\^" or unwritable(piece) is not None:
                raise PolicyError(f"{where} must not hold {piece!r}")
            continue
        if piece not in DIRECTIVES:
            raise PolicyError(
                f"{where} has no directive '%{piece}'{nearest(piece, DIRECTIVES)}; it knows "
                f"{offered} and %%"
            )
        letters.append(piece)
    groups = {"the year (%Y or %y)": "Yy", "the month (%m, %b or %B)": "mbB", "the day (%d)": "d"}
    for name, those in groups.items():
        if sum(letter in those for letter in letters) != 1:
            raise PolicyError(f"{where} must hold {name} once, as in '%d/%m/%Y'")
    times = [letter for letter in letters if letter in "HMS"]
    if sorted(times) != sorted("HMS"[: len(times)]):
        raise PolicyError(
            f"{where} must hold the hour (%H) once where it holds a minute (%M), and both where it "
            "holds a second (%S)"
        )
