"""What may stand in a query, and how all else is refused: by name, with the fix where there is one.

``take`` is the allow-list of a node's parts. A rule that reads a node names the parts it knows,
and any other part that is set, also one that a later sqlglot adds, is refused. ``Place`` is the
part of a query that is being read, with the nodes that it may hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NoReturn, TypeGuard, TypeVar, cast

from sqlglot import exp

from dither.errors import QueryError, UnknownNameError, UnsupportedError, nearest
from dither.plan import expressions as ex
from dither.plan.schema import Value
from dither.sql.dates import read_dates
from dither.sql.names import Names

__all__ = [
    "AGGREGATE_NAMES",
    "FUNCTION_NAMES",
    "WRITTEN",
    "Place",
    "Rule",
    "Rules",
    "called",
    "identifier",
    "is_number",
    "plain",
    "refuse",
    "take",
    "title",
    "word",
]

WRITTEN = "dither.written"
"""Where a node of sqlglot's tree keeps the name of a function as it was written."""


FUNCTION_NAMES: set[str] = set()
"""What unknown names are compared with: filled where the rules are."""

AGGREGATE_NAMES = (
    *("COUNT", "SUM", "AVG", "MEDIAN", "QUANTILE_CONT", "PERCENTILE_CONT", "MIN", "MAX"),
    *("STDDEV", "STDDEV_POP", "STDDEV_SAMP", "VARIANCE", "VAR_POP", "VAR_SAMP", "MEAN"),
    *("MODE", "QUANTILE_DISC", "PERCENTILE_DISC", "COUNT_IF", "COVAR_POP", "COVAR_SAMP", "CORR"),
    *("REGR_SLOPE", "REGR_INTERCEPT", "REGR_R2", "REGR_COUNT", "REGR_AVGX", "REGR_AVGY"),
)

# Exactly these: sqlglot derives classes of others from some of them.
_OFFERED_AGGREGATES = {
    *(exp.Count, exp.Sum, exp.Avg, exp.Median, exp.PercentileCont, exp.Quantile, exp.Min, exp.Max),
    *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
    *(exp.PercentileDisc, exp.CountIf, exp.CovarPop, exp.CovarSamp, exp.Corr, exp.RegrSlope),
    *(exp.Mode, exp.RegrIntercept, exp.RegrR2, exp.RegrCount, exp.RegrAvgx, exp.RegrAvgy),
}

_PATTERN = "write LIKE, or REGEXP_MATCHES(x, pattern)"
_SUBQUERY = "write one SELECT over the tables themselves"
_RAW = "it shows values of single people; count them, or write MODE, MEDIAN or QUANTILE_CONT"
_SEMI_JOIN = (
    "write JOIN (SELECT DISTINCT unit FROM t WHERE ...) AS q ON ... with the column of the unit, "
    "or x IN (SELECT key FROM public)"
)
_NOW = "write the moment, as TIMESTAMP 'YYYY-MM-DD HH:MM:SS'"
_BETWEEN = "write DATE_DIFF('day', start, end)"
_LISTED = "write FROM t, UNNEST(x) AS u(y), and a condition on y"
_WINDOW = "ask for groups with GROUP BY"

