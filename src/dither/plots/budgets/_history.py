"""What accounts have spent in all, by date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither.plots._canvas import (
    COLOURS,
    INK,
    MARKERS,
    MUTED,
    WIDTH,
    apart,
    finish,
    heading,
    label_text,
    new_figure,
    short,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Line", "UnitPanel", "draw_history"]

_AHEAD = 1.0
"""A day to come is drawn if it is no further away than so many times what has passed."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one account has spent in all, from each charge on, in the rule's currency.

    ``caps`` says from when on which cap held; ``until`` when it would be spent.
    """

    name: str
    when: tuple[datetime, ...]
    spent: tuple[float, ...]
    caps: tuple[tuple[datetime, float], ...]
    main: bool
    until: date | None


@dataclass(frozen=True, slots=True)
class UnitPanel:
    """The accounts that add up losses for one unit."""

    heading: str
    symbol: str
    lines: tuple[Line, ...]
    now: datetime
    notes: tuple[str, ...]


def draw_history(
    panels: Sequence[UnitPanel], *, title: str, foot: str, path: str | Path | None
) -> Figure:
    """Draw steps, one panel for each unit that is protected."""
    figure = new_figure(WIDTH * 1.25, 3.4 * max(len(panels), 1) + 0.8)
    grid = figure.subplots(len(panels) or 1, 1, squeeze=False)
    if not panels:
        axes = grid[0, 0]
        axes.text(0.5, 0.5, "no account yet", ha="center", transform=axes.transAxes, color=MUTED)
        axes.spines[:].set_visible(False)
        axes.set(xticks=[], yticks=[])
    for axes, panel in zip(grid.flat, panels, strict=False):
        _panel(axes, panel)
    return finish(figure, title=label_text(title), foot=foot.replace("$", "\\$"), path=path)


def _panel(axes: Axes, panel: UnitPanel) -> None:
    first = min(min([*line.when, *(at for at, _ in line.caps)]) for line in panel.lines)
    first = _naive(first)
    now = max(_naive(panel.now), first + timedelta(hours=1))
    passed = max(now - first, timedelta(days=1))
    end = max(now, first + timedelta(days=1))
    for line in panel.lines:
        if line.until is not None:
            end = max(end, min(_noon(line.until), now + _AHEAD * passed))
    top = 0.0
    others = 0
    for line in panel.lines:
        colour = COLOURS[0]
        if not line.main or line is not panel.lines[0]:
            others += 1
            colour = apart(others)
        top = max(top, *line.spent, *(cap for _, cap in line.caps))
        _steps(axes, line, colour, first, now, others)
        if line.caps:
            _caps(axes, line, first, end, colour, panel.symbol)
        if line.until is not None and line.caps and line.spent:
            _ahead(axes, line, colour, now, end)
    tidy(axes, values="y")
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    days = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(days)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(days))  # type: ignore[no-untyped-call]
    room = 0.02 * max(end - first, timedelta(hours=2))
    axes.set_xlim(first - room, end + room)  # type: ignore[arg-type]
    axes.set_ylim(0, 1.14 * top or 1.0)
    axes.set_ylabel(f"{panel.symbol} spent in all")
    axes.set_xlabel("date of the charge, in UTC")
    heading(axes, label_text(panel.heading, 90))
    axes.legend(
        loc="upper left", bbox_to_anchor=(1.0, 1.02), frameon=False, fontsize=9, handlelength=1.8
    )  # fmt: skip


def _steps(
    axes: Axes, line: Line, colour: str, first: datetime, now: datetime, number: int
) -> None:
    x: list[Any] = [first, *map(_naive, line.when), now]
    y = [0.0, *line.spent, line.spent[-1] if line.spent else 0.0]
    label = label_text(line.name, 48) + ("" if line.main else " (a quota)")
    axes.step(
        x, y, where="post", color=colour, linewidth=2.2 if line.main else 1.5, label=label,
        marker="" if line.main or len(line.when) > 40 else MARKERS[number % len(MARKERS)],
        markersize=4.5, markevery=slice(1, -1), zorder=3 if line.main else 2,
    )  # fmt: skip
    if line.main and number == 0:
        axes.fill_between(x, y, step="post", color=colour, alpha=0.12, linewidth=0)


def _caps(axes: Axes, line: Line, first: datetime, end: datetime, colour: str, symbol: str) -> None:
    x: list[Any] = [*(max(_naive(at), first) for at, _ in line.caps), end]
    y = [*(cap for _, cap in line.caps), line.caps[-1][1]]
    axes.step(
        x, y, where="post", color=INK if colour == COLOURS[0] else colour, linewidth=1.3,
        linestyle=(0, (5, 2)), label=f"cap: {symbol} {short(y[-1])}",
    )  # fmt: skip


def _ahead(axes: Axes, line: Line, colour: str, now: datetime, end: datetime) -> None:
    """From now to the day on which it would be spent, or as far as the picture goes."""
    assert line.until is not None
    day, cap, spent = _noon(line.until), line.caps[-1][1], line.spent[-1]
    day = max(day, now)
    whole = (day - now) / timedelta(days=1)
    share = 1.0 if day <= end or not whole else (end - now) / timedelta(days=1) / whole
    far = spent + (cap - spent) * share
    ends: list[Any] = [now, min(day, end)]
    axes.plot(
        ends, [spent, far], color=colour, linewidth=1.6, linestyle=(0, (2, 2)),
        label=f"at this pace until {line.until.isoformat()}",
    )  # fmt: skip
    if share == 1.0:
        last: list[Any] = [day]
        axes.plot(last, [cap], marker="o", color=colour, markersize=5, zorder=4)


def _naive(moment: datetime) -> datetime:
    """In UTC, as matplotlib draws moments."""
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo else moment


def _noon(day: date) -> datetime:
    return datetime.combine(day, time(12))
