"""Correlated noise: what it costs by brute force, what it errs, and that it is what it says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dither import privacy
from dither.errors import ArgumentError
from dither.learn.deep.noise._factorization import (
    METHODS,
    Factorization,
    Participation,
    StreamedNoise,
    Workload,
    _inverse,
    _multiplied,
    factorization,
    greatest_of_patterns,
    of_matrix,
)

RNG = np.random.default_rng
STREAMED = ("buffers", "bands", "square root", "independent")


def dense(found: Factorization) -> np.ndarray:
    """C as a matrix."""
    if found.matrix is not None:
        return found.matrix
    n = found.participation.steps
    assert found.column is not None
    column = np.concatenate([found.column, np.zeros(n - len(found.column))])
    return np.array([[column[i - j] if i >= j else 0.0 for j in range(n)] for i in range(n)])


def patterns(run: Participation) -> list[tuple[int, ...]]:
    """All sets of steps that one unit may take part in."""
    return [
        chosen
        for k in range(1, run.times + 1)
        for chosen in itertools.combinations(range(run.steps), k)
        if all(j - i >= run.apart for i, j in itertools.pairwise(chosen))
    ]


def largest(matrix: np.ndarray, run: Participation) -> float:
    """The most that C·U can be over all patterns, rows of U on a line: of ±1."""
    return max(
        float(np.linalg.norm(matrix[:, chosen] @ np.array(signs)))
        for chosen in patterns(run)
        for signs in itertools.product((1.0, -1.0), repeat=len(chosen))
    )


runs = st.builds(Participation, st.integers(1, 9), times=st.integers(1, 4), apart=st.integers(1, 4))


@pytest.mark.parametrize("method", STREAMED)
@given(run=runs, momentum=st.sampled_from([0.0, 0.5, 0.95]), bands=st.integers(1, 6))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_the_sensitivity_of_a_falling_column_is_that_of_brute_force(
    method: str, run: Participation, momentum: float, bands: int
) -> None:
    """Over all patterns and signs: reached, and not passed."""
    work = Workload(run.steps, momentum)
    found = factorization(run, workload=work, method=method, bands=bands, buffers=2)
    assert found.column is not None
    assert (np.diff(found.column) <= 0).all()
    most = largest(dense(found), run)
    assert most <= found.sensitivity <= most * (1 + 1e-12)


@given(run=runs, seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_the_sensitivity_of_any_matrix_is_never_below_brute_force(
    run: Participation, seed: int
) -> None:
    """Also with numbers below 0, where vectors of several dimensions lie between the signs."""
    rng = RNG(seed)
    matrix = np.tril(rng.normal(size=(run.steps, run.steps)))
    np.fill_diagonal(matrix, rng.uniform(0.1, 2, run.steps))
    found = of_matrix(matrix, run, Workload(run.steps))
    assert largest(matrix, run) <= found.sensitivity
    if run.most == 1:
        assert found.sensitivity <= largest(matrix, run) * (1 + 1e-12)
    for chosen in patterns(run)[::7]:
        moved = rng.normal(size=(len(chosen), 3))
        moved /= np.linalg.norm(moved, axis=1)[:, None]
        assert np.linalg.norm(matrix[:, chosen] @ moved) <= found.sensitivity


def test_narrow_bands_are_bounded_exactly() -> None:
    """Where no two rows of a unit meet, only norms of columns are added."""
    run = Participation(9, times=3, apart=3)
    matrix = np.eye(9) * RNG(3).uniform(0.5, 2, 9) + np.diag(RNG(4).uniform(-1, 1, 8), -1)
    found = of_matrix(matrix, run, Workload(9))
    assert found.sensitivity == pytest.approx(largest(matrix, run), rel=1e-12)


@pytest.mark.parametrize(
    ("planted", "why"),
    [
        (Participation(12, times=1, apart=4), "epochs forgotten"),
        (Participation(12, times=3, apart=6), "closer together than was charged"),
    ],
)
def test_a_pattern_that_is_not_the_run_s_is_too_small(planted: Participation, why: str) -> None:
    """The brute force sees a sensitivity of another pattern."""
    run = Participation(12, times=3, apart=4)
    found = factorization(planted, method="square root")
    assert largest(dense(found), run) > 1.05 * found.sensitivity, why


@pytest.mark.parametrize("method", METHODS)
def test_noise_is_the_rows_of_the_inverse(method: str) -> None:
    """Streamed noise times C is what was drawn, in bounded memory, from any step on."""
    run = Participation(23)
    found = factorization(run, method=method, bands=5, buffers=3)
    z = RNG(1).normal(size=(23, 4))
    stream = StreamedNoise(found)
    noise = np.array([stream.next(row) for row in z])
    assert np.allclose(dense(found) @ noise, z, atol=1e-10)
    assert len(stream.state()["held"]) <= max(found.memory, 0) + (method == "optimal")
    first = StreamedNoise(found)
    for row in z[:9]:
        first.next(row)
    second = StreamedNoise(found)
    second.restore(first.state())
    assert np.array_equal([second.next(row) for row in z[9:]], noise[9:])
    with pytest.raises(ArgumentError, match="all 23 steps"):
        stream.next(z[0])


def test_noise_of_tensors() -> None:
    """The same numbers, in torch."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    found = factorization(Participation(6), buffers=2)
    z = RNG(2).normal(size=(6, 3))
    one, other = StreamedNoise(found), StreamedNoise(found)
    for row in z:
        assert np.allclose(one.next(torch.tensor(row)).numpy(), other.next(row))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("workload", [Workload(17), Workload(17, 0.9), Workload.cooling(17, 0.5)])
