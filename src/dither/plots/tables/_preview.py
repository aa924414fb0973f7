"""The picture of a preview: how the error bars of each output shrink as groups grow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._format import half_width, level
from dither.errors import ArgumentError, nearest
from dither.plots._canvas import (
    COLOURS,
    INK,
    MARKERS,
    WIDTH,
    finish,
    foot_line,
    new_figure,
    short,
    tidy,
    with_unit,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["panel", "plot_preview"]


def plot_preview(
    sizes: Sequence[int],
    half_widths: Mapping[str, Sequence[float | None]],
    *,
    epsilon: Any,
    delta: Any = 0,
    neighbours: str | None = None,
    confidence: float = 0.95,
    units: Mapping[str, str | None] | None = None,
    title: str | None = None,
    output: str | None = None,
    path: str | Path | None = None,
) -> Figure:
    """Draw half-width against group size, one panel for each output, both axes logarithmic.

    Parameters
    ----------
    sizes : sequence of int
        Group sizes, each above 0.
    half_widths : mapping of str to sequence of float
        By output: half the width of the interval at each size; None or infinite where no finite
        interval can be promised.
    epsilon, delta, neighbours, confidence, units, title, output, path
        As in `plot_release`.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingLibraryError
        Where matplotlib is not installed.
    ArgumentError
        Where lengths disagree, a size is not positive, or the path cannot be written.

    Examples
    --------
    >>> figure = plot_preview([100, 1000], {"cost": [20.0, 2.0]}, epsilon=0.5)
    >>> figure.axes[0].get_xlabel()
    'rows in the group'
    """
    if not sizes or any(size <= 0 for size in sizes):
        raise ArgumentError("sizes must be at least one number above 0")
    if output is not None and output not in half_widths:
        raise ArgumentError(f"output {output!r} is not here" + nearest(output, half_widths))
    shown = list(half_widths) if output is None else [output]
    if not shown:
        raise ArgumentError("half_widths is empty: no output has an interval, so none can be drawn")
    if any(len(half_widths[name]) != len(sizes) for name in shown):
        raise ArgumentError("half_widths must hold one number for each of the sizes")
    across = len(shown) if len(shown) <= 3 else (2 if len(shown) == 4 else 3)
    down = math.ceil(len(shown) / across)
    figure = new_figure(WIDTH if across > 1 else 5.5, 2.9 * down + 0.6)
    grid = figure.subplots(down, across, squeeze=False)
    order = sorted(range(len(sizes)), key=lambda i: sizes[i])
    for i, (axes, name) in enumerate(zip(grid.flat, shown, strict=False)):
        curve = [half_widths[name][k] for k in order]
        rising = [sizes[k] for k in order]
        panel(axes, rising, curve, i)
        axes.set_xticks(_apart(rising, 0.09 * across))
        axes.set_ylabel("± " + with_unit(name, units))
        axes.set_xlabel("rows in the group" if i + across >= len(shown) else "")
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    foot = foot_line(
        epsilon, delta, neighbours, f"half of the {level(confidence)} interval, noise only"
    )
    return finish(figure, title=title, foot=foot, path=path)


def panel(axes: Axes, sizes: Sequence[int], curve: Sequence[float | None], number: int) -> None:
    """One output: points at the sizes asked, each with its figure."""
    from matplotlib.patheffects import withStroke
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    tidy(axes, values="y")
    axes.set_xscale("log")
    axes.set_yscale("log")
    points = [
        (size, float(width))
        for size, width in zip(sizes, curve, strict=True)
        if width is not None and math.isfinite(width) and width > 0
    ]
    colour = COLOURS[number % len(COLOURS)]
    axes.plot(
        [p[0] for p in points],
        [p[1] for p in points],
        marker=MARKERS[number % len(MARKERS)],
        color=colour,
        linewidth=1.6,
        markersize=6,
        markeredgecolor="white",
        clip_on=False,
    )
    for size, width in points:
        axes.annotate(
            half_width(width),
            (size, width),
            xytext=(0, 8),
            textcoords="offset points",
            ha="center",
            size=8.5,
            color=INK,
            path_effects=[withStroke(linewidth=3, foreground="white")],
        )
    axes.set_xlim(sizes[0] / 1.7, sizes[-1] * 1.7)
    if points:
        low, high = min(p[1] for p in points), max(p[1] for p in points)
        axes.set_ylim(low / 1.8, high * 2.2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    low, high = axes.get_ylim()
    steps = (1.0, 2.0, 5.0) if high < 50 * low else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_formatter(NullFormatter())
    axes.minorticks_off()


def _apart(sizes: Sequence[int], least: float) -> list[int]:
    """Sizes whose labels do not run into each other: at least this share of the axis apart."""
    span = math.log(3 * sizes[-1] / sizes[0])
    kept = [sizes[-1]]
    for size in reversed(sizes[:-1]):
        if math.log(kept[-1] / size) >= least * span:
            kept.append(size)
    return kept[::-1]
