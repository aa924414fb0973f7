"""Hierarchies of protected tables: ``session.table("people").hierarchy(levels=[...], epsilon=1)``.

The question passes the same policy, engine, noise, ledger and certificate as every query, in one
charge. Places come from a public table, cells from the policy; rows of the private one are read
once, after the charge, as one table of counts of the last level.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._display import Node
from dither._format import cost_text, count_text, loss_text, number_text, percent
from dither.errors import ArgumentError, nearest
from dither.mechanisms import DiscreteGaussian
from dither.policy._canonical import hashed
from dither.privacy import Loss
from dither.query._explain import UNCOUNTED
from dither.query.tables._counts import Budget, Counts, TablesQuestion
from dither.query.tables._domain import CellDomain, Clique, domain_of
from dither.query.tables._levels import PublicLevels, place_attribute, public_levels
from dither.query.tables._question import CellQuestion
from dither.session._certificate import charge_dict
from dither.session._request import AnsweredRequest, Progress
from dither.synth.hierarchy._counts import HierarchyCounts
from dither.synth.hierarchy._hierarchy import Division, HierarchyPlan, LevelNoise, plan_hierarchy
from dither.synth.hierarchy._preview import HierarchyPreview, LevelPreview
from dither.synth.hierarchy._spine import Spine
from dither.synth.marginals._divided import loss_of, parameter_of
from dither.synth.marginals._marginals import packed
from dither.synth.model._plans import SynthProgress, Tell

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["HierarchyQuestion", "asked_hierarchy"]

ROUNDED = (
    "counts are whole numbers of at least 0 that add up at every level; they are not unbiased: of "
    "cells that hold few, too many are counted, and the others make up for it. The estimates are "
    "unbiased, and so are their intervals alone"
)


def asked_hierarchy(
    rows: TableQuery,
    levels: Sequence[str],
    by: Sequence[str],
    *,
    epsilon: Any,
    delta: Any,
    places: str | None,
    invariants: Mapping[str, str] | None,
    division: Division,
    totals: Any,
    cells: int | Mapping[str, int],
    max_rows: int | None,
) -> HierarchyQuestion:
    """The question; parameters are those of ``TableQuery.hierarchy``."""
    public = public_levels(rows, levels, places)
    spine = Spine.of(levels, public.rows)
    leaf = place_attribute(rows, public, levels[-1])
    if isinstance(by, str) or not all(isinstance(name, str) for name in by):
        raise ArgumentError('by must be a list of columns, such as ["age", "sex"]')
    for name in by:
        if name in levels:
            raise ArgumentError(f"by: {name!r} is a level already")
    inner = domain_of(rows, by, cells).attributes if by else ()
    part = check.exact("totals", totals, least=0, below=1)
    known, columns = _invariants(public, spine, invariants or {})
    question = TablesQuestion(rows, CellDomain((leaf, *inner)), max_rows=max_rows)
    budget = question.budget(epsilon, delta)
    plan = plan_hierarchy(
        spine,
        CellDomain(inner).cells_in(tuple(range(len(inner)))),
        epsilon=budget.of_a_row[0],
        delta=budget.of_a_row[1],
        l1=question.l1,
        l2_squared=question.l2_squared,
        neighbours=question.neighbours,
        division=division,
        totals=part,
        known=known,
    )
    return HierarchyQuestion(question, plan, budget, public.table, columns)


def _invariants(
    public: PublicLevels, spine: Spine, given: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Public numbers by level, in the order of its places, and the columns that they come from."""
    if not isinstance(given, Mapping):
        raise ArgumentError('invariants must be a mapping, such as {"state": "population"}')
    known: dict[str, Any] = {}
    columns: dict[str, str] = {}
    for name, column in given.items():
        if name not in spine.levels:
            raise ArgumentError(f"invariants: no level {name!r}" + nearest(str(name), spine.levels))
        if not isinstance(column, str):
            raise ArgumentError(f"invariants[{name!r}] must be the name of a public column")
        numbers = public.numbers(name, column)
        own = spine.places[spine.levels.index(name)]
        missing = [place for place in own if place not in numbers]
        if missing:
            raise ArgumentError(
                f"invariants[{name!r}]: {column} has no number for "
                f"{count_text(len(missing), 'place')}"
            )
        known[name] = np.array([numbers[place] for place in own], dtype=np.int64)
        columns[name] = column if "." in column else f"{public.table}.{column}"
    return known, columns


