"""What SELECT names, and how GROUP BY and ORDER BY mean it: by a name or by its position."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.errors import QueryError
from dither.sql.aggregates import aggregates_in
from dither.sql.allow_list import identifier, plain, take
from dither.sql.names import Names, find
from dither.sql.released import bare_name, is_column

__all__ = ["Item", "chosen_key", "item", "ordinal"]

Item = tuple[exp.Expr, str | None]
"""What a SELECT asks for, and the name given to it."""


def item(node: exp.Expr) -> Item:
    """What is asked for, and its name; a star is refused, since it names raw columns."""
    name = None
    if isinstance(node, exp.Alias):
        this, alias = take(node, "SELECT", "this", "alias")
        node, (name, _) = this, identifier(alias, "SELECT")
        if not name:
            raise QueryError("SELECT: a name after AS is empty; give it letters")
    bare = plain(node)
    if isinstance(bare, exp.Star) or (
        isinstance(bare, exp.Column) and isinstance(bare.this, exp.Star)
    ):
        raise QueryError(
            "SELECT *: raw columns cannot be released; name GROUP BY keys and aggregates, such as "
            "COUNT(*)"
        )
    return node, name


def chosen_key(node: exp.Expr, chosen: Sequence[Item], names: Names) -> exp.Expr:
    """What an ordinal or an alias in GROUP BY stands for; anything else stands for itself."""
    bare = plain(node)
    if isinstance(bare, exp.Literal) and not bare.is_string:
        found = chosen[ordinal(bare, "GROUP BY", len(chosen))][0]
    elif (written := bare_name(bare, "GROUP BY")) is not None:
        aliases = {alias: item for item, alias in chosen if alias is not None}
        meant = find(written[0], aliases, exact=written[1])
        if not meant or is_column(*written, names):
            return node
        found = aliases[meant[0]]
    else:
        return node
    if aggregates_in(found):
        raise QueryError("GROUP BY: an aggregate cannot be a key; group by a column")
    return found


def ordinal(node: exp.Literal, where: str, count: int) -> int:
    """The index that a position in SELECT, counted from 1, stands for."""
    take(node, where, "this")
    text = str(node.this)
    position = int(text) if text.isdecimal() and len(text) < 6 else 0
    if not 1 <= position <= count:
        raise QueryError(f"{where} {text[:20]}: SELECT has positions 1 to {count}")
    return position - 1
