"""SDPM: the piecewise mechanism graded by sensitivity, the numeric mechanism of SDLDP."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Codes
from dither.local._coins import exp_bounds, pick
from dither.local._domain import bind
from dither.local._guarantee import ClassPair, Guarantee
from dither.local._numbers.interval import Interval
from dither.local._numbers.numeric import (
    AUDITED,
    MAX_OUTPUTS,
    NumericChannel,
    NumericLaw,
    too_many_positions,
)
from dither.local._numbers.window import WindowLaw, toss
from dither.local._oracles import log_ratio
from dither.numeric import Words
from dither.numeric import _directed as directed

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class GradedLaw(NumericLaw):
    """High points by a window law; each low point i itself, at position i + offset, or not low.

    Both laws stand on the same positions. Reports are the multiples j of the interval's own step h
    (j = 0..M-1, M - 1 - N even), so that the low points, first to last, are positions too; on two
    different grids, or as a float among floats, a low report would show outright that it is one. A
    window of W positions begins at (M - W)·i/N, mixed between neighbours. Its chance is P = (N +
    W)/M: then (p - q)·W·(M - W) = N, so the spacing of positions is h itself and a high report is
    exactly unbiased. M is the least, of its parity, for which p/q <= e^epsilon::

        W = N/(s - 1), rounded,   M >= (e - 1)·W·(N + W)/((e - 1)·W - N),   p' = 1 - (M - m)·q

    for m low points, all rational, s = e^{epsilon/2}; as N grows p' goes to 1 - 1/s + (r - l)·p/e.
    """

    window: WindowLaw
    first: int
    last: int

    @property
    def steps(self) -> int:  # type: ignore[override]
        """Of the window."""
        return self.window.steps

    @property
    def outputs(self) -> int:  # type: ignore[override]
        """M positions, one step of the interval apart."""
        return self.window.outputs

    @property
    def offset(self) -> int:
        """The position of point 0."""
        return (self.window.outputs - 1 - self.window.steps) // 2

    @property
    def lows(self) -> slice:
        """The low positions."""
        return slice(self.first + self.offset, self.last + self.offset + 1)

    @property
    def truth(self) -> Fraction:
        """p': the chance that a low point is reported as it is."""
        return 1 - (self.window.outputs - (self.last - self.first + 1)) * self.window.q

    def exact(self, x: int, y: int) -> Fraction:
        """Pr[y | x]."""
        if not self.first <= x <= self.last:
            return self.window.exact(x, y)
        if y == x + self.offset:
            return self.truth
        lows = self.lows
        return Fraction(0) if lows.start <= y < lows.stop else self.window.q

    def draw(self, codes: Codes, words: Words) -> Codes:
        """Both laws for everyone; the class says which counts."""
        high = self.window.draw(codes, words)
        lows = self.lows
        away = pick(self.window.outputs - (lows.stop - lows.start), codes.size, words)
        away += (lows.stop - lows.start) * (away >= lows.start)
        low = np.where(toss(self.truth, codes.size, words), codes + self.offset, away)
        return np.where((codes >= self.first) & (codes <= self.last), low, high)

    def breaks(self) -> Codes:
        """Positions at which some row changes; every low position is one."""
        lows = np.arange(self.lows.start, self.lows.stop + 1)
        found = np.union1d(self.window.breaks(), lows)
        return found[found < self.window.outputs]

    def compiled(self, edges: Codes) -> GradedProducts:
        """The window's products, and those of the low points."""
        return GradedProducts(self, edges)


class GradedProducts:
    """f @ matrix and matrix @ w of a graded law, without the matrix, with bins of reports from
    `edges`.
    """

    def __init__(self, law: GradedLaw, edges: Codes) -> None:
        self.window = law.window.compiled(edges)
        self.points = slice(law.first, law.last + 1)
        start = int(np.searchsorted(edges, law.lows.start))
        self.lows = slice(start, start + law.last + 1 - law.first)
        self.truth, self.q = float(law.truth), float(law.window.q)

    def forward(self, f: Array) -> Array:
        """Shares of the bins of reports."""
        low, high = f[self.points], f.copy()
        high[self.points] = 0.0
        found = self.window.forward(high)
        on_lows = found[self.lows] + self.truth * low
        found += self.q * low.sum() * self.window.widths
        found[self.lows] = on_lows
        return found

    def back(self, weights: Array) -> Array:
        """E[weights[bin of the report] | point]."""
        found = self.window.back(weights)
        on_lows = weights[self.lows]
        away = self.q * (float(weights @ self.window.widths) - on_lows.sum())
        found[self.points] = self.truth * on_lows + away
        return found


