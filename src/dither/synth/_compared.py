"""How far a synthetic table is from the real one, measured with noise: figures to hand out.

Of a table of counts with c rows of n in a cell, and s synthetic rows of m, what is measured is

    f = sum over cells |m·c - n·s|,        total variation = f / (2·m·n),

a whole number, beside n itself. So a table of a million cells costs one number.

*Sensitivity.* A unit adds to the cells whole numbers d of one sign with a sum of k, at most
``max_rows``; n grows by k. By the triangle inequality, cell by cell, f moves by at most
sum |m·d - k·s| <= m·k + k·m = 2·m·k. A unit that is replaced leaves and enters: with as many rows
n stays, and f moves by at most m·sum |d| <= 2·m·k; a row for one that is in no cell is removed, or
added, and moves f by at most 2·m; in all at most 2·m·k again. n moves by at most k. The synthetic
table is public: it may be anything.

*Noise.* T distances and n get T + 1 equal parts of rho from discrete Gaussians; or of epsilon from
discrete Laplaces, where delta is 0.

*Intervals.* The error of f is that of its noise; that of n moves the quotient by its own share.
Both are nearly normal where noise has many steps, and the quotient is linear where n is far from 0.
What is largest of many noisy figures is too large on average: the worst table is a hint.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from dither._checks import confidence as check_confidence
from dither._format import Printable, cost_text, count_text, level, wrapped
from dither._stats import two_sided
from dither.errors import ArgumentError, nearest
from dither.query.tables._domain import Attribute, CellDomain, Clique
from dither.session._certificate import Certificate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["MeasuredDistances", "apart", "codes_of", "counted"]

Integers = npt.NDArray[np.int64]

_TRUNCATED = {"day": "1d", "week": "1w", "month": "1mo", "quarter": "1q", "year": "1y"}


def apart(real: Integers, synthetic: Integers) -> int:
    """f of two tables of counts, exactly.

    Examples
    --------
    >>> apart(np.array([3, 1]), np.array([1, 1]))
    4
    """
    n, m = int(real.sum()), int(synthetic.sum())
    if max(1, n) * max(1, m) < 2**61:
        return int(np.abs(real * m - synthetic * n).sum())
    both = zip(real.ravel().tolist(), synthetic.ravel().tolist(), strict=True)
    return sum(abs(c * m - s * n) for c, s in both)


def codes_of(domain: CellDomain, frame: pl.DataFrame) -> dict[int, Integers]:
    """The cell of each row of a public table, by the place of the column.

    What is in no other cell, such as a number beyond bounds, is in that of what is missing.

    Raises
    ------
    ArgumentError
        Where the table lacks a column, or a column has no cell for what it holds.
    """
    found = {}
    for place, attribute in enumerate(domain.attributes):
        if attribute.name not in frame.columns:
            raise ArgumentError(
                f"synthetic has no column {attribute.name!r}"
                f"{nearest(attribute.name, frame.columns)}"
            )
        column = frame[attribute.name]
        try:
            codes = _codes(attribute, column)
        except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
            raise ArgumentError(
                f"synthetic: column {attribute.name!r} holds {column.dtype}, where the policy "
                f"declares {attribute.kind.value}"
            ) from error
        if (codes < 0).any():
            if not attribute.missing:
                raise ArgumentError(
                    f"synthetic: column {attribute.name!r} holds values that are in none of its "
                    "cells, and the policy declares nullable = false"
                )
            codes[codes < 0] = attribute.inner
        found[place] = codes
    return found


def _codes(attribute: Attribute, column: pl.Series) -> Integers:
    """Cells, and -1 for what is in none."""
    numeric = attribute.kind.numeric
    if numeric:
        if not (column.dtype.is_numeric() or column.dtype == pl.Null):
            raise TypeError("not numbers")
        values = np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64)
        if attribute.edges is not None:
            edges = np.array([float(e) for e in attribute.edges])
            bins = np.searchsorted(edges, values, side="right") - 1
            bins[values == edges[-1]] = len(edges) - 2
            return np.where((bins >= 0) & (bins < len(edges) - 1), bins, -1).astype(np.int64)
        own = np.array([float(v) for v in attribute.values or ()])  # type: ignore[arg-type]
        order = np.argsort(own)
        near = np.minimum(np.searchsorted(own[order], values), len(own) - 1)
        return np.where(own[order][near] == values, order[near], -1).astype(np.int64)
    if attribute.period is not None:
        days = column if column.dtype == pl.Date else column.cast(pl.Date)
        column = days.dt.truncate(_TRUNCATED[attribute.period])
    elif column.dtype == pl.Categorical or isinstance(column.dtype, pl.Enum):
        column = column.cast(pl.String)
    listed = {value: i for i, value in enumerate(attribute.values or ())}
    kinds = {type(value) for value in listed} | {type(None)}
    distinct = column.unique()
    if not {type(value) for value in distinct} <= kinds:
        raise TypeError("other values")
    cells = pl.Series([listed.get(v, -1) for v in distinct], dtype=pl.Int64)
    table = pl.DataFrame({"value": distinct, "cell": cells})
    joined = pl.DataFrame({"value": column}).join(
        table, on="value", how="left", nulls_equal=True, maintain_order="left"
    )
    return np.asarray(joined["cell"].to_numpy(), dtype=np.int64).copy()


def counted(domain: CellDomain, codes: Mapping[int, Integers], clique: Clique) -> Integers:
    """The table of counts of a public table, in the domain's shape."""
    shape = domain.shape(clique)
    key = np.ravel_multi_index(tuple(codes[v] for v in clique), shape)
    return np.bincount(key, minlength=math.prod(shape)).reshape(shape).astype(np.int64)


