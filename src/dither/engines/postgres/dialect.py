"""PostgreSQL's SQL: what it spells in its own way, forms that cannot fail, and how types are read.

There is no TRY_CAST, and a cast, a sum of integers or a product of doubles raises where its result
does not fit. So each form here asks first: numbers are held against the ends of the type, text
against a regular expression that only texts match which the cast takes. A test and what it guards
stand in one CASE, whose operands are columns or named in a subquery, so that the planner computes
neither beforehand.

Text is compared by its bytes: every column and constant carries the collation "C", which wins over
any that a column or the database has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from dither.engines.postgres.reals import once, real_operation, scaled_to
from dither.engines.writer.dialect import LARGEST, Dialect, Seeds, joined
from dither.engines.writer.forms import (
    all_of,
    binary,
    call,
    case,
    identifier,
    is_not_null,
    named,
    selected,
)
from dither.errors import UnsupportedError
from dither.plan.functions.matchers import spelled
from dither.plan.functions.patterns import Pattern
from dither.plan.readings import Shape
from dither.plan.schema import ColumnFacts, Kind, Value

__all__ = ["POSTGRES", "READ_AS", "PostgresDialect"]

WHOLE = {"smallint": 15, "integer": 31, "bigint": 63, "oid": 32}
REAL = {"real", "double precision"}
STAMPS = {"timestamp without time zone", "timestamp with time zone"}
WORDS = {"text", "character varying", "character", "name", '"char"'}
LIKE_TEXT = WORDS | {"citext", "enum", "uuid", "text that is compared without case or accents"}

READ_AS = {**dict.fromkeys(LIKE_TEXT, "text"), "oid": "bigint"}
"""Types whose values become another before anything else is asked of them."""

LOW, HIGH = "-9223372036854775808", "9223372036854775808"
"""A double or decimal at least the one and below the other fits 64 bits."""

SMALL_ENDS = ("-2147483648", "2147483647.5")
"""And 32 bits, once it is rounded."""

MONTHS = (
    "((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|02-(0[1-9]|1[0-9]|2[0-8]))"
)
LEAP = "([0-9][0-9](0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29"
DAY = f"(?!0000)([0-9]{{4}}-{MONTHS}|{LEAP})"
CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,6})?)?"
OFFSET = "(Z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)"
PATTERNS = {
    Kind.INTEGER: "^ *[+-]?[0-9]{1,40}([.]0*)? *$",
    Kind.REAL: "^ *[+-]?([0-9]{1,200}([.][0-9]{0,200})?|[.][0-9]{1,200})([eE][+-]?[0-9]{1,4})? *$",
    Kind.DATE: f"^{DAY}$",
    Kind.TIMESTAMP: f"^{DAY}([ T]{CLOCK} ?{OFFSET}?)?$",
}
"""Texts that each kind's cast takes without fail."""

MOST_REPEATS = 255

TRUE = ("t", "true", "y", "yes", "on", "1")
FALSE = ("f", "false", "n", "no", "off", "0")


def _base(stored: str) -> str:
    return stored.split("(")[0].strip()


