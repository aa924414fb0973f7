"""Permute-and-flip: the exponential mechanism's promise, and never a worse pick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from dither import _checks as check
from dither import noise
from dither._subjects import Subject
from dither.mechanisms.selection._selection import Selection

__all__ = ["PermuteAndFlip"]


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Selection):
    """Permute-and-flip, bound to its exact rate.

    Go through the candidates in uniformly random order and stop at the first whose coin, true with
    probability exp(-rate·(u_max - u_i)), shows true. The best candidate's coin always does. A
    candidate is picked only if its own coin is true, hence the bound of `miss_probability`.

    It is also the law of the largest of u_i + E_i for independent exponential noises of mean 1/rate
    (`NoisyMax`).

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
    *Guarantee.* Where each integer u_i changes by at most ``sensitivity`` between neighbours, of
    either relation: epsilon-DP with epsilon = 2·rate·sensitivity [1]_, or rate·sensitivity if the
    utilities are monotone, all changing in the same direction. Its loss may span 2·epsilon, so rho
    = epsilon²/2 is claimed, not the exponential mechanism's epsilon²/8.

    *Proof.* Take the exponential-noise form [2]_. Fix all noises but E_i; i is picked iff E_i
    exceeds t = max_{j≠i} (u_j + E_j) - u_i (ties have probability 0), and t rises by at most
    2·sensitivity between neighbours: u_i falls and another rises (only one of the two if monotone).
    For an exponential variable Pr[E_i > t] <= exp(rate·s)·Pr[E_i > t + s] for every s >= 0 and
    every t. Average over the other noises. The two forms agree: an exponential noise exceeds the
    distance to u_max with the coin's probability; among those that do, the excess is again
    exponential with the same mean (no memory), so the largest is uniform among them, as the first
    in random order is.

    *Timing.* How long a draw takes depends on the utilities; where single draws may be timed, give
    the answer at a time fixed in advance.

    References
    ----------
    .. [1] McKenna and Sheldon, "Permute-and-flip", NeurIPS 2020.
    .. [2] Ding, Kifer, Steinke and others, "The permute-and-flip mechanism is identical to
       report-noisy-max with exponential noise", 2021.

    Examples
    --------
    >>> mechanism = PermuteAndFlip.for_loss(1, sensitivity=1, monotone=True)
    >>> mechanism.rate, mechanism.draw([0, 1000, 3])
    (Fraction(1, 1), 1)
    """

    title: ClassVar[str] = "permute-and-flip"

    def draw(self, utilities: Sequence[int]) -> int:
        """Pick the index of one candidate; arguments and errors as of `Selection.draw`."""
        found = check.integers("utilities", utilities)
        best = max(found)
        order = noise.permutation(len(found))
        return int(
            # The best candidate's coin is always true, so that somebody is picked.
            next(i for i in order if noise.bernoulli_exp(self.rate * (best - found[int(i)])))
        )

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""
        pick = cls.for_loss(1, sensitivity=1)
        yield Subject("permute and flip", pick.draw, (1, 0, 0, 0, 0, 0), (0, 1, 1, 1, 1, 1))
