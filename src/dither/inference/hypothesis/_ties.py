"""How much ties narrow the null of a test by ranks: measured with noise, at a part of epsilon.

A null that knows of no ties is too wide for values of few levels, such as answers on a scale of
five points, and the test hardly rejects. So beside the statistic its permutation variance leaves,
as one number T that a row moves by at most 1.

Release. Values have classes of ties of sizes t; of n rows,

* *groups* (Mann-Whitney, Kruskal-Wallis): T = Σ r_i²/n², r_i twice the centred mean rank. Of the m
  values that are not missing Σ r_i² = (m³ - Σ t³)/3. A row that leaves a class of a and enters one
  of b moves it by b² + b - a² + a, within n(n - 1); one that becomes known by m² + m - t² - t >= 0.
  T without ties is (n² - 1)/(3n).
* *signed ranks*: T = Σ r_i²/n² over d_i != 0, r_i the mean rank of |d_i|. With z zeros it is
  (z + 1)² + ... + n², less (t³ - t)/12 for each class. A row that stops being 0 adds z² and takes
  b(b + 1)/4, one that changes its class moves it by at most n²/4: n² at most. Without ties it is
  (n + 1)(2n + 1)/(6n).
* *pairs* (Kendall's tau): T = U·W/(6n⁵), U = n³ - Σ t³ of one column and W of the other, to which
  the variance is proportional but for lower powers of n. A row moves U by at most 3n(n - 1), and
  U <= n³: T by less than 2·3/6 = 1. Rows that miss a value are a class by themselves, which makes T
  too large rather than too small. Without ties it is (n³ - n)²/(6n⁵).

*A row that is added.* Of the first two the sum grows by 0 to (n + 1)², and is divided by (n + 1)²
for n²: T grows by at most 1, and falls by at most T·(2n + 1)/(n + 1)² <= 3/4. Of pairs, with
u = U/n² <= n, u' >= u·n²/(n + 1)² and u' <= u + 3, 6T = u·w/n grows by less than 3 + 3, and falls
by at most n·(1 - (n/(n + 1))⁵) < 5.

The noise is Laplace's. Where n is public the part of epsilon is what makes T known to a tenth of
its largest value, and of few rows, whose part would be large, nothing is spent; where it is not,
it is a tenth.

Model. The null without ties is drawn narrower by √(T⁺/T₀), T⁺ = T + `_TOWARDS` deviations of the
noise, no more than T₀, that of no ties: too wide rather than too narrow.

Source. Lehmann, "Nonparametrics", 1975, appendix, for the variances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dither import _checks as check
from dither._subjects import Subject
from dither.inference.engine._inputs import Floats, Target, target
from dither.inference.engine._release import Noise, fixed_noise, seen_at_best, spread_of
from dither.inference.engine._statistic import Statistic
from dither.privacy import Loss

__all__ = ["KINDS", "Ties", "TiesRelease", "part_of_ties", "rest_of"]

_TOWARDS = 0.7
"""Deviations of its noise by which a variance is taken to be larger than it was measured."""

_MOST, _MEASURED = Fraction(1, 6), Fraction(1, 10)
"""Of epsilon: at most, and where n is not public."""

_WANTED = 40
"""The part of epsilon that is spent, times n and epsilon: T₀ is about n/3, its noise √2·n/40."""


def _cubes(values: Floats) -> int:
    """Σ t³ over classes of ties; what is missing is a class by itself."""
    missing = int(np.isnan(values).sum())
    _, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    return missing**3 + sum(int(c) ** 3 for c in counts.tolist())


def _of_groups(values: Floats) -> Fraction:
    known = values[~np.isnan(values)]
    return Fraction(known.size**3 - _cubes(known), 3 * max(1, values.size) ** 2)


def _of_signed_ranks(d: Floats) -> Fraction:
    zeros, n = int((d == 0).sum()), d.size
    _, counts = np.unique(np.abs(d[d != 0]), return_counts=True)
    whole = n * (n + 1) * (2 * n + 1) - zeros * (zeros + 1) * (2 * zeros + 1)
    tied = sum(int(c) ** 3 - int(c) for c in counts.tolist())
    return Fraction(2 * whole - tied, 12 * max(1, n) ** 2)


def _of_pairs(pairs: Floats) -> Fraction:
    n = len(pairs)
    lost = np.isnan(pairs).any(axis=1)
    first, second = (n**3 - _cubes(np.where(lost, np.nan, column)) for column in pairs.T)
    return Fraction(first * second, 6 * max(1, n) ** 5)


KINDS: dict[str, tuple[Callable[[Floats], Fraction], Callable[[float], float]]] = {
    "groups": (_of_groups, lambda n: (n * n - 1) / (3 * n)),
    "signed ranks": (_of_signed_ranks, lambda n: (n + 1) * (2 * n + 1) / (6 * n)),
    "pairs": (_of_pairs, lambda n: (n**3 - n) ** 2 / (6 * n**5)),
}
"""By name: T of values, and what it is of n rows without ties."""


def part_of_ties(asked: Target, rows: int | None) -> Fraction:
    """Of epsilon, what it is worth to know of ties; rows where their number is public.

    Examples
    --------
    >>> [str(part_of_ties(target(1, 0, "replace"), n)) for n in (75, 240, 400, 4000)]
    ['0', '1/6', '1/10', '1/100']
    >>> part_of_ties(target(1, 0, "add-remove"), None)
    Fraction(1, 10)
    """
    if rows is None:
        return _MEASURED
    known = rows * asked.epsilon
    if known * _MOST < _WANTED / 2:
        return Fraction(0)
    return min(_MOST, Fraction(_WANTED) / known)


def rest_of(asked: Target, part: Fraction) -> Target:
    """What is left for the statistic."""
    return Target(asked.epsilon * (1 - part), asked.delta, asked.neighbours)


@dataclass(frozen=True)
class TiesRelease:
    """Layer 1: T of values, by one of the three ways.

    Parameters
    ----------
    kind : {"groups", "signed ranks", "pairs"}
    asked : Target

    Attributes
    ----------
    noise : Laplace
    loss : Loss
    """

    kind: str
    asked: Target
    noise: Noise = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        noise, loss = fixed_noise(asked=self.asked, dimension=1, l1=Fraction(1))
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "loss", loss)

    def statistic(self, values: Floats) -> tuple[Fraction]:
        """T, exactly."""
        return (KINDS[self.kind][0](values),)

    def release(self, values: Floats) -> float:
        """T with noise: the one step that touches data."""
        return float(self.noise.release(self.statistic(values))[0])

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: a row that leaves all others, with which it tied, or one added.

        Of pairs no tables are known that use more than half of the claim, which is a bound.
        """
        known, unknown = target(1, 0, "replace"), target(1, 0, "add-remove")
        first, second = np.zeros(200), np.append(np.zeros(199), 1.0)
        for kind, before, after in (
            ("groups", first, second),
            ("signed ranks", first, second),
        ):
            design = cls(kind, known)
            yield Subject(f"ties of {kind}", seen_at_best(design, before, after), before, after)
        design, more = cls("signed ranks", unknown), np.append(first, 1.0)
        seen = seen_at_best(design, first, more)
        yield Subject("ties of unknown n", seen, first, more)


@dataclass(frozen=True)
class Ties:
    """What was measured of ties, and what it makes of a null.

    Parameters
    ----------
    kind : str
    most : float or None
        T⁺; None where nothing was spent.
    loss : Loss or None
    """

    kind: str
    most: float | None
    loss: Loss | None

    @classmethod
    def release(cls, kind: str, values: Floats, asked: Target, ties: bool) -> tuple[Ties, Target]:
        """Measure T where it is worth it; also what is left of epsilon."""
        rows = len(values) if asked.replace else None
        part = part_of_ties(asked, rows) if check.flag("ties", ties) else Fraction(0)
        if part == 0:
            return cls(kind, None, None), asked
        pure = Target(asked.epsilon * part, Fraction(0), asked.neighbours)
        design = TiesRelease(kind, pure)
        most = design.release(values) + _TOWARDS * spread_of(design.noise).deviation
        return cls(kind, most, design.loss), rest_of(asked, part)

    def narrowing(self, n: int) -> float:
        """By how much deviations of the null of n rows are smaller than without ties."""
        if self.most is None:
            return 1.0
        whole = KINDS[self.kind][1](float(max(2, n)))
        return math.sqrt(min(1.0, max(0.0, self.most / whole)))

    def narrowed(self, simulate: Statistic) -> Statistic:
        """The null of tied values, from that of values without ties."""

        def drawn(rng: np.random.Generator, n: int, size: int) -> Floats:
            return np.asarray(simulate(rng, n, size) * self.narrowing(n))

        return drawn

    def cost(self, loss: Loss) -> Loss:
        """What a release costs with this one."""
        return loss if self.loss is None else self.loss + loss
