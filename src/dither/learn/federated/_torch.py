"""Modules of torch as models whose clients train at once, by ``torch.func``."""

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

_STACK = 1 << 23
"""Numbers in a stack of parameters or rows."""


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
        rows = local.batch or max(int(data.held(which).max(initial=1)), 1)
        most = max(1, _STACK // max(self.size, rows * data.X.shape[1]))
        parts = []
        for start in range(0, len(which), most):
            chosen = which[start : start + most]
            stack = first.repeat(len(chosen), 1)
            whole = data.taken(chosen, None, words) if local.batch is None else None
            for _ in range(local.steps):
                X, y, weights = whole or data.taken(chosen, local.batch, words)
                given = (
                    torch.from_numpy(X).to(like.device, like.dtype),
                    torch.from_numpy(y).to(like.device),
                    torch.from_numpy(weights).to(like.device, like.dtype),
                )
                stack = stack - local.rate * gradients(stack, *given)
            parts.append((stack - first).cpu().numpy())
        return np.concatenate(parts) if parts else np.zeros((0, self.size), np.float32)

    def predict_proba(self, parameters: Floats, X: Any) -> Floats:
        """Probabilities of classes, shape (n, classes)."""
        like = self._like[0]
        flat = torch.as_tensor(parameters).to(like.device, like.dtype)
        rows = torch.as_tensor(np.asarray(X, np.float32)).to(like.device, like.dtype)
        with torch.no_grad():
            scores = functional_call(self._module, self._parts(flat), (rows,))
            found = scores.softmax(dim=-1)
        return np.asarray(found.cpu().numpy(), np.float64)
