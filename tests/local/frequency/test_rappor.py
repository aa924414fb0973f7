"""Basic RAPPOR: both layers against their exact law, one report and many, and the memory."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dither import local
from dither.errors import ArgumentError
from dither.local import LOLOHA, RAPPOR, SUE, BloomRAPPOR, Memory
from dither.local._coins import ONE, exp_bounds
from dither.local._reports.memory import places_of
from dither.numeric import SimulatedWords
from local.laws import (
    check_bit_pure,
    check_bit_rows,
    check_bit_sampler,
    check_estimator,
    check_wire,
    chi_square_passes,
)

CHANNELS = [
    RAPPOR(3, 3, once=1),
    RAPPOR(3, 2),
    RAPPOR(3, noise=("0.5", "0.5", "0.75")),
    RAPPOR(4, noise=("0.25", "0.1", "0.6")),
]
KEY = bytes(range(32))


@pytest.mark.parametrize("channel", CHANNELS)
def test_one_report(channel: RAPPOR) -> None:
    """The law of one report sums to one, is as private as claimed, and is what is drawn."""
    check_bit_rows(channel)
    check_bit_pure(channel)
    assert check_bit_sampler(channel)


@pytest.mark.parametrize("channel", CHANNELS)
def test_estimator_and_wire(channel: RAPPOR) -> None:
    """Unbiased, of the stated variance; the channel survives JSON and Arrow."""
    k = len(channel.domain)
    check_estimator(channel, np.arange(1, k + 1) / (k * (k + 1) / 2))
    check_wire(channel, channel.privatize(list(range(k)) * 20))


def test_one_time_is_symmetric_unary_encoding() -> None:
    """Without a second layer it has the law of SUE, to the last of its 64 bits."""
    assert RAPPOR(3, 2).law == SUE(3, 2).law


def many_reports(channel: RAPPOR, x: int, times: int, remember: bool) -> dict[Any, Fraction]:
    """The exact law of several reports of one value, with or without a memory."""
    k = len(channel.domain)
    layers = channel.layers
    a, p, q = (Fraction(t, ONE) for t in (layers.flip, layers.low, layers.high))
    rows = list(itertools.product((0, 1), repeat=k))

    def permanent(row: tuple[int, ...]) -> Fraction:
        return math.prod(a if b != (j == x) else 1 - a for j, b in enumerate(row))

    def seen(row: tuple[int, ...], report: tuple[int, ...]) -> Fraction:
        ones = (q if b else p for b in row)
        return math.prod(o if s else 1 - o for o, s in zip(ones, report, strict=True))

    law = {}
    for reports in itertools.product(rows, repeat=times):
        if remember:
            law[reports] = sum(permanent(r) * math.prod(seen(r, s) for s in reports) for r in rows)
        else:
            law[reports] = math.prod(sum(permanent(r) * seen(r, s) for r in rows) for s in reports)
    return law


def worst(channel: RAPPOR, times: int, remember: bool = True) -> Fraction:
    """The worst ratio of several reports of two values."""
    first, second = (many_reports(channel, x, times, remember) for x in (0, 1))
    assert sum(first.values()) == 1
    return max(first[s] / second[s] for s in first)


def test_any_number_of_reports() -> None:
    """Many reports stay within e^epsilon, above e^once; forgetting the coins breaks the promise."""
    channel = RAPPOR(2, 2, once=1)
    assert channel.lasting.epsilon == 2
    assert "key" in str(channel.lasting)
    limit = exp_bounds(Fraction(2))[0]
    ratios = [worst(channel, times) for times in (1, 2, 3, 4)]
    assert ratios[0] <= exp_bounds(Fraction(1))[0] < ratios[1] < ratios[2] < ratios[3] <= limit
    assert worst(channel, 3, remember=False) > limit


def average_gives(channel: RAPPOR, report: Any, value: int) -> tuple[int, int]:
    """Bits of the mean of many reports that differ from the truth, and from the permanent bits."""
    k = len(channel.domain)
    reports = np.concatenate([np.unpackbits(report(), axis=1)[:, :k] for _ in range(400)])
    high, low = (float(t / ONE) for t in (channel.layers.high, channel.layers.low))
    guess = reports.mean(axis=0) > (high + low) / 2
    permanent = np.unpackbits(channel.permanent([value], ["u"], Memory(KEY)), axis=1)[0, :k]
    return int((guess != (np.arange(k) == value)).sum()), int((guess != permanent).sum())


def test_averaging_shows_the_permanent_bits_only() -> None:
    """400 reports of one person tell the permanent bits; without memory they tell the value."""
    channel, memory = RAPPOR(200, 2, once=1, question="q"), Memory(KEY)
    words = SimulatedWords(5)
    wrong, off = average_gives(channel, lambda: channel.report([7], ["u"], memory, words=words), 7)
    assert off == 0
    expected = 200 * channel.layers.flip / ONE
    assert abs(wrong - expected) < 6 * math.sqrt(expected)
    forgetful, _ = average_gives(
        channel, lambda: channel.report([7], ["u"], Memory.fresh(), words=words), 7
    )
    assert forgetful == 0


def test_permanent_bits_have_their_law() -> None:
    """Over many people the remembered bits are coins of chance a (false alarm 1e-7)."""
    channel, n = RAPPOR(8, 1, once="0.5", question="q"), 20_000
    rows = channel.permanent([3] * n, range(n), Memory(KEY))
    flipped = np.unpackbits(rows, axis=1) != (np.arange(8) == 3)
    a = channel.layers.flip / ONE
    for column in flipped.T:
        assert chi_square_passes([column.sum(), n - column.sum()], n * np.array([a, 1 - a]))
    pairs = np.corrcoef(flipped.T)[np.triu_indices(8, 1)]
    assert np.abs(pairs).max() < 6.5 / math.sqrt(n)


def test_memory_is_keyed_by_all_that_matters() -> None:
    """Key, channel, user, the user's type and value each give other words; a repeat the same."""
    memory, other = Memory(KEY), Memory(bytes(32))
    given = [("c", "1", 1), ("d", "1", 1), ("c", 1, 1), ("c", "1", 2), ("c", "1", None)]
    seen = {memory.words(label, [u], [c], 2).tobytes() for label, u, c in given}
    seen.add(other.words("c", ["1"], [1], 2).tobytes())
    assert len(seen) == 6
    assert np.array_equal(
        memory.words("c", ["a", "b"], [1, 2], 5)[1], memory.words("c", ["b"], [2], 9)[0, :5]
    )
    assert repr(memory).find(KEY.hex()) < 0
    assert Memory(memory.key).words("c", [1], [1], 1) == memory.words("c", [1], [1], 1)


