"""Which values an expression can have, from the public facts alone.

``infer`` walks an expression and gives its kind, its bounds by interval arithmetic, its list of
values where that is short, the lattice its exact values lie on, and whether it can be NULL. It is
also the type checker: what makes no sense is refused here, by name.

Bounds serve twice. They rule out overflow before anything runs: integer arithmetic is admitted only
where every intermediate result stays within ±2⁶². And they give the sensitivity of sums, which the
engine enforces once more by an integer clamp, so that a wrong bound here costs accuracy and never
privacy.

The module is long because every kind of expression has its rule here, and the rules are read side
by side.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import floor, gcd, lcm

from dither.errors import BoundsError, QueryError, UnsupportedError, nearest
from dither.plan import expressions as ex
from dither.plan.kinds import Kind, Value, kind_of_value
from dither.plan.relations import Filter, PublicJoin, Relation, Scan, UnitJoin
from dither.plan.schema import ColumnFacts, Schema, Table
from dither.plan.text import show

__all__ = ["PARTS", "TRUNCATIONS", "Facts", "Scope", "infer", "listed_values"]

Bound = Fraction | dt.date | dt.datetime

PARTS: Mapping[str, tuple[int, int] | None] = {
    "year": None,
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofweek": (0, 6),
    "hour": (0, 23),
    "minute": (0, 59),
}
"""The date parts and their ranges; 0 is Sunday. The range of years follows from the bounds."""

TRUNCATIONS = ("year", "quarter", "month", "week", "day")
"""What a date can be truncated to; weeks start on Monday."""

LARGEST_INTEGER = 2**62
LARGEST_REAL = Fraction(10) ** 300
LONGEST_LIST = 4096
"""Up to so many keys follow from bounds without being written down."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is publicly known of an expression's values.

    ``kind`` is ``None`` for the literal NULL. ``lower`` and ``upper`` are exact rationals, or dates
    for temporal kinds, and ``None`` where unknown. ``domain`` lists all values. ``step`` is the
    lattice of the exact values of a number: 1 for integers, ``None`` where there is none.
    """

    kind: Kind | None
    lower: Bound | None = None
    upper: Bound | None = None
    domain: tuple[Value, ...] | None = None
    step: Fraction | None = None
    nullable: bool = False

    @property
    def range(self) -> tuple[Fraction, Fraction] | None:
        """The bounds of a number, where both are known."""
        if isinstance(self.lower, Fraction) and isinstance(self.upper, Fraction):
            return self.lower, self.upper
        return None


class Scope:
    """The columns that the expressions over a relation may name."""

    def __init__(self, tables: Mapping[str, tuple[Table, bool]]) -> None:
        self._tables = dict(tables)

    @classmethod
    def of(cls, relation: Relation, schema: Schema) -> Scope:
        """The scope of a relation: its tables by alias, and whether a left join pads them."""
        return cls(_tables(relation, schema))

    @property
    def tables(self) -> Mapping[str, Table]:
        """The tables in scope, by alias."""
        return {alias: table for alias, (table, _) in self._tables.items()}

    def column(self, column: ex.Column) -> ColumnFacts:
        """The public facts of a column; NULL is possible in one that a left join pads."""
        if column.table not in self._tables:
            raise QueryError(
                f"unknown table {column.table!r}" + nearest(column.table, self._tables)
            )
        table, padded = self._tables[column.table]
        facts = table.column(column.name)
        return replace(facts, nullable=True) if padded else facts


def _tables(relation: Relation, schema: Schema) -> dict[str, tuple[Table, bool]]:
    match relation:
        case Scan(table=table, alias=alias):
            return {alias: (schema.table(table), False)}
        case Filter(source=source):
            return _tables(source, schema)
        case PublicJoin(source=source, public=public, keep_all=keep_all):
            return _tables(source, schema) | {public.alias: (schema.table(public.table), keep_all)}
        case UnitJoin(left=left, right=right):
            return _tables(left, schema) | {right.alias: (schema.table(right.table), False)}
    raise TypeError(type(relation).__name__)


def listed_values(facts: Facts) -> tuple[Value, ...] | None:
    """All values, where the public facts list them or bound them to a short range.

    Examples
    --------
    >>> listed_values(Facts(Kind.INTEGER, Fraction(1), Fraction(3)))
    (1, 2, 3)
    """
    if facts.domain is not None:
        return facts.domain
    if facts.kind is Kind.BOOLEAN:
        return (False, True)
    if facts.kind is Kind.INTEGER and facts.range is not None:
        low, high = facts.range
        if high - low < LONGEST_LIST:
            return tuple(range(int(low), int(high) + 1))
    if facts.kind is Kind.DATE and facts.lower is not None and facts.upper is not None:
        assert isinstance(facts.lower, dt.date)
        assert isinstance(facts.upper, dt.date)
        days = (facts.upper - facts.lower).days
        if days < LONGEST_LIST:
            return tuple(facts.lower + dt.timedelta(days=i) for i in range(days + 1))
    return None


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
        For a column that does not exist.
    QueryError
        Where the kinds do not fit, or a literal is none of a column's declared values.
    BoundsError
        Where arithmetic on a number without bounds would leave an overflow possible.

    Examples
    --------
    >>> facts = infer(ex.Arithmetic("*", ex.Literal(2), ex.Literal(Fraction(1, 4))), Scope({}))
    >>> facts.lower, facts.step
    (Fraction(1, 2), Fraction(1, 4))
    """
    rule = _RULES.get(type(node))
    if rule is None:
        raise UnsupportedError(f"{type(node).__name__} is not an expression of this version")
    return rule(node, scope)


