"""Times to an event, as counts of events and censorings in public bins of time.

Release. A row is of an arm, and ends, in a bin of time, with an event or censored: its *code* is
arm·(2·K + 1) + event·(K + 1) + bin of K bins (e, e'], and one bin more for whoever is watched to
the last end or beyond it, whose event, where one came later, does not count. The codes are
counted as the noisy tree of `dither.mechanisms.QuantileTree`, one row in one node of each level: a
row that is added or removed moves one count a level by 1, one that is replaced two (proved there),
whatever of it changes, its arm as well. Numbers at risk are what lies above a bin in the two runs
of an arm, a few nodes each.

Model. In a bin that n enter, d have the event and c are censored. Where events and censorings are
spread over the bin, at hazards of one ratio throughout it, those that stay are q = exp(-(λ + μ)) of
n with λ/(λ + μ) = d/(d + c), so that

    λ = (d/n)·g(x),   g(x) = -log(1 - x)/x,   x = (d + c)/n,

which is Kaplan and Meier's -log(1 - d/n) where nobody is censored, and has no bias from the width
of the bin where hazards are constant in it. Where censorings come at the ends of bins, as times in
whole months that are counted at their end do, λ = -log(1 - d/n).

Source. Chiang, "The life table and its applications", 1984, for hazards within a bin; Xiao, Wang
and Gehrke, ICDE 2010, and Hay et al., VLDB 2010, for trees of counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._inputs import Bounds, Floats, bounds_of, target
from dither.inference.engine._simulation import SimulatedDraws
from dither.inference.estimates._quantiles import BinsRelease
from dither.mechanisms import QuantileTree

__all__ = ["CENSORED", "SurvivalCounts", "SurvivalRelease", "codes_of", "edges_of"]

Places = npt.NDArray[np.int64]

CENSORED = ("spread", "end")
"""Where in a bin censorings lie."""

_FEW = 4.0
"""Deviations of noise that those at risk must be, to be told from none; it promises nothing."""


class SurvivalRelease(BinsRelease):
    """Layer 1: numbers of rows of each code, as a noisy tree; `BinsRelease` of codes."""

    def leaves(self, values: Floats) -> Places:
        """How many rows have each code; one below 0 is in none."""
        codes = np.asarray(values, dtype=np.int64)
        return np.bincount(codes[codes >= 0], minlength=self.bins).astype(np.int64)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that leaves one code and joins another."""
        for relation in ("replace", "add-remove"):
            design = cls(bounds_of("bounds", (0, 8)), 8, target(1, 0, relation))

            def run(values: Floats, size: int, design: BinsRelease = design) -> Places:
                counts = np.repeat(design.leaves(values)[None, :], size, axis=0)
                return np.concatenate(design.tree.measure(counts, design.noise), axis=1)

            first = np.array([0.0] if design.asked.replace else [-1.0])
            yield Subject(f"counts of times, {relation}", run, first, np.array([7.0]))


def codes_of(time: Floats, event: Places, bounds: Bounds, bins: int) -> Places:
    """event·(K + 1) + bin of each row of an arm; -1 where something is missing.

    Examples
    --------
    >>> ends, time = bounds_of("bounds", (0, 10)), np.array([0.0, 4.0, 5.0, 10.0, 99.0, np.nan])
    >>> codes_of(time, np.ones(6, dtype=int), ends, 5)
    array([ 6,  7,  8, 10,  5, -1])
    >>> codes_of(time, np.zeros(6, dtype=int), ends, 5)
    array([ 0,  1,  2,  5,  5, -1])
    """
    edges = edges_of(bounds, bins)
    place = np.clip(np.searchsorted(edges, time, side="left") - 1, 0, bins)
    beyond = np.where(event > 0, time > edges[-1], time >= edges[-1])
    found = np.where(beyond, bins, event * (bins + 1) + place)
    return np.where(np.isnan(time) | (event < 0), -1, found).astype(np.int64)


def edges_of(bounds: Bounds, bins: int) -> Floats:
    """The ends of bins.

    Examples
    --------
    >>> edges_of(bounds_of("bounds", (0, 1)), 10)[3]
    np.float64(0.3)
    """
    wide = bounds.upper - bounds.lower
    return np.array([float(bounds.lower + wide * i / bins) for i in range(bins + 1)])


