"""Layer 3 of survival: curves with pointwise and simultaneous intervals.

The cumulative hazard Λ at the end of a bin is a sum of events over those at risk, whose error has
the variance A·Λ of sampling (that of Nelson and Aalen, with A the mean of 1/n by events) and N of
noise. Releases are simulated at hazards as they were released, none below 0, and give the law of

    z = (Λ̃ - Λ)/√(A·Λ + N).

An interval holds each Λ whose z lies between the quantiles of that law, or of the normal one where
that is wider: as the variance is that of the Λ that is tested, few events leave no interval too
short. With the quantile of the largest |z| over all bins and arms it is a band that holds whole
curves. Bands are made to fall, which a survival curve does; the estimate is the falling curve
halfway between the two that hold exp(-Λ̃).

From the bin in which those at risk cannot be told from none, nothing but "it has fallen no less"
is said: the lower end is 0.

Source. Kaplan and Meier, JASA 1958; Nair, "Confidence bands for survival functions with censored
data", Technometrics 1984, for bands of equal precision; Brookmeyer and Crowley, Biometrics 1982,
for the median.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dither import _checks as check
from dither._format import level, loss_text, number_text, remaining
from dither._stats import two_sided
from dither.errors import ArgumentError
from dither.inference.engine._errors import Alternative, Errors, monte_carlo
from dither.inference.engine._inputs import Floats
from dither.inference.engine._result import PrivateEstimate
from dither.inference.engine._tabulated import PrintedTable
from dither.inference.survival._counts import SurvivalCounts
from dither.privacy import Loss

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

__all__ = ["SurvivalEstimate", "curves_of"]

_OUTWARDS = (remaining, loss_text, remaining, loss_text)
"""How ends are rounded: what is printed holds all that was found."""


@dataclass(frozen=True, eq=False)
class CurveErrors(Errors):
    """Errors of survival at the ends of bins, arm after arm.

    Parameters
    ----------
    hazard : array of float, shape (arms, K)
        Λ̃.
    rate, noise : array of float, shape (arms, K)
        A and N.
    z : array of float, shape (B, arms, K)
    reached : array of int, shape (arms,)
    """

    hazard: Floats
    rate: Floats
    noise: Floats
    z: Floats
    reached: Any

    @cached_property
    def known(self) -> Any:
        """Which bins tell anything, shape (arms, K)."""
        return np.arange(self.hazard.shape[1]) < np.asarray(self.reached)[:, None]

    def _at(self, quantile: Floats) -> Floats:
        """The Λ whose z is a quantile."""
        middle = quantile**2 * self.rate / 2
        inner = quantile**2 * self.rate**2 / 4 + self.rate * self.hazard + self.noise
        found = self.hazard + middle - quantile * np.sqrt(np.maximum(inner, 0.0))
        return np.asarray(np.maximum(found, 0.0))

    def _ends(self, low: Floats, high: Floats) -> Floats:
        """Survival between two quantiles of z, shape (arms, K, 2); 0 and the last where unknown."""
        lower, upper = np.exp(-self._at(low)), np.exp(-self._at(high))
        for arm, last in enumerate(self.reached):
            lower[arm, last:] = 0.0
            upper[arm, last:] = upper[arm, last - 1] if last else 1.0
        return np.stack([np.minimum(lower, upper), np.maximum(lower, upper)], axis=-1)

    def pointwise(self, confidence: float) -> Floats:
        """Shape (arms, K, 2)."""
        out, plain = (1 - confidence) / 2, two_sided(confidence)
        low, high = np.quantile(self.z, [out, 1 - out], axis=0, method="weibull")
        return self._ends(np.minimum(low, -plain), np.maximum(high, plain))

    def band(self, confidence: float) -> Floats:
        """The same, that hold all of the curves at once."""
        largest = np.where(self.known, np.abs(self.z), 0.0).max(axis=(1, 2))
        reach = float(np.quantile(largest, confidence, method="weibull"))
        reach = max(reach, two_sided(confidence))
        wide = np.full_like(self.hazard, reach)
        found = self._ends(-wide, wide)
        # What falls lies below the lowest upper end so far, and above the highest lower one after.
        found[..., 1] = np.minimum.accumulate(found[..., 1], axis=1)
        found[..., 0] = np.maximum.accumulate(found[:, ::-1, 0], axis=1)[:, ::-1]
        found[..., 0] = np.minimum(found[..., 0], found[..., 1])
        return found

    def interval(self, confidence: float) -> Floats:
        """Pointwise, flat."""
        return self.pointwise(confidence).reshape(-1, 2)

    def _deviation(self, noise: Floats) -> Floats:
        hazard = np.maximum(self.hazard, 0.0)
        return np.asarray(np.exp(-hazard) * np.sqrt(self.rate * hazard + noise))

    @property
    def se(self) -> Floats:
        """Greenwood's, and the noise; infinite where nothing is known."""
        return np.where(self.known, self._deviation(self.noise), math.inf).ravel()

    @property
    def se_sampling(self) -> Floats:
        """Without the noise."""
        return self._deviation(np.zeros_like(self.noise)).ravel()

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """Of a survival at each end of a bin."""
        hazard = -np.log(np.clip(null.reshape(self.hazard.shape), 1e-300, 1.0))
        spread = np.sqrt(np.maximum(self.rate * hazard + self.noise, 1e-300))
        seen = (self.hazard - hazard) / spread
        # More survive where the hazard is less.
        side = {"greater": "less", "less": "greater"}.get(alternative, alternative)
        found = [
            monte_carlo(float(seen[place]), self.z[(slice(None), *place)], side)
            if self.known[place]
            else 1.0
            for place in np.ndindex(seen.shape)
        ]
        return np.array(found)


