"""A plan with its noise: which mechanism each measurement gets, and what the whole costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from dither.errors import ArgumentError, BoundsError, QueryError
from dither.mechanisms import AdditiveNoise, Allocation, KeyDiscovery, Need, allocate
from dither.mechanisms.quantile_tree import QuantileTree
from dither.mechanisms.refined_quantiles import OPEN
from dither.plan.job import Job, Leaves, Rows, Units
from dither.plan.lower import Plan
from dither.plan.recipes import QuantileRecipe
from dither.privacy import Charge, Neighbours, Promise
from dither.privacy.charge import group_factor

__all__ = ["Priced", "price", "promise_of", "quantiles_of"]

WIDEST_SCALE = 2**49
"""Noise wider than this is refused, in lattice units: the samplers are proven up to 2^50."""

MOST_CELLS = 2**27
"""More noisy counts than this, of all groups of a quantile, would not fit in memory."""


@dataclass(frozen=True, slots=True)
class Priced:
    """A plan ready to run at a given epsilon and delta.

    Parameters
    ----------
    plan : Plan
    epsilon, delta : Fraction
        As asked for.
    allocation : Allocation or None
        ``None`` where everything asked for is public.
    noises : dict of int to noise or None
        By measurement; ``None`` for a public one.
    trees : dict of int to QuantileTree
        By measurement, for histograms.
    units : int
        The measurement that counts distinct units, or -1: where keys are discovered.

    Notes
    -----
    Where one unit may have ``rows`` rows and no column tells whose they are, the noise protects a
    row, and its loss is charged for a group of so many. ``allocation`` is about a row then.
    """

    plan: Plan
    epsilon: Fraction
    delta: Fraction
    allocation: Allocation | None
    noises: dict[int, AdditiveNoise | None]
    trees: dict[int, QuantileTree]
    units: int

    @property
    def rows(self) -> int:
        """The rows of one unit for which what one row loses is charged."""
        return self.plan.table.unit_rows

    @property
    def promise(self) -> Promise:
        """The unit and the neighbours that the charge is stated for."""
        return promise_of(self.plan)

    @property
    def charge(self) -> Charge:
        """What the ledger is charged."""
        found = self.allocation.charge if self.allocation is not None else Charge()
        if self.rows == 1:
            return found.promising(self.promise)
        row = found.promising(Promise(f"row of {self.plan.table.name}", self.promise.neighbours))
        return row.to_group(self.promise.unit, self.rows)


def promise_of(plan: Plan) -> Promise:
    """Whom a plan protects, and against which change."""
    table = plan.table
    own = f"row of {table.name}" if table.unit is None else f"{table.unit} of {table.name}"
    replaced = plan.schema.replace_one
    return Promise(
        table.unit_name or own, Neighbours.REPLACE if replaced else Neighbours.ADD_REMOVE
    )


def price(plan: Plan, epsilon: Fraction, delta: Fraction) -> Priced:
    """Choose the noise of a plan.

    Parameters
    ----------
    plan : Plan
    epsilon : Fraction
        Above 0.
    delta : Fraction
        In [0, 1). A release that discovers keys needs it above 0.

    Raises
    ------
    ArgumentError
        Where epsilon or delta is out of range.
    BoundsError
        Where the noise would be wider than the samplers are proven for.
    QueryError
        Where quantiles of so many groups would not fit in memory.
    """
    if epsilon <= 0:
        raise ArgumentError("epsilon must be above 0")
    if not 0 <= delta < 1:
        raise ArgumentError("delta must lie in [0, 1)")
    job = plan.job
    inner, inner_delta = _of_a_row(epsilon, delta, plan.table.unit_rows)
    # Trees suit one family of noise or the other; both are tried, and the lesser error kept.
    either = delta > 0 and any(isinstance(m, Leaves) for m in job.measurements)
    options = [
        _priced(plan, inner, inner_delta, gaussian)
        for gaussian in ([False, True] if either else [False])
    ]
    best = replace(min(options, key=lambda option: option[0])[1], epsilon=epsilon, delta=delta)
    for i, tree in best.trees.items():
        histogram = job.measurements[i]
        assert isinstance(histogram, Leaves)
        read = OPEN * len(quantiles_of(plan, i)) if histogram.within else 1
        if (plan.public_keys or 1) * read * tree.nodes > MOST_CELLS:
            raise QueryError(
                f"quantiles of {plan.public_keys:,} groups need more than {MOST_CELLS:,} noisy "
                "counts; group by fewer or coarser keys"
            )
    for i, noise in best.noises.items():
        if noise is not None and noise.variance > float(WIDEST_SCALE) ** 2:
            raise _too_wide(i, job)
    return best


def quantiles_of(plan: Plan, place: int) -> list[QuantileRecipe]:
    """The quantiles that are read from a histogram, or inside its stretches."""
    return [
        r for r in plan.recipes if isinstance(r, QuantileRecipe) and place in (r.leaves, r.below)
    ]


def _of_a_row(epsilon: Fraction, delta: Fraction, rows: int) -> tuple[Fraction, Fraction]:
    """What one row may lose, so that a group of ``rows`` loses at most (epsilon, delta)."""
    if rows == 1:
        return epsilon, delta
    wide = group_factor(epsilon / rows, rows) if delta else Fraction(1)
    if wide is None:
        raise ArgumentError("epsilon is too large for a unit of several rows; nothing is protected")
    return epsilon / rows, delta / wide


def _too_wide(place: int, job: Job) -> BoundsError:
    return BoundsError(
        f"the noise of measurement {place + 1} of {len(job.measurements)} is too wide to draw "
        "exactly; narrow the bounds, lower max_groups or max_rows, or raise epsilon"
    )


def _priced(plan: Plan, epsilon: Fraction, delta: Fraction, gaussian: bool) -> tuple[float, Priced]:
    job = plan.job
    trees = {
        i: QuantileTree.choose(m.within or m.bins, "gaussian" if gaussian else "laplace")
        for i, m in enumerate(job.measurements)
        if isinstance(m, Leaves)
    }
    needs = []
    for i, (bound, weight) in enumerate(zip(plan.sensitivities, plan.weights, strict=True)):
        levels = trees[i].levels if i in trees else 1
        if weight:
            # A sum that nobody can change (of 0, say) is treated like any other, at least 1 wide.
            l1, l2_squared = (max(b, Fraction(1)) * levels for b in (bound.l1, bound.l2_squared))
            if l1 > weight * epsilon * WIDEST_SCALE:
                raise _too_wide(i, job)
            needs.append(Need(str(i), l1, l2_squared, weight))
    units = -1
    keys = None
    if plan.discovered:
        units = job.measurements.index(Units() if job.unit is not None else Rows())
        keys = KeyDiscovery(str(units), job.max_groups)
    if not needs:
        return 0.0, Priced(
            plan, epsilon, delta, None, dict.fromkeys(range(len(job.measurements))), {}, -1
        )
    allocation = allocate(needs, epsilon, delta, keys=keys)
    noises: dict[int, AdditiveNoise | None] = dict.fromkeys(range(len(job.measurements)))
    for share in allocation.shares:
        noises[int(share.need.name)] = share.mechanism
    error = 0.0
    for i, tree in trees.items():
        noise = noises[i]
        assert noise is not None
        error += float(plan.weights[i]) * _rank_error(tree, noise)
    return error, Priced(plan, epsilon, delta, allocation, noises, trees, units)


def _rank_error(tree: QuantileTree, noise: AdditiveNoise) -> float:
    """How well the rank of a typical edge will be known."""
    widths = tree.half_widths([0.5], noise, 0.95)[0]
    inner = widths[np.isfinite(widths)]
    return float(np.log(inner).mean()) if inner.size else 0.0
