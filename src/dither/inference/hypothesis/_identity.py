"""Is a distribution the one it is said to be? Tests of the uniform, with one number released.

Release. A vector S of rows is summed exactly, and its length leaves with canonical noise N, that
of `dither.inference.proportion`:

    z = ‖S‖₂ + Δ·N,

by the triangle inequality: where one row moves S by at most Δ in the Euclidean norm, it moves ‖S‖₂
by no more. For rows of ±1 in d coordinates Δ = 2√d where a row is replaced, and √d where it is
added or removed. For counts of k categories, less their mean, Δ = √2 and 1. How one number of which
a row moves so much is released, with n where it is not public, says `_statistic`.

Model. Under the null every sign is a fair coin (every category equally likely), so that the law of
z is public, and its p-value comes exactly from simulating it. Under ADD_REMOVE the statistic is
z - √(E‖S‖²) at n as measured, simulated with that n.

Two more releases, and how Gaussian rows become signs, are in `dither.inference.engine._signs`.

Source. Canonne, Kamath, McMillan, Ullman and Zakynthinou, "Private identity testing for
high-dimensional distributions", NeurIPS 2020, for the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither.errors import ArgumentError
from dither.inference.engine._documented import documented
from dither.inference.engine._errors import DRAWS
from dither.inference.engine._inputs import Floats, Target, matrix, target
from dither.inference.engine._pairs import moved_by_pairs, pairs_of, signs_of_pairs
from dither.inference.engine._release import spread_of
from dither.inference.engine._result import PrivateTest, share_of_noise, simulated_test
from dither.inference.engine._signs import (
    BATCH,
    SquareRelease,
    lengths_of_signs,
    signs,
    square_of,
)
from dither.inference.engine._simulation import Seed, SimulatedDraws, batches
from dither.inference.engine._statistic import (
    ReleasedStatistic,
    StatisticWithRowsRelease,
    result_of,
    root,
)
from dither.inference.hypothesis._efficient import EfficientRelease
from dither.numeric import sqrt_upper
from dither.privacy import Neighbours

__all__ = [
    "identity_test",
    "uniformity_test",
]

METHODS = ("norm", "pairs", "lipschitz", "efficient")


def _tested(
    title: str,
    null: str,
    moved: int,
    asked: Target,
    table: tuple[Fraction, int],
    unit: float,
    squares: Callable[[np.random.Generator, int, int], Floats],
    draws: int,
    seed: Seed,
    assumptions: Sequence[str],
) -> PrivateTest:
    """The result of a released length: ``unit`` is E‖S‖² of one row under the null."""
    moves = sqrt_upper(Fraction(moved))
    released = ReleasedStatistic.of(root(table[0]), table[1], moved=moves, asked=asked)
    design = released.design
    if isinstance(design, StatisticWithRowsRelease):
        released = replace(released, value=released.value - math.sqrt(released.rows * unit))

    def alone(rng: np.random.Generator, rows: int, size: int) -> Floats:
        return np.asarray(np.sqrt(squares(rng, rows, size)))

    def lengths(rng: np.random.Generator, rows: int, size: int) -> Floats:
        found = alone(rng, rows, size)
        if isinstance(design, StatisticWithRowsRelease):
            again = np.maximum(0.0, rows + design.draw(rng, size) / float(design.count))
            found -= np.sqrt(again * unit)
        return found

    return result_of(
        title,
        null,
        released,
        lengths,
        draws=draws,
        seed=seed,
        assumptions=tuple(assumptions),
        chance=math.sqrt(released.rows * unit),
        per_row=unit,
        sampling=float(np.std(alone(SimulatedDraws.of(None), released.rows, 1000))),
    )


@documented
def identity_test(
    rows: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    covariance: Any = None,
    centre: Any = None,
    method: str = "norm",
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Whether rows of ±1 are fair coins, or Gaussian rows have the mean that they are said to have.

    Parameters
    ----------
    rows : array of shape (n, d)
        Signs: what is at least 0 counts as +1, anything below as -1.
    epsilon, delta : number
        What the release may cost. "lipschitz" and "pairs", and "norm" with
        an unknown n, spend no delta.
    neighbours : {"replace", "add-remove"}
        Whether n is public, or measured with noise ("norm" only).
    covariance : array of shape (d, d), optional
        Public: rows are Gaussian with this covariance. They are whitened and their signs taken.
    centre : array of shape (d,), optional
        Public: the mean under the null, by default 0.
    method : {"norm", "pairs", "lipschitz", "efficient"}
        "norm": the length of the sum, the most powerful below about 3,000 numbers a row. "pairs":
        signs of inner products of blocks of rows, whose need of rows grows as the root of d: the
        most powerful beyond. "lipschitz": its square, extended
        from sums as fair coins have them. "efficient": the literature's algorithm, corrected.
    {simulation}

    Returns
    -------
    PrivateTest
        With a Monte Carlo p-value, exact whatever ``draws`` is where n is public.

    {raises}

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit, and
    epsilon-DP where delta is 0. A missing entry counts as no sign at all.

    References
    ----------
    Canonne, Kamath, McMillan, Ullman and Zakynthinou, NeurIPS 2020. Narayanan, "Private
    high-dimensional hypothesis testing", COLT 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> rows = rng.choice([-1, 1], p=[0.4, 0.6], size=(4000, 20))
    >>> inference.identity_test(rows, epsilon=1).pvalue < 0.001
    True
    >>> heights = rng.multivariate_normal([170, 70], [[50, 30], [30, 90]], 9000)
    >>> found = inference.identity_test(
    ...     heights, epsilon=1, covariance=[[50, 30], [30, 90]], centre=[160, 70])
    >>> found.pvalue < 0.001, found.loss.charge.epsilon
    (True, Fraction(1, 1))
    """
    asked = target(epsilon, delta, neighbours)
    check.choice("method", method, METHODS)
    draws = check.draws(draws)
    if method != "norm" and not asked.replace:
        raise ArgumentError(f"method {method!r} needs neighbours 'replace'; 'norm' takes both")
    table = signs(matrix("rows", rows), covariance, centre)
    n, d = table.shape
    coins = np.full(d, 0.5)
    if covariance is None:
        null, assumptions = "every entry is a fair coin", ["rows are an independent sample"]
    else:
        null = "the mean is the centre"
        assumptions = ["rows are an independent Gaussian sample of this covariance"]

    def squares(rng: np.random.Generator, rows: int, size: int) -> Floats:
        parts = [(s**2).sum(axis=1) for s in lengths_of_signs(rng, rows, coins, size)]
        return np.concatenate(parts)

    if method == "norm":
        moved, exact = 4 * d if asked.replace else d, (Fraction(square_of(table)), n)
        return _tested(
            "identity test", null, moved, asked, exact, float(d), squares, draws, seed, assumptions
        )
    if method == "pairs":

        def of_pairs(rng: np.random.Generator, rows: int, size: int) -> Floats:
            return np.concatenate(list(signs_of_pairs(rng, rows, coins, size)))

        moved_by = Fraction(moved_by_pairs(n))
        pure = Target(asked.epsilon, Fraction(0), asked.neighbours)
        found_by = ReleasedStatistic.of(Fraction(pairs_of(table)), n, moved=moved_by, asked=pure)
        return result_of(
            "identity test, pairs",
            null,
            found_by,
            of_pairs,
            draws=draws,
            seed=seed,
            assumptions=tuple(assumptions),
            # The noise stands to chance as it does, whatever n is: more rows make means larger.
            chance=math.inf,
        )
    rng = SimulatedDraws.fresh(seed)
    if method == "lipschitz":
        square = SquareRelease(n, d, asked)
        loss, statistic = square.loss, float(square.release(table).values[0])
        noise, alone = spread_of(square.noise), lengths_of_signs(rng, n, coins, draws)
        found = np.concatenate([square.extended(s) for s in alone])
        simulated = found + noise.draw(rng, draws)
        share = share_of_noise(noise.deviation, float(np.std(found)))
    else:
        efficient = EfficientRelease(n, d, asked)
        loss, statistic = efficient.loss, efficient.release(table)
        parts = [efficient.simulate(rng, s) for s in lengths_of_signs(rng, n, coins, draws)]
        simulated = np.concatenate(parts)
        deviation = math.sqrt(2.0 * n * (n - 1) * d)  # of the statistic of fair coins
        share = share_of_noise(math.sqrt(2.0) * efficient.scale, deviation)
    note = "method 'norm' rejects a false null with far fewer rows at the same cost."
    return simulated_test(
        f"identity test, {method}",
        loss,
        (*assumptions, "n is public"),
        (note,),
        null,
        statistic,
        simulated,
        share,
    )


