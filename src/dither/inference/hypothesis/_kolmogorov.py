"""Kolmogorov-Smirnov: the largest distance of distribution functions, of one sample and of two.

Release.

* *Kolmogorov-Smirnov*: n·D = sup_t |#{x <= t} - n·F(t)|, a sup of sums of terms 1[x <= t] - F(t)
  in [-1, 1], of which a row replaced moves one by at most 1, one added adds one: 1 either way.
  2^-10 is added for doubles. A tree of noisy counts has error of order log^1.5(n) for the same;
  the sup alone needs no tree.

*Two-sample Kolmogorov-Smirnov*: sup_t |G(t)|, G(t) = #{x <= t in the first} - p·#{x <= t} =
Σ_i (1[g_i = 1] - p)·1[x_i <= t] with p = n₁/n. A row replaced moves G(t) by at most 1: within a
group by at most the other's share; from the first to the second, its own term goes from
(1 - p)·1[x <= t] to -(p - 1/n)·1[x' <= t], and what the others add rises by m/n, m <= n - 1 being
how many of them lie below t: between -1 and 1 in all. A row added to the first has the term
(1 - p')·1[x <= t], and what the others add falls by (p' - p)·m, at most (p' - p)·n = 1 - p':
between -1 and 1; to the second alike.

Model. n·D has one law for all continuous F, simulated where n is at most 1,000, above that of
Kolmogorov's limit at the n of Stephens. Two groups are dealt at random among values.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS
from dither.inference.engine._groups import GroupSizes, Whole, dealt, pooled
from dither.inference.engine._inputs import Floats, bounds_of, column, target
from dither.inference.engine._result import PrivateTest
from dither.inference.engine._simulation import Seed, batches
from dither.inference.engine._statistic import (
    ReleasedStatistic,
    result_of,
)
from dither.inference.estimates._ecdf import tree_test_of_one, tree_test_of_two
from dither.privacy import Neighbours

__all__ = [
    "kolmogorov_statistic",
    "ks_1samp",
    "ks_2samp",
    "null_of_sup",
    "null_of_two_sups",
    "two_sample_sup",
]

_MANY = 1000
"""Rows above which a null is drawn from its limit."""

_SLACK = Fraction(1, 1 << 10)
"""How far n·t of doubles may be off in two tables together: by 2**-52·n each, and by as much where
a distribution function gives a value's last digit otherwise in another place. For n to 10**12."""

BINS = 16
"""Leaves of a tree where nothing else is said."""


def kolmogorov_statistic(u: Floats) -> Fraction:
    """sup_t |#{u <= t} - n·t| of values of a distribution function; what is missing is left out.

    Examples
    --------
    >>> kolmogorov_statistic(np.array([0.25, 0.5, float("nan")]))
    Fraction(1, 1)
    """
    found = np.sort(u[~np.isnan(u)])
    n = found.size
    if n == 0:
        return Fraction(0)
    place = np.arange(1, n + 1)
    return Fraction(float(max(np.max(place - n * found), np.max(n * found - place + 1), 0.0)))


def null_of_sup(rng: np.random.Generator, n: int, size: int) -> Floats:
    """Simulated n·D of uniform values."""
    if n > _MANY:
        from scipy.special import kolmogi

        return np.asarray(kolmogi(rng.random(size)) * n / (math.sqrt(n) + 0.12 + 0.11 / n**0.5))
    u = np.sort(rng.random((size, n)), axis=1)
    place = np.arange(1, n + 1)
    return np.asarray(np.maximum((place - n * u).max(axis=1), (n * u - place + 1).max(axis=1)))


