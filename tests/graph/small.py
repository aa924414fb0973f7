"""All graphs on a few nodes, as bits of their pairs, for what is held against enumeration."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

from dither.graph import Graph


class SmallGraphs:
    """All graphs on n labelled nodes: graph g has pair b where bit b of g is set."""

    def __init__(self, n: int, labels: list[Any] | None = None, *, public: bool = True) -> None:
        self.n = n
        self.labels = list(range(n)) if labels is None else labels
        self.pairs = list(combinations(range(n), 2))
        self.public = public
        self.of = cache(self._of)

    def __iter__(self):
        return iter(range(1 << len(self.pairs)))

    def _of(self, g: int) -> Graph:
        at = self.labels
        edges = [(at[i], at[j]) for b, (i, j) in enumerate(self.pairs) if g >> b & 1]
        return Graph(edges, nodes=at if self.public else None)

    def edge_neighbours(self):
        """Each graph with each edge that it lacks added: (g, h)."""
        for g in self:
            for b in range(len(self.pairs)):
                if not g >> b & 1:
                    yield g, g | 1 << b

    def node_neighbours(self):
        """Each graph with all edges of one of its nodes removed: (h, g)."""
        for v in range(self.n):
            mask = sum(1 << b for b, pair in enumerate(self.pairs) if v in pair)
            for g in self:
                if g & mask:
                    yield g & ~mask, g
