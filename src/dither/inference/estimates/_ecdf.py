"""Distribution functions under noise: a tree of noisy counts tells the whole of one at once.

Release. Values of each sample are counted in equal bins between public ends, and leave as the noisy
tree of `dither.mechanisms.QuantileTree`. A row is in one node of each level of one sample's tree:
where it is added or removed it moves one count a level by 1, where it is replaced two, whatever its
value and its sample become.

Model. Under the null values are uniform on the bins where their law is given (bins are then of its
distribution function), and of one law else: bins as the noisy tree of both has them, each row in
the first sample with the same chance. Noise is drawn from its exact law.

Infer. The largest distance at an edge of a bin, and p = (1 + #)/(B + 1). Exact where the law is
given and n is public; else a parametric bootstrap.

The largest distance released by itself (`_kolmogorov`) has noise for one number, the tree for one a
level, and sees less. Half a deviation off at epsilon 1, of 75 normal rows it rejects .93, and the
tree with 16 bins .60 where rows are replaced, .91 and .86 where they are added or removed; of two
groups of 75 .59 against .23, and .58 against .54 (``python -m benchmarks.inference.estimates
hypotheses``). The tree is for those who want to see the functions too.

Source. Hay, Rastogi, Miklau and Suciu, "Boosting the accuracy of differentially private histograms
through consistency", VLDB 2010, for the tree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._subjects import Subject
from dither.inference.engine._errors import monte_carlo
from dither.inference.engine._groups import Whole
from dither.inference.engine._inputs import Bounds, Floats, Target, bounds_of, target
from dither.inference.engine._result import (
    PrivateEstimate,
    PrivateTest,
    share_of_noise,
    too_few_rows,
)
from dither.inference.engine._simulation import Seed, SimulatedDraws, batches
from dither.inference.estimates._quantiles import BinsRelease, QuantileModel, adding_up, shares_of
from dither.mechanisms import DiscreteLaplace
from dither.privacy import Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DistributionTest", "TreeRelease", "shares", "tree_test_of_one", "tree_test_of_two"]

_AT_ONCE = 1 << 21

_TABLE = 1 << 10
"""Half-width of noise up to which its law is tabulated; beyond, a normal or a Laplace law is it."""


@dataclass(frozen=True)
class TreeRelease:
    """Layer 1: numbers of rows of each sample in bins between public ends, as noisy trees.

    Parameters
    ----------
    bounds : Bounds
    bins : int
    samples : int
    asked : Target
    """

    bounds: Bounds
    bins: int
    samples: int
    asked: Target
    design: BinsRelease = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "design", BinsRelease(self.bounds, self.bins, self.asked))

    @property
    def loss(self) -> Loss:
        """Of all trees together: a row is in one of them."""
        return self.design.loss

    @property
    def edges(self) -> Floats:
        """Of the bins, shape (bins + 1,)."""
        return np.linspace(float(self.bounds.lower), float(self.bounds.upper), self.bins + 1)

    def statistic(self, values: Floats, places: Whole) -> Whole:
        """How many rows of each sample lie in each bin, shape (samples, bins)."""
        return np.stack([self.design.leaves(values[places == g]) for g in range(self.samples)])

    def release(self, values: Floats, places: Whole) -> Floats:
        """Noisy counts below edges, shape (samples, bins + 1): the one step that touches data."""
        tree = self.design.tree
        return tree.cumulative(tree.measure(self.statistic(values, places), self.design.noise))

    @cached_property
    def _law(self) -> tuple[int, Floats] | None:
        """The least noise, and its distribution function from there, where that is short."""
        noise = self.design.noise
        most = noise.half_width(1 - 1e-12) + 1
        if most > _TABLE:
            return None
        return -most, np.array([1.0 - noise.survival(k + 1) for k in range(-most, most + 1)])

    def noise_of(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        """Simulated noise of counts."""
        noise = self.design.noise
        if self._law is not None:
            least, below = self._law
            return np.asarray(np.searchsorted(below[:-1], rng.random(shape)) + float(least))
        if isinstance(noise, DiscreteLaplace):
            return rng.laplace(0.0, math.sqrt(noise.variance / 2), shape)
        return rng.normal(0.0, math.sqrt(noise.variance), shape)

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise of what is released, shape (size, samples, bins + 1)."""
        tree = self.design.tree
        shapes = [(size * self.samples, tree.branching ** (i + 1)) for i in range(tree.levels)]
        found = tree.cumulative([self.noise_of(rng, shape) for shape in shapes])
        return found.reshape(size, self.samples, self.bins + 1)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that changes its value and its sample, and one added."""
        ends = bounds_of("bounds", (0, 1))
        low = np.array([0.1, 0.4]), np.array([0, 1])
        for neighbours, other in (
            ("replace", (np.array([0.9, 0.4]), np.array([1, 1]))),
            ("add-remove", (np.array([0.1, 0.4, 0.9]), np.array([0, 1, 0]))),
        ):
            design = cls(ends, 4, 2, target(1, 0, neighbours))
            yield Subject(f"trees of two samples, {neighbours}", design._counts, low, other)

    def _counts(self, table: tuple[Floats, Whole], size: int) -> Whole:
        """All noisy counts, for audits."""
        tree = self.design.tree
        leaves = np.tile(self.statistic(*table), (size, 1))
        found = np.concatenate(tree.measure(leaves, self.design.noise), axis=1)
        return found.reshape(size, -1)


def shares(below: Floats, rows: Floats) -> Floats:
    """Noisy counts below edges as distribution functions: rising, from 0 to 1.

    Examples
    --------
    >>> shares(np.array([[0.0, 3.0, 2.0, 5.0]]), np.array([5.0])).tolist()
    [[0.0, 0.5, 0.5, 1.0]]
    """
    from scipy.optimize import isotonic_regression

    found = []
    for counts, n in zip(below, rows, strict=True):
        inner = isotonic_regression(counts[1:-1] / max(1.0, float(n))).x
        found.append(np.concatenate([[0.0], np.clip(inner, 0.0, 1.0), [1.0]]))
    return np.array(found)


@dataclass(frozen=True, eq=False)
class DistributionTest(PrivateTest):
    """A test of distribution functions, with the functions.

    Parameters
    ----------
    edges : array of float, shape (bins + 1,)
        Of bins of values; of the null's distribution function where that is given.
    ecdf : array of float, shape (samples, bins + 1)
        Shares of each sample below the edges, with noise: they rise from 0 to 1.
    given : bool
        Whether the null gives the distribution: the ``edges`` then are what it expects.
    design : TreeRelease
    below : array of float, shape (samples, bins + 1)
        Noisy counts below the edges.
    """

    edges: Floats = field(kw_only=True, repr=False)
    ecdf: Floats = field(kw_only=True, repr=False)
    given: bool = field(kw_only=True)
    design: TreeRelease = field(kw_only=True, repr=False)
    below: Floats = field(kw_only=True, repr=False)

    def quantiles(self, probabilities: Sequence[float]) -> tuple[PrivateEstimate, ...]:
        """Quantiles of each sample, with intervals; they cost nothing more.

        Parameters
        ----------
        probabilities : sequence of float
            In (0, 1): 0.5 is the median.

        Returns
        -------
        tuple of PrivateEstimate
            One a sample, with a number for each probability: of values, or of the null's
            distribution function where that is given.

        Raises
        ------
        ArgumentError
            There are none, or one is not a share.
        """
        found = []
        wanted, design = shares_of(probabilities), self.design
        deviation = math.sqrt(design.design.noise.variance)
        for below in self.below:
            model = QuantileModel(
                design.design.tree, design.noise_of, deviation, self.edges, below, wanted
            )
            found.append(
                PrivateEstimate(
                    "quantiles",
                    self.loss,
                    (*self.assumptions[:1], "numbers of rows are as measured"),
                    model.notes,
                    tuple(f"{q:g}" for q in wanted),
                    model.middle,
                    round(model.n),
                    model.errors,
                )
            )
        return tuple(found)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the distribution functions of the samples, or of the sample and the null's."""
        from dither.plots._inference import draw_distributions

        return draw_distributions(self, path)


