"""People, their keys, and who may do what."""

from __future__ import annotations

__all__: list[str] = []
