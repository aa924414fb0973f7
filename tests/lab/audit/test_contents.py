"""What mechanisms return is looked into: objects, frames, generators, texts of exceptions."""

import array
import collections
import datetime as dt
import enum
import functools
import io
import random
import struct
import warnings
import zoneinfo
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from dither.lab.audit import Outcome, _flattening, audit
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


class TextWith(str):
    """A text that carries more."""


class NumberWith(float):
    """A number that carries more."""


class ListWith(list):
    """A list that carries more."""


class Private:
    """One with a slot whose name is mangled."""

    __slots__ = ("__value",)

    def __init__(self, value):
        self.__value = value


@dataclass(frozen=True)
class Compared:
    """A dataclass with a field that neither its comparison nor its text shows."""

    name: str
    _value: int = field(compare=False, repr=False, default=0)


class Colour(enum.Enum):
    """Two members."""

    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    """Two numbers."""

    LOW = 1
    HIGH = 2


def carrying(thing, value):
    """The same thing, with an attribute."""
    thing.carried = value
    return thing


def with_attrs(frame, value):
    """A frame or series of pandas, with metadata."""
    frame.attrs["k"] = value
    return frame


def nan(payload):
    """One of the many NaN."""
    return struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000000 + payload))[0]


def table(*, schema=None, field_=None):
    """An Arrow table with metadata of its schema, or of its field."""
    column = pa.field("a", pa.int64(), metadata=field_)
    return pa.table([pa.array([1])], schema=pa.schema([column], metadata=schema))


class Suppressing(Exception):
    """One whose text is always the same."""

    def __str__(self):
        return "failed"


def at_lines(value):
    """An exception from one of two lines."""
    if value:
        raise ValueError("failed")
    raise ValueError("failed")


CARRIED = {
    "name of a series": lambda v: pl.Series("ab"[v], [1]),
    "enum of a series": lambda v: pl.Series(["a"], dtype=pl.Enum(["a", "bc"[v]])),
    "sorted flag": lambda v: pl.Series([1, 2]).set_sorted() if v else pl.Series([1, 2]),
    "name in pandas": lambda v: pd.Series([1], name="ab"[v]),
    "attrs of a frame": lambda v: with_attrs(pd.DataFrame({"a": [1]}), v),
    "attrs of a series": lambda v: with_attrs(pd.Series([1]), v),
    "index": lambda v: pd.DataFrame({"a": [1]}, index=[v]),
    "name of an index": lambda v: pd.DataFrame({"a": [1]}, index=pd.Index([1], name="ab"[v])),
    "dtype of an index": lambda v: pd.Series([1], index=pd.Index([1], dtype=["int8", "int64"][v])),
    "kind of an index": lambda v: pd.Series([1], index=pd.RangeIndex(1) if v else pd.Index([0])),
    "names of columns": lambda v: pd.DataFrame({"a": [1]}).rename_axis(columns="ab"[v]),
    "rows of one index": lambda v: pd.DataFrame({"a": [v, 1]}, index=[0, 0]),
    "columns of one name": lambda v: pd.DataFrame([[v, 1]], columns=["a", "a"]),
    "levels": lambda v: pd.MultiIndex.from_product([[1], [2, 3 + v]])[:1],
    "categories": lambda v: pd.Categorical(["a"], categories=["a", "b"][: 1 + v]),
    "categories of a column": lambda v: pd.DataFrame(
        {"a": pd.Categorical(["a"], categories=["a", "b"][: 1 + v])}
    ),
    "order of categories": lambda v: pd.Series(pd.Categorical(["a"], ordered=bool(v))),
    "time zone of a column": lambda v: pd.Series(
        pd.to_datetime([0]).tz_localize(["UTC", "Europe/Paris"][v])
    ),
    "metadata of a schema": lambda v: table(schema={"k": "ab"[v]}),
    "metadata of a field": lambda v: table(field_={"k": "ab"[v]}),
    "dictionary": lambda v: pa.DictionaryArray.from_arrays([0], ["a", "bc"[v]]),
    "chunks": lambda v: pa.chunked_array([[1, 2]] if v else [[1], [2]]),
    "type of an Arrow array": lambda v: pa.array([1], [pa.int8(), pa.int64()][v]),
    "Arrow scalar": lambda v: pa.scalar(v),
    "columns of one name in Arrow": lambda v: pa.table([[v], [1]], names=["a", "a"]),
    "exponent": lambda v: Decimal(["1.0", "1.00"][v]),
    "signal": lambda v: Decimal(["sNaN", "NaN"][v]),
    "payload": nan,
    "payload in an array": lambda v: np.array([nan(v), 1.0]),
    "sign of zero": lambda v: -0.0 if v else 0.0,
    "sign of zero in a complex number": lambda v: complex(0.0, -0.0 if v else 0.0),
    "subnormal": lambda v: 5e-324 * v,
    "fraction or float": lambda v: 0.5 if v else Fraction(1, 2),
    "long double": lambda v: np.longdouble(1) + v * np.finfo(np.longdouble).eps,
    "Fortran order": lambda v: np.ones((2, 2), order="FC"[v]),
    "may be written": lambda v: np.lib.stride_tricks.as_strided(np.ones(2), writeable=bool(v)),
    "array of no dimension": lambda v: np.array(["a", "b"])[v, ...],
    "metadata of a dtype": lambda v: np.ones(2, np.dtype("f8", metadata={"k": v})),
    "names of fields": lambda v: np.zeros(1, [("ab"[v], "f8")])[0],
    "fill value": lambda v: np.ma.array([1, 2], mask=[1, 0], fill_value=v),
    "below the mask": lambda v: np.ma.array([v, 2], mask=[1, 0]),
    "subclass of array": lambda v: carrying(np.ones(2).view(type("Own", (np.ndarray,), {})), v),
    "sparse": lambda v: scipy.sparse.csr_array(([v], ([0], [0])), shape=(2, 2)),
    "bytes or bytearray": lambda v: b"a" if v else bytearray(b"a"),
    "format of a view": lambda v: memoryview(b"ab").cast("bB"[v]),
    "packed array": lambda v: array.array("bB"[v], [1]),
    "text with an attribute": lambda v: carrying(TextWith("a"), v),
    "text or its subclass": lambda v: TextWith("a") if v else "a",
    "number with an attribute": lambda v: carrying(NumberWith(1), v),
    "list with an attribute": lambda v: carrying(ListWith([1]), v),
    "factory": lambda v: collections.defaultdict([list, dict][v]),
    "length of a queue": lambda v: collections.deque([1], maxlen=3 + v),
    "enum": lambda v: [Colour.RED, Colour.BLUE][v],
    "enum or number": lambda v: Level.LOW if v else 1,
    "private slot": Private,
    "field that is not compared": lambda v: Compared("a", v),
    "attribute of a frozen dataclass": lambda v: (
        lambda one: (object.__setattr__(one, "more", v), one)[1]
    )(Compared("a")),
    "order of a set": lambda v: {0, 8} if v else {8, 0},
    "zone": lambda v: dt.datetime(
        2020, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=v), "somewhere")
    ),
    "kind of zone": lambda v: dt.datetime(
        2020, 1, 1, tzinfo=zoneinfo.ZoneInfo("UTC") if v else dt.UTC
    ),
    "fold": lambda v: dt.datetime(2020, 1, 1, fold=v),
    "unit of a timestamp": lambda v: pd.Timestamp("2020-01-01").as_unit(["s", "ns"][v]),
    "zone itself": lambda v: zoneinfo.ZoneInfo(["UTC", "Europe/Paris"][v]),
    "default of a function": lambda v: lambda x, y=v: x,
    "closure": lambda v: lambda: v,
    "partial": lambda v: functools.partial(max, v),
    "method": lambda v: Holder(v).__init__,
    "class": lambda v: type("Own", (), {"value": v}),
    "attribute of the class": lambda v: type("Own", (), {"value": v})(),
    "state of a generator": lambda v: random.Random(v),
    "file": lambda v: io.BytesIO(bytes([v])),
    "view of a mapping": lambda v: {v: 1}.keys(),
    "range": lambda v: range(v, v),
    "slice": lambda v: slice(v),
    "error of one text": lambda v: Suppressing("ab"[v]),
    "group of errors": lambda v: ExceptionGroup("of", [ValueError("ab"[v])]),
    "object of an error": lambda v: AttributeError("failed", obj=v),
}


