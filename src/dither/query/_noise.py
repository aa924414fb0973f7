"""The noise of a plan: which mechanism each measurement gets, what it costs, and where it is added.

Exact integers come in, noisy integers go out, and nothing exact goes further.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError, BoundsError, QueryError
from dither.mechanisms import (
    AdditiveNoise,
    Allocation,
    Exponential,
    KeyDiscovery,
    NoiseRequest,
    allocate,
)
from dither.mechanisms._combination import Noise, SummedNoise
from dither.mechanisms.quantiles.quantile_tree import QuantileTree
from dither.mechanisms.quantiles.refined_quantiles import OPEN, OpenedBins
from dither.plan.answers import ExactAnswer, Histogram
from dither.plan.job import (
    Job,
    Leaves,
    Measurement,
    Rows,
    Sides,
    Units,
    UnitSizeHistogram,
    VoteHistogram,
    public_groups,
)
from dither.plan.lowering.lower import Plan
from dither.plan.lowering.recipes import CellsRecipe, QuantileRecipe
from dither.plan.schema import Value
from dither.privacy import Charge, Loss, Neighbours, Promise
from dither.privacy._charge import group_factor
from dither.query.estimates._values import Measured, refined

__all__ = [
    "KeyTuple",
    "NoisePlan",
    "Noisy",
    "add_noise",
    "noised",
    "on_grid",
    "plan_noise",
    "promise_of",
    "quantiles_of",
    "row_of",
    "without_groups",
]

WIDEST_SCALE = 2**49
"""Noise wider than this is refused, in lattice units: the samplers are proven up to 2^50."""

HISTOGRAMS = Leaves | UnitSizeHistogram | Sides
"""Measurements that are a row of integers for each group."""

MOST_VOTES = 2**20
"""More counts than this, of all groups of a mode, would take minutes to weigh exactly."""

MOST_CELLS = 2**27
"""More noisy counts than this, of all groups of a quantile, would not fit in memory."""


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """The noise of a plan at a given epsilon and delta: what each measurement gets, and its cost.

    Parameters
    ----------
    plan : Plan
    epsilon, delta : Fraction
        As asked for.
    allocation : Allocation or None
        ``None`` where everything asked for is public.
    noises : dict of int to noise or None
        By measurement; ``None`` for a public one, and for one that is chosen from.
    choices : dict of int to Exponential
        By measurement, for ``VoteHistogram``: nothing but the choice leaves it.
    trees : dict of int to QuantileTree
        By measurement, for histograms.
    units : int
        The measurement that counts distinct units, or -1: where keys are discovered.

    Notes
    -----
    Where one unit may have ``rows`` rows and no column says whose they are, the noise protects a
    row, and its loss is charged for a group of so many. ``allocation`` is about a row then.
    """

    plan: Plan
    epsilon: Fraction
    delta: Fraction
    allocation: Allocation | None
    noises: dict[int, AdditiveNoise | None]
    choices: dict[int, Exponential]
    trees: dict[int, QuantileTree]
    units: int

    @property
    def rows(self) -> int:
        """The rows of one unit for which what one row loses is charged."""
        return self.plan.unit_rows

    @property
    def steps(self) -> int:
        """How many steps of one cost it is: one for each block, where these are read in parallel.

        What is asked for, epsilon and delta, is what one of them may cost; ``charge`` and ``loss``
        are those of all.
        """
        blocks = self.plan.blocks
        return 1 if blocks is None else blocks.steps

    @property
    def levels(self) -> list[dict[int, Noise | None]]:
        """The noise of each measurement in each level, where levels are made to add up; else one
        for all groups.
        """
        made = self.plan.levels
        if made is None:
            return [dict(self.noises)]
        weights = [tuple(made.weights(at)) for at in range(len(made.sets))]
        return [
            {
                i: noise if noise is None or one == ((1.0, 1),) else SummedNoise(noise, one)
                for i, noise in self.noises.items()
            }
            for one in weights
        ]

    def measured(self, values: dict[int, Any]) -> Measured:
        """What estimates are made from, of all groups that are released."""
        made = self.plan.levels
        parts = () if made is None else tuple(zip(made.slices, self.levels, strict=True))
        return Measured(values, dict(self.noises), self.trees, parts)

    @property
    def promise(self) -> Promise:
        """The unit and the neighbours that the charge is stated for."""
        return promise_of(self.plan)

    @property
    def charge(self) -> Charge:
        """What the ledger is charged."""
        found = self.allocation.charge if self.allocation is not None else Charge()
        found *= self.steps
        if self.rows == 1:
            return found.promising(self.promise)
        row = found.promising(Promise(row_of(self.plan), self.promise.neighbours))
        return row.to_group(self.promise.unit, self.rows)

    @property
    def loss(self) -> Loss:
        """What the release costs, as a loss that composes; its charge is `charge`."""
        promise = self.promise
        found = Loss(neighbours=promise.neighbours)
        if self.allocation is not None:
            found = self.allocation.loss(neighbours=promise.neighbours) * self.steps
        if self.rows == 1:
            return found.promising(promise)
        return found.promising(row_of(self.plan)).to_group(promise.unit, self.rows)


def row_of(plan: Plan) -> str:
    """What noise protects where one unit may have several of them: a row that is read."""
    unnested = plan.unit_rows > plan.table.unit_rows
    return f"{'element' if unnested else 'row'} of {plan.table.name}"


def promise_of(plan: Plan) -> Promise:
    """Whom a plan protects, and against which change."""
    table = plan.table
    own = f"row of {table.name}" if table.unit is None else f"{table.unit} of {table.name}"
    replaced = plan.schema.replace_one
    return Promise(
        table.unit_name or own, Neighbours.REPLACE if replaced else Neighbours.ADD_REMOVE
    )


def plan_noise(plan: Plan, epsilon: Fraction, delta: Fraction) -> NoisePlan:
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
    inner, inner_delta = _of_a_row(epsilon, delta, plan.unit_rows)
    # Trees suit one family of noise or the other; both are tried, and the lesser error kept.
    either = delta > 0 and any(isinstance(m, Leaves) for m in job.measurements)
    options = [
        _of_family(plan, inner, inner_delta, gaussian)
        for gaussian in ([False, True] if either else [False])
    ]
    best = replace(min(options, key=lambda option: option[0])[1], epsilon=epsilon, delta=delta)
    for i, tree in best.trees.items():
        histogram = job.measurements[i]
        stretched = isinstance(histogram, Leaves) and histogram.within
        read = OPEN * len(quantiles_of(plan, i)) if stretched else 1
        if (plan.public_keys or 1) * read * tree.nodes > MOST_CELLS:
            raise QueryError(
                f"quantiles of {plan.public_keys:,} groups need more than {MOST_CELLS:,} noisy "
                "counts; group by fewer or coarser keys"
            )
    for i in best.choices:
        if (plan.public_keys or 1) * _bins(job.measurements[i]) > MOST_VOTES:
            raise QueryError(
                f"the modes of {plan.public_keys:,} groups would weigh more than {MOST_VOTES:,} "
                "counts; group by fewer or coarser keys, or choose among fewer values"
            )
    for i, noise in best.noises.items():
        if noise is not None and noise.variance > float(WIDEST_SCALE) ** 2:
            raise _too_wide(i, job)
    return best


def _bins(measurement: Measurement) -> int:
    assert isinstance(measurement, VoteHistogram)
    return measurement.bins


def quantiles_of(plan: Plan, place: int) -> list[QuantileRecipe]:
    """The quantiles that are read from a histogram, or inside its stretches."""
    return [
        r for r in plan.measured if isinstance(r, QuantileRecipe) and place in (r.leaves, r.below)
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


def _of_family(
    plan: Plan, epsilon: Fraction, delta: Fraction, gaussian: bool
) -> tuple[float, NoisePlan]:
    """Noise with trees that suit one family of it, and how large an error to expect."""
    job = plan.job
    flat = {recipe.cells for recipe in plan.measured if isinstance(recipe, CellsRecipe)}
    trees = {
        i: QuantileTree(m.bins, m.bins, 1)
        if i in flat or not isinstance(m, Leaves)
        else QuantileTree.choose(m.within or m.bins, "gaussian" if gaussian else "laplace")
        for i, m in enumerate(job.measurements)
        if isinstance(m, HISTOGRAMS) and not isinstance(m, VoteHistogram)
    }
    needs = []
    for i, (bound, weight) in enumerate(zip(plan.sensitivities, plan.weights, strict=True)):
        levels = trees[i].levels if i in trees else 1
        if weight:
            # A sum that nobody can change (of 0, say) is treated like any other, at least 1 wide.
            l1, l2_squared = (max(b, Fraction(1)) * levels for b in (bound.l1, bound.l2_squared))
            choice = isinstance(job.measurements[i], VoteHistogram)
            if l1 > weight * epsilon * WIDEST_SCALE:
                raise _too_wide(i, job)
            needs.append(NoiseRequest(str(i), l1, l2_squared, weight, choice))
    units = -1
    keys = None
    if plan.discovered:
        units = job.measurements.index(Units() if job.unit is not None else Rows())
        keys = KeyDiscovery(str(units), job.max_groups)
    if not needs:
        return 0.0, NoisePlan(
            plan, epsilon, delta, None, dict.fromkeys(range(len(job.measurements))), {}, {}, -1
        )
    allocation = allocate(needs, epsilon, delta, keys=keys)
    noises: dict[int, AdditiveNoise | None] = dict.fromkeys(range(len(job.measurements)))
    choices: dict[int, Exponential] = {}
    for share in allocation.shares:
        if isinstance(share.mechanism, Exponential):
            choices[int(share.need.name)] = share.mechanism
        else:
            noises[int(share.need.name)] = share.mechanism
    error = 0.0
    for i, tree in trees.items():
        noise = noises[i]
        assert noise is not None
        error += float(plan.weights[i]) * _rank_error(tree, noise)
    return error, NoisePlan(plan, epsilon, delta, allocation, noises, choices, trees, units)


def _rank_error(tree: QuantileTree, noise: AdditiveNoise) -> float:
    """How well the rank of a typical edge will be known."""
    widths = tree.half_widths([0.5], noise, 0.95)[0]
    inner = widths[np.isfinite(widths)]
    return float(np.log(inner).mean()) if inner.size else 0.0


KeyTuple = tuple[Value | float | None, ...]


@dataclass(frozen=True, slots=True)
class Noisy:
    """Noisy measurements of every released group.

    Parameters
    ----------
    keys : list of tuple
        The groups: all public ones in declared order, or the discovered ones in order of value.
    values : dict of int to array
        By measurement: noisy integers, shape (groups,). For ``Leaves``: a noisy tree, as
        ``mechanisms.quantile_tree`` gives it, or what was read below, as
        ``mechanisms.refined_quantiles`` does. For ``VoteHistogram``: the place of the leaf that
        was chosen.
    """

    keys: list[KeyTuple]
    values: dict[int, Any]


def add_noise(noise_plan: NoisePlan, answer: ExactAnswer, confidence: float) -> Noisy:
    """Add each measurement's noise to its exact integers, over all public or all found groups.

    ``confidence`` is that of the intervals to come: it says where a wide range is read closely.
    """
    plan = noise_plan.plan
    if plan.discovered:
        keys = list(answer.keys)
        exact = dict(answer.values)
    else:
        keys = public_groups(plan.job.keys, plan.job.sets)
        exact = on_grid(keys, answer, plan.job.measurements)
        if plan.levels is not None:
            keys = public_groups(plan.job.keys, plan.query.sets)
            exact = {i: plan.levels.sums(values) for i, values in exact.items()}
    noisy: dict[int, Any] = {}
    if plan.discovered:
        assert noise_plan.allocation is not None
        assert noise_plan.allocation.keys is not None
        counts = noised(exact[noise_plan.units], noise_plan.noises[noise_plan.units])
        kept = np.flatnonzero(noise_plan.allocation.keys.shown(counts))
        kept = np.array(sorted(kept, key=lambda i: _rank(keys[i])), dtype=np.int64)
        keys = [keys[i] for i in kept]
        exact = {i: values[kept] for i, values in exact.items()}
        noisy[noise_plan.units] = counts[kept]
    noisy = _measured(noise_plan, exact, noisy, confidence)
    if plan.levels is not None:
        noisy = {i: plan.levels.fitted(values) for i, values in noisy.items()}
    return Noisy(keys, noisy)


def _measured(
    noise_plan: NoisePlan, exact: dict[int, Any], noisy: dict[int, Any], confidence: float
) -> dict[int, Any]:
    """Each measurement with its noise, beside those that have theirs already."""
    # A histogram that is read in stretches comes after the one that says which.
    last = {r.below for r in noise_plan.plan.measured if isinstance(r, QuantileRecipe)}
    for i, measurement in sorted(
        enumerate(noise_plan.plan.job.measurements), key=lambda m: m[0] in last
    ):
        if i in noisy:
            continue
        if isinstance(measurement, VoteHistogram):
            noisy[i] = _chosen(exact[i], noise_plan.choices[i])
        elif i in last:
            noisy[i] = _opened(i, noise_plan, noisy, exact[i], confidence)
        elif isinstance(measurement, HISTOGRAMS):
            noise = noise_plan.noises[i]
            assert noise is not None
            noisy[i] = noise_plan.trees[i].measure(exact[i].dense(), noise)
        else:
            noisy[i] = noised(exact[i], noise_plan.noises[i])
    return noisy


def _chosen(votes: Histogram, mechanism: Exponential) -> npt.NDArray[np.int64]:
    """In each group the place of one leaf, by chance that grows with its count."""
    return np.array([mechanism.draw(counts) for counts in votes.tolist()], dtype=np.int64)


def without_groups(noise_plan: NoisePlan, confidence: float) -> Noisy:
    """What ``add_noise`` gives where there is no group at all; nothing is drawn."""
    nothing = np.zeros((0,), dtype=np.int64)
    exact: dict[int, Any] = {
        i: Histogram(0, m.bins, nothing, nothing) if isinstance(m, HISTOGRAMS) else nothing
        for i, m in enumerate(noise_plan.plan.job.measurements)
    }
    return Noisy([], _measured(noise_plan, exact, {}, confidence))


def _opened(
    place: int, noise_plan: NoisePlan, noisy: dict[int, Any], exact: Histogram, confidence: float
) -> OpenedBins:
    recipes = quantiles_of(noise_plan.plan, place)
    top, layout, noises = refined(recipes[0], noise_plan.trees, noise_plan.noises)
    qs = [float(r.q) for r in recipes]
    return layout.measure(noisy[top], exact.stretches, qs, noises, confidence, recipes[0].parts)


def on_grid(
    keys: list[KeyTuple], answer: ExactAnswer, measurements: tuple[Any, ...]
) -> dict[int, Any]:
    """Every public key a row, in declared order, with zeros where no unit has a row."""
    place = {key: i for i, key in enumerate(keys)}
    found = [(place[key], j) for j, key in enumerate(answer.keys) if key in place]
    to = np.array([i for i, _ in found], dtype=np.int64)
    of = np.array([j for _, j in found], dtype=np.int64)
    grid: dict[int, Any] = {}
    for i, measurement in enumerate(measurements):
        values = answer.values[i]
        if isinstance(measurement, HISTOGRAMS):
            moves = np.full(len(answer.keys), -1, dtype=np.int64)
            moves[of] = to
            grid[i] = values.moved(moves, len(keys))
            continue
        grid[i] = np.zeros(len(keys), dtype=values.dtype)
        grid[i][to] = values[of]
    return grid


def noised(exact: npt.NDArray[Any], noise: AdditiveNoise | None) -> npt.NDArray[Any]:
    """Exact integers plus fresh noise; a public measurement has none."""
    if noise is None:
        return exact
    drawn = noise.draw(exact.shape)
    # An int64 sum could only wrap where the engine has not proven a bound; it hands objects then.
    return np.asarray(exact + (drawn.astype(object) if exact.dtype == object else drawn))


def _rank(key: KeyTuple) -> tuple[tuple[bool, Any], ...]:
    """Order keys by value, NULL last, so that the engine's order of rows is not shown."""
    return tuple((part is None, 0 if part is None else part) for part in key)
