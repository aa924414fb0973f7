"""Forests: with the same answers, neighbours differ by no more than is charged."""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither import noise
from dither.accounting import rho_of_epsilon
from dither.lab.audit import Outcome, audit
from dither.learn._columns import FeatureColumn
from dither.learn._noise import PrivacyParameters, TableSensitivity
from dither.learn.tabular.trees import _trees
from dither.learn.tabular.trees._plans import ForestPlan, ForestPlanner
from dither.learn.tabular.trees._trees import UNIT, Trees
from dither.mechanisms import DiscreteGaussian
from dither.privacy import Neighbours, repeat_and_select
from learn.watched import gaps, watched

BOTH = (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
NUMBER = FeatureColumn("x", bounds=(-1.0, 1.0))
LISTED = FeatureColumn("c", categories=("a", "b", "c"))
DELTA = Fraction(1, 10**6)
DEPTH = 3


def _same_chance(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(noise, "below", lambda n, size: rng.integers(0, n, size))
    monkeypatch.setattr(noise, "permutation", lambda n: rng.permutation(n))


def _grown(run: Any, rows: list[tuple[int, int, int]]) -> Any:
    """A watched run on rows (cell, cell, label)."""
    places = [np.array([row[i] for row in rows], np.int64) for i in (0, 0, 1)]
    labels = np.array([row[2] for row in rows], np.int64)
    if run.classes:
        targets = (labels[:, None] == np.arange(run.classes)).astype(np.int64)
    else:
        targets = np.column_stack([np.full(len(labels), UNIT), (2 * labels - 1) * UNIT])
    run.run(places, targets.reshape(len(rows), run.outputs))
    return run


WAYS: dict[str, dict[str, Any]] = {
    "many rows": {"rows": 1e7, "delta": DELTA},
    "many rows, purely": {"rows": 1e7, "delta": Fraction(0)},
    "many, but not very many": {"rows": 250.0, "delta": DELTA},
    "few rows": {"rows": 1.0, "delta": DELTA},
    "drawn": {"rows": 1.0, "delta": DELTA, "drawn": True},
}
OTHERS = [(3, 1, 0)] * 4 + [(200, 2, 1)] * 4
PAIRS = list(
    itertools.product(
        range(2), [(0, 0, 0), (256, 3, 1), (128, 1, 1)], [(0, 0, 1), (100, 2, 0), (255, 1, 1)]
    )
)


def _pairs(
    monkeypatch: pytest.MonkeyPatch, neighbours: Neighbours, classes: int, way: str, unit: int = 1
) -> Any:
    """Of neighbouring tables, what differs and what is charged; and the shares, level by level."""
    asked = PrivacyParameters(Fraction(1), WAYS[way]["delta"], neighbours)
    for seed, one, two in PAIRS:
        tables = [
            [*OTHERS, *[one] * unit],
            [*OTHERS, *[two] * unit] if neighbours is BOTH[1] else OTHERS,
        ]
        runs = []
        for table in tables:
            _same_chance(monkeypatch, seed)
            drawn = "drawn" in WAYS[way]
            # One column more than levels that are cut, so that each node can be.
            columns = (NUMBER, NUMBER, LISTED)
            run = Trees(columns, classes, 2, DEPTH, 2, asked, drawn, unit)
            told = WAYS[way]["rows"] * run.planner.units / max(classes, 1)
            runs.append(_grown(watched(run, seed, told), table))
        found = gaps(*runs)
        levels = {"few rows": 1, "drawn": 0}.get(way, 2 * DEPTH)
        yield found, runs[0], found.pairs(runs[0], levels)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("classes", [2, 3, 0])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unit", [1, 2])
def test_forests_move_as_proved(
    monkeypatch: pytest.MonkeyPatch, neighbours: Neighbours, classes: int, way: str, unit: int
) -> None:
    """Tables, and utilities level by level; and all that is charged can be moved, or nearly."""
    most = {"l1": 0.0, "square": 0.0, "level": 0.0}
    for found, run, pairs in _pairs(monkeypatch, neighbours, classes, way, unit):
        for there, claim in pairs:
            assert there <= claim
        if way.startswith("many"):
            assert len(found.shares) == 2 * (2**DEPTH - 1)
            levels = [slice(2**i - 1, 2 ** (i + 1) - 1) for i in range(DEPTH)]
            for tree in (found.shares[: 2**DEPTH - 1], found.shares[2**DEPTH - 1 :]):
                assert all(sum(tree[level]) <= 1 for level in levels)
        claim = run.moved(found.tables)
        most["l1"] = max(most["l1"], found.l1 / claim.l1)
        most["square"] = max(most["square"], found.l2_squared / claim.l2_squared)
        most["level"] = max([most["level"], *found.shares])
    # A row of three classes, or one that leaves a cell, has no more to give where rows are alike.
    assert most["l1"] >= 0.75
    assert most["square"] >= 0.75
    assert way == "drawn" or most["level"] >= 0.45


@pytest.mark.parametrize("mistake", ["scores", "replaced", "unit"])
def test_planted_mistakes_are_seen(monkeypatch: pytest.MonkeyPatch, mistake: str) -> None:
    """Scores longer than was said; rows that are replaced, or a unit's, charged as one is added."""
    neighbours = BOTH[1] if mistake == "replaced" else BOTH[0]
    if mistake == "scores":
        opened = Trees._opened

        def doubled(self: Any, targets: Any) -> Any:
            plan, scores = opened(self, targets)
            return plan, replace(scores, rows=2 * scores.rows)

        monkeypatch.setattr(Trees, "_opened", doubled)
    else:
        monkeypatch.setattr(
            _trees, "ForestPlanner", lambda table, units, *more: ForestPlanner(table, 1, *more)
        )
    way = "many, but not very many"
    found = _pairs(monkeypatch, neighbours, 2, way, 2 if mistake == "unit" else 1)
    assert any(there > claim for _, _, pairs in found for there, claim in pairs)


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("epsilon", ["0.001", "1", "20"])
@pytest.mark.parametrize("listed", [0, 3])
@pytest.mark.parametrize("classes", [2, 0])
def test_all_that_is_spent_adds_up(
    neighbours: Neighbours, epsilon: str, listed: int, classes: int
) -> None:
    """To epsilon, or to the rho that epsilon and delta hold; nothing more, and hardly less."""
    columns = (NUMBER,) * 2 + (LISTED,) * listed
    asked = PrivacyParameters(Fraction(epsilon), DELTA, neighbours)
    run = Trees(columns, classes, 7, 4, 2, asked, of_unit=3)
    planner, table = run.planner, run.moved(1)
    first = table.l1 / planner.rows.scale
    rho = rho_of_epsilon(asked.epsilon, DELTA)
    for trees, depth in itertools.product((1, 7), (1, 4)):
        leaves, levels = run.moved(trees), trees * depth

        def spent(plan: ForestPlan, leaves: Any = leaves, levels: int = levels) -> Fraction:
            tables = [(plan.leaves, leaves)] + ([(plan.lists, run.moved(listed))] if listed else [])
            if not classes and levels > leaves.coordinates // run.moved(1).coordinates:
                # Of each tree one for every level but the first.
                nodes = levels - leaves.coordinates // run.moved(1).coordinates
                tables.append((plan.centres, run.moved(nodes)))
            gauss = isinstance(plan.leaves, DiscreteGaussian)
            found = first**2 / 2 if gauss else first
            found += levels * (plan.level**2 / 8 if gauss else plan.level)
            for law, moved in tables:
                if isinstance(law, DiscreteGaussian):
                    found += Fraction(moved.l2_squared) / (2 * law.sigma2)
                else:
                    found += moved.l1 / law.scale
            return found

        assert spent(planner.purely(trees, depth)) == asked.epsilon
        assert Fraction(9999, 10_000) * rho <= spent(planner.concentrated(trees, depth)) <= rho
    charge = planner.loss.charge
    assert (charge.epsilon, charge.delta) == (asked.epsilon, DELTA)
    assert charge.rho is not None
    assert charge.rho >= rho
    assert planner.loss.neighbours is neighbours


@pytest.mark.parametrize("classes", [2, 0])
def test_rho_covers_every_pure_way(classes: int) -> None:
    """What is charged by zCDP holds of the ways that are pure, with few splits and with many."""
    asked = PrivacyParameters(Fraction(1), DELTA, BOTH[0])
    run = Trees((NUMBER, LISTED), classes, 7, 4, 2, asked)
    table, charged = run.moved(1), run.loss.charge.rho
    assert charged is not None
    for trees, depth in itertools.product((1, 7), (1, 4)):
        plan = run.planner.purely(trees, depth)
        assert not isinstance(plan.leaves, DiscreteGaussian)
        assert not isinstance(plan.lists, DiscreteGaussian)
        parts = [table.l1 / run.planner.rows.scale, trees * table.l1 / plan.leaves.scale]
        parts.append(table.l1 / plan.lists.scale)
        if not classes and depth > 1:
            parts.append(trees * (depth - 1) * table.l1 / plan.centres.scale)
        spent = sum(Fraction(part) ** 2 / 2 for part in parts)
        assert spent + trees * depth * plan.level**2 / 8 <= charged


def test_more_rows_have_more_trees() -> None:
    """From one question on, to as many trees and levels as were asked for."""
    for delta in (Fraction(0), DELTA):
        run = Trees((NUMBER,) * 5, 2, 16, 5, 2, PrivacyParameters(Fraction(1), delta, BOTH[0]))
        plans = [run.planner.plan(rows) for rows in (-1e9, 0.0, 100.0, 400.0, 3_000.0, 1e6, 1e12)]
        sizes = [plan.trees * plan.depth for plan in plans]
        assert sizes == sorted(sizes)
        assert sizes[:3] == [1, 1, 1]
        assert sizes[-1] == 80
        assert isinstance(plans[-1].leaves, DiscreteGaussian) == bool(delta)


def test_a_choice_by_exact_counts_is_seen() -> None:
    """Were the best split taken, and not one by chance, it would tell of a row."""
    run = Trees((NUMBER,), 2, 1, 1, 1, PrivacyParameters(Fraction(1), Fraction(0), BOTH[0]))

    def best(rows: int, size: int) -> Any:
        return np.full(size, float(np.argmax([1, 2 * rows])))

    def chosen(rows: int, size: int) -> Any:
        utilities = np.array([256, 512 * rows])
        return np.array([run.choose(Fraction(1, 2), 512, utilities) for _ in range(size)])

    claim = {"epsilon": 1, "delta": Fraction(0), "samples": 5_000}
    assert audit(best, 0, 1, **claim).verdict is Outcome.VIOLATED
    assert audit(chosen, 0, 1, **claim).verdict is not Outcome.VIOLATED


def test_the_loss_of_a_forest_composes_by_its_moments():
    """Of either way: ten forests, and the best of several, cost less than (epsilon, delta) says."""
    asked = PrivacyParameters(Fraction(1), Fraction(1, 10**6), Neighbours.ADD_REMOVE)
    loss = ForestPlanner(TableSensitivity(1, 1, 1), 1, 0, 10, 5, asked).loss
    assert (loss.charge.epsilon, loss.charge.delta) == (1, Fraction(1, 10**6))
    for order in (1.5, 8, 40, 200):
        # Chords between the orders that are listed are a little above.
        most = min(float(loss.charge.rho) * order, max(1, order / 40))
        assert loss.renyi(order).upper <= 1.02 * most
    assert (10 * loss).epsilon(1e-5).upper < 9
    assert repeat_and_select(loss, mean=2).epsilon(1e-6).upper < 3
    assert loss.group(2).delta(2).upper <= 4e-6
