"""Canaries in a training run: what the strongest adversary sees of it, to be audited.

Each canary is an example whose gradient is one coordinate and 1 long, which is the clip. So what a
step shows of a canary is one number of the noisy sum, and canaries do not meet: every one is a play
of its own. Half of them, by fair coins, are in; of the others the input is 0, and so the gradient,
which is what it is to have been taken out.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from dither.lab._simulation import SimulatedWorld
from dither.learn.deep import FixedOrder, PrivateOptimizer

__all__ = ["canaries_in_order", "sampled_canaries"]

Floats = npt.NDArray[np.float64]


def _shown(
    count: int, seed: int, **arguments: Any
) -> tuple[npt.NDArray[np.bool_], Floats, PrivateOptimizer]:
    """Who is in, the noisy sums of all steps, shape (steps, count), and the optimiser."""
    coins = SimulatedWorld.of(seed).random(count) < 0.5
    model = torch.nn.Linear(count, 1, bias=False)
    rows = torch.diag(torch.from_numpy(coins).float())
    private = PrivateOptimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        model,
        (rows, torch.ones(count)),
        loss=lambda output, target: output[:, 0] * target,
        **arguments,
    )
    assert private.planned is not None
    seen = np.empty((private.planned, count))
    weights = model.weight
    for step in range(private.planned):
        for x, y in private.batches():
            private.backward(x, y)
        with torch.no_grad():
            weights.zero_()  # so that the difference has all digits
        private.step()
        moved = -weights.detach().double().numpy()[0]
        seen[step] = moved * private.sampling.denominator / private.clip.norm
    return coins, seen, private


def sampled_canaries(
    count: int, noise_multiplier: Fraction, rate: Fraction, steps: int, seed: int = 0
) -> tuple[Floats, Floats, PrivateOptimizer]:
    """Scores of canaries that were in a run with Poisson sampling, and of those that were not.

    The likelihood ratio: of each step a mixture of noise around 1, with chance ``rate``, and
    around 0, against noise around 0.
    """
    coins, seen, private = _shown(
        count, seed, noise_multiplier=noise_multiplier, rate=rate, steps=steps, population=count
    )
    q, z = float(rate), float(noise_multiplier)
    ratio = np.log1p(q * np.expm1((2 * seen - 1) / (2 * z * z))).sum(axis=0)
    return ratio[coins], ratio[~coins], private


def canaries_in_order(
    count: int, noise_multiplier: Fraction, order: FixedOrder, seed: int = 0
) -> tuple[Floats, Floats, PrivateOptimizer]:
    """The same of a run in a fixed order, with noise that is correlated over steps.

    The adversary knows in which steps a canary would be, and multiplies by C, after which the noise
    of the steps is independent.
    """
    coins, seen, private = _shown(count, seed, noise_multiplier=noise_multiplier, order=order)
    assert private.correlated is not None
    made = private.correlated.made
    n = made.participation.steps
    column = np.zeros(n)
    assert made.column is not None
    column[: len(made.column)] = made.column
    whitened = np.array([column[t::-1] @ seen[: t + 1] for t in range(n)])
    expected = np.zeros((n, count))
    for step in range(n):
        places = private.sampling.batch(step).numpy()
        expected[step:, places] += column[: n - step, None]
    ratio = (expected * whitened).sum(axis=0) / np.linalg.norm(expected, axis=0)
    return ratio[coins], ratio[~coins], private
