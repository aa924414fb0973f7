"""Counts of small shapes in a graph, and how far one edge moves them at every distance.

The *local sensitivity at distance t* of a count f at a graph G is ::

    LS_t(G) = max over graphs H within t edges of G, and H' with one edge more or less than H, of
              |f(H) - f(H')|

It is what smooth sensitivity and the ladder need: neighbours G, G' have LS_t(G) <= LS_{t+1}(G'),
since whatever is within t of G is within t + 1 of G'. Both statistics here have closed forms, which
are exact: tests hold them against an enumeration of all graphs of up to six nodes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

import numpy as np

from dither.graph._graph import Graph

__all__ = ["CountedShape", "Stars", "Triangles"]


class CountedShape(ABC):
    """A shape that is counted in graphs with a public list of nodes."""

    name: str

    @abstractmethod
    def count(self, graph: Graph) -> int:
        """How many there are; not for publication."""

    @abstractmethod
    def most(self, n: int) -> int:
        """How many there can be among n nodes."""

    @abstractmethod
    def ceiling(self, n: int) -> int:
        """The most that one edge moves the count among n nodes, whatever the graph."""

    @abstractmethod
    def local(self, graph: Graph) -> Iterator[int]:
        """LS_0, LS_1, ... of a graph, without end; at last all are `ceiling`."""


@dataclass(frozen=True, slots=True)
class Triangles(CountedShape):
    """Triangles: three nodes of which each two are tied.

    One edge (i, j) is in as many triangles as i and j have neighbours in common. With a_ij of these
    and b_ij nodes tied to exactly one of the two, t other edges raise a_ij by t at most where half
    of a triangle is there, and by one for each two elsewhere [1]_ ::

        LS_t = max over i < j of min(a_ij + floor((t + min(t, b_ij))/2), n - 2)

    Only the largest b of each a matters. All pairs are looked at: n² steps, and one for each two
    edges that meet.

    References
    ----------
    .. [1] Nissim, Raskhodnikova and Smith, "Smooth sensitivity and sampling in private data
       analysis", STOC 2007, section 3.

    Examples
    --------
    >>> from itertools import islice
    >>> square = Graph([(0, 1), (1, 2), (2, 3), (3, 0)], nodes=6)
    >>> Triangles().count(square), list(islice(Triangles().local(square), 5))
    (0, [2, 2, 3, 3, 4])
    """

    name = "triangles"

    def count(self, graph: Graph) -> int:
        """How many there are: of each edge the common neighbours, a third of their sum."""
        near = [set(row.tolist()) for row in graph.adjacency]
        return sum(len(near[i] & near[j]) for i, j in graph.edges.tolist()) // 3

    def most(self, n: int) -> int:
        """All triples."""
        return comb(n, 3)

    def ceiling(self, n: int) -> int:
        """All other nodes."""
        return max(0, n - 2)

    def local(self, graph: Graph) -> Iterator[int]:
        """LS_0, LS_1, ..."""
        cap = self.ceiling(graph.size)
        pairs = _widest(graph)
        t = 0
        while True:
            reached = max((a + (t + min(t, b)) // 2 for a, b in pairs), default=0)
            if reached >= cap:
                break
            yield reached
            t += 1
        while True:
            yield cap


def _widest(graph: Graph) -> list[tuple[int, int]]:
    """Of each number of common neighbours a pair has, the most that are tied to one of it."""
    n, degrees, near = graph.size, graph.degrees, graph.adjacency
    widest = np.full(n + 1, -1, dtype=np.int64)
    for i in range(n - 1):
        common = np.zeros(n, dtype=np.int64)
        for k in near[i]:
            common[near[k]] += 1
        half = degrees[i] + degrees - 2 * common
        half[near[i]] -= 2
        np.maximum.at(widest, common[i + 1 :], half[i + 1 :])
    kept: list[tuple[int, int]] = []
    best = -1
    for a in range(n, -1, -1):
        # A pair with fewer in common matters only if more are tied to one of it.
        if widest[a] > best:
            best = int(widest[a])
            kept.append((a, best))
    return kept


@dataclass(frozen=True, slots=True)
class Stars(CountedShape):
    """Stars of k points: a node, and k of its neighbours.

    Their number is the sum of C(d, k) over the degrees d. An edge (i, j) is in C(p, k - 1) + C(q, k
    - 1) of them, where p and q are the other edges of its ends. t more edges raise p and q by t
    together, up to n - 2 each; as C is convex, the larger of the two is raised first ::

        LS_t = max over i < j of C(min(p + t, n - 2), k - 1) + C(min(q + t', n - 2), k - 1),
        p >= q the other edges of i and j, t' what is left of t above p + t = n - 2

    Karwa, Raskhodnikova, Smith and Yaroslavtsev, "Private analysis of graph structure", VLDB 2011,
    have the same of k-stars.

    Parameters
    ----------
    k : int
        At least 2: one point makes an edge.

    Examples
    --------
    >>> from itertools import islice
    >>> path = Graph([(0, 1), (1, 2)], nodes=4)
    >>> Stars(2).count(path), list(islice(Stars(2).local(path), 4))
    (1, [2, 3, 4, 4])
    """

    k: int

    @property
    def name(self) -> str:  # type: ignore[override]
        """The shape, with its points."""
        return f"{self.k}-stars"

    def count(self, graph: Graph) -> int:
        """How many there are."""
        degree, how_many = np.unique(graph.degrees, return_counts=True)
        pairs = zip(degree.tolist(), how_many.tolist(), strict=True)
        return sum(n * comb(d, self.k) for d, n in pairs)

    def most(self, n: int) -> int:
        """All of all nodes, where each is tied to all others."""
        return n * comb(max(0, n - 1), self.k)

    def ceiling(self, n: int) -> int:
        """Both ends tied to all others."""
        return 2 * comb(n - 2, self.k - 1) if n >= 2 else 0

    def local(self, graph: Graph) -> Iterator[int]:
        """LS_0, LS_1, ..."""
        n = graph.size
        cap = self.ceiling(n)
        pairs = _ends(graph)
        t = 0
        while pairs:
            reached = max(self._raised(p, q, t, n - 2) for p, q in pairs)
            if reached >= cap:
                break
            yield reached
            t += 1
        while True:
            yield cap

    def _raised(self, p: int, q: int, t: int, most: int) -> int:
        first = min(t, most - p)
        other = min(q + t - first, most)
        return comb(p + first, self.k - 1) + comb(other, self.k - 1)


def _ends(graph: Graph) -> list[tuple[int, int]]:
    """Other edges (p, q) of the ends of pairs, p >= q: those that no other pair exceeds."""
    n, degrees, near = graph.size, graph.degrees, graph.adjacency
    by_degree = np.argsort(-degrees, kind="stable").tolist()
    best: dict[int, int] = {}

    def add(one: int, two: int) -> None:
        p, q = max(one, two), min(one, two)
        best[p] = max(best.get(p, -1), q)

    for i in range(n):
        tied = set(near[i].tolist())
        for j in by_degree:
            # The first that is not tied to it has the most edges of all such.
            if j != i and j not in tied:
                add(int(degrees[i]), int(degrees[j]))
                break
        if tied:
            add(int(degrees[i]) - 1, int(degrees[near[i]].max()) - 1)
    kept: list[tuple[int, int]] = []
    for p in sorted(best, reverse=True):
        if not kept or best[p] > kept[-1][1]:
            kept.append((p, best[p]))
    return kept
