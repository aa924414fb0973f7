"""What tests would release of made-up rows, for sizes: `samples_needed`.

Rows are normal of deviation 1, off by a distance under the alternative; pairs of columns have it as
their correlation; groups are equally large, and their means run from the distance to 0; cells of a
table are equally likely, and off by a Cohen's w; times to an event are exponential in two arms,
whose hazards have a ratio of which the distance is the logarithm. Up to `_MANY` rows they are
simulated one by one; above, statistics that are sums over pairs are taken as normal with their
exact mean and the null's spread, which is a little more than the alternative's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from dither.errors import ArgumentError
from dither.inference.engine._clamped import ClampedNormal
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._groups import GroupSizes
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.engine._simulation import batches
from dither.inference.engine._statistic import StatisticRelease
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._quantiles import noise_drawn
from dither.inference.hypothesis._contingency import TableRelease, pearson
from dither.inference.hypothesis._kolmogorov import null_of_sup, null_of_two_sups
from dither.inference.hypothesis._means import several
from dither.inference.hypothesis._one_sample import null_of_signed_ranks
from dither.inference.hypothesis._ranks import GroupRanks, length_of, null_of_ranks
from dither.inference.hypothesis._t_tests import score_width
from dither.inference.hypothesis._ties import part_of_ties, rest_of
from dither.inference.survival._counts import SurvivalCounts, SurvivalRelease
from dither.inference.survival._logrank import scores_of
from dither.inference.survival._survival import BINS
from dither.numeric import sqrt_upper

__all__ = ["ALL", "MEANS", "SimulatedDesign"]

_MANY = 400
"""Rows above which sums over pairs are drawn as normal."""

_FRESH = 200
"""Draws of noise that the p-value of a made-up test is made of."""

_HALVES = np.array([0.5, 0.5])

Alone = Callable[[np.random.Generator, int, int, float], Floats]
"""Of a generator, n, a size and a distance: statistics without noise; two-sided ones by amount."""


def _upper(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


def _each(
    rng: np.random.Generator, n: int, size: int, statistic: Callable[[Floats], Floats]
) -> Floats:
    """A statistic of simulated tables of n standard normal values."""
    some = batches(size, max(1, (1 << 20) // n), "simulations")
    return np.concatenate([statistic(rng.standard_normal((now, n))) for now in some])


def _signs(rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
    return np.asarray(np.abs(rng.binomial(n, _upper(distance), size) - n / 2.0))


def _signed_ranks(rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
    if n > _MANY:
        # Σ_(i<=j) sgn(d_i + d_j)/n: a sum of two is off by √2 deviations, and each row is once by
        # itself.
        pairs = (n - 1) / 2 * (2 * _upper(math.sqrt(2.0) * distance) - 1)
        middle = pairs + 2 * _upper(distance) - 1
        return np.asarray(np.abs(null_of_signed_ranks(rng, n, size) + middle))

    def statistic(z: Floats) -> Floats:
        d = z + distance
        ranks = np.argsort(np.argsort(np.abs(d), axis=1), axis=1) + 1
        return np.asarray(np.abs((np.sign(d) * ranks).sum(axis=1)) / n)

    return _each(rng, n, size, statistic)


def _sup(rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
    from scipy.special import ndtr

    if distance == 0:
        return null_of_sup(rng, n, size)
    place = np.arange(1, n + 1)

    def statistic(z: Floats) -> Floats:
        u = np.sort(ndtr(z + distance), axis=1)
        return np.asarray(np.maximum((place - n * u).max(axis=1), (n * u - place + 1).max(axis=1)))

    return _each(rng, n, size, statistic)


def _ranks(rng: np.random.Generator, n: int, size: int, shifts: Floats) -> Floats:
    """V of groups of normal values that are shifted by so much, alike in size."""
    k = shifts.size
    shares, places = np.full(k, 1 / k), np.arange(n) * k // n
    if n > _MANY:
        apart = np.array(
            [[2 * _upper((a - b) / math.sqrt(2.0)) - 1 for b in shifts] for a in shifts]
        )
        return np.abs(null_of_ranks(rng, n, size, shares, n * apart.mean(axis=1) / k))

    def statistic(z: Floats) -> Floats:
        ranks = 2.0 * np.argsort(np.argsort(z + shifts[places], axis=1), axis=1) + 1 - n
        moved = np.stack([ranks[:, places == g].sum(axis=1) / n for g in range(k)], axis=1)
        return np.abs(length_of(moved, np.bincount(places, minlength=k) / n))

    return _each(rng, n, size, statistic)


def _two_sups(rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
    if distance == 0:
        return null_of_two_sups(rng, n, size, _HALVES)
    half = n // 2
    steps = np.where(np.arange(n) < half, 1.0 - half / n, -half / n)

    def statistic(z: Floats) -> Floats:
        order = np.argsort(z + np.where(np.arange(n) < half, distance, 0.0), axis=1)
        return np.asarray(np.abs(np.cumsum(steps[order], axis=1)).max(axis=1))

    return _each(rng, n, size, statistic)


def _concordance(rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
    spread = math.sqrt((n - 1) * (2 * n + 5) / (18.0 * n))
    # Greiner: E τ = (2/π)·asin ρ, of which K/n is (n - 1)/2.
    middle = (n - 1) / math.pi * math.asin(min(1.0, distance))
    return np.asarray(np.abs(rng.normal(middle, spread, size)))


def _cells(k: int, columns: int, w: float) -> Floats:
    """Probabilities of k·columns cells that are off being equal by Cohen's w, margins kept."""
    signs = np.where(np.arange(k)[:, None] % 2, -1.0, 1.0) * np.array([[1.0, -1.0]])[:, :columns]
    if k % 2:
        signs[-1] = 0.0
    off = w * math.sqrt(k / (k - k % 2)) * signs
    if np.abs(off).max() >= 1:
        raise ArgumentError("distance must be below 1 in each cell: Cohen's w is too large")
    return np.asarray((1.0 + off) / off.size)


