"""The sparse vector technique: which of a stream of queries lie above a threshold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._subjects import Subject
from dither.errors import ArgumentError, BudgetError
from dither.mechanisms._base import Mechanism, Run, cheapest
from dither.mechanisms._composable import laplace_pair, pure_class
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.privacy import Loss, Neighbours

__all__ = ["AboveThreshold", "SparseAnswer", "SparseVector"]


@dataclass(frozen=True, slots=True)
class SparseAnswer:
    """One answer: whether the query is above, and its noisy value where values are given."""

    above: bool
    value: int | None = None

    def __bool__(self) -> bool:
        return self.above


@dataclass(frozen=True, slots=True)
class SparseVector(Mechanism):
    """The sparse vector technique, bound to its exact scales.

    For integer queries and a public integer threshold T ::

        rho ~ discrete Laplace(threshold_scale), drawn once
        for each query q:  nu ~ discrete Laplace(query_scale), fresh;
                           say "above" iff q + nu >= T + rho; stop after ``cutoff`` times "above"

    This is the technique of [1]_. If values are asked for, each "above" also gives q + fresh
    discrete Laplace(value_scale).

    Parameters
    ----------
    threshold_scale, query_scale : Fraction
        Scales of the noises, above 0.
    cutoff : int
        How many answers may be "above", at least 1.
    value_scale : Fraction, optional
        The scale of the noise of values; without it none are given.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Guarantee.* Where each query, chosen adaptively or not, changes by at most s = ``sensitivity``
    between neighbours, of either relation: epsilon-DP for the whole run with, for c = ``cutoff`` ::

        epsilon = s/threshold_scale + (1 if monotone else 2)·c·s/query_scale + c·s/value_scale

    (the last term only where values are given). Queries below the threshold cost nothing, however
    many. They are monotone if all change in the same direction.

    *Proof.* Fix a sequence of answers. Its probability on D is Σ_z Pr[rho = z]·Π f(z) over the
    answers. Compare the term of z on D with that of z + s on D'. Pr[rho = z] <=
    exp(s/threshold_scale)· Pr[rho = z + s]. A "below": q' <= q + s, so q + nu < T + z implies q' +
    nu < T + z + s: its factor does not fall. An "above": it needs nu >= T + z - q on D and nu >= T
    + z + s - q' on D', at most 2s more; the factor falls by at most exp(2s/query_scale), and there
    are at most c of these. If all queries rise from D to D', T + z + s - q' is at most s more; if
    all fall, compare z with z itself: "below" does not fall, "above" needs at most s more. Values
    compose with this, c at most. Queries asked adaptively depend on earlier answers only, so that
    the factors are as before.

    The threshold's noise must be drawn (without it nothing hides the "below" answers), each query's
    noise must be fresh, and the comparison's noise must not be reused for the value: published
    variants that break one of these are not private [2]_.

    *Timing.* "Above" draws one noise more than "below" where values are given, which the answer
    shows anyway; the time of a draw itself depends on the noise alone.

    References
    ----------
    .. [1] Dwork, Naor, Reingold, Rothblum and Vadhan, "On the complexity of differentially private
       data release", STOC 2009.
    .. [2] Lyu, Su and Li, "Understanding the sparse vector technique for differential privacy",
       VLDB 2017, also for the corrected form and the split of `for_loss`.

    Examples
    --------
    >>> mechanism = SparseVector.for_loss(1, sensitivity=1, cutoff=2, monotone=True)
    >>> mechanism.loss(sensitivity=1, monotone=True).charge.epsilon
    Fraction(1, 1)
    >>> run = mechanism.start(threshold=1000)
    >>> [bool(run.ask(q)) for q in (0, 100_000, 0, 100_000)], run.left
    ([False, True, False, True], 0)
    >>> run.ask(0)
    Traceback (most recent call last):
    ...
    dither.errors.BudgetError: the cut-off is reached: start another run, which costs again
    """

    title: ClassVar[str] = "sparse vector"

    threshold_scale: Fraction
    query_scale: Fraction
    cutoff: int = 1
    value_scale: Fraction | None = None

    def __post_init__(self) -> None:
        scales = ["threshold_scale", "query_scale"]
        if self.value_scale is not None:
            scales.append("value_scale")
        self._settle_positive(*scales)
        for name in scales:
            DiscreteLaplace(getattr(self, name))
        self._settle(cutoff=check.whole("cutoff", self.cutoff, 1))

    @classmethod
    def for_loss(
        cls,
        epsilon: Number,
        *,
        sensitivity: int,
        cutoff: int = 1,
        monotone: bool = False,
        value_share: Number = Fraction(0),
    ) -> Self:
        """The mechanism that costs exactly epsilon, split for the least error of comparisons.

        ``value_share`` in [0, 1) of epsilon goes to values. Of the rest, threshold and queries get
        amounts as 1 to (2c)^(2/3) (c^(2/3) if monotone), which minimises the variance of
        nu - rho.
        """
        whole = check.whole("sensitivity", sensitivity, 1)
        cutoff = check.whole("cutoff", cutoff, 1)
        share = check.exact("value_share", value_share, least=0, below=1)
        times = (1 if monotone else 2) * cutoff
        whole_epsilon = check.positive("epsilon", epsilon)
        compare = whole_epsilon * (1 - share)
        # Any ratio costs exactly epsilon: this one is about the best.
        ratio = Fraction(times ** (2 / 3)).limit_denominator(1000)
        first = compare / (1 + ratio)
        return cls(
            whole / first,
            times * whole / (compare - first),
            cutoff,
            cutoff * whole / (whole_epsilon * share) if share else None,
        )

    @classmethod
    def for_margin(
        cls,
        margin: int,
        *,
        queries: int,
        confidence: float,
        sensitivity: int,
        cutoff: int = 1,
        monotone: bool = False,
    ) -> Self:
        """The mechanism of least epsilon (three digits) whose `margin` is at most the one given.

        Raises
        ------
        ArgumentError
            No epsilon up to 10,000 reaches it.
        """
        allowed = check.whole("margin", margin)
        made = partial(cls.for_loss, sensitivity=sensitivity, cutoff=cutoff, monotone=monotone)
        return cheapest("margin", allowed, made, lambda m: m.margin(queries, confidence))

    def loss(
        self,
        *,
        sensitivity: int,
        monotone: bool = False,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
    ) -> Loss:
        """What a whole run costs, however many queries it answers.

        The comparisons are a pure mechanism, and each value has its own pair. They take turns; that
        costs no more than one after the other, by Vadhan and Zhang, "Concurrent composition
        theorems for differential privacy", STOC 2023.
        """
        whole = check.whole("sensitivity", sensitivity)
        times = (1 if monotone else 2) * self.cutoff
        found = pure_class(
            whole / self.threshold_scale + times * whole / self.query_scale, neighbours
        )
        if self.value_scale is not None:
            found += self.cutoff * laplace_pair(self.value_scale, whole, neighbours)
        return found

    def margin(self, queries: int, confidence: float) -> int:
        """How far from the threshold answers are right.

        With at least the given probability, each of the first ``queries`` answers is right for
        every query more than this margin away from the threshold (a union bound).
        """
        outside = 1 - check.confidence(confidence)
        each = outside / (2 * check.whole("queries", queries, 1))
        return DiscreteLaplace(self.threshold_scale).half_width(1 - outside / 2) + DiscreteLaplace(
            self.query_scale
        ).half_width(1 - each)

    def half_width(self, confidence: float) -> int:
        """The half-width of the interval of a released value."""
        if self.value_scale is None:
            raise ArgumentError("value_scale must be given for values to be released")
        return DiscreteLaplace(self.value_scale).half_width(confidence)

    def start(self, threshold: int) -> AboveThreshold:
        """Draw the threshold's noise and begin a run; the whole loss must be charged first."""
        return AboveThreshold(self, threshold)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        cases: list[tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
            ("", (0, 0, 0, 1), (1, 1, 1, 0), {}),
            (", monotone", (0, 0, 0, 0), (1, 1, 1, 1), {"monotone": True}),
            (", cut-off 2", (0, 0, 0, 1, 1), (1, 1, 1, 0, 0), {"cutoff": 2}),
            (", with values", (0, 0, 1), (1, 1, 0), {"value_share": Fraction(1, 2)}),
        ]

        def answers(values: tuple[int, ...], sparse: SparseVector) -> tuple[Any, ...]:
            run, given = sparse.start(0), []
            for value in values:
                answer = run.ask(value)
                given.append((answer.above, answer.value))
                if run.left == 0:
                    break
            return tuple(given)

        for name, d0, d1, options in cases:
            sparse = cls.for_loss(1, sensitivity=1, **options)
            yield Subject(f"sparse vector{name}", partial(answers, sparse=sparse), d0, d1)


