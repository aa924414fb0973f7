"""The exponential mechanism: pick a candidate with probability growing in its utility."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dither import _checks as check
from dither._subjects import Subject
from dither.mechanisms._coins import exp_choice
from dither.mechanisms._composable import bounded_class
from dither.mechanisms.selection._selection import Selection
from dither.privacy import Loss, Neighbours

__all__ = ["Exponential"]


@dataclass(frozen=True, slots=True)
class Exponential(Selection):
    """The exponential mechanism, bound to its exact rate.

    With u_i the integer utilities ::

        Pr[i] = exp(rate·u_i) / Σ_j exp(rate·u_j)

    It is also the law of the largest of u_i + G_i for independent Gumbel noises of scale 1/rate
    (`NoisyMax`), and is drawn without a race.

    Parameters
    ----------
    rate : Fraction
        Above 0, per unit of utility.

    Raises
    ------
    ArgumentError
        The rate is not a number above 0.

    Notes
    -----
    *Guarantee.* Where each u_i changes by at most ``sensitivity`` between neighbours, of either
    relation: epsilon-DP [1]_ and (epsilon²/8)-zCDP [2]_, with epsilon = 2·rate·sensitivity. If the
    utilities are monotone, all changing in the same direction, epsilon = rate·sensitivity.

    *Proof.* The log-ratio of the two laws at i is rate·(u_i - u'_i) + c, where c does not depend on
    i. Over i, u_i - u'_i lies in an interval of length 2·sensitivity (sensitivity, if monotone), so
    the log-ratio lies in an interval of length epsilon. As both laws sum to 1 that interval holds
    0: epsilon-DP. Let psi(t) be the logarithm of the mean of exp(t·loss) under the second law. Then
    psi(0) = psi(1) = 0, and psi'' is a variance of a number in that interval, at most epsilon²/4.
    So psi(alpha) <= alpha·(alpha - 1)·epsilon²/8, and the Rényi divergence is psi(alpha)/(alpha -
    1).

    *Timing.* How long a draw takes depends on the utilities; where single draws may be timed, give
    the answer at a time fixed in advance.

    References
    ----------
    .. [1] McSherry and Talwar, "Mechanism design via differential privacy", FOCS 2007.
    .. [2] Cesar and Rogers, "Bounding, concentrating, and truncating", ALT 2021; the range of the
       loss: Durfee and Rogers, NeurIPS 2019.

    Examples
    --------
    >>> mechanism = Exponential.for_loss(1, sensitivity=1)
    >>> mechanism.loss(sensitivity=1).charge.epsilon, mechanism.loss(sensitivity=1).charge.rho
    (Fraction(1, 1), Fraction(1, 8))
    >>> mechanism.draw([0, 1000, 3]), mechanism.shortfall(3, 0.95)
    (1, 7)
    """

    title: ClassVar[str] = "exponential mechanism"

    def draw(self, utilities: Sequence[int]) -> int:
        """Pick the index of one candidate; arguments and errors as of `Selection.draw`."""
        return exp_choice([-u for u in check.integers("utilities", utilities)], self.rate)

    def _loss(self, epsilon: Fraction, neighbours: Neighbours | str) -> Loss:
        """Of bounded range, so that rho is epsilon²/8."""
        return bounded_class(epsilon, neighbours)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        pick = cls.for_loss(1, sensitivity=1)
        yield Subject("exponential", pick.draw, (1, 0, 0, 0, 0, 0), (0, 1, 1, 1, 1, 1))
