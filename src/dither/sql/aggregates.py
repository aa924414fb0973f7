"""What is asked of a group: sqlglot's tree to aggregates of the plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from sqlglot import exp

from dither.errors import QueryError, UnsupportedError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.lowering.expanded import filtered
from dither.sql.allow_list import AGGREGATE_NAMES, Place, called, plain, refuse, take

__all__ = ["aggregate", "aggregates_in", "is_aggregate", "quantiles"]

LOWEST = Fraction(1, 200)
"""The quantile that stands for MIN; MAX is as far from the other end."""

_AFTER = (
    "release the aggregates by themselves and calculate on the released frame, which is free, or "
    "put the calculation inside, as SUM(f(x))"
)


def aggregates_in(node: exp.Expr) -> bool:
    """Whether any aggregate stands in a node, known or not."""
    return any(
        isinstance(n, exp.AggFunc | exp.Window | exp.Filter | exp.WithinGroup)
        or (isinstance(n, exp.Anonymous) and n.name.upper() in AGGREGATE_NAMES)
        for n in node.walk()
    )


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate itself, and nothing is done with it."""
    if isinstance(node, exp.Anonymous):
        return node.name.upper() in AGGREGATE_NAMES
    return type(node) in _RULES


def aggregate(node: exp.Expr, place: Place) -> ag.AggregateFunction:
    """Read one aggregate.

    Raises
    ------
    QueryError
        Naming the part that cannot be asked.
    """
    node = plain(node)
    rule = _RULES.get(type(node))
    if rule is not None:
        return rule(node, place)
    if isinstance(node, exp.IgnoreNulls):
        # ANY_VALUE(x) is read as if IGNORE NULLS had been written around it, or further out.
        node = node.find(exp.AnyValue) or node
    return refuse(node, place.where)


def _operand(node: Any, place: Place, name: str) -> ex.Expression:
    inside = place.inside(name)
    if node is None:
        raise QueryError(f"{place.where}: {name} needs a column or an expression")
    if isinstance(node, exp.Distinct):
        refuse(node, inside.where, "COUNT(DISTINCT x) counts distinct values")
    if isinstance(node, exp.Order):
        refuse(node, inside.where, "the order of rows does not matter here")
    return inside.read(node)


def _simple(
    name: str, make: Callable[[ex.Expression], ag.AggregateFunction]
) -> Callable[[exp.Expr, Place], ag.AggregateFunction]:
    def rule(node: exp.Expr, place: Place) -> ag.AggregateFunction:
        (this,) = take(node, place.where, "this")
        return make(_operand(this, place, called(node, name)))

    return rule


def _count(node: exp.Count, place: Place) -> ag.AggregateFunction:
    (this,) = take(node, place.where, "this", ignored=("big_int",))
    if this is None:
        return ag.Count()
    if isinstance(this, exp.Star):
        take(this, place.where)
        return ag.Count()
    if isinstance(this, exp.Distinct):
        return _count_distinct(this, place)
    operand = _operand(this, place, "COUNT")
    if isinstance(operand, ex.Literal):
        if operand.value is None:
            raise QueryError(f"{place.where}: COUNT(NULL) is always 0; write COUNT(*)")
        return ag.Count()
    return ag.CountValues(operand)


def _count_distinct(node: exp.Distinct, place: Place) -> ag.AggregateFunction:
    inside = place.inside("COUNT(DISTINCT ...)")
    where = inside.where
    (listed,) = take(node, where, "expressions")
    if not listed:
        raise QueryError(f"{where}: name a column")
    operand, *others = dict.fromkeys(map(inside.read, listed))
    if isinstance(operand, ex.Literal) or any(isinstance(x, ex.Literal) for x in others):
        raise QueryError(f"{where}: a constant has one value; name a column")
    if not others and isinstance(operand, ex.Column) and place.names.is_unit(operand):
        return ag.CountUnits()
    return ag.CountDistinct(operand, tuple(others))


def _quantile(node: exp.Expr, place: Place) -> ag.AggregateFunction:
    this, q, other = take(node, place.where, "this", "quantile", "expression")
    share = q if q is not None else other
    name = called(node, "QUANTILE_CONT")
    if share is None:
        raise QueryError(f"{place.where}: a quantile is written {name}(x, 0.9)")
    operand = _operand(this, place, name)
    return ag.Quantile(operand, _share(share, place), _label(node))


def _label(node: exp.Expr) -> str:
    return "disc" if isinstance(node, exp.PercentileDisc) else "quantile"


def _within(node: exp.WithinGroup, place: Place) -> ag.AggregateFunction:
    inner, order = take(node, place.where, "this", "expression")
    if type(inner) not in (exp.PercentileCont, exp.PercentileDisc, exp.Mode):
        refuse(node, place.where)
    where = f"{place.where}, in WITHIN GROUP"
    share, *_ = take(inner, where, "this")
    (listed,) = take(order, where, "expressions")
    if len(listed) != 1:
        raise UnsupportedError(f"{where}: ORDER BY of several columns is not offered; name one")
    this, falling = take(listed[0], where, "this", "desc", ignored=("nulls_first",))
    if isinstance(inner, exp.Mode):
        if share is not None:
            raise QueryError(f"{where}: write MODE(x), or MODE() WITHIN GROUP (ORDER BY x)")
        return ag.Mode(_operand(this, place, "WITHIN GROUP"))
    q = _share(share, place)
    return ag.Quantile(
        _operand(this, place, "WITHIN GROUP"), 1 - q if falling else q, _label(inner)
    )


