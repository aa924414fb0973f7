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

from dither.engines.writer import forms
from dither.plan.kinds import Kind, Value
from dither.plan.schema import ColumnFacts

__all__ = [
    "cleaned",
    "kind_of_type",
    "largest",
    "one_to_one",
    "readable",
    "stored_alike",
    "typed",
]

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
    """Whether a unit of the DuckDB type is read as the kind without taking two for one, or one
    for two.

    A unit is compared as it is stored. So it keeps the kind of its type, but for whole numbers,
    decimals, UUIDs and enumerations, each of which has one text of its own and may be read as that.
    Text is never read as anything else (``'7'``, ``'07'`` and ``'7.4'`` are one whole number), nor
    a double as text (0 and -0 are one number and two texts). What cannot be held is NULL, and so is
    NaN: such rows are nobody's.

    Examples
    --------
    >>> one_to_one("BIGINT", Kind.REAL), one_to_one("DECIMAL(38,0)", Kind.TEXT)
    (False, True)
    >>> one_to_one("VARCHAR", Kind.INTEGER), one_to_one("DOUBLE", Kind.TEXT)
    (False, False)
    """
    base = _base(name)
    return {
        Kind.INTEGER: base in _SMALL | _WIDE,
        Kind.REAL: base in _REAL,
        Kind.TEXT: base in _SMALL | _WIDE | _WORDS | {"DECIMAL"},
        Kind.BOOLEAN: base == "BOOLEAN",
        Kind.DATE: base == "DATE",
        Kind.TIMESTAMP: base in {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"} | _ZONED,
    }[kind]


def stored_alike(left: str, right: str) -> bool:
    """Whether two units of these DuckDB types can be compared as they are stored.

    Examples
    --------
    >>> stored_alike("INTEGER", "UBIGINT"), stored_alike("BIGINT", "VARCHAR")
    (True, False)
    """
    families = (_SMALL | _WIDE, _REAL, _WORDS - {"UUID"}, _STAMPS, _ZONED | _FINE_ZONED)
    ours, theirs = _base(left), _base(right)
    alike = any({ours, theirs} <= family for family in families)
    # Decimals of two scales have two texts of one number.
    return alike or (left.upper() == right.upper())


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
    elif kind is Kind.TEXT and base in _STAMPS | _ZONED | _FINE_ZONED | {"DATE"}:
        return _date_as_text(raw, name)
    elif base in ("ENUM", "UUID") and kind is not Kind.TEXT:
        raw = forms.try_cast(raw, "VARCHAR")
    return raw if base == goal else forms.try_cast(raw, goal)


def _date_as_text(raw: exp.Expression, name: str) -> exp.Expression:
    # Even TRY_CAST fails on a timestamp that the engine cannot print, so those are left out first.
    kind = Kind.DATE if _base(name) == "DATE" else Kind.TIMESTAMP
    value = typed(raw, name, kind)
    known = cleaned(value, ColumnFacts("", kind))
    return forms.cast(known, forms.TYPES[Kind.TEXT])


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
