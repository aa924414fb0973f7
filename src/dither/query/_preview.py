"""Error bars before spending: what the intervals will be, at given public group sizes.

Nothing private is read. The half-widths are those of the estimates themselves, made from
hypothetical measurements without noise in which every group has n rows, one per unit, and

- a mean or a ratio lies at the far end of its bounds, where its interval is widest;
- a variance or a quantile is that of values spread evenly over the bounds.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._display import ALL, table
from dither._format import cost_text, half_width, level, number_text, odds, wrapped
from dither._notebook import html_table
from dither._search import least_decimal
from dither.errors import ArgumentError
from dither.mechanisms._combination import Noise
from dither.mechanisms.quantiles.refined_quantiles import FIRST
from dither.plan.job import Leaves, Measurement, Total
from dither.plan.lowering.recipes import (
    Applied,
    KeyRead,
    KeysLeftOut,
    Known,
    Linear,
    MeanRecipe,
    PairRecipe,
    QuantileRecipe,
    Ranked,
    RatioRecipe,
    Recipe,
    VarianceRecipe,
    claims,
)
from dither.plan.schema import Kind
from dither.query._explain import UNACCOUNTED, in_blocks
from dither.query._modes import has_mode, shortfalls
from dither.query._noise import NoisePlan
from dither.query.estimates._calculated import Calculation
from dither.query.estimates._values import GroupEstimates, Measured, estimate
from dither.sql.names import free_name

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Preview", "budget_for", "check_sizes", "half_widths", "has_width", "preview"]


@dataclass(frozen=True, slots=True)
class Preview:
    """Half-widths of the intervals to come.

    Parameters
    ----------
    epsilon, delta : Fraction
        What was asked about.
    confidence : float
        Of the intervals.
    sizes : tuple of int
        Group sizes, in rows.
    widths : mapping of str to tuple of float
        By output: the half-width at each size; where sets of keys differ in it, the widest.
    missed : tuple of float or None
        Where keys are discovered: the probability that a key with so many units is missed.
    short : mapping of str to float
        By output that is a mode, which has no half-width: how many rows fewer than the most
        frequent value the chosen one has at most, with this confidence.
    by_set : mapping of str to mapping
        Where sets of keys differ in their half-widths: those of each set, as ``widths`` has them,
        by the names of its keys.
    blocks : tuple of str
        Where the budget is one of each block: which are read, and what is promised of each.
    """

    epsilon: Fraction
    delta: Fraction
    confidence: float
    sizes: tuple[int, ...]
    widths: Mapping[str, tuple[float, ...]]
    missed: tuple[float, ...] | None
    short: Mapping[str, float] = field(default_factory=dict)
    by_set: Mapping[str, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    blocks: tuple[str, ...] = ()

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: ``size``, one column for each output, and ``missed`` where it applies.

        Where sets of keys differ in their half-widths, ``keys`` names the set of each row. Where an
        output has one of these names, ``size_2``, ``missed_2`` or ``keys_2`` stands for it.
        """
        import polars as pl

        size, missed, keys = (free_name(n, [*self.widths]) for n in ("size", "missed", "keys"))
        sets = self.by_set or {"": self.widths}
        columns: dict[str, Any] = {}
        if self.by_set:
            columns[keys] = [name for name in sets for _ in self.sizes]
        columns[size] = list(self.sizes) * len(sets)
        columns |= {
            name: [width for widths in sets.values() for width in widths[name]]
            for name in self.widths
        }
        if self.missed is not None:
            columns[missed] = list(self.missed) * len(sets)
        return pl.DataFrame(columns)

    def __str__(self) -> str:
        lines = table(*self.shown(), left=1 if self.by_set else 0)
        shown = [self._headed(), *lines] if self.widths or self.missed is not None else []
        texts = (*self._short(), *([UNACCOUNTED] if shown else []), *self.blocks)
        return "\n".join([*shown, *(line for text in texts for line in wrapped(text))])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        first, *last = (
            f"<p>{html.escape(t)}</p>"
            for t in (self._headed(), *self._short(), UNACCOUNTED, *self.blocks)
        )
        made = html_table(*self.shown(), left=1 if self.by_set else 0)
        return f"<div>{first}{made}{''.join(last)}</div>"

    def _short(self) -> list[str]:
        return [
            f"the mode in {name} has at most {number_text(rows)} rows fewer than the most frequent "
            f"value, with {level(self.confidence)} confidence at "
            f"{cost_text(self.epsilon, self.delta)}"
            for name, rows in self.short.items()
        ]

    def _headed(self) -> str:
        asked = f"{level(self.confidence)} intervals at {cost_text(self.epsilon, self.delta)}"
        return f"half-widths of the {asked}"

    def shown(self) -> tuple[list[str], list[list[str]]]:
        """The table as text: its heads, and its rows."""
        heads = ["rows in a group", *(f"{name} ±" for name in self.widths)]
        heads = ["grouped by", *heads] if self.by_set else heads
        rows = [
            [
                *([name] if self.by_set else []),
                f"{n:,}",
                *(half_width(widths[output][i]) for output in self.widths),
                *([] if self.missed is None else [odds(self.missed[i])]),
            ]
            for name, widths in (self.by_set or {"": self.widths}).items()
            for i, n in enumerate(self.sizes)
        ]
        return (heads if self.missed is None else [*heads, "key missed"]), rows

    def plot(self, path: str | None = None, *, title: str | None = None) -> Any:
        """Draw half-width against group size; see ``dither.plots``."""
        from dither.plots.tables._preview import plot_preview

        each = {
            f"{output} by {name}": widths[output]
            for output in self.widths
            for name, widths in self.by_set.items()
        }
        return plot_preview(
            self.sizes,
            each or self.widths,
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            confidence=self.confidence,
            title=title,
            path=path,
        )


