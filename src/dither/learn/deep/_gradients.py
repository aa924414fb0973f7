"""The gradient of each example of a batch: by `torch.func.vmap`, or layer by layer.

By vmap any model will do: each example is run as a batch of its own, so that it cannot meet
another. Layer by layer (`_layers`) is faster and holds less: one pass forwards and one backwards
over the batch, which give what went into each layer and the gradients of what came out. It is
taken where all that is trained belongs to layers that are known there, each used once, and where
made-up rows give the same gradients as torch does by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.autograd.graph import GradientEdge, get_gradient_edge
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from dither.errors import ArgumentError
from dither.learn.deep._layers import LAYERS, GradientPart, LayerPart, LinearPart, Whole
from dither.learn.deep._model import check_loss_alone, trainable

__all__ = ["ByLayers", "ByVmap", "GradientEngine", "cross_entropy", "engine_for"]

PerExampleLoss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def cross_entropy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The cross entropy of each example, shape (b,); of several labels each, their mean.

    A label that is not one of the classes is not an error, for an error would tell of it: it counts
    as nothing.
    """
    classes = output.shape[-1]
    known = (target >= 0) & (target < classes)
    wanted = torch.where(known, target, 0).long()
    logarithms = functional.log_softmax(output, dim=-1)
    each = -logarithms.gather(-1, wanted.unsqueeze(-1)).squeeze(-1)
    each = torch.where(known, each, 0.0)
    return each if each.ndim == 1 else each.flatten(1).mean(1)


class GradientEngine:
    """From a batch to the parts of its examples' gradients."""

    def __init__(self, model: nn.Module, loss: PerExampleLoss) -> None:
        self.model, self.loss = model, loss
        self.parameters = trainable(model)

    def parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        """One part a layer, for b >= 1 examples."""
        raise NotImplementedError

    def held(self, x: torch.Tensor, y: torch.Tensor) -> int:
        """About how many numbers an example of this kind needs at once."""
        raise NotImplementedError


