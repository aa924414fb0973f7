"""Tests of one sample, or of pairs, by one bounded number: signs and signed ranks.

Release. With d = x - mu0 (0 where a value is missing and rows are replaced; rows that miss one are
left out where rows are added or removed), one statistic leaves as `_statistic` says:

* *sign*: S = (#{d > 0} - #{d < 0})/2. A row replaced moves it by at most 1, one added by 1/2.
* *signed rank*: W/n, where W = Σ_{i<=j} sgn(d_i + d_j) is Wilcoxon's difference of the sums of
  ranks, with mean ranks for ties. A row is in n of the terms, each of which moves by at most 2: 2
  for a row replaced. A row that is added brings n + 1 new terms e, and |W| <= n(n + 1)/2, so that
  |(W + e)/(n + 1) - W/n| <= |e|/(n + 1) + |W|/(n(n + 1)) <= 3/2.

Model. Signs under the null are fair coins, whatever the law of |d| is. How much zeros and ties
narrow the null of signed ranks: `_ties`. Zeros make the test of signs conservative.

Source. Awan and Slavković, NeurIPS 2018 (signs, most powerful); Couch, Kazan, Shi, Bray and Groce,
"Differentially private nonparametric hypothesis testing", CCS 2019 (signed ranks).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS, Alternative, as_alternative
from dither.inference.engine._inputs import Floats, Target, column, target
from dither.inference.engine._result import PrivateTest
from dither.inference.engine._simulation import Seed
from dither.inference.engine._statistic import ReleasedStatistic, StatisticRelease, result_of
from dither.inference.estimates._proportion import CanonicalNoise, binomial
from dither.inference.hypothesis._ties import Ties
from dither.privacy import Neighbours

__all__ = [
    "differences",
    "null_of_signed_ranks",
    "null_of_signs",
    "sign_statistic",
    "sign_test",
    "signed_rank_statistic",
    "wilcoxon",
]

_MANY = 1000
"""Rows above which a null is drawn from its limit."""


def differences(x: Any, y: Any, mu0: float, asked: Target) -> Floats:
    """x - mu0, or x - y - mu0: 0 for what is missing under REPLACE, else left out."""
    found = column("x", x)
    if y is not None:
        other = column("y", y)
        if len(other) != len(found):
            raise ArgumentError("x and y must have equally many rows: they are pairs")
        with np.errstate(invalid="ignore", over="ignore"):
            found = found - other
    with np.errstate(over="ignore"):
        found = found - mu0
    return np.nan_to_num(found, nan=0.0) if asked.replace else found[~np.isnan(found)]


def sign_statistic(d: Floats) -> Fraction:
    """Half of what more are positive than negative.

    Examples
    --------
    >>> sign_statistic(np.array([1.0, 2.0, -3.0, 0.0]))
    Fraction(1, 2)
    """
    return Fraction(int((d > 0).sum()) - int((d < 0).sum()), 2)


def signed_rank_statistic(d: Floats) -> Fraction:
    """W/n, of W the sum of signed ranks, exactly.

    Examples
    --------
    >>> signed_rank_statistic(np.array([1.0, 2.0, -3.0]))
    Fraction(0, 1)
    """
    from scipy.stats import rankdata

    # Mean ranks are halves: twice them are whole numbers, and exact.
    twice = np.rint(2.0 * rankdata(np.abs(d))).astype(np.int64)
    return Fraction(int(np.sum(np.sign(d).astype(np.int64) * twice)), 2 * max(1, d.size))


def null_of_signs(rng: np.random.Generator, n: int, size: int) -> Floats:
    """Simulated S of fair signs."""
    return np.asarray(rng.binomial(n, 0.5, size) - n / 2.0, dtype=np.float64)


def null_of_signed_ranks(rng: np.random.Generator, n: int, size: int) -> Floats:
    """Simulated W/n of fair signs; normal with the exact variance where rows are many."""
    if n > _MANY:
        return rng.normal(0.0, math.sqrt((n + 1) * (2 * n + 1) / (6.0 * n)), size)
    coins = rng.integers(0, 2, (size, n), dtype=np.int8)
    ranks = np.arange(1.0, n + 1)
    return np.asarray((2.0 * (coins @ ranks) - ranks.sum()) / n, dtype=np.float64)


@documented
def sign_test(
    x: Any,
    mu0: Number = 0,
    *,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    alternative: str = "two-sided",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Whether the median is what it is said to be: the most powerful private test of signs.

    Parameters
    ----------
    x : sequence of number
        One value, or one difference of a pair, a row. No bounds are needed.
    mu0 : number
        The median under the null, public.
    {costs}
    {neighbours}
    alternative : {"two-sided", "less", "greater"}
        Where the true median might be.
    {simulation}

    Returns
    -------
    PrivateTest
        With an exact p-value where n is public.

    {raises}

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit; epsilon-DP where
    delta is 0. Values that equal ``mu0``, and missing ones, count on neither side, which makes the
    test conservative.

    References
    ----------
    Awan and Slavković, NeurIPS 2018.

    Examples
    --------
    >>> from dither import inference
    >>> found = inference.sign_test([1.5] * 400 + [-0.5] * 200, epsilon=1)
    >>> found.pvalue < 1e-6, found.loss.charge.epsilon
    (True, Fraction(1, 1))
    """
    asked, kind = target(epsilon, delta, neighbours), as_alternative(alternative)
    middle, draws = check.number("mu0", mu0), check.draws(draws)
    d = differences(x, None, middle, asked)
    moved = Fraction(1) if asked.replace else Fraction(1, 2)
    released = ReleasedStatistic.of(sign_statistic(d), len(d), moved=moved, asked=asked)
    null = "values are as likely above mu0 as below it"
    found = result_of(
        "sign test", null, released, null_of_signs, alternative=kind, draws=draws, seed=seed
    )
    if not isinstance(released.design, StatisticRelease):
        return found
    exact = pvalue_of_signs(
        released.value / float(moved), released.rows, float(moved), released.design.noise, kind
    )
    return PrivateTest(
        found.title,
        found.loss,
        found.assumptions,
        found.notes,
        null,
        released.value,
        # No p-value of 0 is told: a smaller one is said to be this, which is the safe side.
        min(1.0, max(exact, 1e-15)),
        noise_share=found.noise_share,
    )


