"""The gradient of each example of a batch, each example run as a batch of its own.

No example can meet another, forwards or backwards, whatever the model is. That is not seen on
trials, but a property of how rows are run:

`ByLayers`, `ByVmap`
    Under `torch.func.vmap` the model's code runs once, on a tensor that stands for one row. Batches
    are beneath it: neither their size nor any number is visible to Python, each operation is
    applied to each row, and hooks and functions with a backward of their own see a row's gradient
    alone.
`ByRows`
    One row after the other, for models that vmap cannot run.

`_rehearsal` chooses among them, and `_guard` sees to it that a run leaves nothing behind that the
next one could read, and that what is drawn by chance is each row's own.

Layer by layer (`_layers`) is faster and holds less: what went into each layer, and the gradient of
what came out, are enough. To have the latter a tensor of zeros is added to what each layer gives,
and the gradient is taken by that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from dither.errors import ArgumentError
from dither.learn.deep.rows._layers import LAYERS, FullGradient, GradientPart, LayerPart, LinearPart
from dither.learn.deep.rows._model import made_up_rows, trainable
from dither.learn.deep.state._guard import Guard

__all__ = ["ByLayers", "ByRows", "ByVmap", "GradientEngine", "UnknownUse", "cross_entropy"]

PerExampleLoss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def cross_entropy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The cross entropy of each example, shape (b,); of several labels each, their mean.

    A label that is not one of the classes is not an error, for an error would tell of it: it counts
    as nothing.
    """
    classes = output.shape[-1]
    known = (target >= 0) & (target < classes)
    # A label that is no class has no gradient: an error would tell of one row.
    wanted = torch.where(known, target, 0).long()
    logarithms = functional.log_softmax(output, dim=-1)
    each = -logarithms.gather(-1, wanted.unsqueeze(-1)).squeeze(-1)
    each = torch.where(known, each, 0.0)
    return each if each.ndim == 1 else each.flatten(1).mean(1)


class GradientEngine:
    """From a batch to the parts of its examples' gradients.

    Attributes
    ----------
    guard : Guard
        Its ``words`` are those that the model's draws come from.
    way : str
        How rows are run, in words.
    """

    way: ClassVar[str]

    def __init__(self, model: nn.Module, loss: PerExampleLoss) -> None:
        self.model, self.loss = model, loss
        self.parameters = trainable(model)
        self.guard = Guard(model=model, loss=loss)

    def parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        """One part a layer, for b >= 1 examples.

        Raises
        ------
        Changed
            The model or the loss changed something that it can reach; it is put back.
        """
        self.ready(x)
        with self.guard.around(x.device):
            return self._parts(x, y)

    def ready(self, x: torch.Tensor) -> None:
        """Find out what must be known of a model before rows like these are run."""

    def _parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        raise NotImplementedError

    def held(self, x: torch.Tensor, y: torch.Tensor) -> int:
        """About how many numbers an example of this kind needs at once: its gradients, and more."""
        return int(3 * sum(p.numel() for p in self.parameters.values()) + 4 * x[:1].numel())

    def _by_layer(self, made: dict[str, torch.Tensor]) -> list[GradientPart]:
        """The parts of gradients that were made as such."""
        layers: dict[str, list[str]] = {}
        for name in self.parameters:
            layers.setdefault(name.rpartition(".")[0], []).append(name)
        return [
            FullGradient(tuple(names), layer, [made[name] for name in names])
            for layer, names in layers.items()
        ]


class ByRows(GradientEngine):
    """One example after the other.

    Attributes
    ----------
    half : bool
        Whether the model was seen to compute in half precision. There the last digit is a 256th of
        a number, and which way it is rounded may follow from how many rows are multiplied at once:
        of such a model no other way of running its rows is taken.
    """

    half = False

    way = "one by one"

    def __init__(self, model: nn.Module, loss: PerExampleLoss) -> None:
        super().__init__(model, loss)
        self.guard.everywhere = True

    def _parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        made = {name: p.new_zeros((len(x), *p.shape)) for name, p in self.parameters.items()}
        for i in range(len(x)):
            if i:
                self.guard.next_row()
            # A copy: a slice of the batch would show all of it.
            row, wanted = x[i : i + 1].clone(), y[i : i + 1].clone()
            with torch.enable_grad():
                total = self.loss(self.model(row), wanted).sum()
            if not total.requires_grad:
                continue
            found = torch.autograd.grad(total, list(self.parameters.values()), allow_unused=True)
            for each, g in zip(made.values(), found, strict=True):
                if g is not None:
                    each[i] = g
        return self._by_layer(made)


