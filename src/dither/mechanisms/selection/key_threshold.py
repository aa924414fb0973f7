"""Discovering the keys of a grouping: show a group only if enough units seem to be in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._search import least_integer
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.mechanisms._base import AdditiveNoise, Integers, Mechanism
from dither.mechanisms._composable import approximate_class
from dither.mechanisms.counts.discrete_laplace import DiscreteLaplace
from dither.privacy import Loss, Neighbours

__all__ = ["KeyThreshold"]


@dataclass(frozen=True, slots=True)
class KeyThreshold(Mechanism):
    """The rule that decides which discovered groups are shown.

    For every group g that holds at least one unit let n_g be its number of distinct units. Draw Z_g
    independently from the noise of the count, and release {(g, n_g + Z_g) : n_g + Z_g >= tau}.
    Whatever else is measured is shown for released groups only. tau is the smallest integer with
    k·Pr[1 + Z >= tau] <= delta_keys, the tail taken as a proven upper bound.

    Parameters
    ----------
    noise : AdditiveNoise
        The noise of the count of distinct units.
    max_groups : int
        k: the most groups that one unit counts in.
    delta_keys : Fraction
        In (0, 1): the probability allowed for showing a group that one unit alone has.

    Attributes
    ----------
    tau : int
        A group is shown iff its noisy count is at least tau.

    Raises
    ------
    ArgumentError
        A parameter is out of range.

    Notes
    -----
    *Assumptions.* A unit counts in at most k groups, once in each. Which groups a unit counts in
    depends on that unit's rows (and a secret key) alone. The other measurements draw their noise
    independently of the Z_g.

    *Guarantee.* Suppose that the noisy vectors of counts and of everything else, over *any fixed*
    set of groups, are (epsilon, delta)-DP (or rho-zCDP) together. Then the release is (epsilon,
    delta + delta_keys)-DP (or delta_keys-approximate rho-zCDP), for units added or removed as for
    units replaced; only the noise differs.

    *Proof.* Let D' = D + u, and call a group new if u is its only unit. There are at most k new
    groups, each with n_g = 1. Let E be the event, under D', that none of them reaches tau; by the
    union bound Pr[E] >= 1 - k·Pr[1 + Z >= tau] >= 1 - delta_keys. Noise is independent across
    groups, so given E the release under D' is a function (threshold, drop the groups not released)
    of the noisy vectors over the groups that D has, unconditioned; and under D it is the same
    function of the noisy vectors over the same groups. Those two laws, P' and P, are close by the
    supposition. That is the definition of approximate zCDP. For (epsilon, delta), with q = Pr[E]
    and any set S ::

        Pr[D' in S] <= q·P'(S) + 1 - q <= e^epsilon·Pr[D in S] + delta + delta_keys,
        Pr[D in S] = q·P(S) + (1 - q)·P(S) <= e^epsilon·q·P'(S) + q·delta + 1 - q
                   <= e^epsilon·Pr[D' in S] + delta + delta_keys.

    Replacing u by v: both tables may have new groups, at most k each, with events E_u and E_v of
    probability q_u, q_v >= 1 - delta_keys. Given them the laws P_u and P_v are those over the
    shared groups, and q_u·P_u(S) - e^epsilon·q_v·P_v(S) <= min(q_u, q_v)·delta + max(0, q_u - q_v),
    so ::

        Pr[D_u in S] <= e^epsilon·Pr[D_v in S] + delta + max(0, q_u - q_v) + 1 - q_u
                     <= e^epsilon·Pr[D_v in S] + delta + delta_keys.

    References
    ----------
    Korolova, Kenthapadi, Mishra and Ntoulas, "Releasing search queries and clicks privately", WWW
    2009, for the idea; the statement and proof above are for integer noise and either currency.

    Examples
    --------
    >>> from dither.mechanisms import DiscreteLaplace
    >>> rule = KeyThreshold(DiscreteLaplace(2), 1, 1e-6)
    >>> rule.tau, round(rule.miss_probability(40), 5), rule.n_for(0.01)
    (28, 0.00094, 36)
    """

    title: ClassVar[str] = "threshold on noisy distinct units"

    noise: AdditiveNoise
    max_groups: int
    delta_keys: Fraction
    tau: int = field(init=False)

    def __post_init__(self) -> None:
        groups = check.whole("max_groups", self.max_groups, 1)
        delta = check.exact("delta_keys", self.delta_keys)
        if not 0 < delta < 1:
            raise ArgumentError(
                "delta_keys must be above 0 and below 1: keys cannot be discovered at delta = 0; "
                "give a delta, or declare the keys public"
            )
        self._settle(max_groups=groups, delta_keys=delta)
        # The bound falls in t wherever it is at most 1/2, up to steps that err upwards; it was
        # seen to hold at the t found, so the guarantee does not rest on that.
        # A unit may be alone in each of its groups: the chances to be shown add up.
        allowed = delta / groups
        self._settle(tau=1 + least_integer(lambda t: self.noise.upper_tail(t) <= allowed, 1))

    def shown(self, noisy_counts: Integers) -> npt.NDArray[np.bool_]:
        """Which groups are released; ``noisy_counts`` must be of groups with at least one unit."""
        return noisy_counts >= self.tau

    def miss_probability(self, n: int) -> float:
        """Pr[n + Z < tau]: how likely a group of n units is not shown."""
        if n < 1:
            return 1.0
        return self.noise.survival(n - self.tau + 1)

    def loss(self, *, neighbours: Neighbours | str = Neighbours.ADD_REMOVE) -> Loss:
        """What showing keys adds, to be added to the loss of the noisy vectors themselves.

        A mechanism that fails with probability delta_keys: with H the divergence of the vectors,
        the proof above bounds the release's by q·H + 1 - q for some q >= 1 - delta_keys.
        """
        return approximate_class(Fraction(0), self.delta_keys, neighbours)

    def n_for(self, probability: float) -> int:
        """The smallest group that is missed with at most the given probability."""
        most = check.number("probability", probability, above=0, below=1)
        return least_integer(lambda n: self.miss_probability(n) <= most, 1)

    def parameters(self) -> dict[str, str]:
        """The rule as text, for certificates."""
        return {
            "mechanism": self.title,
            "threshold": str(self.tau),
            "max_groups": str(self.max_groups),
            "delta": str(self.delta_keys),
        }

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        noise, delta = DiscreteLaplace.for_loss(1, l1=1), Fraction(1, 100)
        rule = cls(noise, 1, delta)

        def shown(units: int) -> int | None:
            noisy = units + noise.draw(1)
            return int(noisy[0]) if units and rule.shown(noisy)[0] else None

        yield Subject("key threshold", shown, 0, 1, delta=delta)
