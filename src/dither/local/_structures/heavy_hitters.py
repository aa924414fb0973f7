"""The frequent texts of a domain too large to list: prefixes grow, the frequent ones go on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dither import _checks
from dither._stats import normal_quantile
from dither.errors import ArgumentError
from dither.local._audited import AuditCase
from dither.local._channel import Channel
from dither.local._coins import pick
from dither.local._domain import Domain, bind, collection
from dither.local._estimates.postprocess import no_rule
from dither.local._estimates.results import Estimate, checked_options, estimated, sampled, shares_of
from dither.local._frequency.hadamard import Hadamard
from dither.local._limits import checked_epsilon
from dither.local._reports.hashing import hash64
from dither.local._structures.parts import (
    Maker,
    PartCounts,
    Reports,
    Structure,
    given,
    made_part,
)
from dither.numeric import Words

_END = "\0"
_MAX_CANDIDATES = 1 << 20


@dataclass(frozen=True, init=False)
class HeavyHitters(Structure):
    """Frequent texts over a public alphabet.

    Parameters
    ----------
    alphabet : str
        The symbols that frequent texts are made of, all different. A text with others is reported
        as well, and not found.
    length : int
        Symbols that count, at least 1; of longer texts the first ones.
    epsilon : number
        From 2**-32 to 40.
    first : int
        Length of the shortest prefix, from 1 to `length`.
    step : int
        Symbols that each level adds.
    bits : int
        Buckets are 2**bits, from 8 to 22.
    channel : callable
        Makes a level's channel from its buckets and epsilon.

    Raises
    ------
    ArgumentError
        An argument is out of range, or `channel` makes what promises less than epsilon for some
        two values.

    Notes
    -----
    Each person picks a level at random, publicly, and reports the prefix of that level's length:
    the prefix is hashed by a public hash of the level into 2**bits buckets, and the bucket goes
    through a frequency channel with the whole epsilon. The server reads level by level: it extends
    the prefixes that were frequent so far by every symbol, looks their buckets up, and keeps those
    that stand out. Texts end by an end mark, so that prefixes of ended texts are whole.

    Guarantee. epsilon-local DP: neighbours are any two texts of one person. One prefix is reported,
    once; which length is public and says nothing of the text.

    Error. A level's estimate is that of its channel over the people who picked it, plus the chance
    of the pick, f(1-f)/n_level. A bucket holds other texts too, 2**-bits of them on average, which
    is taken off. Of candidates that share a bucket, which cannot be distinguished, the one with the
    more frequent prefix is kept; each candidate falls into a given bucket with chance 2**-bits.

    References
    ----------
    Wang, Li and Jha, "Locally differentially private heavy hitter identification", IEEE TDSC 2019
    (prefix extending method).

    Examples
    --------
    >>> words = HeavyHitters("abc", length=3, epsilon=4)
    >>> reports = words.privatize(["cab"] * 6000 + ["ab"] * 6000)
    >>> sorted(words.aggregate(reports).estimate(k=2).values)
    ['ab', 'cab']
    """

    kind: ClassVar[str] = "heavy-hitters"
    audit_cases: ClassVar[tuple[AuditCase, ...]] = (
        AuditCase({"alphabet": "ab", "length": 2, "epsilon": 1, "bits": 8}, "ab", "ba"),
    )

    alphabet: str
    length: int
    epsilon: Fraction
    first: int
    step: int
    bits: int
    channels: dict[str, Channel]

    def __init__(
        self,
        alphabet: str,
        length: int,
        epsilon: Any,
        *,
        first: int = 2,
        step: int = 1,
        bits: int = 18,
        channel: Maker = Hadamard,
    ) -> None:
        made = checked_epsilon(epsilon)
        if not isinstance(alphabet, str) or not alphabet or len(set(alphabet)) < len(alphabet):
            raise ArgumentError("alphabet must be a text of different symbols")
        if _END in alphabet:
            raise ArgumentError("alphabet must not hold the end mark, the character 0")
        length, step = _checks.whole("length", length, 1, 255), _checks.whole("step", step, 1, 255)
        bits = _checks.whole("bits", bits, 8, 22)
        first = _checks.whole("first", first, 1)
        first = min(first, length) if first == 2 else first
        _checks.whole("first", first, 1, length, instead=", the length")
        symbols = len(alphabet) + 1
        if max(first, step) * math.log2(symbols) > math.log2(_MAX_CANDIDATES):
            raise ArgumentError(
                f"first and step must leave at most {_MAX_CANDIDATES:,} prefixes to look up; "
                f"{symbols} symbols allow {int(20 / math.log2(symbols))} at a time"
            )
        bind(self, alphabet=alphabet, length=length, epsilon=made)
        bind(self, first=first, step=step, bits=bits)
        parts = {f"{size}": made_part(channel, Domain(1 << bits), made) for size in self.levels}
        bind(self, channels=parts)

    @property
    def levels(self) -> list[int]:
        """Lengths of the prefixes, shortest first, the last being `length`."""
        return [*range(self.first, self.length, self.step), self.length]

    @property
    def parts(self) -> dict[str, Channel]:
        """One channel per level, over its buckets."""
        return self.channels

    def settings(self) -> dict[str, Any]:
        """Alphabet, length and levels."""
        return {
            "alphabet": self.alphabet,
            "length": self.length,
            "levels": self.levels,
            "bits": self.bits,
            "epsilon": str(self.epsilon),
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any], parts: dict[str, Channel]) -> Structure:
        """The structure that `settings` and `parts` describe."""
        levels = settings.pop("levels")
        step = levels[1] - levels[0] if len(levels) > 1 else 1
        # A last step may be shorter than the others; where it is the only one, it is the step.
        return cls(first=levels[0], step=step, channel=given(parts), **settings)

    def draw(self, records: Any, words: Words) -> Reports:
        """Reports by level, of a sequence of texts."""
        listed = collection(records)
        texts: list[str] = list(records) if listed else []
        if not listed or not all(isinstance(text, str) for text in texts):
            raise ArgumentError("records must be a sequence of texts, one per person")
        chosen = pick(len(self.levels), len(texts), words)
        found: Reports = {}
        for j, (size, channel) in enumerate(zip(self.levels, self.channels.values(), strict=True)):
            mine = [texts[i][:size].ljust(size, _END) for i in np.flatnonzero(chosen == j)]
            found[f"{size}"] = channel.draw(self._buckets(mine, size), words)
        return found

    def _buckets(self, prefixes: list[str], size: int) -> npt.NDArray[np.int64]:
        """The bucket of each prefix under the public hash of its level."""
        data = [p.encode("utf-8", "surrogatepass") for p in prefixes]
        hashed = hash64(data, [size])[0]
        return np.asarray(hashed >> np.uint64(64 - self.bits), dtype=np.int64)

    def read(
        self, counts: PartCounts, rule: str, confidence: float, options: dict[str, Any]
    ) -> Estimate:
        """The at most k most frequent texts that stand out from the noise, most frequent first.

        Shares are of the last level alone. Fewer than k texts are found where fewer stand out.
        """
        checked_options(options, ("k",), "heavy hitters")
        no_rule(rule, "heavy hitters")
        k = _checks.whole("k", options.get("k", 10), 1)
        kept: list[tuple[str, int]] = [("", 0)]
        reach = min(2 * k, max(k, _MAX_CANDIDATES // (len(self.alphabet) + 1) ** self.step))
        even = 1 / (1 << self.bits)
        for size in self.levels:
            # The more frequent prefix comes first, so its texts win a bucket that others share.
            candidates = [p for prefix, _ in kept for p in self._extended(prefix, size)]
            part = counts[f"{size}"]
            if part.n == 0:
                raise ArgumentError(f"there are no reports of prefixes of {size} symbols")
            level = sampled(shares_of(part, "none", confidence))
            places = self._buckets(candidates, size)
            shares = (level.shares - even) / (1 - even)
            errors = level.standard_errors / (1 - even)
            limit = -normal_quantile((1 - confidence) / max(1, len(candidates)))
            first = np.unique(places, return_index=True)[1]
            order = first[np.lexsort((first, -shares[places[first]]))][:reach]
            kept = [
                (candidates[i], int(place))
                for i, place in zip(order.tolist(), places[order], strict=True)
                if shares[place] > limit * errors[place]
            ]
        where = [place for _, place in kept[:k]]
        return estimated(
            counts,
            self.kind,
            tuple(text.rstrip(_END) for text, _ in kept[:k]),
            shares[where],
            errors[where],
            confidence,
            plausible=level.plausible[where],
            steps=level.steps[where] / (1 - even),
            unbiased=False,
            postprocess="selected",
            notes=(
                "Shares are of people who reported whole texts, the last level alone; a rare text "
                "that stands out looks more frequent than it is.",
            ),
        )

    def _extended(self, prefix: str, size: int) -> list[str]:
        """All prefixes of a length that begin with one: after an end mark only end marks."""
        found = [prefix]
        while len(found[0]) < size:
            found = [
                p + symbol
                for p in found
                for symbol in (_END if p.endswith(_END) else self.alphabet + _END)
            ]
        return found
