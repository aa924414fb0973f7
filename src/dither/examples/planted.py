"""Planted bugs: mechanisms with a mistake that was made before, for the auditor to catch.

Each claims epsilon = 1. The samplers draw from the words they are given: secure ones, or simulated
where a result must come again.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.noise import below, bernoulli, discrete_laplace
from dither.numeric import SimulatedWords, Words, secure_words

__all__ = ["planted_bugs"]

Array = npt.NDArray[Any]


def planted_bugs(words: Words | None = None) -> list[Subject]:
    """All planted bugs, each claiming epsilon = 1.

    Parameters
    ----------
    words : Words, optional
        Where their noise comes from; secure words by default.
    """
    bugs = _Bugs(words or secure_words())
    zeros, ones = (0,) * 10, (1,) * 10
    first, others = (1, *(0,) * 9), (0, *(1,) * 9)
    rows: list[tuple[str, Callable[..., Any], Any, Any, str]] = [
        ("Laplace, half the scale", bugs.laplace, 0, 1, "scale 1/2 where sensitivity/ε is 1"),
        ("Laplace in floats", bugs.float_laplace, 0.0, 1.0, "the lowest bits give the answer away"),
        ("sparse vector, no query noise", bugs.bare_queries, (0, 1), (1, 0), "only T has noise"),
        (
            "sparse vector, quarter scale",
            bugs.quarter,
            (0, 0, 0, 0, 1),
            (1, 1, 1, 1, 0),
            "both noises have a quarter of their scale",
        ),
        (
            "sparse vector, no cut-off",
            bugs.endless,
            (0,) * 15 + (1,) * 15,
            (1,) * 15 + (0,) * 15,
            "answers on after the first 'above'",
        ),
        ("noisy max, half the scale", bugs.noisy_max, first, others, "scale 1 where 2/ε is 2"),
        ("noisy max with its value", bugs.noisy_max_value, zeros, ones, "the maximum is released"),
        (
            "randomised response, swapped",
            bugs.swapped,
            0,
            1,
            "truth and lie of ten categories swap odds",
        ),
        ("Laplace, fixed seed", bugs.seeded, 0, 1, "every call draws the same noise"),
    ]
    return [Subject(n, m, a, b, about=about) for n, m, a, b, about in rows]


class _Bugs:
    """The samplers, all of (data, size)."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def _laplace(self, scale: Fraction | int, *shape: int) -> Array:
        drawn = discrete_laplace(Fraction(scale), int(np.prod(shape)), words=self.words)
        return drawn.reshape(shape)

    def laplace(self, data: int, size: int) -> Array:
        return data + self._laplace(Fraction(1, 2), size)

    def float_laplace(self, data: float, size: int) -> Array:
        """The inverse of the distribution function, at a double: what many libraries do."""
        uniform = (self.words.words(size) >> np.uint64(11)).astype(np.float64) * 2.0**-53
        centred = uniform - 0.5 + 2.0**-54
        return np.asarray(data - np.sign(centred) * np.log1p(-2 * np.abs(centred)))

    def _answers(self, data: tuple[int, ...], bar: Array, noise: Array | int) -> Array:
        return np.asarray(np.array(data) + noise >= bar[:, None]).astype(np.int64)

    def bare_queries(self, data: tuple[int, ...], size: int) -> Array:
        return _stopped(self._answers(data, self._laplace(1, size), 0))

    def quarter(self, data: tuple[int, ...], size: int) -> Array:
        noise = self._laplace(1, size, len(data))
        return _stopped(self._answers(data, self._laplace(Fraction(1, 2), size), noise))

    def endless(self, data: tuple[int, ...], size: int) -> Array:
        return self._answers(data, self._laplace(2, size), self._laplace(4, size, len(data)))

    def noisy_max(self, data: tuple[int, ...], size: int) -> Array:
        noisy = np.array(data) + self._laplace(1, size, len(data))
        # Ties go to the place with the largest fraction, which is uniform.
        ties = below(2**20, size * len(data), words=self.words).reshape(noisy.shape)
        return np.asarray((noisy * 2**20 + ties).argmax(axis=1))

    def noisy_max_value(self, data: tuple[int, ...], size: int) -> Array:
        noisy = np.array(data) + self._laplace(2, size, len(data))
        return np.stack([noisy.argmax(axis=1), noisy.max(axis=1)], axis=1)

    def swapped(self, data: int, size: int) -> Array:
        # e/(e + 9), the probability of the truth, is given to the lie.
        lies = bernoulli(Fraction(2718281828, 2718281828 + 9 * 10**9), size, words=self.words)
        others = 1 + below(9, size, words=self.words)
        return (data + np.where(lies, others, 0)) % 10

    def seeded(self, data: int, size: int) -> Array:
        return data + discrete_laplace(Fraction(1), size, words=SimulatedWords(1))


def _stopped(answers: Array) -> Array:
    """Answers up to the first 'above'; -1 after it."""
    over = np.cumsum(answers, axis=1) - answers > 0
    return np.where(over, -1, answers)
