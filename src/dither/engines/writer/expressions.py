"""A plan's expressions as SQL, in forms that cannot fail on any value.

What an expression means, beyond its docstring in ``dither.plan.expressions``:

- It is of the values as they are. No bound, list or other declared fact is taken for true of a
  value: where ``dither.plan.facts.values`` says that a result lies in some range, that is so for
  values that keep to what is declared, and a value that does not has a result all the same.
- Integers are computed exactly; one that 64 bits cannot hold is NULL.
- Reals are computed in doubles, infinities included. What would be NaN is NULL, and so is a
  quotient with a zero divisor.
- An integer beside a real is read as a real, a date beside a timestamp as its midnight.
- ``lattice`` is where a number enters an aggregate. It alone clamps, always, and so is what the
  sensitivity of a sum rests on.

It is long because every node stands beside the guards that its form shares with others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from dither.engines.writer.dialect import Dialect
from dither.engines.writer.forms import (
    all_of,
    binary,
    call,
    case,
    identifier,
    is_not_null,
    named,
)
from dither.engines.writer.functions import FORMS
from dither.engines.writer.readings import marked
from dither.engines.writer.sizes import Sizes
from dither.errors import BoundsError, UnsupportedError
from dither.plan import expressions as ex
from dither.plan.facts.values import LARGEST_INTEGER, Facts, Scope, infer
from dither.plan.schema import Kind

__all__ = ["Emitter", "Shared", "unscaled"]

MOST_NODES = 100_000
"""Where a guard needs its operand twice, deep nesting would grow without bound."""

EXACT = 2**53
"""Up to here every integer is a double."""


@dataclass(frozen=True, slots=True)
class Shared:
    """A column that holds a number in steps, computed once for all who name it."""

    name: str
    made: exp.Expression
    whole: bool
    """Whether it was written as an integer, and not as a double."""
    scale: tuple[str, float] | None = None
    """Where it holds the number itself, a double: how that is divided by the step."""


class Emitter:
    """Writes expressions over the columns that ``resolve`` names.

    Parameters
    ----------
    dialect : Dialect
    scope : Scope
        The tables that the expressions may name.
    resolve : callable
        From a plan's column to the SQL that holds its value, read as its kind.
    largest : callable, optional
        From a column of numbers to the largest size that its values can have whatever the source
        holds; by default that of its kind.
    raw : callable, optional
        From a column to the SQL of its value as a double, NaN among them, where it has one.
    """

    def __init__(
        self,
        dialect: Dialect,
        scope: Scope,
        resolve: Callable[[ex.Column], exp.Expression],
        largest: Callable[[ex.Column], Fraction | None] | None = None,
        raw: Callable[[ex.Column], exp.Expression | None] | None = None,
    ) -> None:
        self._dialect = dialect
        self._scope = scope
        self._resolve = resolve
        self._raw = raw or (lambda _: None)
        self._sizes = Sizes(self.facts, largest)
        # Kept with its node, whose address cannot become another's meanwhile.
        self._known: dict[int, tuple[ex.Expression, Facts]] = {}
        self._copied = 0

    def facts(self, node: ex.Expression) -> Facts:
        """The public facts of an expression."""
        if id(node) not in self._known:
            self._known[id(node)] = node, infer(node, self._scope)
        return self._known[id(node)][1]

    def value(self, node: ex.Expression, kind: Kind | None = None) -> exp.Expression:
        """The SQL of an expression, never NaN; read as ``kind``, which its own must fit into."""
        found = self._loose(node, kind)
        return self._without_nan(found) if self._sizes.may_be_nan(node) else found

    def _loose(self, node: ex.Expression, kind: Kind | None = None) -> exp.Expression:
        """The SQL of an expression, NaN where arithmetic on infinities gives it.

        Arithmetic on NaN is NaN again, so that one test at the top serves a whole formula.
        """
        if isinstance(node, ex.Literal):
            return self._dialect.constant(node.value, kind)
        found = _EMIT[type(node)](self, node)
        own = self.facts(node).kind
        if kind is not None and own is not kind:
            dialect = self._dialect
            return dialect.null(kind) if own is None else dialect.cast(found, kind)
        return found

    def scaled(self, node: ex.Expression, step: Fraction) -> exp.Expression:
        """A number in steps, which ``lattice`` rounds and clamps: an integer where that is exact.

        It may be NaN, which is tested there.
        """
        if self._stays_whole(node, step):
            return self._number_of(node)
        value = self._real_of(node)
        op, factor = _scale(step)
        if op is None:
            return value
        return self._dialect.real_arithmetic(op, value, self._dialect.real(factor))

    def shared(
        self, node: ex.Expression, step: Fraction, name: str, ends: Iterable[tuple[int, int]]
    ) -> Shared:
        """``scaled`` as a column of that name, for ``lattice`` within each of the ``ends``.

        Or the number before it is scaled, where the engine clamps that at no loss.
        """
        whole = self._stays_whole(node, step)
        op, factor = _scale(step)
        if not whole and op is not None:
            value = self._real_of(node)
            column = identifier(name)
            short = (self._dialect.nearest_scaled(column, op, factor, *pair) for pair in ends)
            if all(form is not None for form in short):
                return Shared(name, named(value, name), whole, (op, factor))
        return Shared(name, named(self.scaled(node, step), name), whole)

    def _stays_whole(self, node: ex.Expression, step: Fraction) -> bool:
        return step == 1 and self.facts(node).kind is Kind.INTEGER

    def _number_of(self, node: ex.Expression) -> exp.Expression:
        raw = self._raw(node) if isinstance(node, ex.Column) else None
        return self._loose(node) if raw is None else raw

    def _real_of(self, node: ex.Expression) -> exp.Expression:
        value = self._number_of(node)
        whole = self.facts(node).kind is Kind.INTEGER
        return self._dialect.cast(value, Kind.REAL) if whole else value

    def _number_may_be_nan(self, node: ex.Expression) -> bool:
        if isinstance(node, ex.Column):
            return self._raw(node) is not None
        return self._sizes.may_be_nan(node)

    def lattice(
        self,
        node: ex.Expression,
        step: Fraction,
        lower: int,
        upper: int,
        shared: Shared | None = None,
    ) -> exp.Expression:
        """``clamp(round(node / step), lower, upper)`` as an integer; NULL where the node is, or is
        NaN.

        Halves are rounded to the even integer. ``shared``: the column that ``shared`` gave of
        them, so that it is computed once; its name occurs here many times. What enters a sum
        is an integer by its type too, so a column of another type than the node's is no stand-in.
        """
        if max(abs(lower), abs(upper)) > LARGEST_INTEGER:
            raise BoundsError("a bound divided by its step is beyond 2^62; use a larger step")
        low, high = Fraction(lower), Fraction(upper)
        whole = self._stays_whole(node, step)
        if shared is not None and shared.whole is not whole:
            raise TypeError(f"column {shared.name} is not of the type of its operand")
        if shared is not None and shared.scale is not None:
            short = self._dialect.nearest_scaled(
                identifier(shared.name), *shared.scale, lower, upper
            )
            assert short is not None
            return short
        scaled = self.scaled(node, step) if shared is None else identifier(shared.name)
        if whole:
            return self._clamped(scaled, low, high, Kind.INTEGER)
        return self._nearest(scaled, lower, upper, nan=self._number_may_be_nan(node))

    def _nearest(
        self, value: exp.Expression, lower: int, upper: int, *, nan: bool
    ) -> exp.Expression:
        """A double rounded and moved into the bounds, as an integer of the smallest type that
        serves.

        What is NaN, or too large for the type, fits no integer. So the first branch, which takes
        almost every row, needs no test of its own; each of the others has one, and none rests on
        what an optimizer makes of the comparison beside it. A double beyond a bound is on that side
        of the double nearest to it, or is that one.
        """
        dialect = self._dialect
        if isinstance(value, exp.Column):
            short = dialect.nearest_within(value, lower, upper)
            if short is not None:
                return short
        kind = dialect.whole_type(max(abs(lower), abs(upper)))
        least, most = (dialect.cast_to(dialect.integer(end), kind) for end in (lower, upper))
        nearest = dialect.nearest(self._again(value), kind)

        # Engines that give NaN an order put it above every number: untested it would be the upper
        # end.
        def beyond(op: str, end: int) -> exp.Expression:
            condition = binary(op, self._again(value), dialect.real(Fraction(end)))
            return all_of("AND", [condition, self._is_number(value)]) if nan else condition

        return case(
            # A double that no integer of the type is near to is in no range: its side is asked of
            # the double.
            (exp.Between(this=self._again(nearest), low=least, high=most), nearest),
            (beyond("<=", lower), least.copy()),
            (beyond(">=", upper), most.copy()),
        )

    # --- guards -----------------------------------------------------------------------------

    def _again(self, node: exp.Expression) -> exp.Expression:
        """A copy, for forms that name an operand more than once."""
        self._count(node)
        return node.copy()

    def _count(self, node: exp.Expression, times: int = 1) -> None:
        if times:
            self._copied += times * _nodes(node)
        if self._copied > MOST_NODES:
            raise UnsupportedError("the expression is nested too deeply; use fewer levels")

    def _clamped(
        self,
        value: exp.Expression,
        lower: Fraction,
        upper: Fraction,
        kind: Kind,
    ) -> exp.Expression:
        """Moved into the bounds; NULL stays NULL, which LEAST and GREATEST would skip."""
        low, high = (self._bound(bound, kind) for bound in (lower, upper))
        within = exp.Between(this=self._again(value), low=low, high=high)
        return case(
            (within, self._again(value)),
            (binary("<", self._again(value), low.copy()), low.copy()),
            (binary(">", value, high.copy()), high.copy()),
        )

    def _is_number(self, value: exp.Expression) -> exp.Expression:
        self._count(value, self._dialect.repeats_number)
        return self._dialect.is_number(value.copy())

    def _without_nan(self, value: exp.Expression) -> exp.Expression:
        self._count(value, self._dialect.repeats_number)
        return self._dialect.without_nan(value)

    def _narrowed(self, value: exp.Expression) -> exp.Expression:
        self._count(value, self._dialect.repeats_narrowed)
        return self._dialect.narrowed(value)

    def _united(self, nodes: tuple[ex.Expression, ...]) -> Kind | None:
        kinds = {self.facts(n).kind for n in nodes} - {None}
        if len(kinds) > 1:
            return Kind.REAL if Kind.REAL in kinds else Kind.TIMESTAMP
        return next(iter(kinds), None)

    # --- nodes ------------------------------------------------------------------------------

    def column(self, node: ex.Column) -> exp.Expression:
        return self._resolve(node)

    def unreadable(self, node: ex.Unreadable) -> exp.Expression:
        return self._resolve(marked(node))

    def arithmetic(self, node: ex.Arithmetic) -> exp.Expression:
        dialect = self._dialect
        if self.facts(node).kind is Kind.INTEGER:
            left, right = self.value(node.left), self.value(node.right)
            held = self._sizes.fits_without_test(node)
            if not held:
                # Of two 64-bit integers, no operation leaves the wide type.
                left, right = dialect.widened(left), dialect.widened(right)
            if node.op in ("//", "%"):
                right = self._not_zero(right, dialect.integer(0))
            if held:
                return dialect.arithmetic(node.op, left, right)
            if node.op != "//":
                return self._narrowed(dialect.arithmetic(node.op, left, right))
            for side in (left, right):
                self._count(side, dialect.repeats_quotient)
            return self._narrowed(dialect.wide_quotient(left, right))
        left, right = self._loose(node.left, Kind.REAL), self._loose(node.right, Kind.REAL)
        if node.op == "/":
            right = self._not_zero(right, dialect.real(0.0))
        return dialect.real_arithmetic(node.op, left, right)

    def _not_zero(self, value: exp.Expression, zero: exp.Expression) -> exp.Expression:
        # NULLIF would name its operand twice too, but unseen, in the engine.
        return case((binary("<>", self._again(value), zero), value))

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
        return all_of("AND", [self.value(n, Kind.BOOLEAN) for n in node.operands])

    def disjunction(self, node: ex.Or) -> exp.Expression:
        return all_of("OR", [self.value(n, Kind.BOOLEAN) for n in node.operands])

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
        if self.facts(node).kind is not Kind.INTEGER:
            return self._dialect.absolute(self._loose(node.operand))
        value = self.value(node.operand)
        if self._sizes.fits_without_test(node):
            return self._dialect.absolute(value)
        return self._narrowed(self._dialect.absolute(self._dialect.widened(value)))

    def whole(self, node: ex.Floor | ex.Ceil) -> exp.Expression:
        # NaN fits no integer, and so is NULL.
        value = self._loose(node.operand)
        if self.facts(node.operand).kind is Kind.INTEGER:
            return value
        self._count(value, self._dialect.repeats_narrowed)
        dialect = self._dialect
        return dialect.floor(value) if isinstance(node, ex.Floor) else dialect.ceil(value)

    def extreme(self, node: ex.Least | ex.Greatest) -> exp.Expression:
        kind = self._united(node.operands)
        values = [self.value(n, kind) for n in node.operands]
        least = isinstance(node, ex.Least)
        return self._dialect.least(*values) if least else self._dialect.greatest(*values)

    def clamp(self, node: ex.Clamp) -> exp.Expression:
        integer = self.facts(node.operand).kind is Kind.INTEGER
        kind = Kind.INTEGER if integer else Kind.REAL
        return self._clamped(self.value(node.operand), node.lower, node.upper, kind)

    def bin(self, node: ex.Bin) -> exp.Expression:
        kind = self.facts(node.operand).kind
        first, *inner, last = node.edges
        operand = node.operand
        clamped = isinstance(operand, ex.Clamp) and (operand.lower, operand.upper) == (first, last)
        if isinstance(operand, ex.Clamp) and clamped:
            # It moves no value across an inner edge, and leaves none outside.
            operand = operand.operand
        value = self.value(operand, kind)
        # The last edge belongs to the last bin, so that only the inner edges divide.
        dialect = self._dialect
        if kind is Kind.INTEGER:
            low, high = dialect.nearest_integer(ceil(first)), dialect.nearest_integer(floor(last))
            # A whole number is below an edge just where it is below the next whole number.
            cuts = [dialect.nearest_integer(ceil(e)) for e in inner]
        else:
            low, high = dialect.real(first), dialect.real(last)
            cuts = [dialect.real(e) for e in inner]
        within: exp.Expression = exp.Between(this=self._again(value), low=low, high=high)
        if clamped:
            within = is_not_null(self._again(value))
        return case((within, self._bisect(value, cuts, 0, len(cuts))))

    def _bisect(
        self, value: exp.Expression, cuts: list[exp.Expression], low: int, high: int
    ) -> exp.Expression:
        if low == high:
            return self._dialect.integer(low)
        middle = (low + high) // 2
        below = binary("<", self._again(value), cuts[middle])
        return case(
            (below, self._bisect(value, cuts, low, middle)),
            otherwise=self._bisect(value, cuts, middle + 1, high),
        )

    def date_part(self, node: ex.DatePart) -> exp.Expression:
        return self._dialect.date_part(node.part, self.value(node.operand))

    def date_truncate(self, node: ex.DateTruncate) -> exp.Expression:
        if node.part in ex.TIMES:
            return self._dialect.time_truncate(node.part, self.value(node.operand))
        return self._dialect.date_truncate(node.part, self.value(node.operand))

    def letters(self, node: ex.Lower | ex.Upper) -> exp.Expression:
        value = self.value(node.operand, Kind.TEXT)
        lower = isinstance(node, ex.Lower)
        return self._dialect.lower(value) if lower else self._dialect.upper(value)

    def substring(self, node: ex.Substring) -> exp.Expression:
        value = self.value(node.operand, Kind.TEXT)
        return self._dialect.substring(value, node.start, node.length)

    def call(self, node: ex.Call) -> exp.Expression:
        kinds = [self.facts(x).kind for x in node.operands]
        read = {"real": Kind.REAL, "text": Kind.TEXT}
        values = [
            self.value(x, read.get(takes))
            for x, takes in zip(node.operands, node.kinds, strict=True)
        ]
        before = sum(_nodes(value) for value in values)
        found = FORMS[node.function](self._dialect, values, kinds, *node.options)
        self._copied += max(_nodes(found) - before, 0)
        self._count(found, times=0)
        return found

    def _bound(self, value: Fraction, kind: Kind | None) -> exp.Expression:
        """A bound as a constant; one beyond the engine's type becomes the last that it holds."""
        whole = kind is Kind.INTEGER
        return self._dialect.nearest_integer(int(value)) if whole else self._dialect.real(value)


def _nodes(node: exp.Expression) -> int:
    return sum(1 for _ in node.walk())


def _scale(step: Fraction) -> tuple[str | None, float]:
    """How to divide by a step in doubles: the operator and its right side."""
    if step == 1:
        return None, 1.0
    # Times a whole number is rounded once; by its inverse, which is a rounded double itself, twice.
    if step.numerator == 1 and step.denominator <= EXACT:
        return "*", float(step.denominator)
    divisor = float(step)
    if not 0 < divisor < float("inf"):
        raise UnsupportedError("the step is beyond what a double can hold; use one nearer to 1")
    return "/", divisor


def unscaled(dialect: Dialect, value: exp.Expression, step: Fraction) -> exp.Expression:
    """A double in steps as the number that it stands for: the other way about than ``_scale``."""
    op, factor = _scale(step)
    if op is None:
        return value
    return dialect.real_arithmetic("/" if op == "*" else "*", value, dialect.real(factor))


_EMIT: dict[type[ex.Expression], Callable[..., exp.Expression]] = {
    ex.Column: Emitter.column,
    ex.Unreadable: Emitter.unreadable,
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
    ex.Call: Emitter.call,
}
