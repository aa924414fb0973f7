"""Layer 2, model: what a whole mechanism would have given, in batches, from a generator.

Simulation never touches data and never protects anybody: its random numbers come from numpy, noise
that protects comes from `dither.noise`, and the two share no type. Without a generator an estimate
draws the same public numbers each time, so that it gives the same interval whenever it is asked. A
test draws its null afresh: its p-value (1 + #)/(B + 1) is valid over the observation and the null
together, and tests that share one null would all be a little too liberal, or all too strict. Of
what a ledger keeps, the null is that release's own: read again, it has the same p-value.
"""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dither import _checks as check
from dither.inference.engine._inputs import Floats

__all__ = ["Seed", "SimulatedDraws", "SimulatedNoise", "batches", "reporting"]

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

    @staticmethod
    def fresh(seed: Seed) -> np.random.Generator:
        """The same, but without a seed one that nobody else has: for the null of a test.

        Examples
        --------
        >>> SimulatedDraws.fresh(None).random() == SimulatedDraws.fresh(None).random()
        False
        """
        if seed is not None:
            return SimulatedDraws.of(seed)
        return np.random.Generator(np.random.PCG64DXSM())

    @staticmethod
    def of_released(released: Floats) -> np.random.Generator:
        """A generator of a release's own, the same whenever it is read: for the null of its test.

        Examples
        --------
        >>> first, second = np.array([1.0, 4.0]), np.array([2.0, 4.0])
        >>> draws = [SimulatedDraws.of_released(x).random() for x in (first, first, second)]
        >>> draws[0] == draws[1], draws[0] == draws[2]
        (True, False)
        """
        held = np.ascontiguousarray(released, dtype="<f8").tobytes()
        return SimulatedDraws.of(int.from_bytes(hashlib.sha256(held).digest(), "big"))


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


def reporting(reached: Callable[[int], bool], what: str) -> Callable[[int], bool]:
    """The same question of a number; from two seconds on it says which number is being tried.

    Examples
    --------
    >>> reporting(lambda n: n > 5, "rows")(6)
    True
    """
    begun = time.monotonic()

    def asked(n: int) -> bool:
        if time.monotonic() - begun > _PATIENCE and _watched():
            sys.stderr.write(f"\r{what}: trying {n:,}\x1b[K")
            sys.stderr.flush()
        return reached(n)

    return asked


def _watched() -> bool:
    """Whether somebody sees what is written: a terminal, or a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules
