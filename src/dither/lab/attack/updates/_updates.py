"""Clients' updates as everybody sees them, and the game of telling two of them apart.

That an attack on a noisy update fails does not measure what the update gives away. The *game* is to
tell which of two secrets a client had, two records or two labels, by an adversary who knows both,
the model and the noise. Of that the loss of an update, for replacing what the client has, bounds
the whole curve; what plays certify must stay below it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._checks import confidence as check_confidence
from dither._checks import whole
from dither._format import Printable
from dither.errors import ArgumentError
from dither.lab._calls import answered
from dither.lab._simulation import SimulatedWorld
from dither.lab.attack._verdict import Verdict
from dither.lab.attack.members._membership import Membership, of_two
from dither.lab.attack.members._shadows import takes_size
from dither.privacy import Loss

__all__ = ["AttackOnUpdates", "Client", "Held", "UpdateGame", "flat", "labelled", "updates_of"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Client = Callable[..., Any]
Held = tuple[Floats, Any]
"""What a client has: a record and its label, or a batch of records and their labels."""


@dataclass(frozen=True)
class UpdateGame:
    """Clients with and without noise, and how often the game is played.

    Parameters
    ----------
    client : callable
        Gives the update of what a client has.
    undefended : callable, optional
        The same client without noise.
    loss : Loss, optional
        What an update is said to lose under replacing what the client has.
    plays : int
    name : str
        What the update is called.
    generator : numpy.random.Generator
    confidence : float
    """

    client: Client
    undefended: Client | None
    loss: Loss | None
    plays: int
    name: str
    generator: np.random.Generator
    confidence: float

    @classmethod
    def of(
        cls,
        client: Any,
        undefended: Any,
        loss: Any,
        plays: Any,
        name: str | None,
        seed: Any,
        confidence: Any,
    ) -> UpdateGame:
        """From what was given to an attack.

        Raises
        ------
        ArgumentError
            Something is out of range, or no client.
        """
        level, generator = check_confidence(confidence), SimulatedWorld.of(seed)
        plays = whole("plays", plays, 100)
        if not callable(client):
            raise ArgumentError("client must be a function of a record and its label")
        if undefended is not None and not callable(undefended):
            raise ArgumentError("undefended must be a function of a record and its label")
        if loss is not None and not isinstance(loss, Loss):
            raise ArgumentError("loss must be a Loss, such as privacy.gaussian(1.0)")
        return cls(client, undefended, loss, plays, name or "a client's update", generator, level)

    def updates(self, held: Sequence[Held]) -> list[tuple[Floats, Floats]]:
        """One update of each."""
        return [_update(self.client, one) for one in held]

    def bare_updates(self, held: Sequence[Held]) -> list[tuple[Floats, Floats]] | None:
        """The same without noise, where there is such a client."""
        return None if self.undefended is None else [_update(self.undefended, o) for o in held]

    def told_apart(self, candidates: Sequence[Held], question: str) -> Membership:
        """Which of two a client had.

        Who knows the model knows both updates without noise, and looks at their directions alone,
        those of weights and of biases: what noise does elsewhere would tell nothing, and be in the
        way of the fit.
        """
        axes = None
        # Along the bare updates lies all that tells the two apart: noise in other directions is
        # left out.
        if (both := self.bare_updates(candidates)) is not None:
            many = both[0][0].size
            axes = np.zeros((many + both[0][1].size, 4))
            for i, (weights, biases) in enumerate(both):
                axes[:many, i], axes[many:, 2 + i] = weights.ravel(), biases
            axes = axes / np.maximum(np.linalg.norm(axes, axis=0), np.finfo(np.float64).tiny)

        def either(of: Client) -> Callable[..., Any]:
            def seen(updates: Floats) -> Floats:
                return updates if axes is None else updates @ axes

            def many(second: bool, size: int) -> Floats:
                weights, biases = updates_of(of, candidates[second], size)
                return seen(np.concatenate([weights.reshape(size, -1), biases], axis=1))

            def single(second: bool) -> Floats:
                return seen(flat(*_update(of, candidates[second])))

            return many if takes_size(of, 2) else single

        return of_two(
            either(self.client), None if self.undefended is None else either(self.undefended),
            game=question, name=self.name, loss=self.loss, plays=self.plays,
            generator=self.generator, confidence=self.confidence,
        )  # fmt: skip


class AttackOnUpdates(Printable):
    """The result of an attack, beside which the game was played."""

    __slots__ = ()

    which: Membership

    @property
    def verdict(self) -> Verdict:
        """Of the game of which of two secrets a client had."""
        return self.which.verdict

    def certified(self, delta: float = 0.0) -> float:
        """The largest epsilon that the game's plays prove to be lost, at this delta."""
        return self.which.certified(delta)


def _update(client: Client, held: Held) -> tuple[Floats, Floats]:
    weights, biases = updates_of(client, held, 1)
    return weights[0], biases[0]


def updates_of(client: Client, held: Held, size: int) -> tuple[Floats, Floats]:
    """Gradients of weights, shape (size, m, d), and of biases, (size, m).

    Raises
    ------
    ArgumentError
        The client gives something else.
    """
    many = takes_size(client, 2)
    made = answered("client", client, *((*held, size) if many else held))
    try:
        weights, biases = (np.asarray(part, dtype=np.float64) for part in made)
    except (TypeError, ValueError) as error:
        raise ArgumentError("client must return the gradients of weights and of biases") from error
    if not many:
        weights, biases = weights[None], biases[None]
    fits = weights.ndim == 3 and biases.shape == weights.shape[:2] == (size, weights.shape[1])
    if not (fits and np.isfinite(weights).all() and np.isfinite(biases).all()):
        raise ArgumentError(
            "client must return finite gradients: of weights, shape (m, d), and of biases, (m,)"
            + ("; `size` of each" if many else "")
        )
    return weights, biases


def flat(weights: Floats, biases: Floats) -> Floats:
    """An update as one vector."""
    return np.concatenate([weights.ravel(), biases])


def labelled(records: Any, labels: Any) -> tuple[Floats, Ints]:
    """Records and labels as arrays.

    Raises
    ------
    ArgumentError
        They are not numbers, or do not fit each other.
    """
    try:
        rows, known = np.asarray(records, dtype=np.float64), np.asarray(labels)
    except (TypeError, ValueError) as error:
        raise ArgumentError("records must be numbers, one record a row") from error
    if rows.ndim != 2 or len(rows) < 2 or not np.isfinite(rows).all():
        raise ArgumentError("records must be finite numbers, one record a row, at least two")
    if known.shape != (len(rows),) or known.dtype.kind not in "iu" or (known < 0).any():
        raise ArgumentError("labels must be integers of at least 0, one for each record")
    return rows, known.astype(np.int64)
