"""Words on pictures: axis labels with their unit, and the line that states the guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

__all__ = ["foot_line", "with_unit"]


def with_unit(name: str, units: Mapping[str, str | None] | None) -> str:
    """An axis label: ``cost (EUR)``."""
    unit = (units or {}).get(name)
    return f"{name} ({unit})" if unit else name


def foot_line(epsilon: Any, delta: Any, neighbours: str | None, covers: str) -> str:
    """What the picture states of its guarantee, and of its error bars."""
    cost = f"ε = {_amount(epsilon)}"
    if delta:
        cost += f", δ = {_amount(delta)}"
    parts = [cost, f"protects {neighbours}" if neighbours else "", covers]
    return "; ".join(part for part in parts if part)


def _amount(value: Any) -> str:
    """A cost, rounded up to four digits: a picture must not flatter it."""
    exact = Fraction(str(value)) if isinstance(value, float | Decimal) else Fraction(value)
    up = Context(prec=4, rounding=ROUND_CEILING)
    rounded = up.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize()
    text = f"{rounded:f}" if rounded >= Decimal("1e-3") else f"{rounded:e}"
    return text.replace("e+", "e")
