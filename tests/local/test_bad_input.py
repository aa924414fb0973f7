"""Every constructor and every door, given what it cannot use: a clear error, and nothing else."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dither import local
from dither.errors import ArgumentError
from dither.local import wire

UNIT = local.Interval(0, 1, steps=8)
BAD: list[Any] = [
    None,
    "x",
    b"x",
    "",
    -1,
    0,
    2.5,
    True,
    float("nan"),
    float("inf"),
    10**400,
    Fraction(1, 10**30),
    "1e-18",
    1e-300,
    [],
    [None],
    ["x", "x"],
    [[1]],
    {},
    {"a": None},
    {1: 2},
    object(),
    np.array(["x"]),
    np.zeros((2, 2)),
    np.array(1),
    np.array([1, 2]),
    np.array([]),
    [10**400],
    3 + 4j,
    len,
]

MADE: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (local.Domain, {"values": 5, "other": 1}),
    (local.Interval, {"low": 0, "high": 1, "steps": 8, "clamp": True}),
    *(
        (make, {"domain": 5, "epsilon": 1, **more})
        for make, more in (
            (local.GRR, {}),
            (local.SUE, {}),
            (local.OUE, {}),
            (local.THE, {"threshold": "0.6"}),
            (local.SHE, {"clamp": 9}),
            (local.OLH, {"buckets": 3}),
            (local.BLH, {}),
            (local.FLH, {"seeds": 8, "buckets": 3}),
            (local.Hadamard, {"blocks": 1}),
            (local.SubsetSelection, {"size": 2}),
            (local.CMS, {"hashes": 4, "buckets": 8}),
            (local.HCMS, {"hashes": 4, "buckets": 8}),
            (local.SDGRR, {"high": {0}}),
            (local.URR, {"high": {0}}),
            (local.RAPPOR, {"once": "0.5", "question": "q"}),
            (local.BloomRAPPOR, {"once": "0.5", "bits": 8, "hashes": 2, "cohorts": 2, "seed": 1}),
            (local.LOLOHA, {"epsilon_inf": 2, "buckets": 2, "question": "q"}),
        )
    ),
    (local.RAPPOR, {"domain": 5, "noise": ("0.5", "0.5", "0.75")}),
    (local.TruncatedGeometric, {"domain": 5, "epsilon_per_step": 1}),
    (local.GridPrivacy, {"rows": 2, "columns": 2, "cell": 1, "epsilon_per_unit": 1, "unit": "m"}),
    (local.MatrixChannel, {"matrix": [[0.5, 0.5], [0.25, 0.75]], "domain": 2, "epsilon": 2}),
    (local.MetricChannel, {"domain": 2, "distance": [[0, 1], [1, 0]], "epsilon": 1, "unit": "m"}),
    (local.MinIDLDP, {"domain": 3, "epsilons": [1, 2, 2], "model": "best", "thresholds": None}),
    *((make, {"interval": UNIT, "epsilon": 1}) for make in (local.PM, local.Duchi, local.SW)),
    *((make, {"interval": UNIT, "epsilon": 1}) for make in (local.Hybrid, local.LatticeLaplace)),
    (local.SDPM, {"interval": UNIT, "low_range": (0.25, 0.5), "epsilon": 1}),
    (local.Personal, {"channels": (local.GRR(3, 1),)}),
    (local.Personal.of, {"make": local.GRR, "domain": 3, "epsilons": [1, 2]}),
    (local.Personal, {"channels": {"a": local.GRR(3, 1)}}),
    (
        local.Attributes,
        {"domains": {"a": 3}, "epsilon": 1, "method": "split", "channel": local.GRR},
    ),
    (local.FakeData, {"domains": {"a": 3, "b": 2}, "epsilon": 1, "protects": "row"}),
    (local.CandidateSets, {"items": 3, "sets": [[0], [1, 2]], "epsilon": 1, "padding": 2}),
    (local.CandidateCount, {"items": 3, "sets": [[0]], "epsilon": 1, "most": 2}),
    (local.FrequentItemSets, {"items": 3, "epsilon": 1, "k": 2, "largest": 3}),
    (local.ItemSets, {"items": 3, "epsilon": 1, "padding": 2, "channel": local.GRR}),
    (
        local.KeyValue,
        {"keys": 3, "bounds": (0, 1), "epsilon": 1, "padding": 2, "channel": local.GRR},
    ),
    (local.Marginals, {"domains": {"a": 3, "b": 2}, "of": 2, "epsilon": 1, "channel": local.GRR}),
    (
        local.HeavyHitters,
        {"alphabet": "ab", "length": 3, "epsilon": 1, "first": 1, "step": 1, "bits": 8},
    ),
    (local.Memory, {"key": bytes(32), "asked": {}}),
    (local.Aggregate, {"channel": local.GRR(3, 1), "counts": [1, 0, 0], "n": 1, "rejected": 0}),
]


def tried(door: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """What became of a call: nothing, our error, or what must not be."""
    try:
        door(**arguments)
    except ArgumentError:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "taken"


def failures(door: Callable[..., Any], arguments: dict[str, Any]) -> Iterator[str]:
    """Every argument replaced by everything bad, where that raises another error than ours."""
    for name in arguments:
        for bad in BAD:
            found = tried(door, {**arguments, name: bad})
            if found not in ("taken", "refused"):
                yield f"{name}={bad!r}: {found}"


@pytest.mark.parametrize(
    ("make", "arguments"), MADE, ids=[f"{getattr(m, '__qualname__', m)}" for m, _ in MADE]
)
def test_constructors(make: Callable[..., Any], arguments: dict[str, Any]) -> None:
    """Whatever an argument is, what is made works or is refused by name."""
    make(**arguments)
    assert not list(failures(make, arguments))


SMALL = local.GRR(3, 1)
COUNTED = SMALL.aggregate([0, 1, 2, 1])
NUMBERS = local.PM(UNIT, 1).aggregate([0, 1, 2, 3])
SURVEY = local.Attributes({"a": 3}, epsilon=1)
SURVEYED = SURVEY.aggregate({"a": [0, 1, 2]})
SETS = local.ItemSets(3, 1, padding=2)
PAIRS = local.KeyValue(3, (0, 1), 1, padding=2)
WORDS = local.HeavyHitters("ab", 2, 1, bits=8)
OFFER = local.Personal.of(local.GRR, 3, epsilons=[1, 2])
CLASSES = local.Personal({"a": SMALL, "b": local.GRR(3, 2)})
TEXTS = local.CMS(3, 1, hashes=4, buckets=8).aggregate([[0, 0, 1], [1, 0, 255]])
FILTERS = local.BloomRAPPOR(3, 1, bits=8, cohorts=2).aggregate([[0, 0, 1], [1, 0, 255]])
RNG = np.random.default_rng(1)


def written(reports: list[int]) -> bytes:
    """A file of reports."""
    file = io.BytesIO()
    local.write_reports(file, SMALL, reports)
    return file.getvalue()


HELD = local.RAPPOR(3, 2, once=1, question="q")

FILE = written([0, 1])
TABLE = local.reports_table(SMALL, [0, 1])
MARGINALS = local.Marginals({"a": 2, "b": 2, "c": 2}, of=[("a", "b")], epsilon=1).aggregate(
    {"a × b": [0, 1, 2, 3]}
)
JOINT = MARGINALS.estimate()["a × b"]

DOORS: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
    ("privatize", SMALL.privatize, {"values": [0, 1]}),
    ("privatize numbers", NUMBERS.channel.privatize, {"values": [0.5]}),
    ("privatize texts", local.CMS(3, 1, hashes=4, buckets=8).privatize, {"values": ["x"]}),
    ("privatize filters", local.BloomRAPPOR(3, 1, bits=8).privatize, {"values": ["x"]}),
    ("privatize a row", SURVEY.privatize, {"records": {"a": [0]}}),
    ("privatize sets", SETS.privatize, {"records": [{0}]}),
    ("privatize pairs", PAIRS.privatize, {"records": [{0: 1}]}),
    ("privatize words", WORDS.privatize, {"records": ["ab"]}),
    ("privatize by choice", OFFER.privatize, {"values": [0], "choices": [1]}),
    ("privatize by class", CLASSES.privatize, {"values": [0], "choices": ["a"]}),
    (
        "report",
        lambda values, users, memory: HELD.report(values, users, memory),
        {"values": [0], "users": ["u"], "memory": local.Memory(bytes(32))},
    ),
    ("aggregate", SMALL.aggregate, {"reports": [0], "strict": True}),
    ("aggregate a row", SURVEY.aggregate, {"reports": {"a": [0]}, "strict": True}),
    ("aggregate by choice", OFFER.aggregate, {"reports": {0: [0]}, "strict": True}),
    *(
        (f"aggregate {channel.kind}", channel.aggregate, {"reports": channel.privatize([0])})
        for channel in (
            local.OLH(3, 1),
            local.OUE(3, 1),
            local.SHE(3, 1),
            local.SubsetSelection(3, 1),
            local.CMS(3, 1, hashes=4, buckets=8),
        )
    ),
    ("estimate", COUNTED.estimate, {"postprocess": "none", "confidence": 0.9}),
    ("likelihood", COUNTED.estimate, {"method": "likelihood", "smooth": False}),
    ("bins of reports", NUMBERS.estimate, {"method": "likelihood", "outputs": 4, "bins": 4}),
    ("top", COUNTED.estimate().top, {"k": 2}),
    ("loss", local.SDGRR(3, {0}, 1).loss, {"accept_delta": True}),
    (
        "an aggregate",
        local.Aggregate,
        {"channel": SMALL, "counts": [1, 0, 0], "n": 1, "rejected": 0},
    ),
    ("read_reports", local.read_reports, {"source": FILE, "channel": SMALL}),
    ("aggregate_file", local.aggregate_file, {"source": FILE, "channel": SMALL}),
    (
        "aggregate_table",
        local.aggregate_table,
        {"channel": SMALL, "source": TABLE, "memory": "1GB"},
    ),
    ("of", lambda name: JOINT.of(name, "a"), {"name": "b"}),
    ("marginals", MARGINALS.estimate, {"postprocess": "none", "consistent": False}),
    ("estimate a row", SURVEYED.estimate, {"postprocess": "none", "confidence": 0.9}),
    ("estimate sets", SETS.aggregate({"item": [0, 1]}).estimate, {"postprocess": "none"}),
    ("estimate pairs", PAIRS.aggregate({"pair": [0, 1]}).estimate, {"postprocess": "none"}),
    ("estimate words", WORDS.aggregate({"2": [0]}).estimate, {"k": 2, "confidence": 0.9}),
    ("estimate candidates", TEXTS.estimate, {"candidates": ["x"], "postprocess": "none"}),
    ("select", FILTERS.estimate, {"method": "selection", "alpha": 0.1, "candidates": ["x", "y"]}),
    (
        "estimate by choice",
        OFFER.aggregate({0: [0, 1], 1: [1]}).estimate,
        {"method": "weights", "postprocess": "none", "confidence": 0.9},
    ),
    ("mean", NUMBERS.estimate, {"postprocess": "none", "method": None, "confidence": 0.9}),
    (
        "distribution",
        NUMBERS.estimate,
        {"method": "likelihood", "bins": 4, "tolerance": 0.1, "max_iterations": 5},
    ),
    ("attack", SMALL.attack, {"prior": [0.5, 0.25, 0.25], "high": [0]}),
    ("attack numbers", NUMBERS.channel.attack, {"prior": None, "bins": 3}),
    (
        "simulate_attack",
        local.simulate_attack,
        {"channel": SMALL, "rng": RNG, "prior": None, "people": 10, "high": [0]},
    ),
    ("variance", SMALL.variance, {"frequencies": [0.5, 0.25, 0.25], "n": 10}),
    ("mean_variance", NUMBERS.channel.mean_variance, {"shares": np.full(9, 1 / 9), "n": 10}),  # type: ignore[attr-defined]
    ("shuffled", SMALL.shuffled, {"n": 1000}),
    ("simulate", local.simulate, {"channel": SMALL, "histogram": [1, 2, 3], "rng": RNG}),
    ("best", local.best, {"domain_size": 5, "epsilon": 1, "n": 100, "error": "mean"}),
    (
        "simulate an offer",
        local.simulate,
        {"channel": OFFER, "histogram": [[1, 2, 3], [0, 0, 1]], "rng": RNG},
    ),
    ("attack an offer", OFFER.attack, {"prior": np.full((2, 3), 1 / 6)}),
    ("add", lambda other: COUNTED.estimate() and other, {"other": 1}),
    ("index", lambda value: COUNTED.estimate()[value], {"value": 0}),
    ("channel_from_dict", local.channel_from_dict, {"found": SMALL.to_dict()}),
    ("Aggregate.from_dict", local.Aggregate.from_dict, {"found": COUNTED.to_dict()}),
    ("structure_from_dict", local.structure_from_dict, {"found": OFFER.to_dict()}),
    ("PartCounts.from_dict", local.PartCounts.from_dict, {"found": SURVEYED.to_dict()}),
    ("pack", wire.pack, {"channel": SMALL, "reports": [0]}),
    ("unpack", wire.unpack, {"channel": SMALL, "records": b"\0"}),
    (
        "write_reports",
        local.write_reports,
        {"target": io.BytesIO(), "channel": SMALL, "reports": [0]},
    ),
    ("reports_table", local.reports_table, {"channel": SMALL, "reports": [0]}),
    ("aggregate_stream", local.aggregate_stream, {"channel": SMALL, "chunks": [[0]]}),
]


@pytest.mark.parametrize(
    ("door", "arguments"), [(d, a) for _, d, a in DOORS], ids=[name for name, _, _ in DOORS]
)
def test_doors(
    door: Callable[..., Any],
    arguments: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever is passed through a door, it answers or refuses by name."""
    monkeypatch.chdir(tmp_path)
    door(**arguments)
    assert not list(failures(door, arguments))


