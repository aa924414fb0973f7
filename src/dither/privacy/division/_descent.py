"""The least of a sum of errors where a promise is just kept: quasi-Newton steps on its boundary.

Wanted are levels x_i (epsilons or noise scales) and shares of delta with ::

    minimise  Σ n_i·error_i(x_i, delta_i)   such that   total(x, slack) <= promise,
              Σ n_i·delta_i + slack = delta

Everything is searched in logarithms. Moving all log-levels by one amount, the boundary is found by
bracketing; what is left has a gradient that follows from the boundary's own (if G = log total -
log promise, a step dz drags the common amount by -dG/(the sum of G's slopes in the levels)), and
the method of Broyden, Fletcher, Goldfarb and Shanno descends along it. Slopes are differences.

All of this is floating point: it decides how good a division is. That a division keeps its promise
is checked elsewhere, by the theorem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

__all__ = ["Array", "BoundaryPoint", "DivisionRequest", "largest_factor", "least"]


Array = npt.NDArray[Any]

_STEP = 1e-4
"""Of a difference in a logarithm."""

_ROUNDS = 60
_FAR = 1.5
"""The longest step, in a logarithm."""

_CLOSE = 1e-10
"""Of a logarithm to the boundary: of the search, as are all widths here. Who divides asks the
theorem or the loss itself whether what was found keeps the promise."""

_SETTLED = 1e-8
"""Relative gain below which two steps in a row end the search."""


@dataclass(frozen=True, slots=True)
class DivisionRequest:
    """What is divided.

    Parameters
    ----------
    errors : sequence of callable
        One a group, from (level, delta) to an error.
    counts : array, shape (m,)
        Mechanisms a group.
    total : callable
        From levels, shape (m,), and slack to what the promise bounds; monotone in all levels.
    promise : float
        The bound, above 0.
    delta : float
        What deltas and slack share; 0 where there is none.
    uses : array of bool, shape (m,)
        Which groups have a share of delta.
    slack : bool
        Whether the theorem has one.
    step : float
        Of a difference in a log-level: larger where `total` is only known in part.
    """

    errors: Sequence[Callable[[float, float], float]]
    counts: Array
    total: Callable[[Array, float], float]
    promise: float
    delta: float
    uses: Array
    slack: bool
    step: float = _STEP

    def error(self, levels: Array, deltas: Array) -> float:
        """The sum of the errors."""
        return math.fsum((self.counts * self.each(levels, deltas)).tolist())

    def each(self, levels: Array, deltas: Array) -> Array:
        """Every group's error."""
        values = [
            float(f(x, d))
            for f, x, d in zip(self.errors, levels.tolist(), deltas.tolist(), strict=True)
        ]
        if not all(math.isfinite(v) and v > 0 for v in values):
            raise ArgumentError(
                "errors must give finite numbers above 0 for every part of the promise"
            )
        return np.array(values)

    def shares(self, y: Array) -> tuple[Array, float]:
        """Deltas and slack at log-weights."""
        # Less the largest, so that no weight overflows.
        weights = np.where(self.uses, np.exp(y - max(float(y.max()), 0.0)), 0.0)
        free = math.exp(-max(float(y.max()), 0.0)) if self.slack else 0.0
        whole = float((self.counts * weights).sum()) + free
        if whole <= 0:
            return np.zeros_like(weights), 0.0
        # Room for the rounding of the shares' sum, which is checked exactly where it is promised.
        unit = self.delta * (1 - 1e-14) / whole
        return weights * unit, free * unit


@dataclass(frozen=True, slots=True)
class BoundaryPoint:
    """Levels on the boundary, deltas and slack."""

    levels: Array
    deltas: Array
    slack: float
    error: float


