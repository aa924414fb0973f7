"""What can be refused of a query before anything is built from it."""

from __future__ import annotations

from dither.errors import QueryError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.facts import Facts, Scope, infer, listed_values
from dither.plan.job import GroupKey
from dither.plan.kinds import Kind, Value
from dither.plan.relations import Filter, PublicJoin, Relation, UnitJoin
from dither.plan.text import number, show, unwritable

__all__ = ["check_filters", "check_names", "group_key"]


MOST_OUTPUTS = 200


def check_names(query: ag.Query) -> None:
    """Every column of the release has a name of its own, and ORDER BY names one."""
    if not query.outputs:
        raise QueryError("the query releases nothing: add an aggregate, such as COUNT(*)")
    if len(query.outputs) > MOST_OUTPUTS:
        raise QueryError(
            f"the query releases {len(query.outputs):,} outputs, more than {MOST_OUTPUTS}; each "
            "takes its share of the budget, so ask for fewer at once"
        )
    names = [k.name for k in query.keys]
    for output in query.outputs:
        names += [output.name, f"{output.name}_lower", f"{output.name}_upper"]
        if output.weight <= 0:
            raise QueryError(f"the weight of {output.name!r} must be above 0")
    for name in names:
        fault = unwritable(name) if name else "is empty; give it letters"
        if fault is not None:
            raise QueryError(f"the name {name!r} of a key or an output {fault}")
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise QueryError(
            f"two columns of the release would be named {twice[0]!r} (an output x also gives "
            "x_lower and x_upper); use AS to tell them apart"
        )
    for name, _ in query.order:
        if name not in names:
            raise QueryError(f"ORDER BY {name}: the release has no such column")


def check_filters(relation: Relation, scope: Scope) -> None:
    """Every WHERE is a condition, and every join sets equal what can be."""
    match relation:
        case Filter(source=source, predicate=predicate):
            if infer(predicate, scope).kind not in (Kind.BOOLEAN, None):
                raise QueryError(f"WHERE {show(predicate)} is not a condition")
            check_filters(source, scope)
        case PublicJoin(source=source, on=on):
            for left, right in on:
                if not _comparable(infer(left, scope).kind, infer(right, scope).kind):
                    raise QueryError(f"JOIN ON {show(left)} = {show(right)}: unlike kinds of value")
            check_filters(source, scope)
        case UnitJoin(left=source):
            check_filters(source, scope)


def _comparable(left: Kind | None, right: Kind | None) -> bool:
    if left is None or right is None or left is right:
        return True
    return (left.numeric and right.numeric) or (left.temporal and right.temporal)


def group_key(key: ag.Key, scope: Scope, notes: list[str], *, discover: bool) -> GroupKey:
    """A grouping expression with its public values, where there are any and they are wanted.

    Raises
    ------
    QueryError
        For a kind that has too many values to be grouped by.
    """
    facts = infer(key.expression, scope)
    if facts.kind is None:
        raise QueryError(f"GROUP BY {show(key.expression)}: NULL is no key")
    if facts.kind in (Kind.REAL, Kind.TIMESTAMP):
        cut = "BIN(x, e0, e1, ...) or FLOOR(x)" if facts.kind is Kind.REAL else "DATE_TRUNC"
        raise QueryError(
            f"GROUP BY {show(key.expression)}: a {facts.kind.value} has too many values; "
            f"cut it with {cut}, or declare bins in the policy"
        )
    values: tuple[Value, ...] | None = key.values
    if values is None and not discover:
        values = listed_values(facts)
    if values is not None:
        values = tuple(dict.fromkeys(values))
        notes.extend(_left_out(key, facts, scope))
    return GroupKey(key.name, key.expression, facts.kind, values)


def _left_out(key: ag.Key, facts: Facts, scope: Scope) -> list[str]:
    """Which rows are in no public group, where there can be any."""
    if isinstance(key.expression, ex.Bin) and key.values is None:
        shown, edges = show(key.expression.operand), key.expression.edges
        ends = f"outside {number(edges[0])} to {number(edges[-1])}"
        return [f"rows in which {shown} is NULL or {ends} belong to no group"]
    if key.values is not None or _as_declared(key.expression, scope):
        return [f"rows in which {key.name} is NULL or not one of these keys belong to no group"]
    return [f"rows in which {key.name} is NULL belong to no group"] if facts.nullable else []


def _as_declared(node: ex.Expression, scope: Scope) -> bool:
    """Whether it rests on what is declared of a column that no other value can occur."""
    match node:
        case ex.DatePart(part=part) if part != "year":
            return False
        case ex.Bin():
            return False
        case ex.Case(branches=branches, otherwise=other):
            return any(_as_declared(value, scope) for value in (*(v for _, v in branches), other))
    truth = infer(node, scope).kind is Kind.BOOLEAN
    return not truth and any(infer(c, scope).kind is not Kind.BOOLEAN for c in ex.columns(node))
