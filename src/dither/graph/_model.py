"""A degree-corrected block model with noise, and graphs that are drawn of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import Printable, count_text, number_text
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.graph._cost import cost_of
from dither.graph._counted import check_graph
from dither.graph._degrees import falling
from dither.graph._graph import Codes, Graph
from dither.graph._labels import key_of
from dither.mechanisms import DiscreteLaplace
from dither.privacy import Loss, Neighbours

if TYPE_CHECKING:
    import polars as pl

__all__ = ["BlockModel", "block_model"]

_TRIES = 60


@dataclass(frozen=True, eq=False)
class BlockModel(Printable):
    """Degrees in each group and edges between groups, all with noise: what graphs are drawn of.

    It holds released numbers alone, and may be handed out.

    Parameters
    ----------
    groups : tuple of str
        Their names, as text.
    degrees : tuple of array of float
        Of each group: expected degrees of its nodes, largest first.
    blocks : array of float, shape (g, g)
        Edges between two groups, and within one on the diagonal.
    loss : Loss
    """

    groups: tuple[str, ...]
    degrees: tuple[np.ndarray[Any, np.dtype[np.float64]], ...] = field(repr=False)
    blocks: np.ndarray[Any, np.dtype[np.float64]] = field(repr=False)
    loss: Loss

    @property
    def sizes(self) -> list[int]:
        """Nodes of each group, which are public."""
        return [len(own) for own in self.degrees]

    def sample(self, rng: np.random.Generator) -> pl.DataFrame:
        """Draw a graph: its edges as rows. It costs nothing, however often.

        Parameters
        ----------
        rng : numpy.random.Generator
            Of the caller, seeded where a draw is to come again: this noise protects nobody.

        Returns
        -------
        polars.DataFrame
            ``source``, ``target``: numbers of nodes, from 0 on, one group after another; and
            ``source_group``, ``target_group``. A node stands for no person: only how many nodes of
            its group have which degree was measured.

        Notes
        -----
        Of each two groups as many edges as the model has, their ends with chances that are
        proportional to the expected degrees. An edge that is there, or of a node to itself, is
        drawn again, up to sixty times as often as there are edges: then there are fewer.
        """
        import polars as pl

        check.generator("rng", rng)
        first = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        weights = [own / own.sum() if own.sum() > 0 else None for own in self.degrees]
        rows: list[tuple[int, int]] = []
        names: list[tuple[str, str]] = []
        for r in range(len(self.groups)):
            for s in range(r, len(self.groups)):
                one, two = weights[r], weights[s]
                if one is None or two is None:
                    continue
                wanted = round(min(float(self.blocks[r, s]), _room(self.sizes, r, s)))
                found: set[tuple[int, int]] = set()
                for _ in range(_TRIES):
                    left = wanted - len(found)
                    if not left:
                        break
                    a = first[r] + rng.choice(len(one), size=left, p=one)
                    b = first[s] + rng.choice(len(two), size=left, p=two)
                    pairs = zip(a.tolist(), b.tolist(), strict=True)
                    found |= {(min(i, j), max(i, j)) for i, j in pairs if i != j}
                rows += sorted(found)
                names += [(self.groups[r], self.groups[s])] * len(found)
        ends = {"source": [i for i, _ in rows], "target": [j for _, j in rows]}
        kinds = {"source_group": [a for a, _ in names], "target_group": [b for _, b in names]}
        whole, text = dict.fromkeys(ends, pl.Int64), dict.fromkeys(kinds, pl.String)
        return pl.DataFrame({**ends, **kinds}, schema={**whole, **text}).sort("source", "target")

    def graph(self, rng: np.random.Generator, *, edge: str = "edge", node: str = "node") -> Graph:
        """A graph of `sample`: public, to plan with."""
        rows = self.sample(rng).select("source", "target")
        return Graph(rows, nodes=sum(self.sizes), edge=edge, node=node)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: the likelier of two graphs, by all that is measured of them."""
        ties, each = DiscreteLaplace(Fraction(2)), DiscreteLaplace(Fraction(4))

        def run(edge: int, size: int) -> Any:
            count = edge + ties.draw(size)
            own = edge + each.draw((size, 2))
            by_degree = (np.abs(own) - np.abs(own - 1)).sum(axis=1)
            return 2 * (np.abs(count) - np.abs(count - 1)) + by_degree

        yield Subject("block model", run, 0, 1)

    def summary(self) -> str:
        """A few lines for people."""
        edges = float(np.triu(self.blocks).sum())
        parts = ", ".join(f"{g} ({n:,})" for g, n in zip(self.groups, self.sizes, strict=True))
        lines = [
            f"{count_text(len(self.groups), 'group')}: {parts}; "
            f"about {number_text(edges, 3)} edges",
            f"cost: {cost_of(self.loss)}",
        ]
        return "\n".join(lines)