# Where sqlglot's name for a part is not the one that people know, or there is something to advise.
_KNOWN: dict[str, tuple[str, str]] = {
    "All": ("ALL", "compare with one value"),
    "Any": ("ANY", "write IN (...) with a list of constants"),
    "AnyValue": ("ANY_VALUE", _RAW),
    "ApproxDistinct": ("APPROX_COUNT_DISTINCT", "write COUNT(DISTINCT x)"),
    "ApproxQuantile": ("APPROX_QUANTILE", "write QUANTILE_CONT(x, q)"),
    "ArgMax": ("ARG_MAX", _RAW),
    "ArgMin": ("ARG_MIN", _RAW),
    "Array": ("a list [...]", "write one value"),
    "ArrayAgg": ("ARRAY_AGG", _RAW),
    "BitwiseAnd": ("&", ""),
    "BitwiseLeftShift": ("<<", ""),
    "BitwiseNot": ("~", ""),
    "BitwiseOr": ("|", ""),
    "BitwiseRightShift": (">>", ""),
    "ArrayContains": ("LIST_CONTAINS", _LISTED),
    "AtTimeZone": ("AT TIME ZONE", "times are in UTC: write x + INTERVAL 2 HOUR"),
    "Bracket": ("an element of a value (x[...])", "derive a column in the data instead"),
    "ByteString": ("an E'...' string", "write a plain '...' string"),
    "Cast": ("CAST", ""),
    "Collate": ("COLLATE", ""),
    "Columns": ("COLUMNS(...)", "name each column"),
    "Concat": ("joining text", "write || between texts"),
    "CurrentDate": ("CURRENT_DATE", "write the date, as DATE 'YYYY-MM-DD'"),
    "CurrentTimestamp": ("CURRENT_TIMESTAMP", "write it, as TIMESTAMP 'YYYY-MM-DD HH:MM:SS'"),
    "Distinct": ("DISTINCT", ""),
    "Dot": ("a field of a value (x.y.z)", "write table.column"),
    "Except": ("EXCEPT", _SUBQUERY),
    "Exists": ("EXISTS", _SEMI_JOIN),
    "Explode": ("UNNEST of a row", "write FROM t, UNNEST(x) AS u(y), and name y"),
    "First": ("FIRST", _RAW),
    "Glob": ("GLOB", _PATTERN),
    "Intersect": ("INTERSECT", _SUBQUERY),
    "Interval": ("INTERVAL by itself", "add it to a date, as x + INTERVAL 3 DAY"),
    "JSONExtract": ("-> on JSON", "derive a column in the data instead"),
    "JSONExtractScalar": ("->> on JSON", "derive a column in the data instead"),
    "GroupConcat": ("STRING_AGG", _RAW),
    "Last": ("LAST", _RAW),
    "Lateral": ("LATERAL", _SUBQUERY),
    "NullSafeEQ": ("IS NOT DISTINCT FROM", "write x = y OR (x IS NULL AND y IS NULL)"),
    "NullSafeNEQ": ("IS DISTINCT FROM", "write x <> y, and IS NULL where NULL matters"),
    "Order": ("ORDER BY", ""),
    "Parameter": ("a parameter", "write the constant itself"),
    "Placeholder": ("a placeholder", "write the constant itself"),
    "RawString": ("a $$...$$ string", "write a plain '...' string"),
    "RegexpLike": ("a regular expression", _PATTERN),
    "SimilarTo": ("SIMILAR TO", _PATTERN),
    "Star": ("*", "name each key and aggregate"),
    "Struct": ("a struct {...}", "write one value"),
    "Subquery": ("a subquery", _SUBQUERY),
    "Select": ("a subquery", _SUBQUERY),
    "TryCast": ("TRY_CAST", ""),
    "TimestampDiff": ("TIMESTAMPDIFF", _BETWEEN),
    "Tuple": ("a list of values in parentheses", "write one value"),
    "Union": ("UNION", "ask twice, and join the released frames"),
    "Values": ("VALUES", "start FROM a table of the policy"),
    "WidthBucket": ("WIDTH_BUCKET", "write BIN(x, edge, edge, ...), which counts from 0"),
    "Window": ("a window function (OVER)", _WINDOW),
    "With": ("WITH", _SUBQUERY),
}

# Functions that sqlglot has no node for, and whose nearest name would mislead.
_FUNCTIONS = {
    **dict.fromkeys(("NOW", "GETDATE", "SYSDATE"), _NOW),
    **dict.fromkeys(("AGE", "TIMESTAMPDIFF"), _BETWEEN),
    **dict.fromkeys(("LIST_HAS", "CARDINALITY", "ARRAY_LENGTH", "LIST_COUNT"), _LISTED),
}

