"""Tables of dummy rows, with keys that match where tables are joined.

*Units.* Tables of one unit share its identifiers, which are numbered from the first value that the
facts allow. A unit has some three rows in each table.

*Public tables.* What is declared unique is: each of its values occurs once, which may leave fewer
rows than were asked for. Columns of one name and kind have one set of values in all tables,
whichever of them says what these are; what is unique and of which nothing is said has every value
that a list of the policy has of its kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dither.numeric import SimulatedWords
from dither.plan.schema import ColumnFacts, Kind, Schema, Table
from dither.policy.dummies._columns import LONGEST, DummyColumn, StoredColumns

if TYPE_CHECKING:
    import numpy as np
    import polars as pl

__all__ = ["MOST_ROWS", "NOTICE", "dummy_table"]

NOTICE = "dummy rows: made from the policy's public facts; no row is real"
"""What dummy rows, and all that is made of them, say of themselves."""

MOST_ROWS = 1_000_000
ROWS_OF_A_UNIT = 3
SHORT = 400
"""Values between bounds, at most, that keys of other tables are taken from."""


def dummy_table(
    name: str, schema: Schema, stored: Mapping[str, StoredColumns], rows: int, seed: int
) -> pl.DataFrame:
    """Dummy rows of one table, from the schema alone.

    Parameters
    ----------
    name : str
    schema : Schema
        Of all tables: those that are joined share their keys.
    stored : mapping of str to StoredColumns
        By table: what its source's schema says of columns.
    rows : int
        How many, from 1; fewer where what is unique has fewer values.
    seed : int
        At least 0. One seed gives the same rows of a table, whichever others are made beside it.

    Returns
    -------
    polars.DataFrame
        Every column that a question may name, in its source's order.
    """
    import polars as pl

    tables = {t: _columns(table, stored[t]) for t, table in schema.tables.items()}
    table, columns = schema.table(name), tables[name]
    once = {key[0] for key in table.unique_keys if len(key) == 1}
    together = {column for key in table.unique_keys for column in key}
    keys = {column: _keys(column, name, tables, rows) for column in once}
    number = min([rows, *map(len, keys.values())])
    series = []
    for column in dict.fromkeys([*stored[name].kinds, *stored[name].lists]):
        generator = _generator(seed, name, column)
        if column in table.lists:
            series.append(_lists(column, table.lists[column], stored[name], number, generator))
        elif column in columns:
            made = columns[column]
            if column in keys:
                values = keys[column][:number]
            elif column == table.unit:
                among = _units(schema, table, tables).distinct(-(-rows // ROWS_OF_A_UNIT))
                values = [among[i] for i in generator.integers(0, len(among), number)]
            else:
                values = _alike(column, made, tables).drawn(number, generator)
                if column not in together:
                    values = _with_nulls(values, made.missing(number, generator))
            series.append(_series(column, made, made.as_stored(values)))
    frame = pl.DataFrame(series)
    for key in table.unique_keys:
        frame = frame.unique(subset=list(key), keep="first", maintain_order=True)
    return frame


def _columns(table: Table, stored: StoredColumns) -> dict[str, DummyColumn]:
    block, calendar = table.block or (None, None)
    return {
        name: DummyColumn.of(
            facts,
            stored.kinds[name],
            zoned=name in stored.zoned,
            labels=stored.labels.get(name, ()),
            calendar=calendar if name == block else None,
        )
        for name, facts in table.columns.items()
    }


def _alike(
    name: str, column: DummyColumn, tables: Mapping[str, Mapping[str, DummyColumn]]
) -> DummyColumn:
    """The column, with what another table says of one of its name, where its own says nothing."""
    if column.known:
        return column
    for other in tables.values():
        found = other.get(name)
        if found is not None and found.known and found.facts.kind is column.facts.kind:
            return found
    return column


def _keys(
    name: str, table: str, tables: Mapping[str, Mapping[str, DummyColumn]], rows: int
) -> list[Any]:
    """The values of a unique column, each once."""
    column = _alike(name, tables[table][name], tables)
    found: dict[Any, None] = {}
    if not column.known:
        others = [c for held in tables.values() for c in held.values()]
        for other in others:
            if other.facts.kind is column.facts.kind and other.known:
                values = other.distinct(SHORT)
                found |= dict.fromkeys(values if len(values) < SHORT or other.listed else ())
    found |= dict.fromkeys(column.distinct(rows))
    return list(found)[:rows]


def _units(
    schema: Schema, table: Table, tables: Mapping[str, Mapping[str, DummyColumn]]
) -> DummyColumn:
    """What is known of a unit's identifiers in any of its tables that stores them alike."""
    assert table.unit is not None
    own = tables[table.name][table.unit]
    for other in schema.tables.values():
        if other.unit is not None and other.unit_name == table.unit_name:
            found = tables[other.name][other.unit]
            if found.known and found.stored is own.stored and found.facts.kind is own.facts.kind:
                return found
    return own


def _lists(
    name: str, facts: ColumnFacts, stored: StoredColumns, number: int, generator: Any
) -> pl.Series:
    import polars as pl

    column = DummyColumn.of(facts, stored.lists[name], zoned=name in stored.zoned)
    most = min(facts.max_items or LONGEST, LONGEST)
    lengths = generator.integers(0, most, number, endpoint=True).tolist()
    of_elements = column.as_stored(column.drawn(sum(lengths), generator))
    missing = column.missing(number, generator)
    made: list[list[Any] | None] = []
    at = 0
    for length, none in zip(lengths, missing, strict=True):
        made.append(None if none else of_elements[at : at + length])
        at += length
    return pl.Series(name, made, dtype=pl.List(_dtype(column)))


def _series(name: str, column: DummyColumn, values: list[Any]) -> pl.Series:
    import polars as pl

    found = pl.Series(name, values, dtype=_dtype(replace(column, zoned=False)))
    return found.dt.replace_time_zone("UTC") if column.zoned else found


def _dtype(column: DummyColumn) -> Any:
    import polars as pl

    return {
        Kind.INTEGER: pl.Int64,
        Kind.REAL: pl.Float64,
        Kind.TEXT: pl.String,
        Kind.BOOLEAN: pl.Boolean,
        Kind.DATE: pl.Date,
        Kind.TIMESTAMP: pl.Datetime("us", "UTC" if column.zoned else None),
    }[column.stored]


def _with_nulls(values: list[Any], missing: list[bool]) -> list[Any]:
    return [None if none else value for value, none in zip(values, missing, strict=True)]


def _generator(seed: int, *path: str) -> np.random.Generator:
    """A generator of a column's own, so that a column has the same values beside any others."""
    text = "\x00".join([str(seed), *path]).encode()
    own = int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")
    return SimulatedWords(own).generator()
