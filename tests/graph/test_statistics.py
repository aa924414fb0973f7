"""Local sensitivities at every distance, held against all graphs of a few nodes."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import islice

import networkx
import numpy as np
import pytest

from dither import graph
from dither.graph import Graph
from dither.graph._counted import smooth_sensitivity
from dither.graph._ladder import Ladder
from dither.graph._statistics import Stars, Triangles
from dither.mechanisms import SmoothMedian
from graph.small import SmallGraphs

SHAPES = [Triangles(), Stars(2), Stars(3), Stars(4)]


def _hold(n: int, shape) -> None:
    small = SmallGraphs(n)
    m = len(small.pairs)
    all_of = np.arange(1 << m)
    counts = np.array([shape.count(small.of(g)) for g in small])
    stated = [shape.local(small.of(g)) for g in small]
    largest = np.max([np.abs(counts - counts[all_of ^ (1 << b)]) for b in range(m)], axis=0)
    for _ in range(m + 2):
        assert [next(one) for one in stated] == largest.tolist()
        largest = np.max([largest, *(largest[all_of ^ (1 << b)] for b in range(m))], axis=0)
    assert counts.max() == shape.most(n)
    assert largest.max() == shape.ceiling(n)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.name)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_local_sensitivities_are_exact(n, shape) -> None:
    """For every graph and every distance: neither less, which leaks, nor more, which wastes."""
    _hold(n, shape)


@pytest.mark.heavy("test_local_sensitivities_are_exact")
def test_local_sensitivities_are_exact_of_six() -> None:
    """The same for triangles of all 32,768 graphs of six nodes."""
    _hold(6, Triangles())


def test_counts_are_those_of_another_library() -> None:
    """Triangles and stars of a real graph."""
    karate = networkx.karate_club_graph()
    ours = Graph(karate, nodes=34)
    assert Triangles().count(ours) == sum(networkx.triangles(karate).values()) // 3 == 45
    assert Stars(2).count(ours) == sum(d * (d - 1) // 2 for _, d in karate.degree())


@pytest.mark.parametrize("shape", SHAPES[:3], ids=lambda s: s.name)
def test_smooth_sensitivities_fall_by_no_more_than_they_may(shape) -> None:
    """Of each two neighbours, in exact fractions; and they bound what one edge moves."""
    small = SmallGraphs(4)
    noise = SmoothMedian.for_loss(1, F(1, 100), lower=0, upper=shape.ceiling(4))
    smooth = {g: smooth_sensitivity(noise, shape, small.of(g)) for g in small}
    counts = {g: shape.count(small.of(g)) for g in small}
    falls = set()
    for g, h in small.edge_neighbours():
        assert smooth[g] * noise.falloff <= smooth[h]
        assert smooth[h] * noise.falloff <= smooth[g]
        assert abs(counts[g] - counts[h]) <= min(smooth[g], smooth[h])
        falls.add(smooth[g] == smooth[h])
    assert falls == {True, False}


@pytest.mark.parametrize("shape", SHAPES[:3], ids=lambda s: s.name)
def test_the_ladder_keeps_its_epsilon(shape) -> None:
    """The probabilities of each two neighbours, for all graphs of four nodes: the bound is used."""
    small, epsilon = SmallGraphs(4), 1.5
    ladder = Ladder.for_loss(F(3, 2), most=shape.most(4))
    laws = {
        g: np.array(ladder.law(shape.count(small.of(g)), shape.local(small.of(g)))) for g in small
    }
    largest = max(np.abs(np.log(laws[g] / laws[h])).max() for g, h in small.edge_neighbours())
    assert epsilon / 2 < largest <= epsilon * (1 + 1e-12)


def test_rungs_of_neighbours_differ_by_one_at_most() -> None:
    """What the proof needs, in whole numbers, for triangles of all graphs of five nodes."""
    shape, small = Triangles(), SmallGraphs(5)
    ladder = Ladder.for_loss(1, most=shape.most(5))
    rungs = {}
    for g in small:
        found = np.full(ladder.most + 1, -1)
        for t, parts in ladder._rungs(shape.count(small.of(g)), shape.local(small.of(g))):
            for part in parts:
                found[part.start : part.stop] = t
        rungs[g] = found
        assert (found >= 0).all()
    assert max(int(np.abs(rungs[g] - rungs[h]).max()) for g, h in small.edge_neighbours()) == 1


def test_the_ladder_draws_its_law() -> None:
    """Frequencies of 2,000 draws; false alarm below 1e-6, as chi-squared with 10 degrees."""
    shape, house = Triangles(), Graph([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4)], nodes=5)
    ladder = Ladder.for_loss(1, most=shape.most(5))
    count, widths = shape.count(house), list(islice(shape.local(house), 8))
    law = np.array(ladder.law(count, widths)) * 2000
    drawn = np.bincount([ladder.release(count, widths) for _ in range(2000)], minlength=11)
    assert ((drawn - law) ** 2 / law).sum() < 50


def test_widths_are_those_of_the_law() -> None:
    """The half-width holds what it says, and the next rung inside does not."""
    karate = Graph(networkx.karate_club_graph(), nodes=34)
    found = graph.count_triangles(karate, epsilon=1)
    count, law = 45, np.array(found.noise.law(45, Triangles().local(karate)))
    width = found.half_width(0.9, at=karate)
    inside = law[max(0, count - width) : count + width + 1].sum()
    assert 0.9 <= inside < 0.93
    worst = graph.count_triangles(karate, epsilon=1, method="worst")
    assert worst.noise.scale == 32
    low, high = worst.interval(0.9)
    assert low <= max(0, worst.value) <= high
    smooth = graph.count_triangles(karate, epsilon=1, delta=1e-6, method="smooth")
    assert smooth.half_width(0.5, at=karate) < smooth.half_width(0.9, at=karate)
    assert 0 <= smooth.value <= 5984
