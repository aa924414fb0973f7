"""Profiles in closed form, in ball arithmetic: as many digits as they cancel."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from dither.numeric._balls import Ball, down, library, precision, tail, up
from dither.privacy.engines.balls.laws import LogRatio
from dither.privacy.laws.laplace import LaplaceTerm
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.sampled.line import SampledLineTerm
from dither.privacy.laws.sampled.mixture import SampledTerm
from dither.privacy.laws.sampled.replaced import ReplacedGaussianTerm
from dither.privacy.laws.term import Term

__all__ = [
    "GaussianProfile",
    "LaplacesProfile",
    "ReplacedProfile",
    "SampledGaussianProfile",
    "SeparatedLaplacesProfile",
    "SeparatedProfile",
]


_DIGITS = 58
"""Bits of delta that are asked for."""

_RARE = 2.0**-200
"""Binomial shares that are added up without a look at what they are shares of."""

_BITS = (128, 256, 512, 1024, 2048, 4096, 8192)


def _settled(value: Callable[[], Ball]) -> tuple[float, float]:
    """(log lower, log upper) of a number above 0, with as many bits as it takes."""
    low, high = -math.inf, 0.0
    for bits in _BITS:
        with precision(bits) as flint:
            found = value()
            if found.is_zero():
                return -math.inf, -math.inf
            # Tails cancel to an unknown number of digits: the bits are doubled until enough are
            # left.
            if found.rel_accuracy_bits() < _DIGITS and bits < _BITS[-1]:
                continue
            if not found.is_finite():
                # Nothing is known of it but that it is a delta.
                return -math.inf, 0.0
            top = found.upper()
            low = down(flint.arb(found.lower()).log()) if found > 0 else -math.inf
            high = up(flint.arb(top).log()) if top > 0 else -math.inf
            break
    return low, high


def _gaussian(e: Ball, mu: Ball) -> Ball:
    """Phi(mu/2 - e/mu) - e^e·Phi(-mu/2 - e/mu)."""
    return tail(e / mu - mu / 2) - e.exp() * tail(e / mu + mu / 2)


class GaussianProfile:
    """delta(epsilon) = Phi(mu/2 - epsilon/mu) - e^epsilon·Phi(-mu/2 - epsilon/mu).

    Composed Gaussians are one Gaussian of mu² = Σ 1/sigma² [1]_, [2]_.

    References
    ----------
    .. [1] Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.
    .. [2] Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022, corollary 3.3.
    """

    name = "closed form (Gaussian)"
    certified = True

    def __init__(self, mu_squared: float, start: float) -> None:
        self._square, self.start = mu_squared, start

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        # A double is enough to see how far out it is; the value itself takes the root in balls.
        mu = math.sqrt(self._square)
        far = epsilon / mu - mu / 2
        if far > 1e6:
            # Phi(-x) <= e^{-x²/2}
            return -math.inf, -1e11

        def value() -> Ball:
            arb = library().arb
            return _gaussian(arb(epsilon), arb(self._square).sqrt())

        return _settled(value)


@lru_cache(maxsize=4096)
def _rational_part(k: int, j: int) -> list[int]:
    """Coefficients of (r + 1)^{k-j-1}·(r - 1)^{j-1} up to r^{k-1}."""
    poly = library().fmpz_poly
    rest = poly([1, 1]) ** (k - j - 1)
    if j > 0:
        rest *= poly([-1, 1]) ** (j - 1)
    found = [int(x) for x in rest.coeffs()][:k]
    found += [0] * (k - len(found))
    if j == 0:
        # 1/(r - 1) = -(1 + r + r² + ...)
        total = 0
        for i, x in enumerate(found):
            total += x
            found[i] = -total
    return found


class LaplacesProfile:
    """The sum of k equal Laplace losses, as residues of its contour integral.

    With e = 1/b, M(t) = ((t + 1)·e^{et} + t·e^{-e(t + 1)})/(2t + 1), so by the binomial theorem ::

        M(t)^k/(t(1 + t)) = Σ_j C(k, j)·e^{-ej}·e^{t(k-2j)e}·(t + 1)^{k-j-1}·t^{j-1}/(2t + 1)^k

    and of each summand times e^{-t·epsilon} the line Re t = c > 0 may be closed to the right where
    x = (k - 2j)·e - epsilon <= 0, which gives 0, and to the left where x > 0: the residue at -1/2,
    and at 0 for j = 0, which is 1. With t = (r - 1)/2 and p_i the coefficients of
    (r + 1)^{k-j-1}·(r - 1)^{j-1}, the residue at -1/2 is ::

        e^{-x/2}·2^{1-k}·Σ_{n<k} p_{k-1-n}·(x/2)^n/n!
    """

    name = "closed form (Laplace)"
    certified = True
    LARGEST = 64

    def __init__(self, epsilon: float, count: int, start: float) -> None:
        self._e, self._k, self.start = epsilon, count, start

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        # The product and the factor round twice, by half of 2.2e-16 each.
        if epsilon >= self._k * self._e * (1 + 1e-15):
            return -math.inf, -math.inf
        return _settled(lambda: self._value(epsilon))

    def _value(self, epsilon: float) -> Ball:
        arb, k = library().arb, self._k
        # delta(-x) = 1 - e^-x + e^-x·delta'(x), delta' of the swapped pair.
        if epsilon < 0:
            # The pair and the swapped pair are one.
            grown = arb(epsilon).exp()
            return 1 - grown + grown * self._value(-epsilon)
        e, total, top = arb(self._e), arb(0), True
        # Beyond k/2 every x is below 0 at epsilon >= 0, and the summand 0.
        for j in range(k // 2 + 1):
            x = (k - 2 * j) * e - arb(epsilon)
            if not x > 0:
                # A ball around 0 is a point where the summand is continuous, but for j = 0.
                if x < 0:
                    break
                x = arb(0).union(x.upper()) if x.upper() > 0 else arb(0)
            half, power, series = x / 2, arb(1), arb(0)
            # p_{k-1-n}, from n = 0 on: the coefficients in the opposite order.
            for n, p in enumerate(reversed(_rational_part(k, j))):
                series += p * power
                power = power * half / (n + 1)
            part = (-half - j * e).exp() * series * math.comb(k, j) / arb(2) ** (k - 1)
            total += part + 1 if top else part
            top = False
        # A chance is at least 0, so that what a ball holds below says nothing.
        return total if total > 0 else arb(0).union(total.upper())


class SampledGaussianProfile:
    """One Gaussian on a Poisson sample: two normal tails beyond the place where l = epsilon."""

    name = "closed form (sampled Gaussian)"
    certified = True

    def __init__(self, term: SampledGaussianTerm) -> None:
        self._term = term
        self.start = 1.0 if term.removal else min(1.0, term.top())

    def _place(self, level: Ball, ratio: LogRatio) -> Ball | None:
        """The z with l(z) = level; None where l is above it everywhere."""
        arb, a, weights = library().arb, ratio.a, ratio.weights
        if self._term.k == 1:
            # e^level - (1 - g), without forming 1 - g.
            # w_1 is g where k is 1.
            inner = level.expm1() + weights[1]
            if not inner > 0:
                return None if inner <= 0 else arb("nan")
            return (inner / weights[1]).log() / a + a / 2
        over = level.exp() - weights[0]
        if not over > 0:
            return None if over <= 0 else arb("nan")
        factors = ratio.factors

        def above(log_x: Ball) -> tuple[Ball, Ball]:
            """log Σ_{j>0} factor_j·x^j - log(over), and its slope in log x."""
            terms = [f * (j * log_x).exp() for j, f in enumerate(factors) if j]
            whole = sum(terms, arb(0))
            slope = sum((j * x for j, x in enumerate(terms, 1)), arb(0)) / whole
            return (whole / over).log(), slope

        # The sum's logarithm is convex and increasing in log x: Newton's method from the right.
        log_x = max(((over / f).log().mid() / j for j, f in enumerate(factors) if j), key=float)
        for _ in range(400):
            gap, slope = above(log_x)
            step = (gap / slope).mid()
            log_x = (log_x - step).mid()
            if abs(step) < arb(2) ** (-library().ctx.prec // 2):
                break
        # Newton's last step says how near it is; the signs on both sides prove it.
        radius = abs(step) + arb(2) ** (-library().ctx.prec // 2)
        # Not bracketed, not known: a nan asks for more bits.
        if not (above(log_x - radius)[0] < 0 and above(log_x + radius)[0] > 0):
            return arb("nan")
        return arb(log_x, radius.upper()) / a

    def _value(self, epsilon: float) -> Ball:
        arb = library().arb
        e = arb(epsilon)
        ratio, removal = LogRatio(self._term), self._term.removal
        a, weights = ratio.a, ratio.weights
        z = self._place(e if removal else -e, ratio)
        # Every loss is above epsilon for a removal, and below it for an addition.
        if z is None:
            return 1 - e.exp() if removal else arb(0)
        if removal:
            mixed = sum((w * tail(z - j * a) for j, w in enumerate(weights)), arb(0))
            return mixed - e.exp() * tail(z)
        mixed = sum((w * tail(j * a - z) for j, w in enumerate(weights)), arb(0))
        return tail(-z) - e.exp() * mixed

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        return _settled(lambda: self._value(epsilon))


class SeparatedProfile:
    """Many Gaussians on Poisson samples whose two normals hardly meet: a binomial sum.

    With a = 1/noise_multiplier large, l is log(1 - g) + [0, r] for z <= a/2 - 2 and
    log(g) + a·z - a²/2 + [0, r] for z >= a/2 + 2, with r = max(g/(1-g), (1-g)/g)·e^{-2a}, since
    log(1 + x) <= x. Removal: but for a chance of Q(a/2 - 2) a step, Q the normal tail, a step's
    loss is log(1 - g), with probability 1 - g, or N(log(g) + a²/2, a²). So, up to T·r in epsilon
    and T·Q(a/2 - 2) in delta ::

        delta(epsilon) = Σ_j binomial(T, j)·(1-g)^{T-j}·g^j·delta_j(epsilon - shift_j)

    with delta_j the profile of a Gaussian of mu² = j·a² and shift_j = (T-j)·log(1-g) + j·log(g).
    Addition: but for the same chance the loss is within T·r of -T·log(1 - g), from below.

    For delta(epsilon) is E(1 - e^{epsilon - L})_+ under P, which grows with L and lies in [0, 1].
    """

    name = "closed form (separated Gaussians)"
    certified = True

    def __init__(self, term: SampledGaussianTerm, epsilon: float | None) -> None:
        self._noise = term.noise_multiplier
        self._told(term.rate, term.count, term.removal)
        self.start = term.count * term.rate * term.a**2 / 2 if epsilon is None else epsilon

    def _told(self, rate: float, count: int, removal: bool) -> None:
        self._rate, self._count, self._removal = rate, count, removal

    @staticmethod
    def fits(term: Term) -> bool:
        """Whether it may be sharp, and in no time."""
        if not isinstance(term, SampledGaussianTerm):
            return False
        return term.k == 1 and term.a >= 12 and term.count <= 20_000

    def _sampled(self, at: Ball, j: int) -> Ball:
        """The profile of j that are sampled."""
        return _gaussian(at, library().arb(j).sqrt() / self._noise)

    def _apart(self) -> tuple[Ball, Ball]:
        """What a step's loss is off by, over both odds, and the chance that it is by more."""
        a = 1 / library().arb(self._noise)
        return (-2 * a).exp(), tail(a / 2 - 2)

    def _value(self, epsilon: float, sign: int) -> Ball:
        """delta's end on one side: sign 1 is the upper one."""
        arb = library().arb
        g, e, n = arb(self._rate), arb(epsilon), self._count
        odds, (off, chance) = g / (1 - g), self._apart()
        lost = n * chance
        # delta falls with epsilon; the sum of both odds is more than the larger one, which r takes.
        e -= sign * n * (odds + 1 / odds) * off
        if not self._removal:
            top = -n * (1 - g).log()
            whole = 1 - (e - top).exp()
            # All losses are at the top but for the chance that one is not.
            return (arb(0) if whole <= 0 else whole) + sign * lost
        total, share, rare = arb(0), (1 - g) ** n, arb(0)
        for j in range(n + 1):
            if j:
                share *= odds * (n - j + 1) / j
            # Too small to be worth a profile: whole at the upper end, and nothing at the lower.
            if share < _RARE:
                rare += share
                continue
            at = e - (n - j) * (1 - g).log() - j * g.log()
            if j:
                total += share * self._sampled(at, j)
            # No step is sampled: the profile of a loss that is always 0.
            elif not at >= 0:
                total += share * (1 - at.exp())
        # A profile lies in [0, 1].
        return total + sign * lost + (rare if sign > 0 else 0)

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        return (
            _settled(lambda: self._value(epsilon, -1))[0],
            # Not smaller than one can tell from nothing: searches go by its slope.
            max(_settled(lambda: self._value(epsilon, 1))[1], -1000.0),
        )


