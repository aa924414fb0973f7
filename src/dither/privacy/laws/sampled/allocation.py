"""A Gaussian in one of many steps, drawn at random for each unit: random allocation.

Every unit takes part in exactly one of t steps, each with chance 1/t, all by themselves; every step
releases a sum with Gaussian noise. People who shuffle their data and cut it into batches do almost
this ("balls and bins" [1]_, [2]_), and Poisson sampling at rate 1/t is another mechanism. With c =
1/noise_multiplier the pair for a unit added or removed is ::

    P = (1/t)·Σ_i N(c·e_i, I)        Q = N(0, I)        in t dimensions

*Proof.* Let the unit add x_i to step i if it is there, of length at most c in units of the noise,
where x_i may depend on the outputs before. Under Q the likelihood ratio is Z = (1/t)·Σ_i Y_i with
Y_i = e^{<x_i, G_i> - |x_i|²/2} and G_i the noise of step i, and H_a(P, Q) = E (Z - a)+. Given the
steps before, <x_i, G_i> is normal of variance |x_i|² <= c², so that Y_i has the law of E[e^{c·g -
c²/2} | part of g] with a standard normal g. Convex functions of it, such as all later expectations,
are at most those of e^{c·g - c²/2} (Jensen). From the last step to the first each Y_i may so be
replaced by one of length c that does not depend on the others. And H_a(Q, P) = E (1 - a·Z)+ is a
mean of a convex function of Z, too.

*The put.* With v(k) = E (k - Z)+ under Q, and E Z = 1, ::

    H_a(P, Q) = 1 - a + v(a)        H_a(Q, P) = a·v(1/a)

so that only values of Z up to the largest k are needed, and no tail. v is the mean of a convex
function of Σ Y_i. Y_i is laid on a lattice of spacing h: what lies between two points goes to both,
so that its mean is kept. That is a law above it in convex order, and so is the sum of t of them.
Sums are made by squaring, cut at t·k. What Fourier transforms and masses round by is added to v:

* one product of x and y is off by at most 3·e·(|x|_2·|y|_1 + |x|_1·|y|_2) in the norm |.|_2, with e
  = 4·EPS·log2(N) (Higham [3]_, theorem 24.2); an error in x moves later products by at most as much
  as it was, times how often x goes into them; and v by its inner product with (k - s·h/t)+.
* masses that are off by d in total variation move v by at most t·k·d.

From below, the largest of the t outputs is a statistic of both laws: P[max <= y] =
Phi(y)^{t-1}·Phi(y - c), Q[max <= y] = Phi(y)^t. Its law on some intervals is a pair that the true
one can be mapped to, in all compositions. A unit's x_i of length c along fixed directions reach the
pair, so that this is a lower end of the loss.

References
----------
.. [1] Chua and others, "Balls-and-bins sampling for DP-SGD", AISTATS 2025.
.. [2] Feldman and Shenfeld, "Privacy amplification by random allocation", 2025.
.. [3] Higham, "Accuracy and stability of numerical algorithms", SIAM 2002.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dither.errors import ArgumentError
from dither.privacy._charge import Charge
from dither.privacy.engines.balls.closed import GaussianProfile
from dither.privacy.laws.atoms import ListedLaw
from dither.privacy.laws.either import law_of_profile
from dither.privacy.laws.gaussian import GaussianNoise
from dither.privacy.laws.pair import PmfPair
from dither.privacy.laws.part import Part
from dither.privacy.laws.rationals import Amount, Ends
from dither.privacy.laws.term import EPS, Array, Term, normal_mass

__all__ = ["MOST_STEPS", "RandomAllocation"]


MOST_STEPS = 20_000
"""Beyond it what rounding adds is no longer small."""

_POINTS = (1 << 14, 1 << 18)
"""Places of a law on a lattice, at least and at most."""

_FINE = 1 / 64
"""A spacing, in parts of Y's mean, that is fine enough."""

_CELLS = 400
"""Steps of the profile in epsilon, on either side of 0."""

_FAR = 7.5
"""Deviations of which a normal law leaves about 1e-13."""

_ENDED = 1e-10
"""A delta at which the profile may end."""

_BINS = 64
"""Intervals of the largest output."""


