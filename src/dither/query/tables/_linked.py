"""Linked tables as rows that may be counted: parents with how many children they have, children
beside their parents and in the order of their time.

Every level is a `TablesQuestion` of the same unit. A row of it has the columns of its table, how
many rows it has in each table below, the columns of its parent, and, where it is in an order, what
the row before it has: all of it follows from the rows of its unit alone, so a unit that is added or
removed moves a table of counts by at most the level's ``max_rows`` rows.

Long because a level is read in one place: what of it is refused, counted, joined and ordered.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dither import _checks as check
from dither._display import Node
from dither.errors import ArgumentError, nearest
from dither.plan.expressions import Column
from dither.plan.job import GroupKey, History
from dither.plan.relations import Scan, visible
from dither.plan.schema import Kind
from dither.privacy import Loss
from dither.query._aggregates import count
from dither.query._explain import UNACCOUNTED
from dither.query.tables._counts import Budget, Counts, TablesQuestion
from dither.query.tables._domain import CELLS, Attribute, CellDomain, columns_in, domain_of
from dither.session._certificate import MeasurementRecord
from dither.session._request import Request
from dither.sql.rows.sources import start

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["LinkedLevel", "linked_levels", "linked_request"]

MOST_LEVELS = 8
MOST_CHILDREN = 1_000
"""Rows that one row may have below it."""
WIDEST = 2**62
"""How far apart moments may be: a difference beyond 64 bits would fail on the rows that have it."""
NUMBERS = 3
"""The first and second row of a history are told apart, and later ones are not."""

GAPS = (0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 22, 29, 57, 92, 183, 366, 731, 1461, 3653, 7305, 14610)
"""Where the cells of gaps begin, unless others are asked for: in days, or what the order counts."""

FIELDS = ("order", "most", "key", "on", "columns", "max_rows", "gaps", "children", "rules")


@dataclass(frozen=True, eq=False)
class LinkedLevel:
    """One table of several that are linked.

    Parameters
    ----------
    name : str
        The table.
    parent : int
        The level above, -1 of the first.
    question : TablesQuestion
    own : tuple of int
        The places of its columns in the domain.
    counts : tuple of (int, int)
        By level below, the place of how many rows a row has there.
    parents : tuple of (int, int)
        The places of its parent's columns, here and there.
    unit, key, on : str, optional
        The columns that say whose a row is, which row it is, and whose child.
    time, number, gap : int, optional
        The places of the column that orders rows, of a row's number, and of the gap before it.
    before : tuple of (int, int)
        The places of what the row before has, each with that of the column.
    most : int
        Rows of a parent.
    edges : tuple of int
        Where gaps are cut.
    origin : int
        What the order counts from: a day since 1970, or 0.
    rules : tuple
        What is said of its rows.
    """

    name: str
    parent: int
    question: TablesQuestion
    own: tuple[int, ...]
    counts: tuple[tuple[int, int], ...]
    parents: tuple[tuple[int, int], ...]
    unit: str
    key: str | None
    on: str | None
    most: int
    time: int | None = None
    number: int | None = None
    gap: int | None = None
    before: tuple[tuple[int, int], ...] = ()
    edges: tuple[int, ...] = ()
    origin: int = 0
    rules: tuple[Any, ...] = ()
    texts: tuple[bool, ...] = (False, False, False)
    """Whether the unit, the key and the parent's key are texts."""

    @property
    def domain(self) -> CellDomain:
        """All of its columns' cells."""
        return self.question.domain


@dataclass
class _Asked:
    """A table as it was asked for."""

    name: str
    parent: int
    rows: Any
    fields: Mapping[str, Any]
    children: list[int] = field(default_factory=list)


