"""Mann-Whitney and Kruskal-Wallis: tests of groups by ranks; who is in which group is private too.

Release. Rows are pairs of a value and a group g among k, n_g rows each, N the vector of those
numbers, e_g a unit vector. With r_i the sum of sgn(x_i - x_j) over all j (twice the mean rank, less
n + 1; 0 where a value is missing), let

    B = Σ_i r_i·e_(g_i) = Σ_(i<j) sgn(x_i - x_j)·(e_(g_i) - e_(g_j)),    D = max_g ‖n·e_g - N‖₂,

    V = ‖B‖₂/D, and for two groups with its sign: (Mann-Whitney's 2U - n₁·n₂)/max(n₁, n₂).

2D/n is how far ‖B‖₂/n moves at most where a value changes and its group does not, so that V needs
noise for about 2 whatever groups are. Under the null V² is about n/3 times a χ² of k - 1 degrees
of freedom, divided by k - 1, where groups are alike, and less where they are not.

Sensitivity, a row replaced. V is cut at C = (3 + √(k - 1))·√((n + 1)/3).

* The group stays: B moves by Σ_j s_j·(e_g - e_(g_j)) with |s_j| <= 2, that is by at most
  2·Σ_(j not in g) ‖e_g - e_(g_j)‖ in each direction; coordinate g by at most 2(n - n_g) and h by at
  most 2n_h, so that ‖ΔB‖ <= 2‖n·e_g - N‖ <= 2D, and D stays: 2.
* It moves from g to h. The pairs with row j go from s·(e_g - e_(g_j)) to s'·(e_h - e_(g_j)), which
  differ by at most √2 where g_j is g or h and by at most √6 else (s' = -s). With a the share of
  g and h, ‖ΔB‖/n <= √2·a + √6·(1 - a). Of (D/n)² we know that it is at least 1 - 2·p + q with p
  the least share, at most min(a/2, (1 - a)/(k - 2)), and q the sum of squared shares, at least
  a²/2 + (1 - a)²/(k - 2). The largest ratio over a is taken over a fine grid, its steps added. D
  moves by at most √2, and D >= n·√((k - 1)/k): one of the two V is at most C, or both are cut, so
  that this adds at most C·√2/(n·√((k - 1)/k)), and at most 1 as V/D <= √½ (below). For two groups
  the ratio is (n - 1)/(n/2) < 2 and max(n₁, n₂) moves by at most 1: 2 + 2C/n, or 3 if that is less.

A row added (V uncut). B gains Σ_j s_j·(e_g - e_(g_j)), at most √2·(n - n_g) long, D >= (n - n_g)
·√(k/(k - 1)) before and after, D moves by at most √2, and V/D <= √½: ‖B‖ is at most √2 times the
number n²·(1 - q)/2 of pairs across groups, and D² >= n²·(1 - 2/k + q), q >= 1/k. Together
1 + √(2(k - 1)/k), which is 2 for two groups.

Model. Groups are dealt at random among values: all permutations are equally likely under the null.
How much narrower it is where values tie: `_ties`. Rows one by one up to some hundreds; above, the
limit with the exact covariance.

Source. Couch, Kazan, Shi, Bray and Groce, "Differentially private nonparametric hypothesis
testing", CCS 2019, for the problem; there V is divided by n for all group sizes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS, as_alternative
from dither.inference.engine._groups import GroupSizes, Whole, dealt, pooled
from dither.inference.engine._inputs import Floats, Target, target
from dither.inference.engine._release import seen_at_best
from dither.inference.engine._result import PrivateTest
from dither.inference.engine._simulation import Seed, batches
from dither.inference.engine._statistic import (
    LATTICE,
    ReleasedStatistic,
    StatisticRelease,
    StatisticWithRowsRelease,
    result_of,
    root,
)
from dither.inference.hypothesis._ties import Ties
from dither.numeric import sqrt_upper
from dither.privacy import Neighbours

__all__ = [
    "GroupRanks",
    "kruskal",
    "length_of",
    "mannwhitneyu",
    "null_of_ranks",
    "twice_ranks",
]

_MANY = 300
"""Rows above which a null of ranks is drawn from its limit."""

_BEYOND = 3
"""Deviations of the null beyond its root mean square at which V is cut."""

_GRID = 2000


@lru_cache
def _moving(k: int) -> Fraction:
    """The largest ‖ΔB‖/D of a row that moves between two of k > 2 groups, rounded up."""
    a = np.arange(_GRID + 1) / _GRID
    least = np.minimum(a / 2, (1 - a) / (k - 2))
    square = 1 - 2 * least + a**2 / 2 + (1 - a) ** 2 / (k - 2)
    ratio = (math.sqrt(2) * a + math.sqrt(6) * (1 - a)) / np.sqrt(square)
    # Between points of the grid the ratio moves by less than 8 times the step.
    return Fraction(math.ceil((float(ratio.max()) + 8 / _GRID) * 1024), 1024)


def twice_ranks(values: Floats) -> Whole:
    """Σ_j sgn(x_i - x_j) of each value: twice its mean rank, centred; 0 where it is missing.

    Examples
    --------
    >>> twice_ranks(np.array([3.0, 1.0, float("nan"), 3.0])).tolist()
    [1, -2, 0, 1]
    """
    from scipy.stats import rankdata

    found = np.zeros(values.size, dtype=np.int64)
    known = ~np.isnan(values)
    found[known] = np.rint(2.0 * rankdata(values[known])).astype(np.int64)
    found[known] -= int(known.sum()) + 1
    return found


@dataclass(frozen=True)
class GroupRanks:
    """Layer 1: V of values in k private groups.

    Parameters
    ----------
    groups : int
        k, at least 2.
    rows : int
        n where it is public; without meaning under ADD_REMOVE.
    asked : Target
    """

    groups: int
    rows: int
    asked: Target

    @property
    def cut(self) -> Fraction | None:
        """Where V is cut, if it is."""
        if not self.asked.replace:
            return None
        wide = _BEYOND + sqrt_upper(Fraction(self.groups - 1))
        return wide * sqrt_upper(Fraction(max(1, self.rows) + 1, 3))

    @property
    def moved(self) -> Fraction:
        """How far a row moves V."""
        # The roots of two tables are cut to the lattice, each by less than one point.
        k, cut, slack = self.groups, self.cut, Fraction(2, LATTICE)
        if cut is None:
            return 1 + sqrt_upper(Fraction(2 * (k - 1), k)) + slack
        n = max(1, self.rows)
        if k == 2:
            return 2 + min(Fraction(1), 2 * cut / n) + slack
        edge = cut * sqrt_upper(Fraction(2 * k, k - 1)) / n
        return max(Fraction(2), _moving(k) + min(Fraction(1), edge)) + slack

    def statistic(self, values: Floats, places: Whole) -> Fraction:
        """V, with its sign for two groups."""
        ranks, n, k = twice_ranks(values), values.size, self.groups
        sums = [int(ranks[places == g].sum()) for g in range(k)]
        sizes = [int(c) for c in np.bincount(places, minlength=k)]
        squares = sum(c * c for c in sizes)
        widest = max(n * n - 2 * n * c + squares for c in sizes)
        found = root(Fraction(sum(s * s for s in sums), widest)) if widest else Fraction(0)
        if self.cut is not None:
            found = min(found, self.cut)
        return -found if k == 2 and sums[0] < 0 else found

    def release(self, values: Floats, places: Whole) -> ReleasedStatistic:
        """V with noise: the one step that touches data."""
        return ReleasedStatistic.of(
            self.statistic(values, places), values.size, moved=self.moved, asked=self.asked
        )

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a value that moves from one end to the other, and a row added."""
        places = np.array([0, 0, 0, 1, 1, 1])
        first, second = np.array([9.0, 1, 2, 3, 4, 5]), np.array([0.0, 1, 2, 3, 4, 5])
        known = cls(2, 6, target(1, 0, "replace"))
        noise = StatisticRelease(known.moved, known.asked)

        def of_known(values: Floats, size: int) -> Floats:
            return noise.release(known.statistic(values, places), size)

        yield Subject("ranks of two groups", of_known, first, second)
        unknown = cls(2, 0, target(1, 0, "add-remove"))
        both = StatisticWithRowsRelease(unknown.moved, unknown.asked)
        apart, sides = np.arange(24.0), np.repeat([1, 0], 12)
        before = unknown.statistic(apart, sides), 24
        after = unknown.statistic(np.append(apart, 25.0), np.append(sides, 1)), 25
        seen = seen_at_best(both, before, after)
        yield Subject("ranks of groups of unknown n", seen, before, after)


