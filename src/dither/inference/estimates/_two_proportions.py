"""Two proportions: their difference, and their odds ratio, with intervals by simulated tests.

Release. Where groups are public, under REPLACE, the two numbers of yes leave with the canonical
noise of `dither.inference.proportion`: a row changes one of them by 1. Else the four numbers of yes
and no in each group leave. Under ADD_REMOVE a row changes one of the four by 1; under REPLACE with
private groups it leaves one cell and enters another, so that they move by 2 in the L1 norm, and the
noise is discrete Laplace of that scale (a delta is not used).

Model. Binomial(n₁, p₁) and Binomial(n₂, p₂) with fresh noise; n as it is known, or as measured.

Infer. A null, p₁ - p₂ = d or an odds ratio, leaves a line of pairs: the one that is nearest to the
released shares is simulated, and the released p̂₁ - p̂₂ is placed among what it gives. Intervals hold
what two such one-sided tests do not reject.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.inference.engine._errors import Alternative, Errors, inverted, monte_carlo
from dither.inference.engine._inputs import Floats, Target, column, target
from dither.inference.engine._result import PrivateEstimate, too_few_rows
from dither.inference.estimates._proportion import CanonicalNoise, binomial
from dither.mechanisms import DiscreteLaplace
from dither.privacy import Loss, Neighbours

__all__ = ["CellsRelease", "odds_ratio", "two_proportions"]

_MOST = 12.0
"""Of a log odds ratio: beyond, an interval is open."""


@dataclass(frozen=True)
class CellsRelease:
    """Layer 1: numbers of yes and no in two groups.

    Parameters
    ----------
    asked : Target
    moves : bool
        Whether a row may change its group: under REPLACE, where groups are private.
    """

    asked: Target
    moves: bool
    noise: CanonicalNoise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        asked = self.asked
        if not self.moves:
            noise = CanonicalNoise(asked)
            loss = noise.loss
        else:
            # A row that moves changes two counts by 1: noise for one count, at half of epsilon.
            noise = CanonicalNoise(Target(asked.epsilon / 2, Fraction(0), asked.neighbours))
            assert isinstance(noise.law, DiscreteLaplace)
            loss = noise.law.loss(l1=2, neighbours=asked.neighbours)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    @property
    def measured(self) -> bool:
        """Whether the sizes of the groups are released."""
        return self.moves or not self.asked.replace

    def statistic(self, groups: tuple[Floats, Floats]) -> tuple[int, ...]:
        """Yes of each group, and then, where sizes are measured, no of each group."""
        known = [values[~np.isnan(values)] for values in groups]
        yes = tuple(int(np.count_nonzero(values)) for values in known)
        if not self.measured:
            return yes
        return (*yes, *(len(v) - y for v, y in zip(known, yes, strict=True)))

    def release(self, groups: tuple[Floats, Floats]) -> Floats:
        """The numbers with noise: the one step that touches data."""
        return self.noise.release(self.statistic(groups))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        design = cls(Target(Fraction(1), Fraction(0), Neighbours.REPLACE), True)

        def run(cells: tuple[int, ...], size: int) -> npt.NDArray[np.float64]:
            return np.array(cells) + design.noise.release((0,) * (4 * size)).reshape(size, 4)

        yield Subject("two proportions where a row moves", run, (3, 2, 4, 4), (2, 2, 4, 5))


@dataclass(frozen=True, eq=False)
class TwoShares(Errors):
    """Errors of a function of two shares, by simulated tests.

    Parameters
    ----------
    noise : CanonicalNoise
    seen : array of float
        As released.
    rows : (int, int) or None
        The public sizes.
    odds : bool
        Whether it is of the log odds ratio.
    chances : array of float, shape (B, 2)
        Uniform numbers that become numbers of yes.
    noises : array of float, shape (B, 2) or (B, 4)
    """

    noise: CanonicalNoise
    seen: Floats
    rows: tuple[int, int] | None
    odds: bool
    chances: Floats
    noises: Floats

    @cached_property
    def n(self) -> tuple[int, int]:
        """Sizes, at least 1."""
        if self.rows is not None:
            return max(1, self.rows[0]), max(1, self.rows[1])
        # The fractions of the noise say nothing of the rows.
        first, second = np.floor(self.seen[:2] + 0.5) + np.floor(self.seen[2:] + 0.5)
        return max(1, int(first)), max(1, int(second))

    def shares(self, seen: Floats) -> Floats:
        """Released numbers as shares in [0, 1], shape (..., 2)."""
        total = np.array(self.n, dtype=float)
        if self.rows is None:
            total = np.maximum(seen[..., :2] + seen[..., 2:], 1.0)
        return np.asarray(np.clip(seen[..., :2] / total, 0.0, 1.0))

    @cached_property
    def pair(self) -> Floats:
        """The released shares."""
        return self.shares(self.seen)

    @cached_property
    def deviation(self) -> Floats:
        """Of each share, of sampling and noise, at shares a little away from 0 and 1."""
        n = np.array(self.n, dtype=float)
        inner = (self.pair * n + 1.0) / (n + 2.0)
        return np.asarray(np.sqrt(inner * (1 - inner) / n + self.noise.variance / n**2))

    @property
    def value(self) -> float:
        """The estimate: a difference, or a log odds ratio of shares kept away from 0 and 1."""
        if not self.odds:
            return float(self.pair[0] - self.pair[1])
        return float(self._log_odds(self.pair)[0])

    def _log_odds(self, pairs: Floats) -> Floats:
        n = np.array(self.n, dtype=float)
        inner = (np.atleast_2d(pairs) * n + 0.5) / (n + 1.0)
        logits = np.log(inner) - np.log1p(-inner)
        return np.asarray(logits[:, 0] - logits[:, 1])

    @property
    def se(self) -> Floats:
        """Of simulated releases at the estimate."""
        return self._spread(self.noises)

    @property
    def se_sampling(self) -> Floats:
        """The same without noise."""
        return np.minimum(self._spread(np.zeros_like(self.noises)), self.se)

    def _spread(self, noises: Floats) -> Floats:
        found = self.shares(self._simulated(self.pair, noises))
        off = self._log_odds(found) if self.odds else found[:, 0] - found[:, 1]
        return np.array([math.sqrt(float(np.mean((off - self.value) ** 2)))])

    def interval(self, confidence: float) -> Floats:
        """What two simulated one-sided tests do not reject."""
        most = _MOST if self.odds else 1.0
        low, high = inverted(
            lambda v: self._one_sided(v, "greater"),
            lambda v: self._one_sided(v, "less"),
            confidence=confidence,
            inside=self.value,
            limits=(-most, most),
            steps=24,
        )
        if self.odds:
            low, high = (-math.inf if low <= -most else low), (math.inf if high >= most else high)
        return np.array([[low, high]])

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """Monte Carlo p-values."""
        most = _MOST if self.odds else 1.0
        return np.array([self._one_sided(min(most, max(-most, float(null[0]))), alternative)])

    def _one_sided(self, value: float, alternative: Alternative) -> float:
        found = self.shares(self._simulated(self.nearest(value), self.noises))
        return monte_carlo(
            float(self.pair[0] - self.pair[1]), found[:, 0] - found[:, 1], alternative
        )

    def nearest(self, value: float) -> Floats:
        """The pair with this difference, or log odds ratio, that is nearest to the released one."""
        if self.odds:
            second = 1 / (1 + np.exp(-np.linspace(-14.0, 14.0, 1401)))
            first = 1 / (1 + np.exp(-(np.linspace(-14.0, 14.0, 1401) + value)))
        else:
            second = np.linspace(max(0.0, -value), min(1.0, 1.0 - value), 1401)
            first = second + value
        off = (np.stack([first, second], axis=1) - self.pair) / self.deviation
        best = int(np.argmin((off**2).sum(axis=1)))
        return np.asarray(np.clip([first[best], second[best]], 0.0, 1.0))

    def _simulated(self, pair: Floats, noises: Floats) -> Floats:
        yes = []
        for j, (n, p) in enumerate(zip(self.n, pair, strict=True)):
            x, law = binomial(n, float(p))
            # The same uniform numbers at every pair, so that p-values change smoothly along the
            # line.
            place = np.searchsorted(np.cumsum(law), self.chances[:, j])
            yes.append(x[np.minimum(place, x.size - 1)])
        found = np.stack(yes, axis=1)
        if self.rows is None:
            found = np.concatenate([found, np.array(self.n) - found], axis=1)
        return np.asarray(found + noises)


@dataclass(frozen=True, eq=False)
class OddsRatio(Errors):
    """The errors of an odds ratio, from those of its logarithm."""

    inner: TwoShares

    @property
    def _ratio(self) -> float:
        return math.exp(self.inner.value)

    @property
    def se(self) -> Floats:
        """By the delta method."""
        return self.inner.se * self._ratio

    @property
    def se_sampling(self) -> Floats:
        """By the delta method."""
        return self.inner.se_sampling * self._ratio

    def interval(self, confidence: float) -> Floats:
        """That of the logarithm, turned back."""
        return np.asarray(np.exp(self.inner.interval(confidence)))

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """That of the logarithm; an odds ratio is never 0 or below."""
        return self.inner.pvalue(np.log(np.maximum(null, 1e-300)), alternative)

    def power(self, truth: Floats, null: Floats, level: float) -> Floats:
        """That of the logarithm."""
        first, second = (np.log(np.maximum(v, 1e-300)) for v in (truth, null))
        return self.inner.power(first, second, level)


def two_proportions(
    x: Any,
    y: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    private_groups: bool = False,
    null: float = 0.0,
) -> PrivateEstimate:
    """The share of yes in one group less that in another, with intervals and a test.

    Parameters
    ----------
    x, y : sequence of bool or number
        One answer a row of either group: anything but 0 is a yes. A row is who is protected.
    epsilon, delta : number
        What the release of both groups may cost, together.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected and measured with noise.
    private_groups : bool
        Whether the group that a row is in is protected too. Under "add-remove" it always is.
    null : float
        In [-1, 1]: the difference that ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. A missing answer
    counts as a no where groups are public and rows are replaced, else it is left out.

    Examples
    --------
    >>> from dither import inference
    >>> found = inference.two_proportions(
    ...     [True] * 400 + [False] * 600, [True] * 200 + [False] * 800, epsilon=1)
    >>> lower, upper = found.interval(0.999)
    >>> lower < 0.2 < upper, found.pvalue < 0.01
    (True, True)
    """
    against = check.number("null", null, least=-1, most=1)
    return _estimate(x, y, epsilon, delta, neighbours, private_groups, against, odds=False)


def odds_ratio(
    x: Any,
    y: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    private_groups: bool = False,
    null: float = 1.0,
) -> PrivateEstimate:
    """The odds of yes in one group over those in another; arguments as of `two_proportions`.

    Parameters
    ----------
    x, y, epsilon, delta, neighbours, private_groups
        As of `two_proportions`.
    null : float
        Above 0: the odds ratio that ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate
        Where one share may be 0 or 1, its interval ends at 0 or infinity.

    Examples
    --------
    >>> from dither import inference
    >>> found = inference.odds_ratio(
    ...     [True] * 400 + [False] * 600, [True] * 200 + [False] * 800, epsilon=1)
    >>> lower, upper = found.interval(0.999)
    >>> lower < 8 / 3 < upper, found.pvalue < 0.01
    (True, True)
    """
    against = check.number("null", null, above=0)
    return _estimate(x, y, epsilon, delta, neighbours, private_groups, against, odds=True)


def _estimate(
    x: Any,
    y: Any,
    epsilon: Number,
    delta: Number,
    neighbours: Neighbours | str,
    private_groups: bool,
    null: float,
    *,
    odds: bool,
) -> PrivateEstimate:
    asked = target(epsilon, delta, neighbours)
    groups = column("x", x), column("y", y)
    design = CellsRelease(asked, bool(private_groups) and asked.replace)
    seen = design.release(groups)
    rows = None if design.measured else (len(groups[0]), len(groups[1]))

    at = TwoShares(design.noise, seen, rows, odds, np.zeros((0, 2)), np.zeros((0, seen.size)))
    notes = []
    smallest, needed = min(at.n), math.sqrt(design.noise.variance) / 0.05
    if smallest < needed:
        reason = "the noise is more than a twentieth of all rows of a group"
        notes.append(too_few_rows(reason, needed))
    missing = "no answer is missing (one that is counts as a no)"
    return PrivateEstimate(
        "odds ratio" if odds else "difference of proportions",
        design.loss,
        ("rows are an independent sample", "sizes are as measured" if rows is None else missing),
        tuple(notes),
        None,
        np.array([math.exp(at.value) if odds else at.value]),
        sum(len(g) for g in groups) if asked.replace else sum(at.n),
        partial(_errors, at),
        null,
    )


def _errors(at: TwoShares, rng: np.random.Generator, size: int) -> Errors:
    chances = rng.random((size, 2))
    found = replace(at, chances=chances, noises=at.noise.draw(rng, (size, at.seen.size)))
    return OddsRatio(found) if at.odds else found
