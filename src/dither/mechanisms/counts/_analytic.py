"""The exact delta of Gaussian noise, as rationals that are proven upper bounds.

Write mu for (L2 sensitivity)/sigma and T(x) = Pr[normal >= x].

Continuous noise. delta(epsilon, mu) = T(epsilon/mu - mu/2) - e^epsilon·T(epsilon/mu + mu/2), by
Balle and Wang; it rises with mu. T is enclosed by its series below 3 and by its continued fraction
beyond, both in directed rounding, so that the bound holds to the last digit.

Discrete noise, one coordinate moved by at most m. The law is log-concave, so the likelihood ratio
of Z and Z + m is monotone and the best event is an upper set: delta = max over t of
Pr[Z >= t] - e^epsilon·Pr[Z >= t + m], attained at the least t above epsilon·sigma2/m - m/2. Each
term rises with m, so the largest m is the worst. The sum is taken term by term.

Discrete noise, any integer vector of at most d coordinates moved. Let sigma2 = s² + t² (t² is the
*softening*). Add continuous N(0, s²) to each coordinate and round each x to an integer y with
probability proportional to exp(-(y - x)²/(2t²)): post-processing that commutes with integer shifts.
By Poisson summation Σ_y exp(-(y - x)²/(2t²)) is t·sqrt(2π) times a number in [1 - θ, 1 + θ] for
every x, with θ = 2q/(1 - q), q = exp(-2π²t²). So the law p' of the rounded noise obeys
p <= (1 + θ)·p' and p' <= (1 + θ)/(1 - θ)·p, p being the discrete Gaussian of sigma2. Coordinates
that do not move are the same on both sides. Hence with mu = (L2 sensitivity)/s, for θ <= 1/4,

    delta_discrete(epsilon) <= e^(dθ)·delta(epsilon - 4dθ, mu),

as log((1 + θ)²/(1 - θ)) <= 4θ. On a fine lattice a softening of 8 steps² makes θ less than 1e-67.

Source. Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018,
theorem 8; one coordinate: Canonne, Kamath and Steinke, NeurIPS 2020, theorem 7. The rounding
argument is Peikert's convolution of discrete Gaussians (CRYPTO 2010), used here for privacy.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from dither._search import least_integer
from dither._stats import log_of
from dither.accounting import rho_of_epsilon
from dither.numeric import _directed as directed
from dither.numeric import binary_size, shortened

__all__ = [
    "gaussian_delta",
    "gaussian_mu",
    "mass_below",
    "normal_tail",
    "rounded_delta",
    "shortened_up",
    "softened",
    "summed_delta",
]

_BITS = 192
_FIXED = 1 << 256
_PI = Fraction(31415926535897932384626433832795028841971693993751058209749445923, 10**64)
"""π, cut after 64 decimals; _PI + 1e-64 is above it."""


def normal_tail(x: Fraction) -> tuple[Fraction, Fraction]:
    """A lower and an upper bound of Pr[normal >= x], within 2**-110 of either.

    Examples
    --------
    >>> low, high = normal_tail(Fraction(2))
    >>> low < high, float(low)
    (True, 0.0227501319481792...)
    """
    if x < 0:
        low, high = normal_tail(-x)
        # By symmetry; ends change places.
        return 1 - high, 1 - low
    root_low = directed.sqrt_lower(2 * _PI, _BITS)
    root_high = directed.sqrt_upper(2 * (_PI + Fraction(1, 10**64)), _BITS)
    exponent = -x * x / 2
    density = (
        directed.exp_lower(exponent, _BITS) / root_high,
        directed.exp_upper(exponent, _BITS) / root_low,
    )
    if x < 3:
        below, above = _series(x)
        # Subtracted from a half: the upper end of the series belongs to the lower end of the tail.
        return Fraction(1, 2) - density[1] * above, Fraction(1, 2) - density[0] * below
    least, most = _fraction(x)
    return density[0] / most, density[1] / least


def _series(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of Σ_k x^(2k+1)/(2k+1)!!, 0 <= x < 3."""
    low, high = math.floor(x * _FIXED), math.ceil(x * _FIXED)
    square_low, square_high = math.floor(x * x * _FIXED), math.ceil(x * x * _FIXED)
    below, above, k = 0, 0, 1
    # Until terms are below 2^-216, and fall by half at least.
    while high > 1 << 40 or k < 32:
        below, above, k = below + low, above + high, k + 2
        low = low * square_low // (k * _FIXED)
        high = -(-high * square_high // (k * _FIXED))
    # From k = 33 on each term is less than half of the one before.
    return Fraction(below, _FIXED), Fraction(above + 2 * high, _FIXED)


def _fraction(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bounds of density/tail = x + 1/(x + 2/(x + 3/(x + ...))), x >= 3."""
    x_low, x_high = math.floor(x * _FIXED), math.ceil(x * _FIXED)
    square = _FIXED * _FIXED
    # What continues at level n lies between x and x + (n + 1)/x.
    low, high = x_low, x_high - (-201 * square // x_low)
    for k in range(200, 0, -1):
        # A lower end divides by the level below's upper one, and the other way round.
        low, high = x_low + k * square // high, x_high - (-k * square // low)
    return Fraction(low, _FIXED), Fraction(high, _FIXED)


@lru_cache(maxsize=4096)
def gaussian_delta(epsilon: Fraction, mu: Fraction) -> Fraction:
    """An upper bound of continuous Gaussian noise's delta, tight to some forty digits.

    Parameters
    ----------
    epsilon : Fraction
        Of any sign.
    mu : Fraction
        Sensitivity over sigma, at least 0.

    Examples
    --------
    >>> float(gaussian_delta(Fraction(10), Fraction(10**20, 48448052626053894000)))
    2.26...e-05
    """
    if mu == 0:
        return Fraction(0)
    at = min(epsilon, Fraction(1 << 16))  # delta falls with epsilon, and exp has its reach
    first = normal_tail(at / mu - mu / 2)[1]
    # What is taken off is rounded down, its exponential and its tail.
    second = directed.exp_lower(at, _BITS) * normal_tail(at / mu + mu / 2)[0]
    return shortened_up(max(Fraction(0), min(Fraction(1), first - second)))


@lru_cache(maxsize=1024)
def gaussian_mu(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest mu, less 2**-48 of it, at which continuous noise is (epsilon, delta)-DP.

    Examples
    --------
    >>> float(1 / gaussian_mu(Fraction(1), Fraction(1, 10**5)))
    3.7306316348159...
    """
    # A sound start: what zCDP gives. Its square root is cut to whole multiples of 2**-48 of it.
    low = directed.sqrt_lower(2 * rho_of_epsilon(epsilon, delta), 64)
    unit = low / (1 << 48)
    first = 1 << 48
    over = least_integer(lambda k: gaussian_delta(epsilon, k * unit) > delta, first, step=first)
    # The last multiple that is not over; the start is sound by zCDP.
    return max(over - 1, first) * unit


def softened(
    epsilon: Fraction, sigma2: Fraction, l2_squared: int, moved: int
) -> tuple[Fraction | None, Fraction, Fraction]:
    """(t², 4dθ, e^(dθ)) of the softening that is tightest at an epsilon; None where none fits."""
    return _softest(epsilon, sigma2, l2_squared, moved)[1:]


def rounded_delta(epsilon: Fraction, sigma2: Fraction, l2_squared: int, moved: int) -> Fraction:
    """The rounding argument's bound of delta, for ``moved`` coordinates; 1 where none fits."""
    return _softest(epsilon, sigma2, l2_squared, moved)[0]


@lru_cache(maxsize=1024)
def _softest(
    epsilon: Fraction, sigma2: Fraction, l2_squared: int, moved: int
) -> tuple[Fraction, Fraction | None, Fraction, Fraction]:
    size = binary_size(sigma2)
    found: list[tuple[Fraction, Fraction, Fraction, Fraction]] = []
    # The size below as well: sigma2 may have been found from there.
    for soft in {_softening(epsilon, moved, size), _softening(epsilon, moved, size - 1)}:
        lost, factor = _rounding(soft, moved)
        # A softening has to leave some Gaussian noise.
        if soft < sigma2:
            mu = shortened_up(directed.sqrt_upper(l2_squared / (sigma2 - soft)))
            found.append((factor * gaussian_delta(epsilon - lost, mu), soft, lost, factor))
    return min(found) if found else (Fraction(1), None, Fraction(0), Fraction(1))


def mass_below(sigma2: Fraction) -> Fraction:
    """A lower bound of N = Σ exp(-z²/(2σ²)): its middle terms for small σ, σ√(2π) for large."""
    # Poisson summation has positive terms: N is at least σ√(2π).
    if sigma2 >= 4:
        return directed.sqrt_lower(sigma2 * 2 * _PI)
    middle = (directed.exp_lower(-Fraction(z * z) / (2 * sigma2)) for z in range(1, 20))
    return 1 + 2 * sum(middle, Fraction(0))


def summed_delta(epsilon: Fraction, sigma2: Fraction, shift: int) -> Fraction:
    """Σ_{y >= t} (f(y) - e^epsilon·f(y + shift)) / N for f(y) = exp(-y²/(2σ²)), rounded up.

    Terms are taken relative to f(t), by their ratios f(y + 1)/f(y), which fall by a common factor.
    """
    # The least integer at which the likelihood ratio is above e^epsilon.
    t = math.floor(epsilon * sigma2 / shift - Fraction(shift, 2)) + 1
    one = _FIXED
    step = _ends(-1 / sigma2)
    ratio = _ends(-Fraction(2 * t + 1) / (2 * sigma2))
    low = high = one
    first = second = j = 0
    while j <= shift or high > 1 << 56 or ratio[1] >= one:
        first += high
        # f(y + shift) begins so many terms later: one run of terms serves both sums.
        if j >= shift:
            second += low
        # Terms of the first sum are rounded up, those that are taken off down.
        low, high = low * ratio[0] // one, -(-high * ratio[1] // one)
        ratio = ratio[0] * step[0] // one, -(-ratio[1] * step[1] // one)
        j += 1
    # What follows, as a geometric series whose ratio only falls.
    first -= -high * one // (one - ratio[1])
    exponent = -Fraction(t * t) / (2 * sigma2)
    top = directed.exp_upper(exponent, _BITS) * Fraction(first, one)
    bottom = directed.exp_lower(exponent, _BITS) * Fraction(second, one)
    # exp has its reach; less is taken off where epsilon is beyond it.
    bottom *= directed.exp_lower(min(epsilon, Fraction(1 << 16)), _BITS)
    return shortened_up(max(Fraction(0), min(Fraction(1), (top - bottom) / mass_below(sigma2))))


def _ends(exponent: Fraction) -> tuple[int, int]:
    low, high = directed.exp_lower(exponent, 288), directed.exp_upper(exponent, 288)
    return math.floor(low * _FIXED), math.ceil(high * _FIXED)


def _softening(epsilon: Fraction, moved: int, size: int) -> Fraction:
    """A t², in eighths: what is lost of epsilon, about 2^-k of it, against t² of sigma2 = 2^size.

    Any t² gives a true statement; this one is about the best.
    """
    start = math.log(8 * moved) - log_of(max(epsilon, Fraction(1, 1 << 20)))

    def soft(k: int) -> float:
        return max(0.25, (start + k * math.log(2)) / (2 * math.pi**2))

    k = min(range(1, 90), key=lambda k: soft(k) * 2.0**-size + 2.0 ** (1 - k))
    return Fraction(math.ceil(8 * soft(k)), 8)


@lru_cache(maxsize=1024)
def _rounding(soft: Fraction, moved: int) -> tuple[Fraction, Fraction]:
    """(4dθ, e^(dθ)) rounded up, for t² = ``soft``: at least 1/4, so that θ is below 1/4."""
    # _PI is below π, so that q is above what it stands for.
    q = directed.exp_upper(-2 * _PI * _PI * soft)
    theta = shortened_up(2 * q / (1 - q))
    return 4 * moved * theta, directed.exp_upper(min(Fraction(1 << 16), moved * theta))


def shortened_up(value: Fraction, bits: int = 128) -> Fraction:
    """Rounded up: short rationals are quicker to reckon with, and to draw by."""
    return shortened(value, bits, up=True)
