"""What the adversary of the soundness tests controls, and the sources that it is given.

The adversary chooses, as it likes and knowing everything:

- every value of every row of its own unit, in every private table: NULL, NaN, infinities, values
  outside of what is declared, spellings of other people's identifiers, as many rows as it wants;
- all other rows too, and their order: a guarantee holds for every neighbour, not for likely ones;
- the question, among all that are offered, and the limits of the policy;
- what is declared of the data, which may be false: bounds, values, nullability, uniqueness, and a
  type that is not the stored one. Declared facts are promises of nobody; no guarantee rests on one;
- the format of a source and its writer, and so the statistics and row groups inside of a file.

It sees the exact answer's distance between neighbours, not only noise: whatever it does, an answer
may move by what the plan claims and not further, and no run may fail.

It does not control the names and stored types of columns (they are public, and held against the
file at each read), the bytes of a file beyond what the named writers write (one of them writes
text that is not UTF-8), the machine, the key of the hash, or the noise. Neighbours have the same
names and types.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from dither.engines.duckdb import FileSource
from dither.plan.schema import ColumnFacts, Kind, Schema
from engines.hostile import TYPES
from soundness.tables import (
    DOCTOR_ROWS,
    HOSTILE,
    PUBLIC,
    TARGET,
    WARD_ROWS,
    Pair,
    Row,
    drawn_row,
    schema_of,
)

# --- who is protected ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Units:
    """How the unit is stored and read, the adversary's own, and those of others beside it."""

    stored: pl.DataType | type[pl.DataType]
    kind: Kind
    target: Any
    others: Sequence[Any]


UNITS = {
    "integer": Units(pl.Int64, Kind.INTEGER, TARGET, (*HOSTILE["u"], 7, None)),
    "integer as text": Units(pl.Int64, Kind.TEXT, TARGET, (0, 7, 770, -77, None)),
    "text": Units(
        pl.String, Kind.TEXT, "77", ("077", "77.0", "77 ", " 77", "7.7e1", "", "é", None)
    ),
    "real": Units(
        pl.Float64, Kind.REAL, 77.0, (0.0, -0.0, 77.00000000000001, float("nan"), 5e-324, None)
    ),
}

# --- what is declared, and false ------------------------------------------------------------------


def lying(schema: Schema, units: Units, lies: Sequence[str]) -> Schema:
    """The schema with the unit's kind, and with facts that the rows do not keep to."""

    def told(facts: ColumnFacts) -> ColumnFacts:
        if "nullable" in lies:
            facts = replace(facts, nullable=False)
        if "bounds" in lies and facts.name in ("i", "x") and facts.lower is not None:
            facts = replace(facts, lower=facts.lower + 1, upper=facts.lower + 2, step=None)
        if "values" in lies and facts.name == "w":
            facts = replace(facts, values=("a", "nobody's"))
        return facts

    tables = {}
    for name, table in schema.tables.items():
        columns = {c: told(f) for c, f in table.columns.items()}
        if "u" in columns:
            columns["u"] = ColumnFacts("u", units.kind)
        tables[name] = replace(table, columns=columns)
    return replace(schema, tables=tables)


LIES = ("nullable", "bounds", "values", "types", "unique")


# --- rows ----------------------------------------------------------------------------------------


def drawn_files(seed: int, units: Units, *, replace_one: bool, most: int, calm: bool) -> Pair:
    """Neighbours that differ in one unit of visits and labs, and in one row of people.

    ``calm``: the rows of others hold two values in each column, so that the statistics of a file
    are narrow, and the adversary's rows widen them.
    """
    source = random.Random(seed)
    few = {name: [source.choice(values), source.choice(values)] for name, values in HOSTILE.items()}
    others: dict[str, list[Row]] = {}
    for table in ("visits", "labs", "people"):
        rows = [
            drawn_row(table, source.choice(units.others), source)
            for _ in range(source.randrange(40))
        ]
        if calm:
            rows = [
                {n: v if n == "u" else source.choice(few[n]) for n, v in row.items()}
                for row in rows
            ]
        others[table] = rows

    def version(present: bool) -> dict[str, list[Row]]:
        made: dict[str, list[Row]] = {}
        for table, rows in others.items():
            count = 1 if table == "people" else 1 + source.randrange(most)
            own = [drawn_row(table, units.target, source) for _ in range(count)]
            made[table] = [*rows, *(own if present else [])]
            source.shuffle(made[table])
        return made

    return Pair(version(True), version(replace_one))


def public(lies: Sequence[str]) -> dict[str, list[Row]]:
    """The public tables, with keys that occur twice where they are falsely said to be unique."""
    if "unique" not in lies:
        return dict(PUBLIC)
    again = [row | {"label": "x", "weight": 2.5} for row in DOCTOR_ROWS]
    return {"doctors": [*DOCTOR_ROWS, *again], "wards": WARD_ROWS * 2}


