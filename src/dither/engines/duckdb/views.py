"""Tables and views of a DuckDB database, of which only what takes each row by itself is read.

A view may hide what no sensitivity accounts for: a LIMIT, a window or a sample makes one person's
row decide which rows of others are there; a cast that fails on one value makes the whole release
fail. So a view is read only where it is shown that each of its rows comes from one row of one base
table, by expressions that cannot fail. What has been shown is written out anew and read in the
view's place, down to the base table: what the view's own text would do no longer matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from dither.engines.duckdb.view_expressions import Columns, Expressions
from dither.engines.writer import forms
from dither.errors import PolicyError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Rowwise", "rowwise"]

DEEPEST = 16
"""Views of views, at most."""


@dataclass(frozen=True, slots=True)
class Rowwise:
    """A query each of whose rows comes from one row of one base table.

    Parameters
    ----------
    select : Select
    columns : Columns
    filtered : bool
        Whether rows of the base table may be left out.
    """

    select: exp.Select
    columns: Columns
    filtered: bool

    @property
    def base(self) -> str:
        """The base table, with its schema."""
        (table,) = (t for t in self.select.find_all(exp.Table) if t.catalog)
        return f"{table.db}.{table.name}"


def rowwise(
    connection: DuckDBPyConnection, database: str, schema: str, name: str, depth: int = 0
) -> Rowwise:
    """A base table, or a view that is shown to take each row by itself.

    Raises
    ------
    PolicyError
        Where it is neither: says which part of the view is in the way, and what to do.
    """
    found = connection.execute(
        "SELECT sql FROM duckdb_views() WHERE database_name = ? AND schema_name = ? "
        "AND view_name = ?",
        [database, schema, name],
    ).fetchone()
    if found is None:
        return _base_table(connection, database, schema, name)
    if depth >= DEEPEST:
        raise _refusal(name, f"it reads through more than {DEEPEST} other views")
    try:
        trees = sqlglot.parse(found[0], read="duckdb")
    except Exception:
        raise _refusal(name, "its definition is not understood") from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Create):
        raise _refusal(name, "its definition is not understood")
    try:
        return _View(connection, database, schema, name, depth).read(trees[0])
    except RecursionError:
        raise _refusal(name, "its definition is nested too deeply") from None


def _refusal(name: str, why: str) -> PolicyError:
    return PolicyError(
        f"the view {name!r} cannot be protected: {why}. A view is read only where each of its "
        "rows is made of one row of one table, by plain columns and conditions that cannot fail; "
        "name the table itself as the source, and put conditions and expressions into the query"
    )


def _base_table(connection: DuckDBPyConnection, database: str, schema: str, name: str) -> Rowwise:
    place = [database, schema, name]
    of_it = "WHERE database_name = ? AND schema_name = ? AND table_name = ?"
    (made,) = connection.execute(f"SELECT sql FROM duckdb_tables() {of_it}", place).fetchone() or (
        "",
    )
    columns = connection.execute(
        f"SELECT column_name, data_type FROM duckdb_columns() {of_it} ORDER BY column_index", place
    ).fetchall()
    generated = _generated(made or "")
    collated = "COLLATE" in (made or "").upper()
    read = []
    for column, kind in columns:
        node = forms.identifier(column)
        if collated and kind == "VARCHAR":
            # Compared with a collation, texts that differ are one, and which of them a group is
            # shown as would depend on the order of rows.
            node = exp.Collate(this=node, expression=exp.to_identifier("binary", quoted=True))
        read.append(forms.named(node, column))
    source = exp.Table(
        this=exp.to_identifier(name, quoted=True),
        db=exp.to_identifier(schema, quoted=True),
        catalog=exp.to_identifier(database, quoted=True),
    )
    computed = frozenset(column for column, _ in columns if column in generated)
    return Rowwise(exp.select(*read).from_(source), Columns(dict(columns), computed), False)


def _generated(made: str) -> set[str]:
    """The columns of a table that are computed from others."""
    if "GENERATED" not in made.upper():
        return set()
    try:
        tree = sqlglot.parse_one(made, read="duckdb")
        return {
            column.name
            for column in tree.find_all(exp.ColumnDef)
            if any("GENERATED" in part.sql(dialect="duckdb").upper() for part in column.constraints)
        }
    except Exception:
        raise PolicyError(
            "a table with generated columns is not understood; name a table without"
        ) from None


class _View:
    """Reads one view's definition, and refuses what is not on the list."""

    def __init__(
        self, connection: DuckDBPyConnection, database: str, schema: str, name: str, depth: int
    ) -> None:
        self._connection = connection
        self._database = database
        self._schema = schema
        self._name = name
        self._depth = depth

    def read(self, create: exp.Create) -> Rowwise:
        select = create.expression
        if not isinstance(select, exp.Select):
            raise self._refuse("it is not one plain SELECT")
        for part, value in select.args.items():
            if value and part not in ("expressions", "from", "from_", "where"):
                raise self._refuse(f"it has {_named(part)}")
        source, alias = self._from(select)
        total = Expressions(source.columns, alias, self._refuse)
        columns = [column for node in select.expressions for column in total.columns(node)]
        titles = create.this.expressions if isinstance(create.this, exp.Schema) else []
        names = [*(t.name for t in titles), *(c.name for c in columns[len(titles) :])]
        if len({name.casefold() for name in names}) < len(columns):
            raise self._refuse("two of its columns have one name")
        made = exp.select(*(forms.named(c.node, n) for c, n in zip(columns, names, strict=True)))
        made = made.from_(source.select.subquery("t", copy=False), copy=False)
        where = select.args.get("where")
        if where is not None:
            made = made.where(total.condition(where.this), copy=False)
        kinds = {n: c.kind or "VARCHAR" for c, n in zip(columns, names, strict=True)}
        computed = frozenset(n for c, n in zip(columns, names, strict=True) if not c.plain)
        filtered = where is not None or source.filtered
        return Rowwise(made, Columns(kinds, computed), filtered)

    def _refuse(self, why: str) -> PolicyError:
        return _refusal(self._name, why)

    def _from(self, select: exp.Select) -> tuple[Rowwise, str]:
        """The one table or view below, and the name it goes by."""
        clause = select.args.get("from") or select.args.get("from_")
        table = clause.this if isinstance(clause, exp.From) else None
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            raise self._refuse(_NO_TABLE)
        for part, value in table.args.items():
            if value and part not in ("this", "db", "alias"):
                raise self._refuse(f"its table has {_named(part)}")
        alias = table.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise self._refuse("it gives its table's columns other names")
        schemas = [table.db] if table.db else list(dict.fromkeys([self._schema, "main"]))
        for schema in schemas:
            found = self._connection.execute(
                "SELECT table_schema, table_name FROM information_schema.tables "
                "WHERE table_catalog = ? AND lower(table_schema) = lower(?) "
                "AND lower(table_name) = lower(?)",
                [self._database, schema, table.name],
            ).fetchone()
            if found is not None:
                below = rowwise(
                    self._connection, self._database, found[0], found[1], self._depth + 1
                )
                return below, table.alias or table.name
        raise self._refuse(_NO_TABLE)


_NO_TABLE = "it does not read one table of its own database (but a join, a file or a function, say)"


def _named(part: str) -> str:
    return _PARTS.get(part, part.strip("_").upper())


_PARTS = {
    "catalog": "the name of another database",
    "distinct": "DISTINCT",
    "group": "GROUP BY",
    "having": "HAVING",
    "joins": "a join",
    "laterals": "a join",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "order": "ORDER BY",
    "pivots": "a pivot",
    "qualify": "a window (QUALIFY)",
    "sample": "a sample",
    "windows": "a window",
    "with_": "WITH",
}
