"""Expressions as SQL: for messages and plans, and for the canonical text of a query."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from fractions import Fraction

from dither.plan import expressions as ex
from dither.plan.schema import Value

__all__ = [
    "ExpressionWriter",
    "Words",
    "bin_labels",
    "brief",
    "constant",
    "number",
    "show",
    "show_value",
    "unwritable",
]


Words = Callable[[ex.Expression], str | None]
"""How an expression was written, where that is known."""


def unwritable(text: str, *, null: bool = False) -> str | None:
    """Why a text cannot be written down as it is; ``None`` where it can.

    Parameters
    ----------
    text : str
    null : bool
        Whether it may hold the character NUL, as a value may and a name may not.

    Examples
    --------
    >>> unwritable("naïve"), unwritable("a\\x00b")
    (None, 'holds the character NUL; leave it out')
    >>> unwritable("caf\\udce9")
    'is not valid Unicode; was it written in another encoding than UTF-8?'
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return "is not valid Unicode; was it written in another encoding than UTF-8?"
    return "holds the character NUL; leave it out" if not null and "\x00" in text else None


def number(value: Fraction | int | float) -> str:
    """A public number, short: a decimal where that is exact, else a quotient.

    Examples
    --------
    >>> number(Fraction(1, 100)), number(Fraction(1, 3)), number(Fraction(5000))
    ('0.01', '1/3', '5000')
    """
    exact = Fraction(value)
    if exact.denominator == 1:
        return str(exact.numerator)
    rest = exact.denominator
    for prime in (2, 5):
        while rest % prime == 0:
            rest //= prime
    if rest == 1 and abs(exact) < 10**15:
        text = repr(float(exact))
        if Fraction(text) == exact:
            return text
    return f"{exact.numerator}/{exact.denominator}"


def brief(value: Fraction | int) -> str:
    """A public number for messages and tables: to six digits where all of them would be many.

    Examples
    --------
    >>> brief(Fraction(1, 100)), brief(10**300)
    ('0.01', '1e+300')
    """
    text = number(value)
    return text if len(text) <= 24 else f"{float(value):.6g}"


def bin_labels(node: ex.Bin) -> list[str]:
    """The ranges of a binned number as text.

    Examples
    --------
    >>> bin_labels(ex.Bin(ex.Column("visits", "age"), (Fraction(0), Fraction(18), Fraction(65))))
    ['[0, 18)', '[18, 65]']
    """
    ends = [number(e) for e in node.edges]
    last = len(ends) - 2
    return [f"[{ends[i]}, {ends[i + 1]}{']' if i == last else ')'}" for i in range(last + 1)]


