"""Composition of losses on a common lattice, by an exponentially tilted Fourier transform.

Each law is a finite mass function on offset + spacing·integer. Tilting every mass by e^{cL} and
dividing by M(c) puts the tail that delta(epsilon) asks for into the middle of the composed law, so
that the transform's absolute errors become relative ones ::

    delta(e) = e^{K(c) - c·e}·Σ_{L > e} tilted(L)·e^{-c(L-e)}·(1 - e^{e-L})

Errors, all charged: mass outside the window of N points (Chernoff at other tilts; it wraps round,
which only adds), the transform's rounding (8·log2 N units an entry, the masses adding up to 1),
the masses' own errors, and the rounding of positions.

*The masses' errors.* Let w_k >= 0 be the tilted masses of one repetition as they are computed, of
sum s, and e^b·w_k·(1 + r_k) the true m_k·e^{cL_k}, |r_k| <= q_k, b a double. A weight
f(L) = e^{-c(L-e)}·(1 - e^{e-L})_+ is at most kappa(c), so that over n repetitions

    |Σ Π w_k·(Π(1 + r_k) - 1)·f| <= kappa(c)·Σ Π w_k·(Π(1 + q_k) - 1) <= kappa(c)·s^n·(e^{nq} - 1)

with q = Σ w_k·q_k/s, since Σ w_k·(1 + q_k) = s·(1 + q); laws of several kinds multiply alike. It is
the mean of q_k under the tilted law that counts, however large a q_k far out may be, but it is
charged where f is largest, and not where f lies: the outcomes above epsilon may be those of the
largest errors. Where f is far below kappa there, Σ Π w_k·f·(e^{nq'} - 1) with q' the largest q_k is
less, and is charged instead. Masses that underflow are in neither, and charged as a whole. What the
double b itself is off by does not matter, as m_k is compared with e^b·w_k.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dither.privacy.engines.search import best_tilt, log_kappa
from dither.privacy.laws.term import EPS, Array

__all__ = ["LatticeEngine", "LatticeLaw"]


_TAIL = 1e-17
"""Tilted mass outside of the window at which it is wide enough; what is outside is charged."""

# The longest transform; a window that is too short is charged for what it leaves outside.
_MOST = 1 << 22

_SMALL = 1e-300
"""Tilted masses below are charged as a whole: they may have underflowed, or lost their digits."""


@dataclass(frozen=True, slots=True)
class LatticeLaw:
    """Masses on offset + spacing·k, k = 0, 1, ..., repeated ``count`` times.

    ``relative`` bounds each mass's relative error and ``position`` each loss's absolute one. The
    masses may sum to less than 1.
    """

    offset: float
    masses: Array
    count: int
    relative: float
    position: float = 0.0


class LatticeEngine:
    """A certified profile of the sum of lattice laws with one spacing.

    ``bounds`` is two-sided; a law that dominates the true one makes the upper side sound, one that
    is dominated the lower side.
    """

    name = "lattice"

    def __init__(
        self,
        laws: Sequence[LatticeLaw],
        spacing: float,
        *,
        log_delta: float | None,
        epsilon: float | None,
        tilt: float | None = None,
    ) -> None:
        self.spacing = spacing
        self._placed = sum(law.count * law.position for law in laws)
        self._laws = []
        for law in laws:
            # The masses' logarithms alone are used, so that no tilt overflows.
            kept = np.flatnonzero(law.masses > 0)
            self._laws.append((law.offset, kept, np.log(law.masses[kept]), law.count, law.relative))
        self.certified = False
        largest = max(abs(o) + spacing * float(k.max()) for o, k, _, _, _ in self._laws)
        # A tilt that tells neighbouring points apart by e^30 gains nothing by growing further.
        reach = min(1e7, 1e12 / max(largest, 1e-9), 30 / spacing)
        c, self.start = best_tilt(
            self._moment, log_delta=log_delta, epsilon=epsilon, reach=max(reach, 1.0)
        )
        # The tilt's own bound is no place: the profile is asked at epsilon.
        if epsilon is not None:
            self.start = epsilon
        self.c = c if tilt is None else tilt
        self._compose()

    def _moment(self, c: Array) -> Array:
        total = np.zeros_like(c)
        for offset, index, logs, count, _ in self._laws:
            for i, x in enumerate(c.tolist()):
                z = logs + (x * self.spacing) * index
                top = float(z.max())
                total[i] += count * (x * offset + top + math.log(float(np.exp(z - top).sum())))
        return total

    def _compose(self) -> None:
        c, h = self.c, self.spacing
        mean = variance = base = relative = greatest = lost = shift = offset = 0.0
        self._fixed = self._steep = self._away = 0.0
        tilted = []
        for start, index, logs, count, rough in self._laws:
            z = logs + (c * h) * index
            # A repetition's largest tilted mass is 1 before they are divided by their sum.
            top = float(z.max())
            weight = np.exp(z - top)
            whole = float(weight.sum())
            weight /= whole
            # log M(c) of one repetition, its offset included.
            level = c * start + top + math.log(whole)
            base += count * level
            m = float((weight * index).sum())
            mean += count * m
            variance += count * float((weight * (index - m) ** 2).sum())
            # q_k. With u = EPS/2: 2u·|log m|, 2u·|c·h·k| for two products, u·|z|, u·|z - top|, 3u
            # for an exponential and a quotient; and level has u·|c·start| for its product, 2u·|log
            # whole|, at most 31u, and u of each of its two sums. 48u are for s: a sum in pairs.
            size, fixed = np.abs(z) + np.abs(logs), abs(top) + abs(c * start)
            for_all = rough + EPS * (2 * fixed + abs(level) + 48)
            relative += count * (for_all + 2 * EPS * float((weight * size).sum()))
            kept = weight > _SMALL
            greatest += count * (for_all + 2 * EPS * float(size[kept].max()))
            lost += count * 2 * _SMALL * len(z)
            shift += count * 2 * EPS * (abs(start) + h * float(index.max()))
            self._fixed += count * EPS * (8 * float(np.abs(logs).max()) + 80)
            self._steep += count * EPS * 8 * (abs(start) + h * float(index.max()))
            offset += count * start
            tilted.append((index, weight, count))
        self._away = shift
        deviation = math.sqrt(variance)
        whole_range = sum(count * int(index.max()) for index, _, count in tilted)
        # A power of two, as the rounding of the transform is bounded for; nine deviations a side.
        n = 64
        while n < min(whole_range + 1, 18 * deviation + 8) and n < _MOST:
            n *= 2
        while True:
            # A window that holds everything begins where the masses do.
            first = max(0, round(mean) - n // 2) if whole_range >= n else 0
            outside_low, outside_high = self._outside(first, first + n, whole_range, offset, base)
            # Judged by a proof: deviations alone say nothing of a heavy tail.
            if outside_low + outside_high < _TAIL or n >= _MOST:
                break
            n *= 2
        self._outside_low, self._outside_high = outside_low, outside_high
        # An entry is a tree of log2(n) stages. The nodes of a stage are transforms of disjoint
        # parts of the masses, so that together they are at most 1, and each errs by a factor's
        # rounding, a complex product's, below sqrt(5)·u, and a sum's: under 5u with u = EPS/2. 16u
        # a stage are charged; in the 2-norm Higham's theorem 24.2 says the same.
        unit = 8 * math.log2(n) * EPS
        exponent = np.zeros(n // 2 + 1, dtype=complex)
        slack = np.zeros(n // 2 + 1)
        for index, weight, count in tilted:
            # Masses beyond the window wrap round to others and are added there: delta only grows.
            spectrum = np.fft.rfft(np.bincount(index % n, weight, n))
            # An entry that its own error drowns counts as that error, and errs by three of it.
            drowned = np.abs(spectrum) < unit
            entries = np.where(drowned, unit, spectrum)
            exponent += count * np.log(entries)
            share = np.where(drowned, 3 * unit, unit) / np.abs(entries)
            slack += count * (np.log1p(share) + 2 * EPS)
        slack += 4 * EPS * np.abs(exponent)
        product = np.exp(np.minimum(exponent.real, 300.0) + 1j * exponent.imag)
        size = np.abs(product)
        # The true value is at most s^n in all, of which `greatest` holds 96u a repetition.
        wrong = np.minimum(size * np.expm1(np.minimum(slack, 300.0)), 1 + _grown(greatest) + size)
        # The window begins at `first`, and places are known modulo n alone.
        mass = np.roll(np.fft.irfft(product, n), -(first % n))
        # Back: what is wrong of the spectrum, and the same tree over the spectrum's own sum.
        self._entry = (2 * float(wrong.sum()) + 2 * unit * float(np.abs(product).sum())) / n
        self._mass = mass
        self._losses = offset + h * (float(first) + np.arange(n))
        self._greatest, self._lost = greatest, lost
        self._base, self._relative, self._shift = (
            base,
            relative,
            (shift + self._placed + 8 * EPS * (abs(offset) + h * (first + n))),
        )
        self.certified = bool(np.isfinite(mass).all() and math.isfinite(base))

    def _outside(
        self, first: int, end: int, whole: int, offset: float, base: float
    ) -> tuple[float, float]:
        """Bounds of the tilted masses below index ``first`` and from index ``end`` on.

        By Chernoff's bound of the masses as they are computed, which are those of the moment at c
        up to what q_k has beside the laws' own errors; each moment errs by no more than that, with
        the same operations. So each of c and c ± s costs, a repetition and in units of u = EPS/2,
        6·|x·start| + 10·x·h·k + 14·|log m| + 160 at most; 16, 16, 16 and 160 are charged.
        """
        c, h = self.c, self.spacing
        # How far places are off, and what sums round by.
        away = self._away + 4 * EPS * (abs(offset) + h * (end + 1))
        steps = np.array([0.03, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 4.0])
        low = high = 0.0
        if first > 0:
            s = c * steps
            # At c = 0 Chernoff's bound to the left has no tilt to go to, and says 1.
            k = self._moment(c - s) if c > 0 else np.zeros_like(s)
            value = k - base + s * (offset + h * (first - 1)) + s * away
            value = value + 2 * self._fixed + (2 * c + s) * self._steep
            value = value + 4 * EPS * (np.abs(k) + abs(base))
            low = math.exp(min(float(value.min()), 0.0))
        if end <= whole:
            s = c * steps
            k = self._moment(c + s)
            value = k - base - s * (offset + h * end) + s * away
            value = value + 2 * self._fixed + (2 * c + s) * self._steep
            value = value + 4 * EPS * (np.abs(k) + abs(base))
            high = math.exp(min(float(value.min()), 0.0))
        return low, high

    def law(self) -> tuple[Array, Array]:
        """(losses, probabilities) of the composed law, for pictures."""
        return self._losses, np.maximum(self._mass, 0) * np.exp(
            np.minimum(self._base - self.c * self._losses, 700.0)
        )

    def bounds(self, epsilon: float) -> tuple[float, float]:
        """(log lower, log upper) of the finite part's delta(epsilon)."""
        # delta falls with epsilon, so that losses off by the shift are a place off by it.
        low = self._sum(epsilon + self._shift, False)
        high = self._sum(max(epsilon - self._shift, -1e300), True)
        return low, high

    def _sum(self, epsilon: float, up: bool) -> float:
        gap = self._losses - epsilon
        # A loss of epsilon itself weighs 0, and the logarithm of its weight would be none.
        first = int(np.searchsorted(gap, 0.0, side="right"))
        gap = gap[first:]
        # In logarithms: far from the target the weights themselves would underflow.
        log_weight = np.log(-np.expm1(-gap)) - self.c * gap
        kappa = float(log_kappa(self.c))
        top = max(float(log_weight.max()) if gap.size else -math.inf, kappa - 80.0)
        weight = np.exp(log_weight - top)
        # Rounding leaves entries below 0 too: what they err by counts like the others'.
        held = np.abs(self._mass[first:])
        total = float((self._mass[first:] * weight).sum())
        # With u = EPS/2 a weight has 2u·|log(1 - e^-gap)| and u·c·gap, of the two summands of
        # log_weight, u of either difference in its exponent, and 8u; a sum in pairs has 24u and
        # u·log2(n). Twice that is charged.
        each = 3 * np.abs(log_weight) + np.abs(log_weight - top) + (32 + math.log2(len(gap) + 1))
        error = self._entry * float(weight.sum()) + EPS * float((held * weight * each).sum())
        away = self._outside_high
        if not up or first == 0:
            # What lies below the window is above epsilon too, or was wrapped into the sum.
            away += self._outside_low
        largest = math.exp(min(kappa - top, 80.0))
        # Exponents of up to 80, and numbers below 20 that make them, round by 100·EPS at most.
        spare = 1 + 200 * EPS
        error += largest * (away + self._lost) * spare
        together = largest * _grown(self._relative)
        error += spare * min(together, (abs(total) + error) * _grown(self._greatest))
        scale = self._base - self.c * epsilon + top
        rough = 8 * EPS * (abs(self._base) + abs(self.c * epsilon) + abs(top))
        # A sum that rounding has made negative is 0 at least, up to its error.
        value = max(total + error, error, _SMALL) if up else total - error
        if value <= 0:
            return -math.inf
        found = math.log(value)
        # A logarithm's two halves of EPS, its argument's few, and the last sums'.
        rough += 4 * EPS * (2 + abs(found))
        return scale + found + rough if up else scale + found - rough


def _grown(x: float) -> float:
    """e^x - 1, infinite where a double would not hold it."""
    return math.expm1(x) if x < 700 else math.inf