@dataclass(frozen=True, eq=False, repr=False)
class SurvivalEstimate(PrivateEstimate):
    """Survival curves with errors of sampling and noise.

    ``estimate``, ``se`` and ``interval()`` are of the ends of all bins, arm after arm, pointwise;
    `frame` has them beside the band that holds whole curves.

    Parameters
    ----------
    arms : tuple
        The groups; one, "all", where there are none.
    edges : array of float, shape (K + 1,)
        Of the bins of time.
    """

    arms: tuple[Any, ...] = field(kw_only=True)
    edges: Floats = field(kw_only=True)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.arms), len(self.edges) - 1

    def band(self, confidence: float = 0.95) -> Floats:
        """Ends that hold all curves at all times at once with this probability.

        Parameters
        ----------
        confidence : float
            In (0, 1).

        Returns
        -------
        array of float, shape (arms, K, 2)
            At the ends of the bins.
        """
        found = self.errors
        assert isinstance(found, CurveErrors)
        return found.band(check.confidence(confidence))

    @property
    def frame(self) -> pl.DataFrame:
        """A Polars frame: arm, time, survival, lower, upper, band_lower, band_upper; at 95 %."""
        return self._curves(0.95)

    def _printed(self, confidence: float) -> PrintedTable:
        """Survival with its interval and its band; tests of one survival at all times are none."""
        at = level(confidence)
        rows = []
        for arm, time, survival, *ends in self._curves(confidence).iter_rows():
            low, high, first, last = (f(v, 3) for f, v in zip(_OUTWARDS, ends, strict=True))
            known = [number_text(time), number_text(survival, 3)]
            rows.append([arm, *known, f"{low} to {high}", f"{first} to {last}"])
        return ["arm", "time", "survival", f"{at} interval", f"{at} band"], rows, 1

    def _curves(self, confidence: float) -> pl.DataFrame:
        import polars as pl

        inside = check.confidence(confidence)
        ends, band = self.errors.interval(inside), self.band(inside).reshape(-1, 2)
        arms, bins = self._shape
        return pl.DataFrame(
            {
                "arm": [str(arm) for arm in self.arms for _ in range(bins)],
                "time": np.tile(self.edges[1:], arms),
                "survival": self.values,
                "lower": ends[:, 0],
                "upper": ends[:, 1],
                "band_lower": band[:, 0],
                "band_upper": band[:, 1],
            }
        )

    def quantile(self, survival: float = 0.5, confidence: float = 0.95) -> dict[Any, Any]:
        """By arm: when survival falls to a share, with its interval; the median by default.

        Parameters
        ----------
        survival : float
            In (0, 1).
        confidence : float
            In (0, 1).

        Returns
        -------
        dict
            (time, lower, upper) of each arm, at ends of bins; infinite where it is not reached.
        """
        share = check.number("survival", survival, above=0, below=1)
        ends = self.errors.interval(check.confidence(confidence)).reshape(*self._shape, 2)
        curves = self.values.reshape(self._shape)
        found = {}
        for arm, curve, (low, high) in zip(self.arms, curves, np.moveaxis(ends, 2, 1), strict=True):
            # The edge before the first bin that may have reached it is still above.
            first = _first(low <= share)
            lower = math.inf if first is None else float(self.edges[first])
            found[arm] = (self._when(curve, share), lower, self._when(high, share))
        return found

    def _when(self, curve: Floats, share: float) -> float:
        place = _first(curve <= share)
        return math.inf if place is None else float(self.edges[place + 1])

    def _lines(self) -> list[str]:
        lines = super()._lines()
        for arm, (at, low, high) in self.quantile().items():
            said = "not reached" if math.isinf(at) else f"{at:g}"
            upper = "no end" if math.isinf(high) else f"{high:g}"
            lower = "no end" if math.isinf(low) else f"{low:g}"
            who = "Median" if len(self.arms) == 1 else f"Median of {arm}"
            lines.append(f"{who}: {said}, from {lower} to {upper} at 95 %.")
        return lines

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw the curves, each with the band that holds it whole."""
        from dither.plots._survival import draw_survival

        return draw_survival(self, path)


def _first(held: Any) -> int | None:
    found = np.flatnonzero(held)
    return int(found[0]) if found.size else None


def falling(hazard: Floats) -> Floats:
    """Survival that falls, between the two falling curves that hold exp(-Λ̃).

    Examples
    --------
    >>> falling(np.array([[0.0, -np.log(0.5), -np.log(0.7)]])).round(2).tolist()
    [[1.0, 0.6, 0.6]]
    """
    survival = np.exp(-np.clip(hazard, 0.0, 700.0))
    low = np.minimum.accumulate(survival, axis=-1)
    high = np.maximum.accumulate(survival[..., ::-1], axis=-1)[..., ::-1]
    return np.asarray((low + high) / 2)


def curves_of(
    counts: SurvivalCounts,
    arms: Sequence[Any] | None,
    edges: Floats,
    loss: Loss,
    assumptions: tuple[str, ...],
    title: str,
    null: float,
) -> SurvivalEstimate:
    """The curves, of counts of rows in memory or of a table's."""
    released, last = counts.hazards(counts.released), counts.reached
    notes = []
    if (short := int(np.min(last))) < counts.bins:
        notes.append(
            f"from time {edges[short]:g} on those at risk are too few for this epsilon in one arm: "
            "there the interval's lower end is 0"
        )
    whole = falling(released)
    for arm, place in enumerate(last):
        whole[arm, place:] = whole[arm, place - 1] if place else 1.0

    labels = ["all"] if arms is None else [str(arm) for arm in arms]
    ends = [f"{t:g}" for t in edges[1:]]
    names = [t if arms is None else f"{arm}, {t}" for arm in labels for t in ends]
    return SurvivalEstimate(
        title,
        loss,
        assumptions,
        tuple(notes),
        tuple(names),
        whole.ravel(),
        max(0, round(float(counts.released.sum()))),
        partial(_errors, counts),
        null,
        arms=tuple(labels),
        edges=edges,
    )