def stored(name: str, rows: Sequence[Row], units: Units, as_text: Sequence[str]) -> pl.DataFrame:
    """Rows as a frame of the types that they are stored in; ``as_text``: these columns are text."""
    columns = {}
    for column, facts in schema_of().table(name).columns.items():
        values = [row[column] for row in rows]
        kind = units.stored if column == "u" else TYPES[facts.kind]
        if column in as_text and column != "u":
            values = [None if v is None else str(v) for v in values]
            kind = pl.String
        columns[column] = pl.Series(column, values, kind, strict=False)
    return pl.DataFrame(columns)


# --- writers --------------------------------------------------------------------------------------

Writer = Callable[[Path, pl.DataFrame, int], Any]


def _database(path: Path, made: pl.DataFrame, view: str) -> FileSource:
    file = path.with_suffix(".duckdb")
    file.unlink(missing_ok=True)
    with duckdb.connect(str(file)) as connection:
        connection.register("made", made.to_arrow())
        connection.execute("CREATE TABLE kept AS SELECT * FROM made")
        if view:
            connection.execute(f"CREATE VIEW seen AS SELECT * FROM kept{view}")
    return FileSource(file, "duckdb", "seen" if view else "kept")


def _condition(made: pl.DataFrame) -> str:
    """A condition over whatever the table has."""
    by = {"w": "w <> 'a' OR b IS NULL", "v": "v IS NOT NULL", "label": "label IS NOT NULL"}
    by["beds"] = "kind IS NOT NULL"
    return next(f" WHERE {condition}" for column, condition in by.items() if column in made.columns)


def _by_polars(path: Path, made: pl.DataFrame, group: int) -> Path:
    made.write_parquet(path.with_suffix(".parquet"), row_group_size=group)
    return path.with_suffix(".parquet")


def _by_pyarrow(path: Path, made: pl.DataFrame, group: int) -> Path:
    pq.write_table(made.to_arrow(), path.with_suffix(".parquet"), row_group_size=group)
    return path.with_suffix(".parquet")


BROKEN = {
    **{"77": b"7\xff", "7.7e1": b"7\xfe", "7": b"\xff", "7.4": b"\xfe"},
    **{"é": b"\xe9", "😀": b"\xf0\x9f", "e\u0301": b"\xff", "a ": b"a\xff"},
}
"""Texts that a careless writer spells in bytes that are not UTF-8; several would read alike."""


def _by_careless_pyarrow(path: Path, made: pl.DataFrame, group: int) -> Path:
    table = made.to_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_large_string(field.type) or pa.types.is_string(field.type):
            texts = table.column(place).to_pylist()
            raw = [None if t is None else BROKEN.get(t, t.encode()) for t in texts]
            held = pa.array(raw, pa.large_binary())
            broken = pa.Array.from_buffers(pa.large_string(), len(held), held.buffers())
            table = table.set_column(place, field.name, broken)
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=group)
    return path.with_suffix(".parquet")


def _in_milliseconds(path: Path, made: pl.DataFrame, group: int) -> Path:
    table = made.to_arrow()
    kinds = [
        pa.timestamp("ms") if pa.types.is_timestamp(field.type) else field.type
        for field in table.schema
    ]
    table = table.cast(pa.schema(zip(table.column_names, kinds, strict=True)), safe=False)
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=group)
    return path.with_suffix(".parquet")


def _by_pandas(path: Path, made: pl.DataFrame, group: int) -> Path:
    frame = made.to_pandas(use_pyarrow_extension_array=True)
    frame.to_parquet(path.with_suffix(".parquet"), row_group_size=group)
    return path.with_suffix(".parquet")


def _by_duckdb(path: Path, made: pl.DataFrame, group: int) -> Path:
    with duckdb.connect() as connection:
        connection.register("made", made.to_arrow())
        connection.execute(f"COPY made TO '{path.with_suffix('.parquet')}' (FORMAT parquet)")
    return path.with_suffix(".parquet")


def _csv(path: Path, made: pl.DataFrame, group: int) -> Path:
    made.write_csv(path.with_suffix(".csv"))
    return path.with_suffix(".csv")


def _objects(path: Path, made: pl.DataFrame, group: int) -> pd.DataFrame:
    return pd.DataFrame({c: pd.Series(made[c].to_list(), dtype=object) for c in made.columns})


WRITERS: Mapping[str, Writer] = {
    "a Polars frame": lambda path, made, group: made,
    "an Arrow table": lambda path, made, group: made.to_arrow(),
    "a pandas frame": lambda path, made, group: made.to_pandas(use_pyarrow_extension_array=True),
    "a pandas frame of objects": _objects,
    "Parquet by Polars": _by_polars,
    "Parquet by pyarrow": _by_pyarrow,
    "Parquet by pyarrow, of text that is not UTF-8": _by_careless_pyarrow,
    "Parquet by pyarrow, in milliseconds": _in_milliseconds,
    "Parquet by pandas": _by_pandas,
    "Parquet by DuckDB": _by_duckdb,
    "CSV": _csv,
    "a DuckDB table": lambda path, made, group: _database(path, made, ""),
    "a DuckDB view": lambda path, made, group: _database(path, made, " AS every"),
    "a DuckDB view with a condition": lambda path, made, group: _database(
        path, made, _condition(made)
    ),
}

ONLY_TEXT = ("CSV", "a pandas frame of objects")
"""Sources whose columns are all text, the unit too."""
