"""A smooth stand-in for the epsilon of a total, for searches alone.

By the saddle point of the inversion integral of delta, with K the log of E[e^{cL}] ::

    delta  ~  exp(K(c) - c·epsilon) / (c(c + 1)·sqrt(2·pi·V(c))),  V = K'' + 1/c² + 1/(c + 1)²

so epsilon is near the least over c of (K(c) - log(c(c + 1)) - log(2·pi·V(c))/2 - log delta)/c.
It is within a few per cent of delta even where the loss is one atom, its slopes are those of the
truth, and it takes microseconds: K is a sum over groups, each kept on one grid of c.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from dither.privacy import Loss
from dither.privacy._side import Side, sides
from dither.privacy.division._descent import Array
from dither.privacy.laws.sampled.gaussian import SampledGaussianTerm
from dither.privacy.laws.term import Term

__all__ = ["LossSaddle", "PureSaddle", "moments_known"]


_POINTS = 200
_APART = 2e-3
"""Relative distance of the points that K'' is taken from."""


class Saddle(ABC):
    """Totals of ``counts[i]`` mechanisms of each group, as a function of levels and slack.

    Parameters
    ----------
    counts : array, shape (m,)
    epsilon, delta : float
        Near which totals are wanted.
    """

    def __init__(self, counts: Array, epsilon: float, delta: float) -> None:
        self.counts, self.delta = counts, delta
        middle = max(-math.log(delta), 1.0) / epsilon
        c = np.geomspace(0.02 * middle, 3e3 * middle, _POINTS)
        self.c = np.minimum(c, 1e7 / (1 + 2 * _APART))
        self.at = np.concatenate([self.c * (1 - _APART), self.c, self.c * (1 + _APART)])

    def total(self, levels: Array, slack: float) -> float:
        """About the epsilon at ``slack``, or at delta where the theorem has no slack."""
        log_delta = math.log(slack or self.delta)
        return max(self._epsilon(k, log_delta) for k in self.moments(levels))

    @abstractmethod
    def moments(self, levels: Array) -> Array:
        """K on the grid, a row for each direction."""

    def _epsilon(self, k: Array, log_delta: float) -> float:
        c, n = self.c, _POINTS
        below, here, above = k[:n], k[n : 2 * n], k[2 * n :]
        with np.errstate(invalid="ignore", over="ignore"):
            # A second difference that rounding makes negative is none.
            bend = np.maximum((above - 2 * here + below) / (_APART * c) ** 2, 0.0)
            spread = np.where(np.isfinite(bend), bend, 0.0) + 1 / c**2 + 1 / (c + 1) ** 2
            value = (here - np.log(c * (c + 1)) - 0.5 * np.log(2 * np.pi * spread) - log_delta) / c
        value = value[np.isfinite(value)]
        # A start for engines that prove their own.
        return max(float(value.min()), 1e-12) if value.size else 1e300


class PureSaddle(Saddle):
    """Levels are epsilons of pure mechanisms: K = log cosh(e(c + 1/2)) - log cosh(e/2)."""

    def moments(self, levels: Array) -> Array:
        """K on the grid, one row."""
        x = levels[:, None]
        inner = _log_cosh(x * (self.at[None, :] + 0.5)) - _log_cosh(x / 2)
        total: Array = (self.counts[:, None] * inner).sum(axis=0)[None, :]
        return total


class LossSaddle(Saddle):
    """Levels are parameters of losses.

    Parameters
    ----------
    makes : sequence of callable
        From a level to a loss whose `moments_known`.
    """

    def __init__(
        self,
        makes: Sequence[Callable[[float], Loss]],
        counts: Array,
        epsilon: float,
        delta: float,
    ) -> None:
        super().__init__(counts, epsilon, delta)
        self.makes = makes
        self.kept: dict[tuple[int, float], Array] = {}

    def moments(self, levels: Array) -> Array:
        """K on the grid, a row for each direction."""
        rows = [self._one(i, x) for i, x in enumerate(levels.tolist())]
        result: Array = sum(
            (n * row for n, row in zip(self.counts.tolist(), rows, strict=True)),
            np.zeros((1, len(self.at))),
        )
        return result

    def _one(self, i: int, level: float) -> Array:
        if (i, level) not in self.kept:
            rows = []
            for side in sides(self.makes[i](level)):
                terms = _terms(side)
                assert terms is not None, "moments_known is asked first"
                rows.append(sum((t.log_moment(self.at) for t in terms), np.zeros_like(self.at)))
            self.kept[i, level] = np.array(rows)
        return self.kept[i, level]


def moments_known(loss: Loss) -> bool:
    """Whether log-moments of both directions are at hand, quicker than the certified engines."""
    return all(_terms(side) is not None for side in sides(loss))


def _terms(side: Side) -> Sequence[Term] | None:
    terms = side.upper_terms
    # What moments say is closer where pairs fail with a chance that is not small beside a delta.
    if terms is None or side.infinite_of_moments < side.infinite:
        terms = side.moments
    # A sampled Gaussian's moments are quadratures.
    if terms is None or any(isinstance(t, SampledGaussianTerm) for t in terms):
        return None
    return terms


def _log_cosh(x: Array) -> Array:
    """Of x of at least 0."""
    result: Array = x + np.log1p(np.exp(-2 * x)) - math.log(2)
    return result
