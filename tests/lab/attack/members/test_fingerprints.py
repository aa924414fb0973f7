"""The fingerprinting lemma, in exact numbers; and its bounds beside what an attack finds."""

from __future__ import annotations

import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dither as dt
from dither.errors import ArgumentError

whole_tables = st.lists(st.integers(-8, 8), min_size=2, max_size=9)


@given(whole_tables)
def test_the_lemma_holds_exactly(eighths: list[int]) -> None:
    """Whatever is published of the sum of n entries, with the mean drawn uniformly: one column."""
    n, said = len(eighths) - 1, [F(x, 8) for x in eighths]
    # Of how many are 1 each number is as likely; given k of them the mean has a beta law.
    mean = [F(2 * (k + 1), n + 2) - 1 for k in range(n + 1)]
    scores = sum(f * (2 * k - n - n * mean[k]) for k, f in enumerate(said)) / (n + 1)
    missed = sum(f * f - 2 * f * mean[k] for k, f in enumerate(said)) / (n + 1) + F(1, 3)
    assert scores + missed >= F(1, 3)
    found = dt.attack.fingerprints(n, 1, error=math.sqrt(missed))
    assert found.member <= float(scores) / n + 1e-12 or found.member == 0


def test_the_bound_of_privacy_holds_where_it_can_be_computed() -> None:
    """One entry, told by randomised response: its score is 2/3·tanh(ε/2) on average."""
    for epsilon in (0.01, 0.3, 1.0, 4.0, 800.0):
        found = dt.attack.fingerprints(1, 1, epsilon=epsilon)
        assert found.allowed is not None
        assert found.allowed >= 2 / 3 * math.tanh(epsilon / 2) - 1e-12


def test_members_of_exact_means_score_as_the_lemma_says() -> None:
    """Twice the bound, and apart from strangers by as much as is said."""
    n, d = 20, 40_000
    generator = np.random.default_rng(3)
    p = generator.uniform(-1, 1, d)
    rows = np.where(generator.random((2 * n, d)) < (1 + p) / 2, 1.0, -1.0)
    published = rows[:n].mean(axis=0)
    scores = (rows - p) @ published
    found = dt.attack.fingerprints(n, d, error=math.sqrt(2 / 3 / n))
    assert scores[:n].mean() == pytest.approx(2 / 3 * d / n, rel=0.05)
    assert found.member < scores[:n].mean()
    assert np.abs(scores[n:].mean()) < 3 * found.spread / math.sqrt(n)
    assert scores[n:].std() < found.spread


def test_what_is_impossible_is_said() -> None:
    """With what it would take; and nothing is said where no privacy is claimed."""
    private = dt.attack.fingerprints(100, 10**6, error=0.1, epsilon=1, delta=1e-6)
    assert private.possible is False
    assert private.least_people is not None
    assert "no such release exists" in str(private)
    enough = dt.attack.fingerprints(private.least_people, 10**6, error=0.1, epsilon=1, delta=1e-6)
    assert enough.possible is True
    worse = dt.attack.fingerprints(
        100, 10**6, error=private.least_error or 0, epsilon=1, delta=1e-6
    )
    assert worse.member == pytest.approx(worse.allowed)
    bare = dt.attack.fingerprints(100, 10**6, error=0.1)
    assert (bare.allowed, bare.possible, bare.least_error, bare.least_people) == (None,) * 4
    assert dt.attack.fingerprints(5, 5, error=10).member == 0


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"n": 0}, "n"),
        ({"d": 1.5}, "d"),
        ({"d": 10**400}, "d must be at most"),
        ({"error": 1e200}, "error"),
        ({"error": -1}, "error"),
        ({"error": math.nan}, "error"),
        ({"epsilon": 0}, "epsilon"),
        ({"delta": 0.1}, "delta"),
        ({"epsilon": 1, "delta": 1}, "delta"),
    ],
)
def test_refusals(change: dict[str, float], name: str) -> None:
    """By name."""
    with pytest.raises(ArgumentError, match=name):
        dt.attack.fingerprints(**{"n": 10, "d": 10} | change)  # type: ignore[arg-type]
