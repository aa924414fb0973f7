"""How long the gradient of one example may be.

A kind of clipping gives, from the lengths of the parts of an example's gradient (one a layer), a
factor for each part. Whatever the lengths, the parts together are then no longer than ``norm``:

    sum over layers of (factor·length)² <= norm².

The factors of one example depend on that example alone. A clip that looked at the mean of a batch
would leave each example as long as it likes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from dither import _checks as check
from dither.errors import ArgumentError

__all__ = ["Adaptive", "Automatic", "Clip", "Flat", "PerLayer", "as_clip"]


class Clip(Protocol):
    """A kind of clipping."""

    @property
    def norm(self) -> float:
        """What the parts together are at most."""
        ...

    def factors(self, lengths: torch.Tensor) -> torch.Tensor:
        """From lengths, shape (b, layers), to factors of that shape."""
        ...


@dataclass(frozen=True)
class Flat:
    """Gradients longer than ``norm`` are shortened to it.

    Source: Abadi and others, "Deep learning with differential privacy", CCS 2016.
    """

    norm: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check.number("norm", self.norm, above=1e-6, below=1e6))

    def factors(self, lengths: torch.Tensor) -> torch.Tensor:
        """One for all layers: min(1, norm/length)."""
        whole = _together(lengths)
        # At least the norm below the line: no division by 0, and no gradient made longer.
        return (self.norm / whole.clamp(min=self.norm)).expand_as(lengths)


@dataclass(frozen=True)
class Automatic:
    """All gradients are made nearly as long as ``norm``: times norm/(length + gamma).

    There is no clip to tune: only norm times the learning rate matters. Source: Bu, Wang, Zha and
    Karypis, "Automatic clipping", NeurIPS 2023.
    """

    norm: float = 1.0
    gamma: float = 0.01

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check.number("norm", self.norm, above=1e-6, below=1e6))
        object.__setattr__(self, "gamma", check.number("gamma", self.gamma, above=0, below=1e6))

    def factors(self, lengths: torch.Tensor) -> torch.Tensor:
        """One for all layers."""
        return (self.norm / (_together(lengths) + self.gamma)).expand_as(lengths)


@dataclass(frozen=True)
class PerLayer:
    """Each layer's part is shortened by itself: layers whose gradients are short keep them.

    Parameters
    ----------
    norm : float
        Of all together.
    shares : sequence of float, optional
        How the squared norm is divided among layers, in the order of the model's layers that have
        parameters; alike for all without it.
    """

    norm: float = 1.0
    shares: Sequence[float] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "norm", check.number("norm", self.norm, above=1e-6, below=1e6))
        if self.shares is not None:
            given = check.listed("shares", self.shares, "shares")
            made = tuple(check.number("shares", share, above=0, below=1e6) for share in given)
            object.__setattr__(self, "shares", made)

    def factors(self, lengths: torch.Tensor) -> torch.Tensor:
        """One for each layer."""
        layers = lengths.shape[1]
        shares = self.shares or (1.0,) * layers
        if len(shares) != layers:
            raise ArgumentError(f"shares must be one a layer: there are {layers} with parameters")
        # Squares of the parts add up to that of the norm.
        most = [self.norm * math.sqrt(share / math.fsum(shares)) for share in shares]
        bound = lengths.new_tensor(most)
        return bound / torch.maximum(lengths, bound)


@dataclass(frozen=True)
class Adaptive:
    """A flat clip that follows a quantile of the lengths, which is found with noise.

    With each step leaves a noisy count of the gradients that are no longer than the clip; then ::

        norm := norm·exp(-speed·(share within - quantile)).

    Source: Andrew, Thakkar, McMahan and Ramaswamy, "Differentially private learning with adaptive
    clipping", NeurIPS 2021. The count is a further coordinate of the step's Gaussian mechanism: it
    takes ``part`` of the squared sensitivity, so that at one cost the noise of the gradients grows
    by a factor of 1/√(1 - part).

    Parameters
    ----------
    norm : float
        Where it begins.
    quantile : float
        The share of gradients that is to be left as it is, in (0, 1).
    speed : float
    part : float
        In (0, 1).
    """

    norm: float = 1.0
    quantile: float = 0.5
    speed: float = 0.2
    part: float = 0.02

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "norm", check.number("norm", self.norm, above=1e-6, below=1e6))
        set_(self, "quantile", check.number("quantile", self.quantile, above=0, below=1))
        set_(self, "speed", check.number("speed", self.speed, above=0, most=10))
        set_(self, "part", check.number("part", self.part, least=1e-6, most=0.5))

    def factors(self, lengths: torch.Tensor) -> torch.Tensor:
        """Those of a flat clip at the present norm."""
        return Flat(self.norm).factors(lengths)

    def moved(self, within: float) -> Adaptive:
        """The clip of the next step, after a noisy share of gradients within this one."""
        step = -self.speed * (min(max(within, 0.0), 1.0) - self.quantile)
        # Inside what a norm may be, so that whatever the noise says, no step is refused.
        norm = min(max(self.norm * math.exp(step), 2e-6), 5e5)
        return Adaptive(norm, self.quantile, self.speed, self.part)


def _together(lengths: torch.Tensor) -> torch.Tensor:
    return torch.linalg.vector_norm(lengths, dim=1, keepdim=True)


def as_clip(given: Any) -> Clip:
    """A number is the norm of a flat clip.

    Raises
    ------
    ArgumentError
        It is neither a number above 0 nor a kind of clipping.
    """
    if isinstance(given, Flat | PerLayer | Automatic | Adaptive):
        return given
    if isinstance(given, str):
        kinds: dict[str, Clip] = {
            "flat": Flat(),
            "per-layer": PerLayer(),
            "automatic": Automatic(),
            "adaptive": Adaptive(),
        }
        if given not in kinds:
            raise ArgumentError(f"clip must be a number above 0, or one of {', '.join(kinds)}")
        return kinds[given]
    return Flat(check.number("clip", given, above=1e-6, below=1e6))
