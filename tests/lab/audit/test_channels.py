"""Audits of local channels over all of their inputs: true ones, and faults of one or of all."""

import math
from itertools import count

import numpy as np
import pytest
from scipy.stats import binom

from dither import local
from dither.errors import ArgumentError
from dither.lab.audit import Outcome, audit, audit_channel
from dither.lab.audit.channels._games import game_epsilon
from dither.local._audited import bits_of
from dither.numeric import SimulatedWords


def response(rng, k, told=0.0, epsilon=1.0):
    """Randomised response of k values, which at some rate reports the truth besides."""
    right = math.exp(epsilon) / (math.exp(epsilon) + k - 1)

    def channel(value, size):
        kept = (rng.random(size) < right) | (rng.random(size) < told)
        return np.where(kept, value, (value + rng.integers(1, k, size)) % k)

    return channel


def bits(rng, k, *, own=0.5, others=1 / (1 + math.e), wrong=None, told=0.0):
    """Unary encoding; ``wrong`` is (bit, chance) of one whose chance of others is another."""
    chances = np.full(k, others)
    if wrong is not None:
        chances[wrong[0]] = wrong[1]

    def channel(value, size):
        out = rng.random((size, k)) < chances
        out[:, value] = rng.random(size) < own
        bare = rng.random(size) < told
        out[bare] = False
        out[bare, value] = True
        return out.astype(np.int8)

    return channel


@pytest.mark.parametrize(("among", "epsilon"), [(2, 1.0), (16, 1.0), (256, 0.5)])
def test_guesses_err_as_rarely_as_stated(among, epsilon):
    """Of guesses that meet the claim, the bound is above it no more often than its level."""
    level, n = 0.01, 400
    share = math.exp(epsilon) / (math.exp(epsilon) + among - 1)
    right = np.arange(n + 1)
    over = np.array([game_epsilon(int(r), n, n, among, level) > epsilon for r in right])
    assert binom.pmf(right, n, share)[over].sum() <= level
    first = int(np.argmax(over))
    assert binom.sf(first - 2, n, share) > level  # and not far more rarely


