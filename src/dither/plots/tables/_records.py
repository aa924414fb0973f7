"""Pictures of paths, series and degrees: squares and cells by their counts, lines and bands."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither.plots._canvas import COLOURS, finish, foot_line, heading, label_text, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.graph import DegreeDistribution
    from dither.places import PlaceCounts, QuadtreeCounts
    from dither.series import SeriesSums, WindowQuantiles

__all__ = ["draw_degrees", "draw_places", "draw_quadtree", "draw_quantiles", "draw_series"]

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


def draw_places(result: PlaceCounts, path: str | Path | None) -> Figure:
    """Cells of the grid by their counts, of all hours together; or origins by destinations."""
    from matplotlib.ticker import MaxNLocator

    counts, grid = np.maximum(result.counts, 0), result.grid
    figure = new_figure(5.6, 5.0)
    axes = figure.subplots()
    trips = "destination" in result.axes
    if trips:
        shown, ends = counts, None
        axes.set(xlabel="destination", ylabel="origin")
    else:
        each = counts.reshape(grid.cells, -1).sum(axis=1)
        shown, side = each.reshape(grid.rows, grid.columns), float(grid.cell)
        left, low = float(grid.left), float(grid.bottom)
        ends = (left, left + grid.columns * side, low, low + grid.rows * side)
        axes.set(xlabel="x", ylabel="y")
    drawn = axes.imshow(
        np.sqrt(shown), cmap="Blues", vmin=0, origin="lower", extent=ends, aspect="auto"
    )
    bar = figure.colorbar(drawn, ax=axes, label="count", format=lambda root, _: f"{root**2:,.0f}")
    bar.outline.set_visible(False)
    if trips:
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(integer=True))
    hours = "hour" in result.axes
    heading(axes, label_text(f"{result.what}{', of all hours' if hours else ''}"))
    charge = result.loss.charge
    one = "the count of one hour" if hours else "a count"
    words = f"the 95 % interval of {one} reaches {result.half_width():,} to either side"
    foot = foot_line(charge.epsilon, charge.delta, None, words)
    return finish(figure, title="Counts of places", foot=foot, path=path)


def draw_quantiles(result: WindowQuantiles, path: str | Path | None) -> Figure:
    """Each quantile over the windows, with its intervals."""
    at = np.arange(len(result.values))
    figure = new_figure(9.0, 3.2)
    axes = figure.subplots()
    tidy(axes, values="y")
    for i, q in enumerate(result.qs):
        colour = COLOURS[i % len(COLOURS)]
        ends = result.lower[:, i], result.upper[:, i]
        axes.fill_between(at, *ends, color=colour, alpha=0.25, linewidth=0, step="mid")
        axes.step(at, result.values[:, i], color=colour, where="mid", label=f"{q:g}")
    axes.set_xlabel("window")
    if len(result.qs) > 1:
        axes.legend(frameon=False, title="quantile")
    heading(axes, "each unit's mean in a window")
    charge = result.loss.charge
    words = "intervals are of the noise and a bin's width"
    foot = foot_line(charge.epsilon, charge.delta, None, words)
    return finish(figure, title="Quantiles of windows", foot=foot, path=path)


def draw_degrees(result: DegreeDistribution, path: str | Path | None) -> Figure:
    """How many nodes have at least so many edges; both on scales of powers of ten."""
    counts = result.at_least[1:]
    seen = np.flatnonzero(counts >= 0.5)
    last = int(seen[-1]) + 1 if seen.size else min(1, len(counts))
    figure = new_figure(5.6, 4.0)
    axes = figure.subplots()
    tidy(axes, values="y")
    edges, nodes = np.arange(1, last + 1), np.maximum(counts[:last], 0.5)
    axes.step(edges, nodes, where="post", color=COLOURS[0], marker="." if last < 20 else "")
    axes.set(xlabel="edges, at least", ylabel="nodes")
    if last:
        # Of no degree at all there is nothing to take a logarithm of.
        axes.set(xscale="log", yscale="log")
    heading(axes, "nodes with at least so many edges")
    charge = result.loss.charge
    words = result.notes[0] if result.notes else "sorted degrees with noise, made to fall"
    foot = foot_line(charge.epsilon, charge.delta, None, words)
    return finish(figure, title="Degrees", foot=foot, path=path)


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
