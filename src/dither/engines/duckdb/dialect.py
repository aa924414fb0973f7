"""DuckDB's SQL: what it spells in its own way, forms that cannot fail, and how types are read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from dither.engines.duckdb.names import text
from dither.engines.writer.dialect import LARGEST, Dialect, Seeds, joined
from dither.engines.writer.forms import all_of, binary, call, case, named, selected
from dither.plan.functions.matchers import spelled
from dither.plan.functions.patterns import Pattern
from dither.plan.readings import Shape
from dither.plan.schema import ColumnFacts, Kind, Value

__all__ = ["DUCKDB", "SHORT_SUM", "DuckDBDialect"]


BITS = {
    **{"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63},
    **{"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32},
}
SMALL = set(BITS)
WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
REAL = {"FLOAT", "DOUBLE"}
STAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"}
FINE_ZONED = {"TIMESTAMPTZ_NS"}
WORDS = {"VARCHAR", "UUID", "ENUM"}

SHORT_SUM = "SUM_NO_OVERFLOW"
"""The engine's sum in 64 bits. It wraps around without a word, so it stands only where no sum can
leave these. The engine says that it is its own, so a connection that lacks it is given another
under its name (``engines.duckdb.connection``)."""


def _written(elements: Iterable[str]) -> exp.Expression:
    """What stands between a list's brackets, where it is text already."""
    return exp.Var(this=", ".join(elements))


def _base(stored: str) -> str:
    """The type without its parameters."""
    return stored.upper().split("(")[0].strip()


