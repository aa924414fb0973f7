"""Sums of counts that several servers add in shares, and that no few of them can read.

*Clients* split each counter into shares, one for each server. A *server* adds up the shares that it
is sent, and its total is a share of the sum: any ``needed`` totals give the sum, and nobody holds a
key. Splitting and interpolation are those of ``shamirs``; no cryptography is written here.

What it promises. Shares are values, at the points 1, 2, ..., of a polynomial over the integers
modulo a prime, whose degree is ``needed`` - 1, whose constant term is the counter and whose other
coefficients are uniform. Fewer than ``needed`` of its values are uniform and independent of the
counter, whoever computes with them, so that so many servers together learn nothing of a client, if
what clients send to each server is seen by that server alone. Totals of ``needed`` servers tell the
sum and nothing else, as long as they are of the same clients, and only once: the difference of two
sums would be that of a few. So a server gives one total, and more than half of the servers are
needed: no two sums are opened of servers that all keep to this, whomever whoever opens them asks
for. Two sums share 2·needed - servers of them at least; with as many who lie, whoever opens could
have two. So where fewer than all are needed, servers must agree on the clients among themselves, or
fewer than that lie. A server that gives a wrong one spoils the
sum, and a client may send any counts it likes, since nothing proves that they are in range. A sum
is exact, so that it needs noise to be differentially private: reports of `dither.local` carry their
own, and vectors of `dither.learn.federated.DistributedNoise` do.

Source. Shamir, "How to share a secret", Communications of the ACM 1979; sums by several servers:
Corrigan-Gibbs and Boneh, "Prio: private, robust, and scalable computation of aggregate statistics",
NSDI 2017, without its proofs of range.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dither import _checks as check
from dither._format import count_text
from dither.errors import ArgumentError, RoundError
from dither.learn.secure._secure_sum import (
    TOO_FEW,
    checked_counts,
    checked_sum,
    library,
    prime_from,
)

__all__ = ["ShareServer", "SharedSum", "shared_sum"]

Integers = npt.NDArray[np.int64]

_MOST_SERVERS = 32
_HEADER = struct.Struct("<I32s")
"""Of a total: which server's it is, and a digest of its clients."""


def _shamirs() -> Any:
    return library("shamirs", "shared sums")


def shared_sum(
    size: int, *, largest: int, servers: int = 3, needed: int | None = None, least: int = 2
) -> SharedSum:
    """Plan a sum of vectors of counts that several servers add up and none of them reads.

    Parameters
    ----------
    size : int
        Counters in a vector.
    largest : int
        The most that any counter's sum can be, at least 1; up to 2**40. Larger sums wrap around.
    servers : int
        How many add, from 2 to 32. They should be run by people who do not work together.
    needed : int, optional
        How many servers' totals give the sum, more than half of them; all where left out. Fewer of
        them learn nothing, and the others may fail.
    least : int
        A server gives no total of fewer clients.

    Returns
    -------
    SharedSum
        What clients, servers and whoever opens the sum know; it holds no secret.

    Raises
    ------
    ArgumentError
        An argument is out of range.
    MissingLibraryError
        ``shamirs`` is not installed.

    Examples
    --------
    >>> plan = shared_sum(3, largest=1000, servers=3, needed=2)
    >>> servers = [plan.server(i) for i in (1, 2, 3)]
    >>> for client, counts in {"a": [1, 0, 1], "b": [0, 0, 1]}.items():
    ...     for server, share in zip(servers, plan.split(counts)):
    ...         taken = server.add(share, client)
    >>> plan.open([servers[0].total(), servers[2].total()])
    array([1, 0, 2])
    """
    size, bound, least = checked_sum(size, largest, least)
    servers = check.whole("servers", servers, 2, most=_MOST_SERVERS)
    needed = servers if needed is None else check.whole("needed", needed, 2, most=servers)
    if 2 * needed <= servers:
        raise ArgumentError(
            f"needed must be more than half of the {servers} servers: others could give the sum of "
            "other clients, and two sums tell what a few sent"
        )
    _shamirs()
    return SharedSum(size, prime_from(max(bound, servers) + 1), servers, needed, least)


