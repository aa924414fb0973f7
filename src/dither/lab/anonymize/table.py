"""The table that a search works on: weighted distinct rows, and what every class must meet.

Rows that agree on the quasi-identifiers (and on the sensitive columns, where something is required
of them) become one row with a weight. A generalisation maps its codes by integer level maps; a
coarser one is made from the rows that a finer one left, which are fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dither.lab.anonymize.hierarchy import Fitted
from dither.lab.anonymize.pairs import Floats, Pairs, Truths, pair
from dither.lab.anonymize.requirements import Requirement
from dither.lab.anonymize.sensitive import Column
from dither.lab.anonymize.tally import Classes, Ints, combine, label, tally

__all__ = ["Demand", "Node", "Rows", "Table", "Verdict"]

Node = tuple[int, ...]
_KEPT = 24
"""Generalised tables remembered, each at most half the size of what it was made from."""


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What every class must meet.

    Attributes
    ----------
    k : int
        Rows.
    columns : tuple of Column
        Sensitive columns that something is required of.
    requirements : tuple of (int, Requirement)
        The column's place in ``columns``, and what is required.
    """

    k: int
    columns: tuple[Column, ...] = ()
    requirements: tuple[tuple[int, Requirement], ...] = ()

    @property
    def monotone(self) -> tuple[tuple[int, Requirement], ...]:
        """Requirements that merging never breaks."""
        return tuple((i, r) for i, r in self.requirements if r.monotone)

    @property
    def relative(self) -> bool:
        """Whether something depends on which other classes are released."""
        return any(r.relative for _, r in self.requirements)

    def met(self, sizes: Ints, pairs: Sequence[Pairs], enough: int = 0) -> tuple[Truths, Truths]:
        """Which classes meet the monotone part, and which meet everything.

        A class that does not is left out. Where the release's own distribution counts, leaving
        classes out moves it, so the rest is held against it again until nothing changes, or fewer
        rows than ``enough`` are left.
        """
        safe: Truths = sizes >= self.k
        for i, requirement in self.monotone:
            safe = safe & requirement.met(pairs[i], self.columns[i].context)
        kept = safe
        others = [(i, r) for i, r in self.requirements if not r.monotone]
        while others and int(sizes[kept].sum()) >= max(enough, 1):
            fine = np.ones(int(kept.sum()), dtype=np.bool_)
            for i, requirement in others:
                fine &= requirement.met(pairs[i].only(kept), self.columns[i].context)
            if fine.all():
                break
            kept = kept.copy()
            kept[kept] = fine
            if not self.relative:
                break
        return safe, kept


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Weighted rows generalised to a node: a code for each quasi-identifier."""

    node: Node
    codes: tuple[NDArray[np.integer], ...]
    sensitive: tuple[NDArray[np.int32], ...]
    weight: Ints
    raised: dict[tuple[int, int], NDArray[np.integer]] = field(default_factory=dict)
    """Codes at coarser levels, as they were asked for: many nodes share them."""

    def at(self, i: int, level: int, fitted: Fitted) -> NDArray[np.integer]:
        """The codes of a quasi-identifier at a level."""
        if level == self.node[i]:
            return self.codes[i]
        found = self.raised.get((i, level))
        if found is None:
            found = fitted.step(self.node[i], level)[self.codes[i]]
            self.raised[i, level] = found
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a node would release.

    Attributes
    ----------
    safe : bool
        The monotone part is met with what may be left out; else nothing below meets it either.
    fits : bool
        All is met with what may be left out, and something is released.
    suppressed : int
        Rows left out.
    loss : float
        Mean share of the domain per cell, where a cell left out counts 1.
    """

    safe: bool
    fits: bool
    suppressed: int
    loss: float


