"""Drafting a policy from a source's schema: names and types, never values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path
from typing import Any

from dither._environment import secret
from dither.engines import TableSource, backend
from dither.engines.files import is_many
from dither.errors import PolicyError, nearest
from dither.plan.schema import Kind
from dither.policy._fields import Reader
from dither.policy._identifying import person_keys
from dither.policy._places import as_path, read_source
from dither.policy.steps._editing import toml_key as _key
from dither.policy.steps._editing import toml_text as _quoted

__all__ = ["UnitMissing", "draft_policy", "draft_table"]

HINTS = {
    Kind.INTEGER: "bounds = [0, 100]    or    values = [1, 2, 3]",
    Kind.REAL: "bounds = [0, 100], step = 0.01",
    Kind.TEXT: 'values = ["a", "b"]',
    Kind.DATE: "bounds = [2020-01-01, 2025-12-31]",
    Kind.TIMESTAMP: "bounds = [2020-01-01T00:00:00, 2025-12-31T23:59:59]",
    Kind.BOOLEAN: "",
}


class UnitMissing(PolicyError):
    """A draft would protect rows, and the table has columns that look like a person's key."""

    def __init__(self, message: str, columns: Sequence[str]) -> None:
        super().__init__(message)
        self.columns = tuple(columns)


DELIMITERS = (";", "\t", "|")

UNTYPED = (
    "# A CSV file has no types: what is not text needs one, as in",
    '# age = { type = "integer", bounds = [0, 110] }',
)


UNNAMED = (
    "# JSON lines carry no schema, and no value is read: name each member that is asked about.",
    '# age = { type = "integer", bounds = [0, 110] }',
)

KEYED = (
    "# Keys in the names of folders are text: what is not needs a type, as in",
    '# year = { type = "integer", bounds = [2015, 2030] }',
)


def draft_policy(
    source: str | Path | Mapping[str, str],
    *,
    table: str | None = None,
    unit: str | None = None,
    by_row: bool = False,
) -> str:
    """Draft a policy for one table.

    Parameters
    ----------
    source : path or mapping
        A Parquet, CSV, JSON lines or Arrow file, a pattern or a folder of such files, a DuckDB
        database, or what a policy would say of another engine:
        ``{"postgres": "env:HOSPITAL_DSN", "table": "public.visits"}``. Only its schema is read.
    table : str, optional
        The table's name in queries (in a DuckDB database also the table read); the name of the file
        or of the table read where left out.
    unit : str, optional
        The column that says who is protected; a row is a person where left out.
    by_row : bool
        Each row is another person, although a column looks like a person's key.

    Returns
    -------
    str
        TOML that opens as it stands: every column is listed, with what can be declared of it in a
        comment. Facts come from the owner's knowledge, since facts read from the data would reveal
        some of the data.

    Raises
    ------
    PolicyError
        Where the source is missing or cannot be read, or has no such unit; where neither a unit nor
        ``by_row`` is given, and a column looks like a person's key, such as ``patient_id``: what
        the ledger is first charged for, it stays bound to.
    """
    if unit is not None and by_row:
        raise PolicyError("unit and by_row contradict each other; leave one of them out")
    if isinstance(source, Mapping):
        return _of_engine(source, table, unit, by_row)
    path = as_path(source, "SOURCE")
    found = _described(path, source, table)
    _check_unit(unit, path.name, found.columns, by_row)
    return _draft(found.lines, found.name, unit, found.columns, found.remarks, by_row)


def draft_table(path: Path, shown: str, table: str | None = None) -> tuple[str, str]:
    """The section of one more table in a policy: its name, and the text with every column.

    Parameters
    ----------
    path : Path
        Of a file whose schema is read.
    shown : str
        How the policy calls it.
    table : str, optional
        As of `draft_policy`.

    Raises
    ------
    PolicyError
        The file cannot be read.
    """
    found = _described(path, shown, table)
    lines = [f"source = {_quoted(shown)}", *found.lines[1:]]
    text = [f"[tables.{_key(found.name)}]", *lines, "", f"[tables.{_key(found.name)}.columns]"]
    return found.name, "\n".join([*text, *found.remarks, *_listed(found.columns, None)]) + "\n"


@dataclass(frozen=True, slots=True)
class DescribedSource:
    """What a file's schema says: the table's name, lines of its section, columns and remarks."""

    name: str
    lines: list[str]
    columns: Mapping[str, Kind | None]
    remarks: tuple[str, ...]


