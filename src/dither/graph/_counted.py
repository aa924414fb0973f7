"""Counts of edges, triangles and stars with noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, interval, level, number_text
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.graph._cost import cost_of
from dither.graph._graph import Graph
from dither.graph._ladder import Ladder
from dither.graph._projection import projected
from dither.graph._statistics import CountedShape, Stars, Triangles
from dither.mechanisms import DiscreteLaplace, SmoothMedian
from dither.mechanisms._base import Integers
from dither.privacy import Loss, Neighbours
from dither.privacy._promise import as_graph_neighbours

__all__ = ["GraphCount", "count_edges", "count_stars", "count_triangles", "smooth_sensitivity"]

MOST_DEGREE = 1 << 20
"""So many numbers a release of degrees holds at most."""
_BITS = 96
_LARGEST = 1 << 62


@dataclass(frozen=True, eq=False)
class GraphCount(Printable):
    """A count with noise.

    Parameters
    ----------
    what : str
        What is counted.
    value : int
        The noisy count; of edges it may be below 0.
    loss : Loss
        What it cost, stated for the graph's edges or nodes.
    notes : tuple of str
        What no interval covers.
    noise : DiscreteLaplace, Ladder or SmoothMedian
        The mechanism that drew it.
    shape : CountedShape or None
        Where the noise depends on the graph: what tells how.
    """

    what: str
    value: int
    loss: Loss
    notes: tuple[str, ...]
    noise: DiscreteLaplace | Ladder | SmoothMedian = field(repr=False)
    shape: CountedShape | None = field(default=None, repr=False)

    def half_width(self, confidence: float = 0.95, *, at: Graph | None = None) -> int:
        """How far the noise reaches to either side.

        Parameters
        ----------
        confidence : float
        at : Graph, optional
            Needed of triangles and stars, whose noise depends on the graph: a public or simulated
            graph of the kind. For the graph itself the number is not for publication.

        Raises
        ------
        ArgumentError
            It depends on the graph, and none is given.
        """
        inside = check.confidence(confidence)
        if isinstance(self.noise, DiscreteLaplace):
            return self.noise.half_width(inside)
        if self.shape is None or not isinstance(at, Graph):
            raise ArgumentError(
                "at must be a public Graph of the kind: this noise depends on the graph, and its "
                "width at the one that was counted is as secret as the graph"
            )
        return noise_width(self.noise, self.shape, at, inside)

    def interval(self, confidence: float = 0.95) -> tuple[int, int]:
        """An interval for the exact count of what was counted, from the noise alone.

        Raises
        ------
        ArgumentError
            The noise depends on the graph: then nothing that may be published tells its width.
        """
        width = self.half_width(confidence)
        return max(0, self.value - width), max(0, self.value + width)

    def summary(self) -> str:
        """A few lines for people."""
        if isinstance(self.noise, DiscreteLaplace):
            low, high = self.interval()
            lines = [f"{self.what}: {interval(self.value, low, high)} ({level(0.95)} interval)"]
        else:
            lines = [f"{self.what}: {number_text(self.value, 12)}, noise by the {self._how}"]
        lines.append(f"cost: {cost_of(self.loss)}")
        return "\n".join([*lines, *self.notes])

    @property
    def _how(self) -> str:
        return "ladder" if isinstance(self.noise, Ladder) else "smooth sensitivity"

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: edges of a projection, of a node that has them or not."""
        noise = DiscreteLaplace.for_loss(1, l1=2)

        def run(edges: list[tuple[int, int]], size: int) -> Integers:
            return len(projected(Graph(edges, nodes=6), 2).edges) + noise.draw(size)

        yield Subject("edges, node privacy", run, [(1, 2)], [(1, 2), (0, 3), (0, 4), (0, 5)])