# Parts of a node, by the node and sqlglot's name for the part, or by the part alone.
_PARTS: dict[str, tuple[str, str]] = {
    "Select.distinct": ("SELECT DISTINCT", "name the columns in GROUP BY"),
    "Select.into": ("SELECT INTO", ""),
    "Select.kind": ("SELECT AS STRUCT", ""),
    "Select.laterals": ("LATERAL", _SUBQUERY),
    "Select.locks": ("FOR UPDATE", ""),
    "Select.qualify": ("QUALIFY", "write ORDER BY x DESC LIMIT n, or filter the released frame"),
    "Select.windows": ("WINDOW", _WINDOW),
    "Count.expressions": ("COUNT of several columns", "count one"),
    "Ceil.decimals": ("CEIL to decimals", "write CEIL(10 * x) / 10"),
    "Floor.decimals": ("FLOOR to decimals", "write FLOOR(10 * x) / 10"),
    "Join.method": ("this kind of JOIN", "write JOIN ... ON a.x = b.y"),
    "Limit.limit_options": ("LIMIT with PERCENT", "write LIMIT and a whole number"),
    "Max.count": ("MAX(x, n)", "write MAX(x)"),
    "Min.count": ("MIN(x, n)", "write MIN(x)"),
    "Ordered.nulls_first": ("NULLS FIRST", "sort the released frame, which is free"),
    "TableAlias.columns": ("renaming columns behind a table's name", "rename them in SELECT"),
    "recursive": ("RECURSIVE", "write WITH alone; a query may not read itself"),
    "db": ("a schema before a table's name", "write the table's name in the policy"),
    "catalog": ("a database before a table's name", "write the table's name in the policy"),
    "pivots": ("PIVOT", "ask for groups with GROUP BY"),
    "query": (
        "a subquery",
        "write x IN (SELECT key FROM public) in WHERE, by itself or joined by AND",
    ),
    "sample": ("TABLESAMPLE", "every row is read; choose rows by a condition"),
    "symmetric": ("SYMMETRIC", "write the smaller bound first"),
}


def called(node: exp.Expr, default: str = "") -> str:
    """The name of a function as it was written, where there is one."""
    # Only what a parser makes has notes.
    return str((isinstance(node, exp.Expression) and node.meta.get(WRITTEN)) or default)


def title(node: exp.Expr) -> str:
    """What people call a node of sqlglot's tree: a function as they have written it."""
    if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):
        node = node.this
    kind, written = type(node).__name__, called(node)
    if kind in _KNOWN and not written:
        return _KNOWN[kind][0]
    if isinstance(node, exp.Var):
        return node.name.upper()
    if written or isinstance(node, exp.Func):
        return f"the function {_function(node)}"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()


