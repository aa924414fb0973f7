"""Which panels stand where: form, direction and shared axes of a picture with several panels."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dither.plots.canvas import INK, WIDTH, new_figure, tidy
from dither.plots.levels import Levels
from dither.plots.panels import Form, Series, draw, limits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Panel", "lay_out"]

LONG = 12
"""Levels of a number beyond which a line reads better than points."""

FEW = 4
"""Days, months or years beyond which a line along an axis of time does."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One output, or one output at one level of a key, which ``heading`` then says."""

    output: str
    heading: str
    series: tuple[Series, ...]


def lay_out(
    panels: Sequence[Panel],
    main: Levels,
    hues: Levels | None,
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
            axes.set_title(panel.heading, loc="left", size=10, color=INK)
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


def _form_of(
    name: str,
    main: Levels,
    panels: Sequence[Panel],
    bars: Collection[str] | None,
) -> Form:
    series = [s for p in panels if p.output == name for s in p.series]
    low, high = limits(series, zero=False)
    near = low <= 0 <= high or min(abs(low), abs(high)) < 0.6 * max(abs(low), abs(high))
    from_zero = near if bars is None else name in bars
    if main.places is not None and len(main) > (FEW if main.dates else LONG):
        return Form.LINE
    if main.edges is not None and from_zero:
        return Form.STEPS
    return Form.BARS if from_zero else Form.POINTS


def _lies_flat(main: Levels, across: int, hues: Levels | None, forms: set[Form]) -> bool:
    """Whether the labels would not fit side by side."""
    if Form.LINE in forms or (Form.STEPS in forms and main.even):
        return False
    room = WIDTH / across - 0.9
    widest = max(map(len, main.labels), default=0)
    need = len(main) * max(widest * 0.085 + 0.12, 0.16 * (len(hues) if hues else 1))
    return need > room
