"""Logistic regression: noisy gradient descent, preconditioned by a noisy Gram matrix.

Release. A row has regressors u = (1, z) of squared norm at most S + 1 (`MomentsRelease`), and a
sign s of ±1. Rows longer than R = radius·√(S + 1) are shortened to R, which a row's own values
decide. First leaves

    M = Σ u·uᵀ, its products above the diagonal, and with the weight 7/10 those on it,

then, in each of T rounds at coefficients β that are known by then, Σ g·u with

    g = -s/(1 + exp(s·u·β)), looked up in a table of public numbers on the lattice.

Sensitivity. Under ADD_REMOVE a row adds at most R⁴/2 to M, squared (7/10 <= √½, as in
`MomentsRelease`), and R to each gradient, since |g| <= 1. Under REPLACE M moves by no more than
(R⁴ + R⁴ - 2·c²)/2 <= R⁴, squared, for c the product of the rows, and a gradient by 2R. Noise is
Gaussian; the rounds are chosen one after the other, and their zero-concentrated losses add up
exactly. Every row's share is computed by operations on single numbers, so that it does not depend
on where the row stands.

Estimate. β moves by -4·M⁻¹·(gradient), M with no eigenvalue below the floor of its noise: the
Hessian is at most M/4. The estimate is the mean of the later half of the rounds.

What is not given. Standard errors and intervals: they would need the Hessian at the truth and the
law of the regressors, which are not released.

Source. Song, Chaudhuri and Sarwate, 2013, with the preconditioner of `linear_regression`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._format import number_text
from dither._subjects import Subject
from dither.accounting import rho_of_epsilon
from dither.errors import ArgumentError
from dither.inference._formula import MISSING, Design, read_design
from dither.inference._inputs import Bounds, Floats, Target, target
from dither.inference._release import noise_of_rho
from dither.inference._result import PrivateResult
from dither.mechanisms import Gaussian
from dither.privacy import Charge, Loss, Neighbours

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["DescentRelease", "LogisticRegression", "logistic_regression"]

Integers = npt.NDArray[np.int64]

_FOR_GRAM = Fraction(1, 4)
_ROUNDS = 5
_PART = 1 << 20
_FINE = 1024
_REACH = 32


@dataclass(frozen=True)
class DescentRelease:
    """Layer 1: one Gram matrix, and then the gradients that are asked for.

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
    of_gram, of_gradient : Gaussian
        Noise.
    loss : Loss
        Of all.
    """

    size: int
    terms: int
    asked: Target
    radius: Fraction
    of_gram: Gaussian = field(init=False)
    of_gradient: Gaussian = field(init=False)
    loss: Loss = field(init=False)

    square = Fraction(7, 10)

    def __post_init__(self) -> None:
        asked, r2 = self.asked, self.radius**2
        if asked.delta <= 0:
            raise ArgumentError("delta must be above 0: gradients leave with Gaussian noise")
        rho, d = rho_of_epsilon(asked.epsilon, asked.delta), self.size + 1
        of_gram, loss = noise_of_rho(
            rho * _FOR_GRAM,
            r2**2 if asked.replace else r2**2 / 2,
            dimension=d * (d + 1) // 2,
            neighbours=asked.neighbours,
        )
        of_gradient, once = noise_of_rho(
            rho * (1 - _FOR_GRAM) / _ROUNDS,
            4 * r2 if asked.replace else r2,
            dimension=d,
            neighbours=asked.neighbours,
        )
        spent = (loss.charge.rho or Fraction(0)) + _ROUNDS * (once.charge.rho or Fraction(0))
        for _ in range(_ROUNDS):
            loss = loss + once
        assert spent <= rho
        loss = loss.with_charge(Charge(asked.epsilon, asked.delta, spent))
        for name, value in (("of_gram", of_gram), ("of_gradient", of_gradient), ("loss", loss)):
            object.__setattr__(self, name, value)

    def shortened(self, points: Integers) -> tuple[Integers, Integers]:
        """Regressors and intercept, none longer than R, and signs; 0 for what is gone."""
        kept = points[:, -1] != MISSING
        rows = np.column_stack([np.full(len(points), Bounds.steps), points[:, :-1]])
        if self.asked.replace:
            # A row that misses something is one of middles that is neither yes nor no.
            rows[~kept, 1:] = 0
        else:
            rows, points, kept = rows[kept], points[kept], kept[kept]
        square = np.zeros(len(rows))
        for j in range(rows.shape[1]):
            square = square + rows[:, j].astype(np.float64) ** 2
        most = float(self.radius) * Bounds.steps * (1 - 1e-12)
        share = np.minimum(1.0, most / np.sqrt(square))
        short = np.trunc(rows * share[:, None]).astype(np.int64)
        return short, np.where(kept, np.sign(points[:, -1]), 0).astype(np.int64)

    def gram(self, rows: Integers) -> tuple[Fraction, ...]:
        """The exact products, row by row on and above the diagonal."""
        total = [[0] * rows.shape[1] for _ in range(rows.shape[1])]
        for i in range(0, len(rows), _PART):
            part = rows[i : i + _PART]
            for held, more in zip(total, (part.T @ part).tolist(), strict=True):
                held[:] = [a + b for a, b in zip(held, more, strict=True)]
        two = Bounds.steps**2
        return tuple(
            (self.square if i == j else 1) * Fraction(total[i][j], two)
            for i in range(rows.shape[1])
            for j in range(i, rows.shape[1])
        )

    def gradient(self, rows: Integers, signs: Integers, slopes: Floats) -> tuple[Fraction, ...]:
        """The exact sum of the rows' shares at these coefficients."""
        margin = np.zeros(len(rows))
        for j, slope in enumerate(slopes.tolist()):
            margin = margin + rows[:, j] * (slope / Bounds.steps)
        place = np.rint(np.clip(signs * margin, -_REACH, _REACH) * _FINE).astype(np.int64)
        shares = -signs * _table()[place + _REACH * _FINE]
        found = [0] * rows.shape[1]
        for i in range(0, len(rows), _PART):
            more = (shares[i : i + _PART, None] * rows[i : i + _PART]).sum(axis=0).tolist()
            found = [a + b for a, b in zip(found, more, strict=True)]
        return tuple(Fraction(v, Bounds.steps**2) for v in found)

    def release(self, points: Integers) -> Floats:
        """Coefficients in units of the lattice: the one step that touches data."""
        rows, signs = self.shortened(points)
        d = self.size + 1
        noisy, gram = self.of_gram.release(self.gram(rows)), np.zeros((d, d))
        places = np.triu_indices(d)
        gram[places] = [float(v) for v in noisy]
        gram = gram + np.triu(gram, 1).T
        gram[np.arange(d), np.arange(d)] /= float(self.square)
        values, vectors = np.linalg.eigh(gram)
        floor = self.of_gram.sigma * math.sqrt(d)
        step = (vectors * (4.0 / np.maximum(values, floor))) @ vectors.T
        slopes, kept = np.zeros(d), []
        for _ in range(_ROUNDS):
            noisy = self.of_gradient.release(self.gradient(rows, signs, slopes))
            slopes = slopes - step @ np.array([float(v) for v in noisy])
            # Far beyond what a table of sigmoids tells apart, a coefficient says no more.
            slopes = np.clip(slopes, -1e6, 1e6)
            kept.append(slopes)
        return np.asarray(np.mean(kept[_ROUNDS // 2 :], axis=0))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        design = cls(0, 0, Target(Fraction(1), delta, Neighbours.ADD_REMOVE), Fraction(1))
        one = np.full((1, 1), Bounds.steps)
        two = np.concatenate([one, one])

        def run(points: Integers, size: int) -> Floats:
            # Where the row is as wrong as can be, its share of a gradient is 1.
            rows, signs = design.shortened(points)
            exact = design.gram(rows)[0], design.gradient(rows, signs, np.array([-30.0]))[0]
            noises, found = (design.of_gram, design.of_gradient), np.zeros(size)
            weights = float(design.square), -float(_ROUNDS)
            for value, noise, weight, k in zip(exact, noises, weights, (1, _ROUNDS), strict=True):
                step = float(noise.step)
                drawn = np.asarray(noise.draw((size, k)), dtype=float)
                seen = step * (round(value / noise.step) + drawn)
                found += seen.mean(axis=1) * weight / noise.sigma**2
            return np.asarray(found)

        yield Subject("gradients of a logistic regression", run, one, two, delta=delta)


@cache
def _table() -> Integers:
    """1/(1 + exp(x)) on the lattice, for x from -REACH to REACH."""
    places = range(-_REACH * _FINE, _REACH * _FINE + 1)
    return np.array([round(Bounds.steps / (1 + math.exp(k / _FINE))) for k in places])


@dataclass(frozen=True, eq=False, repr=False)
class LogisticRegression(PrivateResult):
    """Coefficients of a logistic regression, and predictions from them.

    Parameters
    ----------
    design : Design
    slopes : array of float, shape (D,)
        In units of the lattice.
    rows : int or None
        The public n.
    """

    design: Design = field(repr=False)
    slopes: Floats = field(repr=False)
    rows: int | None

    @property
    def params(self) -> dict[str, float]:
        """Coefficients by name, of the log odds."""
        found, intercept = [], float(self.slopes[0])
        for slope, c in zip(self.slopes[1:].tolist(), self.design.columns, strict=True):
            found.append(slope / float(c.bounds.half))
            intercept -= found[-1] * float(c.bounds.middle)
        return dict(zip(self.design.names, (intercept, *found), strict=True))

    @property
    def estimate(self) -> Floats:
        """Coefficients in the order of the formula."""
        return np.array(list(self.params.values()))

    def predict(self, frame: Any) -> Floats:
        """The probability of a yes for each row of a frame; costs nothing.

        Parameters
        ----------
        frame : frame or mapping
            With the columns of the regressors. A row that misses something is taken to be one of
            middles and reference levels.
        """
        points = self.design.points(frame)
        points = np.where(points == MISSING, 0, points)
        margin = self.slopes[0] + points @ self.slopes[1:] / Bounds.steps
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(margin, -700.0, 700.0))))

    def _lines(self) -> list[str]:
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        params = self.params
        wide = max(len(name) for name in params)
        table = [f"{name:<{wide}}  {number_text(v):>10}" for name, v in params.items()]
        return [f"{self.title}{rows}", *table]

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the coefficients, each over the range of its column.

        Parameters
        ----------
        path : str or Path, optional
            Where to save it: .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from dither.plots._inference import draw_coefficients

        values = 2.0 * self.slopes[1:]
        foot = f"{self.cost}; change of the log odds from one end of a column's bounds to the other"
        return draw_coefficients(self.title, self.design.names[1:], values, foot, path)