@pytest.mark.parametrize("k", [3, 6])
def test_no_channel_lets_guess_better(k):
    """Over random channels, the odds of the best guess against the largest ratio of a column."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        chances = rng.dirichlet(np.full(8, 0.5 + 3 * rng.random()), size=k)
        epsilon = np.log(chances.max(axis=0) / chances.min(axis=0)).max()
        right = chances.max(axis=0)[None].sum() / k
        odds = right / (1 - right) * (k - 1)
        assert odds <= math.exp(epsilon) * (1 + 1e-12)


def test_the_truth_once_in_a_thousand_is_seen_among_many_values():
    """Of 1,024 values: two alone would take some hundred times the outputs."""
    rng = np.random.default_rng(2)
    found = audit_channel(response(rng, 1024, 1 / 1000), range(1024), 1, samples=400_000)
    assert found.verdict is Outcome.VIOLATED
    assert found.guesses[0].among > 16
    pair = audit(response(rng, 1024, 1 / 1000), 0, 1, 1, samples=100_000)
    assert pair.verdict is Outcome.NOT_REFUTED


def test_the_truth_once_in_two_thousand_is_seen_of_bits():
    """The bare bit of a value: seen, for no other report has one bit of 64."""
    channel = bits(np.random.default_rng(3), 64, told=1 / 2000)
    found = audit_channel(channel, range(64), 1, samples=120_000)
    assert found.verdict is Outcome.VIOLATED
    assert found.lower > 3
    assert "guess one of" in found.summary()


@pytest.mark.parametrize(
    "options", [{"own": 0.58}, {"others": 0.23}, {"wrong": (17, 0.17)}, {"wrong": (5, 0.1)}]
)
def test_a_wrong_chance_of_bits_is_seen(options):
    """Of all bits, or of one of them: then in the two inputs that look worst."""
    channel = bits(np.random.default_rng(4), 24, **options)
    found = audit_channel(channel, range(24), 1, samples=100_000)
    assert found.verdict is Outcome.VIOLATED
    if "wrong" in options:
        assert options["wrong"][0] in found.places


def test_one_input_that_tells_the_truth_is_found():
    """A value that is hardly randomised, among 32."""
    rng = np.random.default_rng(5)
    fair, loose = response(rng, 32), response(rng, 32, 0.3)
    found = audit_channel(
        lambda value, size: (loose if value == 19 else fair)(value, size), range(32), 1,
        samples=60_000,
    )  # fmt: skip
    assert found.verdict is Outcome.VIOLATED
    assert 19 in found.places


@pytest.mark.parametrize("kind", ["texts", "single", "pairs", "numbers"])
def test_outputs_of_all_kinds_are_guessed_by(kind):
    """Channels that leak once in fifty calls, over texts, tuples and real numbers."""
    rng = np.random.default_rng(6)
    of = response(rng, 5, 0.5)
    names = ["ann", "bob", "cid", "dan", "eva"]
    one = {
        "texts": (lambda v: names[int(of(names.index(v), 1)[0])], names),
        "single": (lambda v: int(of(v, 1)[0]), range(5)),
        "pairs": (lambda v: (int(of(v, 1)[0]), "kept"), range(5)),
        "numbers": (lambda v: float(3 * of(v, 1)[0] + rng.normal(0, 0.3)), range(5)),
    }[kind]
    assert audit_channel(one[0], one[1], 1, samples=10_000).verdict is Outcome.VIOLATED


@pytest.mark.parametrize("kind", ["GRR", "OUE", "SUE", "SubsetSelection", "OLH", "Hadamard"])
def test_channels_of_this_package_are_not_accused(kind):
    """Over all inputs; and a good part of epsilon is certified."""
    words = SimulatedWords(7)
    made = getattr(local, kind)(8, 1)

    def channel(value, size):
        reports = made.draw(np.full(size, value), words)
        return bits_of(reports, 8) if reports.dtype == np.uint8 else reports

    def score(reports, value):
        return np.log(made.likelihoods(reports)[:, value])

    found = audit_channel(
        channel, range(8), 1, samples=20_000, score=score if kind == "OLH" else None
    )
    assert found.verdict is Outcome.NOT_REFUTED
    assert 0.4 < found.lower <= 1


def test_true_channels_are_not_accused():
    """Of 16 audits none, and bounds above the claim come as rarely as stated."""
    above = 0
    for seed in range(8):
        rng = np.random.default_rng([8, seed])
        for channel, k in ((response(rng, 6), 6), (bits(rng, 4), 4)):
            found = audit_channel(
                channel, range(k), 1, samples=6_000, confidence=0.9, words=SimulatedWords(seed)
            )
            assert found.verdict is not Outcome.VIOLATED
            above += found.lower > 1
    assert above <= 5


def test_delta_is_allowed_for():
    """The truth with probability delta is within the claim, and ten times that is not."""
    for told, verdict in ((1e-3, Outcome.NOT_REFUTED), (0.02, Outcome.VIOLATED)):
        channel = response(np.random.default_rng(9), 64, told)
        assert audit_channel(channel, range(64), 1, 1e-3, samples=100_000).verdict is verdict


def test_a_seed_that_is_fixed_is_named():
    """The same noise at each call: nothing is certified, and the reuse is told."""
    found = audit_channel(
        lambda value, size: response(np.random.default_rng(1), 4)(value, size), range(4), 1,
        samples=4_000,
    )  # fmt: skip
    assert found.verdict is Outcome.VIOLATED
    assert "fixed seed" in found.summary()
    assert found.guesses == ()


def test_dependent_draws_certify_nothing():
    """A sampler that numbers its calls: no bound is given, and none is refuted."""
    calls = count()
    of = response(np.random.default_rng(10), 4)
    found = audit_channel(
        lambda value, size: np.column_stack([of(value, size), np.full(size, next(calls))]),
        range(4), 1, samples=10_000,
    )  # fmt: skip
    assert found.verdict is Outcome.INCONCLUSIVE
    assert (found.lower, found.guesses) == (0, ())


def test_single_calls_may_be_numbered():
    """Their inputs come in random order, so that a serial number tells nothing."""
    calls = count()
    of = response(np.random.default_rng(11), 4)
    found = audit_channel(lambda value: (int(of(value, 1)[0]), next(calls)), range(4), 1,
                          samples=4_000)  # fmt: skip
    assert found.verdict is Outcome.NOT_REFUTED
    assert 0 < found.lower <= 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: audit_channel(None, range(4)), "callable"),
        (lambda c: audit_channel(c, [1]), "from 2"),
        (lambda c: audit_channel(c, range(5000)), "from 2"),
        (lambda c: audit_channel(c, range(4), -1), "epsilon"),
        (lambda c: audit_channel(c, range(4), 9, samples=2000), "The least is"),
        (lambda c: audit_channel(c, range(4), score=1), "score must be"),
        (lambda c: audit_channel(c, range(4), score=lambda y, v: 1 / 0), "ZeroDivisionError"),
        (lambda c: audit_channel(c, range(4), score=lambda y, v: 1), "its shape was"),
    ],
)
def test_refusals(call, words):
    """What cannot be audited is refused by name."""
    with pytest.raises(ArgumentError, match=words):
        call(response(np.random.default_rng(1), 4))
