"""How sums of several groups, and weighted sums, are read: analysis of variance, survey weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.errors import ArgumentError, BoundsError, nearest
from dither.inference.engine._inputs import Bounds, Floats
from dither.inference.engine._result import MEASURED, PrivateEstimate, PrivateResult
from dither.inference.engine._simulation import SimulatedDraws
from dither.inference.estimates._free_means import FreeMeans
from dither.inference.estimates._mean import of_clamped
from dither.inference.estimates._quantiles import FINE
from dither.inference.estimates._weighted import WeightedModel, weighted_assumptions
from dither.inference.hypothesis._means import equal_means
from dither.inference.tables import _sums as model
from dither.inference.tables._question import EstimatorDesign, Laws
from dither.privacy import Loss
from dither.query.tables import _statistics as st

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["anova_design", "groups_of", "most_of", "weighted_design", "weighted_terms"]

# What of the budget each weighted sum gets: the ratio rests on the first two.
_OF_WEIGHTED = {
    "total": Fraction(8, 20),
    "n": Fraction(6, 20),
    "weights": Fraction(2, 20),
    "across": Fraction(2, 20),
    "square": Fraction(2, 20),
}

_SUMS = ("n", "total", "weights", "across", "square")


def groups_of(
    rows: TableQuery, x: str, by: str, levels: Sequence[Any]
) -> tuple[st.Variable, TableQuery, tuple[Any, ...] | None]:
    """A number, and the rows of some groups.

    Raises
    ------
    ArgumentError, QueryError
        A level is not declared, or they are fewer than two.
    """
    number, variable = st.Variable.of(rows, x), st.Variable.of(rows, by)
    _ = number.ends
    declared = variable.levels
    if isinstance(levels, str) or not isinstance(levels, Sequence):
        raise ArgumentError("levels must be a list of groups, at least two")
    chosen = tuple(levels)
    if not chosen:
        return number, rows, None
    for value in chosen:
        if value not in declared:
            raise ArgumentError(
                f"levels: {value!r} is not a declared level of {by}"
                + nearest(str(value), [str(v) for v in declared])
            )
    if len(chosen) < 2 or len(set(chosen)) < len(chosen):
        raise ArgumentError("levels must be at least two different groups")
    kept = st.among(rows, variable, chosen)
    return st.Variable.of(kept, x), kept, chosen


def anova_design(
    title: str,
    ends: tuple[Fraction, Fraction],
    groups: int,
    pooled: bool,
    draws: int,
    assumed: tuple[str, ...],
) -> EstimatorDesign:
    """Whether several groups have one mean."""
    bounds = Bounds(*ends)

    def least_rows(laws: Laws) -> float:
        return groups * laws["total"].deviation / FINE

    def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        n, total, square = (sums.values[name] for name in ("n", "total", "square"))

        def noise(rng: np.random.Generator, size: int) -> Floats:
            names = ("n", "total", "square")
            drawn = [model.drawn(laws[name], rng, (size, groups)) for name in names]
            return np.stack([drawn[0], drawn[1], drawn[2] + drawn[0] / 2], axis=-1)

        free = FreeMeans(np.stack([n, total, square + n / 2], axis=-1), noise, pooled)
        rng = SimulatedDraws.of_released(np.concatenate([n, total, square]))
        errors = free.errors(rng, draws, bounds, within=False)
        one = ", of one variance in all groups" if pooled else ""
        measured = () if laws["n"].noise is None else (MEASURED,)
        read_as = (*assumed, of_clamped(bounds, "means are those") + one, *measured)
        return equal_means(title, loss, errors, read_as, (), float(free.n.sum()))

    def expected(n: int) -> st.Sums:
        each = np.full(groups, n / groups)
        return st.Sums({"n": each, "total": 0 * each, "square": -each / 6})

    def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
        rows = n / groups
        sampling, noise = rows / 3, laws["total"].deviation ** 2
        # Two groups that far apart are told from one another four times in five.
        apart = 2.8 * math.sqrt(2 * (sampling + noise)) / rows * float(bounds.half)
        return min(apart, 2 * float(bounds.half)), math.nan

    reaches = "difference of two groups seen (power 0.8)"
    return EstimatorDesign(read, expected, least_rows, 0.2, reaches, reach)


def most_of(weight: st.Variable) -> Fraction:
    """The largest weight, as declared.

    Raises
    ------
    BoundsError, QueryError
        None is declared, or a weight may be below 0.
    """
    lower, upper = weight.ends
    if lower < 0 or upper <= 0:
        raise BoundsError(
            f"{weight.text} may be below 0 by its declared bounds: weights run from 0 to a bound"
        )
    return upper


def weighted_terms(variables: Sequence[st.Variable]) -> dict[str, st.Request]:
    """The five weighted sums of a value and a weight, each with its part of the budget."""
    x, weight = variables
    terms = st.SumTerm.weighted(weight, x)
    return {name: (terms[name], share) for name, share in _OF_WEIGHTED.items()}


def weighted_design(
    title: str,
    ends: tuple[Fraction, Fraction],
    most: Fraction,
    null: float,
    assumed: tuple[str, ...],
    *,
    total: bool,
) -> EstimatorDesign:
    """A weighted mean, share or total."""
    bounds = Bounds(*ends)

    def least_rows(laws: Laws) -> float:
        return 2 * laws["total"].deviation / FINE

    def made(sums: Mapping[str, Any], laws: Laws) -> WeightedModel:
        values = np.array([float(sums[name]) for name in _SUMS])
        return WeightedModel(values, partial(_noise_of, dict(laws)), bounds, float(most))

    def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        found = made(sums.group(0), laws)
        what = "the total is that" if total else "the mean is that"
        on = weighted_assumptions(bounds, float(most), what)[1:]
        return PrivateEstimate(
            title,
            loss,
            (*assumed, *on, "n is Kish's effective number, of the released weights", MEASURED),
            found.notes,
            None,
            np.array([found.total if total else found.at]),
            round(found.effective),
            partial(found.total_errors, None) if total else found.mean_errors,
            null,
        )

    def expected(n: int) -> st.Sums:
        whole = {"n": n / 2, "total": 0.0, "weights": n / 3, "across": 0.0, "square": n / 9}
        return st.Sums({name: np.array([value]) for name, value in whole.items()})

    def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
        found: Any = read(expected(n), laws, loss).simulated(draws=1000)  # type: ignore[attr-defined]
        lower, upper = found.interval(confidence)
        return (upper - lower) / 2, found._share

    return EstimatorDesign(read, expected, least_rows, 0.2, "half-width", reach)


def _noise_of(laws: Laws, rng: np.random.Generator, size: int) -> Floats:
    return np.stack([model.drawn(laws[name], rng, size) for name in _SUMS], axis=-1)