@dataclass(frozen=True, eq=False)
class SurvivalCounts:
    """Layer 2: what was released of arms, and what would have been.

    Parameters
    ----------
    tree : QuantileTree
    noise : callable
        Of a generator and a shape, simulated noise of one count.
    below : array of float, shape (arms·(2·K + 1) + 1,)
        Least-squares counts below each code.
    arms, bins : int
    spread : bool
        Whether censorings are spread over a bin.
    """

    tree: QuantileTree
    noise: Callable[[np.random.Generator, tuple[int, ...]], Floats]
    below: Floats
    arms: int
    bins: int
    spread: bool

    # --- counts -----------------------------------------------------------------------------------

    def _counts(self, below: Floats) -> Floats:
        """Numbers of (arm, censored or event, bin) from counts below codes."""
        found = np.diff(below, axis=-1)
        each = found.reshape(*found.shape[:-1], self.arms, 2 * self.bins + 1)
        # Nobody has the event beyond the last end.
        whole = np.concatenate([each, np.zeros_like(each[..., :1])], axis=-1)
        return whole.reshape(*each.shape[:-1], 2, self.bins + 1)

    @cached_property
    def released(self) -> Floats:
        """Counts as they were released, shape (arms, 2, K + 1): not whole, and some below 0."""
        return self._counts(self.below)

    @cached_property
    def fitted(self) -> Floats:
        """The same as they can be: numbers below a bin rise, and none is below 0."""
        run = np.cumsum(self.released, axis=-1)
        up = np.maximum.accumulate(run, axis=-1)
        down = np.minimum.accumulate(run[..., ::-1], axis=-1)[..., ::-1]
        rising = np.maximum((up + down) / 2, 0.0)
        return np.diff(rising, axis=-1, prepend=0.0)

    def drawn(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise of the counts, shape (B, arms, 2, K + 1)."""
        levels = [self.noise(rng, (size, self.tree.branching**i)) for i in self._levels]
        return self._counts(self.tree.cumulative(levels))

    @property
    def _levels(self) -> range:
        return range(1, self.tree.levels + 1)

    # --- hazards ----------------------------------------------------------------------------------

    def at_risk(self, counts: Floats) -> Floats:
        """Those that enter each bin, shape (..., K); at least one."""
        whole = counts.sum(axis=-2)
        return np.asarray(np.maximum(_from_here(whole), 1.0)[..., :-1])

    def watched(self, counts: Floats) -> Floats:
        """Those at risk through a bin: what events are divided by for its hazard."""
        n = self.at_risk(counts)
        lost = (counts.sum(axis=-2) if self.spread else counts[..., 1, :])[..., :-1]
        # The last bin may lose all that enter it: half a row is taken to stay.
        x = np.clip(lost / n, -1.0, 1.0 - 0.5 / (n + 0.5))
        with np.errstate(divide="ignore", invalid="ignore"):
            g = np.where(np.abs(x) < 1e-9, 1.0, -np.log1p(-x) / x)
        return np.asarray(n / g)

    def hazards(self, counts: Floats) -> Floats:
        """Cumulative hazards at the ends of bins, shape (..., K); noise may let them fall."""
        return np.cumsum(counts[..., 1, :-1] / self.watched(counts), axis=-1)

    @cached_property
    def reached(self) -> Places:
        """Of each arm, the bins until which those at risk are told from none, shape (arms,)."""
        rng = SimulatedDraws.of(7)
        whole = self.drawn(rng, 200).sum(axis=-2)
        wide = _from_here(whole)[..., :-1].std(axis=0)
        clear = self.at_risk(self.released) >= np.maximum(_FEW * wide, 1.5)
        return np.asarray(np.where(clear.all(axis=-1), self.bins, np.argmin(clear, axis=-1)))

    def sampled(
        self, rng: np.random.Generator, size: int, sizes: Floats, hazard: Floats, lost: Floats
    ) -> Floats:
        """Counts of so many people of each arm at hazards of events and of censoring.

        Parameters
        ----------
        sizes : array of float, shape (arms,)
        hazard, lost : array of float, shape (arms, K)

        Returns
        -------
        array of float, shape (B, arms, 2, K + 1)
        """
        both = hazard + lost
        if self.spread:
            ends = -np.expm1(-both)
            event = np.divide(hazard, both, out=np.zeros_like(both), where=both > 0) * ends
            gone = ends - event
        else:
            event = -np.expm1(-hazard)
            gone = (1.0 - event) * -np.expm1(-lost)
        stays = np.cumprod(1.0 - event - gone, axis=-1)
        enters = np.concatenate([np.ones((self.arms, 1)), stays[:, :-1]], axis=1)
        found = np.zeros((size, self.arms, 2, self.bins + 1))
        for arm in range(self.arms):
            parts = [enters[arm] * gone[arm], stays[arm, -1:], enters[arm] * event[arm], [0.0]]
            chances = np.maximum(np.concatenate(parts), 0.0)
            rows = max(0, round(float(sizes[arm])))
            drawn = rng.multinomial(rows, chances / chances.sum(), size)
            found[:, arm] = drawn.reshape(size, 2, self.bins + 1)
        return found

    def loss_hazards(self, counts: Floats) -> Floats:
        """Hazards of censoring, shape (..., K), as `sampled` takes them."""
        if self.spread:
            return np.asarray(np.maximum(counts[..., 0, :-1], 0.0) / self.watched(counts))
        stay = self.at_risk(counts) - counts[..., 1, :-1]
        part = np.clip(counts[..., 0, :-1] / np.maximum(stay, 1.0), 0.0, 1.0 - 1e-9)
        return np.asarray(-np.log1p(-part))


def _from_here(values: Floats) -> Floats:
    """Sums from each place to the last."""
    return np.asarray(np.cumsum(values[..., ::-1], axis=-1)[..., ::-1])
