"""The service on the web: the application, what stands around each call, and where it listens."""

from __future__ import annotations

__all__: list[str] = []
