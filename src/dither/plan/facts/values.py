"""Which values an expression can have, from the public facts alone.

``infer`` walks an expression and gives its kind, its bounds by interval arithmetic, its list of
values where that is short, the lattice its exact values lie on, and whether it can be NULL. It is
also the type checker: what makes no sense is refused here, by name.

All of it holds for values that keep to what is declared of them, and none of it is believed of any
value. Bounds give the sensitivity of sums, which the engine makes true by an integer clamp of every
value that enters a sum. So a fact that is false of the data costs accuracy and never privacy. An
expression without bounds can be filtered and grouped by; only an aggregate needs bounds, and
``why_unbounded`` says which part has none.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from dither.errors import BoundsError, QueryError, UnknownNameError, UnsupportedError, nearest
from dither.plan import expressions as ex
from dither.plan.expressions import Column
from dither.plan.facts.periods import part_facts, truncated_facts
from dither.plan.facts.ranges import (
    LARGEST_INTEGER,
    LARGEST_REAL,
    LARGEST_WORD,
    LONGEST_LIST,
    SMALLEST_WORD,
    Facts,
    arithmetic,
    clamped,
    common_step,
    extreme,
    listed_values,
    reshaped,
    within_limits,
)
from dither.plan.functions import mapped
from dither.plan.schema import ColumnFacts, Kind, Table, Value, kind_of_value
from dither.plan.text import Words, show

__all__ = [
    "LARGEST_INTEGER",
    "LARGEST_REAL",
    "LONGEST_LIST",
    "Facts",
    "Scope",
    "facts_of_choice",
    "facts_of_column",
    "infer",
    "is_assumed",
    "listed_values",
    "rests_on_assumed",
    "why_unbounded",
]


class Scope:
    """The columns that an expression may name, each declared in a table.

    ``dither.plan.facts.scopes.scope_of`` makes the scope of a relation, in which queries in the
    FROM have columns too.

    Parameters
    ----------
    tables : mapping of str to (Table, bool)
        By alias: the table, and whether a left join pads it with NULL.
    words : callable, optional
        How expressions were written, for messages.
    """

    def __init__(
        self, tables: Mapping[str, tuple[Table, bool]], words: Words | None = None
    ) -> None:
        self._tables = dict(tables)
        self._words = words

    def column(self, column: Column) -> ColumnFacts:
        """The public facts of a column; NULL is possible in one that a left join pads.

        Raises
        ------
        UnknownNameError
            Where there is no such table or column; the nearest is offered.
        """
        if column.table not in self._tables:
            raise UnknownNameError(
                f"unknown table {column.table!r}" + nearest(column.table, self._tables)
            )
        table, padded = self._tables[column.table]
        facts = table.column(column.name)
        return replace(facts, nullable=True) if padded else facts

    def learn(self, alias: str, name: str, kind: str = "bounds") -> str:
        """How bounds or keys of a column can be learned, for a message; nothing if it is public."""
        table = self._tables[alias][0]
        if not table.private:
            return ""
        if kind == "bounds" and name in table.learned:
            return 'write bounds = "learned" there to use those that were learned already, '
        of_keys = ', kind="keys"' if kind == "keys" else ""
        asked = f"session.learn({table.name!r}, {name!r}{of_keys}, epsilon=0.1)"
        return f"learn them for epsilon 0.1 with {asked}, "

    def is_unit(self, column: Column) -> bool:
        """Whether a column of a table says who is protected."""
        return column.table in self._tables and self._tables[column.table][0].unit == column.name

    def is_of_a_table(self, column: Column) -> bool:
        """Whether a column is read as it is declared: what is not listed of it is NULL."""
        return True

    def declared(self, column: Column) -> str:
        """The name of a column in the policy."""
        return column.name

    def why_unbounded(self, column: Column) -> str | None:
        """Why a column has no bounds, where no declaration would give it some."""
        return None

    def show(self, node: ex.Expression) -> str:
        """An expression for a message: as it was written, where that is known."""
        written = None if self._words is None else self._words(node)
        return show(node) if written is None else written


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
        Where the kinds do not fit, or a literal is not one of a column's declared values.
    BoundsError
        For a constant, or the bounds of ``CLAMP``, beyond what numbers may be.

    Examples
    --------
    >>> from fractions import Fraction
    >>> facts = infer(ex.Arithmetic("*", ex.Literal(2), ex.Literal(Fraction(1, 4))), Scope({}))
    >>> facts.lower, facts.step
    (Fraction(1, 2), Fraction(1, 2))
    """
    match node:
        case ex.Column():
            return facts_of_column(scope.column(node))
        case ex.Literal():
            return _literal(node, scope)
        case ex.Unreadable(column=column):
            return _unreadable(column, scope)
        case ex.Compare(op=op, left=left, right=right):
            return _comparison(node, (left, right), scope, listed=op in ("=", "<>"))
        case ex.Between(operand=x, low=low, high=high):
            return _comparison(node, (x, low, high), scope, listed=False)
        case ex.InList(operand=x, values=values):
            return _comparison(node, (x, *map(ex.Literal, values)), scope, listed=True)
        case ex.And(operands=xs) | ex.Or(operands=xs):
            parts = [_condition(x, node, scope) for x in xs]
            return Facts(Kind.BOOLEAN, nullable=any(p.nullable for p in parts))
        case ex.Not(operand=x):
            return Facts(Kind.BOOLEAN, nullable=_condition(x, node, scope).nullable)
        case ex.IsNull(operand=x):
            infer(x, scope)
            return Facts(Kind.BOOLEAN)
        case ex.Case(branches=branches, otherwise=other):
            for test, _ in branches:
                _condition(test, node, scope)
            options = (*(value for _, value in branches), other)
            return facts_of_choice([infer(value, scope) for value in options], node, scope)
        case ex.Coalesce(operands=xs):
            parts = [infer(x, scope) for x in xs]
            return replace(
                facts_of_choice(parts, node, scope), nullable=all(p.nullable for p in parts)
            )
        case ex.DatePart(operand=x):
            return part_facts(node.part, _of_time(x, node, scope))
        case ex.DateTruncate(operand=x):
            return truncated_facts(node.part, _of_time(x, node, scope))
        case ex.Substring(operand=x, start=start, length=length):
            first = start - 1
            return reshaped(_text(x, node, scope), lambda text: text[first : first + length])
        case ex.Call():
            return _call(node, scope)
        case ex.Function(operand=x):
            return node.facts((_text if node.takes == "text" else _number)(x, node, scope))
    return _numeric(node, scope)


