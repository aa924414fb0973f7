"""Reports that are rows of bits, eight to a byte: tossed, read and counted without unpacking them.

A row of k bits takes ceil(k/8) bytes; bit j is bit 7 - j % 8 of byte j // 8 (numpy's order), and
the unused bits of the last byte are 0, or no channel produced the report.

Tossing. A coin of probability t/2**64 compares a uniform word with t, highest bit first, and most
words are decided by their first byte. Here eight random bytes hold the first bits, second bits, ...
of eight coins' words, so that one pass of logic compares eight coins at once; the one coin in 256
whose first byte equals that of t is decided by 56 further bits.

Counting. A full adder takes three rows of one weight to a row of their sums and one of carries at
twice the weight: five operations on bytes for eight columns at once, until a few rows are left.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dither.local._coins import ONE
from dither.numeric import Words

Bits = npt.NDArray[np.uint8]

_CHUNK = 1 << 18
_FEW = 48


def row_bytes(k: int) -> int:
    """How many bytes hold a row of k bits."""
    return -(-k // 8)


def packed_coins(ts: int | Sequence[int], rows: int, k: int, words: Words) -> Bits:
    """Toss a coin for each of k bits of some rows, exactly; shape (rows, ceil(k/8)), packed.

    A coin is true with probability t/2**64; one t for all, or one for each column.
    """
    width = row_bytes(k)
    thresholds = [ts] * k if isinstance(ts, int) else [int(t) for t in ts]
    distinct = sorted(set(thresholds))
    out = np.empty((rows, width), dtype=np.uint8)
    step = max(1, _CHUNK // width)
    # At which bits of a row the threshold has a 1 at each of its first eight places.
    padded = np.array([t >> 56 for t in thresholds] + [0] * (8 * width - k))
    masks = [np.packbits(((padded >> (7 - place)) & 1).astype(np.uint8)) for place in range(8)]
    always = np.packbits(np.array([t >= ONE for t in thresholds], dtype=np.uint8))
    table = np.array([t & ((1 << 56) - 1) for t in thresholds], dtype=np.uint64)
    used = np.packbits(np.ones(k, dtype=np.uint8))
    uniform = len(distinct) == 1 and 0 < distinct[0] < ONE
    tiled = [np.tile(mask, min(step, rows)) for mask in masks] if not uniform else []
    for start in range(0, rows, step):
        part = out[start : start + step]
        flat = part.reshape(-1)
        random = words.words(flat.size).view(np.uint8)
        flat[:] = 0
        tied = np.full(flat.size, 255, dtype=np.uint8)
        scratch = np.empty(flat.size, dtype=np.uint8)
        for place in range(8):
            drawn = random[place * flat.size : (place + 1) * flat.size]
            if uniform:
                if distinct[0] >> (63 - place) & 1:
                    # Words with a 0 here are below t; the others are still tied.
                    np.bitwise_and(tied, drawn, out=scratch)
                    np.bitwise_xor(tied, scratch, out=tied)
                    np.bitwise_or(flat, tied, out=flat)
                    tied, scratch = scratch, tied
                else:
                    np.bitwise_not(drawn, out=scratch)
                    np.bitwise_and(tied, scratch, out=tied)
            else:
                mask = tiled[place][: flat.size]
                np.bitwise_not(drawn, out=scratch)
                np.bitwise_and(scratch, mask, out=scratch)
                np.bitwise_and(scratch, tied, out=scratch)
                np.bitwise_or(flat, scratch, out=flat)
                np.bitwise_xor(drawn, mask, out=scratch)
                np.bitwise_not(scratch, out=scratch)
                np.bitwise_and(tied, scratch, out=tied)
        _break_ties(part, tied.reshape(part.shape), used, table, words)
    if always.any():
        out |= always
    return out


def _break_ties(part: Bits, tied: Bits, used: Bits, table: Any, words: Words) -> None:
    """Decide the coins whose first byte equals that of t, and clear the unused bits."""
    part[:, -1] &= used[-1]
    tied[:, -1] &= used[-1]
    flat, width = part.reshape(-1), part.shape[1]
    places = np.flatnonzero(tied)
    left = tied.reshape(-1)[places]
    column = (places % width) * 8
    for bit in range(8):
        here = np.flatnonzero(left & (128 >> bit))
        low = words.words(here.size) >> np.uint64(8)
        won = here[low < table[column[here] + bit]]
        flat[places[won]] |= np.uint8(128 >> bit)


def set_column(rows: Bits, columns: npt.NDArray[np.int64], on: npt.NDArray[np.bool_]) -> None:
    """Set one bit of each row, in place: that of its column, to whether `on` holds."""
    index = np.arange(rows.shape[0])
    place, mask = columns >> 3, (np.uint8(128) >> (columns & 7).astype(np.uint8)).astype(np.uint8)
    kept = rows[index, place] & ~mask
    rows[index, place] = kept | np.where(on, mask, np.uint8(0))


def one_hot(columns: npt.NDArray[np.int64], k: int) -> Bits:
    """Rows with one bit set: that of the column."""
    rows = np.zeros((columns.size, row_bytes(k)), dtype=np.uint8)
    set_column(rows, columns, np.ones(columns.size, dtype=np.bool_))
    return rows


def packed_rows(reports: Any, k: int) -> tuple[Bits, int]:
    """Reports that are rows of k bits, packed or as sequences of bytes, and how many are not."""
    width = row_bytes(k)
    if not isinstance(reports, np.ndarray) and hasattr(reports, "to_numpy"):
        reports = reports.to_numpy()
    if isinstance(reports, np.ndarray) and reports.dtype == np.uint8 and reports.ndim == 2:
        if reports.shape[1] != width:
            return np.zeros((0, width), dtype=np.uint8), reports.shape[0]
        rows, bad = reports, 0
    else:
        rows, bad = _listed(reports, width)
    if k % 8:
        good = (rows[:, -1] & np.uint8((1 << (8 - k % 8)) - 1)) == 0
        impossible = int(good.size - np.count_nonzero(good))
        if impossible:
            rows, bad = rows[good], bad + impossible
    return rows, bad


def _listed(reports: Any, width: int) -> tuple[Bits, int]:
    found = [_row(row, width) for row in reports]
    kept = b"".join(row for row in found if row is not None)
    return np.frombuffer(kept, dtype=np.uint8).reshape(-1, width), found.count(None)


def _row(row: Any, width: int) -> bytes | None:
    """A row as bytes; None where it is not a row of so many bytes."""
    try:
        if isinstance(row, str) or len(row) != width:
            return None
        return bytes(row) if isinstance(row, bytes) else bytes([operator.index(b) for b in row])
    except (TypeError, ValueError):
        return None


def count_columns(rows: Bits, k: int) -> npt.NDArray[np.int64]:
    """How many rows have each bit set, shape (k,)."""
    counts = np.zeros(8 * rows.shape[1], dtype=np.int64)
    step = max(3, _CHUNK // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        _add(counts, np.ascontiguousarray(rows[start : start + step]))
    return counts[:k]


def _add(counts: npt.NDArray[np.int64], rows: Bits) -> None:
    weight = 1
    while rows.shape[0]:
        carries = []
        while rows.shape[0] > _FEW:
            third = rows.shape[0] // 3
            a, b, c = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            counts += weight * np.unpackbits(rows[3 * third :], axis=1).sum(axis=0, dtype=np.int64)
            either = a ^ b
            carry = a & b
            carry |= either & c
            either ^= c
            carries.append(carry)
            rows = either
        counts += weight * np.unpackbits(rows, axis=1).sum(axis=0, dtype=np.int64)
        rows = np.concatenate(carries) if carries else rows[:0]
        weight *= 2