@dataclass(frozen=True, init=False)
class SDPM(NumericChannel):
    """Sensitivity-graded piecewise mechanism.

    Parameters
    ----------
    interval : Interval
    low_range : (number, number)
        Values from the one to the other, both included, are low. The points of the interval within
        it form the class, so that a range between points is read inwards: less is low, not more.
    epsilon : number
        From 2**-32 to 40; read exactly.

    Raises
    ------
    ArgumentError
        `interval` is not an `Interval`, `low_range` leaves no high points or no low ones, or
        `epsilon` is out of range.

    Notes
    -----
    Law. Numbers within a public range [l, r] are low, all others high. A high value is randomised
    as by `PM`. A low one is reported as it is with chance p', and is else any point outside the low
    range, each with PM's small chance q. So no low value is ever reported as another low value. On
    a lattice both laws stand on the same positions, of the interval's own step.

    Guarantee, between two numbers of one person, by classes. Two high values: (epsilon, 0). For
    other pairs the deltas that `guarantee` states, which are far from negligible. Two low: delta =
    p', since a low value that is reported as it is shows itself. High against low: the chance that
    a high report lies among the other low points; low against high: p' - e·(the least chance of
    that point under a high value). A low report excludes every other low value, so the pure ratio
    from high to low is infinite. No single epsilon is true of this channel.

    Error. The expectation for a low x of a low range [-c, c] is p'·x: the plain mean is biased
    towards the middle, and a likelihood is biased too, as it stops early. With s = e^{epsilon/2}
    the variance is p'(1 - p')x² + (s + 2 + 1/s)/(3(s - 1)²) - (s - 1)c³/(3s(s + 1)).

    References
    ----------
    Chen, Ye, Zhang and Shu, "SDLDP", Journal of Cyber Security 2025, section 4.3. Put right here:
    theorem 4 drops the first term of the variance; definition 3 lacks Pr[F(x_high) = y] > 0 on low
    outputs, without which a channel that shows outright who is low satisfies it; the atom p' stands
    against a density, which no float grid can hide.

    Examples
    --------
    >>> channel = SDPM(Interval(-1, 1), (-0.5, 0.5), epsilon=1)
    >>> round(float(channel.law.truth), 3)
    0.468
    >>> print(channel.guarantee)
    delta at epsilon = 1, of a value of the row against one of the column
                          high                 low
    high                     0     0.173 (pure: ∞)
    low     0.468 (pure: 8.08)     0.468 (pure: ∞)
    """

    kind: ClassVar[str] = "sdpm"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = tuple(
        AuditCase({"interval": AUDITED, "low_range": (-0.5, 0.5), "epsilon": 1}, d0, d1, pair)
        for d0, d1, pair in (
            (0, 8, ("high", "high")),
            (0, 2, ("high", "low")),
            (2, 3, ("low", "low")),
        )
    )
    unbiased: ClassVar[bool] = False

    low_range: tuple[Fraction, Fraction]
    """From the first low point to the last."""

    def __init__(self, interval: Interval, low_range: tuple[Any, Any], epsilon: Any) -> None:
        try:
            given_first, given_last = low_range
        except (TypeError, ValueError):
            raise ArgumentError("low_range must be two numbers, such as (-0.5, 0.5)") from None
        if not isinstance(interval, Interval):
            raise ArgumentError("interval must be an Interval, such as local.Interval(0, 100)")
        first = interval.index(given_first, "low_range", up=True)
        last = interval.index(given_last, "low_range", up=False)
        if first > last or (first == 0 and last == interval.steps):
            raise ArgumentError(
                "low_range must hold at least one point of the interval and not all of them; "
                "where all values are sensitive, use PM"
            )
        ends = (interval.low + first * interval.step, interval.low + last * interval.step)
        bind(self, low_range=ends)
        super().__init__(interval, epsilon)

    @cached_property
    def law(self) -> GradedLaw:
        """PM's window on the interval's own spacing; low points as they are, or not low."""
        first, last = ((end - self.interval.low) / self.interval.step for end in self.low_range)
        return GradedLaw(_window(self.interval.steps, self.epsilon), int(first), int(last))

    @property
    def apart(self) -> tuple[int, int]:  # type: ignore[override]
        """The low points: rounding never makes a high value low."""
        return self.law.first, self.law.last

    @property
    def low(self) -> npt.NDArray[np.bool_]:
        """Which points are low, shape (steps + 1,)."""
        places = np.arange(self.interval.steps + 1)
        return (places >= self.law.first) & (places <= self.law.last)

    @property
    def high(self) -> tuple[bool, ...]:
        """Which points are high."""
        return tuple((~self.low).tolist())

    @property
    def positions(self) -> Array:
        """Values of the reports; those of the low positions are the low points."""
        return self.interval.at(np.arange(self.outputs) - self.law.offset)

    @property
    def guarantee(self) -> Guarantee:
        """The class matrix of high and low values, with the exact worst delta of each pair."""

        return class_matrix(self.law, self.epsilon)