def test_every_public_class_is_tried() -> None:
    """A channel or structure that is added is added here as well."""
    tried_here = {make for make, _ in MADE}
    for name in local.__all__:
        found = getattr(local, name)
        if inspect.isclass(found) and issubclass(found, local.Channel | local.Structure):
            abstract = found in (local.Channel, local.Structure, local.FiniteChannel)
            assert abstract or found in tried_here, name


@pytest.mark.parametrize("exponent", [10, 12, 15, 18, 24, 300, 4000])
@pytest.mark.parametrize(("make", "arguments"), MADE, ids=[str(m) for m, _ in MADE])
def test_tiny_epsilon(make: Callable[..., Any], arguments: dict[str, Any], exponent: int) -> None:
    """So small a budget that coins of 64 bits are fair is refused; nothing is drawn in vain."""
    if "epsilon" in arguments:
        found = tried(make, {**arguments, "epsilon": f"1e-{exponent}"})
        assert found == "refused"


DESCRIBED: list[tuple[Callable[[Any], Any], dict[str, Any]]] = [
    (local.channel_from_dict, NUMBERS.channel.to_dict()),
    (local.channel_from_dict, local.SDPM(UNIT, (0, "1/2"), 1).to_dict()),
    (local.channel_from_dict, HELD.to_dict()),
    (local.Aggregate.from_dict, COUNTED.to_dict()),
    (local.structure_from_dict, WORDS.to_dict()),
    (local.structure_from_dict, CLASSES.to_dict()),
    (local.PartCounts.from_dict, SURVEYED.to_dict()),
]