def test_memory_is_the_cipher_told() -> None:
    """The words are those of AES-256 in counter mode from an HMAC, as the module writes."""
    start = hmac.new(KEY, b"label\x005:sanna\x0017", hashlib.sha256).digest()[:16]
    expand = hmac.new(KEY, b"expand", hashlib.sha256).digest()
    stream = Cipher(algorithms.AES(expand), modes.CTR(start)).encryptor().update(bytes(48))
    expected = np.frombuffer(stream, dtype="<u8")
    assert np.array_equal(Memory(KEY).words("label", ["anna"], [17], 6)[0], expected)


def test_the_word_of_a_place_is_the_cipher_told() -> None:
    """A bit's word is AES-256 at the start plus 16 bytes of SHA-256 of the bit's value."""
    start = int.from_bytes(
        hmac.new(KEY, b"label\x005:sanna\x00v4:sflu", hashlib.sha256).digest()[:16], "big"
    )
    expand = hmac.new(KEY, b"expand", hashlib.sha256).digest()
    cipher = Cipher(algorithms.AES(expand), modes.ECB()).encryptor()
    found = Memory(KEY).words_at(
        "label", ["anna"], [b"sflu"], places_of(local.Domain(["cold", 7]))
    )[0]
    for text, word in zip((b"scold", b"i7"), found, strict=True):
        place = int.from_bytes(hashlib.sha256(text).digest()[:16], "big")
        block = cipher.update(((start + place) % (1 << 128)).to_bytes(16, "big"))
        assert int(word) == int.from_bytes(block[:8], "little")


def versions(times: int, question: str | None) -> list[RAPPOR]:
    """A survey that adds one value after another to its list, in front of the others."""
    return [
        RAPPOR([f"new {j}" for j in range(i)] + ["no", "yes"], 1, question=question)
        for i in range(times)
    ]


def guessed(forms: list[RAPPOR], memories: list[Memory], people: int) -> float:
    """How often the sum over versions of the bits of "no" and "yes" tells which is held."""
    held = np.arange(people) % 2
    values, scores = np.where(held, "yes", "no").tolist(), np.zeros(people)
    for channel, memory in zip(forms, memories, strict=True):
        k = len(channel.domain)
        bits = np.unpackbits(channel.report(values, range(people), memory), axis=1)[:, :k]
        scores += bits[:, k - 1].astype(int) - bits[:, k - 2]
    # A tie is a guess at random: half of them are right.
    return float(((scores > 0) == held)[scores != 0].sum() + (scores == 0).sum() / 2) / people


@pytest.mark.heavy("test_versions_are_parts_of_one_permanent_row")
def test_a_value_that_is_added_tells_no_more() -> None:
    """Forty versions of one list, one memory: guessed no oftener than epsilon allows.

    A guess of one of two values is right with chance e/(e + 1) at most; false alarm 1e-9.
    """
    people = 4000
    most = math.e / (math.e + 1) + 6 * math.sqrt(0.2 / people)
    forms = versions(40, "smokes")
    assert guessed(forms, [Memory(KEY)] * 40, people) <= most
    # Coins that each version tosses anew, as if each had a device of its own, tell nearly all.
    assert guessed(forms, [Memory.fresh() for _ in forms], people) > 0.9