def pvalue_of_signs(
    off: float, rows: int, moved: float, noise: CanonicalNoise, kind: Alternative
) -> float:
    """The exact p-value of a noisy sum of signs, in units of what a row moves it by.

    Each side is a sum of its own positive terms: a complement to 1 would be off by what the
    probabilities of 10⁷ rows round by, 1e-8 in all. The noise is symmetric and has a density, so
    Pr[N <= t] = Pr[N >= -t].

    Examples
    --------
    >>> from dither.inference.engine._inputs import target
    >>> noise = CanonicalNoise(target(1, 0, "replace"))
    >>> f"{pvalue_of_signs(-650.0, 40_000, 1.0, noise, 'less'):.2g}"
    '4e-11'
    """
    x, law = binomial(rows, 0.5)
    gap = off - (x - rows / 2.0) / moved
    above, under = (float(np.sum(law * noise.survival(side))) for side in (gap, -gap))
    return {"greater": above, "less": under, "two-sided": 2.0 * min(above, under)}[kind]


@documented
def wilcoxon(
    x: Any,
    y: Any = None,
    *,
    mu0: Number = 0,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    alternative: str = "two-sided",
    ties: bool = True,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Wilcoxon's signed-rank test: whether values, or differences of pairs, lie around ``mu0``.

    The test of a location to choose: it needs no bounds, its level is exact for every symmetric
    law without ties, and it has more power under noise than a mean that is clamped.

    Parameters
    ----------
    x : sequence of number
        One value a row.
    y : sequence of number, optional
        The other one of each pair: differences x - y are tested.
    mu0 : number
        The centre under the null, public.
    {costs}
    {neighbours}
    alternative : {"two-sided", "less", "greater"}
        Where the true centre might be.
    {ties}
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row (a pair) being the unit; epsilon-DP
    where delta is 0. Zeros keep their ranks and count on neither side, as do missing values under
    "replace".

    *Level.* Conservative where values tie or are 0 and noise hides how many.

    References
    ----------
    Couch, Kazan, Shi, Bray and Groce, CCS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(0.5, 1, 400)
    >>> inference.wilcoxon(x, epsilon=1).pvalue < 0.001
    True
    """
    asked, kind = target(epsilon, delta, neighbours), as_alternative(alternative)
    middle, draws = check.number("mu0", mu0), check.draws(draws)
    d = differences(x, y, middle, asked)
    moved = Fraction(2) if asked.replace else Fraction(3, 2)
    tied, rest = Ties.release("signed ranks", d, asked, ties)
    released = ReleasedStatistic.of(signed_rank_statistic(d), len(d), moved=moved, asked=rest)
    return result_of(
        "signed-rank test",
        "values lie symmetrically around mu0",
        released,
        tied.narrowed(null_of_signed_ranks),
        alternative=kind,
        draws=draws,
        seed=seed,
        loss=tied.cost(released.design.loss),
    )
