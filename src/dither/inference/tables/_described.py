"""A description of a protected table: ``session.table("visits").infer(epsilon=1).describe("arm")``.

Every column is counted by the groups and its own cells, exactly and in one run: a number in up to
4,096 equal cells between its bounds, whose middles stand for its values. What leaves is
`DescriptionRelease`'s vector of these, whose sensitivity is that of one row: of a person with
several rows one counts, the same in every column, chosen by a keyed hash of the person's own rows.
So people are an independent sample, each with one of their rows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._display import Node
from dither._stats import two_sided
from dither.errors import ArgumentError, BoundsError, QueryError
from dither.inference.engine._inputs import Target
from dither.inference.engine._release import spread_of
from dither.inference.engine._result import MEASURED
from dither.inference.paper._describe import level_names
from dither.inference.paper._described import (
    ALL,
    HOW_SPLIT,
    CategoryFacts,
    DescribedRows,
    NumberFacts,
    PrivateDescription,
    described,
)
from dither.inference.paper._release import DescriptionRelease, ExactDescription
from dither.inference.tables._question import InferencePreview
from dither.privacy import Loss
from dither.query._explain import UNCOUNTED
from dither.query.tables import _statistics as st
from dither.query.tables._counts import Budget, ExactTables, TablesQuestion
from dither.query.tables._domain import (
    Attribute,
    CellDomain,
    Clique,
    columns_in,
    domain_of,
    evenly,
    is_number,
)
from dither.query.tables._question import CellQuestion
from dither.session._certificate import charge_dict
from dither.session._request import AnsweredRequest, Progress, sizes_of

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["DescriptionQuestion", "asked_description"]

FINE = 4096
"""Into how many cells a number is cut at most: its mean is no finer than half of one."""


def asked_description(
    rows: TableQuery,
    by: str | None,
    columns: Sequence[str],
    bins: int,
    epsilon: Fraction,
    delta: Any,
) -> DescriptionQuestion:
    """The question; parameters are those of ``Inference.describe``."""
    most = check.whole("bins", bins, 2, FINE)
    if by is not None and not isinstance(by, str):
        raise ArgumentError("by must be the name of a column")
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise ArgumentError('columns must be a list of names, such as ["age", "sex"]')
    unit = st.unit_of(rows)
    names = [name for name in (columns or columns_in(rows)) if name != by]
    kinds = {name: is_number(rows, name) for name in names}
    if not columns:
        # Dates, texts of which nothing is declared, and what has one value, are left out.
        names = [name for name in names if kinds[name] is not None]
        names = [n for n in names if kinds[n] or domain_of(rows, [n]).attributes[0].inner > 1]
    if not names:
        raise BoundsError("no column to describe has declared bounds or values")
    found: list[Attribute] = []
    for name in names:
        if kinds[name]:
            found.append(evenly(rows, name, FINE))
        else:
            found += domain_of(rows, [name]).attributes
    groups: tuple[Attribute, ...] = ()
    if by is not None:
        groups = domain_of(rows, [by]).attributes
        if groups[0].clamped or groups[0].period is not None:
            raise QueryError(f"{by} has no declared levels: give its values or bins in the policy")
        if groups[0].inner < 2:
            raise QueryError(f"{by} has a single level, so there is nothing to compare")
    domain = CellDomain((*groups, *found))
    question = TablesQuestion(rows, domain, max_rows=None if unit is None else 1)
    if question.max_rows != 1:
        raise QueryError("a description counts one row of each person; ask without joins to others")
    return DescriptionQuestion(question, question.budget(epsilon, delta), by, kinds, most)


class DescriptionQuestion(CellQuestion[PrivateDescription]):
    """A description that is explained and previewed free of charge, and released at its price.

    Made by ``infer(...).describe(...)``.
    """

    _noun = "description"
    _gives = (PrivateDescription,)

    def __init__(
        self,
        question: TablesQuestion,
        budget: Budget,
        by: str | None,
        kinds: Mapping[str, bool | None],
        bins: int,
    ) -> None:
        super().__init__(question, budget)
        self._by, self._bins = by, bins
        own = [a for a in question.domain.attributes if a.name != by]
        self._numbers = [a for a in own if kinds[a.name]]
        self._categories = [a for a in own if not kinds[a.name]]
        self._groups = 1 if by is None else question.domain[by].inner
        epsilon, delta = budget.of_a_row
        self._design = DescriptionRelease(
            self._groups,
            tuple(len(self._edges(a)) - 1 for a in self._numbers),
            tuple(a.inner for a in self._categories),
            Target(epsilon, delta, question.neighbours),
        )
        # What could fail fails here, on numbers that were made up.
        self._made(np.full(self._design.dimension, 10.0))

    def _edges(self, attribute: Attribute) -> tuple[Fraction, ...]:
        """The edges of the bins of its ranks: every so many cells."""
        assert attribute.edges is not None
        width = -(-attribute.inner // self._bins)
        edges = attribute.edges[:-1:width]
        return (*edges, edges[-1] + width * (attribute.edges[1] - attribute.edges[0]))

    @property
    def _loss(self) -> Loss:
        return self._design.loss

    @property
    def _about(self) -> str:
        shown = [a.name for a in (*self._numbers, *self._categories)]
        by = "" if self._by is None else f" by {self._by}"
        return f"of {', '.join(shown[:4])}{', ...' if len(shown) > 4 else ''}{by}"

    def _nodes(self) -> tuple[Node, ...]:
        design, told = self._design, []
        for attribute, tree in zip(self._numbers, design.trees, strict=True):
            what = f"moments to the fourth; ranks in {tree.bins:,} bins"
            told.append((attribute.name, what))
        told += [(a.name, f"counts of {a.inner:,} levels") for a in self._categories]
        deviation = spread_of(design.noise).deviation
        return (
            Node("measures", tuple(told)),
            self._costs(
                ("noise", f"{design.noise.title}, deviation {deviation:.3g} on every entry"),
                ("split", HOW_SPLIT),
            ),
            Node(
                UNCOUNTED,
                (
                    (
                        "intervals",
                        "of means, deviations, quartiles, shares and differences count who was "
                        "sampled and the noise; of counts the noise alone",
                    ),
                ),
            ),
            self._noted(),
        )

    def preview(
        self, sizes: Sequence[int] = (100, 1_000, 10_000), *, confidence: float = 0.95
    ) -> InferencePreview:
        """What so many people would tell of a share of one half, before anything is spent or read.

        Parameters
        ----------
        sizes : sequence of int
            Numbers of people, in all groups together.
        confidence : float
            Of the intervals.
        """
        inside, found = check.confidence(confidence), sizes_of(sizes, "people")
        noise = spread_of(self._design.noise).deviation
        widths, shares = [], []
        for n in found:
            rows = n / self._groups
            sampling, noisy = 0.25 / rows, noise**2 / 2 / rows**2
            widths.append(min(0.5, two_sided(inside) * math.sqrt(sampling + noisy)))
            shares.append(noisy / (sampling + noisy))
        return InferencePreview(
            self._title,
            self.budget.epsilon,
            self._cost[1],
            inside,
            "half-width of a share of 1/2 in a group",
            tuple(found),
            tuple(widths),
            tuple(shares),
            20.0 * noise * self._groups,
            0.25,
        )

    def _asked(self) -> dict[str, Any]:
        design = self._design
        return {
            "what": "a description",
            "by": self._by,
            "bins": [str(tree.bins) for tree in design.trees],
            "family": design.noise.title,
        }

    def _cliques(self) -> list[Clique]:
        names = [a.name for a in (*self._numbers, *self._categories)]
        if self._by is None:
            return [self.domain.clique([name]) for name in names]
        return [self.domain.clique([self._by, name]) for name in names] + [
            self.domain.clique([self._by])
        ]

    def _wanted(self) -> list[Clique]:
        return self._cliques()

    def _measurements(self) -> list[dict[str, Any]]:
        design = self._design
        body: dict[str, Any] = {"measures": {"node": "description", "entries": design.dimension}}
        body |= {"l1": str(design.l1), "l2_squared": str(design.l2_squared)}
        body |= design.noise.parameters() | {"loss": charge_dict(design.loss.charge)}
        return [body]

    def _measure(self, exact: ExactTables, tell: Progress) -> dict[str, Any]:
        cliques = self._cliques()
        tables = exact(cliques)
        each = [tables[clique] for clique in cliques]
        if self._by is None:
            each = [table[None, :] for table in each]
        each = [table[: self._groups] for table in each]
        numbers, categories = each[: len(self._numbers)], each[len(self._numbers) :]
        powers, leaves = [], []
        for attribute, table, tree in zip(self._numbers, numbers, self._design.trees, strict=True):
            counts = table[:, : attribute.inner]
            powers.append([self._powers(attribute, row) for row in counts])
            width = -(-attribute.inner // self._bins)
            padded = np.zeros((self._groups, tree.bins * width), dtype=np.int64)
            padded[:, : attribute.inner] = counts
            leaves.append(padded.reshape(self._groups, tree.bins, width).sum(axis=2))
        sizes = [self._everybody(each)] if self._by is None else [int(n) for n in each[-1]]
        chosen = zip(self._categories, categories, strict=False)
        held = ExactDescription(sizes, powers, leaves, [t[:, : a.inner] for a, t in chosen])
        return {"values": [float(v) for v in self._design.release(held).exact]}

    def _everybody(self, each: Sequence[Any]) -> int:
        """All in the first column's table, known or not: the n of a description without groups."""
        attribute, table = (*self._numbers, *self._categories)[0], each[0]
        return int(table[0, : attribute.inner + attribute.missing].sum())

    def _powers(self, attribute: Attribute, counts: Any) -> tuple[Fraction, ...]:
        """n to Σ t⁴ of the middles of cells: each at most 1 from the middle of all."""
        middle, half = self._range(attribute)
        assert attribute.edges is not None
        # In parts of half a range that all middles are whole multiples of, as cells are equal.
        first, width = attribute.edges[0], attribute.edges[1] - attribute.edges[0]
        of_first = (first + width / 2 - middle) / half
        whole = math.lcm(of_first.denominator, (width / half).denominator)
        sums = [0] * 5
        for place in np.flatnonzero(counts):
            centre = (attribute.edges[place] + attribute.edges[place + 1]) / 2
            t = int(min(max((centre - middle) / half, Fraction(-1)), Fraction(1)) * whole)
            part = int(counts[place])
            for power in range(5):
                sums[power] += part
                part *= t
        return tuple(Fraction(s, whole**power) for power, s in enumerate(sums))

    def _range(self, attribute: Attribute) -> tuple[Fraction, Fraction]:
        assert attribute.bounds is not None
        low, high = attribute.bounds
        return (low + high) / 2, (high - low) / 2

    # --- what was released ------------------------------------------------------------------------

    def _read(self, answered: AnsweredRequest) -> PrivateDescription:
        content = answered.content
        return self._made(np.array(content["values"], dtype=float), content["certificate"])

    def _made(self, values: Any, certificate: Any = None) -> PrivateDescription:
        from dither.session._certificate import Certificate

        groups: tuple[str, ...] = (ALL,)
        if self._by is not None:
            groups = _names(self.domain[self._by])
        facts = [
            self._facts_of(a) if a in self._numbers else CategoryFacts(a.name, _names(a))
            for a in self.domain.attributes
            if a.name != self._by
        ]
        unit = self._question.unit
        assumed = ["rows are an independent sample"]
        if unit is not None:
            assumed = [
                f"people, identified by {unit}, are an independent sample",
                f"each {unit} counts once, with one row chosen by a keyed hash",
            ]
        return described(
            DescribedRows(self._by, groups, tuple(facts)),
            self._design,
            values,
            (*assumed, MEASURED),
            loss=self.loss,
            certificate=None if certificate is None else Certificate(certificate),
            people=unit is not None,
        )

    def _facts_of(self, attribute: Attribute) -> NumberFacts:
        middle, half = self._range(attribute)
        edges = self._edges(attribute)
        alone = len(edges) == attribute.inner + 1 and attribute.kind.value == "integer"
        trim = 0.5 if alone and edges[1] - edges[0] == 1 else 0.0
        told = tuple(float(e) for e in edges)
        return NumberFacts(attribute.name, float(middle), float(half), told, trim)


def _names(attribute: Attribute) -> tuple[str, ...]:
    if attribute.values is None:
        return attribute.labels[: attribute.inner]
    return level_names(attribute.values)
