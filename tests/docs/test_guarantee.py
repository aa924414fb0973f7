"""Two statements of docs/guarantee.md: how often a row leaks, and what a cipher adds to δ."""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np

from dither import privacy


def test_a_row_is_given_away_as_often_as_computed() -> None:
    """The mechanism's δ is exact, and 1 - (1 - δ)^n is what plays give; false alarm below 1e-6."""
    n, plays = 400, 20_000
    rng = np.random.default_rng(11)
    for delta in (1 / n, 1 / n**1.1, 1e-9):
        # Everybody's row or nothing, in their place; without them the place is empty.
        assert privacy.pair([delta, 1 - delta], [0, 1]).delta(0).upper >= delta
        assert privacy.pair([delta, 1 - delta], [0, 1]).delta(0).lower <= delta
        computed = -math.expm1(n * math.log1p(-delta))
        assert computed <= n * delta
        played = (rng.random((plays // 10, 10, n)) < delta).any(axis=2).mean()
        # Bernstein's inequality, at 5e-7 for each of two sides and three deltas.
        reach = math.log(6 / 1e-6) / plays
        assert abs(played - computed) <= math.sqrt(2 * computed * reach) + 2 * reach / 3


def test_advantage_adds_to_delta_as_stated() -> None:
    """Over all events, for laws at distance a of ideal ones: δ + (1 + e^ε)·a, which is reached."""
    epsilon, delta, advantage = 0.5, 0.01, 0.02
    factor = math.exp(epsilon)
    # Four outcomes: told by the first only, 0, 1, told by the second only.
    share = (1 - delta) / (1 + factor)
    ideal = (
        np.array([delta, factor * share, share, 0]),
        np.array([0, share, factor * share, delta]),
    )
    events = list(chain.from_iterable(combinations(range(4), size) for size in range(5)))

    def excess(first: np.ndarray, second: np.ndarray) -> float:
        """The δ at ε of a pair, the best event of either direction."""
        return max(
            float(p[list(event)].sum() - factor * q[list(event)].sum())
            for p, q in ((first, second), (second, first))
            for event in events
        )

    assert math.isclose(excess(*ideal), delta)
    bound = delta + (1 + factor) * advantage
    rng = np.random.default_rng(3)
    for _ in range(100):
        deployed = []
        for law in ideal:
            moved = np.minimum(law, advantage * rng.dirichlet(np.ones(4)))
            deployed.append(law - moved + moved.sum() * rng.dirichlet(np.ones(4)))
        assert excess(*deployed) <= bound + 1e-12
    worst = (
        ideal[0] + advantage * np.array([1, 0, -1, 0]),
        ideal[1] + advantage * np.array([0, -1, 1, 0]),
    )
    assert math.isclose(excess(*worst), bound)
