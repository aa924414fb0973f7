"""What is written never changes: descriptions, records, files and counts, to the byte.

Reports that are out in the world, files on disk and clients in other languages rest on it. A law
or a format that has to change becomes a new kind or version; these digests stay.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dither import local
from dither.local import wire
from dither.numeric import SimulatedWords

DIGESTS = Path(__file__).with_name("stable.json")
UNIT = local.Interval(-2, "1/3", steps=12)
FINE = local.Interval(0, 100)
NAMES = ["grippe", "rhume", "santé", 7, True]
N = 700

CHANNELS: dict[str, Callable[[], Any]] = {
    "grr": lambda: local.GRR(NAMES, "1/3"),
    "grr, other": lambda: local.GRR(local.Domain(["a", "b", "rest"], other="rest"), 0.1),
    "grr, large": lambda: local.GRR(70_000, 2.5),
    "sdgrr": lambda: local.SDGRR(NAMES, {"santé", 7}, "1/3"),
    "urr": lambda: local.URR(NAMES, {"santé", 7}, "1/2"),
    "urr, one": lambda: local.URR(5, {1}, 40),
    "sue": lambda: local.SUE(NAMES, 1),
    "oue": lambda: local.OUE(11, "0.7"),
    "the": lambda: local.THE(9, 2),
    "she": lambda: local.SHE(5, 1),
    "blh": lambda: local.BLH(300, 1),
    "olh": lambda: local.OLH(300, 1),
    "olh, wide": lambda: local.OLH(300, 7),
    "flh": lambda: local.FLH(50, 1, seeds=40),
    "hadamard": lambda: local.Hadamard(50, 1),
    "hadamard, blocks": lambda: local.Hadamard(9, 4),
    "subset": lambda: local.SubsetSelection(13, 1),
    "cms": lambda: local.CMS(["a", "é", 3], 2, hashes=8, buckets=32),
    "hcms": lambda: local.HCMS(["a", "é", 3], 2, hashes=8, buckets=32),
    "rappor": lambda: local.RAPPOR(NAMES, 2, once=1, question="illness"),
    "rappor, noise": lambda: local.RAPPOR(3, noise=("0.5", "0.5", "0.75")),
    "bloom": lambda: local.BloomRAPPOR(NAMES, 4, once=1, bits=32, cohorts=4, question="q"),
    "bloom, forever": lambda: local.BloomRAPPOR(NAMES, 4, bits=20, hashes=3, cohorts=2, seed=9),
    "loloha": lambda: local.LOLOHA(300, 1, 2, question="steps"),
    "truncated-geometric": lambda: local.TruncatedGeometric(6, "0.4"),
    "grid-privacy": lambda: local.GridPrivacy(3, 4, "0.5", 1, unit="km"),
    "matrix": lambda: local.MatrixChannel(
        [["0.5", "0.3", "0.2"], ["0.2", "0.3", "0.5"]], ["a", "é"]
    ),
    "metric": lambda: local.MetricChannel(5, lambda a, b: abs(a - b), "0.7", unit="step"),
    "min-id-ldp": lambda: local.MinIDLDP(["x", "y", "z"], {"x": 1, "y": 3, "z": 3}),
    "duchi": lambda: local.Duchi(UNIT, "0.1"),
    "pm": lambda: local.PM(FINE, 1),
    "hybrid": lambda: local.Hybrid(FINE, 1),
    "hybrid, small": lambda: local.Hybrid(UNIT, "1/2"),
    "laplace": lambda: local.LatticeLaplace(UNIT, 2),
    "sw": lambda: local.SW(FINE, "2.5"),
    "sdpm": lambda: local.SDPM(local.Interval(-1, 1, steps=64), (-0.5, 0.26), 1),
}

TABLE = {
    "smokes": ["no", "yes", "no"] * 80,
    "region": [0, 3, 1, 2] * 60,
    "sex": ["f", "m"] * 120,
}
DOMAINS = {"smokes": ["no", "yes"], "region": 4, "sex": ["f", "m"]}
STRUCTURES: dict[str, Callable[[], tuple[Any, Any]]] = {
    "attributes": lambda: (local.Attributes(DOMAINS, 1), TABLE),
    "attributes, split": lambda: (
        local.Attributes(DOMAINS, 1, method="split", channel=local.OUE),
        TABLE,
    ),
    "fake-data": lambda: (local.FakeData(DOMAINS, 1), TABLE),
    "fake-data, attribute": lambda: (local.FakeData(DOMAINS, 1, protects="attribute"), TABLE),
    "marginals": lambda: (local.Marginals(DOMAINS, 2, 1), TABLE),
    "candidate-sets": lambda: (
        local.CandidateSets(["a", "é", 3], [["a", 3], ["é"]], 1, padding=2),
        [["a", "é", 3], [3], ()] * 60,
    ),
    "candidate-count": lambda: (
        local.CandidateCount(4, [[0], [1, 2], [3]], "1/2", most=2),
        [{0, 1, 2}, [2], ()] * 60,
    ),
    "item-sets": lambda: (local.ItemSets(4, 1, padding=2), [{0, 1}, [2], (), {1, 2, 3}] * 50),
    "key-value": lambda: (
        local.KeyValue(["film", "book"], (0, 5), 2, padding=2),
        [{"film": 4}, {"film": 5, "book": 1}, {}] * 50,
    ),
    "heavy-hitters": lambda: (
        local.HeavyHitters("abc", 3, 2, bits=8),
        ["cab", "ab", "a", "xyz", "cabbage"] * 40,
    ),
}


def plain(make: Callable[[], Any]) -> tuple[Any, Any]:
    """A channel and reports of its values, one after another."""
    channel = make()
    words = SimulatedWords(7)
    codes = np.arange(N, dtype=np.int64) * 31 % len(channel.domain)
    if hasattr(channel, "interval"):
        interval = channel.interval
        low, high = float(interval.low), float(interval.high)
        codes = interval.round(np.linspace(low, high, N), words, apart=channel.apart)
    return channel, channel.draw(codes, words)


def chosen(names: bool) -> tuple[Any, Any]:
    """Channels among which people choose, by place or by name, and reports by choice."""
    rated = [local.GRR(4, 1), local.SDGRR(4, {3}, 2), local.Hadamard(4, 1)]
    if names:
        offer = local.Personal({f"class {i}": c for i, c in enumerate(rated)})
    else:
        offer = local.Personal([*rated, local.OLH(4, 1)])
    words, codes = SimulatedWords(5), np.arange(100, dtype=np.int64) % 4
    return offer, {name: c.draw(codes, words) for name, c in offer.parts.items()}


CASES: dict[str, Callable[[], tuple[Any, Any]]] = {
    **{name: lambda make=make: plain(make) for name, make in CHANNELS.items()},  # type: ignore[misc]
    **{
        name: lambda make=make: (  # type: ignore[misc]
            (pair := make())[0],
            pair[0].draw(pair[1], SimulatedWords(3)),
        )
        for name, make in STRUCTURES.items()
    },
    "personal": lambda: chosen(names=False),
    "personal, by name": lambda: chosen(names=True),
}


def digests(case: str) -> dict[str, str]:
    """Of the description, a file of reports, and the counts of it."""
    carrier, reports = CASES[case]()
    file = io.BytesIO()
    wire.write_reports(file, carrier, reports)
    counts = carrier.aggregate(reports)
    from_file, missing = wire.aggregate_file(file.getvalue(), carrier)
    assert missing == 0
    assert from_file == counts
    texts = {
        "channel": json.dumps(carrier.to_dict(), sort_keys=True).encode(),
        "file": file.getvalue(),
        "counts": json.dumps(counts.to_dict(), sort_keys=True).encode(),
    }
    found = {name: hashlib.sha256(text).hexdigest() for name, text in texts.items()}
    return {"hash": carrier.hash, **found}


def permanent() -> str:
    """What a device remembers: permanent answers derived from one key."""
    key = bytes(range(32))
    memory, users = local.Memory(key), [f"ü{i}" for i in range(40)]
    found = hashlib.sha256()
    for name in ("rappor", "bloom", "loloha"):
        channel = CHANNELS[name]()
        values = [channel.domain.values[i % 5] for i in range(40)]
        rows = channel.report(values, users, memory, words=SimulatedWords(2))
        found.update(np.ascontiguousarray(rows).tobytes())
    found.update(json.dumps(memory.asked, sort_keys=True).encode())
    return found.hexdigest()


@pytest.mark.parametrize("case", CASES)
def test_what_is_written_stays(case: str) -> None:
    """Description, hash, records of simulated coins, and counts are those that were published."""
    assert digests(case) == json.loads(DIGESTS.read_text())[case]


def test_what_is_remembered_stays() -> None:
    """Permanent answers derived from a key are the same in every version."""
    assert permanent() == json.loads(DIGESTS.read_text())["permanent"]


def test_another_coin_is_seen() -> None:
    """The digests hang on the coins: one channel at another epsilon has others throughout."""
    published = json.loads(DIGESTS.read_text())["grr"]
    CASES["changed"] = lambda: plain(lambda: local.GRR(NAMES, "1/4"))
    try:
        found = digests("changed")
    finally:
        del CASES["changed"]
    assert all(found[name] != published[name] for name in published)


if __name__ == "__main__":  # writes the digests of a new kind; never to change an old one
    told = {case: digests(case) for case in CASES} | {"permanent": permanent()}
    DIGESTS.write_text(json.dumps(told, indent=1, sort_keys=True) + "\n")
