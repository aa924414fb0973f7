"""The look that all pictures share: figure, colours, axes, words, the small line at the foot."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dither._extras import extra_library
from dither._format import LONGEST, cost_text, display_text
from dither.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

__all__ = [
    "COLOURS",
    "DASHED",
    "INK",
    "MARKERS",
    "MUTED",
    "WIDTH",
    "apart",
    "entitle",
    "finish",
    "foot_line",
    "heading",
    "label_text",
    "new_figure",
    "percents",
    "save",
    "short",
    "tidy",
    "with_unit",
]

WIDTH = 8.0
"""Inches. At 150 dots an inch the picture is 1,200 wide: sharp where a README shows it at 800."""

DOTS = 150

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")
"""Okabe and Ito's colours, distinct under any common colour blindness."""

MARKERS = ("o", "s", "D", "^", "v", "P")
"""One shape a series, so that nothing rests on colour alone."""

INK, MUTED, HAIR = "#222222", "#6b6b6b", "#e3e3e3"

DASHED = (0, (2, 3))
"""Of an interval that leaves every value possible, and so no answer to draw."""

FORMATS = (".pdf", ".png", ".svg")


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that no window and no pyplot knows of.

    Raises
    ------
    MissingLibraryError
        Where matplotlib is not installed; says how to get it.
    """
    extra_library("matplotlib.figure", "plots", "pictures need")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from dither.plots._picture import Picture

    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.11, wspace=0.03, hspace=0.03)
    figure = Picture(figsize=(width, height), dpi=DOTS, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)
    return figure


def tidy(axes: Axes, *, values: str) -> None:
    """Take away what carries no information; ``values`` is the axis ("x" or "y") of the values."""
    for side, spine in axes.spines.items():
        spine.set_visible(side == ("bottom" if values == "y" else "left"))
        spine.set_color("#9a9a9a")
        spine.set_linewidth(0.8)
    axes.grid(axis="x" if values == "x" else "y", color=HAIR, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, labelsize=9, labelcolor=INK, pad=4)
    for axis in (axes.xaxis, axes.yaxis):
        axis.label.set_color(INK)
        axis.label.set_fontsize(10)
        axis.labelpad = 6
    thin_out(axes, values)


def thin_out(axes: Axes, values: str) -> None:
    """Few ticks on the axis of values, with thousands set apart."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis = axes.xaxis if values == "x" else axes.yaxis
    axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def apart(number: int) -> str:
    """The colour of a series where few stand side by side: blue, then red, then the others."""
    return COLOURS[(0, 5, 2, 3, 4, 1)[number % 6]]


def heading(axes: Axes, text: str, colour: str = INK) -> None:
    """The small title of one panel."""
    axes.set_title(text, loc="left", fontsize=10, color=colour)


def percents(*along: Axis) -> None:
    """Show shares as percentages on some axes."""
    for axis in along:
        axis.set_major_formatter(lambda value, _: f"{short(100 * value)} %")


def short(value: float) -> str:
    """A number for a tick or a label: ``1,250``, ``0.25``, ``3.2e+07``.

    Examples
    --------
    >>> [short(x) for x in (1250.0, 0.25, -3.0, 3.2e7, 0.0)]
    ['1,250', '0.25', '−3', '3.2e+07', '0']
    """
    if value == 0:
        return "0"
    if abs(value) >= 1e7 or abs(value) < 1e-4:
        text = f"{value:.3g}"
    elif abs(value) >= 1000:
        text = f"{value:,.0f}"
    else:
        text = f"{value:.4g}"
    return text.replace("-", "\N{MINUS SIGN}", 1) if value < 0 else text


def finish(figure: Figure, *, title: str | None, foot: str, path: str | Path | None) -> Figure:
    """Put the title above and the small line below, and save where a path is given.

    Raises
    ------
    ArgumentError
        Where the path's ending is not a format of pictures, or the file cannot be written.
    """
    width = float(figure.get_figwidth())
    if title:
        entitle(figure, title)
    figure.supxlabel(
        "\n".join(textwrap.wrap(foot, int(width * 15))),
        x=0.12 / width,
        ha="left",
        size=8,
        color=MUTED,
        linespacing=1.5,
    )
    if path is not None:
        save(figure, Path(path))
    return figure


def entitle(figure: Figure, title: str) -> None:
    """Put a title above."""
    width = float(figure.get_figwidth())
    lines = "\n".join(textwrap.wrap(title, int(width * 10.5)))
    figure.suptitle(lines, x=0.12 / width, ha="left", size=12, weight="bold", color=INK)


def save(figure: Figure, path: Path) -> None:
    """Write the picture; the file's ending says the format."""
    if path.suffix.lower() not in FORMATS:
        raise ArgumentError(f"path must end in one of {', '.join(FORMATS)}: pictures have a format")
    try:
        figure.savefig(path, dpi=DOTS, facecolor="white")
    except OSError as error:
        raise ArgumentError(
            f"path cannot be written: {error.strerror or 'is the folder there?'}"
        ) from error


def label_text(value: object, longest: int = LONGEST) -> str:
    """A value as a label: one short line, in which nothing is read as mathematics.

    Examples
    --------
    >>> print(label_text("$5 to $10"), label_text(None))
    \\$5 to \\$10 NULL
    """
    return display_text(value, longest).replace("$", "\\$")


def with_unit(name: str, units: Mapping[str, str | None] | None) -> str:
    """An axis label: ``cost (EUR)``."""
    unit = (units or {}).get(name)
    return f"{name} ({unit})" if unit else name


def foot_line(epsilon: Any, delta: Any, neighbours: str | None, covers: str) -> str:
    """What the picture states of its guarantee, and of its error bars."""
    parts = [cost_text(epsilon, delta), f"protects {neighbours}" if neighbours else "", covers]
    return "; ".join(part for part in parts if part)
