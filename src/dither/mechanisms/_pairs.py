"""Intervals for covariance, slope and correlation from noisy sums of two columns.

With n, X = Σ x, Y = Σ y, P = Σ x·y, A = Σ x² and B = Σ y², each the released combination of
measurements, let at means a, b and a ratio of deviations s

    C = P - a·Y - b·X + a·b·n,    Q = A - 2a·X + a²·n,    R = B - 2b·Y + b²·n.

At the true means (and the true s) the covariance is C/n, the slope C/Q, and the correlation

    C / ((s·Q + R/s)/2):

ratios of two linear combinations, whose noisy top less theta times bottom is noise alone at the
true theta, as in `_ratio`. What is true of a, b and s is not known, but hardly matters: with a and
b off by d and e, C is off by n·d·e, Q by n·d² and R by n·e², and with s off by a factor t the
bottom grows by (t + 1/t)/2. So a fortieth of the allowed error goes to each of the intervals for a,
b and s, and the rest to the pivot; and the interval is the union over the corners of their box and
its middle.

Source. Fieller, as in `_ratio`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither.mechanisms._combination import Floats, Noise, half_width
from dither.mechanisms._ratio import fieller

__all__ = ["Combination", "PairSums", "pair_interval"]

_APART = 1 / 40
"""Of the error that is allowed, to each of what hardly matters."""

_LARGE = 1e150


@dataclass(frozen=True)
class Combination:
    """A linear combination of measurements: by place, its coefficients, of groups or of all.

    Parameters
    ----------
    terms : mapping from places to arrays
    """

    terms: Mapping[int, Floats]

    def __add__(self, other: Combination) -> Combination:
        merged = dict(self.terms)
        for place, c in other.terms.items():
            merged[place] = merged.get(place, np.zeros(())) + c
        return Combination(merged)

    def __mul__(self, factor: npt.ArrayLike) -> Combination:
        f = np.asarray(factor, dtype=float)
        return Combination({place: c * f for place, c in self.terms.items()})

    def value(self, measured: Mapping[int, Floats]) -> Floats:
        """Of the noisy measurements."""
        return np.asarray(sum(c * measured[place] for place, c in self.terms.items()))


@dataclass(frozen=True)
class PairSums:
    """The sums of two columns as combinations of measurements.

    Parameters
    ----------
    n, x, y, xy : Combination
    xx, yy : Combination or None
        As far as they are needed.
    reach : (float, float)
        No mean of x, or of y, is further from 0.
    """

    n: Combination
    x: Combination
    y: Combination
    xy: Combination
    xx: Combination | None
    yy: Combination | None
    reach: tuple[float, float]

    def covariance(self, a: Floats, b: Floats) -> Combination:
        """C."""
        return self.xy + self.y * -a + self.x * -b + self.n * (a * b)

    def first(self, a: Floats) -> Combination:
        """Q."""
        assert self.xx is not None
        return self.xx + self.x * (-2 * a) + self.n * a**2

    def second(self, b: Floats) -> Combination:
        """R."""
        assert self.yy is not None
        return self.yy + self.y * (-2 * b) + self.n * b**2


def pair_interval(
    word: str,
    sums: PairSums,
    measured: Mapping[int, Floats],
    noises: Mapping[int, Noise],
    confidence: float,
) -> tuple[Floats, Floats]:
    """The interval for a statistic of two columns, in each group.

    Parameters
    ----------
    word : {"COVARIANCE", "SLOPE", "CORRELATION"}
    sums : PairSums
    measured : mapping from places to arrays
        Noisy measurements, of every group.
    noises : mapping from places to noises
    confidence : float
        In (0, 1).

    Returns
    -------
    lower, upper : arrays of float
        -inf and inf where nothing can be said.
    """
    apart = (1 - check.confidence(confidence)) * _APART
    known = 3 if word == "CORRELATION" else 2
    pivot = 1 - (1 - confidence) * (1 - known * _APART)

    def ratio(top: Combination, bottom: Combination, confidence: float) -> tuple[Floats, Floats]:
        return _ratio(top, bottom, measured, noises, confidence)

    means = [
        [np.clip(end, -reach, reach) for end in ratio(total, sums.n, 1 - apart)]
        for total, reach in ((sums.x, sums.reach[0]), (sums.y, sums.reach[1]))
    ]
    boxes = [
        [*ends, _middle(total, sums.n, ends, measured)]
        for total, ends in zip((sums.x, sums.y), means, strict=True)
    ]
    lower, upper = np.array(np.inf), np.array(-np.inf)

    def include(ends: tuple[Floats, Floats]) -> None:
        nonlocal lower, upper
        lower, upper = np.minimum(lower, ends[0]), np.maximum(upper, ends[1])

    corners = list(_corners(boxes))
    if word == "CORRELATION":
        least, most = np.array(np.inf), np.array(-np.inf)
        for a, b in corners:
            low, high = ratio(sums.second(b), sums.first(a), 1 - apart)
            least, most = np.minimum(least, low), np.maximum(most, high)
        # A ratio that may be 0, or without end, says nothing of s.
        told = (least > 0) & (most < _LARGE)
        ends = [np.sqrt(np.where(told, end, 1.0)) for end in (least, most)]
        scales = [*ends, np.sqrt(ends[0] * ends[1])]
        for a, b, s in _corners([*boxes, scales]):
            both = sums.first(a) * (s / 2) + sums.second(b) * (1 / (2 * s))
            include(ratio(sums.covariance(a, b), both, pivot))
        return np.where(told, lower, -np.inf), np.where(told, upper, np.inf)
    for a, b in corners:
        bottom = sums.n if word == "COVARIANCE" else sums.first(a)
        include(ratio(sums.covariance(a, b), bottom, pivot))
    return lower, upper


def _corners(boxes: Sequence[Sequence[Floats]]) -> Iterator[tuple[Floats, ...]]:
    """All combinations of both ends, and that of the middles."""
    yield from product(*(box[:2] for box in boxes))
    yield tuple(box[2] for box in boxes)


def _middle(
    total: Combination, n: Combination, ends: Sequence[Floats], measured: Mapping[int, Floats]
) -> Floats:
    """The mean, where there is one, within its interval."""
    rows = n.value(measured)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(rows > 0, total.value(measured) / rows, (ends[0] + ends[1]) / 2)
    return np.clip(found, *ends)


def _ratio(
    top: Combination,
    bottom: Combination,
    measured: Mapping[int, Floats],
    noises: Mapping[int, Noise],
    confidence: float,
) -> tuple[Floats, Floats]:
    """Fieller's interval of one combination over another, in every group."""
    places = list(dict.fromkeys((*top.terms, *bottom.terms)))
    over, under = top.value(measured), bottom.value(measured)
    over, under = np.broadcast_arrays(over, under)
    zero = np.zeros(())
    above, below = (
        [np.broadcast_to(c.terms.get(p, zero), over.shape).ravel() for p in places]
        for c in (top, bottom)
    )

    def width(theta: Floats, where: npt.NDArray[np.intp]) -> Floats:
        pairs = zip(above, below, places, strict=True)
        return half_width(
            [(a[where] - theta * b[where], noises[p]) for a, b, p in pairs], confidence
        )

    reach = half_width([(b, noises[p]) for b, p in zip(below, places, strict=True)], confidence)
    return fieller(over, under, width, np.asarray(reach))
