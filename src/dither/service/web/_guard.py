"""What every request passes before anything is asked of it: sizes, times, headers, addresses.

It is plain ASGI, below the framework, so that nothing is read that was not counted.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

__all__ = ["SLOW", "RateLimit", "RequestGuard", "TooLargeError", "TooSlowError"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; "
        "object-src 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

SECURE = {"strict-transport-security": "max-age=31536000"}

BODY_SECONDS = 20.0
"""How long a body may take to come in."""


ROOM = 10_000
"""Names whose requests are known before those that were quiet for a minute are forgotten."""


class RateLimit:
    """So many in a minute for each of those who ask, with as many at once.

    Parameters
    ----------
    most : int
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._left: dict[str, tuple[float, float]] = {}
        self._room = ROOM

    def admits(self, who: str) -> bool:
        """Whether one more fits, which it then takes."""
        now = time.monotonic()
        left, last = self._left.get(who, (float(self.most), now))
        left = min(self.most, left + (now - last) * self.most / 60)
        if len(self._left) > self._room:
            self._left = {name: held for name, held in self._left.items() if now - held[1] < 60}
            # Looked through again once it has doubled, and not at each call of a crowd.
            self._room = max(ROOM, 2 * len(self._left))
        self._left[who] = (left - 1 if left >= 1 else left, now)
        return left >= 1


class RequestGuard:
    """The outermost layer.

    Parameters
    ----------
    app : ASGI application
    body : int
        Bytes of a body.
    secure : bool
        Whether whoever comes does so over TLS.
    hosts : iterable of str
        Names by which it may be called; all where empty.
    large : mapping of str to int
        By beginning of a path: bytes of a body there.
    """

    def __init__(
        self,
        app: Any,
        body: int,
        secure: bool = False,
        hosts: Iterable[str] = (),
        large: MutableMapping[str, int] | None = None,
    ) -> None:
        self.app, self._body, self._secure = app, body, secure
        self._hosts = {host.lower() for host in hosts}
        self._large = large or {}
        extra = HEADERS | (SECURE if secure else {})
        self._headers = [(name.encode(), value.encode()) for name, value in extra.items()]

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def sent(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                known = {name for name, _ in message["headers"]}
                more = [one for one in self._headers if one[0] not in known]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        headers = dict(scope["headers"])
        # Whoever watches it calls it by its address, and is told of nothing else.
        watched = scope["path"] == "/health"
        if self._hosts and not watched and not self._known(headers.get(b"host", b"")):
            await _refuse(sent, 421, "MisdirectedRequest", "the service goes by another name")
            return
        most = next(
            (n for path, n in self._large.items() if scope["path"].startswith(path)), self._body
        )
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or len(length) > 15 or int(length) > most:
            await _refuse(sent, 413, "TooLarge", f"a body may have {most:,} bytes")
            return
        came, whole, until = 0, False, time.monotonic() + BODY_SECONDS

        async def received() -> Message:
            nonlocal came, whole
            if whole:
                # What comes now is the end of whoever listens, which may take its time.
                return await receive()
            left = until - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), max(left, 0.001))
            except TimeoutError:
                raise TooSlowError from None
            came += len(message.get("body", b""))
            if came > most:
                raise TooLargeError(most)
            whole = not message.get("more_body", False)
            return message

        try:
            await self.app(scope, received, sent)
        except TooLargeError:
            if not begun:
                await _refuse(sent, 413, "TooLarge", f"a body may have {most:,} bytes")
        except TooSlowError:
            if not begun:
                await _refuse(sent, 408, "TooSlow", SLOW)

    def _known(self, host: bytes) -> bool:
        name = host.decode("latin-1").lower()
        name = name.rpartition(":")[0] if name.rpartition(":")[2].isdigit() else name
        return name in self._hosts


class TooLargeError(Exception):
    """A body has more than it may, and did not say so."""


class TooSlowError(Exception):
    """A body did not come in time."""


SLOW = "the request did not come in time"


async def _refuse(send: Send, status: int, kind: str, message: str) -> None:
    body = json.dumps({"error": {"kind": kind, "message": message}}).encode()
    headers = [(b"content-type", b"application/json"), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
