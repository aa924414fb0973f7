"""Blocks of a table as a policy declares them: a column, and how it is cut.

``[tables.visits] block = { column = "day", every = "month" }`` says in which block a row is, and
``[budget] per = "block"`` that the budget is one of each block. Which block a value is in follows
from what is written here and from nothing that the data hold.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dither.blocks._calendar import EVERY, Calendar
from dither.errors import PolicyError, QueryError, nearest
from dither.plan.schema import ColumnFacts, Kind
from dither.policy._canonical import policy_digest
from dither.policy._fields import Reader
from dither.policy._units import OF_BLOCKS
from dither.sql.dates import read_date

if TYPE_CHECKING:
    from dither.policy._policy import DeclaredTable
    from dither.policy._units import TableUnit

__all__ = ["DeclaredBlock", "block_of", "calendars_of", "read_block", "units_in_blocks"]

MOST = 10_000
"""Edges, or values, that may be declared."""

FARTHEST = 2**62


@dataclass(frozen=True, slots=True)
class DeclaredBlock:
    """``block`` of a table: its column, and the calendar that cuts it."""

    column: str
    calendar: Calendar


def read_block(body: Reader) -> DeclaredBlock | None:
    """Read ``block`` of a table.

    Raises
    ------
    PolicyError
        Where it lacks its column, or is not cut in one of the three ways.
    """
    if body.take("block") is None:
        return None
    part = Reader(body.section("block"), body.name("block"))
    column = part.required_text("column")
    given = [field for field in ("every", "edges", "values") if part.take(field) is not None]
    if len(given) != 1:
        which = " and ".join(given) if given else "neither"
        raise PolicyError(
            f'{part.where} must say how {column} is cut by one of every = "month", edges = [...] '
            f"and values = [...]; it has {which}"
        )
    if given == ["every"]:
        calendar = Calendar(every=part.choice("every", EVERY, EVERY[0]))
    elif given == ["edges"]:
        calendar = Calendar(edges=_edges(part))
    else:
        calendar = Calendar(values=_values(part))
    part.finish()
    return DeclaredBlock(column, calendar)


def _edges(part: Reader) -> tuple[Any, ...]:
    where = part.name("edges")
    found: list[Any] = []
    for one in _listed(part, "edges"):
        edge = one
        if isinstance(one, str):
            with suppress(QueryError):
                edge = read_date(one)
        if isinstance(edge, dt.datetime | str | bool):
            raise PolicyError(
                f"{where} must be dates, such as 2024-01-31, or numbers: a block of time begins "
                "with a day"
            )
        if not isinstance(edge, dt.date):
            number = part.exact(edge, "edges")
            if abs(number) > FARTHEST:
                raise PolicyError(f"{where} lie too far out; stay within ±2^62")
            # Engines compare reals as doubles, so an edge is one.
            edge = number if number.denominator == 1 else Fraction(float(number))
        found.append(edge)
    if len({isinstance(edge, dt.date) for edge in found}) > 1:
        raise PolicyError(f"{where} mixes dates and numbers; keep those of the column's kind")
    for place, (low, high) in enumerate(pairwise(found), start=2):
        if low >= high:
            raise PolicyError(
                f"{where} must rise: its element {place} is not above the one before, so that two "
                "blocks would overlap; put them in order, each once"
            )
    return tuple(found)


def _values(part: Reader) -> tuple[Any, ...]:
    found = _listed(part, "values")
    texts = all(isinstance(one, str) for one in found)
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in found)
    if not (texts or whole):
        raise PolicyError(
            f"{part.name('values')} must all be texts, or all whole numbers; cut dates and other "
            "numbers with edges"
        )
    if whole and any(abs(one) > FARTHEST for one in found):
        raise PolicyError(f"{part.name('values')} lie too far out; stay within ±2^62")
    return tuple(found)


def _listed(part: Reader, field: str) -> list[Any]:
    found = part.listed(field) or []
    if len(found) > MOST:
        raise PolicyError(f"{part.name(field)} has more than {MOST:,} elements; cut coarser blocks")
    return found


def units_in_blocks(
    tables: Mapping[str, DeclaredTable], units: Mapping[str, TableUnit], *, per_block: bool
) -> dict[str, TableUnit]:
    """The units of private tables, each table's with its column of blocks in what it is known by.

    Raises
    ------
    PolicyError
        Where blocks and the budget do not fit together, or two tables of a unit are cut otherwise.
    """
    for table in tables.values():
        where = f"tables.{table.name}.block"
        if table.block is None:
            continue
        if not table.private:
            raise PolicyError(
                f"{where} contradicts public = true: reading a public table costs nothing"
            )
        if not per_block:
            raise PolicyError(
                f'{where} has no meaning under one budget for all rows: add per = "block" to '
                "[budget], or leave it out"
            )
        if table.block.column == table.unit:
            raise PolicyError(
                f"{where}.column says whose a row is, and cannot say in which block it is as well; "
                "name a column such as the day of the row"
            )
    if per_block and not any(table.block for table in tables.values()):
        raise PolicyError(
            'budget.per = "block": no table has blocks; add one, such as '
            f'[tables.{next(iter(units))}] block = {{ column = "day", every = "month" }}'
        )
    calendars_of(tables, units)
    return {
        name: unit if (table := tables[name]).block is None else _known_by(unit, table)
        for name, unit in units.items()
    }


def _known_by(unit: TableUnit, table: DeclaredTable) -> TableUnit:
    """What says whose a row is, and in which block: the ledger holds a table to it.

    A row stays in its block. So what the column is read as belongs to it: read otherwise, what was
    NULL could be a day.
    """
    assert table.block is not None
    column = table.columns.get(table.block.column)
    reading: dict[str, Any] = dict(table.reading)
    if column is not None:
        reading |= dict(column.reading)
        reading |= {"type": column.kind and column.kind.value}
    told = {name: value for name, value in reading.items() if value is not None}
    as_read = f", read as {policy_digest(told)[:12]}" if told else ""
    return replace(unit, by=f"{unit.by}{OF_BLOCKS}{table.block.column}{as_read}")


def calendars_of(
    tables: Mapping[str, DeclaredTable], units: Mapping[str, TableUnit]
) -> dict[str, Calendar]:
    """By unit: how the rows of its tables are cut, where any of them has blocks.

    Raises
    ------
    PolicyError
        Where two of them are cut otherwise.
    """
    found: dict[str, tuple[str, Calendar]] = {}
    for name, unit in units.items():
        block = tables[name].block
        if block is None:
            continue
        first, calendar = found.setdefault(unit.name, (name, block.calendar))
        if calendar != block.calendar:
            raise PolicyError(
                f"tables.{name}.block and tables.{first}.block are cut otherwise, and both tables "
                f"are of {unit.name}, whose blocks have one budget each; cut both in one way"
            )
    return {unit: calendar for unit, (_, calendar) in found.items()}


def block_of(
    table: DeclaredTable,
    columns: Mapping[str, ColumnFacts],
    known: Mapping[str, Any],
    zoned: Collection[str] = (),
) -> tuple[str, Calendar] | None:
    """The column of blocks of a table, held against what its source has.

    Parameters
    ----------
    table : DeclaredTable
    columns : mapping of str to ColumnFacts
        Those of the table.
    known : mapping
        The columns of the source.
    zoned : collection of str
        Those that hold moments with a time zone.

    Raises
    ------
    PolicyError
        Where it is not there, or is of a kind that cannot be cut so.
    """
    block = table.block
    if block is None:
        return None
    name, calendar = block.column, block.calendar
    where = f"tables.{table.name}.block.column"
    facts = columns.get(name)
    if facts is None:
        raise PolicyError(
            f"{where}: the source has no column {name!r} that is read" + nearest(name, columns)
        )
    declared = table.columns.get(name)
    if declared is not None and declared.learned:
        raise PolicyError(
            f"{where}: what {name} holds is learned, so that it may be read otherwise tomorrow, "
            "and a row must stay in its block; declare it, or leave it out"
        )
    if name in zoned:
        raise PolicyError(
            f"{where}: {name} is a timestamp with a time zone, of which the day depends on where "
            "one stands; store a date, or a timestamp without a zone"
        )
    kind = facts.kind
    if calendar.every is not None and not kind.temporal:
        hint = (
            f"; if its text holds dates, declare [tables.{table.name}.columns] {name} = {{ type = "
            '"date" }'
            if kind is Kind.TEXT
            else "; cut it with edges or values"
        )
        raise PolicyError(
            f"tables.{table.name}.block.every is for dates and timestamps; {name} is {kind.value}"
            f"{hint}"
        )
    if calendar.edges is not None:
        dates = isinstance(calendar.edges[0], dt.date)
        if not (kind.temporal if dates else kind.numeric):
            held = "dates" if dates else "numbers"
            raise PolicyError(
                f"tables.{table.name}.block.edges are {held}; {name} is {kind.value}, and must be "
                "cut at values of its kind"
            )
        if kind is Kind.INTEGER and any(e.denominator != 1 for e in calendar.edges):
            raise PolicyError(
                f"tables.{table.name}.block.edges must be whole numbers: {name} is integer"
            )
    if calendar.values is not None:
        wanted = Kind.TEXT if isinstance(calendar.values[0], str) else Kind.INTEGER
        if kind is not wanted:
            raise PolicyError(
                f"tables.{table.name}.block.values are of kind {wanted.value}; {name} is "
                f"{kind.value}"
            )
    if facts.values is not None and set(facts.values) != set(calendar.values or ()):
        raise PolicyError(
            f"tables.{table.name}.columns.{name}.values: other values are read as NULL, so that a "
            "row would change its block with the list; declare the same list as block.values, or "
            "leave it out"
        )
    return name, calendar