@dataclass(frozen=True)
class SimulatedDesign:
    """A test of made-up rows, and what it would release of them.

    Parameters
    ----------
    test : str
    asked : Target
        Of neighbours that replace a row.
    groups : int
        Of `kruskal` and `f_oneway`.
    bounds : Bounds
        In standard deviations, of tests that clamp.
    categories : int
        Of tests of tables.
    """

    test: str
    asked: Target
    groups: int
    bounds: Bounds
    categories: int

    def check(self, distance: float) -> None:
        """Refuse what no rows can have."""
        if self.test in ("kendalltau", "pearsonr") and distance >= 1:
            raise ArgumentError("distance must be below 1: it is a correlation")
        if self.test in TABLES:
            if self.categories < 2:
                raise ArgumentError("dimension must be at least 2: the number of categories")
            _cells(self.categories, 1, distance)

    def released(self, rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
        """Statistics of n rows with their noise; two-sided ones by their amount."""
        if self.test in TABLES:
            return self._table(rng, n, size, distance)
        if self.test == "logrank_test":
            return self._logrank(rng, n, size, distance)
        alone, moved, asked = self._alone(rng, n, size, distance)
        noise = StatisticRelease(moved, asked).draw(rng, size)
        # The amount of a signed statistic and its noise: noise is as likely to add as to take away.
        one_sided = self.test.startswith("ks") or (self.test == "kruskal" and self.groups > 2)
        return np.asarray(alone + noise if one_sided else np.abs(alone + noise))

    def _alone(
        self, rng: np.random.Generator, n: int, size: int, distance: float
    ) -> tuple[Floats, Fraction, Target]:
        """Statistics without noise, how far a row moves them, and what they may cost."""
        if self.test == "ztest":
            width = score_width(n, math.sqrt(2) / float(self.asked.epsilon))
            law = ClampedNormal(distance / width, 1.0 / width)
            return np.abs(law.sums(n, size, rng)[:, 0]), Fraction(2), self.asked
        if self.test in ("mannwhitneyu", "kruskal"):
            k = self.groups if self.test == "kruskal" else 2
            rest = GroupSizes.rest(self.asked)
            rest = rest_of(rest, part_of_ties(rest, n))
            found = _ranks(rng, n, size, np.linspace(distance, 0.0, k))
            return found, GroupRanks(k, n, rest).moved, rest
        asked = GroupSizes.rest(self.asked) if self.test == "ks_2samp" else self.asked
        if self.test in ("wilcoxon", "kendalltau"):
            asked = rest_of(asked, part_of_ties(asked, n))
        moved = Fraction(2 if self.test in ("wilcoxon", "kendalltau", "pearsonr") else 1)
        return TESTS[self.test](rng, n, size, distance), moved, asked

    def pvalues(self, rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
        """P-values of tests of means of n rows, as the tests make them, with one noise for all."""
        half, middle = float(self.bounds.half), float(self.bounds.middle)
        shifts = np.array([distance])
        if self.test in GROUPED:
            k = self.groups if self.test == "f_oneway" else 2
            shifts = np.linspace(distance, 0.0, k)
        k = shifts.size
        design = GroupSumsRelease(self.bounds, self.asked, k, moves=k > 1)
        rows = [(n + g) // k for g in range(k)]
        laws = [ClampedNormal((shift - middle) / half, 1.0 / half) for shift in shifts]
        sums = np.stack(
            [
                np.column_stack([np.full(size, r), law.sums(r, size, rng)[:, :2]])
                for law, r in zip(laws, rows, strict=True)
            ],
            axis=1,
        )
        sums = sums + design.drawn(rng, size)
        null = ClampedNormal(-middle / half, 1.0 / half).moments(1)[0]
        found = []
        for part in np.array_split(sums, max(1, size * _FRESH * k >> 16)):
            model = FreeMeans(part, design.drawn, self.test == "f_oneway")
            errors = model.means[:, None] - model.draws(rng, _FRESH)
            if self.test == "f_oneway":
                statistic, drawn = several(model.means, errors)
                more = (drawn >= statistic[:, None]).sum(axis=1)
                found.append((1.0 + more) / (_FRESH + 1.0))
                continue
            contrast = np.array([1.0, -1.0])[:k]
            off = model.means @ contrast - (null if k == 1 else 0.0)
            off, one = off[:, None], errors @ contrast
            tails = np.minimum((one >= off).sum(axis=1), (one <= off).sum(axis=1))
            found.append(2.0 * (1.0 + tails) / (_FRESH + 1.0))
        return np.concatenate(found)

    def _logrank(self, rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
        """The score of one of two arms, which half of the people would leave by the event."""
        cells = 2 * (2 * BINS + 1)
        design = SurvivalRelease(Bounds(Fraction(0), Fraction(cells)), cells, self.asked)
        draw = partial(noise_drawn, design.noise)
        counts = SurvivalCounts(design.tree, draw, np.zeros(cells + 1), 2, BINS, True)
        # About one hazard, so that the null is that of both arms together.
        apart = np.exp(np.array([[-distance / 2], [distance / 2]]))
        hazard = apart * np.full((2, BINS), math.log(2) / BINS)
        sizes = np.array([n - n // 2, n // 2], dtype=float)
        tables = counts.sampled(rng, size, sizes, hazard, np.zeros_like(hazard))
        tables = tables + counts.drawn(rng, size)
        return np.abs(scores_of(counts, tables, np.ones(BINS))[:, 0])

    def _table(self, rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
        """χ² of noisy tables, or the length of noisy counts."""
        k = self.categories
        if self.test == "independence_test":
            cells = _cells(k, 2, distance)
            table = TableRelease((k, 2), self.asked)
            return pearson(None)(table.simulate(rng, n, cells, size))
        chances = _cells(k, 1, distance).ravel()
        if self.test == "goodness_of_fit":
            table = TableRelease((k,), self.asked)
            return pearson(np.full(k, 1 / k))(table.simulate(rng, n, chances, size))
        lengths = np.linalg.norm(rng.multinomial(n, chances, size) - n / k, axis=1)
        moved = sqrt_upper(Fraction(2))
        return np.asarray(lengths + StatisticRelease(moved, self.asked).draw(rng, size))


GROUPED = ("ttest_ind", "f_oneway")
MEANS = ("ttest_1samp", "ttest_rel", *GROUPED)
"""Tests of means, which are run whole."""

TABLES = ("goodness_of_fit", "uniformity_test", "independence_test")

TESTS: dict[str, Alone] = {
    "sign_test": _signs,
    "wilcoxon": _signed_ranks,
    "ks_1samp": _sup,
    "ks_2samp": _two_sups,
    "kendalltau": _concordance,
    "pearsonr": _concordance,
}
"""Tests by one statistic that a row moves by a fixed amount."""

ALL = (
    *TESTS,
    *TABLES,
    *MEANS,
    "ztest",
    "mannwhitneyu",
    "kruskal",
    "logrank_test",
)
"""All that sizes are told of, but the test of identity."""
