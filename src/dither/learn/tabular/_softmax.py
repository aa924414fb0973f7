"""Logistic regression for prediction: noisy scores along a noisy Gram matrix.

Rows. A row has regressors u = (1, z), at most L = √(S + 1) long, and the weight w = min(1, R/‖u‖),
as in `dither.inference.regression._descent`, so that w·u is at most R long. A row without a class
that was declared is 0 throughout.

Release. First leaves M = Σ (w·u)(w·u)ᵀ; then, in each of T rounds at coefficients β, of shape
(D, K), that are known by then, the scores Σ w·u·gᵀ with g = the indicator of the row's class less
the probabilities of the classes at u·β. Of two classes the second alone has coefficients, and g is
one number. Products on the diagonal of M have the weight 7/10 <= √½.

Sensitivity. Both parts of g sum to 1 and are at least 0, so that ‖g‖² is at most 2 (`_boosting`),
and 1 - 1/K in the first round, where all probabilities are 1/K: (1 - 1/K)² + (K - 1)/K². Of two
classes |g| is at most 1, as a probability is within [0, 1], and 1/2 in the first round. Under
ADD_REMOVE a row adds at most R⁴/2 to M, squared, and R²·‖g‖² to a round. Under REPLACE M moves by
twice as much, squared (`dither.inference.regression._descent`), and a round by four times. Each is
scaled so that together they move by at most 1 in the L2 norm, and gets Gaussian noise of one
deviation: one Gaussian mechanism of that many coordinates, though what is asked later depends on
what was answered (Dong, Roth and Su, 2022).

Estimate. The Hessian is at most (I - 1·1ᵀ/K)/2 ⊗ M (Böhning, 1992), so that a step of 2·M⁻¹ along
the scores never goes too far; of two classes it is at most M/4, as p·(1 - p) is. M has no
eigenvalue below the floor of its noise, and a ridge as large as the noise of a score; steps keep
some of their pace; the mean of the last three quarters is taken: the first steps differ most from
where they lead, but with little epsilon each further round that is averaged takes off noise. For
coefficients with intervals there is `dither.inference.regression._descent`, which spends on the
information at the end too, and takes more and shorter steps than predictions gain by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._inputs import Bounds, Target
from dither.inference.engine._release import Noise, fixed_noise
from dither.inference.regression._descent import (
    WeightedRows,
    released_at,
    seen_in_parts,
    symmetric,
    weight_of,
)
from dither.learn.tabular._boosting import UNIT, residuals_of_classes
from dither.privacy import Loss, Neighbours

__all__ = ["SoftmaxRelease"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_FOR_GRAM = Fraction(1, 20)
_ROUNDS, _AVERAGED = 8, 6
_PACE, _RIDGE = 0.5, 1.0


@dataclass(frozen=True)
class SoftmaxRelease:
    """A Gram matrix, and the scores that are asked for.

    Parameters
    ----------
    size : int
        Columns of the regressors, without the intercept.
    terms : int
        S.
    classes : int
        K.
    asked : Target
    radius : Fraction
        R, in units of the lattice's ends.

    Attributes
    ----------
    of_gram, of_first, of_score : Fraction
        What each is multiplied by.
    noise : Gaussian
    loss : Loss
        Of all.
    """

    size: int
    terms: int
    classes: int
    asked: Target
    radius: Fraction
    of_gram: Fraction = field(init=False)
    of_first: Fraction = field(init=False)
    of_score: Fraction = field(init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    @property
    def outputs(self) -> int:
        """How many classes have coefficients."""
        return 1 if self.classes == 2 else self.classes

    def __post_init__(self) -> None:
        matrix, first, score = self.moves()
        share = (1 - _FOR_GRAM) / _ROUNDS
        found = {
            "of_gram": weight_of(_FOR_GRAM, matrix),
            "of_first": weight_of(share, first),
            "of_score": weight_of(share, score),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)
        d = self.size + 1
        noise, loss = fixed_noise(
            asked=self.asked,
            dimension=d * (d + 1) // 2 + _ROUNDS * d * self.outputs,
            l2_squared=self.moved(),
        )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    def moves(self) -> tuple[Fraction, Fraction, Fraction]:
        """Squared L2 sensitivities: of the Gram matrix, the first round, and each later one."""
        r2 = self.radius**2
        matrix, score = (Fraction(1), 4) if self.asked.replace else (Fraction(1, 2), 1)
        if self.classes == 2:
            return matrix * r2**2, score * r2 / 4, score * r2
        return matrix * r2**2, score * r2 * (1 - Fraction(1, self.classes)), score * r2 * 2

    def moved(self) -> Fraction:
        """That of all that leaves, scaled; at most 1."""
        matrix, first, score = self.moves()
        later = (_ROUNDS - 1) * self.of_score**2 * score
        return self.of_gram**2 * matrix + self.of_first**2 * first + later

    def score(self, rows: WeightedRows, labels: Integers, slopes: Floats) -> tuple[Fraction, ...]:
        """The exact scores at coefficients, one column a class that has some, class by class."""
        margins = np.stack([rows.margin(column) for column in slopes.T], axis=1)
        lattice = Bounds.steps // UNIT
        wrong = residuals_of_classes(labels, self.classes)(margins) * lattice
        found: list[Fraction] = []
        for part in wrong.T:
            found += rows.total(part, rows.weights)
        return tuple(found)

    def release(self, points: Integers, labels: Integers) -> Floats:
        """The one step that touches rows: coefficients, shape (K, D), or (1, D) of two classes.

        Parameters
        ----------
        points : array of int, shape (n, size + 1)
            On the lattice; the last is ``MISSING`` for a row that does not count.
        labels : array of int, shape (n,)
        """
        rows, d, k = WeightedRows.of(points, self.radius), self.size + 1, self.outputs
        # A row of zeros adds nothing, whatever its label; the table of residuals has one for it.
        labels = np.minimum(labels, self.classes - 1)
        gram = symmetric(released_at(self.noise, self.of_gram, rows.gram(rows.weights)), d)
        deviation = math.sqrt(self.noise.variance)
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, deviation / float(self.of_gram) * math.sqrt(d))
        curvature = 0.25 if k == 1 else 0.5
        firm = curvature * values + _RIDGE * deviation / float(self.of_score)
        slopes, pace, mean = np.zeros((d, k)), np.zeros((d, k)), np.zeros((d, k))
        for turn in range(_ROUNDS):
            weight = self.of_score if turn else self.of_first
            seen = released_at(self.noise, weight, self.score(rows, labels, slopes))
            score = seen.reshape(k, d).T
            if k > 1:
                score = score - score.mean(axis=1, keepdims=True)
            pace = _PACE * pace + vectors @ ((vectors.T @ score) / firm[:, None])
            # Far beyond what a table of exponentials tells apart, a coefficient says no more.
            slopes = np.clip(slopes + pace, -1e6, 1e6)
            if turn >= _ROUNDS - _AVERAGED:
                mean += slopes / _AVERAGED
        return mean.T

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        asked = Target(Fraction(1), delta, Neighbours.ADD_REMOVE)
        one = np.full((1, 1), Bounds.steps)
        two = np.concatenate([one, one])
        # Where the row is as wrong as can be, one class has a residual of 1 and another of -1.
        for name, wrong, even in (
            ("scores of two classes", (30.0,), (-0.5,)),
            ("scores of several classes", (-30.0, 30.0, 0.0), (2 / 3, -1 / 3, -1 / 3)),
        ):
            design = cls(0, 0, max(2, len(wrong)), asked, Fraction(1))
            yield Subject(name, _audited(design, wrong, even), one, two, delta=delta)


def _audited(
    design: SoftmaxRelease, wrong: Sequence[float], even: Sequence[float]
) -> Callable[[Integers, int], Floats]:
    """What leaves of rows of the first class, each number seen as much as a row moves it."""

    def run(points: Integers, size: int) -> Floats:
        rows, labels = WeightedRows.of(points, design.radius), np.zeros(len(points), np.int64)
        first = design.score(rows, labels, np.zeros((1, len(even))))
        later = design.score(rows, labels, np.array([wrong]))
        moves = (-1.0,) if len(wrong) == 1 else (1.0, -1.0)
        parts = [
            (rows.gram(rows.weights)[0], design.of_gram, 0.7),
            *[(v, design.of_first, by) for v, by in zip(first, even, strict=True)],
            *[(v, design.of_score, by) for v, by in zip(later, moves, strict=False)]
            * (_ROUNDS - 1),
        ]
        return seen_in_parts(design.noise, parts, size)

    return run
