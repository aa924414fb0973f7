"""What mechanisms return is looked into: objects, frames, generators, texts of exceptions."""

from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dither.auditing import Verdict, audit
from dither.auditing.outcomes import describe_outcomes
from dither.noise import bernoulli, discrete_laplace
from dither.numeric import SimulatedWords


class Holder:
    """An object that compares by identity."""

    def __init__(self, value):
        self.value = value


class Slotted:
    """One without a dictionary."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


class Unhashable(Holder):
    """One that compares by value and has no hash."""

    __hash__ = None

    def __eq__(self, other):
        return self.value == other.value


def generated(value):
    """A generator, which can be read once."""
    yield value


def raising(value):
    """An exception that tells in its text."""
    raise ValueError(f"saw {value} at {object()!r}")


WAYS = {
    "object": Holder,
    "slots": Slotted,
    "no hash": Unhashable,
    "generator": generated,
    "iterator": lambda v: iter([v]),
    "polars": lambda v: pl.DataFrame({"a": [v]}),
    "polars series": lambda v: pl.Series([v]),
    "pandas": lambda v: pd.DataFrame({"a": [v]}),
    "pandas series": lambda v: pd.Series([v]),
    "arrow": lambda v: pa.table({"a": [v]}),
    "columns": lambda v: pl.DataFrame({f"a{v}": [1]}),
    "exception": raising,
    "error returned": lambda v: ValueError(v),
    "nested": lambda v: {"found": [Holder((v, None))]},
}


@pytest.mark.parametrize("way", WAYS)
def test_what_an_output_holds_is_seen(way):
    """A coin of 9 : 1 that is hidden in any of these is found, and one of 1 : 1 is not."""
    words = SimulatedWords(41)

    def mechanism(data):
        return WAYS[way](int(bernoulli(Fraction(9, 10), 1, words=words)[0]) ^ data)

    found = audit(mechanism, 0, 1, 1, samples=600)
    assert found.verdict is Verdict.VIOLATED
    assert "cannot be looked into" not in found.summary()
    assert "saw" not in found.summary() + repr(found)
    same = audit(mechanism, 0, 0, 1, samples=600, confidence=1 - 1e-8)
    assert same.verdict is Verdict.NOT_REFUTED


def test_what_cannot_be_seen_is_told():
    """A function may hold anything: nothing is refuted, and a note says that it was not seen."""
    found = audit(lambda d: lambda: d, 0, 1, 1, samples=400)
    assert found.verdict is Verdict.NOT_REFUTED
    assert "returns function, which cannot be looked into" in found.summary()


def test_one_noise_in_coordinates_far_apart():
    """The first and the last of ten coordinates share a noise that hides both: it is named."""
    rng = np.random.default_rng(42)

    def mechanism(data):
        noise = 50 * rng.laplace()
        return [data + noise, *(5 * rng.laplace(size=8)), noise]

    found = audit(mechanism, 0.0, 1.0, 1, samples=3_000)
    assert found.verdict is Verdict.VIOLATED
    assert "coordinate 10 less coordinate 1 (the same noise)" in str(found.event)


@pytest.mark.parametrize("odd", ["x", None, 2**60, (1, 2, 3), [1], np.zeros(2)])
@pytest.mark.parametrize("usual", [1, 2.5, (3, 4), [1.5, 2.0], np.ones(3)])
def test_what_certifies_decides_nothing(odd, usual):
    """An outcome of another form, seen by the certifying part alone, leaves the others as read."""
    seen = np.arange(40) < 20
    plain = describe_outcomes([usual] * 40, seen)
    mixed = describe_outcomes([usual] * 39 + [odd], seen)
    assert [c.name for c in mixed.columns] == [c.name for c in plain.columns]
    assert [a.name for a in mixed.atoms] == [a.name for a in plain.atoms]
    for kept, atoms in zip(mixed.atoms, plain.atoms, strict=True):
        assert np.unique(kept.codes[:39]).size == np.unique(atoms.codes[:39]).size == 1
    assert np.array_equal(mixed.raw[:39], plain.raw[:39])
    assert mixed.atoms[0].codes[39] not in mixed.atoms[0].codes[:39]


def test_a_rare_form_is_an_event():
    """Where the part that chooses sees it, an odd outcome is as good an event as any."""
    words = SimulatedWords(43)

    def mechanism(data):
        noise = int(discrete_laplace(Fraction(1), 1, words=words)[0])
        return "none" if data and bernoulli(Fraction(1, 8), 1, words=words)[0] else noise

    found = audit(mechanism, 0, 1, 1, samples=2_000)
    assert found.verdict is Verdict.VIOLATED
    assert found.lower > 1.5
