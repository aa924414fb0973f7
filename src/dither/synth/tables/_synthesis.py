"""Synthesis of a protected table: ``session.table("adult").synthesize(epsilon=1.0, delta=1e-9)``.

One charge, before a row is read; then tables are measured, which ones by what was released so far;
what comes out is kept in the ledger, so that a token gives the same model again.

Long because all that is refused before the charge stands where it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._display import Node, table
from dither._format import cost_text, count_text, loss_text, number_text, percent
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.privacy import Charge, Loss, zcdp
from dither.query.tables._counts import Counts, TablesQuestion
from dither.query.tables._domain import CELLS, Clique, domain_of
from dither.query.tables._question import CellQuestion
from dither.session._request import AnsweredRequest, Progress, sizes_of
from dither.synth._room import CELL, room
from dither.synth._rules import rules_of
from dither.synth._spending import ZCDPBudget
from dither.synth._workload import MOST_CANDIDATES, Workload, workload_of
from dither.synth.constraints._row_rules import SimulatedTrials, names_in, row_rules
from dither.synth.model._conditional import GivenRows
from dither.synth.model._graph import GraphModel
from dither.synth.model._inside import INSIDE, FinerBins, finer_of, measured_inside
from dither.synth.model._junction import cells_of
from dither.synth.model._model import STEPS as LAST_STEPS
from dither.synth.model._plans import (
    CHOOSING,
    METHODS,
    OF_CHOICES,
    OF_COLUMNS,
    ROUNDS,
    STEPS,
    Measurements,
    SynthProgress,
    candidates_of,
    measured_by,
    total_of,
)
from dither.synth.model._result import SyntheticModel
from dither.synth.tables._stored import measured_to

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["MAX_BYTES", "Synthesis"]

MAX_BYTES = 2**20
"""What the model's tables may take, unless something else is asked for."""

_WIDE_WAY = (
    "ask marginals(2, ...) for all pairs: its release has rows without a model, by "
    "nonnegative().sample()"
)

_MEAN = math.sqrt(2 / math.pi)