@dataclass(frozen=True, eq=False)
class MeasuredDistances(Printable):
    """Distances of tables of counts, measured with noise: what `TableQuery.compare` releases.

    Attributes
    ----------
    columns : tuple of tuple of str
        Of each table.
    synthetic_rows : int
    epsilon, delta : str
        What was charged.
    certificate : Certificate
    """

    columns: tuple[tuple[str, ...], ...]
    synthetic_rows: int
    epsilon: str
    delta: str
    certificate: Certificate = field(repr=False)
    _apart: tuple[int, ...] = field(repr=False)
    _rows: int = field(repr=False)
    _deviations: tuple[float, float] = field(repr=False)
    _content: Mapping[str, Any] = field(repr=False)

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> MeasuredDistances:
        """From what was released, as the ledger keeps it."""
        of_f, of_n = content["deviations"]
        return cls(
            tuple(tuple(names) for names in content["columns"]),
            content["synthetic_rows"],
            content["epsilon"],
            content["delta"],
            Certificate(content["certificate"]),
            tuple(map(int, content["apart"])),
            int(content["rows"]),
            (of_f, of_n),
            content,
        )

    @property
    def frame(self) -> pl.DataFrame:
        """Each table's ``distance`` with ``lower`` and ``upper`` at 95 %, largest first."""
        return self.intervals().sort("distance", descending=True)

    def intervals(self, confidence: float = 0.95) -> pl.DataFrame:
        """Each table's distance with its interval, in the order that was asked for.

        Parameters
        ----------
        confidence : float
            Of each interval for itself, in (0, 1).
        """
        reach = two_sided(check_confidence(confidence))
        found = [self._quotient((f,), reach) for f in self._apart]
        return pl.DataFrame(
            {
                "columns": [list(names) for names in self.columns],
                "distance": [x[0] for x in found],
                "lower": [x[1] for x in found],
                "upper": [x[2] for x in found],
            },
            schema={
                "columns": pl.List(pl.String),
                "distance": pl.Float64,
                "lower": pl.Float64,
                "upper": pl.Float64,
            },
        )

    def mean(self, confidence: float = 0.95) -> tuple[float, float, float]:
        """The mean distance of all tables, and its interval."""
        return self._quotient(self._apart, two_sided(check_confidence(confidence)))

    def _quotient(self, apart: Sequence[int], reach: float) -> tuple[float, float, float]:
        """The mean of f / (2·m·n), and its ends, within [0, 1]."""
        of_f, of_n = self._deviations
        n, m = self._rows, self.synthetic_rows
        if n <= reach * of_n:
            return 0.5, 0.0, 1.0
        value = sum(apart) / (2 * m * n * len(apart))
        one = of_f / (2 * m * n * math.sqrt(len(apart)))
        half = reach * math.hypot(one, value * of_n / n)
        low, high = max(0.0, value - half), min(1.0, value + half)
        return min(1.0, max(0.0, value)), min(low, 1.0), max(high, 0.0)

    def summary(self) -> str:
        """The mean by order, and the tables that are farthest off."""
        blocks = self.certificate.content["text"].get("blocks")
        lines = [
            f"Measured with noise, {cost_text(Fraction(self.epsilon), Fraction(self.delta))}: "
            f"{count_text(len(self.columns), 'table')} of counts, of some {self._rows:,} real rows "
            f"and {self.synthetic_rows:,} synthetic ones.",
            *(wrapped(blocks) if blocks else ()),
            "",
            f"{'':<9}{'tables':>8}{'mean':>9}  interval at {level(0.95)}",
        ]
        for order in sorted({len(names) for names in self.columns}):
            some = [f for f, c in zip(self._apart, self.columns, strict=True) if len(c) == order]
            value, low, high = self._quotient(some, two_sided(0.95))
            lines.append(
                f"{f'{order}-way':<9}{len(some):>8,}{value:>9.4f}  [{low:.4f}, {high:.4f}]"
            )
        lines += ["", "Farthest off, of noisy figures:"]
        for names, value, low, high in self.frame.head(3).iter_rows():
            lines.append(f"  {value:.4f} [{low:.4f}, {high:.4f}]  {' × '.join(names)}")
        lines += ["", *wrapped("Total variation, from 0 to 1. These figures may be handed out.")]
        return "\n".join([*wrapped(lines[0]), *lines[1:]])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the distances with their intervals, largest first.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.tables._synth import draw_measured

        return draw_measured(self, path)