def _unreadable(column: ex.Column, scope: Scope) -> Facts:
    scope.column(column)
    if not scope.is_of_a_table(column):
        raise QueryError(
            f"UNREADABLE({column.name}): it is of a column of a table of the policy, and a query "
            "or a list makes this one; ask it where the table is read"
        )
    if scope.is_unit(column):
        raise QueryError(
            f"UNREADABLE({column.name}): the column says who is protected, and rows in which it "
            "cannot be read are nobody's"
        )
    return Facts(Kind.BOOLEAN, nullable=True)


def _call(node: ex.Call, scope: Scope) -> Facts:
    signature = node.signature
    kinds = {"number": _number, "real": _number, "text": _text, "date": _temporal, "any": _any}
    pairs = zip(node.operands, node.kinds, strict=True)
    parts = tuple(kinds[takes](x, node, scope) for x, takes in pairs)
    try:
        found = signature.facts(parts, *node.options)
    except QueryError as error:
        raise type(error)(f"{scope.show(node)}: {error}") from None
    return mapped(signature, parts, node.options, found)


def _numeric(node: ex.Expression, scope: Scope) -> Facts:
    match node:
        case ex.Arithmetic(op=op, left=left, right=right):
            sides = [_number(x, node, scope) for x in (left, right)]
            if op in ("//", "%") and any(s.kind is not Kind.INTEGER for s in sides):
                raise QueryError(f"{scope.show(node)}: {op} is of two integers; use FLOOR(x / y)")
            found = arithmetic(op, *sides, same=left == right)
            divides = op in ("/", "//", "%") and not _never_zero(right, sides[1])
            return replace(found, nullable=True) if divides else found
        case ex.Least(operands=xs) | ex.Greatest(operands=xs):
            parts = [_number(x, node, scope) for x in xs]
            kind = _one_kind(parts, node, scope)
            return extreme(parts, kind, largest=isinstance(node, ex.Greatest))
        case ex.Clamp(operand=x, lower=lower, upper=upper):
            facts = _number(x, node, scope)
            if facts.kind is Kind.INTEGER and (lower.denominator != 1 or upper.denominator != 1):
                raise BoundsError(f"{scope.show(node)}: an integer is clamped to whole bounds")
            if rests_on_assumed(x, scope):
                facts = replace(facts, lower=None, upper=None)
            return _held(clamped(facts, lower, upper), node, scope)
        case ex.Bin(operand=x, edges=edges):
            facts = _number(x, node, scope)
            # Only CLAMP moves a value: bounds that are declared do not keep it within the edges.
            proved = isinstance(x, ex.Clamp) and edges[0] <= x.lower and x.upper <= edges[-1]
            last = Fraction(len(edges) - 2)
            nullable = facts.nullable or not proved
            return Facts(Kind.INTEGER, Fraction(0), last, None, Fraction(1), nullable)
    raise UnsupportedError(f"{type(node).__name__} is not an expression of this version")


