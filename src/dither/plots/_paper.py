"""Figures of a paper, redrawn: one panel a data set, lines by formula, marks where simulated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither.plots._canvas import (
    COLOURS,
    INK,
    MARKERS,
    MUTED,
    WIDTH,
    finish,
    heading,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.examples.paper.figures import PaperFigure, PaperPanel

__all__ = ["draw"]

_GREY, _GOLD = "#8a8a8a", "#8c6d1f"

_SERIES = {
    "GRR": INK,
    "PM": INK,
    "PM, any value": INK,
    "SDGRR-25": COLOURS[0],
    "SDPM-25": COLOURS[0],
    "SDGRR-50": COLOURS[2],
    "SDPM-50": COLOURS[2],
    "SDPM, low values": COLOURS[2],
    "SDGRR-75": COLOURS[4],
    "SDPM-75": COLOURS[4],
    "low values, 75 % low": COLOURS[0],
    "low values, 50 % low": COLOURS[2],
    "low values, 25 % low": COLOURS[4],
    "URR-25": COLOURS[5],
    "URR-50": COLOURS[1],
    "URR-75": COLOURS[3],
    "SDGRR-Personalised": _GOLD,
    "SDPM-Personalised": _GOLD,
    "one pooled likelihood": COLOURS[3],
    "PM + EM": COLOURS[5],
    "Duchi": COLOURS[1],
    "SW + EM": COLOURS[0],
    "the constant middle": _GREY,
}
"""One colour a series, in every panel and figure; the same share of high values, the same one."""

AS_PRINTED = "as printed"

_MARKERS = (*MARKERS, "X", "p")
"""Of eight series, the most that a figure has."""

_ABREAST, _SHORT = 3, 10
"""Entries of the legend on a line; four of them where their labels have so few letters."""


def draw(paper: PaperFigure, x: Sequence[float], path: str | Path | None = None) -> Figure:
    """Draw a figure of the paper against the epsilons x; write it where a path is given."""
    rows = math.ceil(len(paper.panels) / 2)
    columns = min(2, len(paper.panels))
    labels = list(dict.fromkeys(c.label for panel in paper.panels for c in panel.curves))
    colours = {label: _SERIES.get(label, MUTED) for label in labels}
    shown = _shown(paper)
    abreast = 4 if len(shown) == 4 and max(map(len, shown)) <= _SHORT else _ABREAST
    lines = math.ceil(len(shown) / abreast)
    below = 0.3 * lines
    figure = new_figure(WIDTH, 1.0 + 2.9 * rows + below)
    grid = figure.add_gridspec(rows + 1, columns, height_ratios=[2.9] * rows + [below])
    handles: dict[str, Artist] = {}
    for i, panel in enumerate(paper.panels):
        axes = figure.add_subplot(grid[i // columns, i % columns])
        _panel(axes, panel, colours, x)
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    if AS_PRINTED in handles:
        # What is dotted comes last: it is of every colour.
        handles[AS_PRINTED] = handles.pop(AS_PRINTED)
    foot = figure.add_subplot(grid[rows, :])
    foot.set_axis_off()
    legend = foot.legend(
        list(handles.values()),
        list(handles),
        loc="center left",
        bbox_to_anchor=(-0.02, 0.5),
        ncols=abreast,
        frameon=False,
        fontsize=9,
        columnspacing=1.6,
    )
    legend.set_in_layout(False)
    title = f"Figure {paper.number}: {paper.title}"
    return finish(figure, title=title, foot=paper.note, path=path)


def _shown(paper: PaperFigure) -> set[str]:
    """What the legend names."""
    return {c.label if c.how != "printed" else AS_PRINTED for p in paper.panels for c in p.curves}


def _panel(axes: Axes, panel: PaperPanel, colours: dict[str, str], x: Sequence[float]) -> None:
    named = {curve.label for curve in panel.curves if curve.how == "exact"}
    marked = {curve.label for curve in panel.curves if curve.how == "simulated"}
    for curve in panel.curves:
        colour = colours[curve.label]
        marker = _MARKERS[list(colours).index(curve.label) % len(_MARKERS)]
        if curve.errors is not None:
            axes.errorbar(
                x, curve.values, curve.errors, fmt="none", ecolor=colour, elinewidth=1.2, capsize=2
            )
        if curve.how == "simulated" and curve.label in named:
            axes.plot(x, curve.values, marker, color=colour, markersize=5)
            continue
        style = {"exact": "-", "simulated": "-", "printed": ":", "baseline": "--"}[curve.how]
        label = AS_PRINTED if curve.how == "printed" else curve.label
        mark = marker if curve.how == "simulated" else None
        look: dict[str, Any] = {"color": colour, "linewidth": 1.8, "markersize": 5}
        axes.plot(x, curve.values, style, marker=mark, **look)
        # In the legend a line has its marks, also where these are drawn by themselves.
        both = marker if curve.how != "printed" and curve.label in marked else None
        axes.plot([], [], style, marker=both, label=label, **look)
    axes.set_xlabel("ε")
    axes.set_ylabel(panel.ylabel)
    heading(axes, panel.title, MUTED)
    tidy(axes, values="y")
