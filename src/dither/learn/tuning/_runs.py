"""How often a search runs: a random number of a stated law, drawn exactly.

A truncated negative binomial number of shape eta > -1 and parameter gamma in (0, 1], from 1 on ::

    Pr[K = k + 1] / Pr[K = k] = (1 - gamma)·(k + eta)/(k + 1)
    Pr[K = 1] = eta·(1 - gamma)/(gamma^-eta - 1),   or (1 - gamma)/log(1/gamma) at eta = 0

(geometric at eta = 1, logarithmic at eta = 0), and a Poisson number, from 0 on. The parameter is a
rational whose mean is proved to be at most the one that is charged; what a search loses grows with
both. A draw compares a uniform number, whose bits are drawn as they are needed, with ever tighter
bounds of Pr[K <= k]: nothing is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._search import bisect
from dither.errors import ArgumentError
from dither.numeric import exp_lower, exp_upper, log_lower, log_upper

__all__ = ["SHAPES", "Runs"]

SHAPES = {"geometric": Fraction(1), "logarithmic": Fraction(0), "poisson": None}

_MOST = 10_000
_SPREAD = 100_000
"""Of numbers with heavy tails: the most that 1/gamma may be, which is where a tail begins to end.
It bounds time, not privacy."""

_LEAST = Fraction(1, 1000)
_WORD = 62
_SPARE = 64


@dataclass(frozen=True, slots=True)
class Runs:
    """The law of a number of runs.

    Parameters
    ----------
    mean : Fraction
        In [1, 10,000]: at least the expected number of runs, and what is charged.
    shape : Fraction or None
        eta > -1 of a truncated negative binomial number, or None for a Poisson number.

    Attributes
    ----------
    parameter : Fraction
        gamma, or the Poisson number's mean.
    """

    mean: Fraction
    shape: Fraction | None = Fraction(1)
    parameter: Fraction = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameter", _parameter(self.mean, self.shape))

    @classmethod
    def of(cls, mean: Number, shape: Number | str | None) -> Runs:
        """Read the arguments of a search.

        Raises
        ------
        ArgumentError
            A number is out of range, or the runs could be too many.
        """
        expected = check.exact("mean", mean, least=1)
        if expected > _MOST:
            raise ArgumentError(
                f"mean must be at most {_MOST:,} runs: each is a training, and each costs"
            )
        if shape is None:
            eta = None
        elif isinstance(shape, str) and not any(c.isdigit() for c in shape):
            eta = SHAPES[check.choice("shape", shape, SHAPES)]
        else:
            eta = check.exact("shape", shape, above=-1, most=100)
            if 0 < abs(eta) < _LEAST:
                raise ArgumentError("shape must be 0, or at least 0.001 away from it")
        return cls(expected, eta)

    def draw(self) -> int:
        """Draw how many runs there are, from the system's randomness. Never to be shown."""
        prefix, bits = 0, 0
        while True:
            prefix = (prefix << _WORD) | int(noise.below(1 << _WORD, 1)[0])
            bits += _WORD
            found = self._decided(prefix, bits)
            if found is not None:
                return found

    def chances(self) -> Iterator[tuple[int, float]]:
        """Each number of runs with its chance, in doubles: for pictures and words."""
        bits = 128 + self._depth
        low = 0
        for k, upper, _ in self._sums(bits):
            yield k, (upper - low) / (1 << bits)
            low = upper

    @property
    def _depth(self) -> int:
        """Bits before the first that is not 0 of the least chance that is started from."""
        return 0 if self.shape is not None else math.ceil(1.5 * float(self.parameter))

    def _decided(self, prefix: int, bits: int) -> int | None:
        """The number at a uniform number with these first bits; None where they do not tell."""
        precise = bits + _SPARE + self._depth
        start, end = prefix << (precise - bits), (prefix + 1) << (precise - bits)
        above = 0
        for k, low, high in self._sums(precise):
            if start < above:
                return None
            if end <= low:
                return k
            above = high
        return None

    def _sums(self, bits: int) -> Iterator[tuple[int, int, int]]:
        """Each number with bounds of Pr[K <= k], in units of 2**-bits, while its chance is seen."""
        one = 1 << bits
        if self.shape is not None and self.parameter == 1:
            yield 1, one, one
            return
        first, last = self._first(bits)
        low, high = math.floor(first * one), math.ceil(last * one)
        k = 0 if self.shape is None else 1
        below, above = low, high
        while low:
            yield k, below, above
            if self.shape is None:
                ratio = self.parameter / (k + 1)
            else:
                ratio = (1 - self.parameter) * (k + self.shape) / (k + 1)
            # One end is cut and the other rounded up, so that the chance stays between them.
            low = low * ratio.numerator // ratio.denominator
            high = -(-high * ratio.numerator // ratio.denominator)
            k, below, above = k + 1, below + low, above + high

    def _first(self, bits: int) -> tuple[Fraction, Fraction]:
        """Bounds of the first chance."""
        if self.shape is None:
            return exp_lower(-self.parameter, bits), exp_upper(-self.parameter, bits)
        gamma, eta = self.parameter, self.shape
        logs = log_lower(1 / gamma, bits), log_upper(1 / gamma, bits)
        if eta == 0:
            return (1 - gamma) / logs[1], (1 - gamma) / logs[0]
        # gamma^-eta - 1 has the sign of eta, and rises with the logarithm where eta is above 0.
        least, most = (eta * logs[0], eta * logs[1])[:: 1 if eta > 0 else -1]
        ends = exp_lower(least, bits) - 1, exp_upper(most, bits) - 1
        found = [eta * (1 - gamma) / end for end in ends]
        return min(found), max(found)


def _parameter(mean: Fraction, shape: Fraction | None) -> Fraction:
    """A parameter whose mean is at most the one given, and nearly it."""
    if shape is None or mean == 1:
        return mean
    if shape == 1:
        return 1 / mean
    # Of its logarithm, as it may be small by orders of magnitude.
    ends = math.log(1e-12), math.log(1.0 - 1e-12)
    _, found = bisect(lambda log: _mean(math.exp(log), float(shape)) <= mean, *ends, steps=80)
    grown = Fraction(1, 1 << 40)
    gamma = Fraction(math.exp(found))
    # The search is in doubles; what it found is proved, after as small a step as is enough.
    while _mean_upper(gamma, shape) > mean:
        gamma, grown = min(Fraction(1), gamma * (1 + grown)), 2 * grown
    if gamma * _SPREAD < 1:
        raise ArgumentError(
            "mean must be lower for this shape: single searches could have millions of runs; take "
            "a shape nearer to 1"
        )
    return gamma


def _mean(gamma: float, eta: float) -> float:
    """The mean, nearly."""
    log = -math.log(gamma)
    if abs(eta) * log < 1e-9:
        return (1 - gamma) / gamma / log
    return eta * (1 - gamma) / gamma / -math.expm1(-eta * log)


def _mean_upper(gamma: Fraction, eta: Fraction) -> Fraction:
    """An upper bound of the mean, eta·(1 - gamma)/(gamma·(1 - gamma^eta))."""
    if gamma == 1:
        return Fraction(1)
    odds = (1 - gamma) / gamma
    log = log_lower(1 / gamma)
    if eta == 0:
        return odds / log
    # |1 - gamma^eta| is least where the logarithm is.
    return odds * abs(eta) / abs(1 - (exp_upper if eta > 0 else exp_lower)(-eta * log))