def is_assumed(node: ex.Expression, scope: Scope) -> bool:
    """Whether the bounds of an expression rest on ones that nobody declared."""
    return not isinstance(node, ex.Clamp | ex.Bin) and rests_on_assumed(node, scope)


def rests_on_assumed(node: ex.Expression, scope: Scope) -> bool:
    """Whether a column in an expression has bounds that nobody declared."""
    return any(scope.column(column).assumed for column in ex.columns(node))


def _never_zero(divisor: ex.Expression, facts: Facts) -> bool:
    """Whether no value whatever makes it 0: bounds that are declared keep no value away from it."""
    proved = facts.domain is not None or isinstance(divisor, ex.Literal | ex.Clamp)
    low, high = facts.range or (Fraction(0), Fraction(0))
    return proved and not low <= 0 <= high


def _dateless(day: ex.Expression, scope: Scope) -> str:
    """What gives bounds to a number that is made of a date or time without any."""
    if not isinstance(day, Column):
        return f"declare bounds of {scope.show(day)} in the policy, or"
    made = scope.why_unbounded(day)
    learn = scope.learn(day.table, day.name)
    declare = f"declare bounds of {scope.declared(day)} in the policy{',' if learn else ''}"
    return made or f"{declare} {learn}or"


def why_unbounded(node: ex.Expression, scope: Scope) -> str:
    """Which part of a number without bounds has none, and what would give it some.

    The end of a message, up to the advice to write ``CLAMP``.
    """
    for part in ex.walk(node):
        facts = infer(part, scope)
        own = facts.kind is not None and facts.kind.numeric and facts.range is None
        match part:
            case ex.Column() if own and scope.is_unit(part):
                return (
                    f"{scope.show(part)} says who is protected, and its values stand for people: "
                    f"count these with COUNT(DISTINCT {scope.show(part)}), or, if they are amounts,"
                )
            case ex.Column(table=alias, name=name) if own:
                made = scope.why_unbounded(part)
                declare = f"declare bounds = [lower, upper] of {scope.declared(part)} in the policy"
                return made or f"{declare}, {scope.learn(alias, name)}or"
            case ex.DatePart(operand=x) if own:
                return _dateless(x, scope)
            case ex.Call("date difference", operands=xs) if own and (
                days := [x for x in xs if isinstance(x, Column) and infer(x, scope).lower is None]
            ):
                return _dateless(days[0], scope)
            case ex.Call(operands=xs) if own and not all(_bounded(x, scope) for x in xs):
                return f"{scope.show(part)} has no bounds that are known;"
            case ex.Arithmetic(op="/", right=divisor) if own and _near_zero(divisor, scope):
                return f"the divisor {scope.show(divisor)} can be as near to 0 as it likes;"
            case _ if own:
                limit = "2^62" if facts.kind is Kind.INTEGER else "1e300"
                return (
                    f"{scope.show(part)} can reach beyond {limit}; declare narrower bounds of its "
                    "parts, or"
                )
    raise ValueError("the expression has bounds")


