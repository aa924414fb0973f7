"""Outputs whose types answer for themselves: they fail nothing, accuse nobody and hide nothing."""

import datetime as dt
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dither.lab.audit import Outcome, audit


class Odd:
    """What answers nothing, or something else each time."""

    def __eq__(self, other):
        raise RuntimeError

    def __hash__(self):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError

    def __str__(self):
        raise RuntimeError

    def __iter__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError

    def __bytes__(self):
        raise RuntimeError

    def __float__(self):
        raise RuntimeError


class OddHash(int):
    """Equal to a half of all, at random."""

    rng = np.random.default_rng(1)

    def __eq__(self, other):
        return bool(self.rng.random() < 0.5)

    def __hash__(self):
        return 7


class OddPair(tuple):
    """Gives what it does not hold."""

    __slots__ = ()

    def __iter__(self):
        return iter((1, 2, 3))


class OddError(Exception):
    """An exception that hides what it has."""

    @property
    def args(self):
        raise RuntimeError

    def __str__(self):
        raise RuntimeError


class OddMapping(dict):
    """A dictionary that fails on its own keys."""

    def __iter__(self):
        raise RuntimeError

    def __getitem__(self, key):
        raise KeyError


class OddDate(dt.datetime):
    """A date that cannot be changed."""

    def replace(self, *args, **named):
        raise RuntimeError


class OddObject(Odd):
    """An object with one attribute."""

    def __init__(self, value):
        self.value = value


def of(kind, *bases):
    """A type of those names that extends a built-in one."""
    return type(kind, bases, {})


OddInt, OddText = of("OddInt", Odd, int), of("OddText", Odd, str)
OddBytes, OddList = of("OddBytes", Odd, bytes), of("OddList", Odd, list)
OddFraction, OddDecimal = of("OddFraction", Odd, Fraction), of("OddDecimal", Odd, Decimal)
OddComplex = of("OddComplex", Odd, complex)

MADE = {
    "int": OddInt,
    "hash": OddHash,
    "text": lambda bit: OddText("ab"[bit]),
    "bytes": lambda bit: OddBytes(b"ab"[: bit + 1]),
    "list": lambda bit: OddList([bit]),
    "tuple": lambda bit: OddPair([bit]),
    "dict": lambda bit: OddMapping(a=bit),
    "complex": OddComplex,
    "fraction": lambda bit: OddFraction(bit, 3),
    "decimal": OddDecimal,
    "date": lambda bit: OddDate(2020, 1, 1 + bit),
    "object": OddObject,
    "arrays": lambda bit: np.zeros((1,) * (bit + 1)),
    "labels": lambda bit: ("no", float("nan"))[bit],
}


def raising(bit):
    """An exception, or none."""
    if bit:
        raise OddError("no")
    return 0


@pytest.mark.parametrize("kind", [*MADE, "exception"])
def test_odd_outputs_accuse_nobody_and_hide_nothing(kind):
    """A bit in an odd type: with noise for epsilon = 1 it is not accused, and bare it is."""
    made = MADE.get(kind, raising)
    rng = np.random.default_rng(3)
    noisy = audit(
        lambda data: made(data ^ int(rng.random() > np.e / (1 + np.e))), 0, 1, samples=2_000
    )
    assert noisy.verdict is Outcome.NOT_REFUTED
    assert 0.5 < noisy.lower <= 1
    few = iter(rng.random(10_000))
    leaking = audit(lambda data: made(data if next(few) < 0.9 else 0), 0, 1, samples=2_000)
    assert leaking.verdict is Outcome.VIOLATED


class Lying:
    """Says that it is a whole number, and is none."""

    def __init__(self, bit):
        self.bit = bit

    @property
    def __class__(self):
        return int


def test_what_cannot_be_read_is_named():
    """Not refuted would say too much of what nobody could look into."""
    found = audit(Lying, 0, 1, samples=2_000)
    assert found.verdict is Outcome.INCONCLUSIVE
    assert "cannot be looked into" in found.summary()


def test_a_leak_far_down_a_wide_output_is_seen():
    """One of 600 coordinates has hardly any noise; without it nothing is accused."""
    rng = np.random.default_rng(5)

    def release(leak):
        def mechanism(data, size):
            out = rng.laplace(0, 1, (size, 600))
            out[:, 0] += data
            if leak:
                out[:, 577] = data + rng.laplace(0, 0.1, size)
            return np.round(out * 2.0**20) / 2.0**20

        return mechanism

    leaking, clean = (audit(release(leak), 0, 1, 1, samples=500) for leak in (True, False))
    assert leaking.verdict is Outcome.VIOLATED
    assert clean.verdict is Outcome.NOT_REFUTED
    assert 0 < clean.lower <= 1


def test_a_leak_far_down_a_text_is_seen():
    """The fortieth of sixty numbers in a text has hardly any noise."""
    rng = np.random.default_rng(6)

    def release(data):
        numbers = rng.laplace(0, 1, 60)
        numbers[40] = data + rng.laplace(0, 0.1)
        return " ".join(f"{number:.3f}" for number in numbers)

    assert audit(release, 0, 1, 1, samples=1_000).verdict is Outcome.VIOLATED
