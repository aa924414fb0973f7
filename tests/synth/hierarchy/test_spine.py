"""Spines, least squares on them, and whole numbers that add up: against dense algebra."""

from __future__ import annotations

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.synth.hierarchy._consistent import Consistency
from dither.synth.hierarchy._spine import Spine
from dither.synth.hierarchy._whole import nearest_table, rounded_table, simplex, whole, whole_counts

ROWS = [(f"c{i % 2}", f"s{i % 2}{i % 3}", f"k{i:02d}") for i in range(11)]
SPINE = Spine.of(["country", "state", "county"], ROWS)


def matrix() -> np.ndarray:
    """The sums of every place, as rows over the leaves."""
    return np.vstack(SPINE.sums(np.eye(11)))


def test_places_of_a_spine_are_sorted_by_path_whatever_the_order_of_rows() -> None:
    """The same places and parents come from any order of the public rows."""
    again = Spine.of(SPINE.levels, ROWS[::-1])
    assert again.places == SPINE.places
    assert [p.tolist() for p in again.parents] == [p.tolist() for p in SPINE.parents]
    assert SPINE.sizes == (2, 6, 11)
    assert SPINE.places[1] == ("s00", "s01", "s02", "s10", "s11", "s12")
    for level in range(3):
        named = [
            SPINE.places[d][i] for d, own in enumerate(SPINE.ancestors(level)) for i in own[:1]
        ]
        assert named == list(sorted(ROWS)[0][: level + 1])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "has no row"),
        ([("n", "a"), (None, "b")], "without a state"),
        ([("n", "a"), ("s", "a")], "not nested: county 'a' lies in state 'n' and in 's'"),
        ([("n", "a"), ("n", "a")], "two rows of county 'a'"),
    ],
)
def test_what_is_not_a_spine_is_refused(rows: list, words: str) -> None:
    """A place in two others, a place twice, a missing one, or nothing."""
    with pytest.raises(ArgumentError) as refused:
        Spine.of(["state", "county"], rows)
    assert words.replace("'", "") in str(refused.value).replace("'", "")


@pytest.mark.parametrize("case", ["all", "unmeasured", "some", "exact"])
def test_estimates_and_what_they_carry_are_those_of_dense_least_squares(case: str) -> None:
    """Values, exact variances, and sums of cubes, where levels are unmeasured or exact too."""
    rng = np.random.default_rng(5)
    variances = [rng.uniform(0.5, 3, n) for n in SPINE.sizes]
    if case == "unmeasured":
        variances[1][:] = np.inf
    elif case == "some":
        variances[0][0] = variances[1][2] = np.inf
    elif case == "exact":
        variances[0][:] = 1e-7
    every = np.concatenate(variances)
    made = np.isfinite(every)
    measured = [rng.normal(5, 3, (n, 2)) for n in SPINE.sizes]
    a = matrix()[made]
    w = a.T / every[made]
    made_of = matrix() @ np.linalg.solve(w @ a, w)
    if case == "exact":
        variances[0][:] = 0.0
    found = Consistency(SPINE, tuple(variances))
    close = {"atol": 1e-4} if case == "exact" else {}
    estimates = np.vstack(found.estimates(measured))
    np.testing.assert_allclose(estimates, made_of @ np.vstack(measured)[made], **close)
    deviations = np.abs(made_of) * np.sqrt(every[made])
    np.testing.assert_allclose(np.concatenate(found.errors), (deviations**2).sum(1), **close)
    cubes = np.concatenate(found.carried([v**1.5 for v in variances], 3))
    np.testing.assert_allclose(cubes, (deviations**3).sum(1), **close)


def test_exact_levels_stay_as_they_are() -> None:
    """What is public at two levels comes out as it is, and the rest adds up to it."""
    rng = np.random.default_rng(2)
    leaves = rng.integers(0, 50, 11)
    exact = SPINE.sums(leaves)
    variances = (np.zeros(2), np.zeros(6), np.full(11, 4.0))
    noisy = [exact[0], exact[1], exact[2] + rng.normal(0, 2, 11)]
    found = Consistency(SPINE, variances).estimates(noisy)
    np.testing.assert_allclose(found[0], exact[0])
    np.testing.assert_allclose(found[1], exact[1])
    np.testing.assert_allclose(SPINE.summed(1, found[2]), exact[1])


