"""Facts of conditions: what may be compared, and whether the answer can be NULL."""

from __future__ import annotations

from dither.errors import QueryError, UnsupportedError, nearest
from dither.plan import expressions as ex
from dither.plan.facts.common import FactsOf, unite_kinds
from dither.plan.facts.values import Facts
from dither.plan.kinds import Kind, Value
from dither.plan.text import show

__all__ = ["between", "compare", "condition", "in_list", "is_null", "logic", "negation"]


def compare(node: ex.Compare, of: FactsOf) -> Facts:
    """A comparison of two values of one kind."""
    if node.op not in ("=", "<>", "<", "<=", ">", ">="):
        raise UnsupportedError(f"operator {node.op!r} is not offered")
    return _comparison(node, (node.left, node.right), of, listed=node.op in ("=", "<>"))


def between(node: ex.Between, of: FactsOf) -> Facts:
    """A value between two others."""
    return _comparison(node, (node.operand, node.low, node.high), of, listed=False)


def in_list(node: ex.InList, of: FactsOf) -> Facts:
    """A value among public ones."""
    if not node.values:
        raise QueryError(f"{show(node)}: needs at least one value")
    literals = tuple(ex.Literal(v) for v in node.values)
    return _comparison(node, (node.operand, *literals), of, listed=True)


def _comparison(
    node: ex.Expression, operands: tuple[ex.Expression, ...], of: FactsOf, *, listed: bool
) -> Facts:
    parts = [of(x) for x in operands]
    unite_kinds([p.kind for p in parts], node)
    if listed:
        for operand, facts in zip(operands, parts, strict=True):
            if isinstance(operand, ex.Column) and facts.domain is not None:
                _among_declared(operand, facts.domain, operands, node)
    return Facts(Kind.BOOLEAN, nullable=any(p.nullable for p in parts))


def _among_declared(
    column: ex.Column,
    domain: tuple[Value, ...],
    operands: tuple[ex.Expression, ...],
    node: ex.Expression,
) -> None:
    for operand in operands:
        if not isinstance(operand, ex.Literal) or operand.value is None:
            continue
        if operand.value not in domain:
            hint = nearest(str(operand.value), [str(v) for v in domain])
            raise QueryError(
                f"{show(node)}: {show(operand)} is not a declared value of {column.name!r}{hint}"
            )


def logic(node: ex.And | ex.Or, of: FactsOf) -> Facts:
    """``AND`` and ``OR``."""
    parts = [condition(x, of, node) for x in node.operands]
    return Facts(Kind.BOOLEAN, nullable=any(p.nullable for p in parts))


def negation(node: ex.Not, of: FactsOf) -> Facts:
    """``NOT``."""
    return Facts(Kind.BOOLEAN, nullable=condition(node.operand, of, node).nullable)


def is_null(node: ex.IsNull, of: FactsOf) -> Facts:
    """``IS NULL``, which is never NULL itself."""
    of(node.operand)
    return Facts(Kind.BOOLEAN)


def condition(operand: ex.Expression, of: FactsOf, node: ex.Expression) -> Facts:
    """The facts of an operand that must be a condition."""
    facts = of(operand)
    if facts.kind not in (Kind.BOOLEAN, None):
        raise QueryError(f"{show(node)}: {show(operand)} is not a condition")
    return facts