@dataclass(slots=True, eq=False)
class Table:
    """Distinct rows under hierarchies.

    Attributes
    ----------
    fitted : tuple of Fitted
        One for each quasi-identifier.
    base : Rows
        At the node of zeros.
    share : array of float64
        The weight of each quasi-identifier in the loss; sums to 1.
    allowed : int
        Rows that may be left out.
    """

    fitted: tuple[Fitted, ...]
    base: Rows
    demand: Demand
    share: Floats
    allowed: int
    kept: list[Rows] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Rows of the data."""
        return int(self.base.weight.sum())

    def losses(self) -> tuple[Floats, ...]:
        """For each quasi-identifier, its part of the loss at each level, nothing left out."""
        found = []
        for i, fitted in enumerate(self.fitted):
            counts = np.bincount(self.base.codes[i], self.base.weight, len(fitted.maps[0]))
            parts = [float(spread @ counts) / self.total for spread in fitted.spread]
            found.append(self.share[i] * np.array(parts))
        return tuple(found)

    def verdict(self, node: Node, loss: float) -> Verdict:
        """Try a node; ``loss`` is its loss with nothing left out."""
        source = self._source(node)
        codes, key, size = self._raise(source, node)
        joint, joint_size = key, size
        if self.demand.columns:
            values = [
                (codes, column.size)
                for codes, column in zip(source.sensitive, self.demand.columns, strict=True)
            ]
            joint, joint_size = combine([(key, size), *values], len(key))
        first, weight = tally(joint, joint_size, source.weight)
        if len(first) <= len(key) // 2:
            self._keep(node, codes, source, first, weight)
        if not self.demand.columns:
            sizes, one = weight, first
            safe = kept = sizes >= self.demand.k
        else:
            classes = label(key[first], size, weight)
            sizes, one = classes.weight, first[classes.first]
            sensitive = [column[first] for column in source.sensitive]
            safe, kept = self._judge(classes, sensitive, weight)
        lost = ~kept
        suppressed = int(sizes[lost].sum())
        total = self.total
        fits = suppressed <= self.allowed and suppressed < total
        if fits and suppressed:
            own = np.zeros(int(lost.sum()))
            for i, fitted in enumerate(self.fitted):
                per_node = np.empty(fitted.sizes[node[i]])
                per_node[fitted.maps[node[i]]] = fitted.spread[node[i]]
                own += self.share[i] * per_node[codes[i][one[lost]]]
            loss += float((sizes[lost] * (1.0 - own)).sum()) / total
        if not self.allowed:
            # With nothing left out every requirement is monotone: two classes that meet it meet it
            # together, against a distribution that does not move.
            return Verdict(fits, fits, suppressed, loss)
        return Verdict(total - int(sizes[safe].sum()) <= self.allowed, fits, suppressed, loss)

    def classes(self, node: Node) -> tuple[Classes, Truths]:
        """The classes that a node makes of the distinct rows, and which of them are released."""
        _, key, size = self._raise(self.base, node)
        classes = label(key, size, self.base.weight)
        _, kept = self._judge(classes, self.base.sensitive, self.base.weight)
        return classes, kept

    def _judge(
        self, classes: Classes, sensitive: Sequence[NDArray[np.int32]], weight: Ints
    ) -> tuple[Truths, Truths]:
        pairs = [
            pair(classes.of, classes.weight, values, column.size, weight)
            for values, column in zip(sensitive, self.demand.columns, strict=True)
        ]
        return self.demand.met(classes.weight, pairs, self.total - self.allowed)

    def _source(self, node: Node) -> Rows:
        """The shortest table at hand that is no coarser than the node."""
        best = self.base
        for rows in self.kept:
            if len(rows.weight) < len(best.weight) and all(
                a <= b for a, b in zip(rows.node, node, strict=True)
            ):
                best = rows
        return best

    def _raise(self, rows: Rows, node: Node) -> tuple[list[NDArray[np.integer]], Ints, int]:
        """Codes at a node, and their key."""
        codes = [
            rows.at(i, level, fitted)
            for i, (fitted, level) in enumerate(zip(self.fitted, node, strict=True))
        ]
        sizes = [f.sizes[level] for f, level in zip(self.fitted, node, strict=True)]
        return codes, *combine(list(zip(codes, sizes, strict=True)), len(rows.weight))

    def _keep(
        self,
        node: Node,
        codes: Sequence[NDArray[np.integer]],
        source: Rows,
        first: Ints,
        weight: Ints,
    ) -> None:
        """Remember a generalised table; the one least general makes room."""
        self.kept.append(
            Rows(
                node,
                tuple(c[first] for c in codes),
                tuple(s[first] for s in source.sensitive),
                weight,
            )
        )
        if len(self.kept) > _KEPT:
            del self.kept[0]