class AboveThreshold(Run):
    """One run of the sparse vector technique: answers until its cut-off, and then refuses.

    It holds a secret noise. It cannot be copied or pickled, and a forked process cannot go on with
    it: two runs with one noise would say "above" more often than was charged for.

    Parameters
    ----------
    mechanism : SparseVector
        The exact scales and the cut-off.
    threshold : int
        Public.
    """

    __slots__ = ("_bar", "left", "mechanism")

    def __init__(self, mechanism: SparseVector, threshold: int) -> None:
        super().__init__()
        bar = check.integers("threshold", [threshold])[0]
        self.mechanism = mechanism
        self.left = mechanism.cutoff
        # Once for the whole run: what hides the answers "below" is this noise.
        self._bar = bar + noise.discrete_laplace_one(mechanism.threshold_scale)

    def ask(self, value: int) -> SparseAnswer:
        """Answer whether a query is above the threshold.

        Parameters
        ----------
        value : int
            The query's true answer.

        Returns
        -------
        SparseAnswer
            True or false as a bool; with a noisy value where it is above and values are given.

        Raises
        ------
        BudgetError
            The cut-off is reached.
        ArgumentError
            The value is not an integer, or this is a forked process.
        """
        exact = check.integers("value", [value])[0]
        # Two threads must not both take the last answer.
        with self._lock:
            self._check_process()
            if self.left < 1:
                raise BudgetError("the cut-off is reached: start another run, which costs again")
            fresh = noise.discrete_laplace_one(self.mechanism.query_scale)
            if exact + fresh < self._bar:
                return SparseAnswer(False)
            self.left -= 1
            if self.mechanism.value_scale is None:
                return SparseAnswer(True)
            # Another noise than the comparison's, which the answer itself has told something of.
            fresh = noise.discrete_laplace_one(self.mechanism.value_scale)
            return SparseAnswer(True, exact + fresh)

    def __repr__(self) -> str:
        return f"AboveThreshold({self.mechanism!r}, left={self.left})"
