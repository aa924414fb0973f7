"""The noise of every residual, by closed form, for a workload of tables: ResidualPlanner.

A table W is the sum over its subsets A of what residual A spreads over it, and residuals are
measured independently. So a cell of W has the variance ::

    Var_W = Σ_{A ⊆ W} C_WA·sigma_A²,     C_WA = Π_{i in A} (1 - 1/n_i)·Π_{j in W, not A} 1/n_j²,

and the cost of all is Σ c_A/sigma_A² of a given total T. The least Σ_W w_W·Var_W, with
v_A = Σ_W w_W·C_WA, is by Cauchy and Schwarz at ::

    sigma_A² = sqrt(c_A/v_A)·Σ_B sqrt(c_B·v_B) / T.

The least largest w_W·Var_W is that for some other weights, which are found by multiplying each by
its table's variance, over and over. For any weights that add up to 1 the least mean is at most the
least maximum, which says how far the end is.

No linear mechanism with Gaussian noise does better for either aim (Xiao, He, Zhang and Kifer,
"An optimal and scalable matrix mechanism for noisy marginals under convex loss functions", NeurIPS
2023), but for what `dither.synth.marginals._residual_law` adds to make the noise whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from math import prod

import numpy as np
import numpy.typing as npt

from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.mechanisms import DiscreteGaussian
from dither.mechanisms.counts._analytic import gaussian_mu
from dither.numeric import shortened, sqrt_lower
from dither.privacy import Charge, Loss, Neighbours, approximate, compose, gaussian, zcdp
from dither.synth.hierarchy._sparse import SparseMatrix
from dither.synth.marginals._residual_law import Allowance, cost
from dither.synth.model._junction import Clique

__all__ = ["MarginalPlan", "Noise", "plan", "real", "shares", "subsets"]

Floats = npt.NDArray[np.float64]

MOST_AXES = 16
_LARGEST_SIGMA2 = Fraction(2**80)
"""Noise of 2^40·15 in each cell, which differences along 16 axes leave below 2^60."""

_SHARE = Fraction(1, 2**20)
"""Of delta, for what is not Gaussian in whole numbers."""

_GRAIN = 1 << 160
_GAP = 1e-4
_ROUNDS = 5_000


@dataclass(frozen=True, slots=True)
class Noise:
    """The noise of one residual.

    Parameters
    ----------
    sigma2 : Fraction
        The discrete Gaussian's parameter; 0 where the residual is public.
    counted : tuple of int
        The sizes of the axes whose projection the charge counts on.
    soft : Fraction
        t², where the comparison with continuous noise is used; below sigma².
    """

    sigma2: Fraction
    counted: tuple[int, ...]
    soft: Fraction

    @property
    def variance(self) -> float:
        """Of one cell of the noise, before it is projected."""
        return DiscreteGaussian(self.sigma2).variance if self.sigma2 else 0.0


@dataclass(frozen=True, eq=False)
class MarginalPlan:
    """Which residuals are measured, with what noise, and what they cost together.

    Parameters
    ----------
    sizes : tuple of int
        How many values each attribute has.
    tables : tuple of Clique
        The workload.
    noise : mapping of Clique to Noise
        By residual.
    rho : Fraction
        It is rho-zCDP.
    loss : Loss
        What it loses, with the exact charge.
    gap : float
        How much larger the largest variance may be than the least possible, as a part of it; 0
        where the mean is what was minimised.
    """

    sizes: tuple[int, ...]
    tables: tuple[Clique, ...]
    noise: dict[Clique, Noise]
    rho: Fraction
    loss: Loss
    gap: float

    def variance(self, table: Clique) -> float:
        """Of each cell of a table that the residuals make up."""
        return sum(
            c * self.noise[a].variance for a, c in shares(real(table, self.sizes), self.sizes)
        )


def subsets(clique: Clique) -> list[Clique]:
    """All subsets, smaller ones first.

    Examples
    --------
    >>> subsets((1, 4))
    [(), (1,), (4,), (1, 4)]
    """
    return [a for r in range(len(clique) + 1) for a in combinations(clique, r)]


def real(table: Clique, sizes: Sequence[int]) -> Clique:
    """Without attributes of one value, which have no residual."""
    return tuple(i for i in table if sizes[i] > 1)


def shares(table: Clique, sizes: Sequence[int]) -> list[tuple[Clique, float]]:
    """Each subset A with C_WA; the table has no attribute of one value."""
    found: list[tuple[Clique, float]] = [((), 1.0)]
    for i in table:
        kept, spread = 1 - 1 / sizes[i], 1 / sizes[i] ** 2
        found = [
            (a + more, c * part) for a, c in found for more, part in (((), spread), ((i,), kept))
        ]
    return found


def plan(
    sizes: Sequence[int],
    tables: Sequence[Clique],
    epsilon: Fraction,
    delta: Fraction,
    *,
    weights: Sequence[float] | None = None,
    largest: bool = False,
    rows: int = 1,
    replace_one: bool = False,
    public_total: bool = False,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> MarginalPlan:
    """The noise of least error for a workload.

    Parameters
    ----------
    sizes : sequence of int
        How many values each attribute has.
    tables : sequence of Clique
        The workload: places of attributes, rising.
    epsilon, delta : Fraction
        What all of it may cost; both above 0.
    weights : sequence of float, optional
        How much each table's variance counts, above 0; all alike where left out.
    largest : bool
        Whether the largest weighted variance of a table's cells is minimised, and not their mean.
    rows : int
        How many rows one unit changes at most.
    replace_one : bool
        Whether they are replaced, and not added or removed.
    public_total : bool
        Whether the number of rows is public.
    neighbours : Neighbours
        What the loss is stated for.

    Raises
    ------
    ArgumentError
        Where the noise would be too wide for the sampler.
    """
    sizes = tuple(sizes)
    problem = _Problem.of(sizes, tables, weights)
    allowance = Allowance(_SHARE * delta / (problem.axes or 1))
    lost = _SHARE * delta
    law = _Law(problem, allowance, rows, replace_one, public_total)
    gap = 0.0
    if largest:
        problem, gap = problem.levelled(law.costs(law.projected))
        law = replace(law, problem=problem)
    # The xi of all axes and softenings add up to no more than what is lost, of delta as of rho.
    mu = gaussian_mu(epsilon, delta - lost)
    rho = rho_of_epsilon(epsilon, delta) - lost
    closely = True
    noise, spent = law.settled(mu * mu, closely)
    # zCDP alone asks for no softening: where noise is narrow it may be the better way.
    least = float(problem.best(law.costs(law.projected)) @ problem.wanted) * rows**2
    if rho > 0 and least < float(2 * rho) * problem.error(noise):
        other = law.settled(2 * rho, False)
        if problem.error(other[0]) < problem.error(noise):
            closely, (noise, spent) = False, other
    exact_rho = shortened(law.spent(noise, False) / 2 + lost, 64, up=True)
    if spent == 0:
        loss = Loss((), neighbours)
        exact_rho = Fraction(0)
    elif closely:
        # The deviation is rounded down, so that the loss is rounded up.
        far = gaussian(sqrt_lower(1 / spent, 96), neighbours=neighbours)
        loss = compose(far, approximate(0, lost, neighbours=neighbours))
    else:
        loss = zcdp(exact_rho, neighbours=neighbours)
    charge = Charge(epsilon, delta, exact_rho) if spent else Charge()
    return MarginalPlan(sizes, tuple(tables), noise, exact_rho, loss.with_charge(charge), gap)


@dataclass(frozen=True, eq=False, slots=True)
class _Problem:
    """A workload as coefficients: one row a table, one column a residual."""

    sizes: tuple[int, ...]
    sets: list[Clique]
    matrix: SparseMatrix
    weights: Floats

    @classmethod
    def of(
        cls, sizes: tuple[int, ...], tables: Sequence[Clique], weights: Sequence[float] | None
    ) -> _Problem:
        places: dict[Clique, int] = {(): 0}
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        for row, table in enumerate(tables):
            for a, share in shares(real(table, sizes), sizes):
                rows.append(row)
                columns.append(places.setdefault(a, len(places)))
                values.append(share)
        shape = len(tables), len(places)
        matrix = SparseMatrix(
            np.array(rows, np.int64), np.array(columns, np.int64), np.array(values), shape
        )
        given = np.ones(len(tables)) if weights is None else np.array(weights, float)
        return cls(sizes, list(places), matrix, given / given.mean())

    @property
    def axes(self) -> int:
        """Allowances: for each residual one, and one for each of its axes."""
        return sum(1 + len(a) for a in self.sets)

    @property
    def wanted(self) -> Floats:
        """v of each residual."""
        return self.matrix.times_turned(self.weights)

    def error(self, noise: dict[Clique, Noise]) -> float:
        """The weighted sum of variances."""
        return float(self.wanted @ np.array([float(noise[a].sigma2) for a in self.sets]))

    def best(self, costs: Floats) -> Floats:
        """sigma² of each residual where their whole cost is 1; 0 where one costs nothing."""
        wanted = self.wanted
        each: Floats = np.sqrt(costs / wanted) * np.sqrt(costs * wanted).sum()
        return each

    def levelled(self, costs: Floats) -> tuple[_Problem, float]:
        """The same with weights of which the least mean is the least maximum, and what is left."""
        asked = self.weights
        scaled = self.matrix.scaled(asked)
        part = np.full(len(asked), 1 / len(asked))
        best, kept = np.inf, part
        bound = 0.0
        for _ in range(_ROUNDS):
            wanted = scaled.times_turned(part)
            roots = np.sqrt(costs * wanted)
            least = roots.sum() ** 2
            with np.errstate(divide="ignore", invalid="ignore"):
                sigma2 = np.where(costs > 0, np.sqrt(costs / wanted), 0.0) * roots.sum()
            found = scaled.times(sigma2)
            bound = max(bound, least)
            if found.max() < best:
                best, kept = float(found.max()), part
            if best <= bound * (1 + _GAP) or least == 0:
                break
            part = part * found / least
            # What were 0 would stay so. The bound is that of weights which add up to 1; these add
            # up to as many times 10^-12 more as there are tables, far below the gap.
            part = np.maximum(part / part.sum(), 1e-12)
        gap = best / bound - 1 if bound else 0.0
        return replace(self, weights=asked * kept * len(asked)), float(gap)


@dataclass(frozen=True, eq=False, slots=True)
class _Law:
    """What residuals cost, by `dither.synth.marginals._residual_law`."""

    problem: _Problem
    allowance: Allowance
    rows: int
    replace_one: bool
    public_total: bool

    @property
    def projected(self) -> dict[Clique, tuple[int, ...]]:
        """All axes of each residual."""
        sizes = self.problem.sizes
        return {a: tuple(sizes[i] for i in a) for a in self.problem.sets}

    def cost(self, residual: Clique, axes: tuple[int, ...]) -> Fraction:
        """Of one row. A total moves by 1 at most: a row that is replaced leaves it, or, if no cell
        of a table holds it, moves it by 1.
        """
        return cost(axes, replace=self.replace_one) if residual else Fraction(1)

    def costs(self, counted: dict[Clique, tuple[int, ...]]) -> Floats:
        """Of each residual, in doubles."""
        found = [float(self.cost(a, counted[a])) for a in self.problem.sets]
        if self.public_total:
            found[0] = 0.0
        return np.array(found)

    def settled(self, total: Fraction, closely: bool) -> tuple[dict[Clique, Noise], Fraction]:
        """Noise whose exact cost is at most ``total``, and that cost.

        An axis that turns out not to be wide enough to count on is not counted on in the next
        round; at last none is left that changes.
        """
        counted = self.projected
        cells = {a: prod(counted[a]) for a in self.problem.sets}
        grown = Fraction(1)
        while True:
            best = self.problem.best(self.costs(counted))
            noise: dict[Clique, Noise] = {}
            scale = self.rows**2 * grown / total
            for a, relative in zip(self.problem.sets, best.tolist(), strict=True):
                if relative == 0:
                    noise[a] = Noise(Fraction(0), (), Fraction(0))
                    continue
                soft = Fraction(0)
                if closely:
                    soft = self.allowance.softening(cells[a], len(counted[a]))
                # Rounded up: wider noise costs less, and short numbers draw faster.
                sigma2 = shortened(scale * Fraction(relative) + soft, 40, up=True)
                noise[a] = Noise(sigma2, counted[a], soft)
            if max((n.sigma2 for n in noise.values()), default=0) > _LARGEST_SIGMA2:
                raise ArgumentError(
                    "epsilon is too small, or max_rows too large: the noise would be wider than "
                    "2**40; ask for a larger epsilon"
                )
            kept = {
                a: tuple(
                    n for n in one.counted if self.allowance.wide_enough(one.sigma2, n, cells[a])
                )
                for a, one in noise.items()
            }
            if any(kept[a] != one.counted for a, one in noise.items()):
                counted = counted | kept
                continue
            spent = self.spent(noise, closely)
            if spent <= total:
                return noise, spent
            # Doubles were a little off.
            grown *= spent / total * (1 + Fraction(1, 2**40))

    def spent(self, noise: dict[Clique, Noise], closely: bool) -> Fraction:
        """Σ |H_A·e|²/sigma_A², or over sigma_A² - t_A², each rounded up."""
        units = 0
        for a, one in noise.items():
            if one.sigma2:
                left = one.sigma2 - one.soft if closely else one.sigma2
                moved = self.rows**2 * self.cost(a, one.counted)
                bottom = moved.denominator * left.numerator
                # A floor of the negative: each cost is rounded up to 2^-160.
                units -= -moved.numerator * left.denominator * _GRAIN // bottom
        return Fraction(units, _GRAIN)
