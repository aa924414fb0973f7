"""The certified maximum of a list's likelihood, against a general solver and against EM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from dither import local
from dither.local._numbers.solvers import gap_of, maximum


def classes(k: int, epsilon: Any) -> local.Personal:
    """Three ways to split k values, and everybody's randomised response."""
    return local.Personal(
        {
            "few": local.SDGRR(k, range(k // 4 or 1), epsilon),
            "half": local.SDGRR(k, range(k // 2), epsilon),
            "most": local.SDGRR(k, range(1, k), epsilon),
            "all": local.GRR(k, epsilon),
        }
    )


def surveyed(k: int, epsilon: Any, n: int, seed: int) -> tuple[Any, Any, Any]:
    """The aggregate of n people, their shares, and the channel."""
    rng, channel = np.random.default_rng(seed), classes(k, epsilon)
    shares = rng.dirichlet(np.full(k, 0.7))
    histogram = np.array([rng.multinomial(n // 4, shares) for _ in range(4)])
    truth = histogram.sum(axis=0) / histogram.sum()
    return local.simulate(channel, histogram, rng), truth, channel


def stacked(counts: local.PartCounts) -> tuple[Any, Any]:
    """One matrix over all classes' reports, and their shares."""
    parts: Any = counts.parts.values()
    matrix = np.concatenate([p.channel.matrix * (p.n / counts.n) for p in parts], axis=1)
    return matrix, np.concatenate([p.counts for p in parts]) / counts.n


@pytest.mark.parametrize(("k", "epsilon", "n"), [(4, 1, 400), (9, "0.3", 40_000), (12, 2, 4_000)])
def test_a_general_solver_finds_no_more(k: int, epsilon: Any, n: int) -> None:
    """SLSQP, told the gradient, ends where Newton's steps do, and never higher."""
    aggregate, _, _ = surveyed(k, epsilon, n, k)
    matrix, targets = stacked(aggregate)
    matrix, targets = matrix[:, targets > 0], targets[targets > 0]
    found = aggregate.estimate(method="likelihood")

    def low(f: Any) -> float:
        return -float(targets @ np.log(np.maximum(f @ matrix, 1e-300)))

    rival = optimize.minimize(
        low,
        np.full(k, 1 / k),
        jac=lambda f: -(matrix @ (targets / np.maximum(f @ matrix, 1e-300))),
        bounds=[(0, 1)] * k,
        constraints={"type": "eq", "fun": lambda f: f.sum() - 1},
        method="SLSQP",
        options={"maxiter": 1_000, "ftol": 1e-15},
    )
    assert found.gap is not None
    assert low(found.shares) <= rival.fun + found.gap + 1e-13
    assert low(found.shares) == pytest.approx(rival.fun, abs=1e-8)
    np.testing.assert_allclose(found.shares, np.maximum(rival.x, 0), atol=2e-3)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 8), st.integers(2, 12), st.integers(0, 10**6))
def test_any_matrix(k: int, m: int, seed: int) -> None:
    """Of any matrix: shares on the simplex, and the gap bounds what any other shares gain."""
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.full(m, 0.5), k) + 1e-6
    matrix /= matrix.sum(axis=1, keepdims=True)
    targets = rng.multinomial(500, rng.dirichlet(np.full(m, 0.5))) / 500
    shares, _, gap = maximum(matrix, targets, 1e-10, 1_000)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)
    assert gap <= 1e-8  # where several shares are equally likely, rounding ends the steps
    seen = targets > 0
    height = targets[seen] @ np.log((shares @ matrix)[seen])
    for other in [*np.eye(k), np.full(k, 1 / k), *rng.dirichlet(np.ones(k), 20)]:
        rival = targets[seen] @ np.log(np.maximum((other @ matrix)[seen], 1e-300))
        assert rival <= height + gap + 1e-12
        assert rival <= height + 1e-8
        assert gap_of(matrix, targets, other) >= height - rival - 1e-12


@pytest.mark.parametrize(
    ("k", "epsilon", "n"),
    [(18, "0.1", 2_460_000), (100, "0.1", 10**6), (100, 1, 10**9), (100, "0.01", 10**6)],
)
def test_the_maximum_is_certified(k: int, epsilon: Any, n: int) -> None:
    """However small epsilon is, the conditions of the maximum hold to 1e-6 in total, or rounding.

    Few steps lead there; the smallest epsilon of a hundred values takes the most.
    """
    aggregate, _, _ = surveyed(k, epsilon, n, 7)
    found = aggregate.estimate(method="likelihood")
    assert found.converged
    assert found.gap is not None
    assert found.gap <= max(1e-6 / n, 1e-13)
    assert found.iterations <= 400
    matrix, targets = stacked(aggregate)
    assert gap_of(matrix, targets, found.shares) == pytest.approx(found.gap, abs=1e-14)
    slope = matrix @ (targets / (found.shares @ matrix)) - 1
    assert slope.max() <= 2e-13 + 1e-6 / n
    # Where a share is above 0 the slope is level.
    assert np.abs(slope[found.shares > 1e-3]).max() < 1e-6


def test_nearer_than_weights() -> None:
    """Eighteen values at epsilon 0.1: the maximum is at least as near as the weighted estimate."""
    errors = []
    for seed in range(6):
        aggregate, truth, _ = surveyed(18, "0.1", 2_460_000, seed)
        weighted = aggregate.estimate(method="weights").shares
        pooled = aggregate.estimate(method="likelihood").shares
        errors.append([((f - truth) ** 2).mean() for f in (pooled, weighted)])
    pooled_error, weighted_error = np.mean(errors, axis=0)
    assert pooled_error < weighted_error


def test_rounds_where_a_stop_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tolerance, or a number of rounds, means EM; a long list does too."""
    aggregate, _, _ = surveyed(12, 1, 40_000, 3)
    top = aggregate.estimate(method="likelihood")
    assert top.gap is not None
    assert "Newton" in top.summary()
    early = aggregate.estimate(method="likelihood", max_iterations=3)
    assert early.gap is None
    assert early.iterations == 3
    assert early.log_likelihood < top.log_likelihood
    near = aggregate.estimate(method="likelihood", tolerance=1e-13)
    assert near.gap is None
    assert near.log_likelihood == pytest.approx(top.log_likelihood, abs=1e-9)
    assert top.log_likelihood >= near.log_likelihood - 1e-12
    monkeypatch.setattr("dither.local._numbers.em.LARGEST", 11)
    assert aggregate.estimate(method="likelihood").gap is None
