"""How a column of a source is read: as its declared kind, as it is, never failing.

A column is read in two steps, so that an expensive cast is computed once: ``typed`` gives a value
of the declared kind or NULL, ``cleaned`` leaves NULL in place of what no column holds. After them

- an integer is a 64-bit integer; a real is a double and not NaN; a date or timestamp lies in the
  years 1 to 9999 and is in UTC;
- with ``values`` declared, everything else is NULL.

Nothing else that is declared of a column is applied here. Bounds in particular move no value:
filters and keys see it as it is, and aggregates clamp what they sum.
"""

from __future__ import annotations

from fractions import Fraction

from sqlglot import exp

from dither.plan.kinds import Kind, Value
from dither.plan.schema import ColumnFacts
from dither.sql import forms

__all__ = ["cleaned", "kind_of_type", "largest", "one_to_one", "readable", "typed"]

_BITS = {
    **{"TINYINT": 7, "SMALLINT": 15, "INTEGER": 31, "BIGINT": 63},
    **{"UTINYINT": 8, "USMALLINT": 16, "UINTEGER": 32},
}
_SMALL = set(_BITS)
_WIDE = {"UBIGINT", "HUGEINT", "UHUGEINT"}
_REAL = {"FLOAT", "DOUBLE"}
_STAMPS = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_ZONED = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ"}
_FINE_ZONED = {"TIMESTAMPTZ_NS"}
_WORDS = {"VARCHAR", "UUID", "ENUM"}


def _base(name: str) -> str:
    return name.upper().split("(")[0].strip()


def kind_of_type(name: str) -> Kind | None:
    """The kind of a DuckDB type; ``None`` for types that are not read.

    Examples
    --------
    >>> kind_of_type("DECIMAL(18,2)"), kind_of_type("UBIGINT"), kind_of_type("STRUCT(a INTEGER)")
    (<Kind.REAL: 'real'>, <Kind.INTEGER: 'integer'>, None)
    """
    base = _base(name)
    if name.endswith("]"):
        return None
    if base in _SMALL or base in _WIDE:
        return Kind.INTEGER
    if base in _REAL or base == "DECIMAL":
        return Kind.REAL
    if base in _WORDS:
        return Kind.TEXT
    if base in _STAMPS | _ZONED | _FINE_ZONED:
        return Kind.TIMESTAMP
    return {"BOOLEAN": Kind.BOOLEAN, "DATE": Kind.DATE}.get(base)


def readable(name: str, kind: Kind) -> bool:
    """Whether a column of the DuckDB type can be declared as the kind."""
    found = kind_of_type(name)
    if found is None:
        return False
    if kind is Kind.TEXT or found is Kind.TEXT or found is kind:
        return True
    if kind.numeric or kind is Kind.BOOLEAN:
        return found.numeric or found is Kind.BOOLEAN
    return kind.temporal and found.temporal


def one_to_one(name: str, kind: Kind) -> bool:
    """Whether two values of the DuckDB type that differ are never read as one of the kind.

    What is read as NULL is left out of account. Text read as a number is its number: ``'7'`` and
    ``'07'`` are two spellings of one value.

    Examples
    --------
    >>> one_to_one("BIGINT", Kind.REAL), one_to_one("DECIMAL(38,0)", Kind.TEXT)
    (False, True)
    """
    base = _base(name)
    if kind is Kind.TEXT:
        return True
    if base in _WORDS:
        return kind is not Kind.REAL
    return {
        Kind.INTEGER: base in _SMALL | _WIDE,
        Kind.REAL: base in _REAL,
        Kind.BOOLEAN: base == "BOOLEAN",
        Kind.DATE: base == "DATE",
        Kind.TIMESTAMP: base in {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "DATE"} | _ZONED,
    }[kind]


def typed(raw: exp.Expression, name: str, kind: Kind) -> exp.Expression:
    """The raw column of DuckDB type ``name`` as a value of ``kind``, or NULL."""
    base, goal = _base(name), forms.TYPES[kind]
    if base == goal:
        return raw
    if kind is Kind.INTEGER and base in _SMALL:
        return forms.cast(raw, goal)
    if kind.temporal and base in _ZONED | _FINE_ZONED:
        # The engine's time zone is UTC, so this is the time in UTC.
        zoned = forms.try_cast(raw, "TIMESTAMPTZ") if base in _FINE_ZONED else raw
        raw, base = forms.try_cast(zoned, "TIMESTAMP"), "TIMESTAMP"
    elif kind is Kind.TIMESTAMP and base in _WORDS:
        # Text without a zone is in UTC; an offset in it is honoured.
        zoned = forms.try_cast(forms.try_cast(raw, "VARCHAR"), "TIMESTAMPTZ")
        raw, base = forms.try_cast(zoned, "TIMESTAMP"), "TIMESTAMP"
    elif base in ("ENUM", "UUID") and kind is not Kind.TEXT:
        raw = forms.try_cast(raw, "VARCHAR")
    return raw if base == goal else forms.try_cast(raw, goal)


def cleaned(value: exp.Expression, facts: ColumnFacts) -> exp.Expression:
    """A typed value, or NULL in place of what a column of these facts does not hold."""
    kind = facts.kind
    if facts.values is not None:
        listed = [forms.constant(v, kind) for v in facts.values if _held(v, kind)]
        if not listed:
            return forms.null(kind)
        return forms.case((exp.In(this=value.copy(), expressions=listed), value))
    if kind is Kind.REAL:
        return forms.without_nan(value)
    if kind.temporal:
        first, last = (forms.constant(day, kind) for day in (forms.FIRST_DAY, forms.LAST_MOMENT))
        return forms.case((exp.Between(this=value.copy(), low=first, high=last), value))
    return value


def largest(name: str, facts: ColumnFacts) -> Fraction | None:
    """No number that a column of the DuckDB type is read as is larger than this in size.

    It follows from the type, or from a list of values that is enforced; never from bounds, which
    are no more than declared. ``None`` where a real may be infinite.

    Examples
    --------
    >>> largest("TINYINT", ColumnFacts("age", Kind.INTEGER, Fraction(0), Fraction(9)))
    Fraction(128, 1)
    """
    if facts.values is not None:
        numbers = [abs(Fraction(v)) for v in facts.values if isinstance(v, int | Fraction)]
        return max(numbers, default=Fraction(0))
    base = _base(name)
    if base in _BITS:
        return Fraction(2 ** _BITS[base])
    if facts.kind is Kind.INTEGER:
        return Fraction(2**63)
    return Fraction(10**39) if base in _WIDE or base == "DECIMAL" else None


def _held(value: Value, kind: Kind) -> bool:
    """Whether the engine's type of the kind can hold a public value at all."""
    return kind is not Kind.INTEGER or abs(Fraction(value)) <= forms.LARGEST  # type: ignore[arg-type]
