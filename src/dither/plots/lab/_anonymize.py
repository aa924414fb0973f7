"""What an anonymised table costs and what it leaves: levels, class sizes, odds of the attackers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dither._format import percent
from dither.plots._canvas import (
    COLOURS,
    INK,
    MUTED,
    WIDTH,
    finish,
    heading,
    new_figure,
    short,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.lab.anonymize import Anonymized, Measures

__all__ = ["draw_anonymized", "draw_measures"]

_ROW = 0.36
"""Inches that a bar takes."""


def draw_measures(measures: Measures, path: str | Path | None = None) -> Figure:
    """Class sizes beside the attackers' odds."""
    title = f"{measures.rows:,} rows, {measures.classes:,} classes, k = {measures.k:,}"
    return _measured(measures, title, path)


def _measured(measures: Measures, title: str, path: str | Path | None) -> Figure:
    odds = _odds(measures)
    figure = new_figure(WIDTH, max(3.4, 1.9 + _ROW * len(odds)))
    left, right = figure.subplots(1, 2)
    _classes(left, measures, None)
    _bars(right, odds, COLOURS[1], "probability, or share of rows")
    heading(right, "what attackers find")
    return finish(figure, title=title, foot=measures.unprotected, path=path)


def draw_anonymized(result: Anonymized, path: str | Path | None = None) -> Figure:
    """What was generalised, how large classes are, and the attackers' odds."""
    asked = ", ".join((f"{result.k}-anonymity", *result.required))
    total = len(result.rows) + result.suppressed
    left_out = f"{percent(result.suppressed / total)} of rows" if result.suppressed else "no row"
    title = f"{asked}: loss {result.loss:.3f}, {left_out} left out"
    odds = _odds(result.measures)
    levels = [
        (name, level / result.heights[name] if result.heights[name] else 0.0)
        for name, level in result.levels.items()
    ]
    if not levels:
        return _measured(result.measures, title, path)
    bars = max(len(levels), len(odds))
    figure = new_figure(WIDTH, 4.4 + _ROW * bars)
    grid = figure.add_gridspec(2, 2, height_ratios=[2.6, 1.0 + _ROW * bars])
    _classes(figure.add_subplot(grid[0, :]), result.measures, result.k)
    first, second = figure.add_subplot(grid[1, 0]), figure.add_subplot(grid[1, 1])
    _bars(first, levels, COLOURS[0], "level ÷ coarsest level")
    heading(first, "what was generalised")
    _bars(second, odds, COLOURS[1], "probability, or share of rows")
    heading(second, "what attackers still find")
    return finish(figure, title=title, foot=result.unprotected, path=path)


def _odds(measures: Measures) -> list[tuple[str, float]]:
    risk = measures.risk
    found = [
        ("prosecutor, worst row", risk.prosecutor.highest),
        ("prosecutor, average", risk.prosecutor.average),
    ]
    if risk.journalist is not None:
        found += [
            ("journalist, worst row", risk.journalist.highest),
            ("journalist, average", risk.journalist.average),
        ]
    found.append(("marketer", risk.marketer))
    for name, one in measures.sensitive.items():
        shown = name if len(name) <= 16 else f"{name[:15]}…"
        found += [
            (f"{shown}: surest guess", one.alpha),
            (f"{shown}: rows given away", one.disclosed / measures.rows),
        ]
    return found


def _classes(axes: Axes, measures: Measures, k: int | None) -> None:
    """The share of rows in classes of at most a size."""
    sizes = np.sort(measures.sizes)
    share = np.cumsum(sizes) / measures.rows
    axes.step(
        np.concatenate([sizes[:1], sizes]),
        np.concatenate([[0.0], share]),
        where="post",
        color=COLOURS[2],
        linewidth=2,
    )
    tidy(axes, values="y")
    axes.set_xscale("log")
    low, high = float(sizes[0]), float(sizes[-1])
    axes.set_xlim(low / 1.3, max(high, low + 1) * 1.3)
    axes.set_ylim(0, 1.03)
    _whole_ticks(axes, low / 1.3, max(high, low + 1) * 1.3, wide=k is not None)
    if k is not None and low / 1.3 <= k <= high * 1.3:
        axes.axvline(k, color=MUTED, linewidth=1, linestyle=(0, (4, 3)))
        axes.annotate(f"k = {k}", (k, 0.93), (4, 0), textcoords="offset points", color=MUTED)
    axes.set_xlabel("rows in the class")
    heading(axes, "share of rows in classes up to a size")


def _whole_ticks(axes: Axes, low: float, high: float, *, wide: bool) -> None:
    """Ticks at round numbers of rows: few over decades, and enough where classes are alike."""
    from matplotlib.ticker import MaxNLocator

    if high > 10 * low:
        steps = (1, 2, 5) if high < (2000 if wide else 100) * low else (1,)
        found = [float(step * 10**decade) for decade in range(12) for step in steps]
    else:
        found = [float(t) for t in MaxNLocator(5, integer=True).tick_values(low, high)]
    ticks = [t for t in found if low <= t <= high]
    axes.set_xticks(ticks, [short(t) for t in ticks])
    axes.minorticks_off()


def _bars(axes: Axes, rows: list[tuple[str, float]], colour: str, label: str) -> None:
    places = list(range(len(rows)))[::-1]
    axes.barh(places, [value for _, value in rows], color=colour, height=0.6)
    for place, (_, value) in zip(places, rows, strict=True):
        axes.annotate(
            short(round(value, 3))
            if value >= 0.001 or value == 0
            else short(float(f"{value:.1g}")),
            (value, place),
            (4, 0),
            textcoords="offset points",
            va="center",
            size=8,
            color=INK,
        )
    tidy(axes, values="x")
    axes.set_yticks(places, [name for name, _ in rows])
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(0, 1.18)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_xlabel(label)
