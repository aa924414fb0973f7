"""What values a table's columns can have, as cells: from public facts alone.

Every value has one place. Declared values are cells. A number with declared bins lies in one of
them, or outside; one with bounds alone is moved to the nearest bound, as aggregates move it, and
lies in one of equal bins between them. A date lies in a period. NULL, and what lies outside, are a
cell of their own, the last one, where a column may be NULL; where the policy says that it may not,
a row with such a value is in no cell of the tables that have this column.

It is long because every kind of column is cut, read, labelled and written down here, once.
"""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from math import ceil, prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither.errors import ArgumentError, BoundsError, nearest
from dither.plan import expressions as ex
from dither.plan.facts.scopes import scope_of
from dither.plan.facts.values import Scope, infer
from dither.plan.job import GroupKey
from dither.plan.schema import ColumnFacts, Kind, Value
from dither.plan.text import number, show_value
from dither.query._release import decode
from dither.sql import Names

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = [
    "CELLS",
    "Attribute",
    "CellDomain",
    "columns_in",
    "cut_finer",
    "domain_of",
    "evenly",
    "is_number",
    "middles",
]

CELLS = 32
"""Into so many bins at most the bounds of a number, and into so many periods those of a date, are
cut unless something else is asked for."""

Clique = tuple[int, ...]

PERIODS = ("day", "week", "month", "quarter", "year")


