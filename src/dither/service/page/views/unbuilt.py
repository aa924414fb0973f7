"""Places whose view is still to be built."""

from __future__ import annotations

from dither.service._endpoints import Endpoint
from dither.service.page._places import PLACES
from dither.service.page._shown import PageView

__all__ = ["VIEWS"]

LEFT = ("attack",)

VIEWS = [
    Endpoint("GET", f"/{place.key}", place.roles, lambda _: PageView("base.html"), f"{place.key}.")
    for place in PLACES
    if place.key in LEFT
]
