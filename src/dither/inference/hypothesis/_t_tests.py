"""Tests of one and two means, and of pairs: Student's and Welch's, and that of a known variance.

What is released, how far a row moves it and how a p-value follows: of values of whatever law
`_group_sums`, `_free_means` and `_means`; of normal ones `_normal_mean` and `_difference`.
Two samples of known variance: `_clamped_sums`. One leaves as one number, Σ ψ of (x - value)/sigma
cut where n and epsilon give the most power: `_statistic`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference.engine._clamped import ClampedNormal
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS, as_alternative
from dither.inference.engine._group_sums import GroupSumsRelease
from dither.inference.engine._groups import pooled
from dither.inference.engine._inputs import (
    Bounds,
    Floats,
    Target,
    around,
    bounds_of,
    column,
    target,
)
from dither.inference.engine._release import exact_sum
from dither.inference.engine._result import PrivateTest
from dither.inference.engine._simulation import Seed, SimulatedDraws
from dither.inference.engine._statistic import ReleasedStatistic, result_of
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._mean import SHAPES, Shape, normal_notes, of_clamped, of_normal
from dither.inference.estimates._normal_mean import MeanModel, MeanRelease
from dither.inference.hypothesis._clamped_models import TwoMeans
from dither.inference.hypothesis._clamped_sums import (
    LEAST,
    ContrastRelease,
    points_of,
    result_of_moments,
)
from dither.inference.hypothesis._means import errors_of_groups, on_rows, test_of_errors
from dither.inference.hypothesis._one_sample import differences
from dither.privacy import Neighbours

__all__ = ["score_width", "ttest_1samp", "ttest_ind", "ttest_rel", "ztest"]


@documented
def ttest_1samp(
    x: Any,
    popmean: Number,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    shape: Shape = "any",
    alternative: str = "two-sided",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Student's test of the mean of clamped values, whose variance is unknown.

    Parameters
    ----------
    x : sequence of number
        One value a row.
    popmean : number
        The mean of clamped values under the null, public.
    bounds : (number, number)
        What values are clamped to, known without looking at the data. Narrow ones have less
        noise, but where they cut one tail more than the other, the mean of clamped values is not
        that of the values.
    {pure_cost}
    {neighbours}
    {shape}
    alternative : {"two-sided", "less", "greater"}
        Where the true mean might be.
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row being the unit. Missing values are in the
    middle of the bounds where rows are replaced, and left out else.

    *Level.* That of Student's test of the clamped values, or less: conservative where the noise
    hides their variance. `wilcoxon` needs no bounds and has more power, where values lie
    symmetrically.

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
        "t-test of one mean", null, values, popmean, bounds, asked, shape, alternative, draws, seed
    )


@documented
def ttest_rel(
    x: Any,
    y: Any,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    shape: Shape = "any",
    alternative: str = "two-sided",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Student's paired test: whether differences x - y, once clamped, have mean 0.

    Parameters
    ----------
    x, y : sequence of number
        One pair a row.
    bounds : (number, number)
        What *differences* are clamped to, known without looking at the data.
    {pure_cost}
    {neighbours}
    {shape}
    alternative : {"two-sided", "less", "greater"}
        Where the true mean of the differences might be.
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a pair being the unit. A missing difference is in
    the middle of the bounds where rows are replaced, and left out else. ``wilcoxon(x, y)`` asks
    without bounds whether differences lie symmetrically around 0.

    *Level.* As of `ttest_1samp`.

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
    return _one_mean("paired t-test", null, d, 0, bounds, asked, shape, alternative, draws, seed)


def _one_mean(
    title: str,
    null_text: str,
    values: Floats,
    popmean: Number,
    bounds: Any,
    asked: Target,
    shape: Shape,
    alternative: str,
    draws: int,
    seed: Seed,
) -> PrivateTest:
    kind = as_alternative(alternative)
    middle, draws = check.number("popmean", popmean), check.draws(draws)
    ends = bounds_of("bounds", bounds)
    check.choice("shape", shape, SHAPES)
    if not ends.lower < middle < ends.upper:
        raise ArgumentError("popmean must lie between the bounds")
    rows, rng = (len(values) if asked.replace else None), SimulatedDraws.fresh(seed)
    if shape == "normal":
        normal = MeanRelease(ends, asked)
        seen = normal.release(values)
        model, loss = MeanModel(normal, seen.values, rows), seen.loss
        read, notes, n = of_normal(model), normal_notes([model]), model.n
        errors = model.errors(rng, draws)
    else:
        design = GroupSumsRelease(ends, asked)
        released = design.release([values])
        free, loss = (
            FreeMeans(design.moments(released.values, [len(values)]), design.drawn),
            released.loss,
        )
        read, n = of_clamped(ends), float(free.n[0])
        notes, errors = (), free.errors(rng, draws, ends, within=False)
    return test_of_errors(
        title,
        null_text,
        loss,
        errors,
        middle,
        kind,
        ("rows are an independent sample", read, on_rows(asked)),
        notes,
        n,
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
    # Of the cut score and of noise for its reach 2·c, by the squared slope of its mean.
    lost = (variance + (2 * c * deviation) ** 2 / max(1, n)) / slope**2
    return float(c[np.argmin(lost)])


@documented
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
    {pure_cost}
    neighbours : {"replace", "add-remove"}
        Whether the number of rows in all is public, or measured with noise.
    alternative : {"two-sided", "less", "greater"}
        Where the true mean, or that of ``x``, might be.
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row (with its group) being the unit. One sample:
    the sum of (x - value)/sigma, cut to where n and epsilon give the most power, is one number
    that a row moves by twice the cut; its null is exact. Missing values count as ``value``.

    *Level.* That of normal values alone: what is cut off a skewed law moves its mean, and with many
    rows a true null is rejected. `ttest_1samp` takes bounds that hold everybody, and any law.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(104, 15, 300)
    >>> inference.ztest(x, value=100, sigma=15, epsilon=1).pvalue < 0.05
    True
    """
    if y is not None:
        known = check.positive("sigma", sigma)
        return _two_known(x, y, known, bounds, epsilon, neighbours, alternative, draws, seed)
    if bounds is not None:
        raise ArgumentError("bounds must be left out for one sample: it is cut around value")
    asked, kind = target(epsilon, 0, neighbours), as_alternative(alternative)
    middle, draws = check.number("value", value), check.draws(draws)
    known = check.positive("sigma", sigma)
    d = differences(x, None, middle, asked)
    noise = math.sqrt(2) / float(asked.epsilon)
    width = score_width(len(d), noise) if asked.replace else 1.0
    half = known * Fraction(round(width * 64), 64)
    ends = around("sigma", half)
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


