"""What is offered over HTTP, by who needs it."""

from __future__ import annotations

__all__: list[str] = []