def two_sample_sup(values: Floats, places: Whole) -> Fraction:
    """sup_t |#{x <= t in the first} - (n₁/n)·#{x <= t}|; what is missing lies below no t.

    Examples
    --------
    >>> two_sample_sup(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0, 0, 1, 1]))
    Fraction(1, 1)
    """
    n, first = values.size, int((places == 0).sum())
    known = ~np.isnan(values)
    order = np.argsort(values[known], kind="stable")
    sorted_values = values[known][order]
    steps = np.where(places[known][order] == 0, n - first, -first).astype(np.int64)
    sums = np.cumsum(steps)
    # No t lies between equal values: all of them are counted before the sum is looked at.
    last = np.append(sorted_values[1:] != sorted_values[:-1], True)[: sums.size]
    return Fraction(int(np.abs(sums[last]).max(initial=0)), max(1, n))


def null_of_two_sups(rng: np.random.Generator, n: int, size: int, shares: Floats) -> Floats:
    """Simulated sup|G| of two groups dealt at random."""
    if n > _MANY:
        from scipy.special import kolmogi

        return np.asarray(kolmogi(rng.random(size)) * math.sqrt(n * shares[0] * shares[1]))
    places = dealt(shares, n)
    first = float((places == 0).mean())
    steps = np.where(places == 0, 1.0 - first, -first)
    parts = []
    for some in batches(size, max(1, (1 << 21) // n), "simulations"):
        turned = rng.permuted(np.broadcast_to(steps, (some, n)), axis=1)
        parts.append(np.abs(np.cumsum(turned, axis=1)).max(axis=1))
    return np.concatenate(parts)


@documented
def ks_1samp(
    x: Any,
    cdf: Any,
    args: tuple[float, ...] = (),
    *,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    method: str = "sup",
    bins: int = BINS,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """The Kolmogorov-Smirnov test that values come from a given continuous distribution.

    Parameters
    ----------
    x : sequence of number
        One value a row. No bounds are needed.
    cdf : str, distribution or callable
        The distribution under the null, public: a name in `scipy.stats`, one of its frozen
        distributions, or a function of one number.
    args : tuple of float
        Parameters of a distribution that is named.
    {costs}
    {neighbours}
    method : {"sup", "tree"}
        "sup" releases the largest distance and has the most power. "tree" releases a noisy tree of
        counts of ``cdf``'s values, which gives the whole distribution function.
    bins : int
        Leaves of the tree, from 2 to 4,096: fewer have less noise.
    {simulation}

    Returns
    -------
    PrivateTest
        Its statistic is n·D. By "tree" also with ``edges`` and ``ecdf``, which `plot` shows,
        and with ``quantiles``.

    {raises}

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit; epsilon-DP where
    delta is 0 ("tree" takes Gaussian noise where that is less). Missing values are left out. A
    function, and a distribution that is not one of SciPy's own, is asked of one row at a time, and
    must keep nothing between calls; a row for which it fails is missing.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(0.4, 1, 800)
    >>> inference.ks_1samp(x, "norm", epsilon=1).pvalue < 0.001
    True
    >>> tree = inference.ks_1samp(x, "norm", epsilon=1, method="tree", bins=4)
    >>> tree.pvalue < 0.01, tree.edges.tolist()
    (True, [0.0, 0.25, 0.5, 0.75, 1.0])
    """
    asked, draws = target(epsilon, delta, neighbours), check.draws(draws)
    function = _function(cdf, args)
    size = _bins(method, bins)
    values = column("x", x)
    known = values[~np.isnan(values)]
    rows = len(values) if asked.replace else len(known)
    inside = np.clip(function(known), 0.0, 1.0)
    if method == "tree":
        return tree_test_of_one(inside, rows, size, asked, draws, seed)
    exact = kolmogorov_statistic(inside)
    released = ReleasedStatistic.of(exact, rows, moved=1 + _SLACK, asked=asked)
    return result_of(
        "Kolmogorov-Smirnov test",
        "values come from this distribution",
        released,
        null_of_sup,
        draws=draws,
        seed=seed,
    )


def _bins(method: str, bins: int) -> int:
    check.choice("method", method, ("sup", "tree"))
    return check.whole("bins", bins, 2, 4096)


def _function(cdf: Any, args: tuple[float, ...]) -> Callable[[Floats], Floats]:
    """A distribution function of arrays, whose value at a row depends on that row alone."""
    if isinstance(cdf, str):
        from scipy import stats

        found = getattr(stats, cdf, None)
        if not isinstance(found, stats.rv_continuous):
            raise ArgumentError("cdf must be the name of a continuous distribution of scipy.stats")
        numbers = [check.number("args", a) for a in args]
        try:
            cdf = found(*numbers)
        except TypeError:
            raise ArgumentError("args must be the parameters of the distribution cdf") from None
    if args and not isinstance(cdf, str) and not hasattr(cdf, "cdf"):
        raise ArgumentError("args must be left out where cdf is a function")
    # SciPy's own are functions of single values; what others derive from them need not be.
    if type(getattr(cdf, "dist", cdf)).__module__ == "scipy.stats._continuous_distns":
        return lambda values: _silent(cdf.cdf, values)
    function = getattr(cdf, "cdf", cdf)
    if not callable(function):
        raise ArgumentError("cdf must be a name, a distribution or a function of one number")

    def one(value: float) -> float:
        try:
            return float(_silent(function, value))
        except KeyboardInterrupt:
            raise
        except BaseException:  # what a row makes it do must not show
            return math.nan

    return lambda values: np.array([one(v) for v in values.tolist()], dtype=np.float64)


def _silent(function: Callable[[Any], Any], values: Any) -> Floats:
    """What a function gives, without the warnings that tell of what it was given."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(function(values), dtype=np.float64)


@documented
def ks_2samp(
    x: Any,
    y: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    method: str = "sup",
    bounds: tuple[Number, Number] | None = None,
    bins: int = BINS,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """The Kolmogorov-Smirnov test that values of two groups have one law, against any other.

    Parameters
    ----------
    x, y : sequence of number
        The values of each group. No bounds are needed.
    {costs}
    {neighbours_of_groups}
    method : {"sup", "tree"}
        "sup" releases the largest distance and has the most power. "tree" releases a noisy tree of
        counts of each group, which gives both distribution functions.
    bounds : (number, number), optional
        Of the tree: public ends; values beyond count in the first and the last bin.
    bins : int
        Leaves of a tree, from 2 to 4,096: fewer have less noise.
    {simulation}

    Returns
    -------
    PrivateTest
        Its statistic is D·n₁·n₂/n. By "tree" also with ``edges`` and ``ecdf``, which `plot` shows,
        and with ``quantiles``.

    {raises}

    Notes
    -----
    {guarantee_of_groups}
    By "tree" all of it goes to the trees. Missing values lie below none.

    *Level.* Conservative where groups are unequal and noise hides by how much, and where values
    are tied.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> inference.ks_2samp(rng.normal(0, 1, 500), rng.normal(0, 2, 500), epsilon=1).pvalue < 0.05
    True
    """
    asked, draws = target(epsilon, delta, neighbours), check.draws(draws)
    size = _bins(method, bins)
    ends = bounds_of("bounds", bounds) if method == "tree" else None
    if ends is None and bounds is not None:
        raise ArgumentError("bounds must be left out but for method 'tree'")
    values, places = pooled(("x", "y"), (x, y), asked)
    if ends is not None:
        return tree_test_of_two(values, places, ends, size, asked, draws, seed)
    sizes = GroupSizes.release(places, 2, asked)
    exact = two_sample_sup(values, places)
    rest = GroupSizes.rest(asked)
    released = ReleasedStatistic.of(exact, values.size, moved=Fraction(1), asked=rest)
    return result_of(
        "two-sample Kolmogorov-Smirnov test",
        "values of both groups have one law",
        released,
        lambda rng, n, size: null_of_two_sups(rng, n, size, sizes.shares),
        draws=draws,
        seed=seed,
        loss=sizes.loss + released.design.loss,
    )
