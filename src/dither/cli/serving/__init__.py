"""The commands of the service: serve policies, and say who may ask."""

from __future__ import annotations

__all__: list[str] = []
