"""What is calculated from released values: ``100 * AVG(x)``, ``HAVING``, ``RANK() OVER (...)``.

All of it is post-processing. It reads what has been released with noise and nothing else, so it
costs nothing, whatever it is; the aggregates in it are measured once, however often they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dither.errors import QueryError
from dither.plan.aggregates import DIVISIBLE, AggregateFunction, Ratio, Released
from dither.plan.expressions import Expression
from dither.plan.schema import Kind, Value, kind_of_value, with_kind
from dither.plan.text import constant

__all__ = [
    "COMPARISONS",
    "FUNCTIONS",
    "RANKS",
    "Apply",
    "Constant",
    "Grouping",
    "Rank",
    "ReleasedKey",
    "apply",
    "kind_of",
]

Inner = Callable[[AggregateFunction], str]
Show = Callable[[Expression], str]

ARITHMETIC = ("+", "-", "*", "/")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
FUNCTIONS = ("ABS", "FLOOR", "CEIL", "SQRT", "LN", "LOG10", "LOG2", "EXP", "ROUND", "POWER")
"""Of one number; the last two have a constant beside it."""
CHOICES = ("LEAST", "GREATEST", "COALESCE", "NULLIF")
RANKS = ("RANK", "DENSE_RANK", "ROW_NUMBER")

MOST_DIGITS = 15
MOST_POWER = 64


@dataclass(frozen=True, slots=True)
class Constant(Released):
    """A public constant among released values."""

    value: Value | None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return with_kind(self.value) == with_kind(other.value)

    def __hash__(self) -> int:
        return hash(with_kind(self.value))

    def sql(self, inner: Inner, show: Show) -> str:
        """As SQL."""
        return constant(self.value)[0]


@dataclass(frozen=True, slots=True)
class ReleasedKey(Released):
    """The released value of a key."""

    expression: Expression

    def sql(self, inner: Inner, show: Show) -> str:
        """As SQL."""
        return show(self.expression)


@dataclass(frozen=True, slots=True)
class Grouping(Released):
    """``GROUPING(a, b)``: which of these keys are not in the set of a group.

    It is a whole number with a bit for each key, the last one's the lowest, that is 1 where the
    group's set of keys has not this one. What the sets are is public.
    """

    keys: tuple[Expression, ...]

    def sql(self, inner: Inner, show: Show) -> str:
        """As SQL."""
        return f"GROUPING({', '.join(map(show, self.keys))})"


@dataclass(frozen=True, slots=True)
class Apply(Released):
    """An operation on released values; to be made with `apply`.

    ``op`` is a sign of arithmetic or of a comparison, AND, OR, NOT, IS NULL, CASE (conditions and
    values in turn, then what stands behind ELSE), or the name of a function.
    """

    op: str
    operands: tuple[AggregateFunction, ...]

    @property
    def inside(self) -> tuple[AggregateFunction, ...]:
        """Its operands."""
        return self.operands

    def sql(self, inner: Inner, show: Show) -> str:
        """As SQL, with parentheses around whatever is not a name or a call."""

        def part(node: AggregateFunction) -> str:
            text = inner(node)
            return f"({text})" if isinstance(node, Ratio) or _is_open(node) else text

        parts = [part(x) for x in self.operands]
        if self.op == "CASE":
            texts = [inner(x) for x in self.operands]
            arms = "".join(
                f" WHEN {texts[i]} THEN {texts[i + 1]}" for i in range(0, len(texts) - 1, 2)
            )
            last = "" if self.operands[-1] == Constant(None) else f" ELSE {texts[-1]}"
            return f"CASE{arms}{last} END"
        if self.op == "NOT":
            return f"NOT {parts[0]}"
        if self.op == "IS NULL":
            return f"{parts[0]} IS NULL"
        if self.op in (*ARITHMETIC, *COMPARISONS, "AND", "OR"):
            return f" {self.op} ".join(parts)
        return f"{self.op}({', '.join(map(inner, self.operands))})"


def _is_open(node: AggregateFunction) -> bool:
    """Whether a text has a sign outside of all brackets."""
    if isinstance(node, Constant):
        return constant(node.value)[0].startswith("-") or "/" in constant(node.value)[0]
    signs = (*ARITHMETIC, *COMPARISONS, "AND", "OR", "NOT", "IS NULL")
    return isinstance(node, Apply) and node.op in signs


@dataclass(frozen=True, slots=True)
class Rank(Released):
    """``RANK() OVER (PARTITION BY keys ORDER BY released values)``, or another of its kind."""

    word: str
    order: tuple[tuple[AggregateFunction, bool], ...]
    by: tuple[ReleasedKey, ...] = ()

    def __post_init__(self) -> None:
        if not self.order:
            raise QueryError(f"{self.word}() OVER needs ORDER BY: what is it ranked by?")

    @property
    def inside(self) -> tuple[AggregateFunction, ...]:
        """What it ranks by."""
        return tuple(x for x, _ in self.order)

    def sql(self, inner: Inner, show: Show) -> str:
        """As SQL."""
        falls = ", ".join(f"{inner(x)}{' DESC' if down else ''}" for x, down in self.order)
        by = f"PARTITION BY {', '.join(map(inner, self.by))} " if self.by else ""
        return f"{self.word}() OVER ({by}ORDER BY {falls})"


def apply(op: str, *operands: AggregateFunction) -> AggregateFunction:
    """An operation on released values; the ratio of two counts or sums is a `Ratio`.

    Raises
    ------
    QueryError
        Where it has too few or too many operands, or a constant it needs is not one.
    """
    if op == "/" and all(isinstance(x, DIVISIBLE) for x in operands):
        return Ratio(*operands)
    if op in ("ROUND", "POWER") and len(operands) == 2:
        _check_constant(op, operands[1])
    if op == "NULLIF" and len(operands) == 2:
        left, right = operands
        return Apply("CASE", (Apply("=", (left, right)), Constant(None), left))
    most = {"ROUND": 2, "POWER": 2, "NOT": 1, "IS NULL": 1} | dict.fromkeys(FUNCTIONS[:-2], 1)
    least = 2 if op in (*ARITHMETIC, *COMPARISONS, "POWER") else 1
    if not least <= len(operands) <= most.get(op, len(operands)):
        raise QueryError(f"{op} has too few or too many operands")
    return Apply(op, operands)


def _check_constant(op: str, node: AggregateFunction) -> None:
    value = node.value if isinstance(node, Constant) else None
    number = value if isinstance(value, int | Fraction) and not isinstance(value, bool) else None
    most = MOST_DIGITS if op == "ROUND" else MOST_POWER
    fits = number is not None and -most <= number <= most
    if op == "ROUND":
        fits = fits and isinstance(number, int)
    if not fits:
        what = f"a whole number from -{MOST_DIGITS} to {MOST_DIGITS}"
        if op == "POWER":
            what = f"a constant number from -{MOST_POWER} to {MOST_POWER}"
        raise QueryError(f"the second operand of {op} must be {what}")


def kind_of(
    node: AggregateFunction,
    kind_of_key: Callable[[ReleasedKey], Kind],
    kind_of_leaf: Callable[[AggregateFunction], Kind],
) -> Kind | None:
    """The kind of a released value; ``None`` is NULL.

    Raises
    ------
    QueryError
        Where an operation is on values that it is not for.
    """

    def kind(x: AggregateFunction) -> Kind | None:
        return kind_of(x, kind_of_key, kind_of_leaf)

    match node:
        case Constant(value=value):
            return None if value is None else kind_of_value(value)
        case ReleasedKey():
            return kind_of_key(node)
        case Grouping():
            return Kind.INTEGER
        case Rank(order=order):
            for x, _ in order:
                _numeric(node.word, kind(x))
            return Kind.INTEGER
        case Apply(op=op, operands=operands):
            return _kind_applied(op, [kind(x) for x in operands])
    return kind_of_leaf(node)


def _kind_applied(op: str, kinds: list[Kind | None]) -> Kind | None:
    if op in ("AND", "OR", "NOT"):
        if any(k not in (Kind.BOOLEAN, None) for k in kinds):
            raise QueryError(f"{op} is of conditions, and one of these released values is not one")
        return Kind.BOOLEAN
    if op == "IS NULL":
        return Kind.BOOLEAN
    if op in COMPARISONS:
        _united(op, kinds)
        return Kind.BOOLEAN
    if op == "CASE":
        if any(k not in (Kind.BOOLEAN, None) for k in kinds[:-1:2]):
            raise QueryError("CASE: what stands behind WHEN is not a condition")
        return _united(op, [*kinds[1:-1:2], kinds[-1]])
    if op == "COALESCE":
        return _united(op, kinds)
    for k in kinds:
        _numeric(op, k)
    whole = op in ("FLOOR", "CEIL") or (op == "ROUND" and len(kinds) == 1)
    return Kind.INTEGER if whole else Kind.REAL


def _numeric(op: str, kind: Kind | None) -> None:
    if kind is not None and not kind.numeric:
        raise QueryError(f"{op} is of numbers, and a released value in it is a {kind.value}")


def _united(op: str, kinds: list[Kind | None]) -> Kind | None:
    found = {Kind.REAL if k.numeric else k for k in kinds if k is not None}
    if len(found) > 1:
        shown = " and a ".join(sorted(k.value for k in found))
        raise QueryError(f"{op}: a {shown} do not go together")
    if found == {Kind.REAL} and all(k in (Kind.INTEGER, None) for k in kinds):
        return Kind.INTEGER
    return next(iter(found), None)
