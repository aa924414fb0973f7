"""What a training run gives: the model, what it cost, and how it went."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from dither._format import Printable, argument_text, cost_text, count_text, number_text
from dither.learn.deep._optimizer import PrivateOptimizer
from dither.learn.deep.rows._clipping import Adaptive
from dither.learn.deep.rows._model import trainable
from dither.privacy import Loss, Neighbours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["POINTS", "Progress", "Training"]

POINTS = 20
"""How often what is spent, and what is watched, is worked out in a run."""


@dataclass(frozen=True)
class Progress:
    """Where a run is, between two steps.

    Parameters
    ----------
    step, steps : int
        How many are done, and planned.
    watched : dict of float
        Of the rows to watch, if there are any: ``loss``, and of labels ``accuracy``.
    """

    step: int
    steps: int
    watched: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, repr=False)
class Training(Printable):
    """A trained model, and what it cost.

    Parameters
    ----------
    model : torch.nn.Module
        The one that was given, trained. It may be published, its parameters and all.
    loss : Loss
        What the run cost: all steps that were planned, also where it ended early.
    steps : int
        How many were taken.
    noise_multiplier : Fraction
    delta : Fraction or None
        At which epsilons are shown.
    clips : tuple of float
        The norms that gradients were clipped to, one a step.
    watched : tuple of Progress
        What was measured of the rows to watch. They are exact numbers about those rows.
    optimizer : PrivateOptimizer
    """

    model: nn.Module
    loss: Loss
    steps: int
    noise_multiplier: Fraction
    delta: Fraction | None
    clips: tuple[float, ...]
    watched: tuple[Progress, ...]
    optimizer: PrivateOptimizer = field(compare=False)

    def __deepcopy__(self, memory: dict[int, Any]) -> Training:
        # The optimiser holds the rows, and may go on in one place alone.
        return replace(self, model=copy.deepcopy(self.model, memory))

    def spent(self) -> list[tuple[int, float]]:
        """After so many steps, what a run planned to end there would have cost: epsilons."""
        planned = self.optimizer.planned or self.steps
        delta = float(self.delta or Fraction(1, 10**6))
        places = sorted({max(1, round(planned * k / POINTS)) for k in range(1, POINTS + 1)})
        return [(k, float(self.optimizer.cost.of(k).epsilon(delta))) for k in places]

    def summary(self) -> str:
        """What it cost, whom it protects, and what was done.

        Returns
        -------
        str
        """
        delta = self.delta or Fraction(1, 10**6)
        charge = self.loss.charge
        epsilon = charge.epsilon if charge.epsilon and self.delta else None
        shown = epsilon or Fraction(self.loss.epsilon(float(delta)).upper)
        numbers = sum(p.numel() for p in trainable(self.model).values())
        how = {
            Neighbours.ADD_REMOVE: "one row, added or removed",
            Neighbours.REPLACE: "one row, replaced by another (the number of rows is public)",
        }[self.loss.neighbours]
        optimizer = self.optimizer
        planned = optimizer.planned or self.steps
        ended = "" if self.steps == planned else f" of {planned:,} that were planned and charged"
        sums = "integers" if optimizer.exact else "floats (their rounding is not in the proof)"
        clip = optimizer.clip
        norms = f"{clip.norm:g}"
        if isinstance(clip, Adaptive) and self.clips:
            norms = f"{self.clips[0]:.3g} to {self.clips[-1]:.3g}, by a noisy quantile"
        lines = [
            f"{type(self.model).__name__}: {count_text(numbers, 'number')} trained in "
            f"{count_text(self.steps, 'step')}{ended}",
            f"cost: {cost_text(shown, delta)}; protects {how}",
            f'  dither account "{self.loss.describe()}" --delta {argument_text(delta)}',
            f"noise: {number_text(float(self.noise_multiplier))} times the clip, on sums of {sums}",
            f"clip: {type(clip).__name__.lower()}, {norms}; {optimizer.sampling.text}",
        ]
        lines += optimizer.centring.text
        if self.watched:
            said = ", ".join(
                f"{name} {number_text(value)}" for name, value in self.watched[-1].watched.items()
            )
            lines.append(f"rows that were watched (not protected): {said}")
        if optimizer.entry is not None:
            lines.append(f"charged before the first step: entry {optimizer.entry} of the ledger")
        lines.append("The model may be published: it was made with noise, at that cost.")
        return "\n".join(lines)

    def plot(self, path: str | Path | None = None) -> Figure:
        """What was spent over the steps, and what was measured of the rows to watch.

        Parameters
        ----------
        path : str or Path, optional
            Where to write the picture.

        Returns
        -------
        Figure
        """
        from dither.plots.learn._learn import draw_training

        delta = float(self.delta or Fraction(1, 10**6))
        steps = [now.step for now in self.watched] or [k for k, _ in self.spent()]
        spent = [float(self.optimizer.cost.of(k).epsilon(delta)) for k in steps]
        names = self.watched[0].watched if self.watched else {}
        measured = {name: [now.watched[name] for now in self.watched] for name in names}
        return draw_training(
            steps,
            spent,
            measured or None,
            title="What training spent, step by step",
            foot=f"epsilon at delta {delta:g}; what was planned is charged, however early it ended",
            path=path,
        )
