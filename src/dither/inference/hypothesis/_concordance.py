"""Kendall's tau: whether two columns rise together, by concordant pairs of rows.

Release. K/n with K = Σ_(i<j) sgn(x_i - x_j)·sgn(y_i - y_j). A row is in n - 1 of the pairs, each of
which moves by at most 2: 2(n - 1)/n < 2 where it is replaced. One that is added brings n terms and
divides by n + 1, and |K| <= n(n - 1)/2: n/(n + 1) + (n - 1)/(2(n + 1)) < 3/2.

Model. Of independent columns without ties K has one law, whatever theirs are: that of a random
permutation. How much narrower it is where values tie: `_ties`.

Source. Kendall, "Rank correlation methods", 1948.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import (
    DRAWS,
    as_alternative,
)
from dither.inference.engine._inputs import Floats, Target, column, target
from dither.inference.engine._release import seen_at_best
from dither.inference.engine._result import PrivateTest
from dither.inference.engine._simulation import Seed
from dither.inference.engine._statistic import (
    ReleasedStatistic,
    StatisticRelease,
    StatisticWithRowsRelease,
    result_of,
)
from dither.inference.hypothesis._ties import Ties
from dither.privacy import Neighbours

__all__ = [
    "ConcordanceRelease",
    "concordance",
    "kendalltau",
    "null_of_concordance",
    "released_of",
]

Integers = npt.NDArray[np.int64]


def concordance(x: Floats, y: Floats) -> int:
    """Σ_(i<j) sgn(x_i - x_j)·sgn(y_i - y_j): concordant less discordant pairs, exactly.

    Examples
    --------
    >>> concordance(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    1
    """
    known = ~(np.isnan(x) | np.isnan(y))
    order = np.lexsort((y[known], x[known]))
    x, y = x[known][order], y[known][order]
    other = x[1:] != x[:-1]
    _, places, counts = np.unique(y, return_inverse=True, return_counts=True)
    tied = [_pairs(_runs(other)), _pairs(counts), -_pairs(_runs(other | (y[1:] != y[:-1])))]
    return x.size * (x.size - 1) // 2 - sum(tied) - 2 * _inversions(places.astype(np.int64))


def _runs(other: npt.NDArray[np.bool_]) -> Integers:
    """Lengths of runs of equal values, from whether each differs from the one before."""
    return np.diff(np.flatnonzero(np.concatenate([[True], other, [True]])))


def _pairs(counts: Integers) -> int:
    """How many pairs are within groups of so many; Python's integers, which do not end."""
    return sum(int(c) * (int(c) - 1) // 2 for c in counts[counts > 1])


def _inversions(values: Integers) -> int:
    """Pairs i < j with values_i > values_j, by merging sorted blocks.

    What fills up to a power of two is larger than all and comes last: in no such pair.
    """
    size = 16
    while size < values.size:
        size *= 2
    top = int(values.max(initial=0)) + 2
    filled = np.full(size, top - 1, dtype=np.int64)
    filled[: values.size] = values
    blocks = filled.reshape(-1, 16)
    found = sum(int((blocks[:, :-k] > blocks[:, k:]).sum()) for k in range(1, 16))
    blocks = np.sort(blocks, axis=1)
    while len(blocks) > 1:
        first, second = blocks[0::2], blocks[1::2]
        apart = top * np.arange(len(first))[:, None]
        below = np.searchsorted((first + apart).ravel(), (second + apart).ravel(), side="right")
        ends = blocks.shape[1] * np.arange(1, len(first) + 1)
        found += int((np.repeat(ends, blocks.shape[1]) - below).sum())
        blocks = np.sort(blocks.reshape(len(first), -1), axis=1)
    return found


def null_of_concordance(rng: np.random.Generator, n: int, size: int) -> Floats:
    """Simulated concordance of independent columns, divided by n."""
    if n > 60:
        # Var Σ = n(n - 1)(2n + 5)/18, and normal to a few parts in a thousand from some tens on.
        return rng.normal(0.0, math.sqrt((n - 1) * (2 * n + 5) / (18.0 * n)), size)
    # Inversions of a permutation: the sum of independent uniform numbers on 0..i - 1.
    turned = np.zeros(size)
    for i in range(2, n + 1):
        turned += rng.integers(0, i, size)
    return np.asarray((n * (n - 1) / 2 - 2 * turned) / max(1, n))


@dataclass(frozen=True)
class ConcordanceRelease:
    """Layer 1: K/n of two columns.

    Parameters
    ----------
    asked : Target
    """

    asked: Target

    @property
    def moved(self) -> Fraction:
        """How far a row moves it."""
        return Fraction(2) if self.asked.replace else Fraction(3, 2)

    def statistic(self, x: Floats, y: Floats) -> Fraction:
        """K/n, exactly; a row that misses a value is in no pair, and no row under ADD_REMOVE."""
        return Fraction(concordance(x, y), max(1, self.rows(x, y)))

    def rows(self, x: Floats, y: Floats) -> int:
        """n."""
        return x.size if self.asked.replace else int((~(np.isnan(x) | np.isnan(y))).sum())

    def release(self, x: Floats, y: Floats) -> ReleasedStatistic:
        """K/n with noise: the one step that touches data."""
        return ReleasedStatistic.of(
            self.statistic(x, y), self.rows(x, y), moved=self.moved, asked=self.asked
        )

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that turns from with all others to against them."""
        x = np.arange(9.0)
        first, second = x.copy(), x.copy()
        second[0] = 9.0
        known = cls(target(1, 0, "replace"))
        noise = StatisticRelease(known.moved, known.asked)

        def of_known(y: Floats, size: int) -> Floats:
            return noise.release(known.statistic(x, y), size)

        yield Subject("pairs of n rows", of_known, first, second)
        unknown = cls(target(1, 0, "add-remove"))
        both = StatisticWithRowsRelease(unknown.moved, unknown.asked)
        before = unknown.statistic(x, x), 9
        after = unknown.statistic(np.append(x, -1.0), np.append(x, 9.0)), 10
        seen = seen_at_best(both, before, after)
        yield Subject("pairs of unknown n", seen, before, after)


def paired(x: Any, y: Any) -> tuple[Floats, Floats]:
    """Read two columns of pairs."""
    first, second = column("x", x), column("y", y)
    if len(first) != len(second):
        raise ArgumentError("x and y must have equally many rows")
    return first, second


def released_of(x: Any, y: Any, asked: Target) -> ReleasedStatistic:
    """Read two columns of pairs, and release K/n of them."""
    return ConcordanceRelease(asked).release(*paired(x, y))


@documented
def kendalltau(
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
    """Kendall's test that two columns have nothing to do with each other, against a trend.

    Parameters
    ----------
    x, y : sequence of number
        One pair a row. No bounds are needed.
    {costs}
    {neighbours}
    alternative : {"two-sided", "less", "greater"}
        Whether the columns might fall, or rise, together.
    {ties}
    {simulation}

    Returns
    -------
    PrivateTest
        Its statistic is τ·(n - 1)/2.

    {raises}

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit; epsilon-DP where
    delta is 0. A row that misses either value counts in no pair.

    *Level.* Conservative where values tie and noise hides how many.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> x = rng.normal(0, 1, 500)
    >>> inference.kendalltau(x, x + rng.normal(0, 2, 500), epsilon=1).pvalue < 0.001
    True
    """
    asked, kind = target(epsilon, delta, neighbours), as_alternative(alternative)
    draws = check.draws(draws)
    first, second = paired(x, y)
    pairs = np.column_stack([first, second])
    if not asked.replace:
        pairs = pairs[~np.isnan(pairs).any(axis=1)]
    tied, rest = Ties.release("pairs", pairs, asked, ties)
    released = ConcordanceRelease(rest).release(first, second)
    return result_of(
        "test of Kendall's tau",
        "the two columns are independent",
        released,
        tied.narrowed(null_of_concordance),
        alternative=kind,
        draws=draws,
        seed=seed,
        loss=tied.cost(released.design.loss),
    )