def test_errors_are_those_of_the_matrices(method: str, workload: Workload) -> None:
    """The norms of the rows of A·C⁻¹ times the sensitivity."""
    found = factorization(Participation(17, 2, 8) if method != "optimal" else Participation(17),
                          workload=workload, method=method)  # fmt: skip
    rows = workload.matrix() @ np.linalg.inv(dense(found))
    expected = found.sensitivity * np.linalg.norm(rows, axis=1)
    assert np.allclose(found.deviations(), expected)
    assert found.mean_error() == pytest.approx(math.sqrt((expected**2).mean()))
    assert found.max_error() == pytest.approx(expected.max())


def test_a_workload_is_descent_with_momentum_and_rates() -> None:
    """By the loop that it stands for."""
    work = Workload.cooling(6, 0.5, 0.1, momentum=0.7)
    gradients, speed, place = RNG(5).normal(size=6), 0.0, 0.0
    assert work.rates is not None
    for t, g in enumerate(gradients):
        speed = 0.7 * speed + g
        place += work.rates[t] * speed
    assert (work.matrix() @ gradients)[-1] == pytest.approx(place)
    assert Workload(6, 0.7).matrix()[:, 0] == pytest.approx(Workload(6, 0.7).column())


@pytest.mark.parametrize("momentum", [0.0, 0.8])
def test_the_optimum_is_one(momentum: float) -> None:
    """No C errs less: for any v > 0, the squared error is at least 2·tr((D·AᵀA·D)^½) - Σv."""
    n = 24
    work = Workload(n, momentum)
    best = factorization(Participation(n), workload=work, method="optimal")
    gram = work.matrix().T @ work.matrix()
    value = n * best.mean_error() ** 2
    x = dense(best).T @ dense(best)
    v = np.diag(np.linalg.inv(x) @ gram @ np.linalg.inv(x))
    d = np.sqrt(v)
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(d[:, None] * gram * d), 0)).sum()
    assert 2 * roots - v.sum() <= value * (1 + 1e-9)
    assert 2 * roots - v.sum() == pytest.approx(value, rel=1e-3)
    for method, over in (("buffers", 1.06), ("square root", 1.09)):
        error = factorization(Participation(n), workload=work, method=method).mean_error()
        assert best.mean_error() <= error <= over * best.mean_error()


def test_correlation_pays_over_epochs() -> None:
    """Four epochs of 50 steps: under a third of the error of independent noise, with 4 vectors."""
    run = Participation.of_epochs(50, 4)
    found = {m: factorization(run, method=m) for m in STREAMED}
    alone = found["independent"].mean_error()
    assert found["buffers"].memory == 4
    assert found["buffers"].mean_error() < found["square root"].mean_error() < alone / 3
    assert "sensitivity" in found["buffers"].summary()


def test_power_series_are_inverted() -> None:
    """To the length of a long run."""
    column = factorization(Participation(5000), method="square root").column
    assert column is not None
    product = _multiplied(column, _inverse(column))
    assert np.allclose(product, np.eye(1, 5000)[0], atol=1e-10)


def test_a_run_costs_one_gaussian() -> None:
    """Whatever the number of steps, under both relations."""
    found = factorization(Participation.of_epochs(5, 2), method="bands")
    for neighbours in ("add-remove", "replace"):
        loss = found.loss("1.5", neighbours)
        assert loss.epsilon(1e-6) == privacy.gaussian("1.5").epsilon(1e-6)
    assert found.loss(1, "replace").neighbours is privacy.Neighbours.REPLACE


def test_patterns_weigh_what_they_hold() -> None:
    """By brute force, of sums over pairs of a pattern: never below."""
    for seed in range(20):
        run = Participation(7, times=seed % 4 + 1, apart=seed % 3 + 1)
        sizes = RNG(seed).uniform(size=(7, 7))
        sizes += sizes.T
        most = max(float(sizes[np.ix_(c, c)].sum()) for c in patterns(run))
        assert most <= greatest_of_patterns(sizes, run) * (1 + 1e-12)


def test_arguments() -> None:
    """Each is refused by its name, with what would do."""
    with pytest.raises(ArgumentError, match="method must be one of"):
        factorization(Participation(4), method="tree")
    with pytest.raises(ArgumentError, match='use "buffers"'):
        factorization(Participation.of_epochs(4, 2), method="optimal")
    with pytest.raises(ArgumentError, match='use "buffers"'):
        factorization(Participation(4000), method="optimal")
    with pytest.raises(ArgumentError, match="workload must have as many steps"):
        factorization(Participation(4), workload=Workload(5))
    with pytest.raises(ArgumentError, match="workload must have as many steps"):
        factorization(Participation(4)).deviations(Workload(5))
    with pytest.raises(ArgumentError, match="rates must have one"):
        Workload(3, rates=(1.0,))
    with pytest.raises(ArgumentError, match="momentum"):
        Workload(3, 1.0)
    with pytest.raises(ArgumentError, match="steps must"):
        Participation(0)
    for wrong in (np.ones((2, 2)), np.zeros((2, 2)), np.eye(3)):
        with pytest.raises(ArgumentError, match="matrix must"):
            of_matrix(wrong, Participation(2), Workload(2))