def null_of_ranks(
    rng: np.random.Generator, n: int, size: int, shares: Floats, off: Floats | None = None
) -> Floats:
    """Simulated V, with its sign for two groups, of groups dealt at random.

    Above `_MANY` rows ``off``, shape (k,), may be what E B/n is where the groups differ.
    """
    k = shares.size
    if n > _MANY:
        z = rng.normal(size=(size, k))
        share = np.sqrt(shares)
        moved = math.sqrt((n + 1) / 3.0) * (share * z - np.outer(z @ share, shares))
        moved += 0.0 if off is None else off
        rows = shares
    else:
        places, ranks = dealt(shares, n), 2.0 * np.arange(1, n + 1) - n - 1
        parts = []
        for some in batches(size, max(1, (1 << 21) // n), "simulations"):
            turned = rng.permuted(np.broadcast_to(places, (some, n)), axis=1)
            parts.append(np.stack([(turned == g) @ ranks for g in range(k)], axis=1) / n)
        moved, rows = np.concatenate(parts), np.bincount(places, minlength=k) / n
    return length_of(moved, rows)


def length_of(moved: Floats, shares: Floats) -> Floats:
    """V of vectors B/n, shape (size, k), with its sign for two groups."""
    widest = max(1e-12, *(1.0 - 2.0 * p + float(shares @ shares) for p in shares))
    if shares.size == 2:
        return np.asarray(moved[:, 0] * math.sqrt(2.0 / widest))
    return np.asarray(np.linalg.norm(moved, axis=1) / math.sqrt(widest))


def _by_ranks(
    title: str,
    null: str,
    samples: Sequence[Any],
    asked: Target,
    alternative: str,
    ties: bool,
    draws: int,
    seed: Seed,
) -> PrivateTest:
    draws = check.draws(draws)
    k = len(samples)
    values, places = pooled([f"samples[{g}]" for g in range(k)], samples, asked)
    tied, rest = Ties.release("groups", values, GroupSizes.rest(asked), ties)
    sizes = GroupSizes.release(places, k, asked)
    released = GroupRanks(k, values.size, rest).release(values, places)
    return result_of(
        title,
        null,
        released,
        tied.narrowed(lambda rng, n, size: null_of_ranks(rng, n, size, sizes.shares)),
        alternative=alternative,
        draws=draws,
        seed=seed,
        per_row=1 / 3,
        loss=tied.cost(sizes.loss + released.design.loss),
    )


@documented
def mannwhitneyu(
    x: Any,
    y: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    alternative: str = "two-sided",
    ties: bool = True,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """The Mann-Whitney test that values of two groups have one law, against a shift.

    Parameters
    ----------
    x, y : sequence of number
        The values of each group. No bounds are needed.
    {costs}
    {neighbours_of_groups}
    alternative : {"two-sided", "less", "greater"}
        Whether values of ``x`` might be smaller, or larger.
    {ties}
    {simulation}

    Returns
    -------
    PrivateTest
        Its statistic is (2U - n₁·n₂)/max(n₁, n₂).

    {raises}

    Notes
    -----
    {guarantee_of_groups}
    Missing values tie with all others where rows are replaced, and are left out else.

    *Level.* Conservative where groups are unequal, or values tie, and noise hides by how much.

    References
    ----------
    Couch, Kazan, Shi, Bray and Groce, CCS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> x, y = rng.normal(0.5, 1, 400), rng.normal(0, 1, 400)
    >>> found = inference.mannwhitneyu(x, y, epsilon=1)
    >>> found.pvalue < 0.01, found.loss.charge.epsilon
    (True, Fraction(1, 1))
    """
    return _by_ranks(
        "Mann-Whitney test",
        "values of both groups have one law",
        (x, y),
        target(epsilon, delta, neighbours),
        as_alternative(alternative),
        ties,
        draws,
        seed,
    )


@documented
def kruskal(
    *samples: Any,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    ties: bool = True,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """The Kruskal-Wallis test that values of several groups have one law, against shifts.

    Parameters
    ----------
    *samples : sequence of number
        The values of each group, at least 2 groups. No bounds are needed.
    {costs}
    {neighbours_of_groups}
    {ties}
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    {guarantee_of_groups}
    Missing values tie with all others where rows are replaced, and are left out else.

    *Level.* Conservative where groups are unequal, or values tie, and noise hides by how much.

    References
    ----------
    Couch, Kazan, Shi, Bray and Groce, CCS 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> groups = [rng.normal(shift, 1, 500) for shift in (0, 0, 0.6)]
    >>> inference.kruskal(*groups, epsilon=1).pvalue < 0.01
    True
    """
    if len(samples) < 2:
        raise ArgumentError("samples must be at least two groups, one sequence of values each")
    asked = target(epsilon, delta, neighbours)
    null = "values of all groups have one law"
    if len(samples) > 2:
        return _by_ranks("Kruskal-Wallis test", null, samples, asked, "greater", ties, draws, seed)
    return _by_ranks("Kruskal-Wallis test", null, samples, asked, "two-sided", ties, draws, seed)
