"""The records that a client's update was computed of, rebuilt.

In federated learning a client sends no record, but the gradient of its loss. Of a network whose
first layer is fully connected, with weights W and biases b, the gradient at one record x is ::

    dW = e·xᵀ,    db = e        (e: what comes back from the layers above)

so that ``x = dWᵀ·db/‖db‖²``, exactly, whatever stands above: no search, and no secret but the
update.

Of a batch each unit j gives the mean of these, and its quotient dW_j/db_j mixes the records at
which it is active, each unit in its own way. Where rectified units are active at one record alone,
their quotients are that record and *agree*, while mixtures hardly ever do: so those that agree are
taken, most first, and none of what the network is. Wide layers give nearly all of a small batch.

With noise both fail, and how far is not a matter of taste: see
`dither.lab.attack.updates._updates`.

Source. Phong, Aono, Hayashi, Wang and Moriai, "Privacy-preserving deep learning via additively
homomorphic encryption", 2018, section 3; Geiping, Bauermeister, Dröge and Moeller, "Inverting
gradients", 2020, proposition 3.1; of units that one record alone makes active: Boenisch, Dziedzic,
Schuster, Shahin Shamsabadi, Shumailov and Papernot, "When the curious abandon honesty", 2021.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._checks import whole
from dither._format import count_text
from dither.errors import ArgumentError
from dither.lab.attack.members._membership import Membership
from dither.lab.attack.updates._updates import (
    AttackOnUpdates,
    Client,
    Held,
    UpdateGame,
    flat,
    labelled,
)
from dither.privacy import Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Inversion", "gradient_inversion"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_ALIKE = 0.9
"""A correlation from which a rebuilt record counts as found."""

_AGREE = (1e-6, 1e-3, 0.05)
"""How far apart quotients may be that agree, in their norm: nearest first, for less noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Inversion(AttackOnUpdates):
    """The result of `gradient_inversion`.

    Attributes
    ----------
    records : array, shape (n, d)
    rebuilt : array, shape (n, d)
        What the attacker made of one update of each.
    bare : array or None
        The same of updates without noise.
    likeness, bare_likeness : array, shape (n,)
        Correlation of each rebuilt record with the true one, in [-1, 1].
    blind : float
        The mean correlation of what was rebuilt with the records of others.
    which : Membership
        The game of two records.
    batch : int
        Records that each client had.
    """

    records: Floats = field(repr=False)
    rebuilt: Floats = field(repr=False)
    bare: Floats | None = field(repr=False)
    likeness: Floats = field(repr=False)
    bare_likeness: Floats | None = field(repr=False)
    blind: float
    which: Membership
    batch: int = 1

    @property
    def found(self) -> int:
        """Records that were rebuilt with a correlation of at least 0.9."""
        return int((self.likeness >= _ALIKE).sum())

    def summary(self) -> str:
        """How much was rebuilt, and the verdict of the game."""
        n = len(self.records)
        lines = [
            f"rebuilt from one update    {self.found} of {count_text(n, 'record')}; correlation "
            f"{self.likeness.mean():.2f} on average (with others' records {self.blind:.2f})",
        ]
        if self.bare_likeness is not None:
            many = int((self.bare_likeness >= _ALIKE).sum())
            lines.append(
                f"without noise              {many} of {count_text(n, 'record')}; correlation "
                f"{self.bare_likeness.mean():.2f}"
            )
        return "\n".join([*lines, self.which.summary()])

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw records and what was rebuilt of them, as images where they are square.

        Saved to ``path`` (.png, .svg or .pdf) where one is given.
        """
        from dither.plots.lab._gradients import draw_inversions

        return draw_inversions([self], path)


def gradient_inversion(
    client: Client,
    records: Any,
    labels: Any,
    *,
    loss: Loss | None = None,
    undefended: Client | None = None,
    batch: int = 1,
    pair: tuple[int, int] | None = None,
    plays: int = 1000,
    name: str | None = None,
    seed: int | np.random.Generator = 0,
    confidence: float = 0.99,
) -> Inversion:
    """Rebuild a client's records from its update, and tell which of two records it had.

    Parameters
    ----------
    client : callable
        ``client(record, label)`` gives the update as everybody sees it, of the network's first
        layer, fully connected: the gradients of its weights, shape (m, d), and biases, (m,). Where
        it takes a third argument ``size`` it gives many at once: (size, m, d) and (size, m).
    records : array, shape (n, d)
        What clients have, at least two.
    labels : array of int, shape (n,)
    loss : Loss, optional
        What an update is said to lose under replacing one of the client's records.
    undefended : callable, optional
        The same client without noise, for the control and the comparison.
    batch : int
        Records that each client has; it must divide n, into two batches or more. Of more than one
        a client is given records of shape (batch, d) and labels of shape (batch,).
    pair : (int, int), optional
        The records of the game, of which either is the first of the first client's batch. By
        default those whose updates without noise differ most, or the first two where
        ``undefended`` is not given.
    plays : int
        Updates that are scored in the game, at least 100; three times as many are made.
    name : str, optional
        What the update is called in the verdict.
    seed : int or numpy.random.Generator
        Of coins; a client draws its own noise.
    confidence : float
        In (0, 1).

    Returns
    -------
    Inversion

    Raises
    ------
    ArgumentError
        For arguments that do not fit each other, or a client that gives something else.

    Examples
    --------
    >>> import numpy as np
    >>> from dither.lab.attack import SimulatedClient, gradient_inversion
    >>> images = np.random.default_rng(1).random((4, 9))
    >>> bare = SimulatedClient.of(inputs=9, classes=3)
    >>> found = gradient_inversion(bare.first, images, [0, 1, 2, 0], plays=100)
    >>> bool(np.allclose(found.rebuilt, images)), found.found
    (True, 4)

    Of two records at once, by a network that is wide:

    >>> wide = SimulatedClient.of(inputs=9, classes=3, hidden=64)
    >>> gradient_inversion(wide.first, images, [0, 1, 2, 0], batch=2, plays=100).found
    4
    """
    rows, known = labelled(records, labels)
    size = _batch(batch, len(rows))
    game = UpdateGame.of(client, undefended, loss, plays, name, seed, confidence)
    held = [_held(rows, known, range(i, i + size)) for i in range(0, len(rows), size)]
    rebuilt = _rebuilt(game.updates(held), rows, size)
    bare, updates = None, game.bare_updates(held)
    others = [_held(rows, known, (k, *range(1, size))) for k in range(len(rows))]
    if updates is not None:
        bare = _rebuilt(updates, rows, size)
        pair = pair or _farthest(updates if size == 1 else game.bare_updates(others) or [])
    candidates = [others[i] for i in _chosen(pair or (0, 1), len(rows))]
    which = game.told_apart(candidates, "which of two records did the client have")
    strange = np.roll(rows, size, axis=0)
    return Inversion(
        rows, rebuilt, bare, _correlation(rebuilt, rows),
        None if bare is None else _correlation(bare, rows),
        float(_correlation(_ordered(rebuilt, strange, size), strange).mean()), which, size,
    )  # fmt: skip


def _batch(batch: Any, count: int) -> int:
    size = whole("batch", batch, 1)
    if count % size or count < 2 * size:
        raise ArgumentError("batch must divide the number of records, into two batches or more")
    return size


def _held(rows: Floats, labels: Ints, places: Iterable[int]) -> Held:
    """What a client with these records has: one of them, or a batch."""
    chosen = list(places)
    if len(chosen) == 1:
        return rows[chosen[0]], int(labels[chosen[0]])
    return rows[chosen], labels[chosen]


def _rebuilt(updates: Sequence[tuple[Floats, Floats]], rows: Floats, size: int) -> Floats:
    if size == 1:
        return np.array([_record(*one) for one in updates])
    return _ordered(np.concatenate([_agreed(*one, size) for one in updates]), rows, size)


def _record(weights: Floats, biases: Floats) -> Floats:
    """The least-squares x of ``weights = biases·xᵀ``; 0 where nothing came back."""
    squared = float(biases @ biases)
    return weights.T @ biases / squared if squared else np.zeros(weights.shape[1])


def _correlation(these: Floats, those: Floats) -> Floats:
    one, two = (x - x.mean(axis=1, keepdims=True) for x in (these, those))
    sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.asarray((one * two).sum(axis=1) / np.where(sizes > 0, sizes, np.inf))


def _agreed(weights: Floats, biases: Floats, size: int) -> Floats:
    """The quotients of units that agree, those of most units first; 0 where there are too few."""
    found = np.zeros((size, weights.shape[1]))
    # Units at which nothing came back have no quotient.
    live = np.abs(biases) > 1e-12 * np.abs(biases).max(initial=0.0)
    quotients, squares = weights[live] / biases[live, None], biases[live] ** 2
    inner = quotients @ quotients.T
    norms = np.diag(inner)
    apart = np.sqrt(np.maximum(norms[:, None] + norms - 2 * inner, 0.0))
    apart /= np.sqrt(np.maximum(np.maximum(norms[:, None], norms), np.finfo(np.float64).tiny))
    left, place = np.ones(len(quotients), dtype=bool), 0
    for far in _AGREE:
        while place < size and left.any():
            near = (apart <= far) & left
            many = np.where(left, near.sum(axis=1), 0)
            if many.max() < 2 and far != _AGREE[-1]:
                break
            most = np.flatnonzero(many == many.max())
            one = near[most[(near[most] @ squares).argmax()]]
            # A quotient errs by one over its bias: by inverse variances, each weighs as its bias
            # squared.
            found[place] = squares[one] @ quotients[one] / squares[one].sum()
            left, place = left & ~one, place + 1
    return found


def _ordered(rebuilt: Floats, rows: Floats, size: int) -> Floats:
    """Each batch in the order in which it fits the records best, one after the other."""
    found = rebuilt.copy()
    for start in range(0, len(rows), size):
        mine = slice(start, start + size)
        alike = np.array(
            [_correlation(rebuilt[mine], np.tile(row, (size, 1))) for row in rows[mine]]
        )
        for _ in range(size):
            row, one = divmod(int(alike.argmax()), size)
            found[start + row] = rebuilt[start + one]
            alike[row], alike[:, one] = -np.inf, -np.inf
    return found


def _farthest(updates: Sequence[tuple[Floats, Floats]]) -> tuple[int, int]:
    """The two updates that differ most; each shrunk to a norm of 1, as a clip does."""
    rows = np.array([flat(*one) for one in updates])
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    inner = rows @ rows.T
    place = int((np.diag(inner)[:, None] + np.diag(inner) - 2 * inner).argmax())
    one, two = divmod(place, len(rows))
    return (one, two) if one != two else (0, 1)


def _chosen(pair: tuple[int, int], count: int) -> tuple[int, int]:
    one, two = (whole("pair", place, 0, count - 1) for place in pair)
    if one == two:
        raise ArgumentError("pair must name two different records")
    return one, two