def count_edges(
    graph: Graph,
    *,
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.EDGE,
    degree: int | None = None,
) -> GraphCount:
    """How many edges there are, with discrete Laplace noise.

    Parameters
    ----------
    graph : Graph
    epsilon : number
        Above 0: what it costs.
    neighbours : {"edge", "node"}
        What is protected. An edge moves the count by 1; a node with all its edges by up to
        ``degree``, of a projection to that degree.
    degree : int, optional
        For nodes: the most edges of a node that count, at least 1, a public choice. Edges beyond it
        are left out, and no interval covers that.

    Returns
    -------
    GraphCount

    Raises
    ------
    ArgumentError
        An argument is out of range; the nodes are not public where an edge is protected.
    BudgetError, PromiseError
        The graph's account cannot bear it; nothing was charged or drawn.

    Notes
    -----
    Guarantee: pure epsilon for the neighbours named. Of nodes: `dither.graph._projection` has the
    projection and the proof that it moves the count by ``degree`` at most.

    References
    ----------
    Kasiviswanathan, Nissim, Raskhodnikova and Smith, "Analyzing graphs with node differential
    privacy", TCC 2013; Day, Li and Lyu, SIGMOD 2016.

    Examples
    --------
    >>> ring = Graph([(i, (i + 1) % 100) for i in range(100)], nodes=100)
    >>> count = count_edges(ring, epsilon=1)
    >>> count.loss.charge.epsilon, count.half_width(0.95), abs(count.value - 100) < 40
    (Fraction(1, 1), 3, True)
    >>> count_edges(ring, epsilon=1, neighbours="node", degree=4).half_width(0.95)
    12
    """
    relation, most = protected(graph, neighbours, degree)
    notes: tuple[str, ...] = ()
    moved, found = most or 1, graph
    if most is not None:
        notes = (
            f"counts edges of a projection to {most:,} a node: what that leaves out, "
            "no interval covers",
        )
    noise = DiscreteLaplace.for_loss(epsilon, l1=moved)
    loss = graph.charge(
        noise.loss(l1=moved, neighbours=relation), "edges", relation.value, moved, noise.scale
    )
    if most is not None:
        found = projected(graph, most)
    value = len(found.edges) + int(noise.draw(1)[0])
    return GraphCount("edges", value, loss, notes, noise)


def count_triangles(
    graph: Graph, *, epsilon: Number, delta: Number = 0, method: str = "ladder"
) -> GraphCount:
    """How many triangles there are, with noise that fits the graph; one edge is protected.

    Parameters
    ----------
    graph : Graph
        With a public list of nodes.
    epsilon : number
        Above 0.
    delta : number
        Above 0 for smooth sensitivity, else 0.
    method : {"ladder", "smooth", "worst"}
        ``"worst"`` has noise for the worst graph, Laplace of scale (n - 2)/epsilon, and alone of
        them an interval; where n is small or the graph dense it errs least. The ladder and smooth
        sensitivity fit the graph, which pays where it has many nodes and few triangles.

    Returns
    -------
    GraphCount

    Raises
    ------
    ArgumentError
        An argument is out of range; the nodes are not public.
    BudgetError, PromiseError
        The graph's account cannot bear it; nothing was charged or drawn.

    Notes
    -----
    Guarantee, for neighbours that differ in one edge: pure epsilon by the ladder
    (`dither.graph._ladder`) and for the worst graph; (epsilon, delta) by Laplace noise on the
    smooth sensitivity, drawn and rounded as `dither.mechanisms.SmoothMedian` does. Ladder and
    smooth sensitivity rest on the exact local sensitivity at every distance
    (`dither.graph._statistics`). One node moves the count by so much that under
    ``"node"`` nothing of use is offered.

    References
    ----------
    Zhang and others, SIGMOD 2015; Nissim, Raskhodnikova and Smith, STOC 2007.

    Examples
    --------
    >>> import networkx
    >>> karate = Graph(networkx.karate_club_graph(), nodes=34)
    >>> count = count_triangles(karate, epsilon=1)
    >>> count.loss.charge.epsilon, 0 <= count.value <= 5984
    (Fraction(1, 1), True)
    """
    return _counted(graph, Triangles(), epsilon, delta, method)


def count_stars(
    graph: Graph, k: int, *, epsilon: Number, delta: Number = 0, method: str = "ladder"
) -> GraphCount:
    """How many stars of k points there are: a node, and k of its neighbours; an edge is protected.

    Parameters
    ----------
    graph : Graph
        With a public list of nodes.
    k : int
        At least 2.
    epsilon, delta, method
        As for `count_triangles`; and so are what it gives, raises and guarantees.

    References
    ----------
    Karwa, Raskhodnikova, Smith and Yaroslavtsev, "Private analysis of graph structure", VLDB 2011.

    Examples
    --------
    >>> path = Graph([(0, 1), (1, 2)], nodes=10)
    >>> count_stars(path, 2, epsilon=1).loss.promise.describe()
    'one edge between two nodes, added or removed'
    """
    return _counted(graph, Stars(check.count("k", k, 2, 100)), epsilon, delta, method)


