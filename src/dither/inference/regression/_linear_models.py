"""Linear models from noisy moments: estimates, and intervals that hold however weak the data are.

Layers 2 and 3 of `dither.inference.linear_regression`. Regressors (1, z) and the response t are
those of `MomentsRelease`; M, v, q are the released Σ(1,z)(1,z)ᵀ, Σ(1,z)·t and Σt².

Estimate. β = (M with no eigenvalue below the floor)⁻¹·v. The floor is 2·σ_N·√D, about the largest
eigenvalue of the noise of M (σ_N its deviation, D its size): where the noise is as large as the
data, a slope is pulled towards 0, elsewhere nothing is. The functional mechanism has a rule of its
own: β = (M + λ)⁻¹·v, λ four deviations of the noise of a square, without the directions in which
M + λ is not above 0. What follows is of M, v, q, and so holds for both.

Model. Regressors are as they are, with the Gram matrix G that M has without its eigenvalues below
0; t = (1,z)·β + N(0, σ²). Then v is G·β + N(0, σ²·G) with its noise, and Σt² goes along with it.

Infer. At the truth β the released v - M·β is X'(t - Xβ) and noise, of covariance Σ(β) = σ²·G +
noise of v + noise of M·β: whatever G is, however close to singular. For a combination b = a·β the
other directions are chosen to make the difference least, which leaves

    T(b) = (a·M⁻¹v - b)² / (ℓ'Σ(β(b))ℓ),     ℓ = M⁻¹a,  β(b) = M⁻¹(v - Σℓ·(a·M⁻¹v - b)/(ℓ'Σℓ)),

a Fieller or Anderson-Rubin statistic. An interval holds the b with T(b) no larger than its quantile
among simulated releases, nor than that of χ²(1). Where a column is constant, collinear or drowned
in noise, T stays small however far b is: the interval is infinite, since nothing else would cover.

Source. Anderson and Rubin, 1949; Dufour, "Some impossibility theorems in econometrics", 1997;
Guggenberger, Kleibergen, Mavroeidis and Chen, 2012, on such statistics for single coefficients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dither._stats import two_sided
from dither.inference.engine._errors import Alternative, Errors, normal_power
from dither.inference.engine._inputs import Floats
from dither.inference.engine._simulation import batches
from dither.inference.regression._moments import Moments, MomentsRelease, NoisyMoments

__all__ = ["LinearErrors", "LinearModel"]

# The confidence of an interval of one deviation to either side.
_ONE_DEVIATION = math.erf(math.sqrt(0.5))
# Even near 0, and by equal factors far out: an end is found in few trials wherever it lies.
_GRID = np.sinh(np.linspace(0.0, math.asinh(1e6), 48))
_ROUNDS = 4


@dataclass(frozen=True, eq=False)
class SolvedMoments:
    """Moments, one set or a batch, with what is solved of them.

    Parameters
    ----------
    moments : Moments
    values, vectors : array of float
        Eigenvalues and eigenvectors of the Gram matrix.
    slopes : array of float, shape (..., D)
        The estimate.
    variance : array of float, shape (...)
        σ², at least 0.
    """

    moments: Moments
    values: Floats
    vectors: Floats
    slopes: Floats
    variance: Floats

    def inverse(self, of: Floats) -> Floats:
        """M⁻¹ times vectors, without a floor."""
        least = 1e-12 * np.abs(self.values).max(axis=-1, keepdims=True) + 1e-40
        divisor = np.where(self.values < 0, -1.0, 1.0) * np.maximum(np.abs(self.values), least)
        turned = np.einsum("...ji,...j->...i", self.vectors, of) / divisor
        return np.asarray(np.einsum("...ij,...j->...i", self.vectors, turned))

    def gram(self, of: Floats) -> Floats:
        """G times vectors: the Gram matrix without its eigenvalues below 0."""
        turned = np.einsum("...ji,...j->...i", self.vectors, of)
        kept = turned * np.maximum(self.values, 0.0)
        return np.asarray(np.einsum("...ij,...j->...i", self.vectors, kept))


def _variance(moments: Moments, slopes: Floats) -> Floats:
    """Of residuals at some slopes, from moments; one set or a batch."""
    fitted = np.einsum("...ij,...j->...i", moments.gram, slopes)
    square = np.einsum("...i,...i->...", slopes, fitted - 2 * moments.cross) + moments.square
    # Residuals of D coefficients lose D degrees of freedom.
    free = np.maximum(moments.n - moments.gram.shape[-1], 1.0)
    # A response in [-1, 1] has variance at most 1.
    return np.asarray(np.clip(square / free, 0.0, 1.0))


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Layers 2 and 3 of a linear regression, in units of the lattice.

    Parameters
    ----------
    design : MomentsRelease
    released : array of float
    rows : int or None
        The public n, or None where it was measured.
    """

    design: MomentsRelease
    released: Floats
    rows: int | None

    @cached_property
    def noise(self) -> NoisyMoments:
        """What the moments left with."""
        return NoisyMoments(self.design, self.rows)

    @cached_property
    def solved(self) -> SolvedMoments:
        """The estimate."""
        return self.solve(self.noise.read(self.released))

    @cached_property
    def slopes(self) -> Floats:
        """The estimate, shape (D,): that of `solved`, or of the functional mechanism."""
        solved = self.solved
        if not self.design.functional:
            return solved.slopes
        divisor = solved.values + self.ridge
        # Directions of which next to nothing is known are left at 0, an estimate like any other.
        kept = divisor > 1e-9 * np.abs(divisor).max()
        turned = solved.moments.cross @ solved.vectors
        return np.asarray(solved.vectors @ np.where(kept, turned / np.where(kept, divisor, 1), 0))

    @property
    def at(self) -> Floats:
        """Where the slopes are counted from."""
        return np.zeros(self.design.size + 1)

    @property
    def ridge(self) -> float:
        """What the functional mechanism adds to each eigenvalue."""
        return 4.0 * self.noise.deviation / float(self.design.square)

    @cached_property
    def variance(self) -> float:
        """That of the residuals of the estimate."""
        return float(_variance(self.solved.moments, self.slopes))

    @property
    def n(self) -> float:
        """Rows, at least 1."""
        return float(self.solved.moments.n)

    @property
    def floor(self) -> float:
        """What no eigenvalue is taken to be below."""
        return 2.0 * self.noise.deviation * math.sqrt(self.design.size + 1)

    @property
    def drowned(self) -> int:
        """Directions in which the regressors vary less than the noise."""
        return int((self.solved.values < self.floor).sum())

    @property
    def rsquared(self) -> float:
        """The share of the variance of the response that the estimate explains, in [0, 1]."""
        found = self.solved.moments
        mean = float(found.cross[0]) / self.n
        total = float(found.square) / self.n - mean**2
        return min(1.0, max(0.0, 1.0 - self.variance / total)) if total > 0 else 0.0

    def solve(self, moments: Moments) -> SolvedMoments:
        """Estimates from moments, one set or a batch."""
        values, vectors = np.linalg.eigh(moments.gram)
        turned = np.einsum("...ji,...j->...i", vectors, moments.cross)
        turned = turned / np.maximum(values, self.floor)
        slopes = np.einsum("...ij,...j->...i", vectors, turned)
        return SolvedMoments(moments, values, vectors, slopes, _variance(moments, slopes))

    def simulate(self, rng: np.random.Generator, size: int) -> Moments:
        """Layer 2: the moments that so many releases would have given at the estimate."""
        at, d = self.solved, self.design.size + 1
        values = np.maximum(at.values, 0.0)
        gram = (at.vectors * values) @ at.vectors.T
        gram[0, 0] = self.n
        spread = math.sqrt(float(at.variance))
        normal = rng.standard_normal((size, d))
        off = spread * (normal * np.sqrt(values)) @ at.vectors.T
        left = spread**2 * (rng.chisquare(max(1.0, self.n - d), size) + (normal**2).sum(axis=1))
        base = float(at.slopes @ gram @ at.slopes)
        noise = self.noise.draw(rng, size)
        return Moments(
            gram + noise.gram,
            gram @ at.slopes + off + noise.cross,
            base + 2 * off @ at.slopes + left + noise.square,
        )

    def pivots(self, rng: np.random.Generator, size: int, ways: Floats) -> Floats:
        """T at the truth of so many simulated releases, for each of k combinations: (size, k)."""
        found = self.solve(self.simulate(rng, size))
        truths = ways @ self.solved.slopes
        columns = [
            self.statistic(found, ways[j], truths[j])
            for j, _ in enumerate(batches(len(ways), 1, "simulated coefficients"))
        ]
        return np.stack(columns, axis=1)

    def statistic(self, found: SolvedMoments, way: Floats, b: Floats | float) -> Floats:
        """T(b) of a combination: of one release at many b, or of many releases at one."""
        line = found.inverse(np.broadcast_to(way, found.slopes.shape))
        point = found.inverse(found.moments.cross)
        gap = np.asarray(point @ way - b)
        sampling = np.asarray(found.variance)[..., None] * found.gram(line)
        slopes = found.slopes
        for _ in range(_ROUNDS):
            moved = sampling + self._of_noise(line, slopes)
            variance = np.maximum(np.einsum("...i,...i->...", line, moved), 1e-300)
            slopes = point - found.inverse(moved) * (gap / variance)[..., None]
        moved = sampling + self._of_noise(line, slopes)
        variance = np.maximum(np.einsum("...i,...i->...", line, moved), 1e-300)
        return np.asarray(gap**2 / variance)

    def _of_noise(self, line: Floats, slopes: Floats) -> Floats:
        """The covariance of the noise of v - M·slopes, times ``line``."""
        of_gram = self.noise.of_gram
        each = self.noise.of_cross + slopes**2 @ of_gram - np.diag(of_gram) * slopes**2
        return np.asarray(each * line + slopes * ((slopes * line) @ of_gram))


