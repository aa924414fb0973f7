"""Pictures of a hierarchy and of ranges: counts with their intervals, and errors by level."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither.plots._canvas import (
    COLOURS,
    INK,
    MARKERS,
    finish,
    foot_line,
    heading,
    label_text,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dither.synth.hierarchy._counts import HierarchyCounts
    from dither.synth.ranges._counts import RangeCounts

__all__ = ["draw_hierarchy", "draw_ranges"]

_MOST = 24
"""Places that are drawn: those with the largest counts."""


def draw_hierarchy(result: HierarchyCounts, path: str | Path | None) -> Figure:
    """The first level of several places, largest first, and half-widths of all levels."""
    plan, sizes = result.plan, [len(places) for places in result.places]
    level = next((i for i, n in enumerate(sizes) if n > 1), len(sizes) - 1)
    frame = result.frame(result.levels[level], by=[]).sort("estimate", descending=True)
    shown = frame.head(_MOST)
    figure = new_figure(9.0, max(3.4, 1.9 + 0.24 * len(shown)))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    tidy(left, values="x")
    at = np.arange(len(shown))
    ends = np.array([shown["lower"], shown["upper"]], dtype=float)
    middle = shown["estimate"].to_numpy()
    left.hlines(at, *ends, color=COLOURS[0], linewidth=2.2, label="95 % interval")
    left.plot(middle, at, "|", color=COLOURS[0], markersize=9, label="unbiased estimate")
    left.plot(shown["count"], at, "o", color=INK, markersize=3.5, label="count that adds up")
    left.set_yticks(at, [label_text(v, 24) for v in shown[result.levels[level]]])
    left.set_ylim(len(shown) - 0.4, -0.6)
    name = label_text(result.levels[level])
    more = f", largest {_MOST} of {len(frame):,}" if len(frame) > _MOST else ""
    heading(left, f"by {name}{more}")
    left.legend(frameon=False, fontsize=8, loc="best")
    tidy(right, values="y")
    parts = [("a place", plan.cells, 0), ("a cell", 1, 5)][: 2 if plan.cells > 1 else 1]
    places = list(range(len(sizes)))
    for number, (what, of, colour) in enumerate(parts):
        alone = [plan.alone(i, 0.95, of) for i in places]
        joint = [float(plan.half_widths(i, 0.95, of).max()) for i in places]
        own = {"color": COLOURS[colour], "marker": MARKERS[number], "markersize": 6}
        right.plot(places, alone, linestyle="none", fillstyle="none", label=f"{what}, alone", **own)
        right.plot(places, joint, linestyle="none", label=f"{what}, all levels", **own)
    right.set_yscale("symlog", linthresh=1)
    right.set_xticks(places, [label_text(n, 14) for n in result.levels])
    right.set_xlim(-0.5, len(sizes) - 0.5)
    heading(right, "half-width of the 95 % interval")
    right.legend(frameon=False, fontsize=8, loc="best")
    charge = result.loss.charge
    words = (
        "bars are about the noise, of unbiased estimates; counts are whole numbers of at least 0"
    )
    foot = foot_line(charge.epsilon, charge.delta, None, words)
    return finish(figure, title=f"Counts by {', '.join(result.levels)}", foot=foot, path=path)


def draw_ranges(result: RangeCounts, path: str | Path | None) -> Figure:
    """How many lie in each bin, and in all up to it, with their intervals."""
    frame = result.frame
    at = np.arange(len(frame))
    figure = new_figure(9.0, 3.6)
    parts = (("in each", "estimate", "", 0), ("up to and with each", "below", "below_", 5))
    for axes, (title, name, prefix, colour) in zip(figure.subplots(1, 2), parts, strict=True):
        tidy(axes, values="y")
        ends = frame[f"{prefix}lower"].to_numpy(), frame[f"{prefix}upper"].to_numpy()
        axes.fill_between(at, *ends, step="mid", color=COLOURS[colour], alpha=0.25, linewidth=0)
        axes.plot(at, frame[name].to_numpy(), drawstyle="steps-mid", color=COLOURS[colour])
        ticks = np.unique(np.linspace(0, len(frame) - 1, min(len(frame), 6)).round().astype(int))
        axes.set_xticks(ticks, [label_text(frame[result.name][int(i)], 12) for i in ticks])
        heading(axes, title)
    charge = result.loss.charge
    foot = foot_line(charge.epsilon, charge.delta, None, "bands are 95 % intervals of the noise")
    return finish(figure, title=f"Ranges of {label_text(result.name)}", foot=foot, path=path)
