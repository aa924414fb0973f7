"""Intervals for ratios of noisy measurements, by Fieller's pivot.

Numerator N = Σ α_i·m_i and denominator D = Σ β_i·m_i of true measurements m_i that were released
as m_i + Z_i. For the true ratio theta = N/D the quantity N~ - theta·D~ = Σ (α_i - theta·β_i)·Z_i is
noise alone. So the set of all theta with ::

    |N~ - theta·D~| <= q(theta),   q(theta) the half-width of Σ (α_i - theta·β_i)·Z_i

holds the true ratio with the stated confidence, whatever N and D > 0 are: no normal approximation,
no condition that D be large. Where D~ is small against its own noise the set is unbounded; then
-inf and inf are returned, and the caller cuts them at what is publicly known.

Source. Fieller, "Some problems in interval estimation", Journal of the Royal Statistical Society B,
1954; here with the noises' own laws in place of Student's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._stats import EPS
from dither.mechanisms._combination import Floats, Noise, Term, half_width

__all__ = ["RatioTerm", "fieller", "ratio_interval", "shared_ratio_interval", "variance_interval"]

RatioTerm = tuple[float, float, Noise]
"""(α, β, noise): what a measurement's noise is multiplied by above and below the line."""

_Index = npt.NDArray[np.intp]
_Width = Callable[[Floats, _Index], Floats]
"""q at some thetas, and which groups (flattened) they are of."""

SIDE_BY_SIDE = 10_000
"""Groups of which all points of a grid are looked at in one go."""


def ratio_interval(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    noise_num: Noise,
    noise_den: Noise,
    confidence: float,
) -> tuple[Floats, Floats]:
    """The interval for a ratio of two measurements with independent noise, such as a mean.

    Parameters
    ----------
    numerator, denominator : arrays of one shape
        Noisy measurements, in the units of their noises. The true denominator is above 0.
    noise_num, noise_den : Noise
        Their noises.
    confidence : float
        In (0, 1).

    Returns
    -------
    lower, upper : arrays of float
        -inf and inf where the denominator is too small against its noise.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dither.mechanisms import DiscreteLaplace
    >>> low, high = ratio_interval([5000.0, 10.0], [100.0, 1.0], DiscreteLaplace(Fraction(100)),
    ...                            DiscreteLaplace(Fraction(2)), 0.95)
    >>> low.round(1), high.round(1)
    (array([ 46., -inf]), array([54.6,  inf]))
    """
    terms = [(1.0, 0.0, noise_num), (0.0, 1.0, noise_den)]
    return shared_ratio_interval(numerator, denominator, terms, confidence)


def shared_ratio_interval(
    numerator: npt.ArrayLike,
    denominator: npt.ArrayLike,
    terms: Sequence[RatioTerm],
    confidence: float,
) -> tuple[Floats, Floats]:
    """The interval for a ratio whose two sides may share measurements.

    Parameters
    ----------
    numerator, denominator : arrays of one shape
        Σ α_i·(m_i + Z_i) and Σ β_i·(m_i + Z_i). The true denominator is above 0.
    terms : sequence of (α, β, noise)
        Each measurement once.
    confidence : float
        In (0, 1).

    Returns
    -------
    lower, upper : arrays of float
        -inf and inf where the denominator is too small against its noise.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dither.mechanisms import DiscreteLaplace
    >>> noise = DiscreteLaplace(Fraction(2))
    >>> low, high = shared_ratio_interval(  # the share of one group among two
    ...     30.0, 100.0, [(1.0, 1.0, noise), (0.0, 1.0, noise)], 0.95)
    >>> round(float(low), 2), round(float(high), 2)
    (0.25, 0.35)
    """
    top, bottom = np.broadcast_arrays(
        np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    )
    confidence = check.confidence(confidence)

    def width(theta: Floats, _: _Index) -> Floats:
        return half_width([(a - theta * b, noise) for a, b, noise in terms], confidence)

    below: list[Term] = [(b, noise) for _, b, noise in terms]
    return fieller(top, bottom, width, half_width(below, confidence))


