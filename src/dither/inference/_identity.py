"""Is a distribution the one it is said to be? Tests of the uniform, with one number released.

Release. A vector S of rows is summed exactly, and its length leaves with canonical noise N, that
of `dither.inference.proportion`:

    z = ‖S‖₂ + Δ·N,

by the triangle inequality: where one row moves S by at most Δ in the Euclidean norm, it moves ‖S‖₂
by no more. For rows of ±1 in d coordinates Δ = 2√d where a row is replaced, and √d where it is
added or removed. For counts of k categories, less their mean, Δ = √2 and 1. The length is rounded
down to a lattice of 2^-20, one point of which is added to Δ, so that Δ is K points. With u uniform
on 0..K-1, the length l in points is released as Z·K + l + u, Z being integer noise: given u this is
floor((l + u)/K) + Z, of a count that one row changes by at most 1, and a remainder which is uniform
whatever l is. N is Tulap's or the discrete Laplace law plus a uniform fraction; it costs what the
integer noise costs, and has less spread than Laplace noise. Under ADD_REMOVE c·n, with c near Δ/8,
leaves in one vector with the length, and both have Laplace noise.

Model. Under the null every sign is a fair coin (every category equally likely), so that the law of
z is public, and its p-value comes exactly from simulating it. Under ADD_REMOVE the statistic is
z - √(E‖S‖²) at n as measured, simulated with that n.

Two more releases, and how Gaussian rows become signs, are in `dither.inference._signs`.

Source. Canonne, Kamath, McMillan, Ullman and Zakynthinou, "Private identity testing for
high-dimensional distributions", NeurIPS 2020, for the problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference._efficient import EfficientRelease
from dither.inference._errors import DRAWS
from dither.inference._inputs import Floats, Target, matrix, target
from dither.inference._proportion import CanonicalNoise
from dither.inference._release import fixed_noise, seen_at_best, spread_of
from dither.inference._result import PrivateTest, simulated_test, too_few_rows
from dither.inference._signs import (
    BATCH,
    SquareRelease,
    lengths_of_signs,
    signs,
    square_of,
)
from dither.inference._simulation import Seed, SimulatedDraws, batches
from dither.mechanisms import Laplace
from dither.noise import below
from dither.numeric import sqrt_upper
from dither.privacy import Loss, Neighbours

__all__ = [
    "LengthRelease",
    "MeasuredLengthRelease",
    "identity_test",
    "uniformity_test",
]

METHODS = ("norm", "lipschitz", "efficient")

_LATTICE = 1 << 20


@dataclass(frozen=True)
class LengthRelease:
    """Layer 1: the length of a vector of sums where n is public.

    Parameters
    ----------
    moved_squared : int
        How far one row moves the vector: a bound of the squared Euclidean norm.
    asked : Target

    Attributes
    ----------
    reach : int
        How many points of the lattice one row moves the length by, at most.
    noise : CanonicalNoise
        In units of the reach.
    """

    moved_squared: int
    asked: Target
    reach: int = field(init=False)
    noise: CanonicalNoise = field(init=False)

    def __post_init__(self) -> None:
        moved = math.ceil(sqrt_upper(Fraction(self.moved_squared)) * _LATTICE) + 1
        object.__setattr__(self, "reach", moved)
        object.__setattr__(self, "noise", CanonicalNoise(self.asked))

    @property
    def loss(self) -> Loss:
        """That of the integer noise of a count that one row changes by at most 1."""
        return self.noise.loss

    @property
    def unit(self) -> float:
        """The reach as a number: what the noise is multiplied by."""
        return self.reach / _LATTICE

    def statistic(self, square: Fraction) -> int:
        """The length on the lattice, rounded down, of its square."""
        return math.isqrt(square.numerator * _LATTICE**2 // square.denominator)

    def release(self, square: Fraction, size: int = 1) -> Floats:
        """The length with noise, ``size`` times over: the one step that touches data."""
        points, whole = self.statistic(square), self.noise.law.draw(size)
        fractions = below(self.reach, size)
        return np.array(
            [
                float(Fraction(points + int(z) * self.reach + int(u) - self.reach // 2, _LATTICE))
                for z, u in zip(whole, fractions, strict=True)
            ]
        )

    def draw(self, rng: np.random.Generator, size: int) -> Floats:
        """Simulated noise."""
        return self.unit * self.noise.draw(rng, size)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: three rows of which one turns against the others."""
        for delta in (Fraction(0), Fraction(1, 100)):
            design = cls(16, target(1, delta, "replace"))
            name = "identity of n rows" + (", with delta" if delta else "")
            yield Subject(name, design.release, Fraction(36), Fraction(4), delta=delta)