@documented
def uniformity_test(
    x: Any,
    *,
    categories: Sequence[Any],
    epsilon: Number,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    draws: int = DRAWS,
    seed: Seed = None,
) -> PrivateTest:
    """Whether all categories are equally likely.

    Parameters
    ----------
    x : sequence
        One category a row.
    categories : sequence
        All that there can be, known without looking at the data: at least 2.
    {pure_cost}
    {neighbours}
    {simulation}

    Returns
    -------
    PrivateTest

    {raises}

    Notes
    -----
    *Guarantee.* epsilon-DP for the neighbours, a row being the unit: the length of N - n/k, of
    the counts N, moves by √2 where a row is replaced, and by at most 1 where one is added.
    What is in no category is left out.

    Examples
    --------
    >>> from dither import inference
    >>> days = ["Mon"] * 300 + ["Tue"] * 100 + ["Wed"] * 200
    >>> found = inference.uniformity_test(days, categories=["Mon", "Tue", "Wed"], epsilon=1)
    >>> found.pvalue < 0.001
    True
    """
    from dither.inference.hypothesis._contingency import codes, levels_of

    asked = target(epsilon, 0, neighbours)
    draws = check.draws(draws)
    levels = levels_of("categories", categories)
    k = len(levels)
    found = codes("x", x, levels)
    n = len(found)
    counts = np.bincount(found[found >= 0], minlength=k)
    # ‖N - mean(N)‖² = Σ N² - (Σ N)²/k.
    square = sum(int(c) ** 2 for c in counts) - Fraction(int(counts.sum()) ** 2, k)

    def squares(rng: np.random.Generator, rows: int, size: int) -> Floats:
        each = max(1, BATCH // k)
        drawn = [
            ((rng.multinomial(rows, np.full(k, 1 / k), some) - rows / k) ** 2).sum(axis=1)
            for some in batches(size, each, "simulations")
        ]
        return np.concatenate(drawn)

    return _tested(
        "uniformity test",
        f"the {k:,} categories are equally likely",
        2 if asked.replace else 1,
        asked,
        (Fraction(square), n),
        1.0 - 1.0 / k,
        squares,
        draws,
        seed,
        ["rows are an independent sample", "every row is in one of the categories"],
    )
