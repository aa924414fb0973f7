"""Panels of a picture: the answers of an output as bars, points, a histogram or a line, and where
they stand."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dither.plots._canvas import (
    COLOURS,
    DASHED,
    INK,
    MARKERS,
    MUTED,
    WIDTH,
    heading,
    new_figure,
    tidy,
)
from dither.plots._levels import KeyLevels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Floats", "Form", "Panel", "Series", "draw", "lay_out", "limits", "reads_as_line"]

Floats = NDArray[np.float64]

MOVED = "x"
"""Marks an answer that noise had made impossible, and that is drawn at the nearest possible one."""


LONG = 12
"""Levels of a number beyond which a line reads better than points."""

FEW = 4
"""Days, months or years beyond which a line along an axis of time does."""


class Form(Enum):
    """How answers are drawn."""

    BARS = "bars"
    POINTS = "points"
    STEPS = "histogram"
    LINE = "line"

    @property
    def from_zero(self) -> bool:
        """Whether length stands for the answer, so that the axis must hold zero."""
        return self in (Form.BARS, Form.STEPS)


@dataclass(frozen=True, slots=True)
class Series:
    """Answers with their intervals, one for each level; NaN where there is no answer.

    ``moved`` says which noisy answers were impossible and are drawn at the nearest that is not,
    ``vague`` which intervals leave every value possible, so that there is no answer to draw.
    """

    label: str
    value: Floats
    lower: Floats
    upper: Floats
    moved: NDArray[np.bool_]
    vague: NDArray[np.bool_]


def limits(series: Sequence[Series], zero: bool) -> tuple[float, float]:
    """The stretch of the axis of values that holds every finite answer and interval end."""
    parts = [np.concatenate([s.value, s.lower, s.upper]) for s in series]
    finite = np.concatenate(parts) if parts else np.zeros(0)
    finite = finite[np.isfinite(finite)]
    if zero:
        finite = np.append(finite, 0.0)
    if finite.size == 0:
        return 0.0, 1.0
    low, high = float(finite.min()), float(finite.max())
    room = 0.06 * (high - low) or 0.1 * abs(high) or 1.0
    return (
        low if zero and low == 0 < high else low - room,
        high if zero and high == 0 > low else high + room,
    )


def draw(axes: Axes, form: Form, levels: KeyLevels, series: Sequence[Series], flat: bool) -> None:
    """Draw the series of one output; ``flat`` lays the levels along the vertical axis."""
    if not len(levels):
        axes.text(0.5, 0.5, "no group", ha="center", transform=axes.transAxes, color=MUTED)
        axes.spines[:].set_visible(False)
        axes.set(xticks=[], yticks=[])
        return
    zero = form.from_zero
    low, high = limits(series, zero)
    if form is Form.LINE:
        for i, one in enumerate(series):
            _line(axes, list(levels.places or range(len(levels))), one, i, low, high)
    else:
        places = np.arange(len(levels), dtype=float)
        width = _width(form, len(series))
        if form is Form.STEPS and levels.even and levels.edges is not None:
            places = np.array([(a + b) / 2 for a, b in levels.edges])
            width *= levels.edges[0][1] - levels.edges[0][0]
        for i, one in enumerate(series):
            shift = (i - (len(series) - 1) / 2) * width
            shown = places if flat is False else -places
            at = shown + (-shift if flat else shift)
            _marks(axes, form, at, one, i, width, (low, high), flat)
    if flat:
        axes.set_xlim(low, high)
    else:
        axes.set_ylim(low, high)
    if zero:
        line = axes.axvline if flat else axes.axhline
        line(0, color="#9a9a9a", linewidth=0.8, zorder=1)
    _name_levels(axes, form, levels, flat)


def _width(form: Form, series: int) -> float:
    if form is Form.STEPS and series == 1:
        return 0.97
    if form is Form.POINTS:
        return min(0.75 / series, 0.2)
    return 0.8 / series if series > 1 else 0.62


def _marks(
    axes: Axes,
    form: Form,
    at: Floats,
    one: Series,
    number: int,
    width: float,
    ends: tuple[float, float],
    flat: bool,
) -> None:
    """Bars or points, each with its interval."""
    colour = COLOURS[number % len(COLOURS)]
    every, there = at, np.isfinite(one.value) & ~one.vague
    lines = axes.hlines if flat else axes.vlines
    lines(every[one.vague], *ends, color=MUTED, linewidth=1, linestyle=DASHED, zorder=3)
    at, value = at[there], one.value[there]
    reach = np.vstack(
        [value - _within(one.lower[there], ends), _within(one.upper[there], ends) - value]
    )
    reach = np.maximum(reach, 0.0)
    if form is Form.POINTS:
        style: dict[str, Any] = {
            "fmt": MARKERS[number % len(MARKERS)],
            "color": colour,
            "markersize": 6,
            "markeredgecolor": "white",
            "markeredgewidth": 0.8,
            "elinewidth": 2.0,
            "capsize": 0,
            "label": one.label,
        }
    else:
        bars = axes.barh if flat else axes.bar
        bars(at, value, width * 0.96, color=colour, alpha=0.78, linewidth=0, label=one.label)
        style = {
            "fmt": "none",
            "ecolor": INK,
            "elinewidth": 1.1,
            "capsize": min(3.0, 40.0 * width / max(len(at), 1)),
            "capthick": 1.1,
        }
    if flat:
        axes.errorbar(value, at, xerr=reach, zorder=3, **style)
    else:
        axes.errorbar(at, value, yerr=reach, zorder=3, **style)
    moved = one.moved[there]
    if moved.any():
        where = (value[moved], at[moved]) if flat else (at[moved], value[moved])
        axes.plot(
            *where, linestyle="none", marker=MOVED, color=INK, markersize=6, zorder=4, clip_on=False
        )


def _line(axes: Axes, places: list[Any], one: Series, number: int, low: float, high: float) -> None:
    """A line within its band, broken where a group has no answer or is not there at all."""
    colour = COLOURS[number % len(COLOURS)]
    bottom, top = (_within(end, (low, high)) for end in (one.lower, one.upper))
    label = one.label
    runs = _runs(places, one.value)
    if not runs:
        # For the legend, and so that the axis still holds days.
        axes.plot(places, one.value, color=colour, linewidth=1.6, label=label)
    for run in runs:
        here = places[run]
        axes.fill_between(here, bottom[run], top[run], color=colour, alpha=0.22, linewidth=0)
        lone = len(here) == 1
        if lone:
            axes.vlines(here, bottom[run], top[run], color=colour, alpha=0.22, linewidth=3)
        marker = MARKERS[number % len(MARKERS)] if lone else ""
        axes.plot(here, one.value[run], color=colour, linewidth=1.6, label=label, marker=marker)
        label = "_"
    at = np.flatnonzero(one.moved)
    if at.size:
        where = [places[i] for i in at]
        axes.plot(
            where, one.value[at], linestyle="none", marker=MOVED, color=INK, zorder=4, clip_on=False
        )


def _runs(places: list[Any], value: Floats) -> list[slice]:
    """Stretches of answers that follow each other: no gap is much wider than most gaps are.

    Examples
    --------
    >>> _runs([1, 2, 3, 6, 7, 8], np.array([1.0, 2.0, 3.0, np.nan, 5.0, 6.0]))
    [slice(0, 3, None), slice(4, 6, None)]
    """
    days = [p.toordinal() if isinstance(p, dt.date) else float(p) for p in places]
    gaps = np.diff(np.array(days, dtype=np.float64))
    wide = 1.9 * float(np.median(gaps)) if gaps.size else 0.0
    runs, start = [], None
    for i, answered in enumerate(np.isfinite(value)):
        if start is not None and (not answered or gaps[i - 1] > wide):
            runs.append(slice(start, i))
            start = None
        if answered and start is None:
            start = i
    return runs if start is None else [*runs, slice(start, len(places))]


def _within(ends: Floats, limit: tuple[float, float]) -> Floats:
    """Interval ends; an open one runs to the edge of the panel."""
    filled = np.where(np.isnan(ends), np.nan, np.clip(ends, *limit))
    return np.nan_to_num(filled, nan=limit[0]) if np.isnan(filled).all() else filled


def _name_levels(axes: Axes, form: Form, levels: KeyLevels, flat: bool) -> None:
    if form is Form.LINE:
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        axes.margins(x=0.01)
        if levels.places:
            # Groups at either end may have no answer.
            convert: Any = axes.convert_xunits
            first, last = (float(convert(levels.places[i])) for i in (0, -1))
            room = 0.01 * (last - first)
            axes.set_xlim(first - room, last + room)
        if levels.places and isinstance(levels.places[0], dt.date):
            days = AutoDateLocator(minticks=3, maxticks=6)  # type: ignore[no-untyped-call]
            axes.xaxis.set_major_locator(days)
            axes.xaxis.set_major_formatter(ConciseDateFormatter(days))  # type: ignore[no-untyped-call]
        return
    if form is Form.STEPS and levels.even and levels.edges is not None:
        cuts = [levels.edges[0][0], *(high for _, high in levels.edges)]
        every = math.ceil(len(cuts) / 12)
        axes.set_xticks(cuts[::every])
        axes.set_xlim(cuts[0], cuts[-1])
        return
    places = range(len(levels))
    if flat:
        axes.set_yticks([-i for i in places], levels.labels)
        axes.set_ylim(0.4 - max(len(levels), 1), 0.6)
    else:
        axes.set_xticks(list(places), levels.labels)
        axes.set_xlim(-0.6, len(levels) - 0.4)


@dataclass(frozen=True, slots=True)
class Panel:
    """One output, or one output at one level of a key, which ``heading`` then says."""

    output: str
    heading: str
    series: tuple[Series, ...]


def lay_out(
    panels: Sequence[Panel],
    main: KeyLevels,
    hues: KeyLevels | None,
    named: Mapping[str, str],
    bars: Collection[str] | None,
) -> Figure:
    """Panels in rows and columns, on shared axes where that reads better, and their legend."""
    count = len(panels)
    across = count if count <= 3 else (2 if count == 4 else 3)
    forms = {name: _form_of(name, main, panels, bars) for name in {p.output for p in panels}}
    flat = _lies_flat(main, across, hues, set(forms.values()))
    down = math.ceil(count / across)
    many = len(panels[0].series)
    tall = max(1.6, 0.4 + len(main) * max(0.27, 0.16 * many)) if flat else 2.7
    if across == 1 and not flat:
        tall = 3.3
    extra = 0.9 if hues is None else 1.3
    width = WIDTH if across > 1 or flat or len(main) > 4 else 6.0
    figure = new_figure(width, min(tall * down + extra, 14.0))
    facets = bool(panels[0].heading)
    grid = figure.subplots(
        down, across, squeeze=False, sharey=flat or facets, sharex=facets or not flat
    )
    for i, (axes, panel) in enumerate(zip(grid.flat, panels, strict=False)):
        name = panel.output
        draw(axes, forms[name], main, panel.series, flat)
        tidy(axes, values="x" if flat else "y")
        left, bottom = i % across == 0, i + across >= count
        ends = axes.get_xlim() if flat else axes.get_ylim()
        if forms[name].from_zero and (facets or min(ends) < 0):
            # The line at zero carries the bars; a second line below it would only confuse.
            axes.spines["left" if flat else "bottom"].set_visible(False)
        if flat:
            axes.set_xlabel(named[name])
            axes.tick_params(labelbottom=True)
            axes.set_ylabel(main.name if left else "")
            axes.tick_params(labelleft=left)
        else:
            axes.set_ylabel(named[name] if left or not facets else "")
            axes.set_xlabel(main.name if bottom else "")
            axes.tick_params(labelbottom=True)
        if panel.heading:
            heading(axes, panel.heading)
    if facets:
        # All panels show one output, so they share its scale.
        low, high = limits([s for p in panels for s in p.series], forms[name].from_zero)
        for axes in grid.flat:
            (axes.set_xlim if flat else axes.set_ylim)(low, high)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    if hues is not None:
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            title=hues.name,
            loc="outside upper right",
            ncols=len(labels),
            frameon=False,
            fontsize=9,
            title_fontsize=9,
            alignment="right",
            handlelength=1.2,
            columnspacing=1.4,
        )
    return figure


def reads_as_line(main: KeyLevels) -> bool:
    """Whether so many numbers or moments are drawn as a line."""
    return main.places is not None and len(main) > (FEW if main.dates else LONG)


def _form_of(
    name: str,
    main: KeyLevels,
    panels: Sequence[Panel],
    bars: Collection[str] | None,
) -> Form:
    series = [s for p in panels if p.output == name for s in p.series]
    low, high = limits(series, zero=False)
    near = low <= 0 <= high or min(abs(low), abs(high)) < 0.6 * max(abs(low), abs(high))
    from_zero = near if bars is None else name in bars
    if reads_as_line(main):
        return Form.LINE
    if main.edges is not None and from_zero:
        return Form.STEPS
    return Form.BARS if from_zero else Form.POINTS


def _lies_flat(main: KeyLevels, across: int, hues: KeyLevels | None, forms: set[Form]) -> bool:
    """Whether the labels would not fit side by side."""
    if Form.LINE in forms or (Form.STEPS in forms and main.even):
        return False
    room = WIDTH / across - 0.9
    widest = max(map(len, main.labels), default=0)
    need = len(main) * max(widest * 0.085 + 0.12, 0.16 * (len(hues) if hues else 1))
    return need > room
