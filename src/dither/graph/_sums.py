"""Sums over neighbours with noise: what a learner on a graph is fed, rounds of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._columns import array_of, check_numeric, doubles, numeric
from dither._format import Printable, count_text, number_text
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.graph._cost import cost_of
from dither.graph._counted import check_graph, needs_degree, no_degree
from dither.graph._graph import Codes, Graph
from dither.mechanisms import DiscreteGaussian
from dither.numeric._directed import float_down
from dither.privacy import Charge, Loss, Neighbours
from dither.privacy._promise import as_graph_neighbours

__all__ = ["NeighbourSums", "lattice_rows", "neighbour_sums"]

Matrix = npt.NDArray[np.float64]

_STEPS = 1 << 20
"""A row of length 1 in steps: squares are up to 2^40, and sums of 2^20 of them below 2^63."""
_MOST = 1 << 20


@dataclass(frozen=True, eq=False)
class NeighbourSums(Printable):
    """Sums over neighbours, round by round.

    Parameters
    ----------
    rounds : tuple of array of float, shape (n, m)
        Of each round and each public node, in the order of the list: the noisy sum of its
        neighbours' rows. Rows have a length of at most 1; those of a later round are the sums of
        the one before, brought to length 1.
    deviation : float
        Of the noise of each number.
    loss : Loss
        Of all rounds together.
    """

    rounds: tuple[Matrix, ...] = field(repr=False)
    deviation: float
    loss: Loss
    notes: tuple[str, ...] = ()

    @property
    def features(self) -> Matrix:
        """All rounds side by side, rows at length 1: what a model is trained on, at no cost."""
        return np.hstack([_unit(one) for one in self.rounds])

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: two sums along the line on which an edge moves them."""
        delta = Fraction(1, 100)
        noise, _ = _priced(Fraction(1), delta, 1, 2, 2, Neighbours.EDGE)

        def run(edges: list[tuple[int, int]], size: int) -> Matrix:
            sums = _sums(Graph(edges, nodes=2), lattice_rows(np.ones((2, 1))))
            noisy: Matrix = (sums.ravel() + noise.draw((size, 2))).sum(axis=1) / _STEPS
            return noisy

        yield Subject("sums over neighbours", run, [], [(0, 1)], delta=delta)

    def summary(self) -> str:
        """A few lines for people."""
        n, m = self.rounds[0].shape
        lines = [
            f"sums over neighbours: {count_text(len(self.rounds), 'round')}, {n:,} nodes, "
            f"{count_text(m, 'feature')}; noise of deviation {number_text(self.deviation, 3)}",
            f"cost: {cost_of(self.loss)}",
        ]
        return "\n".join([*lines, *self.notes])


def neighbour_sums(
    graph: Graph,
    features: npt.ArrayLike,
    *,
    epsilon: Number,
    delta: Number,
    rounds: int = 1,
    neighbours: Neighbours | str = Neighbours.EDGE,
    degree: int | None = None,
) -> NeighbourSums:
    """The sum of its neighbours' features for each node, with Gaussian noise; several rounds of it.

    Parameters
    ----------
    graph : Graph
        With a public list of nodes.
    features : array, shape (n, m)
        A row of numbers for each node, in the order of the list. Longer rows are scaled to length
        1; a row with something that is no finite number is all 0, and so is one that is None.
        How many columns there are is public: an array says it even where no row has anything.
    epsilon, delta : number
        What all rounds cost together: above 0, and in (0, 1).
    rounds : int
        1 to 100.
    neighbours : {"edge", "node"}
        ``"edge"`` protects who is tied to whom, and **not the features**, which a round reads as
        they are. ``"node"`` protects a node's edges and its features.
    degree : int, optional
        For nodes: the most edges that any node of any such graph can have. **It is a public fact
        that the caller vouches for, and is not enforced**: of a node with more nothing is promised.

    Returns
    -------
    NeighbourSums

    Raises
    ------
    ArgumentError
        An argument is out of range or of another shape; the nodes are not public.
    BudgetError, PromiseError
        The graph's account cannot bear it; nothing was charged or drawn.

    Notes
    -----
    *Guarantee.* Rows are whole numbers of steps of 2^-20, whose length of at most 1 is checked in
    integers; so sums are exact, and noise is discrete. An edge (i, j) more adds row j to sum i
    and row i to sum j: a squared change of at most 2. A node of at most D edges that has them or
    not changes D sums by its own row, and its own sum by D rows: at most D + D². It is priced as
    the composition of so many Gaussian releases. No projection bounds D here: cutting edges where
    one node is full moves sums of many others.

    References
    ----------
    Sajadmanesh, Shamsabadi, Bellet and Gatica-Perez, "GAP: differentially private graph neural
    networks with aggregation perturbation", USENIX Security 2023.

    Examples
    --------
    >>> pair = Graph([(0, 1)], nodes=3)
    >>> sums = neighbour_sums(pair, [[1, 0], [0, 1], [0, 0]], epsilon=1, delta=1e-6)
    >>> sums.rounds[0].shape, sums.loss.neighbours.value, sums.loss.charge.epsilon
    ((3, 2), 'edge', Fraction(1, 1))
    """
    check_graph(graph)
    relation = as_graph_neighbours(neighbours)
    n = graph.needs_public("sums over neighbours")
    k = check.count("rounds", rounds, 1, 100)
    eps, rest = check.positive("epsilon", epsilon), check.exact("delta", delta, above=0, below=1)
    given = _matrix(features)
    if given.ndim != 2 or given.shape[0] != n or not 0 < given.shape[1] <= _MOST:
        raise ArgumentError("features must have a row for each node, and a column at least")
    notes: tuple[str, ...] = ()
    square, width = 2, 2
    if relation is Neighbours.NODE:
        most = needs_degree(degree)
        square, width = most + most * most, most + 1
        notes = (f"holds where no node can have more than {most:,} edges: that is not enforced",)
    else:
        no_degree(degree)
        notes = ("protects ties, not the features",)
    noise, stated = _priced(eps, rest, k, square, width * given.shape[1], relation)
    said = (relation.value, square, k, noise.sigma2)
    loss = graph.charge(stated, "sums over neighbours", *said)
    rows = doubles(given)
    found = []
    for _ in range(k):
        sums = _sums(graph, lattice_rows(rows))
        rows = (sums + noise.draw(sums.shape)) / _STEPS
        found.append(rows)
        rows = _unit(rows)
    return NeighbourSums(tuple(found), noise.variance**0.5 / _STEPS, loss, notes)


