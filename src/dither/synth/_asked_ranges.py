"""Ranges of one ordered column: ``session.table("people").ranges("age", epsilon=1)``.

One charge pays for a tree over the column's public bins (`_range_tree`), and every range of bins is
then answered from it, free of charge, with an exact variance; answers agree with one another.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._format import (
    Printable,
    cost_text,
    count_text,
    interval,
    number_text,
    percent,
    sentence,
    wrapped,
)
from dither._format import level as level_text
from dither.errors import ArgumentError, BoundsError
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace
from dither.mechanisms._combination import continuous_deviation
from dither.privacy import Loss
from dither.query._certificate import Certificate, charge_dict
from dither.query._display import Explanation, Node, Unreleased
from dither.query._domain import Attribute, domain_of
from dither.query._explain import UNCOUNTED
from dither.query._tables import Budget, Counts, Released, TablesQuestion
from dither.synth._consistent import half_widths
from dither.synth._divided import Noise, loss_of, noises_of, parameter_of
from dither.synth._marginals import packed, unpacked
from dither.synth._range_tree import Family, RangeTree

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

    from dither.query._builder import TableQuery

__all__ = ["RangeAnswer", "RangeCounts", "RangesQuestion", "asked_ranges"]

Floats = npt.NDArray[np.float64]

_LEAST = 1e-12


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
    return RangesQuestion(question, planned(question, budget, attribute.inner), budget)


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


@dataclass(frozen=True)
class RangePlan:
    """A tree, the noise of each of its levels, and what all of them lose."""

    tree: RangeTree
    noises: tuple[Noise, ...]
    loss: Loss

    @cached_property
    def variances(self) -> list[float]:
        """By level, exact; noise that is hardly ever drawn counts for a little."""
        return [max(noise.variance, _LEAST) for noise in self.noises]

    def half_width(self, first: npt.ArrayLike, end: npt.ArrayLike, confidence: float) -> Floats:
        """Of the interval of the leaves ``first`` .. ``end`` - 1."""
        spread = [continuous_deviation(noise) ** 2 for noise in self.noises]
        # Weights follow from the exact variances. The continuous laws that stand for the noises are
        # wider, by the largest of these ratios at most.
        wider = max(s / v for s, v in zip(spread, self.variances, strict=True))
        squares = wider * self.tree.variance(first, end, self.variances)
        cubes = None
        if isinstance(self.noises[0], DiscreteLaplace):
            cubes = math.sqrt(wider) * self.tree.largest(self.variances) * squares
        return half_widths(squares, cubes, confidence)


def planned(question: TablesQuestion, budget: Budget, bins: int) -> RangePlan:
    """The tree and noise of least mean variance over all ranges."""
    epsilon, delta = budget.of_a_row
    found: RangePlan | None = None
    families: tuple[Family, ...] = ("laplace",) if delta == 0 else ("laplace", "gaussian")
    for family in families:
        tree = RangeTree.choose(bins, family)
        noises, loss = noises_of(
            tree.shares,
            family,
            epsilon,
            delta,
            (question.l1, question.l2_squared),
            question.neighbours,
        )
        made = RangePlan(tree, noises, loss)
        if found is None or tree.mean_variance(made.variances) < found.tree.mean_variance(
            found.variances
        ):
            found = made
    assert found is not None
    return found


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
        found = [f"NULL and what lies outside of {attribute.name}'s cells is in no range"]
        return (*self._question.notes(), *(found if attribute.missing else []))

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
            noisy = [
                level + noise.draw(level.shape)
                for level, noise in zip(plan.tree.counts(leaves), plan.noises, strict=True)
            ]
            found = [packed(level) for level in noisy]
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


@dataclass(frozen=True, slots=True)
class RangeAnswer:
    """How many lie in a range.

    Parameters
    ----------
    estimate : float
        Unbiased; it may be below 0.
    variance : float
        Exact.
    lower, upper : float
        The interval at the confidence that was asked for.
    """

    estimate: float
    variance: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return interval(self.estimate, self.lower, self.upper)


class RangeCounts(Printable):
    """Every range of one column, as it was released. What it answers costs nothing more.

    Answers are the best unbiased estimates of all levels of the tree, so those of two ranges that
    lie side by side add up to that of both.
    """

    def __init__(self, attribute: Attribute, released: Released, loss: Loss) -> None:
        self._attribute, self._content = attribute, released.content
        self.replayed, self.loss = released.replayed, loss
        stored = self._content
        family: Family = stored["family"]
        made = DiscreteGaussian if family == "gaussian" else DiscreteLaplace
        tree = RangeTree(
            attribute.inner,
            tuple(stored["branchings"]),
            tuple(Fraction(share) for share in stored["shares"]),
            family,
        )
        noises = tuple(made(Fraction(parameter)) for parameter in stored["noise"])
        self.plan = RangePlan(tree, noises, loss)

    @property
    def name(self) -> str:
        """The column."""
        return self._attribute.name

    @property
    def certificate(self) -> Certificate:
        """What the release promises, and where the ledger has it."""
        return Certificate(self._content["certificate"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the answers should know."""
        return tuple(self._content["notes"])

    @cached_property
    def _below(self) -> Floats:
        """How many lie before each edge between bins."""
        noisy = [unpacked(text, (-1,)) for text in self._content["counts"]]
        return self.plan.tree.cumulative(noisy, self.plan.variances)

    def count(
        self, lower: Any = None, upper: Any = None, *, confidence: float = 0.95
    ) -> RangeAnswer:
        """How many lie in a range.

        Parameters
        ----------
        lower, upper : value, optional
            Of a column cut into bins, edges of bins: from ``lower`` up to below ``upper``. Of whole
            numbers and dates that are cells of their own, the first and the last, both in it. The
            ends of the column where left out.
        confidence : float
            In (0, 1).

        Raises
        ------
        ArgumentError
            An end is not one of those, or they are in the wrong order.
        """
        inside = check.confidence(confidence)
        first = 0 if lower is None else self._edge("lower", lower, 0)
        end = self._attribute.inner if upper is None else self._edge("upper", upper, 1)
        if first >= end:
            raise ArgumentError("upper must lie above lower")
        found = float(self._below[end] - self._below[first])
        variance = float(self.plan.tree.variance(first, end, self.plan.variances))
        width = float(self.plan.half_width(first, end, inside))
        return RangeAnswer(found, variance, found - width, found + width)

    def _edge(self, what: str, value: Any, after: int) -> int:
        attribute = self._attribute
        if attribute.values is not None:
            for i, own in enumerate(attribute.values):
                if type(own) is type(value) and own == value:
                    return i + after
            shown = f"{attribute.labels[0]} to {attribute.labels[attribute.inner - 1]}"
            raise ArgumentError(f"{what} must be one of the column's cells, {shown}")
        edges = attribute.edges or ()
        exact = check.exact(what, value)
        if exact not in edges:
            near = min(edges, key=lambda edge: abs(edge - exact))
            raise ArgumentError(
                f"{what} must be an edge of the bins; the nearest is {number_text(near, 6)}"
            )
        return edges.index(exact)

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: a row for each bin, and how many lie in it and in all up to it.

        ``estimate``, ``lower`` and ``upper`` are of the bin, ``below``, ``below_lower`` and
        ``below_upper`` of it and all before, at 95 %.
        """
        import polars as pl

        n = self._attribute.inner
        ends = np.arange(1, n + 1)
        columns: dict[str, Any] = {self.name: list(self._attribute.labels[:n])}
        if self._attribute.values is not None:
            columns[self.name] = list(self._attribute.values)
        for name, first in (("", np.arange(n)), ("below", np.zeros(n, dtype=np.int64))):
            found = self._below[ends] - self._below[first]
            width = self.plan.half_width(first, ends, 0.95)
            prefix = f"{name}_" if name else ""
            columns |= {
                name or "estimate": found,
                f"{prefix}lower": found - width,
                f"{prefix}upper": found + width,
            }
        return pl.DataFrame(columns)

    def summary(self) -> str:
        """A few lines for people."""
        tree = self.plan.tree
        charge, error = self.loss.charge, math.sqrt(tree.mean_variance(self.plan.variances))
        entry = self._content["certificate"]["ledger"]["entry"]
        lines = [
            f"ranges of {self.name}, {count_text(tree.bins, 'bin')}: all of it "
            f"{self.count()} at {level_text(0.95)}",
            f"Root mean squared error of all ranges: {number_text(error, 3)}.",
            f"Cost: {cost_text(charge.epsilon, charge.delta)}. Ledger entry {entry}.",
        ]
        for note in self.notes:
            lines += wrapped(sentence(f"note: {note}"), "  ", first="")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the counts of bins, and of all up to each, with their intervals.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots._hierarchy import draw_ranges

        return draw_ranges(self, path)
