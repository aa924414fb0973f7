"""Degree distributions with noise: sorted degrees for edges, a bounded projection's for nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, count_text, number_text
from dither._subjects import Subject
from dither.graph._cost import cost_of
from dither.graph._counted import protected
from dither.graph._graph import Codes, Graph
from dither.graph._projection import projected
from dither.mechanisms import DiscreteLaplace
from dither.privacy import Loss, Neighbours

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["DegreeDistribution", "degrees", "falling"]

Shares = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DegreeDistribution(Printable):
    """A degree distribution with noise.

    Parameters
    ----------
    noisy : array of int
        What was released: the sorted degrees, largest first; or, for nodes, how many have at least
        1, 2, ... edges.
    at_least : array of float, shape (m + 1,)
        How many nodes have at least 0, 1, ..., m edges: the noisy numbers, made to fall, and within
        what is possible. The first is NaN where the number of nodes is not public.
    loss : Loss
    notes : tuple of str
    noise : DiscreteLaplace
        Of each number of ``noisy``.
    """

    noisy: Codes = field(repr=False)
    at_least: Shares = field(repr=False)
    loss: Loss
    notes: tuple[str, ...]
    noise: DiscreteLaplace = field(repr=False)

    @property
    def histogram(self) -> Shares:
        """How many nodes have 0, 1, ..., m edges; NaN of 0 where nodes are not public."""
        found: Shares = self.at_least - np.append(self.at_least[1:], 0.0)
        return found

    @property
    def frame(self) -> pl.DataFrame:
        """A row for each degree: ``degree``, ``nodes``, ``at_least``."""
        import polars as pl

        places = np.arange(len(self.at_least))
        columns = {"degree": places, "nodes": self.histogram, "at_least": self.at_least}
        return pl.DataFrame(columns)

    @property
    def mean(self) -> float:
        """Edges of a node on average; NaN where the number of nodes is not public."""
        n = self.at_least[0]
        return float(self.at_least[1:].sum() / n) if n else 0.0

    def half_width(self, confidence: float = 0.95) -> int:
        """How far the noise of each number of ``noisy`` reaches to either side."""
        return self.noise.half_width(check.confidence(confidence))

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw how many nodes have at least so many edges.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        """
        from dither.plots.tables._records import draw_degrees

        return draw_degrees(self, path)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: the likelier of two vectors of counts, one node more."""
        noise = DiscreteLaplace.for_loss(1, l1=4)
        first = [(1, 2)]
        second = [*first, (0, 3), (0, 4)]

        def counts(edges: list[tuple[int, int]]) -> Codes:
            return _at_least(projected(Graph(edges, nodes=5), 2).degrees, 2)

        def run(edges: list[tuple[int, int]], size: int) -> Codes:
            noisy = counts(edges) + noise.draw((size, 2))
            near, far = np.abs(noisy - counts(first)), np.abs(noisy - counts(second))
            return np.asarray((near - far).sum(axis=1), dtype=np.int64)

        yield Subject("degrees, node privacy", run, first, second)

    def summary(self) -> str:
        """A few lines for people."""
        shown = np.flatnonzero(self.histogram.round() > 0)
        cells = (f"{d}: {number_text(float(self.histogram[d].round()))}" for d in shown[:12])
        more = f", and {count_text(len(shown) - 12, 'degree')} more" if len(shown) > 12 else ""
        lines = [f"nodes by degree: {', '.join(cells)}{more}", f"cost: {cost_of(self.loss)}"]
        return "\n".join([*lines, *self.notes])


def degrees(
    graph: Graph,
    *,
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.EDGE,
    degree: int | None = None,
) -> DegreeDistribution:
    """How many nodes have how many edges, with noise that a fit of falling numbers makes small.

    Parameters
    ----------
    graph : Graph
    epsilon : number
        Above 0: what it costs.
    neighbours : {"edge", "node"}
        What is protected. For an edge the nodes must be public.
    degree : int, optional
        For nodes: the most edges of a node that count, a public choice.

    Returns
    -------
    DegreeDistribution

    Raises
    ------
    ArgumentError
        An argument is out of range; the nodes are not public where an edge is protected.
    BudgetError, PromiseError
        The graph's account cannot bear it; nothing was charged or drawn.

    Notes
    -----
    *Edges.* The sorted degrees of all n nodes leave with discrete Laplace noise of scale 2/epsilon:
    an edge more adds 1 to two of them, and sorting brings two vectors no farther apart [1]_. Then
    the nearest falling numbers are taken, which is free, and removes most of the noise wherever
    many nodes have the same degree.

    *Nodes.* Of a projection to ``degree`` D, the numbers of nodes with at least 1, ..., D edges get
    noise of scale 2·D/epsilon (`dither.graph._projection` has the proof); a cumulative form of
    the histogram, as in [2]_. Nodes whose edges are all cut count as having none. What the
    projection cuts is a bias that no interval covers.

    References
    ----------
    .. [1] Hay, Li, Miklau and Jensen, "Accurate estimation of the degree distribution of private
       networks", ICDM 2009.
    .. [2] Day, Li and Lyu, "Publishing graph degree distribution with node differential privacy",
       SIGMOD 2016.

    Examples
    --------
    >>> ring = Graph([(i, (i + 1) % 1000) for i in range(1000)], nodes=1000)
    >>> found = degrees(ring, epsilon=1)
    >>> 1.9 < found.mean < 2.1, found.loss.charge.epsilon
    (True, Fraction(1, 1))
    """
    relation, kept = protected(graph, neighbours, degree)
    notes: tuple[str, ...] = ()
    if kept is None:
        most, moved = max(0, graph.size - 1), 2
    else:
        most, moved = kept, 2 * kept
        notes = (
            f"degrees of a projection to {most:,} a node: what that leaves out, no error covers",
        )
    noise = DiscreteLaplace.for_loss(epsilon, l1=moved)
    loss = graph.charge(
        noise.loss(l1=moved, neighbours=relation), "degrees", relation.value, most, noise.scale
    )
    if relation is Neighbours.NODE:
        at_least = _at_least(projected(graph, most).degrees, most)
        noisy = at_least + noise.draw(most)
        public = None if graph.nodes is None else graph.size
        top = np.inf if public is None else public
        fitted = np.clip(falling(noisy), 0, top)
        first = np.nan if public is None else float(public)
        return DegreeDistribution(noisy, np.array([first, *fitted]), loss, notes, noise)
    noisy = -np.sort(-graph.degrees) + noise.draw(graph.size)
    whole = np.clip(np.rint(falling(noisy)), 0, most).astype(np.int64)
    counts = np.array([graph.size, *_at_least(whole, most)], dtype=np.float64)
    return DegreeDistribution(noisy, counts, loss, notes, noise)


def _at_least(found: Codes, most: int) -> Codes:
    """How many of some degrees are at least 1, ..., most."""
    counts = np.bincount(found, minlength=most + 1)
    return np.cumsum(counts[::-1])[::-1][1:].astype(np.int64)


def falling(values: npt.ArrayLike) -> Shares:
    """The falling numbers that are nearest in squared error: neighbours that rise are pooled.

    Examples
    --------
    >>> falling([5, 6, 1, 3, 0]).tolist()
    [5.5, 5.5, 2.0, 2.0, 0.0]
    """
    sums: list[float] = []
    sizes: list[int] = []
    for value in np.asarray(values, dtype=np.float64).tolist():
        total, size = value, 1
        while sums and sums[-1] * size <= total * sizes[-1]:
            total, size = total + sums.pop(), size + sizes.pop()
        sums.append(total)
        sizes.append(size)
    means = np.array(sums) / np.array(sizes, dtype=np.float64)
    return np.repeat(means, sizes)
