"""Layers 2 and 3 of rates: events of cells under a law, and what is asked of them.

Model. Events of a cell are of mean λ·t. "poisson": of Poisson's law. "negative-binomial": their
variance is that which the rows show, Q = Σ (y - λ·t)² = Σ y² - 2·λ·Σ y·t + λ²·Σ t², summed over
the cells of a group and never below Poisson's: what the noise leaves open of Q is drawn as well.

Infer. What is asked is a ratio of two linear forms of events and rates: a standardised rate
D = Σ w·y/t of one group, or D₁/D₀ of two; a plain rate has one stratum. At each value the rates of
the strata are those that were released, made to have that value by a factor for each group (of two
groups the pair of D that is nearest to the released one, by their variances). Events are drawn of
them, noise is added, and the released D - v, or D₁ - v·D₀, is placed among what that gives
(`dither.inference.engine._inverted`).

Source. Breslow and Day, "Statistical methods in cancer research II", 1987, chapter 2, for
standardised rates and ratios; Lawless, Canadian Journal of Statistics 1987, for the variance of
dispersed events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dither.inference.engine._errors import Alternative, Errors
from dither.inference.engine._inputs import Floats
from dither.inference.engine._inverted import InvertedErrors, count_drawn
from dither.inference.rates._sums import RateSums

__all__ = ["FAMILIES", "ManyErrors", "RateModel"]

FAMILIES = ("poisson", "negative-binomial")
"""Laws of events."""

_FEW = 3.0
"""Deviations of noise below which person-time divides nothing; it promises nothing."""


@dataclass(frozen=True, eq=False)
class ManyErrors(Errors):
    """Errors of several numbers, each by itself."""

    each: Sequence[Errors]

    @property
    def se(self) -> Floats:
        """Standard errors."""
        return np.concatenate([one.se for one in self.each])

    @property
    def se_sampling(self) -> Floats:
        """Without the noise."""
        return np.concatenate([one.se_sampling for one in self.each])

    def interval(self, confidence: float) -> Floats:
        """Of each by itself."""
        return np.concatenate([one.interval(confidence) for one in self.each])

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """Of each by itself."""
        pairs = zip(self.each, null, strict=True)
        return np.concatenate([one.pvalue(np.array([v]), alternative) for one, v in pairs])

    def power(self, truth: Floats, null: Floats, level: float) -> Floats:
        """Of each by itself."""
        triples = zip(self.each, truth, null, strict=True)
        return np.concatenate(
            [one.power(np.array([t]), np.array([v]), level) for one, t, v in triples]
        )


@dataclass(frozen=True, eq=False)
class RateModel:
    """Rates of cells (stratum, group), in this order.

    Parameters
    ----------
    sums : RateSums
    strata, groups : int
    weights : array of float, shape (S,)
        Of the strata: of rates, or, where ``expected``, the reference's rates.
    expected : bool
        Whether what is asked is events over those that the reference's rates expect.
    """

    sums: RateSums
    strata: int
    groups: int
    weights: Floats
    expected: bool = False

    def _cells(self, values: Floats) -> Floats:
        return values.reshape(*values.shape[:-1], self.strata, self.groups)

    def _over(self, time: Floats) -> Floats:
        """What events of each cell are multiplied by, for time of shape (..., S, G)."""
        floor = np.maximum(_FEW * self.sums.deviations["t"], 1e-300)
        weights = self.weights[:, None]
        if not self.expected:
            return np.asarray(weights / np.maximum(time, floor))
        whole = (weights * time).sum(axis=-2, keepdims=True)
        least = floor * math.sqrt(float((self.weights**2).sum()))
        return np.asarray(np.ones_like(weights) / np.maximum(whole, least) + 0 * time)

    @cached_property
    def _events(self) -> Floats:
        return self._cells(self.sums.values["y"])

    @cached_property
    def _time(self) -> Floats:
        """Person-time of each cell, as far as it can be."""
        floor = np.maximum(self.sums.deviations["t"], 1e-300)
        return np.asarray(np.maximum(self._cells(self.sums.values["t"]), floor))

    @cached_property
    def values(self) -> Floats:
        """What is asked, as released, of each group, shape (G,)."""
        time = self._cells(self.sums.values["t"])
        return np.asarray((self._events * self._over(time)).sum(axis=0))

    @cached_property
    def _rates(self) -> Floats:
        """Of each cell, none 0: the noise leaves a cell's own rate, or that of its group."""
        events, time, noise = self._events, self._time, self.sums.deviations["y"]
        whole = np.maximum(events.sum(axis=0), 0.5) / time.sum(axis=0)
        mean = whole * time
        own = events - mean
        excess = (own**2 - mean - noise**2).sum(axis=0) / np.maximum((mean**2).sum(axis=0), 1e-300)
        spread = np.maximum(excess, 0.0) * mean**2
        trust = spread / np.maximum(spread + mean + noise**2, 1e-300)
        return np.asarray(np.maximum(mean + trust * own, mean * 1e-3) / time)

    @cached_property
    def _fitted(self) -> Floats:
        """What is asked, at those rates, shape (G,)."""
        if self.expected:
            expected = (self.weights[:, None] * self._time).sum(axis=0)
            return np.asarray((self._rates * self._time).sum(axis=0) / expected)
        return np.asarray((self.weights[:, None] * self._rates).sum(axis=0))

    def _dispersions(self, noise: Mapping[str, Floats]) -> Floats:
        """Variance over mean less 1, of each group, as drawn, shape (B, G)."""
        size, sums = len(noise["y"]), self.sums.values
        if "yy" not in sums:
            return np.zeros((size, self.groups))
        rates = self._rates
        mean = (rates * self._time).sum(axis=0)

        def square(of: Mapping[str, Floats]) -> Floats:
            yy, yt, tt = (self._cells(of[name]) for name in ("yy", "yt", "tt"))
            return np.asarray((yy - 2 * rates * yt + rates**2 * tt).sum(axis=-2) / mean)

        # About what was released, never below Poisson's: noise lets it be more, or less.
        return np.asarray(np.maximum(np.maximum(square(sums) - 1.0, 0.0) + square(noise), -1.0))

    def errors(self, rng: np.random.Generator, size: int) -> Errors:
        """Of what is asked of each group, by itself."""
        z, noise, spread = self._drawn(rng, size)
        made = [self._of_one(g, z, noise, spread) for g in range(self.groups)]
        return made[0] if self.groups == 1 else ManyErrors(made)

    def errors_of_ratio(self, rng: np.random.Generator, size: int) -> Errors:
        """Of the second group's over the first's."""
        z, noise, spread = self._drawn(rng, size)
        first, second = self.values
        fitted, variance = self._fitted, self._variances(spread)

        def simulated(value: float, noisy: bool) -> Floats:
            a, b = float(variance[0]), float(variance[1])
            near = (value * second / b + first / a) / (value**2 / b + 1 / a)
            near = max(near, 1e-3 * float(fitted[0]))
            (y, t), (more, other) = (
                self._sampled(g, wanted / float(fitted[g]), z, noise, spread, noisy)
                for g, wanted in enumerate((near, near * value))
            )
            return self._apart(value, y, t, more, other)

        seen = [part.T[:, None] for part in (self._events, self._cells(self.sums.values["t"]))]
        (y, more), (t, other) = seen
        around = float(fitted[1] / fitted[0])
        return InvertedErrors(
            self.ratio,
            lambda v: float(self._apart(v, y, t, more, other)[0]),
            simulated,
            around=around,
            slope=float(fitted[0] * (self._time.prod() if self.strata == 1 else 1.0)),
        )

    def _apart(self, value: float, y: Floats, t: Floats, more: Floats, other: Floats) -> Floats:
        """How far two groups are from this ratio, shape (B,): 0 in the middle where it is true.

        Of one stratum without a quotient, so that noise of the time moves no middle.
        """
        if self.strata == 1:
            return np.asarray((more * t - value * y * other)[:, 0] * self.weights[0])
        return self._asked(more, other) - value * self._asked(y, t)

    def _asked(self, events: Floats, time: Floats) -> Floats:
        """What is asked of one group's events and time, of shape (B, S)."""
        return np.asarray((events * self._over(time[:, :, None])[:, :, 0]).sum(axis=1))

    @property
    def ratio(self) -> float:
        """The second group's over the first's; 0, or infinite, where the noise drowns one."""
        first, second = (float(v) for v in self.values)
        if second <= 0:
            return 1.0 if first <= 0 else 0.0
        return second / first if first > 0 else math.inf

    def _drawn(
        self, rng: np.random.Generator, size: int
    ) -> tuple[Floats, dict[str, Floats], Floats]:
        z = rng.standard_normal((size, self.strata, self.groups))
        noise = dict(self.sums.draw(rng, size))
        return z, {k: self._cells(noise[k]) for k in ("y", "t")}, self._dispersions(noise)

    def _variances(self, spread: Floats) -> Floats:
        """Of what is asked of each group, sampling and noise, shape (G,)."""
        over = self._over(self._time)
        mean = self._rates * self._time
        sampling = (over**2 * mean).sum(axis=0) * (1 + spread.mean(axis=0))
        noise = self.sums.deviations["y"] ** 2 * (over**2).sum(axis=0)
        by_time = self.sums.deviations["t"] ** 2 * (over**2 * self._rates**2).sum(axis=0)
        return np.asarray(np.maximum(sampling + noise + by_time, 1e-300))

    def _sampled(
        self,
        group: int,
        factor: float,
        z: Floats,
        noise: Mapping[str, Floats],
        spread: Floats,
        noisy: bool,
    ) -> tuple[Floats, Floats]:
        """Events and time as released of a group, at its rates times a factor, shape (B, S)."""
        time = self._time[:, group]
        mean = factor * self._rates[:, group] * time
        more = factor * spread[:, group, None]
        events = count_drawn(mean, mean * (1 + more), z[:, :, group], 1 + 2 * more)
        if noisy:
            events = events + noise["y"][:, :, group]
            time = time + noise["t"][:, :, group]
        return np.asarray(events), np.broadcast_to(time, events.shape)

    def _of_one(
        self, group: int, z: Floats, noise: Mapping[str, Floats], spread: Floats
    ) -> InvertedErrors:
        found, fitted = float(self.values[group]), float(self._fitted[group])

        def simulated(value: float, noisy: bool) -> Floats:
            drawn = self._sampled(group, value / fitted, z, noise, spread, noisy)
            return self._asked(*drawn) - value

        return InvertedErrors(max(found, 0.0), lambda v: found - v, simulated, around=fitted)
