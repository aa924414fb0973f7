"""Covariances and principal components of rows in a ball.

Release. With rows y in radii from the centre, ‖y‖ <= 1, the sums

    Σ y,   k·Σ y_i²,   k·w·Σ y_i·y_j for i < j,   and under ADD_REMOVE n/2,

with k = 7/10 and w = 7/5 <= √2, so that the second moments move by at most k·‖yyᵀ - y'y'ᵀ‖ in the
Frobenius norm. Under REPLACE, with a, b the squared norms and c = <y, y'>, rows move it by at most

    a + b - 2c + k²·(a² + b² - 2c²),

which rises with a and b, and at a = b = 1 is 2·(1 - c)·(1 + k²·(1 + c)): largest at c = -1, where
it is 4, while k² <= 1/2. So the second moments cost nothing beside the mean. Under ADD_REMOVE a row
adds at most 1 + k² + 1/4. The noise is Gaussian.

Model. Rows are normal with the covariance that was estimated, made positive by raising eigenvalues
to no less than 0. Sample covariances are drawn by Bartlett's decomposition.

Infer. Errors of entries and of eigenvalues are those of simulated releases against the covariance
that they were drawn from. The largest eigenvalue of a noisy matrix is too large on average: what
simulation says of it is taken off.

Source. Dwork, Talwar, Thakurta and Zhang, "Analyze Gauss", STOC 2014; Bartlett, 1933.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._ball import BallRelease
from dither.inference.engine._errors import SimulatedErrors
from dither.inference.engine._inputs import Floats, Target, matrix, target
from dither.inference.engine._release import (
    Noise,
    NoisyStatistic,
    exact_products,
    fixed_noise,
    rows_of,
    seen_at_best,
    spread_of,
)
from dither.inference.engine._result import PrivateEstimate
from dither.inference.engine._simulation import batches
from dither.inference.estimates._means import centre_of, names_of
from dither.privacy import Loss, Neighbours

__all__ = ["CovarianceEstimate", "CovarianceRelease", "covariance"]


@dataclass(frozen=True)
class CovarianceRelease:
    """Layer 1: the sum of rows in a ball and of their products.

    Parameters
    ----------
    dimension : int
    asked : Target
    """

    dimension: int
    asked: Target
    square: Fraction = field(default=Fraction(7, 10), init=False)
    cross: Fraction = field(default=Fraction(7, 5), init=False)
    count: Fraction = field(default=Fraction(1, 2), init=False)
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    steps = BallRelease.steps

    def __post_init__(self) -> None:
        asked, d = self.asked, self.dimension
        if asked.delta <= 0:
            raise ArgumentError("delta must be above 0: covariances leave with Gaussian noise")
        l2_squared = Fraction(4) if asked.replace else 1 + self.square**2 + self.count**2
        size = d + d * (d + 1) // 2 + int(not asked.replace)
        noise, loss = fixed_noise(asked=asked, dimension=size, l2_squared=l2_squared)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    def statistic(self, points: npt.NDArray[np.int64]) -> tuple[Fraction, ...]:
        """The exact vector of rows on the lattice: sums, then products row by row of the matrix."""
        d = self.dimension
        total = exact_products(points)
        found = [Fraction(s, self.steps) for s in points.sum(axis=0).tolist()]
        for a in range(d):
            for b in range(a, d):
                weight = self.square * (self.cross if b > a else 1)
                found.append(weight * Fraction(total[a][b], self.steps**2))
        if not self.asked.replace:
            found.append(self.count * len(points))
        return tuple(found)

    def release(self, points: npt.NDArray[np.int64]) -> NoisyStatistic:
        """The statistic with noise: the one step that touches data."""
        return NoisyStatistic(self.noise.release(self.statistic(points)), self.noise, self.loss)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        design = cls(2, Target(Fraction(1), delta, Neighbours.REPLACE))
        low, high = (np.full((1, 2), int(x * cls.steps)) for x in (-0.707, 0.707))
        seen = seen_at_best(design, low, high)
        yield Subject("covariance", seen, low, high, delta=delta)


@dataclass(frozen=True, eq=False)
class CovarianceEstimate(PrivateEstimate):
    """A covariance with the errors of its entries; `components` has its main directions.

    The numbers are the entries on and above the diagonal, row by row.

    Parameters
    ----------
    model : CovarianceModel
    scale : float
        A radius in the rows' own units.
    mean : array of float, shape (d,)
        That was released along with it.
    columns : tuple of str
        Of the numbers of a row.
    """

    model: CovarianceModel = field(default=None, repr=False)  # type: ignore[assignment]
    scale: float = 1.0
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    columns: tuple[str, ...] = ()

    @property
    def matrix(self) -> Floats:
        """The covariance, symmetric and with no eigenvalue below 0, shape (d, d)."""
        return self.model.covariance * self.scale**2

    @property
    def correlation(self) -> Floats:
        """The matrix of correlations; those of a number whose variance is 0 are 0."""
        deviation = np.sqrt(np.diag(self.matrix))
        outer = np.outer(deviation, deviation)
        found = np.divide(self.matrix, outer, out=np.zeros_like(outer), where=outer > 0)
        np.fill_diagonal(found, 1.0)
        return np.asarray(np.clip(found, -1.0, 1.0))

    def components(self, k: int) -> tuple[PrivateEstimate, Floats]:
        """The k largest eigenvalues with their errors, and their directions.

        Costs nothing: everything comes from what was released.

        Parameters
        ----------
        k : int
            From 1 to d.

        Returns
        -------
        values : PrivateEstimate
            Variances along the main directions.
        directions : array of float, shape (k, d)
            Of length 1; the sign makes the largest entry positive.
        """
        d = len(self.columns)
        wanted = check.whole("k", k, 1, d)
        values, vectors = np.linalg.eigh(self.model.covariance)
        directions = vectors[:, ::-1].T[:wanted]
        largest = np.abs(directions).argmax(axis=1)
        directions = directions * np.sign(directions[np.arange(wanted), largest])[:, None]
        model, scale = self.model, self.scale**2
        shown = values[::-1][:wanted]

        found = PrivateEstimate(
            "variances along the main directions",
            self.loss,
            self.assumptions,
            self.notes,
            tuple(f"component {j + 1}" for j in range(wanted)),
            np.zeros(wanted),
            self.rows,
            partial(_of_components, model, shown, scale),
        )
        errors = found.errors
        assert isinstance(errors, SimulatedErrors)
        fixed = replace(found, values=errors.estimate)
        return fixed, np.asarray(directions)


@dataclass(frozen=True, eq=False)
class CovarianceModel:
    """Layers 2 and 3, in radii from the centre.

    Parameters
    ----------
    design : CovarianceRelease
    released : array of float
    rows : int or None
        The public n, or None where it was measured.

    Attributes
    ----------
    n : float
    mean : array of float, shape (d,)
    raw, covariance : array of float, shape (d, d)
        As released, and with no eigenvalue below 0.
    """

    design: CovarianceRelease
    released: Floats
    rows: int | None
    n: float = field(init=False)
    mean: Floats = field(init=False)
    raw: Floats = field(init=False)
    covariance: Floats = field(init=False)

    def __post_init__(self) -> None:
        d = self.design.dimension
        n = rows_of(self.released, self.design.count, self.rows)
        mean = np.clip(self.released[:d] / n, -1.0, 1.0)
        end = d + d * (d + 1) // 2
        second = self._symmetric(self.released[None, d:end] / self._weights)[0] / n
        # The noise of the mean is in its square, on the diagonal.
        raw = second - np.outer(mean, mean) + np.eye(d) * (self._noise / n) ** 2
        values, vectors = np.linalg.eigh(raw)
        positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
        for name, value in (("n", n), ("mean", mean), ("raw", raw), ("covariance", positive)):
            object.__setattr__(self, name, value)

    @property
    def _noise(self) -> float:
        return spread_of(self.design.noise).deviation

    @cached_property
    def _weights(self) -> Floats:
        """Of each product, row by row on and above the diagonal."""
        d, k = self.design.dimension, float(self.design.square)
        rows, columns = np.triu_indices(d)
        return np.where(rows == columns, k, k * float(self.design.cross))

    def _symmetric(self, entries: Floats) -> Floats:
        """Entries on and above the diagonal, shape (size, m), as matrices."""
        d = self.design.dimension
        found = np.zeros((len(entries), d, d))
        rows, columns = np.triu_indices(d)
        found[:, rows, columns] = entries
        found[:, columns, rows] = entries
        return found

    def simulate(self, rng: np.random.Generator, size: int) -> tuple[Floats, Floats]:
        """Layer 2: covariances with noise and without, shape (size, d, d)."""
        d, n = self.design.dimension, max(2, round(self.n))
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        # Bartlett: a degree of freedom less for each column before, and one for the mean.
        freedom = np.maximum(n - 1 - np.arange(d), 1)
        noisy, alone = [], []
        for now in batches(size, max(1, (1 << 22) // d**2), "simulated covariances"):
            lower = np.tril(rng.standard_normal((now, d, d)), -1)
            lower[:, np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(freedom, (now, d)))
            part = root @ lower
            sample = part @ part.transpose(0, 2, 1) / n
            drawn = rng.normal(0.0, self._noise, (now, self._weights.size)) / self._weights
            entries = self._symmetric(drawn) / n
            of_mean = rng.normal(0.0, self._noise / n, (now, d))
            crossed = of_mean[:, :, None] * self.mean
            entries = entries - crossed - crossed.transpose(0, 2, 1)
            if self.rows is None:
                share = rng.normal(0.0, self._noise / float(self.design.count) / n, (now, 1, 1))
                entries = entries - share * (self.covariance - np.outer(self.mean, self.mean))
            alone.append(sample)
            noisy.append(sample + entries)
        return np.concatenate(noisy), np.concatenate(alone)


def _of_components(
    model: CovarianceModel, shown: Floats, scale: float, rng: np.random.Generator, size: int
) -> SimulatedErrors:
    wanted = len(shown)
    noisy, alone = model.simulate(rng, min(size, 1000))
    off, sampling = (
        np.linalg.eigvalsh(drawn)[:, ::-1][:, :wanted] - shown for drawn in (noisy, alone)
    )
    centred = np.maximum(shown - off.mean(axis=0), 0.0)
    limits = np.stack([np.zeros(wanted), np.full(wanted, np.inf)], axis=1)
    return SimulatedErrors(
        centred * scale,
        (off - off.mean(axis=0)) * scale,
        (sampling - sampling.mean(axis=0)) * scale,
        limits,
    )


def _of_covariances(
    model: CovarianceModel, estimates: Floats, scale: float, rng: np.random.Generator, size: int
) -> SimulatedErrors:
    noisy, alone = model.simulate(rng, size)
    shift = scale**2 * np.array([m - model.covariance for m in (noisy, alone)])
    rows, columns = np.triu_indices(len(model.covariance))
    drawn = shift[:, :, rows, columns]
    return SimulatedErrors(estimates, drawn[0], drawn[1])


def covariance(
    rows: Any,
    *,
    radius: Number,
    epsilon: Number,
    delta: Number,
    centre: Any = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    names: Sequence[str] | None = None,
) -> CovarianceEstimate:
    """The covariance of several numbers per row, and from it their principal components.

    Parameters
    ----------
    rows : array of shape (n, d), or frame
        A row is who is protected. Numbers should be of like size: divide them by public scales.
    radius : number
        Rows that are further from the centre are moved to its sphere.
    epsilon, delta : number
        What the release may cost; delta above 0.
    centre : number or sequence of d numbers
    neighbours : {"replace", "add-remove"}
    names : sequence of str, optional
        Of the numbers of a row.

    Returns
    -------
    CovarianceEstimate
        ``matrix``, ``correlation``, ``mean`` and ``components(k)`` all come from one release.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. A row with a missing
    number counts as the centre, or not at all where rows are added or removed.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import inference
    >>> x = np.random.default_rng(1).normal(0, [2.0, 1.0], (5000, 2))
    >>> found = inference.covariance(x, radius=8, epsilon=1, delta=1e-6)
    >>> values, directions = found.components(1)
    >>> bool(3 < values.estimate[0] < 5), directions.round(1).tolist()
    (True, [[1.0, ...]])
    """
    asked = target(epsilon, delta, neighbours)
    reach = check.number("radius", radius, above=0)
    values = matrix("rows", rows)
    d = values.shape[1]
    labels, middle = names_of(rows, names, d), centre_of(centre, d)
    if not asked.replace:
        values = values[~np.isnan(values).any(axis=1)]
    ball = BallRelease(d, asked, gaussian=True)
    design = CovarianceRelease(d, asked)
    released = design.release(ball.points(values, middle, reach))
    model = CovarianceModel(design, released.values, len(values) if asked.replace else None)
    scale = reach * ball.stretch
    places = np.triu_indices(d)
    estimates = model.covariance[places] * scale**2

    notes = []
    spread = float(np.trace(model.covariance) + model.mean @ model.mean)
    if spread > 0.25:
        notes.append(
            "many rows lie near the sphere or beyond: what lies beyond is moved to it, which makes "
            "variances smaller. A larger radius would not."
        )
    return CovarianceEstimate(
        "covariance",
        released.loss,
        ("rows are an independent sample", "rows are normal, and nearly all within the ball"),
        tuple(notes),
        tuple(f"{labels[a]} × {labels[b]}" for a, b in zip(*places, strict=True)),
        estimates,
        len(values) if asked.replace else round(model.n),
        partial(_of_covariances, model, estimates, scale),
        model=model,
        scale=scale,
        mean=middle + scale * model.mean,
        columns=labels,
    )
