"""Where a noisy score is 0, by a law of margins that has the moments of the rows.

A score of a logistic regression is Σ w·(p(u·β) - y)·u. How it changes with β depends on regressors
alone, of which M, the noisy Gram matrix, tells the number n, the means μ and the covariances C.
Here the margins η = u·β have a Beta law between the ends that the bounds of the columns allow, with
the mean and the variance that μ and C give them, and u is linear in η but for what does not depend
on η. Then

    S(β) = n·E[p(η)·u],    its slope = n·(E[p'(η)·E[u|η]·E[u|η]ᵀ] + E[p'(η)]·(C - C·β·(C·β)ᵀ/v)),

where v = β·C·β, and expectations are sums over Gauss's points. Of one column that is spread evenly,
that is 0 or 1, or that has any Beta law, S is what M says of it exactly; of many columns η is
nearly normal. From a point β with the noisy score V the next is the β' with

    S(β') - S(β) + (floor/16 + M/100)·(β' - β) = -V.

A step by a bound of the slope, M/4, stops far short where answers are nearly certain; a Newton step
from 0 does too, and one from far beyond flies off. This one arrives in as many rounds as S is right
in digits. The term with M keeps it from flying off where S is nearly flat and so says little; that
with the floor does where noise is all that M holds. Everything here is computed from what was
released, and what it gets wrong makes noise count for more but promises nothing: `ScoreModel` takes
the score and its slope where the last points are as they were measured there.

Source. Golub and Welsch, "Calculation of Gauss quadrature rules", 1969, for the points.
"""

from __future__ import annotations

import math

import numpy as np

from dither.inference.engine._inputs import Floats

__all__ = ["MarginModel"]

_POINTS = 16
_KEPT = 0.01
_OF_FLOOR = 1 / 16
_NEAREST = 0.97
_STEPS, _HALVINGS = 30, 12


class MarginModel:
    """What a score of rows with these moments is, at any coefficients.

    Parameters
    ----------
    gram : array of float, shape (D, D)
        The Gram matrix of regressors (1, z), z between -1 and 1, with noise; symmetric.
    floor : float
        What an eigenvalue of it may be by noise alone.

    Examples
    --------
    A column that is spread evenly from -1 to 1, where answers turn from no to yes at 0:

    >>> model = MarginModel(np.diag([900.0, 300.0]), floor=1.0)
    >>> score, slope = model.score(np.array([0.0, 6.0]))
    >>> score.round(1), slope.round(1)
    (array([450. , 204.9]), array([[74.6, -0. ],
           [-0. ,  6.3]]))
    """

    def __init__(self, gram: Floats, floor: float) -> None:
        values, vectors = np.linalg.eigh(gram)
        gram = (vectors * np.maximum(values, floor)) @ vectors.T
        self.n = max(1.0, float(gram[0, 0]))
        self.mean = gram[0] / self.n
        # The constant's mean is 1, whatever noise made of its entry.
        self.mean[0] = 1.0
        values, vectors = np.linalg.eigh(gram / self.n - np.outer(self.mean, self.mean))
        self.covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
        self.kept = floor * _OF_FLOOR * np.eye(len(gram)) + _KEPT * gram

    def score(self, slopes: Floats) -> tuple[Floats, Floats]:
        """S and its slope."""
        turned = self.covariance @ slopes
        variance = max(float(slopes @ turned), 1e-12)
        middle, spread = float(self.mean @ slopes), math.sqrt(variance)
        reach = max(float(np.abs(slopes[1:]).sum()), 1e-6)
        at = min(max((middle - float(slopes[0])) / reach, -_NEAREST), _NEAREST)
        share = min(variance / reach**2, _NEAREST * (1 - at**2))
        places, weights = _beta_points(at, share)
        away = (places - at) / math.sqrt(share)
        p = 1 / (1 + np.exp(-np.clip(middle + spread * away, -500.0, 500.0)))
        rows = self.mean + np.outer(away / spread, turned)
        steep = weights * p * (1 - p)
        rest = self.covariance - np.outer(turned, turned) / variance
        slope = (rows * steep[:, None]).T @ rows + steep.sum() * rest
        return self.n * ((weights * p) @ rows), self.n * slope

    def next(self, slopes: Floats, score: Floats) -> Floats:
        """The coefficients at which the score is 0, as far as M tells."""
        start = slopes
        base, curve = self.score(slopes)
        left = score
        for _ in range(_STEPS):
            length = float(np.linalg.norm(left))
            move = np.linalg.solve(curve + self.kept, left)
            for k in range(_HALVINGS):
                tried = slopes - move / 2**k
                there, curved = self.score(tried)
                new = there - base + score + self.kept @ (tried - start)
                if float(np.linalg.norm(new)) <= (1 - 0.25 / 2**k) * length:
                    break
            else:
                break
            slopes, left, curve = tried, new, curved
            # Newton's steps end where sampling errors are far larger.
            if float(np.linalg.norm(left)) <= 1e-6 * (1 + float(np.linalg.norm(score))):
                break
        return slopes


def _beta_points(mean: float, variance: float) -> tuple[Floats, Floats]:
    """Gauss's points and weights of the Beta law on [-1, 1] with that mean and variance."""
    total = min((1 - mean**2) / variance - 1, 1e4)
    a, b = total * (1 - mean) / 2 - 1, total * (1 + mean) / 2 - 1
    i = np.arange(1, _POINTS)
    s = 2 * i + a + b
    diagonal = np.append((b - a) / (a + b + 2), (b**2 - a**2) / (s * (s + 2)))
    j, t = i[1:], s[1:]
    first = 4 * (1 + a) * (1 + b) / ((2 + a + b) ** 2 * (3 + a + b))
    others = 4 * j * (j + a) * (j + b) * (j + a + b) / (t**2 * (t + 1) * (t - 1))
    beside = np.sqrt(np.append(first, others))
    places, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return places, vectors[0] ** 2
