"""What one client's update gives away: the record that it was computed of, and its label.

In federated learning a client sends no record, but the gradient of its loss. Of a network whose
first layer is fully connected, with weights W and biases b, the gradient at one record x is ::

    dW = e·xᵀ,    db = e        (e: what comes back from the layers above)

so that ``x = dWᵀ·db/‖db‖²``, exactly, whatever stands above: no search, and no secret but the
update. And of a network that ends in a softmax the gradient of the last biases is ``p - y``, of
which one entry alone is below 0: that of the label.

With noise both fail, and how far is no matter of taste: the *game* is to tell which of two records
(or labels) the client had, by an adversary who knows both, the model and the noise. Of that the
loss of an update, for replacing the client's record, bounds the whole curve; what plays certify
must stay below it.

Source. Phong, Aono, Hayashi, Wang and Moriai, "Privacy-preserving deep learning via additively
homomorphic encryption", 2018, section 3; Geiping, Bauermeister, Dröge and Moeller, "Inverting
gradients", 2020, proposition 3.1; Zhao, Mopuri and Bilen, "iDLG", 2020 (labels).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither._checks import confidence as check_confidence
from dither._checks import number, whole
from dither._format import Printable, count_text, percent
from dither.errors import ArgumentError
from dither.lab._calls import answered
from dither.lab._simulation import SimulatedWorld
from dither.lab.attack._membership import Membership, of_two
from dither.lab.attack._shadows import takes_size
from dither.lab.attack._verdict import Verdict
from dither.privacy import Loss, Neighbours, gaussian

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Inversion", "LabelLeak", "SimulatedClient", "gradient_inversion", "label_leak"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Client = Callable[..., Any]

_ALIKE = 0.9
"""A correlation from which a rebuilt record counts as found."""


@dataclass(frozen=True, slots=True, eq=False)
class Inversion(Printable):
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
    """

    records: Floats = field(repr=False)
    rebuilt: Floats = field(repr=False)
    bare: Floats | None = field(repr=False)
    likeness: Floats = field(repr=False)
    bare_likeness: Floats | None = field(repr=False)
    blind: float
    which: Membership

    @property
    def found(self) -> int:
        """Records that were rebuilt with a correlation of at least 0.9."""
        return int((self.likeness >= _ALIKE).sum())

    @property
    def verdict(self) -> Verdict:
        """Of the game of two records."""
        return self.which.verdict

    def certified(self, delta: float = 0.0) -> float:
        """The largest epsilon that the game's plays prove to be lost, at this delta."""
        return self.which.certified(delta)

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
        from dither.plots._gradients import draw_inversions

        return draw_inversions([self], path)


@dataclass(frozen=True, slots=True, eq=False)
class LabelLeak(Printable):
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

    @property
    def verdict(self) -> Verdict:
        """Of the game of two labels."""
        return self.which.verdict

    def certified(self, delta: float = 0.0) -> float:
        """The largest epsilon that the game's plays prove to be lost, at this delta."""
        return self.which.certified(delta)

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
        from dither.plots._gradients import draw_label_leaks

        return draw_label_leaks([self], path)


