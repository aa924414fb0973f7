"""The optimal full-domain generalisation: a search through the lattice of levels.

A node says how far each quasi-identifier is generalised. Its loss with nothing left out is known
before it is tried and grows upwards; leaving rows out only adds to it. So nodes are taken in the
order of that loss, and the search ends, with the optimum in hand, at the first node whose loss is
no less than the best found.

Merging classes breaks neither k-anonymity nor distinct diversity. A node that fails those therefore
condemns all nodes below it, and a binary search on a path to the top finds a high one that fails.
Other requirements are not monotone once rows may be left out; they are tried node by node.

A node is tried on weighted distinct rows: rows that agree on the quasi-identifiers (and on the
sensitive columns, where something is required of them) become one row with a weight. A
generalisation maps its codes by integer level maps; a coarser one is made from the rows that a
finer one left, which are fewer.

Source: the monotony is Samarati's (2001); going along paths is Kohlmayer et al., *Flash* (2012).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dither.lab._grouping import Classes, Ints, combine, label, tally
from dither.lab.anonymize._definitions import Floats, Truths, pair
from dither.lab.anonymize._demands import Demand
from dither.lab.anonymize._hierarchy import FittedHierarchy

__all__ = ["GeneralisedRows", "Node", "Optimum", "SearchProgress", "SearchTable", "search"]

Node = tuple[int, ...]
_KEPT = 24
"""Generalised tables remembered, each at most half the size of what it was made from."""

_EQUAL = 1e-12
_PATIENCE = 0.2
"""Seconds between two reports of progress."""


@dataclass(frozen=True, slots=True, eq=False)
class GeneralisedRows:
    """Weighted rows generalised to a node: a code for each quasi-identifier."""

    node: Node
    codes: tuple[NDArray[np.integer], ...]
    sensitive: tuple[NDArray[np.int32], ...]
    weight: Ints
    raised: dict[tuple[int, int], NDArray[np.integer]] = field(default_factory=dict)
    """Codes at coarser levels, as they were asked for: many nodes share them."""

    def at(self, i: int, level: int, fitted: FittedHierarchy) -> NDArray[np.integer]:
        """The codes of a quasi-identifier at a level."""
        if level == self.node[i]:
            return self.codes[i]
        found = self.raised.get((i, level))
        if found is None:
            found = fitted.step(self.node[i], level)[self.codes[i]]
            self.raised[i, level] = found
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
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
class SearchTable:
    """Distinct rows under hierarchies.

    Attributes
    ----------
    fitted : tuple of FittedHierarchy
        One for each quasi-identifier.
    base : GeneralisedRows
        At the node of zeros.
    share : array of float64
        The weight of each quasi-identifier in the loss; sums to 1.
    allowed : int
        Rows that may be left out.
    """

    fitted: tuple[FittedHierarchy, ...]
    base: GeneralisedRows
    demand: Demand
    share: Floats
    allowed: int
    kept: list[GeneralisedRows] = field(default_factory=list)

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

    def trial(self, node: Node, loss: float) -> Trial:
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
            return Trial(fits, fits, suppressed, loss)
        return Trial(total - int(sizes[safe].sum()) <= self.allowed, fits, suppressed, loss)

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

    def _source(self, node: Node) -> GeneralisedRows:
        """The shortest table at hand that is no coarser than the node."""
        best = self.base
        for rows in self.kept:
            if len(rows.weight) < len(best.weight) and all(
                a <= b for a, b in zip(rows.node, node, strict=True)
            ):
                best = rows
        return best

    def _raise(
        self, rows: GeneralisedRows, node: Node
    ) -> tuple[list[NDArray[np.integer]], Ints, int]:
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
        source: GeneralisedRows,
        first: Ints,
        weight: Ints,
    ) -> None:
        """Remember a generalised table; the one least general makes room."""
        self.kept.append(
            GeneralisedRows(
                node,
                tuple(c[first] for c in codes),
                tuple(s[first] for s in source.sensitive),
                weight,
            )
        )
        if len(self.kept) > _KEPT:
            del self.kept[0]


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """How far a search is.

    Attributes
    ----------
    tried, settled, nodes : int
        Nodes tried, nodes known to fail or tried, and all nodes.
    loss : float or None
        Of the best so far.
    seconds : float
    """

    tried: int
    settled: int
    nodes: int
    loss: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best node, if any fits.

    Attributes
    ----------
    node : tuple of int or None
    trial : Trial or None
    tried, nodes : int
    complete : bool
        Whether it is known to be the best: false where the search was stopped.
    least : int
        No node tried would leave out fewer rows.
    """

    node: Node | None
    trial: Trial | None
    tried: int
    nodes: int
    complete: bool
    least: int


