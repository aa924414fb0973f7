"""What an engine's SQL is where engines differ: one object that the writer asks.

The writer says what a query means; a dialect says how an engine spells it. The forms here are those
of standard SQL where there is one; an engine replaces what it spells otherwise, and supplies what
no standard has. Three rules bind every form, because privacy rests on them:

- it fails on no value of its operands, whatever a source holds;
- what its docstring says of the result is true of every value, not only of those declared;
- types are always written out: left to itself an engine would read ``5`` as a 32-bit integer and
  ``0.1`` as a decimal, and both have other rules for overflow and rounding.

sqlglot spells the tree in the engine's grammar, quotes names and escapes text. It may also put
another function in a form's place, or leave out what an engine lacks (``TRY_CAST`` becomes ``CAST``
in many): so the writer uses no such form of its own, and ``tests/conformance`` holds every
dialect against a reference on values that would show a difference.
"""

from __future__ import annotations

import datetime as dt
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

from sqlglot import exp

from dither.engines.writer.forms import (
    binary,
    call,
    case,
    identifier,
    is_not_null,
    named,
    selected,
    subquery,
)
from dither.engines.writer.readings import held, plain
from dither.errors import UnsupportedError
from dither.plan.functions.patterns import Pattern, of_like
from dither.plan.readings import Shape
from dither.plan.schema import ColumnFacts, Kind, Value, kind_of_value

__all__ = ["FIRST_DAY", "LARGEST", "LAST_MOMENT", "LONG", "Dialect", "Seeds", "joined"]

LARGEST = 2**63 - 1
"""A plan's integers have 64 bits in every engine."""

LONG = 1000
"""Lists of more values than this are written as one text that the engine splits."""

LARGEST_DOUBLE = Fraction(1.7976931348623157e308)
FIRST_DAY, LAST_MOMENT = dt.date(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)
"""Dates outside are read as NULL: neither Python nor every date function knows them."""


TOO_LARGE = "a sum could leave the engine's integers; declare narrower bounds or a larger step"


@dataclass(frozen=True, slots=True)
class Seeds:
    """The secret key of one run, as two 64-bit numbers."""

    first: int
    second: int


@cache
def _parsed(name: str, dialect: str) -> exp.DataType:
    return exp.DataType.build(name, dialect=dialect)


def joined(values: Sequence[Value], kind: Kind) -> tuple[str, str] | None:
    """A long list as one text, and the control character between its values, which is in none.

    Engines plan constants one by one, and of 100,000 that takes seconds. ``None`` where the list is
    short, and of kinds whose constants are not what their text casts to.
    """
    if len(values) <= LONG or kind not in (Kind.TEXT, Kind.INTEGER):
        return None
    texts = [str(value if kind is Kind.TEXT else int(value)) for value in values]  # type: ignore[arg-type]
    used = set().union(*texts)
    free = [one for one in map(chr, range(1, 9)) if one not in used]
    if "\x00" in used or not free:
        return None
    return free[0].join(texts), free[0]


