"""The pinned hash: its meaning by a second implementation, and how well it mixes."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dither.errors import ArgumentError
from dither.local._reports import hashing
from local.laws import chi_square_passes

VECTORS = json.loads((files("dither.local") / "vectors.json").read_text(encoding="utf-8"))
M = 0xFFFFFFFF
G = 0x9E3779B9


def plain_mix(x: int) -> int:
    """``mix32`` as its page tells it, with Python's integers."""
    for shift, factor in ((16, 0x5E2FA045), (15, 0xB629F0AF), (16, 0x10F172A1)):
        x = (x ^ (x >> shift)) * factor & M
    return x ^ (x >> 15)


def plain_cell(seed: int, i: int) -> int:
    """``cell`` with Python's integers."""
    return plain_mix((plain_mix((seed + G) & M) + i * G) & M) >> 16


def plain_word(seed: int, v: int) -> int:
    """``word`` with Python's integers."""
    return (plain_cell(seed, v & 255) + plain_cell(seed, 256 + (v >> 8))) & 0xFFFF


def plain_hash64(data: bytes, seed: int) -> int:
    """``hash64`` with Python's integers."""
    a = plain_mix(((seed & M) + G) & M)
    b = plain_mix((((seed >> 32) ^ a) + G) & M)
    for i in range(0, len(data), 4):
        a = plain_mix(a ^ int.from_bytes(data[i : i + 4], "little"))
        b = plain_mix((b + a) & M)
    a = plain_mix(a ^ len(data))
    b = plain_mix((b + a) & M)
    a = plain_mix((a + b) & M)
    return a << 32 | b


def test_published_vectors() -> None:
    """The published values are those of the page's formulas, and the package gives them."""
    for x, y in VECTORS["mix32"]:
        assert plain_mix(x) == y == int(hashing.mix32(x))
    for s, i, y in VECTORS["cell"]:
        assert plain_cell(s, i) == y == int(hashing.cells(np.array([s], np.uint32), [i])[0, 0])
    for s, v, word, *buckets in VECTORS["word"]:
        found = hashing.words_of(np.array([s], np.uint32), [v])
        assert plain_word(s, v) == word == int(found[0])
        for g, y in zip((2, 3, 4, 21, 1000), buckets, strict=True):
            assert word * g >> 16 == y == int(hashing.bucket(found, g)[0])
    for data, seed, y in VECTORS["hash64"]:
        given, s = bytes.fromhex(data), int(seed, 16)
        assert (
            f"{plain_hash64(given, s):016x}" == y == f"{hashing.hash64([given], [s]).item():016x}"
        )
    for digest, s, y in VECTORS["again"]:
        d = int(digest, 16)
        plain = plain_mix((plain_mix((d & M) ^ plain_mix((s + G) & M)) + (d >> 32)) & M)
        assert plain == y == int(hashing.again([d], [s])[0])
    for value, y in VECTORS["text_bytes"]:
        assert hashing.text_bytes(value).hex() == y


def test_pinned() -> None:
    """A change of the published file itself is seen: reports already collected rest on it."""
    assert hashing.hash64([b"dither"], [1]).item() == 0x6B671FE23E7B4A16
    assert int(hashing.words_of(np.array([7], np.uint32), [1000])[0]) == plain_word(7, 1000)
    assert VECTORS["mix32"][1] == [1, 3390437208]


@given(st.lists(st.binary(max_size=23), max_size=12), st.lists(st.integers(0, 2**64 - 1)))
def test_many_is_each(items: list[bytes], seeds: list[int]) -> None:
    """Hashing many at once is hashing each, whatever their lengths."""
    found = hashing.hash64(items, seeds)
    assert found.shape == (len(seeds), len(items))
    assert found.tolist() == [[plain_hash64(i, s) for i in items] for s in seeds]


def test_mix_is_a_bijection() -> None:
    """Undoing the multiplications and shifts gives every number back."""
    x = np.random.default_rng(1).integers(0, 2**32, 1 << 16, dtype=np.uint32)
    y = hashing.mix32(x)
    for shift, factor in ((15, 0x10F172A1), (16, 0xB629F0AF), (15, 0x5E2FA045), (16, 1)):
        y = y ^ (y >> np.uint32(shift)) ^ (y >> np.uint32(2 * shift) if 2 * shift < 32 else 0)
        y = y * np.uint32(pow(factor, -1, 2**32))
    assert np.array_equal(x, y)


