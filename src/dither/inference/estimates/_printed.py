"""The noisy truncated mean with the noise that is printed for it, at what it truly costs.

Numbers are clamped to [-R, R], so that the mean of d of them moves by at most 2·R·√d/n in the L2
norm when a row is replaced. The noise as printed has deviation 2·R·√d·√log(1/delta)/(n·epsilon):
the multiplier √log(1/delta)/epsilon is too small for (epsilon, delta). What it costs at delta is
computed from the noise that is drawn, and that is what the loss says.

Source. Cai, Wang and Zhang, "The cost of privacy", Annals of Statistics 2021.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._format import loss_text
from dither.errors import ArgumentError
from dither.inference.engine._errors import SimulatedErrors
from dither.inference.engine._inputs import Bounds, Floats, around, matrix, target
from dither.inference.engine._release import exact_sum
from dither.inference.engine._result import PrivateEstimate
from dither.mechanisms import Gaussian
from dither.numeric import sqrt_upper
from dither.privacy import Charge, Neighbours

__all__ = ["truncated_mean_as_printed"]

_PRINTED = "Cai, Wang and Zhang, The cost of privacy, 2021"


def truncated_mean_as_printed(
    rows: Any, *, radius: Number, epsilon: Number, delta: Number
) -> PrivateEstimate:
    """The noisy truncated mean with the noise that is printed for it, at its true price.

    Parameters
    ----------
    rows : array of shape (n, d), or frame
    radius : number
        R: each number is clamped to [-R, R].
    epsilon, delta : number
        What it is printed for: the noise has deviation 2·R·√(d·log(1/delta))/(n·epsilon).

    Returns
    -------
    PrivateEstimate
        Its ``loss`` is what the noise truly costs at this delta, and what an account is charged: an
        epsilon of 1.148 for a nominal 1 at delta = 1e-6. Its intervals are of each number by
        itself, with the clamping left as it is.

    Notes
    -----
    *Guarantee.* That of ``loss``, for rows that are replaced; not the one that is asked for. The
    sensitivity 2·R·√d/n is right; the multiplier √log(1/delta)/epsilon is too small. `means` keeps
    its promise, and has less noise besides.

    References
    ----------
    Cai, Wang and Zhang, "The cost of privacy", Annals of Statistics 2021.

    Examples
    --------
    >>> from dither import inference
    >>> rows = [[0.5] * 3] * 99
    >>> found = inference.truncated_mean_as_printed(rows, radius=1, epsilon=1, delta=1e-6)
    >>> round(float(found.loss.charge.epsilon), 3)
    1.148
    """
    asked = target(epsilon, delta, Neighbours.REPLACE)
    if asked.delta <= 0:
        raise ArgumentError("delta must be above 0: the noise is Gaussian")
    half = check.positive("radius", radius)
    values = matrix("rows", rows)
    n, d = values.shape
    bounds = around("radius", half)
    l2 = 2 * sqrt_upper(Fraction(d))
    multiplier = math.sqrt(-math.log(float(asked.delta))) / float(asked.epsilon)
    sigma2 = (l2 * Fraction(repr(multiplier))) ** 2
    noise = Gaussian(sigma2, Gaussian.for_loss(asked.epsilon, asked.delta, l2=l2, dimension=d).step)
    loss = noise.loss(l2=l2, dimension=d, neighbours=asked.neighbours)
    true = Fraction(loss.epsilon(float(asked.delta)))
    loss = loss.with_charge(Charge(true, asked.delta, loss.charge.rho))
    points = bounds.lattice(np.where(np.isnan(values), 0.0, values))
    exact = tuple(Fraction(exact_sum(points[:, j]), Bounds.steps) for j in range(d))
    rows_known = max(1, n)
    scale = float(half) / rows_known
    estimates = scale * np.array([float(v) for v in noise.release(exact)])
    spread = float(half) / math.sqrt(rows_known)

    return PrivateEstimate(
        "truncated mean with the noise as printed",
        loss,
        (
            "rows are an independent sample",
            "the mean is that of clamped numbers, whose deviation is at most the radius",
        ),
        (
            f"the noise is as printed ({_PRINTED}) for ε = {loss_text(asked.epsilon)}; it costs "
            f"ε = {loss_text(true)} at this δ, and that is what an account is charged.",
        ),
        tuple(f"x{j + 1}" for j in range(d)),
        estimates,
        n,
        partial(_simulated, estimates, spread, scale, noise.sigma),
    )


def _simulated(
    estimates: Floats,
    spread: float,
    scale: float,
    sigma: float,
    rng: np.random.Generator,
    size: int,
) -> SimulatedErrors:
    sampling = rng.standard_normal((size, len(estimates))) * spread
    noise = scale * rng.normal(0.0, sigma, (size, len(estimates)))
    return SimulatedErrors(estimates, sampling + noise, sampling)
