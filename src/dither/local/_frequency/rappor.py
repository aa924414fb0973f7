"""Basic RAPPOR: a bit for each value, with coins that a device tosses once and remembers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._subjects import Subject
from dither.errors import ArgumentError
from dither.local._audited import AuditCase, Coins, bits_of
from dither.local._channel import Channel, Codes, DomainLike, Shares
from dither.local._coins import ONE, exp_bounds, threshold
from dither.local._domain import Domain, bind
from dither.local._frequency.unary import UnaryChannel, check_telling
from dither.local._guarantee import Guarantee
from dither.local._limits import checked_epsilon
from dither.local._reports.bits import one_hot, packed_coins
from dither.local._reports.hashing import text_bytes
from dither.local._reports.memory import (
    Memory,
    checked_memory,
    checked_question,
    checked_users,
    places_of,
)
from dither.numeric import Words, secure_words
from dither.numeric import _directed as directed

LASTING = (
    "the value does not change (a new name for it is a change), no other question is about it, the "
    "device keeps its memory, its key stays secret, and words from HMAC-SHA256 and AES cannot be "
    "distinguished from coins"
)
_CELLS = 1 << 22


class Remembered(Channel):
    """A channel of two layers, the first of which a device remembers."""

    once: Fraction | None
    question: str | None
    layers: Layers

    @property
    def guarantee(self) -> Guarantee:
        """Of one report."""
        return Guarantee.uniform(self.epsilon if self.once is None else self.once)

    @property
    def lasting(self) -> Guarantee:
        """Of any number of reports of one value, to one question, with a device's memory."""
        return Guarantee.uniform(self.epsilon, assumes=LASTING)


