"""Rows that belong to clients, and models that many clients train at once.

Training on a client is an ordinary loop of gradient steps. Its products are of small matrices, one
a client, so that clients of a round are stacked and each step is one product of stacks.

What a client sends must follow from its own rows alone, to the last digit: else one client moves
what all others are rounded to. So a stack holds clients of one width, which follows from their own
numbers of rows; every product is of one client's matrices, in shapes that are its own; and what
fills a client up to its width are zeros, never a row of somebody else, whose NaN would pass through
a weight of 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._columns import is_masked
from dither.errors import ArgumentError
from dither.learn.federated._encoding import Floats, Integers, uniform
from dither.numeric import Words, secure_words

__all__ = ["ClientData", "LocalSGD", "Model", "Network"]

Single = npt.NDArray[np.float32]

_STACK = 1 << 23
"""Numbers in a stack of parameters or rows: with its gradient and its copies some 100 MiB."""

_WIDTHS = np.array(sorted({(k << n) // 2 for n in range(40) for k in (2, 3)}), np.int64)
"""Rows that a client is filled up to: 1, 2, 3, 4, 6, 8, 12, ..., so that stacks are few."""


@dataclass(frozen=True, eq=False, repr=False)
class ClientData:
    """Rows with their labels, and whose they are.

    Parameters
    ----------
    X : array of float, shape (n, features)
    y : array of int, shape (n,)
        Classes from 0.
    client : array of int, shape (n,)
        The client of each row, from 0; one that has no row takes part with an update of zeros.
    clients : int, optional
        How many there are; left out, the largest of ``client`` and 1.

    Raises
    ------
    ArgumentError
        Shapes differ, an array has a mask, or a label or client is not a whole number from 0 on.
    """

    X: Single
    y: Integers
    client: Integers
    clients: int | None = None
    starts: Integers = field(init=False)

    def __post_init__(self) -> None:
        if any(map(is_masked, (self.X, self.y, self.client))):
            raise ArgumentError("X, y and client must be plain arrays: leave masked rows out")
        X, y, client = np.asarray(self.X), np.asarray(self.y), np.asarray(self.client)
        if X.ndim != 2 or y.shape != (len(X),) or client.shape != (len(X),):
            raise ArgumentError(
                "X must be of shape (n, features), y and client of shape (n,): one label and one "
                "client a row"
            )
        for name, given in (("y", y), ("client", client)):
            if given.dtype.kind not in "iu" or (given.size and int(given.min()) < 0):
                raise ArgumentError(f"{name} must be whole numbers of at least 0")
        least = int(client.max()) + 1 if client.size else 1
        number = least if self.clients is None else check.count("clients", self.clients, least)
        order = np.argsort(client, kind="stable")
        held = np.bincount(client, minlength=number)
        # No warning may tell of one client's numbers, here or in training.
        with np.errstate(all="ignore"):
            object.__setattr__(self, "X", np.ascontiguousarray(X[order], np.float32))
        object.__setattr__(self, "y", y[order].astype(np.int64))
        object.__setattr__(self, "client", client[order].astype(np.int64))
        object.__setattr__(self, "clients", number)
        object.__setattr__(self, "starts", np.concatenate(([0], np.cumsum(held))).astype(np.int64))

    def __repr__(self) -> str:
        rows, features = self.X.shape
        return f"<ClientData of {self.clients:,} clients, {rows:,} rows of {features} features>"

    def held(self, which: Integers) -> Integers:
        """How many rows each of some clients has."""
        return np.asarray(self.starts[which + 1] - self.starts[which])

    def stacks(
        self, which: Integers, batch: int | None, size: int, numbers: int
    ) -> Iterator[Integers]:
        """Places among some clients that may be stacked: of one width, and not too many.

        Parameters
        ----------
        which : array of int
        batch : int or None
            Rows a step; None for all of a client's own.
        size, numbers : int
            How many numbers a client's parameters take, and one of its rows.

        Yields
        ------
        array of int
        """
        widths = np.full(len(which), batch or 0)
        if batch is None:
            widths = _WIDTHS[np.searchsorted(_WIDTHS, self.held(which))]
        for width in np.unique(widths).tolist():
            places = np.flatnonzero(widths == width)
            most = max(1, _STACK // max(size, width * numbers))
            for start in range(0, len(places), most):
                yield places[start : start + most]

    def taken(
        self, which: Integers, batch: int | None, words: Words
    ) -> tuple[Single, Integers, Single]:
        """Rows of some clients, as many of each: drawn with replacement, or all, filled with zeros.

        Returns
        -------
        X : array of float, shape (m, b, features)
        y : array of int, shape (m, b)
        weights : array of float, shape (m, b)
            Summing to 1 a client, or to 0 where it has no row; 0 for what is filled, as are X and y
            there.
        """
        held = self.held(which)
        if batch is None:
            width = int(_WIDTHS[np.searchsorted(_WIDTHS, held.max(initial=0))])
            places = np.broadcast_to(np.arange(width), (len(which), width))
            there = places < held[:, None]
        else:
            drawn = uniform(words, (len(which), batch)) * held[:, None]
            places = np.minimum(drawn.astype(np.int64), np.maximum(held[:, None] - 1, 0))
            there = np.broadcast_to(held[:, None] > 0, places.shape)
        rows = np.where(there, self.starts[which][:, None] + places, 0)
        weights = there / np.maximum(there.sum(axis=1, keepdims=True), 1)
        if not len(self.X):
            empty = np.zeros((*rows.shape, self.X.shape[1]), np.float32)
            return empty, rows, weights.astype(np.float32)
        X = np.where(there[:, :, None], self.X[rows], np.float32(0))
        return X, np.where(there, self.y[rows], 0), weights.astype(np.float32)


@dataclass(frozen=True, slots=True)
class LocalSGD:
    """How a client trains: so many steps of gradient descent on rows of its own.

    One step on all rows is DP-FedSGD: what is sent is a gradient. More steps, or some rows a step,
    are DP-FedAvg.

    Parameters
    ----------
    steps : int
    rate : number
        Above 0.
    batch : int, optional
        Rows a step, drawn from the client's own with replacement; left out, all of them.
    """

    steps: int = 1
    rate: float = 0.1
    batch: int | None = None

    def __post_init__(self) -> None:
        check.count("steps", self.steps, 1)
        object.__setattr__(self, "rate", check.number("rate", self.rate, above=0, below=1e100))
        if self.batch is not None:
            check.count("batch", self.batch, 1)


class Model(Protocol):
    """What `train` asks of a model."""

    @property
    def size(self) -> int:
        """How many parameters it has."""
        ...

    def start(self, words: Words | None = None) -> Floats:
        """Parameters to begin with, shape (size,)."""
        ...

    def updates(
        self, parameters: Floats, data: ClientData, which: Integers, local: LocalSGD, words: Words
    ) -> npt.NDArray[np.floating[Any]]:
        """How training moves the parameters of each of some clients, shape (m, size)."""
        ...

    def predict_proba(self, parameters: Floats, X: Any) -> Floats:
        """Probabilities of classes, shape (n, classes)."""
        ...


@dataclass(frozen=True, slots=True)
class Network:
    """A softmax classifier, with layers of rectified units between if any are named.

    Parameters
    ----------
    features, classes : int
    hidden : tuple of int
        Units of each layer.

    Examples
    --------
    >>> Network(64, 10).size, Network(64, 10, hidden=(32,)).size
    (650, 2410)
    """

    features: int
    classes: int
    hidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check.count("features", self.features, 1)
        check.count("classes", self.classes, 2)
        for units in self.hidden:
            check.count("hidden", units, 1)

    @property
    def _shapes(self) -> list[tuple[int, int]]:
        sizes = [self.features, *self.hidden, self.classes]
        return list(pairwise(sizes))

    @property
    def size(self) -> int:
        """How many parameters it has."""
        return sum((into + 1) * out for into, out in self._shapes)

    def start(self, words: Words | None = None) -> Floats:
        """Zeros for the last layer, and small numbers at random before it."""
        parts = []
        for into, out in self._shapes[:-1]:
            reach = math.sqrt(6 / into)
            weights = (2 * uniform(words or secure_words(), (into, out)) - 1) * reach
            parts += [weights.ravel(), np.zeros(out)]
        into, out = self._shapes[-1]
        return np.concatenate([*parts, np.zeros((into + 1) * out)])

    def _layers(self, stack: Single) -> list[tuple[Single, Single]]:
        """Views of parameters, shape (m, size), as weights (m, in, out) and biases (m, 1, out)."""
        found, at, count = [], 0, len(stack)
        for into, out in self._shapes:
            weights = stack[:, at : at + into * out].reshape(count, into, out)
            at += into * out
            found.append((weights, stack[:, at : at + out].reshape(count, 1, out)))
            at += out
        return found

    def updates(
        self, parameters: Floats, data: ClientData, which: Integers, local: LocalSGD, words: Words
    ) -> Single:
        """How training moves the parameters of each of some clients, shape (m, size)."""
        if data.X.shape[1] != self.features:
            raise ArgumentError(f"X must have {self.features} features, as the model has")
        if data.y.size and int(data.y.max()) >= self.classes:
            raise ArgumentError(f"y must be classes below {self.classes}, as the model has")
        numbers = max(self.features, *self.hidden, self.classes)
        first = np.asarray(parameters, np.float32)
        found = np.empty((len(which), self.size), np.float32)
        for at in data.stacks(which, local.batch, self.size, numbers):
            chosen, stack = which[at], np.tile(first, (len(at), 1))
            whole = data.taken(chosen, None, words) if local.batch is None else None
            with np.errstate(all="ignore"):
                for _ in range(local.steps):
                    taken = whole or data.taken(chosen, local.batch, words)
                    self._step(stack, *taken, local.rate)
                found[at] = stack - first
        return found

    def _step(self, stack: Single, X: Single, y: Integers, weights: Single, rate: float) -> None:
        layers = self._layers(stack)
        inputs = [X]
        for matrix, bias in layers[:-1]:
            inputs.append(np.maximum(inputs[-1] @ matrix + bias, 0))
        matrix, bias = layers[-1]
        back = _softmax(inputs[-1] @ matrix + bias)
        m, b = y.shape
        back[np.arange(m)[:, None], np.arange(b), y] -= 1
        back *= weights[:, :, None]
        for depth in range(len(layers) - 1, -1, -1):
            matrix, bias = layers[depth]
            given = inputs[depth]
            if depth:
                earlier = (back @ matrix.transpose(0, 2, 1)) * (given > 0)
            matrix -= rate * (given.transpose(0, 2, 1) @ back)
            bias -= rate * back.sum(axis=1, keepdims=True)
            if depth:
                back = earlier

    def predict_proba(self, parameters: Floats, X: Any) -> Floats:
        """Probabilities of classes, shape (n, classes)."""
        found = np.asarray(X, np.float32)
        layers = self._layers(np.asarray(parameters, np.float32)[None, :])
        for matrix, bias in layers[:-1]:
            found = np.maximum(found @ matrix[0] + bias[0], 0)
        matrix, bias = layers[-1]
        return np.asarray(_softmax(found @ matrix[0] + bias[0]), np.float64)


def _softmax(scores: Single) -> Single:
    scores = scores - scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores
