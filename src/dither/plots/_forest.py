"""A forest plot: estimates and their intervals one below the other, their numbers beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._format import interval
from dither.plots._canvas import COLOURS, INK, MUTED, WIDTH, finish, new_figure, short, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_forest"]

_MOST = 60
_LONGEST = 44


def draw_forest(
    names: Sequence[str],
    told: Sequence[tuple[float, float, float]],
    *,
    title: str,
    foot: str,
    null: float | None,
    log: bool = False,
    axis: str = "",
    path: str | Path | None = None,
) -> Figure:
    """Draw estimates with intervals.

    Parameters
    ----------
    names : sequence of str
    told : sequence of (float, float, float)
        Of each the estimate and the two ends of its interval.
    title, foot : str
    null : float or None
        Where a line says that there is no effect.
    log : bool
        Whether values are ratios, on a scale of logarithms; ends that are not above 0 run to the
        edge.
    axis : str
        What is estimated.
    path : str or Path, optional
        Where to save it.
    """
    shown = min(len(names), _MOST)
    figure = new_figure(WIDTH, 1.5 + 0.3 * shown)
    axes = figure.add_subplot()
    tidy(axes, values="x")
    ends = np.array([t[1:] for t in told[:shown]], dtype=float).reshape(shown, 2)
    values = np.array([t[0] for t in told[:shown]], dtype=float)
    if log:
        axes.set_xscale("log")
    seen = np.concatenate([ends.ravel(), values, [] if null is None else [null]])
    seen = seen[np.isfinite(seen) & ((seen > 0) | (not log))]
    low, high = (float(seen.min()), float(seen.max())) if seen.size else (1.0, 2.0)
    if log:
        edges = (low / (high / low) ** 0.05 / 1.05, high * (high / low) ** 0.05 * 1.05)
    else:
        pad = 0.05 * (high - low) or 1.0
        edges = (low - pad, high + pad)
    axes.set_xlim(edges)
    if log:
        _round_ticks(axes, edges)
    if null is not None:
        axes.axvline(null, color=MUTED, linewidth=0.8, linestyle="--")
    lengths = np.clip(ends, *edges)
    spans = lengths[:, 1] - lengths[:, 0]
    least = float(np.nanmin(spans)) if shown else 0.0
    for j, (start, stop) in enumerate(lengths):
        axes.plot([start, stop], [j, j], color=COLOURS[0], linewidth=1.8, zorder=1.5)
        for end, edge, mark in ((ends[j, 0], edges[0], "<"), (ends[j, 1], edges[1], ">")):
            if not np.isfinite(end) or (log and end <= 0):
                axes.plot([edge], [j], mark, color=COLOURS[0], clip_on=False)
        # The shorter the interval, the larger the square, as in forest plots.
        size = 4 + 5 * float(np.sqrt(least / spans[j])) if spans[j] > 0 else 9
        if edges[0] <= values[j] <= edges[1]:
            axes.plot([values[j]], [j], "s", color=INK, markersize=size)
        value, low, high = (float(number) for number in told[j])
        text = interval(value, low, high, ends=True).replace("-", "\N{MINUS SIGN}")
        axes.annotate(
            text,
            (1.02, j),
            xycoords=("axes fraction", "data"),
            va="center",
            fontsize=8.5,
            color=INK,
            annotation_clip=False,
        )
    cut = [n if len(n) <= _LONGEST else n[: _LONGEST - 1] + "…" for n in names[:shown]]
    axes.set_yticks(np.arange(shown), [_plain(n) for n in cut])
    axes.set_ylim(shown - 0.4, -0.6)
    if axis:
        axes.set_xlabel(_plain(axis))
    if len(names) > shown:
        foot = f"{foot}; the first {shown} of {len(names):,}"
    return finish(figure, title=title, foot=foot, path=path)


def _round_ticks(axes: Axes, edges: tuple[float, float]) -> None:
    """At most seven round ratios, written out: 0.5, 1, 2."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = (math.floor(math.log10(edges[0])), math.ceil(math.log10(edges[1])))
    tens = max(1, -(-(high - low) // 6))
    made: list[float] = []
    for parts in ((1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8), (1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1,)):
        step = tens if parts == (1,) else 1
        made = [m * 10.0**k for k in range(low, high + 1, step) for m in parts]
        made = [tick for tick in made if edges[0] <= tick <= edges[1]]
        if len(made) <= 7:
            break
    axes.xaxis.set_major_locator(FixedLocator(made))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _plain(text: str) -> str:
    """A text in which matplotlib reads no formula."""
    return text.replace("$", r"\$")
