"""Many Gaussians on Poisson samples at once: the same quadrature, of all kinds together.

A schedule of noise or of rates makes hundreds of kinds that run once each. What `gaussian`
does of one is done here of blocks of them, in arrays of kinds and nodes: kinds whose noise is alike
share nodes, made for the one of least noise. With a = 1/noise_multiplier all bounds there grow with
a, so that those of the largest one hold for a block: the strip of analyticity, |Im z| < pi/a, the
growth e^{d²/2 + |u|·a·d}·cos(a·d/2)^{-c} on its lines, and the slope of the log-ratio, which the
ends of the window rest on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dither.errors import ArgumentError
from dither.privacy.laws.sampled.gaussian import TOO_LITTLE_NOISE, SampledGaussianTerm
from dither.privacy.laws.sampled.spectra import layers_of_kinds, logs_of_kinds
from dither.privacy.laws.term import EPS, SHORT, Array, Complex, Term, erfc, faded

__all__ = ["SampledGaussiansTerm"]


_BLOCK = 64
"""Kinds that share nodes."""

_MARGIN = 10.0
"""Deviations beyond the saddle at which the nodes end; what is cut is charged."""

_NODES = 1_000_000
"""Beyond that a block takes too long."""

_LARGEST = 600.0
"""Exponents that are taken as they are."""

_SKETCHED = 32
"""Kinds that stand for all where a moment is only about what it is."""

_SPARSE = 1.0
"""Units expected in all samples up to which rare large losses are looked at first."""

_TURNED = 24
"""Kinds of which a fade is bounded by moving their integrals, too."""

_CELLS = 241
"""Cells of a density that a fade is taken of."""

_GUARD = 1e-9
"""What a density is lowered by, for the rounding of exponents of up to 700: some 1e-13 of it."""


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Of a block: places, log-ratios and their errors, and what ends and the rule lose."""

    z: Array
    ratio: Array
    error: Array
    h: float
    quadrature: float


@dataclass(frozen=True, slots=True)
class _Sums:
    """Of each kind of a block: log M(c), its error, log-masses, their largest, and their sum."""

    base: Array
    error: Array
    logs: Array
    top: Array
    whole: Array
    cut: Array