def linked_levels(
    root: TableQuery, children: Mapping[str, Any], **asked: Any
) -> tuple[LinkedLevel, ...]:
    """Read what is asked for, from public facts, parents before their children.

    Parameters
    ----------
    root : TableQuery
        Of the table with one row for each unit.
    children : mapping of str to mapping
        By table what is said of it (`FIELDS`).
    **asked
        ``columns``, ``cells``, ``rules`` of the first table.

    Raises
    ------
    ArgumentError
        Naming what does not fit, and what would.
    """
    if not isinstance(root.relation, Scan):
        raise ArgumentError("linked tables are asked of whole tables: leave filters and joins out")
    if not isinstance(children, Mapping) or not children:
        raise ArgumentError(
            'children must map tables to what they are, as {"visits": {"most": 20}}'
        )
    cells = asked.pop("cells", CELLS)
    found = [_Asked(root.relation.table, -1, root, asked)]

    def add(parent: int, below: Mapping[str, Any]) -> None:
        for name, fields in below.items():
            if not isinstance(fields, Mapping):
                raise ArgumentError(f"{name}: must be a mapping, as {{'most': 20, 'order': 'day'}}")
            for one in fields:
                if one not in FIELDS:
                    raise ArgumentError(f"{name}: no field {one!r}" + nearest(str(one), FIELDS))
            if name in {one.name for one in found}:
                raise ArgumentError(f"{name} stands twice among the linked tables")
            if len(found) >= MOST_LEVELS:
                raise ArgumentError(f"at most {MOST_LEVELS} tables are linked")
            rows = replace(root, relation=start(name, None, root.schema))
            found[parent].children.append(len(found))
            found.append(_Asked(name, parent, rows, fields))
            more = fields.get("children", {})
            if not isinstance(more, Mapping):
                raise ArgumentError(f"{name}: children must map tables to what they are")
            add(len(found) - 1, more)

    add(0, children)
    levels: list[LinkedLevel] = []
    for place in range(len(found)):
        levels.append(_level(found, place, levels, cells))
    if isinstance(cells, Mapping):
        known = list(dict.fromkeys(n for x in levels for n in x.domain.names[: len(x.own)]))
        for name in cells:
            if name not in known:
                raise ArgumentError(f"cells: no column {name!r}" + nearest(str(name), known))
    first = levels[0].question
    for level in levels[1:]:
        if level.question.promise != first.promise:
            raise ArgumentError(f"{level.name} is of other people than {levels[0].name}")
    return tuple(levels)


