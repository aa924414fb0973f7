"""The gradient of each example, layer by layer, without holding the gradients of all layers.

A layer's part of an example's gradient follows from what went into the layer, a, and from the
gradient of the example's loss by what came out, e: of a linear layer it is the sum over positions t
of e_t a_tᵀ. Its squared length needs no more than inner products ("ghost norms"),

    |Σ_t e_t a_tᵀ|² = Σ_{s,t} (e_s·e_t)(a_s·a_t),

and the sum over examples, each times a factor, is one product of matrices. So only inputs and
outputs of layers are held, which a batch holds anyway. Where positions are many and the layer is
small the part itself is shorter, and is made, used and forgotten.

What goes in and comes out is of shape (b, images, ...): each row is run as a batch of its own,
which a model may make a batch of several, as of two views of one person. They are positions, too.

Source. Goodfellow, "Efficient per-example gradient computations", 2015; Li, Tramèr, Liang and
Hashimoto, ICLR 2022 (positions); Bu, Mao and Xu, NeurIPS 2022 (convolutions, and the choice).
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn import functional

__all__ = ["LAYERS", "EmbeddingPart", "FullGradient", "GradientPart"]


class GradientPart:
    """One layer's part of the gradients of a batch of b examples.

    ``names`` are its parameters; of each of them, in this order, the methods give one tensor.
    """

    whole = False
    """Whether the gradients themselves will be asked for, and not only their lengths and sums."""

    def __init__(self, names: tuple[str, ...], layer: str) -> None:
        self.names, self.layer = names, layer

    def __len__(self) -> int:
        """b."""
        raise NotImplementedError

    def squares(self) -> torch.Tensor:
        """Squared lengths, shape (b,)."""
        found = [torch.linalg.vector_norm(g.flatten(1), dim=1) for g in self.gradients()]
        return torch.stack(found).square().sum(0)

    def gradients(self, rows: slice = slice(None)) -> list[torch.Tensor]:
        """The gradients of some examples themselves, each of shape (b, ...)."""
        raise NotImplementedError

    def summed(self, factors: torch.Tensor) -> list[torch.Tensor]:
        """Sums over examples, each times its factor, shape (b,)."""
        return [torch.mv(g.flatten(1).T, factors).view(g.shape[1:]) for g in self.gradients()]

    def kept(self, rows: torch.Tensor) -> None:
        """Set the gradients of the other examples to 0; ``rows`` are bools, shape (b,)."""
        raise NotImplementedError


class FullGradient(GradientPart):
    """Gradients that were made as such."""

    def __init__(self, names: tuple[str, ...], layer: str, made: list[torch.Tensor]) -> None:
        super().__init__(names, layer)
        self.made = made

    def __len__(self) -> int:
        return len(self.made[0])

    def gradients(self, rows: slice = slice(None)) -> list[torch.Tensor]:
        """As they were given."""
        return [g[rows] for g in self.made]

    def kept(self, rows: torch.Tensor) -> None:
        """See `GradientPart.kept`."""
        for g in self.made:
            g[~rows] = 0.0


class LayerPart(GradientPart):
    """What a layer's inputs and the gradients of its outputs say."""

    kinds: ClassVar[tuple[type, ...]]

    def __init__(
        self, names: tuple[str, ...], layer: str, module: Any, into: torch.Tensor, out: torch.Tensor
    ) -> None:
        super().__init__(names, layer)
        own = {name.rpartition(".")[2] for name in names}
        self.module, self.into, self.out = module, into, out
        self.weight, self.bias = "weight" in own, "bias" in own

    def __len__(self) -> int:
        return len(self.out)

    def kept(self, rows: torch.Tensor) -> None:
        """See `GradientPart.kept`: a gradient is 0 where what came out does not matter."""
        keep = rows.view(-1, *(1,) * (self.out.ndim - 1))
        self.out = torch.where(keep, self.out, 0.0)
        if self.into.dtype.is_floating_point:
            keep = rows.view(-1, *(1,) * (self.into.ndim - 1))
            self.into = torch.where(keep, self.into, 0.0)

    @classmethod
    def takes(cls, module: nn.Module) -> bool:
        """Whether this module's gradients are known here."""
        return type(module) in cls.kinds


