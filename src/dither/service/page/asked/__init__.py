"""A question on the page: as it comes from a form, what it would cost, and what it was answered."""

from __future__ import annotations

__all__: list[str] = []
