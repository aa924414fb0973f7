"""What can be refused of a query before anything is built from it."""

from __future__ import annotations

from dither.errors import QueryError
from dither.plan import aggregates as ag
from dither.plan.facts import Scope, infer, listed_values
from dither.plan.job import GroupKey
from dither.plan.kinds import Kind, Value
from dither.plan.relations import Filter, PublicJoin, Relation, UnitJoin
from dither.plan.text import show

__all__ = ["check_filters", "check_names", "group_key"]


def check_names(query: ag.Query) -> None:
    """Every column of the release has a name of its own, and ORDER BY names one."""
    if not query.outputs:
        raise QueryError("the query releases nothing: add an aggregate, such as COUNT(*)")
    names = [k.name for k in query.keys]
    for output in query.outputs:
        names += [output.name, f"{output.name}_lower", f"{output.name}_upper"]
        if output.weight <= 0:
            raise QueryError(f"the weight of {output.name!r} must be above 0")
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
        if facts.nullable:
            notes.append(f"rows in which {key.name} is NULL belong to no group")
    return GroupKey(key.name, key.expression, facts.kind, values)