def show_value(value: Value | None) -> str:
    """A public constant, short."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | Fraction():
            return number(value)
        case str():
            return _quoted(value)
    return f"'{value}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


OR, AND, NOT, TEST, SUM, PRODUCT, ATOM = range(7)
"""How tightly a text binds, loosest first."""

LONGEST_DECIMAL = 30
"""Digits of a decimal; a real that needs more is written as a quotient."""

_LEVELS = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT}


def constant(value: Value | None) -> tuple[str, int]:
    """A public constant as SQL that reads back as the same, and how tightly it binds.

    Examples
    --------
    >>> constant(Fraction(5)), constant(Fraction(1, 3))
    (('5.0', 6), ('1 / 3', 5))
    """
    match value:
        case Fraction():
            return _real(value)
        case dt.datetime():
            utc = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
            return f"TIMESTAMP '{utc.isoformat(sep=' ')}'", ATOM
        case dt.date():
            return f"DATE '{value.isoformat()}'", ATOM
    return show_value(value), ATOM


def _real(value: Fraction) -> tuple[str, int]:
    """A decimal where that is exact and not long, else a quotient of integers."""
    places = _decimal_places(value.denominator)
    if places is None or abs(value) >= Fraction(10) ** (LONGEST_DECIMAL - places):
        return f"{value.numerator} / {value.denominator}", PRODUCT
    places = max(places, 1)
    digits = str(abs(value.numerator) * (10**places // value.denominator)).rjust(places + 1, "0")
    return f"{'-' if value < 0 else ''}{digits[:-places]}.{digits[-places:]}", ATOM


def _decimal_places(denominator: int) -> int | None:
    """The decimal places that a fraction needs, ``None`` where no number of them is enough."""
    counts = []
    for prime in (2, 5):
        count = 0
        while denominator % prime == 0:
            denominator //= prime
            count += 1
        counts.append(count)
    return max(counts) if denominator == 1 else None


def _edge(value: Fraction) -> str:
    """A bound or an edge, which is an exact rational however it is written."""
    return str(value.numerator) if value.denominator == 1 else _real(value)[0]


class ExpressionWriter:
    """Writes expressions as SQL, with parentheses where they are needed.

    Parameters
    ----------
    column : callable
        Writes the name of a column.
    """

    def __init__(self, column: Callable[[ex.Column], str]) -> None:
        self._column = column

    def text(self, node: ex.Expression, level: int = OR) -> str:
        """An expression, in parentheses where it binds less tightly than ``level``."""
        text, own = self._written(node)
        return text if own >= level else f"({text})"

    def _written(self, node: ex.Expression) -> tuple[str, int]:
        text = self.text
        match node:
            case ex.Column():
                return self._column(node), ATOM
            case ex.Unreadable(column=column):
                return f"UNREADABLE({self._column(column)})", ATOM
            case ex.Literal(value=value):
                return constant(value)
            case ex.Arithmetic(op=op, left=a, right=b):
                level = _LEVELS[op]
                return f"{text(a, level)} {op} {text(b, level + 1)}", level
            case ex.Compare(op=op, left=a, right=b):
                return f"{text(a, SUM)} {op} {text(b, SUM)}", TEST
            case ex.Between(operand=x, low=a, high=b):
                return f"{text(x, SUM)} BETWEEN {text(a, SUM)} AND {text(b, SUM)}", TEST
            case ex.InList(operand=x, values=values):
                listed = ", ".join(constant(v)[0] for v in values)
                return f"{text(x, SUM)} IN ({listed})", TEST
            case ex.IsNull(operand=x):
                return f"{text(x, SUM)} IS NULL", TEST
            case ex.Not(operand=x):
                return f"NOT {text(x, NOT)}", NOT
            case ex.And(operands=xs):
                return self._chain(" AND ", xs, AND)
            case ex.Or(operands=xs):
                return self._chain(" OR ", xs, OR)
            case ex.Call(operands=xs, options=options):
                test = node.signature.test
                operands = [text(x, ATOM if test else SUM) for x in xs]
                return node.signature.words(operands, *options), TEST if test else ATOM
        return self._function(node), ATOM

    def _chain(self, word: str, xs: tuple[ex.Expression, ...], level: int) -> tuple[str, int]:
        return word.join(self.text(x, level + 1) for x in xs), level if len(xs) > 1 else OR

    def _function(self, node: ex.Expression) -> str:
        text = self.text
        match node:
            case ex.Case(branches=branches, otherwise=other):
                arms = " ".join(f"WHEN {text(c)} THEN {text(v)}" for c, v in branches)
                last = "" if other == ex.Literal(None) else f" ELSE {text(other)}"
                return f"CASE {arms}{last} END"
            case ex.Clamp(operand=x, lower=a, upper=b):
                return f"CLAMP({text(x)}, {_edge(a)}, {_edge(b)})"
            case ex.Bin(operand=x, edges=edges):
                return f"BIN({text(x)}, {', '.join(map(_edge, edges))})"
            # EXTRACT and SUBSTRING have a grammar of their own, in which no bare condition stands.
            case ex.DatePart(part=part, operand=x):
                return f"EXTRACT({part.upper()} FROM {text(x, SUM)})"
            case ex.Substring(operand=x, start=start, length=length):
                return f"SUBSTRING({text(x, SUM)}, {start}, {length})"
            case ex.DateTruncate(part=part, operand=x):
                return f"DATE_TRUNC('{part}', {text(x)})"
            case ex.Coalesce(operands=xs) | ex.Least(operands=xs) | ex.Greatest(operands=xs):
                return f"{type(node).__name__.upper()}({', '.join(map(text, xs))})"
            case ex.Function(word=word, operand=x):
                return f"{word}({text(x)})"
        raise TypeError(type(node).__name__)


_SHOWN = ExpressionWriter(lambda column: column.name)


def show(node: ex.Expression) -> str:
    """An expression as SQL, its columns by their bare names.

    Examples
    --------
    >>> show(ex.Compare(">=", ex.Column("visits", "age"), ex.Literal(18)))
    'age >= 18'
    """
    return _SHOWN.text(node)