class HierarchyQuestion(CellQuestion[HierarchyCounts]):
    """Counts of places by cells: explained and previewed free of charge, released at its price.

    Made by ``session.table(...).hierarchy(...)``.
    """

    _noun = "hierarchy"
    _gives = (HierarchyCounts,)

    def __init__(
        self,
        question: TablesQuestion,
        plan: HierarchyPlan,
        budget: Budget,
        places: str,
        invariants: Mapping[str, str],
    ) -> None:
        super().__init__(question, budget)
        self._plan, self._places, self._invariants = plan, places, dict(invariants)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels, the widest first."""
        return self._plan.spine.levels

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that each place is counted by."""
        return self.domain.names[1:]

    @property
    def _loss(self) -> Loss:
        return self._plan.loss

    @property
    def _about(self) -> str:
        return self._plan.spine.describe()

    @property
    def _title(self) -> str:
        return f"hierarchy of {', '.join(self.levels)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the counts should know."""
        leaf = self.levels[-1]
        found = [f"rows whose {leaf} is none of the places of {self._places} are in no place"]
        found += [_unprotected(name, column) for name, column in self._invariants.items()]
        return (*self._question.notes(), *found, ROUNDED)

    def _notes(self) -> tuple[str, ...]:
        return self.notes

    def _nodes(self) -> tuple[Node, ...]:
        plan, spine = self._plan, self._plan.spine
        nodes = [
            _level_node(n, level, plan.known[i] is not None, self._invariants)
            for i, (n, level) in enumerate(zip(spine.sizes, plan.levels, strict=True))
        ]
        charge = self.loss.charge
        sensitivity = f"{self._question.l1} (‖Δ‖₁), {self._question.l2_squared} (‖Δ‖₂²)"
        levels = Node(
            f"{spine.depth} levels of places, from public table {self._places}",
            (("sensitivity", f"of every table of counts {sensitivity}"),),
            tuple(nodes),
        )
        cost = [("charged", cost_text(charge.epsilon, charge.delta))]
        if charge.rho is not None:
            cost.append(("as zCDP", f"ρ = {loss_text(charge.rho)}"))
        uncounted = (("intervals", "intervals are about the noise alone"),)
        return levels, Node("costs", tuple(cost)), Node(UNCOUNTED, uncounted), self._noted()

    def preview(self, *, confidence: float = 0.95) -> HierarchyPreview:
        """How wide the intervals will be, before anything is spent or read.

        Parameters
        ----------
        confidence : float
            In (0, 1).
        """
        inside = check.confidence(confidence)
        plan, cells = self._plan, self._plan.cells
        found = []
        for i, level in enumerate(plan.levels):
            cell, total = (plan.half_widths(i, inside, of) for of in (1, cells))
            own = tuple(plan.alone(i, inside, of) for of in (1, cells))
            found.append(
                LevelPreview(
                    level.name, plan.spine.sizes[i], float(cell.max()), float(total.max()), *own
                )
            )
        charge = self.loss.charge
        cost = cost_text(charge.epsilon, charge.delta)
        return HierarchyPreview(tuple(found), cells, inside, cost)

    def release(
        self,
        *,
        token: str | None = None,
        reuse: bool | None = None,
        progress: Tell | None = None,
    ) -> HierarchyCounts:
        """Charge the ledger, count, add noise, and make counts that add up.

        Parameters
        ----------
        token : str, optional
            Names the request. Asked again with the same token, the stored answer comes back and
            nothing is charged.
        reuse : bool, optional
            Whether the newest of `published` will do, free of charge; what the policy says in
            ``[releases]`` where left out.
        progress : callable, optional
            Told what is being done, and after how many seconds.

        Returns
        -------
        HierarchyCounts

        Raises
        ------
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where anything fails after the charge. The charge stays.
        """
        return self._released(token, progress, reuse=reuse)

    def _measure(self, exact: Counts, tell: Progress) -> dict[str, Any]:
        plan, (clique,), started = self._plan, self._wanted(), time.monotonic()
        leaf = self.domain.attributes[0]
        assert leaf.values is not None
        at = {place: i for i, place in enumerate(leaf.values)}
        order = np.array([at[place] for place in plan.spine.places[-1]], dtype=np.int64)

        def said(stage: str, share: float) -> None:
            tell(SynthProgress(stage, 0, share, time.monotonic() - started))

        said("counting rows", 0.0)
        counts = exact([clique])[clique]
        said("adding noise", 0.0)
        measured = plan.measure(counts.reshape(len(counts), -1)[order])
        said("making counts that add up", 1.0)
        return {
            "levels": [_stored(level) for level in plan.levels],
            "cells": [packed(level) for level in measured.cells],
            "totals": [None if t is None else packed(t) for t in measured.totals],
            "counts": packed(plan.counts(measured)[-1]),
            "notes": list(self.notes),
        }

    def _wanted(self) -> list[Clique]:
        return [tuple(range(len(self.domain.sizes)))]

    def _read(self, answered: AnsweredRequest) -> HierarchyCounts:
        inner = CellDomain(self.domain.attributes[1:])
        return HierarchyCounts(self._plan.spine, inner, self._plan.known, answered, self.loss)

    def _asked(self) -> dict[str, Any]:
        plan, spine = self._plan, self._plan.spine
        parents = [level.tolist() for level in spine.parents]
        numbers = [None if n is None else n.tolist() for n in plan.known]
        places = hashed(
            "spine", {"places": [[str(p) for p in v] for v in spine.places], "parents": parents}
        )
        return {
            "what": "hierarchy",
            "levels": list(spine.levels),
            "places": {"table": self._places, "digest": places},
            "division": [[level.name, str(level.share)] for level in plan.levels],
            "totals": [level.total is not None for level in plan.levels],
            "invariants": dict(self._invariants),
            "numbers": hashed("numbers", {"numbers": numbers}),
            "noise": [_stored(level) for level in plan.levels],
        }

    def _measurements(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        l1, l2_squared = self._question.l1, self._question.l2_squared
        bounds = {"l1": str(l1), "l2_squared": str(l2_squared), "levels": 1}
        for level in self._plan.levels:
            for what, noise in (("cells", level.cells), ("totals", level.total)):
                if noise is not None:
                    loss = loss_of(noise, (l1, l2_squared), self._question.neighbours).charge
                    measures = {"node": "hierarchy", "level": level.name, "counts": what}
                    found.append(
                        {"measures": measures, **bounds}
                        | noise.parameters()
                        | {"loss": charge_dict(loss)}
                    )
        for name, column in self._invariants.items():
            found.append(
                {
                    "measures": {"node": "hierarchy", "level": name, "counts": "totals"},
                    "mechanism": "none",
                    "public": column,
                    "protected": False,
                    "says": _unprotected(name, column),
                }
            )
        return found


def _unprotected(level: str, column: str) -> str:
    return (
        f"the number of each {level} is {column}, which is public: it is taken as it is, without "
        "noise, and is not protected. What it tells of a person, such as that one more is there "
        "than all whom somebody knows, no epsilon limits"
    )


def _stored(level: LevelNoise) -> dict[str, Any]:
    """One level's noise as plain data."""
    family = "gaussian" if isinstance(level.cells, DiscreteGaussian) else "laplace"
    return {
        "name": level.name,
        "share": str(level.share),
        "family": family,
        "cells": str(parameter_of(level.cells)),
        "total": None if level.total is None else str(parameter_of(level.total)),
    }


def _level_node(n: int, level: LevelNoise, public: bool, invariants: Mapping[str, str]) -> Node:
    facts = [
        ("share", f"{percent(level.share)} of the budget"),
        ("cells", f"{_noise_text(level.cells)} in each"),
    ]
    if level.total is not None:
        facts.append(("totals", _noise_text(level.total)))
    if public:
        given = invariants.get(level.name)
        where = f"public, {given}" if given else "public, what lies inside added up"
        facts.append(("totals", f"{where}; not protected"))
    return Node(f"{count_text(n, 'place')} of {level.name}", tuple(facts))


def _noise_text(noise: Any) -> str:
    return f"{noise.title} noise, standard deviation {number_text(noise.variance**0.5, 3)}"
