"""Many Laplaces on Poisson samples at once: the same quadrature, of all kinds together.

What `line` does of one is done here of all in arrays, on the same panels of [-1, 1] times each
kind's epsilon. With x the base's loss under Q, g the rate and w(x) = 1 - g + g·e^x, the loss is
log w with density w where a unit is removed, and -log w where one is added. Under Q x is epsilon
with chance e^{-epsilon}/2, -epsilon with 1/2, and between them it has the density
e^{-(x + epsilon)/2}/4. `line` says why the rule errs by no more than is charged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dither.privacy.laws.sampled.panels import POINTS, RULE_ERROR, panel_nodes
from dither.privacy.laws.sampled.spectra import layers_of_kinds, logs_of_kinds
from dither.privacy.laws.term import (
    EPS,
    SHORT,
    UNKNOWN,
    Array,
    Complex,
    Term,
    faded,
    left,
    paired,
)

__all__ = ["LARGEST", "SampledLaplacesTerm"]


LARGEST = 20.0
"""The largest epsilon that so few panels are enough for."""

_PANELS, _NODES = 64, 1 << 21
"""Panels on the real line, and nodes of all kinds together elsewhere: with as many the error is
what it is, and is charged."""

_RADII = np.array([1.3, 1.6, 2.0, 2.6, 3.4, 4.5, 6.0, 8.0, 11.0])[:, None, None]
"""Of ellipses of analyticity: each gives a bound, and the best holds."""

_WANTED = -39.0
"""A logarithm of what a rule may err by of M(c), over all repetitions, for no more panels."""

_SKETCHED = 32
"""Kinds that stand for all where a moment is only about what it is."""

_CELLS = 121
"""Cells of a density that a fade is taken of."""


@dataclass(frozen=True, slots=True)
class _Sums:
    """Of each kind: log M(c), its error, tilted masses that add up to 1, their errors, losses."""

    base: Array
    error: Array
    weight: Array
    each: Array
    loss: Array
    shaken: Array
    missed: Array


class SampledLaplacesTerm(Term):
    """Laplaces on Poisson samples, of many kinds.

    Parameters
    ----------
    epsilons, rates, counts : array, shape (n,)
        One entry a kind: of the mechanism without a sample, up to `LARGEST`; the chance of each
        unit to be sampled, in (0, 1); and repetitions.
    removal : bool
        The direction.
    """

    def __init__(self, epsilons: Array, rates: Array, counts: Array, removal: bool) -> None:
        self._e, self._g, self.counts = epsilons[:, None], rates[:, None], counts
        self.removal = removal
        self._kept: dict[float, tuple[Array, Array]] = {}
        self._faded: dict[tuple[float, int, float], Array] = {}

    def _log_w(self, x: Array) -> tuple[Array, Array]:
        """log w(x) and its slope, stable near 0."""
        rise = self._g * np.expm1(x)
        return np.log1p(rise), self._g * np.exp(x) / (1 + rise)

    def _error(self, panels: int, c: float, u: float) -> Array:
        """At least the logarithm of what the rule errs by, of each kind."""
        half = self._e / panels
        middle = half * (2 * np.arange(panels) - panels + 1)
        tall, wide = half * (_RADII - 1 / _RADII) / 2, half * (_RADII + 1 / _RADII) / 2
        left, right = middle - wide, middle + wide
        # Below pi/2, up to which |w| and its argument are bounded; wider ellipses are refused.
        held = np.minimum(tall, 1.5)
        size = -(left + self._e) / 2 - math.log(4)
        grown = self._g * np.exp(np.minimum(right, 600.0))
        if self.removal:
            size = size + (1 + c) * np.log1p(grown - self._g)
        else:
            low = np.log1p(self._g * np.expm1(left))
            size = size - c * (low + np.log(np.cos(held / 2)))
        if u > 0:
            turned = np.arctan2(grown * np.sin(held), 1 - self._g + grown * np.cos(held))
            size = size + u * turned
        size = size + np.log(8 * half) - 2 * POINTS * np.log(_RADII) - np.log1p(-1 / _RADII)
        best = np.where((tall <= 1.5) & (right <= 600.0), size, np.inf).min(axis=0)
        # Exponents round by far less than a thousandth.
        result: Array = best.max(axis=1) + math.log(panels) + 1e-3
        return result

    def _sums(self, c: float, u: float) -> _Sums:
        # No moment is below 1, or below what the likelier atom is worth.
        if self.removal:
            least = (1 + c) * self._log_w(self._e)[0] - self._e - math.log(2)
        else:
            least = -c * self._log_w(-self._e)[0] - math.log(2)
        least = np.maximum(least[:, 0], 0.0)
        panels, wanted = 1, _WANTED - np.log(self.counts)
        while True:
            log_error = self._error(panels, c, u) - least
            most = _NODES // (POINTS * len(self.counts)) if u > 0 else _PANELS
            if 2 * panels > most or (log_error <= wanted).all():
                break
            panels *= 2
        y, log_y = panel_nodes(np.linspace(-1.0, 1.0, panels + 1))
        x = np.concatenate([self._e * y, -self._e, self._e], axis=1)
        log = np.concatenate(
            [
                np.log(self._e) + log_y - (self._e * (1 + y)) / 2 - math.log(4),
                np.full_like(self._e, -math.log(2)),
                -self._e - math.log(2),
            ],
            axis=1,
        )
        moved = self._e * (RULE_ERROR + 4 * EPS)
        wrong = EPS * (16 + 4 * np.abs(log)) + 8 * RULE_ERROR + moved
        value, slope = self._log_w(x)
        shaken = slope * moved + EPS * (4 * np.abs(value) + 4 * slope * np.minimum(1, np.abs(x)))
        loss = value if self.removal else -value
        if self.removal:
            log, wrong = log + value, wrong + shaken
        tilt = log + c * loss
        top = tilt.max(axis=1)
        weight = np.exp(tilt - top[:, None])
        whole = weight.sum(axis=1)
        base = top + np.log(whole)
        short = x.shape[1] / 4 + 24
        each = wrong + c * shaken + EPS * (short + np.abs(tilt) + np.abs(top)[:, None])
        off = 2 * (weight * each).sum(axis=1) / whole + EPS * (np.abs(base) + 8)
        # Where M(c) is near 1, as Σ mass·(e^{cL} - 1): the masses add up to 1.
        rise = np.expm1(np.minimum(c * loss, 600.0))
        mass = np.exp(log)
        total = (mass * rise).sum(axis=1)
        near = (np.abs(total) < 0.5) & (c * np.abs(loss).max(axis=1) < 600.0)
        held = np.where(near, total, 0.0)
        small = np.abs(rise) * (wrong + EPS * short) + c * shaken * (1 + rise)
        sharp = 2 * (mass * small).sum(axis=1) / (1 + held)
        base, off = np.where(near, np.log1p(held), base), np.where(near, sharp, off)
        # Once of the tilted masses and once of the plain ones.
        missed = np.exp(np.minimum(log_error, 600.0)) * 2
        return _Sums(
            base, off + 2 * missed + 4 * EPS, weight / whole[:, None], each, loss, shaken, missed
        )

    def _moments(self, c: float) -> tuple[Array, Array]:
        found = self._kept.get(c)
        if found is None:
            sums = self._sums(c, 0.0)
            if len(self._kept) > 64:
                self._kept.clear()
            found = self._kept[c] = sums.base, sums.error
        return found

    def log_moment(self, c: Array) -> Array:
        """The sum over kinds, by quadrature at real points."""
        return np.array([math.fsum((self.counts * self._moments(x)[0]).tolist()) for x in c])

    def sketch(self, c: Array) -> Array:
        """That of some kinds, in proportion."""
        return self._some.log_moment(c)

    @cached_property
    def _some(self) -> SampledLaplacesTerm:
        n = len(self.counts)
        some = ((np.arange(_SKETCHED) + 0.5) * n / _SKETCHED).astype(int)
        counts = self.counts[some] * (self.counts.sum() / self.counts[some].sum())
        return SampledLaplacesTerm(self._e[some, 0], self._g[some, 0], counts, self.removal)

    def blur(self, c: float) -> float:
        """The errors of all, twice."""
        base, error = self._moments(c)
        each = self.counts * (error + 4 * EPS * np.abs(base))
        return 2 * math.fsum(each.tolist())

    def moment_ends(self, c: float) -> tuple[float, float]:
        """The sum, with its error on either side."""
        value, off = float(self.log_moment(np.array([c]))[0]), self.blur(c)
        return value - off, value + off

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """Sums at c + iu until the atoms alone have faded; a bound of them from there on."""
        plain = self._sums(c, 0.0)
        base = math.fsum((self.counts * plain.base).tolist())
        value, slack = np.zeros(len(u), dtype=complex), np.full(len(u), UNKNOWN)
        value.real[:] = self._bound(plain, u)
        head = left(value.real)
        if head:
            value[:head], slack[:head] = self._found(self._sums(c, float(u[head - 1])), u[:head])
        return base, value, slack

    def _found(self, sums: _Sums, u: Array) -> tuple[Complex, Array]:
        """The sum over kinds; quadrature and rounding are in the slack."""
        logs, modulus, error = logs_of_kinds(sums.loss, sums.weight, u, self.counts)
        nodes = sums.loss.shape[1]
        # As of one kind: each summand w·(e^{iul} - 1) errs as its weight and its angle do.
        each = 2 * sums.each + EPS * (min(nodes, SHORT) + nodes + 150)
        shaken = sums.shaken + 6 * EPS * np.abs(sums.loss)
        blunt = 4 * (sums.weight * each).sum(axis=1)[:, None]
        steep = (sums.weight * (each * np.abs(sums.loss) + shaken)).sum(axis=1)[:, None]
        turn = (sums.weight * shaken).sum(axis=1)[:, None]
        lost = np.minimum(blunt + turn * u, steep * u) + 4 * sums.missed[:, None] + error
        wrong = sums.error[:, None] + np.log1p(lost / np.maximum(modulus, 1e-300))
        # Sums over kinds add one rounding each.
        wrong += EPS * (8 + len(logs)) * (np.abs(logs) + np.abs(sums.base)[:, None])
        return self.counts @ logs, (self.counts @ wrong) * (1 + 1e-9)

    def _pairs(self, sums: _Sums) -> tuple[Array, Array]:
        """Of each kind's atoms, repetitions times both chances, and how far they are apart."""
        pairs = self.counts * sums.weight[:, -1] * sums.weight[:, -2]
        return pairs, np.abs(sums.loss[:, -1] - sums.loss[:, -2])

    def _bound(self, sums: _Sums, u: Array) -> Array:
        """At least the logarithm of the modulus of all, where it may be tiny."""
        # What chances are off by, and what `UNKNOWN` allows for.
        rough = float((sums.each[:, -2:].sum(axis=1) + sums.error).max())
        if rough > 1e-10 or float(self.counts @ sums.error) > 5e-4:
            return np.zeros(len(u))
        pairs, gaps = self._pairs(sums)
        return paired(pairs, gaps, sums.shaken[:, -2:].sum(axis=1) + 8 * EPS * gaps, u)

    def cost(self, c: float, u: float) -> float:
        """A product of matrices, and a transform and a logarithm of each kind that is asked."""
        pairs = self._pairs(self._sums(c, 0.0))[0]
        away, deviation = float(pairs.sum()), math.sqrt(float((pairs**2).sum()) / 2)
        # Seven deviations of a sum of cosines, and then some, for all that are left to be little.
        share = 0.01 if away - 7 * deviation > 30 else 1.0
        return 1 + len(pairs) * (0.04 + 4 * share)

    def fade(self, c: float, u: Array) -> Array:
        """The bound by level sets, kept: it is asked for several times."""
        key = c, len(u), float(u[-1])
        if key not in self._faded:
            self._faded[key] = self._level(c, u)
        return self._faded[key]

    def _level(self, c: float, u: Array) -> Array:
        """By uniform laws under the tilted density of each loss.

        On a cell the density of x is least at the right end, w is monotone, and the slope of log w
        is largest at the right end.
        """
        base, error = self._moments(c)
        x = self._e * np.linspace(-1.0, 1.0, _CELLS + 1)
        value, slope = self._log_w(x)
        least = -(x[:, 1:] + self._e) / 2 - math.log(4)
        tilt = (1 + c) * value[:, :-1] if self.removal else -c * value[:, 1:]
        whole = (base + error)[:, None]
        density = np.exp(np.minimum(least + tilt - whole - np.log(slope[:, 1:]), 690.0))
        # Exponents of up to 700 err by some 1e-13 of their exponentials.
        masses, widths = layers_of_kinds(density * (1 - 1e-9), value)
        result: Array = self.counts @ faded(masses, widths, u)
        return result
