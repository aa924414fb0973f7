"""Subsample and aggregate: any estimator made private, by asking it on many disjoint blocks."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms._base import Mechanism, cheapest
from dither.mechanisms.adaptive.smooth_median import SmoothMedian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.privacy import Loss, Neighbours

__all__ = ["SubsampleAggregate"]


@dataclass(frozen=True, slots=True)
class SubsampleAggregate(Mechanism):
    """Subsample and aggregate, bound to its exact aggregator.

    Each row is put into one of m blocks, uniformly and independently. The estimator runs on each
    block and gives an integer, clamped to public bounds (where it fails, or gives something else,
    the lower bound stands in). The m results are aggregated by their mean with discrete Laplace
    noise on the sum, or by the `SmoothMedian`.

    Parameters
    ----------
    blocks : int
        m, at least 1.
    lower, upper : int
        Public bounds of a result, lower < upper.
    aggregator : DiscreteLaplace or SmoothMedian
        The noise of the sum of the results, or the median (of the same bounds).

    Raises
    ------
    ArgumentError
        A parameter is out of range or of the wrong kind.

    Notes
    -----
    *Assumption.* The estimator sees one block at a time and keeps nothing between calls.

    *Guarantee.* For a row replaced, added or removed: the aggregator's, for tables of m results
    that differ in one. That is epsilon = (upper - lower)/scale for the mean, and
    `SmoothMedian.loss`.

    *Proof.* The blocks of the other rows have the same law on both tables. Given them, and the
    changed row's, the results differ in one place; a mixture of (epsilon, delta)-close pairs with
    common weights is (epsilon, delta)-close.

    *Timing.* The estimator's time depends on the data, and is not covered.

    References
    ----------
    Nissim, Raskhodnikova and Smith, STOC 2007, section 4; Smith, "Privacy-preserving statistical
    estimation with optimal convergence rates", STOC 2011.

    Examples
    --------
    >>> method = SubsampleAggregate.mean(1, blocks=100, lower=0, upper=50)
    >>> method.aggregator.scale, method.loss().charge.epsilon
    (Fraction(50, 1), Fraction(1, 1))
    >>> rows = [7] * 5000
    >>> abs(method.release(rows, lambda block: sum(block) // len(block)) - 7) < 30
    True
    """

    title: ClassVar[str] = "subsample and aggregate"

    blocks: int
    lower: int
    upper: int
    aggregator: DiscreteLaplace | SmoothMedian

    def __post_init__(self) -> None:
        low, high = _bounds(self.lower, self.upper)
        self._settle(blocks=check.whole("blocks", self.blocks, 1), lower=low, upper=high)
        if isinstance(self.aggregator, SmoothMedian):
            if (self.aggregator.lower, self.aggregator.upper) != (low, high):
                raise ArgumentError("aggregator must have the same lower and upper")
        elif not isinstance(self.aggregator, DiscreteLaplace):
            raise ArgumentError("aggregator must be a DiscreteLaplace or a SmoothMedian")

    @classmethod
    def mean(cls, epsilon: Number, *, blocks: int, lower: int, upper: int) -> Self:
        """The mean of the results, exactly epsilon."""
        low, high = _bounds(lower, upper)
        return cls(blocks, low, high, DiscreteLaplace.for_loss(epsilon, l1=high - low))

    @classmethod
    def median(cls, epsilon: Number, delta: Number, *, blocks: int, lower: int, upper: int) -> Self:
        """The smooth-sensitivity median of the results, epsilon and at most delta."""
        aggregator = SmoothMedian.for_loss(epsilon, delta, lower=lower, upper=upper)
        return cls(blocks, lower, upper, aggregator)

    def loss(self, *, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What a release costs: the aggregator's own loss."""
        if isinstance(self.aggregator, SmoothMedian):
            return self.aggregator.loss(neighbours=neighbours)
        return self.aggregator.loss(l1=self.upper - self.lower, neighbours=neighbours)

    def release(self, rows: Sequence[Any], estimator: Callable[[list[Any]], int]) -> Fraction:
        """Run the estimator on the blocks and aggregate.

        Parameters
        ----------
        rows : sequence
            Any number of rows; blocks may be empty.
        estimator : callable
            From the list of a block's rows to an integer. Neither what it raises nor that it exits
            the program is shown; only the keyboard's interrupt passes.
        """
        parts: list[list[Any]] = [[] for _ in range(self.blocks)]
        # Which block a row is in depends on no row: a unit changes one block's result.
        for row, block in zip(rows, noise.below(self.blocks, len(rows)).tolist(), strict=True):
            parts[block].append(row)
        results = [self._result(estimator, part) for part in parts]
        if isinstance(self.aggregator, SmoothMedian):
            return Fraction(self.aggregator.release(results))
        return Fraction(sum(results) + int(self.aggregator.draw(1)[0]), self.blocks)

    def half_width(self, confidence: float) -> float:
        """The half-width of the noise of a mean; that of a median depends on the data."""
        if isinstance(self.aggregator, SmoothMedian):
            raise ArgumentError("aggregator is a median: its noise depends on the data")
        return self.aggregator.half_width(confidence) / self.blocks

    @classmethod
    def for_half_width(
        cls, half_width: float, *, blocks: int, lower: int, upper: int, confidence: float
    ) -> Self:
        """The mean of largest scale (so of least epsilon, three digits) with this half-width."""
        made = partial(cls.mean, blocks=blocks, lower=lower, upper=upper)
        return cheapest("half_width", half_width, made, lambda m: m.half_width(confidence))

    def _result(self, estimator: Callable[[list[Any]], int], part: list[Any]) -> int:
        try:
            found = operator.index(estimator(part))
        except KeyboardInterrupt:
            raise
        except BaseException:  # whatever it is, an exit too, it must not show
            return self.lower
        # Clamped, whatever the estimator gives: the sensitivity is the public range.
        return min(self.upper, max(self.lower, found))

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        method = cls.mean(1, blocks=3, lower=0, upper=10)

        def release(rows: Sequence[int]) -> Fraction:
            return method.release(rows, lambda block: max(block, default=0))

        yield Subject("subsample and aggregate", release, [0] * 6, [10] + [0] * 5)


def _bounds(lower: int, upper: int) -> tuple[int, int]:
    low, high = check.integers("lower and upper", [lower, upper])
    if not low < high:
        raise ArgumentError("lower must be below upper")
    return low, high
