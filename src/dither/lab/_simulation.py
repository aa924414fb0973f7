"""Where simulated secrets and simulated noise come from: a generator that the caller may seed.

A release that protects people draws its own noise elsewhere; the lab sees its answers alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dither._checks import whole
from dither._extras import extra_library

__all__ = ["SimulatedWorld", "library"]


class SimulatedWorld:
    """Random numbers for games. Noise drawn from them protects nobody."""

    @staticmethod
    def of(seed: int | np.random.Generator) -> np.random.Generator:
        """The generator of a seed, an integer of at least 0, or the one that is given.

        Examples
        --------
        >>> SimulatedWorld.of(1).random() == SimulatedWorld.of(1).random()
        True
        """
        if isinstance(seed, np.random.Generator):
            return seed
        return np.random.Generator(np.random.PCG64DXSM(whole("seed", seed)))


def library(module: str, what: str) -> Any:
    """A library of the extra ``attack``, imported when it is first needed.

    Raises
    ------
    MissingLibraryError
        Where it is not installed; says how to get it.
    """
    return extra_library(module, "attack", f"{what} needs")
