"""Ranges of one ordered column: ``session.table("people").ranges("age", epsilon=1)``.

One charge pays for a tree over the column's public bins (`_tree`), and every range of bins is
then answered from it, free of charge, with an exact variance; answers agree with one another.
"""

from __future__ import annotations

import datetime as dt
import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dither import _checks as check
from dither._display import Explanation, Node, Unreleased
from dither._format import cost_text, count_text, number_text, percent
from dither.errors import ArgumentError, BoundsError
from dither.privacy import Loss
from dither.query._certificate import charge_dict
from dither.query._explain import UNCOUNTED
from dither.query.tables._counts import Budget, Counts, TablesQuestion
from dither.query.tables._domain import Attribute, domain_of
from dither.synth.marginals._divided import loss_of, parameter_of
from dither.synth.marginals._marginals import packed
from dither.synth.ranges._counts import RangeCounts
from dither.synth.ranges._plan import RangePlan, planned

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["RangesQuestion", "asked_ranges"]


def asked_ranges(
    rows: TableQuery, column: str, *, epsilon: Any, delta: Any, bins: int, max_rows: int | None
) -> RangesQuestion:
    """The question; parameters are those of ``TableQuery.ranges``."""
    if not isinstance(column, str):
        raise ArgumentError("x must be the name of a column")
    domain = domain_of(rows, [column], check.whole("bins", bins, 1, 1 << 20))
    attribute = domain.attributes[0]
    _check_ordered(attribute)
    question = TablesQuestion(rows, domain, max_rows=max_rows)
    budget = question.budget(epsilon, delta)
    bounds = (question.l1, question.l2_squared)
    plan = planned(attribute.inner, *budget.of_a_row, bounds, question.neighbours)
    return RangesQuestion(question, plan, budget)


def _check_ordered(attribute: Attribute) -> None:
    values: Any = attribute.values
    if values is None:
        return
    ordered = all(isinstance(v, int | dt.date) and not isinstance(v, bool) for v in values)
    if not ordered or any(a >= b for a, b in pairwise(values)):
        raise BoundsError(
            f"{attribute.name} has no order of which ranges could be asked: it takes numbers or "
            "dates with bounds or bins, or values that are declared in rising order"
        )


class RangesQuestion(Unreleased):
    """All ranges of one column: explained and previewed free of charge, released at a price.

    Made by ``session.table(...).ranges(...)``.
    """

    _RESULTS = ("frame", "count", "summary", "plot", "certificate")

    def __init__(self, question: TablesQuestion, plan: RangePlan, budget: Budget) -> None:
        self._question, self._plan, self._budget = question, plan, budget

    @property
    def loss(self) -> Loss:
        """What a release would lose, with its promise."""
        return self._question.promised(self._plan.loss)

    @property
    def error(self) -> float:
        """The root of the mean variance over all ranges, before anything is spent."""
        return math.sqrt(self._plan.tree.mean_variance(self._plan.variances))

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answers should know."""
        attribute = self._question.domain.attributes[0]
        found = []
        if attribute.missing:
            others = (
                "" if attribute.clamped else f" and what lies outside of {attribute.name}'s cells"
            )
            found.append(f"NULL{others} is in no range")
        return (*self._question.notes(), *found)

    def explain(self) -> Explanation:
        """Who is protected, how the tree is counted, and what it costs."""
        tree = self._plan.tree
        protected, reads, cells = self._question.nodes()
        levels = [
            (
                f"level {m + 1}",
                f"nodes of {count_text(size, 'bin')}, {percent(share)} of the budget, "
                f"{noise.title} noise of deviation {number_text(noise.variance**0.5, 3)}",
            )
            for m, (size, share, noise) in enumerate(
                zip(tree.sizes, tree.shares, self._plan.noises, strict=True)
            )
        ]
        charge = self.loss.charge
        children = (
            protected,
            reads,
            cells,
            Node(f"a tree over {count_text(tree.bins, 'bin')}", tuple(levels)),
            Node(
                "costs",
                (
                    ("charged", cost_text(charge.epsilon, charge.delta)),
                    ("error", f"{number_text(self.error, 3)}, root mean square of all ranges"),
                ),
            ),
            Node(UNCOUNTED, (("intervals", "intervals are about the noise alone"),)),
            Node("notes", tuple(("", note) for note in self.notes)),
        )
        name = self._question.domain.names[0]
        return Explanation(Node(f"ranges of {name}", children=children))

    def release(self, *, token: str | None = None) -> RangeCounts:
        """Charge the ledger, count the tree, add noise.

        Parameters
        ----------
        token : str, optional
            Names the request. Asked again with the same token, the stored answer comes back and
            nothing is charged.

        Raises
        ------
        BudgetError
            Where an account cannot bear it; nothing is spent.
        EngineError
            Where anything fails after the charge. The charge stays.
        """
        plan, attribute = self._plan, self._question.domain.attributes[0]
        stored = {
            "branchings": list(plan.tree.branchings),
            "shares": [str(share) for share in plan.tree.shares],
            "family": plan.tree.family,
            "noise": [str(parameter_of(noise)) for noise in plan.noises],
        }

        def measure(counts: Counts) -> dict[str, Any]:
            leaves = counts([(0,)])[(0,)][: attribute.inner]
            found = [packed(level) for level in plan.measure(leaves)]
            return stored | {"counts": found, "notes": list(self.notes)}

        l1, l2_squared = self._question.l1, self._question.l2_squared
        which, bounds = self._question.neighbours, {"l1": l1, "l2_squared": l2_squared}
        measurements = [
            {"measures": {"node": "ranges", "level": m + 1, "bins": size}, "levels": 1}
            | {name: str(bound) for name, bound in bounds.items()}
            | noise.parameters()
            | {"loss": charge_dict(loss_of(noise, (l1, l2_squared), which).charge)}
            for m, (size, noise) in enumerate(zip(plan.tree.sizes, plan.noises, strict=True))
        ]
        released = self._question.release(
            self._budget,
            plan.loss,
            {"what": "ranges"} | stored,
            measure,
            wanted=[(0,)],
            measurements=measurements,
            token=token,
        )
        return RangeCounts(attribute, released, self.loss)

    def __repr__(self) -> str:
        return f"<ranges, not released yet: of {self._question.domain.names[0]}>"
