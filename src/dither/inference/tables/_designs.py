"""How the sums of each question are read, and how many people they take."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dither._format import number_text
from dither.inference.engine._inputs import Floats
from dither.inference.engine._result import (
    MEASURED,
    PrivateEstimate,
    PrivateResult,
    PrivateTest,
    too_few_rows,
)
from dither.inference.estimates._difference import errors_of_two
from dither.inference.estimates._mean import WIDE, Shape, normal_notes
from dither.inference.estimates._proportion import as_known
from dither.inference.estimates._quantiles import FINE, QuantileModel, rank_deviation
from dither.inference.hypothesis._contingency import independent, share_in_counts
from dither.inference.tables import _sums as model
from dither.inference.tables._question import EstimatorDesign, Laws
from dither.privacy import Loss
from dither.query.tables import _statistics as st

__all__ = [
    "difference_design",
    "known_share_design",
    "mean_design",
    "measured_share_design",
    "quantile_design",
    "table_design",
]


def _even(n: int, shape: Shape, groups: int = 1) -> st.Sums:
    """The sums of n values spread evenly over their bounds, in groups of equal size."""
    each = np.full(groups, n / groups)
    found = {"n": each, "total": 0 * each, "square": -each / 6}
    if shape == "normal":
        found |= {"below": 0 * each, "above": 0 * each}
    return st.Sums(found)


def _widths(result: Any, confidence: float) -> tuple[float, float]:
    """Half the interval of an estimate, and the noise's share in its variance."""
    found = result.simulated(draws=1000)
    lower, upper = found.interval(confidence)
    return (upper - lower) / 2, found._share


def _reach_of(read: Any, expected: Any) -> Callable[[int, Laws, Loss, float], tuple[float, float]]:
    def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
        return _widths(read(expected(n), laws, loss), confidence)

    return reach


def mean_design(
    title: str,
    ends: tuple[Fraction, Fraction],
    shape: Shape,
    null: float,
    assumed: tuple[str, ...],
) -> EstimatorDesign:
    """The mean of one group."""

    def least_rows(laws: Laws) -> float:
        return laws["total"].deviation / FINE

    def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        group = model.GroupMean(sums.group(0), laws, ends, shape)
        return PrivateEstimate(
            title,
            loss,
            (*assumed, *_on_n(laws), *_on_shape([group])),
            _mean_notes([group], least_rows(laws)),
            None,
            np.array([group.at]),
            round(group.n),
            group.errors,
            null,
        )

    def expected(n: int) -> st.Sums:
        return _even(n, shape)

    return EstimatorDesign(read, expected, least_rows, 0.2, "half-width", _reach_of(read, expected))


def difference_design(
    title: str,
    ends: tuple[Fraction, Fraction],
    shape: Shape,
    null: float,
    assumed: tuple[str, ...],
) -> EstimatorDesign:
    """The difference of the means of two groups, the second less the first."""

    def least_rows(laws: Laws) -> float:
        return 2 * laws["total"].deviation / FINE

    def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        groups = [model.GroupMean(sums.group(i), laws, ends, shape) for i in (0, 1)]
        first, second = (group.at for group in groups)

        return PrivateEstimate(
            title,
            loss,
            (*assumed, *_on_n(laws), *_on_shape(groups)),
            _mean_notes(groups, least_rows(laws) / 2),
            None,
            np.array([second - first]),
            sum(round(group.n) for group in groups),
            partial(errors_of_two, groups[::-1]),
            null,
        )

    def expected(n: int) -> st.Sums:
        return _even(n, shape, 2)

    return EstimatorDesign(read, expected, least_rows, 0.2, "half-width", _reach_of(read, expected))


def _on_n(laws: Laws) -> tuple[str, ...]:
    return () if laws["n"].noise is None else (MEASURED,)


def _on_shape(groups: Sequence[model.GroupMean]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group.read for group in groups))


def _mean_notes(groups: Sequence[model.GroupMean], least_rows: float) -> tuple[str, ...]:
    if any(group.noise_of_mean > WIDE for group in groups):
        return (too_few_rows("the noise spans much of the bounds", least_rows * len(groups)),)
    return normal_notes([group.normal for group in groups if group.normal is not None])


def _share_notes(rows: int, least_rows: float) -> tuple[str, ...]:
    if rows >= least_rows:
        return ()
    return (too_few_rows("the noise is more than a twentieth of all rows", least_rows),)


