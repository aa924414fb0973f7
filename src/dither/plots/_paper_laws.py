"""Figures 1 and 3 of a paper: which report comes of which value, and the density of a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dither._format import percent
from dither.plots._canvas import COLOURS, INK, MUTED, WIDTH, finish, heading, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from typing_extensions import TypeIs

    from dither.examples.paper.diagrams import PaperDensity, PaperDiagram, PaperLaw

__all__ = ["draw_laws"]

_HIGH, _LOW = COLOURS[5], COLOURS[0]
_THICKEST = 9.0
"""Points of an arrow that is certain."""


def draw_laws(paper: PaperDiagram, path: str | Path | None = None) -> Figure:
    """Draw a diagram of laws; write it where a path is given."""
    laws = [panel for panel in paper.panels if _is_law(panel)]
    columns = 2
    rows = -(-len(paper.panels) // columns)
    figure = new_figure(WIDTH, (4.3 if laws else 5.4))
    panels: tuple[PaperLaw | PaperDensity, ...] = paper.panels
    tops = [_top(panel) for panel in panels if not _is_law(panel)]
    for i, panel in enumerate(panels):
        axes = figure.add_subplot(rows, columns, i + 1)
        if _is_law(panel):
            _arrows(axes, panel)
            continue
        _density(axes, panel, last=i >= len(paper.panels) - columns, first=i % columns == 0)
        axes.set_ylim(0.0, 1.15 * max(tops))
    return finish(figure, title=f"Figure {paper.number}: {paper.title}", foot=paper.note, path=path)


def _is_law(panel: PaperLaw | PaperDensity) -> TypeIs[PaperLaw]:
    """Whether a panel shows a law on few values; what is drawn is not imported."""
    return hasattr(panel, "chances")


def _arrows(axes: Axes, law: PaperLaw) -> None:
    """Values on the left, reports on the right, a line as thick as the chance."""
    k = len(law.names)
    heights = [float(k - 1 - i) - (0.35 if i >= law.high else 0.0) for i in range(k)]
    for x in range(k):
        colour = _HIGH if x < law.high else _LOW
        for y in range(k):
            if law.chances[x, y] > 0:
                # What is sent as it is lies above what crosses it.
                axes.plot(
                    (0.0, 1.0),
                    (heights[x], heights[y]),
                    color=colour,
                    linewidth=max(0.6, _THICKEST * float(law.chances[x, y])),
                    alpha=0.85 if x == y else 0.55,
                    solid_capstyle="butt",
                    zorder=2 if x == y else 1,
                )
    for i, name in enumerate(law.names):
        colour = _HIGH if i < law.high else _LOW
        axes.text(-0.05, heights[i], name, ha="right", va="center", fontsize=9, color=colour)
        kept = f"{name}  {percent(float(law.chances[i, i]), 0)}"
        axes.text(1.05, heights[i], kept, ha="left", va="center", fontsize=9, color=colour)
    axes.text(-0.05, k - 0.35, "value", ha="right", fontsize=8.5, color=MUTED)
    axes.text(1.05, k - 0.35, "report, and how often kept", ha="left", fontsize=8.5, color=MUTED)
    axes.set_xlim(-0.55, 1.95)
    axes.set_ylim(-0.8, k)
    axes.set_axis_off()
    heading(axes, f"{law.title}{_crossing(law)}", INK)


def _crossing(law: PaperLaw) -> str:
    """How often a value is sent as one of the others, where that is one number for all."""
    k = len(law.names)
    found = {
        percent(float(law.chances[x, y]), 0)
        for x in range(k)
        for y in range(k)
        if x != y and law.chances[x, y] > 0
    }
    return f": {found.pop()} on each crossing line" if len(found) == 1 else ""


def _top(law: PaperDensity) -> float:
    """The highest point of a law."""
    heights = [height for *_, height in law.pieces]
    return max([*heights, law.point[1]] if law.point else heights)


def _density(axes: Axes, law: PaperDensity, *, last: bool, first: bool) -> None:
    corners: list[tuple[float, float]] = [(law.pieces[0][0], 0.0)]
    end = law.pieces[0][0]
    for start, stop, height in law.pieces:
        if start > end:
            corners += [(end, 0.0), (start, 0.0)]
            axes.axvspan(end, start, color=_LOW, alpha=0.14, linewidth=0)
        corners += [(start, height), (stop, height)]
        end = stop
    corners.append((end, 0.0))
    x, y = zip(*corners, strict=True)
    colour = _HIGH if law.point is None else _LOW
    axes.plot(x, y, color=colour, linewidth=1.8)
    axes.fill_between(x, y, color=colour, alpha=0.12, linewidth=0)
    if law.point is not None:
        value, chance = law.point
        axes.plot((value, value), (0.0, chance), color=colour, linewidth=1.8)
        axes.plot([value], [chance], "o", color=colour, markersize=6)
        axes.annotate(
            f"chance {chance:.2f}",
            (value, chance),
            xytext=(8, -2),
            textcoords="offset points",
            fontsize=9,
            color=INK,
        )
    if last:
        axes.set_xlabel("report")
    if first:
        axes.set_ylabel("density (stem: chance)")
    heading(axes, law.title, MUTED)
    tidy(axes, values="y")
