"""``dither.connect``: the session of a policy that a service serves."""

from __future__ import annotations

__all__: list[str] = []
