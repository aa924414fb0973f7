"""Reports over time, and texts too many to list."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dither.errors import ArgumentError
from dither.local import GRR
from dither.local._coins import ONE, exp_bounds
from dither.local._frequency.loloha import LOLOHA
from dither.local._reports.memory import Memory
from dither.local._structures.heavy_hitters import HeavyHitters
from dither.numeric import SimulatedWords
from local import laws

KEY = Memory(bytes(range(32)))


def answers(channel: LOLOHA) -> tuple[list[list[Fraction]], list[list[Fraction]]]:
    """The exact laws of the permanent answer and of one report, by true bucket."""
    g = channel.buckets
    p1, p2 = (Fraction(t, ONE) for t in channel.thresholds)
    # How many words give each lie: floor(w·(g-1)/2**64) = j.
    edges = [-(-j * ONE // (g - 1)) for j in range(g)]
    lies = [Fraction(b - a, ONE) for a, b in itertools.pairwise(edges)]
    permanent = [
        [p1 if y == b else (1 - p1) * lies[(y - b - 1) % g] for y in range(g)] for b in range(g)
    ]
    q2 = (1 - p2) / (g - 1)
    report = [
        [sum(row[z] * (p2 if y == z else q2) for z in range(g)) for y in range(g)]
        for row in permanent
    ]
    return permanent, report


@pytest.mark.parametrize("g", [2, 3, 4, 7])
@pytest.mark.parametrize(("one", "ever"), [("0.5", 1), (1, 2), (2, "2.1")])
def test_promises(g: int, one: Any, ever: Any) -> None:
    """The permanent answer keeps epsilon_inf and one report epsilon, and both nearly reach it."""
    channel = LOLOHA(10, one, ever, buckets=g)
    for law, epsilon in zip(answers(channel), (channel.epsilon_inf, channel.epsilon), strict=True):
        low, _ = exp_bounds(epsilon)
        assert all(sum(row) == 1 for row in law)
        worst = max(a[y] / b[y] for a in law for b in law for y in range(g))
        assert worst <= low
        assert math.log(worst) == pytest.approx(float(epsilon), abs=1e-9)
    assert channel.forever.epsilon == g * channel.epsilon_inf


def history_law(channel: LOLOHA, path: tuple[int, ...], reports: tuple[int, ...]) -> Fraction:
    """The chance of these reports of somebody whose buckets were these, summed over memories."""
    permanent, _ = answers(channel)
    g, p2 = channel.buckets, Fraction(channel.thresholds[1], ONE)
    found = Fraction(0)
    for memory in itertools.product(range(g), repeat=g):
        chance = math.prod((permanent[b][memory[b]] for b in set(path)), start=Fraction(1))
        chance /= g ** (g - len(set(path)))  # answers that are not asked for may be anything
        for b, y in zip(path, reports, strict=True):
            chance *= p2 if y == memory[b] else (1 - p2) / (g - 1)
        found += chance
    return found


def test_all_reports() -> None:
    """Over all histories: g·epsilon_inf where changes coincide, and no bound where they do not."""
    channel = LOLOHA(10, 1, 2, buckets=2)
    rounds = 4
    paths = list(itertools.product(range(2), repeat=rounds))
    laws_of = {p: [history_law(channel, p, y) for y in paths] for p in paths}
    assert all(sum(law) == 1 for law in laws_of.values())

    def shape(path: tuple[int, ...]) -> tuple[bool, ...]:
        return tuple(a == b for a, b in itertools.combinations(path, 2))

    low, _ = exp_bounds(channel.forever.epsilon)
    alike = [(a, b) for a in paths for b in paths if shape(a) == shape(b)]
    worst = max(p / q for a, b in alike for p, q in zip(laws_of[a], laws_of[b], strict=True))
    assert 1 < worst <= low
    assert "not hidden" in channel.forever.assumes
    # Staying against alternating: twelve rounds tell more than the promise for like histories.
    told = (0, 1) * 6
    assert history_law(channel, told, told) / history_law(channel, (0,) * 12, told) > low


@pytest.mark.parametrize("g", [2, 5])
def test_one_round(g: int) -> None:
    """Given the seed's bucket, one-time reports follow the law; estimates vary as stated."""
    from dither.local._reports.hashing import bucket, words_of

    channel = LOLOHA(6, 1, 2, buckets=g)
    found = channel.draw(np.full(400_000, 3, dtype=np.int64), SimulatedWords(9))
    right = bucket(words_of(found[:, 0], np.full(400_000, 3)), g)
    _, law = answers(channel)
    for b in range(g):
        seen = np.bincount(found[right == b, 1], minlength=g)
        assert laws.chi_square_passes(seen, seen.sum() * np.array([float(p) for p in law[b]]))
    laws.check_estimator(channel, [0.4, 0.3, 0.1, 0.1, 0.1, 0.0])
    laws.check_wire(channel, channel.privatize(np.arange(600) % 6))


def lies_seen(reports: list[Any]) -> float:
    """How much the share of one bucket varies among users, over rounds: 0 if nothing is kept."""
    rounds = np.array([r[:, 1] for r in reports])
    return float(np.var(rounds.mean(axis=0)) - np.mean(rounds.var(axis=0)) / len(rounds))