@dataclass(frozen=True, slots=True)
class RandomAllocation(Part):
    """A Gaussian in one of ``steps`` steps; neighbours add or remove one unit.

    Parameters
    ----------
    base : GaussianNoise
        Of one step.
    steps : int
        t, at least 2.
    """

    base: GaussianNoise
    steps: int

    @property
    def symmetric(self) -> bool:
        """Never."""
        return False

    @property
    def exact(self) -> bool:
        """Both ends are bounds."""
        return False

    def instance(self) -> Part | None:
        """The largest output."""
        return self.instance_for(True)

    def instance_for(self, removal: bool) -> Part | None:
        """The same, with masses that are safe for one direction."""
        return _largest(self.base.noise_multiplier, self.steps, removal)

    @property
    def unlike(self) -> bool:
        """Their masses are rounded apart."""
        return True

    def dominating(self) -> Part | None:
        """The pair of the profile."""
        return _Profile(self.base, self.steps)

    def moment(self, removal: bool, count: int) -> Term | None:
        """That of one Gaussian: mixtures have no larger ones."""
        return self.base.term(removal, count)

    def top(self, removal: bool) -> Ends | None:
        """No end is known."""
        return None

    def grouped(self, size: int) -> Part:
        """By the mechanism without amplification, whose steps are all moved at once."""
        raise ArgumentError(
            "group of a random allocation is not known; take that of the Gaussian itself, which "
            "bounds it: gaussian(noise_multiplier).group(size)"
        )

    def gdp(self) -> Amount:
        """As one Gaussian: each member of the mixture is."""
        return self.base.gdp()

    def rho(self) -> Amount:
        """As one Gaussian: divergences are convex."""
        return self.base.rho()

    def charge(self) -> Charge:
        """As one Gaussian."""
        return self.base.charge()

    def describe(self) -> str:
        """As written."""
        return f"{self.base.describe()}.random_allocation({self.steps})"


@dataclass(frozen=True, slots=True)
class _Profile(Part):
    """The pair whose profile is the upper end of both directions' profiles."""

    base: GaussianNoise
    steps: int

    @property
    def symmetric(self) -> bool:
        """Never."""
        return False

    def term(self, removal: bool, count: int) -> Term:
        """Its law on a lattice of losses."""
        laws = _laws(self.base.noise_multiplier, self.steps)
        return laws[0 if removal else 1].term(True, count)

    def describe(self) -> str:
        """As written."""
        return RandomAllocation(self.base, self.steps).describe()


class _Put:
    """v(k) = E (k - Z)+, from above, at k up to a largest one."""

    def __init__(self, sigma: float, steps: int, most: float) -> None:
        self._t = steps
        # Enough places for the spacing that is wanted; fewer are coarser, and as sound.
        n = min(max(_POINTS[0], math.ceil(steps * most / _FINE)), _POINTS[1])
        self._h = h = steps * most / n
        self.coarse = h > 2 * _FINE and most > 2
        # The last place.
        self.most = (n - 1) * h / steps
        edges = np.arange(n + 1) * h
        with np.errstate(divide="ignore"):
            place = sigma * np.log(edges) + 1 / (2 * sigma)
        under, wrong, _, _ = normal_mass(place, 0.0, 1.0)
        over, wrong_over, _, _ = normal_mass(place, 1 / sigma, 1.0)
        # What goes to the upper end of a cell, so that E[Y; cell] is kept; beyond all cells nothing
        # is needed, as it only adds to sums that are beyond them.
        k = np.arange(n)
        rise = np.clip(over / h - k * under, 0.0, under)
        masses = np.zeros(n + 1)
        # Split between both ends so that the mean is kept: larger in convex order, as v asks for.
        masses[:-1] += under - rise
        masses[1:] += rise
        # Places round by some units of themselves, which moves masses from cell to cell: by the
        # density there. What a cell's share is off by moves its mass by one point.
        size = (np.abs(place[1:]) + 8 + 1 / sigma) * EPS
        near = np.exp(-0.5 * np.minimum(place[1:] ** 2, 1400.0)) * size * 4
        doubt = float(wrong.sum()) + 2 * float(near.sum()) + n * 1e-300
        share = float((wrong_over / h + k * (wrong + 8 * EPS * under)).sum())
        shifted = np.exp(-0.5 * np.minimum((place[1:] - 1 / sigma) ** 2, 1400.0))
        share += float((shifted * size).sum()) * 8 / h
        self._masses = masses[:n]
        self._doubt = steps * most * doubt + h * share
        self._short = 0.0
        self._whole = self._power()

    def _power(self) -> Array:
        """The law of the sum, cut at the lattice's end, by squaring."""
        result: Array | None = None
        square, count, left = self._masses, 1, self._t
        # The errors of what is kept, each times how often it goes into the whole.
        while True:
            if left & 1:
                result = square if result is None else self._product(result, square, 1.0)
            left >>= 1
            if not left:
                assert result is not None
                return result
            count *= 2
            # An error in this power goes into the whole as often as the power does.
            square = self._product(square, square, self._t / count)

    def _product(self, x: Array, y: Array, times: float) -> Array:
        n = len(x)
        size = 2 * n
        # Twice as long, so that nothing wraps round; what lies beyond n is not needed.
        found = np.fft.irfft(np.fft.rfft(x, size) * np.fft.rfft(y, size), size)[:n]
        norms = [math.sqrt(float((z * z).sum())) for z in (x, y)]
        sums = [float(z.sum()) for z in (x, y)]
        off = 3 * 4 * EPS * math.log2(size) * (norms[0] * sums[1] + norms[1] * sums[0])
        # Products of errors are less than a millionth of them: masses sum to 1 at most.
        self._short += off * max(times, 1.0) * (1 + 1e-6)
        # Masses are at least 0: cutting rounding there brings them closer.
        result: Array = np.maximum(found, 0.0)
        return result

    def __call__(self, k: Array) -> Array:
        """Upper ends."""
        n, h = len(self._whole), self._h / self._t
        # Beyond the last place v rises by no more than k does.
        beyond, k = np.maximum(k - self.most, 0.0), np.minimum(k, self.most)
        places = np.arange(n) * h
        # v is linear between places, and its values there are sums of sums.
        below = np.cumsum(self._whole)
        first = np.concatenate([[0.0], np.cumsum(below)[:-1]]) * h
        # Exact, as v is linear there.
        value = np.interp(k, places, first)
        held = np.minimum(k / h, n)
        short = self._short * k * np.sqrt(held / 3 + 1)
        # Sums of up to n numbers, twice.
        rounding = EPS * (2 * n) * value
        result: Array = value + beyond + short + self._doubt + rounding
        return result


