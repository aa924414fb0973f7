"""Grouping expressions, and the names that keys and outputs get where the query gives none."""

from __future__ import annotations

from collections.abc import Collection

from dither.errors import QueryError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.sql.names import Names

__all__ = ["default_key_name", "default_name", "free_name", "key_expression"]


def key_expression(expression: ex.Expression, names: Names) -> ex.Expression:
    """What ``GROUP BY expression`` groups by.

    A bare column with declared ``edges`` is cut into those bins; anything else stays as it is.

    Raises
    ------
    QueryError
        For a constant, or for the column that says who is protected.
    """
    if not ex.columns(expression):
        raise QueryError("GROUP BY a constant: group by a column or an expression of columns")
    if not isinstance(expression, ex.Column):
        return expression
    if names.is_unit(expression):
        raise QueryError(
            f"GROUP BY {expression.name}: the column says who is protected, so every group would "
            "be one person; group by something that many people share"
        )
    edges = names.facts(expression).edges
    return expression if edges is None else ex.Bin(expression, edges)


def default_key_name(expression: ex.Expression) -> str:
    """The name of a key that the query gives none.

    Examples
    --------
    >>> default_key_name(ex.DatePart("year", ex.Column("visits", "day")))
    'day_year'
    """
    used = ex.columns(expression)
    if len(used) != 1:
        return "key"
    name = used[0].name
    match expression:
        case ex.Column() | ex.Bin(operand=ex.Column()):
            return name
        case ex.DatePart(part=part) | ex.DateTruncate(part=part):
            return f"{name}_{part}"
    return f"{name}_key"


def default_name(aggregate: ag.Aggregate) -> str:
    """The name of an output that the query gives none.

    Examples
    --------
    >>> default_name(ag.Mean(ex.Column("visits", "cost"))), default_name(ag.Count())
    ('avg_cost', 'count')
    """
    match aggregate:
        case ag.Count():
            return "count"
        case ag.CountUnits():
            return "units"
        case ag.CountValues(operand=x):
            return _of("count", x)
        case ag.Sum(operand=x):
            return _of("sum", x)
        case ag.Mean(operand=x):
            return _of("avg", x)
        case ag.Variance(operand=x, root=root):
            return _of("stddev" if root else "var", x)
        case ag.Quantile(operand=x, label=label):
            return _of(label, x)
        case ag.Ratio():
            return "ratio"
    raise TypeError(type(aggregate).__name__)


def _of(word: str, operand: ex.Expression) -> str:
    return f"{word}_{operand.name}" if isinstance(operand, ex.Column) else word


def free_name(name: str, taken: Collection[str]) -> str:
    """``name``, or the first of ``name_2``, ``name_3``, ... that is not taken.

    Examples
    --------
    >>> free_name("sum", ["sum", "sum_2"])
    'sum_3'
    """
    used = {t.casefold() for t in taken}
    options = (name if i == 1 else f"{name}_{i}" for i in range(1, len(used) + 2))
    return next(o for o in options if o.casefold() not in used)
