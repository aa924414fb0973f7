"""What a release of a graph cost, in words."""

from __future__ import annotations

from dither._format import cost_text, loss_text
from dither.privacy import Loss

__all__ = ["cost_of"]


def cost_of(loss: Loss) -> str:
    """The amounts, and whom they protect."""
    charge = loss.charge
    if charge.epsilon is None and charge.rho is not None:
        paid = f"ρ = {loss_text(charge.rho)}"
    else:
        paid = cost_text(charge.epsilon, charge.delta)
    return f"{paid}; protects {loss.promise.describe() if loss.promise else 'nobody in particular'}"
