"""Running counts: the number of events so far, at every step, at the price of a few sums."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import ClassVar, Self

from dither import _checks as check
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError, BudgetError
from dither.mechanisms._base import Mechanism, Run, cheapest
from dither.mechanisms._inversion import sum_half_width
from dither.mechanisms.counts.discrete_gaussian import DiscreteGaussian
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.privacy import Loss, Neighbours

__all__ = ["BinaryTree", "RunningCount"]


@dataclass(frozen=True, slots=True)
class BinaryTree(Mechanism):
    """Counts over time, bound to the exact noise of its nodes.

    Steps 1..T are the leaves of a binary tree. As soon as all steps below a node are over, its sum
    is released with fresh noise, once. At time t the count so far is put together from the complete
    nodes that tile 1..t, one for each binary digit 1 of t.

    Parameters
    ----------
    horizon : int
        T: the most steps, at least 1; public.
    noise : DiscreteLaplace or DiscreteGaussian
        Added to every node.

    Raises
    ------
    ArgumentError
        A parameter is out of range or of the wrong kind.

    Notes
    -----
    *Guarantee.* Where neighbours, of either relation, change the counts of all steps together by at
    most ``sensitivity`` in absolute sum (one person's events, however spread over time): with L =
    floor(log2 T) + 1 levels, the released vector of nodes has L1 sensitivity L·sensitivity and
    squared L2 sensitivity at most L·sensitivity², so that the whole run costs epsilon =
    L·sensitivity/scale with discrete Laplace noise or rho = L·sensitivity²/(2·sigma2) with discrete
    Gaussian noise, however often its estimates are read.

    *Proof.* Each step lies below at most one complete node a level, so each level changes by at
    most ``sensitivity`` in L1, and so in L2. Steps may depend on earlier releases: nodes are noised
    independently of all that came before (adaptivity is covered by the two mechanisms' proofs).

    *Estimates.* A node's own noisy sum and the sum of its children's estimates measure the same
    number. Weighted by their inverse variances they give the node's estimate, of variance c_h·Var Z
    at height h, c_0 = 1 and c_h = 2c/(1 + 2c) for c = c_{h-1}, so that c_h = 2^h/(2^(h+1) - 1). The
    estimate of the count is the sum over the tiles, of variance Var Z·Σ c_h, about half of that
    without the children; it is exact post-processing in rationals.

    References
    ----------
    Dwork, Naor, Pitassi and Rothblum, STOC 2010; Chan, Shi and Song, ICALP 2010; the estimates:
    Honaker, "Efficient use of differentially private binary trees", 2015 (from below).

    Examples
    --------
    >>> tree = BinaryTree.for_loss(1, horizon=1000, sensitivity=1)
    >>> tree.levels, tree.noise.scale, tree.loss(sensitivity=1).charge.epsilon
    (10, Fraction(10, 1), Fraction(1, 1))
    >>> run = tree.start()
    >>> for events in (3, 0, 5):
    ...     run.add(events)
    >>> run.time, abs(float(run.estimate) - 8) < 400
    (3, True)
    """

    title: ClassVar[str] = "binary tree"

    horizon: int
    noise: DiscreteLaplace | DiscreteGaussian

    def __post_init__(self) -> None:
        self._settle(horizon=check.whole("horizon", self.horizon, 1))
        if not isinstance(self.noise, DiscreteLaplace | DiscreteGaussian):
            raise ArgumentError("noise must be a DiscreteLaplace or a DiscreteGaussian")

    @property
    def levels(self) -> int:
        """L: the most complete nodes that one step lies below."""
        return self.horizon.bit_length()

    @classmethod
    def for_loss(cls, epsilon: Number, *, horizon: int, sensitivity: int) -> Self:
        """Discrete Laplace noise, exactly epsilon for the whole run."""
        levels = check.whole("horizon", horizon, 1).bit_length()
        l1 = levels * check.whole("sensitivity", sensitivity, 1)
        return cls(horizon, DiscreteLaplace.for_loss(epsilon, l1=l1))

    @classmethod
    def for_rho(cls, rho: Number, *, horizon: int, sensitivity: int) -> Self:
        """Discrete Gaussian noise, exactly rho for the whole run."""
        levels = check.whole("horizon", horizon, 1).bit_length()
        l2_squared = levels * check.whole("sensitivity", sensitivity, 1) ** 2
        return cls(horizon, DiscreteGaussian.for_loss(rho, l2_squared=l2_squared))

    @classmethod
    def for_half_width(
        cls, half_width: float, *, horizon: int, sensitivity: int, confidence: float
    ) -> Self:
        """The pure tree of least epsilon (three digits) whose worst half-width is as asked.

        Raises
        ------
        ArgumentError
            No epsilon up to 10,000 reaches it.
        """
        made = partial(cls.for_loss, horizon=horizon, sensitivity=sensitivity)
        return cheapest("half_width", half_width, made, lambda m: m.worst_half_width(confidence))

    def loss(
        self, *, sensitivity: int, neighbours: Neighbours | str = Neighbours.ADD_REMOVE
    ) -> Loss:
        """What a whole run costs: each level's own loss, added up.

        A level changes by at most ``sensitivity`` in L1: one node by all of it is the worst for
        Laplace noise, and for Gaussian noise where it is 1.
        """
        whole = check.whole("sensitivity", sensitivity)
        if isinstance(self.noise, DiscreteLaplace):
            return self.levels * self.noise.loss(l1=whole, neighbours=neighbours)
        # A change of 1 is one node a level, whose own loss is exact; a larger one goes by squares.
        if whole <= 1:
            return self.levels * self.noise.loss(l2_squared=whole, neighbours=neighbours)
        return self.noise.loss(l2_squared=self.levels * whole**2, neighbours=neighbours)

    def variance(self, time: int) -> float:
        """The variance of the estimate after ``time`` steps."""
        return self.noise.variance * float(sum(map(_share, _tiles(self._time(time)))))

    def half_width(self, time: int, confidence: float) -> float:
        """A proven half-width of the interval of the count after ``time`` steps; see `_inversion`.

        Exact where the estimate holds a single noise; else for confidences up to 1 - 1e-7.
        """
        check.confidence(confidence)
        terms: dict[float, int] = {}
        for height in _tiles(self._time(time)):
            weight = Fraction(1)
            for depth in range(height + 1):
                own = _share(height - depth)
                key = float(weight * own)
                terms[key] = terms.get(key, 0) + 2**depth
                weight *= 1 - own
        if not terms:
            return 0.0
        if terms == {1.0: 1}:
            return float(self.noise.half_width(confidence))
        return sum_half_width(tuple(sorted(terms.items())), self.noise, confidence)

    def worst_half_width(self, confidence: float) -> float:
        """The half-width at the time whose tiles have most variance, for planning a whole run."""
        top = self.horizon
        starts = [top >> k << k for k in _tiles(top)]
        times = {top} | {start - 1 for start in starts if start > 1}
        return self.half_width(max(times, key=self.variance), confidence)

    def start(self) -> RunningCount:
        """Begin a run; its whole loss must be charged first."""
        return RunningCount(self)

    def _time(self, time: int) -> int:
        return check.whole("time", time, most=self.horizon, instead=", the horizon")

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        tree = cls.for_loss(1, horizon=7, sensitivity=1)

        def running(events: tuple[int, ...]) -> list[int]:
            run = tree.start()
            for number in events:
                run.add(number)
            return [noisy for _, _, noisy in run.released]

        yield Subject("binary tree", running, (0,) * 7, (1, *(0,) * 6))


class RunningCount(Run):
    """One run: takes the events of each step, and holds the estimate of the count so far.

    Parameters
    ----------
    tree : BinaryTree
        The horizon and the noise.

    Attributes
    ----------
    time : int
        How many steps are over.
    estimate : Fraction
        The estimated number of events so far.
    released : list of (int, int, int)
        Height, number and noisy sum of every node released: all that the run discloses.
    """

    __slots__ = ("_open", "_refined", "released", "time", "tree")

    def __init__(self, tree: BinaryTree) -> None:
        super().__init__()
        self.tree = tree
        self.time = 0
        self.released: list[tuple[int, int, int]] = []
        self._open: dict[int, int] = {}  # true sums of the tiles, by height
        self._refined: dict[int, Fraction] = {}

    def __repr__(self) -> str:
        return f"<RunningCount: {self.time:,} of {self.tree.horizon:,} steps>"

    def add(self, events: int) -> None:
        """Take the number of events of the next step.

        Raises
        ------
        BudgetError
            The horizon is reached.
        ArgumentError
            The number is not an integer, or this is a forked process.
        """
        exact = check.integers("events", [events])[0]
        with self._lock:
            self._check_process()
            if self.time >= self.tree.horizon:
                raise BudgetError("the horizon is reached: start another run, which costs again")
            self.time += 1
            height, below = 0, Fraction(0)
            while True:
                # Fresh noise on each true sum: the proof takes nodes as noised independently.
                noisy = exact + int(self.tree.noise.draw(1)[0])
                self.released.append((height, (self.time >> height) - 1, noisy))
                own = _share(height)
                refined = own * noisy + (1 - own) * below
                if height not in self._open:
                    break
                # The node above is complete as soon as its right child is.
                exact += self._open.pop(height)
                below = refined + self._refined.pop(height)
                height += 1
            self._open[height], self._refined[height] = exact, refined

    @property
    def estimate(self) -> Fraction:
        """The estimated number of events so far."""
        return sum(self._refined.values(), Fraction(0))

    def interval(self, confidence: float) -> tuple[float, float]:
        """An interval for the number of events so far."""
        if self.time == 0:
            return 0.0, 0.0
        width = self.tree.half_width(self.time, confidence)
        return float(self.estimate) - width, float(self.estimate) + width


def _tiles(time: int) -> list[int]:
    """Heights of the complete nodes that tile 1..time."""
    return [h for h in range(time.bit_length()) if time >> h & 1]


def _share(height: int) -> Fraction:
    """c_h, which is also the weight of a node's own noisy sum in its estimate."""
    return Fraction(2**height, 2 ** (height + 1) - 1)
