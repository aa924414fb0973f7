"""Counts of every place of a spine by cells: which noise each level gets, what it costs, estimates.

Mechanism. Of each level l every place is counted in every cell, with independent integer noise of
one law; and, where ``totals`` asks for it, how many it has in all, with a law of its own. Places
whose numbers are public are not counted so.

Sensitivity. All tables count the same kept rows of a unit, so each changes by an integer vector of
‖·‖₁ <= l1 and ‖·‖₂² <= l2_squared (`plan.sensitivity`): a table of a wider level adds up cells of
the leaves, which leaves what one unit adds to it, at least 0 in every entry, of the same sum.

Cost. The tables' losses compose (`_divided`).

Division. Level l gets the share f_l of the budget (epsilon for Laplace, rho for Gaussian noise).
With n_l places, Σ n_l·Var_l over all levels is least where f_l is as the cube root of n_l (Laplace,
whose variance goes as 1/f²) or its square root (Gaussian, 1/f), by Lagrange's condition. ``totals``
takes its part of each level's share.

Estimates. Turn the cells of a place into their mean and what each differs from it. Noise of one law
in all cells stays uncorrelated under that rotation, and the total tells of the mean alone. So least
squares over everything measured is least squares on the spine twice (`_consistent`): of cells, of
which the differences from the mean are kept, and of totals, where a place's own measurement is its
noisy cells' sum and its noisy total, weighed by their variances, or its public number. For a set of
g of the C cells ::

    Var = V_cells·(g - g²/C) + (g/C)²·V_totals.

Public numbers. What the policy's public tables say of places enters as measurements of variance 0.
It is not read from private rows, and nothing of it is protected: the guarantee is about databases
that have these numbers, or any others, alike, and whoever knows them knows what they say of a
person.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._format import display_text
from dither._subjects import Subject
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError, BoundsError, nearest
from dither.mechanisms import DiscreteLaplace
from dither.mechanisms._combination import continuous_deviation
from dither.privacy import Loss, Neighbours
from dither.synth.hierarchy._consistent import Consistency, half_widths
from dither.synth.hierarchy._spine import Spine
from dither.synth.hierarchy._whole import whole_counts
from dither.synth.marginals._divided import LARGEST_FACTOR, Noise, noises_of

__all__ = ["Division", "HierarchyPlan", "LevelNoise", "MeasuredLevels", "plan_hierarchy"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Division = Literal["cells", "levels"] | Mapping[str, object]

MOST_CELLS = 1 << 25
"""Noisy counts of all levels together."""


@dataclass(frozen=True, slots=True)
class LevelNoise:
    """How one level is counted.

    Parameters
    ----------
    name : str
    share : Fraction
        Of the whole budget.
    cells : DiscreteLaplace or DiscreteGaussian
    total : DiscreteLaplace, DiscreteGaussian or None
    """

    name: str
    share: Fraction
    cells: Noise
    total: Noise | None


@dataclass(frozen=True, eq=False)
class MeasuredLevels:
    """Noisy counts, by level: all that is released."""

    cells: list[Integers]
    totals: list[Integers | None]


@dataclass(frozen=True, eq=False)
class HierarchyPlan:
    """A plan, fixed by public facts alone.

    Parameters
    ----------
    spine : Spine
    cells : int
        C, at least 1.
    levels : tuple of LevelNoise
    known : tuple of (array of int64, shape (places,), or None)
        By level: public numbers of its places, given or added up from those below.
    loss : Loss
        Of everything together, without its promise.
    """

    spine: Spine
    cells: int
    levels: tuple[LevelNoise, ...]
    known: tuple[Integers | None, ...]
    loss: Loss

    def measure(self, leaves: Integers) -> MeasuredLevels:
        """Draw the noise and add it: the only step that sees exact counts.

        Parameters
        ----------
        leaves : array of int64, shape (places of the last level, cells)
        """
        found, totals = [], []
        for level, exact in zip(self.levels, self.spine.sums(leaves), strict=True):
            found.append(exact + level.cells.draw(exact.shape))
            each = exact.sum(axis=1)
            noise = level.total
            totals.append(None if noise is None else each + noise.draw(len(each)))
        return MeasuredLevels(found, totals)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        spine = Spine.of(["state", "county"], [("N", "a"), ("S", "c"), ("N", "b")])
        made = plan_hierarchy(
            spine,
            2,
            epsilon=Fraction(1),
            delta=Fraction(0),
            l1=1,
            l2_squared=1,
            neighbours=Neighbours.ADD_REMOVE,
        )

        def run(leaves: Integers) -> list[int]:
            found = made.measure(leaves)
            tables = [*found.cells, *(t for t in found.totals if t is not None)]
            return [int(n) for one in tables for n in one.ravel()]

        here, there = np.zeros((2, 3, 2), dtype=np.int64)
        there[1, 1] = 1
        yield Subject("hierarchy of counts", run, here, there)

    @property
    def laplace(self) -> bool:
        """Whether the noise is discrete Laplace."""
        return isinstance(self.levels[0].cells, DiscreteLaplace)

    @cached_property
    def _of_cells(self) -> Consistency:
        places = self.spine.sizes
        own = [np.full(n, v.cells.variance) for n, v in zip(places, self.levels, strict=True)]
        return Consistency(self.spine, tuple(own))

    @cached_property
    def _own(self) -> list[float]:
        """By level: the weight of a place's cells against its measured total."""
        found = []
        for level in self.levels:
            if level.total is None:
                found.append(1.0)
                continue
            cells, total = self.cells * level.cells.variance, level.total.variance
            # By inverse variances; of two exact numbers, which agree, either would do.
            found.append(total / (cells + total) if cells + total > 0 else 0.5)
        return found

    def _combined(self, power: int, spread: Mapping[int, tuple[float, float]]) -> list[Floats]:
        """What a place's own measurement of its total carries, by level; 0 where it is public."""
        found = []
        for i, n in enumerate(self.spine.sizes):
            cell, total = spread[i]
            w = self._own[i]
            each = w**power * self.cells * cell + (1 - w) ** power * total
            found.append(np.full(n, 0.0 if self.known[i] is not None else each))
        return found

    @cached_property
    def _of_totals(self) -> Consistency:
        spread = {i: (v.cells.variance, _variance(v.total)) for i, v in enumerate(self.levels)}
        return Consistency(self.spine, tuple(self._combined(2, spread)))

    @cached_property
    def _spreads(self) -> tuple[list[list[Floats]], list[list[Floats]]]:
        """Of cells and of totals: exact variances, those of the continuous laws, cubes."""
        deviations = {
            i: (
                continuous_deviation(v.cells),
                0.0 if v.total is None else continuous_deviation(v.total),
            )
            for i, v in enumerate(self.levels)
        }
        cells, totals = [self._of_cells.errors], [self._of_totals.errors]
        for power in (2, 3):
            spread = {i: (c**power, t**power) for i, (c, t) in deviations.items()}
            own = [np.full(n, spread[i][0]) for i, n in enumerate(self.spine.sizes)]
            cells.append(self._of_cells.carried(own, power))
            totals.append(self._of_totals.carried(self._combined(power, spread), power))
        return cells, totals

    def variances(self, level: int, of: int = 1) -> Floats:
        """The exact variance of an estimate: the sum of so many cells of each place of a level."""
        cells, totals = (part[0][level] for part in self._spreads)
        return np.asarray(cells * (of - of**2 / self.cells) + (of / self.cells) ** 2 * totals)

    def half_widths(self, level: int, confidence: float, of: int = 1) -> Floats:
        """The half-width of the interval of such an estimate, shape (places,)."""
        c, (cells, totals) = self.cells, self._spreads
        inner, outer = of - of**2 / c, of / c
        square = cells[1][level] * inner + outer**2 * totals[1][level]
        cubes = None
        if self.laplace:
            # Both parts are sums over the same noises, so their cubes' roots add up (Minkowski).
            # Less its share of all cells, the sum has 1 - of/C on its own cells and of/C on the
            # others.
            each = of * (1 - of / c) ** 3 + (c - of) * (of / c) ** 3
            root = np.cbrt(cells[2][level] * each) + outer * np.cbrt(totals[2][level])
            cubes = root**3
        return half_widths(square, cubes, confidence)

    def alone(self, level: int, confidence: float, of: int = 1) -> float:
        """The half-width that the level's own measurement of such a sum would have by itself."""
        d = continuous_deviation(self.levels[level].cells)
        cubes = of * d**3 if self.laplace else None
        return float(half_widths(of * d**2, cubes, confidence))

    def estimates(self, measured: MeasuredLevels) -> tuple[list[Floats], list[Floats]]:
        """The best unbiased estimates: by level in all, shape (places,), and (places, cells)."""
        cells = self._of_cells.estimates(measured.cells)
        own = []
        for i, (noisy, total) in enumerate(zip(measured.cells, measured.totals, strict=True)):
            given, w = self.known[i], self._own[i]
            summed = noisy.sum(axis=1, dtype=np.float64)
            if given is not None:
                own.append(given.astype(np.float64))
            else:
                own.append(summed if total is None else w * summed + (1 - w) * total)
        totals = self._of_totals.estimates(own)
        made = [
            x - x.mean(axis=1, keepdims=True) + t[:, None] / self.cells
            for x, t in zip(cells, totals, strict=True)
        ]
        return totals, made

    def counts(self, measured: MeasuredLevels) -> list[Integers]:
        """Whole numbers of at least 0 that add up at every level, shape (places, cells)."""
        totals, cells = self.estimates(measured)
        return whole_counts(self.spine, totals, cells, self.known)


