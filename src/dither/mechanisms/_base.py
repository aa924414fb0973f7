"""What mechanisms share: exact parameters, integer noise, runs that go on only once, inverses."""

from __future__ import annotations

import copy
import dataclasses
import math
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._search import greatest_decimal, least_decimal
from dither.errors import ArgumentError

__all__ = ["AdditiveNoise", "Integers", "Mechanism", "Run", "least_epsilon"]

Integers = npt.NDArray[np.int64]
Made = TypeVar("Made", bound="Mechanism")

_MOST_DRAWS = 10**9


class Mechanism:
    """A frozen dataclass whose fields are the exact parameters of a mechanism.

    What the sampler uses is what the loss is computed from, and what certificates name.
    """

    __slots__ = ()

    title: ClassVar[str]
    """What certificates call it."""

    def parameters(self) -> dict[str, str]:
        """The law and its exact parameters as text, for certificates.

        Those of a part, such as the noise that a mechanism adds, have the part's name before them.
        """
        found = {"mechanism": self.title}
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, Mechanism):
                inner = value.parameters().items()
                found |= {f"{field.name} {name}": text for name, text in inner}
            elif field.init and value is not None:
                found[field.name] = str(value)
        return found

    def _settle(self, **values: object) -> None:
        """Hold arguments as they were read."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _settle_positive(self, *names: str) -> None:
        """Read fields as exact numbers above 0."""
        self._settle(**{name: check.positive(name, getattr(self, name)) for name in names})


class AdditiveNoise(Mechanism, ABC):
    """Symmetric integer noise Z, drawn afresh for each coordinate of an integer vector."""

    __slots__ = ()

    def draw(self, size: int | tuple[int, ...]) -> Integers:
        """Draw independent noise, int64, of the given shape, from the system's randomness."""
        shape = size if isinstance(size, tuple) else (size,)
        if math.prod(shape) > _MOST_DRAWS:
            raise ArgumentError("size must be at most 10**9 draws at once; draw in parts")
        return self._draw(math.prod(shape)).reshape(shape)

    @abstractmethod
    def _draw(self, n: int) -> Integers:
        """So many independent draws."""

    @property
    @abstractmethod
    def variance(self) -> float:
        """Var Z of the discrete law itself."""

    @abstractmethod
    def upper_tail(self, t: int) -> Fraction:
        """A proven upper bound of Pr[Z >= t]."""

    def tail(self, t: int) -> Fraction:
        """A proven upper bound of Pr[|Z| >= t]."""
        # The law is symmetric, and its two tails do not meet for t >= 1.
        return min(Fraction(1), 2 * self.upper_tail(t)) if t >= 1 else Fraction(1)

    def survival(self, t: int) -> float:
        """Pr[Z >= t] in floating point: for error bars and odds, never for a guarantee."""
        return self._survival(t) if t >= 1 else 1.0 - self._survival(1 - t)

    @abstractmethod
    def _survival(self, t: int) -> float:
        """Pr[Z >= t] for t >= 1."""

    @abstractmethod
    def _guess(self, outside: float) -> float:
        """Nearly the half-width that leaves so much probability outside."""

    def half_width(self, confidence: float) -> int:
        """The smallest integer w with Pr[|Z| <= w] >= confidence, by `survival`.

        That errs by 4e-13 of itself, for exponents of up to 745; of Gaussian noise with sigma2
        above 4096 by 0.0013·x⁴/sigma2² at x deviations, some 1e-6 at most. What is outside may be
        larger by that part.
        """
        outside = 1.0 - check.confidence(confidence)
        width = max(0, math.ceil(self._guess(outside)))
        # The guess may be off on either side.
        while width > 0 and 2 * self.survival(width) <= outside:
            width -= 1
        while 2 * self.survival(width + 1) > outside:
            width += 1
        return width


class Run:
    """A run that holds a secret and may go on only once, in one place.

    Noise that is drawn once and compared or added many times must not be used by two runs: what
    was charged covers one. So such a run cannot be copied, pickled, or continued in a forked
    process.
    """

    __slots__ = ("_lock", "_pid")

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise ArgumentError("this run belongs to another process: start one here")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise copy.Error("a run holds a secret noise and cannot be copied or pickled")


class HasHalfWidth(Protocol):
    """Noise with a half-width."""

    def half_width(self, confidence: float) -> float:
        """A w with Pr[|Z| <= w] >= confidence."""
        ...


def least_epsilon(
    name: str,
    most: Any,
    error: Callable[[Fraction], float],
    *,
    low: Fraction = Fraction(1, 10**6),
    high: Fraction = Fraction(10**4),
) -> Fraction:
    """The least parameter of three digits whose error is at most ``most``, or a clear refusal.

    Raises
    ------
    ArgumentError
        ``most`` is not a number of at least 0, or cannot be reached.

    Examples
    --------
    >>> from dither.mechanisms import DiscreteLaplace
    >>> least_epsilon(
    ...     "half_width", 10, lambda e: DiscreteLaplace.for_loss(e, l1=1).half_width(0.95))
    Fraction(57, 200)
    """
    allowed = check.exact(name, most, least=0)
    return _reached(name, least_decimal(lambda e: error(e) <= allowed, low, high))


def cheapest(
    name: str,
    most: Any,
    made: Callable[[Fraction], Made],
    error: Callable[[Made], float],
    **ends: Fraction,
) -> Made:
    """The mechanism of least epsilon (three digits) whose error is at most ``most``.

    Parameters, errors and the ends of the search are those of `least_epsilon`.
    """
    return made(least_epsilon(name, most, lambda epsilon: error(made(epsilon)), **ends))


def largest_parameter(
    name: str,
    most: Any,
    made: Callable[[Fraction], HasHalfWidth],
    confidence: float,
    high: Fraction,
) -> Fraction:
    """The largest parameter of three digits whose half-width is at most ``most``.

    Raises
    ------
    ArgumentError
        ``most`` is not a number of at least 0, or the confidence is out of range.
    """
    inside, allowed = check.confidence(confidence), check.exact(name, most, least=0)
    found = greatest_decimal(
        lambda p: made(p).half_width(inside) <= allowed, Fraction(1, 10**6), high
    )
    return _reached(name, found)


def _reached(name: str, found: Fraction | None) -> Fraction:
    if found is None:
        raise ArgumentError(f"{name} cannot be reached: allow more, or a lower confidence")
    return found
