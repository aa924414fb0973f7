"""Reports whose order is forgotten: the central loss that shuffling buys.

Where each report is epsilon-locally private for every two values, n shuffled reports have the
central loss that `dither.accounting.shuffle` bounds. A graded channel amplifies between two high
values only: everybody, high or low, sends each high report with chance c2 or more, and these
reports are the blanket that hides one high value among others; low reports hide nothing. For a
high against a low value nothing is amplified, as a low report excludes values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dither import _checks, accounting, privacy
from dither._format import Printable, loss_text
from dither.errors import ArgumentError
from dither.local._limits import MOST
from dither.privacy import Bound, Loss, Neighbours

if TYPE_CHECKING:
    from dither.local._channel import Channel


@dataclass(frozen=True, slots=True)
class ShuffledReports(Printable):
    """The central guarantee of n reports whose order is forgotten.

    Neighbours replace one person's value by another, both within `between`; n is public.

    Parameters
    ----------
    n : int
    between : str
        Which pairs of values the guarantee compares.
    central : dither.accounting.Shuffled
        The counts that shuffled reports are post-processing of.
    local_epsilon : float
        Of one report between these values: the central epsilon is never above it.

    Examples
    --------
    >>> from dither import local
    >>> print(local.GRR(9, epsilon=2).shuffled(20_000))
    20,000 shuffled reports, between any two values: epsilon = 0.0569... at delta = 1e-6 ...
    """

    n: int
    between: str
    central: accounting.Shuffled
    local_epsilon: float

    def epsilon(self, delta: float) -> Bound:
        """The least central epsilon at a delta in (0, 1)."""
        return self.central.epsilon(delta)

    def delta(self, epsilon: float) -> Bound:
        """The least central delta at an epsilon."""
        return self.central.delta(epsilon)

    def loss(self, delta: float) -> Loss:
        """The central guarantee at a delta, as a loss that composes."""
        return privacy.approximate(float(self.epsilon(delta)), delta, neighbours=Neighbours.REPLACE)

    def summary(self) -> str:
        """The guarantee at delta = 1e-6, beside that of one report."""
        return (
            f"{self.n:,} shuffled reports, between {self.between}: "
            f"epsilon = {loss_text(float(self.epsilon(1e-6)))} at delta = 1e-6 "
            f"(one report by itself: {loss_text(self.local_epsilon, 6)})"
        )


def shuffled(channel: Channel, n: int) -> ShuffledReports:
    """The central loss of n shuffled reports; see `Channel.shuffled`."""
    n = _checks.whole("n", n, 1, MOST)
    promise, blanket = channel.guarantee, channel.blanket
    between, epsilon = "any two values", max(pair.ratio for pair in promise.pairs.values())
    if blanket is not None and "high" in promise.classes:
        if blanket[1] < 2:
            raise ArgumentError(
                "shuffling amplifies between two high values only, and this channel has one"
            )
        between, epsilon = "two high values", promise.pairs["high", "high"].ratio
    if not math.isfinite(epsilon):
        raise ArgumentError(
            f"shuffling does not amplify a {channel.kind} report: some reports exclude values"
        )
    if blanket is None:
        central = accounting.shuffle(n, epsilon)
    else:
        answers, shared = blanket
        central = accounting.shuffle(n, epsilon, randomiser="grr", k=answers, hidden=shared)
    return ShuffledReports(n, between, central, epsilon)
