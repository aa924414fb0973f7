"""What an engine may ask of a loss law, and the small pieces that all laws share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = [
    "EPS",
    "FADED",
    "SHORT",
    "UNKNOWN",
    "Array",
    "Complex",
    "LawCells",
    "Term",
    "erfc",
    "faded",
    "layers_of",
    "left",
    "log_of",
    "log_tail",
    "normal_mass",
    "paired",
    "transform",
    "turned",
]


Array = npt.NDArray[Any]
Complex = npt.NDArray[Any]

EPS = 2.0**-52
"""The spacing of doubles at 1; one rounding errs by at most half of it."""


FADED = -46.0
"""A logarithm of a modulus that a node need not be known beyond: of 10^5 of them 1e-15 is left."""

UNKNOWN = 1.1
"""The slack of a number z of which |z| <= e^b is known, where e^b stands for it: log 3, and as much
again as M(c) itself is off by, less than a thousandth."""

_LEFT = 1e-9
"""What nodes may add up to, in parts of the first one, of which a bound of each is enough."""

SHORT = 128
"""Summands of one matrix product, so that its rounding is charged as that of a short sum."""


_BLOCK = (8, 32, 128)
"""Rows, summands and columns of a product of matrices that one thread does by itself."""


@dataclass(frozen=True, slots=True)
class LawCells:
    """Masses of a law on the cells between consecutive edges.

    Parameters
    ----------
    p, q : array, shape (n,)
        Masses of {edge[k] < L <= edge[k+1]} under P and Q.
    p_error, q_error : array, shape (n,)
        Bounds of their absolute errors.
    below, above : float
        Upper bounds of P's masses outside the edges (above without the mass at infinity).
    position : float
        Each mass's losses lie in its cell up to this much: edges were mapped with rounding, and
        the masses are those of the mapped cells.
    apart, apart_error : array, shape (n,), or None
        p - q where it is known better than as a difference, and bounds of its error.
    """

    p: Array
    q: Array
    p_error: Array
    q_error: Array
    below: float
    above: float
    position: float = 0.0
    apart: Array | None = None
    apart_error: Array | None = None


class Term:
    """The law of L under P, repeated ``count`` times independently.

    Attributes
    ----------
    count : int
        Repetitions; everything below that speaks of the term includes them.
    infinite : float
        Pr[L = infinity] of one repetition.
    lost : float
        A bound of the mass at finite losses that the law leaves out.
    lift : float
        log of a factor by which the finite law, and all that composes with it, is raised.
    smooth : bool
        Whether `along` and `log_moment` exist in closed form or by certified quadrature.
    reach : float
        The largest tilt c that `log_moment` and `along` take.
    """

    count: int = 1
    infinite: float = 0.0
    lost: float = 0.0
    lift: float = 0.0
    smooth: bool = True
    reach: float = 1e7

    def log_moment(self, c: Array) -> Array:
        """log E[e^{cL}; L < infinity] at real c > 0, with an error that `blur` bounds."""
        raise NotImplementedError

    def sketch(self, c: Array) -> Array:
        """About `log_moment`, of which nothing is asked but that it be quick."""
        return self.log_moment(c)

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """log M(c), log of M(c + iu)/M(c) (on any branch), and a slack, rounding included.

        With G the sum of the first two, the true M(c + iu) differs from exp(G) by at most
        exp(Re G)·(exp(slack) - 1).
        """
        raise NotImplementedError

    def moment_ends(self, c: float) -> tuple[float, float]:
        """Ends of log E[e^{cL}; L < infinity] of all repetitions, at one c > 0."""
        base, value, slack = self.along(c, np.zeros(1))
        found, off = base + float(value[0].real), float(slack[0])
        # M differs from e^found by at most e^found·(e^off - 1); -log(2 - e^off) is at most off +
        # off² there, and the sum errs by one rounding.
        off += off * off + EPS * (abs(base) + abs(found))
        return (found - off if off < 0.5 else -math.inf), found + off

    def blur(self, c: float) -> float:
        """How far `log_moment` at c may be off, beyond a billionth of itself."""
        return 2 * float(self.along(c, np.zeros(1))[2][0])

    def cost(self, c: float, u: float) -> float:
        """Complex exponentials that one node of `along` takes, up to u."""
        return 1.0

    def curvature(self) -> float:
        """A v such that |M(c + iu)/M(c)| <= exp(-v·u²/2) for all c and u."""
        return 0.0

    def fade(self, c: float, u: Array) -> Array:
        """An upper bound of log sup_{w >= u} |M(c + iw)/M(c)|, non-increasing in u."""
        return np.zeros_like(u)

    def quick_fade(self, c: float, u: Array) -> Array:
        """As `fade`, and no closer where that takes longer."""
        return self.fade(c, u)

    def singles(self) -> list[tuple[Term, int]]:
        """One law a repetition, with counts: what the grid composes."""
        return [(self, self.count)]

    def ends(self, tail: float) -> tuple[float, float]:
        """Losses (low, high) outside of which one repetition has mass at most ``tail``."""
        raise NotImplementedError

    def top(self) -> float:
        """The largest loss that all repetitions together can reach."""
        return math.inf

    def least(self) -> float:
        """A lower bound of the loss of one repetition; -inf where there is none."""
        return -math.inf

    def anchors(self) -> tuple[float, float]:
        """(offset, gap): the law has atoms there and a gap further, which a grid should hit."""
        return 0.0, 0.0

    def cells(self, edges: Array) -> LawCells:
        """Masses of one repetition on a grid."""
        raise NotImplementedError

    @property
    def most_mean(self) -> float:
        """A bound of the mean loss where parameters were read into doubles.

        Laws of finitely many losses are 0 here: they know how far each loss is off.
        """
        return 0.0

    def mean(self) -> float:
        """E_P[L], the KL divergence, of all repetitions."""
        raise NotImplementedError


def transform(losses: Array, weights: Array, u: Array) -> Complex:
    """Σ weights·e^{i·u·losses} for u = 0, s, 2s, ...: powers of one factor, in two levels."""
    block = max(1, math.isqrt(len(u)))
    step = float(u[1]) if len(u) > 1 else 0.0
    fine = np.exp(1j * step * np.arange(block)[:, None] * losses[None, :]) * weights
    starts = step * block * np.arange(-(-len(u) // block))
    coarse = np.exp(1j * starts[:, None] * losses[None, :])
    value = np.zeros((len(starts), block), dtype=complex)
    # In short products, so that their sums' rounding is charged as short.
    for first in range(0, len(losses), SHORT):
        piece = slice(first, first + SHORT)
        value += _product(coarse[:, piece], fine[:, piece].T)
    found: Complex = value.ravel()[: len(u)]
    return found


def paired(pairs: Array, gaps: Array, off: Array, u: Array) -> Array:
    """At least the logarithm of the modulus of Π E[e^{iuL}], u = 0, s, 2s, ..., of laws with atoms.

    Of any two atoms of chances w_a and w_b that are g apart ::

        |E e^{iuL}|² = 1 - Σ_{i,j} w_i·w_j·(1 - cos(u·(L_i - L_j)))
                    <= 1 - 2·w_a·w_b·(1 - cos(u·g))

    Parameters
    ----------
    pairs : array, shape (n,)
        w_a·w_b of each law, times its repetitions: to 8e-10 of themselves.
    gaps, off : array, shape (n,)
        How far the two are apart, and what that errs by.
    """
    spread = float(pairs.sum())
    # Even with all cosines at their least the bound would not reach what is asked of it.
    if spread < -FADED / 2:
        return np.zeros(len(u))
    near = transform(gaps, pairs, u).real
    # Ten times the 8e-10 of chances, and of 10^5 products and their sums some 1e-11.
    lost = 1e-8 * spread + u * float((pairs * off).sum())
    result: Array = np.minimum(near - spread + lost, 0.0)
    return result


def left(bound: Array) -> int:
    """How many nodes come before those whose moduli add up to next to nothing.

    ``bound`` is at least the logarithm of each one's modulus, in parts of M(c).
    """
    return int((np.cumsum(np.exp(bound[::-1]))[::-1] > _LEFT).sum())


def turned(losses: Array, weights: Array, u: Array) -> Complex:
    """Σ weights·(e^{i·u·losses} - 1) for u = 0, s, 2s, ..., to a few roundings of its summands.

    With two angles a + b, e^{i(a+b)} - 1 = (e^{ia} - 1)·e^{ib} + (e^{ib} - 1), and nothing cancels
    where the angles are small.
    """
    block = max(1, math.isqrt(len(u)))
    step = float(u[1]) if len(u) > 1 else 0.0
    fine = step * np.arange(block)[:, None] * losses[None, :]
    starts = step * block * np.arange(-(-len(u) // block))
    coarse = starts[:, None] * losses[None, :]
    value = np.zeros((len(starts), block), dtype=complex)
    for first in range(0, len(losses), SHORT):
        piece = slice(first, first + SHORT)
        inner = _less_one(fine[:, piece])
        own = inner * weights[piece]
        value += _product(_less_one(coarse[:, piece]), (own + weights[piece]).T) + own.sum(axis=1)
    found: Complex = value.ravel()[: len(u)]
    return found


def _product(a: Complex, b: Complex) -> Complex:
    """a @ b, in blocks of at most 2^15 products.

    BLAS shares larger ones between threads, which take longer to wait for one another than for the
    work, and all the more on a machine that has other work.
    """
    found = np.zeros((len(a), b.shape[1]), dtype=complex)
    for j in range(0, b.shape[1], _BLOCK[2]):
        columns = slice(j, j + _BLOCK[2])
        for k in range(0, len(b), _BLOCK[1]):
            inner = slice(k, k + _BLOCK[1])
            right = np.ascontiguousarray(b[inner, columns])
            rows = max(1, math.prod(_BLOCK) // right.size)
            for i in range(0, len(a), rows):
                found[i : i + rows, columns] += a[i : i + rows, inner] @ right
    return found


def _less_one(angle: Array) -> Complex:
    # cos(a) - 1 = -2·sin²(a/2), which keeps its digits where a is small.
    half = np.sin(angle / 2)
    result: Complex = -2 * half * half + 1j * np.sin(angle)
    return result


def log_of(change: Complex) -> Complex:
    """log(1 + change), without the rounding of 1 + change where it is small."""
    near = np.abs(change) < 0.5
    held = np.where(near, change, 0.0)
    # |1 + x|² - 1 = Re x·(2 + Re x) + (Im x)², so that 1 is never added.
    small = 0.5 * np.log1p(held.real * (2 + held.real) + held.imag**2)
    small = small + 1j * np.arctan2(held.imag, 1 + held.real)
    value = np.where(near, 1.0, 1.0 + change)
    result: Complex = np.where(near, small, np.log(np.where(value == 0, 1e-300, value)))
    return result


def erfc(x: Array) -> Array:
    """The complementary error function, elementwise."""
    return np.array([math.erfc(v) for v in x.tolist()])


def log_tail(x: Array) -> Array:
    """log of an upper bound of Pr[N(0, 1) > x]: of the tail itself while doubles hold it."""
    # Pr[N > x] <= e^{-x²/2}, which is enough of a bound where erfc would underflow.
    far = np.where(x > 30, -0.5 * np.maximum(x, 0) ** 2, 0.0)
    result: Array = np.where(x > 30, far, np.log(erfc(np.minimum(x, 30.0) / math.sqrt(2)) / 2))
    return result


def normal_mass(edges: Array, mean: float, sd: float) -> tuple[Array, Array, float, float]:
    """Masses of N(mean, sd²) between edges, bounds of their errors, and both outer masses.

    A cell of width d around m, in deviations, with d·(1 + |m|) <= 0.02 has the mass ::

        phi(m)·d·(1 + d²·(m² - 1)/24 + d⁴·(m⁴ - 6·m² + 3)/1920)

    up to the next summand, which is below 1e-16 of it; so its error is a rounding of itself, and
    the errors of many cells add up to one of all. Elsewhere the mass is a difference on the side of
    the mean where both numbers are small. The C library's erfc errs by about one unit in its last
    place; 16 are charged.
    """
    # Outer masses: rounding below moves them by less than 1e-12 of themselves.
    below = 0.5 * math.erfc(-(float(edges[0]) - mean) / (sd * math.sqrt(2.0))) * 1.0000001
    above = 0.5 * math.erfc((float(edges[-1]) - mean) / (sd * math.sqrt(2.0))) * 1.0000001
    with np.errstate(invalid="ignore"):
        d = (edges[1:] - edges[:-1]) / sd
        m = ((edges[:-1] - mean) + 0.5 * (edges[1:] - edges[:-1])) / sd
        narrow = d * (1 + np.abs(m)) <= 0.02
    narrow &= np.isfinite(m)
    m, d = np.where(narrow, m, 0.0), np.where(narrow, d, 0.0)
    square = m * m
    tail = 1 + d * d * (square - 1) / 24 + d**4 * (square * (square - 6) + 3) / 1920
    mass = np.exp(-0.5 * square) * d * tail / math.sqrt(2 * math.pi)
    # m rounds four times, so that its square's half is off by 4·m² halves of EPS; there are some 16
    # other roundings. The last summand is for masses below the normal doubles.
    error = mass * EPS * (16 + 4 * square) + 1e-307
    wide = np.flatnonzero(~narrow)
    if wide.size:
        left, right = ((edges[wide + k] - mean) / (sd * math.sqrt(2.0)) for k in (0, 1))
        # On the side of the mean where both tails are below a half: their difference keeps its
        # digits.
        upper = left > 0
        first = 0.5 * erfc(np.where(upper, left, -right))
        mass[wide] = np.maximum(first - 0.5 * erfc(np.where(upper, right, -left)), 0.0)
        # z rounds four times, and rounding it by z·u moves erfc(z) by about 2·z²·u of itself in the
        # tails: 4·z²·EPS, of which twice is charged.
        big = np.maximum(np.abs(left), np.abs(right))
        big = np.where(np.isfinite(big), np.minimum(big, 40.0), 0.0)
        error[wide] = first * EPS * (16 + 8 * big**2) + 1e-307
    return mass, error, below, above


def layers_of(density: Array, edges: Array, levels: int = 24) -> tuple[Array, Array]:
    """Uniform laws that fit under a step function: their masses and widths.

    Parameters
    ----------
    density : array, shape (n,)
        Lower bounds of a density on the cells.
    edges : array, shape (n + 1,)
        Increasing.

    Notes
    -----
    For each of a sequence of heights, the run of cells around the highest one that all reach the
    height carries a uniform law as thick as the step to the next height. Their sum is at most the
    step function, so a law with that density is a mixture that contains them.
    """
    top = int(np.argmax(density))
    peak = float(density[top])
    if not peak > 0 or not math.isfinite(peak):
        return np.zeros(1), np.zeros(1)
    masses, widths, before = [], [], 0.0
    for level in peak * 2.0 ** (-0.5 * np.arange(levels, -1, -1)):
        low = density < level
        left = np.flatnonzero(low[:top])
        right = np.flatnonzero(low[top:])
        a = int(left[-1]) + 1 if left.size else 0
        b = top + int(right[0]) if right.size else len(density)
        width = float(edges[b] - edges[a])
        masses.append((level - before) * width)
        widths.append(width)
        before = level
    return np.array(masses), np.array(widths)


_SIDE_LOBE = 0.21724
"""Above the largest |sin(v)/v| beyond v = pi."""


def faded(masses: Array, widths: Array, u: Array) -> Array:
    """log of a bound of sup_{w >= u} |E e^{iwL}| for laws that contain these uniform laws.

    Masses and widths have the laws' shape, and at last that of one law's parts; so has the result,
    with u at last.
    """
    # 1e-9 only keeps a quotient finite, whose value there is not asked for.
    v = 0.5 * u[:, None] * widths[..., None, :]
    # Not below the largest side lobe: the bound is of all w >= u, and must not rise again.
    near = np.minimum(v, np.pi)
    lobe = np.maximum(np.sin(near) / np.maximum(near, 1e-9), _SIDE_LOBE)
    # Next to 0 by its series, cut where that is above it: of 10^18 runs all is decided there.
    lobe = np.where(near < 1e-4, 1.0 - near * near / 6 * (1 - near * near / 20), lobe)
    far = np.minimum(1.0 / np.maximum(v, 1e-9), _SIDE_LOBE)
    top = np.where(v < np.pi, lobe, far)
    # A lobe errs by 4·EPS, which next to 1 is much of what is lost; and masses, whose exponents are
    # below 745, by some 1e-13 of themselves. Less than all is lost, so that a logarithm is left.
    lost = np.einsum("...uk,...k->...u", 1.0 - top, masses) * (1 - 1e-9)
    lost = lost - 4 * EPS * masses.sum(axis=-1)[..., None]
    result: Array = np.log1p(-np.clip(lost, 0.0, 1 - 1e-12))
    return result
