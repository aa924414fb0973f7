"""The functions of ``dither.plan.functions`` as SQL, out of what a dialect spells.

Each form is defined by what its function says of itself. A part of it that could fail stands in a
branch that only values reach on which it does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import reduce

from sqlglot import exp

from dither.engines.writer.dialect import Dialect
from dither.engines.writer.forms import all_of, binary, case
from dither.plan.functions.casts import FALSE, TRUE
from dither.plan.functions.casts import FORMS as TEXT_FORMS
from dither.plan.functions.dates import DIRECTIVES, directives, reach
from dither.plan.functions.numbers import LARGEST, MOST_EXPONENT, SPLITTER, WHOLE
from dither.plan.functions.patterns import Edge, Sequence_, of_regexp
from dither.plan.functions.texts import LONGEST, LONGEST_PART
from dither.plan.schema import Kind

__all__ = ["FORMS"]

Values = Sequence[exp.Expression]
Kinds = Sequence[Kind | None]


# --- numbers ------------------------------------------------------------------------------------


def _round(dialect: Dialect, values: Values, kinds: Kinds, places: int) -> exp.Expression:
    (x,) = values
    unit = 10 ** abs(places)
    if kinds[0] is Kind.INTEGER:
        return x if places >= 0 else _round_integer(dialect, x, unit)
    if places > 0:
        scaled = dialect.real_arithmetic("*", x.copy(), dialect.real(float(unit)))
        # From there on all doubles are whole, and to scale back would only move the value.
        small = binary("<", dialect.absolute(scaled.copy()), dialect.real(WHOLE))
        near = dialect.half_away(scaled)
        return case(
            (small, dialect.real_arithmetic("/", near, dialect.real(float(unit)))), otherwise=x
        )
    if places < 0:
        x = dialect.real_arithmetic("/", x, dialect.real(float(unit)))
    steps = dialect.floor(dialect.half_away(x))
    return steps if places == 0 else _times(dialect, steps, unit)


def _times(dialect: Dialect, steps: exp.Expression, unit: int) -> exp.Expression:
    wide = dialect.arithmetic("*", dialect.widened(steps), dialect.wide_integer(unit))
    return dialect.narrowed(wide)


def _round_integer(dialect: Dialect, x: exp.Expression, unit: int) -> exp.Expression:
    # Towards zero, and one step further where half a unit or more is left: only the product of
    # the steps can be beyond 64 bits.
    steps = dialect.arithmetic("//", x.copy(), dialect.integer(unit))
    rest = dialect.arithmetic("%", x, dialect.integer(unit))
    further = case(
        (binary(">=", rest.copy(), dialect.integer(unit // 2)), dialect.integer(1)),
        (binary("<=", rest, dialect.integer(-unit // 2)), dialect.integer(-1)),
        otherwise=dialect.integer(0),
    )
    return _times(dialect, dialect.arithmetic("+", steps, further), unit)


def _short(dialect: Dialect, value: exp.Expression) -> exp.Expression:
    """A double below 1e300 to 44 bits; no step overflows, nor underflows."""

    def carried() -> exp.Expression:
        return binary("*", value.copy(), dialect.real(SPLITTER))

    # Veltkamp's split: with 2^9 + 1 it leaves 53 - 9 bits, rounded to the nearest.
    return binary("-", carried(), binary("-", carried(), value.copy()))


def _sqrt(dialect: Dialect, values: Values, kinds: Kinds) -> exp.Expression:
    (x,) = values
    return case((binary(">=", x.copy(), dialect.real(0.0)), dialect.elementary("SQRT", x)))


def _log(
    dialect: Dialect, values: Values, kinds: Kinds, base: Fraction | None = None
) -> exp.Expression:
    (x,) = values
    found = dialect.elementary("LN", x.copy())
    if base is not None:
        divisor = dialect.real(math.log(float(base)))
        # Between 1e-19 and 1e12 in size, or 0: no step of the split leaves the doubles.
        found = binary("/", found, divisor)
    known = [
        binary(">", x.copy(), dialect.real(0.0)),
        binary("<=", x.copy(), dialect.real(LARGEST)),
    ]
    return case((all_of("AND", known), _short(dialect, found)))


def _exp(dialect: Dialect, values: Values, kinds: Kinds) -> exp.Expression:
    (x,) = values
    low, high = dialect.real(-MOST_EXPONENT), dialect.real(MOST_EXPONENT)
    found = _short(dialect, dialect.elementary("EXP", x.copy()))
    return case(
        (binary("<", x.copy(), low), dialect.real(0.0)), (binary("<=", x.copy(), high), found)
    )


def _power(dialect: Dialect, values: Values, kinds: Kinds) -> exp.Expression:
    x, y = values
    zero, one = dialect.real(0.0), dialect.real(1.0)

    def beyond(value: exp.Expression) -> exp.Expression:
        return binary(">", dialect.absolute(value.copy()), dialect.real(LARGEST))

    def logarithm() -> exp.Expression:
        size = dialect.elementary("LN", dialect.absolute(x.copy()))
        return binary("*", y.copy(), size)

    none = dialect.null(Kind.REAL)
    whole = binary("=", y.copy(), dialect.half_away(y.copy()))
    negative = binary("<", x.copy(), zero.copy())
    tiny = binary("<", dialect.absolute(y.copy()), dialect.real(1 / LARGEST))
    power = _short(dialect, dialect.elementary("POWER", x.copy(), y.copy()))
    of_zero = case(
        (binary(">", y.copy(), zero.copy()), zero.copy()),
        (binary("=", y.copy(), zero.copy()), one.copy()),
    )
    return case(
        (all_of("OR", [beyond(x), beyond(y)]), none),
        (binary("=", x.copy(), zero.copy()), of_zero),
        (all_of("AND", [negative, exp.Not(this=whole)]), none.copy()),
        # An engine may raise where a product is too small for a double. Of NULL it is NULL still.
        (all_of("AND", [tiny, exp.Not(this=exp.Is(this=x.copy(), expression=exp.Null()))]), one),
        (binary(">", logarithm(), dialect.real(MOST_EXPONENT)), none.copy()),
        (binary("<", logarithm(), dialect.real(-MOST_EXPONENT)), zero.copy()),
        # Where an operand is NULL no branch above is taken, and this is NULL too.
        otherwise=power,
    )


# --- text ---------------------------------------------------------------------------------------


def _replace(dialect: Dialect, values: Values, kinds: Kinds, old: str, new: str) -> exp.Expression:
    (x,) = values
    found = dialect.replaced(x.copy(), old, new)
    if len(new) <= len(old):
        return found
    # At worst the text is made of `old` alone, and grows as `new` is longer.
    most = LONGEST * len(old) // len(new)
    return case((binary("<=", dialect.length(x.copy()), dialect.integer(most)), found))


def _concat(dialect: Dialect, values: Values, kinds: Kinds) -> exp.Expression:
    sizes = [dialect.length(value.copy()) for value in values]
    size = reduce(lambda a, b: dialect.arithmetic("+", a, b), sizes)
    fits = binary("<=", size, dialect.integer(LONGEST))
    return case((fits, reduce(dialect.joined, [value.copy() for value in values])))


def _contains(dialect: Dialect, values: Values, kinds: Kinds) -> exp.Expression:
    whole, part = values
    found = binary(">", dialect.position(part.copy(), whole), dialect.integer(0))
    return case((_is_short(dialect, part), found))


def _position(dialect: Dialect, values: Values, kinds: Kinds) -> exp.Expression:
    part, whole = values
    return case((_is_short(dialect, part.copy()), dialect.position(part, whole)))


def _is_short(dialect: Dialect, part: exp.Expression) -> exp.Expression:
    """Whether a part is short enough to be looked for in a text of any length."""
    return binary("<=", dialect.length(part), dialect.integer(LONGEST_PART))


# --- dates --------------------------------------------------------------------------------------


def _period(
    dialect: Dialect, value: exp.Expression, kind: Kind | None, part: str
) -> exp.Expression:
    """The number of the period that holds a moment, of all since the year 1."""

    def mixed(size: int, larger: exp.Expression, smaller: str) -> exp.Expression:
        scaled = dialect.arithmetic("*", larger, dialect.integer(size))
        if smaller in ("hour", "minute", "second") and kind is Kind.DATE:
            return scaled
        return dialect.arithmetic("+", scaled, dialect.date_part(smaller, value.copy()))

    match part:
        case "year":
            return dialect.date_part("year", value)
        case "quarter" | "month":
            year = dialect.date_part("year", value.copy())
            return mixed(4 if part == "quarter" else 12, year, part)
        case "week":
            # Day 0, the first of January of the year 1, was a Monday.
            return dialect.arithmetic("//", dialect.day_number(value), dialect.integer(7))
        case "day":
            return dialect.day_number(value)
    found = mixed(24, dialect.day_number(value.copy()), "hour")
    for finer in ("minute", "second"):
        if part != "hour" and (finer == "minute" or part == "second"):
            found = mixed(60, found, finer)
    return found


def _difference(dialect: Dialect, values: Values, kinds: Kinds, part: str) -> exp.Expression:
    start, end = (
        _period(dialect, value, kind, part) for value, kind in zip(values, kinds, strict=True)
    )
    return dialect.arithmetic("-", end, start)


def _interval(
    dialect: Dialect, values: Values, kinds: Kinds, amount: int, unit: str
) -> exp.Expression:
    (x,) = values
    kind = kinds[0] or Kind.DATE
    ends = reach(amount, unit)
    assert ends is not None, "an interval longer than time is refused where it is made"
    goal = Kind.TIMESTAMP if unit == "second" else kind
    if kind is Kind.DATE and goal is Kind.TIMESTAMP:
        x, kind = dialect.cast(x, goal), goal
    # Outside of these ends the result is beyond the years 1 to 9999, where an engine may raise.
    low, high = (dialect.constant(end, kind) for end in ends)
    found = dialect.shifted(x.copy(), amount, unit, goal)
    return case((exp.Between(this=x.copy(), low=low, high=high), found))


def _strftime(dialect: Dialect, values: Values, kinds: Kinds, pattern: str) -> exp.Expression:
    (x,) = values
    own = dialect.formatted(x, directives(pattern))
    if own is not None:
        return own
    made: list[exp.Expression] = []
    for piece, one in directives(pattern):
        if not one:
            made.append(dialect.text(piece))
            continue
        part, width = DIRECTIVES[piece]
        if kinds[0] is Kind.DATE and part in ("hour", "minute", "second"):
            made.append(dialect.text("00"))
        else:
            made.append(dialect.digits(dialect.date_part(part, x.copy()), width))
    found = reduce(dialect.joined, made)
    # Of a format that names no part, NULL is NULL all the same.
    return case((exp.Not(this=exp.Is(this=x.copy(), expression=exp.Null())), found))


# --- casts --------------------------------------------------------------------------------------


def _cast(dialect: Dialect, values: Values, kinds: Kinds, target: str) -> exp.Expression:
    (x,), (kind,), goal = values, kinds, Kind(target)
    if kind is None:
        return dialect.null(goal)
    if kind is goal:
        return x
    match kind, goal:
        case Kind.TEXT, Kind.BOOLEAN:
            low = dialect.lower(dialect.trimmed(x, "both", " "))
            lists = [[dialect.text(word) for word in words] for words in (TRUE, FALSE)]
            return case(
                *(
                    (exp.In(this=low.copy(), expressions=listed), exp.Boolean(this=truth))
                    for listed, truth in zip(lists, (True, False), strict=True)
                )
            )
        case Kind.TEXT, _:
            trimmed = dialect.trimmed(x, "both", " ")
            # A cast of a text raises on what has not its form, so that no other text may get there.
            form = Sequence_((Edge(end=False), of_regexp(TEXT_FORMS[goal]), Edge(end=True)))
            known = dialect.matches(trimmed.copy(), form)
            return case((known, dialect.parsed(trimmed, goal)))
        case Kind.INTEGER | Kind.REAL, Kind.BOOLEAN:
            zero = dialect.integer(0) if kind is Kind.INTEGER else dialect.real(0.0)
            return binary("<>", x, zero)
        case Kind.BOOLEAN, _:
            ends = {
                Kind.INTEGER: (dialect.integer(1), dialect.integer(0)),
                Kind.REAL: (dialect.real(1.0), dialect.real(0.0)),
                Kind.TEXT: (dialect.text("true"), dialect.text("false")),
            }[goal]
            return case((x.copy(), ends[0]), (exp.Not(this=x), ends[1]))
        case Kind.REAL, Kind.INTEGER:
            return dialect.rounded(x)
        case Kind.INTEGER, Kind.TEXT:
            return dialect.digits(x)
        case Kind.TIMESTAMP, Kind.DATE:
            return dialect.date_truncate("day", x)
        case Kind.DATE, Kind.TEXT:
            return _strftime(dialect, (x,), (kind,), "%F")
    return dialect.cast(x, goal)


FORMS: Mapping[str, Callable[..., exp.Expression]] = {
    "round": _round,
    "sqrt": _sqrt,
    "ln": _log,
    "log": _log,
    "exp": _exp,
    "power": _power,
    "length": lambda dialect, values, kinds: dialect.length(*values),
    "trim": lambda dialect, values, kinds, *options: dialect.trimmed(*values, *options),
    "replace": _replace,
    "concat": _concat,
    "contains": _contains,
    "starts with": lambda dialect, values, kinds: dialect.starts_with(*values),
    "ends with": lambda dialect, values, kinds: dialect.ends_with(*values),
    "position": _position,
    "like": lambda dialect, values, kinds, pattern: dialect.like(*values, pattern),
    "regular expression": lambda dialect, values, kinds, pattern: dialect.matches(
        *values, of_regexp(pattern)
    ),
    "date difference": _difference,
    "interval": _interval,
    "format of time": _strftime,
    "cast": _cast,
}
"""By the name of the function: its SQL, from that of its operands, their kinds and the options."""