def _counted(
    graph: Graph, shape: CountedShape, epsilon: Number, delta: Number, method: str
) -> GraphCount:
    check_graph(graph)
    check.choice("method", method, ("ladder", "smooth", "worst"))
    rest = check.exact("delta", delta, least=0, below=1)
    n = graph.needs_public(f"a count of {shape.name}")
    if shape.most(n) > _LARGEST:
        raise ArgumentError(
            f"graph must have fewer nodes: of {n:,} there may be more than 2**62 {shape.name}"
        )
    moved = max(1, shape.ceiling(n))
    noise: DiscreteLaplace | Ladder | SmoothMedian
    if rest and method != "smooth":
        raise ArgumentError("delta must be 0 but for smooth sensitivity: others need none")
    if method == "ladder":
        noise = Ladder.for_loss(epsilon, most=shape.most(n))
    elif method == "worst":
        noise = DiscreteLaplace.for_loss(epsilon, l1=moved)
    else:
        if not rest:
            raise ArgumentError("delta must be above 0 for smooth sensitivity")
        # Its ends bound how wide the noise may be, which is the ceiling of the smooth sensitivity.
        noise = SmoothMedian.for_loss(epsilon, rest, lower=0, upper=moved)
    if isinstance(noise, DiscreteLaplace):
        loss = noise.loss(l1=moved, neighbours=Neighbours.EDGE)
    else:
        loss = noise.loss(neighbours=Neighbours.EDGE)
    loss = graph.charge(loss, shape.name, method, *noise.parameters().values())
    value = shape.count(graph)
    if isinstance(noise, DiscreteLaplace):
        return GraphCount(shape.name, value + int(noise.draw(1)[0]), loss, (), noise)
    if isinstance(noise, Ladder):
        value = noise.release(value, shape.local(graph))
    elif shape.ceiling(n):
        drawn = value + noise.draw(smooth_sensitivity(noise, shape, graph))
        value = min(shape.most(n), max(0, drawn))
    return GraphCount(shape.name, value, loss, (), noise, shape)


def smooth_sensitivity(noise: SmoothMedian, shape: CountedShape, graph: Graph) -> Fraction:
    """max over t of g_t·LS_t, g_0 = 1, g falling by at most the mechanism's falloff a step.

    So neighbours have S <= S'/falloff, which is what its proof needs. It depends on the graph as it
    is: a secret. The largest LS bounds all that follow, so that few are looked at.
    """
    one = g = 1 << _BITS
    cap, best = shape.ceiling(graph.size), 0
    for width in shape.local(graph):
        if g * cap <= best:
            break
        best = max(best, g * width)
        # Rounded up, so that it falls by no more than the falloff.
        g = math.ceil(g * noise.falloff)
    return Fraction(best, one)


def noise_width(noise: Ladder | SmoothMedian, shape: CountedShape, at: Graph, inside: float) -> int:
    """The half-width of the noise at a graph."""
    if isinstance(noise, Ladder):
        count = shape.count(at)
        if shape.most(at.size) != noise.most:
            noise = Ladder(noise.rate, shape.most(at.size))
        return noise.half_width(count, shape.local(at), inside)
    smooth = smooth_sensitivity(noise, shape, at)
    return noise.half_width(smooth, inside) if smooth else 0


def check_graph(graph: Any) -> None:
    """Refuse what is no graph."""
    if not isinstance(graph, Graph):
        raise ArgumentError("graph must be a Graph, such as Graph(edges, nodes=...)")


def protected(
    graph: Graph, neighbours: Neighbours | str, degree: int | None
) -> tuple[Neighbours, int | None]:
    """What is protected; of nodes also how many edges of each a projection leaves at most.

    Raises
    ------
    ArgumentError
        It is no graph; nodes are protected and no degree is given, or edges and one is; the nodes
        are not public where an edge is protected.
    """
    check_graph(graph)
    relation = as_graph_neighbours(neighbours)
    if relation is Neighbours.NODE:
        return relation, needs_degree(degree)
    no_degree(degree)
    graph.needs_public("edge privacy")
    return relation, None


def needs_degree(degree: Any) -> int:
    """The bound of a projection, where one is needed."""
    if degree is None:
        raise ArgumentError(
            "degree must be given for neighbours='node': the most edges of a node that count"
        )
    return check.count("degree", degree, most=MOST_DEGREE)


def no_degree(degree: Any) -> None:
    """Refuse a bound where none is used."""
    if degree is not None:
        raise ArgumentError("degree goes with neighbours='node': one edge needs no projection")