def _bounded(operand: ex.Expression, scope: Scope) -> bool:
    return infer(operand, scope).range is not None


def _near_zero(divisor: ex.Expression, scope: Scope) -> bool:
    low, high = infer(divisor, scope).range or (0, 0)
    return low <= 0 <= high


def _held(facts: Facts, node: ex.Expression, scope: Scope) -> Facts:
    """The facts of constants, refused where no number may be as large."""
    if within_limits(facts):
        return facts
    shown = "2^62" if facts.kind is Kind.INTEGER else "1e300"
    raise BoundsError(f"{scope.show(node)} reaches beyond ±{shown}, the widest bounds of a number")


def facts_of_column(facts: ColumnFacts) -> Facts:
    """What is declared of a column, as the facts of an expression."""
    lower, upper = facts.lower, facts.upper
    if facts.values is not None and facts.kind.numeric:
        numbers = [Fraction(v) for v in facts.values if isinstance(v, int | Fraction)]
        lower, upper = min(numbers, default=None), max(numbers, default=None)
    # Only a column that a query makes has a step of whole numbers.
    step = facts.step or Fraction(1) if facts.kind is Kind.INTEGER else facts.step
    return Facts(facts.kind, lower, upper, facts.values, step, facts.nullable)


def _literal(node: ex.Literal, scope: Scope) -> Facts:
    """A constant: itself, on the lattice of its multiples."""
    value = node.value
    if value is None:
        return Facts(None, nullable=True)
    kind = kind_of_value(value)
    if isinstance(value, int | Fraction) and kind.numeric:
        exact = Fraction(value)
        if kind is Kind.REAL:
            return _held(Facts(kind, exact, exact, (value,), abs(exact)), node, scope)
        if not SMALLEST_WORD <= value <= LARGEST_WORD:
            raise BoundsError(
                f"{scope.show(node)} is not a whole number of 64 bits, as every integer is; write "
                "it with a decimal point to compare reals"
            )
        # Nothing is derived from an end beyond those that sums may have.
        found = Facts(kind, exact, exact, (value,), Fraction(1))
        return found if within_limits(found) else replace(found, lower=None, upper=None)
    if isinstance(value, dt.date):
        return Facts(kind, value, value, (value,))
    return Facts(kind, domain=(value,))


# --- operands that must be of some kind ---------------------------------------------------------


