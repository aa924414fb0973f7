"""A proven half-width of a sum of independent noises, by inverting its characteristic function.

S = Σ c_i·Z_i with Z_i of one discrete Laplace or Gaussian law. Let W be independent of S, the sum
of m = 8 uniforms on [-η/m, η/m], so that |W| <= η, and Y = S + W. For a period T and u_k = 2πk/T,

    Pr[|Y| <= q]  >=  2q/T + Σ_{k=1..K} (2/(πk))·φ_S(u_k)·φ_W(u_k)·sin(u_k·q)
                      - (2/(πm))·(m/(u_K·η))^m - Pr[|S| > T - q - η].

Proof. The first two terms, for K infinite, are the chance that Y modulo T lies in [-q, q] (Fourier
series of the folded density); that event is within {|Y| <= q} or {|Y| >= T - q}. What follows K is
at most Σ (2/(πk))·|φ_W(u_k)|, with |φ_S| <= 1 and |φ_W(u)| = |sin(uη/m)/(uη/m)|^m <= (m/(uη))^m.
The last term is bounded by Chernoff's inequality: at most 2·exp(-λx)·Π E[e^(λ·c_i·Z_i)] at each λ.
And Pr[|S| <= q + η] >= Pr[|Y| <= q].

So q + η, with q the least for which the right side reaches the confidence, is a half-width of S,
for any η, T and K. They are chosen to lose about one per cent of a standard deviation. The sums are
in floating point, and what they round by is charged.

Source. Abate and Whitt, "The Fourier-series method for inverting transforms", Queueing Systems,
1992; the bounds are proved above.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._search import bisect
from dither.errors import ArgumentError
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace

__all__ = ["sum_half_width"]

Floats = npt.NDArray[np.float64]
Noise = DiscreteLaplace | DiscreteGaussian

_ORDER = 8
_LEAST = 0.99e-7
"""1e-7, for confidences that 1 - 1e-7 is a double of."""


@lru_cache(maxsize=1024)
def sum_half_width(
    coefficients: tuple[tuple[float, int], ...], noise: Noise, confidence: float
) -> float:
    """A proven q with Pr[|Σ c·Z| <= q] >= confidence.

    Parameters
    ----------
    coefficients : tuple of (float, int)
        Distinct coefficients above 0, and how many independent noises each multiplies.
    noise : DiscreteLaplace or DiscreteGaussian
        The law of every Z.
    confidence : float
        In (0, 1), at most 1 - 1e-7.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = DiscreteLaplace(Fraction(10))
    >>> noise.half_width(0.95), round(sum_half_width(((1.0, 1),), noise, 0.95), 1)
    (30, 30.1)
    """
    outside = 1 - check.confidence(confidence)
    if outside < _LEAST:
        raise ArgumentError("confidence must be at most 1 - 1e-7 for a sum of noises")
    c = np.array([x for x, _ in coefficients])
    counts = np.array([n for _, n in coefficients], dtype=float)
    # No noise at all is likely enough.
    if counts.sum() * 2 * noise.survival(1) <= outside:
        return 0.0
    deviation = math.sqrt(noise.variance * float(counts @ c**2))
    eta = 0.01 * max(deviation, 0.1 * float(c.max()))
    period, spare = 16 * deviation, outside / 1000
    # Folding loses what lies beyond a period: it is made long until that is small.
    while _chernoff(c, counts, noise, period / 2 - eta) > spare:
        period *= 1.25
    # From the bound of what follows K, solved for the frequency at which it is the spare.
    last = _ORDER / eta * (2 / (math.pi * _ORDER * spare)) ** (1 / _ORDER)
    k = np.arange(1, math.ceil(last * period / (2 * math.pi)) + 1)
    u = 2 * math.pi / period * k
    logs = np.zeros(u.size)
    for x, n in zip(c, counts, strict=True):
        logs += n * _log_transform(noise, x * u)
    weights = 2 / (math.pi * k) * np.exp(logs) * np.sinc(u * eta / (_ORDER * math.pi)) ** _ORDER
    # A logarithm errs by 8·EPS of itself, which its exponential makes no larger, or of 1, n times
    # over. A sine's place, of up to πk, rounds by 2·EPS of itself, and its weight falls as 2/(πk).
    lost = 2.0**-52 * (float(weights.sum()) * 8 * (float(counts.sum()) + 2) + 8 * k.size)
    wanted = 1 - outside + 2 * spare + lost

    def enough(q: float) -> bool:
        return 2 * q / period + float(weights @ np.sin(u * q)) >= wanted

    # The upper end, where it was seen to be enough; η is what W may have hidden.
    return bisect(enough, 0.0, period / 2, steps=40)[1] + eta


def _log_transform(noise: Noise, v: Floats) -> Floats:
    """The logarithm of E[cos(v·Z)], which is above 0 for both laws."""
    if isinstance(noise, DiscreteLaplace):
        inverse = float(1 / noise.scale)
        odds = 4 * math.exp(-inverse) / math.expm1(-inverse) ** 2
        return np.asarray(-np.log1p(odds * np.sin(v / 2) ** 2))
    s2 = float(noise.sigma2)
    if s2 < 1:
        z = np.arange(1, 13)
        f = np.exp(-(z**2) / (2 * s2))
        total = 1 + 2 * np.cos(np.outer(v, z)) @ f
        return np.asarray(np.log(np.maximum(total, 1e-300) / (1 + 2 * f.sum())))
    near = v - 2 * math.pi * np.round(v / (2 * math.pi))
    # Poisson summation; beyond two terms on either side nothing is left of a double.
    extra = sum(np.exp(-s2 * ((near + 2 * math.pi * j) ** 2 - near**2) / 2) for j in (-2, -1, 1, 2))
    whole = 1 + 2 * math.exp(-2 * math.pi**2 * s2)
    return np.asarray(-s2 * near**2 / 2 + np.log1p(extra) - math.log(whole))


def _chernoff(c: Floats, counts: Floats, noise: Noise, x: float) -> float:
    """A bound of Pr[|Σ c·Z| > x]."""
    if isinstance(noise, DiscreteGaussian):
        # Its moments are at most the normal's.
        spread = float(noise.sigma2) * float(counts @ c**2)
        return 2 * math.exp(-(x**2) / (2 * spread))
    scale = float(noise.scale) * float(c.max())
    best = 1.0
    r, lost = math.exp(-1 / float(noise.scale)), -math.expm1(-1 / float(noise.scale))
    for share in (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98):
        at = share / scale
        # E[e^(tZ)] = (1 - r)²/((1 - r·e^t)(1 - r·e^-t)) = 1/(1 - 4r·sinh²(t/2)/(1 - r)²)
        moments = -np.log1p(-4 * r * np.sinh(at * c / 2) ** 2 / lost**2)
        best = min(best, 2 * math.exp(min(0.0, float(counts @ moments) - at * x)))
    return best
