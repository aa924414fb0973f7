"""How the rest of SQL is refused: by name, with the fix where there is one.

``take`` is the allow-list of a node's parts. Whoever reads a node names the parts it understands,
and any other part that is set, also one that a later sqlglot adds, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NoReturn

from sqlglot import exp

from dither.errors import QueryError, UnknownNameError, UnsupportedError, nearest

__all__ = ["AGGREGATE_NAMES", "FUNCTION_NAMES", "refuse", "take", "title"]

FUNCTION_NAMES = (
    *("ABS", "BIN", "CEIL", "CLAMP", "COALESCE", "DATE_PART", "DATE_TRUNC", "DAY", "DAYOFWEEK"),
    *("EXTRACT", "FLOOR", "GREATEST", "HOUR", "IF", "LEAST", "LEFT", "LOWER", "MINUTE", "MONTH"),
    *("NULLIF", "QUARTER", "SUBSTRING", "UPPER", "YEAR"),
)
AGGREGATE_NAMES = (
    *("COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE_CONT", "PERCENTILE_CONT", "MIN", "MAX"),
    *("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP", "MEAN"),
)

_OFFERED_AGGREGATES = {
    *("Count", "Sum", "Avg", "Median", "PercentileCont", "Quantile", "Min", "Max", "WithinGroup"),
    *("Stddev", "StddevPop", "StddevSamp", "Variance", "VariancePop"),
}

_PATTERN = "compare with =, IN or SUBSTRING(x, 1, n)"
_SUBQUERY = "write one SELECT over the tables themselves"
_WINDOW = "ask for groups with GROUP BY"

# Where sqlglot's name for a part is not the one that people know, or there is something to advise.
_KNOWN: dict[str, tuple[str, str]] = {
    "All": ("ALL", "compare with one value"),
    "Any": ("ANY", "write IN (...) with a list of constants"),
    "AnyValue": ("ANY_VALUE", "it is one person's value"),
    "ApproxDistinct": ("APPROX_COUNT_DISTINCT", "COUNT(DISTINCT unit) counts the protected units"),
    "ApproxQuantile": ("APPROX_QUANTILE", "write QUANTILE_CONT(x, q)"),
    "ArrayAgg": ("ARRAY_AGG", "it lists raw values"),
    "ByteString": ("an E'...' string", "write a plain '...' string"),
    "Cast": ("CAST", ""),
    "Collate": ("COLLATE", ""),
    "Columns": ("COLUMNS(...)", "name each column"),
    "Concat": ("joining text", "group by the columns one by one"),
    "CountIf": ("COUNT_IF", "write COUNT(CASE WHEN condition THEN 1 END)"),
    "Cube": ("CUBE", "ask for each grouping by itself"),
    "CurrentDate": ("CURRENT_DATE", "write the date, as DATE 'YYYY-MM-DD'"),
    "CurrentTimestamp": ("CURRENT_TIMESTAMP", "write it, as TIMESTAMP 'YYYY-MM-DD HH:MM:SS'"),
    "DPipe": ("|| on text", "group by the columns one by one"),
    "Distinct": ("DISTINCT", ""),
    "Dot": ("a field of a value (x.y.z)", "write table.column"),
    "Except": ("EXCEPT", _SUBQUERY),
    "Exists": ("EXISTS", _SUBQUERY),
    "Explode": ("UNNEST", ""),
    "Filter": (
        "FILTER (WHERE ...)",
        "write the condition inside, as SUM(CASE WHEN ... THEN x END)",
    ),
    "Glob": ("GLOB", _PATTERN),
    "GroupingSets": ("GROUPING SETS", "ask for each grouping by itself"),
    "ILike": ("ILIKE", _PATTERN),
    "Intersect": ("INTERSECT", _SUBQUERY),
    "Interval": ("INTERVAL", "compare with a date, or take its parts with EXTRACT"),
    "Lateral": ("LATERAL", _SUBQUERY),
    "Like": ("LIKE", _PATTERN),
    "NullSafeEQ": ("IS NOT DISTINCT FROM", "write x = y OR (x IS NULL AND y IS NULL)"),
    "NullSafeNEQ": ("IS DISTINCT FROM", "write x <> y, and IS NULL where NULL matters"),
    "Order": ("ORDER BY", ""),
    "Parameter": ("a parameter", "write the constant itself"),
    "PercentileDisc": ("the discrete quantile", "write QUANTILE_CONT(x, q)"),
    "Placeholder": ("a placeholder", "write the constant itself"),
    "Pow": ("a power", "write x * x"),
    "RawString": ("a $$...$$ string", "write a plain '...' string"),
    "RegexpLike": ("a regular expression", _PATTERN),
    "Round": ("ROUND", "write FLOOR(x + 0.5)"),
    "Rollup": ("ROLLUP", "ask for each grouping by itself"),
    "SimilarTo": ("SIMILAR TO", _PATTERN),
    "Star": ("*", "name each key and aggregate"),
    "Subquery": ("a subquery", _SUBQUERY),
    "Select": ("a subquery", _SUBQUERY),
    "TryCast": ("TRY_CAST", ""),
    "Tuple": ("a list of values in parentheses", "write one value"),
    "Union": ("UNION", "ask twice, and join the released frames"),
    "Values": ("VALUES", "start FROM a table of the policy"),
    "WidthBucket": ("WIDTH_BUCKET", "write BIN(x, edge, edge, ...), which counts from 0"),
    "Window": ("a window function (OVER)", _WINDOW),
    "With": ("WITH", _SUBQUERY),
}

# Parts of a node, by the node and sqlglot's name for the part, or by the part alone.
_PARTS: dict[str, tuple[str, str]] = {
    "Select.distinct": ("SELECT DISTINCT", "name the columns in GROUP BY"),
    "Select.having": ("HAVING", "filter the released frame, which is free"),
    "Select.into": ("SELECT INTO", ""),
    "Select.kind": ("SELECT AS STRUCT", ""),
    "Select.laterals": ("LATERAL", _SUBQUERY),
    "Select.locks": ("FOR UPDATE", ""),
    "Select.offset": ("OFFSET", "cut the released frame, which is free"),
    "Select.qualify": ("QUALIFY", _WINDOW),
    "Select.windows": ("WINDOW", _WINDOW),
    "Select.with": ("WITH", _SUBQUERY),
    "Count.expressions": ("COUNT of several columns", "count one"),
    "Group.cube": ("CUBE", "ask for each grouping by itself"),
    "Group.grouping_sets": ("GROUPING SETS", "ask for each grouping by itself"),
    "Group.rollup": ("ROLLUP", "ask for each grouping by itself"),
    "Join.method": ("this kind of JOIN", "write JOIN ... ON a.x = b.y"),
    "Limit.limit_options": ("LIMIT with PERCENT", "write LIMIT and a whole number"),
    "Max.count": ("MAX(x, n)", "write MAX(x)"),
    "Min.count": ("MIN(x, n)", "write MIN(x)"),
    "Ordered.nulls_first": ("NULLS FIRST", "sort the released frame, which is free"),
    "TableAlias.columns": ("renaming columns behind a table's name", "rename them in SELECT"),
    "db": ("a schema before a table's name", "write the table's name in the policy"),
    "catalog": ("a database before a table's name", "write the table's name in the policy"),
    "pivots": ("PIVOT", "ask for groups with GROUP BY"),
    "query": ("a subquery", _SUBQUERY),
    "sample": ("TABLESAMPLE", "sampling is chosen by the release, not the query"),
    "symmetric": ("SYMMETRIC", "write the smaller bound first"),
}


def title(node: exp.Expr) -> str:
    """What people call a node of sqlglot's tree."""
    kind = type(node).__name__
    if kind in _KNOWN:
        return _KNOWN[kind][0]
    if isinstance(node, exp.Var):
        return node.name.upper()
    if isinstance(node, exp.Func):
        return f"the function {_function(node)}"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()


