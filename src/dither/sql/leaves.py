"""How a column of a source is read: as its declared kind, inside its bounds, never failing.

A column is read in two steps, so that an expensive cast is computed once: ``typed`` gives a value
of the declared kind or NULL, ``cleaned`` brings it inside the bounds. After them

- an integer is a 64-bit integer, a real is a finite double (neither NaN nor infinite), a date or
  timestamp lies in the years 1 to 9999 and is in UTC;
- with ``values`` declared, everything else is NULL;
- with bounds declared, everything outside is moved to the nearest bound, infinities included;
- without, what cannot be held is NULL.
"""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from math import ceil, floor

from sqlglot import exp

from dither.plan.kinds import Kind, Value
from dither.plan.schema import ColumnFacts
from dither.sql import forms

__all__ = ["cleaned", "kind_of_type", "one_to_one", "readable", "typed"]

Branch = tuple[exp.Expression, exp.Expression]

_SMALL = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
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
    """A typed value brought inside the declared values or bounds."""
    kind = facts.kind
    if facts.values is not None:
        listed = [forms.constant(v, kind) for v in facts.values if _held(v, kind)]
        if not listed:
            return forms.null(kind)
        return forms.case((exp.In(this=value.copy(), expressions=listed), value))
    if kind is Kind.INTEGER:
        return _whole(value, facts)
    if kind is Kind.REAL:
        low = forms.real(facts.lower) if isinstance(facts.lower, Fraction) else None
        high = forms.real(facts.upper) if isinstance(facts.upper, Fraction) else None
        return _real(value, low, high)
    if kind.temporal:
        return _temporal(value, facts)
    return value


def _held(value: Value, kind: Kind) -> bool:
    """Whether the engine's type of the kind can hold a public value at all."""
    return kind is not Kind.INTEGER or abs(Fraction(value)) <= forms.LARGEST  # type: ignore[arg-type]


def _whole(value: exp.Expression, facts: ColumnFacts) -> exp.Expression:
    branches = []
    for bound, op in ((facts.lower, "<"), (facts.upper, ">")):
        if isinstance(bound, Fraction):
            # A bound that is no integer is moved inwards, to the nearest integer inside.
            edge = forms.whole(ceil(bound) if op == "<" else floor(bound))
            branches.append((forms.binary(op, value.copy(), edge), edge.copy()))
    return forms.case(*branches, otherwise=value) if branches else value


def _real(
    value: exp.Expression, low: exp.Expression | None, high: exp.Expression | None
) -> exp.Expression:
    # DuckDB orders NaN above infinity, so that it passes none of the tests and is NULL.
    infinity = forms.real(float("inf"))
    within = exp.Between(
        this=value.copy(),
        low=(low or forms.real(-forms.LARGEST_DOUBLE)).copy(),
        high=(high or forms.real(forms.LARGEST_DOUBLE)).copy(),
    )
    branches: list[Branch] = [(within, value.copy())]
    if low is not None:
        branches.append((forms.binary("<", value.copy(), low.copy()), low))
    if high is not None:
        above = exp.Between(this=value.copy(), low=high.copy(), high=infinity)
        branches.append((above, high))
    return forms.case(*branches)


def _temporal(value: exp.Expression, facts: ColumnFacts) -> exp.Expression:
    def stamp(bound: dt.date, *, last: bool = False) -> exp.Expression:
        if last and facts.kind is Kind.TIMESTAMP and not isinstance(bound, dt.datetime):
            bound = dt.datetime.combine(bound, dt.time.max)
        return forms.constant(bound, facts.kind)

    low = facts.lower if isinstance(facts.lower, dt.date) else None
    high = facts.upper if isinstance(facts.upper, dt.date) else None
    first = stamp(low or forms.FIRST_DAY)
    last = stamp(high, last=False) if high else stamp(forms.LAST_DAY, last=True)
    within = exp.Between(this=value.copy(), low=first, high=last)
    branches: list[Branch] = [(within, value.copy())]
    if low is not None:
        branches.append((forms.binary("<", value.copy(), first.copy()), first.copy()))
    if high is not None:
        branches.append((forms.binary(">", value.copy(), last.copy()), last.copy()))
    return forms.case(*branches)