def quantiles(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """Each of the quantiles that one list asks for; empty where there is no list."""
    if not isinstance(
        node, exp.Quantile | exp.PercentileCont | exp.PercentileDisc | exp.WithinGroup
    ):
        return ()
    listed = [n for n in node.args.values() if isinstance(n, exp.Array)]
    if isinstance(node, exp.WithinGroup):
        listed = [n for n in node.this.args.values() if isinstance(n, exp.Array)]
    if len(listed) != 1:
        return ()
    (shares,) = take(listed[0], "a list", "expressions")
    if not shares:
        raise QueryError("SELECT: a list of quantiles needs one share at least, as [0.25, 0.5]")
    found = []
    for share in shares:
        one = node.copy()
        array = one.find(exp.Array)
        assert array is not None
        array.replace(share.copy())
        found.append(one)
    return tuple(found)


def _filter(node: exp.Filter, place: Place) -> ag.AggregateFunction:
    inner, where = take(node, place.where, "this", "expression")
    if inner is None or where is None:
        raise QueryError(f"{place.where}: FILTER needs an aggregate and a condition")
    (condition,) = take(where, place.where, "this")
    found = aggregate(inner, place)
    return place.make(filtered, found, place.inside("FILTER").read(condition))


def _count_if(node: exp.Expr, place: Place) -> ag.AggregateFunction:
    (this,) = take(node, place.where, "this")
    return filtered(ag.Count(), _operand(this, place, called(node, "COUNT_IF")))


def _paired(word: str) -> Callable[[exp.Expr, Place], ag.AggregateFunction]:
    def rule(node: exp.Expr, place: Place) -> ag.AggregateFunction:
        this, other = take(node, place.where, "this", "expression")
        return ag.Paired(word, *(_operand(x, place, called(node, word)) for x in (this, other)))

    return rule


def _share(node: exp.Expr, place: Place) -> Fraction:
    q = Fraction(place.number(node, "the share of a quantile"))
    if not 0 < q < 1:
        raise QueryError(
            f"{place.where}: the share of a quantile lies between 0 and 1; write MIN(x) or MAX(x) "
            "for the ends"
        )
    return q


_RULES: Mapping[type[exp.Expr], Callable[[Any, Place], ag.AggregateFunction]] = {
    exp.Count: _count,
    exp.Sum: _simple("SUM", ag.Sum),
    exp.Avg: _simple("AVG", ag.Mean),
    exp.Variance: _simple("VARIANCE", ag.Variance),
    exp.VariancePop: _simple("VAR_POP", lambda x: ag.Variance(x, sample=False)),
    exp.Stddev: _simple("STDDEV", lambda x: ag.Variance(x, root=True)),
    exp.StddevSamp: _simple("STDDEV_SAMP", lambda x: ag.Variance(x, root=True)),
    exp.StddevPop: _simple("STDDEV_POP", lambda x: ag.Variance(x, sample=False, root=True)),
    exp.Median: _simple("MEDIAN", lambda x: ag.Quantile(x, Fraction(1, 2), "median")),
    exp.Mode: _simple("MODE", ag.Mode),
    exp.Min: _simple("MIN", lambda x: ag.Quantile(x, LOWEST, "min")),
    exp.Max: _simple("MAX", lambda x: ag.Quantile(x, 1 - LOWEST, "max")),
    exp.Quantile: _quantile,
    exp.PercentileCont: _quantile,
    exp.PercentileDisc: _quantile,
    exp.CountIf: _count_if,
    exp.Filter: _filter,
    exp.CovarPop: _paired("COVAR_POP"),
    exp.CovarSamp: _paired("COVAR_SAMP"),
    exp.Corr: _paired("CORR"),
    exp.RegrSlope: _paired("REGR_SLOPE"),
    exp.RegrIntercept: _paired("REGR_INTERCEPT"),
    exp.RegrR2: _paired("REGR_R2"),
    exp.RegrCount: _paired("REGR_COUNT"),
    exp.RegrAvgx: _paired("REGR_AVGX"),
    exp.RegrAvgy: _paired("REGR_AVGY"),
    exp.WithinGroup: _within,
    exp.Anonymous: lambda node, place: _named(node, place),
}


def _named(node: exp.Anonymous, place: Place) -> ag.AggregateFunction:
    if node.name.upper() != "MEAN":
        raise UnsupportedError(
            f"{place.where}: the function {node.name} of an aggregate is not offered; {_AFTER}"
        )
    take(node, place.where, "this", "expressions")
    if len(node.expressions) != 1:
        raise QueryError(f"{place.where}: {node.name} needs one column or expression")
    return ag.Mean(_operand(node.expressions[0], place, node.name))