def _level(
    found: Sequence[_Asked], place: int, levels: Sequence[LinkedLevel], cells: Any
) -> LinkedLevel:
    asked = found[place]
    fields, rows, schema = asked.fields, asked.rows, asked.rows.schema
    facts = schema.table(asked.name)
    unit = facts.unit
    if not facts.private or unit is None:
        raise ArgumentError(f"{asked.name}: linked tables say whose each row is; declare its unit")
    key = _named(fields, "key", asked)
    if place and asked.children and key is None:
        raise ArgumentError(f"{asked.name}: name the key that rows below refer to, as key='person'")
    above = levels[asked.parent] if place else None
    on = None
    if above is not None and above.parent >= 0:
        on = _named(fields, "on", asked, above.key)
    time = _named(fields, "order", asked)
    _check_apart(asked.name, unit, key, on, time)
    names = [n for n in columns_in(rows) if n not in (key, on)]
    if fields.get("columns") is not None:
        names = list(check.listed(f"{asked.name}: columns", fields["columns"], "columns"))
        for name in names:
            if name not in facts.columns or name in (key, on, unit):
                describe = [n for n in facts.columns if n not in (key, on, unit)]
                raise ArgumentError(
                    f"{asked.name}: columns: no column {name!r} that describes a row"
                    + nearest(str(name), describe)
                )
    if time is not None and time not in names:
        names.append(time)
    if not names and not asked.children:
        raise ArgumentError(
            f"{asked.name}: no column is left that describes a row; declare one, or leave it out"
        )
    if place and "most" not in fields:
        raise ArgumentError(
            f"{asked.name}: most is missing: how many rows one row above has at most"
        )
    most = check.whole(f"{asked.name}: most", fields.get("most", 1), 1, MOST_CHILDREN)
    limit = fields.get("max_rows") if place else 1
    if limit is not None:
        limit = check.whole(f"{asked.name}: max_rows", limit, 1)
    rules = fields.get("rules", ())
    if isinstance(rules, str | Mapping) or not isinstance(rules, Sequence):
        raise ArgumentError(f'{asked.name}: rules must be a list, such as ["end >= start"]')
    gaps = _gaps(fields.get("gaps"), asked.name)
    keep = {n: n for n in (unit, key, on) if n is not None}
    made = keep | {n: n for n in names}
    counted = {}
    for below in asked.children:
        child = found[below]
        counted[below] = title = _unused(f"number of {child.name}", made)
        rows = _with_count(rows, made, child, unit, key if place else None, title)
        made[title] = title
    parents: dict[str, int] = {}
    if above is not None:
        rows, parents = _with_parent(rows, made, found[asked.parent], above, unit, on)
    alias = visible(rows.relation)[0].alias
    extra: dict[str, str] = {}
    ordered = ""
    within: tuple[Column, ...] = ()
    origin, span = 0, 0
    if time is not None:
        text, origin, span = _order(facts.columns[time], asked.name, time)
        ordered = _unused("order of rows", (*made, *parents))
        extra[ordered] = text
        if on is not None:
            within = (Column(alias, on),)
    elif fields.get("gaps") is not None:
        raise ArgumentError(
            f"{asked.name}: gaps are between rows in an order; name it, as order='day'"
        )
    rows = rows.select(**{n: _quoted(n) for n in (*made, *parents)}, **extra)
    own = [*names, *counted.values()]
    asked_cells = cells if isinstance(cells, Mapping) else dict.fromkeys(own, cells)
    asked_cells = {n: c for n, c in asked_cells.items() if n in own}
    asked_cells |= {
        title: found[b].fields["most"] + 1
        for b, title in counted.items()
        if "most" in found[b].fields
    }
    for p, v in parents.items():
        asked_cells[p] = max(1, above.domain.attributes[v].inner)  # type: ignore[union-attr]
    domain = domain_of(rows, [*own, *parents], asked_cells)
    history: History | None = None
    more: tuple[Attribute, ...] = ()
    where: dict[str, Any] = {}
    if time is not None:
        history, more, where = _history(
            domain,
            len(own) - len(counted),
            names.index(time),
            within,
            Column(alias, ordered),
            gaps or tuple(edge for edge in GAPS if edge <= max(span, 1)),
        )
    whole = CellDomain((*domain.attributes, *more))
    question = TablesQuestion(rows, whole, max_rows=limit, history=history)
    if question._plan.blocks is not None:
        raise ArgumentError(
            f"{asked.name}: linked tables are not made of tables that lie in blocks"
        )
    return LinkedLevel(
        asked.name,
        asked.parent,
        question,
        tuple(range(len(names))),
        tuple((b, len(names) + i) for i, b in enumerate(counted)),
        tuple((len(own) + i, v) for i, v in enumerate(parents.values())),
        unit,
        key,
        on,
        most,
        edges=history.edges if history is not None else (),
        origin=origin,
        rules=tuple(rules),
        texts=tuple(n is not None and facts.columns[n].kind is Kind.TEXT for n in (unit, key, on)),
        **where,
    )


def _named(
    fields: Mapping[str, Any], what: str, asked: _Asked, default: str | None = None
) -> str | None:
    name = fields.get(what, default)
    if name is None:
        return None
    known = asked.rows.schema.table(asked.name).columns
    if not isinstance(name, str) or name not in known:
        raise ArgumentError(
            f"{asked.name}: {what}: no column {name!r}" + nearest(str(name), list(known))
        )
    return name