def _window(steps: int, epsilon: Fraction) -> WindowLaw:
    """The window law with the interval's own spacing; see `GradedLaw`."""
    e, _ = exp_bounds(epsilon)
    s, _ = exp_bounds(epsilon / 2)
    width = max(1, round(steps / (s - 1)))
    # With e rounded down, (e-1)W(N+W)/((e-1)W-N) is rounded up: it falls as e grows.
    outputs = math.ceil((e - 1) * width * (steps + width) / ((e - 1) * width - steps))
    # As many positions beyond one end as beyond the other.
    outputs += (outputs - 1 - steps) % 2
    if outputs > MAX_OUTPUTS:
        raise too_many_positions()
    return WindowLaw(steps, outputs, width, Fraction(steps + width, outputs))


def class_matrix(law: GradedLaw, epsilon: Fraction) -> Guarantee:
    """What SDPM's law promises between two high values, two low ones, and one of each.

    Off the low positions every chance lies in [q, p], and p/q <= e^epsilon, so nothing is lost
    there. On them a low point i has p' at its own and 0 elsewhere, and a high point x has h_x::

        low against low     p'
        high against low    sum of h_x over the low positions, less min(h_x(i), e·p')
        low against high    p' - e·h_x(i), where that is above 0

    each at its worst over x and i.
    """
    e, _ = exp_bounds(epsilon)
    alone = law.first == law.last
    window, truth = law.window, law.truth
    highs = [x for x in range(window.steps + 1) if not law.first <= x <= law.last]
    sums, leasts, mosts, everywhere = zip(*(_on_lows(law, x) for x in highs), strict=True)
    least = min(leasts)
    to_low = max(total - min(h, e * truth) for total, h in zip(sums, leasts, strict=True))
    to_high = max(Fraction(0), truth - e * least)
    top, bottom = max(p for p, _ in everywhere), min(q for _, q in everywhere)
    # Where one point alone is low, no report excludes it.
    excluded = Fraction(0) if not alone else truth
    high_low = max(log_ratio(max(mosts), excluded), log_ratio(top, window.q))
    low_high = max(log_ratio(truth, least), log_ratio(window.q, bottom))
    pairs = {
        ("high", "high"): ClassPair(0.0, log_ratio(top, bottom) if len(highs) > 1 else 0.0),
        ("high", "low"): ClassPair(directed.float_up(to_low), high_low),
        ("low", "high"): ClassPair(directed.float_up(to_high), low_high),
        ("low", "low"): ClassPair(
            0.0 if alone else directed.float_up(truth), 0.0 if alone else float("inf")
        ),
    }
    return Guarantee(epsilon, ("high", "low"), pairs)


def _on_lows(
    law: GradedLaw, x: int
) -> tuple[Fraction, Fraction, Fraction, tuple[Fraction, Fraction]]:
    """The sum, least and most of a high point's chances on the low positions, and its range.

    Its row is q, an edge, p over W - 1 positions, an edge, and q: five flat stretches.
    """
    window, lows = law.window, law.lows
    begin, part = divmod(x * (window.outputs - window.width), window.steps)
    cuts = [0, begin, begin + 1, begin + window.width]
    cuts += [begin + window.width + 1] if part else []
    total, on, anywhere = Fraction(0), [], []
    for start, stop in zip(cuts, [*cuts[1:], window.outputs], strict=True):
        if stop <= start:
            continue
        chance = window.exact(x, start)
        anywhere.append(chance)
        shared = min(stop, lows.stop) - max(start, lows.start)
        if shared > 0:
            total += shared * chance
            on.append(chance)
    return total, min(on), max(on), (max(anywhere), min(anywhere))
