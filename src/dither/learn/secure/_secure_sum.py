"""Sums of counts that nobody but the holder of a key reads, and that one only as sums.

Three parties. The *holder* makes a pair of keys, publishes one and keeps the other. *Clients*
encrypt their counts with the public key. The *server* adds what is encrypted and passes the sum on.
The cryptography is BFV with batching, homomorphic for sums, as SEAL has it and ``tenseal`` wraps
it, at SEAL's own parameters for 128 bits of security: nothing of it is written here.

What it promises. The server, without the key, learns nothing of any count. The holder, who is given
the sum alone, learns the sum alone. If both work together they read each client; and a client may
send any counts it likes, since nothing proves that they are in range. A sum is exact, so that it
needs noise to be differentially private: reports of `dither.local` carry their own, and vectors of
`dither.learn.federated.DistributedNoise` do.

A modulus t of 2·degree·k + 1, prime, packs ``degree`` counters into one message. Sums of fewer than
t are exact. Each sum adds at most one bit of noise to the ciphertext for a doubling of clients;
with the largest moduli that are offered 30 bits and more are left for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._extras import extra_library
from dither._format import count_text
from dither.errors import ArgumentError, RoundError

__all__ = [
    "TOO_FEW",
    "RunningSum",
    "SecureSum",
    "SumKey",
    "checked_counts",
    "checked_sum",
    "library",
    "prime_from",
    "secure_sum",
]

Integers = npt.NDArray[np.int64]

_SMALL, _LARGE = 4096, 8192
_SMALL_MOST = 1 << 20
"""Moduli beyond it take the larger degree, whose ciphertexts have more room for noise."""
_MOST = 1 << 40
_LONGEST = 1 << 24
TOO_FEW = "fewer than {} clients sent counts: the sum is not passed on"


def library(name: str, sums: str) -> Any:
    """What the cryptography of these sums is written in, loaded when it is asked for."""
    return extra_library(name, "secure", f"{sums} need")


def _tenseal() -> Any:
    return library("tenseal", "secure sums")


def checked_sum(size: int, largest: int, least: int) -> tuple[int, int, int]:
    """Counters, the most that a sum can be and the fewest clients, once they are in range."""
    return (
        check.count("size", size, 1, _LONGEST),
        check.count("largest", largest, 1, _MOST),
        check.count("least", least, 1),
    )


def secure_sum(size: int, *, largest: int, least: int = 2) -> SecureSum:
    """Make the keys of a sum of vectors of counts that is opened as a sum alone.

    Parameters
    ----------
    size : int
        Counters in a vector.
    largest : int
        The most that any counter's sum can be, at least 1; up to 2**40. Larger sums wrap around.
    least : int
        A sum of fewer clients' vectors is refused before it is passed on.

    Returns
    -------
    SecureSum
        The holder's. Its ``public`` is for clients and server.

    Raises
    ------
    ArgumentError
        An argument is out of range.
    MissingLibraryError
        ``tenseal`` is not installed.

    Examples
    --------
    >>> holder = secure_sum(3, largest=1000)
    >>> server = holder.public.server()
    >>> for counts in ([1, 0, 1], [0, 0, 1]):
    ...     taken = server.add(holder.public.encrypt(counts))
    >>> holder.open(server.total())
    array([1, 0, 2])
    """
    size, bound, least = checked_sum(size, largest, least)
    tenseal = _tenseal()
    degree = _SMALL if bound < _SMALL_MOST else _LARGE
    modulus = prime_from(bound + 1, 2 * degree)
    context = tenseal.context(
        tenseal.SCHEME_TYPE.BFV, poly_modulus_degree=degree, plain_modulus=modulus
    )
    shared = context.serialize(
        save_public_key=True,
        save_secret_key=False,
        save_galois_keys=False,
        save_relin_keys=False,
    )
    return SecureSum(SumKey(shared, size, degree, modulus, least), context)


class SecureSum:
    """The key holder's side: it opens what the server has added up.

    Parameters
    ----------
    public : SumKey
    context : tenseal.Context
        With the secret key.
    """

    def __init__(self, public: SumKey, context: Any) -> None:
        self.public, self._context = public, context

    def __repr__(self) -> str:
        return f"<SecureSum of {count_text(self.public.size, 'number')}, with its secret key>"

    def open(self, total: list[bytes]) -> Integers:
        """The sums, shape (size,).

        Raises
        ------
        ArgumentError
            It is not a total under this key.
        """
        public = self.public
        try:
            parts = [_tenseal().bfv_vector_from(self._context, part) for part in total]
            sums = [part.decrypt() for part in parts]
        except Exception:
            raise ArgumentError("total must be what a server of this key has added up") from None
        found = np.array([value for part in sums for value in part], np.int64)
        if found.shape != (public.size,):
            raise ArgumentError("total must be what a server of this key has added up")
        return np.asarray(found % public.modulus)


@dataclass(frozen=True, slots=True)
class SumKey:
    """What clients and the server know.

    Parameters
    ----------
    shared : bytes
        Parameters and public key, as ``tenseal`` writes them.
    size, degree, modulus : int
    least : int
    """

    shared: bytes = field(repr=False)
    size: int
    degree: int
    modulus: int
    least: int

    @property
    def messages(self) -> int:
        """Ciphertexts of a vector."""
        return -(-self.size // self.degree)

    def _context(self) -> Any:
        return _tenseal().context_from(self.shared)

    def encrypt(self, counts: Any) -> list[bytes]:
        """A client's counts, for the server; only their sum with others is ever read.

        Parameters
        ----------
        counts : array of int, shape (size,)
            Each of at least 0 and below the modulus; a vector modulo another number is not one.

        Raises
        ------
        ArgumentError
            They are not.
        """
        vector = checked_counts(counts, self.size, self.modulus)
        context, tenseal = self._context(), _tenseal()
        parts = [vector[i : i + self.degree] for i in range(0, self.size, self.degree)]
        return [tenseal.bfv_vector(context, part.tolist()).serialize() for part in parts]

    def server(self) -> RunningSum:
        """A sum of nothing yet."""
        return RunningSum(self)


class RunningSum:
    """The server's side: it adds what it cannot read.

    Parameters
    ----------
    key : SumKey

    Attributes
    ----------
    received : int
        Vectors in the sum.
    refused : int
        What was left out: not a vector under this key, a second one of the same client, or one
        that came after the total.
    """

    def __init__(self, key: SumKey) -> None:
        self.key, self.received, self.refused = key, 0, 0
        self._context = key._context()
        self._sums: list[Any] = []
        self._given = False
        self._seen: set[Any] = set()

    def __repr__(self) -> str:
        return f"<RunningSum: {self.received:,} received, {self.refused:,} refused>"

    def add(self, message: Any, client: Any = None) -> bool:
        """Add a client's vector; says whether it counts.

        Parameters
        ----------
        message : list of bytes
        client : hashable, optional
            Whose it is; a second one of the same is left out.
        """
        parts = self._read(message)
        if parts is None or self._given or (client is not None and client in self._seen):
            self.refused += 1
            return False
        if self._sums:
            self._sums = [a + b for a, b in zip(self._sums, parts, strict=True)]
        else:
            self._sums = parts
        self._seen.add(client)
        self.received += 1
        return True

    def _read(self, message: Any) -> list[Any] | None:
        key = self.key
        if not isinstance(message, list | tuple) or len(message) != key.messages:
            return None
        try:
            parts = [_tenseal().bfv_vector_from(self._context, bytes(part)) for part in message]
            sizes = [part.size() for part in parts]
        except Exception:
            return None
        wanted = [min(key.degree, key.size - i) for i in range(0, key.size, key.degree)]
        return parts if sizes == wanted else None

    def total(self) -> list[bytes]:
        """The sum, for the holder of the key; from then on no vector is taken.

        A later sum would tell, beside this one, what came in between.

        Raises
        ------
        RoundError
            It holds fewer vectors than ``least``.
        """
        if self.received < self.key.least:
            raise RoundError(TOO_FEW.format(self.key.least))
        self._given = True
        return [part.serialize() for part in self._sums]


def checked_counts(counts: Any, size: int, modulus: int) -> npt.NDArray[Any]:
    """A client's counts, shape (size,)."""
    vector = np.asarray(counts)
    if vector.shape != (size,) or vector.dtype.kind not in "iu":
        raise ArgumentError(f"counts must be {size:,} whole numbers")
    if int(vector.min()) < 0 or int(vector.max()) >= modulus:
        raise ArgumentError("counts must be of at least 0 and within what their sum can be")
    return vector


def prime_from(least: int, step: int = 1) -> int:
    """The first prime of at least ``least`` that is 1 modulo ``step``."""
    from dither.numeric._balls import library as flint

    found = step * -(-(least - 1) // step) + 1
    while found < least or found == 1 or not flint().fmpz(found).is_prime():
        found += step
    return found
