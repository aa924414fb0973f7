"""The rows of some blocks of a table, as a condition on the column that says in which they are.

It stands directly above the table, below all else that a query does, and can fail on no value: it
compares what the column is read as with constants. A value that is read as NULL, for whatever
reason, lies in the block of NULL.
"""

from __future__ import annotations

from sqlglot import exp

from dither.blocks._calendar import Calendar
from dither.blocks._sets import NULL, OTHERS, BlockSet
from dither.engines.writer.dialect import FIRST_DAY, LAST_MOMENT, Dialect
from dither.engines.writer.forms import all_of, is_not_null
from dither.plan.schema import ColumnFacts, Value

__all__ = ["lies_in"]


def lies_in(
    dialect: Dialect,
    value: exp.Expression,
    facts: ColumnFacts,
    calendar: Calendar,
    blocks: BlockSet,
) -> exp.Expression | None:
    """A condition that is true of the rows in some blocks; ``None`` where these are all there are.

    Parameters
    ----------
    dialect : Dialect
    value : Expression
        The column, read as its kind and not yet cleaned.
    facts : ColumnFacts
    calendar : Calendar
    blocks : BlockSet
    """
    if calendar.all <= blocks:
        return None
    cleaned = dialect.cleaned(value.copy(), facts)
    parts: list[exp.Expression] = []
    if calendar.values is not None:
        parts += _listed(dialect, cleaned, facts, calendar.values, blocks)
    else:
        # An engine skips what a plain comparison of the column rules out; a cleaned one it reads.
        plain = facts.kind.temporal and facts.values is None
        for low, high in blocks.ranges:
            ends = (
                None if low is None else calendar.first(low),
                None if high is None else calendar.first(high + 1),
            )
            parts.append(_between(dialect, value if plain else cleaned, facts, *ends))
    if NULL in blocks:
        parts.append(exp.Paren(this=exp.Is(this=cleaned.copy(), expression=exp.Null())))
    return all_of("OR", parts) if parts else exp.false()


def _between(
    dialect: Dialect,
    value: exp.Expression,
    facts: ColumnFacts,
    first: Value | None,
    beyond: Value | None,
) -> exp.Expression:
    """From one value on, and below another."""
    kind = facts.kind
    parts: list[exp.Expression] = []
    if first is None and kind.temporal:
        first = FIRST_DAY
    if first is not None:
        parts.append(exp.GTE(this=value.copy(), expression=dialect.constant(first, kind)))
    if beyond is not None:
        parts.append(exp.LT(this=value.copy(), expression=dialect.constant(beyond, kind)))
    elif kind.temporal:
        parts.append(exp.LTE(this=value.copy(), expression=dialect.constant(LAST_MOMENT, kind)))
    if not parts:
        parts.append(is_not_null(value.copy()))
    return exp.Paren(this=all_of("AND", parts))


def _listed(
    dialect: Dialect,
    value: exp.Expression,
    facts: ColumnFacts,
    values: tuple[Value, ...],
    blocks: BlockSet,
) -> list[exp.Expression]:
    wanted = [one for place, one in enumerate(values) if place in blocks]
    parts: list[exp.Expression] = []
    if wanted:
        parts.append(_is_one_of(dialect, value, facts, wanted))
    if OTHERS in blocks:
        named = exp.Paren(this=exp.Not(this=_is_one_of(dialect, value, facts, list(values))))
        parts.append(exp.Paren(this=all_of("AND", [is_not_null(value.copy()), named])))
    return parts


def _is_one_of(
    dialect: Dialect, value: exp.Expression, facts: ColumnFacts, values: list[Value]
) -> exp.Expression:
    options = [dialect.constant(one, facts.kind) for one in values]
    return exp.Paren(this=exp.In(this=value.copy(), expressions=options))
