"""Sharing one promise among mechanisms by their noise, so that the total error is least.

Where `divide` gives each mechanism an (epsilon, delta), and a theorem adds those up, here the
mechanisms themselves are composed: what a Gaussian's noise costs beside a Laplace's is then as
exact as `dither.privacy.Loss` is, and nothing is lost in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from dither import _checks as check
from dither._format import Printable
from dither.errors import ArgumentError
from dither.privacy import Loss, compose
from dither.privacy.division._descent import (
    Array,
    DivisionRequest,
    largest_factor,
    least,
    log_ratio,
)
from dither.privacy.division._saddle import LossSaddle, moments_known

__all__ = ["Split", "split", "split_groups"]


_STEP = 1e-4


@dataclass(frozen=True, slots=True)
class Split(Printable):
    """Noise scales that together keep a promise.

    Parameters
    ----------
    scales : tuple of float
        One a mechanism.
    error : float
        The sum of the errors: Σ weight·scale² unless errors were given.
    loss : Loss
        The total, proved to keep the promise.
    """

    scales: tuple[float, ...]
    error: float
    loss: Loss

    def summary(self) -> str:
        """The division as a table."""
        lines = [f"total error {self.error:.6g}"]
        lines += [f"  {i:>3}  scale {s:.6g}" for i, s in enumerate(self.scales, 1)]
        return "\n".join(lines)


def split(
    makes: Sequence[Callable[[float], Loss]],
    *,
    epsilon: float,
    delta: float,
    weights: Sequence[float] | None = None,
    errors: Sequence[Callable[[float], float]] | None = None,
) -> Split:
    """The noise scales of least total error whose losses together are (epsilon, delta)-DP.

    Parameters
    ----------
    makes : sequence of callable
        Each from a positive noise scale to a loss; more noise costs less. The same function listed
        twice, with the same weight and error, gets the same scale twice.
    epsilon, delta : float
        The promise: above 0, and in [0, 1); 0 where all losses are pure.
    weights : sequence of float, optional
        How much each mechanism's error matters, above 0; equal by default.
    errors : sequence of callable, optional
        Each from a noise scale to an error that grows with it; scale² by default.

    Returns
    -------
    Split
        The composed loss was certified. That the split is the best rests on the search, which is
        exact for Gaussians alone and local otherwise.

    Raises
    ------
    ArgumentError
        An argument is out of range, or no common factor of the scales keeps the promise.

    Notes
    -----
    Log-scales descend together along the boundary of the promise (`_descent`), whose
    slopes come from a saddle point; the common factor at the end is certified, to about 1e-8.
    Twenty different mechanisms take well under a second, except sampled Gaussians. Gaussians
    alone have scale_i ∝ weight_i^{-1/4} (minimise Σ w·s² at a fixed Σ 1/s²).

    Examples
    --------
    >>> from dither import privacy
    >>> best = split([privacy.gaussian, privacy.gaussian], epsilon=1.0, delta=1e-6,
    ...              weights=[1.0, 16.0])
    >>> round(best.scales[0] / best.scales[1], 3), best.loss.delta(1.0) <= 1e-6
    (2.0, True)
    """
    of = "functions of a noise scale"
    functions = check.listed("makes", makes, of)
    k = len(functions)
    given = [1.0] * k if weights is None else check.listed("weights", weights, "numbers")
    wanted = [_square] * k if errors is None else check.listed("errors", errors, of)
    if len(given) != k or len(wanted) != k:
        raise ArgumentError("weights and errors must have one entry for each mechanism")
    if not all(callable(f) for f in (*functions, *wanted)):
        raise ArgumentError("makes and errors must be functions of a noise scale")
    w = [check.number("weights", x, above=0) for x in given]
    distinct: list[tuple[Callable[[float], Loss], Callable[[float], float], float]] = []
    places = []
    for key in zip(functions, wanted, w, strict=True):
        if key not in distinct:
            distinct.append(key)
        places.append(distinct.index(key))
    scales, error, loss = split_groups(
        [make for make, _, _ in distinct],
        [partial(_weighted, f, x) for _, f, x in distinct],
        [places.count(i) for i in range(len(distinct))],
        epsilon=epsilon,
        delta=delta,
    )
    return Split(tuple(scales[i] for i in places), error, loss)


def split_groups(
    makes: Sequence[Callable[[float], Loss]],
    errors: Sequence[Callable[[float], float]],
    counts: Sequence[int],
    *,
    epsilon: float,
    delta: float,
) -> tuple[list[float], float, Loss]:
    """Scales, error and loss of ``counts[i]`` mechanisms of each kind, one scale a group."""
    e = check.number("epsilon", epsilon, above=0, rounding="down")
    d = check.number("delta", delta, least=0, below=1, rounding="down")
    n = np.array(counts, dtype=float)
    m = len(n)

    def composed(levels: Sequence[float]) -> Loss:
        return compose(*(c * make(x) for make, x, c in zip(makes, levels, counts, strict=True)))

    taken = [lambda x, _, f=f: f(x) for f in errors]
    none = np.zeros(m, dtype=bool)
    total = _total(makes, composed, n, e, d)
    problem = DivisionRequest(taken, n, total, e, 0.0, none, slack=False, step=_STEP)
    levels = least(problem, np.full(m, math.sqrt(float(n.sum())) / e)).levels

    def over(factor: float) -> float:
        loss = composed((levels / factor).tolist())
        if d == 0:
            return log_ratio(loss.epsilon(0.0).upper, e)
        # The upper end: what is returned keeps the promise by a certified bound.
        return log_ratio(loss.delta(e).upper, d)

    scales = (levels / largest_factor(over)).tolist()
    error = math.fsum(c * f(x) for f, x, c in zip(errors, scales, counts, strict=True))
    return scales, error, composed(scales)


def _total(
    makes: Sequence[Callable[[float], Loss]],
    composed: Callable[[Sequence[float]], Loss],
    counts: Array,
    epsilon: float,
    delta: float,
) -> Callable[[Array, float], float]:
    """The search's epsilon: by a saddle point, or the exact one where moments are not known."""

    def exact(levels: Array, _: float) -> float:
        return float(composed(levels.tolist()).epsilon(delta))

    # A pure promise has no saddle point, and some losses no moments that are quick.
    if delta == 0 or not all(moments_known(make(1.0)) for make in makes):
        return exact
    return LossSaddle(makes, counts, epsilon, delta).total


def _square(scale: float) -> float:
    return scale * scale


def _weighted(error: Callable[[float], float], weight: float, scale: float) -> float:
    return weight * float(error(scale))
