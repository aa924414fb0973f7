"""Sharing one promise among mechanisms so that the total error is least."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dither.accounting.calibrate import calibrate
from dither.errors import ArgumentError
from dither.privacy import Loss, compose
from dither.privacy.loss import number

__all__ = ["Split", "split"]


@dataclass(frozen=True, slots=True)
class Split:
    """Noise scales that together keep a promise.

    Parameters
    ----------
    scales : tuple of float
        One a mechanism.
    error : float
        Σ weight·scale², the weighted total variance up to each law's constant.
    loss : Loss
        The total, proved to keep the promise.
    """

    scales: tuple[float, ...]
    error: float
    loss: Loss


def split(
    makes: Sequence[Callable[[float], Loss]],
    *,
    epsilon: float,
    delta: float,
    weights: Sequence[float] | None = None,
    rounds: int = 3,
) -> Split:
    """The noise scales of least Σ weight·scale² whose losses together are (epsilon, delta)-DP.

    Parameters
    ----------
    makes : sequence of callable
        Each from a positive noise scale to a loss; more noise costs less.
    epsilon, delta : float
        The promise.
    weights : sequence of float, optional
        How much each mechanism's variance matters, above 0; equal unless told.
    rounds : int
        Passes over the ratios of the scales.

    Returns
    -------
    Split
        The composed loss was certified; that the split is the best rests on the search, which is
        exact for Gaussians alone and local otherwise.

    Notes
    -----
    For given ratios between the scales the common factor is calibrated exactly; each ratio is then
    moved in turn by golden sections. Gaussians alone are solved by scale_i ∝ weight_i^{-1/4}
    (minimise Σ w·s² at a fixed Σ 1/s²), which is where the search begins.

    Examples
    --------
    >>> from dither import privacy
    >>> best = split([privacy.gaussian, privacy.gaussian], epsilon=1.0, delta=1e-6,
    ...              weights=[1.0, 16.0])
    >>> round(best.scales[0] / best.scales[1], 3), best.loss.delta(1.0) <= 1e-6
    (2.0, True)
    """
    if not makes:
        raise ArgumentError("makes must hold at least one mechanism")
    given = [1.0] * len(makes) if weights is None else list(weights)
    if len(given) != len(makes):
        raise ArgumentError("weights must have one number for each mechanism")
    w = [number("weights", x, low=0, high=math.inf) for x in given]
    ratios = [x**-0.25 for x in w]

    def total(at: Sequence[float], t: float) -> Loss:
        return compose(*(make(t * r) for make, r in zip(makes, at, strict=True)))

    start = 1.0

    def scale(at: Sequence[float]) -> float:
        nonlocal start
        start = float(calibrate(lambda t: total(at, t), epsilon=epsilon, delta=delta, start=start))
        return start

    def error(at: Sequence[float]) -> float:
        t = scale(at)
        return math.fsum(x * (t * r) ** 2 for x, r in zip(w, at, strict=True))

    best, width = error(ratios), 0.7
    for _ in range(max(0, rounds) if len(makes) > 1 else 0):
        before = best
        for i in range(1, len(makes)):
            ratios[i], best = _golden(ratios, i, width, error, best)
        width /= 3
        if best > before * (1 - 1e-7):
            break
    t = scale(ratios)
    scales = tuple(t * r for r in ratios)
    return Split(
        scales, math.fsum(x * s * s for x, s in zip(w, scales, strict=True)), total(ratios, t)
    )


def _golden(
    ratios: list[float],
    i: int,
    width: float,
    error: Callable[[Sequence[float]], float],
    best: float,
) -> tuple[float, float]:
    """The best of some factors on ratio i, and its error."""
    part = (math.sqrt(5) - 1) / 2
    a, b, found = -width, width, (ratios[i], best)

    def at(x: float) -> float:
        nonlocal found
        tried = ratios[i] * math.exp(x)
        value = error([*ratios[:i], tried, *ratios[i + 1 :]])
        if value < found[1]:
            found = (tried, value)
        return value

    x, y = b - part * (b - a), a + part * (b - a)
    fx, fy = at(x), at(y)
    for _ in range(8):
        if fx <= fy:
            b, y, fy = y, x, fx
            x = b - part * (b - a)
            fx = at(x)
        else:
            a, x, fx = x, y, fy
            y = a + part * (b - a)
            fy = at(y)
    return found
