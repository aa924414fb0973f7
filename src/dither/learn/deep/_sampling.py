"""Who takes part in a step: each example by a coin of its own.

Poisson. Every example is in the step's sample with probability ``rate``, independently of the
others and of other steps, by exact coins from the keystream of a cipher. So samples vary in size,
and may be empty: such a step still takes place, with noise alone. A sample is cut into physical
batches to fit in memory; that changes neither who is in it nor the noise, which is added once.

Denominator. The noisy sum is divided by ``rate`` times a number of rows that is public, never by
the size of the sample, which is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import torch

from dither import privacy
from dither._format import argument_text
from dither.noise import bernoulli
from dither.numeric import Words
from dither.privacy import Loss, Neighbours

__all__ = ["PoissonSampling", "parts", "places_of"]


def places_of(rows: int, rate: Fraction, words: Words | None = None) -> torch.Tensor:
    """The places, rising, of the rows that take part."""
    coins = bernoulli(rate, rows, words=words)
    return torch.from_numpy(coins).nonzero().flatten()


def parts(places: torch.Tensor, most: int) -> Iterator[torch.Tensor]:
    """Physical batches of at most so many; none of an empty sample."""
    if len(places):
        yield from places.split(most)


@dataclass(frozen=True)
class PoissonSampling:
    """A sample of its own for each step.

    Parameters
    ----------
    rows : int
        How many there are. Private, unless the neighbours replace a row.
    rate : Fraction
        In (0, 1].
    population : Fraction
        The public number that stands for the number of rows in the denominator.
    neighbours : Neighbours
    """

    rows: int
    rate: Fraction
    population: Fraction
    neighbours: Neighbours

    @property
    def denominator(self) -> float:
        """What sums are divided by."""
        return float(self.rate * self.population)

    @property
    def text(self) -> str:
        """How rows take part, in words."""
        return f"sampling rate {argument_text(self.rate)}"

    def batch(self, step: int, words: Words | None = None) -> torch.Tensor:
        """The places of the rows in a step's sample."""
        return places_of(self.rows, self.rate, words)

    def each(self, noise_multiplier: Fraction) -> Loss:
        """What one step costs."""
        return one_step(noise_multiplier, self.rate, self.neighbours)


def one_step(noise_multiplier: Fraction | float, rate: Fraction, neighbours: Neighbours) -> Loss:
    """What a step costs whose noise has a deviation of noise_multiplier times the clip.

    A row that is added or removed moves the clipped sum by at most the clip. One that is replaced
    moves it by twice as much; `Loss.poisson` goes by the two rows that change places.
    """
    return privacy.gaussian(noise_multiplier).poisson(rate, neighbours=neighbours)
