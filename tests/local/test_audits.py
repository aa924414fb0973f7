"""Every channel is put before the auditor, who treats it as a black box; so are mutants of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dither import local
from dither._subjects import Subject, declaring
from dither.lab.audit import Audit, Outcome, audit
from dither.numeric import SimulatedWords

CONFIDENCE = 1 - 1e-6
SAMPLES = 10_000


def subjects(words: SimulatedWords) -> list[Subject]:
    """What the channels declare, with coins that come again."""
    return [one for made in declaring(local) for one in made.audit_subjects(words)]


NAMES = [one.name for one in subjects(SimulatedWords(0))]


def audited(
    mechanism: Callable[..., Any], d0: Any, d1: Any, epsilon: Any, delta: Any = 0, seed: int = 0
) -> Audit:
    """A verdict that refutes a true claim with chance at most 1e-6."""
    return audit(
        mechanism,
        d0,
        d1,
        epsilon,
        delta,
        samples=SAMPLES,
        confidence=CONFIDENCE,
        vectorised=True,
        words=SimulatedWords(seed),
    )


@pytest.mark.parametrize("place", range(len(NAMES)), ids=NAMES)
def test_not_refuted(place: int) -> None:
    """No channel is seen to break its claim; a plain one is seen to use a fair part of it."""
    subject = subjects(SimulatedWords(100 + place))[place]
    found = audited(
        subject.mechanism, subject.d0, subject.d1, subject.epsilon, subject.delta, place
    )
    assert found.verdict is Outcome.NOT_REFUTED
    assert found.reuse is None
    if subject.delta == 0 and not {"bloom-rappor", "loloha"} & set(subject.name.split()):
        assert found.lower > 0.25 * float(subject.epsilon)


def unary(p: float, q: float) -> Callable[..., Any]:
    """A sampler of eight bits: the held one is 1 by p, each other by q."""
    rng = np.random.default_rng(5)

    def reports(code: int, size: int) -> Any:
        bits = rng.random((size, 8)) < q
        bits[:, code] = rng.random(size) < p
        return bits.astype(np.int64)

    return reports


def test_swapped_oue() -> None:
    """OUE's probabilities: exchanged they ruin the estimate, mixed up with SUE's the promise.

    A held bit that is 1 by q and others that are 1 by p have the ratio p(1-q)/(q(1-p)) = e^epsilon
    upside down, so that mutant is as private as OUE, and no honest audit refutes it; what it breaks
    is the estimate. A held bit that is kept as surely as the others are not, 1 - q in the place of
    1/2, spends twice the epsilon.
    """
    channel = local.OUE(8, 1)
    p, q = (float(c[0]) for c in channel.chances)
    right, exchanged, greedy = unary(p, q), unary(q, p), unary(1 - q, q)
    assert audited(right, 0, 1, 1).verdict is Outcome.NOT_REFUTED
    assert audited(exchanged, 0, 1, 1).verdict is Outcome.NOT_REFUTED
    assert audited(greedy, 0, 1, 1).verdict is Outcome.VIOLATED
    for mutant, biased in ((right, False), (exchanged, True), (greedy, True)):
        found = channel.aggregate(np.packbits(mutant(3, 10_000).astype(bool), axis=1)).estimate()
        assert (abs(found[3] - 1) > 6 * found.standard_errors[3]) == biased


def test_twice_the_epsilon() -> None:
    """GRR at 2 epsilon, claimed to be epsilon."""
    words, channel = SimulatedWords(3), local.GRR(4, 2)

    def reports(code: int, size: int) -> Any:
        return channel.draw(np.full(size, code), words)

    assert audited(reports, 0, 1, 1).verdict is Outcome.VIOLATED
    assert audited(reports, 0, 1, 2).verdict is Outcome.NOT_REFUTED


def test_memoisation_forgotten() -> None:
    """RAPPOR's permanent bits tossed anew for each of many reports: their sums tell the value."""
    words, channel = SimulatedWords(4), local.RAPPOR(3, 2, once=1)

    def sums(code: int, size: int) -> Any:
        rounds = (channel.draw(np.full(size, code), words) for _ in range(12))
        bits = [np.unpackbits(rows, axis=1)[:, :3].astype(np.int64) for rows in rounds]
        return np.sum(bits, axis=0)

    assert audited(sums, 0, 1, channel.lasting.epsilon).verdict is Outcome.VIOLATED


@pytest.mark.heavy("test_not_refuted")
def test_changes_are_not_hidden() -> None:
    """LOLOHA, a history that alternates against one that stays: beyond what like ones cost."""
    words, channel = SimulatedWords(5), local.LOLOHA(4, 1, "1.5", buckets=2, question="q")

    def agreement(history: tuple[int, ...], size: int) -> Any:
        memory = local.Memory(words.words(4).tobytes())
        rows = [channel.report([v] * size, range(size), memory, words=words) for v in history]
        told = np.stack([r[:, 1].astype(np.int64) for r in rows], axis=1)
        return np.column_stack([told[:, ::2].sum(axis=1) - told[:, 1::2].sum(axis=1), told[:, :2]])

    found = audited(agreement, (0, 0) * 9, (0, 1) * 9, channel.forever.epsilon)
    assert found.verdict is Outcome.VIOLATED


def test_floats_show_who_is_low() -> None:
    """SDPM with high reports among all floats and low ones on points: a report shows the class."""
    channel = local.SDPM(local.Interval(steps=8), ("-0.5", "0.5"), 1)
    words, rng = SimulatedWords(6), np.random.default_rng(6)
    pairs = channel.guarantee.pairs
    delta = max(pairs["high", "low"].delta, pairs["low", "high"].delta)
    low, high = 3, 0

    def on_lattice(code: int, size: int) -> Any:
        return channel.positions[channel.draw(np.full(size, code), words)]

    def in_floats(code: int, size: int) -> Any:
        told = on_lattice(code, size)
        step = float(channel.interval.step)
        spread = told + step * (rng.random(size) - 0.5)
        # A low value that tells itself is an atom; every other report is a float of its cell.
        own = told == channel.interval.points[code]
        return np.where(own, told, spread) if code == low else spread

    assert audited(on_lattice, high, low, 1, delta).verdict is Outcome.NOT_REFUTED
    assert audited(in_floats, high, low, 1, delta).verdict is Outcome.VIOLATED
    points = channel.interval.points
    assert not np.isin(in_floats(high, 10_000), points).any()
    truth = float(channel.law.truth)
    assert abs(np.isin(in_floats(low, 10_000), points).mean() - truth) < 6 * 0.5 / 100
