"""Layer 3, infer: from simulated releases to standard errors, intervals, p-values and sizes.

An estimate's *errors* are draws of (estimate - truth), simulated from the whole mechanism at the
parameter that was estimated. From them, for free and as often as one likes:

* the standard error, of all and of sampling alone; what is left is the noise's;
* an interval at any confidence, [estimate - upper quantile, estimate - lower quantile];
* a p-value of any value v, (1 + #{|error| >= |estimate - v|})/(B + 1) or its one-sided forms.

The p-value counts the observation among the simulated ones, so that a test at level a is wrong with
probability at most a whatever B is, where the null fixes the law.

Source. Davison and Hinkley, "Bootstrap Methods and their Application", 1997, sections 4.2 and 5.2;
for private releases Ferrando, Wang and Sheldon, "Parametric bootstrap for differentially private
confidence intervals", AISTATS 2022. The bias from clamping is removed as in Gouriéroux, Monfort and
Renault, "Indirect inference", 1993: the parameter is where the mechanism's expectation is what was
released.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dither import _checks as check
from dither._search import least_integer
from dither._stats import two_sided
from dither.errors import ArgumentError
from dither.inference.engine._inputs import Floats
from dither.inference.engine._simulation import reporting

__all__ = [
    "ALTERNATIVES",
    "DRAWS",
    "Alternative",
    "Errors",
    "SimulatedErrors",
    "as_alternative",
    "closest",
    "inverted",
    "monte_carlo",
    "normal_power",
    "rows_needed",
]

Alternative = Literal["two-sided", "less", "greater"]
ALTERNATIVES = ("two-sided", "less", "greater")

DRAWS = 4000
"""Simulated releases where nothing else is said: the error of a p-value of 0.05 is 0.0035."""


def as_alternative(given: str) -> Alternative:
    """One of the three alternatives by its name."""
    return check.choice("alternative", given, ALTERNATIVES)  # type: ignore[return-value]


def monte_carlo(observed: float, simulated: Floats, alternative: str = "greater") -> float:
    """The Monte Carlo p-value (1 + #)/(B + 1) of a statistic among those of the null.

    Parameters
    ----------
    observed : float
        The statistic that was released, or computed from what was.
    simulated : array of float, shape (B,)
        The same, of releases that were simulated under the null.
    alternative : {"greater", "less", "two-sided"}
        Which statistics speak against the null; two-sided doubles the smaller p-value.

    Examples
    --------
    >>> monte_carlo(3.0, np.arange(4.0)), monte_carlo(3.0, np.arange(4.0), "less")
    (0.4, 1.0)
    """
    draws = np.asarray(simulated, dtype=float)
    above = (1 + int((draws >= observed).sum())) / (draws.size + 1)
    below = (1 + int((draws <= observed).sum())) / (draws.size + 1)
    kind = as_alternative(alternative)
    if kind == "two-sided":
        return min(1.0, 2.0 * min(above, below))
    return above if kind == "greater" else below


class Errors(ABC):
    """How far an estimate of k numbers may be off.

    Attributes
    ----------
    exact : bool
        Whether p-values are computed, so that they may be as small as they like.
    """

    exact: ClassVar[bool] = False

    @property
    @abstractmethod
    def se(self) -> Floats:
        """Standard errors, of sampling and noise together, shape (k,)."""

    @property
    @abstractmethod
    def se_sampling(self) -> Floats:
        """Standard errors without the noise, shape (k,)."""

    @property
    def se_privacy(self) -> Floats:
        """What the noise, and what privacy costs beside it, adds: the root of the difference."""
        whole = self.se
        part = np.divide(self.se_sampling, whole, out=np.ones_like(whole), where=whole > 0)
        return np.asarray(whole * np.sqrt(np.maximum(1.0 - part**2, 0.0)))

    @abstractmethod
    def interval(self, confidence: float) -> Floats:
        """Lower and upper ends, shape (k, 2)."""

    @abstractmethod
    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """P-values of null values, shape (k,)."""

    def power(self, truth: Floats, null: Floats, level: float) -> Floats:
        """How often null values would be rejected, two-sided, where these are true, shape (k,).

        Errors are taken to be normal, with the standard errors that were found.
        """
        return normal_power(truth - null, self.se, two_sided(1.0 - level))


def normal_power(off: Floats, se: Floats, reach: float) -> Floats:
    """How often normal errors of these deviations pass so many deviations, from so far off.

    Examples
    --------
    >>> normal_power(np.array([0.0, 2.8, 1.0]), np.array([1.0, 1.0, math.inf]), 1.96).round(3)
    array([0.05, 0.8 , 0.05])
    """
    # A thousand deviations off, the power is 1 to every digit; a quotient might be infinite.
    apart = np.minimum(np.abs(off) / np.maximum(se, 1e-300), 1e3)
    return np.array(
        [sum(math.erfc((reach + s * a) / math.sqrt(2.0)) for s in (-1, 1)) / 2 for a in apart]
    )


@dataclass(frozen=True, eq=False)
class SimulatedErrors(Errors):
    """Errors by draws of (estimate - truth).

    Parameters
    ----------
    estimate : array of float, shape (k,)
    draws : array of float, shape (B, k)
        With the noise.
    sampling : array of float, shape (B, k)
        Without it; NaN where what was released does not tell the two apart.
    limits : array of float, shape (k, 2), optional
        Where the truth is known to lie: intervals are cut there.

    Examples
    --------
    >>> draws = np.linspace(-2, 2, 401)[:, None]
    >>> errors = SimulatedErrors(np.array([5.0]), draws, draws / 2)
    >>> errors.interval(0.9).round(2).tolist(), errors.pvalue(np.array([5.0]), "two-sided")
    ([[3.19, 6.81]], array([1.]))
    """

    estimate: Floats
    draws: Floats
    sampling: Floats
    limits: Floats | None = None

    def against(self, contrast: Sequence[float]) -> SimulatedErrors:
        """Errors of one linear combination of the numbers, with no limits.

        Examples
        --------
        >>> draws = np.array([[1.0, 2.0], [3.0, 5.0]])
        >>> both = SimulatedErrors(np.array([4.0, 1.0]), draws, draws)
        >>> both.against([1, -1]).estimate, both.against([1, -1]).draws.tolist()
        (array([3.]), [[-1.0], [-2.0]])
        """
        column = np.asarray(contrast, dtype=np.float64)[:, None]
        return SimulatedErrors(self.estimate @ column, self.draws @ column, self.sampling @ column)

    @property
    def se(self) -> Floats:
        """The root of the mean square of the errors; noise never makes it smaller."""
        return np.fmax(_root_mean_square(self.draws), self.se_sampling)

    @property
    def se_sampling(self) -> Floats:
        """The same of the errors without noise."""
        return _root_mean_square(self.sampling)

    def interval(self, confidence: float) -> Floats:
        """The basic interval: errors are as likely on either side as they were simulated.

        Its ends are the order statistics beyond which one more error falls with just that
        probability, so that few draws do not make it too narrow.
        """
        outside = (1.0 - check.confidence(confidence)) / 2.0
        levels = [outside, 1.0 - outside]
        # Weibull's rule, k of B + 1, is the one by which a p-value (1 + #)/(B + 1) is inverted.
        low, high = np.quantile(self.draws, levels, axis=0, method="weibull")
        ends = np.stack([self.estimate - high, self.estimate - low], axis=1)
        if self.limits is not None:
            ends = np.clip(ends, self.limits[:, :1], self.limits[:, 1:])
        return ends

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """Monte Carlo p-values; `interval` holds what is not rejected."""
        off = self.estimate - null
        return np.array(
            [monte_carlo(off[j], self.draws[:, j], alternative) for j in range(off.size)]
        )

    def power(self, truth: Floats, null: Floats, level: float) -> Floats:
        """The share of simulated errors with which the null is rejected."""
        low, high = np.quantile(self.draws, [level / 2, 1.0 - level / 2], axis=0, method="weibull")
        off = self.draws + (truth - null)
        return np.asarray(np.mean((off < low) | (off > high), axis=0))


def _root_mean_square(draws: Floats) -> Floats:
    """Of each column; squares are of numbers near 1, so that none leaves the doubles."""
    top = np.max(np.abs(draws), axis=0)
    # A column of zeros, or with an infinity, is left as it is: 0/0 would be NaN.
    size = np.where(np.isfinite(top) & (top > 0), top, 1.0)
    return np.asarray(size * np.sqrt(np.mean((draws / size) ** 2, axis=0)))


def closest(off: Callable[[Floats], Floats], at: Floats, low: Floats, high: Floats) -> Floats:
    """The parameter in a box at which a mechanism's expectation is closest to what was released.

    Parameters
    ----------
    off : callable
        Of a parameter, shape (p,): the weighted differences, expected less released.
    at, low, high : array of float, shape (p,)
        Where to start, and the box.

    Notes
    -----
    Damped Gauss-Newton steps with numeric slopes: never worse than the start, whatever ``off`` is.

    Examples
    --------
    >>> find = lambda x: np.array([x[0] ** 2 - 2.0])
    >>> closest(find, np.array([1.0]), np.array([0.0]), np.array([9.0])).round(6)
    array([1.414214])
    """
    at = np.clip(at, low, high)
    value, damping = off(at), 1e-3
    best = float(value @ value)
    reach = np.eye(at.size) * 1e-5
    for _ in range(60):
        # Central differences: the curve and the roundings are off by about 1e-10 each.
        slope = np.stack([(off(at + h) - off(at - h)) / 2e-5 for h in reach], axis=1)
        square = slope.T @ slope
        # Steps of Levenberg and Marquardt: a search for an estimate, of which no bound is taken.
        damped = square + damping * np.diag(np.maximum(np.diag(square), 1e-9))
        tried = np.clip(at - np.linalg.solve(damped, slope.T @ value), low, high)
        found = off(tried)
        new = float(found @ found)
        if new < best:
            # Where it stops, and how bold a step may become: as above, no bound.
            done = best - new <= 1e-12 * (1.0 + best)
            at, value, best, damping = tried, found, new, max(damping / 5.0, 1e-9)
            if done:
                break
        elif (damping := damping * 4.0) > 1e8:
            break
    return at


def inverted(
    above: Callable[[float], float],
    below: Callable[[float], float],
    *,
    confidence: float,
    inside: float,
    limits: tuple[float, float],
    steps: int = 40,
) -> tuple[float, float]:
    """The interval of the values that two one-sided tests do not reject.

    Parameters
    ----------
    above, below : callable
        P-values of a null value against larger, and smaller, truths: they rise, and fall, with it.
    confidence : float
        In (0, 1); each side is tested at half of what is left.
    inside : float
        A value that neither rejects, or nearly: the estimate.
    limits : (float, float)
        Where values end.
    steps : int
        Halvings of each side.
    """
    level = (1.0 - check.confidence(confidence)) / 2.0
    ends = []
    for pvalue, end in ((above, limits[0]), (below, limits[1])):
        kept, gone = min(max(inside, limits[0]), limits[1]), end
        if pvalue(end) > level:
            kept = end
        else:
            for _ in range(steps):
                middle = (kept + gone) / 2.0
                kept, gone = (middle, gone) if pvalue(middle) > level else (kept, middle)
        # The outer of the two, so that nothing that is not rejected lies beyond it.
        ends.append(gone)
    return ends[0], ends[1]


def rows_needed(reached: Callable[[int], bool], *, least: int = 4, most: int = 10**7) -> int:
    """The least number of rows with which something that more rows make easier is reached.

    Parameters
    ----------
    reached : callable
        Of a number of rows; by simulation, so nearly monotone.
    least, most : int
        Where to look.

    Raises
    ------
    ArgumentError
        It is not reached with the most rows.
    """
    asked = reporting(reached, "rows needed")
    found = least_integer(asked, least, step=max(1, least // 2), most=most)
    if found is None:
        raise ArgumentError(f"no n up to {most:,} is enough: ask for a larger epsilon or effect")
    return math.ceil(found)