class SeparatedLaplacesProfile(SeparatedProfile):
    """The same of Laplace noise: the base's loss x is e or less, or -e or more, and little between.

    l is log(1 - g) + [0, r] for x <= -e/2 and log(g) + x + [0, r] for x >= e/2, with
    r = max(g/(1-g), (1-g)/g)·e^{-e/2}. Under Q, where x is -e with probability 1/2, e with
    e^{-e}/2, and has the density e^{-(x+e)/2}/4 between, it is above -e/2 with probability
    e^{-e/4}/2; as likely it is below e/2 under P. So delta_j is the profile of j Laplaces.
    """

    name = "closed form (separated Laplaces)"

    def __init__(self, term: SampledLineTerm, epsilon: float | None) -> None:
        assert isinstance(term.base, LaplaceTerm)
        assert isinstance(term.inner, SampledTerm)
        self._e = float(term.base.epsilons[0])
        self._told(term.rate, term.count, term.inner.removal)
        self.start = term.count * term.rate * self._e if epsilon is None else epsilon

    @staticmethod
    def fits(term: Term) -> bool:
        """Whether it may be sharp, and in no time."""
        return (
            isinstance(term, SampledLineTerm)
            and isinstance(term.base, LaplaceTerm)
            and isinstance(term.inner, SampledTerm)
            and float(term.base.epsilons[0]) >= 120
            and term.count <= LaplacesProfile.LARGEST
        )

    def _sampled(self, at: Ball, j: int) -> Ball:
        return LaplacesProfile(self._e, j, 0.0)._value(at)

    def _apart(self) -> tuple[Ball, Ball]:
        e = library().arb(self._e)
        return (-e / 2).exp(), (-e / 4).exp() / 2


class ReplacedProfile:
    """One Gaussian on a Poisson sample, a unit replaced: both masses beyond where L is epsilon."""

    name = "closed form (sampled Gaussian, a unit replaced)"
    certified = True
    start = 1.0

    def __init__(self, term: ReplacedGaussianTerm) -> None:
        self._g, self._c = term.rate, term.c

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of delta(epsilon)."""
        if epsilon / self._c > 1e4 * (1 + self._c):
            # L is at most c·(z + c), which a normal variable and one moved by c exceed as seldom.
            return -math.inf, -1e6

        def value() -> Ball:
            arb = library().arb
            g, c, e = arb(self._g), arb(self._c), arb(epsilon)
            k = (1 - g) / g * (c * c / 2).exp() * (e / 2).sinh()
            z = (e / 2 + (k + (k * k + 1).sqrt()).log()) / c
            away = g * (tail(z - c) - e.exp() * tail(z + c))
            return away + (1 - g) * (1 - e.exp()) * tail(z)

        return _settled(value)
