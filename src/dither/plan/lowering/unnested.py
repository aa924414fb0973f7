"""Lists bounded before a row is made of them: how many elements count, and what is asked first.

A row that holds a list of n elements becomes n rows, and with k lists beside one another n^k. So
what a question costs in time, memory and temporary files would be for one row to say. Public facts
say it instead:

- ``items``: of each list so many elements count, the first ones. What the policy says of it
  (``max_items``); else an equal share, so that one row becomes at most ``max_unnest_rows``.
- The rows of one unit become at most ``max_unnest_rows`` together: those of its rows are unnested
  that come first by a keyed hash of the unit's own rows, and the others are as if they were not
  there. Where a row is a person, it is the only one.
- ``conditions_first``: what is asked of a row stands below what multiplies it, on every engine. A
  row that a WHERE leaves out is never unnested.

Each of these makes of one row, or of one unit's rows, something that follows from these and the key
alone. So stability stays 1 in units: adding, removing or replacing a unit changes its rows alone.
And a unit has at most ``max_unnest_rows`` of the rows that come out, so limits above that are
lowered to it (``dither.plan.facts.units.limits``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.relations import (
    Elements,
    Filter,
    KeyFilter,
    PublicJoin,
    Relation,
    Unnest,
    base,
    visible,
)
from dither.plan.schema import Schema, Table

__all__ = ["conditions_first", "items"]

LEAST_ITEMS = 10
"""Where nothing is declared, lists whose equal shares are smaller are refused: so few elements of a
list say little of it, and nobody chose them."""

Step = Filter | KeyFilter | PublicJoin | Unnest


def items(relation: Relation, schema: Schema) -> dict[str, int]:
    """How many elements count of each list that a FROM unnests, by the alias of its elements.

    Raises
    ------
    QueryError
        Where one row could become more rows than a unit may have, as the policy declares, or the
        share of a list would be small; it names what to declare.
    """
    lists = [one for one in visible(relation) if isinstance(one, Elements)]
    if not lists:
        return {}
    table = schema.table(base(relation).table)
    most = table.max_unnest_rows
    declared = {one.alias: one.most for one in lists if one.most is not None}
    # Rounded down, here and in the root: the product of all shares is then never above the limit.
    left, others = most // prod(declared.values()), len(lists) - len(declared)
    if not left:
        shown = " times ".join(f"{n:,}" for n in declared.values())
        raise QueryError(
            f"UNNEST: one row would become {shown} rows, more than {most:,}, {_limit(table)}; "
            "unnest fewer lists beside one another, or lower max_items in the policy"
        )
    share = _root(left, others) if others else 0
    if others and share < min(LEAST_ITEMS, most):
        raise QueryError(
            f"UNNEST of {len(lists)} lists beside one another: a row would become one for each "
            f"combination of their elements, and {most:,} of these count, {_limit(table)}: fewer "
            f"than {LEAST_ITEMS} elements of each; unnest fewer, or declare max_items in the policy"
        )
    return {one.alias: declared.get(one.alias, share) for one in lists}


def _limit(table: Table) -> str:
    if table.unit is None:
        return "the most that one row may become"
    return f"the most that one {table.unit} may have (max_unnest_rows)"


def _root(number: int, degree: int) -> int:
    """The largest whole number whose power is at most a number."""
    low, high = 0, number
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**degree <= number else (low, middle - 1)
    return low


def conditions_first(relation: Relation) -> Relation:
    """The same rows, each condition and public join as far below as what it names allows.

    A condition keeps a row or not, and a public join puts columns beside it: both by that row
    alone. So they commute with what multiplies rows, as far as they name none of its elements.
    Lists are unnested in the order in which they stand, so that a condition on elements of the
    first comes before the second.

    Parameters
    ----------
    relation : Relation
        A FROM with its WHERE. Queries below it are left as they are.
    """
    steps = list(_steps(relation))
    if not any(isinstance(step, Unnest) for step in steps):
        return relation
    found = steps[-1].source
    known = {named.alias for named in visible(found)}
    waiting = [(part, _needs(part)) for step in reversed(steps) for part in _parts(step)]
    while waiting:
        later: list[tuple[Step, set[str]]] = []
        for step, needs in waiting:
            if isinstance(step, Unnest) or not needs <= known:
                later.append((step, needs))
                continue
            found = _above(found, step)
            if isinstance(step, PublicJoin):
                known.add(step.public.alias)
        if len(later) == len(waiting):
            # Nothing is left to ask before the next list, of which the first is always ready.
            place = next(i for i, (step, _) in enumerate(later) if isinstance(step, Unnest))
            step, _ = later.pop(place)
            assert isinstance(step, Unnest)
            found = replace(step, source=found)
            known.add(step.elements.alias)
        waiting = later
    return found


def _above(found: Relation, step: Filter | KeyFilter | PublicJoin) -> Relation:
    """A step over what was found so far; conditions one after the other are one."""
    if not (isinstance(step, Filter) and isinstance(found, Filter)):
        return replace(step, source=found)
    both = (*_conditions(found.predicate), *_conditions(step.predicate))
    return Filter(found.source, ex.And(both))


def _steps(relation: Relation) -> Iterator[Step]:
    """The steps of a FROM and its WHERE, the last one first."""
    while isinstance(relation, Filter | KeyFilter | PublicJoin | Unnest):
        yield relation
        relation = relation.source


def _parts(step: Step) -> Iterator[Step]:
    """A condition that is several, joined by AND, as these: a row stays where each is true."""
    if isinstance(step, Filter):
        for condition in _conditions(step.predicate):
            yield Filter(step.source, condition)
    else:
        yield step


def _conditions(node: ex.Expression) -> tuple[ex.Expression, ...]:
    if not isinstance(node, ex.And):
        return (node,)
    return tuple(part for operand in node.operands for part in _conditions(operand))


def _needs(step: Step) -> set[str]:
    """The aliases whose columns a step names."""
    match step:
        case Filter(predicate=predicate):
            named = ex.columns(predicate)
        case KeyFilter(operand=operand):
            named = ex.columns(operand)
        case PublicJoin(on=on):
            named = tuple(column for left, _ in on for column in ex.columns(left))
        case Unnest(elements=elements):
            return {elements.table}
    return {column.table for column in named}