def _matrix(features: npt.ArrayLike) -> npt.NDArray[Any]:
    """A table of what may or may not be numbers."""
    check_numeric("features", features)
    try:
        given = array_of(features)
        if given.dtype == object and given.ndim == 1:
            rows = [None if row is None else list(row) for row in given.tolist()]
            width = next((len(row) for row in rows if row is not None), 1)
            given = np.array([[None] * width if row is None else row for row in rows], dtype=object)
    except (TypeError, ValueError) as error:
        raise ArgumentError("features must be a table: a row for each node") from error
    return numeric("features", given)


def _priced(
    epsilon: Fraction,
    delta: Fraction,
    rounds: int,
    square: int,
    coordinates: int,
    relation: Neighbours,
) -> tuple[DiscreteGaussian, Loss]:
    """Noise of rounds that cost (epsilon, delta) together, and what they cost.

    A round reads what the one before released, so that the price is that of a composition of
    rounds, and not of one long vector.
    """
    steps = Fraction(square * _STEPS**2)
    noise = DiscreteGaussian.for_epsilon(epsilon, delta, l2_squared=rounds * steps)
    while True:
        one = noise.loss(l2_squared=steps, coordinates=coordinates, neighbours=relation)
        whole = rounds * one
        # delta falls with epsilon: a double below it gives no less.
        spent = Fraction(whole.delta(float_down(epsilon)).upper)
        if spent <= delta:
            return noise, whole.with_charge(Charge(epsilon, spent, whole.charge.rho))
        # One part in 2^20 more; how much more decides how close it is, and never whether it holds.
        noise = DiscreteGaussian(noise.sigma2 * (1 + Fraction(1, 1 << 20)))


def lattice_rows(rows: Matrix) -> Codes:
    """Rows in whole steps, each of a squared length of at most the square of the steps of 1.

    Examples
    --------
    >>> inside = lattice_rows(np.array([[3.0, 4.0], [0.5, 0.0], [np.nan, 1.0], [1e308, 1e308]]))
    >>> (inside / 2**20).round(3).tolist()
    [[0.6, 0.8], [0.5, 0.0], [0.0, 0.0], [0.707, 0.707]]
    >>> bool(((inside**2).sum(axis=1) <= 2**40).all())
    True
    """
    finite = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    largest = np.maximum(np.abs(finite).max(axis=1, keepdims=True), 1.0)
    # By the largest first, so that no square leaves the doubles.
    scaled = finite / largest
    length = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
    inside = scaled / np.maximum(length, 1.0 / largest)
    steps: Codes = np.trunc(inside * _STEPS).astype(np.int64)
    over = (steps**2).sum(axis=1) > _STEPS**2
    while over.any():
        # One step nearer to 0 in each number; it ends, at 0 at the latest.
        steps[over] -= np.sign(steps[over])
        over = (steps**2).sum(axis=1) > _STEPS**2
    return steps


def _sums(graph: Graph, rows: Codes) -> Codes:
    sums = np.zeros_like(rows)
    np.add.at(sums, graph.edges[:, 0], rows[graph.edges[:, 1]])
    np.add.at(sums, graph.edges[:, 1], rows[graph.edges[:, 0]])
    return sums


def _unit(rows: Matrix) -> Matrix:
    length = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return rows / np.where(length > 0, length, 1.0)
