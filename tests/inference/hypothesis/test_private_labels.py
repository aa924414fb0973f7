"""Designs of several groups: whoever moves changes two of them, and no test charges less."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._groups import GroupSizes
from dither.inference.engine._inputs import Target, bounds_of, target
from dither.inference.engine._statistic import StatisticWithRowsRelease
from dither.inference.estimates._difference import DifferenceRelease
from dither.inference.estimates._ecdf import TreeRelease
from dither.inference.estimates._two_proportions import CellsRelease
from dither.inference.hypothesis._clamped_sums import ContrastRelease, points_of
from dither.inference.hypothesis._contingency import TableRelease
from dither.inference.hypothesis._kolmogorov import two_sample_sup
from dither.inference.hypothesis._ranks import GroupRanks
from inference.neighbouring import BOTH

ENDS = bounds_of("bounds", (-1, 1))
ROWS = 4
Table = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]
Units = Callable[[Table], np.ndarray[Any, Any]]
"""Of a table: what is released, in the units in which the l1 distance is a loss."""


def _laplace(statistic: Callable[[Table], Any], noise: Any) -> Units:
    """A vector with Laplace noise."""
    return lambda t: np.array([float(v) for v in np.ravel(statistic(t))]) / float(noise.scale)


def _with_sizes(statistic: Callable[[Table], Any], moved: Any, k: int, asked: Target) -> Units:
    """A statistic that a row moves so much, with the sizes beside it, and n where it is bought."""
    rest = GroupSizes.rest(asked)
    table = TableRelease((k,), Target(asked.epsilon - rest.epsilon, rest.delta, asked.neighbours))
    sizes = _laplace(lambda t: table.statistic([t[1]]), table.noise)
    count = 0.0
    if not asked.replace:
        count = float(StatisticWithRowsRelease(Fraction(moved), rest).count)
    unit = float(rest.epsilon) / (float(moved) + count)

    def units(t: Table) -> np.ndarray[Any, Any]:
        return np.append(sizes(t), [unit * float(statistic(t)), unit * count * len(t[0])])

    return units


def _units(name: str, asked: Target) -> tuple[Units, int]:
    """What each test releases, and its number of groups."""
    k = 3 if name in ("kruskal", "f_oneway") else 2
    design: Any
    if name in ("mannwhitneyu", "kruskal"):
        ranks = GroupRanks(k, ROWS, GroupSizes.rest(asked))
        return _with_sizes(lambda t: ranks.statistic(*t), ranks.moved, k, asked), k
    if name == "ks_2samp":
        return _with_sizes(lambda t: two_sample_sup(*t), 1, k, asked), k
    if name == "ks_2samp, tree":
        design = TreeRelease(ENDS, 4, 2, asked)

        def counts(t: Table) -> Any:
            return np.concatenate(design.design.tree.counts(design.statistic(*t)), axis=1)

        return _laplace(counts, design.design.noise), k
    if name == "independence_test":
        design = TableRelease((3, 2), asked)

        def cells(t: Table) -> Any:
            return design.statistic(
                [np.where(np.isnan(t[0]), -1, np.sign(t[0]) + 1).astype(int), t[1]]
            )

        return _laplace(cells, design.noise), k
    if name == "difference, normal":
        design = DifferenceRelease(ENDS, asked, asked.replace, gaussian=False)
        return _laplace(lambda t: design.statistic(_samples(t)), design.noise), k
    if name in ("difference", "ttest_ind", "f_oneway"):
        design = GroupSumsRelease(ENDS, asked, k, moves=asked.replace)
        return _laplace(lambda t: design.statistic(_samples(t, k)), design.noise), k
    if name == "two_proportions":
        design = CellsRelease(asked, True)

        def shares(t: Table) -> Any:
            return design.statistic(tuple((v > 0).astype(float) for v in _samples(t)))

        return _laplace(shares, design.noise.law), k
    design = ContrastRelease(asked)
    return _laplace(lambda t: design.statistic((points_of(t[0], ENDS), t[1])), design.noise), k


def _samples(t: Table, k: int = 2) -> tuple[Any, ...]:
    return tuple(t[0][t[1] == g] for g in range(k))


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(
    "name",
    [
        "mannwhitneyu",
        "kruskal",
        "ks_2samp",
        "ks_2samp, tree",
        "ttest_ind",
        "ztest",
        "f_oneway",
        "independence_test",
        "difference",
        "difference, normal",
        "two_proportions",
    ],
)
def test_no_small_sample_loses_more_than_its_charge(name: str, neighbours: str) -> None:
    """Every table of four rows, every neighbour, values and groups at once; some use most of it."""
    units, k = _units(name, target(1, 0, neighbours))
    kinds = list(itertools.product([-5.0, 0.0, 0.5, math.nan], range(k)))
    if neighbours == "add-remove":
        kinds = [kind for kind in kinds if not math.isnan(kind[0])]

    def released(*rows: tuple[float, int]) -> np.ndarray[Any, Any]:
        values, places = zip(*rows, strict=True)
        return units((np.array(values), np.array(places)))

    worst = 0.0
    for others in itertools.combinations_with_replacement(kinds, ROWS - 1):
        tables = np.stack([released(*others, row) for row in kinds])
        beside = tables if neighbours == "replace" else released(*others)[None]
        worst = max(worst, *(float(np.abs(tables - b).sum(axis=1).max()) for b in beside))
    assert 0.4 < worst <= 1.0 + 1e-9
