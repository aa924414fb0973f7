"""The hash of local reports, pinned: 32-bit multiplications that numpy and a browser do alike.

All arithmetic is modulo 2**32; ``>>`` shifts zeros in (in JavaScript: ``Math.imul``, ``>>>``)::

    mix32(x):      x ^= x >> 16;  x *= 0x5e2fa045;  x ^= x >> 15;  x *= 0xb629f0af
                   x ^= x >> 16;  x *= 0x10f172a1;  x ^= x >> 15
    cell(s, i):    the high 16 bits of mix32(mix32(s + GOLD) + i·GOLD),  GOLD = 0x9e3779b9
    word(s, v):    (cell(s, v & 255) + cell(s, 256 + (v >> 8))) mod 2**16
    bucket(u, g):  floor(u·g / 2**b), where u has b bits

    hash64(data, s):  a = mix32(low half of s + GOLD);  b = mix32((high half of s ^ a) + GOLD)
                      for each 4 bytes w, little-endian, the last filled up with zeros:
                          a = mix32(a ^ w);  b = mix32(b + a)
                      a = mix32(a ^ length);  b = mix32(b + a);  a = mix32(a + b)
                      the result has a as its high and b as its low half
    again(d, s):      mix32(mix32(low half of d ^ mix32(s + GOLD)) + high half of d)

Why it is enough. `mix32` is a bijection, so `cell` is exactly uniform over the 2**32 seeds. `word`
is tabulation hashing: were the cells independent, any three codes would be hashed independently.
Nothing here is secret and no promise of privacy rests on it, but estimates are unbiased only if the
hash behaves as if it were random.

Its meaning never changes: reports that are already collected depend on it. ``vectors.json``, beside
this module, holds values for other clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.errors import ArgumentError

GOLD = 0x9E3779B9
"""2**32 over the golden ratio, made odd."""

U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]

_FACTORS = (np.uint32(0x5E2FA045), np.uint32(0xB629F0AF), np.uint32(0x10F172A1))
_SHIFTS = (np.uint32(16), np.uint32(15), np.uint32(16))
_LAST = np.uint32(15)
_HALF = np.uint32(16)
_MASK = 0xFFFFFFFF
_CHUNK = 1 << 20


def mix32(x: Any) -> U32:
    """Mix each number: a bijection of [0, 2**32) in which every bit of x affects every bit.

    >>> mix32([0, 1]).tolist()
    [0, 3390437208]
    """
    found = np.array(x, dtype=np.uint32)
    shifted = np.empty_like(found)
    for shift, factor in zip(_SHIFTS, _FACTORS, strict=True):
        np.right_shift(found, shift, out=shifted)
        np.bitwise_xor(found, shifted, out=found)
        np.multiply(found, factor, out=found)
    np.right_shift(found, _LAST, out=shifted)
    np.bitwise_xor(found, shifted, out=found)
    return found


def cells(seeds: Any, indices: Any) -> U16:
    """The cells of the n seeds' tables at m indices: ``cell(seed, index)``, shape (m, n)."""
    starts = mix32(np.asarray(seeds, dtype=np.uint32) + np.uint32(GOLD))
    steps = np.asarray(indices).astype(np.uint32) * np.uint32(GOLD)
    found = np.empty((steps.size, starts.size), dtype=np.uint16)
    for row, step in zip(found, steps, strict=True):
        np.copyto(row, mix32(starts + step) >> _HALF, casting="unsafe")
    return found


def words_of(seeds: Any, codes: Any) -> U16:
    """Hash each code, below 2**24, by the seed at its place: ``word(seed, code)``."""
    starts = mix32(np.asarray(seeds, dtype=np.uint32) + np.uint32(GOLD))
    given = np.asarray(codes).astype(np.uint32)
    low = (given & np.uint32(255)) * np.uint32(GOLD)
    high = ((given >> np.uint32(8)) + np.uint32(256)) * np.uint32(GOLD)
    # The sum's carry out of 16 bits is dropped, as in the tables.
    return ((mix32(starts + low) >> _HALF) + (mix32(starts + high) >> _HALF)).astype(np.uint16)


