"""What a budget has spent, has reserved and has left, as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither.plots._canvas import (
    COLOURS,
    INK,
    MUTED,
    WIDTH,
    finish,
    label_text,
    new_figure,
    percents,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Bar", "Whole", "draw_bars"]

SPENT, LEFT, CLOSED = COLOURS[0], "#dbe7f0", "#8a8a8a"

HATCH = "/////"

_NAMED = 16
"""Bars beyond which amounts are not written above, and not every label below."""

_WIDE = 60
"""Bars beyond which the picture is wider."""

_FLAT = 40
"""Bars with long labels lie, if they are no more."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One block, or a stretch of blocks of which each has spent this.

    Parameters
    ----------
    label : str
    spent, reserved : float
        In the rule's currency; what is reserved stands on what is spent.
    closed : bool
        Nothing more may be charged, because what was cannot be added up: drawn full.
    stretch : bool
        It stands for more than one block.
    rank : int
        How long a time begins here; labels of the longest are kept where there are many.
    named : bool
        It goes by a name and not by a place in the calendar.
    said : str
        What was spent, rounded for people.
    """

    label: str
    spent: float
    reserved: float
    closed: bool
    stretch: bool
    rank: int
    named: bool
    said: str


@dataclass(frozen=True, slots=True)
class Whole:
    """All of an account together; ``of`` says of what the amounts are."""

    label: str
    spent: float
    reserved: float
    cap: float
    closed: bool
    said: str
    unlocked: float | None = None
    of: str = "in all"

    def unlocked_at(self, amount: float) -> Whole:
        """The same, of which so much is unlocked so far."""
        return replace(self, unlocked=amount)


def draw_bars(
    bars: Sequence[Bar],
    *,
    cap: float,
    capped: str,
    across: str,
    along: str,
    symbol: str,
    below: Whole | None,
    title: str,
    foot: str,
    path: str | Path | None,
) -> Figure:
    """Draw blocks as bars, and below them all together.

    Parameters
    ----------
    bars : sequence of Bar
        In their order.
    cap : float
        Of each.
    capped, across, along, symbol : str
        What the cap's line says, what the bars and their lengths are, and what is added up below.
    below : Whole or None
    title, foot : str
    path : str or Path or None
        Where to save it.
    """
    longest = max((len(bar.label) for bar in bars), default=0)
    flat = len(bars) <= _FLAT and longest * len(bars) > 85 and _plain(bars)
    width = WIDTH * 1.4 if len(bars) > _WIDE else WIDTH
    tall = 0.0 if not bars else 1.0 + 0.29 * len(bars) if flat else 2.9
    low = 0.0 if below is None else 0.9
    figure = new_figure(width, tall + low + 1.3)
    heights = [height for height in (tall, low) if height]
    grid = figure.subplots(len(heights) or 1, 1, squeeze=False, height_ratios=heights or [1])
    panels = list(grid.flat)
    if bars:
        axes = panels[0]
        _blocks(axes, bars, cap, capped, flat)
        _label(axes, bars, flat)
        (axes.set_xlabel if flat else axes.set_ylabel)(along)
        (axes.set_ylabel if flat else axes.set_xlabel)(across)
        if cap == 1 and "share" in along:
            percents(axes.xaxis if flat else axes.yaxis)
    if below is not None:
        _whole(panels[-1], below, symbol)
    handles: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper right", ncols=len(handles),
        frameon=False, fontsize=9, handlelength=1.4, columnspacing=1.4,
    )  # fmt: skip
    return finish(figure, title=label_text(title), foot=foot.replace("$", "\\$"), path=path)


def _plain(bars: Sequence[Bar]) -> bool:
    """Whether bars stand for declared blocks or stretches, whose labels cannot be left out."""
    return all(bar.rank == 0 for bar in bars) or any(
        bar.stretch and not bar.named for bar in bars[1:-1]
    )


def _places(bars: Sequence[Bar]) -> tuple[Any, Any]:
    """Where each bar stands, and how wide it is: apart from its neighbours where it is of a kind
    of its own."""
    many = len(bars) > _NAMED
    wide = max(2.0, 0.05 * len(bars)) if many else 1.0
    places, widths, at = [], [], 0.0
    for i, bar in enumerate(bars):
        ends = bar.stretch and i in (0, len(bars) - 1)
        alone = many and (ends or bar.named)
        width = wide if alone else 1.0
        if i and (bar.named or bars[i - 1].named or bar.stretch or bars[i - 1].stretch):
            at += 0.3 * wide
        places.append(at + width / 2)
        widths.append(width * (0.76 if not many or alone else 0.9 if len(bars) < 150 else 1.0))
        at += width
    return np.array(places), np.array(widths)


def _blocks(axes: Axes, bars: Sequence[Bar], cap: float, capped: str, flat: bool) -> None:
    places, widths = _places(bars)
    spent = np.array([bar.spent for bar in bars])
    kept = np.array([bar.reserved for bar in bars])
    closed = np.array([bar.closed for bar in bars])
    left = np.maximum(cap - spent - kept, 0.0)
    draw: Any = axes.barh if flat else axes.bar
    start = "left" if flat else "bottom"
    for where, colour, label in ((~closed, SPENT, "spent"), (closed, CLOSED, "closed")):
        if where.any() and spent[where].any():
            draw(places[where], spent[where], widths[where], color=colour, lw=0, label=label)
    if kept.any():
        at = kept > 0
        draw(
            places[at], kept[at], widths[at], **{start: spent[at]}, facecolor="white",
            edgecolor=SPENT, hatch=HATCH, lw=0.8 if len(bars) <= _WIDE else 0, label="reserved",
        )  # fmt: skip
    if left.any():
        draw(
            places, left, widths, **{start: spent + kept}, color=LEFT, lw=0, label="left"
        )  # fmt: skip
    line = axes.axvline if flat else axes.axhline
    line(cap, color=INK, linewidth=1.3, linestyle=(0, (5, 2)), label=capped)
    tidy(axes, values="x" if flat else "y")
    edge = 0.6 * float(widths.max())
    ends = (float(places[0]) - edge, float(places[-1]) + edge)
    top = 1.12 * max(cap, float((spent + kept).max()))
    if flat:
        axes.set(xlim=(0, top), ylim=ends[::-1])
    else:
        least = 3.0
        room = max(0.0, least - (ends[1] - ends[0])) / 2
        axes.set(ylim=(0, top), xlim=(ends[0] - room, ends[1] + room))
    if len(bars) > _NAMED:
        return
    for place, bar in zip(places, bars, strict=True):
        if bar.spent:
            end = bar.spent + bar.reserved
            at_end = (end, float(place)) if flat else (float(place), end)
            axes.annotate(
                bar.said, at_end, (4, 0) if flat else (0, 3), textcoords="offset points",
                ha="left" if flat else "center", va="center" if flat else "bottom",
                size=8, color=INK,
            )  # fmt: skip


def _label(axes: Axes, bars: Sequence[Bar], flat: bool) -> None:
    """As many labels as can be read, those at which a longer time begins before others."""
    places, _ = _places(bars)
    if flat:
        axes.set_yticks(places, [label_text(bar.label, 36) for bar in bars])
        return
    always = [i for i, bar in enumerate(bars) if bar.named or bar.stretch]
    others = [i for i in range(len(bars)) if i not in set(always)]
    room = max(_NAMED - len(always), 4)
    shown = others
    for rank in (1, 2, 3, 4, 5):
        if len(shown) > room:
            ranked = [i for i in others if bars[i].rank >= rank]
            shown = ranked if len(ranked) >= 2 else shown
    if len(shown) > room:
        shown = shown[:: -(-len(shown) // room)]
    chosen = sorted({*always, *shown})
    text = [label_text(bars[i].label, 24) for i in chosen]
    crowded = sum(len(one) + 2 for one in text) > (120 if len(bars) > _WIDE else 78)
    axes.set_xticks(
        places[chosen], text, rotation=35 if crowded else 0, ha="right" if crowded else "center",
        rotation_mode="anchor" if crowded else "default",
    )  # fmt: skip


def _whole(axes: Axes, held: Whole, symbol: str) -> None:
    left = max(held.cap - held.spent - held.reserved, 0.0)
    if held.spent:
        colour, label = (CLOSED, "closed") if held.closed else (SPENT, "spent")
        axes.barh(0, held.spent, 0.6, color=colour, lw=0, label=label)
    if held.reserved:
        axes.barh(
            0, held.reserved, 0.6, left=held.spent, facecolor="white", edgecolor=SPENT,
            hatch=HATCH, lw=0.8, label="reserved",
        )  # fmt: skip
    if left:
        axes.barh(
            0, left, 0.6, left=held.spent + held.reserved, color=LEFT, lw=0, label="left"
        )  # fmt: skip
    axes.plot([held.cap] * 2, [-0.42, 0.42], color=INK, linewidth=1.3, linestyle=(0, (5, 2)))
    if held.unlocked is not None:
        axes.plot(
            [held.unlocked] * 2, [-0.42, 0.42], color=COLOURS[5], linewidth=1.6,
            label="unlocked so far",
        )  # fmt: skip
    tidy(axes, values="x")
    axes.spines["left"].set_visible(False)
    axes.set_yticks([0], [held.label])
    axes.set_ylim(-0.62, 0.62)
    axes.set_xlim(0, 1.04 * max(held.cap, held.spent + held.reserved, 1e-12))
    axes.set_xlabel(f"{symbol} {held.of}" + (f": {held.said}" if held.said else ""), color=MUTED)
