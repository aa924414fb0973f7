"""Propose-test-release: propose a bound of the local sensitivity, test it, and only then answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import ClassVar, Self

from dither import _checks as check
from dither import noise
from dither._checks import Number
from dither._subjects import Subject
from dither.mechanisms._base import Mechanism, cheapest
from dither.mechanisms._composable import approximate_class
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.mechanisms.selection.key_threshold import KeyThreshold
from dither.privacy import Loss, Neighbours

__all__ = ["ProposeTestRelease"]


@dataclass(frozen=True, slots=True)
class ProposeTestRelease(Mechanism):
    """Propose-test-release, bound to its exact scales.

    For a proposed bound b of how much the integer query f changes at this very table ::

        d  = distance from D to the nearest table where f changes by more than b between neighbours
        say "no" unless d + discrete Laplace(test_scale) >= tau;
        else say f(D) + discrete Laplace(value_scale)

    tau is the smallest integer with Pr[discrete Laplace(test_scale) >= tau] <= delta, proven.

    Parameters
    ----------
    test_scale, value_scale : Fraction
        Scales of the two noises, above 0.
    delta : Fraction
        In (0, 1).

    Attributes
    ----------
    tau : int
        What the noisy distance must reach.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Assumption*, the caller's to keep. d is an integer that changes by at most 1 between
    neighbours, of either relation, and is 0 wherever some neighbour's answer differs by more than
    b. (The distance as defined satisfies this; so does any 1-Lipschitz lower bound of it.)

    *Guarantee.* (epsilon, delta)-DP [1]_ with epsilon = 1/test_scale + b/value_scale, hence
    delta-approximate (epsilon²/2)-zCDP [2]_.

    *Proof.* Let D, D' be neighbours. If |f(D) - f(D')| <= b, test and value compose to epsilon. If
    not, d is 0 for both, so that "no" has the same probability on both, and anything else has
    probability at most delta on either.

    *Timing.* A value takes one draw more than "no", which the answer shows anyway. How long the
    caller takes to find d may depend on the data, and is not covered.

    References
    ----------
    .. [1] Dwork and Lei, "Differential privacy and robust statistics", STOC 2009, section 3.
    .. [2] Bun and Steinke, "Concentrated differential privacy", TCC 2016, lemma 8.8.

    Examples
    --------
    >>> mechanism = ProposeTestRelease.for_loss(1, 1e-6, bound=5)
    >>> mechanism.tau, mechanism.value_scale, mechanism.loss(bound=5).charge.epsilon
    (27, Fraction(10, 1), Fraction(1, 1))
    >>> mechanism.release(70, distance=0) is None, mechanism.release(70, distance=500) is None
    (True, False)
    """

    title: ClassVar[str] = "propose-test-release"

    test_scale: Fraction
    value_scale: Fraction
    delta: Fraction
    tau: int = field(init=False)

    def __post_init__(self) -> None:
        self._settle_positive("test_scale", "value_scale")
        self._settle(delta=check.exact("delta", self.delta, above=0, below=1))
        DiscreteLaplace(self.value_scale)
        # The rule for a key of one unit: 1 + Z >= threshold has probability at most delta.
        rule = KeyThreshold(DiscreteLaplace(self.test_scale), 1, self.delta)
        self._settle(tau=rule.tau - 1)

    @classmethod
    def for_loss(
        cls,
        epsilon: Number,
        delta: Number,
        *,
        bound: int,
        test_share: Number = Fraction(1, 2),
    ) -> Self:
        """The mechanism that costs exactly epsilon, ``test_share`` of it for the test."""
        exact = check.positive("epsilon", epsilon)
        share = check.exact("test_share", test_share, above=0, below=1)
        whole = check.whole("bound", bound, 1)
        return cls(
            1 / (exact * share), whole / (exact * (1 - share)), check.positive("delta", delta)
        )

    def loss(self, *, bound: int, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What a release costs, whatever the answer; ``bound`` is the b of the distance."""
        epsilon = 1 / self.test_scale + check.whole("bound", bound) / self.value_scale
        return approximate_class(epsilon, self.delta, neighbours)

    @classmethod
    def for_half_width(
        cls,
        half_width: int,
        delta: Number,
        *,
        bound: int,
        confidence: float,
        distance: int | None = None,
        test_share: Number = Fraction(1, 2),
    ) -> Self:
        """The mechanism of least epsilon (three digits) whose half-width is at most the one given.

        With a ``distance``, tables at least so far are also to get an answer with probability
        ``confidence``.

        Raises
        ------
        ArgumentError
            No epsilon up to 10,000 reaches it, or an argument is out of range.
        """
        outside = 1 - check.confidence(confidence)
        made = partial(cls.for_loss, delta=delta, bound=bound, test_share=test_share)

        def error(found: ProposeTestRelease) -> float:
            silent = distance is not None and found.miss_probability(distance) > outside
            return math.inf if silent else found.half_width(confidence)

        return cheapest("half_width", half_width, made, error)

    def release(self, value: int, *, distance: int) -> int | None:
        """Release the value with noise, or None.

        Parameters
        ----------
        value : int
            f(D).
        distance : int
            d, at least 0.

        Raises
        ------
        ArgumentError
            An argument is not an integer, or the distance is below 0.
        """
        exact = check.integers("value", [value])[0]
        far = check.whole("distance", distance)
        if far + noise.discrete_laplace_one(self.test_scale) < self.tau:
            return None
        return exact + noise.discrete_laplace_one(self.value_scale)

    def miss_probability(self, distance: int) -> float:
        """Pr[no answer] at a distance."""
        far = check.whole("distance", distance)
        return 1.0 - DiscreteLaplace(self.test_scale).survival(self.tau - far)

    def half_width(self, confidence: float) -> int:
        """The half-width of the interval of a released value."""
        return DiscreteLaplace(self.value_scale).half_width(confidence)

    def parameters(self) -> dict[str, str]:
        """The law, its exact parameters and the threshold as text, for certificates."""
        # Named, as a slotted dataclass knows no super() of its own.
        return Mechanism.parameters(self) | {"threshold": str(self.tau)}

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        delta = Fraction(1, 100)
        method = cls.for_loss(1, delta, bound=5)

        def release(answer: tuple[int, int]) -> int | None:
            return method.release(answer[0], distance=answer[1])

        passed = ((0, method.tau), (5, method.tau + 1))
        failed = ((0, 0), (10**6, 0))
        for name, (d0, d1) in (("passed", passed), ("failed", failed)):
            yield Subject(f"propose-test-release, {name}", release, d0, d1, delta=delta)
