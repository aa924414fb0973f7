"""How many rows a test needs, before any is asked for: by simulation of the whole mechanism.

A test is given as a *design*: what it would release of n rows under the null and under the
alternative. Its cut is the quantile of the null's releases that gives the size, and n the least
number of rows at which the alternative's pass it often enough. Tests of means, which are
conservative where the noise hides the variance, are run whole, with their p-values. Nothing is
spent, no data is read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference.engine._errors import rows_needed
from dither.inference.engine._inputs import Floats, Target, bounds_of, target
from dither.inference.engine._pairs import moved_by_pairs, signs_of_pairs
from dither.inference.engine._release import spread_of
from dither.inference.engine._signs import SquareRelease, lengths_of_signs
from dither.inference.engine._simulation import Seed, SimulatedDraws
from dither.inference.engine._statistic import StatisticRelease
from dither.inference.hypothesis._efficient import EfficientRelease
from dither.inference.planning._designs import ALL, MEANS, SimulatedDesign
from dither.numeric import sqrt_upper

__all__ = ["samples_needed"]

Simulated = Callable[[int, bool, np.random.Generator, int], Floats]
"""Of n, whether the alternative holds, a generator and a size: statistics, large if it does."""

_WHOLE = 600
"""Releases of a test that is run whole: they tell its power to .016."""

IDENTITY = ("norm", "pairs", "lipschitz", "efficient", "non-private")


def samples_needed(
    test: str | Simulated,
    *,
    epsilon: Number = 1,
    delta: Number = 0,
    dimension: int = 1,
    groups: int = 3,
    bounds: tuple[Number, Number] = (-3, 3),
    distance: float = 0.5,
    method: str = "norm",
    size: float = 0.05,
    power: float = 0.8,
    draws: int = 4000,
    seed: Seed = None,
) -> int:
    """The least number of rows with which a test of this size has this power.

    Parameters
    ----------
    test : str or callable
        "identity", or the name of a test here, two-sided, of made-up rows: "ttest_1samp",
        "ttest_rel", "ztest", "sign_test", "wilcoxon" and "ks_1samp" of normal rows; "ttest_ind",
        "mannwhitneyu", "ks_2samp", "kruskal" and "f_oneway" of normal rows in groups of one size (n
        in all); "kendalltau" and "pearsonr" of normal pairs; "goodness_of_fit", "uniformity_test"
        and "independence_test" of categories; "logrank_test" of two equal arms, of whom half have
        the event while they are watched, in 20 bins. A callable ``(n, alternative, rng, size)``
        gives ``size`` simulated statistics of n rows, under the null or the alternative; large ones
        speak against the null. It brings its own epsilon, and may be any mechanism.
    epsilon, delta : number
        What the test may cost, for neighbours that replace a row.
    dimension : int
        Coordinates of a row of ±1; categories, at least 2 (of independence: and 2 in the other
        column).
    groups : int
        Of "kruskal" and "f_oneway", at least 2.
    bounds : (number, number)
        Of "ttest_1samp", "ttest_rel", "ttest_ind" and "f_oneway": what values are clamped to, in
        standard deviations from the mean under the null.
    distance : float
        In (0, √dimension]: the Euclidean norm of the expected row under the alternative, whose
        coordinates are alike and independent. Of the other tests: the shift in standard deviations
        (of several groups from the first to the last, the others evenly between), the correlation,
        Cohen's w of categories, or the logarithm of the ratio of two hazards.
    method : {"norm", "pairs", "lipschitz", "efficient", "non-private"}
        As of `identity_test`. "efficient" needs a delta, and rejects at its own public
        threshold n(n - 1)·distance²/4 rather than at a quantile.
    size : float
        How often a true null may be rejected.
    power : float
        How often the alternative is to be seen.
    draws : int
        Simulated releases of each, at least 100; of tests of means no more than 600.
    seed : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    int

    Raises
    ------
    ArgumentError
        An argument is out of range, or ten million rows are not enough.

    Examples
    --------
    >>> from dither import inference
    >>> question = {"dimension": 20, "distance": 0.5, "size": 1 / 3, "power": 2 / 3}
    >>> private = inference.samples_needed("identity", epsilon=1, **question)
    >>> anyway = inference.samples_needed("identity", method="non-private", **question)
    >>> 53 <= private <= 59, 23 <= anyway <= 27
    (True, True)
    >>> 700 < inference.samples_needed("independence_test", dimension=2, distance=0.1) < 1300
    True
    >>> 50 < inference.samples_needed("wilcoxon", epsilon=1, distance=0.5, power=0.88) < 75
    True
    """
    asked = target(epsilon, delta, "replace")
    level = check.number("size", size, above=0, below=1)
    wanted = check.number("power", power, above=0, below=1)
    draws = check.draws(draws)
    rng = SimulatedDraws.of(seed)
    if callable(test):
        return rows_needed(lambda n: _power(test, n, level, rng, draws) >= wanted)
    check.choice("test", test, ("identity", *ALL))
    if test != "identity":
        far = check.number("distance", distance, above=0)
        k, ends = check.whole("groups", groups, 2), bounds_of("bounds", bounds)
        if not ends.lower < 0 < ends.upper:
            raise ArgumentError("bounds must hold 0: the mean under the null")
        design = SimulatedDesign(test, asked, k, ends, check.whole("dimension", dimension, 1))
        design.check(far)
        if test in MEANS:
            some = min(draws, _WHOLE)

            def often(n: int) -> bool:
                return float(np.mean(design.pvalues(rng, n, some, far) <= level)) >= wanted

            return rows_needed(often)

        def of_rows(n: int, alternative: bool, rng: np.random.Generator, some: int) -> Floats:
            return design.released(rng, n, some, far if alternative else 0.0)

        return rows_needed(lambda n: _power(of_rows, n, level, rng, draws) >= wanted)
    check.choice("method", method, IDENTITY)
    d = check.whole("dimension", dimension, 1)
    shift = check.number("distance", distance, above=0) / math.sqrt(d)
    if shift > 1:
        raise ArgumentError("distance must be at most the root of dimension: rows are of ±1")

    def efficient(n: int) -> bool:
        design = EfficientRelease(n, d, asked)
        # A quarter of the mean that the statistic has under the alternative.
        cut = n * (n - 1) * shift**2 * d / 4.0
        false, true = (
            np.mean(
                np.concatenate(
                    [
                        design.simulate(rng, sums) > cut
                        for sums in lengths_of_signs(rng, n, np.full(d, (1 + p) / 2), draws)
                    ]
                )
            )
            for p in (0.0, shift)
        )
        return bool(false <= level and true >= wanted)

    if method == "efficient":
        return rows_needed(efficient)

    def simulated(n: int, alternative: bool, rng: np.random.Generator, some: int) -> Floats:
        chances = np.full(d, (1 + (shift if alternative else 0.0)) / 2)
        if method == "pairs":
            signs = np.concatenate(list(signs_of_pairs(rng, n, chances, some)))
            return signs + StatisticRelease(Fraction(moved_by_pairs(n)), asked).draw(rng, some)
        if method == "lipschitz":
            design = SquareRelease(n, d, asked)
            found = [design.extended(s) for s in lengths_of_signs(rng, n, chances, some)]
            return np.concatenate(found) + spread_of(design.noise).draw(rng, some)
        squares = [(s**2).sum(axis=1) for s in lengths_of_signs(rng, n, chances, some)]
        return _noisy(method, np.concatenate(squares), n, d, asked, rng)

    return rows_needed(lambda n: _power(simulated, n, level, rng, draws) >= wanted)


def _noisy(
    method: str, squares: Floats, n: int, d: int, asked: Target, rng: np.random.Generator
) -> Floats:
    if method == "norm":
        return np.sqrt(squares) + StatisticRelease(sqrt_upper(Fraction(4 * d)), asked).draw(
            rng, squares.size
        )
    return squares


def _power(
    simulated: Simulated, n: int, level: float, rng: np.random.Generator, draws: int
) -> float:
    """How often the alternative passes the null's quantile."""
    null = simulated(n, False, rng, draws)
    return float(np.mean(simulated(n, True, rng, draws) > np.quantile(null, 1.0 - level)))
