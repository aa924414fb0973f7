"""A first layer that takes the mean of the rows off them, found with noise before the first step.

The gradient of a first layer is a product of what comes out and of the row. What all rows share is
in every gradient alike: it takes its part of the length that clipping leaves and of the noise, and
tells no row from another. Where the mean is known to the public, `Centre` takes it; where it is
not, the run finds it once, before its first step, with noise. That costs about a hundredth of the
run's squared loss, and is a part of its loss like the rest.

*How.* A row is the one gradient of a step of its own: it is clipped to ``norm``, added up and given
noise as gradients are, by `_sums` and `_noise`, and the noisy sum is divided by the public number
of rows. *Guarantee.* Adding or removing a row moves the sum by a vector no longer than ``norm``, so
that with the noise multiplier z it is ``privacy.gaussian(z)``; replacing one moves it by twice as
much, ``privacy.gaussian(z / 2)``. With ``exact`` the proofs of `_sums` and `_noise` hold of it word
for word. All later steps may look at the mean as at any earlier step: it composes with them, and
what follows from the mean alone is free.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from dither import _checks as check
from dither._format import number_text
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.learn.deep._charge import counting_noise
from dither.learn.deep._sampling import one_step, parts
from dither.learn.deep.noise._noise import noisy
from dither.learn.deep.rows._clipping import Flat
from dither.learn.deep.rows._gradients import GradientEngine
from dither.learn.deep.rows._layers import FullGradient, GradientPart
from dither.learn.deep.rows._model import made_up_rows
from dither.learn.deep.rows._sums import ClippedSums
from dither.numeric import Words
from dither.privacy import Loss, Neighbours, gaussian

__all__ = ["Centre", "Centring", "RowsMean", "buffers_of", "noisy_mean"]


class Centre(nn.Module):  # type: ignore[misc]
    """A first layer that takes a mean off each row: a public one, or one that training finds.

    Put it first in a model whose rows are not about 0. `dither.learn.train` and `PrivateOptimizer`
    find the mean with noise before their first step, and charge it with the rest: by about a
    hundredth of the squared loss where an epsilon is named, and otherwise ``gaussian(20)``. It
    helps most where rows share much, as pixels that are dark in every image, and where no public
    number says how much.

    Parameters
    ----------
    *shape : int
        Of one row, as of ``torch.zeros``.
    norm : float, optional
        To which rows are shortened in the mean, and nowhere else: a number that follows from what
        is possible, not from what was seen. Without it, the square root of how many numbers a row
        has, which is right for numbers of -1 to 1.
    mean : array or Tensor, optional
        One that is public: nothing is then found, nor charged.

    Attributes
    ----------
    mean : Tensor
        What is taken off; 0 until it is known. A part of the model, as its parameters are: it may
        be published with them, and stands in the ``state_dict``.
    found : Tensor
        One bool: whether ``mean`` is known. Another run on this layer keeps it, at no new cost.

    Examples
    --------
    >>> import torch
    >>> from dither import learn
    >>> from dither.learn.deep import Centre
    >>> X = 0.8 + 0.2 * torch.rand(400, 2)
    >>> model = torch.nn.Sequential(Centre(2), torch.nn.Linear(2, 2))
    >>> fit = learn.train(model, (X, X[:, 0] > X[:, 1]), epsilon=3, delta=1e-5, population=400)
    >>> fit.loss.epsilon(delta=1e-5) <= 3, bool(model[0].found)
    (True, True)
    """

    mean: torch.Tensor
    found: torch.Tensor

    def __init__(self, *shape: int, norm: float | None = None, mean: Any = None) -> None:
        super().__init__()
        sizes = [check.whole("shape", size, 1) for size in shape]
        count = int(np.prod(sizes, dtype=np.int64))
        given = count**0.5 if norm is None else norm
        self.norm = Flat(check.number("norm", given, above=1e-6, below=1e6)).norm
        try:
            known = None if mean is None else torch.as_tensor(mean, dtype=torch.float32).detach()
        except (TypeError, ValueError, RuntimeError):
            raise ArgumentError("mean must be an array or tensor of numbers") from None
        if known is not None and (known.shape != torch.Size(sizes) or not known.isfinite().all()):
            raise ArgumentError(f"mean must be finite numbers of the shape {tuple(sizes)}")
        self.register_buffer("mean", torch.zeros(sizes) if known is None else known.clone())
        self.register_buffer("found", torch.tensor(known is not None))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows less the mean."""
        return rows - self.mean

    def extra_repr(self) -> str:
        """Its shape, as torch shows a layer."""
        return f"{', '.join(map(str, self.mean.shape))}, norm={self.norm:g}"

    def keep(self, mean: torch.Tensor) -> None:
        """Take a mean that was found."""
        self.mean.copy_(mean.view(self.mean.shape))
        self.found.fill_(True)


