"""Estimated coefficients: a table of them, what a regression says beside, and its predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from dither import _checks as check
from dither._format import number_text, percent
from dither.inference.engine._inputs import Bounds, Floats
from dither.inference.engine._result import PrivateEstimate, p_text
from dither.inference.regression._formula import MISSING, FormulaDesign
from dither.inference.regression._linear_models import LinearErrors, LinearModel

__all__ = ["Coefficients", "RegressionEstimate", "errors_of"]

_SHOWN = 40
_EACH = 64
"""Combinations up to which each has simulated releases of its own."""


@dataclass(frozen=True, eq=False, repr=False)
class Coefficients(PrivateEstimate):
    """Coefficients with the errors of sampling and noise, as a table.

    ``estimate``, ``se``, ``interval()`` and ``pvalue`` are arrays in the order of ``names``;
    ``params`` and ``bse`` are the same by name.

    Parameters
    ----------
    design : FormulaDesign
        The formula, with the bounds and levels that it was read with.
    model : object
        Layer 2: what simulates the release.
    """

    design: FormulaDesign = field(default=None, repr=False)  # type: ignore[assignment]
    model: Any = field(default=None, repr=False)

    @property
    def params(self) -> dict[str, float]:
        """Coefficients by name."""
        return self._by_name(self.estimate)

    @property
    def bse(self) -> dict[str, float]:
        """Standard errors by name."""
        return self._by_name(self.se)

    @property
    def pvalues(self) -> dict[str, float]:
        """Two-sided p-values of 0 by name."""
        return self._by_name(self.pvalue)

    def conf_int(self, alpha: float = 0.05) -> dict[str, tuple[float, float]]:
        """Intervals by name, at confidence 1 - alpha."""
        ends = self.interval(1.0 - check.number("alpha", alpha, above=0, below=1))
        return {n: (float(a), float(b)) for n, (a, b) in zip(self._labels, ends, strict=True)}

    @property
    def _labels(self) -> tuple[str, ...]:
        return self.names or ()

    def _by_name(self, values: Floats) -> dict[str, float]:
        return {n: float(v) for n, v in zip(self._labels, values, strict=True)}

    @cached_property
    def _table(self) -> list[str]:
        ends = self.errors.interval(0.95)
        head = ("", "estimate", "std err", "sampling", "p", "[0.025", "0.975]")
        rows: list[tuple[str, ...]] = [head]
        for j, name in enumerate(self._labels[:_SHOWN]):
            numbers = (self.estimate[j], self.se[j], self.se_sampling[j])
            rows.append(
                (
                    name,
                    *(_short(v) for v in numbers),
                    p_text(float(self.pvalue[j]), self.draws).removeprefix("= "),
                    *(_short(v) for v in ends[j]),
                )
            )
        wide = [max(len(row[k]) for row in rows) for k in range(len(head))]
        lines = [
            f"{row[0]:<{wide[0]}}  "
            + "  ".join(f"{c:>{w}}" for c, w in zip(row[1:], wide[1:], strict=True))
            for row in rows
        ]
        if len(self._labels) > _SHOWN:
            lines.append(f"... and {len(self._labels) - _SHOWN:,} more")
        return [line.rstrip() for line in lines]

    @property
    def _head(self) -> str:
        return f"{self.title}, {self._counted(self.rows)}."

    def _lines(self) -> list[str]:
        share = f"The noise makes {percent(self._share, 0)} of the variance of the error of slopes."
        return [self._head, *self._table, share]

    @property
    def _share(self) -> float:
        """The share of the variance that the noise makes, the median of the slopes."""
        se, sampling = self.se, self.se_sampling
        shares = 1.0 - np.where(np.isfinite(se), (sampling / np.maximum(se, 1e-300)) ** 2, 0.0)
        return float(np.median(shares[1:] if len(shares) > 1 else shares))


@dataclass(frozen=True, eq=False, repr=False)
class RegressionEstimate(Coefficients):
    """A linear regression: coefficients, what they explain, and predictions from them.

    ``estimate``, ``se``, ``interval()`` and ``pvalue`` are arrays in the order of ``names``;
    ``params`` and ``bse`` are the same by name.

    Parameters
    ----------
    design : FormulaDesign
        The formula, with the bounds and levels that it was read with.
    model : object
        Layer 2: what simulates the release.
    rsquared : float
        The share of the variance of the response that the regressors explain, from the same
        release; NaN where there are no more rows than coefficients, so that nothing tells.
    scale : float
        The variance of the residuals; NaN where nothing tells.
    """

    rsquared: float = math.nan
    scale: float = math.nan

    @property
    def residual_deviation(self) -> float:
        """The standard deviation of the residuals."""
        return math.sqrt(self.scale)

    def predict(self, frame: Any, *, new: bool = False) -> PrivateEstimate:
        """What the response is expected to be, with intervals; costs nothing.

        Parameters
        ----------
        frame : frame or mapping
            With the columns of the regressors. These rows are not protected.
        new : bool
            Whether intervals are for the response of one further row, not for its expectation: they
            take its residual to be normal.

        Returns
        -------
        PrivateEstimate
            A number a row; where a row misses something, that of a row in the middle of the bounds.
        """
        points = self.design.points(frame)
        points[points[:, :1].ravel() == MISSING if points.size else slice(0)] = 0
        ways = np.column_stack([np.ones(len(points)), points / Bounds.steps])
        half, middle = float(self.design.response.half), float(self.design.response.middle)
        model, residual = self.model, 0.0
        scale, offset = np.full(len(ways), half), ways @ model.at * half + middle
        if new:
            residual = math.inf if math.isnan(self.scale) else self.residual_deviation

        return PrivateEstimate(
            "response of one further row" if new else "expected response",
            self.loss,
            (*self.assumptions, *(("residuals are normal",) if new else ())),
            self.notes,
            tuple(f"row {j + 1}" for j in range(len(ways))),
            ways @ model.slopes * scale + offset,
            self.rows,
            partial(errors_of, model, ways, scale, offset, residual=residual),
            draws=self.draws,
            seed=self.seed,
        )

    @property
    def _head(self) -> str:
        if math.isnan(self.scale):
            fit = "R² and residuals are not determined: no more rows than coefficients."
        elif self.scale <= 0:
            fit = "R² and residuals are hidden by the noise."
        else:
            fit = (
                f"R² {number_text(self.rsquared, 3)}, residual standard deviation "
                f"{number_text(self.residual_deviation, 3)}."
            )
        return f"{super()._head} {fit}"


def errors_of(
    model: LinearModel,
    ways: Floats,
    scale: Floats,
    offset: Floats,
    rng: np.random.Generator,
    size: int,
    residual: float = 0.0,
) -> LinearErrors:
    """Errors of combinations; many of them share the simulated releases of the coefficients."""
    each = len(ways) <= _EACH
    simulated = model.pivots(rng, size, ways if each else np.eye(ways.shape[1]))
    if not each:
        simulated = simulated.max(axis=1, keepdims=True)
    return LinearErrors(model, ways, scale, offset, simulated, residual)


def _short(value: float) -> str:
    return "inf" if value == math.inf else "-inf" if value == -math.inf else number_text(value)
