"""Balls to doubles and back, and a precision that no other thread changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any

__all__ = [
    "Ball",
    "PowerSum",
    "down",
    "library",
    "log_ends",
    "phi",
    "powers",
    "precision",
    "tail",
    "transforms",
    "up",
    "within",
]


Ball = Any
"""A `flint.arb`; the library is imported when it is first needed."""

_LOCK = RLock()


def library() -> Any:
    """python-flint, imported on first use."""
    import flint

    return flint


@contextmanager
def precision(bits: int) -> Iterator[Any]:
    """The library at ``bits`` of working precision.

    Its precision is one number for all threads. A change from outside would not make a ball wrong,
    only wider; the lock keeps our own threads from doing that.
    """
    flint = library()
    with _LOCK:
        before = flint.ctx.prec
        flint.ctx.prec = max(64, bits)
        try:
            yield flint
        finally:
            flint.ctx.prec = before


def down(x: Ball) -> float:
    """A double below every number in the ball; -inf where there is none."""
    value = float(x.lower()) if x.is_finite() else -math.inf
    # The conversion may round up: the double below is below the ball either way.
    return math.nextafter(value, -math.inf)


def up(x: Ball) -> float:
    """A double above every number in the ball; inf where there is none."""
    value = float(x.upper()) if x.is_finite() else math.inf
    # The conversion may round down: the double above is above the ball either way.
    return math.nextafter(value, math.inf)


def log_ends(low: Ball, high: Ball) -> tuple[float, float]:
    """Doubles around the logarithms of a number in [0, 1] that lies between two balls."""
    # A ball that knows nothing proves no more than that a chance lies in [0, 1].
    if not (low.is_finite() and high.is_finite()):
        return -math.inf, 0.0
    least, most = low.lower(), high.upper()
    return (
        down(least.log()) if least > 0 else -math.inf,
        # 0 has no logarithm; a finite stand-in keeps differences of two ends from being nan.
        min(up(most.log()), 0.0) if most > 0 else -1e300,
    )


def within(bound: Ball) -> Ball:
    """The ball of all numbers between -bound and bound."""
    return library().arb(0, bound.upper())


def tail(x: Ball) -> Ball:
    """Pr[N(0, 1) > x]."""
    return (x / library().arb(2).sqrt()).erfc() / 2


def phi(x: Ball) -> Ball:
    """The normal distribution function."""
    return (-x / library().arb(2).sqrt()).erfc() / 2


def powers(x: Ball, count: int) -> list[Ball]:
    """x^0, ..., x^(count-1), each from two that are half as far.

    A complex ball is a square, and turning a square into the next square grows it: by products with
    x itself 1.4^count times, so count^1.5 times.
    """
    found = [x**0, x]
    while len(found) < count:
        half = len(found) // 2
        # Both exponents are about a half: an error goes through log2(count) products, not count.
        found.append(found[half] * found[len(found) - half])
    return found[:count]


def transforms(
    masses: Sequence[Ball], losses: Sequence[Ball], step: float, count: int
) -> list[Ball]:
    """Σ mass·e^{i·step·k·loss} for k < count: powers of one factor each, in two levels."""
    flint = library()
    turns = [(flint.acb(0, step) * loss).exp() for loss in losses]
    # Two times the root of count powers a factor, in place of count.
    block = max(1, math.isqrt(count))
    fine = [[m * v for v in powers(t, block)] for m, t in zip(masses, turns, strict=True)]
    coarse = [powers(turn**block, -(-count // block)) for turn in turns]
    product = flint.acb_mat(coarse).transpose() * flint.acb_mat(fine)
    return [entry for row in product.tolist() for entry in row][:count]


class PowerSum:
    """Re Σ value_j·x^j for any x, in two levels."""

    def __init__(self, values: Sequence[Ball]) -> None:
        flint = library()
        block = math.isqrt(len(values) - 1) + 1
        # Zeros to fill the last row add nothing.
        filled = [*values, *[flint.acb(0)] * (-len(values) % block)]
        self._rows = flint.acb_mat(len(filled) // block, block, filled)

    def __call__(self, x: Ball) -> Ball:
        """At x."""
        rows, matrix = self._rows, library().acb_mat
        fine = matrix(rows.ncols(), 1, powers(x, rows.ncols()))
        coarse = matrix(1, rows.nrows(), powers(x ** rows.ncols(), rows.nrows()))
        return (coarse * (rows * fine))[0, 0].real