@dataclass(frozen=True)
class MeasuredLengthRelease:
    """Layer 1: the length of a vector of sums, and the number of rows.

    Parameters
    ----------
    moved_squared : int
        How far one row that is added moves the vector: a bound of the squared Euclidean norm.
    asked : Target

    Attributes
    ----------
    count : Fraction
        The weight of n.
    noise : Laplace
        Of each coordinate.
    loss : Loss
    """

    moved_squared: int
    asked: Target
    count: Fraction = field(init=False)
    noise: Laplace = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        moved = sqrt_upper(Fraction(self.moved_squared)) + Fraction(1, _LATTICE)
        count = Fraction(round(8 * math.sqrt(self.moved_squared)), 64)
        noise, loss = fixed_noise(asked=self.asked, dimension=2, l1=moved + count)
        assert isinstance(noise, Laplace)
        for name, value in (("count", count), ("noise", noise), ("loss", loss)):
            object.__setattr__(self, name, value)

    def statistic(self, table: tuple[Fraction, int]) -> tuple[Fraction, Fraction]:
        """The length and the weighted number of rows, of (‖S‖², n)."""
        square, rows = table
        whole = square.numerator * _LATTICE**2 // square.denominator
        return Fraction(math.isqrt(whole), _LATTICE), self.count * rows

    def release(self, table: tuple[Fraction, int]) -> Floats:
        """The statistic with noise: the one step that touches data."""
        return np.array([float(v) for v in self.noise.release(self.statistic(table))])

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a second row like the first."""
        design = cls(4, target(1, 0, "add-remove"))
        first, second = (Fraction(4), 1), (Fraction(16), 2)
        yield Subject("identity of unknown n", seen_at_best(design, first, second), first, second)


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
    rng, rows = SimulatedDraws.fresh(seed), table[1]
    if asked.replace:
        known = LengthRelease(moved, asked)
        loss, deviation = known.loss, known.unit * math.sqrt(known.noise.variance)
        statistic = float(known.release(table[0])[0])
        lengths = np.sqrt(squares(rng, rows, draws)) + known.draw(rng, draws)
    else:
        design = MeasuredLengthRelease(moved, asked)
        released, spread = design.release(table), spread_of(design.noise)
        loss, deviation, weight = design.loss, spread.deviation, float(design.count)
        measured = max(0.0, float(released[1]) / weight)
        rows = round(measured)
        statistic = float(released[0]) - math.sqrt(measured * unit)
        again = np.maximum(0.0, rows + spread.draw(rng, draws) / weight)
        lengths = np.sqrt(squares(rng, rows, draws)) + spread.draw(rng, draws)
        lengths -= np.sqrt(again * unit)
    notes: tuple[str, ...] = ()
    needed = deviation**2 / unit
    if rows < needed:
        notes = (too_few_rows("the noise exceeds what chance alone gives", needed),)
    public = "n is public" if asked.replace else "n is as measured"
    return simulated_test(title, loss, (*assumptions, public), notes, null, statistic, lengths)


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
        What the release may cost. "lipschitz", and "norm" with
        an unknown n, spend no delta.
    neighbours : {"replace", "add-remove"}
        Whether n is public, or measured with noise ("norm" only).
    covariance : array of shape (d, d), optional
        Public: rows are Gaussian with this covariance. They are whitened and their signs taken.
    centre : array of shape (d,), optional
        Public: the mean under the null, by default 0.
    method : {"norm", "lipschitz", "efficient"}
        "norm": the length of the sum, by far the most powerful. "lipschitz": its square, extended
        from sums as fair coins have them. "efficient": the literature's algorithm, corrected.
    draws : int
        Simulated releases, at least 100.
    seed : int, numpy.random.Generator or None
        Of the simulation.

    Returns
    -------
    PrivateTest
        With a Monte Carlo p-value, exact whatever ``draws`` is where n is public.

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit, and
    epsilon-DP where delta is 0. A missing entry counts as no sign at all.

    References
    ----------
    Canonne, Kamath, McMillan, Ullman and Zakynthinou, NeurIPS 2020.

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
    draws = check.whole("draws", draws, 100)
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
    rng = SimulatedDraws.fresh(seed)
    if method == "lipschitz":
        square = SquareRelease(n, d, asked)
        loss, statistic = square.loss, float(square.release(table).values[0])
        parts = [square.extended(s) for s in lengths_of_signs(rng, n, coins, draws)]
        simulated = np.concatenate(parts) + spread_of(square.noise).draw(rng, draws)
    else:
        efficient = EfficientRelease(n, d, asked)
        loss, statistic = efficient.loss, efficient.release(table)
        parts = [efficient.simulate(rng, s) for s in lengths_of_signs(rng, n, coins, draws)]
        simulated = np.concatenate(parts)
    note = "method 'norm' rejects a false null with far fewer rows at the same cost."
    return simulated_test(
        f"identity test, {method}",
        loss,
        (*assumptions, "n is public"),
        (note,),
        null,
        statistic,
        simulated,
    )


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
    epsilon : number
        What the release may cost; no delta is spent.
    neighbours : {"replace", "add-remove"}
        Whether n is public, or measured with noise.
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
    from dither.inference._tables import codes, levels_of

    asked = target(epsilon, 0, neighbours)
    draws = check.whole("draws", draws, 100)
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
