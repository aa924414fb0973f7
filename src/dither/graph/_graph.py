"""A graph whose edges are protected: who is tied to whom, read once and held as whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.graph._labels import key_of, pair_order, read_nodes, read_pairs
from dither.privacy import Loss, Neighbours, Promise

if TYPE_CHECKING:
    from dither.ledger import Ledger
    from dither.ledger._bindings import BearingAccount

__all__ = ["Graph"]

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, repr=False, eq=False)
class Graph:
    """A simple undirected graph, with the words for whom its releases protect.

    Parameters
    ----------
    edges : array or tensor, frame, iterable of pairs, or graph of networkx
        Pairs of labels: text, bytes, integers or finite floats, where 1, 1.0 and True are one
        label; write UUIDs, dates and decimals as text. A pair that is there twice, or in both
        directions, is one edge. Counted for nothing are: an edge of a node to itself, a row that is
        no pair, an end that is no label (None, NaN, an object), and an end that is not among
        ``nodes``.
    nodes : list of labels, or int, optional
        Everyone there is, as a public list; a number n stands for the labels 0 to n - 1. Isolated
        nodes are those of the list without an edge. Without it the nodes are protected, too: one is
        there if it has an edge, and what is protected then is a node with all its edges.
    edge, node : str
        What an edge and a node are: the unit that the losses of releases name.

    Raises
    ------
    ArgumentError
        ``edges`` holds no pairs; ``nodes`` is no list of distinct labels; a unit is no text.

    Notes
    -----
    *Neighbours.* ``"edge"``: the same public nodes and one edge more. ``"node"``: one node more
    with all its edges; with a public list, one of the nodes has all its edges or none. The losses
    of the two are never added (`dither.privacy.Neighbours`).

    What is shown of a graph (its `repr`) is its public list alone. Everything else here is of the
    graph as it is, and not for publication.

    Examples
    --------
    >>> rows = [("ann", "bob"), ("bob", "ann"), ("bob", "bob"), ("bob", None), ("bob", "eve")]
    >>> Graph(rows, nodes=["ann", "bob"])
    <Graph of 2 nodes; protects one edge or one node>
    >>> Graph([(1, 2), (2.0, 3)], edge="call", node="phone")
    <Graph; protects one call or one phone, and who is there>
    """

    edges: Any = field(default=())
    nodes: Any = field(default=None)
    edge: str = "edge"
    node: str = "node"
    _bearer: BearingAccount | None = field(default=None, init=False)
    _keys: list[bytes] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        for unit, relation in ((self.edge, Neighbours.EDGE), (self.node, Neighbours.NODE)):
            Promise(unit, relation)
        known = None if self.nodes is None else read_nodes(self.nodes)
        found: set[tuple[bytes, bytes]] = set()
        labels: dict[bytes, Any] = {} if known is None else known
        for one, two in read_pairs(self.edges):
            a, b = key_of(one), key_of(two)
            if a is None or b is None or a == b:
                continue
            if known is None:
                labels.setdefault(a, one)
                labels.setdefault(b, two)
            elif a not in known or b not in known:
                continue
            found.add((min(a, b), max(a, b)))
        # Nodes that are not public are in the order of their keys, not of rows.
        keys = list(labels) if known is not None else sorted(labels)
        at = {key: i for i, key in enumerate(keys)}
        ends = sorted(sorted((at[a], at[b])) for a, b in found)
        pairs = np.array(ends, dtype=np.int64).reshape(-1, 2)
        self._hold("edges", pairs)
        self._hold("nodes", None if known is None else tuple(labels[k] for k in keys))
        self._hold("_keys", keys)

    def _hold(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        if self.nodes is None:
            return f"<Graph; protects one {self.edge} or one {self.node}, and who is there>"
        n = len(self.nodes)
        return f"<Graph of {n:,} nodes; protects one {self.edge} or one {self.node}>"

    @classmethod
    def of_codes(cls, pairs: Codes | Sequence[tuple[int, int]], like: Graph) -> Graph:
        """The graph on the nodes of another with these edges, pairs of places in their order.

        As in any graph, a pair that is there twice is one edge; a place with itself, and what is
        no place of a node, is none. An account of the other's is one of this graph, too.
        """
        made = replace(like, edges=(), nodes=0)
        ends = np.sort(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), axis=1)
        real = (ends[:, 0] >= 0) & (ends[:, 0] < ends[:, 1]) & (ends[:, 1] < like.size)
        made._hold("edges", np.unique(ends[real], axis=0))
        made._hold("nodes", like.nodes)
        made._hold("_keys", like._keys)
        made._hold("_bearer", like._bearer)
        return made

    def charged_to(self, ledger: Ledger, account: str, *, name: str = "graph") -> Graph:
        """The same graph, whose releases charge an account before any noise is drawn.

        Parameters
        ----------
        ledger : Ledger
        account : str
            An account that is bound to this graph's edges or nodes: ``Promise(edge,
            Neighbours.EDGE)`` or ``Promise(node, Neighbours.NODE)``. A release of the other kind is
            refused, and costs nothing.
        name : str
            What the ledger calls this graph. Within a ledger a graph stays with the promise that it
            was first charged under, so that no account misses a release of it.

        Raises
        ------
        ArgumentError
            It is no ledger, or no name.

        Examples
        --------
        >>> from dither.accounting import BudgetFilter
        >>> from dither.ledger import Ledger
        >>> import tempfile, pathlib
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.open(pathlib.Path(folder.name) / "ties.ledger")
        >>> opened = ledger.open_accounts(
        ...     {"ties": BudgetFilter(1, 0)}, Promise("tie", Neighbours.EDGE))
        >>> graph = Graph([(0, 1)], nodes=5, edge="tie").charged_to(ledger, "ties")
        >>> from dither.graph import count_edges
        >>> count_edges(graph, epsilon=0.25).loss.promise.unit, ledger.balance("ties").spent.epsilon
        ('tie', Fraction(1, 4))
        >>> ledger.close(); folder.cleanup()
        """
        from dither.ledger._bindings import BearingAccount

        bearer = BearingAccount(ledger, account, name, "graph", "edges of a graph")
        made = Graph.of_codes(self.edges, self)
        made._hold("_bearer", bearer)
        return made

    @property
    def size(self) -> int:
        """How many nodes there are: public where the list is."""
        return len(self._keys)

    @cached_property
    def degrees(self) -> Codes:
        """How many edges each node has; not for publication."""
        return np.bincount(self.edges.ravel(), minlength=self.size).astype(np.int64)

    @cached_property
    def adjacency(self) -> list[Codes]:
        """The neighbours of each node, ascending; not for publication."""
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        return np.split(both[:, 1], np.cumsum(self.degrees)[:-1]) if self.size else []

    def order(self, one: int, two: int) -> bytes:
        """The place of a pair of nodes in the public order of pairs, which labels alone decide."""
        return pair_order(self._keys[one], self._keys[two])

    def needs_public(self, what: str) -> int:
        """How many nodes there are, where their list is public.

        Raises
        ------
        ArgumentError
            It is not.
        """
        if self.nodes is None:
            raise ArgumentError(
                f"nodes must be a public list for {what}: Graph(edges, nodes=[...]); else a tie "
                "would give away who is there"
            )
        return self.size

    def stated(self, loss: Loss) -> Loss:
        """A loss for edges or nodes, with this graph's word for them."""
        unit = self.edge if loss.neighbours is Neighbours.EDGE else self.node
        return loss.promising(Promise(unit, loss.neighbours))

    def charge(self, loss: Loss, what: str, *said: object) -> Loss:
        """Charge what is about to be released, where the graph has an account; the stated loss.

        Each call is a charge of its own: nothing is kept that could be replayed.

        Raises
        ------
        BudgetError, PromiseError
            The account cannot bear it, or protects another unit; nothing was charged.
        """
        stated = self.stated(loss)
        if self._bearer is not None:
            self._bearer.charge(stated, what, *said)
        return stated
