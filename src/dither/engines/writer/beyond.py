"""A few of each unit's rows, in an order that is asked of those units alone that have more.

Where an engine sorts, which numbering the rows of every unit takes, most of a question's time goes
into it, and few units have more than may count. Which these are, a count of rows by unit says.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.engines.writer.dialect import Dialect
from dither.engines.writer.forms import (
    all_of,
    call,
    identifier,
    named,
    named_table,
    selected,
    subquery,
)

__all__ = ["first_of_each", "rows_in_first_groups"]

EVERY, BEYOND = "every", "beyond"


def first_of_each(
    dialect: Dialect,
    rows: exp.Select,
    columns: Sequence[str],
    within: Sequence[str],
    most: int,
    order: Sequence[exp.Expression],
) -> exp.Select:
    """Columns of the rows that come first, ``most`` in each part of them; rows of a part are those
    alike in ``within``, which holds no NULL.

    Whoever has no more has all of them among the first, so that what is kept is the same whether
    or not a part is ordered. A part is chosen from by its own rows and the order alone.

    Parameters
    ----------
    dialect : Dialect
    rows : Select
        Read twice or more by name, and computed once.
    columns, within : sequence of str
        Names of columns of the rows.
    most : int
    order : sequence of Expression
        Of columns of the rows; it leaves no two rows of a part alike.
    """
    place = _place(exp.RowNumber(), within, order)
    if not dialect.counts_before_ranking:
        kept = [identifier(name) for name in columns]
        return dialect.ranked(kept, subquery(rows, "parts"), place, most, "rank")
    return _first(dialect, rows, columns, named_table(EVERY), within, most, place)


def rows_in_first_groups(
    dialect: Dialect,
    rows: exp.Select,
    name: str,
    within: Sequence[str],
    groups: Sequence[str] | None,
    most: int,
    order: Sequence[exp.Expression],
) -> exp.Select:
    """The rows in those groups of each part that come first, ``most`` groups of it, with all of
    their columns.

    Parameters
    ----------
    dialect, rows, within, most
        As for ``first_of_each``.
    name : str
        What the rows are called.
    groups : sequence of str or None
        Names of columns that say which group of its part a row is in; they may hold NULL. With
        ``None`` the rows of every part are ordered.
    order : sequence of Expression
        Of columns of the rows; two rows are alike in it if they are in one group of a part.
    """
    place = _place(call("DENSE_RANK"), within, order)
    if groups is None or not dialect.counts_before_ranking:
        return dialect.ranked([exp.Star()], subquery(rows, name), place, most, "rank")
    by = [identifier(one) for one in (*within, *groups)]
    once = selected(by, named_table(EVERY)).group_by(*(one.copy() for one in by), copy=False)
    return _first(dialect, rows, None, subquery(once, "groups"), within, most, place)


def _place(
    number: exp.Expression, within: Sequence[str], order: Sequence[exp.Expression]
) -> exp.Window:
    """The number of a row, or of its group, in its part."""
    return exp.Window(
        this=number,
        partition_by=[identifier(name) for name in within],
        order=exp.Order(expressions=list(order)),
    )


def _first(
    dialect: Dialect,
    rows: exp.Select,
    columns: Sequence[str] | None,
    counted: exp.Expression,
    within: Sequence[str],
    most: int,
    place: exp.Window,
) -> exp.Select:
    """Columns of the rows, or all of them, whose place is at most ``most``: only those parts are
    ordered of which ``counted`` has more rows."""
    names = {name: f"beyond_{name}" for name in within}
    beyond = selected(
        [named(identifier(name), new) for name, new in names.items()], counted
    ).group_by(*(identifier(name) for name in within), copy=False)
    limit = dialect.integer(most)
    beyond = beyond.having(exp.GT(this=exp.Count(this=exp.Star()), expression=limit), copy=False)

    def kept() -> list[exp.Expression]:
        return [exp.Star()] if columns is None else [identifier(name) for name in columns]

    def joined(kept: Sequence[exp.Expression], how: str) -> exp.Select:
        same = [
            exp.EQ(this=identifier(name), expression=identifier(new)) for name, new in names.items()
        ]
        found = selected(kept, named_table(EVERY))
        return found.join(named_table(BEYOND), on=all_of("AND", same), join_type=how, copy=False)

    few = joined(kept(), "ANTI")
    many = subquery(joined([exp.Star()], "SEMI"), "many")
    first = dialect.ranked(kept(), many, place, most, "rank")
    both = exp.Union(this=few, expression=first, distinct=False)
    found = selected([exp.Star()], subquery(both, "first"))
    for name, query in ((EVERY, rows), (BEYOND, beyond)):
        alias = exp.to_identifier(name, quoted=True)
        found = found.with_(alias, as_=query, materialized=True, copy=False)
    return found