def test_versions_are_parts_of_one_permanent_row() -> None:
    """Bits of the values that versions share are the same bits, wherever they stand."""
    memory = Memory(KEY)
    short = RAPPOR(["no", "yes"], 1, question="q")
    long = RAPPOR(["yes", "maybe", "no"], 1, once="0.5", question="q")
    users = range(500)
    a = np.unpackbits(short.permanent(["yes"] * 500, users, memory), axis=1)
    b = np.unpackbits(long.permanent(["yes"] * 500, users, memory), axis=1)
    assert np.array_equal(a[:, [0, 1]], b[:, [2, 0]])
    assert not np.array_equal(a[:, 0], b[:, 1])
    other = RAPPOR(["no", "yes"], 1, question="r").permanent(["yes"] * 500, users, memory)
    assert not np.array_equal(a[:, 0], np.unpackbits(other, axis=1)[:, 0])


def test_a_question_is_answered_in_one_form() -> None:
    """Another epsilon, kind or "other" would toss new coins: refused, also after a restart."""
    memory = Memory(KEY)
    RAPPOR(["no", "yes"], 1, question="q").report(["no"], ["u"], memory)
    LOLOHA(4, 1, 2, question="steps").report([1], ["u"], memory)
    BloomRAPPOR(["a", "b"], 1, question="words").report(["c"], ["u"], memory)
    kept = Memory(memory.key, memory.asked)
    assert KEY.hex() not in repr(kept.asked)
    rest = local.Domain(["no", "yes", "rest"], other="rest")
    for changed, value in (
        (RAPPOR(["no", "yes"], "1.0001", question="q"), "no"),
        (RAPPOR(rest, 1, question="q"), "no"),
        (BloomRAPPOR(["no", "yes"], 1, question="q"), "no"),
        (LOLOHA(5, 1, 2, question="steps"), 1),
        (LOLOHA(4, 1, "2.5", question="steps"), 1),
        (BloomRAPPOR(["a", "b"], 1, seed=1, question="words"), "c"),
        (RAPPOR(["no", "yes"], 1), "no"),
        (LOLOHA(4, 1, 2), 1),
        (BloomRAPPOR(["a", "b"], 1), "c"),
    ):
        for held in (memory, kept):
            before = held.asked
            with pytest.raises(ArgumentError, match="question"):
                changed.report([value], ["u"], held)
            assert held.asked == before
    for same in (
        RAPPOR(["no", "yes", "maybe"], 1, once="0.5", question="q"),
        RAPPOR(["yes", "no"], 1, question="q"),
    ):
        same.report(["no"], ["u"], kept)
    BloomRAPPOR(["other", "candidates"], 1, question="words").report(["c"], ["u"], kept)
    for channel in (RAPPOR(2, 1, question="q"), BloomRAPPOR(2, 1, question="q")):
        assert "no other question" in channel.lasting.assumes


def test_reports_from_memory_estimate_shares() -> None:
    """A round of remembered reports is counted and read like any other."""
    channel, n = RAPPOR(["a", "b", "c"], 4, once=2, question="q"), 3000
    values = ["a"] * 2000 + ["b"] * 1000
    reports = channel.report(values, range(n), Memory(KEY), words=SimulatedWords(2))
    found = channel.aggregate(reports, strict=True).estimate()
    assert np.all(np.abs(found.shares - [2 / 3, 1 / 3, 0]) < 6 * found.standard_errors)


def test_refusals() -> None:
    """Contradictory or impossible arguments are refused with the fix."""
    for arguments in (
        {},
        {"epsilon": 1, "noise": (0.5, 0.5, 0.75)},
        {"noise": (0.5, 0.75, 0.5)},
        {"noise": (0.5, 0.5)},
        {"epsilon": 1, "once": 1},
        {"epsilon": 1, "once": 2},
        {"epsilon": 1, "once": "1e-30"},
    ):
        with pytest.raises(ArgumentError):
            RAPPOR(3, **arguments)
    with pytest.raises(ArgumentError, match="32 bytes"):
        Memory(b"short")
    with pytest.raises(ArgumentError, match="one user for each"):
        RAPPOR(3, 1).report([1, 2], ["anna"], Memory(KEY))
    with pytest.raises(ArgumentError, match="texts or whole numbers"):
        RAPPOR(3, 1, question="q").report([1], [1.5], Memory(KEY))
    for question in ("", 3, b"q"):
        with pytest.raises(ArgumentError, match="question"):
            RAPPOR(3, 1, question=question)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="asked"):
        Memory(KEY, asked={"q": 1})  # type: ignore[dict-item]
