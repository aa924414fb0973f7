"""DuckDB's types: which kinds a column of each is read as, how, and what that keeps apart."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from sqlglot import exp

from dither.engines.writer.dialect import Dialect
from dither.plan.kinds import Kind
from dither.plan.schema import ColumnFacts

__all__ = ["DuckDBTypes"]

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


def _base(stored: str) -> str:
    """The type without its parameters."""
    return stored.upper().split("(")[0].strip()


class DuckDBTypes(Dialect):
    """The part of DuckDB's dialect that reads stored columns.

    A column is read in two steps, so that an expensive cast is computed once: ``typed`` gives a
    value of the declared kind or NULL, ``cleaned`` leaves NULL in place of what no column holds.
    """

    types: ClassVar[dict[Kind, str]] = {
        Kind.INTEGER: "BIGINT",
        Kind.REAL: "DOUBLE",
        Kind.TEXT: "VARCHAR",
        Kind.BOOLEAN: "BOOLEAN",
        Kind.DATE: "DATE",
        Kind.TIMESTAMP: "TIMESTAMP",
    }
    wide = "HUGEINT"

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

    def one_to_one(self, stored: str, kind: Kind) -> bool:
        """A unit keeps the kind of its type, but for whole numbers, decimals, UUIDs and
        enumerations, each of which has one text of its own and may be read as that.

        Text is never read as anything else (``'7'``, ``'07'`` and ``'7.4'`` are one whole number),
        nor a double as text (0 and -0 are one number and two texts).
        """
        base = _base(stored)
        return {
            Kind.INTEGER: base in SMALL | WIDE,
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
