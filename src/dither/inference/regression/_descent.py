"""Logistic regression by a few noisy scores, each taken where the last ones should be 0.

Rows. A row has regressors u = (1, z), at most L = √(S + 1) long (`MomentsRelease`), a sign s of ±1,
and the weight w = min(1, R/‖u‖), so that w·u is at most R long. The weight depends on regressors
alone: the score Σ w·(..)·u has expectation 0 at the true coefficients whatever R is, so that R says
how much noise there is and how much long rows count, but not where estimates tend to. A row that
misses something is 0 throughout, as if it were not there. Its own values alone decide what a row
adds, by operations on single numbers, wherever it stands.

Release. First leaves M = Σ (w·u)(w·u)ᵀ; then, in each of T rounds at coefficients β that are known
by then, the score Σ g·w·u with g = -s/(1 + exp(s·u·β)); then, at the mean β̄ of the later half of
the points at which scores were taken, the information H = Σ w·p·(1 - p)·u·uᵀ. Of matrices the
products above the diagonal leave as they are, those on it with the weight 7/10 <= √½.

Sensitivity. Under ADD_REMOVE a row adds at most R⁴/2 to M, squared; R² to a score, since |g| <= 1,
and R²/4 to the first, where β = 0 and |g| = 1/2; and (R·L/4)²/2 to H, since w·‖u‖² <= R·L. Under
REPLACE two scores differ by twice as much. Two matrices a·vvᵀ and a'·v'v'ᵀ with a, a' >= 0 differ
by no more than a²·‖v‖⁴ + a'²·‖v'‖⁴, squared, since the cross term is not above 0: twice as much,
squared. Each is scaled so that together they move by at most 1 in the L2 norm, and gets Gaussian
noise of one deviation. What is asked later depends on what was answered, but its bound does not:
the sequence is one Gaussian mechanism of that many coordinates (Dong, Roth and Su, 2022, on the
adaptive composition of Gaussian mechanisms; `dither.mechanisms.Gaussian` on their rounding).

Estimate. From each β the next is where `MarginModel`, which knows M alone, expects the score to be
0. What `ScoreModel` makes of β̄, the mean score and H is the result.

Source. Song, Chaudhuri and Sarwate, 2013, for noisy gradients; weights of Mallows' kind: Carroll
and Pederson, "On robustness in the logistic regression model", 1993.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.engine._release import Noise, exact_products, fixed_noise, squared_lengths
from dither.inference.regression._formula import MISSING
from dither.inference.regression._margins import MarginModel
from dither.privacy import Loss, Neighbours

__all__ = [
    "SQUARE",
    "DescentRelease",
    "ScoreRelease",
    "WeightedRows",
    "released_at",
    "seen_in_parts",
    "symmetric",
    "weight_of",
]

Integers = npt.NDArray[np.int64]

SQUARE = Fraction(7, 10)
"""The weight of products on the diagonal of matrices."""

_FOR_GRAM, _FOR_INFORMATION = Fraction(3, 20), Fraction(1, 10)
_ROUNDS = 4
_KEPT = _ROUNDS // 2
_PART = 1 << 20
_FINE = 1024
_REACH = 32


@dataclass(frozen=True, eq=False)
class ScoreRelease:
    """What a release tells of a logistic regression, near one point; in units of the lattice.

    Parameters
    ----------
    at : array of float, shape (D,)
        The point.
    score : array of float, shape (D,)
        The gradient of the sum of losses there.
    information : array of float, shape (D, D)
        Its Hessian.
    of_score, of_information : float
        Deviations of their noise: of a score, and of a product above the diagonal.
    apart : array of float, shape (D,), optional
        How far apart two points were of whose scores this is the mean.
    """

    at: Floats
    score: Floats
    information: Floats
    of_score: float
    of_information: float
    apart: Floats | None = None


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Rows on the lattice with their weights; 0 throughout where something is missing.

    Parameters
    ----------
    regressors : array of int, shape (n, D)
        u.
    signs : array of int, shape (n,)
    weights : array of float, shape (n,)
        w, such that w·‖u‖ is below R.
    """

    regressors: Integers
    signs: Integers
    weights: Floats

    @classmethod
    def of(cls, points: Integers, radius: Fraction) -> WeightedRows:
        """From regressors and response on the lattice."""
        kept = points[:, -1] != MISSING
        rows = np.column_stack([np.full(len(points), Bounds.steps), points[:, :-1]])
        rows[~kept] = 0
        # Short of R by more than doubles can be off: a square of d columns errs by d + 1 halves of
        # EPS, its root by half as many, and a weight, a share and their products by 8 more; what is
        # cut to the lattice is shorter. That is enough for d to 10,000.
        most = float(radius) * Bounds.steps * (1 - 1e-12)
        weights = np.minimum(1.0, most / np.sqrt(np.maximum(squared_lengths(rows), 1.0)))
        signs = np.where(kept, np.sign(points[:, -1]), 0).astype(np.int64)
        return cls(rows, signs, weights)

    def margin(self, slopes: Floats) -> Floats:
        """u·β of each row."""
        found = np.zeros(len(self.regressors))
        for j, slope in enumerate(slopes.tolist()):
            found = found + self.regressors[:, j] * (slope / Bounds.steps)
        return found

    def scaled(self, by: Floats) -> Integers:
        """Regressors times a number in [0, 1] a row, cut to the lattice."""
        return np.trunc(self.regressors * by[:, None]).astype(np.int64)

    def gram(self, by: Floats) -> tuple[Fraction, ...]:
        """The exact products of rows that were scaled, on and above the diagonal."""
        rows = self.scaled(by)
        d = rows.shape[1]
        total, two = exact_products(rows), Bounds.steps**2
        return tuple(
            (SQUARE if i == j else 1) * Fraction(total[i][j], two)
            for i in range(d)
            for j in range(i, d)
        )

    def score(self, slopes: Floats) -> tuple[Fraction, ...]:
        """The exact score at these coefficients."""
        shares = -self.signs * _sigmoids()[_places(self.signs * self.margin(slopes))]
        return self.total(shares, self.weights)

    def total(self, shares: Integers, by: Floats) -> tuple[Fraction, ...]:
        """The exact sum of rows that were scaled, each times a share on the lattice."""
        rows, found = self.scaled(by), [0] * self.regressors.shape[1]
        for i in range(0, len(rows), _PART):
            more = (shares[i : i + _PART, None] * rows[i : i + _PART]).sum(axis=0).tolist()
            found = [a + b for a, b in zip(found, more, strict=True)]
        return tuple(Fraction(v, Bounds.steps**2) for v in found)

    def information(self, slopes: Floats) -> tuple[Fraction, ...]:
        """The exact information at these coefficients, as `gram` gives products."""
        roots = _roots()[_places(self.margin(slopes))]
        return self.gram(np.sqrt(self.weights) * roots)


