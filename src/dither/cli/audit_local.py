"""Every channel of `dither.local`, with the values of one person that it tells apart best.

A report is shown to the auditor by what the server can read of it: bits one by one, and whether a
hashed report supports each of the two values. Graded channels claim (epsilon, delta) of a pair of
classes; those that remember claim theirs of many reports of one person.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import local
from dither._subjects import Subject
from dither.numeric import Words, secure_words

__all__ = ["local_subjects"]

Array = npt.NDArray[Any]
ONE = Fraction(1)
ROUNDS = 8
"""Reports of one person, where a claim is of many."""


def local_subjects(words: Words | None = None) -> list[Callable[[], Subject]]:
    """Functions that each make one subject.

    Parameters
    ----------
    words : Words, optional
        Where the coins come from; secure words unless told.
    """
    coins = _Coins(words)
    line, half = local.Interval(-1, 1, steps=8), Fraction(1, 2)
    plain: list[Callable[[], local.Channel]] = [
        lambda: local.GRR(4, ONE),
        lambda: local.SUE(4, ONE),
        lambda: local.OUE(4, ONE),
        lambda: local.THE(4, ONE),
        lambda: local.SHE(4, ONE),
        lambda: local.SubsetSelection(4, ONE),
        lambda: local.Hadamard(4, ONE),
        lambda: local.BLH(4, ONE),
        lambda: local.OLH(4, ONE),
        lambda: local.FLH(4, ONE, seeds=16),
        lambda: local.CMS(4, ONE, hashes=2, buckets=16),
        lambda: local.HCMS(4, ONE, hashes=2, buckets=16),
        lambda: local.RAPPOR(4, 2, once=ONE),
        lambda: local.BloomRAPPOR(["flu", "cold"], 2, once=ONE, bits=16, cohorts=2),
        lambda: local.LOLOHA(4, ONE, 2, buckets=2),
        lambda: local.MinIDLDP(4, [1, 1, 3, 3]),
        lambda: local.TruncatedGeometric(4, ONE),
        lambda: local.GridPrivacy(2, 2, 1, ONE),
        lambda: local.Duchi(line, ONE),
        lambda: local.PM(line, ONE),
        lambda: local.Hybrid(line, ONE),
        lambda: local.Laplace(line, ONE),
        lambda: local.SW(line, ONE),
    ]
    graded: list[tuple[Callable[[], Any], str, str, int, int]] = [
        (lambda: local.SDGRR(5, {0, 1}, ONE), "high", "high", 0, 1),
        (lambda: local.SDGRR(5, {0, 1}, ONE), "high", "low", 0, 2),
        (lambda: local.SDGRR(5, {0, 1}, ONE), "low", "low", 2, 3),
        (lambda: local.URR(5, {0, 1}, ONE), "high", "high", 0, 1),
        (lambda: local.SDPM(line, (-half, half), ONE), "high", "high", 0, 8),
        (lambda: local.SDPM(line, (-half, half), ONE), "high", "low", 0, 2),
        (lambda: local.SDPM(line, (-half, half), ONE), "low", "low", 2, 3),
    ]
    return [
        *(lambda make=make: coins.one_report(make()) for make in plain),
        *(lambda made=made: coins.graded(*made) for made in graded),
        coins.personal,
        coins.rappor_for_ever,
        coins.bloom_for_ever,
        coins.loloha_for_ever,
        *(lambda make=make: coins.structure(*make()) for make in _structures()),
    ]


def _structures() -> list[Callable[[], tuple[Any, Any, Any]]]:
    """Structures, each with two records of one person."""
    rows = {"a": 2, "b": 3}
    first, second = {"a": 0, "b": 0}, {"a": 1, "b": 1}
    return [
        lambda: (local.Attributes(rows, ONE), first, second),
        lambda: (local.Attributes(rows, ONE, method="split"), first, second),
        lambda: (local.FakeData(rows, ONE), first, second),
        lambda: (local.Marginals(rows, 2, ONE), first, second),
        lambda: (local.ItemSets(4, ONE, padding=2), {0, 1}, {2, 3}),
        lambda: (local.KeyValue(2, (-1, 1), ONE, padding=1), {0: 1}, {1: -1}),
        lambda: (local.HeavyHitters("ab", 2, ONE, bits=8), "ab", "ba"),
    ]


class _Coins:
    """Subjects that draw from one source."""

    def __init__(self, words: Words | None) -> None:
        self.words = words

    @property
    def source(self) -> Words:
        return self.words or secure_words()

    def memory(self) -> local.Memory:
        """A device that no earlier call knows, so that its permanent coins are new."""
        return local.Memory(self.source.words(4).tobytes())

    def one_report(self, channel: local.Channel) -> Subject:
        """One report of a value against another, by a plain channel."""
        promise = channel.guarantee
        epsilon = promise.epsilon if promise.per_unit is None else promise.per_unit
        ends = isinstance(channel, _NUMERIC)
        d0, d1 = (0, len(channel.domain) - 1) if ends else (0, 1)
        if channel.kind == "min-id-ldp":
            epsilon = ONE
        return self._subject(f"local {channel.kind}", channel, d0, d1, epsilon)

    def graded(self, make: Callable[[], Any], a: str, b: str, d0: int, d1: int) -> Subject:
        """A pair of classes, at the worse delta of both directions."""
        channel = make()
        pairs = channel.guarantee.pairs
        delta = Fraction(max(pairs[a, b].delta, pairs[b, a].delta))
        name = f"local {channel.kind}, {a} against {b}"
        return self._subject(name, channel, d0, d1, channel.epsilon, delta)

    def personal(self) -> Subject:
        """Two high values of somebody who chose the second channel."""
        offer = local.Personal([local.SDGRR(4, {0}, 3), local.SDGRR(4, {0, 1}, ONE)])
        return self._subject("local personal", offer.parts[1], 0, 1, ONE)

    def _subject(
        self,
        name: str,
        channel: local.Channel,
        d0: int,
        d1: int,
        epsilon: Fraction,
        delta: Fraction = Fraction(0),
    ) -> Subject:
        def report(code: int, size: int) -> Array:
            return shown(channel, channel.draw(np.full(size, code), self.source), d0, d1)

        return Subject(name, report, d0, d1, epsilon, delta)

    def rappor_for_ever(self) -> Subject:
        """How often each bit was 1 in many reports of one value."""
        channel = local.RAPPOR(3, 2, once=ONE, question="audit")

        def sums(value: int, size: int) -> Array:
            memory, users = self.memory(), list(range(size))
            bits = channel.permanent([value] * size, users, memory)
            told = (channel.layers.report(bits, 3, self.source) for _ in range(ROUNDS))
            return sum((_bits(rows, 3) for rows in told), np.zeros((size, 3), dtype=np.int64))

        return Subject("local rappor, many reports", sums, 0, 1, channel.lasting.epsilon)

    def bloom_for_ever(self) -> Subject:
        """How often each bit was 1 in many reports of one text, in one cohort."""
        channel = local.BloomRAPPOR(
            ["flu", "cold"], 2, once=ONE, bits=8, cohorts=1, question="audit"
        )

        def sums(value: str, size: int) -> Array:
            memory, users, found = self.memory(), list(range(size)), np.zeros((size, 8), np.int64)
            for _ in range(2):
                rows = channel.report([value] * size, users, memory, words=self.source)
                found += _bits(rows[:, 2:], 8)
            return found

        return Subject(
            "local bloom-rappor, two reports", sums, "flu", "cold", channel.lasting.epsilon
        )

    def loloha_for_ever(self) -> Subject:
        """How many of many reports support each value, over two histories that change together."""
        channel = local.LOLOHA(4, ONE / 2, ONE, buckets=2, question="audit")
        forever = channel.forever.epsilon

        def supports(history: tuple[int, ...], size: int) -> Array:
            memory, users, found = self.memory(), list(range(size)), []
            for value in sorted(set(history), key=history.index):
                rows = channel.report([value] * size, users, memory, words=self.source)
                found.append(channel.likelihoods(rows) > _EVEN)
            return np.concatenate(found, axis=1).astype(np.int64)

        return Subject("local loloha, two values", supports, (0, 1), (1, 0), forever)

    def structure(self, structure: Any, d0: Any, d1: Any) -> Subject:
        """All that one person sends: a row of numbers, or a part and its report."""

        def reports(record: Any, size: int) -> Array:
            if isinstance(record, dict) and structure.kind != "key-value":
                given: Any = {name: [value] * size for name, value in record.items()}
            else:
                given = [record] * size
            found = structure.draw(given, self.source)
            if all(len(part) == size for part in found.values()):
                return np.column_stack(list(found.values()))
            parts = [np.column_stack([np.full(len(p), i), p]) for i, p in enumerate(found.values())]
            # The parts come one after the other; people do not.
            return np.concatenate(parts)[np.argsort(self.source.words(size), kind="stable")]

        method = getattr(structure, "method", "")
        name = f"local {structure.kind}" + (f", {method}" if method else "")
        return Subject(name, reports, d0, d1, structure.guarantee.epsilon)


_NUMERIC = (local.Duchi, local.PM, local.Hybrid, local.Laplace, local.SW)
_EVEN = 0.5


def shown(channel: local.Channel, reports: Array, d0: int, d1: int) -> Array:
    """What a server reads: bits, or whether each of the two values is supported."""
    if channel.kind in {"blh", "olh", "loloha", "flh", "hcms", "bloom-rappor"}:
        odds = channel.likelihoods(reports)[:, [d0, d1]]
        return np.asarray(np.round(np.log2(odds / odds[:, :1]), 6))
    if channel.kind == "cms":
        return np.asarray(np.round(np.log2(channel.likelihoods(reports)[:, [d0, d1]]), 6))
    if reports.dtype == np.uint8 and reports.ndim == 2:
        return _bits(reports, len(channel.domain))
    return reports


def _bits(rows: Array, k: int) -> Array:
    return np.unpackbits(rows, axis=1)[:, :k].astype(np.int64)