# --- leaves -----------------------------------------------------------------------------------


def _column(node: ex.Column, scope: Scope) -> Facts:
    facts = scope.column(node)
    lower, upper = facts.lower, facts.upper
    if facts.values is not None and facts.kind.numeric:
        numbers = [Fraction(v) for v in facts.values if isinstance(v, int | Fraction)]
        lower, upper = min(numbers), max(numbers)
    step = Fraction(1) if facts.kind is Kind.INTEGER else facts.step
    return Facts(facts.kind, lower, upper, facts.values, step, facts.nullable)


def _literal(node: ex.Literal, _: Scope) -> Facts:
    value = node.value
    if value is None:
        return Facts(None, nullable=True)
    kind = kind_of_value(value)
    if isinstance(value, int | Fraction) and kind.numeric:
        exact = Fraction(value)
        step = Fraction(1) if kind is Kind.INTEGER else abs(exact)
        return _checked(Facts(kind, exact, exact, (value,), step), node)
    if isinstance(value, dt.date):
        return Facts(kind, value, value, (value,))
    return Facts(kind, domain=(value,))


# --- arithmetic -------------------------------------------------------------------------------


def _arithmetic(node: ex.Arithmetic, scope: Scope) -> Facts:
    left, right = (_number(x, scope, node) for x in (node.left, node.right))
    (a, b), (c, d) = (_bounded(f, x) for f, x in ((left, node.left), (right, node.right)))
    integers = left.kind is right.kind is Kind.INTEGER
    nullable = left.nullable or right.nullable
    kind = Kind.INTEGER if integers else Kind.REAL
    match node.op:
        case "+":
            ends, step = (a + c, b + d), _common(left.step, right.step)
        case "-":
            ends, step = (a - d, b - c), _common(left.step, right.step)
        case "*":
            products = (a * c, a * d, b * c, b * d)
            ends = (min(products), max(products))
            step = left.step * right.step if left.step and right.step else None
        case "/":
            return _quotient(node, left, right, (a, b), (c, d))
        case "//" | "%" if integers:
            ends = _whole_quotient(a, b, c, d) if node.op == "//" else _remainder(a, b, c, d)
            step, nullable = Fraction(1), nullable or c <= 0 <= d
        case "//" | "%":
            raise QueryError(f"{show(node)}: {node.op} is of two integers; use FLOOR(x / y)")
        case _:
            raise UnsupportedError(f"operator {node.op!r} is not offered")
    return _checked(Facts(kind, *ends, None, step, nullable), node)


