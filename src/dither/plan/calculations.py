"""Recipes of what is calculated from released values.

A sum, a difference or a multiple of counts and sums is one linear recipe, and a quotient of two
such is one ratio, so that each has the exact interval of its own noise. Everything else is applied
to the values and intervals of its operands.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from dither.errors import QueryError
from dither.plan.aggregates import AggregateFunction, Output
from dither.plan.expressions import Expression
from dither.plan.recipes import Build, Linear, RatioRecipe, Recipe
from dither.plan.released import Apply, Constant, Grouping, Rank, ReleasedKey, leaves
from dither.plan.text import show

__all__ = [
    "Applied",
    "Calculated",
    "KeyRead",
    "KeysLeftOut",
    "Known",
    "Ranked",
    "combined",
    "sources",
]


@dataclass(frozen=True, slots=True)
class Known(Recipe):
    """A public constant."""

    constant: Constant


@dataclass(frozen=True, slots=True)
class KeyRead(Recipe):
    """The released value of a key, by its place among the keys."""

    place: int


@dataclass(frozen=True, slots=True)
class KeysLeftOut(Recipe):
    """Which keys, by their places, are not in the set of a group: GROUPING."""

    places: tuple[int, ...]

    def of(self, one: Sequence[int]) -> int:
        """Of the groups by one set of keys, given by its places."""
        return sum((key not in one) << i for i, key in enumerate(reversed(self.places)))


@dataclass(frozen=True, slots=True)
class Applied(Recipe):
    """An operation on other recipes, as in ``dither.plan.released``."""

    op: str
    operands: tuple[Recipe, ...]


@dataclass(frozen=True, slots=True)
class Ranked(Recipe):
    """A rank by other recipes (each with whether it falls) among groups of the same keys."""

    word: str
    order: tuple[tuple[Recipe, bool], ...]
    by: tuple[int, ...]


def combined(op: str, operands: tuple[Recipe, ...]) -> Recipe:
    """The recipe of an operation: a linear one or a ratio where it is one."""
    if len(operands) == 2:
        left, right = operands
        found: Recipe | None = None
        if op in ("+", "-"):
            found = _sum(left, right, 1 if op == "+" else -1)
        elif op == "*":
            found = _multiple(left, _number(right)) or _multiple(right, _number(left))
        elif op == "/":
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
    return None if value is None else Linear((), value, value)


def _multiple(recipe: Recipe, factor: Fraction | None) -> Linear | None:
    if not isinstance(recipe, Linear) or not factor:
        return None
    lower = None if recipe.lower is None or factor < 0 else recipe.lower * factor
    terms = tuple((place, c * factor) for place, c in recipe.terms)
    return Linear(terms, lower, recipe.constant * factor)


def _sum(left: Recipe, right: Recipe, sign: int) -> Linear | None:
    first, second = _linear(left), _linear(right)
    if first is None or second is None:
        return None
    merged = dict(first.terms)
    for place, c in second.terms:
        merged[place] = merged.get(place, Fraction(0)) + sign * c
    terms = tuple((place, c) for place, c in merged.items() if c)
    if not terms:
        return None
    # Below what it cannot lie follows for sums, and for what a constant is taken from.
    lower = None
    if first.lower is not None and second.lower is not None and (sign > 0 or not second.terms):
        lower = first.lower + sign * second.lower
    return Linear(terms, lower, first.constant + sign * second.constant)


def _quotient(left: Recipe, right: Recipe) -> Recipe | None:
    divisor = _number(right)
    if divisor:
        return _multiple(left, 1 / divisor)
    first = _linear(left)
    if first is None or not isinstance(right, Linear):
        return None
    positive = all(x.lower is not None and x.lower >= 0 for x in (first, right))
    return RatioRecipe(first, right, Fraction(0) if positive else None)


def sources(recipe: Recipe) -> tuple[Recipe, ...]:
    """The recipes of what was measured that another one reads, each once."""
    match recipe:
        case Known() | KeyRead() | KeysLeftOut():
            return ()
        case Applied(operands=inner):
            pass
        case Ranked(order=order):
            inner = tuple(x for x, _ in order)
        case _:
            return (recipe,)
    return tuple(dict.fromkeys(one for x in inner for one in sources(x)))


class Calculated:
    """Makes the recipes of a query: each aggregate in it once, however often it stands.

    Parameters
    ----------
    build : Build
        Makes the recipes of aggregates.
    outputs : sequence of Output
        An aggregate has the largest weight of the outputs that it stands in, each divided among
        the aggregates of its own.
    keys : sequence of Expression
    """

    def __init__(self, build: Build, outputs: Sequence[Output], keys: Sequence[Expression]) -> None:
        self._build = build
        self._keys = tuple(keys)
        self._made: dict[AggregateFunction, Recipe] = {}
        self._weights: dict[AggregateFunction, Fraction] = {}
        for output in outputs:
            inside = leaves(output.aggregate)
            for leaf in inside:
                share = output.weight / len(inside)
                self._weights[leaf] = max(self._weights.get(leaf, Fraction(0)), share)

    def recipe(self, node: AggregateFunction) -> Recipe:
        """The recipe of an output, or of a part of one.

        Raises
        ------
        QueryError
            Where it names a key that is not grouped by.
        """
        match node:
            case Constant():
                return Known(node)
            case ReleasedKey():
                return KeyRead(self._place(node.expression))
            case Grouping(keys=keys):
                return KeysLeftOut(tuple(map(self._place, keys)))
            case Rank(word=word, order=order, by=by):
                sorted_by = tuple((self.recipe(x), down) for x, down in order)
                return Ranked(word, sorted_by, tuple(self._place(key.expression) for key in by))
            case Apply(op=op, operands=operands):
                return combined(op, tuple(self.recipe(x) for x in operands))
        if node not in self._made:
            self._made[node] = self._build.recipe(node, self._weights[node])
        return self._made[node]

    def beside(self, node: AggregateFunction) -> Recipe:
        """The recipe of HAVING or ORDER BY, whose aggregates need not be released.

        Where the outputs' measurements suffice, none is added and none gets another share.
        """
        for leaf in leaves(node):
            if leaf not in self._made:
                measured = self._build.weights
                free = self._build.recipe(leaf, Fraction(0))
                if any(not weight for weight in measured.values()):
                    # Nothing may be measured without a share: it would be measured without noise.
                    free = self._build.recipe(leaf, Fraction(1))
                self._made[leaf] = free
        return self.recipe(node)

    def _place(self, key: Expression) -> int:
        if key not in self._keys:
            raise QueryError(
                f"{show(key)} is not grouped by, so it has no one value in a group; put "
                "it into GROUP BY, or into an aggregate"
            )
        return self._keys.index(key)
