"""A plan as DuckDB SQL, in forms that cannot fail on any value.

What an expression means, beyond its docstring in ``dither.plan.expressions``:

- Integers are computed in 64 bits; ``dither.plan.facts`` has proved that no result leaves ±2⁶².
- Reals are computed in doubles. No expression is ever NaN or infinite: columns are read without
  (``dither.sql.leaves``), bounds are proved to stay below 1e300, and a quotient that a double
  cannot hold is NULL, like one with a zero divisor.
- An integer beside a real is read as a real, a date beside a timestamp as its midnight.
- Bounds that ``facts`` claims are enforced where rounding could break them: at quotients, and where
  a real becomes an integer. So the bounds of every integer are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import ceil

from sqlglot import exp

from dither.errors import BoundsError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.facts import LARGEST_INTEGER, Facts, Scope, infer
from dither.plan.kinds import Kind
from dither.sql import forms
from dither.sql.forms import binary, call, case, cast

__all__ = ["Emitter"]

MOST_NODES = 200_000
"""Where a guard needs its operand twice, deep nesting would grow without bound."""

EXACT = 2**53
"""Up to here every integer is a double."""


class Emitter:
    """Writes expressions over the columns that ``resolve`` names.

    Parameters
    ----------
    scope : Scope
        The tables that the expressions may name.
    resolve : callable
        From a plan's column to the SQL that holds its value, read as ``dither.sql.leaves`` does.
    """

    def __init__(self, scope: Scope, resolve: Callable[[ex.Column], exp.Expression]) -> None:
        self._scope = scope
        self._resolve = resolve
        self._copied = 0

    def facts(self, node: ex.Expression) -> Facts:
        """The public facts of an expression."""
        return infer(node, self._scope)

    def value(self, node: ex.Expression, kind: Kind | None = None) -> exp.Expression:
        """The SQL of an expression; read as ``kind``, which its own kind must fit into."""
        if isinstance(node, ex.Literal):
            return forms.constant(node.value, kind)
        found = _EMIT[type(node)](self, node)
        own = self.facts(node).kind
        if kind is not None and own is not kind:
            return forms.null(kind) if own is None else cast(found, forms.TYPES[kind])
        return found

    def lattice(
        self, node: ex.Expression, step: Fraction, lower: int, upper: int
    ) -> exp.Expression:
        """``clamp(round(node / step), lower, upper)`` as BIGINT; NULL where the node is.

        Halves are rounded to the even integer.
        """
        facts = self.facts(node)
        if max(abs(lower), abs(upper)) > LARGEST_INTEGER:
            raise BoundsError("a bound divided by its step is beyond 2^62; use a larger step")
        low, high = Fraction(lower), Fraction(upper)
        if facts.kind is Kind.INTEGER and step == 1:
            return self._within(self.value(node), facts, low, high, Kind.INTEGER)
        scaled = self._scaled(self.value(node, Kind.REAL), step)
        known = self._scaled_ends(node, step)
        if known is None or known[0] < low or known[1] > high:
            scaled = self._clamped(scaled, low, high, Kind.REAL)
        rounded = cast(scaled, "BIGINT")
        if max(abs(lower), abs(upper)) > EXACT:
            rounded = self._clamped(rounded, low, high, Kind.INTEGER)
        return rounded

    def _scaled(self, value: exp.Expression, step: Fraction) -> exp.Expression:
        """``value / step`` in doubles, by a product where ``1 / step`` is an integer."""
        op, factor = _scale(step)
        if op is None:
            return value
        return binary(op, value, forms.real(factor))

    def _scaled_ends(self, node: ex.Expression, step: Fraction) -> tuple[float, float] | None:
        """The scaled value's bounds in doubles, where a column's clamp enforces them already."""
        facts = self.facts(node)
        if not isinstance(node, ex.Column) or facts.range is None:
            return None
        op, factor = _scale(step)
        low, high = (float(end) for end in facts.range)
        if op is None:
            return low, high
        return (low * factor, high * factor) if op == "*" else (low / factor, high / factor)

    # --- guards -----------------------------------------------------------------------------

    def _again(self, node: exp.Expression) -> exp.Expression:
        """A copy, for forms that name an operand more than once."""
        self._copied += sum(1 for _ in node.walk())
        if self._copied > MOST_NODES:
            raise UnsupportedError("the expression is nested too deeply; use fewer levels")
        return node.copy()

    def _clamped(
        self, value: exp.Expression, lower: Fraction, upper: Fraction, kind: Kind
    ) -> exp.Expression:
        # LEAST and GREATEST would skip a NULL and give the bound.
        low, high = forms.constant(lower, kind), forms.constant(upper, kind)
        return case(
            (binary("<", self._again(value), low), low.copy()),
            (binary(">", self._again(value), high), high.copy()),
            otherwise=value,
        )

    def _within(
        self, value: exp.Expression, facts: Facts, lower: Fraction, upper: Fraction, kind: Kind
    ) -> exp.Expression:
        """Clamped, unless the facts of an integer, which are exact, say that it is."""
        known = facts.range
        if kind is Kind.INTEGER and known and lower <= known[0] and known[1] <= upper:
            return value
        return self._clamped(value, lower, upper, kind)

    def _united(self, nodes: tuple[ex.Expression, ...]) -> Kind | None:
        kinds = {self.facts(n).kind for n in nodes} - {None}
        if len(kinds) > 1:
            return Kind.REAL if Kind.REAL in kinds else Kind.TIMESTAMP
        return next(iter(kinds), None)

    # --- nodes ------------------------------------------------------------------------------

    def column(self, node: ex.Column) -> exp.Expression:
        return self._resolve(node)

    def arithmetic(self, node: ex.Arithmetic) -> exp.Expression:
        facts = self.facts(node)
        if facts.kind is Kind.INTEGER:
            left, right = self.value(node.left), self.value(node.right)
            if node.op in ("//", "%"):
                right = call("NULLIF", right, forms.integer(0))
            return binary(node.op, left, right)
        left, right = self.value(node.left, Kind.REAL), self.value(node.right, Kind.REAL)
        if node.op != "/":
            return binary(node.op, left, right)
        quotient = binary("/", left, call("NULLIF", right, forms.real(0.0)))
        held = quotient
        if facts.range is not None:
            held = call("GREATEST", held, forms.real(facts.range[0]))
            held = call("LEAST", held, forms.real(facts.range[1]))
        return case((call("ISFINITE", self._again(quotient)), held))

    def compare(self, node: ex.Compare) -> exp.Expression:
        kind = self._united((node.left, node.right))
        return binary(node.op, self.value(node.left, kind), self.value(node.right, kind))

    def between(self, node: ex.Between) -> exp.Expression:
        kind = self._united((node.operand, node.low, node.high))
        operand, low, high = (self.value(n, kind) for n in (node.operand, node.low, node.high))
        return exp.Paren(this=exp.Between(this=operand, low=low, high=high))

    def in_list(self, node: ex.InList) -> exp.Expression:
        literals = tuple(ex.Literal(v) for v in node.values)
        kind = self._united((node.operand, *literals))
        listed = [self.value(v, kind) for v in literals]
        return exp.Paren(this=exp.In(this=self.value(node.operand, kind), expressions=listed))

    def is_null(self, node: ex.IsNull) -> exp.Expression:
        return exp.Paren(this=exp.Is(this=self.value(node.operand), expression=exp.Null()))

    def conjunction(self, node: ex.And) -> exp.Expression:
        return forms.all_of("AND", [self.value(n, Kind.BOOLEAN) for n in node.operands])

    def disjunction(self, node: ex.Or) -> exp.Expression:
        return forms.all_of("OR", [self.value(n, Kind.BOOLEAN) for n in node.operands])

    def negation(self, node: ex.Not) -> exp.Expression:
        return exp.Paren(this=exp.Not(this=self.value(node.operand, Kind.BOOLEAN)))

    def case(self, node: ex.Case) -> exp.Expression:
        kind = self._united((*(v for _, v in node.branches), node.otherwise))
        branches = [(self.value(c, Kind.BOOLEAN), self.value(v, kind)) for c, v in node.branches]
        return case(*branches, otherwise=self.value(node.otherwise, kind))

    def coalesce(self, node: ex.Coalesce) -> exp.Expression:
        kind = self._united(node.operands)
        return call("COALESCE", *(self.value(n, kind) for n in node.operands))

    def absolute(self, node: ex.Absolute) -> exp.Expression:
        return call("ABS", self.value(node.operand))

    def whole(self, node: ex.Floor | ex.Ceil) -> exp.Expression:
        value = self.value(node.operand)
        if self.facts(node.operand).kind is Kind.INTEGER:
            return value
        name = "FLOOR" if isinstance(node, ex.Floor) else "CEIL"
        found = forms.try_cast(call(name, value), "BIGINT")
        bounds = self.facts(node).range
        return self._clamped(found, *bounds, Kind.INTEGER) if bounds else found

    def extreme(self, node: ex.Least | ex.Greatest) -> exp.Expression:
        kind = self._united(node.operands)
        name = "LEAST" if isinstance(node, ex.Least) else "GREATEST"
        return call(name, *(self.value(n, kind) for n in node.operands))

    def clamp(self, node: ex.Clamp) -> exp.Expression:
        facts = self.facts(node.operand)
        kind = Kind.INTEGER if facts.kind is Kind.INTEGER else Kind.REAL
        return self._within(self.value(node.operand), facts, node.lower, node.upper, kind)

    def bin(self, node: ex.Bin) -> exp.Expression:
        kind = self.facts(node.operand).kind
        value = self.value(node.operand)
        # The last edge belongs to the last bin, so that only the inner edges divide.
        inner = node.edges[1:-1]
        if kind is Kind.INTEGER:
            cuts = [forms.whole(ceil(e)) for e in inner]
        else:
            cuts = [forms.real(e) for e in inner]
        found = self._bisect(value, cuts, 0, len(cuts))
        missing = exp.Is(this=self._again(value), expression=exp.Null())
        return case((missing, forms.null(Kind.INTEGER)), otherwise=found)

    def _bisect(
        self, value: exp.Expression, cuts: list[exp.Expression], low: int, high: int
    ) -> exp.Expression:
        if low == high:
            return forms.integer(low)
        middle = (low + high) // 2
        below = binary("<", self._again(value), cuts[middle])
        return case(
            (below, self._bisect(value, cuts, low, middle)),
            otherwise=self._bisect(value, cuts, middle + 1, high),
        )

    def date_part(self, node: ex.DatePart) -> exp.Expression:
        part = {"dayofweek": "dow"}.get(node.part, node.part)
        found = cast(call("DATE_PART", forms.text(part), self.value(node.operand)), "BIGINT")
        bounds = self.facts(node).range
        # A bound that was declared in another time zone may lie in another year in UTC.
        enforce = bounds is not None and node.part == "year"
        return self._clamped(found, *bounds, Kind.INTEGER) if bounds and enforce else found

    def date_truncate(self, node: ex.DateTruncate) -> exp.Expression:
        return cast(call("DATE_TRUNC", forms.text(node.part), self.value(node.operand)), "DATE")

    def letters(self, node: ex.Lower | ex.Upper) -> exp.Expression:
        name = "LOWER" if isinstance(node, ex.Lower) else "UPPER"
        return call(name, self.value(node.operand, Kind.TEXT))

    def substring(self, node: ex.Substring) -> exp.Expression:
        start, length = (min(n, 2**31 - 1) for n in (node.start, node.length))
        value = self.value(node.operand, Kind.TEXT)
        return call("SUBSTRING", value, forms.integer(start), forms.integer(length))


def _scale(step: Fraction) -> tuple[str | None, float]:
    """How to divide by a step in doubles: the operator and its right side."""
    if step == 1:
        return None, 1.0
    if step.numerator == 1 and step.denominator <= EXACT:
        return "*", float(step.denominator)
    divisor = float(step)
    if not 0 < divisor < float("inf"):
        raise UnsupportedError("the step is beyond what a double can hold; use one nearer to 1")
    return "/", divisor


_EMIT: dict[type[ex.Expression], Callable[..., exp.Expression]] = {
    ex.Column: Emitter.column,
    ex.Arithmetic: Emitter.arithmetic,
    ex.Compare: Emitter.compare,
    ex.Between: Emitter.between,
    ex.InList: Emitter.in_list,
    ex.IsNull: Emitter.is_null,
    ex.And: Emitter.conjunction,
    ex.Or: Emitter.disjunction,
    ex.Not: Emitter.negation,
    ex.Case: Emitter.case,
    ex.Coalesce: Emitter.coalesce,
    ex.Absolute: Emitter.absolute,
    ex.Floor: Emitter.whole,
    ex.Ceil: Emitter.whole,
    ex.Least: Emitter.extreme,
    ex.Greatest: Emitter.extreme,
    ex.Clamp: Emitter.clamp,
    ex.Bin: Emitter.bin,
    ex.DatePart: Emitter.date_part,
    ex.DateTruncate: Emitter.date_truncate,
    ex.Lower: Emitter.letters,
    ex.Upper: Emitter.letters,
    ex.Substring: Emitter.substring,
}
