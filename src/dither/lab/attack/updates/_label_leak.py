"""The label that a client's update was computed of, read.

Of a network that ends in a softmax the gradient of the last biases at one record is ``p - y``, of
which one entry alone is below 0: that of the label. With noise that fails; how far, the game of two
labels says: see `dither.lab.attack.updates._updates`.

Source. Zhao, Mopuri and Bilen, "iDLG: improved deep leakage from gradients", 2020.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._checks import whole
from dither._format import count_text, percent
from dither.errors import ArgumentError
from dither.lab.attack.members._membership import Membership
from dither.lab.attack.updates._updates import AttackOnUpdates, Client, UpdateGame, labelled
from dither.privacy import Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["LabelLeak", "label_leak"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LabelLeak(AttackOnUpdates):
    """The result of `label_leak`.

    Attributes
    ----------
    labels, guessed : array of int, shape (n,)
    bare : array of int or None
        Guesses of updates without noise.
    blind : float
        The share of the most frequent label.
    which : Membership
        The game of two labels.
    """

    labels: Ints = field(repr=False)
    guessed: Ints = field(repr=False)
    bare: Ints | None = field(repr=False)
    blind: float
    which: Membership

    @property
    def right(self) -> float:
        """The share of labels that were read rightly."""
        return float((self.labels == self.guessed).mean())

    def summary(self) -> str:
        """How many labels were read, and the verdict of the game."""
        n = count_text(len(self.labels), "label")
        lines = [
            f"read from one update       {percent(self.right)} of {n} (blindly "
            f"{percent(self.blind)})"
        ]
        if self.bare is not None:
            right = float((self.labels == self.bare).mean())
            lines.append(f"without noise              {percent(right)}")
        return "\n".join([*lines, self.which.summary()])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the share of labels that was read, with and without noise, and what is certified.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._gradients import draw_label_leaks

        return draw_label_leaks([self], path)


def label_leak(
    client: Client,
    records: Any,
    labels: Any,
    *,
    loss: Loss | None = None,
    undefended: Client | None = None,
    pair: tuple[int, int] | None = None,
    plays: int = 1000,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> LabelLeak:
    """Read a client's label from its update, and tell which of two labels it had.

    Parameters
    ----------
    client : callable
        ``client(record, label)`` gives the gradients of the network's last layer: of its weights,
        shape (classes, h), and biases, (classes,); with ``size`` as in `gradient_inversion`.
    records : array, shape (n, d)
    labels : array of int, shape (n,)
        At least two different ones, from 0 to classes - 1.
    loss : Loss, optional
        What an update is said to lose under replacing the client's record.
    undefended : callable, optional
        The same client without noise, for the control and the comparison.
    pair : (int, int), optional
        The labels of the game, of the first record; by default the first two that occur.
    plays, name, seed, confidence
        As of `gradient_inversion`.

    Returns
    -------
    LabelLeak

    Raises
    ------
    ArgumentError
        For arguments that do not fit each other, or a client that gives something else.

    Examples
    --------
    >>> import numpy as np
    >>> from dither.lab.attack import SimulatedClient, label_leak
    >>> images = np.random.default_rng(1).random((4, 9))
    >>> bare = SimulatedClient.of(inputs=9, classes=3)
    >>> label_leak(bare.last, images, [0, 1, 2, 0], plays=100).guessed.tolist()
    [0, 1, 2, 0]
    """
    rows, known = labelled(records, labels)
    game = UpdateGame.of(client, undefended, loss, plays, name, seed, confidence)
    present = np.unique(known)
    if len(present) < 2:
        raise ArgumentError("labels must hold at least two different ones")
    held = [(row, int(label)) for row, label in zip(rows, known, strict=True)]
    guessed, updates = _lowest(game.updates(held)), game.bare_updates(held)
    bare = None if updates is None else _lowest(updates)
    first, second = pair or (int(present[0]), int(present[1]))
    for label in (first, second):
        whole("pair", label)
    if first == second:
        raise ArgumentError("pair must name two different labels")
    candidates = [(rows[0], first), (rows[0], second)]
    which = game.told_apart(candidates, "which of two labels did the client have")
    blind = float(np.unique(known, return_counts=True)[1].max() / len(known))
    return LabelLeak(known, guessed, bare, blind, which)


def _lowest(updates: Sequence[tuple[Floats, Floats]]) -> Ints:
    return np.array([int(biases.argmin()) for _, biases in updates])