def _function(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return called(node, node.sql_name().upper())
    return called(node, node.name)


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
    if isinstance(node, exp.Anonymous):
        name = _function(node)
        if name.upper() not in AGGREGATE_NAMES:
            known = (*sorted(FUNCTION_NAMES), *AGGREGATE_NAMES)
            instead = _FUNCTIONS.get(name.upper())
            hint = f"; {instead}" if instead else nearest(name.upper(), known)
            raise UnknownNameError(f"{where}: unknown function {name!r}{hint}")
    if isinstance(node, exp.WithinGroup):
        node = node.this
    if isinstance(node, exp.IgnoreNulls) and isinstance(node.this, exp.AnyValue):
        node = node.this
    hint = hint or _KNOWN.get(type(node).__name__, ("", ""))[1]
    if isinstance(node, exp.Anonymous) or type(node) in _OFFERED_AGGREGATES:
        raise QueryError(
            f"{where}: the aggregate {_function(node)} stands where the value of a row is "
            "expected; aggregates stand in SELECT, by themselves"
        )
    if isinstance(node, exp.Func) and not hint:
        hint = nearest(_function(node).upper(), sorted(FUNCTION_NAMES)).removeprefix("; ")
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


Node = TypeVar("Node")

Rule = Callable[[Any, "Place"], ex.Expression]
"""Reads one type of node of sqlglot's tree."""

Rules = Mapping[type[exp.Expr], Rule]
"""The allow-list: what is not in it is refused by name."""


@dataclass(frozen=True, slots=True)
class Place:
    """The part of a query that is being read.

    Parameters
    ----------
    where : str
        What messages call it, such as ``WHERE``.
    names : Names
        The columns that it may name.
    rules : mapping
        The nodes that it may hold.
    """

    where: str
    names: Names
    rules: Rules

    def inside(self, part: str) -> Place:
        """A part of this part."""
        return replace(self, where=f"{self.where}, in {part}")

    def read(self, node: exp.Expr) -> ex.Expression:
        """Read a node and what is below it."""
        rule = self.rules.get(type(node))
        if rule is None:
            refuse(node, self.where)
        found = rule(node, self)
        if not isinstance(found, ex.Column | ex.Literal):
            self.names.origins.setdefault(found, node)
        return found

    def make(self, kind: Callable[..., Node], *parts: Any) -> Node:
        """A node of the plan, refused with its place where it refuses itself.

        Text beside a date is read as one.
        """
        try:
            found = kind(*parts)
        except QueryError as error:
            raise type(error)(f"{self.where}: {error}") from None
        if isinstance(found, ex.Compare | ex.Between | ex.InList) and _holds_text(parts):
            return cast(Node, read_dates(found, self.names))
        return found

    def operand(self, node: exp.Expr) -> ex.Expression:
        """Read an operand that must not be a bare condition.

        Databases disagree on how those bind without parentheses (``a = b IS NULL``).
        """
        # What is written as a function stands in brackets of its own.
        function = isinstance(node, exp.Func) and not isinstance(node, exp.Connector)
        if (
            isinstance(node, _CONDITIONS)
            and not function
            and not isinstance(node, exp.SubqueryPredicate)
        ):
            raise QueryError(
                f"{self.where}: a condition stands where a value is expected; put parentheses "
                "around it, or write a < b AND b < c for a < b < c"
            )
        return self.read(node)

    def sides(self, node: exp.Expr) -> tuple[ex.Expression, ex.Expression]:
        """Read both operands of a binary node."""
        left, right = take(node, self.where, "this", "expression")
        return self.operand(left), self.operand(right)

    def number(self, node: exp.Expr, what: str) -> int | Fraction:
        """Read a constant number, or refuse and say that ``what`` must be one."""
        value = self.read(node)
        if isinstance(value, ex.Literal) and is_number(value.value):
            return value.value
        raise QueryError(f"{self.where}: {what} must be a constant number")


_CONDITIONS = (exp.Predicate, exp.In, exp.Between, exp.Is, exp.Not, exp.And, exp.Or)


def is_number(value: Value | None) -> TypeGuard[int | Fraction]:
    """Whether a constant is a number; TRUE and FALSE are not."""
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def plain(node: exp.Expr) -> exp.Expr:
    """A node without the parentheses around it."""
    while isinstance(node, exp.Paren):
        (node,) = take(node, "parentheses", "this")
    return node


def identifier(node: exp.Expr, where: str) -> tuple[str, bool]:
    """The text of an identifier, and whether it is quoted."""
    if not isinstance(node, exp.Identifier):
        refuse(node, where)
    name, quoted = take(node, where, "this", "quoted")
    return str(name), bool(quoted)


def word(node: exp.Expr, where: str) -> str:
    """A word of the grammar, such as the part of a date, bare or as text."""
    if not isinstance(node, exp.Var | exp.Literal):
        refuse(node, where)
    take(node, where, "this", "is_string")
    return node.name


def _holds_text(parts: Sequence[object]) -> bool:
    """Whether a text stands among the operands of a comparison, or in a list of them."""
    return any(
        isinstance(part.value, str)
        if isinstance(part, ex.Literal)
        else isinstance(part, tuple) and any(isinstance(one, str) for one in part)
        for part in parts
    )
