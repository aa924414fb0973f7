"""What the tests by one statistic would release of normal rows, for sizes: `samples_needed`.

Rows are normal of deviation 1, off by a distance under the alternative; pairs of columns have it as
their correlation; two groups are equally large. Up to `_MANY` rows they are simulated one by one;
above, statistics that are sums over pairs are taken as normal with their exact mean and the null's
spread, which is a little more than the alternative's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dither.inference._clamped import ClampedNormal
from dither.inference._groups import GroupSizes
from dither.inference._inputs import Floats, Target
from dither.inference._kolmogorov import null_of_sup, null_of_two_sups
from dither.inference._one_sample import null_of_signed_ranks
from dither.inference._ranks import GroupRanks, null_of_ranks
from dither.inference._simulation import batches
from dither.inference._statistic import StatisticRelease
from dither.inference._t_tests import score_width

__all__ = ["TESTS", "released_of"]

_MANY = 400
"""Rows above which sums over pairs are drawn as normal."""

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


def _two_ranks(rng: np.random.Generator, n: int, size: int, distance: float) -> Floats:
    half = n // 2
    if n > _MANY or distance == 0:
        middle = (n - half) * (2 * _upper(distance / math.sqrt(2.0)) - 1)
        return np.asarray(np.abs(null_of_ranks(rng, n, size, _HALVES) + middle))

    def statistic(z: Floats) -> Floats:
        z = z + np.where(np.arange(n) < half, distance, 0.0)
        ranks = 2.0 * np.argsort(np.argsort(z, axis=1), axis=1) + 1 - n
        return np.asarray(np.abs(ranks[:, :half].sum(axis=1)) / (n - half))

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
    middle = (n - 1) / math.pi * math.asin(min(1.0, distance))
    return np.asarray(np.abs(rng.normal(middle, spread, size)))


TESTS: dict[str, Alone] = {
    "sign_test": _signs,
    "wilcoxon": _signed_ranks,
    "ks_1samp": _sup,
    "mannwhitneyu": _two_ranks,
    "ks_2samp": _two_sups,
    "kendalltau": _concordance,
}
"""By the name of the test."""


def released_of(
    test: str, rng: np.random.Generator, n: int, size: int, distance: float, asked: Target
) -> Floats:
    """What a test would release of n rows, ``size`` times over; two-sided ones by their amount."""
    if test == "ztest":
        width = score_width(n, math.sqrt(2) / float(asked.epsilon))
        alone = ClampedNormal(distance / width, 1.0 / width).sums(n, size, rng)[:, 0]
        return np.asarray(np.abs(alone + StatisticRelease(Fraction(2), asked).draw(rng, size)))
    moved = {"wilcoxon": Fraction(2), "kendalltau": Fraction(2)}.get(test, Fraction(1))
    if test in ("mannwhitneyu", "ks_2samp"):
        asked = GroupSizes.rest(asked)
    if test == "mannwhitneyu":
        moved = GroupRanks(2, n, asked).moved
    alone = TESTS[test](rng, n, size, distance)
    noise = StatisticRelease(moved, asked).draw(rng, size)
    # The amount of a signed statistic and its noise: noise is as likely to add as to take away.
    return np.asarray(alone + noise if test.startswith("ks") else np.abs(alone + noise))