class Synthesis(CellQuestion[SyntheticModel]):
    """A synthesis: explained and previewed free of charge, released at its price.

    Made by ``session.table("adult").synthesis(...)``; ``synthesize`` is its ``release``.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-differential privacy for the policy's unit and neighbours. The
    mechanism sees the table through one `ZCDPBudget`, whose text proves that it is rho-zCDP, with
    rho the largest that (epsilon, delta) holds (`rho_of_epsilon`); where trees of finer bins are
    asked for, they have a part of that rho, and a `ZCDPBudget` of their own. Cells, workload and
    limits follow from public facts; the number of rows is read from noisy tables, unless it is
    public under the policy's neighbours. Whatever is made of the measurements costs nothing.
    """

    _noun = "synthesis"
    _gives = (SyntheticModel,)

    def __init__(
        self,
        rows: TableQuery,
        epsilon: Any,
        delta: Any = None,
        *,
        method: str = "auto",
        workload: Workload | None = None,
        columns: Sequence[str] | None = None,
        cells: int | Mapping[str, int] = CELLS,
        max_rows: int | None = None,
        max_bytes: int = MAX_BYTES,
        zeros: Sequence[Mapping[str, Any]] = (),
        known: Mapping[Any, Mapping[Any, Any]] | None = None,
        total: Any = None,
        inside: str = "uniform",
        rules: Sequence[str | Mapping[str, Any]] = (),
    ) -> None:
        if method == "residual":
            raise ArgumentError(f"method: residuals are not a model of all columns; {_WIDE_WAY}")
        self.method = check.choice("method", method, METHODS)
        domain = domain_of(rows, columns, cells)
        check.choice("inside", inside, ("uniform", "tree"))
        self._finer = finer_of(domain.attributes) if inside == "tree" else {}
        if inside == "tree" and not self._finer:
            raise ArgumentError("inside: no column has bins to be divided; leave it out")
        question = TablesQuestion(rows, domain, max_rows=max_rows, also=tuple(self._finer.values()))
        super().__init__(question, question.budget(epsilon, delta))
        row_epsilon, row_delta = self.budget.of_a_row
        if row_delta == 0:
            raise ArgumentError(
                "delta must be above 0: the noise of a synthesis is Gaussian, and its parts are "
                "counted as zCDP; give delta, or [budget] one. Ranges and hierarchies take 0"
            )
        self.rho = rho_of_epsilon(row_epsilon, row_delta)
        self._of_trees = self.rho * INSIDE if self._finer else Fraction(0)
        self._of_cells = self.rho - self._of_trees
        self.max_bytes = room(max_bytes)
        self.max_cells = self.max_bytes // CELL
        singles = max(self.domain.sizes)
        if sum(self.domain.sizes) > self.max_cells:
            raise ArgumentError(
                f"max_bytes: the columns by themselves take {8 * sum(self.domain.sizes):,} bytes "
                f"(one has {singles:,} cells); raise it, cut them with cells = ..., or {_WIDE_WAY}"
            )
        names = set(domain.names)
        declared = [rule for rule in question.declared_rules if names_in(rule) <= names]
        self.row_rules = row_rules([*declared, *_listed(rules)], self.domain, self.max_cells)
        self.rules = rules_of(
            self.domain,
            self.max_cells,
            zeros=zeros,
            known=known,
            total=total,
            forbidden=self.row_rules.forbidden,
        )
        self.workload = workload_of(workload, self.domain)
        if method == "workload":
            if workload is None:
                raise ArgumentError("workload is missing: method='workload' measures its tables")
            if cells_of(self.domain.sizes, self.workload) > self.max_cells:
                raise ArgumentError(
                    "workload: a model of its tables has more cells than max_bytes has room for; "
                    "raise it, or name smaller tables"
                )
        if method in ("auto", "aim") and len(candidates_of(self.workload)) > MOST_CANDIDATES:
            raise ArgumentError(
                f"workload: {len(candidates_of(self.workload)):,} tables are too many to choose "
                f"from in every round, at most {MOST_CANDIDATES:,}; ask for pairs (workload=2), "
                f"name the tables that matter, take method='mst', or {_WIDE_WAY}"
            )

    # --- before it is paid for --------------------------------------------------------------------

    @property
    def _loss(self) -> Loss:
        epsilon, delta = self.budget.of_a_row
        found = zcdp(self.rho, neighbours=self._question.neighbours)
        charge = Charge(epsilon, delta, self.rho, Fraction(0))
        return found.with_charge(charge)

    @cached_property
    def _steps(self) -> list[tuple[str, int, Fraction, Fraction]]:
        """What is measured or chosen: how often, at which part of the budget all together, and the
        rho of one measurement."""
        columns, rho = len(self.domain.sizes), self._of_cells
        all_ = rho / self.rho
        if self.method == "independent":
            return [("columns", columns, all_, rho / columns)]
        if self.method == "workload":
            held = {v for clique in self.workload for v in clique}
            many = len(self.workload) + columns - len(held)
            weights = sum(self.workload.values()) + columns - len(held)
            return [("tables of the workload, the first of them", many, all_, rho / weights)]
        if self.method == "mst":
            pairs, each = max(columns - 1, 1), 1 - OF_COLUMNS - OF_CHOICES
            return [
                ("columns", columns, all_ * OF_COLUMNS, rho * OF_COLUMNS / columns),
                ("choices of a pair", pairs, all_ * OF_CHOICES, rho * OF_CHOICES / pairs),
                ("pairs", pairs, all_ * each, rho * each / pairs),
            ]
        each = rho * (1 - CHOOSING) / (ROUNDS * columns)
        first = min(each * columns, rho / 2)
        return [
            ("columns", columns, first / self.rho, first / columns),
            ("chosen tables, the first of them", 1, all_ - first / self.rho, each),
        ]

    def _deviation(self, rho: Fraction) -> float:
        return math.sqrt(self._question.l2_squared / (2 * float(rho)))

    @property
    def _about(self) -> str:
        return ", ".join(self.domain.names)

    @property
    def _title(self) -> str:
        return f"synthesis of {self._about}"

    def _nodes(self) -> tuple[Node, ...]:
        sizes = self.domain.sizes
        orders = []
        for k in range(1, min(3, len(sizes)) + 1):
            held = [self.domain.cells_in(c) for c in combinations(range(len(sizes)), k)]
            orders.append(
                (
                    f"{k}-way",
                    f"{len(held):,} tables, of {median(held):,.0f} cells (median), at most "
                    f"{max(held):,}",
                )
            )
        noise = [
            (
                name,
                f"{number:,}, {percent(share)} of the budget; "
                + (
                    "exponential mechanism on scores of whole numbers"
                    if name.startswith("choices")
                    else "discrete Gaussian, standard deviation "
                    f"{number_text(self._deviation(rho))}"
                    " in every cell"
                ),
            )
            for name, number, share, rho in self._steps
        ]
        if self.method in ("auto", "aim"):
            noise.append(("later tables", "less noise, as rounds with much of it tell too little"))
        if self.method in ("auto", "aim", "mst"):
            noise.append(
                ("rare values", "counted together after the columns, as the noisy columns tell")
            )
        if self.method in ("auto", "aim"):
            fewer = (
                "as the noisy columns tell, each column again, then fewer tables with less noise"
            )
            none = ", or no table of several" if self.method == "auto" else ""
            noise.append(("where rows are few", fewer + none))
        if self._finer:
            noise.append(
                (
                    "finer bins",
                    f"{count_text(len(self._finer), 'tree')}, {percent(INSIDE)} of the budget; "
                    "discrete Gaussian, divided over the levels",
                )
            )
        rho = f"{loss_text(self.rho)} (zCDP), of which every step takes a part"
        return (
            Node("tables", tuple(orders)),
            Node(f"measured by {self.method}", tuple(noise)),
            Node("model", self._work()),
            self._costs(("rho", rho)),
            self._noted(),
        )

    def _work(self) -> tuple[tuple[str, str], ...]:
        """What fitting holds and does at most, whatever the data are."""
        passes = f"{LAST_STEPS} passes over the cells for the last fit"
        if self.method in ("auto", "aim"):
            rounds = ROUNDS * len(self.domain.sizes)
            passes = f"{rounds} rounds, of {STEPS} passes over the cells each; {passes}"
        cells = f"{self.max_cells:,} cells of 8 bytes, as max_bytes says"
        if self.method == "independent":
            cells = f"{sum(self.domain.sizes):,} cells of 8 bytes"
        return (
            ("memory", f"at most {cells}"),
            ("time", f"at most {passes}"),
        )

    def preview(self, sizes: Sequence[int] = (1_000, 10_000, 100_000)) -> str:
        """What noise alone does to tables of one, two and three columns, for tables of some sizes.

        Parameters
        ----------
        sizes : sequence of int
            Public guesses of the number of rows.

        Returns
        -------
        str
            The expected total variation between a typical table and itself with noise: of a table
            that is measured, with the noise that it would get. Tables that are not measured are
            the model's, and how far off these are nobody knows before.
        """
        numbers = sizes_of(sizes)
        rows = []
        for k in range(1, min(3, len(self.domain.sizes)) + 1):
            held = [self.domain.cells_in(c) for c in combinations(range(len(self.domain.sizes)), k)]
            cells, deviation = median(held), self._deviation(self._rho_of(k))
            errors = [min(1.0, _MEAN * deviation * cells / (2 * n)) for n in numbers]
            rows.append(
                [f"{k}-way", f"{cells:,.0f}", number_text(deviation, 3)]
                + [("all noise" if e >= 0.5 else number_text(e, 2)) for e in errors]
            )
        heads = ["tables", "cells", "deviation", *(f"{n:,} rows" for n in numbers)]
        lines = [
            f"{self.method}, at {cost_text(*self._cost)}: total "
            "variation by noise alone in a table of median size, where it is measured",
            *table(heads, rows, left=1),
        ]
        return "\n".join(lines)

    def _rho_of(self, order: int) -> Fraction:
        """What one table of so many columns would get."""
        if self.method in ("auto", "aim") and order > 1:
            return self._of_cells * (1 - CHOOSING) / (2 * len(self.domain.sizes))
        return self._steps[0 if order == 1 else -1][3]

    def _notes(self) -> list[str]:
        found = self._question.notes()
        given = [
            word
            for word, there in (
                (
                    "combinations that cannot be",
                    set(self.rules.forbidden) - set(self.row_rules.forbidden),
                ),
                ("tables of counts", self.rules.known),
                ("the number of rows", self.rules.total is not None),
            )
            if there
        ]
        if given:
            found.append(f"taken as public, and not protected: {', '.join(given)}")
        if ruled := self.row_rules.names:
            listed = ", ".join(ruled[:8]) + (", ..." if len(ruled) > 8 else "")
            found.append(
                f"every row keeps what is taken as public: {listed}; rows of the data that do not "
                "are in no cell"
            )
        if self._finer:
            names = ", ".join(self.domain.names[v] for v in self._finer)
            found.append(
                f"inside their cells, {names} lie as a private tree of finer bins says, and evenly "
                "where it says no more than noise; all else is spread evenly"
            )
        else:
            found.append("numbers and dates are spread evenly inside their cells")
        found.append(
            "columns that are not measured together are taken to have no more to do with each "
            "other than what was measured says"
        )
        return found

    def check_given(self, given: Mapping[str, Any]) -> None:
        """See that rows of its model may have some values, as ``sample(given=...)`` will ask.

        Nothing is charged: it follows from the domain and the rules.

        Parameters
        ----------
        given : mapping of str to value
            By column.

        Raises
        ------
        ArgumentError
            A column or a value is not there, or no row that keeps the rules has them all.
        """
        held = {
            v: np.array([self.domain.attributes[v].place(given[self.domain.names[v]])])
            for v in self.domain.clique(list(given), "given")
        }
        forbidden, rng = self.rules.forbidden, SimulatedTrials.generator()
        beside = GivenRows(GraphModel(self.domain.sizes, forbidden, 1.0, forbidden))

        def draw(many: int) -> Any:
            return beside.rows({v: at.repeat(many) for v, at in held.items()}, many, rng)

        rows, good = draw(1)
        if not good.all():
            raise ArgumentError("given: a row that the model's public rules forbid")
        if self.row_rules.lattices:
            self.row_rules.kept_by(lambda many: draw(many)[0], rows, rng)

    # --- the release ------------------------------------------------------------------------------

    def release(
        self,
        *,
        token: str | None = None,
        reuse: bool | None = None,
        progress: Callable[[SynthProgress], None] | None = None,
    ) -> SyntheticModel:
        """Charge the ledger, measure, and give the model.

        Parameters
        ----------
        token : str, optional
            Names the request. Asked again with it, the stored model comes back, and nothing is
            charged.
        reuse : bool, optional
            Whether the newest of `published` will do, free of charge; what the policy says in
            ``[releases]`` where left out.
        progress : callable, optional
            Told how far it is, after every table.

        Raises
        ------
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where anything fails after the charge. The charge stays.
        """
        return self._released(token, progress, reuse=reuse)

    def _asked(self) -> dict[str, Any]:
        return {
            "what": "synthetic data",
            "method": self.method,
            "workload": [[list(c), str(w)] for c, w in self.workload.items()],
            "max_cells": str(self.max_cells),
            "rules": self.rules.to_dict(),
            "inside": "tree" if self._finer else "uniform",
            # What was asked before there were rules of rows keeps its digest, and is replayed.
            **({"row_rules": kept} if (kept := self.row_rules.to_list()) else {}),
        }

    def _wanted(self) -> list[Clique]:
        return [(v,) for v in range(len(self.domain.sizes) + len(self._finer))]

    def _measurements(self) -> list[dict[str, Any]]:
        found = [
            {"what": name, "number": str(number), "share": str(share)}
            for name, number, share, _ in self._steps
        ]
        if self._finer:
            trees = {"what": "finer bins", "number": str(len(self._finer)), "share": str(INSIDE)}
            found.append(trees)
        return found

    def _read(self, answered: AnsweredRequest) -> SyntheticModel:
        return SyntheticModel(answered.content, replayed=answered.replayed)

    def _measure(self, exact: Counts, tell: Progress) -> dict[str, Any]:
        question = self._question
        rules, total = self.rules, self.rules.total
        if total is None and question.public_size:
            total = float(exact([()])[()])
        bounds = question.l1, question.l2_squared
        inside: dict[int, FinerBins] = {}
        if self._finer:
            columns = self.domain.attributes
            places = {v: len(columns) + i for i, v in enumerate(self._finer)}
            inside = measured_inside(exact, self._of_trees, bounds, columns, self._finer, places)
        spending = ZCDPBudget(exact, self._of_cells, *bounds)
        found = measured_by(
            self.method,
            self.domain.sizes,
            spending,
            workload=self.workload,
            max_cells=self.max_cells,
            total=total,
            known=rules.known,
            forbidden=rules.forbidden,
            tell=tell,
        )
        return {
            "kind": "synthetic data",
            "table": question.table,
            "method": found.method,
            "domain": self.domain.to_list(),
            "total": total,
            "rules": rules.to_dict(),
            "row_rules": self.row_rules.to_list(),
            "rho": str(self.rho),
            "l2_squared": str(question.l2_squared),
            "spent": str(spending.spent + self._of_trees),
            **measured_to(found),
            "inside": {str(v): bins.to_dict() for v, bins in inside.items()},
            "uniform": says_nothing(found, total),
            "notes": self._notes(),
        }


def _listed(rules: Any) -> list[Any]:
    if isinstance(rules, str | Mapping) or not isinstance(rules, Sequence):
        raise ArgumentError('rules must be a list, such as ["end >= start"]')
    return list(rules)


def says_nothing(found: Measurements, total: float | None) -> bool:
    """Whether every measured table is noise beside the rows that there are.

    Two tables of n rows differ by 2n at most, all cells together. Where noise is expected to differ
    from nothing by as much, a table says less than that all its cells are alike.
    """
    if not found.measured:
        # All that there is to know is public.
        return False
    rows, deviation = total_of(found.measured)
    rows = rows if total is None else total
    if total is None and rows < 2 * deviation:
        return True
    return all(_MEAN * m.deviation * m.values.size >= 2 * rows for m in found.measured)
