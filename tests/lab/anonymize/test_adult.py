"""The census extract Adult, where it lies beside the tree: the figures, and the optimum's proof."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dither.lab.anonymize import generalize, hierarchy, measure, mondrian

DATA = Path(__file__).parents[4] / "shared" / "data"
QUASI = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass"]
QUASI += ["occupation"]

pytestmark = pytest.mark.skipif(
    not (DATA / "adult_uci.csv").is_file(), reason="Adult is not beside the tree"
)


@pytest.fixture(scope="module")
def adult():
    """The 30,162 complete rows and their hierarchies."""
    raw = pl.read_csv(DATA / "adult_uci.csv")
    raw = raw.rename({name: name.strip() for name in raw.columns})
    raw = raw.with_columns(pl.col(pl.String).str.strip_chars())
    frame = raw.filter(~pl.any_horizontal(pl.col(pl.String) == "?")).drop_nulls()
    trees = {
        name: hierarchy(DATA / "adult_hierarchies" / f"adult_hierarchy_{name}.csv")
        for name in QUASI
    }
    return frame.select(*QUASI, "Salary"), trees


def test_the_optimum_of_adult(adult) -> None:
    """Loss .2618, and no node whose least possible loss is lower meets k with 5 % left out.

    Nodes are tried by other means: labels joined row by row, classes counted by Polars.
    """
    frame, trees = adult
    assert frame.height == 30_162
    found = generalize(frame, QUASI, trees, 5, 0.05, sensitive="Salary")
    assert found.loss == pytest.approx(0.26176, abs=1e-5)
    assert found.measures.k >= 5
    assert measure(found.frame, QUASI).k == found.measures.k
    assert found.suppressed <= 0.05 * 30_162

    labels, costs = zip(*(_generalised(frame[name], trees[name]) for name in QUASI), strict=True)
    means = [[cost.mean() / 8 for cost in column] for column in costs]
    heights = [len(column) for column in labels]
    cheaper = {
        node
        for node in itertools.product(*(range(height) for height in heights))
        if sum(column[level] for column, level in zip(means, node, strict=True)) < found.loss - 1e-9
    }
    assert len(cheaper) == 942
    # What fails condemns all that is finer, so only what stands above all else must be tried, and
    # then whatever lies below the nodes that do fit.
    waiting = [n for n in cheaper if not any(up in cheaper for up in _next(n, 1))]
    tried = set()
    while waiting:
        node = waiting.pop()
        if node in tried:
            continue
        tried.add(node)
        table = pl.DataFrame([labels[i][level].alias(str(i)) for i, level in enumerate(node)])
        size = table.select(pl.len().over(table.columns)).to_series().to_numpy()
        left_out = size < 5
        if left_out.sum() > 0.05 * 30_162:
            continue
        cost = sum(costs[i][level] for i, level in enumerate(node)) / 8
        assert np.where(left_out, 1.0, cost).mean() >= found.loss - 1e-9
        waiting += [down for down in _next(node, -1) if down in cheaper]
    assert len(tried) > 50


def _generalised(column, tree):
    """For each level, every row's label as a number, and what it costs."""
    table = tree.frame
    joined = (
        column.cast(pl.String).to_frame("0").join(table, on="0", how="left", maintain_order="left")
    )
    labels, costs = [], []
    for level in table.columns:
        leaves = dict(table[level].value_counts().iter_rows())
        labels.append(joined[level].rank("dense"))
        of = np.array([leaves[label] for label in joined[level]])
        costs.append((of - 1) / max(table.height - 1, 1))
    return labels, costs


def _next(node, step):
    """The nodes one level up or down."""
    return [(*node[:i], level + step, *node[i + 1 :]) for i, level in enumerate(node)]


def test_boxes_of_adult(adult) -> None:
    """Mondrian keeps far more detail, leaves nobody out, and has k."""
    frame, _ = adult
    found = mondrian(frame, QUASI, 5)
    assert found.loss < 0.06
    assert found.suppressed == 0
    assert measure(found.frame, QUASI).k >= 5
    assert np.array_equal(np.sort(measure(found.frame, QUASI).sizes), np.sort(found.measures.sizes))