def _places(margin: Floats) -> Integers:
    near = np.clip(np.nan_to_num(margin), -_REACH, _REACH) * _FINE
    return np.rint(near).astype(np.int64) + _REACH * _FINE


@cache
def _sigmoids() -> Integers:
    """1/(1 + exp(x)) on the lattice, for x from -REACH to REACH."""
    places = range(-_REACH * _FINE, _REACH * _FINE + 1)
    return np.array([round(Bounds.steps / (1 + math.exp(k / _FINE))) for k in places])


@cache
def _roots() -> Floats:
    """√(p·(1 - p)), at most 1/2."""
    p = _sigmoids() / Bounds.steps
    return np.asarray(np.minimum(np.sqrt(p * (1 - p)), 0.5))


def symmetric(products: Floats, size: int) -> Floats:
    """A matrix from the products that `WeightedRows.gram` gives."""
    found = np.zeros((size, size))
    found[np.triu_indices(size)] = products
    found = found + np.triu(found, 1).T
    found[np.arange(size), np.arange(size)] /= float(SQUARE)
    return found


@dataclass(frozen=True)
class DescentRelease:
    """Layer 1: one Gram matrix, the scores that are asked for, and the information at the end.

    Parameters
    ----------
    size : int
        Columns of the regressors, without the intercept.
    terms : int
        S.
    asked : Target
    radius : Fraction
        R, in units of the lattice's ends.

    Attributes
    ----------
    of_gram, of_first, of_score, of_information : Fraction
        What each is multiplied by.
    noise : Gaussian
    loss : Loss
        Of all.
    """

    size: int
    terms: int
    asked: Target
    radius: Fraction
    of_gram: Fraction = field(init=False)
    of_first: Fraction = field(init=False)
    of_score: Fraction = field(init=False)
    of_information: Fraction = field(init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        r2, d = self.radius**2, self.size + 1
        long2 = Fraction(self.terms + 1)
        matrix, score = (1, 4) if self.asked.replace else (Fraction(1, 2), 1)
        left = 1 - _FOR_GRAM - _FOR_INFORMATION
        # The first score, half as large as others may be, gets the noise that they get.
        share = left / (_ROUNDS - Fraction(3, 4))
        weights = {
            "of_gram": weight_of(_FOR_GRAM, matrix * r2**2),
            "of_first": weight_of(share, score * r2),
            "of_score": weight_of(share, score * r2),
            "of_information": weight_of(_FOR_INFORMATION, matrix * r2 * long2 / 16),
        }
        for name, value in weights.items():
            object.__setattr__(self, name, value)
        dimension = d * (d + 1) + _ROUNDS * d
        noise, loss = fixed_noise(
            asked=self.asked, dimension=dimension, l2_squared=self.moved(matrix, score, long2)
        )
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    def moved(self, matrix: Fraction | int, score: int, long2: Fraction) -> Fraction:
        """The squared L2 sensitivity of all that leaves."""
        r2 = self.radius**2
        scores = self.of_first**2 / 4 + (_ROUNDS - 1) * self.of_score**2
        return (
            self.of_gram**2 * matrix * r2**2
            + scores * score * r2
            + self.of_information**2 * matrix * r2 * long2 / 16
        )

    def release(self, points: Integers) -> ScoreRelease:
        """The one step that touches data."""
        rows, d = WeightedRows.of(points, self.radius), self.size + 1
        leave = partial(released_at, self.noise)
        gram = symmetric(leave(self.of_gram, rows.gram(rows.weights)), d)
        deviation = math.sqrt(self.noise.variance)
        model = MarginModel(gram, floor=deviation / float(self.of_gram) * math.sqrt(d))
        slopes, at, scores = np.zeros(d), [], []
        for k in range(_ROUNDS):
            score = leave(self.of_score if k else self.of_first, rows.score(slopes))
            at.append(slopes)
            scores.append(score)
            # Far beyond what a table of sigmoids tells apart, a coefficient says no more.
            slopes = np.clip(model.next(slopes, score), -1e6, 1e6)
        middle = np.mean(at[_KEPT:], axis=0)
        information = symmetric(leave(self.of_information, rows.information(middle)), d)
        return ScoreRelease(
            middle,
            np.mean(scores[_KEPT:], axis=0),
            information,
            deviation / float(self.of_score) / math.sqrt(_ROUNDS - _KEPT),
            deviation / float(self.of_information),
            at[-1] - at[_KEPT],
        )

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        design = cls(0, 0, Target(Fraction(1), delta, Neighbours.ADD_REMOVE), Fraction(1))
        one = np.full((1, 1), Bounds.steps)
        two = np.concatenate([one, one])
        # Where the row is as wrong as can be, its share of a score is 1; at 0 its information 1/4.
        wrong, even = np.array([-30.0]), np.zeros(1)

        def run(points: Integers, size: int) -> Floats:
            rows = WeightedRows.of(points, design.radius)
            parts = [
                (rows.gram(rows.weights)[0], design.of_gram, float(SQUARE)),
                (rows.score(even)[0], design.of_first, -0.5),
                *[(rows.score(wrong)[0], design.of_score, -1.0)] * (_ROUNDS - 1),
                (rows.information(even)[0], design.of_information, float(SQUARE) / 4),
            ]
            return seen_in_parts(design.noise, parts, size)

        yield Subject("scores of a logistic regression", run, one, two, delta=delta)


def released_at(noise: Noise, weight: Fraction, statistic: tuple[Fraction, ...]) -> Floats:
    """A statistic that leaves with noise, scaled by a weight and back."""
    noisy = noise.release(tuple(weight * v for v in statistic))
    return np.array([float(v / weight) for v in noisy])


def seen_in_parts(
    noise: Noise, parts: Sequence[tuple[Fraction, Fraction, float]], size: int
) -> Floats:
    """For audits: numbers that left with weights, each seen as much as neighbours move it."""
    found, step = np.zeros(size), float(noise.step)
    for value, weight, change in parts:
        seen = step * (round(value * weight / noise.step) + noise.draw(size).astype(float))
        found += seen * float(weight) * change
    return found


def weight_of(share: Fraction, square: Fraction) -> Fraction:
    """What makes a sensitivity, given squared, that share of 1, squared; six digits of it."""
    root = math.sqrt(float(share / square))
    digits = 10 ** max(0, 6 - math.floor(math.log10(root)))
    # Rounded down: a smaller weight moves the sum by less.
    return Fraction(max(1, math.floor(root * digits)), digits)
