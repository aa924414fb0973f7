"""Tables of counts with noise, consistent with one another: what a release of marginals holds."""

from __future__ import annotations

import base64
import datetime as dt
import math
import zlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._display import table as shown_table
from dither._format import Printable, cost_text, half_width, interval, level, wrapped
from dither._stats import two_sided
from dither.errors import ArgumentError
from dither.query.tables._domain import CellDomain
from dither.session._certificate import Certificate
from dither.synth._frames import laid_out
from dither.synth.marginals._planner import Noise, real, shares, subsets
from dither.synth.marginals._residuals import table
from dither.synth.model._junction import Clique

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.figure import Figure

    from dither.synth.marginals._local_tables import LocalTables

__all__ = ["ReleasedMarginals", "packed", "reach", "unpacked"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_SHOWN = 12
"""Tables that a summary lists."""


def packed(values: Integers) -> str:
    """Whole numbers as text: the shortest type that holds them, compressed."""
    for kind in ("<i2", "<i4", "<i8"):
        stored = values.astype(kind)
        if np.array_equal(stored, values):
            break
    return kind + base64.b64encode(zlib.compress(stored.tobytes(), 1)).decode("ascii")


def unpacked(text: str, shape: Sequence[int]) -> Integers:
    """What `packed` wrote."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text[3:])), text[:3]).reshape(shape)


def reach(variance: float, cells: int, confidence: float) -> float:
    """The half-width of an interval about one cell of a table of so many cells.

    The estimate is a sum of many draws, most often, and a whole number over ``cells``: the normal
    law's half-width, and half of a step.
    """
    if not variance:
        return 0.0
    return two_sided(check.confidence(confidence)) * math.sqrt(variance) + 0.5 / cells


class ReleasedMarginals(Printable):
    """Tables of counts that a release of marginals gives.

    Each is the best linear unbiased estimate that all the noisy answers allow, so tables agree:
    summed over a column, one gives the other. Noise can take a cell below 0; `nonnegative` gives
    tables without that, which are no longer unbiased.

    Parameters
    ----------
    content : mapping
        As stored in the ledger.
    replayed : datetime, optional
        When the answer was charged, where it is an earlier one.
    """

    def __init__(self, content: Mapping[str, Any], *, replayed: dt.datetime | None = None) -> None:
        self._content, self._charged = content, replayed
        self.domain = CellDomain.from_list(content["domain"])
        self._tables: tuple[Clique, ...] = tuple(tuple(t) for t in content["tables"])
        self._noise: dict[Clique, Noise] = {}
        self._stored: dict[Clique, str] = {}
        for places, sigma2, text in content["residuals"]:
            self._noise[tuple(places)] = Noise(Fraction(sigma2), (), Fraction(0))
            self._stored[tuple(places)] = text

    @cached_property
    def _residuals(self) -> dict[Clique, Integers]:
        sizes = self.domain.sizes
        return {a: unpacked(text, [sizes[i] - 1 for i in a]) for a, text in self._stored.items()}

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The tables that were asked for, by their columns."""
        return tuple(tuple(self.domain.names[i] for i in t) for t in self._tables)

    @property
    def certificate(self) -> Certificate:
        """What the release promises, and where the ledger has it."""
        return Certificate(self._content["certificate"])

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        notes = list(self._content["notes"])
        if self._charged is not None:
            notes.append(
                f"replayed: the answer of {self._charged:%Y-%m-%d %H:%M} UTC, from the sources as "
                "they were then"
            )
        return notes

    def _clique(self, columns: Sequence[str]) -> Clique:
        found = self.domain.clique(columns)
        if real(found, self.domain.sizes) not in self._stored:
            raise ArgumentError(
                f"columns: {', '.join(columns)} were not asked for together; ask for tables of "
                "some of: " + "; ".join(", ".join(t) for t in self.tables[:_SHOWN])
            )
        return found

    def estimate(self, columns: Sequence[str]) -> Floats:
        """The counts of a table, unbiased.

        Parameters
        ----------
        columns : sequence of str
            Of a table that was asked for, or some of its columns.

        Returns
        -------
        array of float
            One axis a column, in the order of the table's columns in the policy; the cells are
            those of ``domain[column].cells``.
        """
        clique = self._clique(columns)
        found = self._kept.get(clique)
        if found is None:
            found = table(self._residuals, self.domain.sizes, clique)
            if found.size <= 1 << 20:
                self._kept[clique] = found
        return found.copy()

    @cached_property
    def _kept(self) -> dict[Clique, Floats]:
        return {}

    def variance(self, columns: Sequence[str]) -> float:
        """The exact variance of each cell of a table: it is the same for all."""
        clique = self._clique(columns)
        sizes = self.domain.sizes
        return sum(c * self._noise[a].variance for a, c in shares(real(clique, sizes), sizes))

    def half_width(self, columns: Sequence[str], confidence: float = 0.95) -> float:
        """How far the interval about each cell of a table reaches to either side."""
        cells = self.domain.cells_in(self._clique(columns))
        return reach(self.variance(columns), cells, confidence)

    def frame(self, columns: Sequence[str], confidence: float = 0.95) -> pl.DataFrame:
        """A table as a Polars frame.

        Parameters
        ----------
        columns : sequence of str
            As of `estimate`.
        confidence : float
            Of the intervals, each by itself.

        Returns
        -------
        polars.DataFrame
            The columns in the policy's types, bins as text; then ``count``, ``count_lower`` and
            ``count_upper``. One row a cell; a missing value is that of rows whose value is NULL or
            outside of what is declared.
        """
        clique = self._clique(columns)
        counts = self.estimate(columns)
        wide = self.half_width(columns, confidence)
        ends = {"count_lower": counts - wide, "count_upper": counts + wide}
        return laid_out(self.domain, clique, {"count": counts} | ends)

    @property
    def frames(self) -> dict[tuple[str, ...], pl.DataFrame]:
        """All tables that were asked for, by their columns."""
        return {names: self.frame(names) for names in self.tables}

    def nonnegative(self) -> LocalTables:
        """The nearest tables without a negative count, which agree; and rows near them.

        Returns
        -------
        LocalTables
            Of the tables that were asked for. It costs nothing: what was released is read again.
        """
        from dither.synth.marginals._local_tables import LocalTables
        from dither.synth.marginals._nonnegative import nearest

        variances = {a: noise.variance for a, noise in self._noise.items()}
        found = nearest(self._residuals, variances, self.domain.sizes, self._tables)
        return LocalTables(self.domain, found)

    def total(
        self, where: Mapping[str, Sequence[Any]] | None = None, *, confidence: float = 0.95
    ) -> tuple[float, float, float]:
        """How many rows there are whose columns have some of the values: with its interval.

        Parameters
        ----------
        where : mapping of str to sequence, optional
            By column: the values that count, any number inside of a bin for that bin. All rows
            where left out.
        confidence : float
            Of the interval.

        Returns
        -------
        (float, float, float)
            The estimate, and the two ends. Its variance is exact: that of the sum, in which the
            noise of cells partly cancels.
        """
        asked = dict(where or {})
        self._clique(list(asked))
        weights: dict[int, Floats] = {}
        for name, values in asked.items():
            attribute = self.domain[name]
            if isinstance(values, str) or not isinstance(values, Sequence):
                raise ArgumentError(f"where: {name} must have a list of values, such as [1, 2]")
            chosen = np.zeros(attribute.size)
            chosen[[attribute.place(v) for v in values]] = 1.0
            weights[self.domain.names.index(name)] = chosen
        # All cells of a column say nothing of it.
        asked = {n: v for n, v in asked.items() if not weights[self.domain.names.index(n)].all()}
        clique = self.domain.clique(list(asked))
        value = self.estimate(list(asked))
        for place in reversed(clique):
            value = value @ weights[place]
        variance = 0.0
        for a in subsets(real(clique, self.domain.sizes)):
            part = self._noise[a].variance
            for place in clique:
                mean = weights[place].mean()
                w = weights[place]
                part *= float(((w - mean) ** 2).sum()) if place in a else float(mean**2)
            variance += part
        wide = reach(variance, self.domain.cells_in(clique), confidence)
        return float(value), float(value) - wide, float(value) + wide

    def summary(self) -> str:
        """The tables, how wide their intervals are, and what they cost."""
        epsilon, delta = Fraction(self._content["epsilon"]), Fraction(self._content["delta"])
        rows = [
            [" × ".join(names), f"{self.domain.cells_in(t):,}", half_width(self.half_width(names))]
            for names, t in list(zip(self.tables, self._tables, strict=True))[:_SHOWN]
        ]
        count, low, high = self.total()
        lines = [f"{len(self._tables):,} tables of counts, at {cost_text(epsilon, delta)}"]
        lines += shown_table(["table", "cells", "±"], rows, left=1)
        if len(self._tables) > _SHOWN:
            lines.append(f"... and {len(self._tables) - _SHOWN:,} more")
        lines.append(f"rows: {interval(count, low, high)}")
        for note in [f"intervals at {level(0.95)}, of noise alone", *self.notes]:
            lines += wrapped(note, "  ", first="- ")
        return "\n".join(lines)

    def plot(
        self, path: str | Path | None = None, *, columns: Sequence[str] | None = None
    ) -> Figure:
        """Draw one table, and how wide the intervals of all are, by their number of columns.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.
        columns : sequence of str, optional
            One or two, of a table that was asked for; of the first one where left out.
        """
        from dither.plots.tables._marginals import draw_marginals

        return draw_marginals(self, path, columns)
