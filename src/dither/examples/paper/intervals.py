"""How much larger one mean squared error is than another, as an interval over simulated surveys.

A survey gives each estimate one error e; its mean square over surveys estimates E[e²]. Estimates of
means from thousands of reports are close to normal, e ~ N(b, s²), and then, with n surveys ::

    against a known value      n·mean(e²)/E[e²]      ~ χ²(n)           where b = 0
    of draws of their own      ratio of the two      ~ F(n, n)         where both b = 0
    of the same draws          r, the correlation of √q·e₂ + e₁ and √q·e₂ - e₁ about 0, has
                               r·√((n - 1)/(1 - r²)) ~ t(n - 1)        where q is the true ratio

A bias makes the mean square less uncertain in proportion: that of e² is (2s⁴ + 4b²s²)/(s² + b²)²
of its square, at most 2. So the first two intervals are too wide where it is biased, not too
narrow.
The third solves r(q)² = t²/(n - 1 + t²) for q.

A verdict over several comparisons takes each end at its own level. That *all* of them lie above a
line is said where each lower end does, at `LEVEL` (a false one must mislead at every comparison, so
one that is below is missed with probability `LEVEL` at most); that *some* lies below it, where an
upper end does at `LEVEL` divided by their number (Bonferroni). Either is said wrongly with
probability 2.5 % at most, and a wrong verdict with 5 %.

Source. Pitman, "A note on normal correlation", Biometrika 1939; Morgan, 1939; Berger, 1982.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dither._extras import extra_library

__all__ = ["LEVEL", "Gap", "all_above", "all_within", "some_below", "some_outside"]

Array = npt.NDArray[np.float64]

LEVEL = 0.025
"""How often each of a verdict's two ways to be wrong happens, at most."""


@dataclass(frozen=True, slots=True, eq=False)
class Gap:
    """By how many orders of magnitude the mean square of ``above`` exceeds that of ``below``.

    Parameters
    ----------
    above, below : array of float, shape (k, runs) or (k,)
        Errors with their signs, of k comparisons by survey; or mean squared errors that are known.
        Not both are known.
    shared : bool
        Whether run i of both read the same reports.
    """

    above: Array
    below: Array
    shared: bool = False

    @property
    def runs(self) -> int:
        """Surveys of each comparison."""
        return max(int(a.shape[1]) for a in (self.above, self.below) if a.ndim == 2)

    @property
    def comparisons(self) -> int:
        """How many gaps these are."""
        return len(self.above)

    @property
    def estimates(self) -> Array:
        """The gaps as they were seen, in orders of magnitude."""
        return np.asarray(np.log10(_mean_square(self.above)) - np.log10(_mean_square(self.below)))

    def ends(self, level: float) -> tuple[Array, Array]:
        """Lower and upper ends, each on the wrong side with probability ``level`` at most.

        Without end where there is one survey: it decides nothing.
        """
        k, n = self.comparisons, self.runs
        if n < 2:
            return np.full(k, -np.inf), np.full(k, np.inf)
        found = self.estimates
        if self.shared:
            reach = self._shared_reach(level)
            return found - reach, found + reach
        stats = extra_library("scipy.stats", "inference", "what the paper claims needs")

        if self.above.ndim == self.below.ndim:
            wide = math.log10(float(stats.f.isf(level, n, n)))
            return found - wide, found + wide
        much, little = (
            math.log10(float(quantile(level, n)) / n)
            for quantile in (stats.chi2.isf, stats.chi2.ppf)
        )
        if self.below.ndim == 2:
            return found + little, found + much
        return found - much, found - little

    def _shared_reach(self, level: float) -> Array:
        """Half the interval: log10 of g + √(g² - 1), where g = 1 + 2(1 - r²)t²/(n - 1)."""
        stats = extra_library("scipy.stats", "inference", "what the paper claims needs")

        n = self.runs
        t = float(stats.t.isf(level, n - 1))
        together = np.sum(self.above * self.below, axis=1) ** 2
        alone = np.sum(self.above**2, axis=1) * np.sum(self.below**2, axis=1)
        g = 1.0 + 2.0 * np.maximum(0.0, 1.0 - together / alone) * t * t / (n - 1)
        return np.asarray(np.log10(g + np.sqrt(g * g - 1.0)))


def all_above(gaps: Sequence[Gap], line: float = 0.0) -> bool:
    """Whether every comparison is seen to lie above a line."""
    return all(bool(np.all(gap.ends(LEVEL)[0] > line)) for gap in gaps)


def some_below(gaps: Sequence[Gap], line: float = 0.0) -> bool:
    """Whether some comparison is seen to lie below a line, however many were tried."""
    level = LEVEL / sum(gap.comparisons for gap in gaps)
    return any(bool(np.any(gap.ends(level)[1] < line)) for gap in gaps)


def all_within(gaps: Sequence[Gap], reach: float) -> bool:
    """Whether every comparison is seen to lie within so much of 0, either way."""
    return all(
        bool(np.all(low > -reach) and np.all(high < reach))
        for low, high in (gap.ends(LEVEL) for gap in gaps)
    )


def some_outside(gaps: Sequence[Gap], reach: float) -> bool:
    """Whether some comparison is seen to lie further from 0, however many were tried."""
    level = LEVEL / (2 * sum(gap.comparisons for gap in gaps))
    return any(
        bool(np.any(low > reach) or np.any(high < -reach))
        for low, high in (gap.ends(level) for gap in gaps)
    )


def _mean_square(errors: Array) -> Array:
    return np.asarray((errors**2).mean(axis=1) if errors.ndim == 2 else errors)
