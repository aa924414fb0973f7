"""Plans of marginals: their error and their cost, against linear algebra and known figures."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction as F

import numpy as np
import pytest

from dither.accounting import delta_of_rho
from dither.errors import ArgumentError
from dither.privacy import Neighbours
from dither.synth.marginals._planner import plan, subsets

ADULT = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)
"""How many values the columns of the binned Adult survey have."""

DELTA = F(1, 10**9)


@pytest.mark.parametrize(("columns", "reached"), [(1, 20.0), (2, 47.4), (3, 88.5)])
def test_the_error_on_adult(columns, reached):
    """At most what zCDP alone would give: the close comparison with continuous noise helps."""
    tables = list(itertools.combinations(range(14), columns))
    found = plan(ADULT, tables, F(1), DELTA)
    error = math.sqrt(np.mean([found.variance(t) for t in tables]))
    assert 0.94 * reached < error < 0.96 * reached


def brute(sizes, tables, noise):
    """Variances of cells by matrices: each table is a linear function of independent noise."""
    found = {}
    for table in tables:
        total = 0.0
        for a in subsets(table):
            part = np.ones((1, 1))
            for i in table:
                n = sizes[i]
                part = np.kron(part, np.eye(n) - 1 / n if i in a else np.full((n, 1), 1 / n))
            total = total + noise[a].variance * np.diag(part @ part.T)
        found[table] = total
    return found


def test_variances_are_those_of_the_cells():
    """All cells of a table have the same, by matrices."""
    sizes, tables = (2, 3, 4), [(0, 1), (1, 2), (0, 1, 2)]
    made = plan(sizes, tables, F(1), F(1, 10**6))
    for table, cells in brute(sizes, tables, made.noise).items():
        assert cells == pytest.approx(np.full(len(cells), made.variance(table)))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_the_charge_is_at_least_what_residuals_cost(replace, rows):
    """rho from its definition; epsilon and delta as asked for, which the loss itself bears out."""
    sizes, tables = (2, 3, 4), [(0, 1), (1, 2)]
    made = plan(
        sizes,
        tables,
        F(1),
        F(1, 10**6),
        rows=rows,
        replace_one=replace,
        neighbours=Neighbours.REPLACE if replace else Neighbours.ADD_REMOVE,
    )
    least = F(0)
    for a, one in made.noise.items():
        kept = sorted(sizes[i] for i in a)
        moved = math.prod((F(n - 1, n) for n in kept[bool(replace and a) :]), start=F(1))
        least += rows**2 * moved * (2 if replace and a else 1) / (2 * one.sigma2)
    assert least < made.rho < least * F(1001, 1000)
    assert made.loss.charge.epsilon == 1
    assert made.loss.delta(1.0).upper <= 1e-6
    assert made.loss.delta(1.0).upper > 0.999e-6


def test_no_other_noise_of_the_same_cost_does_better():
    """The mean and the largest variance, against other divisions of the same cost."""
    sizes, tables = (3, 4, 5), [(0,), (0, 1), (1, 2)]
    rng = np.random.default_rng(5)
    for largest in (False, True):
        made = plan(sizes, tables, F(1, 10), F(1, 10**6), largest=largest)

        def error(sigma2, largest=largest):
            cells = [
                sum(
                    sigma2[a]
                    * math.prod((1 - 1 / sizes[i]) if i in a else sizes[i] ** -2.0 for i in t)
                    for a in subsets(t)
                )
                for t in tables
            ]
            return max(cells) if largest else sum(cells)

        own = {a: float(n.sigma2 - n.soft) for a, n in made.noise.items()}
        price = {a: math.prod(1 - 1 / sizes[i] for i in a) for a in own}
        whole = sum(price[a] / own[a] for a in own)
        for _ in range(200):
            other = {a: v * math.exp(rng.normal(0, 0.2)) for a, v in own.items()}
            scale = sum(price[a] / other[a] for a in own) / whole
            assert error({a: v * scale for a, v in other.items()}) > error(own) * (1 - 2e-4)


def test_equal_error_is_equal():
    """The largest variance is least where tables that bind have the same; the gap is proved."""
    tables = [t for k in (1, 2) for t in itertools.combinations(range(14), k)]
    made = plan(ADULT, tables, F(1), DELTA, largest=True)
    worst = max(made.variance(t) for t in tables)
    mean = plan(ADULT, tables, F(1), DELTA)
    assert made.gap < 2e-4
    assert worst < max(mean.variance(t) for t in tables)
    assert sum(made.variance(t) for t in tables) > sum(mean.variance(t) for t in tables)


def test_weights_move_error_between_tables():
    """A table that counts more is more precise, the other less."""
    tables = [(0,), (1,)]
    even = plan((4, 4), tables, F(1), DELTA)
    made = plan((4, 4), tables, F(1), DELTA, weights=[9, 1])
    assert made.variance((0,)) < even.variance((0,)) < made.variance((1,))


def test_a_public_number_of_rows_has_no_noise():
    """And what it would have cost goes to the rest."""
    known = plan((4,), [(0,)], F(1), DELTA, replace_one=True, public_total=True)
    assert known.noise[()].sigma2 == 0
    private = plan((4,), [(0,)], F(1), DELTA, replace_one=True)
    assert known.variance((0,)) < private.variance((0,))


def test_attributes_of_one_value_cost_nothing():
    """They have no residual: the table is one of fewer columns."""
    made = plan((1, 3), [(0, 1), (0,)], F(1), DELTA)
    assert set(made.noise) == {(), (1,)}
    assert made.variance((0,)) == made.variance(())


def test_narrow_noise_is_charged_in_full():
    """A long axis under narrow noise is not counted on; a short one beside it is."""
    made = plan((2, 10_000), [(0, 1)], F(1), DELTA)
    assert {one.counted for a, one in made.noise.items() if a == (0, 1)} == {(2,)}
    assert made.loss.delta(1.0).upper <= 1e-9


@pytest.mark.parametrize("epsilon", ["100", "10", "1/1000"])
def test_every_size_of_budget_is_planned(epsilon):
    """From noise below one to noise in the thousands; delta never exceeds what is charged."""
    made = plan((2, 5), [(0, 1)], F(epsilon), F(1, 10**6))
    proved = delta_of_rho(made.rho, F(epsilon))
    # Of a rho alone the loss is evaluated in doubles, the theorem in directed rounding.
    assert min(proved, made.loss.delta(float(F(epsilon))).upper) <= F(1, 10**6)
    assert all(one.sigma2 > one.soft for one in made.noise.values())


def test_noise_beyond_the_sampler_is_refused():
    """Before anything is charged."""
    with pytest.raises(ArgumentError, match="epsilon is too small"):
        plan((2, 5), [(0, 1)], F(1, 10**16), F(1, 10**20))
