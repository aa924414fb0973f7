"""What a release of a graph cost, in words."""

from __future__ import annotations

from dither._format import cost_text, loss_text
from dither.privacy import Loss, Promise

__all__ = ["cost_of"]


def cost_of(loss: Loss) -> str:
    """The amounts, and whom they protect."""
    charge = loss.charge
    if charge.epsilon is None and charge.rho is not None:
        paid = f"ρ = {loss_text(charge.rho)}"
    else:
        paid = cost_text(charge.epsilon, charge.delta)
    # What persons send by themselves is stated for no graph, whose words it would have.
    promise = loss.promise or Promise(loss.neighbours.value, loss.neighbours)
    return f"{paid}; protects {promise.describe()}"
