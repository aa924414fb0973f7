"""Layer 2, model: what a whole mechanism would have given, in batches, from a generator.

Simulation never touches data and never protects anybody: its random numbers come from numpy, noise
that protects comes from `dither.noise`, and the two share no type. Without a generator the same
public numbers are drawn each time, so that a result gives the same interval whenever it is asked.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dither import _checks as check
from dither.inference._inputs import Floats

__all__ = ["Seed", "SimulatedDraws", "SimulatedNoise", "batches"]

Seed = np.random.Generator | int | None
"""A generator, a seed of one, or nothing for the same public numbers each time."""

_PATIENCE = 2.0


class SimulatedDraws:
    """Random numbers for simulation. Noise drawn from them protects nobody."""

    @staticmethod
    def of(seed: Seed) -> np.random.Generator:
        """The generator that is given, or that of a seed.

        Examples
        --------
        >>> SimulatedDraws.of(None).random() == SimulatedDraws.of(None).random()
        True
        """
        if isinstance(seed, np.random.Generator):
            return seed
        whole = 20 if seed is None else check.whole("seed", seed)
        return np.random.Generator(np.random.PCG64DXSM(whole))


@dataclass(frozen=True, slots=True)
class SimulatedNoise:
    """The law of the noise of one coordinate, as simulations draw it.

    Parameters
    ----------
    law : {"laplace", "normal"}
    scale : float
        Of the Laplace law, or the deviation of the normal one.
    """

    law: Literal["laplace", "normal"]
    scale: float

    @property
    def deviation(self) -> float:
        """The standard deviation."""
        return self.scale * 2**0.5 if self.law == "laplace" else self.scale

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Independent draws."""
        if self.law == "laplace":
            return np.asarray(rng.laplace(0.0, self.scale, shape))
        return np.asarray(rng.normal(0.0, self.scale, shape))


def batches(total: int, size: int, what: str) -> Iterator[int]:
    """Sizes of batches that add up to a total; says how far it is once it takes two seconds.

    Examples
    --------
    >>> list(batches(10, 4, "simulations"))
    [4, 4, 2]
    """
    done, begun, shown = 0, time.monotonic(), False
    while done < total:
        now = min(size, total - done)
        yield now
        done += now
        if done < total and time.monotonic() - begun > _PATIENCE and _watched():
            shown = True
            sys.stderr.write(f"\r{what}: {done:,} of {total:,}")
            sys.stderr.flush()
    if shown:
        sys.stderr.write(f"\r{what}: {total:,} of {total:,}\n")


def _watched() -> bool:
    """Whether somebody sees what is written: a terminal, or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules
