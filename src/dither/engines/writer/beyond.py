"""A few of each unit's rows, in an order that is asked of those units alone that have more.

Where an engine sorts, which numbering the rows of every unit takes, most of a question's time goes
into it, and few units have more than may count. Which these are, a count of rows by unit says.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.engines.writer.dialect import Dialect
from dither.engines.writer.forms import all_of, identifier, named, named_table, selected, subquery

__all__ = ["first_of_each"]

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
    place = exp.Window(
        this=exp.RowNumber(),
        partition_by=[identifier(name) for name in within],
        order=exp.Order(expressions=list(order)),
    )
    if not dialect.counts_before_ranking:
        kept = [identifier(name) for name in columns]
        return dialect.ranked(kept, subquery(rows, "parts"), place, most, "rank")
    names = {name: f"beyond_{name}" for name in within}
    counted = selected(
        [named(identifier(name), new) for name, new in names.items()], named_table(EVERY)
    ).group_by(*(identifier(name) for name in within), copy=False)
    limit = dialect.integer(most)
    counted = counted.having(exp.GT(this=exp.Count(this=exp.Star()), expression=limit), copy=False)

    def joined(kept: Sequence[exp.Expression], how: str) -> exp.Select:
        same = [
            exp.EQ(this=identifier(name), expression=identifier(new)) for name, new in names.items()
        ]
        found = selected(kept, named_table(EVERY))
        return found.join(named_table(BEYOND), on=all_of("AND", same), join_type=how, copy=False)

    few = joined([identifier(name) for name in columns], "ANTI")
    many = subquery(joined([exp.Star()], "SEMI"), "many")
    first = dialect.ranked([identifier(name) for name in columns], many, place, most, "rank")
    both = exp.Union(this=few, expression=first, distinct=False)
    found = selected([exp.Star()], subquery(both, "first"))
    for name, query in ((EVERY, rows), (BEYOND, counted)):
        alias = exp.to_identifier(name, quoted=True)
        found = found.with_(alias, as_=query, materialized=True, copy=False)
    return found