@pytest.mark.heavy("test_promises")
def test_memory_is_kept() -> None:
    """Averaging rounds never uncovers the permanent lies; a device that forgets is caught."""
    channel = LOLOHA(4, "0.2", "0.5", buckets=2, question="memory")
    users = [f"user {i}" for i in range(400)]
    values = np.zeros(400, dtype=int)
    kept = [channel.report(values, users, KEY) for _ in range(400)]
    assert all(np.array_equal(kept[0][:, 0], r[:, 0]) for r in kept)
    forgot = [channel.report(values, users, Memory.fresh()) for _ in range(400)]
    for r in forgot:
        r[:, 0] = kept[0][:, 0]
    p2 = channel.thresholds[1] / ONE
    # Each user's mean report is p2 or 1 - p2 for ever, by the permanent answer.
    assert lies_seen(kept) == pytest.approx((p2 - 0.5) ** 2, rel=0.2)
    assert lies_seen(forgot) < 0.1 * lies_seen(kept)


def test_changing_values() -> None:
    """Round by round the shares are followed, within six standard errors."""
    channel = LOLOHA(5, 2, 3, buckets=4, question="changes")
    rng, users = np.random.default_rng(3), list(range(6_000))
    for shares in ([0.5, 0.2, 0.1, 0.1, 0.1], [0.1, 0.2, 0.1, 0.1, 0.5]):
        values = rng.choice(5, 6_000, p=shares)
        found = channel.aggregate(channel.report(values, users, KEY)).estimate()
        truth = np.bincount(values, minlength=5) / 6_000
        assert np.all(np.abs(found.shares - truth) < 6 * found.standard_errors)


@pytest.mark.heavy("test_nothing_stands_out")
def test_heavy_hitters() -> None:
    """The frequent texts are found, with shares near the truth, and hardly ever others."""
    survey = HeavyHitters("abcdefghijklmnopqrstuvwxyz", length=6, epsilon=3, step=2)
    rng = np.random.default_rng(4)
    common = {"hello": 0.3, "privacy": 0.2, "no": 0.15}
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    texts = rng.choice([*common, ""], 30_000, p=[*common.values(), 0.35]).tolist()
    texts = [t or "".join(rng.choice(letters, 5)) for t in texts]
    false = 0
    for seed in range(8):
        counts = survey.aggregate(survey.draw(texts, SimulatedWords(seed)))
        found = counts.estimate(k=5)
        assert {"hello", "privac", "no"} <= set(found.values)
        false += len(found.values) - 3
        errors = dict(zip(found.values, found.standard_errors, strict=True))
        for text in ("hello", "privac", "no"):
            truth = np.mean([t[:6] == text for t in texts])
            assert abs(found[text] - truth) < 6 * errors[text]
    # Three levels at 95 % keep one false text or more in 14 % of the surveys.
    assert false <= 4
    assert counts.estimate(k=1).values == ("hello",)


def test_odd_texts_are_reported_and_not_found() -> None:
    """Texts beyond the alphabet raise nothing and disturb nobody."""
    survey = HeavyHitters("ab", length=3, epsilon=4, bits=10)
    texts = ["ab"] * 4_000 + ["żółć", "", "\ud800", "x" * 1_000] * 250
    found = survey.aggregate(survey.draw(texts, SimulatedWords(6))).estimate(k=4)
    assert found.values[0] == "ab"
    assert all(set(text) <= set("ab") for text in found.values)


def test_nothing_stands_out() -> None:
    """Where all texts are rare, none is told."""
    survey = HeavyHitters("abcdefgh", length=6, epsilon=1, bits=12)
    rng = np.random.default_rng(7)
    texts = ["".join(t) for t in rng.choice(list("abcdefgh"), (20_000, 6))]
    assert survey.aggregate(survey.draw(texts, SimulatedWords(8))).estimate(k=10).values == ()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LOLOHA(5, 2, 1), "epsilon_inf must be above"),
        (lambda: LOLOHA(5, 1, 2).report([0, 1], ["a"], KEY), "one user for each value"),
        (lambda: LOLOHA(5, 1, 2, buckets=1), "buckets must be an integer of at least 2"),
        (lambda: HeavyHitters("", 3, 1), "different symbols"),
        (lambda: HeavyHitters("aa", 3, 1), "different symbols"),
        (lambda: HeavyHitters("ab\0", 3, 1), "end mark"),
        (lambda: HeavyHitters("ab", 0, 1), "length must be"),
        (lambda: HeavyHitters("abcdefghijklmnopqrstuvwxyz", 9, 1, step=6), "at most 1,048,576"),
        (lambda: HeavyHitters("ab", 3, 1).privatize("ab"), "sequence of texts"),
        (lambda: HeavyHitters("ab", 3, 1).privatize([None]), "sequence of texts"),
        (
            lambda: HeavyHitters("ab", 3, 1, bits=8).aggregate({}).estimate(k=1),
            "no reports of prefixes",
        ),
    ],
)
def test_over_time_refusals(make: Any, message: str) -> None:
    """Each bad argument is named, with what was wanted."""
    with pytest.raises(ArgumentError, match=message):
        make()


def test_levels_take_any_channel() -> None:
    """A small structure may use randomised response for its levels."""
    survey = HeavyHitters("ab", 2, 3, bits=8, channel=GRR)
    counts = survey.aggregate(survey.draw(["ba"] * 3_000, SimulatedWords(2)))
    assert counts.estimate(k=1).values == ("ba",)
