"""Coefficients from a noisy score at a point and the noisy slope of that score.

Layers 2 and 3 of `dither.inference.logistic_regression` and of boosted linear regression, whose
releases (`ScoreRelease`) tell of a point β̄, the score V there with noise, and its slope H with
noise.

Model. At the truth β the score of the rows themselves is of expectation 0: of a logistic regression
Σ w·(p(β) - y)·u, with covariance at most H as w <= 1; of a linear one with covariance at most σ²·H.
To first order it is V + H·(β - β̄) without the noise of either. So δ = β - β̄ is the coefficient of a
linear regression with the moments H and -V and residuals of variance 1, or σ², and all of
`dither.inference.regression._linear_models` holds of it: estimate, floor, simulated releases, and
the intervals of T, which are infinite where noise drowns H. What it leaves out is how H changes
between β̄ and β: where that could matter `ScoreModel.valid` says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.inference.engine._inputs import Floats
from dither.inference.regression._descent import SQUARE, ScoreRelease
from dither.inference.regression._linear_models import LinearModel, SolvedMoments
from dither.inference.regression._moments import Moments

__all__ = ["ScoreModel"]

_REACH = _UNCOUNTED = 0.4


@dataclass(frozen=True, eq=False)
class _ScoreNoise:
    """Layer 2, the noise of a score and of an information, as `NoisyMoments` has that of moments.

    Parameters
    ----------
    size : int
        D.
    deviation : float
        Of a product above the diagonal of the information.
    score : float
        Deviation of the score.
    """

    size: int
    deviation: float
    score: float

    @cached_property
    def of_gram(self) -> Floats:
        """Variances of the noise of the information, shape (D, D)."""
        weights = np.where(np.eye(self.size) > 0, float(SQUARE), 1.0)
        return np.asarray(self.deviation**2 / weights**2)

    @property
    def of_cross(self) -> float:
        """The variance of the noise of the score."""
        return self.score**2

    def draw(self, rng: np.random.Generator, size: int) -> Moments:
        """Simulated noise."""
        drawn = rng.standard_normal((size, self.size, self.size)) * np.sqrt(self.of_gram)
        upper = np.triu(drawn)
        gram = upper + np.swapaxes(np.triu(drawn, 1), 1, 2)
        return Moments(gram, rng.normal(0.0, self.score, (size, self.size)), np.zeros(size))


@dataclass(frozen=True)
class _Size:
    size: int
    functional: bool = False


class ScoreModel(LinearModel):
    """Layers 2 and 3 of a logistic regression: `LinearModel` of δ, the way from β̄ to β."""

    def __init__(self, scored: ScoreRelease, variance: float = 1.0) -> None:
        object.__setattr__(self, "design", _Size(len(scored.at) - 1))
        object.__setattr__(self, "released", scored)
        object.__setattr__(self, "rows", None)
        object.__setattr__(self, "_spread", variance)

    @cached_property
    def noise(self) -> Any:
        """What the score and the information left with."""
        found: Any = self.released
        return _ScoreNoise(len(found.at), found.of_information, found.of_score)

    @property
    def at(self) -> Floats:
        """β̄."""
        found: Any = self.released
        return np.asarray(found.at)

    @cached_property
    def solved(self) -> SolvedMoments:
        """The estimate."""
        found: Any = self.released
        return self.solve(Moments(found.information, -found.score, np.array(0.0)))

    def solve(self, moments: Moments) -> SolvedMoments:
        """Estimates from moments, one set or a batch; the variance of residuals is known."""
        solved = super().solve(moments)
        return SolvedMoments(
            solved.moments,
            solved.values,
            solved.vectors,
            solved.slopes,
            np.full(solved.slopes.shape[:-1], self._spread),  # type: ignore[attr-defined]
        )

    def valid(self, ways: Floats) -> npt.NDArray[np.bool_]:
        """Whether T of combinations is what it is taken to be, out to the ends of 95 % intervals.

        Over a way δ the slope H changes by a factor within exp(±|u·δ|) (Bach, 2010). Let r(δ) be
        the root mean square of u·δ, each row with the weight that it has in H. Then the mean of H
        over the way errs by about half of r(δ), which is made small where the ways are long:

        * the way from β̄ to an end, over which H is taken to be constant;
        * δ itself, of which r(δ)·|a·δ|/2 is not counted;
        * the way between two points of whose scores the mean was taken, of which an eighth of the
          same product is not.

        Where r of the first is at most 2/5, and what is not counted of the others is no more than
        2/5 of a standard error, intervals of 95 % held in 93 % of simulated tables or more, whether
        slopes were flat, moderate or steep (``odds`` of ``benchmarks/inference/regression.py``).
        """
        found: Any = self.released
        solved, gram = self.solved, self.solved.gram
        weight = max(1.0, float(solved.moments.gram[0, 0]))

        def reach(way: Floats) -> float:
            return math.sqrt(max(0.0, float(way @ gram(way))) / weight)

        apart = np.zeros(ways.shape[1]) if found.apart is None else found.apart
        held = []
        for a in ways:
            line = solved.inverse(a)
            moved = float(solved.variance) * gram(line) + self._of_noise(line, solved.slopes)
            error = math.sqrt(max(float(line @ moved), 1e-300))
            uncounted = (
                reach(solved.slopes) * abs(float(a @ solved.slopes)) / 2
                + reach(apart) * abs(float(a @ apart)) / 8
            )
            ends = reach(solved.inverse(moved) * (2 / error))
            held.append(ends <= _REACH and uncounted <= _UNCOUNTED * error)
        return np.array(held)

    def simulate(self, rng: np.random.Generator, size: int) -> Moments:
        """Layer 2: scores and informations that so many releases would have given."""
        at = self.solved
        values = np.maximum(at.values, 0.0)
        gram = (at.vectors * values) @ at.vectors.T
        spread = np.sqrt(values * float(at.variance))
        off = (rng.standard_normal((size, len(values))) * spread) @ at.vectors.T
        noise = self.noise.draw(rng, size)
        return Moments(gram + noise.gram, gram @ at.slopes + off + noise.cross, noise.square)
