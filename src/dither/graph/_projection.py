"""Graphs of bounded degree: each edge is kept while both of its ends have room.

The edges are taken in a public order, by a hash of the labels of their ends; an edge is kept if
both ends have fewer than D edges so far (Day, Li and Lyu, "Publishing graph degree distribution
with node differential privacy", SIGMOD 2016, section 4: projection by edge addition in a stable
order).

*How far a node moves what is kept.* Let G' be G with a node v and its edges. Take both runs edge by
edge; let c_x and c'_x be how many edges of x they have kept so far, and r_x = c'_x - c_x. Then the
sum of |r_x| over x != v never exceeds c'_v:

- An edge (v, x) is in G' alone. If it is kept, c'_v grows by 1 and |r_x| by 1 at most.
- An edge (x, y) that both runs keep, or neither, changes no r.
- An edge (x, y) that the run of G alone keeps: in G' an end is full, say c'_x = D, which it is not
  in G, so r_x >= 1. Both r fall by 1: |r_x| falls by 1, and |r_y| grows by 1 at most.
- One that the run of G' alone keeps: likewise r_x <= -1 of the end that is full in G.

As c'_v <= D in the end,

- the number of edges kept differs by (c'_v + Σ r_x)/2, within [0, D];
- the degrees differ by 2·D together, and so do, in the L1 norm, the numbers of nodes with at least
  1, 2, ..., D edges: a degree that differs by one changes one of these by one.

A node without an edge that is kept counts in neither, so that both hold whether isolated nodes are
public or not. Tests hold both bounds against all graphs of up to five nodes, in several orders;
both are reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dither import _checks as check
from dither._format import Printable, percent
from dither.errors import ArgumentError
from dither.graph._graph import Graph

__all__ = ["ProjectionBias", "projected", "projection_bias"]


def projected(graph: Graph, degree: int) -> Graph:
    """The graph of degree at most ``degree`` that the projection keeps; not for publication."""
    kept = []
    room = [degree] * graph.size
    if graph.edges.size and int(graph.degrees.max()) <= degree:
        return graph
    for i, j in sorted(graph.edges.tolist(), key=lambda pair: graph.order(*pair)):
        if room[i] and room[j]:
            room[i] -= 1
            room[j] -= 1
            kept.append((i, j))
    return Graph.of_codes(np.array(kept, dtype=np.int64).reshape(-1, 2), graph)


@dataclass(frozen=True, eq=False)
class ProjectionBias(Printable):
    """What projections to several degrees leave out: for the owner's eyes, not for publication.

    Parameters
    ----------
    edges : int
        How many there are.
    rows : tuple of (int, int, int)
        Of each degree: the bound, the edges that are kept, and the nodes that lose some.
    """

    edges: int
    rows: tuple[tuple[int, int, int], ...]

    def summary(self) -> str:
        """A line for each bound, with the deviation of a count of edges at an epsilon of 1."""
        lines = [f"{self.edges:,} edges. Of the data as they are: not for publication."]
        for degree, kept, nodes in self.rows:
            lost = percent((self.edges - kept) / self.edges) if self.edges else percent(0)
            lines.append(
                f"at most {degree:,} a node: {kept:,} edges kept, {lost} left out, "
                f"{nodes:,} nodes cut; noise at ε = 1: ± {1.4142 * degree:,.1f}"
            )
        return "\n".join(lines)


def projection_bias(graph: Graph, degrees: Sequence[int]) -> ProjectionBias:
    """How many edges a projection to each degree leaves out, without noise: the owner's to see.

    No interval of a release covers this bias. A degree that is chosen by looking at it tells
    something of the graph: choose by what is known of graphs of this kind.

    Parameters
    ----------
    graph : Graph
    degrees : sequence of int
        Bounds of at least 1.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Examples
    --------
    >>> star = Graph([(0, j) for j in range(1, 6)], nodes=6)
    >>> projection_bias(star, [2, 5]).rows
    ((2, 2, 4), (5, 5, 0))
    """
    listed: list[Any] = check.listed("degrees", degrees, "bounds")
    if not isinstance(graph, Graph):
        raise ArgumentError("graph must be a Graph, such as Graph(edges, nodes=...)")
    rows = []
    for bound in listed:
        most = check.count("degrees", bound)
        kept = projected(graph, most)
        cut = int((kept.degrees < graph.degrees).sum())
        rows.append((most, len(kept.edges), cut))
    return ProjectionBias(len(graph.edges), tuple(rows))