def test_the_nearest_point_meets_the_conditions_of_a_minimum() -> None:
    """On the simplex and among tables: what is above 0 is moved by its multipliers, no less moves
    what is 0."""
    rng = np.random.default_rng(3)
    values = rng.normal(1, 3, (5, 4))
    totals = rng.integers(1, 9, 4)
    near = simplex(values, totals)
    np.testing.assert_allclose(near.sum(axis=0), totals)
    for j in range(4):
        moved = near[:, j] - values[:, j]
        level = moved[near[:, j] > 0]
        assert np.ptp(level) < 1e-9
        assert (moved[near[:, j] == 0] >= level[0] - 1e-9).all()
    for shape in ((6, 9), (9, 6)):
        truth = rng.poisson(1.5, shape) + 1
        values = truth + rng.normal(0, 4, shape)
        near = nearest_table(values, truth.sum(axis=1), truth.sum(axis=0))
        np.testing.assert_allclose(near.sum(axis=1), truth.sum(axis=1), atol=1e-5)
        np.testing.assert_allclose(near.sum(axis=0), truth.sum(axis=0), atol=1e-5)
        # No step to another table with these margins is downhill.
        for _ in range(300):
            other = rng.dirichlet(np.ones(truth.size)).reshape(shape) * truth.sum()
            for _ in range(200):
                other *= (truth.sum(axis=1) / other.sum(axis=1))[:, None]
                other *= truth.sum(axis=0) / other.sum(axis=0)
            assert ((near - values) * (other - near)).sum() >= -1e-3


def test_rounding_keeps_every_margin() -> None:
    """Whole numbers of at least 0 with the margins that were asked for, next to what they round."""
    rng = np.random.default_rng(4)
    for n, m in ((1, 1), (1, 5), (7, 1), (6, 4), (13, 30)):
        truth = rng.poisson(rng.gamma(0.5, 3, (n, m))) + (rng.random((n, m)) < 0.3) + 1
        rows, columns = truth.sum(axis=1), truth.sum(axis=0)
        near = nearest_table(truth + rng.normal(0, 2, (n, m)), rows, columns)
        found = rounded_table(near, rows, columns)
        assert (found >= 0).all()
        assert (found.sum(axis=1) == rows).all()
        assert (found.sum(axis=0) == columns).all()
        assert np.abs(found - near).mean() < 0.5


@pytest.mark.parametrize("seed", range(30))
def test_whole_numbers_have_the_sums_that_were_asked_for(seed: int) -> None:
    """Whatever is to be rounded, with a bound on each number or without."""
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 7, 2)
    totals = rng.integers(0, 40, m)
    values = rng.uniform(0, 5, (n, m)) * rng.choice([1, 1, 0], (n, m))
    most = rng.integers(0, 12, (n, m)) if seed % 3 == 0 else None
    if most is not None:
        totals = np.minimum(totals, most.sum(axis=0))
    elif seed % 2:
        values = simplex(values, totals)
    found = whole(values, totals, most)
    assert (found.sum(axis=0) == totals).all()
    assert (found >= 0).all()
    if most is not None:
        assert (found <= most).all()
    elif seed % 2:
        assert np.abs(found - values).max() < 1 + 1e-6


@pytest.mark.parametrize("deviation", [0.0, 0.3, 5.0, 1e3, 1e14])
def test_counts_add_up_at_every_level_whatever_the_noise(deviation: float) -> None:
    """To the unit, with public numbers or without; without noise they are the counts themselves."""
    rng = np.random.default_rng(8)
    leaves = rng.poisson(2, (11, 6))
    exact = SPINE.sums(leaves)
    cells = [level + deviation * rng.normal(size=level.shape) for level in exact]
    for known in ([None] * 3, [level.sum(axis=1) for level in exact[:2]] + [None]):
        totals = [
            (level.sum(axis=1) + deviation * rng.normal(size=len(level))) if k is None else k
            for level, k in zip(exact, known, strict=True)
        ]
        found = whole_counts(SPINE, totals, cells, known)
        for level in range(2):
            assert (SPINE.summed(level, found[level + 1]) == found[level]).all()
            if known[level] is not None:
                assert (found[level].sum(axis=1) == known[level]).all()
        assert (found[2] >= 0).all()
        if not deviation:
            assert (found[2] == leaves).all()
