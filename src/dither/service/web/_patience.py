"""A connection that says nothing, or says it slowly, is ended, and nobody has all that there are.

The server below counts no time until a request's headers are whole: whoever opened connections and
sent a byte now and then would hold them all, and nobody else would be let in. Nor does it end a
connection whose other side reads nothing of what it asked for: so one address has so many.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, ClassVar

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from dither.service._callers import caller, is_near

__all__ = ["PatientProtocol"]

HEADER_SECONDS = 20.0
"""How long a request's headers may take to come in."""


MOST_OF_ONE = 250
"""Connections of one address at a time, or of one network of IPv6; of this machine itself, where a
proxy may stand, as many as there are."""


class PatientProtocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """The server's own, with an end to its patience."""

    _waiting: asyncio.TimerHandle | None = None
    _who: str | None = None
    _held: ClassVar[Counter[str]] = Counter()

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for a request, unless the same address has many connections already."""
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        if host and not is_near(host):
            self._who = caller(host)
            self._held[self._who] += 1
            if self._held[self._who] > MOST_OF_ONE:
                self.transport.abort()
                return
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Wait on, unless a request is whole."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._wait_no_more()
        elif self._waiting is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        self._wait_no_more()
        if self._who is not None:
            self._held[self._who] -= 1
            if not self._held[self._who]:
                del self._held[self._who]
            self._who = None
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._waiting = self.loop.call_later(HEADER_SECONDS, self._give_up)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        self._waiting = None
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()