def _check_apart(table: str, *names: str | None) -> None:
    """Refuse a column that is to be two of a row's unit, key, reference and order."""
    said = [name for name in names if name is not None]
    for name in said:
        if said.count(name) > 1:
            raise ArgumentError(
                f"{table}: {name} can be only one of whose a row is, its key, on and its order"
            )


def _unused(name: str, taken: Collection[str]) -> str:
    """A name of a column that is made, which no column has."""
    found, more = name, 1
    while found in taken:
        more += 1
        found = f"{name} ({more})"
    return found


def _quoted(name: str, table: str | None = None) -> str:
    text = '"' + name.replace('"', '""') + '"'
    return text if table is None else f"{_quoted(table)}.{text}"


def _with_count(
    rows: TableQuery, made: Mapping[str, str], child: _Asked, unit: str, key: str | None, title: str
) -> TableQuery:
    """The same rows with how many of a table below each has."""
    facts = child.rows.schema.table(child.name)
    theirs = facts.unit
    if theirs is None:
        raise ArgumentError(f"{child.name}: linked tables say whose each row is; declare its unit")
    on = {unit: theirs}
    if key is not None:
        ref = _named(child.fields, "on", child, key)
        assert ref is not None
        _check_apart(child.name, theirs, ref)
        on[key] = ref
    most = check.whole(f"{child.name}: most", child.fields.get("most", 1), 1, MOST_CHILDREN)
    refs = [name for ours, name in on.items() if ours != unit]
    counted = child.rows.per_unit(*refs, **{title: count()})
    here, there = visible(rows.relation)[0].alias, visible(counted.relation)[0].alias
    joined = rows.join(counted, on, how="left")
    columns = {n: _quoted(n, here) for n in made}
    columns[title] = f"CLAMP(COALESCE({_quoted(title, there)}, 0), 0, {most})"
    return joined.select(**columns)


def _with_parent(
    rows: TableQuery,
    made: Mapping[str, str],
    parent: _Asked,
    above: LinkedLevel,
    unit: str,
    on: str | None,
) -> tuple[TableQuery, dict[str, int]]:
    """The same rows beside their parent's columns, and which these are in its level."""
    places: dict[str, int] = {}
    for v in above.own:
        places[_unused(f"{parent.name}'s {above.domain.names[v]}", (*made, *places))] = v
    columns = {above.unit: _quoted(above.unit)}
    joined_on = {unit: above.unit}
    if on is not None:
        assert above.key is not None
        columns[above.key] = _quoted(above.key)
        joined_on[on] = above.key
    columns |= {title: _quoted(above.domain.names[v]) for title, v in places.items()}
    other = parent.rows.select(**columns)
    here, there = visible(rows.relation)[0].alias, visible(other.relation)[0].alias
    both = rows.join(other, joined_on)
    every = {n: _quoted(n, here) for n in made} | {n: _quoted(n, there) for n in places}
    return both.select(**every), places


def _order(facts: Any, table: str, name: str) -> tuple[str, int, int]:
    """What rows are ordered by, as SQL; where it begins, and how far it goes."""
    low, high = facts.lower, facts.upper
    if facts.kind is Kind.DATE and isinstance(low, dt.date) and isinstance(high, dt.date):
        span = (high - low).days
        written = f"DATE_DIFF('day', DATE '{low.isoformat()}', {_quoted(name)})"
        return f"CLAMP({written}, 0, {span})", low.toordinal() - 719_163, span
    if facts.kind is Kind.INTEGER and isinstance(low, Fraction) and isinstance(high, Fraction):
        if high - low > WIDEST:
            raise ArgumentError(
                f"{table}: order: the bounds of {name} lie too far apart to tell gaps between its "
                "rows; narrow them to at most 2^62"
            )
        written = f"CLAMP({_quoted(name)}, {int(low)}, {int(high)})"
        return written, 0, int(high - low)
    raise ArgumentError(
        f"{table}: order: {name} must be a date or a whole number with declared bounds"
    )


