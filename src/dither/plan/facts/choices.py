"""Facts of choices: whatever one of the options can be, the choice can be."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from fractions import Fraction

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.facts.common import FactsOf, common_step, unite_kinds
from dither.plan.facts.truth import condition
from dither.plan.facts.values import Facts
from dither.plan.kinds import Kind, Value
from dither.plan.text import show

__all__ = ["case", "coalesce"]


def case(node: ex.Case, of: FactsOf) -> Facts:
    """``CASE``."""
    for test, _ in node.branches:
        condition(test, of, node)
    return _union([*(of(value) for _, value in node.branches), of(node.otherwise)], node)


def coalesce(node: ex.Coalesce, of: FactsOf) -> Facts:
    """``COALESCE``: NULL only where every operand is."""
    parts = [of(x) for x in node.operands]
    if not parts:
        raise QueryError(f"{show(node)}: needs at least one argument")
    return replace(_union(parts, node), nullable=all(p.nullable for p in parts))


def _union(parts: list[Facts], node: ex.Expression) -> Facts:
    kind = unite_kinds([p.kind for p in parts], node)
    if kind is None:
        return Facts(None, nullable=True)
    valued = [p for p in parts if p.kind is not None]
    nullable = any(p.nullable for p in parts)
    domain: tuple[Value, ...] | None = None
    if all(p.domain is not None for p in valued):
        domain = tuple(dict.fromkeys(_as(v, kind) for p in valued for v in p.domain or ()))
    lower = upper = None
    if kind.numeric and all(p.range is not None for p in valued):
        ranges = [p.range for p in valued if p.range is not None]
        lower, upper = min(r[0] for r in ranges), max(r[1] for r in ranges)
    elif kind is Kind.DATE:
        firsts = [p.lower for p in valued if isinstance(p.lower, dt.date)]
        lasts = [p.upper for p in valued if isinstance(p.upper, dt.date)]
        if len(firsts) == len(lasts) == len(valued):
            return Facts(
                kind, min(firsts), max(lasts), domain, None, any(p.nullable for p in parts)
            )
    step = common_step(p.step for p in valued) if kind.numeric else None
    return Facts(kind, lower, upper, domain, step, nullable)


def _as(value: Value, kind: Kind) -> Value:
    """A value as the kind that unites the options reads it."""
    if kind is Kind.REAL and isinstance(value, int):
        return Fraction(value)
    if kind is Kind.TIMESTAMP and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value
