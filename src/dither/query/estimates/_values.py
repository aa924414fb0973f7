"""Values and intervals from noisy measurements: post-processing, after all privacy is paid for.

Every interval is built from a pivot, so that its coverage is at least nominal whatever the data:
a linear combination of measurements errs by the same combination of noises; a ratio R = S/n makes
S - R n vanish, so the ratios R for which the noisy S - R n is no larger than its noise allows form
an interval (Fieller), and so for any two combinations, which may share measurements.
``mechanisms._ratio`` says how a variance follows from two of those.

The intervals are about the noise alone: about the answer that the same query would have given
without noise, after clamping to the declared bounds and after bounding what one unit contributes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.mechanisms import (
    AdditiveNoise,
    Combination,
    DiscreteLaplace,
    PairSums,
    half_width,
    pair_interval,
    ratio_interval,
    shared_ratio_interval,
    variance_interval,
)
from dither.mechanisms._combination import Noise
from dither.mechanisms.quantiles.quantile_tree import QuantileTree
from dither.mechanisms.quantiles.refined_quantiles import RefinedQuantiles
from dither.plan.lowering.recipes import (
    CellsRecipe,
    Linear,
    MeanRecipe,
    ModeRecipe,
    PairRecipe,
    QuantileRecipe,
    RanksRecipe,
    RatioRecipe,
    Recipe,
    VarianceRecipe,
)

__all__ = [
    "GroupEstimates",
    "Measured",
    "around_linear",
    "around_ratio",
    "encoded",
    "estimate",
    "refined",
]

Floats = npt.NDArray[np.float64]

SILENT = DiscreteLaplace(Fraction(1, 100))
"""Stands for the noise of a public measurement, which has none: it is hardly ever not 0."""


@dataclass(frozen=True, slots=True)
class GroupEstimates:
    """A value with its interval, for each group: float64 arrays of shape (groups,)."""

    value: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, slots=True)
class Measured:
    """What an estimate is made from: noisy measurements, their noises, and the trees' layouts."""

    values: dict[int, Any]
    noises: dict[int, Noise | None]
    trees: dict[int, QuantileTree]
    parts: tuple[tuple[slice, dict[int, Noise | None]], ...] = ()
    """The noises of some groups after others, where they are not the same for all."""


def estimate(
    recipe: Recipe, measured: Measured, confidence: float, *, clip: bool = True
) -> GroupEstimates:
    """The value and interval of one output in every group.

    Parameters
    ----------
    recipe : Recipe
    measured : Measured
    confidence : float
        In (0, 1).
    clip : bool
        Cut values and intervals to what is possible by the public bounds.
    """
    if measured.parts:
        each = [
            estimate(
                recipe,
                Measured({i: v[at] for i, v in measured.values.items()}, noises, measured.trees),
                confidence,
                clip=clip,
            )
            for at, noises in measured.parts
        ]
        ends = zip(*((one.value, one.lower, one.upper) for one in each), strict=True)
        return GroupEstimates(*map(np.concatenate, ends))
    match recipe:
        case Linear():
            return _linear(recipe, measured, confidence, clip)
        case MeanRecipe():
            return _mean(recipe, measured, confidence, clip)
        case VarianceRecipe():
            return _variance(recipe, measured, confidence)
        case PairRecipe():
            return _pair(recipe, measured, confidence)
        case QuantileRecipe():
            return _quantile(recipe, measured, confidence)
        case ModeRecipe(votes=votes, values=values):
            # What most rows have in truth may be any of them.
            place = _floats(measured, votes)
            return GroupEstimates(place, 0 * place, 0 * place + len(values) - 1)
        case RanksRecipe():
            return _ranks(recipe, measured, confidence)
        case CellsRecipe():
            return _cells(recipe, measured, confidence)
        case RatioRecipe():
            return _ratio(recipe, measured, confidence, clip)
    raise TypeError(type(recipe).__name__)


def _floats(measured: Measured, at: int) -> Floats:
    return np.asarray(measured.values[at], dtype=np.float64)