def _variance(noise: Noise | None) -> float:
    return 0.0 if noise is None else noise.variance


def plan_hierarchy(
    spine: Spine,
    cells: int,
    *,
    epsilon: Fraction,
    delta: Fraction,
    l1: int,
    l2_squared: int,
    neighbours: Neighbours,
    division: Division = "cells",
    totals: Fraction = Fraction(1, 10),
    known: Mapping[str, Integers] | None = None,
) -> HierarchyPlan:
    """Divide a budget over the levels.

    Parameters
    ----------
    spine : Spine
    cells : int
        How many cells each place is counted in.
    epsilon, delta : Fraction
        What all of it may lose; at delta 0 the noise is Laplace, else Gaussian or Laplace,
        whichever gives the smaller sum of variances.
    l1, l2_squared : int
        By how much one unit changes any one table.
    neighbours : Neighbours
    division : {"cells", "levels"} or mapping
        "cells": every noisy count of every level counts alike. "levels": every level alike. Or
        the levels' shares, by name.
    totals : Fraction
        In [0, 1): which part of each level's share measures how many each place has in all.
    known : mapping of str to array of int64
        By level: public numbers of its places.

    Raises
    ------
    ArgumentError
        A share is missing or not above 0, or public numbers contradict one another.
    BoundsError
        There are too many cells, or the noise would be too wide to draw.
    """
    size = sum(spine.sizes) * cells
    if size > MOST_CELLS:
        raise BoundsError(
            f"by: {size:,} noisy counts ({sum(spine.sizes):,} places in {cells:,} cells) are more "
            f"than {MOST_CELLS:,}; count by fewer columns, or by coarser bins"
        )
    part = Fraction(0) if cells == 1 else totals
    given = _known(spine, known or {})
    families = ("laplace",) if delta == 0 else ("laplace", "gaussian")
    bounds = l1, l2_squared
    options: list[tuple[float, HierarchyPlan]] = []
    for family in families:
        shares = _shares(spine, division, family)
        tables = [
            (level, kind, share * amount)
            for level, share in enumerate(shares)
            for kind, amount in (("cells", 1 - part * (given[level] is None)), ("total", part))
            if amount and (kind == "cells" or given[level] is None)
        ]
        if options and _least(tables, spine, epsilon, delta, l2_squared) > options[0][0]:
            continue
        drawn, loss = noises_of([t[2] for t in tables], family, epsilon, delta, bounds, neighbours)
        named = {(level, kind): n for (level, kind, _), n in zip(tables, drawn, strict=True)}
        levels = tuple(
            LevelNoise(name, share, named[i, "cells"], named.get((i, "total")))
            for i, (name, share) in enumerate(zip(spine.levels, shares, strict=True))
        )
        error = sum(n * level.cells.variance for n, level in zip(spine.sizes, levels, strict=True))
        options.append((error, HierarchyPlan(spine, cells, levels, tuple(given), loss)))
    return min(options, key=lambda option: option[0])[1]