_PER_ROW = 0.05
"""The least variance that a row gives the statistic: Kolmogorov's has 0.07, one bin none."""


def _result(
    title: str,
    null: str,
    design: TreeRelease,
    below: Floats,
    rows: float,
    statistic: float,
    alone: list[Floats],
    noisy: list[Floats],
    given: bool,
) -> DistributionTest:
    """From the statistic and its simulated values: of samples alone, and under noise too."""
    simulated = np.concatenate(noisy)
    chance = float(np.mean(np.concatenate(alone)))
    noise = math.sqrt(max(0.0, float(np.mean(simulated)) ** 2 - chance**2))
    notes: tuple[str, ...] = ()
    if chance < noise:
        enough = noise**2 / max(chance**2 / rows, _PER_ROW)
        notes = (too_few_rows("noise exceeds what chance gives", max(enough, rows + 1.0)),)
    known = "n is public" if design.asked.replace else "n is as measured"
    totals = np.array([rows]) if given else np.maximum(1.0, below[:, -1])
    return DistributionTest(
        title,
        design.loss,
        ("rows are an independent sample", known),
        notes,
        null,
        statistic,
        monte_carlo(statistic, simulated),
        simulated,
        noise_share=share_of_noise(noise, chance),
        edges=design.edges,
        ecdf=shares(below, totals),
        given=given,
        design=design,
        below=below,
    )


