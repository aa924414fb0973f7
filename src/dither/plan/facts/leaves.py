"""Facts of columns and constants: where all knowledge comes from."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

from dither.plan import expressions as ex
from dither.plan.facts.common import checked
from dither.plan.facts.scope import Scope
from dither.plan.facts.values import Facts
from dither.plan.kinds import Kind, kind_of_value

__all__ = ["column", "literal"]


def column(node: ex.Column, scope: Scope) -> Facts:
    """A column: as the policy declares it."""
    facts = scope.column(node)
    lower, upper = facts.lower, facts.upper
    if facts.values is not None and facts.kind.numeric:
        numbers = [Fraction(v) for v in facts.values if isinstance(v, int | Fraction)]
        lower, upper = min(numbers, default=None), max(numbers, default=None)
    step = Fraction(1) if facts.kind is Kind.INTEGER else facts.step
    return Facts(facts.kind, lower, upper, facts.values, step, facts.nullable)


def literal(node: ex.Literal) -> Facts:
    """A constant: itself, on the lattice of its multiples."""
    value = node.value
    if value is None:
        return Facts(None, nullable=True)
    kind = kind_of_value(value)
    if isinstance(value, int | Fraction) and kind.numeric:
        exact = Fraction(value)
        step = Fraction(1) if kind is Kind.INTEGER else abs(exact)
        return checked(Facts(kind, exact, exact, (value,), step), node)
    if isinstance(value, dt.date):
        return Facts(kind, value, value, (value,))
    return Facts(kind, domain=(value,))
