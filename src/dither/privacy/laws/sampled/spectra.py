"""Sums Σ_j w_j·e^{iu·l_j} of many kinds at u = 0, s, 2s, ..., through a grid of losses.

With N places of spacing 2·pi/(N·s), on which losses come round as the sums do, each weight is
spread to the places around its loss in parts of e^{-2·pi²·x²/A}, x its distance in spacings. The
transform of that is, by Poisson summation ::

    Σ_j w_j·e^{iu·l_j}·sqrt(A/(2·pi))·Σ_m e^{-A·(r - m)²/2 + i·(turn of modulus 1)},   u = r·N·s

whose summand of m = 0 is divided out. At r <= 1/8 all others are below 1.01·e^{-3A/8} of it, and
what places further than 13 spacings would have got is below 2.2·e^{-2·pi²·13.5²/A + A/128} of the
weights' sum, over sqrt(A/(2·pi)) (Greengard and Lee, "Accelerating the nonuniform fast Fourier
transform", SIAM Review 2004).
"""

from __future__ import annotations

import math

import numpy as np

from dither.privacy.laws.term import EPS, SHORT, Array, Complex, log_of

__all__ = ["layers_of_kinds", "logs_of_kinds", "turned_kinds"]


_A = 92.0
_REACH = 13
_CUT = 1.2e-15
"""More than both bounds above: e^-34.5 and, of 2.2·e^{-39.1 + .72}/3.8, 1.4e-17."""

_OVER = 8
"""Places for each u: r is at most 1/8."""

_RUNS = 1e5
"""Repetitions up to which an error that is no part of a small sum may count as often."""

_LEVELS = 12
"""Level sets of a density."""

_HELD = 1 << 20
"""Numbers that are held at once."""

_PRODUCT = 1 << 15
"""Multiplications of one product of matrices."""


def logs_of_kinds(
    losses: Array, weights: Array, u: Array, counts: Array
) -> tuple[Complex, Array, Array]:
    """Logarithms of Σ weights·e^{i·u·losses} of each kind, the sums' moduli, and an error of sums.

    Parameters
    ----------
    losses, weights : array, shape (n, nodes)
        Of each kind weights add up to 1.
    u : array, shape (m,)
        0, s, 2s, ...
    counts : array, shape (n,)
        How often each kind runs, and its error counts.

    Returns
    -------
    logs : array, shape (n, m)
    moduli : array, shape (n, m)
    error : array, shape (n, m) or ()
        Beside roundings of angles, by 6·EPS of themselves, and of weights and of summands
        w·(e^{iul} - 1) by as many times EPS as there are nodes, and 150 more.
    """
    if float(counts.sum()) > _RUNS:
        # What such sums err by is a part of each w·(e^{iul} - 1), and none of 1.
        change = turned_kinds(losses, weights, u)
        return log_of(change), np.abs(1.0 + change), 4 * EPS * np.abs(change)
    found, error = _spread(losses, weights, u)
    modulus = np.abs(found)
    return np.log(np.where(modulus > 1e-300, found, 1e-300)), modulus, np.array(error)


