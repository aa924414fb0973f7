"""A client to attack, that sends the gradients of a small network, clipped and with noise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._checks import number, whole
from dither.errors import ArgumentError
from dither.lab._simulation import SimulatedWorld
from dither.privacy import Loss, Neighbours, gaussian

__all__ = ["SimulatedClient"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedClient:
    """A client that sends the gradient of a small network, clipped and with noise.

    The network has one hidden layer of rectified units, or none, and ends in a softmax. The noise
    is simulated, and protects nobody. Clipped is the update, whatever it is computed of.

    Attributes
    ----------
    weights, biases : tuple of array
        Of each layer.
    clip : float or None
        The most that the whole gradient's norm may be; None where nothing is clipped.
    noise_multiplier : float
        Noise has a deviation of 2·clip·noise_multiplier in every coordinate: two clipped gradients
        differ by 2·clip at most.
    generator : numpy.random.Generator
    """

    weights: tuple[Floats, ...] = field(repr=False)
    biases: tuple[Floats, ...] = field(repr=False)
    clip: float | None
    noise_multiplier: float
    generator: np.random.Generator = field(repr=False)

    @staticmethod
    def of(
        inputs: int,
        classes: int,
        hidden: int = 0,
        *,
        clip: float | None = None,
        noise_multiplier: float = 0.0,
        seed: int | np.random.Generator = 0,
    ) -> SimulatedClient:
        """A client whose network has random weights.

        Parameters
        ----------
        inputs, classes, hidden : int
            Sizes of the layers; 0 for no hidden one.
        clip : float, optional
        noise_multiplier : float
            Of at least 0; noise needs a clip.
        seed : int or numpy.random.Generator
            Of weights and noise.
        """
        sizes = [whole("inputs", inputs, 1), whole("classes", classes, 2)]
        if whole("hidden", hidden):
            sizes.insert(1, hidden)
        if clip is not None:
            number("clip", clip, above=0)
        if number("noise_multiplier", noise_multiplier, least=0) and clip is None:
            raise ArgumentError("noise_multiplier needs a clip, which bounds what noise must hide")
        rng = SimulatedWorld.of(seed)
        shapes = list(zip(sizes[1:], sizes, strict=False))
        weights = tuple(rng.normal(0, (2.0 / n) ** 0.5, (m, n)) for m, n in shapes)
        biases = tuple(rng.normal(0, 0.1, m) for m, _ in shapes)
        return SimulatedClient(weights, biases, clip, noise_multiplier, rng)

    @property
    def bare(self) -> SimulatedClient:
        """The same without clip and noise."""
        return SimulatedClient(self.weights, self.biases, None, 0.0, self.generator)

    @property
    def loss(self) -> Loss:
        """What an update loses where the client's record, or any of its records, is replaced.

        Raises
        ------
        ArgumentError
            Where there is no noise.
        """
        if not self.noise_multiplier:
            raise ArgumentError("noise_multiplier is 0: nothing bounds what an update loses")
        return gaussian(self.noise_multiplier, neighbours=Neighbours.REPLACE)

    def first(self, record: Floats, label: Any, size: int) -> tuple[Floats, Floats]:
        """Updates of the first layer: gradients of weights and of biases, ``size`` of each.

        Of one record, shape (d,), and its label, or of the mean over several, shape (b, d).
        """
        return self._noisy(self.gradients(record, label), 0, size)

    def last(self, record: Floats, label: Any, size: int) -> tuple[Floats, Floats]:
        """The same of the last layer."""
        return self._noisy(self.gradients(record, label), -1, size)

    def gradients(self, record: Floats, label: Any) -> list[tuple[Floats, Floats]]:
        """Of each layer, the gradients of its weights and biases, clipped as one vector."""
        rows = np.atleast_2d(np.asarray(record, dtype=np.float64))
        seen, ahead = [rows], rows
        for i, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            ahead = seen[-1] @ w.T + b
            if i + 1 < len(self.weights):
                seen.append(np.maximum(ahead, 0.0))
        chances = np.exp(ahead - ahead.max(axis=1, keepdims=True))
        back = chances / chances.sum(axis=1, keepdims=True)
        back[np.arange(len(rows)), label] -= 1.0
        back = back / len(rows)
        found: list[tuple[Floats, Floats]] = []
        for w, x in zip(self.weights[::-1], seen[::-1], strict=True):
            found.insert(0, (back.T @ x, back.sum(axis=0)))
            back = (back @ w) * (x > 0)
        norm = float(sum((a**2).sum() + (b**2).sum() for a, b in found)) ** 0.5
        shrunk = 1.0 if self.clip is None else min(1.0, self.clip / max(norm, 1e-300))
        return [(a * shrunk, b * shrunk) for a, b in found]

    def _noisy(
        self, gradients: list[tuple[Floats, Floats]], layer: int, size: int
    ) -> tuple[Floats, Floats]:
        weights, biases = (np.broadcast_to(x, (size, *x.shape)) for x in gradients[layer])
        if not self.noise_multiplier or self.clip is None:
            return weights, biases
        # A record that is replaced moves a clipped gradient by up to twice the clip.
        spread = 2.0 * self.clip * self.noise_multiplier
        return (
            weights + self.generator.normal(0, spread, weights.shape),
            biases + self.generator.normal(0, spread, biases.shape),
        )