class Dialect(ABC):
    """One engine's SQL. Stateless: an engine has one of it for all queries.

    Its types are named in the engine's own words.
    """

    name: ClassVar[str]
    """What sqlglot calls the grammar."""

    types: ClassVar[dict[Kind, str]]
    """In which type each kind is computed: integers of 64 bits, doubles, text compared by its
    bytes, dates and timestamps without a zone."""

    wide: ClassVar[str]
    """The type of sums, and of what two 64-bit integers give."""

    largest_sum: ClassVar[int] = 2**126
    """Below this every integer fits the wide type, and so does the sum of two."""

    most_rows: ClassVar[int] = 2**40
    """No table is assumed to have more rows than this; the proofs against overflow use it."""

    grouping_sets: ClassVar[bool] = False
    """Whether rows are grouped by several sets of columns in one reading of them."""

    counts_before_ranking: ClassVar[bool] = False
    """Whether rows of units are counted first, so that those of units which have few enough are not
    sorted: cheaper where the engine reads a query once that is named twice, and few have more."""

    repeats_narrowed: ClassVar[int] = 0
    """How many further times ``narrowed`` writes its operand."""

    repeats_quotient: ClassVar[int] = 0
    """How many further times ``wide_quotient`` writes its operands."""

    repeats_number: ClassVar[int] = 2
    """How many times ``is_number`` writes its operand."""

    def sql(self, node: exp.Expression, *, copy: bool = True) -> str:
        """A tree as text; without ``copy`` the tree is of no use afterwards."""
        return node.sql(dialect=self.name, copy=copy)

    # --- types ----------------------------------------------------------------------------------

    def cast_to(self, node: exp.Expression, name: str) -> exp.Expression:
        """``CAST(node AS name)``; only where it cannot fail."""
        return exp.Cast(this=node, to=self.type_of(name))

    def type_of(self, name: str) -> exp.DataType:
        """A type by its name."""
        # Reading a type takes sqlglot longer than all else that makes a constant.
        return _parsed(name, self.name).copy()

    def cast(self, value: exp.Expression, kind: Kind) -> exp.Expression:
        """An integer as a real (the nearest), or a date as its midnight."""
        return self.cast_to(value, self.types[kind])

    def widened(self, value: exp.Expression) -> exp.Expression:
        """An integer in the wide type."""
        return self.cast_to(value, self.wide)

    @abstractmethod
    def narrowed(self, value: exp.Expression) -> exp.Expression:
        """A whole number of the wide type, or a double, in 64 bits; NULL where it does not fit."""

    # --- constants ------------------------------------------------------------------------------

    def null(self, kind: Kind | None = None) -> exp.Expression:
        """NULL, typed where the kind is known."""
        return self.cast(exp.Null(), kind) if kind else exp.Null()

    def integer(self, value: int) -> exp.Expression:
        """An integer of 64 bits."""
        return self.cast_to(_digits(str(value)), self.types[Kind.INTEGER])

    def nearest_integer(self, value: int) -> exp.Expression:
        """As ``integer``; a value that 64 bits cannot hold becomes the nearest that they can."""
        return self.integer(max(-LARGEST, min(LARGEST, value)))

    def wide_integer(self, value: int) -> exp.Expression:
        """An integer of the wide type."""
        return self.cast_to(_digits(str(value)), self.wide)

    def real(self, value: float | Fraction) -> exp.Expression:
        """The double nearest to the value: an exponent makes an engine read a double exactly."""
        if isinstance(value, Fraction):
            # A fraction beyond the doubles has no float at all: Python raises.
            value = float(max(-LARGEST_DOUBLE, min(LARGEST_DOUBLE, value)))
        shown = repr(value)
        # Infinity and NaN have no literal in SQL; as text they do.
        if "n" in shown:
            return self.cast_to(exp.Literal.string(shown), self.types[Kind.REAL])
        return self.cast_to(_digits(shown if "e" in shown else shown + "e0"), self.types[Kind.REAL])

    def text(self, value: str) -> exp.Expression:
        """A text, which compares by its bytes."""
        return self.cast_to(exp.Literal.string(value), self.types[Kind.TEXT])

    def day(self, value: dt.date, kind: Kind = Kind.DATE) -> exp.Expression:
        """A date, or as a timestamp its midnight."""
        return self.cast_to(exp.Literal.string(_day(value)), self.types[kind])

    def moment(self, value: dt.datetime) -> exp.Expression:
        """A timestamp without a zone."""
        shown = f"{_day(value.date())} {value.time().isoformat()}"
        return self.cast_to(exp.Literal.string(shown), self.types[Kind.TIMESTAMP])

    def constant(self, value: Value | None, kind: Kind | None = None) -> exp.Expression:
        """A public constant as a given kind (its own, if none is given)."""
        if value is None:
            return self.null(kind)
        kind = kind or kind_of_value(value)
        match value:
            case bool():
                return exp.Boolean(this=value)
            case int() | Fraction():
                real = kind is Kind.REAL
                return self.real(Fraction(value)) if real else self.integer(int(value))
            case str():
                return self.text(value)
            case dt.datetime():
                utc = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
                return self.day(utc.date()) if kind is Kind.DATE else self.moment(utc)
            case dt.date():
                return self.day(value, kind)

    # --- numbers --------------------------------------------------------------------------------

    def arithmetic(self, op: str, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """``+ - * // %`` of integers of one type whose result it holds; ``//`` goes towards zero.

        The divisor is not 0.
        """
        return binary(op, left, right)

    def wide_quotient(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """The quotient towards zero of a number of the wide type by an integer that is not 0.

        It is what one unit contributes to a sum that ``check_overflow`` lets pass, or a quotient of
        two 64-bit integers.
        """
        return self.arithmetic("//", left, right)

    def real_arithmetic(
        self, op: str, left: exp.Expression, right: exp.Expression
    ) -> exp.Expression:
        """``+ - * /`` of doubles, which may give infinities and NaN. The divisor is not 0."""
        return binary(op, left, right)

    @abstractmethod
    def is_number(self, value: exp.Expression) -> exp.Expression:
        """Whether a double is not NaN; NULL or false for NULL."""

    def without_nan(self, value: exp.Expression) -> exp.Expression:
        """The value of a double, NULL where it is NaN: tested before anything else is asked."""
        return case((self.is_number(value.copy()), value))

    def whole_type(self, largest: int) -> str:
        """The type to hold integers of at most this size in, which 64 bits hold.

        Whatever it is, ``summed_of_size`` adds such numbers without overflow.
        """
        return self.types[Kind.INTEGER]

    @abstractmethod
    def nearest(self, value: exp.Expression, name: str) -> exp.Expression:
        """The nearest integer to a double, halves to the even one, in a type that ``whole_type``
        gives; NULL where it does not fit, and of NaN, by itself and without a test."""

    def nearest_within(
        self, value: exp.Expression, lower: int, upper: int
    ) -> exp.Expression | None:
        """The nearest integer to a double, halves to the even one, moved into the bounds; NULL for
        NULL and NaN. ``None`` where the engine has no shorter form for it than the writer's own,
        which asks for ``nearest`` and for either bound.

        ``value`` is a column.
        """
        return None

    def nearest_scaled(
        self, value: exp.Expression, op: str, factor: float, lower: int, upper: int
    ) -> exp.Expression | None:
        """As ``nearest_within`` of ``value op factor``, where the engine has a shorter form that
        clamps the value itself. ``op`` is ``*`` or ``/``, ``factor`` above 0."""
        return None

    def floor(self, value: exp.Expression) -> exp.Expression:
        """The largest integer that is not larger than a double; NULL where 64 bits lack it."""
        return self.narrowed(call("FLOOR", value))

    def ceil(self, value: exp.Expression) -> exp.Expression:
        """The smallest integer that is not smaller than a double; NULL where 64 bits lack it."""
        return self.narrowed(call("CEIL", value))

    def absolute(self, value: exp.Expression) -> exp.Expression:
        """The absolute value, which fits the type of its operand."""
        return call("ABS", value)

    def least(self, *values: exp.Expression) -> exp.Expression:
        """The smallest of the values that are not NULL."""
        return call("LEAST", *values)

    def greatest(self, *values: exp.Expression) -> exp.Expression:
        """The largest of the values that are not NULL."""
        return call("GREATEST", *values)

    def summed(self, value: exp.Expression) -> exp.Expression:
        """The exact sum of integers of 64 bits or of the wide type, in the wide type; NULL of none.
        It may stand in a window."""
        return call("SUM", value)

    def sums_in_64_bits(self, size: int) -> bool:
        """Whether ``summed_of_size`` gives 64-bit integers for this size, which must then prove
        that no sum is larger. Left out, all sums are of the wide type."""
        return False

    def summed_of_size(self, value: exp.Expression, size: int) -> exp.Expression:
        """As ``summed``, where public facts prove that the sum is at most ``size`` times the number
        of rows of the table that is read. The type need not be the wide one."""
        return self.summed(value)

    # --- dates and text -------------------------------------------------------------------------

    @abstractmethod
    def date_part(self, part: str, value: exp.Expression) -> exp.Expression:
        """A part of a date or timestamp as an integer; Sunday is day 0 of a week."""

    @abstractmethod
    def date_truncate(self, part: str, value: exp.Expression) -> exp.Expression:
        """The first day of the year, quarter, month, week (a Monday) or day, as a date."""

    def lower(self, value: exp.Expression) -> exp.Expression:
        """Lower case, of every alphabet."""
        return call("LOWER", value)

    def upper(self, value: exp.Expression) -> exp.Expression:
        """Upper case, of every alphabet."""
        return call("UPPER", value)

    def substring(self, value: exp.Expression, start: int, length: int) -> exp.Expression:
        """So many characters (code points) from position ``start``, 1 being the first."""
        # No text is longer, and an engine may raise at a larger position.
        ends = (self.integer(min(n, 2**31 - 1)) for n in (start, length))
        return call("SUBSTRING", value, *ends)

    # --- what functions of a row are made of ------------------------------------------------------

    def rounded(self, value: exp.Expression) -> exp.Expression:
        """The nearest integer to a double, halves to the even one; NULL where 64 bits lack it."""
        return self.nearest(value, self.types[Kind.INTEGER])

    def half_away(self, value: exp.Expression) -> exp.Expression:
        """The nearest whole number to a double, halves away from zero, as a double."""
        one, zero, half = (self.real(n) for n in (1.0, 0.0, 0.5))
        size = self.absolute(value.copy())
        # Not floor(size + 0.5): for the double just below a half that sum is rounded to 1.
        low = self.cast(self.floor(size.copy()), Kind.REAL)
        up = case((binary(">=", binary("-", size.copy(), low.copy()), half), one), otherwise=zero)
        near = binary("+", low, up)
        turned = case(
            (binary("<", value.copy(), self.real(0.0)), exp.Neg(this=near.copy())), otherwise=near
        )
        # Larger ones are whole, and may have no integer of 64 bits on the way.
        return case((binary("<", size, self.real(2.0**52)), turned), otherwise=value)

    def elementary(self, name: str, *values: exp.Expression) -> exp.Expression:
        """``SQRT``, ``LN``, ``EXP`` or ``POWER`` of doubles, where it is defined and finite."""
        return call(name, *values)

    def length(self, value: exp.Expression) -> exp.Expression:
        """The code points of a text, as an integer."""
        return self.cast_to(call("CHAR_LENGTH", value), self.types[Kind.INTEGER])

    def trimmed(self, value: exp.Expression, side: str, letters: str) -> exp.Expression:
        """A text without those letters at its ends; ``side``: both, leading or trailing."""
        name = {"both": "BTRIM", "leading": "LTRIM", "trailing": "RTRIM"}[side]
        return call(name, value, self.text(letters))

    def replaced(self, value: exp.Expression, old: str, new: str) -> exp.Expression:
        """A text with every ``old``, from the left, made ``new``; ``old`` is not empty."""
        return call("REPLACE", value, self.text(old), self.text(new))

    def joined(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        """Two texts as one."""
        return exp.Paren(this=exp.DPipe(this=left, expression=right))

    def position(self, part: exp.Expression, whole: exp.Expression) -> exp.Expression:
        """Where a part is first found in a text, 1 at its start; 0 where it is not. An empty part
        is found at 1."""
        return self.cast_to(call("STRPOS", whole, part), self.types[Kind.INTEGER])

    def starts_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        """Whether a text starts with a part."""
        start = call("SUBSTRING", whole, self.integer(1), call("CHAR_LENGTH", part.copy()))
        return binary("=", start, part)

    def ends_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        """Whether a text ends with a part."""
        return binary("=", call("RIGHT", whole, call("CHAR_LENGTH", part.copy())), part)

    def matches(self, value: exp.Expression, pattern: Pattern) -> exp.Expression:
        """Whether a pattern is found in a text, in time that grows with the text alone.

        Raises
        ------
        UnsupportedError
            Where the engine has no form of the pattern for which that is known.
        """
        raise UnsupportedError(f"patterns are not offered on {self.name}")

    def like(self, value: exp.Expression, pattern: str) -> exp.Expression:
        """Whether a text is like a pattern of ``patterns.of_like``."""
        return self.matches(value, of_like(pattern))

    def shaped(self, value: exp.Expression, shape: Shape) -> exp.Expression:
        """What a shape makes of a text that its pattern matches as a whole; NULL of any other.

        Raises
        ------
        UnsupportedError
            Where the engine has no form of it.
        """
        raise UnsupportedError(
            f"thousands, decimal, date_format and trim of numbers are not read on {self.name}"
        )

    def day_number(self, value: exp.Expression) -> exp.Expression:
        """The days since the first of January of the year 1, of a date or timestamp."""
        day = self.cast_to(value, self.types[Kind.DATE])
        return self.cast_to(binary("-", day, self.day(FIRST_DAY)), self.types[Kind.INTEGER])

    def shifted(self, value: exp.Expression, amount: int, unit: str, kind: Kind) -> exp.Expression:
        """A date or timestamp so many days, months or seconds later, which is in the years 1 to
        9999; months lead to the same day, or the last one that there is."""
        interval = exp.Interval(
            this=exp.Literal.string(str(amount)), unit=exp.Var(this=unit.upper())
        )
        return self.cast_to(binary("+", value, interval), self.types[kind])

    def time_truncate(self, part: str, value: exp.Expression) -> exp.Expression:
        """The first moment of a timestamp's hour, minute or second."""
        found = call("DATE_TRUNC", exp.Literal.string(part), value)
        return self.cast_to(found, self.types[Kind.TIMESTAMP])

    def digits(self, value: exp.Expression, width: int = 0) -> exp.Expression:
        """An integer as text, filled with zeros where it is not negative and a width is given."""
        shown = self.cast_to(value, self.types[Kind.TEXT])
        if not width:
            return shown
        return call("LPAD", shown, exp.Literal.number(width), self.text("0"))

    def formatted(
        self, value: exp.Expression, pieces: Sequence[tuple[str, bool]]
    ) -> exp.Expression | None:
        """A date or timestamp as text by the pieces of ``dates.directives``; ``None`` where the
        engine has no form for it, and it is put together out of the parts."""
        return None

    def parsed(self, value: exp.Expression, kind: Kind) -> exp.Expression:
        """A text in one of the forms of ``casts.FORMS`` as that kind."""
        if kind is Kind.INTEGER:
            return self.narrowed(self.cast_to(value, self.wide))
        return self.cast_to(value, self.types[kind])

    # --- queries --------------------------------------------------------------------------------

    @abstractmethod
    def keyed_hash(self, seeds: Seeds, parts: Sequence[exp.Expression]) -> exp.Expression:
        """A hash of the parts, NULL among them, under a key.

        It need not be a cryptographic one, nor distinguish all values: what is kept of a unit is a
        function of that unit's rows and of the key, whatever the function, and the caller breaks
        ties by the parts themselves. The key is for fairness, so that nobody can choose an
        identifier that is always kept.
        """

    def in_part(self, value: exp.Expression, number: int, parts: int) -> exp.Expression:
        """Whether a value that is not NULL is in one of so many parts: each is in one, and equal
        values are in the same."""
        raise UnsupportedError(f"units are not read in parts on {self.name}")

    def brought_together(self, rows: exp.Select, by: Sequence[str], most: int) -> exp.Select:
        """The same rows, of which a part by ``by`` is wanted next, and one by more columns, in
        which it has about ``most`` rows at most: an engine of many machines may bring those of a
        part together at once."""
        return rows

    def row_number(self, partition: Sequence[exp.Expression]) -> exp.Expression:
        """The number of a row among those that are alike in all that is read of them: any order
        will do."""
        return exp.Window(this=exp.RowNumber(), partition_by=list(partition))

    def ranked(
        self,
        columns: Sequence[exp.Expression],
        source: exp.Expression,
        rank: exp.Expression,
        most: int,
        name: str,
    ) -> exp.Select:
        """Columns of the source's rows that a window function numbers up to ``most``.

        ``name`` is free for a column of its own.
        """
        numbered = selected([exp.Star(), named(rank, name)], source)
        limit = exp.LTE(this=identifier(name), expression=self.integer(most))
        return selected(columns, subquery(numbered, "numbered")).where(limit, copy=False)

    def listed(self, values: Sequence[tuple[int, Value]], kind: Kind) -> exp.Select:
        """Public values as a table: ``value``, and ``position`` as it is given."""
        rows = [exp.Tuple(expressions=[self.constant(v, kind), self.integer(i)]) for i, v in values]
        alias = exp.TableAlias(
            this=exp.to_identifier("listed", quoted=True),
            columns=[exp.to_identifier(n, quoted=True) for n in ("value", "position")],
        )
        return selected([exp.Star()], exp.Values(expressions=rows, alias=alias))

    def value_of(self, found: Any, kind: Kind) -> Any:
        """What the engine's driver hands over for a key, as Python's own type of the kind."""
        return found

    # --- how a source's columns are read ----------------------------------------------------------

    @abstractmethod
    def kind_of_type(self, stored: str) -> Kind | None:
        """The kind of a stored type; ``None`` for a type that is not read."""

    def zoned(self, stored: str) -> bool:
        """Whether a stored type is of moments with a time zone."""
        return False

    def element_of(self, stored: str) -> str | None:
        """The stored type of the elements of a list; ``None`` of a type that is not a list, or one
        whose elements cannot be read without failing on some value."""
        return None

    def unnested(self, value: exp.Expression) -> exp.Expression:
        """What stands in SELECT for each element of a list, NULL ones too: a row for each, and
        none where the list is empty or NULL."""
        return call("UNNEST", value)

    def first_items(self, value: exp.Expression, most: int) -> exp.Expression:
        """The first elements of a list, in its order, NULL ones too."""
        return call("LIST_SLICE", value, self.integer(1), self.integer(most))

    def number_of_items(self, value: exp.Expression) -> exp.Expression:
        """How many elements a list has, as an integer; NULL, or less than 0, of NULL."""
        return self.cast_to(call("CARDINALITY", value), self.types[Kind.INTEGER])

    def is_whole(self, stored: str) -> bool:
        """Whether all values of a type, as the engine names it in an answer, are whole numbers."""
        return self.kind_of_type(stored) is Kind.INTEGER

    def readable(self, stored: str, kind: Kind) -> bool:
        """Whether a column of the stored type can be declared as the kind."""
        found = self.kind_of_type(stored)
        if found is None:
            return False
        if kind is Kind.TEXT or found is Kind.TEXT or found is kind:
            return True
        if kind.numeric or kind is Kind.BOOLEAN:
            return found.numeric or found is Kind.BOOLEAN
        return kind.temporal and found.temporal

    @abstractmethod
    def one_to_one(self, stored: str, kind: Kind) -> bool:
        """Whether a unit of the stored type is read as the kind without taking two for one, or one
        for two.

        A unit is compared as it is stored. What cannot be held is NULL, and so is NaN: such rows
        are nobody's.
        """

    @abstractmethod
    def stored_alike(self, left: str, right: str) -> bool:
        """Whether two units of these stored types can be compared as they are stored."""

    @abstractmethod
    def typed(self, raw: exp.Expression, stored: str, kind: Kind) -> exp.Expression:
        """A column of the stored type as a value of the kind, or NULL; read as declared."""

    def read(self, raw: exp.Expression, stored: str, facts: ColumnFacts) -> exp.Expression:
        """As ``typed``, where a policy may say how what is stored as text is written."""
        if facts.reading is None or self.kind_of_type(stored) is not Kind.TEXT:
            return self.typed(raw, stored, facts.kind)
        text = plain(self, self.typed(raw, stored, Kind.TEXT), facts.reading, facts.kind)
        # A text of the engine's own type by now, whatever it was.
        return self.typed(text, self.types[Kind.TEXT].lower(), facts.kind)

    def held(self, raw: exp.Expression, stored: str, facts: ColumnFacts) -> exp.Expression:
        """Whether the source says anything: not NULL, and no text that stands for it."""
        if self.kind_of_type(stored) is not Kind.TEXT:
            return case((is_not_null(raw), exp.true()), otherwise=exp.false())
        return held(self, self.typed(raw, stored, Kind.TEXT), facts.reading, facts.kind)

    @abstractmethod
    def largest(self, stored: str, kind: Kind) -> Fraction | None:
        """No number that a column of the stored type is read as is larger than this in size.

        It follows from the type alone. ``None`` where a real may be infinite.
        """

    def cleaned(self, value: exp.Expression, facts: ColumnFacts) -> exp.Expression:
        """A typed value, or NULL in place of what no column of these facts holds.

        After it a real is not NaN, a date or timestamp lies in the years 1 to 9999, and with
        ``values`` declared everything else is NULL. Nothing else that is declared is applied.
        Bounds in particular move no value: filters and keys see it as it is, aggregates clamp.
        """
        kind = facts.kind
        if facts.values is not None:
            held = [v for v in facts.values if kind is not Kind.INTEGER or _fits(v)]
            if not held:
                return self.null(kind)
            options = [self.constant(v, kind) for v in held]
            return case((exp.In(this=value.copy(), expressions=options), value))
        if kind is Kind.REAL:
            return self.without_nan(value)
        if kind.temporal:
            first, last = (self.constant(day, kind) for day in (FIRST_DAY, LAST_MOMENT))
            return case((exp.Between(this=value.copy(), low=first, high=last), value))
        return value

    def largest_read(self, stored: str, facts: ColumnFacts) -> Fraction | None:
        """As ``largest``, or by a list of values that ``cleaned`` enforces; never by bounds, which
        are only declared."""
        if facts.values is not None:
            numbers = [abs(Fraction(v)) for v in facts.values if isinstance(v, int | Fraction)]
            return max(numbers, default=Fraction(0))
        return self.largest(stored, facts.kind)


def _digits(text: str) -> exp.Expression:
    return exp.Literal(this=text, is_string=False)


def _day(value: dt.date) -> str:
    return f"{value.year:04d}-{value.month:02d}-{value.day:02d}"


def _fits(value: Value) -> bool:
    return abs(Fraction(value)) <= LARGEST  # type: ignore[arg-type]
