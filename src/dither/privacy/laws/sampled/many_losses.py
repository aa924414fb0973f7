"""Many losses of any number of values each at once, by transforms of all kinds.

Noise on the integers that a sample hides, or noise that is moved far, has hundreds of losses a
kind, which lie on no common lattice. On a line Re t = c each kind's tilted chances w_j at losses
L_j have M(c + iu)/M(c) = Σ w_j·e^{iu·L_j}, and `spectra` finds that sum at all u at once. Kinds are
taken in blocks, those of most values first. No kind's modulus is above 1: so those of the blocks
before bound that of all, and the next block is asked only up to where what lies beyond adds up to
next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dither.privacy.laws.atoms import AtomTerm
from dither.privacy.laws.sampled.spectra import logs_of_kinds
from dither.privacy.laws.term import EPS, SHORT, UNKNOWN, Array, Complex, Term, left

__all__ = ["LIGHTEST", "MOST", "ManyLossesTerm"]


MOST = 1 << 22
"""Losses of all kinds together up to which they are held at once."""

LIGHTEST = 1e-20
"""A mass that one loss of each kind has at least: above e^{-70}, so that none is left with none."""

_LEAST = -70.0
"""Logarithms of masses, plain and tilted, below which they are left out, and charged."""

_RARE = 1e-22
"""Chances below it are left out of sums, and charged."""

_TILTS = 8.0
"""Losses that matter are looked for once for all tilts up to a power of it."""

_BLOCK = 32
"""Kinds whose sums are formed together."""

_SKETCHED = 32
"""Kinds that stand for all where a moment is only about what it is."""

_REMEMBERED = 256
"""Tilts whose moments are remembered."""


@dataclass(frozen=True, slots=True)
class _Window:
    """Losses that matter for tilts up to ``most``, kind by kind, and logarithms of their masses.

    Of each kind ``cut`` is at least what is left out at any such tilt, and ``largest`` the largest
    loss, up to its sign.
    """

    kind: Array
    loss: Array
    log: Array
    starts: Array
    cut: Array
    largest: Array


@dataclass(frozen=True, slots=True)
class _Tilted:
    """At a tilt: the window; of each loss its chance, and what that errs by before all add up to 1.

    And of each kind: log M(c), its error, and what was left out, in parts of M(c).
    """

    window: _Window
    chance: Array
    each: Array
    base: Array
    error: Array
    missed: Array


class ManyLossesTerm(Term):
    """Losses of many values each, of many kinds.

    Parameters
    ----------
    terms : sequence of AtomTerm
        What their laws leave out is left out here, too.
    """

    def __init__(self, terms: Sequence[AtomTerm]) -> None:
        # Those of most values first: as a rule they fade soonest.
        terms = sorted(terms, key=lambda t: -len(t.losses))
        self._terms = terms
        self._sizes = np.array([len(t.losses) for t in terms])
        self._counts = np.array([float(t.count) for t in terms])
        self._relative = np.array([t.relative for t in terms])
        self._position = np.array([t.position for t in terms])
        self._loss = np.concatenate([t.losses for t in terms])
        with np.errstate(divide="ignore"):
            self._log = np.log(np.concatenate([t.probabilities for t in terms]))
        self._starts = np.concatenate([[0], np.cumsum(self._sizes)[:-1]])
        self._windows: dict[float, _Window] = {}
        self._moments: dict[float, Array] = {}

    def _window(self, c: float) -> _Window:
        most = _TILTS
        while most < c:
            most *= _TILTS
        found = self._windows.get(most)
        if found is None:
            tilted = self._log + most * self._loss
            held = np.flatnonzero((self._log > _LEAST) | (tilted > _LEAST))
            starts = np.searchsorted(held, self._starts)
            # Each at most e^-70 at both ends, and between them, as e^{cL} is convex in c.
            sizes = np.diff(np.append(starts, len(held)))
            cut = (self._sizes - sizes) * (math.exp(_LEAST) * (1 + 1e-9))
            kind = np.repeat(np.arange(len(sizes)), sizes)
            loss = self._loss[held]
            largest = np.maximum.reduceat(np.abs(loss), starts)
            found = _Window(kind, loss, self._log[held], starts, cut, largest)
            self._windows[most] = found
        return found

    def _weights(self, window: _Window, c: float) -> tuple[Array, Array, Array, Array]:
        """The exponents, the largest of each kind, weights and their sums."""
        z = window.log + c * window.loss
        top = np.maximum.reduceat(z, window.starts)
        weight = np.exp(z - top[window.kind])
        return z, top, weight, np.add.reduceat(weight, window.starts)

    def _tilted(self, c: float) -> _Tilted:
        window = self._window(c)
        kind = window.kind
        z, top, weight, whole = self._weights(window, c)
        chance = weight / whole[kind]
        base = top + np.log(whole)
        # A mass and a loss as they were made; a logarithm, a product, a sum and a difference, and
        # an exponential.
        each = np.abs(window.log) + c * np.abs(window.loss) + np.abs(z) + np.abs(top)[kind] + 8
        each = EPS * each + (self._relative + c * self._position)[kind]
        missed = self._missed(window, base)
        # The mean of it, a sum of n numbers and what was left out; a logarithm and a sum.
        error = np.add.reduceat(chance * each, window.starts) * (1 + 1e-6)
        error += self._sizes * EPS + missed + EPS * (np.abs(base) + 4)
        return _Tilted(window, chance, each, base, error, missed)

    def _moment(self, c: float) -> Array:
        """log M(c) of each kind, once."""
        found = self._moments.get(c)
        if found is None:
            _, top, _, whole = self._weights(self._window(c), c)
            if len(self._moments) >= _REMEMBERED:
                self._moments.clear()
            found = self._moments[c] = top + np.log(whole)
        return found

    def log_moment(self, c: Array) -> Array:
        """The sum over kinds."""
        return np.array([math.fsum((self._counts * self._moment(x)).tolist()) for x in c.tolist()])

    def sketch(self, c: Array) -> Array:
        """That of some kinds, in proportion."""
        some, scale = self._some
        result: Array = some.log_moment(c) * scale
        return result

    @cached_property
    def _some(self) -> tuple[ManyLossesTerm, float]:
        n = len(self._terms)
        if n <= 2 * _SKETCHED:
            return self, 1.0
        chosen = ((np.arange(_SKETCHED) + 0.5) * n / _SKETCHED).astype(int)
        scale = float(self._counts.sum() / self._counts[chosen].sum())
        return ManyLossesTerm([self._terms[i] for i in chosen.tolist()]), scale

    def blur(self, c: float) -> float:
        """What each kind errs by (`AtomTerm.moment_error`), with sums one after the other."""
        window, base = self._window(c), self._moment(c)
        sizes = np.diff(np.append(window.starts, len(window.kind)))
        each = EPS * (4 * np.abs(base) + 24 + 4 * np.log(sizes) + 4 * c * window.largest + sizes)
        each += self._relative + c * self._position + self._missed(window, base)
        each = self._counts * (each + 2 * EPS * np.abs(base))
        # The last products and the sum round by some 1e-15 of it, far less than this.
        return math.fsum(each.tolist()) * (1 + 1e-9)

    @staticmethod
    def _missed(window: _Window, base: Array) -> Array:
        """At least what is left out, in parts of M(c): what is held is less than that."""
        result: Array = window.cut * np.exp(-np.maximum(base, -600.0)) * (1 + 1e-9)
        return result

    def moment_ends(self, c: float) -> tuple[float, float]:
        """The sum, with its error on either side."""
        value, off = float(self.log_moment(np.array([c]))[0]), self.blur(c)
        return value - off, value + off

    def along(self, c: float, u: Array) -> tuple[float, Complex, Array]:
        """The sums at c + iu over those at c; a bound of the modulus alone where that is tiny."""
        tilted = self._tilted(c)
        base = math.fsum((self._counts * tilted.base).tolist())
        value, slack = np.zeros(len(u), dtype=complex), np.zeros(len(u))
        # `UNKNOWN` allows for as much.
        short = self.blur(c) < 1e-3
        head, bound = len(u), np.zeros(len(u))
        for kinds, losses, chances, each in self._blocks(tilted):
            logs, off = self._found(tilted, kinds, losses, chances, each, u[:head])
            counts = self._counts[kinds]
            value[:head] += counts @ logs
            slack[:head] += counts @ off
            # A modulus is at most 1, whatever the sum that was found for it is off by.
            bound[:head] += counts @ np.minimum(logs.real + off, 0.0)
            if short:
                head = left(bound[:head])
        # Sums of as many terms as there are blocks round by far less than this share of them.
        slack *= 1 + 1e-9
        value[head:], slack[head:] = bound[head:] * (1 - 1e-9), UNKNOWN
        return base, value, slack

    def _blocks(self, tilted: _Tilted) -> Iterator[tuple[slice, Array, Array, Array]]:
        """Kinds, and their losses, chances and errors as rows, filled up with chances of 0."""
        n, window = len(self._counts), tilted.window
        kept = np.flatnonzero(tilted.chance > _RARE)
        kind, ends = (
            window.kind[kept],
            np.searchsorted(kept, np.append(window.starts, len(window.kind))),
        )
        for first in range(0, n, _BLOCK):
            last = min(first + _BLOCK, n)
            some = slice(int(ends[first]), int(ends[last]))
            rows = kind[some] - first
            columns = np.arange(some.stop - some.start) - (ends[first:last] - ends[first])[rows]
            filled = []
            for values in (window.loss, tilted.chance, tilted.each):
                grid = np.zeros((last - first, int(np.diff(ends[first : last + 1]).max())))
                grid[rows, columns] = values[kept[some]]
                filled.append(grid)
            yield slice(first, last), filled[0], filled[1], filled[2]

    def _found(
        self,
        tilted: _Tilted,
        kinds: slice,
        losses: Array,
        chances: Array,
        each: Array,
        u: Array,
    ) -> tuple[Complex, Array]:
        """Logarithms of the sums, and a slack of each, that of M(c) included."""
        logs, modulus, error = logs_of_kinds(losses, chances, u, self._counts[kinds])
        nodes = losses.shape[1]
        size = np.abs(losses)
        each = each + EPS * (min(nodes, SHORT) + nodes + 150)
        shaken = self._position[kinds, None] + 6 * EPS * size
        # Each summand w·(e^{iul} - 1) errs as its chance and its angle do; and all chances as their
        # sum, of which they are parts.
        whole = (chances * each).sum(axis=1)
        blunt = 4 * whole
        steep = (chances * (each * size + shaken)).sum(axis=1)
        steep += whole * (chances * size).sum(axis=1)
        turn = (chances * shaken).sum(axis=1)
        # Three short sums and a product, each within 1e-12 of itself: far less than this share.
        lost = np.minimum(blunt[:, None] + turn[:, None] * u, steep[:, None] * u) * (1 + 1e-6)
        lost += 4 * (tilted.missed[kinds] + self._sizes[kinds] * _RARE)[:, None] + error
        wrong = tilted.error[kinds, None] + np.log1p(lost / np.maximum(modulus, 1e-300))
        # Sums over kinds, in blocks, add a rounding each.
        rounded = EPS * (8 + len(self._counts))
        wrong += rounded * (np.abs(logs) + np.abs(tilted.base[kinds, None]))
        return logs, wrong

    def cost(self, c: float, u: float) -> float:
        """A transform and a logarithm of each kind that is asked."""
        return 8.0 * len(self._counts)
