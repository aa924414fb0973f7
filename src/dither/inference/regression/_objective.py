"""Logistic regression by objective perturbation: the minimiser of a loss with a random slope.

Release. Rows, weights w, R and L are those of `dither.inference.regression._descent`. Let b be
normal of deviation σ in each coordinate, and θ the minimiser of

    J(θ) = Σ w·log(1 + exp(-s·u·θ)) + Λ·‖θ‖²/2 + b·θ.

What leaves is a θ̃ within γ/Λ of θ with Gaussian noise for a change of 2γ/Λ, and then the
information H at what left (`_descent`) with Gaussian noise.

Privacy. Add a row with v = -s·w·u, ‖v‖ <= R: its loss has slope g·v with g = 1/(1 + exp(s·u·θ)) in
(0, 1), and Hessian at most w·uuᵀ/4. Given the table, θ -> b(θ) = -(Σ slopes) - Λ·θ is one to one
and smooth, with Jacobian -(A + Λ·I), A >= 0. So the density of θ is that of N(0, σ²) at b(θ) times
det(A + Λ·I), and between neighbours

* the determinants differ by a factor within 1 + w·uᵀ(A + Λ)⁻¹u/4 <= 1 + R·L/(4Λ), either way, and
  so does their ratio where a row is replaced: one factor of this kind over another. With
  Λ = R·L/(4·λ) its log is at most λ;
* under ADD_REMOVE, the density of the noise differs by (‖b ± g·v‖² - ‖b‖²)/(2σ²), which is convex
  in g: it is at most the larger of its values at g = 0, which is 0, and at g = 1. The latter is the
  loss of a Gaussian mechanism that v is added to, as b is N(0, σ²·I) and v does not depend on it;
* under REPLACE, it is (‖b + g·v - g'·v'‖² - ‖b‖²)/(2σ²), convex in (g, g'): at most the largest of
  0 and of the losses of Gaussian mechanisms that are moved by v, v' and v - v'.

The sign of the slope is known of a row, so that neither form needs the factor 2 of a direction
that is not. Let D(ε, m) be the delta of a Gaussian mechanism whose sensitivity is m deviations. The
further releases, given all before, are Gaussian mechanisms of m₂ together. As D falls with ε, the
whole has, at ε and with ε' = ε - λ,

    delta <= E D(ε' - max of losses, m₂) <= Σ D(ε', √(m₂² + m²)),

over the m: 0 and R/σ under ADD_REMOVE; 0, R/σ, R/σ and 2R/σ under REPLACE.

Inexact minimisers. J is Λ-strongly convex: where a slope of J is at most γ long, the minimiser is
within γ/Λ. Newton steps that are halved until the slope is shorter reach γ, which is far above what
doubles lose. Given θ, the θ̃ of two tables are within 2γ/Λ of each other. The draw of b is on a
lattice of step h: it is the rounding of a normal draw but for a distance in total variation of
h²/(8·σ²) a coordinate. (The integral of a density over a cell and h times its middle value differ
by h²/8·∫|f''| over the cell; ∫|f''| is below σ⁻² for a normal density, and what the sum lacks to 1
is no more.) The rounding moves the slope by h·√D/2, which γ counts; the distance, for b and the
noise of what leaves later alike, is added to delta as (1 + e^ε) times itself.

Source. Chaudhuri, Monteleoni and Sarwate, 2011; Kifer, Smith and Thakurta, 2012; inexact
minimisers: Iyengar et al., 2019; the exact Gaussian form: Redberg, Koskela and Wang, 2023.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dither import privacy
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Bounds, Floats, Target
from dither.inference.regression._descent import Integers, ScoreRelease, WeightedRows, symmetric
from dither.mechanisms import Gaussian
from dither.mechanisms.counts._analytic import gaussian_delta, gaussian_mu
from dither.numeric import _directed as directed
from dither.numeric import sqrt_upper
from dither.privacy import Loss, Neighbours

__all__ = ["ObjectiveRelease"]

_FOR_DETERMINANT = Fraction(1, 8)
_FOR_INFORMATION, _FOR_MINIMISER = Fraction(3, 20), Fraction(1, 50)
# Minimisers are found to 2^-16 deviations of b: that adds next to no noise, and doubles reach it.
_TOLERANCE = 16
# Steps of 2^-48 deviations or less: what the lattice adds to delta is below 2^-98 a number.
_FINE = 48
_HALVINGS = 40
_MOST = 40
"""The epsilon beyond which no more is spent: what rounding costs grows with its exponential."""


@dataclass(frozen=True)
class ObjectiveRelease:
    """Layer 1: a minimiser, and the information there.

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
    ridge : Fraction
        Λ.
    slope : Gaussian
        The law of b.
    tolerance : Fraction
        How long a slope of J may be that is taken to be 0.
    minimiser, information : Gaussian
        Noise of what leaves.
    loss : Loss
        Of all.
    """

    size: int
    terms: int
    asked: Target
    radius: Fraction
    ridge: Fraction = field(init=False)
    slope: Gaussian = field(init=False)
    tolerance: Fraction = field(init=False)
    minimiser: Gaussian = field(init=False)
    information: Gaussian = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        asked, d = self.asked, self.size + 1
        if asked.delta <= 0:
            raise ArgumentError("delta must be above 0: minimisers leave with Gaussian noise")
        times = 2 if asked.replace else 1
        product = self.radius * sqrt_upper(Fraction(self.terms + 1))
        epsilon = min(asked.epsilon, Fraction(_MOST))
        spent = epsilon * _FOR_DETERMINANT
        pairs = d * (d + 1) // 2
        # h/σ is at most 2^-48, for d numbers of b, d of what leaves, and the pairs of the
        # information.
        lost = Fraction(2 * d + pairs, 8 << (2 * _FINE)) * (1 + directed.exp_upper(epsilon))
        mu = self._mu(epsilon - spent, asked.delta - lost)
        # Squares under √ are shares of mu², and what is rounded is rounded to more noise.
        first = 1 - _FOR_INFORMATION - _FOR_MINIMISER
        slope = _noise(times * self.radius, mu, first)
        # isqrt(D) is never below √D/2, by which rounding b may move the slope, in steps.
        tolerance = slope.step * math.isqrt(d) + sqrt_upper(slope.sigma2) / (1 << _TOLERANCE)
        ridge = product / (4 * spent)
        found = {
            "ridge": ridge,
            "slope": slope,
            "tolerance": tolerance,
            "minimiser": _noise(2 * tolerance / ridge, mu, _FOR_MINIMISER, d),
            "information": _noise(
                # A row that comes moves √½ as far as one that is replaced; 5/7 is just above.
                (product if asked.replace else product * Fraction(5, 7)) / 4,
                mu,
                _FOR_INFORMATION,
                pairs,
            ),
            "loss": privacy.approximate(epsilon, asked.delta, neighbours=asked.neighbours),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def _mu(self, epsilon: Fraction, delta: Fraction) -> Fraction:
        """All sensitivities together, in deviations, such that the sum in the module is delta."""
        later = _FOR_INFORMATION + _FOR_MINIMISER
        shares = [(1, later)] + [(2, later + (1 - later) / 4)] * self.asked.replace
        # Each term is at most the largest, of which there is one: a quarter of delta will do.
        for spare in (Fraction(1, 1 << 20), Fraction(1, 1 << 8), Fraction(1, 8), Fraction(3, 4)):
            mu = gaussian_mu(epsilon, delta * (1 - spare)) if delta > 0 else Fraction(0)
            rest = sum(k * gaussian_delta(epsilon, mu * sqrt_upper(s)) for k, s in shares)
            if mu and rest <= delta * spare:
                return mu
        raise ArgumentError("delta is below what rounding costs: ask for a larger one")

    def minimised(self, rows: WeightedRows, slope: Floats) -> Floats:
        """A point at which J has a slope shorter than the tolerance."""
        u, ridge, weights = rows.regressors / Bounds.steps, float(self.ridge), rows.weights
        # Half of γ: the rest is for what doubles lose, and what the lattice of b moves the slope
        # by.
        most = float(self.tolerance) / 2

        def gradient(at: Floats) -> tuple[Floats, Floats]:
            wrong = 1 / (1 + np.exp(np.clip(rows.signs * (u @ at), -700, 700)))
            share = weights * wrong * (rows.signs != 0)
            return slope + ridge * at - u.T @ (share * rows.signs), share * (1 - wrong)

        at = np.zeros(u.shape[1])
        value, curve = gradient(at)
        while (length := float(np.linalg.norm(value))) > most:
            hessian = (u * curve[:, None]).T @ u + ridge * np.eye(u.shape[1])
            move = np.linalg.solve(hessian, value)
            for k in range(_HALVINGS):
                tried = at - move / 2**k
                new, curved = gradient(tried)
                # Along a Newton step the length falls at the rate of the step itself.
                if float(np.linalg.norm(new)) <= (1 - 0.25 / 2**k) * length:
                    break
            else:
                # As short as doubles can tell: what they lose is below the other half of γ for
                # fewer than some 1e11 rows, which no memory holds.
                break
            at, value, curve = tried, new, curved
        return np.asarray(at)

    def release(self, points: Integers) -> ScoreRelease:
        """The one step that touches data."""
        rows, d = WeightedRows.of(points, self.radius), self.size + 1
        slope = float(self.slope.step) * self.slope.draw(d).astype(float)
        found = self.minimiser.release([Fraction(v) for v in self.minimised(rows, slope).tolist()])
        at = np.array([float(v) for v in found])
        noisy = self.information.release(rows.information(at))
        information = symmetric(np.array([float(v) for v in noisy]), d)
        score = -float(self.ridge) * at
        return ScoreRelease(at, score, information, self.slope.sigma, self.information.sigma)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        design = cls(0, 0, Target(Fraction(1), delta, Neighbours.ADD_REMOVE), Fraction(1))
        # Where others all say no, a yes is as wrong as can be: its slope is nearly as long as R.
        one = np.full((30, 1), -Bounds.steps)
        two = np.concatenate([one, [[Bounds.steps]]])

        def run(points: Integers, size: int) -> Floats:
            rows = WeightedRows.of(points, design.radius)
            drawn = float(design.slope.step) * design.slope.draw(size).astype(float)
            # All minimisers at once: in one coordinate they are a falling function of b.
            at = np.linspace(-60.0, 60.0, 60_001)
            wrong = 1 / (1 + np.exp(rows.signs * at[:, None]))
            slopes = wrong @ (rows.weights * rows.signs) - float(design.ridge) * at
            exact = np.interp(-drawn, -slopes, at)
            noise = float(design.minimiser.step) * design.minimiser.draw(size).astype(float)
            return exact + noise

        yield Subject("a minimiser of a perturbed objective", run, one, two, delta=delta)


def _noise(l2: Fraction, mu: Fraction, share: Fraction, dimension: int = 1) -> Gaussian:
    """Gaussian noise to which a change of l2, rounded, is that share of mu², squared."""
    square = (l2 / mu) ** 2 / share
    size = math.floor(math.log2(float(l2 / mu))) - _FINE
    step = Fraction(2) ** size
    # Rounding d numbers moves them by less than √d steps more.
    moved = l2 + step * (math.isqrt(dimension) + 1)
    square = (moved / mu) ** 2 / share
    return Gaussian(Fraction(math.ceil(square / step**2)) * step**2, step)