@dataclass(frozen=True, slots=True)
class SharedSum:
    """What clients, servers and whoever opens the sum agree on.

    Parameters
    ----------
    size, modulus, servers, needed, least : int
    """

    size: int
    modulus: int
    servers: int
    needed: int
    least: int

    @property
    def _width(self) -> int:
        """Bytes of a counter."""
        return -(-(self.modulus - 1).bit_length() // 8)

    def _written(self, values: Integers) -> bytes:
        whole = values.astype("<u8").view(np.uint8).reshape(-1, 8)
        return whole[:, : self._width].tobytes()

    def _read(self, message: Any) -> Integers | None:
        if not isinstance(message, bytes) or len(message) != self.size * self._width:
            return None
        whole = np.zeros((self.size, 8), np.uint8)
        whole[:, : self._width] = np.frombuffer(message, np.uint8).reshape(self.size, -1)
        values = whole.view("<u8").ravel()
        return values.astype(np.int64) if (values < self.modulus).all() else None

    def split(self, counts: Any) -> list[bytes]:
        """A client's counts as shares, the first for the first server.

        Each must go to its server by a way that nobody else reads, such as TLS.

        Parameters
        ----------
        counts : array of int, shape (size,)
            Each of at least 0 and below the modulus.

        Raises
        ------
        ArgumentError
            They are not.
        """
        vector, shamirs = checked_counts(counts, self.size, self.modulus), _shamirs()
        shares = [
            [one.value for one in shamirs.shares(c, self.servers, self.modulus, self.needed)]
            for c in vector.tolist()
        ]
        return [self._written(values) for values in np.array(shares, np.int64).T]

    def server(self, number: int) -> ShareServer:
        """A server with nothing yet; they are numbered from 1."""
        return ShareServer(self, check.whole("number", number, 1, most=self.servers))

    def open(self, totals: Iterable[bytes]) -> Integers:
        """The sums, shape (size,).

        Parameters
        ----------
        totals : sequence of bytes
            Of at least ``needed`` servers; where there are more they are held against each other.

        Raises
        ------
        ArgumentError
            They are not totals of this plan.
        RoundError
            There are too few of them, they are of different clients, or one of them is wrong.
        """
        found = dict(self._opened(total) for total in totals)
        if len(found) < self.needed:
            raise RoundError(
                f"totals of {len(found)} servers do not give the sum: {self.needed} are needed"
            )
        if len({digest for digest, _ in found.values()}) > 1:
            raise RoundError(
                "the servers added up different clients: ask each for its total of those whom "
                "all of them have"
            )
        points = [(number, values) for number, (_, values) in sorted(found.items())]
        sums = self._interpolated(points[: self.needed])
        # Each is taken into one of the sums.
        for i in range(1, len(points) - self.needed + 1):
            if not np.array_equal(sums, self._interpolated(points[i : i + self.needed])):
                raise RoundError("the totals contradict each other: one of the servers is wrong")
        return sums

    def _opened(self, total: Any) -> tuple[int, tuple[bytes, Integers]]:
        if isinstance(total, bytes) and len(total) >= _HEADER.size:
            number, digest = _HEADER.unpack_from(total)
            values = self._read(total[_HEADER.size :])
            if values is not None and 1 <= number <= self.servers:
                return number, (digest, values)
        raise ArgumentError("totals must be what the servers of this plan have added up")

    def _interpolated(self, points: Sequence[tuple[int, Integers]]) -> Integers:
        shamirs = _shamirs()
        each = zip(*(values.tolist() for _, values in points), strict=True)
        return np.array(
            [
                shamirs.interpolate(
                    [
                        shamirs.share(number, value, self.modulus)
                        for (number, _), value in zip(points, values, strict=True)
                    ]
                )
                for values in each
            ],
            np.int64,
        )


class ShareServer:
    """One server: it adds shares that tell it nothing.

    Parameters
    ----------
    plan : SharedSum
    number : int
        Which of the servers it is, from 1.

    Attributes
    ----------
    clients : frozenset of str
        Whose shares it has.
    refused : int
        What was left out: not a share of this plan, a second one of the same client, or too late.
    """

    def __init__(self, plan: SharedSum, number: int) -> None:
        self.plan, self.number, self.refused = plan, number, 0
        self._clients: set[str] = set()
        self._shares: dict[str, Integers] = {}
        self._given: tuple[frozenset[str], bytes] | None = None

    def __repr__(self) -> str:
        return (
            f"<ShareServer {self.number}: {count_text(len(self._clients), 'client')}, "
            f"{self.refused:,} refused>"
        )

    @property
    def clients(self) -> frozenset[str]:
        """Whose shares it has."""
        return frozenset(self._clients)

    def add(self, message: Any, client: str) -> bool:
        """Take a client's share; says whether it counts.

        Parameters
        ----------
        message : bytes
        client : str
            Whose it is, by the name that all servers know; a second one of the same is left out.
        """
        values = self.plan._read(message)
        late = self._given is not None
        if values is None or late or not isinstance(client, str) or client in self._clients:
            self.refused += 1
            return False
        self._clients.add(client)
        self._shares[client] = values
        return True

    def total(self, clients: Iterable[str] | None = None) -> bytes:
        """Its share of the sum, for whoever opens it; from then on no share is taken.

        Parameters
        ----------
        clients : iterable of str, optional
            Of whom: those whom all servers have, where some reached only a few. All where left out.

        Raises
        ------
        RoundError
            They are fewer than ``least``, or it has no share of some of them; or it gave a total
            of others before: two sums would tell what the clients between them sent.
        """
        asked = self.clients if clients is None else frozenset(clients)
        if self._given is not None:
            if clients is None or asked == self._given[0]:
                return self._given[1]
            raise RoundError("a total of other clients was given: a second would tell of a few")
        if len(asked) < self.plan.least:
            raise RoundError(TOO_FEW.format(self.plan.least))
        if not asked <= self.clients:
            raise RoundError(
                f"server {self.number} has no share of {len(asked - self.clients)} of the clients"
            )
        sums = np.zeros(self.plan.size, np.int64)
        for client in asked:
            sums = (sums + self._shares[client]) % self.plan.modulus
        names = [hashlib.sha256(name.encode("utf-8", "surrogatepass")) for name in asked]
        digest = hashlib.sha256(b"".join(sorted(name.digest() for name in names))).digest()
        made = _HEADER.pack(self.number, digest) + self.plan._written(sums)
        self._given = asked, made
        self._shares.clear()
        return made
