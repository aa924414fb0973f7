"""A device's memory of its own coins: a person, question and value always get the same words.

Permanent coins need no store. With K the device's secret key, and AES of the key HMAC(K,
"expand")::

    start = first 16 bytes of HMAC-SHA256(K, label ‖ 0 ‖ user ‖ 0 ‖ code)
    words = AES(start), AES(start + 1), ...   (as one 128-bit big-endian number, two words a block)

where label names what is asked (`Memory.label`); user is the length of the bytes of the user's
name, in decimals, ":" and those bytes; and code is decimal, or "v", a length, ":" and so many bytes
of the value itself, or empty for what belongs to the user and not to a value. HMAC-SHA256 is a
pseudo-random function and counter mode a stream that nobody without the key can distinguish from
coins: the promises of permanent randomness rest on that, and on the key staying on the device.
Words that belong to a place, such as the bit of one value among many, are AES(start + place), with
16 bytes of SHA-256 as the place: they do not move when a list grows.

Coins are kept by *question* and not by channel. Were they tossed anew for each version of a survey,
an average over versions would show the value, whatever each of them promises. So the label of a
question is the same for all versions whose permanent answers are the same, and a device refuses a
question that comes again in another form: what it has been asked is public, and is kept beside the
key.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dither.errors import ArgumentError
from dither.local._domain import Domain, column
from dither.local._reports.hashing import text_bytes

Words64 = npt.NDArray[np.uint64]


class Memory:
    """The secret from which a device derives its permanent coins.

    Parameters
    ----------
    key : bytes
        32 secret bytes, made once a device and kept there. Who has it can undo the permanent
        randomness.
    asked : mapping of str to str, optional
        What the device has been asked so far, as `asked` gave it: kept beside the key.

    Raises
    ------
    ArgumentError
        The key is not of 32 bytes, or `asked` is not a mapping of texts.

    Examples
    --------
    >>> memory = Memory.fresh()
    >>> a = memory.words("channel", ["anna"], [3], 2)
    >>> bool((a == memory.words("channel", ["anna"], [3], 2)).all())
    True
    """

    __slots__ = ("_asked", "_expand", "_key")

    def __init__(self, key: bytes, asked: Mapping[str, str] | None = None) -> None:
        if not isinstance(key, bytes) or len(key) != 32:
            raise ArgumentError("key must be 32 bytes; Memory.fresh() makes one")
        held = {} if asked is None else asked
        if not isinstance(held, Mapping) or not all(
            isinstance(text, str) for pair in held.items() for text in pair
        ):
            raise ArgumentError("asked must be what Memory.asked gave: texts by question")
        self._asked = dict(held)
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

    @property
    def asked(self) -> dict[str, str]:
        """The questions that this device has answered, and the label of each; nothing secret."""
        return dict(self._asked)

    def __repr__(self) -> str:
        return "Memory(key hidden)"

    def label(self, question: str | None, form: Mapping[str, Any]) -> str:
        """What the words of a question are for, and that it was asked in this form.

        Parameters
        ----------
        question : str
            What is asked, whatever the version of the survey.
        form : mapping
            All that the permanent answers depend on, as JSON holds it.

        Raises
        ------
        ArgumentError
            The device has answered this question in another form: its permanent answers would be
            tossed anew, and each form costs its epsilon.
        """
        named = checked_question(question)
        if named is None:
            raise ArgumentError(
                "reports from memory need a question: make the channel with question=..., the "
                "same for every version of it, so that a device tosses its coins once"
            )
        text = json.dumps({**form, "question": named}, sort_keys=True, separators=(",", ":"))
        label = hashlib.sha256(text.encode()).hexdigest()
        if self._asked.setdefault(named, label) != label:
            raise ArgumentError(
                "question must be asked in one form: this device has answered it under other "
                "settings, and would toss new coins, which costs epsilon once more; ask under "
                "another question, and count its epsilon too"
            )
        return label

    def words(
        self, label: str, users: Sequence[Any], codes: Sequence[Any], n: int
    ) -> npt.NDArray[np.uint64]:
        """The permanent words of each user for a code.

        Parameters
        ----------
        label : str
            What the words are for.
        users : sequence of str or int
            One name per report; any will do on a device of one user.
        codes : sequence of int, bytes or None
            One code or value per report; None for words that are the user's whatever the value.
        n : int
            Words for each.

        Returns
        -------
        array of uint64, shape (len(users), n)
            Uniform to anyone who lacks the key; the same at every call.
        """
        blocks = -(-n // 2)
        counters = np.zeros((2, blocks), dtype=np.uint64)
        counters[1] = np.arange(blocks)
        return self._blocks(label, users, codes, counters).reshape(len(users), -1)[:, :n]

    def words_at(
        self, label: str, users: Sequence[Any], codes: Sequence[Any], places: Words64
    ) -> Words64:
        """The permanent word of each user for a code, at each place.

        Parameters
        ----------
        label, users, codes
            As for `words`.
        places : array of uint64, shape (2, m)
            High and low halves of numbers of 128 bits, as `places_of` gives them.

        Returns
        -------
        array of uint64, shape (len(users), m)
        """
        return self._blocks(label, users, codes, places)[:, :, 0]

    def _blocks(
        self, label: str, users: Sequence[Any], codes: Sequence[Any], offsets: Words64
    ) -> Words64:
        """AES(start + offset) of every user and offset, as two words, shape (n, m, 2)."""
        prefix = label.encode() + b"\0"
        starts = b"".join(
            hmac.digest(self._key, prefix + _named(user) + _coded(code), hashlib.sha256)[:16]
            for user, code in zip(users, codes, strict=True)
        )
        high, low = np.frombuffer(starts, dtype=">u8").astype(np.uint64).reshape(-1, 2).T
        counters = np.empty((len(users), offsets.shape[1], 2), dtype=">u8")
        steps = low[:, None] + offsets[1]
        counters[:, :, 1] = steps
        counters[:, :, 0] = high[:, None] + offsets[0] + (steps < low[:, None])
        # ECB on counters is counter mode; each block is used for one start only.
        cipher = Cipher(algorithms.AES(self._expand), modes.ECB()).encryptor()
        stream = cipher.update(counters.tobytes())
        return np.frombuffer(stream, dtype="<u8").reshape(len(users), offsets.shape[1], 2)


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


@lru_cache(maxsize=8)
def places_of(domain: Domain) -> Words64:
    """The place of each value's bit: 16 bytes of SHA-256 of its text, shape (2, k).

    A value has the same place in every list that holds it.
    """
    digests = b"".join(hashlib.sha256(text_bytes(v)).digest()[:16] for v in domain.values)
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64).reshape(-1, 2).T


def checked_question(question: Any) -> str | None:
    """The name of what is asked: a text, or None where no device remembers."""
    if question is not None and (not isinstance(question, str) or not question):
        raise ArgumentError("question must be a text that names what is asked")
    return question


def checked_users(users: Any, n: int) -> list[Any]:
    """The names of the users of n values, one each."""
    found: list[Any] = column(users).tolist()
    if len(found) != n:
        raise ArgumentError("users must name one user for each value")
    return found


def checked_memory(memory: Any) -> Memory:
    """Refuse anything but a memory: without one a device would forget its coins."""
    if not isinstance(memory, Memory):
        raise ArgumentError("memory must be a Memory, such as Memory.fresh() kept on the device")
    return memory
