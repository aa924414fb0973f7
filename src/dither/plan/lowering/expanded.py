"""Aggregates that are calculated from others: statistics of pairs, and truth values as numbers.

A covariance is the mean of products less the product of means, and correlation and regression
follow from it and from variances. So they need no measurement of their own: sums of x, y, xy, x²
and y² over the rows in which neither is NULL, each with the sensitivity of ``Total`` in
``dither.plan.job``, and what is calculated from their noisy values is post-processing. x and y are
moved to their bounds and taken from the middle of these before they are multiplied, so that a
product is bounded by the product of half their ranges, and is of the values that the means and
variances are of.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dither.errors import BoundsError, QueryError, UnsupportedError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.facts.values import LARGEST_INTEGER, Scope, infer, why_unbounded
from dither.plan.released import Apply, Constant, Rank, apply
from dither.plan.schema import Kind

__all__ = ["expanded", "filtered"]


def expanded(node: ag.AggregateFunction, scope: Scope) -> ag.AggregateFunction:
    """An aggregate in terms of those that are measured.

    Raises
    ------
    QueryError, BoundsError
        Where a statistic of two numbers is of something else, or of numbers without bounds.
    """
    match node:
        case Apply(operands=operands):
            return replace(node, operands=tuple(expanded(x, scope) for x in operands))
        case Rank(order=order):
            return replace(node, order=tuple((expanded(x, scope), down) for x, down in order))
        case ag.Sum(operand=x) | ag.Mean(operand=x) | ag.Variance(operand=x):
            return replace(node, operand=_number(x, scope))
        case ag.Ratio(numerator=top, denominator=bottom):
            return ag.Ratio(expanded(top, scope), expanded(bottom, scope))
        case ag.Paired():
            return _Pair.of(node, scope).statistic(node.word)
    return node


def filtered(found: ag.AggregateFunction, condition: ex.Expression) -> ag.AggregateFunction:
    """An aggregate of the rows alone for which a condition is true."""

    def held(operand: ex.Expression) -> ex.Expression:
        return ex.Case(((condition, operand),), ex.Literal(None))

    match found:
        case ag.Count():
            return ag.CountValues(held(ex.Literal(1)))
        case ag.CountUnits(where=None):
            return ag.CountUnits(condition)
        case ag.CountUnits(where=before) if before is not None:
            return ag.CountUnits(ex.And((before, condition)))
        case ag.Paired():
            return replace(found, y=held(found.y))
        case (
            ag.CountValues(operand=x)
            | ag.CountDistinct(operand=x)
            | ag.Sum(operand=x)
            | ag.Mean(operand=x)
            | ag.Variance(operand=x)
            | ag.Quantile(operand=x)
            | ag.Mode(operand=x)
        ):
            return replace(found, operand=held(x))
    raise UnsupportedError("FILTER is of one aggregate; filter each by itself")


def _number(node: ex.Expression, scope: Scope) -> ex.Expression:
    """A truth value as 1 or 0, NULL where it is NULL; anything else as it is."""
    facts = infer(node, scope)
    if facts.kind is not Kind.BOOLEAN:
        return node
    one, zero = ex.Literal(1), ex.Literal(0)
    if not facts.nullable:
        return ex.Case(((node, one),), zero)
    return ex.Case(((node, one), (ex.Not(node), zero)), ex.Literal(None))


class _Pair:
    """Two numbers, each of the rows in which neither is NULL."""

    def __init__(self, y: ex.Expression, x: ex.Expression, scope: Scope) -> None:
        self.y, self.x = y, x
        self._scope = scope
        self._y, self._x = _middle(y, scope), _middle(x, scope)

    @classmethod
    def of(cls, node: ag.Paired, scope: Scope) -> _Pair:
        """Read what a statistic is of."""
        y, x = (_number(part, scope) for part in (node.y, node.x))
        for part in (y, x):
            facts = infer(part, scope)
            shown = scope.show(part)
            if facts.kind is None or not facts.kind.numeric:
                raise QueryError(f"{node.word} of {shown}: not a number")
            if facts.range is None:
                raise BoundsError(
                    f"{node.word} of {shown} needs bounds: {why_unbounded(part, scope)} write "
                    f"CLAMP({shown}, lower, upper)"
                )
        return cls(_where_known(y, x, scope), _where_known(x, y, scope), scope)

    def statistic(self, word: str) -> ag.AggregateFunction:
        """A statistic, as it is calculated from means, variances and a count."""
        match word:
            case "REGR_COUNT":
                return ag.CountValues(self.y)
            case "REGR_AVGX":
                return ag.Mean(self.x)
            case "REGR_AVGY":
                return ag.Mean(self.y)
            case "COVAR_POP":
                return self._covariance()
            case "COVAR_SAMP":
                bessel = Apply("BESSEL", (ag.CountValues(self.y),))
                return apply("*", self._covariance(), bessel)
            case "REGR_SLOPE":
                return self._slope()
            case "REGR_INTERCEPT":
                risen = apply("*", self._slope(), ag.Mean(self.x))
                return apply("-", ag.Mean(self.y), risen)
        both = apply("*", self._variance(self.x), self._variance(self.y))
        if word == "CORR":
            found = apply("/", self._covariance(), apply("SQRT", both))
            return Apply("CLIP", (found, Constant(-1), Constant(1)))
        squared = apply("POWER", self._covariance(), Constant(2))
        return Apply("CLIP", (apply("/", squared, both), Constant(0), Constant(1)))

    def _covariance(self) -> ag.AggregateFunction:
        first = _less(self.x, self._x, self._scope)
        second = _less(self.y, self._y, self._scope)
        product = ag.Mean(ex.Arithmetic("*", first, second))
        means = (
            apply("-", ag.Mean(part), Constant(middle)) if middle else ag.Mean(part)
            for part, middle in ((self.x, self._x), (self.y, self._y))
        )
        return apply("-", product, apply("*", *means))

    def _variance(self, part: ex.Expression) -> ag.AggregateFunction:
        return ag.Variance(part, sample=False)

    def _slope(self) -> ag.AggregateFunction:
        return apply("/", self._covariance(), self._variance(self.x))


def _where_known(node: ex.Expression, other: ex.Expression, scope: Scope) -> ex.Expression:
    """A number where the other is not NULL."""
    if node == other or not infer(other, scope).nullable:
        return node
    return ex.Case(((ex.Not(ex.IsNull(other)), node),), ex.Literal(None))


def _middle(node: ex.Expression, scope: Scope) -> Fraction:
    ends = infer(node, scope).range
    assert ends is not None
    return (ends[0] + ends[1]) / 2


def _less(node: ex.Expression, middle: Fraction, scope: Scope) -> ex.Expression:
    ends = infer(node, scope).range
    assert ends is not None
    held = ex.Clamp(node, *ends)
    if not middle:
        return held
    whole = middle.denominator == 1 and abs(middle) <= LARGEST_INTEGER
    return ex.Arithmetic("-", held, ex.Literal(middle.numerator if whole else middle))
