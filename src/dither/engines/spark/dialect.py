"""Spark's SQL: what it spells in its own way, forms that cannot fail, and how types are read.

Everything here is said of ANSI mode, which ``sessions`` switches on, and holds on any value:

- Sums and products are decimals of 38 digits. ``largest_sum`` is below 10³⁸ / 2, so that by
  ``check_overflow`` neither a sum nor the sum of two leaves them; where public facts leave less
  than 2⁶³ for all rows together, 64-bit integers do.
- ``DIV`` of decimals wraps around unseen, and ``/`` keeps 32 digits before the point. A quotient of
  wide numbers is what one unit may contribute, so times ``most_rows`` it is below ``largest_sum``,
  and has 26 digits.
- NaN is the largest double and equals itself; 0 and -0 are equal, in groups and joins too.
- A cast to an integer saturates at 2⁶³, which is why doubles are compared before they are cast.
- Text compares by its bytes, unless a column has a collation, which is taken off as it is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from dither.engines.writer.dialect import FIRST_DAY, LARGEST, Dialect, Seeds
from dither.engines.writer.forms import binary, call, case, identifier, named
from dither.errors import UnsupportedError
from dither.plan.functions.matchers import one_pass
from dither.plan.functions.patterns import Pattern
from dither.plan.readings import Shape
from dither.plan.schema import ColumnFacts, Kind, Value

__all__ = ["SPARK", "SparkDialect"]

BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
REAL = {"float", "double"}
WORDS = {"string", "char", "varchar"}
FEW_ROWS = 64
"""Rows of a unit in a group: so few are brought together before they are counted.

