"""Propose-test-release: propose a bound of the local sensitivity, test it, and only then answer.

Mechanism, for a proposed bound b of how much the integer query f changes at this very table::

    d  = distance from D to the nearest table where f changes by more than b between neighbours
    say "no" unless d + discrete Laplace(test_scale) >= tau;
    else say f(D) + discrete Laplace(value_scale)

tau is the smallest integer with Pr[discrete Laplace(test_scale) >= tau] <= delta, proven.

Assumptions, the caller's to keep. d is an integer that changes by at most 1 between neighbours and
is 0 wherever some neighbour's answer differs by more than b. (The distance as defined is so; so is
any 1-Lipschitz lower bound of it.)

Guarantee. (epsilon, delta)-DP with epsilon = 1/test_scale + b/value_scale.

Proof. Let D, D' be neighbours. If |f(D) - f(D')| <= b, test and value compose to epsilon. If not,
d is 0 for both, so that "no" has the same probability on both, and anything else has probability
at most delta on either.

Timing. A value takes one draw more than "no", which the answer shows anyway. How long the caller
takes to find d may depend on the data, and is not covered.

Source. Dwork and Lei, "Differential privacy and robust statistics", STOC 2009, section 3; the
zCDP side: Bun and Steinke, TCC 2016, lemma 8.8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Self

from dither import noise
from dither.errors import ArgumentError
from dither.mechanisms._additive import check_amount
from dither.mechanisms._composable import approximate_class
from dither.mechanisms._selection import check_integers, check_whole
from dither.mechanisms.discrete_laplace import DiscreteLaplace
from dither.mechanisms.key_threshold import KeyThreshold
from dither.mechanisms.search import least_epsilon
from dither.numeric import check_confidence
from dither.privacy import Loss, Neighbours

__all__ = ["ProposeTestRelease"]


@dataclass(frozen=True, slots=True)
class ProposeTestRelease:
    """Propose-test-release, bound to its exact scales.

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
        A parameter is out of range or not exact.

    Examples
    --------
    >>> mechanism = ProposeTestRelease.for_loss(Fraction(1), Fraction(1, 10**6), bound=5)
    >>> mechanism.tau, mechanism.value_scale, mechanism.loss(bound=5).charge.epsilon
    (27, Fraction(10, 1), Fraction(1, 1))
    >>> mechanism.release(70, distance=0) is None, mechanism.release(70, distance=500) is None
    (True, False)
    """

    test_scale: Fraction
    value_scale: Fraction
    delta: Fraction
    tau: int = field(init=False)

    def __post_init__(self) -> None:
        for name in ("test_scale", "value_scale"):
            exact = DiscreteLaplace(check_amount(name, getattr(self, name))).scale
            object.__setattr__(self, name, exact)
        delta = check_amount("delta", self.delta)
        if delta >= 1:
            raise ArgumentError("delta must be in (0, 1)")
        object.__setattr__(self, "delta", delta)
        # The rule for a key of one unit: 1 + Z >= threshold has probability at most delta.
        rule = KeyThreshold(DiscreteLaplace(self.test_scale), 1, delta)
        object.__setattr__(self, "tau", rule.tau - 1)

    @classmethod
    def for_loss(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        bound: int,
        test_share: Fraction = Fraction(1, 2),
    ) -> Self:
        """The mechanism that costs exactly epsilon, ``test_share`` of it for the test."""
        exact, share = check_amount("epsilon", epsilon), check_amount("test_share", test_share)
        if share >= 1:
            raise ArgumentError("test_share must be in (0, 1)")
        whole = check_whole("bound", bound)
        return cls(1 / (exact * share), whole / (exact * (1 - share)), delta)

    def loss(self, *, bound: int, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What a release costs, whatever it says, for the bound that the distance was taken of."""
        epsilon = 1 / self.test_scale + check_whole("bound", bound, 0) / self.value_scale
        return approximate_class(epsilon, self.delta, neighbours)

    @classmethod
    def for_half_width(
        cls,
        half_width: int,
        delta: Fraction,
        *,
        bound: int,
        confidence: float,
        distance: int | None = None,
        test_share: Fraction = Fraction(1, 2),
    ) -> Self:
        """The mechanism of least epsilon (three digits) whose half-width is at most the one given.

        With a ``distance``, tables at least so far are also to get an answer with probability
        ``confidence``.

        Raises
        ------
        ArgumentError
            No epsilon up to 10,000 reaches it, or an argument is out of range.
        """
        outside = 1 - check_confidence(confidence)

        def made(epsilon: Fraction) -> ProposeTestRelease:
            return cls.for_loss(epsilon, delta, bound=bound, test_share=test_share)

        def error(epsilon: Fraction) -> float:
            found = made(epsilon)
            silent = distance is not None and found.miss_probability(distance) > outside
            return math.inf if silent else found.half_width(confidence)

        found = made(least_epsilon("half_width", half_width, error))
        return cls(found.test_scale, found.value_scale, found.delta)

    def release(self, value: int, *, distance: int) -> int | None:
        """Say the value with noise, or None.

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
        exact = check_integers("value", [value])[0]
        far = check_whole("distance", distance, 0)
        if far + noise.discrete_laplace_one(self.test_scale) < self.tau:
            return None
        return exact + noise.discrete_laplace_one(self.value_scale)

    def miss_probability(self, distance: int) -> float:
        """Pr[no answer] at a distance."""
        far = check_whole("distance", distance, 0)
        return 1.0 - DiscreteLaplace(self.test_scale).survival(self.tau - far)

    def half_width(self, confidence: float) -> int:
        """The half-width of the interval of a released value."""
        return DiscreteLaplace(self.value_scale).half_width(confidence)

    def parameters(self) -> dict[str, str]:
        """The law and its exact parameters as text, for certificates."""
        return {
            "mechanism": "propose-test-release",
            "test_scale": str(self.test_scale),
            "value_scale": str(self.value_scale),
            "delta": str(self.delta),
            "threshold": str(self.tau),
        }
