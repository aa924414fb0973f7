"""Learning what a policy would have to declare: bounds, limits of contribution, lists of keys.

Each is a question like any other: planned, charged first, run by the engine, protected by exact
noise, stored in the ledger, replayed free. What is learned is read off the noisy histogram
(``dither.query.learning._histogram_ends``), and stands in the stored answer and, by name, in the
note of the charge.

Where a column says whose a row is, each unit counts once: in a histogram of values its rows share
one, in a histogram of sizes it is in one cell, of keys it names one of those that it has.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither.errors import ArgumentError, QueryError
from dither.plan import aggregates as ag
from dither.plan import expressions as ex
from dither.plan.answers import ExactAnswer
from dither.plan.job import Job, Sides
from dither.plan.lowering.lower import Plan
from dither.plan.lowering.magnitudes import ORIGIN, SIZES, DayGrid
from dither.plan.lowering.recipes import CellsRecipe
from dither.plan.relations import Relation, Scan
from dither.plan.schema import ColumnFacts, Kind, Schema
from dither.query._noise import NoisePlan, Noisy, on_grid
from dither.query._question import Question
from dither.query.learning._histogram_ends import (
    ends_of,
    limit_of,
    outside_of,
    share_beyond,
    threshold,
)
from dither.session._opened import OpenedPolicy
from dither.sql.rows.joins import unnest

__all__ = ["CUT", "KINDS", "FactQuestion", "learning_query"]

KINDS = ("bounds", "limits", "keys")
"""What can be learned."""

CUT = Fraction(1, 20)
"""The share of units that a limit may cut: a few large ones, for whom all would pay in noise."""

COUNTED = (Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN, Kind.DATE)


def learning_query(
    schema: Schema,
    name: str,
    kind: str,
    column: str | None,
    by: Sequence[ex.Expression] = (),
    origin: dt.date | None = None,
) -> ag.Query:
    """The question that a kind of fact is learned by.

    Of a column of lists it is asked of their elements, a row for each, as ``UNNEST`` gives them:
    the elements of one unit share its one vote, and of a row that is a person so many elements
    count as the policy says (``max_items``), for which the price is that of a group of so many.

    Raises
    ------
    ArgumentError, QueryError
        Where there is nothing of that kind to learn of the table or column.
    """
    table = schema.table(name)
    if not table.private:
        raise QueryError(f"table {table.name!r} is public: read it, and declare what you find")
    scan = Scan(table.name, table.name)
    once = ag.Query if table.unit is None else ag.QueryOfUnits
    if kind == "limits":
        if column is not None:
            raise ArgumentError('column: limits are of a table; name columns with by = ["region"]')
        if table.unit is None:
            raise QueryError(
                f"limits of {table.name}: no column says whose a row is, so there are none"
            )
        sizes = [ag.Output("rows", ag.UnitSizes(tuple(by), groups=False))]
        if by:
            sizes.append(ag.Output("groups", ag.UnitSizes(tuple(by), groups=True)))
        return ag.QueryOfUnits(scan, (), tuple(sizes))
    if origin is not None and kind != "bounds":
        raise ArgumentError(f"origin: it is of bounds of dates and times, and not of {kind}")
    if by:
        raise ArgumentError(f"by: {kind} are of one column; only limits are of groups")
    if column is None:
        raise ArgumentError(f"column must be given: whose {kind} are to be learned")
    if column == table.unit:
        raise QueryError(
            f"{kind} of {column}: it says who is protected, and its values stand for people; count "
            f"these with COUNT(DISTINCT {column})"
        )
    facts, rows, found = _asked_of(scan, column, schema)
    if kind == "bounds":
        if not (facts.kind.numeric or facts.kind.temporal):
            raise QueryError(
                f"bounds of {column}: it is {facts.kind.value}, and only those of numbers, dates "
                'and times can be learned; learn its values with kind = "keys"'
            )
        if origin is not None and not facts.kind.temporal:
            raise ArgumentError(f"origin: it is of dates and times, and {column} holds numbers")
        about = (origin or ORIGIN) if facts.kind.temporal else None
        return once(rows, (), (ag.Output("n", ag.Magnitudes(found, about)),))
    if facts.kind not in COUNTED:
        raise QueryError(f"keys of {column}: a {facts.kind.value} has too many values to list")
    name = "n" if column != "n" else "units"
    key = ag.Key(column, found)
    return once(rows, (key,), (ag.Output(name, ag.CountUnits()),), discover=True)


def _asked_of(
    scan: Scan, column: str, schema: Schema
) -> tuple[ColumnFacts, Relation, ex.Expression]:
    """What is declared of a column or the elements of one, their rows, and how these name it."""
    table = schema.table(scan.table)
    if column not in table.lists:
        return table.column(column), scan, ex.Column(scan.alias, column)
    alias = "elements" if scan.alias.lower() != "elements" else "items"
    rows = unnest(scan, (column, None), alias, column, schema, exact=True)
    return table.lists[column], rows, ex.Column(alias, column)


class FactQuestion(Question):
    """The question that one fact is learned by; ``release`` charges for it and gives the answer.

    Notes
    -----
    *Guarantee.* That of its release, for the neighbours that ``explain`` names. Bounds and limits
    take two steps: a histogram, and then the numbers outside and inside of the ends found in it.
    Both have the sensitivity that ``dither.plan.lowering.sensitivity`` proves, whatever the ends;
    the ends are a function of what was released; so the second step is one that may be chosen
    adaptively, and the charge is that of both, added up.
    """

    def __init__(
        self, plan: Plan, opened: OpenedPolicy, kind: str, column: str | None, by: Sequence[str]
    ) -> None:
        super().__init__(plan, opened)
        self.kind = kind
        self.column = column
        self.by = tuple(by)
        # What is learned rests on nothing that was learned before, and is asked of all values.
        self._facts = ()

    @property
    def fact(self) -> dict[str, Any]:
        """What is learned, by name: as the ledger notes it."""
        table = self._plan.table
        named: dict[str, Any] = {"kind": self.kind, "table": table.name}
        if self.column is None:
            return named | {"by": list(self.by)}
        listed = table.lists.get(self.column)
        if listed is not None:
            return named | {"column": self.column, "type": listed.kind.value, "elements": True}
        return named | {"column": self.column, "type": table.column(self.column).kind.value}

    def _note(self) -> dict[str, Any]:
        return super()._note() | {"learn": self.fact}

    @property
    def _recipes(self) -> list[CellsRecipe]:
        return [r for r in self._plan.recipes if isinstance(r, CellsRecipe)]

    @property
    def _jobs(self) -> Sequence[Job]:
        if not self._recipes:
            return super()._jobs
        return self._first, self._second([_anywhere(recipe) for recipe in self._recipes])

    @property
    def _first(self) -> Job:
        job = self._plan.job
        return replace(job, measurements=tuple(job.measurements[r.cells] for r in self._recipes))

    def _second(self, edges: Sequence[tuple[Fraction, ...]]) -> Job:
        job = self._plan.job
        made = []
        for recipe, inner in zip(self._recipes, edges, strict=True):
            sides = job.measurements[recipe.sides]
            assert isinstance(sides, Sides)
            made.append(sides.between(*inner))
        return replace(job, measurements=tuple(made))

    def _measured(self, noise_plan: NoisePlan, confidence: float, secret: bytes) -> Noisy:
        if not self._recipes:
            return super()._measured(noise_plan, confidence, secret)
        engine, schema = self._opened.engine, self._plan.schema
        values: dict[int, Any] = {}

        def add(job: Job, places: Sequence[int]) -> None:
            answer = engine.run(job, schema, secret)
            exact = on_grid([()], ExactAnswer(answer.keys, answer.values), job.measurements)
            for place, at in enumerate(places):
                noise = noise_plan.noises[at]
                assert noise is not None
                values[at] = noise_plan.trees[at].measure(exact[place].dense(), noise)

        add(self._first, [r.cells for r in self._recipes])
        found = self._edges(noise_plan, values, confidence)
        edges = [e or _anywhere(r) for e, r in zip(found, self._recipes, strict=True)]
        add(self._second(edges), [r.sides for r in self._recipes])
        return Noisy([()], values)

    def _edges(
        self, noise_plan: NoisePlan, values: dict[int, Any], confidence: float
    ) -> list[tuple[Fraction, ...] | None]:
        """The edges of the cells of the second step; ``None`` where nothing is found."""
        found: list[tuple[Fraction, ...] | None] = []
        for recipe in self._recipes:
            ends = _ends(recipe, noise_plan, values, confidence)
            if ends is None:
                found.append(None)
            elif recipe.grid is None:
                found.append((ends[1] + 1,))
            else:
                found.append(recipe.grid.around(*ends))
        return found

    def _data(self, noise_plan: NoisePlan, noisy: Noisy, confidence: float) -> dict[str, Any]:
        data = super()._data(noise_plan, noisy, confidence)
        if not self._recipes:
            return data | {"learned": self.fact | _keys(data, noise_plan, self.column)}
        names = [output.name for output in self._plan.query.outputs]
        found = {
            name: _learned_end(recipe, noise_plan, noisy, confidence)
            for name, recipe in zip(names, self._recipes, strict=True)
        }
        cells = len(data["columns"][0]["values"])
        data["columns"] = [*_cell_columns(self._recipes[0], cells), *data["columns"]]
        data["keys"] = ["from", "to"]
        data["units"] = {"from": None, "to": None} | data["units"]
        learned = found["n"] if self.kind == "bounds" else found
        return data | {"learned": self.fact | learned}


def _anywhere(recipe: CellsRecipe) -> tuple[Fraction, ...]:
    """Edges for a trial, and where none were found."""
    return (Fraction(2),) if recipe.grid is None else recipe.grid.around(Fraction(0), Fraction(1))


def _ends(
    recipe: CellsRecipe, noise_plan: NoisePlan, values: dict[int, Any], confidence: float
) -> tuple[Fraction, Fraction] | None:
    """The ends found in a noisy histogram; of sizes, 1 and the limit."""
    (counts,) = values[recipe.cells]
    noise = noise_plan.noises[recipe.cells]
    assert noise is not None
    if not len(counts):
        return None
    if recipe.grid is None:
        cell = limit_of(counts[0], noise, CUT)
        # Above the last cell there is no end.
        if cell is None or cell == len(SIZES) - 1:
            return None
        return Fraction(1), _size(cell)[1]
    found = ends_of(counts[0], noise, 1 - check.exact("confidence", confidence))
    if found is None:
        return None
    lower, upper = recipe.grid.ends(found[0])[0], recipe.grid.ends(found[1])[1]
    return lower, upper if lower < upper else upper + 1


def _size(cell: int) -> tuple[Fraction, Fraction]:
    """The sizes in a cell; the last has no end, and says where it begins."""
    first = SIZES[cell]
    return Fraction(first), Fraction(SIZES[cell + 1] - 1 if cell + 1 < len(SIZES) else first)


def _learned_end(
    recipe: CellsRecipe, noise_plan: NoisePlan, noisy: Noisy, confidence: float
) -> dict[str, Any]:
    """What is learned from one histogram, with its error."""
    noise = noise_plan.noises[recipe.cells]
    check_noise = noise_plan.noises[recipe.sides]
    assert noise is not None
    assert check_noise is not None
    cells = noise_plan.trees[recipe.cells].bins - (0 if recipe.grid is None else 2)
    found: dict[str, Any] = {"seen": threshold(noise, cells) / recipe.parts}
    (sides,) = noisy.values[recipe.sides]
    counted = sides[0] if len(sides) else None
    measured = noise_plan.plan.job.measurements[recipe.sides]
    if isinstance(measured, Sides) and measured.unreadable and counted is not None:
        # Whatever the ends are, and where none are found: all values there are, and the unread.
        lost = outside_of(counted[-1:], counted[:-1], check_noise, confidence)
        found["unreadable"] = {"expected": lost.expected, "most": lost.most}
        counted = counted[:-1]
    ends = _ends(recipe, noise_plan, noisy.values, confidence)
    if ends is None or counted is None:
        return found | {"lower": None, "upper": None, "expected": None, "most": None}
    inner = 0 if recipe.grid is None else 1
    beyond = np.delete(counted, inner)
    share = outside_of(beyond, counted[inner : inner + 1], check_noise, confidence)
    lower, upper = map(str, ends) if recipe.grid is None else recipe.grid.texts(*ends)
    found |= {"lower": lower, "upper": upper}
    if recipe.grid is None:
        (units,) = noisy.values[recipe.cells]
        sizes = [sum(_size(cell), start=Fraction(0)) / 2 for cell in range(len(SIZES))]
        found["beyond"] = share_beyond(units[0], sizes, ends[1], noise)
    return found | {"expected": share.expected, "most": share.most}


def _cell_columns(recipe: CellsRecipe, cells: int) -> list[dict[str, Any]]:
    """Where each cell lies, as two columns."""
    grid = recipe.grid
    if isinstance(grid, DayGrid):
        kind = "timestamp" if grid.moments else "date"
        days = [grid.texts(*grid.ends(i)) for i in range(cells)]
        return [
            {"name": name, "kind": kind, "values": [ends[place] for ends in days]}
            for place, name in enumerate(("from", "to"))
        ]
    ends = [_size(i) if grid is None else grid.ends(i) for i in range(cells)]
    whole = grid is None or grid.whole
    kind = "integer" if whole else "real"
    made: list[dict[str, Any]] = []
    for place, name in enumerate(("from", "to")):
        values = [int(e[place]) if whole else float(e[place]) for e in ends]
        made.append({"name": name, "kind": kind, "values": values})
    return made


def _keys(data: dict[str, Any], noise_plan: NoisePlan, column: str | None) -> dict[str, Any]:
    """The keys that were shown, as constants, and which are likely to be missing."""
    assert noise_plan.allocation is not None
    rule = noise_plan.allocation.keys
    assert rule is not None
    (found,) = (c for c in data["columns"] if c["name"] == column)
    values = [v for v in found["values"] if v is not None]
    return {"values": values, "half": rule.n_for(0.5), "rare": rule.n_for(0.05)}
