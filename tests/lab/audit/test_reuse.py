"""Noise that is used twice is named, and fresh noise never is (each test errs below 1e-8)."""

from fractions import Fraction
from itertools import count, cycle

import numpy as np
import pytest

from dither.lab.audit import Outcome, audit
from dither.lab.audit._reuse import tells_the_last
from dither.noise import below, discrete_laplace
from dither.numeric import SimulatedWords


def seeded_at_every_call():
    """One output a call, of a generator that begins anew."""
    return lambda data: data + float(np.random.default_rng(1).laplace())


def no_noise():
    """The answer itself."""
    return lambda data: data


def seeded_sampler():
    """Many outputs a call, of a generator that begins anew."""
    return lambda data, size: data + np.random.default_rng(1).laplace(size=size)


def one_noise_for_both():
    """Noise by the number of the call, for each dataset the same; a third call would differ."""
    drawn = {}

    def mechanism(data):
        i = drawn[data] = drawn.get(data, -1) + 1
        return data + float(np.random.default_rng(i).laplace())

    return mechanism


def one_noise_in_whole_numbers():
    """The same, of whole numbers."""
    inner = one_noise_for_both()
    return lambda data: data + round(3 * (inner(data) - data))


def a_short_list():
    """Noise from a list of 100 that is gone through again and again."""
    noises = cycle(np.random.default_rng(2).laplace(size=101).tolist())
    return lambda data: data + next(noises)


def noise_of_the_second():
    """A new seed after every third call, as from a clock."""
    calls = iter(range(10**9))
    return lambda data: data + float(np.random.default_rng(next(calls) // 3).laplace())


def a_walk():
    """Each call's noise is the last one's and a little more."""
    state, steps = [0.0], np.random.default_rng(3)

    def mechanism(data):
        state[0] = 0.95 * state[0] + steps.laplace()
        return data + state[0]

    return mechanism


def sorted_batches():
    """Noise that is fresh in each batch, and handed out in order."""
    steps = np.random.default_rng(4)
    return lambda data, size: data + np.sort(steps.laplace(size=size))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (seeded_at_every_call, "always give the same output"),
        (no_noise, "always give the same output"),
        (seeded_sampler, "fixed seed"),
        (one_noise_for_both, "differ by a constant"),
        (one_noise_in_whole_numbers, "differ by a constant"),
        (a_short_list, "come again after 101 calls"),
        (a_walk, "carried on"),
        (sorted_batches, "carried on"),
        (noise_of_the_second, "come again at the next call"),
    ],
)
def test_reuse_is_named(made, words):
    """Each way of using noise twice is violated and named, whatever epsilon is claimed."""
    found = audit(made(), 0, 1, epsilon=2, samples=4_000)
    assert found.verdict is Outcome.VIOLATED
    assert words in found.reuse
    assert words in found.summary()


def test_dependent_draws_certify_nothing():
    """Where draws depend on each other, no bound is given, as none would hold."""
    found = audit(a_short_list(), 0, 1, epsilon=2, samples=4_000)
    assert (found.lower, found.events) == (0.0, ())
    assert "not independent" in found.summary()


@pytest.mark.parametrize(
    "kind",
    [
        "two values",
        "one value",
        "rare",
        "pairs",
        "floats",
        "wide",
        "mostly none",
        "labelled",
        "far",
    ],
)
def test_fresh_noise_is_not_accused(kind):
    """Outputs that repeat because there are few of them are not reuse."""
    words = SimulatedWords(31)

    def draw(data, size):
        noise = discrete_laplace(Fraction(1), size, words=words)
        return {
            "two values": lambda: noise > 0,
            "one value": lambda: np.zeros(size),
            "rare": lambda: noise > 7,
            "pairs": lambda: np.stack([noise, noise], axis=1),
            "floats": lambda: words.words(size).astype(np.float64),
            "wide": lambda: below(100, size, words=words),
            "mostly none": lambda: [int(x) if x > 5 else None for x in noise],
            "far": lambda: 1e15 + data + noise,
            "labelled": lambda: [(str(x), 1) for x in words.words(size)],
        }[kind]()

    found = audit(draw, 0, 1, samples=5_000, confidence=1 - 1e-8)
    assert found.reuse is None
    assert found.verdict is not Outcome.VIOLATED


def response(rng, data):
    """Randomised response with epsilon = 1, of one bit."""
    return int(data) ^ int(rng.random() > np.e / (1 + np.e))


def with_a_serial_number(rng):
    """The number of the call beside a response."""
    calls = count()
    return lambda data: (response(rng, data), next(calls))


def after_a_serial_number(rng):
    """The same, the number first."""
    calls = count()
    return lambda data: (next(calls), response(rng, data))


def with_a_turn(rng):
    """Every other output is marked."""
    calls = count()
    return lambda data: (response(rng, data), ("odd", "even")[next(calls) % 2])


def with_long_turns(rng):
    """The mark changes after 500 calls."""
    calls = count()
    return lambda data: (response(rng, data), "xy"[next(calls) // 500 % 2])


def with_batches(rng):
    """A sampler that numbers its calls."""
    calls = count()

    def mechanism(data, size):
        bits = [response(rng, data) for _ in range(size)]
        return np.column_stack([bits, np.full(size, next(calls))])

    return mechanism


@pytest.mark.parametrize(
    "made",
    [with_a_serial_number, after_a_serial_number, with_a_turn, with_long_turns, with_batches],
)
def test_what_tells_the_call_accuses_nobody(made):
    """A clock, a serial number or a turn says which call it was, and nothing of the data."""
    for seed in range(3):
        found = audit(made(np.random.default_rng(seed)), 0, 1, epsilon=1, samples=2_000)
        assert found.verdict is not Outcome.VIOLATED
        assert found.reuse is None
        assert found.lower <= 1


def test_a_serial_number_hides_no_leak():
    """Calls are in random order, so that a leak beside the number is still certified."""
    calls = count()
    found = audit(lambda data: (next(calls), data), 0, 1, epsilon=1, samples=2_000)
    assert found.verdict is Outcome.VIOLATED
    calls = count()
    found = audit(lambda data: next(calls) + data / 2, 0, 1, epsilon=1, samples=2_000)
    assert found.verdict is Outcome.VIOLATED


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_what_an_earlier_call_left_is_seen(rate):
    """A mechanism that gives away the data of the call before is not called clean."""
    rng, kept = np.random.default_rng(6), [0]

    def mechanism(data):
        shown = kept[0] if rng.random() < rate else int(rng.integers(2))
        kept[0] = data
        return response(rng, data), shown

    found = audit(mechanism, 0, 1, epsilon=1, samples=2_000)
    if rate:
        assert found.verdict is Outcome.INCONCLUSIVE
        assert "the call before" in found.summary()
    else:
        assert found.verdict is Outcome.NOT_REFUTED
        assert found.independent


def test_calls_that_were_left_out_fail_nothing():
    """Where time runs out amid a shuffled stretch, the last places have no outcome."""
    rng = np.random.default_rng(7)
    times = np.concatenate([rng.permutation(400)[:150], np.arange(400, 550)])
    codes = rng.integers(0, 3, 300)
    assert not tells_the_last(codes, codes[:, None].astype(np.float64), times)