def variance_interval(
    count: npt.ArrayLike,
    total: npt.ArrayLike,
    squares: npt.ArrayLike,
    noises: tuple[Noise, Noise, Noise],
    confidence: float,
    *,
    mean_bounds: tuple[float, float],
    square_centre: float = 0.0,
) -> tuple[Floats, Floats]:
    """The interval for squares/count - (total/count)², the population variance of a group.

    Parameters
    ----------
    count, total, squares : arrays of one shape
        Noisy count, sum and sum of squares, in the units of their noises.
    noises : three Noise
        Of count, total and squares.
    confidence : float
        In (0, 1).
    mean_bounds : (float, float)
        Public bounds of the mean, in the units of ``total``.
    square_centre : float
        What was taken off each square before it was summed, to halve the sensitivity.

    Returns
    -------
    lower, upper : arrays of float
        The lower end is at least 0; the upper end at most the square of half the bounds' range
        (no values within the bounds have a larger variance).

    Notes
    -----
    For every m, (squares - 2m·total + m²·count)/count = variance + (mean - m)². At the true mean
    that is a ratio with an exact pivot. So half of the allowed error goes to an interval for the
    mean and half to that pivot, and the interval is the union over all m in the first. Its upper
    end is taken at the ends of the m-interval, its lower end along a grid of 9.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from dither.mechanisms import DiscreteLaplace
    >>> one, ten = DiscreteLaplace(Fraction(1)), DiscreteLaplace(Fraction(10))
    >>> low, high = variance_interval(1000.0, 5000.0, 29000.0, (one, ten, ten), 0.95,
    ...                               mean_bounds=(0.0, 10.0))
    >>> round(float(low), 2), round(float(high), 2)
    (3.62, 4.39)
    """
    n, s, t = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (count, total, squares)))
    # Half of the error for the mean, half for the pivot: a union bound.
    each = (1 + check.confidence(confidence)) / 2
    low, high = ratio_interval(s, n, noises[1], noises[0], each)
    low, high = (np.clip(end, *mean_bounds) for end in (low, high))
    lower, upper = np.full(n.shape, np.inf), np.full(n.shape, -np.inf)
    q_below = half_width([(1.0, noises[0]), (0.0, noises[1]), (0.0, noises[2])], each)
    grid = np.linspace(0.0, 1.0, 9)
    # All of the grid at once, unless there are many groups, which would fill the memory.
    for points in np.array_split(grid, 1 if n.size <= SIDE_BY_SIDE else grid.size):
        at = points.reshape(-1, *(1 for _ in n.shape))
        m = low + at * (high - low)

        def width(theta: Floats, where: _Index, m: Floats = m) -> Floats:
            here = m.ravel()[where]
            terms: list[Term] = [
                (here**2 - theta, noises[0]),
                (2 * here, noises[1]),
                (1.0, noises[2]),
            ]
            return half_width(terms, each)

        top = t - 2 * m * s + m**2 * n
        bottom = np.broadcast_to(n, top.shape)
        lower = np.minimum(lower, _end(top, bottom, width, q_below, -1.0).min(axis=0))
        ends = np.isin(points, (0.0, 1.0))
        if ends.any():
            m = m[ends]

            def outer(theta: Floats, where: _Index, m: Floats = m) -> Floats:
                return width(theta, where, m)

            highest = _end(top[ends], bottom[ends], outer, q_below, 1.0)
            upper = np.maximum(upper, highest.max(axis=0))
    # Squares less a constant shift every ratio, and so the variance, by that constant.
    lower, upper = lower + square_centre, upper + square_centre
    largest = ((mean_bounds[1] - mean_bounds[0]) / 2) ** 2
    return np.asarray(np.clip(lower, 0.0, largest)), np.asarray(np.clip(upper, 0.0, largest))


def fieller(top: Floats, bottom: Floats, width: _Width, below: Floats) -> tuple[Floats, Floats]:
    """Both ends of {theta : |top - theta·bottom| <= width(theta)}."""
    return (
        _end(top, bottom, width, below, -1.0),
        _end(top, bottom, width, below, 1.0),
    )


def _end(top: Floats, bottom: Floats, width: _Width, below: Floats, sign: float) -> Floats:
    """One end of the set, infinite where the set is unbounded.

    The set holds top/bottom. It is bounded iff bottom exceeds ``below``, the slope of width(theta)
    for large |theta|. The end is the zero of excess(distance) = distance·bottom - width(theta),
    bracketed by doubling, then found by false position (the Illinois rule), with bisection in every
    third step since ``width`` jumps where the coarser of two steps changes. Groups leave the search
    one by one, which no search of one number does. The outer end of the bracket is kept, which lies
    outside the set: there the excess is at least 0 after more is taken from it than its two
    products and their difference round by.
    """
    shape, top, bottom = top.shape, top.ravel(), bottom.ravel()
    end = np.full(top.shape, sign * np.inf)
    # So close to unbounded an end is called infinite, which is wide of it.
    where = np.flatnonzero(bottom > below * (1 + 1e-9))
    centre = top[where] / bottom[where]

    def excess(distance: Floats) -> Floats:
        return distance * bottom[where] * (1 - 16 * EPS) - width(centre + sign * distance, where)

    near = np.zeros(where.shape)
    at_near = excess(near)
    far = -at_near / bottom[where]
    at_far = excess(far)
    for _ in range(200):
        inside = at_far < 0
        if not inside.any():
            break
        near, at_near = np.where(inside, far, near), np.where(inside, at_far, at_near)
        far = np.where(inside, 2 * far, far)
        at_far = excess(far)
    side, beyond = np.zeros(where.shape), at_far
    for step in range(200):
        # Close enough: the bracket, or the pivot itself (``beyond`` is the excess at ``far``). How
        # close decides how wide an interval is, and not whether it holds.
        done = (far - near <= 1e-10 * far) | (beyond <= 1e-10 * far * bottom[where])
        end[where[done]] = centre[done] + sign * far[done]
        if done.all():
            break
        left, where = ~done, where[~done]
        centre, near, at_near, far, at_far, side, beyond = (
            values[left] for values in (centre, near, at_near, far, at_far, side, beyond)
        )
        part = 0.5 if step % 3 == 2 else at_far / (at_far - at_near)
        middle = far - part * (far - near)
        found = excess(middle)
        out = found >= 0
        again = np.where(out, 1.0, -1.0) == side
        side = np.where(out, 1.0, -1.0)
        at_near = np.where(out, np.where(again, at_near / 2, at_near), found)
        at_far = np.where(out, found, np.where(again, at_far / 2, at_far))
        near, far = np.where(out, near, middle), np.where(out, middle, far)
        beyond = np.where(out, found, beyond)
    end[where] = centre + sign * far
    return end.reshape(shape)
