"""LOLOHA: a value that changes over time, reported again and again, each answer kept for good."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.local._audited import AuditCase, Coins
from dither.local._channel import Codes, DomainLike
from dither.local._coins import ONE, coins, exp_bounds, pick, threshold
from dither.local._domain import bind
from dither.local._frequency.local_hash import OLH
from dither.local._frequency.rappor import LASTING
from dither.local._guarantee import Guarantee
from dither.local._limits import checked_epsilon
from dither.local._reports.hashing import bucket, words_of
from dither.local._reports.memory import Memory, checked_memory, checked_question, checked_users
from dither.numeric import Words, secure_words

_MAX_CHOICES = 32


@dataclass(frozen=True, init=False)
class LOLOHA(OLH):
    """Longitudinal local hashing; a report is a seed and a bucket.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilon : number
        Of one report; above 0.
    epsilon_inf : number
        Of all reports of one permanent answer; above `epsilon`, at most 40.
    buckets : int, optional
        g, from 2 to 4,096; the least variance by default. All reports of histories that change
        together cost g·epsilon_inf at most (see `forever`), so 2 is the safest.
    question : str, optional
        What is asked; reports from a device's memory need it. A device answers it by one channel:
        where a list of values grew, buckets would move, and show the value.

    Raises
    ------
    ArgumentError
        `epsilon_inf` is not above `epsilon`, or an argument is out of range.

    Notes
    -----
    Each user has one public hash of the domain into g buckets. The bucket of the value is
    randomised once and for all (*permanent*, remembered by user and bucket), and what came out is
    randomised afresh at each report (*instant*).

    Law of one report, given the seed, with p1 = e1·m/(1 + e1·m), e1 = e^epsilon_inf, for the
    permanent and p2 for the instant coin, each of the other buckets at equal chances::

        Pr[y = bucket of x] = p1·p2 + (1-p1)·q2,   q2 = (1-p2)/(g-1)

    Guarantee, for one person: `guarantee` between two values for one report (`epsilon`), `lasting`
    between two values that do not change (`epsilon_inf`), `forever` (g·epsilon_inf) between two
    histories whose buckets agree at the same pairs of rounds, as there are at most g permanent
    answers and the rest is post-processing of them. That a value changed, and when it came back, is
    not hidden: a history that alternates between two buckets is distinguished from one that stays
    by enough rounds, at any epsilon_inf (the source's theorem promises g·epsilon_inf for any two
    histories, which is not so). The seed says nothing of the value. A permanent lie is
    floor(w·(g-1)/2**64) of one word, so each has chance m = floor(2**64/(g-1))/2**64 or more; p1
    and p2 are rounded down against that least chance. `RAPPOR`, by contrast, calls the epsilon of
    all reports `epsilon`.

    Error. In each round that of local hashing with p = Pr[y = bucket of x]. Over rounds the
    permanent lies stay: averaging many rounds removes the instant noise only.

    References
    ----------
    Arcolezi, Pinzón, Palamidessi and Gambs, "Frequency estimation of evolving data under local
    differential privacy", EDBT 2023; how changes count is put right here.

    Examples
    --------
    >>> import numpy as np
    >>> channel = LOLOHA(100, epsilon=1, epsilon_inf=2, buckets=2, question="steps")
    >>> memory = Memory.fresh()
    >>> week = [channel.report([17, 4], ["anna", "ben"], memory) for day in range(7)]
    >>> len({tuple(day[:, 0]) for day in week})
    1
    >>> float(channel.lasting.epsilon), float(channel.forever.epsilon)
    (2.0, 4.0)
    """

    kind: ClassVar[str] = "loloha"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 4, "epsilon": 1, "epsilon_inf": 2, "buckets": 2}),
    )

    epsilon_inf: Fraction
    question: str | None

    def __init__(
        self,
        domain: DomainLike,
        epsilon: Any,
        epsilon_inf: Any,
        *,
        buckets: int | None = None,
        question: str | None = None,
    ) -> None:
        one, ever = checked_epsilon(epsilon), checked_epsilon(epsilon_inf, "epsilon_inf")
        if ever <= one:
            raise ArgumentError("epsilon_inf must be above epsilon, that of one report")
        self._settle(domain, one, _best(one, ever) if buckets is None else buckets)
        bind(self, epsilon_inf=ever, question=checked_question(question))

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Out of 2**64: how often the permanent answer is true, and a report that answer."""
        return _thresholds(self.epsilon, self.epsilon_inf, self.buckets)

    @property
    def lasting(self) -> Guarantee:
        """Of any number of reports of one value, to one question, with a memory: epsilon_inf."""
        return Guarantee.uniform(self.epsilon_inf, assumes=LASTING)

    @property
    def forever(self) -> Guarantee:
        """What all reports of one user promise: g·epsilon_inf, but not that the value changed.

        It compares two histories of values whose buckets agree at the same pairs of rounds.
        """
        return Guarantee.uniform(
            self.epsilon_inf * self.buckets,
            assumes="both histories change their bucket, and come back to it, at the same rounds "
            "(when a value changed is not hidden); no other question is about these values; the "
            "device keeps its memory, and the memory's key stays secret",
        )

    @property
    def _chances(self) -> tuple[Fraction, Fraction]:
        p1, p2 = (Fraction(t, ONE) for t in self.thresholds)
        p = p1 * p2 + (1 - p1) * (1 - p2) / (self.buckets - 1)
        return p, (1 - p) / (self.buckets - 1)

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.uint32]:
        """One report each of people who are asked once: a seed and a bucket, shape (n, 2)."""
        n, g = codes.size, self.buckets
        seeds = words.words(-(-n // 2)).view(np.uint32)[:n]
        right = bucket(words_of(seeds, codes), g)
        memoised = self._permanent(right, words.words(n), words.words(n))
        return np.stack([seeds, self._instant(memoised, words).astype(np.uint32)], axis=1)

    def report(
        self, values: Any, users: Any, memory: Memory, *, words: Words | None = None
    ) -> npt.NDArray[np.uint32]:
        """This round's reports of people who are asked again and again.

        Parameters
        ----------
        values : column of values of the domain, shape (n,)
        users : sequence of str or int, shape (n,)
            One name per person; the same at every round.
        memory : Memory
            The device's secret; the same at every round.
        words : Words, optional
            Another source of the instant coins, for simulation only.

        Returns
        -------
        array of uint32, shape (n, 2)
            Each person's seed, which never changes, and a bucket.

        Raises
        ------
        ArgumentError
            A value is outside the domain, there is not one user per value, or the channel has no
            question, or one that the device has answered by another channel.
        """
        codes = self.domain.encode(values)
        names = checked_users(users, codes.size)
        label = checked_memory(memory).label(self.question, {"channel": self.hash})
        seeds = memory.words(label, names, [None] * codes.size, 1)[:, 0].astype(np.uint32)
        right = bucket(words_of(seeds, codes), self.buckets)
        kept = memory.words(label, names, right.tolist(), 2)
        memoised = self._permanent(right, kept[:, 0], kept[:, 1])
        return np.stack(
            [seeds, self._instant(memoised, words or secure_words()).astype(np.uint32)], axis=1
        )

    def _permanent(
        self, right: Codes, first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]
    ) -> Codes:
        """The permanent answer to each bucket, from two words each."""
        g = np.uint64(self.buckets - 1)
        low = second & np.uint64(0xFFFFFFFF)
        # floor(second·g / 2^64), in halves, since the product itself does not fit 64 bits.
        step = (((second >> np.uint64(32)) * g + (low * g >> np.uint64(32))) >> np.uint64(32)) + 1
        others = right + step.astype(np.int64)
        others -= self.buckets * (others >= self.buckets)
        return np.where(first < np.uint64(self.thresholds[0]), right, others)

    def _instant(self, memoised: Codes, words: Words) -> Codes:
        others = memoised + 1 + pick(self.buckets - 1, memoised.size, words)
        others -= self.buckets * (others >= self.buckets)
        return np.where(coins(self.thresholds[1], memoised.size, words), memoised, others)

    @classmethod
    def audit_lasting(cls, coins: Coins) -> Iterator[Subject]:
        """Which values two reports support, over two histories that change together."""
        channel = cls(4, "0.5", 1, buckets=2, question="audit")

        def supports(history: tuple[int, ...], size: int) -> npt.NDArray[np.int64]:
            memory, users, found = coins.memory(), list(range(size)), []
            for value in history:
                rows = channel.report([value] * size, users, memory, words=coins.words)
                found.append(channel.likelihoods(rows) > 0.5)
            return np.concatenate(found, axis=1).astype(np.int64)

        forever = channel.forever.epsilon
        yield Subject("local loloha, two values", supports, (0, 1), (1, 0), forever)


def _thresholds(one: Fraction, ever: Fraction, g: int) -> tuple[int, int]:
    """(permanent, instant) out of 2**64.

    With A = p1 and B = (1 - p1)·m the least chance of a permanent lie, the worst ratio of one
    report is (A·p2 + (1-A)·q2)/(B·p2 + (1-B)·q2), which is at most e where p2·((A - e·B)(g-1) +
    e(1-B) - (1-A)) <= e(1-B) - (1-A).
    """
    # Each other answer has so many of the 2^64 words, or one more: the least chance is the safe
    # one.
    m = Fraction(ONE // (g - 1), ONE)
    forever, _ = exp_bounds(ever)
    permanent = threshold(forever * m / (1 + forever * m))
    a = Fraction(permanent, ONE)
    b = (1 - a) * m
    e, _ = exp_bounds(one)
    level = e * (1 - b) - (1 - a)
    slope = (a - e * b) * (g - 1) + level
    return permanent, threshold(min(Fraction(1), level / slope))


def _best(one: Fraction, ever: Fraction) -> int:
    """The g from 2 to 32 with the least variance of a rare value."""

    def variance(g: int) -> float:
        permanent, instant = _thresholds(one, ever, g)
        p1, p2 = permanent / ONE, instant / ONE
        p = p1 * p2 + (1 - p1) * (1 - p2) / (g - 1)
        return (1 / g) * (1 - 1 / g) / (p - 1 / g) ** 2

    return min(range(2, _MAX_CHOICES + 1), key=variance)
