"""Where simulated secrets and simulated noise come from: a generator that the caller may seed.

A release that protects people draws its own noise elsewhere; this room sees its answers alone.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from dither.errors import ArgumentError, DitherError

__all__ = ["SimulatedWorld", "needed", "sure", "whole"]


class SimulatedWorld:
    """Random numbers for games. Noise drawn from them protects nobody."""

    @staticmethod
    def of(seed: int | np.random.Generator) -> np.random.Generator:
        """The generator of a seed, or the one that is given.

        Raises
        ------
        ArgumentError
            Where the seed is neither an integer of at least 0 nor a generator.

        Examples
        --------
        >>> SimulatedWorld.of(1).random() == SimulatedWorld.of(1).random()
        True
        """
        if isinstance(seed, np.random.Generator):
            return seed
        return np.random.Generator(np.random.PCG64DXSM(whole("seed", seed, 0)))


def sure(confidence: float) -> float:
    """A confidence, checked.

    Raises
    ------
    ArgumentError
        Where it is not above 0 and below 1.
    """
    if isinstance(confidence, bool) or not isinstance(confidence, float | int):
        raise ArgumentError("confidence must be a number above 0 and below 1, such as 0.99")
    if not 0.0 < confidence < 1.0:
        raise ArgumentError("confidence must be a number above 0 and below 1, such as 0.99")
    return float(confidence)


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """An integer argument in a range, or an error that names it.

    Raises
    ------
    ArgumentError
        Saying the range.
    """
    wanted = f"{name} must be an integer of at least {low}"
    if high is not None:
        wanted += f" and at most {high:,}"
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentError(wanted)
    if int(value) < low or (high is not None and int(value) > high):
        raise ArgumentError(wanted)
    return int(value)


def needed(module: str, what: str) -> Any:
    """A library of the extra ``attack``, imported when it is first needed.

    Raises
    ------
    DitherError
        Where it is not installed; says how to get it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        library = {"ortools": "OR-tools", "scipy": "SciPy"}[module.split(".")[0]]
        raise DitherError(
            f"{what} needs {library}, which is not installed: pip install 'dither[attack]'"
        ) from error
