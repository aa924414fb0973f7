"""Linked tables of a session: ``session.table("persons").synthesize_linked({"visits": ...}, ...)``.

*Guarantee.* Each level is measured through a `ZCDPBudget` of its own, whose sensitivities are those
of the rows that one unit has in it: at most its ``max_rows``, whatever the level's parents,
children and order (`dither.query.tables._linked`). A unit that is added or removed, with all of its
rows in all tables, moves every table of a level by at most that. So a level is rho-zCDP for whole
units, and all of them together, one after another, are the sum (Bun and Steinke, TCC 2016, lemma
2.3). That sum is charged once.

Sources. The levels' columns of counts and the conditioning on parents are those of Cai, Xiao and
Cormode, "PrivLava: synthesizing relational data with foreign keys under differential privacy",
SIGMOD 2023, without its latent classes; each level is measured by AIM (`model._plans`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

from dither._display import Explanation, Node, table
from dither._format import cost_text, number_text, percent
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.privacy import Charge, Loss, zcdp
from dither.query.tables._counts import Counts
from dither.query.tables._domain import CellDomain, Clique
from dither.query.tables._linked import LinkedLevel, linked_levels, linked_request
from dither.session._request import AnsweredRequest, PricedQuestion, Progress, Request, sizes_of
from dither.synth._room import CELL, room
from dither.synth._rules import Rules, rules_of
from dither.synth._spending import ZCDPBudget
from dither.synth._workload import MOST_CANDIDATES, WIDE
from dither.synth.constraints._row_rules import RowRules, names_in, row_rules
from dither.synth.linked._levels import history_zeros
from dither.synth.linked._model import LinkedModel
from dither.synth.model._plans import CHOOSING, ROUNDS, SynthProgress, candidates_of, measured_by
from dither.synth.tables._stored import measured_to
from dither.synth.tables._synthesis import MAX_BYTES, says_nothing

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["LinkedSynthesis"]


class LinkedSynthesis(PricedQuestion[LinkedModel]):
    """Linked tables that may be explained and previewed free of charge, and released at a price.

    Parameters
    ----------
    rows : TableQuery
        The table with one row for each unit.
    children : mapping of str to mapping
        By table below it: ``most`` rows that one row has there, and where needed ``order``,
        ``key``, ``on``, ``columns``, ``max_rows``, ``gaps``, ``rules`` and ``children``.
    epsilon, delta : number
        What it may cost.
    columns, cells, rules
        Of the first table, as of a synthesis; ``cells`` of all.
    max_bytes : int
        What the model of each level may take.
    """

    _noun = "linked synthesis"
    _gives = (LinkedModel,)

    def __init__(
        self,
        rows: TableQuery,
        children: Mapping[str, Any],
        epsilon: Any,
        delta: Any = None,
        *,
        columns: Sequence[str] | None = None,
        cells: int | Mapping[str, int] = 32,
        rules: Sequence[str | Mapping[str, Any]] = (),
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.levels = linked_levels(rows, children, columns=columns, cells=cells, rules=rules)
        first = self.levels[0].question
        self.budget = first.budget(epsilon, delta)
        if not self.budget.delta:
            raise ArgumentError(
                "delta must be above 0: the noise of a synthesis is Gaussian; give delta, or "
                "[budget] one"
            )
        self.rho = rho_of_epsilon(self.budget.epsilon, self.budget.delta)
        self.max_bytes = room(max_bytes)
        self._max_cells = self.max_bytes // CELL
        self._row_rules: list[RowRules] = []
        self._rules: list[Rules] = []
        for level in self.levels:
            own = CellDomain(tuple(level.domain.attributes[v] for v in level.own))
            declared = level.question._opened.policy.tables[level.name].rules
            declared = tuple(r for r in declared if names_in(r) <= set(own.names))
            kept = row_rules([*declared, *level.rules], own, self._max_cells)
            where = {"number": level.number, "gap": level.gap, "before": level.before}
            zeros = history_zeros(level.domain, where | {"time": level.time})
            self._row_rules.append(kept)
            self._rules.append(
                rules_of(level.domain, self._max_cells, forbidden=zeros | kept.forbidden)
            )
        self._workloads = [_workload(level) for level in self.levels]

    # --- before it is paid for --------------------------------------------------------------------

    @property
    def loss(self) -> Loss:
        """What a release would lose, with its promise."""
        first = self.levels[0].question
        charge = Charge(self.budget.epsilon, self.budget.delta, self.rho, Fraction(0))
        return first.promised(zcdp(self.rho, neighbours=first.neighbours).with_charge(charge))

    @property
    def _shares(self) -> list[Fraction]:
        """The part of the budget of each level: as many as columns are to be told there."""
        told = [len(x.own) + len(x.counts) + (x.gap is not None) for x in self.levels]
        return [Fraction(n, sum(told)) for n in told]

    @property
    def _about(self) -> str:
        return ", ".join(level.name for level in self.levels)

    def _deviation(self, place: int) -> float:
        """Of a cell of a first table of a level."""
        level, share = self.levels[place], self._shares[place]
        each = self.rho * share * (1 - CHOOSING) / (ROUNDS * len(level.domain.sizes))
        return math.sqrt(level.question.l2_squared / (2 * float(each)))

    def explain(self) -> Explanation:
        """Who is protected, what each level counts with which noise, and what it costs."""
        first = self.levels[0].question
        nodes = []
        for place, level in enumerate(self.levels):
            above = "a row is a unit"
            if level.parent >= 0:
                above = f"below {self.levels[level.parent].name}, at most {level.most} for a row"
            columns = ", ".join(level.domain.names[v] for v in level.own)
            facts = [
                ("rows", above),
                ("one unit", f"counts with at most {level.question.max_rows} rows"),
                ("columns", columns),
                ("budget", f"{percent(self._shares[place])}; first tables with deviation "
                           f"{number_text(self._deviation(place))}"),
            ]  # fmt: skip
            if level.time is not None:
                name = level.domain.names[level.time]
                facts.insert(1, ("order", f"{name}, and what the row before has"))
            nodes.append(Node(f"level {level.name}", tuple(facts)))
        who, neighbours = first.protects, [("account", first.promise.unit)]
        cost = Node(
            "cost, charged before a row is read",
            (
                ("epsilon, delta", cost_text(self.budget.epsilon, self.budget.delta)),
                (
                    "rho",
                    f"{number_text(float(self.rho), 4)} (zCDP), of which each level has a part",
                ),
            ),
        )
        notes = Node("notes", tuple(("", note) for note in self._notes()))
        title = f"linked synthesis of {self._about}"
        children = (Node(f"protects {who}", tuple(neighbours)), *nodes, cost, notes)
        return Explanation(Node(title, children=children))

    def preview(self, sizes: Sequence[int] = (1_000, 10_000, 100_000)) -> str:
        """The noise in a cell of each level's first tables, beside units of some numbers.

        Parameters
        ----------
        sizes : sequence of int
            Public guesses of the number of units.
        """
        numbers = sizes_of(sizes, "units")
        rows = []
        for place, level in enumerate(self.levels):
            deviation = self._deviation(place)
            rows.append(
                [level.name, number_text(deviation, 3)]
                + [percent(Fraction(min(1.0, deviation / n)), 2) for n in numbers]
            )
        heads = ["table", "deviation", *(f"of {n:,} units" for n in numbers)]
        return "\n".join(
            [
                f"at {cost_text(self.budget.epsilon, self.budget.delta)}: the noise of one count "
                "in a level's first tables, in rows",
                *table(heads, rows, left=1),
            ]
        )

    def _notes(self) -> list[str]:
        found = []
        for level, rules in zip(self.levels, self._row_rules, strict=True):
            found += [
                f"{level.name}: {note}"
                for note in level.question.notes()
                if not any(word in note for word in ("'s ", " before", "number of", "is taken"))
            ]
            if rules.names:
                found.append(
                    f"{level.name}: every row keeps what is taken as public: "
                    f"{', '.join(rules.names[:8])}"
                )
        found.append(
            "a row is taken to have nothing to do with rows further back than the one before, nor "
            "with those above its parent, but through these"
        )
        return found

    # --- the release ------------------------------------------------------------------------------

    def release(
        self,
        *,
        token: str | None = None,
        reuse: bool | None = None,
        progress: Callable[[SynthProgress], None] | None = None,
    ) -> LinkedModel:
        """Charge the ledger once, measure every level, and give the model.

        Parameters
        ----------
        token, reuse, progress
            As of a synthesis.

        Raises
        ------
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where anything fails after the charge. The charge stays.
        """
        return self._released(token, progress, reuse=reuse)

    def _request(self, tell: Progress) -> Request:
        asked = {
            "what": "linked synthetic data",
            "max_cells": str(self._max_cells),
            "levels": [
                {
                    "table": level.name,
                    "parent": str(level.parent),
                    "most": str(level.most),
                    "counts": [[str(b), str(v)] for b, v in level.counts],
                    "parents": [[str(a), str(b)] for a, b in level.parents],
                    "rules": rules.to_dict(),
                    "row_rules": kept.to_list(),
                }
                for level, rules, kept in zip(
                    self.levels, self._rules, self._row_rules, strict=True
                )
            ],
        }
        measurements = [
            {
                "what": f"tables of {level.name}",
                "share": str(share),
                "max_rows": str(level.question.max_rows),
                "l2_squared": str(level.question.l2_squared),
            }
            for level, share in zip(self.levels, self._shares, strict=True)
        ]
        return linked_request(
            self.levels,
            self.budget,
            self._loss_of_unit,
            asked,
            lambda exact: self._measure(exact, tell),
            measurements,
        )

    @property
    def _loss_of_unit(self) -> Loss:
        charge = Charge(self.budget.epsilon, self.budget.delta, self.rho, Fraction(0))
        found = zcdp(self.rho, neighbours=self.levels[0].question.neighbours)
        return found.with_charge(charge)

    def _read(self, answered: AnsweredRequest) -> LinkedModel:
        return LinkedModel(answered.content, replayed=answered.replayed)

    def _measure(self, exact: Sequence[Counts], tell: Progress) -> dict[str, Any]:
        levels = []
        for place, (level, oracle) in enumerate(zip(self.levels, exact, strict=True)):
            question, rules = level.question, self._rules[place]
            total = None
            if not place and question.public_size:
                total = float(oracle([()])[()])
            rho = self.rho * self._shares[place]
            spending = ZCDPBudget(oracle, rho, question.l1, question.l2_squared)
            found = measured_by(
                "auto",
                level.domain.sizes,
                spending,
                workload=self._workloads[place],
                max_cells=self._max_cells,
                forbidden=rules.forbidden,
                total=total,
                tell=tell,
            )
            levels.append(
                {
                    "table": level.name,
                    "parent": level.parent,
                    "domain": level.domain.to_list(),
                    "where": _where(level),
                    "max_rows": question.max_rows,
                    "total": total,
                    "rules": rules.to_dict(),
                    "row_rules": self._row_rules[place].to_list(),
                    "rho": str(rho),
                    "l2_squared": str(question.l2_squared),
                    **measured_to(found),
                    "uniform": says_nothing(found, total),
                }
            )
        return {"kind": "linked synthetic data", "levels": levels, "notes": self._notes()}


def _where(level: LinkedLevel) -> dict[str, Any]:
    """Where a level has what, as plain data."""
    return {
        "own": list(level.own),
        "counts": [list(pair) for pair in level.counts],
        "parents": [list(pair) for pair in level.parents],
        "before": [list(pair) for pair in level.before],
        "time": level.time,
        "number": level.number,
        "gap": level.gap,
        "edges": list(level.edges),
        "origin": level.origin,
        "unit": level.unit,
        "key": level.key,
        "on": level.on,
        "texts": list(level.texts),
    }


def _workload(level: LinkedLevel) -> dict[Clique, int]:
    """The tables that a level is to have right: of what its rows are to have, beside all else."""
    every = range(len(level.domain.sizes))
    told = [*level.own, *(v for _, v in level.counts)]
    if level.gap is not None:
        told.append(level.gap)
    found: dict[Clique, int] = {}
    # What is given goes together, too: a model that took it for independent would count what it
    # says of a row twice.
    for a, b in combinations(every, 2):
        found[a, b] = 1
    if len(told) <= WIDE:
        for three in combinations(told, 3):
            found[three] = 1
        beside = [v for v, _ in level.parents]
        if level.number is not None:
            beside.append(level.number)
        for key, of in level.before:
            for v in beside:
                found[tuple(sorted((key, of, v)))] = 1
    found = found or {(v,): 1 for v in every}
    if len(candidates_of(found)) > MOST_CANDIDATES:
        raise ArgumentError(
            f"{level.name}: its {len(told)} columns make too many tables; name fewer by columns"
        )
    return found
