"""Rows in a fixed order, and noise that is correlated over steps: for where nothing can be sampled.

Rows are dealt into batches once, by a permutation that does not look at them. Every epoch goes
through the same batches in the same order, so a row takes part once an epoch, in the same step of
it: at most ``epochs`` times, and exactly as many steps apart as an epoch has. That is what
`_factorization` charges; nothing is amplified by sampling, and nothing needs to be.

*Neighbours.* The number of rows is public under both relations. "Add or remove" means that a row's
place is left empty: its gradient is 0 in all its steps, and everybody else stays where they are. A
row that is replaced moves a step's sum by twice the clip, and the noise is twice as large.

*Which batch is divided by what.* Every sum is divided by ``batch``, also that of a last batch which
is smaller: what later steps take back of the noise is then what earlier ones added. No row is left
out.

*What is proved.* The charge is that of the factorisation in real numbers, `_factorization` proves
it. With ``exact``, sums of clipped gradients are those of integers (`_sums`), so that a row moves
them by no more than the clip. The noise is of exact discrete Gaussian draws on the same lattice,
2**26 or more to a deviation, which doubles then correlate: that doubles do so to their last digit,
and that the lattice is fine enough, is not proved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch

from dither import _checks as check
from dither import privacy
from dither.errors import ArgumentError
from dither.learn.deep.noise._factorization import (
    METHODS,
    Factorization,
    Participation,
    StreamedNoise,
    Workload,
    factorization,
)
from dither.learn.deep.noise._noise import draw
from dither.learn.deep.rows._clipping import Adaptive
from dither.learn.deep.rows._sums import UNIT, ClippedSums
from dither.noise import permutation
from dither.numeric import Words
from dither.privacy import Loss, Neighbours

__all__ = ["CorrelatedNoise", "FixedOrder", "OrderedSampling"]


@dataclass(frozen=True)
class FixedOrder:
    """Every row once an epoch, in the same step of each, with noise that is correlated over steps.

    The choice where the rows of a step cannot be sampled: a stream of data, a store that is read in
    order, devices that report when they can. It costs one Gaussian mechanism for the whole run,
    however many steps that has; with many epochs, or where sampling is possible and steps are many,
    Poisson sampling often needs less noise.

    Parameters
    ----------
    batch : int
        Rows of a step; the last step of an epoch has what is left.
    epochs : int
    noise : str
        How noise is correlated: ``"buffers"``, ``"bands"``, ``"square root"``, ``"optimal"`` (one
        epoch) or ``"independent"``.
    bands, buffers : int
        Of these; vectors as long as the model that are kept are bands - 1, or buffers.

    Examples
    --------
    >>> order = FixedOrder(batch=50, epochs=4)
    >>> order.steps(rows=1020)
    84
    >>> found = order.factorization(rows=1020)  # before anything is spent
    >>> found.mean_error() < FixedOrder(50, 4, "independent").factorization(1020).mean_error() / 2
    True
    """

    batch: int
    epochs: int = 1
    noise: str = "buffers"
    bands: int | None = None
    buffers: int = 4

    def __post_init__(self) -> None:
        check.whole("batch", self.batch, 1)
        check.whole("epochs", self.epochs, 1)
        check.choice("noise", self.noise, list(METHODS))

    def each(self, rows: int) -> int:
        """Steps of an epoch."""
        return -(-check.whole("rows", rows, 1) // self.batch)

    def steps(self, rows: int) -> int:
        """Steps of the whole run."""
        return self.each(rows) * self.epochs

    def factorization(self, rows: int, momentum: float = 0.0) -> Factorization:
        """How noise is correlated, with what it errs: of public numbers alone."""
        run = Participation.of_epochs(self.each(rows), self.epochs)
        return factorization(
            run, workload=Workload(run.steps, momentum), method=self.noise, bands=self.bands,
            buffers=self.buffers,
        )  # fmt: skip


class OrderedSampling:
    """Which rows are in which step: those of a permutation, dealt once.

    Parameters
    ----------
    order : FixedOrder
    rows : int
    neighbours : Neighbours
    words : Words, optional
        Of the permutation.
    """

    def __init__(
        self, order: FixedOrder, rows: int, neighbours: Neighbours, words: Words | None = None
    ) -> None:
        self.order, self.rows, self.neighbours = order, rows, neighbours
        self.denominator = float(order.batch)
        self.population = Fraction(max(1, rows))
        dealt = permutation(rows, words=words)
        self._dealt = torch.as_tensor(dealt, dtype=torch.int64)

    def __repr__(self) -> str:
        return f"{self.order!r} of {self.rows} rows, {self.neighbours}"

    def batch(self, step: int, words: Words | None = None) -> torch.Tensor:
        """The places of the rows in a step."""
        first = step % self.order.each(self.rows) * self.order.batch
        return self._dealt[first : first + self.order.batch]

    def each(self, noise_multiplier: Fraction) -> Loss:
        """What the whole run costs."""
        return privacy.gaussian(noise_multiplier, neighbours=self.neighbours)

    @property
    def text(self) -> str:
        """How rows take part, in words."""
        order = self.order
        return f"rows in a fixed order, {order.batch:,} a step, {order.epochs:,} epochs"


class CorrelatedNoise:
    """The noise of each step, in the place of `dither.learn.deep.noise._noise.noisy`.

    Parameters
    ----------
    made : Factorization
    neighbours : Neighbours
    """

    def __init__(self, made: Factorization, neighbours: Neighbours) -> None:
        self.made = made
        self.moved = 2 if neighbours is Neighbours.REPLACE else 1
        self.stream = StreamedNoise(made)

    def sigma2(self, noise_multiplier: Fraction) -> Fraction:
        """The parameter of what is drawn, in squared units; rounded up to an integer."""
        deviation = noise_multiplier * self.moved * Fraction(self.made.sensitivity) * UNIT
        return Fraction(math.ceil(deviation**2))

    def variance(self, noise_multiplier: Fraction, step: int) -> float:
        """Of one number of a step's noise, in squared units: known beforehand."""
        return float(self.sigma2(noise_multiplier)) * float(self.made.variances[step])

    def noisy(
        self, sums: ClippedSums, noise_multiplier: Fraction, words: Words | None = None
    ) -> tuple[torch.Tensor, float]:
        """The sums with the noise of the next step; `noisy` says of what type."""
        if isinstance(sums.clip, Adaptive):
            raise ArgumentError(
                "clip must stay the same where noise is correlated over steps: take a number"
            )
        drawn = torch.from_numpy(draw(self.sigma2(noise_multiplier), sums.size, words))
        noise = self.stream.next(drawn.to(sums.total.device, torch.float64))
        unit = sums.clip.norm / UNIT
        if sums.exact:
            return ((sums.total + noise) * unit).float(), 0.0
        return sums.total + (noise * unit).float(), 0.0

    def state(self) -> dict[str, Any]:
        """What goes on from here; as secret as the noise."""
        return self.stream.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.stream.restore(state)