class ByVmap(GradientEngine):
    """Each example as a batch of its own."""

    def __init__(self, model: nn.Module, loss: PerExampleLoss) -> None:
        super().__init__(model, loss)

        def one(values: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            found = self.loss(functional_call(model, values, (x.unsqueeze(0),)), y.unsqueeze(0))
            return found.reshape(())

        self._each = vmap(grad(one), in_dims=(None, 0, 0), randomness="different")
        self._layers: dict[str, list[str]] = {}
        for name in self.parameters:
            self._layers.setdefault(name.rpartition(".")[0], []).append(name)

    def parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        """See `GradientEngine.parts`."""
        made = self._each({name: p.detach() for name, p in self.parameters.items()}, x, y)
        return [
            Whole(tuple(names), layer, [made[name] for name in names])
            for layer, names in self._layers.items()
        ]

    def held(self, x: torch.Tensor, y: torch.Tensor) -> int:
        """All gradients, and what clipping makes of them."""
        return int(3 * sum(p.numel() for p in self.parameters.values()) + 4 * x[:1].numel())


class ByLayers(GradientEngine):
    """All examples together, each read off the layers' inputs and outputs.

    Raises
    ------
    ArgumentError
        Something that is trained belongs to no layer that is known in `_layers`.
    """

    def __init__(self, model: nn.Module, loss: PerExampleLoss) -> None:
        super().__init__(model, loss)
        left = set(self.parameters)
        self._known: list[tuple[str, nn.Module, type[LayerPart], tuple[str, ...]]] = []
        for layer, module in model.named_modules():
            prefix = layer + "." if layer else ""
            own = [prefix + n for n, _ in module.named_parameters(recurse=False)]
            names = tuple(name for name in own if name in left)
            kind = next((kind for kind in LAYERS if kind.takes(module)), None)
            if names and kind is not None:
                self._known.append((layer, module, kind, names))
                left -= set(names)
        if left:
            raise ArgumentError(
                f"ghost=True needs layers whose gradients are known: {sorted(left)[0]!r} is not of "
                "a linear layer, a convolution, an embedding or a layer of normalisation"
            )

    def parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        """See `GradientEngine.parts`."""
        seen: dict[str, tuple[torch.Tensor, int, GradientEdge]] = {}
        uses = 0

        def hook(name: str) -> Callable[..., None]:
            def note(module: nn.Module, given: tuple[Any, ...], out: torch.Tensor) -> None:
                nonlocal uses
                uses += 1
                # The edge, not the tensor: what follows may change that in place.
                into = given[0].detach()
                seen[name] = (into, into._version, get_gradient_edge(out))

            return note

        handles = [m.register_forward_hook(hook(name)) for name, m, _, _ in self._known]
        try:
            losses = self.loss(self.model(x), y)
        finally:
            for handle in handles:
                handle.remove()
        changed = any(into._version != version for into, version, _ in seen.values())
        if uses != len(self._known) or len(seen) != uses or changed:
            raise _Unknown
        edges = [seen[name][2] for name, *_ in self._known]
        outs = torch.autograd.grad(losses.sum(), edges)
        return [
            kind(names, name, module, seen[name][0], out)
            for (name, module, kind, names), out in zip(self._known, outs, strict=True)
        ]

    def held(self, x: torch.Tensor, y: torch.Tensor) -> int:
        """What layers hold, and their parts, but for those that are products of two vectors."""
        parts = self.parts(x, y)
        between = sum(p.into.numel() + p.out.numel() for p in parts if isinstance(p, LayerPart))
        sizes = [
            0
            if isinstance(p, LinearPart) and p.single
            else sum(self.parameters[name].numel() for name in p.names)
            for p in parts
        ]
        return int(4 * between // len(x) + 2 * sum(sizes))


class _Unknown(Exception):
    """A layer was used in a way that its inputs and outputs do not tell."""


def engine_for(
    model: nn.Module,
    loss: PerExampleLoss,
    ghost: bool | None,
    x: torch.Tensor,
    y: torch.Tensor,
) -> GradientEngine:
    """The engine that was asked for, or the one that fits.

    Layer by layer a row of a loss that mixes rows would be in the gradients of others. It is taken
    only of losses that were seen not to do so; of others each row is run by itself.

    Parameters
    ----------
    ghost : bool or None
        Whether to go layer by layer; None where that is possible.
    x, y : Tensor
        Two made-up rows.

    Raises
    ------
    ArgumentError
        The loss is not one number for each example, or depends on other examples; or layer by
        layer was asked for and is not possible.
    """
    with torch.no_grad():
        try:
            given = model(x)
            made = loss(given, y)
        except Exception as error:
            raise ArgumentError(
                f"loss fails on made-up rows: {type(error).__name__}: {error}"
            ) from error
    if not isinstance(made, torch.Tensor) or made.shape != (len(x),):
        raise ArgumentError(
            "loss must give one number for each example, shape (b,): in torch, reduction='none'"
        )
    if not check_loss_alone(loss, model, x, y):
        return _each_alone(model, loss, ghost, x, y)
    if ghost is False:
        return ByVmap(model, loss)
    try:
        found = ByLayers(model, loss)
        if not _agrees(found, x, y):
            raise ArgumentError(
                "ghost=True needs layers that are used once each, and whose parameters nothing "
                "else reads: leave it out"
            )
    except ArgumentError:
        if ghost:
            raise
        return ByVmap(model, loss)
    return found


def _each_alone(
    model: nn.Module, loss: PerExampleLoss, ghost: bool | None, x: torch.Tensor, y: torch.Tensor
) -> GradientEngine:
    """By vmap, where no row meets another, whatever the loss does with several."""
    if ghost:
        raise ArgumentError(
            "ghost=True needs a loss that was seen to treat each row by itself, and this one fails "
            "on outputs and targets that are made up: let it take any numbers, with targets of 0 "
            "and 1 and batches of any size, or leave ghost out"
        )
    found = ByVmap(model, loss)
    try:
        found.parts(x, y)
    except Exception as error:
        raise ArgumentError(
            "loss fails on made-up outputs and targets, so that nobody sees whether it mixes rows, "
            "and on a row by itself: let it take any numbers, targets of 0 and 1 among them, in "
            f"batches of any size, without a branch on values; {type(error).__name__}: {error}"
        ) from error
    return found


def _agrees(engine: ByLayers, x: torch.Tensor, y: torch.Tensor) -> bool:
    """Whether the parts add up to what torch finds by itself."""
    devices = [x.device] if x.device.type == "cuda" else []
    try:
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(0)
            parts = engine.parts(x, y)
            torch.manual_seed(0)
            total = engine.loss(engine.model(x), y).sum()
    except (_Unknown, RuntimeError, TypeError, AttributeError):
        return False
    wanted = dict(
        zip(
            engine.parameters,
            torch.autograd.grad(total, list(engine.parameters.values()), allow_unused=True),
            strict=True,
        )
    )
    ones = x.new_ones(len(x), dtype=torch.float32)
    for part in parts:
        for name, found in zip(part.names, part.summed(ones), strict=True):
            true = wanted[name]
            if true is None or not torch.allclose(found, true, rtol=1e-3, atol=1e-5):
                return False
    return True
