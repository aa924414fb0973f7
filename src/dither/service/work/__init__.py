"""Questions at work: each is a row that outlives this process, run in a process of its own."""

from __future__ import annotations

__all__: list[str] = []