@pytest.mark.parametrize("way", CARRIED)
def test_what_an_output_carries_is_seen(way):
    """What is not a value but goes with it, alone and beside noise that makes each output new."""
    rng = np.random.default_rng(48)

    def bit(data):
        return int(rng.random() < 0.98) ^ data

    alone = audit(lambda d: CARRIED[way](bit(d)), 0, 1, 1, samples=240)
    assert alone.verdict is Outcome.VIOLATED
    beside = audit(lambda d: [CARRIED[way](bit(d)), rng.normal()], 0, 1, 1, samples=240)
    assert beside.verdict is Outcome.VIOLATED
    assert "cannot be looked into" not in alone.summary() + beside.summary()
    same = audit(lambda d: CARRIED[way](bit(0)), 0, 1, 1, samples=300, confidence=1 - 1e-6)
    assert same.verdict is not Outcome.VIOLATED


def test_payloads_beside_noise_in_arrays():
    """Alike arrays are read at once; of a NaN in them, its bits are looked at too."""
    rng = np.random.default_rng(49)
    for kind in (list, np.array):
        found = audit(lambda d: kind([nan(d), rng.normal()]), 0, 1, 1, samples=400)  # noqa: B023
        assert found.verdict is Outcome.VIOLATED
        assert "the form of the NaN that coordinate 1 is" in " ".join(map(str, found.events))


def test_the_line_of_an_error_is_seen():
    """Who sees an error sees where it was raised."""
    rng = np.random.default_rng(50)
    found = audit(lambda d: at_lines(int(rng.random() < 0.9) ^ d), 0, 1, 1, samples=400)
    assert found.verdict is Outcome.VIOLATED


def endless():
    """Objects that hold one another, in a list that holds itself, and many of them."""
    root, ring = Holder(None), []
    ring.append(ring)
    root.value = [root, {"root": root}, carrying(ListWith(), root)]
    return [root, ring, *(Holder([i]) for i in range(9))]


def test_objects_without_end_are_borne(monkeypatch):
    """They are read in part, which is told."""
    seen = audit(lambda d: endless()[2:], 0, 1, 1, samples=200)
    assert "cannot be looked into" not in seen.summary()
    monkeypatch.setattr(_flattening, "_OBJECTS", 5)
    found = audit(lambda d: endless(), 0, 1, 1, samples=200)
    assert found.verdict is Outcome.INCONCLUSIVE
    assert "returns Holder" in found.summary().replace("\n", " ")


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
    """A generator in a list may hold anything: a note says that it was not seen."""
    found = audit(lambda d: [generated(d)], 0, 1, 1, samples=400)
    assert found.verdict is Outcome.INCONCLUSIVE
    told = found.summary().replace("\n", " ")
    assert "returns generator, which cannot be looked into" in told
    assert "no difference was seen between outcomes" in told


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
