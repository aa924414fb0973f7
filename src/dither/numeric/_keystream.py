"""Random words: the keystream of a cipher keyed by the operating system, and a simulated stand-in.

`SecureWords` draws the noise that protects people; `KeyedWords` does where a run must go on
exactly as it began. `SimulatedWords` is another type, to be passed by name and only where nobody
is protected: tests, power, coverage.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from dither._checks import whole
from dither.errors import ArgumentError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers import CipherContext

__all__ = ["KeyedWords", "SecureWords", "SimulatedWords", "Words", "secure_words"]

# Words served under one key: 1 GiB, so that counter mode's one deviation from ideal words (blocks
# never repeat) is seen with probability below (2**26)**2 / 2**129 = 2**-77 a key.
_WORDS_PER_KEY = 1 << 27
_CHUNK = 1 << 17  # words a cipher call; larger calls are no faster
_ZEROS = bytes(8 * _CHUNK)

# A second, so that a machine restored from a snapshot finds its old key stale.
_NANOSECONDS_PER_KEY = 10**9
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_renewals = count()


def _encryptor(seed: bytes) -> CipherContext:
    """AES-256 in counter mode, of a seed of 48 bytes: 32 of the key, 16 of the first block."""
    # Loaded here: accounts, which stand on this room, draw nothing.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(seed[:32]), modes.CTR(seed[32:])).encryptor()


@runtime_checkable
class Words(Protocol):
    """A source of independent uniform 64-bit words."""

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Return n fresh words in an array that belongs to the caller."""
        ...

    def bits(self, k: int) -> int:
        """Return a uniform integer of k bits."""
        ...

    def below(self, n: int) -> int:
        """Return a uniform integer in [0, n), exactly."""
        ...


