"""How often one address may ask, kept in memory for a minute, under a name that leaves no trace."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable

from dither.service._callers import caller

__all__ = ["AddressRates"]

WINDOW = 60
MOST_ADDRESSES = 100_000


class AddressRates:
    """Counts the requests of addresses in windows of a minute.

    Parameters
    ----------
    most : int
        Requests of one address in a window; of IPv6, of one network of 64 bits.
    clock : callable
        Seconds that never go back.

    Examples
    --------
    >>> rates = AddressRates(2, lambda: 0.0)
    >>> [rates.admits("192.0.2.1") for _ in range(3)], rates.admits("192.0.2.2")
    ([True, True, False], True)
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._window, self._counts = -1, dict[bytes, int]()
        self._key = b""

    def admits(self, address: str) -> bool:
        """Whether one more request of an address is admitted; it is counted."""
        window = int(self._clock() // WINDOW)
        if window != self._window:
            # With its key, what was known of the last minute is gone.
            self._window, self._counts = window, {}
            self._key = secrets.token_bytes(32)
        name = hashlib.blake2b(caller(address).encode(), key=self._key, digest_size=16).digest()
        if name not in self._counts and len(self._counts) >= MOST_ADDRESSES:
            return False
        self._counts[name] = self._counts.get(name, 0) + 1
        return self._counts[name] <= self._most
