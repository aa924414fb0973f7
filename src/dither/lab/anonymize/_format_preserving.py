"""Encryption that keeps the format: FF1, a keyed permutation of digit strings of each length.

FF1 is a ten-round Feistel network whose round function is AES in CBC-MAC mode, as NIST Special
Publication 800-38G (2016) states it. It is *encryption*: anyone with the key can undo it, equal
values stay equal, and a number keeps its length. Fewer than a million possible texts could be
searched, so numbers of fewer than six digits are refused, as the standard's revision demands.

Names follow the standard: X the numeral string, T the tweak, A and B the halves, u and v their
lengths, b and d byte lengths, P the fixed block, Q the round's block, y its number.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dither.errors import ArgumentError
from dither.lab._frames import encode, one_column, texts
from dither.lab.anonymize._masking import mapped

__all__ = ["format_preserving"]

_NUMERALS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LEAST = 1_000_000
_LONGEST = 4096
_BLOCK = 16


def format_preserving(
    column: object, key: bytes, *, tweak: bytes = b"", undo: bool = False
) -> pl.Series:
    """Encrypt the digits of every text by FF1; everything else stays in its place.

    Parameters
    ----------
    column : Polars or pandas Series, or list
        Such as card or telephone numbers. NULL stays NULL.
    key : bytes
        16, 24 or 32, for AES. Keep it: it undoes the encryption.
    tweak : bytes
        Public; another tweak gives another permutation, for example one for each column.
    undo : bool
        Decrypt.

    Returns
    -------
    polars.Series
        Texts of the same lengths, with digits where digits were.

    Raises
    ------
    ArgumentError
        For a key of another length, or where a text has fewer than 6 or more than 4,096 digits:
        says how many, never which.

    Notes
    -----
    A permutation for each number of digits, so that distinct numbers stay distinct. Not protected:
    what the format reveals, how often a number occurs, all other columns, and everything from
    anyone who holds the key. Check digits do not survive.

    Examples
    --------
    >>> key = bytes(range(16))
    >>> hidden = format_preserving(["555-123-4567"], key)
    >>> hidden[0][3], len(hidden[0]), format_preserving(hidden, key, undo=True).to_list()
    ('-', 12, ['555-123-4567'])
    """
    if not isinstance(key, bytes) or len(key) not in (16, 24, 32):
        raise ArgumentError("key must be 16, 24 or 32 bytes: dt.anonymize.new_key() makes one")
    if not isinstance(tweak, bytes):
        raise ArgumentError("tweak must be bytes")
    given = one_column(column)
    said = texts(encode(given).values).to_list()
    lengths = [len(_digits(text)) for text in said if text is not None]
    short = sum(10**n < _LEAST for n in lengths)
    if short:
        raise ArgumentError(
            f"column has {short:,} of {len(said):,} values with fewer than 6 digits, which could "
            "be found by trying; use pseudonymize for them"
        )
    if max(lengths, default=0) > _LONGEST:
        raise ArgumentError(f"column has values of more than {_LONGEST:,} digits")
    turn = ff1(key, tweak, 10)
    return mapped(given, lambda text: _put_back(text, turn(_digits(text), undo)))


def _digits(text: str) -> str:
    return "".join(c for c in text if "0" <= c <= "9")


def _put_back(text: str, digits: str) -> str:
    left = iter(digits)
    return "".join(next(left) if "0" <= c <= "9" else c for c in text)


def ff1(key: bytes, tweak: bytes, radix: int) -> Callable[[str, bool], str]:
    """FF1 under a key and a tweak, from a numeral string to one of the same length."""
    aes = Cipher(algorithms.AES(key), modes.ECB())

    def block(data: bytes) -> bytes:
        return aes.encryptor().update(data)

    def chain(data: bytes) -> bytes:
        """The last block of CBC from a zero block, which is the standard's PRF."""
        whole = Cipher(algorithms.AES(key), modes.CBC(bytes(_BLOCK))).encryptor().update(data)
        return whole[-_BLOCK:]

    def turn(x: str, undo: bool) -> str:
        n, t = len(x), len(tweak)
        u = n // 2
        v = n - u
        b = -(-((radix**v - 1).bit_length()) // 8)
        d = 4 * -(-b // 4) + 4
        p = (
            bytes([1, 2, 1])
            + radix.to_bytes(3, "big")
            + bytes([10, u % 256])
            + n.to_bytes(4, "big")
            + t.to_bytes(4, "big")
        )
        first, second = x[:u], x[u:]
        for i in range(9, -1, -1) if undo else range(10):
            fixed = first if undo else second
            padding = bytes((-t - b - 1) % _BLOCK)
            q = tweak + padding + bytes([i]) + int(fixed, radix).to_bytes(b, "big")
            r = chain(p + q)
            s = r
            for j in range(1, -(-d // _BLOCK)):
                s += block(bytes(a ^ c for a, c in zip(r, j.to_bytes(_BLOCK, "big"), strict=True)))
            y = int.from_bytes(s[:d], "big")
            m = u if i % 2 == 0 else v
            moved = int(second if undo else first, radix)
            c = (moved - y if undo else moved + y) % radix**m
            new = _numerals(c, m, radix)
            first, second = (new, first) if undo else (second, new)
        return first + second

    return turn


def _numerals(number: int, length: int, radix: int) -> str:
    found = []
    for _ in range(length):
        number, last = divmod(number, radix)
        found.append(_NUMERALS[last])
    return "".join(reversed(found))
