"""Sums of clipped gradients: what leaves the examples, before the noise.

Exactly. The gradient g of an example is a list of floats, whatever they are; multiplied by its
factor it is cut towards 0 to an integer vector v, in units of clip/``UNIT``, which is no longer
than the clip: |v| <= ``UNIT``. *Proof.* Each layer of an example is allowed a length A, where
Σ A² <= UNIT² over the layers. The sum of squares of v's numbers, integers, is computed without
error, and where it is above A² that layer of v is set to 0. (Factors aim a 4096th below, so that
this hardly ever happens.) What is not finite makes all of the example's v 0. Integers whose
absolute values add up to at most 2**53 are added in doubles without error, in any order: so an
example adds v to the total and nothing else.

Of a linear layer with one position a gradient is the product of two vectors, of what came in (with
a 1 for the bias) and of what came out. Both are cut to integers, and v is their product: |v| is the
product of their lengths, and the total is one product of two matrices of integers. Of an embedding
only the entries are cut and added that the example read, each once; the others are 0.

What this rests on: that g depends on the example alone. In exact arithmetic it does, for each is
run as a batch of its own, on draws of its own (`_gradients`, `_draws`). The floats of g may differ
in their last digits with the other rows of a physical batch, where a library of linear algebra
takes another order for another number of rows; with ``physical=1`` each row is alone.

In floats. Sums of products of floats, added up as the device does. An example moves such a sum by
the clip and by what rounding adds, of which no bound is proved here.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from dither.errors import EngineError
from dither.learn.deep.rows._clipping import Adaptive, Clip
from dither.learn.deep.rows._gradients import GradientEngine
from dither.learn.deep.rows._layers import EmbeddingPart, GradientPart, LinearPart
from dither.learn.deep.state._guard import StateChanged

__all__ = ["ClippedSums"]

UNIT = 1 << 26
"""An example's integer vector is at most so long; its square is a double."""

_AIM = 1 - 2.0**-12
_PIECE = 1 << 16
"""Numbers that are turned into integers at once: they stay in a processor's memory."""