class DuckDBDialect(Dialect):
    """DuckDB's SQL. Text compares by its bytes, and sums of integers have 128 bits, by themselves;
    those that surely fit have 64.

    A column is read in two steps, so that an expensive cast is computed once: ``typed`` gives a
    value of the declared kind or NULL, ``cleaned`` leaves NULL in place of what no column holds.

    Examples
    --------
    >>> DUCKDB.sql(DUCKDB.real(0.1))
    'CAST(0.1e0 AS DOUBLE)'
    >>> DUCKDB.kind_of_type("DECIMAL(18,2)"), DUCKDB.kind_of_type("STRUCT(a INTEGER)")
    (<Kind.REAL: 'real'>, None)
    >>> DUCKDB.one_to_one("BIGINT", Kind.REAL), DUCKDB.one_to_one("DECIMAL(38,0)", Kind.TEXT)
    (False, True)
    >>> DUCKDB.stored_alike("INTEGER", "UBIGINT"), DUCKDB.stored_alike("BIGINT", "VARCHAR")
    (True, False)
    >>> DUCKDB.largest("TINYINT", Kind.INTEGER)
    Fraction(128, 1)
    """

    name = "duckdb"
    types: ClassVar[dict[Kind, str]] = {
        Kind.INTEGER: "BIGINT",
        Kind.REAL: "DOUBLE",
        Kind.TEXT: "VARCHAR",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }
    wide = "HUGEINT"
    grouping_sets = True
    counts_before_ranking = True

    def narrowed(self, value: exp.Expression) -> exp.Expression:
        return self.tried(value, "BIGINT")

    def is_number(self, value: exp.Expression) -> exp.Expression:
        """Not by ``ISNAN``, which the optimizer answers from a file's statistics where these leave
        NaN out."""
        return binary("OR", call("ISFINITE", value.copy()), call("ISINF", value.copy()))

    def whole_type(self, largest: int) -> str:
        # Half as wide is a quarter faster; no sum of either overflows its type.
        return "INTEGER" if largest < 2**31 else "BIGINT"

    def sums_in_64_bits(self, size: int) -> bool:
        return size * self.most_rows <= LARGEST

    def summed_of_size(self, value: exp.Expression, size: int) -> exp.Expression:
        if not self.sums_in_64_bits(size):
            return self.summed(value)
        # The engine's own sum that tests for no overflow keeps half as much for each group. It says
        # that its type is the wide one, and takes no doubles: of these a trial would fail.
        return self.cast(call(SHORT_SUM, value), Kind.INTEGER)

    def nearest(self, value: exp.Expression, name: str) -> exp.Expression:
        # DuckDB's cast rounds halves to even.
        return self.tried(value, name)

    def nearest_within(
        self, value: exp.Expression, lower: int, upper: int
    ) -> exp.Expression | None:
        """What fits the type is compared as the integer that it is; of the rest, which is rare, the
        double says on which side it is, or that it is NaN. Where nothing is below 0, one comparison
        tells almost every row, since what has no sign holds nothing below."""
        signed = lower != 0 or upper >= 2**32
        kind = self.whole_type(max(abs(lower), abs(upper))) if signed else "UINTEGER"
        least, most = (self.cast_to(exp.Literal.number(str(end)), kind) for end in (lower, upper))
        whole = self.nearest(value, kind)

        def beyond(op: str, end: int) -> exp.Expression:
            return all_of(
                "AND",
                [binary(op, value.copy(), self.real(Fraction(end))), self.is_number(value)],
            )

        within: exp.Expression = binary("<=", whole.copy(), most.copy())
        if signed:
            within = exp.Between(this=whole.copy(), low=least.copy(), high=most.copy())
        return case(
            (within, whole),
            (binary(">", whole.copy(), most.copy()), most),
            (beyond("<=", lower), least),
            (beyond(">=", upper), most.copy()),
        )

    def date_part(self, part: str, value: exp.Expression) -> exp.Expression:
        name = {"dayofweek": "dow"}.get(part, part)
        return self.cast_to(call("DATE_PART", exp.Literal.string(name), value), "BIGINT")

    def date_truncate(self, part: str, value: exp.Expression) -> exp.Expression:
        return self.cast_to(call("DATE_TRUNC", exp.Literal.string(part), value), "DATE")

    def half_away(self, value: exp.Expression) -> exp.Expression:
        return call("ROUND", value)

    def length(self, value: exp.Expression) -> exp.Expression:
        return call("LENGTH", value)

    def trimmed(self, value: exp.Expression, side: str, letters: str) -> exp.Expression:
        name = {"both": "TRIM", "leading": "LTRIM", "trailing": "RTRIM"}[side]
        return call(name, value, self.text(letters))

    def starts_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        return call("STARTS_WITH", whole, part)

    def ends_with(self, whole: exp.Expression, part: exp.Expression) -> exp.Expression:
        return call("ENDS_WITH", whole, part)

    def matches(self, value: exp.Expression, pattern: Pattern) -> exp.Expression:
        """RE2, whose time is linear in the text whatever the pattern."""
        shown = spelled(pattern, start=r"\A", end=r"\z", point=r"\x{{{:x}}}", every=r"(?s:.)")
        return call("REGEXP_MATCHES", value, exp.Literal.string(shown))

    def shaped(self, value: exp.Expression, shape: Shape) -> exp.Expression:
        """RE2, whose time is linear in the text."""
        pattern = exp.Literal.string(rf"\A(?:{shape.pattern})\z")
        made = "".join(part if isinstance(part, str) else rf"\{part}" for part in shape.made)
        found = call("REGEXP_REPLACE", value.copy(), pattern, exp.Literal.string(made))
        return case((call("REGEXP_MATCHES", value, pattern.copy()), found))

    def like(self, value: exp.Expression, pattern: str) -> exp.Expression:
        if "_" in pattern or "\\" in pattern:
            # The engine's own matcher goes back and tries again where there are single letters.
            return super().like(value, pattern)
        return exp.Paren(this=exp.Like(this=value, expression=exp.Literal.string(pattern)))

    def formatted(
        self, value: exp.Expression, pieces: Sequence[tuple[str, bool]]
    ) -> exp.Expression:
        # A fifth of the time that the parts take, each by itself.
        shown = "".join(f"%{text}" if part else text.replace("%", "%%") for text, part in pieces)
        return call("STRFTIME", value, exp.Literal.string(shown))

    def parsed(self, value: exp.Expression, kind: Kind) -> exp.Expression:
        return self.tried(value, self.types[kind])

    def keyed_hash(self, seeds: Seeds, parts: Sequence[exp.Expression]) -> exp.Expression:
        """The engine's own hash, twice: its combination of values is close to linear, and alone
        would favour some groups."""
        first, second = (self._unsigned(seed) for seed in (seeds.first, seeds.second))
        inner = call("HASH", first, *(p.copy() for p in parts))
        return call("HASH", call("XOR", inner, second))

    def in_part(self, value: exp.Expression, number: int, parts: int) -> exp.Expression:
        place = binary("%", call("HASH", value), self._unsigned(parts))
        return binary("=", place, self._unsigned(number))

    def _unsigned(self, value: int) -> exp.Expression:
        return self.cast_to(exp.Literal(this=str(value), is_string=False), "UBIGINT")

    def ranked(
        self,
        columns: Sequence[exp.Expression],
        source: exp.Expression,
        rank: exp.Expression,
        most: int,
        name: str,
    ) -> exp.Select:
        found = selected(columns, source)
        limit = exp.LTE(this=rank, expression=self.integer(most))
        found.set("qualify", exp.Qualify(this=limit))
        return found

    def listed(self, values: Sequence[tuple[int, Value]], kind: Kind) -> exp.Select:
        held = self._split([value for _, value in values], kind)
        if held is None:
            held = self._list(self._elements([v for _, v in values], kind), self.types[kind])
        # Positions are what rows are grouped by, so they are as narrow as they can be.
        narrow = "UTINYINT" if all(place < 256 for place, _ in values) else "INTEGER"
        places = self._list([_written(str(place) for place, _ in values)], narrow)
        return exp.select(
            named(call("UNNEST", held), "value"), named(call("UNNEST", places), "position")
        )

    def _split(self, values: Sequence[Value], kind: Kind) -> exp.Expression | None:
        """A long list as one text that is split."""
        found = joined(values, kind)
        if found is None:
            return None
        split = call("STRING_SPLIT", *map(exp.Literal.string, found))
        return self.cast_to(split, f"{self.types[kind]}[]")

    def _elements(self, values: Sequence[Value], kind: Kind) -> list[exp.Expression]:
        """Constants that stand in a list of their type. Texts and whole numbers need no type of
        their own there: to write, read and plan one for each took longer than all else in a short
        question."""
        if kind is Kind.TEXT:
            return [_written(text(str(value)) for value in values)]
        if kind is Kind.INTEGER:
            return [_written(str(int(value)) for value in values)]  # type: ignore[arg-type]
        return [self.constant(value, kind) for value in values]

    def _list(self, nodes: list[exp.Expression], name: str) -> exp.Expression:
        return self.cast_to(exp.Array(expressions=nodes), f"{name}[]")

    # --- how a source's columns are read ----------------------------------------------------------

    def kind_of_type(self, stored: str) -> Kind | None:
        base = _base(stored)
        if stored.endswith("]"):
            return None
        if base in SMALL or base in WIDE:
            return Kind.INTEGER
        if base in REAL or base == "DECIMAL":
            return Kind.REAL
        if base in WORDS:
            return Kind.TEXT
        if base in STAMPS | ZONED | FINE_ZONED:
            return Kind.TIMESTAMP
        return {"BOOLEAN": Kind.BOOLEAN, "DATE": Kind.DATE}.get(base)

    def zoned(self, stored: str) -> bool:
        """Whether a stored type is of moments with a time zone."""
        return _base(stored) in ZONED | FINE_ZONED

    def element_of(self, stored: str) -> str | None:
        """Of lists of any length, and of one; moments in them could fail as a file is read."""
        element = re.sub(r"\[[0-9]*\]$", "", stored)
        kind = None if element == stored else self.kind_of_type(element)
        return element if kind is not None and kind is not Kind.TIMESTAMP else None

    def number_of_items(self, value: exp.Expression) -> exp.Expression:
        return call("LEN", value)

    def one_to_one(self, stored: str, kind: Kind) -> bool:
        """A unit keeps the kind of its type, but for whole numbers, decimals, UUIDs and
        enumerations, each of which has one text of its own and may be read as that.

        A whole number is read in 64 bits: beyond them people would be nobody, so that a unit of a
        wider type is read as text.
        Text is never read as anything else (``'7'``, ``'07'`` and ``'7.4'`` are one whole number),
        nor a double as text (0 and -0 are one number and two texts).
        """
        base = _base(stored)
        return {
            Kind.INTEGER: base in SMALL,
            Kind.REAL: base in REAL,
            Kind.TEXT: base in SMALL | WIDE | WORDS | {"DECIMAL"},
            Kind.BOOLEAN: base == "BOOLEAN",
            Kind.DATE: base == "DATE",
            Kind.TIMESTAMP: base in {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"} | ZONED,
        }[kind]

    def stored_alike(self, left: str, right: str) -> bool:
        families = (SMALL | WIDE, REAL, WORDS - {"UUID"}, STAMPS, ZONED | FINE_ZONED)
        ours, theirs = _base(left), _base(right)
        alike = any({ours, theirs} <= family for family in families)
        # Decimals of two scales have two texts of one number.
        return alike or (left.upper() == right.upper())

    def largest(self, stored: str, kind: Kind) -> Fraction | None:
        base = _base(stored)
        if base in BITS:
            return Fraction(2 ** BITS[base])
        if kind is Kind.INTEGER:
            return Fraction(2**63)
        return Fraction(10**39) if base in WIDE or base == "DECIMAL" else None

    def tried(self, node: exp.Expression, name: str) -> exp.Expression:
        """``TRY_CAST(node AS name)``: NULL where the value does not fit."""
        return exp.TryCast(this=node, to=self.type_of(name))

    def typed(self, raw: exp.Expression, stored: str, kind: Kind) -> exp.Expression:
        base, goal = _base(stored), self.types[kind]
        if base == goal:
            return raw
        if kind is Kind.INTEGER and base in SMALL:
            return self.cast_to(raw, goal)
        if kind.temporal and base in ZONED | FINE_ZONED:
            # The engine's time zone is UTC, so this is the time in UTC.
            zoned = self.tried(raw, "TIMESTAMPTZ") if base in FINE_ZONED else raw
            raw, base = self.tried(zoned, "TIMESTAMP"), "TIMESTAMP"
        elif kind is Kind.TIMESTAMP and base in WORDS:
            # Text without a zone is in UTC; an offset in it is honoured.
            zoned = self.tried(self.tried(raw, "VARCHAR"), "TIMESTAMPTZ")
            raw, base = self.tried(zoned, "TIMESTAMP"), "TIMESTAMP"
        elif kind is Kind.TEXT and base in STAMPS | ZONED | FINE_ZONED | {"DATE"}:
            return self._date_as_text(raw, stored)
        elif base in ("ENUM", "UUID") and kind is not Kind.TEXT:
            raw = self.tried(raw, "VARCHAR")
        return raw if base == goal else self.tried(raw, goal)

    def _date_as_text(self, raw: exp.Expression, stored: str) -> exp.Expression:
        # Even TRY_CAST fails on a timestamp that the engine cannot print, so those go first.
        kind = Kind.DATE if _base(stored) == "DATE" else Kind.TIMESTAMP
        known = self.cleaned(self.typed(raw, stored, kind), ColumnFacts("", kind))
        return self.cast(known, Kind.TEXT)


DUCKDB = DuckDBDialect()
