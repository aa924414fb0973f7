"""Fine-tuning: few parameters are trained, and those alone are clipped and noised.

*The last layer.* All else is frozen.

*Low-rank adapters.* A linear layer with weights W, of shape (m, d), is frozen and gets a sum beside
it: ``W·x + b + (scale/rank)·Up·(Down·x)``, with ``Down`` of shape (rank, d), random, and ``Up`` of
shape (m, rank), zero at first, so that the model is what it was. Trained are rank·(m + d) numbers
in the place of m·d. Both are linear layers without biases, so that gradients are read off them as
off any other layer (ghost clipping included).

Why it pays under noise: a gradient is clipped to one norm whatever its length, and each of its
numbers gets noise of one size, so that a longer gradient drowns in more noise.

*What this assumes.* That the frozen parameters are public, or were trained on other people's rows:
they are published as they are.

Source. Hu, Shen, Wallis, Allen-Zhu, Li, Wang, Wang and Chen, "LoRA: low-rank adaptation of large
language models", 2022; Yu et al., "Differentially private fine-tuning of language models", 2022.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import torch
from torch import nn

from dither import _checks as check
from dither.errors import ArgumentError, nearest

__all__ = ["LowRank", "add_adapters", "freeze", "merge_adapters"]

Model = TypeVar("Model", bound=nn.Module)


class LowRank(nn.Module):  # type: ignore[misc]
    """A frozen linear layer, and a product of two small ones beside it.

    Parameters
    ----------
    layer : torch.nn.Linear
    rank : int
    scale : float
        What the product is multiplied by, over rank.
    """

    def __init__(self, layer: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(False)
        like = {"device": layer.weight.device, "dtype": layer.weight.dtype}
        self.down = nn.Linear(layer.in_features, rank, bias=False, **like)
        self.up = nn.Linear(rank, layer.out_features, bias=False, **like)
        self.scale = scale / rank
        nn.init.kaiming_uniform_(self.down.weight, a=math.sqrt(5))
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The layer's output, and the product's."""
        return self.layer(x) + self.scale * self.up(self.down(x))

    def merged(self) -> nn.Linear:
        """One linear layer that gives the same."""
        with torch.no_grad():
            self.layer.weight += self.scale * (self.up.weight @ self.down.weight)
        return self.layer


def freeze(model: Model, *, but: str | Sequence[str] | None = None) -> Model:
    """Let nothing be trained but some layers: the last one that has parameters, or those named.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place.
    but : str or sequence of str, optional
        Names of layers, as ``model.named_modules()`` has them; what is in them is trained.

    Returns
    -------
    torch.nn.Module
        The model.

    Raises
    ------
    ArgumentError
        There is no such layer, or none with parameters.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> [name for name, p in freeze(model).named_parameters() if p.requires_grad]
    ['2.weight', '2.bias']
    """
    layers = {name: layer for name, layer in _layers(model).items() if name}
    own = [name for name, layer in layers.items() if list(layer.parameters(recurse=False))]
    if not own:
        raise ArgumentError("model must have layers with parameters")
    wanted = own[-1:] if but is None else [but] if isinstance(but, str) else list(but)
    for name in wanted:
        if name not in layers:
            raise ArgumentError(
                f"but: there is no layer {name!r}{nearest(str(name), list(layers))}"
            )
        if not list(layers[name].parameters()):
            raise ArgumentError(f"but: layer {name!r} has no parameters")
    model.requires_grad_(False)
    for name in wanted:
        layers[name].requires_grad_(True)
    return model


def add_adapters(
    model: Model,
    rank: int = 4,
    *,
    scale: float = 8.0,
    layers: Sequence[str] | None = None,
    train: str | Sequence[str] = (),
) -> Model:
    """Freeze a model and give its linear layers low-rank adapters, which alone are trained.

    Parameters
    ----------
    model : torch.nn.Module
        Changed in place; it gives what it gave, until it is trained.
    rank : int
        At least 1.
    scale : float
        Above 0: a larger one makes an adapter's steps larger.
    layers : sequence of str, optional
        Names of linear layers; by default all.
    train : str or sequence of str
        Names of layers that are trained themselves, such as a new last one; they get no adapter.

    Returns
    -------
    torch.nn.Module
        The model; an optimiser must be made afterwards.

    Raises
    ------
    ArgumentError
        There is no such layer, one is not linear, or none is left.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> add_adapters(model, 1, train="2")[0].up.weight.shape
    torch.Size([4, 1])
    >>> [name for name, p in model.named_parameters() if p.requires_grad]
    ['0.down.weight', '0.up.weight', '2.weight', '2.bias']
    """
    rank = check.whole("rank", rank, 1)
    scale = check.number("scale", scale, above=0)
    itself = [train] if isinstance(train, str) else list(train)
    found = _layers(model)
    names = [n for n, layer in found.items() if n and isinstance(layer, nn.Linear)]
    chosen = [n for n in names if n not in itself] if layers is None else list(layers)
    for name in (*chosen, *itself):
        if name not in found or not name:
            raise ArgumentError(
                f"layers: there is no layer {name!r}{nearest(str(name), list(found))}"
            )
    for name in chosen:
        if not isinstance(found[name], nn.Linear) or name in itself:
            raise ArgumentError(
                f"layers: {name!r} must be a linear layer that is not trained itself"
            )
    if not chosen:
        raise ArgumentError("model must have a linear layer, inside another, for an adapter")
    model.requires_grad_(False)
    for name in chosen:
        layer = found[name]
        assert isinstance(layer, nn.Linear)
        _put(model, name, LowRank(layer, rank, scale))
    for name in itself:
        found[name].requires_grad_(True)
    return model


def merge_adapters(model: Model) -> Model:
    """Make one linear layer of each with its adapter: the same outputs, the old shape.

    Returns
    -------
    torch.nn.Module
        The model, changed in place.

    Examples
    --------
    >>> model = add_adapters(nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2)))
    >>> [type(layer).__name__ for layer in merge_adapters(model)]
    ['Linear', 'Linear']
    """
    for name, layer in _layers(model).items():
        if isinstance(layer, LowRank):
            _put(model, name, layer.merged())
    return model


def _layers(model: nn.Module) -> dict[str, nn.Module]:
    if not isinstance(model, nn.Module):
        raise ArgumentError("model must be a torch.nn.Module")
    return dict(model.named_modules())


def _put(model: nn.Module, name: str, layer: nn.Module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, layer)