class ByVmap(GradientEngine):
    """All examples at once, each as a batch of its own."""

    way = "by vmap"

    def __init__(self, model: nn.Module, loss: PerExampleLoss) -> None:
        super().__init__(model, loss)

        def one(values: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            found = self.loss(functional_call(model, values, (x.unsqueeze(0),)), y.unsqueeze(0))
            return found.reshape(())

        self._each = vmap(grad(one), in_dims=(None, 0, 0), randomness="different")

    def _parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        with torch.no_grad():
            made = self._each({name: p.detach() for name, p in self.parameters.items()}, x, y)
        return self._by_layer(made)


class ByLayers(GradientEngine):
    """All examples at once, each as a batch of its own, read off the layers' inputs and outputs.

    Raises
    ------
    ArgumentError
        Something that is trained belongs to no layer that is known in `_layers`.
    """

    way = "layer by layer"

    def __init__(self, model: nn.Module, loss: PerExampleLoss) -> None:
        super().__init__(model, loss)
        left = set(self.parameters)
        self._known: list[tuple[str, nn.Module, type[LayerPart], tuple[str, ...]]] = []
        for layer, module in model.named_modules():
            prefix = layer + "." if layer else ""
            own = [prefix + n for n, _ in module.named_parameters(recurse=False)]
            names = tuple(name for name in own if name in left)
            kind = next((kind for kind in LAYERS if kind.takes(module)), None)
            plain = all(name.rpartition(".")[2] in ("weight", "bias") for name in names)
            if names and kind is not None and plain:
                self._known.append((layer, module, kind, names))
                left -= set(names)
        if left:
            raise ArgumentError(
                f"ghost=True needs layers whose gradients are known: {sorted(left)[0]!r} is not of "
                "a linear layer, a convolution, an embedding or a layer of normalisation"
            )
        self._zeros: dict[str, torch.Tensor] | None = None
        self._each = vmap(
            grad(self._one, has_aux=True), in_dims=(None, 0, 0), randomness="different"
        )

    def ready(self, x: torch.Tensor) -> None:
        """What each layer gives is shaped as for a row that is made up."""
        if self._zeros is None:
            row = made_up_rows(x)[:1]
            with self.guard.around(x.device):
                self._zeros = self._shaped(row)

    def _parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        with torch.no_grad():
            outs, into = self._each(self._zeros, x, y)
        return [
            kind(names, name, module, into[name], outs[name])
            for name, module, kind, names in self._known
        ]

    def _one(
        self, zeros: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        """The loss of one row, with what went into each layer."""
        into: dict[str, torch.Tensor] = {}

        def note(name: str, given: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            if name in into:
                raise UnknownUse
            into[name] = given
            return out + zeros[name]

        found = self._hooked(note, x.unsqueeze(0), y.unsqueeze(0))
        if len(into) != len(self._known):
            raise UnknownUse
        return found.reshape(()), into

    def _shaped(self, row: torch.Tensor) -> dict[str, torch.Tensor]:
        """Zeros in the shape of what each layer gives for one row, which hold one number each."""
        shapes: dict[str, torch.Tensor] = {}

        def note(name: str, given: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
            shapes[name] = out.new_zeros(()).expand(out.shape)
            return out

        with torch.no_grad():
            self._hooked(note, row, None)
        return shapes

    def _hooked(
        self, note: Callable[..., torch.Tensor], x: torch.Tensor, y: torch.Tensor | None
    ) -> torch.Tensor:
        """The loss, or without targets the output, with a function that is shown each layer."""

        def hook(name: str) -> Callable[..., torch.Tensor]:
            return lambda module, given, out: note(name, given[0], out)

        handles = [m.register_forward_hook(hook(name)) for name, m, *_ in self._known]
        try:
            found = self.model(x)
            return found if y is None else self.loss(found, y)
        finally:
            for handle in handles:
                handle.remove()

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


class UnknownUse(Exception):
    """A layer was used in a way that its inputs and outputs do not tell."""
