"""The loss of a Gaussian on a Poisson sample, by a quadrature with a proven error.

In units of the noise's deviation, with a = 1/noise_multiplier and weights w_j of j members of the
group being sampled (for one unit w = (1 - rate, rate)), the pair is Q = N(0, 1) and
P = Σ w_j·N(j·a, 1), whose log-ratio at z is ::

    l(z) = log Σ w_j·exp(j·a·z - j²·a²/2),   increasing, with slope a·E[j | z] in [0, K·a]

Removal compares P with Q, so M(t) = ∫ phi·e^{(1+t)·l}; addition compares Q with P, so
M(t) = ∫ phi·e^{-t·l}.

Quadrature. Both integrands are analytic for |Im z| < pi/(K·a). There, since the summands of the
ratio lie in a cone of opening K·a·|Im z|: |arg e^l| <= K·a·|Im z|, and the modulus of e^l is at
most e^{l(Re z)} and at least cos(K·a·Im z/2) of it. So on the line Im z = d the integral of the
modulus is at most E(d)·M(c), with E(d) = exp(d²/2 + |u|·K·a·d) for removal, times
cos(K·a·d/2)^{-c} for addition, and the trapezoid rule of step h errs by at most
2·E(d)·M(c)/(e^{2·pi·d/h} - 1) [1]_, theorem 5.1. For K·a·d <= pi/2 the modulus of e^l is also at
least w_0, and M(c) is at least 1, so that w_0^{-c} will do in place of the cosine.

References
----------
.. [1] Trefethen and Weideman, "The exponentially convergent trapezoidal rule", SIAM Review 2014.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dither._search import bisect_arrays
from dither.errors import ArgumentError
from dither.privacy.laws.term import (
    EPS,
    SHORT,
    Array,
    Complex,
    LawCells,
    Term,
    faded,
    layers_of,
    log_of,
    normal_mass,
    turned,
)

__all__ = ["TOO_LITTLE_NOISE", "SampledGaussianTerm"]

TOO_LITTLE_NOISE = (
    "so little noise on a sample cannot be composed: its losses are in the millions; "
    "use a larger noise_multiplier"
)


_GUARD = 1e-9
"""What densities and log-bounds of a fade are moved by, to the safe side, for rounding: exponents
of up to 700 and places of up to 80 deviations err by some 1e-13 of themselves. A fade is an upper
bound, so that its last digits buy nothing."""

_MARGIN = 10.0
"""Deviations beyond the saddle at which the nodes end; what is cut is charged."""

_NODES = 5_000_000
"""Beyond that a single sum takes a second."""

_BLOCK = 4_000_000
"""Exponentials that are held in memory at once."""


def _nodes(low: float, high: float, h: float) -> Array:
    """Multiples of h from low to high: each is off by one rounding, and none adds up."""
    if high - low > _NODES * h:
        raise ArgumentError(TOO_LITTLE_NOISE)
    result: Array = h * np.arange(math.floor(low / h), math.ceil(high / h) + 1)
    return result


class SampledGaussianTerm(Term):
    """A Gaussian on a Poisson sample, ``count`` times.

    Parameters
    ----------
    noise_multiplier : float
        Deviation of the noise over the sensitivity.
    rate : float
        The chance of each unit to be sampled, in (0, 1).
    removal : bool
        The direction.
    count : int
        Repetitions.
    size : int
        Units of the group that changes together.
    """

    def __init__(
        self, noise_multiplier: float, rate: float, removal: bool, count: int, size: int = 1
    ) -> None:
        self.noise_multiplier, self.rate = noise_multiplier, rate
        self.a = 1.0 / noise_multiplier
        g, self.k = rate, size
        self.weights = np.array(
            [math.comb(size, j) * g**j * (1 - g) ** (size - j) for j in range(size + 1)]
        )
        # log(w_0): the logarithm of 1 - g as a double would lose the digits of a small g.
        self._floor = size * math.log1p(-g) if g < 1 else -math.inf
        self.removal, self.count = removal, count
        # Where losses are large, tilts that matter are small.
        top = self.k * self.a
        self.reach = 60.0 / top + 200.0 * min(1.0, 9.0 / top**2)
        if not removal and 0 < self.weights[0] < 1:
            # Losses that are bounded by little: up to tilts that need some ten thousand nodes.
            most = -math.log(self.weights[0])
            self.reach = max(self.reach, min(60.0 / most, (3000.0 / top) ** 2))

    def log_ratio(self, z: Array) -> tuple[Array, Array]:
        """l at z, and a bound of its error."""
        j = np.arange(self.k + 1)[:, None]
        y = j * self.a * z[None, :] - 0.5 * (j * self.a) ** 2
        w = self.weights[:, None]
        # log1p of a small sum keeps the digits of a small loss; it needs exponentials that are
        # doubles.
        if self.weights[0] >= 0.25 and float(y.max()) < 600.0:
            rise = np.expm1(y)
            terms = w * rise
            total = terms.sum(axis=0)
            value = np.log1p(total)
            lost = (w * (4 * np.abs(rise) + 2 * np.abs(y) * (rise + 1))).sum(axis=0)
            return value, EPS * (lost / (1 + total) + 2 * np.abs(value))
        with np.errstate(divide="ignore"):
            full = np.log(w) + y
        top = full.max(axis=0)
        value = top + np.log(np.exp(full - top).sum(axis=0))
        return value, EPS * (4 + 4 * np.abs(y).max(axis=0) + 2 * np.abs(value) + self.k)

    @property
    def most_mean(self) -> float:
        """An upper bound of the mean loss: divergences are convex, and mixing lowers them."""
        j = np.arange(self.k + 1)
        return self.count * float((self.weights * (j * self.a) ** 2).sum()) / 2

    def _slope(self, z: float) -> float:
        j = np.arange(self.k + 1)
        y = j * self.a * z - 0.5 * (j * self.a) ** 2
        weight = self.weights * np.exp(y - y.max())
        return self.a * float((weight * j).sum() / weight.sum())

    def _power(self, c: float) -> float:
        return 1.0 + c if self.removal else -c

    def _window(self, c: float) -> tuple[float, float]:
        """Beyond these ends log(integrand) falls at a rate of at least the margin."""
        if self.removal:
            return -_MARGIN, _MARGIN + (1 + c) * self.k * self.a
        # e^{-c·l} rises to the left by c·l' at most: so much further the integrand falls as fast.
        return -_MARGIN - c * self._slope(-_MARGIN), _MARGIN

    def _step(self, c: float, u: float) -> tuple[float, float]:
        """A step h, and a bound of the quadrature's error over M(c)."""
        ka = self.k * self.a
        # Heights inside the strip where the integrand is analytic; any of them gives a bound.
        d = np.linspace(0.02, 0.97, 40) * min(math.pi / ka, 60.0 / (1.0 + u * ka) + 60.0)
        growth = d * d / 2 + u * ka * d
        if not self.removal:
            growth = growth + self._turned(c, d)
        # The error counts once a repetition.
        depth = 42.0 + math.log(self.count)
        # The longest step that some height proves: e^-42 of a repetition's share.
        h = float((2 * math.pi * d / (growth + depth)).max()) * 0.999
        best = float((growth - 2 * math.pi * d / h).min())
        return h, 2.1 * math.exp(best)

    def _turned(self, c: float, d: Array) -> Array:
        """log of how much |e^l|^{-c} may grow on lines Im z = d, relative to M(c)."""
        turned = self.k * self.a * d
        growth = -c * np.log(np.cos(turned / 2))
        # Without a floor there is no second bound.
        if self.rate == 1:
            return growth
        most = -c * self.k * math.log1p(-self.rate) * (1 + _GUARD)
        # The second bound is for angles up to pi/2, with room for their rounding.
        result: Array = np.where(turned < 0.49 * math.pi, np.minimum(growth, most), growth)
        return result

    def _least_modulus(self, y: float, ratio: Array) -> Array:
        """log of a lower bound of |e^l| at Im z = y, at most 0.49·pi/(K·a), where l is on Re z.

        The better of e^l·cos(K·a·y/2) and w_0 + cos(K·a·y)·(e^l - w_0); it increases with l.
        """
        turned, lost = self.k * self.a * y, 1.0
        if self.rate < 1:
            lost = -math.expm1(self.k * math.log1p(-self.rate))
        with np.errstate(over="ignore", divide="ignore"):
            rest = np.log1p(math.cos(turned) * (np.expm1(ratio) + lost) - lost)
        result: Array = np.maximum(ratio + math.log(math.cos(turned / 2)), rest)
        return result

    def log_moment(self, c: Array) -> Array:
        """log of the trapezoid sums at real points, on the nodes that all of them need."""
        largest = float(c.max())
        h, _ = self._step(largest, 0.0)
        low, high = self._window(largest)
        low, high = min(low, -_MARGIN), max(high, _MARGIN)
        z = _nodes(low, high, h)
        if len(z) * len(c) > _BLOCK and len(c) > 1:
            return np.concatenate([self.log_moment(c[i : i + 1]) for i in range(len(c))])
        power = 1.0 + c if self.removal else -c
        ratio = self.log_ratio(z)[0]
        f = power[:, None] * ratio[None, :] - 0.5 * (z * z)[None, :]
        top = f.max(axis=1)
        sums = np.exp(f - top[:, None]).sum(axis=1)
        value: Array = top + np.log(sums * (h / math.sqrt(2 * math.pi)))
        loss = ratio if self.removal else -ratio
        near = (np.abs(value) < 0.3) & (c * float(np.abs(loss).max()) < 600.0)
        if near.any():
            # Close to 1, less 1: as `_base` has it.
            weight = np.exp(-0.5 * z * z + np.maximum(loss, -700.0) * self.removal)
            rise = (np.expm1(c[near, None] * loss[None, :]) * weight).sum(axis=1)
            value[near] = np.log1p(rise * (h / math.sqrt(2 * math.pi)))
        value *= self.count
        return value

    @lru_cache(maxsize=64)  # noqa: B019 - of terms that live in a cache of their own
    def _sum(self, c: float) -> float:
        return float(self.log_moment(np.array([c]))[0]) / self.count

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """Trapezoid sums at c + iu; cut nodes, quadrature and rounding are in the slack."""
        h, quadrature = self._step(c, float(u.max()))
        low, high = self._window(c)
        z = _nodes(low, high, h)
        ratio, ratio_error = self.log_ratio(z)
        power = self._power(c)
        f = -0.5 * z * z + power * ratio
        top = float(f.max())
        # Beyond either end a geometric series, as the integrand falls at a rate of at least the
        # margin.
        cut = (math.exp(f[0] - top) + math.exp(f[-1] - top)) / -math.expm1(-_MARGIN * h)
        whole = float(np.exp(f - top).sum())
        sign = 1.0 if self.removal else -1.0
        # The nodes' own rounding, times the slope of l.
        slope = self.k * self.a * (1 - float(self.weights[0]) * np.exp(-ratio))
        moved = 2 * EPS * np.abs(z) * (np.maximum(slope, 0.0) + 8 * EPS * self.k * self.a)
        shaken = ratio_error + 6 * EPS * np.abs(ratio) + moved
        base, base_error = self._base(c, z, sign * ratio, shaken, h, top, whole)
        # Nodes that far below the largest are left out, each counted as e^-60.
        kept = f > top - 60.0
        cut += len(z) * math.exp(-60.0)
        z, ratio, shaken, f = z[kept], ratio[kept], shaken[kept], f[kept]
        weight = np.exp(f - top) / whole
        change = turned(sign * ratio, weight, u)
        # Each summand w·(e^{iul} - 1) errs by its weight's error and by its angle's.
        short = min(len(z), SHORT + len(z) // SHORT + 1)
        each = 2 * (abs(power) * shaken + EPS * (2 * z * z + np.abs(f) + 4)) + EPS * (short + 24)
        blunt = 4 * float((weight * each).sum())
        steep = float((weight * (each * np.abs(ratio) + shaken)).sum())
        turn = float((weight * shaken).sum())
        lost = np.minimum(blunt + turn * u, steep * u) + 2 * cut / whole + 4 * quadrature
        # Where the sum cancels to nothing its error is all there is: the slack is the larger.
        modulus = np.maximum(np.abs(1.0 + change), 1e-300)
        slack = base_error + np.log1p((lost + 4 * EPS * np.abs(change)) / modulus)
        logs = log_of(change)
        return self.count * base, self.count * logs, self.count * (slack + 4 * EPS * np.abs(logs))

    def _base(
        self, c: float, z: Array, loss: Array, shaken: Array, h: float, top: float, whole: float
    ) -> tuple[float, float]:
        """log M(c) from the same nodes, and a bound of its rounding error.

        Where M(c) is near 1, log1p of Σ w·(e^{cL} - 1) under the law's own weights w, of which
        less than e^{-49} lies beyond the nodes.
        """
        if c * float(np.abs(loss).max()) < 600.0:
            rise = np.expm1(c * loss)
            weight = np.exp(-0.5 * z * z + np.maximum(loss, -700.0) * self.removal)
            weight *= h / math.sqrt(2 * math.pi)
            total = float((weight * rise).sum())
            if abs(total) < 0.5:
                size = EPS * (len(z) / 4 + 24 + z * z) + self.removal * shaken
                error = weight * (np.abs(rise) * size + c * shaken * (1 + rise))
                return math.log1p(total), 2 * float(error.sum()) / (1 + total) + math.exp(-48.0)
        base = top + math.log(whole * h / math.sqrt(2 * math.pi))
        power = abs(self._power(c))
        f = -0.5 * z * z + self._power(c) * loss * (1.0 if self.removal else -1.0)
        weight = np.exp(f - top) / whole
        each = power * shaken + EPS * (2 * z * z + np.abs(f) + len(z) / 4 + 8)
        return base, 2 * float((weight * each).sum()) + EPS * (abs(base) + 8)

    @lru_cache(maxsize=64)  # noqa: B019 - as above; a contour asks several times
    def blur(self, c: float) -> float:
        """The slack of `along` at c, twice."""
        return super().blur(c)

    def cost(self, c: float, u: float) -> float:
        """Nodes of the inner quadrature; most of their work is one matrix product."""
        low, high = self._window(c)
        return (high - low) / self._step(c, u)[0] / 25

    def fade(self, c: float, u: Array) -> Array:
        """The better of two bounds: one close to u = 0, one far from it."""
        near, far = self.quick_fade(c, u), self.count * self.fade_of_shift(c, u, self._sum(c))
        result: Array = np.minimum(near, far)
        return result

    def quick_fade(self, c: float, u: Array) -> Array:
        """That close to u = 0."""
        return self.count * faded(*self._layers(c), u)

    @lru_cache(maxsize=64)  # noqa: B019 - as above
    def _layers(self, c: float) -> tuple[Array, Array]:
        """Uniform laws under the tilted density of L, phi·e^{power·l}/l'.

        On a cell phi is least at an end (its log is concave), l is increasing and l' too, so the
        product of the three least values is a lower bound of the density.
        """
        low, high = self._window(c)
        z = np.linspace(low, high, 241)
        ratio, _ = self.log_ratio(z)
        j = np.arange(self.k + 1)[:, None]
        y = j * self.a * z[None, :] - 0.5 * (j * self.a) ** 2
        shape = self.weights[:, None] * np.exp(y - y.max(axis=0))
        slope = self.a * (shape * j).sum(axis=0) / shape.sum(axis=0)
        power = self._power(c)
        least = np.minimum(-0.5 * z[:-1] ** 2, -0.5 * z[1:] ** 2)
        tilt = power * (ratio[:-1] if power > 0 else ratio[1:])
        whole = self._sum(c) + 0.5 * math.log(2 * math.pi)
        with np.errstate(divide="ignore", over="ignore", under="ignore"):
            density = np.exp(np.minimum(least + tilt - whole - np.log(slope[1:]), 690.0))
        density[~(slope[1:] > 1e-290)] = 0.0
        return layers_of(density * (1 - _GUARD), ratio)

    def fade_of_shift(self, c: float, u: Array, moment: float) -> Array:
        """By moving the inner integral to Im z = y, where e^{iuL} decays; 0 where that is no help.

        There arg e^l lies in [0, pi] and increases with Re z: with s_j e^{ij·theta} the summands of
        the ratio, theta = a·y, its derivative is a·Σ_{j>k} (j-k)·s_j·s_k·sin((j-k)·theta)/|e^l|².
        So for all w >= u the integral is at most that of phi(x)·e^{y²/2}·|e^l|^power·e^{-u·arg},
        which is bounded cell by cell: |e^l| as in the module's description, arg at the left end.
        Beyond the window the integrand falls at a rate of at least the margin: l' increases, and
        the bound of log|e^l| has at most that slope. ``moment`` is log M(c) of one run, or less.
        """
        low, high = self._window(c)
        z = np.linspace(low, high, 1 + math.ceil((high - low) / 0.05))
        ratio, off = self.log_ratio(z)
        power, ka = self._power(c), self.k * self.a
        most = -0.5 * np.where(z[:-1] * z[1:] > 0, np.minimum(z[:-1] ** 2, z[1:] ** 2), 0.0)
        whole = moment + 0.5 * math.log(2 * math.pi)
        j = np.arange(self.k + 1)[:, None]
        with np.errstate(divide="ignore"):
            share = np.log(self.weights)[:, None] + j * self.a * z[None, :-1]
        size = np.exp(np.minimum(share - 0.5 * (j * self.a) ** 2 - ratio[:-1], 0.0))
        best = np.zeros_like(u)
        for part in (0.05, 0.15, 0.3, 0.49):
            y = part * min(math.pi / ka, 8.0)
            # |e^l| at its largest where it helps the integrand, and at its least where it is
            # divided by.
            if power > 0:
                f = most + power * (ratio + off)[1:]
            else:
                f = most + power * self._least_modulus(y, ratio - off)[:-1]
            top = float(f.max())
            # Cells far below the largest are added without their decay.
            kept = f > top - 46.0
            mass = np.exp(f - top) * (z[1] - z[0])
            ends = (math.exp(f[0] - top) + math.exp(f[-1] - top)) / _MARGIN
            ends += float(mass[~kept].sum())
            theta = j * (self.a * y)
            turn = np.arctan2((size * np.sin(theta)).sum(0), (size * np.cos(theta)).sum(0))
            spun = np.exp(-np.outer(u, turn[kept] * (1 - _GUARD)))
            held = top + np.log((spun * mass[kept]).sum(axis=1) + ends)
            grown = 0.5 * y * y - whole
            best = np.minimum(best, held + grown + _GUARD * (1 + np.abs(held) + np.abs(grown)))
        return best

    def top(self) -> float:
        """-log(w_0) for addition; removal has no end."""
        if self.removal or self.weights[0] <= 0:
            return math.inf
        return -self.count * self._floor

    def anchors(self) -> tuple[float, float]:
        """Where most samples lack the unit, nearly an atom at ±log(w_0)."""
        if self.weights[0] <= 0:
            return 0.0, 0.0
        return (self._floor if self.removal else -self._floor), 0.0

    def least(self) -> float:
        """log(w_0) for removal; addition has no end."""
        if not self.removal or self.weights[0] <= 0:
            return -math.inf
        # A logarithm's two halves of EPS and a product's one; this product rounds by another.
        return self._floor * (1 + 4 * EPS)

    def singles(self) -> list[tuple[Term, int]]:
        """Itself."""
        return [(self, self.count)]

    def place(self, losses: Array) -> Array:
        """The z at which l(z) equals the given values, by bisection on a monotone function."""
        # Beyond 80 deviations there is no mass that a double holds.
        low = np.full_like(losses, -80.0)
        high = np.full_like(losses, 80.0 + self.k * self.a)
        with np.errstate(divide="ignore"):
            floor = math.log(self.weights[0]) if self.weights[0] > 0 else -math.inf
        low, high = bisect_arrays(lambda z: self.log_ratio(z)[0] >= losses, low, high, steps=64)
        return np.where(losses <= floor, -np.inf, (low + high) / 2)

    def ends(self, tail: float) -> tuple[float, float]:
        """l at the ends of a window that both normals leave with probability at most ``tail``."""
        # Pr[N > z] <= e^{-z²/2}: a quarter of the tail on either side of each normal.
        z = math.sqrt(2 * math.log(4 / tail))
        low, high = self.log_ratio(np.array([-z, z + self.k * self.a]))[0].tolist()
        return (low, high) if self.removal else (-high, -low)

    def cells(self, edges: Array) -> LawCells:
        """Normal masses between the places where l reaches the edges."""
        sign = 1.0 if self.removal else -1.0
        if len(self.weights) == 2:
            q = float(self.weights[1])
            with np.errstate(divide="ignore", invalid="ignore"):
                inner = np.where(
                    sign * edges > math.log1p(-q) if q < 1 else True,
                    (np.expm1(np.minimum(sign * edges, 100.0)) + q) / q,
                    0.0,
                )
                # Beyond 100, where e^edge is 10^27 times the rest.
                log = np.where(sign * edges > 100.0, sign * edges - math.log(q), np.log(inner))
                place = np.where(inner > 0, log / self.a + self.a / 2, -np.inf)
        else:
            place = self.place(sign * edges)
        if not self.removal:
            place = place[::-1]
        parts = [
            (*normal_mass(place, j * self.a, 1.0), w) for j, w in enumerate(self.weights.tolist())
        ]
        mixed = sum((w * m for m, _, _, _, w in parts), np.zeros(len(edges) - 1))
        mixed_error = sum((w * e for _, e, _, _, w in parts), np.zeros(len(edges) - 1))
        mix_below = sum(w * b for _, _, b, _, w in parts)
        mix_above = sum(w * a for _, _, _, a, w in parts)
        plain, plain_error, below, above, _ = parts[0]
        # The masses are those of the rounded places; their losses are off by this much at most.
        at = np.where(np.isfinite(place), place, 0.0)
        largest = float(np.abs(edges).max())
        apart = apart_error = None
        if len(self.weights) == 2:
            g = self.rate
            level = (sign * edges)[:: 1 if self.removal else -1]
            slope = self.a * -np.expm1(np.minimum(math.log1p(-g) - level, 0.0)) if g < 1 else self.a
            off = self.log_ratio(at)[1] + slope * 8 * EPS * (np.abs(at) + 1 + self.a)
            position = float(off.max()) + 32 * EPS * (largest + g)
            position += 16 * EPS * g / (1 - g) if g < 1 else 0.0
            moved, moved_error = parts[1][0], parts[1][1]
            apart = g * (moved - plain)
            apart_error = g * (moved_error + plain_error + 4 * EPS * np.abs(moved - plain))
        else:
            off = self.log_ratio(at)[1] + self.k * self.a * 8 * EPS * (np.abs(at) + 1)
            position = float(off.max()) + 32 * EPS * (1 + largest)
        if self.removal:
            return LawCells(
                mixed,
                plain,
                mixed_error,
                plain_error,
                mix_below,
                mix_above,
                position,
                apart,
                apart_error,
            )
        return LawCells(
            plain[::-1],
            mixed[::-1],
            plain_error[::-1],
            mixed_error[::-1],
            above,
            below,
            position,
            None if apart is None else -apart[::-1],
            None if apart_error is None else apart_error[::-1],
        )

    def mean(self) -> float:
        """∫ P·L by the same nodes, with the integrand's own trapezoid error."""
        reach = self.k * self.a
        # Losses bend within 1/a; of a million nodes, those of large a pass a bend in few steps.
        z = np.arange(-40.0, 40.0 + reach, max(0.02 / max(1.0, reach), (80.0 + reach) / 1e6))
        ratio, _ = self.log_ratio(z)
        size = (ratio if self.removal else 0.0) - 0.5 * z * z
        weight = np.exp(size - size.max())
        total = float((weight * ratio).sum() / weight.sum())
        return self.count * (total if self.removal else -total)