def logistic_regression(
    formula: str,
    frame: Any,
    *,
    bounds: Any,
    epsilon: Number,
    delta: Number,
    levels: Any = None,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    radius: Number = 1,
) -> LogisticRegression:
    """Logistic regression by formula: coefficients and predictions, without intervals.

    Parameters
    ----------
    formula : str
        Such as ``"ill ~ age + C(region)"``: as `linear_regression` takes it. The response is a
        column of yes and no: anything but 0 is a yes.
    frame : frame or mapping from names to columns
        A row is who is protected.
    bounds : mapping from names to (lower, upper)
        Public ends of every number among the regressors.
    epsilon, delta : number
        What all rounds may cost together; delta above 0.
    levels : mapping from names to lists, optional
        Public values of every factor, the first as reference.
    neighbours : {"replace", "add-remove"}
    radius : number
        In (0, 1]: rows whose regressors are longer than this share of the longest possible one are
        shortened. Less noise, and less weight for unusual rows: with many regressors 0.6 is
        often better. Of S numbers that are spread evenly between their bounds the length is about
        √((1 + S/3)/(1 + S)) of the longest, which tends to 0.58. At 1 nothing is shortened and
        coefficients tend to those of the model as rows grow in number; below, they need not.

    Returns
    -------
    LogisticRegression
        With ``params`` and ``predict``.

    Raises
    ------
    ArgumentError
        As of `linear_regression`. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. A row that misses a
    value adds nothing to gradients where rows are replaced, and is left out where they are added or
    removed.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> rng = np.random.default_rng(1)
    >>> age = rng.uniform(20, 90, 20_000)
    >>> ill = rng.random(20_000) < 1 / (1 + np.exp(-(age - 60) / 8))
    >>> found = inference.logistic_regression(
    ...     "ill ~ age", {"age": age, "ill": ill}, bounds={"age": (0, 100)}, epsilon=1, delta=1e-6)
    >>> low, high = found.predict({"age": [40, 80]})
    >>> bool(low < 0.3), bool(high > 0.7), found.loss.charge.epsilon
    (True, True, Fraction(1, 1))
    """
    asked = target(epsilon, delta, neighbours)
    share = check.exact("radius", radius, above=0, most=1)
    design = read_design(formula, bounds, levels, binary=True)
    terms = len(design.terms)
    # Rounded down: R² is at most share²·(S + 1).
    reach = share * Fraction(math.isqrt((terms + 1) << 40), 1 << 20)
    release = DescentRelease(len(design.columns), terms, asked, reach)
    points = design.rows(frame)
    slopes = release.release(points)
    notes = ["standard errors and intervals are not given: they would need what is not released."]
    return LogisticRegression(
        f"logistic regression {design.formula}",
        release.loss,
        ("columns are those clamped to their bounds",),
        tuple(notes),
        design,
        slopes,
        len(points) if asked.replace else None,
    )