class PostgresDialect(Dialect):
    """PostgreSQL's SQL. Wide integers are its numbers of any length, as sums of 64 bits are.

    Examples
    --------
    >>> POSTGRES.sql(POSTGRES.text("o'b"))
    '(CAST(\\'o\\'\\'b\\' AS TEXT) COLLATE "C")'
    >>> POSTGRES.kind_of_type("numeric(18,2)"), POSTGRES.kind_of_type("jsonb")
    (<Kind.REAL: 'real'>, None)
    >>> POSTGRES.one_to_one("bigint", Kind.REAL), POSTGRES.one_to_one("numeric(38,0)", Kind.TEXT)
    (False, True)
    >>> POSTGRES.one_to_one("citext", Kind.TEXT)
    False
    >>> POSTGRES.largest("smallint", Kind.INTEGER), POSTGRES.largest("numeric(10,2)", Kind.REAL)
    (Fraction(32768, 1), Fraction(100000000, 1))
    """

    name = "postgres"
    types: ClassVar[dict[Kind, str]] = {
        Kind.INTEGER: "BIGINT",
        Kind.REAL: "DOUBLE PRECISION",
        Kind.TEXT: "TEXT",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }
    wide = "NUMERIC"
    grouping_sets = True
    repeats_number = 1

    # --- numbers --------------------------------------------------------------------------------

    def narrowed(self, value: exp.Expression) -> exp.Expression:
        return once([value], lambda v: self._whole(v, "BIGINT", LOW, HIGH))

    def _whole(self, value: exp.Expression, name: str, low: str, high: str) -> exp.Expression:
        """A number as an integer of the type, where it lies in ``[low, high)``; NaN lies above."""
        within = all_of(
            "AND",
            [
                binary(">=", value.copy(), _literal(low)),
                binary("<", value.copy(), _literal(high)),
            ],
        )
        return case((within, self.cast_to(value.copy(), name)))

    def arithmetic(self, op: str, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        if op == "//" and (_is_wide(left) or _is_wide(right)):
            return self.wide_quotient(left, right)
        if op == "//":
            return exp.Paren(this=exp.Div(this=left, expression=right, typed=True))
        return super().arithmetic(op, left, right)

    def wide_quotient(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        # Of numbers of any length the operator gives a fraction.
        return call("DIV", left, right)

    def real_arithmetic(
        self, op: str, left: exp.Expression, right: exp.Expression
    ) -> exp.Expression:
        return real_operation(op, left, right, self.real)

    def is_number(self, value: exp.Expression) -> exp.Expression:
        # NaN equals itself here, and nothing else.
        return binary("<>", value, self.real(float("nan")))

    def without_nan(self, value: exp.Expression) -> exp.Expression:
        return call("NULLIF", value, self.real(float("nan")))

    def whole_type(self, largest: int) -> str:
        # Sums of these have 64 bits, where no state of a wider one is kept for every group.
        return "INTEGER" if largest < 2**31 else "BIGINT"

    def nearest(self, value: exp.Expression, name: str) -> exp.Expression:
        # Its cast from doubles rounds halves to even.
        ends = SMALL_ENDS if name == "INTEGER" else (LOW, HIGH)
        return once([value], lambda v: self._whole(v, name, *ends))

    def sums_in_64_bits(self, size: int) -> bool:
        return size * self.most_rows <= LARGEST

    def summed_of_size(self, value: exp.Expression, size: int) -> exp.Expression:
        if self.sums_in_64_bits(size):
            return call("SUM", self.cast_to(value, "INTEGER"))
        # The server's sum of its smaller integers has 64 bits, whatever is added.
        return self.summed(self.cast_to(value, "BIGINT") if size <= LARGEST else value)

    def nearest_within(
        self, value: exp.Expression, lower: int, upper: int
    ) -> exp.Expression | None:
        """Clamped first, so that the cast needs no test: rounding moves nothing over a whole
        number. The planner writes the column's formula wherever it is named, so it is named
        twice."""
        if max(abs(lower), abs(upper)) > 2**53:
            return None
        low, high = (self.real(Fraction(end)) for end in (lower, upper))
        clamped = self.least(self.greatest(value.copy(), low), high)
        kind = self.whole_type(max(abs(lower), abs(upper)))
        return case((self.is_number(value.copy()), self.cast_to(clamped, kind)))

    def nearest_scaled(
        self, value: exp.Expression, op: str, factor: float, lower: int, upper: int
    ) -> exp.Expression | None:
        """The value is clamped before it is scaled, so that scaling needs no test either.

        Scaling and rounding are monotone: of two doubles the larger one becomes no smaller integer.
        So where the end ``a`` itself becomes ``lower``, whatever is below ``a`` would be clamped to
        what ``a`` gives, and what is above becomes no less; and so at the other end. Between the
        two nothing is too large, and as the size grows nothing becomes too small to be a double.
        """
        ends = [scaled_to(op, factor, end) for end in (lower, upper)]
        low, high = ends
        if low is None or high is None:
            return None
        clamped = self.least(self.greatest(value.copy(), self.real(low)), self.real(high))
        kind = self.whole_type(max(abs(lower), abs(upper)))
        scaled = self.cast_to(binary(op, clamped, self.real(factor)), kind)
        return case((self.is_number(value.copy()), scaled))

    # --- dates and text -------------------------------------------------------------------------

    def text(self, value: str) -> exp.Expression:
        if "\x00" in value:
            raise UnsupportedError("PostgreSQL holds no text with the character NUL; leave it out")
        return _bytewise(super().text(value))

    def listed(self, values: Sequence[tuple[int, Value]], kind: Kind) -> exp.Select:
        found = joined([value for _, value in values], kind)
        if found is None:
            return super().listed(values, kind)
        split = call("STRING_TO_ARRAY", *map(exp.Literal.string, found))
        numbers = exp.Literal.string("{" + ",".join(str(place) for place, _ in values) + "}")
        both = [self.cast_to(split, f"{self.types[kind]}[]"), self.cast_to(numbers, "BIGINT[]")]
        names = [exp.to_identifier(n, quoted=True) for n in ("value", "position")]
        alias = exp.TableAlias(this=exp.to_identifier("listed", quoted=True), columns=names)
        value = identifier("value", "listed")
        value = _bytewise(value) if kind is Kind.TEXT else value
        rows = exp.Table(this=call("UNNEST", *both), alias=alias)
        return selected([named(value, "value"), identifier("position", "listed")], rows)

    def date_part(self, part: str, value: exp.Expression) -> exp.Expression:
        name = {"dayofweek": "dow", "dayofyear": "doy"}.get(part, part)
        found = call("DATE_PART", exp.Literal.string(name), self.cast_to(value, "TIMESTAMP"))
        return self.cast_to(call("FLOOR", found), "BIGINT")

    def date_truncate(self, part: str, value: exp.Expression) -> exp.Expression:
        moment = self.cast_to(value, "TIMESTAMP")
        return self.cast_to(call("DATE_TRUNC", exp.Literal.string(part), moment), "DATE")

    def lower(self, value: exp.Expression) -> exp.Expression:
        return _bytewise(call("LOWER", _every_alphabet(value)))

    def upper(self, value: exp.Expression) -> exp.Expression:
        return _bytewise(call("UPPER", _every_alphabet(value)))

    def substring(self, value: exp.Expression, start: int, length: int) -> exp.Expression:
        ends = (exp.Literal.number(min(n, 2**31 - 1)) for n in (start, length))
        return call("SUBSTRING", value, *(self.cast_to(end, "INTEGER") for end in ends))

    # --- what functions of a row are made of ------------------------------------------------------

    def half_away(self, value: exp.Expression) -> exp.Expression:
        def rounded(v: exp.Expression) -> exp.Expression:
            whole = call("TRUNC", v.copy())
            rest = self.absolute(binary("-", v.copy(), whole.copy()))
            further = binary("+", whole.copy(), call("SIGN", v.copy()))
            near = case((binary(">=", rest, self.real(0.5)), further), otherwise=whole)
            small = binary("<", self.absolute(v.copy()), self.real(2.0**52))
            return case((small, near), otherwise=v.copy())

        return once([value], rounded)

    def starts_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        return call("STARTS_WITH", whole, part)

    def matches(self, value: exp.Expression, pattern: Pattern) -> exp.Expression:
        """The server's own matcher is an automaton where nothing is captured: its time grows with
        the text alone."""
        shown = spelled(pattern, start=r"\A", end=r"\Z", point=r"\U{:08x}", every=".")
        counts = re.findall(r"\{(\d+),?(\d*)\}", shown)
        if any(int(count) > MOST_REPEATS for pair in counts for count in pair if count):
            raise UnsupportedError(
                f"PostgreSQL repeats a part of a pattern {MOST_REPEATS} times at most; write the "
                "part several times"
            )
        found = exp.RegexpLike(this=value, expression=self.text(shown))
        # Computed by the planner: a pattern that is too complex is refused over empty tables too.
        tried = exp.RegexpLike(this=self.text(""), expression=self.text(shown))
        return all_of("AND", [exp.Paren(this=found), is_not_null(exp.Paren(this=tried))])

    def shaped(self, value: exp.Expression, shape: Shape) -> exp.Expression:
        """What is captured is captured of texts that match, whose length has an end."""
        pattern = f"^(?:{shape.pattern})$"
        made = "".join(part if isinstance(part, str) else rf"\{part}" for part in shape.made)
        found = call("REGEXP_REPLACE", value.copy(), self.text(pattern), self.text(made))
        matches = exp.RegexpLike(this=value, expression=self.text(pattern))
        return case((matches, _bytewise(found)))

    def digits(self, value: exp.Expression, width: int = 0) -> exp.Expression:
        return _bytewise(super().digits(value, width))

    # --- queries --------------------------------------------------------------------------------

    def keyed_hash(self, seeds: Seeds, parts: Sequence[exp.Expression]) -> exp.Expression:
        """The server's own hash, twice: its combination of values is linear, and alone would
        favour some groups.

        The seeds are the parameters of the query, and no part of its text.
        """
        first, second = (
            self.cast_to(exp.Parameter(this=exp.Literal.number(i)), "BIGINT") for i in (1, 2)
        )
        row = call("ROW", *(p.copy() for p in parts))
        return call("HASHINT8EXTENDED", call("HASH_RECORD_EXTENDED", row, first), second)

    # --- how a source's columns are read ----------------------------------------------------------

    def kind_of_type(self, stored: str) -> Kind | None:
        if stored.endswith("]"):
            return None
        base = _base(stored)
        if base in WHOLE:
            return Kind.INTEGER
        if base in REAL or base == "numeric":
            return Kind.REAL
        if base in LIKE_TEXT:
            return Kind.TEXT
        if base in STAMPS:
            return Kind.TIMESTAMP
        return {"boolean": Kind.BOOLEAN, "date": Kind.DATE}.get(base)

    def zoned(self, stored: str) -> bool:
        """Whether a stored type is of moments with a time zone."""
        return stored == "timestamp with time zone"

    def element_of(self, stored: str) -> str | None:
        """Of arrays; all elements are read, as the number of dimensions is not part of the type."""
        element = stored.removesuffix("[]")
        return element if element != stored and self.kind_of_type(element) else None

    def first_items(self, value: exp.Expression, most: int) -> exp.Expression:
        """By their places as they are read: indices may begin anywhere, in several dimensions."""
        item, place = exp.to_identifier("item"), exp.to_identifier("place")
        listed = exp.Unnest(
            expressions=[value],
            alias=exp.TableAlias(this=exp.to_identifier("items"), columns=[item]),
            offset=place,
        )
        found = exp.select(exp.column("item")).from_(listed).order_by(exp.column("place"))
        found = found.where(binary("<=", exp.column("place"), self.integer(most)))
        short = binary("<=", self.number_of_items(value.copy()), self.integer(most))
        # Almost every list is, and costs no query of its own.
        return case((short, value.copy()), otherwise=exp.Array(expressions=[found]))

    def is_whole(self, stored: str) -> bool:
        """Numbers of any length are: where one is a fraction, its answer is refused."""
        return _base(stored) in WHOLE or stored == "numeric"

    def one_to_one(self, stored: str, kind: Kind) -> bool:
        """A unit keeps the kind of its type, but for whole numbers, decimals, UUIDs and
        enumerations, each of which has one text of its own and may be read as that.

        Text whose own equality is not that of its bytes cannot be a unit: what the table takes for
        one person would be two.
        """
        base = _base(stored)
        return {
            Kind.INTEGER: base in WHOLE,
            Kind.REAL: base in REAL,
            Kind.TEXT: base in {*WHOLE, *WORDS, "numeric", "enum", "uuid"},
            Kind.BOOLEAN: base == "boolean",
            Kind.DATE: base == "date",
            Kind.TIMESTAMP: base in STAMPS,
        }[kind]

    def stored_alike(self, left: str, right: str) -> bool:
        families = (set(WHOLE), REAL, WORDS | {"enum"})
        alike = any({_base(left), _base(right)} <= family for family in families)
        return alike or left == right

    def largest(self, stored: str, kind: Kind) -> Fraction | None:
        base = _base(stored)
        if kind is Kind.INTEGER:
            return Fraction(2 ** WHOLE.get(base, 63))
        if base in WHOLE:
            return Fraction(2 ** WHOLE[base])
        digits = _digits_before(stored)
        return None if digits is None else Fraction(10**digits)

    def typed(self, raw: exp.Expression, stored: str, kind: Kind) -> exp.Expression:
        base, goal = _base(stored), self.types[kind]
        own = self.kind_of_type(stored)
        if own is Kind.TEXT:
            return self._from_text(raw, kind)
        if kind is Kind.TEXT:
            return _bytewise(self._as_text(raw, stored))
        if base == "timestamp with time zone":
            raw = call("TIMEZONE", exp.Literal.string("UTC"), raw)
        match own, kind:
            case Kind.INTEGER, Kind.BOOLEAN:
                return binary("<>", raw, _literal("0"))
            case Kind.REAL, Kind.BOOLEAN:
                nan = exp.Cast(this=exp.Literal.string("NaN"), to=self.type_of(base))
                return binary("<>", call("NULLIF", raw, nan), _literal("0"))
            case Kind.BOOLEAN, Kind.INTEGER | Kind.REAL:
                return self.cast_to(self.cast_to(raw, "INTEGER"), goal)
            case Kind.REAL, Kind.INTEGER:
                # A numeric is rounded half away from zero, a double half to even.
                halves = (f"{LOW}.5", "9223372036854775807.5")
                ends = halves if base == "numeric" else (LOW, HIGH)
                return self._whole(raw, goal, *ends)
            case Kind.REAL, Kind.REAL if base == "numeric" and _digits_before(stored) is None:
                return self._as_double(raw)
            case Kind.DATE, Kind.TIMESTAMP:
                cleaned = self.cleaned(raw, ColumnFacts("", Kind.DATE))
                return self.cast_to(cleaned, goal)
        return self.cast_to(raw, goal)

    def _as_double(self, raw: exp.Expression) -> exp.Expression:
        """A number of any length as the nearest double, which may be 0 or infinite."""
        infinite, nothing = self.real(float("inf")), self.real(0.0)
        size = call("ABS", raw.copy())
        # Next to 2^1024, and half of the smallest double.
        most, least = ("1.7976931348623158e308", "2.4703282292062328e-324")
        return case(
            (binary("=", raw.copy(), _literal("0")), nothing),
            (
                exp.Between(this=size, low=_literal(least), high=_literal(most)),
                self.cast_to(raw.copy(), "DOUBLE PRECISION"),
            ),
            (binary("<", call("ABS", raw.copy()), _literal(least)), nothing.copy()),
            (
                binary("=", raw.copy(), self.cast_to(exp.Literal.string("NaN"), "NUMERIC")),
                self.real(float("nan")),
            ),
            (binary(">", raw.copy(), _literal("0")), infinite),
            (
                binary("<", raw.copy(), _literal("0")),
                self.real(float("-inf")),
            ),
        )

    def _from_text(self, raw: exp.Expression, kind: Kind) -> exp.Expression:
        text = _bytewise(raw.copy())
        match kind:
            case Kind.TEXT:
                return text
            case Kind.BOOLEAN:
                said = _bytewise(call("LOWER", call("BTRIM", text)))
                words = [
                    exp.In(this=said.copy(), expressions=[self.text(w) for w in listed])
                    for listed in (TRUE, FALSE)
                ]
                return case((words[0], exp.true()), (words[1], exp.false()))
        matches = exp.RegexpLike(this=text, expression=self.text(PATTERNS[kind]))
        if kind.numeric:
            number = case((matches, self.cast_to(raw.copy(), "NUMERIC")))
            if kind is Kind.INTEGER:
                return self.narrowed(number)
            return once([number], self._as_double)
        if kind is Kind.DATE:
            return case((matches, self.cast_to(raw.copy(), "DATE")))
        # Without an offset it is in UTC, as the session is.
        zoned = self.cast_to(raw.copy(), "TIMESTAMPTZ")
        return case((matches, call("TIMEZONE", exp.Literal.string("UTC"), zoned)))

    def _as_text(self, raw: exp.Expression, stored: str) -> exp.Expression:
        base = _base(stored)
        if base == "numeric":
            nan = self.cast_to(exp.Literal.string("NaN"), "NUMERIC")
            # Without a declared scale, 7 and 7.00 are one number.
            shown = raw if _digits_before(stored) is not None else call("TRIM_SCALE", raw)
            return self.cast_to(call("NULLIF", shown, nan), "TEXT")
        if base in STAMPS or base == "date":
            kind = Kind.DATE if base == "date" else Kind.TIMESTAMP
            raw = self.cleaned(self.typed(raw, stored, kind), ColumnFacts("", kind))
        return self.cast_to(raw, "TEXT")


def _literal(text: str) -> exp.Expression:
    return exp.Literal(this=text, is_string=False)


def _bytewise(value: exp.Expression) -> exp.Expression:
    # In parentheses, since BETWEEN takes no bare collation.
    collated = exp.Collate(this=value, expression=exp.to_identifier("C", quoted=True))
    return exp.Paren(this=collated)


def _every_alphabet(value: exp.Expression) -> exp.Expression:
    return exp.Collate(this=value, expression=exp.to_identifier("und-x-icu", quoted=True))


def _digits_before(stored: str) -> int | None:
    """Digits before the point of ``numeric(precision,scale)``, which is never infinite."""
    if not stored.startswith("numeric("):
        return None
    precision, _, scale = stored.removeprefix("numeric(").rstrip(")").partition(",")
    found = int(precision) - int(scale or 0)
    return found if abs(found) < 300 and int(precision) < 300 else None


def _is_wide(node: exp.Expression) -> bool:
    """Whether a whole number is written as one of any length."""
    match node:
        case exp.Paren():
            return _is_wide(node.this)
        case exp.Cast():
            return bool(node.to.this is exp.DataType.Type.DECIMAL)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Mod():
            return _is_wide(node.this) or _is_wide(node.expression)
    return False


POSTGRES = PostgresDialect()
