"""Sums whose noise the clients make together, so that what is opened is private by itself.

Each client adds a share of noise to its counts before they are encrypted or split. No share hides a
client; the sum of all shares does, and that is all that is ever opened. Whoever opens it, the key's
holder or the servers together, learns counts that carry noise which no few parties know: of those
who may be dishonest, who know their own shares, none is counted.

What is protected. Who takes part is known to whoever adds; what a client sent is protected: its
counts replaced by any others within the bounds. Counts are from 0 to ``each``, so that two vectors
whose squares sum to at most S differ by at most 2S in squared length, and by at most size·each²;
no counter differs by more than ``each``. The shares that are counted are
``floor(honest · received)``, of at least ``survivors`` received; an honest client's own share is
among them, since it is there whatever the client counts. A client who drops out takes its share
away, and so a sum of fewer than ``survivors`` is not opened, and one of more loses less than was
charged. The modulus of the sum is post-processing of the sum over the integers; rounding is none.

What it rests on. The cryptography of `secure_sum` or `shared_sum`, on clients who encode their
counts as `PrivateSum.contribution` does (nothing proves it), and on the honest share of them.

Source. Noise and losses as of `dither.learn.federated.DistributedNoise`: Agarwal, Kairouz and Liu,
"The Skellam mechanism for differentially private federated learning", NeurIPS 2021; Kairouz, Liu
and Steinke, "The distributed discrete Gaussian mechanism", ICML 2021; Dwork et al., "Our data,
ourselves", EUROCRYPT 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither import privacy
from dither._checks import Number
from dither._columns import is_masked
from dither._subjects import Subject
from dither.errors import ArgumentError, RoundError
from dither.learn.federated._noise import LAWS, NoiseShare, skellam_orders
from dither.learn.secure._secure_sum import SecureSum, SumKey, secure_sum
from dither.learn.secure._shared_sum import SharedSum, shared_sum
from dither.mechanisms import DiscreteGaussian
from dither.numeric import Words
from dither.privacy import Loss, Neighbours

__all__ = ["PrivateSum", "private_sum"]

Integers = npt.NDArray[np.int64]

WRAP = 1e-9
"""The chance that a counter of the sum leaves its modulus: of accuracy alone."""

_LARGEST_VARIANCE = Fraction(2**60)


def private_sum(
    size: int,
    *,
    each: int = 1,
    squares: int | None = None,
    survivors: int,
    most: int,
    epsilon: Number,
    delta: Number,
    honest: Number = 1,
    law: str = "skellam",
) -> PrivateSum:
    """Plan a sum of clients' counts that is differentially private for whoever opens it.

    Parameters
    ----------
    size : int
        Counters in a vector.
    each : int
        The most that one client counts in one counter, at least 1.
    squares : int, optional
        The most that the squares of a client's counts sum to: 1 where a client has one answer out
        of ``size``. Left out, ``size·each²``, as for a client who may count in every counter.
    survivors : int
        The fewest clients whose vectors a sum must hold to be opened.
    most : int
        The most clients who take part; it decides on the size of the modulus alone.
    epsilon, delta : number
        What one sum may lose, for one client's counts replaced: above 0; delta in (0, 1).
    honest : number
        The share of the clients in a sum who add their noise and tell nobody; in (0, 1].
    law : {"skellam", "discrete gaussian"}

    Returns
    -------
    PrivateSum

    Raises
    ------
    ArgumentError
        An argument is out of range, or no noise keeps the promise.

    Examples
    --------
    >>> asked = {"squares": 1, "survivors": 80, "most": 100, "epsilon": 1, "delta": 1e-6}
    >>> plan = private_sum(3, honest="3/4", **asked)
    >>> plan.loss().delta(1.0).upper <= 1e-6
    True
    >>> 6 < plan.deviation(100) < 9
    True
    """
    size = check.count("size", size, 1)
    each = check.count("each", each, 1, 1 << 20)
    squares = size * each**2 if squares is None else check.count("squares", squares, 1, 1 << 50)
    survivors = check.count("survivors", survivors, 1)
    most = check.count("most", most, survivors, 1 << 30)
    share = check.exact("honest", honest, above=0, most=1)
    asked = check.positive("epsilon", epsilon)
    failing = check.exact("delta", delta, above=0, below=1)
    check.choice("law", law, LAWS)
    counted = math.floor(share * survivors)
    if counted < 1:
        raise ArgumentError("survivors times honest must be at least 1: no noise is left else")

    def fits(variance: Fraction) -> bool:
        found = _loss(NoiseShare(law, variance), counted, size, each, squares)
        return found is not None and Fraction(found.delta(float(asked)).upper) <= failing

    variance = _least(fits, Fraction(_moved(size, each, squares), counted))
    return PrivateSum(size, each, squares, survivors, most, share, NoiseShare(law, variance))


def _whole(name: str, values: Any) -> npt.NDArray[Any]:
    """What may be a vector of whole numbers."""
    if is_masked(values):
        raise ArgumentError(f"{name} must not be masked: fill in what is missing, 0 for no count")
    try:
        return np.asarray(values)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a flat list of whole numbers") from None


def _least(fits: Callable[[Fraction], bool], start: Fraction) -> Fraction:
    """About the least variance that fits: within a hundredth, and on the side that does."""
    high = max(start, Fraction(1, 16))
    while not fits(high):
        high *= 2
        if high > _LARGEST_VARIANCE:
            raise ArgumentError(
                "epsilon or delta is too small: no noise that can be drawn keeps the promise"
            )
    low = high / 2
    while fits(low) and low > Fraction(1, 2**20):
        low, high = low / 2, low
    while high - low > high / 100:
        middle = Fraction(round((low + high) * 2**20), 2**21)
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _moved(size: int, each: int, squares: int) -> int:
    """How far two vectors of counts are apart at most, in squared length."""
    # Counts are at least 0, so that |a - b|² <= |a|² + |b|²; no two are farther apart than `each`.
    return min(2 * squares, size * each**2)


def _loss(share: NoiseShare, counted: int, size: int, each: int, squares: int) -> Loss | None:
    """What a sum loses of one client's counts, replaced; None where no bound is known."""
    square = _moved(size, each, squares)
    moved = min(size, square)
    variance = share.variance * counted
    replaced = Neighbours.REPLACE
    try:
        if share.law == "skellam":
            return privacy.renyi(skellam_orders(variance, square, 1.0), neighbours=replaced)
        made = DiscreteGaussian(variance)
        loss = made.loss(l2_squared=square, coordinates=moved, neighbours=replaced)
        return share.nearly(loss, counted, moved)
    except ArgumentError:
        return None


