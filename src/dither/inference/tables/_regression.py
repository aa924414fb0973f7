"""Linear regression on protected tables: a formula's moments as sums of the plan, and their model.

Each regressor is an expression of clamped columns: a number, or what a ``CASE`` over declared
levels makes of it, z in half-ranges from the middle of its bounds. What leaves is

    n,  Σ z_i,  Σ z_i·z_j for i < j,  Σ (z_i² - 1/2),  Σ t,  Σ z_i·t,  Σ (t² - 1/2),

of persons with several rows with the averages of their z and t, each with a noise of its own. So
the model is that of `dither.inference.regression._linear_models` with a deviation for each moment.
What differs is n where it is measured: its noise e is in M₀₀ and, by half, in every Σ z_i² = Σ
(z_i² - 1/2) + n/2, so that the noise of v - M·β has e·u besides, u = (β₀, β₁/2, ..., β_d/2).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.errors import ArgumentError, QueryError
from dither.inference.engine._inputs import Bounds, Floats
from dither.inference.engine._result import PrivateResult
from dither.inference.regression import _formula as fm
from dither.inference.regression._linear_models import LinearModel
from dither.inference.regression._linear_regression import estimate_of
from dither.inference.regression._moments import Moments
from dither.inference.regression._terms import names_of, tree_of
from dither.inference.tables._question import EstimatorDesign, Laws
from dither.inference.tables._sums import drawn
from dither.privacy import Loss
from dither.query.tables import _regressors as rg
from dither.query.tables import _statistics as st

if TYPE_CHECKING:
    from dither.query._builder import TableQuery

__all__ = ["MomentNoise", "TableModel", "asked_formula", "moment_terms", "regression_design"]

_MOST = 20
"""Columns of regressors: each pair of them has a sum that takes its part of epsilon."""


# --- from a formula to expressions of the plan ---------------------------------------------------


def asked_formula(
    rows: TableQuery, formula: str
) -> tuple[TableQuery, fm.FormulaDesign, list[st.Variable]]:
    """Rows with declared levels, the formula's design, and its regressors with the response last.

    Raises
    ------
    ArgumentError, QueryError, BoundsError
        It cannot be read, names what the table does not have, or a column has neither bounds nor
        levels.
    """
    answer, terms = fm.parsed(formula)
    parts = [answer, *(part for term in terms for part in term)]
    factors = {name for part in parts if (name := fm.named_factor(part)) is not None}
    columns = {name: st.Variable.of(rows, _quoted(name)) for p in parts for name in names_of(p)}
    bounds: dict[str, tuple[Fraction, Fraction]] = {}
    levels: dict[str, tuple[Any, ...]] = {}
    for name, column in columns.items():
        column = replace(column, text=name)
        kind = column.facts.kind
        if name in factors or kind is None or not kind.numeric:
            levels[name] = rg.levels_of(column)
        else:
            bounds[name] = column.ends
    if set(names_of(answer)) & set(levels):
        raise QueryError(
            f"{answer} is not a number, which the response of a linear regression must be"
        )
    read = fm.read_design(formula, bounds, levels)
    if not 0 < len(read.columns) <= _MOST:
        raise ArgumentError(
            f"formula has {len(read.columns)} columns of regressors, levels counted apart: from 1 "
            f"to {_MOST} can be asked, since each pair of them takes a part of epsilon"
        )
    kept = rows
    for name, known in levels.items():
        kept = rg.declared(kept, columns[name], known)
    made = []
    for c in (*read.columns, None):
        whole = (answer,) if c is None else c.parts
        trees = [tree_of(part) for part in whole]
        tests = () if c is None else [(columns[name], levels[name][k]) for name, k in c.where]
        label = answer if c is None else c.label
        made.append(rg.regressor(kept, label, trees, tests, columns, bounds))
    ends = [Bounds(*v.ends) for v in made]
    after = iter(ends)
    read = replace(
        read,
        response=ends[-1],
        terms=tuple(tuple(replace(c, bounds=next(after)) for c in term) for term in read.terms),
    )
    return kept, read, made


def _quoted(name: str) -> str:
    return name if name.isidentifier() else '"' + name.strip("`").replace('"', '""') + '"'


# --- sums and their model ------------------------------------------------------------------------


def moment_terms(
    variables: list[st.Variable] | Any, functional: bool = False
) -> dict[str, st.Request]:
    """The sums by name, and their weights: slopes need products with the response most.

    The functional mechanism has noise of one scale for the coefficients n, 2·Σ z_i, 2·Σ z_i·z_j,
    Σ z_i², ... of the sum of squared residuals: a part of epsilon for each sum in proportion to how
    far one person moves it, 1/2 for a square about its middle, and half as much for n and squares.
    """
    *z, t = variables
    one, more, square, count = Fraction(1), Fraction(2), Fraction(1), Fraction(1)
    if functional:
        more, square, count = one, Fraction(1, 4), Fraction(1, 2)
    found = {"n": (st.SumTerm.count(), count)}
    for i, x in enumerate(z):
        found[f"z{i}"] = (st.SumTerm.total(x), one)
        found[f"z{i}z{i}"] = (st.SumTerm.square(x), square)
        found[f"z{i}t"] = (st.SumTerm.product(x, t), more)
        for j in range(i):
            found[f"z{j}z{i}"] = (st.SumTerm.product(z[j], x), one)
    return found | {"t": (st.SumTerm.total(t), more), "tt": (st.SumTerm.square(t), square)}


def _read(of: Mapping[str, Any], size: int) -> Moments:
    """Moments of sums, each an array of shape (...)."""
    n = np.asarray(of["n"], dtype=np.float64)
    gram, cross = np.zeros((*n.shape, size + 1, size + 1)), np.zeros((*n.shape, size + 1))
    gram[..., 0, 0], cross[..., 0] = n, of["t"]
    for i in range(size):
        gram[..., 0, i + 1] = gram[..., i + 1, 0] = of[f"z{i}"]
        gram[..., i + 1, i + 1] = of[f"z{i}z{i}"] + n / 2
        cross[..., i + 1] = of[f"z{i}t"]
        for j in range(i):
            gram[..., j + 1, i + 1] = gram[..., i + 1, j + 1] = of[f"z{j}z{i}"]
    return Moments(gram, cross, np.asarray(of["tt"] + n / 2))


@dataclass(frozen=True, eq=False)
class MomentNoise:
    """Layer 2, the noise: sums leave with laws of their own.

    Parameters
    ----------
    laws : mapping of str to Law
        By the names of `moment_terms`.
    size : int
        Columns of the regressors.
    """

    laws: Laws
    size: int

    def read(self, released: Any) -> Moments:
        """Moments from released sums."""
        return _read(released, self.size)

    def _variance(self, name: str) -> float:
        return self.laws[name].deviation ** 2

    @cached_property
    def of_gram(self) -> Floats:
        """Variances of the noise of the Gram matrix, but for that of n; shape (D, D)."""
        d = self.size
        found = np.zeros((d + 1, d + 1))
        for i in range(d):
            found[0, i + 1] = found[i + 1, 0] = self._variance(f"z{i}")
            for j in range(i + 1):
                found[i + 1, j + 1] = found[j + 1, i + 1] = self._variance(f"z{j}z{i}")
        return found

    @cached_property
    def of_cross(self) -> Floats:
        """Variances of the noise of products with the response, shape (D,)."""
        names = ("t", *(f"z{i}t" for i in range(self.size)))
        return np.array([self._variance(name) for name in names])

    @cached_property
    def of_count(self) -> float:
        """The variance of the noise of n; 0 where it is public."""
        return self._variance("n")

    @cached_property
    def deviation(self) -> float:
        """Of a matrix of equal deviations whose rows have the norm of this one's largest row."""
        found = self.of_gram + self.of_count * np.diag([1.0] + [0.25] * self.size)
        return max(math.sqrt(float(found.sum(axis=1).max()) / (self.size + 1)), 1e-9)

    def draw(self, rng: np.random.Generator, size: int) -> Moments:
        """Simulated noise, as moments."""
        return self.read({name: drawn(law, rng, size) for name, law in self.laws.items()})