def _least(
    tables: Sequence[tuple[int, str, Fraction]],
    spine: Spine,
    epsilon: Fraction,
    delta: Fraction,
    l2_squared: int,
) -> float:
    """No Gaussian noise that `noises_of` finds has a smaller sum of variances; quickly known."""
    most = LARGEST_FACTOR * rho_of_epsilon(epsilon, delta)
    return sum(
        spine.sizes[level] * float(l2_squared / (2 * most * share))
        for level, kind, share in tables
        if kind == "cells"
    )


def _shares(spine: Spine, division: Division, family: str) -> list[Fraction]:
    if isinstance(division, Mapping):
        for name in division:
            if name not in spine.levels:
                raise ArgumentError(
                    f"division: no level {name!r}" + nearest(str(name), spine.levels)
                )
        for name in spine.levels:
            if name not in division:
                raise ArgumentError(f"division must say the share of {name!r} too")
        given = [check.positive(f"division[{n!r}]", division[n]) for n in spine.levels]
    else:
        check.choice("division", division, ("cells", "levels"))
        power = 0.0 if division == "levels" else 1 / 3 if family == "laplace" else 1 / 2
        # Any shares are valid: short ones near the best keep parameters short.
        given = [Fraction(max(1, round(n**power * 1000)), 1000) for n in spine.sizes]
    return [each / sum(given) for each in given]


def _known(spine: Spine, known: Mapping[str, Integers]) -> list[Integers | None]:
    """Public numbers of every level that they reach: a level above is the sum of one below."""
    found: list[Integers | None] = [None] * spine.depth
    for level in range(spine.depth - 1, -1, -1):
        name = spine.levels[level]
        below = found[level + 1] if level + 1 < spine.depth else None
        summed = None if below is None else spine.summed(level, below)
        found[level] = given = known.get(name, summed)
        if given is None or summed is None:
            continue
        wrong = np.flatnonzero(given != summed)
        if wrong.size:
            at = int(wrong[0])
            place = display_text(spine.places[level][at])
            raise ArgumentError(
                f"invariants contradict one another: {name} {place} is said to have "
                f"{int(given[at]):,}, and what lies inside of it {int(summed[at]):,}"
            )
    return found
