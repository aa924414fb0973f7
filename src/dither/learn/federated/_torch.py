"""Modules of torch as models of clients, by ``torch.func``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.func import functional_call, grad, vmap

from dither.errors import ArgumentError
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

        def loss(
            flat: torch.Tensor, X: torch.Tensor, y: torch.Tensor, weights: torch.Tensor
        ) -> torch.Tensor:
            scores = functional_call(self._module, self._parts(flat), (X,))
            each = torch.nn.functional.cross_entropy(scores, y, reduction="none")
            return (each * weights).sum()

        gradients = vmap(grad(loss), randomness="different")
        like = self._like[0]
        first = torch.as_tensor(parameters).to(like.device, like.dtype)
        found = np.zeros((len(which), self.size), np.float64)
        # One by one: in which order a stack's numbers are added up follows from how many there are,
        # so that the last digits of one client's update would follow from who else was asked.
        for place in range(len(which)):
            chosen = which[place : place + 1]
            at = first[None, :]
            whole = data.taken(chosen, None, words) if local.batch is None else None
            for _ in range(local.steps):
                X, y, weights = whole or data.taken(chosen, local.batch, words)
                given = (
                    torch.from_numpy(X).to(like.device, like.dtype),
                    torch.from_numpy(y).to(like.device),
                    torch.from_numpy(weights).to(like.device, like.dtype),
                )
                at = at - local.rate * gradients(at, *given)
            found[place] = (at - first).cpu().numpy()[0]
        return found

    def predict_proba(self, parameters: Floats, X: Any) -> Floats:
        """Probabilities of classes, shape (n, classes)."""
        like = self._like[0]
        flat = torch.as_tensor(parameters).to(like.device, like.dtype)
        rows = torch.as_tensor(np.asarray(X, np.float32)).to(like.device, like.dtype)
        with torch.no_grad():
            scores = functional_call(self._module, self._parts(flat), (rows,))
            found = scores.softmax(dim=-1)
        return np.asarray(found.cpu().numpy(), np.float64)