@dataclass(frozen=True, eq=False)
class _Size:
    size: int
    functional: bool = False


class TableModel(LinearModel):
    """`LinearModel` over sums each of which has a noise of its own."""

    def __init__(
        self, sums: Mapping[str, float], laws: Laws, size: int, functional: bool = False
    ) -> None:
        object.__setattr__(self, "design", _Size(size, functional))
        object.__setattr__(self, "released", dict(sums))
        object.__setattr__(self, "rows", None)
        object.__setattr__(self, "_laws", laws)

    @cached_property
    def noise(self) -> Any:
        """What the sums left with."""
        return MomentNoise(self._laws, self.design.size)  # type: ignore[attr-defined]

    @property
    def ridge(self) -> float:
        """What the functional mechanism adds: four deviations of the noise of a square."""
        return 4.0 * float(self._laws["z0z0"].deviation)  # type: ignore[attr-defined]

    def _of_noise(self, line: Floats, slopes: Floats) -> Floats:
        way = slopes * np.array([1.0] + [0.5] * self.design.size)
        along = np.einsum("...i,...i->...", way, np.broadcast_to(line, slopes.shape))
        count = self.noise.of_count * way * along[..., None]
        return np.asarray(super()._of_noise(line, slopes) + count)


def regression_design(
    title: str, read: fm.FormulaDesign, assumed: tuple[str, ...], functional: bool = False
) -> EstimatorDesign:
    """Linear regression by a formula whose regressors have the bounds of their sums."""
    size = len(read.columns)

    def least_rows(laws: Laws) -> float:
        floor = 2 * MomentNoise(laws, size).deviation * math.sqrt(size + 1)
        return 30 * floor

    def result(sums: st.Sums, laws: Laws, loss: Loss) -> PrivateResult:
        model = TableModel(sums.group(0), laws, size, functional)
        measured = laws["n"].noise is not None
        assumptions = (
            *assumed,
            "residuals have one variance",
            "columns are those clamped to their bounds",
            *(("n is as measured",) if measured else ()),
        )
        return estimate_of(read, model, loss, assumptions, title)

    def expected(n: int) -> st.Sums:
        found = {name: np.zeros(1) for name in _names(size)}
        squares = ["tt", *(f"z{i}z{i}" for i in range(size))]
        return st.Sums(
            found | {name: np.array([-n / 6]) for name in squares} | {"n": np.array([float(n)])}
        )

    def reach(n: int, laws: Laws, loss: Loss, confidence: float) -> tuple[float, float]:
        found: Any = result(expected(n), laws, loss)
        found = found.simulated(draws=1000)
        lower, upper = found.interval(confidence)[1]
        share = 1.0 - (found.se_sampling[1] / max(found.se[1], 1e-300)) ** 2
        return float(upper - lower) / 2, float(share) if math.isfinite(found.se[1]) else 1.0

    return EstimatorDesign(
        result, expected, least_rows, 0.2, f"half-width of {read.names[1]}", reach
    )


def _names(size: int) -> list[str]:
    pairs = [f"z{j}z{i}" for i in range(size) for j in range(i + 1)]
    return ["n", "t", "tt", *pairs, *(f"z{i}{end}" for i in range(size) for end in ("", "t"))]
