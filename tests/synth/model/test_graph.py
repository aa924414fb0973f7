"""The graphical model: its marginals beside sums over whole tables, its fit beside any other."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import nnls

from dither.synth.model._graph import GraphModel, NoisyMarginal
from dither.synth.model._junction import JunctionTree, cells_of

SIZES = (2, 3, 4, 2, 3)
GRAPHS = {
    "chain": [(0, 1), (1, 2), (2, 3), (3, 4)],
    "cycle": [(0, 1), (1, 2), (2, 3), (0, 3), (4,)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "apart": [(0, 1), (2, 3)],
    "nested": [(0, 1, 2), (1, 2), (2, 4)],
    "whole": [(0, 1, 2, 3, 4)],
}


def joint(model: GraphModel) -> np.ndarray:
    """The whole table of a model, from its functions."""
    logs = np.zeros(SIZES)
    for clique, values in model._potentials.items():
        logs = logs + values.reshape([SIZES[v] if v in clique else 1 for v in range(5)])
    table = np.exp(logs - logs.max())
    return model.total * table / table.sum()


def summed(table: np.ndarray, clique: tuple[int, ...]) -> np.ndarray:
    """A marginal of a whole table."""
    return table.sum(axis=tuple(v for v in range(table.ndim) if v not in clique))


def measured(
    table: np.ndarray, cliques, rng: np.random.Generator, deviations
) -> list[NoisyMarginal]:
    """Marginals of a table with noise."""
    return [
        NoisyMarginal(c, summed(table, c) + s * rng.normal(size=summed(table, c).shape), s)
        for c, s in zip(cliques, itertools.cycle(deviations))
    ]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_tree_holds_what_it_was_made_of(name: str) -> None:
    """Every clique is in one of the tree's, attributes are connected, and its cells are known."""
    tree = JunctionTree.of(SIZES, GRAPHS[name])
    assert all(tree.holding(c) is not None for c in GRAPHS[name])
    assert {v for c in tree.cliques for v in c} == set(range(5))
    alone = [(v,) for v in range(5)]
    assert tree.cells == cells_of(SIZES, [*GRAPHS[name], *alone])
    for v in range(5):
        holding = [i for i, c in enumerate(tree.cliques) if v in c]
        tops = [i for i in holding if v not in tree.separator(i)]
        assert len(tops) == 1
    seen: set[int] = set()
    for i in tree.order:
        assert tree.parents[i] in seen or tree.parents[i] == -1
        seen.add(i)


@pytest.mark.parametrize("name", GRAPHS)
def test_marginals_are_those_of_the_whole_table(name: str) -> None:
    """Of every set of attributes, whether one clique holds it or not."""
    rng = np.random.default_rng(3)
    table = rng.gamma(0.3, 50, SIZES)
    model = GraphModel(SIZES, GRAPHS[name], table.sum())
    model.fit(measured(table, GRAPHS[name], rng, [0.5, 2.0]), most=60)
    whole = joint(model)
    for k in range(1, 6):
        for clique in itertools.combinations(range(5), k):
            assert np.allclose(
                model.marginal(clique), summed(whole, clique), atol=1e-9 * whole.sum()
            )


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("deviations", [[3.0], [1.0, 30.0]])
def test_no_table_fits_better_than_the_gap_says(name: str, deviations: list[float]) -> None:
    """Beside least squares over all tables with weights of at least 0, found by itself."""
    rng = np.random.default_rng(5)
    table = rng.gamma(0.2, 30, SIZES)
    table *= 1000 / table.sum()
    found = measured(table, GRAPHS[name], rng, deviations)
    model = GraphModel(SIZES, GRAPHS[name], 1000).fit(found, most=5000)
    rows, sides = [], []
    for part in found:
        cells = np.indices(SIZES).reshape(5, -1)[list(part.clique)]
        flat = np.ravel_multi_index(cells, part.values.shape)
        rows.append((flat == np.arange(part.values.size)[:, None]) / part.deviation)
        sides.append(part.values.ravel() / part.deviation)
    rows.append(np.full((1, table.size), 1e4))
    sides.append(np.array([1e7]))
    best = nnls(np.concatenate(rows), np.concatenate(sides), maxiter=20000)[1] ** 2 / 2
    cells = sum(part.values.size for part in found)
    assert model.gap <= 0.01 * cells / 2
    assert best - 1e-3 <= model.loss <= best + model.gap + 1e-3


def test_repeated_measurements_count_by_their_precision() -> None:
    """Two of one cell: the one with less noise says more."""
    one = NoisyMarginal((0,), np.array([6.0, 4.0]), 1.0)
    two = NoisyMarginal((0,), np.array([2.0, 8.0]), 3.0)
    model = GraphModel([2], [(0,)], 10).fit([one, two], tolerance=1e-9)
    assert model.marginal((0,)) == pytest.approx([5.6, 4.4], abs=1e-3)


def test_a_widened_model_is_the_same() -> None:
    """Until more is measured."""
    rng = np.random.default_rng(7)
    table = rng.gamma(1, 5, SIZES)
    model = GraphModel(SIZES, GRAPHS["chain"], table.sum())
    model.fit(measured(table, GRAPHS["chain"], rng, [1.0]))
    wider = model.widened((0, 4))
    assert (0, 4) in wider.cliques
    for pair in itertools.combinations(range(5), 2):
        assert np.allclose(wider.marginal(pair), model.marginal(pair))


def test_many_attributes() -> None:
    """A chain of sixty: marginals of both ends go through all of them."""
    pairs = [(v, v + 1) for v in range(59)]
    model = GraphModel([2] * 60, pairs, 1.0)
    moves = np.log([[0.9, 0.1], [0.1, 0.9]])
    model._potentials = {pair: moves.copy() for pair in pairs}
    model.beliefs = model._inferred(model._potentials)
    # Two states: the chance to be in the same one after m moves.
    same = (1 + 0.8**59) / 2
    assert model.marginal((0, 59)) == pytest.approx(
        np.array([[same, 1 - same], [1 - same, same]]) / 2, abs=1e-12
    )
