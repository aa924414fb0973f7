"""Modules of torch as models of clients.

A client's update follows from its own rows: clients are trained one after the other, each on draws
of its own (`dither.learn.deep.state._draws`), and a module that leaves anything behind that the
next one could read, or that would be published with it, is refused
(`dither.learn.deep.state._guard`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.func import functional_call

from dither.errors import ArgumentError, EngineError
from dither.learn.deep.rows._model import keeps, made_up_rows, unusual_rows
from dither.learn.deep.state._draws import Sources
from dither.learn.deep.state._guard import Guard, StateChanged
from dither.learn.deep.state._state import WatchedObjects
from dither.learn.federated._clients import ClientData, LocalSGD
from dither.learn.federated._encoding import Floats, Integers
from dither.numeric import Words

__all__ = ["TorchModel"]


class TorchModel:
    """A module that gives scores of classes, as `train` asks for it.

    Parameters
    ----------
    module : torch.nn.Module
        Without layers that mix rows or keep running numbers: its buffers stay as they are.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        for part in module.modules():
            if isinstance(part, torch.nn.modules.batchnorm._BatchNorm):
                raise ArgumentError(
                    "model must not have batch normalisation, which keeps numbers of clients' "
                    "rows: take torch.nn.GroupNorm"
                )
        self._module = module
        self._names = [name for name, p in module.named_parameters() if p.requires_grad]
        self._like = [dict(module.named_parameters())[name] for name in self._names]
        if not self._like:
            raise ArgumentError("model must have parameters that are trained")
        self._fixed = {
            name: p.detach() for name, p in module.named_parameters() if not p.requires_grad
        }
        self._guard = Guard(model=module)
        self._guard.everywhere = True
        self._rehearsed = False

    @property
    def size(self) -> int:
        """How many parameters are trained."""
        return sum(p.numel() for p in self._like)

    def start(self, words: Words | None = None) -> Floats:
        """The module's own."""
        flat = [p.detach().to("cpu", torch.float64).reshape(-1) for p in self._like]
        return np.asarray(torch.cat(flat).numpy())

    def _parts(self, flat: torch.Tensor) -> dict[str, torch.Tensor]:
        sizes = [p.numel() for p in self._like]
        parts = torch.split(flat, sizes)
        found = zip(self._names, self._like, parts, strict=True)
        return {name: part.view(p.shape) for name, p, part in found} | self._fixed

    def updates(
        self, parameters: Floats, data: ClientData, which: Integers, local: LocalSGD, words: Words
    ) -> npt.NDArray[np.floating[Any]]:
        """How training moves the parameters of each of some clients, shape (m, size)."""

        like = self._like[0]
        first = torch.as_tensor(parameters).to(like.device, like.dtype)
        self._guard.words = words
        if not self._rehearsed:
            self._rehearse(first, data.X.shape[1])
        found = np.zeros((len(which), self.size), np.float64)
        # One by one: in which order a stack's numbers are added up follows from how many there are,
        # so that the last digits of one client's update would follow from who else was asked.
        for place in range(len(which)):
            chosen = which[place : place + 1]
            at = first
            whole = data.taken(chosen, None, words) if local.batch is None else None
            try:
                with self._guard.around(like.device):
                    for _ in range(local.steps):
                        X, y, weights = whole or data.taken(chosen, local.batch, words)
                        given = (
                            torch.from_numpy(X[0]).to(like.device, like.dtype),
                            torch.from_numpy(y[0]).to(like.device),
                            torch.from_numpy(weights[0]).to(like.device, like.dtype),
                        )
                        at = at - local.rate * self._gradient(at, *given)
            except StateChanged:
                raise EngineError(
                    "the model changed what it can reach while it was trained on a client: it is "
                    "put back, for it may hold what was seen of that client"
                ) from None
            except Exception:
                raise EngineError("the model failed on the rows of some client") from None
            found[place] = (at - first).cpu().numpy()
        return found

    def _gradient(
        self, flat: torch.Tensor, X: torch.Tensor, y: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        """That of a client's mean loss, as torch finds it, of whatever the module is made."""
        at = flat.detach().requires_grad_()
        with torch.enable_grad():
            scores = functional_call(self._module, self._parts(at), (X,))
            each = torch.nn.functional.cross_entropy(scores.to(at.dtype), y, reduction="none")
            return torch.autograd.grad((each * weights).sum(), at)[0]

    def _rehearse(self, at: torch.Tensor, features: int) -> None:
        """See on rows that are made up that the module can be trained, and keeps nothing of them.

        Raises
        ------
        ArgumentError
            It cannot, or it does.
        """
        begun, like = WatchedObjects(model=self._module), self._like[0]
        shape = like.new_zeros(1, features)
        begun.remember()
        with torch.no_grad(), Sources(like.device, begun.generators, everywhere=True).kept():
            # What is made once, when it is first needed, is made now; numbers stay as they are.
            with suppress(Exception):
                self._module(made_up_rows(shape))
            changed = begun.changed(numbers=True)
            begun.restore(numbers=True)
        for rows, may_fail in ((made_up_rows(shape), False), (unusual_rows(shape), True)):
            y = torch.zeros(len(rows), dtype=torch.int64, device=like.device)
            try:
                with self._guard.around(like.device):
                    self._gradient(at, rows, y, like.new_full((len(rows),), 1 / len(rows)))
            except StateChanged as found:
                changed += found.names
            except Exception as error:
                if not may_fail and not changed:
                    raise ArgumentError(
                        f"model fails on made-up rows of {features} features: "
                        f"{type(error).__name__}: {error}"
                    ) from error
        if changed:
            begun.restore()
            raise ArgumentError(keeps(changed))
        self._rehearsed = True

    def predict_proba(self, parameters: Floats, X: Any) -> Floats:
        """Probabilities of classes, shape (n, classes)."""
        like = self._like[0]
        flat = torch.as_tensor(parameters).to(like.device, like.dtype)
        rows = torch.as_tensor(np.asarray(X, np.float32)).to(like.device, like.dtype)
        with torch.no_grad():
            scores = functional_call(self._module, self._parts(flat), (rows,))
            found = scores.softmax(dim=-1)
        return np.asarray(found.cpu().numpy(), np.float64)
