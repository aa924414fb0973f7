"""Words on pictures: axis labels with their unit, and the line that states the guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dither._format import cost_text

__all__ = ["foot_line", "with_unit"]


def with_unit(name: str, units: Mapping[str, str | None] | None) -> str:
    """An axis label: ``cost (EUR)``."""
    unit = (units or {}).get(name)
    return f"{name} ({unit})" if unit else name


def foot_line(epsilon: Any, delta: Any, neighbours: str | None, covers: str) -> str:
    """What the picture states of its guarantee, and of its error bars."""
    parts = [cost_text(epsilon, delta), f"protects {neighbours}" if neighbours else "", covers]
    return "; ".join(part for part in parts if part)