@dataclass(frozen=True, slots=True)
class PrivateSum:
    """What clients, servers and whoever opens the sum agree on; it holds no secret.

    Parameters
    ----------
    size, each, squares, survivors, most : int
    honest : Fraction
    share : NoiseShare
        Of one client, in each counter.
    """

    size: int
    each: int
    squares: int
    survivors: int
    most: int
    honest: Fraction
    share: NoiseShare

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """One counter, one client: it counts, or it does not."""
        for law in LAWS:
            plan = private_sum(
                1, survivors=4, most=4, epsilon=1, delta="1e-6", honest="3/4", law=law
            )

            def run(counted: int, size: int, plan: PrivateSum = plan) -> Integers:
                # The shares of the three who are honest; the fourth tells everybody its own.
                noise = sum((plan.share.draw((size,)) for _ in range(3)), np.zeros(size, np.int64))
                return noise + counted

            yield Subject(f"private sum, {law}", run, 0, 1, 1, Fraction("1e-6"))

    def counted(self, received: int) -> int:
        """How many of the shares in a sum are surely secret noise."""
        return math.floor(self.honest * received)

    def loss(self, received: int | None = None) -> Loss:
        """What an opened sum loses, for one client's counts replaced.

        Parameters
        ----------
        received : int, optional
            Of how many clients; ``survivors`` where left out, which is the most it can lose and
            what is to be charged before anybody sends.
        """
        number = self.survivors if received is None else check.whole("received", received, 1)
        if number < self.survivors:
            raise ArgumentError(f"received must be at least {self.survivors}: no less is opened")
        found = _loss(self.share, self.counted(number), self.size, self.each, self.squares)
        assert found is not None  # less noise had one
        return found

    def deviation(self, received: int) -> float:
        """The standard deviation of a counter's noise in a sum of so many clients."""
        return math.sqrt(float(self.share.variance) * check.whole("received", received, 1))

    @property
    def largest(self) -> int:
        """How far a counter is from 0 at most, but for a chance of 1e-9."""
        noisy = self.share.reach(self.most, -math.log(WRAP / self.size))
        return self.most * self.each + math.ceil(noisy)

    def secure_sum(self) -> SecureSum:
        """The keys of a sum under one holder's key, as `dither.learn.secure_sum` makes them."""
        return secure_sum(self.size, largest=2 * self.largest, least=self.survivors)

    def shared_sum(self, *, servers: int = 3, needed: int | None = None) -> SharedSum:
        """The plan of a sum by servers in shares, as `dither.learn.shared_sum` makes it.

        What is charged is one sum. With fewer ``needed`` than all, 2·needed - servers who lie could
        help whoever opens it to a second one, of a few clients less.
        """
        return shared_sum(
            self.size,
            largest=2 * self.largest,
            servers=servers,
            needed=needed,
            least=self.survivors,
        )

    def contribution(
        self, counts: Any, key: SumKey | SharedSum, *, words: Words | None = None
    ) -> Integers:
        """A client's counts with its share of noise, to encrypt or to split: on its own device.

        Parameters
        ----------
        counts : array of int, shape (size,)
            Each from 0 to ``each``, with squares that sum to at most ``squares``.
        key : SumKey or SharedSum
            Of the sum: ``holder.public``, or the servers' plan.
        words : Words, optional
            Of simulations.

        Raises
        ------
        ArgumentError
            Counts are not within the bounds, or the key is of another sum.
        """
        self._check(key)
        vector = _whole("counts", counts)
        if vector.shape != (self.size,) or vector.dtype.kind not in "iu":
            raise ArgumentError(f"counts must be {self.size:,} whole numbers")
        if int(vector.min()) < 0 or int(vector.max()) > self.each:
            raise ArgumentError(f"counts must be from 0 to {self.each:,} each")
        if sum(int(x) ** 2 for x in vector.tolist() if x) > self.squares:
            raise ArgumentError(
                f"counts must have squares that sum to at most {self.squares:,}: leave some out"
            )
        noisy = vector.astype(np.int64) + self.share.draw((self.size,), words)
        return np.asarray(noisy % key.modulus)

    def read(self, sums: Any, key: SumKey | SharedSum) -> Integers:
        """The noisy counts of a sum that was opened; some may be below 0.

        Parameters
        ----------
        sums : array of int, shape (size,)
            As `SecureSum.open` or `SharedSum.open` gives them.
        key : SumKey or SharedSum
        """
        self._check(key)
        found = _whole("sums", sums)
        if found.shape != (self.size,) or found.dtype.kind not in "iu":
            raise ArgumentError(f"sums must be {self.size:,} whole numbers")
        if int(found.min()) < 0 or int(found.max()) >= key.modulus:
            raise ArgumentError("sums must be what was opened, each below the modulus")
        half = key.modulus // 2
        return np.asarray(np.where(found > half, found - key.modulus, found), np.int64)

    def _check(self, key: SumKey | SharedSum) -> None:
        if not isinstance(key, SumKey | SharedSum):
            raise ArgumentError("key must be that of the sum: holder.public, or the servers' plan")
        if key.size != self.size or key.modulus < 2 * self.largest:
            raise ArgumentError("key is of another sum: make it by plan.secure_sum or shared_sum")
        if key.least < self.survivors:
            raise RoundError(
                f"the sum would be opened with {key.least} clients, and its noise takes "
                f"{self.survivors}: make it by plan.secure_sum or plan.shared_sum"
            )
