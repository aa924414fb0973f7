"""What each place of the page shows, and does."""

from __future__ import annotations

__all__: list[str] = []