def _gaps(given: Any, table: str) -> tuple[int, ...] | None:
    """Where the cells of gaps begin, where that is said."""
    if given is None:
        return None
    listed = check.listed(f"{table}: gaps", given, "numbers")
    found = tuple(check.whole(f"{table}: gaps", gap, 0, WIDEST) for gap in listed)
    if found[0] != 0 or any(a >= b for a, b in pairwise(found)):
        raise ArgumentError(f"{table}: gaps must begin at 0, and each be above the last")
    return found


def _history(
    domain: CellDomain,
    own: int,
    time: int,
    within: tuple[Column, ...],
    order: Column,
    edges: tuple[int, ...],
) -> tuple[History, tuple[Attribute, ...], dict[str, Any]]:
    """What the row before tells, as keys of their own: after all others."""
    at = len(domain.attributes)

    def made(name: str, values: Sequence[int], missing: bool) -> Attribute:
        key = GroupKey(name, order, Kind.INTEGER, tuple(values))
        return Attribute(name, Kind.INTEGER, tuple(values), missing=missing, key=key)

    number = made("row's number", range(1, NUMBERS + 1), False)
    gap = made("gap before", edges, True)
    before = [
        made(f"{domain.names[v]} before", range(domain.attributes[v].inner + 1), True)
        for v in range(own)
    ]
    pairs = tuple((at + 2 + v, v) for v in range(own))
    history = History(within, order, at, at + 1, edges, pairs)
    where = {"time": time, "number": at, "gap": at + 1, "before": pairs}
    return history, (number, gap, *before), where


def linked_request(
    levels: Sequence[LinkedLevel],
    budget: Budget,
    loss: Loss,
    asked: Mapping[str, Any],
    measure: Callable[[Sequence[Counts]], Mapping[str, Any]],
    measurements: Sequence[Mapping[str, Any]],
) -> Request:
    """The request that charges once for all levels, counts and measures, and keeps what came out.

    Parameters
    ----------
    levels : sequence of LinkedLevel
    budget : Budget
    loss : Loss
        Of all that is measured, at every level, as one unit moves it; proved by the caller.
    asked : mapping
        As of `TablesQuestion.request`.
    measure : callable
        From an oracle of exact tables for each level to plain data that may be published.
    measurements : sequence of mapping
        What the certificate says of the mechanisms.
    """
    first = levels[0].question
    full, names = first.promised(loss), ", ".join(level.name for level in levels)
    title = f"linked synthetic data of {names}"

    def run(secret: bytes) -> Mapping[str, Any]:
        # One key for all levels: what is kept of a unit follows from its rows and that key.
        return measure([partial(level.question._count, secret=secret) for level in levels])

    def record() -> MeasurementRecord:
        notes = [f"{level.name}: {note}" for level in levels for note in level.question.notes()]
        text = {
            "sql": title,
            "plan": Node("linked tables of counts", tuple(("", n) for n in notes)).to_dict(),
            "protects": first.protects,
            "unaccounted": UNACCOUNTED,
        }
        rows = max(level.question.max_rows for level in levels)
        return MeasurementRecord(measurements, text, max_rows=rows)

    return Request(
        first._opened,
        {
            "node": "linked tables",
            "levels": [level.question._question({"name": level.name}) for level in levels],
            "asked": dict(asked),
        },
        {"epsilon": str(budget.epsilon), "delta": str(budget.delta)},
        full,
        first.promise,
        note=lambda: {"query": title},
        tables={n: by for level in levels for n, by in level.question._asked._tables.items()},
        record=record,
        run=run,
        fits=lambda: first._what_fits(budget, full.charge),
        facts=tuple(fact for level in levels for fact in level.question._facts),
        jobs=lambda: [job for level in levels for job in level.question._jobs([(0,)])],
        schema=first._plan.schema,
    )