def _linear(recipe: Linear, measured: Measured, confidence: float, clip: bool) -> GroupEstimates:
    value = _combination(recipe, measured)
    noises = [(float(c), measured.noises[i]) for i, c in recipe.terms]
    terms = [(c, noise) for c, noise in noises if noise is not None]
    width = half_width(terms, confidence) if terms else np.zeros(1)
    return around_linear(recipe, value, width, clip)


def around_linear(
    recipe: Linear, value: Floats, width: Floats | float, clip: bool = True
) -> GroupEstimates:
    """The interval of such a half-width about values, as far as the truth can lie."""
    lower, upper = value - width, value + width
    if clip and (recipe.lower, recipe.upper) != (None, None):
        # The value is left as it is, so that sums over groups stay unbiased; its interval is that
        # of the value that people are shown.
        low = -np.inf if recipe.lower is None else float(recipe.lower)
        high = np.inf if recipe.upper is None else float(recipe.upper)
        inside = _within(value, lower, upper, low, high)
        lower, upper = inside.lower, inside.upper
    return GroupEstimates(value, lower, upper)


def _combination(recipe: Linear, measured: Measured) -> Floats:
    start = np.full(1, float(recipe.constant))
    return sum((float(c) * _floats(measured, i) for i, c in recipe.terms), start=start)


def _quotient(measured: Measured, top: int, bottom: int, confidence: float) -> GroupEstimates:
    """One measurement over another; the lower one is above 0 in truth."""
    numerator, denominator = _floats(measured, top), _floats(measured, bottom)
    noises = measured.noises[top], measured.noises[bottom]
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(denominator > 0, numerator / denominator, np.nan)
    over, under = (noise or SILENT for noise in noises)
    lower, upper = ratio_interval(numerator, denominator, over, under, confidence)
    return GroupEstimates(value, lower, upper)


def _mean(recipe: MeanRecipe, measured: Measured, confidence: float, clip: bool) -> GroupEstimates:
    raw = _quotient(measured, recipe.total, recipe.count, confidence)
    step, centre = float(recipe.step), float(recipe.centre)
    value, lower, upper = (centre + step * part for part in (raw.value, raw.lower, raw.upper))
    if not clip:
        return GroupEstimates(value, lower, upper)
    low, high = float(recipe.lower), float(recipe.upper)
    # Where the noisy count is not above 0 nothing is known, and the middle is as good as any.
    return _within(np.where(np.isnan(value), (low + high) / 2, value), lower, upper, low, high)


