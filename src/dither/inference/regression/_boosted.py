"""BoostedAdaSSP: linear regression by a few noisy steps, each along what the last one left.

Rows are those of `dither.inference.regression._descent`, with responses t in [-1, 1] and the
weights v = w² = min(1, R²/‖u‖²), so that √v·u and v·u are at most R long. Weights depend on
regressors alone.

Release. First leaves H = Σ v·u·uᵀ; then, in each of T rounds at slopes β that are known by then,
Σ v·u·ψ(t - u·β), where ψ cuts residuals to [-1, 1] in the first round and to [-1/2, 1/2] in
others; and at the end, at the mean β̄ of the later half of the points, Σ v·min(r², 1), Σ v·t² and
Σ v·[|r| < 1/2] for the residuals r.

Sensitivity. Under ADD_REMOVE a row adds at most R⁴/2 to H, squared; R²·c² to a round that cuts at
c; and 3 to the last three numbers. Under REPLACE two rows differ by at most R⁴ in H (as products of
the rows are not below 0 when squared), by 4·R²·c² in a round, and by 3 at the end, where each
number lies in [0, 1]. All is scaled to 1 together and gets Gaussian noise of one deviation, as in
`_descent`.

Estimate. β moves by H⁻¹·(what the round gave), H with no eigenvalue below the floor of its noise.
A smaller cut needs less noise, and rounds undo what the floor and the cut have taken: so far it is
the paper's. Here the later half of the rounds is averaged, and `ScoreModel` makes intervals of β̄,
what its rounds gave and H: H times the share of residuals that are not cut is its slope, and v <= 1
makes σ²·H no smaller than its covariance.

Source. Tang, Aydöre, Kearns, Rho, Roth, Wang, Wang and Wu, "Improved differentially private
regression via gradient boosting", SaTML 2024; Wang, "Revisiting differentially private linear
regression", UAI 2018.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

import numpy as np

from dither._subjects import Subject
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.engine._release import Noise, fixed_noise
from dither.inference.regression._descent import (
    Integers,
    ScoreRelease,
    WeightedRows,
    released_at,
    seen_in_parts,
    symmetric,
    weight_of,
)
from dither.inference.regression._formula import MISSING
from dither.inference.regression._scores import ScoreModel
from dither.privacy import Loss, Neighbours

__all__ = ["Boosted", "BoostedModel", "BoostedRelease"]

_FOR_GRAM, _AT_END = Fraction(3, 10), Fraction(1, 20)
_ROUNDS = 4
_KEPT = _ROUNDS // 2
_CUTS = (Fraction(1), *[Fraction(1, 2)] * (_ROUNDS - 1))


@dataclass(frozen=True, eq=False)
class Boosted:
    """What a release tells, in units of the lattice.

    Parameters
    ----------
    scored : ScoreRelease
        The point, the negative of what the later rounds gave, and the slope of that.
    weight : float
        Σ v, at least 1.
    variance, total : float
        Of residuals and of the response, in [0, 1].
    """

    scored: ScoreRelease
    weight: float
    variance: float
    total: float


class BoostedModel(ScoreModel):
    """Layers 2 and 3: those of a score, with residuals as they were at the end.

    Parameters
    ----------
    boosted : Boosted
    rows : int or None
        The public n.
    """

    def __init__(self, boosted: Boosted, rows: int | None) -> None:
        super().__init__(boosted.scored, boosted.variance)
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "_boosted", boosted)

    @property
    def n(self) -> float:
        """What rows weigh together."""
        return float(self._boosted.weight)  # type: ignore[attr-defined]

    @property
    def variance(self) -> float:
        """That of the residuals."""
        return float(self._boosted.variance)  # type: ignore[attr-defined]

    @property
    def rsquared(self) -> float:
        """The share of the variance of the response that is explained, in [0, 1]."""
        total = self._boosted.total  # type: ignore[attr-defined]
        return min(1.0, max(0.0, 1.0 - self.variance / total)) if total > 0 else 0.0


@dataclass(frozen=True)
class BoostedRelease:
    """Layer 1: a Gram matrix, the rounds, and three numbers of the residuals at the end.

    Parameters
    ----------
    size : int
        Columns of the regressors, without the intercept.
    asked : Target
    radius : Fraction
        R, in units of the lattice's ends.

    Attributes
    ----------
    of_gram, of_end : Fraction
        What each is multiplied by.
    of_rounds : tuple of Fraction
    noise : Gaussian
    loss : Loss
        Of all.
    """

    size: int
    asked: Target
    radius: Fraction
    of_gram: Fraction = field(init=False)
    of_rounds: tuple[Fraction, ...] = field(init=False)
    of_end: Fraction = field(init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        moved = self.moves()
        share = (1 - _FOR_GRAM - _AT_END) / _ROUNDS
        found = {
            "of_gram": weight_of(_FOR_GRAM, moved[0]),
            "of_rounds": tuple(weight_of(share, m) for m in moved[1:-1]),
            "of_end": weight_of(_AT_END, moved[-1]),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)
        d = self.size + 1
        noise, loss = fixed_noise(
            asked=self.asked,
            dimension=d * (d + 1) // 2 + _ROUNDS * d + 3,
            l2_squared=self.moved(),
        )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    def moves(self) -> tuple[Fraction, ...]:
        """Squared L2 sensitivities: of the Gram matrix, each round, and the end."""
        r2 = self.radius**2
        matrix, score = (1, 4) if self.asked.replace else (Fraction(1, 2), 1)
        return (matrix * r2**2, *(score * r2 * cut**2 for cut in _CUTS), Fraction(3))

    def moved(self) -> Fraction:
        """That of all that leaves, scaled; at most 1."""
        weights = (self.of_gram, *self.of_rounds, self.of_end)
        return sum((w**2 * m for w, m in zip(weights, self.moves(), strict=True)), Fraction(0))

    def read(self, points: Integers) -> tuple[WeightedRows, Integers]:
        """Rows, and responses; 0 where something is missing."""
        answers = np.where(points[:, -1] == MISSING, 0, points[:, -1])
        return WeightedRows.of(points, self.radius), answers.astype(np.int64)

    def round(
        self, rows: WeightedRows, answers: Integers, slopes: Floats, cut: Fraction
    ) -> tuple[Fraction, ...]:
        """The exact Σ v·u·ψ(t - u·β)."""
        left = np.clip(self.residuals(rows, answers, slopes), -float(cut), float(cut))
        return rows.total(np.rint(left * Bounds.steps).astype(np.int64), rows.weights**2)

    @staticmethod
    def residuals(rows: WeightedRows, answers: Integers, slopes: Floats) -> Floats:
        """t - u·β of each row."""
        return np.asarray(np.nan_to_num(answers / Bounds.steps - rows.margin(slopes)))

    def end(
        self, rows: WeightedRows, answers: Integers, slopes: Floats
    ) -> tuple[Fraction, Fraction, Fraction]:
        """The exact Σ v·min(r², 1), Σ v·t² and Σ v·[|r| < 1/2]."""
        left = self.residuals(rows, answers, slopes)
        there = (rows.regressors[:, 0] > 0) * rows.weights**2
        each = (
            np.minimum(left**2, 1.0),
            (answers / Bounds.steps) ** 2,
            (np.abs(left) < float(_CUTS[-1])).astype(float),
        )
        sums = [np.trunc(there * v * Bounds.steps).astype(np.int64).sum() for v in each]
        first, second, third = (Fraction(int(v), Bounds.steps) for v in sums)
        return first, second, third

    def release(self, points: Integers) -> Boosted:
        """The one step that touches data."""
        (rows, answers), d = self.read(points), self.size + 1
        leave = partial(released_at, self.noise)
        gram = symmetric(leave(self.of_gram, rows.gram(rows.weights)), d)
        values, vectors = np.linalg.eigh(gram)
        deviation = math.sqrt(self.noise.variance)
        floor = 2 * deviation / float(self.of_gram) * math.sqrt(d)
        step = (vectors / np.maximum(values, floor)) @ vectors.T
        slopes, at, given = np.zeros(d), [], []
        for cut, weight in zip(_CUTS, self.of_rounds, strict=True):
            at.append(slopes)
            given.append(leave(weight, self.round(rows, answers, slopes, cut)))
            slopes = np.clip(slopes + step @ given[-1], -1e6, 1e6)
        middle = np.mean(at[_KEPT:], axis=0)
        squares, total, uncut = leave(self.of_end, self.end(rows, answers, middle))
        rowed = max(1.0, float(gram[0, 0]))
        mean = min(1.0, max(-1.0, float(given[0][0]) / rowed))
        # Where noise hides how many were cut, none is taken to have been.
        most = float(uncut) + 2 * deviation / float(self.of_end)
        share = min(1.0, max(0.5, most / rowed))
        scored = ScoreRelease(
            middle,
            -np.mean(given[_KEPT:], axis=0),
            share * gram,
            # The noise of the mean of the rounds that are kept.
            deviation / float(self.of_rounds[-1]) / math.sqrt(_ROUNDS - _KEPT),
            share * deviation / float(self.of_gram),
        )
        return Boosted(
            scored,
            rowed,
            min(1.0, max(0.0, float(squares) / max(1.0, rowed - d))),
            min(1.0, max(0.0, float(total) / rowed - mean**2)),
        )

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        design = cls(0, Target(Fraction(1), delta, Neighbours.ADD_REMOVE), Fraction(1))
        one = np.full((1, 1), Bounds.steps)
        two = np.concatenate([one, one])

        def run(points: Integers, size: int) -> Floats:
            rows, answers = design.read(points)
            far = np.array([-1.0])
            parts = [(rows.gram(rows.weights)[0], design.of_gram, 0.7)]
            parts += [
                (design.round(rows, answers, far, cut)[0], weight, float(cut))
                for cut, weight in zip(_CUTS, design.of_rounds, strict=True)
            ]
            parts += [(v, design.of_end, 1.0) for v in design.end(rows, answers, far)]
            return seen_in_parts(design.noise, parts, size)

        yield Subject("rounds of a boosted regression", run, one, two, delta=delta)
