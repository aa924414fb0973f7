"""The picture that a result draws of itself in Python, as the page shows it: in its own colours.

The figure is matplotlib's. Its colours become classes, which each theme fills in, and its styles
attributes, for the policy of content forbids styles; nothing else of the file is kept.
"""

from __future__ import annotations

import io
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from dither._extras import extra_library
from dither.errors import DitherError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PlottedPicture", "plotted"]

NARROW, WIDE = 4.6, 8.0
"""Inches: one panel is read on a telephone, several beside each other are not."""

COLOURS = {
    "#0072b2": "one",
    "#e69f00": "two",
    "#009e73": "three",
    "#cc79a7": "four",
    "#56b4e9": "five",
    "#d55e00": "six",
    "#222222": "ink",
    "#000000": "ink",
    "#6b6b6b": "muted",
    "#9a9a9a": "muted",
    "#e3e3e3": "line",
    "#ffffff": "ground",
}
"""Those of `dither.plots`, by the name of the page's."""

TAGS = ("svg", "g", "path", "text", "tspan", "use", "defs", "clipPath", "rect", "polygon")

KEPT = (
    *("d", "x", "y", "width", "height", "transform", "clip-path", "id", "points", "viewBox"),
    *("stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linecap"),
    *("stroke-linejoin", "stroke-opacity", "fill-opacity", "opacity", "text-anchor", "font-size"),
    *("font-weight", "fill", "stroke"),
)

ON_LIGHT, ON_DARK = "#232323", "#fefefe"

HREF = "{http://www.w3.org/1999/xlink}href"

_lock = threading.Lock()
"""What matplotlib is set to is set for all of the process."""


@dataclass(frozen=True, slots=True)
class PlottedPicture:
    """A picture as it stands in a page.

    Parameters
    ----------
    svg : Markup
    wide : bool
        Whether it has panels beside each other, and needs room.
    """

    svg: Markup
    wide: bool


def plotted(result: Any, told: str) -> PlottedPicture | None:
    """The picture of a result; None where it draws none.

    Parameters
    ----------
    result : what a release gave
    told : str
        What it shows, for whoever cannot see it.
    """
    try:
        figure = result.plot()
        wide = len(figure.axes) > 1
        # What stands above and below it is said in the page.
        figure.suptitle("")
        figure.supxlabel("")
        figure.set_size_inches(WIDE if wide else NARROW, figure.get_figheight())
        _without_pixels(figure)
        return PlottedPicture(_themed(_written(figure), told), wide)
    except (DitherError, AttributeError, ValueError, ET.ParseError):
        return None  # a name that cannot be drawn must not hide the numbers


def _without_pixels(figure: Figure) -> None:
    """Cells of a picture of pixels as areas: the page loads no pictures of them."""
    import numpy as np

    for axes in figure.axes:
        for text in axes.texts if axes.images else ():
            # On a cell, whose colour is the same in both themes, its colour stays, too.
            text.set_color(ON_DARK if text.get_color() == "white" else ON_LIGHT)
        images: list[Any] = list(axes.images)
        for image in images:
            held = np.ma.getdata(image.get_array())
            if held.ndim == 2:
                edges = [np.arange(size + 1) - 0.5 for size in held.shape[::-1]]
                axes.pcolormesh(*edges, held, cmap=image.get_cmap(), norm=image.norm, zorder=0)
            image.remove()


def _written(figure: Figure) -> str:
    mpl = extra_library("matplotlib", "plots", "pictures need")
    out = io.StringIO()
    with _lock, mpl.rc_context({"svg.fonttype": "none", "svg.image_inline": True}):
        figure.savefig(out, format="svg", transparent=True)
    return out.getvalue()


def _themed(text: str, told: str) -> Markup:
    root = ET.fromstring(text)
    made = _copied(root)
    assert made is not None
    made.set("class", "picture plotted")
    made.set("role", "img")
    made.set("aria-label", told)
    return Markup(ET.tostring(made, encoding="unicode"))


def _copied(node: ET.Element) -> ET.Element | None:
    """A node with what is kept of it; None of what is not shown."""
    tag = node.tag.rpartition("}")[2]
    if tag not in TAGS:
        return None
    made = ET.Element(tag)
    classes = []
    for name, value in _said(node):
        colour = COLOURS.get(value.lower()) if name in ("fill", "stroke") else None
        if colour is not None:
            classes.append(f"{name[0]}-{colour}")
        elif name in KEPT:
            made.set(name, value)
    if classes:
        made.set("class", " ".join(classes))
    if node.attrib.get(HREF, "").startswith("#"):
        made.set("href", node.attrib[HREF])
    if tag == "svg":
        for name in ("width", "height", "id"):
            made.attrib.pop(name, None)
    made.text = node.text if tag in ("text", "tspan") else None
    for child in node:
        if (inner := _copied(child)) is not None:
            made.append(inner)
    if tag in ("g", "defs") and not len(made):
        return None
    if tag == "g":
        made.attrib.pop("id", None)
    return made


def _said(node: ET.Element) -> Iterator[tuple[str, str]]:
    """Its attributes, and what its style says."""
    yield from ((name, value) for name, value in node.attrib.items() if name != "style")
    parts = (part.partition(":") for part in node.attrib.get("style", "").split(";"))
    for name, value in ((name.strip(), value.strip()) for name, mark, value in parts if mark):
        if name == "font":  # weight, size and family in one
            for word in value.partition("'")[0].split():
                if word.endswith("px"):
                    yield "font-size", word
                elif word.isdigit() or word == "bold":
                    yield "font-weight", word
        else:
            yield name, value
