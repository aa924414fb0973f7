"""A proportion: the exact, uniformly most powerful private test, and the intervals that it gives.

Release. Under REPLACE n is public and X = #{yes} leaves as Z = X + N with canonical (Tulap) noise
N: integer noise of `Tulap`, or of `DiscreteLaplace` where delta is 0, plus a uniform fraction in
(-1/2, 1/2) that says nothing of the data and makes the test exact. Under ADD_REMOVE a row changes
one of the two numbers of yes and of no by 1, so that both leave with that noise at the price of
one.

Test (n public). Against a larger truth the p-value of p0 is Pr[X0 + N0 >= Z] for X0 ~ Binomial(n,
p0) and fresh N0, computed as Σ_x Pr[X0 = x]·Pr[N0 >= Z - x]. It is uniform under p0, and no other
(epsilon, delta)-private test of its level is more powerful against any larger truth. Two-sided
p-values double the smaller one; intervals hold what two one-sided tests do not reject: coverage is
exact.

Test (n measured). Z_yes is placed among X' + N'_yes, where X' ~ Binomial(n', p0) and n' mixes over
the numbers of rows that noise leaves possible: the released sum of both counts, less the fresh
noise N'_yes + N'_no of the same draw, and no less than 0. So, given their sum, Z_yes has the law
that it has where any number of rows was as likely as any other before, and over such numbers the
p-value is uniform. Against a smaller truth Z_no and 1 - p0 take their places. Both rise, or fall,
with p0.

At one number of rows of a few, at middling noise, that alone is off: of nominal 95 % intervals
94.1 % hold where epsilon is 2 and 3 rows of share 1/2 are there. So a quarter of the draws whose
noise moves the sum count one row more, in either test, which can but raise p-values: coverage, by
sums over the lattice, then is at least 95 % at all epsilons, shares and numbers of rows tried, and
intervals are wider by about a quarter of a row. Over X', given n', sums are exact.

Source. Awan and Slavković, "Differentially private uniformly most powerful tests for binomial
data", NeurIPS 2018, theorems 4.5 and 5.2.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.inference.engine._errors import Alternative, Errors, inverted
from dither.inference.engine._inputs import Floats, Target, column, target
from dither.inference.engine._result import PrivateEstimate, too_few_rows
from dither.mechanisms import DiscreteLaplace, Tulap
from dither.noise import below
from dither.privacy import Loss, Neighbours

__all__ = ["CanonicalNoise", "binomial", "proportion"]

_FRACTION = 1 << 40
_REACH = 1 << 20


@dataclass(frozen=True)
class CanonicalNoise:
    """Noise of a count that a row changes by at most 1, with its uniform fraction.

    Parameters
    ----------
    asked : Target
    """

    asked: Target
    law: Tulap | DiscreteLaplace = field(init=False)
    loss: Loss = field(init=False)

    def __post_init__(self) -> None:
        epsilon, delta = self.asked.epsilon, self.asked.delta
        found: tuple[Tulap | DiscreteLaplace, Loss]
        if delta > 0:
            cut = Tulap.for_loss(epsilon, delta)
            found = cut, cut.loss(neighbours=self.asked.neighbours)
        else:
            whole = DiscreteLaplace.for_loss(epsilon, l1=1)
            found = whole, whole.loss(l1=1, neighbours=self.asked.neighbours)
        for name, value in zip(("law", "loss"), found, strict=True):
            object.__setattr__(self, name, value)

    def release(self, counts: tuple[int, ...]) -> Floats:
        """Counts of which a row changes one, with noise: the one step that touches data."""
        noise = np.asarray(self.law.draw(len(counts)))
        fractions = below(_FRACTION, len(counts)).astype(np.float64)
        # The middles of equal parts of (-1/2, 1/2): no fraction lies half way between two counts.
        return np.array(counts) + noise + ((fractions + 0.5) / _FRACTION - 0.5)

    @property
    def variance(self) -> float:
        """Of the noise with its fraction."""
        return self.law.variance + 1.0 / 12.0

    @cached_property
    def _table(self) -> Floats:
        """Pr[Z >= k] of the integer noise, for k from 0 to where it vanishes."""
        most = min(_REACH, self.law.half_width(1 - 1e-13) + 2)
        return np.array([self.law.survival(k) for k in range(most + 1)])

    def survival(self, at: Floats) -> Floats:
        """Pr[N >= t] of the noise with its fraction, for an array of t."""
        near = np.floor(at + 0.5)
        # Pr[Z >= k + 1] and that share of Pr[Z = k] whose fraction lies above.
        above, here = self._integer(near + 1), self._integer(near)
        return np.asarray(above + (here - above) * (near + 0.5 - at))

    def _integer(self, k: Floats) -> Floats:
        table = self._table
        place, last = np.where(k > 0, k, 1 - k), table.size - 1
        # Beyond the table a tail falls by e^-epsilon a step, or faster where it is cut.
        beyond = np.exp(-float(self.asked.epsilon) * np.maximum(place - last, 0.0))
        tail = table[np.minimum(place, last).astype(np.intp)] * beyond
        return np.asarray(np.where(k > 0, tail, 1.0 - tail))

    def draw(self, rng: np.random.Generator, shape: int | tuple[int, ...]) -> Floats:
        """Simulated noise."""
        scale = 1.0 - math.exp(-float(self.asked.epsilon))
        found: Floats = np.zeros(0)
        size = int(np.prod(shape))
        while found.size < size:
            drawn = rng.geometric(scale, 2 * size) - rng.geometric(scale, 2 * size)
            if isinstance(self.law, Tulap):
                chance = np.where(np.abs(drawn) < self.law.reach, 1.0, 0.0)
                chance[np.abs(drawn) == self.law.reach] = self.law._constants()[1]
                drawn = drawn[rng.random(drawn.size) < chance]
            found = np.concatenate([found, drawn])
        return np.asarray(found[:size].reshape(shape) + rng.uniform(-0.5, 0.5, shape))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        known = cls(Target(Fraction(1), delta, Neighbours.REPLACE))

        def of_one(count: int, size: int) -> npt.NDArray[np.float64]:
            return count + known.release((0,) * size)

        yield Subject("proportion of n rows", of_one, 0, 1, delta=delta)
        pure = cls(Target(Fraction(1), Fraction(0), Neighbours.ADD_REMOVE))

        def of_two(counts: tuple[int, int], size: int) -> npt.NDArray[np.float64]:
            return np.array(counts) + pure.release((0,) * (2 * size)).reshape(size, 2)

        yield Subject("proportion of unknown n", of_two, (3, 2), (4, 2))


class OneSidedTests(Errors):
    """Errors of a share by its two one-sided tests, whose p-values rise or fall with the null.

    Attributes
    ----------
    steps : int
        Halvings on the way to an interval's end, as of `inverted`.
    """

    steps: ClassVar[int] = 40

    @property
    @abstractmethod
    def share(self) -> float:
        """The estimate, within [0, 1]."""

    @abstractmethod
    def _one_sided(self, p: float, *, above: bool) -> float:
        """The p-value of p against larger truths, or against smaller ones."""

    def interval(self, confidence: float) -> Floats:
        """What neither test rejects."""
        ends = inverted(
            lambda p: self._one_sided(p, above=True),
            lambda p: self._one_sided(p, above=False),
            confidence=confidence,
            inside=self.share,
            limits=(0.0, 1.0),
            steps=self.steps,
        )
        return np.array([ends])

    def pvalue(self, null: Floats, alternative: Alternative) -> Floats:
        """Of one test, or twice the smaller one of both."""
        p = min(1.0, max(0.0, float(null[0])))
        above, under = self._one_sided(p, above=True), self._one_sided(p, above=False)
        if alternative == "two-sided":
            return np.array([min(1.0, 2.0 * min(above, under))])
        return np.array([above if alternative == "greater" else under])


@dataclass(frozen=True, eq=False)
class KnownRows(OneSidedTests):
    """Exact errors where n is public.

    Parameters
    ----------
    noise : CanonicalNoise
    yes : float
        The noisy count.
    n : int
    """

    exact: ClassVar[bool] = True

    noise: CanonicalNoise
    yes: float
    n: int

    @property
    def share(self) -> float:
        """The estimate, within [0, 1]."""
        return min(1.0, max(0.0, self.yes / max(1, self.n)))

    @property
    def se(self) -> Floats:
        """Of sampling and noise."""
        return np.sqrt(self.se_sampling**2 + self.noise.variance / max(1, self.n) ** 2)

    @property
    def se_sampling(self) -> Floats:
        """At a share with one yes and one no more than were seen, so that it is never 0."""
        n = max(1, self.n)
        share = (self.share * n + 1.0) / (n + 2.0)
        return np.array([math.sqrt(share * (1.0 - share) / n)])

    def _one_sided(self, p: float, *, above: bool) -> float:
        x, law = binomial(self.n, p)
        tail = self.noise.survival(self.yes - x)
        return float(np.sum(law * (tail if above else 1.0 - tail)))


@dataclass(frozen=True, eq=False)
class MeasuredRows(OneSidedTests):
    """Simulated errors where n is measured.

    Parameters
    ----------
    noise : CanonicalNoise
    yes, no : float
        The noisy counts.
    draws : array of float, shape (B, 2)
        Simulated noise of the two.
    """

    steps: ClassVar[int] = 24

    noise: CanonicalNoise
    yes: float
    no: float
    draws: Floats

    @property
    def n(self) -> int:
        """Rows as measured, at least 1.

        Of each count the whole number alone: its fraction says nothing of the rows, and the sum of
        two might round to a row more or less.
        """
        return max(1, self._sum)

    @property
    def _sum(self) -> int:
        return math.floor(self.yes + 0.5) + math.floor(self.no + 0.5)

    @property
    def share(self) -> float:
        """The estimate, within [0, 1]."""
        return min(1.0, max(0.0, self.yes / self.n))

    @property
    def se(self) -> Floats:
        """By the delta method."""
        share = self.share
        noise = self.noise.variance * ((1.0 - share) ** 2 + share**2) / self.n**2
        return np.sqrt(self.se_sampling**2 + noise)

    @property
    def se_sampling(self) -> Floats:
        """As where n is public."""
        return KnownRows(self.noise, self.yes, self.n).se_sampling

    def _one_sided(self, p: float, *, above: bool) -> float:
        """(1 + Σ_draws Pr[X' + N' >= Z])/(B + 1): of yes, or of no where the truth is smaller."""
        from scipy.special import betainc

        sure, successes, failures, times = self._cases[0 if above else 1]
        chances = betainc(successes, failures, p if above else 1.0 - p)
        return (1.0 + sure + float(times @ chances)) / (len(self.draws) + 1.0)

    @cached_property
    def _cases(self) -> tuple[tuple[float, Floats, Floats, Floats], ...]:
        """Of yes and of no: draws without X' enough; else k and n' + 1 - k, and how often each."""
        moved = np.floor(self.draws + 0.5).sum(axis=1)
        rows = np.maximum(self._sum - moved, 0.0)
        rows[::4] += moved[::4] != 0
        found = []
        for seen, noise in zip((self.yes, self.no), self.draws.T, strict=True):
            # Whole numbers less whole numbers are exact; a fraction is never so near to one.
            least = np.ceil(seen - noise - 1e-9)
            open_ = (least > 0) & (least <= rows)
            pairs = np.stack([least, rows + 1.0 - least])[:, open_]
            (k, rest), times = np.unique(pairs, axis=1, return_counts=True)
            found.append((float((least <= 0).sum()), k, rest, times.astype(np.float64)))
        return tuple(found)


def binomial(n: int, p: float) -> tuple[Floats, Floats]:
    """The numbers that Binomial(n, p) takes, but for a mass below 1e-30, and their probabilities.

    Examples
    --------
    >>> x, law = binomial(2, 0.5)
    >>> x.tolist(), law.round(6).tolist()
    ([0.0, 1.0, 2.0], [0.25, 0.5, 0.25])
    """
    from scipy.special import gammaln, xlog1py, xlogy

    reach = 12.0 * math.sqrt(n * p * (1.0 - p)) + 40.0
    x = np.arange(
        max(0, math.floor(n * p - reach)), min(n, math.ceil(n * p + reach)) + 1, dtype=np.float64
    )
    law = gammaln(n + 1) - gammaln(x + 1) - gammaln(n - x + 1) + xlogy(x, p) + xlog1py(n - x, -p)
    # Logarithms of factorials round by up to EPS of themselves, 1e-8 at n = 10^7: mostly by the
    # same part for every x, which the sum takes out.
    chances = np.exp(law - law.max())
    return x, np.asarray(chances / chances.sum())


def as_known(errors: Errors, rng: np.random.Generator, size: int) -> Errors:
    """Errors that are known, and not simulated."""
    return errors


def as_measured(
    noise: CanonicalNoise, found: tuple[float, float], rng: np.random.Generator, size: int
) -> Errors:
    """Errors of a share of rows whose number is measured, too."""
    return MeasuredRows(noise, *found, noise.draw(rng, (size, 2)))


def proportion(
    x: Any,
    *,
    epsilon: Number,
    delta: Number = 0,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    null: float = 0.5,
) -> PrivateEstimate:
    """The share of rows that are true, with exact intervals and the most powerful private test.

    Parameters
    ----------
    x : sequence of bool or number
        One answer a row: anything but 0 is a yes. A row is who is protected.
    epsilon, delta : number
        What the release may cost; all of it is spent.
    neighbours : {"replace", "add-remove"}
        Whether the number of rows is public, or protected and measured with noise.
    null : float
        In [0, 1]: the share that ``pvalue`` tests.

    Returns
    -------
    PrivateEstimate

    Raises
    ------
    ArgumentError
        An argument is out of range. No value of the data raises anything.

    Notes
    -----
    *Guarantee.* (epsilon, delta)-DP for the neighbours, a row being the unit. A missing answer
    counts as a no where rows are replaced, and is left out where they are added or removed.

    References
    ----------
    Awan and Slavković, NeurIPS 2018.

    Examples
    --------
    >>> from dither import inference
    >>> found = inference.proportion([True] * 300 + [False] * 700, epsilon=1)
    >>> lower, upper = found.interval(0.999999)
    >>> lower < 0.3 < upper, found.test(0.5) < 1e-6, found.loss.charge.epsilon
    (True, True, Fraction(1, 1))
    """
    asked = target(epsilon, delta, neighbours)
    against = check.number("null", null, least=0, most=1)
    values = column("x", x)
    noise = CanonicalNoise(asked)
    known = values[~np.isnan(values)]
    yes, n = int(np.count_nonzero(known)), len(values)
    if asked.replace:
        released = noise.release((yes,))
        exact = KnownRows(noise, float(released[0]), n)
        rows, share = n, exact.share
        simulate: Callable[[np.random.Generator, int], Errors] = partial(as_known, exact)
    else:
        released = noise.release((yes, len(known) - yes))
        found = (float(released[0]), float(released[1]))
        start = MeasuredRows(noise, *found, np.zeros((0, 2)))
        rows, share = start.n, start.share
        simulate = partial(as_measured, noise, found)
    notes = []
    needed = math.sqrt(noise.variance) / 0.05
    if rows < needed:
        notes.append(too_few_rows("the noise is more than a twentieth of all rows", needed))
    missing = "no answer is missing (one that is counts as a no)"
    return PrivateEstimate(
        "proportion",
        noise.loss,
        ("rows are an independent sample", missing if asked.replace else "n is as measured"),
        tuple(notes),
        None,
        np.array([share]),
        rows,
        simulate,
        against,
    )
