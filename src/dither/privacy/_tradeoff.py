"""The trade-off of an attacker's errors: the dual of a profile.

The largest rate of true alarms is the least value of a convex function, which is known by bounds at
points.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dither.privacy._side import Composed, Side, one_delta
from dither.privacy.laws.term import EPS

__all__ = ["one_tpr"]


_FAR = 700.0
"""Thresholds beyond which e^epsilon leaves the doubles."""


def one_tpr(
    loss: Composed, this: Side, fpr: float, starts: dict[bool, float]
) -> tuple[float, float, str]:
    """Bounds of the largest Pr[reject | P] of a test with Pr[reject | Q] <= fpr, in one direction.

    The least over y = e^e > 0 of f(y) = delta(e) + y·fpr, which is convex in y. ``starts`` keeps, a
    direction, where the best test's threshold was, for the next loss like it.
    """
    if fpr == 0:
        # No false alarm at all: only what the other law never gives is evidence.
        return max(0.0, this.infinite_lower), min(1.0, this.least), "the chance of infinite loss"
    # At y = 0 delta is 1: a test that always rejects.
    seen: list[tuple[float, float, float]] = [(0.0, 1.0, 1.0)]

    def value(e: float, near: float) -> float:
        low, high, _ = one_delta(loss, this, e, near=near)
        y = math.exp(e)
        # A unit in the exponential's last place, and half a unit each of three operations.
        off = 4 * EPS
        seen.append((y, (low + y * fpr) * (1 - off), (high + y * fpr) * (1 + off)))
        return seen[-1][2]

    def bounds() -> tuple[float, float]:
        low, high = dual(seen, fpr)
        # A rate is at most 1, whatever points were asked.
        high = min(1.0, high)
        return max(0.0, min(low, high), this.infinite_lower), high

    top = min(this.top + 1.0, 1.0 - math.log(fpr), _FAR)
    near, best = smallest(value, top, starts.get(this.removal, 0.0))
    starts[this.removal] = best
    # Points close by, for lines that are nearly tangents; any serve.
    for width in (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.5):
        value(best - width, near)
        value(best + width, near)
    # Beyond the last of these f, which is at least y·fpr, exceeds what was found.
    far = math.log(min(row[2] for row in seen)) - math.log(fpr) + 1e-9
    for e in np.linspace(best, min(far, _FAR), 9)[1:].tolist():
        value(e, near)
    low, high = bounds()
    # The gap that the engine's own width leaves is closed by no further point.
    own = min(row[2] - row[1] for row in sorted(seen, key=lambda row: row[2])[:3])
    # From here on points are only sought for; any of them serve.
    if high - low > max(1e-10 * high, 3 * own):
        # An atom makes a kink there; sections close in on it, with what was made for nearby.
        section(lambda e: value(e, near), best - 0.01, best + 0.01, 70)
        low, high = bounds()
    if high - low > max(1e-9 * high, 3 * own) and near != best:
        section(lambda e: value(e, best), best - 0.01, best + 0.01, 70)
        low, high = bounds()
    return low, high, "dual of the profile"


def dual(seen: list[tuple[float, float, float]], fpr: float) -> tuple[float, float]:
    """Bounds of the least value of a convex f, f(y) >= y·fpr, that is known to lie between ends.

    Right of a point f is above the line through it and any point on its left, and left of a point
    above the line through it and any point on its right. So between two neighbours it is above the
    larger of two lines, whose least value is where they cross or at an end. Any points serve, so
    those that are known badly are left out as well, and the better answer holds.
    """
    widths = np.array([high - low for _, low, high in seen])
    # Which points are left out decides how close the answer is, and not whether it holds.
    limit = max(1e-6 * float(min(high for _, _, high in seen)), 10 * float(np.median(widths)))
    sharp = [row for row, width in zip(seen, widths.tolist(), strict=True) if width <= limit]
    found, least = _dual(seen, fpr)
    return max(found, _dual(sharp, fpr)[0]), least


def _dual(seen: list[tuple[float, float, float]], fpr: float) -> tuple[float, float]:
    y, low, high = (np.array(column) for column in zip(*sorted(set(seen)), strict=True))
    least = float(high.min())
    # A y that is off by EPS of itself moves f by EPS·y·|f'|. By convexity -y·f' is at most twice
    # what f falls by from y/2, or from a point left of it; and f' is at most fpr.
    smaller = np.searchsorted(y, y / 2, side="right") - 1
    moved = EPS * (2 * np.maximum(high[smaller] - low, 0.0) + high)
    low, high = low - moved, high + moved
    # Of points that all but coincide one does: slopes between them are noise.
    apart = np.flatnonzero(np.diff(y, prepend=-1.0) > 1e-12 * y)
    y, low, high = y[apart], low[apart], high[apart]
    n = len(y)
    with np.errstate(divide="ignore", invalid="ignore"):
        # slope[i, j]: of the lowest line from the upper end at j to the lower end at i.
        slope = (low[:, None] - high[None, :]) / (y[:, None] - y[None, :])
    before, after = np.tri(n, k=-1, dtype=bool), ~np.tri(n, dtype=bool)
    rise = np.where(before, slope, -np.inf).max(axis=1)
    fall = np.where(after, slope, np.inf).min(axis=1)
    gap = y[1:] - y[:-1]
    left, right = low[:-1], low[1:]
    up, down = rise[:-1], fall[1:]
    # max(left + up·x, right - down·(gap - x)) on 0 <= x <= gap.
    lines = [(left, up, np.zeros(n - 1)), (right, down, gap)]

    def larger(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        with np.errstate(invalid="ignore"):
            each = [np.nan_to_num(v + k * (x - at), nan=-np.inf) for v, k, at in lines]
        return np.asarray(np.maximum(*each))

    with np.errstate(divide="ignore", invalid="ignore"):
        cross = (right - down * gap - left) / (up - down)
    cross = np.where(np.isfinite(cross), np.clip(cross, 0.0, gap), 0.0)
    ends = np.minimum(larger(np.zeros(n - 1)), larger(gap))
    # Where they cross both are the same; the flatter one is hurt less by how the place is rounded.
    with np.errstate(invalid="ignore"):
        a, b = (np.asarray(v + k * (cross - at)) for v, k, at in lines)
        flatter = np.where(np.abs(up) < np.abs(down), a, b)
    inside = (cross > 0) & (cross < gap) & np.isfinite(flatter)
    between = np.minimum(ends, np.where(inside, flatter, larger(cross)))
    # A slope has 3 roundings, a line's value 3 more, each of at most what the line falls by, which
    # is at most its end. Where lines cross is off by 8 of them over the slopes' difference.
    between = between - 8 * EPS * np.maximum(high[:-1], high[1:])
    # Right of the last point: the line upwards, or y·fpr.
    last = low[-1] if rise[-1] >= 0 else float(y[-1]) * fpr
    return float(min(between.min(), last * (1 - EPS))), least


def smallest(
    f: Callable[[float, float], float], top: float, start: float = 0.0
) -> tuple[float, float]:
    """(near, e): a near-minimiser e of a unimodal f(e, near), and the place it was found from.

    f may be asked at e by means of what was made for a place near by, which costs little; a new
    place costs much. So the walk goes by growing steps from ``start``, three values a place.
    """
    at, step = min(start, top), 0.5
    low, high = -60.0, top
    # Points are only sought: any of them gives true bounds.
    for _ in range(24):
        left, here, right = (f(min(max(at + d, low), high), at) for d in (-step, 0.0, step))
        if here <= left and here <= right:
            if step <= 0.5:
                break
            step = max(step / 4, 0.5)
        elif left < right:
            high, at = at, max(at - step, low)
            step *= 2
        else:
            low, at = at, min(at + step, high)
            step *= 2
        if high - low <= 1.0:
            at = (low + high) / 2
            break
        step = min(step, (high - low) / 2)
    for _ in range(12):
        # Away from its place an answer is sound and loose, so the place follows what it found.
        near = at
        at = section(lambda e, near=near: f(e, near), near - 0.6, min(near + 0.6, top), 18)  # type: ignore[misc]
        if abs(at - near) < 0.05:
            break
    return near, section(lambda e: f(e, near), at - 0.02, min(at + 0.02, top), 26)


def section(f: Callable[[float], float], a: float, b: float, steps: int) -> float:
    """Golden sections of an interval."""
    ratio = (math.sqrt(5) - 1) / 2
    x, y = b - ratio * (b - a), a + ratio * (b - a)
    fx, fy = f(x), f(y)
    for _ in range(steps):
        # Two neighbouring doubles.
        if b - a <= 4e-16 * max(abs(a), abs(b)):
            break
        if fx <= fy:
            b, y, fy = y, x, fx
            x = b - ratio * (b - a)
            fx = f(x)
        else:
            a, x, fx = x, y, fy
            y = a + ratio * (b - a)
            fy = f(y)
    return (a + b) / 2