def _spread(losses: Array, weights: Array, u: Array) -> tuple[Complex, float]:
    kinds, nodes = losses.shape
    # A power of 2, or three quarters of one.
    size = 1 << max(6, math.ceil(math.log2(_OVER * len(u))))
    size = size // 4 * 3 if size // 4 * 3 >= _OVER * len(u) else size
    step = float(u[1]) if len(u) > 1 else 0.0
    found = np.zeros((kinds, len(u)), dtype=complex)
    m = np.arange(-_REACH, _REACH + 1)
    fixed = np.exp(-2 * math.pi**2 / _A * m * m)
    ratio = np.arange(len(u)) / size
    scale = np.exp(_A / 2 * ratio * ratio) / math.sqrt(_A / (2 * math.pi))
    rows = max(1, _HELD // max(len(m) * nodes, size))
    for first in range(0, kinds, rows):
        some = slice(first, first + rows)
        place = losses[some] * (step * size / (2 * math.pi))
        near = np.rint(place)
        away = place - near
        start = np.remainder(near, size).astype(np.int64)
        # e^{-2·pi²(m - d)²/A} as a factor of each node, powers of another, and one of each m.
        part = np.empty((len(m), *start.shape))
        power = np.exp(4 * math.pi**2 / _A * away)
        part[0] = weights[some] * np.exp(-2 * math.pi**2 / _A * away * (away + 2 * _REACH))
        for i in range(1, len(m)):
            np.multiply(part[i - 1], power, out=part[i])
        part *= fixed[:, None, None]
        # Each kind has places of its own, and as many more on either side, which come round.
        wide = size + 2 * _REACH
        own = np.arange(len(start))[:, None] * wide + start
        at = own + np.arange(len(m))[:, None, None]
        whole = np.bincount(at.ravel(), part.ravel(), len(start) * wide).reshape(-1, wide)
        grid = whole[:, _REACH : _REACH + size]
        grid[:, -_REACH:] += whole[:, :_REACH]
        grid[:, :_REACH] += whole[:, _REACH + size :]
        found[some] = np.conj(np.fft.rfft(grid, axis=1)[:, : len(u)]) * scale
    # Of the weights' sum: a share has 4 exponentials and products and up to 26 powers; a place adds
    # all nodes at most; each of log2(N) steps of a transform 8 units of what it adds up. The
    # division makes 2.1 of each.
    error = _CUT + EPS * (2.1 * (80 + 27 + nodes + 8 * math.log2(size)) + 16)
    return found, error


def _less_one(angle: Array) -> Complex:
    """e^{i·angle} - 1."""
    half = np.sin(angle / 2)
    result: Complex = -2 * half * half + 1j * np.sin(angle)
    return result


def turned_kinds(losses: Array, weights: Array, u: Array) -> Complex:
    """Σ weights·(e^{i·u·losses} - 1) of each kind, u = 0, s, 2s, ...: `term.turned` in blocks."""
    block = max(1, math.isqrt(len(u)))
    step = float(u[1]) if len(u) > 1 else 0.0
    fine = (step * np.arange(block))[None, :, None]
    coarse = (step * block * np.arange(-(-len(u) // block)))[None, :, None]
    value = np.zeros((len(losses), coarse.shape[1], block), dtype=complex)
    # Products that one thread does by itself: see `term`.
    rows = max(1, _PRODUCT // (min(SHORT, losses.shape[1]) * block))
    for first in range(0, losses.shape[1], SHORT):
        loss = losses[:, None, first : first + SHORT]
        weight = weights[:, None, first : first + SHORT]
        own = _less_one(fine * loss) * weight
        outer = _less_one(coarse * loss)
        right = np.ascontiguousarray((own + weight).transpose(0, 2, 1))
        value += own.sum(axis=2)[:, None, :]
        for i in range(0, outer.shape[1], rows):
            value[:, i : i + rows] += outer[:, i : i + rows] @ right
    found: Complex = value.reshape(len(losses), -1)[:, : len(u)]
    return found


def layers_of_kinds(density: Array, edges: Array) -> tuple[Array, Array]:
    """`term.layers_of` of each kind: masses and widths of uniform laws under step functions."""
    n, cells = density.shape
    place = np.arange(cells)[None, :]
    top = density.argmax(axis=1)[:, None]
    peak = density.max(axis=1)
    peak = np.where((peak > 0) & np.isfinite(peak), peak, 0.0)
    masses, widths, before = [], [], np.zeros(n)
    rows = np.arange(n)
    for level in (peak[:, None] * 2.0 ** -np.arange(float(_LEVELS), -1, -1)).T:
        low = density < level[:, None]
        left = np.where(low & (place < top), place + 1, 0).max(axis=1)
        right = np.where(low & (place >= top), place, cells).min(axis=1)
        width = edges[rows, right] - edges[rows, left]
        masses.append((level - before) * width)
        widths.append(width)
        before = level
    return np.array(masses).T, np.array(widths).T
