"""The FROM clause: sqlglot's tables, queries and joins to relations of the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from dither.errors import QueryError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.relations import Named, Relation, Scan, renamed
from dither.plan.schema import Schema
from dither.sql.allow_list import Place, identifier, plain, refuse, take, title
from dither.sql.expressions import at, operands
from dither.sql.names import Names, find, find_table
from dither.sql.rows.joins import beside, check_alias, join, unnest

__all__ = ["Tables", "relation", "start"]


@dataclass(frozen=True, slots=True)
class Tables:
    """What a FROM may name: the tables of the policy, and the queries of a WITH before them.

    ``read`` reads a query in the FROM, under its alias.
    """

    schema: Schema
    read: Callable[[exp.Expr, str | None, Tables], Named]
    queries: Mapping[str, Named] = field(default_factory=dict)
    origins: dict[ex.Expression, object] = field(default_factory=dict)

    def names(self, rows: Relation, beside: Named | None = None) -> Names:
        """The columns of a relation."""
        return Names(rows, self.schema, beside, self.origins)

    def query(self, name: str, alias: str | None, *, exact: bool) -> Named | None:
        """The query of a WITH that a name means."""
        found = find(name, self.queries, exact=exact)
        return renamed(self.queries[found[0]], alias or found[0]) if found else None


def start(table: str, alias: str | None, schema: Schema, *, exact: bool = False) -> Scan:
    """The private table that a query starts from.

    Parameters
    ----------
    table : str
    alias : str, optional
        The name that columns use for it; its own where ``None``.
    schema : Schema
    exact : bool
        Whether upper and lower case matter, as in a quoted identifier.

    Raises
    ------
    UnknownNameError
        Where there is no such table.
    UnsupportedError
        Where it is public.
    """
    facts = find_table(table, schema, exact=exact)
    if not facts.private:
        raise UnsupportedError(
            f"FROM {facts.name}: the table is public and protects nobody, so it needs no noise; "
            "start FROM the private table and JOIN the public one to it"
        )
    return Scan(facts.name, alias or facts.name)


def relation(source: exp.Expr | None, joins: Sequence[exp.Join], tables: Tables) -> Relation:
    """The rows that a FROM clause names, before WHERE.

    Raises
    ------
    QueryError
        Naming the table or the join that cannot be asked.
    """
    if source is None:
        raise QueryError("the query has no FROM; name the table, as in SELECT ... FROM visits")
    (table,) = take(source, "FROM", "this")
    found: Relation
    query = _query(table, "FROM", tables)
    if query is not None:
        found = query
    else:
        name, alias, exact = _table(table, "FROM")
        found = start(name, alias, tables.schema, exact=exact)
    for node in joins:
        found = _join(found, node, tables)
    return found


def _query(node: exp.Expr, where: str, tables: Tables) -> Named | None:
    """A query in the FROM, or one of a WITH by its name; nothing where it is a table."""
    if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Table):
        this, alias = take(node, where, "this", "alias")
        return tables.read(this, None if alias is None else _alias(alias, where), tables)
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        name, alias, exact = _table(node, where)
        return tables.query(name, alias, exact=exact)
    return None


def _alias(node: exp.Expr, where: str) -> str:
    (short,) = take(node, where, "this")
    return identifier(short, where)[0]


def _table(node: exp.Expr, where: str) -> tuple[str, str | None, bool]:
    if not isinstance(node, exp.Table):
        refuse(node, where)
    this, alias = take(node, where, "this", "alias")
    if not isinstance(this, exp.Identifier):
        called = this.name.upper() if isinstance(this, exp.Anonymous) else title(this)
        raise UnsupportedError(
            f"{where}: {called.removeprefix('the function ')}(...) as a table is not offered; name "
            "a table of the policy"
        )
    name, exact = identifier(this, where)
    return name, None if alias is None else _alias(alias, where), exact


def _join(source: Relation, node: exp.Join, tables: Tables) -> Relation:
    where = "JOIN"
    if isinstance(node.this, exp.Unnest):
        return _unnest(source, node, tables)
    this, on, using, side, kind, method = take(
        node, where, "this", "on", "using", "side", "kind", "method"
    )
    words = [str(w).upper() for w in (method, side, kind) if w]
    if isinstance(this, exp.Lateral):
        refuse(this, where)
    if not words and on is None and using is None:
        raise UnsupportedError(
            "FROM: tables side by side (a comma, or JOIN without ON) are not offered; write "
            "JOIN ... ON a.x = b.y"
        )
    if words not in ([], ["INNER"], ["LEFT"], ["LEFT", "OUTER"]):
        raise UnsupportedError(
            f"{' '.join(words)} JOIN is not offered; write JOIN or LEFT JOIN, with ON a.x = b.y"
        )
    if on is None and using is None:
        raise QueryError("JOIN without ON: write JOIN ... ON a.x = b.y")
    if on is not None and using is not None:
        raise QueryError("JOIN: write either ON or USING, not both")
    joined: Named
    query = _query(this, where, tables)
    if query is not None:
        joined = query
        check_alias(source, joined)
    else:
        name, alias, exact = _table(this, where)
        joined = beside(source, name, alias, tables.schema, exact=exact)
    if using is not None:
        pairs = _using(using, tables.names(source), tables.names(joined))
    else:
        pairs = _on(on, at("JOIN ... ON", tables.names(source, joined)))
    return join(source, joined, pairs, "LEFT" in words, tables.schema)


def _unnest(source: Relation, node: exp.Join, tables: Tables) -> Relation:
    """``, UNNEST(x) AS t(y)``: also with CROSS JOIN before it, and LATERAL is what it means."""
    where = "UNNEST"
    this, kind, side, on = take(node, where, "this", "kind", "side", "on")
    truth = on is None or (isinstance(plain(on), exp.Boolean) and plain(on).this)
    if side or kind not in (None, "CROSS", "INNER") or not truth:
        raise UnsupportedError(
            "UNNEST: write FROM t, UNNEST(x) AS u(y), or CROSS JOIN UNNEST(x) AS u(y); rows whose "
            "list is empty are left out"
        )
    listed, alias = take(this, where, "expressions", "alias")
    if len(listed) != 1:
        raise UnsupportedError("UNNEST of several lists at once is not offered; write one for each")
    column = plain(listed[0])
    if not isinstance(column, exp.Column):
        refuse(column, where, "UNNEST takes a column that holds lists")
    name, table = take(column, where, "this", "table")
    (written, exact), owner = identifier(name, where), table and identifier(table, where)[0]
    if alias is None:
        raise QueryError(f"UNNEST({written}) needs a name: write UNNEST({written}) AS t(x)")
    # As in PostgreSQL, one name alone is that of the elements too; sqlglot has it as theirs alone.
    short, names = take(alias, where, "this", "columns")
    if len(names or ()) > 1:
        raise QueryError(f"UNNEST({written}) has one column: write UNNEST({written}) AS t(x)")
    own = identifier(names[0], where)[0] if names else identifier(short, where)[0]
    called = identifier(short, where)[0] if short is not None else own
    return unnest(source, (written, owner), called, own, tables.schema, exact=exact)


def _using(using: Sequence[exp.Expr], left: Names, right: Names) -> list[tuple[ex.Expression, str]]:
    pairs: list[tuple[ex.Expression, str]] = []
    for node in using:
        name, exact = identifier(node, "JOIN ... USING")
        column = left.column(name, exact=exact)
        pairs.append((column, right.column(name, exact=exact).name))
    return pairs


def _on(node: exp.Expr, place: Place) -> list[tuple[ex.Expression, str]]:
    assert place.names.beside is not None
    alias = place.names.beside.alias
    pairs: list[tuple[ex.Expression, str]] = []
    for part in operands(node, exp.And):
        equality = plain(part)
        if not isinstance(equality, exp.EQ):
            raise UnsupportedError(
                "JOIN ... ON: only equalities of columns, joined by AND, are offered; put "
                "conditions on rows into WHERE"
            )
        sides = place.sides(equality)
        ours = [_of(side, alias) for side in sides]
        for joined, other in ((0, 1), (1, 0)):
            column = sides[joined]
            if isinstance(column, ex.Column) and ours[joined] and ours[other] is False:
                pairs.append((sides[other], column.name))
                break
        else:
            raise UnsupportedError(
                f"JOIN ... ON: each equality has a column of {alias!r} alone on one side and "
                "columns of the tables before it on the other; put other conditions into WHERE"
            )
    return pairs


def _of(side: ex.Expression, alias: str) -> bool | None:
    """Whether the columns of an expression are the joined table's; ``None`` where it is mixed."""
    found = {column.table == alias for column in ex.columns(side)}
    return found.pop() if len(found) == 1 else None