def _centre_of(model: nn.Module, rows: torch.Tensor) -> Centre | None:
    """The layer whose mean is to be found, or None.

    Parameters
    ----------
    rows : Tensor
        Of which shape, type and device are looked at.

    Raises
    ------
    ArgumentError
        There are two; it is not for rows like these; or it is not what rows meet first.
    """
    waiting = [m for m in model.modules() if isinstance(m, Centre) and not bool(m.found)]
    if not waiting:
        return None
    if len(waiting) > 1:
        raise ArgumentError("model must have one layer Centre at most whose mean is to be found")
    centre = waiting[0]
    if rows.shape[1:] != centre.mean.shape:
        raise ArgumentError(
            f"Centre is for rows of the shape {tuple(centre.mean.shape)}: make it of that of X, "
            f"Centre({', '.join(map(str, rows.shape[1:]))})"
        )
    if not rows.dtype.is_floating_point:
        raise ArgumentError(
            "Centre is for rows of real numbers: numbers of categories have no mean"
        )
    met: list[bool] = []
    made = made_up_rows(rows)
    devices = [rows.device] if rows.device.type == "cuda" else []
    handle = centre.register_forward_pre_hook(
        lambda module, given: met.append(bool(torch.equal(given[0], made)))
    )
    try:
        # A model that fails later on is refused later on, by what it failed with.
        with suppress(Exception), torch.no_grad(), torch.random.fork_rng(devices=devices):
            model(made)
    finally:
        handle.remove()
    if met != [True]:
        raise ArgumentError(
            "Centre must be what rows meet first, once: torch.nn.Sequential(Centre(…), model)"
        )
    return centre


def buffers_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """What its layers Centre hold, by name: as much a part of what was trained as parameters."""
    return {
        f"{name}.{own}" if name else own: buffer
        for name, layer in model.named_modules()
        if isinstance(layer, Centre)
        for own, buffer in layer.named_buffers(recurse=False)
    }


class _Rows(GradientEngine):
    """Rows in the place of gradients."""

    def __init__(self, size: int, device: torch.device) -> None:
        self.parameters = {"mean": nn.Parameter(torch.zeros(size, device=device))}

    def parts(self, x: torch.Tensor, y: torch.Tensor) -> list[GradientPart]:
        """Each row as it is; a copy, for what is not finite is set to 0 in it."""
        return [FullGradient(("mean",), "", [x.flatten(1).clone()])]


def noisy_mean(
    rows: torch.Tensor,
    norm: float,
    noise_multiplier: Fraction,
    population: float,
    *,
    exact: bool,
    physical: int,
    words: Words | None = None,
) -> torch.Tensor:
    """The noisy sum of rows that are clipped to a norm, over a public number; shape (size,).

    Rows that are not finite count as 0.

    Parameters
    ----------
    rows : Tensor, shape (n, ...)
    norm : float
    noise_multiplier : Fraction
        Deviation of each number's noise over norm.
    population : float
    exact : bool
    physical : int
        How many rows are copied at once.
    words : Words, optional
        Another source of randomness than this thread's secure words.
    """
    size = rows.shape[1:].numel()
    sums = ClippedSums(_Rows(size, rows.device), Flat(norm), exact=exact)
    for places in parts(torch.arange(len(rows), device=rows.device), physical):
        sums.add(rows[places], places)
    total, _ = noisy(sums, noise_multiplier, words)
    return total / population


class Centring:
    """The mean that one run finds: charged with the run, and drawn once in it.

    Parameters
    ----------
    centre : Centre or None
        The layer that waits for it.
    noise_multiplier : Fraction

    Attributes
    ----------
    mean : Tensor or None
        What was found.
    """

    def __init__(self, centre: Centre | None, noise_multiplier: Fraction) -> None:
        self.centre, self.noise_multiplier = centre, noise_multiplier
        self.mean: torch.Tensor | None = None

    @classmethod
    def of(cls, model: nn.Module, rows: torch.Tensor, epsilon: Any, delta: Any) -> Centring:
        """Of a model, with or without a layer that waits; `_centre_of` says what is refused."""
        centre = _centre_of(model, rows)
        return cls(centre, Fraction(0) if centre is None else counting_noise(epsilon, delta))

    def loss(self, neighbours: Neighbours) -> Loss:
        """What it costs."""
        if self.centre is None:
            return Loss((), neighbours)
        return one_step(self.noise_multiplier, Fraction(1), neighbours)

    @property
    def needed(self) -> bool:
        """Whether the layer lacks its mean."""
        return self.centre is not None and not bool(self.centre.found)

    def know(self, rows: torch.Tensor, population: float, **how: Any) -> None:
        """Give the layer its mean, as of `noisy_mean`.

        A layer that forgot it, as when the model was given an older state, gets the same again.
        """
        assert self.centre is not None
        if self.mean is None:
            self.mean = noisy_mean(rows, self.centre.norm, self.noise_multiplier, population, **how)
        self.centre.keep(self.mean)

    def restore(self, mean: torch.Tensor | None) -> None:
        """Go on with what was found before, if it was."""
        self.mean = mean
        if self.centre is not None and mean is not None:
            self.centre.keep(mean)

    @property
    def text(self) -> list[str]:
        """What was found, in a line, or in none."""
        if self.centre is None:
            return []
        return [
            f"mean of the rows: found with noise of {number_text(float(self.noise_multiplier))} "
            f"times the norm of {number_text(self.centre.norm)}, over the number of rows"
        ]


class RowsMean:
    """The noisy mean of rows, for audits."""

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours whose sums differ by a row as long as the norm."""
        multiplier = Fraction(2)
        delta = Fraction(gaussian(multiplier).delta(1).upper)

        def run(rows: int, size: int) -> npt.NDArray[np.float64]:
            X = torch.full((rows, 1), 1e3)
            how: dict[str, Any] = {"exact": True, "physical": 1}
            found = [noisy_mean(X, 0.5, multiplier, 1.0, **how) for _ in range(size)]
            return np.array([float(one[0]) for one in found])

        yield Subject("mean that is taken off rows", run, 1, 2, delta=delta)