class LinearPart(LayerPart):
    """Of a linear layer: rows of shape (b, positions, width)."""

    kinds: ClassVar[tuple[type, ...]] = (nn.Linear,)
    made: torch.Tensor | None = None

    def _rows(self, rows: slice = slice(None)) -> tuple[torch.Tensor, torch.Tensor]:
        into, out = self.into[rows], self.out[rows]
        width = into.shape[-1], out.shape[-1]
        return into.reshape(len(into), -1, width[0]), out.reshape(len(out), -1, width[1])

    @property
    def single(self) -> bool:
        """Whether there is one position, so that gradients are products of two vectors."""
        return self.weight and self.into[0].numel() == self.into.shape[-1]

    def products(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Those vectors, as doubles: inputs, with a 1 for the bias, and gradients of outputs."""
        a, e = (rows[:, 0].double() for rows in self._rows())
        return (functional.pad(a, (0, 1), value=1.0) if self.bias else a), e

    def squares(self) -> torch.Tensor:
        """By inner products, or by the part itself where that is shorter."""
        a, e = self._rows()
        b, t, width = a.shape
        found = e.new_zeros(b)
        if self.weight:
            if t == 1:
                found = a[:, 0].square().sum(1) * e[:, 0].square().sum(1)
            elif t * t <= width * e.shape[2] and not self.whole:
                found = ((a @ a.mT) * (e @ e.mT)).sum((1, 2)).clamp(min=0)
            else:
                self.made = e.mT @ a
                found = torch.linalg.vector_norm(self.made.flatten(1), dim=1).square()
        if self.bias:
            found = found + e.sum(1).square().sum(1)
        return found

    def kept(self, rows: torch.Tensor) -> None:
        """See `GradientPart.kept`."""
        super().kept(rows)
        self.made = None

    def gradients(self, rows: slice = slice(None)) -> list[torch.Tensor]:
        """Products of inputs and outputs."""
        if self.made is not None:
            found, e = [self.made[rows]], self.out[rows]
            return found + ([self._over_positions(e)] if self.bias else [])
        a, e = self._rows(rows)
        found = [e.mT @ a] if self.weight else []
        return found + ([e.sum(1)] if self.bias else [])

    def _over_positions(self, out: torch.Tensor) -> torch.Tensor:
        return out.reshape(len(out), -1, out.shape[-1]).sum(1)

    def summed(self, factors: torch.Tensor) -> list[torch.Tensor]:
        """One product of matrices for all examples."""
        if self.made is not None:
            found = [torch.mv(self.made.flatten(1).T, factors).view(self.made.shape[1:])]
            return found + ([self._over_positions(self.out).T @ factors] if self.bias else [])
        a, e = self._rows()
        e = e * factors[:, None, None]
        found = [e.flatten(0, 1).T @ a.flatten(0, 1)] if self.weight else []
        return found + ([e.sum((0, 1))] if self.bias else [])


class ConvolutionPart(LinearPart):
    """Of a convolution: a linear layer whose positions are the places of its kernel."""

    kinds = (nn.Conv1d, nn.Conv2d)
    _unfolded: torch.Tensor | None = None

    @classmethod
    def takes(cls, module: nn.Module) -> bool:
        """All but those in groups, and those padded with other values than 0."""
        return (
            isinstance(module, nn.Conv1d | nn.Conv2d)
            and type(module) in cls.kinds
            and module.groups == 1
            and module.padding_mode == "zeros"
            and not isinstance(module.padding, str)
        )

    def _rows(self, rows: slice = slice(None)) -> tuple[torch.Tensor, torch.Tensor]:
        if self._unfolded is None:
            self._unfolded = self._unfold()
        out = self._by_image(self.out[rows]).flatten(3).mT
        return self._unfolded[rows], out.flatten(1, 2)

    def _by_image(self, held: torch.Tensor) -> torch.Tensor:
        """Shape (b, images, channels, ...): a row may have several, or one without a dimension."""
        spatial = 1 if isinstance(self.module, nn.Conv1d) else 2
        return held if held.ndim == spatial + 3 else held.unsqueeze(1)

    def _unfold(self) -> torch.Tensor:
        m, into = self.module, self._by_image(self.into).flatten(0, 1)
        if isinstance(m, nn.Conv1d):
            into = into.unsqueeze(2)
        two = [(1, *n)[-2:] for n in (m.kernel_size, m.dilation, m.stride)]
        padding = (0, *m.padding)[-2:]
        found = functional.unfold(into, two[0], dilation=two[1], padding=padding, stride=two[2])
        return torch.as_tensor(found.mT.reshape(len(self.into), -1, found.shape[1]))

    def kept(self, rows: torch.Tensor) -> None:
        """See `GradientPart.kept`."""
        super().kept(rows)
        self._unfolded = None

    def gradients(self, rows: slice = slice(None)) -> list[torch.Tensor]:
        """In the shape of the kernel."""
        return [
            g.reshape(len(g), *p.shape)
            for g, p in zip(super().gradients(rows), self._parameters(), strict=True)
        ]

    def summed(self, factors: torch.Tensor) -> list[torch.Tensor]:
        """In the shape of the kernel."""
        return [
            g.reshape(p.shape)
            for g, p in zip(super().summed(factors), self._parameters(), strict=True)
        ]

    def _over_positions(self, out: torch.Tensor) -> torch.Tensor:
        return self._by_image(out).flatten(3).sum((1, 3))

    def _parameters(self) -> list[torch.Tensor]:
        own = [self.module.weight] if self.weight else []
        return own + ([self.module.bias] if self.bias else [])


class EmbeddingPart(LayerPart):
    """Of an embedding: inputs are places in its table."""

    kinds = (nn.Embedding,)

    @classmethod
    def takes(cls, module: nn.Module) -> bool:
        """All but those that change their table when it is read, or look at the batch's counts."""
        return (
            type(module) is nn.Embedding
            and module.max_norm is None
            and not module.scale_grad_by_freq
            and not module.sparse
        )

    def _rows(self, rows: slice = slice(None)) -> tuple[torch.Tensor, torch.Tensor]:
        into, out = self.into[rows], self.out[rows]
        places, e = into.reshape(len(into), -1), out.reshape(len(out), -1, out.shape[-1])
        if self.module.padding_idx is not None:
            e = torch.where((places == self.module.padding_idx)[:, :, None], 0.0, e)
        return places, e

    def squares(self) -> torch.Tensor:
        """Positions that read one place add up there."""
        places, e = self._rows()
        same = places[:, :, None] == places[:, None, :]
        return torch.where(same, e @ e.mT, 0.0).sum((1, 2)).clamp(min=0)

    def entries(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The entries of each example's table that are not 0, without the table.

        Returns
        -------
        places : Tensor, shape (b, positions)
        e : Tensor, shape (b, positions, width)
            Of positions that read one place their sum is at the first of them, and 0 at the others:
            each entry of the table is told once, so that lengths of ``e`` are those of gradients.
        """
        places, e = self._rows()
        positions = torch.arange(places.shape[1], device=places.device)
        same = places[:, :, None] == places[:, None, :]
        first = torch.where(same, positions, places.shape[1]).amin(2)
        return places, torch.zeros_like(e).scatter_add_(1, first[:, :, None].expand(e.shape), e)

    def gradients(self, rows: slice = slice(None)) -> list[torch.Tensor]:
        """One table for each example."""
        places, e = self._rows(rows)
        b, width = len(places), e.shape[2]
        table = e.new_zeros(b, self.module.num_embeddings, width)
        return [table.scatter_add_(1, places[:, :, None].expand(-1, -1, width), e)]

    def summed(self, factors: torch.Tensor) -> list[torch.Tensor]:
        """One table for all."""
        places, e = self._rows()
        table = e.new_zeros(self.module.num_embeddings, e.shape[2])
        return [table.index_add_(0, places.flatten(), (e * factors[:, None, None]).flatten(0, 1))]


class NormPart(LayerPart):
    """Of a layer that scales and shifts what it normalised within each row."""

    kinds = (nn.LayerNorm, nn.GroupNorm)

    def gradients(self, rows: slice = slice(None)) -> list[torch.Tensor]:
        """Sums over positions of normalised inputs times the gradients of outputs."""
        m, into, out = self.module, self.into[rows], self.out[rows]
        if isinstance(m, nn.LayerNorm):
            normal = functional.layer_norm(into, m.normalized_shape, eps=m.eps)
            shape = (len(out), -1, *m.normalized_shape)
            scale, shift = (normal * out).reshape(shape).sum(1), out.reshape(shape).sum(1)
        else:
            # Of each row a batch of some images.
            normal = functional.group_norm(into.flatten(0, 1), m.num_groups, eps=m.eps)
            shape = (*out.shape[:3], -1)
            both = normal.reshape(out.shape) * out
            scale, shift = both.reshape(shape).sum((1, 3)), out.reshape(shape).sum((1, 3))
        return ([scale] if self.weight else []) + ([shift] if self.bias else [])


LAYERS: tuple[type[LayerPart], ...] = (LinearPart, ConvolutionPart, EmbeddingPart, NormPart)
