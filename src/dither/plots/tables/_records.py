"""Pictures of paths and of series: squares of a tree by how full they are, sums and bands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither.plots._canvas import COLOURS, finish, foot_line, heading, label_text, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.places import QuadtreeCounts
    from dither.series import SeriesSums

__all__ = ["draw_quadtree", "draw_series"]

_MOST = 2000
"""Times that are drawn; of more, evenly spaced ones."""


def draw_quadtree(result: QuadtreeCounts, path: str | Path | None) -> Figure:
    """The squares, dark where many lie in an area."""
    from matplotlib.collections import PolyCollection

    frame = result.frame()
    left, right, low, high = (frame[name].to_numpy() for name in ("x0", "x1", "y0", "y1"))
    corners = np.stack(
        [np.stack(pair, 1) for pair in ((left, low), (right, low), (right, high), (left, high))], 1
    )
    dense = np.maximum(frame["estimate"].to_numpy(), 0.0) / ((right - left) * (high - low))
    figure = new_figure(5.2, 5.4)
    axes = figure.subplots()
    drawn = PolyCollection(list(corners), array=np.sqrt(dense), cmap="Blues", edgecolor="#8a8f98")
    drawn.set_linewidth(0.4)
    axes.add_collection(drawn)
    axes.set(xlim=result.bounds[0], ylim=result.bounds[1], aspect="equal", xlabel="x", ylabel="y")
    heading(axes, f"{len(frame):,} squares; dark: many on little ground")
    charge = result.loss.charge
    words = "estimates add up at every level, and are of what is kept of each unit"
    foot = foot_line(charge.epsilon, charge.delta, None, words)
    return finish(figure, title="Squares as small as noise allows", foot=foot, path=path)


def draw_series(result: SeriesSums, path: str | Path | None) -> Figure:
    """The sum of all units at each time, with the 95 % interval of the noise."""
    frame = result.frame()
    at = np.unique(np.linspace(0, len(frame) - 1, min(len(frame), _MOST)).round().astype(int))
    time, estimate, lower, upper = (
        frame[name].to_numpy()[at] for name in ("time", "estimate", "lower", "upper")
    )
    figure = new_figure(9.0, 3.2)
    axes = figure.subplots()
    tidy(axes, values="y")
    axes.fill_between(time, lower, upper, color=COLOURS[0], alpha=0.25, linewidth=0)
    axes.plot(time, estimate, color=COLOURS[0], linewidth=1.2)
    axes.set_xlabel("time")
    heading(axes, label_text(result.what))
    charge = result.loss.charge
    words = "the band is the 95 % interval of the noise; what the numbers leave out is not in it"
    foot = foot_line(charge.epsilon, charge.delta, None, words)
    return finish(figure, title="The sum of all units' series", foot=foot, path=path)
