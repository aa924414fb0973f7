"""Layers 2 and 3 of rates: events of cells under a law, and what is asked of them.

Model. Events of a cell are of mean λ·t. "poisson": of Poisson's law. "negative-binomial": their
variance is that which the rows show, Q = Σ (y - λ·t)² = Σ y² - 2·λ·Σ y·t + λ²·Σ t², summed over
the cells of a group and never below Poisson's: what the noise leaves open of Q is drawn as well, up
to m·λ·t, which no events of at most m a row pass. Where the mean is low beside the variance, so
that no normal law is near, events come in clusters of variance/mean, and their number is Poisson's:
a normal law that is cut at 0 would have a larger mean than it was asked for.

Infer. What is asked is a standardised rate D = Σ w·λ of one group, or D₁/D₀ of two; a plain rate
has one stratum. At each value v the rates λ of the strata are those that were released, made to
have that value by a factor for each group (of two groups the pair of D that is nearest to the
released one, by their variances). The statistic has no quotient in which noise could move the
middle (Fieller's test): of the released y and t, with λ at v,

    Σ c·(y - λ·t),    c = w/t,

where t in c is kept above a few deviations of its noise, so that c is a weight and no more; above
it this is Σ w·y/t - v. One stratum needs no c, and observed over expected events is
Σ y - v·Σ reference·t. Of two groups it is the second's less v times the first's.

Time that was really watched is not known either: each simulated release has a time that fresh noise
leaves possible, above 0. Events are drawn of it, noise is added to both, and the released statistic
is placed among what that gives (`dither.inference.engine._inverted`).

Source. Breslow and Day, "Statistical methods in cancer research II", 1987, chapter 2, for
standardised rates and ratios; Lawless, Canadian Journal of Statistics 1987, for the variance of
dispersed events.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from dither.inference.engine._errors import Alternative, Errors
from dither.inference.engine._inputs import Floats
from dither.inference.engine._inverted import InvertedErrors, count_drawn
from dither.inference.rates._sums import RateSums

__all__ = ["FAMILIES", "ManyErrors", "RateModel", "events_drawn"]

_Parts = tuple[Floats, Floats, Floats]

FAMILIES = ("poisson", "negative-binomial")
"""Laws of events."""

_FEW = 3.0
"""Deviations of noise below which person-time divides nothing; it promises nothing."""

_SPARE = 4
"""Draws of noise for each that has to leave a time possible."""

_PASSES = 4
"""Until the pair of two groups and its variances agree, nearly."""

_CLUSTERS = 3.0
"""On average: fewer are no normal number."""

_COUNTED = 16
"""More than so many there are not where 3 are expected, but once in 10⁷ draws."""

_SCARCE = 100
"""So few that leave one tell little of the law."""


def events_drawn(mean: Floats, more: Floats, z: Floats, place: Floats) -> Floats:
    """Events of a mean, with a variance of (1 + more) times it, that rise with the mean.

    Parameters
    ----------
    mean : array of float
        From 0.
    more : array of float
        From -1.
    z, place : array of float
        Normal draws, shared by all means, and what share of the normal law is below each.

    Examples
    --------
    >>> z, place = np.array([-1.96, 0.0, 1.96]), np.array([0.025, 0.5, 0.975])
    >>> few, nobody = events_drawn(np.array([0.5]), np.array([9.0]), z, place), np.zeros(3)
    >>> few.tolist(), events_drawn(np.array([4.0]), nobody, z, place).tolist()
    ([0.0, 0.0, 10.0], [1.0, 4.0, 8.0])
    """
    size = 1.0 + more
    events = count_drawn(mean, mean * size, z, 1.0 + 2.0 * more)
    few = mean < _CLUSTERS * size
    if not few.any():
        return events
    clusters = np.where(few, mean / np.where(few, size, 1.0), 1.0)
    chance = np.exp(-clusters)
    below, number = chance, np.zeros(np.broadcast_shapes(clusters.shape, place.shape))
    for k in range(1, _COUNTED + 1):
        number += place > below
        chance = chance * clusters / k
        below = below + chance
    return np.where(few, size * number, events)


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
class _Drawn:
    """What simulated releases are made of, shape (B, S, G); ``more`` is of groups, (B, G).

    Parameters
    ----------
    z, place : array of float
        Normal draws that events are made from, and what share of the normal law is below each.
    events, time : array of float
        Noise of both.
    possible : array of float
        Time that was really watched.
    more : array of float
        Variance over mean less 1.
    """

    z: Floats
    place: Floats
    events: Floats
    time: Floats
    possible: Floats
    more: Floats


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
        """c of each cell, for time of shape (..., S, G)."""
        if self.expected:
            return np.ones_like(time)
        floor = np.maximum(_FEW * self.sums.deviations["t"], 1e-300)
        return np.asarray(self.weights[:, None] / np.maximum(time, floor))

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
        """What is asked, as released, of each group, shape (G,): where the statistic is 0."""
        time = self._cells(self.sums.values["t"])
        events, per = self._weighed(time)
        floor = _FEW * self.sums.deviations["t"] * np.sqrt((per**2).sum(axis=0))
        return np.asarray(events / np.maximum((per * time).sum(axis=0), floor))

    def _weighed(self, time: Floats) -> tuple[Floats, Floats]:
        """Σ c·y of each group, shape (G,), and c·λ of each cell where what is asked is 1."""
        over = self._over(time)
        per = self.weights[:, None] * over if self.expected else over * self._rates / self._fitted
        return (over * self._events).sum(axis=0), np.asarray(per)

    @cached_property
    def _rates(self) -> Floats:
        """Of each cell, none 0: the noise leaves a cell's own rate, or that of its group."""
        events, time, noise = self._events, self._time, self.sums.deviations["y"]
        watched = self._cells(self.sums.values["t"]).sum(axis=0)
        whole = np.maximum(events.sum(axis=0), 0.5) / np.maximum(watched, time.min(axis=0))
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
        drawn = np.maximum(square(sums) - 1.0, 0.0) + square(noise)
        return np.asarray(np.clip(drawn, -1.0, self._most))

    @property
    def _most(self) -> float:
        """Variance over mean less 1 of events that are none or all that a row can have."""
        return max(self.sums.most - 1.0, 0.0)

    def errors(self, rng: np.random.Generator, size: int) -> Errors:
        """Of what is asked of each group, by itself."""
        drawn = self._drawn(rng, size)
        made = [self._of_one(g, drawn) for g in range(self.groups)]
        return made[0] if self.groups == 1 else ManyErrors(made)

    def errors_of_ratio(self, rng: np.random.Generator, size: int) -> Errors:
        """Of the second group's over the first's."""
        drawn = self._drawn(rng, size)
        fitted, parts = self._fitted, self._variances(drawn.more)
        around = float(fitted[1] / fitted[0])
        return InvertedErrors(
            self.ratio,
            partial(self._observed_ratio, parts),
            partial(self._simulated_ratio, parts, drawn),
            around=around,
            slope=float(fitted[0] * (self._time.prod() if self.strata == 1 else 1.0)),
        )

    def _pair(self, parts: _Parts, value: float) -> tuple[float, float]:
        """The two rates nearest to what was released that have this ratio."""
        first, second = self.values
        least = near = float(self._fitted[0])
        # By the variances of the pair itself: those at what was released would lean to the group in
        # which chance gave the fewer events.
        for _ in range(_PASSES):
            a, b = self._variances_at(parts, np.array([near, near * value]))
            near = (value * second / b + first / a) / (value**2 / b + 1 / a)
            near = max(near, 1e-3 * least)
        return near, near * value

    def _observed_ratio(self, parts: _Parts, value: float) -> float:
        seen = [self._seen(g) for g in (0, 1)]
        return float(self._apart(value, self._pair(parts, value), seen)[0])

    def _simulated_ratio(self, parts: _Parts, drawn: _Drawn, value: float, noisy: bool) -> Floats:
        pair = self._pair(parts, value)
        each = [self._sampled(g, v, drawn, noisy) for g, v in enumerate(pair)]
        return self._apart(value, pair, each)

    def _observed(self, group: int, value: float) -> float:
        return float(self._off(group, value, *self._seen(group))[0])

    def _simulated(self, group: int, drawn: _Drawn, value: float, noisy: bool) -> Floats:
        return self._off(group, value, *self._sampled(group, value, drawn, noisy))

    def _apart(
        self, value: float, pair: tuple[float, float], each: Sequence[tuple[Floats, Floats]]
    ) -> Floats:
        """How far two groups are from this ratio, shape (B,): 0 in the middle where it is true."""
        (y, t), (more, other) = each
        if self.strata == 1:
            return np.asarray((more * t - value * y * other)[:, 0] * self.weights[0])
        first, second = (self._off(g, v, *each[g]) for g, v in enumerate(pair))
        return second - value * first

    def _off(self, group: int, value: float, events: Floats, time: Floats) -> Floats:
        """Σ c·(y - λ·t) of one group's events and time, of shape (B, S)."""
        if self.expected:
            return np.asarray((events - value * self.weights * time).sum(axis=1))
        rates = self._rates[:, group] * (value / float(self._fitted[group]))
        over = self._over(time[:, :, None])[:, :, 0] if self.strata > 1 else 1.0
        return np.asarray((over * (events - rates * time)).sum(axis=1))

    def _seen(self, group: int) -> tuple[Floats, Floats]:
        """Events and time of a group, as released, shape (1, S)."""
        time = self._cells(self.sums.values["t"])
        return self._events[None, :, group], time[None, :, group]

    @property
    def ratio(self) -> float:
        """The second group's over the first's; 0, or infinite, where the noise drowns one."""
        first, second = (float(v) for v in self.values)
        if second <= 0:
            return 1.0 if first <= 0 else 0.0
        return second / first if first > 0 else math.inf

    def _drawn(self, rng: np.random.Generator, size: int) -> _Drawn:
        z = rng.standard_normal((size, self.strata, self.groups))
        noise = dict(self.sums.draw(rng, size))
        y, t = (self._cells(noise[k]) for k in ("y", "t"))
        place = np.array([math.erfc(-one / math.sqrt(2.0)) / 2 for one in z.flat]).reshape(z.shape)
        return _Drawn(z, place, y, t, self._possible(rng, size), self._dispersions(noise))

    def _possible(self, rng: np.random.Generator, size: int) -> Floats:
        """Time that fresh noise leaves possible, above 0, shape (B, S, G)."""
        noise = self.sums.draw(rng, _SPARE * size)["t"]
        left = self.sums.values["t"] - noise
        held = left > 0
        count = held.sum(axis=0)
        # Those that can be come first, over again where they are fewer.
        place = np.argsort(~held, axis=0, kind="stable")
        place = np.take_along_axis(place, np.arange(size)[:, None] % np.maximum(count, 1), axis=0)
        found = np.take_along_axis(left, place, axis=0)
        # So far below 0 what noise leaves above it is as the noise itself is, in size.
        return self._cells(np.where(count < _SCARCE, np.abs(noise[:size]), found))

    def _variances(self, more: Floats) -> _Parts:
        """What the variance of what is asked of each group has of sampling, of the noise of events
        and of that of time, each of shape (G,)."""
        time = self._time
        _, per = self._weighed(time)
        over = self._over(time) / np.maximum((per * time).sum(axis=0), 1e-300)
        sampling = (over**2 * self._rates * time).sum(axis=0) * (1 + more.mean(axis=0))
        noise = self.sums.deviations["y"] ** 2 * (over**2).sum(axis=0)
        by_time = self.sums.deviations["t"] ** 2 * (over**2 * self._rates**2).sum(axis=0)
        return sampling, noise, by_time

    def _variances_at(self, parts: _Parts, value: Floats) -> Floats:
        """The variances where it is so much, shape (G,)."""
        sampling, noise, by_time = parts
        share = value / self._fitted
        return np.asarray(np.maximum(share * sampling + noise + share**2 * by_time, 1e-300))

    def _sampled(
        self, group: int, value: float, drawn: _Drawn, noisy: bool
    ) -> tuple[Floats, Floats]:
        """Events and time as released of a group of which this is true, shape (B, S)."""
        rates = self._rates[:, group]
        time = drawn.possible[:, :, group] if noisy else self._time[None, :, group]
        factor: Any = value / float(self._fitted[group])
        if self.expected:
            # So that it is true of the time that was drawn.
            whole, of_time = (self.weights * time).sum(axis=1), (rates * time).sum(axis=1)
            factor = (value * whole / of_time)[:, None]
        mean = factor * rates * time
        more = np.minimum(factor * drawn.more[:, group, None], self._most)
        events = events_drawn(mean, more, drawn.z[:, :, group], drawn.place[:, :, group])
        if noisy:
            events = events + drawn.events[:, :, group]
            time = time + drawn.time[:, :, group]
        return np.asarray(events), np.broadcast_to(time, events.shape)

    def _of_one(self, group: int, drawn: _Drawn) -> InvertedErrors:
        found, fitted = float(self.values[group]), float(self._fitted[group])
        time = self._time[None, :, group]
        none, per = 0 * time, float(self._off(group, 0.0, 0 * time, time)[0])
        slope = (per - float(self._off(group, fitted, none, time)[0])) / fitted
        return InvertedErrors(
            max(found, 0.0),
            partial(self._observed, group),
            partial(self._simulated, group, drawn),
            around=fitted,
            slope=slope,
        )
