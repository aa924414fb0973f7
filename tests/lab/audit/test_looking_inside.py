"""What mechanisms return is looked into: objects, frames, generators, texts of exceptions."""

import datetime as dt
import struct
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from dither.lab.audit import Outcome, audit
from dither.lab.audit._outcomes import describe_outcomes
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
    "order of keys": lambda v: {"a": 1, "b": 2} if v else {"b": 2, "a": 1},
    "order of columns": lambda v: pl.DataFrame({"ab"[v]: [1], "ba"[v]: [1]}),
    "dtype": lambda v: np.zeros(2, dtype=[np.float32, np.float64][v]),
    "dtype of a column": lambda v: pl.DataFrame(
        {"a": pl.Series([1], dtype=[pl.Int8, pl.Int64][v])}
    ),
    "type of a number": lambda v: [np.int32, np.int64][v](7),
    "text of an exception": lambda v: generated_error(text=f"saw {v}"),
    "attribute of an exception": lambda v: generated_error(code=v),
    "cause of an exception": lambda v: generated_error(cause=v),
    "slot of an exception": lambda v: slotted_error(v),
    "warning": lambda v: warnings.warn(f"kept {v}", stacklevel=1),
    "warned of": lambda v: warnings.warn("odd", [UserWarning, FutureWarning][v], stacklevel=1),
}


class Unwritable:
    """A key whose text nobody gets."""

    def __repr__(self):
        raise RuntimeError


class SlottedError(Exception):
    """One that keeps what it saw in a slot."""

    __slots__ = ("seen",)


def slotted_error(value):
    """An exception with a slot."""
    error = SlottedError()
    error.seen = value
    raise error


def generated_error(text="failed", code=None, cause=None):
    """An exception with an attribute and a cause."""
    error = RuntimeError(text)
    error.code = code
    raise error from ValueError(f"of {cause}")


def noisy(data, rng):
    """A number that threshold events alone tell: no value comes twice."""
    return float(rng.laplace(scale=0.25) + data)


CARRIERS = {
    "packed": lambda x: struct.pack("<d", x),
    "packed, big end first": lambda x: struct.pack(">d", x),
    "bytearray": lambda x: bytearray(struct.pack("<d", x)),
    "text": lambda x: f"about {x:.17g} people",
    "date and time": lambda x: dt.datetime(2020, 1, 1) + dt.timedelta(seconds=x),
    "day": lambda x: dt.date(2020, 1, 1) + dt.timedelta(days=round(1e4 * x)),
    "time of day": lambda x: (dt.datetime(2020, 1, 1, 12) + dt.timedelta(seconds=x)).time(),
    "span": lambda x: dt.timedelta(seconds=x),
    "dated array": lambda x: np.datetime64("2020-01-01") + np.timedelta64(round(1e6 * x), "us"),
    "exception's argument": lambda x: raise_with(x),
}


def raise_with(value):
    """An exception that holds a number."""
    raise ValueError("saw", value)


@pytest.mark.parametrize("way", CARRIERS)
def test_numbers_in_disguise_are_numbers(way):
    """Laplace noise of a quarter of its scale, of which no value comes twice, is found by
    thresholds of what the output stands for."""
    rng = np.random.default_rng(44)
    found = audit(lambda d: CARRIERS[way](noisy(d, rng)), 0.0, 1.0, 1, samples=1_500)
    assert found.verdict is Outcome.VIOLATED
    assert found.lower > 2


@pytest.mark.parametrize("place", [4, 30, 60])
def test_low_bits_of_any_coordinate(place):
    """Of many coordinates with true noise, one has bits that give the data away."""
    rng = np.random.default_rng(45)

    def mechanism(data, size):
        table = np.round(rng.laplace(scale=1e6, size=(size, 64)))
        table[:, place] += np.where(data, 2.0**-20, 2.0**-21)
        return table

    found = audit(mechanism, 0, 1, 1, samples=2_000)
    assert found.verdict is Outcome.VIOLATED
    assert "lowest bit" in str(found.event)


def test_warnings_of_batches_are_noted():
    """A sampler of many outputs that warns of one dataset alone is told, and its outputs judged."""
    rng = np.random.default_rng(46)

    def sampler(data, size):
        if data:
            warnings.warn("an odd value", RuntimeWarning, stacklevel=1)
        return rng.laplace(size=size)

    found = audit(sampler, 0, 1, 1, samples=1_000, confidence=1 - 1e-6)
    assert "warns of nothing on d0 and of RuntimeWarning on d1" in found.summary().replace(
        "\n", " "
    )
    assert "odd value" not in found.summary()


@pytest.mark.parametrize("way", WAYS)
def test_what_an_output_holds_is_seen(way):
    """A coin of 9 : 1 that is hidden in any of these is found, and one of 1 : 1 is not."""
    words = SimulatedWords(41)

    def mechanism(data):
        return WAYS[way](int(bernoulli(Fraction(9, 10), 1, words=words)[0]) ^ data)

    found = audit(mechanism, 0, 1, 1, samples=600)
    assert found.verdict is Outcome.VIOLATED
    assert "cannot be looked into" not in found.summary()
    assert "saw" not in found.summary() + repr(found)
    same = audit(lambda d: mechanism(0), 0, 1, 1, samples=600, confidence=1 - 1e-8)
    assert same.verdict is not Outcome.VIOLATED


def test_what_cannot_be_seen_is_told():
    """A function may hold anything: nothing is refuted, and a note says that it was not seen."""
    found = audit(lambda d: lambda: d, 0, 1, 1, samples=400)
    assert found.verdict is Outcome.INCONCLUSIVE
    assert "returns function, which cannot be looked into" in found.summary()


def test_keys_that_cannot_be_written_are_borne():
    """What lies under them is seen; that they were not is told."""
    words = SimulatedWords(47)

    def mechanism(data):
        shown = int(bernoulli(Fraction(9, 10), 1, words=words)[0]) ^ data
        return {Unwritable(): shown, Unwritable(): shown}

    found = audit(mechanism, 0, 1, 1, samples=600)
    assert found.verdict is Outcome.VIOLATED
    assert "returns Unwritable, which cannot be looked into" in found.summary().replace("\n", " ")


def test_one_noise_in_coordinates_far_apart():
    """The first and the last of ten coordinates share a noise that hides both: it is named."""
    rng = np.random.default_rng(42)

    def mechanism(data):
        noise = 50 * rng.laplace()
        return [data + noise, *(5 * rng.laplace(size=8)), noise]

    found = audit(mechanism, 0.0, 1.0, 1, samples=3_000)
    assert found.verdict is Outcome.VIOLATED
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
    assert found.verdict is Outcome.VIOLATED
    assert found.lower > 1.5
