"""What a mode is chosen among: the public values of an expression, and how rows vote for them.

The candidates are the keys that ``GROUP BY`` of the same expression would have, and a row votes for
the one that it would be grouped under: values are as they are, and not moved to bounds, so that a
row with any other value votes for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from dither.errors import BoundsError, QueryError
from dither.plan import expressions as ex
from dither.plan.facts.values import Facts, Scope, infer, is_assumed, listed_values, why_unbounded
from dither.plan.schema import Kind, Value
from dither.plan.text import bin_labels

__all__ = ["Ballot"]

MOST_CANDIDATES = 4096
"""Among so many values a mode is chosen; each group weighs all of them exactly."""


@dataclass(frozen=True, slots=True)
class Ballot:
    """Public candidates, and the expression that says which one a row votes for.

    Parameters
    ----------
    vote : Expression
        A whole number: ``first`` for the first candidate, one more for each after it. NULL where a
        row votes for none.
    first : int
    values : tuple of Value
        The candidates; of a number that is cut into bins, the bins as text.
    kind : Kind
        Of the candidates.
    """

    vote: ex.Expression
    first: int
    values: tuple[Value, ...]
    kind: Kind

    @classmethod
    def of(cls, operand: ex.Expression, scope: Scope) -> Ballot:
        """The candidates of an expression; a bare column is cut into its declared bins.

        Raises
        ------
        QueryError, BoundsError
            Where no public facts list them, or they are too many.
        """
        if isinstance(operand, ex.Column) and (edges := scope.column(operand).edges) is not None:
            operand = ex.Bin(operand, edges)
        facts, shown = infer(operand, scope), scope.show(operand)
        if facts.kind is None:
            raise QueryError(f"MODE({shown}): NULL is the only value")
        if isinstance(operand, ex.Bin):
            return cls(operand, 0, tuple(bin_labels(operand)), Kind.TEXT)
        values = listed_values(facts)
        if values is None:
            raise BoundsError(_unlisted(operand, facts, scope))
        if is_assumed(operand, scope):
            raise BoundsError(
                f"MODE({shown}): nobody declared how far it reaches, and what lies beyond could "
                f"not be chosen; write MODE(CLAMP({shown}, lower, upper))"
            )
        values = tuple(dict.fromkeys(values))
        if len(values) > MOST_CANDIDATES:
            raise QueryError(
                f"MODE({shown}) would choose among {len(values):,} values, more than "
                f"{MOST_CANDIDATES:,}; ask for the mode of something coarser"
            )
        if facts.kind is Kind.INTEGER and isinstance(values[0], int) and _consecutive(values):
            # Values in a row are their own places: one comparison, and not one for each.
            within = ex.Between(operand, ex.Literal(values[0]), ex.Literal(values[-1]))
            vote = ex.Case(((within, operand),), ex.Literal(None))
            return cls(vote, values[0], values, facts.kind)
        votes = (
            (ex.Compare("=", operand, ex.Literal(value)), ex.Literal(place))
            for place, value in enumerate(values)
        )
        return cls(ex.Case(tuple(votes), ex.Literal(None)), 0, values, facts.kind)


def _consecutive(values: tuple[Value, ...]) -> bool:
    return all(b == a + 1 for a, b in pairwise(values))  # type: ignore[operator]


def _unlisted(operand: ex.Expression, facts: Facts, scope: Scope) -> str:
    shown = scope.show(operand)
    if isinstance(operand, ex.Column) and scope.is_unit(operand):
        return (
            f"MODE({shown}): it says who is protected, and its most frequent value would be "
            f"somebody; count people with COUNT(DISTINCT {shown})"
        )
    start = f"MODE({shown}) is chosen among public values, and nobody has declared any: "
    if facts.kind is Kind.REAL or (facts.kind is Kind.INTEGER and facts.range is not None):
        return start + f"cut it, as in MODE(BIN({shown}, e0, e1, ...)), or declare its values"
    if facts.kind is Kind.INTEGER:
        return start + f"{why_unbounded(operand, scope)} write MODE(CLAMP({shown}, low, high))"
    if facts.kind in (Kind.DATE, Kind.TIMESTAMP):
        return start + f"declare its values, or write MODE(MONTH({shown})) and the like"
    learn = (
        scope.learn(operand.table, operand.name, "keys") if isinstance(operand, ex.Column) else ""
    )
    return f"{start}declare its values in the policy" + (
        f", or {learn.rstrip(', ')}" if learn else ""
    )
