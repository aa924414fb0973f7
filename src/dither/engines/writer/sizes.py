"""How large a number can be whatever its source holds: which forms need a test of their result.

Public facts say how large values ought to be. What is said here follows from the engine's types and
from what a query itself does to a value, and so is true of hostile values too. It decides between
forms that mean the same: one that tests its result, and one that need not.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dither.engines.writer.dialect import LARGEST
from dither.plan import expressions as ex
from dither.plan.facts.values import Facts
from dither.plan.schema import Kind

__all__ = ["Sizes"]

LARGEST_REAL = Fraction(10) ** 308
"""Beyond this a double may be infinite; below, rounding leaves it finite."""


class Sizes:
    """The largest size of each number in a query; ``None`` where a real may be infinite.

    Parameters
    ----------
    facts : callable
        The public facts of an expression, of which the kind alone is used.
    largest : callable, optional
        The largest size of a column; by default that of its kind.
    """

    def __init__(
        self,
        facts: Callable[[ex.Expression], Facts],
        largest: Callable[[ex.Column], Fraction | None] | None,
    ) -> None:
        self._facts = facts
        self._largest = largest
        # Kept with its node, whose address cannot become another's meanwhile.
        self._known: dict[int, tuple[ex.Expression, Fraction | None]] = {}

    def fits_without_test(self, node: ex.Arithmetic | ex.Absolute) -> bool:
        """Whether an integer result, and each step on the way to it, surely fits 64 bits."""
        size = self._computed(node)
        return size is not None and size <= LARGEST

    def may_be_nan(self, node: ex.Expression) -> bool:
        """Whether arithmetic on infinities may have made NaN of a real."""
        match node:
            case ex.Absolute(operand=x):
                return self._is_real(x) and self.may_be_nan(x)
            case ex.Arithmetic(op=op, left=left, right=right) if self._is_real(node):
                if self.may_be_nan(left) or self.may_be_nan(right):
                    return True
                # NaN is infinity times 0, and infinity less or by infinity; a zero divisor was
                # taken out before.
                infinite = [self.of(x) is None for x in (left, right)]
                if op == "*":
                    return any(infinite) and not any(map(_is_nonzero, (left, right)))
                return all(infinite)
        return False

    def of(self, node: ex.Expression) -> Fraction | None:
        """The largest size of a number."""
        if id(node) not in self._known:
            self._known[id(node)] = node, self._size(node)
        return self._known[id(node)][1]

    def _size(self, node: ex.Expression) -> Fraction | None:
        if not self._is_real(node):
            size = self._integer(node)
            # What is larger in between is NULL.
            return min(size, Fraction(LARGEST + 1)) if size is not None else Fraction(LARGEST + 1)
        size = self._computed(node)
        return size if size is not None and size <= LARGEST_REAL else None

    def _is_real(self, node: ex.Expression) -> bool:
        return self._facts(node).kind is Kind.REAL

    def _integer(self, node: ex.Expression) -> Fraction | None:
        match node:
            case ex.Floor(operand=x) | ex.Ceil(operand=x):
                size = self.of(x)
                return None if size is None else size + 1
            case ex.Bin(edges=edges):
                return Fraction(len(edges))
            case ex.DatePart():
                return Fraction(9999)
        return self._computed(node)

    def _computed(self, node: ex.Expression) -> Fraction | None:
        match node:
            case ex.Column():
                return self._largest(node) if self._largest is not None else None
            case ex.Literal(value=value):
                return abs(Fraction(value)) if isinstance(value, int | Fraction) else Fraction(0)
            case ex.Arithmetic():
                return self._arithmetic(node)
            case ex.Absolute(operand=x):
                return self.of(x)
            case ex.Clamp(lower=lower, upper=upper):
                return max(abs(lower), abs(upper))
            case ex.Least(operands=xs) | ex.Greatest(operands=xs) | ex.Coalesce(operands=xs):
                return _most([self.of(x) for x in xs])
            case ex.Case(branches=branches, otherwise=other):
                return _most([*(self.of(value) for _, value in branches), self.of(other)])
        return None

    def _arithmetic(self, node: ex.Arithmetic) -> Fraction | None:
        left, right = self.of(node.left), self.of(node.right)
        if left is None or right is None:
            return None
        match node.op:
            case "+" | "-":
                return left + right
            case "*":
                return left * right
            # Towards zero, neither is larger than what is divided.
            case "//" | "%":
                return left
            case "/" if _is_nonzero(node.right):
                return left / right
        return None


def _most(sizes: list[Fraction | None]) -> Fraction | None:
    known = [size for size in sizes if size is not None]
    return max(known, default=Fraction(0)) if len(known) == len(sizes) else None


def _is_nonzero(node: ex.Expression) -> bool:
    match node:
        case ex.Literal(value=int() | Fraction() as value):
            return float(value) != 0
    return False
