"""ORDER BY and LIMIT, and how GROUP BY and ORDER BY refer to what SELECT names."""

from __future__ import annotations

from sqlglot import exp

from dither.errors import QueryError, UnknownNameError, UnsupportedError, nearest
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.sql.aggregates import aggregate, aggregates_in
from dither.sql.expressions import at, expression
from dither.sql.names import Names, find
from dither.sql.places import identifier, plain
from dither.sql.refusal import take

__all__ = ["Columns", "as_key", "bare_name", "is_column", "limit_of", "order_of", "ordinal"]

Columns = dict[str, ag.Aggregate | ex.Expression]
"""The released columns by name, and what each is."""


def bare_name(node: exp.Expr, where: str) -> tuple[str, bool] | None:
    """The name in a node that is a name alone, and whether it is quoted."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or node.table:
        return None
    (this,) = take(node, where, "this")
    return identifier(this, where)


def is_column(name: str, exact: bool, names: Names) -> bool:
    """Whether a name is that of a column in scope."""
    try:
        names.column(name, exact=exact)
    except UnknownNameError:
        return False
    except QueryError:
        pass
    return True


def ordinal(node: exp.Literal, where: str, count: int) -> int:
    """The index that a position in SELECT, counted from 1, stands for."""
    take(node, where, "this")
    text = str(node.this)
    position = int(text) if text.isdecimal() and len(text) < 6 else 0
    if not 1 <= position <= count:
        raise QueryError(f"{where} {text[:20]}: SELECT has positions 1 to {count}")
    return position - 1


def as_key(value: ex.Expression, names: Names) -> ex.Expression:
    """A bare column in the bins that a key of it would have."""
    edges = names.facts(value).edges if isinstance(value, ex.Column) else None
    return value if edges is None else ex.Bin(value, edges)


def order_of(
    order: exp.Expr | None, columns: Columns, names: Names
) -> tuple[tuple[str, bool], ...]:
    """What the released frame is sorted by: names, and whether each falls."""
    if order is None:
        return ()
    (listed,) = take(order, "ORDER BY", "expressions")
    found: list[tuple[str, bool]] = []
    for node in listed:
        this, falling = take(node, "ORDER BY", "this", "desc")
        found.append((_ordered(plain(this), columns, names), bool(falling)))
    return tuple(found)


def _ordered(node: exp.Expr, columns: Columns, names: Names) -> str:
    if isinstance(node, exp.Literal) and not node.is_string:
        return list(columns)[ordinal(node, "ORDER BY", len(columns))]
    written = bare_name(node, "ORDER BY")
    if written is not None:
        named = find(written[0], columns, exact=written[1])
        if len(named) == 1:
            return named[0]
    wanted: ag.Aggregate | ex.Expression
    if aggregates_in(node):
        wanted = aggregate(node, at("ORDER BY", names))
    else:
        if written is not None and not is_column(*written, names):
            raise UnknownNameError(
                f"ORDER BY: no released column is named {written[0]!r}"
                + nearest(written[0], columns)
            )
        wanted = as_key(expression(node, at("ORDER BY", names)), names)
    for column, meaning in columns.items():
        if meaning == wanted:
            return column
    raise UnsupportedError(
        "ORDER BY: only what SELECT names can be sorted by; write its name or its position"
    )


def limit_of(node: exp.Expr | None) -> int | None:
    """How many rows of the released frame are kept."""
    if node is None:
        return None
    if not isinstance(node, exp.Limit):
        raise UnsupportedError("FETCH FIRST is not offered; write LIMIT and a whole number")
    (value,) = take(node, "LIMIT", "expression")
    text = ""
    if isinstance(value, exp.Literal) and not value.is_string:
        take(value, "LIMIT", "this")
        text = str(value.this)
    if not text.isdecimal() or len(text) > 12:
        raise QueryError("LIMIT takes a whole number")
    return int(text)
