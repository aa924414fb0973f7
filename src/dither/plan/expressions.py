"""Expressions over the columns of one row: small frozen nodes, all of them total.

Every node is defined for every input, NULL included, and an engine must emit it in a form that
cannot raise. A node knows only its shape, and refuses a shape that its kind cannot have; what its
values can be is worked out in ``dither.plan.facts.values``, and for a ``Function`` by itself.

NULL follows SQL: an operation on NULL gives NULL, except where a node says otherwise. So does
arithmetic whose result no 64-bit integer holds, or is not a number (infinity minus infinity).

Equal nodes are the same SQL, types included: constants are equal where their kinds are so too.

An expression is of values as they are. Declared bounds move no value here: aggregates clamp what
they sum, to the bounds that ``dither.plan.facts.values`` derives from the declared ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from itertools import pairwise
from typing import ClassVar, TypeGuard

from dither.errors import QueryError, UnsupportedError, nearest
from dither.plan.facts.ranges import Facts, absolute, reshaped, whole
from dither.plan.functions import FUNCTIONS, Option, Signature
from dither.plan.schema import Value, with_kind

__all__ = [
    "PARTS",
    "TIMES",
    "TRUNCATIONS",
    "Absolute",
    "And",
    "Arithmetic",
    "Between",
    "Bin",
    "Call",
    "Case",
    "Ceil",
    "Clamp",
    "Coalesce",
    "Column",
    "Compare",
    "DatePart",
    "DateTruncate",
    "Expression",
    "Floor",
    "Function",
    "Greatest",
    "InList",
    "IsNull",
    "Least",
    "Literal",
    "Lower",
    "Not",
    "Or",
    "Substring",
    "Unreadable",
    "Upper",
    "columns",
    "walk",
]


PARTS: Mapping[str, tuple[int, int] | None] = {
    "year": None,
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "dayofweek": (0, 6),
    "isodow": (1, 7),
    "dayofyear": (1, 366),
    "isoyear": None,
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}
"""The date parts and their ranges. Sunday is 0 as ``dayofweek`` and 7 as ``isodow``; ``week`` and
``isoyear`` are those of ISO 8601. The range of years follows from the bounds."""

TIMES = ("hour", "minute", "second")
"""The parts that a timestamp has and a date has not, from the longest to the shortest."""

TRUNCATIONS = ("year", "quarter", "month", "week", "day", *TIMES)
"""What a date can be truncated to; weeks start on Monday. To a time, the result is a timestamp."""


@dataclass(frozen=True, slots=True)
class Expression:
    """The root of all expressions."""

    form: ClassVar[str]
    """What the node is called in the form that is hashed: a name once given never changes. Its
    fields stand there by their own names."""


@dataclass(frozen=True, slots=True)
class Function(Expression):
    """The root of functions of one operand that say themselves what follows of its values."""

    word: ClassVar[str]
    """Its name in SQL."""

    takes: ClassVar[str]
    """The kind of its operand: ``"number"`` or ``"text"``."""

    operand: Expression

    def facts(self, operand: Facts) -> Facts:
        """The public facts of the result, from those of the operand."""
        raise NotImplementedError(type(self).__name__)


def _check_operator(op: str, offered: Collection[str]) -> None:
    if op not in offered:
        raise UnsupportedError(f"operator {op!r} is not offered")


def _check_arguments(node: Expression, given: Collection[object]) -> None:
    if not given:
        raise QueryError(f"{type(node).__name__.upper()} needs at least one argument")


@dataclass(frozen=True, slots=True)
class Column(Expression):
    """A column of a table, as it is; NULL where values are declared and it has another."""

    form = "column"

    table: str
    name: str


@dataclass(frozen=True, slots=True)
class Unreadable(Expression):
    """Whether a table's column says something that is NULL once it is read as declared.

    True of a text that is no number where a number is declared, or of a value that is not on the
    declared list; false of what is read; NULL where the source has NULL, a blank where no text is
    wanted, or one of the texts that the policy reads as NULL.
    """

    form = "unreadable"

    column: Column


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """A public constant; ``None`` is NULL."""

    form = "literal"

    value: Value | None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        return with_kind(self.value) == with_kind(other.value)

    def __hash__(self) -> int:
        return hash(with_kind(self.value))


@dataclass(frozen=True, slots=True)
class Arithmetic(Expression):
    """``left op right`` with op one of ``+ - * / // %``.

    ``/`` divides reals; ``//`` and ``%`` are of integers, with the quotient rounded towards zero.
    A zero divisor gives NULL.
    """

    form = "arithmetic"

    op: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        _check_operator(self.op, ("+", "-", "*", "/", "//", "%"))


@dataclass(frozen=True, slots=True)
class Compare(Expression):
    """``left op right`` with op one of ``= <> < <= > >=``."""

    form = "compare"

    op: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        _check_operator(self.op, ("=", "<>", "<", "<=", ">", ">="))


@dataclass(frozen=True, slots=True)
class Between(Expression):
    """``low <= operand <= high``."""

    form = "between"

    operand: Expression
    low: Expression
    high: Expression


@dataclass(frozen=True, slots=True)
class InList(Expression):
    """Whether the operand is one of the listed public values."""

    form = "in"

    operand: Expression
    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise QueryError("IN needs at least one value")

    def __eq__(self, other: object) -> bool:
        return (
            self._compared() == other._compared() if isinstance(other, InList) else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(self._compared())

    def _compared(self) -> tuple[object, ...]:
        return self.operand, *map(with_kind, self.values)


@dataclass(frozen=True, slots=True)
class IsNull(Expression):
    """Whether the operand is NULL; never NULL itself."""

    form = "is null"

    operand: Expression


@dataclass(frozen=True, slots=True)
class And(Expression):
    """Conjunction in three-valued logic."""

    form = "and"

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or(Expression):
    """Disjunction in three-valued logic."""

    form = "or"

    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not(Expression):
    """Negation in three-valued logic."""

    form = "not"

    operand: Expression


@dataclass(frozen=True, slots=True)
class Case(Expression):
    """The value of the first branch whose condition is true, else ``otherwise``."""

    form = "case"

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression

    def __post_init__(self) -> None:
        if not self.branches:
            raise QueryError("CASE needs at least one WHEN")


@dataclass(frozen=True, slots=True)
class Coalesce(Expression):
    """The first operand that is not NULL."""

    form = "coalesce"

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check_arguments(self, self.operands)


@dataclass(frozen=True, slots=True)
class Absolute(Function):
    """The absolute value."""

    form = "absolute"
    word = "ABS"
    takes = "number"

    def facts(self, operand: Facts) -> Facts:
        """Between 0 and the larger of the ends."""
        return absolute(operand)


@dataclass(frozen=True, slots=True)
class Floor(Function):
    """The largest integer that is not larger."""

    form = "floor"
    word = "FLOOR"
    takes = "number"

    def facts(self, operand: Facts) -> Facts:
        """An integer between the ends, rounded down."""
        return whole(operand, up=False)


@dataclass(frozen=True, slots=True)
class Ceil(Function):
    """The smallest integer that is not smaller."""

    form = "ceil"
    word = "CEIL"
    takes = "number"

    def facts(self, operand: Facts) -> Facts:
        """An integer between the ends, rounded up."""
        return whole(operand, up=True)


@dataclass(frozen=True, slots=True)
class Least(Expression):
    """The smallest of the operands that are not NULL; NULL where all are."""

    form = "least"

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check_arguments(self, self.operands)


@dataclass(frozen=True, slots=True)
class Greatest(Expression):
    """The largest of the operands that are not NULL; NULL where all are."""

    form = "greatest"

    operands: tuple[Expression, ...]

    def __post_init__(self) -> None:
        _check_arguments(self, self.operands)


@dataclass(frozen=True, slots=True)
class Clamp(Expression):
    """The operand moved to the nearest of ``lower`` and ``upper`` where it lies outside."""

    form = "clamp"

    operand: Expression
    lower: Fraction
    upper: Fraction

    def __post_init__(self) -> None:
        if self.lower > self.upper:
            raise QueryError("the lower bound of CLAMP is above the upper one")


@dataclass(frozen=True, slots=True)
class Bin(Expression):
    """The number i of the bin ``edges[i] <= operand < edges[i+1]``, the last one closed.

    NULL where the operand lies in none.
    """

    form = "bin"

    operand: Expression
    edges: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        if len(self.edges) < 2 or any(a >= b for a, b in pairwise(self.edges)):
            raise QueryError("BIN needs at least two edges, which increase")


@dataclass(frozen=True, slots=True)
class DatePart(Expression):
    """A part of a date or timestamp (in UTC) as an integer; ``part`` is a key of ``PARTS``."""

    form = "date part"

    part: str
    operand: Expression

    def __post_init__(self) -> None:
        if self.part not in PARTS:
            raise QueryError(f"unknown date part {self.part!r}" + nearest(self.part, PARTS))


@dataclass(frozen=True, slots=True)
class DateTruncate(Expression):
    """The first day of the operand's ``part`` (year, quarter, month, week or day), a date; of its
    hour, minute or second the first moment, a timestamp."""

    form = "date truncate"

    part: str
    operand: Expression

    def __post_init__(self) -> None:
        if self.part not in TRUNCATIONS:
            raise QueryError(f"unknown truncation {self.part!r}" + nearest(self.part, TRUNCATIONS))


@dataclass(frozen=True, slots=True)
class Lower(Function):
    """Lower case."""

    form = "lower case"
    word = "LOWER"
    takes = "text"

    def facts(self, operand: Facts) -> Facts:
        """A short list of values stays one."""
        return reshaped(operand, str.lower)


@dataclass(frozen=True, slots=True)
class Upper(Function):
    """Upper case."""

    form = "upper case"
    word = "UPPER"
    takes = "text"

    def facts(self, operand: Facts) -> Facts:
        """A short list of values stays one."""
        return reshaped(operand, str.upper)


@dataclass(frozen=True, slots=True)
class Substring(Expression):
    """``length`` characters from position ``start`` (1 is the first)."""

    form = "substring"

    operand: Expression
    start: int
    length: int

    def __post_init__(self) -> None:
        if self.start < 1 or self.length < 0:
            raise QueryError("SUBSTRING starts at 1 or later and has a whole length of 0 or more")


@dataclass(frozen=True, slots=True)
class Call(Expression):
    """A function of ``dither.plan.functions``, of operands and of constants that belong to it."""

    form = "call"

    function: str
    operands: tuple[Expression, ...]
    options: tuple[Option, ...] = ()

    def __post_init__(self) -> None:
        signature = FUNCTIONS.get(self.function)
        if signature is None:
            raise QueryError(
                f"unknown function {self.function!r}" + nearest(self.function, FUNCTIONS)
            )
        if signature.kinds(len(self.operands)) is None:
            raise QueryError(f"{self.function.upper()} takes {len(signature.takes)} arguments")
        signature.check(self.function, self.options)

    @property
    def signature(self) -> Signature:
        """What the function declares of itself."""
        return FUNCTIONS[self.function]

    @property
    def kinds(self) -> tuple[str, ...]:
        """What each operand is taken as."""
        return self.signature.kinds(len(self.operands)) or ()


def _children(node: Expression) -> Iterator[Expression]:
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Expression):
            yield value
        elif isinstance(value, tuple):
            for part in value:
                yield from (p for p in (part if isinstance(part, tuple) else (part,)) if _is(p))


def _is(part: object) -> TypeGuard[Expression]:
    return isinstance(part, Expression)


def walk(node: Expression) -> Iterator[Expression]:
    """Every node of the tree, the root last."""
    for child in _children(node):
        yield from walk(child)
    yield node


def columns(node: Expression) -> tuple[Column, ...]:
    """The columns that an expression reads, each once, in order of appearance."""
    return tuple(dict.fromkeys(n for n in walk(node) if isinstance(n, Column)))
