"""Private tests: levels under true nulls, and how many rows an identity test needs.

Run with ``python -m benchmarks.inference_tests [--repeat N] [--draws N]``. The first table holds
the share of true nulls that are rejected at .05, beside the naive test that takes the noisy table
for an exact one. The second holds the least n with size at most 1/3 and power at least 2/3 at
epsilon 1 (delta 1e-6 where it is needed), beside the values of an independent simulation.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from dither import inference

SIZES = {
    (20, 0.5): {"efficient": 3901, "norm": 56, "non-private": 25},
    (100, 0.5): {"efficient": 7024, "norm": 134, "non-private": 55},
    (500, 1.0): {"efficient": 5983, "norm": 148, "non-private": 26},
}


def levels(repeat: int) -> None:
    """Print how often each test rejects a true null at .05."""
    rng = np.random.default_rng(1)
    few: Any = {"draws": 400}
    tests: dict[str, Callable[[Any], float]] = {
        "identity, replace": lambda a: (
            inference.identity_test(rng.choice([-1, 1], (60, 10)), **few, **a).pvalue
        ),
        "uniformity": lambda a: (
            inference.uniformity_test(
                rng.integers(0, 6, 200), categories=range(6), **few, **a
            ).pvalue
        ),
        "goodness of fit": lambda a: (
            inference.goodness_of_fit(
                rng.choice(3, 200, p=[0.5, 0.3, 0.2]),
                categories=range(3),
                probabilities=[0.5, 0.3, 0.2],
                **few,
                **a,
            ).pvalue
        ),
        "independence": lambda a: (
            inference.independence_test(
                rng.choice(3, 200, p=[0.5, 0.3, 0.2]),
                rng.integers(0, 2, 200),
                x_categories=range(3),
                y_categories=range(2),
                **few,
                **a,
            ).pvalue
        ),
        "independence, naive": lambda a: naive(rng, a["epsilon"]),
    }
    print(f"{'test':22} {'epsilon':>7} {'replace':>8} {'add-remove':>11}   ({repeat:,} true nulls)")
    for name, test in tests.items():
        for epsilon in (0.5, 1.0):
            shares = [
                np.mean(
                    [test({"epsilon": epsilon, "neighbours": kind}) <= 0.05 for _ in range(repeat)]
                )
                for kind in ("replace", "add-remove")
            ]
            print(f"{name:22} {epsilon:7} {shares[0]:8.3f} {shares[1]:11.3f}", flush=True)


def naive(rng: np.random.Generator, epsilon: float) -> float:
    """Pearson's test of a noisy table taken as exact."""
    x, y = rng.choice(3, 200, p=[0.5, 0.3, 0.2]), rng.integers(0, 2, 200)
    table = np.bincount(2 * x + y, minlength=6).reshape(3, 2)
    noisy = np.maximum(table + np.round(rng.laplace(0, 2 / epsilon, table.shape)), 1)
    return float(stats.chi2_contingency(noisy, correction=False).pvalue)


def sizes(draws: int) -> None:
    """Print how many rows each way to test identity needs."""
    print(f"\n{'d':>4} {'distance':>8} {'method':12} {'n':>6} {'elsewhere':>9}")
    for (d, distance), wanted in SIZES.items():
        for method, n in wanted.items():
            found = inference.samples_needed(
                "identity",
                epsilon=1,
                delta=1e-6 if method == "efficient" else 0,
                dimension=d,
                distance=distance,
                method=method,
                size=1 / 3,
                power=2 / 3,
                draws=draws,
            )
            print(f"{d:4} {distance:8} {method:12} {found:6,} {n:9,}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=10_000)
    given = parser.parse_args()
    levels(given.repeat)
    sizes(given.draws)
