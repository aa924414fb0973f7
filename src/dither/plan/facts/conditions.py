"""Where a predicate may be true, and where it may be false, as values of one column.

Predicates are read in three-valued logic: of each two sets are kept, of the values for which it may
be true and for which it may be false, so that NOT exchanges them, and AND and OR combine them. What
is a predicate on that column alone is known exactly: it is true on the one set, false on the other,
NULL elsewhere. What is not understood may be both anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from dither.blocks._sets import NO_BLOCKS, NULL, BlockSet
from dither.plan import expressions as ex
from dither.plan.facts.contradictions import constant_of
from dither.plan.facts.points import (
    ANYTHING,
    EVERY,
    NEVER,
    Points,
    Truths,
    Values,
    complement,
    first_of_year,
    period_start,
)
from dither.plan.facts.values import Scope
from dither.plan.schema import Value

__all__ = ["Conditions"]

Part = ex.Expression

UNSURE: Truths = ANYTHING, ANYTHING

OPPOSITE = {"<>": "=", "<": ">=", "<=": ">"}
TURNED = {"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


class Conditions:
    """Reads predicates on one column; without a column all that is known are constants."""

    def __init__(self, column: ex.Column | None = None, points: Points | None = None) -> None:
        self._column, self._points = column, points

    def of(self, node: Part) -> Truths:
        """The values for which a predicate may be true, and for which it may be false."""
        match node:
            case ex.Literal(value=value):
                return _if(value is True), _if(value is False)
            case ex.Not(operand=operand):
                true, false = self.of(operand)
                return false, true
            case ex.And(operands=operands):
                return _all([self.of(one) for one in operands])
            case ex.Or(operands=operands):
                # NOT (NOT a AND NOT b), which is so of NULL too.
                false, true = _all([self.of(one)[::-1] for one in operands])
                return true, false
            case ex.Between(operand=operand, low=low, high=high):
                ends = ex.Compare(">=", operand, low), ex.Compare("<=", operand, high)
                return self.of(ex.And(ends))
            case ex.IsNull(operand=operand):
                return self._is_null(operand)
            case ex.InList(operand=operand, values=values):
                return self._among(operand, values)
            case ex.Compare(op=op, left=left, right=right):
                if _is_nothing(left) or _is_nothing(right):
                    return NO_BLOCKS, NO_BLOCKS
                value = _constant(right)
                if value is None:
                    op, left, value = TURNED[op], right, _constant(left)
                if value is not None:
                    return self._compared(op, left, value)
        return UNSURE

    def _is_null(self, operand: Part) -> Truths:
        if _is_nothing(operand):
            return ANYTHING, NO_BLOCKS
        if self._column is not None and operand == self._column:
            return BlockSet.of_names(NULL), EVERY
        return UNSURE

    def _among(self, operand: Part, values: Sequence[Value]) -> Truths:
        if _is_nothing(operand):
            return NO_BLOCKS, NO_BLOCKS
        each = [self._compared("=", operand, value) for value in values]
        ranges = tuple(held for true, _ in each for held in true.ranges)
        true = BlockSet(ranges, frozenset().union(*(true.named for true, _ in each)))
        if all(not true & false for true, false in each):
            return true, complement(true)
        false = ANYTHING
        for _, other in each:
            false &= other
        return true, false

    def _compared(self, op: str, operand: Part, value: Value) -> Truths:
        """A comparison with a constant, of the column or of what follows from it."""
        points = self._points
        if points is None:
            return UNSURE
        if isinstance(operand, ex.DatePart) and operand.operand == self._column:
            found = points.in_months(op, operand.part, value)
            if found is not None:
                return found
        if op in OPPOSITE:
            true, false = self._compared(OPPOSITE[op], operand, value)
            return false, true
        at, beyond = (self._from(operand, value, strict=strict) for strict in (False, True))
        if at is None or beyond is None:
            same = points.same(value) if op == "=" and operand == self._column else None
            return UNSURE if same is None else same
        true = {">=": at, ">": beyond, "=": at & complement(beyond)}[op]
        return true, complement(true)

    def _from(self, operand: Part, value: Value, *, strict: bool) -> Values | None:
        """Where an expression is at least a value, or above it; ``None`` if it is not understood.

        What is truncated, and a year, never fall as the column rises. So they are at least a value
        where their operand is at least the start of some period.
        """
        assert self._points is not None
        if operand == self._column:
            return self._points.beginning(value, strict=strict)
        match operand:
            case ex.DateTruncate(part=part, operand=inner) if part not in ex.TIMES:
                start = period_start(value, part, strict=strict)
            case ex.Call(function="cast", operands=(inner,), options=("date",)):
                start = period_start(value, "day", strict=strict)
            case ex.DatePart(part="year", operand=inner):
                start = first_of_year(value, strict=strict)
            case _:
                return None
        if start is None or not self._points.kind.temporal:
            return None
        return NO_BLOCKS if start is NEVER else self._from(inner, start, strict=False)


def _if(known: bool) -> Values:
    return ANYTHING if known else NO_BLOCKS


def _all(each: Iterable[Truths]) -> Truths:
    """AND: true where all are, false where any is."""
    true, false = ANYTHING, NO_BLOCKS
    for one, other in each:
        true, false = true & one, false | other
    return true, false


def _constant(node: Part) -> Value | None:
    """What is written as a constant, or one that every engine computes alike."""
    if isinstance(node, ex.Literal):
        return node.value
    if any(True for _ in ex.columns(node)):
        return None
    found = constant_of(node, Scope({}))
    return None if isinstance(found, Fraction) and found.denominator != 1 else found


def _is_nothing(node: Part) -> bool:
    """Whether an expression is NULL whatever the row holds."""
    match node:
        case ex.Literal(value=value):
            return value is None
        case ex.DateTruncate(operand=operand) | ex.DatePart(operand=operand):
            return _is_nothing(operand)
        case ex.Call(function="cast", operands=(operand,)):
            return _is_nothing(operand)
        case ex.Arithmetic(left=left, right=right):
            return _is_nothing(left) or _is_nothing(right)
    return False
