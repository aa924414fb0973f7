"""The page: asking, seeing and deciding in a browser, over the same sessions as everything else."""

from __future__ import annotations

from dither.service.page._pages import VIEWS

__all__ = ["VIEWS"]
