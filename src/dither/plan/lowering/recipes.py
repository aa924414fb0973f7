"""How a released value follows from noisy measurements: post-processing, and free.

A recipe names measurements by their places in the job. ``dither.plan.lowering.measurements`` makes
those of aggregates, and ``dither.plan.lowering.calculations`` those of what is calculated from
released values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from dither.plan.lowering.magnitudes import DayGrid, MagnitudeGrid
from dither.plan.schema import Kind, Value

if TYPE_CHECKING:
    from dither.plan.released import Constant

__all__ = [
    "Applied",
    "CellsRecipe",
    "KeyRead",
    "KeysLeftOut",
    "Known",
    "Linear",
    "MeanRecipe",
    "ModeRecipe",
    "PairRecipe",
    "QuantileRecipe",
    "Ranked",
    "RanksRecipe",
    "RatioRecipe",
    "Recipe",
    "VarianceRecipe",
    "claims",
    "pair_of",
    "sources",
]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The root of all recipes. Measurements are named by their position in the job."""


@dataclass(frozen=True, slots=True)
class Linear(Recipe):
    """``sum(coefficient * measurement) + constant``: counts, units and sums."""

    terms: tuple[tuple[int, Fraction], ...]
    lower: Fraction | None = None
    """What the true value cannot be below (0 for a count)."""
    constant: Fraction = Fraction(0)
    upper: Fraction | None = None
    """What it cannot be above (of distinct values, how many there can be)."""


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
    discrete: bool = False
    """Its value is a multiple of ``step``."""


@dataclass(frozen=True, slots=True)
class ModeRecipe(Recipe):
    """The one of ``values``, by its place, that was chosen. Rows vote in ``parts``."""

    votes: int
    values: tuple[Value, ...]
    kind: Kind
    parts: int


@dataclass(frozen=True, slots=True)
class RanksRecipe(Recipe):
    """The number of rows below each edge of a histogram, whose leaves are as `QuantileRecipe` says.

    A value is rounded to a multiple of ``step``, so edge i lies half a step below leaf i.
    """

    leaves: int
    lower: Fraction
    upper: Fraction
    width: Fraction
    step: Fraction
    bins: int
    parts: int
    exact: bool


@dataclass(frozen=True, slots=True)
class CellsRecipe(Recipe):
    """The number of rows, or units, in each cell of a histogram, each with noise of its own.

    ``grid``: where the cells of numbers or days lie. Rows count in ``parts``. ``sides`` is the
    histogram that says how many lie outside of the ends that are found.
    """

    cells: int
    sides: int
    parts: int
    grid: MagnitudeGrid | DayGrid | None


@dataclass(frozen=True, slots=True)
class RatioRecipe(Recipe):
    """One linear recipe over another; what is known to hold the true ratio, where something is."""

    numerator: Linear
    denominator: Linear
    lower: Fraction | None = None
    upper: Fraction | None = None


@dataclass(frozen=True, slots=True)
class PairRecipe(Recipe):
    """What an operation makes of two columns' sums, where one interval serves for the whole.

    ``word``: COVARIANCE, SLOPE (of the second by the first), CORRELATION, or SQUARED, its square.
    ``middles`` are what was taken from both before they were multiplied. ``squares`` are of the
    first, and of the second, as far as they are needed.
    """

    word: str
    product: MeanRecipe
    means: tuple[MeanRecipe, MeanRecipe]
    middles: tuple[Fraction, Fraction]
    squares: tuple[VarianceRecipe, ...]


@dataclass(frozen=True, slots=True)
class Known(Recipe):
    """A public constant."""

    constant: Constant


@dataclass(frozen=True, slots=True)
class KeyRead(Recipe):
    """The released value of a key, by its place among the keys."""

    place: int


@dataclass(frozen=True, slots=True)
class KeysLeftOut(Recipe):
    """Which keys, by their places, are not in the set of a group: GROUPING."""

    places: tuple[int, ...]

    def of(self, one: Sequence[int]) -> int:
        """Of the groups by one set of keys, given by its places."""
        return sum((key not in one) << i for i, key in enumerate(reversed(self.places)))


@dataclass(frozen=True, slots=True)
class Applied(Recipe):
    """An operation on other recipes, as in ``dither.plan.released``."""

    op: str
    operands: tuple[Recipe, ...]


@dataclass(frozen=True, slots=True)
class Ranked(Recipe):
    """A rank by other recipes (each with whether it falls) among groups of the same keys."""

    word: str
    order: tuple[tuple[Recipe, bool], ...]
    by: tuple[int, ...]


def pair_of(recipe: Recipe) -> PairRecipe | None:
    """What an operation makes of two columns' sums, where it is one of those of `PairRecipe`."""
    match recipe:
        case Applied("CLIP", (Applied("/", (of, Applied("SQRT", (both,)))), Known(), Known())):
            return _with(pair_of(of), _factors(both), "CORRELATION")
        case Applied("CLIP", (Applied("/", (Applied("POWER", (of, Known())), both)), *_)):
            return _with(pair_of(of), _factors(both), "SQUARED")
        case Applied("/", (Applied() as of, VarianceRecipe() as square)):
            return _with(pair_of(of), (square,), "SLOPE")
        case Applied("-", (MeanRecipe() as product, Applied("*", (first, second)))):
            x, y = _off_middle(first), _off_middle(second)
            if x is None or y is None:
                return None
            return PairRecipe("COVARIANCE", product, (x[0], y[0]), (x[1], y[1]), ())
    return None


def _off_middle(recipe: Recipe) -> tuple[MeanRecipe, Fraction] | None:
    """A mean, and what is taken from it."""
    match recipe:
        case MeanRecipe():
            return recipe, Fraction(0)
        case Applied("-", (MeanRecipe() as mean, Known(constant=constant))):
            return mean, Fraction(constant.value)  # type: ignore[arg-type]
    return None


def _factors(recipe: Recipe) -> tuple[Recipe, ...]:
    return recipe.operands if isinstance(recipe, Applied) and recipe.op == "*" else ()


def _with(pair: PairRecipe | None, squares: Sequence[Recipe], word: str) -> PairRecipe | None:
    """A covariance with the squares of its columns, if these are that."""
    if pair is None or pair.word != "COVARIANCE" or not squares or len(squares) > 2:
        return None
    found = []
    for mean, square in zip(pair.means, squares, strict=False):
        if not isinstance(square, VarianceRecipe) or square.sample or square.root:
            return None
        if (square.total, square.count, square.step) != (mean.total, mean.count, mean.step):
            return None
        found.append(square)
    return replace(pair, word=word, squares=tuple(found))


def sources(recipe: Recipe) -> tuple[Recipe, ...]:
    """The recipes of what was measured that another one reads, each once."""
    match recipe:
        case Known() | KeyRead() | KeysLeftOut():
            return ()
        case Applied(operands=inner):
            pass
        case Ranked(order=order):
            inner = tuple(x for x, _ in order)
        case _:
            return (recipe,)
    return tuple(dict.fromkeys(one for x in inner for one in sources(x)))


def claims(recipe: Recipe) -> tuple[Recipe, ...]:
    """The recipes whose intervals must hold for that of this one to hold, each once.

    A rank is one claim: that the intervals of all groups hold at once is its own affair.
    """
    match recipe:
        case Known() | KeyRead() | KeysLeftOut() | ModeRecipe():
            # Of a mode nothing is claimed that could be wrong: it may be any of its values.
            return ()
        case Applied(operands=operands):
            pair = pair_of(recipe)
            if pair is not None:
                return (pair,)
            return tuple(dict.fromkeys(one for x in operands for one in claims(x)))
    return (recipe,)
