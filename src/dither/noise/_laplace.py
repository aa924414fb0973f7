"""The discrete Laplace law: exact draws with mass proportional to exp(−|x|/scale)."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from dither._checks import Number, exact, whole
from dither.errors import ArgumentError
from dither.noise._staircase import StaircaseSampler
from dither.numeric import Words, secure_words

__all__ = ["MAX_SCALE", "discrete_laplace", "discrete_laplace_one", "laplace_sampler"]

MAX_SCALE = Fraction(1 << 52)
"""The largest scale: 2**52, beyond which a draw might not fit 64 bits."""

_STEPS_A_SCALE = 4  # a step is between 2**-4 and 2**-5 of the scale


@dataclass(frozen=True, slots=True)
class _Laplace:
    scale: Fraction

    def exponent(self, magnitude: int) -> Fraction:
        return magnitude / self.scale

    def gap(
        self, step: npt.NDArray[np.float64], part: npt.NDArray[np.float64], width: int
    ) -> npt.NDArray[np.float64]:
        # γ is linear: a product and no difference, so that nothing cancels.
        return (1.0 - part) * float(width / self.scale)


def discrete_laplace(
    scale: Number, size: int, *, words: Words | None = None
) -> npt.NDArray[np.int64]:
    """Draw discrete Laplace noise: Pr[X = x] proportional to exp(−|x|/scale) on the integers.

    Parameters
    ----------
    scale : Fraction, int, float or str
        Above 0 and at most 2**52; a float is read as it prints. An integer query of sensitivity Δ
        is made (Δ/scale)-differentially private by adding it [1]_.
    size : int
        How many draws, at least 0.
    words : Words, optional
        Another source of randomness, for simulation only. Left out, this thread's secure words.

    Returns
    -------
    array of int64, shape (size,)
        Independent draws; |x| < 100·scale + 1.

    Raises
    ------
    ArgumentError
        If the scale is out of range or not a number, or size is below 0.

    Notes
    -----
    Relative to ideal words, each draw is within 2**-142 of the law in total variation: see
    `dither.noise._staircase.StaircaseSampler` for the proof. A release that adds n draws is
    therefore within n·2**-142 of the ideal mechanism; n·2**-128 is a safe sum to charge to delta
    where even that must be accounted for.

    References
    ----------
    .. [1] Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy
       mechanisms", STOC 2009.

    Examples
    --------
    >>> draws = discrete_laplace(Fraction(10), 5)
    >>> draws.shape, draws.dtype
    ((5,), dtype('int64'))
    """
    return laplace_sampler(_read(scale)).draw(whole("size", size), words or secure_words())


def discrete_laplace_one(scale: Number) -> int:
    """Draw one value of `discrete_laplace`, from a small stock that the thread keeps a scale.

    No draw is served twice, in this or any other thread or process; errors are the same.

    Examples
    --------
    >>> isinstance(discrete_laplace_one(Fraction(10)), int)
    True
    """
    return _one(laplace_sampler(_read(scale)))


def _read(scale: Number) -> Fraction:
    # A fraction is what it is, and finding its sampler costs less than reading it again.
    return scale if type(scale) is Fraction else exact("scale", scale)


@lru_cache(maxsize=32)
def laplace_sampler(scale: Fraction) -> StaircaseSampler:
    """Return the sampler of a scale, from a cache of 32.

    Raises
    ------
    ArgumentError
        If the scale is out of range.
    """
    if exact("scale", scale, above=0) > MAX_SCALE:
        raise ArgumentError("scale must be at most 2**52; a coarser lattice makes it smaller")
    # Narrow enough that a wedge is a small part of its step, so that few proposals are rejected.
    shift = max(0, int(scale).bit_length() - 1 - _STEPS_A_SCALE)
    return StaircaseSampler(_Laplace(scale), shift)


# Single draws come from a stock: each thread keeps a few drawn values a sampler, and serves each
# once. A stock belongs to one thread of one process and to one key of its random words. It is
# emptied in a forked child before the child can draw, since parent and child would otherwise serve
# the same values; and with each new key, so that no value is older than the key that a release
# began with.

_STOCK = 512
_SAMPLERS = 16


class _Stocks(threading.local):
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.epoch: object = None
        # A sampler is its own key: it is found by identity and kept alive while it has a stock.
        self.by_sampler: dict[StaircaseSampler, list[int]] = {}


_stocks = _Stocks()


def _one(sampler: StaircaseSampler) -> int:
    stocks, words = _stocks, secure_words()
    epoch = words.epoch()
    if stocks.pid != os.getpid() or stocks.epoch is not epoch:
        stocks.by_sampler = {}
        stocks.pid, stocks.epoch = os.getpid(), epoch
    try:
        # Popping takes the value out in one step, so not even a signal handler that draws in
        # between is served the same one.
        return stocks.by_sampler[sampler].pop()
    except (KeyError, IndexError):
        stock = sampler.draw(_STOCK, words).tolist()
        value: int = stock.pop()
        stocks.by_sampler.pop(sampler, None)
        # The oldest goes, and its values with it: they are never served.
        while len(stocks.by_sampler) >= _SAMPLERS:
            del stocks.by_sampler[next(iter(stocks.by_sampler))]
        stocks.by_sampler[sampler] = stock
        return value


def _after_fork_in_child() -> None:
    global _stocks
    _stocks = _Stocks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