def _number(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    facts = infer(operand, scope)
    if facts.kind is None or not facts.kind.numeric:
        raise QueryError(f"{scope.show(node)}: {scope.show(operand)} is not a number")
    return facts


def _temporal(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    facts = infer(operand, scope)
    if facts.kind is None or not facts.kind.temporal:
        raise QueryError(f"{scope.show(node)}: {scope.show(operand)} is not a date or a timestamp")
    return facts


def _of_time(operand: ex.Expression, node: ex.DatePart | ex.DateTruncate, scope: Scope) -> Facts:
    facts = _temporal(operand, node, scope)
    if node.part in ex.TIMES and facts.kind is Kind.DATE:
        raise QueryError(f"{scope.show(node)}: a date has no {node.part}")
    return facts


def _text(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    facts = infer(operand, scope)
    if facts.kind not in (Kind.TEXT, None):
        raise QueryError(f"{scope.show(node)}: {scope.show(operand)} is not text")
    return facts


def _any(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    return infer(operand, scope)


def _condition(operand: ex.Expression, node: ex.Expression, scope: Scope) -> Facts:
    facts = infer(operand, scope)
    if facts.kind not in (Kind.BOOLEAN, None):
        raise QueryError(f"{scope.show(node)}: {scope.show(operand)} is not a condition")
    return facts


def _one_kind(parts: Sequence[Facts], node: ex.Expression, scope: Scope) -> Kind | None:
    """The one kind that all operands are read as; NULL goes with any."""
    found = {p.kind for p in parts if p.kind is not None}
    if len(found) > 1 and all(k.numeric for k in found):
        return Kind.REAL
    if len(found) > 1 and all(k.temporal for k in found):
        return Kind.TIMESTAMP
    if len(found) > 1:
        names = " and ".join(sorted(k.value for k in found))
        instead = (
            "write b or NOT b of a truth value b"
            if Kind.BOOLEAN in found
            else "compare with a value of the same kind, or CAST one of them"
        )
        raise QueryError(f"{scope.show(node)}: mixes {names}; {instead}")
    return next(iter(found), None)


# --- conditions and choices ---------------------------------------------------------------------


def _comparison(
    node: ex.Expression, operands: tuple[ex.Expression, ...], scope: Scope, *, listed: bool
) -> Facts:
    parts = [infer(x, scope) for x in operands]
    _one_kind(parts, node, scope)
    if listed:
        for operand, facts in zip(operands, parts, strict=True):
            if isinstance(operand, ex.Column) and facts.domain is not None:
                _check_declared(operand, facts.domain, operands, node, scope)
    return Facts(Kind.BOOLEAN, nullable=any(p.nullable for p in parts))


def _check_declared(
    column: ex.Column,
    domain: tuple[Value, ...],
    operands: tuple[ex.Expression, ...],
    node: ex.Expression,
    scope: Scope,
) -> None:
    for operand in operands:
        if not isinstance(operand, ex.Literal) or operand.value is None:
            continue
        if operand.value not in domain:
            hint = nearest(str(operand.value), [str(v) for v in domain])
            raise QueryError(
                f"{scope.show(node)}: {show(operand)} is not a declared value of "
                f"{column.name!r}{hint}"
            )


def facts_of_choice(parts: Sequence[Facts], node: ex.Expression, scope: Scope) -> Facts:
    """Whatever one of the options can be, the choice can be; ``node`` is for messages."""
    kind = _one_kind(parts, node, scope)
    if kind is None:
        return Facts(None, nullable=True)
    valued = [p for p in parts if p.kind is not None]
    domain: tuple[Value, ...] | None = None
    if all(p.domain is not None for p in valued):
        domain = tuple(dict.fromkeys(_as(v, kind) for p in valued for v in p.domain or ()))
    lower: Fraction | dt.date | None = None
    upper: Fraction | dt.date | None = None
    if kind.numeric and all(p.range is not None for p in valued):
        ranges = [p.range for p in valued if p.range is not None]
        lower, upper = min(r[0] for r in ranges), max(r[1] for r in ranges)
    elif kind is Kind.DATE:
        firsts = [p.lower for p in valued if isinstance(p.lower, dt.date)]
        lasts = [p.upper for p in valued if isinstance(p.upper, dt.date)]
        if len(firsts) == len(lasts) == len(valued):
            lower, upper = min(firsts), max(lasts)
    step = common_step(p.step for p in valued) if kind.numeric else None
    return Facts(kind, lower, upper, domain, step, any(p.nullable for p in parts))


def _as(value: Value, kind: Kind) -> Value:
    """A value as the kind that unites the options reads it."""
    if kind is Kind.REAL and isinstance(value, int):
        return Fraction(value)
    if kind is Kind.TIMESTAMP and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day)
    return value
