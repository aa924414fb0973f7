"""Single draws from a stock: each thread keeps a few drawn values a sampler and serves each once.

A stock belongs to one thread of one process. It is emptied in a forked child before the child can
draw, since parent and child would otherwise serve the same values.
"""

from __future__ import annotations

import os
import threading

from dither.noise.staircase import Staircase
from dither.numeric import secure_words

__all__ = ["one"]

_STOCK = 512
_SAMPLERS = 16


class _Stocks(threading.local):
    def __init__(self) -> None:
        self.pid = os.getpid()
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
    stocks = _stocks
    if stocks.pid != os.getpid():
        stocks.by_sampler = {}
        stocks.pid = os.getpid()
    try:
        # Popping takes the value out in one step, so not even a signal handler that draws in
        # between is served the same one.
        return stocks.by_sampler[sampler].pop()
    except (KeyError, IndexError):
        stock = sampler.draw(_STOCK, secure_words()).tolist()
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
