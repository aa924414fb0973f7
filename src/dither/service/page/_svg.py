"""What pictures share that are drawn on the server: scales and ticks."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["Scale", "ticks"]


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels, along a line or along its logarithm.

    Parameters
    ----------
    low, high : float
        Values at both ends; not the same.
    start, end : float
        Pixels there.
    log : bool
        Whether equal ratios are equally long; then both values are above 0.

    Examples
    --------
    >>> Scale(0, 10, 40, 240)(2.5), Scale(0.1, 10, 0, 100, log=True)(1)
    (90.0, 50.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log(low), math.log(high), math.log(value)
        share = (at - low) / (high - low)
        return round(self.start + share * (self.end - self.start), 1)


def ticks(high: float, most: int = 5) -> list[float]:
    """Round values from 0 up to ``high``, so many at the most besides 0.

    Examples
    --------
    >>> ticks(9), ticks(0.3), ticks(0)
    ([0.0, 2.0, 4.0, 6.0, 8.0], [0.0, 0.1, 0.2, 0.3], [0.0])
    """
    if not high > 0:
        return [0.0]
    step = 10.0 ** math.floor(math.log10(high / most))
    while high / step > most:
        step *= 2.5 if f"{step:e}".startswith("2") else 2
    count = math.floor(high / step * (1 + 1e-9))  # a picture's tick may be off by a hair
    return [float(f"{i * step:.6g}") for i in range(count + 1)]
