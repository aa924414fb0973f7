"""What SELECT names, and what GROUP BY and ORDER BY mean of it: by a name or by its position."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from sqlglot import exp

from dither.errors import ArgumentError, QueryError, nearest
from dither.plan.aggregates import MOST_SETS, cube, rollup
from dither.sql.aggregates import aggregates_in
from dither.sql.allow_list import identifier, plain, take
from dither.sql.names import Names, find
from dither.sql.released import bare_name, is_column, is_flag

__all__ = ["Item", "chosen_key", "grouping_nodes", "item", "named_sets", "ordinal"]

Set = tuple[exp.Expr, ...]
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


def grouping_nodes(
    group: exp.Expr, chosen: Sequence[Item], names: Names
) -> tuple[list[exp.Expr], list[Set] | None]:
    """What is grouped by, each key as often as it is named; and the sets, where there are several.

    Beside one another, as in ``GROUP BY a, ROLLUP(b, c)``, sets are combined, each with each.
    """
    listed, everything, *others = take(
        group, "GROUP BY", "expressions", "all", "grouping_sets", "rollup", "cube"
    )
    # Parsers put sets of keys among the keys, or beside them.
    beside = [node for more in others for node in more or ()]
    if not all(_several(node) and node.expressions for node in beside):
        raise QueryError(
            "GROUP BY: write GROUPING SETS ((a, b), (a), ()), ROLLUP(a, b) or CUBE(a, b)"
        )
    nodes = [*(listed or ()), *beside]
    if everything:
        if nodes:
            raise QueryError("GROUP BY: ALL stands alone; leave it out, or the other keys")
        keys = [node for node, _ in chosen if not (aggregates_in(node) or is_flag(node))]
        return keys, None
    parts = [list(_sets(node)) for node in nodes]
    if prod(map(len, parts)) > MOST_SETS:
        raise QueryError(
            f"GROUP BY has more than {MOST_SETS} sets of keys, which share one budget; ask for "
            "fewer at once"
        )
    meant = [
        [tuple(chosen_key(node, chosen, names) for node in one) for one in part] for part in parts
    ]
    keys = [node for part in meant for one in part for node in one]
    if not any(map(_several, nodes)):
        return keys, None
    return keys, [tuple(n for one in together for n in one) for together in product(*meant)]


def _sets(node: exp.Expr) -> Iterator[Set]:
    """The sets that one part of a GROUP BY stands for."""
    if isinstance(node, exp.GroupingSets):
        (listed,) = take(node, "GROUPING SETS", "expressions")
        for one in listed or ():
            yield from _sets(one) if _several(one) else [_members(one)]
    elif isinstance(node, exp.Rollup):
        (listed,) = take(node, "ROLLUP", "expressions")
        members = [_members(one) for one in listed or ()]
        for places in rollup(len(members)):
            yield _joined([members[i] for i in places])
    elif isinstance(node, exp.Cube):
        (listed,) = take(node, "CUBE", "expressions")
        members = [_members(one) for one in listed or ()]
        for places in cube(len(members)):
            yield _joined([members[i] for i in places])
    else:
        yield (node,)


def _several(node: exp.Expr) -> bool:
    return isinstance(node, exp.GroupingSets | exp.Rollup | exp.Cube)


def _members(node: exp.Expr) -> Set:
    """The keys of one set: one alone, or several in brackets."""
    if isinstance(node, exp.Tuple):
        (listed,) = take(node, "GROUPING SETS", "expressions")
        return tuple(listed or ())
    return (plain(node),)


def _joined(members: Sequence[Set]) -> Set:
    return tuple(node for one in members for node in one)


def named_sets(
    names: Sequence[str], sets: str | Sequence[Sequence[str]]
) -> tuple[tuple[int, ...], ...]:
    """Sets of keys by their places, each once: what ``group_by(..., sets=...)`` names."""
    places = range(len(names))
    if sets == "rollup":
        return rollup(len(names))
    if sets == "cube":
        return cube(len(names))
    listed = isinstance(sets, list | tuple) and all(isinstance(one, list | tuple) for one in sets)
    if not listed or not sets:
        raise ArgumentError("sets must be 'rollup', 'cube' or lists of keys, as [['a', 'b'], []]")
    for name in (name for one in sets for name in one):
        if name not in names:
            raise ArgumentError(f"sets: no key {name!r}" + nearest(str(name), names))
    made = (tuple(i for i in places if names[i] in one) for one in sets)
    return tuple(dict.fromkeys(made))