def _quotient(
    node: ex.Arithmetic,
    left: Facts,
    right: Facts,
    top: tuple[Fraction, Fraction],
    bottom: tuple[Fraction, Fraction],
) -> Facts:
    low, high = bottom
    nullable = left.nullable or right.nullable or low <= 0 <= high
    divisors = [d for d in (low, high) if d != 0]
    if low <= 0 <= high:
        if right.kind is not Kind.INTEGER:
            return Facts(Kind.REAL, nullable=nullable)
        # A whole divisor that is not zero is at least 1 in size.
        divisors += [Fraction(s) for s in (-1, 1) if low <= s <= high]
    if not divisors:
        return Facts(Kind.REAL, Fraction(0), Fraction(0), nullable=True)
    ends = [t / d for t in top for d in divisors]
    step = left.step / abs(low) if left.step and low == high else None
    return _checked(Facts(Kind.REAL, min(ends), max(ends), None, step, nullable), node)


def _whole_quotient(
    a: Fraction, b: Fraction, c: Fraction, d: Fraction
) -> tuple[Fraction, Fraction]:
    divisors = [x for x in (c, d) if x != 0] + [Fraction(s) for s in (-1, 1) if c <= s <= d]
    ends = [Fraction(int(t / x)) for t in (a, b) for x in divisors]
    return (min(ends), max(ends)) if ends else (Fraction(0), Fraction(0))


def _remainder(a: Fraction, b: Fraction, c: Fraction, d: Fraction) -> tuple[Fraction, Fraction]:
    size = max(abs(c), abs(d), Fraction(1)) - 1
    return max(-size, min(a, Fraction(0))), min(size, max(b, Fraction(0)))


def _absolute(node: ex.Absolute, scope: Scope) -> Facts:
    facts = _number(node.operand, scope, node)
    low, high = _bounded(facts, node.operand)
    least = Fraction(0) if low <= 0 <= high else min(abs(low), abs(high))
    return replace(facts, lower=least, upper=max(abs(low), abs(high)), domain=None)


def _whole(node: ex.Floor | ex.Ceil, scope: Scope) -> Facts:
    facts = _number(node.operand, scope, node)
    if facts.kind is Kind.INTEGER:
        return facts
    low, high = _bounded(facts, node.operand)
    turn: Callable[[Fraction], int] = floor if isinstance(node, ex.Floor) else lambda x: -floor(-x)
    ends = Fraction(turn(low)), Fraction(turn(high))
    return _checked(Facts(Kind.INTEGER, *ends, None, Fraction(1), facts.nullable), node)


def _extreme(node: ex.Least | ex.Greatest, scope: Scope) -> Facts:
    parts = [_number(x, scope, node) for x in node.operands]
    if not parts:
        raise QueryError(f"{show(node)}: needs at least one argument")
    kind = _unite_kinds([p.kind for p in parts], node)
    sign = 1 if isinstance(node, ex.Least) else -1
    # Read with the sign turned, GREATEST is LEAST: far is the side that any operand may reach,
    # near the side where an operand that is never NULL holds the result.
    far = [_end(p, -sign) for p in parts]
    near = [_end(p, sign) for p in parts]
    held = [e for p, e in zip(parts, near, strict=True) if e is not None and not p.nullable]
    out = _least(far, sign)
    back = _least(held, sign) if held else _least(near, -sign)
    lower, upper = (out, back) if sign > 0 else (back, out)
    step = _common(*(p.step for p in parts))
    return Facts(kind, lower, upper, None, step, all(p.nullable for p in parts))


def _end(facts: Facts, sign: int) -> Fraction | None:
    end = facts.upper if sign > 0 else facts.lower
    return end if isinstance(end, Fraction) else None


def _least(ends: list[Fraction | None] | list[Fraction], sign: int) -> Fraction | None:
    known = [e for e in ends if e is not None]
    if len(known) < len(ends):
        return None
    return min(known) if sign > 0 else max(known)