def least(wanted: DivisionRequest, levels: Array, weights: Array | None = None) -> BoundaryPoint:
    """Descend from levels, shape (m,), and log-weights of delta (equal by default)."""
    m = len(levels)
    y = np.zeros(m) if weights is None else weights
    x, error = _settled(wanted, np.log(levels), y)
    slope = _slope(wanted, x, y)
    inverse, idle = np.eye(2 * m) * 0.2, 0
    for _ in range(_ROUNDS):
        # Flat enough: shares are only sought here, and held by their theorems or losses later.
        if not np.abs(slope).max() > 1e-9 * error:
            break
        # Errors are divided out, so that a step of 1 means the same at every size of error.
        way = -(inverse @ (slope / error))
        # No way down: what was learnt of the curvature is forgotten.
        if way @ slope >= 0:
            inverse, way = np.eye(2 * m) * 0.2, -0.2 * slope / error
        # Slopes say little of what is far from where they were taken.
        way *= min(1.0, _FAR / float(np.abs(way).max()))
        moved = _searched(wanted, x, y, way, error, float(way @ slope))
        if moved is None:
            break
        x_after, y_after, error_after = moved
        # Levels move together freely; that part of the step explains nothing.
        shift = x_after - x
        step = np.concatenate([shift - shift.mean(), y_after - y])
        after = _slope(wanted, x_after, y_after)
        inverse = _updated(inverse, step, after / error_after - slope / error)
        idle = idle + 1 if error_after > error * (1 - _SETTLED) else 0
        x, y, error, slope = x_after, y_after, error_after, after
        if idle >= 2:
            break
    deltas, slack = wanted.shares(y)
    return BoundaryPoint(np.exp(x), deltas, slack, error)


def _searched(
    wanted: DivisionRequest, x: Array, y: Array, way: Array, error: float, fall: float
) -> tuple[Array, Array, float] | None:
    """A step along the way that gains enough; None where none does."""
    m, size = len(x), float(np.abs(way).max())

    def tried(length: float) -> tuple[Array, Array, float]:
        y_after = y + length * way[m:]
        x_after, after = _settled(wanted, x + length * way[:m], y_after)
        return x_after, y_after, after

    length = 1.0
    for _ in range(12):
        found = tried(length)
        if found[2] <= error + 1e-4 * length * fall:
            break
        # Too far: the fall that was promised is not there yet.
        length /= 3
    else:
        return None
    # Where the error bends downwards no curvature tells how far to go: as far as it pays.
    while length >= 1 and 3 * length * size <= _FAR:
        further = tried(3 * length)
        if further[2] > min(found[2], error + 0.3 * 3 * length * fall):
            break
        found, length = further, 3 * length
    return found


def _updated(inverse: Array, step: Array, change: Array) -> Array:
    """The inverse Hessian that explains the last change of slope."""
    along = float(step @ change)
    # A curvature that rounding alone may have made explains nothing.
    if along <= 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
        return inverse
    part = np.eye(len(step)) - np.outer(step, change) / along
    result: Array = part @ inverse @ part.T + np.outer(step, step) / along
    return result


def _settled(wanted: DivisionRequest, x: Array, y: Array) -> tuple[Array, float]:
    """The log-levels moved together onto the boundary, and the error there."""
    deltas, slack = wanted.shares(y)
    goal = math.log(wanted.promise)

    def over(t: float) -> float:
        value = wanted.total(np.exp(x + t), slack)
        # A total that is not finite counts as far above the promise.
        return math.log(max(value, 1e-300)) - goal if math.isfinite(value) else 1e3

    a, fa = 0.0, over(0.0)
    slope = (over(1e-3) - fa) / 1e-3 or 1.0
    b = -max(-3.0, min(3.0, fa / slope)) * 1.05
    fb = over(b) if b else fa
    for _ in range(60):
        if (fa <= 0) != (fb <= 0) or fa == 0:
            break
        a, fa, b = b, fb, b + 1.6 * (b - a)
        fb = over(b)
    else:
        raise ArgumentError("no division reaches the promise; is an error or a loss monotone?")
    # Not by `false_position`, as either end may be the one that is over, and a value that is close
    # ends it: the boundary is sought again at every step of the descent.
    side = 0
    for _ in range(60):
        if abs(b - a) <= _CLOSE or abs(fa) <= _CLOSE:
            break
        c = a - fa * (b - a) / (fb - fa)
        fc = over(c)
        if (fc <= 0) == (fb <= 0):
            b, fb, fa = c, fc, fa / 2 if side == 1 else fa
            side = 1
        else:
            a, fa, fb = c, fc, fb / 2 if side == -1 else fb
            side = -1
        if abs(fc) <= _CLOSE:
            a = c
            break
    moved = x + a
    return moved, wanted.error(np.exp(moved), deltas)