def _variance(recipe: VarianceRecipe, measured: Measured, confidence: float) -> GroupEstimates:
    at = (recipe.count, recipe.total, recipe.square)
    count, total, square = (_floats(measured, i) for i in at)
    half = float(recipe.half_width / recipe.step)
    noises = [measured.noises[i] or SILENT for i in at]
    lower, upper = variance_interval(
        count,
        total,
        square,
        (noises[0], noises[1], noises[2]),
        confidence,
        mean_bounds=(-half, half),
        square_centre=recipe.square_centre,
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        value = square / count + recipe.square_centre - (total / count) ** 2
    value = np.clip(np.where(count > 0, value, half**2 / 2), 0, half**2)
    if recipe.sample:
        fewest = count - half_width([(1.0, noises[0])], confidence)
        value, upper = value * _bessel(count), upper * _bessel(fewest)
    step = float(recipe.step)
    if recipe.root:
        return _around(*(step * np.sqrt(e) for e in (value, lower, upper)))
    return _around(*(step * step * e for e in (value, lower, upper)))


def _pair(recipe: PairRecipe, measured: Measured, confidence: float) -> GroupEstimates:
    """The interval of what is calculated from two columns' sums; its value is calculated there."""
    counts = {r.count for r in (recipe.product, *recipe.means)}
    # All of them count the same rows, each with noise of its own.
    n = Combination({i: np.full((), 1 / len(counts)) for i in counts})
    first, second = recipe.means
    totals = [Combination({m.total: np.array(float(m.step))}) for m in recipe.means]
    off = [float(m.centre - c) for m, c in zip(recipe.means, recipe.middles, strict=True)]
    product = Combination({recipe.product.total: np.array(float(recipe.product.step))})
    # About the centres of the two lattices, rather than what was taken from values.
    x, y = totals
    across = float(recipe.product.centre) - off[0] * off[1]
    product = product + n * across + x * -off[1] + y * -off[0]
    squares = [
        (
            Combination({v.square: np.ones(())})
            + Combination({v.count: np.ones(())}) * v.square_centre
        )
        * float(v.step) ** 2
        for v in recipe.squares
    ]
    reach = [float(max(m.upper - m.centre, m.centre - m.lower)) for m in (first, second)]
    xx, yy = (*squares, None, None)[:2]
    sums = PairSums(n, x, y, product, xx, yy, (reach[0], reach[1]))
    used = {i for c in (n, x, y, product, *squares) for i in c.terms}
    values = {i: _floats(measured, i) for i in used}
    noises = {i: measured.noises[i] or SILENT for i in used}
    word = "CORRELATION" if recipe.word == "SQUARED" else recipe.word
    lower, upper = pair_interval(word, sums, values, noises, confidence)
    if word == "CORRELATION":
        lower, upper = np.clip(lower, -1.0, 1.0), np.clip(upper, -1.0, 1.0)
    if recipe.word == "SQUARED":
        least = np.where((lower <= 0) & (upper >= 0), 0.0, np.minimum(lower**2, upper**2))
        lower, upper = least, np.maximum(lower**2, upper**2)
    return GroupEstimates(np.full_like(lower, np.nan), lower, upper)


def _bessel(count: Floats) -> Floats:
    """n/(n - 1); at most 2, its value for two rows."""
    n = np.maximum(count, 2.0)
    return np.asarray(n / (n - 1))


def refined(
    recipe: QuantileRecipe,
    trees: dict[int, QuantileTree],
    noises: Mapping[int, Noise | None],
) -> tuple[int, RefinedQuantiles, tuple[AdditiveNoise, AdditiveNoise]]:
    """The first of two histograms, the layout of both, and their noises."""
    assert recipe.below is not None
    top, below = trees[recipe.leaves], trees[recipe.below]
    bins = -(
        -int((recipe.upper - recipe.lower) / recipe.step + 1) // int(recipe.width / recipe.step)
    )
    first, second = noises[recipe.leaves], noises[recipe.below]
    assert isinstance(first, AdditiveNoise)
    assert isinstance(second, AdditiveNoise)
    return recipe.leaves, RefinedQuantiles(top, below, bins), (first, second)


def _quantile(recipe: QuantileRecipe, measured: Measured, confidence: float) -> GroupEstimates:
    qs, noisy = [float(recipe.q)], measured.values[recipe.leaves]
    if recipe.below is None:
        tree, noise = measured.trees[recipe.leaves], measured.noises[recipe.leaves]
        assert isinstance(noise, AdditiveNoise)
        found = tree.quantiles(noisy, qs, noise, confidence, recipe.parts)
    else:
        _, layout, noises = refined(recipe, measured.trees, measured.noises)
        opened = measured.values[recipe.below]
        found = layout.quantiles(noisy, opened, qs, noises, confidence, recipe.parts)
    value, first, last = (part[:, 0] for part in (found.value, found.lower, found.upper))
    start, end, width, step = (
        float(x) for x in (recipe.lower, recipe.upper, recipe.width, recipe.step)
    )
    # A leaf is the lattice points in it: the last one lies a step before the next leaf.
    lower, upper = start + width * first, np.minimum(start + width * last - step, end)
    if recipe.width == recipe.step:
        value = start + step * np.maximum(np.ceil(value) - 1, 0)
    else:
        value = start + width * value - step / 2
    if recipe.discrete:
        value = start + step * np.round((value - start) / step)
    value = np.clip(value, lower, upper)
    if not recipe.exact:
        # Values were rounded to the nearest multiple of the step.
        lower, upper = np.maximum(lower - step / 2, start), np.minimum(upper + step / 2, end)
    return GroupEstimates(value, lower, upper)


def _ranks(recipe: RanksRecipe, measured: Measured, confidence: float) -> GroupEstimates:
    """One row for each edge of the one group."""
    tree, noise = measured.trees[recipe.leaves], measured.noises[recipe.leaves]
    assert isinstance(noise, AdditiveNoise)
    value = tree.cumulative(measured.values[recipe.leaves]).ravel() / recipe.parts
    width = tree.rank_widths(noise, confidence)[: value.size] / recipe.parts
    return GroupEstimates(value, value - width, value + width)


def _cells(recipe: CellsRecipe, measured: Measured, confidence: float) -> GroupEstimates:
    """One row for each cell of the one group."""
    noise = measured.noises[recipe.cells]
    assert noise is not None
    (counts,) = measured.values[recipe.cells]
    value = np.asarray(counts, dtype=np.float64).ravel() / recipe.parts
    width = noise.half_width(confidence) / recipe.parts
    inside = _within(value, value - width, value + width, 0.0, np.inf)
    return GroupEstimates(value, inside.lower, inside.upper)


def _ratio(
    recipe: RatioRecipe, measured: Measured, confidence: float, clip: bool
) -> GroupEstimates:
    over, under = recipe.numerator, recipe.denominator
    top, bottom = (_combination(one, measured) for one in (over, under))
    above, below = dict(over.terms), dict(under.terms)
    terms = [
        (float(above.get(i, 0)), float(below.get(i, 0)), measured.noises[i] or SILENT)
        for i in dict.fromkeys((*above, *below))
    ]
    return around_ratio(recipe, top, bottom, terms, confidence, clip=clip)


def around_ratio(
    recipe: RatioRecipe,
    top: Floats,
    bottom: Floats,
    terms: Sequence[tuple[float, float, Noise]],
    confidence: float,
    *,
    clip: bool = True,
    slack: tuple[float, float] = (0.0, 0.0),
) -> GroupEstimates:
    """The interval of a ratio of two combinations of measurements, which may share some.

    Parameters
    ----------
    recipe : RatioRecipe
        For what the true ratio and its parts can be.
    top, bottom : array
        Both combinations, with noise.
    terms : sequence of (float, float, noise)
        Of each noise: its coefficient above and below.
    confidence : float
    clip : bool
    slack : (float, float)
        How far ``top`` and ``bottom`` may be from what was measured, since they were rounded. An
        end of the interval moves in one direction with the numerator, and for any numerator in one
        with the denominator: the denominator's leaves the sign of an end as it is, and the sign
        says which way it moves. So the farthest ends are those of the corners.
    """
    under = recipe.denominator
    if under.lower is None or under.lower < 0:
        # Where the divisor is seen to be below 0, both are turned: their ratio stays.
        turn = np.where(bottom < 0, -1.0, 1.0)
        top, bottom = turn * top, turn * bottom
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(bottom > 0, top / bottom, np.nan)
    corners = {(a * slack[0], b * slack[1]) for a in (-1, 1) for b in (-1, 1)}
    ends = [
        shared_ratio_interval(top + a, bottom + b, terms, confidence) for a, b in sorted(corners)
    ]
    lower = np.minimum.reduce([low for low, _ in ends])
    upper = np.maximum.reduce([high for _, high in ends])
    if not clip:
        return GroupEstimates(value, lower, upper)
    low = -np.inf if recipe.lower is None else float(recipe.lower)
    high = np.inf if recipe.upper is None else float(recipe.upper)
    return _within(value, lower, upper, low, high)


def _within(value: Floats, lower: Floats, upper: Floats, low: float, high: float) -> GroupEstimates:
    """Value and interval moved to where the truth can lie, between ``low`` and ``high``.

    Where the value is moved, its interval is widened by as much before it is cut: it then holds all
    that it held, and is not narrower for lying where nothing can be.
    """
    moved = np.clip(value, low, high)
    shift = np.nan_to_num(moved - value)
    lower = np.nan_to_num(lower, nan=-np.inf, posinf=np.inf, neginf=-np.inf)
    upper = np.nan_to_num(upper, nan=np.inf, posinf=np.inf, neginf=-np.inf)
    lower, upper = np.minimum(lower, lower + shift), np.maximum(upper, upper + shift)
    return _around(moved, np.clip(lower, low, high), np.clip(upper, low, high))


def _around(value: Floats, lower: Floats, upper: Floats) -> GroupEstimates:
    """An interval that holds its value, whatever was cut off."""
    return GroupEstimates(value, np.fmin(lower, value), np.fmax(upper, value))


def encoded(value: float) -> float | str | None:
    """A number as JSON has it."""
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