def _clamp(node: ex.Clamp, scope: Scope) -> Facts:
    facts = _number(node.operand, scope, node)
    if node.lower > node.upper:
        raise BoundsError(f"{show(node)}: the lower bound is above the upper one")
    low, high = node.lower, node.upper
    if facts.kind is Kind.INTEGER and (low.denominator != 1 or high.denominator != 1):
        raise BoundsError(f"{show(node)}: an integer is clamped to whole bounds")
    if facts.range is not None:
        low = min(max(low, facts.range[0]), high)
        high = max(min(high, facts.range[1]), low)
    return _checked(Facts(facts.kind, low, high, None, facts.step, facts.nullable), node)


def _bin(node: ex.Bin, scope: Scope) -> Facts:
    facts = _number(node.operand, scope, node)
    if len(node.edges) < 2 or any(a >= b for a, b in zip(node.edges, node.edges[1:], strict=False)):
        raise QueryError(f"{show(node)}: needs at least two edges, each above the one before")
    last = Fraction(len(node.edges) - 2)
    return Facts(Kind.INTEGER, Fraction(0), last, None, Fraction(1), facts.nullable)


# --- truth ------------------------------------------------------------------------------------


def _compare(node: ex.Compare, scope: Scope) -> Facts:
    if node.op not in ("=", "<>", "<", "<=", ">", ">="):
        raise UnsupportedError(f"operator {node.op!r} is not offered")
    return _comparison(node, (node.left, node.right), scope, listed=node.op in ("=", "<>"))


def _between(node: ex.Between, scope: Scope) -> Facts:
    return _comparison(node, (node.operand, node.low, node.high), scope, listed=False)


def _in_list(node: ex.InList, scope: Scope) -> Facts:
    if not node.values:
        raise QueryError(f"{show(node)}: needs at least one value")
    literals = tuple(ex.Literal(v) for v in node.values)
    return _comparison(node, (node.operand, *literals), scope, listed=True)


def _comparison(
    node: ex.Expression, operands: tuple[ex.Expression, ...], scope: Scope, *, listed: bool
) -> Facts:
    parts = [infer(x, scope) for x in operands]
    _unite_kinds([p.kind for p in parts], node)
    if listed:
        for operand, facts in zip(operands, parts, strict=True):
            if isinstance(operand, ex.Column) and facts.domain is not None:
                _among_declared(operand, facts.domain, operands, node)
    return Facts(Kind.BOOLEAN, nullable=any(p.nullable for p in parts))


def _among_declared(
    column: ex.Column,
    domain: tuple[Value, ...],
    operands: tuple[ex.Expression, ...],
    node: ex.Expression,
) -> None:
    for operand in operands:
        if not isinstance(operand, ex.Literal) or operand.value is None:
            continue
        if operand.value not in domain:
            hint = nearest(str(operand.value), [str(v) for v in domain])
            raise QueryError(
                f"{show(node)}: {show(operand)} is not a declared value of {column.name!r}{hint}"
            )


def _logic(node: ex.And | ex.Or, scope: Scope) -> Facts:
    parts = [_truth(x, scope, node) for x in node.operands]
    return Facts(Kind.BOOLEAN, nullable=any(p.nullable for p in parts))


def _not(node: ex.Not, scope: Scope) -> Facts:
    return Facts(Kind.BOOLEAN, nullable=_truth(node.operand, scope, node).nullable)


def _is_null(node: ex.IsNull, scope: Scope) -> Facts:
    infer(node.operand, scope)
    return Facts(Kind.BOOLEAN)


def _truth(operand: ex.Expression, scope: Scope, node: ex.Expression) -> Facts:
    facts = infer(operand, scope)
    if facts.kind not in (Kind.BOOLEAN, None):
        raise QueryError(f"{show(node)}: {show(operand)} is not a condition")
    return facts


# --- choices ----------------------------------------------------------------------------------


