"""WHERE: conditions on rows, and ``x IN (SELECT key FROM public)`` among them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from dither.errors import QueryError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.relations import Filter, KeyFilter, Relation, Scan
from dither.sql.allow_list import Place, identifier, plain, take
from dither.sql.expressions import at, operands
from dither.sql.names import Names, find_table

__all__ = ["kept"]

_ADVICE = "write x IN (SELECT key FROM table), of one column of a public table and its WHERE alone"


def kept(
    rows: Relation,
    condition: exp.Expr,
    place: Place,
    read: Callable[[exp.Expr], ex.Expression] | None = None,
) -> Relation:
    """The rows for which a condition is true.

    Lists that are read from public tables stand by themselves among conditions joined by AND; they
    are looked up last, which changes nothing: each keeps a row or does not.

    Parameters
    ----------
    rows : Relation
    condition : sqlglot expression
    place : Place
        Reads what is looked up in a list.
    read : callable, optional
        Reads every other condition; the place where left out.

    Raises
    ------
    QueryError
        Where the condition cannot be read, a table is not public, or kinds differ.
    """
    read = read or place.read
    parts = operands(condition, exp.And)
    lists = [part for part in parts if _queried(part) is not None]
    if not lists:
        return Filter(rows, read(condition))
    plain_parts = [read(part) for part in parts if _queried(part) is None]
    found = rows
    if plain_parts:
        one = plain_parts[0] if len(plain_parts) == 1 else ex.And(tuple(plain_parts))
        found = Filter(found, one)
    for part in lists:
        found = _among(found, part, place)
    return found


def _queried(node: exp.Expr) -> tuple[exp.In, bool] | None:
    """An ``IN`` with a query, and whether NOT stands before it."""
    bare, negated = plain(node), False
    while isinstance(bare, exp.Not):
        bare, negated = plain(bare.this), not negated
    if isinstance(bare, exp.In) and bare.args.get("query") is not None:
        return bare, negated
    return None


def _among(rows: Relation, node: exp.Expr, place: Place) -> KeyFilter:
    queried = _queried(node)
    assert queried is not None
    bare = plain(node)
    while isinstance(bare, exp.Not):
        (inside,) = take(bare, place.where, "this")
        bare = plain(inside)
    this, query = take(bare, place.where, "this", "query")
    operand = place.operand(this)
    select = query
    if isinstance(query, exp.Subquery):
        (select,) = take(query, "IN (SELECT ...)", "this")
    if not isinstance(select, exp.Select):
        raise UnsupportedError(f"IN: {_ADVICE}")
    items, source, where, distinct = take(
        select, "IN (SELECT ...)", "expressions", "from", "where", "distinct"
    )
    if distinct is not None:
        take(distinct, "SELECT DISTINCT")
    if source is None or len(items or ()) != 1:
        raise QueryError(f"IN: {_ADVICE}")
    (table,) = take(source, "IN (SELECT ... FROM)", "this")
    if not isinstance(table, exp.Table):
        raise UnsupportedError(f"IN: {_ADVICE}")
    name_node, alias = take(table, "IN (SELECT ... FROM)", "this", "alias")
    if not isinstance(name_node, exp.Identifier):
        raise UnsupportedError(f"IN: {_ADVICE}")
    name, exact = identifier(name_node, "IN (SELECT ... FROM)")
    facts = find_table(name, place.names.schema, exact=exact)
    if facts.private:
        raise QueryError(
            f"IN (SELECT ... FROM {facts.name}): {facts.name!r} is private; only keys of public "
            "tables can be listed. Of units, write JOIN (SELECT DISTINCT unit FROM "
            f"{facts.name} WHERE ...) AS q ON ... with the column of the unit"
        )
    if alias is not None:
        raise UnsupportedError(f"IN (SELECT ... FROM {facts.name}): leave AS out")
    scan = Scan(facts.name, facts.name)
    names = Names(scan, place.names.schema, None, place.names.origins)
    inner = at("IN (SELECT ...)", names)
    (item,) = items
    column = inner.read(item)
    keys: Relation = scan
    if where is not None:
        (condition,) = take(where, "WHERE", "this")
        keys = Filter(scan, inner.read(condition))
    kinds = place.names.kind(operand), names.kind(column)
    if kinds[0] is not kinds[1] or kinds[0] is None:
        said = [kind.value if kind is not None else "unknown" for kind in kinds]
        raise QueryError(
            f"IN (SELECT ... FROM {facts.name}): the key is {said[1]} and is looked up by "
            f"{said[0]}; CAST one to the kind of the other"
        )
    return KeyFilter(rows, operand, keys, column, queried[1])