@dataclass(frozen=True, init=False)
class RAPPOR(Remembered, UnaryChannel):
    """Basic RAPPOR.

    Parameters
    ----------
    domain : Domain, int or list
        The k values that people may hold.
    epsilon : number, optional
        Of any number of reports of one value.
    once : number, optional
        Of one report; below epsilon. Left out, the permanent bits are reported as they are
        (one-time RAPPOR).
    noise : (f, p, q), optional
        RAPPOR's own parameters, in place of the two epsilons, which are then computed.
    question : str, optional
        What is asked: the same for every version of the list of values. Reports from a device's
        memory need it.

    Raises
    ------
    ArgumentError
        Neither or both of `epsilon` and `noise` are given, a number is out of range, or
        `once` is not below `epsilon`.

    Notes
    -----
    Law. Two layers on the one-hot bits of the value: permanent bits, each flipped with probability
    a = f/2, tossed once for a person and value and then kept; and reports of the permanent bits,
    each a coin of probability q where the bit is 1 and p where it is 0.

    Guarantee, between two values of one person, which differ in two bits: `guarantee` for one
    report (`once` = log(q*(1-p*)/(p*(1-q*))), with q* and p* the chances of a reported 1 where the
    true bit is 1 and 0); `lasting` for any number of reports of a value that does not change, made
    with one device's `Memory` to one `question`, whatever values are added to the list (`epsilon` =
    2·log((1-a)/a)). Both are rounded so that they hold of the rationals drawn. Each other question
    about the same value costs its own. Two histories of v different values each, which change and
    return to earlier values at the same moments, are v·epsilon apart. When a value changed is not
    hidden: reports of one value resemble each other and not those of another. `LOLOHA`, by
    contrast, calls the epsilon of one report `epsilon`.

    Memory. The permanent bits are derived from a secret key of the device, so that none are stored.
    Were they tossed anew for every report, an average over reports would show the value; were they
    tossed anew for every version of the list of values, an average over versions would. So they are
    those of a question: each value's bit has a word of its own, by the user, the value that is held
    and the value that the bit is for. Versions of one question at one epsilon are parts of one long
    permanent row. A device refuses the question at another epsilon, or with another list where one
    value stands for the rest (what it stands for would change).

    Error. That of unary encoding with p* and q* (see `SUE`), for an aggregate with one report a
    person. Repeated reports of the same people average the second layer's noise only.

    References
    ----------
    Erlingsson, Pihur and Korolova, "RAPPOR", CCS 2014, sections 2 and 3; with p = 1 - q, from two
    epsilons, it is the L-SUE of Arcolezi et al., "Improving the utility of LDP", 2021.

    Examples
    --------
    >>> channel = RAPPOR(["no", "yes"], epsilon=3, once=1, question="smokes")
    >>> print(channel.guarantee)
    epsilon = 1 between any two values
    >>> device = Memory.fresh()
    >>> january, july = (channel.report(["yes"], ["anna"], device) for _ in range(2))
    >>> january.shape == july.shape == (1, 1)
    True
    >>> round(float(RAPPOR(5, noise=(0.5, 0.5, 0.75)).epsilon), 4)
    2.1972
    """

    kind: ClassVar[str] = "rappor"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"domain": 4, "epsilon": 2, "once": 1}),
    )

    once: Fraction | None
    noise: tuple[Fraction, Fraction, Fraction] | None
    question: str | None
    layers: Layers

    def __init__(
        self,
        domain: DomainLike,
        epsilon: Any = None,
        *,
        once: Any = None,
        noise: Any = None,
        question: str | None = None,
    ) -> None:
        if (noise is None) == (epsilon is None) or (noise is not None and once is not None):
            raise ArgumentError("give epsilon (and once), or noise=(f, p, q), and not both")
        bind(self, domain=Domain(domain), question=checked_question(question))
        if noise is None:
            forever, single = promises(epsilon, once)
            layers, given = Layers.of(forever, single, 2), None
        else:
            given = checked_noise(noise)
            layers = Layers.of_noise(given)
            forever, single = layers.forever(2), layers.single(2)
        bind(self, epsilon=forever, once=single, noise=given, layers=layers)
        check_telling(self)

    def settings(self) -> dict[str, Any]:
        """Domain, the epsilons or the noise that were given, and the question, if there is one."""
        computed = ("noise",) if self.noise is None else ("epsilon", "once")
        return {name: v for name, v in super().settings().items() if name not in computed}

    @property
    def form(self) -> dict[str, Any]:
        """What the permanent bits depend on besides the question and the value.

        A list that grows is the same form, but not where one value stands for the rest.
        """
        other = None if self.domain.other is None else self.domain.to_dict()
        return {"channel": self.kind, "flip": str(self.layers.flip), "other": other}

    @property
    def law(self) -> tuple[tuple[Fraction, ...], tuple[Fraction, ...]]:
        """q* of the held value's bit, and p* of the others, for one report."""
        high, low = self.layers.star
        k = len(self.domain)
        return (high,) * k, (low,) * k

    @property
    def chances(self) -> tuple[Shares, Shares]:
        """q* and p* in floating point."""
        high, low = self.layers.star
        k = len(self.domain)
        return np.full(k, float(high)), np.full(k, float(low))

    def draw(self, codes: Codes, words: Words) -> npt.NDArray[np.uint8]:
        """Both layers afresh: the law of one report."""
        k = len(self.domain)
        permanent = self.layers.permanent(one_hot(codes, k), k, words)
        return self.layers.report(permanent, k, words)

    def permanent(self, values: Any, users: Sequence[Any], memory: Memory) -> npt.NDArray[np.uint8]:
        """The permanent bits of each user's value, packed; they never leave the device.

        Parameters
        ----------
        values : column of values of the domain, shape (n,)
        users : sequence of str or int, length n
            The person each value belongs to.
        memory : Memory

        Raises
        ------
        ArgumentError
            A value is outside the domain, there are not as many users as values, or the channel
            has no question, or one that the device has answered in another form.
        """
        codes = self.domain.encode(values)
        named, k = checked_users(users, codes.size), len(self.domain)
        label = checked_memory(memory).label(self.question, self.form)
        values, places = self.domain.values, places_of(self.domain)
        rows = one_hot(codes, k)
        step = max(1, _CELLS // k)
        for start in range(0, codes.size, step):
            part = slice(start, start + step)
            own = [text_bytes(values[code]) for code in codes[part].tolist()]
            words = memory.words_at(label, named[part], own, places)
            rows[part] = self.layers.remembered(rows[part], words)
        return rows

    def report(
        self,
        values: Any,
        users: Sequence[Any],
        memory: Memory,
        *,
        words: Words | None = None,
    ) -> npt.NDArray[np.uint8]:
        """Report again and again: permanent bits from memory, and a fresh second layer.

        Parameters
        ----------
        values, users, memory
            As for `permanent`.
        words : Words, optional
            Another source of the second layer's randomness, for simulation only.

        Returns
        -------
        array of uint8, shape (n, ceil(k/8))
            Reports for `aggregate`.
        """
        permanent = self.permanent(values, users, memory)
        return self.layers.report(permanent, len(self.domain), words or secure_words())

    @classmethod
    def audit_lasting(cls, coins: Coins) -> Iterator[Subject]:
        """How often each bit was 1 in eight reports of one value."""
        channel = cls(3, 2, once=1, question="audit")

        def sums(value: int, size: int) -> npt.NDArray[np.int64]:
            bits = channel.permanent([value] * size, list(range(size)), coins.memory())
            reports = (channel.layers.report(bits, 3, coins.words) for _ in range(8))
            return sum((bits_of(rows, 3) for rows in reports), np.zeros((size, 3), dtype=np.int64))

        yield Subject("local rappor, many reports", sums, 0, 1, channel.lasting.epsilon)


Bits = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Layers:
    """The chances of both layers, out of 2**64.

    With a (`flip`) the chance that a permanent bit is not the true one, and p (`low`), q (`high`)
    the chances of a reported 1 where the permanent bit is 0 and 1, one report says 1 with

        q* = (1-a)q + a·p  where the true bit is 1,      p* = a·q + (1-a)p  where it is 0.

    Where two values differ in d bits, any number of reports differ by a factor of at most
    ((1-a)/a)**d, and one report by at most that of q*, p* for each of the bits.
    """

    flip: int
    low: int
    high: int

    @classmethod
    def of(cls, epsilon: Fraction, once: Fraction | None, differing: int) -> Layers:
        """The layers for given promises, where two values differ in at most so many bits.

        a is rounded up and q down, with p = 1 - q, so that both promises hold of the rationals.
        """
        s, _ = exp_bounds(epsilon / differing)
        # Each bit in which two values differ has its part of epsilon; the chance is rounded down.
        keep = threshold(s / (s + 1))
        if once is None:
            return cls(ONE - keep, 0, ONE)
        s, _ = exp_bounds(once / differing)
        a = 1 - Fraction(keep, ONE)
        # Of both layers together a bit is then kept with chance a + (1 - 2a)·q, that of `once`.
        high = threshold(max(Fraction(0), (s / (s + 1) - a) / (1 - 2 * a)))
        return cls(ONE - keep, ONE - high, high)

    @classmethod
    def of_noise(cls, noise: tuple[Fraction, Fraction, Fraction]) -> Layers:
        """The layers of RAPPOR's f, p and q, each rounded towards more privacy."""
        f, p, q = noise
        # A larger a, a larger p and a smaller q all bring the two laws together.
        return cls(ONE - threshold(1 - f / 2), ONE - threshold(1 - p), threshold(q))

    @property
    def star(self) -> tuple[Fraction, Fraction]:
        """q* and p*, exactly."""
        a, p, q = (Fraction(t, ONE) for t in (self.flip, self.low, self.high))
        return (1 - a) * q + a * p, a * q + (1 - a) * p

    def forever(self, differing: int) -> Fraction:
        """An upper bound of the epsilon of any number of reports."""
        a = Fraction(self.flip, ONE)
        return directed.log_upper((1 - a) / a) * differing

    def single(self, differing: int) -> Fraction:
        """An upper bound of the epsilon of one report of one-hot bits, or of symmetric layers.

        Half of the bits in which two values differ are 1 for the first, the others for the second.
        """
        high, low = self.star
        up, down = directed.log_upper(high / low), directed.log_upper((1 - low) / (1 - high))
        return (up + down) * (differing // 2)

    def permanent(self, true: Bits, k: int, words: Words) -> Bits:
        """Rows after the permanent layer, tossed afresh."""
        return true ^ packed_coins(self.flip, true.shape[0], k, words)

    def report(self, permanent: Bits, k: int, words: Words) -> Bits:
        """Rows after the second layer."""
        if (self.low, self.high) == (0, ONE):
            return permanent
        rows = permanent.shape[0]
        if self.low + self.high == ONE:
            return permanent ^ packed_coins(self.low, rows, k, words)
        ones = packed_coins(self.high, rows, k, words)
        zeros = packed_coins(self.low, rows, k, words)
        return (permanent & ones) | (~permanent & zeros)

    def remembered(self, true: Bits, words: npt.NDArray[np.uint64]) -> Bits:
        """Rows after the permanent layer, by given words: bit j is flipped if word j < a·2**64."""
        return true ^ np.packbits(words < np.uint64(self.flip), axis=1)


def promises(epsilon: Any, once: Any) -> tuple[Fraction, Fraction | None]:
    """Read the two epsilons: of any number of reports, and of one."""
    forever = checked_epsilon(epsilon)
    if once is None:
        return forever, None
    single = checked_epsilon(once, "once")
    if single >= forever:
        raise ArgumentError(
            "once (the epsilon of one report) must be below epsilon (that of any number of "
            "them); leave it out to send the permanent bits themselves"
        )
    return forever, single


def checked_noise(noise: Any) -> tuple[Fraction, Fraction, Fraction]:
    """Read RAPPOR's (f, p, q): 0 < f < 1 and 0 <= p < q <= 1."""
    try:
        f, p, q = (_checks.exact("noise", value) for value in noise)
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError("noise must be three numbers (f, p, q)") from None
    if not (0 < f < 1 and 0 <= p < q <= 1):
        raise ArgumentError("noise (f, p, q) must have 0 < f < 1 and 0 <= p < q <= 1")
    return f, p, q
