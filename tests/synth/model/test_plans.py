"""How AIM divides its budget: by how many of its choices mean something."""

from __future__ import annotations

from fractions import Fraction as F
from itertools import combinations

import numpy as np
import pytest

from dither.accounting import rho_of_epsilon
from dither.synth._spending import MeasuredTable, ZCDPBudget
from dither.synth.model._plans import MethodRun, measured_by

RHO = rho_of_epsilon(F(1), F(1, 10**9))


def chained(columns, values, rows):
    """Columns of which each follows the one before in half of the rows; as exact tables."""
    draw = np.random.default_rng(columns)
    made = [draw.integers(0, values, rows)]
    while len(made) < columns:
        made.append(np.where(draw.random(rows) < 0.5, made[-1], draw.integers(0, values, rows)))

    def counts(cliques):
        found = {}
        for clique in cliques:
            found[clique] = np.zeros([values] * len(clique), dtype=np.int64)
            np.add.at(found[clique], tuple(made[v] for v in clique), 1)
        return found

    return ZCDPBudget(counts, RHO, 1, 1)


def run_of(method, columns, values, rows):
    workload = dict.fromkeys(combinations(range(columns), 2), 1)
    spending = chained(columns, values, rows)
    return measured_by(method, [values] * columns, spending, workload=workload, max_cells=10**5)


def spent(measured):
    return sum(1 / (2 * float(m.sigma2)) for m in measured)


@pytest.mark.parametrize("method", ["auto", "aim"])
def test_of_few_rows_columns_have_more_and_tables_are_fewer(method):
    """A choice among noise is worth nothing: what it would cost goes into columns and tables."""
    found = run_of(method, 6, 4, 1500).measured
    first = next(i for i, m in enumerate(found) if len(m.clique) > 1)
    # Each column twice, with the same noise for all.
    assert [m.clique for m in found[:12]] == [(v,) for v in range(6)] * 2
    assert first >= 12
    assert 0.28 < spent(found[:12]) / float(RHO) <= 0.5 + 1e-9


def test_of_many_rows_columns_are_measured_once():
    found = run_of("aim", 6, 4, 30_000).measured
    assert [m.clique for m in found[:6]] == [(v,) for v in range(6)]
    assert spent(found[:6]) == pytest.approx(float(RHO) * 9 / 40)
    assert len(found[6].clique) == 2


def test_columns_of_many_values_have_more_of_the_budget():
    """Where their noise is large beside the rows, though there are choices enough."""
    found = run_of("aim", 10, 32, 6000).measured
    assert [m.clique for m in found[:20]] == [(v,) for v in range(10)] * 2
    assert spent(found[:20]) == pytest.approx(float(RHO) / 2)


@pytest.mark.parametrize(("rows", "method"), [(3000, "aim"), (300, "independent")])
def test_pairs_are_measured_where_choices_mean_something(rows, method):
    """However many cells a pair of columns has: rare values are counted together."""
    found = run_of("auto", 10, 32, rows)
    assert found.method == method
    if method == "independent":
        assert all(len(m.clique) == 1 for m in found.measured)
        assert spent(found.measured) == pytest.approx(float(RHO))


def test_a_column_that_is_measured_twice_tells_what_is_rare_once():
    """Both together say that a count is clear of 0, where neither does alone."""
    run = MethodRun((4,), chained(1, 4, 10), (), {}, None, lambda _: None)
    counts = np.array([9, 9, 1, 0])
    run.found.measured = [MeasuredTable((0,), counts, F(16)) for _ in range(2)]
    run._merge()
    assert run.found.merged[0].tolist() == [0, 1, 2, 2]