class ClippedSums:
    """The sum of clipped gradients of as many physical batches as there are.

    Parameters
    ----------
    engine : GradientEngine
    clip : Clip
        May be exchanged between steps.
    exact : bool

    Attributes
    ----------
    size : int
        How many numbers are trained.
    total : Tensor, shape (size,)
        Exact: doubles that are integers, in units. Else floats, in the gradients' own scale.
    rows, within, nonfinite : int
        How many examples were added, how many of them with a gradient within the clip, and how many
        with one that is not finite. They are exact numbers about the rows.
    """

    def __init__(self, engine: GradientEngine, clip: Clip, *, exact: bool) -> None:
        self.engine, self.clip, self.exact = engine, clip, exact
        self._places: dict[str, slice] = {}
        self.size = 0
        for name, parameter in engine.parameters.items():
            self._places[name] = slice(self.size, self.size + parameter.numel())
            self.size += parameter.numel()
        device = next(iter(engine.parameters.values())).device
        kind = torch.float64 if exact else torch.float32
        self.total = torch.zeros(self.size, dtype=kind, device=device)
        self.start()

    def start(self) -> None:
        """Forget what was added."""
        self.total.zero_()
        self.rows = self.within = self.nonfinite = 0

    def add(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Add the clipped gradients of one physical batch.

        Raises
        ------
        EngineError
            The model or the loss failed on these rows; the message is always the same.
        """
        if not len(x):
            return
        try:
            parts = self.engine.parts(x, y)
        except StateChanged:
            raise EngineError(
                "the model or the loss changed what it can reach while it ran, which the steps "
                "before have not shown: it is put back, for it may hold what was seen of rows. "
                "What was charged stays charged"
            ) from None
        except Exception:
            raise EngineError(
                "the model or the loss failed on some rows, which the steps before have not shown; "
                "what was charged stays charged"
            ) from None
        self.rows += len(x)
        # Whatever a model computes in, lengths and sums are of float32 or better.
        with torch.no_grad(), _single(x.device):
            self._add(parts)

    def _add(self, parts: list[GradientPart]) -> None:
        for part in parts:
            part.whole = self.exact
        lengths = _lengths(parts)
        finite = lengths.isfinite().all(1)
        if not bool(finite.all()):
            self.nonfinite += int((~finite).sum())
            for part in parts:
                part.kept(finite)
            lengths = torch.where(finite[:, None], _lengths(parts), 0.0)
        if isinstance(self.clip, Adaptive):
            whole = torch.linalg.vector_norm(lengths, dim=1)
            self.within += int((finite & (whole <= self.clip.norm)).sum())
        factors = self.clip.factors(lengths)
        if self.exact:
            self._add_integers(parts, lengths, factors)
            return
        for part, factor in zip(parts, factors.unbind(1), strict=True):
            for name, found in zip(part.names, part.summed(factor), strict=True):
                self.total[self._places[name]] += found.flatten()

    def _add_integers(
        self, parts: list[GradientPart], lengths: torch.Tensor, factors: torch.Tensor
    ) -> None:
        scale = factors.double() * (_AIM * UNIT / self.clip.norm)
        # Room for what the rounding of lengths and of products adds.
        allowed = scale * lengths.double() * (1 + 2.0**-13) + UNIT * 2.0**-20
        # Rounded up, for squares of the layers to add up to UNIT² at most, whatever doubles did.
        together = torch.linalg.vector_norm(allowed, dim=1, keepdim=True) * (1 + 2.0**-40)
        allowed = allowed * (UNIT / together).clamp(max=1.0)
        for i, part in enumerate(parts):
            # A sum of squares of integers is at most A² just where it is at most the floor.
            given = scale[:, i], (allowed[:, i] ** 2).floor()
            if type(part) is LinearPart and part.single:
                found = _of_products(part, *given)
            elif type(part) is EmbeddingPart:
                found = _of_entries(part, *given)
            else:
                found = _of_gradients(part, *given)
            for name, sums in zip(part.names, found, strict=True):
                self.total[self._places[name]] += sums.flatten()

    def split(self, vector: torch.Tensor) -> dict[str, torch.Tensor]:
        """The pieces of a vector of shape (size,), in the shapes of the parameters."""
        return {
            name: vector[self._places[name]].view(parameter.shape)
            for name, parameter in self.engine.parameters.items()
        }

    def set_gradients(self, vector: torch.Tensor) -> None:
        """Let the parameters' gradients be the pieces of a vector."""
        for name, piece in self.split(vector).items():
            self.engine.parameters[name].grad = piece


def _single(device: torch.device) -> Any:
    """No autocast, where the device has it."""
    if not torch.amp.is_autocast_available(device.type):
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


def _lengths(parts: list[GradientPart]) -> torch.Tensor:
    return torch.stack([part.squares().sqrt() for part in parts], dim=1)


def _of_gradients(
    part: GradientPart, scale: torch.Tensor, most: torch.Tensor
) -> list[torch.Tensor]:
    """Sums of integer vectors made of gradients; ``most`` are their largest squares, shape (b,)."""
    found: list[torch.Tensor] = []
    start, step = 0, 1
    while start < len(part):
        rows = slice(start, start + step)
        made = [torch.mul(g.flatten(1), scale[rows, None]).trunc_() for g in part.gradients(rows)]
        square = torch.stack([torch.linalg.vecdot(v, v) for v in made]).sum(0)
        # Sums of integers are exact up to 2**53, and what is rounded beyond it is beyond ``most``.
        # Asked this way about, NaN is left out, too.
        left = ~(square <= most[rows])
        if bool(left.any()):
            for v in made:
                v[left] = 0.0
        sums = [v.sum(0) for v in made]
        found = [a + b for a, b in zip(found, sums, strict=True)] if found else sums
        start += step
        step = max(1, _PIECE // sum(v.shape[1] for v in made))
    return found


def _of_products(part: LinearPart, scale: torch.Tensor, most: torch.Tensor) -> list[torch.Tensor]:
    """The same for gradients that are products of two vectors each."""
    a, e = part.products()
    # Both are to be equally long.
    lengths = [torch.linalg.vector_norm(v, dim=1).clamp(min=1e-30) for v in (a, e)]
    # A vector of zeros stays one, without a division by 0.
    reach = (scale * lengths[1] / lengths[0]).sqrt()[:, None].clamp(min=1e-30)
    into = (a * reach).trunc_()
    out = (e * (scale[:, None] / reach)).trunc_()
    square = (into * into).sum(1) * (out * out).sum(1)
    out[~(square <= most)] = 0.0
    total = out.T @ into
    return [total[:, :-1], total[:, -1]] if part.bias else [total]


def _of_entries(part: EmbeddingPart, scale: torch.Tensor, most: torch.Tensor) -> list[torch.Tensor]:
    """The same for tables of which an example reads a few entries."""
    places, e = part.entries()
    v = (e * scale[:, None, None]).trunc_()
    flat = v.flatten(1)
    # As in `_of_gradients`, for an entry of the table is in v once.
    v[~(torch.linalg.vecdot(flat, flat) <= most)] = 0.0
    table = v.new_zeros(part.module.num_embeddings, v.shape[2])
    return [table.index_add_(0, places.flatten(), v.flatten(0, 1))]