@pytest.mark.parametrize(("read", "described"), DESCRIBED)
def test_descriptions(read: Callable[[Any], Any], described: dict[str, Any]) -> None:
    """Whatever stands where a description has something else, it is refused by name."""
    assert read(described)
    places = [(described, name) for name in described]
    if isinstance(inner := described.get("settings"), dict):
        places += [(inner, name) for name in inner]
    for held, name in places:
        kept = held[name]
        for bad in BAD:
            held[name] = bad
            assert tried(lambda: read(described), {}) in ("refused", "taken"), (name, bad)
        held[name] = kept


def test_numbers_too_large_for_doubles_are_refused() -> None:
    """Counts of reports and bounds of numbers are such as an estimate can be computed of."""
    with pytest.raises(ArgumentError, match="at most 2"):
        local.Aggregate(SMALL, COUNTED.counts, 10**400)
    with pytest.raises(ArgumentError, match="10\\*\\*300"):
        local.Interval(0, 10**400)
    with pytest.raises(ArgumentError, match="apart"):
        local.Interval(0, "1e-320")


def test_the_part_without_reports_is_named() -> None:
    """A survey of which one attribute was never reported says which."""
    survey = local.Attributes({"smokes": 2, "region": 3}, epsilon=1)
    with pytest.raises(ArgumentError, match="no reports of 'region'"):
        survey.aggregate({"smokes": [0, 1]}).estimate()