@dataclass(frozen=True)
class Attribute:
    """One column and its cells.

    Parameters
    ----------
    name : str
    kind : Kind
        Of the column's values.
    values : tuple, optional
        One a cell: declared values, or the first days of periods.
    edges : tuple of Fraction, optional
        Of bins, in place of values: bin i holds what is at least ``edges[i]`` and below the next.
        The last bin also holds its upper edge.
    bounds : tuple, optional
        No value that is made up lies outside: two numbers or two days.
    period : str, optional
        ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"``, of a date with bounds.
    step : Fraction, optional
        Numbers are multiples of it.
    missing : bool
        Whether the last cell is of NULL, and of what is outside of all others.
    key : GroupKey, optional
        What an engine reads; ``None`` of a domain that was stored.
    """

    name: str
    kind: Kind
    values: tuple[Value, ...] | None = None
    edges: tuple[Fraction, ...] | None = None
    bounds: tuple[Any, Any] | None = None
    period: str | None = None
    step: Fraction | None = None
    missing: bool = True
    key: GroupKey | None = field(default=None, compare=False, repr=False)

    @property
    def clamped(self) -> bool:
        """Whether numbers beyond the outermost cells lie in them; not known of what was stored."""
        read = None if self.key is None else self.key.expression
        return isinstance(read.operand if isinstance(read, ex.Bin) else read, ex.Clamp)

    @property
    def inner(self) -> int:
        """The cells without the one for what is missing."""
        return len(self.values) if self.values is not None else len(self.edges or (0,)) - 1

    @property
    def size(self) -> int:
        """How many cells there are."""
        return self.inner + self.missing

    @property
    def cells(self) -> tuple[Any, ...]:
        """What each cell stands for: a value, the two ends of a bin, or ``None``."""
        found: list[Any] = list(self.values or ())
        if self.edges is not None:
            found = list(zip(self.edges[:-1], self.edges[1:], strict=True))
        return (*found, *([None] if self.missing else []))

    @property
    def labels(self) -> tuple[str, ...]:
        """The cells as text."""
        found = [] if self.values is None else [_label(v) for v in self.values]
        if self.edges is not None:
            ends = [number(e) for e in self.edges]
            last = len(ends) - 2
            found = [
                f"[{ends[i]}, {ends[i + 1]}{']' if i == last else ')'}" for i in range(last + 1)
            ]
        return (*found, *(["NULL"] if self.missing else []))

    def place(self, value: Any) -> int:
        """The cell of a value as a person writes it.

        Raises
        ------
        ArgumentError
            Where it is in no cell.
        """
        if value is None and self.missing:
            return self.inner
        if self.values is not None:
            for i, own in enumerate(self.values):
                if type(own) is type(value) and own == value:
                    return i
            if self.kind is Kind.REAL and isinstance(value, int | float | Fraction | Decimal):
                # A listed 2.5 is kept as 5/2, and 6 as what it is.
                exact = None if isinstance(value, bool) else check.exact(self.name, value)
                for i, own in enumerate(self.values):
                    if own == exact:
                        return i
            if self.period is not None and isinstance(value, dt.date):
                found = self._period_of(value)
                if found is not None:
                    return found
        elif self.edges is not None and value is not None and not isinstance(value, bool):
            exact = check.exact(self.name, value)
            for i in range(self.inner):
                if self.edges[i] <= exact < self.edges[i + 1]:
                    return i
            if exact == self.edges[-1]:
                return self.inner - 1
        shown = list(self.labels[:6]) + (["..."] if self.size > 6 else [])
        raise ArgumentError(f"{self.name}: {value!r} is in none of its cells, {', '.join(shown)}")

    def read(self, text: str) -> Any:
        """A value that was written as text, as `place` takes it: a label, a number or a date."""
        if text in self.labels:
            i = self.labels.index(text)
            if i >= self.inner:
                return None
            return self.edges[i] if self.edges is not None else (self.values or ())[i]
        if self.kind.temporal:
            try:
                moment = dt.datetime.fromisoformat(text)
                return moment.date() if self.kind is Kind.DATE else moment
            except ValueError:
                pass
        elif self.kind is Kind.BOOLEAN and text.lower() in ("true", "false"):
            return text.lower() == "true"
        elif self.kind.numeric:
            found = check.exact(self.name, text)
            return int(found) if self.kind is Kind.INTEGER and found.denominator == 1 else found
        return text

    def _period_of(self, day: dt.date) -> int | None:
        """The period of a day within the bounds."""
        assert self.values is not None
        assert self.bounds is not None

        def moment(value: Any) -> dt.datetime:
            if isinstance(value, dt.datetime):
                return value.replace(tzinfo=None)
            return dt.datetime(value.year, value.month, value.day)

        # A column of dates has no hours; its last day ends with it.
        if not moment(self.bounds[0]) <= moment(day) <= moment(self.bounds[1]):
            return None
        starts = [moment(v) for v in self.values]
        return max(0, bisect_right(starts, moment(day)) - 1)

    def to_dict(self) -> dict[str, Any]:
        """The attribute as plain data, numbers as exact text."""
        kind = self.kind.value
        return {
            "name": self.name,
            "kind": kind,
            "values": None if self.values is None else [_stored(v) for v in self.values],
            "edges": None if self.edges is None else [str(e) for e in self.edges],
            "bounds": None if self.bounds is None else [_stored(b) for b in self.bounds],
            "period": self.period,
            "step": None if self.step is None else str(self.step),
            "missing": self.missing,
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Attribute:
        """What ``to_dict`` wrote."""
        kind = Kind(found["kind"])

        def read(value: Any) -> Any:
            if isinstance(value, str) and kind.numeric:
                return Fraction(value)
            return decode(value, kind.value)

        values, edges, bounds = found["values"], found["edges"], found["bounds"]
        step = found["step"]
        return cls(
            found["name"],
            kind,
            None if values is None else tuple(map(read, values)),
            None if edges is None else tuple(map(Fraction, edges)),
            None if bounds is None else (read(bounds[0]), read(bounds[1])),
            found["period"],
            None if step is None else Fraction(step),
            bool(found["missing"]),
        )


def _label(value: Value) -> str:
    return value if isinstance(value, str) else show_value(value).strip("'")


def _stored(value: Any) -> Any:
    if isinstance(value, Fraction):
        return str(value)
    return value.isoformat() if isinstance(value, dt.date) else value


@dataclass(frozen=True)
class CellDomain:
    """The cells of some columns.

    Parameters
    ----------
    attributes : tuple of Attribute

    Examples
    --------
    >>> sex = Attribute("sex", Kind.TEXT, ("f", "m"), missing=False)
    >>> found = CellDomain((sex, Attribute("smokes", Kind.BOOLEAN, (False, True))))
    >>> found.sizes, found.clique(["smokes", "sex"]), found.cells_in((0, 1))
    ((2, 3), (0, 1), 6)
    """

    attributes: tuple[Attribute, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return tuple(a.name for a in self.attributes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many cells each column has."""
        return tuple(a.size for a in self.attributes)

    def shape(self, clique: Clique) -> tuple[int, ...]:
        """How many cells each column of a table has."""
        return tuple(self.attributes[v].size for v in clique)

    def cells_in(self, clique: Clique) -> int:
        """How many cells a table has."""
        return prod(self.shape(clique))

    def clique(self, names: Sequence[str], what: str = "columns") -> Clique:
        """The places of some columns, rising.

        Raises
        ------
        ArgumentError
            Where one is not there, or stands twice.
        """
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise ArgumentError(f"{what} must be a list of columns, such as [{names!r}]")
        for name in names:
            if name not in self.names:
                raise ArgumentError(f"{what}: no column {name!r}" + nearest(str(name), self.names))
        found = tuple(sorted({self.names.index(name) for name in names}))
        if len(found) < len(names):
            raise ArgumentError(f"{what} names a column twice")
        return found

    def notes(self) -> list[str]:
        """What counts in the cells at bounds, and what in none."""
        found = []
        if held := [a.name for a in self.attributes if a.clamped]:
            whose = f"{held[0]}'s bounds" if len(held) == 1 else f"the bounds of {', '.join(held)}"
            found.append(f"what lies beyond {whose} counts in the cell at the nearer one")
        if outside := [a.name for a in self.attributes if not a.missing]:
            found.append(
                f"NULL and what is not declared of {', '.join(outside)} is in no cell, since the "
                "policy says that it does not occur"
            )
        return found

    def __getitem__(self, name: str) -> Attribute:
        (place,) = self.clique([name], "column")
        return self.attributes[place]

    def to_list(self) -> list[dict[str, Any]]:
        """The domain as plain data."""
        return [a.to_dict() for a in self.attributes]

    @classmethod
    def from_list(cls, found: Sequence[Mapping[str, Any]]) -> CellDomain:
        """What ``to_list`` wrote."""
        return cls(tuple(map(Attribute.from_dict, found)))


def domain_of(
    rows: TableQuery,
    columns: Sequence[str] | None = None,
    cells: int | Mapping[str, int] = CELLS,
) -> CellDomain:
    """The cells of rows' columns, from what is declared of them.

    Parameters
    ----------
    rows : TableQuery
    columns : sequence of str, optional
        All of them, but for the one that says whose a row is, where left out.
    cells : int or mapping of str to int
        Into how many bins or periods bounds are cut at most, of all columns or by name.

    Raises
    ------
    BoundsError
        Where a column has no public domain: says what to declare.
    ArgumentError, UnknownNameError
        For a column that is not there.
    """
    names = Names(rows.relation, rows.schema)
    if columns is None:
        wanted = _others(names)
    else:
        if isinstance(columns, str) or not columns:
            raise ArgumentError('columns must be a list of names, such as ["age", "sex"]')
        wanted = [names.column(name, exact=True) for name in columns]
    for column in wanted:
        if names.is_unit(column):
            raise ArgumentError(
                f"columns: {column.name} says who is protected; nobody's own is a cell"
            )
    twice = [c.name for i, c in enumerate(wanted) if c.name in {d.name for d in wanted[:i]}]
    if twice:
        raise ArgumentError(
            f"columns: {twice[0]!r} is there twice; choose with select(...) what it is to be"
        )
    if isinstance(cells, Mapping):
        for name in cells:
            if name not in {c.name for c in wanted}:
                raise ArgumentError(
                    f"cells: no column {name!r}" + nearest(str(name), [c.name for c in wanted])
                )
    scope = scope_of(rows.relation, rows.schema)

    def most(name: str) -> int:
        asked = cells.get(name, CELLS) if isinstance(cells, Mapping) else cells
        return check.whole("cells", asked, 1)

    return CellDomain(tuple(_attribute(c, scope, most(c.name)) for c in wanted))


def columns_in(rows: TableQuery) -> list[str]:
    """The columns of rows, but for the one that says whose a row is."""
    return [column.name for column in _others(Names(rows.relation, rows.schema))]


def _others(names: Names) -> list[ex.Column]:
    return [c for c in names.columns if not names.is_unit(c)]


def cut_finer(attribute: Attribute, parts: int) -> Attribute:
    """A column's bins, each cut into so many at most: of whole numbers, and multiples of a step,
    none without one.

    Examples
    --------
    >>> age = Attribute("age", Kind.INTEGER, edges=(Fraction(0), Fraction(4), Fraction(6)))
    >>> [int(edge) for edge in cut_finer(age, 3).edges]
    [0, 2, 3, 4, 5, 6]
    """
    assert attribute.edges is not None
    grain = Fraction(1) if attribute.kind is Kind.INTEGER else attribute.step
    found = list(attribute.edges[:1])
    for low, high in pairwise(attribute.edges):
        for i in range(1, parts):
            edge = low + (high - low) * i / parts
            if grain is not None:
                edge = ceil(edge / grain) * grain
            if found[-1] < edge < high:
                found.append(edge)
        found.append(high)
    edges, key = tuple(found), attribute.key
    if key is not None:
        assert isinstance(key.expression, ex.Bin)
        inner = tuple(range(len(edges) - 1))
        key = replace(key, expression=replace(key.expression, edges=edges), values=inner)
    return replace(attribute, edges=edges, key=key)


def is_number(rows: TableQuery, name: str) -> bool | None:
    """Whether a column is a number between bounds, without declared values: it has a mean.

    Returns
    -------
    bool or None
        False of what has values to count, such as texts, truth values, or declared values or bins
        without bounds; None of what is public of neither, as dates are.
    """
    facts = scope_of(rows.relation, rows.schema).column(
        Names(rows.relation, rows.schema).column(name, exact=True)
    )
    if facts.values is not None or facts.kind is Kind.BOOLEAN:
        return False
    low, high = facts.lower, facts.upper
    if facts.kind.numeric and isinstance(low, Fraction) and isinstance(high, Fraction):
        return low < high
    return False if facts.edges is not None else None


def evenly(rows: TableQuery, name: str, most: int) -> Attribute:
    """A number between bounds in equal cells, whatever bins are declared of it.

    Where it is a whole number, or a multiple of a step, a cell's middle is that of the values in
    it: a value of its own where there are no more than so many.

    Parameters
    ----------
    rows : TableQuery
    name : str
        A column of which `is_number` is true.
    most : int
        Cells at most.
    """
    scope = scope_of(rows.relation, rows.schema)
    column = Names(rows.relation, rows.schema).column(name, exact=True)
    facts = scope.column(column)
    low, high = facts.lower, facts.upper
    assert isinstance(low, Fraction)
    assert isinstance(high, Fraction)
    grain = Fraction(1) if facts.kind is Kind.INTEGER else facts.step
    first = None if grain is None else ceil(low / grain) * grain
    if grain is None or first is None or first > high:
        edges = tuple(low + (high - low) * i / most for i in range(most + 1))
    else:
        # Edges lie half a step beside the values, so that values stand in the middle.
        held = int((high - first) / grain) + 1
        width = -(-held // most)
        cells = -(-held // width)
        edges = tuple(first - grain / 2 + i * width * grain for i in range(cells + 1))
    # Counted off from the first edge: a thousand comparisons would be too long to write.
    held_in = ex.Clamp(column, max(low, edges[0]), min(high, edges[-1]))
    above = ex.Arithmetic("-", held_in, ex.Literal(edges[0]))
    place = ex.Floor(ex.Arithmetic("/", above, ex.Literal(edges[1] - edges[0])))
    last = len(edges) - 2
    expression = ex.Clamp(place, Fraction(0), Fraction(last))
    kind = infer(expression, scope).kind
    assert kind is not None
    key = GroupKey(column.name, expression, kind, tuple(range(last + 1)))
    return Attribute(
        column.name, facts.kind, None, edges, (low, high), None, facts.step, facts.nullable, key
    )


def _attribute(column: ex.Column, scope: Scope, most: int) -> Attribute:
    facts, name = scope.column(column), column.name
    expression: ex.Expression = column
    values: tuple[Value, ...] | None = None
    edges: tuple[Fraction, ...] | None = None
    bounds: tuple[Any, Any] | None = None
    period = None
    if facts.edges is not None:
        edges = facts.edges
        expression, bounds = ex.Bin(column, edges), (edges[0], edges[-1])
    elif facts.values is not None:
        values = tuple(dict.fromkeys(facts.values))
    elif facts.kind is Kind.BOOLEAN:
        values = (False, True)
    elif isinstance(facts.lower, Fraction) and isinstance(facts.upper, Fraction):
        low, high = bounds = (facts.lower, facts.upper)
        if facts.kind is Kind.INTEGER and high - low < most:
            values = tuple(range(int(low), int(high) + 1))
            expression = ex.Clamp(column, low, high)
        else:
            edges = _cut(facts, most)
            expression = ex.Bin(ex.Clamp(column, edges[0], edges[-1]), edges)
    elif isinstance(facts.lower, dt.date) and isinstance(facts.upper, dt.date):
        bounds = (facts.lower, facts.upper)
        period, values = _periods(column, scope, most)
        expression = ex.DateTruncate(period, column)
    else:
        raise BoundsError(_undeclared(facts))
    kind = infer(expression, scope).kind
    assert kind is not None
    listed: tuple[Value, ...] = values if values is not None else tuple(range(len(edges or ()) - 1))
    key = GroupKey(name, expression, kind, listed)
    return Attribute(
        name, facts.kind, values, edges, bounds, period, facts.step, facts.nullable, key
    )


def _cut(facts: ColumnFacts, most: int) -> tuple[Fraction, ...]:
    """Equal bins between the bounds; of whole numbers so many in each, but for the last."""
    low, high = facts.lower, facts.upper
    assert isinstance(low, Fraction)
    assert isinstance(high, Fraction)
    if facts.kind is Kind.INTEGER:
        # The last edge is beyond every value, so that each bin holds what is below its upper one.
        width = -(-int(high - low + 1) // most)
        inner = range(int(low), int(high) + 1, width)
        return (*map(Fraction, inner), high + 1)
    return tuple(low + (high - low) * i / most for i in range(most + 1))


def _periods(column: ex.Column, scope: Scope, most: int) -> tuple[str, tuple[Value, ...]]:
    """The shortest periods of which there are not too many."""
    for period in PERIODS:
        listed = infer(ex.DateTruncate(period, column), scope).domain
        if listed is not None and (len(listed) <= most or period == "year"):
            return period, listed
    raise BoundsError(f"{column.name}: its bounds hold too many years; narrow them")


def _undeclared(facts: ColumnFacts) -> str:
    """Why a column has no cells, and what would give it some."""
    what = {
        Kind.TEXT: 'values = ["a", "b"]',
        Kind.INTEGER: "bounds = [lower, upper], bins = [...] or values = [...]",
        Kind.REAL: "bounds = [lower, upper] or bins = [...]",
        Kind.DATE: "bounds = [first, last]",
        Kind.TIMESTAMP: "bounds = [first, last]",
    }[facts.kind]
    return (
        f"{facts.name}: its values are not public, and what occurs in the data is private; declare "
        f"{what} of it in the policy, or leave the column out"
    )


def middles(attribute: Attribute) -> npt.NDArray[np.float64]:
    """A number for each cell of numbers: the value itself, or the middle of a bin."""
    if attribute.values is not None:
        return np.array([float(v) for v in attribute.values])  # type: ignore[arg-type]
    assert attribute.edges is not None
    ends = np.array([float(e) for e in attribute.edges])
    # A bin holds whole numbers from its lower edge to the one before its upper.
    upper = ends[1:] - (attribute.kind.value == "integer")
    return np.asarray((ends[:-1] + np.maximum(upper, ends[:-1])) / 2)
