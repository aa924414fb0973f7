"""The same question by every theorem, as bars."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dither.plots.canvas import COLOURS, INK, WIDTH, finish, new_figure, short, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.accounting import EveryTheorem

__all__ = ["draw_theorems"]


def draw_theorems(table: EveryTheorem, path: str | Path | None = None) -> Figure:
    """One bar a theorem that gives a number, the sharpest in another colour.

    Parameters
    ----------
    table : EveryTheorem
        What is drawn.
    path : str or Path, optional
        Where to save it: .png, .svg or .pdf.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = [(row.theorem, row.value) for row in table.rows if row.value is not None]
    figure = new_figure(WIDTH, 1.4 + 0.4 * len(rows))
    axes = figure.subplots()
    places = list(range(len(rows)))[::-1]
    colours = [COLOURS[1] if i == 0 else COLOURS[0] for i in range(len(rows))]
    axes.barh(places, [value for _, value in rows], color=colours, height=0.62)
    for place, (_, value) in zip(places, rows, strict=True):
        axes.annotate(
            short(value), (value, place), (4, 0), textcoords="offset points", va="center", color=INK
        )
    tidy(axes, values="x")
    axes.set_yticks(places, [name for name, _ in rows])
    axes.margins(x=0.12)
    return finish(figure, title=table.title, foot="Every bar is a proven bound.", path=path)