def _errors(counts: SurvivalCounts, rng: np.random.Generator, size: int) -> Errors:
    released, fitted = counts.hazards(counts.released), counts.fitted
    watched = counts.watched(fitted)
    # Half an event, spread by those at risk, so that none seen is not none possible.
    share = counts.at_risk(fitted)
    events = fitted[:, 1, :-1] + 0.5 * share / share.sum(axis=-1, keepdims=True)
    hazard, lost = events / watched, counts.loss_hazards(fitted)
    truth = np.cumsum(hazard, axis=-1)
    rate = np.cumsum(events / watched**2, axis=-1) / truth
    noise = counts.drawn(rng, size)
    quiet = counts.hazards(fitted + noise)
    variance = _variance(quiet)
    sizes = fitted.sum(axis=(1, 2))
    sampled = counts.sampled(rng, size, sizes, hazard, lost)
    drawn = counts.hazards(sampled + noise)
    z = (drawn - truth) / np.sqrt(np.maximum(rate * truth + variance, 1e-300))
    return CurveErrors(released, rate, variance, z, counts.reached)


def _variance(draws: Floats) -> Floats:
    """Of the middle of a law whose tails may be those of a quotient, along the first axis."""
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    return np.asarray(((high - low) / 2 / two_sided(0.95)) ** 2)


def check_bins(bins: int, arms: int) -> int:
    """How many bins of time there are, within what a tree of counts holds."""
    size = check.whole("bins", bins, 2, 500)
    if (2 * size + 1) * arms > 4096:
        raise ArgumentError("bins must be fewer: arms times bins are at most about 2,000")
    return size
