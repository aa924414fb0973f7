"""What the rules share: operands of one kind, lattices in common, and the limits of numbers.

A rule takes its node and ``of``, which gives the facts of any expression below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from math import gcd, lcm

from dither.errors import BoundsError, QueryError
from dither.plan import expressions as ex
from dither.plan.facts.values import LARGEST_INTEGER, LARGEST_REAL, Facts
from dither.plan.kinds import Kind
from dither.plan.text import show

__all__ = ["FactsOf", "bounded", "checked", "common_step", "number", "temporal", "unite_kinds"]

FactsOf = Callable[[ex.Expression], Facts]


def number(operand: ex.Expression, of: FactsOf, node: ex.Expression) -> Facts:
    """The facts of an operand that must be a number."""
    facts = of(operand)
    if facts.kind is None or not facts.kind.numeric:
        raise QueryError(f"{show(node)}: {show(operand)} is not a number")
    return facts


def temporal(operand: ex.Expression, of: FactsOf, node: ex.Expression) -> Facts:
    """The facts of an operand that must be a date or a timestamp."""
    facts = of(operand)
    if facts.kind is None or not facts.kind.temporal:
        raise QueryError(f"{show(node)}: {show(operand)} is not a date or a timestamp")
    return facts


def bounded(facts: Facts, operand: ex.Expression) -> tuple[Fraction, Fraction]:
    """The bounds of an operand that must have them."""
    if facts.range is None:
        raise BoundsError(
            f"the bounds of {show(operand)} are not known; declare bounds = [lower, upper] in the "
            f"policy, or write CLAMP({show(operand)}, lower, upper)"
        )
    return facts.range


def checked(facts: Facts, node: ex.Expression) -> Facts:
    """The facts of a number, refused where an overflow cannot be ruled out."""
    low, high = facts.range or (Fraction(0), Fraction(0))
    size = max(abs(low), abs(high))
    limit = Fraction(LARGEST_INTEGER) if facts.kind is Kind.INTEGER else LARGEST_REAL
    if size > limit:
        shown = "2^62" if facts.kind is Kind.INTEGER else "1e300"
        raise BoundsError(
            f"{show(node)} can reach beyond {shown}, so an overflow cannot be ruled out; "
            f"declare narrower bounds, or CLAMP its parts"
        )
    return facts


def common_step(steps: Iterable[Fraction | None]) -> Fraction | None:
    """The coarsest lattice that holds all of these; ``None`` where one of them is no lattice.

    Examples
    --------
    >>> common_step([Fraction(1, 4), Fraction(1, 6), Fraction(0)])
    Fraction(1, 12)
    """
    found: list[Fraction] = []
    for step in steps:
        if step is None:
            return None
        if step:  # zero is on every lattice
            found.append(step)
    bottom = lcm(*(s.denominator for s in found))
    return Fraction(gcd(*(s.numerator * (bottom // s.denominator) for s in found)), bottom)


def unite_kinds(kinds: Iterable[Kind | None], node: ex.Expression) -> Kind | None:
    """The one kind that all operands are read as; NULL goes with any."""
    found = {k for k in kinds if k is not None}
    if len(found) > 1 and all(k.numeric for k in found):
        return Kind.REAL
    if len(found) > 1 and all(k.temporal for k in found):
        return Kind.TIMESTAMP
    if len(found) > 1:
        names = " and ".join(sorted(k.value for k in found))
        raise QueryError(f"{show(node)}: mixes {names}")
    return next(iter(found), None)
