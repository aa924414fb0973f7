"""Quantiles with intervals that count who was sampled: order statistics under noise.

Release. Rows are counted in equal bins between public bounds, and leave as the noisy tree of
`dither.mechanisms.QuantileTree`: counts at every level, one row in one node of each. Under
ADD_REMOVE a row moves one count a level by 1, under REPLACE two, which is all that the noise is
made for. One release serves every quantile.

Model. Let F̃(e) be the least-squares count below the edge e. Where a share q of the people lies
below e, the sampled number below is Binomial(n, q), so that F̃(e) - q·n is that less q·n, and the
noise.

Infer. Numbers below edges rise, so F̃(e) - q·n is taken halfway between the two rising curves that
hold it. An edge is rejected as too low, or too high, where that is beyond what simulation gives.
The interval runs from the last edge before the first that is not rejected as too low to the first
after the last that is not rejected as too high: the quantile lies in one of its bins. Nothing is
assumed of the law of the values. Intervals are no narrower than two bins: they hold the truth as
often as they say, or more often.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import number_text
from dither._stats import two_sided
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._errors import Alternative, Errors
from dither.inference.engine._inputs import Bounds, Floats, Target, bounds_of, column, target
from dither.inference.engine._release import gaussian_is_better
from dither.inference.engine._result import PrivateEstimate, too_few_rows
from dither.mechanisms import DiscreteGaussian, DiscreteLaplace, QuantileTree
from dither.privacy import Loss, Neighbours

__all__ = [
    "BINS",
    "FINE",
    "BinsRelease",
    "QuantileModel",
    "adding_up",
    "noise_drawn",
    "quantiles",
    "rank_deviation",
    "shares_of",
]

Integers = npt.NDArray[np.int64]


BINS = 512
"""Into how many parts bounds are divided, where it is not said."""


@dataclass(frozen=True)
class BinsRelease:
    """Layer 1: numbers of rows in bins between public ends, as a noisy tree.

    Parameters
    ----------
    bounds : Bounds
    bins : int
    asked : Target

    Attributes
    ----------
    tree : QuantileTree
    noise : DiscreteLaplace or DiscreteGaussian
    loss : Loss
    """

    bounds: Bounds
    bins: int
    asked: Target
    tree: QuantileTree = field(init=False)
    noise: DiscreteLaplace | DiscreteGaussian = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        asked = self.asked
        tree, noise, loss = self._with_laplace()
        l1, l2 = tree.sensitivity(max_rows=1, max_groups=1, neighbours=asked.neighbours)
        if gaussian_is_better(asked, l1=float(l1), l2=math.sqrt(l2)):
            tree, noise, loss = self._with_gaussian()
        for name, value in (("tree", tree), ("noise", noise), ("loss", loss)):
            object.__setattr__(self, name, value)

    def _with_laplace(self) -> tuple[QuantileTree, DiscreteLaplace | DiscreteGaussian, Loss]:
        tree = QuantileTree.choose(self.bins, "laplace")
        l1, _ = tree.sensitivity(max_rows=1, max_groups=1, neighbours=self.asked.neighbours)
        noise = DiscreteLaplace.for_loss(self.asked.epsilon, l1=l1)
        return tree, noise, noise.loss(l1=l1, neighbours=self.asked.neighbours)

    def _with_gaussian(self) -> tuple[QuantileTree, DiscreteLaplace | DiscreteGaussian, Loss]:
        asked, tree = self.asked, QuantileTree.choose(self.bins, "gaussian")
        l1, l2_squared = tree.sensitivity(max_rows=1, max_groups=1, neighbours=asked.neighbours)
        noise = DiscreteGaussian.for_epsilon(
            asked.epsilon, asked.delta, l2_squared=l2_squared, coordinates=int(l1)
        )
        loss = noise.loss(l2_squared=l2_squared, coordinates=int(l1), neighbours=asked.neighbours)
        return tree, noise, loss

    def leaves(self, values: Floats) -> Integers:
        """How many rows lie in each bin; what is missing is in the middle one, or nowhere."""
        gone = np.isnan(values)
        points = self.bounds.lattice(values[~gone])
        # By one more than the distance of the ends, so that the upper one is in the last bin.
        place = (points + Bounds.steps) * self.bins // (2 * Bounds.steps + 1)
        found = np.bincount(place, minlength=self.bins).astype(np.int64)
        if self.asked.replace:
            found[self.bins // 2] += int(gone.sum())
        return found

    def release(self, values: Floats) -> list[Integers]:
        """Noisy counts of every level: the one step that touches data."""
        return self.tree.measure(self.leaves(values)[None, :], self.noise)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        low, high = np.array([-9.0]), np.array([9.0])
        design = cls(bounds_of("bounds", (-1, 1)), 4, target(1, 0, "replace"))

        def run(values: Floats, size: int) -> Integers:
            counts = np.repeat(design.leaves(values)[None, :], size, axis=0)
            return np.concatenate(design.tree.measure(counts, design.noise), axis=1)

        yield Subject("bins of quantiles", run, low, high)


@dataclass(frozen=True, eq=False)
class QuantileErrors(Errors):
    """Errors of several quantiles, by tests of every edge.

    Parameters
    ----------
    gaps : array of float, shape (k, bins + 1)
        F̃(e) - q·n, made to rise.
    edges : array of float, shape (bins + 1,)
    simulated, sampling : sequence of k arrays, shape (B, bins + 1) and (B,)
        What the gaps are where a share q lies below the edge, sorted; and of sampling alone.
    trim : float
        How far inside its bin the nearest number lies that can occur.
    """

    gaps: Floats
    edges: Floats
    simulated: Sequence[Floats]
    sampling: Sequence[Floats]
    trim: float = 0.0

    @cached_property
    def se(self) -> Floats:
        """That of which a normal law would give an interval as long, at 95 %."""
        ends = self.interval(0.95)
        return np.asarray((ends[:, 1] - ends[:, 0]) / 2 / two_sided(0.95))

    @cached_property
    def se_sampling(self) -> Floats:
        """The part that ranks would be off without noise, beside which the slope is the same."""
        found = []
        for gap, whole, alone in zip(self.gaps, self.simulated, self.sampling, strict=True):
            total = float(whole[:, int(np.argmin(np.abs(gap)))].std())
            found.append(min(1.0, float(alone.std()) / total) if total > 0 else 1.0)
        return np.asarray(self.se * np.array(found))

    def interval(self, confidence: float) -> Floats:
        """Which bins may hold each quantile."""
        level = (1.0 - confidence) / 2
        found = []
        for gap, drawn in zip(self.gaps, self.simulated, strict=True):
            size = len(drawn)
            # The k-th of B at k = level·(B + 1), rounded down: fewer edges are rejected, not more.
            rank = max(0, math.floor(level * (size + 1)) - 1)
            not_low = np.flatnonzero(gap >= drawn[rank])
            not_high = np.flatnonzero(gap <= drawn[size - 1 - rank])
            last = len(self.edges) - 1
            first = (int(not_low[0]) if not_low.size else last) - 1
            final = (int(not_high[-1]) if not_high.size else 0) + 1
            ends = sorted((min(max(first, 0), last), min(max(final, 0), last)))
            found.append((self.edges[ends[0]] + self.trim, self.edges[ends[1]] - self.trim))
        return np.array(found)

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """Of the more likely edge of the bin that the null lies in."""
        found = []
        for value, gap, drawn in zip(null, self.gaps, self.simulated, strict=True):
            after = int(np.searchsorted(self.edges, value, side="right"))
            at = [min(max(e, 0), len(self.edges) - 1) for e in (after - 1, after)]
            size = len(drawn) + 1
            # A quantile above the null leaves fewer rows below it.
            above = max((1 + int((drawn[:, e] <= gap[e]).sum())) / size for e in at)
            below = max((1 + int((drawn[:, e] >= gap[e]).sum())) / size for e in at)
            one = above if alternative == "greater" else below
            found.append(min(1.0, 2 * min(above, below)) if alternative == "two-sided" else one)
        return np.array(found)


def quantiles(
    x: Any,
    probabilities: Sequence[float],
    *,
    bounds: Any = None,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    bins: int = BINS,
) -> PrivateEstimate:
    """Several quantiles of one number per row, with intervals that count sampling and noise.

    Parameters
    ----------
    x : sequence of float
        One value a row; a row is who is protected.
    probabilities : sequence of float
        In (0, 1): 0.5 is the median.
    bounds : (number, number)
        Public ends; values beyond count in the first and the last bin.
    epsilon, delta : number
        What the release may cost, for all quantiles together.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected and bought with noise.
    bins : int
        Into how many equal parts the bounds are divided: no answer is finer. From 2 to 4,096.

    Returns
    -------
    PrivateEstimate
        A number for each probability.

    Raises
    ------
    ArgumentError
        Bounds are missing or the wrong way round, or an argument is out of range. No value of the
        data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. Missing values count
    as the middle of the bounds where rows are replaced, and are left out where they are added or
    removed.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).exponential(2, 10_000)
    >>> found = inference.quantiles(x, [0.25, 0.5], bounds=(0, 20), epsilon=1)
    >>> lower, upper = found.interval(0.9999)[1]
    >>> bool(lower < 2 * np.log(2) < upper), found.loss.charge.epsilon
    (True, Fraction(1, 1))
    """
    ends, asked = bounds_of("bounds", bounds), target(epsilon, delta, neighbours)
    size = check.whole("bins", bins, 2, 4096)
    shares = shares_of(probabilities)
    values = column("x", x)
    design = BinsRelease(ends, size, asked)
    noisy = design.release(values)
    edges = np.linspace(float(ends.lower), float(ends.upper), size + 1)
    below = design.tree.cumulative(noisy)[0]
    deviation = math.sqrt(design.noise.variance)
    known = len(values) if asked.replace else None
    model = QuantileModel(
        design.tree, partial(noise_drawn, design.noise), deviation, edges, below, shares, known
    )
    width = number_text(float(ends.upper - ends.lower) / size, 3)
    return PrivateEstimate(
        "quantiles",
        design.loss,
        (
            "rows are an independent sample",
            f"answers are no finer than a bin of {width}",
            "no value is missing (one that is counts as the middle of the bounds)"
            if asked.replace
            else "n is as measured",
        ),
        model.notes,
        tuple(f"{q:g}" for q in shares),
        model.middle,
        round(model.n),
        model.errors,
    )


def shares_of(probabilities: Sequence[float]) -> tuple[float, ...]:
    """Which quantiles are asked for."""
    shares = tuple(float(q) for q in column("probabilities", probabilities))
    if not shares or not all(0 < q < 1 for q in shares):
        raise ArgumentError("probabilities must hold numbers between 0 and 1, such as [0.25, 0.5]")
    return shares


def noise_drawn(
    noise: DiscreteLaplace | DiscreteGaussian, rng: np.random.Generator, shape: tuple[int, int]
) -> Floats:
    """Simulated noise: a lattice of whole rows is as good as a line here."""
    deviation = math.sqrt(noise.variance)
    if isinstance(noise, DiscreteLaplace):
        return np.asarray(rng.laplace(0.0, deviation / math.sqrt(2.0), shape))
    return np.asarray(rng.normal(0.0, deviation, shape))


@dataclass(frozen=True, eq=False)
class QuantileModel:
    """Layers 2 and 3: quantiles from least-squares counts below edges, and their errors.

    Parameters
    ----------
    tree : QuantileTree
    draw : callable
        Of a generator and a shape, simulated noise of one count, in rows.
    deviation : float
        Of that noise.
    edges, below : arrays of float, shape (bins + 1,)
    shares : tuple of float
        Which quantiles.
    known : int or None
        The number of rows, where it is public: the counts then are made to add up to it.
    trim : float
        How far inside an edge the nearest number lies that can occur.
    """

    tree: QuantileTree
    draw: Callable[[np.random.Generator, tuple[int, int]], Floats]
    deviation: float
    edges: Floats
    below: Floats
    shares: tuple[float, ...]
    known: int | None = None
    trim: float = 0.0

    @property
    def n(self) -> float:
        """How many rows there are, or seem to be."""
        return max(1.0, float(self.below[-1])) if self.known is None else float(self.known)

    def _gap(self, below: Floats, n: float | None, q: float) -> Floats:
        """F̃(e) - q·n in each row of ``below``, with the n that is known, or that was measured."""
        below = below if n is None else adding_up(self.tree, below, n)
        return np.asarray(below - q * below[:, -1:])

    @cached_property
    def gaps(self) -> Floats:
        """Of each quantile, shape (k, bins + 1)."""
        known = None if self.known is None else float(self.known)
        each = [self._gap(self.below[None, :], known, q)[0] for q in self.shares]
        return np.stack([_rising(gap) for gap in each])

    @property
    def middle(self) -> Floats:
        """The estimates."""
        low, high = self.edges[0] + self.trim, self.edges[-1] - self.trim
        found = np.clip([_crossing(gap, self.edges) for gap in self.gaps], low, high)
        return np.asarray(np.round(found) if self.trim else found)

    @property
    def least_rows(self) -> float:
        """Rows with which the rank of the middle is known within a twentieth of them."""
        return rank_deviation(self.tree, self.deviation) / FINE

    @property
    def notes(self) -> tuple[str, ...]:
        """Whether there are too few rows."""
        if self.n >= self.least_rows:
            return ()
        reason = "noisy counts do not tell where a share of the rows lies"
        return (too_few_rows(reason, self.least_rows, self.least_rows / max(self.n, 1.0)),)

    def errors(self, rng: np.random.Generator, draws: int) -> Errors:
        """Simulated: who was sampled, and the noise of every node."""
        tree = self.tree
        count = min(draws, max(200, (1 << 21) // len(self.edges)))
        off = tree.cumulative(
            [self.draw(rng, (count, tree.branching ** (i + 1))) for i in range(tree.levels)]
        )
        known = None if self.known is None else 0.0
        simulated, sampling = [], []
        for q in self.shares:
            n = self.n
            alone = np.asarray(rng.binomial(round(n), q, count) - n * q, dtype=np.float64)
            simulated.append(np.sort(self._gap(off, known, q) + alone[:, None], axis=0))
            sampling.append(alone)
        return QuantileErrors(self.gaps, self.edges, simulated, sampling, self.trim)


FINE = 0.05
"""The share of the range, or of all rows, that the noise may be where n is called large enough."""


def adding_up(tree: QuantileTree, below: Floats, n: float) -> Floats:
    """Noisy counts below edges, of shape (draws, bins + 1), where the last is known to be n.

    Least squares gives each child of a node the same part of what its sum is off.
    """
    part = np.arange(below.shape[1]) / tree.branching**tree.levels
    part[-1] = 1.0
    return np.asarray(below + part * (n - below[:, -1:]))


def rank_deviation(tree: QuantileTree, deviation: float) -> float:
    """Of the noise in F̃ - n/2 at the middle of the grid."""
    return deviation * math.sqrt(float(tree.weights([0.5])[0][0, tree.bins // 2]))


def _rising(gap: Floats) -> Floats:
    """The mean of the largest so far and the smallest from here on, as true numbers below rise."""
    falling = np.minimum.accumulate(gap[::-1])[::-1]
    return np.asarray((np.maximum.accumulate(gap) + falling) / 2)


def _crossing(gap: Floats, edges: Floats) -> float:
    """Where the gap passes 0: half way between the first edge that is above and the last below."""
    above, under = np.flatnonzero(gap >= 0), np.flatnonzero(gap <= 0)
    first = int(above[0]) if above.size else len(edges) - 1
    last = int(under[-1]) if under.size else 0
    low, high = min(first, last), max(first, last)
    if high == low + 1 and gap[high] > gap[low]:
        part = -gap[low] / (gap[high] - gap[low])
        return float(edges[low] + part * (edges[high] - edges[low]))
    return float((edges[low] + edges[high]) / 2)