@dataclass(frozen=True, eq=False)
class LinearErrors(Errors):
    """Errors of combinations of coefficients, scale·(a·β) + offset.

    Parameters
    ----------
    model : LinearModel
    ways : array of float, shape (k, D)
        The a.
    scale, offset : array of float, shape (k,)
    simulated : array of float, shape (B, k) or (B, 1)
        T of simulated releases.
    residual : float
        The deviation of what is added to each, where one further response is meant.
    """

    model: LinearModel
    ways: Floats
    scale: Floats
    offset: Floats
    simulated: Floats
    residual: float = 0.0

    @property
    def estimate(self) -> Floats:
        """Of each combination."""
        return np.asarray(self.ways @ self.model.slopes * self.scale + self.offset)

    @cached_property
    def se(self) -> Floats:
        """Half the length of the interval that one deviation to each side would be."""
        ends = self.interval(_ONE_DEVIATION)
        return np.asarray(np.maximum((ends[:, 1] - ends[:, 0]) / 2, self.se_sampling))

    @cached_property
    def se_sampling(self) -> Floats:
        """That of least squares on rows with these moments."""
        solved = self.model.solved
        values = np.maximum(solved.values, self.model.floor)
        turned = (self.ways @ solved.vectors) ** 2 / values
        spread = np.sqrt(turned.sum(axis=1) * float(solved.variance)) * np.abs(self.scale)
        return np.asarray(np.hypot(spread, self.residual))

    def interval(self, confidence: float) -> Floats:
        """What T does not reject, and the estimate with it."""
        from scipy.special import chdtri, ndtri

        level = 1.0 - confidence
        least = float(chdtri(1, level))
        # The k-th of B at k = (1 - level)·(B + 1): what (1 + #)/(B + 1) does not reject stays in.
        rank = min(len(self.simulated), math.ceil((1.0 - level) * (len(self.simulated) + 1))) - 1
        most = np.maximum(np.partition(self.simulated, rank, axis=0)[rank], least)
        most = np.broadcast_to(most, (len(self.ways),))
        found = np.array([self._held(way, q) for way, q in zip(self.ways, most, strict=True)])
        ends = found.reshape(-1, 2) * np.abs(self.scale)[:, None]
        ends = np.where(self.scale[:, None] < 0, -ends[:, ::-1], ends) + self.offset[:, None]
        if self.residual:
            reach = float(ndtri(1.0 - level / 2)) * self.residual
            middle = self.estimate[:, None]
            away = np.hypot(ends - middle, reach)
            ends = middle + np.where([True, False], -away, away)
        return np.asarray(ends)

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """The larger of the p-values by simulation and by χ²(1); one-sided ones by half of it."""
        from scipy.special import chdtrc

        model, found = self.model, []
        inner = (null - self.offset) / self.scale
        columns = np.broadcast_to(self.simulated, (len(self.simulated), len(self.ways)))
        for j, (way, b) in enumerate(zip(self.ways, inner, strict=True)):
            seen = float(model.statistic(model.solved, way, float(b)))
            by_simulation = (1 + int((columns[:, j] >= seen).sum())) / (len(columns) + 1)
            both = max(by_simulation, float(chdtrc(1, seen)))
            if alternative != "two-sided":
                point = float(model.solved.inverse(model.solved.moments.cross) @ way)
                above = (point > b) == (self.scale[j] > 0)
                both = both / 2 if above == (alternative == "greater") else 1.0 - both / 2
            found.append(both)
        return np.array(found)

    def power(self, truth: Floats, null: Floats, level: float) -> Floats:
        """By the length of the interval at 1 - level; where it has no end, no more than the level.

        Errors are taken to be normal.
        """
        ends = self.interval(1.0 - level)
        reach = two_sided(1.0 - level)
        wide = np.maximum((ends[:, 1] - ends[:, 0]) / (2.0 * reach), self.se)
        return normal_power(truth - null, wide, reach)

    def _held(self, way: Floats, most: float) -> tuple[float, float]:
        """The ends of what T holds, along one combination."""
        model, solved = self.model, self.model.solved
        point = float(solved.inverse(solved.moments.cross) @ way)
        estimate = float(way @ model.slopes)
        line = solved.inverse(way)
        moved = float(solved.variance) * solved.gram(line) + model._of_noise(line, solved.slopes)
        step = math.sqrt(most * max(float(line @ moved), 1e-300))
        ends = []
        for side in (-1.0, 1.0):
            tried = point + side * step * _GRID
            gone = np.flatnonzero(model.statistic(solved, way, tried) > most)
            if not gone.size:
                # Where one side is not bounded, what lies far on the other is not rejected either.
                return -math.inf, math.inf
            near, far = tried[max(gone[0] - 1, 0)], tried[gone[0]]
            for _ in range(3):
                between = np.linspace(near, far, 18)
                gone = np.flatnonzero(model.statistic(solved, way, between) > most)
                at = int(gone[0]) if gone.size else 17
                near, far = between[max(at - 1, 0)], between[at]
            ends.append(float(far))
        return min(ends[0], estimate), max(ends[1], estimate)