def _case(node: ex.Case, scope: Scope) -> Facts:
    for condition, _ in node.branches:
        _truth(condition, scope, node)
    return _union(
        [infer(v, scope) for _, v in node.branches] + [infer(node.otherwise, scope)], node
    )


def _coalesce(node: ex.Coalesce, scope: Scope) -> Facts:
    parts = [infer(x, scope) for x in node.operands]
    if not parts:
        raise QueryError(f"{show(node)}: needs at least one argument")
    return replace(_union(parts, node), nullable=all(p.nullable for p in parts))


def _union(parts: list[Facts], node: ex.Expression) -> Facts:
    kind = _unite_kinds([p.kind for p in parts], node)
    valued = [p for p in parts if p.kind is not None]
    nullable = any(p.nullable for p in parts)
    if kind is None:
        return Facts(None, nullable=True)
    domain: tuple[Value, ...] | None = None
    if all(p.domain is not None for p in valued):
        domain = tuple(dict.fromkeys(_as(v, kind) for p in valued for v in p.domain or ()))
    lower = upper = None
    if kind.numeric and all(p.range is not None for p in valued):
        ranges = [p.range for p in valued if p.range is not None]
        lower, upper = min(r[0] for r in ranges), max(r[1] for r in ranges)
    step = _common(*(p.step for p in valued)) if kind.numeric else None
    return Facts(kind, lower, upper, domain, step, nullable)


# --- dates and text ---------------------------------------------------------------------------


def _date_part(node: ex.DatePart, scope: Scope) -> Facts:
    facts = _temporal(node.operand, scope, node)
    if node.part not in PARTS:
        raise QueryError(f"{show(node)}: unknown date part" + nearest(node.part, PARTS))
    if node.part in ("hour", "minute") and facts.kind is Kind.DATE:
        raise QueryError(f"{show(node)}: a date has no {node.part}")
    ends = PARTS[node.part]
    if ends is None and isinstance(facts.lower, dt.date) and isinstance(facts.upper, dt.date):
        ends = facts.lower.year, facts.upper.year
    if ends is None:
        return Facts(Kind.INTEGER, step=Fraction(1), nullable=True)
    return Facts(
        Kind.INTEGER, Fraction(ends[0]), Fraction(ends[1]), None, Fraction(1), facts.nullable
    )


def _date_truncate(node: ex.DateTruncate, scope: Scope) -> Facts:
    facts = _temporal(node.operand, scope, node)
    if node.part not in TRUNCATIONS:
        raise QueryError(f"{show(node)}: unknown truncation" + nearest(node.part, TRUNCATIONS))
    if not isinstance(facts.lower, dt.date) or not isinstance(facts.upper, dt.date):
        return Facts(Kind.DATE, nullable=True)
    first, last = _truncated(facts.lower, node.part), _truncated(facts.upper, node.part)
    days, day = [first], first
    while day < last and len(days) <= LONGEST_LIST:
        # 400 days reach the next year, 32 the next month, 93 the next quarter, and so on.
        reach = {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}[node.part]
        day = _truncated(day + dt.timedelta(days=reach), node.part)
        days.append(day)
    domain = tuple(days) if day >= last else None
    return Facts(Kind.DATE, first, last, domain, None, facts.nullable)


