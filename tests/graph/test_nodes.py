"""Node privacy: how far a node with all its edges moves what leaves, of all small graphs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dither.graph import Graph, block_model, count_edges, degrees, projection_bias
from dither.graph._degrees import _at_least, falling
from dither.graph._projection import projected
from graph.small import SmallGraphs

ORDERS = [[0, 1, 2, 3, 4], ["a", "x", "q", "zz", "k"]]


@pytest.mark.parametrize("public", [True, False])
@pytest.mark.parametrize("labels", ORDERS, ids=["numbers", "texts"])
@pytest.mark.parametrize("n", [4, pytest.param(5, marks=pytest.mark.slow)])
def test_a_node_moves_a_projection_no_farther_than_is_charged(n, labels, public) -> None:
    """Edges by D at most, counts of degrees by 2·D together; both are reached."""
    small = SmallGraphs(n, labels[:n], public=public)
    for bound in range(1, n):
        kept = {g: projected(small.of(g), bound) for g in small}
        counts = {g: _at_least(one.degrees, bound) for g, one in kept.items()}
        edges, moved = set(), set()
        for h, g in small.node_neighbours():
            edges.add(len(kept[g].edges) - len(kept[h].edges))
            moved.add(int(np.abs(counts[g] - counts[h]).sum()))
        assert min(edges) >= 0
        assert max(edges) == bound
        assert max(moved) == 2 * bound


def test_a_projection_keeps_what_fits() -> None:
    """No node has more than the bound, no edge is left out while both ends have room."""
    ties = Graph([(i, j) for i in range(8) for j in range(i) if (i * j) % 3 != 1], nodes=8)
    for bound in (1, 2, 3, 7):
        kept = projected(ties, bound)
        assert kept.degrees.max() <= bound
        left = {tuple(e) for e in ties.edges.tolist()} - {tuple(e) for e in kept.edges.tolist()}
        assert all(bound in (kept.degrees[i], kept.degrees[j]) for i, j in left)
    assert projection_bias(ties, [1, 7]).rows[1] == (7, len(ties.edges), 0)
    assert "not for publication" in str(projection_bias(ties, [1]))


def test_the_order_of_edges_is_that_of_labels_alone() -> None:
    """Neither rows nor who else is there change which of two edges comes first."""
    few = Graph([("a", "b"), ("c", "d")])
    many = Graph([("d", "c"), ("0", "1"), ("b", "a"), ("x", "y")])
    assert few.order(0, 1) == many.order(3, 2)
    assert few.order(3, 2) == many.order(4, 5)
    assert few.order(0, 1) != few.order(2, 3)


def test_sorted_degrees_move_by_two() -> None:
    """Of an edge, in the L1 norm, also within public groups, for all graphs of five nodes."""
    small = SmallGraphs(5)
    group = np.array([0, 0, 1, 1, 1])
    moved = set()
    for g, h in small.edge_neighbours():
        one, two = small.of(g).degrees, small.of(h).degrees
        moved.add(int(np.abs(np.sort(one) - np.sort(two)).sum()))
        parts = (np.abs(np.sort(one[group == r]) - np.sort(two[group == r])).sum() for r in (0, 1))
        assert sum(parts) == 2
    assert moved == {2}


def test_falling_numbers_are_nearest() -> None:
    """Pooled neighbours: against a search over all ways to cut the row in pools."""
    rng = np.random.default_rng(3)
    for _ in range(30):
        row = rng.integers(0, 9, size=5).astype(float)
        best = np.inf
        for cuts in range(16):
            ends = [0, *(i + 1 for i in range(4) if cuts >> i & 1), 5]
            means = [row[a:b].mean() for a, b in pairwise(ends)]
            if means == sorted(means, reverse=True):
                fit = np.repeat(means, np.diff(ends))
                best = min(best, float(((fit - row) ** 2).sum()))
        found = falling(row)
        assert (np.diff(found) <= 1e-12).all()
        assert ((found - row) ** 2).sum() == pytest.approx(best)
    assert falling([]).size == 0


def test_degree_distributions_are_right_where_noise_is_small() -> None:
    """At a large epsilon, for either relation, with public nodes or not."""
    rows = [(0, 1), (0, 2), (0, 3), (4, 5)]
    public, private = Graph(rows, nodes=8), Graph(rows)
    found = degrees(public, epsilon=60)
    assert found.histogram.tolist() == [2, 5, 0, 1, 0, 0, 0, 0]
    assert found.mean == 1
    of_nodes = degrees(public, epsilon=200, neighbours="node", degree=3)
    assert of_nodes.histogram.tolist() == [2, 5, 0, 1]
    hidden = degrees(private, epsilon=200, neighbours="node", degree=3)
    assert np.isnan(hidden.histogram[0])
    assert hidden.histogram[1:].tolist() == [5, 0, 1]
    assert hidden.frame.columns == ["degree", "nodes", "at_least"]
    assert "with all its edges" in str(hidden)
    assert count_edges(private, epsilon=200, neighbours="node", degree=3).value == 4


def test_degrees_are_drawn(tmp_path) -> None:
    """Of whatever graph, an empty one too, saved where it is asked for."""
    pytest.importorskip("matplotlib")
    for ties, asked in (
        (Graph([(0, 1), (0, 2)], nodes=5), {}),
        (Graph([]), {"neighbours": "node", "degree": 3}),
        (Graph([], nodes=0), {}),
    ):
        found = degrees(ties, epsilon=1, **asked)
        axes = found.plot(tmp_path / "degrees.png").axes[0]
        assert (tmp_path / "degrees.png").stat().st_size > 1000
        assert min(axes.lines[0].get_ydata().tolist(), default=1) > 0


def test_models_have_the_degrees_and_blocks_of_the_graph() -> None:
    """At a large epsilon blocks are exact, and samples have their groups and no loops."""
    rng = np.random.default_rng(5)
    rows = [(i, j) for i in range(12) for j in range(i) if (i < 6) == (j < 6) or i == j + 6]
    ties = Graph(rows, nodes=12)
    groups = {i: "low" if i < 6 else "high" for i in range(12)}
    model = block_model(ties, epsilon=80, groups=groups)
    assert model.groups == ("high", "low")
    assert model.blocks.tolist() == [[15, 6], [6, 15]]
    assert [own.round().tolist() for own in model.degrees] == [[6] * 6] * 2
    frame = model.sample(rng)
    assert frame.height >= 30
    assert (frame["source"] < frame["target"]).all()
    assert not frame.select("source", "target").is_duplicated().any()
    assert set(frame.filter(frame["source"] < 6)["source_group"]) == {"high"}
    assert frame.equals(model.sample(np.random.default_rng(5)))
    assert model.graph(rng).size == 12