class _Integers:
    """Integers of any size from words."""

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        raise NotImplementedError

    def bits(self, k: int) -> int:
        """Return a uniform integer of k bits, k ≥ 0."""
        if k < 0:
            raise ArgumentError("k must be at least 0")
        count = -(-k // 64)
        return int.from_bytes(self.words(count).tobytes(), "little") >> (64 * count - k)

    def below(self, n: int) -> int:
        """Return a uniform integer in [0, n), exactly: k bits, drawn again until below n."""
        if n < 1:
            raise ArgumentError("n must be at least 1")
        # Rejection and no remainder, which would favour small values; fewer than two tries in the
        # mean.
        k = (n - 1).bit_length()
        while True:
            value = self.bits(k)
            if value < n:
                return value


class SecureWords(_Integers):
    """The keystream of AES-256 in counter mode, under keys that are new and soon gone.

    Words are made for the caller and kept nowhere, so none is served twice. A forked child has
    the parent's key in its memory; it draws a new one before its first word. An instance is for
    one thread: use `secure_words`.

    Notes
    -----
    Every statement on exactness in `dither.noise` is relative to ideal words. That these words
    cannot be distinguished from ideal ones is the standard assumption on AES-256 and on BLAKE2b
    with a secret key. A key is replaced after 1 GiB, after a second of the system's clock, where
    that clock goes back, and by `renew`.

    *Keys.* The first 48 bytes of BLAKE2b, whose own key is 64 new bytes of ``os.urandom``, over all
    that is new about the moment: both clocks, process, thread, the boot's identity, a counter,
    and what the caller adds. If ``os.urandom`` is what it should be, nothing else matters. If it
    repeats itself, as it may in a machine that was restored from a snapshot, two keys are
    unrelated all the same as soon as one of these differs.

    Examples
    --------
    >>> source = SecureWords()
    >>> source.words(3).shape, 0 <= source.below(6) < 6
    ((3,), True)
    """

    def __init__(self) -> None:
        self._pid = -1
        self._left = 0
        self._born = 0
        self._cipher: CipherContext | None = None
        self._epoch = object()
        self._fresh: tuple[bytes, ...] = ()

    def renew(self, *fresh: bytes) -> None:
        """Take a new key before the next word.

        Parameters
        ----------
        *fresh : bytes
            What else is new about this moment: for a release, the hash of its entry in the ledger,
            so that two different questions never share a key. It stays in the keys that follow.
        """
        self._fresh = fresh or self._fresh
        self._born, self._pid = time.time_ns(), os.getpid()
        moment = (
            self._born,
            time.monotonic_ns(),
            self._pid,
            threading.get_ident(),
            next(_renewals),
        )
        state = hashlib.blake2b(key=os.urandom(64), digest_size=48, person=b"dither keystream")
        for part in (*(str(number).encode() for number in moment), _boot(), *self._fresh):
            # Each with its length, so that no two lists of parts read alike.
            state.update(len(part).to_bytes(8, "little") + part)
        seed = state.digest()
        self._cipher = _encryptor(seed)
        self._left = _WORDS_PER_KEY
        self._epoch = object()

    def epoch(self) -> object:
        """What stands for the key of the next word: another object under another key.

        Values that were drawn in advance are served only while it is the same.
        """
        self._keyed(0)
        return self._epoch

    def _keyed(self, n: int) -> CipherContext:
        age = time.time_ns() - self._born
        # Another process, too few words left, too old, or a clock that went back: each asks for a
        # new key.
        stale = self._pid != os.getpid() or self._left < n or not 0 <= age < _NANOSECONDS_PER_KEY
        if self._cipher is None or stale:
            self.renew()
        assert self._cipher is not None
        # Counted before they are made: a failed call may waste words and never serve one twice.
        self._left -= n
        return self._cipher

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Return n fresh words.

        Parameters
        ----------
        n : int
            How many, at least 0.

        Returns
        -------
        array of uint64, shape (n,)
            Belongs to the caller; nothing else refers to its memory.

        Raises
        ------
        ArgumentError
            If n is below 0.
        """
        if n < 0:
            raise ArgumentError("n must be at least 0")
        # The cipher wants room for one block less a byte beyond its output.
        out = np.empty(n + 2, dtype=np.uint64)
        room = out.view(np.uint8).data
        zeros = memoryview(_ZEROS)
        for start in range(0, n, _CHUNK):
            count = min(_CHUNK, n - start)
            # A key for each piece, as one call may ask for more words than one key may serve.
            self._keyed(count).update_into(zeros[: 8 * count], room[8 * start :])
        return out[:n]


class KeyedWords(_Integers):
    """The keystream of AES-256 under a key of the caller's and a path: the same words each time.

    For what must go on exactly where it was stopped. Under one key, words of different paths are
    independent, as far as the standard assumption on AES-256 and BLAKE2b goes; those of one path
    are the same ones again, so that whoever draws noise of them must not put it beside other data.

    Parameters
    ----------
    key : bytes
        32 bytes of ``os.urandom``. As secret as what the noise protects.
    *path : str, bytes or int
        What the words are for, such as ``"noise", 17``.

    Raises
    ------
    ArgumentError
        key is not 32 bytes.

    Examples
    --------
    >>> key = bytes(range(32))
    >>> KeyedWords(key, "noise", 1).bits(64) == KeyedWords(key, "noise", 1).bits(64)
    True
    >>> KeyedWords(key, "noise", 1).bits(64) == KeyedWords(key, "noise", 2).bits(64)
    False
    """

    def __init__(self, key: bytes, *path: str | bytes | int) -> None:
        if not isinstance(key, bytes) or len(key) != 32:
            raise ArgumentError("key must be 32 bytes, such as os.urandom(32)")
        state = hashlib.blake2b(key=key, digest_size=48, person=b"dither path")
        for part in path:
            kind = type(part).__name__.encode()
            text = part if isinstance(part, bytes) else str(part).encode()
            # Each with its kind and length, so that no two paths read alike.
            state.update(kind + len(text).to_bytes(8, "little") + text)
        seed = state.digest()
        self._cipher = _encryptor(seed)

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Return the next n words of the path, in an array that belongs to the caller.

        Raises
        ------
        ArgumentError
            If n is below 0.
        """
        if n < 0:
            raise ArgumentError("n must be at least 0")
        # The cipher wants room for one block less a byte beyond its output.
        out = np.empty(n + 2, dtype=np.uint64)
        room = out.view(np.uint8).data
        zeros = memoryview(_ZEROS)
        for start in range(0, n, _CHUNK):
            self._cipher.update_into(zeros[: 8 * min(_CHUNK, n - start)], room[8 * start :])
        return out[:n]


class SimulatedWords(_Integers):
    """Reproducible words for simulation and tests. Noise drawn from them protects nobody.

    Parameters
    ----------
    seed : int
        The same seed gives the same words, at least 0.

    Examples
    --------
    >>> SimulatedWords(1).below(100) == SimulatedWords(1).below(100)
    True
    """

    def __init__(self, seed: int) -> None:
        self._generator = np.random.Generator(np.random.PCG64DXSM(whole("seed", seed)))

    def words(self, n: int) -> npt.NDArray[np.uint64]:
        """Return the next n words of the simulation.

        Parameters
        ----------
        n : int
            How many, at least 0.

        Returns
        -------
        array of uint64, shape (n,)
            Belongs to the caller.

        Raises
        ------
        ArgumentError
            If n is below 0.
        """
        if n < 0:
            raise ArgumentError("n must be at least 0")
        # What ``integers`` gives of all 64 bits, without what it asks of its arguments.
        raw: npt.NDArray[np.uint64] = self._generator.bit_generator.random_raw(n)
        return raw

    def generator(self) -> np.random.Generator:
        """Numpy's own view of the simulation, for what draws from other laws than uniform words."""
        return self._generator


def _boot() -> bytes:
    """The identity that the system gave to this boot, where it gives one."""
    try:
        return _BOOT.read_bytes()
    except OSError:
        return b""


class _PerThread(threading.local):
    def __init__(self) -> None:
        self.words = SecureWords()


_per_thread = _PerThread()


def secure_words() -> SecureWords:
    """Return this thread's own source of secure words.

    Returns
    -------
    SecureWords
        The same object in one thread, another in every other thread and after a fork.

    Examples
    --------
    >>> secure_words() is secure_words()
    True
    """
    return _per_thread.words


def _after_fork_in_child() -> None:
    # Without it parent and child would serve the same words.
    global _per_thread
    _per_thread = _PerThread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
