"""Conditions that no row can meet, whatever the rows hold.

A question about no rows has an answer that everybody knows, and would be charged for it. Found
are comparisons of constants, and conditions on one expression that leave it no value: ``x < 5 AND
x > 7``, ``x IS NULL AND x > 0``, a value that its column's list has not. Nothing that is declared
of a column is believed but a list of its values, as any other value is read as NULL; bounds are
not, since conditions see values as they are.

Engines compare reals as doubles. Two constants are only told apart where their doubles are.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

from dither.plan import expressions as ex
from dither.plan.facts.values import Scope, infer
from dither.plan.schema import Kind, Value

__all__ = ["constant_of", "contradiction"]

OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

Part = ex.Expression
Test = tuple[str, tuple[Value, ...]]
"""One of the signs of comparison with a constant, or IN with several, or IS NULL with none."""


def contradiction(conditions: Iterable[Part], scope: Scope) -> tuple[Part, ...]:
    """Conditions that are never true, or never true together; none where rows decide.

    Examples
    --------
    >>> one, two = ex.Literal(1), ex.Literal(2)
    >>> contradiction([ex.Compare("=", one, two)], Scope({}))
    (Compare(op='=', left=Literal(value=1), right=Literal(value=2)),)
    >>> contradiction([ex.Compare("<", one, two)], Scope({}))
    ()
    """
    parts = list(_conjuncts(conditions))
    for part in parts:
        if _decided(part, scope) is False:
            return (part,)
    by_operand: dict[Part, list[tuple[Part, Test]]] = {}
    for part in parts:
        found = _test(part, scope)
        if found is not None:
            by_operand.setdefault(found[0], []).append((part, found[1]))
    for operand, tests in by_operand.items():
        listed = _listed(operand, scope)
        if _impossible([test for _, test in tests], listed):
            return tuple(part for part, _ in tests)
    return ()


def constant_of(node: Part, scope: Scope) -> Value | None:
    """The one value of an expression without columns, where it is known."""
    if any(True for _ in ex.columns(node)):
        return None
    facts = infer(node, scope)
    if facts.range is not None and facts.range[0] == facts.range[1]:
        return facts.range[0]
    return facts.domain[0] if facts.domain is not None and len(facts.domain) == 1 else None


def _conjuncts(conditions: Iterable[Part]) -> Iterator[Part]:
    for condition in conditions:
        if isinstance(condition, ex.And):
            yield from _conjuncts(condition.operands)
        elif isinstance(condition, ex.Not) and isinstance(condition.operand, ex.Or):
            yield from _conjuncts(ex.Not(x) for x in condition.operand.operands)
        else:
            yield condition


def _decided(node: Part, scope: Scope) -> bool | None:
    """What a condition is in every row; ``None`` where rows decide, or where it may be NULL."""
    match node:
        case ex.Literal(value=bool(value)):
            return value
        case ex.Not(operand=operand):
            inner = _decided(operand, scope)
            return None if inner is None else not inner
        case ex.And(operands=xs):
            each = [_decided(x, scope) for x in xs]
            if False in each or contradiction(xs, scope):
                return False
            return None if None in each else True
        case ex.Or(operands=xs):
            each = [_decided(x, scope) for x in xs]
            return True if True in each else None if None in each else False
        case ex.IsNull(operand=operand):
            return None if _exact(operand, scope) is None else False
    found = _test(node, scope)
    if found is None:
        return None
    held = _exact(found[0], scope)
    return None if held is None else _holds(held, found[1])


def _test(node: Part, scope: Scope) -> tuple[Part, Test] | None:
    """An expression and what it is held against, where those are constants."""
    match node:
        case ex.Compare(op=op, left=left, right=right):
            value = _exact(right, scope)
            if value is None:
                op, left, value = TURNED[op], right, _exact(left, scope)
            return None if value is None else (left, (op, (value,)))
        case ex.InList(operand=operand, values=values):
            return operand, ("IN", values)
        case ex.Between(operand=operand, low=low, high=high):
            ends = _exact(low, scope), _exact(high, scope)
            if ends[0] is None or ends[1] is None:
                return None
            return operand, ("BETWEEN", (ends[0], ends[1]))
        case ex.IsNull(operand=operand):
            return operand, ("IS NULL", ())
        case ex.Not(operand=ex.Compare(op=op, left=left, right=right)):
            return _test(ex.Compare(OPPOSITE[op], left, right), scope)
    return None


def _exact(node: Part, scope: Scope) -> Value | None:
    """A constant that every engine computes alike: what is written, or whole numbers and texts."""
    if isinstance(node, ex.Literal):
        return node.value
    value = constant_of(node, scope)
    return None if value is None or infer(node, scope).kind is Kind.REAL else value


def _listed(operand: Part, scope: Scope) -> Sequence[Value] | None:
    if isinstance(operand, ex.Column) and scope.is_of_a_table(operand):
        return scope.column(operand).values
    return None


def _impossible(tests: Sequence[Test], listed: Sequence[Value] | None) -> bool:
    """Whether no value meets all tests; NULL meets none but IS NULL."""
    compared = [test for test in tests if test[0] != "IS NULL"]
    # IS NULL beside any comparison, which NULL never meets; by itself it can be met.
    if len(compared) < len(tests):
        return bool(compared)
    candidates = list(listed) if listed is not None else _candidates(compared)
    # What engines might not agree about may be so: only what is false to all of them is refused.
    return candidates is not None and not any(
        all(_holds(value, test) is not False for test in compared) for value in candidates
    )


def _candidates(tests: Sequence[Test]) -> list[Value] | None:
    """Values of which one meets all tests if any value does; ``None`` where none can be named.

    With an equality or a list, its constants are all there is. Otherwise something lies between
    the ends, unless a lower one is no lower than an upper one; then these two are all there is.
    """
    for op, values in tests:
        if op in ("=", "IN"):
            return list(values)
    least = [v[0] for op, v in tests if op in (">", ">=", "BETWEEN")]
    most = [v[-1] for op, v in tests if op in ("<", "<=", "BETWEEN")]
    for low in least:
        for high in most:
            order = _order(low, high)
            # Beyond one another, or on one point: where any value meets all tests, one of these
            # ends does.
            if order is not None and order >= 0:
                return [low, high]
    return None


def _holds(value: Value, test: Test) -> bool | None:
    """Whether a value meets a test; ``None`` where engines might not agree."""
    op, constants = test
    if op == "IN":
        each = [_holds(value, ("=", (one,))) for one in constants]
        return True if True in each else None if None in each else False
    if op == "BETWEEN":
        ends = _holds(value, (">=", constants[:1])), _holds(value, ("<=", constants[1:]))
        return False if False in ends else None if None in ends else True
    order = _order(value, constants[0])
    if order is None:
        return None
    met = {"=": order == 0, "<>": order != 0, "<": order < 0, ">": order > 0}
    return met[op] if op in met else met[op[0]] or order == 0


def _order(first: Value, second: Value) -> int | None:
    """-1, 0 or 1; ``None`` where kinds differ, or where two reals have one double."""
    if isinstance(first, int | Fraction) and isinstance(second, int | Fraction):
        if isinstance(first, bool) is not isinstance(second, bool):
            return None
        doubles = _double(first), _double(second)
        # To an engine these two are one number, or none.
        if None in doubles or (doubles[0] == doubles[1] and first != second):
            return None
        return (first > second) - (first < second)
    texts = isinstance(first, str) and isinstance(second, str)
    if texts or (type(first) is type(second) and isinstance(first, datetime.date)):
        return (first > second) - (first < second)  # type: ignore[operator]
    return None


def _double(value: int | Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None
