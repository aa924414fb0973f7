"""Many Gaussians on sparse samples, up to a largest |l|: a measure that a short line suffices for.

With l, a and g of `laws.sampled.gaussian`, the measure of each kind ends at a place z_k, which is
one for each block of kinds. So on a line Re t = c the logarithm of ∫ phi·e^{(1+t)·l} up to z_k, or
of ∫ phi·e^{-t·l}, is a sum on panels (`panels`); what lies below -10 is charged, and what lies so
far above that integrands fall as fast.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dither.privacy.laws.sampled.gaussians import SampledGaussiansTerm
from dither.privacy.laws.sampled.panels import (
    RULE_ERROR,
    panel_edges,
    panel_error,
    panel_nodes,
)
from dither.privacy.laws.sampled.spectra import logs_of_kinds
from dither.privacy.laws.term import EPS, SHORT, Array, Complex, erfc

__all__ = ["CappedGaussiansTerm"]


_LOWEST = -10.0
"""Where panels begin; there integrands rise at a rate of at least 10."""

_ALIKE = 0.25
"""By how much a·z of the places of a block may differ: losses there by a quarter or so."""

_BLOCK = 64

_STEEPEST = 250.0
"""The largest tilt, times the largest loss."""

_CLOSER = 1e-9
"""By so much of themselves ends are moved outwards, for the rounding of what they are made of."""


class CappedGaussiansTerm(SampledGaussiansTerm):
    """The measure of losses at places below z_k, where |l| is at least ``largest``.

    Parameters
    ----------
    term : SampledGaussiansTerm
        All losses.
    largest : float
        Above 0.
    """

    def __init__(self, term: SampledGaussiansTerm, largest: float) -> None:
        # Outwards, so that nothing of |l| up to ``largest`` is left out by rounding.
        most = largest * (1 + _CLOSER)
        place = np.log(np.expm1(most) / term.rates + 1) / term.a + term.a / 2
        place = place * (1 + _CLOSER) + _CLOSER
        order = np.argsort(place, kind="stable")
        place = place[order]
        self.noise_multipliers, self.a = term.noise_multipliers[order], term.a[order]
        self.rates, self.counts = term.rates[order], term.counts[order]
        self.removal = term.removal
        self.reach = _STEEPEST / largest
        self._largest = largest
        self._known: dict[float, tuple[Array, Array]] = {}
        self._faded = {}
        self._cuts: list[slice] = []
        first = 0
        while first < len(place):
            alike = int(np.searchsorted(place, place[first] + _ALIKE / self.a[first], side="right"))
            last = min(max(alike, first + 1), first + _BLOCK)
            self._cuts.append(slice(first, last))
            first = last
        # The furthest of a block: those of less are kept further than they need be, which is as
        # sound.
        self._ends = [float(place[cut].max()) for cut in self._cuts]
        self.places = np.concatenate(
            [
                np.full(cut.stop - cut.start, end)
                for cut, end in zip(self._cuts, self._ends, strict=True)
            ]
        )

    def _blocks(self) -> Iterator[tuple[slice, Array, Array, Array]]:
        for kinds in self._cuts:
            yield kinds, self.a[kinds, None], self.rates[kinds, None], self.counts[kinds]

    def _end(self, kinds: slice, c: float) -> float:
        """The place, or one from which integrands fall at a rate of at least 10."""
        # Nodes end at the place, or sooner where what follows is charged by its fall.
        return min(float(self.places[kinds.start]), super()._end(kinds, c))

    def _of(self, noise_multipliers: Array, rates: Array, counts: Array) -> SampledGaussiansTerm:
        return CappedGaussiansTerm(super()._of(noise_multipliers, rates, counts), self._largest)

    def beyond(self) -> tuple[Array, Array]:
        """The masses beyond the places under the normal law at 0, and under the one at a.

        The argument of erfc has 3 halves of EPS of itself, which move it by 2·x² times that; with
        its own two units, less than 1e-12 where x is below 27 and anything is left.
        """
        x = self.places / math.sqrt(2)
        return erfc(x) / 2, erfc((self.places - self.a) / math.sqrt(2)) / 2

    def log_moment(self, c: Array) -> Array:
        """The sum over kinds, on the panels of the largest tilt."""
        total = np.zeros_like(c)
        for kinds, a, g, counts in self._blocks():
            edges = panel_edges(a, g, 1 + float(c.max()), _LOWEST, self._end(kinds, float(c.max())))
            z, weights = panel_nodes(edges)
            ratio = self._ratio(z, a, g)[0]
            lead = weights - 0.5 * z * z
            for i, x in enumerate(c.tolist()):
                logs = self._power(x) * ratio + lead
                top = logs.max(axis=1, keepdims=True)
                each = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
                total[i] += float((counts * (each - 0.5 * math.log(2 * math.pi))).sum())
        return total

    def _moments(self, c: float) -> tuple[Array, Array]:
        """log M(c) of every kind, and bounds of the errors."""
        if c not in self._known:
            self._known[c] = self._lines(c, np.zeros(1), moved=False)[3:]
        return self._known[c]

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """Sums on panels at c + iu; what is cut, quadrature and rounding are in the slack."""
        base, value, slack, _, _ = self._lines(c, u, moved=True)
        return base, value, slack

    def _lines(
        self, c: float, u: Array, *, moved: bool
    ) -> tuple[float, Complex, Array, Array, Array]:
        bases, errors = np.zeros(len(self.a)), np.zeros(len(self.a))
        value, slack = np.zeros(len(u), dtype=complex), np.zeros(len(u))
        most, power = float(u.max()), self._power(c)
        for kinds, a, g, counts in self._blocks():
            edges = panel_edges(a, g, most + 1 + c, _LOWEST, self._end(kinds, c))
            z, weights = panel_nodes(edges)
            off = EPS * (2 * np.abs(z) + 1) + RULE_ERROR
            ratio, error = self._at(z, a, g, off)
            logs = power * ratio - 0.5 * z * z + weights
            top = logs.max(axis=1, keepdims=True)
            weight = np.exp(logs - top)
            whole = weight.sum(axis=1)
            known = top[:, 0] + np.log(whole) - 0.5 * math.log(2 * math.pi)
            # An exponent errs by l's error, a node's own, and the rounding of its summands.
            each = abs(power) * error + np.abs(z) * off + 8 * RULE_ERROR
            each = each + EPS * (2 * z * z + np.abs(logs) + np.abs(weights) + np.abs(top) + 8)
            blunt = (weight * each).sum(axis=1) / whole
            # Below the first end integrands rise at a rate of at least 10, and above the last one
            # they fall so, where that is not the place.
            ends = edges[[0, -1]]
            outer = np.exp(power * self._ratio(ends, a, g)[0] - 0.5 * ends**2 - top)
            # At its place a measure ends: nothing beyond is cut.
            if self._end(kinds, c) == self.places[kinds.start]:
                outer = outer[:, :1]
            cut = outer.sum(axis=1) / (-_LOWEST) / whole
            wrong = panel_error(a, g, c, 0.0, self.removal, edges, known - 1e-3)
            doubt = 2 * (blunt + cut + wrong) + EPS * (len(z) / 2 + np.abs(known) + 16)
            # Beyond a thousandth, which is taken for granted above, nothing is known.
            doubt = np.where(doubt < 1e-3, doubt, np.inf)
            bases[kinds], errors[kinds] = known, doubt
            if not moved:
                continue
            # One kind of which nothing is known leaves the total unknown.
            if not float(doubt.max()) < np.inf:
                slack += np.inf
                continue
            weight /= whole[:, None]
            kept = (logs - top > -60.0).any(axis=0)
            rest = cut + len(z) * math.exp(-60.0)
            weight, ratio, each, error = (
                weight[:, kept],
                ratio[:, kept],
                each[:, kept],
                error[:, kept],
            )
            found, modulus, missed = logs_of_kinds(
                ratio if self.removal else -ratio, weight, u, counts
            )
            # As of one kind: each summand w·(e^{iul} - 1) errs as its weight and its angle do.
            each = 2 * each + EPS * (2 * min(len(z), SHORT) + 2 * len(z) + 24)
            far = 4 * (weight * each).sum(axis=1)[:, None]
            steep = (weight * (each * np.abs(ratio) + error)).sum(axis=1)[:, None]
            turn = (weight * error).sum(axis=1)[:, None]
            wrong = panel_error(a, g, c, most, self.removal, edges, known - doubt)
            lost = np.minimum(far + turn * u, steep * u) + (2 * rest + 4 * wrong)[:, None]
            lost = lost + missed
            unsure = doubt[:, None] + np.log1p(lost / np.maximum(modulus, 1e-300))
            # Sums over kinds add one rounding each.
            unsure += EPS * (8 + len(self.a)) * (np.abs(found) + np.abs(known)[:, None])
            value += (counts[:, None] * found).sum(axis=0)
            slack += (counts[:, None] * unsure).sum(axis=0)
        return self._total(bases), value, slack, bases, errors

    def fade(self, c: float, u: Array) -> Array:
        """By level sets."""
        return self.quick_fade(c, u)
