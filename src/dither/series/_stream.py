"""Endless series under w-event privacy: a budget for any w times in a row, spent where it pays.

At every time a vector of counts arrives. Half of epsilon asks, a w-th of it each time, how far the
counts are from those that were published last; the other half publishes them anew where noise would
be less than that, and is silent elsewhere. How much a publication gets is

- *distribution*: half of what the last w - 1 times left;
- *absorption*: its own w-th, and those of times that were silent before it, of at most w; as many
  times after it stay silent as it took beyond its own.

*Guarantee.* w-event epsilon-DP: streams that differ at any w times in a row, at each of them by one
unit that moves the counts by at most ``per_time`` in the L1 norm. The distance Σ|c - last| moves by
no more than the counts (the triangle inequality), so each question costs epsilon/(2w) exactly, and
w of them epsilon/2. What publications spend in any w times in a row adds up to at most epsilon/2,
as `spent` shows in exact fractions: both rules see to it, and `WEventStream.publish` refuses what
would not. How much is spent when is itself read off what left.

Source. Kellaris, Papadopoulos, Xiao and Papadias, "Differentially private event sequences over
infinite streams", VLDB 2014, algorithms 1 (distribution) and 2 (absorption), theorem 3; noise there
is of floats, here of integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from dither import _checks as check
from dither._checks import Number
from dither._columns import array_of
from dither._format import Printable, cost_text, count_text, number_text, wrapped
from dither._subjects import Subject
from dither.errors import ArgumentError, BudgetError
from dither.mechanisms import DiscreteLaplace
from dither.privacy import Loss, Neighbours, pure
from dither.privacy._promise import as_table_neighbours
from dither.series._promises import promise
from dither.series._readings import Integers

__all__ = ["WEventStream"]

METHODS = ("absorption", "distribution", "uniform")
_BITS = 24
"""Of a publication's share of epsilon, rounded down: shares of shares would grow for ever."""
_MOST = 1 << 48
"""Beyond it a count is taken for it."""
_LARGEST = 1 << 42
"""Counts from which sums are taken one by one: 2**20 of them stay within 64 bits."""


