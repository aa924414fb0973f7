"""The functions of a row's value: which of sqlglot's nodes means which function of the plan.

A function that says all of itself in ``dither.plan.functions`` needs a line in ``_CALLS``: its
node, its name there, and the parts of the node that are its operands. A rule of its own stands
where one is read from several spellings, or has constants that belong to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import NoReturn

from sqlglot import exp

from dither.errors import QueryError
from dither.plan import expressions as ex
from dither.plan.functions.dates import PERIODS
from dither.plan.schema import Kind
from dither.sql.allow_list import FUNCTION_NAMES, Place, Rule, Rules, called, refuse, take, word
from dither.sql.dates import date_part, period, read_date, read_timestamp, truncation

__all__ = ["FUNCTIONS", "interval", "moved"]

# --- choices ----------------------------------------------------------------------------------


def _case(node: exp.Case, place: Place) -> ex.Expression:
    subject, arms, default = take(node, place.where, "this", "ifs", "default")
    whole = place.operand(subject) if subject is not None else None
    branches: list[tuple[ex.Expression, ex.Expression]] = []
    for arm in arms or ():
        condition, value = (place.read(x) for x in take(arm, place.where, "this", "true"))
        if whole is not None:
            if condition == ex.Literal(None):
                raise QueryError(
                    f"{place.where}: CASE x WHEN NULL is never true; write CASE WHEN x IS NULL"
                )
            condition = place.make(ex.Compare, "=", whole, condition)
        branches.append((condition, value))
    otherwise = place.read(default) if default is not None else ex.Literal(None)
    return place.make(ex.Case, tuple(branches), otherwise)


def _if(node: exp.If, place: Place) -> ex.Expression:
    this, true, false = take(node, place.where, "this", "true", "false")
    otherwise = place.read(false) if false is not None else ex.Literal(None)
    return ex.Case(((place.read(this), place.read(true)),), otherwise)


def _nullif(node: exp.Nullif, place: Place) -> ex.Expression:
    left, right = place.sides(node)
    return ex.Case(((place.make(ex.Compare, "=", left, right), ex.Literal(None)),), left)


def _variadic(make: Callable[[tuple[ex.Expression, ...]], ex.Expression], *ignored: str) -> Rule:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        this, rest = take(node, place.where, "this", "expressions", ignored=ignored)
        return make(tuple(place.read(x) for x in (this, *(rest or ()))))

    return rule


def _unary(
    make: Callable[[ex.Expression], ex.Expression],
) -> Rule:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        (this,) = take(node, place.where, "this")
        if this is None:
            raise QueryError(f"{place.where}: a function has no argument")
        return make(place.read(this))

    return rule


# --- dates and text ---------------------------------------------------------------------------


def _extract(node: exp.Extract, place: Place) -> ex.Expression:
    part, operand = take(node, place.where, "this", "expression")
    return ex.DatePart(date_part(word(part, place.where)), place.read(operand))


def _truncate(node: exp.Expr, place: Place) -> ex.Expression:
    unit, operand = take(node, place.where, "unit", "this")
    return ex.DateTruncate(truncation(word(unit, place.where)), place.read(operand))


_KINDS = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), Kind.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE", "FLOAT64"), Kind.REAL),
    **dict.fromkeys(("TEXT", "VARCHAR", "NVARCHAR"), Kind.TEXT),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPNTZ", "DATETIME"), Kind.TIMESTAMP),
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
}
"""What CAST may name. Whole numbers have 64 bits and reals are doubles, whatever the type."""


def _cast(node: exp.Cast, place: Place) -> ex.Expression:
    this, to = take(node, place.where, "this", "to", ignored=("safe",))
    name = to.this.name if isinstance(to, exp.DataType) else ""
    if name == "USERDEFINED":
        name = str(to.args.get("kind") or "").upper()
    if isinstance(this, exp.Literal) and this.is_string:
        text = word(this, place.where)
        if name == "DATE":
            take(to, place.where, "this")
            return ex.Literal(read_date(text))
        if _KINDS.get(name) is Kind.TIMESTAMP:
            take(to, place.where, "this")
            return ex.Literal(read_timestamp(text))
        if name in ("TIMESTAMPTZ", "TIMESTAMPLTZ"):
            take(to, place.where, "this")
            return ex.Literal(read_timestamp(text, offset=True))
    if name == "DECIMAL":
        refuse(node, place.where, "write ROUND(x, 2), or CAST(x AS DOUBLE)")
    if name not in _KINDS:
        offered = "BIGINT, DOUBLE, VARCHAR, BOOLEAN, DATE or TIMESTAMP"
        refuse(node, place.where, f"name the type {offered}")
    take(to, place.where, "this", *(("kind",) if to.this.name == "USERDEFINED" else ()))
    return place.make(ex.Call, "cast", (place.read(this),), (_KINDS[name].value,))


def _substring(node: exp.Substring, place: Place) -> ex.Expression:
    this, start, length = take(node, place.where, "this", "start", "length")
    if start is None:
        raise QueryError(f"{place.where}: SUBSTRING needs a start")
    return _slice(this, start, length or exp.Literal.number(2**31 - 1), place)


def _left(node: exp.Left, place: Place) -> ex.Expression:
    this, length = take(node, place.where, "this", "expression")
    return _slice(this, exp.Literal.number(1), length, place)


def _slice(this: exp.Expr, start: exp.Expr, length: exp.Expr, place: Place) -> ex.Expression:
    first = place.number(start, "the start of SUBSTRING")
    size = place.number(length, "the length of SUBSTRING")
    if not isinstance(first, int) or not isinstance(size, int):
        first, size = 0, 0  # refused like any other place where no character is
    return place.make(ex.Substring, place.read(this), first, size)


def constant(node: exp.Expr, what: str, place: Place) -> str:
    """Read a constant text, or refuse and say that ``what`` must be one."""
    value = place.read(node)
    if isinstance(value, ex.Literal) and isinstance(value.value, str):
        return value.value
    raise QueryError(f"{place.where}: {what} must be a constant text")


def _trim(node: exp.Trim, place: Place) -> ex.Expression:
    this, letters, side = take(node, place.where, "this", "expression", "position")
    removed = " " if letters is None else constant(letters, "what TRIM removes", place)
    options = (str(side or "both").lower(), removed)
    return place.make(ex.Call, "trim", (place.read(this),), options)


def _replace(node: exp.Replace, place: Place) -> ex.Expression:
    this, old, new = take(node, place.where, "this", "expression", "replacement")
    if new is None:
        _usage("REPLACE(x, old, new)", place)
    texts = tuple(constant(x, "what REPLACE puts in, and what for,", place) for x in (old, new))
    return place.make(ex.Call, "replace", (place.read(this),), texts)


def _concat(node: exp.Concat, place: Place) -> ex.Expression:
    """CONCAT leaves NULL out; ``||`` is NULL where an operand is."""
    (parts,) = take(node, place.where, "expressions", ignored=("safe", "coalesce"))
    if not node.args.get("safe"):
        refuse(node, place.where, "write || between texts")
    texts: list[ex.Expression] = []
    for part in parts:
        read = place.read(part)
        null = not isinstance(read, ex.Literal)
        texts.append(ex.Coalesce((read, ex.Literal(""))) if null else read)
    return _joined(texts, place)


def _joined(texts: list[ex.Expression], place: Place) -> ex.Expression:
    parts: list[ex.Expression] = []
    for text in texts:
        joined = isinstance(text, ex.Call) and text.function == "concat"
        parts += text.operands if isinstance(text, ex.Call) and joined else [text]
    return place.make(ex.Call, "concat", tuple(parts)) if len(parts) > 1 else parts[0]


def _pipe(node: exp.DPipe, place: Place) -> ex.Expression:
    left, right = take(node, place.where, "this", "expression", ignored=("safe",))
    return _joined([place.operand(left), place.operand(right)], place)


# --- patterns ---------------------------------------------------------------------------------


def _like(node: exp.Like | exp.ILike, place: Place, escape: str = "") -> ex.Expression:
    this, pattern, negate = take(node, place.where, "this", "expression", "negate")
    written = constant(pattern, "the pattern of LIKE", place)
    operand = place.operand(this)
    if isinstance(node, exp.ILike):
        operand, written = ex.Lower(operand), "".join(map(_small, written))
        escape = _small(escape)
    found = place.make(ex.Call, "like", (operand,), (_escaped(written, escape, place),))
    return ex.Not(found) if negate else found


def _small(letter: str) -> str:
    """A letter in lower case, where that is one letter."""
    return letter.lower() if len(letter.lower()) == len(letter) else letter


def _escaped(pattern: str, escape: str, place: Place) -> str:
    """A pattern in which a backslash escapes, and nothing else."""
    found, rest = "", iter(pattern)
    for letter in rest:
        if letter == escape:
            taken = next(rest, "")
            if not taken:
                raise QueryError(f"{place.where}: a pattern of LIKE ends with its escape")
            found += f"\\{taken}" if taken in "%_\\" else taken
        else:
            found += "\\\\" if letter == "\\" else letter
    return found


def _escape(node: exp.Escape, place: Place) -> ex.Expression:
    like, escape = take(node, place.where, "this", "expression")
    negated = isinstance(like, exp.Not)
    bare = like.this if negated else like
    if not isinstance(bare, exp.Like | exp.ILike):
        refuse(node, place.where)
    letter = constant(escape, "what stands after ESCAPE", place)
    if len(letter) > 1 or letter in ("%", "_"):
        raise QueryError(f"{place.where}: ESCAPE takes one character, and not % or _")
    found = _like(bare, place, letter)
    return ex.Not(found) if negated else found


def _regexp(node: exp.RegexpLike, place: Place) -> ex.Expression:
    this, pattern = take(node, place.where, "this", "expression")
    if not called(node):
        # DuckDB and PostgreSQL disagree on what ~ means.
        hint = "write REGEXP_MATCHES(x, pattern), or REGEXP_FULL_MATCH(x, pattern) for all of x"
        refuse(node, place.where, hint)
    return _matched(this, pattern, "{}", place)


def _full_match(node: exp.RegexpFullMatch, place: Place) -> ex.Expression:
    this, pattern = take(node, place.where, "this", "expression")
    return _matched(this, pattern, "^(?:{})$", place)


def _matched(this: exp.Expr, pattern: exp.Expr, form: str, place: Place) -> ex.Expression:
    written = form.format(constant(pattern, "a regular expression", place))
    return place.make(ex.Call, "regular expression", (place.read(this),), (written,))


# --- numbers ------------------------------------------------------------------------------------


def _round(node: exp.Round, place: Place) -> ex.Expression:
    this, decimals = take(node, place.where, "this", "decimals")
    places = 0 if decimals is None else place.number(decimals, "the places of ROUND")
    return place.make(ex.Call, "round", (place.read(this),), (places,))


def _log(node: exp.Log, place: Place) -> ex.Expression:
    base, operand = take(node, place.where, "this", "expression")
    if operand is None:
        base, operand = exp.Literal.number(10), base
    options = (Fraction(place.number(base, "the base of LOG")),)
    return place.make(ex.Call, "log", (place.read(operand),), options)


# --- time ---------------------------------------------------------------------------------------


def _difference(node: exp.DateDiff, place: Place) -> ex.Expression:
    end, start, unit = take(
        node, place.where, "this", "expression", "unit", ignored=("date_part_boundary",)
    )
    part = period(word(unit, place.where)) if unit is not None else "day"
    if part not in PERIODS:
        _usage("DATE_DIFF('day', start, end)", place)
    ends = tuple(_moment(x, place) for x in (start, end))
    return place.make(ex.Call, "date difference", ends, (part,))


def _moment(node: exp.Expr, place: Place) -> ex.Expression:
    """Read a date, also where it is a text alone."""
    found = place.read(node)
    if isinstance(found, ex.Literal) and isinstance(found.value, str):
        return ex.Literal(read_date(found.value))
    return found


_INTERVALS = {
    **{"day": (1, "day"), "week": (7, "day"), "month": (1, "month"), "quarter": (3, "month")},
    **{"year": (12, "month"), "hour": (3600, "second"), "minute": (60, "second")},
    "second": (1, "second"),
}


def interval(node: exp.Interval, place: Place) -> tuple[int, str]:
    """How much time an interval is, as ``functions.dates`` counts it."""
    amount, unit = take(node, place.where, "this", "unit")
    text = word(amount, place.where) if isinstance(amount, exp.Literal) else ""
    part = period(word(unit, place.where)) if isinstance(unit, exp.Var) else ""
    if not re.fullmatch(r"[+-]?[0-9]{1,15}", text, re.ASCII) or part not in _INTERVALS:
        _usage("INTERVAL 3 DAY: a constant whole number and one unit", place)
    times, of = _INTERVALS[part]
    return int(text) * times, of


def moved(
    operand: ex.Expression, amount: int, unit: str, place: Place, *, back: bool
) -> ex.Expression:
    """An operand so much time later, or earlier."""
    return place.make(ex.Call, "interval", (operand,), (-amount if back else amount, unit))


def _date_add(node: exp.DateAdd, place: Place) -> ex.Expression:
    this, amount = take(node, place.where, "this", "expression")
    return _added(this, amount, place, back=False)


def _added(this: exp.Expr, amount: exp.Expr, place: Place, *, back: bool) -> ex.Expression:
    if not isinstance(amount, exp.Interval):
        _usage("DATE_ADD(x, INTERVAL 3 DAY)", place)
    return moved(_moment(this, place), *interval(amount, place), place, back=back)


def _strftime(node: exp.TimeToStr, place: Place) -> ex.Expression:
    this, form = take(node, place.where, "this", "format")
    return _formatted(this, form, place)


def _formatted(this: exp.Expr, form: exp.Expr, place: Place) -> ex.Expression:
    written = constant(form, "the format of STRFTIME(x, format)", place)
    return place.make(ex.Call, "format of time", (place.read(this),), (written,))


# --- functions that sqlglot does not know -----------------------------------------------------


def _named(node: exp.Anonymous, place: Place) -> ex.Expression:
    name, arguments = node.name.upper(), list(node.expressions)
    take(node, place.where, "this", "expressions")
    if name == "CLAMP":
        if len(arguments) != 3:
            _usage("CLAMP(x, lower, upper)", place)
        lower, upper = (Fraction(place.number(x, "a bound of CLAMP")) for x in arguments[1:])
        return place.make(ex.Clamp, place.read(arguments[0]), lower, upper)
    if name == "BIN":
        if len(arguments) < 3:
            _usage("BIN(x, edge, edge, ...)", place)
        edges = tuple(Fraction(place.number(x, "an edge of BIN")) for x in arguments[1:])
        return place.make(ex.Bin, place.read(arguments[0]), edges)
    if name == "UNREADABLE":
        column = place.read(arguments[0]) if len(arguments) == 1 else None
        if not isinstance(column, ex.Column):
            _usage("UNREADABLE(x), of a column x of a table", place)
        return place.make(ex.Unreadable, column)
    if name in ("DATE_PART", "DATEPART"):
        if len(arguments) != 2:
            _usage("DATE_PART('year', x)", place)
        return ex.DatePart(date_part(word(arguments[0], place.where)), place.read(arguments[1]))
    if name in ("FORMAT_DATE", "FORMAT_TIMESTAMP") and len(arguments) == 2:
        return _formatted(arguments[1], arguments[0], place)
    if name == "DATE_SUB" and len(arguments) == 2:
        return _added(arguments[0], arguments[1], place, back=True)
    if name == "REGEXP_CONTAINS" and len(arguments) == 2:
        return _matched(arguments[0], arguments[1], "{}", place)
    if name in ("PREFIX", "SUFFIX") and len(arguments) == 2:
        function = {"PREFIX": "starts with", "SUFFIX": "ends with"}[name]
        return place.make(ex.Call, function, tuple(map(place.read, arguments)))
    if name == "WEEKDAY" and len(arguments) == 1:
        return ex.DatePart("dayofweek", place.read(arguments[0]))
    return refuse(node, place.where)


def _usage(form: str, place: Place) -> NoReturn:
    raise QueryError(f"{place.where}: write {form}")


def _part(part: str) -> Rule:
    return _unary(lambda operand: ex.DatePart(part, operand))


def _call(function: str, *parts: str) -> Rule:
    def rule(node: exp.Expr, place: Place) -> ex.Expression:
        operands = take(node, place.where, *parts)
        if None in operands:
            raise QueryError(f"{place.where}: a function has too few arguments")
        return place.make(ex.Call, function, tuple(place.read(x) for x in operands))

    return rule


_CALLS: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Sqrt: ("sqrt", "this"),
    exp.Ln: ("ln", "this"),
    exp.Exp: ("exp", "this"),
    exp.Pow: ("power", "this", "expression"),
    exp.Length: ("length", "this"),
    exp.Contains: ("contains", "this", "expression"),
    exp.StartsWith: ("starts with", "this", "expression"),
    exp.EndsWith: ("ends with", "this", "expression"),
    exp.StrPosition: ("position", "substr", "this"),
}
"""By node: the name of a function, and the parts that are its operands, in its order."""

FUNCTIONS: Rules = {
    exp.Case: _case,
    exp.If: _if,
    exp.Nullif: _nullif,
    exp.Coalesce: _variadic(ex.Coalesce, "is_nvl", "is_null"),
    exp.Least: _variadic(ex.Least, "ignore_nulls"),
    exp.Greatest: _variadic(ex.Greatest, "ignore_nulls"),
    exp.Abs: _unary(ex.Absolute),
    exp.Floor: _unary(ex.Floor),
    exp.Ceil: _unary(ex.Ceil),
    exp.Lower: _unary(ex.Lower),
    exp.Upper: _unary(ex.Upper),
    exp.Substring: _substring,
    exp.Left: _left,
    exp.Extract: _extract,
    exp.Year: _part("year"),
    exp.Quarter: _part("quarter"),
    exp.Month: _part("month"),
    exp.Day: _part("day"),
    exp.DayOfMonth: _part("day"),
    exp.DayOfWeek: _part("dayofweek"),
    exp.Hour: _part("hour"),
    exp.Minute: _part("minute"),
    exp.DateTrunc: _truncate,
    exp.TimestampTrunc: _truncate,
    exp.Week: _part("week"),
    exp.WeekOfYear: _part("week"),
    exp.DayOfWeekIso: _part("isodow"),
    exp.DayOfYear: _part("dayofyear"),
    exp.Second: _part("second"),
    exp.DateDiff: _difference,
    exp.DateAdd: _date_add,
    exp.TimeToStr: _strftime,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Round: _round,
    exp.Log: _log,
    exp.Trim: _trim,
    exp.Replace: _replace,
    exp.Concat: _concat,
    exp.DPipe: _pipe,
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.RegexpLike: _regexp,
    exp.RegexpFullMatch: _full_match,
    **{node: _call(*parts) for node, parts in _CALLS.items()},
    exp.Anonymous: _named,
}
"""The allow-list of functions."""

FUNCTION_NAMES.update(
    ("ABS", "BIN", "CAST", "CEIL", "CLAMP", "COALESCE", "CONCAT", "CONTAINS", "DATE_ADD"),
    ("DATE_DIFF", "DATE_PART", "DATE_SUB", "DATE_TRUNC", "DAY", "DAYOFWEEK", "DAYOFYEAR"),
    ("ENDS_WITH", "EXP", "EXTRACT", "FLOOR", "GREATEST", "HOUR", "IF", "ISODOW", "LEAST", "LEFT"),
    ("LENGTH", "LN", "LOG", "LOG10", "LOG2", "LOWER", "LTRIM", "MINUTE", "MONTH", "NULLIF"),
    ("POSITION", "POWER", "QUARTER", "REGEXP_FULL_MATCH", "REGEXP_MATCHES", "REPLACE", "ROUND"),
    ("RTRIM", "SECOND", "SQRT", "STARTS_WITH", "STRFTIME", "STRPOS", "SUBSTRING", "TRIM"),
    ("TRY_CAST", "UNREADABLE", "UPPER", "WEEK", "YEAR"),
)
