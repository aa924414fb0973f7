"""Building queries in the FROM: each part checked as it is made, so that errors name it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

from dither.errors import BoundsError, QueryError, UnsupportedError
from dither.plan import aggregates as ag
from dither.plan.expressions import Column, Expression
from dither.plan.facts.ranges import LARGEST_INTEGER, SUM_CELLS, lattice_step
from dither.plan.facts.scopes import scope_of, tables_of
from dither.plan.facts.units import column_names, is_unit, unit_of
from dither.plan.facts.values import Scope, infer, why_unbounded
from dither.plan.relations import (
    Derived,
    Named,
    NamedExpression,
    Relation,
    Union,
    UnitAggregate,
    UnitValue,
    base,
    scans,
    visible,
)
from dither.plan.schema import Kind, Schema
from dither.plan.text import unwritable

__all__ = ["derived", "distinct_value", "grouped_within", "unit_value", "united"]

Made = TypeVar("Made", Derived, UnitAggregate, Union)

MOST_TABLES = 64
"""A query in the FROM that is named often, each time within another, would grow without bound."""

MOST_LEVELS = 16
"""Queries inside one another."""

MOST_COLUMNS = 1_000


def derived(
    source: Relation, alias: str, columns: Sequence[NamedExpression], schema: Schema
) -> Derived:
    """Rows of these columns: ``(SELECT columns FROM source) AS alias``.

    Raises
    ------
    QueryError
        Where two columns have one name, or one has no kind.
    """
    return _checked(Derived(source, alias, tuple(columns)), schema)


def grouped_within(
    source: Relation,
    alias: str,
    keys: Sequence[NamedExpression],
    values: Sequence[tuple[str, UnitValue]],
    schema: Schema,
) -> UnitAggregate:
    """One row for each unit and key: ``(SELECT keys, values ... GROUP BY unit, keys) AS alias``.

    Raises
    ------
    QueryError
        Where a row is a person, so that groups would mix people, or the unit is not a key.
    """
    unit = unit_of(source, schema)
    if unit is None:
        table = base(source).table
        raise QueryError(
            f"a row of {table!r} is a person of its own, so groups within a query in the FROM "
            "would mix people; group in the outer query, or declare unit in the policy, if it has "
            "one"
        )
    if not any(isinstance(key, Column) and is_unit(key, source, schema) for _, key in keys):
        name = schema.table(base(source).table).unit
        raise QueryError(
            "its groups would mix people, and each row of a query in the FROM is of one; group by "
            f"the protected unit: write GROUP BY {', '.join([str(name), *(n for n, _ in keys)])}"
        )
    return _checked(UnitAggregate(source, alias, unit, tuple(keys), tuple(values)), schema)


def united(alias: str, parts: Sequence[Named], schema: Schema) -> Union:
    """The rows of all parts: ``(part UNION ALL part ...) AS alias``.

    Raises
    ------
    QueryError
        Where they hold different units, or their columns do not match.
    """
    first, *others = parts
    owner = schema.table(base(first).table)
    for part in parts:
        table = schema.table(base(part).table)
        if table.unit is None:
            raise QueryError(
                f"UNION ALL: a row of {table.name!r} is a person of its own, and could be in it "
                "twice; declare its unit in the policy, if it has one"
            )
    for part in others:
        table = schema.table(base(part).table)
        if table.name != owner.name and (
            owner.unit_name is None or table.unit_name != owner.unit_name
        ):
            raise QueryError(
                f"UNION ALL: the policy does not say that {owner.unit!r} of {owner.name!r} and "
                f"{table.unit!r} of {table.name!r} are the same people; if they are, name both "
                f'tables in one [units.NAME], columns = {{ {owner.name} = "{owner.unit}", '
                f'{table.name} = "{table.unit}" }}'
            )
        kinds = [_unit_kind(side, schema) for side in (first, part)]
        if kinds[0] is not kinds[1]:
            raise QueryError(
                f"UNION ALL: the units of {owner.name!r} and {table.name!r} are {kinds[0].value} "
                f"and {kinds[1].value}; declare them of one kind"
            )
        wanted, found = (len(column_names(side, schema)) for side in (first, part))
        if wanted != found:
            raise QueryError(
                f"UNION ALL: the first query has {wanted} columns and another has {found}; "
                "columns are matched by position, so name as many in each"
            )
    return _checked(Union(alias, tuple(parts)), schema)


def _unit_kind(part: Named, schema: Schema) -> Kind:
    unit = unit_of(part, schema)
    assert unit is not None
    return scope_of(part, schema).column(unit).kind


def _checked(named: Made, schema: Schema) -> Made:
    """A query in the FROM whose columns have names and kinds of their own."""
    names: tuple[str, ...] = column_names(named, schema)
    if not names:
        raise QueryError("a query in the FROM needs at least one column")
    if len(names) > MOST_COLUMNS:
        raise QueryError(f"a query in the FROM has more than {MOST_COLUMNS:,} columns; name fewer")
    for name in (named.alias, *names):
        fault = unwritable(name) if name else "is empty; give it letters"
        if fault is not None:
            raise QueryError(f"the name {name!r} in a query in the FROM {fault}")
    twice = sorted(n for n, times in Counter(n.casefold() for n in names).items() if times > 1)
    if twice:
        raise QueryError(
            f"two columns of a query in the FROM are named {twice[0]!r}; use AS to tell them apart"
        )
    if len(scans(named)) > MOST_TABLES or _levels(named) > MOST_LEVELS:
        raise QueryError(
            f"queries in the FROM read more than {MOST_TABLES} tables, or stand more than "
            f"{MOST_LEVELS} deep inside one another; ask for less at once"
        )
    tables_of(named, schema)
    return named


def _levels(relation: Relation) -> int:
    deepest = 0
    stack: list[tuple[Relation, int]] = [(relation, 0)]
    while stack:
        node, level = stack.pop()
        deepest = max(deepest, level)
        for named in visible(node):
            match named:
                case Derived(source=source) | UnitAggregate(source=source):
                    stack.append((source, level + 1))
                case Union(parts=parts):
                    stack.extend((part, level + 1) for part in parts)
    return deepest


# --- aggregates within a unit -----------------------------------------------------------------


def unit_value(aggregate: ag.AggregateFunction, scope: Scope) -> UnitValue:
    """An aggregate of a unit's own rows: what is asked for in SELECT, taken without noise.

    Raises
    ------
    UnsupportedError
        For one that is not offered within a unit.
    QueryError, BoundsError
        For an operand that is not a number, or a real without bounds, which has no lattice.
    """
    match aggregate:
        case ag.Count():
            return UnitValue("count")
        case ag.CountValues(operand=x):
            infer(x, scope)
            return UnitValue("count", x)
        case ag.Sum(operand=x):
            return _summed("sum", x, scope)
        case ag.Mean(operand=x):
            return _summed("mean", x, scope)
        case ag.Quantile(operand=x, label="min" | "max" as label):
            if infer(x, scope).kind in (Kind.BOOLEAN, None):
                raise QueryError(f"{label.upper()} of {scope.show(x)}: not a number, date or text")
            return UnitValue(label, x)
    raise UnsupportedError(
        "within a unit there are COUNT(*), COUNT(x), COUNT(DISTINCT x), SUM, AVG, MIN and MAX"
        + _instead(aggregate, scope)
    )


def _instead(aggregate: ag.AggregateFunction, scope: Scope) -> str:
    """What can be written in the place of an aggregate that a unit's own rows do not have.

    Of n numbers between l and u with the mean m, the variance of the population is at most
    (m - l)(u - m), and so at most (u - l)²/4. What is written makes no use of that: it is bounded
    by the bounds of its parts, which are wider, and so needs more noise than it might.
    """
    match aggregate:
        case ag.Variance(operand=x, root=root):
            shown = scope.show(x)
            if not isinstance(x, Column):
                shown = f"({shown})"
            spread = f"GREATEST(0, AVG({shown} * {shown}) - AVG({shown}) * AVG({shown}))"
            return (
                f"; write {f'SQRT({spread})' if root else spread}, which is that of the unit's own "
                "rows as a whole population"
            )
        case ag.Quantile(operand=x):
            shown = scope.show(x)
            return f"; write AVG({shown}), or take the quantile of all rows, outside of the query"
    return ""


def distinct_value(operand: Expression, scope: Scope) -> UnitValue:
    """``COUNT(DISTINCT operand)`` of a unit's own rows."""
    infer(operand, scope)
    return UnitValue("count distinct", operand)


def _summed(function: str, operand: Expression, scope: Scope) -> UnitValue:
    facts, shown = infer(operand, scope), scope.show(operand)
    word = "SUM" if function == "sum" else "AVG"
    if facts.kind is None or not facts.kind.numeric:
        raise QueryError(f"{word} of {shown}: not a number")
    if facts.range is None:
        if facts.kind is Kind.INTEGER:
            return UnitValue(function, operand)
        raise BoundsError(
            f"{word} of {shown} needs bounds also within a unit, since reals are summed on a "
            f"lattice: {why_unbounded(operand, scope)} write CLAMP({shown}, lower, upper)"
        )
    low, high = facts.range
    whole = facts.kind is Kind.INTEGER
    step = Fraction(1) if whole else lattice_step(low, high, facts.step, SUM_CELLS)
    lower, upper = int(low // step), int(-(-high // step))
    if max(abs(lower), abs(upper)) > LARGEST_INTEGER:
        raise BoundsError(f"{word} of {shown}: its bounds are too wide for its step; narrow them")
    return UnitValue(function, operand, step, lower, upper)