def preview(noise_plan: NoisePlan, sizes: Sequence[int], confidence: float) -> Preview:
    """The preview of a plan with its noise."""
    check_sizes(sizes, "sizes")
    confidence = check.confidence(confidence)
    by_set = _by_set(noise_plan, sizes, confidence)
    missed = None
    if noise_plan.allocation is not None and noise_plan.allocation.keys is not None:
        rule = noise_plan.allocation.keys
        missed = tuple(float(rule.miss_probability(n)) for n in sizes)
    short = shortfalls(noise_plan, confidence)
    widths = _widest(by_set.values())
    if all(one == widths for one in by_set.values()):
        by_set = {}
    return Preview(
        noise_plan.epsilon,
        noise_plan.delta,
        confidence,
        tuple(sizes),
        widths,
        missed,
        short,
        by_set,
        tuple(text for _, text in in_blocks(noise_plan.plan)),
    )


MOST_SIZE = 10**15
"""Of a group: no table has more rows."""


def check_sizes(sizes: Sequence[int], name: str) -> None:
    """Refuse a value that is not the size of a group."""
    whole = [n for n in sizes if isinstance(n, int) and not isinstance(n, bool)]
    if not sizes or len(whole) < len(sizes) or not 1 <= min(whole) <= max(whole) <= MOST_SIZE:
        raise ArgumentError(
            f"{name}: the size of a group is a whole number of at least 1 and at most 10^15"
        )


Widths = Mapping[str, tuple[float, ...]]
"""By output: the half-width of its interval at each group size."""


def half_widths(noise_plan: NoisePlan, sizes: Sequence[int], confidence: float) -> Widths:
    """Half-widths in the groups of the set of keys in which they are widest."""
    return _widest(_by_set(noise_plan, sizes, confidence).values())


def _widest(sets: Iterable[Widths]) -> Widths:
    first, *others = sets
    return {
        name: tuple(map(max, zip(widths, *(one[name] for one in others), strict=True)))
        for name, widths in first.items()
    }


def _by_set(noise_plan: NoisePlan, sizes: Sequence[int], confidence: float) -> dict[str, Widths]:
    """Half-widths by set of keys; of one set where all are alike, as sets of one noise are."""
    plan = noise_plan.plan
    outputs = [
        (output.name, recipe)
        for output, recipe, kind in zip(plan.query.outputs, plan.recipes, plan.kinds, strict=True)
        if has_width(recipe, kind)
    ]
    sets = plan.query.sets or (tuple(range(len(plan.query.keys))),)
    if plan.levels is None and not any(map(_tells_sets, (recipe for _, recipe in outputs))):
        sets = sets[:1]
    levels = noise_plan.levels if plan.levels is not None else noise_plan.levels * len(sets)
    found: dict[str, Widths] = {}
    for one, noises in zip(sets, levels, strict=True):
        called = ", ".join(plan.query.keys[i].name for i in one) or ALL
        assumed = _Assumed(noise_plan, noises, one, tuple(sizes))
        found[called] = {name: assumed.half_widths(recipe, confidence) for name, recipe in outputs}
    return found


def _tells_sets(recipe: Recipe) -> bool:
    """Whether GROUPING stands in it, which differs from set to set."""
    match recipe:
        case Applied(operands=operands):
            return any(map(_tells_sets, operands))
    return isinstance(recipe, KeysLeftOut)


def has_width(recipe: Recipe, kind: Kind | None) -> bool:
    """Whether it is a number that can be previewed: a rank depends on all other groups.

    A mode has no interval, and so has none what is calculated from it.
    """
    ranked = any(isinstance(one, Ranked) for one in claims(recipe))
    return kind is not None and kind.numeric and not ranked and not has_mode(recipe)


