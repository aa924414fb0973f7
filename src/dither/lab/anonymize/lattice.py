"""The optimal full-domain generalisation: a search through the lattice of levels.

A node says how far each quasi-identifier is generalised. Its loss with nothing left out is known
before it is tried and grows upwards; leaving rows out only adds to it. So nodes are taken in the
order of that loss, and the search ends, with the optimum in hand, at the first node whose loss is
no less than the best found.

Merging classes breaks neither k-anonymity nor distinct diversity. A node that fails those therefore
condemns all nodes below it, and a binary search on a path to the top finds a high one that fails.
Other requirements are not monotone once rows may be left out; they are tried node by node.

Source: the monotony is Samarati's (2001); going along paths is Kohlmayer et al., *Flash* (2012).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dither.lab.anonymize.pairs import Floats
from dither.lab.anonymize.table import Node, Table, Verdict

__all__ = ["Found", "Progress", "search"]

_EQUAL = 1e-12
_PATIENCE = 0.2
"""Seconds between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Progress:
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
class Found:
    """The best node, if any fits.

    Attributes
    ----------
    node : tuple of int or None
    verdict : Verdict or None
    tried, nodes : int
    complete : bool
        Whether it is known to be the best: false where the search was stopped.
    least : int
        No node tried would leave out fewer rows.
    """

    node: Node | None
    verdict: Verdict | None
    tried: int
    nodes: int
    complete: bool
    least: int


@dataclass(slots=True)
class _Search:
    table: Table
    loss: Floats
    progress: Callable[[Progress], object] | None
    deadline: float
    began: float = field(default_factory=time.monotonic)
    told: float = 0.0
    tried: int = 0
    best: tuple[Node, Verdict] | None = None
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
            node, verdict = self.best
            for i, level in enumerate(node):
                step = (*node[:i], level - 1, *node[i + 1 :])
                if not level or self.bad[step] or self.loss[step] < self.loss[node] - _EQUAL:
                    continue
                found = self.table.verdict(step, float(self.loss[step]))
                self.tried += 1
                if found.fits and found.loss <= verdict.loss + _EQUAL:
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
        verdict = self.table.verdict(node, float(self.loss[node]))
        self.tried += 1
        self.done[node] = True
        self.least = min(self.least, verdict.suppressed)
        if not verdict.safe:
            self.bad[tuple(slice(0, level + 1) for level in node)] = True
        if verdict.fits and (self.best is None or verdict.loss < self.best[1].loss):
            self.best = node, verdict
        now = time.monotonic()
        if self.progress is not None and now - self.told > _PATIENCE:
            self.told = now
            settled = int((self.bad | self.done).sum())
            loss = None if self.best is None else self.best[1].loss
            self.progress(Progress(self.tried, settled, self.loss.size, loss, now - self.began))
        return verdict.safe

    def late(self) -> bool:
        """Whether time is up."""
        return time.monotonic() >= self.deadline


def search(
    table: Table, *, seconds: float | None, progress: Callable[[Progress], object] | None
) -> Found:
    """Find the node of least loss that fits.

    Parameters
    ----------
    table : Table
    seconds : float, optional
        When to stop with the best so far.
    progress : callable, optional
        Told a few times a second. An interrupt from it, or from the keyboard, stops the search
        with the best so far.
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
    node, verdict = state.best if state.best is not None else (None, None)
    return Found(node, verdict, state.tried, loss.size, complete, state.least)
