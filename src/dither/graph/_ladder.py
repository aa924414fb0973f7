"""The ladder: a count with noise that fits its own local sensitivities, under a pure epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice, repeat
from typing import ClassVar, Self

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms._base import Mechanism
from dither.mechanisms._coins import exp_choice
from dither.mechanisms._composable import bounded_class
from dither.privacy import Loss, Neighbours

__all__ = ["Ladder"]

_TALLEST = 100_000
"""Rungs at most: values beyond are equally likely."""


@dataclass(frozen=True, slots=True)
class Ladder(Mechanism):
    """The ladder mechanism, bound to its exact rate and its public range.

    For an integer count f in 0..most and numbers I_0, I_1, ... of the graph, let a value y stand on
    rung q(y), the least t for which |y - f| <= I_0 + ... + I_{t-1}, and at most on rung T. Then ::

        Pr[y] is proportional to exp(-rate·q(y)) for y = 0, 1, ..., most

    T is public: so tall that what lies above it hardly weighs anything.

    Parameters
    ----------
    rate : Fraction
        Above 0.
    most : int
        The largest count that there can be, from 0 to 2**62: public.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Assumption*, which the exact local sensitivities of `dither.graph` keep: neighbours G, G' have
    |f - f'| <= I_0, and I_t <= I'_{t+1} for all t, both ways.

    *Guarantee.* epsilon-DP with epsilon = 2·rate, and (epsilon²/8)-zCDP, as an exponential
    mechanism of a utility -q that changes by at most 1 [1]_.

    *Proof.* If |y - f| <= I_0 + ... + I_{t-1} then |y - f'| <= |f - f'| + I_0 + ... + I_{t-1} <=
    I'_0 + I'_1 + ... + I'_t: so q'(y) <= q(y) + 1, and a common T changes nothing in that.

    *Timing.* How long a draw takes depends on the graph, as the number of rungs does.

    References
    ----------
    .. [1] Zhang, Cormode, Procopiuc, Srivastava and Xiao, "Private release of graph statistics
       using ladder functions", SIGMOD 2015.

    Examples
    --------
    >>> ladder = Ladder.for_loss(1, most=1000)
    >>> ladder.loss().charge.epsilon, ladder.loss().charge.rho
    (Fraction(1, 1), Fraction(1, 8))
    >>> ladder.half_width(500, [3, 4, 5], 0.95) < 50
    True
    """

    title: ClassVar[str] = "ladder"

    rate: Fraction
    most: int

    def __post_init__(self) -> None:
        self._settle_positive("rate")
        self._settle(most=check.whole("most", self.most, 0))
        if self.most > 1 << 62:
            raise ArgumentError("most must be at most 2**62: fewer nodes, or a smaller shape")

    @classmethod
    def for_loss(cls, epsilon: Number, *, most: int) -> Self:
        """The mechanism that costs exactly epsilon."""
        return cls(check.positive("epsilon", epsilon) / 2, most)

    def loss(self, *, neighbours: Neighbours | str = Neighbours.EDGE) -> Loss:
        """What a release costs: pure epsilon = 2·rate, and the rho of the guarantee."""
        return bounded_class(2 * self.rate, neighbours)

    @property
    def height(self) -> int:
        """T: from here on all values are on one rung."""
        # Above it lie fewer than 2^bits values of weight exp(-rate·T) <= 2^-(bits + 60).
        return min(_TALLEST, math.ceil((self.most.bit_length() + 60) / self.rate))

    def release(self, value: int, widths: Iterable[int]) -> int:
        """Draw the noisy count.

        Parameters
        ----------
        value : int
            f in 0..most.
        widths : iterable of int
            I_0, I_1, ...; the last one holds on.
        """
        rungs = list(self._rungs(value, widths))
        chosen = exp_choice(
            [t for t, _ in rungs], self.rate, [sum(map(len, parts)) for _, parts in rungs]
        )
        below, *above = rungs[chosen][1]
        place = int(noise.below(len(below) + sum(map(len, above)), 1)[0])
        return below[place] if place < len(below) else above[0][place - len(below)]

    def law(self, value: int, widths: Iterable[int]) -> list[float]:
        """The probabilities of 0, 1, ..., most in doubles: for tests and error bars."""
        weights = [0.0] * (self.most + 1)
        for t, parts in self._rungs(value, widths):
            for part in parts:
                for y in part:
                    weights[y] = math.exp(-float(self.rate) * t)
        whole = math.fsum(weights)
        return [w / whole for w in weights]

    def half_width(self, value: int, widths: Iterable[int], confidence: float) -> int:
        """The least w, to a rung's end, with Pr[|y - f| <= w] of at least the confidence.

        It is of this graph, and so not for publication where the graph is not.
        """
        inside = check.confidence(confidence)
        rungs = list(self._rungs(value, widths))
        rate = float(self.rate)
        weights = [math.exp(-rate * t) * sum(map(len, parts)) for t, parts in rungs]
        whole, reached, last = math.fsum(weights), 0.0, -1
        while reached < inside * whole and last + 1 < len(rungs):
            last += 1
            reached += weights[last]
        # The values of a rung lie farther out than those of all rungs below it.
        ends = (y for part in rungs[last][1] if len(part) for y in (part[0], part[-1]))
        return max(abs(y - value) for y in ends)

    def _rungs(self, value: int, widths: Iterable[int]) -> Iterator[tuple[int, list[range]]]:
        """The rungs that have values, from f on; each with its values below and above."""
        if not 0 <= value <= self.most:
            raise ArgumentError("value must be within 0 and most")
        given, top = list(_first(widths, self.height)), self.height
        steps = chain(given, repeat(given[-1] if given else 0))
        low = high = value
        yield 0, [range(value, value + 1)]
        for t in range(1, top):
            width = next(steps)
            below = range(max(0, low - width), low)
            above = range(high + 1, min(self.most, high + width) + 1)
            low, high = low - len(below), high + len(above)
            if len(below) + len(above):
                yield t, [below, above]
            if low == 0 and high == self.most:
                return
        rest = [range(0, low), range(high + 1, self.most + 1)]
        if any(map(len, rest)):
            yield top, rest

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: triangles of graphs whose counts one edge moves as far as it can."""
        from dither.graph._graph import Graph
        from dither.graph._statistics import Triangles

        ends = [(0, j) for j in range(2, 6)] + [(1, j) for j in range(2, 6)]
        shape, mechanism = Triangles(), cls.for_loss(1, most=20)
        graphs = [Graph([*ends, *more], nodes=6) for more in ([], [(0, 1)])]
        known = [(shape.count(g), list(islice(shape.local(g), 6))) for g in graphs]

        def run(more: int) -> int:
            return mechanism.release(*known[more])

        yield Subject("triangles by the ladder", run, 0, 1)


def _first(widths: Iterable[int], most: int) -> Iterator[int]:
    """So many widths, or as many as there are; one without end settles at its last."""
    for _, width in zip(range(most), widths, strict=False):
        yield width
