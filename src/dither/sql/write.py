"""A plan as SQL that people read: the canonical text of a query, for plans and certificates."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from dither.errors import UnsupportedError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin, base, scans
from dither.plan.schema import Schema
from dither.sql.nodes import (
    AND,
    ATOM,
    NOT,
    OR,
    PRODUCT,
    SUM,
    TEST,
    Text,
    call,
    divided,
    edge,
    identifier,
    literal,
)

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
            exp.Ordered(this=exp.Column(this=identifier(name)), desc=falling or None)
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


def _table(scan: Scan) -> exp.Table:
    alias = exp.TableAlias(this=identifier(scan.alias)) if scan.alias != scan.table else None
    return exp.Table(this=identifier(scan.table), alias=alias)


def _alias(node: exp.Expr, name: str) -> exp.Alias:
    return exp.Alias(this=node, alias=identifier(name))


# --- expressions ------------------------------------------------------------------------------

_LEVELS = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT}
_BINARY: dict[str, type[exp.Binary]] = {
    **{"+": exp.Add, "-": exp.Sub, "*": exp.Mul, "//": exp.IntDiv, "%": exp.Mod},
    **{"=": exp.EQ, "<>": exp.NEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE},
}


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
            exp.EQ(this=self.text(a).within(SUM), expression=self.value(b)) for a, b in pairs
        ]
        on = parts[0]
        for part in parts[1:]:
            on = exp.And(this=on, expression=part)
        return exp.Join(this=_table(scan), on=on, side=side)

    def aggregate(self, aggregate: ag.Aggregate) -> exp.Expr:
        match aggregate:
            case ag.Count():
                return call("COUNT", exp.Star())
            case ag.CountUnits():
                if self._unit is None:
                    return call("COUNT", exp.Star())
                return call("COUNT", exp.Distinct(expressions=[self.value(self._unit)]))
            case ag.CountValues(operand=x):
                return call("COUNT", self.value(x))
            case ag.Sum(operand=x):
                return call("SUM", self.value(x))
            case ag.Mean(operand=x):
                return call("AVG", self.value(x))
            case ag.Variance(operand=x, sample=sample, root=root):
                name = ("STDDEV" if root else "VAR") + ("_SAMP" if sample else "_POP")
                return call(name, self.value(x))
            case ag.Quantile(operand=x, label="min" | "max" | "median" as label):
                return call(label.upper(), self.value(x))
            case ag.Quantile(operand=x, q=q):
                return call("QUANTILE_CONT", self.value(x), literal(q).node)
            case ag.Ratio(numerator=a, denominator=b):
                return divided(self.aggregate(a), self.aggregate(b))
        raise TypeError(type(aggregate).__name__)

    def value(self, node: ex.Expression) -> exp.Expr:
        return self.text(node).node

    def text(self, node: ex.Expression) -> Text:
        match node:
            case ex.Column(table=table, name=name):
                before = identifier(table) if self._qualified else None
                return Text(exp.Column(this=identifier(name), table=before), ATOM)
            case ex.Literal(value=value):
                return literal(value)
            case ex.Arithmetic(op=op, left=a, right=b):
                level = _LEVELS[op]
                left, right = self.text(a).within(level), self.text(b).within(level + 1)
                if op == "/":
                    return Text(divided(left, right), level)
                return Text(_BINARY[op](this=left, expression=right), level)
            case ex.Compare(op=op, left=a, right=b):
                left, right = self.text(a).within(SUM), self.text(b).within(SUM)
                return Text(_BINARY[op](this=left, expression=right), TEST)
            case ex.Between(operand=x, low=a, high=b):
                operand, low, high = (self.text(n).within(SUM) for n in (x, a, b))
                return Text(exp.Between(this=operand, low=low, high=high), TEST)
            case ex.InList(operand=x, values=values):
                listed = [literal(v).node for v in values]
                return Text(exp.In(this=self.text(x).within(SUM), expressions=listed), TEST)
            case ex.IsNull(operand=x):
                return Text(exp.Is(this=self.text(x).within(SUM), expression=exp.Null()), TEST)
            case ex.Not(operand=x):
                return Text(exp.Not(this=self.text(x).within(NOT)), NOT)
            case ex.And(operands=xs):
                return self._chain(exp.And, xs, AND)
            case ex.Or(operands=xs):
                return self._chain(exp.Or, xs, OR)
            case ex.Case(branches=branches, otherwise=otherwise):
                arms = [exp.If(this=self.value(c), true=self.value(v)) for c, v in branches]
                last = None if otherwise == ex.Literal(None) else self.value(otherwise)
                return Text(exp.Case(ifs=arms, default=last), ATOM)
        return Text(self._function(node), ATOM)

    def _chain(
        self, kind: type[exp.And] | type[exp.Or], operands: tuple[ex.Expression, ...], level: int
    ) -> Text:
        parts = [self.text(x).within(level + 1) for x in operands]
        chain = parts[0]
        for part in parts[1:]:
            chain = kind(this=chain, expression=part)
        return Text(chain, level if len(parts) > 1 else OR)

    def _function(self, node: ex.Expression) -> exp.Expr:
        # EXTRACT and SUBSTRING have a grammar of their own, in which a bare condition cannot stand.
        match node:
            case ex.Absolute(operand=x):
                return call("ABS", self.value(x))
            case ex.Floor(operand=x) | ex.Ceil(operand=x) | ex.Lower(operand=x):
                return call(type(node).__name__.upper(), self.value(x))
            case ex.Upper(operand=x):
                return call("UPPER", self.value(x))
            case ex.Coalesce(operands=xs) | ex.Least(operands=xs) | ex.Greatest(operands=xs):
                return call(type(node).__name__.upper(), *(self.value(x) for x in xs))
            case ex.Clamp(operand=x, lower=a, upper=b):
                return call("CLAMP", self.value(x), edge(a), edge(b))
            case ex.Bin(operand=x, edges=edges):
                return call("BIN", self.value(x), *(edge(e) for e in edges))
            case ex.DatePart(part=part, operand=x):
                operand = self.text(x).within(SUM)
                return exp.Extract(this=exp.Var(this=part.upper()), expression=operand)
            case ex.DateTruncate(part=part, operand=x):
                return call("DATE_TRUNC", exp.Literal.string(part), self.value(x))
            case ex.Substring(operand=x, start=start, length=length):
                ends = (exp.Literal.number(n) for n in (start, length))
                return call("SUBSTRING", self.text(x).within(SUM), *ends)
        raise TypeError(type(node).__name__)
