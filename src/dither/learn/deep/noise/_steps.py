"""Adam for noisy gradients: its second moments less the noise that is in them.

Adam divides by the root of a running mean of squared gradients. Noise of variance s² in the mean
gradient adds s² to each of these, so that where noise is the larger part, all parameters are
divided by about s, and Adam is SGD with another step. The variance of the noise is public: it is
subtracted, and the square root is taken of what is left, or of a floor.

Source. Tang, Shpilevskiy and Lécuyer, "DP-AdamBC: your DP-Adam is actually DP-SGD (unless you apply
bias correction)", AAAI 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

__all__ = ["CorrectedAdam"]


class CorrectedAdam(torch.optim.Optimizer):  # type: ignore[misc]
    """Adam with the noise's variance taken out of its second moments.

    Parameters
    ----------
    params : iterable of Parameter
    lr : float
    betas : (float, float)
    floor : float
        The least second moment, as a part of the noise's variance; where there is no noise, of
        1e-16.

    Notes
    -----
    ``noise_variance`` of each group of parameters is that of one number of the mean gradient; it is
    set before each step by whoever knows it.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        betas: tuple[float, float] = (0.9, 0.999),
        floor: float = 1e-2,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "floor": floor, "noise_variance": 0.0})

    def step(self, closure: Callable[[], float] | None = None) -> None:
        """One step along ``grad`` of each parameter."""
        with torch.no_grad():
            self._step()

    def _step(self) -> None:
        for group in self.param_groups:
            first, second = group["betas"]
            noise = group["noise_variance"]
            least = max(group["floor"] * noise, 1e-16)
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                state = self.state[parameter]
                if not state:
                    state["step"] = 0
                    state["mean"] = torch.zeros_like(parameter)
                    state["square"] = torch.zeros_like(parameter)
                    state["noise"] = 0.0
                state["step"] += 1
                state["mean"].lerp_(parameter.grad, 1 - first)
                state["square"].mul_(second).addcmul_(
                    parameter.grad, parameter.grad, value=1 - second
                )
                # The noise's own running mean: with an adaptive clip it changes.
                state["noise"] = second * state["noise"] + (1 - second) * noise
                square = (state["square"] - state["noise"]) / (1 - second ** state["step"])
                rate = group["lr"] / (1 - first ** state["step"])
                parameter.addcdiv_(state["mean"], square.clamp_(min=least).sqrt_(), value=-rate)
