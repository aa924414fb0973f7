"""What a mechanism is said to satisfy."""

from __future__ import annotations

from dataclasses import dataclass

from dither._format import loss_text

__all__ = ["Claim"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a mechanism is said to satisfy: (epsilon, delta), or mu-GDP where ``mu`` is given.

    Parameters
    ----------
    epsilon, delta : float
        At least 0, and in [0, 1); `audit` checks both.
    mu : float, optional
        Of Gaussian differential privacy, in the place of both.
    """

    epsilon: float
    delta: float = 0.0
    mu: float | None = None

    def __str__(self) -> str:
        if self.mu is not None:
            return f"μ = {loss_text(self.mu, 6)} (Gaussian)"
        return f"ε = {loss_text(self.epsilon, 6)}" + (
            f", δ = {loss_text(self.delta, 6)}" if self.delta else ""
        )
