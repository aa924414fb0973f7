"""The page: asking, seeing and deciding in a browser, over the same sessions as everything else."""

from __future__ import annotations

__all__: list[str] = []