def _described(path: Path, source: str | Path, table: str | None) -> DescribedSource:
    engine = backend("duckdb")
    if not is_many(path) and not path.is_file():
        raise PolicyError(f"no file {str(source)!r}")
    form = engine.format_of(path, None, "SOURCE")
    plain = [part for part in path.parts if not has_magic(part) and part != path.anchor]
    name = table or _table_name(plain[-1].split(".")[0] if plain else "")
    if form == "jsonl":
        # What lines of JSON hold, only their values say.
        return DescribedSource(name, [f"source = {_quoted(str(path))}"], {}, UNNAMED)

    def described(delimiter: str) -> dict[str, Kind | None]:
        inner = name if engine.formats[form].holds_tables else None
        with engine.open({name: TableSource(path, form, inner, delimiter)}, {}) as opened:
            return dict(opened.describe(name))

    delimiter = ","
    columns = described(delimiter)
    if form == "csv" and len(columns) == 1:
        # One column whose name holds another delimiter is a file cut at that one.
        delimiter = next((d for d in DELIMITERS if d in next(iter(columns))), ",")
        columns = described(delimiter) if delimiter != "," else columns
    untyped = UNTYPED if form == "csv" else KEYED if is_many(path) else ()
    lines = [f"source = {_quoted(str(path))}"]
    if delimiter != ",":
        lines.append(f"delimiter = {_quoted(delimiter)}")
    return DescribedSource(name, lines, columns, untyped)


def _of_engine(source: Mapping[str, str], table: str | None, unit: str | None, by_row: bool) -> str:
    """A draft for a table of an engine that the source names."""
    declared = read_source(Reader({"source": dict(source)}, "SOURCE"), "duckdb")
    if not isinstance(declared.source, str):
        raise PolicyError("SOURCE must be one name; add further files to the draft")
    inner = declared.table or table
    if inner is None:
        raise PolicyError("SOURCE.table is missing: say which table is meant, as in public.visits")
    name = table if table and table != inner else _table_name(inner.split(".")[-1])
    engine = backend(declared.engine)
    form = engine.format_of(declared.source, declared.format, "SOURCE")
    held: Any = declared.source
    if engine.formats[form].secret:
        held = secret(declared.source, declared.where)
    with engine.open({name: TableSource(held, form, inner, None, unit)}, {}) as opened:
        columns = dict(opened.describe(name))
    _check_unit(unit, inner, columns, by_row)
    fields = {declared.engine: declared.source, "table": inner, "format": declared.format}
    shown = ", ".join(f"{field} = {_quoted(text)}" for field, text in fields.items() if text)
    return _draft([f"source = {{ {shown} }}"], name, unit, columns, (), by_row)


def _check_unit(
    unit: str | None, shown: str, columns: Mapping[str, Kind | None], by_row: bool
) -> None:
    if unit is not None and unit not in columns:
        raise PolicyError(f"unit: {shown} has no column {unit!r}" + nearest(unit, columns))
    alike = [] if unit is not None or by_row else person_keys(columns)
    if alike:
        listed = " and ".join(map(repr, alike))
        raise UnitMissing(
            f"unit: {shown} has {listed}, which may say whose a row is, and without a unit each "
            f"row is protected by itself, not each person; say unit={alike[0]!r}, or by_row=True "
            "where no person has more than one row",
            alike,
        )


def _table_name(found: str) -> str:
    """A name for queries that needs no quotes."""
    name = re.sub(r"\W+", "_", found).strip("_") or "data"
    return name if name[0].isalpha() else f"table_{name}"


def _draft(
    source: list[str],
    name: str,
    unit: str | None,
    columns: Mapping[str, Kind | None],
    remarks: tuple[str, ...],
    by_row: bool,
) -> str:
    lines = [
        "# What is public about the data, and what may be spent. Every fact here must come from",
        "# what you know without looking at the values: a codebook, a form, the law.",
        "",
        "[budget]",
        "epsilon = 1.0               # the most that all releases together may cost",
        "delta = 1e-6                # below one over the number of people; 0 for a pure budget",
        f"ledger = {_quoted(name + '.ledger')}",
        "",
        f"[tables.{_key(name)}]",
        *source,
    ]
    if by_row:
        lines += [
            "",
            "[units.person]             # no person has more than one row of the table",
            f"rows = {{ {_key(name)} = 1 }}",
        ]
    elif unit is None:
        lines += [
            '# unit = "..."             # the column that says who is protected; without it a row',
            "#                          # is a person. With it, also say:",
            "# max_groups = 3           # groups of a GROUP BY that one person may count in",
            "# max_rows = 5             # rows that count per person and group",
        ]
    else:
        lines += [
            f"unit = {_quoted(unit)}",
            "max_groups = 1             # groups of a GROUP BY that one person may count in",
            "max_rows = 1               # rows that count per person and group",
        ]
    lines += [
        "",
        f"[tables.{_key(name)}.columns]",
        "# nullable = false where NULL never occurs: means then share one count.",
        *remarks,
    ]
    return "\n".join([*lines, *_listed(columns, unit)]) + "\n"


def _listed(columns: Mapping[str, Kind | None], unit: str | None) -> Iterator[str]:
    """A line for each column, with what can be declared of it in a comment."""
    for column, kind in columns.items():
        if column == unit:
            continue
        if kind is None:
            yield f"# {_key(column)}: not read; store it as text, numbers or dates"
            continue
        hint = f"   # {kind.value}; {HINTS[kind]}" if HINTS[kind] else f"   # {kind.value}"
        yield f"{_key(column)} = {{}}{hint}"
