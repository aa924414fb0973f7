"""Expressions as short text, for messages and plans."""

from __future__ import annotations

from fractions import Fraction

from dither.plan import expressions as ex
from dither.plan.kinds import Value

__all__ = ["number", "show", "show_value", "unwritable"]


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


def show_value(value: Value | None) -> str:
    """A public constant as SQL writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int() | Fraction():
            return number(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
    return f"'{value}'"


def show(node: ex.Expression) -> str:
    """An expression, close to how SQL writes it.

    Examples
    --------
    >>> show(ex.Compare(">=", ex.Column("visits", "age"), ex.Literal(18)))
    'age >= 18'
    """
    match node:
        case ex.Column(name=name):
            return name
        case ex.Literal(value=value):
            return show_value(value)
        case ex.Arithmetic(op=op, left=a, right=b) | ex.Compare(op=op, left=a, right=b):
            return f"{_inner(a)} {op} {_inner(b)}"
        case ex.Between(operand=x, low=a, high=b):
            return f"{_inner(x)} BETWEEN {_inner(a)} AND {_inner(b)}"
        case ex.InList(operand=x, values=values):
            return f"{_inner(x)} IN ({', '.join(map(show_value, values))})"
        case ex.IsNull(operand=x):
            return f"{_inner(x)} IS NULL"
        case ex.And(operands=xs):
            return " AND ".join(map(_inner, xs))
        case ex.Or(operands=xs):
            return " OR ".join(map(_inner, xs))
        case ex.Not(operand=x):
            return f"NOT {_inner(x)}"
        case ex.Case(branches=branches, otherwise=other):
            arms = " ".join(f"WHEN {show(c)} THEN {show(v)}" for c, v in branches)
            return f"CASE {arms} ELSE {show(other)} END"
        case ex.Clamp(operand=x, lower=a, upper=b):
            return f"CLAMP({show(x)}, {number(a)}, {number(b)})"
        case ex.Bin(operand=x, edges=edges):
            return f"BIN({show(x)}, {', '.join(map(number, edges))})"
        case ex.DatePart(part=part, operand=x):
            return f"EXTRACT({part.upper()} FROM {show(x)})"
        case ex.DateTruncate(part=part, operand=x):
            return f"DATE_TRUNC('{part}', {show(x)})"
        case ex.Substring(operand=x, start=start, length=length):
            return f"SUBSTRING({show(x)}, {start}, {length})"
        case ex.Coalesce(operands=xs) | ex.Least(operands=xs) | ex.Greatest(operands=xs):
            return f"{type(node).__name__.upper()}({', '.join(map(show, xs))})"
        case (
            ex.Absolute(operand=x)
            | ex.Floor(operand=x)
            | ex.Ceil(operand=x)
            | ex.Lower(operand=x)
            | ex.Upper(operand=x)
        ):
            name = {"Absolute": "ABS"}.get(type(node).__name__, type(node).__name__.upper())
            return f"{name}({show(x)})"
    raise TypeError(type(node).__name__)


_LOOSE = (ex.Arithmetic, ex.Compare, ex.Between, ex.InList, ex.IsNull, ex.And, ex.Or, ex.Not)


def _inner(node: ex.Expression) -> str:
    return f"({show(node)})" if isinstance(node, _LOOSE) else show(node)
