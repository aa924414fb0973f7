"""What all channels for numbers share: an interval, a law on positions, and their values.

A report is an integer position of a public lattice. Counts per position are all that a server
keeps: the mean, its variance and the whole distribution are read from the same counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel, Codes, Counts, Shares
from dither.local._domain import Domain, bind
from dither.local._estimates.postprocess import no_rule
from dither.local._limits import MOST, checked_cells, checked_epsilon, checked_shares
from dither.local._numbers.interval import Interval
from dither.local._numbers.linear import BinnedLaw, DenseMatrix, LawProducts, binned
from dither.local._oracles import FiniteChannel
from dither.numeric import Words, secure_words

if TYPE_CHECKING:
    from dither.local._estimates.results import Result
    from dither.local._reports.aggregate import Aggregate


Array = npt.NDArray[np.float64]

# Counts of so many positions take 128 MiB.
MAX_OUTPUTS = 1 << 24


class NumericLaw(ABC):
    """Chances of reports by points: exact to draw and to prove, in floating point to estimate.

    Rows are flat between few breaks, so that products are fast; all else follows from these.
    """

    steps: int
    """The points are 0, ..., steps."""
    outputs: int
    """The reports are 0, ..., outputs - 1."""

    @abstractmethod
    def exact(self, x: int, y: int) -> Fraction:
        """Pr[report y | point x]."""

    @abstractmethod
    def draw(self, codes: Codes, words: Words) -> Codes:
        """Reports of points; everyone draws everything, so that the time says nothing of them."""

    @abstractmethod
    def breaks(self) -> Codes:
        """Reports at which some row changes, from 0: between them all rows are flat."""

    @abstractmethod
    def compiled(self, edges: Codes) -> LawProducts:
        """The products with reports in bins that begin at `edges`, all breaks included.

        Merging reports that all rows hold alike loses nothing: their sum is sufficient.
        """

    def forward(self, f: Array) -> Array:
        """Shares of the reports, where shares of the points are f."""
        return self._finest.forward(f)

    def back(self, weights: Array) -> Array:
        """E[weights[report] | point], for every point."""
        return self._finest.back(weights)

    def row(self, x: int) -> Array:
        """Chances of the reports of a point."""
        only = np.zeros(self.steps + 1)
        only[x] = 1.0
        return self.forward(only)

    @cached_property
    def _finest(self) -> LawProducts:
        return self.compiled(np.arange(self.outputs))


AUDITED = Interval(-1, 1, steps=8)
"""What audits of such channels are about."""


@dataclass(frozen=True, init=False)
class NumericChannel(FiniteChannel):
    """A channel whose values are numbers of an `Interval`.

    Its domain holds the codes of the interval's points, so histograms for `simulate` have one
    count per point. `positions` gives each report a value; where the channel is `unbiased`, the
    expectation of that value is the point itself, exactly.
    """

    numeric = True

    domain: Domain = field(repr=False)
    epsilon: Fraction
    interval: Interval

    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"interval": AUDITED, "epsilon": 1}, 0, 8),
    )

    readers: ClassVar[dict[str, Callable[[Any], Any]]] = {"interval": Interval.from_dict}
    apart: ClassVar[tuple[int, int] | None] = None
    """Points of a class that rounding must not join to others."""

    def __init__(self, interval: Interval, epsilon: Any) -> None:
        if not isinstance(interval, Interval):
            raise ArgumentError("interval must be an Interval, such as local.Interval(0, 100)")
        checked = checked_epsilon(epsilon)
        bind(self, interval=interval, epsilon=checked, domain=Domain(interval.steps + 1))
        # Made at once: what cannot be made is refused.
        assert self.law is not None

    @property
    @abstractmethod
    def law(self) -> NumericLaw:
        """Chances of reports by points."""

    @property
    def outputs(self) -> int:
        """Positions of the report."""
        return self.law.outputs

    @property
    @abstractmethod
    def positions(self) -> Array:
        """The value that stands for each report, shape (outputs,), in the interval's unit."""

    def exact(self, x: int, y: int) -> Fraction:
        """Pr[report y | point x], exactly as drawn."""
        return self.law.exact(x, y)

    @property
    def matrix(self) -> Shares:
        """The law in floating point, shape (steps + 1, outputs)."""
        checked_cells(len(self.domain), self.outputs, "fewer steps")
        return np.array([self.law.row(x) for x in range(len(self.domain))])

    def privatize(self, values: Any) -> Any:
        """Round to the lattice and randomise, with the operating system's randomness.

        Parameters
        ----------
        values : one number of the interval, or a column of them, shape (n,)

        Returns
        -------
        The report of one number, or the reports of a column: one integer per person.

        Raises
        ------
        ArgumentError
            A value is missing, not a number, or outside the bounds. The message shows no value.
        """
        words = secure_words()
        if not np.isscalar(values) and (hasattr(values, "__len__") or hasattr(values, "__iter__")):
            return self.draw(self.interval.round(values, words, apart=self.apart), words)
        return int(self.draw(self.interval.round([values], words, apart=self.apart), words)[0])

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.int64]:
        """Reports of points."""
        return self.law.draw(codes, words)

    def decode(self, counts: Counts, n: int) -> Shares:
        """Refused: `Aggregate.estimate` reads the mean, or the distribution by its likelihood."""
        _elsewhere()

    def noise_covariance(self, frequencies: Shares) -> Shares:
        """Refused; see `decode`. The variance of the mean is `mean_variance`."""
        _elsewhere()

    def mean_variance(self, shares: Any, n: int, *, population: bool = False) -> float:
        """The variance of the mean of n reports' values.

        Parameters
        ----------
        shares : array of float, shape (steps + 1,)
            True shares of the interval's points.
        n : int
            Reports, at least 1.
        population : bool
            Add the chance by which the n users were sampled; without, their values are given.
        """
        f = checked_shares(shares, len(self.domain), "shares")
        people = _checks.whole("n", n, 1, MOST)
        means, variances = self.moments()
        between = float(f @ means**2 - (f @ means) ** 2) if population else 0.0
        return (float(f @ variances) + between) / people

    def moments(self) -> tuple[Array, Array]:
        """Expectation and variance of a report's value for every point, each (steps + 1,)."""
        # About the middle of the interval, so that a far-off origin costs no digits.
        middle = float(self.interval.low + self.interval.high) / 2
        values = self.positions - middle
        means = self.law.back(values)
        return means + middle, self.law.back(values**2) - means**2

    def read(
        self,
        counted: Aggregate,
        rule: str,
        method: str | None,
        confidence: float,
        options: dict[str, Any],
    ) -> Result:
        """The mean of the reports' values, or their distribution; see `Aggregate.estimate`."""
        from dither.local._estimates.results import checked_options
        from dither.local._numbers.mean import mean

        no_rule(rule, "numbers")
        if method is not None:
            return super().read(counted, rule, method, confidence, options)
        checked_options(options, (), "a mean")
        return mean(counted, self, confidence)

    def linear(self, bins: int | None, outputs: int | str | None) -> BinnedLaw | DenseMatrix:
        """The law between bins of points and bins of reports, for `em`."""
        return binned(self, bins, outputs)

    def simulate(self, histogram: Counts, rng: np.random.Generator) -> Counts:
        """By one multinomial draw per point, or by single reports where those are fewer."""
        held = np.flatnonzero(histogram)
        if int(histogram.sum()) < 4 * held.size * self.outputs:
            return Channel.simulate(self, histogram, rng)
        counts = np.zeros(self.outputs, dtype=np.int64)
        for x in held.tolist():
            row = self.law.row(x)
            counts += rng.multinomial(int(histogram[x]), row / row.sum())
        return counts


def too_many_positions() -> ArgumentError:
    """What is wrong where a lattice is too fine for an epsilon."""
    return ArgumentError(
        "the interval has too many steps for so small an epsilon: its reports would have more than "
        f"{MAX_OUTPUTS:,} positions; use fewer steps"
    )


def spread(interval: Interval, normal: Array) -> Array:
    """Values in the interval's unit, of values on the scale where it is -1 to 1."""
    return interval.at((normal + 1) / 2 * interval.steps)


def _elsewhere() -> NoReturn:
    raise ArgumentError(
        "a channel for numbers has no unbiased share of each point: estimate() reads the mean, and "
        "estimate(method='likelihood') the distribution"
    )