@lru_cache(maxsize=64)
def _laws(sigma: float, steps: int) -> tuple[ListedLaw, ListedLaw]:
    """Of removal and of addition: the lesser of the put's profile and of one Gaussian's."""
    puts = [_Put(sigma, steps, math.exp(_last(sigma, steps)))]
    last = math.log(puts[0].most)
    left = float(puts[0](np.array([puts[0].most]))[0]) - math.expm1(last)
    while puts[-1].coarse:
        # Each is an upper end; a shorter lattice is a finer one.
        puts.append(_Put(sigma, steps, puts[-1].most / 16))

    def put(k: Array) -> Array:
        found: Array = np.min([one(k) for one in puts], axis=0)
        return found

    # Where much is left at the end of the lattice, one Gaussian's profile is followed to its end.
    end = last if left < _ENDED else max(last, _FAR / sigma + 1 / (2 * sigma**2))
    gauss = GaussianProfile(1 / sigma**2, 1.0)
    h = end / _CELLS
    losses = h * np.arange(-_CELLS, _CELLS + 1)
    a = np.exp(losses)
    # A logarithm's and an exponential's roundings.
    one = np.exp([min(gauss.bounds(e)[1], 0.0) for e in losses.tolist()]) * (1 + 1e-12)
    # Roundings of 1, and of exponentials whose exponents round.
    rough = 8 * EPS * (1 + a * (1 + np.abs(losses)))
    # 1 - a + v(a) and a·v(1/a), as in the module.
    removal = put(a) - np.expm1(losses)
    addition = a * put(1 / a)
    found = []
    for own in (removal, addition):
        # Two upper ends of the same profile: the lesser holds.
        high = np.minimum(own + rough, one)
        # No profile is less than 1 - a.
        high = np.minimum(np.maximum(high, -np.expm1(losses) * (1 + 4 * EPS)), 1.0)
        masses, infinite = law_of_profile(losses, high, h)
        words = f"gaussian({sigma:g}).random_allocation({steps})"
        law = ListedLaw(words, -_CELLS * h, h, tuple(masses.tolist()), infinite, 32 * EPS)
        found.append(law)
    return found[0], found[1]


def _last(sigma: float, steps: int) -> float:
    """How far the put is followed: about where the sum of all steps has all but ended.

    A lattice of so many points is coarse beyond; any figure would do.
    """
    top = _FAR / sigma - 1 / (2 * sigma**2) - math.log(steps)
    return max(math.log1p(math.exp(min(top, 40.0))), 12 / (sigma * math.sqrt(steps)), 0.05) + 0.3


@lru_cache(maxsize=64)
def _largest(sigma: float, steps: int, removal: bool) -> PmfPair:
    """The law of the largest output on intervals.

    Each mass is the difference of two powers of numbers that err by some units. The law that is
    looked at is lowered by what they are off by, and the other one raised, so that no product of
    them has a larger divergence.
    """
    c = 1 / sigma
    low = math.sqrt(max(2 * math.log(steps), 0.1)) - 2.5
    y = np.linspace(low, low + 6 + c + 2, _BINS)
    phi = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in y])
    moved = np.array([0.5 * math.erfc(-(x - c) / math.sqrt(2)) for x in y])
    q = np.concatenate([[0.0], phi**steps, [1.0]])
    p = np.concatenate([[0.0], phi ** (steps - 1) * moved, [1.0]])
    p, q = np.diff(p), np.diff(q)
    off = EPS * (16 + 16 * steps)
    # What is divided by goes up and what is looked at down: a loss that is too small, if anything.
    signs = (-1, 1) if removal else (1, -1)
    p, q = (np.maximum(x + sign * off, 0.0) for x, sign in zip((p, q), signs, strict=True))
    return PmfPair(tuple(p.tolist()), tuple(q.tolist()))