def test_avalanche() -> None:
    """Flipping one bit of x, of a seed or of data flips each bit of the hash half of the time.

    32 or 64 × 32 shares of 2**15 tosses, each within 6.5 standard errors: false alarm below 1e-6.
    """
    n = 1 << 15
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2**32, n, dtype=np.uint32)
    codes = rng.integers(0, 1 << 24, n)
    seeds = rng.integers(0, 2**32, n, dtype=np.uint32)
    limit = 6.5 * 0.5 / np.sqrt(n)

    def shares(before: np.ndarray, after: np.ndarray) -> np.ndarray:
        return np.unpackbits((before ^ after).view(np.uint8).reshape(n, -1), axis=1).mean(axis=0)

    for bit in range(32):
        flip = np.uint32(1 << bit)
        assert np.abs(shares(hashing.mix32(x), hashing.mix32(x ^ flip)) - 0.5).max() < limit
        found = hashing.words_of(seeds, codes), hashing.words_of(seeds ^ flip, codes)
        assert found[0].dtype == np.uint16
        assert np.abs(shares(*found) - 0.5).max() < limit
    for bit in range(24):
        found = hashing.words_of(seeds, codes), hashing.words_of(seeds, codes ^ (1 << bit))
        assert np.abs(shares(*found) - 0.5).max() < limit
    data = rng.integers(0, 256, (n, 9), dtype=np.uint8)
    before = hashing.hash64([d.tobytes() for d in data], [5])[0]
    for bit in range(0, 72, 5):
        data[:, bit // 8] ^= np.uint8(1 << (bit % 8))
        after = hashing.hash64([d.tobytes() for d in data], [5])[0]
        assert np.abs(shares(before, after) - 0.5).max() < limit
        before = after


@pytest.mark.parametrize("g", [2, 3, 5, 21, 100])
def test_pairs_collide_as_often_as_they_should(g: int) -> None:
    """Over consecutive and over random seeds, two codes share a bucket at a rate of 1/g.

    60 pairs and two kinds of seeds, each within 6 standard errors: false alarm below 1e-6 a case.
    """
    n = 1 << 18
    rng = np.random.default_rng(3)
    pairs = [(0, 1), (0, 256), (1, 257), (255, 256), (0, 1 << 23), (7, 1007)]
    pairs += [tuple(rng.choice(1 << 14, 2, replace=False).tolist()) for _ in range(14)]
    for seeds in (np.arange(n, dtype=np.uint32), rng.integers(0, 2**32, n, dtype=np.uint32)):
        for v, w in pairs:
            one = hashing.bucket(hashing.words_of(seeds, np.full(n, v)), g)
            two = hashing.bucket(hashing.words_of(seeds, np.full(n, w)), g)
            rate = float((one == two).mean())
            ideal = float((np.diff(hashing.bucket_edges(g, 16)) ** 2 / 2**32).sum())
            assert abs(ideal - 1 / g) < 1e-6
            assert abs(rate - ideal) < 6 * np.sqrt((1 - 1 / g) / g / n)


def test_three_codes_are_hashed_independently() -> None:
    """The buckets of three codes fill all 27 cells alike; so do those of a sequence's steps."""
    n = 1 << 19
    seeds = np.random.default_rng(4).integers(0, 2**32, n, dtype=np.uint32)
    for triple in ((0, 1, 2), (3, 259, 515), (10, 11, 267), (0, 5000, 10000)):
        cell = np.zeros(n, dtype=np.int64)
        for v in triple:
            cell = 3 * cell + hashing.bucket(hashing.words_of(seeds, np.full(n, v)), 3)
        assert chi_square_passes(np.bincount(cell, minlength=27), np.full(27, n / 27))


def test_seeds_fill_buckets_alike() -> None:
    """For a fixed value the buckets over seeds, and for a fixed seed those over values, are even.

    Chi-square with a false alarm of 1e-7 each.
    """
    n = 1 << 18
    counting = np.arange(n, dtype=np.uint32)
    for g in (3, 7, 100):
        for v in (0, 1, 255, 9999):
            found = hashing.bucket(hashing.words_of(counting, np.full(n, v)), g)
            assert chi_square_passes(np.bincount(found, minlength=g), np.full(g, n / g))
        for s in (0, 1, 12345):
            found = hashing.bucket(hashing.words_of(np.full(n, s, np.uint32), counting), g)
            assert chi_square_passes(np.bincount(found, minlength=g), np.full(g, n / g))
    texts = [hashing.text_bytes(f"https://example.org/{i}") for i in range(1 << 15)]
    for row in hashing.hash64(texts, [0, 1, 2]):
        for part in ((row >> np.uint64(32)).astype(np.uint32), row.astype(np.uint32)):
            found = hashing.bucket(part, 1000)
            seen = np.bincount(found, minlength=1000)
            assert chi_square_passes(seen, np.full(1000, len(texts) / 1000))


def test_a_weak_mixer_is_caught() -> None:
    """Without the last two multiplications the avalanche test would fail."""
    x = np.random.default_rng(5).integers(0, 2**32, 1 << 15, dtype=np.uint32)

    def weak(v: np.ndarray) -> np.ndarray:
        return (v ^ (v >> np.uint32(16))) * np.uint32(0x5E2FA045)

    flipped = np.unpackbits((weak(x) ^ weak(x ^ np.uint32(1 << 31))).view(np.uint8))
    assert abs(flipped.reshape(-1, 32).mean(axis=0) - 0.5).max() > 0.4


def test_seeds_out_of_range_are_refused() -> None:
    """A seed is a whole number of 64 bits."""
    for seed in (-1, 1 << 64):
        with pytest.raises(ArgumentError, match="seed"):
            hashing.hash64([b""], [seed])