def _room(sizes: Sequence[int], r: int, s: int) -> int:
    return comb(sizes[r], 2) if r == s else sizes[r] * sizes[s]


def block_model(
    graph: Graph,
    *,
    epsilon: Number,
    groups: Mapping[Any, Any] | Sequence[Any] | None = None,
    share: Number = 0.5,
) -> BlockModel:
    """Fit a degree-corrected block model with noise; one edge is protected.

    Parameters
    ----------
    graph : Graph
        With a public list of nodes.
    epsilon : number
        Above 0: what it costs.
    groups : mapping of label to group, or sequence, optional
        The group of each node, **public**: a school class, a department. A sequence is in the order
        of the list of nodes. By default there is one group, and the model is that of Chung and Lu.
    share : number
        In (0, 1): what part of epsilon the degrees have; counts of edges between groups have the
        rest.

    Returns
    -------
    BlockModel
        ``model.sample(rng)`` gives rows.

    Raises
    ------
    ArgumentError
        An argument is out of range; a node has no group; the nodes are not public.
    BudgetError, PromiseError
        The graph's account cannot bear it; nothing was charged or drawn.

    Notes
    -----
    Guarantee: pure epsilon for neighbours that differ in one edge. It is in one block: those counts
    have noise of scale 1/((1 - share)·epsilon). It moves two degrees by 1, and the sorted degrees
    of all groups by no more: noise of scale 2/(share·epsilon), and then the nearest falling numbers
    in each group (`degrees`). Degrees are scaled to sum to what the blocks of their group say.

    Triangles are not in the model: graphs of it have fewer than people do.

    References
    ----------
    Karrer and Newman, "Stochastic blockmodels and community structure in networks", Physical Review
    E 2011; Hay and others, ICDM 2009.

    Examples
    --------
    >>> ties = Graph([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)], nodes=6)
    >>> model = block_model(ties, epsilon=20, groups=["a", "a", "a", "b", "b", "b"])
    >>> model.blocks.tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    >>> rows = model.sample(np.random.default_rng(1))
    >>> rows.columns, 5 <= rows.height <= 7
    (['source', 'target', 'source_group', 'target_group'], True)
    """
    check_graph(graph)
    n = graph.needs_public("a model")
    names, of_node = _grouped(graph, groups, n)
    eps = check.positive("epsilon", epsilon)
    part = check.exact("share", share, above=0, below=1)
    ties = DiscreteLaplace.for_loss(eps * (1 - part), l1=1)
    each = DiscreteLaplace.for_loss(eps * part, l1=2)
    edge = Neighbours.EDGE
    loss = ties.loss(l1=1, neighbours=edge) + each.loss(l1=2, neighbours=edge)
    loss = graph.charge(loss, "block model", eps, part, *names)
    g = len(names)
    ends = np.sort(of_node[graph.edges], axis=1)
    counts = np.bincount(ends[:, 0] * g + ends[:, 1], minlength=g * g).reshape(g, g)
    counts = counts + np.triu(ties.draw((g, g)))
    sizes = np.bincount(of_node, minlength=g).tolist()
    room = np.array([[_room(sizes, min(r, s), max(r, s)) for s in range(g)] for r in range(g)])
    upper = np.clip(np.triu(counts), 0, room).astype(np.float64)
    blocks = upper + np.triu(upper, 1).T
    found = []
    for r in range(g):
        own = -np.sort(-graph.degrees[of_node == r])
        fitted = np.clip(falling(own + each.draw(own.size)), 0, max(0, n - 1))
        # Both ends of an edge within a group are in it.
        whole = float(blocks[r].sum() + blocks[r, r])
        if fitted.sum() > 0:
            fitted = fitted * whole / fitted.sum()
        elif own.size:
            fitted = np.full(own.size, whole / own.size)
        found.append(fitted)
    return BlockModel(tuple(names), tuple(found), blocks, loss)


def _grouped(graph: Graph, groups: Any, n: int) -> tuple[list[str], Codes]:
    """The names of groups, in their order, and the group of each node."""
    if groups is None:
        return ["all"], np.zeros(n, dtype=np.int64)
    if isinstance(groups, Mapping):
        known = {key_of(label): group for label, group in groups.items()}
        listed = [known.get(key) for key in graph._keys]
    else:
        listed = check.listed("groups", groups, "groups")
    texts = [None if group is None else str(group) for group in listed]
    if len(texts) != n or None in texts:
        raise ArgumentError("groups must give each node of the public list a group")
    names = sorted({text for text in texts if text is not None})
    return names, np.array([names.index(t) for t in texts if t is not None], dtype=np.int64)
