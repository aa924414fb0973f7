"""A device's memory of its own coins: the same person and value always get the same words.

Permanent randomness needs no store. With K the device's secret key, and AES of the key
HMAC(K, "expand")::

    start = first 16 bytes of HMAC-SHA256(K, label ‖ 0 ‖ user ‖ 0 ‖ code)
    words = AES(start), AES(start + 1), ...   (as one 128-bit big-endian number, two words a block)

where label is a channel's hash, in hexadecimal; user is the length of the bytes of the user's name,
in decimals, ":" and those bytes; and code is decimal, or "v", a length, ":" and so many bytes of
the value itself, or empty for what belongs to the user and not to a value. HMAC-SHA256 is a
pseudo-random function and counter mode a stream that nobody without the key can tell from coins:
the promises of permanent randomness rest on that, and on the key staying on the device.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dither.errors import ArgumentError
from dither.local.hashing import text_bytes

__all__ = ["Memory", "checked_memory"]


class Memory:
    """The secret from which a device derives its permanent coins.

    Parameters
    ----------
    key : bytes
        32 secret bytes, made once a device and kept there. Who has it can undo the permanent
        randomness.

    Raises
    ------
    ArgumentError
        The key is not of 32 bytes.

    Examples
    --------
    >>> memory = Memory.fresh()
    >>> a = memory.words("channel", ["anna"], [3], 2)
    >>> bool((a == memory.words("channel", ["anna"], [3], 2)).all())
    True
    """

    __slots__ = ("_expand", "_key")

    def __init__(self, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) != 32:
            raise ArgumentError("key must be 32 bytes; Memory.fresh() makes one")
        self._key = key
        self._expand = hmac.digest(key, b"expand", hashlib.sha256)

    @classmethod
    def fresh(cls) -> Memory:
        """A memory with a new key from the operating system."""
        return cls(os.urandom(32))

    @property
    def key(self) -> bytes:
        """The secret, to be kept on the device."""
        return self._key

    def __repr__(self) -> str:
        return "Memory(key hidden)"

    def words(
        self, label: str, users: Sequence[Any], codes: Sequence[Any], n: int
    ) -> npt.NDArray[np.uint64]:
        """The permanent words of each user for a code.

        Parameters
        ----------
        label : str
            What the words are for: a channel's hash.
        users : sequence of str or int
            One name a report; any will do on a device of one user.
        codes : sequence of int, bytes or None
            One code or value a report; None for words that are the user's whatever the value.
        n : int
            Words for each.

        Returns
        -------
        array of uint64, shape (len(users), n)
            Uniform to whoever lacks the key; the same at every call.
        """
        blocks = -(-n // 2)
        prefix = label.encode() + b"\0"
        starts = b"".join(
            hmac.digest(self._key, prefix + _named(user) + _coded(code), hashlib.sha256)[:16]
            for user, code in zip(users, codes, strict=True)
        )
        high, low = np.frombuffer(starts, dtype=">u8").astype(np.uint64).reshape(-1, 2).T
        counters = np.empty((len(users), blocks, 2), dtype=">u8")
        steps = low[:, None] + np.arange(blocks, dtype=np.uint64)
        counters[:, :, 1] = steps
        counters[:, :, 0] = high[:, None] + (steps < low[:, None])
        # ECB on counters is counter mode; each block is used for one start only.
        cipher = Cipher(algorithms.AES(self._expand), modes.ECB()).encryptor()
        stream = cipher.update(counters.tobytes())
        return np.frombuffer(stream, dtype="<u8").reshape(len(users), 2 * blocks)[:, :n]


def _named(user: Any) -> bytes:
    if isinstance(user, np.generic):
        user = user.item()
    if isinstance(user, bool) or not isinstance(user, str | int):
        raise ArgumentError("users must be texts or whole numbers, one for each value")
    name = text_bytes(user)
    return b"%d:" % len(name) + name + b"\0"


def _coded(code: Any) -> bytes:
    if isinstance(code, bytes):
        return b"v%d:" % len(code) + code
    return b"" if code is None else b"%d" % int(code)


def checked_memory(memory: Any) -> Memory:
    """Refuse what is no memory: without one a device would forget its coins."""
    if not isinstance(memory, Memory):
        raise ArgumentError("memory must be a Memory, such as Memory.fresh() kept on the device")
    return memory
