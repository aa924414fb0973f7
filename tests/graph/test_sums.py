"""Sums over neighbours: what an edge or a node moves, in whole steps, and rows that are bounded."""

from __future__ import annotations

from fractions import Fraction as F

import numpy as np
import pytest

from dither.graph import Graph, neighbour_sums
from dither.graph._sums import _STEPS, _sums, lattice_rows
from graph.small import SmallGraphs


def test_an_edge_moves_two_rows_and_a_node_those_of_its_ties() -> None:
    """Squared, of all graphs of four nodes and rows of length 1: 2, and D + D²; both reached."""
    small = SmallGraphs(4)
    rows = lattice_rows(np.ones((4, 1)))
    sums = {g: _sums(small.of(g), rows) for g in small}
    moved = {int(((sums[g] - sums[h]) ** 2).sum()) for g, h in small.edge_neighbours()}
    assert moved == {2 * _STEPS**2}
    of_nodes = dict.fromkeys((1, 2, 3), 0)
    for h, g in small.node_neighbours():
        bound = int(small.of(g).degrees.max())
        of_nodes[bound] = max(of_nodes[bound], int(((sums[g] - sums[h]) ** 2).sum()))
    assert of_nodes == {d: (d + d * d) * _STEPS**2 for d in of_nodes}


@pytest.mark.parametrize("width", [1, 2, 7])
def test_no_row_is_longer_than_1(width) -> None:
    """In whole numbers, for rows of any size; short ones keep their values to a step."""
    rng = np.random.default_rng(width)
    sizes = 10.0 ** rng.integers(-320, 308, size=(2000, 1))
    rows = rng.normal(size=(2000, width)) * sizes
    odd = np.full((6, width), np.nan)
    odd[1], odd[2], odd[3], odd[4], odd[5] = np.inf, -np.inf, 1.7e308, 5e-324, -1.0
    found = lattice_rows(np.vstack([rows, odd]))
    assert ((found**2).sum(axis=1) <= _STEPS**2).all()
    assert not found[-6:-3].any()
    short = rng.uniform(-0.3, 0.3, size=(500, width))
    kept = lattice_rows(short) / _STEPS
    assert np.abs(kept - short).max() <= 2 / _STEPS


def test_rounds_cost_what_was_asked() -> None:
    """Whatever their number and the relation; noise grows with their root."""
    ties = Graph([(0, 1), (1, 2)], nodes=3)
    rows = np.eye(3)
    one = neighbour_sums(ties, rows, epsilon=2, delta=1e-6)
    four = neighbour_sums(ties, rows, epsilon=2, delta=1e-6, rounds=4)
    node = neighbour_sums(ties, rows, epsilon=2, delta=1e-6, neighbours="node", degree=2)
    for found in (one, four, node):
        assert found.loss.charge.epsilon == 2
        assert F(9, 10**7) < found.loss.charge.delta <= F(1, 10**6)
        assert found.loss.delta(2.0).upper <= 1e-6
    assert four.deviation == pytest.approx(2 * one.deviation, rel=0.01)
    assert node.deviation == pytest.approx(3**0.5 * one.deviation, rel=0.01)
    assert four.features.shape == (3, 12)
    assert np.linalg.norm(four.features[:, :3], axis=1) == pytest.approx(1)
    assert "not the features" in str(one)
    assert "not enforced" in str(node)


def test_sums_are_right_where_noise_is_small() -> None:
    """Of tables of any kind; a row with something that is no number is 0."""
    ties = Graph([(0, 1), (1, 2)], nodes=3)
    for first in ([0.5, None], None, [object(), 1]):
        given = [first, [0.6, 0.8], [0.0, 1.0]]
        found = neighbour_sums(ties, given, epsilon=400, delta=1e-3).rounds[0]
        assert found == pytest.approx(np.array([[0.6, 0.8], [0.0, 1.0], [0.6, 0.8]]), abs=0.5)
    nothing = neighbour_sums(ties, [None] * 3, epsilon=1, delta=1e-3, neighbours="node", degree=2)
    assert nothing.rounds[0].shape == (3, 1)