def bucket(words: npt.NDArray[Any], g: int) -> npt.NDArray[np.int64]:
    """Map hashes of b bits to g buckets of nearly the same size: floor(word·g / 2**b).

    Bucket y holds the words from `bucket_edges(g, b)[y]` to one below the next edge.
    """
    return ((words.astype(np.uint64) * np.uint64(g)) >> np.uint64(8 * words.itemsize)).astype(
        np.int64
    )


def bucket_edges(g: int, bits: int) -> list[int]:
    """Where each of g buckets begins, and 2**bits; sizes differ by at most 1.

    >>> bucket_edges(3, 16)
    [0, 21846, 43691, 65536]
    """
    return [-(-(y << bits) // g) for y in range(g + 1)]


def text_bytes(value: str | int) -> bytes:
    """The bytes of a value that is hashed as such: ``s`` and UTF-8, or ``i`` and its decimals.

    True and False are 1 and 0, as they are for a `Domain`.

    >>> text_bytes("é"), text_bytes(-3), text_bytes(True)
    (b's\\xc3\\xa9', b'i-3', b'i1')
    """
    if isinstance(value, str):
        # A lone surrogate has no UTF-8; browsers write the mark of an unknown letter for it.
        return b"s" + value.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    return b"i%d" % int(value)


def hash64(items: Sequence[bytes], seeds: Sequence[int]) -> npt.NDArray[np.uint64]:
    """Hash each of n byte strings to 64 bits, by each of m seeds from 0 to 2**64 - 1; shape (m, n).

    >>> f"{hash64([b'dither'], [1]).item():016x}"
    '6b671fe23e7b4a16'
    """
    if any(isinstance(s, bool) or not 0 <= s < 1 << 64 for s in seeds):
        raise ArgumentError("seed must be a whole number from 0 to 2**64 - 1")
    found = np.empty((len(seeds), len(items)), dtype=np.uint64)
    lengths = np.fromiter((len(i) for i in items), dtype=np.int64, count=len(items))
    low = np.array([s & _MASK for s in seeds], dtype=np.uint32)[:, None]
    high = np.array([s >> 32 for s in seeds], dtype=np.uint32)[:, None]
    start_a = mix32(low + np.uint32(GOLD))
    start_b = mix32((high ^ start_a) + np.uint32(GOLD))
    for length in np.unique(lengths).tolist():
        places = np.flatnonzero(lengths == length)
        step = max(1, _CHUNK // (max(1, len(seeds)) + -(-length // 4)))
        for first in range(0, places.size, step):
            part = places[first : first + step]
            filled = b"".join(items[i].ljust(-(-length // 4) * 4, b"\0") for i in part.tolist())
            given = np.frombuffer(filled, dtype="<u4").reshape(part.size, -(-length // 4))
            a = np.repeat(start_a, part.size, axis=1)
            b = np.repeat(start_b, part.size, axis=1)
            for word in given.T.astype(np.uint32):
                a = mix32(a ^ word)
                b = mix32(b + a)
            a = mix32(a ^ np.uint32(length & _MASK))
            b = mix32(b + a)
            a = mix32(a + b)
            found[:, part] = (a.astype(np.uint64) << np.uint64(32)) | b
    return found


def again(digests: Any, seeds: Any) -> U32:
    """Hash 64-bit digests once more, by 32-bit seeds: a family of functions of one digest."""
    d = np.asarray(digests, dtype=np.uint64)
    starts = mix32(np.asarray(seeds).astype(np.uint32) + np.uint32(GOLD))
    return mix32(mix32(d.astype(np.uint32) ^ starts) + (d >> np.uint64(32)).astype(np.uint32))
