"""Single draws from a stock: each thread keeps a few drawn values a sampler and serves each once.

A stock belongs to one thread of one process and to one key of its random words. It is emptied in a
forked child before the child can draw, since parent and child would otherwise serve the same
values; and with each new key, so that no value is older than the key that a release began with.
"""

from __future__ import annotations

import os
import threading

from dither.noise._staircase import Staircase
from dither.numeric import secure_words

__all__ = ["one"]

_STOCK = 512
_SAMPLERS = 16


class _Stocks(threading.local):
    def __init__(self) -> None:
        self.pid = os.getpid()
        self.epoch: object = None
        # A sampler is its own key: it is found by identity and kept alive while it has a stock.
        self.by_sampler: dict[Staircase, list[int]] = {}


_stocks = _Stocks()


def one(sampler: Staircase) -> int:
    """Return one fresh draw.

    Parameters
    ----------
    sampler : Staircase
        What to draw from.

    Returns
    -------
    int
    """
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
        while len(stocks.by_sampler) >= _SAMPLERS:
            del stocks.by_sampler[next(iter(stocks.by_sampler))]
        stocks.by_sampler[sampler] = stock
        return value


def _after_fork_in_child() -> None:
    global _stocks
    _stocks = _Stocks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
