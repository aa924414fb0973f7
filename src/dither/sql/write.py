"""A plan as SQL that people read: the canonical text of a query, for plans and certificates."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from sqlglot import TokenType, exp
from sqlglot.dialects.dialect import Dialect

from dither.errors import UnsupportedError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.kinds import Value
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin, base, scans
from dither.plan.schema import Schema

__all__ = ["to_sql"]


def to_sql(query: ag.Query, schema: Schema, *, pretty: bool = False) -> str:
    """The canonical SQL of a query, in the SQL of DuckDB.

    Reading it back gives the same query. What SQL cannot say is left out: the weights of outputs,
    public keys declared for this query alone, and ``discover``.

    Parameters
    ----------
    query : Query
    schema : Schema
        Names the protected unit.
    pretty : bool
        Over several lines.

    Returns
    -------
    str

    Examples
    --------
    >>> from dither.plan.schema import Table
    >>> query = ag.Query(Scan("visits", "visits"), (), (ag.Output("n", ag.Count()),))
    >>> to_sql(query, Schema({"visits": Table("visits", {})}))
    'SELECT COUNT(*) AS n FROM visits'
    """
    source, joins, predicates = _flatten(query.relation)
    writer = _Writer(qualified=len(scans(query.relation)) > 1, unit=_unit(query, schema))
    select = exp.Select(
        expressions=[
            *(writer.key(k) for k in query.keys),
            *(_alias(writer.aggregate(o.aggregate), o.name) for o in query.outputs),
        ]
    )
    select.set(_argument(exp.Select, "from"), exp.From(this=_table(source)))
    if joins:
        select.set("joins", [writer.join(j) for j in joins])
    if predicates:
        select.set("where", exp.Where(this=writer.value(_conjunction(predicates))))
    if query.keys:
        groups = [writer.group(k, i + 1) for i, k in enumerate(query.keys)]
        select.set("group", exp.Group(expressions=groups))
    if query.order:
        ordered = [
            exp.Ordered(this=exp.Column(this=_identifier(name)), desc=falling or None)
            for name, falling in query.order
        ]
        select.set("order", exp.Order(expressions=ordered))
    if query.limit is not None:
        select.set("limit", exp.Limit(expression=exp.Literal.number(query.limit)))
    return select.sql(dialect="duckdb", pretty=pretty, comments=False)


def _argument(node: type[exp.Expr], name: str) -> str:
    # Some versions of sqlglot write `from_` and others `from`.
    return name if name in node.arg_types else f"{name}_"


def _unit(query: ag.Query, schema: Schema) -> ex.Column | None:
    origin = base(query.relation)
    unit = schema.table(origin.table).unit
    return ex.Column(origin.alias, unit) if unit is not None else None


def _flatten(
    relation: Relation,
) -> tuple[Scan, list[PublicJoin | UnitJoin], list[ex.Expression]]:
    """The first table, the joins and the predicates.

    A filter below a public join can stand above it, since each row of the source matches at most
    one public row and stays or goes by itself. Below a join of two private tables it cannot, since
    there the rows of a unit are cut before they are joined.
    """
    match relation:
        case Scan():
            return relation, [], []
        case Filter(source=source, predicate=predicate):
            first, joins, predicates = _flatten(source)
            return first, joins, [*predicates, predicate]
        case PublicJoin(source=source):
            first, joins, predicates = _flatten(source)
            return first, [*joins, relation], predicates
        case UnitJoin(left=left):
            first, joins, predicates = _flatten(left)
            if predicates:
                raise UnsupportedError(
                    "a filter below a join of two private tables has no SQL; filter after the join"
                )
            return first, [*joins, relation], predicates
    raise TypeError(type(relation).__name__)


def _conjunction(predicates: Sequence[ex.Expression]) -> ex.Expression:
    parts = [x for p in predicates for x in (p.operands if isinstance(p, ex.And) else (p,))]
    return parts[0] if len(parts) == 1 else ex.And(tuple(parts))


# --- names ------------------------------------------------------------------------------------


def _identifier(name: str) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=not _bare(name))


def _bare(name: str) -> bool:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return False
    tokens = list(Dialect.get_or_raise("duckdb").tokenize(name))
    return len(tokens) == 1 and tokens[0].token_type is TokenType.VAR


def _table(scan: Scan) -> exp.Table:
    alias = exp.TableAlias(this=_identifier(scan.alias)) if scan.alias != scan.table else None
    return exp.Table(this=_identifier(scan.table), alias=alias)


def _alias(node: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=node, alias=_identifier(name))


# --- expressions ------------------------------------------------------------------------------

_OR, _AND, _NOT, _TEST, _SUM, _PRODUCT, _ATOM = range(7)
_LEVELS = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "//": _PRODUCT, "%": _PRODUCT}
_BINARY: dict[str, type[exp.Binary]] = {
    **{"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "//": exp.IntDiv, "%": exp.Mod},
    **{"=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE},
}


class _Text(NamedTuple):
    """A node and how tightly it binds."""

    node: exp.Expr
    level: int

    def within(self, level: int) -> exp.Expr:
        """The node, in parentheses where it binds less tightly than ``level``."""
        return self.node if self.level >= level else exp.Paren(this=self.node)


class _Writer:
    def __init__(self, *, qualified: bool, unit: ex.Column | None) -> None:
        self._qualified = qualified
        self._unit = unit

    def key(self, key: ag.Key) -> exp.Expr:
        node = self.value(key.expression)
        if isinstance(key.expression, ex.Column) and key.expression.name == key.name:
            return node
        return _alias(node, key.name)

    def group(self, key: ag.Key, position: int) -> exp.Expr:
        if isinstance(key.expression, ex.Column):
            return self.value(key.expression)
        return exp.Literal.number(position)

    def join(self, join: PublicJoin | UnitJoin) -> exp.Join:
        match join:
            case PublicJoin(public=scan, on=pairs, keep_all=keep_all):
                side = "LEFT" if keep_all else None
            case UnitJoin(right=scan, left_unit=left, right_unit=right):
                pairs, side = ((left, right),), None
        parts: list[exp.Expr] = [
            exp.EQ(this=self.text(a).within(_SUM), expression=self.value(b)) for a, b in pairs
        ]
        on = parts[0]
        for part in parts[1:]:
            on = exp.And(this=on, expression=part)
        return exp.Join(this=_table(scan), on=on, side=side)

    def aggregate(self, aggregate: ag.Aggregate) -> exp.Expr:
        match aggregate:
            case ag.Count():
                return _call("COUNT", exp.Star())
            case ag.CountUnits():
                if self._unit is None:
                    return _call("COUNT", exp.Star())
                return _call("COUNT", exp.Distinct(expressions=[self.value(self._unit)]))
            case ag.CountValues(operand=x):
                return _call("COUNT", self.value(x))
            case ag.Sum(operand=x):
                return _call("SUM", self.value(x))
            case ag.Mean(operand=x):
                return _call("AVG", self.value(x))
            case ag.Variance(operand=x, sample=sample, root=root):
                name = ("STDDEV" if root else "VAR") + ("_SAMP" if sample else "_POP")
                return _call(name, self.value(x))
            case ag.Quantile(operand=x, label="min" | "max" | "median" as label):
                return _call(label.upper(), self.value(x))
            case ag.Quantile(operand=x, q=q):
                return _call("QUANTILE_CONT", self.value(x), _number(q).node)
            case ag.Ratio(numerator=a, denominator=b):
                return _divided(self.aggregate(a), self.aggregate(b))
        raise TypeError(type(aggregate).__name__)

    def value(self, node: ex.Expression) -> exp.Expr:
        return self.text(node).node

    def text(self, node: ex.Expression) -> _Text:
        match node:
            case ex.Column(table=table, name=name):
                before = _identifier(table) if self._qualified else None
                return _Text(exp.Column(this=_identifier(name), table=before), _ATOM)
            case ex.Literal(value=value):
                return _literal(value)
            case ex.Arithmetic(op=op, left=a, right=b):
                level = _LEVELS[op]
                left, right = self.text(a).within(level), self.text(b).within(level + 1)
                if op == "/":
                    return _Text(_divided(left, right), level)
                return _Text(_BINARY[op](this=left, expression=right), level)
            case ex.Compare(op=op, left=a, right=b):
                left, right = self.text(a).within(_SUM), self.text(b).within(_SUM)
                return _Text(_BINARY[op](this=left, expression=right), _TEST)
            case ex.Between(operand=x, low=a, high=b):
                operand, low, high = (self.text(n).within(_SUM) for n in (x, a, b))
                return _Text(exp.Between(this=operand, low=low, high=high), _TEST)
            case ex.InList(operand=x, values=values):
                listed = [_literal(v).node for v in values]
                return _Text(exp.In(this=self.text(x).within(_SUM), expressions=listed), _TEST)
            case ex.IsNull(operand=x):
                return _Text(exp.Is(this=self.text(x).within(_SUM), expression=exp.Null()), _TEST)
            case ex.Not(operand=x):
                return _Text(exp.Not(this=self.text(x).within(_NOT)), _NOT)
            case ex.And(operands=xs):
                return self._chain(exp.And, xs, _AND)
            case ex.Or(operands=xs):
                return self._chain(exp.Or, xs, _OR)
            case ex.Case(branches=branches, otherwise=otherwise):
                arms = [exp.If(this=self.value(c), true=self.value(v)) for c, v in branches]
                last = None if otherwise == ex.Literal(None) else self.value(otherwise)
                return _Text(exp.Case(ifs=arms, default=last), _ATOM)
        return _Text(self._function(node), _ATOM)

    def _chain(
        self, kind: type[exp.And] | type[exp.Or], operands: tuple[ex.Expression, ...], level: int
    ) -> _Text:
        parts = [self.text(x).within(level + 1) for x in operands]
        chain = parts[0]
        for part in parts[1:]:
            chain = kind(this=chain, expression=part)
        return _Text(chain, level if len(parts) > 1 else _OR)

    def _function(self, node: ex.Expression) -> exp.Expr:
        match node:
            case ex.Absolute(operand=x):
                return _call("ABS", self.value(x))
            case ex.Floor(operand=x) | ex.Ceil(operand=x) | ex.Lower(operand=x):
                return _call(type(node).__name__.upper(), self.value(x))
            case ex.Upper(operand=x):
                return _call("UPPER", self.value(x))
            case ex.Coalesce(operands=xs) | ex.Least(operands=xs) | ex.Greatest(operands=xs):
                return _call(type(node).__name__.upper(), *(self.value(x) for x in xs))
            case ex.Clamp(operand=x, lower=a, upper=b):
                return _call("CLAMP", self.value(x), _edge(a), _edge(b))
            case ex.Bin(operand=x, edges=edges):
                return _call("BIN", self.value(x), *(_edge(e) for e in edges))
            case ex.DatePart(part=part, operand=x):
                return exp.Extract(this=exp.Var(this=part.upper()), expression=self.value(x))
            case ex.DateTruncate(part=part, operand=x):
                return _call("DATE_TRUNC", exp.Literal.string(part), self.value(x))
            case ex.Substring(operand=x, start=start, length=length):
                ends = (exp.Literal.number(n) for n in (start, length))
                return _call("SUBSTRING", self.value(x), *ends)
        raise TypeError(type(node).__name__)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))


def _divided(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.Div(this=left, expression=right, typed=False, safe=False)


# --- constants --------------------------------------------------------------------------------


def _literal(value: Value | None) -> _Text:
    match value:
        case None:
            return _Text(exp.Null(), _ATOM)
        case bool():
            return _Text(exp.Boolean(this=value), _ATOM)
        case int():
            return _Text(_digits(str(abs(value)), value < 0), _ATOM)
        case Fraction():
            return _number(value)
        case str():
            return _Text(exp.Literal.string(value), _ATOM)
        case dt.datetime():
            utc = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return _Text(_typed("timestamp", utc.isoformat(sep=" ")), _ATOM)
        case dt.date():
            return _Text(_typed("date", value.isoformat()), _ATOM)


def _typed(kind: str, text: str) -> exp.Expr:
    to = exp.DataType.build(kind, dialect="duckdb")
    return exp.Cast(this=exp.Literal.string(text), to=to)


def _digits(text: str, negative: bool) -> exp.Expr:
    number = exp.Literal.number(text)
    return exp.Neg(this=number) if negative else number


def _edge(value: Fraction) -> exp.Expr:
    """A bound or an edge, which is an exact rational however it is written."""
    if value.denominator == 1:
        return _literal(int(value)).node
    return _number(value).node


def _number(value: Fraction) -> _Text:
    """A real: a decimal where that is exact and not long, else a quotient of integers."""
    places = _decimal_places(value.denominator)
    if places is None or places > 40:
        top, bottom = (_literal(n).node for n in (value.numerator, value.denominator))
        return _Text(_divided(top, bottom), _PRODUCT)
    places = max(places, 1)
    digits = str(abs(value.numerator) * (10**places // value.denominator)).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}"
    return _Text(_digits(text, value < 0), _ATOM)


def _decimal_places(denominator: int) -> int | None:
    """The decimal places that a fraction needs, ``None`` where no number of them is enough."""
    counts = []
    for prime in (2, 5):
        count = 0
        while denominator % prime == 0:
            denominator //= prime
            count += 1
        counts.append(count)
    return max(counts) if denominator == 1 else None
