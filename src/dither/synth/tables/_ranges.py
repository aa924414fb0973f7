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
from dither._display import Node
from dither._format import cost_text, count_text, number_text, percent
from dither.errors import ArgumentError, BoundsError
from dither.privacy import Loss
from dither.query._explain import UNCOUNTED
from dither.query.tables._counts import Budget, Counts, TablesQuestion
from dither.query.tables._domain import Attribute, Clique, domain_of
from dither.query.tables._question import CellQuestion
from dither.session._certificate import charge_dict
from dither.session._request import AnsweredRequest, Progress
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


class RangesQuestion(CellQuestion[RangeCounts]):
    """All ranges of one column: explained and previewed free of charge, released at a price.

    Made by ``session.table(...).ranges(...)``.
    """

    _noun = "ranges"
    _gives = (RangeCounts,)

    def __init__(self, question: TablesQuestion, plan: RangePlan, budget: Budget) -> None:
        super().__init__(question, budget)
        self._plan = plan

    @property
    def _loss(self) -> Loss:
        return self._plan.loss

    @property
    def _about(self) -> str:
        return f"of {self.domain.names[0]}"

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

    def _notes(self) -> tuple[str, ...]:
        return self.notes

    def preview(self) -> str:
        """What a release would cost, and how far off its ranges would be.

        Returns
        -------
        str
            The root of the mean variance over all ranges, before anything is spent or read.
        """
        return (
            f"{self._title}, at {cost_text(*self._cost)}: {number_text(self.error, 3)}, root mean "
            "square error of all ranges"
        )

    def _nodes(self) -> tuple[Node, ...]:
        tree = self._plan.tree
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
        return (
            Node(f"a tree over {count_text(tree.bins, 'bin')}", tuple(levels)),
            Node(
                "costs",
                (
                    ("charged", cost_text(*self._cost)),
                    ("error", f"{number_text(self.error, 3)}, root mean square of all ranges"),
                ),
            ),
            Node(UNCOUNTED, (("intervals", "intervals are about the noise alone"),)),
            self._noted(),
        )

    @property
    def _stored(self) -> dict[str, Any]:
        """The tree and its noise, as plain data."""
        plan = self._plan
        return {
            "branchings": list(plan.tree.branchings),
            "shares": [str(share) for share in plan.tree.shares],
            "family": plan.tree.family,
            "noise": [str(parameter_of(noise)) for noise in plan.noises],
        }

    def _asked(self) -> dict[str, Any]:
        return {"what": "ranges"} | self._stored

    def _wanted(self) -> list[Clique]:
        return [(0,)]

    def _measurements(self) -> list[dict[str, Any]]:
        plan = self._plan
        l1, l2_squared = self._question.l1, self._question.l2_squared
        which, bounds = self._question.neighbours, {"l1": l1, "l2_squared": l2_squared}
        return [
            {"measures": {"node": "ranges", "level": m + 1, "bins": size}, "levels": 1}
            | {name: str(bound) for name, bound in bounds.items()}
            | noise.parameters()
            | {"loss": charge_dict(loss_of(noise, (l1, l2_squared), which).charge)}
            for m, (size, noise) in enumerate(zip(plan.tree.sizes, plan.noises, strict=True))
        ]

    def _measure(self, exact: Counts, tell: Progress) -> dict[str, Any]:
        leaves = exact([(0,)])[(0,)][: self.domain.attributes[0].inner]
        counts = [packed(level) for level in self._plan.measure(leaves)]
        return self._stored | {"counts": counts, "notes": list(self.notes)}

    def _read(self, answered: AnsweredRequest) -> RangeCounts:
        return RangeCounts(self.domain.attributes[0], answered, self.loss)
