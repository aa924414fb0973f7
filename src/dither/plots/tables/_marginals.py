"""Pictures of marginals: tables with their intervals, and how wide these are by order."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError
from dither.plots._canvas import (
    COLOURS,
    INK,
    MARKERS,
    apart,
    finish,
    foot_line,
    heading,
    label_text,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.synth.marginals._marginals import ReleasedMarginals

__all__ = ["draw_marginals"]

_MOST = 40
"""Cells of a column that are drawn: the first ones, in the policy's order."""
_NAMED = 12
"""Tables of one order whose names are written."""


def draw_marginals(
    found: ReleasedMarginals, path: str | Path | None, columns: Sequence[str] | None
) -> Figure:
    """One table of one or two columns, and the half-widths of all tables.

    Raises
    ------
    ArgumentError
        ``columns`` are more than two, or were not asked for together.
    """
    if columns is None:
        # Of every table that was asked for smaller ones follow.
        columns = min(found.tables, key=lambda names: (len(names) != 2, len(names)))[:2]
    if not 1 <= len(columns) <= 2:
        raise ArgumentError("columns must be one or two: a picture of a table has no more")
    cells = found.estimate(columns)
    names = tuple(sorted(columns, key=found.domain.names.index))
    rows = min(max(cells.shape[0], 8), _MOST)
    figure = new_figure(9.6, 2.0 + 0.2 * rows)
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    labels = [[label_text(x, 18) for x in found.domain[n].labels[:_MOST]] for n in names]
    wide = found.half_width(columns)
    if len(names) == 1:
        _bars(left, cells[:_MOST], wide, labels[0])
    else:
        _map(left, cells[:_MOST, :_MOST], labels)
        left.set_xlabel(label_text(names[1]))
    left.set_ylabel(label_text(names[0]))
    cut = f", first {_MOST} cells" if max(cells.shape) > _MOST else ""
    heading(left, f"{' × '.join(label_text(n) for n in names)}, each cell ± {wide:,.3g}{cut}")
    _widths(right, found)
    content = found.certificate.content["requested"]
    words = "intervals are of the noise alone, at 95 %; counts are unbiased, and may be below 0"
    foot = foot_line(Fraction(content["epsilon"]), Fraction(content["delta"]), None, words)
    return finish(figure, title="Tables of counts", foot=foot, path=path)


def _bars(axes: Axes, values: npt.NDArray[np.float64], wide: float, labels: list[str]) -> None:
    at = np.arange(len(values))
    tidy(axes, values="x")
    axes.hlines(at, values - wide, values + wide, color=COLOURS[0], linewidth=2.2)
    axes.plot(values, at, "o", color=INK, markersize=3.5)
    axes.set_yticks(at, labels, fontsize=8)
    axes.set_ylim(len(values) - 0.4, -0.6)
    axes.set_xlabel("rows")


def _map(axes: Axes, values: npt.NDArray[np.float64], labels: list[list[str]]) -> None:
    # By their root small counts are seen beside large ones; what is below 0 has its own colours.
    shown = np.sign(values) * np.sqrt(np.abs(values))
    top = float(np.abs(shown).max()) or 1.0
    axes.imshow(shown, cmap="RdBu", vmin=-top, vmax=top, aspect="auto")
    down, across = labels
    axes.set_yticks(range(len(down)), down, fontsize=8)
    turned = max(map(len, across)) * len(across) > 40
    axes.set_xticks(range(len(across)), across, fontsize=8, rotation=90 if turned else 0)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    if values.size > 150 or len(across) > 9:
        return
    for i, row in enumerate(values):
        for j, n in enumerate(row):
            colour = "white" if abs(shown[i, j]) > 0.7 * top else INK
            text = f"{n:,.0f}".replace("-", "\N{MINUS SIGN}")
            axes.text(j, i, text, ha="center", va="center", fontsize=7, color=colour)


def _widths(axes: Axes, found: ReleasedMarginals) -> None:
    """The half-width of every table that was asked for, by its number of columns."""
    orders = sorted({len(names) for names in found.tables})
    tidy(axes, values="y")
    for order in orders:
        some = [names for names in found.tables if len(names) == order]
        widths = np.sort([found.half_width(names) for names in some])
        places = orders.index(order) + 0.7 * ((np.arange(len(some)) + 0.5) / len(some) - 0.5)
        axes.plot(
            places, widths, MARKERS[orders.index(order) % len(MARKERS)],
            color=apart(orders.index(order)), markersize=5 if len(some) <= _NAMED else 3,
        )  # fmt: skip
    axes.set_xticks(
        range(len(orders)),
        [f"{k}-way ({sum(len(n) == k for n in found.tables):,})" for k in orders],
    )
    axes.set_xlim(-0.6, len(orders) - 0.4)
    axes.set_ylim(0, 1.15 * max(map(found.half_width, found.tables)) or 1.0)
    heading(axes, "half-width of a cell's interval, by table")
