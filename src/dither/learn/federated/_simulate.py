"""A whole run in one process: clients of a round trained at once, the rest as on real clients."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dither._format import Printable
from dither.errors import ArgumentError, RoundError
from dither.learn.federated._clients import ClientData, LocalSGD, Model, Network
from dither.learn.federated._encoding import Floats, Integers
from dither.learn.federated._fedavg import FedAvg
from dither.learn.federated._server import Faults, Server
from dither.numeric import Words, secure_words
from dither.privacy import Loss

__all__ = ["FederatedFit", "LocalUpdate", "train"]

LocalUpdate = Callable[[Floats, Integers], npt.NDArray[np.floating[Any]]]
"""From parameters and clients to how training moves each client's, shape (m, dimension)."""

_AT_ONCE = 1 << 24
"""Numbers of updates that are encoded at once: 128 MiB, and their integers as much."""


@dataclass(frozen=True, eq=False, repr=False)
class FederatedFit(Printable):
    """A trained model, and what it cost.

    Parameters
    ----------
    model : Model or None
    parameters : array of float, shape (dimension,)
    plan : FedAvg
    clips : tuple of float
        Of each round.
    refused : int
        Rounds that too few clients came to. The plan's loss is stated for runs without one.
    faults : Faults
    """

    model: Model | None
    parameters: Floats
    plan: FedAvg
    clips: tuple[float, ...]
    refused: int
    faults: Faults

    @property
    def loss(self) -> Loss:
        """Of the whole run, for one client: the plan's."""
        return self.plan.loss

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of classes, shape (n, classes)."""
        if self.model is None:
            raise ArgumentError("predictions need a model: train was given local updates alone")
        return self.model.predict_proba(self.parameters, X)

    def predict(self, X: Any) -> Integers:
        """The most probable classes, shape (n,)."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def summary(self) -> str:
        """The plan, and how the run went."""
        lines = [self.plan.summary(), f"{len(self.clips)} rounds were run"]
        if self.refused:
            lines[-1] += f", of which {self.refused} had too few clients and changed nothing"
        if self.plan.quantile is not None:
            lines.append(f"clip: from {self.clips[0]:.4g} to {self.clips[-1]:.4g}")
        return "\n".join(lines)


def train(
    model: Any,
    clients: ClientData | LocalUpdate,
    plan: FedAvg,
    *,
    local: LocalSGD | None = None,
    start: Any = None,
    seen: Callable[[int, Floats], None] | None = None,
    words: Words | None = None,
) -> FederatedFit:
    """Train a model on clients' rows, by the rounds of a plan, in this process.

    All is done as on real clients: clipping, integers, noise and its modulus. It is a simulation in
    that one process holds the rows of all clients; where they are one party's own, what comes out
    may be published as the plan says.

    Parameters
    ----------
    model : Network, torch.nn.Module, Model or None
        Of a module, the mean cross-entropy of what it gives is the loss that clients train on.
    clients : ClientData or callable
        A callable is given the parameters and an array of clients, and returns how training moves
        the parameters of each, shape (m, dimension). A client's row must follow from that client's
        data alone, to the last digit: whoever stacks clients must see to it.
    plan : FedAvg
    local : LocalSGD, optional
        How a client trains; one step of rate 0.1 on all its rows, if left out.
    start : array of float, shape (dimension,), optional
        Public parameters to begin with.
    seen : callable, optional
        Told, after each round, how many are done and the parameters, which are private by then.
    words : Words, optional
        Another source of randomness, for simulation only.

    Returns
    -------
    FederatedFit

    Raises
    ------
    ArgumentError
        Sizes of model, clients and plan differ.

    Notes
    -----
    *Guarantee.* That of `FedAvg.loss`, for all of one client's rows together.

    Examples
    --------
    >>> X = np.tile(np.eye(2), (50, 1))
    >>> y, client = np.tile([0, 1], 50), np.arange(100) // 2
    >>> data, model = ClientData(X, y, client), Network(2, 2)
    >>> plan = FedAvg(model.size, clients=50, rate=1, rounds=5, epsilon=8, delta=1e-5)
    >>> fit = train(model, data, plan, local=LocalSGD(steps=5, rate=1))
    >>> fit.predict(np.eye(2))
    array([0, 1])
    """
    made = _wrapped(model)
    source = words or secure_words()
    if made is not None and made.size != plan.dimension:
        raise ArgumentError(
            f"the model has {made.size:,} parameters, and the plan is for {plan.dimension:,}"
        )
    if isinstance(clients, ClientData):
        if clients.clients != plan.clients:
            raise ArgumentError(
                f"there are {clients.clients:,} clients, and the plan is for {plan.clients:,}"
            )
        if made is None:
            raise ArgumentError("model must be given with clients' rows, such as a Network")
        how = local or LocalSGD()
        data, known = clients, made
        update: LocalUpdate = lambda at, which: known.updates(at, data, which, how, source)  # noqa: E731
    else:
        if not callable(clients):
            raise ArgumentError("clients must be a ClientData, or a function of local updates")
        if local is not None:
            raise ArgumentError("local is for clients' rows; a function trains as it likes")
        update = clients
    if start is None:
        start = np.zeros(plan.dimension) if made is None else made.start(words)
    server = Server(plan, start, words=words)
    most = max(1, _AT_ONCE // max(plan.encoding.coordinates, plan.dimension))
    for done in range(1, plan.rounds + 1):
        opened = server.open()
        task = opened.task
        for first in range(0, len(opened.clients), most):
            which = opened.clients[first : first + most]
            # Copies: what a function writes into them must not reach the clients after it.
            found = np.asarray(update(task.parameters.copy(), which.copy()))
            if found.shape != (len(which), plan.dimension) or found.dtype.kind != "f":
                raise ArgumentError(
                    "a function of local updates must return floats of shape (clients, dimension)"
                )
            server.faults.not_finite += int((~np.isfinite(found).all(axis=1)).sum())
            opened._add(task.encoding.encode(found, task.clip, task.signs, source), which)
        opened._add_shares(source)
        with suppress(RoundError):
            opened.close()
        if seen is not None:
            seen(done, server.parameters)
    return FederatedFit(
        made, server.parameters, plan, tuple(server.clips), server.refused, server.faults
    )


def _wrapped(model: Any) -> Model | None:
    """A model with the methods of this room."""
    if model is None or isinstance(model, Network):
        return model
    if hasattr(model, "state_dict") and hasattr(model, "named_parameters"):
        from dither.learn.federated._torch import TorchModel

        return TorchModel(model)
    if all(hasattr(model, name) for name in ("size", "start", "updates", "predict_proba")):
        return cast(Model, model)
    raise ArgumentError(
        "model must be a Network, a torch.nn.Module, or have size, start, updates, predict_proba"
    )
