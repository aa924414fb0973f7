"""The language of rules: comparisons of sums of columns, such as ``"end >= start"``.

A rule is two or more sides with ``<=``, ``<``, ``=``, ``>`` or ``>=`` between them. A side is a sum
of columns, numbers times columns, numbers, and dates in quotes: ``"total = food + rent"``,
``"0 <= stay <= 30"``, ``"left - came <= 14"``, ``"came >= '2020-02-01'"``. A column whose name is
no plain word stands in double quotes. Dates count in days; so do numbers beside them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from dither.errors import ArgumentError, nearest
from dither.query.tables._domain import Attribute, CellDomain

__all__ = ["LinearRule", "linear_rules", "number_of", "tokens"]

LONGEST = 1_000
"""Characters of one rule."""

_TOKENS = re.compile(
    r"""\s*(?: (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?)
          | '(?P<date>[^']*)' | "(?P<quoted>[^"]+)" | (?P<name>[^\W\d]\w*)
          | (?P<sign><=|>=|==|<|>|=|\+|-|\*) )""",
    re.VERBOSE,
)
_COMPARES = {"<=", ">=", "==", "=", "<", ">"}
_DATES = ("date", "timestamp")
_EPOCH = dt.date(1970, 1, 1)


@dataclass(frozen=True)
class LinearRule:
    """A sum of columns that is at most, below, or equal to a number.

    Parameters
    ----------
    text : str
        As it was written.
    weights : tuple of (int, Fraction)
        By the columns' places, rising; none is 0.
    limit : Fraction
    equal, strict : bool
        The sum is the limit; or is below it.
    """

    text: str
    weights: tuple[tuple[int, Fraction], ...]
    limit: Fraction
    equal: bool = False
    strict: bool = False

    @property
    def columns(self) -> tuple[int, ...]:
        """The places of its columns, rising."""
        return tuple(v for v, _ in self.weights)


def number_of(value: Any) -> Fraction:
    """A number, a day, or a moment as days since 1970, exactly.

    Examples
    --------
    >>> number_of(dt.date(1970, 1, 3)), number_of(dt.datetime(1970, 1, 1, 12)), number_of(2.5)
    (Fraction(2, 1), Fraction(1, 2), Fraction(5, 2))
    """
    if isinstance(value, dt.datetime):
        since = value - dt.datetime(1970, 1, 1)
        return Fraction(since // dt.timedelta(microseconds=1), 86_400_000_000)
    if isinstance(value, dt.date):
        return Fraction((value - _EPOCH).days)
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


def linear_rules(text: str, domain: CellDomain) -> list[LinearRule]:
    """Read a rule: one comparison, or several in a chain.

    Raises
    ------
    ArgumentError
        It cannot be read, names what is not there, or compares what has no order.

    Examples
    --------
    >>> from dither.plan.schema import Kind
    >>> day = Attribute("came", Kind.DATE), Attribute("left", Kind.DATE)
    >>> (rule,) = linear_rules("left >= came", CellDomain(day))
    >>> rule.weights, rule.limit
    (((0, Fraction(1, 1)), (1, Fraction(-1, 1))), Fraction(0, 1))
    """
    if len(text) > LONGEST:
        raise ArgumentError(f"rules: a rule has at most {LONGEST:,} characters")
    sides: list[list[tuple[str, Any]]] = [[]]
    signs: list[str] = []
    for kind, value in tokens(text):
        if kind == "sign" and value in _COMPARES:
            signs.append(value)
            sides.append([])
        else:
            sides[-1].append((kind, value))
    if not signs:
        raise _unread(text, "it compares nothing")
    read = [_side(text, side, domain) for side in sides]
    found = []
    for sign, (left, right) in zip(signs, pairwise(read), strict=True):
        if sign in (">", ">="):
            left, right = right, left
        whole = dict(left)
        for v, weight in right.items():
            whole[v] = whole.get(v, Fraction(0)) - weight
        limit = -whole.pop(None, Fraction(0))
        dates = whole.pop("date", Fraction(0))
        weights = tuple(sorted((v, w) for v, w in whole.items() if w))
        if not weights:
            raise _unread(text, "no column is left in it")
        if dates:
            raise _unread(text, "dates are compared with dates, or their difference with days")
        found.append(LinearRule(text, weights, limit, sign in ("=", "=="), sign in ("<", ">")))
    return found


def tokens(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a rule, each with its kind."""
    at = 0
    while text[at:].strip():
        found = _TOKENS.match(text, at)
        if found is None:
            raise _unread(text, f"at {text[at:].strip()[:20]!r}")
        at = found.end()
        kind = str(found.lastgroup)
        yield kind, found.group(kind)


def _side(text: str, tokens: Sequence[tuple[str, Any]], domain: CellDomain) -> dict[Any, Fraction]:
    """A sum by column, with None for what is no column, and how many dates it counts."""
    found: dict[Any, Fraction] = {}
    sign, factor, ready = Fraction(1), Fraction(1), False

    def add(key: Any, amount: Fraction) -> None:
        found[key] = found.get(key, Fraction(0)) + amount

    held: Any = ...
    for kind, value in [*tokens, ("sign", "+")]:
        if kind == "sign":
            if value == "*":
                if not ready or held is not None:
                    raise _unread(text, "'*' stands between a number and a column")
                ready = False
                continue
            if ready:
                if held is None:
                    add(None, sign * factor)
                sign, factor, ready, held = Fraction(1), Fraction(1), False, ...
            elif held is not ...:
                raise _unread(text, "a column is missing after '*'")
            if value == "-":
                sign = -sign
            continue
        if ready:
            raise _unread(text, f"a sign is missing before {value!r}")
        ready = True
        if kind == "number":
            if held is None:
                raise _unread(text, "'*' stands between a number and a column")
            factor, held = Fraction(value), None
        elif kind == "date":
            try:
                moment = dt.datetime.fromisoformat(value)
            except ValueError:
                raise _unread(text, f"{value!r} is no date; write '2024-01-31'") from None
            if moment.tzinfo is not None:
                raise _unread(text, f"{value!r} has a zone, and columns have none")
            add(None, sign * number_of(moment))
            add("date", sign)
            held = "date"
        else:
            v = _column(text, value, domain)
            add(v, sign * factor)
            if domain.attributes[v].kind.value in _DATES:
                add("date", sign * factor)
            held = v
    if not tokens or tokens[-1][0] == "sign":
        raise _unread(text, "a side of it is empty, or ends with a sign")
    return found


def _column(text: str, name: str, domain: CellDomain) -> int:
    if name not in domain.names:
        raise ArgumentError(f"rules: {text!r}: no column {name!r}" + nearest(name, domain.names))
    v = domain.names.index(name)
    attribute: Attribute = domain.attributes[v]
    if attribute.kind.value in ("text", "boolean"):
        raise ArgumentError(
            f"rules: {text!r}: {name} is neither a number nor a date; say which combinations there "
            f'are, as {{"columns": [{name!r}, ...], "allowed": [...]}}'
        )
    return v


def _unread(text: str, why: str) -> ArgumentError:
    shown = text if len(text) <= 80 else text[:77] + "..."
    return ArgumentError(
        f'rules: {shown!r} cannot be read: {why}; write comparisons of sums, as "end >= start" or '
        '"total = food + rent"'
    )