@dataclass(slots=True)
class _Search:
    table: SearchTable
    loss: Floats
    progress: Callable[[SearchProgress], object] | None
    deadline: float
    began: float = field(default_factory=time.monotonic)
    shown_at: float = 0.0
    tried: int = 0
    best: tuple[Node, Trial] | None = None
    least: int = 1 << 62
    bad: NDArray[np.bool_] = field(init=False)
    done: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.bad = np.zeros(self.loss.shape, dtype=np.bool_)
        self.done = np.zeros(self.loss.shape, dtype=np.bool_)

    def run(self) -> bool:
        """Search; whether it came to its end."""
        shape = self.loss.shape
        top = tuple(n - 1 for n in shape)
        # The top first, so that whatever stops the search finds something in hand.
        self.check(top)
        for place in np.argsort(self.loss, axis=None, kind="stable"):
            node = tuple(int(i) for i in np.unravel_index(place, shape))
            if self.best is not None and self.loss[node] >= self.best[1].loss:
                break
            if self.bad[node] or self.done[node]:
                continue
            if self.late():
                return False
            self.climb(node)
        self.lower()
        return True

    def lower(self) -> None:
        """Of nodes with the same loss keep the finer, such as for a column of one value."""
        while self.best is not None and not self.late():
            node, trial = self.best
            for i, level in enumerate(node):
                step = (*node[:i], level - 1, *node[i + 1 :])
                if not level or self.bad[step] or self.loss[step] < self.loss[node] - _EQUAL:
                    continue
                found = self.table.trial(step, float(self.loss[step]))
                self.tried += 1
                if found.fits and found.loss <= trial.loss + _EQUAL:
                    self.best = step, found
                    break
            else:
                return

    def climb(self, node: Node) -> None:
        """Settle a node, and with it as many as a path to the top can."""
        path = self.path(node)
        low, high = 0, len(path) - 1
        while low <= high:
            middle = (low + high) // 2
            here = path[middle]
            if self.bad[here] or (not self.done[here] and not self.check(here)):
                low = middle + 1
            else:
                high = middle - 1

    def path(self, node: Node) -> list[Node]:
        """Upwards, each step the cheapest."""
        found = [node]
        top = tuple(n - 1 for n in self.loss.shape)
        while node != top:
            steps = [
                (*node[:i], level + 1, *node[i + 1 :])
                for i, level in enumerate(node)
                if level < top[i]
            ]
            node = min(steps, key=lambda step: float(self.loss[step]))
            found.append(node)
        return found

    def check(self, node: Node) -> bool:
        """Try a node; whether it meets what is monotone."""
        trial = self.table.trial(node, float(self.loss[node]))
        self.tried += 1
        self.done[node] = True
        self.least = min(self.least, trial.suppressed)
        if not trial.safe:
            self.bad[tuple(slice(0, level + 1) for level in node)] = True
        if trial.fits and (self.best is None or trial.loss < self.best[1].loss):
            self.best = node, trial
        now = time.monotonic()
        if self.progress is not None and now - self.shown_at > _PATIENCE:
            self.shown_at = now
            settled = int((self.bad | self.done).sum())
            loss = None if self.best is None else self.best[1].loss
            self.progress(
                SearchProgress(self.tried, settled, self.loss.size, loss, now - self.began)
            )
        return trial.safe

    def late(self) -> bool:
        """Whether time is up."""
        return time.monotonic() >= self.deadline


def search(
    table: SearchTable,
    *,
    seconds: float | None,
    progress: Callable[[SearchProgress], object] | None,
) -> Optimum:
    """Find the node of least loss that fits.

    It stops with the best so far after ``seconds``, or on an interrupt from the keyboard or from
    ``progress``, which is called a few times a second.
    """
    loss = np.zeros(())
    for part in table.losses():
        loss = np.add.outer(loss, part)
    deadline = time.monotonic() + (np.inf if seconds is None else seconds)
    state = _Search(table, loss, progress, deadline)
    try:
        complete = state.run()
    except KeyboardInterrupt:
        if state.best is None:
            raise
        complete = False
    node, trial = state.best if state.best is not None else (None, None)
    return Optimum(node, trial, state.tried, loss.size, complete, state.least)
