"""Recipes of what is calculated from released values.

A sum, a difference or a multiple of counts and sums is one linear recipe, and a quotient of two
such is one ratio, so that each has the exact interval of its own noise. Everything else is applied
to the values and intervals of its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from dither.errors import QueryError
from dither.plan.aggregates import AggregateFunction, Released
from dither.plan.expressions import Expression
from dither.plan.job import Distinct, Measurement, Rows, Units, Values
from dither.plan.lowering.recipes import (
    Applied,
    KeyRead,
    KeysLeftOut,
    Known,
    Linear,
    Ranked,
    RatioRecipe,
    Recipe,
    sources,
)
from dither.plan.released import Apply, Constant, Grouping, Rank, ReleasedKey
from dither.plan.text import number, show

__all__ = ["calculated", "combined", "of_rows"]


def calculated(
    node: Released, recipe: Callable[[AggregateFunction], Recipe], keys: Sequence[Expression]
) -> Recipe:
    """The recipe of a calculation.

    Parameters
    ----------
    node : Released
    recipe : callable
        The recipe of what it is calculated from.
    keys : sequence of Expression
        What is grouped by.

    Raises
    ------
    QueryError
        Where it names a key that is not grouped by.
    """
    match node:
        case Constant():
            return Known(node)
        case ReleasedKey():
            return KeyRead(_place(node.expression, keys))
        case Grouping(keys=flagged):
            return KeysLeftOut(tuple(_place(key, keys) for key in flagged))
        case Rank(word=word, order=order, by=by):
            sorted_by = tuple((recipe(x), down) for x, down in order)
            return Ranked(word, sorted_by, tuple(_place(key.expression, keys) for key in by))
        case Apply(op=op, operands=operands):
            return combined(op, tuple(recipe(x) for x in operands))
    raise TypeError(type(node).__name__)


def _place(key: Expression, keys: Sequence[Expression]) -> int:
    if key not in keys:
        raise QueryError(
            f"{show(key)} is not grouped by, so it has no one value in a group; put "
            "it into GROUP BY, or into an aggregate"
        )
    return keys.index(key)


def combined(op: str, operands: tuple[Recipe, ...]) -> Recipe:
    """The recipe of an operation: a linear one or a ratio where it is one."""
    if len(operands) == 2:
        left, right = operands
        if op in ("-", "/") and left == right and sources(left):
            raise QueryError(
                f"what stands on both sides of the {op} is the same, so that the result is "
                f"{0 if op == '-' else 1} whatever the rows hold; leave it out"
            )
        found: Recipe | None = None
        if op in ("+", "-"):
            found = _sum(left, right, 1 if op == "+" else -1)
        elif op == "*":
            found = _multiple(left, _number(right)) or _multiple(right, _number(left))
        elif op == "/":
            if _number(right) == 0:
                raise QueryError("a released value over 0 has no value; divide by something else")
            found = _quotient(left, right)
        if found is not None:
            return found
    return Applied(op, operands)


def _number(recipe: Recipe) -> Fraction | None:
    value = recipe.constant.value if isinstance(recipe, Known) else None
    if isinstance(value, int | Fraction) and not isinstance(value, bool):
        return Fraction(value)
    return None


def _linear(recipe: Recipe) -> Linear | None:
    if isinstance(recipe, Linear):
        return recipe
    value = _number(recipe)
    return None if value is None else Linear((), value, value, value)


def _multiple(recipe: Recipe, factor: Fraction | None) -> Linear | None:
    if not isinstance(recipe, Linear) or not factor:
        return None
    lower, upper = (None if e is None else e * factor for e in (recipe.lower, recipe.upper))
    # What the value cannot be below becomes what it cannot be above.
    if factor < 0:
        lower, upper = upper, lower
    terms = tuple((place, c * factor) for place, c in recipe.terms)
    return Linear(terms, lower, recipe.constant * factor, upper)


def _sum(left: Recipe, right: Recipe, sign: int) -> Linear | None:
    first, second = _linear(left), _linear(right)
    if first is None or second is None:
        return None
    merged = dict(first.terms)
    for place, c in second.terms:
        merged[place] = merged.get(place, Fraction(0)) + sign * c
    terms = tuple((place, c) for place, c in merged.items() if c)
    if merged and not terms:
        raise QueryError(
            f"the terms cancel to {number(first.constant + sign * second.constant)}, whatever the "
            "rows hold; leave them out"
        )
    if not terms:
        return None
    least, most = (second.lower, second.upper) if sign > 0 else (second.upper, second.lower)
    lower, upper = (
        None if a is None or b is None else a + sign * b
        for a, b in ((first.lower, least), (first.upper, most))
    )
    return Linear(terms, lower, first.constant + sign * second.constant, upper)


def _quotient(left: Recipe, right: Recipe) -> Recipe | None:
    divisor = _number(right)
    if divisor:
        return _multiple(left, 1 / divisor)
    first = _linear(left)
    if first is None or not isinstance(right, Linear):
        return None
    # Of two that cannot be negative the ratio cannot be either.
    positive = all(x.lower is not None and x.lower >= 0 for x in (first, right))
    return RatioRecipe(first, right, Fraction(0) if positive else None)


def of_rows(recipe: Recipe, measured: Sequence[Measurement]) -> Recipe:
    """A ratio of counts to the number of rows, with the largest that it can be; others as they are.

    Rows with a value, units and distinct values are no more than the rows of a group, also once a
    unit's contributions are bounded: of ``max_rows`` or fewer rows each counts at most once.

    Parameters
    ----------
    recipe : Recipe
    measured : sequence of Measurement
        By place.
    """
    if not isinstance(recipe, RatioRecipe) or recipe.upper is not None:
        return recipe
    over, under = recipe.numerator, recipe.denominator
    counts = (Rows, Values, Units, Distinct)
    part = all(c >= 0 and isinstance(measured[at], counts) for at, c in over.terms)
    rows = [c for at, c in under.terms if isinstance(measured[at], Rows) and c > 0]
    if not part or over.constant or under.constant or len(rows) != 1 or len(under.terms) != 1:
        return recipe
    return replace(recipe, upper=sum((c for _, c in over.terms), Fraction(0)) / rows[0])