def _truncated(value: dt.date, part: str) -> dt.date:
    day = value.date() if isinstance(value, dt.datetime) else value
    match part:
        case "year":
            return day.replace(month=1, day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            return day.replace(day=1)
        case "week":
            return day - dt.timedelta(days=day.weekday())
    return day


def _letters(node: ex.Lower | ex.Upper | ex.Substring, scope: Scope) -> Facts:
    facts = infer(node.operand, scope)
    if facts.kind not in (Kind.TEXT, None):
        raise QueryError(f"{show(node)}: {show(node.operand)} is not text")
    if isinstance(node, ex.Substring) and (node.start < 1 or node.length < 0):
        raise QueryError(f"{show(node)}: positions start at 1 and a length is at least 0")
    domain: tuple[Value, ...] | None = None
    # Only ASCII is sure to change case alike here and in every engine.
    if facts.domain is not None and all(str(v).isascii() for v in facts.domain):
        domain = tuple(dict.fromkeys(_reshape(node, str(v)) for v in facts.domain))
    return Facts(Kind.TEXT, domain=domain, nullable=facts.nullable)


def _reshape(node: ex.Lower | ex.Upper | ex.Substring, text: str) -> str:
    match node:
        case ex.Lower():
            return text.lower()
        case ex.Upper():
            return text.upper()
    return text[node.start - 1 : node.start - 1 + node.length]


# --- shared -----------------------------------------------------------------------------------


def _number(operand: ex.Expression, scope: Scope, node: ex.Expression) -> Facts:
    facts = infer(operand, scope)
    if facts.kind is None or not facts.kind.numeric:
        raise QueryError(f"{show(node)}: {show(operand)} is not a number")
    return facts


def _temporal(operand: ex.Expression, scope: Scope, node: ex.Expression) -> Facts:
    facts = infer(operand, scope)
    if facts.kind is None or not facts.kind.temporal:
        raise QueryError(f"{show(node)}: {show(operand)} is not a date or a timestamp")
    return facts


def _bounded(facts: Facts, operand: ex.Expression) -> tuple[Fraction, Fraction]:
    if facts.range is None:
        raise BoundsError(
            f"the bounds of {show(operand)} are not known; declare bounds = [lower, upper] in the "
            f"policy, or write CLAMP({show(operand)}, lower, upper)"
        )
    return facts.range


def _checked(facts: Facts, node: ex.Expression) -> Facts:
    low, high = facts.range or (Fraction(0), Fraction(0))
    size = max(abs(low), abs(high))
    limit = Fraction(LARGEST_INTEGER) if facts.kind is Kind.INTEGER else LARGEST_REAL
    if size > limit:
        shown = "2^62" if facts.kind is Kind.INTEGER else "1e300"
        raise BoundsError(
            f"{show(node)} can reach beyond {shown}, so an overflow cannot be ruled out; "
            f"declare narrower bounds, or CLAMP its parts"
        )
    return facts


def _common(*steps: Fraction | None) -> Fraction | None:
    exact = [s for s in steps if s]
    if len(exact) != len(steps) or not exact:
        return None
    bottom = lcm(*(s.denominator for s in exact))
    return Fraction(gcd(*(s.numerator * (bottom // s.denominator) for s in exact)), bottom)


def _unite_kinds(kinds: list[Kind | None], node: ex.Expression) -> Kind | None:
    found = {k for k in kinds if k is not None}
    if len(found) > 1 and all(k.numeric for k in found):
        return Kind.REAL
    if len(found) > 1 and all(k.temporal for k in found):
        return Kind.TIMESTAMP
    if len(found) > 1:
        names = " and ".join(sorted(k.value for k in found))
        raise QueryError(f"{show(node)}: mixes {names}")
    return next(iter(found), None)


def _as(value: Value, kind: Kind) -> Value:
    return Fraction(value) if kind is Kind.REAL and isinstance(value, int) else value


_RULES: dict[type[ex.Expression], Callable[..., Facts]] = {
    ex.Column: _column,
    ex.Literal: _literal,
    ex.Arithmetic: _arithmetic,
    ex.Absolute: _absolute,
    ex.Floor: _whole,
    ex.Ceil: _whole,
    ex.Least: _extreme,
    ex.Greatest: _extreme,
    ex.Clamp: _clamp,
    ex.Bin: _bin,
    ex.Compare: _compare,
    ex.Between: _between,
    ex.InList: _in_list,
    ex.And: _logic,
    ex.Or: _logic,
    ex.Not: _not,
    ex.IsNull: _is_null,
    ex.Case: _case,
    ex.Coalesce: _coalesce,
    ex.DatePart: _date_part,
    ex.DateTruncate: _date_truncate,
    ex.Lower: _letters,
    ex.Upper: _letters,
    ex.Substring: _letters,
}
