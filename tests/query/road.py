"""Which functions of the package a call runs, in the order in which each is first reached."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import dither

ROOT = Path(dither.__file__).parent


def passed(call: Callable[[], Any]) -> tuple[Any, dict[tuple[str, str], int]]:
    """The result of a call; by file and function: how often each of the package was entered."""
    found: dict[tuple[str, str], int] = {}

    def look(frame: FrameType, event: str, _: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(ROOT):
            place = path.relative_to(ROOT).as_posix(), frame.f_code.co_qualname
            found[place] = found.get(place, 0) + 1

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        result = call()
    finally:
        sys.setprofile(before)
    return result, {place: n for place, n in found.items() if "<module>" not in place[1]}