def _slope(wanted: DivisionRequest, x: Array, y: Array) -> Array:
    """The error's slope along the boundary, in log-levels and log-weights."""
    deltas, slack = wanted.shares(y)
    levels, h = np.exp(x), _STEP
    up, down = math.exp(h), math.exp(-h)
    in_level = wanted.each(levels * up, deltas) - wanted.each(levels * down, deltas)
    in_level = wanted.counts * in_level / (2 * h)
    in_delta = np.zeros_like(in_level)
    if wanted.uses.any():
        in_delta = wanted.each(levels, deltas * up) - wanted.each(levels, deltas * down)
        in_delta = np.where(wanted.uses, wanted.counts * in_delta / (2 * h), 0.0)
    total_level, total_slack = _total_slopes(wanted, levels, slack)
    drag = float(in_level.sum()) / float(total_level.sum())
    # log delta_j = y_j - log S and log slack = -log S, with S the sum of the weights.
    part = wanted.counts * deltas / wanted.delta if wanted.delta > 0 else np.zeros_like(deltas)
    in_weight = in_delta - part * float(in_delta.sum()) + drag * part * total_slack
    return np.concatenate([in_level - drag * total_level, np.where(wanted.uses, in_weight, 0.0)])


def _total_slopes(wanted: DivisionRequest, levels: Array, slack: float) -> tuple[Array, float]:
    """Slopes of log total in the log-levels, and in log slack."""
    h = wanted.step
    here = math.log(wanted.total(levels, slack))
    slopes = np.zeros_like(levels)
    for i in range(len(levels)):
        moved = levels.copy()
        moved[i] *= math.exp(h)
        slopes[i] = (math.log(wanted.total(moved, slack)) - here) / h
    in_slack = 0.0
    if slack > 0 and wanted.uses.any():
        in_slack = (math.log(wanted.total(levels, slack * math.exp(h))) - here) / h
    return slopes, in_slack


def log_ratio(value: float, goal: float) -> float:
    """log(value/goal), with the sign that the numbers themselves have."""
    found = math.log(max(value, 1e-300) / goal)
    # A logarithm may round a small excess away: the comparison decides.
    return max(found, 5e-324) if value > goal else min(found, 0.0)


def largest_factor(over: Callable[[float], float]) -> float:
    """To about 1e-8 the largest factor at which ``over`` is at most 0, expected near 1.

    Not by `false_position`: it looks for its bracket on both sides of 1 and stops where the value
    itself is within 1e-9, as each asks a whole loss.
    """
    low, high, step = 0.0, math.inf, 2e-3
    at, value = 1.0, over(1.0)
    f_low, f_high, side = -1.0, 1.0, 0
    for _ in range(80):
        if value <= 0:
            low, f_low, f_high, side = at, value, f_high / 2 if side < 0 else f_high, -1
        else:
            high, f_high, f_low, side = at, value, f_low / 2 if side > 0 else f_low, 1
        if low == 0.0:
            at, step = high * (1 - min(step, 0.5)), 4 * step
        elif high == math.inf:
            at, step = low * (1 + step), 4 * step
        elif high - low <= 1e-8 * high or f_low > -1e-9:  # as above; `low` has been asked
            break
        else:
            part = min(max(-f_low / (f_high - f_low), 1e-3), 1 - 1e-3)
            at = low + part * (high - low)
        value = over(at)
    if low == 0.0:
        raise ArgumentError("no factor of these parts keeps the promise; is delta too small?")
    return low
