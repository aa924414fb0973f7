"""``infer``: each node of an expression to its rule."""

from __future__ import annotations

from collections.abc import Callable

from dither.errors import UnsupportedError
from dither.plan import expressions as ex
from dither.plan.facts import choices, dates, leaves, letters, numbers, truth
from dither.plan.facts.scope import Scope
from dither.plan.facts.values import Facts

__all__ = ["infer"]

_RULES: dict[type[ex.Expression], Callable[..., Facts]] = {
    ex.Arithmetic: numbers.arithmetic,
    ex.Absolute: numbers.absolute,
    ex.Floor: numbers.whole,
    ex.Ceil: numbers.whole,
    ex.Least: numbers.extreme,
    ex.Greatest: numbers.extreme,
    ex.Clamp: numbers.clamp,
    ex.Bin: numbers.bin_number,
    ex.Compare: truth.compare,
    ex.Between: truth.between,
    ex.InList: truth.in_list,
    ex.And: truth.logic,
    ex.Or: truth.logic,
    ex.Not: truth.negation,
    ex.IsNull: truth.is_null,
    ex.Case: choices.case,
    ex.Coalesce: choices.coalesce,
    ex.DatePart: dates.date_part,
    ex.DateTruncate: dates.date_truncate,
    ex.Lower: letters.letters,
    ex.Upper: letters.letters,
    ex.Substring: letters.letters,
}


def infer(node: ex.Expression, scope: Scope) -> Facts:
    """The public facts of an expression's values.

    Parameters
    ----------
    node : Expression
    scope : Scope
        The columns it may name.

    Raises
    ------
    UnknownNameError
        For a table or column that does not exist.
    QueryError
        Where the kinds do not fit, or a literal is none of a column's declared values.
    BoundsError
        Where arithmetic on a number without bounds would leave an overflow possible.

    Examples
    --------
    >>> from fractions import Fraction
    >>> facts = infer(ex.Arithmetic("*", ex.Literal(2), ex.Literal(Fraction(1, 4))), Scope({}))
    >>> facts.lower, facts.step
    (Fraction(1, 2), Fraction(1, 2))
    """

    def of(below: ex.Expression) -> Facts:
        match below:
            case ex.Column():
                return leaves.column(below, scope)
            case ex.Literal():
                return leaves.literal(below)
        rule = _RULES.get(type(below))
        if rule is None:
            raise UnsupportedError(f"{type(below).__name__} is not an expression of this version")
        return rule(below, of)

    return of(node)
