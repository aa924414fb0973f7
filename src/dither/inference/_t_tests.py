"""Tests of one and two means, and of pairs: Student's and Welch's, and that of a known variance.

What is released, how far a row moves it and how its null is simulated: `_clamped_sums`. One sample
of known variance leaves as one number, Σ ψ of (x - value)/sigma cut where n and epsilon give the
most power: `_statistic`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference._clamped import ClampedNormal
from dither.inference._clamped_sums import (
    LEAST,
    ContrastRelease,
    law_of,
    points_of,
    result_of_moments,
)
from dither.inference._errors import DRAWS, as_alternative
from dither.inference._groups import pooled
from dither.inference._inputs import Bounds, Floats, Target, bounds_of, column, target
from dither.inference._mean import MeanRelease
from dither.inference._one_sample import differences
from dither.inference._release import exact_sum, spread_of
from dither.inference._result import PrivateTest
from dither.inference._simulation import Seed, SimulatedDraws
from dither.inference._statistic import ReleasedStatistic, result_of
from dither.privacy import Neighbours

__all__ = ["score_width", "ttest_1samp", "ttest_ind", "ttest_rel", "ztest"]


def ttest_1samp(
    x: Any,
    popmean: Number,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    alternative: str = "two-sided",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Student's test of a mean whose variance is unknown, by noisy clamped moments.

    Parameters
    ----------
    x : sequence of number
        One value a row.
    popmean : number
        The mean under the null, public.
    bounds : (number, number)
        What values are clamped to, known without looking at the data. Narrow ones have less
        noise: two deviations to either side of the mean are about best for few rows.
    epsilon : number
        What the release may cost; no delta is spent.
    neighbours : {"replace", "add-remove"}
        Whether n is public, or measured with noise.
    alternative : {"two-sided", "less", "greater"}
        Where the true mean might be.
    draws : int
        Simulated releases, at least 100.
    seed : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    PrivateTest

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row being the unit. Missing values are in the
    middle of the bounds where rows are replaced, and left out else. Values beyond the bounds are
    modelled as those of a normal law; `wilcoxon` needs neither bounds nor that, and has more power.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(0.5, 1, 300)
    >>> inference.ttest_1samp(x, 0, bounds=(-2, 3), epsilon=1).pvalue < 0.01
    True
    """
    asked, null = target(epsilon, 0, neighbours), "the mean is popmean"
    values = column("x", x)
    return _one_mean(
        "t-test of one mean", null, values, popmean, bounds, asked, alternative, draws, seed
    )