@documented
def ttest_ind(
    x: Any,
    y: Any,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    shape: Shape = "any",
    alternative: str = "two-sided",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Welch's test that clamped values of two groups, whose variances may differ, have one mean.

    Parameters
    ----------
    x, y : sequence of number
        The values of each group.
    bounds : (number, number)
        What values are clamped to, known without looking at the data.
    {pure_cost}
    {neighbours_of_groups}
    {shape}
    alternative : {"two-sided", "less", "greater"}
        Whether the mean of ``x`` might be smaller, or larger.
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row with its group being the unit. Missing values
    are in the middle of the bounds where rows are replaced, and left out else.

    *Level.* That of Welch's test of the clamped values, or less: conservative where the noise hides
    their variances. `mannwhitneyu` needs no bounds, and asks whether the two laws are one.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> x, y = rng.normal(0.6, 1, 400), rng.normal(0, 2, 400)
    >>> inference.ttest_ind(x, y, bounds=(-3, 3), epsilon=1).pvalue < 0.05
    True
    """
    asked, kind = target(epsilon, 0, neighbours), as_alternative(alternative)
    ends, draws = bounds_of("bounds", bounds), check.draws(draws)
    check.choice("shape", shape, SHAPES)
    groups = [column("x", x), column("y", y)]
    errors, loss, read, notes, n = errors_of_groups(
        groups, ends, asked, shape, False, SimulatedDraws.fresh(seed), draws
    )
    return test_of_errors(
        "Welch's t-test",
        "both groups have one mean",
        loss,
        errors.against([1.0, -1.0]),
        0.0,
        kind,
        ("rows are an independent sample", read, on_rows(asked)),
        notes,
        n,
    )


def _two_known(
    x: Any,
    y: Any,
    sigma: Fraction,
    bounds: Any,
    epsilon: Number,
    neighbours: Neighbours | str,
    alternative: str,
    draws: int,
    seed: Seed,
) -> PrivateTest:
    asked, kind = target(epsilon, 0, neighbours), as_alternative(alternative)
    ends, draws = bounds_of("bounds", bounds), check.draws(draws)
    values, places = pooled(("x", "y"), (x, y), asked)
    design = ContrastRelease(asked)
    found = design.release((points_of(values, ends), places))
    n = max(4, round(float(values.size) if asked.replace else found[-1]))
    middle, deviation = float(np.clip(found[2] / n, -1, 1)), float(sigma / ends.half)
    first, second = ClampedNormal(middle, deviation).moments(2)
    given = max(second - first**2, LEAST)
    model, rng = TwoMeans(design, n, given), SimulatedDraws.fresh(seed)
    drawn = model.draw(rng, middle, deviation, model.possible(rng, found, draws))
    return result_of_moments(
        "z-test of two means",
        "both groups have one mean",
        design,
        model.statistic,
        found,
        drawn,
        math.sqrt(n * given),
        float(design.deviations[1]),
        n,
        kind,
        ("values are normal, of this deviation, before they are clamped",),
    )