def budget_for(
    noise_plan_at: Callable[[Fraction], NoisePlan],
    wanted: Mapping[str, float],
    size: int,
    confidence: float,
) -> Fraction:
    """The smallest epsilon at which every wanted half-width is reached."""

    def reached(epsilon: Fraction) -> bool:
        widths = half_widths(noise_plan_at(epsilon), [size], confidence)
        return all(widths[name][0] <= most for name, most in wanted.items())

    best = least_decimal(reached, Fraction(1, 1000), Fraction(1000))
    if best is None:
        raise ArgumentError(
            f"half_width: not reached with {size:,} rows in a group at any epsilon up to 1000; "
            "ask for a wider one, or narrow the bounds"
        )
    return best


@dataclass(frozen=True)
class _Assumed:
    """Groups by one set of keys, of public sizes."""

    noise_plan: NoisePlan
    noises: dict[int, Noise | None]
    keys: tuple[int, ...]
    sizes: tuple[int, ...]

    def half_widths(self, recipe: Recipe, confidence: float) -> tuple[float, ...]:
        """Of the intervals of what a recipe gives."""
        n = np.asarray(self.sizes, dtype=np.float64)
        if isinstance(recipe, Applied | Known | KeyRead | KeysLeftOut):
            sets = [self.keys] * len(n)
            post = Calculation(len(n), (), self._estimate, np.arange(len(n)), sets)(
                recipe, confidence
            )
            with np.errstate(invalid="ignore"):
                half = (post.upper - post.lower) / 2
            # Where it is surely NULL there is nothing to be wrong about.
            return tuple(float(w) for w in np.where(half < 0, 0.0, half))
        if isinstance(recipe, QuantileRecipe):
            return _quantile_widths(recipe, self.noise_plan, n, confidence)
        values: dict[int, Any] = {
            i: _hypothetical(m, n, recipe)
            for i, m in enumerate(self.noise_plan.plan.job.measurements)
            if not isinstance(m, Leaves)
        }
        measured = Measured(values, self.noises, self.noise_plan.trees)
        found = estimate(recipe, measured, confidence, clip=False)
        half = (found.upper - found.lower) / 2
        if isinstance(recipe, MeanRecipe | RatioRecipe):
            low, high = recipe.lower, recipe.upper
            if low is not None and high is not None:
                half = np.minimum(half, float(high - low) / 2)
        return tuple(float(w) for w in half)

    def _estimate(self, recipe: Recipe, confidence: float) -> GroupEstimates:
        half = np.array(self.half_widths(recipe, confidence))
        middle = _middle(recipe, self.noise_plan, np.asarray(self.sizes, dtype=np.float64))
        return GroupEstimates(middle, middle - half, middle + half)


def _middle(recipe: Recipe, noise_plan: NoisePlan, n: Any) -> Any:
    """Where an interval lies: in the middle of the bounds, where these are all that is known."""
    if isinstance(recipe, Linear):
        values = {
            i: _hypothetical(m, n, recipe)
            for i, m in enumerate(noise_plan.plan.job.measurements)
            if not isinstance(m, Leaves)
        }
        measured = Measured(values, dict(noise_plan.noises), noise_plan.trees)
        return estimate(recipe, measured, 0.5, clip=False).value + 0 * n
    if isinstance(recipe, VarianceRecipe):
        third = recipe.half_width**2 / 3
        return float(third) ** (0.5 if recipe.root else 1) + 0 * n
    if isinstance(recipe, PairRecipe):
        # In the middle of their bounds two columns have nothing to do with each other.
        return 0 * n
    low, high = (getattr(recipe, end, None) for end in ("lower", "upper"))
    return (1.0 if low is None or high is None else float(low + high) / 2) + 0 * n


def _quantile_widths(
    recipe: QuantileRecipe, noise_plan: NoisePlan, n: Any, confidence: float
) -> tuple[float, ...]:
    tree, noise = noise_plan.trees[recipe.leaves], noise_plan.noises[recipe.leaves]
    assert noise is not None
    q, span = float(recipe.q), float(recipe.upper - recipe.lower)
    leaf = float(recipe.width)
    if recipe.below is not None:
        confidence = 1 - FIRST * (1 - confidence)
        # Values spread evenly leave many stretches open, unless there are very many of them.
        leaf *= noise_plan.trees[recipe.below].bins
    ranks = tree.half_widths([q], noise, confidence)[0] / recipe.parts + max(q, 1 - q)
    # At the ends the rank is known, but the quantile next to them is not.
    edge = int(min(max(round(q * tree.bins), 1), max(tree.bins - 1, 1)))
    rank = ranks[edge] if np.isfinite(ranks[edge]) else np.inf
    half = (rank / n * tree.bins + 1) * leaf
    if not recipe.exact:
        half = half + float(recipe.step) / 2
    return tuple(float(w) for w in np.minimum(half, span / 2))


def _hypothetical(measurement: Measurement, n: Any, recipe: Recipe) -> Any:
    match measurement:
        case Total(square=True):
            # Evenly spread over ±h, a square has mean h²/3.
            return -n * measurement.square_centre * measurement.parts / 3
        case Total():
            if isinstance(recipe, VarianceRecipe | PairRecipe):
                return 0 * n
            return n * max(measurement.ends, key=abs)
    return n
