"""How channels and structures are audited: by what a server can read of one person's reports.

A report is shown bit by bit, and a hashed one by how well it fits each of the two values. A
plain channel claims its epsilon, a graded one (epsilon, delta) of a pair of classes; one that
remembers also claims its lasting epsilon of many reports of one person.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from dither._subjects import Subject
from dither.local._reports.memory import Memory
from dither.numeric import Words, secure_words

__all__ = ["AuditCase", "Audited", "Coins", "bits_of", "one_report"]

Array = npt.NDArray[Any]


class AuditCase(NamedTuple):
    """A small instance of a class, and two values of one person that it distinguishes best.

    Attributes
    ----------
    arguments : dict
        That make the instance.
    d0, d1 : object
        Codes of the two values; of a structure two records.
    pair : (str, str), optional
        The classes of the two, for a graded channel: it claims their epsilon and delta.
    epsilon : int, optional
        What is claimed of these two where the guarantee as a whole is weaker.
    """

    arguments: dict[str, Any]
    d0: Any = 0
    d1: Any = 1
    pair: tuple[str, str] | None = None
    epsilon: int | None = None


class Coins:
    """Where reports draw from: secure words by default."""

    def __init__(self, words: Words | None = None) -> None:
        self._words = words

    @property
    def words(self) -> Words:
        """The source."""
        return self._words or secure_words()

    def memory(self) -> Memory:
        """A device that no earlier call knows, so that its permanent coins are new."""
        return Memory(self.words.words(4).tobytes())


class Audited:
    """A class that declares what an audit calls: see `Subject`."""

    audit_cases: ClassVar[tuple[AuditCase, ...]] = ()
    """Small instances, and two values or records that each distinguishes best: what is audited."""

    @classmethod
    def audit_subjects(cls, words: Words | None = None) -> Iterator[Subject]:
        """What an audit calls of this class; with secure coins by default."""
        coins = Coins(words)
        for case in cls.audit_cases:
            one = cls(**case.arguments)
            made = _structure if hasattr(one, "parts") else _channel
            yield made(one, case, coins)
        yield from cls.audit_lasting(coins)

    @classmethod
    def audit_lasting(cls, coins: Coins) -> Iterator[Subject]:
        """Of one that remembers: many reports of one person, and what they claim together."""
        yield from ()


def _channel(channel: Any, case: AuditCase, coins: Coins) -> Subject:
    promise, name = channel.guarantee, f"local {channel.kind}"
    epsilon = promise.epsilon if promise.per_unit is None else promise.per_unit
    if case.pair is None:
        return one_report(name, channel, case.d0, case.d1, case.epsilon or epsilon, coins)
    a, b = case.pair
    # The worse delta of both directions.
    delta = Fraction(max(promise.pairs[a, b].delta, promise.pairs[b, a].delta))
    name = f"{name}, {a} against {b}"
    return one_report(name, channel, case.d0, case.d1, channel.epsilon, coins, delta)


def one_report(
    name: str,
    channel: Any,
    d0: int,
    d1: int,
    epsilon: Any,
    coins: Coins,
    delta: Fraction = Fraction(0),
) -> Subject:
    """One report of a value against one of another."""

    def report(code: int, size: int) -> Array:
        return _shown(channel, channel.draw(np.full(size, code), coins.words), d0, d1)

    return Subject(name, report, d0, d1, epsilon, delta)


def _structure(structure: Any, case: AuditCase, coins: Coins) -> Subject:
    """All that one person sends: a row of numbers, or a part and its report."""

    def reports(record: Any, size: int) -> Array:
        # A record of columns; a dictionary of keys and values is one record.
        if isinstance(record, dict) and all(isinstance(name, str) for name in record):
            given: Any = {name: [value] * size for name, value in record.items()}
        else:
            given = [record] * size
        found = structure.draw(given, coins.words)
        if all(len(part) == size for part in found.values()):
            return np.column_stack(list(found.values()))
        parts = [np.column_stack([np.full(len(p), i), p]) for i, p in enumerate(found.values())]
        # The parts come one after the other; people do not.
        return np.concatenate(parts)[np.argsort(coins.words.words(size), kind="stable")]

    method = getattr(structure, "method", "")
    name = f"local {structure.kind}" + (f", {method}" if method else "")
    return Subject(name, reports, case.d0, case.d1, structure.guarantee.epsilon)


def _shown(channel: Any, reports: Array, d0: int, d1: int) -> Array:
    """What a server reads, as the channel's ``audit_view`` says."""
    if channel.audit_view != "reports":
        odds = channel.likelihoods(reports)[:, [d0, d1]]
        if channel.audit_view == "odds":
            odds = odds / odds[:, :1]
        return np.asarray(np.round(np.log2(odds), 6))
    if reports.dtype == np.uint8 and reports.ndim == 2:
        return bits_of(reports, len(channel.domain))
    return reports


def bits_of(rows: Array, k: int) -> Array:
    """The first k bits of packed rows, as numbers."""
    return np.unpackbits(rows, axis=1)[:, :k].astype(np.int64)