class WEventStream(Printable):
    """Counts that are published for ever, at epsilon for any w times in a row.

    Parameters
    ----------
    size : int
        Counts at each time.
    w : int
        Times in a row that are protected together.
    epsilon : number
        For any w times in a row.
    method : {"absorption", "distribution", "uniform"}
        How publications share the budget; "uniform" publishes each time at epsilon/w, as is done
        without either.
    per_time : int
        By how much one unit may move the counts of one time, in the L1 norm: 1 where it is in one
        cell or none, 2 where it moves from one to another.
    neighbours : {"add-remove", "replace"}
        What ``per_time`` is stated for.
    unit : str
        Whose events these are, as a noun.

    Raises
    ------
    ArgumentError
        An argument is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> from dither import series
    >>> stream = series.WEventStream(3, w=10, epsilon=1, unit="rider")
    >>> for _ in range(20):
    ...     counts = stream.publish([1000, 2000, 3000])
    >>> bool(np.abs(counts - [1000, 2000, 3000]).max() < 300), max(stream.windows()) <= 1
    (True, True)
    >>> stream.loss.promise.describe()
    'one run of 10 readings of a rider, added or removed'
    """

    def __init__(
        self,
        size: int,
        *,
        w: int,
        epsilon: Number,
        method: str = "absorption",
        per_time: int = 1,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        unit: str = "person",
    ) -> None:
        self.size = check.whole("size", size, 1, 1 << 20)
        self.w = check.whole("w", w, 1, 1 << 20)
        self.epsilon = check.positive("epsilon", epsilon)
        self.method = check.choice("method", method, METHODS)
        self.per_time = check.whole("per_time", per_time, 1, 1 << 20)
        self.neighbours, self.unit = as_table_neighbours(neighbours), unit
        self._whom = promise("w-event", w=self.w, unit=unit, neighbours=self.neighbours)
        # A scale that no sampler reaches is refused before anybody is asked.
        DiscreteLaplace(max(2 * self.w, 1 << _BITS) * self.per_time / self.epsilon)
        self._asks = Fraction(0) if method == "uniform" else self.epsilon / (2 * self.w)
        self._publications: list[Fraction] = []
        self._published = np.zeros(self.size, dtype=np.int64)
        self._last = 0
        self._silent = 0

    @property
    def loss(self) -> Loss:
        """What any w times in a row cost, however long the stream is."""
        return pure(self.epsilon, neighbours=self.neighbours).promising(self._whom)

    @property
    def times(self) -> int:
        """How many there were."""
        return len(self._publications)

    @property
    def spent(self) -> tuple[Fraction, ...]:
        """What each time cost: its question and, where there was one, its publication."""
        return tuple(self._asks + one for one in self._publications)

    def windows(self) -> list[Fraction]:
        """What every w times in a row cost, exactly; none is above epsilon."""
        spent, w = self.spent, self.w
        return [sum(spent[max(0, i - w + 1) : i + 1], Fraction(0)) for i in range(len(spent))]

    def prices(self) -> dict[str, Loss]:
        """What the stream so far promises for one reading, for w in a row, and for all of a unit's.

        One time asks and publishes, with at most half of epsilon by absorption and a quarter by
        distribution. A unit whose events may be at all T times is w in a row ceil(T/w) times over:
        that price grows with the stream, and no noise of today pays for tomorrow.
        """
        largest = {"absorption": Fraction(1, 2), "distribution": Fraction(1, 4)}
        alone = self._asks + self.epsilon * largest.get(self.method, Fraction(1, self.w))
        times = max(1, -(-self.times // self.w))
        one = promise("event", unit=self.unit, neighbours=self.neighbours)
        whole = promise("user", unit=self.unit, neighbours=self.neighbours)
        return {
            "event": pure(alone, neighbours=self.neighbours).promising(one),
            "w-event": self.loss,
            "user": pure(times * self.epsilon, neighbours=self.neighbours).promising(whole),
        }

    def publish(self, counts: Any) -> Integers:
        """The counts of the next time as they are told to the public; the only step that sees them.

        Parameters
        ----------
        counts : array of int, shape (size,)
            Exact ones; beyond 2**48 in absolute value they are taken for that.

        Returns
        -------
        array of int, shape (size,)
            With new noise, or those that were published last.

        Raises
        ------
        ArgumentError
            They are not so many whole numbers; then nothing is spent.
        """
        exact = self._read(counts)
        share = self._share()
        self._charge(share)
        if self.method == "uniform":
            self._published = self._noisy(exact, share)
            return self._published.copy()
        asking = DiscreteLaplace.for_loss(self._asks, l1=self.per_time)
        apart = np.abs(exact - self._published)
        total = sum(apart.tolist()) if apart.max() > _LARGEST else int(apart.sum())
        away = total + int(asking.draw(1)[0])
        # Noise moves each count by nearly its scale in the mean.
        if share > 0 and away * share > self.size * self.per_time:
            self._published = self._noisy(exact, share)
            self._last = self.times
            self._silent = int(share / self._asks) - 1 if self.method == "absorption" else 0
        else:
            # Nothing was published, so that nothing was spent on it.
            self._publications[-1] = Fraction(0)
        return self._published.copy()

    def _read(self, counts: Any) -> Integers:
        """Counts within 2**48 of 0."""
        try:
            found = array_of(counts)
        except (TypeError, ValueError):
            found = np.asarray(None)
        if found.dtype.kind == "O" and all(type(one) is int for one in found.ravel()):
            # Beyond 64 bits.
            found = np.array([max(-_MOST, min(_MOST, one)) for one in found.ravel()])
        if found.dtype.kind not in "iu" or found.shape != (self.size,):
            raise ArgumentError(f"counts must be {self.size} whole numbers, and none is missing")
        clipped: Integers = np.clip(found, -_MOST, _MOST).astype(np.int64)
        return clipped

    def _noisy(self, exact: Integers, share: Fraction) -> Integers:
        noise = DiscreteLaplace.for_loss(share, l1=self.per_time)
        return exact + noise.draw(self.size)

    def _share(self) -> Fraction:
        """What a publication at the next time would cost."""
        if self.method == "uniform":
            return self.epsilon / self.w
        time = self.times + 1
        if self.method == "absorption":
            waited = time - self._last - self._silent
            return self._asks * max(0, min(waited, self.w))
        recent = self._publications[len(self._publications) - min(self.times, self.w - 1) :]
        left = (self.epsilon / 2 - sum(recent, Fraction(0))) / 2
        return self.epsilon * int(left / self.epsilon * (1 << _BITS)) / (1 << _BITS)

    def _charge(self, share: Fraction) -> None:
        """Note what the next time costs, before anything is drawn."""
        recent = self._publications[len(self._publications) - min(self.times, self.w - 1) :]
        most = self.epsilon if self.method == "uniform" else self.epsilon / 2
        if sum(recent, share) > most:
            raise BudgetError("the charge does not fit: w times in a row would exceed epsilon")
        self._publications.append(share)

    def summary(self) -> str:
        """A few lines for people."""
        published = sum(one > 0 for one in self._publications)
        lines = wrapped(
            f"stream of {count_text(self.size, 'count')}, by {self.method}: "
            f"{count_text(self.times, 'time')}, {published:,} published anew"
        )
        worst = max(self.windows(), default=Fraction(0))
        lines += wrapped(
            f"Cost: {cost_text(self.epsilon)}, {self._whom.describe()}; "
            f"spent so far at most {number_text(worst)} in any {self.w:,} times in a row."
        )
        return "\n".join(lines)

    @classmethod
    def audit_subjects(cls) -> Iterator[Subject]:
        """What an audit calls: neighbours that use the whole claim, or nearly."""

        def run(counts: tuple[int, ...]) -> tuple[int, ...]:
            stream = cls(1, w=1, epsilon=1)
            return tuple(int(stream.publish([c])[0]) for c in counts)

        yield Subject("w-event stream", run, (0,), (1,))