def tree_test_of_one(
    values: Floats, n: int, bins: int, asked: Target, draws: int, seed: Seed
) -> DistributionTest:
    """Whether the values of n rows in [0, 1] are uniform; what is missing is in no bin."""
    known = values[~np.isnan(values)]
    design = TreeRelease(bounds_of("bounds", (0, 1)), bins, 1, asked)
    below = design.release(known, np.zeros(known.size, dtype=np.int64))
    rows = max(1.0, float(n) if asked.replace else float(below[0, -1]))
    part = np.arange(bins + 1) / bins

    def gaps(counts: Floats) -> Floats:
        counts = adding_up(design.design.tree, counts, rows) if asked.replace else counts
        return np.asarray(counts - part * counts[:, -1:])[:, 1:-1]

    rng, alone, noisy = SimulatedDraws.fresh(seed), [], []
    for some in batches(draws, max(1, _AT_ONCE // design.design.tree.nodes), "simulations"):
        leaves = rng.multinomial(round(rows), np.full(bins, 1 / bins), some)
        counts = np.concatenate([np.zeros((some, 1)), np.cumsum(leaves, axis=1)], axis=1)
        alone.append(np.abs(gaps(counts)).max(axis=1))
        noisy.append(np.abs(gaps(counts + design.draw(rng, some)[:, 0])).max(axis=1))
    return _result(
        "Kolmogorov-Smirnov test by a tree",
        "values come from this distribution",
        design,
        below,
        rows,
        float(np.abs(gaps(below)).max()),
        alone,
        noisy,
        True,
    )


def tree_test_of_two(
    values: Floats, places: Whole, bounds: Bounds, bins: int, asked: Target, draws: int, seed: Seed
) -> DistributionTest:
    """Whether two samples have one law."""
    design = TreeRelease(bounds, bins, 2, asked)
    below = design.release(values, places)
    rows = max(2.0, float(values.size) if asked.replace else float(below[:, -1].sum()))
    first = float(
        np.clip(below[0, -1] / max(1.0, float(below[:, -1].sum())), 1 / rows, 1 - 1 / rows)
    )
    chances = np.diff(shares(below.sum(axis=0, keepdims=True), np.array([rows]))[0])

    def distance(counts: Floats) -> Floats:
        both = counts.sum(axis=1)
        part = np.clip(counts[:, 0, -1:] / np.maximum(both[:, -1:], 1.0), 0.0, 1.0)
        return np.asarray(np.abs(counts[:, 0] - part * both)[:, 1:-1].max(axis=1))

    rng, alone, noisy = SimulatedDraws.fresh(seed), [], []
    for some in batches(draws, max(1, _AT_ONCE // (2 * design.design.tree.nodes)), "simulations"):
        pool = rng.multinomial(round(rows), chances, some)
        mine = rng.binomial(pool, first)
        counts = np.zeros((some, 2, bins + 1))
        counts[:, 0, 1:], counts[:, 1, 1:] = np.cumsum(mine, 1), np.cumsum(pool - mine, 1)
        alone.append(distance(counts))
        noisy.append(distance(counts + design.draw(rng, some)))
    return _result(
        "two-sample Kolmogorov-Smirnov test by trees",
        "values of both groups have one law",
        design,
        below,
        rows,
        float(distance(below[None])[0]),
        alone,
        noisy,
        False,
    )
