"""Whom each private table holds: units that several tables share, and those of one table alone.

``[units.NAME]`` says that the units of several tables are the same people. They then share one
account, since what two tables reveal about one person adds up. A table that no unit names has a
unit of its own, and so an account of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dither.errors import PolicyError, nearest
from dither.policy._fields import Reader
from dither.privacy._promise import LONGEST

__all__ = ["MOST_UNITS", "OF_BLOCKS", "DeclaredUnit", "TableUnit", "read_units", "unit_of"]

OF_BLOCKS = ", in blocks of "
"""Between what says whose a row is, and the column that says in which block."""

MOST_UNITS = 10**11
"""More than any table has people."""


@dataclass(frozen=True, slots=True)
class DeclaredUnit:
    """The fields of ``[units.NAME]``: by table, the column or the most rows of one unit."""

    name: str
    columns: Mapping[str, str]
    rows: Mapping[str, int]
    at_least: int | None = None


@dataclass(frozen=True, slots=True)
class TableUnit:
    """The unit of one private table.

    Parameters
    ----------
    name : str
        Who is protected: what an account is bound to.
    by : str
        What says which unit a row of the table belongs to, as the ledger keeps it.
    rows : int
        Rows of the table that one unit may have, where no column says whose they are. What one
        row loses is charged for a group of so many.
    declared : bool
        Named by ``[units]``; other tables may hold the same people.
    at_least : int, optional
        How many units there are at least, as the policy has it from public knowledge.
    """

    name: str
    by: str
    rows: int = 1
    declared: bool = False
    at_least: int | None = None


def read_units(sections: Mapping[str, Any]) -> dict[str, DeclaredUnit]:
    """Read ``[units]``: every table belongs to one unit at most.

    Raises
    ------
    PolicyError
        Where a field is malformed, or a table stands twice.
    """
    found: dict[str, DeclaredUnit] = {}
    seen: dict[str, str] = {}
    for name, body in sections.items():
        part = Reader(body, f"units.{name}")
        if not name.strip() or not name.isprintable() or len(name) > LONGEST:
            raise PolicyError(f"units.{name!r}: a unit's name is printable text, such as 'patient'")
        columns = Reader(part.section("columns"), f"{part.where}.columns")
        rows = Reader(part.section("rows"), f"{part.where}.rows")
        at_least = part.whole("units_at_least", MOST_UNITS)
        part.finish()
        unit = DeclaredUnit(
            name,
            {table: columns.required_text(table) for table in part.section("columns")},
            {table: rows.whole(table) or 1 for table in part.section("rows")},
            at_least,
        )
        if not unit.columns and not unit.rows:
            raise PolicyError(
                f'{part.where} names no table: write columns = {{ TABLE = "COLUMN" }}, the '
                "column that says who is protected"
            )
        for table in (*unit.columns, *unit.rows):
            if table in seen:
                raise PolicyError(
                    f"{part.where} names table {table!r}, which units.{seen[table]} names already: "
                    "the rows of a table belong to one unit"
                )
            seen[table] = name
        found[name] = unit
    return found


def check_units(
    units: Mapping[str, DeclaredUnit], tables: Mapping[str, Any], *, replace_one: bool
) -> None:
    """Hold ``[units]`` against the tables that there are.

    Raises
    ------
    PolicyError
        Where a unit names a table that is not there or is public, counts rows of one that has a
        unit's column, or counts rows under neighbours that replace a unit.
    """
    for unit in units.values():
        for field, names in (("columns", unit.columns), ("rows", unit.rows)):
            for name in names:
                where = f"units.{unit.name}.{field}"
                if name not in tables:
                    raise PolicyError(f"{where}: no table {name!r}" + nearest(name, tables))
                if not tables[name].private:
                    raise PolicyError(f"{where}: table {name!r} is public, and protects nobody")
                if field == "rows" and tables[name].unit is not None:
                    raise PolicyError(
                        f"{where}: table {name!r} has a column that says whose a row is "
                        f"({tables[name].unit!r}); name it under columns instead"
                    )
                if field == "rows" and replace_one:
                    raise PolicyError(
                        f'{where} needs neighbours = "add_remove": replacing rows cannot turn a '
                        "unit of three rows into one of two, so nothing follows for a unit"
                    )


def unit_of(
    table: str,
    column: str | None,
    units: Mapping[str, DeclaredUnit],
    at_least: int | None = None,
) -> TableUnit:
    """The unit of a private table whose unit column is ``column``.

    ``at_least``: how many units the table has at least, by what the policy says of it.

    Examples
    --------
    >>> unit_of("visits", "patient_id", {}).name, unit_of("people", None, {}).name
    ('patient_id of visits', 'row of people')
    """
    by = "each row" if column is None else f"column {column}"
    for unit in units.values():
        known = max(filter(None, (unit.at_least, at_least)), default=None)
        if table in unit.columns:
            return TableUnit(unit.name, by, declared=True, at_least=known)
        if table in unit.rows:
            most = unit.rows[table]
            by = f"at most {most} rows"
            return TableUnit(unit.name, by, most, declared=True, at_least=known)
    name = f"row of {table}" if column is None else f"{column} of {table}"
    if name in units:
        raise PolicyError(
            f"units.{name} has the name that table {table!r} gives its own unit; name {table!r} in "
            "it, or give it another name"
        )
    if not name.isprintable() or len(name) > LONGEST:
        raise PolicyError(
            f"tables.{table}: give its unit a printable name of at most {LONGEST} characters, in "
            "[units.NAME]"
        )
    return TableUnit(name, by, at_least=at_least)