class SampledGaussiansTerm(Term):
    """Gaussians on Poisson samples, one unit each, of many kinds.

    Parameters
    ----------
    noise_multipliers, rates, counts : array, shape (n,)
        One entry a kind: deviation of the noise over the sensitivity, the chance of each unit to be
        sampled, in (0, 1), and repetitions.
    removal : bool
        The direction.
    """

    def __init__(
        self, noise_multipliers: Array, rates: Array, counts: Array, removal: bool
    ) -> None:
        order = np.argsort(noise_multipliers, kind="stable")
        self.noise_multipliers = noise_multipliers[order]
        self.a = 1.0 / self.noise_multipliers
        self.rates, self.counts = rates[order], counts[order]
        self.removal = removal
        top = float(self.a.max())
        # As of one kind, for the one of least noise: its losses are the largest.
        self.reach = 60.0 / top + 200.0 * min(1.0, 9.0 / top**2)
        self._kept: dict[float, list[_Sums]] = {}
        self._faded: dict[tuple[float, int, float], Array] = {}

    def _blocks(self) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Kinds of like noise: where they are, their a and rates as columns, and their counts."""
        first = 0
        while first < len(self.a):
            # Falling, so that the first has the largest.
            # Kinds of up to twice the noise share nodes: more would cost the quiet ones too many.
            alike = int(np.searchsorted(-self.a, -self.a[first] / 2, side="right"))
            last = min(max(alike, first + 1), first + _BLOCK)
            kinds = slice(first, last)
            yield kinds, self.a[kinds, None], self.rates[kinds, None], self.counts[kinds]
            first = last

    def _power(self, c: float) -> float:
        return 1.0 + c if self.removal else -c

    def _ratio(self, z: Array, a: Array, g: Array) -> tuple[Array, Array]:
        """l at z of each kind, and a bound of its error."""
        y = a * z - 0.5 * a * a
        rise = np.expm1(np.minimum(y, _LARGEST))
        total = g * rise
        value = np.log1p(total)
        lost = g * (4 * np.abs(rise) + 2 * np.abs(y) * (rise + 1)) / (1 + total)
        error = lost + 2 * np.abs(value)
        # Where the unit is sampled more often than not, or the exponent is large, in logarithms.
        other = (y >= _LARGEST) | (g > 0.75)
        if other.any():
            far = np.logaddexp(np.log1p(-g), np.log(g) + y)
            value = np.where(other, far, value)
            error = np.where(other, 5 + 4 * np.abs(y) + 2 * np.abs(far), error)
        return value, EPS * error

    def _rule(
        self, a: Array, g: Array, c: float, u: float, count: float
    ) -> tuple[float, float, float, float]:
        """A step, what the rule errs by in parts of M(c), and the ends of the window."""
        # Bounds grow with a: those of a block's largest hold for all of it.
        most = float(a[0, 0])
        d = np.linspace(0.02, 0.97, 40) * min(math.pi / most, 60.0 / (1.0 + u * most) + 60.0)
        growth = d * d / 2 + u * most * d
        if not self.removal:
            growth = growth - c * np.log(np.cos(most * d / 2))
        # The error counts once a repetition.
        h = float((2 * math.pi * d / (growth + 42.0 + math.log(count))).max()) * 0.999
        quadrature = 2.1 * math.exp(float((growth - 2 * math.pi * d / h).min()))
        low, high = -_MARGIN, _MARGIN
        if self.removal:
            high += (1 + c) * most
        else:
            # The slope of l at the end: a·g·e^y/(1 - g + g·e^y).
            y = -a * _MARGIN - 0.5 * a * a + np.log(g) - np.log1p(-g)
            low -= c * float((a / (1 + np.exp(-y))).max())
        return h, quadrature, low, high

    def _nodes(self, a: Array, g: Array, c: float, u: float, count: float) -> _Nodes:
        h, quadrature, low, high = self._rule(a, g, c, u, count)
        if (high - low) * len(a) > _NODES * h:
            raise ArgumentError(TOO_LITTLE_NOISE)
        z = h * np.arange(math.floor(low / h), math.ceil(high / h) + 1)
        ratio, error = self._at(z, a, g, 2 * EPS * np.abs(z))
        return _Nodes(z, ratio, error, h, quadrature)

    def _at(self, z: Array, a: Array, g: Array, moved: Array) -> tuple[Array, Array]:
        """l at nodes and its error, with their own rounding times the slope of l."""
        ratio, error = self._ratio(z, a, g)
        slope = a * np.maximum(1 - (1 - g) * np.exp(-ratio), 0.0) + 8 * EPS * a
        return ratio, error + 6 * EPS * np.abs(ratio) + moved * slope

    def _sums(self, nodes: _Nodes, c: float) -> _Sums:
        """log M(c) of each kind.

        As Σ w·(e^{cL} - 1) under the law's own weights w, of which less than e^{-49} lies beyond
        the nodes; or, of large exponents, as the sum itself.
        """
        z, ratio, power = nodes.z, nodes.ratio, self._power(c)
        logs = power * ratio - 0.5 * z * z
        top = logs.max(axis=1, keepdims=True)
        weight = np.exp(logs - top)
        whole = weight.sum(axis=1)
        scale = nodes.h / math.sqrt(2 * math.pi)
        base = top[:, 0] + np.log(whole * scale)
        short = len(z) / 4 + 8
        each = abs(power) * nodes.error + EPS * (2 * z * z + np.abs(logs) + short)
        error = 2 * (weight * each).sum(axis=1) / whole + EPS * (np.abs(base) + 8)
        loss = ratio if self.removal else -ratio
        if c * float(np.abs(loss).max()) < _LARGEST:
            rise = np.expm1(c * loss)
            law = np.exp(-0.5 * z * z + (loss if self.removal else 0.0)) * scale
            total = (law * rise).sum(axis=1)
            size = EPS * (short + 16 + z * z) + (nodes.error if self.removal else 0.0)
            off = law * (np.abs(rise) * size + c * nodes.error * (1 + rise))
            # log1p near 1, where log of the sum would lose its digits.
            near = np.abs(total) < 0.5
            held = np.where(near, total, 0.0)
            base = np.where(near, np.log1p(held), base)
            sharp = 2 * off.sum(axis=1) / (1 + held) + math.exp(-48.0)
            error = np.where(near, sharp, error)
        cut = (weight[:, 0] + weight[:, -1]) / -math.expm1(-_MARGIN * nodes.h) / whole
        error = error + 2 * (cut + nodes.quadrature)
        return _Sums(base, error, logs, top, whole, cut)

    def _moments(self, c: float) -> tuple[Array, Array]:
        """log M(c) of every kind, once, and bounds of the errors."""
        found = self._kept.get(c)
        if found is None:
            found = []
            for _, a, g, counts in self._blocks():
                sums = self._sums(self._nodes(a, g, c, 0.0, float(counts.max())), c)
                found.append(_Sums(sums.base, sums.error, *[np.zeros(0)] * 4))
            if len(self._kept) > 64:
                self._kept.clear()
            self._kept[c] = found
        return np.concatenate([s.base for s in found]), np.concatenate([s.error for s in found])

    def _total(self, values: Array) -> float:
        return math.fsum((self.counts * values).tolist())

    def log_moment(self, c: Array) -> Array:
        """The sum over kinds, by quadrature at real points."""
        return np.array([self._total(self._moments(x)[0]) for x in c.tolist()])

    def sketch(self, c: Array) -> Array:
        """That of some kinds, in proportion."""
        return self._some.log_moment(c)

    @cached_property
    def _some(self) -> SampledGaussiansTerm:
        n = len(self.a)
        if n <= 2 * _SKETCHED:
            return self
        # From the middle of each share: the first and the last kinds may be far from the others.
        some = ((np.arange(_SKETCHED) + 0.5) * n / _SKETCHED).astype(int)
        counts = self.counts[some] * (self.counts.sum() / self.counts[some].sum())
        return self._of(self.noise_multipliers[some], self.rates[some], counts)

    def _of(self, noise_multipliers: Array, rates: Array, counts: Array) -> SampledGaussiansTerm:
        return SampledGaussiansTerm(noise_multipliers, rates, counts, self.removal)

    def blur(self, c: float) -> float:
        """The errors of all, twice."""
        base, error = self._moments(c)
        return 2 * (self._total(error) + 4 * EPS * self._total(np.abs(base)))

    def moment_ends(self, c: float) -> tuple[float, float]:
        """The sum, with its error on either side."""
        value, off = self._total(self._moments(c)[0]), self.blur(c)
        return value - off, value + off

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """Trapezoid sums at c + iu; cut nodes, quadrature and rounding are in the slack."""
        base, value, slack = 0.0, np.zeros(len(u), dtype=complex), np.zeros(len(u))
        for _, a, g, counts in self._blocks():
            nodes = self._nodes(a, g, c, float(u.max()), float(counts.max()))
            sums = self._sums(nodes, c)
            base += float((counts * sums.base).sum())
            kept = ((sums.logs - sums.top) > -60.0).any(axis=0)
            z, ratio, error = nodes.z[kept], nodes.ratio[:, kept], nodes.error[:, kept]
            weight = np.exp(sums.logs[:, kept] - sums.top) / sums.whole[:, None]
            logs, modulus, off = logs_of_kinds(ratio if self.removal else -ratio, weight, u, counts)
            # As of one kind: each summand w·(e^{iul} - 1) errs as its weight and its angle do.
            short = min(len(z), SHORT) + len(z)
            each = abs(self._power(c)) * error + EPS * (2 * z * z + np.abs(sums.logs[:, kept]) + 4)
            each = 2 * each + EPS * (short + 24)
            blunt = 4 * (weight * each).sum(axis=1)[:, None]
            steep = (weight * (each * np.abs(ratio) + error)).sum(axis=1)[:, None]
            turn = (weight * error).sum(axis=1)[:, None]
            cut = 2 * (sums.cut + len(nodes.z) * math.exp(-60.0)) + 4 * nodes.quadrature
            lost = np.minimum(blunt + turn * u, steep * u) + cut[:, None] + off
            wrong = sums.error[:, None] + np.log1p(lost / np.maximum(modulus, 1e-300))
            # Sums over kinds add one rounding each.
            wrong += EPS * (8 + len(self.a)) * (np.abs(logs) + np.abs(sums.base)[:, None])
            value += (counts[:, None] * logs).sum(axis=0)
            slack += (counts[:, None] * wrong).sum(axis=0)
        return base, value, slack

    def cost(self, c: float, u: float) -> float:
        """A transform and a logarithm of each kind."""
        return 8.0 * len(self.a)

    def fade(self, c: float, u: Array) -> Array:
        """Of each kind the bound by level sets; of some the better of two."""
        each = self._near(c, u).copy()
        some = np.unique(np.linspace(0, len(self.a) - 1, _TURNED).astype(int))
        base, error = self._moments(c)
        for i in some.tolist():
            one = SampledGaussianTerm(
                float(self.noise_multipliers[i]), float(self.rates[i]), self.removal, 1
            )
            # Of some only, as each takes a while: the others keep their bound by level sets.
            far = one.fade_of_shift(c, u, float(base[i] - error[i]))
            each[i] = np.minimum(each[i], far)
        result: Array = (self.counts[:, None] * each).sum(axis=0)
        return result

    def quick_fade(self, c: float, u: Array) -> Array:
        """That by level sets."""
        result: Array = (self.counts[:, None] * self._near(c, u)).sum(axis=0)
        return result

    def _near(self, c: float, u: Array) -> Array:
        """`_level`, kept: a closer bound asks for it again."""
        key = c, len(u), float(u[-1])
        if key not in self._faded:
            self._faded.clear()
            self._faded[key] = self._level(c, u)
        return self._faded[key]

    def _level(self, c: float, u: Array) -> Array:
        """By uniform laws under the tilted density of L of each kind, phi·e^{power·l}/l'.

        On a cell phi is least at an end (its log is concave), l is increasing and l' too, so the
        product of the three least values is a lower bound of the density.
        """
        found, power = [], self._power(c)
        base, error = self._moments(c)
        for kinds, a, g, _ in self._blocks():
            z = np.linspace(-_MARGIN, self._end(kinds, c), _CELLS)
            ratio, _ = self._ratio(z, a, g)
            with np.errstate(over="ignore"):
                slope = a / (1 + (1 - g) / g * np.exp(0.5 * a * a - a * z[1:]))
            least = np.minimum(-0.5 * z[:-1] ** 2, -0.5 * z[1:] ** 2)
            tilt = power * (ratio[:, :-1] if power > 0 else ratio[:, 1:])
            # M(c) from above, so that the density under it is from below.
            whole = (base + error)[kinds, None] + 0.5 * math.log(2 * math.pi)
            with np.errstate(divide="ignore", over="ignore", under="ignore"):
                density = np.exp(np.minimum(least + tilt - whole - np.log(slope), 690.0))
            # A density of 0 is a lower bound where no other is known.
            density[~(slope > 1e-290)] = 0.0
            masses, widths = layers_of_kinds(density * (1 - _GUARD), ratio)
            found.append(faded(masses, widths, u))
        return np.concatenate(found)

    def _end(self, kinds: slice, c: float) -> float:
        """A place up to which a block's densities are looked at."""
        return _MARGIN + ((1 + c) * float(self.a[kinds].max()) if self.removal else 0.0)

    def variation(self) -> float:
        """An upper bound of Σ g·(Phi(a/2) - Phi(-a/2)), the sum of the total variations.

        erf errs by 2 units in its last place, and there are 4 roundings.
        """
        each = self.counts * self.rates * (1 - erfc(self.a / math.sqrt(8)))
        # 1 - erfc loses digits of small shifts: at most a rounding of 1 each.
        lost = 2 * EPS * float((self.counts * self.rates).sum())
        return math.fsum(each.tolist()) * (1 + 16 * EPS) + lost

    @property
    def sparse(self) -> bool:
        """Whether a line of all losses would be long."""
        return float((self.counts * self.rates).sum()) <= _SPARSE

    @property
    def most_mean(self) -> float:
        """An upper bound of the mean loss: divergences are convex, and mixing lowers them."""
        return float((self.counts * self.rates * self.a**2).sum()) / 2

    def singles(self) -> list[tuple[Term, int]]:
        """One law a kind."""
        rows = zip(
            self.noise_multipliers.tolist(),
            self.rates.tolist(),
            self.counts.tolist(),
            strict=True,
        )
        return [
            (SampledGaussianTerm(s, g, self.removal, int(count)), int(count))
            for s, g, count in rows
        ]

    def top(self) -> float:
        """-log(1 - rate) each for addition; removal has no end."""
        return math.inf if self.removal else -self._total(np.log1p(-self.rates))

    def top_ends(self) -> tuple[float, float] | None:
        """Ends of `top`; None where there is none.

        A logarithm, a product and a sum of positive numbers; and a rate that is off by half of EPS
        of itself, which moves its logarithm by so much of 1/(1 - rate).
        """
        if self.removal:
            return None
        value, off = self.top(), EPS * (8 + 2 / (1 - float(self.rates.max())))
        return value * (1 - off), value * (1 + off)

    def mean(self) -> float:
        """The sum."""
        return math.fsum(term.mean() for term, _ in self.singles())
