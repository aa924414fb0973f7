"""How released values follow from noisy measurements: all of it post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Linear", "MeanRecipe", "QuantileRecipe", "RatioRecipe", "Recipe", "VarianceRecipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The root of all recipes. Measurements are named by their position in the job."""


@dataclass(frozen=True, slots=True)
class Linear(Recipe):
    """``sum(coefficient * measurement)``: counts, units and sums."""

    terms: tuple[tuple[int, Fraction], ...]
    lower: Fraction | None = None
    """What the true value cannot be below (0 for a count)."""


@dataclass(frozen=True, slots=True)
class MeanRecipe(Recipe):
    """``centre + step * total / count``, inside [lower, upper]."""

    total: int
    count: int
    step: Fraction
    centre: Fraction
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True, slots=True)
class VarianceRecipe(Recipe):
    """``step² * ((square + square_centre * count)/count - (total/count)²)``, or its root."""

    total: int
    square: int
    count: int
    step: Fraction
    square_centre: int
    half_width: Fraction
    """No value is further from the centre, in units of the column."""
    sample: bool
    root: bool


@dataclass(frozen=True, slots=True)
class QuantileRecipe(Recipe):
    """The q-quantile of a histogram.

    Leaf i holds the multiples of ``step`` from ``lower + i * width`` to the last one below the next
    leaf; where ``width`` is ``step``, that is one number. None lies above ``upper``. Where there is
    a finer histogram ``below``, the leaves are its own, and those of ``leaves`` are stretches of
    them. Rows count in ``parts``. ``exact``: values are multiples of ``step``, so that none was
    rounded.
    """

    leaves: int
    below: int | None
    q: Fraction
    lower: Fraction
    upper: Fraction
    width: Fraction
    step: Fraction
    parts: int
    exact: bool


@dataclass(frozen=True, slots=True)
class RatioRecipe(Recipe):
    """One linear recipe over another; what is known to hold the true ratio, where something is."""

    numerator: Linear
    denominator: Linear
    lower: Fraction | None = None
    upper: Fraction | None = None
