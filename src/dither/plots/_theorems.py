"""The same question by every theorem, as bars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dither._format import loss_text, remaining
from dither.plots._canvas import COLOURS, INK, WIDTH, finish, heading, new_figure, short, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from dither.accounting import EveryDivision, EveryTheorem

__all__ = ["bars_of_theorems", "draw_division", "draw_theorems"]

_FAR = 30.0
"""A ratio of the largest to the least value beyond which bars would hide the least."""


def draw_theorems(table: EveryTheorem, path: str | Path | None = None) -> Figure:
    """One bar a theorem that gives a number, the sharpest in another colour."""
    figure = new_figure(WIDTH, 1.6 + 0.4 * sum(row.value is not None for row in table.rows))
    bars_of_theorems(figure.subplots(), table)
    foot = "Every bar is a proven bound" + (
        "; the longest gives each the most."
        if table.more
        else "; the shortest is the one to quote."
    )
    return finish(figure, title=table.title, foot=foot, path=path)


def bars_of_theorems(axes: Axes, table: EveryTheorem) -> None:
    """The table's bars on some axes, each with its number."""
    rows = [(row.theorem, row.value) for row in table.rows if row.value is not None]
    best = table.best().theorem
    # What each may have is a promise, and what all cost a charge: neither is rounded in its favour.
    say = remaining if table.more else loss_text
    _bars(axes, rows, [name == best for name, _ in rows], say)


def _bars(
    axes: Axes,
    rows: Sequence[tuple[str, float]],
    best: Sequence[bool],
    say: Callable[[float], str] = short,
) -> None:
    """Bars from 0, or points on a logarithmic axis where bars would hide the smallest."""
    places = list(range(len(rows)))[::-1]
    colours = [COLOURS[1] if first else COLOURS[0] for first in best]
    values = [value for _, value in rows]
    least = min((v for v in values if v > 0), default=1.0)
    far = max(values) > _FAR * least
    if far:
        axes.hlines(places, least / 2, values, colors=colours, linewidth=2.5)
        axes.scatter(values, places, c=colours, s=44, zorder=3)
    else:
        axes.barh(places, values, color=colours, height=0.62)
    for place, value in zip(places, values, strict=True):
        axes.annotate(
            say(value), (value, place), (7, 0), textcoords="offset points", va="center", color=INK
        )
    tidy(axes, values="x")
    if far:
        axes.set_xscale("log")
        axes.set_xlim(least / 2, max(values) * 8)
        axes.minorticks_off()
    else:
        axes.margins(x=0.16)
        axes.set_xlim(left=0)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_yticks(places, [name for name, _ in rows])


def draw_division(table: EveryDivision, path: str | Path | None = None) -> Figure:
    """Total error by every theorem, and beside it the noise that each part gets by it."""
    rows = [row for row in table.rows if row.error is not None]
    lines = len(rows) * len(table.parts)
    figure = new_figure(WIDTH * 1.25, 1.9 + 0.42 * len(rows) + 0.16 * min(lines, 40))
    left, right = figure.subplots(1, 2, sharey=True)
    best = table.best().theorem
    _bars(left, [(r.theorem, r.error or 0.0) for r in rows], [r.theorem == best for r in rows])
    heading(left, "total error (weighted variance)")
    height = 0.74 / len(table.parts)
    for j, part in enumerate(table.parts):
        places = [len(rows) - 1 - i + 0.37 - (j + 0.5) * height for i in range(len(rows))]
        scales = [row.shares[j].scale for row in rows]
        colour = COLOURS[(2 + j) % len(COLOURS)]
        label = part.describe() if j < 8 else None
        right.barh(places, scales, height=0.9 * height, color=colour, label=label)
        if len(table.parts) <= 4:
            for place, scale in zip(places, scales, strict=True):
                right.annotate(
                    short(float(f"{scale:.3g}")),
                    (scale, place),
                    (4, 0),
                    textcoords="offset points",
                    va="center",
                    fontsize=8,
                    color=INK,
                )
    tidy(right, values="x")
    right.margins(x=0.16)
    right.set_xlim(left=0)
    heading(right, "noise of each mechanism (scale)")
    figure.legend(
        *right.get_legend_handles_labels(),
        loc="outside lower right",
        ncols=min(3, len(table.parts)),
        frameon=False,
        fontsize=8.5,
    )
    foot = "Every division keeps the promise; the least error is the one to use."
    return finish(figure, title=table.title, foot=foot, path=path)