def gradient_inversion(
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
) -> Inversion:
    """Rebuild a client's record from its update, and tell which of two records it had.

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
        What an update is said to lose under replacing the client's record.
    undefended : callable, optional
        The same client without noise, for the control and the comparison.
    pair : (int, int), optional
        The records of the game. By default those whose updates without noise differ most, or the
        first two where ``undefended`` is not given.
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
    """
    rows, known = _pairs(records, labels)
    level, generator = check_confidence(confidence), SimulatedWorld.of(seed)
    plays = whole("plays", plays, 100)
    _callables(client, undefended, loss)
    rebuilt = np.array([_record(*_update(client, x, y)) for x, y in zip(rows, known, strict=True)])
    bare = None
    if undefended is not None:
        updates = [_update(undefended, x, y) for x, y in zip(rows, known, strict=True)]
        bare = np.array([_record(*one) for one in updates])
        pair = pair or _farthest([_flat(*one) for one in updates])
    candidates = [(rows[i], int(known[i])) for i in _chosen(pair or (0, 1), len(rows))]
    which = _told_apart(
        client, undefended, candidates, "which of two records did the client have", name, loss,
        plays, generator, level,
    )  # fmt: skip
    shifted = np.roll(rows, 1, axis=0)
    return Inversion(
        rows, rebuilt, bare, _correlation(rebuilt, rows),
        None if bare is None else _correlation(bare, rows),
        float(_correlation(rebuilt, shifted).mean()), which,
    )  # fmt: skip


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
    rows, known = _pairs(records, labels)
    level, generator = check_confidence(confidence), SimulatedWorld.of(seed)
    plays = whole("plays", plays, 100)
    _callables(client, undefended, loss)
    present = np.unique(known)
    if len(present) < 2:
        raise ArgumentError("labels must hold at least two different ones")

    def read(of: Client) -> Ints:
        return np.array(
            [int(_update(of, x, y)[1].argmin()) for x, y in zip(rows, known, strict=True)]
        )

    guessed, bare = read(client), None if undefended is None else read(undefended)
    first, second = pair or (int(present[0]), int(present[1]))
    for label in (first, second):
        whole("pair", label)
    if first == second:
        raise ArgumentError("pair must name two different labels")
    candidates = [(rows[0], first), (rows[0], second)]
    which = _told_apart(
        client, undefended, candidates, "which of two labels did the client have", name, loss,
        plays, generator, level,
    )  # fmt: skip
    blind = float(np.unique(known, return_counts=True)[1].max() / len(known))
    return LabelLeak(known, guessed, bare, blind, which)


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedClient:
    """A client with one record, that sends the gradient of a small network, clipped and with noise.

    The network has one hidden layer of rectified units, or none, and ends in a softmax. The noise
    is simulated, and protects nobody.

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
        """What an update loses where the client's record is replaced.

        Raises
        ------
        ArgumentError
            Where there is no noise.
        """
        if not self.noise_multiplier:
            raise ArgumentError("noise_multiplier is 0: nothing bounds what an update loses")
        return gaussian(self.noise_multiplier, neighbours=Neighbours.REPLACE)

    def first(self, record: Floats, label: int, size: int) -> tuple[Floats, Floats]:
        """Updates of the first layer: gradients of weights and of biases, ``size`` of each."""
        return self._noisy(self.gradients(record, label), 0, size)

    def last(self, record: Floats, label: int, size: int) -> tuple[Floats, Floats]:
        """The same of the last layer."""
        return self._noisy(self.gradients(record, label), -1, size)

    def gradients(self, record: Floats, label: int) -> list[tuple[Floats, Floats]]:
        """Of each layer, the gradients of its weights and biases, clipped as one vector."""
        seen, ahead = [np.asarray(record, dtype=np.float64)], None
        for i, (w, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            ahead = w @ seen[-1] + b
            if i + 1 < len(self.weights):
                seen.append(np.maximum(ahead, 0.0))
        assert ahead is not None
        chances = np.exp(ahead - ahead.max())
        back = chances / chances.sum()
        back[label] -= 1.0
        found: list[tuple[Floats, Floats]] = []
        for w, x in zip(self.weights[::-1], seen[::-1], strict=True):
            found.insert(0, (np.outer(back, x), back))
            back = (w.T @ back) * (x > 0)
        norm = float(sum((a**2).sum() + (b**2).sum() for a, b in found)) ** 0.5
        shrunk = 1.0 if self.clip is None else min(1.0, self.clip / max(norm, 1e-300))
        return [(a * shrunk, b * shrunk) for a, b in found]

    def _noisy(
        self, gradients: list[tuple[Floats, Floats]], layer: int, size: int
    ) -> tuple[Floats, Floats]:
        weights, biases = (np.broadcast_to(x, (size, *x.shape)) for x in gradients[layer])
        if not self.noise_multiplier or self.clip is None:
            return weights, biases
        spread = 2.0 * self.clip * self.noise_multiplier
        return (
            weights + self.generator.normal(0, spread, weights.shape),
            biases + self.generator.normal(0, spread, biases.shape),
        )


def _record(weights: Floats, biases: Floats) -> Floats:
    """The least-squares x of ``weights = biases·xᵀ``; 0 where nothing came back."""
    squared = float(biases @ biases)
    return weights.T @ biases / squared if squared else np.zeros(weights.shape[1])


def _correlation(these: Floats, those: Floats) -> Floats:
    one, two = (x - x.mean(axis=1, keepdims=True) for x in (these, those))
    sizes = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    return np.asarray((one * two).sum(axis=1) / np.where(sizes > 0, sizes, np.inf))


def _update(client: Client, record: Floats, label: int) -> tuple[Floats, Floats]:
    """One update."""
    weights, biases = _updates(client, record, label, 1)
    return weights[0], biases[0]


def _updates(client: Client, record: Floats, label: int, size: int) -> tuple[Floats, Floats]:
    many = takes_size(client, 2)
    given = (record, int(label), size) if many else (record, int(label))
    made = answered("client", client, *given)
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


def _flat(weights: Floats, biases: Floats) -> Floats:
    return np.concatenate([weights.ravel(), biases])


def _told_apart(
    client: Client,
    undefended: Client | None,
    candidates: Sequence[tuple[Floats, int]],
    game: str,
    name: str | None,
    loss: Loss | None,
    plays: int,
    generator: np.random.Generator,
    confidence: float,
) -> Membership:
    """Which of two candidates a client had.

    Who knows the model knows both updates without noise, and looks at their directions alone, those
    of weights and of biases: what noise does elsewhere would tell nothing, and be in the way of the
    fit.
    """
    axes = None
    if undefended is not None:
        both = [_update(undefended, *one) for one in candidates]
        many = both[0][0].size
        axes = np.zeros((many + both[0][1].size, 4))
        for i, (weights, biases) in enumerate(both):
            axes[:many, i], axes[many:, 2 + i] = weights.ravel(), biases
        axes = axes / np.maximum(np.linalg.norm(axes, axis=0), np.finfo(np.float64).tiny)

    def either(of: Client) -> Callable[..., Any]:
        def seen(updates: Floats) -> Floats:
            return updates if axes is None else updates @ axes

        def many(second: bool, size: int) -> Floats:
            weights, biases = _updates(of, *candidates[second], size)
            return seen(np.concatenate([weights.reshape(size, -1), biases], axis=1))

        def single(second: bool) -> Floats:
            return seen(_flat(*_update(of, *candidates[second])))

        return many if takes_size(of, 2) else single

    return of_two(
        either(client), None if undefended is None else either(undefended), game=game,
        name=name or "a client's update", loss=loss, plays=plays, generator=generator,
        confidence=confidence,
    )  # fmt: skip


def _farthest(updates: Sequence[Floats]) -> tuple[int, int]:
    """The two updates that differ most; each shrunk to a norm of 1, as a clip does."""
    rows = np.array(updates)
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


def _pairs(records: Any, labels: Any) -> tuple[Floats, Ints]:
    try:
        rows, known = np.asarray(records, dtype=np.float64), np.asarray(labels)
    except (TypeError, ValueError) as error:
        raise ArgumentError("records must be numbers, one record a row") from error
    if rows.ndim != 2 or len(rows) < 2 or not np.isfinite(rows).all():
        raise ArgumentError("records must be finite numbers, one record a row, at least two")
    if known.shape != (len(rows),) or known.dtype.kind not in "iu" or (known < 0).any():
        raise ArgumentError("labels must be integers of at least 0, one for each record")
    return rows, known.astype(np.int64)


def _callables(client: Any, undefended: Any, loss: Any) -> None:
    if not callable(client):
        raise ArgumentError("client must be a function of a record and its label")
    if undefended is not None and not callable(undefended):
        raise ArgumentError("undefended must be a function of a record and its label")
    if loss is not None and not isinstance(loss, Loss):
        raise ArgumentError("loss must be a Loss, such as privacy.gaussian(1.0)")