def ttest_rel(
    x: Any,
    y: Any,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    alternative: str = "two-sided",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Student's paired test: whether differences x - y have mean 0.

    Parameters
    ----------
    x, y : sequence of number
        One pair a row.
    bounds : (number, number)
        What *differences* are clamped to, known without looking at the data.
    epsilon, neighbours, alternative, draws, seed
        As of `ttest_1samp`.

    Returns
    -------
    PrivateTest

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* As of `ttest_1samp`, a pair being the unit. ``wilcoxon(x, y)`` is the same question
    without bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> before = np.random.default_rng(1).normal(9, 3, 400)
    >>> after = before + np.random.default_rng(2).normal(0.5, 1, 400)
    >>> inference.ttest_rel(after, before, bounds=(-2, 3), epsilon=1).pvalue < 0.01
    True
    """
    asked = target(epsilon, 0, neighbours)
    first, second = column("x", x), column("y", y)
    if len(first) != len(second):
        raise ArgumentError("x and y must have equally many rows: they are pairs")
    with np.errstate(invalid="ignore", over="ignore"):
        d = first - second
    null = "differences have mean 0"
    return _one_mean("paired t-test", null, d, 0, bounds, asked, alternative, draws, seed)


def _one_mean(
    title: str,
    null_text: str,
    values: Floats,
    popmean: Number,
    bounds: Any,
    asked: Target,
    alternative: str,
    draws: int,
    seed: Seed,
) -> PrivateTest:
    kind = as_alternative(alternative)
    middle, draws = check.number("popmean", popmean), check.whole("draws", draws, 100)
    ends = bounds_of("bounds", bounds)
    at = (middle - float(ends.middle)) / float(ends.half)
    if abs(at) >= 1:
        raise ArgumentError("popmean must lie between the bounds")
    design = MeanRelease(ends, asked, sides=False, gaussian=False)
    values = values if asked.replace else values[~np.isnan(values)]
    found = design.release(values).values
    weights = np.array([1.0, float(design.square), float(design.count)])[: found.size]
    spread = spread_of(design.noise)
    rows = float(len(values)) if asked.replace else found[-1] / float(design.count)
    n = max(2, round(rows))
    found = found / weights
    mean = float(np.clip(found[0] / n, -1, 1))
    noise = spread.deviation
    square = found[1] / n + 0.5
    if not asked.replace:
        lengths = noise / float(design.square), noise * (0.5 - square) / float(design.count)
        square += _raised(lengths, n)
    law = law_of(mean, float(np.clip(square, 0, 1)))
    null = ClampedNormal(at, law.deviation)
    centre = null.moments(1)[0]

    def statistic(sums: Floats) -> Floats:
        total = np.maximum(sums[:, 2], 2.0) if sums.shape[1] == 3 else float(n)
        mean = np.clip(sums[:, 0] / total, -1, 1)
        variance = np.maximum(sums[:, 1] / total + 0.5 - mean**2, LEAST)
        counted = (noise * centre / float(design.count)) ** 2 if sums.shape[1] == 3 else 0.0
        return np.asarray(
            (sums[:, 0] - total * centre) / np.sqrt(total * variance + noise**2 + counted)
        )

    rng = SimulatedDraws.fresh(seed)
    drawn = null.sums(n, draws, rng)[:, :2]
    drawn[:, 1] -= n / 2
    drawn = np.column_stack([drawn, np.full(draws, float(n))])[:, : found.size]
    drawn += spread.draw(rng, drawn.shape) / weights
    chance = math.sqrt(n * max(null.moments(2)[1] - centre**2, LEAST))
    return result_of_moments(
        title,
        null_text,
        design,
        statistic,
        found,
        drawn,
        chance,
        noise,
        n,
        kind,
        ("values are normal before they are clamped",),
    )


def score_width(n: int, deviation: float) -> float:
    """Where scores of normal values are best cut, in deviations, given the noise's in its reach.

    Examples
    --------
    >>> score_width(50, 1.4) < score_width(5000, 1.4)
    True
    """
    from scipy.stats import norm

    c = np.linspace(0.4, 4.0, 73)
    slope = 2 * norm.cdf(c) - 1
    variance = slope - 2 * c * norm.pdf(c) + 2 * c**2 * norm.sf(c)
    lost = (variance + (2 * c * deviation) ** 2 / max(1, n)) / slope**2
    return float(c[np.argmin(lost)])


def ztest(
    x: Any,
    y: Any = None,
    *,
    value: Number = 0,
    sigma: Number,
    bounds: tuple[Number, Number] | None = None,
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    alternative: str = "two-sided",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Whether a mean is ``value``, or two groups have one mean, where the deviation is known.

    Parameters
    ----------
    x : sequence of number
        One value a row.
    y : sequence of number, optional
        The values of the second group.
    value : number
        The mean of one sample under the null, public.
    sigma : number
        The standard deviation, public.
    bounds : (number, number), optional
        Of two groups: what values are clamped to. One sample is cut around ``value`` by itself.
    epsilon : number
        What the release may cost; no delta is spent.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows in all is public, or measured with noise.
    alternative : {"two-sided", "less", "greater"}
        Where the true mean, or that of ``x``, might be.
    draws : int
        Simulated releases, at least 100.
    seed : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    PrivateTest

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row (with its group) being the unit. One sample:
    the sum of (x - value)/sigma, cut to where n and epsilon give the most power, is one number
    that a row moves by twice the cut; its null is exact. Missing values count as ``value``.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(104, 15, 300)
    >>> inference.ztest(x, value=100, sigma=15, epsilon=1).pvalue < 0.05
    True
    """
    if y is not None:
        return _two_means(
            "z-test of two means",
            x,
            y,
            check.positive("sigma", sigma),
            bounds,
            epsilon,
            neighbours,
            alternative,
            draws,
            seed,
        )
    if bounds is not None:
        raise ArgumentError("bounds must be left out for one sample: it is cut around value")
    asked, kind = target(epsilon, 0, neighbours), as_alternative(alternative)
    middle, draws = check.exact("value", value), check.whole("draws", draws, 100)
    known = check.positive("sigma", sigma)
    d = differences(x, None, float(middle), asked)
    noise = math.sqrt(2) / float(asked.epsilon)
    width = score_width(len(d), noise) if asked.replace else 1.0
    half = known * Fraction(round(width * 64), 64)
    ends = Bounds(-half, half)
    exact = Fraction(exact_sum(ends.lattice(d)), Bounds.steps)
    released = ReleasedStatistic.of(
        exact, len(d), moved=Fraction(2 if asked.replace else 1), asked=asked
    )
    law = ClampedNormal(0.0, float(known / half))
    return result_of(
        "z-test of one mean",
        "the mean is value",
        released,
        lambda rng, n, size: law.sums(n, size, rng)[:, 0],
        alternative=kind,
        draws=draws,
        seed=seed,
        assumptions=("rows are an independent normal sample of this deviation",),
    )


def ttest_ind(
    x: Any,
    y: Any,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    alternative: str = "two-sided",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Welch's test that two groups, whose variances may differ, have one mean.

    Parameters
    ----------
    x, y : sequence of number
        The values of each group.
    bounds : (number, number)
        What values are clamped to, known without looking at the data.
    epsilon : number
        What the release may cost; no delta is spent.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows in all is public, or measured with noise. How many are in which
        group is private either way: a row that is replaced may move to the other group.
    alternative : {"two-sided", "less", "greater"}
        Whether the mean of ``x`` might be smaller, or larger.
    draws : int
        Simulated releases, at least 100.
    seed : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    PrivateTest

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row with its group being the unit. Missing values
    are in the middle of the bounds where rows are replaced, and left out else.

    *Level.* A parametric bootstrap. Where n is measured it is a little liberal for few rows: of
    true nulls with 150 rows and epsilon 1 about 5.9 % are rejected at .05. `mannwhitneyu` is not.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> x, y = rng.normal(0.6, 1, 400), rng.normal(0, 2, 400)
    >>> inference.ttest_ind(x, y, bounds=(-3, 3), epsilon=1).pvalue < 0.05
    True
    """
    return _two_means(
        "Welch's t-test", x, y, None, bounds, epsilon, neighbours, alternative, draws, seed
    )


def _raised(lengths: tuple[float, float], rows: float) -> float:
    """What is added to a mean square where n is measured: half the deviation of its noise.

    Noise in n and in the squares makes some variances too small, and they would reject too much.
    """
    return 0.5 * math.hypot(*lengths) / rows


def _two_means(
    title: str,
    x: Any,
    y: Any,
    sigma: Fraction | None,
    bounds: Any,
    epsilon: Number,
    neighbours: Neighbours | str,
    alternative: str,
    draws: int,
    seed: Seed,
) -> PrivateTest:
    asked, kind = target(epsilon, 0, neighbours), as_alternative(alternative)
    ends, draws = bounds_of("bounds", bounds), check.whole("draws", draws, 100)
    values, places = pooled(("x", "y"), (x, y), asked)
    design = ContrastRelease(asked, squares=sigma is None)
    found = design.release((points_of(values, ends), places))
    n = max(4, round(float(values.size) if asked.replace else found[-1]))
    first = int(np.clip(round((n + found[0]) / 2), 2, n - 2))
    sizes, laws = (first, n - first), []
    for g, size in enumerate(sizes):
        sign = 1 - 2 * g
        mean = float(np.clip((found[2] + sign * found[1]) / 2 / size, -1, 1))
        square = 0.5
        if sigma is None:
            square += (found[3] + sign * found[4]) / 2 / size
            if not asked.replace:
                lengths = (
                    math.hypot(*design.deviations[3:5]),
                    (0.5 - square) * math.hypot(design.deviations[0], design.deviations[-1]),
                )
                square += _raised(lengths, 2 * size)
        laws.append(law_of(mean, float(np.clip(square, 0, 1))))
    middle = sum(s * law.mean for s, law in zip(sizes, laws, strict=True)) / n
    if sigma is not None:
        scale = float(sigma / ends.half)
        middle, laws = float(np.clip(found[2] / n, -1, 1)), [ClampedNormal(0.0, scale)] * 2
    null = [ClampedNormal(middle, law.deviation) for law in laws]
    noise, given = (
        design.deviations,
        max(null[0].moments(2)[1] - null[0].moments(1)[0] ** 2, LEAST),
    )

    def statistic(sums: Floats) -> Floats:
        total = float(n) if asked.replace else np.maximum(sums[:, -1], 4.0)
        share = np.clip(sums[:, 0] / total, -1 + 4 / n, 1 - 4 / n)
        mean = np.clip(sums[:, 2] / total, -1, 1)
        contrast = sums[:, 1] - sums[:, 0] * sums[:, 2] / total
        spread = np.zeros(len(sums))
        for g in (0, 1):
            sign = 1 - 2 * g
            size = np.maximum(total * (1 + sign * share) / 2, 2.0)
            if sigma is None:
                middle = np.clip((sums[:, 2] + sign * sums[:, 1]) / 2 / size, -1, 1)
                square = (sums[:, 3] + sign * sums[:, 4]) / 2 / size + 0.5
                variance = np.clip(square - middle**2, LEAST, 1.0)
            else:
                variance = np.full(len(sums), given)
            spread += size * variance * (1 - sign * share) ** 2
        spread += noise[1] ** 2 + (noise[2] * share) ** 2 + (noise[0] * mean) ** 2
        return np.asarray(contrast / np.sqrt(spread))

    rng = SimulatedDraws.fresh(seed)
    a, b = (law.sums(size, draws, rng)[:, :2] for law, size in zip(null, sizes, strict=True))
    a[:, 1] -= sizes[0] / 2
    b[:, 1] -= sizes[1] / 2
    columns = [np.full(draws, float(sizes[0] - sizes[1])), a[:, 0] - b[:, 0], a[:, 0] + b[:, 0]]
    if sigma is None:
        columns += [a[:, 1] + b[:, 1], a[:, 1] - b[:, 1]]
    if not asked.replace:
        columns.append(np.full(draws, float(n)))
    drawn = np.column_stack(columns) + design.draw(rng, draws)
    return result_of_moments(
        title,
        "both groups have one mean",
        design,
        statistic,
        found,
        drawn,
        math.sqrt(n * given),
        float(noise[1]),
        n,
        kind,
        ("values are normal before they are clamped",),
    )
