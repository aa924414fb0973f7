"""The FROM clause: sqlglot's tables and joins to relations of the plan."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.errors import QueryError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.relations import Relation
from dither.plan.schema import Schema
from dither.sql.allow_list import Place, identifier, plain, refuse, take, title
from dither.sql.expressions import at, operands
from dither.sql.joins import beside, join, start
from dither.sql.names import Names

__all__ = ["relation"]


def relation(source: exp.Expr | None, joins: Sequence[exp.Join], schema: Schema) -> Relation:
    """The rows that a FROM clause names, before WHERE.

    Raises
    ------
    QueryError
        Naming the table or the join that cannot be asked.
    """
    if source is None:
        raise QueryError("the query has no FROM; name the table, as in SELECT ... FROM visits")
    (table,) = take(source, "FROM", "this")
    name, alias, exact = _table(table, "FROM")
    found: Relation = start(name, alias, schema, exact=exact)
    for node in joins:
        found = _join(found, node, schema)
    return found


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
    if alias is None:
        return name, None, exact
    (short,) = take(alias, where, "this")
    return name, identifier(short, where)[0], exact


def _join(source: Relation, node: exp.Join, schema: Schema) -> Relation:
    where = "JOIN"
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
            f"{' '.join(words)} JOIN is not offered; write JOIN, or LEFT JOIN for a public table, "
            "with ON a.x = b.y"
        )
    if on is None and using is None:
        raise QueryError("JOIN without ON: write JOIN ... ON a.x = b.y")
    if on is not None and using is not None:
        raise QueryError("JOIN: write either ON or USING, not both")
    name, alias, exact = _table(this, where)
    table, scan = beside(source, name, alias, schema, exact=exact)
    if using is not None:
        pairs = _using(using, Names(source, schema), Names(scan, schema))
    else:
        pairs = _on(on, at("JOIN ... ON", Names(source, schema, beside=scan)))
    return join(source, table.name, alias, pairs, "LEFT" in words, schema)


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
