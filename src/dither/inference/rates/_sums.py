"""What rates are told from: events and person-time of public cells, with their noise.

Release. With y events in [0, m] and time t in [0, T], each clamped, u = y/m and v = t/T, of each
cell of stratum and group

    Σ u,  k·Σ v,   and where dispersion is asked for   k·Σ u²,  h·Σ u·v,  h·Σ v².

A row is in one cell, or in none. u and v and their products are in [0, 1], so that a row that is
added or removed moves the vector by at most

    l1 = 1 + 2·k + 2·h,     l2² = 1 + 2·k² + 2·h²    (1 + k, 1 + k² without squares),

which a row at both bounds does. A row that is replaced, with one cell in all, moves each entry by
at most its weight: u and v go from 0 to 1 at the furthest, and l1 and l2² are the same. With
several cells it may leave one and enter another: both double, the two vectors having entries of no
sign and, in different cells, none in common; in one cell they are closer. Values are clamped on a
lattice of 2^20 steps to a half, and sums are exact fractions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.engine._release import (
    Noise,
    best_noise,
    exact_sum,
    exact_sum_of_squares,
    seen_at_best,
    spread_of,
)
from dither.privacy import Loss, Neighbours

__all__ = ["RateSums", "RatesRelease", "weights_named"]

OF_TIME, OF_PRODUCTS = Fraction(1, 2), Fraction(1, 8)
"""k and h: events tell the most, and squares enter the width of an interval alone."""

Cells = tuple[Floats, Floats, npt.NDArray[np.int64]]


def weights_named(dispersed: bool) -> dict[str, Fraction]:
    """Of each cell: events, time, and their squares and products, with their weights.

    Examples
    --------
    >>> weights_named(False)
    {'y': Fraction(1, 1), 't': Fraction(1, 2)}
    """
    found = {"y": Fraction(1), "t": OF_TIME}
    if dispersed:
        found |= {"yy": OF_TIME, "yt": OF_PRODUCTS, "tt": OF_PRODUCTS}
    return found


@dataclass(frozen=True, eq=False)
class RateSums:
    """Sums as they were released, in events and person-time.

    Parameters
    ----------
    values : mapping of str to array of float, shape (cells,)
        "y", "t" and, of dispersed events, "yy", "yt", "tt".
    draw : callable
        Of a generator and a number of draws: noise of the same, shape (B, cells) each.
    deviations : mapping of str to float
        Of that noise.
    rows : int
        As it is public, or 0.
    most : float
        Events of a row, at most.
    """

    values: Mapping[str, Floats]
    draw: Callable[[np.random.Generator, int], Mapping[str, Floats]]
    deviations: Mapping[str, float]
    rows: int = 0
    most: float = math.inf


@dataclass(frozen=True)
class RatesRelease:
    """Layer 1: events and person-time of each cell.

    Parameters
    ----------
    most_events, most_time : Fraction
        m and T, above 0.
    cells : int
    dispersed : bool
        Whether squares leave as well.
    asked : Target

    Attributes
    ----------
    noise : Laplace or Gaussian
        Of every sum.
    loss : Loss
    """

    most_events: Fraction
    most_time: Fraction
    cells: int
    dispersed: bool
    asked: Target
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        weights = self._weights.values()
        double = 2 if self.asked.replace and self.cells > 1 else 1
        noise, loss = best_noise(
            asked=self.asked,
            dimension=self.cells * len(weights),
            l1=double * sum(weights, Fraction(0)),
            l2_squared=double * sum((w**2 for w in weights), Fraction(0)),
        )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    @property
    def _weights(self) -> dict[str, Fraction]:
        return weights_named(self.dispersed)

    @property
    def _units(self) -> dict[str, float]:
        """What each sum, less its weight, is in events and time."""
        m, t = float(self.most_events), float(self.most_time)
        return {"y": m, "t": t, "yy": m * m, "yt": m * t, "tt": t * t}

    def statistic(self, rows: Cells) -> tuple[Fraction, ...]:
        """The exact vector; a row that misses something, or has a cell below 0, is left out."""
        events, time, cells = rows
        held = (cells >= 0) & ~np.isnan(events) & ~np.isnan(time)
        found: list[Fraction] = []
        for cell in range(self.cells):
            own = held & (cells == cell)
            found += self._of_cell(
                _points(events[own], self.most_events), _points(time[own], self.most_time)
            )
        return tuple(found)

    def _of_cell(self, u: Any, v: Any) -> list[Fraction]:
        one = 2 * Bounds.steps
        found = [Fraction(exact_sum(u), one), OF_TIME * Fraction(exact_sum(v), one)]
        if self.dispersed:
            squares = [exact_sum_of_squares(x) for x in (u, u - v, v)]
            # 2·u·v = u² + v² - (u - v)², whose integers are all within 64 bits in parts.
            squares[1] = (squares[0] + squares[2] - squares[1]) // 2
            weights = (self._weights[name] for name in ("yy", "yt", "tt"))
            found += [w * Fraction(s, one**2) for w, s in zip(weights, squares, strict=True)]
        return found

    def release(self, rows: Cells, public: int = 0) -> RateSums:
        """The sums with noise: the one step that touches data."""
        exact = self.noise.release(self.statistic(rows))
        flat = np.array([float(v) for v in exact])
        scale, spread = self._scale, spread_of(self.noise)
        deviations = {name: spread.deviation * by for name, by in scale.items()}
        draw, most = partial(self._drawn, flat.size), float(self.most_events)
        return RateSums(self._named(flat), draw, deviations, public, most)

    def _drawn(self, length: int, rng: np.random.Generator, size: int) -> Mapping[str, Floats]:
        return self._named(spread_of(self.noise).draw(rng, (size, length)))

    @property
    def _scale(self) -> dict[str, float]:
        units = self._units
        return {name: units[name] / float(w) for name, w in self._weights.items()}

    def _named(self, flat: Floats) -> dict[str, Floats]:
        each = flat.reshape(*flat.shape[:-1], self.cells, -1)
        return {name: each[..., i] * by for i, (name, by) in enumerate(self._scale.items())}

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row at both bounds that comes, goes, or moves."""
        none = (np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64))
        full = (np.array([9.0]), np.array([9.0]), np.array([0]))
        moved = (full[0], full[1], np.array([1]))
        for neighbours in Neighbours:
            asked = Target(Fraction(1), Fraction(0), neighbours)
            design = cls(Fraction(2), Fraction(3), 2, True, asked)
            first = full if design.asked.replace else none
            seen = seen_at_best(design, first, moved)
            yield Subject(f"events and time, {neighbours.value}", seen, first, moved)


def _points(values: Floats, most: Fraction) -> npt.NDArray[np.int64]:
    """Values clamped to [0, most], in steps of 2^-21 of it."""
    return np.asarray(Bounds(Fraction(0), most).lattice(values) + Bounds.steps)
