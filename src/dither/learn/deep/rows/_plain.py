"""Models of which it can be read off that no row meets another: these may run as one batch.

Such a model is a sequence of layers of torch that are known here, each of exactly that class, with
no hook and no attribute in the place of a method, under a loss that is known here as well. Each of
them treats the first dimension of what it is given as rows, forwards and backwards, and the number
of rows changes nothing: that is what their formulas say, and the dimensions that they are given are
looked at. Dropout draws a number for each entry, so that each row has its own.

All others run each row as a batch of its own (`_gradients`), which costs a little more.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from dither.learn.deep.rows._gradients import ByLayers, PerExampleLoss, UnknownUse, cross_entropy
from dither.learn.deep.rows._layers import GradientPart

__all__ = ["ByBatch", "reads_rows_apart"]

_ENTRIES = (
    *(nn.Identity, nn.ReLU, nn.Tanh, nn.Sigmoid, nn.GELU, nn.SiLU, nn.ELU, nn.LeakyReLU),
    *(nn.Softplus, nn.Hardtanh, nn.Hardswish, nn.Mish, nn.Dropout),
)
"""Entry by entry."""
_IMAGES = {
    **dict.fromkeys((nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d), 4),
    **dict.fromkeys((nn.Conv1d, nn.MaxPool1d, nn.AvgPool1d), 3),
}
"""Those that read fewer dimensions as one row, and how many they must be given."""
_ROWS = (nn.Linear, nn.Embedding, nn.Flatten, nn.Unflatten, nn.LayerNorm, nn.GroupNorm)
_HOOKS = (
    *("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"),
    *("_forward_hooks_always_called", "_forward_hooks_with_kwargs"),
)


def reads_rows_apart(model: nn.Module, loss: PerExampleLoss) -> bool:
    """Whether model and loss are made of nothing but what is known here."""
    everywhere = vars(torch.nn.modules.module)
    hooked = any(
        isinstance(held, dict) and held
        for name, held in everywhere.items()
        if name.startswith("_global_")
    )
    return loss is cross_entropy and not hooked and all(map(_known, model.modules()))


def _known(layer: nn.Module) -> bool:
    from dither.learn.deep._adapters import LowRank
    from dither.learn.deep._centre import Centre

    kind = type(layer)
    if any(getattr(layer, name, None) for name in _HOOKS) or "forward" in vars(layer):
        return False
    if isinstance(layer, nn.Flatten):
        return kind is nn.Flatten and layer.start_dim >= 1
    if isinstance(layer, nn.Unflatten):
        return kind is nn.Unflatten and isinstance(layer.dim, int) and layer.dim >= 1
    if isinstance(layer, nn.Embedding):
        return kind is nn.Embedding and layer.max_norm is None and not layer.scale_grad_by_freq
    known = (nn.Sequential, Centre, LowRank, *_ENTRIES, *_IMAGES, *_ROWS)
    return kind in known and not any(p._backward_hooks for p in layer.parameters(recurse=False))


class ByBatch(ByLayers):
    """All examples in one batch, for models of which `reads_rows_apart`."""

    way = "as one batch"

    def ready(self, x: torch.Tensor) -> None:
        """Nothing must be known beforehand."""

    def _parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        outs: dict[str, GradientEdge] = {}
        into: dict[str, torch.Tensor] = {}
        versions: dict[str, int] = {}
        names = {id(module): name for name, module, *_ in self._known}

        def look(module: nn.Module, given: tuple[Any, ...], out: torch.Tensor) -> None:
            dimensions = _IMAGES.get(type(module))
            if len(given[0]) != len(x) or len(out) != len(x):
                raise UnknownUse
            if dimensions is not None and given[0].ndim != dimensions:
                raise UnknownUse
            inner = len(module.normalized_shape) if isinstance(module, nn.LayerNorm) else 1
            if given[0].ndim <= inner and not isinstance(module, nn.Embedding | nn.Sequential):
                raise UnknownUse
            name = names.get(id(module))
            if name is None:
                return
            if name in into:
                raise UnknownUse
            into[name] = given[0].detach()
            versions[name] = into[name]._version
            # The edge, not the tensor: what follows may change that in place.
            outs[name] = get_gradient_edge(out)

        with torch.enable_grad():
            handles = [m.register_forward_hook(look) for m in self.model.modules()]
            try:
                losses = self.loss(self.model(x), y)
            finally:
                for handle in handles:
                    handle.remove()
            if len(into) != len(self._known):
                raise UnknownUse
            if any(held._version != versions[name] for name, held in into.items()):
                raise UnknownUse
            found = torch.autograd.grad(losses.sum(), [outs[name] for name, *_ in self._known])
        return [
            kind(own, name, module, _as_rows(module, into[name]), _as_rows(module, out))
            for (name, module, kind, own), out in zip(self._known, found, strict=True)
        ]


def _as_rows(module: nn.Module, held: torch.Tensor) -> torch.Tensor:
    """With a dimension for the images of a row, of which there is one."""
    return held.unsqueeze(1) if isinstance(module, nn.GroupNorm) else held
