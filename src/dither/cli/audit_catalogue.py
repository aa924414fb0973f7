"""Every mechanism of the package, with neighbours that are hard for it: what ``audit --all`` runs.

``CATALOGUE`` is a list of functions that each make one subject; a room that brings mechanisms adds
its own to it. Inputs are such that the claimed loss is met, or nearly, wherever it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dither import privacy
from dither.cli.audit_local import local_subjects
from dither.examples.planted import Subject
from dither.mechanisms import (
    BinaryTree,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    KeyThreshold,
    MaxNorm,
    NoisyMax,
    Peeling,
    PermuteAndFlip,
    ProposeTestRelease,
    QuantileTree,
    RandomizedResponse,
    SmoothMedian,
    SparseVector,
    Staircase,
    SubsampleAggregate,
    TopK,
    Tulap,
)

__all__ = ["CATALOGUE"]

Array = npt.NDArray[Any]
ONE, DELTA = Fraction(1), Fraction(1, 100)
FIRST, OTHERS = (1, 0, 0, 0, 0, 0), (0, 1, 1, 1, 1, 1)


def _laplace() -> Subject:
    noise = DiscreteLaplace.for_loss(ONE, l1=1)
    return Subject("discrete Laplace", lambda count, size: count + noise.draw(size), 0, 1, ONE)


def _gaussian() -> Subject:
    noise = DiscreteGaussian.for_loss(Fraction(1, 2), l2_squared=1)
    delta = Fraction(privacy.discrete_gaussian(1.0).delta(1.0).upper)
    return Subject(
        "discrete Gaussian", lambda count, size: count + noise.draw(size), 0, 1, ONE, delta
    )


def _staircase() -> Subject:
    noise = Staircase.for_loss(ONE, sensitivity=3)
    return Subject("staircase", lambda total, size: total + noise.draw(size), 0, 3, ONE)


def _tulap() -> Subject:
    noise = Tulap(ONE, DELTA)
    return Subject("Tulap", lambda count, size: count + noise.draw(size), 0, 1, ONE, DELTA)


def _max_norm() -> Subject:
    noise = MaxNorm.for_loss(ONE, linf=1, dimension=3)
    zeros, moved = (0, 0, 0), (1, 1, 1)
    return Subject("max norm", lambda v, size: np.array(v) + noise.draw(size), zeros, moved, ONE)


def _exponential() -> Subject:
    pick = Exponential.for_loss(ONE, sensitivity=1)
    return Subject("exponential", pick.draw, FIRST, OTHERS, ONE)


def _permute_and_flip() -> Subject:
    pick = PermuteAndFlip.for_loss(ONE, sensitivity=1)
    return Subject("permute and flip", pick.draw, FIRST, OTHERS, ONE)


def _noisy_max(kind: Literal["gumbel", "exponential", "laplace"]) -> Callable[[], Subject]:
    def made() -> Subject:
        pick = NoisyMax.for_loss(ONE, sensitivity=1, kind=kind)
        return Subject(f"noisy max, {kind}", pick.draw, FIRST, OTHERS, ONE)

    return made


def _top_k() -> Subject:
    pick = TopK.for_loss(ONE, k=2, sensitivity=1)
    return Subject("top-k", pick.draw, (1, 1, 0, 0, 0), (0, 0, 1, 1, 1), ONE)


def _peeling() -> Subject:
    pick = Exponential.for_loss(Fraction(1, 4), sensitivity=1)
    peel = Peeling(pick, 2, DiscreteLaplace.for_loss(Fraction(1, 2), l1=2))
    epsilon = peel.loss(sensitivity=1).charge.epsilon
    assert epsilon is not None
    return Subject("peeling", peel.release, (1, 1, 0, 0), (0, 0, 1, 1), epsilon)


def _sparse(
    name: str, d0: Sequence[int], d1: Sequence[int], **fields: Any
) -> Callable[[], Subject]:
    def made() -> Subject:
        sparse = SparseVector.for_loss(ONE, sensitivity=1, **fields)

        def answers(values: Sequence[int]) -> tuple[Any, ...]:
            run, told = sparse.start(0), []
            for value in values:
                answer = run.ask(value)
                told.append((answer.above, answer.value))
                if run.left == 0:
                    break
            return tuple(told)

        return Subject(f"sparse vector{name}", answers, d0, d1, ONE)

    return made


def _randomized_response() -> Subject:
    response = RandomizedResponse(ONE, 4)
    return Subject(
        "randomised response",
        lambda truth, size: response.draw(np.full(size, truth, dtype=np.int64)),
        0,
        1,
        ONE,
    )


def _binary_tree() -> Subject:
    tree = BinaryTree.for_loss(ONE, horizon=7, sensitivity=1)

    def running(events: Sequence[int]) -> list[int]:
        run = tree.start()
        for number in events:
            run.add(number)
        return [noisy for _, _, noisy in run.released]

    return Subject("binary tree", running, (0,) * 7, (1, *(0,) * 6), ONE)


def _propose_test_release(far: bool) -> Callable[[], Subject]:
    def made() -> Subject:
        method = ProposeTestRelease.for_loss(ONE, DELTA, bound=5)

        def release(answer: tuple[int, int]) -> int | None:
            return method.release(answer[0], distance=answer[1])

        where = "passed" if far else "failed"
        d0, d1 = ((0, method.tau), (5, method.tau + 1)) if far else ((0, 0), (10**6, 0))
        return Subject(f"propose-test-release, {where}", release, d0, d1, ONE, DELTA)

    return made


def _smooth_median() -> Subject:
    median = SmoothMedian.for_loss(ONE, DELTA, lower=0, upper=100)
    delta = median.loss().charge.delta
    d0, d1 = [0] * 6 + [100] * 5, [0] * 5 + [100] * 6
    return Subject("smooth median", median.release, d0, d1, ONE, delta)


def _subsample_aggregate() -> Subject:
    method = SubsampleAggregate.mean(ONE, blocks=3, lower=0, upper=10)

    def release(rows: Sequence[int]) -> Fraction:
        return method.release(rows, lambda block: max(block, default=0))

    return Subject("subsample and aggregate", release, [0] * 6, [10] + [0] * 5, ONE)


def _key_threshold() -> Subject:
    noise = DiscreteLaplace.for_loss(ONE, l1=1)
    rule = KeyThreshold(noise, 1, DELTA)

    def shown(units: int) -> int | None:
        if not units:
            return None
        noisy = units + noise.draw(1)
        return int(noisy[0]) if rule.shown(noisy)[0] else None

    return Subject("key threshold", shown, 0, 1, ONE, DELTA)


def _quantile_tree() -> Subject:
    tree = QuantileTree(8, 2, 3)
    l1, _ = tree.sensitivity(max_rows=1, max_groups=1)
    noise = DiscreteLaplace.for_loss(ONE, l1=l1)

    def measured(leaves: Sequence[int], size: int) -> Array:
        counts = np.repeat(np.array([leaves], dtype=np.int64), size, axis=0)
        return np.concatenate(tree.measure(counts, noise), axis=1)

    return Subject("quantile tree", measured, (0,) * 8, (0, 0, 0, 0, 0, 1, 0, 0), ONE)


CATALOGUE: list[Callable[[], Subject]] = [
    _laplace,
    _gaussian,
    _staircase,
    _tulap,
    _max_norm,
    _exponential,
    _permute_and_flip,
    _noisy_max("gumbel"),
    _noisy_max("exponential"),
    _noisy_max("laplace"),
    _top_k,
    _peeling,
    _sparse("", (0, 0, 0, 1), (1, 1, 1, 0)),
    _sparse(", monotone", (0, 0, 0, 0), (1, 1, 1, 1), monotone=True),
    _sparse(", cut-off 2", (0, 0, 0, 1, 1), (1, 1, 1, 0, 0), cutoff=2),
    _sparse(", with values", (0, 0, 1), (1, 1, 0), value_share=Fraction(1, 2)),
    _randomized_response,
    _binary_tree,
    _propose_test_release(far=True),
    _propose_test_release(far=False),
    _smooth_median,
    _subsample_aggregate,
    _key_threshold,
    _quantile_tree,
    *local_subjects(),
]
"""What ``dither audit --all`` runs, in order."""
