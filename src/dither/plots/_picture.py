"""A figure that a notebook shows by itself.

No window and no pyplot knows of it, so a notebook that shows what pyplot drew shows it once, as the
result of its cell, and one in which pyplot was never imported shows it as well.
"""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

__all__ = ["Picture"]

_SHOWN = 100
"""Dots an inch on a page: the others make it sharp on screens that have more."""


class Picture(Figure):
    """A figure of matplotlib, which is a picture where the last line of a cell gives one."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """The picture, and how large it stands on the page."""
        into = BytesIO()
        self.savefig(into, format="png", dpi=self.dpi, facecolor=self.get_facecolor())
        width, height = (round(_SHOWN * float(side)) for side in self.get_size_inches())
        return into.getvalue(), {"width": width, "height": height}
