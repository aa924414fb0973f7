"""What an expression cannot be, whatever the rows hold: anything but NULL, or of so many values.

Nothing that is declared of a column is believed here but a list of its values: any other value is
read as NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import prod

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.aggregates import AggregateFunction
from dither.plan.facts.contradictions import constant_of, contradiction
from dither.plan.facts.values import Scope, infer
from dither.plan.schema import Kind

__all__ = ["check_values", "most_together", "most_values", "valueless", "why_valueless"]


def valueless(node: ex.Expression, scope: Scope) -> ex.Expression | None:
    """The part of an expression for which all of it is NULL in every row; ``None`` where rows
    decide.

    Examples
    --------
    >>> cost = ex.Column("visits", "cost")
    >>> valueless(ex.Arithmetic("/", ex.Literal(1), ex.Literal(0)), Scope({}))
    Arithmetic(op='/', left=Literal(value=1), right=Literal(value=0))
    >>> valueless(ex.IsNull(ex.Literal(None)), Scope({})) is None
    True
    """
    match node:
        case ex.Literal(value=value):
            return node if value is None else None
        case ex.Arithmetic(op=op, left=left, right=right):
            by_zero = op in ("/", "//", "%") and constant_of(right, scope) == 0
            return node if by_zero else _any((left, right), scope)
        case ex.Compare(left=left, right=right):
            return _any((left, right), scope)
        # NULL AND false is false, and NULL OR true is true: it takes every operand.
        case ex.And(operands=xs) | ex.Or(operands=xs) | ex.Coalesce(operands=xs):
            return _all(xs, scope)
        case ex.Least(operands=xs) | ex.Greatest(operands=xs):
            return _all(xs, scope)
        case ex.Case(branches=branches, otherwise=other):
            tests = [_never(test, scope) for test, _ in branches]
            open_ = [value for (_, value), never in zip(branches, tests, strict=True) if not never]
            why = _all((*open_, other), scope)
            return next((t for t in tests if t is not None), why) if why else None
        case ex.Call(operands=xs):
            return _any(xs, scope) or (node if _is_undefined(node, scope) else None)
        case ex.Column() | ex.Unreadable() | ex.IsNull():
            return None
    # All others are of one operand, and NULL where that is; of bounds and lists that is enough.
    operand = getattr(node, "operand", None)
    return valueless(operand, scope) if isinstance(operand, ex.Expression) else None


def why_valueless(part: ex.Expression, scope: Scope) -> str:
    """What is said of the part that ``valueless`` finds, and what to do about it."""
    shown = scope.show(part)
    if isinstance(part, ex.Arithmetic):
        return f"{shown} divides by 0, which is NULL in every row; divide by something else"
    if contradiction([part], scope):
        return f"{shown} is never true; leave it out"
    if isinstance(part, ex.Literal):
        return "it is NULL in every row; leave it out, or give it a value"
    return f"{shown} is NULL in every row; leave it out, or give it a value"


def check_values(aggregate: AggregateFunction, scope: Scope) -> None:
    """Refuse to aggregate what no row has a value of.

    Raises
    ------
    QueryError
        Naming the part that is NULL in every row.
    """
    for name in aggregate.__dataclass_fields__:
        operand = getattr(aggregate, name)
        part = valueless(operand, scope) if isinstance(operand, ex.Expression) else None
        if part is not None and infer(operand, scope).kind is not None:
            raise QueryError(why_valueless(part, scope))


def _never(test: ex.Expression, scope: Scope) -> ex.Expression | None:
    """The part of a condition for which it is true in no row."""
    why = valueless(test, scope)
    return test if why is None and contradiction([test], scope) else why


def _any(operands: Iterable[ex.Expression], scope: Scope) -> ex.Expression | None:
    """Where one that is NULL makes all of it so."""
    return next((why for x in operands if (why := valueless(x, scope)) is not None), None)


def _all(operands: Iterable[ex.Expression], scope: Scope) -> ex.Expression | None:
    """Where it takes all of them; what is not written as NULL says most."""
    found = [valueless(x, scope) for x in operands]
    if not found or None in found:
        return None
    return next((x for x in found if x != ex.Literal(None)), found[0])


def _is_undefined(node: ex.Call, scope: Scope) -> bool:
    """Whether a function has no value of the constants that it is given."""
    given = [constant_of(x, scope) for x in node.operands]
    if None in given:
        return False
    facts = infer(node, scope)
    if facts.kind is not Kind.REAL:
        # Its values were computed already, where they are of a kind that is listed.
        return facts.domain == ()
    kinds, meaning = node.kinds, node.signature.meaning
    real = [kind == "real" or isinstance(v, Fraction) for v, kind in zip(given, kinds, strict=True)]
    read = [float(v) if r else v for v, r in zip(given, real, strict=True)]  # type: ignore[arg-type]
    return meaning(*read, *node.options) is None


def most_values(node: ex.Expression, scope: Scope) -> int | None:
    """How many different values an expression can have, NULL left out; ``None`` where nothing says.

    Examples
    --------
    >>> most_values(ex.Bin(ex.Column("t", "x"), (Fraction(0), Fraction(1), Fraction(2))), Scope({}))
    2
    """
    match node:
        case ex.Literal(value=value):
            return int(value is not None)
        case ex.Column():
            facts = scope.column(node)
            listed = facts.values if scope.is_of_a_table(node) else None
            found = None if listed is None else len(set(listed))
            return 2 if found is None and facts.kind is Kind.BOOLEAN else found
        case ex.Bin(edges=edges):
            return len(edges) - 1
        case ex.Compare() | ex.Between() | ex.IsNull() | ex.And() | ex.Or():
            return 2
        case ex.DatePart(part=part) if (ends := ex.PARTS[part]) is not None:
            return ends[1] - ends[0] + 1
        case ex.Case(branches=branches, otherwise=other):
            return _added([*(value for _, value in branches), other], scope)
        case ex.Coalesce(operands=xs) | ex.Least(operands=xs) | ex.Greatest(operands=xs):
            return _added(xs, scope)
        case ex.Arithmetic(left=left, right=right):
            return _times((left, right), scope)
        case ex.Call(operands=xs):
            return _capped(_times(xs, scope), node, scope)
    # All others are functions of one operand and of constants.
    operand: ex.Expression = node.operand  # type: ignore[attr-defined]
    found = most_values(operand, scope)
    if isinstance(node, ex.Clamp) and infer(operand, scope).kind is Kind.INTEGER:
        within = int(node.upper - node.lower) + 1
        found = within if found is None else min(found, within)
    return _capped(found, node, scope)


def most_together(nodes: Iterable[ex.Expression], scope: Scope) -> Fraction | None:
    """How many different rows of values several expressions can have, none of them NULL."""
    found = _times(nodes, scope)
    return None if found is None else Fraction(found)


def _capped(found: int | None, node: ex.Expression, scope: Scope) -> int | None:
    """Of truth values there are two."""
    if infer(node, scope).kind is not Kind.BOOLEAN:
        return found
    return 2 if found is None else min(found, 2)


def _added(nodes: Iterable[ex.Expression], scope: Scope) -> int | None:
    counts = [most_values(x, scope) for x in nodes]
    return None if None in counts else sum(n or 0 for n in counts)


def _times(nodes: Iterable[ex.Expression], scope: Scope) -> int | None:
    counts = [most_values(x, scope) for x in nodes]
    return None if None in counts else prod(n or 0 for n in counts)