def known_share_design(title: str, null: float) -> EstimatorDesign:
    """The share of yes among people whose number is public."""

    def least_rows(laws: Laws) -> float:
        return laws["yes"].deviation / FINE

    def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        seen = sums.group(0)
        n = max(0, round(seen["n"]))
        exact = model.known_share(laws["yes"], seen["yes"], n)
        return PrivateEstimate(
            title,
            loss,
            ("rows are an independent sample",),
            _share_notes(n, least_rows(laws)),
            None,
            np.array([exact.share]),
            n,
            partial(as_known, exact),
            null,
        )

    def expected(n: int) -> st.Sums:
        return st.Sums({"n": np.array([float(n)]), "yes": np.array([float(n // 2)])})

    return EstimatorDesign(read, expected, least_rows, 1.0, "half-width", _reach_of(read, expected))


def measured_share_design(title: str, null: float) -> EstimatorDesign:
    """The share of yes, where no and yes are counted with noise."""

    def least_rows(laws: Laws) -> float:
        return laws["n"].deviation / FINE

    def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        no, yes = (float(v) for v in sums.values["n"])
        start, errors = model.measured_share(laws["n"], yes, no)
        return PrivateEstimate(
            title,
            loss,
            ("rows are an independent sample", MEASURED),
            _share_notes(start.n, least_rows(laws)),
            None,
            np.array([start.share]),
            start.n,
            errors,
            null,
        )

    def expected(n: int) -> st.Sums:
        return st.Sums({"n": np.array([float(n - n // 2), float(n // 2)])})

    return EstimatorDesign(read, expected, least_rows, 1.0, "half-width", _reach_of(read, expected))


def quantile_design(
    title: str,
    grid: st.RankGrid,
    shares: tuple[float, ...],
    names: tuple[str, ...] | None,
    null: float,
    assumed: tuple[str, ...],
) -> EstimatorDesign:
    """Quantiles, from counts below the edges of a grid."""

    def least_rows(laws: Laws) -> float:
        return rank_deviation(grid.tree, laws["below"].deviation) / FINE

    def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        law = laws["below"]
        found = QuantileModel(
            grid.tree,
            partial(model.drawn, law),
            law.deviation,
            grid.edges,
            sums.values["below"],
            shares,
            trim=grid.trim,
        )
        return PrivateEstimate(
            title,
            loss,
            (*assumed, MEASURED, *_on_bins(grid)),
            found.notes,
            names,
            found.middle,
            round(found.n),
            found.errors,
            null,
        )

    def expected(n: int) -> st.Sums:
        return st.Sums({"below": np.linspace(0.0, n, len(grid.edges))})

    def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
        found: Any = read(expected(n), laws, loss).simulated(draws=1000)  # type: ignore[attr-defined]
        ends = found.errors.interval(confidence)
        return float((ends[:, 1] - ends[:, 0]).max() / 2), found._share

    reaches = "half-width" if len(shares) == 1 else "half-width of the widest"
    return EstimatorDesign(read, expected, least_rows, 0.2, reaches, reach)


def _on_bins(grid: st.RankGrid) -> tuple[str, ...]:
    width = grid.edges[2] - grid.edges[1] if len(grid.edges) > 2 else math.inf
    if grid.trim and width == 1:
        return ()
    return (f"answers are no finer than a bin of {number_text(width, 3)}",)


def table_design(
    title: str,
    null: str,
    shape: tuple[int, ...],
    chances: Floats | None,
    draws: int,
    assumed: tuple[str, ...],
) -> EstimatorDesign:
    """A χ² test of a noisy table: against probabilities, or of independence."""

    cells = math.prod(shape)

    def least_rows(laws: Laws) -> float:
        return 20 * cells * laws["n"].deviation

    def read(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        table = sums.values["n"].reshape(shape)
        found, pvalue, simulated = model.table_test(table, laws["n"], chances, draws)
        notes: tuple[str, ...] = ()
        if table.sum() < least_rows(laws) / 4:
            notes = (too_few_rows("the noise of a cell is much of its count", least_rows(laws)),)
        fitted = independent(table) if chances is None else chances
        share = share_in_counts(laws["n"].deviation, max(0.0, float(table.sum())), fitted)
        assumptions = (*assumed, MEASURED)
        return PrivateTest(
            title, loss, assumptions, notes, null, found, pvalue, simulated, noise_share=share
        )

    def expected(n: int) -> st.Sums:
        return st.Sums({"n": np.full(cells, n / cells)})

    def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
        return model.smallest_effect(laws["n"], shape, chances, n), math.nan

    reaches = "smallest effect seen (Cohen's w, power 0.8)"
    return EstimatorDesign(read, expected, least_rows, 0.25, reaches, reach)