To count those of each task first, and then move what is left, takes two moves, one by unit and
group and one by unit, and leaves out little where a unit has few rows that lie apart. Of a million
rows, 2.5 in each group of a unit, one move took a fifth less of the processors' time, and a
sixteenth less where they lie side by side; with 25 rows it took a sixth more, and half as much more
where they lie side by side.
"""
LONGEST_HELD = 18
"""Every whole number of so many digits fits 64 bits."""

DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def _base(stored: str) -> str:
    """The type without its parameters and collation."""
    return re.split(r"[ (<]", stored, maxsplit=1)[0]


def _digits(stored: str) -> tuple[int, int] | None:
    """Digits of a decimal type: all of them, and those after the point."""
    found = DECIMAL.fullmatch(stored)
    return (int(found[1]), int(found[2])) if found else None


def _held(stored: str) -> bool:
    """Whether all values of a type are whole numbers of 64 bits."""
    digits = _digits(stored)
    return _base(stored) in BITS or (digits is not None and digits <= (LONGEST_HELD, 0))


def _is_whole(stored: str) -> bool:
    digits = _digits(stored)
    return _base(stored) in BITS or (digits is not None and digits[1] == 0)


class SparkDialect(Dialect):
    """Spark's SQL, of version 4. Types are named as ``DataType.simpleString`` names them.

    Examples
    --------
    >>> SPARK.sql(SPARK.real(0.1))
    'CAST(0.1e0 AS DOUBLE)'
    >>> SPARK.kind_of_type("decimal(18,0)"), SPARK.kind_of_type("decimal(18,2)")
    (<Kind.INTEGER: 'integer'>, <Kind.REAL: 'real'>)
    >>> SPARK.kind_of_type("map<int,int>") is SPARK.kind_of_type("void") is None
    True
    >>> SPARK.one_to_one("bigint", Kind.REAL), SPARK.one_to_one("decimal(38,0)", Kind.TEXT)
    (False, True)
    >>> SPARK.stored_alike("int", "decimal(20,0)"), SPARK.stored_alike("bigint", "string")
    (True, False)
    >>> SPARK.largest("tinyint", Kind.INTEGER)
    Fraction(128, 1)
    """

    # Databricks' grammar is Spark's with TRY_CAST, which sqlglot would write as CAST for Spark.
    name = "databricks"
    types: ClassVar[dict[Kind, str]] = {
        Kind.INTEGER: "BIGINT",
        Kind.REAL: "DOUBLE",
        Kind.TEXT: "STRING",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP_NTZ",
    }
    wide = "DECIMAL(38, 0)"
    grouping_sets = True
    largest_sum = 2**125
    most_rows = 2**36
    repeats_narrowed = 1
    repeats_quotient = 1
    repeats_number = 1

    def narrowed(self, value: exp.Expression) -> exp.Expression:
        """Of a number of the wide type; ``floor`` and ``ceil`` treat doubles themselves."""
        return self.tried(value, "BIGINT")

    def is_number(self, value: exp.Expression) -> exp.Expression:
        return binary("<", value, self.real(float("nan")))

    def whole_type(self, largest: int) -> str:
        return "INT" if largest < 2**31 else "BIGINT"

    def nearest(self, value: exp.Expression, name: str) -> exp.Expression:
        # 2⁶³ itself becomes the integer before it; bounds end at 2⁶².
        return self.tried(call("RINT", value), name)

    def floor(self, value: exp.Expression) -> exp.Expression:
        return self._whole("FLOOR", value)

    def ceil(self, value: exp.Expression) -> exp.Expression:
        return self._whole("CEIL", value)

    def _whole(self, turn: str, value: exp.Expression) -> exp.Expression:
        low, high = self.real(-(2.0**63)), self.real(2.0**63 - 1024)
        within = exp.Between(this=value.copy(), low=low, high=high)
        return case((within, call(turn, value)))

    def wide_quotient(self, left: exp.Expression, right: exp.Expression) -> exp.Expression:
        rest = binary("%", left.copy(), right.copy())
        return self.widened(binary("/", binary("-", left, rest), right))

    def least(self, *values: exp.Expression) -> exp.Expression:
        return call("LEAST", *values) if len(values) > 1 else values[0]

    def greatest(self, *values: exp.Expression) -> exp.Expression:
        return call("GREATEST", *values) if len(values) > 1 else values[0]

    def summed(self, value: exp.Expression) -> exp.Expression:
        return call("SUM", self.widened(value))

    def sums_in_64_bits(self, size: int) -> bool:
        return size * self.most_rows <= LARGEST

    def summed_of_size(self, value: exp.Expression, size: int) -> exp.Expression:
        if self.sums_in_64_bits(size):
            return call("SUM", self.cast(value, Kind.INTEGER))
        return self.summed(value)

    def date_part(self, part: str, value: exp.Expression) -> exp.Expression:
        if part == "isoyear":
            return self.cast(
                call("DATE_PART", exp.Literal.string("YEAROFWEEK"), value), Kind.INTEGER
            )
        names = {"week": "WEEKOFYEAR", "isodow": "WEEKDAY"}
        found = self.cast(call(names.get(part, part.upper()), value), Kind.INTEGER)
        # Sunday is 1 in one of them, and Monday 0 in the other.
        moves = {"dayofweek": "-", "isodow": "+"}
        return binary(moves[part], found, self.integer(1)) if part in moves else found

    def date_truncate(self, part: str, value: exp.Expression) -> exp.Expression:
        day = self.cast(value, Kind.DATE)
        return day if part == "day" else call("TRUNC", day, exp.Literal.string(part.upper()))

    def substring(self, value: exp.Expression, start: int, length: int) -> exp.Expression:
        most = 2**30  # Two of these still fit an INT.
        ends = (self.cast_to(self.integer(min(n, most)), "INT") for n in (start, length))
        return call("SUBSTRING", value, *ends)

    def half_away(self, value: exp.Expression) -> exp.Expression:
        return call("ROUND", value, self.cast_to(self.integer(0), "INT"))

    def trimmed(self, value: exp.Expression, side: str, letters: str) -> exp.Expression:
        return exp.Trim(this=value, expression=self.text(letters), position=side.upper())

    def position(self, part: exp.Expression, whole: exp.Expression) -> exp.Expression:
        return self.cast(call("INSTR", whole, part), Kind.INTEGER)

    def starts_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        return call("STARTSWITH", whole, part)

    def ends_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        return call("ENDSWITH", whole, part)

    def matches(self, value: exp.Expression, pattern: Pattern) -> exp.Expression:
        """Java's matcher goes back and tries again, and could be made to do so for ever."""
        shown = one_pass(pattern)
        if shown is None:
            raise UnsupportedError(
                "Spark does not run this regular expression in a time that grows with the text "
                "alone; write one of a bounded length without + and *, or LIKE"
            )
        return call("RLIKE", value, self.text(shown))

    def shaped(self, value: exp.Expression, shape: Shape) -> exp.Expression:
        """Java's matcher goes back by a number of steps that the pattern bounds."""
        pattern = rf"\A(?:{shape.pattern})\z"
        made = "".join(part if isinstance(part, str) else f"${part}" for part in shape.made)
        found = call("REGEXP_REPLACE", value.copy(), self.text(pattern), self.text(made))
        return case((call("RLIKE", value, self.text(pattern)), found))

    def day_number(self, value: exp.Expression) -> exp.Expression:
        day = self.cast(value, Kind.DATE)
        return self.cast(call("DATEDIFF", day, self.day(FIRST_DAY)), Kind.INTEGER)

    def shifted(self, value: exp.Expression, amount: int, unit: str, kind: Kind) -> exp.Expression:
        if kind is not Kind.DATE:
            return super().shifted(value, amount, unit, kind)
        name = "ADD_MONTHS" if unit == "month" else "DATE_ADD"
        return call(name, value, self.cast_to(self.integer(amount), "INT"))

    def parsed(self, value: exp.Expression, kind: Kind) -> exp.Expression:
        return self.tried(value, self.types[kind])

    def keyed_hash(self, seeds: Seeds, parts: Sequence[exp.Expression]) -> exp.Expression:
        """The engine's own hash, twice. The first seed is hashed first, and so all that follows is
        hashed with what became of it; NULL leaves that as it is.

        Seeds are bytes, of which no two have one hash, as no two integers have. Spark writes a
        program for a query, with its numbers in it and its bytes beside it: of another key it runs
        the same program, which it need not compile and warm up anew.
        """
        first, second = (
            exp.HexString(this=seed.to_bytes(8).hex()) for seed in (seeds.first, seeds.second)
        )
        return call("XXHASH64", second, call("XXHASH64", first, *(p.copy() for p in parts)))

    def brought_together(self, rows: exp.Select, by: Sequence[str], most: int) -> exp.Select:
        if most > FEW_ROWS:
            return rows
        moved = exp.Anonymous(this="REPARTITION", expressions=[identifier(name) for name in by])
        rows.set("hint", exp.Hint(expressions=[moved]))
        return rows

    def row_number(self, partition: Sequence[exp.Expression]) -> exp.Expression:
        """Spark numbers no rows without an order, and takes one that orders nothing."""
        return exp.Window(
            this=exp.RowNumber(),
            partition_by=list(partition),
            order=exp.Order(expressions=[exp.Null()]),
        )

    def listed(self, values: Sequence[tuple[int, Value]], kind: Kind) -> exp.Select:
        if values:
            return super().listed(values, kind)
        columns = [named(self.null(kind), "value"), named(self.null(Kind.INTEGER), "position")]
        return exp.select(*columns).where(exp.false(), copy=False)

    # --- how a source's columns are read ----------------------------------------------------------

    def kind_of_type(self, stored: str) -> Kind | None:
        base = _base(stored)
        if _is_whole(stored):
            return Kind.INTEGER
        if base in REAL or base == "decimal":
            return Kind.REAL
        if base in WORDS:
            return Kind.TEXT
        return {
            "boolean": Kind.BOOLEAN,
            "date": Kind.DATE,
            "timestamp": Kind.TIMESTAMP,
            "timestamp_ntz": Kind.TIMESTAMP,
        }.get(stored)

    def zoned(self, stored: str) -> bool:
        """Spark's own timestamps are shown in the zone of whoever looks."""
        return stored == "timestamp"

    def element_of(self, stored: str) -> str | None:
        if not (stored.startswith("array<") and stored.endswith(">")):
            return None
        element = stored.removeprefix("array<")[:-1]
        return element if self.kind_of_type(element) else None

    def unnested(self, value: exp.Expression) -> exp.Expression:
        return call("EXPLODE", value)

    def first_items(self, value: exp.Expression, most: int) -> exp.Expression:
        return call("SLICE", value, exp.Literal.number(1), exp.Literal.number(most))

    def one_to_one(self, stored: str, kind: Kind) -> bool:
        """A unit keeps the kind of its type; whole numbers and decimals have one text each.

        A whole number beyond 64 bits would be NULL as an integer, so that a unit of a wider type is
        read as text. Blanks at the end of a ``CHAR`` are not stored, but padded.
        """
        base = _base(stored)
        return {
            Kind.INTEGER: _held(stored),
            Kind.REAL: base in REAL,
            Kind.TEXT: base in WORDS or _is_whole(stored) or base == "decimal",
            Kind.BOOLEAN: stored == "boolean",
            Kind.DATE: stored == "date",
            Kind.TIMESTAMP: base in ("timestamp", "timestamp_ntz"),
        }[kind]

    def stored_alike(self, left: str, right: str) -> bool:
        both = (left, right)
        if any(all(_base(s) in family for s in both) for family in (REAL, WORDS)):
            return True
        return all(map(_is_whole, both)) or left == right

    def largest(self, stored: str, kind: Kind) -> Fraction | None:
        base, digits = _base(stored), _digits(stored)
        if base in BITS:
            return Fraction(2 ** BITS[base])
        if kind is Kind.INTEGER:
            return Fraction(2**63)
        return Fraction(10 ** (digits[0] - digits[1])) if digits else None

    def tried(self, node: exp.Expression, name: str) -> exp.Expression:
        """``TRY_CAST(node AS name)``: NULL where the value does not fit."""
        return exp.TryCast(this=node, to=self.type_of(name))

    def typed(self, raw: exp.Expression, stored: str, kind: Kind) -> exp.Expression:
        base, goal = _base(stored), self.types[kind]
        if base in WORDS:
            return self._of_text(raw, stored, kind)
        if stored == goal.lower():
            return raw
        if kind is Kind.TEXT and base in ("date", "timestamp", "timestamp_ntz"):
            # A year beyond 9999 is NULL, as in a date that is read as one.
            own = Kind.DATE if base == "date" else Kind.TIMESTAMP
            found = self.cleaned(self.typed(raw, stored, own), ColumnFacts("", own))
            return self.cast(found, Kind.TEXT)
        if kind is Kind.INTEGER and base in REAL:
            return self.rounded(self.cast(raw, Kind.REAL))
        if kind is Kind.INTEGER and base == "decimal" and not _is_whole(stored):
            return self.narrowed(call("ROUND", raw, exp.Literal.number(0)))
        return self.tried(raw, goal)

    def rounded(self, value: exp.Expression) -> exp.Expression:
        """The nearest integer to a double; NULL where 64 bits lack it."""
        low, high = self.real(-(2.0**63)), self.real(2.0**63 - 1024)
        within = exp.Between(this=value.copy(), low=low, high=high)
        return case((within, self.tried(call("RINT", value), "BIGINT")))

    def _of_text(self, raw: exp.Expression, stored: str, kind: Kind) -> exp.Expression:
        if "collate" in stored:
            raw = exp.Collate(this=raw, expression=exp.Var(this="UTF8_BINARY"))
        # A text of other bytes than UTF-8 is NULL: two of them could be shown as one.
        text = call("TRY_VALIDATE_UTF8", raw)
        if _base(stored) == "char":
            text = call("RTRIM", text)
        if kind is Kind.TEXT:
            return text
        if kind is Kind.TIMESTAMP:
            # Text without a zone is in UTC, which the session's is; an offset in it is honoured.
            text = self.tried(text, "TIMESTAMP")
        return self.tried(text, self.types[kind])


SPARK = SparkDialect()