def _function(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return node.sql_name().upper()
    return node.name.upper()


def refuse(node: exp.Expr, where: str, hint: str = "") -> NoReturn:
    """Refuse a node by name.

    Parameters
    ----------
    node : Expression
        Of sqlglot.
    where : str
        The part of the query that it stands in.
    hint : str
        What to write instead; the usual advice for the node where empty.

    Raises
    ------
    UnknownNameError
        For a function of no known name; the nearest is offered.
    QueryError
        For an aggregate where a row's value is expected.
    UnsupportedError
        For anything else.
    """
    hint = hint or _KNOWN.get(type(node).__name__, ("", ""))[1]
    if isinstance(node, exp.Anonymous):
        name = _function(node)
        if name not in AGGREGATE_NAMES:
            offered = (*FUNCTION_NAMES, *AGGREGATE_NAMES)
            raise UnknownNameError(f"{where}: unknown function {name!r}{nearest(name, offered)}")
    if isinstance(node, exp.Anonymous) or type(node).__name__ in _OFFERED_AGGREGATES:
        raise QueryError(
            f"{where}: the aggregate {_function(node)} stands where the value of a row is "
            "expected; aggregates stand in SELECT, by themselves"
        )
    if isinstance(node, exp.Func) and not hint:
        hint = nearest(_function(node), FUNCTION_NAMES).removeprefix("; ")
    raise UnsupportedError(f"{where}: {title(node)} is not offered" + (f"; {hint}" if hint else ""))


def take(node: exp.Expr, where: str, *parts: str, ignored: Collection[str] = ()) -> tuple[Any, ...]:
    """The named parts of a node, once no other part of it is set.

    Parameters
    ----------
    node : Expression
        Of sqlglot.
    where : str
        The part of the query that it stands in.
    parts : str
        The parts to hand back, ``None`` for one that is not set.
    ignored : collection of str
        Parts that may be set and mean nothing beyond what is read.

    Raises
    ------
    UnsupportedError
        Where any other part is set.
    """
    # Some versions of sqlglot write `from_` and others `from`.
    found = {
        name.rstrip("_"): value
        for name, value in node.args.items()
        if value is not None and value is not False and value != []
    }
    for name in found:
        if name in parts or name in ignored:
            continue
        kind = type(node).__name__
        unknown = (f"{title(node)} with {name.replace('_', ' ').upper()}", "")
        called, hint = _PARTS.get(f"{kind}.{name}") or _PARTS.get(name) or unknown
        raise UnsupportedError(f"{where}: {called} is not offered" + (f"; {hint}" if hint else ""))
    return tuple(found.get(part) for part in parts)
